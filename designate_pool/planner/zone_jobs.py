"""Which zones a run is about, and what each is made from."""

from __future__ import annotations

import dataclasses
import fnmatch
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from designate_pool.errors import InvalidField, PoolError
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.run_report import TargetResult
from designate_pool.planner.setup import Setup, ZoneSetting
from designate_pool.protocol.rrset import normal_name, parents

LOG = logging.getLogger(__name__)
Settings = Mapping[str, ZoneSetting]
Pair = tuple[str, str]
Thing = TypeVar('Thing')


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneJob:
    """One zone of a run.

    :ivar sources: empty for an alias
    :ivar processors: all that the zone goes through, in order
    :ivar targets: empty when only others want the zone
    :ivar is_wanted: whether another zone of the run is an alias of this one
    """

    zone: str
    setting: ZoneSetting
    sources: tuple[BaseSource, ...]
    processors: tuple[BaseProcessor, ...]
    targets: tuple[BaseProvider, ...]
    is_wanted: bool = False

    @property
    def lenient(self) -> bool:
        return self.setting.lenient


def resolve(setup: Setup) -> tuple[dict[str, ZoneSetting], list[TargetResult]]:
    """Every zone by name, those that sources list among them; and what could not be listed, as failed parts."""
    found = {name: setting for name, setting in setup.zones.items() if not name.startswith('*')}
    failed: list[TargetResult] = []
    listed: dict[str, frozenset[str]] = {}
    for name, setting in setup.zones.items():
        if not name.startswith('*'):
            continue
        try:
            names = {each for source in setting.sources for each in _listed(setup, source, listed)}
        except Exception as error:
            why = told(error, f'the zones of {name}')
            failed += [TargetResult(name, target, error=why) for target in setting.targets]
            continue
        found.update((each, setting) for each in sorted(names - found.keys()) if _matches(setting, each))
    return found, failed


def select(setup: Setup, settings: Settings, zones: Collection[str], sources: Collection[str],
           targets: Collection[str], pairs: Collection[Pair] | None = None) -> tuple[list[ZoneJob], list[ZoneJob]]:
    """The works of a run: zones from sources, and then those that are aliases of them.

    :param zones: names of the zones that are wanted; empty for all
    :param sources: only zones that have one of these among their sources, which are then read all; empty for all
    :param targets: only these targets; empty for all
    :param pairs: of what is left, only these zones on these targets; None for all
    :raises InvalidField: for a name that nothing is known by, or an alias of what is none or an alias itself
    """
    wanted = _names(settings, zones)
    _known('sources', sources, setup.providers)
    _known('targets', targets, setup.providers)
    chosen = {name: _targets(settings, name, targets, pairs) for name in wanted
              if not sources or set(sources) & set(origin(settings, name).sources)}
    chosen = {name: ids for name, ids in chosen.items() if ids}
    aliased = {alias for name in chosen if (alias := settings[name].alias) is not None}
    first = [work_of(setup, settings, name, chosen.get(name, ()), name in aliased)
             for name in settings if settings[name].alias is None and (name in chosen or name in aliased)]
    then = [work_of(setup, settings, name, ids) for name, ids in chosen.items() if settings[name].alias is not None]
    return first, then


def origin(settings: Settings, name: str) -> ZoneSetting:
    """The setting of the zone that *name* has its records from: its own, unless it is an alias.

    :raises InvalidField: for an alias of what is no zone, or an alias itself
    """
    alias = settings[name].alias
    if alias is None:
        return settings[name]
    if alias not in settings:
        raise InvalidField(field=name, why=f'it is an alias of {alias}, and there is no such zone')
    if settings[alias].alias is not None:
        raise InvalidField(field=name, why=f'it is an alias of {alias}, which is an alias itself')
    return settings[alias]


def work_of(setup: Setup, settings: Settings, name: str, targets: Sequence[str] = (),
            is_wanted: bool = False) -> ZoneJob:
    """
    :raises InvalidField: for an id that nothing has
    """
    setting = settings[name]
    return ZoneJob(name, setting,
                   () if setting.alias else tuple(find(setup.providers, 'source', each) for each in setting.sources),
                   tuple(_processors(setup, setting)), tuple(find_target(setup, each) for each in targets), is_wanted)


def sub_zones(names: Collection[str]) -> dict[str, list[str]]:
    """By name, for each of *names* that has any: those that are below it."""
    found: dict[str, list[str]] = {}
    for name in names:
        for above in parents(name):
            if above in names:
                found.setdefault(above, []).append(name)
    return found


def find(things: Mapping[str, Thing], what: str, id: str) -> Thing:
    """
    :raises InvalidField: when there is none of that id
    """
    if id not in things:
        raise InvalidField(field=what, why=f'there is no {id}')
    return things[id]


def find_target(setup: Setup, id: str) -> BaseProvider:
    """
    :raises InvalidField: when there is none of that id, or it can only be read
    """
    found = find(setup.providers, 'target', id)
    if not isinstance(found, BaseProvider):
        raise InvalidField(field='target', why=f'{id} can only be read from')
    return found


def told(error: Exception, what: str) -> str:
    """*error* in words; logged with its trace where it is none of those that are expected."""
    if not isinstance(error, (PoolError, OSError)):
        LOG.error('%s: an unexpected error', what, exc_info=error)
        return f'{type(error).__name__}: {error}'
    LOG.error('%s: %s', what, ' '.join(str(error).split()))
    return str(error) or type(error).__name__


def _listed(setup: Setup, id: str, known: dict[str, frozenset[str]]) -> frozenset[str]:
    if id not in known:
        known[id] = frozenset(normal_name(each) for each in find(setup.providers, 'source', id).list_zones())
    return known[id]


def _matches(setting: ZoneSetting, name: str) -> bool:
    if setting.glob is not None:
        return fnmatch.fnmatchcase(name, setting.glob)
    return setting.regex is None or setting.regex.search(name) is not None


def _names(settings: Settings, zones: Collection[str]) -> Sequence[str]:
    if not zones:
        return list(settings)
    names = dict.fromkeys(normal_name(each) for each in zones)
    _known('zones', names, settings)
    return list(names)


def _known(field: str, ids: Collection[str], known: Collection[str]) -> None:
    unknown = sorted(set(ids) - set(known))
    if unknown:
        raise InvalidField(field=field, why=f'there is no {" and no ".join(unknown)} in the configuration')


def _targets(settings: Settings, name: str, targets: Collection[str], pairs: Collection[Pair] | None) -> Sequence[str]:
    own = settings[name].targets or origin(settings, name).targets
    return [each for each in own
            if (not targets or each in targets) and (pairs is None or (name, each) in pairs)]


def _processors(setup: Setup, setting: ZoneSetting) -> Iterator[BaseProcessor]:
    for each in (*setup.first_processors, *setting.processors, *setup.last_processors):
        yield find(setup.processors, 'processor', each)
