"""The loop that carries all errands: one UDP socket for each address family, and a heap of times.

Everything of an errand happens in this one loop, so nothing here needs a lock but the inbox.  A server has at most
:data:`MOST_IN_FLIGHT` unanswered datagrams of the last second, because more overflow its receive buffer; what is to be
sent beyond that waits its turn.
"""

from __future__ import annotations

import collections
import contextlib
import heapq
import itertools
import logging
import os
import socket
import time
from collections.abc import Callable

from designate_pool.minidns import signing
from designate_pool.minidns.concurrency import Runtime, Task, Workers
from designate_pool.minidns.datagrams import Address, Waiting, drain, refusals, udp_socket, want_errors
from designate_pool.minidns.errands import FIRST_RESEND, Do, Errand, Step

LOG = logging.getLogger(__name__)

MOST_IN_FLIGHT = 128
_TCP_WORKERS = 8
_BATCH = 512
_FULL_BUFFER_PAUSE = 0.001


class Lane:
    """What is under way to one address and port."""

    def __init__(self, sock: socket.socket, address: tuple[str, int]) -> None:
        self.sock = sock
        self.address = address
        self.pending: dict[int, Errand] = {}
        self.queue: collections.deque[Errand] = collections.deque()
        self.recent: collections.deque[tuple[float, Errand, int]] = collections.deque()
        self.in_flight = 0
        self.wake: float | None = None

    def settle(self, errand: Errand) -> None:
        """*errand* is no longer under way."""
        if errand.counted:
            errand.counted = False
            self.in_flight -= 1

    def forget_old(self, now: float) -> None:
        """A datagram that was not answered for a second is no longer in the server's buffer."""
        recent = self.recent
        while recent:
            sent_at, errand, number = recent[0]
            current = errand.counted and errand.sends == number
            if current and sent_at + FIRST_RESEND > now:
                return
            if current:
                self.settle(errand)
            recent.popleft()


