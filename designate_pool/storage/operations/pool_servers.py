"""The servers of the pools and their states.

A row is updated only if its version is the one that was read, so that of two concurrent updates one fails.  Addresses
and keys are not stored here but in the configuration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from designate_pool.errors import InvalidField
from designate_pool.model import Action, Outcome, PoolServer, Reloaded, ServerReport, ServerState, Status, new_id
from designate_pool.protocol import rules
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.columns import storable
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, chunks, count, exists, values_among
from designate_pool.storage.sql.schema import ALIVE, domains, pool_manager_status, pool_servers, pools
from designate_pool.storage.zones import pools as pool_store

TABLE = pool_servers
ROWS = pool_manager_status
#: Failures that a report shows.
SHOWN = 20

#: How long a removed server is kept at least: a pool manager that has yet to see the removal may write rows for it, and
#: a server that has any is drained once more.
KEPT = timedelta(minutes=5)
_LEAVING = (ServerState.DRAINING, ServerState.REMOVED)
SERVERS = Entities(PoolServer, TABLE)
#: More than one server is changed.
_MOST_CHANGES = 1_000_000
_OF_POOL = (sa.select(pools.c.id, pools.c.reloads, *SERVERS.columns)
            .select_from(pools.outerjoin(TABLE, TABLE.c.pool_id == pools.c.id))
            .where(pools.c.name == sa.bindparam('name')).order_by(TABLE.c.position, TABLE.c.id))
_LIMITS = sa.select(TABLE.c.label, TABLE.c.limits).where(
    TABLE.c.pool_id == sa.bindparam('pool_id'), TABLE.c.limits != '', TABLE.c.state.not_in(_LEAVING)
).order_by(TABLE.c.position)
_KEY_NAMES = sa.select(TABLE.c.key_name).where(TABLE.c.key_name.is_not(None), TABLE.c.state != ServerState.REMOVED)
# With those that were moved from the pool and are still kept.
_ANY_DOMAIN = sa.select(domains.c.id).where(sa.or_(
    domains.c.pool_id == sa.bindparam('pool_id'), domains.c.former_pool_id == sa.bindparam('pool_id')),
    domains.c.deleted == ALIVE).limit(1)


@dataclasses.dataclass(frozen=True, slots=True)
class RegisteredServers:
    """A pool's servers.

    :ivar pool_id: empty when there is no such pool
    :ivar reloads: how often the configuration was reloaded on command; who knows a smaller number reloads it
    """

    pool_id: str = ''
    reloads: int = 0
    servers: tuple[PoolServer, ...] = ()


def of_pool(tx: Tx, pool_name: str) -> RegisteredServers:
    """The pool's servers in the order of the configuration, including removed ones, in one statement."""
    rows = tx.execute(_OF_POOL, {'name': pool_name}).all()
    if not rows:
        return RegisteredServers()
    pool_id, reloads = rows[0][:2]
    return RegisteredServers(pool_id, reloads, tuple(PoolServer(*row[2:]) for row in rows if row[2] is not None))


def changes(pool_name: str) -> sa.ScalarSelect[Any]:
    """A number that is another one when the pool or one of its servers has changed; NULL when there is no such pool."""
    # A change of a server adds one.  One that is dropped or replaced adds so much that its own changes do not make up
    # for it; one that joins does so in a reload, which is another such addition.
    of_servers = sa.select(sa.func.coalesce(sa.func.sum(TABLE.c.version - _MOST_CHANGES), 0)).where(
        TABLE.c.pool_id == pools.c.id)
    of_pool = sa.cast(pools.c.reloads + pools.c.version, sa.BigInteger) * _MOST_CHANGES
    return sa.select(of_pool + of_servers.scalar_subquery()).where(pools.c.name == pool_name).scalar_subquery()


def ids_of(pool_id: str) -> sa.Select[Any]:
    """The statement that finds the ids of a pool's servers."""
    return sa.select(TABLE.c.id).where(TABLE.c.pool_id == pool_id)


def labels(tx: Tx, pool_id: str) -> set[str]:
    """The labels of the pool's servers that do not leave it."""
    return set(tx.execute(sa.select(TABLE.c.label).where(
        TABLE.c.pool_id == pool_id, TABLE.c.state.not_in(_LEAVING))).scalars())


def key_names(tx: Tx) -> set[str]:
    """The names of the TSIG keys that the servers of all pools have."""
    return set(tx.execute(_KEY_NAMES).scalars())


def limits_of(tx: Tx, pool_id: str) -> tuple[rules.ServerLimit, ...]:
    """The limits of the pool's servers that do not leave it, each once, with the label of the first that has it."""
    first: dict[rules.ServerLimit, str] = {}
    for label, text in tx.execute(_LIMITS, {'pool_id': pool_id}):
        for limit in rules.from_json(text):
            first.setdefault(limit, label)
    return tuple(limit._replace(why=f'{limit.why} ({label})') for limit, label in first.items())


