"""Where a change stands in a zone as it is now: done, still to be done, or neither since somebody else was faster."""

from __future__ import annotations

from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset


def is_done(now: Zone, change: Change) -> bool:
    """Whether all that the change brings is there, and nothing that it takes away."""
    kept = {each.key for each in change.new}
    return all(now.packed.get(each.key) == each.packed for each in change.new) \
        and not any(each.key in now for each in change.existing if each.key not in kept)


def fits(now: Zone, change: Change) -> bool:
    """Whether what the change takes away is there, with whatever TTL, and nothing that has no place beside the rest."""
    gone = {each.key for each in change.existing}
    if not all(_data(now, each) == each.rdatas for each in change.existing):
        return False
    coming = {each.type for each in change.new}
    rivals = [each.type for each in now.at(change.name) if each.key not in gone] if coming else []
    return not any(rtype in coming or 'CNAME' in coming or rtype == 'CNAME' for rtype in rivals)


def _data(now: Zone, rrset: RRset) -> tuple[str, ...]:
    found = now.get(rrset.name, rrset.type)
    return () if found is None else found.rdatas
