"""Domains: rows of the table of that name as :class:`designate_pool.model.Domain`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import sqlalchemy as sa

from designate_pool.model import Action, Domain, KeyState, PageRequest, Status, names
from designate_pool.storage.sql import bulk, pages
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, chunks, exists, lost_race, values_among
from designate_pool.storage.sql.schema import ALIVE, OPERATION, OPERATIONS, domains, pools, zone_keys
from designate_pool.storage.zones import pools as pool_store, zone_shares

#: How many domains one statement saves.
_AT_ONCE = 50


def _of_pools(pool: Callable[[str], Any], former: Callable[[str], Any]) -> dict[str, Any]:
    """The fields of a domain that are columns of its pool, and of the one that it was moved from."""
    return {'pool_name': pool('name'), 'freeze': sa.func.coalesce(pool('freeze'), former('freeze')),
            'pool_requires_approval': pool('requires_approval'), 'pool_release': pool('release_stages'),
            'former_pool_name': former('name')}


def _queried(pool_id: sa.Column[Any]) -> Callable[[str], Any]:
    return lambda name: sa.select(pools.c[name]).where(pools.c.id == pool_id).scalar_subquery()


DOMAINS = Entities(
    Domain, domains,
    ('name', 'id', 'created_at', 'updated_at', 'email', 'status', 'serial', 'ttl', 'description', 'pool_id',
     'project_id'),
    {'name': lambda value: pages.like(domains.c.name, value.lower()),
     # An unknown status is that of no domain.
     'status': lambda value: domains.c.status == Status(value) if value in set(Status) else sa.false(),
     'pool_id': domains.c.pool_id,
     'email': lambda value: pages.like(sa.func.lower(domains.c.email), value.lower()),
     'ttl': lambda value: domains.c.ttl == pages.number('ttl', value),
     'description': functools.partial(pages.like, domains.c.description),
     # There are no others here: catalogs are not domains.
     'type': lambda value: {'PRIMARY': domains.c.masters == '', 'SECONDARY': domains.c.masters != ''}.get(
         value.upper(), sa.false())},
    as_json=True, **_of_pools(_queried(domains.c.pool_id), _queried(domains.c.former_pool_id)))
_SELECT = DOMAINS.select
#: An operation that there is not.
_NONE = '-'
#: Hexadecimal digits of a serial.
_SERIAL = 8
# Built once: building a statement takes as long as executing it.
_FOR_OPERATION = (_SELECT.add_columns(sa.case((
    domains.c.operations.contains(sa.bindparam('operation', type_=sa.String)), domains.c.operations), else_=''))
                  .where(domains.c.id == sa.bindparam('id')).with_for_update(of=domains))
_FOR_OPERATIONS = (_SELECT.add_columns(domains.c.operations)
                   .where(domains.c.id.in_(sa.bindparam('ids', expanding=True))).order_by(domains.c.id)
                   .with_for_update(of=domains, skip_locked=True))
BY_IDS = _SELECT.where(domains.c.id.in_(sa.bindparam('ids', expanding=True)))
_LOCKED_IN_ORDER = BY_IDS.order_by(domains.c.id).with_for_update(of=domains)
_POOL, _FORMER_POOL = pools.alias('pool'), pools.alias('former_pool')
# A join reads many pools in less time, but MariaDB would lock them where the domains are locked.
_LISTED = (sa.select(*DOMAINS.columns_with(_of_pools(_POOL.c.get, _FORMER_POOL.c.get)))
           .select_from(domains.outerjoin(_POOL, _POOL.c.id == domains.c.pool_id)
                        .outerjoin(_FORMER_POOL, _FORMER_POOL.c.id == domains.c.former_pool_id))
           .where(domains.c.status != Status.DELETED, domains.c.moved_id.is_(None)))
_OWN_LISTED = _LISTED.where(domains.c.project_id == sa.bindparam('owner'))
_LIVE_BY_NAME = _SELECT.where(domains.c.name.in_(sa.bindparam('names', expanding=True)), domains.c.deleted == ALIVE)
#: As :attr:`Domain.awaits_first_transfer`, of a live domain.
_AWAITS_FIRST_TRANSFER = (domains.c.masters != '') & domains.c.transferred_at.is_(None) & (domains.c.deleted == ALIVE)
_FORMER = domains.alias()
#: See :func:`explaining_zones`.
_EXPLAINS_ZONES = (domains.c.deleted == ALIVE) & ~(_AWAITS_FIRST_TRANSFER & sa.exists().where(
    _FORMER.c.name == domains.c.name, _FORMER.c.deleted != ALIVE, _FORMER.c.abandoned == sa.false()))
#: Whether a domain's release waits for that of the deletion of a former one of its name: a catalog must not have a name
#: twice (RFC 9432).
_AWAITS_FORMER = (domains.c.deleted == ALIVE) & sa.exists().where(
    _FORMER.c.name == domains.c.name, _FORMER.c.deleted != ALIVE, _FORMER.c.release_state.is_not(None),
    _FORMER.c.status.in_((Status.PENDING, Status.ERROR)), _FORMER.c.pool_id == domains.c.pool_id)
#: Domains that can be restored.
DELETED = (domains.c.deleted_at.is_not(None), domains.c.moved_id.is_(None), domains.c.purged == sa.false(),
           domains.c.former_pool_id.is_(None))
#: Ids decide between rows of one name and generation: a domain, and what a former pool still has of it.
NEWEST_FIRST = domains.c.generation.desc(), domains.c.id.desc()
_LAST_OF_NAME = (sa.select(domains.c.id, domains.c.serial, domains.c.generation, domains.c.deleted,
                           domains.c.project_id)
                 .where(domains.c.name == sa.bindparam('name')).order_by(*NEWEST_FIRST).limit(1))
#: What new domains of one batch have each for itself.
_OWN = ('id', 'name', 'given_name', 'email', 'ttl', 'refresh', 'retry', 'expire', 'minimum', 'serial', 'first_serial',
        'request_id')
_CHANGING = (
    'email', 'ttl', 'refresh', 'retry', 'expire', 'description', 'serial', 'reported_serial', 'generation', 'action',
    'status', 'version', 'updated_at', 'deleted_at', 'changed_at', 'converged_at', 'request_id', 'journal_from',
    'journal_to', 'journal_records', 'history_records', 'attributes', 'shared', 'recent_deletes', 'held_by',
    'version_before', 'requires_approval', 'is_signed', 'content_serial', 'soa_names', 'release_state')
_OF_SECONDARY = (*_CHANGING, 'minimum', 'masters', 'transferred_at', 'awaits_transfer', 'first_serial')
_INSERT = sa.insert(domains)
_STATES = sa.update(domains).where(domains.c.id.in_(sa.bindparam('ids', expanding=True))).values(
    action=sa.bindparam('new_action'), status=sa.bindparam('new_status'), updated_at=sa.bindparam('now'),
    converged_at=sa.bindparam('new_converged'), version=domains.c.version + 1)
_SAVE_STATE = _STATES.values(reported_serial=sa.bindparam('reported'))
_SAVE_OWN_STATE = _STATES.values(reported_serial=domains.c.serial)


class Last(NamedTuple):
    """The newest domain of a name, live or deleted."""

    id: str
    serial: int
    generation: int
    alive: bool
    project_id: str


def get(tx: Tx, domain_id: str) -> Domain | None:
    """A domain by its id, also a deleted one; None when there is none."""
    return DOMAINS.get(tx, domain_id)


def get_many(tx: Tx, ids: Iterable[str]) -> dict[str, Domain]:
    """Those of *ids* that exist, deleted ones included."""
    return {domain.id: domain for part in chunks(ids) for domain in DOMAINS.all(tx, BY_IDS, ids=part)}


def live_by_name(tx: Tx, names: Iterable[str]) -> dict[str, Domain]:
    """The live domains that have these names."""
    return {domain.name: domain for part in chunks(names) for domain in DOMAINS.all(tx, _LIVE_BY_NAME, names=part)}


def explaining_zones(tx: Tx, names: Iterable[str]) -> set[str]:
    """Those of these names whose live domains explain zones that servers have.

    A secondary domain has no zones before its first transfer: where a domain of its name was deleted, and not
    abandoned, they are that one's.
    """
    return values_among(tx, domains.c.name, names, _EXPLAINS_ZONES)


def newest(tx: Tx, name: str, pool_name: str) -> Domain | None:
    """The newest domain of a name in a pool, live or deleted, of those that servers were given."""
    return DOMAINS.one(tx, _SELECT.where(domains.c.name == name, domains.c.pool_id == pool_store.id_of(pool_name),
                                         ~_AWAITS_FIRST_TRANSFER).order_by(domains.c.generation.desc()).limit(1))


def lock(tx: Tx, domain_id: str) -> Domain | None:
    """The domain, which nobody else can change or lock until this transaction ends."""
    return DOMAINS.lock(tx, domain_id)


def lock_for(tx: Tx, domain_id: str, operation_id: str) -> tuple[Domain | None, int | None]:
    """As :func:`lock`, with the serial that the domain got by the operation; None if it has not changed the domain yet.

    When the answer to a COMMIT is lost, or a message is delivered twice, a change is made a second time.  By then
    others may have changed the domain, so that it cannot be recognized by the domain's contents.

    :param operation_id: '' for one that is not to be recognized
    """
    mark = operation_id[:OPERATION] or _NONE
    row = next(iter(DOMAINS.rows(tx, _FOR_OPERATION, {'id': domain_id, 'operation': mark})), None)
    return (None, None) if row is None else (Domain(*row[:-1]), _serial_of(row[-1], mark))


def lock_free_for(tx: Tx, operations: Mapping[str, str]) -> dict[str, tuple[Domain, int | None]]:
    """As :func:`lock_for`, for those of several domains, by id, that no other transaction has locked."""
    return {row[0]: (Domain(*row[:-1]), _serial_of(row[-1], operations[row[0]][:OPERATION] or _NONE))
            for part in chunks(sorted(operations)) for row in DOMAINS.rows(tx, _FOR_OPERATIONS, {'ids': part})}


def _serial_of(operations: str, mark: str) -> int | None:
    _, separator, rest = operations.partition(mark)
    return int(rest[:_SERIAL], 16) if separator else None


def lock_many(tx: Tx, ids: Iterable[str]) -> dict[str, Domain]:
    """Those of *ids* that exist, locked in the order of their ids, so that two transactions cannot deadlock."""
    return {domain.id: domain for part in chunks(sorted(set(ids)))
            for domain in DOMAINS.all(tx, _LOCKED_IN_ORDER, ids=part)}


def lock_page_of_pool(tx: Tx, pool_id: str, after_id: str, limit: int) -> list[Domain]:
    """The pool's live domains after *after_id* in the order of their ids, locked."""
    return DOMAINS.all(tx, _SELECT.where(
        domains.c.pool_id == pool_id, domains.c.deleted == ALIVE, domains.c.id > after_id)
        .order_by(domains.c.id).limit(limit).with_for_update(of=domains))


