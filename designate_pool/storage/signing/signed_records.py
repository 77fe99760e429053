"""The records that the signer made: rows of the table of that name as :class:`designate_pool.model.SignedRecord`.

They belong to the contents that servers get, and to nothing that users see.  A row is known by a digest of what it
says, so that one is deleted without being read before.  Whoever writes has locked the domain.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from designate_pool.model import Domain, SignedDifference, SignedRecord, ZoneRecord
from designate_pool.protocol.names_and_rdata import lies_in
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql import bulk
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import chunks
from designate_pool.storage.sql.schema import ALIVE, records, recordsets, signed_records

TABLE = signed_records
_FIELDS = SignedRecord._fields
_COLUMNS = [TABLE.c[name] for name in _FIELDS]
#: Rows of one statement; chains that one looks into, of which SQLite takes 500 at most.
_AT_ONCE, _LOOKUPS, _ALL = 2000, 100, 2 ** 31 - 1
_DOMAIN = TABLE.c.domain_id == sa.bindparam('domain_id')
_NAMES: sa.BindParameter[Any] = sa.bindparam('names', expanding=True)
_SELECT = sa.select(*_COLUMNS)
_OF_ZONE = _SELECT.where(_DOMAIN)
_AT_NAMES = _OF_ZONE.where(TABLE.c.name.in_(_NAMES))
_DUE = [_OF_ZONE.where(condition).order_by(TABLE.c.expires_at).limit(sa.bindparam('most')) for condition in (
    TABLE.c.expires_at < sa.bindparam('before'), TABLE.c.expires_at > sa.bindparam('after'))]
_BY_KEY = _OF_ZONE.where(TABLE.c.key_tag == sa.bindparam('tag')).limit(sa.bindparam('most'))
# MariaDB reads the ends of each zone in the index alone.
_EXPIRIES = sa.select(TABLE.c.domain_id, sa.func.min(TABLE.c.expires_at), sa.func.max(TABLE.c.expires_at)).where(
    TABLE.c.domain_id.in_(sa.bindparam('ids', expanding=True))).group_by(TABLE.c.domain_id)
_LARGEST_TTL = sa.select(sa.func.max(recordsets.c.ttl)).where(
    recordsets.c.domain_id == sa.bindparam('domain_id'), recordsets.c.deleted == ALIVE)
_LAST_IN_CHAIN = _OF_ZONE.where(TABLE.c.chain_key.is_not(None)).order_by(TABLE.c.chain_key.desc()).limit(1)
_DELETE = sa.delete(TABLE).where(_DOMAIN, TABLE.c.digest.in_(sa.bindparam('digests', expanding=True)))
_UNSIGNED_AT_NAMES = (
    sa.select(recordsets.c.name, recordsets.c.type, recordsets.c.ttl, records.c.wire)
    .join_from(recordsets, records, records.c.recordset_id == recordsets.c.id)
    .where(recordsets.c.domain_id == sa.bindparam('domain_id'), recordsets.c.name.in_(_NAMES),
           recordsets.c.deleted == ALIVE, recordsets.c.type != 'SOA', zone_snapshot.IS_PRESENT))
_OWNERS = (sa.select(recordsets.c.name).where(
    recordsets.c.domain_id == sa.bindparam('domain_id'), recordsets.c.deleted == ALIVE,
    recordsets.c.name > sa.bindparam('after')).order_by(recordsets.c.name).limit(sa.bindparam('most')))
# Read in the index of the zone's recordsets.
_BELOW = (sa.select(recordsets.c.name).distinct()
          .where(recordsets.c.domain_id == sa.bindparam('domain_id'), recordsets.c.deleted == ALIVE,
                 recordsets.c.name.like(sa.bindparam('pattern'), escape='|'), recordsets.c.type != 'SOA',
                 sa.exists().where(records.c.recordset_id == recordsets.c.id, zone_snapshot.IS_PRESENT))
          .limit(sa.bindparam('most')))


def signed_at(tx: Tx, domain_id: str, names: Iterable[str]) -> list[SignedRecord]:
    """The records at names of a domain."""
    return [SignedRecord(*row) for part in chunks(names)
            for row in tx.execute(_AT_NAMES, {'domain_id': domain_id, 'names': part})]


def rrsets_at(tx: Tx, domain_id: str, names: Iterable[str]) -> list[ZoneRecord]:
    """The present records of users, without the SOA, at names of a domain."""
    return [row for part in chunks(names)
            for row in tx.execute(_UNSIGNED_AT_NAMES, {'domain_id': domain_id, 'names': part}).tuples()]


def owners(tx: Tx, domain_id: str, after: str, limit: int) -> list[str]:
    """The name of each of the domain's next recordsets, in order of their text after a name."""
    return list(tx.execute(_OWNERS, {'domain_id': domain_id, 'after': after, 'most': limit}).scalars())


