"""``/v2/pools/{pool_id}/audits``: the audits of a pool and what they found."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import NamedTuple

import falcon

from designate_pool.api.auth.identity import pool_requester
from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, show_all
from designate_pool.api.schema.answers import (COUNT, FLAG, ID, MOMENT, SECONDS, TEXT, AnswerField, AnswerForm, Json,
                                               ListAnswer, choice, maybe, one)
from designate_pool.api.schema.operation import OPERATOR, Operations
from designate_pool.model import Audit, Counts, utcnow
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import audit_findings


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
    'zones': COUNT.of('counts.domains'),
    **{name: COUNT.of(f'counts.{name}') for name in ('pairs', 'asked', 'unanswered', 'findings')},
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
AUDITS = ListAnswer('Audits', 'audits', AUDIT)
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
FINDINGS = ListAnswer('AuditFindings', 'findings', FINDING)
OPERATIONS = Operations('audits')


@OPERATIONS.add('GET', '/v2/pools/{pool_id}/audits',
                'Show when all zones of a pool were last audited on all servers, and what was found', OPERATOR,
                {200: AUDITS})
def list_audits(api: Api, req: falcon.Request, resp: falcon.Response, pool_id: str) -> Json:
    request.query(req)
    pool = api.central.get_pool(requester(req), pool_id)
    return show_all(req, api.storage.read(sweeps.of_pool, pool.name))


@OPERATIONS.add('GET', '/v2/pools/{pool_id}/audits/findings',
                'List what audits of a pool found lately, and how it was repaired', OPERATOR, {200: FINDINGS},
                query={'limit': request.PAGING['limit']})
def list_audit_findings(api: Api, req: falcon.Request, resp: falcon.Response, pool_id: str) -> Json:
    limit = request.query(req).get('limit', SOME)
    pool = api.central.get_pool(requester(req), pool_id)
    return show_all(req, api.storage.read(audit_findings.of_pool, pool.name, limit, pool_requester(req).scope))
