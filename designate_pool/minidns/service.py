"""The service ``minidns``: serves the zones to the pool's servers, notifies and polls them, tells the pool managers."""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

import dns.exception
import dns.name

from designate_pool.concurrency import Runtime
from designate_pool.errors import InvalidField
from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.access.servers import roster
from designate_pool.minidns.access.tsig_grants import TsigGrants
from designate_pool.minidns.client.event_loop import ClientLoop
from designate_pool.minidns.client.poll_handover import hand_over_polls
from designate_pool.minidns.client.query import RetrySchedule
from designate_pool.minidns.client.result_sender import ResultSender
from designate_pool.minidns.client.soa_poller import PollOrder, SoaPoller, ToCaller, ToPool
from designate_pool.minidns.config_watch import ConfigWatcher
from designate_pool.minidns.server.listener import Listener
from designate_pool.minidns.server.query_handler import QueryHandler
from designate_pool.minidns.soa_sweep.service import SweepService
from designate_pool.minidns.zones.packing import PackedZone, StreamedZone
from designate_pool.model import AlsoNotify, Answer, Context, Domain, Endpoint, Outcome, PollRequest, PollResult, Pool
from designate_pool.protocol import wire
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.serial import SPACE
from designate_pool.storage.sql.database import Storage

LOG = logging.getLogger(__name__)


