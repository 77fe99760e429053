"""YAML files as octoDNS has them: mappings that know their lines, keys in order, files that include others.

Who writes zones need not be who may read all that this program can: so a file is read only where it lies in the folder
of its source, whatever links say, and includes only YAML from there; what is wrong with an included file is told
without anything that stands in it.  How much is read, how deep it is nested and how much aliases repeat is bounded.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import yaml
from yaml.constructor import SafeConstructor
from yaml.events import (AliasEvent, MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent,
                         SequenceStartEvent, StreamEndEvent)
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

from designate_pool.errors import InvalidField, SourceError

#: libyaml's, which is some ten times as fast, where PyYAML was built with it.
_LOADER: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)

_TAG = 'tag:yaml.org,2002:'
_TEXT, _MERGE = f'{_TAG}str', f'{_TAG}merge'
_NUMBERS = frozenset({f'{_TAG}int', f'{_TAG}float'})
_SCALARS, _RESOLVER = SafeConstructor(), Resolver()
_DIGITS = re.compile(r'([0-9]+)')

#: Octets and files at most that one file comes to with all that it includes, and how deep it may be nested.
LARGEST, MOST_FILES, DEEPEST = 256 << 20, 1000, 64
#: Scalars, lists and mappings that all aliases together may repeat.
MOST_REPEATED = 1_000_000
#: Characters of a number; reading one in base 60 takes time by their square.
LONGEST_NUMBER = 1000
_SUFFIXES = ('.yaml', '.yml')

Key = Callable[[str], Any]


class Located(dict[str, Any]):
    """A mapping of a file.

    :ivar line: where it begins, from 1
    """

    __slots__ = ('line',)

    line: int


@functools.lru_cache(maxsize=4096)
def natural(text: str) -> tuple[Any, ...]:
    """What *text* is sorted by where 2 comes before 12."""
    parts = _DIGITS.split(unicodedata.normalize('NFD', text))
    # Texts and numbers take turns, so that one is never compared with the other.
    return tuple(_size(part) if part.isdecimal() and part.isascii() else part for part in parts)


def _size(digits: str) -> tuple[int, str]:
    """What numbers are sorted by, however long they are."""
    digits = digits.lstrip('0')
    return len(digits), digits


ORDERS: dict[str, Key] = {'natural': natural, 'simple': str}


def order(mode: str) -> Key:
    """
    :raises InvalidField: for a mode that there is not
    """
    if mode not in ORDERS:
        raise InvalidField(field='order_mode', why=f"'{mode}' is none of {', '.join(sorted(ORDERS))}")
    return ORDERS[mode]


def load(path: pathlib.Path, key: Key | None = None, folder: pathlib.Path | None = None) -> Located:
    """What a file holds.

    :param key: by which the keys of all mappings have to be in order; None when they need not be
    :param folder: which the file, and all that it includes, has to be in; the file's own unless given
    :raises SourceError: for what cannot be read, with its line; for an empty file as well, since it may have been cut
        short, and a zone without records is written ``{}``
    """
    reading = _Reading((folder or path.parent).resolve())
    if not path.resolve().is_relative_to(reading.folder):
        raise SourceError(source=path, why=f'it is a link out of {reading.folder}')
    found = _Builder(path, key, (), reading).document()
    if not isinstance(found, Located):
        raise SourceError(source=path, why='it is not a mapping of names')
    return found


def dump(path: pathlib.Path, document: Mapping[str, Any], key: Key = natural) -> None:
    """Have the file hold *document*, keys in order; whoever reads it meanwhile sees it before or after.

    :raises OSError: when it cannot be written; it is as it was then
    """
    text = yaml.dump(_in_order(document, key), Dumper=_Dumper, default_flow_style=False, sort_keys=False,
                     explicit_start=True, allow_unicode=True, indent=2)
    beside = path.with_name(f'.{path.name}.{os.getpid()}.new')
    try:
        with beside.open('w', encoding='utf-8') as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


class _Dumper(_DUMPER):
    def ignore_aliases(self, data: object) -> bool:
        return True


def _in_order(value: Any, key: Key) -> Any:
    if isinstance(value, Mapping):
        return {name: _in_order(value[name], key) for name in sorted(value, key=key)}
    return [_in_order(each, key) for each in value] if isinstance(value, (list, tuple)) else value


@dataclasses.dataclass(slots=True)
class _Reading:
    """A file and all that it includes: where they have to be, and how much they have come to."""

    folder: pathlib.Path
    octets: int = 0
    files: int = 0
    repeated: int = 0
    depth: int = 0


class _Builder:
    """Makes values of the events of one file.  No tree is made of them, which takes many times as long."""

    def __init__(self, path: pathlib.Path, key: Key | None, including: tuple[pathlib.Path, ...],
                 reading: _Reading) -> None:
        self._path = path
        self._key = key
        self._including = (*including, path.resolve())
        self._reading = reading
        #: With how much each of them is, aliases in it followed.
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0
        self._next: Callable[[], Any] = lambda: None

    def document(self) -> Any:
        """What the only document of the file holds."""
        try:
            loader = _LOADER(self._text())
            self._next = loader.get_event
            try:
                return self._only_document()
            finally:
                loader.dispose()
        except OSError as error:
            raise SourceError(source=self._path, why=error.strerror) from error
        except UnicodeDecodeError as error:
            raise SourceError(source=self._path, why=f'it is not a text in UTF-8 (octet {error.start})') from error
        except yaml.YAMLError as error:
            mark = getattr(error, 'problem_mark', None)
            where = f'{self._path}, line {mark.line + 1}' if mark else self._path
            problem = getattr(error, 'problem', None) or 'it is not YAML'
            raise SourceError(source=where, why=self._said('{}', problem, 'it is not YAML')) from None

    def _text(self) -> str:
        with self._path.open('rb') as file:
            content = file.read(LARGEST + 1 - self._reading.octets)
        self._reading.octets += len(content)
        self._reading.files += 1
        if self._reading.octets > LARGEST or self._reading.files > MOST_FILES:
            raise SourceError(source=self._including[0], why=f'with what it includes it is more than {LARGEST} octets, '
                                                             f'or more than {MOST_FILES} files')
        return content.decode()

    def _only_document(self) -> Any:
        self._next()
        if isinstance(self._next(), StreamEndEvent):
            raise SourceError(source=self._path, why="it is empty; a zone without records is written '{}'")
        found = self._value(self._next())
        self._next()
        after = self._next()
        if not isinstance(after, StreamEndEvent):
            self._fail(after, 'a second document begins')
        return found

    def _value(self, event: Any) -> Any:
        kind = type(event)
        before = self._count
        self._count += 1
        self._reading.depth += 1
        if self._reading.depth > DEEPEST:
            self._fail(event, f'it is nested deeper than {DEEPEST}')
        if kind is ScalarEvent:
            tag = _tag(event)
            found = event.value if tag == _TEXT else self._scalar(event, tag)
        elif kind is AliasEvent:
            if event.anchor not in self._anchors:
                self._fail(event, '*{} is nothing that comes before it', event.anchor, 'an alias')
            found, size = self._anchors[event.anchor]
            self._count += size
            self._reading.repeated += size
            if self._reading.repeated > MOST_REPEATED:
                self._fail(event, f'aliases repeat more than {MOST_REPEATED} values')
        elif kind is MappingStartEvent and event.tag in (None, '!', f'{_TAG}map'):
            found = self._mapping(event)
        elif kind is SequenceStartEvent and event.tag in (None, '!', f'{_TAG}seq'):
            found = []
            while type(each := self._next()) is not SequenceEndEvent:
                found.append(self._value(each))
        else:
            self._fail(event, '{} is not known', event.tag, 'its tag')
        if event.anchor is not None and kind is not AliasEvent:
            self._anchors[event.anchor] = found, self._count - before
        self._reading.depth -= 1
        return found

    def _scalar(self, event: Any, tag: str) -> Any:
        if tag == '!include':
            return self._included(event)
        make = SafeConstructor.yaml_constructors.get(tag)
        if make is None or tag == _MERGE:
            self._fail(event, '{} is not known', tag, 'its tag')
        if tag in _NUMBERS and len(event.value) > LONGEST_NUMBER:
            self._fail(event, f'a number of more than {LONGEST_NUMBER} characters')
        try:
            return make(_SCALARS, ScalarNode(tag, event.value, event.start_mark, event.end_mark))
        except Exception as error:  # of a text that the tag beside it does not fit PyYAML says anything
            self._fail(event, '{}', f'{event.value!r} cannot be read ({" ".join(str(error).split())})',
                       'what stands here cannot be read')

    def _mapping(self, start: Any) -> Located:
        own = Located()
        own.line = start.start_mark.line + 1
        merged: dict[str, Any] = {}
        key, last = self._key, None
        while type(event := self._next()) is not MappingEndEvent:
            name = self._name(event)
            if name is None:
                merged = self._merged(event) | merged
                continue
            if name in own:
                self._fail(event, '{} is there twice', repr(name), 'a key')
            if key is not None:
                sorted_by = key(name)
                if last is not None and sorted_by < last:
                    self._fail(event, '{}', f'{name!r} is out of order: it comes before {list(own)[-1]!r}',
                               'a key is out of order')
                last = sorted_by
            own[name] = self._value(self._next())
        for name, value in merged.items():
            own.setdefault(name, value)
        return own

    def _name(self, event: Any) -> str | None:
        """The key that *event* is; None for one that says that others are merged here."""
        tag = _tag(event) if type(event) is ScalarEvent else ''
        if tag == _TEXT:
            return str(event.value)
        if tag == _MERGE:
            return None
        # octoDNS takes what a number is to YAML: 010 is 8, and NO is False.
        if not tag or str(self._scalar(event, tag)) != event.value:
            self._fail(event, '{} is not a text to YAML; put it in quotes', repr(getattr(event, 'value', 'this')),
                       'a key')
        return str(event.value)

    def _merged(self, key: Any) -> dict[str, Any]:
        value = self._value(self._next())
        found: dict[str, Any] = {}
        for each in value if isinstance(value, list) else [value]:
            if not isinstance(each, Mapping):
                self._fail(key, 'only mappings can be merged')
            found = {**each, **found}
        return found

    def _included(self, event: Any) -> Any:
        folder = self._reading.folder
        try:
            path = (self._path.parent / event.value).resolve()
        except (OSError, RuntimeError, ValueError):  # a loop of links, or no path at all
            path = pathlib.Path()
        if path.suffix not in _SUFFIXES or not path.is_relative_to(folder):
            self._fail(event, f'only files of {folder} that end in {" or ".join(_SUFFIXES)} can be included')
        if path in self._including:
            self._fail(event, f'{path} includes itself')
        found = _Builder(path, self._key, self._including, self._reading)
        value = found.document()
        self._count += found._count
        return value

    def _fail(self, event: Any, why: str, what: str = '', unsaid: str = '') -> NoReturn:
        """
        :param why: with ``{}`` for *what* the file has there; of a file that is included *unsaid* takes its place
        """
        raise SourceError(source=f'{self._path}, line {event.start_mark.line + 1}',
                          why=self._said(why, what, unsaid)) from None

    def _said(self, why: str, what: str, unsaid: str) -> str:
        return why.replace('{}', what if len(self._including) == 1 else unsaid)


def _tag(event: Any) -> str:
    if event.implicit[0]:
        return _implicit(event.value)
    return _TEXT if event.tag in (None, '!') else str(event.tag)


@functools.lru_cache(maxsize=4096)
def _implicit(text: str) -> str:
    """The tag of a text without quotes."""
    return str(_RESOLVER.resolve(ScalarNode, text, (True, False)))
