"""The state of a zone and of its recordsets on each server, its explanation, and ``/v2/zones/{zone_id}/wait``."""

from __future__ import annotations

import time
from collections.abc import Callable

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import answer, requester
from designate_pool.api.http.limits import PLACE, Place
from designate_pool.api.resources.audits import FINDING
from designate_pool.api.resources.base import available, own_domain
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (COUNT, FLAG, ID, SECONDS, SERIAL, TEXT, TEXT_BY_NAME, TEXTS, AnswerField,
                                               AnswerForm, Json, inline, many, maybe, moment, shape)
from designate_pool.api.schema.operation import READER, ApiOperation
from designate_pool.api.services import wait_verdict
from designate_pool.api.services.wait_verdict import WaitTarget, WaitVerdict, ZoneState
from designate_pool.api.services.zone_watcher import ZoneWatcher
from designate_pool.api.views import explain
from designate_pool.api.views.zone_servers import (ANY_ACTION, ANY_STATE, ANY_STATUS, KNOWN, RECORDSET_SERVERS,
                                                   SECONDARY, TIME, ZONE_SERVER, recordset_servers, zone_servers)
from designate_pool.central.service import Central
from designate_pool.errors import DomainNotFound, InvalidField, ServerNotFound, ServiceUnavailable, TooManyWaits
from designate_pool.model import Context, Domain, PageRequest, PlanState, Pool, ServerState, Status, dashed, utcnow
from designate_pool.storage.reporting import audit_findings, dashboard
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import secondary_zones

#: How many of the newest findings of audits about a zone are shown.
FINDINGS = 5
_PAGE = 1000
MOST_SECONDS = 300
DEFAULT_SECONDS = 30.0
#: Seconds after which to ask again when too many are waiting.
RETRY_AFTER = 5

QUERY = {
    'serial': request_fields.RequestField(request_fields.serial),
    'servers': request_fields.RequestField(request_fields.number_from(1, 9999)),
    'timeout': request_fields.RequestField(request_fields.seconds_up_to(MOST_SECONDS)),
}
ZONE_WAIT = AnswerForm('ZoneWait', {
    'zone_id': ID,
    'zone_name': TEXT,
    'serial': SERIAL.about('What was waited for.'),
    'zone_serial': SERIAL.about("The zone's own by now."),
    'reported_serial': AnswerField({'type': ['integer', 'null']}).about('The newest that the pool agreed on.'),
    'status': AnswerField({'enum': [status.value for status in Status]}),
    'action': ANY_ACTION,
    'needed': AnswerField({'type': ['integer', 'null'], 'minimum': 1}).about(
        'How many servers were waited for; null where the threshold is not known.'),
    'current': COUNT.about('How many of the servers that count have what was waited for.'),
    'servers_current': TEXTS.about('Their names.'),
    'done': FLAG,
    'timed_out': FLAG,
    'failed': FLAG.about('The pool says ERROR, or the zone is being deleted meanwhile.'),
    'seconds': SECONDS.about('How long the wait took.'),
}, is_open=True, description='How a wait ended. One that ended with none of done, failed and timed_out does not exist.')
EXPLANATION = AnswerForm('ZoneExplanation', {
    'zone_id': ID,
    'zone_name': TEXT,
    'status': ANY_STATUS,
    'action': ANY_ACTION,
    'serial': SERIAL,
    'reported_serial': maybe(SERIAL).about('The newest that the pool agreed on.'),
    'changed_at': TIME.about('When the zone got its serial.'),
    'converged_at': TIME.about('When the pool first agreed on it.'),
    'request_id': maybe(TEXT).about('Of the request that gave it its serial.'),
    'also_notifies': TEXTS.about('Who is notified of each change besides the servers; it is not checked whether they '
                                 'heed it.'),
    'findings': many(AnswerField(shape(
        {name: field.schema for name, field in FINDING.fields.items()}, is_open=True))).about(
        'What audits found of it lately, the newest first.'),
    'summary': TEXT.about('Where the zone stands, in one sentence.'),
    'threshold_percentage': AnswerField({'type': ['integer', 'null']}),
    'needed': KNOWN,
    'current': COUNT,
    'total': KNOWN,
    'degraded': FLAG.about('ACTIVE, and not on every server that counts.'),
    'lacking': maybe(TEXT).about('What the consensus lacks, in one sentence.'),
    'servers': many(inline(AnswerForm('', {
        **ZONE_SERVER.fields,
        'port': AnswerField({'type': 'integer', 'minimum': 1, 'maximum': 65535}),
        'state': ANY_STATE,
        'state_since': TIME,
        'action': ANY_ACTION,
        'status': AnswerField({'enum': ['PENDING', 'SUCCESS', 'ERROR']}),
        'serial': maybe(SERIAL).about('The newest that was seen there.'),
        'expected_serial': SERIAL,
        'diverged': FLAG.about('It serves other contents under its serial.'),
        **dict.fromkeys(('next_attempt_at', 'deadline_at', 'created_at', 'updated_at'), TIME),
        'plan_id': maybe(TEXT).about('A plan that waits for approval.'),
        'state_of': TEXT.about('Where it stands, in words.'),
        'what_to_do': maybe(TEXT),
    }, is_open=True))),
    'secondary': maybe(inline(SECONDARY)),
    'former_pool': maybe(inline(AnswerForm(
        '', {'name': TEXT, 'until': TIME.about('Null while its own pool has not served it yet.')}, is_open=True,
        description='The pool that the zone was moved from, whose servers still keep it.'))),
    'advice': TEXTS.about('What to do, a sentence each.'),
    'links': TEXT_BY_NAME,
}, is_open=True)
OPERATIONS = (
    ApiOperation('explain_zone', 'GET', '/v2/zones/{zone_id}/explain', 'Explain in words why a zone is not ACTIVE',
                 READER, {200: EXPLANATION}),
    ApiOperation('list_recordset_servers', 'GET', '/v2/zones/{zone_id}/recordsets/{recordset_id}/servers',
                 'Show which servers serve a recordset as it is now', READER, {200: RECORDSET_SERVERS}),
    ApiOperation('wait_for_zone', 'GET', '/v2/zones/{zone_id}/wait',
                 'Wait until enough servers serve a serial of a zone, or until a zone that is being deleted is gone',
                 READER, {200: ZONE_WAIT}, query=QUERY, tag='zone_wait'),
)


