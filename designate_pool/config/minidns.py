"""``[service:minidns]``."""

from __future__ import annotations

import dataclasses

from oslo_config import cfg

from designate_pool.config import process
from designate_pool.config.section import Section
from designate_pool.model import Endpoint

PORT = 5354
GROUP = cfg.OptGroup('service:minidns', help='MiniDNS, from which the servers transfer the zones.')
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('listen', default=f'127.0.0.1:{PORT}',
               help=f'Addresses to listen on, UDP and TCP, with commas between them: 192.0.2.1:{PORT}, '
                    f'[2001:db8::1]:{PORT}. Without a port: {PORT}. The servers are told to transfer from here unless '
                    'their section says primaries.'),
    cfg.BoolOpt('reuse_port', default=False,
                help='Whether several MiniDNS processes of this host may listen on the same addresses and ports '
                     '(SO_REUSEPORT): the system then shares the queries out among them. Without it a second one does '
                     'not start, so that nobody listens there unnoticed.'),
    cfg.IntOpt('tcp_connections', default=500, min=1, max=100000,
               help='TCP connections served at the same time; more have to wait.'),
    cfg.IntOpt('packed_zones_bytes', default=268435456, min=0,
               help='Bytes of memory for zones in wire form, kept so that the next server costs a copy. A zone that '
                    'is larger is read from the database while it is sent, for each server anew.'),
    process.metrics_option(),
]


@dataclasses.dataclass(frozen=True, slots=True)
class MiniDnsSettings:
    """
    :ivar listen: UDP and TCP both
    :ivar packed_zones_bytes: memory for zones in wire form
    :ivar metrics: where they are served; empty for nowhere
    """

    listen: tuple[Endpoint, ...]
    reuse_port: bool
    tcp_connections: int
    packed_zones_bytes: int
    metrics: tuple[Endpoint, ...]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    return [(GROUP, OPTIONS)]


def read(section: Section) -> MiniDnsSettings:
    return MiniDnsSettings(listen=section.endpoints('listen', PORT), reuse_port=section['reuse_port'],
                           tcp_connections=section['tcp_connections'],
                           packed_zones_bytes=section['packed_zones_bytes'], metrics=process.read_metrics(section))
