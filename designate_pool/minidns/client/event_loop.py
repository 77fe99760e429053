"""The I/O loop of all queries that MiniDNS sends: one UDP socket for each address family, and timers.

It has an operating system thread for itself, so that a reply is read at once, however busy the other threads are.  All
of a query happens in this loop; nothing in it logs, counts or takes a lock.  Results are posted, and handled in batches
in the runtime's threads.

At most a :class:`~designate_pool.minidns.client.peer_channel.CongestionWindow` of a server's queries are in flight
(sent in the last second, no reply yet); more wait in the queue.
"""

from __future__ import annotations

import collections
import heapq
import itertools
import logging
import math
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from designate_pool.concurrency import LoopTask, NativeThread, Runtime
from designate_pool.minidns.client.peer_channel import MAX_TCP_QUERIES, PeerChannel
from designate_pool.minidns.client.query import FIRST_RESEND, NextStep, RetryingQuery, Step
from designate_pool.minidns.client.sockets import (Address, NativeSelector, TcpQuery, enable_icmp_errors, error_text,
                                                   icmp_errors, receive_datagrams, udp_socket)
from designate_pool.model import Reason

LOG = logging.getLogger(__name__)

_BATCH = 512
_FULL_BUFFER_PAUSE = 0.001
#: Seconds between two polls of the mailbox.
POLL_INTERVAL = 0.002

Work = Callable[[], None]
T = TypeVar('T')


class Mailbox:
    """Work that other threads hand to the client loop.

    Waking a thread costs as much as a few polls of the mailbox, and both threads then compete for the interpreter.  So
    while work comes thick and fast the loop polls the mailbox, and work that is not urgent does not wake it.

    :param wake: ends the loop's wait
    :param poll_duration: seconds that the loop goes on polling when it has found work twice within this time
    """

    def __init__(self, wake: Callable[[], None], poll_duration: float = 2 * POLL_INTERVAL) -> None:
        self._wake = wake
        self._poll_duration = poll_duration
        self._work: collections.deque[Work] = collections.deque()
        self._polling_until = 0.0
        self._taken_at = -math.inf

    def put(self, work: Work, urgent: bool) -> None:
        """Add *work*; from any thread.

        :param urgent: begin it at once; otherwise it may begin :data:`POLL_INTERVAL` later
        """
        self._work.append(work)
        if urgent or time.monotonic() >= self._polling_until:
            self._wake()

    # What follows is called in the loop alone.

    def take(self, now: float) -> Iterator[Work]:
        """The work that has come until now."""
        if self._work:
            if now - self._taken_at < self._poll_duration:
                self._polling_until = now + self._poll_duration
            self._taken_at = now
        for _ in range(len(self._work)):
            yield self._work.popleft()

    def wait_seconds(self, seconds: float | None) -> float | None:
        """Seconds that the loop may wait; None for no limit.

        :param seconds: until the loop's next timer; None when there is none
        """
        if time.monotonic() < self._polling_until:
            seconds = POLL_INTERVAL if seconds is None else min(seconds, POLL_INTERVAL)
        # Check last: a put that comes later sees the expired deadline and wakes the loop.
        return 0.0 if self._work else seconds


