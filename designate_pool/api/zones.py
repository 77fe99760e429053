"""``/v2/zones``, and where a zone stands on each server."""

from __future__ import annotations

import falcon

from designate_pool.api import fields, reading, views
from designate_pool.api.answering import answer, asker
from designate_pool.api.operations import MEMBER, READER, Operation
from designate_pool.errors import BadInput
from designate_pool.model import PlanState, Pool, RecordChange, utcnow
from designate_pool.rpc.central import CentralClient


OPERATIONS = (
    Operation('list_zones', 'GET', '/v2/zones', 'List zones', READER, {200: 'Zones'}, query=fields.ZONE_FILTERS,
              is_list=True),
    Operation('create_zone', 'POST', '/v2/zones', 'Create a zone', MEMBER, {202: 'Zone'}, body=fields.ZONE_CREATE),
    Operation('show_zone', 'GET', '/v2/zones/{zone_id}', 'Show a zone', READER, {200: 'Zone'}),
    Operation('update_zone', 'PATCH', '/v2/zones/{zone_id}', "Change a zone's email, TTL or description", MEMBER,
              {202: 'Zone'}, body=fields.ZONE_UPDATE),
    Operation('delete_zone', 'DELETE', '/v2/zones/{zone_id}', 'Delete a zone', MEMBER, {202: 'Zone'}),
    Operation('change_zone', 'POST', '/v2/zones/{zone_id}/changes', 'Make many changes of a zone at one serial', MEMBER,
              {202: 'Zone'}, body=fields.ZONE_CHANGES),
    Operation('list_zone_servers', 'GET', '/v2/zones/{zone_id}/servers', 'Show where a zone stands on each server',
              READER, {200: 'ZoneServers'}),
)


class Zones:
    """
    :param limit: how many bytes a new zone with its recordsets may have
    """

    def __init__(self, central: CentralClient, limit: int) -> None:
        self._central = central
        self._limit = limit

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        wanted = reading.listing(req, fields.ZONE_FILTERS)
        found = self._central.find_domains(asker(req), **wanted.ask())
        page, links = reading.page_links(req, found, wanted.limit)
        answer(resp, views.page('zones', [views.zone(domain, req.prefix) for domain in page], links))

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        given = reading.body(req, fields.ZONE_CREATE, limit=self._limit)
        recordsets = given.pop('recordsets', ())
        wanted = {name: value for name, value in given.items() if value is not None}
        created = self._central.create_domain(asker(req), wanted, recordsets)
        answer(resp, views.zone(created, req.prefix), 202, at=views.zone_address(created.id, req.prefix))


class Zone:
    def __init__(self, central: CentralClient) -> None:
        self._central = central

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        found = self._central.get_domain(asker(req), fields.identifier('zone_id', zone_id))
        answer(resp, views.zone(found, req.prefix))

    def on_patch(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain_id = fields.identifier('zone_id', zone_id)
        values = reading.body(req, fields.ZONE_UPDATE)
        if not values:
            raise BadInput(why='the body names nothing to change')
        changed = self._central.update_domain(asker(req), domain_id, values)
        answer(resp, views.zone(changed, req.prefix), 202)

    def on_delete(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        deleted = self._central.delete_domain(asker(req), fields.identifier('zone_id', zone_id))
        answer(resp, views.zone(deleted, req.prefix), 202)


class ZoneChanges:
    """Many changes of a zone at once: all of them or none, at one serial.

    :param limit: how many bytes they may have
    """

    def __init__(self, central: CentralClient, limit: int) -> None:
        self._central = central
        self._limit = limit

    def on_post(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain_id = fields.identifier('zone_id', zone_id)
        given = reading.body(req, fields.ZONE_CHANGES, limit=self._limit)
        changes = [RecordChange(each['name'], each['type'], tuple(each['records']), each.get('ttl'))
                   for each in given['changes']]
        changed = self._central.apply_changes(asker(req), domain_id, changes, given.get('serial'))
        answer(resp, views.zone(changed, req.prefix), 202)


class ZoneServers:
    """The rows of pool_manager_status, one entry per server of the zone's pool.

    :param pool: the API's own, as read from the configuration: of others the threshold is not known
    :param count_joining: whether servers of it count before they are filled
    """

    def __init__(self, central: CentralClient, pool: Pool, count_joining: bool) -> None:
        self._central = central
        self._pool = pool
        self._count_joining = count_joining

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        domain_id = fields.identifier('zone_id', zone_id)
        domain = self._central.get_domain(asker(req), domain_id)
        servers = self._central.find_servers(asker(req), domain.pool_name)
        rows = self._central.server_statuses(asker(req), domain_id)
        parked = self._central.find_plans(asker(req), {'domain_id': domain_id, 'state': PlanState.PARKED.value},
                                          sort_key='created_at', sort_dir='asc')
        answer(resp, views.zone_servers(domain, servers, rows, self._pool, self._count_joining, req.prefix,
                                        {each.server_id: each.id for each in parked
                                         if each.expires_at is None or each.expires_at > utcnow()}))
