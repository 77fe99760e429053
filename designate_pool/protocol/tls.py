"""DNS over TLS (RFC 7858) as transfers use it (RFC 9103 section 7): TLS 1.3 alone, with the ALPN token ``dot``."""

from __future__ import annotations

import functools
import os
import socket
import ssl

from designate_pool.deadline import Deadline, Turns

_ALPN = ['dot']
_CHUNK = 1 << 16
#: Octets that are read at once, about a record: those of a hostile client take 6 ms, in which nobody else has a turn.
_READ = 1 << 14


def server_context(certificate: str, key: str, client_ca: str | None = None) -> ssl.SSLContext:
    """What a server needs; all are paths of PEM files.

    :param client_ca: of the authorities that have signed the certificates of all clients; None to ask for none
    :raises OSError: when a file cannot be read, or the key is not that of the certificate (``ssl.SSLError``)
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _require(context)
    context.load_cert_chain(certificate, key, _no_password)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context


def client_context(ca: str | None = None, is_strict: bool = True) -> ssl.SSLContext:
    """What a client needs, shared by all, and made anew when the file has changed.

    :param ca: path of the PEM file of the authorities that are trusted; None for those of the system
    :param is_strict: whether the server proves its name (RFC 9103 section 9.3); else any certificate will do
    :raises OSError: when the file cannot be read, or has no certificate (``ssl.SSLError``)
    """
    return _client_context(ca, is_strict, os.stat(ca).st_mtime_ns if ca and is_strict else 0)


@functools.lru_cache(8)
def _client_context(ca: str | None, is_strict: bool, changed_at: int) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _require(context)
    if not is_strict:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif ca is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(ca)
    return context


def _no_password() -> str:
    raise OSError('the key is encrypted')  # else the terminal would be asked


def _require(context: ssl.SSLContext) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(_ALPN)


class TlsStream:
    """TLS over a connected socket, and used in place of it.

    The socket stays what it was, so any thread can shut it down, and green and native threads wait in the same way.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_name: str | None = None,
                 is_server: bool = False) -> None:
        self._socket = sock
        self._deadline = Deadline(0)
        self._turns = Turns()
        self._is_strict = not is_server and context.verify_mode is ssl.CERT_REQUIRED
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, is_server, server_name)

    def handshake(self, deadline: Deadline) -> None:
        """Agree on keys and names.

        :raises OSError: when it takes too long, or the two do not agree (``ssl.SSLError``, ``ConnectionError``)
        """
        self.settimeout(deadline.left())
        while True:
            try:
                self._session.do_handshake()
                if self._is_strict and self._session.selected_alpn_protocol() is None:
                    raise ConnectionError('the server has not chosen the ALPN token "dot" (RFC 9103)')
                return self._flush()
            except ssl.SSLWantReadError:
                self._flush()
                self._fill()
            except ssl.SSLError:  # it has prepared an alert for the other one
                self._flush()
                raise

    def recv(self, size: int, /) -> bytes:
        """As ``socket.recv``: some octets, none when the other one has ended."""
        while True:
            try:
                return self._session.read(size)
            except ssl.SSLWantReadError:
                self._flush()
                self._fill()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b''

    def send(self, octets: bytes | memoryview) -> int:
        """As ``socket.send``: how many octets were taken."""
        count = self._session.write(octets[:_CHUNK])
        self._flush()
        return count

    def sendall(self, data: bytes, /) -> None:
        """As ``socket.sendall``."""
        unsent = memoryview(data)
        while unsent:
            unsent = unsent[self.send(unsent):]

    def settimeout(self, value: float, /) -> None:
        """Let what is called until the next time take so many seconds in all: one call may wait for several packets."""
        self._deadline = Deadline(value)

    def setsockopt(self, level: int, name: int, value: bytes, /) -> None:
        self._socket.setsockopt(level, name, value)

    def shutdown(self, how: int) -> None:
        self._socket.shutdown(how)

    def close(self) -> None:
        self._socket.close()

    def _fill(self) -> None:
        self._socket.settimeout(self._deadline.left())
        self._turns.give()
        octets = self._socket.recv(_READ)
        if octets:
            self._incoming.write(octets)
        else:
            self._incoming.write_eof()

    def _flush(self) -> None:
        unsent = memoryview(self._outgoing.read())
        while unsent:
            self._socket.settimeout(self._deadline.left())
            unsent = unsent[self._socket.send(unsent):]


def failure(error: OSError) -> str:
    """Why TLS or its connection failed, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f'its certificate is not accepted: {error.verify_message}'
    if isinstance(error, ssl.SSLError):
        return 'it has no certificate, or no key, in PEM form' if 'PEM lib' in str(error) else (
            error.reason or str(error)).replace('_', ' ').lower()
    if isinstance(error, TimeoutError):
        return 'no answer in time'
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)
