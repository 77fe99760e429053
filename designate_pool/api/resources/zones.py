"""``/v2/zones``."""

from __future__ import annotations

import dataclasses
import itertools
import json
import operator
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple
from urllib.parse import urlencode

import falcon

from designate_pool.api.auth.identity import check_rule, zone_creator
from designate_pool.api.http import request
from designate_pool.api.http.envelope import requester
from designate_pool.api.resources.base import Api, calls, lists, show_page
from designate_pool.api.resources.zone_imports_exports import send_version
from designate_pool.api.schema import request_fields
from designate_pool.api.schema.answers import (ABSENT, ACTION, CHANGE_LINK, COUNT, FLAG, ID, LOCK, MOMENT, RELEASE,
                                               SERIAL, STATUS, TEXT, TEXT_BY_NAME, TEXTS, VERSIONED, WAITS_FOR,
                                               AnswerField, AnswerForm, Json, ListAnswer, choice, inline, many, maybe,
                                               member, moment, nullable, rows, zone_path)
from designate_pool.api.schema.operation import (ADMIN, CREATE_IN_POOL, IS_ADMIN, LOCK_AS_ADMIN, MEMBER, READER,
                                                 Operations)
from designate_pool.api.services.zone_task_store import write_lines
from designate_pool.api.views.zone_servers import masters
from designate_pool.central.signing.zone_signer import SignedZone
from designate_pool.errors import InvalidField
from designate_pool.model import (Action, ChangeKind, Domain, KeyRole, KeyState, RecordChange, SigningKey, SigningState,
                                  ZoneHead, ZoneRecord, dashed)
from designate_pool.protocol import soa_rdata
from designate_pool.protocol.names_and_rdata import text_of_wire
from designate_pool.storage import queries

#: Says that a zone may be deleted though it is shared with other projects.
DELETE_SHARES = 'X-Designate-Delete-Shares'
_DELETION = {**request_fields.CONDITION, DELETE_SHARES: request_fields.RequestField(request_fields.flag_word)}
_ONE, _DELETED = '/v2/zones/{zone_id}', '/v2/deleted_zones/{deleted_zone_id}'
_VERSION = f'{_ONE}/versions/{{at}}'
#: Recordsets that differ between two versions which are shown.
_MOST_CHANGED = 10_000
_NAME_AND_TYPE = {name: request_fields.RECORDSET_FILTERS[name] for name in ('name', 'type')}


class _KeyRow(NamedTuple):
    key: SigningKey
    step: Any


def _keys(zone: SignedZone) -> list[_KeyRow]:
    """The keys of a signed zone, each with what is next for it."""
    steps = {step.former.id: step for step in reversed(zone.steps) if step.former is not None}
    return [_KeyRow(key, steps[key.id]) for key in sorted(zone.keys, key=operator.attrgetter('role.value'))
            if key.id in steps]


