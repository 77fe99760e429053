"""What servers are asked in one go by :mod:`designate_pool.minidns.soa_sweep.sweep`, and what came of it."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from typing import Any

from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.protocol import soa_query, wire
from designate_pool.protocol.soa_query import SoaReply

#: After the question: an owner that points to it, the type SOA and the class IN; TTL and length of the rdata follow.
_SOA = wire.TO_QUESTION + wire.QUESTION.pack(wire.SOA, wire.IN)


class SweepPage:
    """Zones to ask servers for.

    :param domains: (id, name, wanted serial); one whose name is none is not asked for
    :param note: what the page is known by to who wants it
    :ivar tallies: what came of it, for each server
    """

    def __init__(self, peers: Iterable[AllowedPeer], domains: Sequence[tuple[str, str, int]], note: Any = None) -> None:
        self.note = note
        self.domains = domains
        self.tallies = [PeerResult(self, peer) for peer in peers]
        self.open = len(self.tallies)
        self.began = 0.0
        # By zone: the query without its id, shorter ones first; what a plain reply has in the place of question and
        # owner; the serial; the number among the domains.  No object for each: a collector would have to look at it.
        self.queries: list[bytes] = []
        self.tails: list[bytes] = []
        self.wanted: list[bytes] = []
        self.numbers: list[int] = []

    def prepare(self) -> None:
        """Make the queries."""
        queries: list[bytes] = []
        for number, (_, name, _) in enumerate(self.domains):
            try:
                queries.append(soa_query.soa_query(wire.encode(name)))
            except ValueError:
                continue
            self.numbers.append(number)
        lengths = list(map(len, queries))
        order = sorted(range(len(queries)), key=lengths.__getitem__)  # what has one length can be sent in one go
        self.queries = [queries[each] for each in order]
        self.numbers = [self.numbers[each] for each in order]
        self.tails = [query[10:] + _SOA for query in self.queries]
        self.wanted = [self.domains[number][2].to_bytes(4, 'big') for number in self.numbers]
        for tally in self.tallies:
            tally.left = len(self.queries)

    def end_of_length(self, start: int, stop: int) -> int:
        """Where the queries end, before *stop*, that are as long as that at *start*."""
        length = len(self.queries[start])
        if len(self.queries[stop - 1]) == length:
            return stop
        return bisect.bisect_right(self.queries, length, start, stop, key=len)


class PeerResult:
    """What one server says to a page.

    :ivar answered: how many zones it answered for, whatever it said; *unanswered*, for how many it did not, all tries
        together
    :ivar findings: (number of the zone among the page's domains, what was said of it) where that is not the wanted
        serial or a newer one
    :ivar first: the server's number for the question for the first zone; the others follow
    :ivar next: the first zone that it has not been asked for
    :ivar left: zones that are not over
    """

    __slots__ = ('page', 'peer', 'answered', 'unanswered', 'findings', 'first', 'next', 'left')

    def __init__(self, page: SweepPage, peer: AllowedPeer) -> None:
        self.page = page
        self.peer = peer
        self.answered = self.unanswered = self.first = self.next = self.left = 0
        self.findings: list[tuple[int, SoaReply]] = []
