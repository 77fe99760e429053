"""A zone as the planner has it: RRsets by name and type, copied only when it is changed.

The invariant: a copy costs nothing until one of the two is changed, and changing the one never changes the other.  An
RRset is inside the zone and not in a sub-zone, and a CNAME is alone at its name; who adds leniently may break the last
two of these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from designate_pool.errors import (DuplicateRRset, RRsetBesideCname, RRsetInSubZone, RRsetNotFound, RRsetOutsideZone,
                                   ZoneError, ZoneNotEmpty)
from designate_pool.protocol.rrset import NO_EXTRA, Extra, RRset, lies_in, normal_name, unpack

_NOTHING: Mapping[str, str] = MappingProxyType({})


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
        self._expected: Mapping[str, str] = _NOTHING
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
        """The packed pairs (see :mod:`designate_pool.protocol.rrset`), to read."""
        return MappingProxyType(self._rrsets)

    @property
    def extras(self) -> Mapping[str, Extra]:
        """By key, for those RRsets that have any."""
        return MappingProxyType(self._extras)

    @property
    def types(self) -> frozenset[str]:
        """The types that it has, and maybe some that it had."""
        return frozenset(self._types)

    @property
    def expected(self) -> Mapping[str, str]:
        """Packed pairs, many of which this zone will have: who makes texts for it may use these in their place."""
        return self._expected

    def expect(self, other: Zone | None) -> None:
        """Have what is equal in *other* kept once for both, when this zone is filled; None ends that."""
        self._expected = _NOTHING if other is None else other.packed

    @property
    def root_ns(self) -> RRset | None:
        return self.get(self.name, 'NS')

    def get(self, name: str, rtype: str) -> RRset | None:
        key = f'{name}\t{rtype}'
        value = self._rrsets.get(key)
        return None if value is None else unpack(key, value, self._extras.get(key, NO_EXTRA))

    def holds(self, name: str) -> bool:
        """Whether *name* is the zone's own or below it, whatever the zone has there."""
        return lies_in(name, self.name)

    def at(self, name: str) -> list[RRset]:
        """The RRsets of one name, by type."""
        return [found for rtype in sorted(self._types) if (found := self.get(name, rtype)) is not None]

    def of_types(self, types: Collection[str], with_extras: bool = False) -> Iterator[RRset]:
        """The RRsets of these types, in no particular order; it may be changed meanwhile.

        :param with_extras: and those of any type that have an :class:`~designate_pool.protocol.rrset.Extra`
        """
        extras = self._extras
        ends = tuple(f'\t{rtype}' for rtype in types if rtype in self._types)
        keys = [key for key in self._rrsets if key.endswith(ends)] if ends else []
        if with_extras:
            keys += [key for key in extras if not key.endswith(ends)]
        for key, value in [(key, self._rrsets[key]) for key in keys]:
            yield unpack(key, value, extras.get(key, NO_EXTRA))

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
        packed = rrset.packed
        there = self._expected.get(key)
        self._rrsets[key] = packed if there is None or there != packed else there
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

    def fill(self, pairs: Mapping[str, str] | Iterable[tuple[str, str]], lenient: bool = False,
             like: Zone | None = None) -> None:
        """Have the empty zone hold many RRsets at once, each packed and in normal form; much faster than one by one.

        All is checked as :meth:`add_record` does, and the zone stays empty when something is wrong.

        :param pairs: a dict becomes the zone's own, and is not to be changed by others any more
        :param like: a zone that holds much the same: what is equal is kept once for both; None for what was given
            to :meth:`expect`
        """
        known = self._expected if like is None else like._rrsets
        found = pairs if isinstance(pairs, dict) else _collected(pairs, known)
        types = {key.rpartition('\t')[2] for key in found}
        self._check_inside(found, types)
        if not lenient:
            if self.sub_zones:
                for key in found:
                    name, _, rtype = key.partition('\t')
                    self._check_sub_zones(name, rtype)
            _check_aliases(found, types)
        if self._rrsets:
            raise ZoneNotEmpty(zone=self.name, count=len(self))
        self._own()
        self._rrsets, self._types = found, types

    def misfits(self, keys: Collection[str], lenient: bool = False) -> Iterator[tuple[str, ZoneError]]:
        """Which of *keys* :meth:`fill` or :meth:`add_record` would refuse if all were to be added, and why."""
        types: dict[str, set[str]] = {key[:-len('\tCNAME')]: set() for key in keys if key.endswith('\tCNAME')}
        for key in keys:
            name, _, rtype = key.partition('\t')
            if name in types:
                types[name].add(rtype)
        for key in keys:
            name, _, rtype = key.partition('\t')
            try:
                if not self.holds(name):
                    raise RRsetOutsideZone(name=name, zone=self.name)
                if key in self._rrsets:
                    raise DuplicateRRset(name=name, rtype=rtype)
                if not lenient:
                    self._check_sub_zones(name, rtype)
                    self._check_cname(name, rtype)
                    beside = types.get(name, {rtype}) - {'CNAME'}
                    if name in types and beside:
                        raise RRsetBesideCname(name=name, rtype=min(beside) if rtype == 'CNAME' else rtype)
            except ZoneError as error:
                yield key, error

    def digest(self) -> str:
        """A SHA-256 of what is served but for the SOA, the same for the same contents however they came together."""
        soa = f'{self.name}\tSOA'
        return digest(((key, self._rrsets[key]) for key in sorted(self._rrsets) if key != soa), self._extras)

    def _own(self) -> None:
        """Stop sharing: from here on what is changed is this zone's alone."""
        if self._shared:
            self._rrsets = dict(self._rrsets)
            self._extras = dict(self._extras)
            self._types = set(self._types)
            self._shared = False

    def _check_inside(self, keys: Iterable[str], types: Collection[str]) -> None:
        ends = tuple(f'{self._suffix}\t{rtype}' for rtype in types)
        # Nearly all pass the first two, which are cheap.
        for key in keys:
            if (not key.endswith(ends) or '\\' in key) and not self.holds(name := key.partition('\t')[0]):
                raise RRsetOutsideZone(name=name, zone=self.name)

    def _check_sub_zones(self, name: str, rtype: str) -> None:
        if not self.sub_zones:
            return
        for sub_zone in self.sub_zones:
            if name == sub_zone and rtype in ('NS', 'DS'):
                continue
            if lies_in(name, sub_zone):
                raise RRsetInSubZone(name=name, rtype=rtype, sub_zone=sub_zone)

    def _check_cname(self, name: str, rtype: str) -> None:
        if rtype == 'CNAME':
            beside = [each for each in self._types if each != 'CNAME' and f'{name}\t{each}' in self._rrsets]
            if beside:
                raise RRsetBesideCname(name=name, rtype=min(beside))
        elif f'{name}\tCNAME' in self._rrsets:
            raise RRsetBesideCname(name=name, rtype=rtype)


