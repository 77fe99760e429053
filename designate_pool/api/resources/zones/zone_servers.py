"""The state of a zone and of its recordsets on each server, and the explanation."""

from __future__ import annotations

from typing import Any

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import available, own_domain
from designate_pool.api.resources.pools.audits import FINDING, shown_finding
from designate_pool.api.schema.operation import READER, ApiOperation, Schema
from designate_pool.api.schema.response_types import COUNT, FLAG, ID, REASON, SERIAL, TEXT, maybe
from designate_pool.api.services.wait_verdict import ZoneState
from designate_pool.api.views import designate, explain, propagation
from designate_pool.api.views.designate import Json
from designate_pool.central.service import Central
from designate_pool.errors import ServerNotFound
from designate_pool.model import Context, Domain, PageRequest, PlanState, Pool, dashed, utcnow
from designate_pool.storage.reporting import audit_findings, dashboard
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import secondary_zones

#: How many of the newest findings of audits about a zone are shown.
FINDINGS = 5
OPERATIONS = (
    ApiOperation('explain_zone', 'GET', '/v2/zones/{zone_id}/explain', 'Explain in words why a zone is not ACTIVE',
                 READER, {200: 'ZoneExplanation'}),
    ApiOperation('list_recordset_servers', 'GET', '/v2/zones/{zone_id}/recordsets/{recordset_id}/servers',
                 'Show which servers serve a recordset as it is now', READER, {200: 'RecordSetServers'}),
)
_PAGE = 1000


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {'type': 'object', 'required': list(properties), 'properties': properties}


_TIME = {**maybe(TEXT), 'description': 'In UTC.'}
_KNOWN = {**maybe(COUNT), 'description': 'Null where the threshold is not known.'}
SECONDARY: dict[str, Any] = {
    **_object({
        'masters': {'type': 'array', 'items': TEXT},
        'served': {**FLAG, 'description': 'Whether it was transferred, and has not expired since.'},
        'transferred_at': {**_TIME, 'description': 'When it got its serial.'},
        'checked_at': {**_TIME, 'description': 'When a master last had this serial.'},
        'checked_with': {**maybe(TEXT), 'description': 'That master.'},
        'expires_at': {**_TIME, 'description': 'When it expires unless a master is reached before.'},
        'next_refresh_at': _TIME,
        'failures': {**COUNT, 'description': 'Refreshes that have failed since.'},
        'last_error': {**maybe(TEXT), 'description': 'Why the last refresh failed; null if it did not.'},
    }),
    'description': 'Of a secondary zone: how it follows its masters.',
}
_FORMER_POOL: dict[str, Any] = {
    **_object({'name': TEXT, 'until': {**_TIME, 'description': 'Null while its own pool has not served it yet.'}}),
    'description': 'The pool that the zone was moved from, whose servers still keep it.',
}
_STATUS = {'enum': ['PENDING', 'ACTIVE', 'ERROR', 'DELETED']}
_ACTION = {'enum': ['NONE', 'CREATE', 'UPDATE', 'DELETE']}
_STATE = {'enum': ['joining', 'active', 'maintenance', 'draining', 'removed']}
_ON_SERVER = {
    'id': ID,
    'name': TEXT,
    'driver': TEXT,
    'host': TEXT,
    'port': {'type': 'integer', 'minimum': 1, 'maximum': 65535},
    'state': _STATE,
    'state_since': _TIME,
    'counts': FLAG,
    'action': _ACTION,
    'status': {'enum': ['PENDING', 'SUCCESS', 'ERROR']},
    'current': FLAG,
    'serial': {**maybe(SERIAL), 'description': 'The newest that was seen there.'},
    'expected_serial': SERIAL,
    'diverged': {**FLAG, 'description': 'It serves other contents under its serial.'},
    'last_error': maybe(TEXT),
    'reason': REASON,
    'attempts': COUNT,
    'next_attempt_at': _TIME,
    'deadline_at': _TIME,
    'plan_id': {**maybe(TEXT), 'description': 'A plan that waits for approval.'},
    'created_at': _TIME,
    'updated_at': _TIME,
    'state_of': {**TEXT, 'description': 'Where it stands, in words.'},
    'what_to_do': maybe(TEXT),
}
_EXPLANATION = {
    'zone_id': ID,
    'zone_name': TEXT,
    'status': _STATUS,
    'action': _ACTION,
    'serial': SERIAL,
    'reported_serial': {**maybe(SERIAL), 'description': 'The newest that the pool agreed on.'},
    'changed_at': {**_TIME, 'description': 'When the zone got its serial.'},
    'converged_at': {**_TIME, 'description': 'When the pool first agreed on it.'},
    'request_id': {**maybe(TEXT), 'description': 'Of the request that gave it its serial.'},
    'also_notifies': {'type': 'array', 'items': TEXT,
                      'description': 'Who is notified of each change besides the servers; it is not checked whether '
                                     'they heed it.'},
    'findings': {'type': 'array', 'description': 'What audits found of it lately, the newest first.',
                 'items': _object(FINDING)},
    'summary': {**TEXT, 'description': 'Where the zone stands, in one sentence.'},
    'threshold_percentage': {'type': ['integer', 'null']},
    'needed': _KNOWN,
    'current': COUNT,
    'total': _KNOWN,
    'degraded': {**FLAG, 'description': 'ACTIVE, and not on every server that counts.'},
    'lacking': {**maybe(TEXT), 'description': 'What the consensus lacks, in one sentence.'},
    'servers': {'type': 'array', 'items': _object(_ON_SERVER)},
    'secondary': maybe(SECONDARY),
    'former_pool': maybe(_FORMER_POOL),
    'advice': {'type': 'array', 'items': TEXT, 'description': 'What to do, a sentence each.'},
    'links': {'type': 'object', 'additionalProperties': {'type': 'string'}},
}
_RECORDSET_ON_SERVER = {
    'id': ID,
    'name': TEXT,
    'state': _STATE,
    'counts': FLAG,
    'serial': {**maybe(SERIAL), 'description': 'The newest that was seen there.'},
    'served': FLAG,
}
_RECORDSET_SERVERS = {
    'zone_id': ID,
    'zone_name': TEXT,
    'recordset_id': ID,
    'name': TEXT,
    'type': TEXT,
    'serial': {**SERIAL, 'description': 'At which the recordset was changed last.'},
    'status': _STATUS,
    'action': _ACTION,
    'needed': _KNOWN,
    'total': _KNOWN,
    'current': COUNT,
    'servers': {'type': 'array', 'items': _object(_RECORDSET_ON_SERVER)},
    'links': {'type': 'object', 'additionalProperties': {'type': 'string'}},
}
SCHEMAS: dict[str, Schema] = {
    'ZoneExplanation': _object(_EXPLANATION),
    'RecordSetServers': _object(_RECORDSET_SERVERS),
}


