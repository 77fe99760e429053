"""The state of a change in the current zone: done, still possible, or in conflict with a change by somebody else."""

from __future__ import annotations

from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset


def is_done(now: Zone, change: Change) -> bool:
    """Whether the zone has all RRsets that the change adds, and none that it removes."""
    kept = {each.key for each in change.new}
    return all(now.packed.get(each.key) == each.packed for each in change.new) \
        and not any(each.key in now for each in change.existing if each.key not in kept)


def fits(now: Zone, change: Change) -> bool:
    """Whether the change can be made: the zone has the data that it removes, and nothing that conflicts with it.

    TTLs are not compared.
    """
    gone = {each.key for each in change.existing}
    if not all(_data(now, each) == each.rdatas for each in change.existing):
        return False
    coming = {each.type for each in change.new}
    rivals = [each.type for each in now.at(change.name) if each.key not in gone] if coming else []
    return not any(rtype in coming or 'CNAME' in coming or rtype == 'CNAME' for rtype in rivals)


def _data(now: Zone, rrset: RRset) -> tuple[str, ...]:
    found = now.get(rrset.name, rrset.type)
    return () if found is None else found.rdatas
