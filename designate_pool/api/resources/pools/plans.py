"""``/v2/plans``: plans that were parked by a pool manager or stored by an operator, and what is decided about them."""

from __future__ import annotations

import falcon

from designate_pool.api.auth.identity import pool_requester
from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer
from designate_pool.api.resources.base import CentralResource, answer_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import OPERATOR, ApiOperation, Schema
from designate_pool.api.schema.response_types import COUNT, ID, MOMENT, PLAN_STATE, TEXT, links, listed, maybe, shape
from designate_pool.api.views import plans
from designate_pool.central.service import Central
from designate_pool.model import PlanState, StoredPlan, new_id

_ONE = '/v2/plans/{plan_id}'
OPERATIONS = (
    ApiOperation('list_plans', 'GET', '/v2/plans', 'List plans', OPERATOR, {200: 'Plans'},
                 query=request_fields.PLAN_FILTERS, is_list=True),
    ApiOperation('create_plan', 'POST', '/v2/plans', 'Store a plan', OPERATOR, {201: 'WholePlan'},
                 body=request_fields.PLAN_CREATE),
    ApiOperation('show_plan', 'GET', _ONE, 'Show a plan with its changes', OPERATOR, {200: 'WholePlan'}),
    ApiOperation('drop_plan', 'DELETE', _ONE, 'Drop a plan; it is listed as dropped until it expires', OPERATOR,
                 {200: 'Plan'}),
    ApiOperation('approve_plan', 'POST', _ONE + '/approve', 'Approve a parked plan, so that it is applied', OPERATOR,
                 {202: 'Plan'}, body={}, body_optional=True),
    ApiOperation('settle_plan', 'POST', _ONE + '/settle', 'Record how a stored plan ended', OPERATOR, {200: 'Plan'},
                 body=request_fields.PLAN_SETTLE),
)
_PLAN = {
    'id': ID,
    'pool_name': TEXT,
    'zone_name': TEXT,
    'zone_id': maybe(ID),
    'target': TEXT,
    'server_id': maybe(ID),
    'state': PLAN_STATE,
    'creates': COUNT,
    'updates': COUNT,
    'deletes': COUNT,
    'why': maybe(TEXT),
    'desired_digest': TEXT,
    'existing_digest': TEXT,
    'asked_by': maybe(TEXT),
    'expires_at': maybe(MOMENT),
    'applied_at': maybe(MOMENT),
    'created_at': maybe(MOMENT),
    'updated_at': maybe(MOMENT),
    'links': links('self', optional=('zone', 'server')),
}
SCHEMAS: dict[str, Schema] = {
    'Plan': shape(_PLAN),
    'WholePlan': shape({**_PLAN, 'document': {'type': 'object'}}),
    'Plans': listed('plans', 'Plan'),
}


class PlansResource(CentralResource):
    """
    :param limit: how many bytes a plan may have
    """

    def __init__(self, central: Central, limit: int) -> None:
        super().__init__(central)
        self._limit = limit

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, 'plans', request_fields.PLAN_FILTERS, self._central.find_plans, plans.plan,
                    pool_requester(req))

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        values = {'id': new_id(), 'pool_name': '', **request.body(req, request_fields.PLAN_CREATE, limit=self._limit)}
        stored = self._central.put_plan(pool_requester(req), StoredPlan(state=PlanState.STORED, **values))
        answer(resp, plans.whole_plan(stored, req.prefix), 201, at=plans.plan_address(stored.id, req.prefix))


class PlanResource(CentralResource):
    """One plan; its id may be the beginning of it, four digits at least."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        plan = self._central.get_plan(pool_requester(req), plan_id)
        answer(resp, plans.whole_plan(plan, req.prefix))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        """It is dropped, and shown as such until it expires."""
        dropped = self._central.drop_plan(pool_requester(req), plan_id)
        answer(resp, plans.plan(dropped, req.prefix))

    def on_post_approve(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        request.body(req, {}, optional=True)
        approved = self._central.approve_plan(pool_requester(req), plan_id)
        answer(resp, plans.plan(approved, req.prefix), 202)

    def on_post_settle(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        values = request.body(req, request_fields.PLAN_SETTLE)
        settled = self._central.settle_plan(pool_requester(req), plan_id,
                                            PlanState(values['state']), values.get('why'))
        answer(resp, plans.plan(settled, req.prefix))
