"""Asking servers for the serials of many zones at once, with a thread of the operating system for it alone.

A page is some zones and some servers; each server is asked for each zone.  A reply that is plain and has the wanted
serial, as nearly all of a healthy pool are, is known by comparing octets; any other is read with care
(:mod:`designate_pool.protocol.soa_query`).  What is not answered is asked again, :data:`WAITS` apart; a server is asked
no faster than its :class:`~designate_pool.minidns.client.congestion_window.CongestionWindow` lets, and, where they have
one length, many questions in one go (:mod:`designate_pool.minidns.client.udp_gso`).

A server's trouble is its own: one that is silent, or far behind the others, is left out of pages, which then say so.
A socket is connected to one server, so that replies come from nobody else, and is open while there is something to ask.

Nothing here logs, counts or takes a lock: what there is to tell is posted.
"""

from __future__ import annotations

import collections
import operator
import socket
import traceback
from typing import Any

from dns.tsig import Key

from designate_pool.concurrency import NativeThread
from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.client import udp_gso
from designate_pool.minidns.client.congestion_window import MAX_SIZE
from designate_pool.minidns.client.sockets import NativeSelector, error_text, udp_socket
from designate_pool.minidns.client.udp_gso import UdpGso
from designate_pool.minidns.soa_sweep.page import PeerResult, SweepPage
from designate_pool.minidns.soa_sweep.peer_channel import WAITS, SweepChannel
from designate_pool.model import Answer
from designate_pool.protocol import soa_query, tsig
from designate_pool.protocol.soa_query import SoaReply

#: Pages that a server may be behind the quickest one of a page; the page does without it when the first of them has
#: waited for so many seconds, or when it has been quiet for so many.
MOST_BEHIND, MOST_LATE, MOST_QUIET = 3, 5.0, 1.0
#: Seconds after which a page does without what has not been asked yet.
LONGEST = 20.0

_LOOK = 0.1
_BATCH = 256
#: Octets that a reply may have: 512, as no query offers to take more, and a signature; some do not keep to that.
_LARGEST = 4096
#: New queries go out when there is room for one part in so many of the window: one by one they cost much more.
_PARTS = 4
#: Flags and counts of a plain reply: with authority, one question, one answer; recursion offered or not.
_PLAIN = frozenset(bytes((0x84, low, 0, 1, 0, 1)) for low in (0x00, 0x80))
#: What the rdata of a SOA has at least: two names and five numbers.
_SHORTEST = 22
_SILENCE = SoaReply(Answer.TIMEOUT, reason=f'no answer, asked {len(WAITS)} times')


