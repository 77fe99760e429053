"""``/healthz``, which versions there are, and ``/v2/service_statuses``: the services and whether each is running.

Clients of Designate know services by its names, so a service is listed under the names of those whose work it does.
"""

from __future__ import annotations

import dataclasses
import logging
import uuid
from collections.abc import Callable, Iterator

import falcon

from designate_pool import __version__
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, calls, show_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ID, LINK, MOMENT, TEXT, VERSIONED, AnswerField, AnswerForm, Json,
                                               ListAnswer, choice, inline, many)
from designate_pool.api.schema.operation import ANYONE, OPERATOR, Operations
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.errors import InvalidField, NotFound, PoolError
from designate_pool.model import Context, PageRequest, ServiceStatus, dashed

LOG = logging.getLogger(__name__)
#: With the time of their last change: 2.1 has shared zones, 2.2 SVCB and HTTPS, 2.3 TLSA, 2.4 imports with attributes.
_VERSIONS = {'v2': '2022-06-29T00:00:00Z', 'v2.0': '2022-06-29T00:00:00Z', 'v2.1': '2023-01-25T00:00:00Z',
             'v2.2': '2025-08-25T00:00:00Z', 'v2.3': '2026-04-06T00:00:00Z', 'v2.4': '2026-04-13T00:00:00Z'}
_CURRENT = 'v2.4'
_VERSION = AnswerForm('', {
    'id': TEXT.of(str),
    'status': choice('CURRENT', 'SUPPORTED').of(lambda name: 'CURRENT' if name == _CURRENT else 'SUPPORTED'),
    'updated': TEXT.of(lambda name: _VERSIONS[name]),
    'links': many(inline(AnswerForm('', {'href': LINK, 'rel': TEXT}))),
})
VERSIONS = AnswerForm('Versions', {'versions': many(inline(_VERSION))})
VERSION = AnswerForm('OneVersion', {'version': inline(_VERSION)})
DOCUMENT = AnswerForm('Document', {})
DOCUMENT.schema = {'type': 'object', 'required': ['openapi', 'info', 'paths'],
                   'description': 'A document of OpenAPI 3.1.'}
HEALTH = AnswerForm('Health', {'version': TEXT, 'status': choice('ok', 'unavailable'), 'central': TEXT,
                               'broker': TEXT.about('Whether messages go through.')})
#: Designate's names of what our services do.
DESIGNATE_NAMES = {'minidns': ('mdns',), 'pool_manager': ('worker', 'producer')}
_STATUSES = ('UP', 'DOWN', 'WARNING')
FILTERS = {
    **dict.fromkeys(('service_name', 'hostname', 'pool_name'), RequestField(request_fields.some_text)),
    'status': RequestField(request_fields.one_of(*_STATUSES)),
}
SERVICE_STATUS = AnswerForm('ServiceStatus', {
    'id': ID,
    'service_name': TEXT,
    'hostname': TEXT,
    'status': choice(*_STATUSES),
    'heartbeated_at': MOMENT,
    'stats': AnswerField({'type': 'object'}, dict).about(
        'With service_name, what the service is called here if that is another name, and pool_name if it works for one '
        'pool.'),
    'capabilities': AnswerField({'type': 'object'}, dict),
    'created_at': VERSIONED['created_at'],
    'updated_at': VERSIONED['updated_at'],
}, {'self': lambda status: f'/v2/service_statuses/{dashed(status.id)}'})
SERVICE_STATUSES = ListAnswer('ServiceStatuses', 'service_statuses', SERVICE_STATUS)
OPERATIONS = Operations('health')
OPERATIONS.add('DELETE', '/v2/service_statuses/{service_id}', 'Forget a service that does not run any more', OPERATOR,
               {204: None}, 'delete_service_status', tag='service_statuses')(
    calls(lambda central: central.delete_service_status))


