"""``auth = keystone``: keystonemiddleware's real filter, before a stand-in for Keystone."""

from __future__ import annotations

import base64
import builtins
import logging
import pathlib
from collections.abc import Iterator
from typing import Any

import falcon.testing
import pytest
from oslo_config import cfg

from designate_pool.api.app import create_app
from designate_pool.cmd.compose.api_guard import ApiGuard
from designate_pool.config import load
from designate_pool.errors import BadConfiguration
from tests.fixtures.keystone import SERVICE_TOKEN, Keystone
from tests.fixtures.observed_central import POOL, ObservedCentral, PoolManager, observed_central

ZONE = {'name': 'example.com.', 'email': 'hostmaster@example.com'}


@pytest.fixture
def keystone() -> Iterator[Keystone]:
    made = Keystone()
    made.tokens = {'token-of-a-member': ('alpha', ['member', 'Reader'], 'mary'),
                   'token-of-an-admin': ('ops', ['admin'], 'ada'),
                   'token-of-no-project': (None, ['admin'], 'ada')}
    yield made
    made.stop()


@pytest.fixture
def central(tmp_path: pathlib.Path) -> Iterator[ObservedCentral]:
    yield from observed_central(tmp_path)


def guarded(folder: pathlib.Path, keystone: Keystone, central: ObservedCentral,
            *options: str) -> falcon.testing.TestClient:
    path = folder / 'pool.conf'
    path.write_text('\n'.join(['[service:api]', 'auth = keystone', *options, keystone.section()]))
    conf = cfg.ConfigOpts()
    load.load(conf, [f'--config-file={path}'], config_files=[])
    guard = ApiGuard(load.read_settings(conf).api, conf)
    app = create_app(central, POOL, pool_managers=PoolManager(),  # type: ignore[arg-type]
                     storage=central.storage, gate=guard.gate, check_project=guard.check_project)
    filtered = guard.around(app)

    def application(environ: Any, start_response: Any) -> Any:
        return filtered(environ, start_response)  # falcon looks at the signature, and the filter has none

    return falcon.testing.TestClient(application)  # type: ignore[arg-type]


@pytest.fixture
def api(tmp_path: pathlib.Path, keystone: Keystone, central: ObservedCentral) -> falcon.testing.TestClient:
    return guarded(tmp_path, keystone, central)


def test_project_roles_and_user_are_keystones(api: falcon.testing.TestClient, central: ObservedCentral) -> None:
    good = {'X-Auth-Token': 'token-of-a-member'}
    assert api.simulate_post('/v2/zones', headers=good, json=ZONE).status_code == 202
    context = central.contexts[-1]
    assert (context.project_id, context.user) == ('alpha', 'mary')
    assert api.simulate_get('/v2/servers', headers=good).json['type'] == 'forbidden'
    assert api.simulate_get('/v2/servers', headers={'X-Auth-Token': 'token-of-an-admin'}).status_code == 200


def test_headers_that_a_client_forges_count_for_nothing(api: falcon.testing.TestClient,
                                                        central: ObservedCentral) -> None:
    forged = {'X-Roles': 'admin', 'X-Project-Id': 'beta', 'X-Identity-Status': 'Confirmed', 'X-User-Id': 'eve'}
    assert api.simulate_get('/v2/zones', headers=forged).status_code == 401
    assert api.simulate_get('/v2/zones', headers={**forged, 'X-Auth-Token': 'token-of-a-member'}).status_code == 200
    assert (central.contexts[-1].project_id, central.contexts[-1].user) == ('alpha', 'mary')
    assert api.simulate_get('/v2/servers', headers={**forged, 'X-Auth-Token': 'token-of-a-member'}).status_code == 403


def test_without_a_token_only_what_is_open(api: falcon.testing.TestClient, keystone: Keystone) -> None:
    assert api.simulate_get('/v2').status_code == 200
    for headers in ({}, {'X-Auth-Token': 'token-of-nobody'}):
        refused = api.simulate_get('/v2/zones', headers=headers)
        assert (refused.status_code, refused.json['type']) == (401, 'unauthorized')
        assert refused.headers['WWW-Authenticate'] == f'Keystone uri="{keystone.url}"'


def test_a_token_of_no_project_sees_nothing_unless_it_asks_for_all(api: falcon.testing.TestClient,
                                                                   central: ObservedCentral) -> None:
    headers = {'X-Auth-Token': 'token-of-no-project'}
    assert api.simulate_get('/v2/zones', headers=headers).status_code == 403
    assert central.contexts == []
    assert api.simulate_get('/v2/zones', headers={**headers, 'X-Auth-All-Projects': 'true'}).status_code == 200


def test_a_browser_sees_the_status_page_with_a_token_as_password(api: falcon.testing.TestClient) -> None:
    basic = {'Authorization': 'Basic ' + base64.b64encode(b'me:token-of-a-member').decode()}
    assert api.simulate_get('/status/zones', params={'name': 'example.com.'},
                            headers=basic).status_code not in (401, 403)
    assert api.simulate_get('/v2/zones', headers=basic).status_code == 401


