"""Turns the servers of a pool from our MiniDNS to Designate's.

The servers go into maintenance first: from then on pool managers leave them alone, while MiniDNS still serves
transfers to them.  A zone gets Designate's MiniDNS as its primary when that serves it at a serial that is not older
than the one here.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timezone

from designate_pool import backends
from designate_pool.backends.base import Backend
from designate_pool.cmd.takeover import switch
from designate_pool.cmd.takeover.designate_api import CallRefused, DesignateApi
from designate_pool.errors import BadInput
from designate_pool.model import CallResult, Domain, Endpoint, Pool, ServerState, utcnow
from designate_pool.serial import newer
from designate_pool.storage.designate import back, target
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains

#: Of Designate, that would act on a zone of which only some changes are repeated.
ACTING = ('producer', 'worker')
#: Seconds between two questions to MiniDNS.
_PAUSE = 1.0
#: Seconds without progress after which a server is told to transfer zones; twice as long after each time.
_QUIET = 5.0
#: Zones that are asked for and handed back together.
_PAGE = 200
#: After so many seconds without a sign of life a service of Designate does not run; it gives one every 10 s.
_SILENCE = 30.0
NOTE = 'its zones go back to Designate'


def rest(storage: Storage, pools: Mapping[str, Pool]) -> None:
    """Take the servers of pools out of service, unless they are.

    :param pools: by their ids
    :raises BadInput: when the servers of one do not serve all that is here; then nothing has changed in any
    """
    working = {pool_id: pool for pool_id, pool in pools.items()
               if storage.read(back.states, pool_id) != {ServerState.MAINTENANCE}}
    for pool_id, pool in working.items():
        _refuse_unready(storage, pool, pool_id)
    storage.run(_rest, list(working), utcnow())


def _rest(tx: Tx, pool_ids: Sequence[str], now: datetime) -> None:
    for each in pool_ids:
        target.rest_servers(tx, each, NOTE, now)


def _refuse_unready(storage: Storage, pool: Pool, pool_id: str) -> None:
    """:raises BadInput: when a pool has servers that are not in service, or do not serve all that is here"""
    states = storage.read(back.states, pool_id)
    if states != {ServerState.ACTIVE}:
        raise BadInput(why=f'all servers of the pool {pool.name} have to be in service, or all in maintenance, to be '
                           f'handed back; they are {", ".join(sorted(map(str, states))) or "not registered"}')
    unsettled = storage.read(back.unsettled, pool_id)
    if unsettled:
        raise BadInput(why=f'not all servers serve these zones as they are: {", ".join(unsettled)}; stop the API, and '
                           'wait until they are ACTIVE')
    switch.refuse_others(pool, switch.serials(storage, pool_id), 'The servers are left as they are')


def refuse_acting(api: DesignateApi) -> None:
    """
    :raises BadInput: when a service of Designate runs that would transfer zones of which only some changes are repeated
    """
    try:
        found = api.call('GET', 'service_statuses?limit=1000')['service_statuses']
    except CallRefused as error:
        raise BadInput(why=f'whether its producer and worker run cannot be asked: {error}') from None
    running = sorted({each['service_name'] for each in found if each['service_name'] in ACTING
                      and each['status'] == 'UP' and _seconds_since(each['heartbeated_at']) < _SILENCE})
    if running:
        raise BadInput(why=f"Designate's {' and '.join(running)} must not run while changes are repeated, since "
                           'servers would get zones with only some of them; stop it, and run this again after '
                           f'{_SILENCE:g} s')


def _seconds_since(text: str | None) -> float:
    """The age of a time of Designate's, which is UTC."""
    if text is None:
        return math.inf
    return (utcnow() - datetime.fromisoformat(text).replace(tzinfo=timezone.utc)).total_seconds()


