"""Parses the mappings of requests into values; an error names the field."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from designate_pool.central.validation import fields, masters, names_and_rdata
from designate_pool.errors import InvalidField
from designate_pool.model import AlsoNotify, Domain, Pool, RecordChange, RecordSet, Report
from designate_pool.protocol.names_and_rdata import given_name, lies_in

DEFAULT_TTL = 3600
#: Leave the value unchanged.
KEEP: Any = object()

#: Of a pool's name server; the SOA names the one with the lowest.
HIGHEST_PRIORITY = 10000
_POOL_NAME = re.compile(r'[A-Za-z0-9_]([A-Za-z0-9_. -]*[A-Za-z0-9_.-])?')


@dataclasses.dataclass(frozen=True, slots=True)
class NewDomain:
    """A request for a new domain; the pool by id, by name, or not at all."""

    name: str
    email: str
    ttl: int = DEFAULT_TTL
    description: str | None = None
    pool_id: str | None = None
    pool_name: str | None = None
    refresh: int = 3600
    retry: int = 600
    expire: int = 86400
    minimum: int = 3600
    lowest_serial: int | None = None
    attributes: str = ''
    masters: str = ''
    given_name: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class WantedRecordSet:
    """The wanted state of the recordset of a name and type.

    :ivar rdatas: empty deletes it; KEEP leaves its records unchanged, as for *ttl* and *description*
    :ivar prefix: of the names of its fields in errors
    """

    name: str
    type: str
    rdatas: Any
    ttl: Any = None
    description: Any = KEEP
    prefix: str = ''
    given_name: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RecordSetValues:
    """New values of an existing recordset; KEEP leaves one unchanged.

    :ivar records: texts, which become rdata when the recordset's type is known
    :ivar rdatas: of *records*; None before that
    """

    records: Any = KEEP
    ttl: Any = KEEP
    description: Any = KEEP
    rdatas: Any = None

    def of(self, recordset: RecordSet) -> WantedRecordSet:
        """The wanted state of *recordset*."""
        rdatas = self.rdatas
        if rdatas is None:
            rdatas = KEEP if self.records is KEEP else names_and_rdata.rdatas('records', recordset.type, self.records)
        return WantedRecordSet(recordset.name, recordset.type, rdatas, self.ttl, self.description)


def new_domain(given: Mapping[str, Any], master_networks: Sequence[masters.Network] = (),
               master_ports: Sequence[str] = ()) -> NewDomain:
    """A domain to create, secondary with ``masters``; for what these may be see :func:`masters.parse`."""
    fields.refuse_unknown(given, '', ('name', 'email', 'ttl', 'description', 'pool_name', 'pool_id', 'attributes',
                                      'masters'))
    is_secondary = 'masters' in given
    if given.get('pool_name') is not None and given.get('pool_id') is not None:
        raise InvalidField(field='pool_id', why='given beside pool_name; one is enough')
    pool_id = given.get('pool_id')
    with fields.every_mistake() as check:
        name = check(names_and_rdata.domain_name, 'name', given.get('name'))
        return NewDomain(
            name=name, given_name=given_name(given.get('name'), name),
            email=check(_from_master if is_secondary else names_and_rdata.email, 'email', given.get('email')),
            ttl=DEFAULT_TTL if given.get('ttl') is None else check(_from_master if is_secondary else fields.ttl, 'ttl',
                                                                   given['ttl']),
            description=check(fields.description, 'description', given.get('description')),
            pool_id=None if pool_id is None else fields.identifier(fields.text('pool_id', pool_id)) or pool_id,
            pool_name=check(fields.optional_text, 'pool_name', given.get('pool_name'), 50),
            attributes=check(fields.attributes, 'attributes', given['attributes']) if 'attributes' in given else '',
            masters=(check(masters.parse, 'masters', given['masters'], master_networks, master_ports)
                     if is_secondary else ''))


def _from_master(field: str, value: Any) -> Any:
    """Refuse a value that the masters of a secondary domain give."""
    if value is not None:
        raise InvalidField(field=field, why="can't be specified when type is SECONDARY: it comes from the masters")
    return ''


def not_in_catalog(name: str, catalog_zone: str | None) -> None:
    """Refuse the name of a pool's catalog zone, and those below it."""
    if catalog_zone is not None and lies_in(name, catalog_zone):
        raise InvalidField(field='name', why=f"it lies in the pool's catalog zone, {catalog_zone}")


