"""octoDNS's processors.  A zone is converted only for a hook that the processor overrides."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Any

from designate_pool.errors import PoolError, ProcessorException
from designate_pool.planner.octodns.classes import FEATURES, instantiate, lenient_argument
from designate_pool.planner.octodns.plans import PlanMirror, error_text, join_replaces, plan_from_octodns
from designate_pool.planner.octodns.records import ZoneMirror, octodns
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset


class AdaptedProcessor(BaseProcessor):
    """A processor of octoDNS.

    :ivar wrapped: octoDNS's object
    """

    def __init__(self, id: str, cls: type, kwargs: Mapping[str, Any]) -> None:
        self.wrapped: Any = instantiate(id, cls, kwargs)
        super().__init__(id=id, lenient=bool(self.wrapped.lenient))

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        if not self._has('process_source_zone'):
            return desired
        mirror = ZoneMirror.of(desired)
        return mirror.from_octodns(self._call('process_source_zone', lenient, mirror.octodns_zone,
                                              sources=list(map(_octodns_source, sources))))

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        if not self._has('process_target_zone'):
            return existing
        mirror = ZoneMirror.of(existing)
        return mirror.from_octodns(self._call('process_target_zone', lenient, mirror.octodns_zone,
                                              target=_octodns_source(target)))

    def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                        lenient: bool = False) -> tuple[Zone, Zone]:
        if not self._has('process_source_and_target_zones'):
            return desired, existing
        mirrors = ZoneMirror.of(desired), ZoneMirror.of(existing)
        found = self._call('process_source_and_target_zones', lenient, mirrors[0].octodns_zone,
                           mirrors[1].octodns_zone, _octodns_source(target))
        return mirrors[0].from_octodns(found[0]), mirrors[1].from_octodns(found[1])

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        if not self._has('process_plan'):
            return plan
        if plan is None:
            found = self._process_plan(None, sources, target, lenient)
            return None if found is None else plan_from_octodns(found, target.id, target.min_existing_records)
        mirror = PlanMirror.of(plan)
        converted, others = mirror.convertible(plan.changes)
        before = mirror.octodns_plan(plan, converted)
        given = list(before.changes)
        after = self._process_plan(before, sources, target, lenient)
        if after is before and after.changes == given:
            return plan
        if after is None:
            # The processor did not see the blocked changes, nor those that octoDNS cannot represent.
            return dataclasses.replace(plan, changes=join_replaces(others)) if others or plan.blocked else None
        return dataclasses.replace(
            plan, existing=mirror.existing.from_octodns(after.existing),
            desired=mirror.desired.from_octodns(after.desired),
            changes=join_replaces([*others, *map(mirror.from_octodns, after.changes)]), exists=bool(after.exists),
            update_pcent_threshold=after.update_pcent_threshold, meta=after.meta,
            delete_pcent_threshold=after.delete_pcent_threshold)

    def _process_plan(self, plan: Any, sources: Sequence[BaseSource], target: BaseProvider, lenient: bool) -> Any:
        return self._call('process_plan', lenient, plan, sources=list(map(_octodns_source, sources)),
                          target=_octodns_source(target))

    def _has(self, hook: str) -> bool:
        return getattr(type(self.wrapped), hook) is not getattr(octodns('processor.base').BaseProcessor, hook)

    def _call(self, hook: str, lenient: bool, *args: Any, **kwargs: Any) -> Any:
        method = getattr(self.wrapped, hook)
        try:
            return method(*args, **kwargs, **lenient_argument(method, lenient))
        except PoolError:
            raise
        except Exception as error:
            raise ProcessorException(processor=self.id, why=error_text(error)) from error


def _octodns_source(source: BaseSource) -> Any:
    """octoDNS's object of *source*; for others, an object with the attributes that octoDNS's processors use."""
    if hasattr(source, 'wrapped'):
        return source.wrapped
    known = octodns('record').Record.registered_types()
    return types.SimpleNamespace(
        id=source.id, SUPPORTS=set(known if source.SUPPORTS is None else source.SUPPORTS),
        supports=lambda record: source.supports(RRset(record.fqdn, record._type, record.ttl, ())),
        **{name: getattr(source, name) for name in map('SUPPORTS_{}'.format, FEATURES)})
