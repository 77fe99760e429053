"""Our planner, for :mod:`benchmarks.plan_one`."""

from __future__ import annotations

import pathlib

from benchmarks.plan_data import ZONE
from benchmarks.plan_one import Clock, Found
from designate_pool.planner.providers.base import BaseProvider
from designate_pool.planner.sources.zonefile import ZoneFileSource
from designate_pool.planner.zone.zone import Zone


class Noop(BaseProvider):
    """A provider whose zone is that of a folder, and is never changed."""

    SUPPORTS_SOA = True

    def __init__(self, folder: pathlib.Path, clock: Clock) -> None:
        super().__init__('noop')
        self._folder = folder
        self._clock = clock

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        with self._clock.populating():
            ZoneFileSource('files', str(self._folder)).populate(zone, lenient=lenient)
        return True


def changes(folder: pathlib.Path, clock: Clock) -> Found:
    """Those between the zone files of two sides, which are read to zones."""
    desired = Zone(ZONE)
    with clock.populating():
        ZoneFileSource('files', str(folder / 'desired')).populate(desired)
    plan = Noop(folder / 'existing', clock).plan(desired)
    return [(change.kind, change.name, change.record.type) for change in (plan.changes if plan is not None else ())]
