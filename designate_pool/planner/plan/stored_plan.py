"""Plans of a run as a store keeps them, and what of a kept plan is still to be done.

A kept plan is applied exactly, or refused.  Each RRset that it changes has two states, before and after.  A target that
has every one of them in one of the two, and all else as it was, is a target on which the plan was begun at most: what
is in the second state is done.  Anything else has moved.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from designate_pool.errors import InvalidField, PlanMoved, WrongPlanState
from designate_pool.model import PlanState, StoredPlan, new_id
from designate_pool.planner.plan.plan import Plan, change_of
from designate_pool.planner.run_report import RunReport, TargetResult
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset

#: Of the document; raised when an older reader would misunderstand it.
VERSION = 1
#: What a plan that is kept may be applied in: not at all yet, or in part.
APPLICABLE = frozenset({PlanState.STORED, PlanState.FAILED})
MANY = 5

States = Mapping[str, RRset | None]


@dataclasses.dataclass(frozen=True, slots=True)
class KeptPart:
    """One zone on one target of a kept plan.

    :ivar source_digest: of what the sources gave
    :ivar existing_digest: of what the target had
    """

    zone: str
    target_id: str
    changes: tuple[Change, ...]
    source_digest: str
    existing_digest: str


@dataclasses.dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan out of a store, by zone and target."""

    plan_id: str
    parts: Mapping[tuple[str, str], KeptPart]
    expires_at: datetime | None = None

    def check_age(self, now: datetime) -> None:
        """
        :raises PlanMoved: when the plan is too old to be applied
        """
        if self.expires_at is not None and self.expires_at <= now:
            raise PlanMoved(plan=self.plan_id, why=f'it could be applied until {self.expires_at:%Y-%m-%d %H:%M:%S} UTC')

    def checked(self, parts: Sequence[TargetResult]) -> list[TargetResult]:
        """*parts*, which were planned just now, with what is still to be done of this plan and nothing else.

        :raises PlanMoved: when a side moved, with which side of which zone on which target
        """
        found = {(part.zone, part.target_id): part for part in parts}
        moved = [f'{zone} on {target}: {why}' for (zone, target), kept in self.parts.items()
                 if (why := _moved(kept, found.get((zone, target)))) is not None]
        if moved:
            raise PlanMoved(plan=self.plan_id, why='; '.join(moved))
        return [_continued(self.parts[part.zone, part.target_id], part) for part in parts]


def is_due(part: TargetResult) -> bool:
    """Whether there is anything to apply.

    A zone of which a policy keeps all back is not made.
    """
    plan = part.plan
    if plan is None or part.only_planned:
        return False
    return bool(plan.changes or (plan.meta if plan.exists else not plan.blocked))


def document(parts: Sequence[TargetResult]) -> str:
    """What is to be applied of *parts*, as the document of a stored plan: JSON."""
    found = []
    for part in parts:
        if is_due(part) and part.plan is not None and part.desired is not None:
            after = _with(part.plan.existing, _states(part.plan.changes)[1])
            found.append({**part.plan.document(), 'source_digest': part.desired.digest(),
                          'after_digest': after.digest(), 'dangers': [str(each) for each in part.dangers]})
    return json.dumps({'version': VERSION, 'parts': found})


def stored_plan(parts: Sequence[TargetResult], now: datetime, lifetime: timedelta) -> StoredPlan | None:
    """*parts* as a plan to be kept; None when nothing is to be done."""
    due = [part for part in parts if is_due(part)]
    if not due:
        return None
    text = document(due)
    counts = [part.plan.counts for part in due if part.plan is not None]
    zones = dict.fromkeys(part.zone for part in due)
    documents = json.loads(text)['parts']
    return StoredPlan(
        id=new_id(), pool_name='', zone=next(iter(zones)) if len(zones) == 1 else f'{len(zones)} zones',
        target=_listed(sorted({part.target_id for part in due})), state=PlanState.STORED,
        desired_digest=_one([each['desired_digest'] for each in documents]),
        existing_digest=_one([each['existing_digest'] for each in documents]),
        creates=sum(each.creates for each in counts), updates=sum(each.updates for each in counts),
        deletes=sum(each.deletes for each in counts),
        why='\n'.join(str(danger) for part in due for danger in part.dangers) or None, document=text,
        expires_at=now + lifetime, created_at=now, updated_at=now)


