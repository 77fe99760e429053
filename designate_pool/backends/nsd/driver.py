"""NSD: secondary zones are added and deleted through its control channel, with ``addzones`` and ``delzones``.

A *pattern* in nsd.conf sets from where a zone is transferred, and with which key.  A section names the pattern, and a
zone that has another pattern is changed to it.  NSD keeps its zones across a restart.  It confirms a create before it
has the contents, and a delete up to a second before it stops answering (``xfrd-reload-timeout``).
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import ClassVar

from designate_pool import model
from designate_pool.backends.base import ADOPTS_ZONES, Backend, Capabilities, Outcomes, caught, probe_domain
from designate_pool.backends.nsd.control_protocol import (LONGEST_NAME, NsdAnswer, NsdControl, Tls, ZoneStatus, escaped,
                                                          statuses)
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, InvalidField
from designate_pool.model import Endpoint, Finding, Reason, TsigKey
from designate_pool.protocol import tsig
from designate_pool.protocol.rules import ServerLimit

EXISTS = 'already exists'
ABSENT = 'warning zone '
#: Octets that NSD reads of a line of its zone.list.
LONGEST_ENTRY = 1022
#: Seconds in which a reload of NSD is expected to end.
RELOAD_SECONDS = 1.0
#: How often a check makes NSD query its primary, in order to see which one that is.
ATTEMPTS = 5
#: The first version of NSD that survives the deletion of a zone that it is transferring.
SAFE_CHANGES = 4, 9
#: Errors of NSD that no retry can help.
PERMANENT = ('does not exist', 'cannot parse zone name', 'zone defined in nsd.conf')
REASONS = {'error pattern ': Reason.NOT_CONFIGURED, 'zonelist entry': Reason.NO_ZONE_CHANGES}

RECONFIG = 'then run nsd-control reconfig'
_PATTERN = re.compile(r'[!-~]{1,255}')
_KEY = re.compile(r'key: name: "(?P<name>[^"]*)" secret: "(?P<secret>[^"]*)" algorithm: (?P<algorithm>\S+)')
_FILES = ('server_cert_file', 'control_key_file', 'control_cert_file')

#: NSD 4.6 reads 64 parameters, and sends a record that does not fit into 16 KiB as messages without end.
_LIMITS = (ServerLimit('parameters', 64, 'NSD 4.6 takes {limit} parameters of a record at most, not {size}'),
           ServerLimit('octets', 15_500, 'NSD 4.6 takes {limit} octets of data at most, not {size}'))


class Nsd(Backend):
    """An NSD server."""

    # Each zone of a batch that exists already, or is deleted, takes a connection of its own, 12 ms with TLS.
    # NSD accepts ten control connections at most, and serves one at a time.
    capabilities = Capabilities(fetches_on_create=True, batch_size=100, most_in_flight=4, changes_per_second=50,
                                limits=_LIMITS)

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        model.Option('pattern', 'Pattern in nsd.conf that the zones are added with: it sets the primaries, the key,'
                     ' and who may send NOTIFY.', required=True),
        model.Option('control_socket', "NSD's control socket: the path among its control-interface.", 'path',
                     private=True),
        model.Option('control_host', "Address of NSD's control channel over TLS, without control_socket; the server's"
                     ' host when not set.', 'host'),
        model.Option('control_port', "Port of NSD's control channel over TLS.", 'port', 8952),
        model.Option('server_cert_file', "NSD's own certificate (nsd_server.pem), the only one that is accepted. With"
                     ' control_socket: only if NSD requires TLS there too.', 'path'),
        model.Option('control_key_file', 'The private key of this client (nsd_control.key).', 'path', private=True),
        model.Option('control_cert_file', "The certificate of that key (nsd_control.pem).", 'path'),
        ADOPTS_ZONES,
    )
    ADVICE = {
        Reason.NOT_CONFIGURED: 'write the pattern into nsd.conf, or correct the option pattern; then run nsd-control'
                               ' reconfig, for which nsd must have been started with the full path of nsd.conf',
        Reason.NO_ZONE_CHANGES: 'let the user that nsd runs as write zonelistfile of nsd.conf, and its folder',
        Reason.BAD_TLS: 'copy nsd_control.key, nsd_control.pem and nsd_server.pem from the server to this host',
    }

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        self._pattern = self.options['pattern']
        if not _PATTERN.fullmatch(self._pattern):
            raise InvalidField(field='pattern', why='it must be the name of a pattern in nsd.conf, without spaces')
        path, files = self.options['control_socket'], [self.options[name] for name in _FILES]
        if path and self.options['control_host']:
            raise InvalidField(field='control_host', why='only one of control_socket and control_host can be given')
        if any(files) != all(files):
            raise InvalidField(field=next(name for name in _FILES if not self.options[name]),
                               why=f'{", ".join(_FILES)} must be given together')
        if not path and not any(files):
            raise InvalidField(field='control_socket', why=f'it must be given, or {", ".join(_FILES)} for TLS')
        address = path or (self.options['control_host'] or server.host, int(self.options['control_port']))
        self._control = NsdControl(address, Tls(*files) if all(files) else None)

    def _create_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        changed: set[str] = set()
        outcomes = self._batch('addzones', domains, f' {self._pattern}', deadline,
                               lambda name, said: self._check_created(name, said, changed, deadline))
        if not changed:
            return outcomes
        # If a reload ends after a zone was given another pattern, NSD believes that it serves the serial which the zone
        # had before, and does not transfer it.  So the transfer is forced, after the time of a reload.
        time.sleep(min(RELOAD_SECONDS, deadline.left()))
        return [caught(self._refetch, domain, deadline)
                if outcome is None and escaped(domain.name) in changed else outcome
                for domain, outcome in zip(domains, outcomes, strict=True)]

    def _delete_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        foreign = {domain.id: error for domain in domains if (error := self._foreign(domain, deadline)) is not None}
        rest = [domain for domain in domains if domain.id not in foreign]
        outcomes = iter(self._batch('delzones', rest, '', deadline, _check_deleted))
        return [foreign[domain.id] if domain.id in foreign else next(outcomes) for domain in domains]

    def _refetch(self, domain: model.Domain, deadline: Deadline) -> None:
        """Have NSD transfer a zone with AXFR, whatever its serial."""
        self._command(f'force_transfer {escaped(domain.name)}', deadline)

    def _zones(self, deadline: Deadline) -> Iterator[tuple[str, int | None, bool]]:
        before = self._control.incarnation()
        for zone in statuses(self._control.lines('zonestatus', deadline)):
            yield zone.name, zone.serial, self._is_foreign(zone)
        # A list that was cut short because NSD died looks complete, so the same process must still be running.
        self._ping(deadline)
        if self._control.incarnation() != before:
            raise BackendError(why='NSD was restarted while it listed its zones')

    def _ping(self, deadline: Deadline) -> None:
        answer = self._control.ask('status', deadline)
        if not answer or not answer[0].startswith('version:'):
            raise BackendError(why=f'what answers on the control channel is not NSD: {" ".join(answer)[:200]}')
        version = tuple(map(int, re.findall(r'\d+', answer[0])[:2]))
        self.capabilities = Nsd.capabilities if version < SAFE_CHANGES else dataclasses.replace(
            Nsd.capabilities, changes_per_second=0)

    def _advice(self, result: model.CallResult) -> str:
        if result.reason is Reason.BAD_TLS and not self.options['server_cert_file']:
            return f'set {", ".join(_FILES)} to files that nsd-control-setup has made on the server'
        return super()._advice(result)

    def _batch(self, verb: str, domains: Sequence[model.Domain], more: str, deadline: Deadline,
               check: Callable[[str, NsdAnswer], None]) -> Outcomes:
        """Send *verb* for all *domains*; *check* raises if the answer for a zone is not a success."""
        names = [caught(_written, domain.name, more) for domain in domains]
        written = [name for name in names if isinstance(name, str)]
        said = iter(self._control.bulk(verb, written, more, deadline) if written else ())
        # What NSD cannot be told of is not there to be deleted.
        return [caught(check, name, next(said)) if isinstance(name, str) else name if more else None
                for name in names]

    def _check_created(self, name: str, said: NsdAnswer, changed: set[str], deadline: Deadline) -> None:
        """Check the answer to ``addzones``; a zone that has another pattern is changed, and added to *changed*.

        NSD transfers a zone with a changed pattern again, and does not serve it until then.
        """
        if not said.done:
            raise _error(f'addzones {name}', said.remark)
        if EXISTS not in said.remark:
            return
        status = self._status(name, deadline)
        if status.pattern is None:
            raise BackendRefused(why=f'the zone {name} is configured in nsd.conf itself, where NSD cannot change it;'
                                     ' remove it from there', reason=Reason.CONFLICT)
        if self._is_foreign(status) and not self.options['adopts_zones']:
            raise _foreign_zone(name)
        if status.pattern != self._pattern:
            self._command(f'changezone {name} {self._pattern}', deadline)
            changed.add(name)

    def _foreign(self, domain: model.Domain, deadline: Deadline) -> BackendError | None:
        """The error for a zone that must not be deleted because it is an operator's own; None for any other."""
        try:
            name = escaped(domain.name)
            status = self._status(name, deadline)
        except BackendError:  # there is no such zone
            return None
        return _foreign_zone(name) if status.pattern is not None and self._is_foreign(status) else None

    def _is_foreign(self, status: ZoneStatus) -> bool:
        """Whether a zone is a primary zone, which the pool never adds (unless our pattern lacks its primaries)."""
        return not status.is_secondary and status.pattern != self._pattern

    def _command(self, command: str, deadline: Deadline) -> None:
        answer = self._control.ask(command, deadline)
        if not answer or not answer[-1].endswith('ok'):
            raise _error(command, ' '.join(answer))

    def _status(self, name: str, deadline: Deadline) -> ZoneStatus:
        answers = list(statuses(self._control.lines(f'zonestatus {name}', deadline)))
        if len(answers) != 1:
            raise BackendError(why=f'NSD has answered nothing about the zone {name}')
        return answers[0]

    def _check_settings(self, deadline: Deadline, names: Collection[str]) -> list[model.Finding]:
        """Check the pattern and the TSIG key, as far as NSD shows them."""
        name = escaped(probe_domain().name)
        self._control.bulk('addzones', [name], f' {self._pattern}', deadline)
        try:
            status = self._status(name, deadline)
            for _ in range(ATTEMPTS):
                # NSD shows the primary only while it waits for its answer.
                if status.asked is not None or not status.is_secondary:
                    break
                self._control.ask(f'transfer {name}', deadline)
                status = self._status(name, deadline)
        finally:
            self._control.bulk('delzones', [name], '', deadline)
        findings = pattern_findings(self._pattern, status, self.server.primaries)
        if self.server.tsig_key is not None:
            findings += key_findings(self.server.tsig_key, self._control.ask('print_tsig', deadline))
        return findings


