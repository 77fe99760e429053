"""The option ``metrics``, which every service has in its section."""

from __future__ import annotations

from oslo_config import cfg

from designate_pool.config.section import Section
from designate_pool.model import Endpoint

PORT = 9464


def option() -> cfg.Opt:
    return cfg.StrOpt('metrics', help=(
        'Addresses, with commas between them, at which the process answers GET /metrics with its metrics for '
        f'Prometheus: 127.0.0.1:{PORT}. Services that run in one process and name the same address share it. The '
        'metrics name the servers of the pool, and no zone, user or secret; whoever reaches the address may read '
        f'them. Without a port: {PORT}. Not set: they are not served.'))


def read(section: Section) -> tuple[Endpoint, ...]:
    """Where to serve metrics; empty for nowhere, or where that is wrong and has been noted."""
    return section.endpoints('metrics', PORT)
