"""Records of large zones on MariaDB, converted to wire form by the database, hundreds at a time.

PyMySQL parses rows in Python, which takes longer than all the rest of a transfer (``benchmarks/transfer``, "cold from
MariaDB" and "streamed from MariaDB").  Here the database concatenates the records of a block into one value (RFC 5936
section 3.4): the owner as one label and a pointer to the name in the question, type, class, TTL, length, rdata.
Records whose owner has several labels or escapes are returned as text besides; rare types and long rdata as rows.
"""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import NamedTuple

from designate_pool.model import ZoneBlock, ZoneHead, ZoneRecord
from designate_pool.storage.sql.database import Tx

#: Octets of a block, a little less than a message; records of the first block, and of any block at most.
_SIZE, _FIRST, _MOST = 60_000, 500, 4000
#: Rdata of at least this length is read as a row.
_LONG = 256
#: Common types: the number, and the length of the rdata if it is fixed.
_TYPES = {'A': (1, 4), 'AAAA': (28, 16), 'CNAME': (5, None), 'TXT': (16, None), 'PTR': (12, None), 'MX': (15, None),
          'NS': (2, None), 'SRV': (33, None), 'CAA': (257, None), 'DS': (43, None), 'TLSA': (52, None),
          'SSHFP': (44, None), 'NAPTR': (35, None)}
_STATUSES = ('ACTIVE', 'PENDING', 'ERROR')
_BEFORE_ALL, _AFTER_ALL = '', 'g'

# Without the hint MariaDB scans from the first id of that status each time.
_BOUND = '''SELECT id FROM records FORCE INDEX (ix_records_domain_id_status) WHERE domain_id = %(domain_id)s
AND status = %(status)s AND id > %(after)s ORDER BY id LIMIT 1 OFFSET %(others)s'''
_FOUND = '''FROM records r STRAIGHT_JOIN recordsets s ON s.id = r.recordset_id WHERE r.domain_id = %(domain_id)s
AND r.status = %(status)s AND r.id > %(after)s AND r.id <= %(upto)s AND r.task <> 'DELETE' AND s.deleted = '0'
AND s.type <> 'SOA' '''


class _Statements(NamedTuple):
    """
    :ivar block: of a range: the number of records, the number of plain ones, and these as octets and as lines
    :ivar left: the records of a range that are not plain
    """

    block: str
    left: str


def blocks(tx: Tx, head: ZoneHead) -> Generator[ZoneBlock, None, None]:
    """All records of a zone except its SOA, unordered, read as they are consumed.

    They are read in ranges of ids, by the index (domain_id, status, id).  The transaction must see one state of the
    database.
    """
    statements = _statements(len(head.name), head.ttl)
    size = _FIRST
    for status in _STATUSES:
        after = _BEFORE_ALL
        while after != _AFTER_ALL:
            where = {'domain_id': head.domain_id, 'status': status, 'after': after, 'others': size - 1}
            after = where['upto'] = tx.exec_driver_sql(_BOUND, where).scalar() or _AFTER_ALL
            count, plain, octets, lines = tx.exec_driver_sql(statements.block, where).one()
            records = _records(lines or '')
            if count > plain:
                records += [tuple(row) for row in tx.exec_driver_sql(statements.left, where)]
            if count:
                yield ZoneBlock(count - len(records), octets or b'', records)
            if octets:
                size = max(1, min(_MOST, (count - len(records)) * _SIZE // len(octets)))


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
