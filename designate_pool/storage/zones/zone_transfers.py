"""Requests to transfer domains to other projects, and accepted requests."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from designate_pool.model import PageRequest, TransferStatus, ZoneTransferAccept, ZoneTransferRequest
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import domains
from designate_pool.storage.sql.schema import zone_transfer_accepts as ACCEPTS
from designate_pool.storage.sql.schema import zone_transfer_requests as REQUESTS

_ZONE_NAME = sa.select(domains.c.name).where(domains.c.id == REQUESTS.c.domain_id).scalar_subquery().label('zone_name')
_REQUEST = sa.select(*(_ZONE_NAME if field.name == 'zone_name' else REQUESTS.c[field.name]
                       for field in dataclasses.fields(ZoneTransferRequest)))
_ACCEPT = sa.select(*(ACCEPTS.c[field.name] for field in dataclasses.fields(ZoneTransferAccept)))
_REQUEST_KEYS, _ACCEPT_KEYS = ({name: table.c[name] for name in ('created_at', 'id', 'updated_at')}
                               for table in (REQUESTS, ACCEPTS))
_WITHDRAW = REQUESTS.delete().where(REQUESTS.c.domain_id.in_(sa.bindparam('ids', expanding=True)),
                                    REQUESTS.c.status == TransferStatus.ACTIVE.value)


def insert_request(tx: Tx, request: ZoneTransferRequest) -> None:
    values = dataclasses.asdict(request)
    del values['zone_name']
    tx.execute(REQUESTS.insert(), {**values, 'status': request.status.value})


def get_request(tx: Tx, request_id: str) -> ZoneTransferRequest | None:
    return _request(tx.execute(_REQUEST.where(REQUESTS.c.id == request_id)).first())


def lock_request(tx: Tx, request_id: str) -> ZoneTransferRequest | None:
    """The request, locked until this transaction ends.  A transaction that also locks its domain does so before."""
    return _request(tx.execute(_REQUEST.where(REQUESTS.c.id == request_id).with_for_update()).first())


def has_active(tx: Tx, domain_id: str) -> bool:
    """Whether a locked domain has a request that can be accepted."""
    active = sa.select(REQUESTS.c.id).where(REQUESTS.c.domain_id == domain_id,
                                            REQUESTS.c.status == TransferStatus.ACTIVE.value).limit(1)
    return tx.execute(active).first() is not None


def find_requests(tx: Tx, page: PageRequest, project_id: str | None) -> list[ZoneTransferRequest]:
    """Requests that match.

    :param page: searched by ``status``
    :param project_id: requests of this project and to it; None for all
    """
    pages.refuse_unknown(page.criterion, {'status': None})
    scope = () if project_id is None else (sa.or_(REQUESTS.c.project_id == project_id,
                                                  REQUESTS.c.target_project_id == project_id),)
    statement = _REQUEST.where(*scope, *(REQUESTS.c.status == value.upper() for value in page.criterion.values()))
    rows = pages.one_page(tx, statement, REQUESTS.c.id, _REQUEST_KEYS, page, 'created_at', scope)
    return [request for row in rows if (request := _request(row))]


def describe_request(tx: Tx, request_id: str, description: str | None, now: datetime) -> None:
    """Change the description of a locked request."""
    _update(tx, REQUESTS.c.id == request_id, now, description=description)


def complete_request(tx: Tx, request_id: str, now: datetime) -> None:
    """Mark a locked request as accepted."""
    _update(tx, REQUESTS.c.id == request_id, now, status=TransferStatus.COMPLETE.value)


def withdraw_active(tx: Tx, domain_ids: Sequence[str]) -> None:
    """Delete the requests of locked domains that could be accepted, if there are any."""
    tx.execute(_WITHDRAW, {'ids': domain_ids})


def delete_request(tx: Tx, request_id: str) -> None:
    tx.execute(REQUESTS.delete().where(REQUESTS.c.id == request_id))


def insert_accept(tx: Tx, accept: ZoneTransferAccept) -> None:
    tx.execute(ACCEPTS.insert(), {**dataclasses.asdict(accept), 'status': accept.status.value})


def get_accept(tx: Tx, accept_id: str) -> ZoneTransferAccept | None:
    return _accept(tx.execute(_ACCEPT.where(ACCEPTS.c.id == accept_id)).first())


def find_accepts(tx: Tx, page: PageRequest, project_id: str | None) -> list[ZoneTransferAccept]:
    """Accepted requests that match.

    :param page: searched by ``status``
    :param project_id: the project that accepted; None for all
    """
    pages.refuse_unknown(page.criterion, {'status': None})
    scope = () if project_id is None else (ACCEPTS.c.project_id == project_id,)
    statement = _ACCEPT.where(*scope, *(ACCEPTS.c.status == value.upper() for value in page.criterion.values()))
    rows = pages.one_page(tx, statement, ACCEPTS.c.id, _ACCEPT_KEYS, page, 'created_at', scope)
    return [accept for row in rows if (accept := _accept(row))]


def _update(tx: Tx, condition: Any, now: datetime, **values: Any) -> None:
    tx.execute(REQUESTS.update().where(condition).values(updated_at=now, version=REQUESTS.c.version + 1, **values))


def _request(row: Any) -> ZoneTransferRequest | None:
    return None if row is None else ZoneTransferRequest(**{**row._mapping, 'status': TransferStatus(row.status)})


def _accept(row: Any) -> ZoneTransferAccept | None:
    return None if row is None else ZoneTransferAccept(**{**row._mapping, 'status': TransferStatus(row.status)})
