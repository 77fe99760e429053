"""The zones of a BIND, from its statistics channel: ``/json/v1/zones`` over HTTP.

The answer has some 200 octets a zone, so it is read as a stream: one zone of it is held at a time.
"""

from __future__ import annotations

import codecs
import http.client
import json
import re
import urllib.parse
from collections.abc import Iterator
from typing import Any

import dns.exception
import dns.name

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, InvalidField

PATH = '/json/v1/zones'
#: Characters of one value in the answer, such as a zone's facts.
LARGEST_VALUE = 1 << 20

_PLAIN_NAME = re.compile(r'[a-z0-9_-]+(\.[a-z0-9_-]+)*')
_SECONDARY = ('secondary', 'slave')


class StatisticsChannel:
    """A statistics channel.

    :param url: such as ``http://192.0.2.53:8053``
    :raises InvalidField: for another kind of URL
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urllib.parse.urlsplit(url)
            host, port = parts.hostname, parts.port or 80
        except ValueError as error:
            raise InvalidField(field='statistics_url', why=f"'{url}' is no URL ({error})") from error
        if parts.scheme != 'http' or not host or parts.query or parts.fragment or not url.isascii() or ' ' in url:
            raise InvalidField(field='statistics_url', why=f"'{url}' is not like http://192.0.2.53:8053")
        self._host, self._port, self._path = host, port, parts.path.rstrip('/') + PATH
        self._where = f'the statistics channel at {host} port {port}'

    def zones(self, view: str, deadline: Deadline) -> Iterator[tuple[str, int | None]]:
        """The secondary zones of *view*: their names, and the serials of those that have contents.

        :raises BackendError: when named does not tell, or breaks off
        :raises OSError: when it cannot be reached
        """
        try:
            yield from _zones(_Json(codecs.iterdecode(self._pieces(deadline), 'utf-8')), view)
        except (ValueError, RecursionError, http.client.HTTPException) as error:
            raise BackendError(why=f'{self._where} answered something that cannot be read: {error}') from error

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
    """Reads a JSON text that comes in pieces, value by value."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text = ''
        self._at = 0
        self._decode = json.JSONDecoder().raw_decode

    def keys(self) -> Iterator[str]:
        """The keys of the object that comes next; whoever takes one reads its value before taking another."""
        for _ in self._parts('{', '}'):
            key = self.value()
            if not isinstance(key, str) or self._mark() != ':':
                raise ValueError('an object without keys')
            yield key

    def values(self) -> Iterator[Any]:
        """What is in the array that comes next."""
        for _ in self._parts('[', ']'):
            yield self.value()

    def value(self) -> Any:
        """The value that comes next, whole."""
        self._skip_space()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except ValueError:
                end = len(self._text)
            if end < len(self._text):  # at the end of what has come, a number may not be whole yet
                self._at = end
                return value
            if len(self._text) - self._at > LARGEST_VALUE:
                raise ValueError('a value that is too long')
            self._more()

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        if self._mark() != opening:
            raise ValueError(f'no {opening} where one belongs')
        self._skip_space()
        if self._text[self._at] == closing:
            self._at += 1
            return
        mark = ','
        while mark == ',':
            yield
            mark = self._mark()
        if mark != closing:
            raise ValueError(f'no {closing} where one belongs')

    def _mark(self) -> str:
        self._skip_space()
        self._at += 1
        return self._text[self._at - 1]

    def _skip_space(self) -> None:
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in ' \t\r\n':
                    return
                self._at += 1
            self._more()

    def _more(self) -> None:
        piece = next(self._pieces, '')
        if not piece:
            raise ValueError('it is cut short')
        self._text = self._text[self._at:] + piece
        self._at = 0


def _zones(answer: _Json, view: str) -> Iterator[tuple[str, int | None]]:
    views = []
    for key in answer.keys():
        if key != 'views':
            answer.value()
            continue
        for name in answer.keys():
            views.append(name)
            for zone in _zones_of_a_view(answer):
                if name == view and zone['class'] == 'IN' and zone['type'] in _SECONDARY:
                    serial = zone.get('serial')
                    yield _spelt(str(zone['name'])), None if serial is None else int(serial)
    if view not in views:
        raise BackendError(why=f"named has no view '{view}', but has {', '.join(views) or 'none'}")


def _zones_of_a_view(answer: _Json) -> Iterator[dict[str, Any]]:
    for key in answer.keys():
        if key != 'zones':
            answer.value()
            continue
        for zone in answer.values():
            if not isinstance(zone, dict) or not {'name', 'class', 'type'} <= zone.keys():
                raise ValueError('a zone without name, class and type')
            yield zone


def _spelt(name: str) -> str:
    """*name* absolute, lower case and in dnspython's spelling."""
    if _PLAIN_NAME.fullmatch(name):
        return f'{name}.'
    try:
        return dns.name.from_text(name).canonicalize().to_text()
    except dns.exception.DNSException as error:
        raise ValueError(f'{name!r} is no domain name') from error
