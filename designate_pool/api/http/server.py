"""The HTTP server: waitress as its documentation offers it, in a thread of its own.

A request reaches a worker when it has arrived completely, and an answer is buffered completely (in a temporary file
when it is large), so a slow client occupies no worker.  How many requests of one client are executed is limited in the
application (:mod:`designate_pool.api.http.limits`); what strangers could exhaust (connections that send nothing,
requests that never end, large bodies) is the matter of a proxy in front.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import waitress

from designate_pool.model import Endpoint
from designate_pool.settings import ApiSettings

LOG = logging.getLogger(__name__)
_BACKLOG = 1024


class ApiServer:
    """Serves a WSGI application over HTTP.

    :param app: see :func:`designate_pool.api.app.create_app`
    :param listen: where; port 0 takes a free one
    :param connections: how many clients may be connected at once; more wait in the backlog
    :param idle_timeout: seconds after which a connection is closed on which nothing moves
    """

    def __init__(self, app: Callable[..., Any], listen: Endpoint, settings: ApiSettings, connections: int = 500,
                 idle_timeout: int = 60) -> None:
        self._app = app
        self._listen = listen
        self._options: dict[str, Any] = {
            # requests that wait, or are refused for they are too many, have threads beside the others
            'threads': settings.threads + settings.waits, 'connection_limit': connections, 'ident': 'designate-pool',
            'backlog': _BACKLOG,
            # waitress refuses what reaches its limit, the application what passes it
            'max_request_body_size': settings.max_body + 1, 'channel_timeout': idle_timeout, 'cleanup_interval': 1,
            # no worker waits for a client that reads slowly
            'outbuf_high_watermark': 1 << 40, 'asyncore_use_poll': True,
            # requests get 'waitress.client_disconnected'
            'channel_request_lookahead': 1,
        }
        if settings.trusted_proxy:
            self._options.update(trusted_proxy=settings.trusted_proxy,
                                 trusted_proxy_headers='x-forwarded-for x-forwarded-proto')
        self._port = 0
        self._server: Any = None

    @property
    def endpoint(self) -> Endpoint:
        """Where it really listens, once started."""
        if self._server is None:
            raise RuntimeError('the API server is not started')
        return Endpoint(self._listen.host, self._port)

    def start(self) -> None:
        """Listen, and serve in a thread.

        :raises OSError: when it cannot listen there
        """
        # A line for every request that waits for a worker is no help in a flood.
        logging.getLogger('waitress.queue').setLevel(logging.ERROR)
        family = socket.AF_INET6 if ':' in self._listen.host else socket.AF_INET
        listening = socket.create_server((self._listen.host, self._listen.port), family=family, backlog=_BACKLOG)
        self._port = listening.getsockname()[1]
        self._server = waitress.create_server(self._app, sockets=[listening], **self._options)
        threading.Thread(target=self._run, args=(self._server,), name='api', daemon=True).start()

    def stop(self, seconds: float = 10.0) -> None:
        """Finish the requests that are executed (within *seconds*), and close."""
        if self._server is not None:
            server, self._server = self._server, None
            server.task_dispatcher.shutdown(timeout=seconds)
            server.close()

    def _run(self, server: Any) -> None:
        while True:
            try:
                return server.run()
            except Exception:  # too many open files, for example: the connections are served on
                if self._server is server:  # else it was closed under the loop
                    LOG.exception("the API server's loop failed; it goes on")
                time.sleep(0.1)
