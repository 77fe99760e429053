"""Copies of Designate's rows in our tables, with their ids, versions and times.

A copied domain is ACTIVE at the serial of Designate, or a secondary one that waits for its first transfer.  The servers
of its pool are in maintenance, so that nothing is done on any.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from designate_pool.model import Action, Actor, ChangeKind, ServerState, Status, Task, Version, names, utcnow
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql import bulk, secrets
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import chunks, delete_all, exists
from designate_pool.storage.sql.schema import (ALIVE, audits, catalogs, domains, managed_records, metadata,
                                               pool_attributes, pool_manager_status, pool_renewals, pool_servers, pools,
                                               records, recordsets, secondary_zones, tsigkeys as tsigkey_table,
                                               zone_shares, zone_tasks, zone_transfer_accepts, zone_transfer_requests,
                                               zone_versions)
from designate_pool.storage.zones import tsigkeys, versions as version_store

#: The ``request_id`` of copied domains.  Any change of a domain's contents here replaces it.
MARK = 'designate'
WHO = Actor('takeover')

#: Of a secondary domain that was never transferred: no server can serve it.
AWAITS_FIRST = sa.and_(domains.c.awaits_transfer, domains.c.transferred_at.is_(None))

Row = Mapping[str, Any]
#: The lists in which a text is only once, and the column of the text.
_TEXTS = {'tlds': 'name', 'blacklists': 'pattern'}
#: Of rows of servers.  In maintenance a server gets rows too, but nothing is done.
_CALLED = sa.or_(pool_manager_status.c.status.is_not(None), pool_manager_status.c.attempts > 0,
                 pool_manager_status.c.claimed_by.is_not(None))


class Copied(NamedTuple):
    """What tells whether a domain is still as Designate has it.

    :ivar awaits_first: whether it is a secondary one that was never transferred, and so is on no server
    :ivar is_ours: whether it was created or changed here
    """

    id: str
    name: str
    pool_id: str
    version: int
    serial: int
    project_id: str
    attributes: str
    masters: str
    awaits_first: bool
    is_ours: bool


_COPIED = sa.select(*(domains.c[name] for name in Copied._fields[:-2]), AWAITS_FIRST,
                    sa.or_(domains.c.request_id != MARK,
                           sa.and_(domains.c.status != Status.ACTIVE, ~AWAITS_FIRST))).where(
    domains.c.deleted == ALIVE)


class SetState(NamedTuple):
    """What tells whether a recordset is still as Designate has it.

    A zone that goes to another project there takes its recordsets with it, at the versions that they had.
    """

    version: int
    project_id: str | None
    managed: bool


@dataclasses.dataclass(slots=True)
class Versions:
    """The states of recordsets, and the versions of records, by id."""

    recordsets: dict[str, SetState]
    records: dict[str, int]


def of_ids(tx: Tx, ids: Iterable[str]) -> dict[str, Copied]:
    """The domains with these ids, by id."""
    return {row.id: Copied(*row) for part in chunks(ids) for row in tx.execute(_COPIED.where(domains.c.id.in_(part)))}


def of_names(tx: Tx, wanted: Iterable[str]) -> dict[str, Copied]:
    """The live domains with these names, by name."""
    return {row.name: Copied(*row) for part in chunks(wanted)
            for row in tx.execute(_COPIED.where(domains.c.name.in_(part)))}


def page(tx: Tx, pool_id: str, after_id: str, limit: int) -> list[Copied]:
    """A pool's live domains, by id after *after_id*."""
    return [Copied(*row) for row in tx.execute(_COPIED.where(
        domains.c.pool_id == pool_id, domains.c.id > after_id).order_by(domains.c.id).limit(limit))]


def generations(tx: Tx, wanted: Iterable[str]) -> dict[str, int]:
    """The highest generation of each of these names that had a domain."""
    return dict(row for part in chunks(wanted) for row in tx.execute(
        sa.select(domains.c.name, sa.func.max(domains.c.generation)).where(domains.c.name.in_(part))
        .group_by(domains.c.name)).tuples())