def last_of_name(tx: Tx, name: str) -> Last | None:
    """The newest domain of a name; None when it never had one."""
    row = tx.execute(_LAST_OF_NAME, {'name': name}).first()
    return None if row is None else Last(row[0], row[1], row[2], row[3] == ALIVE, row[4])


def insert(tx: Tx, domain: Domain, created_by: str | None = None) -> None:
    """Store a new domain.

    :param created_by: see :func:`designate_pool.storage.zones.versions.origin_text`
    :raises LostRace: when another transaction has taken the name or removed the pool meanwhile
    """
    values = DOMAINS.values(domain) | {'reversed_name': names.from_the_root(domain.name), 'created_by': created_by}
    if domain.deleted_at is not None:
        values['deleted'] = domain.id
    with lost_race(f'domain {domain.name}'):
        tx.execute(_INSERT, values)


def insert_many(tx: Tx, new: Sequence[Domain], created_by: Sequence[str]) -> None:
    """Insert new domains of names that there never were, which differ in :data:`_OWN` and *created_by* only.

    :raises LostRace: as :func:`insert`
    """
    columns = {name: [getattr(domain, name) for domain in new] for name in _OWN}
    columns['reversed_name'] = [names.from_the_root(domain.name) for domain in new]
    columns['created_by'] = list(created_by)
    with lost_race(f'one of {len(new)} domains'):
        bulk.insert(tx, domains, {name: value for name, value in DOMAINS.values(new[0]).items()
                                  if name not in _OWN and value is not None}, columns)


