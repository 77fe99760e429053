"""What is to be done next for one domain on one server.

The invariant: a row that is not at its end says when it is looked at again, or waits for the CREATE row beside it that
does; a serial seen on a server never goes back, unless the server has lost the zone or its contents were mended; and a
row whose server was found to serve other contents, under the domain's serial or one that the pool never issued, stays
so, through changes and polls, until they were compared again and were ours.  What was asked of a server before it lost
the zone says nothing of the zone that it was given again, which is another *incarnation*.

A change *begins* a row.  A row waits, is tried, and is tried again ``retry_interval`` apart until the
tries of the round (1 + ``max_retries``) are used up, or at once when no retry can mend the failure; a newer serial
gives no new tries to a server that has failed for the older ones.  Then it is in ERROR, and goes on being tried with
growing pauses until it succeeds or something newer takes its place.

Each function returns new rows with the version they will have once written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from designate_pool.model import Action, Answer, CallResult, Domain, Outcome, PollResult, ServerStatus
from designate_pool.serial import at_least, newer

Rows = Mapping[tuple[str, Action], ServerStatus]
#: What the reason of a row begins with whose server serves other contents.
DIVERGED = 'DIVERGED: '


@dataclasses.dataclass(frozen=True, slots=True)
class Tries:
    """How often and how far apart; seconds.

    :ivar timeout: how long one poll may take
    :ivar backoff_initial: the pause after the first ERROR; it doubles with each one up to *backoff_maximum*
    """

    timeout: float = 30.0
    retry_interval: float = 2.0
    max_retries: int = 3
    backoff_initial: float = 5.0
    backoff_maximum: float = 300.0

    @property
    def round_seconds(self) -> float:
        """The longest that a round of polls can take."""
        return (1 + self.max_retries) * self.timeout + self.max_retries * self.retry_interval


def begin(domain: Domain, rows: Rows, servers: Iterable[str], now: datetime,
          fed: Collection[str] = ()) -> list[ServerStatus]:
    """The rows that the domain's present state makes new or due; none when all of it is under way already.

    :param fed: servers that a change is tried on at once, since they may have failed for what was in the last one
    """
    if domain.is_going:
        return _begin_deletion(domain, rows, servers, now)
    begun = []
    for server in servers:
        create = rows.get((server, Action.CREATE))
        update = rows.get((server, Action.UPDATE))
        if create is None:
            create = _new(domain, server, Action.CREATE, now)
            begun.append(create)
        elif create.status is not Outcome.SUCCESS and newer(domain.serial, create.expected_serial):
            # One that is under way brings the newer serial as well; one that has failed gets a new round.
            create = (_renewed(create, domain, now) if create.status is Outcome.ERROR else dataclasses.replace(
                create, expected_serial=domain.serial, version=create.version + 1))
            begun.append(create)
        ready = now if create.status is Outcome.SUCCESS else None
        if update is None:
            begun.append(_new(domain, server, Action.UPDATE, ready))
        elif newer(domain.serial, update.expected_serial):
            # How often the server has failed is counted on, through all serials: a change makes it no better.
            attempts = 0 if update.status is Outcome.SUCCESS else update.attempts
            if ready is not None and attempts and update.status is None and update.deadline_at is None and (
                    server not in fed):
                ready = update.next_attempt_at or ready  # between two tries of its round
            finding_id = update.finding_id if update.diverged else None
            begun.append(dataclasses.replace(_renewed(update, domain, ready), attempts=attempts,
                                             finding_id=finding_id))
        elif ready is not None and update.status is not Outcome.SUCCESS and update.next_attempt_at is None:
            begun.append(_written(update, next_attempt_at=ready))  # what it waited for has happened
    return begun


def _begin_deletion(domain: Domain, rows: Rows, servers: Iterable[str], now: datetime) -> list[ServerStatus]:
    begun = []
    for server in servers:
        delete = rows.get((server, Action.DELETE))
        if delete is None:
            begun.append(_new(domain, server, Action.DELETE, now))
        for action in (Action.CREATE, Action.UPDATE):
            row = rows.get((server, action))
            # What is in hand comes to its end by itself, and whoever has it sees then that the domain is going.
            if row is not None and row.next_attempt_at is not None and not is_in_hand(row, now):
                begun.append(cancel(row))
    return begun


def fill(domain: Domain, rows: Rows, server: str, now: datetime, gone: bool = False) -> list[ServerStatus]:
    """The rows that have *domain* made on one server, or made again with the settings that the server has now.

    :param gone: the server does not have the zone any more, so the serial that was seen there is gone as well
    """
    if domain.is_going:
        return []
    create, update = rows.get((server, Action.CREATE)), rows.get((server, Action.UPDATE))
    if create is None or update is None:
        return begin(domain, rows, [server], now)
    again = _renewed(create, domain, now)
    return [_reborn(again), _reborn(_renewed(update, domain, None))] if gone else [again]


def fetch(domain: Domain, rows: Rows, server: str, now: datetime) -> list[ServerStatus]:
    """The row that has one server fetch *domain*, which it has at another serial."""
    update = rows.get((server, Action.UPDATE))
    return [] if domain.is_going or update is None else [_renewed(update, domain, now)]


def is_due(row: ServerStatus, now: datetime) -> bool:
    """Whether somebody must take *row* in hand now; one that is claimed is in hand."""
    return row.next_attempt_at is not None and row.next_attempt_at <= now and not is_in_hand(row, now)


def is_in_hand(row: ServerStatus, now: datetime) -> bool:
    """Whether some pool manager has claimed *row*."""
    return row.claimed_until is not None and row.claimed_until > now


def wait(row: ServerStatus, until: datetime) -> ServerStatus:
    """*row*, due again at *until*: the server is at work on the same name for something else."""
    return _written(row, next_attempt_at=until)


def claim(row: ServerStatus, by: str, until: datetime) -> ServerStatus:
    """*row*, taken by one pool manager."""
    return dataclasses.replace(row, claimed_by=by, claimed_until=until, version=row.version + 1)


def unclaim(row: ServerStatus) -> ServerStatus:
    """*row*, left to whoever takes it."""
    return _written(row)


def waiting(rows: Rows, server: str) -> list[ServerStatus]:
    """Rows of a server that have not been tried yet and are due."""
    return [row for (where, _), row in rows.items() if where == server and row.next_attempt_at is not None
            and row.status is None and not row.attempts and row.claimed_by is None]


def supersede(row: ServerStatus, generation: int) -> ServerStatus:
    """A DELETE *row* that is done because a newer *generation* of the name has taken the zone's place."""
    return _written(row, status=Outcome.SUCCESS, last_error=f'superseded by generation {generation}',
                    next_attempt_at=None, deadline_at=None)


