"""``[DEFAULT]``: what concerns the process as a whole; and the option ``metrics`` of every service.

Logging and the broker have options of their own in ``[DEFAULT]``.
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
        ('eventlet', 'green threads: the standard library is made to cooperate'),
        ('threading', 'native threads')],
        help='How a process runs several tasks at the same time.'),
    cfg.StrOpt('host', sample_default='<name of this machine>',
               help='The name of this process among those that serve the same topic. Not set: the name of the '
                    'machine.'),
    cfg.StrOpt('state_path', default='/var/lib/designate-pool',
               help='The folder for state that must survive a restart; the default database is in it.'),
]


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessSettings:
    """
    :ivar concurrency: ``eventlet`` or ``threading``
    :ivar host: this process among the others of its kind
    :ivar state_path: a folder; it need not exist yet
    """

    concurrency: str
    host: str
    state_path: str


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTIONS)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    return [(GROUP, OPTIONS)]


def read(section: Section) -> ProcessSettings:
    return ProcessSettings(concurrency=section['concurrency'], host=section['host'] or socket.gethostname(),
                           state_path=section['state_path'])


def metrics_option() -> cfg.Opt:
    return cfg.StrOpt('metrics', help=(
        'Addresses, with commas between them, at which the process answers GET /metrics with its metrics for '
        f'Prometheus: 127.0.0.1:{METRICS_PORT}. Services that run in one process and name the same address share it. '
        'The metrics name the servers of the pool, and no zone, user or secret; whoever reaches the address may read '
        f'them. Without a port: {METRICS_PORT}. Not set: they are not served.'))


def read_metrics(section: Section) -> tuple[Endpoint, ...]:
    """The option ``metrics`` of a service's section: where to serve metrics.

    Empty for nowhere, or where that is wrong and has been noted.
    """
    return section.endpoints('metrics', METRICS_PORT)
