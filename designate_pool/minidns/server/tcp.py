"""DNS over TCP (RFC 7766): many connections, many queries on each, answered in their order.

The number of connections is bounded, in all, for one address, and for all those together that come from no server's
address and have not shown a server's key; so strangers and visitors keep no server waiting.  More wait until others
have ended, since a server that is turned away may come back only after a minute.  A connection that is not heard of for
a while, sends slowly or takes slowly is closed; of one for which the database is read meanwhile, more haste is asked.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterable

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.minidns import counters
from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.server.query_handler import QueryHandler
from designate_pool.minidns.server.responder import Messages, Transfer
from designate_pool.minidns.zones.ixfr import PackedDifference
from designate_pool.minidns.zones.packing import PackedZone, StreamedZone

LOG = logging.getLogger(__name__)

#: Seconds without a query, for a query to arrive whole, and for a message to be taken.
IDLE, ARRIVAL, TAKING = 30.0, 10.0, 30.0
#: The last for a stranger, whose answers are so small that there is room for them unless they are not taken.
HASTE = 1.0
#: Octets a second that a client has to take of a zone that is read while it is sent, :data:`TAKING` in advance.
LEAST_RATE = 256 << 10
#: Seconds in which the first query of a connection is on its way.
ARRIVING = 1.0
#: Queries of one connection that are answered before others have their turn.
_TURN = 100
_BACKLOG = 1024
_CHUNK = 65536

Served = Callable[[tuple[AllowedPeer, ...], PackedZone | StreamedZone], None]


class ClientConnection:
    """One client.

    :ivar is_stranger: whether it comes from no server's address, and has not been sent a zone as a server
    :ivar idle_since: when it last had nothing to do; None while it is served
    """

    def __init__(self, sock: socket.socket, address: str, is_stranger: bool) -> None:
        self.sock = sock
        self.address = address
        self.is_stranger = is_stranger
        self.idle_since: float | None = time.monotonic()
        self._buffer = bytearray()

    def queries(self) -> list[bytes]:
        """The queries that have arrived, at least one; none when the client has gone.

        :raises OSError: when it takes too long
        """
        self.idle_since = time.monotonic()
        end = self.idle_since + (ARRIVAL if self._buffer else IDLE)
        while True:
            found = self._take()
            if found:
                self.idle_since = None
                return found
            self.sock.settimeout(max(0.01, end - time.monotonic()))
            fresh = not self._buffer
            more = self.sock.recv(_CHUNK)
            if not more:
                return []
            self._buffer += more
            if fresh:
                end = time.monotonic() + ARRIVAL

    def send(self, message: bytes, patience: float | None = None) -> None:
        """Send a message.

        :param patience: seconds, None for :data:`TAKING`
        :raises OSError: when the client does not take it in time
        """
        end = time.monotonic() + (TAKING if patience is None else patience)
        left = memoryview(len(message).to_bytes(2, 'big') + message)
        while left:
            self.sock.settimeout(max(0.01, end - time.monotonic()))
            left = left[self.sock.send(left):]

    def hang_up(self, how: int = socket.SHUT_RDWR) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(how)

    def _take(self) -> list[bytes]:
        """The whole messages at the front of the buffer, a turn's at most."""
        found: list[bytes] = []
        at = 0
        while len(self._buffer) >= at + 2 and len(found) < _TURN:
            end = at + 2 + int.from_bytes(self._buffer[at:at + 2], 'big')
            if len(self._buffer) < end:
                break
            found.append(bytes(self._buffer[at + 2:end]))
            at = end
        del self._buffer[:at]
        return found


