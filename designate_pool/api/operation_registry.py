"""The operations of all modules of resources."""

from __future__ import annotations

from collections.abc import Collection

from designate_pool.api.resources import (audits, designate_admin, floating_ips, health, plans, pools, quotas,
                                          recordsets, servers, tlds_blacklists_tsigkeys, zone_imports_exports,
                                          zone_servers, zone_transfers, zones)
from designate_pool.api.schema.operation import ApiOperation
from designate_pool.api.status import resource

#: A new module of resources is added here.
MODULES = (health, zones, zone_servers, recordsets, zone_imports_exports, zone_transfers, floating_ips, servers, plans,
           pools, audits, tlds_blacklists_tsigkeys, quotas, designate_admin, resource)


def operations(absent: Collection[str] = ()) -> tuple[ApiOperation, ...]:
    """Every operation, in the order in which the document has them.

    :param absent: how the paths begin of what the configuration does not switch on
    """
    return tuple(operation for module in MODULES for operation in module.OPERATIONS
                 if not operation.path.startswith(tuple(absent)))
