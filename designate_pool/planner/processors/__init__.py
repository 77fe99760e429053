"""The processors, by name and by the path of the octoDNS class that each replaces."""

from __future__ import annotations

from designate_pool.planner.processors.filters import (IgnoreRootNs, NameAllow, NameReject, NetworkAllow, NetworkReject,
                                                       TypeAllow, TypeReject, ValueAllow, ValueReject, ZoneNameFilter)
from designate_pool.planner.processors.ownership import OctodnsOwnership, TxtOwnership
from designate_pool.planner.processors.rules import (AcmeManaging, EmptyZoneGuard, EnsureTrailingDots,
                                                     ExcludeRootNsChanges, PolicyProcessor, TtlClamp, TtlRestriction)
from designate_pool.planner.providers.base import BaseProcessor

#: Name, class, and the classes of octoDNS that it replaces.
_TABLE: tuple[tuple[str, type[BaseProcessor], tuple[str, ...]], ...] = (
    ('acme', AcmeManaging, ('acme.AcmeManagingProcessor', 'acme.AcmeMangingProcessor')),
    ('empty-zone-guard', EmptyZoneGuard, ()),
    ('exclude-root-ns-changes', ExcludeRootNsChanges, ('filter.ExcludeRootNsChanges',)),
    ('ignore-root-ns', IgnoreRootNs, ('filter.IgnoreRootNsFilter',)),
    ('name-allow', NameAllow, ('filter.NameAllowlistFilter',)),
    ('name-reject', NameReject, ('filter.NameRejectlistFilter',)),
    ('network-allow', NetworkAllow, ('filter.NetworkValueAllowlistFilter',)),
    ('network-reject', NetworkReject, ('filter.NetworkValueRejectlistFilter',)),
    ('octodns-ownership', OctodnsOwnership, ('ownership.OwnershipProcessor',)),
    ('ownership', TxtOwnership, ()),
    ('policy', PolicyProcessor, ()),
    ('trailing-dots', EnsureTrailingDots, ('trailing_dots.EnsureTrailingDots',)),
    ('ttl-clamp', TtlClamp, ('clamp.TtlClampProcessor',)),
    ('ttl-restriction', TtlRestriction, ('restrict.TtlRestrictionFilter',)),
    ('type-allow', TypeAllow, ('filter.TypeAllowlistFilter',)),
    ('type-reject', TypeReject, ('filter.TypeRejectlistFilter',)),
    ('value-allow', ValueAllow, ('filter.ValueAllowlistFilter',)),
    ('value-reject', ValueReject, ('filter.ValueRejectlistFilter',)),
    ('zone-name', ZoneNameFilter, ('filter.ZoneNameFilter',)),
)
PROCESSORS = {name: processor for word, processor, paths in _TABLE
              for name in (word, *(f'octodns.processor.{path}' for path in paths))}
