"""The changes from one zone to another.

Applied to *existing* in their order, they give *desired*, except for what is excluded on purpose; and at no step does a
CNAME share its name with other data.  So deletes come before creates, and a CNAME that replaces other data, or is
replaced by them, is one change, a Replace.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import NO_EXTRA, Extra, RRset, unpack

#: By kind, in the order of applying: what a policy must allow.
KINDS = {'Delete': frozenset({'delete'}), 'Replace': frozenset({'create', 'delete'}), 'Update': frozenset({'update'}),
         'Create': frozenset({'create'})}
_RANKS = {kind: rank for rank, kind in enumerate(KINDS)}


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One change of a zone: *existing* RRsets that are removed or altered, *new* ones that are added or altered."""

    existing: tuple[RRset, ...] = ()
    new: tuple[RRset, ...] = ()

    @property
    def kind(self) -> str:
        """Create, Delete, Update of one RRset; or Replace, when a CNAME replaces other data or is replaced by them."""
        if not self.existing or not self.new:
            return 'Create' if self.new else 'Delete'
        return 'Update' if self.existing[0][:2] == self.new[0][:2] and len(self.new) == 1 else 'Replace'

    @property
    def verbs(self) -> frozenset[str]:
        """What a policy must allow."""
        return KINDS[self.kind]

    @property
    def rank(self) -> int:
        """Changes of a lower rank are applied first."""
        return _RANKS[self.kind]

    @property
    def record(self) -> RRset:
        """The RRset that names the change: the new one if there is one."""
        return (self.new or self.existing)[0]

    @property
    def name(self) -> str:
        """The name of its RRsets."""
        return self.record.name

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its RRsets."""
        return tuple(sorted({rrset.type for rrset in (*self.existing, *self.new)}))

    @property
    def order(self) -> tuple[int, str, tuple[str, ...]]:
        """What changes are sorted by."""
        return self.rank, self.name, self.types

    def __str__(self) -> str:
        sides = [', '.join(map(str, side)) for side in (self.existing, self.new) if side]
        return f'{self.kind} {" -> ".join(sides)}'


def create(new: RRset) -> Change:
    """The creation of *new*."""
    return Change((), (new,))


def update(existing: RRset, new: RRset) -> Change:
    """The change of *existing* into *new*."""
    return Change((existing,), (new,))


def delete(existing: RRset) -> Change:
    """The deletion of *existing*."""
    return Change((existing,))


def ordered(changes: Iterable[Change]) -> list[Change]:
    """*changes* in the order of applying."""
    return sorted(changes, key=lambda change: change.order)


def between(existing: Zone, desired: Zone, target_id: str = '',
            supports: Callable[[RRset], bool] = lambda rrset: True) -> list[Change]:
    """The changes from *existing* to *desired*, in the order of applying.

    RRsets that are not for the target by their :class:`~designate_pool.protocol.rrset.Extra` on either side, or that
    the target does not support, are left unchanged.
    """
    before, after = existing.packed, desired.packed
    result = [_change(key, value, after.get(key), existing.extras, desired.extras)
              for key, value in before.items() if after.get(key) != value]
    # The packed values are equal, but the extras may differ.
    result += [_change(key, before[key], after[key], existing.extras, desired.extras)
               for key in {**existing.extras, **desired.extras} if key in before and before[key] == after.get(key)]
    result += [_change(key, None, value, existing.extras, desired.extras)
               for key, value in after.items() if key not in before]
    return ordered(with_replaces([
        change for change in result if change is not None
        and all(rrset.extra.is_for(target_id) and supports(rrset) for rrset in (*change.existing, *change.new))]))


def apply(zone: Zone, changes: Iterable[Change]) -> Zone:
    """A copy of *zone* after *changes*, in the given order; ZoneError when one does not fit."""
    copy = zone.copy()
    for change in changes:
        for old in change.existing:
            if not any(new.key == old.key for new in change.new):
                copy.remove_record(old)
        for new in change.new:
            copy.add_record(new, replace=bool(change.existing))
    return copy


def _change(key: str, old: str | None, new: str | None, old_extras: Mapping[str, Extra],
            new_extras: Mapping[str, Extra]) -> Change | None:
    """The change of one RRset; None if both sides are equal."""
    before = None if old is None else unpack(key, old, old_extras.get(key, NO_EXTRA))
    after = None if new is None else unpack(key, new, new_extras.get(key, NO_EXTRA))
    if before is None:
        return create(after) if after is not None else None
    if after is None:
        return delete(before)
    return None if old == new and before.extra.served == after.extra.served else update(before, after)


def with_replaces(changes: Sequence[Change]) -> Iterator[Change]:
    """*changes*, with the creates and deletes of a name as one Replace if one of them is a CNAME's."""
    cnames = {change.name for change in changes
              if change.record.type == 'CNAME' and not (change.existing and change.new)}
    by_name: dict[str, list[Change]] = {}
    for change in changes:
        if change.name in cnames and not (change.existing and change.new):
            by_name.setdefault(change.name, []).append(change)
        else:
            yield change
    for group in by_name.values():
        existing = tuple(sorted(rrset for change in group for rrset in change.existing))
        new = tuple(sorted(rrset for change in group for rrset in change.new))
        if existing and new:
            yield Change(existing, new)
        else:
            yield from group


def is_done(now: Zone, change: Change) -> bool:
    """Whether the zone has all RRsets that the change adds, and none that it removes."""
    kept = {rrset.key for rrset in change.new}
    return all(now.packed.get(rrset.key) == rrset.packed for rrset in change.new) \
        and not any(rrset.key in now for rrset in change.existing if rrset.key not in kept)


def fits(now: Zone, change: Change) -> bool:
    """Whether the zone has what *change* removes, but for TTLs, and nothing that conflicts with it."""
    for rrset in change.existing:
        present = now.get(rrset.name, rrset.type)
        if present is None or present.rdatas != rrset.rdatas:
            return False
    return not rivals(now, change)


def rivals(now: Zone, change: Change) -> list[str]:
    """The types at the name in the zone that *change* does not remove, and that cannot be beside what it adds."""
    gone = {rrset.key for rrset in change.existing}
    coming = {rrset.type for rrset in change.new}
    beside = [rrset.type for rrset in now.at(change.name) if rrset.key not in gone] if coming else []
    return [rtype for rtype in beside if rtype in coming or 'CNAME' in coming or rtype == 'CNAME']
