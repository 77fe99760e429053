"""The protocol of NSD's control channel: ``NSDCT1 command``, and an answer that ends when NSD closes the connection.

Each command has a connection of its own.  NSD does nothing else from when it has taken a connection until it has read
the command and written the answer, so a command goes out at once, and long input in pieces whose answers are read
before the next: neither side ever waits for room to write.  The formats are those of NSD's ``remote.c``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import socket
import ssl
import time
from collections.abc import Iterator, Sequence

from designate_pool.deadline import Deadline, abort
from designate_pool.errors import BackendError, BackendRefused
from designate_pool.model import Reason

MAGIC = b'NSDCT1 '
END_OF_INPUT = b'\x04\n'
#: Octets that NSD reads of a command after the magic.
LONGEST_COMMAND = 1022
#: Octets at which NSD cuts a line that it prints, its newline too.
LONGEST_LINE = 1023
#: Octets of a name from which on what NSD prints around it may pass LONGEST_LINE.
LONG_NAME = 950
#: Octets of input that are sent before their answers are read: what either system keeps for a reader that is not there.
WINDOW = 16384

_TOTAL = re.compile(rb'(?:added|deleted) \d+ zones')


class HungUp(ConnectionError):
    """The server hung up."""


@dataclasses.dataclass(frozen=True)
class Tls:
    """The files of a control channel that speaks TLS, as ``nsd-control-setup`` makes them; read for each connection."""

    server_cert_file: str
    control_key_file: str
    control_cert_file: str

    def context(self) -> ssl.SSLContext:
        """What accepts that certificate alone, whatever the host is called, and presents ours.

        :raises BackendError: when a file cannot be read, or holds something else
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        try:
            context.load_verify_locations(self.server_cert_file)
        except OSError as error:
            raise BackendError(why=f'server_cert_file {self.server_cert_file} cannot be used ({error})') from error
        try:
            context.load_cert_chain(self.control_cert_file, self.control_key_file)
        except OSError as error:
            raise BackendError(why=f'control_cert_file {self.control_cert_file} and control_key_file '
                                   f'{self.control_key_file} cannot be used ({error})') from error
        return context


@dataclasses.dataclass(frozen=True)
class NsdAnswer:
    """What NSD says to one line of input.

    :ivar done: whether the line was carried out
    :ivar remark: what else it says, such as ``zone example.com already exists``
    """

    done: bool
    remark: str = ''


