"""What one way of planning is given, and what it is measured with."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Iterator

from benchmarks.plan_data import Set, sets

#: The changes found: kind, name and type of each.
Found = list[tuple[str, str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """
    :ivar folder: with the zone as :func:`benchmarks.plan_data.write_all` writes it
    :ivar changed: how many of its blocks are
    """

    folder: pathlib.Path
    records: int
    changed: int

    def sets(self, side: str) -> Iterator[Set]:
        return sets(side, self.records, self.changed)


class Clock:
    """
    :ivar populated: seconds that reading both sides took
    """

    def __init__(self) -> None:
        self.populated = 0.0

    @contextlib.contextmanager
    def populating(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.populated += time.perf_counter() - began
