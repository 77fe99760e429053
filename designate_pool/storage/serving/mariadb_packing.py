"""Records of large zones on MariaDB, converted to wire form by the database, hundreds at a time.

PyMySQL parses rows in Python, which takes longer than all the rest of a transfer (``benchmarks/transfer``, "cold from
MariaDB" and "streamed from MariaDB").  Here the database concatenates the records of a block into one value (RFC 5936
section 3.4): the owner as one label and a pointer to the name in the question, type, class, TTL, length, rdata.
Records whose owner has several labels or escapes are returned as text besides; rare types and long rdata as rows.

Nearly all of the time is the database's, which uses one processor for a connection.  So after the first block a second
connection reads blocks as well, if it sees the same serial and the pool has connections to spare.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from designate_pool.model import ZoneBlock, ZoneHead, ZoneRecord
from designate_pool.storage.sql.database import Tx, see_one_state, spare_connection

#: Octets of a block, a little less than a message.
_SIZE = 60_000
#: Records of one status in the first block, and in any block at most: even if their names are as long as names can be
#: and there are as many of each status, the block is smaller than MariaDB's max_allowed_packet of 16 MiB.
_FIRST, _MOST = 500, 3500
#: Rdata of at least this length is read as a row.
_LONG = 256
#: Common types: the number, and the length of the rdata if it is fixed.
_TYPES = {'A': (1, 4), 'AAAA': (28, 16), 'CNAME': (5, None), 'TXT': (16, None), 'PTR': (12, None), 'MX': (15, None),
          'NS': (2, None), 'SRV': (33, None), 'CAA': (257, None), 'DS': (43, None), 'TLSA': (52, None),
          'SSHFP': (44, None), 'NAPTR': (35, None)}
_STATUSES = ('ACTIVE', 'PENDING', 'ERROR')
_BEFORE_ALL, _AFTER_ALL = '', 'g'
#: Warnings that a value was cut off: ER_CUT_VALUE_GROUP_CONCAT, ER_WARN_ALLOWED_PACKET_OVERFLOWED.
_CUT_OFF = {1260, 1301}

# Without the hint MariaDB scans from the first id of that status each time.
_BOUND = 'SELECT min(id) FROM ({}) AS bounds'.format(' UNION ALL '.join(
    f"""(SELECT id FROM records FORCE INDEX (ix_records_domain_id_status) WHERE domain_id = %(domain_id)s
    AND status = '{status}' AND id > %(after)s ORDER BY id LIMIT 1 OFFSET %(others)s)""" for status in _STATUSES))
_FOUND = f'''FROM records r STRAIGHT_JOIN recordsets s ON s.id = r.recordset_id WHERE r.domain_id = %(domain_id)s
AND r.status IN {_STATUSES} AND r.id > %(after)s AND r.id <= %(upto)s AND r.task <> 'DELETE' AND s.deleted = '0'
AND s.type <> 'SOA' '''


class _Statements(NamedTuple):
    """
    :ivar block: of a range: the number of records, the number of plain ones, and these as octets and as lines
    :ivar left: the records of a range that are not plain
    """

    block: str
    left: str


def blocks(tx: Tx, head: ZoneHead, read_head: Callable[[Tx], ZoneHead | None]) -> Generator[ZoneBlock, None, None]:
    """All records of a zone except its SOA, unordered, read as they are consumed.

    They are read in ranges of ids, each with records of every status: a status may change without a new serial, and
    then two connections see the record in different ones.  The transaction must see one state of the database.

    :param read_head: the zone's head in another transaction
    """
    ranges = _Ranges(head)
    where = ranges.next(tx)
    result = tx.exec_driver_sql(ranges.statements.block, where)
    cursor: Any = result.cursor
    yield ranges.block(tx, where, result.one(), cursor.warning_count)

    def sees_the_same(other: Tx) -> bool:
        see_one_state(other)
        return read_head(other) == head

    if ranges.are_left():
        with spare_connection(tx, sees_the_same) as spare:
            yield from _read_ahead([tx] if spare is None else [tx, spare], ranges)


class _Ranges:
    """The ranges of ids that are still to be read, each as the parameters of a statement."""

    def __init__(self, head: ZoneHead) -> None:
        self.statements = _statements(len(head.name), head.ttl)
        self._domain_id = head.domain_id
        self._after = _BEFORE_ALL
        self._size = _FIRST

    def are_left(self) -> bool:
        return self._after != _AFTER_ALL

    def next(self, tx: Tx) -> dict[str, Any]:
        where = {'domain_id': self._domain_id, 'after': self._after, 'others': self._size - 1}
        self._after = where['upto'] = tx.exec_driver_sql(_BOUND, where).scalar() or _AFTER_ALL
        return where

    def block(self, tx: Tx, where: dict[str, Any], row: Sequence[Any], warnings: int) -> ZoneBlock:
        """The block of a range.

        :param row: what the statement for it has returned, with so many *warnings*
        :raises ValueError: when MariaDB has cut off a value, of which it only warns
        """
        if warnings:
            listed = [code for _, code, _ in tx.exec_driver_sql('SHOW WARNINGS')]
            if len(listed) < warnings or not _CUT_OFF.isdisjoint(listed):  # max_error_count limits the list
                raise ValueError('MariaDB cuts off what it concatenates; is max_allowed_packet less than 16 MiB?')
        count, plain, octets, lines = row
        records = _records(lines or '')
        if count > plain:
            records += [tuple(each) for each in tx.exec_driver_sql(self.statements.left, where)]
        if octets:
            self._size = max(1, min(_MOST, (count - len(records)) * _SIZE // len(octets)))
        return ZoneBlock(count - len(records), octets or b'', records)


def _read_ahead(connections: Sequence[Tx], ranges: _Ranges) -> Generator[ZoneBlock, None, None]:
    """The blocks of *ranges*, one read by each connection while the caller uses those before."""
    reading: collections.deque[tuple[Tx, dict[str, Any]]] = collections.deque()

    def begin(tx: Tx) -> None:
        if ranges.are_left():
            where = ranges.next(tx)
            connection: Any = tx.connection.driver_connection
            connection.send_query(ranges.statements.block, where)
            reading.append((tx, where))

    is_whole = False
    try:
        for tx in connections:
            begin(tx)
        while reading:
            tx, where = reading.popleft()
            connection: Any = tx.connection.driver_connection
            (row,), warnings = connection.receive_rows()
            block = ranges.block(tx, where, row, warnings)
            begin(tx)
            yield block
        is_whole = True
    finally:
        if not is_whole:  # results may be on their way
            for tx in connections:
                tx.invalidate()


@functools.lru_cache(64)
def _statements(name: int, ttl: int) -> _Statements:
    """
    :param name: how long the zone's name is
    :param ttl: the zone's
    """
    kinds = ' '.join(f"WHEN '{kind}' THEN x'c00c{number:04x}0001'" for kind, (number, _) in _TYPES.items())
    plain = f'CASE WHEN length(r.wire) < {_LONG} THEN CASE s.type {kinds} END END'
    is_one_label = (f"locate('.', s.name) + {name} = length(s.name) AND locate('\\\\', s.name) = 0 "
                    f'AND length(s.name) <= {name + 64}')
    # For most records everything between owner and rdata is a constant.
    constants = ' '.join(f"WHEN s.type = '{kind}' AND s.ttl IS NULL AND length(r.wire) = {length} "
                         f"THEN x'c00c{number:04x}0001{ttl:08x}{length:04x}'"
                         for kind, (number, length) in _TYPES.items() if length)
    label = f'length(s.name) - {name + 1}'
    numbers = f"unhex(lpad(hex(coalesce(s.ttl, {ttl})), 8, '0')), unhex(lpad(hex(length(r.wire)), 4, '0'))"
    octets = (f'concat(char({label}), left(s.name, {label}), CASE {constants} ELSE concat({plain}, {numbers}) END, '
              'r.wire)')
    line = r"concat(s.name, ' ', s.type, ' ', coalesce(s.ttl, ''), ' ', hex(r.wire), '\n')"
    return _Statements(
        f"SELECT count(*), count({plain}), group_concat(CASE WHEN {is_one_label} THEN {octets} END SEPARATOR ''), "
        f"group_concat(CASE WHEN {is_one_label} THEN NULL WHEN {plain} IS NOT NULL THEN {line} END SEPARATOR '') "
        + _FOUND,
        f'SELECT s.name, s.type, s.ttl, r.wire {_FOUND} AND {plain} IS NULL')


def _records(lines: str) -> list[ZoneRecord]:
    found: list[ZoneRecord] = []
    for line in lines.splitlines():
        name, kind, ttl, digits = line.rsplit(' ', 3)
        found.append((name, kind, int(ttl) if ttl else None, bytes.fromhex(digits)))
    return found
