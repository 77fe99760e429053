"""Ownership: a target shared with others, each of whom changes only what is theirs.

The invariant: no change that is left in a plan touches an RRset that is not ours, or would stand where somebody else's
is in the way; and whatever we make gets a mark, and whatever we delete loses it, in the same plan.  A create makes the
mark first and a delete takes it last, so that what an interrupted plan leaves behind is ours all the same.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Mapping, Sequence

from designate_pool.errors import ProcessorException
from designate_pool.planner.plan.plan import CONFLICT, Blocked, Plan
from designate_pool.planner.processors import options
from designate_pool.planner.processors.ownership_conflicts import judge
from designate_pool.planner.processors.registries import MarkRegistry, OctodnsRegistry, Registry, TxtRegistry
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset

__all__ = ['MarkRegistry', 'OctodnsOwnership', 'OctodnsRegistry', 'Ownership', 'Registry', 'TxtOwnership',
           'TxtRegistry']


class Ownership(BaseProcessor):
    """To be the first of the processors, so that it sees the target's marks before a filter leaves them out.

    RRsets of others that the sources do not have are left as they are; where the sources want something else there,
    that is a conflict, and is shown.

    :param registry: where it is known what is ours
    :param adopt: whether what the sources have, and is there already with nobody's mark, becomes ours
    :param takeover: whether it becomes ours also where it is somebody else's
    :param show_foreign: whether RRsets of others that the sources do not have are shown as conflicts too
    """

    def __init__(self, id: str, registry: Registry, adopt: bool = False, takeover: bool = False,
                 show_foreign: bool = False, lenient: bool = False) -> None:
        super().__init__(id, lenient)
        self.registry = registry
        self.adopt = adopt
        self.takeover = takeover
        self.show_foreign = show_foreign
        self._marking = registry if isinstance(registry, MarkRegistry) else None
        # From one hook to the next; a zone is planned in one thread.
        self._local = threading.local()

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        """Note all that is there, and take the marks out, so that no processor after this one minds them."""
        self._local.about, self._local.seen = (existing.name, target.id), existing.copy()
        for key in self._marks(existing):
            existing.remove_record(_at(existing, key))
        return existing

    def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                        lenient: bool = False) -> tuple[Zone, Zone]:
        """Put the marks into both zones: as they are into *existing*, as they are to be into *desired*."""
        if self._marking is None:
            return desired, existing
        seen = self._seen(existing, target)
        marks = self._marks(seen)
        for key in self._marks(desired):
            desired.remove_record(_at(desired, key))
        wanted = list(self._wanted_marks(self._marking, desired, existing, seen, marks, target))
        for key in marks:
            existing.add_record(_at(seen, key), replace=True, lenient=True)
        for mark in wanted:
            if mark.key in desired:
                raise ProcessorException(processor=self.id, why=f'{mark.name} TXT is wanted by the sources, and is '
                                                                f'where the mark of an RRset has to be')
            desired.add_record(mark, lenient=True)
        return desired, existing

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        if plan is None:
            self._forget()
            return None
        seen = self._seen(plan.existing, target)
        self._forget()
        marks = self._marks(seen)
        owned = self._owned(plan, seen, marks, target)
        allowed, refused = judge(plan.changes, seen, owned, self._marking, marks, self.takeover)
        # Nobody wants anything in the place of what would only go.
        conflicts = [Blocked(change, CONFLICT, why) for change, why in refused
                     if self.show_foreign or change.kind != 'Delete']
        judged = dataclasses.replace(plan, changes=allowed, blocked=(*plan.blocked, *conflicts))
        return None if judged.is_empty else judged

    def _seen(self, existing: Zone, target: BaseProvider) -> Zone:
        """What the target has, as it was before any processor left something out of it."""
        about = getattr(self._local, 'about', None)
        return self._local.seen if about == (existing.name, target.id) else existing

    def _forget(self) -> None:
        self._local.about = self._local.seen = None

    def _marks(self, zone: Zone) -> Mapping[str, str]:
        return {} if self._marking is None else self._marking.marks(zone)

    def _wanted_marks(self, registry: MarkRegistry, desired: Zone, existing: Zone, seen: Zone,
                      marks: Mapping[str, str], target: BaseProvider) -> Iterator[RRset]:
        """The marks of others, those of ours that are still needed, and new ones for what becomes ours."""
        kept = {key for key, owner in marks.items() if owner != registry.owner_id}
        new: dict[str, RRset] = {}
        for rrset in desired:
            if rrset.type == 'SOA':
                continue
            mark = registry.mark_of(rrset.key, seen, marks)
            kept |= {mark} if mark is not None else set()
            if rrset.extra.is_for(target.id) and target.supports(rrset) \
                    and self._becomes_ours(registry, rrset.key in seen, None if mark is None else marks[mark]) \
                    and (fresh := registry.new_mark(rrset.key, seen)) is not None:
                new[fresh.key] = fresh
        for rrset in seen if marks else ():
            stays = rrset.key not in marks and (rrset.key not in existing or not target.supports(rrset))
            if stays and (mark := registry.mark_of(rrset.key, seen, marks)) is not None:
                kept.add(mark)
        for each in new.values():
            if not target.supports(each):
                raise ProcessorException(processor=self.id, why=f'{target.id} cannot hold TXT records, so nothing can '
                                                                f'be marked there')
        yield from (_at(seen, key) for key in kept if key not in new)
        yield from new.values()

    def _becomes_ours(self, registry: MarkRegistry, is_there: bool, owner: str | None) -> bool:
        if owner is None:
            return self.adopt or not is_there
        return owner != registry.owner_id and self.takeover

    def _owned(self, plan: Plan, seen: Zone, marks: Mapping[str, str], target: BaseProvider) -> frozenset[str]:
        owned = self.registry.owned(seen, target.id)
        if not self.adopt and not self.takeover:
            return owned
        there = {key for key in plan.desired.packed if key in seen}
        if self._marking is None:
            return owned | there
        return owned | {key for key in there
                        if (self.takeover if self._marking.mark_of(key, seen, marks) else self.adopt)}


class TxtOwnership(Ownership):
    """Ownership by marks as external-dns writes them; options as :class:`.TxtRegistry` and :class:`Ownership` have."""

    def __init__(self, id: str, owner_id: str, prefix: str = '', suffix: str = '', heritage: str = 'external-dns',
                 wildcard_replacement: str = '', ttl: int = 300, adopt: bool = False, takeover: bool = False,
                 show_foreign: bool = False, lenient: bool = False) -> None:
        registry = TxtRegistry(owner_id, prefix, suffix, heritage, wildcard_replacement, options.whole(id, 'ttl', ttl))
        super().__init__(id, registry, adopt, takeover, show_foreign, lenient)


class OctodnsOwnership(Ownership):
    """Ownership by marks as octoDNS writes them: what the sources have becomes ours, unless somebody else's mark says
    whose it is.

    :param should_replace: whether what the sources have where marks are is left out; without it, it is an error
    :param allow_takeover: whether what somebody else has marked becomes ours, too
    """

    def __init__(self, id: str, txt_name: str = '_owner', txt_value: str = '*octodns*', txt_ttl: int = 60,
                 should_replace: bool = False, allow_takeover: bool = False, lenient: bool = False) -> None:
        registry = OctodnsRegistry(txt_name, txt_value, options.whole(id, 'txt_ttl', txt_ttl))
        super().__init__(id, registry, adopt=True, takeover=allow_takeover, lenient=lenient)
        self.owner_id = registry.owner_id
        self.should_replace = should_replace

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        for key, owner in self._marks(desired).items():
            if owner != self.owner_id and not self.should_replace:
                raise ProcessorException(processor=self.id, why=f'the sources want {_at(desired, key)}, where only '
                                                                f'marks may be')
        return desired


def _at(zone: Zone, key: str) -> RRset:
    found = zone.get(*key.split('\t'))
    assert found is not None
    return found
