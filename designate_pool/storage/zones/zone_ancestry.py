"""The domains above and below a name, and the lock against concurrent creation of more.

Domains below a name are found by ``reversed_name``, the labels in order from the root: they are one range of its index.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from designate_pool.errors import LostRace
from designate_pool.model import Task, names
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import chunks, lost_race
from designate_pool.storage.sql.pages import ESCAPE, escaped
from designate_pool.storage.sql.schema import ALIVE, domains, name_locks, pool_attributes, records, recordsets
from designate_pool.storage.zones.domains import NEWEST_FIRST

#: Rows of ``name_locks``; a name and the names below it use the same one.
LOCKS = 64
#: Recordsets in an error message, at most.
_NAMED = 10
_LIVE = domains.c.deleted == ALIVE
#: Types that delegate a zone, and belong to the zone above it (RFC 1034 section 4.2.1, RFC 4035 section 2.4).
DELEGATION = ('NS', 'DS')
#: Types of glue: at the names that the NS records of a delegation point to, it belongs to the zone above too.
GLUE = ('A', 'AAAA')


class Neighbour(NamedTuple):
    """A live domain above or below a name."""

    id: str
    name: str
    project_id: str


class Neighbourhood(NamedTuple):
    """The live domains above and below a name.

    :ivar below: at most one domain of other projects if those of one project were asked for
    :ivar is_server: whether the name is that of a pool's name server, or lies above or below one
    :ivar former: the id of the last domain that had the name and was deleted; '' if there was none
    """

    above: tuple[Neighbour, ...]
    below: tuple[Neighbour, ...]
    is_server: bool
    former: str = ''


def neighbourhood(tx: Tx, name: str, project_id: str | None) -> Neighbourhood:
    """The live domains above and below *name*, and the last one that had it, in one statement.

    :param project_id: read all domains below that are of this project, and only one of another; None for all
    """
    upper = names.above(name)
    neighbours: dict[str, list[Neighbour]] = {'above': [], 'below': [], 'server': [], 'former': []}
    prefix = names.from_the_root(name)
    for kind, *row in tx.execute(_AROUND if project_id is None else _AROUND_OF_PROJECT, {
            'name': name, 'upper': upper, 'at_or_above': [name, *upper], 'first': prefix, 'end': f'{prefix[:-1]}/',
            'server_below': f'%.{escaped(name)}',
            **({} if project_id is None else {'project_id': project_id})}):
        neighbours[kind].append(Neighbour(*row))
    return Neighbourhood(tuple(sorted(neighbours['above'])), tuple(sorted(neighbours['below'])),
                         bool(neighbours['server']), neighbours['former'][0].id if neighbours['former'] else '')


def with_neighbours(tx: Tx, wanted: Sequence[str]) -> set[str]:
    """Those of a chunk of names above or below which there is a live domain, or a name server at, above or below,
    or that a deleted domain had.

    They are found by one statement, and at most one domain below each is read.
    """
    upper = {name: names.above(name) for name in wanted}
    every = {name_ for name, above in upper.items() for name_ in (name, *above)}
    near: dict[str, set[str]] = {'domain': set(), 'former': set()}
    servers = set(tx.execute(_NAME_SERVERS).scalars())
    above_servers = {upper_ for server in servers for upper_ in names.above(server)}
    for part in chunks(every):
        for kind, name_ in tx.execute(sa.union_all(
                _labelled('domain', sa.select(domains.c.name).where(domains.c.name.in_(part), _LIVE)),
                _labelled('former', sa.select(domains.c.name).where(
                    domains.c.name.in_([name_ for name_ in part if name_ in upper]), ~_LIVE)))):
            near[kind].add(name_)
    below = _any_below(tx, [names.from_the_root(name) for name in wanted])
    return {name for number, name in enumerate(wanted)
            if number in below or name in near['former'] or not near['domain'].isdisjoint(upper[name])
            or name in above_servers or not servers.isdisjoint([name, *upper[name]])}


def _any_below(tx: Tx, prefixes: list[str]) -> set[int]:
    """The numbers of the prefixes below which there is a live domain."""
    ends = [f'{prefix[:-1]}/' for prefix in prefixes]
    if tx.dialect.name == 'postgresql':
        return set(tx.execute(_ANY_BELOW, {'alive': ALIVE, 'first': prefixes, 'end': ends}).scalars())
    return set(tx.execute(_any_of(len(prefixes)), {
        'alive': ALIVE, **{f'from{number}': prefix for number, prefix in enumerate(prefixes)},
        **{f'to{number}': end for number, end in enumerate(ends)}}).scalars())


#: PostgreSQL plans each of many queries by itself, for a fifth of a millisecond.  By the order it takes the index: it
#: expects to find a row soon, and there is none.
_ANY_BELOW = sa.text(
    'SELECT n - 1 FROM unnest(CAST(:first AS text[]), CAST(:end AS text[])) WITH ORDINALITY AS p (p_first, p_end, n), '
    'LATERAL (SELECT 1 FROM domains WHERE reversed_name > p_first AND reversed_name < p_end AND deleted = :alive '
    'ORDER BY reversed_name LIMIT 1) AS below')


@functools.lru_cache(maxsize=32)
def _any_of(count: int) -> sa.TextClause:
    """As text, since to compile it takes longer."""
    below = ('SELECT {n} AS n FROM domains '
             'WHERE reversed_name > :from{n} AND reversed_name < :to{n} AND deleted = :alive')
    return sa.text(' UNION ALL '.join(f'SELECT n FROM ({below.format(n=number)} LIMIT 1) AS p{number}'
                                      for number in range(count)))


def lock(tx: Tx, *wanted: str) -> None:
    """Keep others from creating a domain above, at or below these names until this transaction ends, which should be
    soon.

    :raises LostRace: when another transaction has inserted a lock's row first
    """
    if tx.dialect.name == 'sqlite':
        return  # it has one writer
    numbers = sorted({number for name in wanted for number in _locks_of(name)})
    if len(numbers) > 1:  # in their order, so that two transactions cannot deadlock
        tx.execute(sa.select(name_locks.c.number).where(name_locks.c.number.in_(numbers))
                   .order_by(name_locks.c.number).with_for_update()).all()
    locked = tx.execute(_LOCK, {'numbers': numbers}).rowcount
    if locked < len(numbers):
        present = tx.execute(sa.select(name_locks.c.number).where(name_locks.c.number.in_(numbers))).scalars().all()
        if len(present) > locked:
            raise LostRace(what=f'name {wanted[0]}')
        with lost_race(f'name {wanted[0]}'):
            tx.execute(sa.insert(name_locks), [{'number': number} for number in sorted(set(numbers) - set(present))])


def _locks_of(name: str) -> Iterable[int]:
    """Names below one another end in the same two labels; a name of one label may lie above any."""
    suffixes = names.at_or_above(name)
    return [zlib.crc32(suffixes[-2].encode()) % LOCKS] if len(suffixes) > 1 else range(LOCKS)


def recordsets_at_or_below(tx: Tx, domain_ids: list[str], name: str, *conditions: Any,
                           most: int = _NAMED) -> list[tuple[str, str]]:
    """Name and type of some recordsets of these domains at or below *name*, except for the delegation of *name*.

    :param conditions: further ones of the recordsets
    """
    # Without escaped backslashes, a backslash before the dot escapes the dot, which is then inside a label.
    bare, suffix = sa.func.replace(recordsets.c.name, r'\\', ''), name.replace(r'\\', '')
    matches = tx.execute(
        sa.select(recordsets.c.name, recordsets.c.type)
        .where(recordsets.c.domain_id.in_(domain_ids), recordsets.c.deleted == ALIVE, *conditions,
               sa.or_(sa.and_(recordsets.c.name == name, recordsets.c.type.not_in(DELEGATION)),
                      sa.and_(recordsets.c.name.endswith(f'.{name}', autoescape=True),
                              sa.not_(bare.endswith(f'\\.{suffix}', autoescape=True)))))
        .order_by(recordsets.c.name, recordsets.c.type).limit(most))
    return [(row[0], row[1]) for row in matches]


def targets_of_delegations(tx: Tx, domain_ids: list[str], cuts: list[str]) -> set[str]:
    """What the NS records of these domains at *cuts* point to, in lower case."""
    return {data.lower() for data in tx.execute(
        sa.select(records.c.data).join(recordsets, recordsets.c.id == records.c.recordset_id)
        .where(recordsets.c.domain_id.in_(domain_ids), recordsets.c.name.in_(cuts), recordsets.c.type == 'NS',
               recordsets.c.deleted == ALIVE, records.c.task != Task.DELETE)).scalars()}


def no_glue(tx: Tx, domain_ids: list[str], name: str) -> Any:
    """The condition that a recordset is no glue of the delegation of *name* in these domains."""
    targets = sorted(targets_of_delegations(tx, domain_ids, [name]))
    return sa.not_(sa.and_(recordsets.c.name.in_(targets), recordsets.c.type.in_(GLUE)))


def live_domains(tx: Tx, wanted: list[str]) -> list[Neighbour]:
    """The live domains that have one of these names."""
    return [Neighbour(*row) for part in chunks(dict.fromkeys(wanted))
            for row in tx.execute(_LIVE_NEIGHBOURS, {'names': part})]


_NAME_SERVERS = sa.select(pool_attributes.c.value).where(pool_attributes.c.key == 'name_server').distinct()
_NEIGHBOURS = sa.select(domains.c.id, domains.c.name, domains.c.project_id)
_LIVE_NEIGHBOURS = _NEIGHBOURS.where(domains.c.name.in_(sa.bindparam('names', expanding=True)), _LIVE)
_LOCK = (sa.update(name_locks).where(name_locks.c.number.in_(sa.bindparam('numbers', expanding=True)))
         .values(uses=name_locks.c.uses + 1))
# '/' comes after '.', so that 'end' is the name with '/' as its last character.
_BELOW = _NEIGHBOURS.where(_LIVE, domains.c.reversed_name > sa.bindparam('first'),
                           domains.c.reversed_name < sa.bindparam('end'))


def _labelled(kind: str, statement: sa.Select[Any]) -> sa.Select[Any]:
    return sa.select(sa.literal(kind), statement.subquery())


def _around(*below: sa.Select[Any]) -> sa.CompoundSelect[Any]:
    return sa.union_all(
        _labelled('server', sa.select(sa.literal(''), pool_attributes.c.value, sa.literal('')).where(
            pool_attributes.c.key == 'name_server',
            sa.or_(pool_attributes.c.value.in_(sa.bindparam('at_or_above', expanding=True)),
                   pool_attributes.c.value.like(sa.bindparam('server_below'), escape=ESCAPE)))),
        _labelled('above', _NEIGHBOURS.where(domains.c.name.in_(sa.bindparam('upper', expanding=True)), _LIVE)),
        _labelled('former', _NEIGHBOURS.where(domains.c.name == sa.bindparam('name'), ~_LIVE)
                  .order_by(*NEWEST_FIRST).limit(1)),
        *(_labelled('below', neighbour_name) for neighbour_name in below))


_AROUND = _around(_BELOW)
_AROUND_OF_PROJECT = _around(_BELOW.where(domains.c.project_id == sa.bindparam('project_id')),
                             _BELOW.where(domains.c.project_id != sa.bindparam('project_id')).limit(1))
