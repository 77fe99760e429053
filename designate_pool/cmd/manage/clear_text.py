"""Secrets in clear text in the configuration files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oslo_config import cfg

from designate_pool.config import pools, source

#: Options of libraries that are secret, and URLs with a password.
_SECRET_NAME = re.compile('password|secret')
_PASSWORD_IN_URL = re.compile(r'://[^/@\s]*:[^/@\s]+@')


class _File(source.ConfigFile):
    """One file with the values of its options."""

    def __init__(self, path: str) -> None:
        self.values: list[tuple[str, str, str]] = []
        super().__init__(path)

    def assignment(self, key: str, value: list[str]) -> None:
        super().assignment(key, value)
        self.values.append((str(self._section), key, '\n'.join(value).strip()))


def secrets(conf: cfg.ConfigOpts, drivers: pools.Drivers) -> Iterator[tuple[str, list[str]]]:
    """The files with secrets, each with these options as ``[section] option``.

    :param drivers: as for :func:`designate_pool.config.pools.read_pool`, which has read *conf*
    """
    for path in source.paths(conf):
        held = [f'[{section}] {name}' for section, name, value in _File(path).values
                if value and not value.startswith(('file:', 'env:')) and _is_secret(section, name, value, drivers)]
        if held:
            yield path, held


def _is_secret(section: str, name: str, value: str, drivers: pools.Drivers) -> bool:
    known = {option.name: option for option in pools.options_of(section, drivers)}
    if name not in known:
        return bool(_SECRET_NAME.search(name) or _PASSWORD_IN_URL.search(value))
    return known[name].secret and (known[name].kind != 'tsig_key' or ':' in value)  # else it is the name of a key