class Exchange:
    """Sends errands and hands them their replies.

    :param sources: the address to send from, by family; any where it is missing
    """

    def __init__(self, sources: dict[int, str] | None = None) -> None:
        self._sources = sources or {}
        self._inbox: collections.deque[Callable[[], None]] = collections.deque()
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._ready: dict[Lane, None] = {}
        self._times: list[tuple[float, int, Errand | Lane]] = []
        self._order = itertools.count()
        self._ids = b''
        self._now = time.monotonic()
        self._stopping = False
        self._sockets: dict[int, socket.socket] = {}
        self._waiting: Waiting | None = None
        self._workers: Workers | None = None
        self._task: Task | None = None

    def open(self) -> None:
        """Open the sockets.

        :raises OSError: when a source address cannot be had
        """
        for family in (socket.AF_INET, socket.AF_INET6):
            try:
                self._sockets[family] = udp_socket(family, self._sources.get(family))
            except OSError:
                if family in self._sources:
                    raise
                continue  # a host without this family has no servers in it either
            want_errors(self._sockets[family])
        self._waiting = Waiting(self._sockets.values())

    def start(self, runtime: Runtime) -> None:
        self._workers = runtime.workers(_TCP_WORKERS, 'minidns-tcp-polls')
        self._task = runtime.spawn(self._loop, name='minidns-exchange')

    def stop(self) -> None:
        """End the loop; errands that are not over are dropped."""
        self._stopping = True
        if self._waiting is not None:
            self._waiting.wake()
        if self._task is not None:
            self._task.join(10)
        if self._workers is not None:
            self._workers.stop()
        if self._waiting is not None:
            self._waiting.close()
        for sock in self._sockets.values():
            sock.close()

    def submit(self, work: Callable[[], None]) -> None:
        """Have *work* done in the loop."""
        idle = not self._inbox
        self._inbox.append(work)
        if idle and self._waiting is not None:
            self._waiting.wake()

    # What follows is called in the loop alone.

    def begin(self, errand: Errand) -> None:
        """Start an errand."""
        self._apply(errand, errand.begin(self._now))

    def end(self, errand: Errand) -> None:
        """Drop an errand."""
        self._apply(errand, Do.END)

    def _loop(self) -> None:
        assert self._waiting is not None
        while not self._stopping:
            self._waiting.wait(self._until_next())
            self._now = time.monotonic()
            try:
                self._turn()
            except Exception:  # one errand's fault must not stop all the others
                LOG.exception('the exchange stumbled')

    def _turn(self) -> None:
        for sock in self._sockets.values():
            self._receive(sock)
        for _ in range(len(self._inbox)):
            self._inbox.popleft()()
        self._fire()
        while self._ready:
            lane, _ = self._ready.popitem()
            self._flush(lane)

    def _until_next(self) -> float | None:
        if self._inbox or self._ready:
            return 0.0
        while self._times and self._times[0][2].wake != self._times[0][0]:
            heapq.heappop(self._times)
        return max(0.0, self._times[0][0] - time.monotonic()) if self._times else None

    def _fire(self) -> None:
        while self._times and self._times[0][0] <= self._now:
            at, _, what = heapq.heappop(self._times)
            if what.wake != at:
                continue  # it has been given another time since
            what.wake = None
            if isinstance(what, Lane):
                self._ready[what] = None
            else:
                self._apply(what, what.due(self._now))

    def _apply(self, errand: Errand, step: Step) -> None:
        """Do what *errand* wants done."""
        if errand.ended:
            return
        lane = self._lane(errand)
        if step is Do.SEND:
            if lane is None:
                self._apply(errand, errand.refused(errand.peer.trouble or 'the server has no address', self._now))
            elif not errand.queued:
                errand.queued = True
                lane.queue.append(errand)
                self._ready[lane] = None
        elif step is Do.TCP:
            assert lane is not None
            lane.settle(errand)
            self._by_tcp(errand, lane)
        elif step is Do.END:
            errand.ended, errand.wake = True, None
            self._release(errand, lane)
        elif isinstance(step, float):
            if not errand.in_try:
                self._release(errand, lane)
            self._wake_at(errand, step)

    def _release(self, errand: Errand, lane: Lane | None) -> None:
        """The try is over: its id is free, and replies to it are nobody's."""
        if lane is not None:
            lane.settle(errand)
            if errand.message is not None:
                del lane.pending[errand.id]
            if lane.queue:
                self._ready[lane] = None
        errand.message = None

    def _wake_at(self, what: Errand | Lane, at: float) -> None:
        what.wake = at
        heapq.heappush(self._times, (at, next(self._order), what))

    def _lane(self, errand: Errand) -> Lane | None:
        peer = errand.peer
        if not peer.addresses:
            return None
        address = peer.addresses[0], peer.port
        lane = self._lanes.get(address)
        if lane is None:
            sock = self._sockets.get(socket.AF_INET6 if ':' in address[0] else socket.AF_INET)
            if sock is None:
                return None
            lane = self._lanes[address] = Lane(sock, address)
        return lane

    def _flush(self, lane: Lane) -> None:
        """Send what waits, as far as the server can take it."""
        lane.forget_old(self._now)
        while lane.queue and lane.in_flight < MOST_IN_FLIGHT:
            errand = lane.queue.popleft()
            if not errand.ended and not self._send(lane, errand):
                self._wake_at(lane, self._now + _FULL_BUFFER_PAUSE)
                return
        if lane.queue:
            self._wake_at(lane, lane.recent[0][0] + FIRST_RESEND)

    def _send(self, lane: Lane, errand: Errand) -> bool:
        """Send an errand's datagram; False when the socket takes no more just now."""
        message = errand.message or self._compose(lane, errand)
        for attempt in (1, 2):
            try:
                lane.sock.sendto(message, lane.address)
                break
            except BlockingIOError:
                lane.queue.appendleft(errand)
                return False
            except OSError as error:
                # It may be the news of an earlier datagram to another server; reading the news makes way for this one.
                self._hear_refusals(lane.sock)
                if attempt == 2:
                    errand.queued = False
                    self._apply(errand, errand.refused(_words(error.errno), self._now))
                    return True
                if errand.message is not message:
                    errand.queued = False
                    return True
        errand.queued = False
        errand.sends += 1
        if not errand.counted:
            errand.counted = True
            lane.in_flight += 1
        lane.recent.append((self._now, errand, errand.sends))
        self._wake_at(errand, errand.sent(self._now))
        return True

    def _compose(self, lane: Lane, errand: Errand) -> bytes:
        """The message of a new try, under an id that is not in use."""
        while True:
            if len(self._ids) < 2:
                self._ids = os.urandom(4096)
            octets, self._ids = self._ids[:2], self._ids[2:]
            number = int.from_bytes(octets, 'big')
            if number not in lane.pending:
                break
        message = octets + errand.template
        if errand.peer.key is not None:
            signer = signing.Signer(errand.peer.key)
            message = signer.sign(message, int(time.time()))
            errand.mac = signer.mac
        errand.id, errand.message = number, message
        lane.pending[number] = errand
        return message

    def _receive(self, sock: socket.socket) -> None:
        for _ in range(16):
            try:
                datagrams = drain(sock, _BATCH)
            except OSError:
                self._hear_refusals(sock)
                continue
            wall = int(time.time())
            for message, address in datagrams:
                self._hear(message, address, wall)
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
            if lane.queue:
                self._ready[lane] = None
            self._apply(errand, errand.heard(said, self._now))

    def _hear_refusals(self, sock: socket.socket) -> None:
        """End the tries that are under way to where a datagram could not be delivered.

        All of them: a host tells this for a few datagrams a second at most.
        """
        for address, number in refusals(sock):
            lane = self._lanes.get(address[:2])
            for errand in list(lane.pending.values()) if lane is not None else ():
                if errand.sends:
                    self._apply(errand, errand.refused(_words(number), self._now))

    def _by_tcp(self, errand: Errand, lane: Lane) -> None:
        assert self._workers is not None and errand.message is not None and errand.try_ends is not None
        self._wake_at(errand, errand.try_ends)
        seconds = errand.try_ends - self._now
        self._workers.submit(self._ask_by_tcp, errand, errand.message, lane.address, seconds)

    def _ask_by_tcp(self, errand: Errand, message: bytes, address: tuple[str, int], seconds: float) -> None:
        try:
            reply = ask_by_tcp(message, address, seconds)
        except OSError as error:
            why = f'over TCP: {error}'
            self.submit(lambda: self._settle_tcp(errand, message, None, why))
        else:
            self.submit(lambda: self._settle_tcp(errand, message, reply, 'over TCP: no answer to the question'))

    def _settle_tcp(self, errand: Errand, message: bytes, reply: bytes | None, why: str) -> None:
        if errand.message is not message:
            return  # that try is over
        said = None
        if reply is not None and reply[:2] == message[:2]:
            said = errand.read(reply, int(time.time()))
        if said is None or said.truncated:
            self._apply(errand, errand.refused(why, self._now))
        else:
            self._apply(errand, errand.heard(said, self._now))


def ask_by_tcp(message: bytes, address: tuple[str, int], seconds: float) -> bytes:
    """The reply to *message* over TCP.

    :raises OSError: when there is none within *seconds*
    """
    end = time.monotonic() + seconds
    with contextlib.closing(socket.create_connection(address, timeout=max(0.01, seconds))) as sock:
        sock.sendall(len(message).to_bytes(2, 'big') + message)
        received, wanted = b'', 2
        while len(received) < wanted:
            sock.settimeout(max(0.01, end - time.monotonic()))
            more = sock.recv(wanted - len(received))
            if not more:
                raise ConnectionResetError('the server closed the connection')
            received += more
            if len(received) == 2:
                wanted = 2 + int.from_bytes(received, 'big')
            if time.monotonic() > end:
                raise TimeoutError('timed out')
        return received[2:]


def _words(number: int | None) -> str:
    return os.strerror(number or 0).lower()
