"""The pool's servers with their network addresses: one immutable value, replaced when the configuration changes."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.errors import InvalidField
from designate_pool.logs import OutageLog
from designate_pool.minidns.acl import Acl, AllowedPeer, make_acl
from designate_pool.model import LAST_STAGE, Endpoint, Pool, Server
from designate_pool.protocol import tsig

LOG = logging.getLogger(__name__)

#: Names that are looked up at the same time: a resolver that does not answer takes seconds for each.
_AT_ONCE = 16


class Addresses(NamedTuple):
    """What a host name was found to stand for.

    :ivar found: IP addresses as the operating system writes them
    :ivar trouble: why there are none, in words
    """

    found: tuple[str, ...]
    trouble: str | None = None


class HostAddresses:
    """Looks host names up, and has them looked up again later.

    The addresses of a name are kept while it cannot be looked up, and in their order while they are the same: a
    resolver may give them in another order each time.

    :param look_up: the addresses of a host; raises OSError if it has none
    :param interval: seconds after which names are looked up again
    :param retry_interval: the same, while one cannot be looked up
    """

    def __init__(self, look_up: Callable[[str], Sequence[str]] | None = None, interval: float = 60.0,
                 retry_interval: float = 5.0) -> None:
        self._look_up = look_up or _look_up
        self._interval = interval
        self._retry_interval = retry_interval
        self._names: list[str] = []
        self._last_known: dict[str, Addresses] = {}
        self._outages = OutageLog(LOG, 'the host name %s cannot be looked up: %s', 'the host name %s is found again')
        self._stop_event = threading.Event()
        self._task: LoopTask | None = None

    def of(self, hosts: Iterable[str]) -> Mapping[str, Addresses]:
        """The addresses of these hosts, looked up now; other hosts are forgotten."""
        hosts = dict.fromkeys(hosts)
        self._names = [host for host in hosts if not _is_address(host)]
        addresses = {host: self._addresses_of(host) for host in hosts if host not in self._names}
        if self._names:
            with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as executor:
                addresses.update(zip(self._names, executor.map(self._addresses_of, self._names)))
        for host in self._last_known.keys() - hosts:
            self._outages.forget(host)
        self._last_known = addresses
        return addresses

    def start(self, runtime: Runtime, renew: Callable[[], object]) -> None:
        """Have *renew* called whenever names should be looked up again."""
        self._task = runtime.spawn(self._run, renew, name='minidns-addresses')

    def stop(self) -> None:
        """Stop looking names up."""
        self._stop_event.set()
        if self._task is not None:
            self._task.join(10)

    def _addresses_of(self, host: str) -> Addresses:
        previous = self._last_known.get(host, Addresses(()))
        try:
            addresses = tuple(dict.fromkeys(self._look_up(host)))
        except OSError as error:
            self._outages.failed(host, error, key=host)
            return previous if previous.found else Addresses((), f'{host} has no address: {error}')
        self._outages.ended(host, key=host)
        return previous if set(addresses) == set(previous.found) else Addresses(addresses)

    def _run(self, renew: Callable[[], object]) -> None:
        at = time.monotonic()
        while not self._stop_event.wait(self._retry_interval):
            if self._names and (self._outages or time.monotonic() - at >= self._interval):
                at = time.monotonic()
                try:
                    renew()
                except Exception:  # whatever fails, names are looked up again the next time
                    LOG.exception('the former addresses of the servers are still used')


def _look_up(host: str) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_local(address: str) -> bool:
    """Whether an address belongs to this machine: nothing can be bound to another one."""
    try:
        with socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((address, 0))
    except OSError:
        return False
    return True


@dataclasses.dataclass(frozen=True, slots=True)
class ServerTable:
    """The servers of a pool, and how they are found by address and key.

    :ivar catalog_zone: the name of the pool's catalog zone, None for none
    :ivar peers: by server id
    :ivar verified: by server id, for servers that are verified at other addresses than their own: those addresses,
        which are asked what the server serves
    :ivar by_destination: by ``address:port``, as a host name and as each of its addresses
    """

    pool_name: str
    catalog_zone: str | None
    peers: Mapping[str, AllowedPeer]
    by_destination: Mapping[str, AllowedPeer]
    acl: Acl
    verified: Mapping[str, tuple[AllowedPeer, ...]]

    def all_peers(self) -> dict[str, AllowedPeer]:
        """The servers and the addresses at which they are verified, by id."""
        return {**self.peers, **{peer.id: peer for peers in self.verified.values() for peer in peers}}

    def find_peer(self, destination: str) -> AllowedPeer:
        """The server at *destination*: ``ip``, ``ip:port`` or ``[ip]:port``, the port is 53 where it is missing.

        A destination that is not configured gets a peer without a key.

        :raises InvalidField: when it is no destination
        """
        peer = self.by_destination.get(destination)
        if peer is None:
            try:
                endpoint = Endpoint.parse(destination)
            except ValueError as error:
                raise InvalidField(field='destination', why=str(error)) from None
            text = str(endpoint)
            peer = self.by_destination.get(text) or AllowedPeer(text, text, (endpoint.host,), endpoint.port)
        return peer


@dataclasses.dataclass
class PoolServers:
    """The pool's servers as they are now: *table* is replaced when the configuration changes."""

    table: ServerTable


def make_server_table(pool: Pool, hosts: HostAddresses) -> ServerTable:
    """Make the table of the servers of *pool*, whose hosts are looked up.

    :raises InvalidField: when a TSIG key is not valid, or two of one name differ
    """
    addresses = hosts.of(server.host for server in pool.servers)
    stages = pool.stages
    peers = {server.id: _peer(server, addresses[server.host], stages[server.id] or LAST_STAGE)
             for server in pool.servers}
    by_destination = {str(server.endpoint): peers[server.id] for server in reversed(pool.servers)}
    for peer in reversed(peers.values()):
        for address in peer.addresses:
            by_destination[str(Endpoint(address, peer.port))] = peer
    return ServerTable(pool.name, pool.catalog_zone, peers, by_destination, make_acl(peers.values()),
                       {server.id: _verified(server) for server in pool.servers if server.verify})


def _verified(server: Server) -> tuple[AllowedPeer, ...]:
    return tuple(AllowedPeer(f'{server.id}#{number}', server.label, (endpoint.host,), endpoint.port)
                 for number, endpoint in enumerate(server.verify))


def _peer(server: Server, addresses: Addresses, stage: int) -> AllowedPeer:
    """*server* with its addresses.  A host that has none fails the polls of that server only."""
    try:
        key = None if server.tsig_key is None else tsig.key_from(server.tsig_key)
    except tsig.InvalidKey as error:
        raise InvalidField(field='tsig_key', why=str(error)) from None
    return AllowedPeer(server.id, server.label, addresses.found, server.port, key, addresses.trouble, stage)
