"""``[service:central]``."""

from __future__ import annotations

import dataclasses
import ipaddress
import uuid
from collections.abc import Mapping

from oslo_config import cfg

from designate_pool.config import process
from designate_pool.config.section import Section
from designate_pool.model import Endpoint

#: The maximum of a quota.
MOST = 2147483647
#: The filters of the scheduler.
FILTERS = ('attribute', 'pool_id_attribute', 'default_pool', 'fallback', 'random', 'in_doubt_default_pool')
GROUP = cfg.OptGroup('service:central', help='Central, which owns zones and records.')
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('default_pool_name', deprecated_for_removal=True, deprecated_since='0.1.0',
               deprecated_reason='Set [service:pool_manager] pool_name.',
               help='The pool of a zone that is created without one. Not set: [service:pool_manager] pool_name.'),
    cfg.StrOpt('default_pool_id',
               help='The id of the default pool, in place of its name. Not set: the pool of [service:pool_manager] '
                    'pool_name.'),
    cfg.ListOpt('scheduler_filters', default=['pool_id_attribute', 'attribute', 'in_doubt_default_pool', 'random'],
                help='How the pool of a new zone is chosen; one filter after the other, each of which keeps some of '
                     'the pools. attribute: those with all attributes of the zone, and those without attributes; '
                     'pool_id_attribute: the one that the attribute pool_id names; default_pool: the default pool; '
                     'fallback: the default pool if none is left; in_doubt_default_pool: the default pool if several '
                     'are left and it is among them; random: one of them. Pools without name servers or servers take '
                     'no part, unless they are named or the default one.'),
    cfg.IntOpt('pool_move_delay', default=3600, min=0,
               help='Seconds for which the servers of a pool keep a zone that was moved to another pool, once that '
                    'pool serves it, for resolvers that still have the former name servers in their caches. They get '
                    'its changes meanwhile. It should not be less than the TTL of the zones and of their delegations.'),
    cfg.ListOpt('master_networks', default=[],
                help='Networks whose addresses may be masters of secondary zones though they are private or local, '
                     'such as 10.1.0.0/16: MiniDNS connects to masters, which users choose. Otherwise private, '
                     'loopback, link-local, multicast and reserved addresses are refused. Loopback is for tests '
                     'alone.'),
    cfg.IntOpt('secondary_interval', default=60, min=1, max=86400,
               help='The least number of seconds between two refreshes of a secondary zone, whatever refresh and retry '
                    'in its SOA say; a NOTIFY from a master and "zone refresh" are acted on at once.'),
    cfg.StrOpt('managed_resource_tenant_id', default='00000000-0000-0000-0000-000000000000',
               help='The project that owns the reverse zones that are created for PTR records of floating IPs.'),
    cfg.StrOpt('managed_resource_email', default='hostmaster@example.com',
               help='The email of these zones.'),
    cfg.IntOpt('deleted_retention', default=604800, min=0,
               help='Seconds that a deleted zone is kept in the database after its last server has confirmed the '
                    'deletion.'),
    cfg.IntOpt('task_retention', default=604800, min=3600,
               help='Seconds that the records of imports and exports are kept after they ended. Imported zones are '
                    'not affected.'),
    cfg.IntOpt('journal_records', default=10000, min=0, max=1000000,
               help='How many changed records are kept for each zone, so that servers can fetch only the changes '
                    '(IXFR); the oldest are dropped first. 0: servers always fetch whole zones.'),
    cfg.IntOpt('journal_age', default=604800, min=0,
               help='Seconds that changed records are kept for servers that are behind.'),
    cfg.IntOpt('quota_zones', default=1000, min=-1, max=MOST,
               help='Zones that a project may have; -1: no limit. This quota and those below are defaults, which '
                    'PATCH /v2/quotas/{project_id} overrides for one project. A project that exceeds a quota keeps '
                    'what it has, but cannot add to it. Zones without a project have no quotas.'),
    cfg.IntOpt('quota_zone_recordsets', default=500, min=-1, max=MOST,
               help='Recordsets that a zone may have, without those that are generated from its pool; -1: no limit. '
                    'They are counted whenever one is added; with a limit of a million that takes a tenth of a '
                    'second.'),
    cfg.IntOpt('quota_zone_records', default=10000, min=-1, max=MOST,
               help='Records that a zone may have, without those that are generated from its pool; -1: no limit. They '
                    'are counted like recordsets.'),
    cfg.IntOpt('quota_recordset_records', default=500, min=-1, max=MOST,
               help='Records that a recordset may have; -1: no limit. A recordset has to fit into one DNS message of '
                    '65535 octets.'),
    cfg.IntOpt('quota_api_export_size', default=-1, min=-1, max=MOST,
               help='The maximum number of recordsets of a zone that can be exported; -1: no limit.'),
    process.metrics_option(),
]


