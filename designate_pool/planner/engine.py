"""The engine: reads sources, makes plans, applies them to targets.

:meth:`SyncEngine.sync` does one run.  If any plan is unsafe and not forced, nothing is applied to any target, but in
a loop.  A zone that cannot be read or planned is reported as failed; the other zones are not affected.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import fnmatch
import logging
import pathlib
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TextIO, TypeVar

from designate_pool.errors import BackendError, InvalidField, PlanMoved, PoolError, SourceError
from designate_pool.model import PlanState, utcnow
from designate_pool.planner import validators
from designate_pool.planner.outputs import BaseOutput
from designate_pool.planner.plan import stored_plan
from designate_pool.planner.plan.plan import ApplyResult
from designate_pool.planner.plan.plan_store import PlanStore
from designate_pool.planner.plan.safety import dangers, has_contents
from designate_pool.planner.plan.stored_plan import LoadedPlan
from designate_pool.planner.processors.rules import PolicyProcessor
from designate_pool.planner.providers.base import (BaseProcessor, BaseProvider, BaseSource, ExistingRecorder, plan_for,
                                                   without_octodns)
from designate_pool.planner.run_report import RunReport, TargetResult, raise_if_unsafe
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import normal_name, parents

LOG = logging.getLogger(__name__)
Item = TypeVar('Item')
Result = TypeVar('Result')


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneSetting:
    """The settings of one zone, or of the zones that its sources list.

    :ivar targets: ids of providers; empty for an alias that has those of its original
    :ivar processors: ids; they run between the first and the last processors of :class:`Setup`
    :ivar warnings: ids of octoDNS's validators whose warnings are told
    :ivar alias: the zone whose records this one copies, instead of sources
    :ivar policy: see :mod:`designate_pool.planner.plan.policy`; empty for that of :class:`Setup`
    :ivar ignore_subzone_adds: records of sub-zones in a source are ignored instead of an error
    :ivar glob: of a setting for many zones: a shell pattern for their names
    :ivar regex: of a setting for many zones: a regular expression that is searched for in their names
    """

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    processors: tuple[str, ...] = ()
    lenient: bool = False
    warnings: frozenset[str] = frozenset()
    alias: str | None = None
    update_pcent_threshold: float | None = None
    delete_pcent_threshold: float | None = None
    policy: tuple[str, ...] = ()
    always_dry_run: bool = False
    ignore_subzone_adds: bool = False
    glob: str | None = None
    regex: re.Pattern[str] | None = None

    def is_for(self, name: str) -> bool:
        """Whether a setting for many zones is for that of this name."""
        if self.glob is not None:
            return fnmatch.fnmatchcase(name, self.glob)
        return self.regex is None or self.regex.search(name) is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Setup:
    """
    :ivar zones: by name; a name that begins with ``*`` is for all zones that its sources list and no other name matches
    :ivar first_processors: ids of processors that run before those of each zone
    :ivar last_processors: ids of processors that run after those of each zone
    :ivar policy: for zones without their own; empty for ``sync``
    :ivar target_policies: by target; they apply in addition to the zone's
    :ivar max_workers: how many zones are planned, and targets changed, in parallel
    :ivar plan_lifetime: how long a stored plan can be applied
    :ivar plans: the folder where plans are stored; None for the pool
    """

    zones: Mapping[str, ZoneSetting]
    providers: Mapping[str, BaseSource]
    processors: Mapping[str, BaseProcessor] = dataclasses.field(default_factory=dict)
    outputs: Sequence[BaseOutput] = ()
    first_processors: tuple[str, ...] = ()
    last_processors: tuple[str, ...] = ()
    policy: tuple[str, ...] = ()
    target_policies: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    max_workers: int = 1
    plan_lifetime: timedelta = timedelta(days=1)
    plans: str | None = None
    included: tuple[pathlib.Path, ...] = ()


Settings = Mapping[str, ZoneSetting]


class SyncEngine:
    """
    :param out: where outputs without a file of their own write to; standard output by default
    :param now: the time, aware and in UTC
    """

    def __init__(self, setup: Setup, out: TextIO | None = None, now: Callable[[], datetime] = utcnow) -> None:
        self.setup = setup
        self.now = now
        self._out = out
        self._settings: dict[str, ZoneSetting] | None = None
        self._sub_zones: dict[str, list[str]] = {}

    def sync(self, zones: Collection[str] = (), sources: Collection[str] = (), targets: Collection[str] = (), *,
             dry_run: bool = True, force: Collection[str] | bool = (), store: PlanStore | None = None,
             only: LoadedPlan | None = None, skip_unsafe: bool = False) -> RunReport:
        """One run: make the plans, show them, and apply them unless it is a dry run.

        :param zones: only these zones; empty for all
        :param sources: only zones that have one of these sources; empty for all
        :param force: names of zones that may be changed in spite of dangers, in this run; True for all of them
        :param store: where the plan is stored, to be applied later; when a stored plan is applied, where the result
            is recorded
        :param only: a stored plan: exactly its changes are applied, or none
        :param skip_unsafe: whether the other plans are applied when one is unsafe and not forced
        :raises InvalidField: for an unknown name
        :raises UnsafePlan: when a plan is unsafe and not forced, unless it is a dry run or *skip_unsafe*; nothing is
            applied then
        :raises PlanMoved: when *only* is no longer what has to be done
        """
        jobs, results = self._jobs(zones, sources, targets, only)
        if only is not None and results:
            return RunReport(results, only.plan_id)
        forced = _forced_zones(force, jobs)
        aliases = [job for job in jobs if job.setting.alias is not None]
        alias_contents: dict[str, Zone] = {}

        def plan(job: ZoneJob) -> list[TargetResult]:
            try:
                desired, is_empty = self._desired(job, alias_contents)
            except Exception as error:
                why = log_error(error, job.zone)
                return [TargetResult(job.zone, target.id, error=why) for target in job.targets]
            if any(alias.setting.alias == job.zone for alias in aliases):
                alias_contents[job.zone] = desired
            return [self._plan_target(job, target, desired, is_empty, job.zone in forced, only is not None)
                    for target in job.targets]

        for stage in ([job for job in jobs if job.setting.alias is None], aliases):
            results += [result for planned in self._map(plan, stage) for result in planned]
        results.sort(key=lambda result: (-sum(1 for _ in parents(result.zone)), result.zone))
        if only is not None:
            if any(result.error is not None for result in results):
                return RunReport(results, only.plan_id)
            results = only.remaining(results)
        plan_id, expires_at = (None, None) if only is None else (only.plan_id, only.expires_at)
        if only is None and store is not None:
            new_plan = stored_plan.new_stored_plan(results, self.now(), self.setup.plan_lifetime)
            if new_plan is not None:
                kept = stored_plan.same_plan(new_plan, store.find(PlanState.STORED), store.get) or store.put(new_plan)
                plan_id, expires_at = kept.id, kept.expires_at
        for output in self.setup.outputs:
            output.run(results, self._out or sys.stdout, plan_id)
        if dry_run:
            return RunReport(results, plan_id, expires_at)
        if not skip_unsafe:
            raise_if_unsafe(results)
        report = RunReport(self._apply_all(results), plan_id)
        if store is not None and plan_id is not None:
            try:
                store.settle(plan_id, PlanState.FAILED if report.failed else PlanState.APPLIED,
                             stored_plan.failure_text(report))
            except (PoolError, OSError) as error:  # dropped meanwhile, for one; what was applied is still told
                log_error(error, f'plan {plan_id}: its end is not recorded')
        return report

    def apply(self, plan_id: str, store: PlanStore, force: Collection[str] | bool = ()) -> RunReport:
        """Make exactly the changes of a stored plan, or none.

        An interrupted plan may be applied again: changes that were already made are recognised and not repeated.  When
        a source or a target cannot be read, nothing is applied, the plan stays as it is, and the report says so.  The
        report also has, as failed, the zones that could not be planned when the plan was made.

        :param force: as for :meth:`sync`
        :raises PlanNotFound: when there is no such plan
        :raises PlanMoved: when it was applied already, has expired, or one of its two sides has changed
        :raises UnsafePlan: when it is unsafe and not forced; nothing is applied then, and it can be applied later
        """
        plan = stored_plan.load(store.get(plan_id))
        try:
            if plan.expires_at is not None and plan.expires_at <= self.now():
                raise PlanMoved(plan=plan.plan_id, why='it could be applied until '
                                                       f'{plan.expires_at:%Y-%m-%d %H:%M:%S} UTC')
            report = self.sync(dry_run=False, force=force, store=store, only=plan)
            return dataclasses.replace(report, results=[*report.results, *plan.failed])
        except PlanMoved as error:
            store.settle(plan.plan_id, PlanState.DROPPED, error.kwargs['why'])
            raise

    def zones(self, is_complete: bool = False) -> list[str]:
        """The names of all zones, in the order of the configuration; those that sources list after the others.

        :param is_complete: whether a source that cannot list its zones is an error
        :raises SourceError: for such a source
        """
        settings, failed = self._resolve(is_logged=False)
        if is_complete and failed:
            raise SourceError(source=f'the list of zones {failed[0].zone}', why=failed[0].error)
        return list(settings)

    def get_zone(self, name: str) -> Zone:
        """An empty zone with the sub-zones and thresholds of its configuration; InvalidField without one."""
        if self._settings is None:
            self._resolve(is_logged=False)
        setting = find(self._settings or {}, 'zone', name)
        return Zone(name, self._sub_zones.get(name, ()), setting.update_pcent_threshold, setting.delete_pcent_threshold)

    def dump(self, zone: str, sources: Collection[str] = (), lenient: bool = False) -> Zone:
        """A zone as its sources and processors make it.

        :raises PoolError: when the zone is not configured, or a source cannot be read
        """
        settings = self._resolve(is_logged=False)[0]
        setting = find(settings, 'zone', zone)
        setting = dataclasses.replace(setting, lenient=setting.lenient or lenient)
        if sources:
            setting = dataclasses.replace(setting, alias=None, sources=tuple(sources))
        aliased = {} if setting.alias is None else {setting.alias: self.dump(setting.alias, lenient=lenient)}
        return self._desired(make_job(self.setup, zone, setting), aliased)[0]

    def compare(self, a: Collection[str], b: Collection[str], zone: str) -> list[Change]:
        """The changes that would make a zone in *b* equal to that in *a*, in what both can hold.

        :param a: ids of sources that are read into one zone; *b* likewise
        :raises PoolError: when the zone is not configured, or a source cannot be read
        """
        self.close()
        compared = [find(self.setup.providers, 'source', id_) for id_ in (*a, *b)]
        sides = [self.get_zone(zone) for _ in range(2)]
        for side, ids in zip(sides, (a, b), strict=True):
            for source in ids:
                with _reading(self.setup.providers[source]):
                    self.setup.providers[source].populate(side)
            if not all(source.SUPPORTS_OCTODNS for source in compared):
                for rrset in side.of_types((), with_extras=True):
                    without_octodns(side, rrset)
        return changes.between(sides[1], sides[0],
                               supports=lambda rrset: all(source.supports(rrset) for source in compared))

    def validate(self) -> list[str]:
        """The errors of all zones as their sources give them, a line for each; every source is read."""
        self.close()
        settings, failed = self._resolve()
        errors = dict.fromkeys(f'zones.{result.zone}: {result.error}' for result in failed)

        def check(name: str) -> str | None:
            try:
                contents_setting(settings, name)
                self.dump(name)
            except Exception as error:
                return f'zones.{name}: {log_error(error, name)}'
            return None

        return [*errors, *(line for line in self._map(check, settings) if line is not None)]

    def close(self) -> None:
        """Close what the providers hold open; they can be used again."""
        for provider in self.setup.providers.values():
            provider.close()

    def _jobs(self, zones: Collection[str], sources: Collection[str], targets: Collection[str],
              only: LoadedPlan | None) -> tuple[list[ZoneJob], list[TargetResult]]:
        """The jobs, and what has already failed."""
        self.close()  # some providers cache what they read, and a run needs the current state
        is_configured = bool(zones) and all(normal_name(zone) in self.setup.zones for zone in zones)
        settings, failed = self._resolve(is_logged=not is_configured)
        if only is None:
            return select(self.setup, settings, zones, sources, targets), [] if zones else failed
        absent = {f'{zone} is' for zone, _ in only.changes if zone not in settings}
        if absent and failed:  # they may be in a list that cannot be read
            return [], failed
        missing = sorted(absent | {f'{target} is' for _, target in only.changes if target not in self.setup.providers})
        if missing:
            raise PlanMoved(plan=only.plan_id, why=f'{missing[0]} not configured any more')
        return select(self.setup, settings, {zone for zone, _ in only.changes}, (), (), only.changes), []

    def _resolve(self, is_logged: bool = True) -> tuple[dict[str, ZoneSetting], list[TargetResult]]:
        """Every zone by name, including those that sources list; a failed result for each list that cannot be read."""
        settings = {name: setting for name, setting in self.setup.zones.items() if not name.startswith('*')}
        failed: list[TargetResult] = []
        listed: dict[str, frozenset[str]] = {}
        for pattern, setting in self.setup.zones.items():
            if not pattern.startswith('*'):
                continue
            try:
                for source in setting.sources:
                    if source not in listed:
                        provider = find(self.setup.providers, 'source', source)
                        with _reading(provider):
                            listed[source] = frozenset(map(normal_name, provider.list_zones()))
            except Exception as error:
                why = log_error(error, f'the zones of {pattern}') if is_logged else str(error)
                failed += [TargetResult(pattern, target, error=why) for target in setting.targets]
                continue
            names = frozenset[str]().union(*(listed[source] for source in setting.sources))
            settings.update((name, setting) for name in sorted(names - settings.keys()) if setting.is_for(name))
        self._settings, self._sub_zones = settings, sub_zones(settings)
        return settings, failed

    def _desired(self, job: ZoneJob, alias_contents: Mapping[str, Zone]) -> tuple[Zone, bool]:
        """The zone from its sources or its alias, processed; and whether it was empty before the processors."""
        zone = self.get_zone(job.zone)
        if job.setting.alias is not None:
            if job.setting.alias not in alias_contents:
                raise SourceError(source=job.setting.alias, why='it failed itself')
            original = alias_contents[job.setting.alias]
            for rrset in original:  # names in the data are not changed
                name = rrset.name.removesuffix(original.name) + zone.name
                zone.add_record(rrset._replace(name=name), lenient=job.setting.lenient)
        else:
            self._read_sources(job, zone)
        is_empty = not has_contents(zone)
        for processor in job.processors:
            zone = processor.process_source_zone(zone, job.sources, lenient=job.setting.lenient)
        for violation in validators.warnings(zone, job.setting.warnings):
            LOG.warning('%s: %s', zone.name, violation)
        return zone, is_empty

    def _read_sources(self, job: ZoneJob, zone: Zone) -> None:
        sub_zones = zone.sub_zones
        if job.setting.ignore_subzone_adds:
            zone.sub_zones = frozenset()
        for source in job.sources:
            with _reading(source):
                source.populate(zone, lenient=job.setting.lenient)
        zone.sub_zones = sub_zones
        for rrset in zone if job.setting.ignore_subzone_adds else ():
            if zone.sub_zone_of(rrset.name, rrset.type) is not None:
                zone.remove_record(rrset)

    def _plan_target(self, job: ZoneJob, target: BaseProvider, desired: Zone, is_empty: bool, forced: bool,
                     keep_zones: bool) -> TargetResult:
        """Plan one target; *keep_zones* keeps both zones in the result even if there is nothing to do."""
        recorder = ExistingRecorder('existing')
        # A change must be allowed by the zone's policy and by the target's.
        policy = (*(job.setting.policy or self.setup.policy), *self.setup.target_policies.get(target.id, ()))
        processors = [*job.processors, *([PolicyProcessor('policy', policy)] if policy else []),
                      *([recorder] if keep_zones else [])]
        try:
            plan = plan_for(target, desired, processors, job.sources, job.setting.lenient)
            plan_dangers = dangers(plan, is_empty) if plan is not None else ()
        except Exception as error:
            return TargetResult(job.zone, target.id, error=log_error(error, f'{job.zone} on {target.id}'))
        return TargetResult(job.zone, target.id, plan, tuple(plan_dangers), forced, job.setting.always_dry_run,
                            desired=desired if plan is not None or keep_zones else None, existing=recorder.compared)

    def _apply_all(self, results: Sequence[TargetResult]) -> list[TargetResult]:
        """Apply what is due: targets in parallel where there are workers, the zones of one target in order."""
        by_target: dict[str, list[TargetResult]] = {}
        for result in results:
            if stored_plan.needs_apply(result) and not result.is_unsafe:
                by_target.setdefault(result.target_id, []).append(result)
        groups = self._map(lambda group: [self._apply(result) for result in group], by_target.values())
        applied = {(result.zone, result.target_id): result for group in groups for result in group}
        return [applied.get((result.zone, result.target_id), result) for result in results]

    def _apply(self, planned: TargetResult) -> TargetResult:
        """Apply one plan; an error becomes part of the result."""
        assert planned.plan is not None
        try:
            result = find_target(self.setup, planned.target_id).apply(planned.plan)
        except Exception as error:
            why = log_error(error, f'{planned.zone} on {planned.target_id}')
            return dataclasses.replace(planned, error=why, result=ApplyResult(failed=len(planned.plan.changes)))
        return dataclasses.replace(planned, result=result)

    def _map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results of *function* in the order of *items*; in parallel where there are workers."""
        if self.setup.max_workers <= 1:
            return [function(item) for item in items]
        with concurrent.futures.ThreadPoolExecutor(self.setup.max_workers) as pool:
            return list(pool.map(function, items))