class StatusReader:
    """Reads the state of zones from Central."""

    def __init__(self, central: Central, storage: Storage | None = None) -> None:
        self.central = central
        self._storage = storage
        self._now = utcnow if storage is None else storage.now

    def shown(self, context: Context, domain: Domain, base: str, pool: Pool | None = None) -> Json:
        """As :func:`designate_pool.api.views.zone_servers.zone_servers` shows it."""
        servers = self.central.find_servers(context, domain.pool_name)
        rows = self.central.server_statuses(context, domain.id)
        parked = self.central.find_plans(context, PageRequest({'domain_id': domain.id, 'state': PlanState.PARKED.value},
                                         sort_key='created_at', sort_dir='asc'))
        refreshed = None
        if domain.is_secondary and self._storage is not None:
            refreshed = self._storage.read(secondary_zones.get, domain.id)
        plan_ids = {plan.server_id: plan.id for plan in parked
                    if plan.expires_at is None or plan.expires_at > self._now()}
        return zone_servers(domain, servers, rows, pool or self.central.get_pool(context, domain.pool_id), base,
                            plan_ids, refreshed)

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
            'changed_at': moment(domain.changed_at),
            'converged_at': moment(domain.converged_at),
            'request_id': domain.request_id or None,
            'also_notifies': list(pool.also_notifies),
            'former_pool': None if domain.former_pool_id is None else {
                'name': domain.former_pool_name, 'until': moment(domain.former_until)},
            'findings': [] if self._storage is None else [
                FINDING.show(finding)
                for finding in self._storage.read(audit_findings.of_domain, domain.id, FINDINGS)],
        }, self._now())


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
        serial = domain.serial if newest is None else newest
        answer(resp, recordset_servers(domain, recordset, serial, state, req.prefix))


class ZoneWaitResource:
    """
    :param watcher: None where the API has no database
    """

    def __init__(self, status_reader: StatusReader, watcher: ZoneWatcher | None) -> None:
        self._central = status_reader.central
        self._watcher = watcher

    def on_get(self, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
        began = time.monotonic()
        parameters = request.query(req, QUERY)
        watcher = available(self._watcher)
        domain = self._domain(watcher, requester(req), zone_id)
        self._refuse_too_many(requester(req), domain, parameters.get('servers'))
        deletion = domain.is_going
        target = WaitTarget(zone_id, domain.serial if deletion else parameters.get('serial', domain.serial),
                            parameters.get('servers'), deletion)
        place: Place | None = req.env.get(PLACE)
        if place is not None:
            place.leave()
        try:
            state, verdict = watcher.wait(target, parameters.get('timeout', DEFAULT_SECONDS), _is_gone(req),
                                          requester(req).project_id)
        except (TooManyWaits, ServiceUnavailable):
            resp.set_header('Retry-After', str(RETRY_AFTER))
            raise
        answer(resp, self._shown(target, domain, state, verdict, time.monotonic() - began))

    def _domain(self, watcher: ZoneWatcher, context: Context, domain_id: str) -> Domain:
        """The zone that the requester may see, also if it has been deleted just now."""
        try:
            return self._central.get_domain(context, domain_id)
        except DomainNotFound:
            last = watcher.state_of(domain_id).domain
            if last is None or last.status is not Status.DELETED or not context.sees(last.project_id):
                raise
            return last

    def _refuse_too_many(self, context: Context, domain: Domain, wanted: int | None) -> None:
        if wanted is None:
            return
        servers = [server for server in self._central.find_servers(context, domain.pool_name)
                   if server.state not in (ServerState.DRAINING, ServerState.REMOVED)]
        if wanted > len(servers):
            raise InvalidField(field='servers',
                               why=f'the pool of {domain.name} has no more than {len(servers)} servers')

    def _shown(self, wanted: WaitTarget, before: Domain, state: ZoneState, verdict: WaitVerdict,
               waited: float) -> Json:
        domain = state.domain or before
        have = wait_verdict.current(wanted, state)
        gone = state.domain is None or domain.status is Status.DELETED
        return {
            'zone_id': dashed(domain.id),
            'zone_name': domain.name,
            'serial': wanted.serial,
            'zone_serial': domain.serial,
            'reported_serial': domain.reported_serial,
            'status': Status.DELETED.value if gone else domain.status.value,
            'action': domain.action.value,
            'needed': wanted.servers or wait_verdict.needed(state),
            'current': len(have),
            'servers_current': [server.label for server in have],
            'done': verdict.done,
            'timed_out': not verdict.over,
            'failed': verdict.failed,
            'seconds': round(waited, 3),
        }


def _is_gone(req: falcon.Request) -> Callable[[], bool]:
    asked: Callable[[], bool] = req.env.get('waitress.client_disconnected', lambda: False)
    return asked
