"""Knot DNS's control protocol, which knotc and libknot speak over knotd's unix socket.

A block has units of one command, and is answered with a block.  On the wire a unit begins with the octet 1, or 2 if it
continues the unit before it, and has items: an octet for the kind (16 and up), two octets for the length of the value,
and the value, a text.  The octet 3 ends a block, 0 the connection.  This is the format of libknot's
``knot_ctl_send()``, with the same numbers in libknot 3.2, 3.4 and 3.6.

It is implemented here instead of using libknot because knotd may take a minute to answer: under green threads a call
into a C library would block the whole process for so long.

knotd serves one connection at a time, so a connection that is kept open blocks all other clients.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Mapping, Sequence

from designate_pool.deadline import ClosedUnanswered, Deadline, connect, receive, send
from designate_pool.errors import BackendError

#: The values of a unit's items, by name.
Unit = Mapping[str, str]
Block = Sequence[Unit]

ITEMS = ('command', 'flags', 'error', 'section', 'item', 'id', 'zone', 'owner', 'ttl', 'type', 'data', 'filters')
LONGEST_VALUE = 0xffff

#: How much is sent before answers are read.  Both fit into the socket's buffers, so that neither side blocks because
#: the other does not read; the answer to a block takes several hundred octets there, however short it is.
OCTETS_AT_ONCE = 1 << 15
BLOCKS_AT_ONCE = 100

_END, _DATA, _EXTRA, _BLOCK = range(4)
_FIRST_ITEM = 16
_KINDS = {name: _FIRST_ITEM + number for number, name in enumerate(ITEMS)}
_NAMES = {kind: name for name, kind in _KINDS.items()}

#: Seconds that sending the last command may take.
_LAST_SECONDS = 0.2


class KnotControl:
    """A connection to the socket of knotd's control interface, a path; OSError when it cannot be made."""

    def __init__(self, path: str, deadline: Deadline) -> None:
        self._socket = connect(path, deadline)
        self._received = b''
        self._at = 0

    def ask(self, unit: Unit, deadline: Deadline) -> Iterator[Unit]:
        """Send one command; the units of its answer as they arrive.  The caller must read all of them."""
        send(self._socket, encode([unit]), deadline)
        return self._answer(deadline)

    def ask_each(self, blocks: Sequence[Block], deadline: Deadline) -> list[list[Unit]]:
        """Send all *blocks*, also when some fail; the answers in the same order."""
        answers: list[list[Unit]] = []
        for chunk in _chunks([encode(block) for block in blocks]):
            send(self._socket, b''.join(chunk), deadline)
            answers += [list(self._answer(deadline)) for _ in chunk]
        return answers

    def send_last(self, unit: Unit) -> None:
        """Send a last command without waiting for the answer."""
        with contextlib.suppress(OSError):
            send(self._socket, encode([unit]), Deadline(_LAST_SECONDS))

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

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
                raise ClosedUnanswered
            if kind > _BLOCK:
                raise BackendError(why="what answers at the control socket does not speak Knot's control protocol")
            if unit is not None:
                yield unit
            if kind == _BLOCK:
                return
            unit = {}

    def _receive(self, count: int, deadline: Deadline) -> bytes:
        while len(self._received) - self._at < count:
            self._received, self._at = self._received[self._at:] + receive(self._socket, deadline), 0
        start, self._at = self._at, self._at + count
        return self._received[start:self._at]


def encode(block: Block) -> bytes:
    """*block* in wire format.

    :raises ValueError: for a value that is empty or too long: knotd would ignore it, and ``conf-unset`` then means all
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
    """The first unit of *answer* with an item ``error``, the error message; None for no error."""
    return next((unit for unit in answer if 'error' in unit), None)


def _chunks(blocks: Sequence[bytes]) -> Iterator[list[bytes]]:
    """*blocks* in groups that can be sent before answers are read."""
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
