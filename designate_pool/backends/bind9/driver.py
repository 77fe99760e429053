"""BIND 9: secondary zones are added, changed and deleted through named's control channel while it runs.

named needs ``allow-new-zones yes``, and a ``controls`` statement that accepts the key from this host's address.  It
keeps the zones across a restart.  It confirms a create before it has the contents; a poll finds out when they are
served.

Only zones that were added with ``addzone`` are changed or deleted.  named 9.18 aborts on ``modzone`` and ``delzone`` of
one of its automatic empty zones, and on ``delzone -clean`` of a zone that was added without a file, even if it was
given one later.  So the driver looks at each zone first, and does not touch what an operator has configured by hand.

named 9.18 answers ``delzone`` before it has removed the name from its list of added zones.  An ``addzone`` in between
is removed from the list too, while the zone itself stays: ``showzone`` fails, and a restart would lose the zone.  Such
a zone is put back with ``modzone`` if it is served from a file of ours; if it is not served, it is deleted and added
again.
"""

from __future__ import annotations

import http.client
import itertools
import re
import urllib.parse
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar
from xml.etree import ElementTree

import dns.name

from designate_pool import model
from designate_pool.backends.base import (ADOPTS_ZONES, BIND_LIMITS, MAX_RECORDS_PER_TYPE, Backend, Capabilities,
                                          probe_domain)
from designate_pool.backends.bind9 import named_conf, rndc
from designate_pool.backends.connection_pool import ConnectionPool
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, InvalidField
from designate_pool.model import Reason
from designate_pool.protocol.names_and_rdata import escaped, name_of_server, parse_name

PATH = '/xml/v3/zones'
#: Octets; the list of a million zones has some 250 million.
LONGEST_ANSWER = 1 << 29
#: Octets from the end of one zone to that of the next, which are in memory at a time.
LARGEST_ZONE = 1 << 20
#: What an answer of another form raises.
MALFORMED = (ElementTree.ParseError, LookupError, ValueError, BackendRefused)
#: The serial of a zone that is not loaded.
NO_SERIAL = '-'

#: What named calls zones of a type, now and formerly.
SECONDARY, PRIMARY = ('secondary', 'slave'), ('primary', 'master')


