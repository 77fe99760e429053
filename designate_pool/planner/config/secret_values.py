"""Values stored elsewhere: ``env/NAME`` and ``env/NAME/default``, and those of a file's ``secret_handlers``.

A fetched value is a string; it is converted only by the type of its option, since ``00123`` may be a password.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from designate_pool.errors import InvalidField, PoolError

#: Notes a mistake: its place, and the sentence.
Note = Callable[[str, str], None]


class SecretHandler(Protocol):
    """A store of secrets; octoDNS's secret handlers conform to it."""

    def fetch(self, name: str, source: Any) -> Any:
        """The secret *name*.

        :param source: the mapping that contains the value; its ``context`` is the place of that
        """


class Secret(str):
    """A fetched string, which must not be shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return '(a secret)'


def redacted(text: str, found: Any) -> str:
    """*text* with every secret of *found* replaced."""
    if isinstance(found, Secret):
        return text.replace(found, repr(found)) if found else text
    if isinstance(found, Mapping):
        found = list(found.values())
    if isinstance(found, list):
        for each in found:
            text = redacted(text, each)
    return text


class EnvSecrets:
    """Environment variables: ``NAME`` or ``NAME/default``; the default may contain slashes."""

    def __init__(self, name: str, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def fetch(self, name: str, source: Any) -> str:
        variable, slash, default = name.partition('/')
        if variable in self._environ:
            return self._environ[variable]
        if not slash:
            raise InvalidField(field=variable, why='the environment has no such variable')
        return default


class FileSecrets:
    """The contents of files, without surrounding white space.

    :param directory: for relative paths
    """

    def __init__(self, name: str, directory: str = '.') -> None:
        self._directory = pathlib.Path(directory)

    def fetch(self, name: str, source: Any) -> str:
        path = self._directory / name
        try:
            return path.read_text(encoding='utf-8').strip()
        except OSError as error:
            raise InvalidField(field=str(path), why=f'it cannot be read ({error.strerror})') from error
        except UnicodeDecodeError as error:
            raise InvalidField(field=str(path), why='it is not UTF-8 text') from error


class _Source(dict[str, Any]):
    """A mapping with its place in the file."""

    def __init__(self, found: Mapping[str, Any], place: str) -> None:
        super().__init__(found)
        self.context = place


class Secrets:
    """All handlers, by the prefix of values."""

    def __init__(self, environ: Mapping[str, str], note: Note) -> None:
        self.handlers: dict[str, SecretHandler] = {'env': EnvSecrets('env', environ)}
        self._note = note

    def resolved(self, found: Mapping[str, Any], place: str) -> dict[str, Any]:
        """*found* with all secrets fetched, at any depth; a failure is noted, and the value left as it is."""
        return {key: self._value(each, f'{place}.{key}', _Source(found, place)) for key, each in found.items()}

    def _value(self, value: Any, place: str, source: _Source) -> Any:
        if isinstance(value, Mapping):
            return self.resolved(value, place)
        if isinstance(value, list):
            return [self._value(each, f'{place}[{index}]', source) for index, each in enumerate(value)]
        if not isinstance(value, str):
            return value
        word, slash, name = value.partition('/')
        if not slash or word not in self.handlers:
            return value
        try:
            fetched = self.handlers[word].fetch(name, source)
        except PoolError as error:
            self._note(place, str(error))
        except Exception as error:
            self._note(place, f'{word} cannot fetch it ({type(error).__name__}: {error})')
        else:
            return Secret(fetched) if isinstance(fetched, str) else fetched
        return value
