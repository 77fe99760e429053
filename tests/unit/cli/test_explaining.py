"""What people read when a zone is not ACTIVE: one test per situation."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timedelta, timezone

import pytest

from designate_pool.api import views
from designate_pool.cli import explaining
from designate_pool.model import Action, Domain, Outcome, ServerState, ServerStatus, Status
from tests.unit.api.stand_in import POOL, SERVER_IDS, SERVERS

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
ZONE = Domain('a' * 32, 'example.com.', 'b' * 32, 'default', 'a@example.com', 60, 2026050100, Action.UPDATE)
SUCCESS, ERROR = Outcome.SUCCESS, Outcome.ERROR


def row(server, status, serial, action=Action.UPDATE, **values):
    return ServerStatus(SERVER_IDS[server], ZONE.id, action, ZONE.serial, status=status, serial_number=serial,
                        created_at=NOON, **values)


def explain(rows, threshold=100, states=('active',) * 3, **zone):
    """
    :param states: of the servers; each has been in it since twelve minutes before noon
    """
    pool = dataclasses.replace(POOL, threshold_percentage=threshold)
    servers = [dataclasses.replace(server, state=ServerState(state)) for server, state in zip(SERVERS, states)]
    domain = dataclasses.replace(ZONE, **zone)
    return explaining.explain(views.zone_servers(domain, servers, rows, pool, False, ''), NOON)


def test_active():
    told = explain([row(each, SUCCESS, 2026050100) for each in range(3)], action=Action.NONE, status=Status.ACTIVE)
    assert explaining.text(told) == """\
example.com. is ACTIVE at serial 2026050100 on every server.

      server             action  status   serial      wanted      tries  next try
  ok  fake:192.0.2.1:53  UPDATE  SUCCESS  2026050100  2026050100  0      -
  ok  fake:192.0.2.2:53  UPDATE  SUCCESS  2026050100  2026050100  0      -
  ok  fake:192.0.2.3:53  UPDATE  SUCCESS  2026050100  2026050100  0      -

To do: nothing.
"""


def test_pending():
    told = explain([row(0, SUCCESS, 2026050100), row(1, None, 2026050099, attempts=1,
                                                     next_attempt_at=NOON + timedelta(seconds=1.25))])
    assert explaining.text(told) == """\
example.com. is PENDING, being changed: waiting for 2 more of 3 servers.

      server             action  status     serial      wanted      tries  next try
  ok  fake:192.0.2.1:53  UPDATE  SUCCESS    2026050100  2026050100  0      -
  --  fake:192.0.2.2:53  UPDATE  PENDING    2026050099  2026050100  1      in 1.2 s
  --  fake:192.0.2.3:53  CREATE  not begun  -           2026050100  0      -

The pool needs 3 of 3 servers at serial 2026050100 (threshold 100 %), has 1.
To do: wait: the tries are under way.
"""


def test_error():
    told = explain([row(0, SUCCESS, 2026050100), row(1, SUCCESS, 2026050100),
                    row(2, ERROR, 2026050099, attempts=4, last_error='connection refused',
                        next_attempt_at=NOON - timedelta(seconds=1))], status=Status.ERROR)
    assert explaining.text(told) == """\
example.com. is in ERROR while being changed: 1 of 3 servers failed.

      server             action  status   serial      wanted      tries  next try
  ok  fake:192.0.2.1:53  UPDATE  SUCCESS  2026050100  2026050100  0      -
  ok  fake:192.0.2.2:53  UPDATE  SUCCESS  2026050100  2026050100  0      -
  --  fake:192.0.2.3:53  UPDATE  ERROR    2026050099  2026050100  4      now
      connection refused

The pool needs 3 of 3 servers at serial 2026050100 (threshold 100 %), has 2.
To do: mend fake:192.0.2.3:53; the pool tries again by itself and brings it up to date.
"""


def test_active_but_degraded():
    told = explain([row(0, SUCCESS, 2026050100), row(1, SUCCESS, 2026050100), row(2, None, 2026050099)], threshold=66,
                   action=Action.NONE, status=Status.ACTIVE)
    assert told['headline'] == ('example.com. is ACTIVE at serial 2026050100 but degraded: 1 of 3 servers are behind '
                                '(fake:192.0.2.3:53)')
    assert told['degraded'] and told['lacks'] is None
    assert told['to_do'] == 'nothing: the pool brings the rest up to date by itself'


def test_going():
    told = explain([row(0, SUCCESS, None, Action.DELETE)], action=Action.DELETE)
    assert told['headline'] == 'example.com. is PENDING, being deleted: waiting for 2 more of 3 servers'
    assert told['lacks'] == 'needs 3 of 3 servers without the zone (threshold 100 %), has 1'
    assert '  gone    0 ' in explaining.text(told)


def test_enough_are_done_but_central_has_not_heard():
    told = explain([row(each, SUCCESS, 2026050100) for each in range(3)])
    assert told['headline'].endswith('enough servers are done, the report of it is under way')


def test_short_of_a_server():
    told = explain([row(0, ERROR, 2026050099, attempts=4, last_error='refused'), row(1, SUCCESS, 2026050100),
                    row(2, SUCCESS, 2026050100)], states=('maintenance', 'active', 'active'), action=Action.NONE,
                   status=Status.ACTIVE)
    assert explaining.text(told) == """\
