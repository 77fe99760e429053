"""The document says what is there, all of it, and nothing else."""

from __future__ import annotations

import dataclasses
import json
import re

import jsonschema_rs
import openapi_spec_validator
import pytest
from falcon import testing

from designate_pool.api import operation_registry
from designate_pool.api.app import create_app
from designate_pool.api.schema.answers import TEXT, AnswerForm
from designate_pool.api.schema.openapi import make_document
from designate_pool.api.schema.operation import ANYONE
from testing.settings import API
from tests.fixtures.conformance import document, validator
from tests.fixtures.observed_central import EVERYBODY, POOL, PoolManager

OPERATIONS = operation_registry.operations()


@pytest.mark.parametrize(('options', 'absent'), [
    ({}, ('/v2/reverse/',)),
    ({'neutron': object()}, ()),
    ({'settings': dataclasses.replace(API, enabled_extensions_admin=('quotas',))},
     ('/v2/reverse/', '/admin/reports/', '/admin/zones/')),
])
def test_it_is_served_to_everybody_with_what_is_switched_on(central, options, absent):
    answer = testing.TestClient(create_app(central, POOL, pool_managers=PoolManager(), storage=central.storage,
                                           **{'settings': API, **options})).simulate_get('/openapi.json')
    whole = json.loads(json.dumps(document()))['paths']
    left_out = {path for path in whole if absent and path.startswith(absent)}
    assert len({path.split('/')[2] for path in left_out}) == len(absent)
    if not absent:
        openapi_spec_validator.validate(answer.json, cls=openapi_spec_validator.OpenAPIV31SpecValidator)
    assert answer.json['paths'] == {path: each for path, each in whole.items() if path not in left_out}


def test_every_operation_has_a_name_of_its_own():
    names = [each.name for each in OPERATIONS]
    assert sorted(set(names)) == sorted(names)
    assert all(re.fullmatch('[a-z][a-z_]+', name) for name in names)


def test_every_schema_is_used_and_can_be_compiled():
    text = json.dumps(document())
    for name, schema in document()['components']['schemas'].items():
        assert f'"#/components/schemas/{name}"' in text, name
        jsonschema_rs.meta.validate(schema)
        validator(json.dumps(schema))


def test_two_answers_of_one_name_are_refused():
    other = dataclasses.replace(OPERATIONS[0], answers={200: AnswerForm('Plan', {'id': TEXT})})
    with pytest.raises(ValueError, match='two answers named Plan'):
        make_document([*OPERATIONS, other])


def test_the_document_asks_for_a_token_where_one_is_needed():
    for each in OPERATIONS:
        told = document()['paths'][each.path][each.method.lower()]
        assert told['security'] == ([] if each.role == ANYONE else [{'token': []}]), each.name
        assert ('401' in told['responses']) == (each.role != ANYONE)


class TestAddresses:
    """What is answered where nothing is, and about it."""

    def test_the_versions_have_the_address_of_version_2(self, api):
        versions = api.simulate_get('/').json['versions']
        assert [(each['id'], each['status']) for each in versions] == [
            ('v2', 'SUPPORTED'), ('v2.0', 'SUPPORTED'), ('v2.1', 'SUPPORTED'), ('v2.2', 'SUPPORTED'),
            ('v2.3', 'SUPPORTED'), ('v2.4', 'CURRENT')]
        assert all(each['links'][0]['href'].endswith('/v2') for each in versions)
        assert api.simulate_get('/v2').json['version'] == versions[-1]

    def test_the_limits_are_the_quotas_under_other_names(self, api, central):
        central.set_quotas(EVERYBODY, 'a', {'zones': 10, 'zone_recordsets': 500, 'recordset_records': 20})
        limits = api.simulate_get('/v2/limits', headers={'X-Project-Id': 'a'}).json
        assert limits == {'max_page_limit': 1000, 'max_recordset_name_length': 255, 'max_recordset_records': 20,
                          'max_zone_name_length': 255, 'max_zone_records': -1, 'max_zone_recordsets': 500,
                          'max_zones': 10, 'min_ttl': None}
        assert central.contexts[-1].project_id == 'a'

    def test_an_unknown_address_says_where_the_others_are(self, api):
        answer = api.simulate_get('/v2/zonse')
        assert (answer.status_code, answer.json['type']) == (404, 'not_found')
        assert '/openapi.json' in answer.json['message']

    def test_head_is_get_without_a_body(self, api, zone):
        for path in ('/', '/v2/zones', f'/v2/zones/{zone["id"]}'):
            got, head = api.simulate_get(path), api.simulate_head(path)
            assert (head.status_code, head.text, head.headers['Content-Length']) == (200, '', str(len(got.content)))
        assert api.simulate_head('/v2/zones/1').status_code == 400
        assert api.simulate_head('/v2/zonse').status_code == 404
        assert api.simulate_head('/v2/servers/reload').status_code == 405

    def test_options_and_a_wrong_method_name_the_right_ones(self, api):
        assert api.simulate_options('/v2/zones').headers['Allow'] == 'GET, POST'
        wrong = api.simulate_put('/v2/zones')
        assert (wrong.status_code, wrong.json['type']) == (405, 'method_not_allowed')
        assert wrong.headers['Allow'].startswith('GET, POST')

    @pytest.mark.parametrize('accept, status', [('application/json', 200), ('*/*', 200), ('text/html', 406),
                                                ('application/*;q=0.5, text/html', 200), ('application/json;q=0', 406)])
    def test_a_client_that_takes_something_else(self, api, accept, status):
        answer = api.simulate_get('/v2/zones', headers={'Accept': accept})
        assert (answer.status_code, answer.headers['Content-Type']) == (status, 'application/json')
        assert status == 200 or answer.json['code'] == 406

    @pytest.mark.parametrize('method', ['WEBSOCKET', 'FOO', 'TRACE', 'CONNECT'])
    def test_a_method_that_is_none_of_http(self, api, method):
        answer = api.simulate_request(method, '/v2/zones')
        assert answer.status_code in (400, 405)
        assert answer.json['code'] == answer.status_code
        assert answer.json['request_id'] == answer.headers['X-Openstack-Request-Id']
