"""The protocol of NSD's control channel: ``NSDCT1 command``, and an answer that ends when NSD closes the connection.

The names of zones and the answer to ``zonestatus`` have their forms here too.

Each command has a connection of its own.  NSD serves nothing else while it reads a command and writes the answer.  So a
command is sent at once, and long input in windows whose answers are read before the next one is sent: neither side ever
blocks because the other does not read.  The formats are those of NSD's ``remote.c``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import os
import re
import socket
import ssl
from collections.abc import Iterable, Iterator, Sequence

from designate_pool.deadline import Deadline, abort, connect, send
from designate_pool.errors import BackendError, BackendRefused
from designate_pool.model import Endpoint, Reason
from designate_pool.protocol import names_and_rdata
from designate_pool.protocol.names_and_rdata import parse_name

MAGIC = b'NSDCT1 '
END_OF_INPUT = b'\x04\n'
#: Octets of a command that NSD reads after MAGIC.
LONGEST_COMMAND = 1022
#: Octets at which NSD cuts a line of an answer, its newline included.
LONGEST_LINE = 1023
#: Octets of a written name for which a line of an answer may be longer than LONGEST_LINE.
LONGEST_NAME = 950
#: Octets of input that are sent before their answers are read: they fit into the buffers of the sockets.
WINDOW = 16384

_TOTAL = re.compile(rb'(?:added|deleted) \d+ zones')
_PLAIN_OCTETS = frozenset(b'abcdefghijklmnopqrstuvwxyz0123456789-_')
_SERIAL = re.compile(rb'"(\d+) since ')
_ASKED = re.compile(rb'"(?:sent UDP|TCP connected) to ([0-9a-fA-F.:]+)(?:@(\d+))?"')


class HungUp(ConnectionError):
    """The server closed the connection."""


@dataclasses.dataclass(frozen=True)
class Tls:
    """The files for a control channel with TLS, as ``nsd-control-setup`` makes them; read for each connection."""

    server_cert_file: str
    control_key_file: str
    control_cert_file: str

    def context(self) -> ssl.SSLContext:
        """A context that accepts only that certificate, for any host; BackendError for files that cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        try:
            context.load_verify_locations(self.server_cert_file)
        except OSError as error:
            raise BackendError(why=f'server_cert_file {self.server_cert_file} cannot be used ({error})',
                               reason=Reason.BAD_TLS) from error
        try:
            context.load_cert_chain(self.control_cert_file, self.control_key_file)
        except OSError as error:
            files = f'control_cert_file {self.control_cert_file} and control_key_file {self.control_key_file}'
            raise BackendError(why=f'{files} cannot be used ({error})', reason=Reason.BAD_TLS) from error
        return context


@dataclasses.dataclass(frozen=True)
class NsdAnswer:
    """NSD's answer to a line of input: whether it was carried out, and other lines (``zone … already exists``)."""

    done: bool
    remark: str = ''


