"""Ownership: a target shared with other programs, each of which changes only its own RRsets.

No change of a plan affects an RRset of others, or conflicts with one.  The plan that creates an RRset also creates its
mark, and the plan that deletes it deletes the mark.  Marks are created before their RRsets and deleted after them, so
that after an interruption the RRsets are still ours.

Who owns an RRset is in a registry: an external one (a database of keys), or one in the zone, where a TXT record for
each RRset, its *mark*, names the owner.  Two formats of marks are supported, so that a zone can be shared with these
programs: that of external-dns (its "TXT registry") and that of octoDNS (its OwnershipProcessor).
"""

from __future__ import annotations

import dataclasses
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from designate_pool.errors import InvalidField, ProcessorException
from designate_pool.model import names
from designate_pool.planner.plan.plan import CONFLICT, Blocked, Plan
from designate_pool.planner.processors import filters
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol import rrset as rrsets
from designate_pool.protocol.names_and_rdata import lies_in, normal_name
from designate_pool.protocol.rrset import RRset

RECORD_TYPE = '%{record_type}'
_FIRST_LABEL = re.compile(r'((?:[^.\\]|\\.)*)\.(.*)', re.DOTALL)
_OWNER_ID = re.compile(r'[!#-+\--<>-\[\]-~]{1,100}')

Refused = list[tuple[Change, str]]


class Ownership(BaseProcessor):
    """Must be the first processor, so that it sees the target's marks before a filter removes them.

    RRsets of others are not changed; if the sources have different ones in their place, that is shown as a conflict.

    :param adopt: whether existing RRsets of the sources without a mark become ours
    :param takeover: whether existing RRsets of the sources become ours even if others own them
    """

    def __init__(self, id: str, registry: Registry, adopt: bool = False, takeover: bool = False,
                 lenient: bool = False) -> None:
        super().__init__(id, lenient)
        self.registry = registry
        self.adopt = adopt
        self.takeover = takeover
        # State between the hooks; a zone is planned in one thread.
        self._local = threading.local()

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        """Record the zone, and remove the marks, so that no later processor sees them."""
        self._local.zone_and_target, self._local.unfiltered = (existing.name, target.id), existing.copy()
        for key in self._marks(existing):
            existing.remove_record(existing[key])
        return existing

    def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                        lenient: bool = False) -> tuple[Zone, Zone]:
        """Add the existing marks to *existing*, and the desired ones to *desired*."""
        if not isinstance(self.registry, MarkRegistry):
            return desired, existing
        rules = self._rules(existing, target)
        for key in self._marks(desired):
            desired.remove_record(desired[key])
        desired_marks = list(rules.wanted_marks(self.registry, desired, existing, target))
        for key in rules.marks:
            existing.add_record(rules.unfiltered[key], replace=True, lenient=True)
        for mark in desired_marks:
            if mark.key in desired:
                raise ProcessorException(processor=self.id, why=f'{mark.name} TXT is wanted by the sources, and is '
                                                                f'where the mark of an RRset must be')
            if rules.unfiltered.packed.get(mark.key) != mark.packed and not target.supports(mark):
                raise ProcessorException(processor=self.id, why=f'{target.id} cannot hold TXT records, so nothing can '
                                                                f'be marked there')
            desired.add_record(mark, lenient=True)
        return desired, existing

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        rules = None if plan is None else self._rules(plan.existing, target)
        self._local.zone_and_target = self._local.unfiltered = None
        if plan is None or rules is None:
            return None
        allowed, refused = rules.split(plan, self.registry.owned(rules.unfiltered, target.id))
        # An RRset of others that the sources do not have is no conflict.
        conflicts = [Blocked(change, CONFLICT, why) for change, why in refused if change.kind != 'Delete']
        judged = dataclasses.replace(plan, changes=allowed, blocked=(*plan.blocked, *conflicts))
        return None if judged.is_empty else judged

    def _rules(self, existing: Zone, target: BaseProvider) -> _OwnershipRules:
        """The rules for the target's zone as it was before any processor removed something from it."""
        about = getattr(self._local, 'zone_and_target', None)
        unfiltered = self._local.unfiltered if about == (existing.name, target.id) else existing
        return _OwnershipRules(unfiltered, self.registry, self.adopt, self.takeover)

    def _marks(self, zone: Zone) -> Mapping[str, str]:
        return self.registry.marks(zone) if isinstance(self.registry, MarkRegistry) else {}