class NsdControl:
    """A control channel.

    :param address: the path of a unix socket, or host and port
    :param tls: None for a channel without TLS
    """

    def __init__(self, address: str | tuple[str, int], tls: Tls | None) -> None:
        self._address = address
        self._tls = tls
        self._place = address if isinstance(address, str) else f'{address[0]} port {address[1]}'

    @property
    def speaks_tls(self) -> bool:
        return self._tls is not None

    def ask(self, command: str, deadline: Deadline) -> list[str]:
        """Have *command* carried out; the lines of the answer.

        :raises BackendRefused: when NSD will not talk to us
        :raises OSError: when it cannot be reached, or hangs up in the middle
        """
        return [line.decode('latin-1') for line in self.lines(command, deadline)]

    def lines(self, command: str, deadline: Deadline) -> Iterator[bytes]:
        """Like :meth:`ask`, the lines as they come."""
        octets = command.encode('ascii')
        if len(octets) > LONGEST_COMMAND:
            raise BackendRefused(why=f'NSD takes no command of more than {LONGEST_COMMAND} octets: {command[:20]}…')
        with contextlib.closing(self._begin(MAGIC + octets + b'\n', deadline)) as talk:
            yield from talk.lines()

    def bulk(self, verb: str, names: Sequence[str], more: str, deadline: Deadline) -> list[NsdAnswer]:
        """Have *verb*, ``addzones`` or ``delzones``, carried out for each of *names*; what NSD says of each.

        :param names: zones as :func:`designate_pool.backends.nsd.zone_status.escaped` writes them
        :param more: what stands after each name
        :raises OSError: also when an answer does not come to its proper end
        """
        said: dict[str, NsdAnswer] = {}
        short = [name for name in dict.fromkeys(names) if len(name) < LONG_NAME]
        if short:
            said |= zip(short, self._in_windows(verb, short, more, deadline), strict=True)
        for name in names:
            if name not in said:
                said[name] = self._alone(verb, name, more, deadline)
        return [said[name] for name in names]

    def incarnation(self) -> object:
        """What is another one when NSD has been started anew; None where TLS tells a cut answer from a whole one."""
        if self._tls is not None or not isinstance(self._address, str):
            return None
        found = os.stat(self._address)
        return found.st_dev, found.st_ino, found.st_ctime_ns

    def _in_windows(self, verb: str, names: Sequence[str], more: str, deadline: Deadline) -> list[NsdAnswer]:
        size = max(1, WINDOW // (max(map(len, names)) + len(more) + 1))
        windows = [names[start:start + size] for start in range(0, len(names), size)]
        texts = [b''.join(f'{name}{more}\n'.encode('ascii') for name in window) for window in windows]
        texts[0] = MAGIC + verb.encode('ascii') + b'\n' + texts[0]
        texts[-1] += END_OF_INPUT
        said: list[NsdAnswer] = []
        with contextlib.closing(self._begin(texts[0], deadline)) as talk:
            lines = talk.lines()
            for number, window in enumerate(windows):
                if number:
                    talk.say(texts[number])
                said += [_verdict(name, lines) for name in window]
            if not _TOTAL.fullmatch(next(lines, b'')):
                raise HungUp('the answer lacks its end')
        return said

    def _alone(self, verb: str, name: str, more: str, deadline: Deadline) -> NsdAnswer:
        # The name's lines may be cut and so run into each other; the total at the end is still there.
        text = MAGIC + f'{verb}\n{name}{more}\n'.encode('ascii') + END_OF_INPUT
        with contextlib.closing(self._begin(text, deadline)) as talk:
            answer = ' '.join(line.decode('latin-1') for line in talk.lines())
        total = re.search(r'(?:added|deleted) ([01]) zones$', answer)
        if total is None:
            raise HungUp('the answer lacks its end')
        return NsdAnswer(total[1] == '1', answer)

    def _begin(self, text: bytes, deadline: Deadline) -> _Talk:
        """A conversation that begins with *text*, once the answer has begun.

        NSD hangs up without a word on what it does not accept.  It does the same when it is just being stopped, so it
        is asked twice before it is said to have refused.
        """
        for _ in range(2):
            talk = _Talk(self._connect(deadline), deadline)
            try:
                talk.say(text)
                talk.hear()
                return talk
            except HungUp:
                talk.close()
            except BaseException:  # a timeout of eventlet's too must not leave the socket open
                talk.close()
                raise
        if self._tls is None:
            raise BackendRefused(
                why=f'the control channel at {self._place} hung up without an answer: it may ask for TLS, as NSD does'
                    ' on all its control interfaces when an IP address stands first among them; then server_cert_file,'
                    ' control_key_file and control_cert_file are needed', reason=Reason.BAD_TLS)
        raise _refused_key()

    def _connect(self, deadline: Deadline) -> socket.socket:
        context = None if self._tls is None else self._tls.context()
        if isinstance(self._address, str):
            plain = _connected(self._address, deadline)
        else:
            plain = socket.create_connection(self._address, timeout=deadline.left())
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is None:
            return plain
        try:
            with _ssl_errors():
                plain.settimeout(deadline.left())
                # An answer ends with the connection: only TLS's own goodbye tells a whole one from one cut short.
                return context.wrap_socket(plain, suppress_ragged_eofs=False)
        except BaseException:  # a timeout of eventlet's too must not leave the socket open
            abort(plain)
            raise


class _Talk:
    """One command and its answer."""

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._socket = connected
        self._deadline = deadline
        self._piece = b''
        self._is_over = False

    def say(self, text: bytes) -> None:
        self._socket.settimeout(self._deadline.left())
        with _ssl_errors():
            self._socket.sendall(text)

    def hear(self) -> None:
        """Wait for the next piece of the answer; an empty one when it is over."""
        self._socket.settimeout(self._deadline.left())
        with _ssl_errors():
            self._piece = self._socket.recv(65536)
        self._is_over = not self._piece

    def lines(self) -> Iterator[bytes]:
        """The lines of the answer, from the piece heard last.

        :raises HungUp: when it ends in the middle of one
        """
        rest = b''
        while self._piece:
            *whole, rest = (rest + self._piece).split(b'\n')
            yield from whole
            if len(rest) > 16 * LONGEST_LINE:
                raise BackendError(why='what answers on the control channel does not end its line')
            self.hear()
        if rest and len(rest) < LONGEST_LINE:
            raise HungUp('the answer was cut short')
        if rest:
            yield rest

    def close(self) -> None:
        if self._is_over:
            self._socket.close()
        else:
            abort(self._socket)


def _connected(path: str, deadline: Deadline) -> socket.socket:
    """A connection to the unix socket *path*, which does not wait by itself while too many others are waiting."""
    while True:
        plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            plain.settimeout(deadline.left())
            plain.connect(path)
            return plain
        except BlockingIOError:
            plain.close()
            time.sleep(min(0.01, deadline.left()))
        except BaseException:  # a timeout of eventlet's too must not leave the socket open
            plain.close()
            raise


def _verdict(name: str, lines: Iterator[bytes]) -> NsdAnswer:
    """What NSD says of the next name of its input: remarks, and then a line that tells how it went."""
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
    """Has the errors of TLS, and a connection that is closed without a goodbye, raised as what they mean."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise BackendRefused(why=f'the certificate of the control channel is not the one in server_cert_file '
                                 f'({error.verify_message})', reason=Reason.BAD_TLS) from error
    except (ssl.SSLEOFError, ConnectionResetError, BrokenPipeError) as error:
        raise HungUp('it hung up') from error
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        if 'ALERT' in reason:
            raise _refused_key(reason) from error
        raise BackendError(why=f'what answers on the control channel does not speak TLS as NSD does ({reason})',
                           reason=Reason.BAD_TLS) from error


def _refused_key(reason: str = 'it hung up without an answer') -> BackendRefused:
    return BackendRefused(why='the control channel does not accept the key in control_key_file with its certificate in '
                              f'control_cert_file ({reason}); they must be of the pair that nsd-control-setup made on'
                              ' the server', reason=Reason.BAD_TLS)
