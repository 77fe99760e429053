"""The HTTP API of PowerDNS Authoritative: one request on one connection, within a deadline; and names as it has them.

PowerDNS closes the connection after every answer, so none is kept.  Redirects are not followed: the key would go along.
"""

from __future__ import annotations

import dataclasses
import http.client
import io
import json
import random
import re
import socket
import ssl
import time
import urllib.parse
from typing import Any

import dns.name

from designate_pool.backoff import Backoff
from designate_pool.deadline import Deadline, abort
from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, InvalidField
from designate_pool.model import Reason

#: Octets; the list of a million zones has some 250 million.
LONGEST_ANSWER = 1 << 29

#: How often a request is made that is answered with 500: with SQLite that is mostly two transactions that met.  The
#: pause before the next is a random part of this many seconds, doubled each time.
TRIES = 8
PAUSES = Backoff(0.02, jitter=(0.0, 1.0))

_PLAIN_OCTETS = frozenset(b'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/')
_PLAIN_NAME = re.compile(r'([a-z0-9_/-]+\.)+')
_PLAIN_ID = re.compile(r'[A-Za-z0-9_-]+')
_NOT_IN_ID = re.compile(r'[^A-Za-z0-9.-]')
_PATH = re.compile(r'(/[A-Za-z0-9._~-]+)*')
_PRINTABLE = re.compile(r'[\x21-\x7e]+')


@dataclasses.dataclass(frozen=True)
class PdnsAnswer:
    """What the API answered.

    :ivar json: the body, None where it is not JSON
    :ivar words: why a request failed, for people
    """

    status: int
    json: Any
    words: str


class PdnsApi:
    """The API at *url*, with *key* in every request.

    :param url: ``http://`` or ``https://``, a host, and if need be a port and the path before ``/api/v1``
    :param ca_file: certificates that an ``https`` server's has to descend from; the system's when None
    :raises InvalidField: for values that cannot be used
    """

    def __init__(self, url: str, key: str, ca_file: str | None = None) -> None:
        if not _PRINTABLE.fullmatch(key):
            raise InvalidField(field='api_key', why='it may hold printable ASCII without spaces only')
        scheme, self._host, port, path = _parts(url)
        self.url = url.rstrip('/')
        self._tls = None
        if scheme == 'https':
            self._tls = _trusting(ca_file)
        elif ca_file:
            raise InvalidField(field='ca_file', why='it is of use with an api_url of https:// only')
        self._address = (self._host, port or (443 if self._tls else 80))
        self._base = f'{path}/api/v1'
        host = f'[{self._host}]' if ':' in self._host else self._host
        self._headers = (f'Host: {host}:{self._address[1]}\r\nX-API-Key: {key}\r\nAccept: application/json\r\n'
                         'Connection: close\r\n')

    def ask(self, verb: str, path: str, deadline: Deadline, body: object = None) -> PdnsAnswer:
        """Make one request.

        :param path: what follows ``/api/v1``, with nothing in it that a URL cannot hold
        :param body: is sent as JSON
        :raises BackendUnreachable: when there is no TLS with the server
        :raises BackendError: when what answers does not speak HTTP
        :raises OSError: when the server could not be talked to, or not before the deadline
        """
        content = b'' if body is None else json.dumps(body).encode()
        head = (f'{verb} {self._base}{path} HTTP/1.1\r\n{self._headers}'
                f'Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n')
        try:
            received = self._exchange(head.encode('ascii') + content, deadline)
        except ssl.SSLError as error:  # its number is none of errno's, so its own words are needed
            raise BackendUnreachable(why=f'no TLS with {self.url}: {_tls_words(error)}',
                                     reason=Reason.BAD_TLS) from error
        if not received:
            raise ConnectionError('the connection was closed instead of an answer')
        return self._parsed(received, verb)

    def _exchange(self, request: bytes, deadline: Deadline) -> bytes:
        connected = socket.create_connection(self._address, timeout=deadline.left())
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connected.settimeout(deadline.left())
                connected = self._tls.wrap_socket(connected, server_hostname=self._host)
            received = self._send_and_receive(connected, request, deadline)
        except BaseException:  # eventlet's Timeout is no Exception, and what was sent is not to arrive after it
            abort(connected)
            raise
        connected.close()
        return received

    def _send_and_receive(self, connected: socket.socket, request: bytes, deadline: Deadline) -> bytes:
        connected.settimeout(deadline.left())
        connected.sendall(request)
        received = bytearray()
        while True:
            connected.settimeout(deadline.left())
            piece = connected.recv(1 << 16)
            if not piece:
                return bytes(received)
            received += piece
            if len(received) > LONGEST_ANSWER:
                raise BackendError(why=f'the answer of {self.url} does not end')

    def _parsed(self, received: bytes, verb: str) -> PdnsAnswer:
        try:
            response = http.client.HTTPResponse(_Received(received), method=verb)  # type: ignore[arg-type]
            response.begin()
            content = response.read()
        except (http.client.HTTPException, ValueError) as error:
            raise BackendError(why=f'what answers at {self.url} does not speak HTTP, or broke off') from error
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            value = None
        words = f'{response.status} {response.reason}'
        if isinstance(value, dict) and isinstance(value.get('error'), str):
            words = f"{value['error'][:500]} ({response.status})"
        return PdnsAnswer(response.status, value, words)


