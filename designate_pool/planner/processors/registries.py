"""Registries: who put an RRset on a target.

A registry is either elsewhere (a database) and knows keys, or it is in the zone: a TXT record beside each RRset, its
*mark*, says whose that is.  The forms of marks that others write are read here too, so that a zone can be shared with
them: that of external-dns (its "TXT registry") and that of octoDNS (its OwnershipProcessor).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from designate_pool.errors import InvalidField
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import RRset, normal_name, rrset

RECORD_TYPE = '%{record_type}'
_FIRST_LABEL = re.compile(r'((?:[^.\\]|\\.)*)\.(.*)', re.DOTALL)
_OWNER_ID = re.compile(r'[!#-+\--<>-\[\]-~]{1,100}')


class Registry(Protocol):
    """Where it is known which RRsets of a target were put there from here."""

    def owned(self, zone: Zone, target_id: str) -> frozenset[str]:
        """The keys of RRsets that are ours; *zone* is what the target has."""

    def applied(self, zone_name: str, target_id: str, created: Collection[str], deleted: Collection[str]) -> None:
        """Learn the keys of RRsets that became ours, and of those that are gone."""


class MarkRegistry:
    """A registry that has a mark in the zone for each RRset; a subclass knows what its marks look like.

    :param owner_id: who we are
    :param text: the data of our marks, as in a zone file
    :param ttl: of marks that are written, in seconds
    :raises InvalidField: when that can be no TXT record
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
        """The marks went to the target together with what they are for, so there is nothing more to learn."""

    def marks(self, zone: Zone) -> dict[str, str]:
        """The keys of the marks in *zone*, each with the owner that it names."""
        return {key: owner for key in zone.packed if key.endswith('\tTXT')
                and (found := zone.get(*key.split('\t'))) is not None and (owner := self.owner(found)) is not None}

    def mark_of(self, key: str, zone: Zone, marks: Mapping[str, str]) -> str | None:
        """The key of the mark that says whose the RRset with *key* is; None where none says it."""
        for name in self.names(key, zone):
            if f'{name}\tTXT' in marks:
                return f'{name}\tTXT'
        return None

    def new_mark(self, key: str, zone: Zone) -> RRset | None:
        """The mark that makes the RRset with *key* ours; None when it has no name that fits."""
        name = self.name(key, zone)
        return None if name is None else self._mark._replace(name=name)

    def names(self, key: str, zone: Zone) -> Sequence[str]:
        """The names that a mark of the RRset with *key* may have, the one that is believed first."""
        name = self.name(key, zone)
        return () if name is None else (name,)

    def name(self, key: str, zone: Zone) -> str | None:
        """The name of the mark that is written; None when it would be too long for a name."""
        raise NotImplementedError

    def owner(self, found: RRset) -> str | None:
        """The owner that a TXT RRset names; None for one that is no mark."""
        raise NotImplementedError


class TxtRegistry(MarkRegistry):
    """Marks as external-dns writes them: ``a-www TXT "heritage=external-dns,external-dns/owner=OWNER"`` for ``www A``.

    The mark of a name is found where external-dns looks for it, also in the older form without a type (``www TXT``),
    which speaks of all types there but AAAA.  The mark of the zone's own name would be outside the zone, so it is
    ``a-`` alone, below the zone.

    :param prefix: what goes before the first label; ``%{record_type}`` in it stands for the type, else ``a-`` does
    :param suffix: what goes after the first label; not together with a prefix
    :param heritage: the word that tells these marks from other TXT records
    :param wildcard_replacement: what ``*`` as first label becomes; empty to leave it
    :raises InvalidField: for an option that cannot be
    """

    def __init__(self, owner_id: str, prefix: str = '', suffix: str = '', heritage: str = 'external-dns',
                 wildcard_replacement: str = '', ttl: int = 300) -> None:
        for option, value in (('owner_id', owner_id), ('heritage', heritage)):
            if not _OWNER_ID.fullmatch(value):
                raise InvalidField(field=option, why=f'{value!r} has to be 1 to 100 printable characters, without '
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
        found = self._affixed(*_split(name), rtype.lower(), zone)
        return self._affixed('', name, rtype.lower(), zone) if found is None and name == zone.name else found

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
            yield self._affixed(host, zone.name, rtype.lower(), zone)
        # Only what is there already can have a mark of the older form: it would stand beside a new CNAME.
        if rtype != 'AAAA' and key in zone:
            yield self._affixed(*_split(name), '', zone)

    def _affixed(self, host: str, domain: str, rtype: str, zone: Zone) -> str | None:
        """The name with prefix, suffix and type; None when it is none, or outside the zone."""
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
    """Marks as octoDNS writes them: ``_owner.a.www TXT "*octodns*"`` for ``www A``.

    :param txt_name: the first label
    :param txt_value: what says that it is ours
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


def _split(name: str) -> tuple[str, str]:
    """The first label, and the rest."""
    found = _FIRST_LABEL.match(name)
    assert found is not None
    return found[1], found[2] or '.'
