"""A page of a SOA sweep: many zones queried from some servers, with the result of each server."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from typing import Any

from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.protocol import soa_query, wire
from designate_pool.protocol.soa_query import SoaReply


class SweepPage:
    """Zones whose serials are queried from servers.

    :param domains: (id, name, expected serial); one with an invalid name is skipped
    :param note: the caller's data about the page
    :ivar results: one for each server
    :ivar open: how many of them have not ended
    :ivar started: monotonic seconds
    """

    def __init__(self, peers: Iterable[AllowedPeer], domains: Sequence[tuple[str, str, int]], note: Any = None) -> None:
        self.note = note
        self.domains = domains
        self.results = [PeerResult(self, peer) for peer in peers]
        self.open = len(self.results)
        self.started = 0.0
        # By zone: the query without its id, shorter ones first; the question and owner of the expected reply; the
        # expected serial; the index in *domains*.  Lists, not an object for each, to spare the garbage collector.
        self.queries: list[bytes] = []
        self.tails: list[bytes] = []
        self.expected_serials: list[bytes] = []
        self.domain_indexes: list[int] = []

    def prepare(self) -> None:
        """Make the queries."""
        queries: list[bytes] = []
        for domain_index, (_, name, _) in enumerate(self.domains):
            try:
                queries.append(soa_query.soa_query(wire.encode(name)))
            except ValueError:
                continue
            self.domain_indexes.append(domain_index)
        lengths = list(map(len, queries))
        order = sorted(range(len(queries)), key=lengths.__getitem__)  # messages of one length can be sent in one call
        self.queries = [queries[each] for each in order]
        self.domain_indexes = [self.domain_indexes[each] for each in order]
        self.tails = [query[10:] + soa_query.RECORD_START for query in self.queries]
        self.expected_serials = [self.domains[each][2].to_bytes(4, 'big') for each in self.domain_indexes]
        for result in self.results:
            result.left = len(self.queries)

    def end_of_length(self, start: int, stop: int) -> int:
        """The end, at most *stop*, of the queries that are as long as that at *start*."""
        length = len(self.queries[start])
        if len(self.queries[stop - 1]) == length:
            return stop
        return bisect.bisect_right(self.queries, length, start, stop, key=len)


class PeerResult:
    """The result of a page for one server.

    :ivar answered: how many zones got a reply, of any kind
    :ivar unanswered: how many zones got none in all tries
    :ivar findings: (index of the zone in the page's domains, reply) where that is not the expected serial
    :ivar first: the server's number for the first query of the page; the others follow
    :ivar next: index of the first query that has not been sent
    :ivar left: queries that have not ended
    """

    __slots__ = ('page', 'peer', 'answered', 'unanswered', 'findings', 'first', 'next', 'left')

    def __init__(self, page: SweepPage, peer: AllowedPeer) -> None:
        self.page = page
        self.peer = peer
        self.answered = self.unanswered = self.first = self.next = self.left = 0
        self.findings: list[tuple[int, SoaReply]] = []
