"""Converts record data between the planner's normal form and that of PowerDNS's API.

PowerDNS (4.7.3) accepts a record only in exactly the form in which it returns it; the forms were found by experiments.
Records of types that are not in :data:`TYPES` (LUA, ALIAS, types that are not tested) are left alone.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any

import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rdtypes.svcbbase

from designate_pool.errors import InvalidField
from designate_pool.protocol.names_and_rdata import LOWER, normal_rdata

TYPES = frozenset({
    'A', 'AAAA', 'AFSDB', 'APL', 'CAA', 'CERT', 'CNAME', 'CSYNC', 'DHCID', 'DNAME', 'DS', 'EUI48', 'EUI64', 'HINFO',
    'HTTPS', 'IPSECKEY', 'KX', 'L32', 'LOC', 'LP', 'MX', 'NAPTR', 'NS', 'OPENPGPKEY', 'PTR', 'RP', 'SMIMEA', 'SOA',
    'SPF', 'SRV', 'SSHFP', 'SVCB', 'TLSA', 'TXT', 'URI'})

#: Types whose last field dnspython writes with spaces, with the number of fields before it.
_BEFORE_LAST = {'DHCID': 0, 'DS': 3, 'IPSECKEY': 4, 'OPENPGPKEY': 0, 'SMIMEA': 3, 'SSHFP': 2, 'TLSA': 3}
#: Parameters of SVCB and HTTPS that PowerDNS writes by name and without quotation marks.
_BARE = frozenset({'mandatory', 'alpn', 'port', 'ipv4hint', 'ipv6hint'})
_KNOWN = _BARE | {'no-default-alpn', 'ech'}
_PARAMETER = re.compile(r'([a-z0-9-]+)(?:="((?:[^"\\]|\\.)*)")?')

#: In a name, PowerDNS escapes only dots and backslashes, and writes octets that are not printable as ``\DDD``.
_ESCAPED = re.compile(r'\\(.)')
_SPECIAL = re.compile(r'\\.|["();@$]')


def of_name(name: str) -> str:
    """*name* in PowerDNS's form."""
    return _ESCAPED.sub(lambda found: found[0] if found[1] in '0123456789.\\' else found[1], name)


def of_rdata(rtype: str, text: str) -> str:
    """*text*, in normal form, in the API's form."""
    if rtype in LOWER:
        return of_name(text)
    if rtype in _BEFORE_LAST:
        return _joined(text, _BEFORE_LAST[rtype])
    return _CONVERTERS[rtype](text) if rtype in _CONVERTERS else text


def to_rdata(rtype: str, text: str) -> str:
    """*text*, in the API's form, in normal form.

    :raises InvalidField: for data that only PowerDNS accepts
    """
    if rtype in LOWER:
        text = _SPECIAL.sub(lambda found: found[0] if found[0].startswith('\\') else f'\\{found[0]}', text)
    return normal_rdata(rtype, text)


def to_rdata_or_marked(rtype: str, text: str) -> str:
    """:func:`to_rdata`; for data without a normal form a text that is different from every normal form."""
    try:
        return to_rdata(rtype, text)
    except InvalidField:
        return f'{" ".join(text.split())} ?'


def _joined(text: str, before: int) -> str:
    *fields, last = text.split(None, before)
    return ' '.join([*fields, last.replace(' ', '')])


def _aaaa(text: str) -> str:
    # PowerDNS itself writes an address that ends with an IPv4 address like that, but does not accept it.
    return ipaddress.IPv6Address(text).exploded if '.' in text else text


def _cert(text: str) -> str:
    # PowerDNS accepts only numbers, no mnemonics.
    parsed: Any = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.CERT, text)
    return _joined(f'{int(parsed.certificate_type)} {parsed.key_tag} {int(parsed.algorithm)} {text.split(None, 3)[3]}',
                   3)


def _loc(text: str) -> str:
    # dnspython omits default sizes and precisions (RFC 1876 section 3).
    return text if text.count('m') > 1 else f'{text} 1.00m 10000.00m 10.00m'


def _naptr(text: str) -> str:
    *others, name = text.rsplit(' ', 1)
    return ' '.join([*others, of_name(name)])


def _svcb(text: str) -> str:
    priority, target, *rest = text.split(' ', 2)
    return ' '.join([priority, of_name(target), *(_parameter(*found) for each in rest
                                                  for found in _PARAMETER.findall(each))])


def _parameter(name: str, value: str) -> str:
    if name in _BARE:
        return f'{name}={value}'
    if name not in _KNOWN and not name.startswith('key'):
        name = f'key{int(dns.rdtypes.svcbbase.ParamKey.make(name))}'
    return f'{name}="{value}"' if value else name


_CONVERTERS: dict[str, Callable[[str], str]] = {
    'AAAA': _aaaa, 'CERT': _cert, 'HTTPS': _svcb, 'LOC': _loc, 'NAPTR': _naptr, 'SVCB': _svcb}