def signed_zone_of(tx: Tx, pool_name: str) -> str | None:
    """The name of a signed zone of a pool; None if it has none."""
    return tx.execute(sa.select(domains.c.name).join_from(domains, pools, domains.c.pool_id == pools.c.id).where(
        pools.c.name == pool_name, domains.c.deleted == ALIVE, domains.c.is_signed == sa.true()).limit(1)).scalar()


def no_signatures(limits: str | None) -> str:
    """Why a server with these limits does not serve signed zones rightly; empty if it does."""
    return next((limit.why for limit in rules.from_json(limits) if limit.what == 'signatures'), '') if limits else ''


def refuses_signed(tx: Tx, pool_name: str, limits: str | None) -> str:
    """Why a server with these limits cannot be in the pool, which has signed zones; empty if it can."""
    why = no_signatures(limits)
    signed = signed_zone_of(tx, pool_name) if why else None
    return '' if signed is None else f'the pool {pool_name} has signed zones, such as {signed}: {why}'


def all_ids(tx: Tx) -> list[str]:
    """Ids of the servers of all pools."""
    return list(tx.execute(sa.select(TABLE.c.id)).scalars())


def register(tx: Tx, pool_name: str, wanted: Sequence[PoolServer], delete_zones: bool, on_command: bool,
             now: datetime, has_catalog: bool = False) -> Reloaded:
    """Set the pool's servers to those of the configuration; what that changed.

    The first servers of a pool, and those of a pool without domains, are active at once, since there is nothing to fill
    them with.  Later ones join.  Servers that are no longer configured drain.

    :param wanted: id, label, driver, fingerprint, position, key and addresses of each section; other fields are ignored
    :param delete_zones: whether zones are deleted from a server that drains
    :param on_command: have all pool managers reload the configuration, whether servers changed or not
    :param has_catalog: whether the pool has a catalog zone; its serial is raised, since a database restored from a
        backup may be behind the servers
    :raises InvalidField: when a server belongs to another pool, or a new one cannot serve the pool's signed zones
    :raises UnknownPool: when there is no such pool, and the database is in use or *on_command* is true
    """
    pool_id = _locked_pool(tx, pool_name, now, may_make=not on_command)
    serial = catalog.establish(tx, pool_id, now) if has_catalog else None
    registered = {server.id: server for server in of_pool(tx, pool_name).servers}
    new_ids = [server.id for server in wanted if server.id not in registered]
    # Its former pool forgets a server only when that is registered again; a dismissed one has a section there still.
    for server_id in tx.execute(sa.select(TABLE.c.id).where(TABLE.c.id.in_(new_ids), TABLE.c.dismissed == sa.false(),
                                                            TABLE.c.state_since <= now - KEPT)).scalars().all():
        forget(tx, server_id)
    other = tx.execute(sa.select(TABLE.c.id, TABLE.c.label, pools.c.name).join_from(TABLE, pools)
                       .where(TABLE.c.id.in_(new_ids), pools.c.name != pool_name)).first()
    if other is not None:
        raise InvalidField(field=f'server {other[0]}', why=f'it belongs to the pool {other[2]} as {other[1]}')
    for server in wanted:
        former = registered.get(server.id)
        had_limit = former is not None and no_signatures(former.limits) and (
            former.state not in _LEAVING or former.dismissed)
        if not had_limit and (why := refuses_signed(tx, pool_name, server.limits)):
            raise InvalidField(field=f'server {server.label}', why=why)
    at_once = not registered or tx.execute(_ANY_DOMAIN, {'pool_id': pool_id}).first() is None
    joined, changed, draining = [], [], []
    for server in wanted:
        former = registered.get(server.id)
        new = server if former is None else dataclasses.replace(
            former, label=server.label, driver=server.driver, fingerprint=server.fingerprint, position=server.position,
            key_name=server.key_name, verify=server.verify, limits=server.limits, polled=server.polled)
        if former is None or former.state in _LEAVING and not former.dismissed:
            # It may have seen the catalog in another epoch before.
            state = ServerState.ACTIVE if at_once else ServerState.JOINING
            new = in_state(new, state, now, filled_to=None if at_once else '', filled=0, note=None, delete_zones=False,
                           joined_at=now if at_once else None, pool_id=pool_id, catalog_from=serial)
            joined.append(server.label)
        elif former.fingerprint != server.fingerprint and former.state not in _LEAVING:
            if former.label != server.label:  # it is another machine and joins again
                if new.state is ServerState.ACTIVE:
                    new = in_state(new, ServerState.JOINING, now)
                new = dataclasses.replace(new, joined_at=None, catalog_from=serial)
            new = dataclasses.replace(new, filled_to='', filled=0)
            changed.append(server.label)
        if former is None:
            tx.execute(TABLE.insert(), _values(new, now) | {'created_at': now})
        elif new != former:
            save(tx, new, now)
    here = {server.id for server in wanted}
    for former in registered.values():
        if former.id in here:
            continue
        if former.state is ServerState.REMOVED and (
                former.state_since is None or now - former.state_since >= KEPT):
            forget(tx, former.id)
        elif former.state not in _LEAVING:
            save(tx, in_state(former, ServerState.DRAINING, now, delete_zones=delete_zones, filled_to=None,
                              note=None), now)
            draining.append(former.label)
        elif former.dismissed:
            save(tx, dataclasses.replace(former, dismissed=False), now)
    if on_command or joined or changed or draining:
        tx.execute(pools.update().where(pools.c.id == pool_id).values(reloads=pools.c.reloads + 1))
    return Reloaded(tuple(joined), tuple(changed), tuple(draining))


