"""RRsets as the planner compares them, in the normal form of :mod:`designate_pool.protocol.names_and_rdata`.

The data of an RRset is sorted and has nothing twice (RFC 2181 section 5).

A zone keeps an RRset *packed*, as two texts: the key ``name TAB type`` and the value ``ttl TAB data TAB data ...``.
Neither names nor data can hold a TAB, since dnspython escapes it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from designate_pool.errors import InvalidField
from designate_pool.protocol.names_and_rdata import MAX_TTL, SINGLE, is_ttl, normal_name, normal_rdata


@dataclasses.dataclass(frozen=True, slots=True)
class Extra:
    """Settings that few records have.

    :ivar ignored: whether the record is left unchanged on every target
    :ivar included: ids of the only targets that it is for; empty for all
    :ivar excluded: ids of the targets that it is not for
    :ivar dynamic: answers that depend on the client's location or on health checks, for targets that support them: a
        JSON-like value
    :ivar octodns: further settings for octoDNS's providers, as in octoDNS's YAML
    """

    ignored: bool = False
    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    dynamic: Mapping[str, Any] | None = None
    octodns: Mapping[str, Any] | None = None

    def is_for(self, target_id: str) -> bool:
        """Whether the record is for the target with this id."""
        return not self.ignored and (not self.included or target_id in self.included) \
            and target_id not in self.excluded

    @property
    def served(self) -> Any:
        """The settings that may change answers."""
        return self.dynamic, self.octodns


NO_EXTRA = Extra()


class RRset(NamedTuple):
    """All records of one name and type, never changed in place; made by :func:`rrset`, or of data in normal form."""

    name: str
    type: str
    ttl: int
    rdatas: tuple[str, ...]
    extra: Extra = NO_EXTRA

    @property
    def key(self) -> str:
        """Name and type."""
        return f'{self.name}\t{self.type}'

    @property
    def packed(self) -> str:
        """TTL and data, with tabs between."""
        return '\t'.join((str(self.ttl), *self.rdatas))

    def __str__(self) -> str:
        return f'{self.name} {self.ttl} {self.type} {", ".join(self.rdatas)}'


def rrset(name: str, rtype: str, ttl: int, rdatas: Iterable[str], extra: Extra = NO_EXTRA) -> RRset:
    """An RRset in normal form.

    :param name: absolute
    :param rdatas: data as in a zone file, with absolute names; in any order, and possibly repeated
    :raises InvalidField: for data that is not valid, with name and type
    """
    rtype = rtype.upper()
    values = tuple(sorted({normal_rdata(rtype, rdata) for rdata in rdatas}))
    where = f'{name} {rtype}'
    if not values:
        raise InvalidField(field=where, why='it has no data')
    if not is_ttl(ttl):
        raise InvalidField(field=where, why=f'its TTL {ttl!r} is not a whole number from 0 to {MAX_TTL}')
    if len(values) > 1 and rtype in SINGLE:
        raise InvalidField(field=where, why=f'a name has one {rtype} record at most')
    return RRset(normal_name(name), rtype, ttl, values, extra)


def unpack(key: str, value: str, extra: Extra = NO_EXTRA) -> RRset:
    """The RRset of a packed pair."""
    name, _, rtype = key.partition('\t')
    ttl, *rdatas = value.split('\t')
    return RRset(name, rtype, int(ttl), tuple(rdatas), extra)