@contextlib.contextmanager
def _reading(source: BaseSource) -> Iterator[None]:
    """Raise the errors of a server as those of the source that it is: a target may be such a server, too."""
    try:
        yield
    except (BackendError, OSError) as error:
        why = str(error).rstrip('.') or type(error).__name__
        raise SourceError(source=source.id, why=why) from error


def _forced_zones(force: Collection[str] | bool, jobs: Iterable[ZoneJob]) -> frozenset[str]:
    """The names of zones to force; InvalidField for one outside the run, since forcing it is a mistake."""
    if isinstance(force, bool):
        return frozenset(job.zone for job in jobs) if force else frozenset()
    if isinstance(force, str):
        raise InvalidField(field='force', why='must be a list of zone names, or True for all')
    names = frozenset(normal_name(name) for name in force)
    unknown = sorted(names - {job.zone for job in jobs if job.targets})
    if unknown:
        raise InvalidField(field='force', why=f'this run does not change {", ".join(unknown)}')
    return names


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneJob:
    """One zone of a run.

    :ivar sources: empty for an alias
    :ivar targets: empty when the zone is read for its aliases alone
    """

    zone: str
    setting: ZoneSetting
    sources: tuple[BaseSource, ...]
    processors: tuple[BaseProcessor, ...]
    targets: tuple[BaseProvider, ...]


