"""``[DEFAULT]``: what concerns the process as a whole.  Logging and the broker have options of their own there."""

from __future__ import annotations

import dataclasses
import socket

from oslo_config import cfg

from designate_pool.config.section import Section

GROUP = 'DEFAULT'
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('concurrency', default='eventlet', choices=[
        ('eventlet', 'green threads: the standard library is made to cooperate'),
        ('threading', 'native threads')],
        help='How a process does several things at the same time.'),
    cfg.StrOpt('host', sample_default='<name of this machine>',
               help='What this process is called among the others that serve the same topic. Not set: the name of '
                    'the machine.'),
    cfg.StrOpt('state_path', default='/var/lib/designate-pool',
               help='The folder for what must outlive a process; the default database lies in it.'),
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
