"""octoDNS, for :mod:`benchmarks.plan_one`."""

from __future__ import annotations

import logging
import pathlib
from typing import Any

from octodns.provider.base import BaseProvider
from octodns.record import Record
from octodns.zone import Zone
from octodns_bind import ZoneFileSource  # type: ignore[import-untyped]

from benchmarks.plan_data import ZONE
from benchmarks.plan_one import Clock, Found

# As its manager does when the configuration says nothing of it.
Record.enable_validators(('legacy',))


class Noop(BaseProvider):
    """A provider whose zone is that of a folder, and is never changed."""

    SUPPORTS = frozenset(Record.registered_types())
    SUPPORTS_ROOT_NS = True
    SUPPORTS_GEO = SUPPORTS_DYNAMIC = False

    def __init__(self, folder: pathlib.Path, clock: Clock) -> None:
        self.log = logging.getLogger('noop')
        super().__init__('noop')
        self._folder = folder
        self._clock = clock

    def populate(self, zone: Any, target: bool = False, lenient: bool = False) -> bool:
        with self._clock.populating():
            ZoneFileSource('files', str(self._folder)).populate(zone, lenient=lenient)
        return True


def changes(folder: pathlib.Path, clock: Clock) -> Found:
    """Those between the zone files of two sides, which octodns-bind reads to zones."""
    desired = Zone(ZONE, [])
    with clock.populating():
        ZoneFileSource('files', str(folder / 'desired')).populate(desired)
    plan = Noop(folder / 'existing', clock).plan(desired)
    return [(type(change).__name__, change.record.fqdn, change.record._type) for change in plan.changes]
