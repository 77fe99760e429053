"""Queries servers for the serials of many zones, in an operating system thread of its own.

A page is some zones and some servers; each server is queried for each zone.  A plain reply with the expected serial,
the usual case in a healthy pool, is recognized by comparing octets; any other reply is parsed
(:mod:`designate_pool.protocol.soa_query`).  A query without a reply is sent again.  The
:class:`~designate_pool.minidns.client.congestion_window.CongestionWindow` limits the queries in flight to a server;
queries of one length are sent in one call (:mod:`designate_pool.minidns.client.udp_gso`).

A server that is silent or far behind the others does not delay them: it is left out of pages, and their results say so.
A socket is connected to one server, so that nobody else's replies are read, and is open only while pages are in
progress.

Nothing here logs, counts or takes a lock: results are posted.
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
from designate_pool.minidns.soa_sweep.peer_channel import SweepChannel
from designate_pool.model import Answer, Reason
from designate_pool.protocol import soa_query, tsig
from designate_pool.protocol.soa_query import PLAIN_HEADERS, SoaReply

#: A new page leaves a server out that has at least so many more pages waiting than the quickest server of the page, and
#: whose oldest waiting page is ``max_late`` seconds old, or that has sent no reply for MAX_QUIET seconds.
MAX_PAGES_BEHIND, MAX_QUIET = 3, 1.0
#: Seconds after which the queries of a page that have not been sent are skipped.
PAGE_TIMEOUT = 20.0

_BATCH = 256
#: Octets of the largest reply: 512 without EDNS, a TSIG record on top, and a margin for servers that exceed it.
_MAX_DATAGRAM = 4096
#: New queries wait until a quarter (1/n) of the window is free: sent one by one they cost much more.
_WINDOW_PARTS = 4
#: Octets of the shortest SOA rdata: two names and five numbers.
_MIN_SOA_RDATA = 22


class SoaSweep:
    """Runs pages, and posts each when it has ended, or a traceback as a string.

    :param sources: the address to send from, by family; any address where it is missing
    :param try_timeouts: seconds that each try waits for its reply
    :param check_interval: seconds between two checks for timeouts
    :param max_late: seconds; see :data:`MAX_PAGES_BEHIND`
    """

    def __init__(self, native: NativeThread, sources: dict[int, str] | None = None, *,
                 try_timeouts: tuple[float, ...] = (1.0, 1.0, 2.0), check_interval: float = 0.1,
                 max_late: float = 5.0) -> None:
        self._native = native
        self._sources = sources or {}
        self._try_timeouts = try_timeouts
        self._check_interval = check_interval
        self._max_late = max_late
        self._silence = SoaReply(Answer.TIMEOUT, error=f'no answer, asked {len(try_timeouts)} times')
        self._clock = native.time.monotonic
        self._selector = NativeSelector(native)
        self._queue: collections.deque[SweepPage] = collections.deque()
        self._channels: dict[str, SweepChannel] = {}
        self._by_fd: dict[int, SweepChannel] = {}
        self._pages: dict[SweepPage, None] = {}
        self._now = self._next_check = self._clock()
        self._stop_deadline: float | None = None

    def put(self, page: SweepPage) -> None:
        """Run *page*; from any thread."""
        self._queue.append(page)
        self._selector.wake()

    def stop(self, seconds: float = 0.0) -> None:
        """End :meth:`run` when no page is left, or after *seconds*; from any thread."""
        self._stop_deadline = self._clock() + seconds
        self._selector.wake()

    def unfinished_pages(self) -> list[SweepPage]:
        """The pages that had not ended when :meth:`run` did."""
        return [*self._pages, *self._queue]

    def run(self) -> None:
        """The loop of the thread."""
        while not self._is_done():
            ready = self._selector.wait(self._seconds_to_next_check())
            try:
                self._run_once(ready)
            except Exception:  # an error in one page must not stop the others
                self._native.post(traceback.format_exc())
                for channel in list(self._by_fd.values()):
                    self._fail_channel(channel, SoaReply(Answer.BAD, error='it could not be asked'))
        self._close_channels()
        self._selector.close()

    def _is_done(self) -> bool:
        return self._stop_deadline is not None and (not self._pages and not self._queue
                                                    or self._clock() >= self._stop_deadline)

    def _seconds_to_next_check(self) -> float | None:
        """Seconds until the next check of timeouts; None when no page is in progress."""
        if self._queue:  # the last turn failed before it took them
            return 0.0
        return max(0.0, self._next_check - self._clock()) if self._pages else None

    def _run_once(self, ready: list[int]) -> None:
        self._now = self._clock()
        for fd in ready:
            channel = self._by_fd.get(fd)
            if channel is not None:
                self._receive(channel)
                self._send(channel, immediately=False)
        while self._queue:
            self._start_page(self._queue.popleft())
        if self._now >= self._next_check and self._pages:
            self._next_check = self._now + self._check_interval
            for channel in list(self._by_fd.values()):
                self._check_timeouts(channel)
                self._send(channel)
        if not self._pages:
            self._close_channels()

    def _start_page(self, page: SweepPage) -> None:
        page.prepare()
        page.started = self._now
        self._pages[page] = None
        if not page.results:
            self._end_page(page)
        channels = [self._channel_of(result.peer) for result in page.results]
        least = min((len(channel.results) for channel in channels), default=0)
        for channel, result in zip(channels, page.results):
            if channel.sock is None or not result.left or self._is_behind(channel, least):
                self._end_result(result)
                continue
            channel.add(result)
            self._send(channel)

    def _is_behind(self, channel: SweepChannel, least: int) -> bool:
        """
        :param least: how many pages wait for the quickest server
        """
        return len(channel.results) - least >= MAX_PAGES_BEHIND and (
            channel.last_reply_at + MAX_QUIET <= self._now
            or channel.results[0].page.started + self._max_late <= self._now)

    def _channel_of(self, peer: AllowedPeer) -> SweepChannel:
        """The server's channel, with a socket if one can be opened."""
        channel = self._channels.get(peer.id)
        if channel is None or channel.peer != peer:
            if channel is not None:
                self._fail_channel(channel, self._silence)
                self._close(channel)
            channel = self._channels[peer.id] = SweepChannel(peer, len(self._try_timeouts))
        if channel.sock is None and peer.addresses:
            channel.sock = self._open_socket(peer)
            channel.last_reply_at = self._now
            if channel.sock is not None:
                channel.gso = UdpGso(channel.sock)
                self._by_fd[channel.sock.fileno()] = channel
                self._selector.watch(channel.sock.fileno())
        return channel

    def _open_socket(self, peer: AllowedPeer) -> Any:
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

    def _send(self, channel: SweepChannel, immediately: bool = True) -> None:
        """Send what is queued, as far as the window allows: retries first, then new queries.

        :param immediately: otherwise new queries wait until the window has room for a batch
        """
        least = 1 if immediately else max(1, channel.window.size // _WINDOW_PARTS)
        try:
            while channel.retries and channel.room > 0:
                key, query_number, tries_done = channel.retries[0]
                if channel.pending.get(key) == query_number:
                    self._send_again(channel, key, query_number)
                    channel.sent[tries_done].append((self._now, [key], range(query_number, query_number + 1)))
                channel.retries.popleft()
            if channel.room >= least:
                while channel.results and channel.room > 0:
                    self._send_new(channel, channel.results[0])
        except BlockingIOError:
            return  # the next check of timeouts sends it
        except OSError as error:
            self._fail_channel(channel, SoaReply(Answer.TIMEOUT, error=error_text(error.errno),
                                                 reason=Reason.UNREACHABLE))

    def _send_again(self, channel: SweepChannel, key: bytes, query_number: int) -> None:
        """
        :raises OSError: when it could not be sent
        """
        message, _ = channel.signed.get(key, (b'', b''))
        result = channel.result_of(query_number)
        channel.sock.send(message or key + result.page.queries[query_number - result.first])
        channel.late.discard(key)
        channel.in_flight += 1

    def _send_new(self, channel: SweepChannel, result: PeerResult) -> None:
        """Send a batch of new queries of one length.

        :raises OSError: when none could be sent
        """
        start, queries = result.next, result.page.queries
        stop = result.page.end_of_length(start, min(len(queries), start + channel.room, start + udp_gso.MAX_SEGMENTS))
        keys = channel.ids.take(stop - start, channel.pending)
        messages = list(map(operator.add, keys, queries[start:stop]))
        signed = [] if channel.peer.key is None else self._sign(messages, channel.peer.key)
        sent = channel.gso.send(messages)
        result.next += sent
        channel.mark_sent(self._now, keys[:sent], range(result.first + start, result.first + result.next), signed)
        if result.next == len(queries):
            channel.results.popleft()
        if sent < len(keys):
            raise BlockingIOError

    def _sign(self, messages: list[bytes], key: Key) -> list[tuple[bytes, bytes]]:
        """Sign each of *messages* in place; (message, MAC) for each."""
        signed = []
        for position, message in enumerate(messages):
            signer = tsig.Signer(key)
            messages[position] = signer.sign(message, int(self._native.time.time()))
            signed.append((messages[position], signer.mac))
        return signed

    def _receive(self, channel: SweepChannel) -> None:
        reply_count = channel.reply_count
        try:
            self._drain(channel)
        except BlockingIOError:
            pass
        except OSError as error:
            self._fail_channel(channel, SoaReply(Answer.TIMEOUT, error=error_text(error.errno),
                                                 reason=Reason.UNREACHABLE))
        if channel.reply_count != reply_count:
            channel.last_reply_at, channel.silent = self._now, False

    def _drain(self, channel: SweepChannel) -> None:
        """
        :raises OSError: when there is nothing more to read
        """
        recv, pending, late, window = channel.sock.recv, channel.pending, channel.late, channel.window
        is_signed = channel.peer.key is not None
        first = last = 0
        for _ in range(_BATCH):
            reply = recv(_MAX_DATAGRAM)
            key = reply[:2]
            query_number = pending.get(key)
            if query_number is None:
                continue
            if not first <= query_number < last:
                result = channel.result_of(query_number)
                tails, expected = result.page.tails, result.page.expected_serials
                first, last = result.first, result.first + len(tails)
            position = query_number - first
            tail = tails[position]
            start = 18 + len(tail)
            if (reply.startswith(tail, 12) and reply[2:8] in PLAIN_HEADERS and len(reply) >= start + _MIN_SOA_RDATA
                    and not is_signed):
                end = start + (reply[start - 2] << 8) + reply[start - 1]
                is_right = (len(reply) >= end >= start + _MIN_SOA_RDATA
                            and reply[end - 20:end - 16] == expected[position])
            else:
                is_right = False
            if not is_right and not self._read(channel, reply, result, position):
                continue
            del pending[key]
            if is_signed:
                del channel.signed[key]
            if late and key in late:
                late.discard(key)
            else:
                channel.in_flight -= 1
            channel.reply_count += 1
            if window.size < MAX_SIZE:
                window.answered()
            result.answered += 1
            result.left -= 1
            if not result.left:
                self._end_result(result)

    def _read(self, channel: SweepChannel, message: bytes, result: PeerResult, position: int) -> bool:
        """Parse a reply that is not the plain expected one; whether it answers the query."""
        page, (_, mac) = result.page, channel.signed.get(message[:2], (b'', b''))
        reply = soa_query.read_soa(message, page.queries[position], channel.peer.key, mac,
                                   int(self._native.time.time()))
        if reply is None:
            return False
        if reply.truncated:  # by response rate limiting; a later try may get the full reply
            channel.window.truncated(self._now, self._now)
            channel.last_reply_at = self._now
            return False
        expected = int.from_bytes(page.expected_serials[position], 'big')
        if reply.serial != expected:  # also a newer one, which the pool may never have issued
            result.findings.append((page.domain_indexes[position], reply))
        return True

    def _check_timeouts(self, channel: SweepChannel) -> None:
        """Queue retries of queries that have timed out, fail those without a try left, drop pages that take too long.
        """
        now, silent = self._now, False
        for tries_done, (sent, wait) in enumerate(zip(channel.sent, self._try_timeouts), 1):
            while sent and sent[0][0] + wait <= now:
                at, keys, query_numbers = sent.popleft()
                expired = [(key, each) for key, each in zip(keys, query_numbers) if channel.pending.get(key) == each]
                for key, each in expired:
                    channel.in_flight -= 1
                    if tries_done < len(self._try_timeouts):
                        channel.retries.append((key, each, tries_done))
                        channel.late.add(key)
                    else:
                        del channel.pending[key]
                        channel.signed.pop(key, None)
                        self._record_failure(channel.result_of(each), each, self._silence)
                        silent = silent or channel.last_reply_at <= now - sum(self._try_timeouts)
                if expired:
                    channel.window.lost(at, now)
        if silent:
            self._fail_channel(channel, self._silence)
            channel.silent = True
        while channel.results and channel.results[0].page.started + PAGE_TIMEOUT <= now:
            self._skip_rest(channel.results.popleft())

    def _fail_channel(self, channel: SweepChannel, why: SoaReply) -> None:
        """Fail the queries that were sent to the server, and skip those that were not."""
        pending, results = [(channel.result_of(each), each) for each in channel.pending.values()], list(channel.results)
        channel.clear()
        for result, each in pending:
            self._record_failure(result, each, why)
        for result in results:
            self._skip_rest(result)

    def _record_failure(self, result: PeerResult, query_number: int, why: SoaReply) -> None:
        result.unanswered += 1
        result.findings.append((result.page.domain_indexes[query_number - result.first], why))
        result.left -= 1
        if not result.left:
            self._end_result(result)

    def _skip_rest(self, result: PeerResult) -> None:
        """Skip the queries that have not been sent."""
        skipped, result.next = len(result.page.queries) - result.next, len(result.page.queries)
        result.left -= skipped
        if skipped and not result.left:
            self._end_result(result)

    def _end_result(self, result: PeerResult) -> None:
        """All queries of the page to this server have ended."""
        result.page.open -= 1
        if not result.page.open:
            self._end_page(result.page)

    def _end_page(self, page: SweepPage) -> None:
        del self._pages[page]
        self._native.post(page)

    def _close_channels(self) -> None:
        """Close all sockets while no page is in progress."""
        for channel in list(self._by_fd.values()):
            channel.clear()
            self._close(channel)

    def _close(self, channel: SweepChannel) -> None:
        if channel.sock is not None:
            self._selector.unwatch(channel.sock.fileno())
            del self._by_fd[channel.sock.fileno()]
            channel.sock.close()
            channel.sock = None
