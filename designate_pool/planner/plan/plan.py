"""A plan: the existing and the desired zone of a target, and the changes between the two.

Processors may change :attr:`Plan.changes` or replace the plan, so counts are computed when they are needed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from designate_pool.errors import InvalidField
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import NO_EXTRA, Extra, RRset

MAX_SAFE_UPDATE_PCENT = 0.3
MAX_SAFE_DELETE_PCENT = 0.3
MIN_EXISTING_RECORDS = 10

#: Why a change is blocked: a policy forbids it, or it conflicts with records of others.
BLOCKED_BY_POLICY = 'policy'
CONFLICT = 'conflict'


class PlanCounts(NamedTuple):
    """How many RRsets are created, updated, deleted.  RRsets that a Replace removes count as updated."""

    creates: int
    updates: int
    deletes: int


class ApplyResult(NamedTuple):
    """How many changes of a plan were made, failed (with *errors*), and were not tried."""

    applied: int = 0
    failed: int = 0
    skipped: int = 0
    errors: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all changes were made."""
        return not self.failed and not self.skipped

    def __int__(self) -> int:
        return self.applied

    def __radd__(self, other: int) -> int:
        """So that ``sum()`` counts the changes made, as in octoDNS."""
        return other + self.applied


@dataclasses.dataclass(frozen=True, slots=True)
class Blocked:
    """A change that is not made.

    :ivar by: :data:`BLOCKED_BY_POLICY` or :data:`CONFLICT`
    """

    change: Change
    by: str
    why: str


@dataclasses.dataclass(slots=True)
class Plan:
    """The changes of one zone on one target.

    :ivar meta: further changes or notes of the provider; must be valid JSON
    :ivar update_pcent_threshold: the zone's if it has one, otherwise the target's
    :ivar managed_types: the types that were compared; None for all
    """

    existing: Zone
    desired: Zone
    changes: list[Change]
    exists: bool
    update_pcent_threshold: float = MAX_SAFE_UPDATE_PCENT
    delete_pcent_threshold: float = MAX_SAFE_DELETE_PCENT
    meta: Mapping[str, Any] | None = None
    blocked: tuple[Blocked, ...] = ()
    target_id: str = ''
    min_existing_records: int = MIN_EXISTING_RECORDS
    managed_types: frozenset[str] | None = None

    @property
    def zone(self) -> str:
        """The zone's name."""
        return self.desired.name

    @property
    def counts(self) -> PlanCounts:
        """How many RRsets are created, updated and deleted."""
        kinds = [change.kind for change in self.changes]
        replaced = sum(len(change.existing) for change in self.changes if change.kind == 'Replace')
        return PlanCounts(kinds.count('Create'), kinds.count('Update') + replaced, kinds.count('Delete'))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do and nothing is blocked."""
        return not self.changes and not self.meta and not self.blocked and self.exists

    def summary(self) -> str:
        """The counts, on one line."""
        counts = self.counts
        blocked = f', {len(self.blocked)} blocked' if self.blocked else ''
        return (f'{counts.creates} to create, {counts.updates} to update, {counts.deletes} to delete{blocked}; '
                f'{len(self.existing)} existing RRsets')

    def document(self) -> dict[str, Any]:
        """The plan as a JSON object; :func:`change_of` reads its changes."""
        return {
            'zone': self.zone, 'target': self.target_id, 'exists': self.exists,
            'existing_digest': self.existing.digest(), 'desired_digest': self.desired.digest(),
            'existing_records': len(self.existing), 'counts': self.counts._asdict(),
            'changes': [change_document(change) for change in self.changes],
            'blocked': [{'change': change_document(blocked.change), 'by': blocked.by, 'why': blocked.why}
                        for blocked in self.blocked],
            'managed_types': None if self.managed_types is None else sorted(self.managed_types),
            'meta': None if self.meta is None else json.loads(json.dumps(self.meta, default=str)),
        }


def change_document(change: Change) -> dict[str, Any]:
    """*change* as a JSON object."""
    return {'kind': change.kind, 'existing': [_record_document(rrset) for rrset in change.existing],
            'new': [_record_document(rrset) for rrset in change.new]}


def change_of(document: Mapping[str, Any]) -> Change:
    """The inverse of :func:`change_document`; InvalidField for anything else."""
    try:
        change = Change(tuple(_record_of(rrset) for rrset in document['existing']),
                        tuple(_record_of(rrset) for rrset in document['new']))
        is_known = (change.existing or change.new) and document['kind'] == change.kind
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidField(field='change', why=f'it is not the document of a change ({error!r})') from error
    if not is_known:
        raise InvalidField(field='change', why=f'{document["kind"]} is not what its two sides make')
    return change


def _record_document(rrset: RRset) -> dict[str, Any]:
    document: dict[str, Any] = {'name': rrset.name, 'type': rrset.type, 'ttl': rrset.ttl, 'records': list(rrset.rdatas)}
    if rrset.extra != NO_EXTRA:
        document['extra'] = {field.name: value for field in dataclasses.fields(Extra)
                             if (value := getattr(rrset.extra, field.name)) != getattr(NO_EXTRA, field.name)}
    return document


def _record_of(document: Mapping[str, Any]) -> RRset:
    extra: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value
                             for name, value in document.get('extra', {}).items()}
    name, rtype, *records = texts = [document['name'], document['type'], *document['records']]
    if isinstance(document['records'], str) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f'{document!r} is not all text')
    return RRset(name, rtype, int(document['ttl']), tuple(records), Extra(**extra) if extra else NO_EXTRA)
