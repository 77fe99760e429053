"""Transfers of zones to other projects: ``/v2/zones/tasks/transfer_requests`` and ``transfer_accepts``.

The key of a request is shown to those who could have created the request; a project that is to accept it gets the key
from them.  Of the project that has made a request to another one, only they are shown it, as in Designate.
"""

from __future__ import annotations

import falcon

from designate_pool.api.auth.identity import check_rule
from designate_pool.api.auth.project_check import CheckProject
from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import CentralResource, answer_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import ADMIN, MEMBER, READER, ApiOperation, Schema
from designate_pool.api.schema.request_fields import RequestField
from designate_pool.api.schema.response_types import ID, MOMENT, TEXT, links, listed, maybe, shape
from designate_pool.api.views import designate
from designate_pool.central.service import Central
from designate_pool.model import TransferStatus, ZoneTransferAccept, ZoneTransferRequest, dashed

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
OPERATIONS = (
    ApiOperation('list_transfer_requests', 'GET', _REQUESTS,
                 'List the transfer requests of a project, and those to it', READER, {200: 'TransferRequests'},
                 query=_FILTERS, is_list=True),
    ApiOperation(_CREATE, 'POST', '/v2/zones/{zone_id}/tasks/transfer_requests',
                 'Request that another project take over a zone', MEMBER, {201: 'TransferRequest'}, body=_NEW_REQUEST,
                 body_optional=True),
    ApiOperation('show_transfer_request', 'GET', _REQUEST, 'Show a transfer request', READER,
                 {200: 'TransferRequest'}),
    ApiOperation('update_transfer_request', 'PATCH', _REQUEST, 'Change the description of a transfer request', MEMBER,
                 {200: 'TransferRequest'}, body=_CHANGED_REQUEST),
    ApiOperation('delete_transfer_request', 'DELETE', _REQUEST, 'Withdraw a transfer request', MEMBER, {204: None}),
    ApiOperation('list_transfer_accepts', 'GET', _ACCEPTS, 'List accepted transfers', ADMIN, {200: 'TransferAccepts'},
                 query=_FILTERS, is_list=True),
    ApiOperation('create_transfer_accept', 'POST', _ACCEPTS, 'Take over a zone by a transfer request and its key',
                 MEMBER, {201: 'TransferAccept'}, body=_NEW_ACCEPT),
    ApiOperation('show_transfer_accept', 'GET', _ACCEPT, 'Show an accepted transfer', READER, {200: 'TransferAccept'}),
)
_STATUS: Schema = {'type': 'string', 'enum': [status.value for status in TransferStatus]}
SCHEMAS: dict[str, Schema] = {
    'TransferRequest': shape({
        'id': ID,
        'zone_id': ID,
        'zone_name': TEXT,
        'status': _STATUS,
        'description': maybe(TEXT),
        'project_id': TEXT,
        'target_project_id': maybe(TEXT),
        'key': {**maybe(TEXT), 'description': 'Null for those who may not create transfer requests.'},
        'created_at': maybe(MOMENT),
        'updated_at': maybe(MOMENT),
        'links': links('self'),
    }, 'project_id', 'target_project_id', 'key', 'created_at', 'updated_at',
        description='A transfer request; other projects than the owner see only what is required.'),
    'TransferRequests': listed('transfer_requests', 'TransferRequest'),
    'TransferAccept': shape({
        'id': ID,
        'zone_transfer_request_id': ID,
        'zone_id': ID,
        'project_id': TEXT,
        'key': {**maybe(TEXT), 'description': 'Only in the answer to the request that accepts.'},
        'status': _STATUS,
        'created_at': maybe(MOMENT),
        'updated_at': maybe(MOMENT),
        'links': links('self', 'zone'),
    }),
    'TransferAccepts': listed('transfer_accepts', 'TransferAccept'),
}


class TransferRequestsResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, 'transfer_requests', _FILTERS, self._central.find_transfer_requests,
                    lambda found, base: _shown(req, found))


class NewTransferRequestResource(CentralResource):
    """``/v2/zones/{zone_id}/tasks/transfer_requests``."""

    def __init__(self, central: Central, check_project: CheckProject) -> None:
        super().__init__(central)
        self._check_project = check_project

    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        values = request.body(req, _NEW_REQUEST, optional=True,
                              of=lambda: self.own_domain(req, zone_id))
        if values.get('target_project_id') is not None:
            self._check_project(req, values['target_project_id'])
        shown = _shown(req, self._central.create_transfer_request(requester(req), zone_id, values))
        answer(resp, shown, 201, at=shown['links']['self'])


class TransferRequestResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, transfer_request_id: str) -> None:
        context = requester(req)
        transfer_request = self._central.get_transfer_request(context, transfer_request_id)
        owner = transfer_request.project_id
        if context.project_id == owner and transfer_request.target_project_id not in (None, owner):
            check_rule(req, _CREATE, 'see a transfer request to another project')
        answer(resp, _shown(req, transfer_request))

    def on_patch(self, req: falcon.Request, resp: falcon.Response, transfer_request_id: str) -> None:
        values = request.changes(req, _CHANGED_REQUEST, lambda: _shown(
            req, self._central.get_transfer_request(requester(req), transfer_request_id)))
        answer(resp, _shown(req, self._central.update_transfer_request(requester(req), transfer_request_id, values)))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, transfer_request_id: str) -> None:
        self._central.delete_transfer_request(requester(req), transfer_request_id)
        resp.status = 204


class TransferAcceptsResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, 'transfer_accepts', _FILTERS, self._central.find_transfer_accepts, _accepted)

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        body = request.body(req, _NEW_ACCEPT)
        accept = self._central.create_transfer_accept(requester(req), body['zone_transfer_request_id'], body['key'])
        shown = _accepted(accept, req.prefix) | {'key': body['key']}
        answer(resp, shown, 201, at=shown['links']['self'])


class TransferAcceptResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, transfer_accept_id: str) -> None:
        accept = self._central.get_transfer_accept(requester(req), transfer_accept_id)
        answer(resp, _accepted(accept, req.prefix))


def _shown(req: falcon.Request, found: ZoneTransferRequest) -> designate.Json:
    shown: designate.Json = {
        'id': dashed(found.id),
        'zone_id': dashed(found.domain_id),
        'zone_name': found.zone_name,
        'status': found.status.value,
        'description': found.description,
        'links': {'self': f'{req.prefix}{_REQUESTS}/{dashed(found.id)}'},
    }
    context = requester(req)
    if not context.sees(found.project_id):
        return shown
    is_own = context.project_id == found.project_id
    may_know_key = req.context.allows(_CREATE if is_own else _GIVE)
    return shown | {
        'project_id': found.project_id,
        'target_project_id': found.target_project_id,
        'key': found.key if may_know_key else None,
        'created_at': designate.moment(found.created_at),
        'updated_at': designate.moment(found.updated_at),
    }


def _accepted(found: ZoneTransferAccept, base: str) -> designate.Json:
    return {
        'id': dashed(found.id),
        'zone_transfer_request_id': dashed(found.request_id),
        'zone_id': dashed(found.domain_id),
        'project_id': found.project_id,
        'key': None,
        'status': found.status.value,
        'created_at': designate.moment(found.created_at),
        'updated_at': designate.moment(found.updated_at),
        'links': {'self': f'{base}{_ACCEPTS}/{dashed(found.id)}',
                  'zone': designate.zone_address(found.domain_id, base)},
    }
