"""Our planner, in the ways that :mod:`benchmarks.plan` measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.plan_clock import Clock, Found, Place
from benchmarks.plan_data import TTL, ZONE
from designate_pool.planner.providers.base import BaseProvider, BaseSource
from designate_pool.planner.sources.zonefile import ZoneFileSource
from designate_pool.planner.targets.yaml_target import YamlProvider
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import rrset


class Noop(BaseProvider):
    """A provider whose zone is what *populate* fills it with, and that is never changed."""

    SUPPORTS_SOA = True

    def __init__(self, populate: Callable[[Zone, bool], object]) -> None:
        super().__init__('noop')
        self._fill = populate

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        self._fill(zone, lenient)
        return True


def files(place: Place, clock: Clock) -> Found:
    """Zone files, read to zones."""
    return _by_sources(place, clock, lambda side: ZoneFileSource(side, str(place.folder / side)))


def yaml(place: Place, clock: Clock) -> Found:
    """octoDNS's YAML, read to zones."""
    return _by_sources(place, clock, lambda side: YamlProvider(side, str(place.folder / side)))


def records(place: Place, clock: Clock) -> Found:
    """RRsets made and added one by one."""
    def fill(side: str, zone: Zone, lenient: bool) -> None:
        for each in place.sets(side):
            zone.add_record(rrset(each.name, each.type, TTL, each.values), lenient=lenient)

    return _planned(clock, fill)


def _by_sources(place: Place, clock: Clock, source: Callable[[str], BaseSource]) -> Found:
    return _planned(clock, lambda side, zone, lenient: source(side).populate(zone, lenient=lenient))


def _planned(clock: Clock, fill: Callable[[str, Zone, bool], object]) -> Found:
    def populate(side: str, zone: Zone, lenient: bool) -> None:
        with clock.populating():
            fill(side, zone, lenient)

    desired = Zone(ZONE)
    populate('desired', desired, False)
    plan = Noop(lambda zone, lenient: populate('existing', zone, lenient)).plan(desired)
    return _told(plan.changes if plan is not None else ())


def _told(changes: Sequence[Change]) -> Found:
    return [(change.kind, change.name, change.record.type) for change in changes]
