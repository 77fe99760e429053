"""From the command line and the files to the settings of each service."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log

from designate_pool.config import api, central, database, minidns, options, pool_manager, process, source
from designate_pool.config.errors import ConfigErrors, hint
from designate_pool.config.section import Section
from designate_pool.errors import BadConfiguration

PROJECT = 'designate-pool'
#: What stands before the first colon of the sections that there are many of.
PREFIXES = ('backend', 'service', 'tsig')


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """What the files say, apart from the servers of the pool (see :func:`designate_pool.config.pools.read_pool`)."""

    process: process.ProcessSettings
    database: database.DatabaseSettings
    central: central.CentralSettings
    pool_manager: pool_manager.PoolManagerSettings
    minidns: minidns.MiniDnsSettings
    api: api.ApiSettings


def load(conf: cfg.ConfigOpts, argv: Sequence[str], config_files: Sequence[str] | None = None) -> None:
    """Make every option known to *conf*, oslo.log's too, and read the command line and the files.

    :param config_files: read when *argv* names none; None means designate-pool.conf where oslo.config looks for it
    :raises BadConfiguration: when a file is missing or cannot be understood
    :raises SystemExit: for a wrong command line, as argparse does
    """
    options.register_opts(conf)
    log.register_options(conf)
    try:
        conf(list(argv), project=PROJECT, default_config_files=None if config_files is None else list(config_files))
    except (cfg.Error, OSError, UnicodeError) as error:
        # oslo.config shows the line that it cannot parse, and a line may hold a secret.
        source.read_files(_files_of(error))
        raise BadConfiguration(count=1, listing=f'\n  {error}') from None


def _files_of(error: Exception) -> Sequence[str]:
    if isinstance(error, cfg.ConfigFileParseError):
        return [error.config_file]
    if isinstance(error, (cfg.ConfigFilesNotFoundError, cfg.ConfigFilesPermissionDeniedError)):
        return list(error.config_files)
    return []


def reload(conf: cfg.ConfigOpts) -> None:
    """Read the same files again; *conf* stays as it was when that fails.

    :raises BadConfiguration: when a file is missing or cannot be understood
    """
    source.read(conf)
    conf.reload_config_files()


def read_settings(conf: cfg.ConfigOpts) -> Settings:
    """The settings of every service.

    :raises BadConfiguration: with every mistake in the sections that are known by name; those of the servers are told
        by :func:`designate_pool.config.pools.read_pool`, beside these
    """
    mistakes = ConfigErrors()
    settings = collect_settings(conf, source.read(conf), mistakes)
    mistakes.raise_if_any()
    return settings


def collect_settings(conf: cfg.ConfigOpts, found: source.ConfigSource, mistakes: ConfigErrors) -> Settings:
    """Like :func:`read_settings`, but mistakes are noted; a value that is wrong is None in the result."""
    found.note_repetitions(mistakes)
    _note_unknown_names(found, mistakes)
    settings = Settings(
        process=process.read(Section(conf, process.GROUP, mistakes)),
        database=database.read(Section(conf, database.GROUP.name, mistakes)),
        central=central.read(Section(conf, central.GROUP.name, mistakes)),
        pool_manager=pool_manager.read(Section(conf, pool_manager.GROUP.name, mistakes)),
        minidns=minidns.read(Section(conf, minidns.GROUP.name, mistakes)),
        api=api.read(Section(conf, api.GROUP.name, mistakes)))
    if settings.central.default_pool_name is None:
        return dataclasses.replace(settings, central=dataclasses.replace(
            settings.central, default_pool_name=settings.pool_manager.pool_name))
    return settings


def _note_unknown_names(found: source.ConfigSource, mistakes: ConfigErrors) -> None:
    known = options.names_by_section()
    for section, names in found.sections.items():
        prefix = section.partition(':')[0]
        if section in known:
            for name in names:
                if name not in known[section]:
                    mistakes.unknown(section, name, known[section])
        elif prefix == 'service' or (prefix not in PREFIXES and _looks_like_ours(section, known)):
            mistakes.add(section, None, f'there is no such section{hint(section, known)}')


def _looks_like_ours(section: str, known: Sequence[str] | dict[str, set[str]]) -> bool:
    """Whether *section* is one of ours with a slip of the hand; sections of oslo's libraries are left alone."""
    prefix, colon, _ = section.partition(':')
    if colon and difflib.get_close_matches(prefix.lower(), PREFIXES, n=1, cutoff=0.7):
        return True
    return bool(difflib.get_close_matches(section.lower(), list(known), n=1, cutoff=0.8))