class TxtOwnership(Ownership):
    """Ownership by marks of external-dns; the options are those of :class:`.TxtRegistry` and :class:`Ownership`."""

    def __init__(self, id: str, owner_id: str, prefix: str = '', ttl: int = 300, adopt: bool = False,
                 takeover: bool = False, lenient: bool = False, wildcard: str = '*') -> None:
        super().__init__(id, TxtRegistry(owner_id, prefix, filters.whole_number(id, 'ttl', ttl), wildcard), adopt,
                         takeover, lenient)


class OctodnsOwnership(Ownership):
    """Ownership by marks of octoDNS: RRsets of the sources become ours, unless a mark names another owner.

    :param should_replace: whether RRsets of the sources at the names of marks are removed; otherwise they are an error
    :param allow_takeover: whether RRsets with a mark of another owner become ours, too
    """

    def __init__(self, id: str, txt_name: str = '_owner', txt_value: str = '*octodns*', txt_ttl: int = 60,
                 should_replace: bool = False, allow_takeover: bool = False, lenient: bool = False) -> None:
        registry = OctodnsRegistry(txt_name, txt_value, filters.whole_number(id, 'txt_ttl', txt_ttl))
        super().__init__(id, registry, adopt=True, takeover=allow_takeover, lenient=lenient)
        self.owner_id = registry.owner_id
        self.should_replace = should_replace

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        for key, owner in self._marks(desired).items():
            if owner != self.owner_id and not self.should_replace:
                raise ProcessorException(processor=self.id, why=f'the sources want {desired[key]}, where only '
                                                                f'marks may be')
        return desired


class Registry(Protocol):
    """Knows which RRsets of a target are ours."""

    def owned(self, zone: Zone, target_id: str) -> frozenset[str]:
        """The keys of our RRsets; *zone* is the target's zone."""

    def applied(self, zone_name: str, target_id: str, created: Collection[str], deleted: Collection[str]) -> None:
        """Record the keys of RRsets that became ours, and of those that were deleted."""


class MarkRegistry(Registry):
    """A registry with a mark in the zone for each RRset; a subclass defines the format of marks.

    :param text: the data of our marks, as in a zone file
    :raises InvalidField: when these make no TXT record
    """

    def __init__(self, owner_id: str, text: str, ttl: int) -> None:
        self.owner_id = owner_id
        self._mark = rrsets.rrset('.', 'TXT', ttl, [text])

    def owned(self, zone: Zone, target_id: str) -> frozenset[str]:
        owners = self.marks(zone, True)
        return frozenset(key for key in zone.packed
                         if not key.endswith('\tSOA') and key not in owners
                         and owners.get(self.mark_of(key, zone, owners) or '') == self.owner_id)

    def applied(self, zone_name: str, target_id: str, created: Collection[str], deleted: Collection[str]) -> None:
        """Nothing to record: the plan contained the marks."""

    def marks(self, zone: Zone, among_others: bool = False) -> dict[str, str]:
        """The marks in *zone*, and RRsets with one *among other* data if these count: key and owner."""
        return {key: owner for key in zone.packed if key.endswith('\tTXT')
                and (owner := self.owner(zone[key], among_others)) is not None}

    def mark_of(self, key: str, zone: Zone, owners: Mapping[str, str]) -> str | None:
        """The key among *owners* of the mark of the RRset with *key*; None if it has none."""
        mark = f'{self.name(key, zone)}\tTXT'
        return mark if mark in owners else None

    def new_mark(self, key: str, zone: Zone) -> RRset | None:
        """The mark that makes the RRset with *key* ours; None if the mark's name would be too long."""
        name = self.name(key, zone)
        return None if name is None else self._mark._replace(name=name)

    def name(self, key: str, zone: Zone) -> str | None:
        """The name of the mark of the RRset with *key*; None if it would be too long."""
        raise NotImplementedError

    def owner(self, found: RRset, among_others: bool = False) -> str | None:
        """The owner in a TXT RRset; None if it is no mark.

        :param among_others: whether it counts as one if only some of its records are marks
        """
        raise NotImplementedError


