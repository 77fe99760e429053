"""octoDNS's sources, providers and processors as ours.

The invariant: what an octoDNS provider does here is what it does under octoDNS.  Its own ``plan()`` plans, with all its
hooks, on octoDNS's zones; only our processors, which run within it, and what comes out of it, are on zones and changes
of ours.  When a plan is applied, the provider is given octoDNS's plan of exactly the changes that ours still has.
"""

from __future__ import annotations

import contextlib
import dataclasses
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import yaml

from designate_pool.errors import InvalidField, PoolError, SourceError, SupportsException
from designate_pool.planner.octodns.classes import FEATURES, class_of, lenient_word, looked_up, new, takes
from designate_pool.planner.octodns.plans import Made, OctodnsPlan, backend_error, parts, whole, words
from designate_pool.planner.octodns.processors import AdaptedProcessor
from designate_pool.planner.octodns.records import Mirror, octodns
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource, ServerProvider
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import GENERATED, RRset


def adapt_provider(id: str, cls: str | type, kwargs: Mapping[str, Any]) -> AdaptedSource:
    """A source or provider of octoDNS as one of ours.

    :param cls: its class, or the path of that
    :param kwargs: what its constructor takes beside *id*
    :returns: an :class:`AdaptedProvider` where it is a provider
    :raises InvalidField: when there is no such class, or it does not take *kwargs*
    """
    found = class_of(cls, 'source.base.BaseSource')
    is_provider = issubclass(found, octodns('provider.base').BaseProvider)
    return (AdaptedProvider if is_provider else AdaptedSource)(id, found, kwargs)


def adapt_processor(id: str, cls: str | type, kwargs: Mapping[str, Any]) -> AdaptedProcessor:
    """A processor of octoDNS as one of ours; the parameters are those of :func:`adapt_provider`."""
    return AdaptedProcessor(id, class_of(cls, 'processor.base.BaseProcessor'), kwargs)


def adapt_server(id: str, cls: str, settings: str, environ: Mapping[str, str]) -> OctodnsServer:
    """A provider of octoDNS as a server of a pool.

    :param settings: what its constructor takes, as a YAML mapping; ``env/NAME`` and ``env/NAME/default`` are looked up
        in *environ*, and what is found there stays text
    :raises InvalidField: for what is wrong with either
    """
    try:
        kwargs = yaml.safe_load(settings) or {}
    except yaml.YAMLError as error:
        # The text of the error may have a secret in it.
        mark = getattr(error, 'problem_mark', None)
        where = '' if mark is None else f' (line {mark.line + 1}, column {mark.column + 1})'
        raise InvalidField(field='settings', why=f'it is not YAML{where}') from None
    if not isinstance(kwargs, dict):
        raise InvalidField(field='settings', why="it is no mapping, as in '{host: 192.0.2.1, port: 53}'")
    return OctodnsServer(id, class_of(cls, 'provider.base.BaseProvider'), looked_up(kwargs, environ))


