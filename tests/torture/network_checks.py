"""What the network of the kit does to packets; run inside its namespaces by ``test_network.py``."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from testing.processes import wait_until
from tests.torture.network import CLIENTS, Network
from tests.torture.relay import Disturbance

_PORT = 5300
#: Sends back every datagram; a TCP client gets a million octets.
_ECHO = f'''
import socket, threading
tcp, udp = socket.create_server(("", {_PORT})), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("", {_PORT}))
def serve():
    while True:
        connection = tcp.accept()[0]
        try:
            connection.sendall(bytes(1000000))
        except OSError:
            pass
        connection.close()
threading.Thread(target=serve, daemon=True).start()
while True:
    data, client = udp.recvfrom(2000)
    udp.sendto(data, client)
'''
#: Sends twenty numbered datagrams and prints what comes back, until nothing does for 0.7 s.
_ASK = f'''
import socket, sys
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(0.7)
for number in range(20):
    udp.sendto(str(number).encode(), (sys.argv[1], {_PORT}))
try:
    while True:
        print(udp.recv(2000).decode())
except TimeoutError:
    pass
'''
IN_ORDER = list(range(20))


class Pair:
    """Two nodes, of which the second answers."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.asker, self.answerer = network.add('asker'), network.add('answerer')

    def ask(self, prefix: tuple[str, ...] | None = None) -> list[int]:
        """The numbers that come back to the asker."""
        command = [*(self.asker.prefix if prefix is None else prefix), sys.executable, '-c', _ASK,
                   self.answerer.address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return [int(line) for line in done.stdout.split()]


@pytest.fixture(scope='module')
def pair() -> Iterator[Pair]:
    network = Network()
    pair = Pair(network)
    server = subprocess.Popen([*pair.answerer.prefix, sys.executable, '-c', _ECHO])
    try:
        wait_until(lambda: socket.create_connection((pair.answerer.address, _PORT), 1).close() or True, 'it listens')
        yield pair
    finally:
        server.kill()
        server.wait()
        network.close()


def test_nodes_reach_each_other_and_the_kit_reaches_them(pair: Pair) -> None:
    assert pair.ask() == IN_ORDER
    assert pair.ask(()) == IN_ORDER


@pytest.mark.parametrize('there', [True, False], ids=['asked', 'answered'])
def test_a_link_is_cut_one_way_and_counts(pair: Pair, there: bool) -> None:
    cut = pair.network.cut('asker', 'answerer') if there else pair.network.cut('answerer', 'asker')
    try:
        assert pair.ask() == []
        assert cut.packets == 20
        assert pair.ask(()) == IN_ORDER
    finally:
        cut.end()
    assert cut.packets == 20
    assert pair.ask() == IN_ORDER


def test_clients_are_cut_off_and_nodes_are_not(pair: Pair) -> None:
    cut = pair.network.cut('answerer', CLIENTS)
    try:
        assert pair.ask(()) == []
        assert cut.packets == 20
        assert pair.ask() == IN_ORDER
    finally:
        cut.end()


def test_some_packets_are_lost(pair: Pair) -> None:
    lossy = pair.network.lose('asker', 'answerer', 0.5)
    try:
        came = pair.ask()
        assert 0 < lossy.packets < 20
        assert len(came) == 20 - lossy.packets
    finally:
        lossy.end()


def test_packets_come_late(pair: Pair) -> None:
    slow = pair.network.disturb('asker', 'answerer', Disturbance(delay=0.5))
    try:
        begun = time.monotonic()
        assert pair.ask() == IN_ORDER
        assert time.monotonic() - begun > 1
        assert slow.packets == 20
    finally:
        slow.end()
    assert pair.ask() == IN_ORDER


def test_packets_overtake_each_other_and_come_twice(pair: Pair) -> None:
    odd = pair.network.disturb('answerer', 'asker', Disturbance(jitter=0.2, doubled=0.5))
    try:
        came = pair.ask()
        assert came != sorted(came)
        assert set(came) == set(IN_ORDER)
        assert 20 < len(came) < 40
    finally:
        odd.end()


def test_a_connection_is_reset_in_the_middle(pair: Pair) -> None:
    def fetch() -> int:
        with socket.create_connection((pair.answerer.address, _PORT), 5) as connection:
            octets = 0
            while data := connection.recv(65536):
                octets += len(data)
            return octets

    assert fetch() == 1000000
    broken = pair.network.reset_after('answerer', CLIENTS, _PORT, 50000)
    try:
        with pytest.raises(ConnectionResetError):
            fetch()
        assert broken.packets
    finally:
        broken.end()
    assert fetch() == 1000000