class TxtRegistry(MarkRegistry):
    """Marks of external-dns: ``a-www TXT "heritage=external-dns,external-dns/owner=OWNER"`` for ``www A``.

    The mark of the apex is ``a-`` below the zone, since it would be outside otherwise.

    :param prefix: inserted before the first label; ``%{record_type}`` is replaced by the type, which otherwise follows
        as ``a-``
    :param wildcard: replaces the label ``*``, which some servers take in no other place
    :raises InvalidField: for an invalid *owner_id*
    """

    def __init__(self, owner_id: str, prefix: str = '', ttl: int = 300, wildcard: str = '*') -> None:
        if not _OWNER_ID.fullmatch(owner_id):
            raise InvalidField(field='owner_id', why=f'{owner_id!r} must be 1 to 100 printable characters, without '
                                                     f'spaces, commas, quotes, backslashes and equals signs')
        super().__init__(owner_id, f'"heritage=external-dns,external-dns/owner={owner_id}"', ttl)
        self.prefix = prefix.lower()
        self.wildcard = wildcard

    def name(self, key: str, zone: Zone) -> str | None:
        name, _, rtype = key.partition('\t')
        host, domain = _split_first_label(name)
        mark_name = self._mark_name(self.wildcard if host == '*' else host, domain, rtype.lower(), zone)
        return self._mark_name('', name, rtype.lower(), zone) if mark_name is None and name == zone.name else mark_name

    def owner(self, found: RRset, among_others: bool = False) -> str | None:
        """The owner that marks of this format name, others before us; None for another TXT RRset."""
        owners = {_external_dns_owner(rdata) for rdata in found.rdatas}
        if None in owners and not among_others or owners == {None}:
            return None
        others = sorted(owner for owner in owners - {self.owner_id} if owner is not None)
        return ', '.join(others) if others else self.owner_id

    def _mark_name(self, host: str, domain: str, rtype: str, zone: Zone) -> str | None:
        """The name with prefix and type; None if it is invalid, or outside the zone."""
        if RECORD_TYPE not in self.prefix:
            host = f'{rtype}-{host}'
        prefix = self.prefix.replace(RECORD_TYPE, rtype)
        try:
            name = normal_name(f'{prefix}{host}'.lstrip('.') + (f'.{domain}' if domain != '.' else '.'))
        except InvalidField:
            return None
        return name if zone.holds(name) else None


class OctodnsRegistry(MarkRegistry):
    """Marks of octoDNS: ``_owner.a.www TXT "*octodns*"`` for ``www A``."""

    def __init__(self, txt_name: str = '_owner', txt_value: str = '*octodns*', txt_ttl: int = 60) -> None:
        super().__init__(txt_value, '"' + re.sub(r'(["\\])', r'\\\1', txt_value) + '"', txt_ttl)
        self.txt_name = txt_name.lower()

    def name(self, key: str, zone: Zone) -> str | None:
        name, _, rtype = key.partition('\t')
        try:
            return normal_name(f'{self.txt_name}.{rtype.lower()}.{name.lstrip(".").replace("*", "_wildcard")}')
        except InvalidField:
            return None

    def owner(self, found: RRset, among_others: bool = False) -> str | None:
        if not found.name.startswith(f'{self.txt_name}.'):
            return None
        return self.owner_id if found.rdatas == self._mark.rdatas else ' '.join(found.rdatas)


def _external_dns_owner(rdata: str) -> str | None:
    """The owner in the data of a TXT record; None if it is no mark of external-dns."""
    words = {word.partition('=')[0]: word.partition('=')[2]
             for word in rdata.strip('"').replace('" "', '').split(',')} if 'heritage=' in rdata else {}
    return words.get('external-dns/owner', '') if words.get('heritage') == 'external-dns' else None


def _split_first_label(name: str) -> tuple[str, str]:
    """The first label, and the rest."""
    match = _FIRST_LABEL.match(name)
    assert match is not None
    return match[1], match[2] or '.'


