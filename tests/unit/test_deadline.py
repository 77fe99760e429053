"""Connections that keep to the time limit of a call."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import subprocess
import sys
import threading
import time

import pytest

from designate_pool.deadline import Deadline, connect, receive, send

PROGRAM = '''
import sys
if sys.argv[1] == 'eventlet':
    import eventlet
    eventlet.monkey_patch(os=False)
import time
from designate_pool import deadline
pauses, sleep = [], time.sleep
deadline.time.sleep = lambda seconds: pauses.append(seconds) or sleep(seconds)
try:
    deadline.connect(sys.argv[2], deadline.Deadline(1.0))
except TimeoutError:
    print(len(pauses))
'''


@pytest.mark.parametrize('concurrency', ['eventlet', 'threading'])
def test_a_full_queue_of_a_unix_socket_is_tried_again_with_pauses(tmp_path: pathlib.Path, concurrency: str) -> None:
    path = str(tmp_path / 'socket')
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as other:
        server.bind(path)
        server.listen(0)
        other.connect(path)
        said = subprocess.run([sys.executable, '-c', PROGRAM, concurrency, path], capture_output=True, text=True,
                              timeout=60, check=True).stdout
    assert 1 < int(said) <= 100


def test_once_there_is_room_it_is_connected(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / 'socket')
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as other:
        server.bind(path)
        server.listen(0)
        other.connect(path)
        threading.Timer(0.05, lambda: server.accept()[0].close()).start()
        with connect(path, Deadline(60.0)) as connection:
            accepted = server.accept()[0]
            send(connection, b'question', Deadline(60.0))
            assert receive(accepted, Deadline(60.0)) == b'question'
            accepted.close()


def test_the_addresses_of_a_host_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones do not answer; the last one may."""
    with contextlib.ExitStack() as stack:
        entries = []
        for host in ('127.0.0.2', '127.0.0.3'):
            silent = stack.enter_context(socket.create_server((host, 0), backlog=0))
            stack.enter_context(socket.create_connection(silent.getsockname()))  # now it takes no more
            entries.append((socket.AF_INET, socket.SOCK_STREAM, 6, '', silent.getsockname()))
        monkeypatch.setattr(socket, 'getaddrinfo', lambda *address, **options: entries)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            connect(('ns1.example.net', 53), Deadline(2.0))
        assert time.monotonic() - began < 3.8
        answering = stack.enter_context(socket.create_server(('127.0.0.4', 0)))
        entries.append((socket.AF_INET, socket.SOCK_STREAM, 6, '', answering.getsockname()))
        with connect(('ns1.example.net', 53), Deadline(1.8)) as connection:
            assert connection.getpeername() == answering.getsockname()
