"""What was heard from a server, of a driver's call or a poll: whom it is about, if it is good, and whose turn it is."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from designate_pool.model import Outcome, PollResult
from designate_pool.pool_manager.dispatch.server_worker import CallOutcome
from designate_pool.pool_manager.dispatch.work_queue import FRESH

Heard = CallOutcome | PollResult

#: Domains that are remembered to have changed just now.
_MOST = 10_000


def domain_of(heard: Heard) -> str:
    """The domain's id."""
    return heard.work.domain.id if isinstance(heard, CallOutcome) else heard.domain_id


def server_of(heard: Heard) -> str:
    """The server's id."""
    return heard.work.row.server_id if isinstance(heard, CallOutcome) else heard.server_id


def is_success(heard: Heard) -> bool:
    return heard.result.ok if isinstance(heard, CallOutcome) else heard.status is Outcome.SUCCESS


class OutcomeQueue:
    """What was heard and has yet to be settled.

    Servers that are filled again are heard of far sooner than that can be settled.  What is about a change of now does
    not wait behind it: it has a loop of its own.

    :param settle: gets up to *most* at a time
    """

    def __init__(self, runtime: Any, settle: Callable[..., None], most: int) -> None:
        self._current = runtime.batches(settle, most, name='outcomes of now')
        self._others = runtime.batches(settle, most, name='outcomes')
        self._fresh: collections.OrderedDict[str, float] = collections.OrderedDict()
        self._lock = threading.Lock()

    def begun(self, domain_ids: Iterable[str]) -> None:
        """These domains have changed just now; whoever settles for one of them says so again."""
        now = time.monotonic()
        with self._lock:
            for domain_id in domain_ids:
                self._fresh[domain_id] = now
                self._fresh.move_to_end(domain_id)
            while self._fresh and (len(self._fresh) > _MOST or not self._is_fresh(next(iter(self._fresh)), now)):
                self._fresh.popitem(last=False)

    def put(self, *heard: Heard) -> None:
        now = time.monotonic()
        current: list[Heard] = []
        others: list[Heard] = []
        for each in heard:
            (current if self._is_fresh(domain_of(each), now) else others).append(each)
        for queue, some in ((self._current, current), (self._others, others)):
            if some:
                queue.put(*some)

    def __len__(self) -> int:
        return len(self._current) + len(self._others)

    def stop(self) -> None:
        """Settle what is waiting, for a few seconds at most, and end."""
        self._current.stop()
        self._others.stop()

    def _is_fresh(self, domain_id: str, now: float) -> bool:
        begun = self._fresh.get(domain_id)
        return begun is not None and now - begun < FRESH.total_seconds()
