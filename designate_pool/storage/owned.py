"""Which RRsets on a server that is fed by records are ours: those that we made there.

A key is ``name TAB type``, as in :mod:`designate_pool.planner.records`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import sqlalchemy as sa
from sqlalchemy import exc

from designate_pool.errors import LostRace
from designate_pool.storage.domains import chunks
from designate_pool.storage.schema import domains, owned_rrsets
from designate_pool.storage.sessions import Tx

TABLE = owned_rrsets
#: Rows of one INSERT.
_ROWS = 5000
_FORMER, _NEW = domains.alias('former_domain'), domains.alias('new_domain')
_INHERIT = (TABLE.update().values(domain_id=sa.bindparam('heir')).where(
    TABLE.c.domain_id == sa.bindparam('former'), sa.exists().where(
        _FORMER.c.id == sa.bindparam('former'), _NEW.c.id == sa.bindparam('heir'),
        _FORMER.c.pool_id == _NEW.c.pool_id)))


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


def _of(server_id: str, domain_id: str) -> sa.ColumnElement[bool]:
    return sa.and_(TABLE.c.server_id == server_id, TABLE.c.domain_id == domain_id)


def _known(tx: Tx, server_id: str, domain_id: str, wanted: Iterable[str]) -> set[str]:
    """The keys that are ours at the names of *wanted*."""
    return {f'{name}\t{rtype}' for names in chunks({key.partition('\t')[0]: None for key in wanted})
            for name, rtype in tx.execute(sa.select(TABLE.c.name, TABLE.c.type).where(
                _of(server_id, domain_id), TABLE.c.name.in_(names)))}


def _remove(tx: Tx, server_id: str, domain_id: str, gone: Iterable[str]) -> None:
    by_type: dict[str, list[str]] = {}
    for key in gone:
        name, _, rtype = key.partition('\t')
        by_type.setdefault(rtype, []).append(name)
    for rtype, names in sorted(by_type.items()):
        for part in chunks(sorted(names)):
            tx.execute(TABLE.delete().where(_of(server_id, domain_id), TABLE.c.type == rtype, TABLE.c.name.in_(part)))