class AdaptedSource(BaseSource):
    """A source of octoDNS."""

    def __init__(self, id: str, cls: type, kwargs: Mapping[str, Any]) -> None:
        super().__init__(id)
        self._cls, self._kwargs = cls, kwargs
        self._kept: Any = new(id, cls, kwargs)

    @property
    def theirs(self) -> Any:
        """octoDNS's object."""
        if self._kept is None:
            self._kept = new(self.id, self._cls, self._kwargs)
        return self._kept

    def __getattribute__(self, name: str) -> Any:
        # Some providers ask their server for what they support, so theirs are looked at when they are wanted.
        if name == 'SUPPORTS':
            return frozenset(self.theirs.SUPPORTS)
        if name.startswith('SUPPORTS_') and name.removeprefix('SUPPORTS_') in FEATURES:
            return bool(getattr(self.theirs, name))
        return super().__getattribute__(name)

    def supports(self, rrset: RRset) -> bool:
        return bool(self.theirs.supports(types.SimpleNamespace(_type=rrset.type, fqdn=rrset.name)))

    def list_zones(self) -> list[str]:
        return self._listed(self.theirs)

    def close(self) -> None:
        """Forget octoDNS's object, and with it what it has read; the next call makes another one."""
        self._kept = None

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        """What sources before this one gave is there already, and may be replaced: octoDNS's sources can do so."""
        mirror, exists = self._read(self._reader(), zone, target, lenient)
        found = mirror.zone
        added = [rrset for rrset in found if zone.packed.get(rrset.key) != found.packed[rrset.key]
                 or zone.extras.get(rrset.key) != found.extras.get(rrset.key)]
        for each in (zone.copy(), zone):
            for rrset in added:
                own = bool((rrset.extra.octodns or {}).get('lenient'))
                each.add_record(rrset, replace=True, lenient=lenient or own)
        return exists

    def _reader(self) -> Any:
        """octoDNS's object to read with."""
        return self.theirs

    def _read(self, theirs: Any, zone: Zone, target: bool, lenient: bool) -> tuple[Mirror, bool]:
        """*zone* with what is there as well, and whether it exists there."""
        with self._in_words():
            mirror = Mirror.of(zone, lenient=lenient)
            exists = theirs.populate(mirror.octodns, target=target, **lenient_word(theirs.populate, lenient))
            mirror.ours(mirror.octodns)
            return mirror, bool(exists)

    def _listed(self, theirs: Any) -> list[str]:
        if not hasattr(theirs, 'list_zones'):
            return BaseSource.list_zones(self)
        with self._in_words():
            return sorted(octodns('zone').Zone(name, []).name for name in theirs.list_zones())

    @contextlib.contextmanager
    def _in_words(self, is_applied: bool = False) -> Iterator[None]:
        """Any error that octoDNS's object ends in as one of ours; octoDNS leaves open what they may be."""
        try:
            yield
        except PoolError:
            raise
        except octodns('provider').SupportsException as error:
            raise SupportsException(target=self.id, why=words(error).removeprefix(f'{self.id}: ')) from error
        except Exception as error:
            raise (backend_error(error) if is_applied else self._unread(error)) from error

    def _unread(self, error: Exception) -> PoolError:
        return SourceError(source=self.id, why=words(error))


class AdaptedProvider(AdaptedSource, BaseProvider):
    """A provider of octoDNS.

    Its limits on updates and deletes are checked with those of all plans, and by nobody else.
    """

    def __init__(self, id: str, cls: type, kwargs: Mapping[str, Any]) -> None:
        AdaptedSource.__init__(self, id, cls, kwargs)
        BaseProvider.__init__(self, id, **{name: getattr(self.theirs, name) for name in (
            'apply_disabled', 'update_pcent_threshold', 'delete_pcent_threshold', 'strict_supports',
            'root_ns_warnings')})

    def plan(self, desired: Zone, processors: Sequence[BaseProcessor] = (), lenient: bool = False) -> Plan | None:
        with self._in_words():
            theirs = self._instance()
            bridge = _Bridge(self, Mirror.of(desired, self._refuse), processors)
            found = theirs.plan(bridge.desired.octodns, processors=[bridge], lenient=lenient)
            if found is None:
                return None
            made = Made(theirs, bridge.existing, bridge.desired)
            known = [(made.ours(each), each) for each in found.changes]
            made = dataclasses.replace(made, changes={(each.kind, each.record.key): (each, change)
                                                      for each, change in known})
        return OctodnsPlan(
            made.existing.zone, made.desired.zone, whole([each for each, _ in known]), bool(found.exists),
            self._threshold('update_pcent_threshold', desired), self._threshold('delete_pcent_threshold', desired),
            found.meta, target_id=self.id, min_existing_records=self.min_existing_records,
            managed_types=self.SUPPORTS, made=made)

    def _apply(self, plan: Plan) -> ApplyResult | None:
        with self._in_words(is_applied=True):
            made = Made.of(plan)
            provider = self._instance() if made.provider is None else made.provider
            provider.apply(made.plan(plan, [made.change(each) for each in parts(plan.changes)]))
        return None

    def _instance(self) -> Any:
        """octoDNS's provider, for one plan."""
        return self._told(self.theirs)

    def _told(self, theirs: Any) -> Any:
        theirs.strict_supports, theirs.root_ns_warnings = self.strict_supports, self.root_ns_warnings
        return theirs

    def _refuse(self, rrset: RRset, why: str) -> None:
        if rrset.type != 'SOA' and rrset.type not in GENERATED and rrset.extra.is_for(self.id):
            self.supports_warn_or_except(f'it cannot hold {rrset.name} {rrset.type}: {why}', 'it is left out')


