"""For tests of servers: free ports, and waiting for a condition with a deadline."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from designate_pool.backoff import Backoff

T = TypeVar('T')

#: From 32768 on the system gives ports to clients; the rest is shared out among the processes that run tests.
_WORKER = int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0').removeprefix('gw')) % 8
_PORTS = range(10000 + _WORKER, 32768, 8)
_given: set[int] = set()
_giving = threading.Lock()


def _loop_seconds() -> float:
    def once() -> float:
        begun = time.perf_counter()
        sum(range(100_000))
        return time.perf_counter() - begun

    return min(once() for _ in range(5))


#: How many times slower this machine is than one on which that work takes a millisecond.
_SLOWNESS = max(1.0, _loop_seconds() / 0.001)


def patience(seconds: float) -> float:
    """How long to wait, here and now, for what takes *seconds* at most on a quick machine with nothing else to do."""
    return seconds * _SLOWNESS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


#: How much longer than it is said is waited at least: nothing is lost where it comes in time.
_LENIENCE = 3


def wait_until(condition: Callable[[], T], what: str, seconds: float = 30.0, pause: float = 0.02) -> T:
    """The first true value of *condition*; AssertionError that names *what* after several times *seconds*, and their
    :func:`patience`.

    An exception of OSError's kind counts as "not yet" and is named at the end.
    """
    begun = time.monotonic()
    pauses = Backoff(pause, 1.2, cap=0.25).delays()
    last: object = None
    while True:
        try:
            last = value = condition()
            if value:
                return value
        except OSError as error:
            last = error
        waited = time.monotonic() - begun
        if waited > seconds * _LENIENCE and waited > patience(seconds):
            raise AssertionError(f'not within {waited:.3g} s: {what} (last seen: {last!r})')
        time.sleep(next(pauses))


def free_port(host: str = '127.0.0.1') -> int:
    """A port that is free for both UDP and TCP on *host*, and that no other caller gets."""
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if port in _given:
            continue
        with (socket.socket(family, socket.SOCK_STREAM) as tcp, socket.socket(family, socket.SOCK_DGRAM) as udp,
              contextlib.suppress(OSError)):
            tcp.bind((host, port))
            udp.bind((host, port))
            with _giving:
                if port not in _given:
                    _given.add(port)
                    return port
    raise AssertionError('no port is free for both UDP and TCP')
