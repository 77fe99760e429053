"""``[service:minidns]``."""

from __future__ import annotations

import dataclasses

from oslo_config import cfg

from designate_pool.config import process
from designate_pool.config.section import Section
from designate_pool.model import Endpoint

PORT = 5354
GROUP = cfg.OptGroup('service:minidns', help='MiniDNS, the primary from which the servers transfer the zones.')
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('listen', default=f'127.0.0.1:{PORT}',
               help=f'Addresses to listen on, UDP and TCP, separated by commas: 192.0.2.1:{PORT}, '
                    f'[2001:db8::1]:{PORT}. Default port: {PORT}. Servers transfer from these addresses unless their '
                    'section sets primaries.'),
    cfg.BoolOpt('reuse_port', default=False,
                help='Whether several MiniDNS processes on this host may listen on the same addresses and ports '
                     '(SO_REUSEPORT); the kernel then distributes the queries among them. Otherwise a second process '
                     'fails to start, so that two never share a port by mistake.'),
    cfg.IntOpt('tcp_connections', default=500, min=1, max=100000,
               help='TCP connections that are served at the same time; further ones wait.'),
    cfg.IntOpt('packed_zones_bytes', default=268435456, min=0,
               help='Bytes of memory for the cache of zones in wire form; a transfer from the cache needs no database. '
                    'A zone that does not fit is read from the database for each transfer.'),
    process.metrics_option(),
]


@dataclasses.dataclass(frozen=True, slots=True)
class MiniDnsSettings:
    """
    :ivar listen: for UDP and TCP
    :ivar packed_zones_bytes: size of the cache of zones in wire form
    :ivar metrics: addresses that serve metrics; may be empty
    """

    listen: tuple[Endpoint, ...]
    reuse_port: bool
    tcp_connections: int
    packed_zones_bytes: int
    metrics: tuple[Endpoint, ...]


def read(section: Section) -> MiniDnsSettings:
    return MiniDnsSettings(listen=section.endpoints('listen', PORT), reuse_port=section['reuse_port'],
                           tcp_connections=section['tcp_connections'],
                           packed_zones_bytes=section['packed_zones_bytes'], metrics=process.read_metrics(section))
