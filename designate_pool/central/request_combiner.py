"""Carries out requests that come together in one transaction, which has fewer statements than one for each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

from designate_pool.call_combiner import CallCombiner
from designate_pool.errors import PoolError

LOG = logging.getLogger(__name__)
R = TypeVar('R')
V = TypeVar('V')
#: Seconds after which requests no longer wait for those before them, which may be waiting for a lock.
_PATIENCE = 0.2
#: Seconds that a transaction waits, at most, for as many requests as the one before had.  Clients that repeat requests
#: send the next ones about so much later.
_PAUSE = 0.01
#: Requests of one transaction, at most, and records that a request may concern to be one of them.
_MOST, MOST_RECORDS = 20, 200


class RequestCombiner(Generic[R, V]):
    """Carries out one request at once, and those that come meanwhile together.

    :param alone: carries out one request
    :param together: carries out some of several requests in one transaction, which does not wait long for locks; their
        results, or errors.  When it fails, each is carried out alone, and those that it did carry out are recognized
    :param key: requests are carried out together if they have the same
    """

    def __init__(self, alone: Callable[[R], V], together: Callable[[Sequence[R]], Mapping[R, V | Exception]],
                 key: Callable[[R], Hashable]) -> None:
        self._alone = alone
        self._together = together
        self._key = key
        self._calls: CallCombiner[R, V | Exception | None] = CallCombiner(self._carry_out, _PATIENCE, _PAUSE)

    def carry_out(self, request: R) -> V:
        """The result of *request*.

        :param request: compared by identity
        :raises Exception: as *alone*
        """
        found = self._calls.call([request])[request]
        if isinstance(found, Exception):
            raise found
        return self._alone(request) if found is None else found

    def _carry_out(self, requests: Collection[R]) -> dict[R, V | Exception | None]:
        """What becomes of each: a result, an error, or None for one that is to be carried out alone."""
        if len(requests) == 1:
            return {request: self._alone(request) for request in requests}
        found: dict[R, V | Exception | None] = dict.fromkeys(requests)
        alike: dict[Hashable, list[R]] = {}
        for request in requests:
            alike.setdefault(self._key(request), []).append(request)
        for every in alike.values():
            for start in range(0, len(every), _MOST):
                some = every[start:start + _MOST]
                if len(some) > 1:
                    found.update(self._try_together(some))
        return found

    def _try_together(self, requests: Sequence[R]) -> Mapping[R, V | Exception]:
        try:
            return self._together(requests)
        except Exception as error:  # found again for the request that it is about
            is_known = isinstance(error, PoolError)
            LOG.log(logging.INFO if is_known else logging.WARNING, '%d requests are carried out one by one, since '
                    'together they failed: %s', len(requests), error, exc_info=not is_known)
            return {}
