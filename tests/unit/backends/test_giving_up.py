"""What becomes of a connection on which an answer does not come in time."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

import dns.message
import pytest

from designate_pool.backends.bind9 import rndc
from designate_pool.backends.nsd.control_protocol import NsdControl
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendUnreachable
from designate_pool.powerdns import PdnsServer
from designate_pool.protocol.tcp_client import TcpPeer

KEY = rndc.RndcKey.make('rndc-key', 'hmac-sha256', 'c2VjcmV0')
QUESTION = dns.message.make_query('example.com.', 'SOA')
CLIENTS: dict[str, Callable[[int], object]] = {
    'bind9': lambda port: rndc.open_channel('127.0.0.1', port, KEY, Deadline(0.3)),
    'nsd': lambda port: NsdControl(('127.0.0.1', port), None).ask('status', Deadline(0.3)),
    'pdns': lambda port: PdnsServer(f'http://127.0.0.1:{port}', 'key').ask('DELETE', '/zones', Deadline(0.3)),
    'rfc2136': lambda port: TcpPeer('127.0.0.1', port).ask(QUESTION, 0.3),
}


@pytest.mark.parametrize('client', CLIENTS)
def test_what_is_not_answered_in_time_is_aborted(client: str) -> None:
    """So that what the server has not received yet is never sent to it."""
    with socket.create_server(('127.0.0.1', 0)) as listener:
        with contextlib.suppress(TimeoutError, BackendUnreachable):
            CLIENTS[client](listener.getsockname()[1])
            raise AssertionError('it was answered')
        connected, _ = listener.accept()
        with connected:
            connected.settimeout(10)
            assert connected.recv(65536), 'it had asked'
            with pytest.raises(ConnectionResetError):
                connected.recv(65536)
