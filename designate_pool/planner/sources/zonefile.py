"""A folder of zone files, one for each zone; and a zone file with those that it includes as one text."""

from __future__ import annotations

import bisect
import contextlib
import os
import pathlib
import re
from collections.abc import Iterable, Iterator
from typing import IO, NoReturn

from designate_pool.errors import InvalidField, SourceError, ZoneError
from designate_pool.planner import master
from designate_pool.planner.providers.base import BaseSource
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import normal_name
from designate_pool.protocol.zonefile import no_record

#: Stands for '/' of a zone's name in those of files; in normal form no name has it.
SLASH = '%2F'
#: Limits for one file with all that it includes.
MOST_OCTETS, MOST_FILES = 1 << 30, 1000
_DIRECTIVE = re.compile(rb'\$(INCLUDE|ORIGIN)[ \t]+("[^"]*"|[^;\s]+)(?:[ \t]+([^;\s]+))?', re.IGNORECASE)
_LINE_NUMBER = re.compile(r'\bline ([0-9]+)')


class ZoneFileSource(BaseSource):
    """Zone files; the options are those of octodns-bind's class of this name for reading.

    :param file_extension: appended to the zone's name without its final dot: ``.`` for ``example.com.``, ``.zone`` for
        ``example.com.zone``; ``/`` in a name is ``%2F``, or ``-`` in a file that is there
    :param check_origin: whether a file without SOA, or without NS records of the apex, is an error
    :param file: instead of *directory*: one file, for any zone
    :ivar included: the files that the one that was read last includes
    """

    SUPPORTS_SOA = True

    def __init__(self, id: str, directory: str | None = None, file_extension: str = '.', check_origin: bool = True,
                 file: str | None = None) -> None:
        super().__init__(id)
        if (directory is None) == (file is None):
            raise InvalidField(field=id, why="one of 'directory' and 'file' must be given")
        self.directory = None if directory is None else pathlib.Path(directory)
        self.file = None if file is None else pathlib.Path(file)
        self.file_extension = file_extension
        self.check_origin = check_origin
        self.included: tuple[pathlib.Path, ...] = ()

    def list_zones(self) -> list[str]:
        if self.directory is None:
            return super().list_zones()
        end = self.file_extension
        try:
            names = [path.name for path in self.directory.iterdir() if path.name.endswith(end) and path.is_file()]
        except OSError as error:
            raise SourceError(source=self.directory, why=error.strerror) from error
        return sorted(normal_name(f'{name.removesuffix(end).replace(SLASH, "/")}.') for name in names)

    def path(self, name: str) -> pathlib.Path:
        """The path of the file of the zone *name*."""
        if self.file is not None:
            return self.file
        assert self.directory is not None
        paths = [self.directory / f'{name.removesuffix(".").replace("/", slash)}{self.file_extension}'
                 for slash in (SLASH, '-')]
        return next((path for path in paths if path.exists()), paths[0])

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        path = self.path(zone.name)
        with opened(path) as file, path.open('rb') as octets:
            text: str | IO[str] = file
            places = LinePlaces()
            if has_includes(octets):
                expansion = Expansion(path, zone.name)
                text, places, self.included = expansion.text.decode(), expansion.places, tuple(expansion.files[1:])

            def warn(message: str) -> None:
                self.log.warning(places.in_files(message))

            try:
                file.seek(0)
                pairs = master.read(text, zone.name, str(path), self.check_origin, warn if lenient else None, warn)
                if self.check_origin and f'{zone.name}\tNS' not in pairs:
                    raise SourceError(source=path, why=no_record('NS', zone.name))
                zone.add_pairs(pairs, lenient)
            except (SourceError, ZoneError):
                file.seek(0)
                try:
                    master.raise_all_errors(text, zone, str(path), self.check_origin, lenient)
                except SourceError as error:
                    raise type(error)(**{name: places.in_files(str(value))
                                         for name, value in error.kwargs.items()}) from error.__cause__
                raise  # the file has changed meanwhile
        return True


def has_includes(lines: Iterable[bytes]) -> bool:
    """Whether a line of a zone file includes another one."""
    return any(line[:8].upper() == b'$INCLUDE' for line in lines)


@contextlib.contextmanager
def opened(path: pathlib.Path) -> Iterator[IO[str]]:
    """A text file; SourceError when it cannot be read, or is no UTF-8."""
    try:
        with path.open(encoding='utf-8') as file:
            yield file
    except OSError as error:
        raise SourceError(source=path, why=error.strerror) from error
    except UnicodeDecodeError as error:
        raise SourceError(source=path, why=f'it is not a text in UTF-8 (octet {error.start})') from error


