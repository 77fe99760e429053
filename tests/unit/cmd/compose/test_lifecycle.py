"""Signals end a wait, in which old garbage is collected."""

from __future__ import annotations

import contextlib
import gc
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import requests

from designate_pool.cmd.compose.lifecycle import wait_for_stop
from designate_pool.cmd.compose.program import MetricsEndpoint
from designate_pool.model import Endpoint
from testing.processes import free_port, patience

PROGRAM = '''
import sys
from designate_pool import runtime
if sys.argv[1] == 'eventlet':
    runtime.patch()
from designate_pool.cmd.compose.program import Signals
signals = Signals()
print('ready', flush=True)
while not signals.stop:
    signals.wait(1000)
    if signals.hangup:
        signals.hangup = False
        print('hangup', flush=True)
print('stop', flush=True)
'''


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_a_signal_ends_the_wait(concurrency: str) -> None:
    with subprocess.Popen([sys.executable, '-W', 'ignore', '-c', PROGRAM, concurrency], stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout is not None
        try:
            for sent, said in ((None, 'ready'), (signal.SIGHUP, 'hangup'), (signal.SIGHUP, 'hangup'),
                               (signal.SIGTERM, 'stop')):
                if sent is not None:
                    process.send_signal(sent)
                assert process.stdout.readline() == f'{said}\n'
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.parametrize('sent', [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_program_that_reads_no_file_again_is_ended_by_each_signal(sent: signal.Signals) -> None:
    program = ('from designate_pool.cmd.compose.program import Signals; signals = Signals(); '
               "print('ready', flush=True); signals.wait_for_stop()")
    with subprocess.Popen([sys.executable, '-W', 'ignore', '-c', program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b'ready\n'
            process.send_signal(sent)
            assert process.wait(60) == 0
        finally:
            process.kill()


class Lost:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.itself = self


def test_what_is_lost_when_it_is_old_is_freed() -> None:
    lost: list[weakref.ref[Lost]] = []

    def wait(seconds: float) -> None:
        """Each wait leaves garbage, which is old; the third sets the signal."""
        assert seconds <= 60 and not any(reference() for reference in lost)
        kept = Lost()
        gc.collect()
        lost.append(weakref.ref(kept))
        signals.stop = len(lost) == 3

    signals = SimpleNamespace(stop=False, hangup=False, wait=wait)
    thresholds = gc.get_threshold()
    gc.disable()  # nobody else collects
    try:
        wait_for_stop(signals, ())  # type: ignore[arg-type]
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        gc.enable()
    assert len(lost) == 3


@pytest.fixture
def exposition() -> Iterator[MetricsEndpoint]:
    found = MetricsEndpoint([Endpoint('127.0.0.1', free_port())] * 2)
    yield found
    found.stop()


def ask(exposition: MetricsEndpoint, path: str = '/metrics', **options: object) -> requests.Response:
    url = f'http://{exposition.endpoints[0]}{path}'
    return requests.get(url, timeout=30, **options)  # type: ignore[arg-type]


def test_an_address_that_is_named_twice_is_served_once(exposition: MetricsEndpoint) -> None:
    assert len(exposition.endpoints) == 1
    answer = ask(exposition)
    assert (answer.status_code, answer.headers['Content-Type'].partition(';')[0]) == (200, 'text/plain')
    assert 'designate_pool_build_info{' in answer.text


@pytest.mark.parametrize('path', ['/', '/metrics/', '/other'])
def test_there_is_nothing_else(exposition: MetricsEndpoint, path: str) -> None:
    answer = ask(exposition, path)
    assert (answer.status_code, answer.text) == (404, 'there is only /metrics here\n')


def test_openmetrics_where_it_is_asked_for(exposition: MetricsEndpoint) -> None:
    answer = ask(exposition, headers={'Accept': 'application/openmetrics-text; version=1.0.0'})
    assert answer.headers['Content-Type'].startswith('application/openmetrics-text')
    assert answer.text.endswith('# EOF\n')


def test_clients_that_say_nothing_delay_no_scrape(exposition: MetricsEndpoint) -> None:
    address = exposition.endpoints[0].host, exposition.endpoints[0].port
    with contextlib.ExitStack() as silent:
        for _ in range(30):
            silent.enter_context(socket.create_connection(address))
        began = time.monotonic()
        assert ask(exposition).status_code == 200
        assert time.monotonic() - began < patience(5)


def test_an_address_that_is_taken_is_told() -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f'metrics cannot be served at 127.0.0.1:{port}: Address already in use'):
            MetricsEndpoint([Endpoint('127.0.0.1', port)])


def test_no_address_is_no_server() -> None:
    MetricsEndpoint([]).stop()
