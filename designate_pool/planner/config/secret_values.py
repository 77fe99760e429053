"""Values that are kept elsewhere: ``env/NAME`` and ``env/NAME/default``, and what a file's ``secret_handlers`` add.

What is fetched is text, and stays so until the option that it is for says what it is: ``00123`` may be a password.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from designate_pool.errors import InvalidField, PoolError

#: Notes a mistake: its place, and what is wrong.
Note = Callable[[str, str], None]


class SecretHandler(Protocol):
    """Where secrets are kept; octoDNS's classes for that are such handlers, too."""

    def fetch(self, name: str, source: Any) -> Any:
        """The secret *name*.

        :param source: the mapping that the value stands in; its ``context`` says where that is
        """


class Secret(str):
    """Text that was fetched, and not written in the file."""

    __slots__ = ()

    def __repr__(self) -> str:
        return '(a secret)'


def without_secrets(text: str, found: Any) -> str:
    """*text* in which no secret stands that is somewhere in *found*."""
    if isinstance(found, Secret):
        return text.replace(found, repr(found)) if found else text
    if isinstance(found, Mapping):
        found = list(found.values())
    if isinstance(found, list):
        for each in found:
            text = without_secrets(text, each)
    return text


class EnvSecrets:
    """``NAME`` or ``NAME/default`` of the environment; the default may have slashes in it."""

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
    """The text of a file, without white space around it.

    :param directory: where relative paths begin
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
            raise InvalidField(field=str(path), why='it is not a text in UTF-8') from error


class _Source(dict[str, Any]):
    """A mapping that says where it stands."""

    def __init__(self, found: Mapping[str, Any], place: str) -> None:
        super().__init__(found)
        self.context = place


class Secrets:
    """All handlers by the word that a value begins with."""

    def __init__(self, environ: Mapping[str, str], note: Note) -> None:
        self.handlers: dict[str, SecretHandler] = {'env': EnvSecrets('env', environ)}
        self._note = note

    def resolved(self, found: Mapping[str, Any], place: str) -> dict[str, Any]:
        """*found* with what is kept elsewhere put in, however deep; what cannot be fetched is noted, and stays."""
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
            self._note(place, f'{word} cannot give it ({type(error).__name__}: {error})')
        else:
            return Secret(fetched) if isinstance(fetched, str) else fetched
        return value
