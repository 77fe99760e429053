"""What can be taken over of a pool of Designate, and what cannot; its ``pools.yaml``, and a configuration for it."""

from __future__ import annotations

import dataclasses
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from designate_pool.central.validation.masters import Network
from designate_pool.cmd.takeover import lists, zone_copy
from designate_pool.errors import BadInput, InvalidField
from designate_pool.model import Endpoint, utcnow
from designate_pool.protocol.names_and_rdata import normal_name
from designate_pool.storage.designate import source
from designate_pool.storage.sql.database import Storage

DNS_PORT = 53
#: The driver here for each type of target, and what each of its options is called here; None for those that are not
#: needed.
_BIND9 = ('bind9', {'rndc_host': 'rndc_host', 'rndc_port': 'rndc_port', 'rndc_key_file': 'rndc_key_file',
                    'view': 'view', 'clean_zonefile': None, 'rndc_bin_path': None, 'rndc_timeout': None})
_NSD = ('nsd', {'pattern': 'pattern', 'keyfile': 'control_key_file', 'certfile': 'control_cert_file',
                'ca_certs': 'server_cert_file', 'verify_ssl': None, 'check_hostname': None})
_PDNS = ('pdns', {'api_endpoint': 'api_url', 'api_token': 'api_key', 'api_ca_cert': 'ca_file'})
DRIVERS: Mapping[str, tuple[str, Mapping[str, str | None]]] = {
    'bind9': _BIND9, 'nsd4': _NSD, 'pdns4': _PDNS, 'fake': ('fake', {}),
}
#: Defaults of Designate that differ from those of the drivers here.
_DEFAULTS = {'bind9': {'rndc_host': '127.0.0.1'}, 'nsd4': {'pattern': 'slave'}}


@dataclasses.dataclass(frozen=True, slots=True)
class TargetServer:
    """A target of a pool as a server here.

    :ivar driver: None when there is none for it
    :ivar remarks: what the configuration cannot say, or has to say otherwise
    """

    name: str
    kind: str
    driver: str | None
    host: str = ''
    port: int = DNS_PORT
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    verify: tuple[Endpoint, ...] = ()
    remarks: tuple[str, ...] = ()


def read(path: str) -> list[Mapping[str, Any]]:
    """The pools in Designate's pools.yaml.

    :raises BadInput: when the file cannot be read, or does not list pools
    """
    try:
        with open(path, encoding='utf-8') as file:
            document = yaml.safe_load(file)
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise BadInput(why=f'{path} cannot be read: {" ".join(str(error).split())}') from None
    if not isinstance(document, list) or not all(isinstance(pool, dict) and isinstance(pool.get('name'), str)
                                                 for pool in document):
        raise BadInput(why=f'{path} is not a list of pools, each with a name')
    for pool in document:
        for kind in ('targets', 'nameservers'):
            _entries(pool, kind, path)
    return document


def target_servers(pool: Mapping[str, Any]) -> list[TargetServer]:
    """The servers of a pool.  A name server that is no target is verified behind those targets that are no name
    servers."""
    asked = [_endpoint(entry) for entry in pool.get('nameservers') or ()]
    acted = [_target_endpoint(target) for target in pool.get('targets') or ()]
    public = tuple(endpoint for endpoint in asked if endpoint not in acted)
    return [_server(target, () if _target_endpoint(target) in asked else public)
            for target in pool.get('targets') or ()]


def ini(pool: Mapping[str, Any], minidns: Endpoint, database: str) -> str:
    """A configuration file for the pool.

    :param database: our own; an option's text
    """
    lines = [f'# Made from the pool {pool["name"]} of pools.yaml.', '[database]', f'connection = {database}', '',
             '[service:pool_manager]', f'pool_name = {pool["name"]}', '',
             '[service:minidns]', f'listen = {minidns}']
    for number, server in enumerate(target_servers(pool)):
        lines.append('')
        lines += [f'# {remark}' for remark in (f'{server.kind} {server.name}', *server.remarks)]
        if server.driver is None:
            continue
        lines += [f'[backend:{server.driver}:{_server_id(pool, server, number)}]', f'host = {server.host}']
        if server.port != DNS_PORT:
            lines.append(f'port = {server.port}')
        if server.verify:
            lines.append(f'verify = {", ".join(map(str, server.verify))}')
        lines += [f'{name} = {value.replace("$", "$$")}' for name, value in server.options.items()]
    return '\n'.join(lines) + '\n'


def _server(target: Mapping[str, Any], verify: tuple[Endpoint, ...]) -> TargetServer:
    kind = str(target.get('type'))
    name = ' '.join(str(target.get('description') or _target_endpoint(target)).split())
    if kind not in DRIVERS:
        return TargetServer(name, kind, None, remarks=('there is no driver for it here',))
    driver, taken_options = DRIVERS[kind]
    written = {**_DEFAULTS.get(kind, {}), **(target.get('options') or {})}
    options, remarks = {}, []
    for option, value in written.items():
        ours = taken_options.get(option, '')
        if option in ('host', 'port') and kind != 'nsd4':
            continue
        if ours:
            options[ours] = ' '.join(str(value).split())
        elif option not in taken_options and option not in ('host', 'port'):
            remarks.append(f'the option {option} is not known here')
    endpoint = _target_endpoint(target)
    if kind == 'nsd4':
        # Its host and port are those of the control channel.
        options['control_host'], options['control_port'] = endpoint.host, str(written.get('port', 8952))
        remarks.append('its pattern in nsd.conf has to name MiniDNS as primary; see the page on NSD')
    if kind == 'pdns4':
        remarks.append('api_url is without /api/v1')
    if target.get('type') == 'bind9' and 'rndc_key_file' not in options:
        remarks.append('rndc_key_file has to be given')
    return TargetServer(name, kind, driver, endpoint.host, DNS_PORT if kind == 'nsd4' else endpoint.port, options,
                        verify, tuple(remarks))


