"""``[service:api]``."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterable

from oslo_config import cfg

from designate_pool.config import process
from designate_pool.config.section import Section
from designate_pool.model import Endpoint

PORT = 9001
NOAUTH, TOKEN, KEYSTONE = 'noauth', 'token', 'keystone'
GROUP = cfg.OptGroup('service:api', help='The HTTP API.')
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('listen', default=f'127.0.0.1:{PORT}',
               help='Addresses to listen on, with commas between them: 127.0.0.1:9001, [::1]:9001. '
                    f'Without a port: {PORT}.'),
    cfg.StrOpt('auth', sample_default='noauth', choices=[
        ('token', 'tokens from tokens_file, with project and roles'),
        ('keystone', 'tokens of OpenStack Identity, by the section [keystone_authtoken] of keystonemiddleware, which '
                     "pip install 'designate-pool[keystone]' brings"),
        ('noauth', 'no authentication: whoever reaches the API may change every zone. On addresses that other machines '
                   'reach this has to be written here, and allow_remote = true too')],
        help='How users are authenticated. Not set: noauth, and then listen may only hold loopback addresses.'),
    cfg.BoolOpt('allow_remote', default=False,
                help='With auth = noauth, which must be written as well: allow listen to hold addresses that other '
                     'machines reach. The API asks nobody who they are: whoever reaches it may change every zone.'),
    cfg.ListOpt('hosts', default=[],
                help='With auth = noauth: names by which users call the API, as in URLs, beside addresses, localhost '
                     'and the name of the machine. A request to another name is refused: '
                     'a web page could have made it, and its visitor\'s browser send the request.'),
    cfg.StrOpt('tokens_file',
               help='With auth = token: the file of the tokens, which "designate-pool-manage token create" writes. It '
                    'holds their SHA-256, not the tokens. It is read again when it has changed.'),
    cfg.FloatOpt('rate_limit', default=100, min=0,
                 help='Requests a second that are taken for one project, or from one address where no project is '
                      'known, or of IPv6 from one network of 64 bits; more are answered 429. Each API process counts '
                      'for itself. 0: no limit.'),
    cfg.IntOpt('rate_burst', default=500, min=1,
               help='With a rate_limit: requests that may come at once after a pause.'),
    cfg.IntOpt('threads', default=16, min=1, max=1000, help='Requests that one process handles at the same time.'),
    cfg.IntOpt('threads_per_client', default=0, min=0, max=1000,
               help='How many of these one project may have, or one address where no project is known; what it asks '
                    'beyond that waits, so that others find a thread at once. All clients of one address together may '
                    'have half of the rest as well. 0: half of threads.'),
    cfg.IntOpt('waits', default=100, min=0, max=1000,
               help='Requests that may wait at the same time for what becomes of a zone, beside those that threads '
                    'handle; more are answered 503.'),
    cfg.IntOpt('waits_per_project', default=20, min=0, max=1000,
               help='How many of these one project may have in each API process; who names no project may have all.'),
    cfg.IntOpt('pending_imports', default=10, min=0, max=1000000,
               help='Imports of one project that may wait or be under way; more are answered 429. What is imported '
                    'without a project is not counted.'),
    cfg.IntOpt('max_body', default=268435456, min=1024,
               help='The most bytes that the body of a request may have. Only a zone file may be that long: what is '
                    'JSON is held in memory, and may have 33554432 at most.'),
    cfg.IntOpt('max_bodies', default=1073741824, min=1024,
               help='The most bytes that the bodies of all requests may have together, of those over 1048576 bytes; '
                    'one that would be too much is answered 503. What is over 524288 bytes of a body is in a temporary '
                    'file until the request is carried out.'),
    process.metrics_option(),
]


@dataclasses.dataclass(frozen=True, slots=True)
class ApiSettings:
    """
    :ivar listen: loopback addresses; others only where somebody asks who comes, or with *allow_remote*
    :ivar auth: ``token``, ``keystone`` or ``noauth``
    :ivar hosts: names by which the API is called, where *auth* is ``noauth``
    :ivar tokens_file: a path, where *auth* is ``token``
    :ivar rate_limit: requests a second of one project; 0 for no limit
    :ivar threads_per_client: 0 for half of *threads*
    :ivar max_body: bytes
    :ivar max_bodies: bytes; no less than *max_body*
    :ivar metrics: where they are served; empty for nowhere
    """

    listen: tuple[Endpoint, ...]
    auth: str
    allow_remote: bool
    hosts: tuple[str, ...]
    tokens_file: str | None
    rate_limit: float
    rate_burst: int
    threads: int
    threads_per_client: int
    waits: int
    waits_per_project: int
    pending_imports: int
    max_body: int
    max_bodies: int
    metrics: tuple[Endpoint, ...]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    return [(GROUP, OPTIONS)]


def read(section: Section) -> ApiSettings:
    said = section['auth']
    settings = ApiSettings(listen=section.endpoints('listen', PORT), auth=said or NOAUTH,
                           allow_remote=section['allow_remote'], hosts=tuple(section['hosts'] or ()),
                           tokens_file=section['tokens_file'],
                           rate_limit=section['rate_limit'], rate_burst=section['rate_burst'],
                           threads=section['threads'], threads_per_client=section['threads_per_client'],
                           waits=section['waits'],
                           waits_per_project=section['waits_per_project'],
                           pending_imports=section['pending_imports'],
                           max_body=section['max_body'],
                           max_bodies=section['max_bodies'], metrics=process.read_metrics(section))
    if settings.max_bodies < settings.max_body:
        section.wrong('max_bodies', f'it is less than max_body, {settings.max_body}; such a body would never be taken')
    if settings.auth == TOKEN and not settings.tokens_file:
        section.wrong('tokens_file', 'it must be given where auth = token; '
                                     '"designate-pool-manage token create" makes the file')
    if settings.auth == NOAUTH and not (said and settings.allow_remote):
        for endpoint in remote(settings.listen):
            section.wrong('listen', f'other machines reach {endpoint}, and the API asks nobody who they are; set auth '
                                    'to token or keystone, or both auth = noauth and allow_remote = true if that is '
                                    'meant')
    return settings


def remote(listen: Iterable[Endpoint]) -> list[Endpoint]:
    """Those of the addresses that other machines reach."""
    return [endpoint for endpoint in listen if not ipaddress.ip_address(endpoint.host).is_loopback]
