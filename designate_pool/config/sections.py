"""The sections with fixed names, and what is checked in them beside types and limits."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from typing import Any

from oslo_config import cfg

from designate_pool.config import api, central, values
from designate_pool.config.section import Section, group_of, options_of
from designate_pool.settings import (DatabaseSettings, MiniDnsSettings, NeutronFloatingIpSettings, NovaSettings,
                                     PoolManagerSettings, ProcessSettings, SinkSettings)

SECTIONS: tuple[tuple[Any, list[cfg.Opt]], ...] = (
    *((group_of(each), options_of(each)) for each in (
        ProcessSettings, DatabaseSettings, PoolManagerSettings, MiniDnsSettings, SinkSettings, NovaSettings,
        NeutronFloatingIpSettings)),
    *((each.GROUP, each.OPTIONS) for each in (central, api)), (api.NEUTRON_GROUP, api.NEUTRON_OPTIONS))


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options of these sections."""
    for group, options in SECTIONS:
        conf.register_opts(options, group=None if group == 'DEFAULT' else group)


def list_opts() -> list[tuple[Any, list[cfg.Opt]]]:
    """Every option by section, for ``oslo-config-generator`` (entry point ``oslo.config.opts``)."""
    return list(SECTIONS)


def names_by_section() -> dict[str, set[str]]:
    """The names of options, with the deprecated ones, that each of our sections may contain.

    Without ``[DEFAULT]``: oslo.log, oslo.messaging and others have options there too.
    """
    return {group.name: set(_names(options)) for group, options in SECTIONS if group != 'DEFAULT'}


def _names(options: Iterable[cfg.Opt]) -> Iterable[str]:
    for option in options:
        yield option.dest
        yield from (deprecated.name for deprecated in option.deprecated_opts if deprecated.name)


def read_process(section: Section) -> ProcessSettings:
    """``[DEFAULT]``."""
    return section.read(ProcessSettings, host=section['host'] or socket.gethostname())


def read_database(section: Section) -> DatabaseSettings:
    """``[database]``, with the keys in the file of keys."""
    settings = section.read(DatabaseSettings, secrets_keys=_keys(section))
    if settings.connection is not None and '://' not in settings.connection:
        section.wrong('connection', 'it is not a URL like sqlite:///FILE or mysql+pymysql://USER:PASSWORD@HOST/NAME')
    return settings


def _keys(section: Section) -> tuple[str, ...]:
    """The keys in the file; empty if something is wrong, which is then noted."""
    path = section['secrets_key_file']
    if path is None:
        return ()
    try:
        with open(path, encoding='ascii') as file:
            keys = tuple(line.strip() for line in file if line.strip())
    except (OSError, UnicodeError) as error:
        section.wrong('secrets_key_file',
                      f'{path} cannot be read: {getattr(error, "strerror", "") or "it is not ASCII text"}')
        return ()
    if not keys:
        section.wrong('secrets_key_file', f'{path} contains no key')
    for number, key in enumerate(keys, 1):
        if not re.fullmatch('[A-Za-z0-9_-]{43}=', key):
            section.wrong('secrets_key_file', f'key {number} in {path} is not 32 octets in URL-safe Base64')
            return ()
    return keys


def read_pool_manager(section: Section) -> PoolManagerSettings:
    """``[service:pool_manager]``."""
    settings = section.read(PoolManagerSettings, catalog_zone=section.converted('catalog_zone', values.zone))
    if settings.pool_name is not None and not 1 <= len(settings.pool_name) <= 50:
        section.wrong('pool_name', 'a name has 1 to 50 characters')
    least, most = settings.retry_backoff_initial, settings.retry_backoff_maximum
    if least is not None and most is not None and least > most:
        section.wrong('retry_backoff_maximum', f'{most:g} is less than retry_backoff_initial, {least:g}')
    return settings
