"""Secondaries that cost next to nothing, all in one process and each at an address of its own.

They do what a BIND does for a change (answer the NOTIFY, query the SOA, transfer the zone in a connection of its own,
answer the poll), but keep only the serial.  Zones must fit in one message, there is no TSIG, and what they hear of a
zone while they fetch it is dropped.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import select
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any

import dns.message
import dns.rrset

from designate_pool import __version__, serial
from designate_pool.protocol import soa_query, wire

#: Where they listen, in this order.
_ADDRESSES = ipaddress.ip_network('127.1.0.0/16')
#: Octets that a transfer of the benchmark's zones may have.
_TRANSFER = 65537
_NOTIFY_RESPONSE, _RESPONSE = b'\xa4\x00', b'\x84\x00'
_REFUSED, _NOT_LOADED = b'\x84\x05', b'\x84\x02'
#: The head of an SOA record of the queried name; MNAME and RNAME are the root.
_SOA = b'\xc0\x0c\x00\x06\x00\x01\x00\x00\x00\x00\x00\x16\x00\x00'
_TIMERS = struct.pack('>4I', 3600, 600, 86400, 60)


class Zone:
    """
    :ivar name: in wire form and lower case
    :ivar serial: None before the first transfer
    """

    def __init__(self, text: str, primary: tuple[str, int]) -> None:
        self.text, self.name, self.primary = text, wire.wire_of(text.lower()), primary
        self.serial: int | None = None
        self.is_fetching = False


class Loop:
    """Calls what a socket belongs to when it can be read."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[], None]] = {}

    def add(self, sock: socket.socket, handler: Callable[[], None]) -> None:
        sock.setblocking(False)
        self._handlers[sock.fileno()] = handler
        self._epoll.register(sock, select.EPOLLIN)

    def remove(self, sock: socket.socket) -> None:
        """Close *sock*."""
        del self._handlers[sock.fileno()]
        self._epoll.unregister(sock)
        sock.close()

    def run(self, until: socket.socket | Any) -> None:
        """Serve until *until*, which has a ``fileno``, can be read."""
        self._epoll.register(until, select.EPOLLIN)
        while True:
            for fd, _ in self._epoll.poll():
                if fd == until.fileno():
                    return
                if fd in self._handlers:  # an earlier one of this round may have closed it
                    self._handlers[fd]()


class Secondary:
    """One server, controlled as the project's small name server is (:mod:`designate_pool.nameserver.server`)."""

    def __init__(self, loop: Loop, host: str) -> None:
        self._loop, self._host = loop, host
        self._zones: dict[bytes, Zone] = {}
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._udp.bind((host, 0))
        self._control = socket.create_server((host, 0), backlog=64)
        self.ports: tuple[int, int] = self._udp.getsockname()[1], self._control.getsockname()[1]
        loop.add(self._udp, self._on_datagrams)
        loop.add(self._control, self._on_control)
        self._verbs: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
            'ping': lambda request: __version__, 'add_zone': self._add, 'refetch': self._refetch,
            'delete_zone': lambda request: self._zones.pop(wire.wire_of(request['name'].lower()), None) is not None,
            'list_zones': lambda request: [{'name': zone.text, 'serial': zone.serial} for zone in self._zones.values()]}

    def _on_datagrams(self) -> None:
        while True:
            try:
                octets, peer = self._udp.recvfrom(4096)
            except BlockingIOError:
                return
            end = wire.skip_name(octets, 12) + 4
            zone = self._zones.get(octets[12:end - 4].lower())
            if octets[2] & 0x80:
                if zone is not None and octets[6:8] != b'\0\0':
                    self._found(zone, _serial_at(octets, end))
            elif octets[2] & 0x78:
                self._udp.sendto(octets[:2] + _NOTIFY_RESPONSE + octets[4:], peer)
                if zone is not None:
                    self._udp.sendto(b'\x00\x01' + soa_query.soa_query(zone.name), zone.primary)
            elif zone is None or zone.serial is None:
                flags = _REFUSED if zone is None else _NOT_LOADED
                self._udp.sendto(octets[:2] + flags + b'\x00\x01\x00\x00\x00\x00\x00\x00' + octets[12:end], peer)
            else:
                self._udp.sendto(b''.join((octets[:2], _RESPONSE, b'\x00\x01\x00\x01\x00\x00\x00\x00', octets[12:end],
                                           _SOA, zone.serial.to_bytes(4, 'big'), _TIMERS)), peer)

    def _found(self, zone: Zone, found: int) -> None:
        """The primary serves *zone* at the serial *found*."""
        if not zone.is_fetching and (zone.serial is None or serial.newer(found, zone.serial)):
            self._fetch(zone)

    def _fetch(self, zone: Zone) -> None:
        zone.is_fetching = True
        connection = socket.create_connection(zone.primary, timeout=10, source_address=(self._host, 0))
        connection.sendall(_transfer_query(zone))
        received = bytearray()

        def on_octets() -> None:
            octets = connection.recv(_TRANSFER)
            received.extend(octets)
            if octets and len(received) < 2 + int.from_bytes(received[:2], 'big'):
                return
            self._loop.remove(connection)
            zone.is_fetching = False
            message = bytes(received[2:])
            # What is refused or cut off is tried again at the next NOTIFY.
            if len(message) > 12 and not message[3] & 15 and message[6:8] != b'\0\0':
                zone.serial = _serial_at(message, wire.skip_name(message, 12) + 4)

        self._loop.add(connection, on_octets)

    def _on_control(self) -> None:
        connection, _ = self._control.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = bytearray()

        def on_octets() -> None:
            octets = connection.recv(65536)
            if not octets:
                self._loop.remove(connection)
                return
            received.extend(octets)
            while (end := received.find(b'\n')) >= 0:
                request = json.loads(received[:end])
                del received[:end + 1]
                answer = {'ok': True, 'result': self._verbs[request['verb']](request)}
                connection.sendall(json.dumps(answer).encode() + b'\n')

        self._loop.add(connection, on_octets)

    def _add(self, request: Mapping[str, Any]) -> bool:
        primary = request['primaries'][0]
        zone = Zone(request['name'], (primary['host'], primary['port']))
        if zone.name in self._zones:
            return False
        self._zones[zone.name] = zone
        self._fetch(zone)
        return True

    def _refetch(self, request: Mapping[str, Any]) -> bool:
        zone = self._zones.get(wire.wire_of(request['name'].lower()))
        if zone is not None and not zone.is_fetching:
            self._fetch(zone)
        return zone is not None


def serve(count: int) -> None:
    """Print the host, port and control port of *count* servers, and serve until standard input ends."""
    loop = Loop()
    servers = {host: Secondary(loop, host) for host in map(str, itertools.islice(_ADDRESSES.hosts(), count))}
    print(json.dumps([(host, *each.ports) for host, each in servers.items()]), flush=True)
    loop.run(sys.stdin)


def _serial_at(message: bytes, at: int) -> int:
    """The serial of the SOA record at *at*."""
    return int.from_bytes(message[wire.read_record(message, at).end - 20:][:4], 'big')


def _transfer_query(zone: Zone) -> bytes:
    query = dns.message.make_query(zone.text, 'AXFR' if zone.serial is None else 'IXFR', flags=0)
    if zone.serial is not None:
        query.authority.append(dns.rrset.from_text(zone.text, 0, 'IN', 'SOA', f'. . {zone.serial} 0 0 0 0'))
    octets = query.to_wire()
    return len(octets).to_bytes(2, 'big') + octets


if __name__ == '__main__':
    serve(int(sys.argv[1]))
