"""Which zones the configuration of a name server has, and in which files: ``named.conf`` of BIND, ``nsd.conf`` of NSD.

Only what is needed for that is understood; everything else is skipped.
"""

from __future__ import annotations

import glob
import itertools
import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from designate_pool.errors import SourceError
from designate_pool.planner.sources.zonefile import opened
from designate_pool.protocol.names_and_rdata import normal_name

#: Files that may include one another, and braces, one in the other.
DEEPEST = 16
_NAMED_WORD = re.compile(r'/\*.*?\*/|//[^\n]*|#[^\n]*|"(?:[^"\\]|\\.)*"|[{};]|[^\s{};"]+', re.DOTALL)
_NSD_WORD = re.compile(r'#[^\n]*|"[^"\n]*"|[^\s"#]+')
#: How a section of nsd.conf begins.
_NSD_SECTION = re.compile(r'^\s*(zone|pattern|server|remote-control):\s*(#.*)?$', re.MULTILINE)
#: The words of a statement; the statements in braces are a list.
_Statement = list[Any]


def zone_files(path: pathlib.Path) -> dict[str, pathlib.Path]:
    """The files of primary zones by name, from a ``named.conf`` or ``nsd.conf``; else SourceError."""
    pairs = _nsd_zones(path) if _NSD_SECTION.search(_read(path)) else _named_zones(path)
    files: dict[str, pathlib.Path] = {}
    for name, file in pairs:
        zone = normal_name(f'{name.rstrip(".")}.')
        if files.setdefault(zone, file) != file:
            raise SourceError(source=path, why=f'{zone} is there twice, with the files {files[zone]} and {file}; name '
                                               'the file of the view that is wanted')
    return files


def tsig_key(path: pathlib.Path) -> tuple[str, str, str]:
    """Name, secret and algorithm of the first key in a file by ``tsig-keygen``; else SourceError."""
    for words in _statements(path, _words(path)):
        if words[0] == 'key' and len(words) == 3 and isinstance(words[1], str) and isinstance(words[2], list):
            values = {pair[0]: pair[1] for pair in words[2]
                      if len(pair) == 2 and all(isinstance(word, str) for word in pair)}
            if {'algorithm', 'secret'} <= values.keys():
                return words[1], values['secret'], values['algorithm']
    raise SourceError(source=path, why='it has no key "NAME" { algorithm ...; secret "..."; };')


