"""The protocol between rndc and BIND's control channel.

A message is its length and the version 1, both of 32 bits, and a table.  An entry of a table is its name (with one
octet of length), type, length (32 bits) and value.  The first entry, ``_auth``, is the HMAC of all that follows it.
The first command on a connection is ``null``; the nonce in its answer is sent with every later command.  The formats
are those of ISC's ``lib/isccc`` (``cc.c``).

A command carries the time until which it may be carried out: the end of the caller's deadline by named's clock, which
the answer to ``null`` tells.  So a command that reaches named late, after an interruption, is not carried out any more.
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

from designate_pool.deadline import ClosedUnanswered, Deadline, abort, connect, receive, send
from designate_pool.errors import BackendError, BackendRefused, InvalidField
from designate_pool.model import Reason

#: The key algorithms, with their numbers on the wire.
ALGORITHMS = {'hmac-md5': 157, 'hmac-sha1': 161, 'hmac-sha224': 162, 'hmac-sha256': 163, 'hmac-sha384': 164,
              'hmac-sha512': 165}
LARGEST_ANSWER = 1 << 20
#: Seconds for which the first command may be carried out, while named's clock is unknown; named allows no more.
LIFETIME = 300
#: Seconds in which named closes a connection from an address that it does not accept.
REJECTED_WITHIN = 1.0

_BINARY, _TABLE = 1, 2
_QUOTED_OR_COMMENT = re.compile(r'("[^"]*")|/\*.*?\*/|//[^\n]*|#[^\n]*', re.DOTALL)
_KEY = re.compile(r'\bkey\s+"?(?P<name>[^\s"{;]+)"?\s*\{(?P<body>[^}]*)\}', re.IGNORECASE)
_CLAUSE = re.compile(r'\b(algorithm|secret)\s+"?([^\s";]+)"?\s*;', re.IGNORECASE)

Table = dict[str, Union[bytes, 'Table']]


@dataclasses.dataclass(frozen=True)
class RndcKey:
    """A key of the control channel; its name is not sent, it is only shown in messages."""

    name: str
    algorithm: str
    secret: bytes = dataclasses.field(repr=False)

    @classmethod
    def make(cls, name: str, algorithm: str, secret: str) -> RndcKey:
        """A key from its text form, with the secret in Base64; InvalidField for other values."""
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
        """The key *name*, or the first one, in a file that ``rndc-confgen -a`` has written; InvalidField for none."""
        try:
            with open(path, encoding='utf-8') as file:
                text = _QUOTED_OR_COMMENT.sub(lambda found: found[1] or ' ', file.read())
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidField(field='rndc_key_file', why=f'{path} cannot be read ({error})') from error
        for match in _KEY.finditer(text):
            if name is None or match['name'].lower() == name.lower():
                facts = {word.lower(): value for word, value in _CLAUSE.findall(match['body'])}
                if len(facts) == 2:
                    return cls.make(match['name'], facts['algorithm'], facts['secret'])
        raise InvalidField(field='rndc_key_file', why=f"{path} does not contain a key{f' {name}' if name else ''}")


@dataclasses.dataclass(frozen=True)
class RndcAnswer:
    """named's answer to a command: what it printed, and its result.

    :ivar result: 0 for success; the other numbers differ between releases of BIND
    :ivar error: the name of the result, such as ``already exists``
    """

    result: int
    error: str = ''
    text: str = ''

    @property
    def words(self) -> str:
        """The error or the text of the answer, for messages."""
        return ': '.join(part for part in (self.error, ' '.join(self.text.split())) if part) or f'result {self.result}'


class RndcChannel:
    """A connection to a control channel; OSError when named cannot be reached, or closes it."""

    def __init__(self, host: str, port: int, key: RndcKey, deadline: Deadline) -> None:
        self._key = key
        self._socket = connect((host, port), deadline)
        self._nonce: bytes | None = None
        self._ahead: float | None = None
        self._is_waiting = False
        try:
            control = _table(self._exchange('null', deadline), '_ctrl')
            self._nonce = _octets(control, '_nonce')
            self._ahead = _number(control, '_tim') - time.time()
        except BaseException:  # eventlet's Timeout too must not leave the socket open
            self.close()
            raise

    def ask(self, command: str, deadline: Deadline) -> RndcAnswer:
        """Send *command* and return the answer."""
        data = _table(self._exchange(command, deadline), '_data')
        return RndcAnswer(_number(data, 'result') if 'result' in data else 0, _text(data, 'err'), _text(data, 'text'))

    def close(self) -> None:
        """Close the connection."""
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
        self._is_waiting = True
        send(self._socket, struct.pack('>II', len(body) + 4, 1) + body, deadline)

        length, version = struct.unpack('>II', self._receive(8, deadline))
        if version != 1 or not 4 <= length <= LARGEST_ANSWER:
            raise BackendError(why='what answers on the control port does not speak the protocol of rndc')
        answer = _verified(self._key, self._receive(length - 4, deadline))
        self._is_waiting = False
        control = _table(answer, '_ctrl')
        if control.get('_ser') != serial or self._nonce not in (None, control.get('_nonce')):
            raise BackendError(why='the answer of the control channel belongs to another command')
        return answer

    def _expiry(self, deadline: Deadline) -> int:
        if self._ahead is None:
            return int(time.time()) + LIFETIME
        now = time.time() + self._ahead
        return max(int(now + deadline.left()), int(now) + 1)

    def _receive(self, count: int, deadline: Deadline) -> bytes:
        received = bytearray()
        while len(received) < count:
            received += receive(self._socket, deadline, count - len(received))
        return bytes(received)


def open_channel(host: str, port: int, key: RndcKey, deadline: Deadline) -> RndcChannel:
    """A new connection that commands can be sent on.

    named closes the connection without an answer if it does not accept the sender, but also while it is being stopped;
    so a connection is made twice before it counts as refused.

    :raises BackendRefused: when named does not accept the key, the address or the clock of this host
    """
    for _ in range(2):
        try:
            return RndcChannel(host, port, key, deadline)
        except (ClosedUnanswered, ConnectionResetError):
            continue
    raise BackendRefused(
        why=f'the control channel at {host} port {port} closed the connection without an answer: it does not accept'
            f" the key '{key.name}' ({key.algorithm}) or this host's address (see 'controls' in its named.conf), or the"
            ' clocks of the two hosts differ by more than 5 minutes', reason=Reason.BAD_KEY)


def rejects_address(host: str, port: int, deadline: Deadline) -> bool:
    """Whether named closes a connection before anything is sent, as it does if it does not accept our address."""
    try:
        with socket.create_connection((host, port), timeout=deadline.left()) as connected:
            connected.settimeout(min(REJECTED_WITHIN, deadline.left()))
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
    """The inverse of :func:`pack`, ValueError for anything else; the protocol nests tables two deep."""
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
    try:
        name, kind, auth, end = _entry(body, 0)
        if (name, kind) != ('_auth', _TABLE):
            raise ValueError('it is not signed')
        if not hmac.compare_digest(auth, pack(_signature(key, body[end:]))):
            raise ValueError('its signature is wrong')
        return unpack(body[end:])
    except ValueError as error:
        raise BackendError(why=f'the answer of the control channel is not signed correctly: {error}',
                           reason=Reason.BAD_KEY) from error


def _table(table: Table, name: str) -> Table:
    value = table.get(name)
    if not isinstance(value, dict):
        raise BackendError(why=f'the answer of the control channel lacks {name}')
    return value


def _number(table: Table, name: str) -> int:
    octets = _octets(table, name) or b''
    if not octets.isdigit():
        raise BackendError(why=f'the answer of the control channel has no {name}')
    return int(octets)


def _octets(table: Table, name: str) -> bytes | None:
    value = table.get(name)
    return value if isinstance(value, bytes) else None


def _text(table: Table, name: str) -> str:
    return (_octets(table, name) or b'').decode('utf-8', 'replace').rstrip('\0')
