"""What people read when a zone is not ACTIVE: one test per situation."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone

import pytest

from designate_pool.api.views import explain as explaining
from designate_pool.api.views import zone_servers
from designate_pool.model import Action, Domain, Outcome, Reason, ServerState, ServerStatus, Status
from tests.fixtures.observed_central import POOL, SERVER_IDS, SERVERS

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
ZONE = Domain('a' * 32, 'example.com.', 'b' * 32, 'default', 'a@example.com', 60, 2026050100, Action.UPDATE)
SUCCESS, ERROR = Outcome.SUCCESS, Outcome.ERROR
PLAN = 'c0ffee' + 'd' * 26


def row(server, status, serial, action=Action.UPDATE, **values):
    return ServerStatus(SERVER_IDS[server], ZONE.id, action, ZONE.serial, status=status, serial_number=serial,
                        **{'created_at': NOON, **values})


def explain(rows, threshold=100, states=('active',) * 3, parked=None, **zone):
    """
    :param states: of the servers; each has been in it since twelve minutes before noon
    """
    pool = dataclasses.replace(POOL, threshold_percentage=threshold)
    servers = [dataclasses.replace(server, state=ServerState(state)) for server, state in zip(SERVERS, states)]
    domain = dataclasses.replace(ZONE, **zone)
    return explaining.explain(zone_servers.zone_servers(domain, servers, rows, pool, '', parked), NOON)


def words(told):
    return [each['state_of'] for each in told['servers']]


def test_active():
    told = explain([row(each, SUCCESS, 2026050100) for each in range(3)], action=Action.NONE, status=Status.ACTIVE)
    assert told['summary'] == 'example.com. is ACTIVE at serial 2026050100 on every server.'
    assert (told['lacking'], told['advice'], told['degraded']) == (None, [], False)
    assert words(told) == ['It serves serial 2026050100.'] * 3


def test_pending():
    told = explain([row(0, SUCCESS, 2026050100), row(1, None, 2026050099, attempts=1,
                                                     next_attempt_at=NOON + timedelta(seconds=1.25))])
    assert told['summary'] == 'example.com. is PENDING, being changed: waiting for 2 more of 3 servers.'
    assert told['lacking'] == 'The pool needs 3 of 3 servers at serial 2026050100 (threshold 100 %), and has 1.'
    assert words(told) == [
        'It serves serial 2026050100.',
        'It is getting to serial 2026050100, 1 try so far; it serves serial 2026050099; the next try is in 1.2 s.',
        'Nothing has been started on it yet.']
    assert told['advice'] == ['Wait: retries are under way.']


def test_a_server_that_has_just_died_is_being_asked():
    over = NOON + timedelta(seconds=127.1)
    asked = row(1, None, 2026050099, next_attempt_at=over, deadline_at=over)
    told = explain([row(0, SUCCESS, 2026050100), asked, row(2, SUCCESS, 2026050100)], threshold=66,
                   action=Action.NONE, status=Status.ACTIVE)
    assert words(told)[1] == ('It is getting to serial 2026050100, 0 tries so far; it serves serial 2026050099; it is '
                              'being asked now, and has failed if it does not answer within 128 s.')
    assert told['advice'] == ['Wait: fake:192.0.2.2:53 is being asked and may yet answer; look again in at most 128 s, '
                              'then it is known what to do.']


def test_an_error_and_the_round_after_it():
    failed = row(2, ERROR, 2026050099, attempts=4, last_error='connection refused.', reason=Reason.UNREACHABLE,
                 next_attempt_at=NOON - timedelta(seconds=1))
    told = explain([row(0, SUCCESS, 2026050100), row(1, SUCCESS, 2026050100), failed], status=Status.ERROR)
    assert told['summary'] == 'example.com. is in ERROR while being changed: 1 of 3 servers failed.'
    assert words(told)[2] == ('It failed at getting to serial 2026050100 after 4 tries (connection refused); it serves '
                              'serial 2026050099; the next try is due now.')
    [advice] = told['advice']
    assert advice.startswith('fake:192.0.2.3:53: check that the server runs')
    again = explain([row(0, SUCCESS, 2026050100), row(1, SUCCESS, 2026050100), dataclasses.replace(
        failed, status=None, attempts=1)], status=Status.PENDING)
    assert words(again)[2].startswith('It is getting to serial 2026050100, 1 try so far (connection refused)')
    assert again['advice'] == ['Wait: retries are under way.']


def test_degraded():
    told = explain([row(0, SUCCESS, 2026050100), row(1, SUCCESS, 2026050100), row(2, None, None)], threshold=66,
                   action=Action.NONE, status=Status.ACTIVE)
    assert told['degraded'] and 'degraded: 1 of 3 servers are behind (fake:192.0.2.3:53)' in told['summary']
    assert told['lacking'] is None
    assert told['advice'] == ['Nothing: the pool brings the rest up to date automatically.']


def test_a_deletion():
    told = explain([row(0, SUCCESS, None, Action.DELETE), row(1, None, 2026050100, Action.DELETE)],
                   action=Action.DELETE, states=('active', 'active', 'removed'))
    assert told['lacking'] == 'The pool needs 2 of 2 servers without the zone (threshold 100 %), and has 1.'
    assert words(told) == ['It has confirmed that the zone is gone.',
                           'It is deleting the zone, 0 tries so far; it serves serial 2026050100; '
                           'it is being worked on.']


def test_servers_that_do_not_count():
    told = explain([row(0, SUCCESS, 2026050100), row(1, None, 2026050099)],
                   states=('active', 'maintenance', 'joining'), action=Action.NONE, status=Status.ACTIVE)
    assert told['summary'].endswith('on every server that counts.')
    assert words(told)[1].endswith('; it has been in maintenance for 12 minutes, is sent nothing and does not count.')
    assert words(told)[2].startswith('Nothing has been started on it; it has been joining the pool for 12 minutes')
    assert told['advice'] == ["fake:192.0.2.2:53: when it is ready again: 'designate-pool server resume "
                              "fake:192.0.2.2:53'."]


def test_no_server_counts():
    told = explain([], states=('maintenance', 'draining', 'removed'))
    assert told['summary'] == 'example.com. is PENDING, being changed: no server of its pool counts now.'
    assert 'designate-pool server list' in told['advice'][0]


def test_servers_that_need_the_same_are_told_together():
    told = explain([row(each, ERROR, None, last_error='no answer within 2 s', reason=Reason.TIMEOUT)
                    for each in range(3)], status=Status.ERROR)
    [advice] = told['advice']
    assert advice.startswith('fake:192.0.2.1:53, fake:192.0.2.2:53, fake:192.0.2.3:53: check whether')


@pytest.mark.parametrize(('reason', 'help'), [
    (Reason.BAD_KEY, 'compare the key'),
    (Reason.NO_ZONE, 'server resync fake:192.0.2.1:53'),
    (Reason.POLICY, 'correct what the error names'),
    (None, 'correct what the error names'),
])
def test_a_reason_has_its_advice(reason, help):
    told = explain([row(0, ERROR, None, last_error='REFUSED, said the clock', reason=reason)], status=Status.ERROR)
    assert help in told['servers'][0]['what_to_do']
    assert told['servers'][0]['reason'] == (reason and reason.value)


def test_the_reason_of_an_error_that_an_older_pool_manager_has_ended_is_not_shown():
    told = explain([row(0, SUCCESS, 2026050100, reason=Reason.TIMEOUT)], status=Status.ACTIVE)
    assert told['servers'][0]['reason'] is None


def test_a_plan_that_is_parked():
    told = explain([row(0, ERROR, 2026050099, last_error=f'plan {PLAN} is parked: it deletes too much')],
                   parked={SERVER_IDS[0]: PLAN})
    assert told['servers'][0]['what_to_do'] == ("decide on the plan: 'designate-pool plan show c0ffeedd' shows it, "
                                                "'designate-pool apply c0ffeedd' approves it")
