"""The transitions of a row: the state of one action on one domain on one server.

Invariants:

* an unfinished row has a time at which it is due, or waits for a CREATE row of the same server that has one;
* the serial seen on a server never decreases, unless the server has lost the zone or divergence was cleared;
* a diverged row (the server serves other contents under our serial, or a serial that the pool never issued) stays
  diverged through changes and polls until a comparison finds the contents equal;
* a poll sent before the server lost the zone says nothing about the zone created afterwards, which has another
  *incarnation*.

A change *schedules* a row.  The row is tried, and retried every ``retry_interval`` until the tries of its round
(1 + ``max_retries``) are used up, or only once if a retry cannot help; a newer serial does not reset the tries of a
server that is failing.  Then the row is in ERROR and is retried with backoff until it succeeds or is superseded.

Each function returns new rows with the version they will have once written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from designate_pool.backoff import Backoff
from designate_pool.model import Action, CallResult, Domain, Outcome, PollResult, Reason, ServerStatus
from designate_pool.serial import at_least, newer
from designate_pool.settings import Tries

Rows = Mapping[tuple[str, Action], ServerStatus]

#: Rounds of polls after which a server that keeps an older serial is told to transfer the zone.
STUCK_ROUNDS = 4


def schedule_change(domain: Domain, rows: Rows, servers: Iterable[str], now: datetime,
                    fed: Collection[str] = ()) -> list[ServerStatus]:
    """The rows that the domain's present state creates or makes due; none if all of it is in progress already.

    :param fed: servers on which a change is tried at once: the former contents may have been what failed
    """
    if domain.is_going:
        return _schedule_deletion(domain, rows, servers, now)
    scheduled: list[ServerStatus] = []
    for server in servers:
        create = rows.get((server, Action.CREATE))
        update = rows.get((server, Action.UPDATE))
        if create is None:
            create = _new(domain, server, Action.CREATE, now)
            scheduled.append(create)
        elif create.status is not Outcome.SUCCESS and newer(domain.serial, create.expected_serial):
            # A call in progress applies the newer serial too; a failed row gets a new round.
            create = (restart(create, domain, now) if create.status is Outcome.ERROR else dataclasses.replace(
                create, expected_serial=domain.serial, version=create.version + 1))
            scheduled.append(create)
        ready = now if create.status is Outcome.SUCCESS else None
        if update is None:
            scheduled.append(_new(domain, server, Action.UPDATE, ready))
        elif newer(domain.serial, update.expected_serial):
            # Failures are counted across serials: a change does not repair the server.
            attempts = 0 if update.status is Outcome.SUCCESS else update.attempts
            if ready is not None and attempts and update.status is None and update.deadline_at is None and (
                    server not in fed):
                ready = update.next_attempt_at or ready  # wait for the next retry of its round
            finding_id = update.finding_id if update.diverged else None
            scheduled.append(dataclasses.replace(restart(update, domain, ready), attempts=attempts,
                                                 finding_id=finding_id))
        elif ready is not None and update.status is not Outcome.SUCCESS and update.next_attempt_at is None:
            # The CREATE that it waited for has succeeded.
            scheduled.append(make_due(update, ready))
    return scheduled


def _schedule_deletion(domain: Domain, rows: Rows, servers: Iterable[str], now: datetime) -> list[ServerStatus]:
    scheduled: list[ServerStatus] = []
    for server in servers:
        delete = rows.get((server, Action.DELETE))
        if delete is None:
            scheduled.append(_new(domain, server, Action.DELETE, now))
        elif is_of_former_try(delete, domain):
            scheduled.append(restart(delete, domain, now))
        for action in (Action.CREATE, Action.UPDATE):
            row = rows.get((server, action))
            # A claimed row ends by itself; its holder sees then that the domain is being deleted.
            if row is not None and row.next_attempt_at is not None and not is_claimed(row, now):
                scheduled.append(cancel(row))
    return scheduled


def is_of_former_try(delete: ServerStatus, domain: Domain) -> bool:
    """Whether a deletion failed before somebody had its staged release begin again."""
    return (delete.status is Outcome.ERROR and delete.updated_at is not None and domain.changed_at is not None
            and delete.updated_at < domain.changed_at)


def provision(domain: Domain, rows: Rows, server: str, now: datetime, gone: bool = False) -> list[ServerStatus]:
    """The rows that create *domain* on one server, or create it again with the server's present settings.

    :param gone: whether the server has lost the zone; then the serial seen there is reset
    """
    if domain.is_going:
        return []
    create, update = rows.get((server, Action.CREATE)), rows.get((server, Action.UPDATE))
    if create is None or update is None:
        return schedule_change(domain, rows, [server], now)
    again = restart(create, domain, now)
    return [_next_incarnation(again), _next_incarnation(restart(update, domain, None))] if gone else [again]


def refetch(domain: Domain, rows: Rows, server: str, now: datetime) -> list[ServerStatus]:
    """The row that makes one server fetch *domain*, which it has at another serial."""
    update = rows.get((server, Action.UPDATE))
    return [] if domain.is_going or update is None else [restart(update, domain, now)]


def is_due(row: ServerStatus, now: datetime) -> bool:
    """Whether *row* can be claimed now: it is due and not claimed."""
    return row.next_attempt_at is not None and row.next_attempt_at <= now and not is_claimed(row, now)


def is_claimed(row: ServerStatus, now: datetime) -> bool:
    """Whether somebody holds a claim on *row*."""
    return row.claimed_until is not None and row.claimed_until > now


def is_same_claim(row: ServerStatus, claimed: ServerStatus) -> bool:
    """Whether *row* still has the claim of *claimed*, which may have been renewed since."""
    return (row.claimed_by == claimed.claimed_by and row.claimed_until is not None
            and claimed.claimed_until is not None and row.claimed_until >= claimed.claimed_until)


def make_due(row: ServerStatus, at: datetime) -> ServerStatus:
    """*row*, due *at* a time: the server has got the zone, or another call for its name was in flight there."""
    return _next_version(row, next_attempt_at=at)


def claim(row: ServerStatus, by: str, until: datetime) -> ServerStatus:
    """*row*, claimed by one pool manager."""
    return dataclasses.replace(row, claimed_by=by, claimed_until=until, version=row.version + 1)


def release_claim(row: ServerStatus) -> ServerStatus:
    """*row*, without its claim."""
    return _next_version(row)


def supersede(row: ServerStatus, generation: int) -> ServerStatus:
    """A DELETE *row* that ends in success, because a newer *generation* of the name has replaced the zone."""
    return _next_version(row, status=Outcome.SUCCESS, last_error=f'superseded by generation {generation}',
                         reason=None, next_attempt_at=None, deadline_at=None)


def cancel(row: ServerStatus) -> ServerStatus:
    """*row*, no longer due: its domain is deleted."""
    return _next_version(row, next_attempt_at=None, deadline_at=None)


def restart(row: ServerStatus, domain: Domain, at: datetime | None) -> ServerStatus:
    """*row*, to be executed again for the domain's present serial, *at* a time; None while it waits for another row."""
    return _next_version(row, status=None, expected_serial=domain.serial, attempts=0, last_error=None,
                         reason=None, next_attempt_at=at, deadline_at=None, finding_id=None)


