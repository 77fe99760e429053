"""Reading for several callers at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

K = TypeVar('K')
V = TypeVar('V')


class BatchLoader(Generic[K, V]):
    """Reads by key, one read at a time: all who ask while one is under way share the next.

    :param read: what is found for keys; called by whichever caller comes first
    """

    def __init__(self, read: Callable[[Collection[K]], Mapping[K, V]]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._next: _Batch[K, V] = _Batch()

    def get(self, keys: Collection[K]) -> Mapping[K, V]:
        """What is there for *keys*, one at least, and for keys of others, as it is now or later.

        :raises Exception: what the read has raised, to all who share it
        """
        while True:
            with self._lock:
                batch = self._next
                is_first = not batch.keys
                batch.keys.update(keys)
            if is_first:
                self._fill(batch)
            else:
                batch.over.wait()
            if batch.error is not None:
                raise batch.error
            if batch.found is not None:  # else who came first was ended
                return batch.found

    def _fill(self, batch: _Batch[K, V]) -> None:
        # Only who comes first takes the lock.  If all did, they would go on one by one: a green thread that has waited
        # for a lock goes on in a turn of its own of the loop.
        try:
            with self._reading:
                self._begin_next(batch)
                batch.found = self._read(batch.keys)
        except Exception as error:
            batch.error = error
        finally:
            self._begin_next(batch)
            batch.over.set()

    def _begin_next(self, batch: _Batch[K, V]) -> None:
        """Whoever comes from now on is not with *batch*."""
        with self._lock:
            if self._next is batch:
                self._next = _Batch()


class _Batch(Generic[K, V]):
    """The keys of one read, and what has become of it."""

    __slots__ = ('keys', 'found', 'error', 'over')

    def __init__(self) -> None:
        self.keys: set[K] = set()
        self.found: Mapping[K, V] | None = None
        self.error: Exception | None = None
        self.over = threading.Event()
