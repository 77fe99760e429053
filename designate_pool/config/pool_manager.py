"""``[service:pool_manager]``: the six options of the specification, and more."""

from __future__ import annotations

import dataclasses

from oslo_config import cfg

from designate_pool.config import process, values
from designate_pool.config.section import Section
from designate_pool.model import Endpoint

GROUP = cfg.OptGroup('service:pool_manager', help=(
    'The pool manager. Each server of its pool has a section ``[backend:<driver>:<uuid>]`` with host (required), '
    'port (53), tsig_key, primaries, max_in_flight, call_timeout and the options of its driver. '
    '``[backend:<driver>:*]`` contains defaults for all servers of a driver.'))
OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt('pool_name', default='default', help='The pool that this pool manager keeps in step with the database.'),
    cfg.IntOpt('threshold_percentage', default=100, min=1, max=100,
               help='Percentage of the servers that must serve a change before it is ACTIVE. The number of servers is '
                    'rounded up.'),
    cfg.FloatOpt('poll_timeout', default=30, min=0.01,
                 help='Seconds to wait for the answer to a NOTIFY or a poll.'),
    cfg.FloatOpt('poll_retry_interval', default=2, min=0,
                 help='Seconds between two tries of a NOTIFY, a poll or a driver call.'),
    cfg.IntOpt('poll_max_retries', default=3, min=0, max=1000,
               help='How many times a NOTIFY, a poll or a driver call is retried in a round; a round has one try more '
                    'than this.'),
    cfg.FloatOpt('periodic_sync_interval', default=120, min=0.1, deprecated_name='period_sync_interval',
                 help='The serial of every zone is checked on every server once in this many seconds.'),
    cfg.FloatOpt('contents_audit_interval', default=86400, min=0,
                 help='The contents of every zone on every server that is fed by transfer are compared with the '
                      'database once in this many seconds. The servers have to allow the pool manager to transfer '
                      'their zones. 0: never.'),
    cfg.FloatOpt('contents_audit_rate', default=1000000, min=1000,
                 help='The maximum of octets a second that are transferred from one server to compare contents.'),
    cfg.FloatOpt('extra_zones_interval', default=3600, min=0,
                 help='Every server that is fed by transfer is searched for zones that are not in the database once in '
                      'this many seconds. Zones of the pool that have been deleted from the database are deleted on '
                      'the server; other zones are only logged. 0: never.'),
    cfg.FloatOpt('retry_backoff_initial', default=5, min=0.01,
                 help='Seconds between the end of a failed round and the next try; doubled after each failure.'),
    cfg.FloatOpt('retry_backoff_maximum', default=300, min=0.01,
                 help='The maximum number of seconds between two tries after a failed round.'),
    cfg.IntOpt('circuit_failures', default=3, min=1,
               help='After this many consecutive failures to reach a server, only probes are sent to it until it '
                    'answers.'),
    cfg.FloatOpt('circuit_probe_interval', default=2, min=0.01,
                 help='Seconds between two probes of a server that cannot be reached. When it answers, its delayed '
                      'work is done at once.'),
    cfg.FloatOpt('claim_seconds', default=30, min=1,
                 help='Seconds for which a claim on due work is valid. If a pool manager dies, others of its pool take '
                      'its work over after this time.'),
    cfg.IntOpt('batch_size', default=200, min=1, max=10000,
               help='How many due operations are claimed at a time.'),
    cfg.IntOpt('max_deletes_per_hour', default=1000, min=0,
               help='How many RRsets may be deleted in an hour from servers that are fed by records, including those '
                    'of deleted zones. Further plans with deletes are parked until an operator approves them. 0: no '
                    'limit.'),
    cfg.FloatOpt('plan_lifetime', default=604800, min=60,
                 help='Seconds for which a parked plan can be approved.'),
    cfg.BoolOpt('count_joining_servers', default=False,
                help='Whether a server counts in thresholds as soon as it joins the pool. Otherwise it counts when it '
                     'has every zone.'),
    cfg.BoolOpt('delete_zones_of_removed_servers', default=False,
                help='Whether the zones are deleted from a server whose section is removed from the configuration, if '
                     'it still answers.'),
    cfg.StrOpt('catalog_zone',
               help='Name of the catalog zone (RFC 9432) that MiniDNS serves for the pool, for servers with the driver '
                    'catalog. Not set: none.'),
    process.metrics_option(),
]


@dataclasses.dataclass(frozen=True, slots=True)
class PoolManagerSettings:
    """Times are seconds."""

    pool_name: str
    threshold_percentage: int
    poll_timeout: float
    poll_retry_interval: float
    poll_max_retries: int
    periodic_sync_interval: float
    contents_audit_interval: float
    contents_audit_rate: float
    extra_zones_interval: float
    retry_backoff_initial: float
    retry_backoff_maximum: float
    circuit_failures: int
    circuit_probe_interval: float
    claim_seconds: float
    batch_size: int
    max_deletes_per_hour: int
    plan_lifetime: float
    count_joining_servers: bool
    delete_zones_of_removed_servers: bool
    catalog_zone: str | None
    metrics: tuple[Endpoint, ...]


def read(section: Section) -> PoolManagerSettings:
    fields = [field.name for field in dataclasses.fields(PoolManagerSettings) if field.name != 'metrics']
    settings = PoolManagerSettings(**{name: section[name] for name in fields}, metrics=process.read_metrics(section))
    if settings.pool_name is not None and not 1 <= len(settings.pool_name) <= 50:
        section.wrong('pool_name', 'a name has 1 to 50 characters')
    if settings.catalog_zone is not None:
        try:
            settings = dataclasses.replace(settings, catalog_zone=values.zone(settings.catalog_zone))
        except ValueError as error:
            section.wrong('catalog_zone', str(error))
    least, most = settings.retry_backoff_initial, settings.retry_backoff_maximum
    if least is not None and most is not None and least > most:
        section.wrong('retry_backoff_maximum', f'{most:g} is less than retry_backoff_initial, {least:g}')
    return settings
