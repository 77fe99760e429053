"""The command as a whole: its table of commands, its help, its forms, and how it finds the API."""

from __future__ import annotations

import argparse
import io
import json
import os

import pytest
from hypothesis import given, strategies as st

from designate_pool.cli import base, client, connection, terminal
from designate_pool.cli.client import ApiRefusal, Client
from designate_pool.cli.commands import plans, pools, recordsets, servers, status, zone_status, zones
from designate_pool.cli.connection import DEFAULT_URL, ApiConnection, CliError
from designate_pool.errors import InvalidField
from designate_pool.planner.providers.pool_api import PoolApi


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = 'utf-8'

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize('form, told', [('json', '[]\n'), ('yaml', '[]\n'), ('value', ''), ('table', ''),
                                        ('csv', '"id","name","serial","status","action"\n')])
def test_an_empty_list(run, form, told):
    assert run('zone', 'list', '-f', form).out == told


def test_one_thing_as_csv(run, zone):
    head, line = run('zone', 'show', 'example.com', '-f', 'csv', '-c', 'name', '-c', 'status').out.splitlines()
    assert (head, line) == ('"name","status"', '"example.com.","ACTIVE"')


def test_the_form_of_the_settings(run, zone, monkeypatch):
    monkeypatch.setenv('DESIGNATE_POOL_FORMAT', 'json')
    assert json.loads(run('zone', 'show', 'example.com').out)['name'] == 'example.com.'
    assert run('zone', 'show', 'example.com', '-f', 'value', '-c', 'name').out == 'example.com.\n'
    monkeypatch.setenv('DESIGNATE_POOL_FORMAT', 'nonsense')
    assert '| name ' in run('zone', 'show', 'example.com').out


def test_colour_is_for_terminals_of_those_who_want_it(monkeypatch):
    monkeypatch.delenv('NO_COLOR', raising=False)
    monkeypatch.setenv('TERM', 'xterm')
    assert terminal.wanted(Terminal()) and not terminal.wanted(io.StringIO())
    for name, value in (('NO_COLOR', '1'), ('TERM', 'dumb')):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            assert not terminal.wanted(Terminal())


def test_states_are_coloured_in_tables():
    table = '| a.example. | ACTIVE | ERROR |\n| ERROR of old | PENDING |\n'
    assert terminal.table(table) == ('| a.example. | \033[32mACTIVE\033[0m | \033[31mERROR\033[0m |\n'
                                     '| ERROR of old | \033[33mPENDING\033[0m |\n')


@pytest.mark.parametrize('value, formatter, told', [
    ([1, 2], 'table', '1\n2'), ([1, 2], 'json', [1, 2]), ({'a': 1}, 'csv', 'a=1'), (None, 'table', '-'),
    (None, 'csv', None), ([{'a': None}], 'value', 'a=None'), (0, 'table', 0),
])
def test_cells(value, formatter, told):
    assert base.cell(value, formatter) == told


@pytest.mark.parametrize('ended, code', [('done', 0), ('failed', 3), ('timed_out', 4), (None, 1)])
def test_the_exit_code_of_a_wait(ended, code):
    found = {'done': False, 'failed': False, 'timed_out': False, **({ended: True} if ended else {})}
    assert zone_status._exit_code(found) == code


@pytest.mark.parametrize('line, shown', [
    ('zone create example.com --ttl 60 --help', 'usage: designate-pool zone create '),
    ('zone --help list', 'usage: designate-pool zone list '),
    ('--help zone set x --ttl', 'usage: designate-pool zone set '),
    ('zone share -h', 'Command "zone share" matches:\n  zone share create\n  zone share delete\n  zone share list\n'),
])
def test_help_anywhere_in_a_line(run, line, shown):
    ran = run(*line.split())
    assert (ran.code, ran.out[:len(shown)], ran.err) == (0, shown, '')


@pytest.mark.parametrize('line, nearest', [
    ('zone lst example.com', ['zone list', 'zone set', 'zone delete']),
    ('zonelist', ['zone list', 'zone set', 'zone history']),
    ('recordset add example.com', ['recordset set', 'recordset list', 'recordset show']),
    ('zone lst --help', ['zone list', 'zone set', 'zone delete']),
    ('quota', ['quota show', 'quota set', 'quota unset']),
    ('explain example.com', ['zone explain', 'zone export', 'plan']),
])
def test_a_typo_lists_the_three_nearest_commands(run, line, nearest):
    ran = run(*line.split())
    assert ran.code == 2
    assert [shown.strip() for shown in ran.out.splitlines()[2:]] == nearest


