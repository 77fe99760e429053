"""``[service:central]``."""

from __future__ import annotations

import dataclasses

from oslo_config import cfg

from designate_pool.config.section import Section

GROUP = cfg.OptGroup('service:central', help='Central, which owns domains and records.')
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('default_pool_name', deprecated_for_removal=True, deprecated_since='0.1.0',
               deprecated_reason='[service:pool_manager] pool_name says it.',
               help='The pool of a domain that is created without one. Not set: [service:pool_manager] pool_name.'),
    cfg.IntOpt('deleted_retention', default=604800, min=0,
               help='Seconds that a deleted domain is kept in the database after its last server has confirmed the '
                    'deletion.'),
]


@dataclasses.dataclass(frozen=True, slots=True)
class CentralSettings:
    """
    :ivar default_pool_name: None means the pool of ``[service:pool_manager]``
    :ivar deleted_retention: seconds
    """

    default_pool_name: str | None
    deleted_retention: int


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    return [(GROUP, OPTIONS)]


def read(section: Section) -> CentralSettings:
    return CentralSettings(default_pool_name=section['default_pool_name'],
                           deleted_retention=section['deleted_retention'])
