"""Outcomes of driver calls and polls, and the queue that hands them over in batches."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from designate_pool.model import Outcome, PollResult
from designate_pool.pool_manager.dispatch.server_worker import CallOutcome
from designate_pool.pool_manager.dispatch.work_queue import FRESH

ServerOutcome = CallOutcome | PollResult


def domain_of(outcome: ServerOutcome) -> str:
    """The domain's id."""
    return outcome.operation.domain.id if isinstance(outcome, CallOutcome) else outcome.domain_id


def server_of(outcome: ServerOutcome) -> str:
    """The server's id."""
    return outcome.operation.row.server_id if isinstance(outcome, CallOutcome) else outcome.server_id


def is_success(outcome: ServerOutcome) -> bool:
    return outcome.result.ok if isinstance(outcome, CallOutcome) else outcome.status is Outcome.SUCCESS


class OutcomeQueue:
    """Outcomes that have yet to be handled.

    When a server gets all its zones again, outcomes arrive faster than they are handled.  Those of recent changes are
    handled first.

    :param handle: is called with up to *max_batch* outcomes
    :param max_fresh: domains that are known to have changed recently
    """

    def __init__(self, runtime: Any, handle: Callable[..., None], max_batch: int, max_fresh: int = 10_000) -> None:
        self._max_fresh = max_fresh
        self._queue = runtime.work_queue(handle, max_batch, 'outcomes',
                                         priority=lambda each: self._is_fresh(domain_of(each), time.monotonic()))
        self._fresh: collections.OrderedDict[str, float] = collections.OrderedDict()
        self._lock = threading.Lock()

    def mark_fresh(self, domain_ids: Iterable[str]) -> None:
        """Note that these domains have changed just now."""
        now = time.monotonic()
        with self._lock:
            for domain_id in domain_ids:
                self._fresh[domain_id] = now
                self._fresh.move_to_end(domain_id)
            while self._fresh and (len(self._fresh) > self._max_fresh
                                   or not self._is_fresh(next(iter(self._fresh)), now)):
                self._fresh.popitem(last=False)

    def put(self, *outcomes: ServerOutcome) -> None:
        self._queue.put(*outcomes)

    def __len__(self) -> int:
        return len(self._queue)

    def stop(self) -> None:
        """Handle what is queued, for a few seconds at most, and end."""
        self._queue.stop()

    def _is_fresh(self, domain_id: str, now: float) -> bool:
        changed_at = self._fresh.get(domain_id)
        return changed_at is not None and now - changed_at < FRESH.total_seconds()
