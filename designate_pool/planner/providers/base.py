"""Base classes of sources, providers (sources that can also be written) and processors.

The public methods implement the lifecycle; a subclass implements ``_populate``, ``_apply`` and, if needed, the hooks.
The hooks have octoDNS's names, order and arguments, but not its types: zones hold immutable
:class:`~designate_pool.protocol.rrset.RRset` (use ``_replace``) with absolute names and data as in a zone file, and a
change has tuples of existing and of new RRsets.  A provider of octoDNS does not run as a subclass of these;
:mod:`designate_pool.planner.octodns.adapter` runs it unchanged.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from designate_pool.errors import SupportsException
from designate_pool.planner.plan.plan import (MAX_SAFE_DELETE_PCENT, MAX_SAFE_UPDATE_PCENT, MIN_EXISTING_RECORDS,
                                              ApplyResult, Plan)
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import GENERATED, lies_in
from designate_pool.protocol.rrset import RRset

#: Types that octoDNS has and DNS has not; octoDNS's providers alone can hold them.
NOT_DNS = frozenset({'ALIAS', 'URLFWD'})
#: The status of a value of dynamic answers that is used while it is healthy.
_OBEY = 'obey'


class BaseSource:
    """A source of zones.

    :cvar SUPPORTS: types that it can hold; None for all that can be planned
    :cvar SUPPORTS_SOA: whether the SOA is read and written; otherwise it is not part of plans
    :cvar SUPPORTS_BROKEN_RULES: whether it holds what no DNS server takes, such as a CNAME beside other records
    :cvar SUPPORTS_OCTODNS: whether settings for octoDNS's providers (``octodns:`` in YAML) are kept with records;
        otherwise they are not part of plans
    """

    SUPPORTS: ClassVar[frozenset[str] | None] = None
    SUPPORTS_SOA: ClassVar[bool] = False
    SUPPORTS_OCTODNS: ClassVar[bool] = False
    SUPPORTS_BROKEN_RULES: ClassVar[bool] = False
    SUPPORTS_GEO: ClassVar[bool] = False
    SUPPORTS_DYNAMIC: ClassVar[bool] = False
    SUPPORTS_POOL_VALUE_STATUS: ClassVar[bool] = False
    SUPPORTS_DYNAMIC_SUBNETS: ClassVar[bool] = False
    SUPPORTS_MULTIVALUE_PTR: ClassVar[bool] = True
    SUPPORTS_ROOT_NS: ClassVar[bool] = True

    def __init__(self, id: str) -> None:
        self.id = id
        self.log = logging.getLogger(f'{type(self).__module__}.{type(self).__name__}')

    def populate(self, zone: Zone, target: bool = False, lenient: bool = False) -> bool:
        """Add this source's records to *zone*: all of them, or none and an error.

        :param lenient: whether records that break a rule of zones are accepted
        :raises SourceError: when it cannot be read completely; a server may raise BackendError instead
        """
        return self._populate(zone, target, lenient)

    def supports(self, rrset: RRset) -> bool:
        """Whether it can hold records of this type."""
        return self._supports_type(rrset.type)

    def list_zones(self) -> list[str]:
        """The names of all its zones, for ``*`` in the configuration; SupportsException if it cannot tell."""
        raise SupportsException(target=self.id, why='it cannot list its zones, so they have to be named')

    def close(self) -> None:
        """Close connections."""

    def _supports_type(self, rtype: str) -> bool:
        if rtype == 'SOA':
            return self.SUPPORTS_SOA
        return rtype in self.SUPPORTS if self.SUPPORTS is not None else rtype not in GENERATED | NOT_DNS

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        raise NotImplementedError


def without_octodns(zone: Zone, rrset: RRset) -> RRset:
    """Replace *rrset* in *zone* by the same without settings for octoDNS's providers; returns that."""
    plain = rrset._replace(extra=dataclasses.replace(rrset.extra, octodns=None))
    zone.add_record(plain, replace=True, lenient=True)
    return plain


