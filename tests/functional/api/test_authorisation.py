"""Who may do what to whose: every operation, by every role, on what is one's own and what is another's.

What is expected stands here once more, by hand: an operation that is added needs its line, and one whose role is
changed needs it changed here too.
"""

from __future__ import annotations

import dataclasses
import logging
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import falcon.testing
import pytest

from designate_pool.api import operation_registry
from designate_pool.api.auth.token_file import digest
from designate_pool.api.schema.operation import ApiOperation
from designate_pool.model import Context, dashed, new_id
from tests.fixtures.api import EVERYTHING, ROLES, Place, opened, token

ANYONE, READER, MEMBER, OPERATOR, ADMIN = 'anyone', 'reader', 'member', 'operator', 'admin'
#: What is a project's own, what is everybody's who may, and lists in which each sees its own.
OWN, POOLS, LIST = 'own', 'pools', 'list'
OPERATIONS = {each.name: each for each in operation_registry.operations()}


@dataclasses.dataclass(frozen=True)
class Line:
    """
    :ivar role: the least that may
    :ivar kind: of what it is about
    :ivar body: JSON, in which ``{name}`` stands for a new name, ``{zone_id}`` and the like for things
    :ivar status: of the first answer to one who may; None for the one that the operation declares
    """

    role: str
    kind: str = POOLS
    body: Any = None
    status: int | None = None
    query: Mapping[str, str] = dataclasses.field(default_factory=dict)
    text: str | None = None


