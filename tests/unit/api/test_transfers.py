from __future__ import annotations

import uuid

from designate_pool.api.tasks import Import, Imports
from designate_pool.errors import ServiceUnavailable
from designate_pool.model import Context, new_id, utcnow

IMPORTS = '/v2/zones/tasks/imports'
ZONE_FILE = '$ORIGIN example.net.\n@ 60 SOA ns1.example.net. hostmaster.example.net. 1 60 60 60 60\n'
DNS = {'Content-Type': 'text/dns'}


def test_a_whole_zone_file_becomes_a_zone(api):
    answer = api.simulate_post(IMPORTS, body=ZONE_FILE, headers=DNS)
    task = answer.json
    assert (answer.status_code, task['status'], task['message']) == (202, 'COMPLETE', 'example.net. imported')
    assert api.simulate_get(f'/v2/zones/{task["zone_id"]}').json['name'] == 'example.net.'
    assert task['links']['href'].endswith(f'/v2/zones/{task["zone_id"]}')
    assert api.simulate_get(f'{IMPORTS}/{task["id"]}').json == task
    assert [each['id'] for each in api.simulate_get(IMPORTS).json['imports']] == [task['id']]


def test_the_second_import_of_the_same_is_an_error_that_says_so(api):
    api.simulate_post(IMPORTS, body=ZONE_FILE, headers=DNS)
    answer = api.simulate_post(IMPORTS, body=ZONE_FILE, headers=DNS)
    assert answer.status_code == 202
    assert (answer.json['status'], answer.json['zone_id']) == ('ERROR', None)
    assert answer.json['message'] == 'The domain example.net. exists already.'
    assert 'href' not in answer.json['links']


def test_a_wrong_zone_file_is_told_in_words(api):
    task = api.simulate_post(IMPORTS, body='nonsense', headers=DNS).json
    assert (task['status'], task['message']) == ('ERROR', 'zone file: line 1: there is no $ORIGIN.')


def test_a_silent_central_is_no_outcome(api, central):
    central.fault = ServiceUnavailable(service='central', why='no answer in 30 s')
    assert api.simulate_post(IMPORTS, body=ZONE_FILE, headers=DNS).status_code == 503
    assert api.simulate_get(IMPORTS).json['imports'] == []


def test_a_forgotten_import_leaves_its_zone(api):
    task = api.simulate_post(IMPORTS, body=ZONE_FILE, headers=DNS).json
    assert api.simulate_delete(f'{IMPORTS}/{task["id"]}').status_code == 204
    assert api.simulate_get(f'{IMPORTS}/{task["id"]}').json['type'] == 'not_found'
    assert api.simulate_get(f'/v2/zones/{task["zone_id"]}').status_code == 200


def test_a_zone_file_that_is_too_long(api):
    answer = api.simulate_post(IMPORTS, body=ZONE_FILE + ';' * 1000, headers=DNS)
    assert (answer.status_code, answer.json['type']) == (413, 'body_too_large')


def test_an_export_gives_the_zone_file(api, zone):
    answer = api.simulate_post(f'/v2/zones/{zone["id"]}/tasks/export')
    assert (answer.status_code, answer.json['status'], answer.json['zone_id']) == (202, 'COMPLETE', zone['id'])
    shown = api.simulate_get(f'/v2/zones/tasks/exports/{answer.json["id"]}')
    assert shown.json['location'].endswith('/export')
    exported = api.simulate_get(f'/v2/zones/tasks/exports/{answer.json["id"]}/export')
    assert exported.text == '$ORIGIN example.com.\n'
    assert exported.headers['Content-Type'].startswith('text/dns')


def test_no_export_of_what_is_not_there(api):
    assert api.simulate_post(f'/v2/zones/{uuid.uuid4()}/tasks/export').json['type'] == 'domain_not_found'
    assert api.simulate_get(f'/v2/zones/tasks/exports/{uuid.uuid4()}/export').json['type'] == 'domain_not_found'


def test_the_oldest_notes_are_dropped_and_those_of_others_not_shown():
    imports = Imports(kept=3)
    tasks = [Import(new_id(), project, utcnow(), utcnow(), new_id(), '') for project in 'aabab']
    for task in tasks:
        imports.add(task)
    assert imports.visible(Context(all_projects=True)) == [tasks[4], tasks[3], tasks[2]]
    assert imports.visible(Context()) == [tasks[4], tasks[3], tasks[2]]
    assert imports.visible(Context(project_id='a')) == [tasks[3]]
