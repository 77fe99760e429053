"""A simulated server: for tests, rehearsals and trying out configurations.

It has names of zones in memory and records each call.  The behaviour of each operation is a word, explained in
:mod:`designate_pool.planner.targets.fake`.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Collection
from typing import ClassVar

from designate_pool import model
from designate_pool.backends.base import Backend
from designate_pool.deadline import Deadline
from designate_pool.planner.targets.fake import BEHAVIOURS, SimulatedServer

OPERATIONS = ('create', 'delete', 'refetch', 'list', 'ping')


@dataclasses.dataclass(frozen=True)
class FakeCall:
    """One call of the driver; *name* is empty for a call without a zone."""

    operation: str
    name: str = ''
    generation: int = 0


class Fake(Backend):
    """A simulated server.

    :ivar calls: all calls so far, in order
    :ivar zones: the names of its zones
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
        self._simulated = SimulatedServer({operation: self.options[f'on_{operation}'] for operation in OPERATIONS})
        self.behave = self._simulated.behave

    def forget_zones(self) -> None:
        """Lose all zones, as a server does that is installed again."""
        with self._lock:
            self.zones.clear()

    def close(self) -> None:
        """End the calls that hang."""
        self._simulated.close()

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
        """Record *call* and behave as configured; whether it is to have an effect."""
        with self._lock:
            self.calls.append(call)
        return self._simulated.act(call.operation, deadline.seconds)
