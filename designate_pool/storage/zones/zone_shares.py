"""Which other projects may use which domains.  Whoever writes has locked the domain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import Refused
from designate_pool.model import PageRequest, ZoneShare
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, chunks, exists
from designate_pool.storage.sql.schema import ALIVE, domains, recordsets, zone_shares as SHARES

_ENTITIES = Entities(ZoneShare, SHARES, ('created_at', 'id', 'updated_at', 'target_project_id'), {
    'target_project_id': SHARES.c.target_project_id})
#: Those of a deleted domain, which is not shared, are kept for its restoration.
_DOMAINS = domains.alias()
_OF_TARGET = sa.select(SHARES.c.id).where(SHARES.c.target_project_id == sa.bindparam('project_id')).limit(1)


def insert(tx: Tx, share: ZoneShare, domain: str) -> None:
    """Store a new share of a domain.

    :param domain: the name of the domain
    :raises Refused: when it is shared with a project that MariaDB does not tell from this one, as their ids
        are equal but for upper and lower case
    """
    try:
        tx.execute(SHARES.insert(), _ENTITIES.values(share))
    except exc.IntegrityError as error:
        raise duplicate(domain, share.target_project_id) from error


def duplicate(domain: str, project_id: str) -> Refused:
    """The error for a domain that is shared with a project already."""
    return Refused('duplicate_shared_zone', f'The zone {domain} is shared with {project_id} already.', 409)


def get(tx: Tx, domain_id: str, share_id: str) -> ZoneShare | None:
    """A share by its id; None when the domain has none with it."""
    return _ENTITIES.get(tx, share_id, SHARES.c.domain_id == domain_id)


def of_target(tx: Tx, domain_id: str, project_id: str) -> ZoneShare | None:
    """The share by which *project_id* may use a domain."""
    return _ENTITIES.one(tx, _ENTITIES.select.where(SHARES.c.domain_id == domain_id,
                                                    SHARES.c.target_project_id == project_id))


def find(tx: Tx, domain_id: str, page: PageRequest, project_id: str | None) -> list[ZoneShare]:
    """The shares of a domain that match, searched by ``target_project_id``: with *project_id*, or all for None."""
    only = () if project_id is None else (SHARES.c.target_project_id == project_id,)
    return _ENTITIES.find(tx, page, SHARES.c.domain_id == domain_id, *only)


def delete(tx: Tx, domain_id: str, project_id: str) -> None:
    """Delete the share of a domain with a project."""
    tx.execute(SHARES.delete().where(SHARES.c.domain_id == domain_id, SHARES.c.target_project_id == project_id))


def has_any(tx: Tx, domain_id: str) -> bool:
    """Whether a domain is shared with any project."""
    return exists(tx, SHARES, SHARES.c.domain_id == domain_id)


def is_target(tx: Tx, project_id: str) -> bool:
    """Whether any domain is shared with a project."""
    return tx.execute(_OF_TARGET, {'project_id': project_id}).first() is not None


def ids_for(project_id: str) -> sa.Select[Any]:
    """The statement that finds the ids of the domains that are shared with a project; deleted ones are not."""
    return (sa.select(SHARES.c.domain_id).join(_DOMAINS, _DOMAINS.c.id == SHARES.c.domain_id)
            .where(SHARES.c.target_project_id == project_id, _DOMAINS.c.shared))


def has_recordsets(tx: Tx, domain_id: str, project_id: str) -> bool:
    """Whether a domain has recordsets of a project that is not its owner."""
    return exists(tx, recordsets, recordsets.c.domain_id == domain_id, recordsets.c.deleted == ALIVE,
                  recordsets.c.project_id == project_id)


def of_others(project_id: str) -> Any:
    """The condition for recordsets that are not of *project_id*, which a domain is shared with."""
    return sa.or_(recordsets.c.project_id.is_(None), recordsets.c.project_id != project_id)


def at(tx: Tx, domain_id: str, project_id: str, names: Iterable[str]) -> list[tuple[str, str, bool]]:
    """Name and type of the recordsets at *names* in a domain, and whether others than *project_id* have them."""
    return [(row.name, row.type, row.project_id != project_id) for part in chunks(names) for row in tx.execute(
        sa.select(recordsets.c.name, recordsets.c.type, recordsets.c.project_id).where(
            recordsets.c.domain_id == domain_id, recordsets.c.deleted == ALIVE, recordsets.c.name.in_(part)))]


def leave_recordsets(tx: Tx, domain_id: str) -> None:
    """Assign all recordsets of a domain to its owner."""
    tx.execute(sa.update(recordsets).where(recordsets.c.domain_id == domain_id, recordsets.c.project_id.is_not(None))
               .values(project_id=None))
