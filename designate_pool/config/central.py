"""``[service:central]``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from oslo_config import cfg

from designate_pool.config import process
from designate_pool.config.section import Section
from designate_pool.model import Endpoint

#: What a quota may be at most.
MOST = 2147483647
GROUP = cfg.OptGroup('service:central', help='Central, which owns zones and records.')
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('default_pool_name', deprecated_for_removal=True, deprecated_since='0.1.0',
               deprecated_reason='[service:pool_manager] pool_name says it.',
               help='The pool of a zone that is created without one. Not set: [service:pool_manager] pool_name.'),
    cfg.IntOpt('deleted_retention', default=604800, min=0,
               help='Seconds that a deleted zone is kept in the database after its last server has confirmed the '
                    'deletion.'),
    cfg.IntOpt('task_retention', default=604800, min=3600,
               help='Seconds that imports and exports of zones are kept after they ended. What was imported stays.'),
    cfg.IntOpt('journal_records', default=10000, min=0, max=1000000,
               help='Changed records that are kept for a zone, so that servers need to fetch only what has changed '
                    '(IXFR); the oldest are dropped first. 0: servers always fetch whole zones.'),
    cfg.IntOpt('journal_age', default=604800, min=0,
               help='Seconds that changed records are kept for servers that are behind.'),
    cfg.IntOpt('quota_zones', default=1000, min=-1, max=MOST,
               help='Zones that a project may have; -1 is without limit. This and the quotas below are those of '
                    'projects for which nothing else was set (PATCH /v2/quotas/{project_id}). A project that has more '
                    'already keeps it, and adds nothing. What is without a project has no quotas.'),
    cfg.IntOpt('quota_zone_recordsets', default=500, min=-1, max=MOST,
               help="Recordsets that a zone may have beside those that are made from its pool; -1 is without limit. "
                    'Whoever adds one has them counted: a limit of a million makes that take a tenth of a second.'),
    cfg.IntOpt('quota_zone_records', default=10000, min=-1, max=MOST,
               help='Records that a zone may have beside those that are made from its pool; -1 is without limit. They '
                    'are counted as recordsets are.'),
    cfg.IntOpt('quota_recordset_records', default=500, min=-1, max=MOST,
               help='Records that a recordset may have; -1 is without limit. All of them go into one DNS message, '
                    'which has room for 65535 octets.'),
    cfg.IntOpt('quota_api_export_size', default=-1, min=-1, max=MOST,
               help='Recordsets that a zone may have to be exported; -1 is without limit.'),
    process.metrics_option(),
]


@dataclasses.dataclass(frozen=True, slots=True)
class CentralSettings:
    """
    :ivar default_pool_name: None means the pool of ``[service:pool_manager]``
    :ivar deleted_retention: seconds
    :ivar task_retention: seconds
    :ivar journal_records: of a domain
    :ivar journal_age: seconds
    :ivar metrics: where they are served; empty for nowhere
    :ivar quotas: by the word after ``quota_``; -1 is without limit
    """

    default_pool_name: str | None
    deleted_retention: int
    task_retention: int
    journal_records: int
    journal_age: int
    quotas: Mapping[str, int]
    metrics: tuple[Endpoint, ...]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_group(GROUP)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    return [(GROUP, OPTIONS)]


def read(section: Section) -> CentralSettings:
    return CentralSettings(default_pool_name=section['default_pool_name'],
                           deleted_retention=section['deleted_retention'],
                           task_retention=section['task_retention'], journal_records=section['journal_records'],
                           journal_age=section['journal_age'], metrics=process.read_metrics(section),
                           quotas={option.name.removeprefix('quota_'): section[option.name]
                                   for option in OPTIONS if option.name.startswith('quota_')})
