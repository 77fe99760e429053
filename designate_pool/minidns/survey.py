"""Asking servers for the serials of many zones at once, with a thread of the operating system for it alone.

A page is some zones and some servers; each server is asked for each zone.  A reply that is plain and has the wanted
serial, as nearly all of a healthy pool are, is known by comparing octets; any other is read with care
(:mod:`designate_pool.minidns.questions`).  What is not answered is asked again, :data:`WAITS` apart; a server is asked
no faster than its :class:`~designate_pool.minidns.window.Window` lets.

A server's trouble is its own: one that is silent, or far behind the others, is left out of pages, which then say so.
A socket is connected to one server, so that replies come from nobody else, and is open while there is something to ask.

Nothing here logs, counts or takes a lock: what there is to tell is posted.
"""

from __future__ import annotations

import collections
import os
import socket
import traceback
from typing import Any

from designate_pool import serial as serials
from designate_pool.minidns import questions, signing
from designate_pool.minidns.access import Peer
from designate_pool.minidns.concurrency import Native
from designate_pool.minidns.datagrams import NativeWaiting, udp_socket
from designate_pool.minidns.questions import Said
from designate_pool.minidns.survey_pages import Page, Tally
from designate_pool.minidns.window import MOST, Window
from designate_pool.model import Answer

#: Seconds that each try waits for its answer.
WAITS = (1.0, 1.0, 2.0)
#: Pages that a server may be behind the quickest one of a page; the page does without it when the first of them has
#: waited for so many seconds, or when it has been quiet for so many.
MOST_BEHIND, MOST_LATE, MOST_QUIET = 3, 5.0, 1.0
#: Seconds after which a page does without what has not been asked yet.
LONGEST = 20.0

_LOOK = 0.1
_BATCH = 256
_LARGEST = 4096
#: Flags and counts of a plain reply: with authority, one question, one answer; recursion offered or not.
_PLAIN = frozenset(bytes((0x84, low, 0, 1, 0, 1)) for low in (0x00, 0x80))
#: What the rdata of a SOA has at least: two names and five numbers.
_SHORTEST = 22
_SILENCE = Said(Answer.TIMEOUT, reason=f'no answer, asked {len(WAITS)} times')


#: A query under way: whose, of which zone, and where it is signed the message and its MAC.
_Asked = tuple[Tally, int, bytes, bytes]
#: Messages that went out together: when, and each with its id.
_Sent = tuple[float, list[bytes], list[_Asked]]


class _Lane:
    """What is under way to one server.

    :ivar pending: what may still be answered, by the message's id
    :ivar sent: what went out as each try, oldest first
    :ivar again: what has to go out once more, with the number of its next try
    :ivar late: ids of what was not answered in its time and waits to go out, or for nothing but a late answer
    :ivar in_flight: of *pending*, what may be in the server's buffer
    """

    __slots__ = ('peer', 'sock', 'window', 'pending', 'sent', 'again', 'late', 'tallies', 'in_flight', 'heard_at',
                 'silent')

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.sock: Any = None
        self.window = Window()
        self.silent = False
        self.heard_at = 0.0
        self.clear()

    def clear(self) -> None:
        self.pending: dict[bytes, _Asked] = {}
        self.sent: tuple[collections.deque[_Sent], ...] = tuple(collections.deque() for _ in WAITS)
        self.again: collections.deque[tuple[bytes, _Asked, int]] = collections.deque()
        self.late: set[bytes] = set()
        self.tallies: collections.deque[Tally] = collections.deque()
        self.in_flight = 0

    @property
    def room(self) -> int:
        return (1 if self.silent else self.window.size) - self.in_flight


