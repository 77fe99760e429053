"""A database server that accepts connections and says nothing, as a frozen one does, under native and green threads."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys

import pytest

from testing.processes import patience

pytestmark = pytest.mark.slow

PROGRAM = '''
import sys
from designate_pool import runtime
if sys.argv[1] == 'eventlet':
    runtime.patch()
from designate_pool.errors import ServiceUnavailable
from designate_pool.storage.sql.database import Storage
try:
    Storage(sys.argv[2], patience=0.5).read(print)
except ServiceUnavailable:
    print('no answer')
'''


@pytest.mark.parametrize(('kind', 'concurrency'), [
    ('mysql', 'eventlet'), ('postgresql', 'eventlet'), ('postgresql', 'threading')])
def test_a_connection_is_not_waited_for_longer_than_the_patience(kind: str, concurrency: str) -> None:
    with socket.create_server(('127.0.0.1', 0)) as silent:
        url = f'{kind}://pool:secret@127.0.0.1:{silent.getsockname()[1]}/pool'
        done = subprocess.run([sys.executable, '-W', 'ignore', '-c', PROGRAM, concurrency, url], capture_output=True,
                              text=True, timeout=patience(20))
    assert done.stdout == 'no answer\n', done.stderr


@pytest.mark.parametrize(('silence', 'concurrency'), [
    ('nothing is answered', 'eventlet'), ('connections are accepted', 'eventlet'),
    ('connections are accepted', 'threading')])
def test_after_a_silent_host_the_next_one_is_tried(silence: str, concurrency: str) -> None:
    with contextlib.ExitStack() as end:
        first, following = (end.enter_context(socket.create_server(('127.0.0.1', 0), backlog=0)) for _ in range(2))
        # The first fills the queue; what comes then is not even answered by the kernel.
        for _ in range(2 if silence == 'nothing is answered' else 0):
            waiting = end.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(first.getsockname())
        hosts = '&'.join(f'host=127.0.0.1:{each.getsockname()[1]}' for each in (first, following))
        program = end.enter_context(subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-c', PROGRAM, concurrency, f'postgresql://pool:secret@/pool?{hosts}']))
        end.callback(program.kill)
        following.settimeout(patience(20))
        following.accept()[0].close()