def opened(stored: StoredPlan) -> KeptPlan:
    """
    :raises WrongPlanState: for a plan in a state in which it is not applied
    :raises InvalidField: when the document is none of :func:`document`
    """
    if stored.state not in APPLICABLE:
        when = f' since {stored.applied_at:%Y-%m-%d %H:%M:%S} UTC' if stored.applied_at is not None else ''
        raise WrongPlanState(plan=stored.id, state=f'{stored.state}{when}', why='it is not applied; make a new one')
    try:
        found = json.loads(stored.document)
        if found['version'] != VERSION:
            raise InvalidField(field=f'plan {stored.id}', why=f'its document has version {found["version"]!r}')
        parts = {(each['zone'], each['target']): KeptPart(each['zone'], each['target'],
                                                          tuple(change_of(change) for change in each['changes']),
                                                          each['source_digest'], each['existing_digest'])
                 for each in found['parts']}
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidField(field=f'plan {stored.id}', why=f'its document is not that of a run ({error!r})') from error
    return KeptPlan(stored.id, parts, stored.expires_at)


def why(outcome: RunReport) -> str | None:
    """What failed, a line for each; None for nothing."""
    lines = [f'{part.zone} on {part.target_id}: {each}' for part in outcome.failed
             for each in ((part.error,) if part.error else part.result.errors if part.result else ())]
    return '\n'.join(lines) or None


def _moved(kept: KeptPart, part: TargetResult | None) -> str | None:
    """Why *kept* is not to be applied; None when it is."""
    if part is None or part.desired is None or part.existing is None:
        return 'it is not configured any more'
    if part.desired.digest() != kept.source_digest:
        return 'the sources have changed since planning'
    before, after = _states(kept.changes)
    now = {key: part.existing.get(*_split(key)) for key in before}
    neither = [key for key, state in now.items()
               if _told(state) not in (_told(before[key]), _told(after[key])) and not _is_soa(key)]
    if neither:
        return f'the zone has changed since planning ({_names(neither)})'
    if _with(part.existing, before).digest() != kept.existing_digest:
        return 'the zone has changed since planning, in records the plan does not touch'
    due = {key: _told(after[key]) for key, state in now.items()
           if _told(state) != _told(after[key]) and not _is_soa(key)}
    planned = {key: _told(state) for key, state in _states(_changes(kept, part))[1].items() if not _is_soa(key)}
    if due != planned:
        return f'the configuration gives other changes now ({_names(key for key, _ in due.items() ^ planned.items())})'
    return None


def _changes(kept: KeptPart, part: TargetResult) -> Sequence[Change]:
    plan = _rest(kept, part)
    return plan.changes if plan is not None else ()


def _rest(kept: KeptPart, part: TargetResult) -> Plan | None:
    """What was planned just now, without a SOA that *kept* does not change."""
    if part.plan is None:
        return None
    soa = f'{part.zone}\tSOA'
    known = soa in _states(kept.changes)[1]
    return dataclasses.replace(part.plan, changes=[each for each in part.plan.changes
                                                   if known or each.types != ('SOA',)])


def _continued(kept: KeptPart, part: TargetResult) -> TargetResult:
    """*part* with what is left of *kept* and how much of it is done; what was there only to compare is dropped."""
    left = _states(_changes(kept, part))[1]
    done = sum(1 for change in kept.changes if not _states([change])[1].keys() & left.keys())
    return dataclasses.replace(part, plan=_rest(kept, part), earlier=done, existing=None)


def _states(changes: Iterable[Change]) -> tuple[States, States]:
    """What *changes* find and leave, by key; None where there is nothing."""
    before: dict[str, RRset | None] = {}
    after: dict[str, RRset | None] = {}
    for change in changes:
        for each in change.existing:
            before[each.key] = each
            after.setdefault(each.key, None)
        for each in change.new:
            after[each.key] = each
            before.setdefault(each.key, None)
    return before, after


def _with(zone: Zone, states: States) -> Zone:
    """A copy of *zone* in which the RRsets of *states* are as these say."""
    copy = zone.copy()
    for key, state in states.items():
        there = copy.get(*_split(key))
        if state is not None:
            copy.add_record(state, replace=True, lenient=True)
        elif there is not None:
            copy.remove_record(there)
    return copy


def _split(key: str) -> tuple[str, str]:
    name, _, rtype = key.partition('\t')
    return name, rtype


def _is_soa(key: str) -> bool:
    """What a server may change by itself, as it takes changes."""
    return key.endswith('\tSOA')


def _told(state: RRset | None) -> str | None:
    """What of an RRset counts in comparing; the same before and after a journey through JSON."""
    if state is None:
        return None
    return f'{state.packed}\t{json.dumps(state.extra.served, sort_keys=True, default=str)}'


def _listed(ids: Sequence[str]) -> str:
    """*ids*, or how many they are where they would not fit on a line."""
    found = ', '.join(ids)
    return found if len(found) <= 200 else f'{len(ids)} targets'


def _names(keys: Iterable[str]) -> str:
    names = sorted({key.replace('\t', ' ') for key in keys})
    more = f' and {len(names) - MANY} more' if len(names) > MANY else ''
    return ', '.join(names[:MANY]) + more


def _one(digests: Sequence[str]) -> str:
    """One digest for many."""
    return digests[0] if len(digests) == 1 else hashlib.sha256('\n'.join(digests).encode()).hexdigest()
