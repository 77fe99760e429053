"""The listening sockets: UDP and TCP, IPv4 and IPv6, any number of endpoints.

A UDP loop reads all queries that have arrived and answers them with one database statement, so that the cost of a query
falls as the load rises.

Over TCP (RFC 7766) queries are answered in order.  The number of connections is limited: in total, for one address, and
for all strangers together.  A stranger is a connection that comes from no server's address and has not used a server's
key; the limit keeps places for servers.  For a connection beyond a limit the longest idle one is closed; without an
idle one the new connection is.  A connection that is idle for long, or sends or receives slowly, is closed.

Over TLS (RFC 9103) the same holds; the handshake is made in the connection's own thread.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import logging
import selectors
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from designate_pool import metrics
from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.deadline import Deadline
from designate_pool.logs import RateLimitedLog
from designate_pool.minidns.client.sockets import Address, bound_socket, udp_socket
from designate_pool.minidns.server import responder
from designate_pool.minidns.server.query_handler import QueryHandler, count
from designate_pool.minidns.server.responder import Query, Transfer
from designate_pool.minidns.servers import PoolServers
from designate_pool.model import Endpoint
from designate_pool.protocol import tls

LOG = logging.getLogger(__name__)

#: Queries of one connection that are answered in one turn.
_QUERIES_PER_TURN = 100
_CHUNK = 65536


@dataclasses.dataclass(frozen=True, slots=True)
class TcpLimits:
    """Times are seconds.

    :ivar connections: served at the same time
    :ivar idle: without a query
    :ivar query: for a query to arrive completely
    :ivar send: for the client to accept a message
    :ivar stranger_send: the same for a stranger: its small replies fit the socket's buffer unless it does not read
    :ivar first_query: for a query to arrive; a connection is not closed before for another one of its address
    :ivar handshake: of TLS
    """

    connections: int = 500
    idle: float = 30.0
    query: float = 10.0
    send: float = 30.0
    stranger_send: float = 1.0
    first_query: float = 1.0
    handshake: float = 5.0


@dataclasses.dataclass(eq=False)
class ClientConnection:
    """One client.

    :ivar is_stranger: whether it comes from no server's address, and has not used a server's key
    :ivar over_tls: whether it begins with a handshake
    :ivar idle_since: since when it has been waiting for a query; None while one is answered
    """

    sock: socket.socket | tls.TlsStream
    address: str
    is_stranger: bool
    limits: TcpLimits
    over_tls: bool = False
    idle_since: float | None = dataclasses.field(default_factory=time.monotonic)
    _buffer: bytearray = dataclasses.field(default_factory=bytearray)

    def secure(self, context: ssl.SSLContext) -> None:
        """Begin TLS.

        :raises OSError: when the client does not, or cannot agree
        """
        assert isinstance(self.sock, socket.socket)
        stream = tls.TlsStream(self.sock, context, is_server=True)
        stream.handshake(Deadline(self.limits.handshake))
        self.sock = stream

    def read_queries(self) -> list[bytes]:
        """Wait for queries; at least one, or none when the client has closed the connection.

        :raises OSError: when it takes too long
        """
        self.idle_since = time.monotonic()
        deadline = self.idle_since + (self.limits.query if self._buffer else self.limits.idle)
        while True:
            messages: list[bytes] = []
            offset = 0
            while len(self._buffer) >= offset + 2 and len(messages) < _QUERIES_PER_TURN:
                end = offset + 2 + int.from_bytes(self._buffer[offset:offset + 2], 'big')
                if len(self._buffer) < end:
                    break
                messages.append(bytes(self._buffer[offset + 2:end]))
                offset = end
            del self._buffer[:offset]
            if messages:
                self.idle_since = None
                return messages
            self.sock.settimeout(max(0.01, deadline - time.monotonic()))
            was_empty = not self._buffer
            chunk = self.sock.recv(_CHUNK)
            if not chunk:
                return []
            self._buffer += chunk
            if was_empty:
                deadline = time.monotonic() + self.limits.query

    def send(self, message: bytes, timeout: float | None = None) -> None:
        """Send a message.

        :param timeout: seconds, None for ``TcpLimits.send``
        :raises OSError: when the client does not take it in time
        """
        deadline = time.monotonic() + (self.limits.send if timeout is None else timeout)
        unsent = memoryview(len(message).to_bytes(2, 'big') + message)
        while unsent:
            self.sock.settimeout(max(0.01, deadline - time.monotonic()))
            unsent = unsent[self.sock.send(unsent):]

    def shut_down(self, how: int = socket.SHUT_RDWR) -> None:
        """Shut the socket down, which wakes whoever waits for it; no error if the client has closed it."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(how)