def select(setup: Setup, settings: Settings, zones: Collection[str], sources: Collection[str],
           targets: Collection[str], pairs: Collection[tuple[str, str]] | None = None) -> list[ZoneJob]:
    """The jobs of a run, with the zones that others of it are aliases of.

    :param sources: only zones that have one of these sources (all their sources are read); empty for all
    :param pairs: only these zones on these targets; None for all
    :raises InvalidField: for an unknown name, or an alias of an alias or of an unknown zone
    """
    names = list(dict.fromkeys(normal_name(zone) for zone in zones)) or list(settings)
    _check_known('zones', names, settings)
    _check_known('sources', sources, setup.providers)
    _check_known('targets', targets, setup.providers)
    chosen: dict[str, list[str]] = {}
    for name in names:
        original = contents_setting(settings, name)
        ids = [target for target in settings[name].targets or original.targets
               if (not targets or target in targets) and (pairs is None or (name, target) in pairs)]
        if ids and (not sources or set(sources) & set(original.sources)):
            chosen[name] = ids
    aliased = {settings[name].alias for name in chosen}
    return [make_job(setup, name, setting, chosen.get(name, ())) for name, setting in settings.items()
            if name in chosen or name in aliased]


def contents_setting(settings: Settings, name: str) -> ZoneSetting:
    """The setting of the zone from which *name* gets its records: its own, or that of the zone it is an alias of."""
    alias = settings[name].alias
    if alias is None:
        return settings[name]
    if alias not in settings:
        raise InvalidField(field=name, why=f'it is an alias of {alias}, and there is no such zone')
    if settings[alias].alias is not None:
        raise InvalidField(field=name, why=f'it is an alias of {alias}, which is an alias itself')
    return settings[alias]


