"""What is under way to one server of a survey."""

from __future__ import annotations

import collections
import itertools
import os
import struct
from collections.abc import Sequence
from typing import Any

from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.client.congestion_window import CongestionWindow
from designate_pool.minidns.soa_sweep.page import PeerResult

#: Seconds that each try waits for its answer.
WAITS = (1.0, 1.0, 2.0)
_IDS = struct.Struct('2s' * 2048)

#: Messages that went out together: when, their ids, and the numbers of their questions.
Sent = tuple[float, list[bytes], range]


class SweepChannel:
    """
    Questions to the server have numbers that never come again.

    :ivar bursts: the way to send on *sock*, where there is one
    :ivar pending: the questions that may still be answered, by the message's id
    :ivar signed: of these, where the server has a key, the message and its MAC
    :ivar sent: what went out as each try, oldest first
    :ivar again: what has to go out once more, with the number of its next try
    :ivar late: ids of what was not answered in its time and waits to go out, or for nothing but a late answer
    :ivar tallies: what is not asked yet; *under_way*, what is, in whole or in part
    :ivar in_flight: of *pending*, what may be in the server's buffer
    :ivar heard: answers, ever
    """

    __slots__ = ('peer', 'sock', 'bursts', 'window', 'pending', 'signed', 'sent', 'again', 'late', 'tallies',
                 'under_way', 'in_flight', 'heard', 'heard_at', 'silent', '_ids', '_numbers')

    def __init__(self, peer: AllowedPeer) -> None:
        self.peer = peer
        self.sock: Any = None
        self.bursts: Any = None
        self.window = CongestionWindow()
        self.silent = False
        self.heard = 0
        self.heard_at = 0.0
        self._ids: list[bytes] = []
        self._numbers = 0
        self.clear()

    def clear(self) -> None:
        self.pending: dict[bytes, int] = {}
        self.signed: dict[bytes, tuple[bytes, bytes]] = {}
        self.sent: tuple[collections.deque[Sent], ...] = tuple(collections.deque() for _ in WAITS)
        self.again: collections.deque[tuple[bytes, int, int]] = collections.deque()
        self.late: set[bytes] = set()
        self.tallies: collections.deque[PeerResult] = collections.deque()
        self.under_way: list[PeerResult] = []
        self.in_flight = 0

    @property
    def room(self) -> int:
        return (1 if self.silent else self.window.size) - self.in_flight

    def free_ids(self, most: int) -> list[bytes]:
        """Different message ids that are not in use, and that nobody can guess: 1 to *most*."""
        while True:
            if len(self._ids) < most:
                self._ids += _IDS.unpack(os.urandom(_IDS.size))
            some = self._ids[-most:]
            del self._ids[-most:]
            found = list(dict.fromkeys(itertools.filterfalse(self.pending.__contains__, some)))
            if found:
                return found

    def add(self, tally: PeerResult) -> None:
        """Have *tally* wait to be asked."""
        tally.first = self._numbers
        self._numbers += len(tally.page.queries)
        self.under_way = [each for each in self.under_way if each.left]
        self.under_way.append(tally)
        self.tallies.append(tally)

    def tally_of(self, question: int) -> PeerResult:
        """Whose *question* is, which is pending."""
        return next(each for each in self.under_way if each.first <= question < each.first + len(each.page.queries))

    def has_sent(self, now: float, keys: list[bytes], asked: range, signed: Sequence[tuple[bytes, bytes]]) -> None:
        """The first try of these questions is on its way.

        :param signed: as many at least, where the server has a key; none where it has not
        """
        self.pending.update(zip(keys, asked))
        self.signed.update(zip(keys, signed))
        self.in_flight += len(keys)
        self.sent[0].append((now, keys, asked))
