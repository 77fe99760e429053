"""A zone: RRsets by name and type, copied on write.

A copy costs nothing until one of the two zones is changed, and a change of one never affects the other.  RRsets are
inside the zone, not in a sub-zone, and none is against the rules (:mod:`designate_pool.protocol.rules`); lenient
additions may break all of these but the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from designate_pool.errors import ZoneError
from designate_pool.model import names
from designate_pool.protocol import rules
from designate_pool.protocol.names_and_rdata import lies_in, normal_name
from designate_pool.protocol.rrset import NO_EXTRA, Extra, RRset, unpack


class Zone:
    """
    :param name: absolute
    :param sub_zones: names of delegated zones; only their NS and DS records are in this zone
    :param update_pcent_threshold: the fraction of RRsets that one plan may update; None for the target's default
    :param delete_pcent_threshold: the same for deletes
    """

    def __init__(self, name: str, sub_zones: Iterable[str] = (), update_pcent_threshold: float | None = None,
                 delete_pcent_threshold: float | None = None) -> None:
        self.name = normal_name(name)
        self.sub_zones = frozenset(normal_name(sub_zone) for sub_zone in sub_zones)
        self.update_pcent_threshold = update_pcent_threshold
        self.delete_pcent_threshold = delete_pcent_threshold
        self._rrsets: dict[str, str] = {}
        self._extras: dict[str, Extra] = {}
        self._types: set[str] = set()
        self._shared = False
        self._suffix = '.' if self.name == '.' else f'.{self.name}'

    def copy(self) -> Zone:
        """An equal zone that shares its contents with this one until one of them is changed."""
        copy = Zone.__new__(Zone)
        copy.__dict__.update(self.__dict__)
        self._shared = copy._shared = True
        return copy

    def empty(self) -> Zone:
        """A zone of the same name, sub-zones and thresholds that holds nothing."""
        return Zone(self.name, self.sub_zones, self.update_pcent_threshold, self.delete_pcent_threshold)

    def __len__(self) -> int:
        """How many RRsets it has."""
        return len(self._rrsets)

    def __bool__(self) -> bool:
        # An empty zone is not None; use len() for its size.
        return True

    def __contains__(self, key: str) -> bool:
        return key in self._rrsets

    def __getitem__(self, key: str) -> RRset:
        """The RRset of a key, ``name TAB type``."""
        return unpack(key, self._rrsets[key], self._extras.get(key, NO_EXTRA))

    def __iter__(self) -> Iterator[RRset]:
        """Its RRsets, in no particular order; the zone may be changed during the iteration."""
        extras = self._extras
        for key, value in list(self._rrsets.items()):
            yield unpack(key, value, extras.get(key, NO_EXTRA) if extras else NO_EXTRA)

    def __eq__(self, other: object) -> bool:
        """Whether the name and what is served are the same."""
        return isinstance(other, Zone) and self.name == other.name and self._rrsets == other._rrsets \
            and _served(self._extras) == _served(other._extras)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f'Zone({self.name}, {len(self)} RRsets)'

    @property
    def packed(self) -> Mapping[str, str]:
        """The packed pairs (see :mod:`designate_pool.protocol.rrset`), to read."""
        return MappingProxyType(self._rrsets)

    @property
    def extras(self) -> Mapping[str, Extra]:
        """By key, for those RRsets that have any."""
        return MappingProxyType(self._extras)

    @property
    def types(self) -> frozenset[str]:
        """The types that it has, and possibly some that it no longer has."""
        return frozenset(self._types)

    @property
    def root_ns(self) -> RRset | None:
        """The NS records at the apex."""
        return self.get(self.name, 'NS')

    def get(self, name: str, rtype: str) -> RRset | None:
        """The RRset of this name and type."""
        key = f'{name}\t{rtype}'
        return self[key] if key in self._rrsets else None

    def holds(self, name: str) -> bool:
        """Whether *name* is the apex or below it, even if the zone has no records there."""
        return lies_in(name, self.name)

    def sub_zone_of(self, name: str, rtype: str) -> str | None:
        """The sub-zone that an RRset belongs to."""
        return next((sub_zone for sub_zone in self.sub_zones
                     if lies_in(name, sub_zone) and (name != sub_zone or rtype not in ('NS', 'DS'))), None)

    def at(self, name: str) -> list[RRset]:
        """The RRsets of one name, by type."""
        return [rrset for rtype in sorted(self._types) if (rrset := self.get(name, rtype)) is not None]

    def of_types(self, types: Collection[str], with_extras: bool = False) -> Iterator[RRset]:
        """The RRsets of these types, *with_extras* any with an ``Extra``, unordered; the zone may change meanwhile."""
        extras = self._extras
        ends = tuple(f'\t{rtype}' for rtype in types if rtype in self._types)
        keys = [key for key in self._rrsets if key.endswith(ends)] if ends else []
        if with_extras:
            keys += [key for key in extras if not key.endswith(ends)]
        yield from [self[key] for key in keys]

    def ruled(self) -> Iterable[RRset]:
        """The RRsets that :meth:`broken_rule` may be against; the zone may change meanwhile."""
        return self if 'DNAME' in self._types else [*self.of_types(rules.RULED), *(
            self[key] for key, packed in self._rrsets.items()
            if len(packed) > rules.LEAST_OVERFLOW and key.rpartition('\t')[2] not in rules.RULED)]

    def broken_rule(self, rrset: RRset, target_id: str) -> str | None:
        """Why no DNS server takes *rrset*, which a lenient addition may have brought, beside others for the target."""
        own = {other.type: other.rdatas for other in self.at(rrset.name) if other.extra.is_for(target_id)}
        dnames = [upper for upper in names.above(rrset.name)
                  if (dname := self.get(upper, 'DNAME')) is not None and dname.extra.is_for(target_id)]
        violations = (*rules.at_name(self.name, rrset.name, own, dnames), *rules.wrong_data(rrset.name, own))
        # Of a CNAME and what is beside it, the CNAME has to go.
        return next((violation.why for violation in violations if violation.type == rrset.type
                     and (rrset.type == 'CNAME' or violation.rule.id != 'cname-alone')), None)

    def add_record(self, rrset: RRset, replace: bool = False, lenient: bool = False) -> None:
        """Add *rrset*.

        :param lenient: allow it in a sub-zone, and against the rules
        :raises ZoneError: when it is outside the zone, its name and type exist and *replace* is not set, it belongs to
            a sub-zone, or a rule forbids it
        """
        self.add_all((rrset,), replace, lenient)

    def add_all(self, rrsets: Sequence[RRset], replace: bool = False, lenient: bool = False) -> None:
        """Add *rrsets*: all of them, or none and an error; see :meth:`add_record`."""
        self.add_pairs({rrset.key: rrset.packed for rrset in rrsets} if replace else
                       ((rrset.key, rrset.packed) for rrset in rrsets), lenient, replace)
        last = {rrset.key: rrset.extra for rrset in rrsets}
        self._extras |= {key: extra for key, extra in last.items() if extra != NO_EXTRA}

    def add_each(self, rrsets: Iterable[tuple[RRset, bool]], replace: bool, lenient: bool) -> None:
        """Add RRsets, each of which may be lenient by itself: all of them, or none and an error."""
        every, trial = list(rrsets), self.copy()
        for loose in (False, True):  # lenient ones last, so that leniency does not affect the others
            trial.add_all([rrset for rrset, is_lenient in every if is_lenient is loose], replace, lenient or loose)
        self._rrsets, self._extras, self._types = trial._rrsets, trial._extras, trial._types
        self._shared = trial._shared

    def remove_record(self, rrset: RRset) -> None:
        """Remove the RRset of this name and type; ZoneError when there is none."""
        key = rrset.key
        if key not in self._rrsets:
            raise ZoneError(why=f'There is no {rrset.name} {rrset.type}')
        self._unshare()
        del self._rrsets[key]
        self._extras.pop(key, None)

    def add_pairs(self, pairs: dict[str, str] | Iterable[tuple[str, str]], lenient: bool = False,
                  replace: bool = False) -> None:
        """Add packed pairs in normal form: all of them, or none and an error of :meth:`add_record`.

        :param pairs: a dict becomes an empty zone's own, and must not be changed by others afterwards
        """
        packed = pairs if isinstance(pairs, dict) else _unique(pairs)
        for _, error in self.violations(packed, lenient, replace):
            raise error
        self._unshare()
        if self._rrsets:
            self._rrsets.update(packed)
        else:
            self._rrsets = packed
        self._types |= {key.rpartition('\t')[2] for key in packed}
        if self._extras:
            for key in packed:
                self._extras.pop(key, None)

    def violations(self, keys: Collection[str], lenient: bool = False,
                   replace: bool = False) -> Iterator[tuple[str, ZoneError]]:
        """Those of *keys* that must not be added if all are, with the errors of :meth:`add_record`.

        :param keys: a dict; of packed pairs, data is checked too
        """
        types = {key.rpartition('\t')[2] for key in keys}
        cnames = {key[:-len('\tCNAME')] for key in keys if key.endswith('\tCNAME')} if 'CNAME' in types else ()
        has_dnames = 'DNAME' in types or 'DNAME' in self._types
        for key in keys:
            name, _, rtype = key.partition('\t')
            # The first two conditions are cheap, and nearly all keys pass them.
            if (not name.endswith(self._suffix) or '\\' in name) and not self.holds(name):
                yield key, ZoneError(why=f'{name} is not inside the zone {self.name}')
            elif not replace and key in self._rrsets:
                yield key, ZoneError(why=f'{name} {rtype} is there already')
            elif lenient:
                continue
            elif self.sub_zones and (sub_zone := self.sub_zone_of(name, rtype)) is not None:
                yield key, ZoneError(why=f'{name} {rtype} belongs to the zone {sub_zone}, which is configured on its '
                                         'own')
            elif (has_dnames or rtype in rules.RULED or name in cnames
                  or self._rrsets and f'{name}\tCNAME' in self._rrsets
                  or isinstance(keys, Mapping) and len(keys[key]) > rules.LEAST_OVERFLOW):
                dnames = [upper for upper in names.above(name) if f'{upper}\tDNAME' in keys
                          or f'{upper}\tDNAME' in self._rrsets] if has_dnames else ()
                at_name: dict[str, Collection[str]] = {
                    other: () for other in types | self._types
                    if f'{name}\t{other}' in keys or f'{name}\t{other}' in self._rrsets}
                at_name[rtype] = keys[key].split('\t')[1:] if isinstance(keys, Mapping) else ()
                for violation in (*rules.at_name(self.name, name, at_name, dnames),
                                  *rules.wrong_data(name, {rtype: at_name[rtype]})):
                    if violation.type == rtype:
                        yield key, ZoneError(why=f'{name} {rtype}: {violation.why}')
                for lower in self._rrsets if rtype == 'DNAME' else ():
                    if lower.partition('\t')[0] != name and lies_in(lower.partition('\t')[0], name):
                        yield key, ZoneError(why=f'{name} {rtype}: {" ".join(lower.split())} lies below it')
                        break

    def digest(self) -> str:
        """A SHA-256 of what is served except for the SOA; it does not depend on the order of additions."""
        soa = f'{self.name}\tSOA'
        return digest(((key, self._rrsets[key]) for key in sorted(self._rrsets) if key != soa), self._extras)

    def _unshare(self) -> None:
        """Copy what is shared with another zone, before a change."""
        if self._shared:
            self._rrsets = dict(self._rrsets)
            self._extras = dict(self._extras)
            self._types = set(self._types)
            self._shared = False


def required_records(zone: Zone) -> list[RRset]:
    """The records that a zone needs besides its SOA: the NS records of the apex, and their addresses in the zone."""
    servers = zone.root_ns.rdatas if zone.root_ns is not None else ()
    return [rrset for rrset in zone.of_types(('NS', 'A', 'AAAA')) if rrset.name == zone.name and rrset.type == 'NS'
            or rrset.name in servers and rrset.type != 'NS']


def digest(pairs: Iterable[tuple[str, str]], extras: Mapping[str, Extra] = MappingProxyType({})) -> str:
    """The digest of packed pairs in the order of their keys; see :meth:`Zone.digest`."""
    summed = hashlib.sha256()
    for key, value in pairs:
        summed.update(f'{key}\t{value}\n'.encode())
    for key, served in sorted(_served(extras).items()):
        summed.update(f'{key}\t{_canonical(served)!r}\n'.encode())
    return summed.hexdigest()


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    unique: dict[str, str] = {}
    for key, value in pairs:
        if key in unique:
            raise ZoneError(why=f'{" ".join(key.split())} is there already')
        unique[key] = value
    return unique


def _canonical(value: object) -> object:
    """*value* with mappings as sorted lists, so that equal values have equal text."""
    if isinstance(value, Mapping):
        return sorted((str(key), _canonical(item)) for key, item in value.items())
    return [_canonical(item) for item in value] if isinstance(value, (list, tuple)) else value


def _served(extras: Mapping[str, Extra]) -> dict[str, object]:
    return {key: extra.served for key, extra in extras.items() if extra.served != NO_EXTRA.served}