def ever_named(tx: Tx, wanted: Iterable[str]) -> set[str]:
    """Those of these names that a domain has, or had before it was deleted."""
    return values_among(tx, domains.c.name, wanted)


def save(tx: Tx, domain: Domain, operation_id: str = '') -> None:
    """Write the changeable columns of a locked domain; one with ``deleted_at`` releases its name.  For *operation_id*
    see :func:`lock_for`."""
    save_many(tx, [(domain, operation_id)])


def save_many(tx: Tx, changed: Iterable[tuple[Domain, str]], deleted_by: Mapping[str, str] | None = None) -> None:
    """As :func:`save`, for several domains, each with its operation.

    :param deleted_by: by id, of domains that are deleted, as for :func:`insert`
    """
    rows: dict[tuple[bool, bool], list[tuple[Domain, str]]] = {}
    for domain, operation_id in changed:
        rows.setdefault((bool(operation_id), domain.is_secondary), []).append((domain, operation_id))
    for (with_operation, is_secondary), every in rows.items():
        names_ = _OF_SECONDARY if is_secondary else _CHANGING
        for chunk in chunks(every, _AT_ONCE):
            columns = {name: [getattr(domain, name) for domain, _ in chunk] for name in names_}
            columns['deleted'] = [ALIVE if domain.deleted_at is None else domain.id for domain, _ in chunk]
            if deleted_by:
                columns['deleted_by'] = [deleted_by[domain.id] for domain, _ in chunk]
            marks = [f'{operation_id[:OPERATION]}{domain.serial:0{_SERIAL}x}' for domain, operation_id in chunk]
            bulk.update(tx, domains, [domain.id for domain, _ in chunk], columns, {
                'operations': (marks, (OPERATIONS - 1) * (OPERATION + _SERIAL))} if with_operation else None)


