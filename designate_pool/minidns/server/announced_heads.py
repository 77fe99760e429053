"""The heads that servers got in answers to SOA queries a moment ago, for the transfers that they ask for next.

A server that is notified queries the SOA and then transfers the zone (RFC 1996 section 4.7), so without this each head
is read twice.  Only a server that has a serial is given one again (IXFR): it may ask for a whole zone without an SOA
query before, and then what it was told can be of a zone that has been deleted and created again since.  That may also
happen between its queries, so a head is used only where the contents of its zone are read from the database after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from designate_pool.minidns.server.responder import Query
from designate_pool.model import CATALOG_ID, ZoneHead
from designate_pool.protocol import wire
from designate_pool.serial import newer

#: Seconds for which a head can be used.  Within them a server may get a serial that has been followed by another; the
#: NOTIFY for that has it ask again.
LIFETIME = 1.0


class AnnouncedHeads:
    """One head for each server and zone, used for one transfer; safe for threads.

    Servers that cannot be told apart have none: what one was told may be old when another asks for a transfer.

    :param most: heads that are remembered
    """

    def __init__(self, most: int = 2000, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._heads: dict[tuple[str, str], tuple[ZoneHead, float]] = {}

    def put(self, query: Query, head: ZoneHead) -> None:
        """Remember that *query* was answered with the SOA of *head*."""
        if query.rtype == wire.SOA and len(query.peers) == 1 and head.domain_id != CATALOG_ID:
            if len(self._heads) >= self._most:
                self._heads.clear()
            self._heads[query.peers[0].id, query.name] = head, self._clock()

    def take(self, query: Query) -> ZoneHead | None:
        """The head for the transfer that *query* asks for; None where it has to be read."""
        if query.client_serial is None or query.rtype == wire.SOA or len(query.peers) != 1:
            return None
        head, put = self._heads.pop((query.peers[0].id, query.name), (None, 0.0))
        if head is None or self._clock() - put > LIFETIME:
            return None
        return head if newer(head.serial, query.client_serial) else None
