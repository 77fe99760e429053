"""Conversion between octoDNS's plans and ours, and octoDNS's errors as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dns.exception

from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, InvalidField
from designate_pool.model import Reason
from designate_pool.planner.octodns.records import ZoneMirror, octodns
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone

_REFUSED = (401, 403)
_MAX_RESPONSE_TEXT = 300


@dataclasses.dataclass(slots=True)
class OctodnsPlan(Plan):
    """A plan of an octoDNS provider.

    :ivar mirror: None if it is no longer known
    """

    mirror: PlanMirror | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PlanMirror:
    """The octoDNS side of a plan.

    :ivar provider: the octoDNS provider that made the plan, which may cache what it read; None for other providers
    :ivar changes: our change and octoDNS's, by kind and key of ours
    """

    provider: Any
    existing: ZoneMirror
    desired: ZoneMirror
    changes: Mapping[tuple[str, str], tuple[Change, Any]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> PlanMirror:
        """The mirror of *plan*; a new one if *plan* is not from an octoDNS provider."""
        if isinstance(plan, OctodnsPlan) and plan.mirror is not None:
            return plan.mirror
        return cls(None, ZoneMirror.of(plan.existing), ZoneMirror.of(plan.desired))

    def octodns_plan(self, plan: Plan, octodns_changes: Sequence[Any]) -> Any:
        """octoDNS's plan with *octodns_changes*; octoDNS sorts them, deletes first."""
        return octodns('provider.plan').Plan(
            self.existing.to_octodns(plan.existing), self.desired.to_octodns(plan.desired), octodns_changes,
            plan.exists, plan.update_pcent_threshold, plan.delete_pcent_threshold, meta=plan.meta)

    def to_octodns(self, change: Change) -> Any:
        """octoDNS's change for one of ours of one name and type.

        :raises InvalidField: when octoDNS cannot hold a record of it
        """
        own_change, octodns_change = self.changes.get((change.kind, change.record.key), (None, None))
        if own_change == change:
            return octodns_change
        record = octodns('record')
        if change.kind == 'Create':
            return record.Create(self.desired.record(change.new[0]))
        if change.kind == 'Delete':
            return record.Delete(self.existing.record(change.existing[0]))
        return record.Update(self.existing.record(change.existing[0]), self.desired.record(change.new[0]))

    def convertible(self, planned: Sequence[Change]) -> tuple[list[Any], list[Change]]:
        """octoDNS's changes for *planned*, and those of *planned* that octoDNS cannot represent."""
        converted: list[Any] = []
        others: list[Change] = []
        for change in split_replaces(planned):
            try:
                converted.append(self.to_octodns(change))
            except InvalidField:
                others.append(change)
        return converted, others

    def from_octodns(self, octodns_change: Any) -> Change:
        """Our change for one of octoDNS's."""
        if octodns_change.existing is None:
            return changes.create(self.desired.rrset(octodns_change.new))
        if octodns_change.new is None:
            return changes.delete(self.existing.rrset(octodns_change.existing))
        return changes.update(self.existing.rrset(octodns_change.existing), self.desired.rrset(octodns_change.new))


def split_replaces(planned: Sequence[Change]) -> Iterator[Change]:
    """*planned*, with each Replace, which octoDNS does not have, as deletes and creates."""
    for change in planned:
        if change.kind == 'Replace':
            yield from map(changes.delete, change.existing)
            yield from map(changes.create, change.new)
        else:
            yield change


def join_replaces(planned: Sequence[Change]) -> list[Change]:
    """The inverse of :func:`split_replaces`, in the order of applying."""
    return changes.ordered(changes.with_replaces(planned))


def plan_from_octodns(octodns_plan: Any, target_id: str, min_existing_records: int) -> Plan:
    """Our plan for one that an octoDNS processor made where there was none."""
    like = Zone(octodns_plan.desired.name)
    mirror = PlanMirror(None, ZoneMirror.of_octodns(octodns_plan.existing, like),
                        ZoneMirror.of_octodns(octodns_plan.desired, like))
    exists = does_exist(octodns_plan.exists, mirror.existing.zone)
    return OctodnsPlan(
        mirror.existing.zone, mirror.desired.zone, join_replaces([*map(mirror.from_octodns, octodns_plan.changes)]),
        exists, octodns_plan.update_pcent_threshold, octodns_plan.delete_pcent_threshold, octodns_plan.meta,
        target_id=target_id, min_existing_records=min_existing_records, mirror=mirror)


def does_exist(said: Any, existing: Zone) -> bool:
    """Whether a zone exists.

    :param said: by the provider; None by one that says nothing, which octoDNS allows
    :param existing: what was read of it
    """
    return bool(len(existing) if said is None else said)


def error_text(error: BaseException) -> str:
    """*error* on one line, with the beginning of the HTTP response if it has one."""
    text = ' '.join(str(error).split()).rstrip('.')
    if isinstance(error, LookupError) or not text:
        text = f'{type(error).__name__} {text}'.strip()
    response = getattr(getattr(error, 'response', None), 'text', None)
    more = ' '.join(str(response or '').split())[:_MAX_RESPONSE_TEXT]
    return f'{text}: {more}' if more and more not in text else text


def backend_error(error: BaseException) -> BackendError:
    """The BackendError for an exception of an octoDNS provider."""
    for cause in _causes(error):
        status = getattr(getattr(cause, 'response', None), 'status_code', None)
        if status is not None:
            if status in _REFUSED:
                return BackendRefused(why=error_text(error), reason=Reason.BAD_KEY)
            return BackendError(why=error_text(error))
        if isinstance(cause, (OSError, dns.exception.Timeout)):
            late = isinstance(cause, (TimeoutError, dns.exception.Timeout))
            return BackendUnreachable(why=error_text(error), reason=Reason.TIMEOUT if late else None)
    return BackendError(why=error_text(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """*error* and its causes: providers wrap other exceptions in their own."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
