"""One thread, one clock, one database: tasks that are switched wherever two processes could get in each other's way.

A task is a greenlet of a process.  It is switched before each transaction, between the statements of a read (which see
one state each), where it waits for a lock, and before a driver's call.  Whoever resumes it says what becomes of that
step, see :class:`Fate`.  Nothing waits and nothing is random: the same choices give the same run.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import math
import random
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest import mock

import greenlet
import sqlalchemy as sa

from designate_pool import call_combiner as call_combiner_module, deadline as deadline_module
from designate_pool.central.rules import domains as domain_rules
from designate_pool.concurrency import WorkQueue
from designate_pool.errors import PoolError, ServiceUnavailable
from designate_pool.minidns.client import soa_poller as soa_poller_module
from designate_pool.model import words
from designate_pool.pool_manager import manager as manager_module
from designate_pool.pool_manager.dispatch import (server_worker as server_worker_module,
                                                  zone_compare as zone_compare_module)
from designate_pool.pool_manager.reconcile import outcomes as outcomes_module, reconciler as reconciler_module
from designate_pool.protocol import tcp_client
from designate_pool.storage.sql.database import Storage
from testing.inline import Done, Inline

#: Steps of one run, at most.
MOST_STEPS = 20_000


class Fate(enum.Enum):
    """What becomes of a step or a message."""

    WELL = 'goes well'
    #: It does not happen; who waits for it gets an error.
    FAILS = 'fails'
    #: It happens; who waits for it gets an error.
    UNHEARD = 'happens unheard'
    #: A commit that is tried again since its answer was lost; a message that arrives twice.
    TWICE = 'happens twice'
    #: A reply is made now and arrives later.
    LATE = 'is late'


class SimulatedClock:
    """Time, which goes on when somebody moves it.

    :ivar scheduler: of the tasks that live by it
    """

    scheduler: Scheduler

    began = datetime(2026, 1, 1, tzinfo=timezone.utc)

    def __init__(self) -> None:
        self.seconds = 0.0

    def utcnow(self) -> datetime:
        return self.began + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return 1000.0 + self.seconds

    def timestamp(self) -> float:
        return self.utcnow().timestamp()


class SimulatedProcess:
    """A process with its tasks; its memory is what its objects hold."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.is_stopped = False


class SimulatedTask:
    """
    :ivar point: what it does next
    :ivar wake: when it goes on at the earliest, in the clock's seconds
    :ivar is_ready: whether what it waits for is there
    :ivar until: when it waits for that no longer
    """

    def __init__(self, process: SimulatedProcess, name: str, thread: greenlet.greenlet) -> None:
        self.process = process
        self.name = name
        self.greenlet = thread
        self.point = 'begins'
        self.wake = 0.0
        self.is_ready: Callable[[], bool] | None = None
        self.until = math.inf

    def __str__(self) -> str:
        return f'{self.process.name}: {self.name} {self.point}'


