"""The examples for nftables: who reaches what, tried with real packets in network namespaces of their own."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence

from testing.processes import binary, patience

RULES = pathlib.Path(__file__).resolve().parents[3] / 'etc' / 'nftables'
HOSTS = ('192.0.2.1', '2001:db8::1')
MANAGERS = ('192.0.2.10', '2001:db8::10')
SERVER, SERVER6 = '192.0.2.53', '2001:db8::53'
USER = '203.0.113.7'
STRANGER, STRANGER6 = '192.0.2.99', '2001:db8::99'

#: Makes a machine with the rules and a neighbour, joined by a wire, and lets one of them try to reach the other.  The
#: rules are loaded twice, as it is done after a change.  The neighbour is there for as long as all of it may take, and
#: ends by itself: where this is killed, no trap ends it.
NETWORK = '''
unshare --net sleep "$LIFETIME" & peer=$!
trap 'kill $peer' EXIT
until [ "$(readlink /proc/$peer/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.02; done
neighbour="nsenter --net=/proc/$peer/ns/net"
ip link add wire type veth peer name wire netns $peer
for address in $HOST; do ip address add $address dev wire; done
for address in $NEIGHBOURS; do $neighbour ip address add $address dev wire; done
ip link set wire up
$neighbour ip link set wire up
for address in $NEIGHBOURS; do ip route add $address dev wire; done
for address in $HOST; do $neighbour ip route add $address dev wire; done
nft --file "$RULES"
nft --file "$RULES"
case $WHO in
    neighbours) $neighbour "$PYTHON" -c "$TRY" "$NEIGHBOURS" "$HOST" "$PORTS" ;;
    host) "$PYTHON" -c "$TRY" "$HOST" "$NEIGHBOURS" "$PORTS" ;;
esac
'''

#: Nothing listens, so what passes the rules is refused by the other's TCP, and what does not pass is not answered.
#: A new address is not usable at once; the port 9, which no rule is about, tells when it is.
TRY = '''
import itertools, json, os, socket, sys, time
sources, targets, ports = (text.split() for text in sys.argv[1:])

def passes(source, target, port, seconds):
    try:
        socket.create_connection((target, int(port)), seconds, (source, 0))
    except ConnectionRefusedError:
        return True
    except OSError:
        return False

found = []
for source, target in itertools.product(sources, targets):
    if (":" in source) == (":" in target):
        end = time.monotonic() + float(os.environ["PATIENCE"])
        while not passes(source, target, 9, 1):
            assert time.monotonic() < end, f"{source} does not reach {target} at all"
            time.sleep(0.05)
        found += [[source, target, int(port)] for port in ports if passes(source, target, port, 0.5)]
print(json.dumps(found))
'''


def passing(rules: str, who: str, neighbours: Sequence[str], ports: Sequence[int]) -> list[tuple[str, str, int]]:
    """Source, target and port of the TCP connections that get through to the other side.

    :param who: ``host``, the machine with these rules, or ``neighbours``
    """
    command = ['unshare', '--net', 'sh', '-euc', NETWORK]
    if os.geteuid() != 0:
        command.insert(1, '--map-root-user')
    seconds = patience(90)
    environment = {'PATH': '/usr/sbin:/sbin:/usr/bin:/bin', 'RULES': str(RULES / rules), 'WHO': who,
                   'HOST': ' '.join(HOSTS), 'NEIGHBOURS': ' '.join(neighbours), 'PORTS': ' '.join(map(str, ports)),
                   'PYTHON': sys.executable, 'TRY': TRY, 'PATIENCE': str(patience(20)), 'LIFETIME': str(seconds)}
    for program in ('unshare', 'nsenter', 'ip', 'nft'):
        binary(program)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr
    return [tuple(each) for each in json.loads(done.stdout)]


def from_neighbours(rules: str, neighbours: Sequence[str], ports: Sequence[int]) -> list[tuple[str, int]]:
    return [(source, port) for source, _, port in passing(rules, 'neighbours', neighbours, ports)]


def test_minidns_is_for_servers_and_the_api_for_users() -> None:
    neighbours = [SERVER, SERVER6, USER, STRANGER, STRANGER6]
    assert from_neighbours('designate-pool.nft', neighbours, [5354, 9001, 22]) == [
        (SERVER, 5354), (SERVER, 22), (SERVER6, 5354), (SERVER6, 22), (USER, 9001), (USER, 22), (STRANGER, 22),
        (STRANGER6, 22)]


def test_control_channels_lead_to_servers_only() -> None:
    found = passing('designate-pool.nft', 'host', [SERVER, SERVER6, STRANGER, STRANGER6], [53, 953])
    assert {(target, port) for _, target, port in found} == {
        (SERVER, 53), (SERVER, 953), (SERVER6, 53), (SERVER6, 953), (STRANGER, 53), (STRANGER6, 53)}


def test_a_server_is_asked_by_everyone_and_commanded_by_pool_managers() -> None:
    assert from_neighbours('name-server.nft', [*MANAGERS, STRANGER, STRANGER6], [53, 953]) == [
        (MANAGERS[0], 53), (MANAGERS[0], 953), (MANAGERS[1], 53), (MANAGERS[1], 953), (STRANGER, 53), (STRANGER6, 53)]


def test_no_example_was_forgotten() -> None:
    assert sorted(path.name for path in RULES.iterdir()) == ['designate-pool.nft', 'name-server.nft']