class MiniDns:
    """MiniDNS, and the endpoint of its topic.

    :param pool: with its servers
    :param listen: where to answer, UDP and TCP both; port 0 takes any free one, and ``endpoints`` tells which
    :param tcp_connections: how many are served at the same time
    :param packed_zones_bytes: memory for zones in wire form
    :param read_pool: reads the configuration anew, when a pool manager has; without it, only :meth:`set_pool` changes
        anything
    :param reuse_port: whether other processes may answer there too
    :param others: the pool's other MiniDNS, which go on with what is under way at the end
    :raises InvalidField: when a server's TSIG key is not valid
    """

    def __init__(self, storage: Storage, pool: Pool, listen: Sequence[Endpoint], pool_managers: PoolManagerClient,
                 runtime: Runtime, tcp_connections: int = 500, packed_zones_bytes: int = 256 << 20,
                 read_pool: Callable[[], Pool] | None = None, reuse_port: bool = False,
                 others: MiniDnsClient | None = None) -> None:
        self._others = others
        self._keyless: set[str] = set()
        self._runtime = runtime
        self._roster = roster(pool)
        self._changing = threading.Lock()
        self._keyring = TsigGrants(storage)
        answering = QueryHandler(storage, lambda: self._roster, packed_zones_bytes, lambda: self._keyring.visitors,
                                 self._served)
        self._server = Listener(listen, answering, self._served, tcp_connections,
                                lambda address: self._roster.at_address.get(address, 0), reuse_port)
        self._reports = ResultSender(pool_managers)
        self._loop = ClientLoop(_sources(listen))
        self._poller = SoaPoller(self._loop, self._reports.put)
        self._surveying = SweepService(pool_managers, _sources(listen))
        self._following = None if read_pool is None else ConfigWatcher(storage, pool.name, read_pool, self.set_pool)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where it answers; empty before :meth:`start`."""
        return self._server.endpoints

    def start(self) -> None:
        """Take the ports and begin.

        :raises OSError: when a port or address cannot be had
        """
        self._server.bind()
        self._loop.open(self._runtime)
        self._keyring.start(self._runtime)
        self._reports.start(self._runtime)
        self._loop.start()
        self._surveying.start(self._runtime)
        self._server.start(self._runtime)
        if self._following is not None:
            self._following.start(self._runtime)

    def stop(self) -> None:
        """Answer what was asked, tell what is known, hand on what is under way, and end."""
        if self._following is not None:
            self._following.stop()
        self._keyring.stop()
        self._server.stop()
        self._loop.stop()
        if self._others is not None:
            hand_over_polls(self._poller.polls_in_progress(), self._poller.notifies_in_progress(), self._others)
        self._surveying.stop(self._others)
        self._reports.stop()

    def set_pool(self, pool: Pool) -> None:
        """Serve, notify and poll the servers of *pool* from now on, and those that it has no longer no more.

        What goes on with servers that stay as they are is not disturbed; polls of changed ones go on where these are
        now; transfers that have begun are sent to their end.

        :raises InvalidField: when a server's TSIG key is not valid; nothing has changed then
        """
        with self._changing:
            new, former = roster(pool), self._roster
            self._roster = new
            changed = {key: new.peers.get(key) for key, peer in former.peers.items() if new.peers.get(key) != peer}
            if changed:
                self._poller.replace_peers(changed)
        if new.peers != former.peers or new.catalog_zone != former.catalog_zone:
            LOG.info('the servers are now %s', ', '.join(peer.label for peer in new.peers.values()) or 'none')

    def notify_zone_changed(self, context: Context, domain: Domain, destination: str, timeout: float,
                            retry_interval: float, max_retries: int) -> None:
        """Send one server a NOTIFY.

        :param destination: ``ip``, ``ip:port`` or ``[ip]:port``
        :raises InvalidField: when it is none of these
        """
        self._ask_one(context, domain, destination, RetrySchedule(timeout, retry_interval, max_retries), poll=False)

    def poll_for_serial_number(self, context: Context, domain: Domain, destination: str, timeout: float,
                               retry_interval: float, max_retries: int) -> None:
        """Poll one server until it serves the domain's serial; told by ``update_status``.

        :param destination: as for :meth:`notify_zone_changed`
        """
        self._ask_one(context, domain, destination, RetrySchedule(timeout, retry_interval, max_retries), poll=True)

    def notify_and_poll(self, context: Context, pool_name: str, requests: Sequence[PollRequest], timeout: float,
                        retry_interval: float, max_retries: int) -> None:
        """Notify and poll for many domains and servers; told by ``update_statuses``.

        :raises InvalidField: when it is another pool's; so below
        """
        self._check_pool(pool_name)
        recipient = ToPool(pool_name, context)
        known = []
        for request in requests:
            _check_name(request.name)
            peer = self._known(request.server_id) if request.poll else self._also(request.server_id)
            if peer is None and not request.poll:
                continue
            if peer is None:
                self._reports.put((recipient, PollResult(
                    request.domain_id, request.server_id, Outcome.ERROR, Answer.BAD, None,
                    f'MiniDNS knows no server {request.server_id}; is its configuration the pool manager\'s?',
                    incarnation=request.incarnation)))
            else:
                known.append(PollOrder(peer, request.domain_id, request.name, request.serial, recipient, request.notify,
                                       request.poll, request.delay, request.seen, request.incarnation))
        self._poller.start_polls(known, RetrySchedule(timeout, retry_interval, max_retries))

    def audit_serials(self, context: Context, pool_name: str, started_at: datetime, server_ids: Sequence[str],
                      domains: Sequence[tuple[str, str, int]]) -> None:
        """Ask each server for each domain once; told by ``audited``.  Of a server that is not known nothing is told.

        :param domains: (id, name, wanted serial)
        """
        self._check_pool(pool_name)
        if any(len(each) != 3 or not 0 <= each[2] < SPACE for each in domains):
            raise InvalidField(field='domains', why='each is an id, a name and a serial')
        peers = [peer for server_id in server_ids if (peer := self._known(server_id)) is not None]
        self._surveying.ask(context, pool_name, started_at, peers, domains)

    def _known(self, server_id: str) -> AllowedPeer | None:
        """The server with this id; a pool manager may know of one before we do."""
        if server_id not in self._roster.peers and self._following is not None:
            self._following.look_for(server_id)
        return self._roster.peers.get(server_id)

    def _also(self, text: str) -> AllowedPeer | None:
        """Where a NOTIFY goes that is for no server of the pool; None when its key is not known.

        :raises InvalidField: when *text* is no such place
        """
        try:
            wanted = AlsoNotify.parse(text)
            name = None if wanted.key is None else dns.name.from_text(wanted.key)
        except (ValueError, dns.exception.DNSException) as error:
            raise InvalidField(field='server_id', why=str(error)) from None
        key = None
        if name is not None:
            ours, given = self._roster.guests.by_key.get(name), self._keyring.visitors.get(name)
            if ours is None and given is None:
                level = logging.DEBUG if text in self._keyless else logging.WARNING
                LOG.log(level, '%s is not notified: there is no TSIG key %s', wanted.endpoint, wanted.key)
                self._keyless.add(text)
                return None
            key = ours[0] if ours is not None else given.key if given is not None else None
        self._keyless.discard(text)
        endpoint = wanted.endpoint
        return AllowedPeer(text, f'also:{endpoint}', (endpoint.host,), endpoint.port, key)

    def _check_pool(self, pool_name: str) -> None:
        if pool_name != self._roster.pool_name:
            raise InvalidField(field='pool_name', why=f'this MiniDNS is of the pool {self._roster.pool_name}, not of '
                                                      f'{pool_name}')

    def _ask_one(self, context: Context, domain: Domain, destination: str, schedule: RetrySchedule, poll: bool) -> None:
        self._check_pool(domain.pool_name)
        _check_name(domain.name)
        request = PollOrder(self._roster.find(destination), domain.id, domain.name, domain.serial,
                            ToCaller(context, domain, destination), notify=not poll, poll=poll)
        self._poller.start_polls([request], schedule)

    def _served(self, peers: tuple[AllowedPeer, ...], zone: PackedZone | StreamedZone) -> None:
        """A transfer has been sent: see whether its receiver serves it."""
        self._poller.start_post_transfer_polls(peers, zone.domain_id, zone.name, zone.serial, zone.pool_name)


def _check_name(name: str) -> None:
    try:
        wire.wire_of(name)
    except ValueError as error:
        raise InvalidField(field='name', why=str(error)) from None


def _sources(listen: Sequence[Endpoint]) -> dict[int, str]:
    """The address to send from, by family: one that is listened on, as servers take a NOTIFY from their primary."""
    sources: dict[int, str] = {}
    for endpoint in listen:
        if not ipaddress.ip_address(endpoint.host).is_unspecified:
            sources.setdefault(socket.AF_INET6 if ':' in endpoint.host else socket.AF_INET, endpoint.host)
    return sources
