"""What Designate's MiniDNS is taken to say when it says nothing."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import dns.flags
import dns.message
import dns.rcode
import pytest

from designate_pool.cmd.takeover import hand_back
from designate_pool.cmd.takeover.switch import NoReply
from designate_pool.model import Endpoint
from testing.processes import patience

WAITING = {f'z{number}.example.': 1 for number in range(20)}


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Reads nothing, as behind a firewall."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(('127.0.0.1', 0))
        yield sock


def test_silence_is_told_with_the_address_and_within_the_patience(listener: socket.socket) -> None:
    where, begun = Endpoint('127.0.0.1', listener.getsockname()[1]), time.monotonic()
    with pytest.raises(NoReply, match=f'127.0.0.1:{where.port} .*0.3 s.*firewall'):
        hand_back._ready([where, where], WAITING, patience=0.3)
    assert time.monotonic() - begun < patience(5)


def test_a_minidns_that_does_not_listen_yet_is_waited_for(listener: socket.socket) -> None:
    where = Endpoint('127.0.0.1', listener.getsockname()[1])
    listener.close()
    assert hand_back._ready([where], WAITING, patience=5) == {}


def test_one_that_fails_for_every_zone_is_waited_for(listener: socket.socket) -> None:
    def fail() -> None:
        for _ in WAITING:
            octets, peer = listener.recvfrom(512)
            answer = dns.message.make_response(dns.message.from_wire(octets))
            answer.set_rcode(dns.rcode.SERVFAIL)
            listener.sendto(answer.to_wire(), peer)

    thread = threading.Thread(target=fail, daemon=True)
    thread.start()
    assert hand_back._ready([Endpoint('127.0.0.1', listener.getsockname()[1])], WAITING, patience=30) == {}
    thread.join()
