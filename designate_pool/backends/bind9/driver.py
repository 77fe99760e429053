"""BIND 9, through its control channel: secondary zones added, changed and deleted while named runs.

named needs ``allow-new-zones yes``, and a ``controls`` statement that accepts the key from our address.  It keeps the
zones through a restart.  It confirms a create before it has the contents; a poll tells when they are served.

Only zones that ``addzone`` has made are changed or deleted.  named 9.18 aborts on ``modzone`` and ``delzone`` of one of
its automatic empty zones, and on ``delzone -clean`` of a zone that was added without a file, also when it was given one
later; so each zone is looked at before, and what somebody has set by hand is left as it is.

named 9.18 answers ``delzone`` before the name is out of its list of added zones.  An ``addzone`` that comes in between
is erased from the list, while the zone itself stays: ``showzone`` fails, and a restart would lose the zone.  A zone
that is served from a file of ours is put back with ``modzone``; one that is not served is taken away, to be added anew.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping
from typing import ClassVar

import dns.exception
import dns.name

from designate_pool import model
from designate_pool.backends.base import Backend
from designate_pool.backends.bind9 import named_conf, rndc, statistics
from designate_pool.backends.capabilities import Capabilities
from designate_pool.backends.connection_pool import ConnectionPool
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, InvalidField
from designate_pool.model import Reason

# What named says, as the result in words or in the text beside it.
EXISTS = 'already exists'
NOT_FOUND = 'not found'
NOT_LOADED = 'zone not loaded'
NOT_ADDED = 'failure'
DENIED = 'permission denied'
NO_VIEW = 'no matching view'
NO_NEW_ZONES = 'Not allowing new zones'
CONFIGURED = 'must also be'
FIXED = 'reconfigurable via modzone: no'
SERVED_FROM = re.compile('^files: (.*)$', re.MULTILINE)
# What we say ourselves.
NO_KEY = 'named has no TSIG key'

#: How many zones that the statistics lack are looked for before they are believed to be missing.
SAMPLE = 3

#: What to do about an error that contains these words.
_ADVICE = {
    NO_NEW_ZONES: "put 'allow-new-zones yes;' into the options of named.conf, or into the view, and run 'rndc"
                  " reconfig'",
    NO_VIEW: "correct 'view', or add the view to named.conf and run 'rndc reconfig'; a named.conf with views has no"
             ' default view',
    NO_KEY: "add a 'key' statement with the name, algorithm and secret of tsig_key to named.conf and run 'rndc"
            " reconfig'",
    rndc.NO_ANSWER: "named's log has the reason: for 'bad auth' give the section the algorithm and secret of the key"
                    " that the 'controls' statement names, for 'clock skew' set the clocks",
}

_PLAIN_VIEW = re.compile(r'[A-Za-z0-9_-]{1,63}')
_SERIAL = re.compile(r'^serial: ([0-9]+)$', re.MULTILINE)
_SECONDARY = re.compile(r'^type: (secondary|slave)$', re.MULTILINE)


class Bind9(Backend):
    """A BIND server."""

    capabilities = Capabilities(fetches_on_create=True)

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        model.Option('rndc_host', "Address of named's control channel; the server's host when not set."),
        model.Option('rndc_port', "Port of named's control channel.", 'port', 953),
        model.Option('rndc_key_file', 'File with the key of the control channel, as rndc-confgen -a writes it; it is'
                     ' read again for each new connection.', 'path', private=True),
        model.Option('rndc_key_name', 'Name of the key: which one to take from rndc_key_file, the first when not set.'),
        model.Option('rndc_key_algorithm', "Algorithm of rndc_key_secret: one of " + ', '.join(rndc.ALGORITHMS) + '.',
                     default='hmac-sha256'),
        model.Option('rndc_key_secret', 'The key in Base64; instead of rndc_key_file.', secret=True),
        model.Option('view', 'View that the zones go into; the default view when not set.'),
        model.Option('zone_file_folder', "Folder for the zones' files, as named sees it; named's own working"
                     ' directory when not set.'),
        model.Option('statistics_url', "named's statistics channel, such as http://192.0.2.53:8053: it lists all zones;"
                     ' without it the control channel is asked for each zone by name.'),
    )

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        self._host = self.options['rndc_host'] or server.host
        self._port = int(self.options['rndc_port'])
        self._view = self.options['view'] or '_default'
        folder = self.options['zone_file_folder'] or ''
        self._folder = folder.rstrip('/') + '/' if folder else ''
        self._primaries = named_conf.primaries(server.primaries, server.tsig_key) if server.primaries else ''
        if not _PLAIN_VIEW.fullmatch(self._view):
            raise InvalidField(field='view', why='it may hold letters, digits, hyphens and underscores only')
        named_conf.quoted(self._folder, 'zone_file_folder')
        self._key()
        url = self.options['statistics_url']
        self._statistics = statistics.StatisticsChannel(url) if url else None
        self._channels = ConnectionPool(self._connect, keep=max(1, server.max_in_flight))

    def close(self) -> None:
        self._channels.close()

    def check(self) -> list[model.Finding]:
        """What :meth:`Backend.check` finds, and whether named knows the TSIG key and lists its zones."""
        findings = super().check()
        if any(finding.serious for finding in findings):
            return findings
        key = self._call('tsig-list', self._see_key)
        if not key.ok:
            findings.append(model.Finding(str(key.error), self._advice(key)))
        listed = self.list_zones([]).result
        if not listed.ok:
            findings.append(model.Finding(
                f'the zones cannot be listed: {listed.error}',
                "see that named.conf has a 'statistics-channels' statement that listens where statistics_url says and"
                " allows this host's address"))
        return findings

    def _create(self, domain: model.Domain, deadline: Deadline) -> None:
        if not self._primaries:
            raise BackendRefused(why=f'server {self.server.label} has no primaries to transfer zones from',
                                 reason=Reason.NO_PRIMARIES)
        zone = _name(domain.name)
        file = self._folder + named_conf.file_name(zone, self._view, domain.generation)
        settings = named_conf.secondary(self._primaries, file)
        answer = self._ask(f'addzone {self._where(zone)} {named_conf.written(settings)};', deadline)
        if answer.error == EXISTS:
            self._adjust(zone, deadline)
        elif answer.result:
            raise _trouble('addzone', zone, answer)

    def _adjust(self, zone: dns.name.Name, deadline: Deadline) -> None:
        """Give a zone that is there already the primaries, the key and the folder that the section has now.

        It goes on serving its contents, and asks the new primaries at once; named moves its file when it starts next.
        """
        shown = self._ask(f'showzone {self._where(zone)}', deadline)
        held = self._added(zone, shown, deadline)
        if held is None:
            raise _automatic(zone) if shown.error == NOT_ADDED else _trouble('showzone', zone, shown)
        if not held:
            self._remove(zone, held, deadline)
            raise BackendError(why=f'{zone.to_text()} was not in the list of zones that named has added, and not'
                                   ' served; it has been taken away, and the next try adds it')
        file = named_conf.zone_file(held)
        ours = self._is_our_file(zone, file)
        settings = named_conf.secondary(self._primaries, self._folder + file.rpartition('/')[2] if ours else file)
        if ours and set(settings) <= set(held):  # of others the answer to modzone tells whether they are in named.conf
            return
        settings += [statement for statement in held if statement[0] not in named_conf.SETTINGS]
        changed = self._ask(f'modzone {self._where(zone)} {named_conf.written(settings)};', deadline)
        if changed.result:
            raise _trouble('modzone', zone, changed)
        if CONFIGURED in changed.text:
            raise _configured(zone)
        refreshed = self._ask(f'refresh {self._where(zone)}', deadline)
        if refreshed.result:
            raise _trouble('refresh', zone, refreshed)

    def _delete(self, domain: model.Domain, deadline: Deadline) -> None:
        zone = _name(domain.name)
        held = self._added(zone, self._ask(f'showzone {self._where(zone)}', deadline), deadline)
        if held is not None:
            self._remove(zone, held, deadline)

    def _remove(self, zone: dns.name.Name, held: list[named_conf.Statement], deadline: Deadline) -> None:
        clean = '-clean ' if self._is_our_file(zone, named_conf.zone_file(held)) else ''
        deleted = self._ask(f'delzone {clean}{self._where(zone)}', deadline)
        if not _is_absent('delzone', zone, deleted) and CONFIGURED in deleted.text:
            raise _configured(zone)

    def _refetch(self, domain: model.Domain, deadline: Deadline) -> None:
        zone = _name(domain.name)
        answer = self._ask(f'retransfer {self._where(zone)}', deadline)
        if answer.result:
            raise _trouble('retransfer', zone, answer)

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[Mapping[str, int | None], bool]:
        if self._statistics is None:
            found = ((name.lower(), *self._status(name, deadline)) for name in names)
            return {name: serial for name, there, serial in found if there}, False
        serials = dict(self._statistics.zones(self._view, deadline))
        missing = list(itertools.islice((name for name in names if name.lower() not in serials), SAMPLE))
        if missing and all(self._status(name, deadline)[0] for name in missing):
            raise BackendError(why=f'the statistics leave zones out, {missing[0]} for one; named.conf must not have'
                                   " 'zone-statistics none'")
        return serials, True

    def _ping(self, deadline: Deadline) -> None:
        answer = self._ask('null', deadline)
        if answer.result:
            raise BackendError(why=f'the control channel answered: {answer.words}')

    def _advice(self, result: model.CallResult) -> str:
        error = str(result.error)
        where = f'{self._host} port {self._port}'
        if result.unreachable:
            return f"see that named runs, and that a 'controls' statement in its named.conf has it listen at {where}"
        if rndc.NO_ANSWER in error and rndc.turns_us_away(self._host, self._port, Deadline(self.server.call_timeout)):
            return f"add this host's address to 'allow' of the 'controls' statement for {where} in named.conf"
        return next((advice for words, advice in _ADVICE.items() if words in error), super()._advice(result))

    def _added(self, zone: dns.name.Name, shown: rndc.RndcAnswer,
               deadline: Deadline) -> list[named_conf.Statement] | None:
        """The statements of a zone that ``addzone`` has made; None when there is none, or an automatic empty one.

        Of a zone that is not in named's list of added zones they are the file alone, or nothing when it is not served.

        :param shown: what named answered to ``showzone``
        :raises BackendError: for a zone of another origin
        """
        if shown.error == NOT_ADDED:
            status = self._ask(f'zonestatus {self._where(zone)}', deadline)
            if FIXED in status.text:
                return None
            if status.error == NOT_LOADED:
                # A member of a catalog zone may be in this state too; named adds it again when the catalog changes.
                return []
            if status.result:
                raise _trouble('zonestatus', zone, status)
            found = SERVED_FROM.search(status.text)
            if found is not None and self._is_our_file(zone, found[1]):
                return [('file', named_conf.quoted(found[1], 'zone_file_folder'))]
            raise BackendError(why=f"{zone.to_text()} is a member of a catalog zone there: take 'catalog-zones' out of"
                                   " named.conf and run 'rndc reconfig'", reason=Reason.CONFLICT)
        if _is_absent('showzone', zone, shown):
            return None
        held = named_conf.read_zone(shown.text)
        if not self._is_our_file(zone, named_conf.zone_file(held)):
            if FIXED in self._ask(f'zonestatus {self._where(zone)}', deadline).text:
                raise _configured(zone)
        if named_conf.zone_type(held) != 'secondary':
            raise BackendError(why=f"{zone.to_text()} is there already, as a {named_conf.zone_type(held)} zone that was"
                                   " added by hand: take it away with 'rndc delzone'", reason=Reason.CONFLICT)
        return held

    def _status(self, name: str, deadline: Deadline) -> tuple[bool, int | None]:
        """Whether there is such a secondary zone, and the serial that it serves."""
        zone = _name(name)
        answer = self._ask(f'zonestatus {self._where(zone)}', deadline)
        if answer.error == NOT_LOADED:
            return True, None
        if _is_absent('zonestatus', zone, answer) or not _SECONDARY.search(answer.text):
            return False, None
        serial = _SERIAL.search(answer.text)
        return True, int(serial[1]) if serial else None

    def _see_key(self, deadline: Deadline) -> None:
        """Raise BackendRefused when named has no key of the name that the transfers are signed with."""
        key = self.server.tsig_key
        if key is None:
            return
        answer = self._ask('tsig-list', deadline)
        if answer.result:
            raise BackendError(why=f'tsig-list: {answer.words}')
        known = re.findall(f'^view "{self._view}";.* key "(.*)";$', answer.text, re.MULTILINE)
        if _name(key.name) not in map(_name, known):
            raise BackendRefused(why=f"{NO_KEY} '{key.name}' in view '{self._view}'", reason=Reason.BAD_KEY)

    def _is_our_file(self, zone: dns.name.Name, path: str) -> bool:
        return named_conf.is_file_of(path, zone, self._view)

    def _where(self, zone: dns.name.Name) -> str:
        return f'"{named_conf.escaped(zone)}" IN {self._view}'

    def _ask(self, command: str, deadline: Deadline) -> rndc.RndcAnswer:
        return self._channels.use(lambda channel, deadline: channel.ask(command, deadline), deadline)

    def _connect(self, deadline: Deadline) -> rndc.RndcChannel:
        return rndc.connect(self._host, self._port, self._key(), deadline)

    def _key(self) -> rndc.RndcKey:
        name, path, secret = (self.options[f'rndc_key_{option}'] for option in ('name', 'file', 'secret'))
        if bool(path) == bool(secret):
            raise InvalidField(field='rndc_key_file', why='exactly one of rndc_key_file and rndc_key_secret is needed')
        if path:
            return rndc.RndcKey.read(path, name)
        return rndc.RndcKey.make(name or 'rndc-key', self.options['rndc_key_algorithm'], secret)


def _is_absent(verb: str, zone: dns.name.Name, answer: rndc.RndcAnswer) -> bool:
    """Whether named says that it has no such zone.

    :raises BackendError: for any other trouble, a view that is not there included
    """
    if answer.result and (answer.error != NOT_FOUND or NO_VIEW in answer.text):
        raise _trouble(verb, zone, answer)
    return bool(answer.result)


def _trouble(verb: str, zone: dns.name.Name, answer: rndc.RndcAnswer) -> BackendError:
    why = f'{verb} {zone.to_text()}: {answer.words}'
    if answer.error == DENIED or NO_VIEW in answer.text:
        return BackendRefused(why=why)
    return BackendError(why=why, reason=Reason.NO_ZONE if answer.error in (NOT_FOUND, NOT_LOADED) else None)


def _configured(zone: dns.name.Name) -> BackendError:
    return BackendError(why=f"{zone.to_text()} stands in named.conf there: take it out and run 'rndc reconfig'",
                        reason=Reason.CONFLICT)


def _automatic(zone: dns.name.Name) -> BackendError:
    return BackendError(why=f"{zone.to_text()} is one of named's own empty zones: put 'disable-empty-zone"
                            f""" "{zone.to_text()}";' into named.conf and run 'rndc reconfig'""",
                        reason=Reason.CONFLICT)


def _name(text: str) -> dns.name.Name:
    try:
        return dns.name.from_text(text)
    except (dns.exception.DNSException, ValueError) as error:
        raise BackendRefused(why=f'{text!r} is not a domain name ({error})') from error