class OctodnsServer(AdaptedProvider, ServerProvider):
    """A provider of octoDNS as a server of a pool.

    Each call has an octoDNS provider of its own: many of them keep what they have read once, since octoDNS ends when it
    has synced, and not all of them let several plans be made at once.
    """

    def __init__(self, id: str, cls: type, kwargs: Mapping[str, Any]) -> None:
        super().__init__(id, cls, kwargs)
        self._last: str | None = None

    def plan(self, desired: Zone, processors: Sequence[BaseProcessor] = (), lenient: bool = False) -> Plan | None:
        self._last = desired.name
        root_ns = desired.root_ns
        if root_ns is not None and not self.SUPPORTS_ROOT_NS:
            # Every zone of a pool has them; a provider that cannot be told them has its own.
            desired = desired.copy()
            desired.remove_record(root_ns)
        return super().plan(desired, processors, lenient)

    def create_zone(self, desired: Zone) -> None:
        """Nothing: octoDNS's providers make a zone with its first records."""

    def delete_zone(self, name: str) -> None:
        """Delete all records; octoDNS has no word for deleting a zone, so it stays, empty."""
        mirror, exists = self._read(self._instance(), Zone(name), target=True, lenient=True)
        root_ns = mirror.zone.root_ns
        found = [changes.delete(rrset) for rrset in mirror.zone
                 if self.supports(rrset) and (rrset != root_ns or self.SUPPORTS_ROOT_NS)]
        if exists and found:
            empty = mirror.zone.empty()
            made = Made(self._instance(), mirror, Mirror.of(empty))
            self.apply(OctodnsPlan(mirror.zone, empty, changes.ordered(found), True, made=made))

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        theirs = self._instance()
        if hasattr(theirs, 'list_zones'):
            return dict.fromkeys(self._listed(theirs)), True
        return {name: None for name in names if self._read(theirs, Zone(name), target=True, lenient=True)[1]}, False

    def ping(self) -> None:
        """List the zones, or read the last one that was planned: octoDNS has no cheaper question."""
        if hasattr(self.theirs, 'list_zones'):
            self._listed(self._instance())
        elif self._last is not None:
            self._read(self._instance(), Zone(self._last), target=True, lenient=True)

    def _instance(self) -> Any:
        limit = {'timeout': self.timeout} if takes(self._cls, 'timeout') else {}
        with self._in_words():
            return self._told(self._cls(self.id, **{**limit, **self._kwargs}))

    def _reader(self) -> Any:
        return self._instance()

    def _unread(self, error: Exception) -> PoolError:
        return backend_error(error)


class _Bridge:
    """What octoDNS's plan() takes for a processor: it has ours run on the zones, and remembers them."""

    lenient = False

    def __init__(self, provider: AdaptedProvider, desired: Mirror, processors: Sequence[BaseProcessor]) -> None:
        self.id = self.name = 'designate-pool'
        self.desired = self.existing = desired
        self._provider = provider
        self._processors = processors
        self._like = desired.zone

    def process_target_zone(self, existing: Any, target: Any, lenient: bool = False) -> Any:
        self.existing = Mirror.of_theirs(existing, self._like)
        zone = self.existing.zone.copy()
        for each in self._processors:
            zone = each.process_target_zone(zone, target=self._provider, lenient=lenient)
        return self.existing.theirs(zone)

    def process_source_and_target_zones(self, desired: Any, existing: Any, target: Any,
                                        lenient: bool = False) -> tuple[Any, Any]:
        wanted, there = self.desired.ours(desired).copy(), self.existing.ours(existing).copy()
        for each in self._processors:
            wanted, there = each.process_source_and_target_zones(wanted, there, self._provider, lenient=lenient)
        return self.desired.theirs(wanted), self.existing.theirs(there)
