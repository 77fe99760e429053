"""The option ``metrics`` of the sections of Central and the API."""

from __future__ import annotations

from oslo_config import cfg

from designate_pool.config.section import Section, options_of
from designate_pool.model import Endpoint
from designate_pool.settings import METRICS_PORT, MiniDnsSettings


def metrics_option() -> cfg.Opt:
    return options_of(MiniDnsSettings)[-1]


def read_metrics(section: Section) -> tuple[Endpoint, ...]:
    """The option ``metrics`` of a service's section; empty if it is not set, or is wrong, which is noted."""
    return section.endpoints('metrics', METRICS_PORT)
