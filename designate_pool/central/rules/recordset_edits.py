"""The edits that change recordsets to what is wanted.

The invariant: after the edits every recordset is as wanted and against no rule (:mod:`designate_pool.protocol.rules`),
all names are inside the domain, and managed recordsets are unchanged.  There are no edits without effect.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from designate_pool.central.validation.names_and_rdata import Rdata
from designate_pool.central.validation.requests import KEEP, WantedRecordSet
from designate_pool.deadline import Turns
from designate_pool.errors import (BadInput, DuplicateRecordSet, InvalidField, Locked, ManagedRecordSet,
                                   RecordSetNotFound)
from designate_pool.model import Domain, Record, RecordSet, Status, Task, new_ids as make_ids
from designate_pool.protocol import rules
from designate_pool.protocol.names_and_rdata import lies_in
from designate_pool.protocol.rules import ServerLimit, Violation

#: Recordsets at a name from which on their types are counted; for each there may be signatures.
_MANY_TYPES = 40
#: Octets of a recordset from which on its message is measured.
_MANY_OCTETS = 10_000


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
         managed: bool = False, may_edit_managed: bool = False, from_master: bool = False,
         limits: Sequence[ServerLimit] = ()) -> RecordSetEdits:
    """The edits that change *present* to *wanted*.

    :param present: every recordset at the names that *wanted* mentions, and the DNAMEs above; below a new DNAME some
    :param must_be_new: whether an existing recordset is an error
    :param may_be_gone: whether a recordset to delete may be missing
    :param new_ids: ids for new recordsets, in the order of *wanted*; generated when empty
    :param project_id: of new recordsets; None for the domain's
    :param managed: whether new recordsets are for resources of other services
    :param may_edit_managed: whether present ones that are may be changed
    :param from_master: whether *wanted* comes from a master and was checked: it may have NS at the apex
    :param limits: what the pool's servers do not take
    :raises InvalidField: for a name outside the domain, and for what a rule forbids
    :raises ManagedRecordSet: for SOA and NS at the apex, and other managed recordsets, unless they may be changed
    :raises Locked: for a change of a recordset that is locked
    :raises DuplicateRecordSet: with *must_be_new*
    :raises RecordSetNotFound: when one to delete does not exist
    """
    by_key = {(recordset.name, recordset.type): recordset for recordset in present}
    edits = RecordSetEdits()
    for change, recordset_id in Turns().between(zip(wanted, new_ids or make_ids(len(wanted)), strict=True)):
        former = by_key.get((change.name, change.type))
        if not from_master:
            _check_place(domain, change, is_new=former is None)
        if former is not None and must_be_new:
            raise DuplicateRecordSet(name=change.name, rtype=change.type)
        if former is not None and former.managed and not may_edit_managed and not from_master:
            raise ManagedRecordSet(change.name, change.type, 'there for a floating IP, an instance or a signed zone')
        if change.rdatas == ():
            if former is not None:
                if former.lock_reason is not None:
                    raise Locked.of(f'The recordset {former.name} {former.type}', former)
                edits.gone_sets.append(former.id)
            elif not may_be_gone:
                raise RecordSetNotFound(recordset=f'{change.name} {change.type}')
        elif former is None:
            ttl, description = (None if value is KEEP else value for value in (change.ttl, change.description))
            edits.new_sets.append(RecordSet(change.name, change.type, ttl=ttl, description=description, id=recordset_id,
                                            domain_id=domain.id, project_id=project_id, managed=managed,
                                            given_name=change.given_name))
            edits.new_records.extend((recordset_id, rdata) for rdata in change.rdatas)
        else:
            ttl = former.ttl if change.ttl is KEEP else change.ttl
            description = former.description if change.description is KEEP else change.description
            has_changed = change.rdatas is not KEEP and set_records(edits, former, change.rdatas)
            if ttl != former.ttl:  # also where the zone has the same now: its own may change
                edits.touched_records.extend(record.id for record in former.records)
            if has_changed or (ttl, description) != (former.ttl, former.description):
                if former.lock_reason is not None:
                    raise Locked.of(f'The recordset {former.name} {former.type}', former)
                edits.changed_sets.setdefault((ttl, description), []).append(former.id)
    if edits.touched_records:
        gone = set(edits.gone_records)
        edits.touched_records = [record_id for record_id in dict.fromkeys(edits.touched_records)
                                 if record_id not in gone]
    for change, violation in () if from_master else violations(domain.name, by_key.values(), wanted, limits):
        field = f'{change.prefix}{violation.field}'
        if violation.rule.id == 'tlsa-port':  # clients know the type of the error from Designate
            raise BadInput(why=f'{field}: {violation.why}')
        raise InvalidField(field=field, why=violation.why)
    return edits


def _check_place(domain: Domain, wanted: WantedRecordSet, is_new: bool) -> None:
    at_apex = wanted.name == domain.name
    if is_new and not lies_in(wanted.name, domain.name):
        raise InvalidField(field=f'{wanted.prefix}name', why=f'not inside the zone {domain.name}')
    if wanted.type == 'SOA' and not at_apex:
        raise InvalidField(field=f'{wanted.prefix}type', why='an SOA is at the apex only')
    if wanted.type == 'SOA' or (wanted.type == 'NS' and at_apex):
        raise ManagedRecordSet(name=wanted.name, rtype=wanted.type)


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


def shown(edits: RecordSetEdits, present: Iterable[RecordSet]) -> list[dict[str, Any]]:
    """Edits as JSON: of each changed recordset its name, type, and state before and after; None where there is none."""
    new: dict[str, list[str]] = {}
    for set_id, rdata in edits.new_records:
        new.setdefault(set_id, []).append(rdata.text)
    gone_sets, gone = set(edits.gone_sets), set(edits.gone_records)
    settings = {set_id: values for values, ids in edits.changed_sets.items() for set_id in ids}

    def state(recordset: RecordSet, settings: tuple[int | None, str | None], records: Iterable[str]) -> dict[str, Any]:
        return dict(zip(('ttl', 'description'), settings), records=sorted(records))

    changes = []
    for old in present:
        own = old.ttl, old.description
        before: dict[str, Any] | None = state(old, own, (record.data for record in old.records))
        after = None if old.id in gone_sets else state(old, settings.get(old.id, own), [
            *(record.data for record in old.records if record.id not in gone), *new.get(old.id, ())])
        if after != before:
            changes.append({'name': old.name, 'type': old.type, 'before': before, 'after': after})
    changes += [{'name': added.name, 'type': added.type, 'before': None,
                 'after': state(added, (added.ttl, added.description), new.get(added.id, ()))}
                for added in edits.new_sets]
    return sorted(changes, key=lambda change: (change['name'], change['type']))


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


def served_contents(domain: Domain, recordsets: Iterable[RecordSet]) -> dict[str, dict[str, tuple[int, list[str]]]]:
    """TTL and data of a domain's recordsets, by name and type, as :func:`designate_pool.protocol.rules.of_zone` takes
    them."""
    contents: dict[str, dict[str, tuple[int, list[str]]]] = {}
    for recordset in recordsets:
        contents.setdefault(recordset.name, {})[recordset.type] = (
            served_ttl(domain, recordset.ttl), [record.data for record in recordset.records])
    return contents


def violations(zone: str, present: Iterable[RecordSet], wanted: Sequence[WantedRecordSet],
               limits: Sequence[ServerLimit] = ()) -> Iterator[tuple[WantedRecordSet, Violation]]:
    """What the rules have against recordsets once they are as *wanted*, with the one of *wanted* that is to blame.

    :param present: as for :func:`plan`
    """
    present, turns = list(present), Turns()
    if limits:
        types = {limit.what for limit in limits} | {'SVCB', 'HTTPS', 'NSEC3PARAM'}
        for change in turns.between(wanted):
            # Nearly all are one short record of a type without limits.
            if change.rdatas is not KEEP and change.rdatas and (
                    len(change.rdatas) > 1 or change.type in types or len(change.rdatas[0].wire) > 512):
                texts = {rdata.text for rdata in change.rdatas}
                for violation in rules.refused(limits, change.name, change.type, texts):
                    # What exists may shrink.
                    if not texts < {record.data for recordset in present for record in recordset.records
                                    if (recordset.name, recordset.type) == (change.name, change.type)}:
                        yield change, violation
    every = [(recordset.name, recordset.type) for recordset in present] + [
        (change.name, change.type) for change in wanted if change.rdatas != ()]
    turns.give()
    counts = Counter(name for name, _ in every)
    # Many names have only a CNAME, which may be anywhere but at the apex.
    names = {name for name, rtype in every if rtype in rules.PLACED and (
        rtype != 'CNAME' or counts[name] > 1 or name == zone)}
    if any(rtype == 'DNAME' for _, rtype in every):
        names.update(name for name, _ in every)
    # The records of one recordset may be too large for a DNS message.
    names.update(change.name for change in wanted if change.rdatas is not KEEP
                 and sum(len(rdata.wire) for rdata in change.rdatas) > _MANY_OCTETS)
    if any(limit.what == 'types' for limit in limits):
        names.update(name for name, count in counts.items() if count > _MANY_TYPES)
    turns.give()
    if not names:
        return
    sets: dict[str, dict[str, Sequence[str]]] = {name: {} for name in names}
    for recordset in present:
        if recordset.name in names:
            sets[recordset.name][recordset.type] = [record.data for record in recordset.records]
    for change in wanted:
        if change.name not in names or change.rdatas is KEEP:
            continue
        if change.rdatas:
            sets[change.name][change.type] = [rdata.text for rdata in change.rdatas]
        else:
            sets[change.name].pop(change.type, None)
    turns.give()
    by_key = {(change.name, change.type): change for change in wanted if change.rdatas != ()}
    dnames = {name for name, at_name in sets.items() if 'DNAME' in at_name}
    former = {(recordset.name, recordset.type) for recordset in present}
    for name, at_name in turns.between(sets.items()):
        for violation in rules.refused_types(limits, zone, name, at_name):
            for change in reversed(by_key.values()):
                if change.name == name and (name, change.type) not in former:  # what exists may shrink
                    yield change, violation._replace(type=change.type)
                    break
        for violation in rules.at_name(zone, name, at_name, dnames):
            if (name, violation.type) in by_key:
                yield by_key[name, violation.type], violation
            elif violation.rule.id == 'dname-below':  # it is there already
                for change in by_key.values():
                    if change.type == 'DNAME' and lies_in(name, change.name):
                        yield change, violation._replace(name=change.name, type='DNAME', field='type',
                                                         why=str(violation))
