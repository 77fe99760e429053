"""``/v2/zones/{zone_id}/recordsets``, and ``/v2/recordsets``: those of all zones."""

from __future__ import annotations

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, calls, lists
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ACTION, CHANGE_LINK, COUNT, FLAG, ID, LOCK, STATUS, TEXT, TEXTS,
                                               VERSIONED, AnswerForm, Json, ListAnswer, maybe, zone_path)
from designate_pool.api.schema.operation import LOCK_AS_ADMIN, MEMBER, READER, Operations
from designate_pool.errors import ManagedRecordSet, RecordSetNotFound
from designate_pool.model import PageRequest, RecordSet, dashed

_ALL, _ONE = '/v2/zones/{zone_id}/recordsets', '/v2/zones/{zone_id}/recordsets/{recordset_id}'
RECORDSET = AnswerForm('RecordSet', {
    'id': ID,
    'name': TEXT.of('shown_name'),
    'type': TEXT,
    'records': TEXTS.of(lambda recordset: [record.data for record in recordset.records]),
    'ttl': maybe(COUNT),
    'description': maybe(TEXT),
    'status': STATUS,
    'action': ACTION,
    'zone_id': ID.of('domain_id'),
    'zone_name': TEXT.of(lambda recordset: recordset.domain.shown_name),
    'project_id': TEXT.of(lambda recordset: recordset.project_id or recordset.domain.project_id),
    **LOCK,
    'managed': FLAG.about('Whether users do not change it, since it is of the pool, or there for a floating IP, an '
                          'instance or a signed zone.'),
    **VERSIONED,
}, {'self': lambda recordset: f'{zone_path(recordset.domain_id)}/recordsets/{dashed(recordset.id)}', **CHANGE_LINK},
                       'change', has_etag=True)
RECORDSETS = ListAnswer('RecordSets', 'recordsets', RECORDSET)
OPERATIONS = Operations('recordsets')
OPERATIONS.add('GET', _ONE, 'Show a recordset', READER, {200: RECORDSET}, 'show_recordset')(
    calls(lambda central: central.get_recordset))
OPERATIONS.add('DELETE', _ONE, 'Delete a recordset', MEMBER, {202: RECORDSET}, 'delete_recordset',
               headers=request_fields.CONDITION)(calls(lambda central: central.delete_recordset))
OPERATIONS.add('GET', '/v2/recordsets', 'List recordsets of all zones', READER, {200: RECORDSETS},
               'list_all_recordsets', query=request_fields.RECORDSET_FILTERS, is_list=True)(
    lists(lambda central: central.find_all_recordsets))
OPERATIONS.add('GET', _ALL, "List a zone's recordsets", READER, {200: RECORDSETS}, 'list_recordsets',
               query=request_fields.RECORDSET_FILTERS, is_list=True)(lists(lambda central: central.find_recordsets))


@OPERATIONS.add('POST', _ALL, 'Create a recordset', MEMBER, {202: RECORDSET}, body=request_fields.RECORDSET_CREATE,
                headers=request_fields.CONDITION, has_location=True)
def create_recordset(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> RecordSet:
    body = request.body(req, of=lambda: api.central.get_domain(requester(req), zone_id))
    values = {name: value for name, value in body.items() if value is not None}
    api.central.get_domain(requester(req), zone_id)  # 404 comes first
    return api.central.create_recordset(requester(req), zone_id, values)


@OPERATIONS.add('PATCH', _ONE, "Change a recordset's records, TTL or description (the same as PUT)", MEMBER,
                {202: RECORDSET}, body=request_fields.RECORDSET_UPDATE, headers=request_fields.CONDITION,
                name='patch_recordset')
@OPERATIONS.add('PUT', _ONE, "Change a recordset's records, TTL or description", MEMBER, {202: RECORDSET},
                body=request_fields.RECORDSET_UPDATE, headers=request_fields.CONDITION)
def update_recordset(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str,
                     recordset_id: str) -> RecordSet:
    def current() -> Json:
        recordset = api.central.get_recordset(requester(req), zone_id, recordset_id)
        if recordset.managed and recordset.type in ('SOA', 'NS') and recordset.domain and requester(req).sees(
                recordset.domain.project_id):
            raise ManagedRecordSet(name=recordset.name, rtype=recordset.type)
        return RECORDSET.show(recordset, req.prefix)

    values = request.changes(req, current)
    return api.central.update_recordset(requester(req), zone_id, recordset_id, values)


@OPERATIONS.add('POST', f'{_ONE}/tasks/lock', 'Lock a recordset, so that it is not changed', MEMBER, {200: RECORDSET},
                body=request_fields.LOCK, headers=request_fields.CONDITION)
@OPERATIONS.add('POST', f'{_ONE}/tasks/unlock', 'Unlock a recordset', MEMBER, {200: RECORDSET}, name='unlock_recordset',
                headers=request_fields.CONDITION)
def lock_recordset(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str,
                   recordset_id: str) -> RecordSet:
    reason = None if req.context.operation.body is None else request.body(req)['reason']
    return api.central.set_recordset_lock(requester(req), zone_id, recordset_id, reason,
                                          req.context.allows(LOCK_AS_ADMIN))


@OPERATIONS.add('GET', '/v2/recordsets/{recordset_id}', 'Redirect to a recordset', READER, {301: RECORDSET},
                has_location=True)
def find_recordset(api: Api, req: falcon.Request, resp: falcon.Response, recordset_id: str) -> RecordSet:
    matches = api.central.find_all_recordsets(requester(req), PageRequest({'id': recordset_id}, limit=1))
    if not matches:
        raise RecordSetNotFound(recordset=recordset_id)
    return matches[0]
