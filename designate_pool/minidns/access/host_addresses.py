"""The addresses of the servers that are configured by host name, which may change or be unknown for a while."""

from __future__ import annotations

import concurrent.futures
import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.outage_log import OutageLog

LOG = logging.getLogger(__name__)

#: Names that are looked up at the same time: a resolver that does not answer takes seconds for each.
_AT_ONCE = 16


class Addresses(NamedTuple):
    """What a host name was found to stand for.

    :ivar found: IP addresses as the operating system writes them
    :ivar trouble: why there are none, in words
    """

    found: tuple[str, ...]
    trouble: str | None = None


class HostAddresses:
    """Looks host names up, and has them looked up again later.

    The addresses of a name are kept while it cannot be looked up, and in their order while they are the same: a
    resolver may give them in another order each time.

    :param look_up: the addresses of a host; raises OSError if it has none
    :param interval: seconds after which names are looked up again
    :param retry_interval: the same, while one cannot be looked up
    """

    def __init__(self, look_up: Callable[[str], Sequence[str]] | None = None, interval: float = 60.0,
                 retry_interval: float = 5.0) -> None:
        self._look_up = look_up or _look_up
        self._interval = interval
        self._retry_interval = retry_interval
        self._names: list[str] = []
        self._last_known: dict[str, Addresses] = {}
        self._outages = OutageLog(LOG, 'the host name %s cannot be looked up: %s', 'the host name %s is found again')
        self._stop_event = threading.Event()
        self._task: LoopTask | None = None

    def of(self, hosts: Iterable[str]) -> Mapping[str, Addresses]:
        """The addresses of these hosts, looked up now; other hosts are forgotten."""
        hosts = dict.fromkeys(hosts)
        self._names = [host for host in hosts if not _is_address(host)]
        addresses = {host: self._addresses_of(host) for host in hosts if host not in self._names}
        if self._names:
            with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as executor:
                addresses.update(zip(self._names, executor.map(self._addresses_of, self._names)))
        for host in self._last_known.keys() - hosts:
            self._outages.forget(host)
        self._last_known = addresses
        return addresses

    def start(self, runtime: Runtime, renew: Callable[[], object]) -> None:
        """Have *renew* called whenever names should be looked up again."""
        self._task = runtime.spawn(self._run, renew, name='minidns-addresses')

    def stop(self) -> None:
        self._stop_event.set()
        if self._task is not None:
            self._task.join(10)

    def _addresses_of(self, host: str) -> Addresses:
        previous = self._last_known.get(host, Addresses(()))
        try:
            addresses = tuple(dict.fromkeys(self._look_up(host)))
        except OSError as error:
            self._outages.failed(host, error, key=host)
            return previous if previous.found else Addresses((), f'{host} has no address: {error}')
        self._outages.ended(host, key=host)
        return previous if set(addresses) == set(previous.found) else Addresses(addresses)

    def _run(self, renew: Callable[[], object]) -> None:
        at = time.monotonic()
        while not self._stop_event.wait(self._retry_interval):
            if self._names and (self._outages or time.monotonic() - at >= self._interval):
                at = time.monotonic()
                try:
                    renew()
                except Exception:  # whatever fails, names are looked up again the next time
                    LOG.exception('the former addresses of the servers are still used')


def _look_up(host: str) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
