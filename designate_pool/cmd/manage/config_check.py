"""``designate-pool-manage config check``: checks everything that the configuration names.

All servers, primaries and the database are checked in parallel, each in a thread of its own and for a bounded time; the
report is in the order of the configuration.

Whether a server or MiniDNS answers DNS, and takes the signatures of its section's key, is seen from a question for the
SOA of a random name under ``invalid.`` (RFC 6761 section 6.4), whose answer is judged as MiniDNS does it when it polls.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import ipaddress
import json
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from designate_pool import backends
from designate_pool.backends.base import Backend, probe_domain
from designate_pool.concurrency import Runtime
from designate_pool.config import pools, sections, source, values
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, DatabaseNotReady, DatabaseTooNew, ServiceUnavailable, UnknownPool
from designate_pool.minidns.servers import is_local
from designate_pool.model import Answer, Endpoint, Finding, Option, Pool, Reason, Server, TsigKey
from designate_pool.protocol import soa_exchange, tls, tsig
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.protocol.tcp_client import TcpPeer
from designate_pool.settings import PoolManagerSettings
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import MOST_APART, Storage
from designate_pool.storage.zones import domains, pools as stored_pools

#: Calls of a driver's check, one after the other.
CALLS = 3
#: Additional seconds for threads that wait for a processor.
_GRACE = 1.0
_SQLITE = 'sqlite:///'
_MOST_NAMES = 100


@dataclasses.dataclass(frozen=True, slots=True)
class CheckResult:
    """The findings about one thing, named for people; *server_id* is None for anything but a server."""

    name: str
    findings: tuple[Finding, ...] = ()
    server_id: str | None = None

    def text(self) -> str:
        """Lines to print: ``ok``, or the findings with their advice."""
        if not self.findings:
            return f'ok  {self.name}'
        lines = [f'{self.name}:']
        for finding in self.findings:
            lines += [f'  {"error" if finding.serious else "warning"}: {finding.what}', f'    -> {finding.advice}']
        return '\n'.join(lines)


@dataclasses.dataclass(frozen=True, slots=True)
class ConfigReport:
    """The results in the order of the configuration.

    :ivar configuration: of the files that it names
    :ivar primaries: of MiniDNS at each address from which servers transfer
    """

    configuration: CheckResult
    servers: tuple[CheckResult, ...]
    primaries: tuple[CheckResult, ...]
    database: CheckResult

    @property
    def ok(self) -> bool:
        """Whether there are no serious findings."""
        return not any(finding.serious for result in self._all() for finding in result.findings)

    def text(self) -> str:
        """A line for each thing without findings; findings with advice."""
        return '\n'.join(result.text() for result in self._all() if result.findings or result != self.configuration)

    def json(self) -> str:
        """One JSON document."""
        return json.dumps({'ok': self.ok, 'configuration': _plain(self.configuration),
                           'servers': [_plain(result) for result in self.servers],
                           'primaries': [_plain(result) for result in self.primaries],
                           'database': _plain(self.database)}, indent=2)

    def _all(self) -> Iterator[CheckResult]:
        yield self.configuration
        yield from self.servers
        yield from self.primaries
        yield self.database


def check(pool: Pool, drivers: Mapping[str, Backend], about_files: list[Finding], database: str,
          manager: PoolManagerSettings, runtime: Runtime, tls_ports: Container[int] = ()) -> ConfigReport:
    """Check everything.

    :param manager: whose poll_timeout a DNS answer may take, unless the call_timeout of the server is less
    :param tls_ports: those at which MiniDNS answers over TLS
    """
    longest, names = max(server.call_timeout for server in pool.servers), list[str]()
    primaries = dict.fromkeys(primary for server in pool.servers for primary in server.primaries)
    with quiet_drivers():
        at_database = _TimedCheck(runtime, longest, check_database, database, pool, manager, longest, names)
        checks = [(_TimedCheck(runtime, longest + CALLS * server.call_timeout, _check_control, drivers[server.id],
                               at_database, names),
                   _TimedCheck(runtime, answer_seconds := min(server.call_timeout, manager.poll_timeout), check_server,
                               server, drivers[server.id].capabilities.tries_key, answer_seconds))
                  for server in pool.servers]
        shortest = min(longest, manager.poll_timeout)
        at_primaries = [_TimedCheck(runtime, shortest, check_minidns, primary, primary.port in tls_ports, shortest)
                        for primary in primaries]
        return ConfigReport(
            CheckResult('configuration', tuple(about_files)),
            tuple(CheckResult(server.label, (*control.findings('its control channel'), *dns.findings('it over DNS')),
                              server.id)
                  for server, (control, dns) in zip(pool.servers, checks, strict=True)),
            tuple(CheckResult(f'MiniDNS at {primary}', findings.findings('it'))
                  for primary, findings in zip(primaries, at_primaries, strict=True)),
            CheckResult('database', at_database.findings('it')))


def check_database(url: str, pool: Pool, manager: PoolManagerSettings, seconds: float,
                   names: list[str]) -> list[Finding]:
    """Check within *seconds* that it has the tables of this program, and the pool, whose signed zones its servers can
    serve and are compared with; add to *names* some of its zones."""
    pool_name = pool.name
    path = url.removeprefix(_SQLITE).partition('?')[0]
    if url.startswith(_SQLITE) and not os.path.exists(path):
        # Opening it would create it, owned by whoever runs this.
        return [_upgrade(f'there is no file {path} yet')]
    try:
        with contextlib.closing(Storage(url, patience=seconds)) as storage:
            migrate.check(storage)
            storage.read(stored_pools.check_known, pool_name)
            names += [domain.name for domain in storage.read(domains.page, pool_name, '', _MOST_NAMES)]
            signed = storage.read(pool_servers.signed_zone_of, pool_name)
            return [*_clock(storage.clock.host_ahead), *_uncompared(signed, manager), *(
                Finding(f'the pool has signed zones, such as {signed}, which {server.label} cannot serve: {limit.why}',
                        'have the pool without this server, or disable signing of its zones') for server in pool.servers
                for limit in backends.limits_of(server) if signed is not None and limit.what == 'signatures')]
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
                        'check whether it runs, and whether connection of [database] is right')]


def _clock(ahead: float) -> list[Finding]:
    if abs(ahead) <= MOST_APART:
        return []
    return [Finding(f"its clock is {abs(ahead):.1f} s {'behind' if ahead > 0 else 'ahead of'} this host's",
                    f'synchronise the clocks of all hosts with NTP: a difference of more than {MOST_APART:g} s '
                    'makes serials jump and signed messages fail', serious=False)]


def _uncompared(signed: str | None, manager: PoolManagerSettings) -> list[Finding]:
    if signed is None or manager.contents_audit_interval:
        return []
    return [Finding(f'the pool has signed zones, such as {signed}, and contents_audit_interval is 0: nothing finds a '
                    'record or a signature that is wrong on one server alone',
                    'set contents_audit_interval of [service:pool_manager]', serious=False)]


@contextlib.contextmanager
def quiet_drivers() -> Iterator[None]:
    """Keep the drivers from logging what they return as findings."""
    logger = logging.getLogger('designate_pool.backends')
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


class _TimedCheck:
    """A check under way in a thread of its own, which may take *seconds*."""

    def __init__(self, runtime: Runtime, seconds: float, check: Callable[..., list[Finding]], *args: Any) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds + _GRACE
        self._found: concurrent.futures.Future[list[Finding]] = concurrent.futures.Future()
        # Unlike an executor's threads, it does not delay the end of the program.
        runtime.spawn(self._work, check, args, name='check')

    def findings(self, what: str) -> tuple[Finding, ...]:
        """The findings about *what*, one of which may be that the check took too long."""
        try:
            return tuple(self._found.result(max(0.0, self._end - time.monotonic())))
        except concurrent.futures.TimeoutError:
            return (Finding(f'the check of {what} has not ended within {self._seconds + _GRACE:g} s',
                            'see whether the name service of this host answers, and try again'),)

    def _work(self, check: Callable[..., list[Finding]], args: Sequence[Any]) -> None:
        try:
            self._found.set_result(check(*args))
        except BaseException as error:  # raised again by result()
            self._found.set_exception(error)


def _check_control(backend: Backend, at_database: _TimedCheck, names: Sequence[str]) -> list[Finding]:
    at_database.findings('it')  # it reads the names
    with contextlib.closing(backend):
        return backend.check(names)


def _upgrade(what: str) -> Finding:
    return Finding(what, "run 'designate-pool-manage database upgrade'; designate-pool-all does so at its start",
                   serious=False)


def _reason(error: BaseException) -> str:
    if isinstance(error, ServiceUnavailable) and error.__cause__ is not None:
        error = error.__cause__
    return ' '.join(str(getattr(error, 'orig', None) or error).split())


def _plain(result: CheckResult) -> dict[str, Any]:
    fields: dict[str, Any] = {'name': result.name,
                              'findings': [dataclasses.asdict(finding) for finding in result.findings]}
    return fields if result.server_id is None else {'id': result.server_id, **fields}


#: Options of our services whose values may be in files.
_FROM_FILES = {(group.name, option.name) for group, options in sections.SECTIONS if group != 'DEFAULT'
               for option in options if option.secret}
#: Options of libraries that are secret, and URLs with a password.
_SECRET_NAME = re.compile('password|secret|_pin$')
_PASSWORD_IN_URL = re.compile(r'://[^/@\s]*:[^/@\s]+@')


def files_with_secrets(conf: cfg.ConfigOpts, drivers: pools.Drivers) -> Iterator[tuple[str, str]]:
    """Files that contain secrets, each after the options whose secrets these are: those of ``file:PATH``, and the
    configuration itself where it has others.

    :param drivers: as for :func:`designate_pool.config.pools.read_pool`, which has read *conf*
    """
    for file in source.read(conf).files:
        own = []
        for section, pairs in file.sections.items():
            options = {option.name: option for option in pools.options_of(section, drivers)}
            for name, value in pairs:
                option = options.get(name)
                is_ours = (section, name) in _FROM_FILES or option is not None and option.secret
                text = conf[section][name].strip() if is_ours else value
                is_secret, path = _is_secret(option, name, text), values.secret_file(text)
                if path is not None and (is_ours or is_secret):
                    yield f'[{section}] {name}', path
                elif text and not text.startswith('env:') and is_secret:
                    own.append(f'[{section}] {name}')
        if own:
            yield own[0] + (f' and {len(own) - 1} more secrets' if len(own) > 1 else ''), file.path


def _is_secret(option: Option | None, name: str, value: str) -> bool:
    if option is None:
        return bool(_SECRET_NAME.search(name) or _PASSWORD_IN_URL.search(value))
    return option.secret and (option.kind != 'tsig_key' or ':' in value)  # else it is the name of a key


def check_server(server: Server, key_is_tried: bool, seconds: float) -> list[Finding]:
    """What keeps MiniDNS from asking *server*, and the server from asking MiniDNS as far as can be seen from here.

    :param key_is_tried: whether somebody else sees to it that the server takes the key
    """
    try:
        host = _address(server)
    except (OSError, UnicodeError) as error:
        return [Finding(f'{server.host} has no address: {_words(error)}',
                        "correct host, or see to this host's name service")]
    findings = _check_answer(server.tsig_key, Endpoint(host, server.port), key_is_tried, seconds)
    for endpoint in server.verify:
        findings += _check_answer(None, endpoint, key_is_tried, seconds)
    return [*findings, *_check_primaries(server, host)]


def check_minidns(where: Endpoint, over_tls: bool, seconds: float) -> list[Finding]:
    """A warning if nothing answers DNS at *where*, a primary of servers."""
    try:
        if over_tls:
            with TcpPeer(where.host, where.port, None, tls.client_context(is_strict=False)).connect(Deadline(seconds)):
                pass  # a query may need a certificate that only servers have
        else:
            _ask(where, None, seconds)
    except (OSError, BackendError) as error:
        return [Finding(f'it does not answer DNS from here: {_words(error)}',
                        "start designate-pool-minidns (or -all); where it runs, compare the servers' primaries with "
                        'listen and listen_tls of [service:minidns]', serious=False)]
    return []


def _check_answer(key: TsigKey | None, where: Endpoint, key_is_tried: bool, seconds: float) -> list[Finding]:
    """Whether it answers, and takes the key; that it has no such zone is right."""
    try:
        said = _ask(where, key, seconds)
    except OSError as error:
        return [Finding(f'it does not answer DNS at {where}: {_words(error)}',
                        'see whether its name server runs and listens there, and whether a firewall lets UDP through')]
    if key is None or not said.doubtful:
        return []
    if said.answer is Answer.NO_ZONE:
        # Some servers, Knot DNS among them, refuse what they have no zone for before they look at the signature.
        return [] if key_is_tried else [
            Finding(f'whether it knows the key {key.name} cannot be told: it answers REFUSED without a signature',
                    f'if its zones stay in ERROR: {_same(key)}', serious=False)]
    if said.reason is Reason.BAD_TIME:
        return [Finding(said.error, 'set both clocks by NTP; signatures allow for a few minutes')]
    clocks = '' if said.reason is Reason.BAD_KEY else ', and compare the clocks'
    return [Finding(said.error, _same(key) + clocks)]


def _check_primaries(server: Server, host: str) -> list[Finding]:
    own = [str(primary) for primary in server.primaries if ipaddress.ip_address(primary.host).is_loopback]
    if not own or is_local(host):
        return []
    return [Finding(f'it cannot transfer from {", ".join(own)}, which is its own loopback',
                    'set primaries to an address at which it reaches MiniDNS, and listen of [service:minidns] too')]


def _same(key: TsigKey) -> str:
    return f'the server and its section need the same key: name {key.name}, algorithm {key.algorithm}, and the secret'


def _address(server: Server) -> str:
    """The first address of the server's host, which is the one that MiniDNS asks."""
    return str(socket.getaddrinfo(server.host, server.port, type=socket.SOCK_DGRAM)[0][4][0])


def _ask(where: Endpoint, key: TsigKey | None, seconds: float) -> SoaReply:
    return soa_exchange.ask_one(where.host, where.port, None if key is None else tsig.key_from(key),
                                probe_domain().name, seconds)


def _words(error: Exception) -> str:
    return str(getattr(error, 'strerror', None) or error)
