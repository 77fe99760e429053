"""The invariants of one domain and its rows: pure.

While operations are in progress an invariant may look broken for a moment; callers look again before they report it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from designate_pool import consensus
from designate_pool.consensus import Members
from designate_pool.model import Action, Outcome, ServerStatus, Status
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.serial import newer
from designate_pool.storage.reporting.invariants import DomainRows


def breaches(domain_rows: DomainRows, members: Members, threshold_percentage: int, late: timedelta,
             now: datetime) -> Iterator[str]:
    """The broken invariants, sentences without full stop; *late*: how long a row may be due, or its claim be over."""
    domain, rows = domain_rows.domain, domain_rows.rows
    labels = {server.id: server.label for server in members.servers}
    for row in rows:
        where = f'{row.action} on {labels.get(row.server_id, row.server_id)}'
        yield from (f'{where}: {what}' for what in _of_row(domain_rows, row, labels, late, now))
    if domain.release_state is not None:
        return  # nothing else is so on all servers
    if domain.reported_serial is not None and newer(domain.reported_serial, domain.serial):
        yield f'it was reported at serial {domain.reported_serial}, which is ahead of its own, {domain.serial}'
    if domain.is_going:
        yield from _of_deletion(domain_rows, members, threshold_percentage)
        return
    if domain.generation < domain_rows.newest:
        yield f'it lives at generation {domain.generation}, and its name was at {domain_rows.newest} already'
    yield from _of_shares(domain_rows)
    if domain.awaits_transfer:
        return  # nothing is done on servers before it is transferred from a master
    verdict = consensus.weigh(domain, rows, members.counting, threshold_percentage, members.uncounted)
    waits = any(row.next_attempt_at is not None for row in rows)
    if domain.status is Status.ACTIVE:
        if domain.action is not Action.NONE or not consensus.is_reached(domain, domain.least_serial):
            yield f'it is ACTIVE with {domain.action} to be done and serial {domain.reported_serial} reported'
        if domain_rows.undone:
            yield f'it is ACTIVE, and {domain_rows.undone} of its records are not'
        if members.counting and len(verdict.agreed) < verdict.needed and not waits:
            yield (f'it is ACTIVE at serial {domain.serial}, which {len(verdict.agreed)} of {verdict.total} servers '
                   'serve, and nothing is due')
    elif not waits and members.counting and domain.waits_for is None:
        yield f'it is {domain.status}, and nothing is due on any server'
    if domain.status is not Status.PENDING:
        provisioned = {row.server_id for row in rows if row.action is Action.UPDATE}
        lacking = [server.label for server in members.servers
                   if server.id in members.tracked and not server.is_filling and server.id not in provisioned]
        if lacking:
            yield f'nothing was ever begun on {", ".join(lacking)}'


def _of_row(domain_rows: DomainRows, row: ServerStatus, labels: dict[str, str], late: timedelta,
            now: datetime) -> Iterator[str]:
    domain = domain_rows.domain
    if row.server_id not in labels and row.server_id not in domain_rows.former_servers:
        yield 'the pool has no such server'
    if (row.claimed_by is None) is not (row.claimed_until is None):
        yield 'it is claimed by nobody, or for no time'
    if row.next_attempt_at is not None:
        due_since = max(filter(None, (row.next_attempt_at, row.claimed_until, row.deadline_at)))
        if due_since + late < now:
            yield f'it is due since {due_since:%Y-%m-%d %H:%M:%S}, and nobody has taken it'
    elif row.status is not Outcome.SUCCESS and not _waits_for_another(domain_rows, row):
        yield f'it is {row.status or Status.PENDING} and waits for nothing'
    if row.action is Action.DELETE:
        if not domain.is_going:
            yield 'it exists, and the zone is not being deleted'
        return
    if newer(row.expected_serial, domain.serial):
        yield f'it expects serial {row.expected_serial}, which is ahead of the zone, {domain.serial}'
    if row.serial_number is not None and newer(row.serial_number, domain.serial) and not row.diverged:
        yield f'serial {row.serial_number} was seen, which is ahead of the zone, {domain.serial}, and it counts'
    if (row_transitions.is_at_rest(row) and row.action is Action.UPDATE and not domain.is_going
            and row.serial_number is None):
        yield 'it is done, and no serial was ever seen'


def _of_shares(domain_rows: DomainRows) -> Iterator[str]:
    domain, targets = domain_rows.domain, domain_rows.targets
    if domain.shared is not bool(targets):
        yield f'it is {"" if domain.shared else "not "}marked as shared, and has {len(targets) or "no"} shares'
    if domain.project_id in targets:
        yield f'it is shared with its own project {domain.project_id}'
    for guest in sorted(domain_rows.guests - targets - {domain.project_id}):
        yield f'it has recordsets of the project {guest}, which it is not shared with'


def _waits_for_another(domain_rows: DomainRows, row: ServerStatus) -> bool:
    """Whether the row waits for the CREATE row of the same server, or its domain is being deleted."""
    if row.action is Action.DELETE:
        return False
    if domain_rows.domain.is_going:
        return True
    return row.action is Action.UPDATE and any(
        other.action is Action.CREATE and other.server_id == row.server_id and other.next_attempt_at is not None
        for other in domain_rows.rows)


def _of_deletion(domain_rows: DomainRows, members: Members, threshold_percentage: int) -> Iterator[str]:
    domain, rows = domain_rows.domain, domain_rows.rows
    gone = {row.server_id for row in rows if row.action is Action.DELETE}
    if domain.status is Status.DELETED:
        if domain.action is not Action.NONE:
            yield f'it is DELETED with {domain.action} to be done'
        if not rows:
            return
    elif domain.status is Status.ACTIVE:
        yield 'it is ACTIVE, and to be deleted'
    for server in sorted({row.server_id for row in rows} - gone):
        yield f'its deletion was never begun on {server}, which has rows of it'
    verdict = consensus.weigh(domain, rows, members.counting, threshold_percentage, members.uncounted)
    if not verdict.behind and members.counting:
        yield ('every server has confirmed its deletion, and its rows are still there'
               if domain.status is Status.DELETED else 'every server has confirmed its deletion, and it is not DELETED')
