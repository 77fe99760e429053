"""The three runtimes do the same work.  Green threads get a process of their own, since patching cannot be undone."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from designate_pool.concurrency import Runtime, one_ahead
from designate_pool.errors import ServiceUnavailable
from designate_pool.runtime import Threads
from testing.inline import Inline
from testing.processes import wait_until


@pytest.mark.parametrize('runtime', [Threads(), Inline()], ids=lambda runtime: runtime.name)
def test_batches_keep_order_and_lose_nothing(runtime: Runtime) -> None:
    seen: list[int] = []
    queue = runtime.work_queue(seen.extend, 7, 'test')
    for number in range(0, 100, 4):
        queue.put(number, number + 1, number + 2, number + 3)
    queue.stop()
    assert seen == list(range(100))


class Item(NamedTuple):
    name: str
    is_urgent: bool = False


def urgent(name: str) -> Item:
    return Item(name, True)


class Held:
    """A queue whose handler is held up with a first item of its own, until all that is to wait is put."""

    def __init__(self, max_batch: int = 1, **options: Any) -> None:
        self.batches: list[list[Item]] = []
        self._gate = threading.Event()
        self.queue = Threads().work_queue(self._handle, max_batch, 'test', **options)
        self.queue.put(Item('first'))
        wait_until(lambda: self.batches, 'the handler is held up')

    def handled(self) -> list[Item]:
        """All but the first, in order."""
        self._gate.set()
        assert self.queue.stop() == 0
        return [each for batch in self.batches[1:] for each in batch]

    def _handle(self, items: list[Item]) -> None:
        self.batches.append(items)
        assert self._gate.wait(20)


def by_priority(max_batch: int = 1) -> Held:
    return Held(max_batch, priority=lambda each: each.is_urgent)


def test_urgent_items_overtake_the_others() -> None:
    held = by_priority()
    held.queue.put(Item('a'), Item('b'), urgent('new'), Item('c'))
    assert (held.queue.waiting(True), held.queue.waiting(False), len(held.queue)) == (1, 3, 4)
    assert [each.name for each in held.handled()] == ['new', 'a', 'b', 'c']


def test_however_many_are_urgent_the_others_have_their_share() -> None:
    held = by_priority()
    held.queue.put(*(Item(f'p{number}') for number in range(3)), *(urgent(f'n{number}') for number in range(9)))
    assert [each.name for each in held.handled()] == [
        'n0', 'n1', 'n2', 'p0', 'n3', 'n4', 'n5', 'p1', 'n6', 'n7', 'n8', 'p2']


def test_a_batch_has_items_of_one_priority() -> None:
    held = by_priority(max_batch=3)
    held.queue.put(*(Item(f'p{number}') for number in range(4)), urgent('n0'), urgent('n1'))
    held.handled()
    assert [[each.name for each in batch] for batch in held.batches[1:]] == [['n0', 'n1'], ['p0', 'p1', 'p2'], ['p3']]


def test_what_is_beyond_the_bound_or_comes_after_the_stop_is_not_taken() -> None:
    held = Held(bound=5)
    assert [held.queue.put(*(Item('x') for _ in range(count))) for count in (3, 4, 1)] == [3, 2, 0]
    assert len(held.handled()) == 5
    assert (held.queue.put(Item('late')), len(held.queue)) == (0, 0)


def test_what_is_not_handled_in_time_at_the_stop_is_dropped_and_counted() -> None:
    held = Held()
    held.queue.put(Item('a'), Item('b'))
    assert (held.queue.stop(0.01), len(held.queue)) == (2, 0)
    held._gate.set()


def test_during_a_pause_a_batch_grows_and_shrinks() -> None:
    batches: list[list[int]] = []
    at_once: list[int] = []
    queue, other = (Threads().work_queue(handle, 10, 'test', pause=pause)
                    for handle, pause in ((batches.append, 600.0), (at_once.extend, 0.0)))
    queue.put(1)
    other.put(1)
    wait_until(lambda: at_once, 'what has no pause is handled')
    queue.put(2, 3)
    queue.withdraw({1, 3, 4})
    assert not batches
    assert queue.stop() == other.stop() == 0
    assert batches == [[2]]


def test_a_queue_of_which_all_was_withdrawn_goes_on() -> None:
    batches: list[list[int]] = []
    others: list[int] = []
    queue, at_once, later = (Threads().work_queue(handle, 10, 'test', pause=pause) for handle, pause in (
        (batches.append, 0.2), (others.extend, 0.0), (others.extend, 0.4)))
    for each in queue, at_once:
        each.put(1)
    wait_until(lambda: others, 'the pause has begun')
    queue.withdraw({1})
    later.put(2)
    wait_until(lambda: 2 in others, 'the pause is over')
    queue.put(3)
    wait_until(lambda: batches, 'the next item is handled')
    for each in queue, at_once, later:
        each.stop()
    assert batches == [[3]]


class Timeout(BaseException):
    """As eventlet's is: no Exception."""