class BaseProcessor:
    """Modifies zones and plans between sources and targets; each hook gets the result of the previous processor.

    :param name: an old name of *id*; one of the two is required
    :param lenient: whether its changes may break a rule of zones
    """

    def __init__(self, name: str | None = None, lenient: bool = False, *, id: str | None = None) -> None:
        own_id = id if id is not None else name
        if own_id is None:
            raise TypeError('a processor needs an id')
        self.id: str = own_id
        self.lenient = lenient
        self.log = logging.getLogger(f'{type(self).__module__}.{type(self).__name__}')

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        """Called once for a zone, after all sources; *sources* is empty for an alias."""
        return desired

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        """Called for each target with its zone."""
        return existing

    def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                        lenient: bool = False) -> tuple[Zone, Zone]:
        """Called for each target with both zones; returns both."""
        return desired, existing

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        """Called for each target with its plan, or None for no changes; returns either."""
        return plan


class BaseProvider(BaseSource):
    """A source that plans can be applied to.

    :param apply_disabled: plans are made and not applied
    :param update_pcent_threshold: the fraction of the existing RRsets that one plan may update without force
    :param delete_pcent_threshold: the same for deletes
    :param strict_supports: whether unsupported records are an error; otherwise they are logged and left out
    :param root_ns_warnings: whether to log that the NS records of the apex are missing, or left out
    :param min_existing_records: with fewer existing RRsets, the fractions are not checked
    """

    def __init__(self, id: str, apply_disabled: bool = False, update_pcent_threshold: float = MAX_SAFE_UPDATE_PCENT,
                 delete_pcent_threshold: float = MAX_SAFE_DELETE_PCENT, strict_supports: bool = True,
                 root_ns_warnings: bool = True, min_existing_records: int = MIN_EXISTING_RECORDS) -> None:
        super().__init__(id)
        self.apply_disabled = apply_disabled
        self.update_pcent_threshold = update_pcent_threshold
        self.delete_pcent_threshold = delete_pcent_threshold
        self.strict_supports = strict_supports
        self.root_ns_warnings = root_ns_warnings
        self.min_existing_records = min_existing_records

    def plan(self, desired: Zone, processors: Sequence[BaseProcessor] = (), lenient: bool = False) -> Plan | None:
        """The plan that gives the zone the contents of *desired*; None for no changes.

        :raises SupportsException: when *desired* has unsupported records, and that is an error
        :raises SourceError: when the existing zone cannot be read completely
        """
        existing = desired.empty()
        exists = self.populate(existing, target=True, lenient=True)
        before = desired.packed
        desired = self._process_desired_zone(self._without_other_types(desired, lenient))
        left_out = before.keys() - desired.packed.keys()
        existing = self._process_existing_zone(existing, desired, lenient=lenient)
        for processor in processors:
            existing = processor.process_target_zone(existing, target=self, lenient=lenient)
        for processor in processors:
            desired, existing = processor.process_source_and_target_zones(desired, existing, self, lenient=lenient)
        planned = [change for change in changes.between(existing, desired, self.id, self.supports)
                   if self._include_change(change)
                   # A record that cannot be written is no reason to delete the one that is there.
                   and left_out.isdisjoint(rrset.key for rrset in change.existing)
                   and not self._hides(change, left_out & existing.packed.keys())]
        planned = changes.ordered([*planned, *self._extra_changes(existing, desired, planned)])
        meta = self._plan_meta(existing, desired, planned)
        if not planned and not meta and exists:
            return None
        return Plan(existing, desired, planned, exists, self._threshold('update_pcent_threshold', desired),
                    self._threshold('delete_pcent_threshold', desired), meta, target_id=self.id,
                    min_existing_records=self.min_existing_records,
                    managed_types=None if self.SUPPORTS is None else self.SUPPORTS)

    def apply(self, plan: Plan) -> ApplyResult:
        """Make the changes of *plan*, in their order.

        :returns: how many were made, and what failed; if nothing could be tried, an exception is raised instead
        """
        if self.apply_disabled:
            self.log.info('%s: apply is disabled; %d changes of %s are not made', self.id, len(plan.changes), plan.zone)
            return ApplyResult()
        result = self._apply(plan)
        return ApplyResult(applied=len(plan.changes)) if result is None else result

    def supports_warn_or_except(self, msg: str, fallback: str) -> None:
        """Raise SupportsException with *msg* if ``strict_supports`` is on; else log *msg* and *fallback*."""
        if self.strict_supports:
            raise SupportsException(target=self.id, why=msg)
        self.log.warning('%s: %s; %s', self.id, msg, fallback)

    def _hides(self, change: Change, kept: Collection[str]) -> bool:
        """Whether *change* makes a DNAME above RRsets that stay, by their keys, which no server would take."""
        names = [name for name, _, _ in (key.partition('\t') for key in kept)
                 if name != change.name and lies_in(name, change.name)]
        hides = bool(names) and any(rrset.type == 'DNAME' for rrset in change.new)
        if hides:
            self.log.warning('%s: %s DNAME is left out, since %s stays', self.id, change.name, min(names))
        return hides

    def _without_other_types(self, desired: Zone, lenient: bool) -> Zone:
        """A copy of *desired*; of a *lenient* zone without types that DNS and this target do not have."""
        desired = desired.copy()
        for rrset in desired.of_types(NOT_DNS) if lenient else ():
            if not self.supports(rrset) and rrset.extra.is_for(self.id):
                self.log.warning('%s: %s %s is left out, since it is not a DNS type', self.id, rrset.name, rrset.type)
                desired.remove_record(rrset)
        return desired

    def _process_desired_zone(self, desired: Zone) -> Zone:
        """Remove from *desired*, a copy, what is not supported.  An override must call this method."""
        for rrset in desired.of_types(self._types_to_check(desired.types), with_extras=True):
            if rrset.type == 'SOA' and not self.SUPPORTS_SOA or rrset.type in GENERATED:
                desired.remove_record(rrset)
            elif not rrset.extra.is_for(self.id):
                continue
            elif not self.supports(rrset):
                self.supports_warn_or_except(f'it cannot hold {rrset.name} {rrset.type}', 'it is left out')
                desired.remove_record(rrset)
            else:
                self._simplify(desired, rrset)
        for rrset in () if self.SUPPORTS_BROKEN_RULES else desired.ruled():
            why = desired.broken_rule(rrset, self.id) if rrset.extra.is_for(self.id) else None
            if why is not None:
                self.supports_warn_or_except(f'it cannot hold {rrset.name} {rrset.type}: {why}', 'it is left out')
                desired.remove_record(rrset)
        self._process_root_ns(desired)
        return desired

    def _process_existing_zone(self, existing: Zone, desired: Zone, lenient: bool = False) -> Zone:
        """Remove from *existing* what is not to be compared with *desired*.  An override must call this method."""
        # A zone always has an SOA; if none is desired, the server manages its own.
        soa = self.SUPPORTS_SOA and desired.get(desired.name, 'SOA') is not None
        for rrset in existing.of_types({'SOA', *GENERATED}):
            if rrset.type == 'SOA' and not soa or rrset.type in GENERATED:
                existing.remove_record(rrset)
        root_ns = existing.root_ns
        if root_ns is not None and (not self.SUPPORTS_ROOT_NS or desired.root_ns is None):
            self.log.debug('%s: the NS records of %s itself are not managed', self.id, existing.name)
            existing.remove_record(root_ns)
        return existing

    def _include_change(self, change: Change) -> bool:
        """Whether *change* makes a difference on the target."""
        return True

    def _extra_changes(self, existing: Zone, desired: Zone, changes: Sequence[Change]) -> Sequence[Change]:
        """Changes that the comparison of the zones does not find."""
        return ()

    def _plan_meta(self, existing: Zone, desired: Zone, changes: Sequence[Change]) -> Mapping[str, Any] | None:
        """Changes of other things than records, or notes to be shown with the plan; must be valid JSON."""
        return None

    def _apply(self, plan: Plan) -> ApplyResult | None:
        """Make the changes; None means all. One already made is a success: interrupted plans are applied again."""
        raise NotImplementedError(f'{type(self).__name__} has no _apply')

    def _types_to_check(self, types: Collection[str]) -> Collection[str]:
        """Those of *types* whose RRsets must be checked one by one before planning."""
        if type(self).supports is not BaseSource.supports:
            return types  # it may support some of a type and not others
        special = {'SOA', *GENERATED} if self.SUPPORTS_MULTIVALUE_PTR else {'SOA', 'PTR', *GENERATED}
        return [rtype for rtype in types if rtype in special or not self._supports_type(rtype)]

    def _simplify(self, desired: Zone, rrset: RRset) -> None:
        """Replace an RRset with unsupported features by a simpler one."""
        if rrset.extra.octodns is not None and not self.SUPPORTS_OCTODNS:
            rrset = without_octodns(desired, rrset)
        if rrset.extra.dynamic is not None and (dynamic := self._supported_dynamic(rrset)) != rrset.extra.dynamic:
            rrset = rrset._replace(extra=dataclasses.replace(rrset.extra, dynamic=dynamic))
            desired.add_record(rrset, replace=True, lenient=True)
        if rrset.type == 'PTR' and len(rrset.rdatas) > 1 and not self.SUPPORTS_MULTIVALUE_PTR:
            self.supports_warn_or_except(f'it can hold one PTR record at {rrset.name} only',
                                         f'{rrset.rdatas[0]} is used')
            desired.add_record(rrset._replace(rdatas=rrset.rdatas[:1]), replace=True, lenient=True)

    def _supported_dynamic(self, rrset: RRset) -> Mapping[str, Any] | None:
        """What is supported of the dynamic answers of *rrset*; None for nothing."""
        what = f'{rrset.name} {rrset.type}'
        dynamic = dict(rrset.extra.dynamic or {})
        geo = {'geo': dynamic.pop('geo')} if 'geo' in dynamic else {}
        if geo and not self.SUPPORTS_GEO:
            self.supports_warn_or_except(f'it cannot hold {what} with geo answers', 'its plain data is used')
            geo = {}
        if dynamic and not self.SUPPORTS_DYNAMIC:
            self.supports_warn_or_except(f'it cannot hold {what} with dynamic answers', 'its plain data is used')
            dynamic = {}
        for is_supported, simplify, part, instead in (
                (self.SUPPORTS_POOL_VALUE_STATUS, _without_status, 'a status of values in pools',
                 'their health decides'),
                (self.SUPPORTS_DYNAMIC_SUBNETS, _without_subnets, 'subnets in rules',
                 'their geos alone are used, or they are left out')):
            simpler, changed = simplify(dynamic) if dynamic and not is_supported else (dynamic, [])
            if changed:
                self.supports_warn_or_except(f'it cannot hold {part} {", ".join(changed)} of {what}', instead)
                dynamic = simpler
        return {**dynamic, **geo} or None

    def _process_root_ns(self, desired: Zone) -> None:
        root_ns = desired.root_ns
        if self.SUPPORTS_ROOT_NS:
            if root_ns is None and self.root_ns_warnings:
                self.log.warning('%s: no NS records are given for %s itself', self.id, desired.name)
        elif root_ns is not None:
            if self.strict_supports:
                raise SupportsException(target=self.id, why=f'it cannot hold the NS records of {desired.name} itself')
            if self.root_ns_warnings:
                self.log.warning('%s: it cannot hold the NS records of %s itself; they are left out', self.id,
                                 desired.name)
            desired.remove_record(root_ns)

    def _threshold(self, name: str, desired: Zone) -> float:
        of_zone: float | None = getattr(desired, name)
        own: float = getattr(self, name)
        return own if of_zone is None else of_zone


