"""Pools, their servers with addresses and keys, and other resources that administrators keep."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from designate_pool.model.freezes import stages
from designate_pool.model.words import Action, Reason, ServerState, Word

#: Where TLS begins at once (RFC 7858 section 3.1).
TLS_PORT = 853
_LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
_HOST_NAME = re.compile(rf'{_LABEL}(?:[.]{_LABEL})*')
#: What is shown in the place of a secret.
HIDDEN_SECRET = '***'
#: Algorithms of TSIG keys that we and every server support.  Without the truncated ones of RFC 8945 section 6, such as
#: hmac-sha256-128: NSD, Knot and PowerDNS do not support them, and BIND uses that name for something else.
TSIG_ALGORITHMS = ('hmac-md5', 'hmac-sha1', 'hmac-sha224', 'hmac-sha256', 'hmac-sha384', 'hmac-sha512')


@dataclasses.dataclass(frozen=True, slots=True)
class TsigKey:
    """A shared secret (RFC 8945); *secret* is Base64, and never printed or logged."""

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
        """Parse ``address``, ``address:port``, ``[address]`` or ``[address]:port``.

        :raises ValueError: if *text* is none of these
        """
        host, port = text.strip(), str(default_port)
        if bracketed := re.fullmatch(r'\[([^\]]*)\](?::(.*))?', host):
            host, port = bracketed[1], port if bracketed[2] is None else bracketed[2]
        elif host.count(':') == 1:
            host, port = host.split(':')
        try:
            address = str(ipaddress.ip_address(host))
        except ValueError:
            raise ValueError(f'{text!r} is not an IP address with an optional port, like 192.0.2.1:53 or '
                             '[2001:db8::1]:53') from None
        if not re.fullmatch('[0-9]{1,5}', port) or not 1 <= int(port) <= 65535:
            raise ValueError(f'{port!r} is not a port from 1 to 65535')
        return cls(address, int(port))


@dataclasses.dataclass(frozen=True, slots=True)
class Master:
    """A master of a secondary zone.

    :ivar tls_name: the name that it has to prove by its certificate; None for none, which then need not be valid either
    """

    endpoint: Endpoint
    tls_name: str | None = None

    def __str__(self) -> str:
        return str(self.endpoint) if self.tls_name is None else f'{self.endpoint}#{self.tls_name}'

    @property
    def has_tls(self) -> bool:
        """Whether it is asked over TLS: at the port of that (RFC 7858 section 3.1), or if it has a name to prove."""
        return self.tls_name is not None or self.endpoint.port == TLS_PORT

    @classmethod
    def parse(cls, text: str) -> Master:
        """Parse ``address``, ``address:port``, or one of these with ``#name``.

        :raises ValueError: when it is none of these
        """
        where, mark, name = text.partition('#')
        if mark and not (len(name) < 254 and _HOST_NAME.fullmatch(name)):
            raise ValueError(f'{name!r} is not the name of a host, which the certificate of {where} has')
        return cls(Endpoint.parse(where, TLS_PORT if mark else 53), name.lower() if mark else None)


@dataclasses.dataclass(frozen=True, slots=True)
class AlsoNotify:
    """An address that gets a NOTIFY for each change beside the pool's servers; the TSIG key named *key* signs it."""

    endpoint: Endpoint
    key: str | None = None

    @classmethod
    def parse(cls, text: str) -> AlsoNotify:
        """Parse ``address[:port] [key NAME]``.

        :raises ValueError: if *text* has another form
        """
        where, *rest = text.split() or ['']
        if rest and (len(rest) != 2 or rest[0] != 'key'):
            raise ValueError(f'{text!r} is not an address with an optional port and key, like '
                             "'192.0.2.53:53 key transfer.example.com.'")
        return cls(Endpoint.parse(where), rest[1] if rest else None)


