"""SOA polls: find out which serial a server serves, and report it.

A :class:`SoaPoll` queries on a timed schedule.  A :class:`PostTransferPoll` queries a server that has just fetched a
zone, several times within the second that loading may take.  It completes the poll for that server and zone; where
another MiniDNS has that poll, its result is reported unsolicited.

Nearly every server that is notified has fetched the zone and been polled after the transfer before a first query could
find the new serial.  So that is sent only after a part of *retry_interval*, where a change begins on a server that
served an older serial.

A server that makes no progress is reported as failed after the time of one round of tries, also when new changes keep
replacing the poll before it has used up its tries.

The tries made while this MiniDNS transfers the zone to the server do not use up the round; then the server has the
tries of a round but the first.  Another transfer does not prolong the poll again before the server serves a newer
serial, since a server that rejects the zone may fetch it after each NOTIFY; and nothing prolongs it beyond
*max_fetch_seconds*.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence

from designate_pool import metrics
from designate_pool import serial as serials
from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.client.event_loop import MOST_HELD, ClientLoop
from designate_pool.minidns.client.query import RetryingQuery, RetrySchedule, Step
from designate_pool.model import Answer, Context, Domain, Outcome, PollRequest, PollResult, Reason
from designate_pool.outage_log import OutageLog
from designate_pool.protocol import soa_query, wire
from designate_pool.protocol.soa_query import SoaReply

LOG = logging.getLogger(__name__)

#: Of a poll after a transfer: the pauses between its tries add up to a second.
POST_TRANSFER = RetrySchedule(timeout=1.0, retry_interval=0.002, max_retries=9, first_resend=0.1, growth=2.0)
#: Most zones and servers of which is known that a poll after a transfer has succeeded; the oldest are dropped.
_MAX_CONFIRMED = 10_000
#: The part (1/n) of the retry interval for which a server that was notified is not queried.
_PATIENCE_SHARE = 4
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


class NotifyQuery(RetryingQuery):
    """A NOTIFY (RFC 1996), repeated until the server acknowledges it; *on_refused* is called when it refuses."""

    __slots__ = ('order', '_on_refused')
    random_case = False

    def __init__(self, peer: AllowedPeer, order: PollOrder, schedule: RetrySchedule,
                 on_end: Callable[[NotifyQuery, SoaReply], None], on_refused: Callable[[NotifyQuery], None]) -> None:
        super().__init__(peer, order.request.name, None, schedule, on_end)
        self.template = self.sent_template = soa_query.notify(wire.wire_of(order.request.name))
        self.order = order
        self._on_refused = on_refused

    def read_reply(self, message: bytes, now: int, over_tcp: bool = False) -> SoaReply | None:
        return soa_query.read_notify(message, self.template, self.peer.key, self.mac, now)

    def end_try(self, reply: SoaReply, now: float) -> Step:
        self._on_refused(self)
        return super().end_try(reply, now)


class PostTransferPoll(RetryingQuery):
    """A few queries in quick succession; nothing is reported when the server does not serve the serial yet.

    They end when one is not answered: the timed poll takes care of such a server.

    :param is_shared: whether the server's address is that of others, too
    :ivar key: the server and the domain that it is about
    :ivar started: when it was; seconds of the monotonic clock
    """

    __slots__ = ('domain_id', 'key', 'recipient', 'is_shared', 'started')

    def __init__(self, peer: AllowedPeer, domain_id: str, name: str, serial: int, schedule: RetrySchedule,
                 on_end: Callable[[PostTransferPoll, SoaReply], None], recipient: ToPool, is_shared: bool) -> None:
        super().__init__(peer, name, serial, schedule, on_end)
        self.domain_id = domain_id
        self.key = peer.id, domain_id
        self.recipient = recipient
        self.is_shared = is_shared
        self.started = time.monotonic()

    def end_try(self, reply: SoaReply, now: float) -> Step:
        if reply.answer is Answer.TIMEOUT:
            self.tries = 1 + self.schedule.max_retries
        return super().end_try(reply, now)


class SoaPoll(RetryingQuery):
    """SOA queries on a timed schedule.

    :param notify: sends another NOTIFY at the end of each try but the first that the server has answered, because a
        server whose transfer has failed does not retry before its own retry time; None for no NOTIFY
    :param max_fetch_seconds: for which a server that serves no newer serial may be fetching the zone
    :ivar key: the server and the domain that it is about
    :ivar order: what it was started for; others may have joined it since
    :ivar seen: the serial of the latest reply
    :ivar started: when the poll was ordered; seconds of the monotonic clock, as the other times here
    :ivar failing_since: since when the server has made no progress, including the polls that this one has replaced
    :ivar last_reply: how the latest try of this poll or the ones it has replaced has ended
    """

    __slots__ = ('domain_id', 'key', 'order', 'request', 'recipients', 'seen', 'started', 'failing_since', 'last_reply',
                 '_notify', '_has_notified', '_is_fetching', '_max_fetch_seconds', '_was_fetching', '_fetch_has_ended')

    def __init__(self, order: PollOrder, schedule: RetrySchedule, on_end: Callable[[SoaPoll, SoaReply], None],
                 notify: Callable[[], None] | None, is_fetching: IsFetching, max_fetch_seconds: float) -> None:
        self.request = request = order.request
        super().__init__(order.peer, request.name, request.serial, schedule, on_end)
        self.domain_id = request.domain_id
        self.key = order.peer.id, request.domain_id
        self.order = order
        self.recipients = [order.recipient]
        self.seen: int | None = None
        self.started = self.failing_since = time.monotonic()
        self.last_reply = _SILENCE
        self._notify = notify
        self._has_notified = not request.delay
        self._is_fetching = is_fetching
        self._max_fetch_seconds = max_fetch_seconds
        self._was_fetching = self._fetch_has_ended = False

    def end_try(self, reply: SoaReply, now: float) -> Step:
        self.last_reply = reply
        if self.is_prolonged(now):
            self.tries, self._was_fetching = min(self.tries, self.schedule.max_retries, 1), True
        else:
            self._fetch_has_ended = self._was_fetching  # then another transfer prolongs nothing
            # Not before the try has shown that it is behind: it may have fetched the zone from another MiniDNS.
            if reply.answer is not Answer.TIMEOUT and (self.tries > 1 or not self._has_notified):
                self.notify()
        return super().end_try(reply, now)

    def notify(self) -> None:
        """The server is behind: send it a NOTIFY."""
        if self._notify is not None:
            self._notify()
            self._has_notified = True

    def is_prolonged(self, now: float) -> bool:
        """Whether the server is fetching the zone, which it may do once in a round for as long as it takes."""
        return (not self.request.probe and not self._fetch_has_ended
                and now - self.failing_since < self._max_fetch_seconds
                and self._is_fetching(self.peer.server_id, self.name))

    def is_outdated_by(self, request: PollRequest) -> bool:
        """Whether the server has lost the zone since this poll was ordered."""
        earlier, now = self.request.incarnation, request.incarnation
        return earlier is not None and now is not None and earlier < now

    def is_expected(self, reply: SoaReply) -> bool:
        if reply.serial is not None:
            self._note_progress(reply.serial)
            self.seen = reply.serial
        return super().is_expected(reply)

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
        if self.seen is None or serials.newer(serial, self.seen):
            self._was_fetching = self._fetch_has_ended = False  # the transfer of the next serial prolongs the poll, too
            if self.seen is not None:
                self.failing_since = time.monotonic()

    def result(self, reply: SoaReply) -> PollResult:
        """The result of the poll, which *reply* has ended."""
        if super().is_expected(reply):
            return PollResult(self.domain_id, self.peer.id, Outcome.SUCCESS, Answer.SERIAL, reply.serial,
                              expected_serial=self.serial, label=self.peer.label,
                              incarnation=self.request.incarnation)
        error = reply.error
        if reply.answer is Answer.SERIAL:
            error = f'the server serves serial {reply.serial}, not yet {self.serial}'
        return PollResult(self.domain_id, self.peer.id, Outcome.ERROR, reply.answer, self.seen, error, self.serial,
                          self.peer.label, self.request.incarnation, reply.reason or Reason.of(reply.answer))


class SoaPoller:
    """All polls in progress, one for a server and domain, the polls after transfers, and the NOTIFYs.

    A deleted domain and a new one of its name have a poll each: their serials cannot be compared, and a request that
    comes late may be about either.  There is one NOTIFY for a server and zone.

    Its methods are called in the loop, but for those at its end.

    :param report: called with results, any number at a time, in the runtime's threads
    """

    def __init__(self, loop: ClientLoop, report: Report, post_transfer: RetrySchedule = POST_TRANSFER,
                 is_fetching: IsFetching = lambda server_id, name: False, max_fetch_seconds: float = 1800.0) -> None:
        self._loop = loop
        self._post_transfer = post_transfer
        self._is_fetching = is_fetching
        self._max_fetch_seconds = max_fetch_seconds
        self._report = report
        self._polls: dict[tuple[str, str], SoaPoll] = {}
        self._post_polls: dict[tuple[str, str], PostTransferPoll] = {}
        #: By server id and name of the zone.
        self._notifies: dict[tuple[str, str], NotifyQuery] = {}
        self._notify_outages = OutageLog(LOG, 'NOTIFY for %s was not accepted by %s: %s',
                                         'NOTIFYs are accepted by %s again', logging.INFO)
        #: (server id, domain id, serial) of servers that share an address with others
        self._confirmed: dict[tuple[str, str, int], None] = {}
        metrics.POLLS_IN_FLIGHT.set_function(lambda: len(self._polls))

    @property
    def has_polls(self) -> bool:
        """Whether polls have not ended."""
        return bool(self._polls)

    def start_polls(self, orders: Sequence[PollOrder], schedule: RetrySchedule) -> None:
        """Start the NOTIFYs and polls of *orders*."""
        for order in orders:
            request = order.request
            previous = self._polls.get((order.peer.id, request.domain_id)) if request.poll else None
            patience = request.delay
            if request.notify and not request.delay:
                self._notify(order, schedule)
                # Polls that replace each other are queried in time, as is a server that may have the serial.
                if previous is None and not request.probe and request.seen is not None \
                        and serials.newer(request.serial, request.seen):
                    patience = schedule.retry_interval / _PATIENCE_SHARE
            if request.poll:
                self._start_poll(order, schedule, previous, patience)

    def _notify(self, order: PollOrder, schedule: RetrySchedule) -> None:
        """Send the NOTIFY of *order*, unless one that says as much was sent a moment ago."""
        peer, request = order.notified or order.peer, order.request
        key = peer.id, request.name
        previous = self._notifies.get(key)
        if previous is not None:
            just_sent = previous.in_try and previous.resend_interval <= 2 * previous.schedule.first_resend
            former = previous.order.request
            if just_sent and former.domain_id == request.domain_id \
                    and serials.at_least(former.serial, request.serial):
                return
            self._loop.cancel(previous)
        notify = NotifyQuery(peer, order, schedule, self._on_notify_end, self._on_notify_refused)
        self._notifies[key] = notify
        self._loop.start_query(notify)

    def _on_notify_refused(self, notify: NotifyQuery) -> None:
        """The server has not accepted the NOTIFY, so it is not fetching the zone: poll it now."""
        for polled_id in (notify.peer.id, f'{notify.peer.id}#0'):  # or the first address at which it is verified
            poll = self._polls.get((polled_id, notify.order.request.domain_id))
            if poll is not None and not poll.tries:
                self._loop.run_timer_now(poll)

    def _on_notify_end(self, notify: NotifyQuery, reply: SoaReply) -> None:
        key = notify.peer.id, notify.name
        if self._notifies.get(key) is notify:
            del self._notifies[key]
        self._loop.post(self._log_notifies, (notify, reply))

    def _start_poll(self, order: PollOrder, schedule: RetrySchedule, previous: SoaPoll | None,
                    patience: float) -> None:
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
            if serials.at_least(previous.request.serial, request.serial) and not is_replaced:
                if order.recipient not in previous.recipients:
                    previous.recipients.append(order.recipient)
                if request.probe and previous.last_reply.answer is not Answer.TIMEOUT:  # it answers; this may go on
                    self._post_result(previous, previous.last_reply, time.monotonic())
                return
            self._loop.cancel(previous)
        notify_again = functools.partial(self._notify, order, schedule) if request.notify else None
        poll = self._polls[key] = SoaPoll(order, schedule, self._on_poll_end, notify_again, self._is_fetching,
                                          self._max_fetch_seconds)
        if previous is not None:
            poll.recipients[:0] = [recipient for recipient in previous.recipients if recipient != order.recipient]
        if previous is not None and not outdated:
            poll.inherit(previous)
            if poll.is_overdue(poll.started):
                self._post_result(poll, poll.last_reply, poll.failing_since)
                poll.failing_since = poll.started
        self._loop.start_query(poll, poll.started + patience if patience else None)

    def replace_peers(self, peers: Mapping[str, AllowedPeer | None]) -> None:
        """Servers have changed or are gone: their polls and NOTIFYs go on with the new settings, or end without result.

        :param peers: by id; None for a server that is gone
        """
        self._loop.post(self._forget_outages, peers)
        for notify in [notify for notify in self._notifies.values() if notify.peer.id in peers]:
            self._loop.cancel(self._notifies.pop((notify.peer.id, notify.name)))
            if not notify.order.request.poll:  # otherwise its poll sends it again
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
            self.start_polls([PollOrder(peer, recipient, order.request, notified) for recipient in recipients],
                             schedule)

    def _on_poll_end(self, poll: SoaPoll, reply: SoaReply) -> None:
        del self._polls[poll.key]
        result = self._post_result(poll, reply, poll.started)
        if poll.key in self._post_polls and result.status is Outcome.SUCCESS:
            self._loop.cancel(self._post_polls.pop(poll.key))

    def _post_result(self, poll: SoaPoll, reply: SoaReply, since: float) -> PollResult:
        result = poll.result(reply)
        self._loop.post(self._report_results, (poll.peer, result, time.monotonic() - since, tuple(poll.recipients)))
        return result

    def start_post_transfer_polls(self, peers: Sequence[AllowedPeer], domain_id: str, name: str, serial: int,
                                  pool_name: str) -> None:
        """One of *peers* has just fetched a zone: poll them in a moment."""
        is_shared = len({peer.server_id for peer in peers}) > 1  # not the addresses of one that is verified
        # A server needs a moment to load what it has fetched.  Polls at multiples of that are sent together.
        start = math.ceil(time.monotonic() / MOST_HELD + 0.5) * MOST_HELD
        for peer in peers:
            key = peer.id, domain_id
            if is_shared and key not in self._polls and (*key, serial) in self._confirmed:
                continue  # another one has done this transfer
            previous = self._post_polls.get(key)
            if previous is not None:
                if not previous.tries and previous.serial == serial:
                    continue  # it has not sent a query yet
                self._loop.cancel(previous)
            post_poll = self._post_polls[key] = PostTransferPoll(
                peer, domain_id, name, serial, self._post_transfer, self._on_post_poll_end,
                ToPool(pool_name, Context()), is_shared)
            self._loop.start_query(post_poll, start)

    def _on_post_poll_end(self, post_poll: PostTransferPoll, reply: SoaReply) -> None:
        """Complete the poll for the server and domain of *post_poll*, or report to the pool if there is none."""
        del self._post_polls[post_poll.key]
        if not post_poll.is_expected(reply):
            return
        peer, domain_id = post_poll.peer, post_poll.domain_id
        assert reply.serial is not None
        if post_poll.is_shared:
            self._confirmed[peer.id, domain_id, reply.serial] = None
            if len(self._confirmed) > _MAX_CONFIRMED:
                del self._confirmed[next(iter(self._confirmed))]
        poll = self._polls.get(post_poll.key)
        if poll is None:
            result = PollResult(domain_id, peer.id, Outcome.SUCCESS, Answer.SERIAL, reply.serial, label=peer.label)
            self._loop.post(self._report_results,
                            (peer, result, time.monotonic() - post_poll.started, (post_poll.recipient,)))
        elif poll.is_expected(reply):
            self._on_poll_end(poll, reply)
            self._loop.cancel(poll)
        elif not poll.tries:  # it has waited for the transfer, which has fetched an older serial
            poll.notify()
            self._loop.run_timer_now(poll)

    # What follows is called in the runtime's threads.

    def _report_results(self, ended: Sequence[tuple[AllowedPeer, PollResult, float, Sequence[Recipient]]]) -> None:
        for peer, result, seconds, _ in ended:
            outcome = 'served'
            if result.status is Outcome.ERROR:
                outcome = 'behind' if result.answer is Answer.SERIAL else result.answer.value.lower()
                metrics.FAILURES.labels(peer.metrics_label, 'poll', result.reason).inc()
            metrics.POLLS.labels(peer.metrics_label, outcome).inc()
            metrics.POLL_SECONDS.labels(peer.metrics_label).observe(seconds)
        self._report(*((recipient, result) for _, result, _, recipients in ended for recipient in recipients))

    def _log_notifies(self, ended: Sequence[tuple[NotifyQuery, SoaReply]]) -> None:
        """Count NOTIFYs, and log that a server begins or ceases to refuse them."""
        for notify, reply in ended:
            peer, is_accepted = notify.peer, notify.is_expected(reply)
            metrics.NOTIFIES.labels(peer.metrics_label, 'accepted' if is_accepted else 'failed').inc()
            if is_accepted:
                self._notify_outages.ended(peer.label, key=peer.id)
            else:
                self._notify_outages.failed(notify.name, peer.label, reply.error or reply.answer.value, key=peer.id)

    def _forget_outages(self, dropped: Sequence[Mapping[str, AllowedPeer | None]]) -> None:
        for peers in dropped:
            for peer_id in peers:
                self._notify_outages.forget(peer_id)
