"""Ownership: a target shared with other programs, each of which changes only its own RRsets.

No change of a plan affects an RRset of others, or conflicts with one.  The plan that creates an RRset also creates its
mark, and the plan that deletes it deletes the mark.  Marks are created before their RRsets and deleted after them, so
that after an interruption the RRsets are still ours.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Mapping, Sequence

from designate_pool.errors import ProcessorException
from designate_pool.planner.plan.plan import CONFLICT, Blocked, Plan
from designate_pool.planner.processors import options
from designate_pool.planner.processors.ownership_conflicts import split_by_ownership
from designate_pool.planner.processors.registries import MarkRegistry, OctodnsRegistry, Registry, TxtRegistry
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset

__all__ = ['MarkRegistry', 'OctodnsOwnership', 'OctodnsRegistry', 'Ownership', 'Registry', 'TxtOwnership',
           'TxtRegistry']


class Ownership(BaseProcessor):
    """Must be the first processor, so that it sees the target's marks before a filter removes them.

    RRsets of others are not changed; if the sources have different ones in their place, that is shown as a conflict.

    :param registry: knows which RRsets are ours
    :param adopt: whether existing RRsets of the sources without a mark become ours
    :param takeover: whether existing RRsets of the sources become ours even if others own them
    :param show_foreign: whether RRsets of others that are not in the sources are shown as conflicts too
    """

    def __init__(self, id: str, registry: Registry, adopt: bool = False, takeover: bool = False,
                 show_foreign: bool = False, lenient: bool = False) -> None:
        super().__init__(id, lenient)
        self.registry = registry
        self.adopt = adopt
        self.takeover = takeover
        self.show_foreign = show_foreign
        self._mark_registry = registry if isinstance(registry, MarkRegistry) else None
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
        if self._mark_registry is None:
            return desired, existing
        unfiltered = self._unfiltered(existing, target)
        marks = self._marks(unfiltered)
        for key in self._marks(desired):
            desired.remove_record(desired[key])
        wanted = list(self._wanted_marks(self._mark_registry, desired, existing, unfiltered, marks, target))
        for key in marks:
            existing.add_record(unfiltered[key], replace=True, lenient=True)
        for mark in wanted:
            if mark.key in desired:
                raise ProcessorException(processor=self.id, why=f'{mark.name} TXT is wanted by the sources, and is '
                                                                f'where the mark of an RRset must be')
            desired.add_record(mark, lenient=True)
        return desired, existing

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        if plan is None:
            self._forget()
            return None
        unfiltered = self._unfiltered(plan.existing, target)
        self._forget()
        marks = self._marks(unfiltered)
        owned = self._owned(plan, unfiltered, marks, target)
        allowed, refused = split_by_ownership(plan.changes, unfiltered, owned, self._mark_registry, marks,
                                              self.takeover)
        # An RRset of others that the sources do not have is no conflict.
        conflicts = [Blocked(change, CONFLICT, why) for change, why in refused
                     if self.show_foreign or change.kind != 'Delete']
        judged = dataclasses.replace(plan, changes=allowed, blocked=(*plan.blocked, *conflicts))
        return None if judged.is_empty else judged

    def _unfiltered(self, existing: Zone, target: BaseProvider) -> Zone:
        """The target's zone before any processor removed something from it."""
        about = getattr(self._local, 'zone_and_target', None)
        return self._local.unfiltered if about == (existing.name, target.id) else existing

    def _forget(self) -> None:
        self._local.zone_and_target = self._local.unfiltered = None

    def _marks(self, zone: Zone) -> Mapping[str, str]:
        return {} if self._mark_registry is None else self._mark_registry.marks(zone)

    def _wanted_marks(self, registry: MarkRegistry, desired: Zone, existing: Zone, unfiltered: Zone,
                      marks: Mapping[str, str], target: BaseProvider) -> Iterator[RRset]:
        """The marks of others, our marks that are still needed, and new ones for RRsets that become ours."""
        kept = {key for key, owner in marks.items() if owner != registry.owner_id}
        new: dict[str, RRset] = {}
        for rrset in desired:
            if rrset.type == 'SOA':
                continue
            mark = registry.mark_of(rrset.key, unfiltered, marks)
            kept |= {mark} if mark is not None else set()
            if rrset.extra.is_for(target.id) and target.supports(rrset) \
                    and self._becomes_ours(registry, rrset.key in unfiltered, None if mark is None else marks[mark]) \
                    and (fresh := registry.new_mark(rrset.key, unfiltered)) is not None:
                new[fresh.key] = fresh
        for rrset in unfiltered if marks else ():
            stays = rrset.key not in marks and (rrset.key not in existing or not target.supports(rrset))
            if stays and (mark := registry.mark_of(rrset.key, unfiltered, marks)) is not None:
                kept.add(mark)
        for each in new.values():
            if not target.supports(each):
                raise ProcessorException(processor=self.id, why=f'{target.id} cannot hold TXT records, so nothing can '
                                                                f'be marked there')
        yield from (unfiltered[key] for key in kept if key not in new)
        yield from new.values()

    def _becomes_ours(self, registry: MarkRegistry, is_there: bool, owner: str | None) -> bool:
        if owner is None:
            return self.adopt or not is_there
        return owner != registry.owner_id and self.takeover

    def _owned(self, plan: Plan, unfiltered: Zone, marks: Mapping[str, str], target: BaseProvider) -> frozenset[str]:
        owned = self.registry.owned(unfiltered, target.id)
        if not self.adopt and not self.takeover:
            return owned
        there = {key for key in plan.desired.packed if key in unfiltered}
        if self._mark_registry is None:
            return owned | there
        return owned | {key for key in there
                        if (self.takeover if self._mark_registry.mark_of(key, unfiltered, marks) else self.adopt)}


class TxtOwnership(Ownership):
    """Ownership by marks of external-dns; the options are those of :class:`.TxtRegistry` and :class:`Ownership`."""

    def __init__(self, id: str, owner_id: str, prefix: str = '', suffix: str = '', heritage: str = 'external-dns',
                 wildcard_replacement: str = '', ttl: int = 300, adopt: bool = False, takeover: bool = False,
                 show_foreign: bool = False, lenient: bool = False) -> None:
        registry = TxtRegistry(owner_id, prefix, suffix, heritage, wildcard_replacement,
                               options.whole_number(id, 'ttl', ttl))
        super().__init__(id, registry, adopt, takeover, show_foreign, lenient)


class OctodnsOwnership(Ownership):
    """Ownership by marks of octoDNS: RRsets of the sources become ours, unless a mark names another owner.

    :param should_replace: whether RRsets of the sources at the names of marks are removed; otherwise they are an error
    :param allow_takeover: whether RRsets with a mark of another owner become ours, too
    """

    def __init__(self, id: str, txt_name: str = '_owner', txt_value: str = '*octodns*', txt_ttl: int = 60,
                 should_replace: bool = False, allow_takeover: bool = False, lenient: bool = False) -> None:
        registry = OctodnsRegistry(txt_name, txt_value, options.whole_number(id, 'txt_ttl', txt_ttl))
        super().__init__(id, registry, adopt=True, takeover=allow_takeover, lenient=lenient)
        self.owner_id = registry.owner_id
        self.should_replace = should_replace

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        for key, owner in self._marks(desired).items():
            if owner != self.owner_id and not self.should_replace:
                raise ProcessorException(processor=self.id, why=f'the sources want {desired[key]}, where only '
                                                                f'marks may be')
        return desired
