"""The loop that carries all errands: one UDP socket for each address family, and a heap of times.

It has a thread of the operating system for itself, so that a reply does not wait until everything else has had its
turn.  Everything of an errand happens in this one loop; nothing in it logs, counts or takes a lock.  What is to be done
with what it finds is posted, and done in batches in the runtime's world.

A server has at most a :class:`~designate_pool.minidns.client.congestion_window.CongestionWindow` of unanswered
datagrams of the last second; what is to be sent beyond that waits its turn.
"""

from __future__ import annotations

import collections
import heapq
import itertools
import logging
import socket
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from designate_pool.concurrency import LoopTask, NativeThread, Runtime
from designate_pool.minidns.client.mailbox import Mailbox
from designate_pool.minidns.client.peer_channel import MOST_STREAMS, PeerChannel
from designate_pool.minidns.client.query import FIRST_RESEND, NextStep, RetryingQuery, Step
from designate_pool.minidns.client.sockets import (Address, NativeSelector, drain, refusals, udp_socket, want_errors,
                                                   words)
from designate_pool.minidns.client.tcp_query import TcpQuery

LOG = logging.getLogger(__name__)

_BATCH = 512
_FULL_BUFFER_PAUSE = 0.001
T = TypeVar('T')


class ClientLoop:
    """Sends errands and hands them their replies.

    :param sources: the address to send from, by family; any where it is missing
    """

    def __init__(self, sources: dict[int, str] | None = None) -> None:
        self._sources = sources or {}
        self._inbox = Mailbox(self._wake)
        self._posts: list[tuple[Callable[[list[Any]], None], Any]] = []
        self._lanes: dict[tuple[str, int], PeerChannel] = {}
        self._ready: dict[PeerChannel, None] = {}
        # Times in any order, and those a second ahead of when they were set: these come in order by themselves.
        self._times: list[tuple[float, int, RetryingQuery | PeerChannel]] = []
        self._second: collections.deque[tuple[float, RetryingQuery | PeerChannel]] = collections.deque()
        self._order = itertools.count()
        self._now = time.monotonic()
        self._stopping = False
        self._sockets: dict[int, socket.socket] = {}
        self._streams: dict[int, tuple[RetryingQuery, TcpQuery]] = {}
        self._waiting: NativeSelector | None = None
        self._native: NativeThread | None = None
        self._task: LoopTask | None = None

    def open(self, runtime: Runtime) -> None:
        """Open the sockets.

        :raises OSError: when a source address cannot be had
        """
        self._native = runtime.native('minidns-exchange', _handle)
        self._waiting = NativeSelector(self._native)
        for family in (socket.AF_INET, socket.AF_INET6):
            try:
                sock = udp_socket(family, self._sources.get(family), sockets=self._native.socket)
            except OSError:
                if family in self._sources:
                    raise
                continue  # a host without this family has no servers in it either
            want_errors(sock)
            self._sockets[family] = sock
            self._waiting.want(sock.fileno())

    def start(self) -> None:
        assert self._native is not None
        self._task = self._native.spawn(self._loop)

    def stop(self) -> None:
        """End the loop, having begun what was submitted; errands that are not over stay so, what they found is told."""
        self._stopping = True
        self._wake()
        if self._task is not None:
            self._task.join(10)
        for work in self._inbox.take(time.monotonic()):
            work()
        if self._native is not None:
            self._native.stop()
        if self._waiting is not None:
            self._waiting.close()
        for _, stream in self._streams.values():
            stream.close()
        for sock in self._sockets.values():
            sock.close()

    def submit(self, work: Callable[[], None], hurried: bool = True) -> None:
        """Have *work* done in the loop, at once or, if it is not hurried, within a beat; from any thread."""
        self._inbox.put(work, hurried)

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.wake()

    # What follows is called in the loop alone.

    def begin(self, errand: RetryingQuery) -> None:
        """Start an errand."""
        errand.channel = self._lane(errand)
        self._apply(errand, errand.begin(self._now))

    def hurry(self, errand: RetryingQuery) -> None:
        """Have the time come now that *errand* waits for."""
        errand.wake = None
        self._apply(errand, errand.due(self._now))

    def end(self, errand: RetryingQuery) -> None:
        """Drop an errand."""
        self._apply(errand, NextStep.END)

    def post(self, handle: Callable[[list[T]], None], item: T) -> None:
        """Have *handle* called with *item*, and with what follows it for the same, in the runtime's world."""
        self._posts.append((handle, item))

    def _loop(self) -> None:
        assert self._waiting is not None and self._native is not None
        while not self._stopping:
            ready = self._waiting.wait(self._until_next())
            self._now = time.monotonic()
            try:
                self._turn(ready)
            except Exception:  # one errand's fault must not stop all the others
                self.post(_stumbled, traceback.format_exc())
            if self._posts:
                posts, self._posts = self._posts, []
                self._native.post(*posts)

    def _turn(self, ready: list[int]) -> None:
        for number in ready:
            if number in self._streams:
                self._go_on(number)
        for sock in self._sockets.values():
            if sock.fileno() in ready:
                self._receive(sock)
        for work in self._inbox.take(self._now):
            work()
        self._fire()
        while self._ready:
            lane, _ = self._ready.popitem()
            self._flush(lane)

    def _until_next(self) -> float | None:
        if self._ready:
            return 0.0
        while self._times and self._times[0][2].wake != self._times[0][0]:
            heapq.heappop(self._times)
        while self._second and self._second[0][1].wake != self._second[0][0]:
            self._second.popleft()
        first = [times[0][0] for times in (self._times, self._second) if times]
        return self._inbox.patience(max(0.0, min(first) - time.monotonic()) if first else None)

    def _fire(self) -> None:
        now = self._now
        while self._second and self._second[0][0] <= now:
            self._come(*self._second.popleft())
        while self._times and self._times[0][0] <= now:
            at, _, what = heapq.heappop(self._times)
            self._come(at, what)

    def _come(self, at: float, what: RetryingQuery | PeerChannel) -> None:
        if what.wake != at:
            return  # it has been given another time since
        what.wake = None
        if isinstance(what, PeerChannel):
            self._ready[what] = None
        else:
            self._apply(what, what.due(self._now))

    def _apply(self, errand: RetryingQuery, step: Step) -> None:
        """Do what *errand* wants done."""
        if errand.ended:
            return
        lane = errand.channel
        if step is NextStep.END:
            errand.ended, errand.wake = True, None
            self._release(errand, lane)
        elif step is NextStep.SEND:
            if lane is None:
                self._apply(errand, errand.refused(errand.peer.trouble or 'the server has no address', self._now))
            elif not errand.queued:
                errand.queued = True
                lane.queue.append(errand)
                self._ready[lane] = None
        elif step is NextStep.TCP:
            assert lane is not None and errand.try_ends is not None
            self._wake_at(errand, errand.try_ends)
            if not errand.by_tcp:
                errand.by_tcp = True
                lane.by_tcp.append(errand)
                self._ready[lane] = None
        elif isinstance(step, float):
            if not errand.in_try:
                self._release(errand, lane)
            self._wake_at(errand, step)

    def _release(self, errand: RetryingQuery, lane: PeerChannel | None) -> None:
        """The try is over: its id is free, and replies to it are nobody's."""
        if lane is not None:
            lane.settle(errand)
            if errand.message is not None:
                del lane.pending[errand.id]
            if errand in lane.streams:
                self._close(errand, lane)
            if lane.queue or lane.by_tcp:
                self._ready[lane] = None
        errand.message, errand.by_tcp = None, False

    def _wake_at(self, what: RetryingQuery | PeerChannel, at: float) -> None:
        if what.wake == at:
            return
        what.wake = at
        if at == self._now + FIRST_RESEND:
            self._second.append((at, what))
        else:
            heapq.heappush(self._times, (at, next(self._order), what))

    def _lane(self, errand: RetryingQuery) -> PeerChannel | None:
        peer = errand.peer
        if not peer.addresses:
            return None
        address = peer.addresses[0], peer.port
        lane = self._lanes.get(address)
        if lane is None:
            sock = self._sockets.get(socket.AF_INET6 if ':' in address[0] else socket.AF_INET)
            if sock is None:
                return None
            lane = self._lanes[address] = PeerChannel(sock, address)
        return lane

    def _flush(self, lane: PeerChannel) -> None:
        """Send what waits, as far as the server can take it."""
        while lane.by_tcp and len(lane.streams) < MOST_STREAMS:
            self._connect(lane, lane.by_tcp.popleft())
        lane.forget_old(self._now)
        while lane.queue and lane.in_flight < lane.window.size:
            left = self._send(lane, lane.take())
            if left:
                lane.give_back(left)
                self._wake_at(lane, self._now + _FULL_BUFFER_PAUSE)
                return
        if lane.queue:
            self._wake_at(lane, lane.recent[0][0] + FIRST_RESEND)

    def _send(self, lane: PeerChannel, errands: list[RetryingQuery]) -> list[RetryingQuery]:
        """Send the errands' datagrams, which have one length; those that the socket does not take just now."""
        messages = [errand.message for errand in errands if errand.message is not None]
        try:
            if len(errands) > 1 and lane.bursts.cut(messages):
                for errand in errands:
                    self._has_sent(lane, errand)
                return []
        except BlockingIOError:
            return errands
        except OSError:
            pass  # each by itself gets its own error
        for number, errand in enumerate(errands):
            if not self._send_one(lane, errand):
                return errands[number:]
        return []

    def _send_one(self, lane: PeerChannel, errand: RetryingQuery) -> bool:
        """Send an errand's datagram; False when the socket takes no more just now."""
        message = errand.message
        for attempt in (1, 2):
            if message is None or errand.message is not message:  # the news of another one's datagram has ended the try
                errand.queued = False
                return True
            try:
                lane.sock.sendto(message, lane.address)
                break
            except BlockingIOError:
                return False
            except OSError as error:
                # It may be the news of an earlier datagram to another server; reading the news makes way for this one.
                self._hear_refusals(lane.sock)
                if attempt == 2:
                    errand.queued = False
                    self._apply(errand, errand.refused(words(error.errno), self._now))
                    return True
        self._has_sent(lane, errand)
        return True

    def _has_sent(self, lane: PeerChannel, errand: RetryingQuery) -> None:
        errand.queued = False
        errand.sends += 1
        errand.sent_at = self._now
        if not errand.counted:
            errand.counted = True
            lane.in_flight += 1
        lane.recent.append((self._now, errand, errand.sends))
        self._wake_at(errand, errand.sent(self._now))

    def _receive(self, sock: socket.socket) -> None:
        for _ in range(16):
            datagrams = drain(sock, _BATCH)
            wall = int(time.time())
            for message, address in datagrams:
                self._hear(message, address, wall)
            if not datagrams:  # it was ready, so there is news; the error may have gone to a send
                self._hear_refusals(sock)
            if len(datagrams) < _BATCH:
                return

    def _hear(self, message: bytes, address: Address, wall: int) -> None:
        lane = self._lanes.get(address[:2])
        if lane is None:
            return
        errand = lane.pending.get(int.from_bytes(message[:2], 'big'))
        if errand is None:
            return
        said = errand.read(message, wall)
        if said is not None:
            lane.settle(errand)
            if said.truncated:
                lane.window.truncated(errand.sent_at, self._now)
            else:
                lane.window.answered()
            if lane.queue:
                self._ready[lane] = None
            self._apply(errand, errand.heard(said, self._now))

    def _hear_refusals(self, sock: socket.socket) -> None:
        """End the tries that are under way to where a datagram could not be delivered.

        All of them: a host tells this for a few datagrams a second at most.
        """
        for address, number, quoted in refusals(sock):
            lane = self._lanes.get(address[:2])
            for errand in list(lane.pending.values()) if lane is not None and lane.has_asked(quoted) else ():
                if errand.sends:
                    self._apply(errand, errand.refused(words(number), self._now))

    def _connect(self, lane: PeerChannel, errand: RetryingQuery) -> None:
        """Ask over TCP, unless the try was over before its turn came."""
        if not errand.by_tcp or errand.message is None or errand in lane.streams:
            return
        assert self._waiting is not None and self._native is not None
        try:
            stream = TcpQuery(self._native.socket, lane.address, errand.message)
        except OSError as error:
            self._apply(errand, errand.refused(f'over TCP: {words(error.errno)}', self._now))
            return
        lane.streams[errand] = stream
        self._streams[stream.fileno()] = errand, stream
        self._waiting.want(stream.fileno(), writing=True)

    def _go_on(self, number: int) -> None:
        """Something can be done with a connection."""
        errand, stream = self._streams[number]
        lane, was_writing = errand.channel, stream.writing
        assert self._waiting is not None and lane is not None
        try:
            reply = stream.go_on()
        except OSError as error:
            self._close(errand, lane)
            self._apply(errand, errand.refused(f'over TCP: {words(error.errno)}', self._now))
            return
        if reply is not None:
            self._close(errand, lane)
            self._hear_by_tcp(errand, reply)
        elif stream.writing is not was_writing:
            self._waiting.want(number, stream.writing)

    def _hear_by_tcp(self, errand: RetryingQuery, reply: bytes) -> None:
        is_its = reply[:2] == errand.id.to_bytes(2, 'big')
        said = errand.read(reply, int(time.time()), over_tcp=True) if is_its else None
        if said is None or said.truncated:
            self._apply(errand, errand.refused('over TCP: no answer to the question', self._now))
        else:
            self._apply(errand, errand.heard(said, self._now))

    def _close(self, errand: RetryingQuery, lane: PeerChannel) -> None:
        assert self._waiting is not None
        stream = lane.streams.pop(errand)
        del self._streams[stream.fileno()]
        self._waiting.forget(stream.fileno())
        stream.close()
        self._ready[lane] = None


def _handle(posts: list[tuple[Callable[[list[Any]], None], Any]]) -> None:
    """What was posted, in order, that for one handler together."""
    for handle, some in itertools.groupby(posts, key=lambda post: post[0]):
        handle([item for _, item in some])


def _stumbled(errors: list[str]) -> None:
    for error in errors:
        LOG.error('the exchange stumbled: %s', error)
