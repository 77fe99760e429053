"""Imports and exports of zones as zone files."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from designate_pool.model.words import Word


class ZoneTaskKind(Word):
    """What a zone task does."""

    IMPORT = 'IMPORT'
    EXPORT = 'EXPORT'


class ZoneTaskStatus(Word):
    """Where a zone task stands."""

    PENDING = 'PENDING'
    COMPLETE = 'COMPLETE'
    ERROR = 'ERROR'


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneTask:
    """The import of a zone file, or the export of a zone.

    :ivar project_id: whose task it is, and whose the zone of an import is to be
    :ivar domain_id: of an import None until it is COMPLETE
    :ivar size: bytes of the zone file of an import; None while it is still arriving, and for an export
    :ivar message: how it ended, in words
    :ivar request_id: of the request that it began with
    :ivar version: raised whenever it is begun or ends
    :ivar may_nest: as in :class:`designate_pool.model.Context`, of who began it
    :ivar pool_id: the pool that the zone of an import is to go to; None for the default one
    """

    id: str
    kind: ZoneTaskKind
    project_id: str = ''
    status: ZoneTaskStatus = ZoneTaskStatus.PENDING
    domain_id: str | None = None
    size: int | None = None
    message: str | None = None
    request_id: str = ''
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None
    may_nest: bool = False
    pool_id: str | None = None