class Survey:
    """Asks for pages, and posts each when it is done; a text that it posts is an error of its own.

    :param sources: the address to send from, by family; any where it is missing
    """

    def __init__(self, native: Native, sources: dict[int, str] | None = None) -> None:
        self._native = native
        self._sources = sources or {}
        self._clock = native.time.monotonic
        self._waiting = NativeWaiting(native)
        self._inbox: collections.deque[Page] = collections.deque()
        self._lanes: dict[str, _Lane] = {}
        self._by_number: dict[int, _Lane] = {}
        self._pages: dict[Page, None] = {}
        self._now = self._look_at = self._clock()
        self._stopping = False

    def put(self, page: Page) -> None:
        """Ask for *page*; from any thread."""
        self._inbox.append(page)
        self._waiting.wake()

    def stop(self) -> None:
        """Have :meth:`run` end; pages under way are dropped.  From any thread."""
        self._stopping = True
        self._waiting.wake()

    def run(self) -> None:
        """The thread's work."""
        while not self._stopping:
            ready = self._waiting.wait(self._pause())
            try:
                self._turn(ready)
            except Exception:  # one page's fault must not stop all others
                self._native.post(traceback.format_exc())
                for lane in list(self._by_number.values()):
                    self._give_up(lane, Said(Answer.BAD, reason='it could not be asked'))
        self._rest()
        self._waiting.close()

    def _pause(self) -> float | None:
        """Seconds until there is something to do unasked; None when there is nothing."""
        if self._inbox:  # left over from a turn that failed
            return 0.0
        return max(0.0, self._look_at - self._clock()) if self._pages else None

    def _turn(self, ready: list[int]) -> None:
        self._now = self._clock()
        for number in ready:
            lane = self._by_number.get(number)
            if lane is not None:
                self._receive(lane)
                self._send(lane)
        while self._inbox:
            self._begin(self._inbox.popleft())
        if self._now >= self._look_at and self._pages:
            self._look_at = self._now + _LOOK
            for lane in list(self._by_number.values()):
                self._look(lane)
                self._send(lane)
        if not self._pages:
            self._rest()

    def _begin(self, page: Page) -> None:
        page.prepare()
        page.began = self._now
        self._pages[page] = None
        if not page.tallies:
            self._over(page)
        lanes = [self._lane(tally.peer) for tally in page.tallies]
        least = min((len(lane.tallies) for lane in lanes), default=0)
        for lane, tally in zip(lanes, page.tallies):
            if lane.sock is None or not tally.left or self._is_behind(lane, least):
                self._end(tally)
                continue
            lane.tallies.append(tally)
            self._send(lane)

    def _is_behind(self, lane: _Lane, least: int) -> bool:
        """
        :param least: how many pages wait for the quickest server
        """
        return len(lane.tallies) - least >= MOST_BEHIND and (
            lane.heard_at + MOST_QUIET <= self._now or lane.tallies[0].page.began + MOST_LATE <= self._now)

    def _lane(self, peer: Peer) -> _Lane:
        """The server's lane, with a socket if it can have one."""
        lane = self._lanes.get(peer.id)
        if lane is None or lane.peer != peer:
            if lane is not None:
                self._give_up(lane, _SILENCE)
                self._close(lane)
            lane = self._lanes[peer.id] = _Lane(peer)
        if lane.sock is None and peer.addresses:
            lane.sock = self._connected(peer)
            lane.heard_at = self._now
            if lane.sock is not None:
                self._by_number[lane.sock.fileno()] = lane
                self._waiting.want(lane.sock.fileno())
        return lane

    def _connected(self, peer: Peer) -> Any:
        address = peer.addresses[0]
        family = socket.AF_INET6 if ':' in address else socket.AF_INET
        try:
            sock = udp_socket(family, self._sources.get(family), sockets=self._native.socket)
        except OSError:
            return None
        try:
            sock.connect((address, peer.port))
        except OSError:
            sock.close()
            return None
        return sock

    def _send(self, lane: _Lane) -> None:
        """Send what waits, as far as the server can take it: what was lost before what is new."""
        try:
            while lane.again and lane.room > 0:
                key, asked, tried = lane.again[0]
                if lane.pending.get(key) is asked:
                    lane.sock.send(asked[2] or key + asked[0].page.queries[asked[1]])
                    lane.late.discard(key)
                    lane.in_flight += 1
                    lane.sent[tried].append((self._now, [key], [asked]))
                lane.again.popleft()
            while lane.tallies and lane.room > 0:
                self._send_new(lane, lane.tallies[0])
        except BlockingIOError:
            return  # the look that comes next sends it
        except OSError as error:
            self._give_up(lane, Said(Answer.TIMEOUT, reason=_words(error)))

    def _send_new(self, lane: _Lane, tally: Tally) -> None:
        """
        :raises OSError: when a message could not be sent; those before it were
        """
        start, queries, pending, send = tally.next, tally.page.queries, lane.pending, lane.sock.send
        stop = min(len(queries), start + lane.room)
        keys: list[bytes] = []
        asked: list[_Asked] = []
        octets = os.urandom(2 * (stop - start))
        signed = mac = b''
        try:
            for number in range(start, stop):
                key = octets[:2]
                octets = octets[2:]
                while key in pending:
                    key = os.urandom(2)
                message = key + queries[number]
                if lane.peer.key is not None:
                    signer = signing.Signer(lane.peer.key)
                    message = signed = signer.sign(message, int(self._native.time.time()))
                    mac = signer.mac
                send(message)
                pending[key] = each = tally, number, signed, mac
                keys.append(key)
                asked.append(each)
        finally:
            tally.next += len(keys)
            lane.in_flight += len(keys)
            lane.sent[0].append((self._now, keys, asked))
            if tally.next == len(queries):
                lane.tallies.popleft()

    def _receive(self, lane: _Lane) -> None:
        recv, pending, late, window = lane.sock.recv, lane.pending, lane.late, lane.window
        heard = 0
        try:
            for _ in range(_BATCH):
                reply = recv(_LARGEST)
                key = reply[:2]
                asked = pending.get(key)
                if asked is None:
                    continue
                tally, number, signed, _ = asked
                tail = tally.page.tails[number]
                if reply[2:8] in _PLAIN and not signed and reply.startswith(tail, 12):
                    at = 18 + len(tail)
                    length = int.from_bytes(reply[at - 2:at], 'big')
                    end = at + length
                    if (length >= _SHORTEST and len(reply) >= end
                            and reply[end - 20:end - 16] == tally.page.wanted[number]):
                        tally.answered += 1
                    elif not self._read(lane, reply, asked):
                        continue
                elif not self._read(lane, reply, asked):
                    continue
                del pending[key]
                if late and key in late:
                    late.discard(key)
                else:
                    lane.in_flight -= 1
                heard += 1
                if window.size < MOST:
                    window.answered()
                tally.left -= 1
                if not tally.left:
                    self._end(tally)
        except BlockingIOError:
            pass
        except OSError as error:
            self._give_up(lane, Said(Answer.TIMEOUT, reason=_words(error)))
        if heard:
            lane.heard_at, lane.silent = self._now, False

    def _read(self, lane: _Lane, reply: bytes, asked: _Asked) -> bool:
        """Read a reply that is not the plain one that was wanted; whether it is an answer to the question."""
        tally, number, _, mac = asked
        page = tally.page
        said = questions.read_soa(reply, page.queries[number], lane.peer.key, mac, int(self._native.time.time()))
        if said is None:
            return False
        if said.truncated:  # how servers tell one who asks too much; asked again it may be whole
            lane.window.truncated(self._now, self._now)
            lane.heard_at = self._now
            return False
        tally.answered += 1
        wanted = int.from_bytes(page.wanted[number], 'big')
        if said.serial is None or not serials.at_least(said.serial, wanted):
            tally.findings.append((page.numbers[number], said))
        return True

    def _look(self, lane: _Lane) -> None:
        """See what has not been answered in its time, and what has no time left."""
        now, silent = self._now, False
        for tried, (sent, wait) in enumerate(zip(lane.sent, WAITS), 1):
            while sent and sent[0][0] + wait <= now:
                at, keys, asked = sent.popleft()
                lost = [(key, each) for key, each in zip(keys, asked) if lane.pending.get(key) is each]
                for key, each in lost:
                    lane.in_flight -= 1
                    if tried < len(WAITS):
                        lane.again.append((key, each, tried))
                        lane.late.add(key)
                    else:
                        del lane.pending[key]
                        self._fail(each, _SILENCE)
                        silent = silent or lane.heard_at <= now - sum(WAITS)
                if lost:
                    lane.window.lost(at, now)
        if silent:
            self._give_up(lane, _SILENCE)
            lane.silent = True
        while lane.tallies and lane.tallies[0].page.began + LONGEST <= now:
            self._skip(lane.tallies.popleft())

    def _give_up(self, lane: _Lane, why: Said) -> None:
        """What is under way to the server has failed, and what has not been asked is left out."""
        pending, tallies = list(lane.pending.values()), list(lane.tallies)
        lane.clear()
        for each in pending:
            self._fail(each, why)
        for tally in tallies:
            self._skip(tally)

    def _fail(self, asked: _Asked, why: Said) -> None:
        tally, number, _, _ = asked
        tally.unanswered += 1
        tally.findings.append((tally.page.numbers[number], why))
        tally.left -= 1
        if not tally.left:
            self._end(tally)

    def _skip(self, tally: Tally) -> None:
        """Leave out what has not been asked."""
        skipped, tally.next = len(tally.page.queries) - tally.next, len(tally.page.queries)
        tally.left -= skipped
        if skipped and not tally.left:
            self._end(tally)

    def _end(self, tally: Tally) -> None:
        """The server has nothing left to do for the page."""
        tally.page.open -= 1
        if not tally.page.open:
            self._over(tally.page)

    def _over(self, page: Page) -> None:
        del self._pages[page]
        self._native.post(page)

    def _rest(self) -> None:
        """Nothing is open while nothing is asked."""
        for lane in list(self._by_number.values()):
            lane.clear()
            self._close(lane)

    def _close(self, lane: _Lane) -> None:
        if lane.sock is not None:
            self._waiting.forget(lane.sock.fileno())
            del self._by_number[lane.sock.fileno()]
            lane.sock.close()
            lane.sock = None


def _words(error: OSError) -> str:
    return os.strerror(error.errno or 0).lower()
