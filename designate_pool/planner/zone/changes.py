"""What makes one zone into another.

The invariant: applying the changes to *existing*, in their order, gives *desired* but for what was left out on purpose;
and at no step is a CNAME beside other data.  Therefore what a name loses goes before what it gets, and where a CNAME
takes the place of other data, or these its place, both are one :class:`Replace`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from designate_pool.errors import InvalidField
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import NO_EXTRA, Extra, RRset, unpack

Pairs = Iterable[tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """One change of a zone.

    :ivar existing: RRsets that are there before and not after, or not as they were
    :ivar new: RRsets that are there after and not before, or not as they are
    :cvar verbs: what a policy has to allow
    """

    existing: tuple[RRset, ...] = ()
    new: tuple[RRset, ...] = ()
    verbs: ClassVar[frozenset[str]] = frozenset()
    #: In the order of applying.
    rank: ClassVar[int] = 0

    @property
    def kind(self) -> str:
        return type(self).__name__

    @property
    def record(self) -> RRset:
        """The RRset that the change is called after: the new one where there is one."""
        return (self.new or self.existing)[0]

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(sorted({each.type for each in (*self.existing, *self.new)}))

    @property
    def order(self) -> tuple[int, str, tuple[str, ...]]:
        return self.rank, self.name, self.types

    def __str__(self) -> str:
        sides = [', '.join(map(str, side)) for side in (self.existing, self.new) if side]
        return f'{self.kind} {" -> ".join(sides)}'


class Delete(Change):
    """An RRset goes."""

    __slots__ = ()
    verbs = frozenset({'delete'})
    rank = 0


class Replace(Change):
    """A name's CNAME gives way to other data, or other data to a CNAME: all at once, or not at all."""

    __slots__ = ()
    verbs = frozenset({'create', 'delete'})
    rank = 1


class Update(Change):
    """An RRset gets another TTL or other data."""

    __slots__ = ()
    verbs = frozenset({'update'})
    rank = 2


class Create(Change):
    """An RRset comes."""

    __slots__ = ()
    verbs = frozenset({'create'})
    rank = 3


KINDS: dict[str, type[Change]] = {kind.__name__: kind for kind in (Delete, Replace, Update, Create)}


def create(new: RRset) -> Create:
    return Create((), (new,))


def update(existing: RRset, new: RRset) -> Update:
    return Update((existing,), (new,))


def delete(existing: RRset) -> Delete:
    return Delete((existing,), ())


def ordered(changes: Iterable[Change]) -> list[Change]:
    """*changes* as they are to be applied."""
    return sorted(changes, key=lambda change: change.order)


def between(existing: Zone, desired: Zone, target_id: str = '',
            supports: Callable[[RRset], bool] = lambda rrset: True) -> list[Change]:
    """The changes that make *existing* into *desired*, in the order of applying.

    What either side says is not for the target, and what the target does not support, stays as it is.

    :param supports: whether the target can hold an RRset
    """
    before, after = existing.packed, desired.packed
    found = [_change(key, value, after.get(key), existing.extras, desired.extras)
             for key, value in before.items() if after.get(key) != value]
    # What only its extras may make different.
    found += [_change(key, before[key], after[key], existing.extras, desired.extras)
              for key in {**existing.extras, **desired.extras} if key in before and before[key] == after.get(key)]
    found += [_change(key, None, value, existing.extras, desired.extras)
              for key, value in after.items() if key not in before]
    return _finished(found, target_id, supports)


def of_streams(existing: Pairs, desired: Pairs, supports: Callable[[RRset], bool] = lambda rrset: True) -> list[Change]:
    """:func:`between` for packed pairs that come in the order of their keys; only the changes are kept in memory.

    :raises InvalidField: for a pair that is out of order
    """
    found = [_change(key, old, new, {}, {}) for key, old, new in _merged(existing, desired) if old != new]
    return _finished(found, '', supports)


def apply(zone: Zone, changes: Iterable[Change]) -> Zone:
    """A copy of *zone* with *changes* made in it, in the order they come.

    :raises ZoneError: when a change does not fit
    """
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
    """None where the RRset is the same, or one of the two sides forbids to touch it."""
    before = None if old is None else unpack(key, old, old_extras.get(key, NO_EXTRA))
    after = None if new is None else unpack(key, new, new_extras.get(key, NO_EXTRA))
    if before is None:
        return create(after) if after is not None else None
    if after is None:
        return delete(before)
    if old == new and before.extra.served == after.extra.served:
        return None
    return update(before, after)


def _finished(found: Sequence[Change | None], target_id: str, supports: Callable[[RRset], bool]) -> list[Change]:
    kept = [change for change in found if change is not None
            and all(each.extra.is_for(target_id) and supports(each) for each in (*change.existing, *change.new))]
    return ordered(paired(kept))


def paired(changes: Sequence[Change]) -> Iterator[Change]:
    """*changes*, those made one that have to happen at once: a CNAME and what it displaces, or is displaced by."""
    aliased = {change.name for change in changes
               if isinstance(change, (Create, Delete)) and change.record.type == 'CNAME'}
    at_once: dict[str, list[Change]] = {}
    for change in changes:
        if change.name in aliased and isinstance(change, (Create, Delete)):
            at_once.setdefault(change.name, []).append(change)
        else:
            yield change
    for together in at_once.values():
        existing = tuple(sorted(each for change in together for each in change.existing))
        new = tuple(sorted(each for change in together for each in change.new))
        if existing and new:
            yield Replace(existing, new)
        else:
            yield from together


def _merged(existing: Pairs, desired: Pairs) -> Iterator[tuple[str, str | None, str | None]]:
    """Each key once, with its value on both sides."""
    left, right = _in_order(existing, 'existing'), _in_order(desired, 'desired')
    old, new = next(left, None), next(right, None)
    while old is not None or new is not None:
        if new is None or old is not None and old[0] < new[0]:
            assert old is not None
            yield old[0], old[1], None
            old = next(left, None)
        elif old is None or new[0] < old[0]:
            yield new[0], None, new[1]
            new = next(right, None)
        else:
            yield old[0], old[1], new[1]
            old, new = next(left, None), next(right, None)


def _in_order(pairs: Pairs, side: str) -> Iterator[tuple[str, str]]:
    last = ''
    for pair in pairs:
        if pair[0] <= last:
            raise InvalidField(field=side, why=f'{pair[0]!r} comes after {last!r}, out of order')
        last = pair[0]
        yield pair