def versions(tx: Tx, domain_ids: Sequence[str]) -> Versions:
    """The versions of what these domains contain."""
    def of(table: sa.Table, *columns: str) -> Any:
        return tx.execute(sa.select(table.c.id, *(table.c[name] for name in columns))
                          .where(table.c.domain_id.in_(domain_ids)))

    return Versions({set_id: SetState(*state) for set_id, *state in of(recordsets, *SetState._fields)},
                    dict(of(records, 'version').tuples().all()))


def insert_domains(tx: Tx, rows: Sequence[Row]) -> None:
    """Insert domains; *rows* have the columns that Designate has too, and ``generation``."""
    _insert(tx, domains, [{**row, **_settled(row), 'deleted': ALIVE} for row in rows])


def update_domain(tx: Tx, row: Row) -> None:
    """Overwrite the columns that Designate has too, and the state that follows from them."""
    tx.execute(sa.update(domains).where(domains.c.id == row['id']).values({**row, **_settled(row)}))


def _settled(row: Row) -> dict[str, Any]:
    waits = row['awaits_transfer']
    # Designate's rows keep their times, and what was before this is not known.
    origin = Version(row['id'], 1, row['serial'], row['serial'], ChangeKind.TAKEOVER, WHO, row['project_id'], MARK,
                     utcnow())
    return {'action': Action.CREATE if waits else Action.NONE, 'status': Status.PENDING if waits else Status.ACTIVE,
            'reported_serial': None if waits else row['serial'], 'changed_at': row['updated_at'],
            'converged_at': None if waits else row['updated_at'], 'request_id': MARK,
            'reversed_name': names.from_the_root(row['name']), 'created_by': version_store.origin_text(origin)}


def update(tx: Tx, name: str, key: str, values: Row) -> None:
    """Write columns of a row of a table of ours, *name*."""
    table = metadata.tables[name]
    tx.execute(sa.update(table).where(table.c.id == key).values(values))


def insert(tx: Tx, name: str, rows: Sequence[Row]) -> None:
    """Insert rows of recordsets or records; *name* is that of our table."""
    same = {'deleted': ALIVE} if name == 'recordsets' else {'task': Task.NONE, 'status': Status.ACTIVE}
    _insert(tx, metadata.tables[name], rows, **same)


def write_managed_records(tx: Tx, domain_ids: Iterable[str], rows: Sequence[Row]) -> None:
    """Have these domains have exactly the *rows* of records that are there for resources of other services."""
    delete_all(tx, managed_records.c.domain_id, domain_ids)
    _insert(tx, managed_records, rows)


def delete_recordsets(tx: Tx, ids: Iterable[str]) -> None:
    """Delete recordsets and their records without a trace."""
    for part in chunks(ids):
        tx.execute(sa.delete(records).where(records.c.recordset_id.in_(part)))
        tx.execute(sa.delete(recordsets).where(recordsets.c.id.in_(part)))


def delete_records(tx: Tx, ids: Iterable[str]) -> None:
    """Delete records without a trace."""
    delete_all(tx, records.c.id, ids)


def delete_contents(tx: Tx) -> None:
    """Delete all recordsets and records, and keep the domains."""
    for table in (managed_records, records, recordsets):
        tx.execute(sa.delete(table))


def delete_domains(tx: Tx, ids: Iterable[str]) -> None:
    """Delete copied domains without a trace: no server ever got them from here."""
    for part in chunks(ids):
        tx.execute(sa.update(zone_tasks).where(zone_tasks.c.domain_id.in_(part)).values(domain_id=None))
        for table in (zone_shares, zone_transfer_accepts, zone_transfer_requests, pool_manager_status, zone_versions,
                      managed_records, secondary_zones, records, recordsets):
            tx.execute(sa.delete(table).where(table.c.domain_id.in_(part)))
        # A key that is left would keep its name from the keys of other zones.
        if tx.execute(sa.delete(tsigkey_table).where(tsigkey_table.c.resource_id.in_(part))).rowcount:
            tsigkeys.count_change(tx)
        tx.execute(sa.delete(domains).where(domains.c.id.in_(part)))


