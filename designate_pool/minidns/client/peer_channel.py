"""The queries to one server (address and port): waiting, in flight, or over TCP."""

from __future__ import annotations

import collections
import os
import struct
import time
from typing import Any

from designate_pool.minidns.client.congestion_window import CongestionWindow
from designate_pool.minidns.client.query import FIRST_RESEND, RetryingQuery
from designate_pool.minidns.client.sockets import TcpQuery
from designate_pool.protocol import soa_query, tsig

#: TCP connections to one server at a time; servers allow few in all.
MAX_TCP_QUERIES = 8
_IDS = struct.Struct('2s' * 2048)


class PeerChannel:
    """
    :ivar sock: the UDP socket of the address's family
    :ivar pending: queries that may still get a reply, by message id
    :ivar queue: queries that wait to be sent
    :ivar recent: what was sent in the last second: (time sent, query)
    :ivar in_flight: how many queries were sent in the last second and have no reply yet
    :ivar tcp_queue: queries that wait for a connection
    :ivar tcp_queries: queries that have one
    """

    __slots__ = ('sock', 'address', 'window', 'pending', 'queue', 'recent', 'in_flight', 'tcp_queue',
                 'tcp_queries', 'wake_at', '_ids')

    def __init__(self, sock: Any, address: tuple[str, int]) -> None:
        self.sock = sock
        self.address = address
        self.window = CongestionWindow()
        self.pending: dict[bytes, RetryingQuery] = {}
        self.queue: collections.deque[RetryingQuery] = collections.deque()
        self.recent: collections.deque[tuple[float, RetryingQuery]] = collections.deque()
        self.in_flight = 0
        self.tcp_queue: collections.deque[RetryingQuery] = collections.deque()
        self.tcp_queries: dict[RetryingQuery, TcpQuery] = {}
        self.wake_at: float | None = None
        self._ids: list[bytes] = []

    def next_query(self) -> RetryingQuery | None:
        """Take the next query from the queue, and make its message where it has none yet; None if there is none."""
        while self.queue:
            query = self.queue.popleft()
            if not query.ended and query.in_try:
                if query.message is None:
                    self._compose(query)
                return query
            query.queued = False  # a late reply has ended the try
        return None

    def is_pending(self, quoted: bytes) -> bool:
        """Whether *quoted* begins with a pending query, the same in id and in the case of the name's letters."""
        query = self.pending.get(quoted[:2])
        if query is None or query.message is None:
            return False
        length = 2 + len(query.sent_template)
        return quoted[:length] == query.message[:length]

    def _compose(self, query: RetryingQuery) -> None:
        """Make the message of a new try."""
        if query.random_case:
            query.sent_template = soa_query.with_random_case(query.template)
        query.id = self._free_id()
        message = query.id + query.sent_template
        if query.peer.key is not None:
            signer = tsig.Signer(query.peer.key)
            message = signer.sign(message, int(time.time()))
            query.mac = signer.mac
        query.message = message
        self.pending[query.id] = query

    def _free_id(self) -> bytes:
        """A random message id that no pending query has."""
        while True:
            if not self._ids:
                self._ids += _IDS.unpack(os.urandom(_IDS.size))
            message_id = self._ids.pop()
            if message_id not in self.pending:
                return message_id

    def mark_sent(self, query: RetryingQuery, now: float) -> None:
        """The datagram of *query* has been sent."""
        query.queued = False
        query.datagrams_sent += 1
        query.sent_at = now
        if not query.is_in_flight:
            query.is_in_flight = True
            self.in_flight += 1
        self.recent.append((now, query))

    def leave_flight(self, query: RetryingQuery) -> None:
        """Count *query* as in flight no longer."""
        if query.is_in_flight:
            query.is_in_flight = False
            self.in_flight -= 1

    def expire_lost(self, now: float) -> None:
        """Count as lost what was sent a second ago and got no reply: it is no longer in the server's buffer."""
        while self.recent:
            sent_at, query = self.recent[0]
            if query.is_in_flight and query.sent_at == sent_at:
                if sent_at + FIRST_RESEND > now:
                    return
                self.leave_flight(query)
                self.window.lost(sent_at, now)
            self.recent.popleft()