A = {'name': 'new.{zone_name}', 'type': 'A', 'records': ['192.0.2.9']}
LINES = {
    'list_versions': Line(ANYONE, status=200), 'show_version': Line(ANYONE), 'show_document': Line(ANYONE),
    'show_health': Line(ANYONE, status=200), 'show_limits': Line(READER),
    'list_zones': Line(READER, LIST),
    'create_zone': Line(MEMBER, LIST, {'name': '{name}', 'email': 'hostmaster@example.com'}),
    'show_zone': Line(READER, OWN), 'update_zone': Line(MEMBER, OWN, {'ttl': 300}), 'delete_zone': Line(MEMBER, OWN),
    'give_zone': Line(ADMIN, OWN, {'project_id': '{project_id}'}),
    'move_zone': Line(ADMIN, OWN, {'pool_id': '{other_pool_id}'}),
    'abandon_zone': Line(ADMIN, OWN), 'lock_zone': Line(MEMBER, OWN, {'reason': 'x'}), 'unlock_zone': Line(MEMBER, OWN),
    'lock_recordset': Line(MEMBER, OWN, {'reason': 'x'}), 'unlock_recordset': Line(MEMBER, OWN),
    'unfreeze_zone': Line(ADMIN, OWN, {'reason': 'x'}, status=409),  # nothing waits
    **dict.fromkeys(('continue_release', 'abort_release'), Line(ADMIN, OWN, status=409)),
    **dict.fromkeys(('list_zone_versions', 'show_zone_version', 'list_zone_version_recordsets', 'export_zone_version',
                     'show_zone_difference'), Line(READER, OWN)),
    'revert_zone': Line(MEMBER, OWN, {'to': '0s'}),
    'show_zone_signing': Line(READER, OWN, status=404),  # it is not signed
    'sign_zone': Line(MEMBER, OWN), 'unsign_zone': Line(MEMBER, OWN, status=204),
    'roll_zone_key': Line(MEMBER, OWN, {'role': 'ZSK'}, status=404),
    'confirm_zone_ds': Line(MEMBER, OWN, {'present': True}, status=404),
    'skip_zone_server': Line(ADMIN, OWN, {'server': 'x', 'reason': 'x'}, status=404),
    'list_deleted_zones': Line(READER, LIST), 'show_deleted_zone': Line(READER, OWN),
    'restore_zone': Line(MEMBER, OWN), 'purge_zone': Line(MEMBER, OWN),
    'xfr_zone': Line(MEMBER, OWN, status=400),  # it is a primary zone
    'change_zone': Line(MEMBER, OWN, {'changes': [A]}), 'list_zone_servers': Line(READER, OWN),
    'explain_zone': Line(READER, OWN), 'validate_zone': Line(READER, OWN),
    'wait_for_zone': Line(READER, OWN, query={'timeout': '0'}),
    'list_recordset_servers': Line(READER, OWN), 'list_zone_nameservers': Line(READER, OWN),
    'show_pool_limits': Line(READER),
    'list_recordsets': Line(READER, OWN), 'create_recordset': Line(MEMBER, OWN, A),
    'show_recordset': Line(READER, OWN), 'update_recordset': Line(MEMBER, OWN, {'ttl': 300}),
    'patch_recordset': Line(MEMBER, OWN, {'ttl': 300}), 'delete_recordset': Line(MEMBER, OWN),
    'list_all_recordsets': Line(READER, LIST), 'find_recordset': Line(READER, OWN),
    'list_transfer_requests': Line(READER, LIST), 'create_transfer_request': Line(MEMBER, OWN, {'description': 'x'}),
    'show_transfer_request': Line(READER, OWN), 'update_transfer_request': Line(MEMBER, OWN, {'description': 'x'}),
    'delete_transfer_request': Line(MEMBER, OWN),
    'list_transfer_accepts': Line(ADMIN), 'show_transfer_accept': Line(READER, OWN),
    'create_transfer_accept': Line(MEMBER, OWN, {'zone_transfer_request_id': '{transfer_request_id}',
                                                 'key': '{transfer_key}'}),
    'list_zone_shares': Line(READER, OWN), 'show_zone_share': Line(READER, OWN),
    'create_zone_share': Line(MEMBER, OWN, {'target_project_id': 'delta'}), 'delete_zone_share': Line(MEMBER, OWN),
    # Each project's own, whatever header is sent: see test_floating_ips.
    'list_floating_ips': Line(READER), 'show_floating_ip': Line(READER),
    'update_floating_ip': Line(MEMBER, body={'ptrdname': '{name}'}),
    'list_zone_imports': Line(READER, LIST),
    'create_zone_import': Line(MEMBER, LIST, text='$ORIGIN {name}\n@ 300 SOA ns1.example.org. h 1 2 3 4 5\n'),
    'create_zone_import_batch': Line(MEMBER, LIST, {
        'zonefiles': ['$ORIGIN {name}\n@ 300 SOA ns1.example.org. h 1 2 3 4 5\n']}),
    'show_zone_import': Line(READER, OWN), 'delete_zone_import': Line(MEMBER, OWN),
    'list_zone_exports': Line(READER, LIST), 'create_zone_export': Line(MEMBER, OWN),
    'show_zone_export': Line(READER, OWN), 'delete_zone_export': Line(MEMBER, OWN),
    'fetch_zone_export': Line(READER, OWN),
    'list_servers': Line(OPERATOR), 'reload_servers': Line(OPERATOR), 'show_server': Line(OPERATOR),
    'rest_server': Line(OPERATOR), 'resume_server': Line(OPERATOR), 'drain_server': Line(OPERATOR),
    'resync_server': Line(OPERATOR, status=200),
    'list_plans': Line(OPERATOR),
    'create_plan': Line(OPERATOR, body={'zone_name': '{zone_name}', 'target': 'one', 'document': {}}),
    'show_plan': Line(OPERATOR), 'drop_plan': Line(OPERATOR), 'approve_plan': Line(OPERATOR),
    'settle_plan': Line(OPERATOR, body={'state': 'DROPPED'}, status=409),  # it is a pool manager's
    'list_changes': Line(READER, LIST), 'show_change': Line(READER, OWN), 'approve_change': Line(ADMIN, OWN),
    'refuse_change': Line(MEMBER, OWN),
    'create_pool': Line(ADMIN, body={'name': 'pool-of-{zone_name}'}),
    'update_pool': Line(ADMIN, body={'description': 'x'}),
    'delete_pool': Line(ADMIN, status=409),  # it has zones
    'freeze_pool': Line(ADMIN, body={'reason': 'x'}), 'unfreeze_pool': Line(ADMIN),
    'list_pools': Line(OPERATOR), 'show_pool': Line(OPERATOR), 'list_audits': Line(OPERATOR),
    'list_audit_findings': Line(OPERATOR),
    'list_tsigkeys': Line(ADMIN), 'show_tsigkey': Line(ADMIN), 'delete_tsigkey': Line(ADMIN),
    'create_tsigkey': Line(ADMIN, body={'name': '{name}', 'algorithm': 'hmac-sha256', 'secret': 'c2VjcmV0',
                                        'scope': 'ZONE', 'resource_id': '{zone_id}'}),
    'update_tsigkey': Line(ADMIN, body={'algorithm': 'hmac-sha512'}),
    'list_tlds': Line(ADMIN), 'show_tld': Line(ADMIN), 'delete_tld': Line(ADMIN),
    'create_tld': Line(ADMIN, body={'name': 'new.{tld_name}'}),
    'update_tld': Line(ADMIN, body={'description': 'x'}),
    'list_blacklists': Line(ADMIN), 'show_blacklist': Line(ADMIN), 'delete_blacklist': Line(ADMIN),
    'create_blacklist': Line(ADMIN, body={'pattern': '^new.{tld_name}$'}),
    'update_blacklist': Line(ADMIN, body={'description': 'x'}),
    'show_own_quotas': Line(READER), 'show_quotas': Line(READER, OWN),
    'set_quotas': Line(ADMIN, OWN, {'zone_records': 500}), 'reset_quotas': Line(ADMIN),
    'admin_show_quotas': Line(ADMIN), 'admin_set_quotas': Line(ADMIN, body={'quota': {'zone_records': 500}}),
    'admin_reset_quotas': Line(ADMIN), 'show_counts': Line(ADMIN), 'show_count': Line(ADMIN),
    'list_tenants': Line(ADMIN), 'show_tenant': Line(ADMIN), 'admin_export_zone': Line(ADMIN, OWN),
    'list_service_statuses': Line(OPERATOR), 'show_service_status': Line(OPERATOR),
    'delete_service_status': Line(OPERATOR),
    'show_status': Line(OPERATOR), 'show_status_style': Line(ANYONE), 'show_status_script': Line(ANYONE),
    'find_status_of_zone': Line(READER, query={'name': '{zone_name}'}),
    'show_status_of_zone': Line(READER, OWN),
}
#: A browser cannot send X-Auth-All-Projects: this shows an operator the zones of all projects without it.
PAGES = ('show_status_of_zone',)
#: What says no in another way than that there is no such thing: the project is named by the asker, or who asks has the
#: key of a transfer to another project.
FORBIDDEN = ('show_quotas', 'set_quotas', 'create_transfer_accept')


