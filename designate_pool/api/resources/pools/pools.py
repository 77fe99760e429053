"""``/v2/pools``, and a zone's name servers, which are its pool's."""

from __future__ import annotations

import dataclasses
import json

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import CentralResource, answer_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import ADMIN, OPERATOR, READER, ApiOperation, Schema
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.api.schema.response_types import COUNT, FLAG, ID, MOMENT, TEXT, links, listed, maybe, ref, shape
from designate_pool.api.views import designate
from designate_pool.model import Pool as PoolValue
from designate_pool.model import dashed

_ONE = '/v2/pools/{pool_id}'
FILTERS = {
    'name': RequestField(request_fields.some_text),
    'description': RequestField(request_fields.some_text),
}
OPERATIONS = (
    ApiOperation('list_pools', 'GET', '/v2/pools', 'List pools', OPERATOR, {200: 'Pools'}, query=FILTERS, is_list=True),
    ApiOperation('create_pool', 'POST', '/v2/pools', 'Create a pool', ADMIN, {201: 'Pool'},
                 body=request_fields.POOL_CREATE),
    ApiOperation('show_pool', 'GET', _ONE, 'Show a pool', OPERATOR, {200: 'Pool'}),
    ApiOperation('update_pool', 'PATCH', _ONE, 'Change a pool; new name servers give every zone of it a new serial',
                 ADMIN, {202: 'Pool'}, body=request_fields.POOL_UPDATE),
    ApiOperation('delete_pool', 'DELETE', _ONE, 'Delete a pool that has no zones', ADMIN, {204: None}),
    ApiOperation('list_zone_nameservers', 'GET', '/v2/zones/{zone_id}/nameservers', "List a zone's name servers",
                 READER, {200: 'NameServers'}),
)
SCHEMAS: dict[str, Schema] = {
    'NameServer': shape({'hostname': TEXT, 'priority': COUNT}),
    'NameServers': shape({'nameservers': {'type': 'array', 'items': ref('NameServer')}}),
    'Pool': shape({
        'id': ID,
        'name': TEXT,
        'description': maybe(TEXT),
        'project_id': maybe(TEXT),
        'provisioner': TEXT,
        'attributes': {'type': 'object', 'additionalProperties': TEXT},
        'ns_records': {'type': 'array', 'items': ref('NameServer')},
        'also_notifies': {'type': 'array', 'items': TEXT},
        'threshold_percentage': {**maybe(COUNT), 'description': 'Null where no pool manager has published it yet; so '
                                                                'are the next two.'},
        'catalog_zone': maybe(TEXT),
        'count_joining_servers': maybe(FLAG),
        'version': COUNT,
        'created_at': maybe(MOMENT),
        'updated_at': maybe(MOMENT),
        'links': links('self'),
    }),
    'Pools': listed('pools', 'Pool'),
}


class PoolsResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, 'pools', FILTERS,
                    lambda context, page: self._central.find_pools(context, *dataclasses.astuple(page)), _shown)

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        created = self._central.create_pool(requester(req), request.body(req, request_fields.POOL_CREATE))
        shown = _shown(created, req.prefix)
        answer(resp, shown, 201, at=shown['links']['self'])


class PoolResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, pool_id: str) -> None:
        pool = self._central.get_pool(requester(req), pool_id)
        answer(resp, _shown(pool, req.prefix))

    def on_patch(self, req: falcon.Request, resp: falcon.Response, pool_id: str) -> None:
        values = request.changes(req, request_fields.POOL_UPDATE, lambda: _shown(
            self._central.get_pool(requester(req), pool_id), req.prefix))
        answer(resp, _shown(self._central.update_pool(requester(req), {'id': pool_id, **values}), req.prefix), 202)

    def on_delete(self, req: falcon.Request, resp: falcon.Response, pool_id: str) -> None:
        self._central.delete_pool(requester(req), pool_id)
        resp.status = 204


class NameServersResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain = self.own_domain(req, zone_id)
        pool = self._central.get_pool(requester(req), domain.pool_id)
        answer(resp, {'nameservers': _name_servers(pool)})


def _shown(found: PoolValue, base: str) -> designate.Json:
    published = found.published_at is not None
    return {
        'id': dashed(found.id),
        'name': found.name,
        'description': found.description,
        'project_id': found.project_id,
        'provisioner': found.provisioner,
        'attributes': json.loads(found.attributes or '{}'),
        'ns_records': _name_servers(found),
        'also_notifies': list(found.also_notifies),
        'threshold_percentage': found.threshold_percentage if published else None,
        'catalog_zone': found.catalog_zone,
        'count_joining_servers': found.count_joining_servers if published else None,
        'version': found.version,
        'created_at': designate.moment(found.created_at),
        'updated_at': designate.moment(found.updated_at),
        'links': {'self': f'{base}/v2/pools/{dashed(found.id)}'},
    }


def _name_servers(found: PoolValue) -> list[designate.Json]:
    """By priority: the first is the primary of every SOA."""
    return [{'hostname': hostname, 'priority': number} for hostname, number in found.ns_records]