def assign_pool(tx: Tx, domain: Domain) -> None:
    """Write the pool of a locked domain, the one that it was moved from, and what it begins with there."""
    tx.execute(sa.update(domains).where(domains.c.id == domain.id).values(
        {name: getattr(domain, name) for name in ('pool_id', 'former_pool_id', 'former_until', 'first_serial')}))


def save_lock(tx: Tx, domain: Domain) -> None:
    """Write whether a locked row's domain is locked for requests, its number of locked recordsets, and its version."""
    tx.execute(sa.update(domains).where(domains.c.id == domain.id).values({name: getattr(domain, name) for name in (
        'lock_reason', 'locked_by_admin', 'locked_recordsets', 'version', 'updated_at')}))


def abandon(tx: Tx, domain: Domain) -> list[str]:
    """Mark a locked domain that was saved as deleted, and the other deleted ones that had its name in its pool, so that
    no server deletes them; their ids."""
    ids = list(tx.execute(sa.select(domains.c.id).where(
        domains.c.name == domain.name, domains.c.pool_id == domain.pool_id, domains.c.deleted != ALIVE)).scalars())
    for part in chunks(ids):
        tx.execute(sa.update(domains).where(domains.c.id.in_(part)).values(
            abandoned=True, action=Action.NONE, status=Status.DELETED))
    return ids


def keep_until(tx: Tx, ids: Iterable[str], until: datetime) -> None:
    """Have the pools that these locked domains were moved from keep them until a time."""
    tx.execute(sa.update(domains).where(domains.c.id.in_(list(ids))).values(former_until=until))


def to_leave(tx: Tx, now: datetime) -> str | None:
    """The id of a domain that a pool which it was moved from has kept long enough; None if there is none."""
    is_frozen = sa.exists().where(pools.c.id == domains.c.former_pool_id, pools.c.freeze_id.is_not(None))
    return tx.execute(sa.select(domains.c.id).where(domains.c.former_pool_id.is_not(None),
                                                    domains.c.former_until <= now, ~is_frozen)
                      .order_by(domains.c.former_until).limit(1)).scalar()


