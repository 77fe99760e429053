"""Registries: who owns an RRset on a target.

A registry is either external (a database of keys), or in the zone: a TXT record for each RRset, its *mark*, names the
owner.  Two formats of marks are supported, so that a zone can be shared with these programs: that of external-dns (its
"TXT registry") and that of octoDNS (its OwnershipProcessor).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from designate_pool.errors import InvalidField
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import normal_name
from designate_pool.protocol.rrset import RRset, rrset

RECORD_TYPE = '%{record_type}'
_FIRST_LABEL = re.compile(r'((?:[^.\\]|\\.)*)\.(.*)', re.DOTALL)
_OWNER_ID = re.compile(r'[!#-+\--<>-\[\]-~]{1,100}')


class Registry(Protocol):
    """Knows which RRsets of a target are ours."""

    def owned(self, zone: Zone, target_id: str) -> frozenset[str]:
        """The keys of our RRsets; *zone* is the target's zone."""

    def applied(self, zone_name: str, target_id: str, created: Collection[str], deleted: Collection[str]) -> None:
        """Record the keys of RRsets that became ours, and of those that were deleted."""


class MarkRegistry:
    """A registry with a mark in the zone for each RRset; a subclass defines the format of marks.

    :param owner_id: our name
    :param text: the data of our marks, as in a zone file
    :param ttl: of our marks, in seconds
    :raises InvalidField: when these make no TXT record
    """

    def __init__(self, owner_id: str, text: str, ttl: int) -> None:
        self.owner_id = owner_id
        self._mark = rrset('.', 'TXT', ttl, [text])

    def owned(self, zone: Zone, target_id: str) -> frozenset[str]:
        marks = self.marks(zone)
        return frozenset(key for key in zone.packed
                         if not key.endswith('\tSOA') and key not in marks
                         and marks.get(self.mark_of(key, zone, marks) or '') == self.owner_id)

    def applied(self, zone_name: str, target_id: str, created: Collection[str], deleted: Collection[str]) -> None:
        """Nothing to record: the plan contained the marks."""

    def marks(self, zone: Zone) -> dict[str, str]:
        """The marks in *zone*: key and owner."""
        return {key: owner for key in zone.packed if key.endswith('\tTXT')
                and (owner := self.owner(zone[key])) is not None}

    def mark_of(self, key: str, zone: Zone, marks: Mapping[str, str]) -> str | None:
        """The key of the mark of the RRset with *key*; None if it has none."""
        for name in self.names(key, zone):
            if f'{name}\tTXT' in marks:
                return f'{name}\tTXT'
        return None

    def new_mark(self, key: str, zone: Zone) -> RRset | None:
        """The mark that makes the RRset with *key* ours; None if the mark's name would be too long."""
        name = self.name(key, zone)
        return None if name is None else self._mark._replace(name=name)

    def names(self, key: str, zone: Zone) -> Sequence[str]:
        """The possible names of the mark of the RRset with *key*, in order of precedence."""
        name = self.name(key, zone)
        return () if name is None else (name,)

    def name(self, key: str, zone: Zone) -> str | None:
        """The name of a new mark; None if it would be too long."""
        raise NotImplementedError

    def owner(self, found: RRset) -> str | None:
        """The owner in a TXT RRset; None if it is no mark."""
        raise NotImplementedError


