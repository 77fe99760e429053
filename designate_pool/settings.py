"""Every option of the sections with fixed names, once: its name, its type, its default and limits, and its help.

A section is a frozen dataclass.  ``config`` makes oslo.config's options from its fields, and an instance of it from the
files; a service is given that instance.  A field without a help is no option: it is set when the program starts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from designate_pool.model import Endpoint

API_PORT, MINIDNS_PORT, METRICS_PORT = 9001, 5354, 9464
#: The values of an option that may be given several times, each on a line of its own.
Lines = tuple[str, ...]


def option(default: Any, help: str, **limits: Any) -> Any:
    """A field that is an option.

    :param limits: ``min``, ``max``, ``choices``, ``secret`` and the like, as oslo.config's options take them; and
        ``port``, the default one of addresses
    """
    return dataclasses.field(default=default, repr='secret' not in limits, metadata={'help': help, **limits})


def _metrics() -> Any:
    return option((), 'Addresses, separated by commas, on which the process serves its metrics for Prometheus, as GET '
                      f'/metrics: 127.0.0.1:{METRICS_PORT}. Services in one process may share an address. The metrics '
                      'contain the names of servers, but no zone, user or secret; everybody who reaches the address '
                      f'may read them. Default port: {METRICS_PORT}. Not set: metrics are not served.',
                  port=METRICS_PORT)


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessSettings:
    """Options of the process as a whole; oslo.log and oslo.messaging have further ones in the same section."""

    SECTION: ClassVar = 'DEFAULT'
    concurrency: str = option(
        'eventlet', 'How a process runs several tasks at the same time.', choices=[
            ('eventlet', 'green threads: eventlet patches the standard library'),
            ('threading', 'native threads')])
    host: str = option(
        None, 'The name of this process among those that serve the same RPC topic. Not set: the name of the machine.',
        sample_default='<name of this machine>')
    state_path: str = option(
        '/var/lib/designate-pool', 'The folder for data that must survive a restart; it contains the default database.')


@dataclasses.dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The database of all services.

    :ivar secrets_keys: the contents of *secrets_key_file*
    """

    SECTION: ClassVar = 'database'
    connection: str = option(
        'sqlite:///$state_path/designate-pool.sqlite',
        'The database as a SQLAlchemy URL: sqlite:///FILE, mysql+pymysql://USER:PASSWORD@HOST/NAME or '
        'postgresql+psycopg2://USER:PASSWORD@HOST/NAME. Write file:PATH or env:NAME to keep the password out of this '
        'file. Write $$ for a $.', secret=True)
    pool_size: int = option(
        20, 'Connections for changes that are kept open, and as many for reads. When all are in use, further work '
            'waits for one. SQLite has these for both.', min=1, max=1000)
    max_overflow: int = option(
        0, 'Additional connections that are opened when all of pool_size are in use, and closed after use; as many for '
           'changes as for reads. Opening one takes far longer than a statement.', min=0, max=1000)
    secrets_key_file: str | None = option(
        None, 'File of keys, one on each line, that encrypt the secrets of TSIG keys in the database. The first key '
              'encrypts; every key decrypts. A key is 32 octets in URL-safe Base64, as "openssl rand 32 | basenc '
              '--base64url" prints it. Every program on this database needs the same keys. Not set: secrets are stored '
              'unencrypted. "designate-pool-manage secrets rotate" encrypts those that are stored already.')
    secrets_keys: tuple[str, ...] = dataclasses.field(default=(), repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Tries:
    """How often and how far apart an operation is tried; times are seconds.

    :ivar timeout: of one poll
    :ivar backoff_initial: the pause after the first ERROR; it doubles with each one up to *backoff_maximum*
    """

    timeout: float
    retry_interval: float
    max_retries: int
    backoff_initial: float
    backoff_maximum: float

    @property
    def round_seconds(self) -> float:
        """The longest time that a round of polls can take."""
        return (1 + self.max_retries) * self.timeout + self.max_retries * self.retry_interval


@dataclasses.dataclass(frozen=True, slots=True)
class PoolManagerSettings:
    """The pool manager. Each server of its pool has a section ``[backend:<driver>:<uuid>]`` with host (required), port
    (53), tsig_key, primaries, max_in_flight, call_timeout and the options of its driver. ``[backend:<driver>:*]``
    contains defaults for all servers of a driver.

    :ivar name: of this process, unique among the pool managers of the pool
    :ivar measured: whether metrics are served, so that those from the database are worth their cost
    """

    SECTION: ClassVar = 'service:pool_manager'
    name: str = 'pool-manager'
    measured: bool = False
    pool_name: str = option(
        'default', 'The pool that this pool manager keeps in step with the database.')
    threshold_percentage: int = option(
        100, 'Percentage of the servers that must serve a change before it is ACTIVE. The number of servers is '
             'rounded up.', min=1, max=100)
    poll_timeout: float = option(
        30, 'Seconds to wait for the answer to a NOTIFY or a poll.', min=0.01)
    poll_retry_interval: float = option(
        2, 'Seconds between two tries of a NOTIFY, a poll or a driver call.', min=0)
    poll_max_retries: int = option(
        3, 'How many times a NOTIFY, a poll or a driver call is retried in a round; a round has one try more than '
           'this.', min=0, max=1000)
    periodic_sync_interval: float = option(
        120, 'The serial of every zone is checked on every server once in this many seconds.', min=0.1,
        deprecated_name='period_sync_interval')
    contents_audit_interval: float = option(
        86400, 'The contents of every zone on every server that is fed by transfer are compared with the database '
               'once in this many seconds. The servers have to allow the pool manager to transfer their zones. 0: '
               'never.', min=0)
    contents_audit_rate: float = option(
        1000000, 'The maximum of octets a second that are transferred from one server to compare contents.', min=1000)
    extra_zones_interval: float = option(
        3600, 'Every server that is fed by transfer is searched for zones that are not in the database once in this '
              'many seconds. Zones of the pool that have been deleted from the database are deleted on the server; '
              'other zones are only logged. 0: never.', min=0)
    retry_backoff_initial: float = option(
        5, 'Seconds between the end of a failed round and the next try; doubled after each failure.', min=0.01)
    retry_backoff_maximum: float = option(
        300, 'The maximum number of seconds between two tries after a failed round.', min=0.01)
    circuit_failures: int = option(
        3, 'After this many consecutive failures to reach a server, only probes are sent to it until it answers.',
        min=1)
    circuit_probe_interval: float = option(
        2, 'Seconds between two probes of a server that cannot be reached. When it answers, its delayed work is done '
           'at once.', min=0.01)
    claim_seconds: float = option(
        30, 'Seconds for which a claim on due work is valid. If a pool manager dies, others of its pool take its '
            'work over after this time.', min=1)
    batch_size: int = option(
        200, 'How many due operations are claimed at a time.', min=1, max=10000)
    max_deletes_per_hour: int = option(
        1000, 'How many RRsets may be deleted in an hour from servers that are fed by records, including those of '
              'deleted zones. Further plans with deletes are parked until an operator approves them. 0: no limit.',
        min=0)
    plan_lifetime: float = option(
        604800, 'Seconds for which a parked plan can be approved.', min=60)
    count_joining_servers: bool = option(
        False, 'Whether a server counts in thresholds as soon as it joins the pool. Otherwise it counts when it has '
               'every zone.')
    delete_zones_of_removed_servers: bool = option(
        False, 'Whether the zones are deleted from a server whose section is removed from the configuration, if it '
               'still answers.')
    catalog_zone: str | None = option(
        None, 'Name of the catalog zone (RFC 9432) that MiniDNS serves for the pool, for servers with the driver '
              'catalog. Not set: none.')
    metrics: tuple[Endpoint, ...] = _metrics()

    @property
    def tries(self) -> Tries:
        """How often and how far apart a NOTIFY, a poll or a driver call is tried."""
        return Tries(self.poll_timeout, self.poll_retry_interval, self.poll_max_retries, self.retry_backoff_initial,
                     self.retry_backoff_maximum)


@dataclasses.dataclass(frozen=True, slots=True)
class MiniDnsSettings:
    """MiniDNS, the primary from which the servers transfer the zones."""

    SECTION: ClassVar = 'service:minidns'
    listen: tuple[Endpoint, ...] = option(
        (Endpoint('127.0.0.1', MINIDNS_PORT),),
        f'Addresses to listen on, UDP and TCP, separated by commas: 192.0.2.1:{MINIDNS_PORT}, '
        f'[2001:db8::1]:{MINIDNS_PORT}. Default port: {MINIDNS_PORT}. Servers transfer from these addresses unless '
        'their section sets primaries.', port=MINIDNS_PORT)
    reuse_port: bool = option(
        False, 'Whether several MiniDNS processes on this host may listen on the same addresses and ports '
               '(SO_REUSEPORT); the kernel then distributes the queries among them. Otherwise a second process fails '
               'to start, so that two never share a port by mistake.')
    tcp_connections: int = option(
        500, 'TCP connections that are served at the same time; further ones wait.', min=1, max=100000)
    packed_zones_bytes: int = option(
        268435456, 'Bytes of memory for the cache of zones in wire form; a transfer from the cache needs no '
                   'database. A zone that does not fit is read from the database for each transfer.', min=0)
    transfers_in: int = option(
        4, 'Secondary zones that are refreshed from their masters at the same time.', min=1, max=100)
    transfer_in_timeout: int = option(
        120, 'Seconds for the refresh of a secondary zone, with its transfer.', min=1, max=3600)
    transfer_in_records: int = option(
        100000, "Records that a master may send in one transfer; a transfer with more is refused. The quotas of the "
                "zone's project apply too.", min=1, max=10000000)
    transfer_in_bytes: int = option(
        67108864, 'Bytes that a master may send in one transfer.', min=65536, max=4294967296)
    metrics: tuple[Endpoint, ...] = _metrics()


@dataclasses.dataclass(frozen=True, slots=True)
class AddressSettings:
    """A section ``[handler:NAME]`` of a handler of ours.

    :ivar zone_id: of the zone that gets the records
    """

    SECTION: ClassVar = ''
    notification_topics: tuple[str, ...] = option(('notifications',), 'Topics to listen to.')
    control_exchange: str = ''
    zone_id: str = option(None, 'The id of the zone that gets the records.')
    formatv4: Lines = ()
    formatv6: Lines = ()
    format: Lines = option(
        (), 'Without effect, as in Designate since it has formatv4 and formatv6. The log says so.',
        deprecated_for_removal=True, deprecated_reason='formatv4 and formatv6 replace it')

    @property
    def name(self) -> str:
        """The handler's."""
        return self.SECTION.partition(':')[2]


def _exchange(name: str) -> Any:
    return option(name, 'The exchange of these topics.')


def _formatv4(default: str, fields: str) -> Any:
    return option((default,), 'The name of the A record of an address; several lines give several records. %(FIELD)s '
                              f'is a field of the notification ({fields}), or zone (with the dot at its end), project, '
                              'ip_address (192-0-2-1), ip_version, octet0 to octet3.')


def _formatv6(default: str) -> Any:
    return option((default,), 'The same for AAAA records; ip_address is 2001-db8--1, octet0 and so on are the parts '
                              'between colons.')


@dataclasses.dataclass(frozen=True, slots=True)
class NovaSettings(AddressSettings):
    """Records for the fixed addresses of instances."""

    SECTION: ClassVar = 'handler:nova_fixed'
    control_exchange: str = _exchange('nova')
    formatv4: Lines = _formatv4('%(hostname)s.%(zone)s', 'hostname, display_name, label of the network')
    formatv6: Lines = _formatv6('%(hostname)s.%(zone)s')


@dataclasses.dataclass(frozen=True, slots=True)
class NeutronFloatingIpSettings(AddressSettings):
    """Records for floating IPs that belong to a port."""

    SECTION: ClassVar = 'handler:neutron_floatingip'
    control_exchange: str = _exchange('neutron')
    formatv4: Lines = _formatv4('%(octet0)s-%(octet1)s-%(octet2)s-%(octet3)s.%(zone)s',
                                'id, description, floating_ip_address')
    formatv6: Lines = _formatv6('%(ip_address)s.%(zone)s')


@dataclasses.dataclass(frozen=True, slots=True)
class SinkSettings:
    """designate-pool-sink, which makes records for instances and floating IPs from the notifications of Nova and
    Neutron.

    :ivar handlers: those of ours that are enabled
    :ivar others: the options of those of others that are enabled, by the handler's name
    :ivar missing: those that are enabled and not installed here
    """

    SECTION: ClassVar = 'service:sink'
    enabled_notification_handlers: tuple[str, ...] = option(
        (), 'nova_fixed: records for the fixed addresses of instances, from the notifications of Nova; '
            'neutron_floatingip: for floating IPs that have a port, from those of Neutron; or the name of an entry '
            'point of designate.notification.handler. Each has a section [handler:NAME].')
    workers: int = option(
        1, 'Listeners, each with a connection to the broker and threads of its own. They are in one process.',
        min=1, max=100)
    threads: int = option(
        64, 'Notifications that a listener acts on at a time.', min=1, max=10000)
    listener_pool_name: str | None = option(
        None, 'Programs with the same name share the notifications. Set it where others, such as ceilometer, listen '
              'to the same topics: otherwise each notification goes to only one of all these.')
    metrics: tuple[Endpoint, ...] = _metrics()
    handlers: tuple[AddressSettings, ...] = ()
    others: Mapping[str, Mapping[str, Sequence[str]]] = dataclasses.field(default_factory=dict)
    missing: tuple[str, ...] = ()
