"""Policies: which kinds of changes may be made at all.

A policy is a set of verbs with a name.  It allows or blocks each change as a whole; several policies together allow
what each of them allows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from designate_pool.errors import InvalidField
from designate_pool.planner.plan.plan import BLOCKED_BY_POLICY, Blocked
from designate_pool.planner.zone.changes import Change

VERBS = frozenset({'create', 'update', 'delete'})

#: By name.  A policy can also be written as verbs with + between them: ``create+delete``.
POLICIES: dict[str, frozenset[str]] = {
    'sync': VERBS,
    'upsert-only': frozenset({'create', 'update'}),
    'create-only': frozenset({'create'}),
    'update-only': frozenset({'update'}),
    'delete-only': frozenset({'delete'}),
    'create-delete-only': frozenset({'create', 'delete'}),
    'create-and-delete-only': frozenset({'create', 'delete'}),
    'create-update-only': frozenset({'create', 'update'}),
    'update-delete-only': frozenset({'update', 'delete'}),
}

DEFAULT = 'sync'


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """A set of verbs, of create, update and delete, that are allowed."""

    name: str
    verbs: frozenset[str]

    def split(self, changes: Sequence[Change]) -> tuple[list[Change], list[Blocked]]:
        """The allowed and the blocked changes, in order; the SOA's is allowed by its verb, or if all others are."""
        passes_all = bool(self.verbs) and all(change.verbs <= self.verbs for change in changes if not _is_soa(change))
        allowed: list[Change] = []
        blocked: list[Blocked] = []
        for change in changes:
            if change.verbs <= self.verbs or passes_all and _is_soa(change):
                allowed.append(change)
            else:
                blocked.append(Blocked(change, BLOCKED_BY_POLICY, self._why(change)))
        return allowed, blocked

    def _why(self, change: Change) -> str:
        refused = ' and '.join(sorted(change.verbs - self.verbs))
        if len(change.verbs) > 1:
            return f'it needs {" and ".join(sorted(change.verbs))}, and the policy {self.name} does not allow {refused}'
        return f'the policy {self.name} does not allow {refused}'


def parse(words: str | Sequence[str]) -> Policy:
    """The policy of one name, several separated by commas, or a list of these; an empty list is ``sync``."""
    names = [part.strip() for text in ([words] if isinstance(words, str) else words) for part in text.split(',')]
    if not names:
        names = [DEFAULT]
    return Policy(' and '.join(names), frozenset.intersection(*map(_verbs, names)))


def _verbs(word: str) -> frozenset[str]:
    if word in POLICIES:
        return POLICIES[word]
    verbs = [part.strip() for part in word.split('+')]
    if not VERBS.issuperset(verbs):
        raise InvalidField(field='policy', why=f"{word!r} is none of {', '.join(POLICIES)}, nor verbs of "
                                               f"{', '.join(sorted(VERBS))} with + between them")
    return frozenset(verbs)


def _is_soa(change: Change) -> bool:
    return change.types == ('SOA',)
