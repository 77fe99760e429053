"""The start of a program: it chooses its concurrency before it imports anything else.

eventlet has to patch the standard library before anything keeps a reference to it, so nothing that uses threads,
sockets or locks may be imported by this module, nor by a program before it has called :func:`prepare`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from designate_pool import runtime
from designate_pool.concurrency import Runtime
from designate_pool.config import concurrency_choice


def silence_eventlet() -> None:
    """Suppress the deprecation warning that importing oslo.messaging prints, whatever the concurrency."""
    warnings.filterwarnings('ignore', message='(?s).*Eventlet is deprecated')


def prepare(argv: Sequence[str]) -> Runtime:
    """The runtime that ``[DEFAULT] concurrency`` asks for, the process patched if it is eventlet's."""
    silence_eventlet()
    name = concurrency_choice.concurrency(argv)
    if name == 'eventlet':
        runtime.patch()
    return runtime.BY_NAME[name]()


def run(parts: Sequence[str], argv: Sequence[str] | None = None, embedded: bool = False) -> int:
    """Run the program that serves *parts*, see :func:`designate_pool.cmd.compose.lifecycle.run`."""
    argv = sys.argv[1:] if argv is None else argv
    runtime = prepare(argv)
    from designate_pool.cmd.compose import lifecycle

    return lifecycle.run(runtime, argv, parts, embedded)
