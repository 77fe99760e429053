"""The HTTP server: waitress, in a thread of its own, with limits that keep one client from stopping the others.

* A request that waits long (see :data:`LONG_WAIT`) gets a thread besides the workers.
* A request reaches a worker only when it is there in full, and an answer is buffered in full (in a temporary file when
  it is large), so no slow client ever holds a worker.
* A connection is closed when nothing moved on it for ``idle_timeout`` seconds, or when a request
  took longer than ``request_timeout`` to arrive, however steadily it drips.
* The headers of a request with a body are checked first (:mod:`designate_pool.api.http.admission`); then its body is
  read, as far as the operation and the limit of all bodies allow.
* Clients take turns (:mod:`designate_pool.api.http.fair_queue`), so that none waits behind all requests of another, and
  none holds all workers.
* When the limit of connections is reached, the address that has most of them loses one.
* What waitress itself refuses (not HTTP, too large) is answered in the same form as every other error.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from waitress import adjustments, server, task, trigger, wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.utilities import BadRequest, Error, RequestEntityTooLarge

from designate_pool.api.http.admission import ADMITTED, HEAD
from designate_pool.api.http.client_network import network_of
from designate_pool.api.http.envelope import REQUEST_ID, HttpError, fault_outside
from designate_pool.api.http.fair_queue import TURN, FairQueue, Turn
from designate_pool.errors import TooManyBodies
from designate_pool.model import Endpoint

LOG = logging.getLogger(__name__)
#: In a request's environment: a context manager; within it an additional worker replaces the one that has the request.
LONG_WAIT = 'designate_pool.long_wait'
#: Bodies of at most so many bytes do not count in the limit of all bodies: the limit of connections bounds them.
SMALL_BODY = 1 << 20
#: Bytes of the framing of chunks: a chunk's size with its extensions, and the trailer.
MOST_FRAMING = 1 << 14


class ApiServer:
    """Serves a WSGI application over HTTP.

    :param app: see :func:`designate_pool.api.app.create_app`
    :param listen: where; port 0 takes a free one
    :param threads: how many requests are worked on at once
    :param threads_per_client: how many of them one client may hold at a time; 0 for half of them
    :param connections: how many clients may be connected at once; more wait in the backlog
    :param body_limit: bytes that the body of a request may have
    :param bodies_limit: bytes of all bodies over :data:`SMALL_BODY` together
    :param checks_headers: whether the application checks headers before bodies are read, see
        :mod:`designate_pool.api.http.admission`
    """

    def __init__(self, app: Callable[..., Any], listen: Endpoint, threads: int = 16, connections: int = 500,
                 body_limit: int = 64 << 20, idle_timeout: int = 60, request_timeout: float = 120,
                 bodies_limit: int = 1 << 30, checks_headers: bool = False, threads_per_client: int = 0) -> None:
        self._app = app
        self._bodies_limit = bodies_limit
        self._checks_headers = checks_headers
        self._threads = threads
        self._most = min(threads_per_client or max(threads // 2, 1), threads)
        self._extra_threads = 0
        self._lock = threading.Lock()
        self._listen = listen
        self._request_timeout = request_timeout
        self._options = {
            'listen': str(listen), 'threads': threads, 'connection_limit': connections, 'ident': 'designate-pool',
            # waitress refuses what reaches its limit, the application what passes it
            'max_request_body_size': body_limit + 1, 'channel_timeout': idle_timeout, 'cleanup_interval': 1,
            'outbuf_high_watermark': 1 << 40, 'asyncore_use_poll': True, 'asyncore_loop_timeout': 1,
            'clear_untrusted_proxy_headers': True,
        }
        self._map: dict[int, Any] = {}
        self._stop_by: float | None = None
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def endpoint(self) -> Endpoint:
        """Where it really listens, once started."""
        if self._server is None:
            raise RuntimeError('the API server is not started')
        return Endpoint(self._listen.host, int(self._server.effective_port))

    def start(self) -> None:
        """
        :raises OSError: when it cannot listen there
        """
        # A line for every request that waits for a worker is no help in a flood.
        logging.getLogger('waitress.queue').setLevel(logging.ERROR)
        adjusted = adjustments.Adjustments(**self._options)
        self._server = _Server(self._serve, self._map, adj=adjusted, request_timeout=self._request_timeout,
                               bodies_limit=self._bodies_limit, checks_headers=self._checks_headers)
        # Many clients may share an address, that of a proxy: all of them together leave the others half as many.
        self._server.use_fair_queue(self._most, (self._threads + self._most + 1) // 2)
        self._thread = threading.Thread(target=self._run, name='api', daemon=True)
        self._thread.start()

    def stop(self, seconds: float = 10.0) -> None:
        """Take nothing new, finish what is being worked on (within *seconds*), close."""
        if self._server is None or self._thread is None:
            return
        self._stop_by = time.monotonic() + seconds
        self._server.pull_trigger()
        self._thread.join()
        with self._lock:
            found, self._server = self._server, None
        found.task_dispatcher.shutdown(cancel_pending=True, timeout=1)
        self._thread = self._stop_by = None

    def _serve(self, environ: dict[str, Any], start_response: Any) -> Any:
        environ[LONG_WAIT] = functools.partial(self._leave_workers, environ[TURN])
        return self._app(environ, start_response)

    @contextlib.contextmanager
    def _leave_workers(self, turn: Turn) -> Iterator[None]:
        self._change_extra_threads(1)
        try:
            with turn.released():
                yield
        finally:
            self._change_extra_threads(-1)

    def _change_extra_threads(self, more: int) -> None:
        with self._lock:
            self._extra_threads += more
            if self._server is not None:
                self._server.task_dispatcher.set_thread_count(self._threads + self._extra_threads)

    def _run(self) -> None:
        assert self._server is not None
        found = self._server
        try:
            while self._stop_by is None:
                self._turn(1.0)
            found.stop_listening()
            while found.busy() and time.monotonic() < self._stop_by:
                self._turn(0.1)
        finally:
            wasyncore.close_all(self._map, ignore_all=True)

    def _turn(self, seconds: float) -> None:
        try:
            wasyncore.loop(timeout=seconds, use_poll=True, map=self._map, count=1)
        except Exception:  # of one connection, or too many open files: the others are served on
            LOG.exception("the API server's loop failed; it goes on")
            time.sleep(0.1)


class _Parser(HTTPRequestParser):
    """A request that arrives, and whose headers are checked first.

    :ivar headers_checked: whether they were passed to the application
    :ivar limit: bytes that its body may have; None until it is admitted
    :ivar exceeded_limit: the limit of all bodies together, once they exceed it
    """

    expect_continue: bool = False
    headers_checked = False
    limit: int | None = None
    exceeded_limit: int | None = None
    wants_continue = False

    def received(self, data: bytes) -> int:
        had_headers = self.headers_finished
        try:
            consumed: int = super().received(data)
        except ValueError:  # waitress converts numbers and addresses in them unchecked
            self.error, self.completed = BadRequest('The headers are invalid'), True
            return len(data)
        if not self.headers_checked and self.expect_continue:
            self.expect_continue, self.wants_continue = False, True
        if self.exceeded_limit is not None:
            self.error, self.completed = _BodiesTooLarge(str(TooManyBodies(limit=self.exceeded_limit))), True
        elif self.limit is not None and self.received_bytes > self.limit:
            self.error, self.completed = RequestEntityTooLarge(f'exceeds max_body of {self.limit}'), True
        elif self.chunked and self.headers_finished and not had_headers and 'CONTENT_LENGTH' in self.headers:
            # A proxy may have used the other one (RFC 9112 section 6.3).
            self.error, self.completed = BadRequest('Transfer-Encoding and Content-Length exclude each other'), True
        elif not self.completed and self._framing > MOST_FRAMING:
            self.error, self.completed = BadRequest(f'a chunk size or trailer exceeds {MOST_FRAMING} bytes'), True
        return consumed

    @property
    def _framing(self) -> int:
        """Bytes of framing that are buffered because it is not complete."""
        return len(self.body_rcv.control_line) + len(self.body_rcv.trailer) if self.chunked else 0

    @property
    def received_bytes(self) -> int:
        """Bytes of the body so far."""
        return 0 if self.body_rcv is None else self.body_rcv.__len__()

    @property
    def size(self) -> int:
        """Bytes that count in the limit of all bodies."""
        size = 0 if self.limit is None else max(self.content_length, self.received_bytes)
        return size if size > SMALL_BODY else 0


class _BodiesTooLarge(Error):
    code = 503
    reason = 'Service Unavailable'


class _Task(task.WSGITask):
    def get_environment(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environment()
        environ[TURN] = self.request.turn
        if getattr(self.request, 'limit', None) is not None:
            environ[ADMITTED] = True
        return environ


class _HeadersOnly:
    """Queued in place of a request of which only the headers have arrived."""

    error = None

    def __init__(self, request: _Parser) -> None:
        self.full_request = request
        self.request = copy.copy(request)
        self.request.body_rcv = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.request, name)


class _HeadersTask(task.WSGITask):
    """Passes the headers to the application, whose answer is sent unless it admits the body."""

    admitted = False

    def get_environment(self) -> dict[str, Any]:
        environ: dict[str, Any] = super().get_environment()
        environ[TURN] = self.request.turn
        environ[HEAD] = self._admit
        return environ

    def _admit(self, limit: int) -> None:
        self.channel.server.admit(self.request.full_request, limit)
        self.admitted = True

    def execute(self) -> None:
        self.set_close_on_finish()
        super().execute()
        if self.admitted:
            self.close_on_finish = False
            self.request.full_request.expect_continue = self.request.full_request.wants_continue
        else:
            self.channel.refused = True

    def finish(self) -> None:
        if not self.admitted:
            super().finish()


class _Channel(HTTPChannel):
    """A connection that times the arrival of its request, and lets a refused client finish.

    A socket that is closed with unread data is reset, and the client never sees why it was refused.  So after a
    refusal only our side is closed; what the client still sends is discarded, until it is done or its time is over.
    """

    arriving_since: float | None = None
    refused = False
    draining = False
    close_when_flushed = False

    def check_client_disconnected(self) -> bool:
        # Nothing is read while a request is worked on, so a disconnect is only seen by peeking.
        try:
            return not self.connected or not self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def received(self, data: bytes) -> bool:
        if self.draining:
            return False
        received_bytes = self._received_bytes()
        taken: bool = super().received(data)
        if self.request is None:
            self.arriving_since = None
        elif self.arriving_since is None:
            self.arriving_since = time.time()
        if isinstance(self.request, _Parser):
            self._check_headers(self.request)
            if self.request.chunked and self._received_bytes() // SMALL_BODY > received_bytes // SMALL_BODY:
                self.server.limit_rest(self.request)
        return taken

    def _received_bytes(self) -> int:
        return self.request.received_bytes if isinstance(self.request, _Parser) else 0

    def _check_headers(self, request: _Parser) -> None:
        with self.requests_lock:
            if request.headers_checked or not request.headers_finished or request.completed or self.will_close:
                return
            request.headers_checked = True
            self.requests.append(_HeadersOnly(request))  # nothing more is read until that is answered
            if len(self.requests) == 1:
                self.server.add_task(self)

    def parser_class(self, adj: Any) -> HTTPRequestParser:
        return _Parser(adj) if self.server.checks_headers else HTTPRequestParser(adj)

    def task_class(self, channel: HTTPChannel, request: Any) -> task.WSGITask:
        return (_HeadersTask if isinstance(request, _HeadersOnly) else _Task)(channel, request)

    def _flush_some(self, do_close: bool = True) -> None:
        # The loop of waitress takes no lock when no request is worked on, while a worker that has just checked headers
        # may be writing "100 Continue".
        with self.outbuf_lock:
            super()._flush_some(do_close=do_close)

    def handle_write(self) -> None:
        drains = self.refused and self.close_when_flushed
        if drains:
            self.close_when_flushed = False
        super().handle_write()
        if drains and self.connected:
            if self.total_outbufs_len:
                self.close_when_flushed = True
            else:
                self._drain()

    def _drain(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:  # the client has gone already
            self.will_close = True
        self.draining, self.arriving_since = True, time.time()


class _ErrorTask(task.ErrorTask):
    """Answers what waitress refuses in the form of every other error."""

    def execute(self) -> None:
        error = self.request.error
        why = ' '.join(str(error.body).split()).rstrip('.') or error.reason
        request_id, body = fault_outside(HttpError(error.code, error.reason, why))
        self.status = f'{error.code} {error.reason}'
        self.response_headers.extend([('Content-Type', 'application/json'), (REQUEST_ID, request_id)])
        self.channel.refused = True
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


_Channel.error_task_class = _ErrorTask


class _Trigger(trigger._triggerbase, wasyncore.dispatcher):
    """Wakes the loop from another thread.

    waitress's own writes to a pipe, and under eventlet a pipe takes one writer at a time.
    """

    kind = 'socketpair'

    def __init__(self, map: dict[int, Any]) -> None:
        trigger._triggerbase.__init__(self)
        reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        wasyncore.dispatcher.__init__(self, reader, map=map)

    def _physical_pull(self) -> None:
        # Full: the loop is being woken already; closed: there is no loop to wake.
        with contextlib.suppress(OSError):
            self._writer.send(b'x')

    def _close(self) -> None:
        self._writer.close()
        self.socket.close()


class _Server(server.TcpWSGIServer):
    channel_class = _Channel
    trigger: Any

    def __init__(self, *arguments: Any, request_timeout: float, bodies_limit: int, checks_headers: bool,
                 **options: Any) -> None:
        self._request_timeout = request_timeout
        self._bodies_limit = bodies_limit
        self._admitting = threading.Lock()
        self.checks_headers = checks_headers
        super().__init__(*arguments, **options)
        self.trigger.close()
        self.trigger = _Trigger(self._map)

    def use_fair_queue(self, most: int, most_of_address: int) -> None:
        self.task_dispatcher.queue = FairQueue(self.task_dispatcher.queue_cv, most, most_of_address)

    def admit(self, request: _Parser, limit: int) -> None:
        """Let the body of *request* be read, *limit* bytes at most.

        :raises TooManyBodies: when all bodies together would be too large
        """
        with self._admitting:
            request.limit = limit
            if request.size and self._bodies() > self._bodies_limit:
                request.limit = None
                raise TooManyBodies(limit=self._bodies_limit)

    def limit_rest(self, request: _Parser) -> None:
        """Refuse the rest of *request*, whose length is unknown, when all bodies together have become too large."""
        if self._bodies() > self._bodies_limit:
            request.exceeded_limit = self._bodies_limit

    def _bodies(self) -> int:
        channels = list(self.active_channels.values())
        return sum(each.size for channel in channels for each in (channel.request, *channel.requests)
                   if isinstance(each, _Parser))

    def handle_accept(self) -> None:
        super().handle_accept()
        if len(self._map) >= self.adj.connection_limit:
            self._make_room()

    def _make_room(self) -> None:
        """Close one connection, so that a client with many does not keep others out.

        It is the longest idle one of the address that has most; none is closed whose request is being worked on.
        """
        held = collections.Counter(network_of(channel.addr[0]) for channel in self.active_channels.values())
        idle = [channel for channel in self.active_channels.values()
                if not (channel.requests or channel.total_outbufs_len or channel.will_close)]
        if idle:
            min(idle, key=lambda channel: (-held[network_of(channel.addr[0])], channel.last_activity)).will_close = True

    def maintenance(self, now: float) -> None:
        super().maintenance(now)
        for channel in self.active_channels.values():
            if channel.arriving_since is not None and now - channel.arriving_since > self._request_timeout:
                channel.will_close = True

    def busy(self) -> bool:
        """Whether a request is being worked on or an answer still to be sent."""
        return any(channel.requests or channel.total_outbufs_len for channel in self.active_channels.values())

    def stop_listening(self) -> None:
        wasyncore.dispatcher.close(self)
