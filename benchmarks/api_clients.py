"""HTTP clients that cost as little as can be: requests are prepared, of an answer only status and length are read."""

from __future__ import annotations

import dataclasses
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

_SECONDS = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Answered:
    """What became of a number of requests.

    :ivar seconds: from the first to the last
    :ivar times: seconds of each, sorted
    :ivar statuses: how many of each HTTP status
    """

    seconds: float
    times: Sequence[float]
    statuses: dict[int, int]

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.times) / self.seconds

    def percentile(self, share: float) -> float:
        """Milliseconds that *share* of the requests took at most."""
        return 1000 * self.times[min(len(self.times) - 1, int(share * len(self.times)))]

    def as_json(self) -> dict[str, Any]:
        return {'requests': len(self.times), 'rate': self.rate, 'median_ms': self.percentile(0.5),
                'p99_ms': self.percentile(0.99), 'statuses': self.statuses}


def prepare(method: str, path: str, body: Any = None) -> bytes:
    """A request as it goes over the wire."""
    content = b'' if body is None else json.dumps(body).encode()
    head = [f'{method} {path} HTTP/1.1', 'Host: localhost', f'Content-Length: {len(content)}']
    if content:
        head.append('Content-Type: application/json')
    return '\r\n'.join([*head, '', '']).encode() + content


class Connection:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(('127.0.0.1', port), _SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._left = b''

    def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body."""
        self._socket.sendall(request)
        while b'\r\n\r\n' not in self._left:
            self._receive()
        head, _, self._left = self._left.partition(b'\r\n\r\n')
        length = next(int(line.split(b':')[1]) for line in head.lower().split(b'\r\n')
                      if line.startswith(b'content-length:'))
        while len(self._left) < length:
            self._receive()
        body, self._left = self._left[:length], self._left[length:]
        return int(head.split(b' ', 2)[1]), body

    def _receive(self) -> None:
        more = self._socket.recv(1 << 16)
        if not more:
            raise ConnectionError('the server has closed the connection')
        self._left += more

    def close(self) -> None:
        self._socket.close()


def drive(port: int, requests: Sequence[bytes], count: int, clients: int) -> Answered:
    """Send *count* requests, one after the other on each of *clients* connections."""
    left, lock = itertools.islice(itertools.cycle(requests), count), threading.Lock()
    times: list[float] = []
    statuses: dict[int, int] = {}
    failures: list[Exception] = []

    def client() -> None:
        try:
            connection = Connection(port)
            for request in _shared(left, lock):
                begun = time.perf_counter()
                status, _ = connection.ask(request)
                taken = time.perf_counter() - begun
                with lock:
                    times.append(taken)
                    statuses[status] = statuses.get(status, 0) + 1
            connection.close()
        except Exception as error:  # whatever it is ends the run, by the one who waits for this thread
            failures.append(error)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return Answered(time.perf_counter() - begun, sorted(times), statuses)


def _shared(left: Iterator[bytes], lock: threading.Lock) -> Iterator[bytes]:
    while True:
        with lock:
            request = next(left, None)
        if request is None:
            return
        yield request


class Neighbours:
    """Clients that behave badly while others are measured, until the ``with`` ends.

    :param slow: so many send a request a byte at a time and never end it
    :param flooding: so many ask *request* without a pause
    """

    def __init__(self, port: int, slow: int, flooding: int, request: bytes) -> None:
        self._port = port
        self._slow = slow
        self._request = request
        self._over = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._drip, *[self._flood] * flooding)]

    def __enter__(self) -> Neighbours:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _drip(self) -> None:
        sockets = [socket.create_connection(('127.0.0.1', self._port)) for _ in range(self._slow)]
        for byte in itertools.cycle(b'GET /v2/zones HTTP/1.1\r\nX-Slow: ' + b'x' * 100):
            for each in sockets:
                self._quietly(lambda each=each: each.sendall(bytes([byte])))
            if self._over.wait(0.5):
                break
        for each in sockets:
            each.close()

    def _flood(self) -> None:
        connection = Connection(self._port)
        while not self._over.is_set():
            self._quietly(lambda: connection.ask(self._request))
        connection.close()

    def _quietly(self, work: Callable[[], object]) -> None:
        try:
            work()
        except OSError:  # the server has had enough of it, which is its right
            self._over.wait(0.1)
