"""A value read from files, and read again when they have changed."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from designate_pool.errors import BadConfiguration

LOG = logging.getLogger(__name__)
Value = TypeVar('Value')


class ReloadedFile(Generic[Value]):
    """When the new files are wrong, the old value stays in use, and the log says so.

    :param what: what is read, for the log
    :param read: reads the value, or raises BadConfiguration
    :param stamp: what changes when the files do, see :func:`file_stamp`
    :param interval: seconds between two checks
    :raises BadConfiguration: when the files are wrong at first
    """

    def __init__(self, what: str, read: Callable[[], Value], stamp: Callable[[], Hashable],
                 interval: float = 0.0) -> None:
        self._what = what
        self._read = read
        self._stamp = stamp
        self._interval = interval
        self._lock = threading.Lock()
        self._seen: Hashable = stamp()
        self._value = read()
        self._checked_at = time.monotonic()

    def get(self) -> Value:
        """The parsed contents, read again when the file has changed."""
        due = time.monotonic() - self._checked_at >= self._interval
        # Nobody waits for a file system that hangs while another request reads, unless each wants what is there now.
        if due and self._lock.acquire(blocking=not self._interval):
            try:
                stamp = self._stamp()
                if stamp != self._seen:
                    self._seen = stamp
                    try:
                        self._value = self._read()
                        LOG.info('%s was read again', self._what)
                    except BadConfiguration as error:
                        LOG.error('the new %s is not used, the old one still is: %s', self._what, error)
                self._checked_at = time.monotonic()
            finally:
                self._lock.release()
        return self._value

    def reload(self) -> None:
        """Read the files again now."""
        self._seen, self._checked_at = None, -self._interval
        self.get()


def file_stamp(path: str | os.PathLike[str]) -> tuple[int, int, int] | None:
    """What changes when a file does; None when it is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
