"""This project's small name server, controlled over its control socket: for demonstrations, tests and rehearsals.

Requests and answers on the control socket are JSON objects, one per line: ``{"ok": true, "result": …}`` or
``{"ok": false, "kind": …, "error": …}`` (see :mod:`designate_pool.nameserver.server`).
"""

from __future__ import annotations

import json
import socket
from collections.abc import Collection
from typing import Any, ClassVar

from designate_pool import model
from designate_pool.backends.base import Backend, Capabilities
from designate_pool.backends.connection_pool import ConnectionPool
from designate_pool.deadline import Deadline, connect, receive, send
from designate_pool.errors import BackendError, BackendRefused

LONGEST_ANSWER = 1 << 24
PERMANENT = ('secret', 'request')


class Secondary(Backend):
    """A ``designate-pool-nameserver``."""

    capabilities = Capabilities(fetches_on_create=True)

    OPTIONS: ClassVar[tuple[model.Option, ...]] = (
        model.Option('control_host', "Address of the control socket; the server's host when not set."),
        model.Option('control_port', 'Port of the control socket.', 'port', required=True),
        model.Option('control_secret', 'The secret that the control socket requires.', required=True, secret=True),
    )

    def __init__(self, server: model.Server) -> None:
        super().__init__(server)
        self._address = (self.options['control_host'] or server.host, int(self.options['control_port']))
        self._secret = self.options['control_secret']
        key = server.tsig_key
        self._key = None if key is None else {'name': key.name, 'algorithm': key.algorithm, 'secret': key.secret}
        self._primaries = [{'host': endpoint.host, 'port': endpoint.port} for endpoint in server.primaries]
        self._connections = ConnectionPool(self._connect, keep=max(1, server.max_in_flight))

    def close(self) -> None:
        """Close the connections that are kept between calls."""
        self._connections.close()

    def _create(self, domain: model.Domain, deadline: Deadline) -> None:
        self._ask(deadline, 'add_zone', name=domain.name, primaries=self._primaries, key=self._key)

    def _delete(self, domain: model.Domain, deadline: Deadline) -> None:
        self._ask(deadline, 'delete_zone', name=domain.name)

    def _refetch(self, domain: model.Domain, deadline: Deadline) -> None:
        if not self._ask(deadline, 'refetch', name=domain.name):
            raise BackendError(why=f'refetch: there is no zone {domain.name}', reason=model.Reason.NO_ZONE)

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[dict[str, int | None], bool]:
        return {zone['name'].lower(): zone['serial'] for zone in self._ask(deadline, 'list_zones')}, True

    def _ping(self, deadline: Deadline) -> None:
        self._ask(deadline, 'ping')

    def _ask(self, deadline: Deadline, verb: str, **arguments: Any) -> Any:
        line = json.dumps({'secret': self._secret, 'verb': verb, **arguments}).encode() + b'\n'
        answer = self._connections.use(lambda connection, deadline: connection.ask(line, deadline), deadline)
        if not isinstance(answer, dict) or 'ok' not in answer:
            raise BackendError(why=f'{self._address[0]} port {self._address[1]} is not a control socket')
        if not answer['ok']:
            kind = BackendRefused if answer.get('kind') in PERMANENT else BackendError
            reason = model.Reason.BAD_KEY if answer.get('kind') == 'secret' else None
            raise kind(why=f"{verb}: {answer.get('error')}", reason=reason)
        return answer.get('result')

    def _connect(self, deadline: Deadline) -> _JsonConnection:
        return _JsonConnection(connect(self._address, deadline))


class _JsonConnection:
    """A connection on which each line is answered with a line of JSON."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def ask(self, line: bytes, deadline: Deadline) -> Any:
        """Send *line* and read the answer.

        :raises BackendError: when the answer is not JSON
        """
        send(self._socket, line, deadline)
        answer = bytearray()
        while not answer.endswith(b'\n'):
            answer += receive(self._socket, deadline)
            if len(answer) > LONGEST_ANSWER:
                raise BackendError(why=f'the answer of the control socket is longer than {LONGEST_ANSWER} octets')
        try:
            return json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise BackendError(why='the answer of the control socket is not JSON') from error

    def close(self) -> None:
        self._socket.close()
