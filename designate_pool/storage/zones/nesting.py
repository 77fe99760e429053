"""Which domains lie above or below a name, and the lock that keeps others from making some meanwhile.

What is below is found by ``reversed_name``, the labels from the root on: it is one range of an index.  A row that an
older program wrote has none; it is looked at one by one until :func:`fill` has come by.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import LostRace
from designate_pool.model import names
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import ALIVE, domains, name_locks, pool_attributes, recordsets
from designate_pool.storage.zones.domains import chunks

#: Locks that all names share; names of which one lies below the other share one.
LOCKS = 64
#: Recordsets that are named as being in the way.
_NAMED = 10
_LIVE = domains.c.deleted == ALIVE
#: What a zone has of one below it (RFC 1034 section 4.2.1, RFC 4035 section 2.4).
DELEGATION = ('NS', 'DS')


class Neighbour(NamedTuple):
    """A live domain above or below a name."""

    id: str
    name: str
    project_id: str


class Around(NamedTuple):
    """What there is around a name.

    :ivar above: the domains that it lies below
    :ivar below: the domains below it; of other projects' one at most where one project's were asked for
    :ivar is_server: whether it is the name of a pool's name server, or lies below one
    """

    above: tuple[Neighbour, ...]
    below: tuple[Neighbour, ...]
    is_server: bool

    def foreign(self, project_id: str) -> bool:
        """Whether some of them are another project's."""
        return any(each.project_id != project_id for each in (*self.above, *self.below))


def around(tx: Tx, name: str, project_id: str | None) -> Around:
    """What there is around *name*, in one statement.

    :param project_id: whose domains below are all wanted, and no more than one of others; None for everybody's
    """
    upper = names.above(name)
    found: dict[str, list[Neighbour]] = {'above': [], 'below': [], 'server': []}
    arms = [_arm('server', sa.select(sa.literal(''), pool_attributes.c.value, sa.literal('')).where(
        pool_attributes.c.key == 'name_server', pool_attributes.c.value.in_([name, *upper]))),
        *([_arm('above', _NEIGHBOURS.where(domains.c.name.in_(upper), _LIVE))] if upper else []),
        *(_arm('below', each) for each in _below(name, project_id))]
    for kind, *row in tx.execute(sa.union_all(*arms)):
        found[kind].append(Neighbour(*row))
    return Around(tuple(sorted(found['above'])), tuple(sorted(found['below'])), bool(found['server']))


def lock(tx: Tx, name: str) -> None:
    """Have nobody else make a domain above, at or below *name* until this transaction ends, which is to be soon.

    :raises LostRace: when another transaction has used the lock for the first time meanwhile
    """
    if tx.dialect.name == 'sqlite':
        return  # it has one writer
    suffixes = names.at_or_above(name)
    # Names below one another end in the same two labels; a name of one label may lie above any.
    numbers = [zlib.crc32(suffixes[-2].encode()) % LOCKS] if len(suffixes) > 1 else list(range(LOCKS))
    there = tx.execute(sa.select(name_locks.c.number).where(name_locks.c.number.in_(numbers))
                       .order_by(name_locks.c.number).with_for_update()).scalars().all()
    missing = sorted(set(numbers) - set(there))
    if missing:
        try:
            tx.execute(sa.insert(name_locks), [{'number': number} for number in missing])
        except exc.IntegrityError as error:
            raise LostRace(what=f'name {name}') from error


def in_the_way(tx: Tx, domain_ids: list[str], name: str) -> list[tuple[str, str]]:
    """Name and type of some recordsets of these domains that lie at or below *name*, its delegation aside."""
    # Without escaped backslashes, one that is left before the dot escapes it: then the dot is inside a label.
    bare, suffix = sa.func.replace(recordsets.c.name, r'\\', ''), name.replace(r'\\', '')
    found = tx.execute(
        sa.select(recordsets.c.name, recordsets.c.type)
        .where(recordsets.c.domain_id.in_(domain_ids), recordsets.c.deleted == ALIVE,
               sa.or_(sa.and_(recordsets.c.name == name, recordsets.c.type.not_in(DELEGATION)),
                      sa.and_(recordsets.c.name.endswith(f'.{name}', autoescape=True),
                              sa.not_(bare.endswith(f'\\.{suffix}', autoescape=True)))))
        .order_by(recordsets.c.name, recordsets.c.type).limit(_NAMED))
    return [(row[0], row[1]) for row in found]


def live(tx: Tx, wanted: list[str]) -> list[Neighbour]:
    """The live domains of these names."""
    return [Neighbour(*row) for part in chunks(dict.fromkeys(wanted))
            for row in tx.execute(_NEIGHBOURS.where(domains.c.name.in_(part), _LIVE))]


def fill(tx: Tx, limit: int) -> int:
    """Complete *limit* rows of an older program at most; how many there were."""
    rows = tx.execute(sa.select(domains.c.id, domains.c.name).where(domains.c.reversed_name.is_(None))
                      .order_by(domains.c.id).limit(limit)).all()
    if rows:
        tx.execute(sa.update(domains).where(domains.c.id == sa.bindparam('key'))
                   .values(reversed_name=sa.bindparam('reversed')),
                   [{'key': row.id, 'reversed': names.from_the_root(row.name)} for row in rows])
    return len(rows)


_NEIGHBOURS = sa.select(domains.c.id, domains.c.name, domains.c.project_id)


def _below(name: str, project_id: str | None) -> list[sa.Select[Any]]:
    prefix = names.from_the_root(name)
    is_below = sa.or_(
        sa.and_(domains.c.reversed_name > prefix, domains.c.reversed_name < f'{prefix[:-1]}/'),  # '/' comes after '.'
        sa.and_(domains.c.reversed_name.is_(None), domains.c.name.endswith(f'.{name}', autoescape=True)))
    every = _NEIGHBOURS.where(is_below, _LIVE)
    if project_id is None:
        return [every]
    return [every.where(domains.c.project_id == project_id), every.where(domains.c.project_id != project_id).limit(1)]


def _arm(kind: str, statement: sa.Select[Any]) -> sa.Select[Any]:
    return sa.select(sa.literal(kind), statement.subquery())
