"""Stored plans, as :class:`designate_pool.model.StoredPlan`.

A statement that changes a plan's state checks the previous state as well, so that of two concurrent changes one fails.
"""

from __future__ import annotations

import base64
import dataclasses
import zlib
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from designate_pool.errors import InvalidField
from designate_pool.model import PageRequest, PlanState, StoredPlan
from designate_pool.storage.sql import pages
from designate_pool.storage.sql.columns import storable
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import Entities, count
from designate_pool.storage.sql.schema import domains, plans, pool_servers
from designate_pool.storage.zones import pools as pool_store

TABLE = plans
#: How long a plan can be applied by default.
DEFAULT_LIFE = timedelta(days=7)
#: Characters of a stored document, at most: MariaDB takes 16 MiB in one statement.
MAX_DOCUMENT = 12 << 20
LIVE = (PlanState.PARKED, PlanState.APPROVED)

_TRIED = (PlanState.APPLIED, PlanState.FAILED)
#: The reason of a plan in FAILED whose result is not known.
_BEGUN = 'it was begun, and nobody has said how it ended'
#: Longer documents are compressed: a plan that deletes all RRsets of a large zone must fit, too.
_LONG_DOCUMENT = 1 << 16
_COMPRESSED = 'zlib:'
_MAX_TARGET = 300
_MAX_WHY = 1 << 16
_MAX_ASKED_BY = 255
#: Of a plan that is a change which waits for approval, or has.
IS_CHANGE = sa.and_(TABLE.c.server_id.is_(None), TABLE.c.domain_id.is_not(None))


def _by_state(value: str) -> Any:
    try:
        return TABLE.c.state.in_([PlanState(state.strip().upper()) for state in value.split(',')])
    except ValueError:
        raise InvalidField(field='state', why=f'not one of {", ".join(PlanState)}') from None


PLANS = Entities(StoredPlan, TABLE, ('created_at', 'id', 'zone', 'target', 'state', 'updated_at'), {
    'state': _by_state,
    'zone': lambda value: pages.like(TABLE.c.zone, value.lower()),
    'server_id': TABLE.c.server_id,
    'domain_id': TABLE.c.domain_id,
    'pool_name': TABLE.c.pool_name,
    'is_change': lambda value: IS_CHANGE,
}, newest_first=True)
# Documents may be large, and lists do not show them.
_WITHOUT_DOCUMENT = sa.select(*(sa.literal('').label('document') if column is TABLE.c.document else column
                                for column in PLANS.columns))


def put(tx: Tx, plan: StoredPlan, now: datetime) -> StoredPlan:
    """Store *plan*, unless it is stored already; the stored plan.

    :param plan: without ``expires_at`` it expires after :data:`DEFAULT_LIFE`
    :raises InvalidField: when its document is too long
    """
    existing = get(tx, plan.id)
    if existing is not None:
        return existing
    kept = dataclasses.replace(
        plan, target=plan.target[:_MAX_TARGET], why=plan.why and storable(plan.why, _MAX_WHY),
        asked_by=plan.asked_by and storable(plan.asked_by, _MAX_ASKED_BY),
        expires_at=plan.expires_at or now + DEFAULT_LIFE, created_at=now, updated_at=now)
    tx.execute(TABLE.insert(), PLANS.values(kept) | {'document': _packed(plan.document)})
    return kept


def get(tx: Tx, plan_id: str) -> StoredPlan | None:
    """A plan by its whole id, with its document; None when there is none."""
    return _unpacked(PLANS.get(tx, plan_id))


def lock(tx: Tx, plan_id: str) -> StoredPlan | None:
    """The plan, which nobody else can change until this transaction ends."""
    return _unpacked(PLANS.lock(tx, plan_id))


def ids_from(tx: Tx, beginning: str, project_id: str | None) -> list[str]:
    """At most two ids that begin with these lower-case digits, of plans that the project sees; None for all."""
    return list(tx.execute(sa.select(TABLE.c.id).where(TABLE.c.id.like(f'{beginning}%'), _seen_by(project_id))
                           .order_by(TABLE.c.id).limit(2)).scalars())


