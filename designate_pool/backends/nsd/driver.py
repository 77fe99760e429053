"""NSD, through its control channel: secondary zones added and deleted with ``addzones`` and ``delzones``.

What a zone is fetched from, and with which key, stands in a *pattern* in nsd.conf; a section names the pattern, and a
zone that has another one is given it.  NSD keeps its zones through a restart.  It confirms a create before it has the
contents, and a delete up to a second before it stops to answer (``xfrd-reload-timeout``).
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, TypeVar

from designate_pool import model
from designate_pool.backends.base import Backend, Outcomes
from designate_pool.backends.capabilities import Capabilities
from designate_pool.backends.nsd import config_check, zone_status
from designate_pool.backends.nsd.control_protocol import NsdAnswer, NsdControl, Tls
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, InvalidField
from designate_pool.model import Reason

EXISTS = 'already exists'
ABSENT = 'warning zone '
#: Octets that NSD reads of a line of its zone.list.
LONGEST_ENTRY = 1022
#: How long a reload of NSD is given to end.
RELOAD_SECONDS = 1.0
#: How often NSD is had to ask its primary while we look which one that is.
LOOKS = 5
#: Deletes at once before which each zone is looked at where that takes TLS; over a socket it costs next to nothing.
LOOKED_AT = 8
#: What no retry can mend.
PERMANENT = ('does not exist', 'cannot parse zone name', 'zone defined in nsd.conf')

_COPY = 'copy nsd_control.key, nsd_control.pem and nsd_server.pem from the server to here'
#: What an operator can do, by a word of the error.
ADVICE = {
    'pattern': 'write the pattern into nsd.conf, or correct the option pattern; then nsd-control reconfig, which needs'
               ' nsd to have been started with the full path of nsd.conf',
    'zonelist': 'let the user that nsd runs as write the file zonelistfile of nsd.conf, and into its folder',
    'TLS': 'set server_cert_file, control_key_file and control_cert_file to files that nsd-control-setup made on the'
           ' server',
    'cannot be used': _COPY,
    'key': _COPY,
    'certificate': 'copy nsd_server.pem from the server to here',
}

T = TypeVar('T')
_PATTERN = re.compile(r'[!-~]{1,255}')
_FILES = ('server_cert_file', 'control_key_file', 'control_cert_file')


class Nsd(Backend):
    """An NSD server."""

    # Each of a batch's zones that is there already costs a connection, with TLS 12 ms.
    # NSD has ten connections for control at most, and works on one at a time.
    capabilities = Capabilities(fetches_on_create=True, batch_size=100, most_in_flight=4)

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        model.Option('pattern', 'Pattern in nsd.conf that the zones are added with: what they are fetched from, with'
                     ' which key, and who may send NOTIFY.', required=True),
        model.Option('control_socket', "NSD's control socket: the path among its control-interface.", 'path',
                     private=True),
        model.Option('control_host', "Address of NSD's control channel over TLS, without control_socket; the server's"
                     ' host when not set.', 'host'),
        model.Option('control_port', "Port of NSD's control channel over TLS.", 'port', 8952),
        model.Option('server_cert_file', "The certificate that NSD shows (nsd_server.pem); no other is accepted. With"
                     ' control_socket: only where NSD asks for TLS there too.', 'path'),
        model.Option('control_key_file', 'The key that is shown to NSD (nsd_control.key).', 'path', private=True),
        model.Option('control_cert_file', "That key's certificate (nsd_control.pem).", 'path'),
    )

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        self._pattern = self.options['pattern']
        if not _PATTERN.fullmatch(self._pattern):
            raise InvalidField(field='pattern', why='the name of a pattern in nsd.conf is needed, without spaces')
        path, files = self.options['control_socket'], [self.options[name] for name in _FILES]
        if path and self.options['control_host']:
            raise InvalidField(field='control_host', why='only one of control_socket and control_host can be given')
        if any(files) != all(files):
            raise InvalidField(field=next(name for name in _FILES if not self.options[name]),
                               why=f'{", ".join(_FILES)} are needed together')
        if not path and not any(files):
            raise InvalidField(field='control_socket', why=f'either it is needed, or {", ".join(_FILES)} for TLS')
        address = path or (self.options['control_host'] or server.host, int(self.options['control_port']))
        self._control = NsdControl(address, Tls(*files) if all(files) else None)

    def check(self) -> list[model.Finding]:
        findings = super().check()
        if any(finding.serious for finding in findings):
            return findings
        result = self._call('look at the pattern', lambda deadline: findings.extend(self._look(deadline)))
        if not result.ok:
            findings.append(model.Finding(f'the pattern cannot be looked at: {result.error}', self._advice(result)))
        return findings

    def _create_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        moved: set[str] = set()
        outcomes = self._batch('addzones', domains, f' {self._pattern}', deadline,
                               lambda name, said: self._after_create(name, said, moved, deadline))
        if not moved:
            return outcomes
        # When a reload that is under way ends after a zone has got another pattern, NSD takes the serial that the zone
        # had for the one that it serves, and fetches nothing: it is had to fetch it once more, after that.
        time.sleep(min(RELOAD_SECONDS, deadline.left()))
        return [_caught(self._transfer, domain.name, deadline)
                if outcome is None and zone_status.escaped(domain.name) in moved else outcome
                for domain, outcome in zip(domains, outcomes, strict=True)]

    def _delete_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        foreign: dict[str, BackendError] = {}
        if len(domains) <= LOOKED_AT or not self._control.speaks_tls:
            foreign = {domain.id: error for domain in domains if (error := self._foreign(domain, deadline)) is not None}
        rest = [domain for domain in domains if domain.id not in foreign]
        outcomes = iter(self._batch('delzones', rest, '', deadline, self._after_delete) if rest else ())
        return [foreign[domain.id] if domain.id in foreign else next(outcomes) for domain in domains]

    def _refetch_many(self, domains: Sequence[model.Domain], deadline: Deadline) -> Outcomes:
        return [_caught(self._transfer, domain.name, deadline) for domain in domains]

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[dict[str, int | None], bool]:
        before = self._control.incarnation()
        zones = {zone.name: zone.serial for zone in zone_status.statuses(self._control.lines('zonestatus', deadline))
                 if not self._is_foreign(zone)}
        # A list that ended since NSD died looks like a whole one: the same NSD must still be there.
        self._ping(deadline)
        if self._control.incarnation() != before:
            raise BackendError(why='NSD was started anew while it listed its zones')
        return zones, True

    def _ping(self, deadline: Deadline) -> None:
        answer = self._control.ask('status', deadline)
        if not answer or not answer[0].startswith('version:'):
            raise BackendError(why=f'what answers on the control channel is no NSD: {" ".join(answer)[:200]}')

    def _advice(self, result: model.CallResult) -> str:
        if not result.unreachable:
            for word, advice in ADVICE.items():
                if word in str(result.error):
                    return advice
        return super()._advice(result)

    def _batch(self, verb: str, domains: Sequence[model.Domain], more: str, deadline: Deadline,
               settle: Callable[[str, NsdAnswer], None]) -> Outcomes:
        """Have *verb* carried out for all of *domains*, and each settled by what NSD says of it."""
        names = [_caught(_written, domain.name, more) for domain in domains]
        said = iter(self._control.bulk(verb, [name for name in names if isinstance(name, str)], more, deadline))
        return [_caught(settle, name, next(said)) if isinstance(name, str) else name for name in names]

    def _after_create(self, name: str, said: NsdAnswer, moved: set[str], deadline: Deadline) -> None:
        """See that the zone *name* is there with our pattern; in *moved* when it had another one.

        A zone that is given another pattern is fetched anew, and not served until then.
        """
        if not said.done:
            raise _trouble(f'addzones {name}', said.remark)
        if EXISTS not in said.remark:
            return
        status = self._status(name, deadline)
        if status.pattern is None:
            raise BackendRefused(why=f'the zone {name} stands in nsd.conf itself, where NSD cannot change it; remove it'
                                     ' from there', reason=Reason.CONFLICT)
        if self._is_foreign(status):
            raise _foreign(name)
        if status.pattern != self._pattern:
            self._obeyed(f'changezone {name} {self._pattern}', deadline)
            moved.add(name)

    def _foreign(self, domain: model.Domain, deadline: Deadline) -> BackendError | None:
        """Why the zone of a domain may not be deleted: it is an operator's own; None for others, and for no zone."""
        try:
            name = zone_status.escaped(domain.name)
            status = self._status(name, deadline)
        except BackendError:  # it is not there, or has a name that no command but delzones has room for
            return None
        return _foreign(name) if status.pattern is not None and self._is_foreign(status) else None

    def _is_foreign(self, status: zone_status.ZoneStatus) -> bool:
        """Whether a zone is a primary one, which the pool makes none of; a pattern of ours may lack its primaries."""
        return not status.is_secondary and status.pattern != self._pattern

    def _after_delete(self, name: str, said: NsdAnswer) -> None:
        if not said.done and not said.remark.startswith(ABSENT):
            raise _trouble(f'delzones {name}', said.remark)

    def _transfer(self, name: str, deadline: Deadline) -> None:
        """Have a zone fetched by AXFR, whatever serial it has."""
        self._obeyed(f'force_transfer {zone_status.escaped(name)}', deadline)

    def _obeyed(self, command: str, deadline: Deadline) -> None:
        """Give *command*, which must be answered with ``ok``."""
        answer = self._control.ask(command, deadline)
        if not answer or not answer[-1].endswith('ok'):
            raise _trouble(command, ' '.join(answer))

    def _status(self, name: str, deadline: Deadline) -> zone_status.ZoneStatus:
        found = list(zone_status.statuses(self._control.lines(f'zonestatus {name}', deadline)))
        if len(found) != 1:
            raise BackendError(why=f'NSD tells nothing of the zone {name}')
        return found[0]

    def _look(self, deadline: Deadline) -> list[model.Finding]:
        """What is wrong with the pattern and the TSIG key, as far as NSD tells."""
        name = f'designate-pool-check-{secrets.token_hex(8)}.invalid'
        self._control.bulk('addzones', [name], f' {self._pattern}', deadline)
        try:
            status = self._status(name, deadline)
            for _ in range(LOOKS):
                # Whom NSD asks is to be seen only while it waits for the answer.
                if status.asked is not None or not status.is_secondary:
                    break
                self._control.ask(f'transfer {name}', deadline)
                status = self._status(name, deadline)
        finally:
            self._control.bulk('delzones', [name], '', deadline)
        found = config_check.pattern(self._pattern, status, self.server.primaries)
        if self.server.tsig_key is not None:
            found += config_check.key(self.server.tsig_key, self._control.ask('print_tsig', deadline))
        return found


def _caught(work: Callable[..., T], *arguments: object) -> T | BackendError:
    """What *work* returns, or the error that it raises."""
    try:
        return work(*arguments)
    except BackendError as error:
        return error


def _written(name: str, more: str) -> str:
    """*name* as NSD reads it.

    :param more: what stands after it where it is added
    """
    written = zone_status.escaped(name)
    if more and len(f'add {written}{more}') > LONGEST_ENTRY:
        raise BackendRefused(why=f'with a name so long, and so odd, NSD would forget the zone when it is restarted:'
                                 f' {written[:40]}…; a pattern with a shorter name may help')
    return written


def _foreign(name: str) -> BackendError:
    return BackendError(why=f"{name} is there already, as a primary zone that was added by hand: take it away with"
                            " 'nsd-control delzone' if it may go", reason=Reason.CONFLICT)


def _trouble(command: str, words: str) -> BackendError:
    why = f'{command}: {words or "no answer"}'
    return BackendRefused(why=why) if any(each in words for each in PERMANENT) else BackendError(why=why)