class Scheduler:
    """The tasks of all processes.

    :ivar ticks: how many steps were taken
    """

    def __init__(self, clock: SimulatedClock) -> None:
        self.clock = clock
        clock.scheduler = self
        self.tasks: list[SimulatedTask] = []
        self.ticks = 0
        self._main = greenlet.getcurrent()
        self._current: SimulatedTask | None = None

    def spawn(self, process: SimulatedProcess, name: str, work: Callable[..., Any], *args: Any) -> SimulatedTask:
        """Add a task; of what it raises only errors of the product's own classes end it quietly."""
        def run() -> None:
            with contextlib.suppress(PoolError):
                work(*args)

        task = SimulatedTask(process, name, greenlet.greenlet(run, parent=self._main))
        self.tasks.append(task)
        return task

    def runnable(self) -> list[SimulatedTask]:
        """The tasks that can be resumed now, in the order in which they were begun."""
        now = self.clock.seconds
        return [task for task in self.tasks if task.wake <= now and not task.process.is_stopped
                and not self.waits(task)]

    def waits(self, task: SimulatedTask) -> bool:
        """Whether *task* waits for another one."""
        return task.is_ready is not None and self.clock.seconds < task.until and not task.is_ready()

    def tick(self, what: object) -> None:
        """Count a step."""
        self.ticks += 1
        assert self.ticks < MOST_STEPS, f'there is always something to do: {what}'

    def resume(self, task: SimulatedTask, fate: Fate = Fate.WELL) -> None:
        """Let *task* go on to its next point."""
        before, self._current = self._current, task
        try:
            task.greenlet.switch(fate) if task.greenlet else task.greenlet.switch()
        finally:
            self._current = before
            if task.greenlet.dead:
                self.tasks.remove(task)

    def pause(self, point: str, seconds: float = 0.0, is_ready: Callable[[], bool] | None = None,
              until: float = math.inf) -> Fate:
        """In a task: let others go on; what becomes of the step.  Outside of tasks all goes well at once."""
        task = self._current
        if task is None:
            assert is_ready is None or is_ready()
            return Fate.WELL
        if not task.process.is_alive:
            raise greenlet.GreenletExit
        task.point, task.wake, task.is_ready, task.until = point, self.clock.seconds + seconds, is_ready, until
        fate: Fate = self._main.switch()
        if not task.process.is_alive:
            raise greenlet.GreenletExit
        task.is_ready = None
        return fate

    def wait(self, point: str, is_ready: Callable[[], bool], seconds: float = math.inf) -> bool:
        """In a task: pause until something is there, but for no longer than *seconds*; whether it is there."""
        end = self.clock.seconds + seconds
        while not is_ready():
            if self.clock.seconds >= end:
                return False
            self.pause(point, is_ready=is_ready, until=end)
        return True

    def kill(self, process: SimulatedProcess) -> None:
        """End *process* and its tasks where they are."""
        process.is_alive = process.is_stopped = False
        for task in [each for each in self.tasks if each.process is process]:
            while task.greenlet:  # begun, and not ended
                self._throw(task)
            self.tasks.remove(task)

    def _throw(self, task: SimulatedTask) -> None:
        before, self._current = self._current, task
        try:
            task.greenlet.throw(greenlet.GreenletExit)
        finally:
            self._current = before

    @property
    def current(self) -> SimulatedTask | None:
        return self._current


class SimulatedLock:
    """In the place of a lock that is held across steps; a task may take it again."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._owner: SimulatedTask | None = None
        self._depth = 0

    def __enter__(self) -> None:
        me = self._scheduler.current
        if me is not None and self._owner not in (None, me):
            self._scheduler.pause('waits for the lock', is_ready=lambda: self._owner is None)
        self._owner = me
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner = None


class TaskLock:
    """In the place of a lock for which one may wait for some time."""

    def __init__(self, clock: SimulatedClock) -> None:
        self._clock = clock
        self._is_taken = False

    def acquire(self, timeout: float = -1) -> bool:
        is_free = self._clock.scheduler.wait('waits for its turn', lambda: not self._is_taken,
                                             math.inf if timeout < 0 else timeout)
        self._is_taken = True  # it still is if this has waited in vain
        return is_free

    def release(self) -> None:
        self._is_taken = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class TaskEvent:
    """In the place of an event."""

    def __init__(self, clock: SimulatedClock) -> None:
        self._clock = clock
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def wait(self, timeout: float = math.inf) -> bool:
        return self._clock.scheduler.wait('waits for what becomes of it', lambda: self._is_set, timeout)


class SimulatedQueue(WorkQueue):
    """The runtime's own queue, which a task of its process empties."""

    def __init__(self, scheduler: Scheduler, process: SimulatedProcess, handle: Callable[[list[Any]], None],
                 max_batch: int, name: str, **options: Any) -> None:
        super().__init__(handle, max_batch, lambda loop: Done(), name, **options)
        self._scheduler = scheduler
        self._process = process
        self._is_running = False

    def put(self, *items: Any) -> int:
        taken = super().put(*items)
        if len(self) and not self._is_running and self._process.is_alive:
            self._is_running = True
            self._scheduler.spawn(self._process, self._name, self._empty)
        return taken

    def _empty(self) -> None:
        try:
            while batch := self._take():
                with contextlib.suppress(PoolError):
                    self._handle(batch)
        finally:
            self._is_running = False