def domain_values(given: Mapping[str, Any], master_networks: Sequence[masters.Network] = (),
                  master_ports: Sequence[str] = ()) -> dict[str, Any]:
    """The values of ``update_domain``, checked."""
    checks: dict[str, Any] = {
        'email': names_and_rdata.email, 'ttl': fields.ttl, 'description': fields.description,
        'attributes': fields.attributes, 'requires_approval': fields.boolean,
        'masters': lambda field, value: masters.parse(field, value, master_networks, master_ports) if value else ''}
    fields.refuse_unknown(given, '', tuple(checks))
    with fields.every_mistake() as check:
        return {key: check(checks[key], key, value) for key, value in given.items()}


def recordset(values: Any, prefix: str = '') -> WantedRecordSet:
    """A recordset to create; *prefix* is before the names of its fields in errors."""
    values = fields.mapping(prefix.rstrip('.') or 'recordset', values)
    fields.refuse_unknown(values, prefix, ('name', 'type', 'records', 'ttl', 'description'))
    with fields.every_mistake() as check:
        rtype = check(names_and_rdata.record_type, f'{prefix}type', values.get('type'))
        name = check(names_and_rdata.name, f'{prefix}name', values.get('name'))
        return WantedRecordSet(
            name=name, type=rtype,
            rdatas=rtype and check(names_and_rdata.rdatas, f'{prefix}records', rtype, values.get('records')),
            ttl=check(fields.optional_ttl, f'{prefix}ttl', values.get('ttl')),
            description=check(fields.description, f'{prefix}description', values.get('description')), prefix=prefix,
            given_name=given_name(values.get('name'), name))


def recordsets(given: Any) -> list[WantedRecordSet]:
    """The recordsets of a new domain."""
    return _refuse_duplicates([recordset(recordset_values, f'recordsets[{index}].')
                               for index, recordset_values in enumerate(fields.sequence('recordsets', given))])


def sizes(given: Any) -> list[int]:
    """The number of records of each recordset or change; 0 for what is neither."""
    counts = []
    for change in given if isinstance(given, (list, tuple)) else ():
        records = change.records if isinstance(change, RecordChange) else \
            isinstance(change, Mapping) and change.get('records')
        counts.append(len(records) if isinstance(records, (list, tuple)) else 0)
    return counts


def recordset_values(given: Mapping[str, Any]) -> RecordSetValues:
    """The values of ``update_recordset``, checked but for what depends on the recordset's type."""
    fields.refuse_unknown(given, '', ('records', 'ttl', 'description'))
    return RecordSetValues(
        records=fields.sequence('records', given['records']) if 'records' in given else KEEP,
        ttl=fields.optional_ttl('ttl', given['ttl']) if 'ttl' in given else KEEP,
        description=fields.description('description', given['description']) if 'description' in given else KEEP)


def changes(given: Any) -> list[WantedRecordSet]:
    """The changes of ``apply_changes``: RecordChange values, or mappings with the same keys."""
    return _refuse_duplicates([_change(change, f'changes[{index}].')
                               for index, change in enumerate(fields.sequence('changes', given))])


def _refuse_duplicates(changes: list[WantedRecordSet]) -> list[WantedRecordSet]:
    first: dict[tuple[str, str], WantedRecordSet] = {}
    for change in changes:
        earlier = first.setdefault((change.name, change.type), change)
        if earlier is not change:
            raise InvalidField(field=change.prefix.rstrip('.'),
                               why=f'about the same name and type as {earlier.prefix.rstrip(".")}')
    return changes


def _change(values: Any, prefix: str) -> WantedRecordSet:
    if isinstance(values, RecordChange):
        values = {'name': values.name, 'type': values.type, 'records': values.records, 'ttl': values.ttl}
    values = fields.mapping(prefix.rstrip('.'), values)
    fields.refuse_unknown(values, prefix, ('name', 'type', 'records', 'ttl'))
    rtype = names_and_rdata.record_type(f'{prefix}type', values.get('type'))
    records = fields.sequence(f'{prefix}records', values.get('records', ()))
    name = names_and_rdata.name(f'{prefix}name', values.get('name'))
    return WantedRecordSet(name=name, type=rtype,
                           rdatas=names_and_rdata.rdatas(f'{prefix}records', rtype, records) if records else (),
                           ttl=fields.optional_ttl(f'{prefix}ttl', values.get('ttl')), prefix=prefix,
                           given_name=given_name(values.get('name'), name))


