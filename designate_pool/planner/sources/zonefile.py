"""A folder of zone files, one for each zone."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator
from typing import IO

from designate_pool.errors import InvalidField, SourceError, ZoneError
from designate_pool.planner import master
from designate_pool.planner.providers.base import BaseSource
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.names_and_rdata import normal_name
from designate_pool.protocol.zonefile.reader import no_record


class ZoneFileSource(BaseSource):
    """Zone files; the options are those of octodns-bind's class of this name for reading.

    :param directory: the folder of the files
    :param file_extension: appended to the zone's name without its final dot: ``.`` for ``example.com.``, ``.zone`` for
        ``example.com.zone``; ``/`` in a name becomes ``-``
    :param check_origin: whether a file without SOA, or without NS records of the apex, is an error
    :param file: instead of *directory*: one file, for any zone
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

    def list_zones(self) -> list[str]:
        if self.directory is None:
            return super().list_zones()
        end = self.file_extension
        try:
            names = [path.name for path in self.directory.iterdir() if path.name.endswith(end) and path.is_file()]
        except OSError as error:
            raise SourceError(source=self.directory, why=error.strerror) from error
        return sorted(normal_name(f'{name.removesuffix(end)}.') for name in names)

    def path(self, name: str) -> pathlib.Path:
        """The path of the file of the zone *name*."""
        if self.file is not None:
            return self.file
        assert self.directory is not None
        return self.directory / f'{name.removesuffix(".").replace("/", "-")}{self.file_extension}'

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        path = self.path(zone.name)
        try:
            with opened(path) as lines:
                pairs = master.read(lines, zone.name, str(path), self.check_origin,
                                    self.log.warning if lenient else None)
            if self.check_origin and f'{zone.name}\tNS' not in pairs:
                raise SourceError(source=path, why=no_record('NS', zone.name))
            zone.add_pairs(pairs, lenient)
        except (SourceError, ZoneError):
            with opened(path) as lines:
                master.raise_all_errors(lines, zone, str(path), self.check_origin, lenient)
            raise  # the file has changed meanwhile
        return True


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