class SoaSweep:
    """Asks for pages, and posts each when it is done; a text that it posts is an error of its own.

    :param sources: the address to send from, by family; any where it is missing
    """

    def __init__(self, native: NativeThread, sources: dict[int, str] | None = None) -> None:
        self._native = native
        self._sources = sources or {}
        self._clock = native.time.monotonic
        self._waiting = NativeSelector(native)
        self._inbox: collections.deque[SweepPage] = collections.deque()
        self._lanes: dict[str, SweepChannel] = {}
        self._by_number: dict[int, SweepChannel] = {}
        self._pages: dict[SweepPage, None] = {}
        self._now = self._look_at = self._clock()
        self._stop_by: float | None = None

    def put(self, page: SweepPage) -> None:
        """Ask for *page*; from any thread."""
        self._inbox.append(page)
        self._waiting.wake()

    def stop(self, seconds: float = 0.0) -> None:
        """Have :meth:`run` end when nothing is under way, or when *seconds* are over.  From any thread."""
        self._stop_by = self._clock() + seconds
        self._waiting.wake()

    def left(self) -> list[SweepPage]:
        """The pages that were not done when :meth:`run` ended."""
        return [*self._pages, *self._inbox]

    def run(self) -> None:
        """The thread's work."""
        while not self._is_over():
            ready = self._waiting.wait(self._pause())
            try:
                self._turn(ready)
            except Exception:  # one page's fault must not stop all others
                self._native.post(traceback.format_exc())
                for lane in list(self._by_number.values()):
                    self._give_up(lane, SoaReply(Answer.BAD, reason='it could not be asked'))
        self._rest()
        self._waiting.close()

    def _is_over(self) -> bool:
        return self._stop_by is not None and (not self._pages and not self._inbox or self._clock() >= self._stop_by)

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
                self._send(lane, at_once=False)
        while self._inbox:
            self._begin(self._inbox.popleft())
        if self._now >= self._look_at and self._pages:
            self._look_at = self._now + _LOOK
            for lane in list(self._by_number.values()):
                self._look(lane)
                self._send(lane)
        if not self._pages:
            self._rest()

    def _begin(self, page: SweepPage) -> None:
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
            lane.add(tally)
            self._send(lane)

    def _is_behind(self, lane: SweepChannel, least: int) -> bool:
        """
        :param least: how many pages wait for the quickest server
        """
        return len(lane.tallies) - least >= MOST_BEHIND and (
            lane.heard_at + MOST_QUIET <= self._now or lane.tallies[0].page.began + MOST_LATE <= self._now)

    def _lane(self, peer: AllowedPeer) -> SweepChannel:
        """The server's lane, with a socket if it can have one."""
        lane = self._lanes.get(peer.id)
        if lane is None or lane.peer != peer:
            if lane is not None:
                self._give_up(lane, _SILENCE)
                self._close(lane)
            lane = self._lanes[peer.id] = SweepChannel(peer)
        if lane.sock is None and peer.addresses:
            lane.sock = self._connected(peer)
            lane.heard_at = self._now
            if lane.sock is not None:
                lane.bursts = UdpGso(lane.sock)
                self._by_number[lane.sock.fileno()] = lane
                self._waiting.watch(lane.sock.fileno())
        return lane

    def _connected(self, peer: AllowedPeer) -> Any:
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

    def _send(self, lane: SweepChannel, at_once: bool = True) -> None:
        """Send what waits, as far as the server can take it: what was lost before what is new.

        :param at_once: otherwise, wait for new queries until there is room for many together
        """
        least = 1 if at_once else max(1, lane.window.size // _PARTS)
        try:
            while lane.again and lane.room > 0:
                key, question, tried = lane.again[0]
                if lane.pending.get(key) == question:
                    self._send_again(lane, key, question)
                    lane.sent[tried].append((self._now, [key], range(question, question + 1)))
                lane.again.popleft()
            if lane.room >= least:
                while lane.tallies and lane.room > 0:
                    self._send_new(lane, lane.tallies[0])
        except BlockingIOError:
            return  # the look that comes next sends it
        except OSError as error:
            self._give_up(lane, SoaReply(Answer.TIMEOUT, reason=error_text(error.errno)))

    def _send_again(self, lane: SweepChannel, key: bytes, question: int) -> None:
        """
        :raises OSError: when it could not be sent
        """
        message, _ = lane.signed.get(key, (b'', b''))
        tally = lane.tally_of(question)
        lane.sock.send(message or key + tally.page.queries[question - tally.first])
        lane.late.discard(key)
        lane.in_flight += 1

    def _send_new(self, lane: SweepChannel, tally: PeerResult) -> None:
        """Send some of what is new, of one length.

        :raises OSError: when none could be sent
        """
        start, queries = tally.next, tally.page.queries
        stop = tally.page.end_of_length(start, min(len(queries), start + lane.room, start + udp_gso.MAX_SEGMENTS))
        keys = lane.free_ids(stop - start)
        messages = list(map(operator.add, keys, queries[start:start + len(keys)]))
        signed = [] if lane.peer.key is None else self._sign(messages, lane.peer.key)
        sent = lane.bursts.send(messages)
        tally.next += sent
        lane.has_sent(self._now, keys[:sent], range(tally.first + start, tally.first + tally.next), signed)
        if tally.next == len(queries):
            lane.tallies.popleft()
        if sent < len(keys):
            raise BlockingIOError

    def _sign(self, messages: list[bytes], key: Key) -> list[tuple[bytes, bytes]]:
        """Put a signature to each of *messages*; each with its MAC."""
        signed = []
        for number, message in enumerate(messages):
            signer = tsig.Signer(key)
            messages[number] = signer.sign(message, int(self._native.time.time()))
            signed.append((messages[number], signer.mac))
        return signed

    def _receive(self, lane: SweepChannel) -> None:
        heard = lane.heard
        try:
            self._drain(lane)
        except BlockingIOError:
            pass
        except OSError as error:
            self._give_up(lane, SoaReply(Answer.TIMEOUT, reason=error_text(error.errno)))
        if lane.heard != heard:
            lane.heard_at, lane.silent = self._now, False

    def _drain(self, lane: SweepChannel) -> None:
        """
        :raises OSError: when there is nothing more to read
        """
        recv, pending, late, window = lane.sock.recv, lane.pending, lane.late, lane.window
        is_signed = lane.peer.key is not None
        first = last = 0
        for _ in range(_BATCH):
            reply = recv(_LARGEST)
            key = reply[:2]
            question = pending.get(key)
            if question is None:
                continue
            if not first <= question < last:
                tally = lane.tally_of(question)
                tails, wanted = tally.page.tails, tally.page.wanted
                first, last = tally.first, tally.first + len(tails)
            number = question - first
            tail = tails[number]
            start = 18 + len(tail)
            if (reply.startswith(tail, 12) and reply[2:8] in _PLAIN and len(reply) >= start + _SHORTEST
                    and not is_signed):
                end = start + (reply[start - 2] << 8) + reply[start - 1]
                is_right = len(reply) >= end >= start + _SHORTEST and reply[end - 20:end - 16] == wanted[number]
            else:
                is_right = False
            if not is_right and not self._read(lane, reply, tally, number):
                continue
            del pending[key]
            if is_signed:
                del lane.signed[key]
            if late and key in late:
                late.discard(key)
            else:
                lane.in_flight -= 1
            lane.heard += 1
            if window.size < MAX_SIZE:
                window.answered()
            tally.answered += 1
            tally.left -= 1
            if not tally.left:
                self._end(tally)

    def _read(self, lane: SweepChannel, reply: bytes, tally: PeerResult, number: int) -> bool:
        """Read a reply that is not the plain one that was wanted; whether it is an answer to the question."""
        page, (_, mac) = tally.page, lane.signed.get(reply[:2], (b'', b''))
        said = soa_query.read_soa(reply, page.queries[number], lane.peer.key, mac, int(self._native.time.time()))
        if said is None:
            return False
        if said.truncated:  # how servers tell one who asks too much; asked again it may be whole
            lane.window.truncated(self._now, self._now)
            lane.heard_at = self._now
            return False
        wanted = int.from_bytes(page.wanted[number], 'big')
        if said.serial != wanted:  # one that is newer may be one that the pool never issued
            tally.findings.append((page.numbers[number], said))
        return True

    def _look(self, lane: SweepChannel) -> None:
        """See what has not been answered in its time, and what has no time left."""
        now, silent = self._now, False
        for tried, (sent, wait) in enumerate(zip(lane.sent, WAITS), 1):
            while sent and sent[0][0] + wait <= now:
                at, keys, asked = sent.popleft()
                lost = [(key, each) for key, each in zip(keys, asked) if lane.pending.get(key) == each]
                for key, each in lost:
                    lane.in_flight -= 1
                    if tried < len(WAITS):
                        lane.again.append((key, each, tried))
                        lane.late.add(key)
                    else:
                        del lane.pending[key]
                        lane.signed.pop(key, None)
                        self._fail(lane.tally_of(each), each, _SILENCE)
                        silent = silent or lane.heard_at <= now - sum(WAITS)
                if lost:
                    lane.window.lost(at, now)
        if silent:
            self._give_up(lane, _SILENCE)
            lane.silent = True
        while lane.tallies and lane.tallies[0].page.began + LONGEST <= now:
            self._skip(lane.tallies.popleft())

    def _give_up(self, lane: SweepChannel, why: SoaReply) -> None:
        """What is under way to the server has failed, and what has not been asked is left out."""
        pending, tallies = [(lane.tally_of(each), each) for each in lane.pending.values()], list(lane.tallies)
        lane.clear()
        for tally, each in pending:
            self._fail(tally, each, why)
        for tally in tallies:
            self._skip(tally)

    def _fail(self, tally: PeerResult, question: int, why: SoaReply) -> None:
        tally.unanswered += 1
        tally.findings.append((tally.page.numbers[question - tally.first], why))
        tally.left -= 1
        if not tally.left:
            self._end(tally)

    def _skip(self, tally: PeerResult) -> None:
        """Leave out what has not been asked."""
        skipped, tally.next = len(tally.page.queries) - tally.next, len(tally.page.queries)
        tally.left -= skipped
        if skipped and not tally.left:
            self._end(tally)

    def _end(self, tally: PeerResult) -> None:
        """The server has nothing left to do for the page."""
        tally.page.open -= 1
        if not tally.page.open:
            self._over(tally.page)

    def _over(self, page: SweepPage) -> None:
        del self._pages[page]
        self._native.post(page)

    def _rest(self) -> None:
        """Nothing is open while nothing is asked."""
        for lane in list(self._by_number.values()):
            lane.clear()
            self._close(lane)

    def _close(self, lane: SweepChannel) -> None:
        if lane.sock is not None:
            self._waiting.unwatch(lane.sock.fileno())
            del self._by_number[lane.sock.fileno()]
            lane.sock.close()
            lane.sock = None
