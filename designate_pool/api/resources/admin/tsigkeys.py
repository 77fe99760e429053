"""``/v2/tsigkeys``: keys that may transfer zones from MiniDNS.  Secrets are never shown."""

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
from designate_pool.model import HIDDEN_SECRET, TSIG_ALGORITHMS, KeyScope, StoredTsigKey, dashed

_SCOPE = request_fields.one_of(*(scope.value for scope in KeyScope))
_ALGORITHM = request_fields.one_of(*TSIG_ALGORITHMS)
FILTERS = {
    'name': RequestField(request_fields.some_text),
    'algorithm': RequestField(request_fields.some_text),
    'scope': RequestField(request_fields.upper_text),
    'resource_id': RequestField(request_fields.identifier),
}
CREATE = {
    'name': RequestField(request_fields.some_text, required=True),
    'algorithm': RequestField(_ALGORITHM, required=True),
    'secret': RequestField(request_fields.some_text, required=True),
    'scope': RequestField(_SCOPE, required=True),
    'resource_id': RequestField(request_fields.identifier, required=True),
}
UPDATE = {
    **{name: RequestField(field.kind) for name, field in CREATE.items()},
    **dict.fromkeys(('id', 'version', 'created_at', 'updated_at'), RequestField(request_fields.fixed)),
}
_ALL, _ONE = '/v2/tsigkeys', '/v2/tsigkeys/{tsigkey_id}'
OPERATIONS = (
    ApiOperation('list_tsigkeys', 'GET', _ALL, 'List TSIG keys', ADMIN, {200: 'TsigKeys'}, query=FILTERS, is_list=True),
    ApiOperation('create_tsigkey', 'POST', _ALL, 'Create a TSIG key that may transfer the zones of a pool, or one zone',
                 ADMIN, {201: 'TsigKey'}, body=CREATE),
    ApiOperation('show_tsigkey', 'GET', _ONE, 'Show a TSIG key without its secret', ADMIN, {200: 'TsigKey'}),
    ApiOperation('update_tsigkey', 'PATCH', _ONE, 'Change a TSIG key', ADMIN, {200: 'TsigKey'}, body=UPDATE),
    ApiOperation('delete_tsigkey', 'DELETE', _ONE, 'Delete a TSIG key', ADMIN, {204: None}),
)
SCHEMAS: dict[str, Schema] = {
    'TsigKey': shape({
        'id': ID,
        'name': TEXT,
        'algorithm': {'type': 'string', 'enum': list(_ALGORITHM.schema['enum'])},
        'secret': {'type': 'string', 'const': HIDDEN_SECRET, 'description': 'It is never shown.'},
        'scope': {'type': 'string', 'enum': [scope.value for scope in KeyScope]},
        'resource_id': ID,
        'version': COUNT,
        'created_at': maybe(MOMENT),
        'updated_at': maybe(MOMENT),
        'links': links('self'),
    }),
    'TsigKeys': listed('tsigkeys', 'TsigKey'),
}


class TsigKeysResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, 'tsigkeys', FILTERS, self._central.find_tsigkeys, _shown)

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        created = self._central.create_tsigkey(requester(req), request.body(req, CREATE))
        shown = _shown(created, req.prefix)
        answer(resp, shown, 201, at=shown['links']['self'])


class TsigKeyResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, tsigkey_id: str) -> None:
        tsigkey = self._central.get_tsigkey(requester(req), tsigkey_id)
        answer(resp, _shown(tsigkey, req.prefix))

    def on_patch(self, req: falcon.Request, resp: falcon.Response, tsigkey_id: str) -> None:
        values = request.changes(req, UPDATE, lambda: _shown(
            self._central.get_tsigkey(requester(req), tsigkey_id), req.prefix))
        answer(resp, _shown(self._central.update_tsigkey(requester(req), tsigkey_id, values), req.prefix))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, tsigkey_id: str) -> None:
        self._central.delete_tsigkey(requester(req), tsigkey_id)
        resp.status = 204


def _shown(found: StoredTsigKey, base: str) -> designate.Json:
    return {
        'id': dashed(found.id),
        'name': found.name,
        'algorithm': found.algorithm,
        'secret': HIDDEN_SECRET,
        'scope': found.scope.value,
        'resource_id': dashed(found.resource_id),
        'version': found.version,
        'created_at': designate.moment(found.created_at),
        'updated_at': designate.moment(found.updated_at),
        'links': {'self': f'{base}/v2/tsigkeys/{dashed(found.id)}'},
    }
