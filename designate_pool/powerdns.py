"""The client of PowerDNS Authoritative's HTTP API, for the driver and for the planner's target.

Each request has a connection of its own, since PowerDNS closes it after the answer.  Redirects are not followed: they
would send the key to another address.  It is made without ``requests``, whose time limits are for each read, so that an
answer whose headers only drip would be waited for beyond the deadline.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import io
import json
import random
import re
import ssl
import time
import types
import urllib.parse
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import dns.exception
import dns.name

from designate_pool.backoff import Backoff
from designate_pool.deadline import ClosedUnanswered, Deadline, abort, connect, receive, send
from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, InvalidField
from designate_pool.model import Reason
from designate_pool.protocol import tls
from designate_pool.protocol.names_and_rdata import escaped, name_of_server, parse_name

#: The API's names for the kinds of zones, in lower case: for secondary zones the old and the new one.
SECONDARY_KINDS = ('slave', 'secondary')

#: Octets; the list of a million zones has some 250 million.
LONGEST_ANSWER = 1 << 29

#: How often a request is made that is answered with 500, which with SQLite mostly means that two transactions collided.
#: The pause before the next try is a random part of PAUSES, in seconds.
TRIES = 8
PAUSES = Backoff(0.02, jitter=(0.0, 1.0))

_PLAIN_OCTETS = frozenset(b'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/')
_PLAIN_ID = re.compile(r'[A-Za-z0-9_-]+')
_NOT_IN_ID = re.compile(r'[^A-Za-z0-9.-]')
_PATH = re.compile(r'(/[A-Za-z0-9._~-]+)*')
_PRINTABLE = re.compile(r'[\x21-\x7e]+')


@dataclasses.dataclass(frozen=True)
class PdnsAnswer:
    """An answer of the API, with its parsed body (None when it is not JSON) and the error message of a failure."""

    status: int
    json: Any
    words: str


class PdnsServer:
    """The authoritative server with the id *server_id* in the API at *url*, and its zones.

    :param url: ``http://`` or ``https://``, a host, an optional port, and the path before ``/api/v1`` if there is one
    :param ca_file: the certificate authorities for ``https``; those of the system when None
    :param server_id: 'localhost' unless a proxy serves several servers
    :raises InvalidField: for values that cannot be used
    """

    def __init__(self, url: str, key: str, ca_file: str | None = None, server_id: str = 'localhost') -> None:
        if not _PRINTABLE.fullmatch(key):
            raise InvalidField(field='api_key', why='only printable ASCII without spaces is allowed')
        if not _PLAIN_ID.fullmatch(server_id):
            raise InvalidField(field='server_id', why='only letters, digits, hyphens and underscores are allowed')
        scheme, self._host, port, path = _parts(url)
        self.url = url.rstrip('/')
        self._tls = None
        if scheme == 'https':
            self._tls = _tls_context(ca_file)
        elif ca_file:
            raise InvalidField(field='ca_file', why='it can only be used with an https:// api_url')
        self._address = (self._host, port or (443 if self._tls else 80))
        self._id = server_id
        self._base = f'{path}/api/v1/servers/{server_id}'
        host = f'[{self._host}]' if ':' in self._host else self._host
        self._headers = (f'Host: {host}:{self._address[1]}\r\nX-API-Key: {key}\r\nAccept: application/json\r\n'
                         'Connection: close\r\n')

    def ask(self, verb: str, path: str, deadline: Deadline, body: object = None, what: str = '',
            expected: Collection[int] = ()) -> PdnsAnswer:
        """Make one request, which must be safe to repeat.

        :param path: what follows the server's own path, as it stands in a URL
        :param what: it does, for messages
        :param expected: statuses; any when empty
        :raises BackendUnreachable: when no TLS connection can be made
        :raises BackendError: when the answer is not HTTP, or has another status
        :raises OSError: when the server cannot be reached, or does not answer in time
        """
        answer = self._ask_once(verb, path, deadline, body)
        for number in range(TRIES - 1):
            if answer.status != 500:
                break
            time.sleep(min(PAUSES.delay(number, random.random()), deadline.left()))
            answer = self._ask_once(verb, path, deadline, body)
        if expected and answer.status not in expected:
            raise self.trouble(what, answer)
        return answer

    def check_identity(self, deadline: Deadline) -> None:
        """Check with a cheap request that this is the API of a PowerDNS Authoritative Server with this server_id.

        :raises BackendError: when it is not
        """
        server = self._read('read the server', '', deadline)
        if not isinstance(server, dict) or server.get('daemon_type') != 'authoritative':
            raise self.unexpected()

    def settings(self, deadline: Deadline) -> dict[str, str]:
        """The values of the server's own settings, by name."""
        settings = self._read('read the settings', '/config', deadline)
        with self.parsing():
            return {str(setting['name']): str(setting['value']) for setting in settings}

    def zones(self, deadline: Deadline) -> Iterator[tuple[str, str, int | None]]:
        """Names, kinds (lower case) and serials of all zones; None for a secondary that has never been transferred."""
        zones = self._read('list the zones', '/zones?dnssec=false', deadline)
        with self.parsing():
            for zone in zones:
                kind, serial = str(zone['kind']).lower(), int(zone['serial'])
                # A zone that was never transferred has serial 0 as well, but was never checked either.
                is_empty = kind in SECONDARY_KINDS and not serial and not zone['last_check']
                yield name_of_server(zone['name']), kind, None if is_empty else serial

    def zone(self, name: str, deadline: Deadline, kinds: Collection[str] = (),
             with_rrsets: bool = False) -> dict[str, Any] | None:
        """A zone as the API describes it; None when the server has none of this name.

        :param kinds: those that the zone may have, in lower case; empty for any
        :raises BackendError: for a zone of another kind, which is an operator's own
        """
        answer = self.ask('GET', zone_path(name) + ('' if with_rrsets else '?rrsets=false'), deadline, None,
                          f'read {name}', (200, 404))
        if answer.status == 404:
            self.check_identity(deadline)  # a wrong server_id or api_url is answered with 404 too
            return None
        if not isinstance(answer.json, dict) or not isinstance(answer.json.get('serial'), int):
            raise self.unexpected()
        kind = str(answer.json.get('kind'))
        if kinds and kind.lower() not in kinds:
            raise BackendError(why=f"{name} already exists there, as a {kind} zone: remove it with 'pdnsutil"
                                   " delete-zone' if it is not needed", reason=Reason.CONFLICT)
        return answer.json

    def create_zone(self, name: str, settings: Mapping[str, Any], kinds: Collection[str],
                    deadline: Deadline) -> dict[str, Any] | None:
        """Create a zone; if it exists, return it unchanged, as :meth:`zone` describes it."""
        answer = self.ask('POST', '/zones?rrsets=false', deadline,
                          {'name': api_text(parse_name(name)), **settings}, f'create {name}', (201, 409))
        if answer.status == 201:
            return None
        existing = self.zone(name, deadline, kinds)
        if existing is None:
            raise BackendError(why=f'create {name}: the zone existed, and was deleted by somebody else meanwhile')
        return existing

    def delete_zone(self, name: str, kinds: Collection[str], deadline: Deadline) -> None:
        """Delete a zone, if there is one.

        :raises BackendError: for a zone of another kind, and for one with DNSSEC keys, which are deleted with it: a
            zone of the name that is created later, or restored, would be bogus under the DS records of its parent
        """
        zone = self.zone(name, deadline, kinds)
        if zone is None:
            return
        if zone.get('dnssec') and self.keys(name, deadline):
            raise BackendError(why=f"{name} has DNSSEC keys there, which are deleted with the zone: when its parent has"
                                   " no DS records of it any more, remove them with 'pdnsutil disable-dnssec'",
                               reason=Reason.CONFLICT)
        self.ask('DELETE', zone_path(name), deadline, None, f'delete {name}', (204, 404))

    def keys(self, name: str, deadline: Deadline) -> frozenset[str]:
        """The public parts of the keys by which the server signs a zone, as text of DNSKEY records."""
        keys = self._read(f'read the keys of {name}', f'{zone_path(name)}/cryptokeys', deadline)
        with self.parsing():
            return frozenset(str(key['dnskey']) for key in keys if key['active'])

    def start(self, action: str, name: str, deadline: Deadline) -> str | None:
        """Have the server start ``axfr-retrieve`` or ``notify`` of a zone at once; why it does not, None if it does."""
        try:
            answer = self.ask('PUT', f'{zone_path(name)}/{action}', deadline)
        except (BackendError, OSError) as error:
            return str(error) or type(error).__name__
        return None if answer.status == 200 else answer.words

    def trouble(self, what: str, answer: PdnsAnswer) -> BackendError:
        """The error to raise for an unexpected status."""
        if answer.status in (401, 403):
            return BackendRefused(why=f'the API at {self.url} refuses the api_key ({answer.status})',
                                  reason=Reason.BAD_KEY)
        if answer.status == 404:
            return BackendRefused(why=f"{self.url} has no API for a server '{self._id}': pdns.conf lacks api=yes, or"
                                      ' api_url or server_id is wrong')
        if 300 <= answer.status < 400:
            return BackendRefused(why=f'{self.url} redirects to another address ({answer.status}); api_url must be the'
                                      ' address of the API itself')
        why = f'{what}: {answer.words}'
        # It is too large, perhaps for a proxy; or the API understood the request and rejects what it contains.
        if answer.status in (413, 422):
            return BackendRefused(why=why, reason=Reason.NOT_CONFIGURED if 'TSIG key' in answer.words else None)
        return BackendError(why=why)

    def unexpected(self) -> BackendRefused:
        """The error to raise for an answer that PowerDNS does not give."""
        return BackendRefused(why=f'what answers at {self.url} is not the API of a PowerDNS Authoritative Server')

    @contextlib.contextmanager
    def parsing(self) -> Iterator[None]:
        """Raises :meth:`unexpected` when what is read in its body does not have the expected form."""
        try:
            yield
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise self.unexpected() from error

    def _read(self, what: str, path: str, deadline: Deadline) -> Any:
        return self.ask('GET', path, deadline, None, what, (200,)).json

    def _ask_once(self, verb: str, path: str, deadline: Deadline, body: object) -> PdnsAnswer:
        content = b'' if body is None else json.dumps(body).encode()
        head = (f'{verb} {self._base}{path} HTTP/1.1\r\n{self._headers}'
                f'Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n')
        try:
            received = self._exchange(head.encode('ascii') + content, deadline)
        except ssl.SSLError as error:  # its errno is not one of the system's: take its own text
            raise BackendUnreachable(why=f'no TLS connection to {self.url}: {tls.failure(error)}',
                                     reason=Reason.BAD_TLS) from error
        return self._parsed(received, verb)

    def _exchange(self, request: bytes, deadline: Deadline) -> bytes:
        connected = connect(self._address, deadline)
        try:
            if self._tls is not None:
                connected.settimeout(deadline.left())
                connected = self._tls.wrap_socket(connected, server_hostname=self._host)
            send(connected, request, deadline)
            received = bytearray(receive(connected, deadline))
            with contextlib.suppress(ClosedUnanswered):
                while len(received) <= LONGEST_ANSWER:
                    received += receive(connected, deadline)
        except BaseException:  # eventlet's Timeout too; what was sent must not be carried out after that
            abort(connected)
            raise
        connected.close()
        if len(received) > LONGEST_ANSWER:
            raise BackendError(why=f'the answer of {self.url} is longer than {LONGEST_ANSWER} octets')
        return bytes(received)

    def _parsed(self, received: bytes, verb: str) -> PdnsAnswer:
        try:
            # All that it takes of a socket is a file to read from.
            socket: Any = types.SimpleNamespace(makefile=lambda mode: io.BytesIO(received))
            response = http.client.HTTPResponse(socket, method=verb)
            response.begin()
            content = response.read()
        except (http.client.HTTPException, ValueError) as error:
            raise BackendError(why=f'the answer of {self.url} is not HTTP, or was cut short') from error
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            value = None
        words = f'{response.status} {response.reason}'
        if isinstance(value, dict) and isinstance(value.get('error'), str):
            words = f"{value['error'][:500]} ({response.status})"
        return PdnsAnswer(response.status, value, words)


