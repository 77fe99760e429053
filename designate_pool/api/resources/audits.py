"""``/v2/pools/{pool_id}/audits``: the audits of a pool and what they found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import falcon

from designate_pool.api.auth.identity import pool_requester
from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.resources.base import CentralResource, available
from designate_pool.api.schema.answers import (COUNT, FLAG, ID, MOMENT, SECONDS, TEXT, AnswerField, AnswerForm, choice,
                                               many, maybe, one)
from designate_pool.api.schema.operation import OPERATOR, ApiOperation
from designate_pool.central.service import Central
from designate_pool.model import Audit, Counts, utcnow
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import audit_findings
from designate_pool.storage.sql.database import Storage


class _Round(NamedTuple):
    started_at: datetime
    seconds: float
    counts: Counts


def _last_round(audit: Audit) -> _Round | None:
    if audit.last is None or audit.last_started_at is None:
        return None
    return _Round(audit.last_started_at, audit.last_seconds or 0.0, audit.last)


def _present_round(audit: Audit) -> _Round | None:
    now = utcnow()
    if not audit.is_under_way(now):
        return None
    return _Round(audit.started_at, (now - audit.started_at).total_seconds(), audit.now)


#: Findings that are listed unless the query has a limit.
SOME = 100
_ROUND = AnswerForm('AuditRound', {
    'started_at': MOMENT,
    'seconds': SECONDS,
    **{name: COUNT.of(f'counts.{name}') for name in ('domains', 'pairs', 'asked', 'unanswered', 'findings')},
    'coverage': AnswerField({'type': 'number', 'minimum': 0, 'maximum': 1}).of(
        lambda sweep: round(sweep.counts.coverage, 4)),
})
_KIND = dataclasses.replace(choice(*(sweep.value for sweep in sweeps.SHOWN)), convert=str)
AUDIT = AnswerForm('Audit', {
    'kind': _KIND,
    'last': maybe(one(_ROUND)).of(_last_round),
    'now': maybe(one(_ROUND)).of(_present_round),
    'next_at': maybe(MOMENT),
})
AUDITS = AnswerForm('Audits', {'audits': many(one(AUDIT))}, {'self': str})
FINDING = AnswerForm('AuditFinding', {
    'id': ID,
    'request_id': TEXT.about('The request id under which the logs show what is done about it.'),
    'found_at': MOMENT.of('created_at'),
    'kind': _KIND,
    'zone_id': ID.of('domain_id'),
    'zone_name': TEXT.of('name'),
    'server_id': ID,
    'server_name': TEXT.of('label'),
    'found': TEXT.of('what').about('In words.'),
    'done': TEXT.about('What was started to repair it.'),
    'mended': maybe(FLAG).about('Whether the server has the zone right now; null where it should not have it any '
                                'more.'),
})
FINDINGS = AnswerForm('AuditFindings', {'findings': many(one(FINDING))}, {'self': str})
OPERATIONS = (
    ApiOperation('list_audits', 'GET', '/v2/pools/{pool_id}/audits',
                 'Show when all zones of a pool were last audited on all servers, and what was found', OPERATOR,
                 {200: AUDITS}),
    ApiOperation('list_audit_findings', 'GET', '/v2/pools/{pool_id}/audits/findings',
                 'List what audits of a pool found lately, and how it was repaired', OPERATOR, {200: FINDINGS},
                 query={'limit': request.PAGING['limit']}),
)


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
        answer(resp, {'audits': [AUDIT.show(sweep) for sweep in pool_sweeps], 'links': {'self': req.url}})


class AuditFindingsResource(_PoolAudits):
    def on_get(self, req: falcon.Request, resp: falcon.Response, pool_id: str) -> None:
        limit = request.query(req, {'limit': request.PAGING['limit']}).get('limit', SOME)
        findings = self.read(req, pool_id, audit_findings.of_pool, limit, pool_requester(req).scope)
        answer(resp, {'findings': [FINDING.show(finding) for finding in findings], 'links': {'self': req.url}})