@OPERATIONS.add('GET', '/', 'List the versions of the API', ANYONE, {200: VERSIONS})
def list_versions(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    """As Designate has it: keystoneauth takes its address of version 2 from here, and no other version is like it."""
    return {'versions': [_version(req, version) for version in _VERSIONS]}


@OPERATIONS.add('GET', '/v2', 'Show version 2 of the API', ANYONE, {200: VERSION})
def show_version(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return {'version': _version(req, _CURRENT)}


@OPERATIONS.add('GET', '/openapi.json', 'Show this document', ANYONE, {200: DOCUMENT})
def show_document(api: Api, req: falcon.Request, resp: falcon.Response) -> None:
    resp.content_type = falcon.MEDIA_JSON
    resp.text = api.document


@OPERATIONS.add('GET', '/healthz', 'Tell whether the API can do its work', ANYONE, {200: HEALTH, 503: HEALTH})
def show_health(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    faults = {'central': _fault(lambda: api.central.find_pools(requester(req), limit=1)),
              'broker': _fault(api.check_broker)}
    if any(faults.values()):
        resp.status = 503
    return {'version': __version__, 'status': 'unavailable' if any(faults.values()) else 'ok',
            **{name: fault or 'ok' for name, fault in faults.items()}}


def _fault(check: Callable[[], object]) -> str | None:
    try:
        check()
    except PoolError as error:
        return str(error)
    except Exception as error:  # any failure means that it is not healthy
        LOG.exception('the health check failed')
        return f'it failed ({type(error).__name__})'
    return None


def _version(req: falcon.Request, name: str) -> Json:
    return _VERSION.show(name, links=[{'href': f'{req.prefix}/v2', 'rel': 'self'},
                                      {'href': f'{req.prefix}/openapi.json', 'rel': 'describedby'}])


@OPERATIONS.add('GET', '/v2/service_statuses', 'List the services and whether each is running', OPERATOR,
                {200: SERVICE_STATUSES}, query=FILTERS, is_list=True, tag='service_statuses')
def list_service_statuses(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    def find(context: Context, page: PageRequest) -> list[ServiceStatus]:
        """A page of the services under all their names; there are few, so all are read."""
        others = {name: value for name, value in page.criterion.items() if name != 'service_name'}
        every = PageRequest(others, sort_key=page.sort_key, sort_dir=page.sort_dir)
        statuses = [status for service in api.central.find_service_statuses(context, every)
                    for status in _as_in_designate(service)
                    if page.criterion.get('service_name') in (None, status.service_name, service.service_name)]
        if page.sort_key in (None, 'service_name'):
            statuses.sort(key=lambda status: status.service_name, reverse=page.sort_dir == 'desc')
        if page.marker is not None:
            place = next((place for place, status in enumerate(statuses) if status.id == page.marker), None)
            if place is None:
                raise InvalidField(field='marker', why='no such id', type='invalid_marker')
            statuses = statuses[place + 1:]
        return statuses[:page.limit]

    return show_page(req, find)


@OPERATIONS.add('GET', '/v2/service_statuses/{service_id}', 'Show whether a service is running', OPERATOR,
                {200: SERVICE_STATUS}, tag='service_statuses')
def show_service_status(api: Api, req: falcon.Request, resp: falcon.Response, service_id: str) -> ServiceStatus:
    for service in api.central.find_service_statuses(requester(req)):
        for status in _as_in_designate(service):
            if status.id == service_id:
                return status
    raise NotFound(what=f'service status {service_id}', type='service_status_not_found')


def _as_in_designate(service: ServiceStatus) -> Iterator[ServiceStatus]:
    """*service* under each of Designate's names; its own is in the statistics, its id that of the first."""
    for number, name in enumerate(DESIGNATE_NAMES.get(service.service_name, (service.service_name,))):
        stats = {**service.stats, **({} if name == service.service_name else {'service_name': service.service_name}),
                 **({'pool_name': service.pool_name} if service.pool_name else {})}
        service_id = uuid.uuid5(uuid.UUID(service.id), name).hex if number else service.id
        yield dataclasses.replace(service, id=service_id, service_name=name, stats=stats)
