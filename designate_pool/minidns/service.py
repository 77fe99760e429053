"""The service ``minidns``: serves the zones to the pool's servers, notifies and polls them, tells the pool managers."""

from __future__ import annotations

import collections
import contextlib
import ipaddress
import logging
import socket
from collections.abc import Sequence

from designate_pool.errors import InvalidField
from designate_pool.minidns import signing, wire
from designate_pool.minidns.access import Peer, guests
from designate_pool.minidns.answering import Answering
from designate_pool.minidns.concurrency import Runtime
from designate_pool.minidns.errands import Schedule
from designate_pool.minidns.exchange import Exchange
from designate_pool.minidns.packing import PackedZone
from designate_pool.minidns.poller import Poller, Request, ToAsker, ToPool
from designate_pool.minidns.reports import Reports
from designate_pool.minidns.responder import Responder
from designate_pool.minidns.server import Server
from designate_pool.minidns.zones import Zones
from designate_pool.model import Answer, Context, Domain, Endpoint, Outcome, PollRequest, PollResult
from designate_pool.model import Server as PoolServer
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.storage.sessions import Storage

LOG = logging.getLogger(__name__)

DNS_PORT = 53


class MiniDns:
    """MiniDNS, and the endpoint of its topic.

    :param servers: of all pools that this MiniDNS works for
    :param listen: where to answer, UDP and TCP both; port 0 takes any free one, and ``endpoints`` tells which
    :param tcp_connections: how many are served at the same time
    :param packed_zones_bytes: memory for zones in wire form
    :raises InvalidField: when a server's TSIG key is not valid
    """

    def __init__(self, storage: Storage, servers: Sequence[PoolServer], listen: Sequence[Endpoint],
                 pool_managers: PoolManagerClient, runtime: Runtime, tcp_connections: int = 500,
                 packed_zones_bytes: int = 256 << 20) -> None:
        self._runtime = runtime
        self._peers = {server.id: _peer(server) for server in servers}
        self._by_destination = {str(server.endpoint): self._peers[server.id] for server in reversed(servers)}
        for peer in reversed(self._peers.values()):
            for address in peer.addresses:
                self._by_destination[str(Endpoint(address, peer.port))] = peer
        answering = Answering(Zones(storage, packed_zones_bytes), Responder(guests(self._peers.values())))
        at_address = collections.Counter(address for peer in self._peers.values() for address in peer.addresses)
        self._server = Server(listen, answering, self._served, tcp_connections, at_address)
        self._reports = Reports(pool_managers)
        self._exchange = Exchange(_sources(listen))
        self._poller = Poller(self._exchange, self._reports.put)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where it answers; empty before :meth:`start`."""
        return self._server.endpoints

    def start(self) -> None:
        """Take the ports and begin.

        :raises OSError: when a port or address cannot be had
        """
        self._server.bind()
        self._exchange.open()
        self._reports.start(self._runtime)
        self._exchange.start(self._runtime)
        self._server.start(self._runtime)

    def stop(self) -> None:
        """Answer what was asked, tell what is known, and end; polls under way are dropped."""
        self._server.stop()
        self._exchange.stop()
        self._reports.stop()

    def notify_zone_changed(self, context: Context, domain: Domain, destination: str, timeout: float,
                            retry_interval: float, max_retries: int) -> None:
        """Send one server a NOTIFY.

        :param destination: ``ip``, ``ip:port`` or ``[ip]:port``
        :raises InvalidField: when it is none of these
        """
        self._ask_one(context, domain, destination, Schedule(timeout, retry_interval, max_retries), poll=False)

    def poll_for_serial_number(self, context: Context, domain: Domain, destination: str, timeout: float,
                               retry_interval: float, max_retries: int) -> None:
        """Poll one server until it serves the domain's serial; told by ``update_status``.

        :param destination: as for :meth:`notify_zone_changed`
        """
        self._ask_one(context, domain, destination, Schedule(timeout, retry_interval, max_retries), poll=True)

    def notify_and_poll(self, context: Context, pool_name: str, requests: Sequence[PollRequest], timeout: float,
                        retry_interval: float, max_retries: int) -> None:
        """Notify and poll for many domains and servers; told by ``update_statuses``."""
        recipient = ToPool(pool_name, context)
        known = []
        for request in requests:
            _check_name(request.name)
            peer = self._peers.get(request.server_id)
            if peer is None:
                self._reports.put(recipient, PollResult(
                    request.domain_id, request.server_id, Outcome.ERROR, Answer.BAD, None,
                    f'MiniDNS knows no server {request.server_id}; is its configuration the pool manager\'s?'))
            else:
                known.append(Request(peer, request.domain_id, request.name, request.serial, recipient, request.notify,
                                     delay=request.delay))
        self._poller.request(known, Schedule(timeout, retry_interval, max_retries))

    def _ask_one(self, context: Context, domain: Domain, destination: str, schedule: Schedule, poll: bool) -> None:
        _check_name(domain.name)
        request = Request(self._find(destination), domain.id, domain.name, domain.serial,
                          ToAsker(context, domain, destination), notify=not poll, poll=poll)
        self._poller.request([request], schedule)

    def _find(self, destination: str) -> Peer:
        """The server at *destination*; one that is not configured has no key."""
        known = self._by_destination.get(destination)
        if known is not None:
            return known
        endpoint = parse_destination(destination)
        known = self._by_destination.get(str(endpoint))
        return known or Peer(str(endpoint), str(endpoint), (endpoint.host,), endpoint.port)

    def _served(self, peers: tuple[Peer, ...], zone: PackedZone) -> None:
        """A transfer has been sent: see whether its receiver serves it."""
        self._poller.transferred(peers, zone.domain_id, zone.name, zone.serial, zone.pool_name)


def parse_destination(destination: str) -> Endpoint:
    """The address and port of ``ip``, ``ip:port`` or ``[ip]:port``; the port is 53 where it is missing.

    :raises InvalidField: when it is none of these
    """
    host, port = destination, str(DNS_PORT)
    if destination.startswith('['):
        host, bracket, rest = destination[1:].partition(']')
        if rest.startswith(':'):
            port = rest[1:]
        elif rest or not bracket:
            host = ''
    elif destination.count(':') == 1:
        host, port = destination.split(':')
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        if port.isascii() and port.isdigit() and 0 < int(port) < 65536:
            return Endpoint(address.compressed, int(port))
    raise InvalidField(field='destination', why=f'{destination!r} is not an IP address with or without a port')


def _check_name(name: str) -> None:
    try:
        wire.wire_of(name)
    except ValueError as error:
        raise InvalidField(field='name', why=str(error)) from None


def _peer(server: PoolServer) -> Peer:
    """*server* as it is met on the network.  A name that cannot be resolved is its own trouble, told by its polls."""
    trouble = None
    addresses: tuple[str, ...] = ()
    try:
        found = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_DGRAM)
        addresses = tuple(dict.fromkeys(str(each[4][0]) for each in found))
    except OSError as error:
        trouble = f'{server.host} has no address: {error}'
        LOG.error('server %s: %s', server.label, trouble)
    try:
        key = None if server.tsig_key is None else signing.key_from(server.tsig_key)
    except ValueError as error:
        raise InvalidField(field='tsig_key', why=str(error)) from None
    return Peer(server.id, server.label, addresses, server.port, key, trouble)


def _sources(listen: Sequence[Endpoint]) -> dict[int, str]:
    """The address to send from, by family: one that is listened on, as servers take a NOTIFY from their primary."""
    sources: dict[int, str] = {}
    for endpoint in listen:
        if not ipaddress.ip_address(endpoint.host).is_unspecified:
            sources.setdefault(socket.AF_INET6 if ':' in endpoint.host else socket.AF_INET, endpoint.host)
    return sources
