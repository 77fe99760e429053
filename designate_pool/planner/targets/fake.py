"""A server that is not there: zones in memory, for tests, rehearsals and trying out configurations.

What an operation does is a word, the same in a configuration and in :meth:`FakeProvider.behave`: ``succeed``; ``fail``,
which a retry may mend; ``refuse``, which none can; ``unreachable``; ``hang`` until the time is up; ``lie``, which says
success and does nothing (of a zone that is read: that it is empty).
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, InvalidField
from designate_pool.model import Reason
from designate_pool.planner import master
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import ServerProvider
from designate_pool.planner.targets.change_state import fits, is_done
from designate_pool.planner.transfer_in import unread
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.soa_rdata import serial_of

BEHAVIOURS = ('succeed', 'fail', 'refuse', 'unreachable', 'hang', 'lie')
OPERATIONS = ('populate', 'apply', 'create', 'delete', 'list', 'ping')
#: What it can be told to support, and whether it does by itself.
SUPPORTED = {'soa': True, 'root_ns': True, 'multivalue_ptr': True, 'geo': False, 'dynamic': False,
             'pool_value_status': False, 'dynamic_subnets': False}
_ERRORS: dict[str, tuple[type[BackendError], str]] = {
    'fail': (BackendError, 'the fake server fails, as it was told to'),
    'refuse': (BackendRefused, 'the fake server refuses, as it was told to'),
    'unreachable': (BackendUnreachable, 'the fake server cannot be reached, as it was told'),
}


@dataclasses.dataclass(frozen=True, slots=True)
class ProviderCall:
    """One call that the server got; *zone* is empty where it was about none."""

    operation: str
    zone: str = ''


class FakeProvider(ServerProvider):
    """
    :param zones: what it has at first: text as in a zone file, by the zone's name
    :param makes_zones: whether it makes a zone that it does not have
    :param fail_after: how many changes each apply makes before it fails; None for all
    :param timeout: seconds after which what hangs is given up
    :param supports: the types that it can hold; None for all
    :param settings: ``supports_soa``, ``supports_root_ns`` and so on for each of :data:`SUPPORTED`;
        ``on_populate``, ``on_apply`` and so on for each of :data:`OPERATIONS`; those of
        :class:`~designate_pool.planner.providers.base.BaseProvider`
    :ivar calls: every call so far, in order
    :raises InvalidField: for words that are not known
    :raises SourceError: for a text that is no zone
    """

    def __init__(self, id: str, zones: Mapping[str, str] | None = None, makes_zones: bool = True,
                 fail_after: int | None = None, timeout: float = 10.0, supports: Collection[str] | None = None,
                 **settings: Any) -> None:
        flags = {name: bool(settings.pop(f'supports_{name}', default)) for name, default in SUPPORTED.items()}
        behaviours = {name: settings.pop(f'on_{name}', 'succeed') for name in OPERATIONS}
        super().__init__(id, **settings)
        vars(self).update({f'SUPPORTS_{name.upper()}': value for name, value in flags.items()},
                          SUPPORTS=None if supports is None else frozenset(supports))
        self.timeout = timeout
        self.makes_zones = makes_zones
        self.fail_after = fail_after
        self.calls: list[ProviderCall] = []
        self._zones = {zone.name: zone for zone in (zone_of(name, text) for name, text in (zones or {}).items())}
        self._lock = threading.Lock()
        self._awake = threading.Event()
        self._behaviours: dict[str, tuple[str, int | None]] = {}
        self._meddler: Callable[[Zone], None] | None = None
        for operation, behaviour in behaviours.items():
            self.behave(operation, behaviour)

    def behave(self, operation: str, behaviour: str, times: int | None = None) -> None:
        """From now on *operation* does this: for the next *times* calls and then succeeds, or for good.

        :raises InvalidField: for words that are not known
        """
        if operation not in OPERATIONS:
            raise InvalidField(field='operation', why=f"'{operation}' is unknown; there are {', '.join(OPERATIONS)}")
        if behaviour not in BEHAVIOURS:
            raise InvalidField(field=f'on_{operation}',
                               why=f"'{behaviour}' is unknown; there are {', '.join(BEHAVIOURS)}")
        with self._lock:
            self._behaviours[operation] = (behaviour, times)

    def meddle(self, meddler: Callable[[Zone], None]) -> None:
        """Before the next plan is applied, have somebody else change the zone first."""
        self._meddler = meddler

    def zone(self, name: str) -> Zone | None:
        """A copy of what it has; None when it has no such zone."""
        with self._lock:
            there = self._zones.get(name)
            return None if there is None else there.copy()

    def put(self, zone: Zone) -> None:
        """Have it hold a copy of *zone*, in the place of what it has of the name."""
        with self._lock:
            self._zones[zone.name] = zone.copy()

    def forget_zones(self) -> None:
        """Lose every zone, as a server does that was set up anew."""
        with self._lock:
            self._zones.clear()

    def close(self) -> None:
        """End the calls that hang."""
        self._awake.set()
        self._awake = threading.Event()

    def list_zones(self) -> list[str]:
        return sorted(self.zones(())[0])

    def create_zone(self, desired: Zone) -> None:
        if self._effective('create', desired.name) and desired.name not in self._zones:
            if not self.makes_zones:
                raise BackendRefused(why=f'the fake server does not have the zone {desired.name}, and makes none')
            with self._lock:
                self._zones[desired.name] = desired.empty()

    def delete_zone(self, name: str) -> None:
        if self._effective('delete', name):
            with self._lock:
                self._zones.pop(name, None)

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        if not self._effective('list'):
            return {}, True
        with self._lock:
            found = {name: zone.get(name, 'SOA') for name, zone in self._zones.items()}
        return {name: None if soa is None else serial_of(soa) for name, soa in found.items()}, True

    def ping(self) -> None:
        self._effective('ping')

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        try:
            truly = self._effective('populate', zone.name)
        except BackendError as error:
            raise unread(self.id, error) from error
        there = self.zone(zone.name)
        for each in there or () if truly else ():
            zone.add_record(each, lenient=lenient)
        return there is not None

    def _apply(self, plan: Plan) -> ApplyResult | None:
        if not self._effective('apply', plan.zone):
            return None
        meddler, self._meddler = self._meddler, None
        with self._lock:
            zone = self._zones.get(plan.zone)
            if zone is None:
                raise BackendRefused(why=f'the fake server does not have the zone {plan.zone}')
            if meddler is not None:
                meddler(zone)
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

    def _effective(self, operation: str, zone: str = '') -> bool:
        """Note the call and behave; whether it is to have an effect.

        :raises BackendError: when it was told to fail
        """
        with self._lock:
            self.calls.append(ProviderCall(operation, zone))
            behaviour, times = self._behaviours[operation]
            if times is not None:
                self._behaviours[operation] = (behaviour, times - 1) if times > 1 else ('succeed', None)
        if behaviour in _ERRORS:
            kind, why = _ERRORS[behaviour]
            raise kind(why=why)
        if behaviour == 'hang':
            self._awake.wait(self.timeout)
            raise BackendUnreachable(why=f'no answer within {self.timeout:g} s', reason=Reason.TIMEOUT)
        return behaviour == 'succeed'


def zone_of(name: str, text: str) -> Zone:
    """The zone *name* of text as in a zone file.

    :raises SourceError: for text that is none
    """
    zone = Zone(name)
    zone.fill(master.read(text, zone.name, f'{zone.name} of a fake server', require_soa=False).items(), lenient=True)
    return zone
