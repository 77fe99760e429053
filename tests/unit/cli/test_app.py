"""The command as a whole: its table of commands, its help, its forms."""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil

import pytest

from designate_pool.cli import base, terminal
from designate_pool.cli.commands import plans, pools, recordsets, servers, status, zone_status, zones


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
    monkeypatch.setattr(shutil, 'get_terminal_size', lambda *_: os.terminal_size((80, 24)))
    lines = emitted(columns, command.long_columns)
    assert max(map(len, lines)) <= 80
    if 'name' in columns:
        assert lines[1].startswith('| name ') and lines[3].startswith('| www.example.com. ') and ID[:9] not in lines[3]
    elif 'id' in columns and 'id' not in command.long_columns:
        assert f'| {ID[:8]} ' in lines[3]


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
