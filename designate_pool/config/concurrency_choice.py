"""The option ``concurrency``, which is read before other modules are imported: eventlet patches the standard library
first.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from oslo_config import cfg

DEFAULT = 'eventlet'


def concurrency(argv: Sequence[str], project: str = 'designate-pool') -> str:
    """``[DEFAULT] concurrency`` from the files that *argv* names, or from those that oslo.config finds by itself.

    The default if a file or the value is wrong: :func:`designate_pool.config.load.load` reports that.
    """
    conf = cfg.ConfigOpts()
    conf.register_opt(cfg.StrOpt('concurrency', default=DEFAULT, choices=('eventlet', 'threading')))
    try:
        conf(_split(argv)[0], project=project)
        return str(conf.concurrency)
    except (cfg.Error, OSError, UnicodeError):
        return DEFAULT


def files_first(argv: Sequence[str]) -> list[str]:
    """*argv* with ``--config-file`` and ``--config-dir`` first, as oslo.config requires."""
    files, rest = _split(argv)
    return files + rest


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ('--config-file', '--config-dir'):
        parser.add_argument(option, action='append', default=[])
    options, rest = parser.parse_known_args(list(argv))
    return [f'{option}={value}' for option, values in (('--config-file', options.config_file),
                                                       ('--config-dir', options.config_dir))
            for value in values], rest
