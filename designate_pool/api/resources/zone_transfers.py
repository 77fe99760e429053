"""Zones for other projects: their transfer (``/v2/zones/tasks/transfer_requests``, ``transfer_accepts``) and shares.

The key of a request is shown to those who could have created the request; a project that is to accept it gets the key
from them.  Of the project that has made a request to another one, only they are shown it, as in Designate.
"""

from __future__ import annotations

import falcon

from designate_pool.api.auth.identity import check_rule
from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, calls, lists, show_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (CHANGE_LINK, ID, MOMENT, TEXT, AnswerForm, Json, ListAnswer, maybe,
                                               member, zone_path)
from designate_pool.api.schema.operation import ADMIN, MEMBER, READER, Operations
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.model import TransferStatus, ZoneShare, ZoneTransferRequest, dashed

#: The policy rules for creating requests, and so for their keys, and for giving away zones without a request.
_CREATE, _GIVE = 'create_transfer_request', 'give_zone'
_FILTERS = {'status': RequestField(request_fields.some_text)}
_NEW_REQUEST = {
    'target_project_id': RequestField(request_fields.project, nullable=True, example='beta'),
    'description': RequestField(request_fields.text, nullable=True),
}
_CHANGED_REQUEST = {
    'description': RequestField(request_fields.text, nullable=True),
    **dict.fromkeys(('id', 'zone_id', 'zone_name', 'project_id', 'target_project_id', 'key', 'status', 'created_at',
                     'updated_at'), RequestField(request_fields.fixed)),
}
_NEW_ACCEPT = {
    'zone_transfer_request_id': RequestField(request_fields.identifier, required=True),
    'key': RequestField(request_fields.some_text, required=True),
}
_REQUESTS, _ACCEPTS = '/v2/zones/tasks/transfer_requests', '/v2/zones/tasks/transfer_accepts'
_REQUEST, _ACCEPT = f'{_REQUESTS}/{{transfer_request_id}}', f'{_ACCEPTS}/{{transfer_accept_id}}'
_SHARE_FILTERS = {'target_project_id': RequestField(request_fields.some_text)}
_NEW_SHARE = {'target_project_id': RequestField(request_fields.project, required=True, example='beta')}
_SHARES, _SHARE = '/v2/zones/{zone_id}/shares', '/v2/zones/{zone_id}/shares/{share_id}'
_STATUS = member(TransferStatus)
_TIMES = {'created_at': maybe(MOMENT), 'updated_at': maybe(MOMENT)}
#: What only the owner sees.
_OWN = {
    'project_id': TEXT,
    'target_project_id': maybe(TEXT),
    'key': maybe(TEXT).about('Null for those who may not create transfer requests.'),
    **_TIMES,
}
REQUEST = AnswerForm('TransferRequest', {
    'id': ID,
    'zone_id': ID.of('domain_id'),
    'zone_name': TEXT,
    'status': _STATUS,
    'description': maybe(TEXT),
    **_OWN,
}, {'self': lambda found: f'{_REQUESTS}/{dashed(found.id)}', **CHANGE_LINK}, *_OWN, 'change',
    description='A transfer request; other projects than the owner see only what is required.')
REQUESTS = ListAnswer('TransferRequests', 'transfer_requests', REQUEST)
ACCEPT = AnswerForm('TransferAccept', {
    'id': ID,
    'zone_transfer_request_id': ID.of('request_id'),
    'zone_id': ID.of('domain_id'),
    'project_id': TEXT,
    'key': maybe(TEXT).of(lambda accept: None).about('Only in the answer to the request that accepts.'),
    'status': _STATUS,
    **_TIMES,
}, {'self': lambda accept: f'{_ACCEPTS}/{dashed(accept.id)}', 'zone': lambda accept: zone_path(accept.domain_id)})
ACCEPTS = ListAnswer('TransferAccepts', 'transfer_accepts', ACCEPT)
SHARE = AnswerForm('ZoneShare', {
    'id': ID,
    'zone_id': ID.of('domain_id'),
    'project_id': TEXT.about('The project that shared the zone.'),
    'target_project_id': TEXT.about('The project that may use it.'),
    'created_at': maybe(MOMENT),
    # As in Designate: a share does not change.
    'updated_at': maybe(MOMENT).of(lambda share: None),
}, {'self': lambda share: f'{zone_path(share.domain_id)}/shares/{dashed(share.id)}',
    'zone': lambda share: zone_path(share.domain_id)})
