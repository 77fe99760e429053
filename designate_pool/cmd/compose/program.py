"""What programs have in common: signals, metrics over HTTP, and types of arguments."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import make_wsgi_app

from designate_pool import __version__
from designate_pool.api.http.server import ApiServer
from designate_pool.errors import InvalidField
from designate_pool.model import Endpoint
from designate_pool.protocol.names_and_rdata import normal_name
from designate_pool.settings import ApiSettings


class Signals:
    """Sets *stop* by SIGTERM and SIGINT, and *hangup* by SIGHUP, which whoever acts on it clears."""

    def __init__(self) -> None:
        self.stop = self.hangup = False
        # A signal does not end the wait of an event loop, but what comes over a socket does.
        self._arrived, sender = socket.socketpair()
        sender.setblocking(False)
        self._sender = sender
        signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)

    def wait(self, seconds: float) -> None:
        """Wait until one has arrived since the last call, or :meth:`wake` was called; at most so long."""
        self._arrived.settimeout(seconds)
        with contextlib.suppress(TimeoutError):
            self._arrived.recv(4096)

    def wait_for_stop(self) -> None:
        """Wait until a program that reads no file again is told to stop, or its terminal is closed."""
        while not (self.stop or self.hangup):
            self.wait(3600)

    def wake(self) -> None:
        """End the present wait, or the next one at once; from any thread."""
        with contextlib.suppress(BlockingIOError):  # a full socket wakes as well
            self._sender.send(b'.')

    def _handle(self, number: int, frame: Any) -> None:
        if number == signal.SIGHUP:
            self.hangup = True
        else:
            self.stop = True


_EXPOSITION = make_wsgi_app()


def _metrics(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if environ['PATH_INFO'] == '/metrics':
        return _EXPOSITION(environ, start_response)
    start_response('404 Not Found', [('Content-Type', 'text/plain; charset=utf-8')])
    return [b'there is only /metrics here\n']


class MetricsEndpoint:
    """Serves the process's metrics for Prometheus at some addresses, each once.

    :raises OSError: when it cannot listen at one of them
    """

    def __init__(self, addresses: Iterable[Endpoint]) -> None:
        self._servers = [ApiServer(_metrics, address, ApiSettings(threads=2, waits=0), idle_timeout=10)
                         for address in dict.fromkeys(addresses)]
        for server, address in zip(self._servers, dict.fromkeys(addresses)):
            try:
                server.start()
            except OSError as error:
                self.stop()
                raise OSError(error.errno, f'metrics cannot be served at {address}: {error.strerror}') from error

    @property
    def endpoints(self) -> list[Endpoint]:
        """The addresses, with their actual ports."""
        return [server.endpoint for server in self._servers]

    def stop(self) -> None:
        """Stop serving, without waiting for requests."""
        for server in self._servers:
            server.stop(0.0)


def log_to_stderr(level: int = logging.INFO) -> None:
    """Have the program log to standard error, which systemd and containers keep."""
    logging.basicConfig(level=level, stream=sys.stderr, format='%(asctime)s %(levelname)s %(name)s: %(message)s')


def argument_parser(name: str, about: str, **options: Any) -> argparse.ArgumentParser:
    """The parser of a program's command line, with ``--version``."""
    parser = argparse.ArgumentParser(prog=name, description=about, **options)
    parser.add_argument('--version', action='version', version=f'%(prog)s {__version__}')
    return parser


def endpoint(text: str) -> Endpoint:
    """``ADDRESS:PORT`` or ``[ADDRESS]:PORT``, where port 0 is any free one."""
    match = re.fullmatch(r'(\[[^]]+]|[^]:]+):([0-9]{1,5})', text)
    try:
        if match is None or int(match[2]) > 65535:
            raise ValueError
        return dataclasses.replace(Endpoint.parse(match[1]), port=int(match[2]))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not ADDRESS:PORT or [ADDRESS]:PORT") from None


def zone(text: str) -> str:
    """A zone's name; the final dot may be left out."""
    try:
        return normal_name(text if text.endswith('.') else f'{text}.')
    except InvalidField as error:
        raise argparse.ArgumentTypeError(str(error)) from error