class LinePlaces:
    """Where the lines of a text were, which is put together from files: what is told of a line names its file."""

    def __init__(self) -> None:
        self.count = 0
        self._begins: list[tuple[int, str, int]] = []

    def begin(self, file: str, number: int) -> None:
        """The following lines are those of *file* from *number*; ``''`` is the file that is named anyway."""
        self._begins.append((self.count, file, number))

    def in_files(self, message: str) -> str:
        """*message* with the places of its lines."""
        return _LINE_NUMBER.sub(self._place, message) if self._begins else message

    def _place(self, match: re.Match[str]) -> str:
        index = int(match[1]) - 1
        first, file, number = self._begins[bisect.bisect_right(self._begins, index, key=lambda begin: begin[0]) - 1]
        return f'{file and f"{file}, "}line {number + index - first}'


class Expansion:
    """A zone file as one text with those that it includes (RFC 1035 section 5.1).

    After an include the origin is what it was.  A line without a name may not follow, since it would have another one.

    :param name: the origin at its beginning
    :ivar files: that it consists of
    :raises SourceError: when a file cannot be read, is not in the folder of *path* or below, or includes itself
    """

    def __init__(self, path: pathlib.Path, name: str | None = None) -> None:
        self.places = LinePlaces()
        self._path = path
        self._folder = path.resolve().parent
        self._lines: list[bytes] = []
        self._size = 0
        self.files: list[pathlib.Path] = []
        self._is_after_include = False
        origin = _absolute(name.encode(), b'.') if name else None
        if origin is not None:
            self._put(b'$ORIGIN ' + origin)
        self._add(path.resolve(), '', origin, ())

    @property
    def text(self) -> bytes:
        """All of it."""
        return b'\n'.join(self._lines)

    def _put(self, line: bytes) -> None:
        self._lines.append(line)
        self.places.count += 1
        self._size += len(line)
        if self._size > MOST_OCTETS:
            self._fail_as_too_large()

    def _fail_as_too_large(self) -> NoReturn:
        raise SourceError(source=self._path, why=f'with all that it includes it has more than {MOST_OCTETS} octets, or '
                                                 f'more than {MOST_FILES} files')

    def _add(self, path: pathlib.Path, file: str, origin: bytes | None,
             including: tuple[pathlib.Path, ...]) -> bytes | None:
        """Add the lines of a file; returns the origin at its end."""
        if path in including:
            raise SourceError(source=path, why='it includes itself')
        self.files.append(path)
        if len(self.files) > MOST_FILES:
            self._fail_as_too_large()
        try:
            lines = path.read_bytes().split(b'\n')
        except OSError as error:
            raise SourceError(source=path, why=error.strerror or error) from error
        self.places.begin(file, 1)
        for number, line in enumerate(lines, 1):
            where = f'{file or path.name}, line {number}'
            match = _DIRECTIVE.match(line)
            if match is None:
                content = line.partition(b';')[0]
                if self._is_after_include and content.strip() and content[:1] != b'$':
                    if content[:1].isspace():
                        raise SourceError(source=where, why='the name is missing, and the file before has another one')
                    self._is_after_include = False
                self._put(line)
            elif match[1].upper() == b'ORIGIN':
                origin = _absolute(match[2], origin)
                self._put(line)
            else:
                target = (self._folder / os.fsdecode(match[2].strip(b'"'))).resolve()
                if not target.is_relative_to(self._folder):
                    raise SourceError(source=where, why=f'{target} is not in {self._folder} or below')
                own = origin
                if match[3] is not None:
                    own = _absolute(match[3], origin)
                    self._put(b'$ORIGIN ' + match[3])
                if self._add(target, str(target.relative_to(self._folder)), own, (*including, path)) != origin:
                    if origin is None:
                        raise SourceError(source=where, why='the origin is not known; give it with --name, or $ORIGIN')
                    self._put(b'$ORIGIN ' + origin)
                self.places.begin(file, number + 1)
                self._is_after_include = True
        return origin


def _absolute(name: bytes, origin: bytes | None) -> bytes | None:
    """*name* in *origin*; None if that is not known and would be needed."""
    if name.endswith(b'.') or origin is None:
        return name if name.endswith(b'.') else None
    return origin if name == b'@' else name + (b'.' if origin == b'.' else b'.' + origin)
