"""Limits of requests: how many of a client are executed at once, and how many it may send in a second.

A client is a project; while the project of a request is not known, it is the address that sent the request.  Both
limits count in the memory of this process: several API processes count separately.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import ipaddress
import math
import threading
import time
from collections.abc import Callable
from typing import Any

from designate_pool.api.http.envelope import refuse_outside
from designate_pool.errors import OverLimit, PoolError
from designate_pool.settings import ApiSettings

Wsgi = Callable[..., Any]
#: In a request's environment: its :class:`Place`.
PLACE = 'designate_pool.place'
#: Buckets that are kept; the least recently used is dropped first, and starts again full.
MOST_REMEMBERED = 10000
#: Bits of an IPv6 address that are its network: who has one address of it has all (RFC 4291 section 2.5).
_NETWORK = 64


class RequestLimits:
    """WSGI middleware that limits the requests executed at once.

    A request over its client's limit is answered 429 at once, so that threads are free for other clients; one over the
    total waits.

    """

    def __init__(self, app: Wsgi, settings: ApiSettings) -> None:
        self._app = app
        self.per_client = min(settings.threads_per_client or max(settings.threads * 3 // 4, 1), settings.threads)
        self.free = threading.Semaphore(settings.threads)
        self.counts: collections.Counter[str] = collections.Counter()
        self.lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        place = Place(self)
        try:
            place.assign_to(f'address {network_of(environ.get("REMOTE_ADDR", ""))}')
        except PoolError as error:
            return refuse_outside(error, start_response)
        environ[PLACE] = place
        try:
            self.free.acquire()
            place.is_executed = True
            return self._app(environ, start_response)
        finally:
            place.assign_to(None)


@dataclasses.dataclass(eq=False, slots=True)
class Place:
    """The place of one request among those that are executed."""

    limits: RequestLimits
    client: str | None = None
    is_executed: bool = False

    def assign_to(self, client: str | None) -> None:
        """Count the request to *client* and to no other any longer.

        :param client: None makes room for another request: this one has ended, or waits from now on
        :raises OverLimit: when as many of it are executed already as may
        """
        if client is None and self.is_executed:
            self.is_executed = False
            self.limits.free.release()
        counts, former = self.limits.counts, self.client
        with self.limits.lock:
            if client == former:
                return
            if client is not None:
                if counts[client] >= self.limits.per_client:
                    raise OverLimit(limit=f'{self.limits.per_client} of one client at a time', seconds=1)
                counts[client] += 1
            if former is not None:
                counts[former] -= 1
                if not counts[former]:
                    del counts[former]
            self.client = client


@functools.lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """An IPv4 address itself, the network of an IPv6 address; any other text as it is."""
    try:
        parsed = ipaddress.ip_address(address.partition('%')[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped else str(ipaddress.ip_network((int(parsed), _NETWORK), strict=False))


class RateLimits:
    """Requests a second for each client, by token buckets.

    A bucket holds *burst* tokens, each request takes one, and *rate* of them come back every second.

    :param rate: requests a second; 0 for no limit
    :param burst: requests that may come at once
    :param clock: seconds, never going back
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic,
                 remembered: int = MOST_REMEMBERED) -> None:
        self._rate = rate
        self._burst = max(burst, 1)
        self._clock = clock
        self._most_remembered = remembered
        self._buckets: collections.OrderedDict[str, tuple[float, float]] = collections.OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: str) -> None:
        """Count one request of *key*.

        :raises OverLimit: when it is one too many, with the whole seconds after which to try again
        """
        if not self._rate:
            return
        now = self._clock()
        with self._lock:
            level, since = self._buckets.pop(key, (float(self._burst), now))
            level = min(level + (now - since) * self._rate, self._burst)
            allowed = level >= 1
            self._buckets[key] = (level - 1 if allowed else level), now
            if len(self._buckets) > self._most_remembered:
                self._buckets.popitem(last=False)
        if not allowed:
            raise OverLimit(limit=f'{self._rate:g} a second, {self._burst} at once',
                            seconds=max(1, math.ceil((1 - level) / self._rate)))
