"""A file with the settings of the servers that were last in use.

If a section is changed or removed while no pool manager runs, zones can still be deleted from its server with the
settings with which they were created.  The file contains secrets, so only its owner can read it.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
from collections.abc import Mapping
from typing import Any

from designate_pool.model import Endpoint, Server, TsigKey

LOG = logging.getLogger(__name__)

_KINDS = {kind.__name__: kind for kind in (Endpoint, Server, TsigKey)}
_MARK = '!'


class ServerSettingsCache:
    """The file *path*.  Failures to read or write it are logged, not raised."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self) -> tuple[dict[str, Server], dict[str, Server]]:
        """The settings last in use, and the former ones that were still needed; both by server id."""
        try:
            with open(self._path, encoding='utf-8') as file:
                found = json.load(file, object_hook=_restored)
            return dict(found['servers']), dict(found['former'])
        except FileNotFoundError:
            return {}, {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            LOG.warning('%s cannot be read; zones cannot be deleted from servers whose sections are gone: %s',
                        self._path, error)
            return {}, {}

    def write(self, servers: Mapping[str, Server], former: Mapping[str, Server]) -> None:
        text = json.dumps({'servers': dict(servers), 'former': dict(former)}, default=_plain)
        beside = f'{self._path}.new'
        try:
            os.makedirs(os.path.dirname(self._path) or '.', exist_ok=True)
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w', encoding='utf-8') as file:
                file.write(text)
            os.replace(beside, self._path)
        except OSError as error:
            LOG.warning('%s cannot be written; after a restart zones cannot be deleted from servers whose sections are '
                        'gone: %s', self._path, error)


def _plain(value: Any) -> dict[str, Any]:
    if type(value).__name__ not in _KINDS:
        raise TypeError(f'{type(value).__name__} cannot be kept')
    return {_MARK: type(value).__name__,
            **{field.name: getattr(value, field.name) for field in dataclasses.fields(value)}}


def _restored(found: dict[str, Any]) -> Any:
    found = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    kind = _KINDS.get(found.pop(_MARK, ''))
    return found if kind is None else kind(**found)
