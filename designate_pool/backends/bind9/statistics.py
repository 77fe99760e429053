"""Lists the zones of a BIND through its statistics channel: ``/xml/v3/zones`` over HTTP.

The answer has about 250 octets per zone, so it is parsed while it arrives: only one zone of it is in memory at a time.
"""

from __future__ import annotations

import http.client
import itertools
import urllib.parse
from collections.abc import Collection, Iterable, Iterator
from typing import Any
from xml.etree import ElementTree

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, InvalidField
from designate_pool.protocol.names_and_rdata import name_of_server

PATH = '/xml/v3/zones'
#: Octets; the list of a million zones has some 250 million.
LONGEST_ANSWER = 1 << 29
#: Octets from the end of one zone to that of the next, which are in memory at a time.
LARGEST_ZONE = 1 << 20
#: What an answer of another form raises.
MALFORMED = (ElementTree.ParseError, LookupError, ValueError, BackendRefused)
#: The serial of a zone that is not loaded.
NOT_LOADED = '-'

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
            yield from _zones(self._pieces(deadline), view, types)
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


def _zones(pieces: Iterable[bytes], view: str, types: Collection[str] = SECONDARY) -> Iterator[tuple[str, int | None]]:
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
                if views[-1:] == [view] and element.get('rdataclass') == 'IN' and element.findtext('type') in types:
                    serial = element.findtext('serial', NOT_LOADED)
                    yield name_of_server(element.attrib['name']), None if serial == NOT_LOADED else int(serial)
                zones.clear()
                unread = 0
        if unread > LARGEST_ZONE:
            raise ValueError(f'more than {LARGEST_ZONE} octets without a zone')
    if view not in views:
        raise BackendError(why=f"named has no view '{view}', but has {', '.join(views) or 'none'}")
