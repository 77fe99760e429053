"""Two tenants: a stranger tries every operation of the document on what is another project's, and on names around it.

Nothing that it is answered tells anything of the other's, and nothing of the other's is changed.
"""

from __future__ import annotations

import dataclasses
import itertools
import types
from collections.abc import Iterator, Mapping
from typing import Any

import falcon.testing
import pytest
import sqlalchemy as sa

from designate_pool.api.auth.policy import ALL_PROJECTS
from designate_pool.model import (Action, AuditFinding, AuditKind, Context, Outcome, PageRequest, ServerStatus,
                                  ZoneTask, ZoneTaskKind, ZoneTaskStatus, new_id, utcnow)
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.reporting import audit_findings
from designate_pool.storage.sql import schema
from designate_pool.storage.zones import zone_tasks
from tests.fixtures.api import EVERYBODY, Place, opened, token
from tests.functional.api.test_authorisation import FORBIDDEN, LINES, OPERATIONS, OWN, PAGES, ask, may

ALPHA, BETA = Context(project_id='alpha'), Context(project_id='beta')
#: What the other one's things hold and no request of the stranger does.
SECRETS = ('192.0.2.77', 'only-alpha-knows', 'hostmaster@alpha.example')
#: Roles by which one sees no more than one's project's things, and those that look after the whole pool besides.
TENANTS, KEEPERS = ('guest', 'reader', 'member'), ('operator', 'admin')
TAKEN = 'is not free: it, or one above or below it, is in use.'


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from opened(tmp_path_factory.mktemp('tenants'))


@pytest.fixture
def theirs(place: Place) -> dict[str, str]:
    """Things of the other tenant, with secrets in them."""
    found = place.things('alpha')
    place.central.create_recordset(ALPHA, found['zone_id'], {
        'name': f'only-alpha-knows.{found["zone_name"]}', 'type': 'A', 'records': ['192.0.2.77']})
    place.central.update_domain(ALPHA, found['zone_id'], {'description': 'only-alpha-knows'})
    return found


def rows(place: Place, things: Mapping[str, str]) -> dict[str, list[Any]]:
    """All that the database holds of *things*, by table."""
    words = {things[key] for key in ('zone_id', 'recordset_id', 'import_id', 'export_id', 'plan_id', 'tsigkey_id')}

    def read(tx: Any) -> dict[str, list[Any]]:
        return {table.name: sorted((tuple(row) for row in tx.execute(sa.select(table))
                                    if words.intersection(map(str, row)) or row[0] == 'alpha'), key=repr)
                for table in schema.metadata.sorted_tables}

    return place.storage.read(read)


def refuse(answer: falcon.testing.Result, what: str) -> None:
    assert answer.status_code in (400, 403, 404, 409, 413), f'{what}: {answer.status_code} {answer.text}'
    assert not [each for each in SECRETS if each in answer.text], f'{what}: {answer.text}'


@pytest.mark.parametrize('role', TENANTS + KEEPERS)
def test_no_operation_reads_or_writes_what_is_anothers(place: Place, theirs: dict[str, str], role: str) -> None:
    before = rows(place, theirs)
    assert all(before[name] for name in ('domains', 'recordsets', 'records', 'zone_tasks', 'plans', 'tsigkeys'))
    for operation in OPERATIONS.values():
        line = LINES[operation.name]
        if role in KEEPERS and (line.kind != OWN or operation.name in PAGES):
            continue  # the pool as a whole is theirs to look after
        answer = ask(place, operation, theirs, token('beta', role))
        assert not [each for each in SECRETS if each in answer.text], f'{operation.name}: {answer.text}'
        if line.kind == OWN or not may(role, line):
            expected = 403 if operation.name in FORBIDDEN or not may(role, line) else 404
            assert answer.status_code == expected, f'{operation.name}: {answer.status_code} {answer.text}'
    assert rows(place, theirs) == before