def _check_deleted(name: str, said: NsdAnswer) -> None:
    if not said.done and not said.remark.startswith(ABSENT):
        raise _error(f'delzones {name}', said.remark)


def _written(name: str, more: str) -> str:
    written = escaped(name)
    if len(written) >= LONGEST_NAME or more and len(f'add {written}{more}') > LONGEST_ENTRY:
        raise BackendRefused(why=f'the name {written[:40]}… is too long for a line of the zone list of NSD, so that a'
                                 ' restart would lose the zone; a pattern with a shorter name may help')
    return written


def _foreign_zone(name: str) -> BackendError:
    return BackendError(why=f"{name} already exists there, as a primary zone that was added by hand: remove it with"
                            " 'nsd-control delzone' if it is not needed, or have it taken over by adopts_zones",
                        reason=Reason.CONFLICT)


def _error(command: str, words: str) -> BackendError:
    kind = BackendRefused if any(text in words for text in PERMANENT) else BackendError
    reason = next((reason for text, reason in REASONS.items() if text in words), None)
    return kind(why=f'{command}: {words or "no answer"}', reason=reason)


def pattern_findings(name: str, status: ZoneStatus, primaries: Sequence[Endpoint]) -> list[Finding]:
    """What is wrong with the pattern *name*; *status* is that of a zone that was just added with it."""
    addresses = ', '.join(f'{primary.host}@{primary.port}' for primary in primaries)
    if not status.is_secondary:
        return [Finding(f'the pattern {name} has no request-xfr: its zones would never be transferred',
                        f'write request-xfr and allow-notify for {addresses or "MiniDNS"} into it, {RECONFIG}')]
    if status.asked is not None and primaries and status.asked not in primaries:
        return [Finding(f'the pattern {name} has zones transferred from {status.asked}, which is none of the primaries',
                        f'write request-xfr for {addresses} into it, {RECONFIG}', serious=False)]
    return []


def key_findings(key: TsigKey, answer: Iterable[str]) -> list[Finding]:
    """What is wrong with the key that NSD has under the name of *key*; nothing if it does not know ``print_tsig``."""
    lines = list(answer)
    if any(line.startswith('error') for line in lines):
        return []
    for match in filter(None, map(_KEY.fullmatch, lines)):
        if match['name'].rstrip('.').lower() == key.name.rstrip('.').lower():
            if (tsig.plain_algorithm(match['algorithm']) == tsig.plain_algorithm(key.algorithm)
                    and tsig.same_secret(match['secret'], key.secret)):
                return []
            return [Finding(f'NSD has another secret or algorithm for the TSIG key {key.name}',
                            f'write the same ones into nsd.conf and the section, {RECONFIG}')]
    return [Finding(f'NSD has no TSIG key {key.name}',
                    f'write a key statement of that name into nsd.conf, and the name into the pattern, {RECONFIG}')]
