"""A zone as the planner has it: RRsets by name and type, copied only when it is changed.

The invariant: a copy costs nothing until one of the two is changed, and changing the one never changes the other.  An
RRset is inside the zone and not in a sub-zone, and a CNAME is alone at its name; who adds leniently may break the last
two of these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from designate_pool.errors import (DuplicateRRset, RRsetBesideCname, RRsetInSubZone, RRsetNotFound, RRsetOutsideZone,
                                   ZoneNotEmpty)
from designate_pool.planner.records import NO_EXTRA, Extra, RRset, normal_name, unpack


class Zone:
    """
    :param name: absolute
    :param sub_zones: names of zones below this one that are kept elsewhere; of these only NS and DS are in this zone
    :param update_pcent_threshold: the fraction of RRsets that one plan may update; None leaves it to the target
    :param delete_pcent_threshold: the same for deletes
    """

    def __init__(self, name: str, sub_zones: Iterable[str] = (), update_pcent_threshold: float | None = None,
                 delete_pcent_threshold: float | None = None) -> None:
        self.name = normal_name(name)
        self.sub_zones = frozenset(normal_name(each) for each in sub_zones)
        self.update_pcent_threshold = update_pcent_threshold
        self.delete_pcent_threshold = delete_pcent_threshold
        self._rrsets: dict[str, str] = {}
        self._extras: dict[str, Extra] = {}
        self._types: set[str] = set()
        self._shared = False
        self._suffix = '.' if self.name == '.' else f'.{self.name}'

    def copy(self) -> Zone:
        """A zone that is the same, and shares all with this one until one of them is changed."""
        twin = Zone.__new__(Zone)
        twin.__dict__.update(self.__dict__)
        self._shared = twin._shared = True
        return twin

    def empty(self) -> Zone:
        """A zone of the same name, sub-zones and thresholds that holds nothing."""
        return Zone(self.name, self.sub_zones, self.update_pcent_threshold, self.delete_pcent_threshold)

    def __len__(self) -> int:
        """How many RRsets it has."""
        return len(self._rrsets)

    def __bool__(self) -> bool:
        # An empty zone is a zone all the same; whoever means its size says len().
        return True

    def __contains__(self, key: str) -> bool:
        return key in self._rrsets

    def __iter__(self) -> Iterator[RRset]:
        """Its RRsets, in no particular order; it may be changed meanwhile."""
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
        """The packed pairs (see :mod:`designate_pool.planner.records`), to read."""
        return MappingProxyType(self._rrsets)

    @property
    def extras(self) -> Mapping[str, Extra]:
        """By key, for those RRsets that have any."""
        return MappingProxyType(self._extras)

    @property
    def root_ns(self) -> RRset | None:
        return self.get(self.name, 'NS')

    def get(self, name: str, rtype: str) -> RRset | None:
        key = f'{name}\t{rtype}'
        value = self._rrsets.get(key)
        return None if value is None else unpack(key, value, self._extras.get(key, NO_EXTRA))

    def holds(self, name: str) -> bool:
        """Whether *name* is the zone's own or below it, whatever the zone has there."""
        return name == self.name or _is_below(name, self._suffix)

    def at(self, name: str) -> list[RRset]:
        """The RRsets of one name, by type."""
        return [found for rtype in sorted(self._types) if (found := self.get(name, rtype)) is not None]

    def add_record(self, rrset: RRset, replace: bool = False, lenient: bool = False) -> None:
        """Have the zone hold *rrset*.

        :param replace: in the place of what is there of its name and type
        :param lenient: also in a sub-zone, or beside a CNAME
        :raises RRsetOutsideZone: for a name that is not in the zone
        :raises DuplicateRRset: when its name and type are there and are not to be replaced
        :raises RRsetInSubZone: for what belongs to a sub-zone
        :raises RRsetBesideCname: when a CNAME would not be alone at its name
        """
        key = rrset.key
        if not self.holds(rrset.name):
            raise RRsetOutsideZone(name=rrset.name, zone=self.name)
        if not replace and key in self._rrsets:
            raise DuplicateRRset(name=rrset.name, rtype=rrset.type)
        if not lenient:
            self._check_sub_zones(rrset.name, rrset.type)
            self._check_cname(rrset.name, rrset.type)
        self._own()
        self._rrsets[key] = rrset.packed
        self._types.add(rrset.type)
        if rrset.extra is not NO_EXTRA and rrset.extra != NO_EXTRA:
            self._extras[key] = rrset.extra
        else:
            self._extras.pop(key, None)

    def remove_record(self, rrset: RRset) -> None:
        """Have the zone not hold the RRset of this name and type.

        :raises RRsetNotFound: when it does not
        """
        key = rrset.key
        if key not in self._rrsets:
            raise RRsetNotFound(name=rrset.name, rtype=rrset.type)
        self._own()
        del self._rrsets[key]
        self._extras.pop(key, None)

    def fill(self, pairs: Iterable[tuple[str, str]], lenient: bool = False, like: Zone | None = None) -> None:
        """Have the empty zone hold many RRsets at once, each packed and in normal form; much faster than one by one.

        All is checked as :meth:`add_record` does, and the zone stays empty when something is wrong.

        :param like: a zone that holds much the same: what is equal is kept once for both
        """
        found: dict[str, str] = {}
        known = like._rrsets if like is not None else {}
        for key, value in pairs:
            if key in found:
                name, _, rtype = key.partition('\t')
                raise DuplicateRRset(name=name, rtype=rtype)
            there = known.get(key)
            found[key] = value if there is None or there != value else there
        types: set[str] = set()
        aliases = []
        suffix, sub_zones = self._suffix, self.sub_zones
        for key in found:
            name, _, rtype = key.partition('\t')
            if not (name.endswith(suffix) and '\\' not in name) and not self.holds(name):
                raise RRsetOutsideZone(name=name, zone=self.name)
            if sub_zones and not lenient:
                self._check_sub_zones(name, rtype)
            if rtype == 'CNAME':
                aliases.append(name)
            types.add(rtype)
        if not lenient:
            for name in aliases:
                for rtype in types:
                    if rtype != 'CNAME' and f'{name}\t{rtype}' in found:
                        raise RRsetBesideCname(name=name, rtype=rtype)
        if self._rrsets:
            raise ZoneNotEmpty(zone=self.name, count=len(self))
        self._own()
        self._rrsets, self._types = found, types

    def digest(self) -> str:
        """A SHA-256 of what is served but for the SOA, the same for the same contents however they came together."""
        soa = f'{self.name}\tSOA'
        return digest(sorted(pair for pair in self._rrsets.items() if pair[0] != soa), self._extras)

    def _own(self) -> None:
        """Stop sharing: from here on what is changed is this zone's alone."""
        if self._shared:
            self._rrsets = dict(self._rrsets)
            self._extras = dict(self._extras)
            self._types = set(self._types)
            self._shared = False

    def _check_sub_zones(self, name: str, rtype: str) -> None:
        if not self.sub_zones:
            return
        for sub_zone in self.sub_zones:
            if name == sub_zone and rtype in ('NS', 'DS'):
                continue
            if name == sub_zone or _is_below(name, f'.{sub_zone}'):
                raise RRsetInSubZone(name=name, rtype=rtype, sub_zone=sub_zone)

    def _check_cname(self, name: str, rtype: str) -> None:
        if rtype == 'CNAME':
            beside = [each for each in self._types if each != 'CNAME' and f'{name}\t{each}' in self._rrsets]
            if beside:
                raise RRsetBesideCname(name=name, rtype=min(beside))
        elif f'{name}\tCNAME' in self._rrsets:
            raise RRsetBesideCname(name=name, rtype=rtype)


def digest(pairs: Iterable[tuple[str, str]], extras: Mapping[str, Extra] = MappingProxyType({})) -> str:
    """The digest of packed pairs in the order of their keys; see :meth:`Zone.digest`."""
    summed = hashlib.sha256()
    for key, value in pairs:
        summed.update(f'{key}\t{value}\n'.encode())
    for key, served in sorted(_served(extras).items()):
        summed.update(f'{key}\t{_plain(served)!r}\n'.encode())
    return summed.hexdigest()


def _is_below(name: str, suffix: str) -> bool:
    if not name.endswith(suffix):
        return False
    # After an odd number of backslashes the dot is part of a label, and the label another zone's.
    before = name[:-len(suffix)]
    return (len(before) - len(before.rstrip('\\'))) % 2 == 0


def _plain(value: object) -> object:
    """*value* so that it looks the same whatever order its mappings came in."""
    if isinstance(value, Mapping):
        return sorted((str(key), _plain(each)) for key, each in value.items())
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _served(extras: Mapping[str, Extra]) -> dict[str, object]:
    return {key: extra.served for key, extra in extras.items() if extra.served != NO_EXTRA.served}