ID, AT = '0123456789abcdef0123456789abcdef', '2030-01-02T03:04:05.000000'
VALUES = {'zone_name': 'example.com.', 'type': 'CNAME', 'records': ['a.' + 'very-long-name.' * 12], 'ttl': 86400,
          'serial': 2030010203, 'status': 'PENDING', 'action': 'UPDATE', 'state': 'maintenance', 'zones': 10000,
          'waiting': 10, 'failing': 2, 'note': 'the server was stopped at noon ' * 5, 'current': False,
          'last_error': 'no answer from 192.0.2.1 ' * 8, 'service_name': 'pool_manager', 'hostname': 'ns1.example.com',
          'pool_name': 'default', 'kind': 'CONTENTS', 'findings': 0, 'coverage': 1.0, 'server_name': 'ns1.example.com',
          'found': 'serves 2030010203, not 2030010204', 'mended': True, 'zone': 'example.com.', 'target': 'pool',
          'creates': 1, 'updates': 2, 'deletes': 3, 'stats': {'heartbeats': 1}}


def emitted(shown, long_columns=(), **options):
    """The lines of a table of one row."""
    row = [VALUES.get(column, ID if column.endswith('id') else AT if column.endswith('_at') else 'x')
           for column in shown]
    row = [base.cell({'name': 'www.example.com.'}.get(column, value), 'table') for column, value in zip(shown, row)]
    stream = Terminal()
    base.Table(long_columns).emit_list(shown, [row], stream, argparse.Namespace(
        **{'long': False, 'columns': [], 'max_width': 0, 'fit_width': False, 'print_empty': False, **options}))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize('columns, command', [
    (zones.LIST_COLUMNS, zones.ZoneList), (recordsets.LIST_COLUMNS, recordsets.RecordsetList),
    ((*recordsets.LIST_COLUMNS, 'zone_name'), recordsets.RecordsetList), (servers.LIST_COLUMNS, servers.ServerList),
    (zone_status.SERVER_COLUMNS, zone_status.ZoneServers), (status.COLUMNS, status.ServiceList),
    (pools.AUDIT_COLUMNS, pools.PoolAudit), (pools.FINDING_COLUMNS, pools.PoolAuditFindings),
    (plans.LIST_COLUMNS, plans.PlanList), (zones.ACCEPT.list_columns, zones.ZoneTransferAcceptList),
    (zones.REQUEST.list_columns, zones.ZoneTransferRequestList),
], ids=lambda value: getattr(value, '__name__', ''))
def test_tables_fit_80_columns(columns, command, monkeypatch):
    monkeypatch.setenv('NO_COLOR', '1')
    monkeypatch.setenv('COLUMNS', '80')
    lines = emitted(columns, command.long_columns)
    assert max(map(len, lines)) <= 80
    if 'name' in columns:
        assert lines[1].startswith('| name ') and lines[3].startswith('| www.example.com. ') and ID[:9] not in lines[3]
    elif 'id' in columns and 'id' not in command.long_columns:
        assert f'| {ID[:8]} ' in lines[3]


def test_the_ids_of_a_batch_are_whole_since_they_begin_alike():
    table = base.Table()
    assert table._arranged([('id', ID, 'f' * 32)], is_long=False) == [['id', ID[:8], 'f' * 8]]
    assert table._arranged([('id', ID, ID[:-1] + 'f')], is_long=False) == [['id', ID, ID[:-1] + 'f']]


def test_all_columns_of_a_table():
    lines = emitted(zones.LIST_COLUMNS, long=True)
    assert lines[1].split()[1:4:2] == ['name', 'id'] and ID in lines[3]
    assert ID in emitted(('name', 'id'), columns=['name', 'id'])[3]


@pytest.mark.parametrize('typed, seconds', [('3600', 3600), ('1h', 3600), ('1h30m', 5400), ('1w2d', 777600)])
def test_a_ttl_as_in_a_zone_file(run, zone, typed, seconds):
    assert run('zone', 'set', 'example.com', '--ttl', typed, '-f', 'json').json['ttl'] == seconds
    assert run('recordset', 'create', 'example.com', 'www', 'A', '--record', '192.0.2.1', '--ttl', typed, '-f',
               'json').json['ttl'] == seconds