def make_job(setup: Setup, name: str, setting: ZoneSetting, targets: Sequence[str] = ()) -> ZoneJob:
    """The job of the zone *name*; InvalidField for an unknown id of a source, processor or target."""
    processors = (*setup.first_processors, *setting.processors, *setup.last_processors)
    sources = () if setting.alias else setting.sources
    return ZoneJob(name, setting, tuple(find(setup.providers, 'source', source) for source in sources),
                   tuple(find(setup.processors, 'processor', processor) for processor in processors),
                   tuple(find_target(setup, target) for target in targets))


def sub_zones(names: Collection[str]) -> dict[str, list[str]]:
    """For each of *names* that has others below it, those."""
    below: dict[str, list[str]] = {}
    for name in names:
        for above in parents(name):
            if above in names:
                below.setdefault(above, []).append(name)
    return below


def find(items: Mapping[str, Item], what: str, id: str) -> Item:
    """The item with *id*, or InvalidField."""
    if id not in items:
        raise InvalidField(field=what, why=f'there is no {id}')
    return items[id]


def find_target(setup: Setup, id: str) -> BaseProvider:
    """The provider with *id*, as a target; InvalidField for an unknown or a read-only one."""
    provider = find(setup.providers, 'target', id)
    if not isinstance(provider, BaseProvider):
        raise InvalidField(field='target', why=f'{id} can only be read from')
    return provider


def log_error(error: Exception, what: str) -> str:
    """Log *error*, with its traceback if it is unexpected, and return it as text."""
    if not isinstance(error, (PoolError, OSError)):
        LOG.error('%s: an unexpected error', what, exc_info=error)
        return f'{type(error).__name__}: {error}'
    LOG.error('%s: %s', what, ' '.join(str(error).split()))
    return str(error) or type(error).__name__


def _check_known(field: str, ids: Collection[str], known: Collection[str]) -> None:
    unknown = sorted(set(ids) - set(known))
    if unknown:
        raise InvalidField(field=field, why=f'there is no {" and no ".join(unknown)} in the configuration')