def turn(storage: Storage, pool: Pool, pool_id: str, primaries: Sequence[Endpoint], patience: float,
         tell: Callable[[str], None], request_transfers: Callable[[Collection[str]], None]) -> int:
    """Give each zone its primaries as soon as these serve it, and wait until the servers have it; how many there are.

    :param primaries: Designate's MiniDNS
    :param patience: seconds without progress after which it is given up
    :param request_transfers: is called with the names of zones that do not get on: a secondary zone may be newer here
    :raises BadInput: when a server refuses a zone, or MiniDNS is silent, or it or a server does not get on
    """
    here = switch.serials(storage, pool_id)
    waiting = dict(here)
    drivers = [backends.build_for(pool, dataclasses.replace(server, primaries=tuple(primaries), tsig_key=None))
               for server in pool.servers]
    wanted: dict[str, int] = {}
    quiet = min(_QUIET, patience / 4)
    end, due = time.monotonic() + patience, time.monotonic() + quiet
    requested = False
    while waiting:
        names = sorted(waiting)
        for start in range(0, len(names), _PAGE):
            try:
                ready = _ready(primaries, {name: waiting[name] for name in names[start:start + _PAGE]}, patience)
            except switch.NoReply:
                if not wanted:
                    raise
                ready = {}  # it has replied for others
            for driver in drivers:
                for domain, result in _told(driver.create_domains, driver, storage, sorted(ready)):
                    if not result.ok:
                        raise BadInput(why=f'{driver.server.label} does not take {domain.name} from Designate: '
                                           f"{result.error}; run 'back' again to go on")
            if ready:
                wanted |= ready
                waiting = {name: serial for name, serial in waiting.items() if name not in ready}
                tell(f'{len(wanted)} zones are handed back, {len(waiting)} wait for a newer serial in Designate')
        if len(waiting) < len(names):
            end, requested = time.monotonic() + patience, False
        # Not before Designate has been asked to transfer what waits, however long the servers have taken.
        elif requested and time.monotonic() > end:
            raise BadInput(why=f"Designate's MiniDNS does not serve {len(waiting)} zones at a serial newer than here: "
                               f'{switch.some(sorted(waiting))}; start its producer, worker and MiniDNS, and run '
                               "'back' again to go on")
        else:
            if time.monotonic() >= due:
                request_transfers(waiting)
                due, requested = time.monotonic() + quiet, True
            time.sleep(min(_PAUSE, quiet))
    for driver in drivers:
        _wait(driver, storage, wanted, patience)
    return len(wanted)


def _ready(primaries: Sequence[Endpoint], waiting: Mapping[str, int], patience: float) -> dict[str, int]:
    """The zones that all primaries serve at least at the serials of *waiting*, with the oldest serial of each.

    :raises NoReply: when a primary has not replied at all: unlike one that refuses, it will not do so by itself
    """
    found: dict[str, int] = {}
    for number, where in enumerate(primaries):
        try:
            said = switch.ask(where, None, sorted(waiting), of_designate=True, seconds=patience)
        except switch.NoReply:
            raise
        except BadInput:
            return {}  # it may be started later
        for name, serial in said.items():
            if serial is None or newer(waiting[name], serial):
                found.pop(name, None)
            elif not number or (name in found and newer(found[name], serial)):
                found[name] = serial
    return found


def _told(call: Callable[[Sequence[Domain]], list[CallResult]], driver: Backend, storage: Storage,
          names: Sequence[str]) -> Iterator[tuple[Domain, CallResult]]:
    """The result of a call of *driver* for each of the zones."""
    size = driver.capabilities.batch_size
    for start in range(0, len(names), size):
        found = list(storage.read(domains.live_by_name, names[start:start + size]).values())
        yield from zip(found, call(found), strict=True)


def _wait(driver: Backend, storage: Storage, wanted: Mapping[str, int], patience: float) -> None:
    """Wait until a server serves the zones at these serials, or newer ones.

    While nothing goes on, it is told to transfer what it lacks, at growing intervals: it asked when it got the new
    primaries, and without an answer to that it asks again only after the zone's retry time.
    """
    server = driver.server
    pause = min(_QUIET, patience / 4)
    left = dict(wanted)
    failures: dict[str, str] = {}
    progress = told = time.monotonic()
    while True:
        late: dict[str, int] = {}
        for where in server.verify or (server.endpoint,):
            said = switch.ask(where, None, sorted(left))
            late |= {name: serial for name, serial in left.items()
                     if said[name] is None or newer(serial, said[name] or 0)}
        if not late:
            return
        now = time.monotonic()
        if len(late) < len(left):
            progress = told = now
        elif told > progress and now - progress > patience:
            why = f' ({switch.some([f"{name}: {error}" for name, error in failures.items()])})' if failures else ''
            raise BadInput(why=f'{server.label} has not transferred {len(late)} zones from Designate: '
                               f"{switch.some(sorted(late))}{why}; run 'back' again to go on waiting")
        elif now - told >= pause:
            failures = {domain.name: str(result.error) for domain, result in
                        _told(driver.refetch_domains, driver, storage, sorted(late)) if not result.ok}
            told, pause = now, 2 * pause
        left = late
        time.sleep(min(_PAUSE, patience / 4))
