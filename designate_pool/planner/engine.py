"""The engine: from sources to targets, by way of plans.

:meth:`Manager.sync` tells a zone's whole life in one run.  What is unsafe and not forced keeps everything from being
applied, whatever zone or target it is on: who sees a run refused knows that nothing has happened.  What cannot be read
or planned fails by itself, and visibly, and the others go on.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TextIO, TypeVar

from designate_pool.errors import InvalidField, PlanMoved, SourceError
from designate_pool.model import PlanState, utcnow
from designate_pool.planner import zone_jobs
from designate_pool.planner.plan import stored_plan
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.plan.plan_store import PlanStore
from designate_pool.planner.plan.safety import dangers, has_contents
from designate_pool.planner.plan.stored_plan import KeptPlan
from designate_pool.planner.processors.policies import PolicyProcessor
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.run_report import RunReport, TargetResult
from designate_pool.planner.setup import Setup, ZoneSetting
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.planner.zone_jobs import ZoneJob
from designate_pool.protocol.rrset import lies_in, normal_name, parents

__all__ = ['SyncEngine', 'RunReport', 'TargetResult', 'Setup', 'ZoneSetting', 'plan_for']

Given = TypeVar('Given')
Found = TypeVar('Found')


def plan_for(target: BaseProvider, desired: Zone, processors: Sequence[BaseProcessor] = (),
             sources: Sequence[BaseSource] = (), lenient: bool = False) -> Plan | None:
    """What one target has to change so that it has *desired*, as the processors leave it; None for nothing.

    :raises PoolError: when the target cannot be read, or cannot hold what is desired
    """
    plan = target.plan(desired, processors=processors, lenient=lenient)
    for processor in processors:
        plan = processor.process_plan(plan, sources, target, lenient=lenient)
    return plan


class SyncEngine:
    """
    :param out: where outputs without a file of their own write to; standard output unless given
    :param now: the time, aware and in UTC
    """

    def __init__(self, setup: Setup, out: TextIO | None = None, now: Callable[[], datetime] = utcnow) -> None:
        self.setup = setup
        self.now = now
        self._out = out
        self._settings: dict[str, ZoneSetting] | None = None
        self._below: dict[str, list[str]] = {}

    def sync(self, zones: Collection[str] = (), sources: Collection[str] = (), targets: Collection[str] = (), *,
             dry_run: bool = True, force: Collection[str] | bool = (), store: PlanStore | None = None,
             only: KeptPlan | None = None) -> RunReport:
        """One run: plan what is wanted, show it, and apply it unless it is a dry run.

        :param zones: names of the zones that are wanted; empty for all
        :param sources: only zones that have one of these among their sources; empty for all
        :param targets: only these targets; empty for all
        :param force: names of zones that may be changed in spite of dangers, in this run; True for all of them
        :param store: where the plan is kept to be applied later; of a run that applies it, what became of it as well
        :param only: a stored plan: exactly that is applied, or nothing
        :raises InvalidField: for names that nothing is known by
        :raises UnsafePlan: when a plan is unsafe and not forced, and the run is no dry one; nothing is applied then
        :raises PlanMoved: when *only* is not what is to be done any more
        """
        first, then, parts = self._works(zones, sources, targets, only)
        forced = _forced(force, (*first, *then))
        wanted: dict[str, Zone] = {}

        def planned(work: ZoneJob) -> list[TargetResult]:
            try:
                desired, is_empty = self._populated(work, wanted)
                for processor in work.processors:
                    desired = processor.process_source_zone(desired, work.sources, lenient=work.lenient)
            except Exception as error:
                why = zone_jobs.told(error, work.zone)
                return [TargetResult(work.zone, target.id, error=why) for target in work.targets]
            if work.is_wanted:
                wanted[work.zone] = desired
            # Each target: existing, both sides fitted and processed, difference, meta; then process_plan.
            return [self._part(work, target, desired, is_empty, work.zone in forced, only is not None)
                    for target in work.targets]

        for stage in (first, then):
            parts += [part for found in self._each(planned, stage) for part in found]
        parts.sort(key=lambda part: (-_depth(part.zone), part.zone))
        if only is not None:
            if any(part.error is not None for part in parts):
                return RunReport(parts, only.plan_id)
            parts = only.checked(parts)
        for output in self.setup.outputs:
            output.run(parts, self._out or sys.stdout)
        plan_id = only.plan_id if only is not None else self._keep(parts, store)
        if dry_run:
            return RunReport(parts, plan_id)
        for part in parts:
            if part.is_unsafe:
                raise part.dangers[0]
        outcome = RunReport(self._applied(parts), plan_id)
        if store is not None and plan_id is not None:
            store.settle(plan_id, PlanState.FAILED if outcome.failed else PlanState.APPLIED, stored_plan.why(outcome))
        return outcome

    def apply(self, plan_id: str, store: PlanStore, force: Collection[str] | bool = ()) -> RunReport:
        """Make exactly the changes of a stored plan, or none.

        A plan that was interrupted may be applied again: what was done already is seen and not done twice.  When a
        source or a target cannot be read, nothing is applied, the plan stays as it is, and the outcome says so.

        :param force: as for :meth:`sync`
        :raises PlanNotFound: when there is no such plan
        :raises PlanMoved: when it was applied already, is too old, or one of its two sides is not as it was
        :raises UnsafePlan: when it is unsafe and not forced; nothing is applied then, and it can be applied later
        """
        kept = stored_plan.opened(store.get(plan_id))
        try:
            kept.check_age(self.now())
            return self.sync(dry_run=False, force=force, store=store, only=kept)
        except PlanMoved as error:
            store.settle(kept.plan_id, PlanState.DROPPED, error.kwargs['why'])
            raise

    def zones(self) -> list[str]:
        """The names of all zones, in the order of the configuration; those that sources list after the others."""
        return list(self._resolve()[0])

    def get_zone(self, name: str) -> Zone:
        """An empty zone with the sub-zones and thresholds of the configuration.

        :raises InvalidField: when it is not configured
        """
        if self._settings is None:
            self._resolve()
        setting = zone_jobs.find(self._settings or {}, 'zone', name)
        return Zone(name, self._below.get(name, ()), setting.update_pcent_threshold, setting.delete_pcent_threshold)

    def dump(self, zone: str, sources: Collection[str] = (), lenient: bool = False) -> Zone:
        """A zone as its sources and processors make it.

        :param sources: ids of those to read, instead of the zone's own
        :param lenient: whether records that break a rule of zones are taken, also where the zone's setting says no
        :raises PoolError: when the zone is not configured, or a source cannot be read
        """
        settings = self._resolve()[0]
        setting = zone_jobs.find(settings, 'zone', zone)
        changed = dataclasses.replace(setting, lenient=setting.lenient or lenient)
        if sources:
            changed = dataclasses.replace(changed, alias=None, sources=tuple(sources))
        aliased = {} if changed.alias is None else {changed.alias: self.dump(changed.alias, lenient=lenient)}
        work = zone_jobs.work_of(self.setup, {**settings, zone: changed}, zone)
        desired, _ = self._populated(work, aliased)
        for processor in work.processors:
            desired = processor.process_source_zone(desired, work.sources, lenient=work.lenient)
        return desired

    def compare(self, a: Collection[str], b: Collection[str], zone: str) -> list[Change]:
        """What would have to change in *b* for a zone to be as it is in *a*, of what both can hold.

        :param a: ids of sources that are read into one zone; *b* likewise
        :raises PoolError: when the zone is not configured, or a source cannot be read
        """
        self.close()
        every = [zone_jobs.find(self.setup.providers, 'source', each) for each in (*a, *b)]
        sides = [self.get_zone(zone) for _ in range(2)]
        for side, ids in zip(sides, (a, b), strict=True):
            for each in ids:
                self.setup.providers[each].populate(side)
        return changes.between(sides[1], sides[0], supports=lambda rrset: all(each.supports(rrset) for each in every))

    def validate(self) -> list[str]:
        """What is wrong with the zones as their sources give them, a line for each; every source is read."""
        self.close()
        settings, failed = self._resolve()
        found = dict.fromkeys(f'zones.{part.zone}: {part.error}' for part in failed)

        def checked(name: str) -> str | None:
            try:
                zone_jobs.origin(settings, name)
                self.dump(name)
            except Exception as error:
                return f'zones.{name}: {zone_jobs.told(error, name)}'
            return None

        return [*found, *(line for line in self._each(checked, settings) if line is not None)]

    def close(self) -> None:
        """Let go of what the providers hold; they can be used again."""
        for provider in self.setup.providers.values():
            provider.close()

    def _works(self, zones: Collection[str], sources: Collection[str], targets: Collection[str],
               only: KeptPlan | None) -> tuple[list[ZoneJob], list[ZoneJob], list[TargetResult]]:
        """Zones from sources, zones that are aliases of those, and what has failed already."""
        # Some providers keep what they have read, and a run is about what is there now.
        self.close()
        settings, failed = self._resolve()
        if only is None:
            return *zone_jobs.select(self.setup, settings, zones, sources, targets), [] if zones else failed
        missing = sorted({f'{zone} is' for zone, _ in only.parts if zone not in settings}
                         | {f'{target} is' for _, target in only.parts if target not in self.setup.providers})
        if missing:
            raise PlanMoved(plan=only.plan_id, why=f'{missing[0]} not configured any more')
        return *zone_jobs.select(self.setup, settings, {zone for zone, _ in only.parts}, (), (), only.parts), []

    def _resolve(self) -> tuple[dict[str, ZoneSetting], list[TargetResult]]:
        """The zones there are now, asking the sources."""
        found, failed = zone_jobs.resolve(self.setup)
        self._settings, self._below = found, zone_jobs.sub_zones(found)
        return found, failed

    def _populated(self, work: ZoneJob, wanted: Mapping[str, Zone]) -> tuple[Zone, bool]:
        """What the sources give, or the zone that it is an alias of, all or nothing; whether that is nothing.

        :param wanted: zones that others are aliases of
        """
        zone = self.get_zone(work.zone)
        if work.setting.alias is not None:
            if work.setting.alias not in wanted:
                raise SourceError(source=work.setting.alias, why='it failed itself')
            _copy(wanted[work.setting.alias], zone, work.lenient)
            return zone, not has_contents(zone)
        below = zone.sub_zones
        if work.setting.ignore_subzone_adds:
            zone.sub_zones = frozenset()
        for source in work.sources:
            source.populate(zone, lenient=work.lenient)
        if work.setting.ignore_subzone_adds:
            zone.sub_zones = below
            _leave_out_below(zone)
        return zone, not has_contents(zone)

    def _part(self, work: ZoneJob, target: BaseProvider, desired: Zone, is_empty: bool, forced: bool,
              watch: bool) -> TargetResult:
        """
        :param watch: whether the part says what the target has
        """
        witness = _Witness()
        processors = (*work.processors, *self._policies(work, target), *((witness,) if watch else ()))
        try:
            plan = plan_for(target, desired, processors, work.sources, work.lenient)
            found = dangers(plan, is_empty) if plan is not None else ()
        except Exception as error:
            return TargetResult(work.zone, target.id, error=zone_jobs.told(error, f'{work.zone} on {target.id}'))
        return TargetResult(work.zone, target.id, plan, tuple(found), forced, work.setting.always_dry_run,
                            desired=desired if plan is not None or watch else None, existing=witness.existing)

    def _policies(self, work: ZoneJob, target: BaseProvider) -> Iterator[BaseProcessor]:
        """What the zone allows, and of that what the target allows."""
        of_zone = work.setting.policy or self.setup.policy
        of_target = self.setup.target_policies.get(target.id, ())
        if of_zone or of_target:
            yield PolicyProcessor('policy', policy=(*of_zone, *of_target))

    def _keep(self, parts: Sequence[TargetResult], store: PlanStore | None) -> str | None:
        plan = stored_plan.stored_plan(parts, self.now(), self.setup.plan_lifetime) if store is not None else None
        return store.put(plan).id if store is not None and plan is not None else None

    def _applied(self, parts: Sequence[TargetResult]) -> list[TargetResult]:
        """*parts* after applying what is due; targets at once where there are workers, the zones of one in order."""
        by_target: dict[str, list[TargetResult]] = {}
        for part in parts:
            if stored_plan.is_due(part):
                by_target.setdefault(part.target_id, []).append(part)
        done = [part for found in self._each(lambda group: [self._apply(part) for part in group], by_target.values())
                for part in found]
        found = {(part.zone, part.target_id): part for part in done}
        return [found.get((part.zone, part.target_id), part) for part in parts]

    def _apply(self, part: TargetResult) -> TargetResult:
        """Apply one part, whatever becomes of it."""
        assert part.plan is not None
        try:
            result = zone_jobs.find_target(self.setup, part.target_id).apply(part.plan)
        except Exception as error:
            why = zone_jobs.told(error, f'{part.zone} on {part.target_id}')
            return dataclasses.replace(part, error=why, result=ApplyResult(failed=len(part.plan.changes)))
        return dataclasses.replace(part, result=result)

    def _each(self, function: Callable[[Given], Found], things: Iterable[Given]) -> list[Found]:
        """What *function* gives for each of *things*, in their order; several at once where there are workers."""
        if self.setup.max_workers <= 1:
            return [function(each) for each in things]
        with concurrent.futures.ThreadPoolExecutor(self.setup.max_workers) as pool:
            return list(pool.map(function, things))


class _Witness(BaseProcessor):
    """Sees what a target has as it is compared, also when there is nothing to be done."""

    def __init__(self) -> None:
        super().__init__(id='witness')
        self.existing: Zone | None = None

    def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                        lenient: bool = False) -> tuple[Zone, Zone]:
        self.existing = existing
        return desired, existing


def _forced(force: Collection[str] | bool, chosen: Iterable[ZoneJob]) -> frozenset[str]:
    """
    :raises InvalidField: for a zone that the run is not about: forcing it is a mistake
    """
    if isinstance(force, bool):
        return frozenset(work.zone for work in chosen) if force else frozenset()
    if isinstance(force, str):
        raise InvalidField(field='force', why='names of zones are wanted, or True for all')
    names = frozenset(normal_name(each) for each in force)
    unknown = sorted(names - {work.zone for work in chosen if work.targets})
    if unknown:
        raise InvalidField(field='force', why=f'this run does not change {", ".join(unknown)}')
    return names


def _depth(name: str) -> int:
    """How many labels a name has."""
    return sum(1 for _ in parents(name))


def _copy(zone: Zone, alias: Zone, lenient: bool) -> None:
    """Have *alias* hold what *zone* does, at its own names; names in the data stay as they are."""
    for rrset in zone:
        alias.add_record(rrset._replace(name=rrset.name.removesuffix(zone.name) + alias.name), lenient=lenient)


def _leave_out_below(zone: Zone) -> None:
    for rrset in zone:
        if any(lies_in(rrset.name, each) and (rrset.name != each or rrset.type not in ('NS', 'DS'))
               for each in zone.sub_zones):
            zone.remove_record(rrset)
