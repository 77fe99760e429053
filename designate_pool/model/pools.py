"""Pools, their servers, and how these are reached."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from designate_pool.model.words import Reason, ServerState

#: Algorithms of TSIG keys that we and every server know.  Without the truncated ones that RFC 8945 section 6 has too,
#: such as hmac-sha256-128: NSD, Knot and PowerDNS do not know them, and BIND gives that name to something else.
TSIG_ALGORITHMS = ('hmac-md5', 'hmac-sha1', 'hmac-sha224', 'hmac-sha256', 'hmac-sha384', 'hmac-sha512')


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

    @classmethod
    def parse(cls, text: str, default_port: int = 53) -> Endpoint:
        """The endpoint of ``address``, ``address:port``, ``[address]`` or ``[address]:port``.

        :raises ValueError: when it is none of these
        """
        host, port = text.strip(), str(default_port)
        if bracketed := re.fullmatch(r'\[([^\]]*)\](?::(.*))?', host):
            host, port = bracketed[1], port if bracketed[2] is None else bracketed[2]
        elif host.count(':') == 1:
            host, port = host.split(':')
        try:
            address = str(ipaddress.ip_address(host))
        except ValueError:
            raise ValueError(f'{text!r} is not an IP address with an optional port, as 192.0.2.1:53 or '
                             '[2001:db8::1]:53') from None
        if not re.fullmatch('[0-9]{1,5}', port) or not 1 <= int(port) <= 65535:
            raise ValueError(f'{port!r} is not a port from 1 to 65535')
        return cls(address, int(port))


@dataclasses.dataclass(frozen=True, slots=True)
class AlsoNotify:
    """Where a NOTIFY of each change goes, besides the pool's servers.

    :ivar key: the name of the TSIG key that signs it; None for none
    """

    endpoint: Endpoint
    key: str | None = None

    @classmethod
    def parse(cls, text: str) -> AlsoNotify:
        """Of ``address[:port] [key NAME]``.

        :raises ValueError: when it is not that
        """
        where, *rest = text.split() or ['']
        if rest and (len(rest) != 2 or rest[0] != 'key'):
            raise ValueError(f'{text!r} is not an address with an optional port and key, as '
                             "'192.0.2.53:53 key transfer.example.com.'")
        return cls(Endpoint.parse(where), rest[1] if rest else None)


#: Characters of a server's label at most.
LONGEST_LABEL = 300


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
        view = self.options.get('view')
        return f'{self.driver}:{self.endpoint}' + (f'/{view}' if view else '')


@dataclasses.dataclass(frozen=True, slots=True)
class PoolServer:
    """A server as the database knows it, so that every service agrees on it; its settings are in the configuration.

    :ivar fingerprint: of its settings without the secrets; another one means that they are to be applied anew
    :ivar filled_to: the id of the last domain that was begun on it; None when it has been begun for all of them
    :ivar filled: how many domains that were
    :ivar state_since: when it came into its state
    :ivar joined_at: when it had every domain for the first time; None while it never had
    :ivar dismissed: whether it drains by command; it then stays out of the pool though its section is still there
    :ivar delete_zones: while it drains, whether its zones are deleted there
    :ivar catalog_epoch: raised when all its zones are to be made anew from the catalog zone
    :ivar catalog_from: the catalog's serial from which on it sees it with this epoch; None for any
    :ivar note: what happened last, in words
    :ivar claimed_by: the pool manager that fills or drains it, until *claimed_until*
    :ivar key_name: of the TSIG key that its configuration names; None for none
    :ivar reason: of *note*, where it tells of a failure
    """

    id: str
    pool_id: str
    label: str
    driver: str
    state: ServerState
    fingerprint: str = ''
    position: int = 0
    filled_to: str | None = None
    filled: int = 0
    state_since: datetime | None = None
    joined_at: datetime | None = None
    dismissed: bool = False
    delete_zones: bool = False
    catalog_epoch: int = 0
    note: str | None = None
    claimed_by: str | None = None
    claimed_until: datetime | None = None
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None
    catalog_from: int | None = None
    key_name: str | None = None
    reason: Reason | None = None

    @property
    def is_filling(self) -> bool:
        """Whether domains have yet to be begun on it."""
        return self.filled_to is not None


@dataclasses.dataclass(frozen=True, slots=True)
class ServerReport:
    """How it goes with a server.

    :ivar domains: how many the pool has
    :ivar rows: how many rows of pool_manager_status the server has; None where they were not counted
    :ivar waiting: how many operations are due on it or tried again later; *failing* of these are in ERROR
    :ivar in_hand: how many of the waiting operations a pool manager or MiniDNS is at work on
    :ivar oldest: when the first of the waiting operations is or was due
    :ivar failures: some of the failing ones, as (domain name, action, error)
    """

    server: PoolServer
    domains: int = 0
    rows: int | None = None
    waiting: int = 0
    failing: int = 0
    in_hand: int = 0
    oldest: datetime | None = None
    failures: tuple[tuple[str, str, str], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Reloaded:
    """What reading the configuration again has changed: labels of servers."""

    joined: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Pool:
    """A pool.  The database knows its id and what goes into NS records; the configuration knows its servers.

    :ivar name_servers: host names for the NS records, the first also the SOA's primary
    :ivar servers: only where the pool was read from the configuration
    :ivar threshold_percentage: how many of the servers must serve a change, 1 to 100
    :ivar catalog_zone: the name of the catalog zone (RFC 9432) that MiniDNS serves for the pool; None for none
    :ivar count_joining_servers: whether servers count in the threshold before they are filled
    :ivar published_at: when a pool manager wrote threshold, catalog zone and the like as its configuration has them;
        None where none ever did, so that they are not known
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
    catalog_zone: str | None = None
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None
    count_joining_servers: bool = False
    published_at: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """An option that a driver takes in its sections of the configuration.

    :ivar private: it names a file or socket that no user but the pool manager's and the server's should get at
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
    private: bool = False
