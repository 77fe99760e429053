"""Whose names are whose.

The invariant: no domain lies above or below another project's, but where one who may has made it so; no domain of a
tenant is at or below the name of a pool's name server, or has one label only; and what lies at or below a domain's name
is in that domain, not in the records of one above it, the delegation aside (NS and DS at the name itself).

For that, whoever makes a domain looks twice: at the beginning, and again when all is written, under a lock that names
above and below one another share and that is held until the commit.  Whoever makes a recordset has locked its domain,
as has by then whoever makes a domain below that.  What was otherwise before stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from designate_pool.central.validation.requests import WantedRecordSet
from designate_pool.errors import DuplicateDomain, InvalidField, LostRace, NameTaken, PoolError, RecordsInTheWay
from designate_pool.model import Context, Domain, RecordSet, names
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, nesting
from designate_pool.storage.zones.nesting import Around


def taken(context: Context, last: domains.Last, name: str) -> PoolError:
    """What to raise where *last* is alive and has *name*."""
    return DuplicateDomain(domain=name) if context.sees(last.project_id) else NameTaken(domain=name)


def looked(tx: Tx, context: Context, name: str, project_id: str) -> Around:
    """What there is around *name*, where a domain of *project_id* may be.

    :raises NameTaken: when it may not
    """
    if not context.may_nest and not names.above(name):
        raise InvalidField(field='name', why='a name of one label would give this project all names below it; the '
                                             'policy nest_zones says who may create it')
    around = nesting.around(tx, name, None if context.may_nest else project_id)
    if not context.may_nest:
        if around.is_server:
            raise InvalidField(field='name', why="it is reserved: the name of a pool's name server, or one below it")
        if around.foreign(project_id):
            raise NameTaken(domain=name)
    return around


def keep(tx: Tx, context: Context, name: str, project_id: str, seen: Around) -> None:
    """Have what :func:`looked` found hold until the commit, which is to follow at once.

    :raises LostRace: when it is otherwise by now
    :raises RecordsInTheWay: when a domain above has records of the new one
    """
    if seen.above:
        domains.lock_many(tx, [each.id for each in seen.above])
        found = nesting.in_the_way(tx, [each.id for each in seen.above], name)
        if found:
            is_seen = all(context.sees(each.project_id) for each in seen.above)
            raise RecordsInTheWay(domain=name, records=', '.join(map(' '.join, found)) if is_seen else
                                  'records of a zone above it')
    hold(tx, context, name, project_id, seen)


def hold(tx: Tx, context: Context, name: str, project_id: str, seen: Around) -> None:
    """As :func:`keep`, whatever is in the records of domains above."""
    nesting.lock(tx, name)
    if tx.dialect.name != 'sqlite' and looked(tx, context, name, project_id) != seen:
        raise LostRace(what=f'name {name}')


def refuse_inside(context: Context, domain: Domain, below: Iterable[nesting.Neighbour],
                  wanted: Sequence[WantedRecordSet]) -> None:
    """
    :param below: the domains below *domain*
    :raises InvalidField: when a recordset of *wanted* lies in one of them
    """
    owners = {each.name: each.project_id for each in below}
    if not owners:
        return
    for each in wanted:
        found = next((name for name in _inside(domain, each.name, each.type) if name in owners), None)
        if found is not None:
            raise InvalidField(field=f'{each.prefix}name', why=f'it lies in the zone {found} and belongs there'
                               if context.sees(owners[found]) else 'it lies in another zone, below this one')


def refuse_new_inside(tx: Tx, context: Context, domain: Domain, new: Sequence[RecordSet],
                      wanted: Sequence[WantedRecordSet]) -> None:
    """As :func:`refuse_inside` for recordsets that are new in a domain, which is locked."""
    keys = {(each.name, each.type) for each in new}
    candidates = [each for each in wanted if (each.name, each.type) in keys]
    possible = [name for each in candidates for name in _inside(domain, each.name, each.type)]
    if possible:
        refuse_inside(context, domain, nesting.live(tx, possible), candidates)


def _inside(domain: Domain, name: str, rtype: str) -> list[str]:
    """The names of domains in which a recordset of *domain* must not lie."""
    upper = names.at_or_above(name)
    if domain.name not in upper:
        return []
    first = 1 if rtype in nesting.DELEGATION else 0
    return upper[first:upper.index(domain.name)]