def test_ids_of_two_tenants_in_one_address_lead_nowhere(place: Place, theirs: dict[str, str]) -> None:
    mine = place.things('beta')
    before = rows(place, theirs)
    tried = 0
    for operation in OPERATIONS.values():
        used = [key for key in mine if f'{{{key}}}' in operation.path and key not in ('at', 'to')]
        for chosen in itertools.product((mine, theirs), repeat=len(used)) if len(used) > 1 else ():
            if all(each is mine for each in chosen):
                continue
            mixed = mine | {key: each[key] for key, each in zip(used, chosen, strict=True)}
            refuse(ask(place, operation, mixed, token('beta', 'member')), operation.name)
            tried += 1
    assert tried >= 5 and rows(place, theirs) == before


def test_a_page_begins_behind_nothing_of_anothers(place: Place, theirs: dict[str, str]) -> None:
    mine = place.things('beta')
    for path, key in (('/v2/zones', 'zone_id'), (f'/v2/zones/{mine["zone_id"]}/recordsets', 'recordset_id'),
                      ('/v2/recordsets', 'recordset_id'), ('/v2/zones/tasks/imports', 'import_id'),
                      ('/v2/zones/tasks/exports', 'export_id'),
                      ('/v2/zones/tasks/transfer_requests', 'transfer_request_id')):
        found = {things[key]: place.ask('GET', path, project='beta', params={'marker': things[key]})
                 for things in (mine, theirs)}
        assert found[mine[key]].status_code == 200, path
        assert found[theirs[key]].json['message'] == 'marker: no such id.', path