class PdnsServer:
    """The authoritative server called *server_id* in the API.

    :param server_id: 'localhost' unless something stands in between
    :raises InvalidField: for a value that cannot be used
    """

    def __init__(self, api: PdnsApi, server_id: str) -> None:
        if not _PLAIN_ID.fullmatch(server_id):
            raise InvalidField(field='server_id', why='it may hold letters, digits, hyphens and underscores only')
        self.url = api.url
        self._api = api
        self._id = server_id

    def ask(self, verb: str, path: str, deadline: Deadline, body: object = None) -> PdnsAnswer:
        """Make one request, which has to do the same when it is made twice; see :meth:`Api.ask`.

        :param path: what follows the server's own
        """
        path = f'/servers/{self._id}{path}'
        answer = self._api.ask(verb, path, deadline, body)
        for number in range(TRIES - 1):
            if answer.status != 500:
                break
            time.sleep(min(PAUSES.delay(number, random.random()), deadline.left()))
            answer = self._api.ask(verb, path, deadline, body)
        return answer

    def greet(self, deadline: Deadline) -> None:
        """See that what answers is an authoritative server of PowerDNS with our server_id.

        :raises BackendError: when it is not
        """
        answer = self.ask('GET', '', deadline)
        if answer.status != 200:
            raise self.trouble('see the server', answer)
        kind = answer.json.get('daemon_type') if isinstance(answer.json, dict) else None
        if kind != 'authoritative':
            raise self.stranger()

    def trouble(self, what: str, answer: PdnsAnswer) -> BackendError:
        """What to raise for an *answer* that is none of those expected."""
        if answer.status in (401, 403):
            return BackendRefused(why=f'the API at {self.url} refuses the api_key ({answer.status})',
                                  reason=Reason.BAD_KEY)
        if answer.status == 404:
            return BackendRefused(why=f"what answers at {self.url} has no API for a server '{self._id}': api=yes is"
                                      ' missing, or api_url or server_id is wrong')
        if 300 <= answer.status < 400:
            return BackendRefused(why=f"{self.url} redirects to somewhere else ({answer.status}); api_url has to be the"
                                      " API's own address")
        # 422: the API understood the request, and cannot do it for what is in it.
        kind = BackendRefused if answer.status == 422 else BackendError
        return kind(why=f'{what}: {answer.words}')

    def stranger(self) -> BackendRefused:
        """What to raise for an answer that no such server gives."""
        return BackendRefused(why=f'what answers at {self.url} is not the API of a PowerDNS Authoritative Server')


def api_text(name: dns.name.Name) -> str:
    """*name* as the API takes it in JSON: every octet but letters, digits and ``-_/`` as ``\\DDD``."""
    labels = (''.join(chr(octet) if octet in _PLAIN_OCTETS else f'\\{octet:03d}' for octet in label)
              for label in name.labels[:-1])
    return '.'.join(labels).lower() + '.'


def api_id(name: dns.name.Name) -> str:
    """*name* as the API takes it in a path: ``api_text``, all but letters, digits and ``.-`` as ``=XX``."""
    return _NOT_IN_ID.sub(lambda found: f'={ord(found[0]):02X}', api_text(name))


def absolute(text: str) -> str:
    """A name that the API gave, as the pool writes it.

    :raises dns.exception.DNSException: for what is no name
    """
    return text if _PLAIN_NAME.fullmatch(text) else dns.name.from_text(text).to_text().lower()


class _Received:
    """The octets of an answer, as what ``http.client`` takes them from."""

    def __init__(self, octets: bytes) -> None:
        self._octets = octets

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._octets)


def _parts(url: str) -> tuple[str, str, int | None, str]:
    """Scheme, host, port and path of *url*."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidField(field='api_url', why=str(error)) from error
    path = parts.path.rstrip('/')
    if parts.scheme not in ('http', 'https') or not host or parts.query or parts.fragment or '@' in parts.netloc:
        raise InvalidField(field='api_url', why='it has to be like http://192.0.2.1:8081 or https://dns.example.com')
    if not _PATH.fullmatch(path) or not _PRINTABLE.fullmatch(host) or path.endswith('/api/v1'):
        raise InvalidField(field='api_url', why='its path may hold plain characters only, and ends before /api/v1')
    return parts.scheme, host, port, path


def _trusting(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError is one: a file without certificates
        raise InvalidField(field='ca_file', why=f'{ca_file} holds no certificates, or cannot be read') from error


def _tls_words(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f'its certificate is not accepted ({error.verify_message})'
    return str(error.reason or error)
