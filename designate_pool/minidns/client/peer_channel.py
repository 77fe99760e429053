"""The queries to one server (address and port): waiting, in flight, or over TCP."""

from __future__ import annotations

import collections
import os
import struct
import time
from typing import Any

from designate_pool.minidns.client import udp_gso
from designate_pool.minidns.client.congestion_window import CongestionWindow
from designate_pool.minidns.client.query import FIRST_RESEND, RetryingQuery
from designate_pool.minidns.client.tcp_query import TcpQuery
from designate_pool.protocol import tsig

#: TCP connections to one server at a time; servers allow few in all.
MAX_TCP_QUERIES = 8
_IDS = struct.Struct('!2048H')


class PeerChannel:
    """
    :ivar sock: the UDP socket of the address's family; *gso* sends batches on it
    :ivar pending: queries that may still get a reply, by message id
    :ivar queue: queries that wait to be sent
    :ivar recent: datagrams of the last second: (time sent, query, its ``datagrams_sent`` then)
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
        self.pending: dict[int, RetryingQuery] = {}
        self.queue: collections.deque[RetryingQuery] = collections.deque()
        self.recent: collections.deque[tuple[float, RetryingQuery, int]] = collections.deque()
        self.in_flight = 0
        self.tcp_queue: collections.deque[RetryingQuery] = collections.deque()
        self.tcp_queries: dict[RetryingQuery, TcpQuery] = {}
        self.wake_at: float | None = None
        self._ids: list[int] = []

    def take_batch(self) -> list[RetryingQuery]:
        """Take the next queries from the queue and make their messages: as many as the window and one call allow."""
        limit = min(self.window.size - self.in_flight, udp_gso.MAX_SEGMENTS) if self.gso.can_segment else 1
        batch: list[RetryingQuery] = []
        length = 0
        while self.queue and len(batch) < limit:
            query = self.queue[0]
            if query.ended or not query.in_try:  # a late reply has ended the try
                query.queued = False
            else:
                message = query.message or self._compose(query)
                if batch and len(message) != length:
                    break
                length = len(message)
                batch.append(query)
            self.queue.popleft()
        return batch

    def requeue(self, queries: list[RetryingQuery]) -> None:
        """Put *queries* back at the head of the queue."""
        self.queue.extendleft(reversed(queries))

    def is_pending(self, quoted: bytes) -> bool:
        """Whether *quoted* begins with a pending query, the same in id and in the case of the name's letters."""
        query = self.pending.get(int.from_bytes(quoted[:2], 'big'))
        if query is None or query.message is None:
            return False
        length = 2 + len(query.sent_template)
        return quoted[:length] == query.message[:length]

    def _compose(self, query: RetryingQuery) -> bytes:
        """Make the message of a new try."""
        message_id = self._unused_id()
        query.sent_template = query.compose()
        message = message_id.to_bytes(2, 'big') + query.sent_template
        if query.peer.key is not None:
            signer = tsig.Signer(query.peer.key)
            message = signer.sign(message, int(time.time()))
            query.mac = signer.mac
        query.id, query.message = message_id, message
        self.pending[message_id] = query
        return message

    def _unused_id(self) -> int:
        """A random message id that no pending query has."""
        while True:
            if not self._ids:
                self._ids = list(_IDS.unpack(os.urandom(_IDS.size)))
            message_id = self._ids.pop()
            if message_id not in self.pending:
                return message_id

    def leave_flight(self, query: RetryingQuery) -> None:
        """Count *query* as in flight no longer."""
        if query.is_in_flight:
            query.is_in_flight = False
            self.in_flight -= 1

    def expire_lost(self, now: float) -> None:
        """Count as lost what was sent a second ago and got no reply: it is no longer in the server's buffer."""
        recent = self.recent
        while recent:
            sent_at, query, count = recent[0]
            if query.is_in_flight and query.datagrams_sent == count:
                if sent_at + FIRST_RESEND > now:
                    return
                self.leave_flight(query)
                self.window.lost(sent_at, now)
            recent.popleft()