def find(tx: Tx, page: PageRequest, project_id: str | None = None) -> list[StoredPlan]:
    """Plans that match, without their documents, the newest first unless another order is wanted.

    :param page: searched by ``state`` (one, or several with commas), ``zone`` (``*`` stands for anything),
        ``server_id``, ``domain_id``, ``pool_name``
    :param project_id: None for all projects, and for plans without a domain, which may be about any zone
    """
    return PLANS.find(tx, page, _seen_by(project_id), select=_WITHOUT_DOCUMENT.where(_seen_by(project_id)))


def live(tx: Tx, domain_id: str, server_id: str, now: datetime) -> StoredPlan | None:
    """The newest plan of a domain on a server that is parked or approved and has not expired."""
    return _unpacked(PLANS.one(tx, PLANS.select.where(
        TABLE.c.domain_id == domain_id, TABLE.c.server_id == server_id, TABLE.c.state.in_(LIVE),
        TABLE.c.expires_at > now).order_by(TABLE.c.created_at.desc(), TABLE.c.id.desc()).limit(1)))


def waiting(tx: Tx, domain_id: str, now: datetime) -> list[StoredPlan]:
    """The changes of a domain that wait for approval, without their documents."""
    return PLANS.all(tx, _WITHOUT_DOCUMENT.where(TABLE.c.domain_id == domain_id, *_waiting(now)))


def count_waiting(tx: Tx, project_id: str, now: datetime) -> int:
    """How many changes that a project has asked for wait for approval."""
    return count(tx, sa.select(TABLE.c.id).where(TABLE.c.asking_project_id == project_id, *_waiting(now)))


def _waiting(now: datetime) -> tuple[Any, ...]:
    return TABLE.c.state == PlanState.PARKED, TABLE.c.expires_at > now, IS_CHANGE


def change_state(tx: Tx, plan_id: str, from_states: Collection[PlanState], state: PlanState, why: str | None,
                 now: datetime, asked_by: str | None = None) -> bool:
    """Change a plan from one of *from_states* to *state*; whether it was in one.  None keeps *why* and *asked_by*."""
    values = _new_state(state, why, now)
    if asked_by is not None:
        values['asked_by'] = storable(asked_by, _MAX_ASKED_BY)
    if state in _TRIED:
        values['applied_at'] = now
    return tx.execute(TABLE.update().where(TABLE.c.id == plan_id, TABLE.c.state.in_(tuple(from_states)))
                      .values(values)).rowcount == 1


def save_document(tx: Tx, plan_id: str, document: str) -> None:
    """Replace the document of a change that waits for approval."""
    tx.execute(TABLE.update().where(TABLE.c.id == plan_id, TABLE.c.state == PlanState.PARKED)
               .values(document=_packed(document)))


def drop(tx: Tx, domain_ids: Sequence[str], why: str, now: datetime, *among: Any) -> int:
    """Drop the parked and approved plans of domains, or those *among* them, expired or not; how many."""
    return tx.execute(TABLE.update().where(TABLE.c.domain_id.in_(domain_ids), TABLE.c.state.in_(LIVE), *among)
                      .values(_new_state(PlanState.DROPPED, why, now))).rowcount


def drop_expired(tx: Tx, now: datetime) -> int:
    """Drop the changes that nobody has approved in their time; how many."""
    return tx.execute(TABLE.update().where(TABLE.c.state == PlanState.PARKED, TABLE.c.expires_at <= now, IS_CHANGE)
                      .values(_new_state(PlanState.DROPPED, 'nobody has approved it in time', now))).rowcount


def drop_live(tx: Tx, domain_id: str, server: str | sa.Select[Any], why: str, now: datetime) -> int:
    """As :func:`drop`, for the plans of a domain on a server, or on the servers that a statement finds."""
    return drop(tx, [domain_id], why, now, TABLE.c.server_id == server if isinstance(server, str) else
                TABLE.c.server_id.in_(server))


def drop_of_server(tx: Tx, server_id: str, why: str, now: datetime) -> int:
    """As :func:`drop`, for the plans of all domains on a server."""
    return tx.execute(TABLE.update().where(TABLE.c.server_id == server_id, TABLE.c.state.in_(LIVE))
                      .values(_new_state(PlanState.DROPPED, why, now))).rowcount


def rename_pool(tx: Tx, former: str, name: str) -> None:
    """Have the plans for a pool be those of its new name."""
    tx.execute(TABLE.update().where(TABLE.c.pool_name == former).values(pool_name=name))


