"""Combines the reads of several callers into one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

K = TypeVar('K')
V = TypeVar('V')


class BatchLoader(Generic[K, V]):
    """Reads by key, one read at a time: all callers that come during a read share the next one.

    :param read: reads the values of keys; called in the thread of the batch's first caller
    """

    def __init__(self, read: Callable[[Collection[K]], Mapping[K, V]]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._next: _Batch[K, V] = _Batch()

    def get(self, keys: Collection[K]) -> Mapping[K, V]:
        """The values of *keys* (at least one key) and of other callers' keys, as they are now or later.

        :raises Exception: what the read has raised, to all callers that share it
        """
        while True:
            with self._lock:
                batch = self._next
                is_first = not batch.keys
                batch.keys.update(keys)
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
        try:
            with self._reading:
                self._close_batch(batch)
                batch.result = self._read(batch.keys)
        except Exception as error:
            batch.error = error
        finally:
            self._close_batch(batch)
            batch.done.set()

    def _close_batch(self, batch: _Batch[K, V]) -> None:
        """Callers that come from now on join a new batch."""
        with self._lock:
            if self._next is batch:
                self._next = _Batch()


class _Batch(Generic[K, V]):
    """The keys of one read, and its result or error."""

    __slots__ = ('keys', 'result', 'error', 'done')

    def __init__(self) -> None:
        self.keys: set[K] = set()
        self.result: Mapping[K, V] | None = None
        self.error: Exception | None = None
        self.done = threading.Event()
