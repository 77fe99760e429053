"""Where the command is told of the API: options, the environment, the file of clouds."""

from __future__ import annotations

import argparse
import os

import pytest

from designate_pool.cli import connection
from designate_pool.cli.client import ApiRefusal, Client, session_for
from designate_pool.cli.connection import DEFAULT_URL, ApiConnection, CliError
from designate_pool.errors import InvalidField
from designate_pool.planner.providers.pool_api import PoolApi

CLOUDS = """\
default: production
clouds:
  production: {url: 'https://dns.example.com', token: secret-of-production, format: json}
  laboratory: {url: 'http://192.0.2.1:9001', token_file: laboratory.token, project: blue}
  bare: {project: red}
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / 'clouds.yaml'
    path.write_text(CLOUDS)
    path.chmod(0o600)
    (tmp_path / 'laboratory.token').write_text('secret-of-laboratory\n')
    (tmp_path / 'laboratory.token').chmod(0o600)
    return path


def gather(file, *words, warnings=None, **environ):
    parser = argparse.ArgumentParser()
    connection.add_options(parser)
    told = [] if warnings is None else warnings
    files = {connection.VARIABLE: str(file)} if file else {}
    found = connection.resolve(parser.parse_args(words), {**files, **environ}, told.append)
    assert warnings is not None or not told
    return found


@pytest.fixture
def no_file(monkeypatch, tmp_path):
    monkeypatch.setattr(connection, 'PLACES', (f'{tmp_path}/none.yaml', f'{tmp_path}/neither.yaml'))


def test_nothing_is_said(no_file):
    found = gather(None)
    assert (found, found.url) == (ApiConnection(), DEFAULT_URL)


def test_a_user_without_a_home(monkeypatch, tmp_path):
    monkeypatch.setattr(connection, 'PLACES', ('~/clouds.yaml', f'{tmp_path}/none.yaml'))
    monkeypatch.delenv('HOME')
    monkeypatch.setattr('pwd.getpwuid', lambda uid: {}[uid])
    assert gather(None) == ApiConnection()


def test_the_default_cloud(file):
    found = gather(file)
    assert (found.url, found.token, found.format) == ('https://dns.example.com', 'secret-of-production', 'json')


def test_an_option_goes_before_the_environment_and_that_before_the_file(file):
    environ = {'DESIGNATE_POOL_URL': 'http://192.0.2.2', 'DESIGNATE_POOL_TOKEN': 'from-environment'}
    found = gather(file, **environ)
    assert (found.url, found.token) == ('http://192.0.2.2', 'from-environment')
    found = gather(file, '--url', 'http://192.0.2.3', '--token', 'from-option', **environ)
    assert (found.url, found.token) == ('http://192.0.2.3', 'from-option')


def test_a_cloud_that_is_named_goes_before_the_environment(file):
    found = gather(file, '--cloud', 'laboratory', DESIGNATE_POOL_URL='http://192.0.2.2', DESIGNATE_POOL_TOKEN='other')
    assert (found.url, found.token, found.project) == ('http://192.0.2.1:9001', 'secret-of-laboratory', 'blue')
    assert gather(file, DESIGNATE_POOL_CLOUD='laboratory').project == 'blue'
    assert gather(file, '--cloud', 'bare', DESIGNATE_POOL_TOKEN='t').token == 't'


def test_the_token_of_a_cloud_goes_to_that_cloud_alone(file):
    found = gather(file, '--url', 'http://192.0.2.99')
    assert (found.token, found.project) == (None, None)
    assert gather(file, '--url', 'https://dns.example.com/').token == 'secret-of-production'


def test_a_cloud_that_is_not_there(file, no_file):
    with pytest.raises(CliError, match='There is no cloud elsewhere in .*; there are: bare, laboratory, production'):
        gather(file, '--cloud', 'elsewhere')
    with pytest.raises(CliError, match='There is no cloud elsewhere, for there is no file of clouds'):
        gather(None, '--cloud', 'elsewhere')


@pytest.mark.parametrize('text, told', [
    ('clouds: [', 'this is no YAML'),
    ('clouds: {a: {token: "hidden-thing}}', 'this is no YAML'),
    ('[]', 'the file must be a mapping'),
    ('clouds: {a: {url: 1}}', 'clouds.a.url: must be a text'),
    ('clouds: {a: {adress: x}}', 'clouds.a.adress is not known here; known are url,'),
    ('clouds: {a: {token: hidden-thing, token_file: b}}', 'give token or token_file, not both'),
    ('cloud: {}', 'cloud is not known here'),
    ('default: b\nclouds: {a: {}}', 'there is no cloud b; there are: a'),
    ('default: a\nclouds: {a: {token_file: gone}}', 'gone cannot be read'),
])
def test_a_file_that_is_wrong(file, text, told):
    file.write_text(text)
    with pytest.raises(CliError) as failed:
        gather(file)
    assert told in str(failed.value)
    assert '\n' not in str(failed.value) and 'hidden' not in str(failed.value)


def test_others_can_read_the_token(file):
    os.chmod(file, 0o644)
    warnings = []
    gather(file, warnings=warnings)
    assert warnings == [f"Others can read the token in {file}; 'chmod 600 {file}' keeps it to you."]


def test_what_is_sent():
    session = session_for(DEFAULT_URL, ApiConnection(token='t-1', project='blue', all_projects=True))
    sent = {name: session.headers[name] for name in ('X-Auth-Token', 'X-Auth-Sudo-Project-ID', 'X-Auth-All-Projects')}
    assert sent == {'X-Auth-Token': 't-1', 'X-Auth-Sudo-Project-ID': 'blue', 'X-Auth-All-Projects': 'true'}
    assert 'X-Auth-Token' not in session_for(DEFAULT_URL, ApiConnection()).headers


@pytest.mark.parametrize('wrong', [ApiConnection(token='hid den'), ApiConnection(token='hidden\n'),
                                   ApiConnection(project='a b')])
def test_what_cannot_be_sent(wrong):
    with pytest.raises(CliError) as failed:
        Client(DEFAULT_URL, settings=wrong)
    assert 'hid' not in str(failed.value)


def test_settings_do_not_show_the_token():
    assert 'hidden' not in repr(ApiConnection(token='hidden'))


def test_the_planner_takes_a_token(monkeypatch):
    monkeypatch.setenv('DESIGNATE_POOL_TOKEN', 'from-environment')
    assert PoolApi(DEFAULT_URL)._session.headers['X-Auth-Token'] == 'from-environment'
    assert PoolApi(DEFAULT_URL, token='given')._session.headers['X-Auth-Token'] == 'given'
    assert 'X-Auth-Token' not in PoolApi(DEFAULT_URL, token='')._session.headers
    with pytest.raises(InvalidField):
        PoolApi(DEFAULT_URL, token='a b')


@pytest.mark.parametrize('status, type, told', [
    (401, 'unauthorized', 'DESIGNATE_POOL_TOKEN'), (401, '', 'DESIGNATE_POOL_TOKEN'), (403, 'forbidden', '--project'),
    (413, 'over_quota', 'designate-pool quota show'), (503, 'too_many_waits', 'continue in the background'),
])
def test_a_refusal_says_what_to_do(status, type, told):
    refused = str(ApiRefusal(status, {'type': type, 'message': 'No.\nNever.'}))
    assert refused.startswith('No. Never. ') and told in refused and '\n' not in refused
