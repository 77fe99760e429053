"""Every option of the sections with fixed names, once: its name, its type, its default and limits, and its help.

A section is a frozen dataclass.  ``config`` makes oslo.config's options from its fields, and an instance of it from the
files; a service is given that instance.  A field without a help is no option: it is set when the program starts.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from designate_pool.model import TLS_PORT, Endpoint

API_PORT, MINIDNS_PORT, METRICS_PORT = 9001, 5354, 9464
#: Public suffixes of two labels, by their last one: those below which many names are registered.
_SUFFIXES = {
    'ar': 'com edu gob gov mil net org', 'at': 'ac co gv or', 'au': 'asn com edu gov id net org',
    'br': 'com edu gov mil net org', 'cn': 'ac com edu gov mil net org', 'co': 'com edu gov mil net nom org',
    'cy': 'ac com gov net org', 'eg': 'com edu gov net org', 'es': 'com edu gob nom org', 'fr': 'com gouv nom',
    'gr': 'com edu gov net org', 'hk': 'com edu gov idv net org', 'id': 'ac co go mil net or sch web',
    'il': 'ac co gov k12 muni net org', 'in': 'ac co edu firm gen gov ind mil net nic org res',
    'jp': 'ac ad co ed go gr lg ne or', 'ke': 'ac co go me ne or sc', 'kr': 'ac co go mil ne or pe re',
    'mx': 'com edu gob net org', 'my': 'com edu gov mil name net org', 'ng': 'com edu gov mil net org sch',
    'nz': 'ac co geek gen govt health iwi kiwi maori mil net org school', 'pe': 'com edu gob mil net nom org',
    'ph': 'com edu gov mil net ngo org', 'pk': 'com edu gov net org', 'pl': 'com edu gov net org',
    'pt': 'com edu gov net org', 'sa': 'com edu gov net org', 'sg': 'com edu gov net org',
    'th': 'ac co go in mi net or', 'tr': 'com edu gen gov mil net org web', 'tw': 'com edu gov idv mil net org',
    'ua': 'com edu gov in net org', 'uk': 'ac co gov ltd me net nhs org plc police sch',
    'uy': 'com edu gub mil net org', 've': 'co com edu gob gov mil net org', 'vn': 'com edu gov net org',
    'za': 'ac co edu gov law mil net nom org school web'}
#: How users of the API are authenticated.
NOAUTH, TOKEN, KEYSTONE = 'noauth', 'token', 'keystone'
#: The maximum of a quota.
_MOST = 2147483647
#: The values of an option that may be given several times, each on a line of its own.
Lines = tuple[str, ...]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
#: The name of a region of OpenStack, and the URL of a service there.
Region = tuple[str, str]


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
    """The database of all services."""

    SECTION: ClassVar = 'database'
    connection: str = option(
        'sqlite:///$state_path/designate-pool.sqlite',
        'The database as a SQLAlchemy URL: sqlite:///FILE, mysql+pymysql://USER:PASSWORD@HOST/NAME or '
        'postgresql+psycopg2://USER:PASSWORD@HOST/NAME. Write file:PATH or env:NAME to keep the password out of this '
        'file. Write $$ for a $.', secret=True)
    pool_size: int = option(
        20, 'Connections for changes that are kept open, and as many for reads. When all are in use, further work '
            'waits for one. SQLite has these for both.', min=1, max=1000)
    secrets_key_file: str | None = option(
        None, 'File of keys, one on each line, that encrypt the secrets of TSIG keys in the database. The first key '
              'encrypts; every key decrypts. A key is 32 octets in URL-safe Base64, as "openssl rand 32 | basenc '
              '--base64url" prints it. Every program on this database needs the same keys. Not set: secrets are stored '
              'unencrypted. "designate-pool-manage secrets rotate" encrypts those that are stored already.')
    secrets_keys: tuple[str, ...] = dataclasses.field(default=(), repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Tries:
    """How often and how far apart an operation is tried; times are seconds.

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
    :ivar tries: how often and how far apart a NOTIFY, a poll or a driver call is tried
    """

    SECTION: ClassVar = 'service:pool_manager'
    name: str = 'pool-manager'
    measured: bool = False
    tries: Tries = dataclasses.field(init=False, repr=False)
    pool_name: str = option('default', 'The pool that this pool manager keeps in step with the database.')
    threshold_percentage: int = option(
        100, 'Percentage of the servers that must serve a change before it is ACTIVE. The number of servers is '
             'rounded up.', min=1, max=100)
    poll_timeout: float = option(30, 'Seconds to wait for the answer to a NOTIFY or a poll.', min=0.01)
    poll_retry_interval: float = option(2, 'Seconds between two tries of a NOTIFY, a poll or a driver call.', min=0)
    poll_max_retries: int = option(
        3, 'How many times a NOTIFY, a poll or a driver call is retried in a round; a round has one try more than '
           'this.', min=0, max=1000)
    periodic_sync_interval: float = option(
        120, 'The serial of every zone is checked on every server once in this many seconds.', min=0.1,
        deprecated_name='period_sync_interval')
    contents_audit_interval: float = option(
        86400, 'The contents of every zone on every server that is fed by transfer are compared with the database '
               'once in this many seconds. The servers have to allow the pool manager to transfer their zones. 0: '
               'never, so that nothing finds a record or a signature of a signed zone that is wrong on one server '
               'alone.', min=0)
    contents_audit_rate: float = option(
        1000000, 'The maximum of octets a second that are transferred from one server to compare contents.', min=1000)
    signature_audit_interval: float = option(
        3600, 'The signatures (DNSSEC) and keys that the servers serve of every signed zone are checked once in this '
              'many seconds. 0: never.', min=0)
    signature_margin: float = option(
        259200, 'Signatures that expire within this many seconds are found by that check. Whoever signs the zones has '
                'to renew them earlier.', min=0)
    parent_resolvers: tuple[Endpoint, ...] = option(
        (), 'Resolvers, separated by commas, that tell the name servers of the zone above a signed one. All of these '
            'are asked for its DS records then, which have to be of a key that the servers serve.', port=53)
    parent_servers: tuple[Endpoint, ...] = option(
        (), 'Name servers of the zones above signed ones, separated by commas, in place of those that resolvers tell.',
        port=53)
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
    batch_size: int = option(200, 'How many due operations are claimed at a time.', min=1, max=10000)
    max_deletes_per_hour: int = option(
        1000, 'How many RRsets may be deleted in an hour from servers that are fed by records, including those of '
              'deleted zones. Further plans with deletes are parked until an operator approves them. 0: no limit.',
        min=0)
    plan_lifetime: float = option(604800, 'Seconds for which a parked plan can be approved.', min=60)
    count_joining_servers: bool = option(
        False, 'Whether a server counts in thresholds as soon as it joins the pool. Otherwise it counts when it has '
               'every zone.')
    delete_zones_of_removed_servers: bool = option(
        False, 'Whether the zones are deleted from a server whose section is removed from the configuration, if it '
               'still answers.')
    catalog_zone: str | None = option(
        None, 'Name of the catalog zone (RFC 9432) that MiniDNS serves for the pool, for servers with the driver '
              'catalog. Not set: none.')
    approval: str = option(
        'none', 'Whether changes of the zones of the pool wait until somebody else approves them.', choices=[
            ('none', 'only those of zones that want it themselves'),
            ('required', 'all by those to whom the policy approve_change allows nothing')])
    release: str | None = option(
        None, 'The stages in which the servers get changes, with semicolons between: canary with the labels of '
              'servers, percentages of all servers, and all. With canary bind9:192.0.2.1:53; 25 %; all a change goes '
              'to the next servers when those before have served it for release_bake seconds, with the right contents. '
              'Not for secondary zones. Not set: a change goes to all servers at once.')
    release_bake: float = option(
        60, 'Seconds for which all servers of a stage serve a change before the next stage gets it.', min=0)
    release_queries: tuple[str, ...] = option(
        (), 'What each server of a stage has to answer, neither SERVFAIL nor REFUSED: names in the zone, @ for its '
            'own, each with a type, such as @ MX, www A.')
    metrics: tuple[Endpoint, ...] = _metrics()

    def __post_init__(self) -> None:
        object.__setattr__(self, 'tries', Tries(
            self.poll_timeout, self.poll_retry_interval, self.poll_max_retries, self.retry_backoff_initial,
            self.retry_backoff_maximum))


@dataclasses.dataclass(frozen=True, slots=True)
class MiniDnsSettings:
    """MiniDNS, the primary from which the servers transfer the zones."""

    SECTION: ClassVar = 'service:minidns'
    listen: tuple[Endpoint, ...] = option(
        (Endpoint('127.0.0.1', MINIDNS_PORT),),
        f'Addresses to listen on, UDP and TCP, separated by commas: 192.0.2.1:{MINIDNS_PORT}, '
        f'[2001:db8::1]:{MINIDNS_PORT}. Default port: {MINIDNS_PORT}. Servers transfer from these addresses unless '
        'their section sets primaries.', port=MINIDNS_PORT)
    listen_tls: tuple[Endpoint, ...] = option(
        (), f'Addresses to listen on for transfers over TLS (RFC 9103), separated by commas. Default port: {TLS_PORT}. '
            'BIND and NSD transfer from them where the primaries of their section have them.', port=TLS_PORT)
    tls_certificate: str | None = option(
        None, 'A PEM file with the certificate for listen_tls, followed by those of its intermediate authorities. This '
              'file and the two below are read again when they change.')
    tls_key: str | None = option(None, 'A PEM file with its private key.')
    tls_client_ca: str | None = option(
        None, 'A PEM file with the authorities one of which has to have signed the certificate that each client shows '
              '(mutual TLS). Not set: clients need no certificate.')
    require_tls: bool = option(
        False, 'Whether transfers without TLS are refused, also to servers that know no TLS, such as Knot 3.2 and '
               'PowerDNS. SOA queries are answered all the same.')
    reuse_port: bool = option(
        False, 'Whether several MiniDNS processes on this host may listen on the same addresses and ports '
               '(SO_REUSEPORT); the kernel then distributes the queries among them. Otherwise a second process fails '
               'to start, so that two never share a port by mistake.')
    tcp_connections: int = option(
        500, 'TCP connections that are served at the same time; for a further one the longest idle one is closed.',
        min=1, max=100000)
    packed_zones_bytes: int = option(
        268435456, 'Bytes of memory for the cache of zones in wire form; a transfer from the cache needs no '
                   'database. A zone that does not fit is read from the database for each transfer.', min=0)
    transfers_in: int = option(
        4, 'Secondary zones that are refreshed from their masters at the same time; of one project, and from one '
           'master, half as many at most.', min=1, max=100)
    transfer_in_records: int = option(
        100000, "Records that a master may send in one transfer; a transfer with more is refused. The quotas of the "
                "zone's project apply too.", min=1, max=10000000)
    masters_ca: str | None = option(
        None, 'A PEM file with the authorities that sign the certificates of masters of secondary zones which are '
              'given as ADDRESS#NAME. Not set: those that the operating system trusts.')
    metrics: tuple[Endpoint, ...] = _metrics()


@dataclasses.dataclass(frozen=True, slots=True)
class CentralSettings:
    """Central, which owns zones and records.

    :ivar default_pool_name: that of [service:pool_manager]
    :ivar default_pool_id: 32 digits
    :ivar scheduler_filters: at least one, in their order
    """

    SECTION: ClassVar = 'service:central'
    default_pool_name: str = 'default'
    default_pool_id: str | None = option(
        None, 'The id of the default pool, in place of its name. Not set: the pool of [service:pool_manager] '
              'pool_name.')
    signing_keys_file: str | None = option(
        None, 'File of keys, one on each line, that encrypt the private keys of signed zones in the database, as '
              'secrets_key_file in [database] does secrets; let it be another file, which only processes with Central '
              'can read. Without it private keys are lost, and so it is backed up. Not set: zones cannot be signed, '
              'unless pkcs11_keys is all.')
    signing_keys: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    pkcs11_module: str | None = option(
        None, 'The PKCS #11 module of a token that has private keys of signed zones, such as '
              "/usr/lib/softhsm/libsofthsm2.so; it needs pip install 'designate-pool[pkcs11]'. Not set: no token.")
    pkcs11_token: str | None = option(None, 'The label of the token.')
    pkcs11_pin: str | None = option(None, 'The PIN of its user, better as file:PATH.', secret=True)
    pkcs11_keys: str = option(
        'ksk', 'Which new keys are made in the token; those that there are stay where they are.', choices=[
            ('none', 'none'), ('ksk', 'those that the parent knows, which sign the keys of the zone: KSK and CSK'),
            ('all', 'all: the token signs each change')])
    signing_policies: Mapping[str, SigningPolicy] = dataclasses.field(
        default_factory=lambda: {'default': SigningPolicy()})
    scheduler_filters: tuple[str, ...] = option(
        ('pool_id_attribute', 'attribute', 'in_doubt_default_pool', 'random'),
        'How the pool of a new zone is chosen; one filter after the other, each of which keeps some of the pools. '
        'attribute: those with all attributes of the zone, and those without attributes; pool_id_attribute: the one '
        'that the attribute pool_id names; default_pool: the default pool; fallback: the default pool if none is '
        'left; in_doubt_default_pool: the default pool if several are left and it is among them; random: one of '
        'them. Pools without name servers or servers take no part, unless they are named or the default one.')
    pool_move_delay: int = option(
        3600, 'Seconds for which the servers of a pool keep a zone that was moved to another pool, once that pool '
              'serves it, for resolvers that still have the former name servers in their caches. They get its '
              'changes meanwhile. It should not be less than the TTL of the zones and of their delegations.', min=0)
    reserved_zone_names: tuple[str, ...] = option(
        ('in-addr.arpa', 'ip6.arpa',
         *(f'{label}.{tld}' for tld, labels in _SUFFIXES.items() for label in labels.split())),
        'Names of zones that only who may nest zones creates, as those of one label: they would give one project all '
        'names below. * and ? stand for characters within a label. The default has the roots of reverse zones, and '
        'public suffixes of two labels of many countries; https://publicsuffix.org/ has all. Zones that there are '
        'stay. Empty: none.')
    master_networks: tuple[Network, ...] = option(
        (), 'Networks whose addresses may be masters of secondary zones though they are private or local, such as '
            '10.1.0.0/16: MiniDNS connects to masters, which users choose. Otherwise private, loopback, link-local, '
            'multicast and reserved addresses are refused. Loopback is for tests alone.')
    master_ports: tuple[str, ...] = option(
        ('53', '853'), 'Ports that masters of secondary zones may have, and ranges of them, such as 5300-5399: users '
                       'could find out what else listens at an address that only MiniDNS reaches.')
    secondary_interval: int = option(
        60, 'The least number of seconds between two refreshes of a secondary zone, whatever refresh and retry in '
            'its SOA say; a NOTIFY from a master and "zone refresh" are acted on at once.', min=1, max=86400)
    managed_resource_tenant_id: str = option(
        '00000000-0000-0000-0000-000000000000',
        'The project that owns the reverse zones for PTR records of floating IPs. They are created for it; a reverse '
        'zone of another project gets no such records.')
    managed_resource_email: str = option('hostmaster@example.com', 'The email of these zones.')
    deleted_retention: int = option(
        604800, 'Seconds for which a zone can be restored after it was deleted, and deleted records are kept. After '
                'that they are removed from the database, a zone once its last server has confirmed the deletion.',
        min=0)
    count_deleted_zones: bool = option(
        False, 'Whether deleted zones that can be restored count towards quota_zones.')
    approval_lifetime: int = option(
        604800, 'Seconds for which a change that waits for approval can be approved.', min=60)
    task_retention: int = option(
        604800, 'Seconds that the records of imports and exports are kept after they ended. Imported zones are not '
                'affected.', min=3600)
    journal_records: int = option(
        10000, 'How many changed records of each zone servers can fetch at most instead of the whole zone (IXFR). 0: '
               'servers always fetch whole zones.', min=0, max=1000000)
    history_days: int = option(
        365, 'Days that the versions of each zone are kept: who changed which records, also after the zone was '
             'deleted.', min=1, max=36500)
    history_records: int = option(
        100000, 'How many changed records are kept for each zone. The oldest are dropped first, and a larger change is '
                'not kept at all: contents from before cannot be had then, nor fetched as changes (IXFR). Who made '
                'the changes stays known.', min=0, max=10000000)
    quota_zones: int = option(
        1000, 'Zones that a project may have; -1: no limit. This quota and those below are defaults, which PATCH '
              '/v2/quotas/{project_id} overrides for one project. A project that exceeds a quota keeps what it has, '
              'but cannot add to it. Zones without a project have no quotas.', min=-1, max=_MOST)
    quota_zone_recordsets: int = option(
        500, 'Recordsets that a zone may have, without those that are generated from its pool; -1: no limit. They '
             'are counted whenever one is added; with a limit of a million that takes a tenth of a second.',
        min=-1, max=_MOST)
    quota_zone_records: int = option(
        10000, 'Records that a zone may have, without those that are generated from its pool; -1: no limit. They are '
               'counted like recordsets.', min=-1, max=_MOST)
    quota_recordset_records: int = option(
        500, 'Records that a recordset may have; -1: no limit. A recordset has to fit into one DNS message of 65535 '
             'octets.', min=-1, max=_MOST)
    quota_api_export_size: int = option(
        -1, 'The maximum number of recordsets of a zone that can be exported; -1: no limit.', min=-1, max=_MOST)
    quota_deletes_per_hour: int = option(
        -1, 'Recordsets that requests may delete in an hour in the zones of a project, with those of zones that are '
            'deleted; -1: no limit.', min=-1, max=_MOST)
    quota_zone_deletes_per_hour: int = option(
        -1, 'Recordsets that requests may delete in an hour in one zone; -1: no limit.', min=-1, max=_MOST)
    metrics: tuple[Endpoint, ...] = _metrics()

    @property
    def quotas(self) -> dict[str, int]:
        """The quotas by their names, which are those of the options without ``quota_``; -1 is no limit."""
        return {field.name.removeprefix('quota_'): getattr(self, field.name) for field in dataclasses.fields(self)
                if field.name.startswith('quota_')}


@dataclasses.dataclass(frozen=True, slots=True)
class ApiSettings:
    """The HTTP API.

    :ivar listen: loopback addresses; others only with authentication or *allow_remote*
    """

    SECTION: ClassVar = 'service:api'
    listen: tuple[Endpoint, ...] = option(
        (Endpoint('127.0.0.1', API_PORT),),
        f'Addresses to listen on, separated by commas: 127.0.0.1:{API_PORT}, [::1]:{API_PORT}. Default port: '
        f'{API_PORT}.', port=API_PORT)
    auth: str = option(
        None, 'How users are authenticated. Not set: noauth, and listen may only contain loopback addresses.',
        sample_default='noauth', choices=[
            (TOKEN, 'tokens from tokens_file, each with a project and roles'),
            (KEYSTONE, 'tokens of OpenStack Identity, checked by keystonemiddleware, which is configured in the '
                       "section [keystone_authtoken] and installed by pip install 'designate-pool[keystone]'"),
            (NOAUTH, 'no authentication: everybody who reaches the API may change every zone. To listen on an '
                     'address that other machines reach, set auth = noauth and allow_remote = true')])
    allow_remote: bool = option(
        False, 'Only with auth = noauth, which must be set explicitly: allow listen to contain addresses that other '
               'machines reach. Everybody who reaches the API may then change every zone.')
    hosts: tuple[str, ...] = option(
        (), "Only with auth = noauth: further host names that users write in URLs of the API. Addresses, localhost "
            "and the name of the machine are always accepted. Requests to other names are refused, since a hostile "
            "web page could have made a user's browser send them (DNS rebinding).")
    tokens_file: str | None = option(
        None, 'Only with auth = token: the file of tokens, which "designate-pool-manage token create" writes. It '
              'contains the SHA-256 of each token, not the token. It is read again when it has changed.')
    background_work: bool = option(
        True, 'Whether the process also runs imports of zone files, deletes what has expired, and completes updates '
              'of name servers and moves of zones. Set it to false where designate-pool-central runs, so that long '
              'work takes no processor time from requests. designate-pool-all does it in any case.')
    rate_limit: float = option(
        100, 'Requests a second that each project may send. Clients without a project are counted by address, for '
             'IPv6 by network of 64 bits. Further requests are answered 429. Each API process counts on its own. 0: '
             'no limit.', min=0)
    rate_burst: int = option(
        500, 'Only with a rate_limit: requests that a client may send at once after a pause.', min=1)
    threads: int = option(16, 'Requests that one process handles at the same time.', min=1, max=1000)
    threads_per_client: int = option(
        0, 'How many of these requests one project may have, or one address as long as the project of a request is '
           'not known; for IPv6 a network of 64 bits. Further requests are answered 429, so that a thread is free '
           'for others. 0: three quarters of threads.', min=0, max=1000)
    waits: int = option(
        100, 'Requests that may wait at the same time for the result of a change to a zone. Each has a thread '
             'besides those of threads. One project may have a fifth of them. Further ones are answered 503.', min=0,
        max=1000)
    pending_imports: int = option(
        10, 'Imports of one project that may be waiting or running. Further ones are answered 429. Imports without a '
            'project are not limited.', min=0, max=1000000)
    max_body: int = option(
        268435456, 'The maximum size of a request body in bytes. It applies to zone files; JSON bodies, which are '
                   'kept in memory, are limited to 33554432 bytes. The part of a body over 524288 bytes is kept in a '
                   'temporary file until the request has been executed.', min=1024)
    trusted_proxy: str | None = option(
        None, 'Address of the proxy in front of the API, which sets the headers X-Forwarded-For and '
              'X-Forwarded-Proto. Clients are then limited by their own addresses, and URLs in answers start with '
              'https where the proxy was asked so. Not set: these headers are ignored.')
    enable_api_admin: bool = option(False, 'Whether there is what Designate has below /admin, for administrators.')
    enabled_extensions_admin: tuple[str, ...] = option(
        (), 'Only with enable_api_admin: what there is of it. quotas: those of any project; reports: how many zones '
            'and records projects have; zones: zone files.',
        choices=['quotas', 'reports', 'zones'])
    quotas_verify_project_id: bool = option(
        False, 'Only with auth = keystone: ask Keystone for the project when quotas are set, a zone is shared, '
               'offered or given away, with the token of the requester, and refuse one that it does not know.')
    metrics: tuple[Endpoint, ...] = _metrics()


@dataclasses.dataclass(frozen=True, slots=True)
class NeutronSettings:
    """OpenStack Networking, which the API asks for floating IPs, with the token of the request. Needs auth = keystone,
    and pip install 'designate-pool[neutron]'.

    :ivar endpoint_type: as in the catalog of Identity version 2: ``publicURL``
    """

    SECTION: ClassVar = 'network_api:neutron'
    endpoints: tuple[Region, ...] = option(
        (), 'Where Neutron is, as REGION|URL, separated by commas. Not set: where the catalog of the token says.')
    endpoint_type: str = option(
        'publicURL', 'Which of the addresses in the catalog is taken.',
        choices=['publicURL', 'internalURL', 'adminURL', 'public', 'internal', 'admin'])
    timeout: int = option(30, 'Seconds to wait for an answer of Neutron.', min=1)
    insecure: bool = option(False, "Do not verify Neutron's certificate.")
    ca_certificates_file: str | None = option(
        None, "A file of certificates that verify Neutron's. Not set: those of the system.")
    client_certificate_file: str | None = option(None, 'A file with the certificate and the key that Neutron is shown.')


@dataclasses.dataclass(frozen=True, slots=True)
class AddressSettings:
    """A section ``[handler:NAME]`` of a handler of ours."""

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
    control_exchange: str = option('nova', 'The exchange of these topics.')
    formatv4: Lines = _formatv4('%(hostname)s.%(zone)s', 'hostname, display_name, label of the network')
    formatv6: Lines = _formatv6('%(hostname)s.%(zone)s')


@dataclasses.dataclass(frozen=True, slots=True)
class NeutronFloatingIpSettings(AddressSettings):
    """Records for floating IPs that belong to a port."""

    SECTION: ClassVar = 'handler:neutron_floatingip'
    control_exchange: str = option('neutron', 'The exchange of these topics.')
    formatv4: Lines = _formatv4('%(octet0)s-%(octet1)s-%(octet2)s-%(octet3)s.%(zone)s',
                                'id, description, floating_ip_address')
    formatv6: Lines = _formatv6('%(ip_address)s.%(zone)s')


@dataclasses.dataclass(frozen=True, slots=True)
class SinkSettings:
    """designate-pool-sink, which makes records for instances and floating IPs from the notifications of Nova and
    Neutron.

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
    threads: int = option(64, 'Notifications that a listener acts on at a time.', min=1, max=10000)
    listener_pool_name: str | None = option(
        None, 'Programs with the same name share the notifications. Set it where others, such as ceilometer, listen '
              'to the same topics: otherwise each notification goes to only one of all these.')
    metrics: tuple[Endpoint, ...] = _metrics()
    handlers: tuple[AddressSettings, ...] = ()
    others: Mapping[str, Mapping[str, Sequence[str]]] = dataclasses.field(default_factory=dict)
    missing: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class SigningPolicy:
    """How zones are signed that name this policy; a section [dnssec_policy:NAME] is the policy NAME. Times are seconds.
    """

    SECTION: ClassVar = 'dnssec_policy:default'
    algorithm: str = option('ECDSAP256SHA256', 'Of keys that are made.', choices=['ECDSAP256SHA256', 'ED25519'])
    denial: str = option(
        'NSEC', 'How it is proven that a name does not exist. NSEC lets everybody list the names of the zone; NSEC3, '
                'with no iterations and no salt (RFC 9276), makes that some work.', choices=['NSEC', 'NSEC3'])
    keys: str = option(
        'split', 'split: one key that the parent knows signs the keys, and another one that is changed without the '
                 'parent signs all else (KSK and ZSK). csk: one key does both; servers that validate what they '
                 'transfer, as Knot DNS can, may refuse the zone while that key is changed.', choices=['split', 'csk'])
    ksk_lifetime: int = option(0, 'After so long a KSK or CSK is followed by a new one; 0: by command only.', min=0)
    zsk_lifetime: int = option(7776000, 'The same for a ZSK.', min=0)
    validity: int = option(1814400, 'For how long signatures are valid.', min=3600, max=31536000)
    refresh: int = option(
        864000, 'Signatures that are valid for less than this are renewed. What a server still serves that is cut off '
                'must be valid: "expire" in the SOA of signed zones is at most this.', min=60)
    jitter: int = option(172800, 'Signatures end up to so much earlier, so that not all are renewed at once.', min=0)
    dnskey_ttl: int = option(3600, 'The TTL of the keys in the zone.', min=0, max=604800)
    propagation_delay: int = option(
        300, 'For how long after all servers serve a version an answer of the one before may still be on its way.',
        min=0)
    parent_ds_ttl: int = option(86400, 'The TTL of DS records in the parent zone.', min=0, max=604800)
    own_parent: bool = option(
        True, 'Whether the DS records of a zone are put into the zone above it, and taken out again, where both are '
              'here, belong to one project, and that one has NS records of this one.')
    signal_project: str = option(
        '', 'Id of the project whose signed zones, each named "_signal." and a name server of the pool, get CDS and '
            'CDNSKEY of the zones, for parents that bootstrap by them (RFC 9615); empty: none.')

    @property
    def algorithm_number(self) -> int:
        """The number of *algorithm* (RFC 8624)."""
        return {'ECDSAP256SHA256': 13, 'ED25519': 15}[self.algorithm]
