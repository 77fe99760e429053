"""Where zones come from and go to: sources, providers (sources that can also be written), processors.

The public methods tell the lifecycle; a subclass writes ``_populate``, ``_apply`` and, where it needs them, the hooks.
The hooks are called what octoDNS calls them, and in its order, with the same arguments.  What they are given is not
octoDNS's: zones hold :class:`~designate_pool.protocol.rrset.RRset`, which are changed by ``_replace``, with
absolute names and data as in a zone file; a change has tuples of what is there and of what comes.  So a provider of
octoDNS cannot be moved here as it is, and need not be: :mod:`designate_pool.planner.octodns.adapter` runs it unchanged.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from designate_pool.errors import SupportsException
from designate_pool.planner.plan.plan import (MAX_SAFE_DELETE_PCENT, MAX_SAFE_UPDATE_PCENT, MIN_EXISTING_RECORDS,
                                              ApplyResult, Plan)
from designate_pool.planner.zone import changes, dynamic_answers
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import GENERATED, RRset


class BaseSource:
    """Something that zones can be read from.

    :param id: the user's word for it
    :cvar SUPPORTS: types that it can hold; None for all that can be planned
    :cvar SUPPORTS_SOA: whether the SOA is part of what it gives and takes; without it the SOA is left out of plans
    """

    SUPPORTS: ClassVar[frozenset[str] | None] = None
    SUPPORTS_SOA: ClassVar[bool] = False
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
        """Add to *zone* what is here of it: all of it, or an error and nothing.

        :param target: whether it is read as what a plan is to change
        :param lenient: whether records that break a rule of zones are taken all the same
        :returns: whether the zone exists here
        :raises SourceError: when it cannot be read to its end
        """
        return self._populate(zone, target, lenient)

    def supports(self, rrset: RRset) -> bool:
        """Whether it can hold records of this type."""
        return self._supports_type(rrset.type)

    def list_zones(self) -> list[str]:
        """The names of all zones here, for configurations that say ``*``.

        :raises SupportsException: where they cannot be listed
        """
        raise SupportsException(target=self.id, why='it cannot list its zones, so they have to be named')

    def close(self) -> None:
        """Let go of connections."""

    def _supports_type(self, rtype: str) -> bool:
        if rtype == 'SOA':
            return self.SUPPORTS_SOA
        return rtype in self.SUPPORTS if self.SUPPORTS is not None else rtype not in GENERATED

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        raise NotImplementedError


class BaseProcessor:
    """Changes what is between sources and targets; each hook gets what the one before it gave back.

    :param name: the older word for *id*; one of the two has to be given
    :param lenient: whether its changes of zones may break a rule of zones
    """

    def __init__(self, name: str | None = None, lenient: bool = False, *, id: str | None = None) -> None:
        found = id if id is not None else name
        if found is None:
            raise TypeError('a processor needs an id')
        self.id: str = found
        self.lenient = lenient
        self.log = logging.getLogger(f'{type(self).__module__}.{type(self).__name__}')

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        """Called once a zone, after all sources; *sources* may be empty (zones that are aliases of others)."""
        return desired

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        """Called for each target with what it has."""
        return existing

    def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                        lenient: bool = False) -> tuple[Zone, Zone]:
        """Called for each target with both sides; gives both back."""
        return desired, existing

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        """Called for each target with its plan, or None where nothing is to be done; gives either back."""
        return plan


class BaseProvider(BaseSource):
    """A source that plans can be applied to.

    :param apply_disabled: plans are made and not applied
    :param update_pcent_threshold: the fraction of the RRsets there that one plan may update without force
    :param delete_pcent_threshold: the same for deletes
    :param strict_supports: whether what it cannot hold is an error; without it, it is logged and left out
    :param root_ns_warnings: whether to log that the zone's own NS records are missing, or left out
    :param min_existing_records: with fewer RRsets there, fractions say nothing and are not looked at
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
        """What has to change here so that the zone is as *desired*; None when nothing has to.

        :raises SupportsException: when *desired* has what cannot be held here, and that is an error
        :raises SourceError: when what is here cannot be read to its end
        """
        existing = desired.empty()
        existing.share_values_with(desired)
        exists = self.populate(existing, target=True, lenient=True)
        existing.share_values_with(None)
        desired = self._process_desired_zone(desired.copy())
        existing = self._process_existing_zone(existing, desired, lenient=lenient)
        for processor in processors:
            existing = processor.process_target_zone(existing, target=self, lenient=lenient)
        for processor in processors:
            desired, existing = processor.process_source_and_target_zones(desired, existing, self, lenient=lenient)
        found = [change for change in changes.between(existing, desired, self.id, self.supports)
                 if self._include_change(change)]
        found = changes.ordered([*found, *self._extra_changes(existing, desired, found)])
        meta = self._plan_meta(existing, desired, found)
        if not found and not meta and exists:
            return None
        return Plan(existing, desired, found, exists, self._threshold('update_pcent_threshold', desired),
                    self._threshold('delete_pcent_threshold', desired), meta, target_id=self.id,
                    min_existing_records=self.min_existing_records,
                    managed_types=None if self.SUPPORTS is None else self.SUPPORTS)

    def apply(self, plan: Plan) -> ApplyResult:
        """Make the changes of *plan*, in their order.

        :returns: how many were made; what failed is in it, unless nothing could be tried at all
        """
        if self.apply_disabled:
            self.log.info('%s: apply is disabled; %d changes of %s are not made', self.id, len(plan.changes), plan.zone)
            return ApplyResult()
        found = self._apply(plan)
        return ApplyResult(applied=len(plan.changes)) if found is None else found

    def supports_warn_or_except(self, msg: str, fallback: str) -> None:
        """
        :raises SupportsException: unless ``strict_supports`` is off; then it is logged with what is done instead
        """
        if self.strict_supports:
            raise SupportsException(target=self.id, why=msg)
        self.log.warning('%s: %s; %s', self.id, msg, fallback)

    def _process_desired_zone(self, desired: Zone) -> Zone:
        """Leave out of *desired*, a copy, what cannot be held here; who overrides it calls it as well."""
        for rrset in desired.of_types(self._special_types(desired.types), with_extras=True):
            if rrset.type == 'SOA' and not self.SUPPORTS_SOA or rrset.type in GENERATED:
                desired.remove_record(rrset)
            elif not rrset.extra.is_for(self.id):
                continue
            elif not self.supports(rrset):
                self.supports_warn_or_except(f'it cannot hold {rrset.name} {rrset.type}', 'it is left out')
                desired.remove_record(rrset)
            else:
                self._fit(desired, rrset)
        self._process_root_ns(desired)
        return desired

    def _process_existing_zone(self, existing: Zone, desired: Zone, lenient: bool = False) -> Zone:
        """Leave out of *existing* what is not to be compared; *desired* is to read.  Who overrides it calls it too."""
        # A zone is never without a SOA: where none is given, the server minds its own.
        soa = self.SUPPORTS_SOA and desired.get(desired.name, 'SOA') is not None
        for rrset in existing.of_types({'SOA', *GENERATED}):
            if rrset.type == 'SOA' and not soa or rrset.type in GENERATED:
                existing.remove_record(rrset)
        root_ns = existing.root_ns
        if root_ns is not None and (not self.SUPPORTS_ROOT_NS or desired.root_ns is None):
            self.log.debug('%s: the NS records of %s itself are left alone', self.id, existing.name)
            existing.remove_record(root_ns)
        return existing

    def _include_change(self, change: Change) -> bool:
        """Whether *change* is a real one."""
        return True

    def _extra_changes(self, existing: Zone, desired: Zone, changes: Sequence[Change]) -> Sequence[Change]:
        """Changes that comparing the zones did not find."""
        return ()

    def _plan_meta(self, existing: Zone, desired: Zone, changes: Sequence[Change]) -> Mapping[str, Any] | None:
        """What is to change beside records, or is to be shown with the plan; fit for JSON."""
        return None

    def _apply(self, plan: Plan) -> ApplyResult | None:
        """Make the changes; None says that all are made.

        What is there already as it should be is success: a plan that was interrupted is applied again.
        """
        raise NotImplementedError(f'{type(self).__name__} has no _apply')

    def _special_types(self, types: Collection[str]) -> Collection[str]:
        """Those whose RRsets have to be looked at one by one before they can be planned."""
        if type(self).supports is not BaseSource.supports:
            return types  # it may support some of a type and not others
        special = {'SOA', *GENERATED} if self.SUPPORTS_MULTIVALUE_PTR else {'SOA', 'PTR', *GENERATED}
        return [rtype for rtype in types if rtype in special or not self._supports_type(rtype)]

    def _fit(self, desired: Zone, rrset: RRset) -> None:
        """Put a simpler RRset in the place of one with features that are not known here."""
        if rrset.extra.dynamic is not None and (fitting := self._fitting(rrset)) != rrset.extra.dynamic:
            rrset = rrset._replace(extra=dataclasses.replace(rrset.extra, dynamic=fitting))
            desired.add_record(rrset, replace=True, lenient=True)
        if rrset.type == 'PTR' and len(rrset.rdatas) > 1 and not self.SUPPORTS_MULTIVALUE_PTR:
            self.supports_warn_or_except(f'it can hold one PTR record at {rrset.name} only',
                                         f'{rrset.rdatas[0]} is used')
            desired.add_record(rrset._replace(rdatas=rrset.rdatas[:1]), replace=True, lenient=True)

    def _fitting(self, rrset: RRset) -> Mapping[str, Any] | None:
        """What can be held here of the answers of *rrset* that depend on who asks; None for nothing."""
        what = f'{rrset.name} {rrset.type}'
        found = dict(rrset.extra.dynamic or {})
        geo = {'geo': found.pop('geo')} if 'geo' in found else {}
        if geo and not self.SUPPORTS_GEO:
            self.supports_warn_or_except(f'it cannot hold {what} with answers by place', 'its plain data is used')
            geo = {}
        if found and not self.SUPPORTS_DYNAMIC:
            self.supports_warn_or_except(f'it cannot hold {what} with dynamic answers', 'its plain data is used')
            found = {}
        if found and not self.SUPPORTS_POOL_VALUE_STATUS:
            fitting, pools = dynamic_answers.without_status(found)
            if pools:
                self.supports_warn_or_except(f'it cannot hold a status of values in pools {", ".join(pools)} of {what}',
                                             'their health decides')
                found = fitting
        if found and not self.SUPPORTS_DYNAMIC_SUBNETS:
            fitting, rules = dynamic_answers.without_subnets(found)
            if rules:
                self.supports_warn_or_except(f'it cannot hold subnets in rules {", ".join(map(str, rules))} of {what}',
                                             'their places alone are used, or they are left out')
                found = fitting
        return {**found, **geo} or None

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


class ServerProvider(BaseProvider):
    """A provider that is one DNS server, as the drivers of servers that are fed by records need it.

    Its methods raise :class:`~designate_pool.errors.BackendError` and its kin, or OSError.

    :ivar timeout: seconds that one request may take
    """

    timeout: float = 10.0

    def apply(self, plan: Plan) -> ApplyResult:
        if not plan.exists and not self.apply_disabled:
            self.create_zone(plan.desired)
        return super().apply(plan)

    def create_zone(self, desired: Zone) -> None:
        """Have the server be ready to be given the records of *desired*; a zone that is there is left as it is."""
        raise NotImplementedError

    def delete_zone(self, name: str) -> None:
        """Have the server hold nothing of the zone, whoever put it there: asked for only where all of it is ours.

        What cannot be without a zone may stay, where zones cannot be removed.
        """
        raise NotImplementedError

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        """Names of zones there with the serials that they have; whether these are all, or those of *names*."""
        raise NotImplementedError

    def ping(self) -> None:
        """Ask as cheaply as can be whether the server would take changes."""
        raise NotImplementedError