class SimulatedRuntime:
    """What services ask of a runtime, by tasks."""

    name = 'simulated'

    def __init__(self, scheduler: Scheduler, process: SimulatedProcess) -> None:
        self._scheduler = scheduler
        self._process = process

    def work_queue(self, handle: Callable[[list[Any]], None], max_batch: int, name: str, **options: Any) -> Any:
        return SimulatedQueue(self._scheduler, self._process, handle, max_batch, name, **options)

    def spawn(self, work: Callable[..., Any], *args: Any, name: str) -> Any:
        self._scheduler.spawn(self._process, name, work, *args)
        return Done()

    def workers(self, size: int, name: str) -> Any:
        return Inline().workers(size, name)

    def compute(self, work: Callable[..., Any], *args: Any) -> Any:
        return work(*args)


class SimulatedDatabase:
    """The database of all processes: real tables and statements in an SQLite file that no commit waits for.

    :ivar on_commit: called after each commit
    """

    def __init__(self, url: str) -> None:
        self.storage = Storage(url)
        self.on_commit: Callable[[], None] = lambda: None
        sa.event.listen(self.storage.engine, 'connect', _make_fast)
        # A statement sees what was committed before it; so do those of PostgreSQL and MariaDB in a READ COMMITTED
        # transaction.
        self.reading = sa.create_engine(url.replace('sqlite:', 'sqlite+pysqlite:'), isolation_level='AUTOCOMMIT',
                                        pool_size=50)
        sa.event.listen(self.reading, 'connect', _make_fast)
        sa.event.listen(self.reading, 'before_cursor_execute', _pause_between)
        self._viewer = sqlite3.connect(sa.make_url(url).database or '', isolation_level=None)
        _make_fast(self._viewer, None)
        self._pristine = self._tables()

    def reset(self) -> None:
        """Give the database the rows that it had at first."""
        view = self._viewer
        view.execute('BEGIN IMMEDIATE')
        for table, rows in self._tables().items():
            if rows != self._pristine[table]:
                view.execute(f'DELETE FROM {table}')
                for row in self._pristine[table]:
                    view.execute(f'INSERT INTO {table} VALUES ({", ".join("?" * len(row))})', row)
        view.execute('COMMIT')

    def rows(self, query: str) -> list[Any]:
        """The result of *query*, as the tests see it."""
        return self._viewer.execute(query).fetchall()

    def close(self) -> None:
        self._viewer.close()
        self.storage.close()
        self.reading.dispose()

    def _tables(self) -> dict[str, list[Any]]:
        names = self.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        return {name: self.rows(f'SELECT * FROM {name}') for name, in names}


