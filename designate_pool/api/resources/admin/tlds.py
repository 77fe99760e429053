"""``/v2/tlds``: the top-level domains that zones may lie below; without any, zones may have any name."""

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
from designate_pool.model import Tld, dashed

FILTERS = {
    'name': RequestField(request_fields.lower_text),
    'description': RequestField(request_fields.some_text),
}
CREATE = {
    'name': RequestField(request_fields.some_text, required=True, example='com'),
    'description': RequestField(request_fields.text, nullable=True),
}
UPDATE = {
    'name': RequestField(request_fields.some_text, example='com'),
    'description': RequestField(request_fields.text, nullable=True),
    **dict.fromkeys(('id', 'version', 'created_at', 'updated_at'), RequestField(request_fields.fixed)),
}
_ALL, _ONE = '/v2/tlds', '/v2/tlds/{tld_id}'
OPERATIONS = (
    ApiOperation('list_tlds', 'GET', _ALL, 'List the top-level domains that zones may lie below', ADMIN, {200: 'Tlds'},
                 query=FILTERS, is_list=True),
    ApiOperation('create_tld', 'POST', _ALL, 'Add a top-level domain; with the first, zones lie below one of them',
                 ADMIN, {201: 'Tld'}, body=CREATE),
    ApiOperation('show_tld', 'GET', _ONE, 'Show a top-level domain', ADMIN, {200: 'Tld'}),
    ApiOperation('update_tld', 'PATCH', _ONE, 'Change a top-level domain', ADMIN, {200: 'Tld'}, body=UPDATE),
    ApiOperation('delete_tld', 'DELETE', _ONE, 'Remove a top-level domain; the zones below it stay', ADMIN,
                 {204: None}),
)
SCHEMAS: dict[str, Schema] = {
    'Tld': shape({
        'id': ID,
        'name': TEXT,
        'description': maybe(TEXT),
        'version': COUNT,
        'created_at': maybe(MOMENT),
        'updated_at': maybe(MOMENT),
        'links': links('self'),
    }),
    'Tlds': listed('tlds', 'Tld'),
}


class TldsResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, 'tlds', FILTERS, self._central.find_tlds, _shown)

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        shown = _shown(self._central.create_tld(requester(req), request.body(req, CREATE)), req.prefix)
        answer(resp, shown, 201, at=shown['links']['self'])


class TldResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, tld_id: str) -> None:
        answer(resp, _shown(self._central.get_tld(requester(req), tld_id), req.prefix))

    def on_patch(self, req: falcon.Request, resp: falcon.Response, tld_id: str) -> None:
        values = request.changes(req, UPDATE, lambda: _shown(
            self._central.get_tld(requester(req), tld_id), req.prefix))
        answer(resp, _shown(self._central.update_tld(requester(req), tld_id, values), req.prefix))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, tld_id: str) -> None:
        self._central.delete_tld(requester(req), tld_id)
        resp.status = 204


def _shown(found: Tld, base: str) -> designate.Json:
    return {
        'id': dashed(found.id),
        'name': found.name,
        'description': found.description,
        'version': found.version,
        'created_at': designate.moment(found.created_at),
        'updated_at': designate.moment(found.updated_at),
        'links': {'self': f'{base}/v2/tlds/{dashed(found.id)}'},
    }
