"""Knot DNS's control protocol, which knotc and libknot speak over knotd's unix socket.

A block holds units of one command, and is answered with a block.  On the wire a unit is the octet 1, or 2 when it goes
on with what the unit before it began, and then its items: an octet for the kind, 16 and up, two octets for the length
of the value, and the value, a text.  The octet 3 ends a block, 0 the conversation.  It is the format of libknot's
``knot_ctl_send()``, whose numbers are the same in libknot 3.2, 3.4 and 3.6.

It is spoken from here, and not through libknot, because knotd may take a minute to answer: under green threads a call
into a C library would hold up the whole process for so long.

knotd serves one connection at a time, so one that is kept open keeps everybody else out.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence

from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError

#: A unit: the values of its items by their names.
Unit = Mapping[str, str]
Block = Sequence[Unit]

ITEMS = ('command', 'flags', 'error', 'section', 'item', 'id', 'zone', 'owner', 'ttl', 'type', 'data', 'filters')
LONGEST_VALUE = 0xffff

#: What is sent before answers are read.  It and its answers fit into the socket's buffers, so that neither side comes
#: to wait for the other to read; each block's answer takes up several hundred octets there, however short it is.
OCTETS_AT_ONCE = 1 << 15
BLOCKS_AT_ONCE = 100

_END, _DATA, _EXTRA, _BLOCK = range(4)
_FIRST_ITEM = 16
_KINDS = {name: _FIRST_ITEM + number for number, name in enumerate(ITEMS)}
_NAMES = {kind: name for name, kind in _KINDS.items()}

#: Seconds between two tries to connect while too many others wait for knotd.
_CROWDED_PAUSE = 0.05
#: Seconds that saying goodbye may take.
_FAREWELL = 0.2


class KnotControl:
    """A connection to knotd's control socket.

    :param path: of the socket
    :raises OSError: when it cannot be reached
    """

    def __init__(self, path: str, deadline: Deadline) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._received = b''
        self._at = 0
        try:
            self._connect(path, deadline)
        except BaseException:  # a timeout of eventlet's too must not leave the socket open
            self._socket.close()
            raise

    def ask(self, unit: Unit, deadline: Deadline) -> Iterator[Unit]:
        """Have one command carried out; the units of its answer as they come, all of which must be taken."""
        self._send(encode([unit]), deadline)
        return self._answer(deadline)

    def ask_each(self, blocks: Sequence[Block], deadline: Deadline) -> list[list[Unit]]:
        """Have each of *blocks* carried out, whatever becomes of the others; the answers in their order."""
        answers: list[list[Unit]] = []
        for chunk in _chunks([encode(block) for block in blocks]):
            self._send(b''.join(chunk), deadline)
            answers += [list(self._answer(deadline)) for _ in chunk]
        return answers

    def say(self, unit: Unit) -> None:
        """Send one command as the last, without waiting for its answer."""
        with contextlib.suppress(OSError):
            self._send(encode([unit]), Deadline(_FAREWELL))

    def close(self) -> None:
        self._socket.close()

    def _connect(self, path: str, deadline: Deadline) -> None:
        # A full queue is told at once, and not when a place in it is free.
        self._socket.setblocking(False)
        while True:
            try:
                self._socket.connect(path)
                return
            except BlockingIOError:
                time.sleep(min(_CROWDED_PAUSE, deadline.left()))

    def _send(self, octets: bytes, deadline: Deadline) -> None:
        self._socket.settimeout(deadline.left())
        self._socket.sendall(octets)

    def _answer(self, deadline: Deadline) -> Iterator[Unit]:
        unit: dict[str, str] | None = None
        while True:
            kind = self._receive(1, deadline)[0]
            if kind >= _FIRST_ITEM and unit is not None:
                value = self._receive(int.from_bytes(self._receive(2, deadline)), deadline)
                if kind in _NAMES:
                    unit[_NAMES[kind]] = value.decode('utf-8', 'replace')
                continue
            if kind == _END:
                raise ConnectionError('the connection was closed instead of an answer')
            if kind > _BLOCK:
                raise BackendError(why="what answers at the control socket does not speak Knot's control protocol")
            if unit is not None:
                yield unit
            if kind == _BLOCK:
                return
            unit = {}

    def _receive(self, count: int, deadline: Deadline) -> bytes:
        while len(self._received) - self._at < count:
            self._socket.settimeout(deadline.left())
            piece = self._socket.recv(1 << 16)
            if not piece:
                raise ConnectionError('the connection was closed instead of an answer')
            self._received, self._at = self._received[self._at:] + piece, 0
        start, self._at = self._at, self._at + count
        return self._received[start:self._at]


def encode(block: Block) -> bytes:
    """*block* in wire format.

    :raises ValueError: for a value that is empty or too long: knotd would take it for one that is left out, which in
        ``conf-unset`` means "all"
    """
    parts = []
    for unit in block:
        parts.append(bytes([_DATA]))
        for name, value in unit.items():
            octets = value.encode()
            if not 0 < len(octets) <= LONGEST_VALUE or b'\0' in octets:
                raise ValueError(f'{name} cannot be sent: {len(octets)} octets')
            parts.append(struct.pack('>BH', _KINDS[name], len(octets)) + octets)
    return b''.join(parts) + bytes([_BLOCK])


def error_in(answer: Sequence[Unit]) -> Unit | None:
    """The first unit of *answer* that tells an error; its item ``error`` has the words."""
    return next((unit for unit in answer if 'error' in unit), None)


def _chunks(blocks: Sequence[bytes]) -> Iterator[list[bytes]]:
    """*blocks* in groups that can be sent at once."""
    chunk: list[bytes] = []
    octets = 0
    for block in blocks:
        if chunk and (len(chunk) == BLOCKS_AT_ONCE or octets + len(block) > OCTETS_AT_ONCE):
            yield chunk
            chunk, octets = [], 0
        chunk.append(block)
        octets += len(block)
    if chunk:
        yield chunk
