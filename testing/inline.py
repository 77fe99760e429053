"""A runtime without concurrency: work is done when it is handed in."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any

from designate_pool.concurrency import WorkQueue
from designate_pool.runtime import Threads


class Done:
    """A loop that has ended already."""

    def join(self, timeout: float | None = None) -> None:
        return


class InlineQueue(WorkQueue):
    """Handles what is put before ``put`` returns; the handler's exceptions are the caller's."""

    def put(self, *items: Any) -> int:
        count = super().put(*items)
        while batch := self._take():
            self._handle(batch)
        return count


class _InlineWorkers:
    def submit(self, work: Callable[..., Any], *args: Any) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            future.set_result(work(*args))
        except BaseException as error:  # as a worker's
            future.set_exception(error)
        return future

    def stop(self) -> None:
        return


class Inline(Threads):
    """Everything is done when the call returns, but for native threads.  Do not start loops that do not end."""

    name = 'inline'

    @staticmethod
    def spawn(work: Callable[..., Any], *args: Any, name: str) -> Any:
        work(*args)
        return Done()

    def work_queue(self, handle: Callable[[list[Any]], None], max_batch: int, name: str, **options: Any) -> WorkQueue:
        return InlineQueue(handle, max_batch, lambda loop: Done(), name, **options)

    def workers(self, size: int, name: str) -> Any:
        return _InlineWorkers()