def assign_project(tx: Tx, domain_id: str, project_id: str, now: datetime) -> None:
    """Assign a locked domain to a project."""
    tx.execute(sa.update(domains).where(domains.c.id == domain_id)
               .values(project_id=project_id, updated_at=now, version=domains.c.version + 1))


def save_states(tx: Tx, changed: Iterable[Domain]) -> None:
    """Write action, status and reported serial of locked domains, in few statements."""
    groups: dict[tuple[Any, ...], list[str]] = {}
    for domain in changed:
        # The reported serial is nearly always the domain's own; taken from that column it does not split the group.
        own = domain.reported_serial == domain.serial
        key = (domain.action, domain.status, domain.updated_at, domain.converged_at, own,
               None if own else domain.reported_serial)
        groups.setdefault(key, []).append(domain.id)
    for (action, status, updated_at, converged_at, own, reported), ids in groups.items():
        for part in chunks(ids):
            tx.execute(_SAVE_OWN_STATE if own else _SAVE_STATE, {
                'ids': part, 'new_action': action, 'new_status': status, 'now': updated_at,
                'new_converged': converged_at, **({} if own else {'reported': reported})})


def find(tx: Tx, page: PageRequest, project_id: str | None) -> list[Domain]:
    """Domains that match, including those being deleted, excluding deleted ones.

    :param page: searched by the keys of :data:`DOMAINS`; in names, emails and descriptions ``*`` matches any text.
        With ``own`` those that are only shared with the project are left out
    :param project_id: the owner, or a project that they are shared with; None for every project
    """
    is_own = page.criterion.get('own') == 'true'
    page = dataclasses.replace(page, criterion={key: page.criterion[key] for key in page.criterion if key != 'own'})
    if project_id is None:
        return DOMAINS.find(tx, page, select=_LISTED)
    own = domains.c.project_id == project_id
    if not is_own and zone_shares.is_target(tx, project_id):
        own |= domains.c.id.in_(zone_shares.ids_for(project_id))
        return DOMAINS.find(tx, page, own, select=_LISTED.where(own))
    return DOMAINS.find(tx, page, own, select=_OWN_LISTED, owner=project_id)


def find_deleted(tx: Tx, page: PageRequest, project_id: str | None) -> list[Domain]:
    """Deleted domains of a project that can be restored, searched as by :func:`find`; None for every project."""
    own = () if project_id is None else (domains.c.project_id == project_id,)
    return DOMAINS.find(tx, page, *DELETED, *own)


def restore(tx: Tx, domain: Domain, operation_id: str) -> None:
    """As :func:`save`, for a deleted domain that is live again.

    :raises LostRace: when another transaction has taken the name meanwhile
    """
    with lost_race(f'domain {domain.name}'):
        save(tx, domain, operation_id)
    tx.execute(sa.update(domains).where(domains.c.id == domain.id).values(
        {name: getattr(domain, name) for name in ('abandoned', 'first_serial')}))


def mark_purged(tx: Tx, ids: Iterable[str]) -> None:
    """Have these deleted domains, which are locked, never be restored."""
    for part in chunks(sorted(ids)):
        tx.execute(sa.update(domains).where(domains.c.id.in_(part)).values(purged=True))
        tx.execute(sa.update(zone_keys).values(state=KeyState.REMOVED).where(
            zone_keys.c.domain_id.in_(part), zone_keys.c.state != KeyState.REMOVED))


def unsettled(tx: Tx, pool_name: str, now: datetime, unwritten: timedelta, after_id: str, limit: int) -> list[Domain]:
    """The pool's domains that are PENDING or ERROR and unwritten for so long, by id after *after_id*."""
    # One query for each status: some databases would scan all domains in the order of their ids otherwise.
    unsettled_domains = [domain for status in (Status.PENDING, Status.ERROR)
                         for domain in DOMAINS.all(tx, _SELECT.where(
                             domains.c.pool_id == pool_store.id_of(pool_name), domains.c.status == status,
                             domains.c.awaits_transfer == sa.false(), domains.c.updated_at < now - unwritten,
                             domains.c.id > after_id)
                             .order_by(domains.c.id).limit(limit))]
    return sorted(unsettled_domains, key=lambda domain: domain.id)[:limit]