ZONE = AnswerForm('Zone', {
    'id': ID,
    'name': TEXT.of('shown_name'),
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
    'changed_at': maybe(MOMENT).about('When it got the serial of its contents.'),
    'converged_at': maybe(MOMENT).about('When the pool agreed on that serial; null before.'),
    'shared': FLAG.about('Whether it is shared with other projects.'),
    **LOCK,
    'locked_recordsets': COUNT,
    'freeze': WAITS_FOR,
    'release': RELEASE,
    'requires_approval': FLAG.about('Whether its changes wait for approval, also where those of its pool do not.'),
}, {'self': lambda domain: zone_path(domain.id), **CHANGE_LINK}, 'change', has_etag=True)
ZONES = ListAnswer('Zones', 'zones', ZONE)
DELETED_ZONE = AnswerForm('DeletedZone', {
    **{name: field for name, field in ZONE.fields.items() if name != 'links'},
    'deleted_at': MOMENT.about('When its deletion began.'),
    'kept_until': MOMENT.about('Until when it can be restored.'),
}, {'self': lambda domain: _DELETED.format(deleted_zone_id=dashed(domain.id))})
DELETED_ZONES = ListAnswer('DeletedZones', 'deleted_zones', DELETED_ZONE)
#: They are given, or left out.
_RECORDS = TEXTS.of(lambda version: ABSENT)
VERSION = AnswerForm('ZoneVersion', {
    'number': COUNT.about('Orders the versions of a zone.'),
    'serial': SERIAL,
    'former_serial': SERIAL.about('The serial of the version before.'),
    'created_at': MOMENT,
    'kind': member(ChangeKind).about('By what the zone was changed.'),
    'user': TEXT.of('actor.user').about('Who changed it: the owner of the token, or a service.'),
    'project_id': maybe(TEXT).of(lambda version: version.actor.project_id or None),
    'request_id': maybe(TEXT).of(lambda version: version.request_id or None),
    'address': maybe(TEXT).about('Of the client; administrators alone see it.'),
    'client': maybe(TEXT).about('Its User-Agent; administrators alone see it.'),
    'added': COUNT.about('How many records were added.'),
    'approved_by': maybe(TEXT).of(lambda version: version.actor.approved_by or None).about(
        'Who approved the change; null where nobody had to.'),
    'removed': COUNT.of('gone').about('How many records were removed.'),
    'reason': maybe(TEXT).about('Of who served it though its pool was frozen; null for others.'),
    'added_records': _RECORDS.about('Of the name that was asked for, as in a zone file.'),
    'removed_records': _RECORDS,
}, None, 'added_records', 'removed_records')
VERSIONS = ListAnswer('ZoneVersions', 'versions', VERSION)
ZONE_AT = AnswerForm('ZoneAtVersion', {'id': ID.of('domain_id'), 'name': TEXT, 'email': TEXT, 'ttl': COUNT,
                                       'serial': SERIAL, 'soa': TEXT.of(lambda head: soa_rdata.text(
                                           head, ''.join(head.name_servers[:1])))})
