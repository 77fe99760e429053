"""octoDNS's processors as ours.  A zone is only turned into octoDNS's for a hook that the processor really has."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Any

from designate_pool.errors import PoolError, ProcessorException
from designate_pool.planner.octodns.classes import FEATURES, lenient_word, new
from designate_pool.planner.octodns.plans import Made, expressible, plan_of, whole, words
from designate_pool.planner.octodns.records import Mirror, octodns
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset


class AdaptedProcessor(BaseProcessor):
    """A processor of octoDNS.

    :ivar theirs: octoDNS's object
    """

    def __init__(self, id: str, cls: type, kwargs: Mapping[str, Any]) -> None:
        self.theirs: Any = new(id, cls, kwargs)
        super().__init__(id=id, lenient=bool(self.theirs.lenient))

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        if not self._has('process_source_zone'):
            return desired
        mirror = Mirror.of(desired)
        return mirror.ours(self._call('process_source_zone', lenient, mirror.octodns, sources=_all_theirs(sources)))

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        if not self._has('process_target_zone'):
            return existing
        mirror = Mirror.of(existing)
        return mirror.ours(self._call('process_target_zone', lenient, mirror.octodns, target=_theirs(target)))

    def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                        lenient: bool = False) -> tuple[Zone, Zone]:
        if not self._has('process_source_and_target_zones'):
            return desired, existing
        wanted, there = Mirror.of(desired), Mirror.of(existing)
        found = self._call('process_source_and_target_zones', lenient, wanted.octodns, there.octodns, _theirs(target))
        return wanted.ours(found[0]), there.ours(found[1])

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        if not self._has('process_plan'):
            return plan
        if plan is None:
            found = self._planned(None, sources, target, lenient)
            return None if found is None else plan_of(found, target.id, target.min_existing_records)
        made = Made.of(plan)
        theirs, aside = expressible(made, plan.changes)
        before = made.plan(plan, theirs)
        shown = list(before.changes)
        after = self._planned(before, sources, target, lenient)
        if after is before and after.changes == shown:
            return plan
        if after is None:
            # What was kept back before, and what octoDNS has no words for, was not what it said no to.
            return dataclasses.replace(plan, changes=whole(aside)) if aside or plan.blocked else None
        return dataclasses.replace(
            plan, existing=made.existing.ours(after.existing), desired=made.desired.ours(after.desired),
            changes=whole([*aside, *(made.ours(each) for each in after.changes)]), exists=bool(after.exists),
            update_pcent_threshold=after.update_pcent_threshold, meta=after.meta,
            delete_pcent_threshold=after.delete_pcent_threshold)

    def _planned(self, plan: Any, sources: Sequence[BaseSource], target: BaseProvider, lenient: bool) -> Any:
        return self._call('process_plan', lenient, plan, sources=_all_theirs(sources), target=_theirs(target))

    def _has(self, hook: str) -> bool:
        return getattr(type(self.theirs), hook) is not getattr(octodns('processor.base').BaseProcessor, hook)

    def _call(self, hook: str, lenient: bool, *args: Any, **kwargs: Any) -> Any:
        method = getattr(self.theirs, hook)
        try:
            return method(*args, **kwargs, **lenient_word(method, lenient))
        except PoolError:
            raise
        except Exception as error:
            raise ProcessorException(processor=self.id, why=words(error)) from error


def _theirs(ours: BaseSource) -> Any:
    """octoDNS's object behind *ours*; where that is none of octoDNS's, what its processors ask of one."""
    if hasattr(ours, 'theirs'):
        return ours.theirs
    known = octodns('record').Record.registered_types()
    return types.SimpleNamespace(
        id=ours.id, SUPPORTS=set(known if ours.SUPPORTS is None else ours.SUPPORTS),
        supports=lambda record: ours.supports(RRset(record.fqdn, record._type, record.ttl, ())),
        **{name: getattr(ours, name) for name in map('SUPPORTS_{}'.format, FEATURES)})


def _all_theirs(sources: Sequence[BaseSource]) -> list[Any]:
    return [_theirs(each) for each in sources]