def _named_zones(path: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    statements = list(_included(path, 0))
    options: list[_Statement] = next((words[1] for words in statements if words[0] == 'options' and len(words) == 2),
                                     [])
    folder = path.parent / _value(options, 'directory')
    for words in statements:
        if words[0] == 'view' and isinstance(words[-1], list):
            yield from _zones_of(path, words[-1], folder)
    yield from _zones_of(path, statements, folder)


def _zones_of(path: pathlib.Path, statements: Sequence[_Statement], folder: pathlib.Path
              ) -> Iterator[tuple[str, pathlib.Path]]:
    for words in statements:
        if words[0] != 'zone' or not isinstance(words[-1], list) or words[2:-1] not in ([], ['IN'], ['in']):
            continue
        if not isinstance(words[1], str):
            raise SourceError(source=path, why='a zone has no name')
        file = _value(words[-1], 'file')
        if _value(words[-1], 'type') in ('primary', 'master') and file:
            yield words[1], folder / file


def _included(path: pathlib.Path, depth: int) -> Iterator[_Statement]:
    """The statements of a file, and in their places those of the files that it includes."""
    if depth > DEEPEST:
        raise SourceError(source=path, why=f'more than {DEEPEST} files include one another')
    for words in _statements(path, _words(path)):
        if words[0] == 'include' and len(words) == 2:
            if not isinstance(words[1], str):
                raise SourceError(source=path, why='an include has no file')
            yield from _included(path.parent / words[1], depth + 1)
        else:
            yield words


def _words(path: pathlib.Path) -> Iterator[str]:
    return (word for word in _NAMED_WORD.findall(_read(path)) if not word.startswith(('/*', '//', '#')))


def _statements(path: pathlib.Path, words: Iterator[str], depth: int = 0) -> list[_Statement]:
    if depth > DEEPEST:
        raise SourceError(source=path, why=f'there are more than {DEEPEST} braces within one another')
    statements: list[_Statement] = []
    statement: _Statement = []
    for word in words:
        if word == '{':
            statement.append(_statements(path, words, depth + 1))
        elif word == '}':
            if not depth or statement:
                break
            return statements
        elif word != ';':
            statement.append(word[1:-1].replace('\\"', '"') if word[0] == '"' else word)
        elif statement:
            statements.append(statement)
            statement = []
    if depth or statement:
        said = ' '.join(str(word_) for word_ in statement if isinstance(word_, str)) or 'its end'
        raise SourceError(source=path, why=f'a brace or a semicolon is missing at {said[:60]}')
    return statements


def _value(statements: Sequence[_Statement], word: str) -> str:
    """The value of the statement that begins with *word*; '' for none."""
    return next((statement[1] for statement in statements
                 if statement[0] == word and len(statement) == 2 and isinstance(statement[1], str)), '')


def _nsd_zones(path: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    sections = list(_nsd_sections(path, 0))
    folder = path.parent / next((values['zonesdir'][0] for kind, values in sections
                                 if kind == 'server' and 'zonesdir' in values), '')
    patterns = {values['name'][0]: values for kind, values in sections if kind == 'pattern' and 'name' in values}
    for kind, values in sections:
        if kind != 'zone' or 'name' not in values:
            continue
        zone = dict(values)
        for value in values.get('include-pattern', ()):
            if value not in patterns:
                raise SourceError(source=path, why=f'the zone {values["name"][0]} wants the pattern {value}, which is '
                                                   'not there')
            zone = {**patterns[value], **zone}
        if 'request-xfr' in zone or 'zonefile' not in zone:
            continue
        name, file = values['name'][0], zone['zonefile'][0]
        if '%' in file.replace('%s', ''):
            raise SourceError(source=path, why=f'the zonefile {file} has more than %s; write the name of the file of '
                                               f'{name}')
        yield name, folder / file.replace('%s', name.rstrip('.'))


def _nsd_sections(path: pathlib.Path, depth: int) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Sections, each with the values of its attributes."""
    if depth > DEEPEST:
        raise SourceError(source=path, why=f'more than {DEEPEST} files include one another')
    kind, values, attribute = '', dict[str, list[str]](), ''
    for word in _NSD_WORD.findall(_read(path)):
        if word[0] == '#':
            continue
        if word.endswith(':') and word[0] != '"':
            attribute = word[:-1]
            if attribute in ('zone', 'pattern', 'server', 'key', 'remote-control', 'verify', 'tls-auth', 'dnstap'):
                if kind:
                    yield kind, values
                kind, values = attribute, {}
            continue
        value = word.strip('"')
        if attribute == 'include':
            for included in _matching(path, value):
                yield from _nsd_sections(included, depth + 1)
        elif attribute:
            values.setdefault(attribute, []).append(value)
    if kind:
        yield kind, values


def _matching(path: pathlib.Path, pattern: str) -> Sequence[pathlib.Path]:
    """The files that a file includes: one, or those that a pattern matches, as glob(3) does."""
    if not pattern:
        raise SourceError(source=path, why='include: it names no file')
    if not glob.has_magic(pattern):
        return [path.parent / pattern]
    parts = itertools.takewhile(lambda part: not glob.has_magic(part), pathlib.PurePath(pattern).parts[:-1])
    folder = path.parent.joinpath(*parts)
    try:
        if folder.is_dir():
            os.listdir(folder)  # for glob(), one that may not be read is empty
    except OSError as error:
        raise SourceError(source=folder, why=error.strerror) from error
    return [path.parent / name for name in sorted(glob.glob(pattern, root_dir=path.parent))]


def _read(path: pathlib.Path) -> str:
    try:
        with opened(path) as file:
            return file.read()
    except ValueError as error:
        raise SourceError(source=path, why=f'it cannot be the name of a file: {error}') from error
