"""The I/O loop of all queries that MiniDNS sends: a UDP socket for each server that has to reply, and timers.

It has an operating system thread for itself, so that a reply is read at once, however busy the other threads are.  All
of a query happens in this loop; nothing in it logs, counts or takes a lock.  Results are posted, and handled in batches
in the runtime's threads.

At most :data:`MAX_IN_FLIGHT` of a server's queries are in flight (sent in the last second, no reply yet); more wait in
the queue.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import heapq
import itertools
import logging
import math
import os
import socket
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from designate_pool.concurrency import LoopTask, NativeThread, Runtime
from designate_pool.errors import BackendError, BackendUnreachable
from designate_pool.minidns.client.query import FIRST_RESEND, NextStep, RetryingQuery, Step
from designate_pool.minidns.client.sockets import MAX_DATAGRAM, NativeSelector, error_text, udp_socket
from designate_pool.model import Answer, Reason
from designate_pool.protocol import soa_exchange, soa_query, tsig, wire
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.protocol.tcp_client import TcpPeer

LOG = logging.getLogger(__name__)

#: More than this overflow a server's default receive buffer.
MAX_IN_FLIGHT = 128
#: TCP connections to one server at a time; servers allow few in all.
MAX_TCP_QUERIES = 8
#: Datagrams that are read in one turn of the loop.
_MOST_RECEIVED = 4096
_FULL_BUFFER_PAUSE = 0.001
#: Seconds for which results wait for replies that are due.
MOST_HELD = 0.002
#: Linux's socket options for errors of a host and its network, not only of its port (ip(7), ipv6(7)).
_HOST_ERRORS = {socket.AF_INET: (socket.IPPROTO_IP, 11), socket.AF_INET6: (socket.IPPROTO_IPV6, 25)}

T = TypeVar('T')


@dataclasses.dataclass(eq=False)
class PeerChannel:
    """The queries to one server (address and port): waiting, in flight, or over TCP.

    :ivar sock: a UDP socket that is connected to the server, so that it gets no others' datagrams, and is told of a
        closed port or a host that cannot be reached; None while no query is pending
    :ivar pending: queries that may still get a reply, by message id
    :ivar queue: queries that wait to be sent
    :ivar in_flight: when datagrams were sent in the last second, without as many of the oldest as datagrams came back
    :ivar tcp_queue: queries that wait to be asked over TCP
    :ivar tcp_count: how many are being asked
    """

    address: tuple[str, int]
    sock: Any = None
    pending: dict[bytes, RetryingQuery] = dataclasses.field(default_factory=dict)
    queue: collections.deque[RetryingQuery] = dataclasses.field(default_factory=collections.deque)
    in_flight: collections.deque[float] = dataclasses.field(default_factory=collections.deque)
    tcp_queue: collections.deque[RetryingQuery] = dataclasses.field(default_factory=collections.deque)
    tcp_count: int = 0
    wake_at: float | None = None


class ClientLoop:
    """Sends queries and hands them their replies; *sources*: the address to send from, by family, or else any."""

    def __init__(self, sources: dict[int, str] | None = None, most_held: float = MOST_HELD) -> None:
        self._most_held = most_held
        self._source_addresses = sources or {}
        self._work: collections.deque[tuple[Callable[..., None], tuple[Any, ...]]] = collections.deque()
        self._posts: list[tuple[Callable[[list[Any]], None], Any]] = []
        self._first_posted = 0.0
        self._channels: dict[tuple[str, int], PeerChannel] = {}
        self._ready: dict[PeerChannel, None] = {}
        self._timers: list[tuple[float, int, RetryingQuery | PeerChannel]] = []
        self._order = itertools.count()
        self._now = time.monotonic()
        self._stopping = False
        self._open_channels: dict[int, PeerChannel] = {}
        self._selector: NativeSelector | None = None
        self._native: NativeThread | None = None
        self._runtime: Runtime | None = None
        self._task: LoopTask | None = None

    def start(self, runtime: Runtime) -> None:
        """Run the loop in a native thread."""
        self._runtime = runtime
        self._native = runtime.native('minidns-client', _dispatch_posts)
        self._selector = NativeSelector(self._native)
        self._task = self._native.spawn(self._run)

    def stop(self) -> None:
        """End the loop.  Submitted work is started and results are posted; queries in flight are not completed."""
        self._stopping = True
        if self._selector is not None:
            self._selector.wake()
        if self._task is not None:
            self._task.join(10)
        self._run_once([])
        if self._native is not None:
            if self._posts:
                self._native.post(*self._posts)
            self._native.stop()
        if self._selector is not None:
            self._selector.close()
        for channel in self._open_channels.values():
            channel.sock.close()

    def submit(self, work: Callable[..., None], *arguments: Any) -> None:
        """Have *work* done in the loop at once; from any thread."""
        self._work.append((work, arguments))
        if self._selector is not None:
            self._selector.wake()

    # What follows is called in the loop alone.

    def start_query(self, query: RetryingQuery, at: float | None = None) -> None:
        """Start a query; *at* is when its first try begins, None for now."""
        if query.peer.addresses:
            address = query.peer.addresses[0], query.peer.port
            query.channel = self._channels.setdefault(address, PeerChannel(address))
        self._apply(query, query.on_timer(self._now) if at is None else at)

    def run_timer_now(self, query: RetryingQuery) -> None:
        """Fire the timer of *query* now."""
        query.wake_at = None
        self._apply(query, query.on_timer(self._now))

    def cancel(self, query: RetryingQuery) -> None:
        """End a query without a result."""
        self._apply(query, NextStep.END)

    def post(self, handle: Callable[[list[T]], None], item: T) -> None:
        """Have *handle* called in the runtime's threads, with *item* and what else is posted for it until then.

        It waits a moment for a server that was sent a query a moment ago: two servers that have fetched a zone at the
        same time are one message and one transaction of the pool manager.
        """
        if not self._posts:
            self._first_posted = self._now
        self._posts.append((handle, item))

    def _run(self) -> None:
        """Dispatch what was posted, unless a reply is due in a moment; wait, and do what is due."""
        assert self._selector is not None and self._native is not None
        while not self._stopping:
            while self._timers and self._timers[0][2].wake_at != self._timers[0][0]:
                heapq.heappop(self._timers)
            wake_at = self._timers[0][0] if self._timers else math.inf
            if self._posts:
                dispatch_at, lately = self._first_posted + self._most_held, self._now - self._most_held
                if self._now < dispatch_at and (wake_at < dispatch_at or any(
                        channel.in_flight and channel.in_flight[-1] > lately for channel in self._channels.values())):
                    wake_at = min(wake_at, dispatch_at)
                else:
                    posts, self._posts = self._posts, []
                    self._native.post(*posts)
            if self._ready or self._work:  # an error has ended the last turn
                wake_at = 0.0
            ready = self._selector.wait(None if wake_at == math.inf else max(0.0, wake_at - time.monotonic()))
            self._now = time.monotonic()
            try:
                self._run_once(ready)
            except Exception:  # an error in one query must not stop the others
                self.post(_log_errors, traceback.format_exc())

    def _run_once(self, ready: list[int]) -> None:
        for number in ready:
            if number in self._open_channels:
                self._receive(self._open_channels[number])
        for _ in range(len(self._work)):
            work, arguments = self._work.popleft()
            work(*arguments)
        for _ in range(len(self._timers)):  # timers that are set to now do not keep the sockets waiting
            if self._timers[0][0] > self._now:
                break
            at, _, timer = heapq.heappop(self._timers)
            if timer.wake_at != at:
                continue  # the timer has been set to another time since
            timer.wake_at = None
            if isinstance(timer, PeerChannel):
                self._ready[timer] = None
            else:
                self._apply(timer, timer.on_timer(self._now))
        while self._ready:
            channel, _ = self._ready.popitem()
            self._send_queued(channel)

    def _apply(self, query: RetryingQuery, step: Step) -> None:
        if query.ended:
            return
        channel = query.channel
        if step is NextStep.SEND:
            if channel is None:
                self._apply(query, query.on_failure(query.peer.trouble or 'the server has no address', self._now))
            elif not query.queued:
                query.queued = True
                channel.queue.append(query)
                self._ready[channel] = None
        elif step is NextStep.TCP:
            assert channel is not None and query.try_deadline is not None
            self._set_timer(query, query.try_deadline)
            if not query.over_tcp:
                query.over_tcp = True
                channel.tcp_queue.append(query)
                self._ready[channel] = None
        else:
            query.ended = not isinstance(step, float)
            if query.ended or not query.in_try:  # free the id of the try; replies that come later are ignored
                if channel is not None:
                    if query.message is not None:
                        del channel.pending[query.id]
                    self._ready[channel] = None
                query.message, query.over_tcp = None, False
            if isinstance(step, float):
                self._set_timer(query, step)
            else:
                query.wake_at = None

    def _set_timer(self, timer: RetryingQuery | PeerChannel, at: float) -> None:
        if timer.wake_at != at:
            timer.wake_at = at
            heapq.heappush(self._timers, (at, next(self._order), timer))

    def _send_queued(self, channel: PeerChannel) -> None:
        while channel.tcp_queue and channel.tcp_count < MAX_TCP_QUERIES:
            query = channel.tcp_queue.popleft()
            if query.over_tcp and query.try_deadline is not None:  # otherwise the try has ended while it waited
                channel.tcp_count += 1
                self.post(self._start_over_tcp, (query, query.tries, query.try_deadline - self._now))
        while channel.in_flight and channel.in_flight[0] + FIRST_RESEND <= self._now:
            channel.in_flight.popleft()  # lost: it is no longer in the server's buffer
        while channel.queue and len(channel.in_flight) < MAX_IN_FLIGHT:
            query = channel.queue.popleft()
            query.queued = False
            if query.ended or not query.in_try:
                continue  # a late reply has ended the try
            if not self._send(channel, query):
                query.queued = True
                channel.queue.appendleft(query)
                self._set_timer(channel, self._now + _FULL_BUFFER_PAUSE)
                return
        if channel.queue:
            self._set_timer(channel, channel.in_flight[0] + FIRST_RESEND)
        elif not channel.pending:
            self._close(channel)

    def _send(self, channel: PeerChannel, query: RetryingQuery) -> bool:
        """Send the datagram, with a random id that no pending query has; False when the socket has no room."""
        if query.message is None:
            query.template = query.sent_template = soa_query.soa_query(wire.encode(query.name), query.opcode)
            if query.opcode == wire.QUERY:
                query.sent_template = soa_query.with_random_case(query.template)
            while (message_id := os.urandom(2)) in channel.pending:
                pass
            query.id, query.message = message_id, message_id + query.sent_template
            if query.peer.key is not None:
                signer = tsig.Signer(query.peer.key)
                query.message, query.mac = signer.sign(query.message, int(time.time())), signer.mac
            channel.pending[message_id] = query
        try:
            if channel.sock is None:
                self._open(channel)
            channel.sock.send(query.message)
        except BlockingIOError:
            return False
        except OSError as error:
            self._end_tries(channel, error)
            return True
        self._set_timer(query, query.on_sent(self._now))
        channel.in_flight.append(self._now)
        return True

    def _open(self, channel: PeerChannel) -> None:
        assert self._selector is not None and self._native is not None
        family = socket.AF_INET6 if ':' in channel.address[0] else socket.AF_INET
        sock = udp_socket(family, self._source_addresses.get(family), sockets=self._native.socket)
        try:
            with contextlib.suppress(OSError):  # not every system has it
                sock.setsockopt(*_HOST_ERRORS[family], 1)
            sock.connect(channel.address)
        except OSError:
            sock.close()
            raise
        channel.sock = sock
        self._open_channels[sock.fileno()] = channel
        self._selector.watch(sock.fileno())

    def _close(self, channel: PeerChannel) -> None:
        channel.in_flight.clear()
        if channel.sock is not None:
            assert self._selector is not None
            del self._open_channels[channel.sock.fileno()]
            self._selector.unwatch(channel.sock.fileno())
            channel.sock.close()
            channel.sock = None

    def _receive(self, channel: PeerChannel) -> None:
        """Read the replies that have come, as many as others need not wait for."""
        unix_time = int(time.time())
        for _ in range(_MOST_RECEIVED):
            try:
                message = channel.sock.recv(MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError as error:
                self._end_tries(channel, error)
                return
            if channel.in_flight:
                channel.in_flight.popleft()
            if channel.queue:
                self._ready[channel] = None
            query = channel.pending.get(message[:2])
            reply = None if query is None else soa_query.read_reply(
                message, query.template, query.peer.key, query.mac, unix_time,
                None if query.opcode == wire.NOTIFY else query.sent_template)
            if query is not None and reply is not None:
                self._apply(query, query.on_reply(reply, self._now))

    def _end_tries(self, channel: PeerChannel, error: OSError) -> None:
        """The server cannot be reached: a host sends few ICMP errors a second, so one ends all tries."""
        for query in list(channel.pending.values()):
            self._apply(query, query.on_failure(error_text(error.errno), self._now))
        self._close(channel)  # the socket queues such errors, and could be read for ever

    def _end_over_tcp(self, query: RetryingQuery, tries: int, reply: SoaReply) -> None:
        channel = query.channel
        channel.tcp_count -= 1
        self._ready[channel] = None
        if query.over_tcp and query.tries == tries:  # otherwise its time was over
            self._apply(query, query.on_failure(reply.error, self._now, reply.reason or Reason.UNREACHABLE)
                        if reply.answer is Answer.TIMEOUT else query.on_reply(reply, self._now))

    # What follows is called in the runtime's threads.

    def _start_over_tcp(self, queries: list[tuple[RetryingQuery, int, float]]) -> None:
        assert self._runtime is not None
        for query, tries, seconds in queries:
            try:
                self._runtime.spawn(self._ask_over_tcp, query, tries, seconds, name='minidns-over-tcp')
            except RuntimeError as error:  # no thread can be started just now
                self.submit(self._end_over_tcp, query, tries, SoaReply(
                    Answer.BAD, error=f'over TCP: {error}', reason=Reason.OTHER))

    def _ask_over_tcp(self, query: RetryingQuery, tries: int, seconds: float) -> None:
        peer = TcpPeer(query.peer.addresses[0], query.peer.port, query.peer.key)
        reply = SoaReply(Answer.BAD, error='over TCP: it failed', reason=Reason.OTHER)
        try:
            reply = soa_exchange.reply_over_tcp(peer, query.name, seconds)
        except BackendError as error:
            kind = Answer.TIMEOUT if isinstance(error, BackendUnreachable) else Answer.BAD
            why = query.no_answer if error.reason is Reason.TIMEOUT else f'over TCP: {error}'
            reply = SoaReply(kind, error=why, reason=error.reason)
        except Exception:  # whatever it was, the place is free again
            LOG.exception('%s could not be asked for %s over TCP', query.peer.label, query.name)
        self.submit(self._end_over_tcp, query, tries, reply)


def _dispatch_posts(posts: list[tuple[Callable[[list[Any]], None], Any]]) -> None:
    """Call each handler once, with all that was posted for it, so that it can make one message of it."""
    by_handle: dict[Callable[[list[Any]], None], list[Any]] = {}
    for handle, item in posts:
        by_handle.setdefault(handle, []).append(item)
    for handle, items in by_handle.items():
        handle(items)


def _log_errors(errors: list[str]) -> None:
    for error in errors:
        LOG.error('the client loop failed on a query: %s', error)
