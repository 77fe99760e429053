"""Reading a YAML file: duplicate keys are errors, and all mistakes are reported together."""

from __future__ import annotations

import difflib
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import yaml

from designate_pool.errors import BadConfiguration, InvalidField, PoolError

#: The loader in C, if PyYAML was built with it.
_LOADER: type[yaml.SafeLoader] = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
#: Notes a mistake: its place, and the sentence.
Note = Callable[[str, str], None]


class YamlErrors:
    """Collects mistakes with their places, in the order in which they are found."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, place: str, why: str) -> None:
        """Note a mistake, once.

        :param place: such as ``zones.example.com..targets[0]``
        :param why: must not contain a secret
        """
        line = f'{place}: {" ".join(why.split()).rstrip(".")}'
        if line not in self.lines:
            self.lines.append(line)

    def raise_if_any(self) -> None:
        """Refuse the file if a mistake was noted.

        :raises BadConfiguration: with every mistake on a line of its own
        """
        if self.lines:
            raise BadConfiguration(count=len(self.lines), listing=''.join(f'\n  {line}' for line in self.lines))


def load(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    """The mapping in the file at *path*.

    :raises BadConfiguration: when it cannot be read, is not YAML, has a duplicate key, or is no mapping
    """
    mistakes = YamlErrors()
    document: Any = None
    try:
        with open(path, encoding='utf-8') as file:
            loader = _LOADER(file)
            try:
                node = loader.get_single_node()
                for line, key in _duplicate_keys(node, set()):
                    mistakes.note(f'{path} line {line}', f'{key} is there twice')
                document = loader.construct_document(node) if node is not None else None
            finally:
                loader.dispose()
    except OSError as error:
        mistakes.note(str(path), f'it cannot be read ({error.strerror})')
    except UnicodeDecodeError as error:
        mistakes.note(str(path), f'it is not UTF-8 text (octet {error.start})')
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f' line {mark.line + 1} column {mark.column + 1}' if mark is not None else ''
        mistakes.note(f'{path}{where}', error.problem or error.context or 'it is not YAML')
    except yaml.YAMLError as error:
        mistakes.note(str(path), str(error))
    else:
        if not isinstance(document, dict):
            mistakes.note(str(path), 'must be a mapping, with zones and providers')
    mistakes.raise_if_any()
    return dict(document)


def hint(word: object, known: Iterable[str]) -> str:
    """`` (did you mean ...?)`` if *word* is similar to one of *known*, otherwise empty."""
    close = difflib.get_close_matches(str(word).lower(), list(known), n=1, cutoff=0.7)
    return f' (did you mean {close[0]}?)' if close else ''


def _duplicate_keys(node: Any, seen: set[int]) -> Iterator[tuple[int, str]]:
    """Duplicate keys of mappings, with their lines; an aliased node is visited once."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _duplicate_keys(item, seen)
    elif isinstance(node, yaml.MappingNode):
        keys = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in keys:
                    yield key.start_mark.line + 1, key.value
                keys.add((key.tag, key.value))
            yield from _duplicate_keys(value, seen)


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
        for value in found:
            text = redacted(text, value)
    return text


class EnvSecrets:
    """Environment variables: ``NAME`` or ``NAME/default``; the default may contain slashes."""

    def __init__(self, name: str, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def fetch(self, name: str, source: Any) -> str:
        """The value of the variable *name*, or the default after its slash."""
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
        """The contents of the file *name*."""
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
        return {key: self._value(value, f'{place}.{key}', _Source(found, place)) for key, value in found.items()}

    def _value(self, value: Any, place: str, source: _Source) -> Any:
        if isinstance(value, Mapping):
            return self.resolved(value, place)
        if isinstance(value, list):
            return [self._value(item, f'{place}[{index}]', source) for index, item in enumerate(value)]
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