class SimulatedStorage:
    """The :class:`Storage` of one process: each use of it is a step that others may come before."""

    def __init__(self, database: SimulatedDatabase, scheduler: Scheduler) -> None:
        self._database = database
        self._scheduler = scheduler
        self.connections = 20

    @property
    def engine(self) -> sa.Engine:
        return self._database.storage.engine

    def now(self) -> datetime:
        return self._scheduler.clock.utcnow()

    def run(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        fate = self._scheduler.pause(f'writes by {_name(work)}')
        if fate is Fate.FAILS:
            raise ServiceUnavailable(service='the database', why='the transaction was broken off')
        result = self._commit(work, *args, **kwargs)
        if fate is Fate.TWICE:
            self._scheduler.pause(f'writes by {_name(work)} again')
            result = self._commit(work, *args, **kwargs)
        if fate is Fate.UNHEARD:
            raise ServiceUnavailable(service='the database', why='the answer to COMMIT was lost')
        return result

    def try_once(self, work: Callable[..., Any], *args: Any) -> Any:
        fate = self._scheduler.pause(f'writes together by {_name(work)}')
        if fate is Fate.FAILS:
            raise ServiceUnavailable(service='the database', why='the transaction was broken off')
        result = self._database.storage.try_once(work, *args)
        self._database.on_commit()
        if fate is Fate.UNHEARD:
            raise ServiceUnavailable(service='the database', why='the answer to COMMIT was lost')
        return result

    def read(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        fate = self._scheduler.pause(f'reads by {_name(work)}')
        if fate in (Fate.FAILS, Fate.UNHEARD):
            raise ServiceUnavailable(service='the database', why='the connection was lost')
        with self._database.reading.connect() as connection:
            tx = connection.execution_options(scheduler=self._scheduler, statements=[0])
            return work(tx, *args, **kwargs)

    ask = read

    def stream(self, work: Callable[..., Any], *args: Any) -> Any:
        self._scheduler.pause(f'streams by {_name(work)}')
        items = list(self._database.storage.stream(work, *args))
        return (item for item in items)

    def _commit(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = self._database.storage.run(work, *args, **kwargs)
        self._database.on_commit()
        return result


def _name(work: Callable[..., Any]) -> str:
    return getattr(work, '__name__', 'work')


def _make_fast(connection: Any, record: Any) -> None:
    connection.execute('PRAGMA synchronous=OFF')


def _pause_between(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
    """Let others commit between two statements of a read."""
    options = connection.get_execution_options()
    counted = options.get('statements')
    if counted is None:
        return
    counted[0] += 1
    if counted[0] > 1:
        options['scheduler'].pause('reads on')


class _Ids:
    """Ids in the order in which they are made, spread like random ones."""

    def __init__(self) -> None:
        self.random = random.Random(1)

    def uuid4(self) -> uuid.UUID:
        return uuid.UUID(int=self.random.getrandbits(128), version=4)


def _refuse_network(address: object, deadline: object) -> NoReturn:
    """A real connection takes its own time; it ends all, for an exit is what no caller of a driver suppresses."""
    raise SystemExit(f'the simulation connects to {address}')


@contextlib.contextmanager
def simulated_world(clock: SimulatedClock, *others: tuple[Any, str, Any]) -> Iterator[None]:
    """Give the product's modules the *clock*, and chance that is the same each time.

    :param others: what else is replaced: (where, name, by what)
    """
    ids, chance = _Ids(), random.Random(2)

    def sleep(seconds: float) -> None:
        if seconds:
            clock.scheduler.pause('pauses', seconds)

    time = SimpleNamespace(monotonic=clock.monotonic, time=clock.timestamp, sleep=sleep,
                           time_ns=lambda: int(clock.timestamp() * 1e9))
    replaced: Sequence[tuple[Any, str, Any]] = (
        (words, 'datetime', SimpleNamespace(now=lambda zone: clock.utcnow())),
        (domain_rules, 'time', time),
        (words, 'uuid', ids), (words, 'time', time), (words, 'os', SimpleNamespace(urandom=ids.random.randbytes)),
        (manager_module, 'monotonic', clock.monotonic),
        (server_worker_module, 'time', time), (soa_poller_module, 'time', time), (deadline_module, 'time', time),
        (zone_compare_module, 'time', time), (reconciler_module, 'time', time),
        (tcp_client, 'connect', _refuse_network),
        (call_combiner_module, 'threading', SimpleNamespace(Lock=functools.partial(TaskLock, clock),
                                                            Event=functools.partial(TaskEvent, clock))),
        (outcomes_module, 'random', chance), (reconciler_module, 'random', chance))
    with contextlib.ExitStack() as stack:
        for place, name, value in (*replaced, *others):
            stack.enter_context(mock.patch.object(place, name, value))
        yield
