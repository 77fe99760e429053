"""A server that is not there: for tests, rehearsals and trying out configurations.

It holds zones as names in memory and records each call.  What an operation does is a word, the same in the
configuration and in :meth:`Fake.behave`:

``succeed``; ``fail``, which a retry may mend; ``refuse``, which none can; ``unreachable``; ``hang`` until the deadline;
``lie``, which says success and does nothing.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Collection
from typing import ClassVar

from designate_pool import model
from designate_pool.backends.base import Backend
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, InvalidField

BEHAVIOURS = ('succeed', 'fail', 'refuse', 'unreachable', 'hang', 'lie')
OPERATIONS = ('create', 'delete', 'refetch', 'list', 'ping')


@dataclasses.dataclass(frozen=True)
class FakeCall:
    """One call that the server got; *name* is empty where it was about no zone."""

    operation: str
    name: str = ''
    generation: int = 0


class Fake(Backend):
    """The server.

    :ivar calls: every call so far, in order
    :ivar zones: the names that it holds
    """

    OPTIONS: ClassVar[tuple[model.Option, ...]] = tuple(
        model.Option(f'on_{operation}', f"What '{operation}' does: one of {', '.join(BEHAVIOURS)}.", default='succeed')
        for operation in OPERATIONS) + (
        model.Option('serves', 'Whether a created zone counts as served at once.', 'bool', False),)

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        self.capabilities = dataclasses.replace(self.capabilities, serves_on_create=bool(self.options['serves']))
        self.calls: list[FakeCall] = []
        self.zones: set[str] = set()
        self._lock = threading.Lock()
        self._awake = threading.Event()
        self._behaviours: dict[str, tuple[str, int | None]] = {}
        for operation in OPERATIONS:
            self.behave(operation, self.options[f'on_{operation}'])

    def behave(self, operation: str, behaviour: str, times: int | None = None) -> None:
        """From now on *operation* does this: for the next *times* calls and then succeeds, or for good.

        :raises InvalidField: for words that are not known
        """
        if operation not in OPERATIONS:
            raise InvalidField(field='operation', why=f"'{operation}' is unknown; there are {', '.join(OPERATIONS)}")
        if behaviour not in BEHAVIOURS:
            raise InvalidField(field=f'on_{operation}',
                               why=f"'{behaviour}' is unknown; there are {', '.join(BEHAVIOURS)}")
        with self._lock:
            self._behaviours[operation] = (behaviour, times)

    def forget_zones(self) -> None:
        """Lose every zone, as a server does that was set up anew."""
        with self._lock:
            self.zones.clear()

    def close(self) -> None:
        """End the calls that hang."""
        self._awake.set()
        self._awake = threading.Event()

    def _create(self, domain: model.Domain, deadline: Deadline) -> None:
        if self._effective(FakeCall('create', domain.name, domain.generation), deadline):
            with self._lock:
                self.zones.add(domain.name)

    def _delete(self, domain: model.Domain, deadline: Deadline) -> None:
        if self._effective(FakeCall('delete', domain.name, domain.generation), deadline):
            with self._lock:
                self.zones.discard(domain.name)

    def _refetch(self, domain: model.Domain, deadline: Deadline) -> None:
        self._effective(FakeCall('refetch', domain.name, domain.generation), deadline)

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[dict[str, int | None], bool]:
        self._effective(FakeCall('list'), deadline)
        with self._lock:
            return dict.fromkeys(self.zones), True

    def _ping(self, deadline: Deadline) -> None:
        self._effective(FakeCall('ping'), deadline)

    def _effective(self, call: FakeCall, deadline: Deadline) -> bool:
        """Record *call* and behave; whether it is to have an effect."""
        behaviour = self._record(call)
        if behaviour == 'fail':
            raise BackendError(why='the fake server fails, as it was told to')
        if behaviour == 'refuse':
            raise BackendRefused(why='the fake server refuses, as it was told to')
        if behaviour == 'unreachable':
            raise BackendUnreachable(why='the fake server cannot be reached, as it was told')
        if behaviour == 'hang':
            self._awake.wait(deadline.left())
            raise TimeoutError
        return behaviour == 'succeed'

    def _record(self, call: FakeCall) -> str:
        with self._lock:
            self.calls.append(call)
            behaviour, times = self._behaviours[call.operation]
            if times is not None:
                left = times - 1
                self._behaviours[call.operation] = (behaviour, left) if left > 0 else ('succeed', None)
        return behaviour