def in_state(server: PoolServer, state: ServerState, now: datetime, **values: Any) -> PoolServer:
    """*server* in *state*, without a claim: filling or draining begins again."""
    if 'note' in values:
        values.setdefault('reason', None)
    return dataclasses.replace(server, state=state, state_since=now, claimed_by=None, claimed_until=None, **values)


def save(tx: Tx, server: PoolServer, now: datetime) -> bool:
    """Write *server* unless it has changed since it was read; whether it was written."""
    return tx.execute(TABLE.update().where(TABLE.c.id == server.id, TABLE.c.version == server.version)
                      .values(_values(server, now) | {'version': server.version + 1})).rowcount == 1


def set_silent(tx: Tx, server_id: str, since: datetime | None) -> None:
    """Note that a server answers nobody *since* then, unless that is known; None when it answers.

    No new version: it is no change of the server.
    """
    is_news = TABLE.c.silent_since.is_(None) if since else TABLE.c.silent_since.is_not(None)
    tx.execute(TABLE.update().where(TABLE.c.id == server_id, is_news).values(silent_since=since))


def claim(tx: Tx, server: PoolServer, by: str, now: datetime, until: datetime) -> PoolServer | None:
    """Claim the filling or draining of *server*; None while another pool manager has claimed it."""
    if server.claimed_by not in (None, by) and server.claimed_until is not None and server.claimed_until > now:
        return None
    claimed = dataclasses.replace(server, claimed_by=by, claimed_until=until)
    return dataclasses.replace(claimed, version=server.version + 1) if save(tx, claimed, now) else None


def forget(tx: Tx, server_id: str) -> None:
    """Delete a server in state *removed*, unless it has rows."""
    if not with_rows(tx, [server_id]):
        tx.execute(TABLE.delete().where(TABLE.c.id == server_id, TABLE.c.state == ServerState.REMOVED))


def waiting(tx: Tx, server_id: str, most: int | None = None) -> int:
    """How many operations of a server are due now or later, counted up to *most*; by index."""
    return count(tx, sa.select(ROWS.c.id).where(ROWS.c.server_id == server_id, ROWS.c.next_attempt_at.is_not(None)),
                 most)


def any_claimed(tx: Tx, server_id: str, domain_ids: Iterable[str], now: datetime) -> bool:
    """Whether a pool manager has claimed an operation on the server for one of these domains."""
    return any(exists(tx, ROWS, ROWS.c.server_id == server_id, ROWS.c.domain_id.in_(part),
                      ROWS.c.next_attempt_at.is_not(None), ROWS.c.claimed_until > now) for part in chunks(domain_ids))


def domains_on(tx: Tx, server_id: str, limit: int) -> list[str]:
    """Ids of *limit* domains at most that have rows for the server."""
    return list(tx.execute(sa.select(ROWS.c.domain_id).distinct().where(ROWS.c.server_id == server_id)
                           .order_by(ROWS.c.domain_id).limit(limit)).scalars())


def with_rows(tx: Tx, server_ids: Sequence[str]) -> list[str]:
    """Those of *server_ids* that have rows."""
    has_rows = sa.exists().where(ROWS.c.server_id == TABLE.c.id)
    return list(tx.execute(sa.select(TABLE.c.id).where(TABLE.c.id.in_(server_ids), has_rows)).scalars())


def names_on(tx: Tx, server_id: str, names: Iterable[str]) -> set[str]:
    """Those of *names* whose domains, including deleted ones, have rows for the server."""
    return values_among(tx, domains.c.name, names,
                        sa.exists().where(ROWS.c.domain_id == domains.c.id, ROWS.c.server_id == server_id))


