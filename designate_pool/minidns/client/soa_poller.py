"""SOA polls: find out which serial a server serves, and report it.

A :class:`SoaPoll` queries on a timed schedule.  A :class:`PostTransferPoll` queries a server that has just fetched a
zone, several times within the two seconds that loading may take.  It completes the poll for that server and zone; where
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
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from designate_pool import metrics, serial as serials
from designate_pool.logs import OutageLog
from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.client.event_loop import MOST_HELD, ClientLoop
from designate_pool.minidns.client.query import RetryingQuery, RetrySchedule, Step
from designate_pool.model import Answer, Context, Domain, Endpoint, Outcome, PollRequest, PollResult, Reason
from designate_pool.protocol import wire
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.rpc.pool_manager import PoolManagerClient

LOG = logging.getLogger(__name__)

#: Of a poll after a transfer: the pauses between its tries add up to two seconds, since NSD loads what it has fetched
#: once a second.
POST_TRANSFER = RetrySchedule(timeout=1.0, retry_interval=0.002, max_retries=14, first_resend=0.1, growth=2.0,
                              longest_interval=0.25)
#: Most zones and servers of which is known that a poll after a transfer has succeeded; the oldest are dropped.
_MAX_CONFIRMED = 10_000
#: Most zones and servers of which the last transfer is known; the oldest are dropped.
_MAX_TRANSFERRED = 100_000
#: The part (1/n) of the retry interval for which a server that was notified is not queried.
_PATIENCE_SHARE = 4


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


@dataclasses.dataclass(eq=False)
class NotifyQuery(RetryingQuery):
    """A NOTIFY (RFC 1996), repeated until the server acknowledges it; *on_refused* is called when it refuses."""

    opcode = wire.NOTIFY

    order: PollOrder
    on_refused: Callable[[NotifyQuery], None]

    def end_try(self, reply: SoaReply, now: float) -> Step:
        self.on_refused(self)
        return super().end_try(reply, now)


@dataclasses.dataclass(eq=False)
class PostTransferPoll(RetryingQuery):
    """A few queries in quick succession; nothing is reported when the server does not serve the serial yet.

    They end when one is not answered: the timed poll takes care of such a server.

    :ivar is_shared: whether the server's address is that of others, too
    :ivar started: seconds of the monotonic clock
    """

    domain_id: str
    recipient: ToPool
    is_shared: bool
    started: float

    def end_try(self, reply: SoaReply, now: float) -> Step:
        if reply.answer is Answer.TIMEOUT:
            self.tries = 1 + self.schedule.max_retries
        return super().end_try(reply, now)


@dataclasses.dataclass(eq=False)
class SoaPoll(RetryingQuery):
    """SOA queries on a timed schedule.

    :ivar order: what it was started for; others may have joined it since
    :ivar send_notify: sends another NOTIFY at the end of each try but the first that the server has answered, because a
        server whose transfer has failed does not retry before its own retry time; None for no NOTIFY
    :ivar max_fetch_seconds: for which a server that serves no newer serial may be fetching the zone
    :ivar has_notified: whether the server was sent a NOTIFY
    :ivar on_try_end: called with each try that ends without the expected answer
    :ivar seen: the serial of the latest reply
    :ivar started: when the poll was ordered; seconds of the monotonic clock, as the other times here
    :ivar failing_since: since when the server has made no progress, including the polls that this one has replaced
    :ivar last_reply: how the latest try of this poll or the ones it has replaced has ended
    """

    order: PollOrder
    recipients: list[Recipient]
    send_notify: Callable[[], None] | None
    has_notified: bool
    is_fetching: IsFetching
    max_fetch_seconds: float
    started: float
    failing_since: float
    on_try_end: Callable[[SoaPoll, SoaReply, float], None]
    seen: int | None = dataclasses.field(default=None, init=False)
    last_reply: SoaReply = dataclasses.field(default=SoaReply(Answer.TIMEOUT, error='no answer'), init=False)
    was_fetching: bool = dataclasses.field(default=False, init=False)
    fetch_has_ended: bool = dataclasses.field(default=False, init=False)

    def end_try(self, reply: SoaReply, now: float) -> Step:
        self.last_reply = reply
        self.on_try_end(self, reply, now)
        if self.is_prolonged(now):
            self.tries, self.was_fetching = min(self.tries, self.schedule.max_retries, 1), True
        else:
            self.fetch_has_ended = self.was_fetching  # then another transfer prolongs nothing
            # Not before the try has shown that it is behind: it may have fetched the zone from another MiniDNS.
            if reply.answer is not Answer.TIMEOUT and (self.tries > 1 or not self.has_notified):
                self.notify()
        return super().end_try(reply, now)

    def notify(self) -> None:
        """The server is behind: send it a NOTIFY."""
        if self.send_notify is not None:
            self.send_notify()
            self.has_notified = True

    def is_prolonged(self, now: float) -> bool:
        """Whether the server is fetching the zone, which it may do once in a round for as long as it takes."""
        return (not self.order.request.probe and not self.fetch_has_ended
                and now - self.failing_since < self.max_fetch_seconds
                and self.is_fetching(self.peer.server_id, self.name))

    def is_expected(self, reply: SoaReply) -> bool:
        if reply.serial is not None:
            self._note_progress(reply.serial)
            self.seen = reply.serial
        return super().is_expected(reply)

    def inherit(self, previous: SoaPoll) -> None:
        """Take over the progress of *previous*, which this poll replaces."""
        self.failing_since, self.last_reply, self.seen = previous.failing_since, previous.last_reply, previous.seen
        self.was_fetching = previous.was_fetching
        if self.order.request.seen is not None:
            self._note_progress(self.order.request.seen)

    def is_overdue(self, now: float) -> bool:
        """Whether the server has made no progress for as long as a round of tries may take."""
        tries = 1 + self.schedule.max_retries
        longest = tries * self.schedule.timeout + self.schedule.max_retries * self.schedule.retry_interval
        return now - self.failing_since >= longest and not self.is_prolonged(now)

    def _note_progress(self, serial: int) -> None:
        if self.seen is None or serials.newer(serial, self.seen):
            self.was_fetching = self.fetch_has_ended = False  # the transfer of the next serial prolongs the poll, too
            if self.seen is not None:
                self.failing_since = time.monotonic()


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
        #: By server and domain id: the serial that the server transferred last, and from which it came to that.
        self._transferred: dict[tuple[str, str], tuple[int, int | None]] = {}
        #: When each server last replied to a poll, and those of which it was reported that they do not; by id.
        self._replied_at: dict[str, float] = {}
        self._silent: set[str] = set()
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
        notify = NotifyQuery(peer, request.name, None, schedule, self._on_notify_end, order, self._on_notify_refused)
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
        former = None if previous is None else previous.order.request
        # The server has lost the zone since the previous poll was ordered.
        outdated = former is not None and (former.incarnation is not None and request.incarnation is not None
                                           and former.incarnation < request.incarnation)
        if request.incarnation and (previous is None or outdated):
            post_poll = self._post_polls.pop(key, None)
            if post_poll is not None:
                self._loop.cancel(post_poll)
        if previous is not None and former is not None:
            is_replaced = outdated or former.probe and not request.probe
            if serials.at_least(former.serial, request.serial) and not is_replaced:
                if order.recipient not in previous.recipients:
                    previous.recipients.append(order.recipient)
                if request.probe and previous.last_reply.answer is not Answer.TIMEOUT:  # it answers; this may go on
                    self.post_result(previous, previous.last_reply, time.monotonic())
                return
            self._loop.cancel(previous)
        notify_again = functools.partial(self._notify, order, schedule) if request.notify else None
        recipients, now = [] if previous is None else previous.recipients, time.monotonic()
        recipients = [recipient for recipient in recipients if recipient != order.recipient]
        poll = self._polls[key] = SoaPoll(
            order.peer, request.name, request.serial, schedule, self._on_poll_end, order,
            [*recipients, order.recipient], notify_again, not request.delay, self._is_fetching,
            self._max_fetch_seconds, now, now, self._on_try_end)
        if previous is not None and not outdated:
            poll.inherit(previous)
            if poll.is_overdue(now):
                self.post_result(poll, poll.last_reply, poll.failing_since)
                poll.failing_since = now
        self._loop.start_query(poll, now + patience if patience else None)

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
                self._loop.cancel(self._polls.pop((poll.peer.id, poll.order.request.domain_id)))
                self._start_again(poll.order, poll.recipients, poll.schedule, peers)

    def _start_again(self, order: PollOrder, recipients: Sequence[Recipient], schedule: RetrySchedule,
                     peers: Mapping[str, AllowedPeer | None]) -> None:
        """Start *order* for each of *recipients*, with the new settings of its servers, unless its server is gone."""
        peer, notified = peers.get(order.peer.id, order.peer), order.notified
        if peer is not None:
            notified = None if notified is None else peers.get(notified.id, notified)
            self.start_polls([PollOrder(peer, recipient, order.request, notified) for recipient in recipients],
                             schedule)

    def _on_try_end(self, poll: SoaPoll, reply: SoaReply, now: float) -> None:
        """Report that a server answers nobody, once: before the tries of a round are used up."""
        peer = poll.peer
        self._note_reply(peer, reply, now)
        if (reply.answer is Answer.TIMEOUT and peer.id == peer.server_id and peer.id not in self._silent
                and poll.tries <= poll.schedule.max_retries
                and self._replied_at.get(peer.id, -math.inf) < now - poll.schedule.timeout):
            self._silent.add(peer.id)
            result = PollResult(poll.order.request.domain_id, peer.id, Outcome.ERROR, reply.answer, error=reply.error,
                                label=peer.label, reason=reply.reason)
            self._loop.post(self._report_silences, [
                (recipient, result) for recipient in poll.recipients if isinstance(recipient, ToPool)])

    def _note_reply(self, peer: AllowedPeer, reply: SoaReply, now: float) -> None:
        if reply.answer is not Answer.TIMEOUT:
            self._replied_at[peer.id] = now
            self._silent.discard(peer.id)

    def _on_poll_end(self, poll: SoaPoll, reply: SoaReply) -> None:
        self._note_reply(poll.peer, reply, time.monotonic())
        key = poll.peer.id, poll.order.request.domain_id
        del self._polls[key]
        is_served = self.post_result(poll, reply, poll.started)
        if is_served and key in self._post_polls:
            self._loop.cancel(self._post_polls.pop(key))

    def post_result(self, poll: SoaPoll, reply: SoaReply, since: float) -> bool:
        """Have the result of *poll* reported, which is *reply*; whether the server serves the serial."""
        request, peer = poll.order.request, poll.peer
        is_served = reply.serial is not None and serials.at_least(reply.serial, request.serial)
        if is_served:
            result = PollResult(request.domain_id, peer.id, Outcome.SUCCESS, Answer.SERIAL, reply.serial,
                                expected_serial=request.serial, label=peer.label, incarnation=request.incarnation,
                                base=self._base(peer, request.domain_id, reply.serial))
        else:
            error = reply.error
            if reply.answer is Answer.SERIAL:
                error = f'the server serves serial {reply.serial}, not yet {request.serial}'
            result = PollResult(request.domain_id, peer.id, Outcome.ERROR, reply.answer, poll.seen, error,
                                request.serial, peer.label, request.incarnation,
                                reply.reason or Reason.of(reply.answer),
                                self._base(peer, request.domain_id, poll.seen))
        self._loop.post(self._report_results, (peer, result, time.monotonic() - since, tuple(poll.recipients)))
        return is_served

    def _base(self, peer: AllowedPeer, domain_id: str, serial: int | None) -> int | None:
        """From which serial the server came to *serial* by transfers from here, see :class:`PollResult`."""
        transferred, base = self._transferred.get((peer.server_id, domain_id), (None, None))
        return base if transferred == serial else serial

    def start_post_transfer_polls(self, peers: Sequence[AllowedPeer], domain_id: str, name: str, serial: int,
                                  pool_name: str, base: int | None = None) -> None:
        """One of *peers* has just fetched a zone, the difference from *base* or all of it: poll them in a moment."""
        for server_id in {peer.server_id for peer in peers}:
            former = self._transferred.pop((server_id, domain_id), None)
            self._transferred[server_id, domain_id] = serial, base if former is None or former[0] not in (
                base, serial) else former[1]
        while len(self._transferred) > _MAX_TRANSFERRED:
            del self._transferred[next(iter(self._transferred))]
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
                peer, name, serial, self._post_transfer, self._on_post_poll_end, domain_id,
                ToPool(pool_name, Context()), is_shared, time.monotonic())
            self._loop.start_query(post_poll, start)

    def _on_post_poll_end(self, post_poll: PostTransferPoll, reply: SoaReply) -> None:
        """Complete the poll for the server and domain of *post_poll*, or report to the pool if there is none."""
        peer, domain_id = post_poll.peer, post_poll.domain_id
        del self._post_polls[peer.id, domain_id]
        self._note_reply(peer, reply, time.monotonic())
        if not post_poll.is_expected(reply):
            return
        assert reply.serial is not None
        if post_poll.is_shared:
            self._confirmed[peer.id, domain_id, reply.serial] = None
            if len(self._confirmed) > _MAX_CONFIRMED:
                del self._confirmed[next(iter(self._confirmed))]
        poll = self._polls.get((peer.id, domain_id))
        if poll is None:
            result = PollResult(domain_id, peer.id, Outcome.SUCCESS, Answer.SERIAL, reply.serial, label=peer.label,
                                base=self._base(peer, domain_id, reply.serial))
            self._loop.post(self._report_results,
                            (peer, result, time.monotonic() - post_poll.started, (post_poll.recipient,)))
        elif poll.is_expected(reply):
            self._on_poll_end(poll, reply)
            self._loop.cancel(poll)
        elif not poll.tries:  # it has waited for the transfer, which has fetched an older serial
            poll.notify()
            self._loop.run_timer_now(poll)

    # What follows is called in the runtime's threads.

    def _report_silences(self, silences: Sequence[Sequence[AddressedResult]]) -> None:
        self._report(*(result for results in silences for result in results))

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


Verified = Mapping[str, Sequence[AllowedPeer]]
#: Servers and domains that have results of some addresses only, or failures; the oldest are dropped beyond that.
MAX_INCOMPLETE = 100_000


class ResultSender:
    """Casts results, all given at once in one message to each pool; *verified* returns :attr:`ServerTable.verified`.

    A server that is verified at other addresses than its own serves a serial when all of these do: its result is that
    of the address that is worst, and waits for the others.
    """

    def __init__(self, pool_managers: PoolManagerClient, verified: Callable[[], Verified] = dict,
                 max_incomplete: int = MAX_INCOMPLETE) -> None:
        self._pool_managers = pool_managers
        self._verified = verified
        self._max_incomplete = max_incomplete
        self._lock = threading.Lock()
        #: By server and domain: the latest result of each address, until all of them have succeeded.
        self._parts: dict[tuple[str, str], dict[str, PollResult]] = {}
        self._outage = OutageLog(LOG, 'poll results could not be sent to the pool manager; it polls again: %s',
                                 'poll results can be sent to the pool manager again')

    def send(self, *results: AddressedResult) -> None:
        """Put *results* together by server, and cast those that are whole."""
        by_pool: dict[ToPool, list[PollResult]] = {}
        for recipient, result in results:
            server_id, _, number = result.server_id.partition('#')
            whole = self._add(server_id, result) if number else result
            if whole is None:
                continue
            if isinstance(recipient, ToPool):
                by_pool.setdefault(recipient, []).append(whole)
            else:
                self._cast('update_status', recipient.context, recipient.domain, recipient.destination, whole.status,
                           whole.serial_number)
        for pool, pool_results in by_pool.items():
            self._cast('update_statuses', pool.context, pool.pool_name, pool_results)

    def repeat_polls(self, pool_name: str) -> None:
        """Have the pool managers repeat the polls of MiniDNS processes that were killed."""
        self._cast('repeat_polls', Context(), pool_name)

    def _cast(self, method: str, *arguments: object) -> None:
        """Cast a message; one that cannot be sent is dropped, because the pool manager polls again."""
        try:
            getattr(self._pool_managers, method)(*arguments)
        except Exception as error:  # whatever the transport raises; the next message is tried anyway
            self._outage.failed(error)
        else:
            self._outage.ended()

    def _add(self, server_id: str, result: PollResult) -> PollResult | None:
        """The server's result, once each address has one that is as new as *result*."""
        peers, key = self._verified().get(server_id, ()), (server_id, result.domain_id)
        with self._lock:
            former = self._parts.pop(key, {})
            parts = {peer.id: former[peer.id] for peer in peers
                     if peer.id in former and not _is_outdated(former[peer.id], result)}
            parts[result.server_id] = result
            newest = functools.reduce(lambda one, other: one if serials.at_least(one, other) else other,
                                      map(_subject, parts.values()))
            is_whole = all(peer.id in parts and serials.at_least(_subject(parts[peer.id]), newest) for peer in peers)
            if not is_whole or any(part.status is not Outcome.SUCCESS for part in parts.values()):
                self._parts[key] = parts
                if len(self._parts) > self._max_incomplete:
                    del self._parts[next(iter(self._parts))]
        return worst(server_id, peers, parts) if is_whole and peers else None


