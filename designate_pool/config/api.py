"""``[service:api]``."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterable

from oslo_config import cfg, types

from designate_pool.config import process
from designate_pool.config.section import Section
from designate_pool.model import Endpoint

PORT = 9001
NOAUTH, TOKEN, KEYSTONE = 'noauth', 'token', 'keystone'
GROUP = cfg.OptGroup('service:api', help='The HTTP API.')
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('listen', default=f'127.0.0.1:{PORT}',
               help='Addresses to listen on, separated by commas: 127.0.0.1:9001, [::1]:9001. '
                    f'Default port: {PORT}.'),
    cfg.StrOpt('auth', sample_default='noauth', choices=[
        ('token', 'tokens from tokens_file, each with a project and roles'),
        ('keystone', 'tokens of OpenStack Identity, checked by keystonemiddleware, which is configured in the section '
                     "[keystone_authtoken] and installed by pip install 'designate-pool[keystone]'"),
        ('noauth', 'no authentication: everybody who reaches the API may change every zone. To listen on an address '
                   'that other machines reach, set auth = noauth and allow_remote = true')],
        help='How users are authenticated. Not set: noauth, and listen may only contain loopback addresses.'),
    cfg.BoolOpt('allow_remote', default=False,
                help='Only with auth = noauth, which must be set explicitly: allow listen to contain addresses that '
                     'other machines reach. Everybody who reaches the API may then change every zone.'),
    cfg.ListOpt('hosts', default=[],
                help='Only with auth = noauth: further host names that users write in URLs of the API. Addresses, '
                     'localhost and the name of the machine are always accepted. Requests to other names are refused, '
                     "since a hostile web page could have made a user's browser send them (DNS rebinding)."),
    cfg.StrOpt('tokens_file',
               help='Only with auth = token: the file of tokens, which "designate-pool-manage token create" writes. It '
                    'contains the SHA-256 of each token, not the token. It is read again when it has changed.'),
    cfg.BoolOpt('background_work', default=True,
                help='Whether the process also runs imports of zone files, deletes what has expired, and completes '
                     'updates of name servers and moves of zones. Set it to false where designate-pool-central runs, '
                     'so that long work takes no processor time from requests. designate-pool-all does it in any '
                     'case.'),
    cfg.FloatOpt('rate_limit', default=100, min=0,
                 help='Requests a second that each project may send. Clients without a project are counted by address, '
                      'for IPv6 by network of 64 bits. Further requests are answered 429. Each API process counts on '
                      'its own. 0: no limit.'),
    cfg.IntOpt('rate_burst', default=500, min=1,
               help='Only with a rate_limit: requests that a client may send at once after a pause.'),
    cfg.IntOpt('threads', default=16, min=1, max=1000, help='Requests that one process handles at the same time.'),
    cfg.IntOpt('threads_per_client', default=0, min=0, max=1000,
               help='How many of these requests one project may have, or one address as long as the project of a '
                    'request is not known; for IPv6 a network of 64 bits. Further requests are answered 429, so that '
                    'a thread is free for others. 0: three quarters of threads.'),
    cfg.IntOpt('waits', default=100, min=0, max=1000,
               help='Requests that may wait at the same time for the result of a change to a zone. Each has a thread '
                    'besides those of threads. Further ones are answered 503.'),
    cfg.IntOpt('waits_per_project', default=20, min=0, max=1000,
               help='How many of these waiting requests one project may have in each API process. Requests without a '
                    'project have no such limit.'),
    cfg.IntOpt('pending_imports', default=10, min=0, max=1000000,
               help='Imports of one project that may be waiting or running. Further ones are answered 429. Imports '
                    'without a project are not limited.'),
    cfg.IntOpt('max_body', default=268435456, min=1024,
               help='The maximum size of a request body in bytes. It applies to zone files; JSON bodies, which are '
                    'kept in memory, are limited to 33554432 bytes. The part of a body over 524288 bytes is kept in a '
                    'temporary file until the request has been executed.'),
    cfg.StrOpt('trusted_proxy',
               help='Address of the proxy in front of the API, which sets the headers X-Forwarded-For and '
                    'X-Forwarded-Proto. Clients are then limited by their own addresses, and URLs in answers start '
                    'with https where the proxy was asked so. Not set: these headers are ignored.'),
    cfg.BoolOpt('enable_api_admin', default=False,
                help='Whether there is what Designate has below /admin, for administrators.'),
    cfg.ListOpt('enabled_extensions_admin', default=[], item_type=types.String(choices=['quotas', 'reports', 'zones']),
                help='Only with enable_api_admin: what there is of it. quotas: those of any project; reports: how many '
                     'zones and records projects have; zones: zone files.'),
    cfg.BoolOpt('quotas_verify_project_id', default=False,
                help='Only with auth = keystone: ask Keystone for the project when quotas are set, a zone is shared, '
                     'offered or given away, with the token of the requester, and refuse one that it does not know.'),
    process.metrics_option(),
]


NEUTRON_GROUP = cfg.OptGroup(
    'network_api:neutron', help='OpenStack Networking, which the API asks for floating IPs, with the token of the '
    "request. Needs auth = keystone, and pip install 'designate-pool[neutron]'.")
NEUTRON_OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt('endpoints', default=[],
                help='Where Neutron is, as REGION|URL, separated by commas. Not set: where the catalog of the token '
                     'says.'),
    cfg.StrOpt('endpoint_type', default='publicURL',
               choices=['publicURL', 'internalURL', 'adminURL', 'public', 'internal', 'admin'],
               help='Which of the addresses in the catalog is taken.'),
    cfg.IntOpt('timeout', default=30, min=1, help='Seconds to wait for an answer of Neutron.'),
    cfg.BoolOpt('insecure', default=False, help="Do not verify Neutron's certificate."),
    cfg.StrOpt('ca_certificates_file', help="A file of certificates that verify Neutron's. Not set: those of the "
                                            'system.'),
    cfg.StrOpt('client_certificate_file', help='A file with the certificate and the key that Neutron is shown.'),
]


@dataclasses.dataclass(frozen=True, slots=True)
class NeutronSettings:
    """
    :ivar endpoints: region and URL; empty for those of the catalog
    :ivar endpoint_type: as in the catalog of Identity version 2: ``publicURL``
    :ivar timeout: seconds
    :ivar verify: False, or a path, or True for the certificates of the system
    """

    endpoints: tuple[tuple[str, str], ...] = ()
    endpoint_type: str = 'publicURL'
    timeout: int = 30
    verify: bool | str = True
    client_certificate_file: str | None = None


def read_neutron(section: Section) -> NeutronSettings:
    endpoints = []
    for each in section['endpoints'] or ():
        region, bar, url = each.partition('|')
        if not (region and bar and url.startswith(('http://', 'https://'))):
            section.wrong('endpoints', f'{each!r} is not REGION|URL')
        endpoints.append((region, url))
    kind = section['endpoint_type'] or ''
    return NeutronSettings(tuple(endpoints), kind if kind.endswith('URL') else f'{kind}URL', section['timeout'],
                           not section['insecure'] and (section['ca_certificates_file'] or True),
                           section['client_certificate_file'])


@dataclasses.dataclass(frozen=True, slots=True)
class ApiSettings:
    """
    :ivar listen: loopback addresses; others only with authentication or *allow_remote*
    :ivar auth: ``token``, ``keystone`` or ``noauth``
    :ivar hosts: further host names in URLs of the API, used if *auth* is ``noauth``
    :ivar tokens_file: a path, used if *auth* is ``token``
    :ivar rate_limit: requests a second for each project; 0 for no limit
    :ivar threads_per_client: 0 for three quarters of *threads*
    :ivar max_body: bytes
    :ivar trusted_proxy: an address; None without a proxy
    :ivar admin: extensions below ``/admin``; empty unless *enable_api_admin*
    :ivar metrics: addresses that serve metrics; may be empty
    """

    listen: tuple[Endpoint, ...]
    auth: str
    allow_remote: bool
    hosts: tuple[str, ...]
    tokens_file: str | None
    background_work: bool
    rate_limit: float
    rate_burst: int
    threads: int
    threads_per_client: int
    waits: int
    waits_per_project: int
    pending_imports: int
    max_body: int
    trusted_proxy: str | None
    admin: tuple[str, ...]
    quotas_verify_project_id: bool
    metrics: tuple[Endpoint, ...]


def read(section: Section) -> ApiSettings:
    auth = section['auth']
    settings = ApiSettings(listen=section.endpoints('listen', PORT), auth=auth or NOAUTH,
                           allow_remote=section['allow_remote'], hosts=tuple(section['hosts'] or ()),
                           tokens_file=section['tokens_file'],
                           background_work=section['background_work'],
                           rate_limit=section['rate_limit'], rate_burst=section['rate_burst'],
                           threads=section['threads'], threads_per_client=section['threads_per_client'],
                           waits=section['waits'],
                           waits_per_project=section['waits_per_project'],
                           pending_imports=section['pending_imports'],
                           max_body=section['max_body'],
                           trusted_proxy=section['trusted_proxy'],
                           admin=tuple(section['enable_api_admin'] and section['enabled_extensions_admin'] or ()),
                           quotas_verify_project_id=section['quotas_verify_project_id'],
                           metrics=process.read_metrics(section))
    if settings.trusted_proxy:
        try:
            ipaddress.ip_address(settings.trusted_proxy)
        except ValueError:
            section.wrong('trusted_proxy', f'{settings.trusted_proxy!r} is not an IP address')
    if settings.auth == TOKEN and not settings.tokens_file:
        section.wrong('tokens_file', 'it must be given with auth = token; '
                                     '"designate-pool-manage token create" creates the file')
    if settings.auth == NOAUTH and not (auth and settings.allow_remote):
        for endpoint in remote(settings.listen):
            section.wrong('listen', f'other machines reach {endpoint}, and the API does not authenticate users; set '
                                    'auth to token or keystone, or set both auth = noauth and allow_remote = true to '
                                    'allow this')
    return settings


def remote(listen: Iterable[Endpoint]) -> list[Endpoint]:
    """The addresses in *listen* that other machines reach."""
    return [endpoint for endpoint in listen if not ipaddress.ip_address(endpoint.host).is_loopback]