def pool(given: Mapping[str, Any], old: Pool) -> Pool:
    """*old* with the given values; for a new pool, *old* has an empty name."""
    fields.refuse_unknown(given, '', ('id', 'ns_records', *_POOL_CHECKS))
    if 'name_servers' in given and 'ns_records' in given:
        raise InvalidField(field='ns_records', why='given beside name_servers; one is enough')
    with fields.every_mistake() as check:
        values = {key: check(_POOL_CHECKS[key], key, value) for key, value in given.items() if key in _POOL_CHECKS}
        if not old.name and 'name' not in values:
            check(fields.text, 'name', None)
        if 'ns_records' in given:
            values.update(check(_ns_records, 'ns_records', given['ns_records']) or {})
        elif 'name_servers' in values:
            values['priorities'] = ()
    return dataclasses.replace(old, **values)


def _ns_records(field: str, value: Any) -> dict[str, Any]:
    """The name servers and their priorities, ordered by these."""
    servers: list[tuple[int, str]] = []
    hosts = []
    with fields.every_mistake() as check:
        for index, server in enumerate(fields.sequence(field, value)):
            server = fields.mapping(f'{field}[{index}]', server)
            fields.refuse_unknown(server, f'{field}[{index}].', ('hostname', 'priority'))
            priority = check(_priority, f'{field}[{index}].priority', server.get('priority'))
            host = check(names_and_rdata.name, f'{field}[{index}].hostname', server.get('hostname'))
            hosts.append(host)
            servers.append((priority, host))
    _name_servers(field, hosts)
    servers.sort()
    priorities = tuple(priority for priority, _ in servers)
    return {'name_servers': tuple(host for _, host in servers),
            'priorities': () if priorities == tuple(range(1, len(servers) + 1)) else priorities}


def _priority(field: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= HIGHEST_PRIORITY:
        raise InvalidField(field=field, why=f'not a whole number from 1 to {HIGHEST_PRIORITY}')
    return value


def _pool_name(field: str, value: Any) -> str:
    value = fields.text(field, value, 50)
    if not _POOL_NAME.fullmatch(value):
        raise InvalidField(field=field, why='may hold letters, digits, dots, dashes and underscores only, and blanks '
                                            'within it')
    return value


def _name_servers(field: str, value: Any) -> tuple[str, ...]:
    hosts = tuple(names_and_rdata.name(f'{field}[{index}]', host)
                  for index, host in enumerate(fields.sequence(field, value)))
    first: dict[str, int] = {}
    for index, host in enumerate(hosts):
        if len(host) > 255 or host == '.' or host.startswith('*.'):
            raise InvalidField(field=f'{field}[{index}]', why='not the name of a host')
        earlier = first.setdefault(host, index)
        if earlier != index:
            raise InvalidField(field=f'{field}[{index}]', why=f'repeats {field}[{earlier}]')
    return hosts


def _also_notifies(field: str, value: Any) -> tuple[str, ...]:
    return tuple(_also_notify(f'{field}[{index}]', target)
                 for index, target in enumerate(fields.sequence(field, value)))


def _also_notify(field: str, value: Any) -> str:
    value = fields.text(field, value, 255)
    try:
        target = AlsoNotify.parse(value)
    except ValueError as error:
        raise InvalidField(field=field, why=str(error)) from None
    if target.key is not None:
        names_and_rdata.name(field, f'{target.key.removesuffix(".")}.')
    return value


_POOL_CHECKS: dict[str, Any] = {
    'name': _pool_name,
    'description': lambda field, value: fields.optional_text(field, value, 255),
    'project_id': lambda field, value: fields.optional_text(field, value, 36),
    'name_servers': _name_servers,
    'also_notifies': _also_notifies,
    'attributes': fields.attributes,
}


def report(domain: Any, status: Any, serial_number: Any) -> Report:
    """A report in the form of ``update_status``."""
    if not isinstance(domain, Domain):
        raise InvalidField(field='domain', why='not a zone')
    return Report(domain.id, domain.action, domain.generation, fields.outcome('status', status),
                  fields.serial_number('serial_number', serial_number), domain.pool_name)
