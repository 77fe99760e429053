"""The queries to one server (address and port): waiting, in flight, or over TCP."""

from __future__ import annotations

import collections
import time
from typing import Any

from designate_pool.minidns.client import udp_gso
from designate_pool.minidns.client.congestion_window import CongestionWindow
from designate_pool.minidns.client.message_ids import MessageIds
from designate_pool.minidns.client.query import FIRST_RESEND, RetryingQuery
from designate_pool.minidns.client.tcp_query import TcpQuery
from designate_pool.protocol import soa_query, tsig

#: TCP connections to one server at a time; servers allow few in all.
MAX_TCP_QUERIES = 8


class PeerChannel:
    """
    :ivar sock: the UDP socket of the address's family; *gso* sends batches on it
    :ivar pending: queries that may still get a reply, by message id
    :ivar queue: queries that wait to be sent
    :ivar recent: what was sent in the last second, together each time: (time sent, queries, of which those sent first
        stay longest)
    :ivar in_flight: how many queries were sent in the last second and have no reply yet
    :ivar tcp_queue: queries that wait for a connection
    :ivar tcp_queries: queries that have one
    """

    __slots__ = ('sock', 'address', 'gso', 'window', 'pending', 'queue', 'recent', 'in_flight', 'tcp_queue',
                 'tcp_queries', 'wake_at', '_ids')

    def __init__(self, sock: Any, address: tuple[str, int]) -> None:
        self.sock = sock
        self.address = address
        self.gso = udp_gso.UdpGso(sock, address)
        self.window = CongestionWindow()
        self.pending: dict[bytes, RetryingQuery] = {}
        self.queue: collections.deque[RetryingQuery] = collections.deque()
        self.recent: collections.deque[tuple[float, list[RetryingQuery]]] = collections.deque()
        self.in_flight = 0
        self.tcp_queue: collections.deque[RetryingQuery] = collections.deque()
        self.tcp_queries: dict[RetryingQuery, TcpQuery] = {}
        self.wake_at: float | None = None
        self._ids = MessageIds()

    def take_batch(self) -> list[RetryingQuery]:
        """Take the next queries from the queue and make their messages: as many as the window and one call allow."""
        limit = min(self.window.size - self.in_flight, udp_gso.MAX_SEGMENTS) if self.gso.can_segment else 1
        batch: list[RetryingQuery] = []
        length, key = 0, None
        while self.queue and len(batch) < limit:
            query = self.queue[0]
            if query.ended or not query.in_try:  # a late reply has ended the try
                query.queued = False
            elif not batch or len(query.template) == length and query.peer.key is key:
                length, key = len(query.template), query.peer.key
                batch.append(query)
            else:
                break
            self.queue.popleft()
        new = [query for query in batch if query.message is None]
        if new:
            self._compose(new)
        return batch

    def requeue(self, queries: list[RetryingQuery]) -> None:
        """Put *queries* back at the head of the queue."""
        self.queue.extendleft(reversed(queries))

    def is_pending(self, quoted: bytes) -> bool:
        """Whether *quoted* begins with a pending query, the same in id and in the case of the name's letters."""
        query = self.pending.get(quoted[:2])
        if query is None or query.message is None:
            return False
        length = 2 + len(query.sent_template)
        return quoted[:length] == query.message[:length]

    def _compose(self, queries: list[RetryingQuery]) -> None:
        """Make the messages of new tries, all of one length."""
        cased = soa_query.with_random_case([query.template for query in queries])
        for query, message_id, template in zip(queries, self._ids.take(len(queries), self.pending), cased):
            if query.random_case:
                query.sent_template = template
            message = message_id + query.sent_template
            if query.peer.key is not None:
                signer = tsig.Signer(query.peer.key)
                message = signer.sign(message, int(time.time()))
                query.mac = signer.mac
            query.id, query.message = message_id, message
            self.pending[message_id] = query

    def mark_sent(self, queries: list[RetryingQuery], now: float) -> None:
        """The datagrams of *queries*, a list that is only kept here, have been sent."""
        for query in queries:
            query.queued = False
            query.datagrams_sent += 1
            query.sent_at = now
            if not query.is_in_flight:
                query.is_in_flight = True
                self.in_flight += 1
        self.recent.append((now, queries))

    def leave_flight(self, query: RetryingQuery) -> None:
        """Count *query* as in flight no longer."""
        if query.is_in_flight:
            query.is_in_flight = False
            self.in_flight -= 1

    def expire_lost(self, now: float) -> None:
        """Count as lost what was sent a second ago and got no reply: it is no longer in the server's buffer."""
        while self.recent:
            sent_at, queries = self.recent[0]
            while queries:
                query = queries[-1]
                if query.is_in_flight and query.sent_at == sent_at:
                    if sent_at + FIRST_RESEND > now:
                        return
                    self.leave_flight(query)
                    self.window.lost(sent_at, now)
                queries.pop()
            self.recent.popleft()