class StatusReader:
    """Reads the state of zones from Central."""

    def __init__(self, central: Central, storage: Storage | None = None) -> None:
        self.central = central
        self._storage = storage

    def shown(self, context: Context, domain: Domain, base: str, pool: Pool | None = None) -> Json:
        """As :func:`designate_pool.api.views.designate.zone_servers` shows it."""
        servers = self.central.find_servers(context, domain.pool_name)
        rows = self.central.server_statuses(context, domain.id)
        parked = self.central.find_plans(context, PageRequest({'domain_id': domain.id, 'state': PlanState.PARKED.value},
                                         sort_key='created_at', sort_dir='asc'))
        refreshed = None
        if domain.is_secondary and self._storage is not None:
            refreshed = self._storage.read(secondary_zones.get, domain.id)
        return designate.zone_servers(domain, servers, rows, pool or self.central.get_pool(context, domain.pool_id),
                                      base,
                                      {plan.server_id: plan.id for plan in parked
                                       if plan.expires_at is None or plan.expires_at > utcnow()}, refreshed)

    def pools(self, context: Context) -> list[Pool]:
        """All pools, by name."""
        pools: list[Pool] = []
        while page := self.central.find_pools(context, marker=pools[-1].id if pools else None, limit=_PAGE):
            pools += page
            if len(page) < _PAGE:
                break
        return pools

    def pool_of_server(self, context: Context, server_id: str) -> str:
        """The name of the pool that a server belongs to.

        :raises ServerNotFound: when no pool has it
        """
        for pool in self.pools(context):
            if any(server.id == server_id for server in self.central.find_servers(context, pool.name)):
                return pool.name
        raise ServerNotFound(server=server_id)

    def explained(self, context: Context, domain: Domain, base: str) -> Json:
        """The state of the zone in sentences."""
        pool = self.central.get_pool(context, domain.pool_id)
        return explain.explain(self.shown(context, domain, base, pool), {
            'changed_at': designate.moment(domain.changed_at),
            'converged_at': designate.moment(domain.converged_at),
            'request_id': domain.request_id or None,
            'also_notifies': list(pool.also_notifies),
            'former_pool': None if domain.former_pool_id is None else {
                'name': domain.former_pool_name, 'until': designate.moment(domain.former_until)},
            'findings': [] if self._storage is None else [
                shown_finding(finding)
                for finding in self._storage.read(audit_findings.of_domain, domain.id, FINDINGS)],
        }, utcnow())


class ZoneExplanationResource:
    def __init__(self, status_reader: StatusReader) -> None:
        self._status_reader = status_reader

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        request.query(req, {})
        domain = own_domain(self._status_reader.central, requester(req), zone_id)
        answer(resp, self._status_reader.explained(requester(req), domain, req.prefix))


class RecordSetServersResource:
    """
    :param storage: None where the API has no database
    """

    def __init__(self, status_reader: StatusReader, storage: Storage | None) -> None:
        self._status_reader = status_reader
        self._storage = storage

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> None:
        request.query(req, {})
        storage = available(self._storage)
        central = self._status_reader.central
        domain = own_domain(central, requester(req), zone_id)
        recordset = central.get_recordset(requester(req), zone_id, recordset_id)
        # The SOA is not stored as a record: it changes with the zone.
        newest = storage.read(dashboard.newest_serial, recordset_id, domain.serial)
        state = ZoneState(domain, central.find_servers(requester(req), domain.pool_name),
                          central.server_statuses(requester(req), zone_id),
                          central.get_pool(requester(req), domain.pool_id))
        shown = propagation.recordset_servers(domain, recordset, domain.serial if newest is None else newest, state)
        zone = designate.zone_address(zone_id, req.prefix)
        answer(resp, {
            **shown,
            'zone_id': dashed(zone_id),
            'recordset_id': dashed(recordset_id),
            'servers': [{**server, 'id': dashed(server['id'])} for server in shown['servers']],
            'links': {'self': f'{zone}/recordsets/{dashed(recordset_id)}/servers', 'zone': zone},
        })
