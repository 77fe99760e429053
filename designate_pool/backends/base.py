"""What every driver is: public verbs that never raise, over private ones that do the work.

A subclass writes ``_create``, ``_delete``, ``_list`` and ``_ping``, and ``_refetch`` where the server can transfer a
zone anew that it has already.  They either return, which is success, or raise
:class:`BackendRefused` (no retry can mend it), :class:`BackendUnreachable` (the server could not be talked to) or
:class:`BackendError` (anything else), with a ``reason`` (:class:`~designate_pool.model.Reason`) where they know one.
Creating what exists and deleting what does not are successes; creating what exists with other settings (primaries, key)
gives it the settings that the server's section has now.

A driver that can do many domains in one go has a ``batch_size`` above 1 among its :class:`Capabilities`, and writes
``_create_many`` and ``_delete_many`` in the place of the first two, and ``_refetch_many`` if it can do that in one go
as well.  Each is given the :class:`Deadline` by which its call has to end.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar

from designate_pool import model
from designate_pool.backends import file_permissions
from designate_pool.backends.capabilities import Capabilities
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, InvalidField, PoolError
from designate_pool.model import Reason
from designate_pool.outage_log import RateLimitedLog

LOG = logging.getLogger(__name__)

#: Seconds for the list of all zones of a server, which may have a million.
LISTING_SECONDS = 120.0
#: What a batch says of each of its domains: None for success.
Outcomes = Sequence[BackendError | None]


class Backend:
    """One server, acted on through its driver.  Any number of calls may be under way at once.

    :cvar OPTIONS: the driver's own options; whoever reads the configuration puts their values in ``server.options``
    :cvar capabilities: how the server behaves; one that depends on options is set in the driver's ``__init__``
    :raises InvalidField: when ``server.options`` lacks one that is required
    """

    OPTIONS: ClassVar[tuple[model.Option, ...]] = ()
    capabilities = Capabilities()

    def __init__(self, server: model.Server) -> None:
        self.server = server
        self.options = {option.name: option.default for option in self.OPTIONS} | dict(server.options)
        for option in self.OPTIONS:
            if option.required and self.options[option.name] in (None, ''):
                raise InvalidField(field=option.name, why='it must be given')
        self._failures = RateLimitedLog()
        self._has_warned = False

    def create_domain(self, domain: model.Domain) -> model.CallResult:
        """Have the server hold *domain* as a zone, with the settings that it is to have now."""
        return self.create_domains([domain])[0]

    def create_domains(self, domains: Sequence[model.Domain]) -> list[model.CallResult]:
        """:meth:`create_domain` for each of *domains*; the results in their order.

        :param domains: not more than ``batch_size``
        """
        return self._each('create', domains, self._create, self._create_many)

    def delete_domain(self, domain: model.Domain) -> model.CallResult:
        """Have the server hold no zone of *domain*'s name."""
        return self.delete_domains([domain])[0]

    def delete_domains(self, domains: Sequence[model.Domain]) -> list[model.CallResult]:
        """:meth:`delete_domain` for each of *domains*; the results in their order.

        :param domains: not more than ``batch_size``
        """
        return self._each('delete', domains, self._delete, self._delete_many)

    def refetch_domain(self, domain: model.Domain) -> model.CallResult:
        """Have the server transfer *domain* anew and whole, whatever serial it has; under way when this returns."""
        return self.refetch_domains([domain])[0]

    def refetch_domains(self, domains: Sequence[model.Domain]) -> list[model.CallResult]:
        """:meth:`refetch_domain` for each of *domains*; the results in their order.

        :param domains: not more than ``batch_size``
        """
        return self._each('refetch', domains, self._refetch, self._refetch_many)

    def list_zones(self, names: Collection[str]) -> model.Listing:
        """The zones that the server really has, with the serials that it serves.

        :param names: those that it should have; a server that cannot list its zones is asked for each of these
        """
        found: list[tuple[Mapping[str, int | None], bool]] = []
        result = self._call('list', lambda deadline: found.append(self._list(names, deadline)), LISTING_SECONDS)
        return model.Listing(result, *(found[0] if found else ({}, False)))

    def check(self) -> list[model.Finding]:
        """Have the server take a zone and give it up again; what stands in the way, and what to do about it.

        The zone's name is a random one under ``invalid.``.
        """
        findings = self.check_files()
        probe = a_probe()
        steps: list[tuple[str, Callable[[], model.CallResult]]] = [
            ('the control channel does not answer', self.ping),
            ('no zone can be added', lambda: self.create_domain(probe)),
            ('no zone can be removed', lambda: self.delete_domain(probe))]
        for what, step in steps:
            result = step()
            if not result.ok:
                return [*findings, model.Finding(f'{what}: {result.error}', self._advice(result))]
        return findings

    def check_files(self) -> list[model.Finding]:
        """Key files and control sockets that are missing, or open to more users than they should be."""
        return [finding for option in self.OPTIONS if option.private and self.options[option.name]
                and (finding := file_permissions.check(option.name, self.options[option.name])) is not None]

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

    def _create(self, domain: model.Domain, deadline: Deadline) -> None:
        raise NotImplementedError

    def _delete(self, domain: model.Domain, deadline: Deadline) -> None:
        raise NotImplementedError

    def _create_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        raise NotImplementedError

    def _delete_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        raise NotImplementedError

    def _refetch(self, domain: model.Domain, deadline: Deadline) -> None:
        raise BackendRefused(why=f'the driver {self.server.driver} cannot have the server transfer a zone that it has '
                                 'already; do it on the server by hand', reason=Reason.NO_RETRANSFER)

    def _refetch_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        outcomes: list[BackendError | None] = []
        for domain in domains:
            try:
                self._refetch(domain, deadline)
                outcomes.append(None)
            except BackendError as error:
                outcomes.append(error)
        return outcomes

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[Mapping[str, int | None], bool]:
        """Names, lower case and absolute, with their serials (None where none is served yet); whether these are all."""
        raise NotImplementedError

    def _ping(self, deadline: Deadline) -> None:
        raise NotImplementedError

    def _advice(self, result: model.CallResult) -> str:
        """What an operator can do about a call of :meth:`check` that failed."""
        if result.unreachable:
            return f'see whether {self.server.label} runs and can be reached from here, and what its section says of it'
        return f'see the page of the driver {self.server.driver} in the documentation for what the server needs'

    def _refuse_key(self, deadline: Deadline) -> None:
        raise BackendRefused(why=f'the driver {self.server.driver} does not manage TSIG keys; set them on the server')

    def _each(self, verb: str, domains: Sequence[model.Domain], one: Callable[[model.Domain, Deadline], None],
              many: Callable[[Sequence[model.Domain], Deadline], Outcomes]) -> list[model.CallResult]:
        if self.capabilities.batch_size == 1:
            return [self._call(f'{verb} {domain.name}', functools.partial(one, domain)) for domain in domains]
        if not domains:
            return []
        what = f'{verb} {domains[0].name}' + (f' and {len(domains) - 1} more' if len(domains) > 1 else '')
        outcomes: list[BackendError | None] = []
        whole = self._call(what, lambda deadline: outcomes.extend(many(domains, deadline)))
        if not whole.ok:
            return [whole] * len(domains)
        return [self._one_of_many(f'{verb} {domain.name}', outcome, whole.seconds)
                for domain, outcome in zip(domains, outcomes, strict=True)]

    def _one_of_many(self, what: str, error: BackendError | None, seconds: float) -> model.CallResult:
        if error is None:
            return model.CallResult(seconds)
        result = self._failure(error, seconds, self.server.call_timeout)
        self._log_failure(what, result, error)
        return result

    def _call(self, what: str, work: Callable[[Deadline], None], seconds: float | None = None) -> model.CallResult:
        started = time.monotonic()
        allowed = self.server.call_timeout if seconds is None else seconds
        try:
            work(Deadline(allowed))
        except (SystemExit, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # eventlet's Timeout is no Exception, and a driver may raise anything
            result = self._failure(error, time.monotonic() - started, allowed)
            self._log_failure(what, result, error)
            return result
        if self._has_warned:
            self._has_warned = False
            LOG.info('%s: works again', self.server.label)
        return model.CallResult(seconds=time.monotonic() - started)

    @staticmethod
    def _failure(error: BaseException, seconds: float, allowed: float) -> model.CallResult:
        """The result of a call that raised *error*, with the driver's reason or the one of such errors."""
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
            return model.CallResult(seconds, f'connection failed: {_words(error)}', unreachable=True, reason=reason)
        return model.CallResult(seconds, f'the driver failed: {type(error).__name__}: {error}', reason=Reason.OTHER)

    def _log_failure(self, what: str, result: model.CallResult, error: BaseException) -> None:
        more = self._failures.admit(type(error).__name__)
        if more is None:
            LOG.debug('%s: %s: %s', self.server.label, what, result.error)
            return
        self._has_warned = True
        unforeseen = isinstance(error, Exception) and not isinstance(error, (PoolError, OSError))
        LOG.warning('%s: %s: %s%s', self.server.label, what, result.error, more,
                    exc_info=error if unforeseen else None)


def a_probe() -> model.Domain:
    """A domain to try a server with, of a random name under ``invalid.`` (RFC 6761 section 6.4)."""
    name = f'designate-pool-check-{secrets.token_hex(8)}.invalid.'
    return model.Domain(model.new_id(), name, model.new_id(), '', 'hostmaster@example.invalid', 300, 1)


def _words(error: OSError) -> str:
    # Under eventlet strerror is the constant's name.
    if error.errno is not None and error.errno in errno.errorcode:
        return os.strerror(error.errno)
    return str(error.strerror or error)
