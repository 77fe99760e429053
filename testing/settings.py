"""Settings of services in tests."""

from __future__ import annotations

import dataclasses
from typing import Any

from designate_pool.settings import ApiSettings, CentralSettings

#: The API's, with all that there may be below ``/admin``.
API = ApiSettings(enable_api_admin=True, enabled_extensions_admin=('quotas', 'reports', 'zones'))
_CENTRAL = CentralSettings(pool_move_delay=0, quota_zones=-1, quota_zone_recordsets=-1, quota_zone_records=-1,
                           quota_recordset_records=-1)


def central_settings(**changes: Any) -> CentralSettings:
    """Central's, without quotas and with moves that end at once, but for *changes*."""
    return dataclasses.replace(_CENTRAL, **changes)
