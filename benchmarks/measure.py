"""Reading what things cost: processor time of processes, statements of a database server, spread of samples."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import psutil
import pymysql
import sqlalchemy as sa

#: What a transaction begins and ends with, and settings of a connection, are not among them.
_STATEMENTS = ('Com_select', 'Com_insert', 'Com_update', 'Com_delete', 'Com_replace')


#: Everything else on the machine, among the processes of :class:`Processors`: it disturbs what is measured.
OTHERS = 'others here'


class Processors:
    """Processor seconds used by processes, each with all that it has started, and by all that is none of them.

    :param roots: process ids by name
    """

    def __init__(self, roots: Mapping[str, int]) -> None:
        self._roots = {name: psutil.Process(pid) for name, pid in roots.items()}

    def read(self) -> dict[str, float]:
        ours = {name: _seconds(process) for name, process in self._roots.items()}
        return {**ours, OTHERS: _busy_seconds() - sum(ours.values())}

    def since(self, before: Mapping[str, float]) -> dict[str, float]:
        """Seconds used since :meth:`read` gave *before*."""
        return {name: seconds - before[name] for name, seconds in self.read().items()}


class Statements:
    """The statements that a MariaDB has executed for anybody, counted by itself; of a PostgreSQL none are counted."""

    def __init__(self, url: str) -> None:
        parsed = sa.make_url(url)
        self._connection: Any = None
        if parsed.get_backend_name() != 'postgresql':
            self._connection = pymysql.connect(host=parsed.host, port=parsed.port or 3306, user=parsed.username)

    def read(self) -> int:
        """How many it has executed so far."""
        if self._connection is None:
            return 0
        names = ', '.join(f"'{name}'" for name in _STATEMENTS)
        with self._connection.cursor() as cursor:
            cursor.execute(f'SHOW GLOBAL STATUS WHERE Variable_name IN ({names})')
            return sum(int(value) for _, value in cursor.fetchall())

    def close(self) -> None:
        """Leave the server."""
        if self._connection is not None:
            self._connection.close()


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that *share* (0 to 1) of the samples do not exceed."""
    return sorted(samples)[max(0, math.ceil(share * len(samples)) - 1)]


def ours(cpu: Mapping[str, float]) -> float:
    """The sum of what :meth:`Processors.since` found, without the others'."""
    return sum(seconds for name, seconds in cpu.items() if name != OTHERS)


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def _seconds(process: psutil.Process) -> float:
    # This process is a client, and what it has started is measured by its own name.
    family = [process] if process.pid == os.getpid() else [process, *process.children(recursive=True)]
    total = 0.0
    for each in family:
        try:
            times = each.cpu_times()
        except psutil.NoSuchProcess:
            continue
        # What has ended and been waited for is in its parent's children_ times.
        total += times.user + times.system
        if process.pid != os.getpid():
            total += times.children_user + times.children_system
    return total
