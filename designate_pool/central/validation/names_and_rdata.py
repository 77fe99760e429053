"""Checks of names, types and rdata in requests, as errors that name the field.

Names become their normal form; rdata becomes text in dnspython's spelling and uncompressed wire form.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import dns.exception
import dns.ipv4
import dns.ipv6
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype

from designate_pool.central.validation.fields import sequence, text
from designate_pool.deadline import Turns
from designate_pool.errors import InvalidField
from designate_pool.protocol import rules, soa_rdata, zonemd
from designate_pool.protocol.names_and_rdata import PLAIN, SINGLE, normal_name, parse_rdata, text_of, why_not_data

_TEXTS = frozenset({'TXT', 'SPF'})
#: Wire forms of addresses in normal form, most of what zones contain: dnspython's parser takes ten times as long.
_ADDRESSES: dict[str, Callable[[str], bytes]] = {'A': dns.ipv4.inet_aton, 'AAAA': dns.ipv6.inet_aton}
_PARENTHESES = str.maketrans('()', '  ')
#: Octets of rdata of which dnspython's text takes long.
_LARGE = 10_000
#: Wrong records that one error lists.
MOST_MISTAKES = 20
#: An octet that dnspython escapes: not printable, or special in names.
_ESCAPED = re.compile(r'\\(\d{3}|.)')
#: Characters of a zone's name, with escapes; rndc and NSD's list of zones take fewer than a name may have.
_LONGEST_ZONE_NAME = 512
_INVISIBLE = (*range(33), 127)


class Rdata(NamedTuple):
    """One record's data."""

    text: str
    wire: bytes


def domain_name(field: str, value: Any) -> str:
    """The name of a new domain."""
    zone = name(field, value)
    if zone == '.' or zone.startswith('*.'):
        raise InvalidField(field=field, why='neither the root nor a wildcard can be a zone')
    mistake = implausible(zone)
    if mistake is not None:
        raise InvalidField(field=field, why=mistake)
    return zone


def name(field: str, value: Any) -> str:
    """An absolute name, in lower case."""
    return normal_name(text(field, value), field)


def record_type(field: str, value: Any) -> str:
    """A type that dnspython can parse, or one by its number (RFC 3597), in its spelling."""
    value = text(field, value, 16)
    try:
        rtype = dns.rdatatype.from_text(value)
    except (dns.exception.DNSException, ValueError):
        raise InvalidField(field=field, why=f'not a record type: {value}') from None
    why = rules.refused_type(rtype)
    if why is not None:
        raise InvalidField(field=field, why=why)
    return dns.rdatatype.to_text(rtype)


def rdatas(field: str, rtype: str, given: Any) -> tuple[Rdata, ...]:
    """The records of one recordset, at least one; repeated ones count once."""
    texts = sequence(field, given)
    if not texts:
        raise InvalidField(field=field, why='at least one record is needed')
    if len(texts) > 1 and rtype in SINGLE:
        raise InvalidField(field=field, why=f'a name has one {rtype} record at most')
    by_wire: dict[bytes, Rdata] = {}
    mistakes: list[tuple[str, str]] = []
    to_wire = _ADDRESSES.get(rtype)
    for index, value in Turns().between(enumerate(texts)):
        try:
            record = text(f'{field}[{index}]', value)
            if to_wire is not None and PLAIN[rtype](record):
                wire = to_wire(record)
                by_wire.setdefault(wire, Rdata(record, wire))
                continue
            parsed = _parse(f'{field}[{index}]', rtype, record)
            key = zonemd.fold_names(parsed.rdtype, parsed.to_digestable(dns.name.root))
            if key not in by_wire:
                by_wire[key] = as_rdata(f'{field}[{index}]', parsed)
        except InvalidField as error:
            mistakes.append((error.kwargs['field'], error.kwargs['why']))
            if len(mistakes) == MOST_MISTAKES:
                break
    if mistakes:
        raise InvalidField.of(mistakes)
    return tuple(by_wire.values())


def as_rdata(field: str, parsed: dns.rdata.Rdata) -> Rdata:
    """The text and the wire form of parsed rdata.

    :raises InvalidField: when a name in it is not absolute, it is too long for a message, or has no text form
    """
    try:
        wire = parsed.to_wire()
    except dns.name.NeedAbsoluteNameOrOrigin:
        raise InvalidField(field=field, why=f"a name in '{parsed}' is not absolute: the final dot is missing") from None
    assert wire is not None
    if len(wire) > 65535:
        raise InvalidField(field=field, why='longer than 65535 octets')
    if len(wire) > _LARGE:
        time.sleep(0)  # other green threads may run between the steps
    rtype = dns.rdatatype.to_text(parsed.rdtype)
    mistake = rules.mistake(rtype, parsed)
    if mistake is not None:
        raise InvalidField(field=field, why=mistake)
    text = text_of(rtype, parsed, wire)
    if len(wire) > _LARGE:
        time.sleep(0)
    if not _is_readable(rtype, text, parsed):
        raise InvalidField(field=field, why=f'it cannot be written as text: {text} means something else')
    return Rdata(text, wire)


def _is_readable(rtype: str, text: str, parsed: dns.rdata.Rdata) -> bool:
    """Whether *text* means *parsed*: octets as in RFC 3597 may be data that no text of the type stands for."""
    if rtype in PLAIN:
        return True
    try:
        return dns.rdata.from_text(parsed.rdclass, parsed.rdtype, text, relativize=False) == parsed
    except (dns.exception.DNSException, ValueError):
        return False


def _parse(field: str, rtype: str, record: str) -> dns.rdata.Rdata:
    if rtype == 'TLSA':
        # The digits are usually in several lines, with parentheses around them.
        record = ' '.join(record.translate(_PARENTHESES).split())
    try:
        if rtype in _TEXTS and '"' not in record and record.endswith('\\'):
            raise ValueError('a backslash at the end has to be in quotes')
        return parse_rdata(rtype, record)
    except (dns.exception.DNSException, ValueError) as error:
        raise InvalidField(field=field, why=why_not_data(rtype, record, error)) from None


def email(field: str, value: Any) -> str:
    """As :func:`designate_pool.protocol.soa_rdata.check_email` does."""
    return soa_rdata.check_email(field, text(field, value, 255))


def implausible(name: str) -> str | None:
    """Why *name* (absolute) can only be a mistake for a zone, and what may be meant; None when it is plausible."""
    if any(len(octet) == 3 and int(octet) in _INVISIBLE for octet in _ESCAPED.findall(name)):
        return 'a blank or a control character is in it'
    if len(name) > _LONGEST_ZONE_NAME:
        return f'with its escapes it has more than {_LONGEST_ZONE_NAME} characters'
    try:
        network = ipaddress.ip_interface(name.rstrip('.').replace('\\', '')).network
    except ValueError:
        return None
    bits, step = (24, 8) if network.version == 4 else (64, 4)
    labels = network.network_address.reverse_pointer.split('.')
    own = min(network.prefixlen, bits) // step * step  # the zone that contains it
    reverse = '.'.join(labels[(network.max_prefixlen - own) // step:])
    return f'it is an address or a network and no name; its reverse names are in {reverse}., or zones below'
