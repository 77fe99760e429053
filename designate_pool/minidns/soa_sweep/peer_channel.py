"""The queries of a SOA sweep to one server."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.client.congestion_window import CongestionWindow
from designate_pool.minidns.client.message_ids import MessageIds
from designate_pool.minidns.soa_sweep.page import PeerResult

#: Messages that were sent together: (time, message ids, numbers of the queries).
SentBatch = tuple[float, list[bytes], range]


class SweepChannel:
    """
    Queries to the server have numbers that are never reused.

    :param tries: how many times a query is sent
    :ivar gso: sends batches on *sock*; None without a socket
    :ivar pending: the numbers of queries that may still get a reply, by message id
    :ivar signed: by message id, the signed message and its MAC; empty when the server has no key
    :ivar sent: for each try, the batches that were sent, oldest first
    :ivar retries: (message id, number of the query, next try) of queries to send again
    :ivar late: message ids of queries that timed out and are not counted in *in_flight*
    :ivar results: pages with queries that have not been sent
    :ivar in_progress: pages that have not ended
    :ivar in_flight: how many of *pending* may be in the server's buffer
    :ivar reply_count: replies since the start
    """

    __slots__ = ('peer', 'sock', 'gso', 'window', 'pending', 'signed', 'sent', 'retries', 'late', 'results',
                 'in_progress', 'in_flight', 'reply_count', 'last_reply_at', 'silent', 'ids', '_tries', '_query_count')

    def __init__(self, peer: AllowedPeer, tries: int) -> None:
        self.peer = peer
        self._tries = tries
        self.sock: Any = None
        self.gso: Any = None
        self.window = CongestionWindow()
        self.silent = False
        self.reply_count = 0
        self.last_reply_at = 0.0
        self.ids = MessageIds()
        self._query_count = 0
        self.clear()

    def clear(self) -> None:
        self.pending: dict[bytes, int] = {}
        self.signed: dict[bytes, tuple[bytes, bytes]] = {}
        self.sent: tuple[collections.deque[SentBatch], ...] = tuple(collections.deque() for _ in range(self._tries))
        self.retries: collections.deque[tuple[bytes, int, int]] = collections.deque()
        self.late: set[bytes] = set()
        self.results: collections.deque[PeerResult] = collections.deque()
        self.in_progress: list[PeerResult] = []
        self.in_flight = 0

    @property
    def room(self) -> int:
        return (1 if self.silent else self.window.size) - self.in_flight

    def add(self, result: PeerResult) -> None:
        """Queue the queries of *result*."""
        result.first = self._query_count
        self._query_count += len(result.page.queries)
        self.in_progress = [each for each in self.in_progress if each.left]
        self.in_progress.append(result)
        self.results.append(result)

    def result_of(self, query_number: int) -> PeerResult:
        """The result that the pending query with this number belongs to."""
        return next(each for each in self.in_progress
                    if each.first <= query_number < each.first + len(each.page.queries))

    def mark_sent(self, now: float, keys: list[bytes], query_numbers: range,
                  signed: Sequence[tuple[bytes, bytes]]) -> None:
        """The first try of these queries has been sent.

        :param signed: at least as many (message, MAC), where the server has a key; otherwise empty
        """
        self.pending.update(zip(keys, query_numbers))
        self.signed.update(zip(keys, signed))
        self.in_flight += len(keys)
        self.sent[0].append((now, keys, query_numbers))
