"""The queue of requests that wait for a worker: clients take turns, and none of them holds all workers.

A client is a token; without a token the project that the request names; else its address.  Once the token's project is
known (:meth:`Turn.assign_to`), all tokens of that project are one client.  A client holds ``most`` workers at a time,
and an address with all its clients ``most_of_address``: further requests wait even while workers are idle, so that
another client gets one at once.  The IPv6 addresses of one network count as one.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import threading
from collections.abc import Iterator
from typing import Any

from designate_pool.api.http.client_network import network_of

#: In a request's environment: its :class:`Turn`.
TURN = 'designate_pool.turn'
#: Tokens whose project is remembered; the least recently used is forgotten first.
MOST_REMEMBERED = 10000


class FairQueue:
    """A queue in which addresses take turns, and the tokens of an address among themselves.

    A new client waits for one request of an address or token that has a thousand queued, not for all.  Methods are
    called with *changed* held, as waitress does; those of :class:`Turn` without it.

    :param changed: notified when a request may be taken that could not be before
    :param most: workers that one client holds at a time
    :param most_of_address: workers that all clients of one address hold together
    """

    def __init__(self, changed: threading.Condition, most: int, most_of_address: int,
                 remembered: int = MOST_REMEMBERED) -> None:
        self.changed = changed
        self._most = most
        self._most_of_address = most_of_address
        self._most_remembered = remembered
        self._waiting: collections.OrderedDict[str, collections.OrderedDict[str, collections.deque[Any]]] = \
            collections.OrderedDict()
        self._count = 0
        self._held: collections.Counter[str] = collections.Counter()
        self._clients: collections.OrderedDict[str, str] = collections.OrderedDict()

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        """Whether a request may be taken now."""
        return self._next() is not None

    def append(self, task: Any) -> None:
        """
        :param task: one of waitress's channels, with at least one request
        """
        address = f'address {network_of(task.addr[0])}'
        queues = self._waiting.setdefault(address, collections.OrderedDict())
        queues.setdefault(_sender(task.requests[0].headers) or address, collections.deque()).append(task)
        self._count += 1

    def popleft(self) -> Turn:
        """
        :raises KeyError: when none may be taken now
        """
        found = self._next()
        if found is None:
            raise KeyError('nothing to be taken')
        address, sender = found
        queues = self._waiting.pop(address)
        queue = queues.pop(sender)
        task = queue.popleft()
        if queue:
            queues[sender] = queue
        if queues:
            self._waiting[address] = queues
        self._count -= 1
        turn = Turn(self, task, address, sender, self._client(sender))
        self.hold(turn)
        return turn

    def hold(self, turn: Turn) -> None:
        self._held.update(turn.holders)

    def release(self, turn: Turn) -> None:
        for each in turn.holders:
            self._held[each] -= 1
            if not self._held[each]:
                del self._held[each]
        if self:
            self.changed.notify()

    def remember(self, sender: str, client: str) -> None:
        self._clients[sender] = client
        self._clients.move_to_end(sender)
        if len(self._clients) > self._most_remembered:
            self._clients.popitem(last=False)

    def _next(self) -> tuple[str, str] | None:
        """The address and sender whose turn it is, of those below their limits."""
        for address, queues in self._waiting.items():
            if self._held[_address_total(address)] < self._most_of_address:
                for sender in queues:
                    if self._held[self._client(sender)] < self._most:
                        return address, sender
        return None

    def _client(self, sender: str) -> str:
        return self._clients.get(sender, sender)


class Turn:
    """A request that a worker has.

    :param task: as in :meth:`FairQueue.append`
    :param sender: the token that came with it, or the project it names
    :ivar client: to which it counts
    """

    def __init__(self, queue: FairQueue, task: Any, address: str, sender: str, client: str) -> None:
        self._queue = queue
        self.task = task
        self._address = address
        self._sender = sender
        self.client = client

    @property
    def holders(self) -> tuple[str, str]:
        return self.client, _address_total(self._address)

    def service(self) -> None:
        """Carry the request out."""
        self.task.requests[0].turn = self
        try:
            self.task.service()
        finally:
            with self._queue.changed:
                self._queue.release(self)

    def cancel(self) -> None:
        self.task.cancel()

    def assign_to(self, client: str) -> None:
        """Count it to *client*, now that the owner of the token is known."""
        if client != self.client:
            with self._queue.changed:
                self._queue.remember(self._sender, client)
                self._queue.release(self)
                self.client = client
                self._queue.hold(self)

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """Within, it counts to no client: another worker replaces the one that has it."""
        with self._queue.changed:
            self._queue.release(self)
        try:
            yield
        finally:
            with self._queue.changed:
                self._queue.hold(self)


def _sender(headers: Any) -> str | None:
    secret = headers.get('X_AUTH_TOKEN') or headers.get('AUTHORIZATION')
    if secret:
        return f'token {hashlib.sha256(secret.encode()).hexdigest()}'
    project = headers.get('X_PROJECT_ID')
    return f'named {project}' if project else None


def _address_total(address: str) -> str:
    return f'all of {address}'