@pytest.mark.parametrize('runtime', [Threads(), Inline()], ids=lambda runtime: runtime.name)
def test_a_worker_s_exception_is_in_its_future(runtime: Runtime) -> None:
    workers = runtime.workers(2, 'test')
    assert workers.submit(int, '7').result(10) == 7
    with pytest.raises(ValueError):
        workers.submit(int, 'seven').result(10)
    workers.stop()


@pytest.mark.parametrize('runtime', [Threads(), Inline()], ids=lambda runtime: runtime.name)
def test_what_is_made_one_ahead_keeps_its_order_and_its_error(runtime: Runtime) -> None:
    workers, made = runtime.workers(1, 'test'), list[int]()

    def source() -> Iterator[int]:
        for number in range(5):
            made.append(number)
            yield number
        raise ValueError('the source is broken')

    items = one_ahead(workers, source())
    assert next(items) == 0
    wait_until(lambda: made == [0, 1], 'the second is made before it is asked for')
    assert list(itertools.islice(items, 4)) == [1, 2, 3, 4]
    with pytest.raises(ValueError, match='is broken'):
        next(items)
    assert list(one_ahead(workers, [])) == []
    workers.stop()


def test_when_it_is_closed_nobody_uses_the_source_any_longer() -> None:
    workers, gate, ended = Threads().workers(1, 'test'), threading.Event(), list[int]()

    def source() -> Iterator[int]:
        yield 0
        gate.wait(10)
        ended.append(1)
        yield 1

    items = one_ahead(workers, source())
    assert next(items) == 0
    threading.Timer(0.05, gate.set).start()
    items.close()
    assert ended == [1]
    workers.stop()


def test_what_a_native_thread_posts_is_handled_in_order_and_to_the_last() -> None:
    seen: list[int] = []
    native = Threads().native('test', seen.extend)

    def work(most: int) -> None:
        for number in range(most):
            native.post(number, -number)

    native.spawn(work, 3000).join(10)
    native.stop()
    assert seen == [each for number in range(3000) for each in (number, -number)]


GREEN = '''
from designate_pool import runtime
runtime.patch()
import threading, time
import dns.zone
green = runtime.BY_NAME['eventlet']()
seen, batches = [], None
queue = green.work_queue(seen.extend, 10, 'test')
started = time.monotonic()
tasks = [green.spawn(time.sleep, 0.2, name='nap') for _ in range(100)]
workers = green.workers(5, 'test')
futures = [workers.submit(pow, 2, number) for number in range(20)]
queue.put(*range(30))
for task in tasks: task.join(10)
assert time.monotonic() - started < 10, 'the naps did not overlap'
assert [future.result(5) for future in futures] == [2 ** number for number in range(20)]
workers.stop(); queue.stop()

ticks = []
ending = threading.Event()
def tick():
    while not ending.wait(0.001):
        ticks.append(0)
def busy(rounds):
    return sum(number % 7 for number in range(rounds))
ticker = green.spawn(tick, name='tick')
time.sleep(0)
assert green.compute(busy, 3_000_000) == busy(3_000_000)
ending.set(); ticker.join(10)
assert len(ticks) > 3, 'others had no turns while something was computed'
assert seen == list(range(30))
assert threading.current_thread() and dns.zone.from_text('@ 1 SOA a b 1 2 3 4 5\\n@ 1 NS a', 'example.com.')
print('green')
'''


