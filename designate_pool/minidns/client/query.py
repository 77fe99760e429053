"""Something to ask a server until it gives the wanted answer: what to do next, and when.

An errand is a state machine without a socket and without a clock.  It makes 1 + *max_retries* tries, *retry_interval*
seconds apart.  A try lasts until the first reply, or *timeout* seconds; within it the same datagram is sent again
after 1, 2, 4, ... seconds, because datagrams get lost.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.model import Answer
from designate_pool.protocol.soa_query import SoaReply

FIRST_RESEND = 1.0


class NextStep(enum.Enum):
    """What an errand wants done."""

    SEND = 'send'
    TCP = 'tcp'
    END = 'end'


#: What to do, or at which time to come back.
Step = NextStep | float


@dataclasses.dataclass(frozen=True, slots=True)
class RetrySchedule:
    """Seconds, and how many tries follow the first."""

    timeout: float
    retry_interval: float
    max_retries: int


class RetryingQuery:
    """One question to one server.

    :param name: the zone's
    :param template: the message without its id
    :ivar asked: as it was sent
    :ivar doubt: what the server is asked over TCP for, as it may have come from somebody else
    """

    __slots__ = ('peer', 'name', 'template', 'asked', 'doubt', 'schedule', 'tries', 'try_ends', 'in_try', 'gap', 'wake',
                 'message', 'id', 'mac', 'queued', 'counted', 'sends', 'sent_at', 'by_tcp', 'ended', 'channel')

    def __init__(self, peer: AllowedPeer, name: str, template: bytes, schedule: RetrySchedule) -> None:
        self.peer = peer
        self.name = name
        self.template = self.asked = template
        self.doubt: SoaReply | None = None
        self.schedule = schedule
        self.tries = 0
        self.try_ends: float | None = None
        self.in_try = False
        self.gap = FIRST_RESEND
        # The loop's notes: its PeerChannel, when to come back, the try's message, its id and MAC, how many datagrams
        # were sent and when the last, and whether it is waiting to be sent, counts as under way, is asked over TCP,
        # and is over.
        self.channel: Any = None
        self.wake: float | None = None
        self.message: bytes | None = None
        self.id = 0
        self.mac = b''
        self.queued = self.counted = self.by_tcp = self.ended = False
        self.sends = 0
        self.sent_at = 0.0

    @property
    def left(self) -> RetrySchedule:
        """The schedule of the tries that are left, the present one among them."""
        done = self.tries - 1 if self.in_try else self.tries
        return dataclasses.replace(self.schedule, max_retries=max(0, self.schedule.max_retries - done))

    def compose(self) -> bytes:
        """What is sent in a new try, without its id."""
        return self.template

    def read(self, message: bytes, now: int, over_tcp: bool = False) -> SoaReply | None:
        """What *message* says; None when it does not answer this errand."""
        raise NotImplementedError

    def take(self, said: SoaReply) -> bool:
        """Whether this is what was wanted; the errand is over then."""
        raise NotImplementedError

    def give_up(self, said: SoaReply) -> None:
        """The last try ended with *said*."""
        raise NotImplementedError

    def begin(self, now: float) -> Step:
        self.tries += 1
        self.in_try, self.try_ends, self.gap, self.doubt = True, None, FIRST_RESEND, None
        return NextStep.SEND

    def sent(self, now: float) -> float:
        """The datagram has been sent; when to come back."""
        if self.try_ends is None:
            self.try_ends = now + self.schedule.timeout
        wake = min(now + self.gap, self.try_ends)
        self.gap *= 2
        return wake

    def due(self, now: float) -> Step:
        """The time has come that was asked for."""
        if not self.in_try:
            return self.begin(now)
        if self.try_ends is not None and now >= self.try_ends:
            return self.refused(f'no answer within {self.schedule.timeout:g} s', now)
        return NextStep.SEND

    def heard(self, said: SoaReply, now: float) -> Step:
        """The server has answered."""
        if said.truncated or said.doubtful:
            self.doubt = said if said.doubtful else None
            return NextStep.TCP
        self.doubt = None
        if self.take(said):
            return NextStep.END
        return self.end_try(said, now)

    def refused(self, why: str, now: float) -> Step:
        """The datagram could not be delivered, or nothing came back."""
        if self.doubt is not None:  # it was heard, though not from where it could be believed
            why, self.doubt = f'{self.doubt.reason or "there was an answer"}, but without proof; {why}', None
            return self.end_try(SoaReply(Answer.BAD, reason=why), now)
        return self.end_try(SoaReply(Answer.TIMEOUT, reason=why), now)

    def end_try(self, said: SoaReply, now: float) -> Step:
        self.in_try = False
        if self.tries > self.schedule.max_retries:
            self.give_up(said)
            return NextStep.END
        return now + self.schedule.retry_interval
