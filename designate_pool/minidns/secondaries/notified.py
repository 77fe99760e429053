"""Answers NOTIFY messages from masters of secondary zones (RFC 1996)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from designate_pool.minidns.access.acl import Refusal
from designate_pool.minidns.server.responder import Query
from designate_pool.model import Endpoint
from designate_pool.protocol import wire
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import secondary_zones

#: NOTIFY messages a second that are looked up.  Anybody may send them, so more are dropped; a master repeats its own.
RATE = 200


class NotifyReceiver:
    """
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

    def answer(self, query: Query, now: int) -> bytes | Refusal | None:
        """The reply; None for none.

        The sender need not sign: it is believed only that it is worth while to ask its master.
        """
        if not self._admit():
            return None
        found = self._storage.read(secondary_zones.masters, self._pool_name, query.name)
        if found is None:
            return query.reply(wire.NOTAUTH, now)
        domain_id, masters = found
        if query.address not in {Endpoint.parse(each).host for each in masters}:
            return Refusal(query.reply(wire.REFUSED, now), query.address, '', 'no master',
                           f'{query.address} notifies of {query.name} and is no master of it')
        self._request(domain_id)
        return query.reply(wire.NOERROR, now, wire.AA)

    def _admit(self) -> bool:
        second = int(self._clock())
        with self._lock:
            if second != self._second:
                self._second, self._looked_up = second, 0
            self._looked_up += 1
            return self._looked_up <= RATE