#: What the member of a project gets that a zone is shared with, by the status; None is the answer of the operation.
GUESTS = {
    **dict.fromkeys(('show_zone', 'change_zone', 'revert_zone', 'wait_for_zone', 'list_recordsets', 'create_recordset',
                     'show_recordset', 'find_recordset', 'list_zone_shares')),
    **dict.fromkeys(('update_zone', 'delete_zone', 'give_zone', 'move_zone', 'abandon_zone', 'admin_export_zone',
                     'unfreeze_zone', 'continue_release', 'abort_release',
                     'lock_zone', 'unlock_zone', 'lock_recordset', 'unlock_recordset',
                     'xfr_zone', 'list_zone_servers', 'explain_zone', 'validate_zone', 'list_recordset_servers',
                     'list_zone_nameservers', 'list_zone_versions', 'show_zone_version', 'list_zone_version_recordsets',
                     'export_zone_version', 'show_zone_difference', 'show_zone_signing', 'sign_zone', 'unsign_zone',
                     'roll_zone_key', 'confirm_zone_ds', 'skip_zone_server',
                     'update_recordset', 'patch_recordset', 'delete_recordset',
                     'create_transfer_request', 'create_zone_share', 'create_zone_export', 'show_status_of_zone'), 403),
    # The shares with others, and exports, are the owner's.
    **dict.fromkeys(('show_zone_share', 'delete_zone_share', 'fetch_zone_export'), 404),
}


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from opened(tmp_path_factory.mktemp('authorisation'))


def ask(place: Place, operation: ApiOperation, things: Mapping[str, str], token: str | None,
        **headers: str) -> falcon.testing.Result:
    line = LINES[operation.name]
    words = {**things, 'name': f'new-{things["zone_name"]}'}
    options: dict[str, Any] = {'params': filled(dict(line.query), words), 'headers': headers}
    if token is not None:
        headers['X-Auth-Token'] = token
    if line.body is not None:
        options['json'] = filled(line.body, words)
    elif line.text is not None:
        options.update(body=filled(line.text, words), content_type='text/dns')
    return place.api.simulate_request(operation.method, filled(operation.path, words), **options)


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """*value* with the things in the place of their names."""
    if isinstance(value, dict):
        return {key: filled(each, words) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, words) for each in value]
    for name, word in words.items():
        value = value.replace(f'{{{name}}}', word) if isinstance(value, str) else value
    return value