_RECORDSET = {'name': TEXT, 'type': TEXT, 'records': TEXTS, 'ttl': maybe(COUNT)}
RECORDSETS_AT = ListAnswer('RecordSetsAtVersion', 'recordsets', AnswerForm('RecordSetAtVersion', _RECORDSET))
DIFFERENCE = AnswerForm('ZoneDifference', {
    'from_serial': SERIAL,
    'to_serial': SERIAL,
    'changes': many(inline(AnswerForm('', {
        **_RECORDSET, 'former_records': TEXTS.about('Those at the first version; none for a recordset that is new.'),
        'former_ttl': maybe(COUNT)}))).about('The recordsets that differ, and the SOA first.'),
})
REVERT = AnswerForm('ZoneRevert', {
    'serial': SERIAL.about('Of the zone; a revert with another one is refused.'),
    'to_serial': SERIAL.about('The older serial whose contents the zone gets.'),
    'changes': many(inline(AnswerForm('', {
        'name': TEXT, 'type': TEXT, 'records': TEXTS.about('What the recordset gets; none for one that is deleted.'),
        'ttl': maybe(COUNT), 'present_records': TEXTS.of('former_records').about('What it has; none for a new one.'),
        'present_ttl': maybe(COUNT).of('former_ttl')}))),
    'unchanged': rows({'name': TEXT, 'type': TEXT, 'why': TEXT}),
})
_SIGNING = f'{_ONE}/dnssec'
ZONE_SIGNING = AnswerForm('ZoneSigning', {
    'zone_id': ID.of('domain.id'),
    'zone_name': TEXT.of('domain.shown_name'),
    'state': member(SigningState).of('state.state').about('How far the signing of the zone has come.'),
    'since': MOMENT.of('state.since'),
    'policy': TEXT.of('state.policy'),
    'algorithm': COUNT.of('state.algorithm').about('Of the keys, its number.'),
    'denial': choice('NSEC', 'NSEC3').of('state.denial'),
    'waits_for': maybe(TEXT).of('state.why').about('What the next step waits for; null for nothing, or for time.'),
    'resign_at': maybe(MOMENT).of('state.resign_at').about('When signatures are renewed next.'),
    'ds': TEXTS.about('The DS records that the parent is to have; none while it is to have none.'),
    'ds_seen': AnswerField({'type': 'object', 'additionalProperties': nullable(TEXTS.schema)}).of(
        lambda zone: {server: None if ds is None else list(ds) for server, (_, ds) in zone.state.ds_seen.items()}
    ).about('The DS records that servers of the parent had; null for one that did not answer.'),
    'skipped': TEXT_BY_NAME.of(lambda zone: dict(zone.state.skipped)).about(
        'Servers that no key waits for, and why not.'),
    'keys': many(inline(AnswerForm('', {
        'id': ID.of('key.id'),
        'role': member(KeyRole).of('key.role'),
        'tag': COUNT.of('key.tag'),
        'state': member(KeyState).of('key.state'),
        'since': maybe(MOMENT).of('step.since'),
        'next_at': maybe(MOMENT).of('step.at').about('When its state changes next; null when that is not known.'),
        'waits_for': maybe(TEXT).of(lambda row: row.step.waits_for or None),
        'dnskey': TEXT.of(lambda row: text_of_wire('DNSKEY', row.key.public)),
    }))).of(_keys),
}, {'self': lambda zone: f'{zone_path(zone.domain.id)}/dnssec', 'zone': lambda zone: zone_path(zone.domain.id)})
OPERATIONS = Operations('zones')
OPERATIONS.add('GET', '/v2/zones', 'List zones', READER, {200: ZONES}, 'list_zones', query={
    **request_fields.ZONE_FILTERS, 'own': request_fields.RequestField(request_fields.one_of('true', 'false'))},
               is_list=True)(lists(lambda central: central.find_domains))
OPERATIONS.add('GET', _ONE, 'Show a zone', READER, {200: ZONE}, 'show_zone')(calls(lambda central: central.get_domain))
OPERATIONS.add('POST', f'{_ONE}/tasks/continue_release', 'Have a staged release go on; one that failed begins again',
               ADMIN, {202: ZONE}, 'continue_release', headers=request_fields.CONDITION)(
    calls(lambda central: central.frozen_pools.continue_release))
OPERATIONS.add('POST', f'{_ONE}/tasks/abort_release', 'Give all servers the contents before a staged release', ADMIN,
               {202: ZONE}, 'abort_release', headers=request_fields.CONDITION)(
    calls(lambda central: central.abort_release))
OPERATIONS.add('POST', f'{_ONE}/tasks/unfreeze', 'Serve the changes of a zone that wait as its pool is frozen', ADMIN,
               {202: ZONE}, 'unfreeze_zone', body=request_fields.UNFREEZE, headers=request_fields.CONDITION)(
    calls(lambda central: central.frozen_pools.release))
OPERATIONS.add('POST', f'{_DELETED}/tasks/restore', 'Restore a deleted zone', MEMBER, {202: ZONE}, 'restore_zone',
               has_location=True)(calls(lambda central: central.restore_domain, zone_creator))
OPERATIONS.add('DELETE', _DELETED, 'Delete a deleted zone for good', MEMBER, {204: None}, 'purge_zone')(
    calls(lambda central: central.purge_domain))
OPERATIONS.add('POST', f'{_ONE}/tasks/xfr', 'Refresh a secondary zone from its masters now', MEMBER, {202: ZONE},
               'xfr_zone')(calls(lambda central: central.refresh_domain))
OPERATIONS.add('POST', _SIGNING, 'Have a zone signed', MEMBER, {202: ZONE_SIGNING}, 'sign_zone', 'zone_signing', body={
    'policy': request_fields.RequestField(request_fields.some_text, example='default')}, body_optional=True)(
    calls(lambda central: central.dnssec.enable))
