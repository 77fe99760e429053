"""What Central and the API read: each function is one read transaction, limited to what the context may see.

The owner of a domain may do everything with it, and a project that it is shared with sees it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TypeVar

from designate_pool.errors import (SHARED, ContentsNotKept, DomainNotFound, Forbidden, PoolNotFound, RecordSetNotFound,
                                   Refused)
from designate_pool.model import (Action, ChangedSet, Context, Domain, PageRequest, Pool, Record, RecordSet,
                                  ServerStatus, Status, Task, Version, ZoneHead)
from designate_pool.model.differences import RecordDifference
from designate_pool.protocol import soa_rdata
from designate_pool.storage.operations import server_statuses as statuses
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import (domains as domain_store, pools as pool_store, recordsets as recordset_store,
                                          versions as version_store, zone_shares)

T = TypeVar('T')
#: Name, type, TTL (None for the zone's) and data of a record.
ZoneRow = tuple[str, str, int | None, str]


def seen(tx: Tx, context: Context, domain_id: str, domain: Domain | None, or_deleted: bool = False) -> Domain:
    """*domain*, for its owner and those it is shared with.

    :raises DomainNotFound: for others, and when it is None
    """
    if domain is None or not or_deleted and domain.status is Status.DELETED or not (
            context.sees(domain.project_id) or domain.shared and context.project_id
            and zone_shares.of_target(tx, domain.id, context.project_id)):
        raise DomainNotFound(domain=domain_id)
    return domain


def owned(tx: Tx, context: Context, domain_id: str, domain: Domain | None, or_deleted: bool = False) -> Domain:
    """*domain*, for its owner.

    :raises DomainNotFound: as :func:`seen`
    :raises Forbidden: for those it is shared with
    """
    domain = seen(tx, context, domain_id, domain, or_deleted)
    if is_guest(context, domain):
        raise Forbidden(what=f'do this with {domain.name}', why=SHARED)
    return domain


def restorable(context: Context, domain_id: str, domain: Domain | None) -> Domain:
    """*domain*, for its owner, when it is deleted, or being deleted, and can be restored.

    :raises Refused: when it is another one, or None
    """
    if (domain is None or domain.deleted_at is None or domain.moved_id is not None or domain.purged
            or not context.sees(domain.project_id)):
        raise Refused('deleted_zone_not_found', f'There is no deleted zone {domain_id} that can be restored.', 404)
    return domain


def is_guest(context: Context, domain: Domain) -> bool:
    """Whether the context sees a domain only because it is shared with its project."""
    return not context.sees(domain.project_id)


def domain(tx: Tx, context: Context, domain_id: str) -> Domain:
    """A domain of the context's, or one that is shared with it."""
    return seen(tx, context, domain_id, domain_store.get(tx, domain_id))


def own_domain(tx: Tx, context: Context, domain_id: str) -> Domain:
    """A domain of the context's; errors are those of :func:`owned`."""
    return owned(tx, context, domain_id, domain_store.get(tx, domain_id))


def deleted_domain(tx: Tx, context: Context, domain_id: str) -> Domain:
    """A deleted domain of the context's; Refused unless it can be restored."""
    return restorable(context, domain_id, domain_store.get(tx, domain_id))


def versions(tx: Tx, context: Context, domain_id: str, limit: int, before: int | None) -> list[Version]:
    """Versions of a domain, also of a deleted one, newest first: those of the time when the requester owned it.

    :raises DomainNotFound: when the requester never owned it; Forbidden when it is only shared with the project
    """
    page = version_store.find(tx, domain_id, limit, before, context.scope)
    if not page and before is None:
        owned(tx, context, domain_id, domain_store.get(tx, domain_id), or_deleted=True)
    return page


def recordset_versions(tx: Tx, context: Context, domain_id: str, name: str, rtype: str | None, limit: int,
                       before: int | None) -> list[tuple[Version, RecordDifference]]:
    """As :func:`versions`: those that changed records of this name, and of this type if one is given."""
    versions(tx, context, domain_id, 1, None)
    return version_store.of_recordset(tx, domain_id, name, rtype, limit, before, context.scope)


