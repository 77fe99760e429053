"""SOA polls: learn which serial a server serves, and tell.

A :class:`Poll` asks on a timed schedule.  A :class:`Glance` asks a server that has just fetched a zone, in a moment and
a few times more within the second that loading may take; it confirms the poll for that server and zone, or, where
another MiniDNS holds the request, tells unasked.

A server that was notified is taken to be fetching until it has had a transfer, here or, as a request may tell, from
another MiniDNS, or *retry_interval* seconds are over.  A change of that zone in the meantime is not news to it: what it
fetches may have the change in it already.  Only when that turns out otherwise it is notified once more, of all such
changes together.

The tries of a round belong to the server's failure, not to the serial: where a change takes the place of another time
after time, a server that has got no further for as long as a round takes is told of as failed all the same.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence

from designate_pool import metrics
from designate_pool import serial as serials
from designate_pool.minidns import counters
from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.client.event_loop import ClientLoop
from designate_pool.minidns.client.mailbox import BEAT
from designate_pool.minidns.client.notifier import Notifier
from designate_pool.minidns.client.query import NextStep, RetryingQuery, RetrySchedule, Step
from designate_pool.model import Answer, Context, Domain, Outcome, PollResult
from designate_pool.protocol import soa_query, wire
from designate_pool.protocol.soa_query import SoaReply

#: Seconds from the first look at a server, which is a moment after the end of its transfer, to each look.
GLANCES = (0.0, 0.004, 0.014, 0.034, 0.084, 0.184, 0.384, 0.784)
_LAST_LOOK = 0.5
_NO_SCHEDULE = RetrySchedule(0, 0, 0)
_SILENCE = SoaReply(Answer.TIMEOUT, reason='no answer')


@dataclasses.dataclass(frozen=True, slots=True)
class ToPool:
    """Tell a pool's manager, in batches."""

    pool_name: str
    context: Context = dataclasses.field(compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class ToAsker:
    """Tell who asked for one domain at one destination, in the asker's own words."""

    context: Context = dataclasses.field(compare=False)
    domain: Domain
    destination: str


Recipient = ToPool | ToAsker
Found = tuple[Recipient, PollResult]
Report = Callable[..., None]


@dataclasses.dataclass(frozen=True, slots=True)
class PollOrder:
    """Poll *peer* for zone *name* until it serves *serial* or newer.

    :ivar notify: send it a NOTIFY first
    :ivar poll: whether to poll at all
    :ivar delay: seconds in which the server may fetch the zone by itself before it is polled, and notified if need be
    :ivar seen: the newest serial that it is known to have served
    :ivar incarnation: see :class:`~designate_pool.model.PollRequest`
    """

    peer: AllowedPeer
    domain_id: str
    name: str
    serial: int
    recipient: Recipient
    notify: bool = True
    poll: bool = True
    delay: float = 0.0
    seen: int | None = None
    incarnation: int | None = None


class _Question(RetryingQuery):
    """An SOA query."""

    __slots__ = ('domain_id', 'serial', '_over')

    def __init__(self, peer: AllowedPeer, domain_id: str, name: str, serial: int, schedule: RetrySchedule,
                 over: Callable[..., None]) -> None:
        super().__init__(peer, name, soa_query.soa_query(wire.wire_of(name)), schedule)
        self.domain_id = domain_id
        self.serial = serial
        self._over = over

    def compose(self) -> bytes:
        return soa_query.mixed(self.template)

    def read(self, message: bytes, now: int, over_tcp: bool = False) -> SoaReply | None:
        return soa_query.read_soa(message, self.template, self.peer.key, self.mac, now,
                                  None if over_tcp else self.asked)

    def take(self, said: SoaReply) -> bool:
        if said.serial is None or not serials.at_least(said.serial, self.serial):
            return False
        self._over(self, said)
        return True

    def give_up(self, said: SoaReply) -> None:
        self._over(self, said)


class SoaPoll(_Question):
    """A question on a timed schedule.

    :param notify: sends another NOTIFY, at the end of each try but the first that the server has answered: one whose
        transfer has failed does not try again by itself before its own retry time; None for none
    :ivar seen: the serial that the latest answer had
    :ivar told: the serial that it was notified of
    :ivar fetching_until: when it is no longer taken to be fetching that
    :ivar started: when it was asked for, in seconds of the monotonic clock
    :ivar failing_since: since when the server has got no further, through polls whose place this one has taken
    :ivar said: the latest answer, to this poll or those
    """

    __slots__ = ('request', 'recipients', 'seen', 'started', 'failing_since', 'said', 'told', 'fetching_until',
                 '_notify', '_delay', '_notified')

    def __init__(self, request: PollOrder, schedule: RetrySchedule, over: Callable[[SoaPoll, SoaReply], None],
                 notify: Callable[[], None] | None) -> None:
        super().__init__(request.peer, request.domain_id, request.name, request.serial, schedule, over)
        self.request = request
        self.recipients = [request.recipient]
        self.seen: int | None = None
        self.started = self.failing_since = time.monotonic()
        self.said = _SILENCE
        self.told: int | None = None
        self.fetching_until = 0.0
        self._notify = notify
        self._delay = request.delay
        self._notified = not request.delay

    def begin(self, now: float) -> Step:
        if self._delay:
            wake, self._delay = now + self._delay, 0.0
            return wake
        return super().begin(now)

    def end_try(self, said: SoaReply, now: float) -> Step:
        # Only now: it may have fetched the zone from another MiniDNS.
        if said.answer is not Answer.TIMEOUT and (self.tries > 1 or not self._notified):
            self.notify(now)
        return super().end_try(said, now)

    def notify(self, now: float) -> None:
        """The server is behind: tell it."""
        if self._notify is not None:
            self._notify()
            self._notified, self.told, self.fetching_until = True, self.serial, now + self.schedule.retry_interval

    def is_outdated_by(self, request: PollOrder) -> bool:
        """Whether the server has lost the zone since this was asked for."""
        earlier, now = self.request.incarnation, request.incarnation
        return self.domain_id == request.domain_id and earlier is not None and now is not None and earlier < now

    def has_fetched(self, seen: int | None) -> bool:
        """Whether a server that has served *seen* is done with what it was notified of."""
        return seen is not None and self.told is not None and serials.at_least(seen, self.told)

    @property
    def is_held(self) -> bool:
        """Whether the server is left in peace, as it may be fetching the zone."""
        return not self.tries

    def take(self, said: SoaReply) -> bool:
        if said.serial is not None:
            self._got_further(said.serial)
            self.seen = said.serial
        self.said = said
        return super().take(said)

    def succeed(self, former: SoaPoll) -> None:
        """This poll takes the place of *former*."""
        self.failing_since, self.said, self.seen = former.failing_since, former.said, former.seen
        if self.request.seen is not None:
            self._got_further(self.request.seen)

    def is_overdue(self, now: float) -> bool:
        """Whether the server has got no further for as long as a round of tries may take."""
        tries = 1 + self.schedule.max_retries
        longest = tries * self.schedule.timeout + self.schedule.max_retries * self.schedule.retry_interval
        return now - self.failing_since >= longest

    def _got_further(self, serial: int) -> None:
        if self.seen is not None and serials.newer(serial, self.seen):
            self.failing_since = time.monotonic()

    def result(self, said: SoaReply) -> PollResult:
        if said.serial is not None and serials.at_least(said.serial, self.serial):
            return PollResult(self.domain_id, self.peer.id, Outcome.SUCCESS, Answer.SERIAL, said.serial,
                              expected_serial=self.serial, label=self.peer.label,
                              incarnation=self.request.incarnation)
        reason = said.reason
        if said.answer is Answer.SERIAL:
            reason = f'the server serves serial {said.serial}, not yet {self.serial}'
        return PollResult(self.domain_id, self.peer.id, Outcome.ERROR, said.answer, self.seen, reason, self.serial,
                          self.peer.label, self.request.incarnation)


class PostTransferPoll(_Question):
    """A few looks in quick succession, with nothing to say when they find nothing."""

    __slots__ = ('_looks', '_start')

    def __init__(self, peer: AllowedPeer, domain_id: str, name: str, serial: int,
                 over: Callable[[PostTransferPoll, SoaReply], None]) -> None:
        super().__init__(peer, domain_id, name, serial, _NO_SCHEDULE, over)
        self._looks = 0
        self._start = 0.0

    def begin(self, now: float) -> float:
        # A server does not serve at once what it has just got; and on a beat the looks of many transfers go together.
        self._start = math.ceil(now / BEAT + 0.5) * BEAT
        return self._start

    def sent(self, now: float) -> float:
        self._looks += 1
        more = self._looks < len(GLANCES)
        self.try_ends = self._start + GLANCES[-1] + _LAST_LOOK
        return self._start + GLANCES[self._looks] if more else self.try_ends

    def due(self, now: float) -> Step:
        if not self.in_try:
            return super().begin(now)
        if self._looks < len(GLANCES) and (self.try_ends is None or now < self.try_ends):
            return NextStep.SEND
        return self.end_try(SoaReply(Answer.TIMEOUT), now)

    def heard(self, said: SoaReply, now: float) -> Step:
        if said.truncated:
            return NextStep.TCP
        if not said.doubtful and self.take(said):
            return NextStep.END
        return self._next(now)

    def refused(self, why: str, now: float) -> Step:
        return self._next(now)

    def _next(self, now: float) -> Step:
        """When to look again; the answer just heard changes nothing about that."""
        return now if self.wake is None else self.wake


class SoaPoller:
    """All polls under way, one for a server and zone, and the glances beside them.

    :param report: called with the results, any number at a time, in the runtime's world
    """

    def __init__(self, exchange: ClientLoop, report: Report) -> None:
        self._exchange = exchange
        self._notifier = Notifier(exchange, self._refused)
        self._report = report
        self._polls: dict[tuple[str, str], SoaPoll] = {}
        self._glances: dict[tuple[str, str], PostTransferPoll] = {}
        metrics.POLLS_IN_FLIGHT.set_function(lambda: len(self._polls))

    def request(self, requests: Sequence[PollOrder], schedule: RetrySchedule) -> None:
        """Start *requests*; returns at once, from any thread."""
        self._exchange.submit(lambda: self._begin(requests, schedule))

    def transferred(self, peers: Sequence[AllowedPeer], domain_id: str, name: str, serial: int, pool_name: str) -> None:
        """One of *peers* has just fetched a zone: look in a moment; from any thread."""
        self._exchange.submit(lambda: self._look(peers, domain_id, name, serial, pool_name), hurried=False)

    def replace(self, peers: Mapping[str, AllowedPeer | None]) -> None:
        """Servers have changed, or are gone (None): polls under way go on with them as they are now, or end untold.

        :param peers: by id
        """
        self._exchange.submit(lambda: self._replace(peers))

    def under_way(self) -> list[SoaPoll]:
        """The polls that the exchange has left when it was stopped."""
        return list(self._polls.values())

    def notifying(self) -> list[tuple[PollOrder, RetrySchedule]]:
        """The NOTIFYs without a poll that the exchange has left when it was stopped, with the tries they have left."""
        return [(each.wanted_by, each.left) for each in self._notifier.under_way() if not each.wanted_by.poll]

    # What follows is called in the exchange's loop alone.

    def _begin(self, requests: Sequence[PollOrder], schedule: RetrySchedule) -> None:
        now = time.monotonic()
        for request in requests:
            former = self._polls.get((request.peer.id, request.name)) if request.poll else None
            told, fetching_until = None, 0.0
            if former and former.domain_id == request.domain_id and not (
                    former.has_fetched(request.seen) or former.is_outdated_by(request)):
                told, fetching_until = former.told, former.fetching_until
            if request.notify and not request.delay:
                if fetching_until > now:
                    request = dataclasses.replace(request, delay=fetching_until - now)
                else:
                    self._notify(request, schedule)
                    told, fetching_until = request.serial, now + schedule.retry_interval
            if request.poll:
                poll = self._poll(request, schedule, former)
                poll.told, poll.fetching_until = told, fetching_until

    def _notify(self, request: PollOrder, schedule: RetrySchedule) -> None:
        self._notifier.send(request.peer, request.name, request.serial, schedule, request)

    def _refused(self, peer_id: str, name: str) -> None:
        """The server does not fetch the zone for this NOTIFY."""
        poll = self._polls.get((peer_id, name))
        if poll is not None:
            poll.fetching_until = 0.0

    def _poll(self, request: PollOrder, schedule: RetrySchedule, former: SoaPoll | None) -> SoaPoll:
        """One poll at a time for a server and zone: a newer serial takes the place of an older, an equal one joins.

        Whoever waits for the older is told with the newer.  What is still heard of questions that were asked before the
        server lost the zone counts no more.
        """
        outdated = former is not None and former.is_outdated_by(request)
        if request.incarnation and (former is None or outdated):
            glance = self._glances.pop((request.peer.id, request.name), None)
            if glance is not None:
                self._exchange.end(glance)
        waiting = former.recipients if former is not None and former.domain_id == request.domain_id else []
        if former is not None:
            if serials.at_least(former.serial, request.serial) and not outdated:
                if former.domain_id == request.domain_id and request.recipient not in waiting:
                    waiting.append(request.recipient)
                return former
            self._exchange.end(former)
        again = functools.partial(self._notify, request, schedule) if request.notify else None
        poll = self._polls[request.peer.id, request.name] = SoaPoll(request, schedule, self._polled, again)
        poll.recipients[:0] = [each for each in waiting if each != request.recipient]
        if former is not None and former.domain_id == request.domain_id and not outdated:
            poll.succeed(former)
            if poll.is_overdue(poll.started):
                self._exchange.post(self._tell, (poll, poll.result(poll.said), poll.started - poll.failing_since))
                poll.failing_since = poll.started
        self._exchange.begin(poll)
        return poll

    def _replace(self, peers: Mapping[str, AllowedPeer | None]) -> None:
        self._notifier.drop(peers.keys())
        for key in [key for key in self._glances if key[0] in peers]:
            self._exchange.end(self._glances.pop(key))
        for key in [key for key in self._polls if key[0] in peers]:
            former = self._polls.pop(key)
            self._exchange.end(former)
            peer = peers[key[0]]
            if peer is not None:
                self._begin([dataclasses.replace(former.request, peer=peer, recipient=recipient)
                             for recipient in former.recipients], former.schedule)

    def _polled(self, poll: SoaPoll, said: SoaReply) -> None:
        """*poll* is over."""
        key = poll.peer.id, poll.name
        del self._polls[key]
        result = poll.result(said)
        self._exchange.post(self._tell, (poll, result, time.monotonic() - poll.started))
        glance = self._glances.get(key)
        if glance is not None and result.status is Outcome.SUCCESS:
            self._exchange.end(self._glances.pop(key))

    def _look(self, peers: Sequence[AllowedPeer], domain_id: str, name: str, serial: int, pool_name: str) -> None:
        recipient = ToPool(pool_name, Context())
        for peer in peers:
            key = peer.id, name
            former = self._glances.pop(key, None)
            if former is not None:
                self._exchange.end(former)
            poll = self._polls.get(key)
            if poll is not None:
                poll.fetching_until = 0.0
            glance = PostTransferPoll(peer, domain_id, name, serial,
                                      lambda each, said: self._looked(each, said, recipient))
            self._glances[key] = glance
            self._exchange.begin(glance)

    def _looked(self, glance: PostTransferPoll, said: SoaReply, recipient: Recipient) -> None:
        """*glance* is over; what it saw is for whoever waits for that server and zone, or else for the pool."""
        key = glance.peer.id, glance.name
        del self._glances[key]
        if said.serial is None:
            return
        poll = self._polls.get(key)
        if poll is None:
            self._exchange.post(self._tell_unasked, (recipient, PollResult(
                glance.domain_id, glance.peer.id, Outcome.SUCCESS, Answer.SERIAL, said.serial,
                label=glance.peer.label)))
        elif serials.at_least(said.serial, poll.serial):
            self._polled(poll, said)
            self._exchange.end(poll)
        elif poll.is_held:
            poll.notify(time.monotonic())
            self._exchange.hurry(poll)

    # In the runtime's world.

    def _tell(self, over: Sequence[tuple[SoaPoll, PollResult, float]]) -> None:
        for poll, result, seconds in over:
            counters.polled(poll.peer, result, seconds)
        self._report(*((recipient, result) for poll, result, _ in over for recipient in poll.recipients))

    def _tell_unasked(self, found: Sequence[Found]) -> None:
        self._report(*found)
