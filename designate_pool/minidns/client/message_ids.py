"""Ids of messages, which nobody can foretell."""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Container

_IDS = struct.Struct('2s' * 2048)


class MessageIds:
    """Random ids, as the two octets that a message begins with.  One thread alone uses it."""

    __slots__ = ('_ids',)

    def __init__(self) -> None:
        self._ids: list[bytes] = []

    def take(self, count: int, used: Container[bytes]) -> list[bytes]:
        """So many distinct ids, none of which is in *used*; there have to be so many."""
        found: dict[bytes, None] = {}
        while len(found) < count:
            if not self._ids:
                self._ids += _IDS.unpack(os.urandom(_IDS.size))
            missing = len(found) - count
            found.update(dict.fromkeys(itertools.filterfalse(used.__contains__, self._ids[missing:])))
            del self._ids[missing:]
        return list(found)