#: The maximum length of a server's label in characters.
LONGEST_LABEL = 300


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """One section ``[backend:<driver>:<uuid>]``: a machine to act on and an address that answers DNS.

    :ivar options: the driver's own options; the server's section overrides that of the driver
    :ivar primaries: the addresses of MiniDNS as this server reaches them
    :ivar max_in_flight: how many driver calls may run on it at the same time
    :ivar call_timeout: seconds that a driver call may take
    :ivar verify: the addresses that have to serve a zone, such as those of public servers behind a hidden primary;
        empty for the server's own
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
    verify: tuple[Endpoint, ...] = ()

    @property
    def endpoint(self) -> Endpoint:
        """The address that answers DNS."""
        return Endpoint(self.host, self.port)

    @property
    def label(self) -> str:
        """The name that is shown to users in place of the id."""
        view = self.options.get('view')
        return f'{self.driver}:{self.endpoint}' + (f'/{view}' if view else '')


@dataclasses.dataclass(frozen=True, slots=True)
class PoolServer:
    """The state of a pool's server, which all services read from the database; the configuration has its settings.

    :ivar fingerprint: of its settings without secrets; when it changes, the settings are applied again
    :ivar filled_to: while it joins or its settings are applied, the id of the last domain whose creation was started
        on it; None when that has been done for all domains
    :ivar filled: how many domains have been started in this way
    :ivar joined_at: when it had every domain for the first time; None before
    :ivar dismissed: whether an operator removed it by command; it then stays out of the pool, even with a section
    :ivar delete_zones: whether its zones are deleted from it while it drains
    :ivar catalog_epoch: raised when it has to fetch all zones of the catalog again
    :ivar catalog_from: the serial of the catalog zone from which on it is served this epoch; None for any serial
    :ivar note: a sentence about the last event
    :ivar claimed_by: the pool manager that works on its joining or draining, until *claimed_until*
    :ivar key_name: of the TSIG key in its section; None for none
    :ivar reason: the reason of a failure that *note* describes
    :ivar verify: the addresses of :attr:`Server.verify`, with commas between them; None for its own
    :ivar limits: what it does not take of a zone, as :func:`designate_pool.protocol.rules.to_json` writes it
    :ivar silent_since: since when it has answered nobody; None while it answers
    :ivar polled: whether it keeps the pool's serials, so that polls and the audit of serials ask it
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
    verify: str | None = None
    silent_since: datetime | None = None
    limits: str = ''
    polled: bool = False

    @property
    def is_filling(self) -> bool:
        """Whether the creation of some domains has not been started on it yet."""
        return self.filled_to is not None


@dataclasses.dataclass(frozen=True, slots=True)
class ServerReport:
    """The state of the work on a server.

    :ivar domains: how many domains the pool has
    :ivar rows: how many rows of pool_manager_status the server has; None if they were not counted
    :ivar waiting: how many operations on it are unfinished
    :ivar failing: how many of *waiting* are in ERROR
    :ivar in_hand: how many of *waiting* a pool manager or MiniDNS is working on now
    :ivar oldest: when the first of *waiting* is or was due
    :ivar failures: some of the failing operations, as (domain name, action, error)
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
    """The labels of the servers that have changed when the configuration was read again."""

    joined: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Pool:
    """A pool.  Its id and the names for NS records are in the database, its servers in the configuration.

    :ivar name_servers: host names for the NS records, by priority; the first is also the primary in the SOA record
    :ivar priorities: of these, 1 for the first; empty for 1, 2, 3 and so on
    :ivar attributes: what the scheduler compares with those of zones, as the JSON of an object of texts; '' for none
    :ivar servers: empty unless the pool was read from the configuration
    :ivar threshold_percentage: the percentage of the servers that must serve a change, 1 to 100
    :ivar catalog_zone: the name of the catalog zone (RFC 9432) that MiniDNS serves for the pool; None for none
    :ivar count_joining_servers: whether servers count in the threshold before they have every zone
    :ivar requires_approval: whether changes of its domains wait for approval
    :ivar probe_interval: seconds between two probes of a server that cannot be reached
    :ivar published_at: when a pool manager last copied its configuration (threshold, catalog zone and the like) to the
        database; None if none has, so that these values are unknown
    :ivar freeze: as JSON (:class:`designate_pool.model.Freeze`); None while it is not frozen
    :ivar release_stages: the option ``release``; None for a pool without stages
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
    priorities: tuple[int, ...] = ()
    attributes: str = ''
    freeze: str | None = None
    requires_approval: bool = False
    probe_interval: float | None = None
    release_stages: str | None = None

    @property
    def stages(self) -> dict[str, int]:
        """In which stage each server gets new versions, by server id; 0 where there are no stages."""
        return stages(self.release_stages, self.servers)

    @property
    def ns_records(self) -> list[tuple[str, int]]:
        """The name servers with their priorities."""
        return list(zip(self.name_servers, self.priorities or range(1, len(self.name_servers) + 1)))


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """An option of a driver in the sections of its servers.

    :ivar private: whether it names a file or socket that only the pool manager's and the server's users may access
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


class KeyScope(Word):
    """What a TSIG key may transfer: all zones of a pool, or one zone."""

    POOL = 'POOL'
    ZONE = 'ZONE'


@dataclasses.dataclass(frozen=True, slots=True)
class StoredTsigKey:
    """A TSIG key (RFC 8945) that may transfer the zones of a pool or one domain, *resource_id*; without its secret."""

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
    """A pattern of names that zones may not have: a regular expression, looked for in the absolute name."""

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
    :ivar region: of a floating IP, as *address* and *project_id*
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
    """The last heartbeat of a service in a process.

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
