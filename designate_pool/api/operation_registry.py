"""The operations and schemas of all modules of resources, and the middleware that finds a request's operation.

A new module of resources is added to :data:`MODULES`, and its routes in :mod:`designate_pool.api.app`; a test compares
both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import ModuleType
from typing import Any

import falcon

from designate_pool.api.resources.admin import blacklists, designate_admin, health, limits, quotas, tlds, tsigkeys
from designate_pool.api.resources.pools import audits, plans, pools, servers, service_statuses
from designate_pool.api.resources.zones import (floating_ips, recordsets, zone_imports_exports, zone_servers,
                                                zone_shares, zone_transfers, zone_wait, zones)
from designate_pool.api.schema.operation import ApiOperation, Schema
from designate_pool.api.status import resource

MODULES: tuple[ModuleType, ...] = (health, zones, zone_servers, zone_wait, recordsets, zone_imports_exports,
                                   zone_transfers, zone_shares, floating_ips, servers, plans, pools, audits, tsigkeys,
                                   tlds, blacklists, quotas, limits, service_statuses,
                                   designate_admin, resource)


def tagged(absent: Collection[str] = ()) -> list[tuple[str, ApiOperation]]:
    """Every operation with its tag in the document: its module's name, or the package's if that is ``resource``.

    :param absent: how the paths begin of what the configuration does not switch on
    """
    return [(module.__name__.removesuffix('.resource').rpartition('.')[2], operation) for module in MODULES
            for operation in getattr(module, 'OPERATIONS', ()) if not operation.path.startswith(tuple(absent))]


def operations() -> tuple[ApiOperation, ...]:
    """Every operation, in the order in which the document has them."""
    return tuple(operation for _, operation in tagged())


def schemas() -> dict[str, Schema]:
    """What is answered, by name.

    :raises ValueError: when two modules have different schemas of one name
    """
    schemas: dict[str, Schema] = {}
    for module in MODULES:
        for name, schema in getattr(module, 'SCHEMAS', {}).items():
            if schemas.setdefault(name, schema) != schema:
                raise ValueError(f'{module.__name__} has another schema named {name}')
    return schemas


class FindOperation:
    """Falcon middleware: puts the :class:`ApiOperation` of the request into ``req.context.operation``.

    It is None for an unknown path or method: the answer is 404, 405 or that to OPTIONS.  A client that does not accept
    the media type of the answer gets 406.
    """

    def __init__(self, known: Iterable[ApiOperation]) -> None:
        self._known: Mapping[tuple[str, str], ApiOperation] = {
            (operation.method, operation.path): operation for operation in known}

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.operation = None

    def process_resource(self, req: falcon.Request, resp: falcon.Response, resource: Any,
                         params: Mapping[str, Any]) -> None:
        operation = self._known.get((req.method, req.uri_template or ''))
        req.context.operation = operation
        # Errors are always JSON, so a client that accepts JSON is never refused.
        if operation is not None and not (req.client_accepts(operation.answer_media) or req.client_accepts_json):
            raise falcon.HTTPNotAcceptable(description=f'The answer is {operation.answer_media}')
