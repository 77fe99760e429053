"""Stored plans of a run: their document, and what of a stored plan is still to be done.

A stored plan is applied exactly, or refused.  Each RRset that it changes has a state before and a state after.  A plan
can be applied, or resumed after an interruption, if the target has every such RRset in one of its two states and all
other RRsets are unchanged; RRsets in the state after are done.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from designate_pool.errors import InvalidField, PlanMoved, WrongPlanState
from designate_pool.model import PlanState, StoredPlan, new_id, some
from designate_pool.planner.plan.plan import Plan, change_of
from designate_pool.planner.run_report import RunReport, TargetResult
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset

#: Of the document; raised when an older reader would misunderstand it.
VERSION = 1
#: The states in which a stored plan may be applied.
APPLICABLE = frozenset({PlanState.STORED, PlanState.FAILED})
#: How many names a message gives.
SHOWN = 5

States = Mapping[str, RRset | None]


@dataclasses.dataclass(frozen=True, slots=True)
class StoredChanges:
    """The stored changes of one zone on one target, with digests of what source and target had."""

    changes: tuple[Change, ...]
    source_digest: str
    existing_digest: str


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedPlan:
    """A plan read from a store.

    :ivar changes: by zone and target
    :ivar failed: what could not be planned when the plan was made
    """

    plan_id: str
    changes: Mapping[tuple[str, str], StoredChanges]
    expires_at: datetime | None = None
    failed: tuple[TargetResult, ...] = ()

    def remaining(self, results: Sequence[TargetResult]) -> list[TargetResult]:
        """*results*, just planned, reduced to what is still to be done of this plan.

        :raises PlanMoved: when a side has changed, with which side of which zone on which target
        """
        by_target = {(result.zone, result.target_id): result for result in results}
        moved = [f'{zone} on {target}: {why}' for (zone, target), stored in self.changes.items()
                 if (why := _why_moved(stored, by_target.get((zone, target)))) is not None]
        if moved:
            raise PlanMoved(plan=self.plan_id, why='; '.join(moved))
        return [_remaining(self.changes[result.zone, result.target_id], result) for result in results]


def needs_apply(result: TargetResult) -> bool:
    """Whether there is anything to apply: a missing zone is not created when a policy blocks all changes."""
    plan = result.plan
    return plan is not None and not result.only_planned and bool(
        plan.changes or (plan.meta if plan.exists else not plan.blocked))


def new_stored_plan(results: Sequence[TargetResult], now: datetime, lifetime: timedelta) -> StoredPlan | None:
    """What is to be applied of *results*, and what could not be planned, to be stored; None for nothing to apply."""
    due = [(result, result.plan, result.desired) for result in results if needs_apply(result)]
    if not due:
        return None
    parts: list[dict[str, Any]] = [
        {**plan.document(), 'source_digest': desired.digest(), 'dangers': [str(danger) for danger in result.dangers]}
        for result, plan, desired in due if plan is not None and desired is not None]
    failed = [{'zone': result.zone, 'target': result.target_id, 'error': result.error}
              for result in results if result.error is not None]
    zones, targets = {part['zone'] for part in parts}, sorted({part['target'] for part in parts})
    names = ', '.join(targets)
    return StoredPlan(
        id=new_id(), pool_name='', zone=zones.pop() if len(zones) == 1 else f'{len(zones)} zones',
        target=names if len(names) <= 200 else f'{len(targets)} targets', state=PlanState.STORED,
        desired_digest=_combined([part['desired_digest'] for part in parts]),
        existing_digest=_combined([part['existing_digest'] for part in parts]),
        **{kind: sum(part['counts'][kind] for part in parts) for kind in ('creates', 'updates', 'deletes')},
        why='\n'.join(danger for part in parts for danger in part['dangers']) or None,
        document=json.dumps({'version': VERSION, 'parts': parts, **({'failed': failed} if failed else {})}),
        expires_at=now + lifetime, created_at=now, updated_at=now)


def same_plan(new: StoredPlan, stored: Iterable[StoredPlan], get: Callable[[str], StoredPlan]) -> StoredPlan | None:
    """That of the *stored* plans that makes the changes of *new* and can still be applied; None when there is none.

    :param get: gives a plan with its document, which *stored* plans may lack
    """
    assert new.created_at is not None
    for plan in stored:
        if _identity(plan) == _identity(new) and (plan.expires_at is None or plan.expires_at > new.created_at) \
                and json.loads(get(plan.id).document) == json.loads(new.document):
            return plan
    return None


def _identity(plan: StoredPlan) -> tuple[object, ...]:
    return (plan.zone, plan.target, plan.desired_digest, plan.existing_digest, plan.creates, plan.updates, plan.deletes,
            plan.why)


def load(stored: StoredPlan) -> LoadedPlan:
    """The changes in a stored plan.

    :raises WrongPlanState: for a plan in a state in which it cannot be applied
    :raises InvalidField: when the document is not one of :func:`new_stored_plan`
    """
    if stored.state not in APPLICABLE:
        when = f' since {stored.applied_at:%Y-%m-%d %H:%M:%S} UTC' if stored.applied_at is not None else ''
        raise WrongPlanState(plan=stored.id, state=f'{stored.state}{when}', why='it is not applied; make a new one')
    try:
        document = json.loads(stored.document)
        if document['version'] != VERSION:
            raise InvalidField(field=f'plan {stored.id}', why=f'its document has version {document["version"]!r}')
        changes = {(part['zone'], part['target']): StoredChanges(tuple(map(change_of, part['changes'])),
                                                                 part['source_digest'], part['existing_digest'])
                   for part in document['parts']}
        failed = tuple(TargetResult(failure['zone'], failure['target'], error=f'it was not planned: {failure["error"]}')
                       for failure in document.get('failed', ()))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidField(field=f'plan {stored.id}', why=f'its document is not that of a run ({error!r})') from error
    return LoadedPlan(stored.id, changes, stored.expires_at, failed)


def failure_text(report: RunReport) -> str | None:
    """What failed, a line for each failure; None if nothing failed."""
    lines = [f'{result.zone} on {result.target_id}: {error}' for result in report.failed
             for error in ((result.error,) if result.error else result.result.errors if result.result else ())]
    return '\n'.join(lines) or None


def _why_moved(stored: StoredChanges, result: TargetResult | None) -> str | None:
    """Why *stored* cannot be applied; None when it can."""
    if result is None or result.desired is None or result.existing is None:
        return 'it is not configured any more'
    if result.desired.digest() != stored.source_digest:
        return 'the sources have changed since planning'
    before, after = _states(stored.changes)
    now = {key: result.existing[key] if key in result.existing else None for key in before}
    neither = [key for key, state in now.items()
               if _comparable(state) not in (_comparable(before[key]), _comparable(after[key])) and not _is_soa(key)]
    if neither:
        return f'the zone has changed since planning ({_names(neither)})'
    if _with_states(result.existing, before).digest() != stored.existing_digest:
        return 'the zone has changed since planning, in records the plan does not touch'
    due = {key: _comparable(after[key]) for key, state in now.items()
           if _comparable(state) != _comparable(after[key]) and not _is_soa(key)}
    plan = _remaining_plan(stored, result)
    planned = {key: _comparable(state) for key, state in _states(plan.changes if plan else ())[1].items()
               if not _is_soa(key)}
    if due != planned:
        return f'the configuration gives other changes now ({_names(key for key, _ in due.items() ^ planned.items())})'
    return None


def _remaining(stored: StoredChanges, result: TargetResult) -> TargetResult:
    """*result* with the plan of what remains of *stored*, and the number of changes that are done."""
    plan = _remaining_plan(stored, result)
    states = _states(plan.changes if plan else ())[1]
    done = sum(1 for change in stored.changes if not _states([change])[1].keys() & states.keys())
    return dataclasses.replace(result, plan=plan, applied_before=done, existing=None)


def _remaining_plan(stored: StoredChanges, result: TargetResult) -> Plan | None:
    """The plan of *result*, without an SOA change that is not in *stored*."""
    if result.plan is None:
        return None
    with_soa = f'{result.zone}\tSOA' in _states(stored.changes)[1]
    return dataclasses.replace(result.plan, changes=[change for change in result.plan.changes
                                                     if with_soa or change.types != ('SOA',)])


def _states(changes: Iterable[Change]) -> tuple[States, States]:
    """The RRsets before and after *changes*, by key; None where there is none."""
    before: dict[str, RRset | None] = {}
    after: dict[str, RRset | None] = {}
    for change in changes:
        for rrset in change.existing:
            before[rrset.key] = rrset
            after.setdefault(rrset.key, None)
        for rrset in change.new:
            after[rrset.key] = rrset
            before.setdefault(rrset.key, None)
    return before, after


def _with_states(zone: Zone, states: States) -> Zone:
    """A copy of *zone* in which the RRsets of *states* are in these states."""
    copy = zone.copy()
    for key, state in states.items():
        if state is not None:
            copy.add_record(state, replace=True, lenient=True)
        elif key in copy:
            copy.remove_record(copy[key])
    return copy


def _is_soa(key: str) -> bool:
    # A server may change the SOA by itself when it makes changes.
    return key.endswith('\tSOA')


def _comparable(state: RRset | None) -> str | None:
    """What of an RRset is compared; the same before and after a conversion to JSON."""
    if state is None:
        return None
    return f'{state.packed}\t{json.dumps(state.extra.served, sort_keys=True, default=str)}'


def _names(keys: Iterable[str]) -> str:
    return some(sorted({key.replace('\t', ' ') for key in keys}), SHOWN)


def _combined(digests: Sequence[str]) -> str:
    return digests[0] if len(digests) == 1 else hashlib.sha256('\n'.join(digests).encode()).hexdigest()
