"""``/v2/zones/{zone_id}/recordsets``, and ``/v2/recordsets``: those of all zones."""

from __future__ import annotations

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import CentralResource, answer_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ACTION, COUNT, ID, STATUS, TEXT, TEXTS, VERSIONED, AnswerForm, Json,
                                               ListAnswer, maybe, zone_path)
from designate_pool.api.schema.operation import MEMBER, READER, ApiOperation
from designate_pool.errors import ManagedRecordSet, RecordSetNotFound
from designate_pool.model import Domain, PageRequest, RecordSet, dashed

_ALL, _ONE = '/v2/zones/{zone_id}/recordsets', '/v2/zones/{zone_id}/recordsets/{recordset_id}'
RECORDSET = AnswerForm('RecordSet', {
    'id': ID,
    'name': TEXT,
    'type': TEXT,
    'records': TEXTS.of(lambda recordset: [record.data for record in recordset.records]),
    'ttl': maybe(COUNT),
    'description': maybe(TEXT),
    'status': STATUS,
    'action': ACTION,
    'zone_id': ID.of('domain_id'),
    'zone_name': TEXT,
    'project_id': TEXT,
    **VERSIONED,
}, {'self': lambda recordset: f'{zone_path(recordset.domain_id)}/recordsets/{dashed(recordset.id)}'})
RECORDSETS = ListAnswer('RecordSets', 'recordsets', RECORDSET)
OPERATIONS = (
    ApiOperation('list_recordsets', 'GET', _ALL, "List a zone's recordsets", READER, {200: RECORDSETS},
                 query=request_fields.RECORDSET_FILTERS, is_list=True),
    ApiOperation('create_recordset', 'POST', _ALL, 'Create a recordset', MEMBER, {202: RECORDSET},
                 body=request_fields.RECORDSET_CREATE),
    ApiOperation('show_recordset', 'GET', _ONE, 'Show a recordset', READER, {200: RECORDSET}),
    ApiOperation('update_recordset', 'PUT', _ONE, "Change a recordset's records, TTL or description", MEMBER,
                 {202: RECORDSET}, body=request_fields.RECORDSET_UPDATE),
    ApiOperation('patch_recordset', 'PATCH', _ONE, "Change a recordset's records, TTL or description (the same as PUT)",
                 MEMBER, {202: RECORDSET}, body=request_fields.RECORDSET_UPDATE),
    ApiOperation('delete_recordset', 'DELETE', _ONE, 'Delete a recordset', MEMBER, {202: RECORDSET}),
    ApiOperation('list_all_recordsets', 'GET', '/v2/recordsets', 'List recordsets of all zones', READER,
                 {200: RECORDSETS}, query=request_fields.RECORDSET_FILTERS, is_list=True),
    ApiOperation('find_recordset', 'GET', '/v2/recordsets/{recordset_id}', 'Redirect to a recordset', READER,
                 {301: RECORDSET}),
)


class RecordSetsResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain = self._central.get_domain(requester(req), zone_id)
        answer_page(req, resp, RECORDSETS, request_fields.RECORDSET_FILTERS,
                    lambda context, page: self._central.find_recordsets(context, zone_id, page),
                    show=lambda recordset, base: shown_recordset(recordset, domain, base))

    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        body = request.body(req, request_fields.RECORDSET_CREATE,
                            of=lambda: self._central.get_domain(requester(req), zone_id))
        values = {name: value for name, value in body.items() if value is not None}
        domain = self._central.get_domain(requester(req), zone_id)
        created = self._central.create_recordset(requester(req), zone_id, values)
        shown = shown_recordset(created, domain, req.prefix)
        answer(resp, shown, 202, at=shown['links']['self'])


class AllRecordSetsResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        entries, links = request.find_page(
            req, request.listing(req, request_fields.RECORDSET_FILTERS),
            lambda page: self._central.find_all_recordsets(requester(req), page), key=lambda entry: entry[1])
        answer(resp, {'recordsets': [shown_recordset(recordset, domain, req.prefix)
                                     for domain, recordset in entries], 'links': links})

    def on_get_one(self, req: falcon.Request, resp: falcon.Response, recordset_id: str) -> None:
        matches = self._central.find_all_recordsets(requester(req), PageRequest({'id': recordset_id}, limit=1))
        if not matches:
            raise RecordSetNotFound(recordset=recordset_id)
        domain, recordset = matches[0]
        shown = shown_recordset(recordset, domain, req.prefix)
        answer(resp, shown, 301, at=shown['links']['self'])


class RecordSetResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> None:
        domain = self._central.get_domain(requester(req), zone_id)
        recordset = self._central.get_recordset(requester(req), zone_id, recordset_id)
        answer(resp, shown_recordset(recordset, domain, req.prefix))

    def on_put(self, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> None:
        domain = self._central.get_domain(requester(req), zone_id)

        def current() -> Json:
            recordset = self._central.get_recordset(requester(req), zone_id, recordset_id)
            if recordset.managed and requester(req).sees(domain.project_id):
                raise ManagedRecordSet(name=recordset.name, rtype=recordset.type)
            return shown_recordset(recordset, domain, req.prefix)

        values = request.changes(req, request_fields.RECORDSET_UPDATE, current)
        changed = self._central.update_recordset(requester(req), zone_id, recordset_id, values)
        answer(resp, shown_recordset(changed, domain, req.prefix), 202)

    on_patch = on_put

    def on_delete(self, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> None:
        domain = self._central.get_domain(requester(req), zone_id)
        deleted = self._central.delete_recordset(requester(req), zone_id, recordset_id)
        answer(resp, shown_recordset(deleted, domain, req.prefix), 202)


def shown_recordset(recordset: RecordSet, domain: Domain, base: str) -> Json:
    """A recordset as the API answers it."""
    return RECORDSET.show(recordset, base, zone_id=dashed(domain.id), zone_name=domain.name,
                          project_id=recordset.project_id or domain.project_id)
