"""Turns the servers of a pool from Designate's MiniDNS to ours.

The servers join the pool, whose running pool managers create each zone on them: a driver gives an existing zone new
primaries, and it stays served.  Every zone is compared on each server with the one here before and afterwards: its
serial, and its records as the server transfers them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta

from dns.tsig import Key

from designate_pool.cmd.takeover.zone_copy import ZoneCopy
from designate_pool.deadline import Deadline
from designate_pool.errors import BadInput
from designate_pool.model import Endpoint, PageRequest, Pool, Server, ServerState, utcnow
from designate_pool.pool_manager.dispatch import zone_compare
from designate_pool.pool_manager.dispatch.zone_compare import Match
from designate_pool.protocol import soa_exchange, tsig
from designate_pool.protocol.axfr_inbound import Pace
from designate_pool.runtime import Threads
from designate_pool.storage.designate import target
from designate_pool.storage.designate.target import Copied
from designate_pool.storage.operations import heartbeats, pool_servers
from designate_pool.storage.sql.database import Storage

#: Services that the pool needs.
NEEDED = ('minidns', 'pool_manager')
#: Zones that are asked for at once, and the seconds for which they are asked for.
_PAGE, _SECONDS = 2000, 30.0
#: Zones that an error names.
_SHOWN = 20
_PAUSE = 0.2
#: Zones that are compared at the same time.
_THREADS = 4


def refuse_movement(copying: ZoneCopy, quiet: float) -> None:
    """Take the last changes, and see that nothing changes for *quiet* seconds.

    :raises BadInput: when Designate still changes zones, or a zone cannot be taken over
    """
    for seconds in (quiet, 0.0):
        report = copying.run()
        if report.waiting:
            raise BadInput(why=f'{len(report.waiting)} zones are not settled in Designate: '
                               f'{some(report.waiting)}; stop its API, and wait until they are')
        if report.refused:
            raise BadInput(why='these zones are not here as Designate has them: '
                               + '; '.join(f'{name} ({why})' for name, why in sorted(report.refused.items())[:_SHOWN]))
        if not seconds and report.has_changes:
            raise BadInput(why=f'Designate has changed {report.zones + len(report.removed)} zones within {quiet:g} s; '
                               'stop its API')
        time.sleep(seconds)


def refuse_silence(storage: Storage, pool_name: str) -> None:
    """Refuse to go on while a program of the pool is missing.

    :raises BadInput: when a program of the pool that is needed does not run
    """
    live = {heartbeat.service_name for heartbeat in storage.read(
        heartbeats.find, PageRequest({'status': heartbeats.UP}), utcnow() - timedelta(seconds=heartbeats.SILENCE))
        if heartbeat.pool_name in (pool_name, '')}
    for name in NEEDED:
        if name not in live:
            raise BadInput(why=f'no {name.replace("_", " ")} of the pool {pool_name} runs; start it with this '
                               'configuration')


def begin(storage: Storage, pools: Mapping[str, Pool], with_records: bool) -> None:
    """Put the servers into service.

    :param pools: of the configuration, by their ids
    :param with_records: whether records are compared, and not serials alone
    :raises BadInput: when a server does not serve what Designate has; then nothing has changed
    """
    for pool_id, pool in pools.items():
        refuse_others(pool, serials(storage, pool_id), 'The servers are left as they are')
        if with_records:
            refuse_other_records(storage, pool, pool_id, 'The servers are left as they are')
    storage.run(target.begin_service, list(pools), utcnow())


def end(storage: Storage, pool: Pool, pool_id: str, patience: float, with_records: bool,
        tell: Callable[[str], None]) -> int:
    """Wait until the servers have joined; how many zones all of them serve.

    :param patience: seconds without progress after which it is given up
    :param with_records: whether records are compared, and not serials alone
    :raises BadInput: when a server has not joined, or does not serve a zone as it is here
    """
    _wait(storage, pool.name, patience, tell)
    expected = serials(storage, pool_id)
    refuse_others(pool, expected, 'All have joined')
    if with_records:
        refuse_other_records(storage, pool, pool_id, 'All have joined')
    return len(expected)


def serials(storage: Storage, pool_id: str) -> dict[str, int]:
    """The serial of each of the pool's domains that servers serve, by name."""
    return {copied.name: copied.serial for page in _served(storage, pool_id) for copied in page}


def _served(storage: Storage, pool_id: str) -> Iterator[list[Copied]]:
    """The pool's domains in pages, without those that no server can have yet."""
    after = ''
    while page := storage.read(target.page, pool_id, after, _PAGE):
        yield [copied for copied in page if not copied.awaits_first]
        after = page[-1].id


