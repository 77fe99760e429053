"""The service ``minidns``: transfers zones to the pool's servers, notifies and polls them, reports to pool managers."""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

import dns.exception
import dns.name
import dns.tsig

from designate_pool.concurrency import Runtime, one_ahead
from designate_pool.errors import InvalidField
from designate_pool.logs import OutageLog
from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.client.event_loop import ClientLoop
from designate_pool.minidns.client.query import RetrySchedule
from designate_pool.minidns.client.soa_audit import AuditPage, SoaAudit
from designate_pool.minidns.client.soa_poller import PollOrder, ResultSender, SoaPoller, ToCaller, ToPool
from designate_pool.minidns.database_watch import ConfigReloader, DatabaseWatch, TsigGrants
from designate_pool.minidns.refresher import SecondaryRefresher
from designate_pool.minidns.server.listener import Listener, TcpLimits
from designate_pool.minidns.server.query_handler import NotifyReceiver, QueryHandler
from designate_pool.minidns.servers import HostAddresses, PoolServers, is_local, make_server_table
from designate_pool.minidns.zones.ixfr import PackedDifference
from designate_pool.minidns.zones.packed_zone import PackedZone
from designate_pool.model import (AlsoNotify, Answer, Context, Domain, Endpoint, Outcome, PollRequest, PollResult, Pool,
                                  Server)
from designate_pool.protocol import wire
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.serial import SPACE
from designate_pool.settings import MiniDnsSettings
from designate_pool.storage.sql.database import Storage

LOG = logging.getLogger(__name__)


