"""Requests to transfer domains to other projects, and accepted requests."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from designate_pool.model import PageRequest, TransferStatus, ZoneTransferAccept, ZoneTransferRequest
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, exists
from designate_pool.storage.sql.schema import domains, zone_transfer_accepts, zone_transfer_requests

_R, _A = zone_transfer_requests.c, zone_transfer_accepts.c
_SORT_KEYS = ('created_at', 'id', 'updated_at')
#: A transaction that locks a request and its domain locks the domain first.
REQUESTS = Entities(ZoneTransferRequest, zone_transfer_requests, _SORT_KEYS, {
    'status': lambda value: _R.status == value.upper()},
    zone_name=sa.select(sa.func.coalesce(domains.c.given_name, domains.c.name)).where(
        domains.c.id == _R.domain_id).scalar_subquery())
ACCEPTS = Entities(ZoneTransferAccept, zone_transfer_accepts, _SORT_KEYS, {
    'status': lambda value: _A.status == value.upper()})
_WITHDRAW = zone_transfer_requests.delete().where(_R.domain_id.in_(sa.bindparam('ids', expanding=True)),
                                                  _R.status == TransferStatus.ACTIVE)


def has_active(tx: Tx, domain_id: str) -> bool:
    """Whether a locked domain has a request that can be accepted."""
    return exists(tx, zone_transfer_requests, _R.domain_id == domain_id, _R.status == TransferStatus.ACTIVE)


def find_requests(tx: Tx, page: PageRequest, project_id: str | None) -> list[ZoneTransferRequest]:
    """Requests that match, searched by ``status``: of this project and to it; None for all."""
    return REQUESTS.find(tx, page, *(() if project_id is None else (
        sa.or_(_R.project_id == project_id, _R.target_project_id == project_id),)))


def find_accepts(tx: Tx, page: PageRequest, project_id: str | None) -> list[ZoneTransferAccept]:
    """Accepted requests that match, searched by ``status``: those that this project accepted; None for all."""
    return ACCEPTS.find(tx, page, *(() if project_id is None else (_A.project_id == project_id,)))


def withdraw_active(tx: Tx, domain_ids: Sequence[str]) -> None:
    """Delete the requests of locked domains that could be accepted, if there are any."""
    tx.execute(_WITHDRAW, {'ids': domain_ids})
