"""This project's small name server, controlled over its control socket: for demonstrations, tests and rehearsals.

Requests and answers on the control socket are JSON objects, one per line: ``{"ok": true, "result": …}`` or
``{"ok": false, "kind": …, "error": …}`` (see :mod:`designate_pool.nameserver.server`).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection
from typing import Any, ClassVar

from designate_pool import model
from designate_pool.backends.base import Backend, Capabilities
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
        return ask(self._address, self._secret, deadline, verb, **arguments)


def ask(address: tuple[str, int], secret: str, deadline: Deadline, verb: str, **arguments: Any) -> Any:
    """Send one request to a control socket; its result.  BackendError when it is refused, or something else answers."""
    with contextlib.closing(connect(address, deadline)) as connection:
        send(connection, json.dumps({'secret': secret, 'verb': verb, **arguments}).encode() + b'\n', deadline)
        line = bytearray()
        while not line.endswith(b'\n'):
            line += receive(connection, deadline)
            if len(line) > LONGEST_ANSWER:
                raise BackendError(why=f'the answer of the control socket is longer than {LONGEST_ANSWER} octets')
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BackendError(why='the answer of the control socket is not JSON') from error
    if not isinstance(answer, dict) or 'ok' not in answer:
        raise BackendError(why=f'{address[0]} port {address[1]} is not a control socket')
    if not answer['ok']:
        kind = BackendRefused if answer.get('kind') in PERMANENT else BackendError
        reason = model.Reason.BAD_KEY if answer.get('kind') == 'secret' else None
        raise kind(why=f"{verb}: {answer.get('error')}", reason=reason)
    return answer.get('result')
