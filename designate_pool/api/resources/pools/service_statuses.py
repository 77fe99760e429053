"""``/v2/service_statuses``: the services and whether each is running."""

from __future__ import annotations

import falcon

from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import CentralResource, answer_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import OPERATOR, ApiOperation, Schema
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.api.schema.response_types import ID, MOMENT, TEXT, links, listed, maybe, shape
from designate_pool.api.views import designate
from designate_pool.model import ServiceStatus as Value

_STATUSES = ('UP', 'DOWN', 'WARNING')
FILTERS = {
    'service_name': RequestField(request_fields.some_text),
    'hostname': RequestField(request_fields.some_text),
    'pool_name': RequestField(request_fields.some_text),
    'status': RequestField(request_fields.one_of(*_STATUSES)),
}
OPERATIONS = (
    ApiOperation('list_service_statuses', 'GET', '/v2/service_statuses',
                 'List the services and whether each is running', OPERATOR, {200: 'ServiceStatuses'}, query=FILTERS,
                 is_list=True),
    ApiOperation('show_service_status', 'GET', '/v2/service_statuses/{service_id}', 'Show whether a service is running',
                 OPERATOR, {200: 'ServiceStatus'}),
)
SCHEMAS: dict[str, Schema] = {
    'ServiceStatus': shape({
        'id': ID,
        'service_name': TEXT,
        'hostname': TEXT,
        'pool_name': maybe(TEXT),
        'status': {'type': 'string', 'enum': list(_STATUSES)},
        'heartbeated_at': MOMENT,
        'stats': {'type': 'object'},
        'capabilities': {'type': 'object'},
        'created_at': maybe(MOMENT),
        'updated_at': maybe(MOMENT),
        'links': links('self'),
    }),
    'ServiceStatuses': listed('service_statuses', 'ServiceStatus'),
}


class ServiceStatusesResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, 'service_statuses', FILTERS, self._central.find_service_statuses, _shown)


class ServiceStatusResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, service_id: str) -> None:
        found = self._central.get_service_status(requester(req), service_id)
        answer(resp, _shown(found, req.prefix))


def _shown(found: Value, base: str) -> designate.Json:
    return {
        'id': designate.dashed(found.id),
        'service_name': found.service_name,
        'hostname': found.hostname,
        'pool_name': found.pool_name or None,
        'status': found.status,
        'heartbeated_at': designate.moment(found.heartbeated_at),
        'stats': dict(found.stats),
        'capabilities': dict(found.capabilities),
        'created_at': designate.moment(found.created_at),
        'updated_at': designate.moment(found.updated_at),
        'links': {'self': f'{base}/v2/service_statuses/{designate.dashed(found.id)}'},
    }
