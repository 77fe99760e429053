"""``/v2/plans``: plans that were parked by a pool manager or stored by an operator, and what is decided about them."""

from __future__ import annotations

import json
from collections.abc import Callable

import falcon

from designate_pool.api.auth.identity import pool_requester
from designate_pool.api.http import request
from designate_pool.api.resources.base import Api, show_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (COUNT, ID, MOMENT, PLAN_STATE, TEXT, AnswerField, AnswerForm, Json,
                                               ListAnswer, maybe, zone_path)
from designate_pool.api.schema.operation import OPERATOR, Operations
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
    **_PLAN, 'document': AnswerField({'type': 'object'}).of(lambda plan: json.loads(plan.document or '{}'))},
    _LINKS, 'zone', 'server')
PLANS = ListAnswer('Plans', 'plans', PLAN)
OPERATIONS = Operations('plans')


@OPERATIONS.add('GET', '/v2/plans', 'List plans', OPERATOR, {200: PLANS}, query=request_fields.PLAN_FILTERS,
                is_list=True)
def list_plans(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return show_page(req, api.central.find_plans, pool_requester(req))


@OPERATIONS.add('POST', '/v2/plans', 'Store a plan', OPERATOR, {201: WHOLE_PLAN}, body=request_fields.PLAN_CREATE,
                has_location=True)
def create_plan(api: Api, req: falcon.Request, resp: falcon.Response) -> StoredPlan:
    values = {'id': new_id(), 'pool_name': '', **request.body(req, api.whole_zone_limit)}
    return api.central.put_plan(pool_requester(req), StoredPlan(state=PlanState.STORED, **values))


@OPERATIONS.add('GET', _ONE, 'Show a plan with its changes', OPERATOR, {200: WHOLE_PLAN})
def show_plan(api: Api, req: falcon.Request, resp: falcon.Response, plan_id: str) -> StoredPlan:
    return api.central.get_plan(pool_requester(req), plan_id)


@OPERATIONS.add('DELETE', _ONE, 'Drop a plan; it is listed as dropped until it expires', OPERATOR, {200: PLAN})
def drop_plan(api: Api, req: falcon.Request, resp: falcon.Response, plan_id: str) -> StoredPlan:
    return api.central.drop_plan(pool_requester(req), plan_id)


@OPERATIONS.add('POST', _ONE + '/approve', 'Approve a parked plan, so that it is applied', OPERATOR, {202: PLAN},
                body={}, body_optional=True)
def approve_plan(api: Api, req: falcon.Request, resp: falcon.Response, plan_id: str) -> StoredPlan:
    request.body(req)
    return api.central.approve_plan(pool_requester(req), plan_id)


@OPERATIONS.add('POST', _ONE + '/settle', 'Record how a stored plan ended', OPERATOR, {200: PLAN},
                body=request_fields.PLAN_SETTLE)
def settle_plan(api: Api, req: falcon.Request, resp: falcon.Response, plan_id: str) -> StoredPlan:
    values = request.body(req)
    return api.central.settle_plan(pool_requester(req), plan_id, PlanState(values['state']), values.get('why'))