def may(role: str, line: Line) -> bool:
    return line.role == ANYONE or role in ROLES[ROLES.index(line.role):]


def test_every_operation_has_its_line_and_its_role() -> None:
    assert {name: LINES[name].role for name in OPERATIONS if name in LINES} == {
        name: operation.role for name, operation in OPERATIONS.items()}


@pytest.mark.parametrize('given', [None, '', 'dpt_nobody', 'x' * 5000])
def test_without_a_good_token_only_what_is_open(place: Place, given: str | None) -> None:
    things = place.things('alpha')
    for operation in OPERATIONS.values():
        answer = ask(place, operation, things, given)
        if LINES[operation.name].role == ANYONE:
            assert answer.status_code == 200, operation.name
        else:
            assert (answer.status_code, answer.json['type']) == (401, 'unauthorized'), operation.name
            assert answer.headers['WWW-Authenticate']
            assert things['zone_name'] not in answer.text and 'nobody' not in answer.text


@pytest.mark.parametrize('role', ROLES)
def test_by_role_on_what_is_ones_own(place: Place, role: str) -> None:
    kept = place.things('alpha', role=role)
    for operation in OPERATIONS.values():
        line = LINES[operation.name]
        if not may(role, line):
            answer = ask(place, operation, kept, token('alpha', role))
            assert (answer.status_code, answer.json['type']) == (403, 'forbidden'), operation.name
            continue
        things = kept if operation.method == 'GET' else place.things('alpha', operation.path, role)
        answer = ask(place, operation, things, token('alpha', role))
        assert answer.status_code == line.status or line.status is None and answer.status_code in operation.answers, \
            f'{operation.name}: {answer.status_code} {answer.text}'


@pytest.mark.parametrize('role', ROLES)
def test_by_role_on_what_is_shared_with_one(place: Place, role: str) -> None:
    who = Context(project_id='alpha')

    def shared(path: str) -> dict[str, str]:
        things = place.things('alpha', path)
        place.central.share_domain(who, things['zone_id'], {'target_project_id': 'beta'})
        return things

    kept = shared(EVERYTHING)
    for operation in OPERATIONS.values():
        line = LINES[operation.name]
        if line.kind != OWN or operation.name not in GUESTS or not may(role, line):
            continue
        changes = GUESTS[operation.name] is None and operation.method != 'GET'
        things = shared(operation.path) if changes else kept
        answer = ask(place, operation, things, token('beta', role))
        if operation.name == 'show_status_of_zone' and may(role, Line(OPERATOR)):
            assert answer.status_code == 200
        elif GUESTS[operation.name] is None:
            assert answer.status_code in operation.answers, f'{operation.name}: {answer.status_code} {answer.text}'
        else:
            assert answer.status_code == GUESTS[operation.name], f'{operation.name}: {answer.status_code}'
        # Nothing has been done to what is the owner's.
        assert place.central.get_recordset(who, things['zone_id'], things['recordset_id']).version == 1
        assert not place.central.get_domain(who, things['zone_id']).is_going
        if changes:
            place.central.delete_domain(who, things['zone_id'], delete_shares=True)
    place.central.delete_domain(who, kept['zone_id'], delete_shares=True)  # nothing is left in beta's lists


def test_a_lock_of_an_administrator_is_lifted_by_one(place: Place) -> None:
    things = place.things('alpha')
    zone = f'/v2/zones/{things["zone_id"]}'
    for path in (zone, f'{zone}/recordsets/{things["recordset_id"]}'):
        locked = place.ask('POST', f'{path}/tasks/lock', 'admin', json={'reason': 'an incident'}, status=200).json
        assert (locked['lock_reason'], locked['locked_by_admin']) == ('an incident', True)
        refusal = place.ask('PATCH', path, json={'ttl': 77}, status=409).json
        assert refusal['type'] == 'locked' and refusal['message'].endswith(
            'is locked: an incident; only an administrator may unlock it.')
        for verb, body in (('unlock', None), ('lock', {'reason': 'mine'})):
            assert place.ask('POST', f'{path}/tasks/{verb}', json=body, status=403).json['type'] == 'forbidden'
        if path == zone:
            assert place.ask('GET', f'{zone}/explain').json['summary'].endswith(
                'It is locked by an administrator: an incident')
            assert 'It is locked by an administrator: an incident' in place.ask('GET', f'/status{zone[3:]}').text
        assert place.ask('POST', f'{path}/tasks/unlock', 'admin', status=200).json['lock_reason'] is None
        place.ask('PATCH', path, json={'ttl': 77}, status=202)


