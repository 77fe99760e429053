"""octoDNS, in the ways that :mod:`benchmarks.plan` measures."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from octodns.provider.base import BaseProvider
from octodns.provider.yaml import YamlProvider
from octodns.record import Record
from octodns.zone import Zone
from octodns_bind import ZoneFileSource  # type: ignore[import-untyped]

from benchmarks.plan_clock import Clock, Found, Place
from benchmarks.plan_data import TTL, ZONE, Set

# As its manager does when the configuration says nothing of it.
Record.enable_validators(('legacy',))


class Noop(BaseProvider):
    """A provider whose zone is what *populate* fills it with, and that is never changed."""

    SUPPORTS = frozenset(Record.registered_types())
    SUPPORTS_ROOT_NS = True
    SUPPORTS_GEO = SUPPORTS_DYNAMIC = False

    def __init__(self, populate: Callable[[Any, bool], object]) -> None:
        self.log = logging.getLogger('noop')
        super().__init__('noop')
        self._fill = populate

    def populate(self, zone: Any, target: bool = False, lenient: bool = False) -> bool:
        self._fill(zone, lenient)
        return True


def files(place: Place, clock: Clock) -> Found:
    """Zone files, read to zones by octodns-bind."""
    return _by_sources(place, clock, lambda side: ZoneFileSource(side, str(place.folder / side)))


def yaml(place: Place, clock: Clock) -> Found:
    """Its YAML, read to zones."""
    return _by_sources(place, clock, lambda side: YamlProvider(side, str(place.folder / side)))


def records(place: Place, clock: Clock) -> Found:
    """Records made and added one by one."""
    def fill(side: str, zone: Any, lenient: bool) -> None:
        for each in place.sets(side):
            name = zone.hostname_from_fqdn(each.name)
            zone.add_record(Record.new(zone, name, _data(each), lenient=lenient), lenient=lenient)

    return _planned(clock, fill)


def _by_sources(place: Place, clock: Clock, source: Callable[[str], Any]) -> Found:
    return _planned(clock, lambda side, zone, lenient: source(side).populate(zone, lenient=lenient))


def _planned(clock: Clock, fill: Callable[[str, Any, bool], object]) -> Found:
    def populate(side: str, zone: Any, lenient: bool) -> None:
        with clock.populating():
            fill(side, zone, lenient)

    desired = Zone(ZONE, [])
    populate('desired', desired, False)
    plan = Noop(lambda zone, lenient: populate('existing', zone, lenient)).plan(desired)
    return [(type(change).__name__, change.record.fqdn, change.record._type) for change in plan.changes]


def _data(each: Set) -> dict[str, Any]:
    """*each* as octoDNS's records are made from."""
    values: list[Any] = list(each.values)
    if each.type == 'MX':
        values = [dict(zip(('preference', 'exchange'), value.split())) for value in each.values]
    elif each.type == 'TXT':
        values = [value.strip('"') for value in each.values]
    return {'type': each.type, 'ttl': TTL, **({'value': values[0]} if len(values) == 1 else {'values': values})}
