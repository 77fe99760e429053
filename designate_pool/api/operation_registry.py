"""The operations of all modules of resources.

A new module of resources is added to :data:`MODULES`, and its routes in :mod:`designate_pool.api.app`; a test compares
both.
"""

from __future__ import annotations

from collections.abc import Collection
from types import ModuleType

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
