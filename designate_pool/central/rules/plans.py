"""The rules for stored plans; each function that takes a transaction is the work of one.

A domain's plan is visible to everybody who may see the domain; a plan stored by an operator may be about any zone, and
is visible to those who may see all projects.
"""

from __future__ import annotations

import dataclasses
import re
from datetime import datetime
from typing import Any

from designate_pool.central.validation import fields
from designate_pool.errors import Conflict, InvalidField, PlanNotFound, WrongPlanState
from designate_pool.model import Context, Domain, PlanState, StoredPlan
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains
from designate_pool.storage.zones import plans as store

_BEGINNING = re.compile('[0-9a-f]{4,32}')
_LENGTHS = {'pool_name': 50, 'zone': 1010, 'target': 300, 'desired_digest': 96, 'existing_digest': 96}
_ASCII = ('zone', 'desired_digest', 'existing_digest')
#: The states in which an operator's plan may be applied: not applied yet, or in part.
_APPLICABLE = (PlanState.STORED, PlanState.FAILED)


def parse(plan: StoredPlan, default_pool_name: str) -> StoredPlan:
    """An operator's plan, checked but for the kinds of its values; without a pool it is of *default_pool_name*.

    :raises InvalidField: for a text that cannot be stored
    """
    for name, longest in _LENGTHS.items():
        value = fields.text(name, getattr(plan, name), longest)
        if name in _ASCII and not value.isascii():
            raise InvalidField(field=name, why='not ASCII')
    fields.text('document', plan.document)
    if plan.why is not None:
        fields.text('why', plan.why)
    return dataclasses.replace(plan, pool_name=plan.pool_name or default_pool_name)


def put(tx: Tx, plan: StoredPlan, now: datetime) -> StoredPlan:
    """Store a plan; storing it twice has no further effect."""
    kept = store.put(tx, plan, now)
    if (kept.zone, kept.target, kept.document) != (plan.zone, plan.target, plan.document):
        raise Conflict(why=f'another plan with the id {plan.id} is there already')
    return kept


def get(tx: Tx, context: Context, given: Any) -> StoredPlan:
    """A plan by its id, or by the first digits of the id."""
    plan_id = _resolved(tx, context, given)
    plan = store.get(tx, plan_id)
    if plan is None or not _seen(tx, context, plan):
        raise PlanNotFound(plan=given)
    return plan


def approve(tx: Tx, context: Context, given: Any, now: datetime) -> tuple[StoredPlan, Domain]:
    """The plan, and its domain, for a cast.  Approving twice has no further effect."""
    plan = _locked(tx, context, given)
    if plan.state is PlanState.STORED:
        raise WrongPlanState(plan=plan.id, state=plan.state, why='a stored plan is applied by its author, not approved')
    if plan.state not in store.LIVE or plan.domain_id is None or plan.server_id is None:
        raise WrongPlanState(plan=plan.id, state=plan.state, why='only a parked plan can be approved')
    if plan.state is PlanState.PARKED and plan.expires_at is not None and plan.expires_at <= now:
        raise WrongPlanState(plan=plan.id, state=plan.state, why='it has expired; a new one is made at the next try')
    domain = domains.get(tx, plan.domain_id)
    assert domain is not None
    store.change_state(tx, plan.id, (PlanState.PARKED,), PlanState.APPROVED, None, now, _who(context))
    server_statuses.wake_domain(tx, plan.server_id, plan.domain_id, now, domain.is_going)
    return _stored(tx, plan), domain


def drop(tx: Tx, context: Context, given: Any, now: datetime) -> StoredPlan:
    """Drop a plan; dropping it twice has no further effect."""
    plan = _locked(tx, context, given)
    if plan.state in (PlanState.APPLIED, PlanState.FAILED):
        raise WrongPlanState(plan=plan.id, state=plan.state, why='it was applied already')
    store.change_state(tx, plan.id, (PlanState.STORED, *store.LIVE), PlanState.DROPPED, 'dropped by command', now,
                       _who(context))
    return _stored(tx, plan)


def settle(tx: Tx, context: Context, given: Any, state: PlanState, why: str | None, now: datetime) -> StoredPlan:
    """Record how a plan ended; twice has no further effect.  One that failed may be applied again."""
    plan = _locked(tx, context, given)
    if plan.domain_id is not None:
        raise WrongPlanState(plan=plan.id, state=plan.state, why='its pool manager records how it ends')
    if plan.state not in (*_APPLICABLE, state):
        raise WrongPlanState(plan=plan.id, state=plan.state, why=f'it cannot become {state}')
    store.change_state(tx, plan.id, _APPLICABLE, state, why, now, _who(context))
    return _stored(tx, plan)


def _locked(tx: Tx, context: Context, given: Any) -> StoredPlan:
    plan_id = _resolved(tx, context, given)
    plan = store.lock(tx, plan_id)
    if plan is None or not _seen(tx, context, plan):
        raise PlanNotFound(plan=given)
    return plan


def _resolved(tx: Tx, context: Context, given: Any) -> str:
    """The id that begins with *given*."""
    plain = given.replace('-', '').lower() if isinstance(given, str) else ''
    if not _BEGINNING.fullmatch(plain):
        raise PlanNotFound(plan=given)
    if len(plain) == 32:
        return plain
    ids = store.ids_from(tx, plain, context.scope)
    if not ids:
        raise PlanNotFound(plan=given)
    if len(ids) > 1:
        raise InvalidField(field='plan_id', why=f'{given} fits several plans; give more digits')
    return ids[0]


def _seen(tx: Tx, context: Context, plan: StoredPlan) -> bool:
    if plan.domain_id is None:
        return context.all_projects  # it may be about any project's zone
    domain = domains.get(tx, plan.domain_id)
    return domain is not None and context.sees(domain.project_id)


def _stored(tx: Tx, plan: StoredPlan) -> StoredPlan:
    stored = store.get(tx, plan.id)
    assert stored is not None
    return stored


def _who(context: Context) -> str | None:
    return context.user or context.project_id or None
