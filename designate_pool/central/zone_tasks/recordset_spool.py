"""The recordsets of a zone file, of which a bounded part is in memory.

Beyond that they are written to temporary files, each in the order of the names, which are merged when they are
read (an external merge sort).  Records that are repeated count once, and of several TTLs in a recordset the lowest is
used (RFC 2181 section 5.2), wherever they are in the zone file.
"""

from __future__ import annotations

import heapq
import json
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any

from designate_pool.central.validation.names_and_rdata import Rdata

#: Octets of records in memory, and how many of them a record takes beside its name and data.
MOST_HELD, _OVERHEAD = 20_000_000, 250
#: Stands between the parts of a line in a temporary file, and before all that a name can have.
_END = '\0'
#: Before data that is only a text.
_TEXT = '='

#: Data of one record, or of several by their text.  Plain data is only its text, as most records of a large zone are.
Data = str | Rdata | dict[str, str | Rdata]
#: The lowest TTL of a recordset, the line of its first record, and its data.
SpooledSet = tuple[int, int, Data]


class RecordSetSpool:
    """
    :ivar is_in_memory: whether all recordsets are, so far
    """

    def __init__(self) -> None:
        self._held: dict[str, SpooledSet] = {}
        self._size = 0
        self._files: list[IO[str]] = []

    @property
    def is_in_memory(self) -> bool:
        return not self._files

    def add(self, key: str, ttl: int, line: int, data: str | Rdata) -> int:
        """Add a record; how many its recordset has with it, 0 if it was there already, as far as they are in memory.

        :param key: the name, a tab, and the type
        """
        size = _OVERHEAD + len(key) + len(text_of(data))
        found = self._held.get(key)
        if found is None:
            if self._size + size > MOST_HELD:
                self._write()
            self._held[key] = ttl, line, data
            self._size += size
            return 1
        before = len(found[2]) if isinstance(found[2], dict) else 1
        _, _, held = self._held[key] = joined(found, (ttl, line, data))
        if len(held) == before:
            return 0
        self._size += size
        return len(held)

    def __iter__(self) -> Iterator[tuple[str, SpooledSet]]:
        """Keys and recordsets in the order of the keys.

        There can be one iteration at a time, and nothing is added afterwards.
        """
        if not self._files:
            for key in sorted(self._held):
                yield key, self._held[key]
            return
        self._write()
        for file in self._files:
            file.seek(0)
        last, held = '', None
        for each in heapq.merge(*self._files):
            key, number, ttl, packed = each.split(_END, 3)
            found = int(ttl), int(number), packed[1:-1] if packed[0] == _TEXT else _unpacked(json.loads(packed))
            if key == last:
                held = joined(held, found) if held else found
                continue
            if held is not None:
                yield last, held
            last, held = key, found
        if held is not None:
            yield last, held

    def _write(self) -> None:
        """Move what is in memory to a file."""
        if not self._held:
            return
        held, self._held, self._size = self._held, {}, 0
        file = tempfile.TemporaryFile('w+', encoding='utf-8', newline='\n')
        self._files.append(file)
        for key in sorted(held):
            ttl, line, data = held[key]
            packed = f'{_TEXT}{data}' if isinstance(data, str) else json.dumps(_packed(data))
            # The number of the line has a fixed width, so that records of one recordset stay in their order.
            file.write(f'{key}{_END}{line:010}{_END}{ttl}{_END}{packed}\n')


def each_of(data: Data) -> Iterable[str | Rdata]:
    return data.values() if isinstance(data, dict) else (data,)


def text_of(data: str | Rdata) -> str:
    return data if isinstance(data, str) else data.text


def joined(found: SpooledSet, more: SpooledSet) -> tuple[int, int, dict[str, str | Rdata]]:
    """One recordset of two."""
    ttl, line, data = found
    held = data if isinstance(data, dict) else {text_of(data): data}
    for each in each_of(more[2]):
        held[text_of(each)] = each
    return min(ttl, more[0]), min(line, more[1]), held


def _packed(data: Data) -> Any:
    """As JSON has it: a text, text and wire form of what is not plain, or a list of these for several."""
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        return [_packed(each) for each in data.values()]
    return {'text': data.text, 'wire': data.wire.hex()}


def _unpacked(packed: Any) -> Data:
    if isinstance(packed, list):
        return {text_of(each): each for each in map(_one_unpacked, packed)}
    return _one_unpacked(packed)


def _one_unpacked(packed: Any) -> str | Rdata:
    return packed if isinstance(packed, str) else Rdata(packed['text'], bytes.fromhex(packed['wire']))
