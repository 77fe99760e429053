"""What people read when a zone is not ACTIVE: how the command lays out what the API says."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timedelta, timezone

import pytest

from designate_pool.api.views import explain as sentences
from designate_pool.api.views import zone_servers
from designate_pool.cli import terminal
from designate_pool.cli.commands import zone_status
from designate_pool.model import Action, Domain, Outcome, Reason, ServerState, ServerStatus, Status
from tests.fixtures.observed_central import POOL, SERVER_IDS, SERVERS

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
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
