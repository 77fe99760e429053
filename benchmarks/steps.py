"""One step of the load: what it took, and what it cost whom."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.measure import Processors
from benchmarks.serials import await_serials
from benchmarks.system import System, Watch
from designate_pool.model import Status

_SECONDS = 300.0
#: More seconds for each domain.
_SECONDS_EACH = 0.5
#: Until the servers answer what the database says; NSD answers for a zone for a second after it has removed it, and
#: then refuses no more than 200 times a second.
_SERVED_SECONDS, _SERVED_SECONDS_EACH = 30.0, 0.02


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """
    :ivar seconds: from the first request until the database says of the last domain that it is done
    :ivar submission: until the last request was answered
    :ivar cpu: processor seconds by process
    :ivar statements: of SQL, our own looks at the database left out
    """

    name: str
    seconds: float
    submission: float
    cpu: Mapping[str, float]
    statements: int

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def most_seconds(count: int) -> float:
    """How long *count* domains may take to come to rest."""
    return _SECONDS + _SECONDS_EACH * count


def measure_step(system: System, name: str, tag: str, count: int, submit: Callable[[], Any]) -> Step:
    """Have *submit* do its work on *count* domains, and wait until they are at rest in the database and on the servers.

    :raises AssertionError: when they do not come to rest, or a server does not serve what the database says
    """
    watch = Watch(system)
    clock = Processors(system.processes)
    cpu, statements = clock.read(), system.statements.read()
    started = time.monotonic()
    submit()
    submitted = time.monotonic()
    if name == 'delete':
        ended = watch.all_in(Status.DELETED, tag, count, most_seconds(count))
    else:
        ended = watch.all_active(tag, count, most_seconds(count))
    used, executed = clock.since(cpu), system.statements.read() - statements - watch.asked
    wanted: dict[str, int | None] = dict(watch.serials(tag))
    await_serials(system.endpoints, dict.fromkeys(wanted) if name == 'delete' else wanted,
                  _SERVED_SECONDS + _SERVED_SECONDS_EACH * count)
    return Step(name, ended - started, submitted - started, used, executed)
