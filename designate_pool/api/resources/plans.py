"""``/v2/plans``: plans that were parked by a pool manager or stored by an operator, and what is decided about them."""

from __future__ import annotations

import json
from collections.abc import Callable

import falcon

from designate_pool.api.auth.identity import pool_requester
from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, answer_created
from designate_pool.api.resources.base import CentralResource, answer_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (COUNT, ID, MOMENT, PLAN_STATE, TEXT, AnswerField, AnswerForm, ListAnswer,
                                               maybe, zone_path)
from designate_pool.api.schema.operation import OPERATOR, ApiOperation
from designate_pool.central.service import Central
from designate_pool.model import PlanState, StoredPlan, dashed, new_id

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
OPERATIONS = (
    ApiOperation('list_plans', 'GET', '/v2/plans', 'List plans', OPERATOR, {200: PLANS},
                 query=request_fields.PLAN_FILTERS, is_list=True),
    ApiOperation('create_plan', 'POST', '/v2/plans', 'Store a plan', OPERATOR, {201: WHOLE_PLAN},
                 body=request_fields.PLAN_CREATE),
    ApiOperation('show_plan', 'GET', _ONE, 'Show a plan with its changes', OPERATOR, {200: WHOLE_PLAN}),
    ApiOperation('drop_plan', 'DELETE', _ONE, 'Drop a plan; it is listed as dropped until it expires', OPERATOR,
                 {200: PLAN}),
    ApiOperation('approve_plan', 'POST', _ONE + '/approve', 'Approve a parked plan, so that it is applied', OPERATOR,
                 {202: PLAN}, body={}, body_optional=True),
    ApiOperation('settle_plan', 'POST', _ONE + '/settle', 'Record how a stored plan ended', OPERATOR, {200: PLAN},
                 body=request_fields.PLAN_SETTLE),
)


class PlansResource(CentralResource):
    """
    :param limit: how many bytes a plan may have
    """

    def __init__(self, central: Central, limit: int) -> None:
        super().__init__(central)
        self._limit = limit

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, PLANS, request_fields.PLAN_FILTERS, self._central.find_plans, pool_requester(req))

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        values = {'id': new_id(), 'pool_name': '', **request.body(req, request_fields.PLAN_CREATE, limit=self._limit)}
        stored = self._central.put_plan(pool_requester(req), StoredPlan(state=PlanState.STORED, **values))
        answer_created(req, resp, WHOLE_PLAN, stored)


class PlanResource(CentralResource):
    """One plan; its id may be the beginning of it, four digits at least."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        plan = self._central.get_plan(pool_requester(req), plan_id)
        answer(resp, WHOLE_PLAN.show(plan, req.prefix))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        """It is dropped, and shown as such until it expires."""
        dropped = self._central.drop_plan(pool_requester(req), plan_id)
        answer(resp, PLAN.show(dropped, req.prefix))

    def on_post_approve(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        request.body(req, {}, optional=True)
        approved = self._central.approve_plan(pool_requester(req), plan_id)
        answer(resp, PLAN.show(approved, req.prefix), 202)

    def on_post_settle(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        values = request.body(req, request_fields.PLAN_SETTLE)
        settled = self._central.settle_plan(pool_requester(req), plan_id,
                                            PlanState(values['state']), values.get('why'))
        answer(resp, PLAN.show(settled, req.prefix))
