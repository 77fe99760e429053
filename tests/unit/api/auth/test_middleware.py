"""The gate of the API: tokens from a file, HTTP Basic, the policy file, how often, and request ids."""

from __future__ import annotations

import base64
import http.server
import logging
import os
import pathlib
import threading
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import falcon.testing
import pytest
from oslo_config import cfg
from oslo_policy import generator

from designate_pool.api.app import create_app
from designate_pool.api.auth import policy
from designate_pool.api.auth.identity import Authenticator, Identity
from designate_pool.api.auth.keystone import KeystoneAuth
from designate_pool.api.auth.middleware import AuthMiddleware, NoAuth
from designate_pool.api.auth.reloaded_file import ReloadedFile
from designate_pool.api.auth.token_file import TokenAuth, digest, parse
from designate_pool.api.http.limits import RateLimits
from designate_pool.errors import BadConfiguration, OverLimit
from tests.fixtures import documentation
from tests.fixtures.observed_central import POOL, ObservedCentral, PoolManager

ROOT = pathlib.Path(__file__).resolve().parents[4]
NOW = datetime(2026, 5, 1, tzinfo=timezone.utc)
ONE = f'one alpha member sha256:{digest("dpt_one")}\n'
TWO = f'two beta operator sha256:{digest("dpt_two")}\n'
ZONE = {'name': 'example.com.', 'email': 'hostmaster@example.com'}
Client = falcon.testing.TestClient


@pytest.fixture
def tokens(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / 'tokens'
    path.write_text(f'# the tokens\n\n{ONE}')
    return path


def rules(folder: pathlib.Path, text: str | None = None) -> policy.OsloPolicy:
    """The policy, with a policy file if there is a text for one."""
    conf = cfg.ConfigOpts()
    arguments = []
    if text is not None:
        (folder / 'policy.yaml').write_text(text)
        (folder / 'pool.conf').write_text(f'[oslo_policy]\npolicy_file = {folder}/policy.yaml\n')
        arguments = [f'--config-file={folder}/pool.conf']
    conf(arguments, project='designate-pool', default_config_files=[], default_config_dirs=[])
    found = policy.OsloPolicy(conf)
    policy.check_policy_file(conf)
    return found


Make = Callable[..., Client]


@pytest.fixture
def make(central: ObservedCentral, tmp_path: pathlib.Path) -> Make:
    """A function that gives a client of the application behind a gate."""
    def make(who: Authenticator, rates: RateLimits | None = None, text: str | None = None) -> Client:
        gate = AuthMiddleware(who, rules(tmp_path, text), rates or RateLimits(0, 1))
        return Client(create_app(central, POOL, pool_managers=PoolManager(),  # type: ignore[arg-type]
                                 storage=central.storage, gate=gate))
    return make


def status(client: Client, token: str | None = None, path: str = '/v2/zones', **options: Any) -> int:
    headers = options.pop('headers', {})
    if token is not None:
        headers['X-Auth-Token'] = token
    return int(client.simulate_get(path, headers=headers, **options).status_code)


def put(path: pathlib.Path, text: str) -> None:
    """Write a file as one that has certainly changed."""
    path.write_text(text)
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1_000_000))