def test_what_is_shared_with_one_has_an_answer_for_every_operation_on_a_zone() -> None:
    assert GUESTS.keys() == {name for name, each in OPERATIONS.items() if LINES[name].kind == OWN and (
        '{zone' in each.path or '{recordset_id}' in each.path)} | {'fetch_zone_export'}


def test_lists_hold_ones_own_alone(place: Place) -> None:
    mine, others = place.things('beta'), place.things('alpha')
    for operation in OPERATIONS.values():
        line = LINES[operation.name]
        if line.kind != LIST or operation.method != 'GET':
            continue
        for role in ('reader', 'member', 'operator', 'admin'):
            found = place.api.simulate_get(operation.path, params={'limit': 'max'},
                                           headers={'X-Auth-Token': token('beta', role)})
            assert found.status_code == 200
            for secret in ('alpha', *(others[key] for key in (
                    'zone_id', 'deleted_zone_id', 'import_id', 'export_id', 'recordset_id'))):
                assert secret not in found.text.replace('-', ''), operation.name
            own = 'deleted_zone_id' if operation.name == 'list_deleted_zones' else 'zone_id'
            assert mine[own] in found.text.replace('-', '') or 'import' in operation.name


@pytest.mark.parametrize('header', ['X-Auth-All-Projects', 'X-Auth-Sudo-Project-ID', 'X-Auth-Sudo-Tenant-ID'])
@pytest.mark.parametrize('role', ROLES)
def test_by_role_with_the_headers_that_reach_further(place: Place, role: str, header: str) -> None:
    value = 'true' if header == 'X-Auth-All-Projects' else 'alpha'
    kept = place.things('alpha')
    for operation in OPERATIONS.values():
        line = LINES[operation.name]
        if line.kind != OWN or not may(role, line):
            continue
        least = OPERATOR if value == 'true' and operation.method == 'GET' else ADMIN
        changes = may(role, Line(least)) and operation.method != 'GET'
        things = place.things('alpha', operation.path) if changes else kept
        answer = ask(place, operation, things, token('beta', role), **{header: value})
        if may(role, Line(least)):
            assert answer.status_code in (*operation.answers, line.status), (
                f'{operation.name}: {answer.status_code} {answer.text}')
        else:
            assert (answer.status_code, answer.json['type']) == (403, 'forbidden'), operation.name


def test_the_page_of_anothers_zone_is_not_found_by_name(place: Place) -> None:
    find, name = OPERATIONS['find_status_of_zone'], place.things('alpha')
    assert [ask(place, find, name, token('beta', role)).status_code for role in ROLES] == [403, 404, 404, 303, 303]


def test_the_page_of_a_name_is_that_of_the_zone_that_lives(place: Place) -> None:
    find, who = OPERATIONS['find_status_of_zone'], Context(project_id='alpha')
    for _ in range(8):
        things = place.things('alpha', '')
        place.central.delete_domain(who, things['zone_id'], True)  # which no server has confirmed yet
        lives = place.central.create_domain(who, {'name': things['zone_name'], 'email': 'hostmaster@alpha.example'})
        found = ask(place, find, things, token('alpha', 'reader'))
        assert found.headers['location'] == f'/status/zones/{dashed(lives.id)}'


@pytest.mark.parametrize('headers', [{'X-Auth-Sudo-Project-ID': 'alpha'}, {'X-Auth-Sudo-Tenant-ID': 'alpha'},
                                     {'X-Auth-Sudo-Project-ID': 'alpha', 'X-Auth-Sudo-Tenant-ID': 'beta'}])
