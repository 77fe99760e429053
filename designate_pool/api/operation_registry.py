"""All that can be asked of the API: the operations and schemas of every module of resources; and which one it is.

A new module of resources is named in :data:`MODULES`, and its addresses are added in :mod:`designate_pool.api.app`;
a test holds both against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import falcon

from designate_pool.api.resources.admin import health, limits, quotas, tsigkeys
from designate_pool.api.resources.pools import audits, plans, pools, servers, service_statuses
from designate_pool.api.resources.zones import recordsets, zone_imports_exports, zone_servers, zone_wait, zones
from designate_pool.api.schema.operation import ApiOperation, Schema
from designate_pool.api.status import resource

MODULES: tuple[ModuleType, ...] = (health, zones, zone_servers, zone_wait, recordsets, zone_imports_exports, servers,
                                   plans, pools, audits, tsigkeys, quotas, limits, service_statuses, resource)


def tagged() -> list[tuple[str, ApiOperation]]:
    """Every operation with the name of its module, which is its tag in the document."""
    return [(module.__name__.rpartition('.')[2], each) for module in MODULES
            for each in getattr(module, 'OPERATIONS', ())]


def operations() -> tuple[ApiOperation, ...]:
    """Every operation, in the order in which the document has them."""
    return tuple(each for _, each in tagged())


def schemas() -> dict[str, Schema]:
    """What is answered, by name.

    :raises ValueError: when two modules have different schemas of one name
    """
    found: dict[str, Schema] = {}
    for module in MODULES:
        for name, schema in getattr(module, 'SCHEMAS', {}).items():
            if found.setdefault(name, schema) != schema:
                raise ValueError(f'{module.__name__} has another schema named {name}')
    return found


class FindOperation:
    """Falcon middleware: puts the :class:`Operation` that is asked for in ``req.context.operation``.

    It is None where the address is unknown, or is there and the method is not: then nothing is carried out but the
    answer 404, 405 or that to OPTIONS.  Whoever does not take what is answered there is told so at once.
    """

    def __init__(self, known: Iterable[ApiOperation]) -> None:
        self._known: Mapping[tuple[str, str], ApiOperation] = {(each.method, each.path): each for each in known}

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.operation = None

    def process_resource(self, req: falcon.Request, resp: falcon.Response, resource: Any,
                         params: Mapping[str, Any]) -> None:
        found = self._known.get((req.method, req.uri_template or ''))
        req.context.operation = found
        # Faults are JSON whatever was asked for, so who takes that is never refused.
        if found is not None and not (req.client_accepts(found.answer_media) or req.client_accepts_json):
            raise falcon.HTTPNotAcceptable(description=f'The answer is {found.answer_media}')
