"""``/admin``: what Designate offers its administrators beside version 2, where the configuration switches it on."""

from __future__ import annotations

import falcon

from designate_pool.api.auth.identity import changing_any_project
from designate_pool.api.auth.keystone import CheckProject
from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources import quotas
from designate_pool.api.resources.base import CentralResource, available
from designate_pool.api.schema.answers import COUNT, TEXT, TEXTS, AnswerForm, Json, inline, many, one
from designate_pool.api.schema.operation import ADMIN, ApiOperation
from designate_pool.api.schema.request_fields import RequestField, one_object
from designate_pool.api.services.zone_task_store import ZoneTaskStore
from designate_pool.central.service import Central
from designate_pool.errors import NotFound
from designate_pool.storage.reporting import dashboard
from designate_pool.storage.sql.database import Storage

#: What there may be below /admin.
EXTENSIONS = ('quotas', 'reports', 'zones')
_QUOTAS, _REPORTS = '/admin/quotas/{project_id}', '/admin/reports'
_SET = {'quota': RequestField(one_object(quotas.SET), required=True)}
ADMIN_QUOTAS = AnswerForm('AdminQuotas', {'quota': one(quotas.QUOTAS)})
COUNTS = AnswerForm('Counts', {'counts': many(inline(AnswerForm(
    '', dict.fromkeys(dashboard.COUNTS, COUNT), None, *dashboard.COUNTS)))})
_SELF = {'self': str}
TENANTS = AnswerForm('Tenants', {'tenants': many(inline(AnswerForm('', {'id': TEXT, 'zone_count': COUNT}, _SELF)))},
                     _SELF)
TENANT = AnswerForm('Tenant', {'id': TEXT, 'zones_count': COUNT, 'zones': TEXTS}, _SELF)
OPERATIONS = (
    ApiOperation('admin_show_quotas', 'GET', _QUOTAS, 'Show the quotas of any project', ADMIN, {200: ADMIN_QUOTAS}),
    ApiOperation('admin_set_quotas', 'PATCH', _QUOTAS, 'Set some quotas of any project', ADMIN, {200: ADMIN_QUOTAS},
                 body=_SET),
    ApiOperation('admin_reset_quotas', 'DELETE', _QUOTAS, 'Reset the quotas of any project', ADMIN, {204: None}),
    ApiOperation('show_counts', 'GET', f'{_REPORTS}/counts',
                 'Count zones, records and projects; all of them with X-Auth-All-Projects', ADMIN, {200: COUNTS}),
    ApiOperation('show_count', 'GET', f'{_REPORTS}/counts/{{report}}', 'Count zones, records or tenants', ADMIN,
                 {200: COUNTS}),
    ApiOperation('list_tenants', 'GET', f'{_REPORTS}/tenants', 'List the projects that have zones', ADMIN,
                 {200: TENANTS}),
    ApiOperation('show_tenant', 'GET', f'{_REPORTS}/tenants/{{project_id}}', 'Show the names of the zones of a project',
                 ADMIN, {200: TENANT}),
    ApiOperation('admin_export_zone', 'GET', '/admin/zones/export/{zone_id}', 'Fetch a zone as a zone file', ADMIN,
                 {200: None}, answer_media='text/dns', errors=(413,)),
)


class AdminQuotasResource(CentralResource):
    def __init__(self, central: Central, check_project: CheckProject) -> None:
        super().__init__(central)
        self._check_project = check_project

    def on_get(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        answer(resp, {'quota': self._central.get_quotas(changing_any_project(req), project_id)})

    def on_patch(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        values = request.body(req, _SET)['quota']
        self._check_project(req, project_id)
        answer(resp, {'quota': self._central.set_quotas(changing_any_project(req), project_id, values)})

    def on_delete(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        self._central.reset_quotas(changing_any_project(req), project_id)
        resp.status = 204


class CountsResource:
    """Counted in the database, which takes as long as there are zones and records."""

    def __init__(self, storage: Storage | None) -> None:
        self._storage = storage

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer(resp, {'counts': [{name: self._count(req, name) for name in dashboard.COUNTS}]})

    def on_get_one(self, req: falcon.Request, resp: falcon.Response, report: str) -> None:
        if report not in dashboard.COUNTS:
            raise NotFound(what=f'report {report}', type='report_not_found')
        answer(resp, {'counts': [{report: self._count(req, report)}]})

    def _count(self, req: falcon.Request, name: str) -> int:
        return available(self._storage).read(dashboard.COUNTS[name], requester(req).scope)


class TenantsResource:
    def __init__(self, storage: Storage | None) -> None:
        self._storage = storage

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        zone_counts = available(self._storage).read(dashboard.zones_by_project, requester(req).scope)
        answer(resp, {'tenants': [{'id': project_id, 'zone_count': count, 'links': _links(req, project_id)}
                                  for project_id, count in zone_counts], 'links': {'self': req.url}})

    def on_get_one(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        seen = requester(req).sees(project_id)
        names = available(self._storage).read(dashboard.names_of_zones, project_id) if seen else []
        answer(resp, {'id': project_id, 'zones_count': len(names), 'zones': names, 'links': _links(req, project_id)})


class AdminExportResource(CentralResource):
    def __init__(self, central: Central, tasks: ZoneTaskStore) -> None:
        super().__init__(central)
        self._tasks = tasks

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        self._central.check_export(requester(req), zone_id)
        file, size = self._tasks.zone_file(zone_id)
        resp.set_stream(file, size)
        resp.content_type = 'text/dns'


def _links(req: falcon.Request, project_id: str) -> Json:
    return {'self': f'{req.prefix}{_REPORTS}/tenants/{project_id}'}
