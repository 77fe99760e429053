"""Sources and targets in memory that remember what was asked of them, a stored plan, and a configuration."""

from __future__ import annotations

import pathlib
import textwrap
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from designate_pool.errors import BadConfiguration, SourceError
from designate_pool.model import PlanState
from designate_pool.planner.config_file import read
from designate_pool.planner.engine import RunReport, Setup, SyncEngine, ZoneSetting
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.plan.plan_store import FolderStore
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.run_report import TargetResult
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from tests.unit.planner.values import ORIGIN, zone

BEFORE = 'www 300 A 192.0.2.1\nalias 300 A 192.0.2.2\nold 300 A 192.0.2.3\nsame 300 A 192.0.2.4'
AFTER = 'www 60 A 192.0.2.9\nalias 300 CNAME www.example.com.\nnew 300 TXT "a|b"\nsame 300 A 192.0.2.4'
CHANGES = 4


class Memory(BaseProvider):
    """A source and target that holds zones in memory, and writes its calls into a diary.

    :ivar fails_at: a change that fails when its turn comes: by number, of all that it ever makes
    :ivar extra: changes that every plan has besides; likewise *meta*
    """

    def __init__(self, id: str, diary: list[str] | None = None, **settings: Any) -> None:
        super().__init__(id, root_ns_warnings=False, **settings)
        self.zones: dict[str, Zone] = {}
        self.diary = diary if diary is not None else []
        self.broken: str | None = None
        self.made: list[str] = []
        self.fails_at: int | None = None
        self.extra: Sequence[changes.Change] = ()
        self.meta: Mapping[str, Any] | None = None
        self.before_apply: Callable[[Plan], object] = lambda plan: None
        self._lock = threading.Lock()

    def has(self, text: str, origin: str = ORIGIN) -> Memory:
        self.zones[origin] = zone(text, origin=origin, lenient=True)
        return self

    def list_zones(self) -> list[str]:
        if self.broken:
            raise SourceError(source=self.id, why=self.broken)
        return sorted(self.zones)

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        self.diary.append(f'{self.id}: populate {"existing" if target else "desired"} {zone.name}')
        assert not target or lenient and not len(zone)
        if zone.name in self.zones:
            for each in list(self.zones[zone.name])[:1 if self.broken else None]:
                zone.add_record(each, lenient=lenient)
        if self.broken:
            raise SourceError(source=self.id, why=self.broken)
        return zone.name in self.zones

    def _process_desired_zone(self, desired: Zone) -> Zone:
        self.diary.append(f'{self.id}: desired')
        return super()._process_desired_zone(desired)

    def _process_existing_zone(self, existing: Zone, desired: Zone, lenient: bool = False) -> Zone:
        self.diary.append(f'{self.id}: existing{" leniently" if lenient else ""}')
        return super()._process_existing_zone(existing, desired, lenient)

    def _include_change(self, change: changes.Change) -> bool:
        self.diary.append(f'{self.id}: include')
        return super()._include_change(change)

    def _extra_changes(self, existing: Zone, desired: Zone,
                       changes: Sequence[changes.Change]) -> Sequence[changes.Change]:
        self.diary.append(f'{self.id}: extra')
        return self.extra

    def _plan_meta(self, existing: Zone, desired: Zone, changes: Sequence[changes.Change]) -> Mapping[str, Any] | None:
        self.diary.append(f'{self.id}: meta')
        return self.meta

    def _apply(self, plan: Plan) -> ApplyResult | None:
        self.diary.append(f'{self.id}: apply {plan.zone}')
        self.before_apply(plan)
        there = self.zones.setdefault(plan.zone, Zone(plan.zone))
        for change in plan.changes:
            if self.fails_at == len(self.made):
                raise ConnectionError('the connection broke')
            # As a server would that is told twice: a change that does not fit is an error here.
            there = self.zones[plan.zone] = changes.apply(there, [change])
            self.made.append(str(change))
        return None


class Diarist(BaseProcessor):
    """A processor that changes nothing and writes down when it is called."""

    def __init__(self, id: str, diary: list[str]) -> None:
        super().__init__(id=id)
        self.diary = diary

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        self.diary.append(f'{self.id}: source zone from {len(sources)}{" leniently" if lenient else ""}')
        return desired

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        self.diary.append(f'{self.id}: target zone{" leniently" if lenient else ""}')
        return existing

    def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                        lenient: bool = False) -> tuple[Zone, Zone]:
        self.diary.append(f'{self.id}: both zones{" leniently" if lenient else ""}')
        return desired, existing

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        self.diary.append(f'{self.id}: plan {"None" if plan is None else len(plan.changes)}')
        return plan


class Showing:
    """An output that remembers what it was shown."""

    def __init__(self, diary: list[str] | None = None) -> None:
        self.id = 'showing'
        self.diary = diary if diary is not None else []
        self.shown: list[list[TargetResult]] = []

    def run(self, results: Sequence[TargetResult], file: Any, plan_id: str | None = None) -> None:
        self.diary.append('output')
        self.shown.append(list(results))


def manager(*providers: BaseSource, zones: dict[str, ZoneSetting] | None = None, **setup: Any) -> SyncEngine:
    """One that feeds example.com. from the first of *providers* to the others, unless told which zones there are."""
    ids = [each.id for each in providers]
    zones = zones if zones is not None else {ORIGIN: ZoneSetting(sources=(ids[0],), targets=tuple(ids[1:]))}
    return SyncEngine(Setup(zones=zones, providers={each.id: each for each in providers}, **setup))


@pytest.fixture
def store(tmp_path: pathlib.Path) -> FolderStore:
    return FolderStore(tmp_path / 'plans')


class StoredPlanCase:
    """Two targets to be brought from BEFORE to AFTER, and a plan for that in *store*."""

    def __init__(self, store: FolderStore, **setup: object) -> None:
        self.store = store
        self.source = Memory('source').has(AFTER)
        self.targets = [Memory(id).has(BEFORE) for id in ('a', 'b')]
        self.manager: SyncEngine = manager(self.source, *self.targets, **setup)
        self.plan_id = self.manager.sync(store=store).plan_id or ''

    def apply(self) -> RunReport:
        return self.manager.apply(self.plan_id, self.store)

    @property
    def state(self) -> PlanState:
        return self.store.get(self.plan_id).state

    @property
    def is_done(self) -> bool:
        return all(target.zones[ORIGIN] == self.source.zones[ORIGIN] for target in self.targets)


@pytest.fixture
def case(store: FolderStore) -> StoredPlanCase:
    return StoredPlanCase(store)


class Config:
    """A configuration file."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.path = folder / 'config.yaml'

    def read(self, text: str, **environ: str) -> Setup:
        self.path.write_text(textwrap.dedent(text))
        return read(self.path, environ)

    def mistakes(self, text: str, **environ: str) -> list[str]:
        with pytest.raises(BadConfiguration) as caught:
            self.read(text, **environ)
        lines = caught.value.kwargs['listing'].strip('\n').split('\n')
        assert caught.value.kwargs['count'] == len(lines)
        return [line.strip().replace(str(self.path), 'FILE') for line in lines]


@pytest.fixture
def config(tmp_path: pathlib.Path) -> Config:
    return Config(tmp_path)
