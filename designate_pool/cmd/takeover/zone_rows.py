"""Rows of Designate's zones, recordsets and records as rows of ours.

Names and rdata are checked and normalised as those of users are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from designate_pool.central.validation import fields, names_and_rdata
from designate_pool.errors import InvalidField
from designate_pool.protocol.names_and_rdata import LONGEST, LONGEST_NAME, PLAIN, lies_in, normal_name
from designate_pool.protocol.zonefile import plain_rdata
from designate_pool.storage.designate import source

SOA = 'SOA'
#: Seconds that no version of Designate writes, but an integer column may hold.
_TTLS = ('ttl', 'refresh', 'retry', 'expire', 'minimum')


def why_never(zone: Any) -> str | None:
    """Why a zone cannot be taken over in its present state; None if it can be, at once or soon."""
    if zone.type != source.PRIMARY:
        return f'{zone.type.lower()} zones are not supported'
    if zone.status == 'ERROR':
        return f'{zone.action} is in ERROR in Designate; have it repaired there'
    return None


def is_settled(zone: Any) -> bool:
    """Whether what Designate has stored of the zone is the contents of its serial."""
    return zone.status == 'ACTIVE' and zone.action == 'NONE' and not zone.increment_serial


def domain(zone: Any, attributes: Mapping[str, str]) -> dict[str, Any]:
    """:raises InvalidField: for what is not possible here"""
    name = normal_name(zone.name, 'name')
    if name == '.' or name.startswith('*.'):
        raise InvalidField(field='name', why='neither the root nor a wildcard can be a zone')
    return {
        'id': zone.id, 'name': name, 'pool_id': zone.pool_id, 'project_id': zone.tenant_id or '',
        'email': names_and_rdata.email('email', zone.email), 'description': zone.description,
        **{each: fields.ttl(each, getattr(zone, each)) for each in _TTLS},
        'serial': fields.serial_number('serial', zone.serial), 'version': zone.version, **_times(zone),
        'attributes': fields.attributes('attributes', json.dumps(dict(attributes)))}


def recordset(row: Any, zone: str, project_id: str | None, managed: bool) -> dict[str, Any]:
    """
    :param zone: the domain's name
    :param project_id: the domain's
    :raises InvalidField: for what is not possible here
    """
    name = normal_name(row.name, f'{row.type} recordset {row.name}')
    if not lies_in(name, zone):
        raise InvalidField(field=f'{row.type} recordset {name}', why='it does not lie in the zone')
    return {'id': row.id, 'domain_id': row.zone_id, 'name': name, 'type': row.type,
            'ttl': fields.optional_ttl(f'{row.type} recordset {name}', row.ttl), 'description': row.description,
            'managed': managed,
            'project_id': None if managed or row.tenant_id == project_id else row.tenant_id,
            'version': row.version, **_times(row)}


def record(row: Any, owner: str, rtype: str) -> dict[str, Any]:
    """
    :param owner: the recordset's name
    :raises InvalidField: for data that is not possible here
    """
    plain = PLAIN.get(rtype)
    if plain is not None and len(row.data) <= LONGEST.get(rtype, LONGEST_NAME) and plain(row.data):
        text, wire = row.data, plain_rdata.of(rtype, row.data)
    else:
        (text, wire), = names_and_rdata.rdatas(f'{rtype} record at {owner}', rtype, [row.data])
    return {'id': row.id, 'domain_id': row.zone_id, 'recordset_id': row.recordset_id, 'data': text, 'wire': wire,
            'serial_number': row.serial, 'version': row.version, **_times(row)}


def _times(row: Any) -> dict[str, Any]:
    return {'created_at': row.created_at, 'updated_at': row.updated_at or row.created_at}
