"""What is drawn over again: progress by server, and the pool on one screen."""

from __future__ import annotations

import io
import re
from argparse import Namespace
from datetime import datetime, timezone

import pytest

from designate_pool.cli import base, terminal
from designate_pool.cli.commands import status
from designate_pool.cli.zone_wait import WaitProgress
from tests.unit.cli.test_app import Terminal

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
SERVER = {'id': 'a', 'name': 'fake:192.0.2.1:53', 'action': 'UPDATE', 'status': 'ERROR', 'serial': None,
          'current': False, 'last_error': 'refused'}


@pytest.fixture
def xterm(monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setenv('COLUMNS', '80')
    monkeypatch.setenv('LINES', '24')
    monkeypatch.delenv('NO_COLOR', raising=False)


def test_what_commands_a_terminal_is_shown_as_what_it_is_not():
    text = 'a\x9b31mb\x1b]0;c\x07d\u202ee\u2028f\x85g\r'
    assert terminal.sanitized(text) == 'a\ufffd31mb\ufffd]0;c\ufffdd\ufffde\ufffdf\ufffdg\ufffd'
    assert terminal.sanitized('zwölf\t区域\n') == 'zwölf\t区域\n'
    table, told = io.StringIO(), io.StringIO()
    names, data = ('name', 'found'), ('example.com.', [{'last_error': text}])
    base.Table().emit_one(names, [base.cell(each, 'table') for each in data], table,
                          Namespace(max_width=0, fit_width=False, print_empty=False))
    base.Text(lambda found: f'{found["found"][0]["last_error"]}\n').emit_one(names, data, told, Namespace(columns=[]))
    base.Text(str).emit_one(names, data, told, Namespace(columns=['found']))
    for shown in (table.getvalue(), told.getvalue()):
        assert '31mb' in shown and not re.search('[\x07\r\x1b\x85\x9b\u2028\u202e]', shown)


def test_progress_is_a_line_per_news_where_it_is_no_terminal():
    stream = io.StringIO()
    WaitProgress(stream, 5)(SERVER, 0.0123)
    assert stream.getvalue() == 'fake:192.0.2.1:53  UPDATE ERROR    serial -  12 ms  refused\n'


def test_progress_is_redrawn_on_a_terminal(xterm):
    stream = Terminal()
    progress = WaitProgress(stream, 5)
    progress(SERVER, 0.0123)
    assert '\033[31mx\033[0m fake:192.0.2.1:53  UPDATE ERROR    serial - of 5  12 ms  refused' in stream.getvalue()
    progress({**SERVER, 'id': 'b', 'status': 'PENDING', 'last_error': None}, 0.1)
    stream.truncate(0)
    progress({**SERVER, 'status': 'SUCCESS', 'current': True, 'serial': 5, 'last_error': None}, 0.2)
    drawn = stream.getvalue().lstrip('\0')
    assert drawn.startswith('\033[2A')  # over the two lines
    assert '\033[32m+\033[0m fake:192.0.2.1:53  UPDATE SUCCESS  serial 5  200 ms' in drawn
    assert '\033[33m.\033[0m fake:192.0.2.1:53  UPDATE PENDING' in drawn


@pytest.mark.parametrize('line, width, told', [
    ('abc', 5, 'abc'), ('abcdef', 3, 'abc'), ('a\033[31mbcd\033[0m', 3, 'a\033[31mbc\033[0m'), ('区域名', 5, '区域'),
    ('a\nb', 5, 'a b'),
])
def test_a_line_is_cut_to_the_terminal(line, width, told):
    assert terminal.fit(line, width) == told
    assert terminal.width_of(told) <= width


def test_more_lines_than_the_terminal_has(xterm):
    stream = Terminal()
    terminal.LiveLines(stream).draw([f'line {number}' for number in range(40)])
    assert stream.getvalue().count('\n') == 23
    assert 'and 18 more' in stream.getvalue()


def test_ctrl_c_says_what_goes_on(run, central, zone, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(base.zone_wait, 'wait_for', interrupted)
    ran = run('zone', 'set', 'example.com', '--ttl', '60', '--wait')
    assert ran.code == 130
    assert "The change continues in the background; 'designate-pool zone wait example.com. --serial " in ran.err


def found(servers=3, failing=0, recent=5, **values):
    rows = [{'name': f'bind9:192.0.2.{number}:53', 'state': 'active', 'silent_since': None, 'zones': 1000,
             'waiting': int(number < failing), 'failing': int(number < failing),
             'oldest_due_at': '2026-05-01T11:59:00' if number < failing else None,
             'failures': [{'zone_name': 'example.com.', 'action': 'UPDATE', 'error': 'connection refused'}]
             if number < failing else []} for number in range(servers)]
    changes = [{'name': f'{number}.example.com.', 'serial': 4294967295, 'status': 'ACTIVE', 'action': 'NONE',
                'created_at': None, 'updated_at': '2026-05-01T11:59:50', 'changed_at': '2026-05-01T11:59:50',
                'converged_at': '2026-05-01T11:59:50.500000'} for number in range(recent)]
    services = [{'service_name': 'central', 'hostname': 'one', 'status': 'UP', 'heartbeated_at': '2026-05-01T11:59:59'},
                {'service_name': 'minidns', 'hostname': 'two', 'status': 'DOWN',
                 'heartbeated_at': '2026-05-01T11:00:00'}]
    zones = {'count': 1000, 'PENDING': {'count': 100, 'more': True, 'names': ['a.example.']},
             'ERROR': {'count': 1, 'more': False, 'names': ['b.example.']}}
    return {'url': 'http://127.0.0.1:9001', 'version': '1.0', 'status': 'ok', 'central': 'ok', 'broker': 'ok',
            'servers': rows, 'zones': zones, 'services': services, 'recent': changes, 'findings': [], 'refused': {},
            **values}


def drawn(*arguments, width=80, height=24, **values):
    """The lines of a status; *values* as of :func:`found`."""
    return status.screen_lines(found(*arguments, **values), NOON, width, height, lambda text, word: text)


def test_the_pool_on_one_screen():
    text = '\n'.join(drawn(failing=1))
    for part in ('designate-pool 1.0 at http://127.0.0.1:9001: ok', 'SERVERS  3, 3 active, 1 behind',
                 'bind9:192.0.2.0:53  active   1000       1        1       1 min',
                 'example.com. UPDATE on bind9:192.0.2.0:53: connection refused',
                 'ZONES  1000 in all, 100+ PENDING, 1 ERROR', 'ERROR  b.example.', 'SERVICES  1 up, 1 down: central',
                 'DOWN  minidns on two, last heartbeat 1 h ago', '0.example.com. ', '10 s ago  in 500 ms'):
        assert part in text, (part, text)


@pytest.mark.parametrize('servers', [0, 1, 3, 40])
@pytest.mark.parametrize('width, height', [(80, 24), (80, 12), (60, 24), (200, 60)])
def test_it_fits(servers, width, height):
    lines = drawn(servers, servers, width=width, height=height)
    assert len(lines) <= height
    assert max(map(terminal.width_of, lines)) <= width
    if height >= 24:
        assert any(line.startswith('RECENT CHANGES') for line in lines)


def test_what_the_token_may_not_see():
    text = '\n'.join(drawn(**{'services': None, 'refused': {'services': 'Not allowed.'}}))
    assert 'SERVICES  not shown: Not allowed.' in text


def test_central_is_away():
    parts = dict.fromkeys(('servers', 'zones', 'services', 'recent'))
    away = {**found(), **parts, 'status': 'unavailable', 'central': 'central does not answer'}
    lines = status.screen_lines(away, NOON, 100, 24, lambda text, word: text)
    assert lines == ['designate-pool 1.0 at http://127.0.0.1:9001: unavailable   2026-05-01 12:00:00 UTC',
                     'Central: central does not answer']


def test_a_server_that_answers_nobody_is_shown_as_such():
    silent = found(servers=2)
    silent['servers'][1]['silent_since'] = '2026-05-01T09:21:10.123456'
    text = '\n'.join(status.screen_lines(silent, NOON, 80, 24, lambda text, word: text))
    assert 'SERVERS  2, 2 active, 0 behind, 1 silent' in text
    assert 'bind9:192.0.2.1:53  silent since 09:21:10 ' in text


def test_what_is_due_later_is_not_due_now():
    later = found(servers=1, failing=1)
    later['servers'][0]['oldest_due_at'] = '2026-05-01T12:02:06.500000'
    assert 'in 2 min 7 s' in '\n'.join(status.screen_lines(later, NOON, 80, 24, lambda text, word: text))


def test_no_address_is_cut():
    shown = found(1, 1)
    name = f'pdns:[{"2001:db8:1234:5678:" * 2}1]:5353 in a pool with a long name'
    shown['servers'][0] |= {'name': name, 'failures': [{
        'zone_name': 'example.com.', 'action': 'UPDATE',
        'error': 'the server at [2001:db8:1234:5678::1]:8081 refused the connection of 192.0.2.100:5353'}]}
    shown['recent'][0]['name'] = f'{"long." * 12}example.com.'
    lines = status.screen_lines(shown, NOON, 80, 30, lambda text, word: text)
    text = ' '.join(' '.join(lines).split())
    assert max(map(terminal.width_of, lines)) <= 80
    for part in (name, 'refused the connection of 192.0.2.100:5353', f'{"long." * 12}example.com.', 'in 500 ms'):
        assert part in text, (part, lines)
