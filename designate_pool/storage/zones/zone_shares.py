"""Which other projects may use which domains.  Whoever writes has locked the domain."""

from __future__ import annotations

import dataclasses
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import Refused
from designate_pool.model import PageRequest, ZoneShare
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import ALIVE, recordsets
from designate_pool.storage.sql.schema import zone_shares as SHARES

_SELECT = sa.select(*(SHARES.c[field.name] for field in dataclasses.fields(ZoneShare)))
_OF_TARGET = sa.select(SHARES.c.id).where(SHARES.c.target_project_id == sa.bindparam('project_id')).limit(1)
_KEYS = {name: SHARES.c[name] for name in ('created_at', 'id', 'updated_at', 'target_project_id')}
_CRITERIA = {'target_project_id': lambda value: SHARES.c.target_project_id == value}


def insert(tx: Tx, share: ZoneShare, domain: str) -> None:
    """Store a new share of a domain.

    :param domain: the name of the domain
    :raises Refused: when it is shared with a project that MariaDB does not tell from this one, as their ids
        are equal but for upper and lower case
    """
    try:
        tx.execute(SHARES.insert(), dataclasses.asdict(share))
    except exc.IntegrityError as error:
        raise duplicate(domain, share.target_project_id) from error


def duplicate(domain: str, project_id: str) -> Refused:
    """The error for a domain that is shared with a project already."""
    return Refused('duplicate_shared_zone', f'The zone {domain} is shared with {project_id} already.', 409)


def get(tx: Tx, domain_id: str, share_id: str) -> ZoneShare | None:
    return _one(tx, SHARES.c.domain_id == domain_id, SHARES.c.id == share_id)


def of_target(tx: Tx, domain_id: str, project_id: str) -> ZoneShare | None:
    """The share by which *project_id* may use a domain."""
    return _one(tx, SHARES.c.domain_id == domain_id, SHARES.c.target_project_id == project_id)


def find(tx: Tx, domain_id: str, page: PageRequest, project_id: str | None) -> list[ZoneShare]:
    """The shares of a domain that match.

    :param page: searched by ``target_project_id``
    :param project_id: only the share with this project; None for all
    """
    pages.refuse_unknown(page.criterion, _CRITERIA)
    among = [SHARES.c.domain_id == domain_id]
    if project_id is not None:
        among.append(SHARES.c.target_project_id == project_id)
    statement = _SELECT.where(*among, *(_CRITERIA[key](value) for key, value in page.criterion.items()))
    return [ZoneShare(*row) for row in pages.one_page(tx, statement, SHARES.c.id, _KEYS, page, 'created_at', among)]


def delete(tx: Tx, domain_id: str, project_id: str | None = None) -> None:
    """Delete the share of a domain with a project; with None all its shares."""
    target = () if project_id is None else (SHARES.c.target_project_id == project_id,)
    tx.execute(SHARES.delete().where(SHARES.c.domain_id == domain_id, *target))


def has_any(tx: Tx, domain_id: str) -> bool:
    return _is_there(tx, SHARES, SHARES.c.domain_id == domain_id)


def is_target(tx: Tx, project_id: str) -> bool:
    """Whether any domain is shared with a project."""
    return tx.execute(_OF_TARGET, {'project_id': project_id}).first() is not None


def ids_for(project_id: str) -> sa.Select[Any]:
    """The statement that finds the ids of the domains that are shared with a project."""
    return sa.select(SHARES.c.domain_id).where(SHARES.c.target_project_id == project_id)


def has_recordsets(tx: Tx, domain_id: str, project_id: str) -> bool:
    """Whether a domain has recordsets of a project that is not its owner."""
    return _is_there(tx, recordsets, recordsets.c.domain_id == domain_id, recordsets.c.deleted == ALIVE,
                     recordsets.c.project_id == project_id)


def leave_recordsets(tx: Tx, domain_id: str) -> None:
    """Assign all recordsets of a domain to its owner."""
    tx.execute(sa.update(recordsets).where(recordsets.c.domain_id == domain_id, recordsets.c.project_id.is_not(None))
               .values(project_id=None))


def _is_there(tx: Tx, table: sa.Table, *conditions: Any) -> bool:
    return tx.execute(sa.select(table.c.id).where(*conditions).limit(1)).first() is not None


def _one(tx: Tx, *conditions: Any) -> ZoneShare | None:
    row = tx.execute(_SELECT.where(*conditions)).first()
    return None if row is None else ZoneShare(*row)
