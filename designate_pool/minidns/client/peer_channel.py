"""The queries to one server (address and port): waiting, in flight, or over TCP."""

from __future__ import annotations

import collections
import os
import struct
import time
from typing import Any

from designate_pool.minidns.client.query import FIRST_RESEND, RetryingQuery
from designate_pool.minidns.client.sockets import TcpQuery
from designate_pool.protocol import soa_query, tsig

#: More than this overflow a server's default receive buffer.
MAX_SIZE = 128
#: TCP connections to one server at a time; servers allow few in all.
MAX_TCP_QUERIES = 8
_IDS = struct.Struct('2s' * 2048)


class CongestionWindow:
    """How many queries to one server may be in flight: additive increase, multiplicative decrease.

    The window grows by one for each window of replies.  It halves when a datagram was lost or its reply truncated,
    which response rate limiting and a full receive buffer both cause.  Losses of what was sent before the last halving
    belong to the same congestion and do not halve it again.  A server that answers nothing at all halves it only once:
    asking it less would not help, and the queries to it have to end in their time.

    :ivar size: queries that may be in flight, 1 to *max_size*
    """

    __slots__ = ('size', '_max_size', '_width', '_answered_since_halved', '_halved_at')

    def __init__(self, max_size: int = MAX_SIZE) -> None:
        self.size = max_size
        self._max_size = max_size
        self._width = float(max_size)
        self._answered_since_halved = True
        self._halved_at = float('-inf')

    def answered(self) -> None:
        """A query got a complete reply; the call may be left out while *size* is at its maximum."""
        self._answered_since_halved = True
        if self.size < self._max_size:
            self._width = min(self._max_size, self._width + 1 / self._width)
            self.size = int(self._width)

    def truncated(self, sent_at: float, now: float) -> None:
        """The reply was truncated.

        :param sent_at: seconds of the same clock as *now*
        """
        self._answered_since_halved = True
        self.lost(sent_at, now)

    def lost(self, sent_at: float, now: float) -> None:
        """The query sent at *sent_at* got no reply in time."""
        if self._answered_since_halved and sent_at >= self._halved_at:
            self._answered_since_halved, self._halved_at = False, now
            self._width = max(1.0, self._width / 2)
            self.size = int(self._width)


class PeerChannel:
    """The queries to one server.

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
