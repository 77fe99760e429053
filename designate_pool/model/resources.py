"""Other resources in the database: TSIG keys that may transfer zones, top-level domains, and the status of services."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from designate_pool.model.words import Action, Word


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
class ManagedRecord:
    """A resource of another service, for which a record is there.  A record may be there for several resources.

    :ivar data: of the record, as text
    :ivar plugin: what made it: a notification handler; '' for the API of floating IPs
    :ivar resource_type: :data:`PTR`, ``instance`` or ``floatingip``
    :ivar resource_id: as the other service writes it
    :ivar region: of a floating IP
    :ivar address: of a floating IP
    :ivar project_id: of a floating IP
    """

    id: str
    domain_id: str
    recordset_id: str
    data: str
    resource_type: str
    resource_id: str
    plugin: str = ''
    region: str = ''
    address: str = ''
    project_id: str = ''
    created_at: datetime | None = None
    updated_at: datetime | None = None


#: The type of resource that PTR records are for.
PTR = 'ptr:floatingip'


@dataclasses.dataclass(frozen=True, slots=True)
class FloatingIp:
    """A floating IP of Neutron, and its PTR record.

    :ivar id: as Neutron writes it
    :ivar ptrdname: None for no PTR record
    :ivar ttl: in seconds, with the PTR record
    :ivar status: ``INACTIVE`` without a PTR record, else the status of the recordset
    :ivar outdated: the id of a :class:`ManagedRecord` for its address that is another floating IP's; None for none
    """

    region: str
    id: str
    address: str
    ptrdname: str | None = None
    description: str | None = None
    ttl: int | None = None
    action: Action = Action.NONE
    status: str = 'INACTIVE'
    outdated: str | None = None


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