def _server_id(pool: Mapping[str, Any], server: TargetServer, number: int) -> uuid.UUID:
    """The same each time."""
    return uuid.uuid5(uuid.NAMESPACE_DNS, f'{pool["name"]} {server.driver} {server.host} {server.port} '
                                          f'{server.options.get("view", "")} {number}')


def _target_endpoint(target: Mapping[str, Any]) -> Endpoint:
    endpoint = _endpoint(target.get('options') or {})
    return Endpoint(endpoint.host, DNS_PORT) if target.get('type') == 'nsd4' else endpoint


def _endpoint(values: Mapping[str, Any]) -> Endpoint:
    return Endpoint(str(values.get('host', '127.0.0.1')), int(values.get('port', DNS_PORT)))


def _entries(pool: Mapping[str, Any], kind: str, path: str) -> None:
    entries = pool.get(kind) or []
    where = f'{path}: the {kind} of the pool {pool["name"]}'
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadInput(why=f'{where} are not a list of mappings')
    for entry in entries:
        options = entry.get('options') or {}
        if not isinstance(options, dict):
            raise BadInput(why=f'{where} have options that are not a mapping')
        for port in (values['port'] for values in (options, entry) if 'port' in values):
            if not str(port).isdecimal():
                raise BadInput(why=f'{where} have a port that is not a number: {port}')


#: Zones that are not settled are told up to this many.
_SHOWN = 20


@dataclasses.dataclass(frozen=True, slots=True)
class TakeoverPlan:
    """
    :ivar servers: name, type in Designate and driver here, or why there is none
    """

    pool: str
    counts: Mapping[str, int]
    servers: Sequence[tuple[str, str, str]]
    refused: Sequence[str]
    remarks: Sequence[str]

    @property
    def ok(self) -> bool:
        """Whether all of the pool can be taken over."""
        return not self.refused

    def text(self) -> str:
        """Lines to print: counts, servers, reasons for refusal, and remarks."""
        lines = [f'Of the pool {self.pool} of Designate can be taken over:']
        lines += [f'  {count:>9}  {name}' for name, count in self.counts.items()]
        lines += ['Servers:', *(f'  {name}: {kind} -> {driver}' for name, kind, driver in self.servers)]
        for title, remark in (('Not taken over:', self.refused), ('To be known:', self.remarks)):
            if remark:
                lines += [title, *(f'  {line}' for line in remark)]
        return '\n'.join(lines)


def make(designate: Storage, pool: Mapping[str, Any], networks: Sequence[Network]) -> TakeoverPlan:
    """The plan for taking over one pool of pools.yaml."""
    theirs, = lists.find_pools(designate, [pool['name']])
    zones, entries = zone_copy.trial(designate, lists.pool_row(theirs, utcnow()), networks)
    counts = {'zones': zones.zones, 'recordsets': zones.recordsets, 'records (without SOA)': zones.records,
              'name servers of the pool': len(theirs.name_servers), **entries.counts}
    refused = [f'zone {name}: {why}' for name, why in sorted(zones.refused.items())] + entries.refused
    servers = [(server.name, server.kind, server.driver or server.remarks[0]) for server in target_servers(pool)]
    refused += [f'server {name}: {driver} ({kind})' for name, kind, driver in servers
                if kind not in DRIVERS]
    if not servers:
        refused.append(f'the pool {pool["name"]} has no targets in pools.yaml')
    refused += _pool_mistakes(theirs)
    remarks = [f'zone {name}: it is not settled in Designate now; copy and follow take it when it is'
               for name in zones.waiting[:_SHOWN]]
    if len(zones.waiting) > _SHOWN:
        remarks.append(f'{len(zones.waiting) - _SHOWN} more zones are not settled')
    remarks += [f'zone {name}: it was never transferred; it is copied, and served when one of its masters has answered '
                'MiniDNS' for name in zones.awaiting]
    remarks += [f'{server.name}: {remark}' for server in target_servers(pool) for remark in server.remarks
                if server.driver]
    remarks += [f'the catalog zone {name} stays in Designate; servers that read it have to read the one that the pool '
                'makes here (catalog_zone)' for name in designate.read(source.catalog_zones, theirs.row.id)]
    return TakeoverPlan(pool['name'], counts, servers, refused, remarks)


def write(path: str, text: str) -> None:
    """Write a new file that only its owner can read, since it may contain secrets.

    :raises BadInput: when it is there already or cannot be written
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w', encoding='utf-8') as file:
            file.write(text)
    except OSError as error:
        raise BadInput(why=f'{path} cannot be written: {error.strerror}') from None


def _pool_mistakes(pool: source.DesignatePool) -> list[str]:
    mistakes = [] if pool.name_servers else [f'the pool {pool.row.name} has no ns_records']
    for hostname, _ in pool.name_servers:
        try:
            normal_name(hostname)
        except InvalidField as error:
            mistakes.append(f'the name server {hostname} of the pool: {error.kwargs["why"]}')
    return mistakes