class TxtRegistry(MarkRegistry):
    """Marks of external-dns: ``a-www TXT "heritage=external-dns,external-dns/owner=OWNER"`` for ``www A``.

    Marks are looked up like in external-dns, also in the older format without a type (``www TXT``), which is for all
    types of the name except AAAA.  The mark of the apex is ``a-`` below the zone, since it would be outside otherwise.

    :param prefix: inserted before the first label; ``%{record_type}`` is replaced by the type, which otherwise follows
        as ``a-``
    :param suffix: inserted after the first label; cannot be used together with a prefix
    :param heritage: the word that distinguishes marks from other TXT records
    :param wildcard_replacement: replaces ``*`` as the first label; empty to keep it
    :raises InvalidField: for an invalid option
    """

    def __init__(self, owner_id: str, prefix: str = '', suffix: str = '', heritage: str = 'external-dns',
                 wildcard_replacement: str = '', ttl: int = 300) -> None:
        for option, value in (('owner_id', owner_id), ('heritage', heritage)):
            if not _OWNER_ID.fullmatch(value):
                raise InvalidField(field=option, why=f'{value!r} must be 1 to 100 printable characters, without '
                                                     f'spaces, commas, quotes, backslashes and equals signs')
        if prefix and suffix:
            raise InvalidField(field='suffix', why='there can be a prefix or a suffix, not both')
        super().__init__(owner_id, f'"heritage={heritage},{heritage}/owner={owner_id}"', ttl)
        self.prefix, self.suffix = prefix.lower(), suffix.lower()
        self.heritage = heritage
        self.wildcard_replacement = wildcard_replacement.lower()

    def names(self, key: str, zone: Zone) -> Sequence[str]:
        return list(dict.fromkeys(name for name in self._names(key, zone) if name is not None))

    def name(self, key: str, zone: Zone) -> str | None:
        name, _, rtype = key.partition('\t')
        found = self._mark_name(*_split_first_label(name), rtype.lower(), zone)
        return self._mark_name('', name, rtype.lower(), zone) if found is None and name == zone.name else found

    def owner(self, found: RRset) -> str | None:
        if len(found.rdatas) != 1 or '=' not in found.rdatas[0]:
            return None
        words = {word.partition('=')[0]: word.partition('=')[2] for word in found.rdatas[0].strip('"').split(',')}
        return words.get(f'{self.heritage}/owner', '') if words.get('heritage') == self.heritage else None

    def _names(self, key: str, zone: Zone) -> Iterator[str | None]:
        yield self.name(key, zone)
        name, _, rtype = key.partition('\t')
        if self.suffix and name != zone.name:
            host = name.removesuffix(zone.name).removesuffix('.')
            yield self._mark_name(host, zone.name, rtype.lower(), zone)
        # Only existing RRsets can have a mark of the older format: beside a new CNAME it would not be allowed.
        if rtype != 'AAAA' and key in zone:
            yield self._mark_name(*_split_first_label(name), '', zone)

    def _mark_name(self, host: str, domain: str, rtype: str, zone: Zone) -> str | None:
        """The name with prefix, suffix and type; None if it is invalid, or outside the zone."""
        if host == '*' and self.wildcard_replacement:
            host = self.wildcard_replacement
        if rtype and RECORD_TYPE not in self.prefix + self.suffix:
            host = f'{rtype}-{host}'
        prefix, suffix = (each.replace(RECORD_TYPE, rtype) for each in (self.prefix, self.suffix))
        try:
            name = normal_name(f'{prefix}{host}{suffix}'.lstrip('.') + (f'.{domain}' if domain != '.' else '.'))
        except InvalidField:
            return None
        return name if zone.holds(name) else None


class OctodnsRegistry(MarkRegistry):
    """Marks of octoDNS: ``_owner.a.www TXT "*octodns*"`` for ``www A``.

    :param txt_name: the first label
    :param txt_value: the owner
    """

    def __init__(self, txt_name: str = '_owner', txt_value: str = '*octodns*', txt_ttl: int = 60) -> None:
        super().__init__(txt_value, '"' + re.sub(r'(["\\])', r'\\\1', txt_value) + '"', txt_ttl)
        self.txt_name = txt_name.lower()

    def name(self, key: str, zone: Zone) -> str | None:
        name, _, rtype = key.partition('\t')
        try:
            return normal_name(f'{self.txt_name}.{rtype.lower()}.{name.lstrip(".").replace("*", "_wildcard")}')
        except InvalidField:
            return None

    def owner(self, found: RRset) -> str | None:
        if not found.name.startswith(f'{self.txt_name}.'):
            return None
        return self.owner_id if found.rdatas == self._mark.rdatas else ' '.join(found.rdatas)


def _split_first_label(name: str) -> tuple[str, str]:
    """The first label, and the rest."""
    found = _FIRST_LABEL.match(name)
    assert found is not None
    return found[1], found[2] or '.'
