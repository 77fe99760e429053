"""Zones that are shared with other projects: ``/v2/zones/{zone_id}/shares``."""

from __future__ import annotations

import falcon

from designate_pool.api.auth.project_check import CheckProject
from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import CentralResource, answer_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import MEMBER, READER, ApiOperation, Schema
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.api.schema.response_types import ID, MOMENT, TEXT, links, listed, maybe, shape
from designate_pool.api.views import designate
from designate_pool.central.service import Central
from designate_pool.model import ZoneShare, dashed

_FILTERS = {'target_project_id': RequestField(request_fields.some_text)}
_NEW = {'target_project_id': RequestField(request_fields.project, required=True, example='beta')}
_ALL, _ONE = '/v2/zones/{zone_id}/shares', '/v2/zones/{zone_id}/shares/{share_id}'
OPERATIONS = (
    ApiOperation('list_zone_shares', 'GET', _ALL, 'List the shares of a zone', READER, {200: 'ZoneShares'},
                 query=_FILTERS, is_list=True),
    ApiOperation('create_zone_share', 'POST', _ALL, 'Share a zone with another project', MEMBER, {201: 'ZoneShare'},
                 body=_NEW),
    ApiOperation('show_zone_share', 'GET', _ONE, 'Show a share of a zone', READER, {200: 'ZoneShare'}),
    ApiOperation('delete_zone_share', 'DELETE', _ONE, 'End a share of a zone', MEMBER, {204: None}),
)
SCHEMAS: dict[str, Schema] = {
    'ZoneShare': shape({
        'id': ID,
        'zone_id': ID,
        'project_id': {**TEXT, 'description': 'The project that shared the zone.'},
        'target_project_id': {**TEXT, 'description': 'The project that may use it.'},
        'created_at': maybe(MOMENT),
        'updated_at': maybe(MOMENT),
        'links': links('self', 'zone'),
    }),
    'ZoneShares': listed('shared_zones', 'ZoneShare'),
}


class ZoneSharesResource(CentralResource):
    def __init__(self, central: Central, check_project: CheckProject) -> None:
        super().__init__(central)
        self._check_project = check_project

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        answer_page(req, resp, 'shared_zones', _FILTERS,
                    lambda context, page: self._central.find_shares(context, zone_id, page), _shown)

    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        values = request.body(req, _NEW, of=lambda: self.own_domain(req, zone_id))
        self._check_project(req, values['target_project_id'])
        shown = _shown(self._central.share_domain(requester(req), zone_id, values), req.prefix)
        answer(resp, shown, 201, at=shown['links']['self'])


class ZoneShareResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str, share_id: str) -> None:
        answer(resp, _shown(self._central.get_share(requester(req), zone_id, share_id), req.prefix))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, zone_id: str, share_id: str) -> None:
        self._central.unshare_domain(requester(req), zone_id, share_id)
        resp.status = 204


def _shown(found: ZoneShare, base: str) -> designate.Json:
    zone = designate.zone_address(found.domain_id, base)
    return {
        'id': dashed(found.id),
        'zone_id': dashed(found.domain_id),
        'project_id': found.project_id,
        'target_project_id': found.target_project_id,
        'created_at': designate.moment(found.created_at),
        'updated_at': None,  # as in Designate: a share does not change
        'links': {'self': f'{zone}/shares/{dashed(found.id)}', 'zone': zone},
    }
