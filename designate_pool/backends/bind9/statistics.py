"""Lists the zones of a BIND through its statistics channel: ``/json/v1/zones`` over HTTP.

The answer has about 200 octets per zone, so it is parsed as a stream: only one zone of it is in memory at a time.
"""

from __future__ import annotations

import codecs
import http.client
import json
import re
import urllib.parse
from collections.abc import Collection, Iterator
from typing import Any

import dns.exception
import dns.name

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, InvalidField

PATH = '/json/v1/zones'
#: Characters that one value in the answer, such as a zone, may have.
LARGEST_VALUE = 1 << 20

_PLAIN_NAME = re.compile(r'[a-z0-9_-]+(\.[a-z0-9_-]+)*')
#: What named calls zones of a type, now and formerly.
SECONDARY, PRIMARY = ('secondary', 'slave'), ('primary', 'master')


class StatisticsChannel:
    """A statistics channel.

    :param url: of the form ``http://192.0.2.53:8053``
    :raises InvalidField: for any other form
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

    def zones(self, view: str, deadline: Deadline,
              types: Collection[str] = SECONDARY) -> Iterator[tuple[str, int | None]]:
        """The names of the zones of *view* of these *types*, with the serials of those that have contents.

        :raises BackendError: when the answer is an error, cannot be parsed or is cut short
        :raises OSError: when it cannot be reached
        """
        try:
            yield from _zones(_Json(codecs.iterdecode(self._pieces(deadline), 'utf-8')), view, types)
        except (ValueError, RecursionError, http.client.HTTPException) as error:
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
                while piece := response.read1(1 << 16):
                    yield piece
                    connected.settimeout(deadline.left())
        finally:
            connection.close()


class _Json:
    """Parses a JSON text that arrives in pieces, value by value."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text = ''
        self._at = 0
        self._decode = json.JSONDecoder().raw_decode

    def keys(self) -> Iterator[str]:
        """The keys of the next object; the caller must read the value of a key before it takes the next key."""
        for _ in self._parts('{', '}'):
            key = self.value()
            if not isinstance(key, str) or self._next_character() != ':':
                raise ValueError('an object with a key that is not text')
            yield key

    def values(self) -> Iterator[Any]:
        """The values of the next array."""
        for _ in self._parts('[', ']'):
            yield self.value()

    def value(self) -> Any:
        """The next value, complete."""
        self._skip_space()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except ValueError:
                end = len(self._text)
            if end < len(self._text):  # a number at the end of what has arrived may be incomplete
                self._at = end
                return value
            if len(self._text) - self._at > LARGEST_VALUE:
                raise ValueError(f'a value of more than {LARGEST_VALUE} characters')
            self._read_more()

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        if self._next_character() != opening:
            raise ValueError(f'no {opening} where one is expected')
        self._skip_space()
        if self._text[self._at] == closing:
            self._at += 1
            return
        separator = ','
        while separator == ',':
            yield
            separator = self._next_character()
        if separator != closing:
            raise ValueError(f'no {closing} where one is expected')

    def _next_character(self) -> str:
        self._skip_space()
        self._at += 1
        return self._text[self._at - 1]

    def _skip_space(self) -> None:
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in ' \t\r\n':
                    return
                self._at += 1
            self._read_more()

    def _read_more(self) -> None:
        piece = next(self._pieces, '')
        if not piece:
            raise ValueError('it is cut short')
        self._text = self._text[self._at:] + piece
        self._at = 0


def _zones(answer: _Json, view: str, types: Collection[str] = SECONDARY) -> Iterator[tuple[str, int | None]]:
    views = []
    for key in answer.keys():
        if key != 'views':
            answer.value()
            continue
        for name in answer.keys():
            views.append(name)
            for zone in _zones_in_view(answer):
                if name == view and zone['class'] == 'IN' and zone['type'] in types:
                    serial = zone.get('serial')
                    yield _normal_name(str(zone['name'])), None if serial is None else int(serial)
    if view not in views:
        raise BackendError(why=f"named has no view '{view}', but has {', '.join(views) or 'none'}")


def _zones_in_view(answer: _Json) -> Iterator[dict[str, Any]]:
    for key in answer.keys():
        if key != 'zones':
            answer.value()
            continue
        for zone in answer.values():
            if not isinstance(zone, dict) or not {'name', 'class', 'type'} <= zone.keys():
                raise ValueError('a zone without name, class or type')
            yield zone


def _normal_name(name: str) -> str:
    """*name*, absolute, in lower case and with dnspython's escapes."""
    if _PLAIN_NAME.fullmatch(name):
        return f'{name}.'
    try:
        return dns.name.from_text(name).canonicalize().to_text()
    except dns.exception.DNSException as error:
        raise ValueError(f'{name!r} is not a domain name') from error
