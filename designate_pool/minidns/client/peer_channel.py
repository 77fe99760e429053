"""What is under way to one server, by its address and port."""

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

#: Connections at a time; servers have few for everybody.
MOST_STREAMS = 8
_IDS = struct.Struct('!2048H')


class PeerChannel:
    """
    :ivar sock: of the address's family; *bursts* sends on it to the address
    :ivar pending: errands whose datagram may still be answered, by the message's id
    :ivar queue: errands that wait to be sent
    :ivar recent: the datagrams of the last second: when, whose, and which of its errand's
    :ivar in_flight: the errands among them that are not answered
    :ivar by_tcp: errands that wait for a connection
    :ivar streams: errands that have one
    """

    __slots__ = ('sock', 'address', 'bursts', 'window', 'pending', 'queue', 'recent', 'in_flight', 'by_tcp', 'streams',
                 'wake', '_ids')

    def __init__(self, sock: Any, address: tuple[str, int]) -> None:
        self.sock = sock
        self.address = address
        self.bursts = udp_gso.UdpGso(sock, address)
        self.window = CongestionWindow()
        self.pending: dict[int, RetryingQuery] = {}
        self.queue: collections.deque[RetryingQuery] = collections.deque()
        self.recent: collections.deque[tuple[float, RetryingQuery, int]] = collections.deque()
        self.in_flight = 0
        self.by_tcp: collections.deque[RetryingQuery] = collections.deque()
        self.streams: dict[RetryingQuery, TcpQuery] = {}
        self.wake: float | None = None
        self._ids: list[int] = []

    def take(self) -> list[RetryingQuery]:
        """Errands whose turn has come, with their messages: as many as there is room for and can be sent in one go."""
        most = min(self.window.size - self.in_flight, udp_gso.MOST) if self.bursts.can_cut else 1
        found: list[RetryingQuery] = []
        length = 0
        while self.queue and len(found) < most:
            errand = self.queue[0]
            if not errand.ended:
                message = errand.message or self._compose(errand)
                if found and len(message) != length:
                    break
                length = len(message)
                found.append(errand)
            self.queue.popleft()
        return found

    def give_back(self, errands: list[RetryingQuery]) -> None:
        """Have *errands* wait in the queue as before."""
        self.queue.extendleft(reversed(errands))

    def has_asked(self, quoted: bytes) -> bool:
        """Whether *quoted* begins with a question that may still be answered, its id and the spelling of its name."""
        errand = self.pending.get(int.from_bytes(quoted[:2], 'big'))
        if errand is None or errand.message is None:
            return False
        length = 2 + len(errand.asked)
        return quoted[:length] == errand.message[:length]

    def _compose(self, errand: RetryingQuery) -> bytes:
        """The message of a new try."""
        number = self._free_id()
        errand.asked = errand.compose()
        message = number.to_bytes(2, 'big') + errand.asked
        if errand.peer.key is not None:
            signer = tsig.Signer(errand.peer.key)
            message = signer.sign(message, int(time.time()))
            errand.mac = signer.mac
        errand.id, errand.message = number, message
        self.pending[number] = errand
        return message

    def _free_id(self) -> int:
        """A message id that is not in use, and that nobody can guess."""
        while True:
            if not self._ids:
                self._ids = list(_IDS.unpack(os.urandom(_IDS.size)))
            number = self._ids.pop()
            if number not in self.pending:
                return number

    def settle(self, errand: RetryingQuery) -> None:
        """*errand* is no longer under way."""
        if errand.counted:
            errand.counted = False
            self.in_flight -= 1

    def forget_old(self, now: float) -> None:
        """A datagram that was not answered for a second is lost, and no longer in the server's buffer."""
        recent = self.recent
        while recent:
            sent_at, errand, number = recent[0]
            if errand.counted and errand.sends == number:
                if sent_at + FIRST_RESEND > now:
                    return
                self.settle(errand)
                self.window.lost(sent_at, now)
            recent.popleft()