def zone_path(name: str) -> str:
    """The path of a zone in the API."""
    return f'/zones/{api_id(parse_name(name))}'


def api_text(name: dns.name.Name) -> str:
    """*name* as the API takes it in JSON: lower case, with every octet but letters, digits and ``-_/`` as ``\\DDD``."""
    return escaped(name, _PLAIN_OCTETS).lower()


def api_id(name: dns.name.Name) -> str:
    """*name* as the API takes it in a path: :func:`api_text`, with all but letters, digits and ``.-`` as ``=XX``."""
    return _NOT_IN_ID.sub(lambda found: f'={ord(found[0]):02X}', api_text(name))


def _parts(url: str) -> tuple[str, str, int | None, str]:
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidField(field='api_url', why=str(error)) from error
    path = parts.path.rstrip('/')
    if parts.scheme not in ('http', 'https') or not host or parts.query or parts.fragment or '@' in parts.netloc:
        raise InvalidField(field='api_url', why='it must look like http://192.0.2.1:8081 or https://dns.example.com')
    if not _PATH.fullmatch(path) or not _PRINTABLE.fullmatch(host) or path.endswith('/api/v1'):
        raise InvalidField(field='api_url', why='its path may have letters, digits and ._~-/ only, and no /api/v1')
    return parts.scheme, host, port, path


def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError is an OSError too
        raise InvalidField(field='ca_file', why=f'{ca_file} cannot be read, or contains no certificates') from error
