"""The protocol that rndc speaks with BIND's control channel.

A message is its length and the version 1, both of 32 bits, and then a table: entries of a name (one octet of length),
a type, a length of 32 bits and a value.  The entry ``_auth`` comes first and holds the HMAC of all that follows it.
The first command on a connection is ``null``; the nonce in its answer goes into every later command.  The formats are
those of ISC's ``lib/isccc`` (``cc.c``).  A connection takes any number of commands, one after the other.

A command says until when it may be carried out.  By named's clock, which the answer to ``null`` tells, that is as long
as somebody waits for its answer: one that reaches a named which was away meanwhile is not carried out any more.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import hmac
import random
import re
import socket
import struct
import time
from collections.abc import Mapping
from typing import Union

from designate_pool.deadline import Deadline, abort
from designate_pool.errors import BackendError, BackendRefused, InvalidField
from designate_pool.model import Reason

#: The key algorithms, with their numbers on the wire.
ALGORITHMS = {'hmac-md5': 157, 'hmac-sha1': 161, 'hmac-sha224': 162, 'hmac-sha256': 163, 'hmac-sha384': 164,
              'hmac-sha512': 165}
LARGEST_ANSWER = 1 << 20
#: Seconds for which a greeting may be answered, before its clock is known; named refuses any further apart.
LIFETIME = 300
#: What the error says when named hangs up on us.
NO_ANSWER = 'closed the connection without an answer'
#: Seconds for which a connection from an address that named does not accept may stay open.
TURNED_AWAY_WITHIN = 1.0

_BINARY, _TABLE = 1, 2
_QUOTED_OR_COMMENT = re.compile(r'("[^"]*")|/\*.*?\*/|//[^\n]*|#[^\n]*', re.DOTALL)
_KEY = re.compile(r'\bkey\s+"?(?P<name>[^\s"{;]+)"?\s*\{(?P<body>[^}]*)\}', re.IGNORECASE)
_CLAUSE = re.compile(r'\b(algorithm|secret)\s+"?([^\s";]+)"?\s*;', re.IGNORECASE)

Table = dict[str, Union[bytes, 'Table']]


class ClosedUnanswered(ConnectionError):
    """The server closed the connection instead of answering."""


@dataclasses.dataclass(frozen=True)
class RndcKey:
    """A key of the control channel; its name is for people, it is not sent."""

    name: str
    algorithm: str
    secret: bytes = dataclasses.field(repr=False)

    @classmethod
    def make(cls, name: str, algorithm: str, secret: str) -> RndcKey:
        """A key from text.

        :param secret: Base64
        :raises InvalidField: for an unknown algorithm, or a secret that is not Base64
        """
        if algorithm.lower() not in ALGORITHMS:
            raise InvalidField(field='rndc_key_algorithm',
                               why=f"'{algorithm}' is unknown; there are {', '.join(ALGORITHMS)}")
        try:
            raw = base64.b64decode(secret.strip(), validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidField(field='rndc_key_secret', why='it is not Base64') from error
        if not raw:
            raise InvalidField(field='rndc_key_secret', why='it is empty')
        return cls(name, algorithm.lower(), raw)

    @classmethod
    def read(cls, path: str, name: str | None = None) -> RndcKey:
        """The key *name*, or the first, of a file as ``rndc-confgen -a`` writes it.

        :raises InvalidField: when the file cannot be read or holds no such key
        """
        try:
            with open(path, encoding='utf-8') as file:
                text = _QUOTED_OR_COMMENT.sub(lambda found: found[1] or ' ', file.read())
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidField(field='rndc_key_file', why=f'{path} cannot be read ({error})') from error
        for found in _KEY.finditer(text):
            if name is None or found['name'].lower() == name.lower():
                facts = {word.lower(): value for word, value in _CLAUSE.findall(found['body'])}
                if len(facts) == 2:
                    return cls.make(found['name'], facts['algorithm'], facts['secret'])
        raise InvalidField(field='rndc_key_file', why=f"{path} holds no key{f' {name}' if name else ''}")


@dataclasses.dataclass(frozen=True)
class RndcAnswer:
    """What named says to a command.

    :ivar result: 0 for success; the other numbers differ between releases of BIND
    :ivar error: the result in words, such as ``already exists``
    :ivar text: what the command printed
    """

    result: int
    error: str = ''
    text: str = ''

    @property
    def words(self) -> str:
        return ': '.join(part for part in (self.error, ' '.join(self.text.split())) if part) or f'result {self.result}'


class RndcChannel:
    """A connection to a control channel.

    :raises BackendRefused: when named will not talk to us
    :raises OSError: when it cannot be reached
    """

    def __init__(self, host: str, port: int, key: RndcKey, deadline: Deadline) -> None:
        self._key = key
        self._socket = socket.create_connection((host, port), timeout=deadline.left())
        self._nonce: bytes | None = None
        self._ahead: float | None = None
        self._is_waiting = False
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            control = _table(self._exchange('null', deadline), '_ctrl')
            self._nonce = _octets(control, '_nonce')
            self._ahead = _seconds(control, '_tim') - time.time()
        except BaseException:  # a timeout of eventlet's too must not leave the socket open
            self.close()
            raise

    def ask(self, command: str, deadline: Deadline) -> RndcAnswer:
        """Have *command* carried out."""
        data = _table(self._exchange(command, deadline), '_data')
        code = _octets(data, 'result') or b'0'
        if not code.isdigit():
            raise BackendError(why='the control channel answered with a result that is no number')
        return RndcAnswer(int(code), _text(data, 'err'), _text(data, 'text'))

    def close(self) -> None:
        if self._is_waiting:
            abort(self._socket)
        else:
            self._socket.close()

    def _exchange(self, command: str, deadline: Deadline) -> Table:
        serial = str(random.getrandbits(32)).encode()
        control: Table = {'_ser': serial, '_tim': str(int(time.time())).encode(),
                          '_exp': str(self._expiry(deadline)).encode()}
        if self._nonce is not None:
            control['_nonce'] = self._nonce
        signed = pack({'_ctrl': control, '_data': {'type': command.encode('ascii')}})
        body = pack({'_auth': _signature(self._key, signed)}) + signed
        self._socket.settimeout(deadline.left())
        self._is_waiting = True
        self._socket.sendall(struct.pack('>II', len(body) + 4, 1) + body)

        length, version = struct.unpack('>II', self._receive(8, deadline))
        if version != 1 or not 4 <= length <= LARGEST_ANSWER:
            raise BackendError(why='what answers on the control port does not speak the protocol of rndc')
        answer = _verified(self._key, self._receive(length - 4, deadline))
        self._is_waiting = False
        control = _table(answer, '_ctrl')
        if control.get('_ser') != serial or self._nonce not in (None, control.get('_nonce')):
            raise BackendError(why='the control channel answered something that was not asked')
        return answer

    def _expiry(self, deadline: Deadline) -> int:
        """The last second in which a command may be carried out."""
        if self._ahead is None:
            return int(time.time()) + LIFETIME
        now = time.time() + self._ahead
        return max(int(now + deadline.left()), int(now) + 1)

    def _receive(self, count: int, deadline: Deadline) -> bytes:
        received = bytearray()
        while len(received) < count:
            self._socket.settimeout(deadline.left())
            piece = self._socket.recv(count - len(received))
            if not piece:
                raise ClosedUnanswered('the connection was closed instead of an answer')
            received += piece
        return bytes(received)


def connect(host: str, port: int, key: RndcKey, deadline: Deadline) -> RndcChannel:
    """A new connection on which commands can be given.

    named closes the connection without a word when it does not accept the sender.  It does the same when it is just
    being stopped, so it is asked twice before it is said to have refused.

    :raises BackendRefused: for a key, an address or a clock that named does not accept
    :raises OSError: when it cannot be reached
    """
    for _ in range(2):
        try:
            return RndcChannel(host, port, key, deadline)
        except (ClosedUnanswered, ConnectionResetError):
            continue
    raise BackendRefused(
        why=f'the control channel at {host} port {port} {NO_ANSWER}: it does not accept'
            f" the key '{key.name}' ({key.algorithm}) or this host's address (see 'controls' in its named.conf), or its"
            ' clock and ours are more than 5 minutes apart', reason=Reason.BAD_KEY)


def turns_us_away(host: str, port: int, deadline: Deadline) -> bool:
    """Whether named hangs up before anything is said: then it does not accept the address that we come from."""
    try:
        with socket.create_connection((host, port), timeout=deadline.left()) as connected:
            connected.settimeout(min(TURNED_AWAY_WITHIN, deadline.left()))
            return not connected.recv(1)
    except ConnectionResetError:
        return True
    except OSError:
        return False


def pack(table: Mapping[str, bytes | Table]) -> bytes:
    """*table* in wire format."""
    parts = []
    for name, value in table.items():
        kind, octets = (_BINARY, value) if isinstance(value, bytes) else (_TABLE, pack(value))
        parts += [struct.pack('>B', len(name)), name.encode('ascii'), struct.pack('>BI', kind, len(octets)), octets]
    return b''.join(parts)


def unpack(wire: bytes, depth: int = 16) -> Table:
    """The inverse of :func:`pack`.

    :param depth: how deep tables may lie in tables; those of the protocol lie two deep
    :raises ValueError: for what is not in wire format
    """
    if not depth:
        raise ValueError('nested too deep')
    table: Table = {}
    at = 0
    while at < len(wire):
        name, kind, value, at = _entry(wire, at)
        if kind == _TABLE:
            table[name] = unpack(value, depth - 1)
        elif kind == _BINARY:
            table[name] = value
        else:
            raise ValueError(f'an entry of type {kind}')
    return table


def _entry(wire: bytes, at: int) -> tuple[str, int, bytes, int]:
    """The entry at an offset: its name, type and value, and the offset after it."""
    try:
        start = at + 1 + wire[at]
        name = wire[at + 1:start].decode('ascii')
        kind, length = struct.unpack_from('>BI', wire, start)
    except (IndexError, struct.error) as error:
        raise ValueError('cut short') from error
    end = start + 5 + length
    if end > len(wire):
        raise ValueError('cut short')
    return name, kind, wire[start + 5:end], end


def _signature(key: RndcKey, signed: bytes) -> Table:
    digest = hmac.new(key.secret, signed, getattr(hashlib, key.algorithm.removeprefix('hmac-'))).digest()
    text = base64.b64encode(digest)
    if key.algorithm == 'hmac-md5':
        return {'hmd5': text[:22]}
    return {'hsha': struct.pack('>B88s', ALGORITHMS[key.algorithm], text)}


def _verified(key: RndcKey, body: bytes) -> Table:
    """The message in *body*, whose HMAC was made with *key*."""
    try:
        name, kind, auth, end = _entry(body, 0)
        if (name, kind) != ('_auth', _TABLE):
            raise ValueError('it is not signed')
        if not hmac.compare_digest(auth, pack(_signature(key, body[end:]))):
            raise ValueError('its signature is wrong')
        return unpack(body[end:])
    except ValueError as error:
        raise BackendError(why=f'the answer of the control channel cannot be trusted: {error}',
                           reason=Reason.BAD_KEY) from error


def _table(table: Table, name: str) -> Table:
    value = table.get(name)
    if not isinstance(value, dict):
        raise BackendError(why=f'the answer of the control channel lacks {name}')
    return value


def _seconds(table: Table, name: str) -> int:
    octets = _octets(table, name) or b''
    if not octets.isdigit():
        raise BackendError(why=f'the answer of the control channel has no {name}')
    return int(octets)


def _octets(table: Table, name: str) -> bytes | None:
    value = table.get(name)
    return value if isinstance(value, bytes) else None


def _text(table: Table, name: str) -> str:
    return (_octets(table, name) or b'').decode('utf-8', 'replace').rstrip('\0')
