from __future__ import annotations

import pytest

TXT = ['"two" "parts with \\"quotes\\""', '"v=spf1 -all"']


@pytest.fixture
def address(zone):
    return f'/v2/zones/{zone["id"]}/recordsets'


@pytest.fixture
def recordset(api, address):
    return api.simulate_post(address, json={'name': 'www.example.com.', 'type': 'A', 'records': ['192.0.2.1']}).json


def test_a_recordset_is_shown_as_designate_shows_it(api, address, zone):
    answer = api.simulate_post(address, json={'name': 'example.com.', 'type': 'TXT', 'records': TXT, 'ttl': 300})
    shown = answer.json
    assert answer.status_code == 202
    assert answer.headers['Location'] == shown['links']['self']
    assert shown['links']['self'].endswith(f'{address}/{shown["id"]}')
    assert shown['created_at'] and shown['updated_at'] == shown['created_at']
    expected = {'name': 'example.com.', 'type': 'TXT', 'records': TXT, 'ttl': 300, 'description': None,
                'status': 'PENDING', 'action': 'CREATE', 'zone_id': zone['id'], 'zone_name': 'example.com.',
                'version': 1, 'project_id': ''}
    assert {name: shown[name] for name in expected} == expected


@pytest.mark.parametrize('method', ['PUT', 'PATCH'])
def test_change_by_either_method_and_again(api, address, recordset, method):
    for records in (['192.0.2.2', '192.0.2.3'], ['192.0.2.4']):
        answer = api.simulate_request(method, f'{address}/{recordset["id"]}', json={'records': records, 'ttl': None})
        assert answer.status_code == 202
        assert api.simulate_get(f'{address}/{recordset["id"]}').json['records'] == records


def test_delete_and_gone(api, address, recordset):
    answer = api.simulate_delete(f'{address}/{recordset["id"]}')
    assert (answer.status_code, answer.json['name']) == (202, 'www.example.com.')
    assert api.simulate_get(f'{address}/{recordset["id"]}').json['type'] == 'recordset_not_found'


def test_list_and_filter(api, address, recordset):
    api.simulate_post(address, json={'name': 'mail.example.com.', 'type': 'A', 'records': ['192.0.2.9']})
    assert len(api.simulate_get(f'{address}?type=A').json['recordsets']) == 2
    assert [each['id'] for each in api.simulate_get(f'{address}?name=www*').json['recordsets']] == [recordset['id']]
    page = api.simulate_get(f'{address}?limit=1').json
    assert len(page['recordsets']) == 1 and 'marker=' in page['links']['next']
