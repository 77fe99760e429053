"""Where a zone and its recordsets stand on each server, and why."""

from __future__ import annotations

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, asker
from designate_pool.api.resources.pools.audits import FINDING, shown_finding
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.operation import READER, ApiOperation, Schema
from designate_pool.api.schema.response_types import REASON
from designate_pool.api.services.wait_verdict import ZoneState
from designate_pool.api.views import designate, explain, propagation
from designate_pool.api.views.designate import Json, dashed
from designate_pool.errors import ServerNotFound, ServiceUnavailable
from designate_pool.model import Context, Domain, PlanState, Pool, utcnow
from designate_pool.rpc.central import CentralClient
from designate_pool.storage.reporting import audit_findings, dashboard
from designate_pool.storage.sql.database import Storage

#: Findings of audits that are told of a zone, the newest.
FINDINGS = 5
OPERATIONS = (
    ApiOperation('explain_zone', 'GET', '/v2/zones/{zone_id}/explain', 'Explain in words why a zone is not ACTIVE',
                 READER,
                 {200: 'ZoneExplanation'}),
    ApiOperation('list_recordset_servers', 'GET', '/v2/zones/{zone_id}/recordsets/{recordset_id}/servers',
                 'Show which servers serve a recordset as it is now', READER, {200: 'RecordSetServers'}),
)
_PAGE = 1000
_ID = {'type': 'string', 'format': 'uuid'}
_TEXT = {'type': 'string'}
_TIME = {'type': ['string', 'null'], 'description': 'In UTC.'}
_SERIAL = {'type': 'integer', 'minimum': 0, 'maximum': 4294967295}
_SEEN = {'type': ['integer', 'null'], 'minimum': 0, 'maximum': 4294967295}
_COUNT = {'type': 'integer', 'minimum': 0}
_KNOWN = {'type': ['integer', 'null'], 'minimum': 0, 'description': 'Null where the threshold is not known.'}
_STATUS = {'enum': ['PENDING', 'ACTIVE', 'ERROR', 'DELETED']}
_ACTION = {'enum': ['NONE', 'CREATE', 'UPDATE', 'DELETE']}
_STATE = {'enum': ['joining', 'active', 'maintenance', 'draining', 'removed']}
_ON_SERVER = {
    'id': _ID,
    'name': _TEXT,
    'driver': _TEXT,
    'host': _TEXT,
    'port': {'type': 'integer', 'minimum': 1, 'maximum': 65535},
    'state': _STATE,
    'state_since': _TIME,
    'counts': {'type': 'boolean'},
    'action': _ACTION,
    'status': {'enum': ['PENDING', 'SUCCESS', 'ERROR']},
    'current': {'type': 'boolean'},
    'serial': {**_SEEN, 'description': 'The newest that was seen there.'},
    'expected_serial': _SERIAL,
    'diverged': {'type': 'boolean', 'description': 'It serves other contents under its serial.'},
    'last_error': {'type': ['string', 'null']},
    'reason': REASON,
    'attempts': _COUNT,
    'next_attempt_at': _TIME,
    'deadline_at': _TIME,
    'plan_id': {'type': ['string', 'null'], 'description': 'A plan that waits for approval.'},
    'created_at': _TIME,
    'updated_at': _TIME,
    'state_of': {'type': 'string', 'description': 'Where it stands, in words.'},
    'what_to_do': {'type': ['string', 'null']},
}
_EXPLAINED = {
    'zone_id': _ID,
    'zone_name': _TEXT,
    'status': _STATUS,
    'action': _ACTION,
    'serial': _SERIAL,
    'reported_serial': {**_SEEN, 'description': 'The newest that the pool agreed on.'},
    'changed_at': {**_TIME, 'description': 'When the zone got its serial.'},
    'converged_at': {**_TIME, 'description': 'When the pool first agreed on it.'},
    'request_id': {'type': ['string', 'null'], 'description': 'Of the request that gave it its serial.'},
    'also_notifies': {'type': 'array', 'items': _TEXT, 'description': 'Who is notified of each change besides the '
                                                                      'servers; whether they heed it is not asked.'},
    'findings': {'type': 'array', 'description': 'What audits found of it lately, the newest first.',
                 'items': {'type': 'object', 'required': list(FINDING), 'properties': FINDING}},
    'summary': {'type': 'string', 'description': 'Where the zone stands, in one sentence.'},
    'threshold_percentage': {'type': ['integer', 'null']},
    'needed': _KNOWN,
    'current': _COUNT,
    'total': _KNOWN,
    'degraded': {'type': 'boolean', 'description': 'ACTIVE, and not on every server that counts.'},
    'lacking': {'type': ['string', 'null'], 'description': 'What the consensus lacks, in one sentence.'},
    'servers': {'type': 'array', 'items': {'type': 'object', 'required': list(_ON_SERVER), 'properties': _ON_SERVER}},
    'advice': {'type': 'array', 'items': _TEXT, 'description': 'What to do, a sentence each.'},
    'links': {'type': 'object', 'additionalProperties': {'type': 'string'}},
}
_SERVED = {
    'id': _ID,
    'name': _TEXT,
    'state': _STATE,
    'counts': {'type': 'boolean'},
    'serial': {**_SEEN, 'description': 'The newest that was seen there.'},
    'served': {'type': 'boolean'},
}
_SPREAD = {
    'zone_id': _ID,
    'zone_name': _TEXT,
    'recordset_id': _ID,
    'name': _TEXT,
    'type': _TEXT,
    'serial': {**_SERIAL, 'description': 'At which the recordset was changed last.'},
    'status': _STATUS,
    'action': _ACTION,
    'needed': _KNOWN,
    'total': _KNOWN,
    'current': _COUNT,
    'servers': {'type': 'array', 'items': {'type': 'object', 'required': list(_SERVED), 'properties': _SERVED}},
    'links': {'type': 'object', 'additionalProperties': {'type': 'string'}},
}
SCHEMAS: dict[str, Schema] = {
    'ZoneExplanation': {'type': 'object', 'required': list(_EXPLAINED), 'properties': _EXPLAINED},
    'RecordSetServers': {'type': 'object', 'required': list(_SPREAD), 'properties': _SPREAD},
}


