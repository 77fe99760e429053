"""Imports and exports of zones as zone files, transfers of zones to other projects, and shared zones."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from designate_pool.model.words import Word


class ZoneTaskKind(Word):
    """The kind of a zone task."""

    IMPORT = 'IMPORT'
    EXPORT = 'EXPORT'


class ZoneTaskStatus(Word):
    """The status of a zone task."""

    PENDING = 'PENDING'
    COMPLETE = 'COMPLETE'
    ERROR = 'ERROR'


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneTask:
    """The import of a zone file, or the export of a zone.

    :ivar project_id: the project that owns the task and, for an import, will own the zone
    :ivar domain_id: for an import None until it is COMPLETE
    :ivar size: of the imported zone file in bytes; None while it is being received, and for an export
    :ivar message: a sentence that says how the task ended
    :ivar request_id: of the request that started it
    :ivar version: raised whenever the task is started or ends
    :ivar may_nest: as in :class:`designate_pool.model.Context`, of the user who started it; likewise
        *may_use_blacklisted*
    :ivar pool_id: the pool of the imported zone; None for the one that the scheduler chooses
    :ivar attributes: of the imported zone, as in :class:`designate_pool.model.Domain`
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
    may_use_blacklisted: bool = False
    attributes: str = ''


class TransferStatus(Word):
    """The state of a transfer request, or of its acceptance.  Only ACTIVE requests can be accepted.

    Requests here become ACTIVE and then COMPLETE; the other words are Designate's.
    """

    ACTIVE = 'ACTIVE'
    PENDING = 'PENDING'
    DELETED = 'DELETED'
    ERROR = 'ERROR'
    COMPLETE = 'COMPLETE'


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneTransferRequest:
    """A request of the owner of a domain that another project take it over.

    :ivar project_id: the owner when the request was created
    :ivar target_project_id: the only project that can accept; None for any
    :ivar key: who accepts has to know it
    """

    id: str
    domain_id: str
    zone_name: str
    status: TransferStatus = TransferStatus.ACTIVE
    key: str = dataclasses.field(default='', repr=False)
    project_id: str = ''
    target_project_id: str | None = None
    description: str | None = None
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneTransferAccept:
    """The acceptance of a transfer request.

    :ivar request_id: of the request, which may be deleted since
    :ivar project_id: the project that accepted, and owns the domain since
    """

    id: str
    request_id: str
    domain_id: str
    project_id: str
    status: TransferStatus = TransferStatus.ACTIVE
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneShare:
    """That a project may use a domain of another one: see it, and have recordsets of its own in it.

    :ivar project_id: the project that shared the domain; '' for none
    :ivar target_project_id: the project that may use it
    """

    id: str
    domain_id: str
    project_id: str
    target_project_id: str
    created_at: datetime | None = None
    updated_at: datetime | None = None
