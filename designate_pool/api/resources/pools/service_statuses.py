"""``/v2/service_statuses``: the services and whether each is running.

Clients of Designate ask for services by its names, so a service is also listed under the names of those whose work it
does, with ids of their own.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator

import falcon

from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import CentralResource, answer_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import OPERATOR, ApiOperation, Schema
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.api.schema.response_types import ID, MOMENT, TEXT, links, listed, maybe, shape
from designate_pool.api.views import designate
from designate_pool.errors import InvalidField, ServiceStatusNotFound
from designate_pool.model import Context, PageRequest
from designate_pool.model import ServiceStatus as Value
from designate_pool.model import dashed

#: Designate's names of what our services do.
DESIGNATE_NAMES = {'minidns': ('mdns',), 'pool_manager': ('producer', 'worker')}
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
        'pool_name': {**TEXT, 'description': 'Of services that work for one pool, under their own names.'},
        'status': {'type': 'string', 'enum': list(_STATUSES)},
        'heartbeated_at': MOMENT,
        'stats': {'type': 'object'},
        'capabilities': {'type': 'object'},
        'created_at': maybe(MOMENT),
        'updated_at': maybe(MOMENT),
        'links': links('self'),
    }, 'pool_name'),
    'ServiceStatuses': listed('service_statuses', 'ServiceStatus'),
}


class ServiceStatusesResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, 'service_statuses', FILTERS, self._find, _shown)

    def _find(self, context: Context, page: PageRequest) -> list[Value]:
        """A page of the services under all their names; there are few, so all are read."""
        others = {name: value for name, value in page.criterion.items() if name != 'service_name'}
        every = PageRequest(others, sort_key=page.sort_key, sort_dir=page.sort_dir)
        statuses = [status for service in self._central.find_service_statuses(context, every)
                    for status in _under_all_names(service)
                    if page.criterion.get('service_name') in (None, status.service_name)]
        if page.sort_key in (None, 'service_name'):
            statuses.sort(key=lambda each: each.service_name, reverse=page.sort_dir == 'desc')
        if page.marker is not None:
            place = next((place for place, status in enumerate(statuses) if status.id == page.marker), None)
            if place is None:
                raise InvalidField(field='marker', why='no such id', type='invalid_marker')
            statuses = statuses[place + 1:]
        return statuses[:page.limit]


class ServiceStatusResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, service_id: str) -> None:
        try:
            status = self._central.get_service_status(requester(req), service_id)
        except ServiceStatusNotFound:
            every = self._central.find_service_statuses(requester(req))
            named = next((status for service in every for status in _under_all_names(service)
                          if status.id == service_id), None)
            if named is None:
                raise
            status = named
        answer(resp, _shown(status, req.prefix))


def _under_all_names(service: Value) -> Iterator[Value]:
    """*service*, and it again under each of Designate's names; its own is in the statistics of these."""
    yield service
    for name in DESIGNATE_NAMES.get(service.service_name, ()):
        stats = {**service.stats, 'service_name': service.service_name, 'pool_name': service.pool_name}
        yield dataclasses.replace(service, id=uuid.uuid5(uuid.UUID(service.id), name).hex, service_name=name,
                                  stats=stats, pool_name='')


def _shown(found: Value, base: str) -> designate.Json:
    return {
        'id': dashed(found.id),
        'service_name': found.service_name,
        'hostname': found.hostname,
        # Those without a pool have the fields that Designate shows, and no other.
        **({'pool_name': found.pool_name} if found.pool_name else {}),
        'status': found.status,
        'heartbeated_at': designate.moment(found.heartbeated_at),
        'stats': dict(found.stats),
        'capabilities': dict(found.capabilities),
        'created_at': designate.moment(found.created_at),
        'updated_at': designate.moment(found.updated_at),
        'links': {'self': f'{base}/v2/service_statuses/{dashed(found.id)}'},
    }