class _OwnershipRules:
    """Whose the RRsets of a target's zone are, and which of them may be changed.

    :ivar registry: None for an external one, without marks
    :ivar marks: the keys of the existing marks, and their owners
    :ivar owners: these, and RRsets with a mark among other data
    :ivar owned: the keys of existing RRsets that may be changed
    """

    def __init__(self, unfiltered: Zone, registry: Registry, adopt: bool, takeover: bool) -> None:
        self.unfiltered = unfiltered
        self.registry = registry if isinstance(registry, MarkRegistry) else None
        self.marks: Mapping[str, str] = {} if self.registry is None else self.registry.marks(unfiltered)
        self.owners: Mapping[str, str] = {} if self.registry is None else self.registry.marks(unfiltered, True)
        self.adopt = adopt
        self.takeover = takeover
        self.owned = frozenset[str]()

    def wanted_marks(self, registry: MarkRegistry, desired: Zone, existing: Zone,
                     target: BaseProvider) -> Iterator[RRset]:
        """The marks of others, our marks that are still needed, and new ones for RRsets that become ours."""
        kept = {key for key, owner in self.marks.items() if owner != registry.owner_id}
        new: dict[str, RRset] = {}
        for rrset in desired:
            if rrset.type == 'SOA':
                continue
            mark, owner = registry.mark_of(rrset.key, self.unfiltered, self.owners), self.owner(rrset.key)
            kept |= {mark} if mark is not None and mark in self.marks else set()
            if owner is None:
                becomes_ours = self.adopt or rrset.key not in self.unfiltered
            else:
                becomes_ours = owner != registry.owner_id and self.takeover
            if becomes_ours and rrset.extra.is_for(target.id) and target.supports(rrset) \
                    and (fresh := registry.new_mark(rrset.key, self.unfiltered)) is not None:
                new[fresh.key] = fresh
        for rrset in self.unfiltered if self.marks else ():
            stays = rrset.key not in self.marks and (rrset.key not in existing or not target.supports(rrset))
            if stays and (mark := registry.mark_of(rrset.key, self.unfiltered, self.marks)) is not None:
                kept.add(mark)
        yield from (self.unfiltered[key] for key in kept if key not in new)
        yield from new.values()

    def split(self, plan: Plan, owned: frozenset[str]) -> tuple[list[Change], Refused]:
        """The allowed changes of *plan*, in the order of applying; and the refused ones with their reasons.

        :param owned: the keys of RRsets that are ours by the registry
        """
        self.owned = owned | {key for key in plan.desired.packed if key in self.unfiltered
                              and (self.adopt if self.owner(key) is None else self.takeover)}
        about_marks = [change for change in plan.changes if self.is_about_marks(change)]
        others = [change for change in plan.changes if not self.is_about_marks(change)]
        passed, foreign = _partition(others, self.why_foreign)
        taken = {rrset.key for change, _ in foreign for rrset in change.new if self.is_mark(rrset)}
        passed, unmarkable = _partition(passed, lambda change: self.why_unmarkable(change, taken))
        gone = {rrset.key for change in passed for rrset in change.existing}
        passed, colliding = _partition(passed, lambda change: self.why_colliding(change, gone))
        refused = sorted([*foreign, *unmarkable, *colliding], key=lambda pair: pair[0].order)
        return self.with_marks(passed, [change for change, _ in refused], about_marks), refused

    def is_mark(self, rrset: RRset) -> bool:
        return self.registry is not None and rrset.type == 'TXT' and self.registry.owner(rrset) is not None

    def is_about_marks(self, change: Change) -> bool:
        return all(self.is_mark(rrset) for rrset in (*change.existing, *change.new))

    def why_foreign(self, change: Change) -> str | None:
        """Whose RRset it would change; None if only ours."""
        for rrset in change.existing:
            if rrset.type != 'SOA' and rrset.key not in self.owned and not self.is_mark(rrset):
                owner = self.owner(rrset.key)
                whose = f'belongs to {owner}' if owner else 'is not ours'
                return f'{rrset.name} {rrset.type} {whose}'
        return None

    def why_unmarkable(self, change: Change, taken: set[str]) -> str | None:
        """Why a new RRset cannot get our mark: it has one of others, or ours is impossible; None if it can."""
        for rrset in change.new:
            if self.registry is None or rrset.type == 'SOA' or rrset.key in self.unfiltered or self.is_mark(rrset):
                continue
            owner = self.owner(rrset.key)
            if owner is not None and owner != self.registry.owner_id and not self.takeover:
                return f'{rrset.name} {rrset.type} is not there, but marked as belonging to {owner or "somebody"}'
            mark = self.registry.new_mark(rrset.key, self.unfiltered)
            if mark is None:
                return f'{rrset.name} {rrset.type} has too long a name for a mark'
            if mark.key in taken:
                return f'the mark of {rrset.name} {rrset.type} has to be at {mark.name}, where there is something else'
        return None

    def why_colliding(self, change: Change, gone: set[str]) -> str | None:
        """Which CNAME would be beside other data, or DNAME above (RFC 6672 section 2.4), when the RRsets *gone* are
        deleted; None if none."""
        for new in change.new:
            for rrset in self.unfiltered.at(new.name):
                if (new.type == 'CNAME') != (rrset.type == 'CNAME') and rrset.key not in gone:
                    return f'{new.type} cannot be beside the {rrset.type} of {new.name}, which stays'
            for upper in names.above(new.name):
                if (key := f'{upper}\tDNAME') in self.unfiltered and key not in gone:
                    return f'{new.name} {new.type} cannot be below the DNAME of {upper}, which stays'
            for rrset in self.unfiltered if new.type == 'DNAME' else ():
                if rrset.name != new.name and lies_in(rrset.name, new.name) and rrset.key not in gone \
                        and rrset.key not in self.marks:
                    return f'DNAME cannot be above the {rrset.type} of {rrset.name}, which stays'
        return None

    def owner(self, key: str) -> str | None:
        """The owner in the mark of the RRset with *key*; None if it has no mark."""
        mark = None if self.registry is None else self.registry.mark_of(key, self.unfiltered, self.owners)
        return None if mark is None else self.owners[mark]

    def mark_keys(self, keys: Iterable[str]) -> set[str]:
        """The keys of the marks of RRsets, there or not."""
        return set() if self.registry is None else {
            f'{self.registry.name(key, self.unfiltered)}\tTXT' for key in keys if key not in self.marks}

    def with_marks(self, passed: Sequence[Change], refused: Sequence[Change],
                   about_marks: Sequence[Change]) -> list[Change]:
        """*passed* with the changes of their marks; a Replace contains those of its marks: it is one step.

        A mark of an RRset outside the plan is created only if that exists (and becomes ours), and deleted only if not.
        """
        of_passed, of_refused = (self.mark_keys(key for change in part for key in _keys(change))
                                 for part in (passed, refused))
        due = {change.record.key: change for change in about_marks if change.record.key not in of_refused}
        outside = due.keys() - of_passed
        existing = self.mark_keys(self.unfiltered.packed) if outside else set()
        for mark in outside:
            if (mark in existing) is (due[mark].kind == 'Delete'):
                del due[mark]
        bundled: list[Change] = []
        for change in passed:
            if change.kind == 'Replace':
                own = [due.pop(mark) for mark in sorted(self.mark_keys(_keys(change))) if mark in due]
                change = Change((*change.existing, *(rrset for one in own for rrset in one.existing)),
                                (*change.new, *(rrset for one in own for rrset in one.new)))
            bundled.append(change)
        ranked = [(change, False) for change in bundled] + [(change, True) for change in due.values()]
        # Marks are deleted last and created first.
        ranked.sort(key=lambda pair: (pair[0].rank, pair[1] is (pair[0].kind == 'Delete'), pair[0].order))
        return [change for change, _ in ranked]


def _partition(changes: Sequence[Change], why_not: Callable[[Change], str | None]) -> tuple[list[Change], Refused]:
    judged = [(change, why_not(change)) for change in changes]
    return ([change for change, why in judged if why is None],
            [(change, why) for change, why in judged if why is not None])


def _keys(change: Change) -> set[str]:
    return {rrset.key for rrset in (*change.existing, *change.new)}
