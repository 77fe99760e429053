"""octoDNS's sources and providers.

An octoDNS provider does here what it does under octoDNS: its own ``plan()`` plans, with all its hooks, on octoDNS's
zones.  Our processors run within it on our zones, and its result is converted to our changes.  To apply a plan, the
provider is given octoDNS's plan of exactly the changes that our plan still has.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import dns.exception
import yaml

from designate_pool.errors import (BackendError, BackendRefused, BackendUnreachable, InvalidField, PoolError,
                                   ProcessorException, SourceError, SupportsException)
from designate_pool.model import Reason
from designate_pool.planner.octodns.records import ZoneMirror, octodns
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource, ServerProvider
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import GENERATED
from designate_pool.protocol.rrset import RRset

_REFUSED = (401, 403)
_MAX_RESPONSE_TEXT = 300


@dataclasses.dataclass(slots=True)
class OctodnsPlan(Plan):
    """A plan of an octoDNS provider; its *mirror* is None if it is no longer known."""

    mirror: PlanMirror | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PlanMirror:
    """The octoDNS side of a plan.

    :ivar provider: the octoDNS provider that made the plan, which may cache what it read; None for other providers
    :ivar changes: our change and octoDNS's, by kind and key of ours
    """

    provider: Any
    existing: ZoneMirror
    desired: ZoneMirror
    changes: Mapping[tuple[str, str], tuple[Change, Any]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> PlanMirror:
        """The mirror of *plan*; a new one if *plan* is not from an octoDNS provider."""
        if isinstance(plan, OctodnsPlan) and plan.mirror is not None:
            return plan.mirror
        return cls(None, ZoneMirror.of(plan.existing), ZoneMirror.of(plan.desired))

    def octodns_plan(self, plan: Plan, octodns_changes: Sequence[Any]) -> Any:
        """octoDNS's plan with *octodns_changes*; octoDNS sorts them, deletes first."""
        return octodns('provider.plan').Plan(
            self.existing.to_octodns(plan.existing), self.desired.to_octodns(plan.desired), octodns_changes,
            plan.exists, plan.update_pcent_threshold, plan.delete_pcent_threshold, meta=plan.meta)

    def to_octodns(self, change: Change) -> Any:
        """octoDNS's change for one of ours of one name and type; InvalidField if it cannot hold a record."""
        own_change, octodns_change = self.changes.get((change.kind, change.record.key), (None, None))
        if own_change == change:
            return octodns_change
        record = octodns('record')
        if change.kind == 'Create':
            return record.Create(self.desired.record(change.new[0]))
        if change.kind == 'Delete':
            return record.Delete(self.existing.record(change.existing[0]))
        return record.Update(self.existing.record(change.existing[0]), self.desired.record(change.new[0]))

    def convertible(self, planned: Sequence[Change]) -> tuple[list[Any], list[Change]]:
        """octoDNS's changes for *planned*, and those of *planned* that octoDNS cannot represent."""
        converted: list[Any] = []
        others: list[Change] = []
        for change in split_replaces(planned):
            try:
                converted.append(self.to_octodns(change))
            except InvalidField:
                others.append(change)
        return converted, others

    def from_octodns(self, octodns_change: Any) -> Change:
        """Our change for one of octoDNS's."""
        if octodns_change.existing is None:
            return changes.create(self.desired.rrset(octodns_change.new))
        if octodns_change.new is None:
            return changes.delete(self.existing.rrset(octodns_change.existing))
        return changes.update(self.existing.rrset(octodns_change.existing), self.desired.rrset(octodns_change.new))


def split_replaces(planned: Sequence[Change]) -> Iterator[Change]:
    """*planned*, with each Replace, which octoDNS does not have, as deletes and creates."""
    for change in planned:
        if change.kind == 'Replace':
            yield from map(changes.delete, change.existing)
            yield from map(changes.create, change.new)
        else:
            yield change


def join_replaces(planned: Sequence[Change]) -> list[Change]:
    """The inverse of :func:`split_replaces`, in the order of applying."""
    return changes.ordered(changes.with_replaces(planned))


