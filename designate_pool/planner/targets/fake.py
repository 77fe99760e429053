"""A simulated server with zones in memory: for tests, rehearsals and trying out configurations.

The behaviour of each operation is a word, the same in a configuration and in :meth:`SimulatedServer.behave`:
``succeed``; ``fail``, which a retry may help; ``refuse``, which no retry can; ``unreachable``; ``hang`` until the
timeout; ``lie``, which reports success and does nothing (reading a zone: an empty one).
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any

from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, InvalidField
from designate_pool.model import Reason
from designate_pool.planner import master
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import ServerProvider
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import fits, is_done
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.soa_rdata import serial_of

OPERATIONS = ('populate', 'apply', 'create', 'delete', 'list', 'ping')
_ERRORS: dict[str, tuple[type[BackendError], str]] = {
    'fail': (BackendError, 'the fake server fails, as configured'),
    'refuse': (BackendRefused, 'the fake server refuses, as configured'),
    'unreachable': (BackendUnreachable, 'the fake server cannot be reached, as configured'),
}
BEHAVIOURS = ('succeed', *_ERRORS, 'hang', 'lie')


class SimulatedServer:
    """Makes the operations of a fake driver or provider behave as configured; InvalidField for an unknown behaviour."""

    def __init__(self, behaviours: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._behaviours: dict[str, tuple[str, int | None]] = dict.fromkeys(behaviours, ('succeed', None))
        for operation, behaviour in behaviours.items():
            self.behave(operation, behaviour)

    def behave(self, operation: str, behaviour: str, times: int | None = None) -> None:
        """Set the behaviour of *operation*: for its next *times* calls, after which it succeeds, or for all."""
        for field, word, words in (('operation', operation, tuple(self._behaviours)),
                                   (f'on_{operation}', behaviour, BEHAVIOURS)):
            if word not in words:
                raise InvalidField(field=field, why=f"'{word}' is unknown; known are {', '.join(words)}")
        with self._lock:
            self._behaviours[operation] = (behaviour, times)

    def close(self) -> None:
        """End the calls that hang."""
        self._closed.set()
        self._closed = threading.Event()

    def act(self, operation: str, seconds: float) -> bool:
        """Behave as *operation* is configured, hanging for *seconds*; whether it is to have an effect."""
        with self._lock:
            behaviour, times = self._behaviours[operation]
            if times is not None:
                self._behaviours[operation] = (behaviour, times - 1) if times > 1 else ('succeed', None)
        if behaviour in _ERRORS:
            kind, why = _ERRORS[behaviour]
            raise kind(why=why)
        if behaviour == 'hang':
            self._closed.wait(seconds)
            raise BackendUnreachable(why=f'no answer within {seconds:g} s', reason=Reason.TIMEOUT)
        return behaviour == 'succeed'


class FakeProvider(ServerProvider):
    """A server in memory.

    :param zones: its zones at the start: text in zone file format, by zone name
    :param fail_after: the number of changes of each apply after which it fails; None for never
    :param timeout: seconds after which a call that hangs is given up
    :param settings: ``on_populate``, ``on_apply`` and so on for each of :data:`OPERATIONS`; those of
        :class:`~designate_pool.planner.providers.base.BaseProvider`
    :raises InvalidField: for unknown words
    :raises SourceError: for text that is not a zone
    """

    SUPPORTS_SOA = True

    def __init__(self, id: str, zones: Mapping[str, str] | None = None, makes_zones: bool = True,
                 fail_after: int | None = None, timeout: float = 10.0, **settings: Any) -> None:
        behaviours = {name: settings.pop(f'on_{name}', 'succeed') for name in OPERATIONS}
        super().__init__(id, **settings)
        self.timeout = timeout
        self.makes_zones = makes_zones
        self.fail_after = fail_after
        self._zones = {zone.name: zone for zone in (zone_of(name, text) for name, text in (zones or {}).items())}
        self._lock = threading.Lock()
        self._simulated = SimulatedServer(behaviours)
        self.behave = self._simulated.behave

    def zone(self, name: str) -> Zone | None:
        """A copy of the zone *name*; None when there is none."""
        with self._lock:
            held_zone = self._zones.get(name)
            return None if held_zone is None else held_zone.copy()

    def put(self, zone: Zone) -> None:
        """Replace the zone of the same name with a copy of *zone*."""
        with self._lock:
            self._zones[zone.name] = zone.copy()

    def close(self) -> None:
        self._simulated.close()

    def list_zones(self) -> list[str]:
        return sorted(self.zones(())[0])

    def create_zone(self, desired: Zone) -> None:
        if self._effective('create') and desired.name not in self._zones:
            if not self.makes_zones:
                raise BackendRefused(why=f'the fake server does not have the zone {desired.name}, and creates none')
            with self._lock:
                self._zones[desired.name] = desired.empty()

    def delete_zone(self, name: str) -> None:
        if self._effective('delete'):
            with self._lock:
                self._zones.pop(name, None)

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        if not self._effective('list'):
            return {}, True
        with self._lock:
            soas = {name: zone.get(name, 'SOA') for name, zone in self._zones.items()}
        return {name: None if soa is None else serial_of(soa) for name, soa in soas.items()}, True

    def ping(self) -> None:
        self._effective('ping')

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        truly = self._effective('populate')
        existing = self.zone(zone.name)
        if truly and existing is not None:
            zone.add_all(list(existing), lenient=lenient)
        return existing is not None

    def _apply(self, plan: Plan) -> ApplyResult | None:
        if not self._effective('apply'):
            return None
        with self._lock:
            zone = self._zones.get(plan.zone)
            if zone is None:
                raise BackendRefused(why=f'the fake server does not have the zone {plan.zone}')
            done, errors = 0, []
            for number, change in enumerate(plan.changes):
                if self.fail_after is not None and number >= self.fail_after:
                    errors.append(f'{change}: {_ERRORS["fail"][1]}')
                    break
                if is_done(zone, change):
                    done += 1
                elif fits(zone, change):
                    zone = self._zones[plan.zone] = changes.apply(zone, [change])
                    done += 1
                else:
                    errors.append(f'{change}: somebody else changed it meanwhile')
        return ApplyResult(done, len(errors), len(plan.changes) - done - len(errors), tuple(errors))

    def _effective(self, operation: str) -> bool:
        """Behave as configured; whether it is to have an effect."""
        return self._simulated.act(operation, self.timeout)


def zone_of(name: str, text: str) -> Zone:
    """The zone *name* in *text*, in zone file format; else SourceError."""
    zone = Zone(name)
    zone.add_pairs(master.read(text, zone.name, f'{zone.name} of a fake server', require_soa=False), lenient=True)
    return zone
