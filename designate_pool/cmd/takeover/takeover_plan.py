"""What can be taken over of a pool of Designate, and what cannot."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from designate_pool.central.validation.masters import Network
from designate_pool.cmd.takeover import lists, pools_yaml, zone_copy
from designate_pool.errors import BadInput, InvalidField
from designate_pool.protocol.names_and_rdata import normal_name
from designate_pool.storage.designate import source, tables
from designate_pool.storage.sql.database import Storage

#: Zones that are not settled are told up to this many.
_SHOWN = 20


@dataclasses.dataclass(frozen=True, slots=True)
class TakeoverPlan:
    """
    :ivar counts: what is taken over, with its number
    :ivar servers: name, type in Designate and driver here, or why there is none
    :ivar refused: what cannot be taken over, with the reason
    :ivar remarks: what changes, or has to be known
    """

    pool: str
    counts: Mapping[str, int]
    servers: Sequence[tuple[str, str, str]]
    refused: Sequence[str]
    remarks: Sequence[str]

    @property
    def ok(self) -> bool:
        return not self.refused

    def text(self) -> str:
        lines = [f'Of the pool {self.pool} of Designate can be taken over:']
        lines += [f'  {count:>9}  {name}' for name, count in self.counts.items()]
        lines += ['Servers:', *(f'  {name}: {kind} -> {driver}' for name, kind, driver in self.servers)]
        for title, found in (('Not taken over:', self.refused), ('To be known:', self.remarks)):
            if found:
                lines += [title, *(f'  {each}' for each in found)]
        return '\n'.join(lines)


def make(designate: Storage, pool: Mapping[str, Any], networks: Sequence[Network]) -> TakeoverPlan:
    """
    :param pool: of pools.yaml
    :param networks: that may have masters of secondary zones though they are private or local
    """
    theirs, = lists.find_pools(designate, [pool['name']])
    zones = zone_copy.check(designate, theirs.row.id, networks)
    rows = lists.read(designate, theirs.row.id)
    checked = lists.check(rows)
    found = {'zones': zones.zones, 'recordsets': zones.recordsets, 'records (without SOA)': zones.records,
             'name servers of the pool': len(theirs.name_servers), **checked.counts}
    refused = [f'zone {name}: {why}' for name, why in sorted(zones.refused.items())] + checked.refused
    servers = pools_yaml.drivers_of(pool)
    refused += [f'server {name}: {driver} ({kind})' for name, kind, driver in servers
                if kind not in pools_yaml.DRIVERS]
    if not servers:
        refused.append(f'the pool {pool["name"]} has no targets in pools.yaml')
    refused += _pool_mistakes(theirs)
    remarks = [f'zone {name}: it is not settled in Designate now; copy and follow take it when it is'
               for name in zones.waiting[:_SHOWN]]
    if len(zones.waiting) > _SHOWN:
        remarks.append(f'{len(zones.waiting) - _SHOWN} more zones are not settled')
    remarks += [f'zone {name}: it was never transferred; it is copied, and served when one of its masters has answered '
                'MiniDNS' for name in zones.awaiting]
    remarks += [f'{server.name}: {each}' for server in pools_yaml.servers(pool) for each in server.remarks
                if server.driver]
    return TakeoverPlan(pool['name'], found, servers, refused, remarks + _left(designate, theirs.row.id))


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
    found = [] if pool.name_servers else [f'the pool {pool.row.name} has no ns_records']
    for each, _ in pool.name_servers:
        try:
            normal_name(each)
        except InvalidField as error:
            found.append(f'the name server {each} of the pool: {error.kwargs["why"]}')
    return found


def _left(designate: Storage, pool_id: str) -> list[str]:
    """What is left in Designate, by kind."""
    found = [f'the catalog zone {name} stays in Designate; servers that read it have to read the one that the pool '
             'makes here (catalog_zone)' for name in designate.read(source.catalog_zones, pool_id)]
    deleted = 0
    for row in designate.read(source.zone_counts):
        if row.pool_id == pool_id and row.is_deleted:
            deleted += row.number
    if deleted:
        found.append(f'{deleted} deleted zones stay in Designate')
    number = designate.read(source.count, tables.zone_tasks)
    if number:
        found.append(f'{number} imports and exports stay in Designate')
    return found