def write_pool(tx: Tx, row: Row, attributes: Sequence[Row]) -> None:
    """Write a pool with Designate's id; a pool of its name with another id, that was never used, is replaced."""
    unused = tx.execute(sa.select(pools.c.id).where(pools.c.name == row['name'], pools.c.id != row['id'])).scalar()
    if unused is not None:
        for table in (pool_attributes, pool_servers, catalogs, pool_renewals, audits):
            tx.execute(sa.delete(table).where(table.c.pool_id == unused))
        tx.execute(sa.delete(pools).where(pools.c.id == unused))
    _write_rows(tx, pools, [row], ('id',), sa.false())
    present = tx.execute(sa.select(pool_attributes.c.key, pool_attributes.c.position, pool_attributes.c.value)
                         .where(pool_attributes.c.pool_id == row['id'])).tuples().all()
    if sorted(present) != sorted((attribute['key'], attribute['position'], attribute['value'])
                                 for attribute in attributes):
        tx.execute(sa.delete(pool_attributes).where(pool_attributes.c.pool_id == row['id']))
        for attribute in attributes:
            tx.execute(sa.insert(pool_attributes).values(dict(attribute)))


def begin_service(tx: Tx, pool_ids: Iterable[str], now: datetime) -> None:
    """Have the resting servers of pools join them, and their secondary domains refreshed."""
    for pool_id in pool_ids:
        serial = catalog.bump(tx, pool_id, now)
        tx.execute(sa.update(pool_servers).where(
            pool_servers.c.pool_id == pool_id, pool_servers.c.state == ServerState.MAINTENANCE)
            .values(state=ServerState.JOINING, state_since=now, note=None, filled_to='', filled=0, catalog_from=serial,
                    version=pool_servers.c.version + 1))
        # Until now secondary domains were Designate's to refresh, and what it served counts as confirmed by a master.
        due = tx.execute(sa.select(domains.c.id, domains.c.awaits_transfer).where(
            domains.c.pool_id == pool_id, domains.c.deleted == ALIVE, domains.c.masters != '',
            domains.c.id.not_in(sa.select(secondary_zones.c.domain_id)))).all()
        _insert(tx, secondary_zones, [{'domain_id': domain.id, 'created_at': now, 'updated_at': now, 'next_at': now,
                                       'checked_at': None if domain.awaits_transfer else now} for domain in due])


def write_list(tx: Tx, name: str, rows: Sequence[Row], pool_id: str, is_whole: bool) -> int:
    """Have our table *name* contain *rows*; how many were written or deleted.

    :param is_whole: whether rows that belong to no pool are deleted unless they are among *rows*
    """
    table = metadata.tables[name]
    of_pool = sa.select(domains.c.id).where(domains.c.pool_id == pool_id)
    key: tuple[str, ...] = ('id',)
    others: Any = sa.literal(is_whole)
    if name == 'quotas':
        key = 'project_id', 'resource'
    elif name == 'tsigkeys':
        others = sa.or_(table.c.resource_id == pool_id, table.c.resource_id.in_(of_pool))
        rows = [{**row, 'secret': secrets.sealed(tsigkey_table.c.secret, secrets.of(tx), row['secret'], row['id'])}
                for row in rows]
    elif name in _TEXTS:
        rows = _of_new_texts(tx, table, _TEXTS[name], rows, is_whole)
    elif 'domain_id' in table.c:
        others = table.c.domain_id.in_(of_pool)
    changed = _write_rows(tx, table, rows, key, others)
    if changed and name == 'tsigkeys':
        tsigkeys.count_change(tx)
    if changed and name == 'zone_shares':
        is_shared = sa.exists().where(zone_shares.c.domain_id == domains.c.id)
        tx.execute(sa.update(domains).where(domains.c.pool_id == pool_id).values(shared=is_shared))
    return changed


