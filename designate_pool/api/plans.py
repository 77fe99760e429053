"""``/v2/plans``: plans that were parked by a pool manager or stored by an operator, and what is decided about them."""

from __future__ import annotations

import falcon

from designate_pool.api import fields, plan_views, reading, views
from designate_pool.api.answering import answer, asker
from designate_pool.model import PlanState, StoredPlan, new_id
from designate_pool.rpc.central import CentralClient


class Plans:
    """
    :param limit: how many bytes a plan may have
    """

    def __init__(self, central: CentralClient, limit: int) -> None:
        self._central = central
        self._limit = limit

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        wanted = reading.listing(req, fields.PLAN_FILTERS)
        found = self._central.find_plans(asker(req), **wanted.ask())
        page, links = reading.page_links(req, found, wanted.limit)
        answer(resp, views.page('plans', [plan_views.plan(each, req.prefix) for each in page], links))

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        given = {'id': new_id(), 'pool_name': '', **reading.body(req, fields.PLAN_CREATE, limit=self._limit)}
        stored = self._central.put_plan(asker(req), StoredPlan(state=PlanState.STORED, **given))
        answer(resp, plan_views.whole_plan(stored, req.prefix), 201, at=plan_views.plan_address(stored.id, req.prefix))


class Plan:
    """One plan; its id may be the beginning of it, four digits at least."""

    def __init__(self, central: CentralClient) -> None:
        self._central = central

    def on_get(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        found = self._central.get_plan(asker(req), fields.plan_id('plan_id', plan_id))
        answer(resp, plan_views.whole_plan(found, req.prefix))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        """It is dropped, and shown as such until it expires."""
        dropped = self._central.drop_plan(asker(req), fields.plan_id('plan_id', plan_id))
        answer(resp, plan_views.plan(dropped, req.prefix))

    def on_post_approve(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        reading.body(req, {}, optional=True)
        approved = self._central.approve_plan(asker(req), fields.plan_id('plan_id', plan_id))
        answer(resp, plan_views.plan(approved, req.prefix), 202)

    def on_post_settle(self, req: falcon.Request, resp: falcon.Response, plan_id: str) -> None:
        given = reading.body(req, fields.PLAN_SETTLE)
        settled = self._central.settle_plan(asker(req), fields.plan_id('plan_id', plan_id), PlanState(given['state']),
                                            given.get('why'))
        answer(resp, plan_views.plan(settled, req.prefix))