@dataclasses.dataclass(frozen=True, slots=True)
class CentralSettings:
    """
    :ivar default_pool_name: None means the pool of ``[service:pool_manager]``
    :ivar default_pool_id: 32 digits; None means that pool
    :ivar scheduler_filters: at least one, in their order
    :ivar pool_move_delay: seconds
    :ivar master_networks: see the option
    :ivar secondary_interval: seconds
    :ivar managed_resource_tenant_id: a project
    :ivar deleted_retention: seconds
    :ivar task_retention: seconds
    :ivar journal_records: for each domain
    :ivar journal_age: seconds
    :ivar metrics: addresses that serve metrics; may be empty
    :ivar quotas: keys are the option names without ``quota_``; -1 means no limit
    """

    default_pool_name: str | None
    default_pool_id: str | None
    scheduler_filters: tuple[str, ...]
    pool_move_delay: int
    master_networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    secondary_interval: int
    managed_resource_tenant_id: str
    managed_resource_email: str
    deleted_retention: int
    task_retention: int
    journal_records: int
    journal_age: int
    quotas: Mapping[str, int]
    metrics: tuple[Endpoint, ...]


def read(section: Section) -> CentralSettings:
    return CentralSettings(default_pool_name=section['default_pool_name'], default_pool_id=_pool_id(section),
                           scheduler_filters=_filters(section),
                           pool_move_delay=section['pool_move_delay'],
                           master_networks=_networks(section), secondary_interval=section['secondary_interval'],
                           managed_resource_tenant_id=_project(section),
                           managed_resource_email=section['managed_resource_email'],
                           deleted_retention=section['deleted_retention'],
                           task_retention=section['task_retention'], journal_records=section['journal_records'],
                           journal_age=section['journal_age'], metrics=process.read_metrics(section),
                           quotas={option.name.removeprefix('quota_'): section[option.name]
                                   for option in OPTIONS if option.name.startswith('quota_')})


def _project(section: Section) -> str:
    given = section['managed_resource_tenant_id'] or ''
    if not 1 <= len(given) <= 36:
        section.wrong('managed_resource_tenant_id', 'a project has 1 to 36 characters')
    return given


def _pool_id(section: Section) -> str | None:
    given = section['default_pool_id']
    try:
        return given and uuid.UUID(given).hex
    except ValueError:
        section.wrong('default_pool_id', f'{given!r} is not a UUID')
        return None


def _networks(section: Section) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    found = []
    for each in section['master_networks'] or ():
        try:
            found.append(ipaddress.ip_network(each))
        except ValueError as error:
            section.wrong('master_networks', str(error))
    return tuple(found)


def _filters(section: Section) -> tuple[str, ...]:
    found = tuple(section['scheduler_filters'] or ())
    if not found:
        section.wrong('scheduler_filters', 'at least one filter chooses the pool of a zone')
    for each in found:
        if each not in FILTERS:
            section.wrong('scheduler_filters', f'there is no filter {each!r}; there are {", ".join(FILTERS)}')
    return found
