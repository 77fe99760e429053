"""Signals end a wait, under native threads and under eventlet."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

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
