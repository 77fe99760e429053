"""Which plans are unsafe, so that an operator must force them.

A plan is unsafe if it deletes or updates many RRsets of an existing zone, deletes all of them, or deletes its apex.
The check runs on the plan that processors and policies have left.  SOA records are never counted.  A plan for a zone
that is missing or empty on the target is always safe, so an interrupted first sync can be resumed without force.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from designate_pool.errors import (ApexDeleted, EmptySource, EverythingDeleted, RootNsChange, TooManyDeletes,
                                   TooManyUpdates, UnsafePlan)
from designate_pool.model import some
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset

#: How many names a message gives.
SHOWN = 3


def dangers(plan: Plan, source_is_empty: bool = False) -> list[UnsafePlan]:
    """All dangers of *plan*, the worst first."""
    return list(_dangers(plan, source_is_empty)) if plan.exists else []


def has_contents(zone: Zone) -> bool:
    """Whether it has more than the SOA and NS records of its apex."""
    return any(key not in (f'{zone.name}\tSOA', f'{zone.name}\tNS') for key in zone.packed)


def _dangers(plan: Plan, source_is_empty: bool) -> Iterator[UnsafePlan]:
    existing = sum(not _is_soa(key) for key in plan.existing.packed)
    if not existing:
        return
    deleted = [rrset for change in plan.changes if change.kind == 'Delete' for rrset in _without_soa(change.existing)]
    updated = [rrset for change in plan.changes if change.kind in ('Update', 'Replace')
               for rrset in _without_soa(change.existing)]
    touched = [rrset for change in plan.changes for rrset in (*change.existing, *change.new)]
    lost = [rrset for change in plan.changes for rrset in _without_soa(change.existing)
            if rrset.key not in {new.key for new in change.new}]
    about = {'zone': plan.zone, 'target': plan.target_id, 'existing': existing}
    if deleted and (source_is_empty or not has_contents(plan.desired)) and has_contents(plan.existing):
        yield EmptySource(**about)
    gone = {rrset.key for rrset in deleted}
    if deleted and all(key in gone or _is_soa(key) for key in plan.existing.packed):
        yield EverythingDeleted(**about, names=_names(deleted))
    if root_ns := [rrset for rrset in touched if rrset.type == 'NS' and rrset.name == plan.zone]:
        yield RootNsChange(**about, names=', '.join(dict.fromkeys(map(str, root_ns))))
    if apex := [rrset for rrset in lost if rrset.name == plan.zone]:
        yield ApexDeleted(**about, names=_names(apex))
    if _is_over(len(deleted), plan.delete_pcent_threshold, existing, plan):
        yield TooManyDeletes(**about, count=len(deleted), limit=_percent(plan.delete_pcent_threshold),
                             names=_names(deleted))
    if _is_over(len(updated), plan.update_pcent_threshold, existing, plan):
        yield TooManyUpdates(**about, count=len(updated), limit=_percent(plan.update_pcent_threshold),
                             names=_names(updated))


def _is_over(count: int, threshold: float, existing: int, plan: Plan) -> bool:
    # Divide, since the quotient is rounded as the threshold was when it was read: 29 / 100 == 0.29, but
    # 0.29 * 100 < 29.
    return existing >= plan.min_existing_records and count / existing > threshold


def _without_soa(rrsets: Collection[RRset]) -> list[RRset]:
    return [rrset for rrset in rrsets if rrset.type != 'SOA']


def _is_soa(key: str) -> bool:
    return key.endswith('\tSOA')


def _names(rrsets: Sequence[RRset]) -> str:
    """Such as ``a.example.com. A, b.example.com. MX, c.example.com. A and 7 more``."""
    return some([f'{rrset.name} {rrset.type}' for rrset in rrsets], SHOWN)


def _percent(fraction: float) -> str:
    return f'{fraction * 100:g} %'