def test_keystone_down_and_back(tmp_path: pathlib.Path, keystone: Keystone, central: ObservedCentral,
                                caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    gone = Keystone()
    gone.stop()
    api = guarded(tmp_path, gone, central)
    answer = api.simulate_get('/v2/zones', headers={'X-Auth-Token': 'token-of-a-member'})
    assert (answer.status_code, answer.json['type']) == (503, 'service_unavailable')
    for path in ('/', '/v2', '/healthz', '/openapi.json'):  # needs no Keystone
        assert api.simulate_get(path, headers={'X-Auth-Token': 'token-of-a-member'}).status_code == 200
    assert 'token-of-a-member' not in answer.text + caplog.text
    again = guarded(tmp_path, keystone, central)
    assert again.simulate_get('/v2/zones', headers={'X-Auth-Token': 'token-of-a-member'}).status_code == 200


def test_a_project_that_is_given_something_is_looked_up(tmp_path: pathlib.Path, keystone: Keystone,
                                                        central: ObservedCentral) -> None:
    headers, quotas = {'X-Auth-Token': 'token-of-an-admin', 'X-Auth-All-Projects': 'true'}, {'zones': 3}
    known = keystone.create('projects', {'name': 'known'})['id']
    api = guarded(tmp_path, keystone, central, 'quotas_verify_project_id = true')
    assert api.simulate_patch(f'/v2/quotas/{known}', headers=headers, json=quotas).status_code == 200
    refused = api.simulate_patch('/v2/quotas/unknown', headers=headers, json=quotas)
    assert (refused.status_code, refused.json['type']) == (400, 'invalid_project')
    zone = api.simulate_post('/v2/zones', headers=headers, json=ZONE).json['id']
    for path, body in ((f'/v2/zones/{zone}/shares', {'target_project_id': 'unknown'}),
                       (f'/v2/zones/{zone}/tasks/transfer_requests', {'target_project_id': 'unknown'}),
                       (f'/v2/zones/{zone}/project', {'project_id': 'unknown'})):
        refused = api.simulate_post(path, headers=headers, json=body)
        assert (refused.status_code, refused.json['type']) == (400, 'invalid_project'), path


@pytest.mark.parametrize('status, body, why', [
    (500, '{}', 'its answer was 500'),
    (403, '{"error": {"message": "not for you"}}', 'its answer was 403'),
    (401, '{}', 'it refuses what this API logs in with, [keystone_authtoken]'),
    (200, '<html>', 'its answer was not one of the Identity API'),
    (200, '{}', 'its answer was not one of the Identity API'),
], ids=['500', '403', '401', 'a page', 'something else'])
def test_a_keystone_that_answers_wrongly_is_no_wrong_token(
        api: falcon.testing.TestClient, keystone: Keystone, caplog: pytest.LogCaptureFixture, status: int, body: str,
        why: str) -> None:
    keystone.wrong_answer = status, body
    for _ in range(2):
        answer = api.simulate_get('/v2/zones', headers={'X-Auth-Token': 'token-of-a-member'})
        assert (answer.status_code, answer.json['type']) == (503, 'identity_failed')
        assert why in answer.json['message'] and why in caplog.text
    assert 'Traceback' not in caplog.text
    keystone.wrong_answer = None
    assert api.simulate_get('/v2/zones', headers={'X-Auth-Token': 'token-of-a-member'}).status_code == 200


def test_the_password_is_in_a_file(tmp_path: pathlib.Path, keystone: Keystone, central: ObservedCentral) -> None:
    (tmp_path / 'password').write_text('a-password-of-$ours\n')
    keystone.password = f'file:{tmp_path}/password'
    api = guarded(tmp_path, keystone, central)
    assert api.simulate_get('/v2/zones', headers={'X-Auth-Token': 'token-of-a-member'}).status_code == 200
    assert keystone.logged_in_with == ['a-password-of-$ours']
    keystone.password = 'file:nowhere'
    with pytest.raises(BadConfiguration, match=r'\[keystone_authtoken\].*nowhere'):
        guarded(tmp_path, keystone, central)


def test_no_token_or_password_is_in_an_answer_or_log(api: falcon.testing.TestClient,
                                                     caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, 'designate_pool')
    texts = [api.simulate_get(path, headers={'X-Auth-Token': token}).text for path in ('/v2/zones', '/v2/servers')
             for token in ('token-of-a-member', 'token-of-nobody', 'token-of-no-project')]
    for secret in ('token-of-', SERVICE_TOKEN, 'a-password-of-ours'):
        assert all(secret not in text for text in (*texts, caplog.text))


def test_keystonemiddleware_that_is_not_installed(tmp_path: pathlib.Path, keystone: Keystone, central: ObservedCentral,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.startswith('keystone'):
            raise ModuleNotFoundError(f'No module named {name!r}')
        return real(name, *arguments)

    monkeypatch.setattr(builtins, '__import__', without)
    with pytest.raises(BadConfiguration, match=r"pip install 'designate-pool\[keystone\]'"):
        guarded(tmp_path, keystone, central)
