"""The processors, by name and by the path of the octoDNS class that each replaces."""

from __future__ import annotations

from designate_pool.planner.processors.filters import (DomainFilter, IgnoreRootNs, NameAllow, NameReject, NetworkAllow,
                                                       NetworkReject, TypeAllow, TypeReject, ValueAllow, ValueReject,
                                                       ZoneNameFilter)
from designate_pool.planner.processors.ownership import OctodnsOwnership, TxtOwnership
from designate_pool.planner.processors.rules import (AcmeManaging, EmptyZoneGuard, EnsureTrailingDots,
                                                     ExcludeRootNsChanges, PolicyProcessor, TtlClamp, TtlRestriction)
from designate_pool.planner.providers.base import BaseProcessor

PROCESSORS: dict[str, type[BaseProcessor]] = {
    'acme': AcmeManaging,
    'domain-filter': DomainFilter,
    'empty-zone-guard': EmptyZoneGuard,
    'exclude-root-ns-changes': ExcludeRootNsChanges,
    'ignore-root-ns': IgnoreRootNs,
    'name-allow': NameAllow,
    'name-reject': NameReject,
    'network-allow': NetworkAllow,
    'network-reject': NetworkReject,
    'octodns-ownership': OctodnsOwnership,
    'ownership': TxtOwnership,
    'policy': PolicyProcessor,
    'trailing-dots': EnsureTrailingDots,
    'ttl-clamp': TtlClamp,
    'ttl-restriction': TtlRestriction,
    'type-allow': TypeAllow,
    'type-reject': TypeReject,
    'value-allow': ValueAllow,
    'value-reject': ValueReject,
    'zone-name': ZoneNameFilter,
    'octodns.processor.acme.AcmeManagingProcessor': AcmeManaging,
    'octodns.processor.acme.AcmeMangingProcessor': AcmeManaging,
    'octodns.processor.clamp.TtlClampProcessor': TtlClamp,
    'octodns.processor.filter.ExcludeRootNsChanges': ExcludeRootNsChanges,
    'octodns.processor.filter.IgnoreRootNsFilter': IgnoreRootNs,
    'octodns.processor.filter.NameAllowlistFilter': NameAllow,
    'octodns.processor.filter.NameRejectlistFilter': NameReject,
    'octodns.processor.filter.NetworkValueAllowlistFilter': NetworkAllow,
    'octodns.processor.filter.NetworkValueRejectlistFilter': NetworkReject,
    'octodns.processor.filter.TypeAllowlistFilter': TypeAllow,
    'octodns.processor.filter.TypeRejectlistFilter': TypeReject,
    'octodns.processor.filter.ValueAllowlistFilter': ValueAllow,
    'octodns.processor.filter.ValueRejectlistFilter': ValueReject,
    'octodns.processor.filter.ZoneNameFilter': ZoneNameFilter,
    'octodns.processor.ownership.OwnershipProcessor': OctodnsOwnership,
    'octodns.processor.restrict.TtlRestrictionFilter': TtlRestriction,
    'octodns.processor.trailing_dots.EnsureTrailingDots': EnsureTrailingDots,
}