def worst(server_id: str, peers: Iterable[AllowedPeer], results: Mapping[str, PollResult]) -> PollResult | None:
    """The result that stands for all, as the server's; None without one.  *results* are by ids of (some) *peers*."""
    selected: tuple[AllowedPeer, PollResult] | None = None
    for peer in peers:
        result = results.get(peer.id)
        if result is not None and (selected is None or _is_worse(result, selected[1])):
            selected = peer, result
    if selected is None:
        return None
    peer, result = selected
    error = result.error and f'{Endpoint(peer.addresses[0], peer.port)}: {result.error}'
    return dataclasses.replace(result, server_id=server_id, error=error)


def _subject(result: PollResult) -> int:
    """The serial that a poll was about; 0 for a failure without a request, which there is none of."""
    return (result.serial_number if result.expected_serial is None else result.expected_serial) or 0


def _is_outdated(former: PollResult, result: PollResult) -> bool:
    """Whether the server has lost the zone between the two."""
    return former.incarnation is not None and result.incarnation is not None \
        and former.incarnation < result.incarnation


def _is_worse(one: PollResult, other: PollResult) -> bool:
    if one.status is not other.status:
        return one.status is Outcome.ERROR
    if one.serial_number is None or other.serial_number is None:
        return one.serial_number is None and other.serial_number is not None
    return serials.newer(other.serial_number, one.serial_number)
