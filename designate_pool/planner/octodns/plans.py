"""octoDNS's plans as ours and back, and octoDNS's errors in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dns.exception

from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, InvalidField
from designate_pool.model import Reason
from designate_pool.planner.octodns.records import Mirror, octodns
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone

_REFUSED = (401, 403)
_LONGEST_ANSWER = 300


@dataclasses.dataclass(slots=True)
class OctodnsPlan(Plan):
    """A plan of an octoDNS provider.

    :ivar made: what it was made from; None where that is not known any more
    """

    made: Made | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """What a plan is made from on octoDNS's side.

    :ivar provider: octoDNS's, which may keep for the application what it read; None where that is not octoDNS's
    :ivar changes: octoDNS's changes by kind and key, each with the one of ours that it became
    """

    provider: Any
    existing: Mirror
    desired: Mirror
    changes: Mapping[tuple[str, str], tuple[Change, Any]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, provider: Any = None) -> Made:
        """What *plan* was made from, or would be if an octoDNS provider had made it."""
        if isinstance(plan, OctodnsPlan) and plan.made is not None:
            return plan.made
        return cls(provider, Mirror.of(plan.existing), Mirror.of(plan.desired))

    def plan(self, plan: Plan, theirs: Sequence[Any]) -> Any:
        """octoDNS's plan of the changes *theirs*; octoDNS sorts them, deletes first."""
        return octodns('provider.plan').Plan(
            self.existing.theirs(plan.existing), self.desired.theirs(plan.desired), theirs, plan.exists,
            plan.update_pcent_threshold, plan.delete_pcent_threshold, meta=plan.meta)

    def change(self, change: Change) -> Any:
        """octoDNS's change for one of ours that has one name and type.

        :raises InvalidField: when octoDNS cannot hold a record of it
        """
        known, theirs = self.changes.get((change.kind, change.record.key), (None, None))
        if known == change:
            return theirs
        record = octodns('record')
        if change.kind == 'Create':
            return record.Create(self.desired.record(change.new[0]))
        if change.kind == 'Delete':
            return record.Delete(self.existing.record(change.existing[0]))
        return record.Update(self.existing.record(change.existing[0]), self.desired.record(change.new[0]))

    def ours(self, theirs: Any) -> Change:
        """Our change for one of octoDNS's."""
        if theirs.existing is None:
            return changes.create(self.desired.rrset(theirs.new))
        if theirs.new is None:
            return changes.delete(self.existing.rrset(theirs.existing))
        return changes.update(self.existing.rrset(theirs.existing), self.desired.rrset(theirs.new))


def parts(found: Sequence[Change]) -> Iterator[Change]:
    """*found*, each as changes of one name and type: octoDNS has no Replace."""
    for change in found:
        if change.kind == 'Replace':
            yield from map(changes.delete, change.existing)
            yield from map(changes.create, change.new)
        else:
            yield change


def whole(found: Sequence[Change]) -> list[Change]:
    """The inverse of :func:`parts`, in the order of applying."""
    return changes.ordered(changes.with_replaces(found))


def expressible(made: Made, found: Sequence[Change]) -> tuple[list[Any], list[Change]]:
    """octoDNS's changes for *found*, and those of *found* that octoDNS has no words for."""
    theirs: list[Any] = []
    aside: list[Change] = []
    for change in parts(found):
        try:
            theirs.append(made.change(change))
        except InvalidField:
            aside.append(change)
    return theirs, aside


def plan_of(theirs: Any, target_id: str, min_existing_records: int) -> Plan:
    """Our plan for one that an octoDNS processor made out of nothing."""
    like = Zone(theirs.desired.name)
    made = Made(None, Mirror.of_theirs(theirs.existing, like), Mirror.of_theirs(theirs.desired, like))
    return OctodnsPlan(
        made.existing.zone, made.desired.zone, whole([made.ours(each) for each in theirs.changes]), bool(theirs.exists),
        theirs.update_pcent_threshold, theirs.delete_pcent_threshold, theirs.meta, target_id=target_id,
        min_existing_records=min_existing_records, made=made)


def words(error: BaseException) -> str:
    """*error* in a line; where an HTTP server has said why, with that."""
    said = ' '.join(str(error).split()).rstrip('.')
    if isinstance(error, LookupError) or not said:
        said = f'{type(error).__name__} {said}'.strip()
    answer = getattr(getattr(error, 'response', None), 'text', None)
    more = ' '.join(str(answer or '').split())[:_LONGEST_ANSWER]
    return f'{said}: {more}' if more and more not in said else said


def backend_error(error: BaseException) -> BackendError:
    """*error* of an octoDNS provider as one of a server."""
    for each in _behind(error):
        status = getattr(getattr(each, 'response', None), 'status_code', None)
        if status is not None:
            if status in _REFUSED:
                return BackendRefused(why=words(error), reason=Reason.BAD_KEY)
            return BackendError(why=words(error))
        if isinstance(each, (OSError, dns.exception.Timeout)):
            late = isinstance(each, (TimeoutError, dns.exception.Timeout))
            return BackendUnreachable(why=words(error), reason=Reason.TIMEOUT if late else None)
    return BackendError(why=words(error))


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """*error* and what led to it: providers wrap what happened in errors of their own."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