example.com. is ACTIVE at serial 2026050100 on every server that counts.

      server             state        action  status   serial      wanted      tries  next try
      fake:192.0.2.1:53  maintenance  UPDATE  ERROR    2026050099  2026050100  4      -
      refused
  ok  fake:192.0.2.2:53  active       UPDATE  SUCCESS  2026050100  2026050100  0      -
  ok  fake:192.0.2.3:53  active       UPDATE  SUCCESS  2026050100  2026050100  0      -

The pool is short of one server: fake:192.0.2.1:53 has been in maintenance for 12 minutes.
To do: nothing.
"""
    assert not told['degraded']


def test_short_of_two_and_one_that_leaves():
    told = explain([row(2, SUCCESS, 2026050100)], states=('joining', 'maintenance', 'draining'))
    assert told['short'] == ('is short of 2 servers: fake:192.0.2.1:53 has been joining for 12 minutes, '
                             'fake:192.0.2.2:53 has been in maintenance for 12 minutes')
    assert told['headline'] == 'example.com. is PENDING, being changed: no server of its pool counts now'
    assert told['lacks'] == 'needs 1 of 0 servers at serial 2026050100 (threshold 100 %), has 0'
    assert told['to_do'] == "have a server count: 'designate-pool server list' shows where each stands"


def test_active_while_no_server_counts():
    told = explain([row(each, SUCCESS, 2026050100) for each in range(3)], states=('maintenance',) * 3,
                   action=Action.NONE, status=Status.ACTIVE)
    assert told['headline'] == 'example.com. is ACTIVE at serial 2026050100, but no server of its pool counts now'


def test_only_servers_that_count_degrade_and_fail():
    rows = [row(0, SUCCESS, 2026050100), row(1, ERROR, 1), row(2, ERROR, 1)]
    told = explain(rows, states=('active', 'active', 'draining'), threshold=50, action=Action.NONE,
                   status=Status.ACTIVE)
    assert told['headline'].endswith('1 of 2 servers are behind (fake:192.0.2.2:53)')
    assert told['short'] is None
    told = explain(rows, states=('maintenance', 'active', 'joining'), status=Status.ERROR)
    assert told['headline'].endswith('1 of 1 servers failed')


@pytest.mark.parametrize('seconds, told', [
    (-5, '0 seconds'), (0, '0 seconds'), (1, '1 second'), (59.9, '59 seconds'), (60, '1 minute'), (720, '12 minutes'),
    (3600, '1 hour'), (86399, '23 hours'), (86400, '1 day'), (900000, '10 days'),
])
def test_ages(seconds, told):
    assert explaining.age('2026-05-01T12:00:00.000000', NOON + timedelta(seconds=seconds)) == told


def test_a_zone_of_another_pool():
    told = explain([row(0, None, None)], pool_name='elsewhere')
    assert told['headline'] == 'example.com. is PENDING, being changed'
    assert told['lacks'] is None


@pytest.mark.parametrize('form', ['json', 'yaml', 'table', 'value'])
def test_the_command_for_machines(run, zone, form):
    assert 'ACTIVE at serial' in run('zone', 'explain', 'example.com', '-f', form).out


def test_the_command_for_people(run, central, zone):
    central.fail(zone, 'connection refused')
    ran = run('zone', 'explain', 'example.com')
    assert ran.code == 0
    assert ran.out.startswith('example.com. is in ERROR')
    machine = json.loads(run('zone', 'explain', 'example.com', '-f', 'json').out)
    assert [each['last_error'] for each in machine['servers']] == ['connection refused'] * 3
    assert run('zone', 'explain', 'example.com', '-c', 'status').out == 'status: ERROR\n'


def test_no_such_zone(run):
    assert run('zone', 'explain', 'example.com').err.startswith('There is no zone example.com.')