def test_green_threads_overlap_and_leave_dnspython_whole() -> None:
    done = subprocess.run([sys.executable, '-c', GREEN], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == 'green\n', done.stderr


LOOKUP = '''
import _socket, time
native_sleep, look_up = time.sleep, _socket.getaddrinfo

def slow(host, *args):
    if host == 'slow.example' and not args[-1] & _socket.AI_NUMERICHOST:
        native_sleep(0.5)
        host = '127.0.0.1'
    return look_up(host, *args)

_socket.getaddrinfo = slow
from designate_pool import runtime
runtime.patch()
import socket, threading
from designate_pool.minidns.servers import HostAddresses
from designate_pool.minidns.servers import make_server_table
from designate_pool.model import Pool, Server
from designate_pool.pool_manager.service import _server_at
from designate_pool.storage.sql.database import make_engine
from sqlalchemy.exc import OperationalError
green = runtime.BY_NAME['eventlet']()
listener = socket.create_server(('127.0.0.1', 0))
port = listener.getsockname()[1]
named = Server(id='a' * 32, driver='fake', host='slow.example', port=port)

def resolved():
    return set(make_server_table(Pool('default', servers=(named,)), HostAddresses()).by_destination)

database = socket.create_server(('127.0.0.1', 0))
url = f'postgresql://pool@slow.example:{database.getsockname()[1]}/pool?sslmode=disable&gssencmode=disable'

def hang_up():
    with database.accept()[0] as connection:
        connection.recv(1000)

def refused_by_postgresql():
    green.spawn(hang_up, name='PostgreSQL')
    try:
        make_engine(url, 10).connect()
    except OperationalError as error:
        return 'closed the connection' in str(error)

by_name = {
    'its address': lambda: socket.getaddrinfo('slow.example', port)[0][4] == ('127.0.0.1', port),
    'a connection': lambda: socket.create_connection(('slow.example', port), 5).close() is None,
    'a table of servers': lambda: resolved() == {f'slow.example:{port}', f'127.0.0.1:{port}'},
    'PostgreSQL': refused_by_postgresql,
    'which server it is': lambda: _server_at(f'127.0.0.1:{port}', [named]) == named.id,
}
for what, work in by_name.items():
    ticks, ending = [], threading.Event()
    def tick():
        while not ending.wait(0.001):
            ticks.append(0)
    ticker = green.spawn(tick, name='tick')
    time.sleep(0)
    started = time.monotonic()
    assert work(), what
    assert time.monotonic() - started >= 0.5, what
    ending.set(); ticker.join(10)
    assert len(ticks) > 20, (what, 'others had no turns while a name was looked up')

turns = []
green.spawn(lambda: turns.append(0), name='turn')
for host, family in (('127.0.0.1', socket.AF_INET), ('::1', socket.AF_INET6), (None, socket.AF_INET)):
    assert socket.getaddrinfo(host, 53, family=family, type=socket.SOCK_DGRAM)[0][4][1] == 53
assert not turns, 'an address is looked up by nobody else'
try:
    socket.getaddrinfo('no such name.invalid', 53)
except socket.gaierror:
    print('looked up')
'''


def test_others_have_turns_while_a_host_name_is_looked_up() -> None:
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', LOOKUP], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.stdout == 'looked up\n', done.stderr


NATIVE = '''
from designate_pool import runtime
runtime.patch()
import logging, socket, threading, time
logging.disable()
green = runtime.BY_NAME['eventlet']()
seen, failed = [], []

def handle(items):
    if 'bad' in items:
        failed.append(items)
        raise native.threading.ThreadError(items)
    seen.append((items, native.threading.get_ident()))

native = green.native('test', handle)
assert native.select.epoll and native.time.sleep is not time.sleep and native.socket.socket is not socket.socket
asked, answered = native.threading.Event(), native.threading.Event()

def work(most):
    native.post('bad')
    while not failed:
        native.time.sleep(0.001)
    asked.set()
    assert answered.wait(30)
    for number in range(most):
        native.post(number)

def answer():
    while not asked.is_set():
        time.sleep(0.001)
    answered.set()

task = native.spawn(work, 5000)
green.spawn(answer, name='answer')
task.join(0.001)
task.join(30)                   # would keep answer() from its turn for ever, if it blocked
assert answered.is_set(), 'joining has blocked the green threads'
native.post(5000, 5001)
native.stop()
assert [each for items, _ in seen for each in items] == list(range(5002)), seen
assert {thread for _, thread in seen} == {native.threading.get_ident()}
assert max(len(items) for items, _ in seen) <= 1000
native.post('nobody is there any more')
print('native')
'''


def test_a_native_thread_beside_green_ones_hands_over_in_their_world() -> None:
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', NATIVE], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.stdout == 'native\n', done.stderr


LOCKS = '''
import _thread, sys
native = _thread.LockType
from designate_pool.cmd.programs import daemons
daemons.runtime.patch()
for name, module in sorted(sys.modules.items()):
    for key, value in sorted(vars(module).items()):
        if isinstance(value, native) and not name.startswith('asyncio.'):
            print(name, key)
'''


def test_no_lock_in_which_green_threads_change_is_native() -> None:
    """A green thread that waits for such a lock stops all others, and with them the one that has it."""
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', LOCKS], capture_output=True, text=True, timeout=60,
                          check=True)
    # In these nobody waits; the second is no longer there from Python 3.13 on.
    assert {*done.stdout.splitlines()} <= {'tempfile _once_lock', 'threading _shutdown_locks_lock'}


def test_it_is_said_what_becomes_of_a_batch_that_is_not_handled(caplog: pytest.LogCaptureFixture) -> None:
    errors, handled = [ServiceUnavailable(service='the database', why='it restarts'), Timeout()], list[str]()

    def handle(items: list[str]) -> None:
        if errors:
            raise errors.pop(0)
        handled.extend(items)

    queue = Threads().work_queue(handle, 1, 'outcomes')
    queue.put('away', 'wrong', 'good')
    queue.stop()
    assert handled == ['good'], 'the loop goes on'
    put_off, failed = caplog.records
    assert put_off.levelname == 'WARNING' and put_off.exc_info is None
    assert put_off.getMessage().startswith('outcomes: a batch of 1 is retried later: the database does not answer: it ')
    assert failed.levelname == 'ERROR' and failed.exc_info is not None
    assert all(each.getMessage().endswith('is resumed when it is due') for each in caplog.records)