def test_an_operator_who_may_not_see_all_projects_is_told_no_names(
        place: Place, theirs: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    place.storage.run(audit_findings.add, [AuditFinding(
        new_id(), utcnow(), place.pool.id, AuditKind.SERIALS, theirs['zone_id'], theirs['zone_name'], place.server_id,
        'fake:192.0.2.1:53', 'it serves no such zone', 'renewed')])
    place.storage.run(server_statuses.write, [ServerStatus(
        place.server_id, theirs['zone_id'], Action.CREATE, 1, status=Outcome.ERROR, last_error='refused',
        next_attempt_at=utcnow())], utcnow())
    for path in ('/status', f'/v2/pools/{place.pool.id}/audits/findings', f'/v2/servers/{place.server_id}'):
        assert theirs['zone_name'] in place.ask('GET', path, 'operator', 'beta').text, path
    rules = place.gate._rules
    monkeypatch.setattr(place.gate, '_rules', types.SimpleNamespace(
        allow=lambda rule, identity: rule != ALL_PROJECTS and rules.allow(rule, identity)))
    for path in ('/status', f'/v2/pools/{place.pool.id}/audits/findings', f'/v2/servers/{place.server_id}'):
        assert theirs['zone_name'] not in place.ask('GET', path, 'operator', 'beta', 200).text, path


def test_names_around_anothers_zone_are_refused_in_one_wording(place: Place, theirs: dict[str, str]) -> None:
    name = theirs['zone_name']
    before = rows(place, theirs)
    words = set()
    above = f'above-{name}'
    place.central.create_domain(ALPHA, {'name': f'a.b.{above}', 'email': 'hostmaster@alpha.example'})
    for wanted in (name, f'sub.{name}', f'a.b.{name}', above):
        made = place.ask('POST', '/v2/zones', project='beta',
                         json={'name': wanted, 'email': 'hostmaster@beta.example'})
        assert (made.status_code, made.json['type']) == (
            (409, 'name_taken') if wanted == name else
            (403, 'illegal_parent' if wanted == above else 'illegal_child'))
        words.add(made.json['message'].replace(wanted, 'NAME '))
        taken_in = place.ask(
            'POST', '/v2/zones/tasks/imports', project='beta', content_type='text/dns',
            body=f'$ORIGIN {wanted}\n@ 300 SOA ns1.example.org. h 1 2 3 4 5\nwww 300 A 192.0.2.5\n')
        assert (taken_in.status_code, taken_in.json['status'], taken_in.json['zone_id']) == (202, 'ERROR', None)
        words.add(taken_in.json['message'].replace(wanted, 'NAME '))
    assert words == {f'The name NAME  {TAKEN}'}
    assert rows(place, theirs) == before


def test_one_who_may_asks_for_it_by_name(place: Place, theirs: dict[str, str]) -> None:
    given = {'name': f'sub.{theirs["zone_name"]}', 'email': 'hostmaster@beta.example'}
    for role, headers, status in (('member', {'X-Auth-All-Projects': 'true'}, 403), ('admin', {}, 403),
                                  ('admin', {'X-Auth-All-Projects': 'true'}, 202)):
        place.ask('POST', '/v2/zones', role, 'beta', status, headers, json=given)


def test_an_export_belongs_to_the_project_of_its_zone(place: Place, theirs: dict[str, str]) -> None:
    made = place.ask('POST', f'/v2/zones/{theirs["zone_id"]}/tasks/export', 'admin', 'beta', 202,
                     {'X-Auth-All-Projects': 'true'})
    assert made.json['project_id'] == 'alpha'
    address = f'/v2/zones/tasks/exports/{made.json["id"]}'
    for role in TENANTS + KEEPERS:
        for path in (address, f'{address}/export'):
            refuse(place.ask('GET', path, role, 'beta'), path)
    assert '192.0.2.77' in place.ask('GET', f'{address}/export', 'reader', 'alpha').text


def test_an_export_of_a_zone_that_is_anothers_by_now_cannot_be_fetched(place: Place, theirs: dict[str, str]) -> None:
    task = ZoneTask(new_id(), ZoneTaskKind.EXPORT, project_id='beta', status=ZoneTaskStatus.COMPLETE,
                    domain_id=theirs['zone_id'])
    place.storage.run(zone_tasks.put, task, utcnow())
    refuse(place.ask('GET', f'/v2/zones/tasks/exports/{task.id}/export', 'member', 'beta'), 'fetch')


def test_an_export_of_a_zone_that_is_too_large_cannot_be_fetched(place: Place, theirs: dict[str, str]) -> None:
    """The quota is looked at whenever the file is made."""
    address = f'/v2/zones/tasks/exports/{theirs["export_id"]}/export'
    place.ask('GET', address, 'reader', status=200)
    place.central.set_quotas(Context(project_id='alpha'), 'alpha', {'api_export_size': 1})
    try:
        assert place.ask('GET', address, 'reader', status=413).json['type'] == 'over_quota'
    finally:
        place.central.reset_quotas(Context(project_id='alpha'), 'alpha')


def test_a_zone_that_is_given_away_is_the_others_with_its_exports(place: Place, theirs: dict[str, str]) -> None:
    def give(zone_id: str, project: str, **headers: str) -> falcon.testing.Result:
        return place.ask('POST', f'/v2/zones/{zone_id}/project', 'admin', headers=headers, json={'project_id': project})

    below = place.central.create_domain(ALPHA, {'name': f'sub.{theirs["zone_name"]}', 'email': 'a@example.com'})
    refused = give(below.id, 'beta')
    assert (refused.status_code, refused.json['type']) == (403, 'illegal_child')
    assert give(below.id, 'beta', **{'X-Auth-All-Projects': 'true'}).json['project_id'] == 'beta'
    assert give(below.id, 'alpha', **{'X-Auth-All-Projects': 'true'}).json['project_id'] == 'alpha'
    place.central.delete_domain(ALPHA, below.id)
    given = give(theirs['zone_id'], 'beta')
    assert (given.status_code, given.json['project_id'], given.json['name']) == (200, 'beta', theirs['zone_name'])
    for project, status in (('alpha', 404), ('beta', 200)):
        for path in (f'/v2/zones/{theirs["zone_id"]}', f'/v2/zones/tasks/exports/{theirs["export_id"]}'):
            place.ask('GET', path, 'reader', project, status)
    place.central.set_quotas(EVERYBODY, 'alpha', {'zones': 0})
    full = give(theirs['zone_id'], 'alpha', **{'X-Auth-All-Projects': 'true'})
    assert (full.status_code, full.json['type']) == (413, 'over_quota')
    place.central.reset_quotas(EVERYBODY, 'alpha')


def test_a_transfer_request_shows_others_no_more_than_they_need(place: Place) -> None:
    def look(project: str, role: str, **headers: str) -> dict[str, Any]:
        shown = place.ask('GET', f'/v2/zones/tasks/transfer_requests/{request.id}', role, project, 200, headers)
        return dict(shown.json)

    zone = place.central.create_domain(ALPHA, {'name': 'Offered.Example.', 'email': 'hostmaster@alpha.example'})
    request = place.central.create_transfer_request(ALPHA, zone.id, {'description': 'for you'})
    needed = {'id', 'zone_id', 'zone_name', 'status', 'description', 'links'}
    for role in ('reader', 'member', 'operator', 'admin'):
        assert set(look('beta', role)) == needed
    assert look('beta', 'member')['zone_name'] == request.zone_name == 'Offered.Example.'
    assert request.key not in str(look('beta', 'operator', **{'X-Auth-All-Projects': 'true'}))
    assert look('alpha', 'reader')['key'] is None
    assert look('alpha', 'member')['key'] == request.key
    assert look('beta', 'admin', **{'X-Auth-All-Projects': 'true'})['key'] == request.key
    offered = place.ask('GET', '/v2/zones/tasks/transfer_requests', 'member', 'beta')
    assert 'Offered.Example.' not in offered.text
    refused, accepted = (place.ask('POST', '/v2/zones/tasks/transfer_accepts', project='beta', json={
        'zone_transfer_request_id': request.id, 'key': key}) for key in ('guessed', request.key))
    assert (refused.status_code, refused.json['type']) == (403, 'invalid_key')
    assert (accepted.status_code, accepted.json['status'], accepted.json['project_id']) == (201, 'COMPLETE', 'beta')
    for project, status in (('alpha', 404), ('beta', 200)):
        for path in (f'/v2/zones/{zone.id}', f'/v2/zones/tasks/transfer_accepts/{accepted.json["id"]}'):
            place.ask('GET', path, 'member', project, status)
    place.ask('POST', f'/v2/zones/{zone.id}/tasks/transfer_requests', project='beta', status=201)  # without a body


def test_a_transfer_request_with_a_target_is_shown_to_that_and_to_who_may_create_it(place: Place) -> None:
    def look(project: str, role: str, **headers: str) -> tuple[int, bool]:
        shown = place.ask('GET', f'/v2/zones/tasks/transfer_requests/{request.id}', role, project, headers=headers)
        return shown.status_code, request.key in shown.text

    zone = place.central.create_domain(ALPHA, {'name': 'for-beta.example.', 'email': 'hostmaster@alpha.example'})
    request = place.central.create_transfer_request(ALPHA, zone.id, {'target_project_id': 'beta'})
    assert look('alpha', 'member') == (200, True)
    assert look('beta', 'admin', **{'X-Auth-All-Projects': 'true'}) == (200, True)
    assert look('beta', 'reader') == look('beta', 'member') == (200, False)
    assert look('alpha', 'reader') == (403, False)
    listed = place.ask('GET', '/v2/zones/tasks/transfer_requests', 'reader', 'alpha')
    assert 'for-beta.example.' in listed.text and request.key not in listed.text


def test_without_a_project_nothing_is_seen_unless_it_is_said_to_see_all(place: Place, theirs: dict[str, str]) -> None:
    nobodys = place.central.create_domain(EVERYBODY, {'name': 'nobodys.example.', 'email': 'a@example.com'})
    nobody = Context()
    assert dataclasses.replace(EVERYBODY, all_projects=False) == nobody
    assert place.central.find_domains(nobody) == place.central.find_all_recordsets(nobody) == []
    assert place.central.find_plans(nobody) == []
    for domain_id in (nobodys.id, theirs['zone_id']):
        for work in (place.central.get_domain, place.central.delete_domain, place.central.check_export):
            with pytest.raises(Exception, match='There is no zone'):
                work(nobody, domain_id)
    with pytest.raises(Exception, match='There is no plan'):
        place.central.get_plan(nobody, theirs['plan_id'])
    for kind in ZoneTaskKind:
        assert place.storage.read(zone_tasks.find, kind, PageRequest(), nobody.scope) == []
    assert {each.id for each in place.central.find_domains(EVERYBODY)} >= {nobodys.id, theirs['zone_id']}
    place.central.delete_domain(EVERYBODY, nobodys.id)
