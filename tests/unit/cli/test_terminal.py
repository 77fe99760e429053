"""What people see: progress by server, the pool on one screen, and why a zone is not ACTIVE."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from argparse import Namespace
from datetime import datetime, timedelta, timezone

import pytest

from designate_pool.api.views import explain as sentences, zone_servers
from designate_pool.cli import base, terminal
from designate_pool.cli.commands import status, zone_status
from designate_pool.cli.zone_wait import WaitProgress
from designate_pool.model import Action, Domain, Outcome, Reason, ServerState, ServerStatus, Status
from tests.fixtures.observed_central import POOL, SERVER_IDS, SERVERS
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


def test_what_was_just_changed_was_so_now():
    just = found(recent=1)
    just['recent'][0]['changed_at'] = '2026-05-01T11:59:59.700000'
    text = '\n'.join(status.screen_lines(just, NOON, 80, 24, lambda text, word: text))
    assert '   now' in text and 'now ago' not in text


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


ZONE = Domain('a' * 32, 'example.com.', 'b' * 32, 'default', 'a@example.com', 60, 2026050100, Action.UPDATE)
SUCCESS, ERROR = Outcome.SUCCESS, Outcome.ERROR


def row(server, status, serial, action=Action.UPDATE, **values):
    return ServerStatus(SERVER_IDS[server], ZONE.id, action, ZONE.serial, status=status, serial_number=serial,
                        created_at=NOON, **values)


FACTS = {'changed_at': '2026-05-01T11:59:58.000000', 'converged_at': None, 'request_id': 'req-1'}


def text(rows, threshold=100, states=('active',) * 3, facts=FACTS, **zone):
    """
    :param states: of the servers; each has been in it since twelve minutes before noon
    """
    pool = dataclasses.replace(POOL, threshold_percentage=threshold)
    servers = [dataclasses.replace(server, state=ServerState(state)) for server, state in zip(SERVERS, states)]
    domain = dataclasses.replace(ZONE, **zone)
    told = {**facts, **sentences.explain(zone_servers.zone_servers(domain, servers, rows, pool, ''), NOON)}
    laid_out = zone_status.explanation(told, NOON)
    for each in told['servers']:
        if not each['current']:
            assert each['state_of'] in ' '.join(laid_out.split())
    return laid_out


def test_who_else_is_notified_is_said():
    rows = [row(each, SUCCESS, 2026050100) for each in range(3)]
    told = text(rows, facts={**FACTS, 'former_pool': {'name': 'silver', 'until': '2026-05-01T12:59:30.000000'}})
    assert 'The servers of the pool silver, which it was moved from, keep it for another 59 min 30 s.\n' in told
    told = text(rows, facts={**FACTS, 'also_notifies': ['192.0.2.53:5300', '192.0.2.54 key transfer.example.com.']})
    assert 'Also notified of each change: 192.0.2.53:5300, 192.0.2.54 key transfer.example.com.\n' in told
    assert 'Also' not in text(rows)


def test_active():
    told = text([row(each, SUCCESS, 2026050100) for each in range(3)], action=Action.NONE, status=Status.ACTIVE,
                facts={**FACTS, 'converged_at': '2026-05-01T11:59:58.250000'})
    assert told == """\
example.com. is ACTIVE at serial 2026050100 on every server.

      server             action  status   serial      wanted      tries  next try
  ok  fake:192.0.2.1:53  UPDATE  SUCCESS  2026050100  2026050100  0      -
  ok  fake:192.0.2.2:53  UPDATE  SUCCESS  2026050100  2026050100  0      -
  ok  fake:192.0.2.3:53  UPDATE  SUCCESS  2026050100  2026050100  0      -

