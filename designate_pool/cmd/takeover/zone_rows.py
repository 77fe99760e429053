"""Rows of Designate's zones, recordsets and records as rows of ours.

Names and rdata are checked and normalised as those of users are.
"""

from __future__ import annotations

import ipaddress
import json
import uuid
from collections.abc import Sequence
from typing import Any

import dns.exception
import dns.rdata
import dns.rdataclass
import dns.rdatatype

from designate_pool.central.validation import fields, masters, names_and_rdata
from designate_pool.errors import InvalidField
from designate_pool.model import PTR
from designate_pool.protocol import soa_rdata
from designate_pool.protocol.names_and_rdata import LONGEST, LONGEST_NAME, LOWER, PLAIN, lies_in, normal_name
from designate_pool.protocol.zonefile import plain_rdata
from designate_pool.storage.designate import source

SOA = 'SOA'
#: Seconds that no version of Designate writes, but an integer column may hold.
_TTLS = ('ttl', 'refresh', 'retry', 'expire', 'minimum')

#: Of ``managed_records``, in ASCII characters; Designate's columns are wider.
_LONGEST_WORDS = {'plugin': 32, 'resource_type': 32, 'address': 45}


def why_never(zone: Any, details: source.ZoneDetails) -> str | None:
    """Why a zone cannot be taken over in its present state; None if it can be, at once or soon."""
    if zone.status == 'ERROR' and not is_settled(zone, details):
        return f'{zone.action} is in ERROR in Designate; have it repaired there'
    return None


def is_settled(zone: Any, details: source.ZoneDetails) -> bool:
    """Whether what Designate has stored of the zone is the contents of its serial.

    One that was never transferred has none, and ends in ERROR there since no server serves it.
    """
    if details.awaits_transfer:
        return bool(zone.action != 'DELETE')
    return zone.status == 'ACTIVE' and zone.action == 'NONE' and not zone.increment_serial


def domain(zone: Any, details: source.ZoneDetails, networks: Sequence[masters.Network] = ()) -> dict[str, Any]:
    """
    :param networks: that may have masters of secondary zones though they are private or local
    :raises InvalidField: for what is not possible here
    """
    name = normal_name(zone.name, 'name')
    if name == '.' or name.startswith('*.'):
        raise InvalidField(field='name', why='neither the root nor a wildcard can be a zone')
    return {
        'id': zone.id, 'name': name, 'pool_id': zone.pool_id, 'project_id': zone.tenant_id or '',
        'email': names_and_rdata.email('email', zone.email), 'description': zone.description,
        **{each: fields.ttl(each, getattr(zone, each)) for each in _TTLS},
        'serial': fields.serial_number('serial', zone.serial), 'version': zone.version, **_times(zone),
        'attributes': fields.attributes('attributes', json.dumps(details.attributes)),
        'masters': masters.parse('masters', list(map(str, details.masters)), networks) if is_secondary(zone) else '',
        'transferred_at': ((zone.transferred_at or zone.updated_at or zone.created_at)
                           if is_secondary(zone) and not details.awaits_transfer else None),
        'awaits_transfer': details.awaits_transfer}


def is_secondary(zone: Any) -> bool:
    return bool(zone.type == source.SECONDARY)


def secondary_soa(row: Any, zone: Any) -> dict[str, Any]:
    """What a secondary domain has from the SOA of its masters.

    :param row: the SOA record
    :raises InvalidField: when it is none of the zone's serial
    """
    try:
        text, _ = _parsed('SOA', row.data)
        soa = soa_rdata.parse_soa(text, zone.name)
    except (dns.exception.DNSException, ValueError) as error:
        raise InvalidField(field='SOA record', why=f'not SOA data ({error})') from None
    if int(text.split()[2]) != zone.serial:
        raise InvalidField(field='SOA record', why=f'its serial is {text.split()[2]}, that of the zone {zone.serial}')
    return {'soa_names': soa.names, **{each: getattr(soa, each) for each in ('email', *_TTLS[1:])}}


