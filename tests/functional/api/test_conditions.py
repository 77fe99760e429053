"""Conditional writes: the ETag of zones and recordsets, and changes with If-Match (RFC 9110 section 13.1.1)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from designate_pool.model import Context, Outcome
from tests.fixtures.api import Place, opened

WHO = Context(project_id='alpha')
WRITES = {
    'set-zone': ('PATCH', '', {'ttl': 300}), 'set-recordset': ('PUT', '/recordsets/{recordset_id}', {'ttl': 300}),
    'patch-recordset': ('PATCH', '/recordsets/{recordset_id}', {'records': ['192.0.2.9']}),
    'create-recordset': ('POST', '/recordsets', {'name': 'new.{zone_name}', 'type': 'A', 'records': ['192.0.2.9']}),
    'changes': ('POST', '/changes', {'changes': [{'name': 'new.{zone_name}', 'type': 'A', 'records': ['192.0.2.9']}]}),
    'give': ('POST', '/project', {'project_id': 'beta'}), 'move': ('POST', '/tasks/pool_move', {'pool_id': '{other}'}),
    'abandon': ('POST', '/tasks/abandon', None), 'delete-recordset': ('DELETE', '/recordsets/{recordset_id}', None),
    'delete-zone': ('DELETE', '', None),
    'lock-recordset': ('POST', '/recordsets/{recordset_id}/tasks/lock', {'reason': 'mine'}),
    'unlock-recordset': ('POST', '/recordsets/{recordset_id}/tasks/unlock', None),
}


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    yield from opened(tmp_path_factory.mktemp('conditions'))


@pytest.mark.parametrize('write', WRITES)
def test_a_write_is_refused_after_another_and_made_as_it_was_read(place: Place, write: str) -> None:
    things = place.things('alpha', '/pool_move' if write == 'move' else '')
    zone, word = f'/v2/zones/{things["zone_id"]}', {**things, 'other': things['other_pool_id']}
    method, path, body = WRITES[write]
    path = zone + path.format_map(word)
    read = path.partition('/tasks/')[0] if 'recordsets/' in path else zone

    def etag() -> str:
        return place.ask('GET', read, status=200).headers['ETag']

    def send(tag: str) -> int:
        sent = None if body is None else {
            name: value.format_map(word) if isinstance(value, str) else
            [{**each, 'name': each['name'].format_map(word)} if isinstance(each, dict) else each for each in value]
            if isinstance(value, list) else value for name, value in body.items()}
        return place.ask(method, path, 'admin', headers={'If-Match': tag}, json=sent).status_code

    former = etag()
    changed = place.ask('PATCH', read, status=202, json={'description': 'changed by another', **(
        {'records': ['192.0.2.7']} if 'recordsets/' in path else {})})
    assert changed.headers['ETag'] == etag() != former
    assert [send(tag) for tag in (former, '"other"', f'W/{etag()}', f'"a", {former}')] == [412] * 4
    assert changed.headers['ETag'] == etag()
    assert send(f'"other" , {etag()}') in (200, 202, 204)


def test_what_has_changed_is_said(place: Place) -> None:
    things = place.things('alpha')
    zone = f'/v2/zones/{things["zone_id"]}'
    first = place.ask('GET', zone).headers['ETag']
    serials = [place.ask('GET', zone).json['serial']]
    place.ask('POST', f'{zone}/changes', json={'changes': [
        {'name': f'a.{things["zone_name"]}', 'type': 'A', 'records': ['192.0.2.9']}]}, status=202)
    serials.append(place.ask('GET', zone).json['serial'])
    refused = place.ask('DELETE', zone, headers={'If-Match': first}, status=412).json
    assert refused['type'] == 'precondition_failed'
    assert f'it is at serial {serials[1]}, no longer at {serials[0]}' in refused['message']


def test_the_tag_is_not_of_the_status(place: Place) -> None:
    things = place.things('alpha')
    paths = f'/v2/zones/{things["zone_id"]}', f'/v2/zones/{things["zone_id"]}/recordsets/{things["recordset_id"]}'
    before = [place.ask('GET', path).headers['ETag'] for path in paths]
    domain = place.central.get_domain(WHO, things['zone_id'])
    place.central.update_status(WHO, domain, Outcome.SUCCESS, domain.serial)
    assert place.ask('GET', paths[0]).json['status'] == 'ACTIVE'
    assert [place.ask('HEAD', path).headers['ETag'] for path in paths] == before


@pytest.mark.parametrize(('header', 'status'), [('*', 202), (' * ', 202), ('abc', 400), ('"a" "b"', 400),
                                                ('*, "a"', 400), ('', 400), ('"', 400)])
def test_the_header(place: Place, header: str, status: int) -> None:
    things = place.things('alpha')
    answer = place.ask('PATCH', f'/v2/zones/{things["zone_id"]}', headers={'If-Match': header}, json={'ttl': 77})
    assert answer.status_code == status, answer.text
    place.ask('PATCH', f'/v2/zones/{"f" * 32}', headers={'If-Match': '*'}, json={'ttl': 77}, status=404)


def test_a_revert_is_shown_and_then_made_at_that_serial(place: Place) -> None:
    things = place.things('alpha')
    zone = f'/v2/zones/{things["zone_id"]}'
    first = place.ask('GET', zone).json['serial']
    name = f'back.{things["zone_name"]}'
    place.ask('POST', f'{zone}/recordsets', status=202, json={'name': name, 'type': 'A', 'records': ['192.0.2.9']})
    etag = place.ask('GET', zone).headers['ETag']
    shown = place.ask('POST', f'{zone}/tasks/revert', status=200, json={'to': str(first), 'dry_run': True}).json
    assert (shown['to_serial'], shown['unchanged'], place.ask('GET', zone).headers['ETag']) == (first, [], etag)
    assert shown['changes'] == [{'name': name, 'type': 'A', 'records': [], 'ttl': None,
                                 'present_records': ['192.0.2.9'], 'present_ttl': None}]
    exactly = {'to': str(first), 'name': name, 'type': 'A', 'serial': shown['serial']}
    place.ask('POST', f'{zone}/tasks/revert', status=412, json=exactly, headers={'If-Match': '"other"'})
    place.ask('POST', f'{zone}/tasks/revert', status=409, json={**exactly, 'serial': first})
    made = place.ask('POST', f'{zone}/tasks/revert', status=202, json=exactly, headers={'If-Match': etag}).json
    assert made['serial'] > shown['serial']
    for to, field in (('soon', 'to'), ('1', None), ('2001-01-01', None)):
        answer = place.ask('POST', f'{zone}/tasks/revert', status=404 if field is None else 400, json={'to': to})
        assert ("'to'" in answer.text or 'to:' in answer.text) if field else answer.json['type'] == 'contents_not_kept'


@pytest.mark.parametrize('method', ['PUT', 'DELETE'])
def test_what_nobody_may_change_is_refused_as_that_with_its_tag_too(place: Place, method: str) -> None:
    recordsets = f'/v2/zones/{place.things("alpha")["zone_id"]}/recordsets'
    soa, = place.ask('GET', f'{recordsets}?type=SOA').json['recordsets']
    tag = place.ask('GET', f'{recordsets}/{soa["id"]}').headers['ETag']
    refused = place.ask(method, f'{recordsets}/{soa["id"]}', headers={'If-Match': tag}, status=400,
                        json={'ttl': 300} if method == 'PUT' else None).json
    assert 'cannot be changed by hand' in refused['message']