def raise_epoch(tx: Tx, server_id: str, now: datetime) -> None:
    """Have a server create all its zones again from its catalog."""
    pool_id = tx.execute(sa.select(TABLE.c.pool_id).where(TABLE.c.id == server_id)).scalar()
    if pool_id is not None:
        serial = catalog.bump(tx, pool_id, now)
        tx.execute(TABLE.update().where(TABLE.c.id == server_id).values(
            catalog_epoch=TABLE.c.catalog_epoch + 1, catalog_from=serial, version=TABLE.c.version + 1))


def purge(tx: Tx, server_id: str, domain_ids: Iterable[str]) -> int:
    """Delete the server's rows for these domains; how many there were."""
    return tx.execute(ROWS.delete().where(ROWS.c.server_id == server_id,
                                          ROWS.c.domain_id.in_(list(domain_ids)))).rowcount


def purge_strays(tx: Tx, server_id: str, domain_ids: Iterable[str]) -> int:
    """Delete the server's rows for those of these domains that its pool has nothing to do with any more, whatever its
    name is now; how many there were."""
    of_pool = sa.exists().where(
        domains.c.id == ROWS.c.domain_id, domains.c.abandoned == sa.false(), TABLE.c.id == server_id,
        sa.or_(domains.c.pool_id == TABLE.c.pool_id, domains.c.former_pool_id == TABLE.c.pool_id))
    return tx.execute(ROWS.delete().where(ROWS.c.server_id == server_id, ROWS.c.domain_id.in_(list(domain_ids)),
                                          ~of_pool)).rowcount


def report(tx: Tx, server: PoolServer, domains_total: int, now: datetime, whole: bool = False,
           project_id: str | None = None) -> ServerReport:
    """A report on *server*.

    :param whole: also count all its rows, which takes longer with more domains, and include some failures
    :param project_id: the failures are of domains of this project; None for all projects
    """
    due = (ROWS.c.server_id == server.id) & ROWS.c.next_attempt_at.is_not(None)
    failing = sa.func.count(sa.case((ROWS.c.status == Outcome.ERROR, 1)))
    in_progress = sa.func.count(sa.case(((ROWS.c.claimed_until > now) | (ROWS.c.deadline_at > now), 1)))
    count, failed, in_hand, oldest = tx.execute(
        sa.select(sa.func.count(), failing, in_progress, sa.func.min(ROWS.c.next_attempt_at)).where(due)).one()
    rows: int | None = None
    failures: tuple[tuple[str, str, str], ...] = ()
    if whole:
        rows = tx.execute(sa.select(sa.func.count()).where(ROWS.c.server_id == server.id)).scalar_one()
        failures = tuple((name, Action(action).value, why or '') for name, action, why in tx.execute(
            sa.select(domains.c.name, ROWS.c.action, ROWS.c.last_error).join_from(ROWS, domains)
            .where(due, ROWS.c.status == Outcome.ERROR,
                   sa.true() if project_id is None else domains.c.project_id == project_id)
            .order_by(domains.c.name).limit(SHOWN)))
    return ServerReport(server, domains_total, rows, count, failed, in_hand, oldest, failures)


def count_domains(tx: Tx, pool_id: str) -> int:
    """How many domains the pool's servers should have, with those moved from it and still kept; counts an index."""
    here, unsettled = domains.c.pool_id == pool_id, domains.c.status.in_((Status.PENDING, Status.ERROR))
    # ACTIVE domains are to be served, so nearly all are counted by the index alone.
    return sum(tx.execute(sa.select(sa.func.count()).where(*which)).scalar_one() for which in (
        (here, domains.c.status == Status.ACTIVE), (here, unsettled, domains.c.deleted == ALIVE),
        (domains.c.former_pool_id == pool_id, domains.c.deleted == ALIVE)))


def _locked_pool(tx: Tx, pool_name: str, now: datetime, may_make: bool) -> str:
    """The id of the pool, locked until the end of the transaction.

    :param may_make: whether it is created if it is missing and the database is unused; not for a running program,
        whose pool has been deleted since its start
    """
    locked = tx.execute(sa.select(pools.c.id).where(pools.c.name == pool_name).with_for_update()).scalar()
    if locked is not None:
        return str(locked)
    pool_store.check_known(tx, pool_name, may_be_unused=may_make)
    pool_id = new_id()
    tx.execute(pools.insert(), {'id': pool_id, 'created_at': now, 'updated_at': now, 'version': 1, 'name': pool_name,
                                'provisioner': 'unmanaged'})
    return pool_id


def _values(server: PoolServer, now: datetime) -> dict[str, Any]:
    values = SERVERS.values(server) | {'updated_at': now, 'state_since': server.state_since or now}
    del values['created_at'], values['silent_since']  # see set_silent
    if server.note is not None:
        values['note'] = storable(server.note, 1024)
    return values