def test_what_is_made_for_another_project_is_that_projects(place: Place, headers: dict[str, str]) -> None:
    made = place.api.simulate_post('/v2/zones', json={
        'name': f'made-for-{new_id()}.example.', 'email': 'hostmaster@example.com'},
        headers={'X-Auth-Token': token('beta', 'admin'), **headers})
    assert (made.status_code, made.json['project_id']) == (202, 'alpha')


def test_a_header_that_names_another_project_counts_for_nothing_with_tokens(place: Place) -> None:
    things = place.things('alpha')
    for header in ('X-Project-Id', 'X-Tenant-Id', 'X-Roles', 'X-Identity-Status'):
        answer = place.api.simulate_get(f'/v2/zones/{things["zone_id"]}', headers={
            'X-Auth-Token': token('beta', 'reader'), header: 'alpha', 'X-Role': 'admin'})
        assert answer.status_code == 404


def test_a_plan_that_an_operator_stored_is_seen_by_operators_alone(place: Place) -> None:
    things = place.things('alpha')
    stored = ask(place, OPERATIONS['create_plan'], things, token('beta', 'operator'))
    assert stored.status_code == 201
    shown = place.api.simulate_get(f'/v2/plans/{stored.json["id"]}',
                                   headers={'X-Auth-Token': token('alpha', 'operator')})
    assert shown.json['zone_name'] == things['zone_name']


def test_no_token_or_key_is_in_any_answer_or_log(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wrong_token, tsig_secret, other_secret = 'dpt_guessed', 'c2VjcmV0', 'no-base64-and-yet-secret'
    answers, admin, kept = [], token('alpha', 'admin'), place.things('alpha')
    for operation in OPERATIONS.values():
        body = LINES[operation.name].body
        for secret in (admin, token('alpha', 'reader'), wrong_token):
            changes = secret == admin and operation.method != 'GET'
            things = place.things('alpha', operation.path) if changes else kept
            answers.append(ask(place, operation, things, secret))
            for wrong in () if body is None else (
                    {**body, 'secret': other_secret}, {**body, 'other': tsig_secret}, [tsig_secret],
                    {'secret': [tsig_secret]}):
                answers.append(place.api.simulate_request(
                    operation.method, filled(operation.path, things), json=filled(wrong, things),
                    headers={'X-Auth-Token': secret}))
    digests = [digest(token('alpha', role)) for role in ROLES]
    for secret in ('dpt_', tsig_secret, other_secret, *digests):
        assert secret not in caplog.text
        for answer in answers:
            assert secret not in f'{answer.text} {answer.headers}', answer.text
    assert len(answers) > 100 and not [answer.text for answer in answers if answer.status_code == 500]


def test_the_request_id_is_that_of_the_answer_and_of_the_zone(place: Place) -> None:
    request_id = f'req-{uuid.uuid4()}'
    made = place.ask('POST', '/v2/zones', status=202, headers={'X-Openstack-Request-Id': request_id},
                     json={'name': 'with-an-id.example.', 'email': 'hostmaster@example.com'})
    assert made.headers['X-Openstack-Request-Id'] == request_id
    assert place.ask('GET', f'/v2/zones/{made.json["id"]}/explain').json['request_id'] == request_id


def test_each_write_is_one_line_of_the_log_with_who_and_what(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, 'designate_pool.api.writes')
    body = {'name': 'written.example.', 'email': 'hostmaster@example.com'}
    made = place.ask('POST', '/v2/zones', status=202, json=body)
    zone = f'/v2/zones/{made.json["id"]}'
    place.ask('GET', zone, status=200)
    place.ask('POST', '/v2/zones', status=409, json=body)
    place.ask('DELETE', zone, role='reader', status=403)
    place.api.simulate_request('DELETE', '/v2/zones/a%0aforged', headers={'X-Auth-Token': 'dpt_guessed'})
    lines = [record.getMessage() for record in caplog.records if record.name == 'designate_pool.api.writes']
    assert [line.partition(' [req-')[0] for line in lines] == [
        'POST /v2/zones: 202 by member-of-alpha from 127.0.0.1',
        'POST /v2/zones: 409 by member-of-alpha from 127.0.0.1',
        f'DELETE {zone}: 403 by reader-of-alpha from 127.0.0.1',
        'DELETE /v2/zones/a?forged: 401 by nobody from 127.0.0.1']
    assert f'[{made.headers["X-Openstack-Request-Id"]}]' in lines[0]