class StatusReader:
    """What is asked of Central to tell where a zone stands."""

    def __init__(self, central: CentralClient, storage: Storage | None = None) -> None:
        self.central = central
        self._storage = storage

    def shown(self, context: Context, domain: Domain, base: str, pool: Pool | None = None) -> Json:
        """As :func:`designate_pool.api.views.designate.zone_servers` shows it."""
        servers = self.central.find_servers(context, domain.pool_name)
        rows = self.central.server_statuses(context, domain.id)
        parked = self.central.find_plans(context, {'domain_id': domain.id, 'state': PlanState.PARKED.value},
                                         sort_key='created_at', sort_dir='asc')
        return designate.zone_servers(domain, servers, rows, pool or self.central.get_pool(context, domain.pool_id),
                                      base,
                                      {each.server_id: each.id for each in parked
                                       if each.expires_at is None or each.expires_at > utcnow()})

    def pools(self, context: Context) -> list[Pool]:
        """All pools, by name."""
        found: list[Pool] = []
        while page := self.central.find_pools(context, marker=found[-1].id if found else None, limit=_PAGE):
            found += page
            if len(page) < _PAGE:
                break
        return found

    def pool_of_server(self, context: Context, server_id: str) -> str:
        """The name of the pool that a server is of.

        :raises ServerNotFound: when it is of none
        """
        for pool in self.pools(context):
            if any(each.id == server_id for each in self.central.find_servers(context, pool.name)):
                return pool.name
        raise ServerNotFound(server=server_id)

    def explained(self, context: Context, domain: Domain, base: str) -> Json:
        """Where the zone stands, in words."""
        pool = self.central.get_pool(context, domain.pool_id)
        return explain.explain(self.shown(context, domain, base, pool), {
            'changed_at': designate.moment(domain.changed_at),
            'converged_at': designate.moment(domain.converged_at),
            'request_id': domain.request_id or None,
            'also_notifies': list(pool.also_notifies),
            'findings': [] if self._storage is None else [
                shown_finding(each) for each in self._storage.read(audit_findings.of_domain, domain.id, FINDINGS)],
        }, utcnow())


class ZoneExplanationResource:
    def __init__(self, gatherer: StatusReader) -> None:
        self._gatherer = gatherer

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        request.query(req, {})
        domain = self._gatherer.central.get_domain(asker(req), request_fields.identifier('zone_id', zone_id))
        answer(resp, self._gatherer.explained(asker(req), domain, req.prefix))


class RecordSetServersResource:
    """
    :param storage: None where the API has no database to look at
    """

    def __init__(self, gatherer: StatusReader, storage: Storage | None) -> None:
        self._gatherer = gatherer
        self._storage = storage

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str, recordset_id: str) -> None:
        domain_id = request_fields.identifier('zone_id', zone_id)
        found_id = request_fields.identifier('recordset_id', recordset_id)
        request.query(req, {})
        if self._storage is None:
            raise ServiceUnavailable(service='the database', why='this API was given none to look at')
        central = self._gatherer.central
        domain = central.get_domain(asker(req), domain_id)
        found = central.get_recordset(asker(req), domain_id, found_id)
        # The SOA has no record that is kept: it changes with the zone.
        newest = self._storage.read(dashboard.newest_serial, found_id, domain.serial)
        standing = ZoneState(domain, central.find_servers(asker(req), domain.pool_name),
                             central.server_statuses(asker(req), domain_id),
                             central.get_pool(asker(req), domain.pool_id))
        shown = propagation.spread(domain, found, domain.serial if newest is None else newest, standing)
        zone = designate.zone_address(domain_id, req.prefix)
        answer(resp, {
            **shown,
            'zone_id': dashed(domain_id),
            'recordset_id': dashed(found_id),
            'servers': [{**each, 'id': dashed(each['id'])} for each in shown['servers']],
            'links': {'self': f'{zone}/recordsets/{dashed(found_id)}/servers', 'zone': zone},
        })
