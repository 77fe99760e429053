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

from benchmarks import bare
from designate_pool.backends.knot_control import Block, Control, error_in
from designate_pool.deadline import Deadline
from designate_pool.model import Endpoint, new_id
from tests.fixtures.bind import Named
from tests.fixtures.knot import Knotd
from tests.fixtures.nsd import Nsd
from tests.fixtures.pdns import PowerDns

#: Requests under way at once at PowerDNS's API.
_REQUESTS = 8
_SECONDS = 120.0

#: Gives a server zones, and returns when it has taken them.
Add = Callable[[], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Make:
    """
    :ivar new: a server with a folder of its own, not started yet
    :ivar add: what gives such a server zones that it is to transfer from a primary, ready to be done
    """

    new: Callable[[pathlib.Path], Any]
    add: Callable[[Any, Sequence[str], Endpoint], Add]


def add_to_bind(server: Named, names: Sequence[str], primary: Endpoint) -> Add:
    """``addzone`` over a few kept channels."""
    channels = [bare.connect(server) for _ in range(bare.CHANNELS)]
    commands = [bare.addzone(name, primary) for name in names]

    def add() -> None:
        failures: list[str] = []
        threads = [threading.Thread(target=bare.give, args=(channel, commands[number::len(channels)], failures))
                   for number, channel in enumerate(channels)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for channel in channels:
            channel.close()
        assert not failures, failures[:3]

    return add


def add_to_nsd(server: Nsd, names: Sequence[str], primary: Endpoint) -> Add:
    """One ``addzones``."""
    pattern = server.pattern([primary])
    lines = ''.join(f'{name.rstrip(".")} {pattern}\n' for name in names)
    text = f'NSDCT1 addzones\n{lines}\x04\n'.encode('ascii')

    def add() -> None:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(_SECONDS)
            sock.connect(str(server.control_socket))
            # NSD answers while it reads: somebody must take the answers while the rest is sent.
            sender = threading.Thread(target=sock.sendall, args=(text,))
            sender.start()
            answer = _all_of(sock)
            sender.join()
        assert answer.endswith(f'added {len(names)} zones\n'.encode('ascii')), answer[-200:]

    return add


def add_to_knot(server: Knotd, names: Sequence[str], primary: Endpoint) -> Add:
    """One transaction of the configuration."""
    def section(kind: str, key: str, item: str, value: str) -> Block:
        new = {'command': 'conf-set', 'section': kind, 'id': key}
        return [new, {**new, 'item': item, 'data': value}]

    remote = new_id()
    blocks = [section('remote', remote, 'address', f'{primary.host}@{primary.port}'),
              *(section('zone', name, 'master', remote) for name in names)]

    def add() -> None:
        deadline = Deadline(_SECONDS)
        control = Control(str(server.socket), deadline)
        try:
            for part in ([[{'command': 'conf-begin'}]], blocks, [[{'command': 'conf-commit'}]]):
                failures = [error for answer in control.ask_each(part, deadline) if (error := error_in(answer))]
                assert not failures, failures[:3]
        finally:
            control.close()

    return add


def add_to_powerdns(server: PowerDns, names: Sequence[str], primary: Endpoint) -> Add:
    """A POST and ``axfr-retrieve`` for each zone, in several threads."""
    requests = [[(_request(server, 'POST', '', {'name': name, 'kind': 'Slave', 'masters': [str(primary)]}), b' 201 '),
                 (_request(server, 'PUT', f'/{name}/axfr-retrieve'), b' 200 ')] for name in names]

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

    def add() -> None:
        with concurrent.futures.ThreadPoolExecutor(_REQUESTS) as executor:
            for _ in executor.map(one, requests):
                pass

    return add


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
    'bind9': Make(Named, add_to_bind),
    'nsd': Make(Nsd, add_to_nsd),
    'knot': Make(Knotd, add_to_knot),
    'pdns': Make(PowerDns, add_to_powerdns),
}
