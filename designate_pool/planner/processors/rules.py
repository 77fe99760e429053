"""Rules for the contents of a zone, and small modifications."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from designate_pool.errors import ProcessorException
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.plan.policy import DEFAULT, Policy, parse
from designate_pool.planner.processors import filters
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, BaseSource
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset

WEEK = 7 * 24 * 3600


class TtlClamp(BaseProcessor):
    """Limits TTLs, except that of the SOA, to a range of seconds."""

    def __init__(self, id: str, min_ttl: int = 300, max_ttl: int = 86400, lenient: bool = False) -> None:
        super().__init__(id, lenient)
        self.min_ttl, self.max_ttl = _limits(id, min_ttl, max_ttl)

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        for rrset in desired:
            ttl = max(self.min_ttl, min(self.max_ttl, rrset.ttl))
            if ttl != rrset.ttl and rrset.type != 'SOA':
                desired.add_record(rrset._replace(ttl=ttl), replace=True, lenient=self.lenient or lenient)
        return desired


class TtlRestriction(BaseProcessor):
    """Refuses TTLs that are not allowed, except that of the SOA and of records with ``octodns: lenient``.

    :param min_ttl: seconds
    :param max_ttl: seconds
    :param allowed_ttls: the only allowed TTLs; the other two options are then ignored
    """

    def __init__(self, id: str, min_ttl: int = 1, max_ttl: int = WEEK, allowed_ttls: Iterable[object] | None = None,
                 lenient: bool = False) -> None:
        super().__init__(id, lenient)
        self.min_ttl, self.max_ttl = _limits(id, min_ttl, max_ttl)
        self.allowed_ttls = frozenset(filters.whole_number(id, 'allowed_ttls', ttl)
                                      for ttl in filters.string_list(id, 'allowed_ttls', allowed_ttls or ()))

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        for rrset in desired:
            why = self._why_not(rrset.ttl)
            if why is not None and rrset.type != 'SOA' and not (rrset.extra.octodns or {}).get('lenient'):
                raise ProcessorException(processor=self.id,
                                         why=f'the TTL {rrset.ttl} of {rrset.name} {rrset.type} {why}')
        return desired

    def _why_not(self, ttl: int) -> str | None:
        if self.allowed_ttls:
            allowed = ', '.join(map(str, sorted(self.allowed_ttls)))
            return None if ttl in self.allowed_ttls else f'is none of {allowed}'
        if ttl < self.min_ttl:
            return f'is under {self.min_ttl}'
        return f'is over {self.max_ttl}' if ttl > self.max_ttl else None


class ExcludeRootNsChanges(BaseProcessor):
    """Forbids changes of the NS records of the apex.

    :param error: whether such a change is an error; otherwise it is removed from the plan and logged
    """

    def __init__(self, id: str, error: bool = True, lenient: bool = False) -> None:
        super().__init__(id, lenient)
        self.error = error

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        if plan is None:
            return None
        root_ns = [change for change in plan.changes
                   if any(rrset.type == 'NS' and rrset.name == plan.zone for rrset in (*change.existing, *change.new))]
        if not root_ns:
            return plan
        if self.error:
            raise ProcessorException(processor=self.id, why=f'{root_ns[0]}: the NS records of {plan.zone} itself would '
                                                            f'change')
        self.log.warning('%s: not changed on %s: %s', self.id, plan.target_id, ', '.join(map(str, root_ns)))
        remaining = dataclasses.replace(plan, changes=[change for change in plan.changes if change not in root_ns])
        return None if remaining.is_empty else remaining


class EmptyZoneGuard(BaseProcessor):
    """Refuses a zone for which the sources have no or too few records.

    :param min_records: how many RRsets it must have, not counting the SOA and NS records of the apex
    """

    def __init__(self, id: str, min_records: int = 1, lenient: bool = False) -> None:
        super().__init__(id, lenient)
        self.min_records = filters.whole_number(id, 'min_records', min_records)

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        count = len(desired) - sum(f'{desired.name}\t{rtype}' in desired for rtype in ('SOA', 'NS'))
        if count < self.min_records:
            raise ProcessorException(processor=self.id,
                                     why=f'the sources hold {count} RRsets for {desired.name}, its SOA and NS not '
                                         f'counted; it must have at least {self.min_records}')
        return desired


class AcmeManaging(BaseProcessor):
    """Shares the names of ACME challenges with other clients that create TXT records there.

    Our RRsets are marked with an additional string ``*octoDNS*``, as in octoDNS.  RRsets of the target without the
    mark that are not in the sources belong to others, and are not managed.
    """

    MARK = '"*octoDNS*"'

    def process_source_zone(self, desired: Zone, sources: Sequence[BaseSource], lenient: bool = False) -> Zone:
        for rrset in desired:
            if _is_challenge(rrset) and self.MARK not in rrset.rdatas:
                marked = rrset._replace(rdatas=tuple(sorted((*rrset.rdatas, self.MARK))))
                desired.add_record(marked, replace=True, lenient=self.lenient or lenient)
        return desired

    def process_source_and_target_zones(self, desired: Zone, existing: Zone, target: BaseProvider,
                                        lenient: bool = False) -> tuple[Zone, Zone]:
        for rrset in existing:
            if _is_challenge(rrset) and self.MARK not in rrset.rdatas and rrset.key not in desired:
                self.log.info('%s: %s is not managed', self.id, rrset.name)
                existing.remove_record(rrset)
        return desired, existing


class EnsureTrailingDots(BaseProcessor):
    """Does nothing, since all names have their final dots here."""


def _limits(processor: str, min_ttl: object, max_ttl: object) -> tuple[int, int]:
    low, high = filters.whole_number(processor, 'min_ttl', min_ttl), filters.whole_number(processor, 'max_ttl', max_ttl)
    if low > high:
        raise ProcessorException(processor=processor, why=f'min_ttl {low} is over max_ttl {high}')
    return low, high


def _is_challenge(rrset: RRset) -> bool:
    return rrset.type == 'TXT' and rrset.name.startswith('_acme-challenge')


class PolicyProcessor(BaseProcessor):
    """Blocks the changes that a policy does not allow; must be the last processor, so that it sees all changes.

    A plan for a missing zone whose changes are all blocked must not be applied, since that would create the zone.

    :param policy: the policy, or its names; several policies allow what each of them allows
    """

    def __init__(self, id: str, policy: Policy | str | Sequence[str] = DEFAULT, lenient: bool = False) -> None:
        super().__init__(id, lenient)
        self.policy = policy if isinstance(policy, Policy) else parse(policy)

    def process_plan(self, plan: Plan | None, sources: Sequence[BaseSource], target: BaseProvider,
                     lenient: bool = False) -> Plan | None:
        if plan is None:
            return None
        allowed, blocked = self.policy.split(plan.changes)
        if not blocked:
            return plan
        return dataclasses.replace(plan, changes=allowed, blocked=(*plan.blocked, *blocked))