def plan_from_octodns(octodns_plan: Any, target_id: str, min_existing_records: int) -> Plan:
    """Our plan for one that an octoDNS processor made where there was none."""
    like = Zone(octodns_plan.desired.name)
    mirror = PlanMirror(None, ZoneMirror.of_octodns(octodns_plan.existing, like),
                        ZoneMirror.of_octodns(octodns_plan.desired, like))
    return OctodnsPlan(
        mirror.existing.zone, mirror.desired.zone, join_replaces([*map(mirror.from_octodns, octodns_plan.changes)]),
        does_exist(octodns_plan.exists, mirror.existing.zone), octodns_plan.update_pcent_threshold,
        octodns_plan.delete_pcent_threshold, octodns_plan.meta, target_id=target_id,
        min_existing_records=min_existing_records, mirror=mirror)


def does_exist(said: Any, existing: Zone) -> bool:
    """Whether a zone exists; a provider may say nothing (None), then whether anything was read of it."""
    return bool(len(existing) if said is None else said)


def error_text(error: BaseException) -> str:
    """*error* on one line, with the beginning of the HTTP response if it has one."""
    text = ' '.join(str(error).split()).rstrip('.')
    if isinstance(error, LookupError) or not text:
        text = f'{type(error).__name__} {text}'.strip()
    response = getattr(getattr(error, 'response', None), 'text', None)
    more = ' '.join(str(response or '').split())[:_MAX_RESPONSE_TEXT]
    return f'{text}: {more}' if more and more not in text else text