def _serials_at(where: Endpoint, key: Key | None, names: Sequence[str]) -> dict[str, int | None]:
    """The serials of zones at an address; None for one without an answer.

    :raises BadInput: when nothing listens there
    """
    serials: dict[str, int | None] = {}
    for start in range(0, len(names), _PAGE):
        try:
            replies = soa_exchange.ask(where.host, where.port, key, names[start:start + _PAGE], Deadline(_SECONDS))
        except OSError as error:
            raise BadInput(why=f'{where} does not answer: {error.strerror or error}') from None
        serials.update((name, None if reply is None else reply.serial) for name, reply in replies.items())
    return serials


def refuse_others(pool: Pool, wanted: Mapping[str, int], then: str) -> None:
    """Refuse to go on while a server serves other serials.

    :raises BadInput: when a server does not serve the zones at these serials
    """
    for server in pool.servers:
        key = None if server.tsig_key is None or server.verify else tsig.key_from(server.tsig_key)
        for where in server.verify or (server.endpoint,):
            said = _serials_at(where, key, sorted(wanted))
            wrong = [f'{name} at {said[name] or "no serial"} in place of {serial}'
                     for name, serial in sorted(wanted.items()) if said[name] != serial]
            if wrong:
                raise BadInput(why=f'{server.label} serves {len(wrong)} zones otherwise at {where}: {some(wrong)}. '
                                   f'{then}')


def refuse_other_records(storage: Storage, pool: Pool, pool_id: str, then: str) -> None:
    """Refuse to go on while a server serves other records.

    :raises BadInput: when a server has other records in a zone than there are here, or they cannot be compared
    """
    threads = Threads().workers(_THREADS, name='compare')
    paces = {server.id: Pace(0.0) for server in pool.servers}
    wrong: dict[str, list[str]] = {}
    try:
        for page in _served(storage, pool_id):
            futures = [(copied.name, threads.submit(_compare, storage, pool.servers, paces, copied.id))
                       for copied in page]
            for name, future in futures:
                for label, why in future.result():
                    wrong.setdefault(label, []).append(f'{name}: {why}')
    finally:
        threads.stop()
    for label, zones in wrong.items():
        raise BadInput(why=f'{label} does not have {len(zones)} zones as they are here, or does not show them: '
                           f'{some(zones)}. {then}; where transfers to this host cannot be allowed, --compare serials '
                           'compares without them')


def _compare(storage: Storage, servers: Sequence[Server], paces: Mapping[str, Pace],
             domain_id: str) -> list[tuple[str, str]]:
    """The servers that have a zone otherwise than it is here: label and why."""
    ours = zone_compare.ours(storage, domain_id)
    if ours is None:
        return [(server.label, 'it is not served from here') for server in servers]
    comparisons = [(server.label, zone_compare.compare(server, ours, paces[server.id])) for server in servers]
    return [(label, comparison.why) for label, comparison in comparisons if comparison.match is not Match.SAME]


def _wait(storage: Storage, pool_name: str, patience: float, tell: Callable[[str], None]) -> None:
    """Wait until the servers have joined.

    :raises BadInput: when nothing has gone on for *patience* seconds
    """
    last: tuple[int, int] | None = None
    end = time.monotonic() + patience
    while True:
        members = storage.read(pool_servers.of_pool, pool_name).servers
        servers = [member for member in members if member.state is ServerState.JOINING]
        resting = [member.label for member in members if member.state is ServerState.MAINTENANCE]
        if resting:
            raise BadInput(why=f'{some(resting)} is in maintenance; have it in service, and run finish again')
        if not servers:
            return
        now = (sum(server.filled for server in servers),
               sum(storage.read(pool_servers.waiting, server.id) for server in servers))
        if now != last:
            last, end = now, time.monotonic() + patience
            tell(f'{len(servers)} servers join; {now[0]} zones begun, {now[1]} operations to be done')
        elif time.monotonic() > end:
            failures = [f'{server.label}: {name} {why}' for server in servers for name, _, why in
                        storage.read(pool_servers.report, server, 0, utcnow(), whole=True).failures]
            raise BadInput(why=f'{servers[0].label} has not joined yet'
                               f'{failures and f" ({some(failures)})" or ""}; run finish again to go on waiting')
        time.sleep(_PAUSE)


def some(found: Sequence[str]) -> str:
    return ', '.join(found[:_SHOWN]) + (f' and {len(found) - _SHOWN} more' if len(found) > _SHOWN else '')
