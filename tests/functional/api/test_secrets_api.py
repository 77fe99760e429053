"""Tokens and keys are in no answer and no log."""

from __future__ import annotations

import base64
import itertools
import pathlib
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import requests

from designate_pool.api.auth.token_file import digest
from testing.stack import Stack
from tests.functional.api.test_authorisation import LINES, OPERATIONS, filled

PROJECTS, ROLES = ('alpha', 'beta'), ('reader', 'member', 'operator', 'admin')
#: What must not be found anywhere, by what it is.
TOKENS = {(project, role): f'dpt_token-of-{project}-{role}-{uuid.uuid4().hex}' for project in PROJECTS
          for role in ROLES}
WRONG_TOKEN = f'dpt_guessed-{uuid.uuid4().hex}'
TSIG = base64.b64encode(b'a TSIG secret that nobody may see').decode()
NO_TSIG = 'no-base64-and-yet-secret'
CONTROL = f'control-{uuid.uuid4().hex}'


class Place:
    """A pool with two projects, each with a zone."""

    def __init__(self, folder: pathlib.Path) -> None:
        tokens = folder / 'tokens'
        tokens.write_text(''.join(f'{project}-{role} {project} {role} sha256:{digest(token)}\n'
                                  for (project, role), token in TOKENS.items()))
        tokens.chmod(0o600)
        self.server_id = str(uuid.uuid4())
        section = (f'[backend:fake:{self.server_id}]\nhost = 127.0.0.1\nport = 1\ncall_timeout = 2\n'
                   f'tsig_key = pool.example.:hmac-sha256:{base64.b64encode(CONTROL.encode()).decode()}')
        self.stack = Stack(folder / 'stack', [section], f'sqlite:///{folder}/pool.sqlite', concurrency='threading')
        text = self.stack.config.read_text().replace('[DEFAULT]', '[DEFAULT]\ndebug = true', 1)
        self.stack.config.write_text(text.replace('[service:api]', (
            f'[service:api]\nauth = token\ntokens_file = {tokens}\nrate_limit = 0'), 1))
        self.numbers = itertools.count()
        self.session = requests.Session()  # answers that are kept would each keep a connection of their own
        self.answers: list[tuple[str, requests.Response]] = []

    def ask(self, token: str, method: str, path: str, **options: Any) -> requests.Response:
        """The answer, which is kept."""
        headers = {'X-Auth-Token': token, **options.pop('headers', {})}
        found = self.session.request(method, self.stack.url + path, headers=headers, timeout=60,
                                     allow_redirects=False, **options)
        self.answers.append((token, found))
        return found

    def things(self, project: str) -> dict[str, str]:
        token = TOKENS[project, 'admin']
        name = f'{project}{next(self.numbers)}.example.'
        zone = self.ask(token, 'POST', '/v2/zones', json={
            'name': name, 'email': f'hostmaster@{project}.example',
            'recordsets': [{'name': f'www.{name}', 'type': 'A', 'records': ['192.0.2.1']}]}).json()['id']
        recordset = self.ask(token, 'GET', f'/v2/zones/{zone}/recordsets?type=A').json()['recordsets'][0]['id']
        key = self.ask(token, 'POST', '/v2/tsigkeys', json={
            'name': f'key-{name}', 'algorithm': 'hmac-sha256', 'secret': TSIG, 'scope': 'ZONE', 'resource_id': zone})
        assert key.status_code == 201, key.text
        export = self.ask(token, 'POST', f'/v2/zones/{zone}/tasks/export').json()['id']
        return {'zone_id': zone, 'zone_name': name, 'zone': zone, 'project_id': project, 'recordset_id': recordset,
                'tsigkey_id': key.json()['id'], 'export_id': export, 'server_id': self.server_id,
                'pool_id': self.ask(token, 'GET', '/v2/pools').json()['pools'][0]['id'],
                'import_id': export, 'plan_id': export, 'service_id': export}


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp('secrets'))
    with made.stack:
        yield made


def run(place: Place, name: str, token: str, things: Mapping[str, str]) -> None:
    """Ask for one operation as it is meant, and with bodies that are wrong."""
    line, operation = LINES[name], OPERATIONS[name]
    things = {**things, 'name': f'new{next(place.numbers)}.example.'}
    path, query = filled(operation.path, things), filled(dict(line.query), things)
    place.ask(token, operation.method, path, params=query, json=filled(line.body, things),
              data=filled(line.text, things), headers={'Content-Type': 'text/dns'} if line.text else {})
    if line.body is not None:
        for wrong in ({**line.body, 'secret': NO_TSIG}, {**line.body, NO_TSIG[:5]: TSIG}, [TSIG], {'secret': [TSIG]}):
            place.ask(token, operation.method, path, json=filled(wrong, things))


def test_no_secret_is_in_any_answer_or_log(place: Place) -> None:
    for name in OPERATIONS:
        if name == 'reload_servers':
            continue  # last, since it has the others wait
        for token in (TOKENS['alpha', 'admin'], TOKENS['alpha', 'reader'], WRONG_TOKEN):
            run(place, name, token, place.things('alpha') if token == TOKENS['alpha', 'admin'] else things(place))
    run(place, 'reload_servers', TOKENS['alpha', 'admin'], things(place))
    place.ask(f'{WRONG_TOKEN}\x00', 'GET', '/v2/zones')
    logs = ''.join(process.log.read_text(errors='replace') for process in place.stack.processes.values())
    assert 'DEBUG' in logs and len(place.answers) > 100
    control = base64.b64encode(CONTROL.encode()).decode()
    digests = [digest(token) for token in TOKENS.values()]
    for secret in (*TOKENS.values(), WRONG_TOKEN, TSIG, CONTROL, control, *digests):
        assert secret not in logs
        for _, answer in place.answers:
            # not its text: to guess the character set of each answer takes longer than all the rest
            assert secret.encode() not in answer.content and secret not in str(answer.headers), answer.url
    assert not [answer.url for _, answer in place.answers if answer.status_code == 500]
    stored = place.ask(TOKENS['alpha', 'admin'], 'GET', '/v2/tsigkeys?limit=max').json()['tsigkeys']
    assert {key['secret'] for key in stored} == {'***'}


_SHARED: dict[str, str] = {}


def things(place: Place) -> dict[str, str]:
    """Things for those who only try."""
    if not _SHARED:
        _SHARED.update(place.things('alpha'))
    return _SHARED


def test_the_request_id_is_that_of_the_answer_and_of_the_zone(place: Place) -> None:
    given = f'req-{uuid.uuid4()}'
    made = place.ask(TOKENS['alpha', 'member'], 'POST', '/v2/zones', headers={'X-Openstack-Request-Id': given}, json={
        'name': 'with-an-id.example.', 'email': 'hostmaster@example.com'})
    assert (made.status_code, made.headers['X-Openstack-Request-Id']) == (202, given)
    explained = place.ask(TOKENS['alpha', 'reader'], 'GET', f'/v2/zones/{made.json()["id"]}/explain')
    assert explained.json()['request_id'] == given