SHARES = ListAnswer('ZoneShares', 'shared_zones', SHARE)
OPERATIONS = Operations('zone_transfers')
OPERATIONS.add('DELETE', _REQUEST, 'Withdraw a transfer request', MEMBER, {204: None}, 'delete_transfer_request')(
    calls(lambda central: central.delete_transfer_request))
OPERATIONS.add('GET', _ACCEPTS, 'List accepted transfers', ADMIN, {200: ACCEPTS}, 'list_transfer_accepts',
               query=_FILTERS, is_list=True)(lists(lambda central: central.find_transfer_accepts))
OPERATIONS.add('GET', _ACCEPT, 'Show an accepted transfer', READER, {200: ACCEPT}, 'show_transfer_accept')(
    calls(lambda central: central.get_transfer_accept))
OPERATIONS.add('GET', _SHARE, 'Show a share of a zone', READER, {200: SHARE}, 'show_zone_share', tag='zone_shares')(
    calls(lambda central: central.get_share))
OPERATIONS.add('GET', _SHARES, 'List the shares of a zone', READER, {200: SHARES}, 'list_zone_shares', 'zone_shares',
               query=_SHARE_FILTERS, is_list=True)(lists(lambda central: central.find_shares))
OPERATIONS.add('DELETE', _SHARE, 'End a share of a zone', MEMBER, {204: None}, 'delete_zone_share', tag='zone_shares')(
    calls(lambda central: central.unshare_domain))


@OPERATIONS.add('GET', _REQUESTS, 'List the transfer requests of a project, and those to it', READER, {200: REQUESTS},
                query=_FILTERS, is_list=True)
def list_transfer_requests(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return show_page(req, api.central.find_transfer_requests,
                     show=lambda transfer_request, base: _shown(req, transfer_request))


@OPERATIONS.add('POST', '/v2/zones/{zone_id}/tasks/transfer_requests', 'Request that another project take over a zone',
                MEMBER, {201: REQUEST, 202: REQUEST}, has_location=True, body=_NEW_REQUEST, body_optional=True)
def create_transfer_request(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    values = request.body(req, of=lambda: api.own_domain(requester(req), zone_id))
    if values.get('target_project_id') is not None:
        api.check_project(req, values['target_project_id'])
    return _shown(req, api.central.create_transfer_request(requester(req), zone_id, values))


@OPERATIONS.add('GET', _REQUEST, 'Show a transfer request', READER, {200: REQUEST})
def show_transfer_request(api: Api, req: falcon.Request, resp: falcon.Response, transfer_request_id: str) -> Json:
    context = requester(req)
    transfer_request = api.central.get_transfer_request(context, transfer_request_id)
    owner = transfer_request.project_id
    if context.project_id == owner and transfer_request.target_project_id not in (None, owner):
        check_rule(req, _CREATE, 'see a transfer request to another project')
    return _shown(req, transfer_request)


@OPERATIONS.add('PATCH', _REQUEST, 'Change the description of a transfer request', MEMBER, {200: REQUEST},
                body=_CHANGED_REQUEST)
def update_transfer_request(api: Api, req: falcon.Request, resp: falcon.Response, transfer_request_id: str) -> Json:
    values = request.changes(
        req, lambda: _shown(req, api.central.get_transfer_request(requester(req), transfer_request_id)))
    return _shown(req, api.central.update_transfer_request(requester(req), transfer_request_id, values))


@OPERATIONS.add('POST', _ACCEPTS, 'Take over a zone by a transfer request and its key', MEMBER, {201: ACCEPT},
                has_location=True, body=_NEW_ACCEPT)
def create_transfer_accept(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    body = request.body(req)
    accept = api.central.create_transfer_accept(requester(req), body['zone_transfer_request_id'], body['key'])
    return ACCEPT.show(accept, req.prefix, key=body['key'])


@OPERATIONS.add('POST', _SHARES, 'Share a zone with another project', MEMBER, {201: SHARE}, has_location=True,
                body=_NEW_SHARE, tag='zone_shares')
def create_zone_share(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> ZoneShare:
    values = request.body(req, of=lambda: api.own_domain(requester(req), zone_id))
    api.check_project(req, values['target_project_id'])
    return api.central.share_domain(requester(req), zone_id, values)


def _shown(req: falcon.Request, transfer_request: ZoneTransferRequest) -> Json:
    context, owner = requester(req), transfer_request.project_id
    may_know_key = req.context.allows(_CREATE if context.project_id == owner else _GIVE)
    shown = REQUEST.show(transfer_request, req.prefix, key=transfer_request.key if may_know_key else None)
    return shown if context.sees(owner) else {name: content for name, content in shown.items() if name not in _OWN}
