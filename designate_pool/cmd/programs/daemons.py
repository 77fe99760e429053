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


def run(parts: Sequence[str], argv: Sequence[str] | None = None, embedded: bool = False) -> int:
    """Serve *parts*, see :func:`designate_pool.cmd.compose.lifecycle.run`."""
    silence_eventlet()
    argv = sys.argv[1:] if argv is None else argv
    name = concurrency_choice.concurrency(argv)
    if name == 'eventlet':
        runtime.patch()
    from designate_pool.cmd.compose import lifecycle

    return lifecycle.run(runtime.BY_NAME[name](), argv, parts, embedded)


def silence_eventlet() -> None:
    """Suppress the deprecation warning that importing oslo.messaging prints, whatever the concurrency."""
    warnings.filterwarnings('ignore', message='(?s).*Eventlet is deprecated')


#: Every service in one process, without a broker.
all_in_one = functools.partial(run, ('central', 'minidns', 'pool_manager', 'api'), embedded=True)
api = functools.partial(run, ('api',))
central = functools.partial(run, ('central',))
manager = functools.partial(run, ('pool_manager',))
minidns = functools.partial(run, ('minidns',))
sink = functools.partial(run, ('sink',))
#: By the name after ``designate-pool-``.
PROGRAMS = {'all': all_in_one, 'api': api, 'central': central, 'manager': manager, 'minidns': minidns, 'sink': sink}

if __name__ == '__main__':
    sys.exit(PROGRAMS[sys.argv.pop(1)]())
