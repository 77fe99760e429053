"""Read the command line and the configuration files into the settings of each service."""

from __future__ import annotations

import dataclasses
import difflib
import socket
from collections.abc import Container, Sequence

from oslo_config import cfg
from oslo_log import log

from designate_pool import __version__
from designate_pool.config import sections, source
from designate_pool.config.errors import ConfigErrors, hint
from designate_pool.config.sections import Section
from designate_pool.errors import BadConfiguration
from designate_pool.settings import (ApiSettings, CentralSettings, DatabaseSettings, MiniDnsSettings, NeutronSettings,
                                     PoolManagerSettings, ProcessSettings, SigningPolicy, SinkSettings)

PROJECT = 'designate-pool'
#: The part before the first colon of section names like ``backend:bind9:*``.
PREFIXES = ('backend', 'dnssec_policy', 'handler', 'service', 'tsig')


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The settings in the files, without the servers (see :func:`designate_pool.config.pools.read_pool`)."""

    process: ProcessSettings
    database: DatabaseSettings
    central: CentralSettings
    pool_manager: PoolManagerSettings
    minidns: MiniDnsSettings
    neutron: NeutronSettings
    api: ApiSettings
    sink: SinkSettings


def load(conf: cfg.ConfigOpts, argv: Sequence[str], config_files: Sequence[str] | None = None,
         about: str | None = None) -> None:
    """Register all options, with those of oslo.log, and read the command line and the files.

    :param config_files: read if *argv* names none; None means designate-pool.conf in oslo.config's usual folders
    :raises BadConfiguration: when a file is missing or cannot be parsed
    :raises SystemExit: for a wrong command line, as argparse does
    """
    sections.register_opts(conf)
    log.register_options(conf)
    try:
        conf(list(argv), project=PROJECT, version=f'%(prog)s {__version__}', description=about,
             default_config_files=None if config_files is None else list(config_files))
    except (cfg.Error, OSError, UnicodeError) as error:
        # The text of oslo.config's error quotes the line that it cannot parse, which may contain a secret; reading the
        # file here raises an error without the line.
        file = getattr(error, 'config_file', None)
        source.read_files([file] if file else getattr(error, 'config_files', ()))
        raise BadConfiguration(count=1, listing=f'\n  {error}') from None


def reload(conf: cfg.ConfigOpts) -> None:
    """Read the same files again; if that fails, *conf* is not changed.

    :raises BadConfiguration: when a file is missing or cannot be parsed
    """
    source.read(conf)
    conf.reload_config_files()


def read_settings(conf: cfg.ConfigOpts) -> Settings:
    """The settings of every service.

    :raises BadConfiguration: lists every mistake in the sections with fixed names;
        :func:`designate_pool.config.pools.read_pool` lists these and those in the sections of servers
    """
    mistakes = ConfigErrors()
    settings = collect_settings(conf, source.read(conf), mistakes)
    mistakes.raise_if_any()
    return settings


def collect_settings(conf: cfg.ConfigOpts, found: source.ConfigSource, mistakes: ConfigErrors) -> Settings:
    """Like :func:`read_settings`, but mistakes are noted in *mistakes*; a wrong value becomes None."""
    found.note_repetitions(mistakes)
    _note_unknown_names(found, set(conf[SinkSettings.SECTION].enabled_notification_handlers or ()), mistakes)

    def section(name: str) -> Section:
        return Section(conf, name, mistakes)

    process = section(ProcessSettings.SECTION)
    pool_manager = sections.read_pool_manager(section(PoolManagerSettings.SECTION))
    policies = {name.partition(':')[2]: sections.read_signing_policy(section(name))
                for name in sections.register_signing_policies(conf, found.sections)}
    return Settings(
        process=process.read(ProcessSettings, host=process['host'] or socket.gethostname()),
        database=sections.read_database(section(DatabaseSettings.SECTION)),
        central=sections.read_central(section(CentralSettings.SECTION), pool_manager.pool_name, policies),
        pool_manager=pool_manager,
        minidns=sections.read_minidns(section(MiniDnsSettings.SECTION)),
        api=sections.read_api(section(ApiSettings.SECTION)),
        neutron=sections.read_neutron(section(NeutronSettings.SECTION)),
        sink=sections.read_sink(section(SinkSettings.SECTION), found.sections))


def _note_unknown_names(found: source.ConfigSource, handlers: Container[str], mistakes: ConfigErrors) -> None:
    """
    :param handlers: of notifications that are enabled, though they may not be installed here
    """
    names_of = sections.names_by_section()
    for section, names in found.sections.items():
        prefix = section.partition(':')[0]
        if section in names_of:
            for name in names:
                if name not in names_of[section]:
                    mistakes.unknown(section, name, names_of[section])
        elif prefix == 'dnssec_policy' and section != f'{prefix}:' and ':' in section:
            for name in names:
                if name not in names_of[SigningPolicy.SECTION]:
                    mistakes.unknown(section, name, names_of[SigningPolicy.SECTION])
        elif prefix == 'handler' and ((name := section.partition(':')[2]) in handlers or name in sections.others()):
            continue
        elif prefix in ('service', 'handler', 'dnssec_policy') or (
                prefix not in PREFIXES and _looks_like_ours(section, names_of)):
            mistakes.add(section, None, f'there is no such section{hint(section, names_of)}')


def _looks_like_ours(section: str, known: Sequence[str] | dict[str, set[str]]) -> bool:
    """Whether *section* is probably one of ours, misspelt; the sections of oslo's libraries are not."""
    prefix, colon, _ = section.partition(':')
    if colon and difflib.get_close_matches(prefix.lower(), PREFIXES, n=1, cutoff=0.7):
        return True
    return bool(difflib.get_close_matches(section.lower(), list(known), n=1, cutoff=0.8))
