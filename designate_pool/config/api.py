"""``[service:api]``."""

from __future__ import annotations

import dataclasses
import ipaddress

from oslo_config import cfg

from designate_pool.config.section import Section
from designate_pool.model import Endpoint

PORT = 9001
GROUP = cfg.OptGroup('service:api', help='The HTTP API.')
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('listen', default=f'127.0.0.1:{PORT}',
               help='Addresses to listen on, with commas between them: 127.0.0.1:9001, [::1]:9001. '
                    f'Without a port: {PORT}.'),
    cfg.BoolOpt('allow_remote', default=False,
                help='Allow listen to hold addresses that other machines reach. The API asks nobody who they are: '
                     'whoever reaches it may change every domain.'),
    cfg.IntOpt('threads', default=8, min=1, max=1000, help='Requests handled at the same time.'),
    cfg.IntOpt('max_body', default=33554432, min=1024,
               help='The most bytes that the body of a request may have; a zone file to import is one.'),
]


@dataclasses.dataclass(frozen=True, slots=True)
class ApiSettings:
    """
    :ivar listen: loopback addresses, others only with *allow_remote*
    :ivar max_body: bytes
    """

    listen: tuple[Endpoint, ...]
    allow_remote: bool
    threads: int
    max_body: int


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    return [(GROUP, OPTIONS)]


def read(section: Section) -> ApiSettings:
    settings = ApiSettings(listen=section.endpoints('listen', PORT), allow_remote=section['allow_remote'],
                           threads=section['threads'], max_body=section['max_body'])
    for endpoint in settings.listen:
        if settings.allow_remote is False and not ipaddress.ip_address(endpoint.host).is_loopback:
            section.wrong('listen', f'other machines reach {endpoint}, and the API has no authentication; '
                                    'set allow_remote = true if that is meant')
    return settings
