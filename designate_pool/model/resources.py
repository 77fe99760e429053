"""Other resources in the database: TSIG keys that may transfer zones, top-level domains, and the status of services."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from designate_pool.model.words import Word


class KeyScope(Word):
    """What a TSIG key may transfer: all zones of a pool, or one zone."""

    POOL = 'POOL'
    ZONE = 'ZONE'


@dataclasses.dataclass(frozen=True, slots=True)
class StoredTsigKey:
    """A TSIG key (RFC 8945) that may transfer zones from MiniDNS, without its secret, which stays in the database.

    :ivar resource_id: of the pool or the domain, depending on *scope*
    """

    id: str
    name: str
    algorithm: str
    scope: KeyScope
    resource_id: str
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Tld:
    """An entry of the list of top-level domains: if there are any, zones lie below one of them.

    :ivar name: without the final dot; it may have several labels, as ``co.uk``
    """

    id: str
    name: str
    description: str | None = None
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Blacklist:
    """A pattern of names that zones may not have.

    :ivar pattern: a regular expression, looked for in the absolute name
    """

    id: str
    pattern: str
    description: str | None = None
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The last heartbeat of a service.  Several processes of a service on one host for one pool share one status.

    :ivar status: UP; DOWN if the service was stopped or has sent no heartbeat for too long
    :ivar pool_name: '' for services that do not belong to a pool, and for programs of versions that do not report it
    """

    id: str
    service_name: str
    hostname: str
    status: str
    heartbeated_at: datetime
    stats: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    capabilities: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None
    pool_name: str = ''
