"""PyMySQL's connection with less processor time for each statement and each connection.

A result begins with a packet for each of its columns, the same ones whenever a statement is executed.  Taking those of
a domain one by one, though each was parsed once only, was about half of the time of reading a domain.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pymysql.connections import Connection, MySQLResult
from pymysql.constants import COMMAND, FIELD_TYPE
from pymysql.converters import conversions
from pymysql.err import InternalError

#: What is kept of the columns of results, at most.
_MOST_COLUMNS = 1024
#: The first octet of a value that is NULL, and how many octets follow the first for the length of a long value.
_NULL, _LENGTHS = 251, {252: 2, 253: 3, 254: 8}


def _time_literal(value: datetime, mapping: Any = None) -> str:
    return f"'{value.isoformat(' ')}'"


#: PyMySQL reads a time with a regular expression, which takes 30 times as long as the standard library.
_CONVERSIONS = {**conversions, FIELD_TYPE.DATETIME: datetime.fromisoformat, datetime: _time_literal}


class MySQLConnection(Connection):
    """A connection that notices a peer that is gone, and can read the result of a statement later than it is sent.

    :param keepalive: seconds of silence before TCP's first probe, between two, and how many have no answer before the
        connection is closed; data that is not acknowledged closes it after the same total time
    """

    #: For connections that only prefer TLS.  PyMySQL creates a context for each and loads the system's certificates
    #: into it, though it does not check them then: 50 ms of processor time and 0.8 MiB.  While the database is down,
    #: connections fail all the time, and their contexts remain until the garbage collector runs.
    _shared_context: Any = None
    _result: Any
    _next_seq_id: int
    _read_timeout: float | None
    _write_timeout: float | None

    def __init__(self, *arguments: Any, keepalive: tuple[int, int, int], **options: Any) -> None:
        self._keepalive = keepalive
        super().__init__(*arguments, conv=_CONVERSIONS, **options)

    def send_query(self, statement: str, parameters: dict[str, Any]) -> None:
        """Have the server begin with a statement; nothing else may be sent before :meth:`receive_rows`."""
        self._execute_command(COMMAND.COM_QUERY, self.cursor().mogrify(statement, parameters))

    def receive_rows(self) -> tuple[Sequence[tuple[Any, ...]], int]:
        """The rows, and the number of warnings."""
        self.next_result()
        return self._result.rows, self._result.warning_count

    def connect(self, sock: Any = None) -> None:
        # PyMySQL's connect_timeout ends with TCP's handshake; a server that says nothing after that may be frozen.
        timeouts = self._read_timeout, self._write_timeout
        self._read_timeout = self._write_timeout = self.connect_timeout
        try:
            super().connect(sock)
        finally:
            self._read_timeout, self._write_timeout = timeouts
        if self.unix_socket is None:
            idle, interval, count = self._keepalive
            for name, value in (('TCP_KEEPIDLE', idle), ('TCP_KEEPINTVL', interval), ('TCP_KEEPCNT', count),
                                ('TCP_USER_TIMEOUT', 1000 * (idle + interval * count))):
                self._sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def _create_ssl_ctx(self, wanted: Any) -> Any:
        if wanted:  # files, which may have changed
            return super()._create_ssl_ctx(wanted)
        if MySQLConnection._shared_context is None:
            MySQLConnection._shared_context = super()._create_ssl_ctx(wanted)
        return MySQLConnection._shared_context

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        if unbuffered:
            return super()._read_query_result(unbuffered)
        self._result = None
        result = _Result(self)
        result.read()
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return result.affected_rows

    def _columns(self, count: int) -> bytes | None:
        """The packets of a result's columns; None if they have not all been received."""
        try:
            received = self._rfile.peek()
        except OSError:
            return None  # and reading raises it as PyMySQL's error
        end = 0
        for _ in range(count):
            header = received[end:end + 3]
            end += 4 + int.from_bytes(header, 'little')
            if len(header) < 3 or end > len(received):
                return None
        return received[:end]

    def _skip_columns(self, count: int, octets: bytes) -> None:
        self._rfile.read(len(octets))
        self._next_seq_id = (self._next_seq_id + count) % 256
        if not self._read_packet().is_eof_packet():
            raise InternalError('the columns of a result do not end')


class _Result(MySQLResult):
    """A result that looks its columns up by their packets, and reads each of its rows in one loop."""

    #: What :class:`MySQLResult` makes of columns, by their packets.
    _known: dict[tuple[str, int, bytes], tuple[Any, Any, Any]] = {}

    def _get_descriptions(self) -> None:
        connection = self.connection
        octets = connection._columns(self.field_count)
        # The packets hold their numbers in the conversation, so that those are right if the first one is.
        key = connection.encoding, connection._next_seq_id, octets
        found = self._known.get(key)
        if found is not None:
            self.fields, self.converters, self.description = found
            connection._skip_columns(self.field_count, octets)
            return
        super()._get_descriptions()
        if octets is not None:
            if len(self._known) >= _MOST_COLUMNS:
                self._known.clear()
            self._known[key] = self.fields, self.converters, self.description

    def _read_row_from_packet(self, packet: Any) -> tuple[Any, ...]:
        octets, position = packet.get_all_data(), 0
        row: list[Any] = []
        for encoding, converter in self.converters:
            length = octets[position]
            position += 1
            if length == _NULL:
                row.append(None)
                continue
            if length > _NULL:
                start, position = position, position + _LENGTHS[length]
                length = int.from_bytes(octets[start:position], 'little')
            start, position = position, position + length
            value = octets[start:position]
            if encoding is not None:
                value = value.decode(encoding)
            row.append(value if converter is None else converter(value))
        if position != len(octets):
            raise InternalError('a row has another length than its columns')
        return tuple(row)
