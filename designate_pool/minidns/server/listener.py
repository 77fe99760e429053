"""The listening sockets: UDP and TCP, IPv4 and IPv6, any number of endpoints.

A UDP loop reads all queries that have arrived and answers them with one database statement, so that the cost of a query
falls as the load rises.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
import struct
import time
from collections.abc import Callable, Sequence

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.minidns.client.sockets import Address, SocketSelector, bound_socket, udp_socket
from designate_pool.minidns.server.query_handler import QueryHandler
from designate_pool.minidns.server.tcp import OnTransferSent, TcpLimits, TcpServer
from designate_pool.minidns.server.transfers_in_progress import TransfersInProgress
from designate_pool.model import Endpoint

LOG = logging.getLogger(__name__)

_BATCH = 256
_BACKLOG = 1024
_PORT_TRIES = 20
_IPV6_PKTINFO = getattr(socket, 'IPV6_PKTINFO', 50)
_IP_PKTINFO = 8
_PACKET_INFO = struct.Struct('=I4s4s')

Ancillary = list[tuple[int, int, bytes]]


class Listener:
    """Answers queries on *endpoints*.

    :param on_sent: called with each transfer that was sent completely
    :param transfers: where transfers over TCP are kept while they are made and sent
    :param server_count: gives the number of servers that have an address
    :param reuse_port: whether other processes may bind the same ports
    """

    def __init__(self, endpoints: Sequence[Endpoint], query_handler: QueryHandler, on_sent: OnTransferSent,
                 transfers: TransfersInProgress, server_count: Callable[[str], int], reuse_port: bool,
                 tcp_limits: TcpLimits) -> None:
        self._requested_endpoints = tuple(endpoints)
        self._reuse_port = reuse_port
        self._query_handler = query_handler
        self._tcp_server = TcpServer(query_handler, on_sent, transfers, server_count, tcp_limits)
        self._udp: list[UdpServer] = []
        self._tcp: list[socket.socket] = []
        self.endpoints: tuple[Endpoint, ...] = ()

    def bind(self) -> None:
        """Bind the ports; ``endpoints`` then has the actual ones in place of port 0.

        :raises OSError: when one cannot be bound
        """
        try:
            self.endpoints = tuple(self._bind(endpoint) for endpoint in self._requested_endpoints)
        except OSError:
            self._close()
            raise

    def start(self, runtime: Runtime) -> None:
        self._tcp_server.start(runtime, self._tcp)
        for udp_server in self._udp:
            udp_server.start(runtime)

    def stop(self) -> None:
        for udp_server in self._udp:
            udp_server.stop()
        self._tcp_server.stop()
        self._close()

    def _bind(self, endpoint: Endpoint) -> Endpoint:
        family = socket.AF_INET6 if ':' in endpoint.host else socket.AF_INET
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
        for sock in self._tcp:
            sock.close()
        for udp_server in self._udp:
            udp_server.close()


class UdpServer:
    """Queries and answers over one UDP socket."""

    def __init__(self, sock: socket.socket, query_handler: QueryHandler) -> None:
        self._sock = sock
        self._query_handler = query_handler
        self._selector = SocketSelector([sock])
        self._stopping = False
        self._task: LoopTask | None = None
        # On a wildcard address, the reply must leave from the local address that the query came to.
        if ipaddress.ip_address(sock.getsockname()[0]).is_unspecified:
            if sock.family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
            else:
                sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)

    def start(self, runtime: Runtime) -> None:
        self._task = runtime.spawn(self._run, name='minidns-udp')

    def stop(self) -> None:
        self._stopping = True
        self._selector.wake()
        if self._task is not None:
            self._task.join(10)

    def close(self) -> None:
        self._selector.close()
        self._sock.close()

    def _run(self) -> None:
        while not self._stopping:
            self._selector.wait(None)
            try:
                while batch := self._receive():
                    self._answer_batch(batch)
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

    def _answer_batch(self, batch: list[tuple[bytes, Address, Ancillary]]) -> None:
        messages = [(message, address[0]) for message, address, _ in batch]
        for answer, (_, address, ancillary) in zip(self._query_handler.handle(messages, over_tcp=False), batch):
            if isinstance(answer, bytes) and address[1]:
                with contextlib.suppress(OSError):  # a full buffer or a lost route: the querier asks again
                    self._sock.sendmsg([answer], _from_same_address(ancillary), 0, address)


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
