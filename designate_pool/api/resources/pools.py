"""``/v2/pools``, and a zone's name servers, which are its pool's."""

from __future__ import annotations

import dataclasses
import json
import operator

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, answer_created, requester
from designate_pool.api.resources.base import CentralResource, answer_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (COUNT, FLAG, ID, TEXT, TEXT_BY_NAME, TEXTS, VERSIONED, AnswerForm,
                                               ListAnswer, many, maybe, one)
from designate_pool.api.schema.operation import ADMIN, OPERATOR, READER, ApiOperation
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.model import dashed

_ONE = '/v2/pools/{pool_id}'
FILTERS = {
    'name': RequestField(request_fields.some_text),
    'description': RequestField(request_fields.some_text),
}
NAME_SERVER = AnswerForm('NameServer', {'hostname': TEXT.of(operator.itemgetter(0)),
                                        'priority': COUNT.of(operator.itemgetter(1))})
NAME_SERVERS = AnswerForm('NameServers', {'nameservers': many(one(NAME_SERVER))})
POOL = AnswerForm('Pool', {
    'id': ID,
    'name': TEXT,
    'description': maybe(TEXT),
    'project_id': maybe(TEXT),
    'provisioner': TEXT,
    'attributes': TEXT_BY_NAME.of(lambda pool: json.loads(pool.attributes or '{}')),
    # By priority: the first is the primary of every SOA.
    'ns_records': many(one(NAME_SERVER)),
    'also_notifies': TEXTS,
    'threshold_percentage': maybe(COUNT).of(
        lambda pool: pool.threshold_percentage if pool.published_at is not None else None).about(
        'Null where no pool manager has published it yet; so are the next two.'),
    'catalog_zone': maybe(TEXT),
    'count_joining_servers': maybe(FLAG).of(
        lambda pool: pool.count_joining_servers if pool.published_at is not None else None),
    **VERSIONED,
}, {'self': lambda pool: f'/v2/pools/{dashed(pool.id)}'})
POOLS = ListAnswer('Pools', 'pools', POOL)
OPERATIONS = (
    ApiOperation('list_pools', 'GET', '/v2/pools', 'List pools', OPERATOR, {200: POOLS}, query=FILTERS, is_list=True),
    ApiOperation('create_pool', 'POST', '/v2/pools', 'Create a pool', ADMIN, {201: POOL},
                 body=request_fields.POOL_CREATE),
    ApiOperation('show_pool', 'GET', _ONE, 'Show a pool', OPERATOR, {200: POOL}),
    ApiOperation('update_pool', 'PATCH', _ONE, 'Change a pool; new name servers give every zone of it a new serial',
                 ADMIN, {202: POOL}, body=request_fields.POOL_UPDATE),
    ApiOperation('delete_pool', 'DELETE', _ONE, 'Delete a pool that has no zones', ADMIN, {204: None}),
    ApiOperation('list_zone_nameservers', 'GET', '/v2/zones/{zone_id}/nameservers', "List a zone's name servers",
                 READER, {200: NAME_SERVERS}),
)


class PoolsResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, POOLS, FILTERS,
                    lambda context, page: self._central.find_pools(context, *dataclasses.astuple(page)))

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        created = self._central.create_pool(requester(req), request.body(req, request_fields.POOL_CREATE))
        answer_created(req, resp, POOL, created)


class PoolResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, pool_id: str) -> None:
        answer(resp, POOL.show(self._central.get_pool(requester(req), pool_id), req.prefix))

    def on_patch(self, req: falcon.Request, resp: falcon.Response, pool_id: str) -> None:
        values = request.changes(req, request_fields.POOL_UPDATE, lambda: POOL.show(
            self._central.get_pool(requester(req), pool_id), req.prefix))
        updated = self._central.update_pool(requester(req), {'id': pool_id, **values})
        answer(resp, POOL.show(updated, req.prefix), 202)

    def on_delete(self, req: falcon.Request, resp: falcon.Response, pool_id: str) -> None:
        self._central.delete_pool(requester(req), pool_id)
        resp.status = 204


class NameServersResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain = self.own_domain(req, zone_id)
        pool = self._central.get_pool(requester(req), domain.pool_id)
        answer(resp, {'nameservers': [NAME_SERVER.show(server) for server in pool.ns_records]})