def test_what_is_no_ttl(run, capsys):
    with pytest.raises(SystemExit):
        run('zone', 'set', 'example.com', '--ttl', 'soon')
    assert "argument --ttl: 'soon' is no TTL like 3600, 1h or 1h30m" in capsys.readouterr().err


def test_a_name_that_is_not_ascii_is_told_as_it_is_written_in_dns(run, zone):
    refused = run('zone', 'create', 'münchen.example', '--email', 'a@example.com')
    assert refused.err == 'name: not ASCII; write münchen.example as xn--mnchen-3ya.example.\n'
    refused = run('recordset', 'create', 'example.com', 'mail', 'MX', '--record', '10 bücher.example.')
    assert 'write bücher.example as xn--bcher-kva.example' in refused.err


@pytest.mark.parametrize('given_name, zone, full', [
    ('@', 'example.com.', 'example.com.'),
    ('www', 'example.com.', 'www.example.com.'),
    ('a.b', 'example.com.', 'a.b.example.com.'),
    ('*', 'example.com.', '*.example.com.'),
    ('www.example.com.', 'example.com.', 'www.example.com.'),
    ('www.example.com', 'example.com.', 'www.example.com.'),
    ('WWW.Example.com', 'example.com.', 'WWW.Example.com.'),
    ('example.com', 'example.com.', 'example.com.'),
    ('notexample.com', 'example.com.', 'notexample.com.example.com.'),
    ('www.example.org.', 'example.com.', 'www.example.org.'),
    (r'dot\.', 'example.com.', r'dot\..example.com.'),
    ('com', '.', 'com.'),
])
def test_a_name_in_its_zone(given_name, zone, full):
    assert client.in_zone(given_name, zone) == full


def test_a_zone_gets_its_dot():
    assert client.of_zone('example.com') == client.of_zone('example.com.') == 'example.com.'
    assert client.of_zone(r'odd\.') == r'odd\..'


#: A backslash at the very end escapes nothing, so such a text is no name.
NAMES = st.text(min_size=1).filter(lambda text: (len(text) - len(text.rstrip('\\'))) % 2 == 0)


@given(name=NAMES, zone=NAMES.map(client.of_zone))
def test_completing_twice_is_completing_once(name, zone):
    full = client.in_zone(name, zone)
    assert client.is_absolute(full)
    assert client.in_zone(full, zone) == full


@pytest.mark.parametrize('given_text, exact, perhaps', [
    ('a86dba58-0043-4cc6-a1bb-69d5e86f3ca3', True, True), ('A86DBA5800434CC6A1BB69D5E86F3CA3', True, True),
    ('bind9:192.0.2.1:53', True, False), ('BIND9:192.0.2.1:53', True, False), ('192.0.2.1', False, True),
    ('a86d', False, True), ('a86dba58-00', False, True), ('a86', False, False), ('192.0.2', False, False),
    ('86db', False, False), ('', False, False),
])
def test_what_a_server_is_called(given_text, exact, perhaps):
    server = {'id': 'a86dba58-0043-4cc6-a1bb-69d5e86f3ca3', 'name': 'bind9:192.0.2.1:53', 'host': '192.0.2.1'}
    assert client.is_called(given_text, server) == exact
    assert client.may_be_called(given_text, server) == perhaps


def test_a_recordset_that_changes_between_reading_and_writing_is_not_overwritten(run, central, monkeypatch):
    run('zone', 'create', 'example.com', '--email', 'hostmaster@example.com')
    run('recordset', 'create', 'example.com', 'www', 'A', '--record', '192.0.2.1')
    send = client.Client.json

    def change(asker, method, path, *rest, **options):
        if method == 'PUT':
            send(asker, method, path, {'records': ['192.0.2.7']})
        return send(asker, method, path, *rest, **options)

    monkeypatch.setattr(client.Client, 'json', change)
    ran = run('recordset', 'set', 'example.com', 'www', 'A', '--record', '192.0.2.9')
    assert ran.code == 1
    assert 'The recordset www.example.com. A has changed since you read it' in ran.err
    assert 'Nothing was changed.' in ran.err
    assert '192.0.2.7' in run('recordset', 'show', 'example.com', 'www', 'A').out


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
