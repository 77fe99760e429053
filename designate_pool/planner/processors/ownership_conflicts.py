"""Which changes are allowed on a target that is shared with others.

The allowed changes affect only our RRsets, do not conflict with a CNAME, and include the changes of their marks; no
mark is created or deleted without its RRset.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from designate_pool.planner.processors.registries import MarkRegistry
from designate_pool.planner.zone.changes import Change, Replace
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset

Refused = list[tuple[Change, str]]


def split_by_ownership(changes: Sequence[Change], unfiltered: Zone, owned: frozenset[str],
                       registry: MarkRegistry | None = None,
                       marks: Mapping[str, str] | None = None, takeover: bool = False) -> tuple[list[Change], Refused]:
    """The allowed of *changes*, in the order of applying; and the refused ones with their reasons.

    :param unfiltered: the target's zone with all marks
    :param owned: the keys of existing RRsets that may be changed
    :param registry: None for an external registry, without marks
    :param marks: the keys of the existing marks, and their owners
    :param takeover: whether RRsets of other owners may become ours
    """
    case = _OwnershipRules(unfiltered, owned, registry, marks or {}, takeover)
    about_marks = [change for change in changes if case.is_about_marks(change)]
    others = [change for change in changes if not case.is_about_marks(change)]
    passed, foreign = _partition(others, case.why_foreign)
    taken = {each.key for change, _ in foreign for each in change.new if case.is_mark(each)}
    passed, unmarkable = _partition(passed, lambda change: case.why_unmarkable(change, taken))
    gone = {each.key for change in passed for each in change.existing}
    passed, colliding = _partition(passed, lambda change: case.why_colliding(change, gone))
    refused = sorted([*foreign, *unmarkable, *colliding], key=lambda found: found[0].order)
    return _with_marks(case, passed, [change for change, _ in refused], about_marks), refused


@dataclasses.dataclass(frozen=True, slots=True)
class _OwnershipRules:
    unfiltered: Zone
    owned: frozenset[str]
    registry: MarkRegistry | None
    marks: Mapping[str, str]
    takeover: bool

    def is_mark(self, rrset: RRset) -> bool:
        return self.registry is not None and rrset.type == 'TXT' and self.registry.owner(rrset) is not None

    def is_about_marks(self, change: Change) -> bool:
        return all(self.is_mark(each) for each in (*change.existing, *change.new))

    def why_foreign(self, change: Change) -> str | None:
        """Whose RRset it would change; None if only ours."""
        for each in change.existing:
            if each.type != 'SOA' and each.key not in self.owned and not self.is_mark(each):
                owner = self.owner(each.key)
                whose = f'belongs to {owner}' if owner else 'is not ours'
                return f'{each.name} {each.type} {whose}'
        return None

    def why_unmarkable(self, change: Change, taken: set[str]) -> str | None:
        """Why a new RRset cannot get our mark: it has one of others, or ours is impossible; None if it can.

        :param taken: the keys of marks that cannot be created
        """
        for each in change.new:
            if self.registry is None or each.type == 'SOA' or each.key in self.unfiltered or self.is_mark(each):
                continue
            owner = self.owner(each.key)
            if owner is not None and owner != self.registry.owner_id and not self.takeover:
                return f'{each.name} {each.type} is not there, but marked as belonging to {owner or "somebody"}'
            mark = self.registry.new_mark(each.key, self.unfiltered)
            if mark is None:
                return f'{each.name} {each.type} has too long a name for a mark'
            if mark.key in taken:
                return f'the mark of {each.name} {each.type} has to be at {mark.name}, where there is something else'
        return None

    def why_colliding(self, change: Change, gone: set[str]) -> str | None:
        """Which CNAME would be beside other data; None if none.

        :param gone: the keys of existing RRsets that are deleted
        """
        for new in change.new:
            for there in self.unfiltered.at(new.name):
                if (new.type == 'CNAME') != (there.type == 'CNAME') and there.key not in gone:
                    return f'{new.type} cannot be beside the {there.type} of {new.name}, which stays'
        return None

    def owner(self, key: str) -> str | None:
        """The owner in the mark of the RRset with *key*; None if it has no mark."""
        mark = None if self.registry is None else self.registry.mark_of(key, self.unfiltered, self.marks)
        return None if mark is None else self.marks[mark]

    def marked(self, keys: Iterable[str]) -> dict[str, set[str]]:
        """The possible keys of marks of *keys*, each with the keys that the mark is for."""
        found: dict[str, set[str]] = {}
        for key in keys:
            for name in () if self.registry is None or key in self.marks else self.registry.names(key, self.unfiltered):
                found.setdefault(f'{name}\tTXT', set()).add(key)
        return found


def _with_marks(case: _OwnershipRules, passed: Sequence[Change], refused: Sequence[Change],
                about_marks: Sequence[Change]) -> list[Change]:
    """*passed* with the changes of their marks; a Replace contains those of its marks, since it is one step."""
    marked = case.marked(key for change in (*passed, *refused) for key in _keys(change))
    kept_back = {key for change in refused for key in _keys(change)}
    there: dict[str, set[str]] = {}
    if any(change.record.key not in marked for change in about_marks):
        there = case.marked(case.unfiltered.packed)
    due = {change.record.key: change for change in about_marks if _is_due(change, marked, kept_back, there)}
    bundled: list[Change] = []
    for change in passed:
        if isinstance(change, Replace):
            own = [due.pop(mark) for mark in case.marked(_keys(change)) if mark in due]
            change = Replace((*change.existing, *(each for one in own for each in one.existing)),
                             (*change.new, *(each for one in own for each in one.new)))
        bundled.append(change)
    ranked = [(change, False) for change in bundled] + [(change, True) for change in due.values()]
    # Marks are deleted last and created first.
    ranked.sort(key=lambda pair: (pair[0].rank, pair[1] is (pair[0].kind == 'Delete'), pair[0].order))
    return [change for change, _ in ranked]


def _is_due(change: Change, marked: Mapping[str, set[str]], kept_back: set[str],
            there: Mapping[str, set[str]]) -> bool:
    """Whether the change of a mark is to be made.

    A mark of an RRset outside the plan is created only if that exists (and becomes ours), and deleted only if not.
    """
    mark = change.record.key
    if mark in marked:
        return not marked[mark] & kept_back
    return (mark in there) is (change.kind != 'Delete')


def _partition(changes: Sequence[Change], why_not: Callable[[Change], str | None]) -> tuple[list[Change], Refused]:
    found = [(change, why_not(change)) for change in changes]
    return ([change for change, why in found if why is None],
            [(change, why) for change, why in found if why is not None])


def _keys(change: Change) -> set[str]:
    return {each.key for each in (*change.existing, *change.new)}
