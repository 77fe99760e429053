"""``[DEFAULT]``: options of the process as a whole; and the option ``metrics`` of every service.

oslo.log and oslo.messaging have further options in ``[DEFAULT]``.
"""

from __future__ import annotations

import dataclasses
import socket

from oslo_config import cfg

from designate_pool.config.section import Section
from designate_pool.model import Endpoint

GROUP = 'DEFAULT'
METRICS_PORT = 9464
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('concurrency', default='eventlet', choices=[
        ('eventlet', 'green threads: eventlet patches the standard library'),
        ('threading', 'native threads')],
        help='How a process runs several tasks at the same time.'),
    cfg.StrOpt('host', sample_default='<name of this machine>',
               help='The name of this process among those that serve the same RPC topic. Not set: the name of the '
                    'machine.'),
    cfg.StrOpt('state_path', default='/var/lib/designate-pool',
               help='The folder for data that must survive a restart; it contains the default database.'),
]


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessSettings:
    """
    :ivar concurrency: ``eventlet`` or ``threading``
    :ivar host: the name of this process among those of the same service
    :ivar state_path: a folder, which may not exist yet
    """

    concurrency: str
    host: str
    state_path: str


def read(section: Section) -> ProcessSettings:
    return ProcessSettings(concurrency=section['concurrency'], host=section['host'] or socket.gethostname(),
                           state_path=section['state_path'])


def metrics_option() -> cfg.Opt:
    return cfg.StrOpt('metrics', help=(
        'Addresses, separated by commas, on which the process serves its metrics for Prometheus, as GET /metrics: '
        f'127.0.0.1:{METRICS_PORT}. Services in one process may share an address. The metrics contain the names of '
        'servers, but no zone, user or secret; everybody who reaches the address may read them. '
        f'Default port: {METRICS_PORT}. Not set: metrics are not served.'))


def read_metrics(section: Section) -> tuple[Endpoint, ...]:
    """The option ``metrics`` of a service's section; empty if it is not set, or is wrong, which is noted."""
    return section.endpoints('metrics', METRICS_PORT)
