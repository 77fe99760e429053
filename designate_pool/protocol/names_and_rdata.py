"""Names and rdata as text: what is valid, and the normal form in which equal things are equal texts.

A name in normal form is absolute, in lower case and in dnspython's spelling.  So is rdata, its names absolute; types
whose rdata is names and numbers alone are in lower case (RFC 4034 section 6.2), the others as dnspython writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
from dns.rdtypes.txtbase import TXTBase

from designate_pool.errors import InvalidField
from designate_pool.model import names

MAX_TTL = (1 << 31) - 1  # RFC 2181 section 8
#: Types of which a name has at most one record (RFC 1034 section 3.6.2, RFC 6672 section 2.4).
SINGLE = frozenset({'CNAME', 'DNAME', 'SOA'})
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


def is_ttl(value: object) -> bool:
    """Whether it is a whole number of seconds, 0 to :data:`MAX_TTL`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TTL


def normal_name(name: str, field: str | None = None) -> str:
    """
    :param field: what an error names; the name itself if None
    :raises InvalidField: for what is no absolute name
    """
    field = name if field is None else field
    if len(name) < 250 and _PLAIN_NAME.fullmatch(name):
        return name
    if not name.isascii():
        raise InvalidField(field=field, why="not ASCII; write international names as 'xn--…'")
    try:
        found = dns.name.from_text(name, None)
        if not found.is_absolute():
            raise InvalidField(field=field, why='the final dot is missing')
        return found.canonicalize().to_text()
    except dns.exception.DNSException as error:
        raise InvalidField(field=field, why=f'not a domain name ({sentence(error)})') from error


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
    if name != '.':
        yield from names.above(name)
        yield '.'


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
        raise InvalidField(field=rtype, why=f'{text!r} is not {rtype} data ({sentence(error)})') from None


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


def rname(address: str) -> dns.name.Name:
    """An e-mail address as a domain name: what is before the @ is one label (RFC 1035 section 8).

    :raises ValueError: for an address that has none
    """
    local, _, host = address.rpartition('@')
    try:
        return dns.name.Name((local.encode('ascii'), *dns.name.from_text(host).labels))
    except (dns.exception.DNSException, UnicodeEncodeError) as error:
        raise ValueError(f'{address!r} is not an e-mail address that an SOA record can hold') from error


def sentence(error: Exception) -> str:
    """dnspython's message in one line without its final dot."""
    return ' '.join(str(error).split()).rstrip('.')
