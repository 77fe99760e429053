"""Changes of recordsets: of one for each request, several requests in one transaction; and of a domain's contents.

The invariant: a request ends as it would in a transaction of its own.  Each is for another domain, and all are checked
before anything is written, so the error of one is not that of another.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from designate_pool.call_combiner import MOST_RECORDS
from designate_pool.central import events, transactions
from designate_pool.central.rules import domains as domain_rules, name_ownership, plans, recordset_edits, zone_shares
from designate_pool.central.rules.journal import Journal, JournalEntry
from designate_pool.central.rules.quotas import Allowance, deleting_project
from designate_pool.central.rules.recordset_edits import RecordSetEdits
from designate_pool.central.validation.requests import RecordSetValues, WantedRecordSet
from designate_pool.errors import LostRace, ManagedRecordSet, PoolError, PreconditionFailed, RecordSetNotFound, Refused
from designate_pool.model import Context, Domain, RecordSet, Status, Task
from designate_pool.protocol.rules import ServerLimit
from designate_pool.storage import queries
from designate_pool.storage.sql.bulk import Insertion
from designate_pool.storage.sql.database import Dialect, Tx
from designate_pool.storage.zones import domains, managed_records, recordsets, zone_ancestry

#: Inserts the contents of a new domain, part by part.
InsertionParts = Generator[Sequence[Insertion], None, None]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RecordSetRequest:
    """A request to create, change or delete a recordset, checked but for what depends on the stored recordset.

    :ivar recordset_id: of a new recordset, a new id
    :ivar new: the new recordset; None for one that exists
    :ivar values: the new values of one that exists; None to delete it
    """

    context: Context
    domain_id: str
    recordset_id: str
    new: WantedRecordSet | None = None
    values: RecordSetValues | None = None


class RecordSetResult(NamedTuple):
    """The result of a request.

    :ivar recordset: as it is now; of a deleted one, as it was, with its records PENDING
    :ivar changed: whether the served contents of the domain change
    """

    domain: Domain
    recordset: RecordSet
    changed: bool


#: How the ids in an attribute of :class:`RecordSetEdits` are written.
_WRITES: dict[str, Callable[[Tx, Iterable[str], int, datetime], None]] = {
    'gone_sets': recordsets.delete, 'gone_records': recordsets.delete_records,
    'touched_records': recordsets.touch_records}
#: More recordsets than one name has.
_SETS_AT_NAME = 100
#: The result or the error of each request.
Results = dict[RecordSetRequest, RecordSetResult | Exception]


class DomainEdits(NamedTuple):
    """The edits of one request, with its locked domain, and the existing recordsets that they concern (*present*)."""

    context: Context
    domain: Domain
    edits: RecordSetEdits
    present: Sequence[RecordSet]


def change_recordset(tx: Tx, request: RecordSetRequest, now: datetime, allowance: Allowance,
                     journal: Journal) -> RecordSetResult:
    """Create, change or delete one recordset."""
    locked = domains.lock_for(tx, request.domain_id, request.context.operation_id)
    result = _change_recordsets(tx, [request], {request.domain_id: locked}, now, allowance, journal)[request]
    if isinstance(result, Exception):
        raise result
    return result


def change_recordsets(tx: Tx, requests: Sequence[RecordSetRequest], now: datetime, allowance: Allowance,
                      journal: Journal) -> Results:
    """The results of some of *requests*.

    Requests have no result here, and are made alone, whose domain another transaction has locked or an earlier one
    changes, or whose recordsets have more than :data:`~designate_pool.call_combiner.MOST_RECORDS` records.
    """
    first: dict[str, RecordSetRequest] = {}
    for request in requests:
        first.setdefault(request.domain_id, request)
    operations = {domain_id: request.context.operation_id for domain_id, request in first.items()}
    locked = domains.lock_free_for(tx, operations)
    # Their deletes are counted in this order: each locks a row.
    ordered = sorted((request for domain_id, request in first.items() if domain_id in locked),
                     key=lambda request: deleting_project(request.context, locked[request.domain_id][0]))
    return _change_recordsets(tx, ordered, locked, now, allowance, journal, MOST_RECORDS)


def _change_recordsets(tx: Tx, requests: Sequence[RecordSetRequest],
                       locked: Mapping[str, tuple[Domain | None, int | None]], now: datetime, allowance: Allowance,
                       journal: Journal, most: int | None = None) -> Results:
    """Check all requests but those for more than *most* records, write their edits, and make their results."""
    results: Results = {}
    by_request: dict[RecordSetRequest, Domain] = {}
    for request in requests:
        try:
            domain, is_done = transactions.check_locked(tx, request.context, request.domain_id,
                                                        locked[request.domain_id], True, request.new is None)
            if is_done:
                results[request] = _repeated(tx, request, domain)
            else:
                by_request[request] = domain
        except PoolError as error:
            results[request] = error.with_traceback(None)
    planned: dict[RecordSetRequest, DomainEdits] = {}
    for request, present in _present(tx, by_request).items():
        if most is not None and sum(len(recordset.records) for recordset in present) > most:
            continue
        try:
            domain = by_request[request]
            planned[request] = _plan(request, domain, present, allowance.server_limits(tx, domain.pool_id))
        except PoolError as error:
            results[request] = error.with_traceback(None)
    checked: dict[RecordSetRequest, DomainEdits] = {}
    possible = [name for request, edits in planned.items() if request.new is not None
                for name in name_ownership.subzone_names(edits.domain, request.new)]
    subzones = zone_ancestry.live_domains(tx, possible) if possible else []
    for request, edits in planned.items():
        try:
            if request.new is not None:
                name_ownership.refuse_in_subzones(tx, request.context, edits.domain, subzones, [request.new])
                zone_shares.refuse_at_others(tx, request.context, edits.domain, edits.edits.new_sets)
            allowance.check_edits(tx, edits.domain, edits.present, edits.edits)
            if edits.domain.needs_approval or request.context.approved_by:
                gate(tx, edits, now, functools.partial(_awaited, request, edits, now))
            if edits.edits.gone_sets:
                edits = edits._replace(domain=allowance.count_deletes(tx, request.context, edits.domain, edits.edits,
                                                                      now))
            checked[request] = edits
        except LostRace:  # of all, who are then tried one by one
            raise
        except PoolError as error:
            results[request] = error.with_traceback(None)
    for (request, edits), (domain, changed) in zip(checked.items(),
                                                   write_edits(tx, list(checked.values()), now, journal)):
        results[request] = _result(request, edits, domain, changed, now)
    return results


def _present(tx: Tx, by_request: Mapping[RecordSetRequest, Domain]) -> dict[RecordSetRequest, list[RecordSet]]:
    """The recordsets that exist at the name of a new one, for the rules some below and above, or the one that a request
    names."""
    new = {request: (domain.id, request.new.name) for request, domain in by_request.items() if request.new is not None}
    at_names = recordsets.at_names_of(tx, new.values()) if new else {}
    for request, key in new.items():
        if request.new is not None and request.new.type == 'DNAME':
            at_names[key] = [*at_names[key], *recordsets.some_below(tx, *key, 1 + _SETS_AT_NAME)]
    old = recordsets.get_many(tx, [request.recordset_id for request in by_request if request.new is None])
    present: dict[RecordSetRequest, list[RecordSet]] = {}
    for request, domain in by_request.items():
        recordset = old.get(request.recordset_id)
        present[request] = at_names[new[request]] if request in new else \
            [recordset] if recordset is not None and recordset.domain_id == domain.id else []
    return present


def _plan(request: RecordSetRequest, domain: Domain, present: Sequence[RecordSet],
          limits: Sequence[ServerLimit]) -> DomainEdits:
    context = request.context
    if request.new is not None:
        edits = recordset_edits.plan(domain, present, [request.new], must_be_new=True, new_ids=[request.recordset_id],
                                     project_id=zone_shares.project_of_new(context, domain), limits=limits)
    else:
        if not present:
            raise RecordSetNotFound(recordset=request.recordset_id)
        old, = present
        if queries.is_guest(context, domain):
            zone_shares.refuse_foreign(context, [old])
        # Neither name nor type can change, so there is no other recordset to be in conflict with.
        change = WantedRecordSet(old.name, old.type, ()) if request.values is None else request.values.of(old)
        edits = recordset_edits.plan(domain, [old], [change], may_edit_managed=context.may_edit_managed, limits=limits)
        _check_condition(context, old)  # after what refuses the change anyway (RFC 9110 section 13.2.1)
    return DomainEdits(context, domain, edits, present)


def _check_condition(context: Context, old: RecordSet) -> None:
    if not context.allows_change_of(old.etag):
        last = max((record.serial_number for record in old.records), default=0)
        raise PreconditionFailed(what=f'The recordset {old.name} {old.type}',
                                 how=f'its records are of serial {last} now')


def gate(tx: Tx, change: DomainEdits, now: datetime, value: Callable[[], Any]) -> None:
    """As :func:`designate_pool.central.rules.plans.gate`, for edits that are about to be written."""
    if change.edits:
        plans.gate(tx, change.context, change.domain, lambda: recordset_edits.shown(change.edits, change.present),
                   now, value)


def _awaited(request: RecordSetRequest, change: DomainEdits, now: datetime) -> RecordSet:
    """The recordset as the request will leave it."""
    change.edits.record_ids = [''] * len(change.edits.new_records)
    return dataclasses.replace(_result(request, change, change.domain, False, now).recordset, domain=change.domain)


def _result(request: RecordSetRequest, change: DomainEdits, domain: Domain, changed: bool,
            now: datetime) -> RecordSetResult:
    """The result of a request whose edits were written; *domain* is as after the change."""
    edits = change.edits
    if request.new is not None:
        return RecordSetResult(domain, recordset_edits.written(edits.new_sets[0], edits, domain.serial, now), True)
    old = change.present[0]
    if request.values is not None:
        return RecordSetResult(domain, recordset_edits.written(old, edits, domain.serial, now), changed)
    deleted = tuple(dataclasses.replace(record, serial_number=domain.serial, task=Task.DELETE, status=Status.PENDING)
                    for record in old.records)
    return RecordSetResult(domain, dataclasses.replace(old, records=deleted, updated_at=now, version=old.version + 1),
                           True)


def _repeated(tx: Tx, request: RecordSetRequest, domain: Domain) -> RecordSetResult:
    """The result of a request whose change was committed before."""
    recordset = recordsets.get(tx, domain.id, request.recordset_id)
    if request.new is None and request.values is None:
        recordset = recordsets.deleted(tx, domain.id, request.recordset_id, domain.serial) or recordset
    if recordset is None:
        raise RecordSetNotFound(recordset=request.recordset_id)
    return RecordSetResult(domain, recordset, True)


def set_lock(tx: Tx, context: Context, domain_id: str, recordset_id: str, reason: str | None, is_admin: bool,
             now: datetime) -> tuple[Domain, RecordSet]:
    """Lock a recordset for requests; see :func:`designate_pool.central.domain_changes.set_lock`."""
    domain, _ = transactions.check_locked(tx, context, domain_id, domains.lock_for(tx, domain_id, context.operation_id),
                                          for_records=True, of_recordset=True)
    old = recordsets.get(tx, domain.id, recordset_id)
    if old is None:
        raise RecordSetNotFound(recordset=recordset_id)
    if old.managed and old.type in ('SOA', 'NS'):
        raise ManagedRecordSet(name=old.name, rtype=old.type)
    if queries.is_guest(context, domain):
        zone_shares.refuse_foreign(context, [old])
    _check_condition(context, old)
    new = transactions.with_lock(f'the recordset {old.name} {old.type}', old, reason, is_admin, now)
    if new is old:
        return domain, old
    recordsets.save_lock(tx, new)
    more = (new.lock_reason is not None) - (old.lock_reason is not None)
    domain = dataclasses.replace(domain, locked_recordsets=domain.locked_recordsets + more, updated_at=now,
                                 version=domain.version + 1)
    domains.save_lock(tx, domain)
    return domain, new


def apply_changes(tx: Tx, context: Context, domain_id: str, wanted: Sequence[WantedRecordSet], now: datetime,
                  allowance: Allowance, journal: Journal, serial: int | None = None,
                  dry_run: bool = False, is_abort: bool = False) -> tuple[Domain, bool]:
    """Change the recordsets to *wanted*; the domain, and whether its served contents change.

    :param serial: what the domain's serial must be
    :param dry_run: check only whether that may be done
    :param is_abort: whether servers have *wanted* still, so that no lock and no quota refuses it
    :raises Refused: when it has another one
    """
    domain, is_done = transactions.lock_domain(tx, context, domain_id, for_records=True, or_locked=is_abort)
    if is_done:
        return domain, True
    if serial is not None and domain.serial != serial:
        raise Refused('serial_moved', f'The zone {domain.name} is at serial {domain.serial}, not {serial}: it was '
                                      'changed meanwhile.', 409)
    present = recordsets_around(tx, domain.id, wanted)
    if queries.is_guest(context, domain):
        keys = {(change.name, change.type) for change in wanted}
        zone_shares.refuse_foreign(context, (old for old in present if (old.name, old.type) in keys))
    locked = [old.id for old in present if old.lock_reason is not None]
    if is_abort:
        present = [dataclasses.replace(old, lock_reason=None) for old in present]
    edits = recordset_edits.plan(domain, present, wanted, project_id=zone_shares.project_of_new(context, domain),
                                 may_edit_managed=context.may_edit_managed,
                                 limits=allowance.server_limits(tx, domain.pool_id))
    name_ownership.refuse_new_in_subzones(tx, context, domain, edits.new_sets, wanted)
    zone_shares.refuse_at_others(tx, context, domain, edits.new_sets)
    if not is_abort:
        allowance.check_edits(tx, domain, present, edits)
    if not dry_run:
        gate(tx, DomainEdits(context, domain, edits, present), now, lambda: domain)
    if edits.gone_sets and not is_abort:
        domain = allowance.count_deletes(tx, context, domain, edits, now)
    if unlocked := len({*locked}.intersection(edits.gone_sets)):
        domain = dataclasses.replace(domain, locked_recordsets=domain.locked_recordsets - unlocked)
        domains.save_lock(tx, domain)
    changed = write_edits(tx, [DomainEdits(context, domain, edits, present)], now, journal)[0]
    if dry_run:
        tx.rollback()
    return changed


def recordsets_around(tx: Tx, domain_id: str, wanted: Sequence[WantedRecordSet]) -> list[RecordSet]:
    """The recordsets at the names of *wanted*, the DNAMEs above, and of those below new DNAMEs enough for the rules."""
    names = {change.name for change in wanted}
    below = [recordset for change in wanted if change.type == 'DNAME' and change.rdatas != ()
             for recordset in recordsets.some_below(tx, domain_id, change.name, len(wanted) + 1 + _SETS_AT_NAME)
             if recordset.name not in names]
    return [*recordsets.at_names(tx, domain_id, names), *below]


def write_edits(tx: Tx, changes: Sequence[DomainEdits], now: datetime, journal: Journal) -> list[tuple[Domain, bool]]:
    """Write edits of different domains; each domain, with a new serial if its contents change, and whether they do."""
    served = [change for change in changes if change.edits.contents]
    new = journal.write(tx, [
        JournalEntry(context, domain, domain_rules.change(domain, now, events.request_id(context)), edits, present)
        for context, domain, edits, present in served], now) if served else []
    changed = {domain.id: domain for domain in new}
    if new:
        domains.save_many(tx, ((domain, change.context.operation_id) for domain, change in zip(new, served)))
    write_contents(tx, [(changed.get(change.domain.id, change.domain), change.edits) for change in changes], now)
    managed = [recordset.id for change in served for recordset in change.present
               if recordset.managed and recordset.type not in ('SOA', 'NS')]
    if managed:
        marked = managed_records.mark_managed(tx, managed, now)
        for change in served:
            change.edits.marked_sets = [recordset.id for recordset in change.present if recordset.id in marked]
    return [(changed.get(change.domain.id, change.domain), change.domain.id in changed) for change in changes]


def write_contents(tx: Tx, changes: Sequence[tuple[Domain, RecordSetEdits]], now: datetime) -> None:
    """Write edits of locked domains, each with the serial that it gets by them."""
    by_serial: dict[int, list[tuple[Domain, RecordSetEdits]]] = {}
    for domain, edits in changes:
        by_serial.setdefault(domain.serial, []).append((domain, edits))
    for serial, same in by_serial.items():
        for name, write in _WRITES.items():
            id_lists = [getattr(edits, name) for _, edits in same]
            if any(id_lists):
                write(tx, itertools.chain(*id_lists), serial, now)
    if new_sets := [recordset for _, edits in changes for recordset in edits.new_sets]:
        recordsets.insert(tx, new_sets, now)
    for serial, same in by_serial.items():
        ids = iter(recordsets.insert_records(tx, serial, (
            (domain.id, set_id, rdata.text, rdata.wire) for domain, edits in same
            for set_id, rdata in edits.new_records), now))
        for _, edits in same:
            edits.record_ids = list(itertools.islice(ids, len(edits.new_records)))
    by_settings: dict[tuple[int | None, str | None], list[str]] = {}
    for _, edits in changes:
        for settings, set_ids in edits.changed_sets.items():
            by_settings.setdefault(settings, []).extend(set_ids)
    for (ttl, description), set_ids in by_settings.items():
        recordsets.change(tx, set_ids, ttl, description, now)


def insertions(dialect: Dialect, domain: Domain, edits: RecordSetEdits, now: datetime) -> list[Insertion]:
    """The statements that insert the recordsets and records of a new domain."""
    rows = ((domain.id, set_id, rdata.text, rdata.wire) for set_id, rdata in edits.new_records)
    return [recordsets.insertion(dialect, edits.new_sets, now),
            *(insertion for _, insertion in recordsets.record_insertions(dialect, domain.serial, rows, now))]
