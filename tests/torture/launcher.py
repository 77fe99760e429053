"""``python -m tests.torture.launcher MODULE ...``: a program of the product, run as ``python -m MODULE ...`` runs it.

With ``TORTURE_PLANT`` in the environment one of the bugs of :mod:`tests.torture.planted` is put into it.
"""

from __future__ import annotations

import os
import runpy
import select
import sys
import time
import types

CLOCK, PLANT = 'FAKETIME_TIMESTAMP_FILE', 'TORTURE_PLANT'


#: Before eventlet replaces it.
_select = select.select


def _sleep(seconds: float) -> None:
    if seconds < 0:
        raise ValueError('sleep length must be non-negative')
    _select([], [], [], seconds)


def _replace_sleep() -> None:
    """libfaketime 0.9.10 fails the system call that ``time.sleep`` makes, unless it may change all clocks."""
    time.sleep = _sleep
    # eventlet keeps a copy of the module as it was, under this name.
    original = types.ModuleType('time')
    original.__dict__.update(time.__dict__)
    sys.modules['__original_module_time'] = original


def main() -> None:
    if CLOCK in os.environ:
        _replace_sleep()
    if plant := os.environ.get(PLANT):
        from tests.torture import planted
        planted.apply(plant)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)


if __name__ == '__main__':
    main()
