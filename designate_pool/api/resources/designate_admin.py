"""``/admin``: what Designate offers its administrators beside version 2, where the configuration switches it on."""

from __future__ import annotations

from operator import itemgetter

import falcon

from designate_pool.api.auth.identity import changing_any_project
from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources import quotas
from designate_pool.api.resources.base import Api, calls, show_all
from designate_pool.api.resources.zone_imports_exports import send_zone_file
from designate_pool.api.schema.answers import COUNT, TEXT, TEXTS, AnswerForm, Json, ListAnswer, inline, many, one
from designate_pool.api.schema.operation import ADMIN, Operations
from designate_pool.api.schema.request_fields import RequestField, one_object
from designate_pool.errors import NotFound
from designate_pool.storage.reporting import dashboard

#: What there may be below /admin.
EXTENSIONS = ('quotas', 'reports', 'zones')
_QUOTAS, _REPORTS = '/admin/quotas/{project_id}', '/admin/reports'
ADMIN_QUOTAS = AnswerForm('AdminQuotas', {'quota': one(quotas.QUOTAS)})
COUNTS = AnswerForm('Counts', {'counts': many(inline(AnswerForm(
    '', dict.fromkeys(dashboard.COUNTS, COUNT), None, *dashboard.COUNTS)))})
_LINKS = {'self': lambda tenant: f'{_REPORTS}/tenants/{tenant[0]}'}
TENANTS = ListAnswer('Tenants', 'tenants', AnswerForm(
    'TenantCount', {'id': TEXT.of(itemgetter(0)), 'zone_count': COUNT.of(itemgetter(1))}, _LINKS))
TENANT = AnswerForm('Tenant', {'id': TEXT.of(itemgetter(0)), 'zones_count': COUNT.of(lambda tenant: len(tenant[1])),
                               'zones': TEXTS.of(itemgetter(1))}, _LINKS)
OPERATIONS = Operations('designate_admin')
OPERATIONS.add('DELETE', _QUOTAS, 'Reset the quotas of any project', ADMIN, {204: None}, 'admin_reset_quotas')(
    calls(lambda central: central.reset_quotas, changing_any_project))


@OPERATIONS.add('GET', _QUOTAS, 'Show the quotas of any project', ADMIN, {200: ADMIN_QUOTAS})
def admin_show_quotas(api: Api, req: falcon.Request, resp: falcon.Response, project_id: str) -> Json:
    return {'quota': api.central.get_quotas(changing_any_project(req), project_id)}


@OPERATIONS.add('PATCH', _QUOTAS, 'Set some quotas of any project', ADMIN, {200: ADMIN_QUOTAS}, body={
    'quota': RequestField(one_object(quotas.SET), required=True)})
def admin_set_quotas(api: Api, req: falcon.Request, resp: falcon.Response, project_id: str) -> Json:
    values = request.body(req)['quota']
    api.check_project(req, project_id)
    return {'quota': api.central.set_quotas(changing_any_project(req), project_id, values)}


@OPERATIONS.add('GET', f'{_REPORTS}/counts',
                'Count zones, records and projects; all of them with X-Auth-All-Projects', ADMIN, {200: COUNTS})
def show_counts(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    # It takes as long as there are zones and records.
    return {'counts': [{name: api.storage.read(dashboard.count_all, name, requester(req).scope)
                        for name in dashboard.COUNTS}]}


@OPERATIONS.add('GET', f'{_REPORTS}/counts/{{report}}', 'Count zones, records or tenants', ADMIN, {200: COUNTS})
def show_count(api: Api, req: falcon.Request, resp: falcon.Response, report: str) -> Json:
    if report not in dashboard.COUNTS:
        raise NotFound(what=f'report {report}', type='report_not_found')
    return {'counts': [{report: api.storage.read(dashboard.count_all, report, requester(req).scope)}]}


@OPERATIONS.add('GET', f'{_REPORTS}/tenants', 'List the projects that have zones', ADMIN, {200: TENANTS})
def list_tenants(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return show_all(req, api.storage.read(dashboard.zones_by_project, requester(req).scope))


@OPERATIONS.add('GET', f'{_REPORTS}/tenants/{{project_id}}', 'Show the names of the zones of a project', ADMIN,
                {200: TENANT})
def show_tenant(api: Api, req: falcon.Request, resp: falcon.Response, project_id: str) -> tuple[str, list[str]]:
    is_seen = requester(req).sees(project_id)
    return project_id, api.storage.read(dashboard.names_of_zones, project_id) if is_seen else []


@OPERATIONS.add('GET', '/admin/zones/export/{zone_id}', 'Fetch a zone as a zone file', ADMIN, {200: None},
                answer_media='text/dns', errors=(413,))
def admin_export_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
    api.central.check_export(requester(req), zone_id)
    send_zone_file(api, resp, zone_id)
