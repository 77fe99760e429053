"""The edits that change recordsets to what is wanted.

The invariant: after the edits every recordset is as wanted, a CNAME is alone at its name and not at the apex,
all names are inside the domain, and managed recordsets are unchanged.  There are no edits without effect.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Sequence
from datetime import datetime

from designate_pool.central.validation.names_and_rdata import Rdata
from designate_pool.central.validation.requests import KEEP, WantedRecordSet
from designate_pool.errors import DuplicateRecordSet, InvalidField, ManagedRecordSet, RecordSetNotFound
from designate_pool.model import Domain, Record, RecordSet, Status, Task
from designate_pool.model import new_ids as make_ids
from designate_pool.protocol.names_and_rdata import lies_in


@dataclasses.dataclass(slots=True)
class RecordSetEdits:
    """The rows to write.

    :ivar new_records: (recordset id, rdata)
    :ivar changed_sets: ids by their new TTL and description
    :ivar touched_records: ids of unchanged records in a recordset that is otherwise changed
    :ivar record_ids: of *new_records*, once they are written
    :ivar marked_sets: ids of those that have become managed by that, or are it no more
    :ivar contents: whether the served contents change, so that a new serial is needed
    """

    new_sets: list[RecordSet] = dataclasses.field(default_factory=list)
    new_records: list[tuple[str, Rdata]] = dataclasses.field(default_factory=list)
    changed_sets: dict[tuple[int | None, str | None], list[str]] = dataclasses.field(default_factory=dict)
    gone_sets: list[str] = dataclasses.field(default_factory=list)
    gone_records: list[str] = dataclasses.field(default_factory=list)
    touched_records: list[str] = dataclasses.field(default_factory=list)
    record_ids: list[str] = dataclasses.field(default_factory=list)
    marked_sets: list[str] = dataclasses.field(default_factory=list)

    @property
    def contents(self) -> bool:
        """Whether the served contents change, so that a new serial is needed."""
        return bool(self.new_sets or self.new_records or self.gone_sets or self.gone_records or self.touched_records)

    def __bool__(self) -> bool:
        return self.contents or bool(self.changed_sets)


def plan(domain: Domain, present: Iterable[RecordSet], wanted: Sequence[WantedRecordSet], must_be_new: bool = False,
         new_ids: Sequence[str] = (), may_be_gone: bool = False, project_id: str | None = None,
         managed: bool = False, may_edit_managed: bool = False, from_master: bool = False) -> RecordSetEdits:
    """The edits that change *present* to *wanted*.

    :param present: every recordset at the names that *wanted* mentions
    :param must_be_new: whether an existing recordset is an error
    :param may_be_gone: whether a recordset to delete may be missing
    :param new_ids: ids for new recordsets, in the order of *wanted*; generated when empty
    :param project_id: of new recordsets; None for the domain's
    :param managed: whether new recordsets are for resources of other services
    :param may_edit_managed: whether present ones that are may be changed
    :param from_master: whether *wanted* comes from a master and was checked: it may have NS at the apex
    :raises InvalidField: for a name outside the domain, or a CNAME that is not alone
    :raises ManagedRecordSet: for SOA and NS at the apex, and other managed recordsets, unless they may be changed
    :raises DuplicateRecordSet: with *must_be_new*
    :raises RecordSetNotFound: when one to delete does not exist
    """
    by_key = {(recordset.name, recordset.type): recordset for recordset in present}
    edits = RecordSetEdits()
    for change, recordset_id in zip(wanted, new_ids or make_ids(len(wanted)), strict=True):
        if not from_master:
            _check_place(domain, change)
        former = by_key.get((change.name, change.type))
        if former is not None and must_be_new:
            raise DuplicateRecordSet(name=change.name, rtype=change.type)
        if former is not None and former.managed and not may_edit_managed and not from_master:
            raise ManagedRecordSet(change.name, change.type, 'there for a floating IP or an instance')
        if change.rdatas == ():
            if former is not None:
                edits.gone_sets.append(former.id)
            elif not may_be_gone:
                raise RecordSetNotFound(recordset=f'{change.name} {change.type}')
        elif former is None:
            ttl, description = (None if value is KEEP else value for value in (change.ttl, change.description))
            edits.new_sets.append(RecordSet(change.name, change.type, ttl=ttl, description=description, id=recordset_id,
                                            domain_id=domain.id, project_id=project_id, managed=managed))
            edits.new_records.extend((recordset_id, rdata) for rdata in change.rdatas)
        else:
            ttl = former.ttl if change.ttl is KEEP else change.ttl
            description = former.description if change.description is KEEP else change.description
            has_changed = change.rdatas is not KEEP and set_records(edits, former, change.rdatas)
            if served_ttl(domain, ttl) != served_ttl(domain, former.ttl):
                gone = set(edits.gone_records)
                edits.touched_records = list(dict.fromkeys([
                    *edits.touched_records, *(record.id for record in former.records if record.id not in gone)]))
            if has_changed or (ttl, description) != (former.ttl, former.description):
                edits.changed_sets.setdefault((ttl, description), []).append(former.id)
    if not from_master:
        _check_cnames(by_key, wanted)
    return edits


def _check_place(domain: Domain, wanted: WantedRecordSet) -> None:
    at_apex = wanted.name == domain.name
    if not lies_in(wanted.name, domain.name):
        raise InvalidField(field=f'{wanted.prefix}name', why=f'not inside the zone {domain.name}')
    if wanted.type == 'SOA' and not at_apex:
        raise InvalidField(field=f'{wanted.prefix}type', why='an SOA is at the apex only')
    if wanted.type == 'SOA' or (wanted.type == 'NS' and at_apex):
        raise ManagedRecordSet(name=wanted.name, rtype=wanted.type)
    if wanted.type == 'CNAME' and at_apex:
        raise InvalidField(field=f'{wanted.prefix}type', why='a CNAME cannot be at the apex, beside SOA and NS')


def set_records(edits: RecordSetEdits, recordset: RecordSet, wanted: Sequence[Rdata]) -> bool:
    """Add the edits that give *recordset* exactly the *wanted* records; whether there are any."""
    texts = {rdata.text for rdata in wanted}
    former_texts = {record.data for record in recordset.records}
    gone = [record.id for record in recordset.records if record.data not in texts]
    new = [(recordset.id, rdata) for rdata in wanted if rdata.text not in former_texts]
    edits.gone_records.extend(gone)
    edits.new_records.extend(new)
    if gone and not new:
        # No record is added, so the remaining ones carry the pending state of the recordset.
        edits.touched_records.extend(record.id for record in recordset.records if record.data in texts)
    return bool(gone or new)


def written(recordset: RecordSet, edits: RecordSetEdits, serial: int, now: datetime) -> RecordSet:
    """*recordset*, new or present before, as *edits*, which do not delete it, leave it in the database at *serial*."""
    gone, touched = set(edits.gone_records), set(edits.touched_records)
    kept = (dataclasses.replace(record, serial_number=serial, status=Status.PENDING,
                                task=Task.UPDATE if record.task is Task.NONE else record.task)
            if record.id in touched else record for record in recordset.records if record.id not in gone)
    new = (Record(rdata.text, record_id, serial, Task.ADD, Status.PENDING)
           for record_id, (set_id, rdata) in zip(edits.record_ids, edits.new_records) if set_id == recordset.id)
    records = tuple(sorted((*kept, *new), key=operator.attrgetter('data')))
    if any(new_set.id == recordset.id for new_set in edits.new_sets):
        return dataclasses.replace(recordset, records=records, created_at=now, updated_at=now)
    if recordset.id in edits.marked_sets:
        recordset = dataclasses.replace(recordset, managed=not recordset.managed, updated_at=now,
                                        version=recordset.version + 1)
    for (ttl, description), ids in edits.changed_sets.items():
        if recordset.id in ids:
            return dataclasses.replace(recordset, records=records, ttl=ttl, description=description, updated_at=now,
                                       version=recordset.version + 1)
    return dataclasses.replace(recordset, records=records)


def served_ttl(domain: Domain, ttl: int | None) -> int:
    """The TTL that is served: that of a recordset, or its domain's."""
    return domain.ttl if ttl is None else ttl


def _check_cnames(present: dict[tuple[str, str], RecordSet], wanted: Sequence[WantedRecordSet]) -> None:
    aliases = {name for name, rtype in present if rtype == 'CNAME'}
    aliases.update(change.name for change in wanted if change.type == 'CNAME')
    types: dict[str, set[str]] = {name: set() for name in aliases}
    for name, rtype in present:
        if name in aliases:
            types[name].add(rtype)
    for change in wanted:
        if change.name in aliases:
            if change.rdatas == ():
                types[change.name].discard(change.type)
            else:
                types[change.name].add(change.type)
    for change in wanted:
        at_name = types[change.name] if change.name in aliases else set()
        if change.rdatas != () and 'CNAME' in at_name and len(at_name) > 1:
            others = ', '.join(sorted(at_name - {change.type}))
            raise InvalidField(field=f'{change.prefix}type',
                               why=f'{change.name} has {others} already; a CNAME must be the only record at its name')