class ClientLoop:
    """Sends queries and hands them their replies.

    :param sources: the address to send from, by family; any address where it is missing
    :param most_held: seconds for which what was posted waits, at most, for replies that are due
    """

    def __init__(self, sources: dict[int, str] | None = None, most_held: float = POLL_INTERVAL) -> None:
        self._most_held = most_held
        self._source_addresses = sources or {}
        self._mailbox = Mailbox(self._wake)
        self._posts: list[tuple[Callable[[list[Any]], None], Any]] = []
        self._first_posted = 0.0
        self._channels: dict[tuple[str, int], PeerChannel] = {}
        self._ready: dict[PeerChannel, None] = {}
        # A heap of timers, and those set to one second ahead: these come in order and need no heap.
        self._timers: list[tuple[float, int, RetryingQuery | PeerChannel]] = []
        self._one_second_timers: collections.deque[tuple[float, RetryingQuery | PeerChannel]] = collections.deque()
        self._order = itertools.count()
        self._now = time.monotonic()
        self._stopping = False
        self._sockets: dict[int, socket.socket] = {}
        self._tcp_queries: dict[int, tuple[RetryingQuery, TcpQuery]] = {}
        self._selector: NativeSelector | None = None
        self._native: NativeThread | None = None
        self._task: LoopTask | None = None

    def start(self, runtime: Runtime) -> None:
        """Open the sockets and start the loop.

        :raises OSError: when a source address cannot be bound
        """
        self._native = runtime.native('minidns-client', _dispatch_posts)
        self._selector = NativeSelector(self._native)
        for family in (socket.AF_INET, socket.AF_INET6):
            try:
                sock = udp_socket(family, self._source_addresses.get(family), sockets=self._native.socket)
            except OSError:
                if family in self._source_addresses:
                    raise
                continue  # a host without this address family has no servers in it either
            enable_icmp_errors(sock)
            self._sockets[family] = sock
            self._selector.watch(sock.fileno())
        self._task = self._native.spawn(self._run)

    def stop(self) -> None:
        """End the loop.  Submitted work is started and results are posted; queries in flight are not completed."""
        self._stopping = True
        self._wake()
        if self._task is not None:
            self._task.join(10)
        for work in self._mailbox.take(time.monotonic()):
            work()
        if self._native is not None:
            self._flush_posts(self._native)
            self._native.stop()
        if self._selector is not None:
            self._selector.close()
        for _, tcp_query in self._tcp_queries.values():
            tcp_query.close()
        for sock in self._sockets.values():
            sock.close()

    def submit(self, work: Work, urgent: bool = True) -> None:
        """Have *work* done in the loop, at once or, if it is not urgent, within :data:`POLL_INTERVAL`; from any thread.
        """
        self._mailbox.put(work, urgent)

    def _wake(self) -> None:
        if self._selector is not None:
            self._selector.wake()

    # What follows is called in the loop alone.

    def start_query(self, query: RetryingQuery, at: float | None = None) -> None:
        """Start a query.

        :param at: when its first try begins; None for now
        """
        query.channel = self._channel_of(query)
        self._apply(query, query.begin_try(self._now) if at is None else at)

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
        assert self._selector is not None and self._native is not None
        while not self._stopping:
            ready = self._selector.wait(self._seconds_to_next_timer())
            self._now = time.monotonic()
            try:
                self._run_once(ready)
            except Exception:  # an error in one query must not stop the others
                self.post(_log_errors, traceback.format_exc())
            if self._posts and not self._is_reply_due():
                self._flush_posts(self._native)

    def _is_reply_due(self) -> bool:
        """Whether a server has yet to reply to a query of a moment ago, or will be sent one in a moment, and what was
        posted has not waited long.
        """
        lately = self._now - self._most_held
        if self._first_posted <= lately:
            return False
        if self._first_timer() < self._first_posted + self._most_held:
            return True
        return any(channel.in_flight and channel.recent[-1][0] > lately for channel in self._channels.values())

    def _flush_posts(self, native: NativeThread) -> None:
        if self._posts:
            posts, self._posts = self._posts, []
            native.post(*posts)

    def _run_once(self, ready: list[int]) -> None:
        for number in ready:
            if number in self._tcp_queries:
                self._continue_tcp(number)
        for sock in self._sockets.values():
            if sock.fileno() in ready:
                self._receive(sock)
        for work in self._mailbox.take(self._now):
            work()
        self._fire_timers()
        while self._ready:
            channel, _ = self._ready.popitem()
            self._send_queued(channel)

    def _seconds_to_next_timer(self) -> float | None:
        if self._ready:
            return 0.0
        first = self._first_timer()
        if self._posts:
            first = min(first, self._first_posted + self._most_held)
        return self._mailbox.wait_seconds(None if first == math.inf else max(0.0, first - time.monotonic()))

    def _first_timer(self) -> float:
        while self._timers and self._timers[0][2].wake_at != self._timers[0][0]:
            heapq.heappop(self._timers)
        while self._one_second_timers and self._one_second_timers[0][1].wake_at != self._one_second_timers[0][0]:
            self._one_second_timers.popleft()
        return min((times[0][0] for times in (self._timers, self._one_second_timers) if times), default=math.inf)

    def _fire_timers(self) -> None:
        now = self._now
        while self._one_second_timers and self._one_second_timers[0][0] <= now:
            self._fire_timer(*self._one_second_timers.popleft())
        started = next(self._order)  # what is set from now on has its turn when the sockets have had theirs
        while self._timers and self._timers[0][0] <= now and self._timers[0][1] < started:
            at, _, timer = heapq.heappop(self._timers)
            self._fire_timer(at, timer)

    def _fire_timer(self, at: float, timer: RetryingQuery | PeerChannel) -> None:
        if timer.wake_at != at:
            return  # the timer has been set to another time since
        timer.wake_at = None
        if isinstance(timer, PeerChannel):
            self._ready[timer] = None
        else:
            self._apply(timer, timer.on_timer(self._now))

    def _apply(self, query: RetryingQuery, step: Step) -> None:
        """Do the step that *query* has returned."""
        if query.ended:
            return
        channel = query.channel
        if step is NextStep.END:
            query.ended, query.wake_at = True, None
            self._end_current_try(query, channel)
        elif step is NextStep.SEND:
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
        elif isinstance(step, float):
            if not query.in_try:
                self._end_current_try(query, channel)
            self._set_timer(query, step)

    def _end_current_try(self, query: RetryingQuery, channel: PeerChannel | None) -> None:
        """The try has ended: free its id; replies that come later are ignored."""
        if channel is not None:
            channel.leave_flight(query)
            if query.message is not None:
                del channel.pending[query.id]
            if query in channel.tcp_queries:
                self._close_tcp(query, channel)
            if channel.queue or channel.tcp_queue:
                self._ready[channel] = None
        query.message, query.over_tcp = None, False

    def _set_timer(self, timer: RetryingQuery | PeerChannel, at: float) -> None:
        if timer.wake_at == at:
            return
        timer.wake_at = at
        if at == self._now + FIRST_RESEND:
            self._one_second_timers.append((at, timer))
        else:
            heapq.heappush(self._timers, (at, next(self._order), timer))

    def _channel_of(self, query: RetryingQuery) -> PeerChannel | None:
        peer = query.peer
        if not peer.addresses:
            return None
        address = peer.addresses[0], peer.port
        channel = self._channels.get(address)
        if channel is None:
            sock = self._sockets.get(socket.AF_INET6 if ':' in address[0] else socket.AF_INET)
            if sock is None:
                return None
            channel = self._channels[address] = PeerChannel(sock, address)
        return channel

    def _send_queued(self, channel: PeerChannel) -> None:
        """Send what is queued, as far as the window allows."""
        while channel.tcp_queue and len(channel.tcp_queries) < MAX_TCP_QUERIES:
            self._ask_over_tcp(channel, channel.tcp_queue.popleft())
        channel.expire_lost(self._now)
        while channel.in_flight < channel.window.size and (query := channel.next_query()) is not None:
            if not self._send(channel, query):
                channel.queue.appendleft(query)
                self._set_timer(channel, self._now + _FULL_BUFFER_PAUSE)
                return
        if channel.queue:
            self._set_timer(channel, channel.recent[0][0] + FIRST_RESEND)

    def _send(self, channel: PeerChannel, query: RetryingQuery) -> bool:
        """Send a query's datagram; False when the socket's buffer has no room."""
        message = query.message
        for attempt in (1, 2):
            if message is None or query.message is not message:  # an ICMP error for another datagram has ended the try
                query.queued = False
                return True
            try:
                channel.sock.sendto(message, channel.address)
                break
            except BlockingIOError:
                return False
            except OSError as error:
                # It may be a pending ICMP error for an earlier datagram to another server; reading it clears it.
                self._handle_icmp_errors(channel.sock)
                if attempt == 2:
                    query.queued = False
                    self._apply(query, query.on_failure(error_text(error.errno), self._now))
                    return True
        self._set_timer(query, query.on_sent(self._now))
        channel.mark_sent(query, self._now)
        return True

    def _receive(self, sock: socket.socket) -> None:
        for _ in range(16):
            datagrams = receive_datagrams(sock, _BATCH)
            unix_time = int(time.time())
            for message, address in datagrams:
                self._handle_datagram(message, address, unix_time)
            if not datagrams:  # the socket was ready, so there is an ICMP error; a send may have got it already
                self._handle_icmp_errors(sock)
            if len(datagrams) < _BATCH:
                return

    def _handle_datagram(self, message: bytes, address: Address, unix_time: int) -> None:
        channel = self._channels.get(address[:2])
        if channel is None:
            return
        query = channel.pending.get(message[:2])
        if query is None:
            return
        reply = query.read_reply(message, unix_time)
        if reply is not None:
            channel.leave_flight(query)
            if reply.truncated:
                channel.window.truncated(query.sent_at, self._now)
            else:
                channel.window.answered()
            if channel.queue:
                self._ready[channel] = None
            self._apply(query, query.on_reply(reply, self._now))

    def _handle_icmp_errors(self, sock: socket.socket) -> None:
        """End the tries to each address and port that an ICMP error says is unreachable.

        All of them, because a host limits the ICMP errors it sends to a few a second.
        """
        for address, number, quoted in icmp_errors(sock):
            channel = self._channels.get(address[:2])
            for query in list(channel.pending.values()) if channel is not None and channel.is_pending(quoted) else ():
                if query.datagrams_sent:
                    self._apply(query, query.on_failure(error_text(number), self._now))

    def _ask_over_tcp(self, channel: PeerChannel, query: RetryingQuery) -> None:
        """Ask over TCP, unless the try ended while the query waited for a connection."""
        if not query.over_tcp or query.message is None or query in channel.tcp_queries:
            return
        assert self._selector is not None and self._native is not None
        try:
            tcp_query = TcpQuery(self._native.socket, channel.address, query.message)
        except OSError as error:
            self._apply(query, query.on_failure(f'over TCP: {error_text(error.errno)}', self._now))
            return
        channel.tcp_queries[query] = tcp_query
        self._tcp_queries[tcp_query.fileno()] = query, tcp_query
        self._selector.watch(tcp_query.fileno(), writing=True)

    def _continue_tcp(self, number: int) -> None:
        """A TCP connection can be read or written."""
        query, tcp_query = self._tcp_queries[number]
        channel, was_writing = query.channel, tcp_query.writing
        assert self._selector is not None and channel is not None
        try:
            reply = tcp_query.advance()
        except OSError as error:
            self._close_tcp(query, channel)
            self._apply(query, query.on_failure(f'over TCP: {error_text(error.errno)}', self._now))
            return
        if reply is not None:
            self._close_tcp(query, channel)
            self._handle_tcp_reply(query, reply)
        elif tcp_query.writing is not was_writing:
            self._selector.watch(number, tcp_query.writing)

    def _handle_tcp_reply(self, query: RetryingQuery, message: bytes) -> None:
        id_matches = message[:2] == query.id
        reply = query.read_reply(message, int(time.time()), over_tcp=True) if id_matches else None
        if reply is None or reply.truncated:
            self._apply(query, query.on_failure('over TCP: no answer to the question', self._now, Reason.TIMEOUT))
        else:
            self._apply(query, query.on_reply(reply, self._now))

    def _close_tcp(self, query: RetryingQuery, channel: PeerChannel) -> None:
        assert self._selector is not None
        tcp_query = channel.tcp_queries.pop(query)
        del self._tcp_queries[tcp_query.fileno()]
        self._selector.unwatch(tcp_query.fileno())
        tcp_query.close()
        self._ready[channel] = None


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
