"""RRsets as the planner compares them, and the normal form that makes comparing two texts enough.

A name is absolute, in lower case, with the final dot.  Data is text with absolute names; types whose data is names and
numbers alone are in lower case (RFC 4034 section 6.2), the others as dnspython writes them.  The data of an RRset is
sorted and has nothing twice (RFC 2181 section 5).

A zone keeps an RRset *packed*, as two texts: the key ``name TAB type`` and the value ``ttl TAB data TAB data ...``.
Neither names nor data can hold a TAB, since dnspython escapes it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
from dns.rdtypes.txtbase import TXTBase

from designate_pool.errors import InvalidField

MAX_TTL = (1 << 31) - 1
#: Types whose data is names and numbers, so that case does not matter in it.
LOWER = frozenset({'AFSDB', 'CNAME', 'DNAME', 'KX', 'MX', 'NS', 'PTR', 'RP', 'SOA', 'SRV'})
#: Made by whoever signs the zone; never planned.
GENERATED = frozenset({'RRSIG', 'NSEC', 'NSEC3', 'NSEC3PARAM', 'DNSKEY', 'CDS', 'CDNSKEY', 'TYPE65534'})
#: A name, as nearly all are; the rest is left to dnspython.
_PLAIN_NAME = re.compile(r'(?:[a-z0-9_-]{1,63}\.)+|\*\.(?:[a-z0-9_-]{1,63}\.)+')
_NAME = r'(?:\*\.)?(?:[a-z0-9_-]{1,63}\.)+'
_NUMBER = r'(?:0|[1-9][0-9]{0,3})'
_OCTET = r'(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
_GROUP = r'[1-9a-f][0-9a-f]{0,3}'
_STRING = r'"[ !#-\[\]-~]{0,255}"'
#: Data that is in normal form as it stands.  An IPv6 address is when no group is zero and '::' is two groups or more.
PLAIN: dict[str, Callable[[str], object]] = {
    'A': re.compile(rf'(?:{_OCTET}\.){{3}}{_OCTET}').fullmatch,
    'AAAA': re.compile(rf'(?:{_GROUP}:){{7}}{_GROUP}|'
                       rf'(?!(?:[^:]*:){{7}})(?:{_GROUP}:)+:(?:{_GROUP}(?::{_GROUP})*)?').fullmatch,
    'MX': re.compile(f'{_NUMBER} {_NAME}').fullmatch,
    'SRV': re.compile(f'{_NUMBER} {_NUMBER} {_NUMBER} {_NAME}').fullmatch,
    'TXT': re.compile(f'{_STRING}(?: {_STRING})*').fullmatch,
    **{rtype: re.compile(_NAME).fullmatch for rtype in ('CNAME', 'DNAME', 'NS', 'PTR')},
}
#: Escapes and quoted strings, and outside of them what means something in zone files (RFC 1035 section 5.1).
_MARKS = re.compile(r'\\.|"(?:[^"\\]|\\.)*"|([;()])', re.DOTALL)
_ESCAPE = re.compile(r'\\.', re.DOTALL)
#: Longer texts may be longer than a name or an RRset's data can be.
LONGEST = {'TXT': 60_000}
LONGEST_NAME = 250


@dataclasses.dataclass(frozen=True, slots=True)
class Extra:
    """What few records have.

    :ivar ignored: the record is left as it is, on every target
    :ivar included: ids of the targets that alone it is for; empty for all
    :ivar excluded: ids of the targets that it is not for
    :ivar dynamic: for targets that answer by where the question comes from or what is healthy: a JSON-like value
    :ivar octodns: further settings that octoDNS providers know, as octoDNS's YAML has them
    """

    ignored: bool = False
    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    dynamic: Mapping[str, Any] | None = None
    octodns: Mapping[str, Any] | None = None

    def is_for(self, target_id: str) -> bool:
        """Whether the target with this id has to do with the record."""
        return not self.ignored and (not self.included or target_id in self.included) \
            and target_id not in self.excluded

    @property
    def served(self) -> Any:
        """What of it makes a difference in answers."""
        return self.dynamic, self.octodns


NO_EXTRA = Extra()


class RRset(NamedTuple):
    """All records of one name and type; never changed in place.

    Made by :func:`rrset`, or by a source that can promise the normal form.
    """

    name: str
    type: str
    ttl: int
    rdatas: tuple[str, ...]
    extra: Extra = NO_EXTRA

    @property
    def key(self) -> str:
        return f'{self.name}\t{self.type}'

    @property
    def packed(self) -> str:
        return '\t'.join((str(self.ttl), *self.rdatas))

    def __str__(self) -> str:
        return f'{self.name} {self.ttl} {self.type} {", ".join(self.rdatas)}'


def rrset(name: str, rtype: str, ttl: int, rdatas: Iterable[str], extra: Extra = NO_EXTRA) -> RRset:
    """An RRset in normal form.

    :param name: absolute
    :param rdatas: data as in a zone file, with absolute names; in any order, also twice
    :raises InvalidField: for what cannot be in a zone, with its name and type
    """
    rtype = rtype.upper()
    found = tuple(sorted({normal_rdata(rtype, each) for each in rdatas}))
    where = f'{name} {rtype}'
    if not found:
        raise InvalidField(field=where, why='it has no data')
    if isinstance(ttl, bool) or not isinstance(ttl, int) or not 0 <= ttl <= MAX_TTL:
        raise InvalidField(field=where, why=f'its TTL {ttl!r} is not a whole number from 0 to {MAX_TTL}')
    if len(found) > 1 and rtype in ('CNAME', 'DNAME', 'SOA'):
        raise InvalidField(field=where, why=f'a name has one {rtype} record at most')
    return RRset(normal_name(name), rtype, ttl, found, extra)


def unpack(key: str, value: str, extra: Extra = NO_EXTRA) -> RRset:
    """The RRset of a packed pair."""
    name, _, rtype = key.partition('\t')
    ttl, *rdatas = value.split('\t')
    return RRset(name, rtype, int(ttl), tuple(rdatas), extra)


def normal_name(name: str) -> str:
    """
    :raises InvalidField: for what is no absolute name
    """
    if len(name) < 250 and _PLAIN_NAME.fullmatch(name):
        return name
    if not name.isascii():
        raise InvalidField(field=name, why="not ASCII; write international names as 'xn--…'")
    try:
        found = dns.name.from_text(name, None)
        if not found.is_absolute():
            raise InvalidField(field=name, why='the final dot is missing')
        return found.canonicalize().to_text()
    except dns.exception.DNSException as error:
        raise InvalidField(field=name, why=f'not a domain name ({_sentence(error)})') from error


def lies_in(name: str, zone: str) -> bool:
    """Whether *name* is *zone* or below it, both in normal form; as texts alone the dot in a label would count too."""
    if name == zone or zone == '.':
        return True
    if not name.endswith(f'.{zone}'):
        return False
    # After an odd number of backslashes the dot is part of a label, and the label another zone's.
    before = name[:-len(zone) - 1]
    return (len(before) - len(before.rstrip('\\'))) % 2 == 0


def parents(name: str) -> Iterator[str]:
    """The names above *name*, the nearest first and the root last."""
    if '\\' in name:
        rest = dns.name.from_text(name)
        while rest != dns.name.root:
            rest = rest.parent()
            yield rest.to_text()
        return
    plain = name
    while plain != '.':
        plain = plain.partition('.')[2] or '.'
        yield plain


def normal_rdata(rtype: str, text: str) -> str:
    """
    :param rtype: in upper case
    :raises InvalidField: for what is no data of the type
    """
    plain = PLAIN.get(rtype)
    if plain is not None and len(text) <= LONGEST.get(rtype, LONGEST_NAME) and plain(text):
        return text
    try:
        return normal_text(rtype, parse_rdata(rtype, text))
    except dns.name.NeedAbsoluteNameOrOrigin:
        raise InvalidField(field=rtype, why=f'a name in {text!r} is not absolute: the final dot is missing') from None
    except (dns.exception.DNSException, ValueError) as error:
        raise InvalidField(field=rtype, why=f'{text!r} is not {rtype} data ({_sentence(error)})') from None


def normal_text(rtype: str, parsed: dns.rdata.Rdata) -> str:
    """:raises DNSException: for what has no wire form"""
    parsed.to_wire()
    found = parsed.to_text()
    return found.lower() if rtype in LOWER else found


def parse_rdata(rtype: str, text: str) -> dns.rdata.Rdata:
    """One record's data as a user writes it by itself, all of it or nothing.

    It is written as in a zone file, but nothing in it is a comment or a parenthesis, for these would be dropped in
    silence.  Text of TXT and its kin in which nothing is quoted is one string; escapes are read.

    :raises DNSException: for what is no data of the type
    :raises ValueError: likewise, and for what would be dropped
    """
    if '\n' in text or '\r' in text:
        raise ValueError('more than one line')
    number = dns.rdatatype.from_text(rtype)
    given = text.strip(' \t')
    if given and not given.startswith('\\#') and _is_text(number) and '"' not in _ESCAPE.sub('', given):
        given = f'"{given}"'
    else:
        _check_marks(given)
    return dns.rdata.from_text(dns.rdataclass.IN, number, given, relativize=False)


def _is_text(rtype: dns.rdatatype.RdataType) -> bool:
    known = dns.rdata.get_rdata_class(dns.rdataclass.IN, rtype)  # type: ignore[no-untyped-call]
    return isinstance(known, type) and issubclass(known, TXTBase)


def _check_marks(text: str) -> None:
    for found in _MARKS.finditer(text):
        if found[1]:
            raise ValueError(f'{_short(text[found.start():])} would be dropped: outside quotes {found[1]!r} means '
                             'something in zone files alone')


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f'{text[:40]}…')


def _sentence(error: Exception) -> str:
    return ' '.join(str(error).split()).rstrip('.')
