"""Which plans are unsafe, so that an operator must force them.

A plan is unsafe if it deletes or updates many RRsets of an existing zone, deletes all of them, or deletes its apex.
The check runs on the plan that processors and policies have left.  SOA records are never counted.  A plan for a zone
that is missing or empty on the target is always safe, so an interrupted first sync can be resumed without force.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from designate_pool.errors import UnsafePlan
from designate_pool.model import some
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset

#: How many names a message gives.
SHOWN = 3


def dangers(plan: Plan, source_is_empty: bool = False) -> list[UnsafePlan]:
    """All dangers of *plan*, the worst first."""
    return [UnsafePlan(zone=plan.zone, target=plan.target_id, kind=kind, why=why)
            for kind, why in _dangers(plan, source_is_empty)] if plan.exists else []


def has_contents(zone: Zone) -> bool:
    """Whether it has more than the SOA and NS records of its apex."""
    return any(key not in (f'{zone.name}\tSOA', f'{zone.name}\tNS') for key in zone.packed)


def _dangers(plan: Plan, source_is_empty: bool) -> Iterator[tuple[str, str]]:
    """Kind and reason of each."""
    existing = sum(not _is_soa(key) for key in plan.existing.packed)
    if not existing:
        return
    deleted = [rrset for change in plan.changes if change.kind == 'Delete' for rrset in _without_soa(change.existing)]
    updated = [rrset for change in plan.changes if change.kind in ('Update', 'Replace')
               for rrset in _without_soa(change.existing)]
    touched = [rrset for change in plan.changes for rrset in (*change.existing, *change.new)]
    lost = [rrset for change in plan.changes for rrset in _without_soa(change.existing)
            if rrset.key not in {new.key for new in change.new}]
    if deleted and (source_is_empty or not has_contents(plan.desired)) and has_contents(plan.existing):
        yield 'empty_source', f'the sources are empty, the target has {existing} RRsets'
    gone = {rrset.key for rrset in deleted}
    if deleted and all(key in gone or _is_soa(key) for key in plan.existing.packed):
        yield 'everything_deleted', f'all of its {existing} RRsets would be deleted ({_names(deleted)})'
    if root_ns := [rrset for rrset in touched if rrset.type == 'NS' and rrset.name == plan.zone]:
        names = ', '.join(dict.fromkeys(map(str, root_ns)))
        yield 'root_ns_change', f'the NS records of the zone itself would change ({names})'
    if apex := [rrset for rrset in lost if rrset.name == plan.zone]:
        yield 'apex_deleted', f'{_names(apex)} would be deleted at the apex'
    for verb, rrsets, threshold in (('delete', deleted, plan.delete_pcent_threshold),
                                    ('update', updated, plan.update_pcent_threshold)):
        # Divide, since the quotient is rounded as the threshold was when it was read: 29 / 100 == 0.29, but
        # 0.29 * 100 < 29.
        if existing >= plan.min_existing_records and len(rrsets) / existing > threshold:
            yield f'too_many_{verb}s', (f'{len(rrsets)} of {existing} RRsets would be {verb}d, over '
                                        f'{threshold * 100:g} % ({_names(rrsets)})')


def _without_soa(rrsets: Collection[RRset]) -> list[RRset]:
    return [rrset for rrset in rrsets if rrset.type != 'SOA']


def _is_soa(key: str) -> bool:
    return key.endswith('\tSOA')


def _names(rrsets: Sequence[RRset]) -> str:
    """Such as ``a.example.com. A, b.example.com. MX, c.example.com. A and 7 more``."""
    return some([f'{rrset.name} {rrset.type}' for rrset in rrsets], SHOWN)