Changed last at 2026-05-01 11:59:58 UTC by request req-1; the pool had that after 250 ms.
To do: nothing.
"""


@pytest.mark.parametrize(('changed_by', 'request_id', 'told_by'), [
    ('alice of red', 'req-1', ' by alice of red, request req-1'), ('refresh', None, ' by refresh'), (None, None, '')])
def test_who_has_changed_it(changed_by, request_id, told_by):
    told = text([row(1, SUCCESS, 2026050100)], facts={**FACTS, 'changed_by': changed_by, 'request_id': request_id})
    assert f'Changed last at 2026-05-01 11:59:58 UTC{told_by}, 2.0 s ago.' in told


def test_pending():
    told = text([row(0, SUCCESS, 2026050100), row(1, None, 2026050099, attempts=1,
                                                  next_attempt_at=NOON + timedelta(seconds=1.25))])
    lines = told.splitlines()
    assert lines[0] == 'example.com. is PENDING, being changed: waiting for 2 more of 3 servers.'
    assert lines[3] == '  ok  fake:192.0.2.1:53  UPDATE  SUCCESS    2026050100  2026050100  0      -'
    assert lines[4] == '  --  fake:192.0.2.2:53  UPDATE  PENDING    2026050099  2026050100  1      in 1.2 s'
    assert lines[5].startswith('      It ')
    assert '  --  fake:192.0.2.3:53  CREATE  not begun  -           2026050100  0      -' in lines
    assert lines[-3:] == ['The pool needs 3 of 3 servers at serial 2026050100 (threshold 100 %), and has 1.',
                          'Changed last at 2026-05-01 11:59:58 UTC by request req-1, 2.0 s ago.',
                          'To do: Wait: retries are under way.']


def test_error():
    told = text([row(0, SUCCESS, 2026050100),
                 row(1, ERROR, 2026050099, attempts=4, last_error='tsig BADKEY', reason=Reason.BAD_KEY),
                 row(2, ERROR, 2026050099, attempts=4, last_error='connection refused', reason=Reason.UNREACHABLE,
                     next_attempt_at=NOON - timedelta(seconds=1))], status=Status.ERROR)
    assert told.startswith('example.com. is in ERROR while being changed: 2 of 3 servers failed.\n')
    assert '  --  fake:192.0.2.3:53  UPDATE  ERROR    2026050099  2026050100  4      now\n      It ' in told
    assert 'connection refused' in told
    *_, title, first, second = told.splitlines()
    assert title == 'To do:'
    assert first.startswith('  - fake:192.0.2.2:53: compare the key')
    assert second.startswith('  - fake:192.0.2.3:53: check that the server runs')


def test_no_line_of_a_sentence_is_wider_than_the_terminal():
    told = text([row(each, ERROR, 1, attempts=4, last_error='a long reason ' * 20) for each in range(3)])
    assert max(len(line) for line in told.splitlines() if line.startswith('      It')) <= 100


def test_going():
    assert '  gone    0 ' in text([row(0, SUCCESS, None, Action.DELETE)], action=Action.DELETE)


def test_a_server_rests():
    told = text([row(0, ERROR, 2026050099, attempts=4, last_error='refused'), row(1, SUCCESS, 2026050100),
                 row(2, SUCCESS, 2026050100)], states=('maintenance', 'active', 'active'), action=Action.NONE,
                status=Status.ACTIVE)
    assert '      fake:192.0.2.1:53  maintenance  UPDATE  ERROR ' in told
    assert 'it has been in maintenance for 12 minutes' in ' '.join(told.split())


def test_nothing_is_known_of_the_last_change():
    told = text([row(0, None, None)], facts={**FACTS, 'changed_at': None}, pool_name='elsewhere')
    assert 'Changed' not in told


@pytest.mark.parametrize('seconds, told', [
    (0, '0 ms'), (0.25, '250 ms'), (1, '1.0 s'), (59, '59 s'), (60, '1 min'), (61, '1 min 1 s'), (3660, '1 h 1 min'),
    (86400, '1 d'), (90000, '1 d 1 h'),
])
def test_durations(seconds, told):
    assert terminal.duration(seconds) == told


def test_the_command_for_people(run, central, zone):
    run('zone', 'set', 'example.com', '--ttl', '60')
    central.fail(zone, 'connection refused')
    ran = run('zone', 'explain', 'example.com')
    assert ran.code == 0
    # No service of the pool has reported in this database.
    assert ran.out.startswith('No MiniDNS of the pool runs: ') and ' No pool manager of the pool runs: ' in ran.out
    assert ' example.com. is in ERROR' in ran.out and 'To do:\n  - Start designate-pool-minidns' in ran.out
    machine = json.loads(run('zone', 'explain', 'example.com', '-f', 'json').out)
    assert [each['last_error'] for each in machine['servers']] == ['connection refused'] * 3
    assert run('zone', 'explain', 'example.com', '-c', 'status').out == 'status: ERROR\n'


def test_a_server_that_is_being_asked_has_no_next_try_yet():
    over = NOON + timedelta(seconds=127.1)
    told = text([row(0, None, 2026050099, next_attempt_at=over, deadline_at=over)], states=('active',))
    assert next(line for line in told.splitlines() if 'fake:192.0.2.1:53' in line).endswith('0      polled now')
