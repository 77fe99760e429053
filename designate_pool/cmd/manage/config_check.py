"""``designate-pool-manage config check``: looks at all that the configuration names, and tells what will hurt.

Every server, every primary and the database are looked at at once, each in a thread of its own and each for a bounded
time; what was found is told in the order of the configuration.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from designate_pool.backends.base import Backend
from designate_pool.cmd.manage import dns_probe
from designate_pool.concurrency import Runtime
from designate_pool.errors import DatabaseNotReady, DatabaseTooNew, ServiceUnavailable, UnknownPool
from designate_pool.model import Finding, Pool
from designate_pool.pool_manager.periodic import clock_offset
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import pools

#: Calls that the look at a control channel makes, one after the other.
CALLS = 3
#: Seconds beyond the time that a look should take: for threads that wait for a processor.
_GRACE = 1.0
_SQLITE = 'sqlite:///'


@dataclasses.dataclass(frozen=True, slots=True)
class CheckedServer:
    """What was found when one thing was looked at.

    :ivar name: what people read
    :ivar server_id: None for what is no server
    """

    name: str
    findings: tuple[Finding, ...] = ()
    server_id: str | None = None

    def text(self) -> str:
        if not self.findings:
            return f'ok  {self.name}'
        lines = [f'{self.name}:']
        for finding in self.findings:
            lines += [f'  {"error" if finding.serious else "warning"}: {finding.what}', f'    -> {finding.advice}']
        return '\n'.join(lines)


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigReport:
    """What was found, in the order of the configuration.

    :ivar configuration: about the files that it names
    :ivar primaries: about MiniDNS, at each address from which servers are to transfer
    """

    configuration: CheckedServer
    servers: tuple[CheckedServer, ...]
    primaries: tuple[CheckedServer, ...]
    database: CheckedServer

    @property
    def ok(self) -> bool:
        """Whether nothing serious was found."""
        return not any(finding.serious for looked in self._all() for finding in looked.findings)

    def text(self) -> str:
        """For people: a line for what is in order; what is wrong with what to do about it."""
        return '\n'.join(looked.text() for looked in self._all() if looked.findings or looked != self.configuration)

    def json(self) -> str:
        """For programs: one document."""
        return json.dumps({'ok': self.ok, 'configuration': _plain(self.configuration),
                           'servers': [_plain(looked) for looked in self.servers],
                           'primaries': [_plain(looked) for looked in self.primaries],
                           'database': _plain(self.database)}, indent=2)

    def _all(self) -> Iterator[CheckedServer]:
        yield self.configuration
        yield from self.servers
        yield from self.primaries
        yield self.database


def check(pool: Pool, backends: Mapping[str, Backend], about_files: list[Finding], database: str, poll_timeout: float,
          runtime: Runtime) -> ConfigReport:
    """Look at everything.

    :param backends: the drivers of the pool's servers, by the servers' ids
    :param about_files: what was found about the files that the configuration names
    :param database: a SQLAlchemy URL
    :param poll_timeout: seconds that a server may take for an answer over DNS, when its call_timeout is not less
    """
    longest = max(server.call_timeout for server in pool.servers)
    primaries = dict.fromkeys(primary for server in pool.servers for primary in server.primaries)
    with quiet_drivers():
        looks = [(_look_at_control(runtime, backends[server.id], CALLS * server.call_timeout),
                  _look_at_dns(runtime,
                               functools.partial(dns_probe.check_server, server,
                                                 backends[server.id].capabilities.tries_key),
                               min(server.call_timeout, poll_timeout)))
                 for server in pool.servers]
        at_primaries = [_look_at_dns(runtime, functools.partial(dns_probe.check_minidns, primary),
                                     min(longest, poll_timeout)) for primary in primaries]
        at_database = _Look(runtime, lambda: check_database(database, pool.name, longest), longest)
        return ConfigReport(
            CheckedServer('configuration', tuple(about_files)),
            tuple(CheckedServer(server.label, (*control.findings('its control channel'), *dns.findings('it over DNS')),
                                server.id)
                  for server, (control, dns) in zip(pool.servers, looks, strict=True)),
            tuple(CheckedServer(f'MiniDNS at {primary}', look.findings('it'))
                  for primary, look in zip(primaries, at_primaries, strict=True)),
            CheckedServer('database', at_database.findings('it')))


def check_database(url: str, pool_name: str, seconds: float) -> list[Finding]:
    """Whether the database is there, with the tables that this program needs and the pool that it is for.

    :param url: in SQLAlchemy's form
    :param seconds: how long to wait for it
    """
    path = url.removeprefix(_SQLITE).partition('?')[0]
    if url.startswith(_SQLITE) and not os.path.exists(path):
        # To look into it would make it, and it would belong to whoever runs this.
        return [_upgrade(f'there is no file {path} yet')]
    try:
        with contextlib.closing(Storage(url, patience=seconds)) as storage:
            migrate.check(storage)
            storage.read(pools.check_known, pool_name)
            return _clock(clock_offset.offset(storage))
    except DatabaseNotReady as error:
        return [_upgrade(f'its tables are at revision {error.kwargs["found"]}, this program needs '
                         f'{error.kwargs["wanted"]}')]
    except DatabaseTooNew as error:
        return [Finding(f'its tables are at revision {error.kwargs["found"]}, which this program is too old for',
                        'install the version that upgraded the database, or a newer one')]
    except UnknownPool as error:
        return [Finding(f'there is no pool {pool_name} ({error.kwargs["known"]})',
                        'correct [service:pool_manager] pool_name, or run '
                        f"'designate-pool-manage pool create {pool_name}'")]
    except Exception as error:  # of the database's driver, whose classes only storage knows
        return [Finding(f'it cannot be used: {_reason(error)}',
                        'see whether it runs, and what connection of [database] says of it')]


def _clock(ahead: float) -> list[Finding]:
    if abs(ahead) <= clock_offset.MOST:
        return []
    return [Finding(f"its clock is {abs(ahead):.1f} s {'behind' if ahead > 0 else 'ahead of'} this host's",
                    f'keep the clocks of all hosts in step, with NTP: more than {clock_offset.MOST:g} s delays what a '
                    'pool manager that dies leaves behind', serious=False)]


@contextlib.contextmanager
def quiet_drivers() -> Iterator[None]:
    """Keep the drivers from logging what they return as findings, too."""
    logger = logging.getLogger('designate_pool.backends')
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Look:
    """A look at something, under way in a thread of its own.

    :param seconds: how long it should take at most
    """

    def __init__(self, runtime: Runtime, work: Callable[[], list[Finding]], seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds + _GRACE
        self._found: concurrent.futures.Future[list[Finding]] = concurrent.futures.Future()
        # A thread that no program waits for at its end, unlike an executor's.
        runtime.spawn(self._work, work, name='check')

    def findings(self, what: str) -> tuple[Finding, ...]:
        """What was found at *what*, which may be that it took too long."""
        try:
            return tuple(self._found.result(max(0.0, self._end - time.monotonic())))
        except concurrent.futures.TimeoutError:
            return (Finding(f'the look at {what} has not ended within {self._seconds + _GRACE:g} s',
                            'see whether the name service of this host answers, and try again'),)

    def _work(self, work: Callable[[], list[Finding]]) -> None:
        try:
            self._found.set_result(work())
        except BaseException as error:  # raised again where the result is asked for
            self._found.set_exception(error)


def _look_at_control(runtime: Runtime, backend: Backend, seconds: float) -> _Look:
    def look() -> list[Finding]:
        with contextlib.closing(backend):
            return backend.check()

    return _Look(runtime, look, seconds)


def _look_at_dns(runtime: Runtime, look: Callable[[float], list[Finding]], seconds: float) -> _Look:
    return _Look(runtime, lambda: look(seconds), seconds)


def _upgrade(what: str) -> Finding:
    return Finding(what, "run 'designate-pool-manage database upgrade'; designate-pool-all does so at its start",
                   serious=False)


def _reason(error: BaseException) -> str:
    """The words of the database's own driver, in one line."""
    if isinstance(error, ServiceUnavailable) and error.__cause__ is not None:
        error = error.__cause__
    return ' '.join(str(getattr(error, 'orig', None) or error).split())


def _plain(looked: CheckedServer) -> dict[str, Any]:
    told: dict[str, Any] = {'name': looked.name,
                            'findings': [dataclasses.asdict(finding) for finding in looked.findings]}
    return told if looked.server_id is None else {'id': looked.server_id, **told}
