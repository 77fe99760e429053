"""The source of a transfer's contents: the cache, the database into the cache, or the database as a stream.

A zone that is not cached is read, packed and buffered while the cache's budget has room for it.  A zone that does not
fit is sent while it is read, so that only a page of it is in memory.  It holds a database connection meanwhile, so the
number of such streams is limited and others wait for a slot; what fits into one message needs no slot.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterator

from designate_pool.errors import ServiceUnavailable
from designate_pool.minidns.zones.packed_zone import ROOM, Body, PackedZone, StreamedZone
from designate_pool.minidns.zones.zone_cache import BoundedSet, ZoneCache

OpenZone = Callable[[], StreamedZone | None]


class ZoneSource:
    """Gives the contents of zones.

    :param max_streams: zones that may be sent while they are read, at the same time
    :param slot_timeout: seconds that a transfer waits for a slot
    """

    def __init__(self, cache: ZoneCache, max_streams: int, slot_timeout: float = 60.0) -> None:
        self._cache = cache
        self._slot_timeout = slot_timeout
        self._stream_slots = threading.BoundedSemaphore(max_streams)
        self._exceeding_cache = BoundedSet()  # zones known to be larger than the cache

    def get(self, key: str, serial: int, open_zone: OpenZone) -> PackedZone | StreamedZone | None:
        """The zone of *key* at *serial* from the cache, or else from *open_zone*; None where that returns None.

        :raises ServiceUnavailable: when the zone has to be streamed, and no slot becomes free in time
        :raises Exception: what reading it raises
        """
        cached = self._cache.get(key, serial)
        if cached is not None:
            return cached
        with self._cache.lock_key(key):  # callers that wait here find it cached, or known to be too large
            cached = self._cache.get(key, serial)
            if cached is not None:
                return cached
            if key not in self._exceeding_cache:
                zone = open_zone()
                if zone is None:
                    return None
                cached_or_stream = self._read_into_cache(key, zone)
                if cached_or_stream is not None:
                    return cached_or_stream
        return self._stream_when_free(key, open_zone)

    def _read_into_cache(self, key: str, zone: StreamedZone) -> PackedZone | StreamedZone | None:
        """Read *zone* into the cache; the rest as a stream if it does not fit; None when it needs a slot and none is
        free."""
        bodies: collections.deque[Body] = collections.deque()
        size = reserved = 0
        try:
            for body in zone.bodies:
                length = len(body[1])
                if reserved == size and self._cache.reserve(length):
                    reserved += length
                size += length
                bodies.append(body)
                if reserved < size and size > ROOM:
                    if size > self._cache.budget:
                        self._exceeding_cache.add(key)
                    if not self._stream_slots.acquire(blocking=False):
                        zone.close()
                        return None
                    streamed, reserved = self._with_buffered(key, zone, bodies, reserved), 0
                    return streamed
        except BaseException:  # also when the thread is killed: an open read holds a connection
            zone.close()
            raise
        finally:
            self._cache.release(reserved)
        packed = PackedZone(zone.domain_id, zone.name, zone.serial, tuple(bodies))
        self._cache.put(key, packed)
        return packed

    def _stream_when_free(self, key: str, open_zone: OpenZone) -> StreamedZone | None:
        if not self._stream_slots.acquire(timeout=self._slot_timeout):
            raise ServiceUnavailable(service='the database', why='too many large zones are read from it')
        zone = None
        try:
            zone = open_zone()
        finally:
            if zone is None:
                self._stream_slots.release()
        return None if zone is None else self._with_buffered(key, zone, collections.deque(), 0)

    def _with_buffered(self, key: str, zone: StreamedZone, buffered: collections.deque[Body],
                       reserved: int) -> StreamedZone:
        """*zone* preceded by the bodies already read; closing it frees the slot and the *reserved* octets."""
        def bodies() -> Iterator[Body]:
            size = 0
            for body in itertools.chain(_drain(buffered), zone.bodies):
                size += len(body[1])
                yield body
            if size <= self._cache.budget:
                self._exceeding_cache.discard(key)

        def close() -> None:
            zone.close()
            self._cache.release(reserved)
            self._stream_slots.release()

        return dataclasses.replace(zone, bodies=bodies(), close=close)


def _drain(buffered: collections.deque[Body]) -> Iterator[Body]:
    while buffered:
        yield buffered.popleft()
