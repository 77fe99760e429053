"""Differences between the contents of a zone at two serials, without its SOA.

The invariant: a difference, taken back from the contents after it, gives the contents before it, and so do several one
after the other, newest first.  TTLs are as they are stored: None is the zone's, which may have been another one then.
"""

from __future__ import annotations

import heapq
import itertools
import json
import operator
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from designate_pool.model.domains import ZoneRecord

#: From so many octets on a packed difference is compressed, which takes longer than it is worth before.
_COMPRESSED_FROM = 1000
#: In place of the TTL of a record that was not there.
_ABSENT = -1


class RecordDifference(NamedTuple):
    """The records that a change removed and added; one with another TTL is both."""

    gone: Sequence[ZoneRecord]
    added: Sequence[ZoneRecord]


def pack(gone: Iterable[ZoneRecord], added: Iterable[ZoneRecord],
         between: Callable[[Iterable[Any]], Iterable[Any]] = iter) -> bytes:
    """A difference as octets: none for one without records, else JSON, which is compressed if it is long.

    :param between: *gone* and the like, with turns for others between their items
    """
    texts: list[str] = []
    for side in (gone, added):
        wires_of: dict[tuple[str, str, int | None], list[str]] = {}
        for name, rtype, ttl, wire in between(side):
            wires_of.setdefault((name, rtype, ttl), []).append(wire.hex())
        texts.append(','.join(json.dumps([*key, *wires], separators=(',', ':'))
                              for key, wires in between(wires_of.items())))
    octets = f'[[{texts[0]}],[{texts[1]}]]'.encode() if any(texts) else b''
    return octets if len(octets) < _COMPRESSED_FROM else zlib.compress(octets, 1)


def unpack(octets: bytes, ttl: int | None = None) -> RecordDifference:
    """The inverse of :func:`pack`; *ttl* is in place of None."""
    if not octets:
        return RecordDifference((), ())
    gone, added = json.loads(octets if octets[:1] == b'[' else zlib.decompress(octets))
    return RecordDifference(_records(gone, ttl), _records(added, ttl))


def undo(present: Iterable[ZoneRecord], differences: Iterable[RecordDifference]) -> Iterator[ZoneRecord]:
    """The contents before *differences*, newest first, that led to the *present* ones."""
    former = _former(differences)
    for name, rtype, ttl, wire in present:
        if (name, rtype, wire) not in former:
            yield name, rtype, ttl, wire
    for (name, rtype, wire), ttl in former.items():
        if ttl != _ABSENT:
            yield name, rtype, ttl, wire


def undo_in_order(present: Iterable[tuple[str, str, int | None, bytes, str]], differences: Iterable[RecordDifference],
                  text: Callable[[str, bytes], str]) -> Iterator[tuple[str, str, int | None, str]]:
    """As :func:`undo`, with data as text, in the order of names, types and data.

    :param present: in the order of names and types, each record with its text as well
    :param text: of the data of a type
    """
    former = _former(differences)
    kept = ((name, rtype, data, ttl) for name, rtype, ttl, wire, data in present if (name, rtype, wire) not in former)
    restored = sorted((name, rtype, text(rtype, wire), ttl) for (name, rtype, wire), ttl in former.items()
                      if ttl != _ABSENT)
    for _, same in itertools.groupby(heapq.merge(kept, restored, key=operator.itemgetter(0, 1)),
                                     operator.itemgetter(0, 1)):
        for name, rtype, data, ttl in sorted(same, key=operator.itemgetter(2)):
            yield name, rtype, ttl, data


def _former(differences: Iterable[RecordDifference]) -> dict[tuple[str, str, bytes], int | None]:
    """The TTL before *differences*, newest first, of each record in them."""
    # A record may have got another TTL in between that has the same meaning, so records are known by the rest.
    former: dict[tuple[str, str, bytes], int | None] = {}
    for gone, added in differences:
        former.update(((name, rtype, wire), _ABSENT) for name, rtype, _, wire in added)
        former.update(((name, rtype, wire), ttl) for name, rtype, ttl, wire in gone)
    return former


def _records(sets: Iterable[list[Any]], default: int | None) -> list[ZoneRecord]:
    from_hex = bytes.fromhex
    return [(name, rtype, default if ttl is None else ttl, from_hex(wire))
            for name, rtype, ttl, *wires in sets for wire in wires]
