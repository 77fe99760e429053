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
    cfg.IntOpt('transfers_in', default=4, min=1, max=100,
               help='Secondary zones that are refreshed from their masters at the same time.'),
    cfg.IntOpt('transfer_in_timeout', default=120, min=1, max=3600,
               help='Seconds for the refresh of a secondary zone, with its transfer.'),
    cfg.IntOpt('transfer_in_records', default=100000, min=1, max=10000000,
               help='Records that a master may send in one transfer; a transfer with more is refused. The quotas of '
                    "the zone's project apply too."),
    cfg.IntOpt('transfer_in_bytes', default=67108864, min=65536, max=4294967296,
               help='Bytes that a master may send in one transfer.'),
    process.metrics_option(),
]


@dataclasses.dataclass(frozen=True, slots=True)
class MiniDnsSettings:
    """
    :ivar listen: for UDP and TCP
    :ivar packed_zones_bytes: size of the cache of zones in wire form
    :ivar transfers_in: at the same time
    :ivar transfer_in_timeout: seconds
    :ivar transfer_in_records: of one transfer
    :ivar transfer_in_bytes: of one transfer
    :ivar metrics: addresses that serve metrics; may be empty
    """

    listen: tuple[Endpoint, ...]
    reuse_port: bool
    tcp_connections: int
    packed_zones_bytes: int
    transfers_in: int
    transfer_in_timeout: int
    transfer_in_records: int
    transfer_in_bytes: int
    metrics: tuple[Endpoint, ...]


def read(section: Section) -> MiniDnsSettings:
    return MiniDnsSettings(listen=section.endpoints('listen', PORT), reuse_port=section['reuse_port'],
                           tcp_connections=section['tcp_connections'],
                           packed_zones_bytes=section['packed_zones_bytes'],
                           **{name: section[name] for name in ('transfers_in', 'transfer_in_timeout',
                                                               'transfer_in_records', 'transfer_in_bytes')},
                           metrics=process.read_metrics(section))
