"""What every driver is: public verbs that never raise, over private ones that do the work.

A subclass writes ``_create``, ``_delete`` and ``_ping``.  They either return, which is success, or raise
:class:`BackendRefused` (no retry can mend it), :class:`BackendUnreachable` (the server could not be talked to) or
:class:`BackendError` (anything else).  Creating what exists and deleting what does not are successes.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import ClassVar

from designate_pool import model
from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, PoolError

LOG = logging.getLogger(__name__)


class Deadline:
    """The seconds that are left of a call."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left, more than 0.

        :raises TimeoutError: when there are none
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class Backend:
    """One server, acted on through its driver.  Any number of calls may be under way at once.

    :cvar OPTIONS: the driver's own options; whoever reads the configuration puts their values in ``server.options``
    :cvar fetches_on_create: whether the server goes to fetch a zone as soon as it was created, without a NOTIFY
    :cvar serves_on_create: whether a successful create means that the zone's contents are served already; without it
        a create only announces the zone, and a poll must see it served
    """

    OPTIONS: ClassVar[tuple[model.Option, ...]] = ()
    fetches_on_create = False
    serves_on_create = False

    def __init__(self, server: model.Server) -> None:
        self.server = server
        self.options = {option.name: option.default for option in self.OPTIONS} | dict(server.options)
        self._complaints = _Complaints(server.label)

    def create_domain(self, domain: model.Domain) -> model.CallResult:
        """Have the server hold *domain* as a zone."""
        return self._call(f'create {domain.name}', lambda timeout: self._create(domain, timeout))

    def delete_domain(self, domain: model.Domain) -> model.CallResult:
        """Have the server hold no zone of *domain*'s name."""
        return self._call(f'delete {domain.name}', lambda timeout: self._delete(domain, timeout))

    def ping(self) -> model.CallResult:
        """Ask whether the server would take calls now, as cheaply as can be."""
        return self._call('ping', self._ping)

    def create_tsigkey(self, key: model.TsigKey) -> model.CallResult:
        """Have the server know *key*: refused, since pools are provisioned 'unmanaged', their keys by hand."""
        return self._call(f'create key {key.name}', self._refuse_key)

    def update_tsigkey(self, key: model.TsigKey) -> model.CallResult:
        """Have the server know *key*'s new secret: refused like :meth:`create_tsigkey`."""
        return self._call(f'update key {key.name}', self._refuse_key)

    def delete_tsigkey(self, key: model.TsigKey) -> model.CallResult:
        """Have the server know *key* no longer: refused like :meth:`create_tsigkey`."""
        return self._call(f'delete key {key.name}', self._refuse_key)

    def close(self) -> None:
        """Let go of what is kept between calls; a later call opens it again."""

    def _create(self, domain: model.Domain, timeout: float) -> None:
        raise NotImplementedError

    def _delete(self, domain: model.Domain, timeout: float) -> None:
        raise NotImplementedError

    def _ping(self, timeout: float) -> None:
        raise NotImplementedError

    def _refuse_key(self, timeout: float) -> None:
        raise BackendRefused(why=f'the driver {self.server.driver} does not manage TSIG keys; set them on the server')

    def _call(self, what: str, work: Callable[[float], None]) -> model.CallResult:
        started = time.monotonic()
        try:
            work(self.server.call_timeout)
        except (SystemExit, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # eventlet's Timeout is no Exception, and a driver may raise anything
            result = self._failure(error, time.monotonic() - started)
            self._complaints.failed(what, result, error)
            return result
        self._complaints.succeeded()
        return model.CallResult(seconds=time.monotonic() - started)

    def _failure(self, error: BaseException, seconds: float) -> model.CallResult:
        if isinstance(error, BackendError):
            return model.CallResult(seconds, str(error), error.retryable, isinstance(error, BackendUnreachable))
        if isinstance(error, TimeoutError) or type(error).__name__ == 'Timeout':  # the latter is eventlet's
            return model.CallResult(seconds, f'no answer within {self.server.call_timeout:g} s', unreachable=True)
        if isinstance(error, PoolError):
            return model.CallResult(seconds, str(error))
        if isinstance(error, OSError):
            return model.CallResult(seconds, f'connection failed: {_words(error)}', unreachable=True)
        return model.CallResult(seconds, f'the driver failed: {type(error).__name__}: {error}')


def _words(error: OSError) -> str:
    # Under eventlet strerror is the constant's name.
    if error.errno is not None and error.errno in errno.errorcode:
        return os.strerror(error.errno)
    return str(error.strerror or error)


class _Complaints:
    """Logs a server's failures: the first of a kind at once, after that one line a minute with a count."""

    EVERY = 60.0

    def __init__(self, label: str) -> None:
        self._label = label
        self._lock = threading.Lock()
        self._said: dict[str, tuple[float, int]] = {}
        self._warned = False

    def failed(self, what: str, result: model.CallResult, error: BaseException) -> None:
        kind = type(error).__name__
        now = time.monotonic()
        with self._lock:
            at, unsaid = self._said.get(kind, (now - self.EVERY, 0))
            quiet = now - at < self.EVERY
            self._said[kind] = (at, unsaid + 1) if quiet else (now, 0)
            self._warned = self._warned or not quiet
        if quiet:
            LOG.debug('%s: %s: %s', self._label, what, result.error)
            return
        more = f' (and {unsaid} failures of this kind since the last such line)' if unsaid else ''
        unforeseen = isinstance(error, Exception) and not isinstance(error, (PoolError, OSError))
        LOG.warning('%s: %s: %s%s', self._label, what, result.error, more, exc_info=error if unforeseen else None)

    def succeeded(self) -> None:
        if not self._warned:
            return
        with self._lock:
            warned, self._warned = self._warned, False
        if warned:
            LOG.info('%s: works again', self._label)