class ExistingRecorder(BaseProcessor):
    """Records the target's zone as the processors after it get it.

    :ivar existing: as it was read
    :ivar compared: after the processors of the target's zone
    """

    existing: Zone | None = None
    compared: Zone | None = None

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        self.existing = existing.copy()
        return existing

    def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                        lenient: bool = False) -> tuple[Zone, Zone]:
        self.compared = existing
        return desired, existing


class ServerProvider(BaseProvider):
    """A provider that is one DNS server, for drivers of servers fed by records.

    Its methods raise :class:`~designate_pool.errors.BackendError` or OSError.

    :cvar MARK_WILDCARD: what marks of owners have in their names for the label ``*``
    :ivar timeout: seconds that one request may take
    """

    MARK_WILDCARD: ClassVar[str] = '*'
    timeout: float = 10.0

    def apply(self, plan: Plan) -> ApplyResult:
        if not plan.exists and not self.apply_disabled:
            self.create_zone(plan.desired)
        return super().apply(plan)

    def create_zone(self, desired: Zone) -> None:
        """Prepare the server for the records of *desired*; an existing zone is left unchanged."""
        raise NotImplementedError

    def delete_zone(self, name: str) -> None:
        """Delete the zone, all of which is ours; of a server that cannot delete zones, what a zone needs may stay."""
        raise NotImplementedError

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        """The server's zones with their serials; and whether these are all, or only those of *names*."""
        raise NotImplementedError

    def ping(self) -> None:
        """Check with a cheap request whether the server would accept changes."""
        raise NotImplementedError


