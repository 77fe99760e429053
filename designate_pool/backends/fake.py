"""A simulated server: for tests, rehearsals and trying out configurations.

It has names of zones in memory.  The behaviour of each operation is a word, explained in
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


class Fake(Backend):
    """A simulated server, and the names of its zones."""

    OPTIONS: ClassVar[tuple[model.Option, ...]] = tuple(
        model.Option(f'on_{operation}', f"What '{operation}' does: one of {', '.join(BEHAVIOURS)}.", default='succeed')
        for operation in OPERATIONS) + (
        model.Option('serves', 'Whether a created zone counts as served at once.', 'bool', False),)

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        self.capabilities = dataclasses.replace(self.capabilities, serves_on_create=bool(self.options['serves']))
        self.zones: set[str] = set()
        self._lock = threading.Lock()
        self._simulated = SimulatedServer({operation: self.options[f'on_{operation}'] for operation in OPERATIONS})

    def close(self) -> None:
        """End the calls that hang."""
        self._simulated.close()

    def _create(self, domain: model.Domain, deadline: Deadline) -> None:
        if self._simulated.act('create', deadline.seconds):
            with self._lock:
                self.zones.add(domain.name)

    def _delete(self, domain: model.Domain, deadline: Deadline) -> None:
        if self._simulated.act('delete', deadline.seconds):
            with self._lock:
                self.zones.discard(domain.name)

    def _refetch(self, domain: model.Domain, deadline: Deadline) -> None:
        self._simulated.act('refetch', deadline.seconds)

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[dict[str, int | None], bool]:
        self._simulated.act('list', deadline.seconds)
        with self._lock:
            return dict.fromkeys(self.zones), True

    def _ping(self, deadline: Deadline) -> None:
        self._simulated.act('ping', deadline.seconds)
