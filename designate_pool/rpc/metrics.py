"""Metrics of calls and casts, as seen by the caller."""

from __future__ import annotations

import functools
import time
from typing import Any

from designate_pool import metrics
from designate_pool.errors import PoolError

OK, REFUSED, FAILED = 'ok', 'refused', 'failed'
#: Ends the service's name in a topic whose messages are shared by all processes of a service that has a first one.
SPREAD = '-spread'


class _Call:
    """A context manager around one call."""

    __slots__ = ('_meters', '_started')

    def __init__(self, meters: dict[str, Any]) -> None:
        self._meters = meters

    def __enter__(self) -> None:
        self._started = time.monotonic()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._meters['seconds'].observe(time.monotonic() - self._started)
        self._meters[_outcome(error)].inc()


class _Cast:
    """A context manager around one cast."""

    __slots__ = ('_meters',)

    def __init__(self, meters: dict[str, Any]) -> None:
        self._meters = meters

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._meters[_outcome(error)].inc()


def call(topic: str, method: str) -> _Call:
    return _Call(_call_meters(topic, method))


def cast(topic: str, method: str) -> _Cast:
    return _Cast(_cast_meters(topic, method))


def _outcome(error: BaseException | None) -> str:
    """REFUSED for an error in the request; FAILED for one in the service or the connection."""
    if error is None:
        return OK
    return REFUSED if isinstance(error, PoolError) and error.code < 500 else FAILED


@functools.lru_cache(1024)
def _call_meters(topic: str, method: str) -> dict[str, Any]:
    service = _service(topic)
    return {'seconds': metrics.RPC_SECONDS.labels(service, method),
            **{outcome: metrics.RPC_CALLS.labels(service, method, outcome) for outcome in (OK, REFUSED, FAILED)}}


@functools.lru_cache(1024)
def _cast_meters(topic: str, method: str) -> dict[str, Any]:
    service = _service(topic)
    return {outcome: metrics.RPC_CASTS.labels(service, method, outcome) for outcome in (OK, REFUSED, FAILED)}


def _service(topic: str) -> str:
    return topic.partition('.')[0].removesuffix(SPREAD)
