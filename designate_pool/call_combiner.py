"""Combines the calls of several threads into one, and their requests into one transaction."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from designate_pool.errors import PoolError

LOG = logging.getLogger(__name__)
K = TypeVar('K')
R = TypeVar('R')
V = TypeVar('V')
#: Seconds after which requests no longer wait for those before them, which may be waiting for a lock.
_PATIENCE = 0.2
#: Seconds that a transaction waits, at most, for as many requests as the one before had.  Clients that repeat requests
#: send the next ones about so much later.
_PAUSE = 0.01
#: Requests of one transaction, at most, and records that a request may concern to be one of them.
_MOST, MOST_RECORDS = 20, 200


class CallCombiner(Generic[K, V]):
    """Calls a function of keys, one call at a time: all callers that come during a call share the next one.

    :param function: returns the values of keys; called in the thread of the first caller that shares the call
    :param patience: seconds after which a call does not wait for the one before, which is held up; nor do those that
        follow.  None for as long as that takes
    :param pause: seconds that a call waits, at most, for as many keys as the one before had.  Whoever calls again as
        soon as there is an answer would otherwise find that the first of them has begun a call of its own
    """

    def __init__(self, function: Callable[[Collection[K]], Mapping[K, V]], patience: float | None = None,
                 pause: float = 0.0) -> None:
        self._function = function
        self._timeout = -1 if patience is None else patience
        self._pause = pause
        self._last_size = 0
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._next: _Batch[K, V] = _Batch(threading.Event())

    def call(self, keys: Collection[K]) -> Mapping[K, V]:
        """The values of *keys* (at least one key) and of other callers' keys, as they are now or later.

        :raises Exception: what the function has raised, to all callers that share the call
        """
        while True:
            with self._lock:
                batch = self._next
                is_first = not batch.keys
                batch.keys.update(dict.fromkeys(keys))
                if batch.complete is not None and len(batch.keys) >= self._last_size:
                    batch.complete.set()
            if is_first:
                self._run_batch(batch)
            else:
                batch.done.wait()
            if batch.error is not None:
                raise batch.error
            if batch.result is not None:  # otherwise the first caller was killed
                return batch.result

    def _run_batch(self, batch: _Batch[K, V]) -> None:
        # Only the first caller takes the lock.  If all did, they would resume one after the other: each green thread
        # that waits for a lock needs a turn of the event loop of its own.
        turn, has_turn = self._turn, False
        try:
            try:
                has_turn = turn.acquire(timeout=self._timeout)  # wait for the call before
                if not has_turn:
                    turn = self._turn = threading.Lock()
                    has_turn = turn.acquire()
                if self._pause:
                    with self._lock:
                        if len(batch.keys) < self._last_size:
                            batch.complete = threading.Event()
                    if batch.complete is not None:
                        batch.complete.wait(self._pause)
                    self._last_size = len(batch.keys)
            finally:
                with self._lock:
                    self._next = _Batch(threading.Event())  # callers that come from now on join this one
            batch.result = self._function(batch.keys)
        except Exception as error:
            batch.error = error
        finally:
            if has_turn:
                turn.release()
            batch.done.set()


@dataclasses.dataclass(slots=True, eq=False)
class _Batch(Generic[K, V]):
    """The keys of one call in the order in which they came, and its result or error.

    :ivar complete: set when there are as many as are waited for; None if none are
    """

    done: threading.Event
    keys: dict[K, None] = dataclasses.field(default_factory=dict)
    complete: threading.Event | None = None
    result: Mapping[K, V] | None = None
    error: Exception | None = None


class RequestCombiner(Generic[R, V]):
    """Makes the changes of requests that come together in one transaction, with fewer statements than one for each.

    :param alone: makes the changes of one request
    :param together: makes those of some of several requests in one transaction, which does not wait long for locks;
        their results, or errors.  When it fails, *alone* is called for each, and recognizes what was committed
    :param key: requests can be in one transaction if they have the same key
    """

    def __init__(self, alone: Callable[[R], V], together: Callable[[Sequence[R]], Mapping[R, V | Exception]],
                 key: Callable[[R], Hashable] = lambda request: None) -> None:
        self._alone = alone
        self._together = together
        self._key = key
        self._calls: CallCombiner[R, V | Exception | None] = CallCombiner(self._call_all, _PATIENCE, _PAUSE)

    def call(self, request: R, is_alone: bool = False) -> V:
        """The result of *request*.

        :param request: compared by identity
        :param is_alone: whether it gets a transaction of its own, as one has to that writes more than *together* checks
        :raises Exception: as *alone*
        """
        if is_alone:
            return self._alone(request)
        result = self._calls.call([request])[request]
        if isinstance(result, Exception):
            raise result
        return self._alone(request) if result is None else result

    def _call_all(self, requests: Collection[R]) -> dict[R, V | Exception | None]:
        """The result or the error of each request, or None for one that *alone* has to be called for."""
        if len(requests) == 1:
            return {request: self._alone(request) for request in requests}
        results: dict[R, V | Exception | None] = dict.fromkeys(requests)
        by_key: dict[Hashable, list[R]] = {}
        for request in requests:
            by_key.setdefault(self._key(request), []).append(request)
        for alike in by_key.values():
            for start in range(0, len(alike), _MOST):
                batch = alike[start:start + _MOST]
                if len(batch) > 1:
                    results.update(self._try_together(batch))
        return results

    def _try_together(self, requests: Sequence[R]) -> Mapping[R, V | Exception]:
        try:
            return self._together(requests)
        except Exception as error:  # raised again for the request that it is about
            is_known = isinstance(error, PoolError)
            LOG.log(logging.INFO if is_known else logging.WARNING, '%d requests are carried out one by one, since '
                    'together they failed: %s', len(requests), error, exc_info=not is_known)
            return {}
