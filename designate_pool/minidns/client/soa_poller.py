"""SOA polls: find out which serial a server serves, and report it.

A :class:`SoaPoll` queries on a timed schedule.  A :class:`PostTransferPoll` queries a server that has just fetched a
zone, several times within the second that loading may take.  It completes the poll for that server and zone; where
another MiniDNS has that poll, its result is reported unsolicited.

A server that was notified is assumed to be fetching the zone until it has done a transfer (here or, as an order may
say, from another MiniDNS) or *retry_interval* seconds have passed.  Changes of that zone in the meantime send no
NOTIFY, because the transfer may contain them already.  If it turns out that it does not, one more NOTIFY is sent for
all of them.

Nearly every server that is notified has fetched the zone and been polled after the transfer before a first query could
find the new serial.  So that is sent only after a part of *retry_interval*, where a change begins on a server that
served an older serial.

A server that makes no progress is reported as failed after the time of one round of tries, also when new changes keep
replacing the poll before it has used up its tries.

The tries made while this MiniDNS transfers the zone to the server do not use up the round; then the server has the
tries of a round but the first.  What is sent to it after that does not prolong the poll again, since a server that
rejects the zone may fetch it after each NOTIFY; and nothing prolongs it beyond *max_fetch_seconds*.
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
from designate_pool.minidns.client.event_loop import POLL_INTERVAL, ClientLoop
from designate_pool.minidns.client.notifier import Notifier
from designate_pool.minidns.client.query import NextStep, RetrySchedule, SoaQuery, Step
from designate_pool.model import Answer, Context, Domain, Outcome, PollRequest, PollResult, Reason
from designate_pool.protocol import soa_query, wire
from designate_pool.protocol.soa_query import SoaReply

#: Seconds from the first query, which is sent shortly after the end of the transfer, to each query, and to the end.
POST_TRANSFER_DELAYS = (0.0, 0.002, 0.006, 0.014, 0.034, 0.084, 0.184, 0.384, 0.784, 1.284)
#: Of servers that share an address any one may have done a transfer, so all are polled after each.  The time from one
#: such poll to the next grows by ``POLL_INTERVAL`` for each so many servers; otherwise the number of queries for a
#: change would grow with the square of that of the servers.
_PEERS_PER_INTERVAL = 5
#: Most zones and servers of which is known that a poll after a transfer has succeeded; the oldest are dropped.
_MAX_CONFIRMED = 10_000
#: The part (1/n) of the retry interval for which a server that was notified is not queried.
_PATIENCE_SHARE = 4
_NO_SCHEDULE = RetrySchedule(0, 0, 0)
_SILENCE = SoaReply(Answer.TIMEOUT, error='no answer')


@dataclasses.dataclass(frozen=True, slots=True)
class ToPool:
    """Report to a pool's manager, in batches."""

    pool_name: str
    context: Context = dataclasses.field(compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class ToCaller:
    """Report to the caller of a method on one domain and destination, which gets both back as it gave them."""

    context: Context = dataclasses.field(compare=False)
    domain: Domain
    destination: str


Recipient = ToPool | ToCaller
AddressedResult = tuple[Recipient, PollResult]
Report = Callable[..., None]
#: Whether a zone (name) is being transferred to a server (id).
IsFetching = Callable[[str, str], bool]


@dataclasses.dataclass(frozen=True, slots=True)
class PollOrder:
    """A request, with the server that it is about and who gets the result.

    :ivar peer: whom to poll
    :ivar notified: whom to notify; None for *peer*
    """

    peer: AllowedPeer
    recipient: Recipient
    request: PollRequest
    notified: AllowedPeer | None = None


class _PollQuery(SoaQuery):
    """SOA queries until the server serves a serial.

    :ivar key: the server and the domain that it is about
    """

    __slots__ = ('domain_id', 'serial', 'key', '_on_end')

    def __init__(self, peer: AllowedPeer, domain_id: str, name: str, serial: int, schedule: RetrySchedule,
                 on_end: Callable[..., None]) -> None:
        super().__init__(peer, name, soa_query.soa_query(wire.wire_of(name)), schedule)
        self.domain_id = domain_id
        self.serial = serial
        self.key = peer.id, domain_id
        self._on_end = on_end

    def accept(self, reply: SoaReply) -> bool:
        if reply.serial is None or not serials.at_least(reply.serial, self.serial):
            return False
        self._on_end(self, reply)
        return True

    def fail(self, reply: SoaReply) -> None:
        self._on_end(self, reply)


class SoaPoll(_PollQuery):
    """SOA queries on a timed schedule.

    :param notify: sends another NOTIFY at the end of each try but the first that the server has answered, because a
        server whose transfer has failed does not retry before its own retry time; None for no NOTIFY
    :param max_fetch_seconds: for which a server that serves no newer serial may be fetching the zone
    :ivar order: what it was started for; others may have joined it since
    :ivar seen: the serial of the latest reply
    :ivar notified_serial: the serial that the server was notified of
    :ivar fetching_until: when the server is no longer assumed to be fetching that serial
    :ivar started: when the poll was ordered; seconds of the monotonic clock, as the other times here
    :ivar failing_since: since when the server has made no progress, including the polls that this one has replaced
    :ivar last_reply: how the latest try of this poll or the ones it has replaced has ended
    """

    __slots__ = ('order', 'recipients', 'seen', 'started', 'failing_since', 'last_reply', 'notified_serial',
                 'fetching_until', '_notify', '_has_notified', '_is_fetching', '_max_fetch_seconds', '_was_fetching')

    def __init__(self, order: PollOrder, schedule: RetrySchedule, on_end: Callable[[SoaPoll, SoaReply], None],
                 notify: Callable[[], None] | None, is_fetching: IsFetching, max_fetch_seconds: float) -> None:
        request = order.request
        super().__init__(order.peer, request.domain_id, request.name, request.serial, schedule, on_end)
        self.order = order
        self.recipients = [order.recipient]
        self.seen: int | None = None
        self.started = self.failing_since = time.monotonic()
        self.last_reply = _SILENCE
        self.notified_serial: int | None = None
        self.fetching_until = 0.0
        self._notify = notify
        self._has_notified = not request.delay
        self._is_fetching = is_fetching
        self._max_fetch_seconds = max_fetch_seconds
        self._was_fetching = False

    @property
    def request(self) -> PollRequest:
        """What the poll was ordered for."""
        return self.order.request

    def end_try(self, reply: SoaReply, now: float) -> Step:
        self.last_reply = reply
        if self.is_prolonged(now):
            self.tries, self._was_fetching = min(self.tries, self.schedule.max_retries, 1), True
        else:
            if self._was_fetching:
                self._max_fetch_seconds = 0.0  # that transfer has ended; another one prolongs nothing
            # Not before the try has shown that it is behind: it may have fetched the zone from another MiniDNS.
            if reply.answer is not Answer.TIMEOUT and (self.tries > 1 or not self._has_notified):
                self.notify(now)
        return super().end_try(reply, now)

    def notify(self, now: float) -> None:
        """The server is behind: send it a NOTIFY."""
        if self._notify is not None:
            self._notify()
            self._has_notified, self.notified_serial = True, self.serial
            self.fetching_until = now + self.schedule.retry_interval

    def is_prolonged(self, now: float) -> bool:
        """Whether the server is fetching the zone, which it may do once in a round for as long as it takes."""
        return (not self.request.probe and now - self.failing_since < self._max_fetch_seconds
                and self._is_fetching(self.peer.server_id, self.name))

    def is_outdated_by(self, request: PollRequest) -> bool:
        """Whether the server has lost the zone since this poll was ordered."""
        earlier, now = self.request.incarnation, request.incarnation
        return earlier is not None and now is not None and earlier < now

    def has_fetched(self, seen: int | None) -> bool:
        """Whether a server that has served *seen* has fetched the serial that it was notified of."""
        return seen is not None and self.notified_serial is not None and serials.at_least(seen, self.notified_serial)

    @property
    def is_waiting_for_fetch(self) -> bool:
        """Whether no query has been sent yet, because the server may be fetching the zone."""
        return not self.tries

    def accept(self, reply: SoaReply) -> bool:
        if reply.serial is not None:
            self._note_progress(reply.serial)
            self.seen = reply.serial
        return super().accept(reply)

    def inherit(self, previous: SoaPoll) -> None:
        """Take over the progress of *previous*, which this poll replaces."""
        self.failing_since, self.last_reply, self.seen = previous.failing_since, previous.last_reply, previous.seen
        self._was_fetching = previous._was_fetching
        if self.request.seen is not None:
            self._note_progress(self.request.seen)

    def is_overdue(self, now: float) -> bool:
        """Whether the server has made no progress for as long as a round of tries may take."""
        tries = 1 + self.schedule.max_retries
        longest = tries * self.schedule.timeout + self.schedule.max_retries * self.schedule.retry_interval
        return now - self.failing_since >= longest and not self.is_prolonged(now)

    def _note_progress(self, serial: int) -> None:
        if self.seen is not None and serials.newer(serial, self.seen):
            self.failing_since = time.monotonic()

    def result(self, reply: SoaReply) -> PollResult:
        """The result of the poll, which *reply* has ended."""
        if reply.serial is not None and serials.at_least(reply.serial, self.serial):
            return PollResult(self.domain_id, self.peer.id, Outcome.SUCCESS, Answer.SERIAL, reply.serial,
                              expected_serial=self.serial, label=self.peer.label,
                              incarnation=self.request.incarnation)
        error = reply.error
        if reply.answer is Answer.SERIAL:
            error = f'the server serves serial {reply.serial}, not yet {self.serial}'
        return PollResult(self.domain_id, self.peer.id, Outcome.ERROR, reply.answer, self.seen, error, self.serial,
                          self.peer.label, self.request.incarnation, reply.reason or Reason.of(reply.answer))


class PostTransferPoll(_PollQuery):
    """A few queries in quick succession; nothing is reported when the server does not serve the serial yet.

    :param delays: as :data:`POST_TRANSFER_DELAYS`
    :ivar first_sent_at: when the first query was sent; seconds of the monotonic clock
    """

    __slots__ = ('first_sent_at', '_delays', '_sent_count')

    def __init__(self, peer: AllowedPeer, domain_id: str, name: str, serial: int, delays: Sequence[float],
                 on_end: Callable[[PostTransferPoll, SoaReply], None]) -> None:
        super().__init__(peer, domain_id, name, serial, _NO_SCHEDULE, on_end)
        self._delays = delays
        self._sent_count = 0
        self.first_sent_at = 0.0

    def on_sent(self, now: float) -> float:
        if not self._sent_count:
            self.first_sent_at, self.try_deadline = now, now + self._delays[-1]
        self._sent_count += 1
        return self.first_sent_at + self._delays[self._sent_count]

    def on_timer(self, now: float) -> Step:
        if not self.in_try:
            return self.begin_try(now)
        if self._sent_count < len(self._delays) - 1 and (self.try_deadline is None or now < self.try_deadline):
            return NextStep.SEND
        return self.end_try(SoaReply(Answer.TIMEOUT), now)

    def on_reply(self, reply: SoaReply, now: float) -> Step:
        if reply.truncated:
            return NextStep.TCP
        if not reply.doubtful and self.accept(reply):
            return NextStep.END
        return self._next(now)

    def on_failure(self, why: str, now: float, reason: Reason = Reason.UNREACHABLE) -> Step:
        if self.wake_at is None and not self.queued:  # nothing could be sent, so there is no next query
            return self.end_try(SoaReply(Answer.TIMEOUT, error=why), now)
        return self._next(now)

    def _next(self, now: float) -> Step:
        """The time of the next query, which this reply does not change."""
        return now if self.wake_at is None else self.wake_at


class SoaPoller:
    """All polls in progress, one for a server and domain, and the polls after transfers.

    A deleted domain and a new one of its name have a poll each: their serials cannot be compared, and a request that
    comes late may be about either.

    :param report: called with results, any number at a time, in the runtime's threads
    :param post_transfer_delays: as :data:`POST_TRANSFER_DELAYS`
    :param is_fetching: called in the loop
    :param max_fetch_seconds: as of :class:`SoaPoll`
    """

    def __init__(self, loop: ClientLoop, report: Report, post_transfer_delays: Sequence[float] = POST_TRANSFER_DELAYS,
                 is_fetching: IsFetching = lambda server_id, name: False, max_fetch_seconds: float = 1800.0) -> None:
        self._loop = loop
        self._post_transfer_delays = post_transfer_delays
        self._is_fetching = is_fetching
        self._max_fetch_seconds = max_fetch_seconds
        self._notifier = Notifier(loop, self._on_notify_refused)
        self._report = report
        self._polls: dict[tuple[str, str], SoaPoll] = {}
        self._post_polls: dict[tuple[str, str], PostTransferPoll] = {}
        #: (server id, domain id, serial) of servers that share an address with others
        self._confirmed: dict[tuple[str, str, int], None] = {}
        metrics.POLLS_IN_FLIGHT.set_function(lambda: len(self._polls))

    def start_polls(self, orders: Sequence[PollOrder], schedule: RetrySchedule) -> None:
        """Have *orders* started in the loop; from any thread."""
        self._loop.submit(lambda: self._start_polls(orders, schedule))

    def start_post_transfer_polls(self, peers: Sequence[AllowedPeer], domain_id: str, name: str, serial: int,
                                  pool_name: str) -> None:
        """One of *peers* has just fetched a zone: poll it in a moment; from any thread."""
        now = time.monotonic()
        self._loop.submit(lambda: self._start_post_polls(peers, domain_id, name, serial, pool_name, now), urgent=False)

    def replace_peers(self, peers: Mapping[str, AllowedPeer | None]) -> None:
        """Servers have changed or are gone: their polls and NOTIFYs go on with the new settings, or end without result.

        :param peers: by id; None for a server that is gone
        """
        self._loop.submit(lambda: self._replace_peers(peers))

    @property
    def has_polls(self) -> bool:
        """Whether polls have not ended."""
        return bool(self._polls)

    # What follows is called in the loop alone.

    def _start_polls(self, orders: Sequence[PollOrder], schedule: RetrySchedule) -> None:
        now = time.monotonic()
        for order in orders:
            request = order.request
            previous = self._polls.get((order.peer.id, request.domain_id)) if request.poll else None
            notified_serial, fetching_until, patience = None, 0.0, 0.0
            if previous and not (previous.has_fetched(request.seen) or previous.is_outdated_by(request)):
                notified_serial, fetching_until = previous.notified_serial, previous.fetching_until
            if request.notify and not request.delay:
                if fetching_until > now:
                    delayed = dataclasses.replace(request, delay=fetching_until - now)
                    order = dataclasses.replace(order, request=delayed)
                else:
                    self._notify(order, schedule)
                    notified_serial, fetching_until = request.serial, now + schedule.retry_interval
                    if previous is None and _is_behind(request):  # polls that replace each other are queried in time
                        patience = schedule.retry_interval / _PATIENCE_SHARE
            if request.poll:
                poll = self._start_poll(order, schedule, previous, patience)
                poll.notified_serial, poll.fetching_until = notified_serial, fetching_until

    def _notify(self, order: PollOrder, schedule: RetrySchedule) -> None:
        self._notifier.send(order.notified or order.peer, order.request, schedule, order)

    def _on_notify_refused(self, peer_id: str, domain_id: str) -> None:
        """The server has not accepted the NOTIFY, so it is not fetching the zone: poll it now."""
        for polled_id in (peer_id, f'{peer_id}#0'):  # the server, or the first address at which it is verified
            poll = self._polls.get((polled_id, domain_id))
            if poll is not None:
                poll.fetching_until = 0.0
                if poll.is_waiting_for_fetch:
                    self._loop.run_timer_now(poll)

    def _start_poll(self, order: PollOrder, schedule: RetrySchedule, previous: SoaPoll | None,
                    patience: float) -> SoaPoll:
        """Start a poll, or join one: there is one poll for a server and domain, for the newest serial ordered.

        A poll that is replaced hands its recipients to the new one, as a probe does, which has one try.  Replies to
        queries that were sent before the server lost the zone are ignored.
        """
        request, key = order.request, (order.peer.id, order.request.domain_id)
        outdated = previous is not None and previous.is_outdated_by(request)
        if request.incarnation and (previous is None or outdated):
            post_poll = self._post_polls.pop(key, None)
            if post_poll is not None:
                self._loop.cancel(post_poll)
        if previous is not None:
            is_replaced = outdated or previous.request.probe and not request.probe
            if serials.at_least(previous.serial, request.serial) and not is_replaced:
                if order.recipient not in previous.recipients:
                    previous.recipients.append(order.recipient)
                if request.probe and previous.last_reply.answer is not Answer.TIMEOUT:  # it answers; this may go on
                    self._loop.post(self._report_results, (previous, previous.result(previous.last_reply), 0.0))
                return previous
            self._loop.cancel(previous)
        notify_again = functools.partial(self._notify, order, schedule) if request.notify else None
        poll = self._polls[key] = SoaPoll(order, schedule, self._on_poll_end, notify_again, self._is_fetching,
                                          self._max_fetch_seconds)
        if previous is not None:
            poll.recipients[:0] = [recipient for recipient in previous.recipients if recipient != order.recipient]
        if previous is not None and not outdated:
            poll.inherit(previous)
            if poll.is_overdue(poll.started):
                self._loop.post(self._report_results,
                                (poll, poll.result(poll.last_reply), poll.started - poll.failing_since))
                poll.failing_since = poll.started
        pause = request.delay or patience
        self._loop.start_query(poll, poll.started + pause if pause else None)
        return poll

    def _replace_peers(self, peers: Mapping[str, AllowedPeer | None]) -> None:
        for notify in self._notifier.cancel_peers(peers.keys()):
            if not notify.request.poll:  # otherwise its poll sends it again
                self._start_again(notify.order, [notify.order.recipient], notify.schedule, peers)
        for key in [key for key in self._post_polls if key[0] in peers]:
            self._loop.cancel(self._post_polls.pop(key))
        for poll in list(self._polls.values()):
            if poll.peer.id in peers or poll.order.notified is not None and poll.order.notified.id in peers:
                self._loop.cancel(self._polls.pop(poll.key))
                self._start_again(poll.order, poll.recipients, poll.schedule, peers)

    def _start_again(self, order: PollOrder, recipients: Sequence[Recipient], schedule: RetrySchedule,
                     peers: Mapping[str, AllowedPeer | None]) -> None:
        """Start *order* for each of *recipients*, with the new settings of its servers, unless its server is gone."""
        peer, notified = peers.get(order.peer.id, order.peer), order.notified
        if peer is not None:
            notified = None if notified is None else peers.get(notified.id, notified)
            self._start_polls([PollOrder(peer, recipient, order.request, notified) for recipient in recipients],
                              schedule)

    def _on_poll_end(self, poll: SoaPoll, reply: SoaReply) -> None:
        """*poll* has ended with *reply*."""
        del self._polls[poll.key]
        result = poll.result(reply)
        self._loop.post(self._report_results, (poll, result, time.monotonic() - poll.started))
        post_poll = self._post_polls.get(poll.key)
        if post_poll is not None and result.status is Outcome.SUCCESS:
            self._loop.cancel(self._post_polls.pop(poll.key))

    def _start_post_polls(self, peers: Sequence[AllowedPeer], domain_id: str, name: str, serial: int,
                          pool_name: str, ended: float) -> None:
        """Start the polls after a transfer.

        :param ended: when the transfer did; seconds of the monotonic clock
        """
        recipient = ToPool(pool_name, Context())
        is_shared = len({peer.id.partition('#')[0] for peer in peers}) > 1  # not the addresses of one that is verified
        # A server needs a moment to load what it has fetched.  Polls at multiples of the interval are sent together.
        interval = POLL_INTERVAL * max(1, len(peers) // _PEERS_PER_INTERVAL)
        start = math.ceil(ended / interval + 0.5) * interval

        def on_end(post_poll: PostTransferPoll, reply: SoaReply) -> None:
            self._on_post_poll_end(post_poll, reply, recipient, is_shared)

        for peer in peers:
            key = peer.id, domain_id
            poll = self._polls.get(key)
            if poll is not None:
                poll.fetching_until = 0.0
            elif is_shared and (peer.id, domain_id, serial) in self._confirmed:
                continue  # another one has done this transfer
            previous = self._post_polls.get(key)
            if previous is not None:
                if not previous.in_try and previous.serial == serial:
                    continue  # it has not sent a query yet
                self._loop.cancel(previous)
            post_poll = self._post_polls[key] = PostTransferPoll(peer, domain_id, name, serial,
                                                                 self._post_transfer_delays, on_end)
            self._loop.start_query(post_poll, start)

    def _on_post_poll_end(self, post_poll: PostTransferPoll, reply: SoaReply, recipient: Recipient,
                          is_shared: bool) -> None:
        """*post_poll* has ended: complete the poll for its server and domain, or report to the pool if there is none.

        :param is_shared: whether the server's address is that of others, too
        """
        del self._post_polls[post_poll.key]
        if reply.serial is None:
            return
        if is_shared:
            self._confirmed[post_poll.peer.id, post_poll.domain_id, reply.serial] = None
            if len(self._confirmed) > _MAX_CONFIRMED:
                del self._confirmed[next(iter(self._confirmed))]
        poll = self._polls.get(post_poll.key)
        if poll is None:
            self._loop.post(self._report_unsolicited, (post_poll, recipient, PollResult(
                post_poll.domain_id, post_poll.peer.id, Outcome.SUCCESS, Answer.SERIAL, reply.serial,
                label=post_poll.peer.label)))
        elif serials.at_least(reply.serial, poll.serial):
            self._on_poll_end(poll, reply)
            self._loop.cancel(poll)
        elif poll.is_waiting_for_fetch:
            poll.notify(time.monotonic())
            self._loop.run_timer_now(poll)

    # What follows is called in the runtime's threads.

    def _report_results(self, ended: Sequence[tuple[SoaPoll, PollResult, float]]) -> None:
        counters.polled([(poll.peer, result, seconds) for poll, result, seconds in ended])
        self._report(*((recipient, result) for poll, result, _ in ended for recipient in poll.recipients))

    def _report_unsolicited(self, ended: Sequence[tuple[PostTransferPoll, Recipient, PollResult]]) -> None:
        now = time.monotonic()
        counters.polled([(poll.peer, result, now - poll.first_sent_at) for poll, _, result in ended])
        self._report(*((recipient, result) for _, recipient, result in ended))


def _is_behind(request: PollRequest) -> bool:
    """Whether the server served an older serial when the request was made; not for the probe of a silent one."""
    return not request.probe and request.seen is not None and serials.newer(request.serial, request.seen)
