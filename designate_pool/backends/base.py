"""The base class of all drivers: public methods that never raise, over private ones that a driver implements.

A driver implements ``_create``, ``_delete``, ``_list`` and ``_ping``, and ``_refetch`` if the server can transfer a
zone again that it already has.  These either return, which is success, or raise :class:`BackendRefused` (no retry can
help), :class:`BackendUnreachable` (the server cannot be reached) or :class:`BackendError` (anything else), with a
``reason`` (:class:`~designate_pool.model.Reason`) if it is known.  Creating a zone that exists and deleting one that
does not are successes; creating one that exists with other settings (primaries, key) gives it the current settings of
the server's section.

A driver that can process many domains in one call sets ``batch_size`` in its :class:`Capabilities` to more than 1, and
implements ``_create_many`` and ``_delete_many`` instead of the first two, and optionally ``_refetch_many``.  Each
method is passed the :class:`Deadline` by which it must end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import logging
import os
import secrets
import shlex
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, TypeVar

import dns.name

from designate_pool import model
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, InvalidField, PoolError
from designate_pool.logs import RateLimitedLog
from designate_pool.model import Reason
from designate_pool.protocol import soa_exchange, tls, tsig
from designate_pool.protocol.names_and_rdata import parse_name
from designate_pool.protocol.rules import ServerLimit
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.protocol.tcp_client import TcpPeer

LOG = logging.getLogger(__name__)
T = TypeVar('T')

#: Seconds for listing all zones of a server, which may have a million.
LISTING_SECONDS = 120.0
#: The option of drivers that can turn a primary zone into a secondary one of the pool.
ADOPTS_ZONES = model.Option('adopts_zones', 'Whether a primary zone that the server has already becomes a secondary one'
                            ' when a zone of its name is created. Otherwise that fails, and the zone stays as it is.',
                            'bool', False)
#: Of BIND, which refuses the transfer of the whole zone otherwise.
MAX_RECORDS_PER_TYPE = model.Option('max_records_per_type', "As in the server's named.conf: the most records of a name "
                                    'and type that BIND transfers, from 9.18.28 on; 0 for no limit, as in older ones.',
                                    'int', 100, minimum=0)
BIND_LIMITS = (ServerLimit('records', 100, 'BIND takes {limit} records of a name and type at most (max-records-per-type'
                                           ' in named.conf, and in the section of the server), not {size}'),
               ServerLimit('types', 100, 'BIND takes {limit} types at a name at most (max-types-per-name), not {size}'))
#: The outcome of a batch for each of its domains: None for success.
Outcomes = Sequence[BackendError | None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Capabilities:
    """How a driver's server behaves, and what the driver can do.  The defaults are true for most servers.

    :ivar fetches_on_create: the server transfers a zone as soon as it is created, so that no NOTIFY is sent for it
    :ivar serves_on_create: after a successful create the zone's contents are served; otherwise a create only announces
        the zone, and a poll must find that it is served
    :ivar fed_by_records: the server cannot transfer, and the pool manager writes a zone's records to it; its driver is
        a :class:`designate_pool.backends.records.RecordBackend`
    :ivar keeps_serial: the server has the pool's serial of a zone, so that an SOA query shows whether it is up to date
    :ivar reads_catalog: the server learns its zones from the pool's catalog zone (RFC 9432), which the pool must have
    :ivar tries_key: the driver's ``check`` finds out whether the server accepts the ``tsig_key``; otherwise
        ``config check`` sends the server a signed SOA query for a zone that it does not have
    :ivar batch_size: how many domains one call may have, 1 or more; above 1 the driver has ``_create_many`` and
        ``_delete_many``
    :ivar gathers_below: after a call for fewer domains than this (but more than one), the server's queue waits for
        more domains; for servers on which each call costs time for every zone that they hold
    :ivar signs_under_serial: a zone that the server signs with keys of its own keeps the pool's serial; its driver has
        an option ``signs_zones`` that says whether it does that
    :ivar not_transferred: types of records that the server answers, but leaves out of its transfers
    :ivar changes_per_second: how many zones the server is told to create or delete in a second; 0 for no limit.  It may
        change while the driver is used
    :ivar limits: what the make of server does not take of a zone; recordsets beyond them are refused in the pool
    :ivar most_in_flight: how many calls the server accepts at once, even if ``max_in_flight`` of its section is higher
    """

    fetches_on_create: bool = False
    serves_on_create: bool = False
    fed_by_records: bool = False
    keeps_serial: bool = True
    reads_catalog: bool = False
    tries_key: bool = False
    batch_size: int = 1
    gathers_below: int = 0
    changes_per_second: float = 0
    most_in_flight: int = 1000
    limits: tuple[ServerLimit, ...] = ()
    signs_under_serial: bool = False
    not_transferred: frozenset[str] = frozenset()


@dataclasses.dataclass(slots=True)
class Call:
    """A call to a server: the time that it may take, and its result once it has ended; the outcomes of a batch."""

    deadline: Deadline
    result: model.CallResult = model.CallResult()
    outcomes: Outcomes = ()


class Backend:
    """One server, controlled through its driver; thread-safe.

    :cvar OPTIONS: the driver's own options, whose values are in ``server.options``
    :cvar ADVICE: what an operator can do about a failed call of :meth:`check`, by reason (UNREACHABLE also for other
        reasons why a server cannot be reached); ``{server}`` stands for the server's label
    :cvar capabilities: how the server behaves; one that depends on options is set in the driver's ``__init__``
    :raises InvalidField: when ``server.options`` lacks a required one
    """

    OPTIONS: ClassVar[tuple[model.Option, ...]] = ()
    ADVICE: ClassVar[Mapping[Reason, str]] = {}
    capabilities = Capabilities()

    def __init__(self, server: model.Server) -> None:
        self.server = server
        self.options = {option.name: option.default for option in self.OPTIONS} | dict(server.options)
        for option in self.OPTIONS:
            if option.required and self.options[option.name] in (None, ''):
                raise InvalidField(field=option.name, why='it must be given')
        self._key_name = _key_name(server)
        self._failures = RateLimitedLog()
        self._has_warned = False

    def create_domain(self, domain: model.Domain) -> model.CallResult:
        """Create the zone of *domain* on the server, or give the existing one its current settings."""
        return self.create_domains([domain])[0]

    def create_domains(self, domains: Sequence[model.Domain]) -> list[model.CallResult]:
        """Create the zones of at most ``batch_size`` domains; the results in the same order."""
        return self._call_each('create', domains, self._create_many)

    def delete_domain(self, domain: model.Domain) -> model.CallResult:
        """Delete the zone of *domain*'s name from the server."""
        return self.delete_domains([domain])[0]

    def delete_domains(self, domains: Sequence[model.Domain]) -> list[model.CallResult]:
        """Delete the zones of at most ``batch_size`` domains; the results in the same order."""
        return self._call_each('delete', domains, self._delete_many)

    def refetch_domains(self, domains: Sequence[model.Domain]) -> list[model.CallResult]:
        """Have the whole zones of at most ``batch_size`` domains transferred again, whatever their serials; the results
        in the same order, when the transfers are started."""
        return self._call_each('refetch', domains, self._refetch_many)

    def list_zones(self, names: Collection[str]) -> model.Listing:
        """The zones that the server actually has, with the serials that it serves.

        :param names: the zones that it should have; a server that cannot list its zones is queried for each of them
        """
        return self._listing('list', lambda deadline: self._list(names, deadline))

    def list_primary_zones(self) -> model.Listing:
        """The primary zones that the server has, which are an operator's own, with their serials."""
        return self._listing('list primary zones', lambda deadline: (self._serials(deadline, True), True))

    def check(self, names: Collection[str] = ()) -> list[model.Finding]:
        """Check the local files, the control channel, that a zone can be added and removed, and the server's settings.

        The zone has a random name under ``invalid.``; *names* are of zones that the server may have.  The check ends at
        the first call that fails.
        """
        findings = self.check_files()
        for what, call in self._check_calls():
            result = call()
            if not result.ok:
                return [*findings, model.Finding(f'{what}: {result.error}', self._advice(result))]
        with self._calling('check the settings') as checking:
            findings.extend(self._check_settings(checking.deadline, names))
        if not checking.result.ok:
            findings.append(model.Finding(f'the settings cannot be checked: {checking.result.error}',
                                          self._advice(checking.result)))
        return findings

    def check_files(self) -> list[model.Finding]:
        """Find key files and control sockets that are missing, or accessible to every user of this host."""
        return [finding for option in self.OPTIONS if option.private and self.options[option.name]
                and (finding := check_permissions(option.name, self.options[option.name])) is not None]

    def ping(self) -> model.CallResult:
        """Check with a cheap request that the server accepts calls."""
        return self._call('ping', self._ping)

    def create_tsigkey(self, key: model.TsigKey) -> model.CallResult:
        """Create *key* on the server: refused, because TSIG keys are set on the servers by hand."""
        return self._call(f'create key {key.name}', self._refuse_key)

    def update_tsigkey(self, key: model.TsigKey) -> model.CallResult:
        """Change the secret of *key* on the server: refused, like :meth:`create_tsigkey`."""
        return self._call(f'update key {key.name}', self._refuse_key)

    def delete_tsigkey(self, key: model.TsigKey) -> model.CallResult:
        """Delete *key* from the server: refused, like :meth:`create_tsigkey`."""
        return self._call(f'delete key {key.name}', self._refuse_key)

    def close(self) -> None:
        """Close the connections that are kept between calls; a later call opens new ones."""

    def _create(self, domain: model.Domain, deadline: Deadline) -> None:
        raise NotImplementedError

    def _delete(self, domain: model.Domain, deadline: Deadline) -> None:
        raise NotImplementedError

    def _refetch(self, domain: model.Domain, deadline: Deadline) -> None:
        raise BackendRefused(why=f'the driver {self.server.driver} cannot make the server transfer a zone again that '
                                 'it already has; do it on the server by hand', reason=Reason.NO_RETRANSFER)

    def _create_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        return [caught(self._create, domain, deadline) for domain in domains]

    def _delete_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        return [caught(self._delete, domain, deadline) for domain in domains]

    def _refetch_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        return [caught(self._refetch, domain, deadline) for domain in domains]

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[Mapping[str, int | None], bool]:
        """Names (lower case, absolute) with serials (None if none is served yet); and whether these are all zones."""
        return self._serials(deadline, False), True

    def _zones(self, deadline: Deadline) -> Iterator[tuple[str, int | None, bool]]:
        """Of each zone its name and serial, as in :meth:`_list`, and whether it is a primary one of an operator."""
        raise BackendRefused(why=f'the driver {self.server.driver} cannot list primary zones')

    def _serials(self, deadline: Deadline, primary: bool) -> dict[str, int | None]:
        return {name: serial for name, serial, is_primary in self._zones(deadline) if is_primary is primary}

    def _ping(self, deadline: Deadline) -> None:
        raise NotImplementedError

    def _check_calls(self) -> list[tuple[str, Callable[[], model.CallResult]]]:
        """The calls that :meth:`check` makes, each after what it means when it fails."""
        probe = probe_domain()
        return [('the control channel does not answer', self.ping),
                ('no zone can be added', lambda: self.create_domain(probe)),
                ('no zone can be removed', lambda: self.delete_domain(probe))]

    def _check_settings(self, deadline: Deadline, names: Collection[str]) -> Iterable[model.Finding]:
        return ()

    def _advice(self, result: model.CallResult) -> str:
        advice = self.ADVICE.get(result.reason or Reason.OTHER)
        if advice is None and result.unreachable:
            advice = self.ADVICE.get(Reason.UNREACHABLE)
        if advice is not None:
            return advice.format(server=self.server.label)
        if result.unreachable:
            return (f'check that {self.server.label} runs and can be reached from this host, and correct its section of'
                    ' the configuration')
        return f'set up the server as the page of the driver {self.server.driver} in the documentation says'

    def _require_primaries(self) -> None:
        if not self.server.primaries:
            raise BackendRefused(why=f'server {self.server.label} has no primaries to transfer zones from',
                                 reason=Reason.NO_PRIMARIES)

    def _refuse_key(self, deadline: Deadline) -> None:
        raise BackendRefused(why=f'the driver {self.server.driver} does not manage TSIG keys; set them on the server')

    def _listing(self, what: str,
                 work: Callable[[Deadline], tuple[Mapping[str, int | None], bool]]) -> model.Listing:
        serials: Mapping[str, int | None] = {}
        is_complete = False
        with self._calling(what, LISTING_SECONDS) as call:
            serials, is_complete = work(call.deadline)
        return model.Listing(call.result, serials, is_complete)

    def _call_each(self, verb: str, domains: Sequence[model.Domain],
                   work: Callable[[Sequence[model.Domain], Deadline], Outcomes]) -> list[model.CallResult]:
        if not domains:
            return []
        what = f'{verb} {domains[0].name}' + (f' and {len(domains) - 1} more' if len(domains) > 1 else '')
        with self._calling(what) as call:
            call.outcomes = list(work(domains, call.deadline))  # a driver may yield them
        if not call.result.ok:
            return [call.result] * len(domains)
        return [call.result if error is None else
                self._failed(f'{verb} {domain.name}', error, call.result.seconds, self.server.call_timeout)
                for domain, error in zip(domains, call.outcomes, strict=True)]

    def _call(self, what: str, work: Callable[[Deadline], None], seconds: float | None = None) -> model.CallResult:
        with self._calling(what, seconds) as call:
            work(call.deadline)
        return call.result

    @contextlib.contextmanager
    def _calling(self, what: str, seconds: float | None = None) -> Iterator[Call]:
        """A call, whose result says how the body ended: an exception becomes a failure."""
        started = time.monotonic()
        allowed = self.server.call_timeout if seconds is None else seconds
        call = Call(Deadline(allowed))
        try:
            yield call
        except (SystemExit, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # eventlet's Timeout is not an Exception, and a driver may raise anything
            call.result = self._failed(what, error, time.monotonic() - started, allowed)
            return
        call.result = model.CallResult(seconds=time.monotonic() - started)
        if self._has_warned and not any(call.outcomes):
            self._has_warned = False
            LOG.info('%s: works again', self.server.label)

    @staticmethod
    def _failure(error: BaseException, seconds: float, allowed: float) -> model.CallResult:
        """The result of a call that raised *error*, with the reason that the driver gave or the one for this class."""
        if isinstance(error, BackendError):
            unreachable = isinstance(error, BackendUnreachable)
            reason = error.reason or (Reason.UNREACHABLE if unreachable else Reason.OTHER)
            return model.CallResult(seconds, str(error), error.retryable, unreachable, reason)
        if isinstance(error, TimeoutError) or type(error).__name__ == 'Timeout':  # the latter is eventlet's
            return model.CallResult(seconds, f'no answer within {allowed:g} s', unreachable=True, reason=Reason.TIMEOUT)
        if isinstance(error, PoolError):
            return model.CallResult(seconds, str(error), reason=Reason.OTHER)
        if isinstance(error, OSError):
            reason = Reason.NO_ACCESS if isinstance(error, PermissionError) else Reason.UNREACHABLE
            return model.CallResult(seconds, f'connection failed: {tls.failure(error)}', unreachable=True,
                                    reason=reason)
        return model.CallResult(seconds, f'the driver failed: {type(error).__name__}: {error}', reason=Reason.OTHER)

    def _failed(self, what: str, error: BaseException, seconds: float, allowed: float) -> model.CallResult:
        result = self._failure(error, seconds, allowed)
        more = self._failures.admit(type(error).__name__)
        if more is None:
            LOG.debug('%s: %s: %s', self.server.label, what, result.error)
            return result
        self._has_warned = True
        unforeseen = isinstance(error, Exception) and not isinstance(error, (PoolError, OSError))
        LOG.warning('%s: %s: %s%s', self.server.label, what, result.error, more,
                    exc_info=error if unforeseen else None)
        return result


def caught(work: Callable[..., T], *arguments: object) -> T | BackendError:
    """The result of *work*, or the error that it raises."""
    try:
        return work(*arguments)
    except BackendError as error:
        return error


def query_soa(server: model.Server, names: Collection[str], deadline: Deadline,
              enough: Callable[[SoaReply], bool] = lambda said: True) -> dict[str, SoaReply | None]:
    """Query a server of the pool for the SOA of these zones, as :func:`soa_exchange.ask` does.

    :raises BackendRefused: when all its answers say that it does not accept the TSIG key
    """
    key = None if server.tsig_key is None else tsig.key_from(server.tsig_key)
    by_name = soa_exchange.ask(server.host, server.port, key, names, deadline, enough)
    replies = [said for said in by_name.values() if said is not None]
    # A server that has just lost a zone may not accept a key for its name for a moment; so one such answer is no proof.
    if replies and all(said.reason in (Reason.BAD_KEY, Reason.BAD_TIME) for said in replies):
        raise BackendRefused(why=f'the server rejects the TSIG key: {replies[0].error}', reason=replies[0].reason)
    return by_name


def tcp_peer(server: model.Server) -> TcpPeer:
    """*server* for questions over TCP, which are signed with its key."""
    return TcpPeer(server.host, server.port, None if server.tsig_key is None else tsig.key_from(server.tsig_key))


def is_absent(said: SoaReply) -> bool:
    """Whether the server does not have the zone."""
    return said.answer in (model.Answer.NO_ZONE, model.Answer.NOT_AUTH)


def check_permissions(option: str, path: str) -> model.Finding | None:
    """What is wrong with the permissions of *path*, the value of *option*; None when nothing is.

    Users other than its owner and group must not be able to read or write a file, or to connect to a socket.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return model.Finding(f'{option}: {path} cannot be accessed: {error.strerror}',
                             'correct the path, or give the user that the pool manager runs as access to it')
    if stat.S_ISSOCK(mode):
        wrong, can = mode & stat.S_IWOTH, 'control the server through it'
    else:
        wrong, can = mode & (stat.S_IROTH | stat.S_IWOTH), 'read or write it'
    if not wrong:
        return None
    return model.Finding(f'{option}: every user of this host can {can}: {path} has mode {stat.S_IMODE(mode):04o}',
                         f'chmod o= {shlex.quote(path)}', serious=False)


def ip_address(endpoint: model.Endpoint) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address of one of a server's primaries; InvalidField for a name."""
    try:
        return ipaddress.ip_address(endpoint.host)
    except ValueError as error:
        raise InvalidField(field='primaries', why=f"'{endpoint.host}' is not an IP address") from error


def _key_name(server: model.Server) -> dns.name.Name | None:
    try:
        return None if server.tsig_key is None else parse_name(server.tsig_key.name)
    except BackendRefused as error:
        raise InvalidField(field='tsig_key', why=str(error)) from error


def probe_domain() -> model.Domain:
    """A domain to check a server with, of a random name under ``invalid.`` (RFC 6761 section 6.4)."""
    name = f'designate-pool-check-{secrets.token_hex(8)}.invalid.'
    return model.Domain(model.new_id(), name, model.new_id(), '', 'hostmaster@example.invalid', 300, 1)