def after_call(row: ServerStatus, result: CallResult, now: datetime, tries: Tries, jitter: float) -> ServerStatus:
    """*row* after a driver's call; *jitter* is a random number from 0 to 1."""
    if result.ok:
        return _succeeded(row)
    attempts = row.attempts + 1
    overrun = attempts - 1 - (tries.max_retries if result.retryable else 0)
    return _failed(row, attempts, overrun, result.error or '', result.reason or Reason.OTHER, now, tries, jitter)


def observe(row: ServerStatus, serial: int | None, now: datetime) -> ServerStatus:
    """*row* with *serial*, which its server serves, unless a newer one was seen there."""
    if serial is None or not (row.serial_number in (None, serial) or newer(serial, row.serial_number or 0)):
        return row
    return dataclasses.replace(row, serial_number=serial, seen_at=now)


def poll_sent(row: ServerStatus, now: datetime, tries: Tries) -> ServerStatus:
    """*row* while MiniDNS polls for it.  If no result arrives, it is due again when the round must have ended."""
    deadline = now + timedelta(seconds=(1 + tries.max_retries) * (tries.timeout + tries.retry_interval))
    return _next_version(row, next_attempt_at=deadline, deadline_at=deadline)


def after_poll(row: ServerStatus, result: PollResult, now: datetime, tries: Tries, jitter: float) -> ServerStatus:
    """An UPDATE *row* after a poll; *row* itself if nothing has changed."""
    seen = observe(row, result.serial_number, now)
    is_same = seen.serial_number == row.serial_number
    if row.diverged:
        # Whatever its serial, only a comparison of contents can clear divergence.
        return row if is_same else dataclasses.replace(seen, version=row.version + 1)
    if result.status is Outcome.SUCCESS:
        if result.serial_number is not None and at_least(result.serial_number, row.expected_serial):
            if row.status is Outcome.SUCCESS and is_same and row.next_attempt_at is None:
                return row
            return _succeeded(seen)
        if is_same:
            return row
        # An unsolicited result; poll again now, as the polling MiniDNS believes the server to be fetching still.
        unsolicited = result.expected_serial is None and row.deadline_at is not None
        return _next_version(seen, next_attempt_at=now if unsolicited else row.next_attempt_at,
                             attempts=row.attempts if row.status is Outcome.ERROR else 0)  # it makes progress, if late
    # MiniDNS reports ERROR after all tries of a round.  A row that had succeeded starts counting from zero.
    spent = 0 if row.status is Outcome.SUCCESS else row.attempts
    per_round = 1 + tries.max_retries
    return _failed(seen, spent + per_round, spent // per_round, result.error or '',
                   result.reason or Reason.of(result.answer), now, tries, jitter)


