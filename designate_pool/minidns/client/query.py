"""A query that is repeated until the server gives the expected answer, or the tries are used up.

It is a state machine without socket and clock: :class:`~designate_pool.minidns.client.event_loop.ClientLoop` calls it
with what happened and the time, and does the step that it returns.  It makes 1 + *max_retries* tries,
*retry_interval* seconds apart.  A try lasts until the first reply, or *timeout* seconds; within it the same datagram
is sent again after 1, 2, 4, ... seconds, because datagrams get lost.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable
from typing import Any, ClassVar

from designate_pool import serial as serials
from designate_pool.minidns.acl import AllowedPeer
from designate_pool.model import Answer, Reason
from designate_pool.protocol import wire
from designate_pool.protocol.soa_query import SoaReply

#: Seconds until a datagram that nothing answers is sent again, and counts as lost.
FIRST_RESEND = 1.0


class NextStep(enum.Enum):
    """What the loop is to do for a query."""

    SEND = 'send'
    TCP = 'tcp'
    END = 'end'


#: What to do now, or the time of the next timer.
Step = NextStep | float


@dataclasses.dataclass(frozen=True, slots=True)
class RetrySchedule:
    """Times in seconds, how many tries follow the first, and by which factor the interval grows up to the longest."""

    timeout: float
    retry_interval: float
    max_retries: int
    first_resend: float = FIRST_RESEND
    growth: float = 1.0
    longest_interval: float = math.inf


@dataclasses.dataclass(eq=False)
class RetryingQuery:
    """SOA queries to one server until it serves a serial, sent with the letters of the name in random case.

    :ivar serial: the expected serial or a newer one; None for any
    :ivar on_end: called with the query and the last reply when it is the expected one, or the tries are used up
    :cvar opcode: of a query, or of a NOTIFY
    :ivar unproven_reply: a reply that may be forged; the server is asked again over TCP because of it
    :ivar template: the message without its id
    :ivar sent_template: the same as it was sent in this try
    :ivar wake_at: the time of the next timer
    :ivar queued: whether it waits to be sent
    """

    opcode: ClassVar[int] = wire.QUERY

    peer: AllowedPeer
    name: str
    serial: int | None
    schedule: RetrySchedule
    on_end: Callable[[Any, SoaReply], None]
    unproven_reply: SoaReply | None = dataclasses.field(default=None, init=False)
    tries: int = dataclasses.field(default=0, init=False)
    try_deadline: float | None = dataclasses.field(default=None, init=False)
    in_try: bool = dataclasses.field(default=False, init=False)
    resend_interval: float = dataclasses.field(default=0.0, init=False)

    # The loop's: the PeerChannel, the message of the try, and where the query is.
    channel: Any = dataclasses.field(default=None, init=False)
    wake_at: float | None = dataclasses.field(default=None, init=False)
    template: bytes = dataclasses.field(default=b'', init=False)
    sent_template: bytes = dataclasses.field(default=b'', init=False)
    message: bytes | None = dataclasses.field(default=None, init=False)
    id: bytes = dataclasses.field(default=b'', init=False)
    mac: bytes = dataclasses.field(default=b'', init=False)
    queued: bool = dataclasses.field(default=False, init=False)
    over_tcp: bool = dataclasses.field(default=False, init=False)
    ended: bool = dataclasses.field(default=False, init=False)

    def is_expected(self, reply: SoaReply) -> bool:
        """Whether *reply* is the expected one, which ends the query."""
        return reply.answer is Answer.SERIAL and (
            self.serial is None or reply.serial is not None and serials.at_least(reply.serial, self.serial))

    def on_sent(self, now: float) -> float:
        """The datagram has been sent; the time of the next timer."""
        if self.try_deadline is None:
            self.try_deadline = now + self.schedule.timeout
        wake_at = min(now + self.resend_interval, self.try_deadline)
        self.resend_interval *= 2
        return wake_at

    def on_timer(self, now: float) -> Step:
        """The time of the timer has come: begin a try, end it, or send the datagram again."""
        if not self.in_try:
            self.tries += 1
            self.in_try, self.try_deadline, self.unproven_reply = True, None, None
            self.resend_interval = self.schedule.first_resend
        elif self.try_deadline is not None and now >= self.try_deadline:
            return self.on_failure(self.no_answer, now, Reason.TIMEOUT)
        return NextStep.SEND

    def on_reply(self, reply: SoaReply, now: float) -> Step:
        """The server has replied."""
        if reply.truncated or reply.doubtful:
            self.unproven_reply = reply if reply.doubtful else None
            return NextStep.TCP
        self.unproven_reply = None
        if self.is_expected(reply):
            self.on_end(self, reply)
            return NextStep.END
        return self.end_try(reply, now)

    @property
    def no_answer(self) -> str:
        """The error of a try that got no reply."""
        return f'no answer within {self.schedule.timeout:g} s'

    def on_failure(self, why: str, now: float, reason: Reason = Reason.UNREACHABLE) -> Step:
        """The datagram could not be delivered, or nothing came back."""
        if self.unproven_reply is not None:  # there was a reply over UDP, and TCP could not confirm it
            unproven, self.unproven_reply = self.unproven_reply, None
            error = f'{unproven.error or "there was an answer"}, but without proof; {why}'
            return self.end_try(SoaReply(Answer.BAD, error=error, reason=unproven.reason or reason), now)
        return self.end_try(SoaReply(Answer.TIMEOUT, error=why, reason=reason), now)

    def end_try(self, reply: SoaReply, now: float) -> Step:
        """The try has ended without the expected answer: the time of the next try, or the end of the query."""
        self.in_try = False
        if self.tries > self.schedule.max_retries:
            self.on_end(self, reply)
            return NextStep.END
        return now + min(self.schedule.retry_interval * self.schedule.growth ** (self.tries - 1),
                         self.schedule.longest_interval)
