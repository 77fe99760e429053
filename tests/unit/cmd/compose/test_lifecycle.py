"""Signals end a wait, in which old garbage is collected."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import weakref
from types import SimpleNamespace

import pytest

from designate_pool.cmd.compose.lifecycle import wait_for_stop

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