def is_doubtful(row: ServerStatus, result: PollResult) -> bool:
    """Whether a poll has seen a serial that the server was not seen to reach by transfers from what it served before.

    Somebody may have edited the zone there and used the serial of the change.  A zone that was never seen there is new.
    """
    return (not row.diverged and None not in (row.serial_number, result.base)
            and newer(result.base, row.serial_number))  # type: ignore[arg-type]


def doubt(row: ServerStatus, serial: int | None, now: datetime) -> ServerStatus:
    """An UPDATE *row* due for a comparison; *row* itself if it is already."""
    if row.reason is Reason.UNCHECKED:
        return row
    why = f'serves serial {serial}, which it was not seen to transfer: its contents are compared'
    begins = row.status is Outcome.SUCCESS
    return _next_version(row, status=None if begins else row.status, attempts=0 if begins else row.attempts,
                         last_error=why, reason=Reason.UNCHECKED, next_attempt_at=now, deadline_at=None)


def is_stuck(row: ServerStatus, tries: Tries) -> bool:
    """Whether the server of *row* answers, and keeps an older serial through many rounds of NOTIFYs and polls.

    NOTIFYs may not reach it, or it may not act on them.  It is then told over its control channel, in rounds 4, 8, 16
    and so on: a server that is only slow needs ever more time, and may begin its transfer anew when it is told.
    """
    rounds = row.attempts // (1 + tries.max_retries)
    return (row.action is Action.UPDATE and row.status is Outcome.ERROR and row.reason is Reason.STALE
            and not row.diverged and rounds >= STUCK_ROUNDS and not rounds & (rounds - 1))


def needs_call(row: ServerStatus, fed_by_records: bool, tries: Tries) -> bool:
    """Whether *row* needs a driver call rather than a poll."""
    return (row.action is not Action.UPDATE or row.diverged or fed_by_records or row.reason is Reason.UNCHECKED
            or is_stuck(row, tries))


def refetched(row: ServerStatus, now: datetime, tries: Tries) -> ServerStatus:
    """A stuck *row* whose server has been told to transfer the zone, due for a poll; that counts as a round."""
    return _next_version(row, attempts=row.attempts + 1 + tries.max_retries, next_attempt_at=now, deadline_at=None)


def count_stale_failure(row: ServerStatus, result: PollResult, tries: Tries) -> ServerStatus:
    """An UPDATE *row* after a poll that failed for an older serial; *row* itself if the failure does not count.

    If a domain changes more often than a round takes, all failures are of this kind.  The first may be due to the
    change; after a second one without progress of the server the row is in ERROR.
    """
    assert result.expected_serial is not None
    if row.status is Outcome.SUCCESS or row.diverged or (
            row.serial_number is not None and at_least(row.serial_number, result.expected_serial)):
        return row
    per_round = 1 + tries.max_retries
    return dataclasses.replace(row, status=Outcome.ERROR if row.attempts >= per_round else row.status,
                               attempts=row.attempts + per_round, last_error=result.error,
                               reason=result.reason or Reason.of(result.answer), version=row.version + 1)


def confirm(row: ServerStatus, result: PollResult, now: datetime) -> ServerStatus:
    """An UPDATE *row* due for a poll that confirms *result*; *row* itself if none is needed."""
    if is_at_rest(row):
        return row if result.serial_number == row.serial_number else recheck(row, now)
    reason = None if row.reason is Reason.UNCHECKED else row.reason
    return row if row.next_attempt_at is None else dataclasses.replace(make_due(row, now), reason=reason)


