"""The state of a zone and of its recordsets on each server, its explanation, and ``/v2/zones/{zone_id}/wait``."""

from __future__ import annotations

import contextlib
import time

import falcon

from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.http.limits import PLACE, Place
from designate_pool.api.resources.audits import FINDING
from designate_pool.api.resources.base import Api
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ACTION, COUNT, FLAG, FREEZE, ID, MOMENT, RELEASE, SECONDS, SERIAL,
                                               STATUS, TEXT, TEXTS, WAITS_FOR, AnswerForm, Json, choice, inline, many,
                                               maybe, one, zone_path)
from designate_pool.api.schema.operation import READER, Operations
from designate_pool.api.services import wait_verdict
from designate_pool.api.services.wait_verdict import WaitTarget, ZoneState
from designate_pool.api.views import explain
from designate_pool.api.views.zone_servers import (RECORDSET_SERVERS, ZONE_SERVER, ZONE_SERVERS, recordset_servers,
                                                   zone_servers)
from designate_pool.errors import DomainNotFound, InvalidField, OverQuota
from designate_pool.model import (AuditKind, ChangeKind, Context, Domain, PageRequest, PlanState, Pool, Reason,
                                  ServerState, SigningState, Status)
from designate_pool.protocol.rules import Level, Violation
from designate_pool.storage.operations import sweeps
from designate_pool.storage.reporting import audit_findings, dashboard
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.zones import plans, secondary_zones

#: How many of the newest findings of audits about a zone are shown.
FINDINGS = 5
#: Reasons of servers that may not have taken the zone for what is in it.
_NOT_TAKEN = {reason.value for reason in (Reason.STALE, Reason.NOT_AUTH, Reason.NO_ZONE, Reason.SERVFAIL)}
#: Violations of rules that one answer has.
VIOLATIONS = 1000
MOST_SECONDS = 300
DEFAULT_SECONDS = 30.0
_COUNTS = ('threshold_percentage', 'needed', 'current', 'total')
REPORTED = maybe(SERIAL).of('reported_serial').about('The newest that the pool agreed on.')
QUERY = {
    'serial': request_fields.RequestField(request_fields.serial),
    'servers': request_fields.RequestField(request_fields.number_from(1, 9999)),
    'timeout': request_fields.RequestField(request_fields.seconds_up_to(MOST_SECONDS)),
}
ZONE_WAIT = AnswerForm('ZoneWait', {
    'zone_id': ID.of('id'),
    'zone_name': TEXT.of('shown_name'),
    'serial': SERIAL.about('What was waited for.'),
    'zone_serial': SERIAL.of('serial').about("The zone's own by now."),
    'reported_serial': REPORTED,
    'status': STATUS,
    'action': ACTION,
    'needed': maybe(COUNT).about('How many servers were waited for; null where the threshold is not known.'),
    'current': COUNT.about('How many of the servers that count have what was waited for.'),
    'servers_current': TEXTS.about('Their names, for the owner of the zone.'),
    'done': FLAG,
    'timed_out': FLAG,
    'failed': FLAG.about('The pool says ERROR, or the zone is being deleted meanwhile.'),
    'freeze': maybe(inline(FREEZE)).about('The freeze of the pool that ended the wait, as what was waited for waits.'),
    'seconds': SECONDS.about('How long the wait took.'),
}, description='How a wait ended. One that ended with none of done, failed, timed_out and freeze does not exist.')
EXPLANATION = AnswerForm('ZoneExplanation', {
    'zone_id': ID.of('id'),
    'zone_name': TEXT.of('shown_name'),
    'status': STATUS,
    'action': ACTION,
    'serial': SERIAL,
    'reported_serial': REPORTED,
    'changed_at': maybe(MOMENT).about('When the zone got the serial of its contents.'),
    'converged_at': maybe(MOMENT).about('When the pool first agreed on it.'),
    'request_id': maybe(TEXT).of(lambda domain: domain.request_id or None).about(
        'Of the request that gave it its serial.'),
    'changed_by': maybe(TEXT).about('Who gave it its contents.'),
    'also_notifies': TEXTS.about('Who is notified of each change besides the servers; it is not checked whether they '
                                 'heed it.'),
    'findings': many(one(FINDING)).about('What audits found of it lately and is not repaired, the newest first.'),
    'freeze': WAITS_FOR,
    'release': RELEASE,
    'summary': TEXT.about('Where the zone stands, in one sentence.'),
    **{name: ZONE_SERVERS.fields[name] for name in _COUNTS},
    'degraded': FLAG.about('ACTIVE, and not on every server that counts.'),
    'lacking': maybe(TEXT).about('What the consensus lacks, in one sentence.'),
    'servers': many(inline(AnswerForm('', {
        **ZONE_SERVER.fields,
        'state_of': TEXT.about('Where it stands, in words.'),
        'what_to_do': maybe(TEXT),
    }))),
    'secondary': ZONE_SERVERS.fields['secondary'],
    'former_pool': maybe(inline(AnswerForm('', {
        'name': TEXT.of('former_pool_name'),
        'until': maybe(MOMENT).of('former_until').about('Null while its own pool has not served it yet.'),
    }, description='The pool that the zone was moved from, whose servers still keep it.'))).of(
        lambda domain: None if domain.former_pool_id is None else domain),
    'advice': TEXTS.about('What to do, a sentence each.'),
}, {'self': lambda domain: f'{zone_path(domain.id)}/explain',
    'servers': lambda domain: f'{zone_path(domain.id)}/servers',
    'zone': lambda domain: zone_path(domain.id)})