def backend_error(error: BaseException) -> BackendError:
    """The BackendError for an exception of an octoDNS provider."""
    for cause in _causes(error):
        status = getattr(getattr(cause, 'response', None), 'status_code', None)
        if status is not None:
            if status in _REFUSED:
                return BackendRefused(why=error_text(error), reason=Reason.BAD_KEY)
            return BackendError(why=error_text(error))
        if isinstance(cause, (OSError, dns.exception.Timeout)):
            late = isinstance(cause, (TimeoutError, dns.exception.Timeout))
            return BackendUnreachable(why=error_text(error), reason=Reason.TIMEOUT if late else None)
    return BackendError(why=error_text(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """*error* and its causes: providers wrap other exceptions in their own."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


FEATURES = ('GEO', 'DYNAMIC', 'POOL_VALUE_STATUS', 'DYNAMIC_SUBNETS', 'MULTIVALUE_PTR', 'ROOT_NS')


def adapt_provider(id: str, cls: str | type, kwargs: Mapping[str, Any]) -> AdaptedSource:
    """The adapter of an octoDNS source or provider.

    :param cls: its class, or the dotted path of that
    :param kwargs: what its constructor takes besides *id*
    :raises InvalidField: when there is no such class, or it does not accept *kwargs*
    """
    source_class = class_of(cls, 'source.base.BaseSource')
    is_provider = issubclass(source_class, octodns('provider.base').BaseProvider)
    return (AdaptedProvider if is_provider else AdaptedSource)(id, source_class, kwargs)


def adapt_processor(id: str, cls: str | type, kwargs: Mapping[str, Any]) -> AdaptedProcessor:
    """The adapter of an octoDNS processor; the parameters are those of :func:`adapt_provider`."""
    return AdaptedProcessor(id, class_of(cls, 'processor.base.BaseProcessor'), kwargs)


def adapt_server(id: str, cls: str, settings: str, environ: Mapping[str, str]) -> OctodnsServer:
    """The adapter of an octoDNS provider that is a server of a pool.

    :param settings: what its constructor takes, as a YAML mapping; ``env/NAME`` and ``env/NAME/default`` are replaced
        from *environ*, always by strings
    :raises InvalidField: for an error in either
    """
    try:
        kwargs = yaml.safe_load(settings) or {}
    except yaml.YAMLError as error:
        # The text of the error may contain a secret.
        mark = getattr(error, 'problem_mark', None)
        where = '' if mark is None else f' (line {mark.line + 1}, column {mark.column + 1})'
        raise InvalidField(field='settings', why=f'it is not YAML{where}') from None
    if not isinstance(kwargs, dict):
        raise InvalidField(field='settings', why="it is no mapping, as in '{host: 192.0.2.1, port: 53}'")
    return OctodnsServer(id, class_of(cls, 'provider.base.BaseProvider'), resolve_env(kwargs, environ))


class AdaptedSource(BaseSource):
    """A source of octoDNS."""

    SUPPORTS_OCTODNS = True

    def __init__(self, id: str, cls: type, kwargs: Mapping[str, Any]) -> None:
        super().__init__(id)
        self._cls, self._kwargs = cls, kwargs
        self._wrapped: Any = instantiate(id, cls, kwargs)

    @property
    def wrapped(self) -> Any:
        """octoDNS's object."""
        if self._wrapped is None:
            self._wrapped = instantiate(self.id, self._cls, self._kwargs)
        return self._wrapped

    def __getattribute__(self, name: str) -> Any:
        # Some providers ask their server what it supports, so the attributes of octoDNS's object are read when needed.
        if name == 'SUPPORTS':
            return frozenset(self.wrapped.SUPPORTS)
        if name.startswith('SUPPORTS_') and name.removeprefix('SUPPORTS_') in FEATURES:
            return bool(getattr(self.wrapped, name))
        return super().__getattribute__(name)

    def supports(self, rrset: RRset) -> bool:
        return bool(self.wrapped.supports(types.SimpleNamespace(_type=rrset.type, fqdn=rrset.name)))

    def list_zones(self) -> list[str]:
        return self._list_zones(self.wrapped)

    def close(self) -> None:
        """Drop octoDNS's object and what it has cached; the next call creates another."""
        self._wrapped = None

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        """Records of earlier sources are visible to octoDNS's source, which may replace them."""
        mirror, exists = self._read(self._provider(), zone, target, lenient)
        converted = mirror.zone
        zone.add_each(((rrset, bool((rrset.extra.octodns or {}).get('lenient'))) for rrset in converted
                       if zone.packed.get(rrset.key) != converted.packed[rrset.key]
                       or zone.extras.get(rrset.key) != converted.extras.get(rrset.key)), True, lenient)
        return exists

    def _provider(self) -> Any:
        """octoDNS's object, for one call."""
        return self.wrapped

    def _read(self, provider: Any, zone: Zone, target: bool, lenient: bool) -> tuple[ZoneMirror, bool]:
        """*zone* with what octoDNS's *provider* has added to it, and whether the zone exists there."""
        with self._translated_errors():
            mirror = ZoneMirror.of(zone, lenient=lenient)
            exists = provider.populate(mirror.octodns_zone, target=target,
                                       **lenient_argument(provider.populate, lenient))
            mirror.from_octodns(mirror.octodns_zone)
            return mirror, does_exist(exists, mirror.zone)

    def _list_zones(self, provider: Any) -> list[str]:
        if not hasattr(provider, 'list_zones'):
            return BaseSource.list_zones(self)
        with self._translated_errors():
            return sorted(octodns('zone').Zone(name, []).name for name in provider.list_zones())

    @contextlib.contextmanager
    def _translated_errors(self, is_applied: bool = False) -> Iterator[None]:
        """Raise any exception of octoDNS's object as one of ours; octoDNS does not define which they may be."""
        try:
            yield
        except PoolError:
            raise
        except octodns('provider').SupportsException as error:
            raise SupportsException(target=self.id, why=error_text(error).removeprefix(f'{self.id}: ')) from error
        except Exception as error:
            raise (backend_error(error) if is_applied else self._read_error(error)) from error

    def _read_error(self, error: Exception) -> PoolError:
        return SourceError(source=self.id, why=error_text(error))


class AdaptedProvider(AdaptedSource, BaseProvider):
    """A provider of octoDNS; its limits on updates and deletes are checked with those of all plans."""

    def __init__(self, id: str, cls: type, kwargs: Mapping[str, Any]) -> None:
        AdaptedSource.__init__(self, id, cls, kwargs)
        BaseProvider.__init__(self, id, **{name: getattr(self.wrapped, name) for name in (
            'apply_disabled', 'update_pcent_threshold', 'delete_pcent_threshold', 'strict_supports',
            'root_ns_warnings')})

    def plan(self, desired: Zone, processors: Sequence[BaseProcessor] = (), lenient: bool = False) -> Plan | None:
        with self._translated_errors():
            provider = self._provider()
            holdable = ZoneMirror.of(self._without_other_types(desired, lenient), self._refuse)
            left_out = desired.packed.keys() - holdable.zone.packed.keys()
            bridge = _ProcessorBridge(self, holdable, processors)
            octodns_plan = provider.plan(bridge.desired.octodns_zone, processors=[bridge], lenient=lenient)
            if octodns_plan is None:
                return None
            mirror = PlanMirror(provider, bridge.existing, bridge.desired)
            converted = [(mirror.from_octodns(change), change) for change in octodns_plan.changes
                         if change.new is not None or mirror.existing.rrset(change.existing).key not in left_out]
            if octodns_plan.changes and not converted and not octodns_plan.meta:
                return None
            mirror = dataclasses.replace(mirror, changes={(pair[0].kind, pair[0].record.key): pair
                                                          for pair in converted})
        return OctodnsPlan(
            mirror.existing.zone, mirror.desired.zone, join_replaces([change for change, _ in converted]),
            does_exist(octodns_plan.exists, mirror.existing.zone), self._threshold('update_pcent_threshold', desired),
            self._threshold('delete_pcent_threshold', desired), octodns_plan.meta, target_id=self.id,
            min_existing_records=self.min_existing_records, managed_types=self.SUPPORTS, mirror=mirror)

    def _apply(self, plan: Plan) -> ApplyResult | None:
        with self._translated_errors(is_applied=True):
            mirror = PlanMirror.of(plan)
            provider = self._provider() if mirror.provider is None else mirror.provider
            provider.apply(mirror.octodns_plan(plan, [*map(mirror.to_octodns, split_replaces(plan.changes))]))
        return None

    def _provider(self) -> Any:
        return self._configured(self.wrapped)

    def _configured(self, provider: Any) -> Any:
        provider.strict_supports, provider.root_ns_warnings = self.strict_supports, self.root_ns_warnings
        return provider

    def _refuse(self, rrset: RRset, why: str) -> None:
        if rrset.type != 'SOA' and rrset.type not in GENERATED and rrset.extra.is_for(self.id):
            self.supports_warn_or_except(f'it cannot hold {rrset.name} {rrset.type}: {why}', 'it is left out')


class OctodnsServer(AdaptedProvider, ServerProvider):
    """A provider of octoDNS as a server of a pool.

    Each call creates an octoDNS provider: many of them cache what they read, since octoDNS exits after a sync, and not
    all of them can make several plans concurrently.
    """

    def __init__(self, id: str, cls: type, kwargs: Mapping[str, Any]) -> None:
        super().__init__(id, cls, kwargs)
        self._last_planned: str | None = None

    def plan(self, desired: Zone, processors: Sequence[BaseProcessor] = (), lenient: bool = False) -> Plan | None:
        self._last_planned = desired.name
        root_ns = desired.root_ns
        if root_ns is not None and not self.SUPPORTS_ROOT_NS:
            # Every zone of a pool has NS records at its apex; such a provider sets its own.
            desired = desired.copy()
            desired.remove_record(root_ns)
        return super().plan(desired, processors, lenient)

    def create_zone(self, desired: Zone) -> None:
        """Nothing: octoDNS's providers create a zone with its first records."""

    def delete_zone(self, name: str) -> None:
        """Delete all records; octoDNS cannot delete a zone, so it remains, empty."""
        mirror, exists = self._read(self._provider(), Zone(name), target=True, lenient=True)
        root_ns = mirror.zone.root_ns
        deletes = [changes.delete(rrset) for rrset in mirror.zone
                   if self.supports(rrset) and (rrset != root_ns or self.SUPPORTS_ROOT_NS)]
        if exists and deletes:
            empty = mirror.zone.empty()
            plan_mirror = PlanMirror(self._provider(), mirror, ZoneMirror.of(empty))
            self.apply(OctodnsPlan(mirror.zone, empty, changes.ordered(deletes), True, mirror=plan_mirror))

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        provider = self._provider()
        if hasattr(provider, 'list_zones'):
            return dict.fromkeys(self._list_zones(provider)), True
        return {name: None for name in names if self._read(provider, Zone(name), target=True, lenient=True)[1]}, False

    def ping(self) -> None:
        """List the zones, or read the last one that was planned: octoDNS has no cheaper request."""
        if hasattr(self.wrapped, 'list_zones'):
            self._list_zones(self._provider())
        elif self._last_planned is not None:
            self._read(self._provider(), Zone(self._last_planned), target=True, lenient=True)

    def _provider(self) -> Any:
        timeout = {'timeout': self.timeout} if accepts(self._cls, 'timeout') else {}
        with self._translated_errors():
            return self._configured(self._cls(self.id, **{**timeout, **self._kwargs}))

    def _read_error(self, error: Exception) -> PoolError:
        return backend_error(error)


class _ProcessorBridge:
    """A processor for octoDNS's ``plan()`` that runs our processors, and records the zones."""

    lenient = False

    def __init__(self, provider: AdaptedProvider, desired: ZoneMirror, processors: Sequence[BaseProcessor]) -> None:
        self.id = self.name = 'designate-pool'
        self.desired = self.existing = desired
        self._provider = provider
        self._processors = processors
        self._like = desired.zone

    def process_target_zone(self, existing: Any, target: Any, lenient: bool = False) -> Any:
        self.existing = ZoneMirror.of_octodns(existing, self._like)
        zone = self.existing.zone.copy()
        for processor in self._processors:
            zone = processor.process_target_zone(zone, target=self._provider, lenient=lenient)
        return self.existing.to_octodns(zone)

    def process_source_and_target_zones(self, desired: Any, existing: Any, target: Any,
                                        lenient: bool = False) -> tuple[Any, Any]:
        ours = self.desired.from_octodns(desired).copy(), self.existing.from_octodns(existing).copy()
        for processor in self._processors:
            ours = processor.process_source_and_target_zones(*ours, self._provider, lenient=lenient)
        return self.desired.to_octodns(ours[0]), self.existing.to_octodns(ours[1])


class AdaptedProcessor(BaseProcessor):
    """A processor of octoDNS."""

    def __init__(self, id: str, cls: type, kwargs: Mapping[str, Any]) -> None:
        self.wrapped: Any = instantiate(id, cls, kwargs)
        super().__init__(id=id, lenient=bool(self.wrapped.lenient))

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        return self._process('process_source_zone', lenient, desired, sources=list(map(_octodns_source, sources)))[0]

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        return self._process('process_target_zone', lenient, existing, target=_octodns_source(target))[0]

    def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                        lenient: bool = False) -> tuple[Zone, Zone]:
        first, second = self._process('process_source_and_target_zones', lenient, desired, existing,
                                      target=_octodns_source(target))
        return first, second

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        if not self._has('process_plan'):
            return plan
        if plan is None:
            created = self._process_plan(None, sources, target, lenient)
            return None if created is None else plan_from_octodns(created, target.id, target.min_existing_records)
        mirror = PlanMirror.of(plan)
        converted, others = mirror.convertible(plan.changes)
        before = mirror.octodns_plan(plan, converted)
        changes_before = list(before.changes)
        after = self._process_plan(before, sources, target, lenient)
        if after is before and after.changes == changes_before:
            return plan
        if after is None:
            # The processor did not see the blocked changes, nor those that octoDNS cannot represent.
            return dataclasses.replace(plan, changes=join_replaces(others)) if others or plan.blocked else None
        return dataclasses.replace(
            plan, existing=mirror.existing.from_octodns(after.existing),
            desired=mirror.desired.from_octodns(after.desired),
            changes=join_replaces([*others, *map(mirror.from_octodns, after.changes)]), exists=bool(after.exists),
            update_pcent_threshold=after.update_pcent_threshold, meta=after.meta,
            delete_pcent_threshold=after.delete_pcent_threshold)

    def _process(self, hook: str, lenient: bool, *zones: Zone, **kwargs: Any) -> Sequence[Zone]:
        """*zones* as a hook for zones returns them; themselves if the processor does not have the hook."""
        if not self._has(hook):
            return zones
        mirrors = [ZoneMirror.of(zone) for zone in zones]
        processed = self._call(hook, lenient, *(mirror.octodns_zone for mirror in mirrors), **kwargs)
        return [mirror.from_octodns(octodns_zone) for mirror, octodns_zone in zip(
            mirrors, processed if isinstance(processed, tuple) else (processed,), strict=True)]

    def _process_plan(self, plan: Any, sources: Sequence[BaseSource], target: BaseProvider, lenient: bool) -> Any:
        return self._call('process_plan', lenient, plan, sources=list(map(_octodns_source, sources)),
                          target=_octodns_source(target))

    def _has(self, hook: str) -> bool:
        return getattr(type(self.wrapped), hook) is not getattr(octodns('processor.base').BaseProcessor, hook)

    def _call(self, hook: str, lenient: bool, *args: Any, **kwargs: Any) -> Any:
        method = getattr(self.wrapped, hook)
        try:
            return method(*args, **kwargs, **lenient_argument(method, lenient))
        except PoolError:
            raise
        except Exception as error:
            raise ProcessorException(processor=self.id, why=error_text(error)) from error


def _octodns_source(source: BaseSource) -> Any:
    """octoDNS's object of *source*; for others, an object with the attributes that octoDNS's processors use."""
    if hasattr(source, 'wrapped'):
        return source.wrapped
    all_types = octodns('record').Record.registered_types()
    return types.SimpleNamespace(
        id=source.id, SUPPORTS=set(all_types if source.SUPPORTS is None else source.SUPPORTS),
        supports=lambda record: source.supports(RRset(record.fqdn, record._type, record.ttl, ())),
        **{name: getattr(source, name) for name in map('SUPPORTS_{}'.format, FEATURES)})


def class_of(cls: str | type, base: str) -> type:
    """The class *cls*; InvalidField unless it can be imported and is a subclass of octoDNS's *base*."""
    module, _, name = base.rpartition('.')
    base_class: type = getattr(octodns(module), name)
    for registry in (octodns('record').Record.validators, octodns('zone').Zone.validators):
        if not registry.configured:
            # octoDNS's own default; enabled here to avoid its warning about missing configuration.
            registry.enable_sets(['legacy'])
    loaded: Any = cls
    if isinstance(cls, str):
        path, _, last = cls.rpartition('.')
        try:
            loaded = getattr(importlib.import_module(path), last)
        except (ImportError, ValueError, AttributeError) as error:
            raise InvalidField(field='class', why=f'{cls!r} cannot be imported: {error_text(error)}') from error
    if not (isinstance(loaded, type) and issubclass(loaded, base_class)):
        raise InvalidField(field='class', why=f'{cls!r} is no subclass of octoDNS\'s {name}')
    return loaded


def instantiate(id: str, cls: type, kwargs: Mapping[str, Any]) -> Any:
    """An object of octoDNS's class *cls*; InvalidField when that does not take *kwargs*."""
    try:
        return cls(id, **kwargs)
    except Exception as error:
        raise InvalidField(field=id,
                           why=f'{cls.__module__}.{cls.__name__} cannot be created: {error_text(error)}') from error


def lenient_argument(method: Any, lenient: bool) -> dict[str, bool]:
    """The argument *lenient*, if the method accepts it; older sources and processors do not."""
    return {'lenient': lenient} if accepts(method, 'lenient') else {}


def accepts(function: Any, name: str) -> bool:
    """Whether a function or class accepts an argument *name*, by its signature."""
    is_class = isinstance(function, type)
    # A constructor passes other arguments on to those of the base classes.
    for called in [vars(base)['__init__'] for base in function.__mro__ if '__init__' in vars(base)] if is_class \
            else [function]:
        parameters = inspect.signature(called).parameters
        if name in parameters:
            return True
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            return False
    return not is_class


def resolve_env(value: Any, environ: Mapping[str, str]) -> Any:
    """*value* with ``env/NAME`` and ``env/NAME/default`` replaced; InvalidField if unset with no default."""
    if isinstance(value, dict):
        return {key: resolve_env(item, environ) for key, item in value.items()}
    if not isinstance(value, str) or not value.startswith('env/'):
        return value
    name, slash, default = value.removeprefix('env/').partition('/')
    if name not in environ and not slash:
        raise InvalidField(field='settings', why=f'the environment has no variable {name}')
    return environ.get(name, default)
