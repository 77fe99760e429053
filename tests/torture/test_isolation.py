"""What is started in namespaces of its own ends with who started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from testing.processes import wait_until

_START = '''
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from tests.torture import isolation
isolation.run("http.server", ["--bind", "127.0.0.1", "0"])
'''


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_nothing_is_left_however_it_ends(number: signal.Signals) -> None:
    outer = subprocess.Popen([sys.executable, '-c', _START], start_new_session=True, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, env={**os.environ, 'PYTHONUNBUFFERED': '1'})
    try:
        # The first process of a namespace is not told of signals that it does not handle yet.
        assert outer.stdout is not None and outer.stdout.readline().startswith('Serving HTTP')
        family = wait_until(lambda: _programs(outer.pid), 'the program runs', 60)
        # Control-C is sent to all that a terminal runs.
        os.killpg(outer.pid, number) if number == signal.SIGINT else outer.send_signal(number)
        outer.wait(30)
        wait_until(lambda: not any(process.is_running() for process in family), 'the program has ended')
    finally:
        outer.kill()
        outer.wait()


def _programs(pid: int) -> list[psutil.Process]:
    """Everything below a process, once the last of them is the program."""
    found = psutil.Process(pid).children(recursive=True)
    return found if any('http.server' in process.cmdline() and 'tests.torture.isolation' not in process.cmdline()
                        for process in found) else []