def zone_lost(create: ServerStatus, update: ServerStatus, domain: Domain, why: str, now: datetime, tries: Tries,
              jitter: float) -> list[ServerStatus]:
    """Both rows of a server that has lost the zone: create it there again, then poll for the serial.

    The serial that was seen is reset.  If the server loses the zone again before any serial was seen, the rows are in
    ERROR and the next attempt waits.
    """
    per_round = 1 + tries.max_retries
    if update.serial_number is not None or (update.status is None and update.attempts < per_round):
        update = _next_version(update, status=None, attempts=per_round, last_error=why, reason=Reason.NO_ZONE,
                               next_attempt_at=None, deadline_at=None)
        restarted = dataclasses.replace(restart(create, domain, now), last_error=why, reason=Reason.NO_ZONE,
                                        finding_id=update.finding_id)
        return [_next_incarnation(restarted), _next_incarnation(update)]
    failed = _failed(update, update.attempts + per_round, max(0, update.attempts // per_round - 1), why,
                     Reason.NO_ZONE, now, tries, jitter)
    restarted = dataclasses.replace(restart(create, domain, failed.next_attempt_at), status=Outcome.ERROR,
                                    last_error=why, reason=Reason.NO_ZONE, finding_id=update.finding_id)
    return [_next_incarnation(restarted), _next_incarnation(dataclasses.replace(failed, next_attempt_at=None))]


def is_at_rest(row: ServerStatus) -> bool:
    """Whether *row* has succeeded and is not due."""
    return row.status is Outcome.SUCCESS and row.next_attempt_at is None


def recheck(row: ServerStatus, now: datetime) -> ServerStatus:
    """A *row* at rest, due for another poll; it remains a success until that fails."""
    return _next_version(row, attempts=0, next_attempt_at=now)


def diverge(row: ServerStatus, why: str, now: datetime) -> ServerStatus:
    """An UPDATE *row* whose server serves other contents; due for a retransfer."""
    return _next_version(row, status=Outcome.ERROR, diverged=True, attempts=0, last_error=why,
                         reason=Reason.DIVERGED, next_attempt_at=now, deadline_at=None)


def serial_ahead(row: ServerStatus, serial: int, own: int, now: datetime) -> ServerStatus:
    """An UPDATE *row* whose server serves a *serial* ahead of the domain's *own*; *row* itself if that is known."""
    if row.diverged:
        seen = observe(row, serial, now)
        is_same = seen.serial_number == row.serial_number
        return row if is_same else dataclasses.replace(seen, version=row.version + 1)
    why = f'serves serial {serial}, which is ahead of {own}, the newest that the pool ever issued'
    row = dataclasses.replace(row, serial_number=serial, seen_at=now, claimed_by=None, claimed_until=None)
    return diverge(row, why, now)


def needs_higher_serial(row: ServerStatus, serial: int, domain: Domain) -> bool:
    """Whether Central must issue a serial above the one that a server still serves after a failed retransfer.

    Only the 1st, 2nd, 4th, 8th, ... consecutive failure asks for one, so that the domain's serial does not race with a
    server that increments its own; and none of a server that signs, which does.
    """
    is_power_of_two = row.attempts > 0 and not row.attempts & (row.attempts - 1)
    is_useless = not row.diverged or row.reason is Reason.SIGNS or domain.is_going
    return not is_useless and is_power_of_two and newer(serial, domain.serial)


def clear_divergence(row: ServerStatus) -> ServerStatus:
    """An UPDATE *row* whose server has our contents, as input of :func:`after_poll`."""
    return dataclasses.replace(row, diverged=False, serial_number=None if row.diverged else row.serial_number)


def key_of(row: ServerStatus) -> tuple[str, str, Action]:
    """What identifies *row*: (server id, domain id, action)."""
    return row.server_id, row.domain_id, row.action


def _new(domain: Domain, server: str, action: Action, at: datetime | None) -> ServerStatus:
    return ServerStatus(server, domain.id, action, domain.serial, next_attempt_at=at, version=1)


def _next_incarnation(row: ServerStatus) -> ServerStatus:
    """*row* of a server that has lost the zone: without a seen serial, of the next incarnation."""
    return dataclasses.replace(row, serial_number=None, incarnation=row.incarnation + 1)


def _next_version(row: ServerStatus, **values: Any) -> ServerStatus:
    return dataclasses.replace(row, claimed_by=None, claimed_until=None, version=row.version + 1, **values)


def _succeeded(row: ServerStatus) -> ServerStatus:
    return _next_version(row, status=Outcome.SUCCESS, attempts=row.attempts + 1, last_error=None, reason=None,
                         next_attempt_at=None, deadline_at=None)


def _failed(row: ServerStatus, attempts: int, overrun: int, why: str, reason: Reason, now: datetime, tries: Tries,
            jitter: float) -> ServerStatus:
    """*row* after a failure, *overrun* tries past the end of its round (negative: the round has not ended)."""
    if overrun < 0:
        pause, status = tries.retry_interval, row.status
    else:
        backoff = Backoff(tries.backoff_initial, cap=tries.backoff_maximum, jitter=(0.75, 1.25))
        pause, status = backoff.delay(overrun, jitter), Outcome.ERROR
    return _next_version(row, status=status, attempts=attempts, last_error=why, reason=reason,
                         next_attempt_at=now + timedelta(seconds=pause), deadline_at=None)