def _of_new_texts(tx: Tx, table: sa.Table, text: str, rows: Sequence[Row], is_whole: bool) -> list[Row]:
    """Those of *rows* whose texts no other row has, of this table as far as it stays, or of Designate.

    Present rows whose texts change are deleted, to be written anew: another row may have got the former text.
    """
    present = dict(tx.execute(sa.select(table.c.id, table.c[text])).tuples().all())
    ids = {} if is_whole else {present_text: key for key, present_text in present.items()}
    new_rows = [row for row in rows if ids.setdefault(row[text], row['id']) == row['id']]
    delete_all(tx, table.c.id, (row['id'] for row in new_rows if present.get(row['id'], row[text]) != row[text]))
    return new_rows


def _write_rows(tx: Tx, table: sa.Table, rows: Sequence[Row], key: Sequence[str], others: Any) -> int:
    columns = [table.c[name] for name in key]
    compared = ['version'] if 'version' in table.c else [name for name in rows[0] if name not in key] if rows else []
    present = {tuple(row[:len(key)]): row[len(key):]
               for row in tx.execute(sa.select(*columns, *(table.c[name] for name in compared)))}
    rows_by_key = {tuple(row[name] for name in key): row for row in rows}
    gone = [tuple(row) for row in tx.execute(sa.select(*columns).where(others)) if tuple(row) not in rows_by_key]
    for gone_key in gone:
        tx.execute(sa.delete(table).where(*(column == value for column, value in zip(columns, gone_key))))
    written = 0
    for gone_key, row in rows_by_key.items():
        if gone_key not in present:
            tx.execute(sa.insert(table).values(dict(row)))
        elif list(present[gone_key]) != [row[name] for name in compared]:
            tx.execute(sa.update(table).where(*(column == value for column, value in zip(columns, gone_key)))
                       .values(dict(row)))
        else:
            continue
        written += 1
    return written + len(gone)


def held_resources(tx: Tx, pool_id: str, ids: Iterable[str]) -> set[str]:
    """Those of *ids* that are the pool or its live domains."""
    return {zone_id for zone_id, copy in of_ids(tx, ids).items() if copy.pool_id == pool_id} | ({pool_id} & set(ids))


def taken_key_names(tx: Tx, ids: Mapping[str, str]) -> dict[str, str]:
    """The ids of keys, given by their names, whose names other keys or the keys of servers have, with these names."""
    servers = {_plain(name) for name in server_store.key_names(tx)}
    return {key_id: name for name, key_id in ids.items() if _plain(name) in servers
            or tsigkeys.ids_of_names(tx, (_plain(name), f'{_plain(name)}.')) - {key_id}}


def _plain(name: str) -> str:
    return name.lower().rstrip('.')


def working_servers(tx: Tx, pool_id: str) -> list[str]:
    """The labels of a pool's servers that were called for a zone."""
    has_rows = sa.exists().where(pool_manager_status.c.server_id == pool_servers.c.id, _CALLED)
    return list(tx.execute(sa.select(pool_servers.c.label).where(pool_servers.c.pool_id == pool_id, has_rows)
                           .order_by(pool_servers.c.label)).scalars())


def any_in_service(tx: Tx) -> bool:
    """Whether any pool has a server in service, or had one."""
    return exists(tx, pool_manager_status, _CALLED)


def rest_servers(tx: Tx, pool_id: str, note: str, now: datetime) -> None:
    """Take a pool's servers out of service."""
    tx.execute(sa.update(pool_servers).where(
        pool_servers.c.pool_id == pool_id, pool_servers.c.state.in_((ServerState.ACTIVE, ServerState.JOINING)))
        .values(state=ServerState.MAINTENANCE, state_since=now, note=note, filled_to=None, filled=0, joined_at=None,
                version=pool_servers.c.version + 1))


def is_used(tx: Tx, pool_name: str, but_id: str) -> bool:
    """Whether there is a pool of this name, with another id than *but_id*, that has servers or ever had domains."""
    here = sa.select(pools.c.id).where(pools.c.name == pool_name, pools.c.id != but_id)
    return any(exists(tx, table, table.c.pool_id.in_(here)) for table in (pool_servers, domains))


def _insert(tx: Tx, table: sa.Table, rows: Sequence[Row], **same: Any) -> None:
    if rows:
        bulk.insert(tx, table, same, {name: [row[name] for row in rows] for name in rows[0]})
