"""Which RRsets on a server that is fed by records are ours: those that we made there.

A key is ``name TAB type``, as in :mod:`designate_pool.protocol.rrset`.

What a dead domain has left is settled by :func:`look`, :func:`dead` and :func:`settle`.  Versions that noted nothing as
a domain was deleted left all of it: true on a server that was never told of the deletion, because the name lived again
by then, and false on all others, where everything was deleted but the zone's own NS records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import LostRace
from designate_pool.model import Status
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.schema import ALIVE, domains, owned_rrsets, pool_manager_status
from designate_pool.storage.zones.domains import chunks

TABLE = owned_rrsets
#: Rows of one INSERT.
_ROWS = 5000
_MINE, _HEIRS = TABLE.alias('mine'), TABLE.alias('heirs')
_HEIR_HAS_IT = sa.exists().where(_HEIRS.c.server_id == _MINE.c.server_id, _HEIRS.c.domain_id == sa.bindparam('heir'),
                                 _HEIRS.c.name == _MINE.c.name, _HEIRS.c.type == _MINE.c.type)
_FORMER, _NEW = domains.alias('former_domain'), domains.alias('new_domain')
_INHERIT = (TABLE.update().values(domain_id=sa.bindparam('heir')).where(
    TABLE.c.domain_id == sa.bindparam('former'), sa.exists().where(
        _FORMER.c.id == sa.bindparam('former'), _NEW.c.id == sa.bindparam('heir'),
        _FORMER.c.pool_id == _NEW.c.pool_id)))


class Estate(NamedTuple):
    """What a dead domain has left on a server.

    :ivar name: of the domain
    :ivar heir_id: the newest domain of that name in the same pool, unless it is dead as well; '' then
    :ivar was_deleted: whether the zone there is known to have been deleted, all but its own NS records
    """

    server_id: str
    domain_id: str
    name: str
    heir_id: str
    was_deleted: bool


def keys(tx: Tx, server_id: str, domain_id: str) -> frozenset[str]:
    """The keys of a domain's RRsets on a server that are ours."""
    return frozenset(f'{name}\t{rtype}' for name, rtype in
                     tx.execute(sa.select(TABLE.c.name, TABLE.c.type).where(_of(server_id, domain_id))))


def note(tx: Tx, server_id: str, domain_id: str, created: Collection[str], deleted: Collection[str]) -> None:
    """What was created is ours from now on, what was deleted is not; each may be so already.

    :raises LostRace: when somebody else notes the same at the same time
    """
    _remove(tx, server_id, domain_id, deleted)
    for part in chunks(sorted(set(created) - _known(tx, server_id, domain_id, created)), _ROWS):
        rows = [{'server_id': server_id, 'domain_id': domain_id, 'name': name, 'type': rtype}
                for name, _, rtype in (key.partition('\t') for key in part)]
        try:
            tx.execute(TABLE.insert(), rows)
        except exc.IntegrityError as error:
            raise LostRace(what='owned RRsets') from error


def inherit(tx: Tx, former_id: str, domain_id: str) -> int:
    """What a former domain of a name has on the servers of its pool is the new one's, if that is in the same pool.

    Otherwise what is left of the former would be nobody's there, served for ever and in the way of the new.
    """
    return tx.execute(_INHERIT, {'former': former_id, 'heir': domain_id}).rowcount


def forget(tx: Tx, server_id: str, domain_id: str | None = None) -> int:
    """Nothing of a domain on a server is ours any more; how much was.

    :param domain_id: None for all domains
    """
    wanted = TABLE.c.server_id == server_id if domain_id is None else _of(server_id, domain_id)
    return tx.execute(TABLE.delete().where(wanted)).rowcount


def purge_domains(tx: Tx, domain_ids: Iterable[str], limit: int) -> int:
    """Forget *limit* rows of these domains at most, whatever the server; how many there were."""
    rows = tx.execute(sa.select(TABLE.c.server_id, TABLE.c.domain_id, TABLE.c.name, TABLE.c.type)
                      .where(TABLE.c.domain_id.in_(list(domain_ids))).limit(limit)).all()
    found: dict[tuple[str, str], list[str]] = {}
    for server_id, domain_id, name, rtype in rows:
        found.setdefault((server_id, domain_id), []).append(f'{name}\t{rtype}')
    for (server_id, domain_id), some in found.items():
        _remove(tx, server_id, domain_id, some)
    return len(rows)


def look(tx: Tx, after_id: str, limit: int) -> tuple[list[str], str]:
    """The dead among *limit* domains by id after *after_id* that have left something, and where to go on; '' at the
    end."""
    seen = tx.execute(sa.select(domains.c.id, domains.c.deleted).where(domains.c.id > after_id)
                      .order_by(domains.c.id).limit(limit)).all()
    left = sa.exists().where(TABLE.c.domain_id == domains.c.id)
    found = [key for part in chunks(row.id for row in seen if row.deleted != ALIVE)
             for key in tx.execute(sa.select(domains.c.id).where(domains.c.id.in_(part), left)).scalars()]
    return found, seen[-1].id if len(seen) == limit else ''


