"""``/v2/service_statuses``: which services run where."""

from __future__ import annotations

import falcon

from designate_pool.api import fields, reading, views
from designate_pool.api.answering import answer, asker
from designate_pool.api.fields import Field
from designate_pool.api.operations import OPERATOR, Operation, Schema
from designate_pool.api.schemas import ID, MOMENT, TEXT, links, listed, maybe, shape
from designate_pool.model import ServiceStatus as Value
from designate_pool.rpc.central import CentralClient

_STATUSES = ('UP', 'DOWN', 'WARNING')
FILTERS = {
    'service_name': Field(fields.some_text),
    'hostname': Field(fields.some_text),
    'pool_name': Field(fields.some_text),
    'status': Field(fields.one_of(*_STATUSES)),
}
OPERATIONS = (
    Operation('list_service_statuses', 'GET', '/v2/service_statuses', 'List services and whether they live', OPERATOR,
              {200: 'ServiceStatuses'}, query=FILTERS, is_list=True),
    Operation('show_service_status', 'GET', '/v2/service_statuses/{service_id}', 'Show whether a service lives',
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


class ServiceStatuses:
    def __init__(self, central: CentralClient) -> None:
        self._central = central

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        wanted = reading.listing(req, FILTERS)
        found = self._central.find_service_statuses(asker(req), **wanted.ask())
        page, beside = reading.page_links(req, found, wanted.limit)
        answer(resp, views.page('service_statuses', [_shown(each, req.prefix) for each in page], beside))


class ServiceStatus:
    def __init__(self, central: CentralClient) -> None:
        self._central = central

    def on_get(self, req: falcon.Request, resp: falcon.Response, service_id: str) -> None:
        found = self._central.get_service_status(asker(req), fields.identifier('service_id', service_id))
        answer(resp, _shown(found, req.prefix))


def _shown(found: Value, base: str) -> views.Json:
    return {
        'id': views.dashed(found.id),
        'service_name': found.service_name,
        'hostname': found.hostname,
        'pool_name': found.pool_name or None,
        'status': found.status,
        'heartbeated_at': views.moment(found.heartbeated_at),
        'stats': dict(found.stats),
        'capabilities': dict(found.capabilities),
        'created_at': views.moment(found.created_at),
        'updated_at': views.moment(found.updated_at),
        'links': {'self': f'{base}/v2/service_statuses/{views.dashed(found.id)}'},
    }
