"""The pool's servers with their network addresses: one immutable value, replaced when the configuration changes."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping

from designate_pool.errors import InvalidField
from designate_pool.minidns.access.acl import Acl, AllowedPeer, make_acl
from designate_pool.minidns.access.host_addresses import Addresses, HostAddresses
from designate_pool.model import Endpoint, Pool, Server
from designate_pool.protocol import tsig


@dataclasses.dataclass(frozen=True, slots=True)
class ServerTable:
    """The servers of a pool, and how they are found by address and key.

    :ivar catalog_zone: the name of the pool's catalog zone, None for none
    :ivar peers: by server id
    :ivar verified: by server id, for servers that are verified at other addresses than their own: those addresses
    :ivar by_destination: by ``address:port``, as a host name and as each of its addresses
    :ivar servers_at_address: how many servers have an address
    """

    pool_name: str
    catalog_zone: str | None
    peers: Mapping[str, AllowedPeer]
    by_destination: Mapping[str, AllowedPeer]
    acl: Acl
    servers_at_address: Mapping[str, int]
    verified: Mapping[str, tuple[AllowedPeer, ...]]

    def asked(self, peer: AllowedPeer) -> tuple[AllowedPeer, ...]:
        """Whom to ask which serials *peer* serves."""
        return self.verified.get(peer.id, (peer,))

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


def make_server_table(pool: Pool, hosts: HostAddresses) -> ServerTable:
    """Make the table of the servers of *pool*, whose hosts are looked up.

    :raises InvalidField: when a TSIG key is not valid, or two of one name differ
    """
    addresses = hosts.of(server.host for server in pool.servers)
    peers = {server.id: _peer(server, addresses[server.host]) for server in pool.servers}
    by_destination = {str(server.endpoint): peers[server.id] for server in reversed(pool.servers)}
    for peer in reversed(peers.values()):
        for address in peer.addresses:
            by_destination[str(Endpoint(address, peer.port))] = peer
    servers_at_address = collections.Counter(address for peer in peers.values() for address in peer.addresses)
    return ServerTable(pool.name, pool.catalog_zone, peers, by_destination, make_acl(peers.values()),
                       servers_at_address, {server.id: _verified(server) for server in pool.servers if server.verify})


def _verified(server: Server) -> tuple[AllowedPeer, ...]:
    return tuple(AllowedPeer(f'{server.id}#{number}', server.label, (endpoint.host,), endpoint.port)
                 for number, endpoint in enumerate(server.verify))


def _peer(server: Server, addresses: Addresses) -> AllowedPeer:
    """*server* with its addresses.  A host that has none fails the polls of that server only."""
    try:
        key = None if server.tsig_key is None else tsig.key_from(server.tsig_key)
    except tsig.InvalidKey as error:
        raise InvalidField(field='tsig_key', why=str(error)) from None
    return AllowedPeer(server.id, server.label, addresses.found, server.port, key, addresses.trouble)
