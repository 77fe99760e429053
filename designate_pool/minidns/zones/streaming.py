"""Where the contents of a transfer come from: they are kept, or read and then kept, or read while they are sent.

What is not kept is read and packed, and gathered as long as the budget has room for it.  A zone for which it has none
is sent while it is read, so that no more than a page of it is in memory.  Meanwhile it holds a connection to the
database; so only a few are sent in this way at the same time, the others wait, and whatever fits into one message needs
no turn.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterator

from designate_pool.errors import ServiceUnavailable
from designate_pool.minidns.zones.packing import ROOM, Body, PackedZone, StreamedZone
from designate_pool.minidns.zones.zone_cache import LruSet, ZoneCache

Open = Callable[[], StreamedZone | None]

#: Seconds that a transfer waits for its turn.
PATIENCE = 60.0


class ZoneSource:
    """The contents of zones.

    :param turns: zones that are sent while they are read, at the same time
    """

    def __init__(self, kept: ZoneCache, turns: int) -> None:
        self._kept = kept
        self._turns = threading.BoundedSemaphore(turns)
        # Known to be too large to be kept; what is forgotten is found anew.
        self._large = LruSet()

    def get(self, key: str, serial: int, open: Open) -> PackedZone | StreamedZone | None:
        """The zone of *key* at *serial*, or what *open* gives; None where that is None.

        :raises ServiceUnavailable: when it has to be sent while it is read, and its turn does not come
        :raises Exception: what reading it raises
        """
        kept = self._kept.get(key, serial)
        if kept is not None:
            return kept
        with self._kept.alone(key):  # the others that ask for it now find it kept, or known to be too large
            kept = self._kept.get(key, serial)
            if kept is not None:
                return kept
            if key not in self._large:
                zone = open()
                found = None if zone is None else self._gather(key, zone)
                if zone is None or found is not None:
                    return found
        return self._in_turn(key, open)

    def _gather(self, key: str, zone: StreamedZone) -> PackedZone | StreamedZone | None:
        """*zone*, to be kept if there is room for all of it; None when it must be sent as it comes, and not now."""
        bodies: collections.deque[Body] = collections.deque()
        size = reserved = 0
        try:
            for body in zone.bodies:
                octets = len(body[1])
                if reserved == size and self._kept.reserve(octets):
                    reserved += octets
                size += octets
                bodies.append(body)
                if reserved < size and size > ROOM:
                    if size > self._kept.budget:
                        self._large.add(key)
                    if not self._turns.acquire(blocking=False):
                        zone.close()
                        return None
                    streamed, reserved = self._streamed(key, zone, bodies, reserved), 0
                    return streamed
        except BaseException:  # whoever ends it, a reading that is left open holds its connection
            zone.close()
            raise
        finally:
            self._kept.release(reserved)
        packed = PackedZone(zone.domain_id, zone.name, zone.pool_name, zone.serial, tuple(bodies))
        self._kept.put(key, packed)
        return packed

    def _in_turn(self, key: str, open: Open) -> StreamedZone | None:
        if not self._turns.acquire(timeout=PATIENCE):
            raise ServiceUnavailable(service='the database', why='too many large zones are read from it')
        zone = None
        try:
            zone = open()
        finally:
            if zone is None:
                self._turns.release()
        return None if zone is None else self._streamed(key, zone, collections.deque(), 0)

    def _streamed(self, key: str, zone: StreamedZone, ahead: collections.deque[Body], reserved: int) -> StreamedZone:
        """*zone* with what was read of it *ahead*, for which room is *reserved*, whose end is the end of its turn."""
        def bodies() -> Iterator[Body]:
            size = 0
            for body in itertools.chain(_taken(ahead), zone.bodies):
                size += len(body[1])
                yield body
            if size <= self._kept.budget:
                self._large.discard(key)

        def close() -> None:
            zone.close()
            self._kept.release(reserved)
            self._turns.release()

        return dataclasses.replace(zone, bodies=bodies(), close=close)


def _taken(ahead: collections.deque[Body]) -> Iterator[Body]:
    while ahead:
        yield ahead.popleft()
