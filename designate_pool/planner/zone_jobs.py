"""Which zones a run includes, and the sources, processors and targets of each."""

from __future__ import annotations

import dataclasses
import fnmatch
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from designate_pool.errors import InvalidField, PoolError
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.run_report import TargetResult
from designate_pool.planner.setup import Setup, ZoneSetting
from designate_pool.protocol.names_and_rdata import normal_name, parents

LOG = logging.getLogger(__name__)
Settings = Mapping[str, ZoneSetting]
#: Zone name and target id.
Pair = tuple[str, str]
Item = TypeVar('Item')


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneJob:
    """One zone of a run.

    :ivar sources: empty for an alias
    :ivar processors: all that process the zone, in order
    :ivar targets: empty when the zone is read for its aliases alone
    :ivar has_aliases: whether another zone of the run is an alias of this one
    """

    zone: str
    setting: ZoneSetting
    sources: tuple[BaseSource, ...]
    processors: tuple[BaseProcessor, ...]
    targets: tuple[BaseProvider, ...]
    has_aliases: bool = False

    @property
    def lenient(self) -> bool:
        return self.setting.lenient


def resolve(setup: Setup) -> tuple[dict[str, ZoneSetting], list[TargetResult]]:
    """Every zone by name, including those that sources list; and a failed result for each list that cannot be read."""
    found = {name: setting for name, setting in setup.zones.items() if not name.startswith('*')}
    failed: list[TargetResult] = []
    listed: dict[str, frozenset[str]] = {}
    for name, setting in setup.zones.items():
        if not name.startswith('*'):
            continue
        try:
            names = {each for source in setting.sources for each in _zones_of(setup, source, listed)}
        except Exception as error:
            why = log_error(error, f'the zones of {name}')
            failed += [TargetResult(name, target, error=why) for target in setting.targets]
            continue
        found.update((each, setting) for each in sorted(names - found.keys()) if _matches(setting, each))
    return found, failed


def select(setup: Setup, settings: Settings, zones: Collection[str], sources: Collection[str],
           targets: Collection[str], pairs: Collection[Pair] | None = None) -> tuple[list[ZoneJob], list[ZoneJob]]:
    """The jobs of a run: zones with sources, and aliases of those.

    :param zones: only these zones; empty for all
    :param sources: only zones that have one of these sources (all their sources are read); empty for all
    :param targets: only these targets; empty for all
    :param pairs: only these zones on these targets; None for all
    :raises InvalidField: for an unknown name, or an alias of an alias or of an unknown zone
    """
    names = list(dict.fromkeys(normal_name(each) for each in zones)) or list(settings)
    _check_known('zones', names, settings)
    _check_known('sources', sources, setup.providers)
    _check_known('targets', targets, setup.providers)
    chosen = {name: ids for name in names
              if (not sources or set(sources) & set(contents_setting(settings, name).sources))
              and (ids := _targets(settings, name, targets, pairs))}
    aliased = {alias for name in chosen if (alias := settings[name].alias) is not None}
    jobs = [make_job(setup, settings, name, chosen.get(name, ()), name in aliased)
            for name in settings if settings[name].alias is None and (name in chosen or name in aliased)]
    alias_jobs = [make_job(setup, settings, name, ids) for name, ids in chosen.items()
                  if settings[name].alias is not None]
    return jobs, alias_jobs


def contents_setting(settings: Settings, name: str) -> ZoneSetting:
    """The setting of the zone from which *name* gets its records: its own, or that of the zone it is an alias of.

    :raises InvalidField: for an alias of an alias or of an unknown zone
    """
    alias = settings[name].alias
    if alias is None:
        return settings[name]
    if alias not in settings:
        raise InvalidField(field=name, why=f'it is an alias of {alias}, and there is no such zone')
    if settings[alias].alias is not None:
        raise InvalidField(field=name, why=f'it is an alias of {alias}, which is an alias itself')
    return settings[alias]


def make_job(setup: Setup, settings: Settings, name: str, targets: Sequence[str] = (),
             has_aliases: bool = False) -> ZoneJob:
    """
    :raises InvalidField: for an unknown id
    """
    setting = settings[name]
    processors = (*setup.first_processors, *setting.processors, *setup.last_processors)
    return ZoneJob(name, setting,
                   () if setting.alias else tuple(find(setup.providers, 'source', each) for each in setting.sources),
                   tuple(find(setup.processors, 'processor', each) for each in processors),
                   tuple(find_target(setup, each) for each in targets), has_aliases)


def sub_zones(names: Collection[str]) -> dict[str, list[str]]:
    """For each of *names* that has others below it, those."""
    found: dict[str, list[str]] = {}
    for name in names:
        for above in parents(name):
            if above in names:
                found.setdefault(above, []).append(name)
    return found


def find(items: Mapping[str, Item], what: str, id: str) -> Item:
    """
    :raises InvalidField: when there is none of that id
    """
    if id not in items:
        raise InvalidField(field=what, why=f'there is no {id}')
    return items[id]


def find_target(setup: Setup, id: str) -> BaseProvider:
    """
    :raises InvalidField: when there is none of that id, or it is read-only
    """
    found = find(setup.providers, 'target', id)
    if not isinstance(found, BaseProvider):
        raise InvalidField(field='target', why=f'{id} can only be read from')
    return found


def log_error(error: Exception, what: str) -> str:
    """Log *error*, with its traceback if it is unexpected, and return it as text."""
    if not isinstance(error, (PoolError, OSError)):
        LOG.error('%s: an unexpected error', what, exc_info=error)
        return f'{type(error).__name__}: {error}'
    LOG.error('%s: %s', what, ' '.join(str(error).split()))
    return str(error) or type(error).__name__


def _zones_of(setup: Setup, source: str, listed: dict[str, frozenset[str]]) -> frozenset[str]:
    """
    :param listed: the lists that were already read, by source
    """
    if source not in listed:
        listed[source] = frozenset(map(normal_name, find(setup.providers, 'source', source).list_zones()))
    return listed[source]


def _matches(setting: ZoneSetting, name: str) -> bool:
    if setting.glob is not None:
        return fnmatch.fnmatchcase(name, setting.glob)
    return setting.regex is None or setting.regex.search(name) is not None


def _check_known(field: str, ids: Collection[str], known: Collection[str]) -> None:
    unknown = sorted(set(ids) - set(known))
    if unknown:
        raise InvalidField(field=field, why=f'there is no {" and no ".join(unknown)} in the configuration')


def _targets(settings: Settings, name: str, targets: Collection[str], pairs: Collection[Pair] | None) -> Sequence[str]:
    return [each for each in settings[name].targets or contents_setting(settings, name).targets
            if (not targets or each in targets) and (pairs is None or (name, each) in pairs)]