def released(tx: Tx, pool_name: str) -> list[str]:
    """Ids of the domains of a pool that are released in stages, but for those that wait for a former one."""
    return list(tx.execute(sa.select(domains.c.id).where(
        domains.c.status.in_((Status.PENDING, Status.ERROR)), domains.c.release_state.is_not(None),
        domains.c.pool_id == pool_store.id_of(pool_name), ~_AWAITS_FORMER).order_by(domains.c.id)).scalars())


def awaits_former(tx: Tx, domain: Domain) -> bool:
    """Whether the release of a domain waits for that of the deletion of a former one of its name."""
    return exists(tx, domains, domains.c.id == domain.id, _AWAITS_FORMER)


def begin_releases(tx: Tx, pool_id: str, freeze_id: str, release: str | None) -> None:
    """Have the changes of domains that wait for the end of a freeze released in stages then, or not for None; deletions
    also in place of the release in which they found the domain."""
    tx.execute(sa.update(domains).where(
        domains.c.status == Status.PENDING, domains.c.pool_id == pool_id, domains.c.held_by == freeze_id,
        domains.c.masters == '', domains.c.former_pool_id.is_(None),
        sa.or_(domains.c.release_state.is_(None), domains.c.action == Action.DELETE))
        .values(release_state=release, version=domains.c.version + 1))


def waiting(tx: Tx, pool_id: str, freeze_id: str) -> list[str]:
    """Ids of domains of a pool that wait for the end of a freeze, in the order of their last changes."""
    changed = [row for status in (Status.PENDING, Status.ERROR) for row in tx.execute(
        sa.select(domains.c.changed_at, domains.c.id)
        .where(domains.c.status == status, domains.c.pool_id == pool_id, domains.c.held_by == freeze_id)).tuples()]
    return [key for _, key in sorted(changed)]


def has_unsettled(pool_name: str, now: datetime, unwritten: timedelta) -> sa.ColumnElement[bool]:
    """Whether :func:`unsettled` would find any."""
    return sa.or_(*(sa.exists().where(domains.c.pool_id == pool_store.id_of(pool_name), domains.c.status == status,
                                      domains.c.awaits_transfer == sa.false(), domains.c.updated_at < now - unwritten)
                    for status in (Status.PENDING, Status.ERROR)))


def page(tx: Tx, pool_name: str, after_id: str, limit: int) -> list[Domain]:
    """The domains that the pool's servers should have, by id after *after_id*: its own that are to be served, and those
    that were moved from it and are still kept; each at the newest version."""
    pool_id = tx.execute(sa.select(pools.c.id).where(pools.c.name == pool_name)).scalar()
    if pool_id is None:
        return []
    # A query for each: one for both would have no index that gives the order.  By the pool's id, of which PostgreSQL
    # knows how many domains were moved from it: by the name it goes through all domains in their order.
    by_id = {domain.id: domain for pool in (domains.c.pool_id, domains.c.former_pool_id)
             for domain in DOMAINS.all(tx, _SELECT.where(
                 pool == pool_id, domains.c.deleted == ALIVE, domains.c.action != Action.DELETE,
                 domains.c.awaits_transfer == sa.false(), domains.c.id > after_id).order_by(domains.c.id).limit(limit))}
    return sorted(by_id.values(), key=lambda domain: domain.id)[:limit]


def deleted_by_name(tx: Tx, pool_name: str, names: Iterable[str]) -> dict[str, Domain]:
    """The newest of the pool's deleted domains that had these names."""
    return {domain.name: domain for part in chunks(names) for domain in DOMAINS.all(
        tx, _SELECT.where(domains.c.pool_id == pool_store.id_of(pool_name), domains.c.name.in_(part),
                          domains.c.status == Status.DELETED).order_by(domains.c.generation))}


def page_of_deleted(tx: Tx, pool_name: str, after_id: str, limit: int) -> list[Domain]:
    """The pool's deleted domains that were not purged yet, by id after *after_id*."""
    return DOMAINS.all(tx, _SELECT.where(
        domains.c.pool_id == pool_store.id_of(pool_name), domains.c.status == Status.DELETED, domains.c.id > after_id)
        .order_by(domains.c.id).limit(limit))
