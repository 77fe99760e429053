"""``/v2/blacklists``: patterns of names that only those may create zones of who may use blacklisted names."""

from __future__ import annotations

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import CentralResource, answer_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import ADMIN, ApiOperation, Schema
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.api.schema.response_types import COUNT, ID, MOMENT, TEXT, links, listed, maybe, shape
from designate_pool.api.views import designate
from designate_pool.model import Blacklist, dashed

_EXAMPLE = r'^([a-z0-9_-]+\.)*example\.com\.$'
FILTERS = {
    'pattern': RequestField(request_fields.some_text),
    'description': RequestField(request_fields.some_text),
}
CREATE = {
    'pattern': RequestField(request_fields.some_text, required=True, example=_EXAMPLE),
    'description': RequestField(request_fields.text, nullable=True),
}
UPDATE = {
    'pattern': RequestField(request_fields.some_text, example=_EXAMPLE),
    'description': RequestField(request_fields.text, nullable=True),
    **dict.fromkeys(('id', 'version', 'created_at', 'updated_at'), RequestField(request_fields.fixed)),
}
_ALL, _ONE = '/v2/blacklists', '/v2/blacklists/{blacklist_id}'
OPERATIONS = (
    ApiOperation('list_blacklists', 'GET', _ALL, 'List the patterns of names that zones may not have', ADMIN,
                 {200: 'Blacklists'}, query=FILTERS, is_list=True),
    ApiOperation('create_blacklist', 'POST', _ALL, 'Add a pattern of names that zones may not have', ADMIN,
                 {201: 'Blacklist'}, body=CREATE),
    ApiOperation('show_blacklist', 'GET', _ONE, 'Show a pattern of names that zones may not have', ADMIN,
                 {200: 'Blacklist'}),
    ApiOperation('update_blacklist', 'PATCH', _ONE, 'Change a pattern of names that zones may not have', ADMIN,
                 {200: 'Blacklist'}, body=UPDATE),
    ApiOperation('delete_blacklist', 'DELETE', _ONE, 'Remove a pattern of names that zones may not have', ADMIN,
                 {204: None}),
)
SCHEMAS: dict[str, Schema] = {
    'Blacklist': shape({
        'id': ID,
        'pattern': TEXT,
        'description': maybe(TEXT),
        'version': COUNT,
        'created_at': maybe(MOMENT),
        'updated_at': maybe(MOMENT),
        'links': links('self'),
    }),
    'Blacklists': listed('blacklists', 'Blacklist'),
}


class BlacklistsResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, 'blacklists', FILTERS, self._central.find_blacklists, _shown)

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        shown = _shown(self._central.create_blacklist(requester(req), request.body(req, CREATE)), req.prefix)
        answer(resp, shown, 201, at=shown['links']['self'])


class BlacklistResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, blacklist_id: str) -> None:
        answer(resp, _shown(self._central.get_blacklist(requester(req), blacklist_id), req.prefix))

    def on_patch(self, req: falcon.Request, resp: falcon.Response, blacklist_id: str) -> None:
        values = request.changes(req, UPDATE, lambda: _shown(
            self._central.get_blacklist(requester(req), blacklist_id), req.prefix))
        answer(resp, _shown(self._central.update_blacklist(requester(req), blacklist_id, values), req.prefix))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, blacklist_id: str) -> None:
        self._central.delete_blacklist(requester(req), blacklist_id)
        resp.status = 204


def _shown(found: Blacklist, base: str) -> designate.Json:
    return {
        'id': dashed(found.id),
        'pattern': found.pattern,
        'description': found.description,
        'version': found.version,
        'created_at': designate.moment(found.created_at),
        'updated_at': designate.moment(found.updated_at),
        'links': {'self': f'{base}/v2/blacklists/{dashed(found.id)}'},
    }