def use_rows_at(tx: Tx, context: Context, domain_id: str, at: int | datetime, expired: datetime,
                use: Callable[[ZoneHead, Iterator[ZoneRow]], T], name: str | None = None) -> T:
    """What *use* makes of a zone as it was at a serial or a time when the requester owned it: the head and the rows.

    :param expired: versions from before may have been deleted
    :param name: only the records of this name
    :raises ContentsNotKept: when it was not there, or not kept; others as :func:`versions`
    """
    with _in_own_time(tx, context, domain_id):
        return use(*version_store.rows_at(tx, domain_id, at, context.scope, expired, name))


def changes_between(tx: Tx, context: Context, domain_id: str, first: int | datetime, second: int | datetime,
                    expired: datetime,
                    most: int | None = None) -> tuple[ZoneHead, ZoneHead, list[ChangedSet]]:
    """What differs between two versions of a zone; errors are as those of :func:`use_rows_at`, and if *most*
    recordsets are exceeded."""
    with _in_own_time(tx, context, domain_id):
        return version_store.between(tx, domain_id, first, second, context.scope, expired, most)


@contextlib.contextmanager
def _in_own_time(tx: Tx, context: Context, domain_id: str) -> Iterator[None]:
    try:
        yield
    except ContentsNotKept:
        versions(tx, context, domain_id, 1, None)
        raise


def recordset(tx: Tx, context: Context, domain_id: str, recordset_id: str) -> RecordSet:
    """A recordset of a domain that the context sees; RecordSetNotFound when there is none."""
    owner = domain(tx, context, domain_id)
    match = recordset_store.get(tx, domain_id, recordset_id)
    if match is None:
        raise RecordSetNotFound(recordset=recordset_id)
    return _whole(tx, owner, [match])[0]


def recordsets(tx: Tx, context: Context, domain_id: str, page: PageRequest) -> list[RecordSet]:
    """Matching recordsets of a domain that the context sees."""
    owner = domain(tx, context, domain_id)
    return _whole(tx, owner, recordset_store.find(tx, domain_id, page, owner.status))


def all_recordsets(tx: Tx, context: Context, page: PageRequest) -> list[RecordSet]:
    """Recordsets of all domains that the context may see."""
    recordsets_ = recordset_store.find_everywhere(tx, page, context.scope)
    owners = domain_store.get_many(tx, {recordset_.domain_id for recordset_ in recordsets_})
    primaries: dict[str, str] = {}
    for recordset_ in recordsets_:
        owner = owners[recordset_.domain_id]
        if recordset_.managed and recordset_.type == 'SOA' and owner.pool_id not in primaries:
            primaries[owner.pool_id] = _primary(tx, owner)
    return [whole_recordset(recordset_, owner := owners[recordset_.domain_id], primaries.get(owner.pool_id, ''))
            for recordset_ in recordsets_]


def server_statuses(tx: Tx, context: Context, domain_id: str) -> list[ServerStatus]:
    """The server statuses of a domain of the context's: one for each action on each server."""
    own_domain(tx, context, domain_id)
    return list(statuses.for_domains(tx, [domain_id]).get(domain_id, ()))


def pool(tx: Tx, pool_id: str) -> Pool:
    """A pool by its id; PoolNotFound when there is none."""
    match = pool_store.get(tx, pool_id)
    if match is None:
        raise PoolNotFound(pool=pool_id)
    return match


def whole_recordset(found: RecordSet, domain: Domain, primary: str) -> RecordSet:
    """*found* with its domain; if it is the SOA, with its record, which is not stored."""
    if not (found.managed and found.type == 'SOA'):
        return dataclasses.replace(found, domain=domain)
    task = Task.NONE if domain.status in (Status.ACTIVE, Status.DELETED) else {
        Action.CREATE: Task.ADD, Action.DELETE: Task.DELETE}.get(domain.action, Task.UPDATE)
    record = Record(soa_rdata.text(domain, primary), id=found.id, serial_number=domain.serial, task=task,
                    status=domain.status)
    return dataclasses.replace(found, records=(record,), domain=domain)


def _whole(tx: Tx, owner: Domain, found: list[RecordSet]) -> list[RecordSet]:
    has_soa = any(recordset_.managed and recordset_.type == 'SOA' for recordset_ in found)
    primary = _primary(tx, owner) if has_soa else ''
    return [whole_recordset(recordset_, owner, primary) for recordset_ in found]


def _primary(tx: Tx, owner: Domain) -> str:
    return pool_store.name_servers(tx, owner.pool_id)[0]