def cancel(row: ServerStatus) -> ServerStatus:
    """*row*, with nothing left to do: its domain is deleted."""
    return _written(row, next_attempt_at=None, deadline_at=None)


def renew(row: ServerStatus, domain: Domain, now: datetime) -> ServerStatus:
    """*row*, to be done once more from the start."""
    return _renewed(row, domain, now)


def after_call(row: ServerStatus, result: CallResult, now: datetime, tries: Tries, jitter: float) -> ServerStatus:
    """*row* after a driver's call.

    :param jitter: a random number from 0 to 1
    """
    if result.ok:
        return _written(row, status=Outcome.SUCCESS, attempts=row.attempts + 1, last_error=None,
                        next_attempt_at=None, deadline_at=None)
    attempts = row.attempts + 1
    over = attempts - 1 - (tries.max_retries if result.retryable else 0)
    return _failed(row, attempts, over, result.error or '', now, tries, jitter)


def heard(row: ServerStatus, serial: int | None) -> ServerStatus:
    """*row* when its server was heard to serve *serial*, if that is news."""
    if serial is None or not (row.serial_number is None or newer(serial, row.serial_number)):
        return row
    return dataclasses.replace(row, serial_number=serial)


def asked(row: ServerStatus, now: datetime, tries: Tries) -> ServerStatus:
    """*row* while MiniDNS polls for it.  Without an answer it is due again when the round must be over."""
    over = now + timedelta(seconds=tries.round_seconds + tries.retry_interval)
    return _written(row, next_attempt_at=over, deadline_at=over)


