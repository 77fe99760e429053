"""Answers NOTIFY messages from masters of secondary zones (RFC 1996)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from designate_pool.minidns.acl import Refusal
from designate_pool.minidns.server.responder import Query
from designate_pool.model import Master
from designate_pool.protocol import wire
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import secondary_zones

#: Names in NOTIFY messages a second that are looked up.  Anybody may send these, so more are dropped; a master repeats
#: its own.
RATE = 200

#: The id of a domain, and its masters.
Masters = tuple[str, Sequence[str]]


class NotifyReceiver:
    """Answers NOTIFYs of masters, and has the zones that they are about refreshed.

    :param request: called with the id of each domain that one of its masters says has changed
    :param clock: seconds, for the rate
    """

    def __init__(self, storage: Storage, pool_name: str, request: Callable[[str], object],
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._storage = storage
        self._pool_name = pool_name
        self._request = request
        self._clock = clock
        self._lock = threading.Lock()
        self._second, self._looked_up = 0, 0

    def read_masters(self, names: Collection[str]) -> Mapping[str, Masters | None]:
        """The masters of these zones, None for one that is no secondary one; without the names that are too many."""
        second = int(self._clock())
        with self._lock:
            if second != self._second:
                self._second, self._looked_up = second, 0
            admitted = list(names)[:RATE - self._looked_up]
            self._looked_up += len(admitted)
        masters = self._storage.read(secondary_zones.masters, self._pool_name, admitted) if admitted else {}
        return {name: masters.get(name) for name in admitted}

    def answer(self, query: Query, masters_by_name: Mapping[str, Masters | None], now: int) -> bytes | Refusal | None:
        """The reply; None for none.

        The sender need not sign: it is believed only that it is worth while to ask its master.

        :param masters_by_name: of :meth:`read_masters`
        """
        if query.name not in masters_by_name:
            return None
        entry = masters_by_name[query.name]
        if entry is None:
            return query.reply(wire.NOTAUTH, now)
        domain_id, masters = entry
        if query.address not in {Master.parse(master).endpoint.host for master in masters}:
            return Refusal(query.reply(wire.REFUSED, now), query.address, '', 'no master',
                           f'{query.address} notifies of {query.name} and is no master of it')
        self._request(domain_id)
        return query.reply(wire.NOERROR, now, wire.AA)
