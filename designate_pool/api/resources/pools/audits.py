"""``/v2/pools/{pool_id}/audits``: the audits of a pool and what they found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import falcon

from designate_pool.api.auth.identity import pool_requester
from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import CentralResource, available
from designate_pool.api.schema.operation import OPERATOR, ApiOperation, Schema
from designate_pool.api.schema.response_types import COUNT, MOMENT, links, maybe, ref, shape
from designate_pool.api.views import designate
from designate_pool.central.service import Central
from designate_pool.model import Audit, AuditFinding, Counts, dashed, utcnow
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import audit_findings
from designate_pool.storage.sql.database import Storage

#: Findings that are listed unless the query has a limit.
SOME = 100
OPERATIONS = (
    ApiOperation('list_audits', 'GET', '/v2/pools/{pool_id}/audits',
                 'Show when all zones of a pool were last audited on all servers, and what was found', OPERATOR,
                 {200: 'Audits'}),
    ApiOperation('list_audit_findings', 'GET', '/v2/pools/{pool_id}/audits/findings',
                 'List what audits of a pool found lately, and how it was repaired', OPERATOR, {200: 'AuditFindings'},
                 query={'limit': request.PAGING['limit']}),
)
_COUNTS = {'domains': COUNT, 'pairs': COUNT, 'asked': COUNT, 'unanswered': COUNT, 'findings': COUNT,
           'coverage': {'type': 'number', 'minimum': 0, 'maximum': 1}}
_ROUND = {'started_at': MOMENT, 'seconds': {'type': 'number', 'minimum': 0}, **_COUNTS}
FINDING: dict[str, Schema] = {
    'id': {'type': 'string', 'format': 'uuid'},
    'request_id': {'type': 'string', 'description': 'The request id under which the logs show what is done about it.'},
    'found_at': MOMENT,
    'kind': {'type': 'string', 'enum': [sweep.value for sweep in sweeps.SHOWN]},
    'zone_id': {'type': 'string', 'format': 'uuid'},
    'zone_name': {'type': 'string'},
    'server_id': {'type': 'string', 'format': 'uuid'},
    'server_name': {'type': 'string'},
    'found': {'type': 'string', 'description': 'In words.'},
    'done': {'type': 'string', 'description': 'What was started to repair it.'},
    'mended': {'type': ['boolean', 'null'], 'description': 'Whether the server has the zone right now; null where it '
                                                           'should not have it any more.'},
}
SCHEMAS: dict[str, Schema] = {
    'AuditRound': shape(_ROUND),
    'Audit': shape({
        'kind': {'type': 'string', 'enum': [sweep.value for sweep in sweeps.SHOWN]},
        'last': {'anyOf': [ref('AuditRound'), {'type': 'null'}]},
        'now': {'anyOf': [ref('AuditRound'), {'type': 'null'}]},
        'next_at': maybe(MOMENT),
    }),
    'AuditFinding': shape(FINDING),
    'AuditFindings': shape({'findings': {'type': 'array', 'items': ref('AuditFinding')}, 'links': links('self')}),
    'Audits': shape({'audits': {'type': 'array', 'items': ref('Audit')}, 'links': links('self')}),
}


class _PoolAudits(CentralResource):
    def __init__(self, central: Central, storage: Storage | None) -> None:
        super().__init__(central)
        self._storage = storage

    def read(self, req: falcon.Request, pool_id: str, query: Callable[..., Any], *arguments: Any) -> Any:
        """Read the answer to *query* about a pool."""
        pool = self._central.get_pool(requester(req), pool_id)
        return available(self._storage).read(query, pool.name, *arguments)


class AuditsResource(_PoolAudits):
    def on_get(self, req: falcon.Request, resp: falcon.Response, pool_id: str) -> None:
        request.query(req, {})
        pool_sweeps = self.read(req, pool_id, sweeps.of_pool)
        answer(resp, {'audits': [_shown(sweep) for sweep in pool_sweeps], 'links': {'self': req.url}})


class AuditFindingsResource(_PoolAudits):
    def on_get(self, req: falcon.Request, resp: falcon.Response, pool_id: str) -> None:
        limit = request.query(req, {'limit': request.PAGING['limit']}).get('limit', SOME)
        findings = self.read(req, pool_id, audit_findings.of_pool, limit, pool_requester(req).scope)
        answer(resp, {'findings': [shown_finding(finding) for finding in findings], 'links': {'self': req.url}})


def shown_finding(found: AuditFinding) -> designate.Json:
    """A finding as the API answers it."""
    return {'id': dashed(found.id), 'request_id': found.request_id,
            'found_at': designate.moment(found.created_at),
            'kind': found.kind.value, 'zone_id': dashed(found.domain_id), 'zone_name': found.name,
            'server_id': dashed(found.server_id), 'server_name': found.label, 'found': found.what,
            'done': found.done, 'mended': found.mended}


def _shown(audit: Audit) -> designate.Json:
    now = utcnow()
    last = present = None
    if audit.last is not None and audit.last_started_at is not None:
        last = {'started_at': designate.moment(audit.last_started_at), 'seconds': round(audit.last_seconds or 0.0, 3),
                **_counted(audit.last)}
    if audit.is_under_way(now):
        present = {'started_at': designate.moment(audit.started_at),
                   'seconds': round((now - audit.started_at).total_seconds(), 3), **_counted(audit.now)}
    return {'kind': audit.kind.value, 'last': last, 'now': present, 'next_at': designate.moment(audit.next_at)}


def _counted(counts: Counts) -> designate.Json:
    return {'domains': counts.domains, 'pairs': counts.pairs, 'asked': counts.asked, 'unanswered': counts.unanswered,
            'findings': counts.findings, 'coverage': round(counts.coverage, 4)}