def after_poll(row: ServerStatus, result: PollResult, now: datetime, tries: Tries, jitter: float) -> ServerStatus:
    """An UPDATE *row* after a poll; *row* itself when the poll says nothing new."""
    seen = heard(row, result.serial_number).serial_number
    if row.diverged:
        # Its contents are others, whatever its serial is; only a comparison tells that they are ours again.
        return row if seen == row.serial_number else dataclasses.replace(row, serial_number=seen,
                                                                         version=row.version + 1)
    if result.status is Outcome.SUCCESS:
        if result.serial_number is not None and at_least(result.serial_number, row.expected_serial):
            if row.status is Outcome.SUCCESS and seen == row.serial_number and row.next_attempt_at is None:
                return row
            return _written(row, status=Outcome.SUCCESS, serial_number=seen, attempts=row.attempts + 1,
                            last_error=None, next_attempt_at=None, deadline_at=None)
        if seen == row.serial_number:
            return row
        # Told unasked, it is news to the MiniDNS that polls it: that one takes the server to be fetching still.
        news = result.expected_serial is None and row.deadline_at is not None
        return _written(row, serial_number=seen, next_attempt_at=now if news else row.next_attempt_at,
                        attempts=row.attempts if row.status is Outcome.ERROR else 0)  # it follows, if late
    # MiniDNS has used up the tries of a round before it says ERROR.  A server that was right before starts anew.
    spent = 0 if row.status is Outcome.SUCCESS else row.attempts
    each = 1 + tries.max_retries
    row = dataclasses.replace(row, serial_number=seen)
    return _failed(row, spent + each, spent // each, result.reason or '', now, tries, jitter)


def is_stale(row: ServerStatus, result: PollResult) -> bool:
    """Whether the poll failed for a serial that is no longer the one that *row* waits for."""
    return (result.status is Outcome.ERROR and result.expected_serial is not None
            and newer(row.expected_serial, result.expected_serial))


def after_stale(row: ServerStatus, result: PollResult, tries: Tries) -> ServerStatus:
    """An UPDATE *row*, which a poll is under way for, after one that failed for an older serial; *row* when that is
    nothing to it.

    Where a domain changes more often than a round takes, no other failure is ever heard of.  The first may be due to
    the change; after a second, before the server has got any further, the row is in ERROR.
    """
    assert result.expected_serial is not None
    if row.status is Outcome.SUCCESS or row.diverged or (
            row.serial_number is not None and at_least(row.serial_number, result.expected_serial)):
        return row
    each = 1 + tries.max_retries
    return dataclasses.replace(row, status=Outcome.ERROR if row.attempts >= each else row.status,
                               attempts=row.attempts + each, last_error=result.reason, version=row.version + 1)


def is_of_former(row: ServerStatus, result: PollResult) -> bool:
    """Whether the server has lost the zone since it was asked."""
    return result.incarnation is not None and result.incarnation < row.incarnation


def is_to_be_confirmed(row: ServerStatus, result: PollResult) -> bool:
    """Whether *result* was told unasked of a server that has once lost the zone: it may be from before that."""
    return (row.incarnation > 0 and not row.diverged and result.status is Outcome.SUCCESS
            and result.incarnation is None and result.expected_serial is None)


def confirm(row: ServerStatus, result: PollResult, now: datetime) -> ServerStatus:
    """An UPDATE *row* whose server is to be asked for what *result* says; *row* itself when nothing is to be done."""
    if is_at_rest(row):
        return row if result.serial_number == row.serial_number else again(row, now)
    return row if row.next_attempt_at is None else ready(row, now)


def has_lost_zone(result: PollResult) -> bool:
    """Whether the server says that it does not have a zone it was given."""
    return result.status is Outcome.ERROR and result.answer is Answer.NO_ZONE


def lost(create: ServerStatus, update: ServerStatus, domain: Domain, reason: str, now: datetime, tries: Tries,
         jitter: float) -> list[ServerStatus]:
    """Both rows of a server that has lost the zone: create it there again, then look for the serial.

    The serial that was seen there is gone with the zone.  A server that says so once more before any serial was seen,
    right after it was given the zone, is in ERROR, and the next attempt waits.
    """
    each = 1 + tries.max_retries
    if update.serial_number is not None or (update.status is None and update.attempts < each):
        again = _written(update, status=None, attempts=each, last_error=reason, next_attempt_at=None, deadline_at=None)
        renewed = dataclasses.replace(_renewed(create, domain, now), last_error=reason, finding_id=update.finding_id)
        return [_reborn(renewed), _reborn(again)]
    failed = _failed(update, update.attempts + each, max(0, update.attempts // each - 1), reason, now, tries, jitter)
    renewed = dataclasses.replace(_renewed(create, domain, failed.next_attempt_at), status=Outcome.ERROR,
                                  last_error=reason, finding_id=update.finding_id)
    return [_reborn(renewed), _reborn(dataclasses.replace(failed, next_attempt_at=None))]


def ready(row: ServerStatus, now: datetime) -> ServerStatus:
    """An UPDATE *row* whose server has got the zone: its serial can be asked for."""
    return _written(row, next_attempt_at=now)


def is_at_rest(row: ServerStatus) -> bool:
    """Whether *row* has succeeded and nothing is due for it."""
    return row.status is Outcome.SUCCESS and row.next_attempt_at is None


def again(row: ServerStatus, now: datetime) -> ServerStatus:
    """A *row* at rest, to be looked at once more; it counts as done until that has failed."""
    return _written(row, attempts=0, next_attempt_at=now)


def diverge(row: ServerStatus, why: str, now: datetime) -> ServerStatus:
    """An UPDATE *row* at rest whose server was found to serve other contents; it is to transfer them anew."""
    return _written(row, status=Outcome.ERROR, diverged=True, attempts=0, last_error=why, next_attempt_at=now,
                    deadline_at=None)


def outrun(row: ServerStatus, serial: int, own: int, now: datetime) -> ServerStatus:
    """An UPDATE *row* whose server serves a *serial* that is ahead of the domain's *own*; *row* when that is known."""
    if row.diverged:
        row, seen = heard(row, serial), row.serial_number
        return row if row.serial_number == seen else dataclasses.replace(row, version=row.version + 1)
    why = f'{DIVERGED}serves serial {serial}, which is ahead of {own}, the newest that the pool ever issued'
    return diverge(dataclasses.replace(row, serial_number=serial, claimed_by=None, claimed_until=None), why, now)


def is_to_be_outrun(row: ServerStatus, serial: int, domain: Domain) -> bool:
    """Whether *domain* needs a serial above the one that a server served when mending it had just failed.

    Of failures in a row only the first, second, fourth and so on count, so that the domain's serial does not chase
    after a server that counts by itself.
    """
    is_power_of_two = row.attempts > 0 and not row.attempts & (row.attempts - 1)
    return row.diverged and is_power_of_two and not domain.is_going and newer(serial, domain.serial)


def mended(row: ServerStatus) -> ServerStatus:
    """An UPDATE *row* whose server was heard to have our contents, for :func:`after_poll`."""
    return dataclasses.replace(row, diverged=False, serial_number=None if row.diverged else row.serial_number)


def by_server_and_action(rows: Sequence[ServerStatus]) -> dict[tuple[str, Action], ServerStatus]:
    return {(row.server_id, row.action): row for row in rows}


def _new(domain: Domain, server: str, action: Action, at: datetime | None) -> ServerStatus:
    return ServerStatus(server, domain.id, action, domain.serial, next_attempt_at=at, version=1)


def _renewed(row: ServerStatus, domain: Domain, at: datetime | None) -> ServerStatus:
    return _written(row, status=None, expected_serial=domain.serial, attempts=0, last_error=None,
                    next_attempt_at=at, deadline_at=None, finding_id=None)


def _reborn(row: ServerStatus) -> ServerStatus:
    """*row* of a server that has lost the zone, and the serial that was seen there with it."""
    return dataclasses.replace(row, serial_number=None, incarnation=row.incarnation + 1)


def _written(row: ServerStatus, **values: Any) -> ServerStatus:
    """*row* with *values*, its claim given back, one version on."""
    return dataclasses.replace(row, claimed_by=None, claimed_until=None, version=row.version + 1, **values)


def _failed(row: ServerStatus, attempts: int, over: int, why: str, now: datetime, tries: Tries,
            jitter: float) -> ServerStatus:
    """*row* after a failure, *over* tries past the end of its round (below 0: the round goes on)."""
    if over < 0:
        pause, status = tries.retry_interval, row.status
    else:
        pause = min(tries.backoff_maximum, tries.backoff_initial * 2 ** min(over, 16)) * (0.75 + 0.5 * jitter)
        status = Outcome.ERROR
    return _written(row, status=status, attempts=attempts, last_error=why,
                    next_attempt_at=now + timedelta(seconds=pause), deadline_at=None)