class NsdControl:
    """A control channel at *address*, the path of a unix socket, or host and port; with *tls* or without."""

    def __init__(self, address: str | tuple[str, int], tls: Tls | None) -> None:
        self._address = address
        self._tls = tls
        self._place = address if isinstance(address, str) else f'{address[0]} port {address[1]}'

    def ask(self, command: str, deadline: Deadline) -> list[str]:
        """Send *command*; the lines of the answer.

        :raises BackendRefused: when NSD does not accept the connection
        :raises OSError: when it cannot be reached, or closes the connection in the middle of the answer
        """
        return [line.decode('latin-1') for line in self.lines(command, deadline)]

    def lines(self, command: str, deadline: Deadline) -> Iterator[bytes]:
        """Like :meth:`ask`, yielding each line as it arrives."""
        octets = command.encode('ascii')
        if len(octets) > LONGEST_COMMAND:
            raise BackendRefused(why=f'NSD accepts no command of more than {LONGEST_COMMAND} octets: {command[:20]}…')
        with contextlib.closing(self._send(MAGIC + octets + b'\n', deadline)) as exchange:
            yield from exchange.lines()

    def bulk(self, verb: str, names: Sequence[str], more: str, deadline: Deadline) -> list[NsdAnswer]:
        """Send *verb*, ``addzones`` or ``delzones``, for each of *names*; the answer for each.

        :param names: of zones, one or more, written by :func:`escaped`, each shorter than :data:`LONGEST_NAME`
        :param more: what follows each name
        :raises OSError: also when an answer is incomplete
        """
        distinct = list(dict.fromkeys(names))
        size = max(1, WINDOW // (max(map(len, distinct)) + len(more) + 1))
        windows = [distinct[start:start + size] for start in range(0, len(distinct), size)]
        texts = [b''.join(f'{name}{more}\n'.encode('ascii') for name in window) for window in windows]
        texts[0] = MAGIC + verb.encode('ascii') + b'\n' + texts[0]
        texts[-1] += END_OF_INPUT
        said: dict[str, NsdAnswer] = {}
        with contextlib.closing(self._send(texts[0], deadline)) as exchange:
            lines = exchange.lines()
            for number, window in enumerate(windows):
                if number:
                    exchange.send(texts[number])
                said |= {name: _verdict(name, lines) for name in window}
            if not _TOTAL.fullmatch(next(lines, b'')):
                raise HungUp('the answer was cut short')
        return [said[name] for name in names]

    def incarnation(self) -> object:
        """A value that changes when NSD is restarted; None with TLS, which detects a truncated answer itself."""
        if self._tls is not None or not isinstance(self._address, str):
            return None
        status = os.stat(self._address)
        return status.st_dev, status.st_ino, status.st_ctime_ns

    def _send(self, text: bytes, deadline: Deadline) -> _Exchange:
        """Send *text* on a new connection, and wait for the first octets of the answer.

        NSD closes a connection without an answer if it does not accept it, but also while it is being stopped; so a
        second connection is made before the first counts as refused.
        """
        for _ in range(2):
            exchange = _Exchange(self._connect(deadline), deadline)
            try:
                exchange.send(text)
                exchange.receive()
                return exchange
            except HungUp:
                exchange.close()
            except BaseException:  # eventlet's Timeout too must not leave the socket open
                exchange.close()
                raise
        if self._tls is None:
            raise BackendRefused(
                why=f'the control channel at {self._place} closed the connection without an answer: it may require'
                    ' TLS, as NSD does on all its control interfaces if the first of them is an IP address; then'
                    ' server_cert_file, control_key_file and control_cert_file must be given', reason=Reason.BAD_TLS)
        raise _key_refused()

    def _connect(self, deadline: Deadline) -> socket.socket:
        context = None if self._tls is None else self._tls.context()
        plain = connect(self._address, deadline)
        if context is None:
            return plain
        try:
            with _ssl_errors():
                plain.settimeout(deadline.left())
                # An answer ends with the connection: only the close_notify of TLS shows that it is complete.
                return context.wrap_socket(plain, suppress_ragged_eofs=False)
        except BaseException:  # eventlet's Timeout too must not leave the socket open
            abort(plain)
            raise


class _Exchange:

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._socket = connected
        self._deadline = deadline
        self._piece = b''
        self._is_over = False

    def send(self, text: bytes) -> None:
        with _ssl_errors():
            send(self._socket, text, self._deadline)

    def receive(self) -> None:
        """Wait for the next piece of the answer; it is empty at the end."""
        self._socket.settimeout(self._deadline.left())
        with _ssl_errors():
            self._piece = self._socket.recv(65536)
        self._is_over = not self._piece

    def lines(self) -> Iterator[bytes]:
        """The lines of the answer from the piece that was received last; HungUp when it ends in the middle of one."""
        rest = b''
        while self._piece:
            *whole, rest = (rest + self._piece).split(b'\n')
            yield from whole
            if len(rest) > 16 * LONGEST_LINE:
                raise BackendError(why='a line of the answer on the control channel is too long')
            self.receive()
        if rest and len(rest) < LONGEST_LINE:
            raise HungUp('the answer was cut short')
        if rest:
            yield rest

    def close(self) -> None:
        if self._is_over:
            self._socket.close()
        else:
            abort(self._socket)


def _verdict(name: str, lines: Iterator[bytes]) -> NsdAnswer:
    """The answer for the next name of the input: remarks, and then a line with the result."""
    octets = name.encode('ascii')
    remarks: list[str] = []
    for line in lines:
        if line in (b'added: ' + octets, b'removed: ' + octets):
            return NsdAnswer(True, ' '.join(remarks))
        if line == b"error for input line '" + octets + b"'":
            return NsdAnswer(False, ' '.join(remarks))
        remarks.append(line.decode('latin-1'))
    raise HungUp('the answer was cut short')


@contextlib.contextmanager
def _ssl_errors() -> Iterator[None]:
    """Raises the driver's errors for those of TLS, and for a connection that is closed without a close_notify."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise BackendRefused(why=f'the certificate of the control channel is not the one in server_cert_file '
                                 f'({error.verify_message})', reason=Reason.BAD_TLS) from error
    except (ssl.SSLEOFError, ConnectionResetError, BrokenPipeError) as error:
        raise HungUp('the server closed the connection') from error
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        if 'ALERT' in reason:
            raise _key_refused(reason) from error
        raise BackendError(why=f'what answers on the control channel does not speak TLS as NSD does ({reason})',
                           reason=Reason.BAD_TLS) from error


def _key_refused(reason: str = 'it closed the connection without an answer') -> BackendRefused:
    return BackendRefused(why='the control channel does not accept the key in control_key_file with its certificate in '
                              f'control_cert_file ({reason}); they must be those that nsd-control-setup has made on'
                              ' the server', reason=Reason.BAD_TLS)


@dataclasses.dataclass(frozen=True)
class ZoneStatus:
    """The status of a zone of NSD.

    :ivar name: lower case and absolute
    :ivar pattern: None for a zone that is configured in nsd.conf
    :ivar serial: the one that is served; None when the zone is not served
    :ivar asked: the primary that the zone is being transferred from
    """

    name: str
    pattern: str | None = None
    is_secondary: bool = True
    serial: int | None = None
    asked: Endpoint | None = None


def escaped(name: str) -> str:
    """*name* as it is written to NSD: without the final dot, special octets as ``\\DDD``.

    This form is one word without a slash: it cannot end its line, and a zone file of this name stays in its folder.

    :raises BackendRefused: when it is not a domain name
    """
    return names_and_rdata.escaped(parse_name(name).canonicalize(), _PLAIN_OCTETS).removesuffix('.') or '.'


def statuses(lines: Iterable[bytes]) -> Iterator[ZoneStatus]:
    """The zones in an answer to ``zonestatus``; BackendError for another answer."""
    facts: dict[bytes, bytes] = {}
    for line in lines:
        word, colon, value = line.partition(b':')
        if word == b'zone' and colon:
            if facts:
                yield _status(facts)
            facts = {b'zone': value.strip()}
        elif facts and line.startswith(b'\t'):
            facts[word[1:]] = value.strip()
        else:
            raise BackendError(why=f'zonestatus: {line[:200].decode("latin-1")}')
    if facts:
        yield _status(facts)


def _status(facts: dict[bytes, bytes]) -> ZoneStatus:
    pattern, state = facts.get(b'pattern'), facts.get(b'state')
    # After a restart NSD shows the serial that it served before, even if it no longer has the contents; only
    # "commit-serial" shows whether it has them.
    serves = state != b'expired' and facts.get(b'commit-serial', b'none') != b'none'
    serial = _SERIAL.match(facts.get(b'served-serial', b'')) if serves else None
    return ZoneStatus(
        name=_name(facts[b'zone']), pattern=None if pattern is None else pattern.decode('latin-1'),
        is_secondary=state != b'master', serial=None if serial is None else int(serial[1]),
        asked=_asked(facts.get(b'transfer', b'')))


def _asked(transfer: bytes) -> Endpoint | None:
    match = _ASKED.fullmatch(transfer)
    try:
        return match and Endpoint(str(ipaddress.ip_address(match[1].decode('ascii'))), int(match[2] or 53))
    except ValueError:
        return None


def _name(octets: bytes) -> str:
    """A name in any form that NSD accepts: the zone may have been added by hand."""
    text = octets.decode('ascii') if octets.isascii() else ''.join(
        chr(octet) if octet < 0x80 else f'\\{octet:03d}' for octet in octets)
    try:
        return names_and_rdata.name_of_server(text)
    except BackendRefused as error:
        raise BackendError(why=f'NSD lists a zone whose name cannot be parsed: {error}') from error
