"""The network of a run: a namespace for each node, joined by the one that the kit itself runs in, which routes.

Each node has an address and is reached from the kit; what one node sends to another passes the kit's namespace, where
nftables drop, lose or reset it, or a relay holds it back (:mod:`tests.torture.relay`).  Each impairment is of one
direction between two nodes, and counts the packets that it met.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
from collections.abc import Callable

from testing.processes import binary
from tests.torture import isolation
from tests.torture.relay import Disturbance, Relay

_TABLE = 'torture'
#: The routing table whose only way leads into the relay.
_RELAYED = 77
#: As a sender of packets: the kit, with its clients.
CLIENTS = 'clients'


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A node of the network, which has a network of 256 addresses for itself.

    :ivar address: its own
    :ivar other_address: where it can be instead
    :ivar network: all its addresses
    :ivar gateway: the kit's, as the node sees it
    :ivar interface: the kit's end of the link
    :ivar prefix: the words before a command that run it there; the process id is that of the command
    """

    name: str
    address: str
    other_address: str
    network: str
    gateway: str
    interface: str
    prefix: tuple[str, ...]


class Impairment:
    """Something that is done to packets from one node to another, until :meth:`end`."""

    def __init__(self, end: Callable[[], None], count: Callable[[], int]) -> None:
        self._end = end
        self._count = count

    @property
    def packets(self) -> int:
        """How many it met."""
        return self._count()

    def end(self) -> None:
        self._end()


class Network:
    """All nodes; it is removed with the namespaces that :func:`tests.torture.isolation.run` makes."""

    def __init__(self, seed: int = 0) -> None:
        isolation.required()
        self.hosts: dict[str, Host] = {}
        _ip('link', 'set', 'lo', 'up')
        # Ports of nodes are looked for from here.
        for setting in ('ip_forward=1', 'ip_nonlocal_bind=1', 'conf.all.rp_filter=0', 'conf.default.rp_filter=0'):
            name, value = setting.split('=')
            pathlib.Path('/proc/sys/net/ipv4', name.replace('.', '/')).write_text(value)
        _nft('add', 'table', 'inet', _TABLE)
        for chain in ('forward', 'output', 'input'):
            _nft('add', 'chain', 'inet', _TABLE, chain, f'{{ type filter hook {chain} priority 0; }}')
        self._relay = Relay(seed)
        _ip('route', 'add', 'default', 'dev', self._relay.interface, 'table', str(_RELAYED))

    def close(self) -> None:
        self._relay.close()

    def add(self, name: str) -> Host:
        """Make a node."""
        number = len(self.hosts) + 1
        block = f'10.213.{number}'
        host = Host(name, f'{block}.2', f'{block}.3', f'{block}.0/24', f'{block}.1', f'node{number}',
                    (binary('nsenter'), f'--net=/run/netns/{name}', '--'))
        _ip('netns', 'add', name)
        _ip('link', 'add', host.interface, 'type', 'veth', 'peer', 'name', 'uplink', 'netns', name)
        _ip('addr', 'add', f'{host.gateway}/24', 'dev', host.interface)
        _ip('link', 'set', host.interface, 'up')
        for words in (('link', 'set', 'lo', 'up'), ('addr', 'add', f'{host.address}/24', 'dev', 'uplink'),
                      ('link', 'set', 'uplink', 'up'), ('route', 'add', 'default', 'via', host.gateway)):
            _ip('-n', name, *words)
        self.hosts[name] = host
        return host

    def readdress(self, name: str, address: str) -> None:
        """Give a node *address* in place of the one that it has."""
        _ip('-n', name, 'addr', 'flush', 'dev', 'uplink')
        _ip('-n', name, 'addr', 'add', f'{address}/24', 'dev', 'uplink')
        _ip('-n', name, 'route', 'replace', 'default', 'via', self.hosts[name].gateway)

    def cut(self, source: str, target: str) -> Impairment:
        """Nothing gets from *source* to *target*; the other direction is as it was."""
        return self.filter(source, target, '', 'drop')

    def lose(self, source: str, target: str, share: float) -> Impairment:
        """So many of the packets are lost."""
        return self.filter(source, target, f'numgen random mod 1000 < {round(share * 1000)}', 'drop')

    def reset_after(self, source: str, target: str, port: int, octets: int) -> Impairment:
        """What *target* fetches over TCP from *port* of *source* ends in a reset after more than *octets*."""
        # The reset goes to whoever sent the packet: to the one who fetches, at its next acknowledgement.
        return self.filter(target, source, f'tcp dport {port} ct reply bytes > {octets}', 'reject with tcp reset')

    def disturb(self, source: str, target: str, disturbance: Disturbance) -> Impairment:
        """Packets are held back, doubled and overtake each other."""
        pair = self._addresses(source, target), self._addresses(target, source)
        rule = ('iif', self.hosts[source].interface, 'from', pair[0], 'to', pair[1], 'lookup', str(_RELAYED))
        met = self._relay.disturb(*pair, disturbance)
        _ip('rule', 'add', *rule)

        def end() -> None:
            _ip('rule', 'del', *rule)
            self._relay.leave(*pair)

        return Impairment(end, lambda: met.disturbed)

    def filter(self, source: str, target: str, match: str, verdict: str) -> Impairment:
        """A rule of nftables for packets from *source* to *target*.

        :param match: more that the packets must be
        """
        chain = {source: 'output', target: 'input'}.get(CLIENTS, 'forward')
        added = _nft('--json', '--echo', '--handle', 'add', 'rule', 'inet', _TABLE, chain,
                     f'ip saddr {self._addresses(source, target)} ip daddr {self._addresses(target, source)} {match} '
                     f'counter {verdict}')
        handle = str(next(each['add']['rule']['handle'] for each in json.loads(added)['nftables'] if 'add' in each))

        def count() -> int:
            listed = json.loads(_nft('--json', '--handle', 'list', 'chain', 'inet', _TABLE, chain))['nftables']
            expressions = next(each['rule']['expr'] for each in listed
                               if str(each.get('rule', {}).get('handle')) == handle)
            return int(next(each['counter']['packets'] for each in expressions if 'counter' in each))

        last: list[int] = []

        def end() -> None:
            last.append(count())
            _nft('delete', 'rule', 'inet', _TABLE, chain, 'handle', handle)

        return Impairment(end, lambda: last[0] if last else count())

    def _addresses(self, name: str, other: str) -> str:
        return self.hosts[other].gateway if name == CLIENTS else self.hosts[name].network


def _ip(*words: str) -> None:
    _run('ip', *words)


def _nft(*words: str) -> str:
    return _run('nft', *words)


def _run(program: str, *words: str) -> str:
    done = subprocess.run([binary(program), *words], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(f'{program} {" ".join(words)}: {done.stderr.strip() or done.stdout.strip()}')
    return done.stdout