class StatisticsChannel:
    """Lists the zones of a BIND through its statistics channel: ``/xml/v3/zones`` over HTTP.

    The answer has about 250 octets per zone; it is parsed while it arrives, with only one zone in memory at a time.

    :param url: of the form ``http://192.0.2.53:8053``; InvalidField for any other
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urllib.parse.urlsplit(url)
            host, port = parts.hostname, parts.port or 80
        except ValueError as error:
            raise InvalidField(field='statistics_url', why=f"'{url}' is not a URL ({error})") from error
        if parts.scheme != 'http' or not host or parts.query or parts.fragment or not url.isascii() or ' ' in url:
            raise InvalidField(field='statistics_url', why=f"'{url}' does not look like http://192.0.2.53:8053")
        self._host, self._port, self._path = host, port, parts.path.rstrip('/') + PATH
        self._where = f'the statistics channel at {host} port {port}'

    def zones(self, view: str, deadline: Deadline) -> Iterator[tuple[str, int | None, bool]]:
        """Of each secondary and primary zone of *view* its name, serial (None without contents), and whether it is
        primary, as are secondary ones here that named signs.

        :raises BackendError: when the answer is an error, cannot be parsed or is cut short
        """
        try:
            yield from _zones(self._pieces(deadline), view)
        except (*MALFORMED, http.client.HTTPException) as error:
            raise BackendError(why=f'{self._where} has sent an answer that cannot be parsed: {error}') from error

    def _pieces(self, deadline: Deadline) -> Iterator[bytes]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=deadline.left())
        try:
            connection.connect()
            connected = connection.sock
            connection.request('GET', self._path)
            connected.settimeout(deadline.left())
            with connection.getresponse() as response:
                if response.status != 200:
                    raise BackendError(why=f'{self._where} answered {response.status} {response.reason}')
                octets = 0
                while piece := response.read1(1 << 16):
                    octets += len(piece)
                    if octets > LONGEST_ANSWER:
                        raise ValueError(f'it is longer than {LONGEST_ANSWER} octets')
                    yield piece
                    connected.settimeout(deadline.left())
        finally:
            connection.close()


def _zones(pieces: Iterable[bytes], view: str) -> Iterator[tuple[str, int | None, bool]]:
    parser: Any = ElementTree.XMLPullParser(('start', 'end'))
    views: list[str] = []
    zones: ElementTree.Element | None = None
    unread = 0
    for piece in itertools.chain(pieces, (b'',)):
        if piece:
            parser.feed(piece)
        else:
            parser.close()
        unread += len(piece)
        for event, element in parser.read_events():
            if event == 'start' and element.tag == 'view':
                views.append(element.get('name', ''))
            elif event == 'start' and element.tag == 'zones':
                zones = element
            elif event == 'end' and element.tag == 'zone':
                if zones is None:
                    raise ValueError('a zone that is in no view')
                kind = element.findtext('type')
                if views[-1:] == [view] and element.get('rdataclass') == 'IN' and kind in SECONDARY + PRIMARY:
                    serial = element.findtext('serial', NO_SERIAL)
                    yield (name_of_server(element.attrib['name']), None if serial == NO_SERIAL else int(serial),
                           kind in PRIMARY)
                zones.clear()
                unread = 0
        if unread > LARGEST_ZONE:
            raise ValueError(f'more than {LARGEST_ZONE} octets without a zone')
    if view not in views:
        raise BackendError(why=f"named has no view '{view}', but has {', '.join(views) or 'none'}")


# What named answers, as the name of the result or in the text beside it.
EXISTS = 'already exists'
NOT_FOUND = 'not found'
NOT_LOADED = 'zone not loaded'
NOT_ADDED = 'failure'
DENIED = 'permission denied'
NO_VIEW = 'no matching view'
NO_NEW_ZONES = 'Not allowing new zones'
CONFIGURED = 'must also be'
FIXED = 'reconfigurable via modzone: no'
STILL_PRIMARY = 'not a secondary'
INLINE_SIGNING = 'inline signing: yes'
SERVED_FROM = re.compile('^files: (.*)$', re.MULTILINE)
#: How many zones that are missing in the statistics are looked up by name before the statistics are believed.
SAMPLE = 3
#: How many zones a check asks at most whether they are signed.
MOST_ASKED = 100

_PLAIN_VIEW = re.compile(r'[A-Za-z0-9_-]{1,63}')
_SERIAL = re.compile(r'^serial: ([0-9]+)$', re.MULTILINE)
_SECONDARY = re.compile(r'^type: (secondary|slave)$', re.MULTILINE)


class Bind9(Backend):
    """A BIND server."""

    capabilities = Capabilities(fetches_on_create=True, limits=BIND_LIMITS)

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        model.Option('rndc_host', "Address of named's control channel; the server's host when not set."),
        model.Option('rndc_port', "Port of named's control channel.", 'port', 953),
        model.Option('rndc_key_file', 'File with the key of the control channel, as rndc-confgen -a writes it; it is'
                     ' read again for each new connection.', 'path', private=True),
        model.Option('rndc_key_name', 'Name of the key in rndc_key_file; the first one when not set.'),
        model.Option('rndc_key_algorithm', "Algorithm of rndc_key_secret: one of " + ', '.join(rndc.ALGORITHMS) + '.',
                     default='hmac-sha256'),
        model.Option('rndc_key_secret', 'The key in Base64; instead of rndc_key_file.', secret=True),
        model.Option('view', 'View that the zones are added to; the default view when not set.'),
        model.Option('zone_file_folder', "Folder for the zones' files, as named sees it; named's own working"
                     ' directory when not set.'),
        model.Option('primaries_tls', 'Name of a tls statement in named.conf: zones are transferred over TLS by it, and'
                     ' primaries are addresses of [service:minidns] listen_tls. Plain TCP when not set.'),
        model.Option('statistics_url', "URL of named's statistics channel, such as http://192.0.2.53:8053, which lists"
                     ' all zones; without it the control channel is queried for each zone.'),
        ADOPTS_ZONES, MAX_RECORDS_PER_TYPE,
    )
    ADVICE = {
        Reason.NO_ZONE_CHANGES: "put 'allow-new-zones yes;' into the options of named.conf, or into the view, and run"
                                " 'rndc reconfig'",
        Reason.NOT_CONFIGURED: "correct 'view', or add the view to named.conf and run 'rndc reconfig'; a named.conf"
                               ' with views has no default view',
        Reason.BAD_KEY: "look into named's log: for 'bad auth' give the section the algorithm and secret of the key"
                        " that the 'controls' statement names, for 'clock skew' set the clocks",
    }

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        self._host = self.options['rndc_host'] or server.host
        self._port = int(self.options['rndc_port'])
        self._view = self.options['view'] or '_default'
        folder = self.options['zone_file_folder'] or ''
        self._folder = folder.rstrip('/') + '/' if folder else ''
        self._primaries = named_conf.primaries(server.primaries, server.tsig_key, self.options['primaries_tls'] or ''
                                               ) if server.primaries else ''
        if not _PLAIN_VIEW.fullmatch(self._view):
            raise InvalidField(field='view', why='only letters, digits, hyphens and underscores are allowed')
        named_conf.quoted(self._folder, 'zone_file_folder')
        self._key()
        url = self.options['statistics_url']
        self._statistics = StatisticsChannel(url) if url else None
        self._channels = ConnectionPool(self._connect, keep=max(1, server.max_in_flight))

    def close(self) -> None:
        """Close the connections that are kept between calls."""
        self._channels.close()

    def _check_settings(self, deadline: Deadline, names: Collection[str]) -> Iterator[model.Finding]:
        """Check that named lists its zones, and signs none of them nor a new one."""
        listed = self.list_zones([]).result
        if not listed.ok:
            yield model.Finding(
                f'the zones cannot be listed: {listed.error}',
                "check that named.conf has a 'statistics-channels' statement that listens where statistics_url says and"
                " allows this host's address")
        elif self._signs(names, deadline):
            yield model.Finding('named signs zones, so that their serials are not ours',
                                "remove 'dnssec-policy' and 'inline-signing' from the options and the pool's zones in"
                                ' named.conf, or set the policy to none')

    def _signs(self, names: Collection[str], deadline: Deadline) -> bool:
        """Whether named signs a zone that is added (it loads the keys of no others), or one of *names*."""
        probe = probe_domain()
        self._create(probe, deadline)
        loaded = self._ask(f'loadkeys {self._where(parse_name(probe.name))}', deadline)
        self._delete(probe, deadline)
        statuses = (self._ask(f'zonestatus {self._where(parse_name(name))}', deadline).text
                    for name in itertools.islice(names, MOST_ASKED))
        return not loaded.result or any(INLINE_SIGNING in text and _SECONDARY.search(text) for text in statuses)

    def _create(self, domain: model.Domain, deadline: Deadline) -> None:
        self._require_primaries()
        zone = parse_name(domain.name)
        file = self._folder + named_conf.file_name(zone, self._view, domain.generation)
        settings = named_conf.secondary(self._primaries, file)
        answer = self._ask(f'addzone {self._where(zone)} {named_conf.written(settings)};', deadline)
        if answer.error == EXISTS:
            self._update(zone, deadline)
        elif answer.result:
            raise _error('addzone', zone, answer)

    def _update(self, zone: dns.name.Name, deadline: Deadline) -> None:
        """Give an existing zone the primaries, the key and the folder that the section has now.

        The zone stays served, and named queries the new primaries at once; it moves the file when it restarts.
        """
        shown = self._ask(f'showzone {self._where(zone)}', deadline)
        adopting = bool(self.options['adopts_zones'])
        if adopting and not shown.result and self._is_fed_by_us(named_conf.read_zone(shown.text)) and \
                self._status(zone.to_text(), deadline)[0]:
            return  # also a zone in named.conf itself
        statements = self._added(zone, shown, deadline, adopting)
        if statements is None:
            raise _automatic_zone(zone) if shown.error == NOT_ADDED else _error('showzone', zone, shown)
        if not statements:
            self._remove(zone, statements, deadline)
            raise BackendError(why=f'{zone.to_text()} was not served, and not in the list of zones that named has'
                                   ' added; it has been deleted, and the next try adds it')
        file = named_conf.zone_file(statements)
        ours = self._is_our_file(zone, file)
        settings = self._as_secondary(statements, self._folder + file.rpartition('/')[2] if ours else file)
        # Of a zone with another file, only the answer to modzone shows whether it is configured in named.conf.
        if ours and set(settings) <= set(statements):
            return
        changed = self._ask(f'modzone {self._where(zone)} {named_conf.written(settings)};', deadline)
        if changed.result:
            raise _error('modzone', zone, changed)
        if CONFIGURED in changed.text:
            raise _configured_zone(zone)
        refreshed = self._ask(f'refresh {self._where(zone)}', deadline)
        if adopting and STILL_PRIMARY in refreshed.text:
            raise BackendError(why=f"{zone.to_text()} is still served as a primary zone: run 'rndc reconfig' once for"
                                   ' all such zones', reason=Reason.CONFLICT)
        if refreshed.result:
            raise _error('refresh', zone, refreshed)

    def _delete(self, domain: model.Domain, deadline: Deadline) -> None:
        zone = parse_name(domain.name)
        statements = self._added(zone, self._ask(f'showzone {self._where(zone)}', deadline), deadline)
        if statements is not None:
            self._remove(zone, statements, deadline)

    def _remove(self, zone: dns.name.Name, held: list[named_conf.Statement], deadline: Deadline) -> None:
        clean = '-clean ' if self._is_our_file(zone, named_conf.zone_file(held)) else ''
        deleted = self._ask(f'delzone {clean}{self._where(zone)}', deadline)
        if not _is_absent('delzone', zone, deleted) and CONFIGURED in deleted.text:
            raise _configured_zone(zone)

    def _refetch(self, domain: model.Domain, deadline: Deadline) -> None:
        zone = parse_name(domain.name)
        answer = self._ask(f'retransfer {self._where(zone)}', deadline)
        if answer.result:
            raise _error('retransfer', zone, answer)

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[Mapping[str, int | None], bool]:
        if self._statistics is None:
            zones = ((name.lower(), *self._status(name, deadline)) for name in names)
            return {name: serial for name, exists, serial in zones if exists}, False
        primary, serials = dict[str, int | None](), dict[str, int | None]()
        for name, serial, is_primary in self._statistics.zones(self._view, deadline):
            (primary if is_primary else serials)[name] = serial
        serials |= {name: primary[name] for name in map(str.lower, names)
                    if name in primary and self._status(name, deadline)[0]}
        missing = list(itertools.islice((name for name in names if name.lower() not in serials), SAMPLE))
        if missing and all(self._status(name, deadline)[0] for name in missing):
            raise BackendError(why=f'the statistics lack zones, {missing[0]} for example; named.conf must not have'
                                   " 'zone-statistics none'")
        return serials, True

    def _zones(self, deadline: Deadline) -> Iterator[tuple[str, int | None, bool]]:
        if self._statistics is None:
            raise BackendRefused(why='named lists its zones only on its statistics channel: set statistics_url')
        return self._statistics.zones(self._view, deadline)

    def _ping(self, deadline: Deadline) -> None:
        answer = self._ask('null', deadline)
        if answer.result:
            raise BackendError(why=f'the control channel answered: {answer.words}')

    def _advice(self, result: model.CallResult) -> str:
        where = f'{self._host} port {self._port}'
        if result.unreachable:
            return f"check that named runs, and that a 'controls' statement in its named.conf has it listen at {where}"
        if result.reason is Reason.BAD_KEY and rndc.rejects_address(self._host, self._port,
                                                                    Deadline(self.server.call_timeout)):
            return f"add this host's address to 'allow' of the 'controls' statement for {where} in named.conf"
        return super()._advice(result)

    def _is_fed_by_us(self, held: list[named_conf.Statement]) -> bool:
        """Whether a zone is a secondary one with the primaries and the key that the section has now."""
        return named_conf.zone_type(held) == 'secondary' and named_conf.secondary(self._primaries, '')[-1] in held

    def _as_secondary(self, held: list[named_conf.Statement], file: str) -> list[named_conf.Statement]:
        """The statements of a zone of ours that keeps the other ones of *held*, a primary zone or a secondary one."""
        return [*named_conf.secondary(self._primaries, file),
                *(statement for statement in named_conf.converted(held) if statement[0] not in named_conf.SETTINGS)]

    def _added(self, zone: dns.name.Name, shown: rndc.RndcAnswer, deadline: Deadline,
               adopting: bool = False) -> list[named_conf.Statement] | None:
        """The statements of a zone that was added with ``addzone``; None for no zone or an automatic empty one.

        For a zone that is missing in named's list of added zones these are only its file; none if it is not served.

        :param shown: named's answer to ``showzone``
        :param adopting: whether it may be a primary zone
        :raises BackendError: for a zone that was configured otherwise
        """
        if shown.error == NOT_ADDED:
            status = self._ask(f'zonestatus {self._where(zone)}', deadline)
            if FIXED in status.text:
                return None
            if status.error == NOT_LOADED:
                # A member of a catalog zone may be in this state too; named adds it again when the catalog changes.
                return []
            if status.result:
                raise _error('zonestatus', zone, status)
            match = SERVED_FROM.search(status.text)
            if match is not None and self._is_our_file(zone, match[1]):
                return [('file', named_conf.quoted(match[1], 'zone_file_folder'))]
            raise BackendError(why=f"{zone.to_text()} is a member of a catalog zone there: remove 'catalog-zones' from"
                                   " named.conf and run 'rndc reconfig'", reason=Reason.CONFLICT)
        if _is_absent('showzone', zone, shown):
            return None
        statements = named_conf.read_zone(shown.text)
        if not self._is_our_file(zone, named_conf.zone_file(statements)):
            if FIXED in self._ask(f'zonestatus {self._where(zone)}', deadline).text:
                raise _configured_zone(zone, named_conf.written(self._as_secondary(
                    statements, named_conf.zone_file(statements))) if adopting else '')
        kind = named_conf.zone_type(statements)
        if kind != 'secondary' and not (adopting and kind == 'primary'):
            raise BackendError(why=f"{zone.to_text()} already exists there, as a {kind} zone that was added by hand:"
                                   " remove it with 'rndc delzone', or have it taken over by adopts_zones",
                               reason=Reason.CONFLICT)
        return statements

    def _status(self, name: str, deadline: Deadline) -> tuple[bool, int | None]:
        """Whether there is such a secondary zone, and the serial that is served."""
        zone = parse_name(name)
        answer = self._ask(f'zonestatus {self._where(zone)}', deadline)
        if answer.error == NOT_LOADED:
            return True, None
        if _is_absent('zonestatus', zone, answer) or not _SECONDARY.search(answer.text):
            return False, None
        serial = _SERIAL.search(answer.text)
        return True, int(serial[1]) if serial else None

    def _is_our_file(self, zone: dns.name.Name, path: str) -> bool:
        return named_conf.is_file_of(path, zone, self._view)

    def _where(self, zone: dns.name.Name) -> str:
        return f'"{escaped(zone, named_conf.PLAIN_OCTETS)}" IN {self._view}'

    def _ask(self, command: str, deadline: Deadline) -> rndc.RndcAnswer:
        return self._channels.use(lambda channel, deadline: channel.ask(command, deadline), deadline)

    def _connect(self, deadline: Deadline) -> rndc.RndcChannel:
        return rndc.open_channel(self._host, self._port, self._key(), deadline)

    def _key(self) -> rndc.RndcKey:
        name, path, secret = (self.options[f'rndc_key_{option}'] for option in ('name', 'file', 'secret'))
        if bool(path) == bool(secret):
            raise InvalidField(field='rndc_key_file', why='exactly one of rndc_key_file and rndc_key_secret is needed')
        if path:
            return rndc.RndcKey.read(path, name)
        return rndc.RndcKey.make(name or 'rndc-key', self.options['rndc_key_algorithm'], secret)


def _is_absent(verb: str, zone: dns.name.Name, answer: rndc.RndcAnswer) -> bool:
    """Whether named has answered that it has no such zone; BackendError for any other failure."""
    if answer.result and (answer.error != NOT_FOUND or NO_VIEW in answer.text):
        raise _error(verb, zone, answer)
    return bool(answer.result)


def _error(verb: str, zone: dns.name.Name, answer: rndc.RndcAnswer) -> BackendError:
    why = f'{verb} {zone.to_text()}: {answer.words}'
    if NO_VIEW in answer.text:
        return BackendRefused(why=why, reason=Reason.NOT_CONFIGURED)
    if NO_NEW_ZONES in answer.text:
        kind = BackendRefused if answer.error == DENIED else BackendError
        return kind(why=why, reason=Reason.NO_ZONE_CHANGES)
    if answer.error == DENIED:
        return BackendRefused(why=why)
    return BackendError(why=why, reason=Reason.NO_ZONE if answer.error in (NOT_FOUND, NOT_LOADED) else None)


def _configured_zone(zone: dns.name.Name, statements: str = '') -> BackendError:
    """The error for a zone of named.conf; *statements* are what it should say there instead, if anything."""
    change = f'have its statement say {statements}' if statements else 'remove it'
    return BackendError(why=f"{zone.to_text()} is configured in named.conf there: {change} and run 'rndc reconfig'",
                        reason=Reason.CONFLICT)


def _automatic_zone(zone: dns.name.Name) -> BackendError:
    return BackendError(why=f"{zone.to_text()} is one of named's automatic empty zones: put 'disable-empty-zone"
                            f""" "{zone.to_text()}";' into named.conf and run 'rndc reconfig'""",
                        reason=Reason.CONFLICT)
