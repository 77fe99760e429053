"""Unit tests ask no server of the network: nothing is waited for at the addresses of examples, whose packets vanish."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from designate_pool.deadline import Deadline, connect
from designate_pool.protocol import tcp_client

EXAMPLES = ('192.0.2.', '198.51.100.', '203.0.113.', '2001:db8:')


@pytest.fixture(scope='session', autouse=True)
def examples_refuse_connections() -> Iterator[None]:
    def refuse(address: tuple[str, int], deadline: Deadline) -> socket.socket:
        if address[0].startswith(EXAMPLES):
            raise ConnectionRefusedError(f'{address[0]} is the address of an example')
        return connect(address, deadline)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tcp_client, 'connect', refuse)
        yield
