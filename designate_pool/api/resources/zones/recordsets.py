"""``/v2/zones/{zone_id}/recordsets``, and ``/v2/recordsets``: those of all zones."""

from __future__ import annotations

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, asker
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import MEMBER, READER, ApiOperation, Schema
from designate_pool.api.schema.response_types import (ACTION, COUNT, ID, MOMENT, STATUS, TEXT, TEXTS, links, listed,
                                                      maybe, shape)
from designate_pool.api.views import designate
from designate_pool.errors import BadInput, RecordSetNotFound
from designate_pool.rpc.central import CentralClient

_ALL, _ONE = '/v2/zones/{zone_id}/recordsets', '/v2/zones/{zone_id}/recordsets/{recordset_id}'
OPERATIONS = (
    ApiOperation('list_recordsets', 'GET', _ALL, "List a zone's recordsets", READER, {200: 'RecordSets'},
                 query=request_fields.RECORDSET_FILTERS, is_list=True),
    ApiOperation('create_recordset', 'POST', _ALL, 'Create a recordset', MEMBER, {202: 'RecordSet'},
                 body=request_fields.RECORDSET_CREATE),
    ApiOperation('show_recordset', 'GET', _ONE, 'Show a recordset', READER, {200: 'RecordSet'}),
    ApiOperation('update_recordset', 'PUT', _ONE, "Change a recordset's records, TTL or description", MEMBER,
                 {202: 'RecordSet'}, body=request_fields.RECORDSET_UPDATE),
    ApiOperation('patch_recordset', 'PATCH', _ONE, "Change a recordset's records, TTL or description (the same as "
                                                   "PUT)", MEMBER, {202: 'RecordSet'},
                 body=request_fields.RECORDSET_UPDATE),
    ApiOperation('delete_recordset', 'DELETE', _ONE, 'Delete a recordset', MEMBER, {202: 'RecordSet'}),
    ApiOperation('list_all_recordsets', 'GET', '/v2/recordsets', 'List recordsets of all zones', READER,
                 {200: 'RecordSets'}, query=request_fields.RECORDSET_FILTERS, is_list=True),
    ApiOperation('find_recordset', 'GET', '/v2/recordsets/{recordset_id}', 'Redirect to a recordset',
                 READER,
                 {301: None}),
)
SCHEMAS: dict[str, Schema] = {
    'RecordSet': shape({
        'id': ID,
        'name': TEXT,
        'type': TEXT,
        'records': TEXTS,
        'ttl': maybe(COUNT),
        'description': maybe(TEXT),
        'status': STATUS,
        'action': ACTION,
        'zone_id': ID,
        'zone_name': TEXT,
        'project_id': TEXT,
        'version': COUNT,
        'created_at': maybe(MOMENT),
        'updated_at': maybe(MOMENT),
        'links': links('self'),
    }),
    'RecordSets': listed('recordsets', 'RecordSet'),
}


class RecordSetsResource:
    def __init__(self, central: CentralClient) -> None:
        self._central = central

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain_id = request_fields.identifier('zone_id', zone_id)
        wanted = request.listing(req, request_fields.RECORDSET_FILTERS)
        domain = self._central.get_domain(asker(req), domain_id)
        found = self._central.find_recordsets(asker(req), domain_id, **wanted.ask())
        page, links = request.page_links(req, found, wanted.limit)
        answer(resp,
               designate.page('recordsets', [designate.recordset(each, domain, req.prefix) for each in page], links))

    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain_id = request_fields.identifier('zone_id', zone_id)
        given = request.body(req, request_fields.RECORDSET_CREATE)
        wanted = {name: value for name, value in given.items() if value is not None}
        domain = self._central.get_domain(asker(req), domain_id)
        created = self._central.create_recordset(asker(req), domain_id, wanted)
        shown = designate.recordset(created, domain, req.prefix)
        answer(resp, shown, 202, at=shown['links']['self'])


class AllRecordSetsResource:
    def __init__(self, central: CentralClient) -> None:
        self._central = central

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        wanted = request.listing(req, request_fields.RECORDSET_FILTERS)
        found = self._central.find_all_recordsets(asker(req), **wanted.ask())
        # Paged by the recordsets; each comes with its zone.
        page, links = request.page_links(req, [each for _, each in found], wanted.limit)
        answer(resp, designate.page('recordsets', [designate.recordset(each, domain, req.prefix)
                                                   for (domain, _), each in zip(found, page)], links))

    def on_get_one(self, req: falcon.Request, resp: falcon.Response, recordset_id: str) -> None:
        found_id = request_fields.identifier('recordset_id', recordset_id)
        found = self._central.find_all_recordsets(asker(req), {'id': found_id}, limit=1)
        if not found:
            raise RecordSetNotFound(recordset=found_id)
        domain, recordset = found[0]
        resp.status = 301
        resp.location = designate.recordset(recordset, domain, req.prefix)['links']['self']


class RecordSetResource:
    def __init__(self, central: CentralClient) -> None:
        self._central = central

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> None:
        domain_id, found_id = _ids(zone_id, recordset_id)
        domain = self._central.get_domain(asker(req), domain_id)
        found = self._central.get_recordset(asker(req), domain_id, found_id)
        answer(resp, designate.recordset(found, domain, req.prefix))

    def on_put(self, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> None:
        domain_id, found_id = _ids(zone_id, recordset_id)
        values = request.body(req, request_fields.RECORDSET_UPDATE)
        if not values:
            raise BadInput(why='the body has nothing to change')
        domain = self._central.get_domain(asker(req), domain_id)
        changed = self._central.update_recordset(asker(req), domain_id, found_id, values)
        answer(resp, designate.recordset(changed, domain, req.prefix), 202)

    on_patch = on_put

    def on_delete(self, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> None:
        domain_id, found_id = _ids(zone_id, recordset_id)
        domain = self._central.get_domain(asker(req), domain_id)
        deleted = self._central.delete_recordset(asker(req), domain_id, found_id)
        answer(resp, designate.recordset(deleted, domain, req.prefix), 202)


def _ids(zone_id: str, recordset_id: str) -> tuple[str, str]:
    return request_fields.identifier('zone_id', zone_id), request_fields.identifier('recordset_id', recordset_id)