def recordset(row: Any, zone: Any, name_of_zone: str, managed: bool) -> dict[str, Any]:
    """
    :param name_of_zone: the domain's name
    :raises InvalidField: for what is not possible here
    """
    name = normal_name(row.name, f'{row.type} recordset {row.name}')
    if not lies_in(name, name_of_zone):
        raise InvalidField(field=f'{row.type} recordset {name}', why='it does not lie in the zone')
    return {'id': row.id, 'domain_id': row.zone_id, 'name': name, 'type': row.type,
            'ttl': fields.optional_ttl(f'{row.type} recordset {name}', row.ttl), 'description': row.description,
            'managed': managed or row.type == SOA,
            'project_id': None if managed or is_secondary(zone) or row.tenant_id == zone.tenant_id else row.tenant_id,
            'version': row.version, **_times(row)}


def record(row: Any, owner: str, rtype: str, from_masters: bool = False) -> dict[str, Any]:
    """
    :param owner: the recordset's name
    :param from_masters: whether it is one of a secondary zone, and not a user's
    :raises InvalidField: for data that is not possible here
    """
    plain = PLAIN.get(rtype)
    if plain is not None and len(row.data) <= LONGEST.get(rtype, LONGEST_NAME) and plain(row.data):
        text, wire = row.data, plain_rdata.of(rtype, row.data)
    elif from_masters:
        try:
            text, wire = _parsed(rtype, row.data)
        except (dns.exception.DNSException, ValueError) as error:
            raise InvalidField(field=f'{rtype} record at {owner}', why=f'not {rtype} data ({error})') from None
    else:
        (text, wire), = names_and_rdata.rdatas(f'{rtype} record at {owner}', rtype, [row.data])
    return {'id': row.id, 'domain_id': row.zone_id, 'recordset_id': row.recordset_id, 'data': text, 'wire': wire,
            'serial_number': row.serial, 'version': row.version, **_times(row)}


def _parsed(rtype: str, data: str) -> tuple[str, bytes]:
    """Text and wire form, as a transfer from a master gives them."""
    found = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(rtype), data, relativize=False)
    text = found.to_text()
    return text.lower() if rtype in LOWER else text, found.to_wire() or b''


def managed_record(row: Any, text: str) -> dict[str, Any] | None:
    """For which resource of another service a record is there; None if it is there for none.

    :param text: its data here
    :raises InvalidField: when it names none, or one that cannot be kept here
    """
    if not row.managed or not row.managed_resource_type or not row.managed_resource_id:
        return None
    try:
        # Designate keeps it as a UUID; Neutron and Nova write it with hyphens.
        resource_id = str(uuid.UUID(row.managed_resource_id))
        address = str(ipaddress.ip_address(row.managed_extra)) if row.managed_resource_type == PTR else ''
    except ValueError as error:
        raise InvalidField(field=f'{row.managed_resource_type} {row.managed_resource_id}', why=str(error)) from None
    words = {'plugin': row.managed_plugin_name or '', 'resource_type': row.managed_resource_type, 'address': address}
    for name, word in words.items():
        longest = _LONGEST_WORDS[name]
        if len(word) > longest or not word.isascii():
            raise InvalidField(field=f'{row.managed_resource_type} {resource_id}',
                               why=f'its {name.replace("_", " ")} {word} is not of up to {longest} ASCII characters')
    return {'id': row.id, 'domain_id': row.zone_id, 'recordset_id': row.recordset_id, 'data': text,
            **words, 'resource_id': resource_id, 'region': row.managed_resource_region or '',
            'project_id': row.managed_tenant_id or '', **_times(row)}


def _times(row: Any) -> dict[str, Any]:
    return {'created_at': row.created_at, 'updated_at': row.updated_at or row.created_at}