VIOLATION = AnswerForm('Violation', {
    'rule': TEXT.of('rule.id'),
    'level': choice('error', 'server', 'warning').of(lambda violation: violation.rule.level.value),
    'source': TEXT.of('rule.source'),
    'name': TEXT,
    'type': TEXT,
    'why': TEXT,
})
VALIDATION = AnswerForm('ZoneValidation', {
    'zone_id': ID.of('id'),
    'zone_name': TEXT.of('shown_name'),
    'violations': many(one(VIOLATION)).about(f'At most {VIOLATIONS}.'),
}, {'self': lambda domain: f'{zone_path(domain.id)}/validation', 'zone': lambda domain: zone_path(domain.id)})
OPERATIONS = Operations('zone_servers')


@OPERATIONS.add('GET', '/v2/zones/{zone_id}/servers', 'Show the state of a zone on each server', READER,
                {200: ZONE_SERVERS}, tag='zones')
def list_zone_servers(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    domain = api.own_domain(requester(req), zone_id)
    return _show_servers(api, requester(req), domain, req.prefix, api.central.get_pool(requester(req), domain.pool_id))


@OPERATIONS.add('GET', '/v2/zones/{zone_id}/explain', 'Explain in words why a zone is not ACTIVE', READER,
                {200: EXPLANATION})
def explain_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    request.query(req)
    return explain_domain(api, requester(req), api.own_domain(requester(req), zone_id), req.prefix)


@OPERATIONS.add('GET', '/v2/zones/{zone_id}/validation', 'Show what the rules of validation have against a zone',
                READER, {200: VALIDATION})
def validate_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    request.query(req)
    domain = api.own_domain(requester(req), zone_id)
    return VALIDATION.show(domain, req.prefix, violations=[
        VIOLATION.show(violation) for violation in api.central.validate_domain(requester(req), domain.id)[:VIOLATIONS]])


@OPERATIONS.add('GET', '/v2/zones/{zone_id}/recordsets/{recordset_id}/servers',
                'Show which servers serve a recordset as it is now', READER, {200: RECORDSET_SERVERS})
def list_recordset_servers(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str,
                           recordset_id: str) -> Json:
    request.query(req)
    context = requester(req)
    domain = api.own_domain(context, zone_id)
    recordset = api.central.get_recordset(context, zone_id, recordset_id)
    # The SOA is not stored as a record: it changes with the zone.
    newest = api.storage.read(dashboard.newest_serial, recordset_id, domain.serial)
    state = ZoneState(domain, api.central.find_servers(context, domain.pool_name),
                      api.central.server_statuses(context, zone_id), api.central.get_pool(context, domain.pool_id))
    return recordset_servers(domain, recordset, domain.serial if newest is None else newest, state, req.prefix)


@OPERATIONS.add('GET', '/v2/zones/{zone_id}/wait',
                'Wait until enough servers serve a serial of a zone, or until a zone that is being deleted is gone',
                READER, {200: ZONE_WAIT}, query=QUERY, tag='zone_wait')
def wait_for_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    began = time.monotonic()
    parameters, context = request.query(req), requester(req)
    domain = _get_or_deleted(api, context, zone_id)
    target = WaitTarget(zone_id, domain.serial if domain.is_going else parameters.get('serial', domain.least_serial),
                        parameters.get('servers'), domain.is_going)
    if target.servers is not None:
        count = sum(server.state not in (ServerState.DRAINING, ServerState.REMOVED)
                    for server in api.central.find_servers(context, domain.pool_name))
        if target.servers > count:
            raise InvalidField(field='servers', why=f'the pool of {domain.name} has no more than {count} servers')
    place: Place | None = req.env.get(PLACE)
    if place is not None:
        place.assign_to(None)
    state, verdict = api.watcher.wait(target, parameters.get('timeout', DEFAULT_SECONDS),
                                      req.env.get('waitress.client_disconnected', lambda: False), context.project_id)
    now = state.domain or domain
    status = Status.DELETED if state.domain is None else now.status
    servers = wait_verdict.current(target, state)
    needed = target.servers or wait_verdict.needed(len(wait_verdict.counting(state)), state.pool)
    return ZONE_WAIT.show(now, serial=target.serial, status=status.value, needed=needed, current=len(servers),
                          servers_current=[server.label for server in servers if context.sees(now.project_id)],
                          done=verdict.done, timed_out=not verdict.over, failed=verdict.failed,
                          freeze=FREEZE.show(now.waits_for) if verdict.waits else None,
                          seconds=round(time.monotonic() - began, 3))


def _get_or_deleted(api: Api, context: Context, domain_id: str) -> Domain:
    """The zone that the requester may see, also if it has been deleted just now."""
    try:
        return api.central.get_domain(context, domain_id)
    except DomainNotFound:
        last = api.watcher.state_of(domain_id).domain
        if last is None or last.status is not Status.DELETED or not context.sees(last.project_id):
            raise
        return last


def _show_servers(api: Api, context: Context, domain: Domain, base: str, pool: Pool) -> Json:
    """As :func:`designate_pool.api.views.zone_servers.zone_servers` shows it."""
    servers = api.central.find_servers(context, domain.pool_name)
    rows = api.central.server_statuses(context, domain.id)
    parked = api.central.find_plans(context, PageRequest({'domain_id': domain.id, 'state': PlanState.PARKED.value},
                                                         sort_key='created_at', sort_dir='asc'))
    now = api.storage.now()
    plan_ids = {plan.server_id: plan.id for plan in parked if plan.expires_at is None or plan.expires_at > now}
    refreshed = api.storage.read(secondary_zones.get, domain.id) if domain.is_secondary else None
    audits = {audit.kind: audit for audit in api.storage.read(sweeps.of_pool, domain.pool_name)}
    return zone_servers(domain, servers, rows, pool, base, plan_ids, refreshed, audits.get(AuditKind.SERIALS))


def explain_domain(api: Api, context: Context, domain: Domain, base: str) -> Json:
    """The state of the zone in sentences."""
    pool = api.central.get_pool(context, domain.pool_id)
    shown = _show_servers(api, context, domain, base, pool)
    findings = api.storage.read(audit_findings.of_domain, domain.id, FINDINGS)
    services = api.central.find_service_statuses(context, PageRequest({'pool_name': domain.pool_name}))
    culprits: list[Violation] = []
    if any(server['status'] == 'ERROR' and server['reason'] in _NOT_TAKEN for server in shown['servers']):
        with contextlib.suppress(OverQuota):  # of zones that are too large to be looked at
            culprits = [violation for violation in api.central.validate_domain(context, domain.id)
                        if violation.rule.level is not Level.WARNING]
    sentences = _locked(domain), _signing_held(api, domain), _waiting(api, context, domain)
    return EXPLANATION.show(domain, base,
                            **explain.explain(shown, api.storage.now(), explain.missing_services(services),
                                              [str(violation) for violation in culprits],
                                              ' '.join(filter(None, sentences)),
                                              {finding.label: finding.what for finding in reversed(findings)
                                               if finding.mended is False
                                               and finding.done == audit_findings.UNREPAIRED}, pool.probe_interval),
                            **{name: shown[name] for name in (*_COUNTS, 'secondary')},
                            changed_by=_changed_by(api, context, domain), also_notifies=list(pool.also_notifies),
                            findings=[FINDING.show(finding) for finding in findings if not finding.mended])


def _changed_by(api: Api, context: Context, domain: Domain) -> str | None:
    """Who gave a domain its contents; None also if that was in the time of another project."""
    return next((str(version.actor) for version in api.central.find_versions(context, domain.id, 5)
                 if version.kind is not ChangeKind.SIGNING and (
                     version.serial != version.former_serial
                     or version.kind not in (ChangeKind.API, ChangeKind.OWNER, ChangeKind.RELEASE))), None) or None


def _waiting(api: Api, context: Context, domain: Domain) -> str:
    waiting = api.storage.read(plans.waiting, domain.id, api.storage.now()) if domain.needs_approval else ()
    count = sum(context.sees(plan.project_id or '') or context.sees(plan.asking_project_id or '') for plan in waiting)
    return f'It has {count} change{"s" * (count > 1)} that wait{"s" * (count == 1)} for approval.' if count else ''


def _signing_held(api: Api, domain: Domain) -> str:
    state = api.storage.read(zone_signing.state_of, domain.id) if domain.is_signed else None
    return '' if state is None or state.state is not SigningState.HELD else (
        f'Its signing is held, so that it is neither changed nor are its signatures renewed: {state.why}.')


def _locked(domain: Domain) -> str:
    if domain.lock_reason is None:
        return ''
    return f'It is locked{" by an administrator" if domain.locked_by_admin else ""}: {domain.lock_reason}'
