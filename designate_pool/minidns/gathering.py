"""Reading for several callers at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

K = TypeVar('K')
V = TypeVar('V')


class Gathering(Generic[K, V]):
    """Reads by key, one read at a time: all who ask while one is under way share the next.

    :param read: what is found for keys; called by whichever caller comes first
    """

    def __init__(self, read: Callable[[Collection[K]], Mapping[K, V]]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._next: _Batch[K, V] = _Batch()

    def get(self, keys: Collection[K]) -> Mapping[K, V]:
        """What is there for *keys*, and for keys of others, as it is now or later.

        :raises Exception: what the read has raised, to all who share it
        """
        with self._lock:
            batch = self._next
            batch.keys.update(keys)
        with self._reading:
            if batch.found is None and batch.error is None:
                self._fill(batch)
        if batch.error is not None:
            raise batch.error
        assert batch.found is not None
        return batch.found

    def _fill(self, batch: _Batch[K, V]) -> None:
        with self._lock:
            if self._next is batch:
                self._next = _Batch()
        try:
            batch.found = self._read(batch.keys)
        except Exception as error:
            batch.error = error


class _Batch(Generic[K, V]):
    """The keys of one read, and what has become of it."""

    __slots__ = ('keys', 'found', 'error')

    def __init__(self) -> None:
        self.keys: set[K] = set()
        self.found: Mapping[K, V] | None = None
        self.error: Exception | None = None