class TestTokens:
    def test_who_it_is_goes_to_central(self, make: Make, central: ObservedCentral, tokens: pathlib.Path) -> None:
        assert status(make(TokenAuth(str(tokens))), 'dpt_one') == 200
        context = central.contexts[-1]
        assert (context.project_id, context.user, context.all_projects) == ('alpha', 'one', False)

    def test_a_token_that_is_added_then_revoked(self, make: Make, tokens: pathlib.Path) -> None:
        client = make(TokenAuth(str(tokens)))
        assert status(client, 'dpt_two') == 401
        put(tokens, ONE + TWO)
        assert (status(client, 'dpt_one'), status(client, 'dpt_two')) == (200, 200)
        put(tokens, TWO)
        assert (status(client, 'dpt_one'), status(client, 'dpt_two')) == (401, 200)

    def test_a_file_that_becomes_wrong_or_goes_leaves_what_was_there(
            self, make: Make, tokens: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
        client = make(TokenAuth(str(tokens)))
        put(tokens, f'{ONE}dpt_two beta operator\n')
        assert (status(client, 'dpt_one'), status(client, 'dpt_two')) == (200, 401)
        assert 'the new token file is not used' in caplog.text and 'line 2: it has 3 fields' in caplog.text
        assert 'dpt_two' not in caplog.text
        tokens.unlink()
        assert status(client, 'dpt_one') == 200
        assert 'No such file' in caplog.text
        caplog.clear()
        assert status(client, 'dpt_one') == 200
        assert not [each for each in caplog.records if each.levelno > logging.DEBUG], 'it is said once'
        put(tokens, TWO)
        assert (status(client, 'dpt_one'), status(client, 'dpt_two')) == (401, 200)

    def test_one_that_expires(self, tokens: pathlib.Path, make: Make) -> None:
        now = [NOW]
        tokens.write_text(f'{ONE.strip()} 2026-05-01T00:00:01Z\n')
        client = make(TokenAuth(str(tokens), lambda: now[0]))
        assert status(client, 'dpt_one') == 200
        now[0] = datetime(2026, 5, 1, 0, 0, 1, tzinfo=timezone.utc)
        answer = client.simulate_get('/v2/zones', headers={'X-Auth-Token': 'dpt_one'})
        assert answer.status_code == 401 and 'expired' in answer.json['message']

    @pytest.mark.parametrize(('line', 'why'), [
        ('one alpha member', 'line 3: it has 3 fields'),
        ('one alpha member dpt_secret', 'line 3: the fourth field must be sha256:'),
        ('one alpha Member sha256:' + 'a' * 64, 'line 3: the roles'),
        ('one al/pha member sha256:' + 'a' * 64, 'line 3: the project'),
        ('o:ne alpha member sha256:' + 'a' * 64, 'line 3: the name'),
        ('one alpha member sha256:' + 'a' * 64 + ' soon', 'line 3: the time of expiry'),
        (ONE + ONE, 'line 4: there is a token one already'),
        (ONE + ONE.replace('one ', 'too '), 'line 4: it is the same token as one'),
    ])
    def test_a_wrong_line_is_told_by_its_number(self, line: str, why: str) -> None:
        with pytest.raises(BadConfiguration) as caught:
            parse(f'# first\n\n{line}', 'the-file')
        assert f'the-file: {why}' in str(caught.value)
        assert 'dpt_secret' not in str(caught.value) and 'a' * 64 not in str(caught.value)

    def test_every_wrong_line_is_told(self) -> None:
        with pytest.raises(BadConfiguration) as caught:
            parse('a\nb\nc d e f\n', 'the-file')
        assert [f'line {number}:' in str(caught.value) for number in (1, 2, 3)] == [True] * 3


class TestBasic:
    def test_only_to_read_the_status_page(self, make: Make, tokens: pathlib.Path) -> None:
        client = make(TokenAuth(str(tokens)))
        good = {'Authorization': 'Basic ' + base64.b64encode(b'me:dpt_one').decode()}
        assert status(client, path='/v2/zones', headers=good) == 401
        assert status(client, path='/statuses', headers=good) == 404
        answer = client.simulate_get('/status/zones', params={'name': 'example.com.'}, headers=good)
        assert answer.status_code not in (401, 403), answer.text
        for wrong in ('Basic !', 'Basic bWU=', 'Basic ' + base64.b64encode(b'me:no').decode(), 'Bearer dpt_one', ''):
            refused = client.simulate_get('/status/zones', params={'name': 'example.com.'},
                                          headers={'Authorization': wrong})
            assert refused.status_code == 401
            assert refused.headers['WWW-Authenticate'].startswith('Basic ')


class TestPolicy:

    def test_a_file_overrides_single_rules(self, make: Make, tokens: pathlib.Path) -> None:
        client = make(TokenAuth(str(tokens)), text='list_zones: "role:special"\nlist_pools: "rule:is_reader"\n')
        assert (status(client, 'dpt_one'), status(client, 'dpt_one', '/v2/servers')) == (403, 403)
        assert status(client, 'dpt_one', '/v2/pools') == 200

    def test_who_may_import_no_zone_file_may_not_import_several_unless_a_file_says_so(
            self, make: Make, tokens: pathlib.Path, tmp_path: pathlib.Path) -> None:
        client = make(TokenAuth(str(tokens)), text='create_zone_import: "role:admin"\n')
        refused = client.simulate_post('/v2/zones/tasks/import_batches', headers={'X-Auth-Token': 'dpt_one'},
                                       json={'zonefiles': ['$ORIGIN example.com.\n']})
        assert (refused.status_code, refused.json['type']) == (403, 'forbidden')
        found = rules(tmp_path, 'create_zone_import: "role:admin"\ncreate_zone_import_batch: "rule:is_member"\n')
        assert found.allow('create_zone_import_batch', Identity('p', ('member',), 'me', 'me'))

    def test_a_rule_that_asks_another_server_asks_it_each_time(self, tmp_path: pathlib.Path) -> None:
        class Answering(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers['Content-Length']))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(answers.pop(0))

            def log_message(self, *arguments: object) -> None:
                """Write nothing to the tests' output."""

        answers = [b'True', b'False', b'True']
        with http.server.HTTPServer(('127.0.0.1', 0), Answering) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            found = rules(tmp_path, f'list_zones: "role:member and http://127.0.0.1:{server.server_port}/"\n')
            who = Identity('p', ('member',), 'me', 'me')
            assert [found.allow('list_zones', who) for _ in range(3)] == [True, False, True]
            server.shutdown()

    def test_who_asks_decides_each_time(self, tmp_path: pathlib.Path) -> None:
        found = rules(tmp_path, 'list_zones: "project_id:alpha or user_id:me or role:special"\n')
        for _ in range(2):
            for project, roles, user, allowed in (
                    ('alpha', (), 'you', True), ('beta', (), 'you', False), ('beta', (), 'me', True),
                    ('beta', ('special',), 'you', True), ('beta', ('other',), 'you', False)):
                assert found.allow('list_zones', Identity(project, roles, user, 'key')) is allowed

    def test_a_rule_that_lets_everybody_in_still_needs_a_token(self, make: Make, tokens: pathlib.Path) -> None:
        assert status(make(TokenAuth(str(tokens)), text='list_zones: "@"\n')) == 401

    def test_what_is_open_may_be_closed(self, make: Make, tokens: pathlib.Path) -> None:
        client = make(TokenAuth(str(tokens)), text='show_document: "rule:is_reader"\n')
        assert (status(client, path='/openapi.json'), status(client, 'dpt_one', '/openapi.json')) == (401, 200)

    @pytest.mark.parametrize('text', ['list_zones: "role:"oops\n', 'list_zones: "rule:nowhere"\n',
                                      'list_zones: "role:a and"\n', 'a: "rule:b"\nb: "rule:a"\n', '- list\n'])
    def test_a_wrong_file_is_refused_at_the_start(self, tmp_path: pathlib.Path, text: str) -> None:
        with pytest.raises(BadConfiguration, match='policy_file'):
            rules(tmp_path, text)

    def test_a_file_that_is_named_has_to_be_there(self, tmp_path: pathlib.Path) -> None:
        conf = cfg.ConfigOpts()
        (tmp_path / 'pool.conf').write_text('[oslo_policy]\npolicy_file = nowhere.yaml\n')
        conf([f'--config-file={tmp_path}/pool.conf'], project='designate-pool')
        policy.make_enforcer(conf)
        with pytest.raises(BadConfiguration, match='there is no file nowhere.yaml'):
            policy.check_policy_file(conf)

    def test_a_change_is_read_and_a_wrong_one_is_not(self, tmp_path: pathlib.Path,
                                                     caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        found = rules(tmp_path, 'list_zones: "role:special"\n')
        special = Identity('p', ('special',), 'me', 'me')
        reader = Identity('p', ('reader',), 'me', 'me')
        assert (found.allow('list_zones', special), found.allow('list_zones', reader)) == (True, False)
        put(tmp_path / 'policy.yaml', 'list_zones: "rule:is_reader"\n')
        found.reload()
        assert (found.allow('list_zones', special), found.allow('list_zones', reader)) == (False, True)
        put(tmp_path / 'policy.yaml', 'list_zones: "rule:nowhere"\n')
        found.reload()
        assert found.allow('list_zones', reader)
        assert 'the new policy file is not used' in caplog.text

    @pytest.mark.parametrize(('role', 'reads'), [('admin', True), ('operator', True), ('member', True),
                                                 ('reader', True), ('other', False)])
    def test_what_the_page_on_incidents_freezes_can_be_read(self, tmp_path: pathlib.Path, role: str,
                                                            reads: bool) -> None:
        text, = (block.text for block in documentation.blocks(documentation.PAGES / 'guide' / 'incidents.rst')
                 if block.kind == 'yaml')
        frozen, who = rules(tmp_path, text), Identity('p', (role,), 'me', 'me')
        assert (frozen.allow('list_zones', who), frozen.allow('create_zone', who)) == (reads, role == 'admin')

    def test_a_rule_that_is_not_there_is_no(self, tmp_path: pathlib.Path) -> None:
        assert not rules(tmp_path).allow('no_such_rule', Identity('p', ('admin',), 'me', 'me'))

    def test_a_slip_of_the_hand_is_told(self, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
        rules(tmp_path, 'list_zone: "role:special"\nmine: "role:x"\nlist_zones: "rule:mine"\n')
        assert 'a rule list_zone that no operation uses' in caplog.text and 'rule mine' not in caplog.text

    def test_the_sample_is_what_the_generator_makes_now(self, monkeypatch: pytest.MonkeyPatch,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setattr(generator, 'get_policies_dict', lambda namespaces: {
            'designate_pool': policy.list_rules()})
        generator._generate_sample(['designate_pool'])
        assert (ROOT / 'etc' / 'policy.yaml.sample').read_text() == capsys.readouterr().out, 'run "make sample"'


class TestRates:
    def test_one_that_asks_too_often_waits_and_the_others_do_not(self, make: Make, tokens: pathlib.Path) -> None:
        tokens.write_text(ONE + TWO)
        clock = [0.0]
        client = make(TokenAuth(str(tokens)), RateLimits(2, 3, lambda: clock[0]))
        assert [status(client, 'dpt_one') for _ in range(5)] == [200, 200, 200, 429, 429]
        answer = client.simulate_get('/v2/zones', headers={'X-Auth-Token': 'dpt_one'})
        assert (answer.json['code'], answer.json['type'], answer.headers['Retry-After']) == (429, 'over_limit', '1')
        assert status(client, 'dpt_two') == 200
        clock[0] += 0.5
        assert [status(client, 'dpt_one') for _ in range(2)] == [200, 429]
        clock[0] += 100
        assert [status(client, 'dpt_one') for _ in range(4)] == [200, 200, 200, 429]

    def test_wrong_tokens_are_counted_by_address(self, make: Make, tokens: pathlib.Path) -> None:
        client = make(TokenAuth(str(tokens)), RateLimits(1, 2, lambda: 0.0))
        assert [status(client, f'dpt_guess{number}') for number in range(3)] == [401, 401, 429]
        assert status(client, 'dpt_one') == 200

    def test_the_longest_silent_are_forgotten(self) -> None:
        limits, refused = RateLimits(1, 1, lambda: 0.0, remembered=2), []
        for number, key in enumerate(('a', 'a', 'b', 'c', 'a', 'c')):
            try:
                limits.take(key)
            except OverLimit as error:
                refused.append((number, error.seconds))
        assert refused == [(1, 1), (5, 1)]


def test_headers_that_keystone_would_set_are_nothing_without_its_filter(make: Make) -> None:
    client = make(KeystoneAuth())
    forged = {'X-Identity-Status': 'Confirmed', 'X-Roles': 'admin', 'X-Project-Id': 'alpha', 'X-User-Id': 'me'}
    assert status(client, 'any', headers=forged) == 401


@pytest.mark.parametrize(('given', 'kept'), [
    ('req-11111111-2222-3333-4444-555555555555', True), ('11111111-2222-3333-4444-555555555555', False),
    ('req-11111111-2222-3333-4444-55555555555', False), ('req-x; drop', False), ('', False)])
def test_a_request_id_that_was_brought_along(make: Make, central: ObservedCentral, given: str, kept: bool) -> None:
    answer = make(NoAuth()).simulate_get('/v2/zones', headers={'X-Openstack-Request-Id': given})
    found = answer.headers['X-Openstack-Request-Id']
    assert (found == given) is kept and found.startswith('req-') and len(found) == 40
    assert central.contexts[-1].request_id == found


def test_nobody_waits_for_another_who_reads_files_that_are_looked_at_now_and_then() -> None:
    stamps, values, reading, go_on = iter('abb'), iter((1, 2)), threading.Event(), threading.Event()

    def read() -> int:
        value = next(values)
        if value == 2:
            reading.set()
            assert go_on.wait(60)
        return value

    policy_file = ReloadedFile('policy file', read, lambda: next(stamps), 1e-9)
    reader = threading.Thread(target=policy_file.get)
    reader.start()
    assert reading.wait(60)
    assert policy_file.get() == 1
    go_on.set()
    reader.join(60)
    assert policy_file.get() == 2