def dead(tx: Tx, domain_id: str) -> list[Estate]:
    """What a dead domain, and others of its name and pool, have left that can be settled.

    One that has no heir, and whose deletion servers have not confirmed yet, needs it all still.
    """
    one, every = domains.alias('one'), domains.alias('every')
    of_name = (one.c.id == domain_id, every.c.name == one.c.name, every.c.pool_id == one.c.pool_id)
    is_waited_for = sa.exists().where(pool_manager_status.c.domain_id == every.c.id)
    left = sa.exists().where(TABLE.c.domain_id == every.c.id)
    rows = tx.execute(sa.select(every.c.id, every.c.name, every.c.status, is_waited_for.label('is_waited_for'),
                                left.label('left')).where(*of_name).order_by(every.c.generation.desc())).all()
    heir = rows[0].id if rows and rows[0].status is not Status.DELETED else ''
    return [Estate(server_id, row.id, row.name, heir,
                   not heir or _have_in_common(tx, server_id, row.id, [each.id for each in rows[:number]]))
            for number, row in enumerate(rows)
            if row.id != heir and row.left and (heir or not row.is_waited_for)
            for server_id in tx.execute(sa.select(TABLE.c.server_id).where(TABLE.c.domain_id == row.id)
                                        .distinct().order_by(TABLE.c.server_id)).scalars()]


def settle(tx: Tx, estate: Estate, limit: int) -> int:
    """Forget what is false of *limit* rows of an estate at most, have the heir own what is true; how many rows.

    What both have comes last, as it is what tells that the zone was deleted, should this be interrupted.
    """
    own_ns = sa.and_(_MINE.c.name == estate.name, _MINE.c.type == 'NS')
    wanted = sa.select(_MINE.c.name, _MINE.c.type).where(_MINE.c.server_id == estate.server_id,
                                                         _MINE.c.domain_id == estate.domain_id).limit(limit)
    if not estate.was_deleted:
        return _hand_on(tx, estate, wanted)
    return (_drop(tx, estate, wanted.where(~own_ns, ~_HEIR_HAS_IT))
            or bool(estate.heir_id) and (_hand_on(tx, estate, wanted.where(own_ns, ~_HEIR_HAS_IT))
                                         or _drop(tx, estate, wanted)))


def _have_in_common(tx: Tx, server_id: str, former_id: str, newer_ids: list[str]) -> bool:
    """Whether a newer domain of the name made something on a server that the former one had there.

    What is there is not a newer one's to make: it was gone by then, so all was.
    """
    common = sa.and_(_HEIRS.c.server_id == _MINE.c.server_id, _HEIRS.c.name == _MINE.c.name,
                     _HEIRS.c.type == _MINE.c.type, _HEIRS.c.domain_id.in_(newer_ids))
    return tx.execute(sa.select(sa.literal(1)).select_from(_MINE.join(_HEIRS, common)).where(
        _MINE.c.server_id == server_id, _MINE.c.domain_id == former_id).limit(1)).first() is not None


def _hand_on(tx: Tx, estate: Estate, wanted: sa.Select[Any]) -> int:
    found = _found(tx, estate, wanted)
    try:
        for where in _each(estate.server_id, estate.domain_id, found):
            tx.execute(TABLE.update().where(where).values(domain_id=estate.heir_id))
    except exc.IntegrityError as error:
        raise LostRace(what='owned RRsets') from error
    return len(found)


def _drop(tx: Tx, estate: Estate, wanted: sa.Select[Any]) -> int:
    found = _found(tx, estate, wanted)
    _remove(tx, estate.server_id, estate.domain_id, found)
    return len(found)


def _found(tx: Tx, estate: Estate, wanted: sa.Select[Any]) -> list[str]:
    return [f'{name}\t{rtype}' for name, rtype in tx.execute(wanted, {'heir': estate.heir_id})]


def _of(server_id: str, domain_id: str) -> sa.ColumnElement[bool]:
    return sa.and_(TABLE.c.server_id == server_id, TABLE.c.domain_id == domain_id)


def _known(tx: Tx, server_id: str, domain_id: str, wanted: Iterable[str]) -> set[str]:
    """The keys that are ours at the names of *wanted*."""
    return {f'{name}\t{rtype}' for names in chunks({key.partition('\t')[0]: None for key in wanted})
            for name, rtype in tx.execute(sa.select(TABLE.c.name, TABLE.c.type).where(
                _of(server_id, domain_id), TABLE.c.name.in_(names)))}


def _remove(tx: Tx, server_id: str, domain_id: str, gone: Iterable[str]) -> None:
    for where in _each(server_id, domain_id, gone):
        tx.execute(TABLE.delete().where(where))


def _each(server_id: str, domain_id: str, wanted: Iterable[str]) -> Iterator[sa.ColumnElement[bool]]:
    """The rows of these keys, a condition for each statement."""
    by_type: dict[str, list[str]] = {}
    for key in wanted:
        name, _, rtype = key.partition('\t')
        by_type.setdefault(rtype, []).append(name)
    for rtype, names in sorted(by_type.items()):
        for part in chunks(sorted(names)):
            yield sa.and_(_of(server_id, domain_id), TABLE.c.type == rtype, TABLE.c.name.in_(part))