def reserve(tx: Tx, plan: StoredPlan, limit: int, since: datetime, now: datetime) -> int | None:
    """Store *plan* as begun, unless the deletes of the pool since then would exceed *limit*.

    Other reservations for the pool wait meanwhile, so that each sees those before it.  A plan that began and whose end
    is not known is replaced by the next one for the same domain, or zone without a domain, on the same server.

    :returns: None if it was stored, else the number of deletes without it
    """
    tx.execute(sa.select(pool_servers.c.id).where(pool_servers.c.pool_id == pool_store.id_of(plan.pool_name))
               .order_by(pool_servers.c.id).with_for_update()).all()
    # NULL is equal to nothing, so a condition on the id of a domain is never true or false for a zone without one.
    about = (sa.and_(TABLE.c.domain_id.is_not(None), TABLE.c.domain_id == plan.domain_id) if plan.domain_id is not None
             else sa.and_(TABLE.c.domain_id.is_(None), TABLE.c.zone == plan.zone))
    own = sa.and_(about, TABLE.c.server_id == plan.server_id)
    ended = sa.or_(sa.not_(own), TABLE.c.why.is_(None), TABLE.c.why != _BEGUN)
    before = deletes_since(tx, plan.pool_name, since, ended)
    if before + plan.deletes > limit:
        return before
    tx.execute(TABLE.delete().where(own, TABLE.c.state == PlanState.FAILED, TABLE.c.why == _BEGUN))
    put(tx, dataclasses.replace(plan, state=PlanState.FAILED, why=_BEGUN, applied_at=now), now)
    return None


def deletes_since(tx: Tx, pool_name: str, since: datetime, where: Any = sa.true()) -> int:
    """How many deletes are in the plans that the pool's managers have begun since then, or that are approved.

    :param where: a further condition on the plans that were begun
    """
    of_pool = sa.and_(TABLE.c.pool_name == pool_name, TABLE.c.server_id.is_not(None))
    return sum(int(tx.execute(sa.select(sa.func.coalesce(sa.func.sum(TABLE.c.deletes), 0)).where(of_pool, *conditions))
                   .scalar_one()) for conditions in (
        (TABLE.c.applied_at >= since, TABLE.c.state.in_(_TRIED), where),
        (TABLE.c.updated_at >= since, TABLE.c.state == PlanState.APPROVED)))


def expire(tx: Tx, before: datetime, limit: int) -> int:
    """Delete about *limit* plans at most that expired and were last written before then; how many."""
    removed = 0
    for state in PlanState:  # one by one, since the index begins with the state
        ids = list(tx.execute(sa.select(TABLE.c.id).where(TABLE.c.state == state, TABLE.c.expires_at < before,
                                                          TABLE.c.updated_at < before)
                              .order_by(TABLE.c.expires_at).limit(limit - removed)).scalars())
        if ids:
            tx.execute(TABLE.delete().where(TABLE.c.id.in_(ids)))
        removed += len(ids)
        if removed >= limit:
            break
    return removed


def _unpacked(plan: StoredPlan | None) -> StoredPlan | None:
    if plan is None or not plan.document.startswith(_COMPRESSED):
        return plan
    packed = base64.b64decode(plan.document.removeprefix(_COMPRESSED))
    return dataclasses.replace(plan, document=zlib.decompress(packed).decode())


def _packed(document: str) -> str:
    if len(document) > _LONG_DOCUMENT:
        document = _COMPRESSED + base64.b64encode(zlib.compress(document.encode())).decode()
    if len(document) > MAX_DOCUMENT:
        raise InvalidField(field='document', why='it is too long to be kept, also when it is compressed')
    return document


def _new_state(state: PlanState, why: str | None, now: datetime) -> dict[str, Any]:
    return {'state': state, 'updated_at': now} | ({} if why is None else {'why': storable(why, _MAX_WHY)})


def _seen_by(project_id: str | None) -> Any:
    if project_id is None:
        return sa.true()
    return sa.or_(TABLE.c.project_id == project_id, TABLE.c.asking_project_id == project_id, sa.and_(
        TABLE.c.server_id.is_not(None),
        sa.exists().where(domains.c.id == TABLE.c.domain_id, domains.c.project_id == project_id)))