class MiniDns:
    """MiniDNS, and the endpoint of its topic.

    :param settings: port 0 in *listen* takes any free port, which is then in ``endpoints``
    :param read_pool: reads the configuration again when a pool manager has
    :param central: stores secondary zones
    :param tls_context: for *listen_tls*, as it is now
    :raises InvalidField: when a server's TSIG key is not valid
    """

    def __init__(self, storage: Storage, pool: Pool, settings: MiniDnsSettings, pool_managers: PoolManagerClient,
                 runtime: Runtime, read_pool: Callable[[], Pool], central: CentralClient,
                 tcp_limits: TcpLimits | None = None, host_addresses: HostAddresses | None = None,
                 tls_context: Callable[[], ssl.SSLContext] | None = None) -> None:
        self._is_announced = False
        self._missing_keys = OutageLog(LOG, '%s is not notified: there is no TSIG key %s', '%s is notified again',
                                       logging.WARNING)
        self._runtime = runtime
        self._host_addresses = host_addresses or HostAddresses()
        self._pool = pool
        self._servers = PoolServers(make_server_table(pool, self._host_addresses))
        self._pool_lock = threading.Lock()
        self._tsig_grants = TsigGrants(storage)
        self._refresher = SecondaryRefresher(central, pool.name, self._key_of_zone, self._no_master, settings)
        query_handler = QueryHandler(storage, self._servers, self._tsig_grants, settings.packed_zones_bytes,
                                     self._on_transfer_sent,
                                     NotifyReceiver(storage, pool.name, self._refresher.request),
                                     functools.partial(one_ahead, runtime.workers(storage.connections,
                                                                                  'minidns-ahead')),
                                     settings.require_tls)
        self._listener = Listener(settings.listen, query_handler, self._servers, settings.reuse_port,
                                  tcp_limits or TcpLimits(settings.tcp_connections), settings.listen_tls,
                                  tls_context)
        self._result_sender = ResultSender(pool_managers, lambda: self._servers.table.verified)
        self._client_loop = ClientLoop(_sources(settings.listen))
        self._soa_poller = SoaPoller(self._client_loop, self._result_sender.send,
                                     is_fetching=self._listener.is_fetching)
        self._soa_audit = SoaAudit(self._client_loop, pool_managers)
        self._config_reloader = ConfigReloader(pool.name, read_pool, self.set_pool)
        self._database_watch = DatabaseWatch(storage, pool.name, [
            self._tsig_grants.follow, self._refresher.follow, self._config_reloader.follow])

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where it answers; empty before :meth:`start`."""
        return self._listener.endpoints

    @property
    def tls_endpoints(self) -> tuple[Endpoint, ...]:
        """Where it answers over TLS."""
        return self._listener.tls_endpoints

    def start(self) -> None:
        """Bind the ports and start all parts.

        :raises OSError: when a port or address cannot be bound
        """
        self._listener.bind()
        self._client_loop.start(self._runtime)
        self._database_watch.start(self._runtime)
        self._host_addresses.start(self._runtime, self.set_pool)
        self._listener.start(self._runtime)
        self._refresher.start(self._runtime)

    def is_first_primary_of(self, servers: Sequence[Server]) -> bool:
        """Whether it is the first primary of most of *servers*, and so the one that many makes transfer from."""
        firsts = [server.primaries[0] for server in servers if server.primaries]
        return 2 * sum(map(self._is_own, firsts)) > len(firsts)

    def announce(self) -> None:
        """Tell the pool managers that it serves its topic: they repeat polls that a killed one had."""
        self._is_announced = True
        self._runtime.spawn(self._result_sender.repeat_polls, self._servers.table.pool_name, name='minidns-announce')

    def stop(self) -> None:
        """Answer the queries that have arrived, send the results of polls, and end.

        The pool managers repeat the polls in progress with another MiniDNS, or with this one when it is back.
        """
        self._database_watch.stop()
        self._host_addresses.stop()
        self._refresher.stop()
        self._listener.stop()
        self._client_loop.stop()
        if self._is_announced and self._soa_poller.has_polls:
            self._result_sender.repeat_polls(self._servers.table.pool_name)
        self._soa_audit.stop()

    def set_pool(self, pool: Pool | None = None) -> None:
        """Replace the pool's servers; without *pool*, look up the hosts of the present ones again.

        Servers that have not changed are not affected; polls of changed servers go on with the new settings; transfers
        that have begun are completed.

        :raises InvalidField: when it is another pool, whose servers are to have none of the zones that are served here,
            or a server's TSIG key is not valid; nothing is changed then
        """
        with self._pool_lock:
            pool = self._pool if pool is None else pool
            if pool.name != self._pool.name:
                raise InvalidField(field='[service:pool_manager] pool_name', why='it takes a restart to change it')
            new, former = make_server_table(pool, self._host_addresses), self._servers.table
            self._pool, self._servers.table = pool, new
            now = new.all_peers()
            changed = {key: now.get(key) for key, peer in former.all_peers().items() if now.get(key) != peer}
            if changed:
                self._client_loop.submit(self._soa_poller.replace_peers, changed)
        if new.peers != former.peers or new.catalog_zone != former.catalog_zone:
            LOG.info('the servers are now %s', ', '.join(peer.label for peer in new.peers.values()) or 'none')

    def notify_zone_changed(self, context: Context, domain: Domain, destination: str, timeout: float,
                            retry_interval: float, max_retries: int) -> None:
        """Send one server a NOTIFY.

        :param destination: ``ip``, ``ip:port`` or ``[ip]:port``
        :raises InvalidField: when it is none of these
        """
        self._start_one(context, domain, destination, RetrySchedule(timeout, retry_interval, max_retries), poll=False)

    def poll_for_serial_number(self, context: Context, domain: Domain, destination: str, timeout: float,
                               retry_interval: float, max_retries: int) -> None:
        """Poll one server until it serves the domain's serial; the result is cast as ``update_status``."""
        self._start_one(context, domain, destination, RetrySchedule(timeout, retry_interval, max_retries), poll=True)

    def notify_and_poll(self, context: Context, pool_name: str, requests: Sequence[PollRequest], timeout: float,
                        retry_interval: float, max_retries: int) -> None:
        """Notify and poll for many domains and servers; the results are cast as ``update_statuses``.

        :raises InvalidField: when the pool is not this MiniDNS's; so below
        """
        self._check_pool(pool_name)
        verified = self._servers.table.verified
        recipient = ToPool(pool_name, context)
        orders, unknown = [], []
        for request in requests:
            _check_name(request.name)
            peer = self._find_peer(request.server_id) if request.poll else self._also_notify_peer(request.server_id)
            if peer is not None:
                first, *others = verified.get(peer.id, (peer,))
                orders.append(PollOrder(first, recipient, request, notified=peer))
                orders += [PollOrder(other, recipient, dataclasses.replace(request, notify=False)) for other in others]
            elif request.poll:
                unknown.append((recipient, PollResult(
                    request.domain_id, request.server_id, Outcome.ERROR, Answer.BAD, None,
                    f'MiniDNS knows no server {request.server_id}; is its configuration the pool manager\'s?',
                    incarnation=request.incarnation)))
        self._result_sender.send(*unknown)
        self._client_loop.submit(self._soa_poller.start_polls, orders,
                                 RetrySchedule(timeout, retry_interval, max_retries))

    def audit_serials(self, context: Context, pool_name: str, started_at: datetime, server_ids: Sequence[str],
                      domains: Sequence[tuple[str, str, int]]) -> None:
        """Ask each server for each domain's serial; the results are cast as ``audited``.  Unknown servers are left out.

        :param domains: (id, name, wanted serial)
        """
        self._check_pool(pool_name)
        if any(len(item) != 3 or not 0 <= item[2] < SPACE for item in domains):
            raise InvalidField(field='domains', why='each is an id, a name and a serial')
        peers = [server for server_id in server_ids if (peer := self._find_peer(server_id)) is not None
                 for server in self._servers.table.verified.get(peer.id, (peer,))]
        self._client_loop.submit(self._soa_audit.start_page, AuditPage(context, pool_name, started_at, peers, domains))

    def look_for_changes(self, context: Context) -> None:
        """Look into the database now: TSIG keys, secondary zones or the pool have changed."""
        self._database_watch.wake()

    def _find_peer(self, server_id: str) -> AllowedPeer | None:
        """The server with this id; an unknown one triggers a reload: a pool manager may have a newer configuration."""
        if server_id not in self._servers.table.peers:
            self._config_reloader.reload_for_unknown()
        return self._servers.table.peers.get(server_id)

    def _also_notify_peer(self, text: str) -> AllowedPeer | None:
        """The peer of an ``also_notify`` endpoint, None when its key is unknown; InvalidField if it is none."""
        try:
            target = AlsoNotify.parse(text)
            key = None if target.key is None else self._key_named(dns.name.from_text(target.key))
        except (ValueError, dns.exception.DNSException) as error:
            raise InvalidField(field='server_id', why=str(error)) from None
        endpoint = target.endpoint
        if key is None and target.key is not None:
            self._missing_keys.failed(endpoint, target.key, key=text)
            return None
        self._missing_keys.ended(endpoint, key=text)
        return AllowedPeer(text, f'also:{endpoint}', (endpoint.host,), endpoint.port, key)

    def _key_named(self, name: dns.name.Name) -> dns.tsig.Key | None:
        servers, grant = self._servers.table.acl.peers_by_key.get(name), self._tsig_grants.grants.get(name)
        return servers[0] if servers else grant.key if grant else None

    def _key_of_zone(self, domain_id: str) -> dns.tsig.Key | None:
        """The key that signs the transfers of a secondary zone: the one that was given out for this zone."""
        return next((grant.key for grant in self._tsig_grants.grants.values() if grant.domain_id == domain_id), None)

    def _no_master(self, master: Endpoint) -> str | None:
        """Why this address cannot be a master: it is one of ours, in words; None if it can."""
        if str(master) in self._servers.table.by_destination:
            return 'it is a server of the pool, which has its zones from here'
        return 'it is this MiniDNS itself' if self._is_own(master) else None

    def _is_own(self, endpoint: Endpoint) -> bool:
        return any(endpoint.port == own.port and (
            endpoint.host == own.host or ipaddress.ip_address(own.host).is_unspecified and is_local(endpoint.host))
            for own in (*self.endpoints, *self.tls_endpoints))

    def _check_pool(self, pool_name: str) -> None:
        if pool_name != self._servers.table.pool_name:
            raise InvalidField(field='pool_name', why=f'this MiniDNS is of the pool {self._servers.table.pool_name}, '
                                                      f'not of {pool_name}')

    def _start_one(self, context: Context, domain: Domain, destination: str, schedule: RetrySchedule,
                   poll: bool) -> None:
        self._check_pool(domain.pool_name)
        _check_name(domain.name)
        peer = self._servers.table.find_peer(destination)
        request = PollRequest(domain.id, domain.name, domain.serial, peer.id, notify=not poll, poll=poll)
        self._client_loop.submit(self._soa_poller.start_polls,
                                 [PollOrder(peer, ToCaller(context, domain, destination), request)], schedule)

    def _on_transfer_sent(self, peers: tuple[AllowedPeer, ...], zone: PackedZone) -> None:
        """A transfer has been sent: poll whether its receiver serves it."""
        table = self._servers.table
        self._client_loop.submit(self._soa_poller.start_post_transfer_polls,
                                 [server for peer in peers for server in table.verified.get(peer.id, (peer,))],
                                 zone.domain_id, zone.name, zone.serial, table.pool_name,
                                 zone.client_serial if isinstance(zone, PackedDifference) else None)


def _check_name(name: str) -> None:
    try:
        wire.wire_of(name)
    except ValueError as error:
        raise InvalidField(field='name', why=str(error)) from None


def _sources(listen: Sequence[Endpoint]) -> dict[int, str]:
    """The address to send from, by family: a listening one, as servers accept a NOTIFY only from their primary."""
    sources: dict[int, str] = {}
    for endpoint in listen:
        if not ipaddress.ip_address(endpoint.host).is_unspecified:
            sources.setdefault(socket.AF_INET6 if ':' in endpoint.host else socket.AF_INET, endpoint.host)
    return sources
