"""Brings a pool, and what else Designate has besides zones, to what Designate has.

Rows with a version are compared by it, the others by their values.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from designate_pool.central.rules import quotas as quota_rules, tsigkeys as key_rules, zone_names
from designate_pool.errors import BadInput, InvalidField
from designate_pool.model import Pool, new_id
from designate_pool.pool_manager import server_registry
from designate_pool.protocol.names_and_rdata import normal_name
from designate_pool.storage.designate import source, tables, target
from designate_pool.storage.designate.source import DesignatePool
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import pools

#: In the order in which they are told.
LISTS = ('quotas', 'tlds', 'blacklists', 'tsigkeys', 'zone_transfer_requests', 'zone_transfer_accepts', 'zone_shares')
#: Longest description here; Designate's API allows no more.
_DESCRIPTION = 160


@dataclasses.dataclass(slots=True)
class ListReport:
    """
    :ivar counts: by table, how many rows Designate has that belong to the pool or to all
    """

    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    changed: dict[str, int] = dataclasses.field(default_factory=dict)
    refused: list[str] = dataclasses.field(default_factory=list)


def find_pools(designate: Storage, names: Sequence[str]) -> list[DesignatePool]:
    """Designate's pools of these names.

    :raises BadInput: when Designate has no such pool
    """
    by_name = {pool.row.name: pool for pool in designate.read(source.all_pools)}
    for name in names:
        if name not in by_name:
            raise BadInput(why=f'Designate has no pool {name}, which [service:pool_manager] pool_name says; it has '
                               f'{", ".join(by_name) or "none at all"}')
    return [by_name[name] for name in names]


def write_pool(tx: Tx, theirs: DesignatePool, pool: Pool, now: datetime) -> None:
    """Write the pool, and register its servers out of service.

    :raises BadInput: when the pool cannot be taken over
    """
    row = theirs.row
    if not theirs.name_servers:
        raise BadInput(why=f'the pool {row.name} has no ns_records in Designate')
    if target.is_used(tx, row.name, row.id):
        raise BadInput(why=f'there is another pool {row.name} here, with servers or zones; rename or delete it')
    working = target.working_servers(tx, row.id)
    if working:
        raise BadInput(why=f'the servers of the pool {row.name} get its zones from here already ({working[0]}), so '
                           'nothing is copied over them any more')
    values = [('name_server', normal_name(host), priority - 1) for host, priority in theirs.name_servers]
    values += [('also_notify', f'[{host}]:{port}' if ':' in host else f'{host}:{port}', position)
               for position, (host, port) in enumerate(theirs.also_notifies)]
    values += [(pools.ATTRIBUTE + key, value, position) for position, (key, value) in enumerate(theirs.attributes)]
    ours = pool_row(theirs, now)
    target.write_pool(tx, ours, [
        {'id': new_id(), 'version': 1, 'key': key, 'value': value, 'position': position, 'pool_id': row.id,
         'created_at': ours['created_at'], 'updated_at': ours['updated_at']} for key, value, position in values])
    server_registry.write_servers(tx, pool, delete_zones=False, on_command=False, now=now)
    target.rest_servers(tx, row.id, 'its zones are still those of Designate', now)


def pool_row(theirs: DesignatePool, now: datetime) -> target.Row:
    """The row of a pool here."""
    row = theirs.row
    # Designate's first pool, which its tables are created with, has no times.
    created_at = row.created_at or row.updated_at or now
    return {'id': row.id, 'name': row.name, 'description': row.description, 'version': row.version,
            'project_id': row.tenant_id, 'created_at': created_at, 'updated_at': row.updated_at or created_at}


def copy(designate: Storage, storage: Storage, pool_ids: Iterable[str]) -> ListReport:
    """Copy all lists.  What Designate does not have any more is deleted here, unless some pool is in service."""
    reports = [storage.run(_write, read(designate, pool_id), pool_id) for pool_id in pool_ids]
    changed: collections.Counter[str] = collections.Counter()
    for report in reports:
        changed.update(report.changed)
    refused = dict.fromkeys(why for report in reports for why in report.refused)
    return ListReport(reports[0].counts, changed, list(refused))


def read(designate: Storage, pool_id: str) -> dict[str, Sequence[Any]]:
    """The rows of all lists; TSIG keys of other pools are left out."""
    lists: dict[str, Sequence[Any]] = {name: designate.read(source.rows, getattr(tables, name)) for name in LISTS}
    lists['tsigkeys'] = [row for row in lists['tsigkeys'] if row.scope == 'ZONE' or row.resource_id == pool_id]
    return lists


def _write(tx: Tx, rows: Mapping[str, Sequence[Any]], pool_id: str) -> ListReport:
    report = ListReport({name: len(row) for name, row in rows.items()})
    is_alone = not target.any_in_service(tx)
    resources = target.held_resources(tx, pool_id, {row.resource_id for row in rows['tsigkeys']})
    keys = {row['id']: row for row in _good([row for row in rows['tsigkeys'] if row.resource_id in resources],
                                            _CONVERT['tsigkeys'], report)}
    for key_id, name in target.taken_key_names(tx, {row['name']: key_id for key_id, row in keys.items()}).items():
        del keys[key_id]
        report.refused.append(f'TSIG key {name}: there is another key of this name here')
    converted = {name: list(_good(rows[name], _CONVERT[name], report)) for name in ('quotas', 'tlds', 'blacklists')}
    converted['tsigkeys'] = list(keys.values())
    for name in ('zone_transfer_requests', 'zone_transfer_accepts', 'zone_shares'):
        here = target.held_resources(tx, pool_id, {row.zone_id for row in rows[name]})
        converted[name] = [_CONVERT[name](row) for row in rows[name] if row.zone_id in here]
    # In Designate a former owner may have shared the zone with the same project too.
    converted['zone_shares'] = list({(row['domain_id'], row['target_project_id']): row
                                     for row in converted['zone_shares']}.values())
    for name, entries in converted.items():
        report.changed[name] = target.write_list(tx, name, entries, pool_id, is_alone)
    return report


def _good(rows: Iterable[Any], convert: Callable[[Any], dict[str, Any]],
          report: ListReport) -> Iterable[dict[str, Any]]:
    for row in rows:
        try:
            yield convert(row)
        except InvalidField as error:
            report.refused.append(f'{_title(row)}: {error.kwargs["why"]}')


def _title(row: Any) -> str:
    columns = row._mapping
    if 'resource' in columns:
        return f'quota {row.resource} of {row.tenant_id}'
    if 'pattern' in columns:
        return f'blacklist {row.pattern}'
    return f'TSIG key {row.name}' if 'algorithm' in columns else f'TLD {row.name}'


def _quota(row: Any) -> dict[str, Any]:
    quota_rules.parse_limits({row.resource: row.hard_limit})
    return {'project_id': row.tenant_id or '', 'resource': row.resource, 'hard_limit': row.hard_limit, **times(row)}


def _tld(row: Any) -> dict[str, Any]:
    return _entry(row, zone_names.TLDS.parse({'name': row.name, 'description': row.description}, whole=True))


def _blacklist(row: Any) -> dict[str, Any]:
    return _entry(row, zone_names.BLACKLISTS.parse({'pattern': row.pattern, 'description': row.description},
                                                   whole=True))


def _key(row: Any) -> dict[str, Any]:
    kind = key_rules.TSIGKEYS
    values = kind.parse({name: getattr(row, name) for name in kind.checks}, whole=True)
    return _entry(row, {**values, 'scope': values['scope'].value})


def _request(row: Any) -> dict[str, Any]:
    return _entry(row, {'domain_id': row.zone_id, 'project_id': row.tenant_id, 'key': row.key, 'status': row.status,
                        'target_project_id': row.target_tenant_id, 'description': _cut(row.description)})


def _accept(row: Any) -> dict[str, Any]:
    return _entry(row, {'domain_id': row.zone_id, 'request_id': row.zone_transfer_request_id, 'status': row.status,
                        'project_id': row.tenant_id})


def _share(row: Any) -> dict[str, Any]:
    return {'id': row.id, **times(row), 'domain_id': row.zone_id, 'project_id': row.project_id,
            'target_project_id': row.target_project_id}


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:_DESCRIPTION]


def _entry(row: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {'id': row.id, 'version': row.version, **times(row), **values}


def times(row: Any) -> dict[str, Any]:
    """When a row of Designate was created and last updated."""
    return {'created_at': row.created_at, 'updated_at': row.updated_at or row.created_at}


_CONVERT: dict[str, Callable[[Any], dict[str, Any]]] = {
    'quotas': _quota, 'tlds': _tld, 'blacklists': _blacklist, 'tsigkeys': _key,
    'zone_transfer_requests': _request, 'zone_transfer_accepts': _accept, 'zone_shares': _share,
}
