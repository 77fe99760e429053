"""The interfaces for calls and casts, which the services' clients use, and for those who answer them."""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from designate_pool import metrics
from designate_pool.errors import PoolError, ServiceUnavailable
from designate_pool.model import Context

#: Ends the service's name in a topic whose messages are shared by all processes of a service that has a first one.
_SPREAD = '-spread'
_OK, _REFUSED, _FAILED = 'ok', 'refused', 'failed'


def pool_topic(service: str, pool_name: str, spread: bool = False) -> str:
    """The topic of a pool's first process of a service; or, *spread*, of all of them in turn."""
    return f'{service}{_SPREAD if spread else ""}.{pool_name}'


class RpcClient(Protocol):
    """Calls methods of the service that serves a topic."""

    def call(self, topic: str, context: Context, method: str, *, patience: float | None = None,
             **arguments: Any) -> Any:
        """Call a method and wait for its result.

        :param patience: seconds to wait; None for the default
        :raises ServiceUnavailable: when there is no answer in time
        :raises PoolError: the error that the method raised, as the same class
        """

    def cast(self, topic: str, context: Context, method: str, *, to_all: bool = False,
             **arguments: Any) -> None:
        """Call a method without waiting for it; its result and errors are dropped.

        :param to_all: call it in every process that serves the topic, not in one of them
        :raises ServiceUnavailable: when the message could not be sent
        """


class RpcServer(RpcClient, Protocol):
    """Calls other services, and serves topics to them."""

    def serve(self, topic: str, contract: type, endpoint: Any, rank: int | None = None) -> None:
        """Let *endpoint* handle the calls and casts to *topic*.

        :param contract: the class of the service's client; nothing but what it has as methods can be called
        :param rank: 0 or 1.  Of the processes that give a rank, the one with the lowest that has served the topic
            longest gets all messages, as long as it takes them; the next one gets them when it ends, and those that it
            was given and had not taken.  Without a rank they take turns
        """

    def ping(self, topic: str) -> None:
        """Have this process, which serves the topic, answer itself; ServiceUnavailable if it gets no answer."""

    def stop_serving(self) -> None:
        """Accept no new messages and finish those that were accepted."""

    def stop(self) -> None:
        """Stop serving, and close the connections."""


def methods(contract: type, endpoint: Any) -> frozenset[str]:
    """The names of the methods of *endpoint* that can be called, see :meth:`RpcServer.serve`."""
    return frozenset(name for name in dir(contract) if not name.startswith('_') and hasattr(endpoint, name))


@contextlib.contextmanager
def measured(topic: str, method: str, is_call: bool) -> Iterator[None]:
    """Count a call or cast by its outcome, as its sender sees it, and measure a call."""
    started, outcome = time.monotonic(), _FAILED
    meters, seconds = _meters(topic, method, is_call)
    try:
        yield
        outcome = _OK
    except PoolError as error:  # refused for an error in the request, failed for one in the service or the connection
        outcome = _REFUSED if error.code < 500 else _FAILED
        raise
    finally:
        if seconds is not None:
            seconds.observe(time.monotonic() - started)
        meters[outcome].inc()


@functools.lru_cache(1024)
def _meters(topic: str, method: str, is_call: bool) -> tuple[Mapping[str, Any], Any]:
    service = topic.partition('.')[0].removesuffix(_SPREAD)
    counter = metrics.RPC_CALLS if is_call else metrics.RPC_CASTS
    return ({outcome: counter.labels(service, method, outcome) for outcome in (_OK, _REFUSED, _FAILED)},
            metrics.RPC_SECONDS.labels(service, method) if is_call else None)


class Check:
    """Asks whether something answers, once at a time: with a broker that is down a call may take minutes.

    :param ask: raises a PoolError when it does not
    :param grace: seconds after an answer for which a missing one is no failure
    """

    def __init__(self, name: str, ask: Callable[[], Any], seconds: float = 3.0, grace: float = 15.0) -> None:
        self._name = name
        self._ask = ask
        self._seconds, self._grace = seconds, grace
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._failure: PoolError | None = None
        self._answered_at = -math.inf

    def __call__(self) -> None:
        """Raise a PoolError unless it answers in time."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name=f'{self._name}-check', daemon=True)
                self._thread.start()
            thread = self._thread
        thread.join(self._seconds)
        if thread.is_alive():
            if time.monotonic() - self._answered_at < self._grace:
                return  # it may have much to do
            raise ServiceUnavailable(service=self._name, why=f'no answer in {self._seconds:g} s')
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._ask()
        except PoolError as error:
            self._failure = error
        except Exception as error:
            self._failure = ServiceUnavailable(service=self._name, why=f'it failed ({type(error).__name__})')
            raise
        else:
            self._failure, self._answered_at = None, time.monotonic()


def run_within(seconds: float, name: str, *steps: Callable[[], Any]) -> bool:
    """Run *steps* for *seconds* at most: oslo.messaging waits forever for a broker that is down; whether they ended."""
    def run() -> None:
        for step in steps:
            step()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()
