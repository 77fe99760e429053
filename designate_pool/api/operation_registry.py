"""The operations of all modules of resources, and the middleware that finds a request's operation.

A new module of resources is added to :data:`MODULES`, and its routes in :mod:`designate_pool.api.app`; a test compares
both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import ModuleType
from typing import Any

import falcon

from designate_pool.api.resources import (audits, designate_admin, floating_ips, health, plans, pools, quotas,
                                          recordsets, servers, tlds_blacklists_tsigkeys, zone_imports_exports,
                                          zone_servers, zone_transfers, zones)
from designate_pool.api.schema.operation import ApiOperation
from designate_pool.api.status import resource

MODULES: tuple[ModuleType, ...] = (health, zones, zone_servers, recordsets, zone_imports_exports, zone_transfers,
                                   floating_ips, servers, plans, pools, audits, tlds_blacklists_tsigkeys, quotas,
                                   designate_admin, resource)


def tagged(absent: Collection[str] = ()) -> list[tuple[str, ApiOperation]]:
    """Every operation with its tag in the document: by default its module's name, ``status`` for the status pages.

    :param absent: how the paths begin of what the configuration does not switch on
    """
    return [(operation.tag or module.__name__.removesuffix('.resource').rpartition('.')[2], operation)
            for module in MODULES for operation in module.OPERATIONS if not operation.path.startswith(tuple(absent))]


def operations() -> tuple[ApiOperation, ...]:
    """Every operation, in the order in which the document has them."""
    return tuple(operation for _, operation in tagged())


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
