"""Creates, changes and deletes recordsets, for one request or for several in one transaction.

The invariant: a request ends as it would in a transaction of its own.  Each is for another domain, and all are checked
before anything is written, so the error of one is not that of another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from designate_pool.central import transactions
from designate_pool.central.recordset_writes import DomainEdits, write_edits
from designate_pool.central.request_combiner import MOST_RECORDS
from designate_pool.central.rules import name_ownership, recordset_edits, zone_shares
from designate_pool.central.rules.journal import Journal
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.validation.requests import WantedRecordSet
from designate_pool.errors import ManagedRecordSet, PoolError, RecordSetNotFound, RecordSetOfResource
from designate_pool.model import Context, Domain, RecordSet, Status, Task
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, recordsets, zone_ancestry


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class RecordSetRequest:
    """A request to create, change or delete a recordset.

    :ivar recordset_id: of a new one, a new id
    :ivar wanted: the new recordset; None for one that exists
    :ivar values: its new values, by its type; None to delete it
    """

    context: Context
    domain_id: str
    recordset_id: str
    wanted: WantedRecordSet | None = None
    values: Callable[[str], Mapping[str, Any]] | None = None


class RecordSetResult(NamedTuple):
    """What a request has done.

    :ivar recordset: as it is now; of a deleted one, as it was, with its records PENDING
    :ivar changed: whether the served contents of the domain change
    """

    domain: Domain
    recordset: RecordSet
    changed: bool


#: What becomes of each request.
Results = dict[RecordSetRequest, RecordSetResult | Exception]


class _Change(NamedTuple):
    request: RecordSetRequest
    edits: DomainEdits

    def result(self, domain: Domain, changed: bool, now: datetime) -> RecordSetResult:
        edits, request = self.edits.edits, self.request
        if request.wanted is not None:
            return RecordSetResult(domain, recordset_edits.written(edits.new_sets[0], edits, domain.serial, now), True)
        old = self.edits.present[0]
        if request.values is not None:
            return RecordSetResult(domain, recordset_edits.written(old, edits, domain.serial, now), changed)
        gone = tuple(dataclasses.replace(record, serial_number=domain.serial, task=Task.DELETE, status=Status.PENDING)
                     for record in old.records)
        return RecordSetResult(domain, dataclasses.replace(old, records=gone, updated_at=now, version=old.version + 1),
                               True)


def carry_out_one(tx: Tx, request: RecordSetRequest, now: datetime, allowance: Allowance,
                  journal: Journal) -> RecordSetResult:
    """
    :raises PoolError: when it is refused
    """
    locked = domains.lock_for(tx, request.domain_id, request.context.operation_id)
    found = _carry_out(tx, [request], {request.domain_id: locked}, now, allowance, journal)[request]
    if isinstance(found, Exception):
        raise found
    return found


def carry_out(tx: Tx, requests: Sequence[RecordSetRequest], now: datetime, allowance: Allowance,
              journal: Journal) -> Results:
    """What becomes of some of *requests*.

    Left out is one whose domain somebody else has locked or an earlier one changes, and one for many records.
    """
    first: dict[str, RecordSetRequest] = {}
    for request in requests:
        first.setdefault(request.domain_id, request)
    locked = domains.lock_free_for(tx, {domain_id: each.context.operation_id for domain_id, each in first.items()})
    return _carry_out(tx, [request for domain_id, request in first.items() if domain_id in locked], locked, now,
                      allowance, journal, MOST_RECORDS)


def _carry_out(tx: Tx, requests: Sequence[RecordSetRequest], locked: Mapping[str, tuple[Domain | None, int | None]],
               now: datetime, allowance: Allowance, journal: Journal, most: int | None = None) -> Results:
    """
    :param most: records; a request for more is left out
    """
    results: Results = {}
    there: dict[RecordSetRequest, Domain] = {}
    for request in requests:
        try:
            domain, is_done = transactions.check_records(tx, request.context, request.domain_id,
                                                         *locked[request.domain_id])
            if is_done:
                results[request] = _repeated(tx, request, domain)
            else:
                there[request] = domain
        except PoolError as error:
            results[request] = error.with_traceback(None)
    changes: list[_Change] = []
    for request, present in _present(tx, there).items():
        if most is not None and sum(len(each.records) for each in present) > most:
            continue
        try:
            changes.append(_Change(request, _plan(request, there[request], present)))
        except PoolError as error:
            results[request] = error.with_traceback(None)
    written: list[_Change] = []
    below = _below(tx, changes)
    for change in changes:
        try:
            _check(tx, change, below, allowance)
            written.append(change)
        except PoolError as error:
            results[change.request] = error.with_traceback(None)
    for change, (domain, changed) in zip(written, write_edits(tx, [each.edits for each in written], now, journal)):
        results[change.request] = change.result(domain, changed, now)
    return results


def _present(tx: Tx, there: Mapping[RecordSetRequest, Domain]) -> dict[RecordSetRequest, list[RecordSet]]:
    """The recordsets that exist at the name of a new one, or the one that a request names."""
    new = {request: (domain.id, request.wanted.name) for request, domain in there.items() if request.wanted is not None}
    at_names = recordsets.at_names_of(tx, new.values()) if new else {}
    old = recordsets.get_many(tx, [request.recordset_id for request in there if request.wanted is None])
    return {request: at_names[new[request]] if request in new else
            [each for each in (old.get(request.recordset_id),) if each is not None and each.domain_id == domain.id]
            for request, domain in there.items()}


def _plan(request: RecordSetRequest, domain: Domain, present: Sequence[RecordSet]) -> DomainEdits:
    context = request.context
    if request.wanted is not None:
        edits = recordset_edits.plan(domain, present, [request.wanted], must_be_new=True,
                                     new_ids=[request.recordset_id],
                                     project_id=zone_shares.project_of_new(context, domain))
    else:
        old = _own(context, domain, request.recordset_id, present)
        values = {'rdatas': ()} if request.values is None else request.values(old.type)
        # Neither name nor type can change, so there is no other recordset to be in conflict with.
        edits = recordset_edits.plan(domain, [old], [WantedRecordSet(old.name, old.type, **values)],
                                     may_edit_managed=context.may_edit_managed)
    return DomainEdits(context, domain, edits, present)


def _own(context: Context, domain: Domain, recordset_id: str, present: Sequence[RecordSet]) -> RecordSet:
    """The existing recordset, if the context may change it."""
    if not present:
        raise RecordSetNotFound(recordset=recordset_id)
    found, = present
    zone_shares.refuse_foreign(context, domain, [found])
    if found.managed:
        if found.type in ('SOA', 'NS') and found.name == domain.name:
            raise ManagedRecordSet(name=found.name, rtype=found.type)
        if not context.may_edit_managed:
            raise RecordSetOfResource(name=found.name, rtype=found.type)
    return found


def _below(tx: Tx, changes: Sequence[_Change]) -> list[zone_ancestry.Neighbour]:
    """The domains in which one of the new recordsets would belong instead."""
    possible = [name for each in changes if each.request.wanted is not None
                for name in name_ownership.subzone_names(each.edits.domain, each.request.wanted)]
    return zone_ancestry.live_domains(tx, possible) if possible else []


def _check(tx: Tx, change: _Change, below: Sequence[zone_ancestry.Neighbour], allowance: Allowance) -> None:
    context, domain, edits, present = change.edits
    if change.request.wanted is not None:
        name_ownership.refuse_in_subzones(context, domain, below, [change.request.wanted])
    allowance.check_edits(tx, domain, present, edits)


def _repeated(tx: Tx, request: RecordSetRequest, domain: Domain) -> RecordSetResult:
    """What a request did when it was carried out before."""
    found = recordsets.get(tx, domain.id, request.recordset_id)
    if request.wanted is None and request.values is None:
        found = recordsets.deleted(tx, domain.id, request.recordset_id, domain.serial) or found
    if found is None:
        raise RecordSetNotFound(recordset=request.recordset_id)
    return RecordSetResult(domain, found, True)
