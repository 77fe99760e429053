"""``/v2/quotas``: how much a project may have."""

from __future__ import annotations

import falcon

from designate_pool.api.auth.identity import changing_any_project
from designate_pool.api.auth.project_check import CheckProject
from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import CentralResource
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import ADMIN, READER, ApiOperation, Schema
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.api.schema.response_types import shape
from designate_pool.central.service import Central

_LIMIT = request_fields.number_from(-1, request_fields.MAX_NUMBER)
SET = {name: RequestField(_LIMIT)
       for name in ('api_export_size', 'recordset_records', 'zone_records', 'zone_recordsets',
                    'zones')}
_OWN, _OF_PROJECT = '/v2/quotas', '/v2/quotas/{project_id}'
OPERATIONS = (
    ApiOperation('show_own_quotas', 'GET', _OWN, "Show the quotas of your project", READER, {200: 'Quotas'}),
    ApiOperation('show_quotas', 'GET', _OF_PROJECT,
                 'Show the quotas of a project; of another one with X-Auth-All-Projects', READER, {200: 'Quotas'}),
    ApiOperation('set_quotas', 'PATCH', _OF_PROJECT, 'Set some quotas of a project', ADMIN, {200: 'Quotas'}, body=SET),
    ApiOperation('reset_quotas', 'DELETE', _OF_PROJECT, "Reset a project's quotas to those of the configuration", ADMIN,
                 {204: None}),
)
_SHOWN = {'type': 'integer', 'minimum': -1}
SCHEMAS: dict[str, Schema] = {
    'Quotas': shape({
        'api_export_size': {**_SHOWN, 'description': 'Recordsets of a zone that can be exported.'},
        'recordset_records': {**_SHOWN, 'description': 'Records of a recordset.'},
        'zone_records': {**_SHOWN, 'description': 'Records of a zone, without those generated from its pool.'},
        'zone_recordsets': {**_SHOWN, 'description': 'Recordsets of a zone, without those generated from its pool.'},
        'zones': {**_SHOWN, 'description': 'Zones of the project.'},
    }, description='What a project may have; -1 is without limit.'),
}


class QuotasResource(CentralResource):
    def __init__(self, central: Central, check_project: CheckProject) -> None:
        super().__init__(central)
        self._check_project = check_project

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer(resp, self._central.get_quotas(requester(req), requester(req).project_id))

    def on_get_of(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        answer(resp, self._central.get_quotas(requester(req), project_id))

    def on_patch_of(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        values = request.changes(req, SET)
        self._check_project(req, project_id)
        answer(resp, self._central.set_quotas(requester(req), project_id, values))

    def on_delete_of(self, req: falcon.Request, resp: falcon.Response, project_id: str) -> None:
        self._central.reset_quotas(changing_any_project(req), project_id)
        resp.status = 204
