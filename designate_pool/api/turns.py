"""The queue of requests that wait for a worker: all who ask have their turns, whoever asks most."""

from __future__ import annotations

import collections
from typing import Any


class Turns:
    """A queue in which addresses take turns, and the tokens of an address among themselves.

    An address or a token with a thousand requests in it keeps the next one waiting for one of them, not for all.
    """

    def __init__(self) -> None:
        self._waiting: collections.OrderedDict[str, collections.OrderedDict[str, collections.deque[Any]]] = \
            collections.OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, task: Any) -> None:
        """
        :param task: one of waitress's channels, with at least one request
        """
        address = str(task.addr[0])
        token = task.requests[0].headers.get('X_AUTH_TOKEN', '')
        self._waiting.setdefault(address, collections.OrderedDict()).setdefault(token, collections.deque()).append(task)
        self._count += 1

    def popleft(self) -> Any:
        """
        :raises KeyError: when it is empty
        """
        address, tokens = self._waiting.popitem(last=False)
        token, queue = tokens.popitem(last=False)
        task = queue.popleft()
        if queue:
            tokens[token] = queue
        if tokens:
            self._waiting[address] = tokens
        self._count -= 1
        return task
