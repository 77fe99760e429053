"""DNS over UDP and TCP on one endpoint, a thread for UDP and one for each TCP connection."""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable

from designate_pool.model import Endpoint
from designate_pool.nameserver.responder import Response

LOG = logging.getLogger(__name__)
TCP_TIMEOUT = 15.0
MAX_CONNECTIONS = 200


class TcpListener:
    """Accepts TCP connections and serves each on a thread of its own."""

    def __init__(self, name: str, serve: Callable[[socket.socket, str], None]) -> None:
        self._name = name
        self._serve = serve
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._socket: socket.socket | None = None

    def bind(self, endpoint: Endpoint) -> Endpoint:
        """Listen; the endpoint with its actual port."""
        self._socket = _bound_socket(endpoint, socket.SOCK_STREAM)
        self._socket.listen(128)
        return Endpoint(endpoint.host, self._socket.getsockname()[1])

    def start(self) -> None:
        with self._lock:
            assert self._socket is not None
            self._spawn(self._accept, self._socket)

    def stop(self) -> None:
        """Close everything and wait for the threads."""
        if self._socket is None:
            return
        with self._lock:
            threads = list(self._threads)
            listener, self._socket = self._socket, None
            # A shutdown wakes the thread that waits on the socket; a close alone would not.
            for connection in [listener, *self._open]:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        listener.close()

    def _spawn(self, work: Callable[..., None], *arguments: object) -> None:
        """Start a thread; the caller holds the lock, so that :meth:`stop` can join every thread that was started."""
        thread = threading.Thread(target=work, args=arguments, name=self._name, daemon=True)
        thread.start()
        self._threads.add(thread)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, client = listener.accept()
            except OSError:
                if self._socket is None:
                    break
                time.sleep(0.01)  # the client has gone, or there are no more file descriptors
                continue
            with self._lock:
                is_accepted = self._socket is not None and len(self._open) < MAX_CONNECTIONS
                if is_accepted:
                    self._open.add(connection)
                    self._spawn(self._handle, connection, client[0])
            if not is_accepted:
                connection.close()
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _handle(self, connection: socket.socket, client: str) -> None:
        try:
            with contextlib.suppress(OSError):  # the client has gone, or the server stops
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._serve(connection, client)
        except Exception:  # of one connection; the others go on
            LOG.exception('a connection from %s was closed after an error', client)
        finally:
            with self._lock:
                self._open.discard(connection)
                self._threads.discard(threading.current_thread())
            connection.close()


class DnsSockets:
    """The sockets of one endpoint.

    :param respond: returns the reply to a message, given its sender's address and whether it came over TCP
    """

    def __init__(self, respond: Callable[[bytes, str, bool], Response]) -> None:
        self._respond = respond
        self._tcp = TcpListener('dns-tcp', self._serve_connection)
        self._udp: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._endpoint: Endpoint | None = None

    def start(self, listen: Endpoint) -> Endpoint:
        """Bind and serve; the endpoint with its actual port.

        :raises OSError: when it is taken
        """
        self._stopping = threading.Event()
        self._endpoint = self._bind(listen)
        self._tcp.start()
        self._thread = threading.Thread(target=self._serve_udp, name='dns-udp', daemon=True)
        self._thread.start()
        return self._endpoint

    def stop(self) -> None:
        if self._udp is None or self._thread is None or self._endpoint is None:
            return
        self._stopping.set()
        with contextlib.suppress(OSError), socket.socket(self._udp.family, socket.SOCK_DGRAM) as waker:
            waker.sendto(b'', self._udp.getsockname()[:2])
        self._tcp.stop()
        self._thread.join()
        self._udp.close()
        self._udp = None

    def _bind(self, listen: Endpoint) -> Endpoint:
        """Bind both sockets to one port; port 0 takes one that is free for both."""
        for last in (*[False] * 50, True):
            endpoint = self._tcp.bind(listen)
            try:
                self._udp = _bound_socket(endpoint, socket.SOCK_DGRAM)
                return endpoint
            except OSError:
                self._tcp.stop()
                if listen.port or last:
                    raise
        raise AssertionError('the last turn returns or raises')

    def _serve_udp(self) -> None:
        udp = self._udp
        assert udp is not None
        while True:
            try:
                wire, client = udp.recvfrom(65535)
            except OSError as error:
                LOG.warning('DNS over UDP: %s', error)
                wire = b''
            if self._stopping.is_set():
                return
            if wire:
                self._answer_udp(udp, wire, client)

    def _answer_udp(self, udp: socket.socket, wire: bytes, client: tuple[str, int]) -> None:
        try:
            response = self._respond(wire, client[0], False)
            messages = list(response.messages)
        except Exception:  # of one message; the next must be answered
            LOG.exception('a message from %s could not be answered', client[0])
            return

        def send() -> None:
            if not self._stopping.wait(response.delay):
                with contextlib.suppress(OSError):
                    for message in messages:
                        udp.sendto(message, client)

        if response.delay:
            threading.Thread(target=send, name='dns-late', daemon=True).start()
        else:
            send()

    def _serve_connection(self, connection: socket.socket, client: str) -> None:
        connection.settimeout(TCP_TIMEOUT)
        with connection.makefile('rb') as stream:
            while not self._stopping.is_set():
                prefix = stream.read(2)
                if len(prefix) < 2:
                    return
                length = struct.unpack('>H', prefix)[0]
                wire = stream.read(length)
                if len(wire) < length:
                    return
                response = self._respond(wire, client, True)
                if response.delay:
                    self._stopping.wait(response.delay)
                for message in response.messages:
                    connection.sendall(struct.pack('>H', len(message)) + message)


def _bound_socket(endpoint: Endpoint, kind: socket.SocketKind) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ':' in endpoint.host else socket.AF_INET, kind)
    try:
        if kind == socket.SOCK_STREAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.bind((endpoint.host, endpoint.port))
        return sock
    except BaseException:  # whatever ended it, a killed green thread too: release the socket, then raise
        sock.close()
        raise
