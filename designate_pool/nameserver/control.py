"""The control socket: requests and replies are JSON objects, one a line, over TCP on loopback only.

A request is ``{"secret": …, "verb": …}`` with the verb's arguments beside; a reply is ``{"ok": true, "result": …}`` or
``{"ok": false, "kind": …, "error": …}``, where *kind* is ``secret`` for a wrong secret, ``request`` for an invalid
request, and ``failed`` for the rest.

=================  ==========================================  ======================================================
verb               arguments                                   result
=================  ==========================================  ======================================================
``ping``                                                       the program's version
``add_zone``       name, primaries ``[{host, port}]``, key     whether anything changed
``delete_zone``    name                                        whether there was such a zone
``refresh``        name                                        whether there is such a zone
``refetch``        name                                        the same; fetches it whatever its serial
``list_zones``                                                 ``[{name, serial, primaries, error}]``
``forget_zones``                                               null; loses all zones, as in a disaster
``set_fault``      kind, seconds, count, zone                  null
``clear_faults``   kind, zone                                  the faults that were switched off
``list_faults``                                                the faults that are on
=================  ==========================================  ======================================================
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Any

from designate_pool.errors import BadInput, InvalidField, PoolError
from designate_pool.model import Endpoint
from designate_pool.nameserver.sockets import TcpListener

LOG = logging.getLogger(__name__)
MAX_LINE = 65536
Handler = Callable[[Mapping[str, Any]], Any]


class ControlServer:
    """Serves the control socket.

    :param verbs: the handler of each verb, called with the request
    """

    def __init__(self, secret: str, verbs: Mapping[str, Handler]) -> None:
        if not secret:
            raise InvalidField(field='secret', why='the control socket needs one')
        self._secret = secret
        self._verbs = verbs
        self._listener = TcpListener('control', self._serve)

    def start(self, listen: Endpoint) -> Endpoint:
        """Bind and serve; the endpoint with its actual port.

        :raises InvalidField: when it is not on loopback
        """
        if not ipaddress.ip_address(listen.host).is_loopback:
            raise InvalidField(field='control', why=f'{listen.host} is not a loopback address')
        bound = self._listener.bind(listen)
        self._listener.start()
        return bound

    def stop(self) -> None:
        self._listener.stop()

    def _serve(self, connection: socket.socket, client: str) -> None:
        with connection.makefile('rb') as stream:
            while True:
                line = stream.readline(MAX_LINE)
                if not line:
                    return
                connection.sendall(json.dumps(self._handle(line)).encode() + b'\n')
                if not line.endswith(b'\n'):
                    return

    def _handle(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ValueError('it is not an object')
        except (ValueError, RecursionError) as error:
            return _refusal('request', f'the request is not a line of JSON: {error}')
        secret = request.get('secret')
        if not isinstance(secret, str) or not hmac.compare_digest(secret.encode(), self._secret.encode()):
            return _refusal('secret', 'the secret is wrong')
        verb = self._verbs.get(str(request.get('verb')))
        if verb is None:
            return _refusal('request', f"verb: there is no '{request.get('verb')}'")
        try:
            return {'ok': True, 'result': verb(request)}
        except BadInput as error:
            return _refusal('request', str(error))
        except PoolError as error:
            return _refusal('failed', str(error))
        except Exception as error:  # the client is told, and the connection goes on
            LOG.exception('%s failed', request['verb'])
            return _refusal('failed', f'{type(error).__name__}: {error}')


class ControlClient:
    """Sends requests to a control socket, each on a new connection."""

    def __init__(self, endpoint: Endpoint, secret: str, timeout: float = 5.0) -> None:
        self._endpoint = endpoint
        self._secret = secret
        self._timeout = timeout

    def ask(self, verb: str, **arguments: Any) -> Any:
        """The result of *verb*.

        :raises BadInput: when it is refused
        :raises OSError: when there is no reply
        """
        with socket.create_connection((self._endpoint.host, self._endpoint.port), self._timeout) as connection:
            connection.sendall(json.dumps({'secret': self._secret, 'verb': verb, **arguments}).encode() + b'\n')
            with connection.makefile('rb') as stream:
                answer = json.loads(stream.readline() or b'{"ok": false, "error": "the connection was closed"}')
        if not answer['ok']:
            raise BadInput(why=answer['error'])
        return answer['result']


def _refusal(kind: str, error: str) -> dict[str, Any]:
    return {'ok': False, 'kind': kind, 'error': error}
