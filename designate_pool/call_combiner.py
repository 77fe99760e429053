"""Combines the calls of several threads into one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

K = TypeVar('K')
V = TypeVar('V')


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
        self._next: _Batch[K, V] = _Batch()

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
        turn = None
        try:
            turn = self._take_turn()
            if self._pause:
                self._await_keys(batch)
            self._close_batch(batch)
            batch.result = self._function(batch.keys)
        except Exception as error:
            batch.error = error
        finally:
            if turn is not None:
                turn.release()
            self._close_batch(batch)
            batch.done.set()

    def _take_turn(self) -> threading.Lock:
        """Wait for the call before; the lock that the next call waits for."""
        turn = self._turn
        if not turn.acquire(timeout=self._timeout):
            turn = self._turn = threading.Lock()
            turn.acquire()
        return turn

    def _await_keys(self, batch: _Batch[K, V]) -> None:
        with self._lock:
            if len(batch.keys) < self._last_size:
                batch.complete = threading.Event()
        if batch.complete is not None:
            batch.complete.wait(self._pause)
        self._last_size = len(batch.keys)

    def _close_batch(self, batch: _Batch[K, V]) -> None:
        """Callers that come from now on join a new batch."""
        with self._lock:
            if self._next is batch:
                self._next = _Batch()


class _Batch(Generic[K, V]):
    """The keys of one call in the order in which they came, and its result or error.

    :ivar complete: set when there are as many as are waited for; None if none are
    """

    __slots__ = ('keys', 'complete', 'result', 'error', 'done')

    def __init__(self) -> None:
        self.keys: dict[K, None] = {}
        self.complete: threading.Event | None = None
        self.result: Mapping[K, V] | None = None
        self.error: Exception | None = None
        self.done = threading.Event()
