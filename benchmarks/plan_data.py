"""The zone that is planned for, as it is and as it is to be.

It is made of blocks of ten records, nine RRsets, at eight names.  In a changed block one RRset gets other data, one
goes, and one of another name comes in its place; all other blocks are the same on both sides.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

ZONE = 'example.com.'
SIDES = ('existing', 'desired')
TTL = 3600
BLOCK = 10
#: Changes that a changed block has, one of each kind.
KINDS = 3

_SOA = f'ns1.{ZONE} hostmaster.{ZONE} 1 3600 600 604800 300'


class Set(NamedTuple):
    """All records of one name and type.

    :ivar name: absolute
    :ivar values: data as in a zone file
    """

    name: str
    type: str
    values: tuple[str, ...]


def changed_blocks(records: int, percent: float) -> int:
    """How many blocks are changed so that *percent* of *records* are; as many creates, updates and deletes there are.

    :raises ValueError: when there are not enough blocks, or nothing would be changed
    """
    found = int(records * percent / 100 / KINDS)
    if not 0 < found <= records // BLOCK:
        raise ValueError(f'{percent} % of {records} records cannot be changed, with {KINDS} changes in each '
                         f'{BLOCK} records at most')
    return found


def sets(side: str, records: int, changed: int) -> Iterator[Set]:
    """The RRsets of one side but for the SOA, in the order of names and types.

    :param records: beside the zone's own
    :param changed: how many blocks are; see :func:`changed_blocks`
    """
    yield Set(ZONE, 'NS', (f'ns1.{ZONE}', f'ns2.{ZONE}'))
    blocks = records // BLOCK
    for number in range(blocks):
        is_changed = number * changed // blocks != (number + 1) * changed // blocks
        yield from _block(number, is_changed, side == 'desired')


def write_zone_file(path: pathlib.Path, found: Iterable[Set]) -> None:
    """A line for each record, names absolute, as zone files are when a program wrote them."""
    with path.open('w', encoding='utf-8') as file:
        file.write(f'{ZONE} {TTL} IN SOA {_SOA}\n')
        for each in found:
            file.writelines(f'{each.name} {TTL} IN {each.type} {value}\n' for value in each.values)


def write_all(folder: pathlib.Path, records: int, changed: int) -> None:
    """Both sides, each as the zone file ``example.com.`` in a folder of its own."""
    for side in SIDES:
        (folder / side).mkdir(parents=True)
        write_zone_file(folder / side / ZONE, sets(side, records, changed))


def _block(number: int, is_changed: bool, is_desired: bool) -> Iterator[Set]:
    first = number * BLOCK
    name = f'h{number:06d}'
    host = f'{name}a.{ZONE}'
    yield Set(host, 'A', ('192.0.2.1' if is_changed and is_desired else _a(first),))
    yield Set(host, 'AAAA', (f'2001:db8::{1 + first // 65535:x}:{1 + first % 65535:x}',))
    yield Set(f'{name}b.{ZONE}', 'A', (_a(first + 1), _a(first + 2)))
    yield Set(f'{name}c.{ZONE}', 'A', (_a(first + 3),))
    yield Set(f'{name}d.{ZONE}', 'CNAME', (host,))
    yield Set(f'{name}e.{ZONE}', 'A', (_a(first + 4),))
    yield Set(f'{name}f.{ZONE}', 'MX', (f'10 {host}',))
    yield Set(f'{name}g.{ZONE}', 'TXT', (f'"token {number}"',))
    label = ('h-comes' if is_desired else 'h-goes') if is_changed else 'h'
    yield Set(f'{name}{label}.{ZONE}', 'A', (_a(first + 5),))


def _a(number: int) -> str:
    return f'10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}'