def names_below(tx: Tx, domain_id: str, name: str, limit: int) -> list[str]:
    """The names below *name* with present records of users, *limit* at most; it reads the names of the whole zone."""
    escaped = name.replace('|', '||').replace('%', '|%').replace('_', '|_')
    ending = tx.execute(_BELOW, {'domain_id': domain_id, 'pattern': f'%.{escaped}', 'most': limit}).scalars().all()
    below = [other for other in ending if lies_in(other, name)]
    # Names with an escaped dot before took the places of others.
    return below if len(below) == len(ending) or len(ending) < limit else names_below(tx, domain_id, name, _ALL)[:limit]


def predecessors(tx: Tx, domain_id: str, keys: Iterable[bytes]) -> dict[bytes, SignedRecord]:
    """For keys in the chain of a domain: the NSEC or NSEC3 record with the greatest key below, or else with the
    greatest of all; none for a domain that has no chain."""
    before: dict[bytes, SignedRecord] = {}
    for part in chunks(keys, _LOOKUPS):
        parameters = {f'key{number}': key for number, key in enumerate(part)}
        for number, *row in tx.execute(_lookups(len(part), tx.dialect.name), {'domain_id': domain_id, **parameters}):
            before[part[number]] = SignedRecord(*row)
        if missing := [key for key in part if key not in before]:
            last = tx.execute(_LAST_IN_CHAIN, {'domain_id': domain_id}).first()
            before.update((key, SignedRecord(*last)) for key in missing if last is not None)
    return before


def due(tx: Tx, domain_id: str, before: int, after: int, limit: int) -> list[SignedRecord]:
    """The signatures of a zone that expire before a time, the first ones first; if there are none, those that expire
    after another one.  In seconds since the epoch."""
    of_zone = {'domain_id': domain_id, 'before': before, 'after': after, 'most': limit}
    return next(filter(None, ([SignedRecord(*row) for row in tx.execute(query, of_zone)] for query in _DUE)), [])


def by_key(tx: Tx, domain_id: str, key_tag: int, limit: int) -> list[SignedRecord]:
    """Signatures of a zone that a key has made."""
    return [SignedRecord(*row) for row in tx.execute(_BY_KEY, {'domain_id': domain_id, 'tag': key_tag, 'most': limit})]


def expiries(tx: Tx, ids: Sequence[str]) -> dict[str, tuple[int | None, int | None]]:
    """When the first and the last signature expire of those of these domains that have any, by id, in seconds since the
    epoch; None for records of the signer that are not signed."""
    return {domain_id: (first, last) for part in chunks(ids)
            for domain_id, first, last in tx.execute(_EXPIRIES, {'ids': part})}


def largest_ttl(tx: Tx, domain: Domain) -> int:
    """The largest TTL of a domain's recordsets, in seconds."""
    return max(domain.ttl, tx.execute(_LARGEST_TTL, {'domain_id': domain.id}).scalar() or 0)


def replace(tx: Tx, changes: Mapping[str, SignedDifference]) -> None:
    """Delete and insert records of domains, by the domain's id.

    :raises ValueError: when one that is to be deleted is not there
    """
    for domain_id, change in changes.items():
        for part in chunks(_digest(record) for record in change.gone):
            if tx.execute(_DELETE, {'domain_id': domain_id, 'digests': part}).rowcount != len(part):
                raise ValueError(f'signed records of domain {domain_id} that a change removes are not there')
    new = [(domain_id, _digest(record), *record) for domain_id, change in changes.items() for record in change.added]
    for rows in chunks(sorted(new, key=lambda row: row[:2]), _AT_ONCE):
        bulk.insert(tx, TABLE, {}, dict(zip(('domain_id', 'digest', *_FIELDS), zip(*rows))))


def purge(tx: Tx, ids: Collection[str], limit: int) -> int:
    """Delete records of these domains, *limit* at most; how many there were."""
    rows = tx.execute(sa.select(TABLE.c.domain_id, TABLE.c.digest).where(TABLE.c.domain_id.in_(ids))
                      .limit(limit)).all()
    for domain_id in {row.domain_id for row in rows}:
        for part in chunks(row.digest for row in rows if row.domain_id == domain_id):
            tx.execute(_DELETE, {'domain_id': domain_id, 'digests': part})
    return len(rows)


@functools.lru_cache(maxsize=_LOOKUPS)
def _lookups(count: int, dialect: str) -> sa.TextualSelect:
    """The statement that finds the predecessors of so many keys, each with the number of its key."""
    columns = ', '.join(column.name for column in _COLUMNS)
    one = (f'(SELECT {{0}} AS number, {columns} FROM {TABLE.name} WHERE domain_id = :domain_id '
           'AND chain_key < :key{0} ORDER BY chain_key DESC LIMIT 1)')
    if dialect == 'sqlite':  # which takes no parentheses around a part of a union; MariaDB plans a table from each
        one = f'SELECT * FROM {one} AS lookup{{0}}'
    text = sa.text(' UNION ALL '.join(one.format(number) for number in range(count)))
    return text.bindparams(*(sa.bindparam(f'key{number}', type_=sa.LargeBinary) for number in range(count))).columns(
        sa.column('number', sa.Integer), *(sa.column(column.name, column.type) for column in _COLUMNS))


def _digest(record: SignedRecord) -> str:
    head = f'{record.name} {record.type} '.encode()
    return hashlib.blake2b(head + record.wire, digest_size=16).hexdigest()
