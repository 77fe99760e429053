"""octoDNS's YAML files: mappings with line numbers, sorted keys, included files.

Authors of zones are not trusted with the files that this program can read.  So a file must be in the folder of its
source after all links are resolved, and can include only YAML from there; an error in an included file is reported
without its contents.  The size, the nesting and the repetition by aliases are limited.
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

#: libyaml's, which is about ten times as fast, if PyYAML was built with it.
_LOADER: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)

_TAG = 'tag:yaml.org,2002:'
_TEXT, _MERGE = f'{_TAG}str', f'{_TAG}merge'
_NUMBERS = frozenset({f'{_TAG}int', f'{_TAG}float'})
_SCALARS, _RESOLVER = SafeConstructor(), Resolver()
_DIGITS = re.compile(r'([0-9]+)')

#: Limits for one file with all that it includes: octets, files, and depth of nesting.
MAX_OCTETS, MAX_FILES, MAX_DEPTH = 256 << 20, 1000, 64
#: Scalars, lists and mappings that all aliases together may repeat.
MAX_REPEATED = 1_000_000
#: Characters of a number; the time to parse one in base 60 grows with their square.
MAX_NUMBER_LENGTH = 1000
_SUFFIXES = ('.yaml', '.yml')

Key = Callable[[str], Any]
#: Is called with a key as it is written, its value, and why it is left out.
Skipped = Callable[[str, Any, str], object]


class LineMapping(dict[str, Any]):
    """A mapping of a file, with its first line, from 1."""

    __slots__ = ('line',)

    line: int


@functools.lru_cache(maxsize=4096)
def natural(text: str) -> tuple[Any, ...]:
    """The sort key of *text* in natural order (2 before 12)."""
    parts = _DIGITS.split(unicodedata.normalize('NFD', text))
    # Strings and numbers of any length alternate, so that a string is never compared with a number.
    return tuple((len(part.lstrip('0')), part.lstrip('0')) if part.isdecimal() and part.isascii() else part
                 for part in parts)


ORDERS: dict[str, Key] = {'natural': natural, 'simple': str}


def order(mode: str) -> Key:
    """The key by which names are sorted; InvalidField for an unknown mode."""
    if mode not in ORDERS:
        raise InvalidField(field='order_mode', why=f"'{mode}' is none of {', '.join(sorted(ORDERS))}")
    return ORDERS[mode]


def load(path: pathlib.Path, key: Key | None = None, folder: pathlib.Path | None = None,
         skipped: Skipped | None = None, files: list[pathlib.Path] | None = None) -> LineMapping:
    """The contents of a file.

    :param key: the sort key by which the keys of all mappings must be ordered; None for any order
    :param folder: the folder that must contain the file and all that it includes; by default the file's own
    :param skipped: called for each key of the document itself that is no text, such as ``null``, which is then left
        out; without it, that is an error
    :param files: gets the paths of the file and all that it includes
    :returns: an empty mapping for a file of comments only, as octoDNS has it
    :raises SourceError: for an error, with its line; also for an empty file, since it may be truncated: a zone without
        records is written ``{}``
    """
    limits = _Limits(_without_links(folder or path.parent), [] if files is None else files)
    if not _without_links(path).is_relative_to(limits.folder):
        raise SourceError(source=path, why=f'it is a link out of {limits.folder}')
    document = _EventReader(path, key, (), limits, skipped).document()
    if not isinstance(document, LineMapping):
        raise SourceError(source=path, why='it is not a mapping')
    return document


def _without_links(path: pathlib.Path) -> pathlib.Path:
    """The path that links lead to; one in a circle of links, for which resolve() raises RuntimeError before Python
    3.13, can then not be read."""
    return pathlib.Path(os.path.realpath(path))


def dump(path: pathlib.Path, document: Mapping[str, Any], key: Key = natural) -> None:
    """Write *document*, with sorted keys, replacing the file atomically; OSError, and no change, if that fails."""
    text = yaml.dump(_in_order(document, key), Dumper=_Dumper, default_flow_style=False, sort_keys=False,
                     explicit_start=True, allow_unicode=True, indent=2)
    temporary = path.with_name(f'.{path.name}.{os.getpid()}.new')
    try:
        with temporary.open('w', encoding='utf-8') as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class _Dumper(_DUMPER):
    def ignore_aliases(self, data: object) -> bool:
        return True


def _in_order(value: Any, key: Key) -> Any:
    if isinstance(value, Mapping):
        return {name: _in_order(value[name], key) for name in sorted(value, key=key)}
    return [_in_order(item, key) for item in value] if isinstance(value, (list, tuple)) else value


@dataclasses.dataclass(slots=True)
class _Limits:
    """The limits of a file and all that it includes, and how much of them is used."""

    folder: pathlib.Path
    files: list[pathlib.Path]
    octets: int = 0
    repeated: int = 0
    depth: int = 0


class _EventReader:
    """Builds the values of one file from its events; building a tree of nodes would take much longer."""

    def __init__(self, path: pathlib.Path, key: Key | None, including: tuple[pathlib.Path, ...],
                 limits: _Limits, skipped: Skipped | None = None) -> None:
        self._path = path
        self._key = key
        self._including = (*including, _without_links(path))
        self._limits = limits
        self._skipped = skipped
        #: By anchor: the value, and how many values it contains with all aliases expanded.
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0
        self._next: Callable[[], Any] = lambda: None

    def document(self) -> Any:
        """The value of the only document of the file."""
        try:
            text = self._text()
            loader = _LOADER(text)
            self._next = loader.get_event
            try:
                return self._only_document('#' in text)
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
            raise SourceError(source=where, why=self._message('{}', problem, 'it is not YAML')) from None

    def _text(self) -> str:
        with self._path.open('rb') as file:
            content = file.read(MAX_OCTETS + 1 - self._limits.octets)
        self._limits.octets += len(content)
        self._limits.files.append(self._path)
        if self._limits.octets > MAX_OCTETS or len(self._limits.files) > MAX_FILES:
            raise SourceError(source=self._including[0], why=f'with all that it includes it has more than {MAX_OCTETS} '
                                                             f'octets, or more than {MAX_FILES} files')
        return content.decode()

    def _only_document(self, has_comments: bool) -> Any:
        self._next()
        if isinstance(self._next(), StreamEndEvent):
            if has_comments:
                return LineMapping()
            raise SourceError(source=self._path, why="it is empty; an empty mapping is written '{}'")
        document = self._value(self._next())
        if document is None and has_comments:
            document = LineMapping()
        self._next()
        after = self._next()
        if not isinstance(after, StreamEndEvent):
            self._fail(after, 'a second document begins')
        return document

    def _value(self, event: Any) -> Any:
        kind = type(event)
        before = self._count
        self._count += 1
        self._limits.depth += 1
        if self._limits.depth > MAX_DEPTH:
            self._fail(event, f'it is nested deeper than {MAX_DEPTH}')
        if kind is ScalarEvent:
            tag = _tag(event)
            value = event.value if tag == _TEXT else self._scalar(event, tag)
        elif kind is AliasEvent:
            if event.anchor not in self._anchors:
                self._fail(event, '*{} is nothing that comes before it', event.anchor, 'an alias')
            value, size = self._anchors[event.anchor]
            self._count += size
            self._limits.repeated += size
            if self._limits.repeated > MAX_REPEATED:
                self._fail(event, f'aliases repeat more than {MAX_REPEATED} values')
        elif kind is MappingStartEvent and event.tag in (None, '!', f'{_TAG}map'):
            value = self._mapping(event)
        elif kind is SequenceStartEvent and event.tag in (None, '!', f'{_TAG}seq'):
            value = []
            while type(item_event := self._next()) is not SequenceEndEvent:
                value.append(self._value(item_event))
        else:
            self._fail(event, '{} is not known', event.tag, 'its tag')
        if event.anchor is not None and kind is not AliasEvent:
            self._anchors[event.anchor] = value, self._count - before
        self._limits.depth -= 1
        return value

    def _scalar(self, event: Any, tag: str) -> Any:
        if tag == '!include':
            return self._included(event)
        make = SafeConstructor.yaml_constructors.get(tag)
        if make is None or tag == _MERGE:
            self._fail(event, '{} is not known', tag, 'its tag')
        if tag in _NUMBERS and len(event.value) > MAX_NUMBER_LENGTH:
            self._fail(event, f'a number of more than {MAX_NUMBER_LENGTH} characters')
        try:
            return make(_SCALARS, ScalarNode(tag, event.value, event.start_mark, event.end_mark))
        except Exception as error:  # PyYAML may raise anything if the tag does not fit the text
            self._fail(event, '{}', f'{event.value!r} cannot be read ({" ".join(str(error).split())})',
                       'this value cannot be read')

    def _mapping(self, start: Any) -> LineMapping:
        own = LineMapping()
        own.line = start.start_mark.line + 1
        merged: dict[str, Any] = {}
        key, last = self._key, None
        while type(event := self._next()) is not MappingEndEvent:
            try:
                name = self._name(event)
            except SourceError as error:
                if self._skipped is None or self._limits.depth > 1 or type(event) is not ScalarEvent:
                    raise
                self._skipped(event.value, self._value(self._next()), f'{str(error).rstrip(".")}; it is left out')
                continue
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
        """The key that *event* is; None for a merge key."""
        tag = _tag(event) if type(event) is ScalarEvent else ''
        if tag == _TEXT:
            return str(event.value)
        if tag == _MERGE:
            return None
        # Unquoted, these keys would be other values in octoDNS: 010 is 8, and NO is False.
        if not tag or str(self._scalar(event, tag)) != event.value:
            self._fail(event, '{} is not a text to YAML; put it in quotes', repr(getattr(event, 'value', 'this')),
                       'a key')
        return str(event.value)

    def _merged(self, key: Any) -> dict[str, Any]:
        value = self._value(self._next())
        merged: dict[str, Any] = {}
        for mapping in value if isinstance(value, list) else [value]:
            if not isinstance(mapping, Mapping):
                self._fail(key, 'only mappings can be merged')
            merged = {**mapping, **merged}
        return merged

    def _included(self, event: Any) -> Any:
        folder = self._limits.folder
        try:
            path = _without_links(self._path.parent / event.value)
        except (OSError, ValueError):  # no path at all
            path = pathlib.Path()
        if path.suffix not in _SUFFIXES or not path.is_relative_to(folder):
            self._fail(event, f'only files of {folder} that end in {" or ".join(_SUFFIXES)} can be included')
        if path in self._including:
            self._fail(event, f'{path} includes itself')
        reader = _EventReader(path, self._key, self._including, self._limits)
        value = reader.document()
        self._count += reader._count
        return value

    def _fail(self, event: Any, why: str, what: str = '', redacted: str = '') -> NoReturn:
        """
        :param why: ``{}`` in it is replaced by *what*, the contents of the file; by *redacted* for an included file
        """
        raise SourceError(source=f'{self._path}, line {event.start_mark.line + 1}',
                          why=self._message(why, what, redacted)) from None

    def _message(self, why: str, what: str, redacted: str) -> str:
        return why.replace('{}', what if len(self._including) == 1 else redacted)


def _tag(event: Any) -> str:
    return _implicit(event.value) if event.implicit[0] else _TEXT if event.tag in (None, '!') else str(event.tag)


@functools.lru_cache(maxsize=4096)
def _implicit(text: str) -> str:
    """The tag of a plain (unquoted) scalar."""
    return str(_RESOLVER.resolve(ScalarNode, text, (True, False)))
