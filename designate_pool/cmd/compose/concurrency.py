"""The first thing that a program does: choose its concurrency.

eventlet has to patch the standard library before anything keeps a reference to it, so nothing that uses threads,
sockets or locks may be imported by this module, nor by a program before it has called :func:`prepare`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from designate_pool import runtime
from designate_pool.concurrency import Runtime
from designate_pool.config import concurrency_choice


def quieten() -> None:
    """Keep back what every import of oslo.messaging says, whatever the concurrency: it is no news to an operator."""
    warnings.filterwarnings('ignore', message='(?s).*Eventlet is deprecated')


def prepare(argv: Sequence[str]) -> Runtime:
    """The runtime that ``[DEFAULT] concurrency`` asks for, the process patched if it is eventlet's."""
    quieten()
    name = concurrency_choice.concurrency(argv)
    if name == 'eventlet':
        runtime.patch()
    return runtime.BY_NAME[name]()
