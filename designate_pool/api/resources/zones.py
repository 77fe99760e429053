"""``/v2/zones``, and the state of a zone on each server."""

from __future__ import annotations

import json
from typing import Any

import falcon

from designate_pool.api.auth.identity import check_rule, zone_creator
from designate_pool.api.auth.keystone import CheckProject
from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, answer_created, requester
from designate_pool.api.resources.base import CentralResource, answer_page, own_domain
from designate_pool.api.resources.zone_servers import StatusReader
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ACTION, COUNT, FLAG, ID, MOMENT, SERIAL, STATUS, TEXT, TEXT_BY_NAME,
                                               TEXTS, VERSIONED, AnswerForm, ListAnswer, choice, maybe, zone_path)
from designate_pool.api.schema.operation import ADMIN, CREATE_IN_POOL, MEMBER, READER, ApiOperation
from designate_pool.api.views.zone_servers import ZONE_SERVERS, masters
from designate_pool.central.service import Central
from designate_pool.errors import InvalidField
from designate_pool.model import Action, RecordChange

#: Says that a zone may be deleted though it is shared with other projects.
DELETE_SHARES = 'X-Designate-Delete-Shares'
_GIVE = {'project_id': request_fields.RequestField(request_fields.project, required=True, example='alpha')}
_MOVE = {'pool_id': request_fields.RequestField(request_fields.identifier)}
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
OPERATIONS = (
    ApiOperation('list_zones', 'GET', '/v2/zones', 'List zones', READER, {200: ZONES},
                 query=request_fields.ZONE_FILTERS, is_list=True),
    ApiOperation('create_zone', 'POST', '/v2/zones', 'Create a zone', MEMBER, {202: ZONE},
                 body=request_fields.ZONE_CREATE),
    ApiOperation('show_zone', 'GET', '/v2/zones/{zone_id}', 'Show a zone', READER, {200: ZONE}),
    ApiOperation('update_zone', 'PATCH', '/v2/zones/{zone_id}', "Change a zone's email, TTL, description or masters",
                 MEMBER, {202: ZONE}, body=request_fields.ZONE_UPDATE),
    ApiOperation('delete_zone', 'DELETE', '/v2/zones/{zone_id}', 'Delete a zone', MEMBER, {202: ZONE},
                 headers={DELETE_SHARES: request_fields.RequestField(request_fields.flag_word)}),
    ApiOperation('give_zone', 'POST', '/v2/zones/{zone_id}/project', 'Give a zone to a project', ADMIN, {200: ZONE},
                 body=_GIVE),
    ApiOperation('move_zone', 'POST', '/v2/zones/{zone_id}/tasks/pool_move', 'Move a zone to another pool', ADMIN,
                 {202: ZONE}, body=_MOVE, body_optional=True),
    ApiOperation('abandon_zone', 'POST', '/v2/zones/{zone_id}/tasks/abandon',
                 'Delete a zone here and leave it on its servers', ADMIN, {204: None},
                 headers={DELETE_SHARES: request_fields.RequestField(request_fields.flag_word)}),
    ApiOperation('xfr_zone', 'POST', '/v2/zones/{zone_id}/tasks/xfr', 'Refresh a secondary zone from its masters now',
                 MEMBER, {202: ZONE}),
    ApiOperation('change_zone', 'POST', '/v2/zones/{zone_id}/changes',
                 'Make many changes of a zone under one new serial', MEMBER, {202: ZONE},
                 body=request_fields.ZONE_CHANGES),
    ApiOperation('list_zone_servers', 'GET', '/v2/zones/{zone_id}/servers', 'Show the state of a zone on each server',
                 READER, {200: ZONE_SERVERS}),
)


class ZonesResource(CentralResource):
    """
    :param limit: how many bytes a new zone with its recordsets may have
    """

    def __init__(self, central: Central, limit: int) -> None:
        super().__init__(central)
        self._limit = limit

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        answer_page(req, resp, ZONES, request_fields.ZONE_FILTERS, self._central.find_domains)

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        body = _with_masters(request.body(req, request_fields.ZONE_CREATE, limit=self._limit))
        pool_id = json.loads(body.get('attributes', '{}')).get('pool_id')
        if pool_id is not None:
            check_rule(req, CREATE_IN_POOL, 'choose the pool of a zone')
        recordsets = body.pop('recordsets', ())
        if pool_id is not None:
            body['pool_id'] = request_fields.identifier('attributes.pool_id', pool_id)
        values = {name: value for name, value in body.items() if value is not None}
        created = self._central.create_domain(zone_creator(req), values, recordsets)
        answer_created(req, resp, ZONE, created, 202)


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


class ZoneResource(CentralResource):
    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        zone = self._central.get_domain(requester(req), zone_id)
        answer(resp, ZONE.show(zone, req.prefix))

    def on_patch(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        context = requester(req)
        values = request.changes(req, request_fields.ZONE_UPDATE, lambda: ZONE.show(
            self.own_domain(req, zone_id), req.prefix))
        shown = ZONE.show(self._central.update_domain(context, zone_id, values), req.prefix)
        # As in Designate, also while the servers are still to create it.
        answer(resp, shown | ({'action': Action.UPDATE.value} if shown['action'] != Action.NONE else {}), 202)

    def on_delete(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        deleted = self._central.delete_domain(requester(req), zone_id, delete_shares=request.flag(req, DELETE_SHARES))
        answer(resp, ZONE.show(deleted, req.prefix), 202)


class ZoneProjectResource(CentralResource):
    def __init__(self, central: Central, check_project: CheckProject) -> None:
        super().__init__(central)
        self._check_project = check_project

    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        body = request.body(req, _GIVE, of=lambda: self.own_domain(req, zone_id))
        self._check_project(req, body['project_id'])
        zone = self._central.give_domain(requester(req), zone_id, body['project_id'])
        answer(resp, ZONE.show(zone, req.prefix))


class ZoneMoveResource(CentralResource):
    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        body = request.body(req, _MOVE, optional=True, of=lambda: self._central.get_domain(requester(req), zone_id))
        moved = self._central.move_domain(requester(req), zone_id, body.get('pool_id'))
        answer(resp, ZONE.show(moved, req.prefix), 202)


class ZoneAbandonResource(CentralResource):
    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        self._central.abandon_domain(requester(req), zone_id, delete_shares=request.flag(req, DELETE_SHARES))
        resp.status = 204


class ZoneRefreshResource(CentralResource):
    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        zone = self._central.refresh_domain(requester(req), zone_id)
        answer(resp, ZONE.show(zone, req.prefix), 202)


class ZoneChangesResource(CentralResource):
    """Many changes of a zone at once: all of them or none, at one serial.

    :param limit: how many bytes they may have
    """

    def __init__(self, central: Central, limit: int) -> None:
        super().__init__(central)
        self._limit = limit

    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        body = request.body(req, request_fields.ZONE_CHANGES, limit=self._limit,
                            of=lambda: self._central.get_domain(requester(req), zone_id))
        changes = [RecordChange(change['name'], change['type'], tuple(change['records']), change.get('ttl'))
                   for change in request_fields.in_turns(body['changes'])]
        changed = self._central.apply_changes(requester(req), zone_id, changes, body.get('serial'))
        answer(resp, ZONE.show(changed, req.prefix), 202)


class ZoneServersResource:
    """The rows of pool_manager_status, one entry per server of the zone's pool."""

    def __init__(self, status_reader: StatusReader) -> None:
        self._status_reader = status_reader

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain = own_domain(self._status_reader.central, requester(req), zone_id)
        answer(resp, self._status_reader.shown(requester(req), domain, req.prefix))
