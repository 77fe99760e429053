"""Pools, their servers, and how these are reached."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class TsigKey:
    """A shared secret (RFC 8945); *secret* is Base64 and stays out of every text."""

    name: str
    algorithm: str
    secret: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """An IP address and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f'[{self.host}]:{self.port}' if ':' in self.host else f'{self.host}:{self.port}'


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """One section ``[backend:<driver>:<uuid>]``: a machine to act on and an address that answers DNS.

    :ivar options: the driver's own options, the server's section over the global one
    :ivar primaries: MiniDNS as this server reaches it
    :ivar max_in_flight: how many driver calls may be under way on it at once
    :ivar call_timeout: seconds a driver call may take
    """

    id: str
    driver: str
    host: str
    port: int = 53
    tsig_key: TsigKey | None = None
    primaries: tuple[Endpoint, ...] = ()
    max_in_flight: int = 4
    call_timeout: float = 10.0
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.host, self.port)

    @property
    def label(self) -> str:
        """What people read in place of the id."""
        return f'{self.driver}:{self.endpoint}'


@dataclasses.dataclass(frozen=True, slots=True)
class Pool:
    """A pool.  The database knows its id and what goes into NS records; the configuration knows its servers.

    :ivar name_servers: host names for the NS records, the first also the SOA's primary
    :ivar servers: only where the pool was read from the configuration
    :ivar threshold_percentage: how many of the servers must serve a change, 1 to 100
    """

    name: str
    id: str = ''
    description: str | None = None
    project_id: str | None = None
    provisioner: str = 'unmanaged'
    name_servers: tuple[str, ...] = ()
    also_notifies: tuple[str, ...] = ()
    servers: tuple[Server, ...] = ()
    threshold_percentage: int = 100
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """An option that a driver takes in its sections of the configuration.

    :ivar kind: one of ``str``, ``int``, ``float``, ``bool``, ``port``, ``path``, ``host``, ``endpoints``, ``tsig_key``
    """

    name: str
    help: str
    kind: str = 'str'
    default: Any = None
    required: bool = False
    secret: bool = False
    minimum: float | None = None
    maximum: float | None = None