OPERATIONS.add('POST', f'{_SIGNING}/tasks/roll', 'Have a new key follow one of a signed zone', MEMBER,
               {202: ZONE_SIGNING}, 'roll_zone_key', 'zone_signing', body={'role': request_fields.RequestField(
                   request_fields.one_of(*(role.value for role in KeyRole)), required=True)})(
    calls(lambda central: central.dnssec.roll))
OPERATIONS.add('POST', f'{_SIGNING}/tasks/confirm_ds', 'Say that all servers of the parent have the DS, or none has',
               MEMBER, {202: ZONE_SIGNING}, 'confirm_zone_ds', 'zone_signing', body={
                   'present': request_fields.RequestField(request_fields.flag, required=True)})(
    calls(lambda central: central.dnssec.confirm_ds))
# Without a reason the keys wait for the server again.
OPERATIONS.add('POST', f'{_SIGNING}/tasks/skip_server', 'Have the keys of a zone wait no more for a server, or again',
               ADMIN, {202: ZONE_SIGNING}, 'skip_zone_server', 'zone_signing', body={
                   'server': request_fields.RequestField(request_fields.some_text, required=True),
                   'reason': request_fields.RequestField(request_fields.some_text, example='it is being replaced')})(
    calls(lambda central: central.dnssec.skip_server))


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


@OPERATIONS.add('PATCH', _ONE, "Change a zone's email, TTL, description or masters", MEMBER, {202: ZONE},
                body=request_fields.ZONE_UPDATE, headers=request_fields.CONDITION)
def update_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    values = request.changes(req, lambda: ZONE.show(api.own_domain(requester(req), zone_id), req.prefix))
    domain = api.central.update_domain(requester(req), zone_id, values)
    resp.set_header('ETag', domain.etag)
    shown = ZONE.show(domain, req.prefix)
    # As in Designate, also while the servers are still to create it.
    return shown | ({'action': Action.UPDATE.value} if shown['action'] != Action.NONE else {})


@OPERATIONS.add('DELETE', _ONE, 'Delete a zone', MEMBER, {202: ZONE}, headers=_DELETION)
def delete_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain:
    return api.central.delete_domain(requester(req), zone_id, delete_shares=request.flag(req, DELETE_SHARES))


@OPERATIONS.add('POST', f'{_ONE}/project', 'Give a zone to a project', ADMIN, {200: ZONE, 202: ZONE},
                headers=request_fields.CONDITION, body={
    'project_id': request_fields.RequestField(request_fields.project, required=True, example='alpha')})
def give_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain:
    body = request.body(req, of=lambda: api.own_domain(requester(req), zone_id))
    api.check_project(req, body['project_id'])
    return api.central.give_domain(requester(req), zone_id, body['project_id'])


@OPERATIONS.add('POST', f'{_ONE}/tasks/unlock', 'Unlock a zone', MEMBER, {200: ZONE}, name='unlock_zone',
                headers=request_fields.CONDITION)
@OPERATIONS.add('POST', f'{_ONE}/tasks/lock', 'Lock a zone, so that nothing of it is changed', MEMBER, {200: ZONE},
                body=request_fields.LOCK, headers=request_fields.CONDITION)
def lock_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain:
    reason = None if req.context.operation.body is None else request.body(
        req, of=lambda: api.own_domain(requester(req), zone_id))['reason']
    return api.central.set_lock(requester(req), zone_id, reason, req.context.allows(LOCK_AS_ADMIN))


@OPERATIONS.add('POST', f'{_ONE}/tasks/pool_move', 'Move a zone to another pool', ADMIN, {202: ZONE},
                headers=request_fields.CONDITION, body={
    'pool_id': request_fields.RequestField(request_fields.identifier)}, body_optional=True)
