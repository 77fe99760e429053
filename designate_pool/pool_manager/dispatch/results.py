"""Outcomes of driver calls and polls, and the queue that hands them over in batches."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from designate_pool.model import Outcome, PollResult
from designate_pool.pool_manager.dispatch.operation import RECENT
from designate_pool.pool_manager.dispatch.server_worker import CallOutcome

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
    :param max_recent: domains that are known to have changed recently
    """

    def __init__(self, runtime: Any, handle: Callable[..., None], max_batch: int, max_recent: int = 10_000) -> None:
        self._max_recent = max_recent
        self._queue = runtime.work_queue(handle, max_batch, 'outcomes',
                                         priority=lambda each: self._is_recent(domain_of(each), time.monotonic()))
        self._recent: collections.OrderedDict[str, float] = collections.OrderedDict()
        self._lock = threading.Lock()

    def mark_recent(self, domain_ids: Iterable[str]) -> None:
        """Note that these domains have changed just now."""
        now = time.monotonic()
        with self._lock:
            for domain_id in domain_ids:
                self._recent[domain_id] = now
                self._recent.move_to_end(domain_id)
            while self._recent and (len(self._recent) > self._max_recent
                                    or not self._is_recent(next(iter(self._recent)), now)):
                self._recent.popitem(last=False)

    def put(self, *outcomes: ServerOutcome) -> None:
        self._queue.put(*outcomes)

    def __len__(self) -> int:
        return len(self._queue)

    def stop(self) -> None:
        """Handle what is queued, for a few seconds at most, and end."""
        self._queue.stop()

    def _is_recent(self, domain_id: str, now: float) -> bool:
        changed_at = self._recent.get(domain_id)
        return changed_at is not None and now - changed_at < RECENT.total_seconds()