class TcpServer:
    """All TCP connections.

    :param served: told of each transfer that has been sent whole
    :param most: connections at the same time; more wait, and the longest idle one makes room
    :param servers: tells how many servers an address stands for; it may take half of the connections for each, and have
        as many again waiting; one that stands for none a quarter, and all of these together half
    """

    def __init__(self, answering: QueryHandler, served: Served, most: int,
                 servers: Callable[[str], int]) -> None:
        self._answering = answering
        self._served = served
        self._most = most
        self._half, self._quarter = max(1, most // 2), max(1, most // 4)
        self._servers = servers
        self._open: set[ClientConnection] = set()
        self._strangers = 0
        self._by_address: collections.Counter[str] = collections.Counter()
        self._waiting: dict[str, collections.deque[ClientConnection]] = {}
        self._changed = threading.Condition()
        self._listeners: list[socket.socket] = []
        self._tasks: list[LoopTask] = []
        self._runtime: Runtime | None = None
        self._stopping = False

    def start(self, runtime: Runtime, listeners: list[socket.socket]) -> None:
        self._runtime = runtime
        self._listeners = listeners
        for sock in listeners:
            self._tasks.append(runtime.spawn(self._accept, sock, name='minidns-accept'))

    def stop(self, grace: float = 5.0) -> None:
        """Accept no more, answer what was asked, and close."""
        self._stopping = True
        for sock in self._listeners:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes accept, which closing alone would not
        with self._changed:
            self._changed.notify_all()
            for connection in self._open:
                connection.hang_up(socket.SHUT_RD)
            for connection in itertools.chain.from_iterable(self._waiting.values()):
                connection.sock.close()
            self._waiting.clear()
        for task in self._tasks:
            task.join(grace)
        for sock in self._listeners:
            sock.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._open, grace)
            for connection in self._open:
                connection.hang_up()

    def _accept(self, listener: socket.socket) -> None:
        assert self._runtime is not None
        while True:
            try:
                sock, address = listener.accept()
            except OSError as error:
                if self._stopping:
                    return
                LOG.warning('a connection could not be accepted: %s', error)
                with self._changed:
                    self._changed.wait(0.1)  # out of file descriptors, say: others must be closed first
                continue
            self._admit(ClientConnection(sock, address[0], not self._servers(address[0])))
            time.sleep(0)  # a green thread to which somebody comes all the time would go on for ever; so below

    def _admit(self, connection: ClientConnection) -> None:
        """Serve *connection*, or have it wait for others to end; close it when too many wait already."""
        address = connection.address
        with self._changed:
            if self._stopping:
                connection.sock.close()
            elif self._has_room(connection):
                self._begin(connection)
            elif self._may_wait(connection):
                self._waiting.setdefault(address, collections.deque()).append(connection)
                self._press(connection)
            else:
                connection.sock.close()

    def _has_room(self, connection: ClientConnection) -> bool:
        return (len(self._open) < self._most and self._by_address[connection.address] < self._share(connection)
                and not (connection.is_stranger and self._strangers >= self._half))

    def _may_wait(self, connection: ClientConnection) -> bool:
        if len(self._waiting.get(connection.address, ())) >= self._share(connection):
            return False
        strangers = sum(len(waiting) for waiting in self._waiting.values() if waiting[0].is_stranger)
        return not connection.is_stranger or strangers < self._half

    def _press(self, waiting: ClientConnection) -> None:
        """Hang up the longest idle one of those whose end would make room for *waiting*."""
        if self._by_address[waiting.address] >= self._share(waiting):
            _make_room((each for each in self._open if each.address == waiting.address), ARRIVING)
        elif waiting.is_stranger and self._strangers >= self._half:
            _make_room(each for each in self._open if each.is_stranger)
        elif len(self._open) >= self._most:
            _make_room(self._open)

    def _share(self, connection: ClientConnection) -> int:
        servers = self._servers(connection.address)
        return self._half * servers if servers else self._quarter

    def _begin(self, connection: ClientConnection) -> None:
        assert self._runtime is not None
        self._open.add(connection)
        self._by_address[connection.address] += 1
        self._strangers += connection.is_stranger
        self._runtime.spawn(self._serve, connection, name='minidns-tcp')

    def _leave(self, connection: ClientConnection) -> None:
        """Let those in that wait."""
        with self._changed:
            self._open.discard(connection)
            self._strangers -= connection.is_stranger
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]
            for address, waiting in sorted(self._waiting.items(), key=lambda each: each[1][0].is_stranger):
                if self._has_room(waiting[0]):
                    self._begin(waiting.popleft())
                if not waiting:
                    del self._waiting[address]
            self._changed.notify_all()

    def _vouch(self, connection: ClientConnection) -> None:
        """*connection* has been found to be a server's."""
        with self._changed:
            self._strangers -= connection.is_stranger
            connection.is_stranger = False

    def _rest(self, connection: ClientConnection) -> None:
        """*connection* has nothing to do; where others wait for its place, it may have to go."""
        connection.idle_since = time.monotonic()
        with self._changed:
            for waiting in self._waiting.values():
                if waiting[0].address != connection.address:
                    self._press(waiting[0])

    def _serve(self, connection: ClientConnection) -> None:
        try:
            with contextlib.suppress(OSError):  # clients come and go, fast and slow
                while queries := connection.queries():
                    messages = [(query, connection.address) for query in queries]
                    for answer in self._answering.answers(messages, over_tcp=True):
                        if isinstance(answer, Transfer):
                            if answer.query.visitor is None:
                                self._vouch(connection)
                            self._transfer(connection, answer)
                        elif answer is not None:
                            connection.send(answer, HASTE if connection.is_stranger else None)
                    if self._waiting:
                        self._rest(connection)
                    time.sleep(0)
        except Exception:  # of one connection; the others go on
            LOG.exception('a connection from %s was closed after an error', connection.address)
        finally:
            connection.sock.close()
            self._leave(connection)

    def _transfer(self, connection: ClientConnection, transfer: Transfer) -> None:
        started = time.monotonic()
        zone = self._answering.packed(transfer)
        if isinstance(zone, bytes):
            counters.ended(transfer.query, 'failed')
            connection.send(zone)
            return
        is_streamed = isinstance(zone, StreamedZone)
        try:
            octets = self._send(connection, transfer.messages(zone), LEAST_RATE if is_streamed else 0)
        except OSError:
            counters.ended(transfer.query, 'aborted')
            raise
        except Exception as error:  # the database's errors are storage's own; without the final SOA it counts for none
            counters.ended(transfer.query, 'failed')
            LOG.error('the transfer of zone %s to %s broke off: %s', zone.name, connection.address, error)
            raise ConnectionAbortedError from error
        finally:
            if isinstance(zone, StreamedZone):
                zone.close()
        counters.transferred(transfer.query, octets, time.monotonic() - started,
                             is_whole=not isinstance(zone, PackedDifference))
        self._served(transfer.query.peers, zone)

    def _send(self, connection: ClientConnection, messages: Messages, least_rate: int) -> int:
        """Send *messages*; how many octets their answer sections have.

        :param least_rate: octets a second that the client has to take in the long run; 0 where nothing depends on it
        :raises OSError: when it does not take a message in time
        """
        spent = 0.0
        while message := messages.next(int(time.time())):
            patience = TAKING
            if least_rate:
                patience = min(TAKING, TAKING + messages.octets / least_rate - spent)
            started = time.monotonic()
            connection.send(message, patience)
            spent += time.monotonic() - started
        return messages.octets


def _make_room(connections: Iterable[ClientConnection], least: float = 0.0) -> None:
    """Hang up the one that has been idle the longest, if one is, and for *least* seconds."""
    before = time.monotonic() - least
    idle = [each for each in connections if each.idle_since is not None and each.idle_since <= before]
    if idle:
        min(idle, key=lambda each: each.idle_since or 0.0).hang_up()


def listen(family: int, host: str, port: int, reuse_port: bool = False) -> socket.socket:
    """A listening socket.

    :param reuse_port: whether others may listen there too
    :raises OSError: when the address or port cannot be had
    """
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, reuse_port)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock
