"""The zone files that are imported, and reading one of them without doing anything with it."""

from __future__ import annotations

import os
import pathlib
import time

import dns.zone

from benchmarks import memory
from benchmarks.tiny_zones import TEXT
from designate_pool.central import zonefile_parser

#: Lines that are written at once.
_LINES = 10_000
#: Records of a name, by the number of the record; the first of each name has its name written.
_RECORDS = ('h{number:07} A 192.0.{high}.{low}', '  AAAA 2001:db8::{upper:x}:{lower:x}', '  TXT "host {number}"',
            'h{number:07}-c CNAME h{number:07}', 'h{number:07}-m 600 MX 10 h{number:07}')


def write_large(file: pathlib.Path, name: str, records: int) -> None:
    """Write a zone file with so many records, the SOA and the NS among them; five for each host.

    The names are in the order in which name servers write them (RFC 4034 section 6.1).
    """
    head, _, _ = TEXT.rpartition('www')
    with file.open('w') as out:
        out.write(f'$ORIGIN {name}{head}')
        for start in range(0, records - 2, _LINES):
            out.writelines(f'{_record(number)}\n' for number in range(start, min(start + _LINES, records - 2)))


def write_small(name: str) -> bytes:
    """A zone file with three records."""
    return f'$ORIGIN {name}{TEXT}'.encode('ascii')


def parsed_by_us(file: pathlib.Path) -> tuple[float, float]:
    """Seconds, and MB that this process has had at most."""
    started = time.perf_counter()
    with file.open() as lines:
        _, contents = zonefile_parser.parse(line.rstrip('\n') for line in lines)
        found = sum(1 for _ in contents)
    return _measured(started, found)


def parsed_by_dnspython(file: pathlib.Path) -> tuple[float, float]:
    """Seconds, and MB that this process has had at most."""
    started = time.perf_counter()
    zone = dns.zone.from_file(str(file), relativize=False)
    return _measured(started, len(zone.nodes))


def _record(number: int) -> str:
    host, kind = divmod(number, len(_RECORDS))
    return _RECORDS[kind].format(number=host, high=host // 250 % 250, low=host % 250, upper=host >> 16,
                                 lower=host & 0xffff)


def _measured(started: float, found: int) -> tuple[float, float]:
    spent = time.perf_counter() - started
    assert found
    return spent, memory.measure(os.getpid()).most
