"""All sections of the configuration with fixed names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oslo_config import cfg

from designate_pool.config import api, central, database, minidns, pool_manager, process, sink

SECTIONS: tuple[tuple[Any, list[cfg.Opt]], ...] = (
    *((each.GROUP, each.OPTIONS) for each in (process, database, central, pool_manager, minidns, api, sink)),
    (api.NEUTRON_GROUP, api.NEUTRON_OPTIONS), *sink.HANDLERS.values())


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options of these sections."""
    for group, options in SECTIONS:
        conf.register_opts(options, group=None if group is process.GROUP else group)


def list_opts() -> list[tuple[Any, list[cfg.Opt]]]:
    """Every option by section, for ``oslo-config-generator`` (entry point ``oslo.config.opts``)."""
    return list(SECTIONS)


def names_by_section() -> dict[str, set[str]]:
    """The names of options, with the deprecated ones, that each of our sections may contain.

    Without ``[DEFAULT]``: oslo.log, oslo.messaging and others have options there too.
    """
    return {group.name: set(_names(options)) for group, options in list_opts() if group != process.GROUP}


def _names(options: Iterable[cfg.Opt]) -> Iterable[str]:
    for option in options:
        yield option.dest
        yield from (deprecated.name for deprecated in option.deprecated_opts if deprecated.name)
