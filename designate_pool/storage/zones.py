"""Zones as MiniDNS serves them: read only, and consistent.

A domain that is deleted or being deleted is not served.  Records whose deletion is due or done are not served either.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import Any

import sqlalchemy as sa

from designate_pool.model import Action, Status, Task, ZoneHead, ZoneSnapshot
from designate_pool.storage import recordsets as recordsets_of
from designate_pool.storage.schema import ALIVE, domains, pool_attributes, pools, records, recordsets
from designate_pool.storage.sessions import Tx

_HEADS = (
    sa.select(domains.c.id, domains.c.name, pools.c.name, domains.c.email, domains.c.ttl, domains.c.serial,
              domains.c.refresh, domains.c.retry, domains.c.expire, domains.c.minimum, pool_attributes.c.value)
    .join_from(domains, pools)
    .outerjoin(pool_attributes, sa.and_(pool_attributes.c.pool_id == pools.c.id,
                                        pool_attributes.c.key == 'name_server'))
    .where(domains.c.deleted == ALIVE, domains.c.action != Action.DELETE)
    .order_by(domains.c.id, pool_attributes.c.position, pool_attributes.c.id)
)
_HEADS_BY_NAME = _HEADS.where(domains.c.name.in_(sa.bindparam('names', expanding=True)))
_HEAD_BY_ID = _HEADS.where(domains.c.id == sa.bindparam('domain_id'))
_RECORDSETS = (
    sa.select(recordsets.c.id, recordsets.c.name, recordsets.c.type, recordsets.c.ttl)
    .where(recordsets.c.domain_id == sa.bindparam('domain_id'), recordsets.c.deleted == ALIVE,
           recordsets.c.type != 'SOA')
    .order_by(recordsets.c.name, recordsets.c.type)
)
_RECORDS = (
    sa.select(records.c.recordset_id, records.c.wire)
    .where(records.c.domain_id == sa.bindparam('domain_id'), records.c.task != Task.DELETE,
           records.c.status != Status.DELETED)
)
_TEXTS = (
    sa.select(records.c.recordset_id, records.c.data)
    .where(records.c.domain_id == sa.bindparam('domain_id'), records.c.task != Task.DELETE,
           records.c.status != Status.DELETED)
)


def heads(tx: Tx, names: Collection[str]) -> dict[str, ZoneHead]:
    """The heads of those of *names* that are served, by name, in one statement."""
    if not names:
        return {}
    return {head.name: head for head in _read_heads(tx, _HEADS_BY_NAME, names=list(names))}


def snapshot(tx: Tx, domain_id: str) -> ZoneSnapshot | None:
    """A zone's whole contents at one serial; None when it is not served.

    It must be the first that its transaction does (see :func:`one_state`).
    """
    one_state(tx)
    found = _read_heads(tx, _HEAD_BY_ID, domain_id=domain_id)
    if not found:
        return None
    # Joined here, because a database looks up one row in the other table for each of this one.
    rdatas: dict[str, list[bytes] | tuple[bytes]] = {}
    for recordset_id, wire in tx.execute(_RECORDS, {'domain_id': domain_id}).all():
        known = rdatas.get(recordset_id)
        if known is None:
            rdatas[recordset_id] = (wire,)  # most have one, and a tuple is cheap
        elif isinstance(known, list):
            known.append(wire)
        else:
            rdatas[recordset_id] = [*known, wire]
    return ZoneSnapshot(found[0], [
        (name, rtype, ttl, rdatas[recordset_id])
        for recordset_id, name, rtype, ttl in tx.execute(_RECORDSETS, {'domain_id': domain_id}).all()
        if recordset_id in rdatas])


def texts(tx: Tx, domain_id: str) -> tuple[ZoneHead, list[tuple[str, str, int | None, str]]] | None:
    """A zone's head, and name, type, TTL (None for the zone's) and data of every record but its SOA, at one serial.

    The records come by name and type.  None when the zone is not served.  As :func:`snapshot`, it must be the first
    that its transaction does.
    """
    one_state(tx)
    found = _read_heads(tx, _HEAD_BY_ID, domain_id=domain_id)
    if not found:
        return None
    held: dict[str, list[str]] = {}
    for recordset_id, data in tx.execute(_TEXTS, {'domain_id': domain_id}).all():
        held.setdefault(recordset_id, []).append(data)
    return found[0], [
        (name, rtype, ttl, data)
        for recordset_id, name, rtype, ttl in tx.execute(_RECORDSETS, {'domain_id': domain_id}).all()
        for data in sorted(held.get(recordset_id, ()))]


def head_and_rows(tx: Tx, domain_id: str) -> tuple[ZoneHead, Iterator[tuple[str, str, int | None, str]]] | None:
    """As :func:`texts`, but for zones that are too large to be held: the rows come from the database as they are taken.

    While they do, nothing else can be done in the transaction.
    """
    one_state(tx)
    found = _read_heads(tx, _HEAD_BY_ID, domain_id=domain_id)
    return (found[0], recordsets_of.contents(tx, domain_id)) if found else None


def one_state(tx: Tx) -> None:
    """Have all statements of *tx* see the same state of the database.

    It must be the first that a transaction does: the isolation that gives this can only be chosen at the start.
    """
    if tx.dialect.name != 'sqlite':  # there, a transaction sees one state anyway
        tx.exec_driver_sql('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')


def _read_heads(tx: Tx, statement: sa.Select[Any], **parameters: object) -> list[ZoneHead]:
    found: dict[str, ZoneHead] = {}
    for *fields, name_server in tx.execute(statement, parameters):
        known = found.get(fields[0])
        if known is None:
            found[fields[0]] = ZoneHead(*[*fields, () if name_server is None else (name_server,)])
        else:
            found[fields[0]] = dataclasses.replace(known, name_servers=(*known.name_servers, name_server))
    return list(found.values())
