"""Where a NOTIFY or a poll of one server goes."""

from __future__ import annotations

import pytest

from designate_pool.minidns.servers import HostAddresses, make_server_table
from designate_pool.model import Endpoint, Pool


@pytest.mark.parametrize(('destination', 'endpoint'), [
    ('192.0.2.1', Endpoint('192.0.2.1', 53)),
    ('192.0.2.1:5300', Endpoint('192.0.2.1', 5300)),
    ('[192.0.2.1]:5300', Endpoint('192.0.2.1', 5300)),
    ('2001:db8::1', Endpoint('2001:db8::1', 53)),
    ('[2001:db8::1]', Endpoint('2001:db8::1', 53)),
    ('[2001:DB8:0::1]:5300', Endpoint('2001:db8::1', 5300)),
])
def test_a_destination_is_an_address_and_a_port_which_is_53_when_nothing_is_said(destination: str,
                                                                                 endpoint: Endpoint) -> None:
    peer = make_server_table(Pool('default'), HostAddresses()).find_peer(destination)
    assert (peer.addresses, peer.port) == ((endpoint.host,), endpoint.port)
