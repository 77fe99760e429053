"""``/v2/zones/{zone_id}/recordsets``, and ``/v2/recordsets``: those of all zones."""

from __future__ import annotations

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, show_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ACTION, COUNT, ID, STATUS, TEXT, TEXTS, VERSIONED, AnswerForm, Json,
                                               ListAnswer, maybe, zone_path)
from designate_pool.api.schema.operation import MEMBER, READER, Operations
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
OPERATIONS = Operations('recordsets')


@OPERATIONS.add('GET', _ALL, "List a zone's recordsets", READER, {200: RECORDSETS},
                query=request_fields.RECORDSET_FILTERS, is_list=True)
def list_recordsets(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    domain = api.central.get_domain(requester(req), zone_id)
    return show_page(req, lambda context, page: api.central.find_recordsets(context, zone_id, page),
                     show=lambda recordset, base: shown_recordset(recordset, domain, base))


@OPERATIONS.add('POST', _ALL, 'Create a recordset', MEMBER, {202: RECORDSET}, body=request_fields.RECORDSET_CREATE,
                has_location=True)
def create_recordset(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    body = request.body(req, of=lambda: api.central.get_domain(requester(req), zone_id))
    values = {name: value for name, value in body.items() if value is not None}
    domain = api.central.get_domain(requester(req), zone_id)
    return shown_recordset(api.central.create_recordset(requester(req), zone_id, values), domain, req.prefix)


@OPERATIONS.add('GET', _ONE, 'Show a recordset', READER, {200: RECORDSET})
def show_recordset(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> Json:
    domain = api.central.get_domain(requester(req), zone_id)
    return shown_recordset(api.central.get_recordset(requester(req), zone_id, recordset_id), domain, req.prefix)


@OPERATIONS.add('PATCH', _ONE, "Change a recordset's records, TTL or description (the same as PUT)", MEMBER,
                {202: RECORDSET}, body=request_fields.RECORDSET_UPDATE, name='patch_recordset')
@OPERATIONS.add('PUT', _ONE, "Change a recordset's records, TTL or description", MEMBER, {202: RECORDSET},
                body=request_fields.RECORDSET_UPDATE)
def update_recordset(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> Json:
    domain = api.central.get_domain(requester(req), zone_id)

    def current() -> Json:
        recordset = api.central.get_recordset(requester(req), zone_id, recordset_id)
        if recordset.managed and requester(req).sees(domain.project_id):
            raise ManagedRecordSet(name=recordset.name, rtype=recordset.type)
        return shown_recordset(recordset, domain, req.prefix)

    values = request.changes(req, current)
    changed = api.central.update_recordset(requester(req), zone_id, recordset_id, values)
    return shown_recordset(changed, domain, req.prefix)


@OPERATIONS.add('DELETE', _ONE, 'Delete a recordset', MEMBER, {202: RECORDSET})
def delete_recordset(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> Json:
    domain = api.central.get_domain(requester(req), zone_id)
    return shown_recordset(api.central.delete_recordset(requester(req), zone_id, recordset_id), domain, req.prefix)


@OPERATIONS.add('GET', '/v2/recordsets', 'List recordsets of all zones', READER, {200: RECORDSETS},
                query=request_fields.RECORDSET_FILTERS, is_list=True)
def list_all_recordsets(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return show_page(req, api.central.find_all_recordsets,
                     show=lambda entry, base: shown_recordset(entry[1], entry[0], base))


@OPERATIONS.add('GET', '/v2/recordsets/{recordset_id}', 'Redirect to a recordset', READER, {301: RECORDSET},
                has_location=True)
def find_recordset(api: Api, req: falcon.Request, resp: falcon.Response, recordset_id: str) -> Json:
    matches = api.central.find_all_recordsets(requester(req), PageRequest({'id': recordset_id}, limit=1))
    if not matches:
        raise RecordSetNotFound(recordset=recordset_id)
    domain, recordset = matches[0]
    return shown_recordset(recordset, domain, req.prefix)


def shown_recordset(recordset: RecordSet, domain: Domain, base: str) -> Json:
    """A recordset as the API answers it."""
    return RECORDSET.show(recordset, base, zone_id=dashed(domain.id), zone_name=domain.name,
                          project_id=recordset.project_id or domain.project_id)
