"""``/v2/zones``."""

from __future__ import annotations

import json
from typing import Any

import falcon

from designate_pool.api.auth.identity import check_rule, zone_creator
from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, show_page
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ACTION, COUNT, FLAG, ID, MOMENT, SERIAL, STATUS, TEXT, TEXT_BY_NAME,
                                               TEXTS, VERSIONED, AnswerForm, Json, ListAnswer, choice, maybe, zone_path)
from designate_pool.api.schema.operation import ADMIN, CREATE_IN_POOL, MEMBER, READER, Operations
from designate_pool.api.views.zone_servers import masters
from designate_pool.errors import InvalidField
from designate_pool.model import Action, Domain, RecordChange

#: Says that a zone may be deleted though it is shared with other projects.
DELETE_SHARES = 'X-Designate-Delete-Shares'
_DELETE_SHARES = {DELETE_SHARES: request_fields.RequestField(request_fields.flag_word)}
_ONE = '/v2/zones/{zone_id}'
ZONE = AnswerForm('Zone', {
    'id': ID,
    'name': TEXT,
    'email': TEXT,
    'ttl': COUNT,
    'serial': SERIAL,
    'status': STATUS,
    'action': ACTION,
    'description': maybe(TEXT),
    'type': choice('PRIMARY', 'SECONDARY').of(lambda domain: 'SECONDARY' if domain.is_secondary else 'PRIMARY'),
    'pool_id': ID,
    'project_id': TEXT,
    'masters': TEXTS.of(masters),
    'attributes': TEXT_BY_NAME.of(lambda domain: json.loads(domain.attributes) if domain.attributes else {}),
    'transferred_at': maybe(MOMENT).about('When a secondary zone got its serial from a master.'),
    **VERSIONED,
    'changed_at': maybe(MOMENT).about('When it got its serial.'),
    'converged_at': maybe(MOMENT).about('When the pool agreed on that serial; null before.'),
    'shared': FLAG.about('Whether it is shared with other projects.'),
}, {'self': lambda domain: zone_path(domain.id)})
ZONES = ListAnswer('Zones', 'zones', ZONE)
OPERATIONS = Operations('zones')


@OPERATIONS.add('GET', '/v2/zones', 'List zones', READER, {200: ZONES}, query=request_fields.ZONE_FILTERS, is_list=True)
def list_zones(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return show_page(req, api.central.find_domains)


@OPERATIONS.add('POST', '/v2/zones', 'Create a zone', MEMBER, {202: ZONE}, has_location=True,
                body=request_fields.ZONE_CREATE)
def create_zone(api: Api, req: falcon.Request, resp: falcon.Response) -> Domain:
    body = _with_masters(request.body(req, api.whole_zone_limit))
    pool_id = json.loads(body.get('attributes', '{}')).get('pool_id')
    if pool_id is not None:
        check_rule(req, CREATE_IN_POOL, 'choose the pool of a zone')
        body['pool_id'] = request_fields.identifier('attributes.pool_id', pool_id)
    recordsets = body.pop('recordsets', ())
    values = {name: value for name, value in body.items() if value is not None}
    return api.central.create_domain(zone_creator(req), values, recordsets)


def _with_masters(given: dict[str, Any]) -> dict[str, Any]:
    """A body with the masters of a secondary zone, and without those that a primary one has not."""
    masters = given.pop('masters', [])
    if given.pop('type', 'PRIMARY') == 'SECONDARY':
        if not masters:
            raise InvalidField(field='masters', why="'masters' is a required property of a secondary zone")
        return {**given, 'masters': masters}
    if masters:
        raise InvalidField(field='masters', why='must be empty; only secondary zones have masters')
    return given


@OPERATIONS.add('GET', _ONE, 'Show a zone', READER, {200: ZONE})
def show_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain:
    return api.central.get_domain(requester(req), zone_id)


@OPERATIONS.add('PATCH', _ONE, "Change a zone's email, TTL, description or masters", MEMBER, {202: ZONE},
                body=request_fields.ZONE_UPDATE)
def update_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    values = request.changes(req, lambda: ZONE.show(api.own_domain(requester(req), zone_id), req.prefix))
    shown = ZONE.show(api.central.update_domain(requester(req), zone_id, values), req.prefix)
    # As in Designate, also while the servers are still to create it.
    return shown | ({'action': Action.UPDATE.value} if shown['action'] != Action.NONE else {})


@OPERATIONS.add('DELETE', _ONE, 'Delete a zone', MEMBER, {202: ZONE}, headers=_DELETE_SHARES)
def delete_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain:
    return api.central.delete_domain(requester(req), zone_id, delete_shares=request.flag(req, DELETE_SHARES))


@OPERATIONS.add('POST', f'{_ONE}/project', 'Give a zone to a project', ADMIN, {200: ZONE}, body={
    'project_id': request_fields.RequestField(request_fields.project, required=True, example='alpha')})
def give_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain:
    body = request.body(req, of=lambda: api.own_domain(requester(req), zone_id))
    api.check_project(req, body['project_id'])
    return api.central.give_domain(requester(req), zone_id, body['project_id'])


@OPERATIONS.add('POST', f'{_ONE}/tasks/pool_move', 'Move a zone to another pool', ADMIN, {202: ZONE}, body={
    'pool_id': request_fields.RequestField(request_fields.identifier)}, body_optional=True)
def move_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain:
    body = request.body(req, of=lambda: api.central.get_domain(requester(req), zone_id))
    return api.central.move_domain(requester(req), zone_id, body.get('pool_id'))


@OPERATIONS.add('POST', f'{_ONE}/tasks/abandon', 'Delete a zone here and leave it on its servers', ADMIN, {204: None},
                headers=_DELETE_SHARES)
def abandon_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
    api.central.abandon_domain(requester(req), zone_id, delete_shares=request.flag(req, DELETE_SHARES))


@OPERATIONS.add('POST', f'{_ONE}/tasks/xfr', 'Refresh a secondary zone from its masters now', MEMBER, {202: ZONE})
def xfr_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain:
    return api.central.refresh_domain(requester(req), zone_id)


@OPERATIONS.add('POST', f'{_ONE}/changes', 'Make many changes of a zone under one new serial', MEMBER, {202: ZONE},
                body=request_fields.ZONE_CHANGES)
def change_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain:
    """All of the changes are made or none."""
    body = request.body(req, api.whole_zone_limit, of=lambda: api.central.get_domain(requester(req), zone_id))
    changes = [RecordChange(change['name'], change['type'], tuple(change['records']), change.get('ttl'))
               for change in request_fields.in_turns(body['changes'])]
    return api.central.apply_changes(requester(req), zone_id, changes, body.get('serial'))
