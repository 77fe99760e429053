"""The rules for stored plans; each function that takes a transaction is the work of one.

A domain's plan is visible to everybody who may see the domain; a plan stored by an operator may be about any zone, and
is visible to those who may see all projects.

A plan of a domain and no server is a change that waits for approval: the request, and what it changes.  It is visible
to the project that owned the domain when it was asked for, and to that of who asked.  The invariant: where approval is
required, what somebody may not approve is written only in a transaction that finds it in a parked plan, exactly, and
marks that as applied; and the user who asked for it has not approved it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from designate_pool.central import transactions
from designate_pool.central.validation import fields
from designate_pool.errors import (ChangeMoved, Conflict, DomainNotFound, DuplicateRecordSet, Forbidden, InvalidField,
                                   NotFound, PlanNotFound, PoolError, RecordSetNotFound, Refused, WaitsForApproval,
                                   WrongPlanState)
from designate_pool.model import (Action, ChangeKind, Context, Domain, PageRequest, PlanState, RecordChange, Status,
                                  StoredPlan, new_id)
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains, plans as store

LOG = logging.getLogger(__name__)
T = TypeVar('T')
_BEGINNING = re.compile('[0-9a-f]{4,32}')
_LENGTHS = {'pool_name': 50, 'zone': 1010, 'target': 300, 'desired_digest': 96, 'existing_digest': 96}
_ASCII = ('zone', 'desired_digest', 'existing_digest')
#: The states in which an operator's plan may be applied: not applied yet, or in part.
_APPLICABLE = (PlanState.STORED, PlanState.FAILED)
#: Changes of a domain, and of any, that may wait at the same time for a project, and characters of one.
MOST_OF_DOMAIN, MOST_OF_PROJECT, MOST_CHARACTERS = 100, 1000, 1 << 20
#: What of its context a waiting request is carried out with.
_ASKER = ('request_id', 'project_id', 'all_projects', 'user', 'may_nest', 'may_edit_managed', 'address', 'client',
          'kind')
#: Of these, what whoever approves it has to have too.
_RIGHTS = ('may_nest', 'may_edit_managed')


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


def put(tx: Tx, context: Context, plan: StoredPlan, now: datetime) -> StoredPlan:
    """Store a plan; storing it twice has no further effect."""
    kept = store.put(tx, dataclasses.replace(plan, asked_by=_who(context)), now)
    if (kept.zone, kept.target, kept.document) != (plan.zone, plan.target, plan.document):
        raise Conflict(why=f'another plan with the id {plan.id} is there already')
    return kept


def get(tx: Tx, context: Context, plan_id: Any, read: Callable[[Tx, str], StoredPlan | None] = store.get) -> StoredPlan:
    """A plan by its id, or by the first digits of the id; *read* may lock it."""
    plan = _find(tx, context, plan_id, read)
    if plan is None:
        raise PlanNotFound(plan=plan_id)
    return plan


def _find(tx: Tx, context: Context, plan_id: Any,
          read: Callable[[Tx, str], StoredPlan | None] = store.get) -> StoredPlan | None:
    plain = plan_id.replace('-', '').lower() if isinstance(plan_id, str) else ''
    ids = store.ids_from(tx, plain, context.scope) if _BEGINNING.fullmatch(plain) else []
    if len(ids) > 1:
        raise InvalidField(field='plan_id', why=f'{plan_id} fits several; give more digits')
    return read(tx, ids[0]) if ids else None


def approve(tx: Tx, context: Context, plan_id: Any, now: datetime) -> tuple[StoredPlan, Domain]:
    """The plan, and its domain, for a cast.  Approving twice has no further effect."""
    plan = get(tx, context, plan_id, store.lock)
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


def drop(tx: Tx, context: Context, plan_id: Any, now: datetime) -> StoredPlan:
    """Drop a plan; dropping it twice has no further effect."""
    plan = get(tx, context, plan_id, store.lock)
    if plan.state in (PlanState.APPLIED, PlanState.FAILED):
        raise WrongPlanState(plan=plan.id, state=plan.state, why='it was applied already')
    store.change_state(tx, plan.id, (PlanState.STORED, *store.LIVE), PlanState.DROPPED, 'dropped by command', now,
                       _who(context))
    return _stored(tx, plan)


def settle(tx: Tx, context: Context, plan_id: Any, state: PlanState, why: str | None, now: datetime) -> StoredPlan:
    """Record how a plan ended; twice has no further effect.  One that failed may be applied again."""
    plan = get(tx, context, plan_id, store.lock)
    if plan.domain_id is not None:
        raise WrongPlanState(plan=plan.id, state=plan.state, why='its pool manager records how it ends')
    if plan.state not in (*_APPLICABLE, state):
        raise WrongPlanState(plan=plan.id, state=plan.state, why=f'it cannot become {state}')
    store.change_state(tx, plan.id, _APPLICABLE, state, why, now, _who(context))
    return _stored(tx, plan)


def gate(tx: Tx, context: Context, domain: Domain, changes: Callable[[], Sequence[Any]], now: datetime,
         value: Callable[[], Any]) -> None:
    """Let a change of a locked domain pass that needs no approval, or was approved; its plan is applied by that.

    :param changes: what it changes, as JSON
    :param value: what the request asks for, as it will be
    :raises WaitsForApproval: when it needs approval
    :raises ChangeMoved: when it was approved, and would change something else by now
    """
    if not context.approved_by and (not domain.needs_approval
                                    or context.may_approve and context.sees(domain.project_id)):
        return
    made = list(changes())
    if not context.approved_by:
        raise WaitsForApproval(domain=domain, changes=made, value=value(), plan='')
    plan = store.lock(tx, context.operation_id)
    if plan is None or plan.state is not PlanState.PARKED:
        raise _ended(context.operation_id, 'does not wait for approval any more')
    asked = json.loads(plan.document)
    if _served(asked['changes'], asked['request']['ttl']) != _served(made, domain.ttl):
        raise ChangeMoved(change=plan.id, why=f'what it changes in {domain.name} has changed since')
    store.change_state(tx, plan.id, (PlanState.PARKED,), PlanState.APPLIED, f'approved by {context.approved_by}', now)


def _served(changes: Sequence[dict[str, Any]], zone_ttl: int) -> list[dict[str, Any]]:
    """Changes with the TTL of the zone where a recordset has none."""
    return [{key: {**value, 'ttl': zone_ttl} if isinstance(value, dict) and value.get('ttl', '') is None else value
             for key, value in change.items()} for change in changes]


def gate_values(tx: Tx, context: Context, old: Domain, new: Domain, now: datetime, *names: str) -> None:
    """As :func:`gate`, for a change of a domain's own fields."""
    before, after = ({name: getattr(domain, name) for name in sorted(names) if getattr(old, name) != getattr(new, name)}
                     for domain in (old, new))
    gate(tx, context, old, lambda: [zone_change(old, before, after)], now,
         lambda: dataclasses.replace(new, action=Action.UPDATE, status=Status.PENDING))


