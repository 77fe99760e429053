"""``/v2/plans``: plans that were parked by a pool manager or stored by an operator, and what is decided about them.

``/v2/changes``: changes of zones that wait for the approval of somebody else, which are plans as well.
"""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Callable

import falcon

from designate_pool.api.auth.identity import pool_requester
from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources import floating_ips
from designate_pool.api.resources.base import Api, calls, lists
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (COUNT, ID, MOMENT, PLAN_STATE, TEXT, AnswerField, AnswerForm, ListAnswer,
                                               inline, many, maybe, zone_path)
from designate_pool.api.schema.operation import ADMIN, MEMBER, OPERATOR, READER, Operations
from designate_pool.central.rules.plans import changes
from designate_pool.model import PlanState, StoredPlan, dashed, new_id

#: The id may be the beginning of it, four digits at least.
_ONE = '/v2/plans/{plan_id}'
_PLAN = {
    'id': ID,
    'pool_name': TEXT,
    'zone_name': TEXT.of('zone'),
    'zone_id': maybe(ID).of('domain_id'),
    'target': TEXT,
    'server_id': maybe(ID),
    'state': PLAN_STATE,
    **dict.fromkeys(('creates', 'updates', 'deletes'), COUNT),
    'why': maybe(TEXT),
    'desired_digest': TEXT,
    'existing_digest': TEXT,
    'asked_by': maybe(TEXT),
    **dict.fromkeys(('expires_at', 'applied_at', 'created_at', 'updated_at'), maybe(MOMENT)),
}
_LINKS: dict[str, Callable[[StoredPlan], str | None]] = {
    'self': lambda plan: f'/v2/plans/{dashed(plan.id)}',
    'zone': lambda plan: None if plan.domain_id is None else zone_path(plan.domain_id),
    'server': lambda plan: None if plan.server_id is None else f'/v2/servers/{dashed(plan.server_id)}',
}
PLAN = AnswerForm('Plan', _PLAN, _LINKS, 'zone', 'server')
WHOLE_PLAN = AnswerForm('WholePlan', {
    **_PLAN, 'document': AnswerField({'type': 'object'}).of(lambda plan: {
        # That of a change has the address of who asked for it.
        name: part for name, part in json.loads(plan.document or '{}').items() if name != 'request'})},
    _LINKS, 'zone', 'server')
_CHANGE = {
    **{name: _PLAN[name] for name in ('id', 'zone_name', 'state', 'creates', 'updates', 'deletes', 'expires_at',
                                      'created_at', 'updated_at')},
    'zone_id': ID.of('domain_id'),
    'asked_by': maybe(TEXT).about('Who may not approve it, but withdraw it.'),
    'why': maybe(TEXT).about('That it waits, or who has approved or refused it.'),
}
_CHANGE_LINKS: dict[str, Callable[[StoredPlan], str | None]] = {
    'self': lambda plan: f'/v2/changes/{dashed(plan.id)}', 'zone': _LINKS['zone']}
CHANGE = AnswerForm('Change', _CHANGE, _CHANGE_LINKS)
WHOLE_CHANGE = AnswerForm('WholeChange', {**_CHANGE, 'changes': many(inline(AnswerForm('', {
    'name': TEXT.of(operator.itemgetter('name')),
    'type': TEXT.of(operator.itemgetter('type')).about('Of a recordset; "zone" for the zone itself.'),
    'before': maybe(AnswerField({'type': 'object'}).of(operator.itemgetter('before'))),
    'after': maybe(AnswerField({'type': 'object'}).of(operator.itemgetter('after'))),
}))).of(changes)}, _CHANGE_LINKS)
CHANGES = ListAnswer('Changes', 'changes', CHANGE)
PLANS = ListAnswer('Plans', 'plans', PLAN)
OPERATIONS = Operations('plans')
OPERATIONS.add('GET', '/v2/plans', 'List plans', OPERATOR, {200: PLANS}, 'list_plans',
               query=request_fields.PLAN_FILTERS, is_list=True)(
    lists(lambda central: central.find_plans, pool_requester))
OPERATIONS.add('GET', _ONE, 'Show a plan with its changes', OPERATOR, {200: WHOLE_PLAN}, 'show_plan')(
    calls(lambda central: central.get_plan, pool_requester))
OPERATIONS.add('DELETE', _ONE, 'Drop a plan; it is listed as dropped until it expires', OPERATOR, {200: PLAN},
               'drop_plan')(calls(lambda central: central.drop_plan, pool_requester))
OPERATIONS.add('GET', '/v2/changes', 'List changes that wait for approval, or have', READER, {200: CHANGES},
               'list_changes', query=request_fields.CHANGE_FILTERS, is_list=True, tag='changes')(
    lists(lambda central: central.changes.find))
OPERATIONS.add('GET', '/v2/changes/{change_id}', 'Show a change that waits for approval, with what it changes', READER,
               {200: WHOLE_CHANGE}, 'show_change', tag='changes')(calls(lambda central: central.changes.get))
OPERATIONS.add('POST', f'{_ONE}/approve', 'Approve a parked plan, so that it is applied', OPERATOR, {202: PLAN},
               'approve_plan', body={}, body_optional=True)(calls(lambda central: central.approve_plan, pool_requester))
OPERATIONS.add('POST', '/v2/changes/{change_id}/refuse', 'Refuse a change, or withdraw one of your own', MEMBER,
               {200: CHANGE}, 'refuse_change', 'changes', body=request_fields.CHANGE_REFUSE, body_optional=True)(
    calls(lambda central: central.changes.refuse))


@OPERATIONS.add('POST', '/v2/plans', 'Store a plan', OPERATOR, {201: WHOLE_PLAN}, body=request_fields.PLAN_CREATE,
                has_location=True)
def create_plan(api: Api, req: falcon.Request, resp: falcon.Response) -> StoredPlan:
    values = {'id': new_id(), 'pool_name': '', **request.body(req, api.whole_zone_limit)}
    return api.central.put_plan(pool_requester(req), StoredPlan(state=PlanState.STORED, **values))


@OPERATIONS.add('POST', _ONE + '/settle', 'Record how a stored plan ended', OPERATOR, {200: PLAN},
                body=request_fields.PLAN_SETTLE)
def settle_plan(api: Api, req: falcon.Request, resp: falcon.Response, plan_id: str) -> StoredPlan:
    values = request.body(req)
    return api.central.settle_plan(pool_requester(req), plan_id, PlanState(values['state']), values.get('why'))


@OPERATIONS.add('POST', '/v2/changes/{change_id}/approve', 'Approve a change that somebody else has asked for', ADMIN,
                {202: CHANGE}, body={}, body_optional=True, tag='changes')
def approve_change(api: Api, req: falcon.Request, resp: falcon.Response, change_id: str) -> StoredPlan:
    request.body(req)
    return api.central.changes.approve(requester(req), change_id,
                                       functools.partial(floating_ips.check_approved, api, req))
