"""Waiting for zones: one thread asks the database for all of them together.

However many wait, a check costs a few statements.  Recent waits are checked often, so that a change is answered within
milliseconds; long waits less often, and together.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Sequence

from designate_pool.api.services.wait_verdict import WaitTarget, WaitVerdict, ZoneState, judge
from designate_pool.errors import ServiceUnavailable, TooManyWaits
from designate_pool.logs import OutageLog
from designate_pool.model import Domain
from designate_pool.settings import ApiSettings
from designate_pool.storage.operations import pool_servers, server_statuses
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains, pools

LOG = logging.getLogger(__name__)
#: Seconds between two checks, by how long a wait has lasted.
PACES = ((1.0, 0.025), (10.0, 0.1), (float('inf'), 0.4))
#: Seconds between two checks whether the client is still connected.
PRESENCE = 1.0
#: One project may have one of so many shares of the waits.
_SHARES = 5


@dataclasses.dataclass(eq=False, slots=True)
class _Wait:
    wanted: WaitTarget
    began: float
    next_look: float
    project_id: str = ''
    over: threading.Event = dataclasses.field(default_factory=threading.Event)
    seen: tuple[ZoneState, WaitVerdict] | None = None


class ZoneWatcher:
    """
    :param settings: how many may wait at once, and how many of them for one project
    """

    def __init__(self, storage: Storage, settings: ApiSettings = ApiSettings()) -> None:
        self._storage = storage
        self._settings = settings
        self._changed = threading.Condition()
        self._waits: set[_Wait] = set()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread that checks the awaited zones."""
        self._thread = threading.Thread(target=self._loop, name='api-waits', daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End every wait, with an error."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            for wait in self._waits:
                wait.over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def __len__(self) -> int:
        """How many are waiting."""
        return len(self._waits)

    def wait(self, wanted: WaitTarget, seconds: float,
             is_gone: Callable[[], bool] = lambda: False, project_id: str = '') -> tuple[ZoneState, WaitVerdict]:
        """The state of the zone, with servers and rows, when the wait is over or *seconds* are.

        :param is_gone: whether the client has disconnected; called now and then
        :param project_id: for which it waits; '' is not counted
        :raises TooManyWaits: when as many are waiting already as may
        :raises ServiceUnavailable: when the API stops, or the database does not answer
        """
        now = time.monotonic()
        wait = _Wait(wanted, now, now, project_id)
        with self._changed:
            if self._stopping or self._thread is None:
                raise ServiceUnavailable(service='the API', why='it stops', seconds=5)
            if len(self._waits) >= self._settings.waits:
                raise TooManyWaits(limit=self._settings.waits)
            share = max(1, self._settings.waits // _SHARES)
            if project_id and sum(wait.project_id == project_id for wait in self._waits) >= share:
                raise TooManyWaits(limit=share, whose='of the project ')
            self._waits.add(wait)
            self._changed.notify_all()
        try:
            while not wait.over.wait(min(PRESENCE, max(0.0, now + seconds - time.monotonic()))):
                if time.monotonic() >= now + seconds or is_gone():
                    break
        finally:
            with self._changed:
                self._waits.discard(wait)
        if wait.seen is not None and wait.seen[1].over:
            return wait.seen
        if self._stopping:
            raise ServiceUnavailable(service='the API', why='it stops', seconds=5)
        state = self.state_of(wanted.domain_id)
        return state, judge(wanted, state)

    def state_of(self, domain_id: str) -> ZoneState:
        """The state of a domain now, with servers, rows and pool."""
        return self._storage.read(_look, [domain_id], lambda domain: True)[domain_id]

    def _loop(self) -> None:
        outage = OutageLog(LOG, 'waiting requests: the state of their zones could not be read',
                           'waiting requests: the state of their zones can be read again')
        while True:
            with self._changed:
                while not self._stopping and not (due := [wait for wait in self._waits if not wait.over.is_set()
                                                          and wait.next_look <= time.monotonic()]):
                    first = min((wait.next_look for wait in self._waits), default=None)
                    self._changed.wait(None if first is None else max(0.001, first - time.monotonic()))
                if self._stopping:
                    return
            try:
                self._look(due)
                outage.ended()
            except Exception:  # the database may work again before the waiting requests reach their timeouts
                outage.failed(exc_info=True)
                time.sleep(PACES[-1][1])

    def _look(self, waits: Sequence[_Wait]) -> None:
        by_domain: dict[str, list[_Wait]] = {}
        for wait in waits:
            by_domain.setdefault(wait.wanted.domain_id, []).append(wait)

        def needs_rows(domain: Domain) -> bool:
            # Whether a wait is over is known without the rows, but not which servers have it.
            return any(wait.wanted.servers is not None or judge(wait.wanted, ZoneState(domain)).over
                       for wait in by_domain[domain.id])

        states = self._storage.read(_look, list(by_domain), needs_rows)
        now = time.monotonic()
        for wait in waits:
            state = states[wait.wanted.domain_id]
            verdict = judge(wait.wanted, state)
            wait.seen = state, verdict
            pace = next(pace for until, pace in PACES if now - wait.began < until)
            wait.next_look = (now // pace + 1) * pace  # the waits of the same interval are checked together
            if verdict.over:
                wait.over.set()


def _look(tx: Tx, ids: Sequence[str], needs_rows: Callable[[Domain], bool]) -> dict[str, ZoneState]:
    """The states of these domains; with servers and rows where they are needed."""
    by_id = domains.get_many(tx, ids)
    deep = [domain for domain in by_id.values() if needs_rows(domain)]
    rows = server_statuses.for_domains(tx, [domain.id for domain in deep]) if deep else {}
    pool_states = {domain.pool_id: (pool_servers.of_pool(tx, domain.pool_name).servers, pools.get(tx, domain.pool_id))
                   for domain in {domain.pool_id: domain for domain in deep}.values()}
    states = {}
    for domain in deep:
        servers, pool = pool_states[domain.pool_id]
        states[domain.id] = ZoneState(domain, servers, rows.get(domain.id, ()), pool)
    return {key: states.get(key) or ZoneState(by_id.get(key)) for key in ids}
