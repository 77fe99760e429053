"""Ids as they are asked for: what cannot be the id of anything is not there."""

from __future__ import annotations

from typing import Any

from designate_pool.central import fields
from designate_pool.errors import (DomainNotFound, PoolNotFound, RecordSetNotFound, ServerNotFound,
                                   ServiceStatusNotFound, TsigKeyNotFound)


def domain_id(given: Any) -> str:
    found = fields.identifier(given)
    if found is None:
        raise DomainNotFound(domain=given)
    return found


def recordset_id(given: Any) -> str:
    found = fields.identifier(given)
    if found is None:
        raise RecordSetNotFound(recordset=given)
    return found


def tsigkey_id(given: Any) -> str:
    found = fields.identifier(given)
    if found is None:
        raise TsigKeyNotFound(tsigkey=given)
    return found


def pool_id(given: Any) -> str:
    found = fields.identifier(given)
    if found is None:
        raise PoolNotFound(pool=given)
    return found


def server_id(given: Any) -> str:
    found = fields.identifier(given)
    if found is None:
        raise ServerNotFound(server=given)
    return found


def service_id(given: Any) -> str:
    found = fields.identifier(given)
    if found is None:
        raise ServiceStatusNotFound(service=given)
    return found