def gate_domain(tx: Tx, context: Context, domain: Domain, action: Action, now: datetime, **how: Any) -> None:
    """As :func:`gate`, for the deletion or restoration of a domain.  A refresh of a secondary one does not matter.

    :param how: what else of the request is shown to who approves it, and compared
    """
    before = {'masters': domain.masters} if domain.is_secondary else {'serial': domain.serial}
    gate(tx, context, domain, lambda: [zone_change(domain, before, {'action': action.value, **how})], now,
         lambda: dataclasses.replace(domain, action=action, status=Status.PENDING))


def zone_change(domain: Domain, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """A change of a domain that is not one of its recordsets."""
    return {'name': domain.name, 'type': 'zone', 'before': dict(before), 'after': dict(after)}


def put_change(tx: Tx, context: Context, change: WaitsForApproval, method: str, arguments: Mapping[str, Any],
               plan_id: str, lifetime: timedelta, now: datetime) -> StoredPlan:
    """Store a request of Central that waits for approval, unless the same user waits for the same already.

    :raises Refused: when it is too large, or too many wait
    """
    domain, changes = change.kwargs['domain'], change.kwargs['changes']
    # With the arguments: records of two instances may be the same, and one of them ended.
    asked = json.dumps([changes, method, {name: value for name, value in arguments.items() if name != 'at'}],
                       sort_keys=True, default=_as_json)
    digest = hashlib.sha256(asked.encode()).hexdigest()
    document = json.dumps({'changes': changes, 'request': {
        'method': method, 'arguments': arguments, 'ttl': domain.ttl,
        'context': {name: getattr(context, name) for name in _ASKER}}}, default=_as_json)
    waiting = store.waiting(tx, domain.id, now)
    for plan in waiting:
        if (plan.desired_digest, plan.asked_by) == (digest, _who(context)):
            if 'at' in arguments:  # a later event of the same resource
                store.save_document(tx, plan.id, document)
            return plan
    own = sum(plan.asking_project_id == context.project_id for plan in waiting)
    if own >= MOST_OF_DOMAIN or store.count_waiting(tx, context.project_id, now) >= MOST_OF_PROJECT:
        raise Refused('too_many_waiting_changes', f'Too many changes of {domain.name}, or of all zones, wait for '
                                                  'approval that your project has asked for; have some of them '
                                                  'approved or refused.', 409)
    if len(document) > MOST_CHARACTERS:
        raise Refused('change_too_large', f'A change of {domain.name} that waits for approval may have '
                                          f'{MOST_CHARACTERS} characters; make several smaller ones.', 413)
    kinds = [(made['before'] is None, made['after'] is None) for made in changes]
    return store.put(tx, StoredPlan(
        plan_id, domain.pool_name, domain.name, 'zone', PlanState.PARKED, domain.id, desired_digest=digest,
        creates=kinds.count((True, False)), updates=kinds.count((False, False)), deletes=kinds.count((False, True)),
        why='waits for approval', document=document, asked_by=_who(context), expires_at=now + lifetime,
        project_id=domain.project_id, asking_project_id=context.project_id), now)


def _as_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else {
        field.name: getattr(value, field.name) for field in dataclasses.fields(RecordChange)}


def changes(plan: StoredPlan) -> list[Any]:
    """What a waiting change changes."""
    return list(json.loads(plan.document or '{}').get('changes', ()))


def get_change(tx: Tx, context: Context, plan_id: Any) -> StoredPlan:
    """A change that waits for approval, or has."""
    plan = _find(tx, context, plan_id)
    if plan is None or plan.domain_id is None or plan.server_id is not None:
        raise NotFound(what=f'change {plan_id}', type='change_not_found')
    return plan


def _ended(change_id: str, how: str) -> Refused:
    return Refused('change_ended', f'The change {change_id} {how}.', 409)


def approved(tx: Tx, context: Context, plan_id: Any, now: datetime) -> tuple[StoredPlan, Context, str, dict[str, Any]]:
    """A waiting change that the sender may approve: the context, method and arguments of the request.

    The context has those rights alone that the sender has too; both see the domain.

    :raises Forbidden: when the sender has asked for it, has no name, or does not see all of the domain
    """
    plan = get_change(tx, context, plan_id)
    if plan.state is not PlanState.PARKED:
        raise _ended(plan.id, f'is {plan.state}, and does not wait for approval')
    request = json.loads(plan.document)['request']
    if not context.user or context.user == request['context']['user']:
        raise Forbidden(what=f'approve the change {plan.id}', why='somebody else than who asked for it has to')
    if not context.sees(plan.project_id or ''):
        raise Forbidden(what=f'approve the change {plan.id}', why='somebody of the project that owns the zone has to')
    if plan.expires_at is not None and plan.expires_at <= now:
        raise _ended(plan.id, 'has expired')
    asker = {**request['context'], 'kind': ChangeKind(request['context']['kind']),
             **{right: request['context'][right] and getattr(context, right) for right in _RIGHTS}}
    return (plan, Context(**asker, operation_id=plan.id, approved_by=context.user), request['method'],
            request['arguments'])


def refuse(tx: Tx, context: Context, plan_id: Any, why: str | None, now: datetime) -> StoredPlan:
    """Refuse a waiting change; refusing it twice has no further effect.

    :raises Forbidden: when the sender may not approve it, and has not asked for it
    """
    plan = get_change(tx, context, plan_id)
    if not (context.may_approve and context.sees(plan.project_id or '') or context.user
            and context.user == json.loads(plan.document)['request']['context']['user']):
        raise Forbidden(what=f'refuse the change {plan.id}', why='who may approve it has to, or who has asked for it')
    if not drop_change(tx, plan.id, f'refused by {_who(context)}{f": {why}" if why else ""}', now) \
            and _stored(tx, plan).state is not PlanState.DROPPED:
        raise _ended(plan.id, f'is {plan.state}, and does not wait for approval')
    return _stored(tx, plan)


def drop_change(tx: Tx, plan_id: str, why: str, now: datetime) -> bool:
    """End the wait of a change; whether it waited."""
    return store.change_state(tx, plan_id, (PlanState.PARKED,), PlanState.DROPPED, why, now)


def _stored(tx: Tx, plan: StoredPlan) -> StoredPlan:
    stored = store.get(tx, plan.id)
    assert stored is not None
    return stored


def _who(context: Context) -> str | None:
    return str(context.actor) or None


class WaitingChanges:
    """The changes that wait for approval.

    :param central: whose methods make them
    :param lifetime: seconds for which they can be approved
    """

    def __init__(self, storage: Storage, central: Any, lifetime: float) -> None:
        self._storage = storage
        self._run = functools.partial(transactions.run, storage)
        self._central = central
        self._lifetime = timedelta(seconds=lifetime)

    def store(self, context: Context, change: WaitsForApproval, method: str,
              arguments: Mapping[str, Any]) -> WaitsForApproval:
        """Store a request that waits for approval; *change* with the id of its plan."""
        plan = self._run(put_change, context, change, method, arguments, new_id(), self._lifetime, self._storage.now())
        LOG.info('%s: a change by %s waits for approval as %s [%s]', plan.zone, plan.asked_by, plan.id,
                 context.request_id)
        return WaitsForApproval(**{**change.kwargs, 'plan': plan.id})

    def find(self, context: Context, page: PageRequest = PageRequest()) -> list[StoredPlan]:
        """Changes that wait for approval, or have."""
        page = dataclasses.replace(page, criterion={**page.criterion, 'is_change': 'true'})
        return self._storage.read(store.find, page, context.scope)

    def get(self, context: Context, change_id: str) -> StoredPlan:
        """One change, by its id or at least the first four digits of it."""
        return self._storage.read(get_change, context, change_id)

    def approve(self, context: Context, change_id: str,
                check: Callable[[str, Context, str, Mapping[str, Any]], None] = lambda *_: None) -> StoredPlan:
        """Make a change that waits for approval, for who has asked for it.

        :param check: called before with the id, and the context, method and arguments of the request
        :raises ChangeMoved: when what it changes has changed since, or nothing of it is left; then it is dropped
        :raises Forbidden: as :func:`approved`, and when who has asked for it may not make it any more
        """
        plan, asker, method, arguments = self._storage.read(approved, context, change_id, self._storage.now())
        try:
            check(plan.id, asker, method, arguments)
            getattr(self._central, method)(asker, **arguments)
            if self.get(context, plan.id).state is PlanState.PARKED:
                raise ChangeMoved(change=plan.id, why='nothing of it is left to do')
        except PoolError as error:
            reason = str(error)
            if isinstance(error, (RecordSetNotFound, DuplicateRecordSet)):
                error = ChangeMoved(change=plan.id, why=reason.removesuffix('.'))
            elif isinstance(error, (DomainNotFound, Forbidden)):
                error = Forbidden(what=f'approve the change {plan.id}',
                                  why=f'who has asked for it may not make it any more: {reason.removesuffix(".")}')
            if isinstance(error, ChangeMoved):
                self._run(drop_change, plan.id, error.kwargs['why'], self._storage.now())
            if self.get(context, plan.id).state is not PlanState.APPLIED:  # by another one at the same time
                raise error from None
        LOG.info('%s: the change %s is approved by %s [%s]', plan.zone, plan.id, context.user, context.request_id)
        return self.get(context, plan.id)

    def refuse(self, context: Context, change_id: str, why: str | None = None) -> StoredPlan:
        """Refuse a change that waits for approval; who has asked for it withdraws it so."""
        return self._run(refuse, context, change_id, fields.optional_text('reason', why, 255), self._storage.now())


def stores_what_waits(*names: str) -> Callable[[type[T]], type[T]]:
    """Have methods of Central store their requests in its *changes* where these wait for approval."""
    def decorate(kind: type[T]) -> type[T]:
        for name in names:
            setattr(kind, name, _storing(getattr(kind, name)))
        return kind

    return decorate


def _storing(method: Callable[..., T]) -> Callable[..., T]:
    @functools.wraps(method)
    def call(central: Any, context: Context, *args: Any, **kwargs: Any) -> T:
        try:
            return method(central, context, *args, **kwargs)
        except WaitsForApproval as change:
            arguments = inspect.signature(method).bind(central, context, *args, **kwargs).arguments
            # The zone has the serial now that the request wants; what is changed is compared when it is approved.
            stored = {name: value for name, value in arguments.items() if name not in ('self', 'context', 'serial')}
            raise central.changes.store(context, change, method.__name__, stored) from None

    return call