class TcpServer:
    """All TCP connections.

    An address may have half of the connections for each of its servers; an address of no server a quarter; all
    strangers together half.

    :param context: of TLS, as it is now
    """

    def __init__(self, query_handler: QueryHandler, servers: PoolServers, limits: TcpLimits,
                 context: Callable[[], ssl.SSLContext] | None = None) -> None:
        self._query_handler = query_handler
        self._limits = limits
        self._context = context
        self._failed_handshakes = RateLimitedLog()
        #: Queries whose transfers are being made or sent; replaced as a whole, so that any thread may read it.
        self._transfers: tuple[Query, ...] = ()
        self._servers = servers
        self._open: set[ClientConnection] = set()
        self._changed = threading.Condition()
        self._listeners: list[socket.socket] = []
        self._tasks: list[LoopTask] = []
        self._runtime: Runtime | None = None
        self._stopping = False

    def start(self, runtime: Runtime, listeners: Sequence[socket.socket],
              tls_listeners: Sequence[socket.socket] = ()) -> None:
        """Accept connections on bound sockets; those to *tls_listeners* begin with a handshake."""
        self._runtime = runtime
        self._listeners = [*listeners, *tls_listeners]
        for sock in self._listeners:
            self._tasks.append(runtime.spawn(self._accept_loop, sock, sock in tls_listeners, name='minidns-accept'))

    def stop(self, grace: float = 5.0) -> None:
        """Stop accepting, answer the queries that have arrived, and close."""
        self._stopping = True
        for sock in self._listeners:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes accept, which closing alone would not
        with self._changed:
            self._changed.notify_all()
            for connection in self._open:
                connection.shut_down(socket.SHUT_RD)
        for task in self._tasks:
            task.join(grace)
        for sock in self._listeners:
            sock.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._open, grace)
            for connection in self._open:
                connection.shut_down()

    def is_fetching(self, server_id: str, name: str) -> bool:
        """Whether zone *name* is being transferred to this server, or one that shares its address; from any thread."""
        return any(query.name == name and any(peer.id == server_id for peer in query.peers)
                   for query in self._transfers)

    def _accept_loop(self, listener: socket.socket, over_tls: bool) -> None:
        assert self._runtime is not None
        while True:
            try:
                sock, address = listener.accept()
                # Else the last message of a transfer, and a client's first query over TLS, wait for its delayed ACK.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                if self._stopping:
                    return
                LOG.warning('a connection could not be accepted: %s', error)
                with self._changed:
                    self._changed.wait(0.1)  # out of file descriptors, say: others must be closed first
                continue
            is_stranger = address[0] not in self._servers.table.acl.peers_by_address
            self._admit(ClientConnection(sock, address[0], is_stranger, self._limits, over_tls))
            time.sleep(0)  # let other green threads run, even while connections keep coming; so below

    def _admit(self, connection: ClientConnection) -> None:
        """Serve *connection*, in place of idle ones where it is beyond a limit; close it when there are none."""
        assert self._runtime is not None
        half, quarter = max(1, self._limits.connections // 2), max(1, self._limits.connections // 4)
        server_count = len(self._servers.table.acl.peers_by_address.get(connection.address, ()))
        with self._changed:
            has_place = not self._stopping and all(
                len(others := [other for other in self._open if is_meant(other)]) < limit
                or self._close_longest_idle(others, min_idle)
                for is_meant, limit, min_idle in (
                    (lambda other: other.address == connection.address, half * server_count or quarter,
                     self._limits.first_query),
                    (lambda other: connection.is_stranger and other.is_stranger, half, 0.0),
                    (lambda other: True, self._limits.connections, 0.0)))
            if has_place:
                self._open.add(connection)
                self._runtime.spawn(self._serve, connection, name='minidns-tcp')
            else:
                connection.sock.close()

    def _close_longest_idle(self, connections: Iterable[ClientConnection], min_idle: float) -> bool:
        idle_before = time.monotonic() - min_idle
        idle = [connection for connection in connections
                if connection.idle_since is not None and connection.idle_since <= idle_before]
        if idle:
            longest = min(idle, key=lambda connection: connection.idle_since or 0.0)
            longest.shut_down()
            self._open.discard(longest)
        return bool(idle)

    def _serve(self, connection: ClientConnection) -> None:
        try:
            with contextlib.suppress(OSError):  # clients come and go, fast and slow
                if connection.over_tls:
                    self._secure(connection)
                while queries := connection.read_queries():
                    parsed = self._query_handler.parse([(item, connection.address) for item in queries], True,
                                                       connection.over_tls)
                    if any(isinstance(item, Query) and item.peers for item in parsed):
                        connection.is_stranger = False
                    for answer in self._query_handler.answer(parsed):
                        if isinstance(answer, Transfer):
                            self._send_transfer(connection, answer)
                        elif answer is not None:
                            connection.send(answer, self._limits.stranger_send if connection.is_stranger else None)
                    time.sleep(0)
        except Exception:  # of one connection; the others go on
            LOG.exception('a connection from %s was closed after an error', connection.address)
        finally:
            connection.sock.close()
            with self._changed:
                self._open.discard(connection)
                self._changed.notify_all()

    def _secure(self, connection: ClientConnection) -> None:
        assert self._context is not None
        try:
            connection.secure(self._context())
        except OSError as error:
            if self._stopping:
                raise
            metrics.REFUSED.labels('tls').inc()
            more = self._failed_handshakes.admit('tls', (connection.address, ''))
            if more is not None:
                LOG.warning('no TLS with %s: %s%s', connection.address, tls.failure(error), more)
            raise

    def _send_transfer(self, connection: ClientConnection, transfer: Transfer) -> None:
        query, started = transfer.query, time.monotonic()
        with self._changed:
            self._transfers = (*self._transfers, query)
        try:
            zone = self._query_handler.load_transfer(transfer)
            if not isinstance(zone, bytes):
                for message in responder.messages(query, zone, time.time):
                    connection.send(message)
        except OSError:
            count(query, 'aborted')
            raise
        except Exception as error:  # without the final SOA the client drops the transfer
            count(query, 'failed')
            LOG.error('the transfer of zone %s to %s broke off: %s', query.name, connection.address, error)
            raise ConnectionAbortedError from error
        finally:
            with self._changed:
                self._transfers = tuple(other for other in self._transfers if other is not query)
        if isinstance(zone, bytes):
            count(query, 'failed')
            connection.send(zone)
        else:
            self._query_handler.transferred(query, zone, time.monotonic() - started)


_BATCH = 256
_BACKLOG = 1024
_PORT_TRIES = 20
_IPV6_PKTINFO = getattr(socket, 'IPV6_PKTINFO', 50)
_IP_PKTINFO = 8
_PACKET_INFO = struct.Struct('=I4s4s')

Ancillary = list[tuple[int, int, bytes]]


class Listener:
    """Answers queries on *endpoints*, and on *tls_endpoints* over TLS.

    :param reuse_port: whether other processes may bind the same ports
    :param context: as for :class:`TcpServer`
    """

    def __init__(self, endpoints: Sequence[Endpoint], query_handler: QueryHandler, servers: PoolServers,
                 reuse_port: bool, tcp_limits: TcpLimits, tls_endpoints: Sequence[Endpoint] = (),
                 context: Callable[[], ssl.SSLContext] | None = None) -> None:
        self._requested_endpoints, self._requested_tls = tuple(endpoints), tuple(tls_endpoints)
        self._reuse_port = reuse_port
        self._query_handler = query_handler
        self._tcp_server = TcpServer(query_handler, servers, tcp_limits, context)
        self.is_fetching = self._tcp_server.is_fetching
        self._udp: list[UdpServer] = []
        self._tcp: list[socket.socket] = []
        self._tls: list[socket.socket] = []
        self.endpoints: tuple[Endpoint, ...] = ()
        self.tls_endpoints: tuple[Endpoint, ...] = ()

    def bind(self) -> None:
        """Bind the ports; ``endpoints`` and ``tls_endpoints`` then have the actual ones in place of port 0.

        :raises OSError: when one cannot be bound
        """
        try:
            self.endpoints = tuple(self._bind(endpoint) for endpoint in self._requested_endpoints)
            self.tls_endpoints = tuple(self._bind_tls(endpoint) for endpoint in self._requested_tls)
        except OSError:
            self._close()
            raise

    def start(self, runtime: Runtime) -> None:
        """Answer queries at the bound ports; call :meth:`bind` first."""
        self._tcp_server.start(runtime, self._tcp, self._tls)
        for udp_server in self._udp:
            udp_server.start(runtime)

    def stop(self) -> None:
        """Answer the queries that have arrived, and close the ports."""
        for udp_server in self._udp:
            udp_server.stop()
        self._tcp_server.stop()
        self._close()

    def _bind_tls(self, endpoint: Endpoint) -> Endpoint:
        sock = bound_socket(_family(endpoint), socket.SOCK_STREAM, endpoint.host, endpoint.port, self._reuse_port)
        self._tls.append(sock)
        sock.listen(_BACKLOG)
        return Endpoint(endpoint.host, int(sock.getsockname()[1]))

    def _bind(self, endpoint: Endpoint) -> Endpoint:
        family = _family(endpoint)
        for tries_left in range(_PORT_TRIES if endpoint.port == 0 else 1, 0, -1):
            tcp_socket = bound_socket(family, socket.SOCK_STREAM, endpoint.host, endpoint.port, self._reuse_port)
            port = int(tcp_socket.getsockname()[1])
            try:
                tcp_socket.listen(_BACKLOG)
                sock = udp_socket(family, endpoint.host, port, reuse_port=self._reuse_port)
            except OSError:
                tcp_socket.close()
                if tries_left == 1:
                    raise
                continue  # any port will do: try another that is free for both UDP and TCP
            break
        self._tcp.append(tcp_socket)
        self._udp.append(UdpServer(sock, self._query_handler))
        return Endpoint(endpoint.host, port)

    def _close(self) -> None:
        for sock in (*self._tcp, *self._tls):
            sock.close()
        for udp_server in self._udp:
            udp_server.close()


def _family(endpoint: Endpoint) -> socket.AddressFamily:
    return socket.AF_INET6 if ':' in endpoint.host else socket.AF_INET


class UdpServer:
    """Queries and answers over one UDP socket."""

    def __init__(self, sock: socket.socket, query_handler: QueryHandler) -> None:
        self._sock = sock
        self._query_handler = query_handler
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ)
        self._stopping = False
        self._task: LoopTask | None = None
        # On a wildcard address, the reply must leave from the local address that the query came to.
        if ipaddress.ip_address(sock.getsockname()[0]).is_unspecified:
            if sock.family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
            else:
                sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)

    def start(self, runtime: Runtime) -> None:
        """Start the loop that answers queries."""
        self._task = runtime.spawn(self._run, name='minidns-udp')

    def stop(self) -> None:
        """End the loop; wait at most ten seconds for answers in progress."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RD)  # wakes the loop, although the socket is not connected
        if self._task is not None:
            self._task.join(10)

    def close(self) -> None:
        """Close the socket, after :meth:`stop`."""
        self._selector.close()
        self._sock.close()

    def _run(self) -> None:
        while not self._stopping:
            self._selector.select()
            try:
                while batch := self._receive():
                    queries = self._query_handler.parse([(message, address[0]) for message, address, _ in batch],
                                                        over_tcp=False)
                    for answer, (_, address, ancillary) in zip(self._query_handler.answer(queries), batch):
                        if isinstance(answer, bytes) and address[1]:
                            with contextlib.suppress(OSError):  # a full buffer or a lost route: it is asked again
                                self._sock.sendmsg([answer], ancillary and _from_same_address(ancillary), 0, address)
                    time.sleep(0)  # let other green threads run, even while queries keep coming
            except Exception:  # of one batch; go on with the next
                LOG.exception('queries could not be answered because of an error')

    def _receive(self) -> list[tuple[bytes, Address, Ancillary]]:
        """The queries that have arrived, at most as many as one statement should have."""
        batch: list[tuple[bytes, Address, Ancillary]] = []
        with contextlib.suppress(BlockingIOError):
            while len(batch) < _BATCH:
                message, ancillary, _, address = self._sock.recvmsg(65535, 128)
                batch.append((message, address, ancillary))
        return batch


def _from_same_address(ancillary: Ancillary) -> Ancillary:
    """Ancillary data that makes the reply leave from the local address that the query came to."""
    result = []
    for level, kind, data in ancillary:
        if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
            _, local, _ = _PACKET_INFO.unpack(data)
            result.append((level, kind, _PACKET_INFO.pack(0, local, bytes(4))))
        elif (level, kind) == (socket.IPPROTO_IPV6, _IPV6_PKTINFO):
            result.append((level, kind, data))
    return result
