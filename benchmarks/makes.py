"""The makes of servers, and the fastest way to give each of them many zones without our drivers."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import pathlib
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

from designate_pool.backends.bind9 import rndc
from designate_pool.backends.knot.control_protocol import Block, KnotControl, error_in
from designate_pool.deadline import Deadline
from designate_pool.model import Endpoint, TsigKey, new_id
from testing.bind import Named
from testing.knot import Knotd
from testing.nsd import Nsd
from testing.pdns import PowerDns

#: Control channels to each BIND; the pool manager has as many by default.
_CHANNELS = 4
#: Requests under way at once at PowerDNS's API.
_REQUESTS = 8
_SECONDS = 120.0

#: Gives a server zones or takes them away, and returns when it has been told.
Deed = Callable[[], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Make:
    """
    :ivar new: a server with a folder of its own, not started yet; it may be given *keys*
    :ivar add: what gives such a server zones that it is to transfer from a primary, ready to be done
    :ivar remove: what takes them away again
    """

    new: Callable[..., Any]
    add: Callable[[Any, Sequence[str], Endpoint], Deed]
    remove: Callable[[Any, Sequence[str]], Deed]


def tell_bind(server: Named, commands: Sequence[str]) -> Deed:
    """*commands* over a few kept control channels."""
    key = rndc.RndcKey.read(str(server.folder / 'rndc.key'))
    channels = [rndc.open_channel(server.host, server.rndc_port, key, Deadline(_SECONDS))
                for _ in range(min(_CHANNELS, len(commands)))]

    def give(number: int) -> list[str]:
        answers = [(command, channels[number].ask(command, Deadline(_SECONDS)))
                   for command in commands[number::len(channels)]]
        return [f'{command}: {answer.words}' for command, answer in answers if answer.result]

    def tell() -> None:
        with concurrent.futures.ThreadPoolExecutor(len(channels)) as threads:
            failures = [failure for some in threads.map(give, range(len(channels))) for failure in some]
        for channel in channels:
            channel.close()
        assert not failures, failures[:3]

    return tell


def add_to_bind(server: Named, names: Sequence[str], primary: Endpoint) -> Deed:
    return tell_bind(server, [
        f'addzone "{name}" IN _default {{ type secondary; primaries {{ {primary.host} port {primary.port}; }};'
        f' file "{name}db"; }};' for name in names])


def remove_from_bind(server: Named, names: Sequence[str]) -> Deed:
    return tell_bind(server, [f'delzone -clean "{name}" IN _default' for name in names])


def add_to_nsd(server: Nsd, names: Sequence[str], primary: Endpoint) -> Deed:
    """One ``addzones``."""
    pattern = server.pattern([primary])
    return _tell_nsd(server, 'addzones', [f'{name.rstrip(".")} {pattern}' for name in names], 'added')


def remove_from_nsd(server: Nsd, names: Sequence[str]) -> Deed:
    """One ``delzones``."""
    return _tell_nsd(server, 'delzones', [name.rstrip('.') for name in names], 'deleted')


def _tell_nsd(server: Nsd, command: str, lines: Sequence[str], done: str) -> Deed:
    text = '\n'.join([f'NSDCT1 {command}', *lines, '\x04\n']).encode('ascii')

    def tell() -> None:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(_SECONDS)
            sock.connect(str(server.control_socket))
            # NSD answers while it reads: somebody must take the answers while the rest is sent.
            sender = threading.Thread(target=sock.sendall, args=(text,))
            sender.start()
            answer = _all_of(sock)
            sender.join()
        assert answer.endswith(f'{done} {len(lines)} zones\n'.encode('ascii')), answer[-200:]

    return tell


def add_to_knot(server: Knotd, names: Sequence[str], primary: Endpoint) -> Deed:
    """One transaction of the configuration."""
    def section(kind: str, key: str, item: str, value: str) -> Block:
        new = {'command': 'conf-set', 'section': kind, 'id': key}
        return [new, {**new, 'item': item, 'data': value}]

    remote = new_id()
    return _tell_knot(server, [section('remote', remote, 'address', f'{primary.host}@{primary.port}'),
                               *(section('zone', name, 'master', remote) for name in names)])


def remove_from_knot(server: Knotd, names: Sequence[str]) -> Deed:
    """One transaction of the configuration."""
    return _tell_knot(server, [[{'command': 'conf-unset', 'section': 'zone', 'id': name}] for name in names])


def _tell_knot(server: Knotd, blocks: Sequence[Block]) -> Deed:
    def tell() -> None:
        deadline = Deadline(_SECONDS)
        control = KnotControl(str(server.socket), deadline)
        try:
            for part in ([[{'command': 'conf-begin'}]], blocks, [[{'command': 'conf-commit'}]]):
                failures = [error for answer in control.ask_each(part, deadline) if (error := error_in(answer))]
                assert not failures, failures[:3]
        finally:
            control.close()

    return tell


def add_to_powerdns(server: PowerDns, names: Sequence[str], primary: Endpoint) -> Deed:
    """A POST and ``axfr-retrieve`` for each zone, in several threads."""
    return _tell_powerdns(server, [
        [(_request(server, 'POST', '', {'name': name, 'kind': 'Slave', 'masters': [str(primary)]}), b' 201 '),
         (_request(server, 'PUT', f'/{name}/axfr-retrieve'), b' 200 ')] for name in names])


def remove_from_powerdns(server: PowerDns, names: Sequence[str]) -> Deed:
    """A DELETE for each zone, in several threads."""
    return _tell_powerdns(server, [[(_request(server, 'DELETE', f'/{name}'), b' 204 ')] for name in names])


def _tell_powerdns(server: PowerDns, requests: Sequence[Sequence[tuple[bytes, bytes]]]) -> Deed:
    """
    :param requests: those that follow one another, each with the status that it is to be answered with
    """
    def one(wanted: Sequence[tuple[bytes, bytes]]) -> None:
        for request, status in wanted:
            # With SQLite two transactions may meet; the one that is refused is made again.
            for _ in range(10):
                with socket.create_connection((server.host, server.api_port), _SECONDS) as sock:
                    sock.sendall(request)
                    answer = _all_of(sock)
                if b' 500 ' not in answer[:20]:
                    break
            assert status in answer[:20], answer[:500]

    def tell() -> None:
        with concurrent.futures.ThreadPoolExecutor(_REQUESTS) as executor:
            for _ in executor.map(one, requests):
                pass

    return tell


def _knot(folder: pathlib.Path, keys: Sequence[TsigKey] = ()) -> Knotd:
    """One that takes NOTIFYs from the primaries of a zone without being told so."""
    return Knotd(folder, keys=keys, server='automatic-acl: on')


def _request(server: PowerDns, verb: str, path: str, body: object = None) -> bytes:
    content = b'' if body is None else json.dumps(body).encode()
    head = [f'{verb} /api/v1/servers/localhost/zones{path}?rrsets=false HTTP/1.1', f'Host: {server.host}',
            f'X-API-Key: {server.api_key}', 'Connection: close', 'Content-Type: application/json',
            f'Content-Length: {len(content)}', '', '']
    return '\r\n'.join(head).encode('ascii') + content


def _all_of(sock: socket.socket) -> bytes:
    """What comes until the other side closes."""
    pieces = []
    while piece := sock.recv(1 << 16):
        pieces.append(piece)
    return b''.join(pieces)


#: By the word of their driver.
MAKES = {
    'bind9': Make(Named, add_to_bind, remove_from_bind),
    'nsd': Make(Nsd, add_to_nsd, remove_from_nsd),
    'knot': Make(_knot, add_to_knot, remove_from_knot),
    'pdns': Make(PowerDns, add_to_powerdns, remove_from_powerdns),
}
