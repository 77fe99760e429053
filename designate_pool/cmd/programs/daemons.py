"""The programs that serve: ``designate-pool-all``, ``-api``, ``-central``, ``-manager``, ``-minidns`` and ``-sink``.

Each chooses its concurrency before it imports anything else: eventlet has to patch the standard library before anything
keeps a reference to it.  So nothing that uses threads, sockets or locks may be imported by this module.  A program that
is not installed is run by its name: ``python -m designate_pool.cmd.programs.daemons api --config-file ...``.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Sequence

from designate_pool import runtime
from designate_pool.config import concurrency_choice


def run(parts: Sequence[str], argv: Sequence[str] | None = None, embedded: bool = False, about: str = '') -> int:
    """Serve *parts*, see :func:`designate_pool.cmd.compose.lifecycle.run`."""
    silence_eventlet()
    argv = sys.argv[1:] if argv is None else argv
    name = concurrency_choice.concurrency(argv)
    if name == 'eventlet':
        runtime.patch()
    from designate_pool.cmd.compose import lifecycle

    return lifecycle.run(runtime.BY_NAME[name](), argv, parts, embedded, about)


def silence_eventlet() -> None:
    """Suppress the deprecation warning that importing oslo.messaging prints, whatever the concurrency."""
    warnings.filterwarnings('ignore', message='(?s).*Eventlet is deprecated')


all_in_one = functools.partial(run, ('central', 'minidns', 'pool_manager', 'api'), embedded=True,
                               about='All services in one process, without a broker.')
api = functools.partial(run, ('api',), about='The API over HTTP, with Central in its process.')
central = functools.partial(run, ('central',), about='Central without HTTP: more processes for changes of zones.')
manager = functools.partial(run, ('pool_manager',), about='The pool manager: keeps the servers of a pool in step.')
minidns = functools.partial(run, ('minidns',), about="MiniDNS: the servers' primary, which notifies and polls them.")
sink = functools.partial(run, ('sink',), about='The Sink: makes records from the notifications of OpenStack services.')
#: By the name after ``designate-pool-``.
PROGRAMS = {'all': all_in_one, 'api': api, 'central': central, 'manager': manager, 'minidns': minidns, 'sink': sink}

if __name__ == '__main__':
    sys.exit(PROGRAMS[sys.argv.pop(1)]())
