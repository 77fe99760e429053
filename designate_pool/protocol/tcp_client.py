"""Queries to one DNS server over TCP, with a deadline for each call, and signed if there is a key (RFC 8945).

An answer is accepted if its id and question are the query's, and if it is signed when the query was.  An answer with an
error RCODE may be unsigned, since it is never used as anything but a refusal.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import ssl
import struct
import time
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

import dns.exception
import dns.message
import dns.rcode
import dns.tsig

from designate_pool.deadline import Deadline, Stream, abort, connect, receive, send
from designate_pool.errors import BackendError, BackendRefused, BackendUnreachable, InvalidField
from designate_pool.model import Reason, TsigKey
from designate_pool.protocol import tls, tsig

#: How many queries are in flight on one connection.
WINDOW = 32
ALGORITHM = 'hmac-sha256'


def key_of(name: str | None, secret: str | None, algorithm: str | None = None) -> dns.tsig.Key | None:
    """A TSIG key; None without name and secret.

    :param secret: in Base64
    :param algorithm: ``hmac-sha256`` when None
    :raises InvalidField: when they are not a valid key
    """
    if name is None and secret is None:
        return None
    if not name or not secret:
        raise InvalidField(field='key_secret' if name else 'key_name', why='a key has a name and a secret')
    try:
        return tsig.key_from(TsigKey(name, algorithm or ALGORITHM, secret))
    except tsig.InvalidKey as error:
        raise InvalidField(field=f'key_{error.part}', why=str(error)) from None


@dataclasses.dataclass(frozen=True, slots=True)
class TcpPeer:
    """The address or host name of a server, and the key that is shared with it.

    :ivar context: for TLS, see :func:`designate_pool.protocol.tls.client_context`; None for none
    :ivar tls_name: which the server has to prove, if the context is strict
    """

    host: str
    port: int
    key: dns.tsig.Key | None = dataclasses.field(default=None, repr=False)
    context: ssl.SSLContext | None = None
    tls_name: str | None = None

    def ask(self, question: dns.message.Message, seconds: float) -> dns.message.Message:
        """The answer to *question*, with any RCODE.

        :raises BackendUnreachable: when there is no answer
        :raises BackendRefused: when the server rejects our signature, or its signature is wrong
        :raises BackendError: when the message is not an answer to the question, or not signed
        """
        with self.connect(Deadline(seconds)) as connection:
            connection.send(question)
            return connection.answer(question)

    def ask_each(self, questions: Iterable[dns.message.Message], seconds: float) -> Iterator[
            tuple[dns.message.Message, dns.message.Message]]:
        """Questions with their answers, in the order of arrival; many are in flight at once.

        :raises BackendError: as :meth:`ask`
        """
        unanswered = deque(questions)
        deadline = Deadline(seconds)
        while unanswered:
            answered = 0
            with self.connect(deadline) as connection:
                try:
                    for pair in connection.each(unanswered):
                        answered += 1
                        yield pair
                except BackendUnreachable:
                    # A server may close a connection after some number of queries.
                    if not answered or deadline.is_over:
                        raise

    def connect(self, deadline: Deadline) -> TcpConnection:
        """A connection to the server.

        :raises BackendUnreachable: when it cannot be connected to in time
        """
        return TcpConnection(self, deadline)


class TcpConnection:
    """A TCP connection that carries DNS messages, until *deadline*."""

    def __init__(self, peer: TcpPeer, deadline: Deadline) -> None:
        self._key = peer.key
        self._deadline = deadline
        self._received = bytearray()
        with _socket_errors(deadline):
            sock = connect((peer.host, peer.port), deadline)
            self._socket: Stream = sock
            if peer.context is not None:
                self._socket = stream = tls.TlsStream(sock, peer.context, peer.tls_name)
                try:
                    stream.handshake(deadline)
                except BaseException:  # eventlet's Timeout too
                    abort(stream)
                    raise

    def __enter__(self) -> TcpConnection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if error is None:
            self._socket.close()
        else:
            abort(self._socket)

    def send(self, *messages: dns.message.Message) -> None:
        """Sign and send *messages*."""
        octets = b''
        for message in messages:
            if self._key is not None:
                message.use_tsig(self._key)
            try:
                wire = message.to_wire()
            except dns.exception.TooBig:
                raise BackendRefused(why='a message would be longer than 65535 octets') from None
            octets += struct.pack('>H', len(wire)) + wire
        with _socket_errors(self._deadline):
            send(self._socket, octets, self._deadline)

    def receive(self) -> bytes:
        """The next message."""
        with _socket_errors(self._deadline):
            length, = struct.unpack('>H', self._take(2))
            return self._take(length)

    def answer(self, question: dns.message.Message) -> dns.message.Message:
        """The answer to *question*, which must be the only one in flight."""
        answer = parsed(self.receive(), question)
        if not question.is_response(answer):
            raise BackendError(why='the server answered something that was not asked')
        return answer

    def each(self, unanswered: deque[dns.message.Message]) -> Iterator[tuple[dns.message.Message, dns.message.Message]]:
        """Ask all of *unanswered*; a question stays in it until it is answered."""
        waiting: dict[int, dns.message.Message] = {}
        try:
            while unanswered or waiting:
                more = [unanswered.popleft() for _ in range(min(len(unanswered), WINDOW - len(waiting)))]
                for question in more:
                    while (number := random.SystemRandom().randrange(1 << 16)) in waiting:
                        pass
                    question.id = number
                    waiting[number] = question
                self.send(*more)
                wire = self.receive()
                question = waiting.get(int.from_bytes(wire[:2], 'big'), question)
                answer = parsed(wire, question)
                if not question.is_response(answer):
                    raise BackendError(why='the server answered something that was not asked')
                del waiting[question.id]
                yield question, answer
        finally:
            unanswered.extendleft(waiting.values())

    def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            self._received += receive(self._socket, self._deadline)
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken


def parsed(wire: bytes, question: dns.message.Message) -> dns.message.Message:
    """Parse *wire* as an answer to *question*, and check its signature.

    :raises BackendError: when it is not a DNS message, or its signature is missing or wrong
    """
    key = question.keyring
    with signature_errors(wire, key):
        if key is not None:
            unchecked = dns.message.from_wire(wire, keyring=False)
            if not unchecked.had_tsig:
                if unchecked.rcode() == dns.rcode.NOERROR:
                    raise BackendError(why='the answer is not signed', reason=Reason.NOT_SIGNED)
                return unchecked
        return dns.message.from_wire(wire, keyring=key or False, request_mac=question.mac)


@contextlib.contextmanager
def signature_errors(wire: bytes, key: Any) -> Iterator[None]:
    """Raise dnspython's errors about the signature or the form of *wire* as :class:`BackendError`."""
    try:
        yield
    except dns.tsig.PeerError:
        raise _key_refused(wire, key) from None
    except dns.tsig.BadTime:
        raise BackendError(why='the clocks differ: the answer is signed at a time too far from ours',
                           reason=Reason.BAD_TIME) from None
    except (dns.tsig.BadSignature, dns.tsig.BadKey, dns.tsig.BadAlgorithm, dns.message.UnknownTSIGKey):
        raise BackendRefused(why='the signature of the answer is wrong: it was made with another key or secret than '
                                 'ours, or the answer was changed on its way', reason=Reason.NOT_SIGNED) from None
    except (dns.exception.DNSException, ValueError, struct.error) as error:
        raise BackendError(why=f'the answer is not a DNS message ({error or type(error).__name__})') from None


def _key_refused(wire: bytes, key: dns.tsig.Key) -> BackendError:
    try:
        record = tsig.find(wire)
    except ValueError:  # dnspython takes more forms of the record
        record = None
    if record is None:
        return BackendError(why='the answer is not a DNS message (its TSIG record is malformed)')
    said = tsig.rejection(record, key, int(time.time()))
    kind = BackendError if said.reason is Reason.BAD_TIME else BackendRefused
    return kind(why=said.error, reason=said.reason)


@contextlib.contextmanager
def _socket_errors(deadline: Deadline) -> Iterator[None]:
    """Raise errors of a socket as :class:`BackendUnreachable`."""
    try:
        yield
    except TimeoutError:
        raise BackendUnreachable(why=str(deadline), reason=Reason.TIMEOUT) from None
    except OSError as error:
        raise BackendUnreachable(why=f'connection failed: {tls.failure(error)}') from None
