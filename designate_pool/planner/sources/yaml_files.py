"""YAML files as octoDNS has them: mappings that know their lines, keys in order, files that include others."""

from __future__ import annotations

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
_SCALARS, _RESOLVER = SafeConstructor(), Resolver()
_DIGITS = re.compile(r'([0-9]+)')

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
    return tuple(int(part) if part.isdecimal() and part.isascii() else part for part in parts)


ORDERS: dict[str, Key] = {'natural': natural, 'simple': str}


def order(mode: str) -> Key:
    """
    :raises InvalidField: for a mode that there is not
    """
    if mode not in ORDERS:
        raise InvalidField(field='order_mode', why=f"'{mode}' is none of {', '.join(sorted(ORDERS))}")
    return ORDERS[mode]


def load(path: pathlib.Path, key: Key | None = None) -> Located:
    """What a file holds.

    :param key: by which the keys of all mappings have to be in order; None when they need not be
    :raises SourceError: for what cannot be read, with its line; for an empty file as well, since it may have been cut
        short, and a zone without records is written ``{}``
    """
    found = _Builder(path, key, ()).document()
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


class _Builder:
    """Makes values of the events of one file.  No tree is made of them, which takes many times as long."""

    def __init__(self, path: pathlib.Path, key: Key | None, including: tuple[pathlib.Path, ...]) -> None:
        self._path = path
        self._key = key
        self._including = (*including, path.resolve())
        self._anchors: dict[str, Any] = {}
        self._next: Callable[[], Any] = lambda: None

    def document(self) -> Any:
        """What the only document of the file holds."""
        try:
            loader = _LOADER(self._path.read_text(encoding='utf-8'))
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
            raise SourceError(source=where, why=getattr(error, 'problem', None) or str(error)) from error

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
        if kind is ScalarEvent:
            tag = _tag(event)
            found = event.value if tag == _TEXT else self._scalar(event, tag)
        elif kind is AliasEvent:
            if event.anchor not in self._anchors:
                self._fail(event, f'*{event.anchor} is nothing that comes before it')
            return self._anchors[event.anchor]
        elif kind is MappingStartEvent and event.tag in (None, '!', f'{_TAG}map'):
            found = self._mapping(event)
        elif kind is SequenceStartEvent and event.tag in (None, '!', f'{_TAG}seq'):
            found = []
            while type(each := self._next()) is not SequenceEndEvent:
                found.append(self._value(each))
        else:
            self._fail(event, f'{event.tag} is not known')
        if event.anchor is not None:
            self._anchors[event.anchor] = found
        return found

    def _scalar(self, event: Any, tag: str) -> Any:
        if tag == '!include':
            return self._included(event)
        make = SafeConstructor.yaml_constructors.get(tag)
        if make is None or tag == _MERGE:
            self._fail(event, f'{tag} is not known')
        try:
            return make(_SCALARS, ScalarNode(tag, event.value, event.start_mark, event.end_mark))
        except (yaml.YAMLError, ValueError) as error:
            self._fail(event, f'{event.value!r} cannot be read ({" ".join(str(error).split())})')

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
                self._fail(event, f'{name!r} is there twice')
            if key is not None:
                sorted_by = key(name)
                if last is not None and sorted_by < last:
                    self._fail(event, f'{name!r} is out of order: it comes before {list(own)[-1]!r}')
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
            self._fail(event, f'{getattr(event, "value", "this")!r} is not a text to YAML; put it in quotes')
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
        path = (self._path.parent / pathlib.Path(event.value).expanduser()).resolve()
        if path in self._including:
            self._fail(event, f'{path} includes itself')
        return _Builder(path, self._key, self._including).document()

    def _fail(self, event: Any, why: str) -> NoReturn:
        raise SourceError(source=f'{self._path}, line {event.start_mark.line + 1}', why=why) from None


def _tag(event: Any) -> str:
    if event.implicit[0]:
        return _implicit(event.value)
    return _TEXT if event.tag in (None, '!') else str(event.tag)


@functools.lru_cache(maxsize=4096)
def _implicit(text: str) -> str:
    """The tag of a text without quotes."""
    return str(_RESOLVER.resolve(ScalarNode, text, (True, False)))