def move_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain:
    body = request.body(req, of=lambda: api.central.get_domain(requester(req), zone_id))
    return api.central.move_domain(requester(req), zone_id, body.get('pool_id'))


@OPERATIONS.add('POST', f'{_ONE}/tasks/abandon', 'Delete a zone here and leave it on its servers', ADMIN,
                {204: None, 202: ZONE}, headers=_DELETION)
def abandon_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> None:
    api.central.abandon_domain(requester(req), zone_id, delete_shares=request.flag(req, DELETE_SHARES))


@OPERATIONS.add('GET', _SIGNING, 'Show how far the signing of a zone has come, its keys, and their DS', READER,
                {200: ZONE_SIGNING}, tag='zone_signing')
def show_zone_signing(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> SignedZone:
    request.query(req)
    return api.central.dnssec.show(requester(req), zone_id)


@OPERATIONS.add('DELETE', _SIGNING, 'Have a zone unsigned, once nothing relies on its signatures', MEMBER,
                {202: ZONE_SIGNING, 204: None}, tag='zone_signing',
                query={'force': request_fields.RequestField(request_fields.flag_word)})
def unsign_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> SignedZone | None:
    """With *force* the parent is not waited for: resolvers that have its DS refuse the zone."""
    force = request.query(req).get('force') or ''
    signed = api.central.dnssec.disable(requester(req), zone_id, force.lower() == 'true')
    if signed is None:
        resp.status = 204
    return signed


@OPERATIONS.add('GET', '/v2/deleted_zones', 'List deleted zones that can be restored', READER, {200: DELETED_ZONES},
                query=request_fields.ZONE_FILTERS, is_list=True)
def list_deleted_zones(api: Api, req: falcon.Request, resp: falcon.Response) -> Json:
    return show_page(req, api.central.find_deleted_domains, show=lambda domain, base: _deleted(api, domain, base))


@OPERATIONS.add('GET', _DELETED, 'Show a deleted zone', READER, {200: DELETED_ZONE})
def show_deleted_zone(api: Api, req: falcon.Request, resp: falcon.Response, deleted_zone_id: str) -> Json:
    return _deleted(api, api.central.get_deleted_domain(requester(req), deleted_zone_id), req.prefix)


def _deleted(api: Api, domain: Domain, base: str) -> Json:
    return DELETED_ZONE.show(domain, base, kept_until=moment(api.central.kept_until(domain)))


@OPERATIONS.add('GET', f'{_ONE}/versions', 'List the versions of a zone, newest first', READER, {200: VERSIONS},
                query={'limit': request.PAGING['limit'], 'before': request_fields.RequestField(request_fields.number),
                       **_NAME_AND_TYPE})
def list_zone_versions(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Json:
    """Who changed a zone, when, and by what: also of a deleted zone, and only of the time when the requester had it.

    With a name, and a type, those versions that changed such records.
    """
    query = request.query(req)
    limit, before, name = query.get('limit') or request.PAGE, query.get('before'), query.get('name')
    if name is None:
        versions = api.central.find_versions(requester(req), zone_id, limit + 1, before)
        records: Iterable[Json] = itertools.repeat({})
    else:
        changes = api.storage.read(queries.recordset_versions, requester(req), zone_id, name, query.get('type'),
                                   limit + 1, before)
        versions = [version for version, _ in changes]
        records = ({'removed_records': list(map(_line, gone)), 'added_records': list(map(_line, added))}
                   for _, (gone, added) in changes)
    links = {'self': req.url}
    if len(versions) > limit:
        links['next'] = f'{req.prefix}{req.path}?{urlencode({**req.params, "before": versions[limit - 1].number})}'
    is_admin = req.context.allows(IS_ADMIN)
    return {'links': links, 'versions': [
        VERSION.show(version, address=is_admin and version.actor.address or None,
                     client=is_admin and version.actor.client or None, **of_name)
        for version, of_name in zip(versions[:limit], records)]}


def _line(record: ZoneRecord) -> str:
    name, rtype, ttl, wire = record
    return f'{name} {"" if ttl is None else f"{ttl} "}{rtype} {text_of_wire(rtype, wire)}'


@OPERATIONS.add('GET', _VERSION, 'Show a zone as it was', READER, {200: ZONE_AT})
def show_zone_version(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str, at: str) -> ZoneHead:
    """A version is named by its serial, or by a time: in the form of ISO 8601, or an age such as 2h or 3d."""
    return api.storage.read(queries.use_rows_at, requester(req), zone_id, *api.central.version_at('at', at),
                            lambda head, rows: head)


@OPERATIONS.add('GET', f'{_VERSION}/recordsets', 'List the recordsets that a zone had', READER, {200: RECORDSETS_AT},
                query=_NAME_AND_TYPE, errors=(413,))
def list_zone_version_recordsets(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str, at: str) -> None:
    """All of them on one page; the version is named as that of a zone."""
    query = request.query(req)

    def write(file: IO[bytes], head: ZoneHead, rows: Iterator[queries.ZoneRow]) -> None:
        shown = (json.dumps({'name': name, 'type': rtype, 'ttl': ttl, 'records': [row[3] for row in same]})
                 for (name, rtype, ttl), same in itertools.groupby(rows, operator.itemgetter(0, 1, 2))
                 if query.get('type') in (None, rtype))
        entries = (f', {text}' if number else text for number, text in enumerate(shown))
        links = json.dumps({'self': req.url})
        write_lines(file, itertools.chain(['{"recordsets": ['], entries, [f'], "links": {links}}}']))

    send_version(api, req, resp, zone_id, at, write, falcon.MEDIA_JSON, query.get('name'))


@OPERATIONS.add('GET', f'{_VERSION}/diff/{{to}}', 'Show what differs between two versions of a zone', READER,
                {200: DIFFERENCE}, errors=(413,))
def show_zone_difference(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str, at: str, to: str) -> Json:
    """TTLs are those that are served; versions are named as that of a zone."""
    first, _ = api.central.version_at('at', at)
    former, head, changes = api.storage.read(queries.changes_between, requester(req), zone_id, first,
                                             *api.central.version_at('to', to), _MOST_CHANGED)
    return {'from_serial': former.serial, 'to_serial': head.serial, 'changes': list(map(dataclasses.asdict, changes))}


@OPERATIONS.add('POST', f'{_ONE}/changes', 'Make many changes of a zone under one new serial', MEMBER, {202: ZONE},
                body=request_fields.ZONE_CHANGES, headers=request_fields.CONDITION)
def change_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain:
    """All of the changes are made or none."""
    body = request.body(req, api.whole_zone_limit, of=lambda: api.central.get_domain(requester(req), zone_id))
    changes = [RecordChange(change['name'], change['type'], tuple(change['records']), change.get('ttl'))
               for change in request_fields.in_turns(body['changes'])]
    return api.central.apply_changes(requester(req), zone_id, changes, body.get('serial'))


@OPERATIONS.add('POST', f'{_ONE}/tasks/revert', 'Give a zone the contents that it had', MEMBER,
                {202: ZONE, 200: REVERT}, body=request_fields.ZONE_REVERT, headers=request_fields.CONDITION)
def revert_zone(api: Api, req: falcon.Request, resp: falcon.Response, zone_id: str) -> Domain | Json:
    """With ``dry_run`` the changes are answered (200), and not made."""
    body = request.body(req, of=lambda: api.central.get_domain(requester(req), zone_id))
    is_dry = bool(body.get('dry_run'))
    revert = api.central.plan_revert(requester(req), zone_id, body['to'], body.get('name'), body.get('type'), is_dry)
    if is_dry:
        resp.status = 200
        return REVERT.show(revert)
    return api.central.revert_domain(requester(req), zone_id, dataclasses.replace(
        revert, serial=body.get('serial', revert.serial)))