def plan_for(target: BaseProvider, desired: Zone, processors: Sequence[BaseProcessor] = (),
             sources: Sequence[BaseSource] = (), lenient: bool = False) -> Plan | None:
    """The plan that gives one target the contents of *desired*, after all processors; None for no changes."""
    plan = target.plan(desired, processors=processors, lenient=lenient)
    for processor in processors:
        plan = processor.process_plan(plan, sources, target, lenient=lenient)
    return plan


def _without_status(dynamic: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """*dynamic* without the status of values, and the names of the pools that this changes."""
    changed = [name for name, pool in _pools(dynamic).items()
               if any(value.get('status', _OBEY) != _OBEY for value in pool.get('values', ()))]
    pools = {name: {**pool, 'values': [{key: value for key, value in entry.items() if key != 'status'}
                                       for entry in pool.get('values', ())]} if name in changed else pool
             for name, pool in _pools(dynamic).items()}
    return {**dynamic, 'pools': pools}, changed


def _without_subnets(dynamic: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """*dynamic* without subnets in rules, and the numbers (from 1) of the rules that had some.

    A rule that also has geos keeps these; a rule without geos is removed, and so are pools that are no longer used.
    """
    rules, changed = [], []
    for number, rule in enumerate(dynamic.get('rules', ()), 1):
        if rule.get('subnets'):
            changed.append(str(number))
            rule = {key: value for key, value in rule.items() if key != 'subnets'} if rule.get('geos') else None
        rules += [] if rule is None else [rule]
    pools, used = _pools(dynamic), set()
    for rule in rules:
        name = rule.get('pool')
        while name in pools and name not in used:
            used.add(name)
            name = pools[name].get('fallback')
    kept = {name: pool for name, pool in pools.items() if name in used or not changed}
    return {**dynamic, 'pools': kept, 'rules': rules}, changed


def _pools(dynamic: Mapping[str, Any]) -> Mapping[str, Any]:
    pools: Mapping[str, Any] = dynamic.get('pools') or {}
    return pools
