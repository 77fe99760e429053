"""The sockets: UDP and TCP, IPv4 and IPv6, any number of endpoints.

A UDP loop takes all that is waiting and answers it with one look into the database; so it gets faster in queries, not
slower, the more of them come.
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
from designate_pool.minidns.client.sockets import Address, SocketSelector, udp_socket
from designate_pool.minidns.server.query_handler import QueryHandler
from designate_pool.minidns.server.tcp import Served, TcpServer, listen
from designate_pool.model import Endpoint

LOG = logging.getLogger(__name__)

_BATCH = 256
_PORT_TRIES = 20
_IPV6_PKTINFO = getattr(socket, 'IPV6_PKTINFO', 50)
_IP_PKTINFO = 8
_PACKET_INFO = struct.Struct('=I4s4s')

Ancillary = list[tuple[int, int, bytes]]


class Listener:
    """Answers on *endpoints*.

    :param served: told of each transfer that has been sent whole
    :param servers: tells how many servers an address stands for
    :param reuse_port: whether other processes may answer there too
    """

    def __init__(self, endpoints: Sequence[Endpoint], answering: QueryHandler, served: Served, tcp_connections: int,
                 servers: Callable[[str], int], reuse_port: bool = False) -> None:
        self._wanted = tuple(endpoints)
        self._reuse_port = reuse_port
        self._answering = answering
        self._connections = TcpServer(answering, served, tcp_connections, servers)
        self._udp: list[UdpServer] = []
        self._tcp: list[socket.socket] = []
        self.endpoints: tuple[Endpoint, ...] = ()

    def bind(self) -> None:
        """Take the ports; ``endpoints`` are then those that were had, where port 0 was wanted.

        :raises OSError: when one cannot be had
        """
        try:
            self.endpoints = tuple(self._bind(endpoint) for endpoint in self._wanted)
        except OSError:
            self._close()
            raise

    def start(self, runtime: Runtime) -> None:
        self._connections.start(runtime, self._tcp)
        for datagrams in self._udp:
            datagrams.start(runtime)

    def stop(self) -> None:
        for datagrams in self._udp:
            datagrams.stop()
        self._connections.stop()
        self._close()

    def _bind(self, endpoint: Endpoint) -> Endpoint:
        family = socket.AF_INET6 if ':' in endpoint.host else socket.AF_INET
        for tries_left in range(_PORT_TRIES if endpoint.port == 0 else 1, 0, -1):
            stream = listen(family, endpoint.host, endpoint.port, self._reuse_port)
            port = int(stream.getsockname()[1])
            try:
                datagrams = udp_socket(family, endpoint.host, port, reuse_port=self._reuse_port)
            except OSError:
                stream.close()
                if tries_left == 1:
                    raise
                continue  # any port will do, so take one that is free for both
            self._tcp.append(stream)
            self._udp.append(UdpServer(datagrams, self._answering))
            return Endpoint(endpoint.host, port)
        raise AssertionError('unreachable')

    def _close(self) -> None:
        for sock in self._tcp:
            sock.close()
        for datagrams in self._udp:
            datagrams.close()


class UdpServer:
    """Queries and answers over one UDP socket."""

    def __init__(self, sock: socket.socket, answering: QueryHandler) -> None:
        self._sock = sock
        self._answering = answering
        self._waiting = SocketSelector([sock])
        self._stopping = False
        self._task: LoopTask | None = None
        # Where any local address is listened on, an answer must leave from the one that the query came to.
        if ipaddress.ip_address(sock.getsockname()[0]).is_unspecified:
            if sock.family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
            else:
                sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)

    def start(self, runtime: Runtime) -> None:
        self._task = runtime.spawn(self._loop, name='minidns-udp')

    def stop(self) -> None:
        self._stopping = True
        self._waiting.wake()
        if self._task is not None:
            self._task.join(10)

    def close(self) -> None:
        self._waiting.close()
        self._sock.close()

    def _loop(self) -> None:
        while not self._stopping:
            self._waiting.wait(None)
            try:
                while batch := self._receive():
                    self._answer(batch)
                    time.sleep(0)  # a green thread to which somebody sends all the time would go on for ever
            except Exception:  # of one batch; the next has its own chance
                LOG.exception('queries could not be answered because of an error')

    def _receive(self) -> list[tuple[bytes, Address, Ancillary]]:
        """What is waiting, but not more than is good for one statement."""
        batch: list[tuple[bytes, Address, Ancillary]] = []
        with contextlib.suppress(BlockingIOError):
            while len(batch) < _BATCH:
                message, ancillary, _, address = self._sock.recvmsg(65535, 128)
                batch.append((message, address, ancillary))
        return batch

    def _answer(self, batch: list[tuple[bytes, Address, Ancillary]]) -> None:
        messages = [(message, address[0]) for message, address, _ in batch]
        for answer, (_, address, ancillary) in zip(self._answering.answers(messages, over_tcp=False), batch):
            if isinstance(answer, bytes) and address[1]:
                with contextlib.suppress(OSError):  # a full buffer or a lost route: the querier asks again
                    self._sock.sendmsg([answer], _from_same_address(ancillary), 0, address)


def _from_same_address(ancillary: Ancillary) -> Ancillary:
    """What makes the answer leave from the address that the query came to."""
    result = []
    for level, kind, data in ancillary:
        if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
            _, local, _ = _PACKET_INFO.unpack(data)
            result.append((level, kind, _PACKET_INFO.pack(0, local, bytes(4))))
        elif (level, kind) == (socket.IPPROTO_IPV6, _IPV6_PKTINFO):
            result.append((level, kind, data))
    return result