def skeleton(zone: Zone) -> list[RRset]:
    """What a zone cannot be without beside its SOA: its own NS records, and the addresses of those inside it."""
    servers = zone.root_ns.rdatas if zone.root_ns is not None else ()
    return [each for each in zone.of_types(('NS', 'A', 'AAAA')) if each.name == zone.name and each.type == 'NS'
            or each.name in servers and each.type != 'NS']


def digest(pairs: Iterable[tuple[str, str]], extras: Mapping[str, Extra] = MappingProxyType({})) -> str:
    """The digest of packed pairs in the order of their keys; see :meth:`Zone.digest`."""
    summed = hashlib.sha256()
    for key, value in pairs:
        summed.update(f'{key}\t{value}\n'.encode())
    for key, served in sorted(_served(extras).items()):
        summed.update(f'{key}\t{_plain(served)!r}\n'.encode())
    return summed.hexdigest()


def _collected(pairs: Mapping[str, str] | Iterable[tuple[str, str]], known: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in pairs.items() if isinstance(pairs, Mapping) else pairs:
        if key in found:
            name, _, rtype = key.partition('\t')
            raise DuplicateRRset(name=name, rtype=rtype)
        there = known.get(key)
        found[key] = value if there is None or there != value else there
    return found


def _check_aliases(found: Collection[str], types: Iterable[str]) -> None:
    others = sorted(set(types) - {'CNAME'})
    for name in [key[:-len('\tCNAME')] for key in found if key.endswith('\tCNAME')]:
        for rtype in others:
            if f'{name}\t{rtype}' in found:
                raise RRsetBesideCname(name=name, rtype=rtype)


def _plain(value: object) -> object:
    """*value* so that it looks the same whatever order its mappings came in."""
    if isinstance(value, Mapping):
        return sorted((str(key), _plain(each)) for key, each in value.items())
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _served(extras: Mapping[str, Extra]) -> dict[str, object]:
    return {key: extra.served for key, extra in extras.items() if extra.served != NO_EXTRA.served}
