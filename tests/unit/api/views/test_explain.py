"""What people read when a zone is not ACTIVE: one test per situation."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone

import pytest

from designate_pool.api.services.wait_verdict import WaitTarget, ZoneState, judge
from designate_pool.api.views import explain as explaining, zone_servers
from designate_pool.model import (Action, Audit, AuditKind, Counts, Domain, Freeze, Outcome, Reason, RefreshState,
                                  Release, ServerState, ServerStatus, ServiceStatus, Status, hold)
from tests.fixtures.observed_central import POOL, SERVER_IDS, SERVERS

NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
ZONE = Domain('a' * 32, 'example.com.', 'b' * 32, 'default', 'a@example.com', 60, 2026050100, Action.UPDATE)
SUCCESS, ERROR = Outcome.SUCCESS, Outcome.ERROR
PLAN = 'c0ffee' + 'd' * 26


def row(server, status, serial, action=Action.UPDATE, **values):
    return ServerStatus(SERVER_IDS[server], ZONE.id, action, ZONE.serial, status=status, serial_number=serial,
                        **{'created_at': NOON, **values})


def explain(rows, threshold=100, states=('active',) * 3, parked=None, missing=None,
            silent=(None,) * 3, probe_interval=None, refreshed=None, **zone):
    """
    :param states: of the servers; each has been in it since twelve minutes before noon
    """
    pool = dataclasses.replace(POOL, threshold_percentage=threshold, release_stages=zone.get('pool_release'))
    servers = [dataclasses.replace(server, state=ServerState(state), silent_since=since)
               for server, state, since in zip(SERVERS, states, silent)]
    domain = dataclasses.replace(ZONE, **zone)
    shown = zone_servers.zone_servers(domain, servers, rows, pool, '', parked, refreshed)
    return explaining.explain(shown, NOON, missing, probe_interval=probe_interval)


def test_the_record_that_is_the_likely_cause():
    pool, domain = dataclasses.replace(POOL, threshold_percentage=100), dataclasses.replace(ZONE, status=Status.ERROR)
    rows = [row(number, ERROR, 2026050099, reason=Reason.STALE, last_error='it is behind') for number in range(3)]
    told = explaining.explain(zone_servers.zone_servers(domain, SERVERS, rows, pool, ''), NOON, None,
                              ['x.example.com. X25: the address is not four digits or more'])
    assert told['advice'][0].startswith('Correct or delete the likely cause: x.example.com. X25: the address is not')


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
    assert words(told)[1] == ('It is getting to serial 2026050100; it serves serial 2026050099; it is being asked now, '
                              'and has failed if it does not answer within 128 s.')
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
    assert told['degraded'] and 'degraded: 1 of 3 servers is behind (fake:192.0.2.3:53)' in told['summary']
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


def heartbeat(service, status, hostname='one', at=NOON):
    return ServiceStatus(hostname, service, hostname, status, at)


@pytest.mark.parametrize(('services', 'missing'), [
    ([heartbeat('minidns', 'UP'), heartbeat('pool_manager', 'UP')], {}),
    ([heartbeat('minidns', 'DOWN'), heartbeat('minidns', 'UP', 'two'), heartbeat('pool_manager', 'UP')], {}),
    ([heartbeat('minidns', 'DOWN', at=NOON - timedelta(hours=3)), heartbeat('minidns', 'DOWN', 'two')],
     {'minidns': NOON, 'pool_manager': None}),
], ids=['all run', 'one of two runs', 'none runs'])
def test_the_services_that_run_nowhere(services, missing):
    assert explaining.missing_services(services) == missing


@pytest.mark.parametrize(('missing', 'begins', 'runs', 'program'), [
    ({'minidns': NOON - timedelta(minutes=2)}, 'No MiniDNS of the pool runs since 2026-05-01 11:58:00 UTC (2 minutes): '
     'its servers can', 'no MiniDNS runs', 'designate-pool-minidns'),
    ({'pool_manager': None}, 'No pool manager of the pool runs: nothing is done', 'no pool manager runs',
     'designate-pool-manager'),
], ids=['MiniDNS ended', 'pool manager never seen'])
def test_a_service_that_runs_nowhere_is_said_first_and_nothing_is_counted_down(missing, begins, runs, program):
    over = NOON + timedelta(seconds=127.1)
    asked = row(1, None, 2026050099, next_attempt_at=over, deadline_at=over)
    told = explain([row(0, SUCCESS, 2026050100), asked], missing=missing)
    assert told['summary'].startswith(begins)
    assert words(told)[0] == 'It serves serial 2026050100.' and words(told)[1].endswith(f'; {runs}.')
    assert told['servers'][1]['next_attempt_at'] is told['servers'][1]['deadline_at'] is None
    [advice] = told['advice']
    assert advice.startswith(f'Start {program}')


def test_a_server_that_has_failed_and_is_asked_again_has_no_new_countdown():
    over = NOON + timedelta(seconds=127.1)
    told = explain([row(1, ERROR, 2026050099, attempts=4, next_attempt_at=over, deadline_at=over)])
    assert words(told)[1].endswith('; it is being asked again now.')


def test_servers_that_answer_nobody():
    told = explain([row(0, SUCCESS, 2026050100), row(1, None, 2026050099, attempts=4, last_error='no answer')],
                   silent=(NOON - timedelta(minutes=3), NOON - timedelta(hours=2), None), action=Action.NONE)
    assert words(told)[:2] == [
        'It served serial 2026050100; it has answered nobody since 2026-05-01 11:57:00 UTC (3 minutes).',
        'It is getting to serial 2026050100, 4 tries so far (no answer); it served serial 2026050099; it has answered '
        'nobody since 2026-05-01 10:00:00 UTC (2 hours); it is being worked on.']


def test_when_each_server_was_last_seen_to_serve_what():
    told = explain([row(0, SUCCESS, 2026050100, seen_at=NOON - timedelta(seconds=9)),
                    row(1, None, 2026050099, seen_at=NOON - timedelta(days=1), next_attempt_at=NOON),
                    row(2, ERROR, 2026050099, diverged=True, seen_at=NOON, last_error='other', next_attempt_at=NOON)])
    assert words(told) == [
        'It was last seen to serve serial 2026050100 at 2026-05-01 11:59:51 UTC.',
        'It is getting to serial 2026050100, 0 tries so far; it was last seen to serve serial 2026050099 at '
        '2026-04-30 12:00:00 UTC; the next try is due now.',
        'It was last seen to serve serial 2026050099 at 2026-05-01 12:00:00 UTC with other contents (other); a forced '
        'transfer is due now.']


ROUND = Audit('b' * 32, AuditKind.SERIALS, NOON, last_started_at=NOON - timedelta(minutes=5), last=Counts(9, 27, 27))


@pytest.mark.parametrize(('audit', 'server', 'values', 'minutes'), [
    (ROUND, {}, {}, 5),
    (None, {}, {}, 60),
    (dataclasses.replace(ROUND, last=Counts(9, 27, 27, 1)), {}, {}, 60),
    (ROUND, {'polled': False}, {}, 60),
    (ROUND, {'state_since': NOON}, {}, 60),
    (ROUND, {'state': ServerState.MAINTENANCE}, {}, 60),
    (ROUND, {}, {'next_attempt_at': NOON}, 60),
    (ROUND, {}, {'updated_at': NOON}, 60),
    (ROUND, {}, {'serial_number': 2026050099}, 60),
    (ROUND, {}, {'seen_at': None}, None),
], ids=['the round saw it', 'no round yet', 'one was silent', 'fed by records', 'resumed since', 'in maintenance',
        'due', 'written since', 'at another serial', 'never seen'])
def test_rounds_of_the_audit_that_find_a_serial_again_have_seen_it(audit, server, values, minutes):
    hour = NOON - timedelta(hours=1)
    servers = [dataclasses.replace(SERVERS[0], **{'polled': True, 'state_since': hour, **server})]
    at_rest = dataclasses.replace(row(0, SUCCESS, 2026050100, seen_at=hour, updated_at=hour), **values)
    shown, = zone_servers.zone_servers(ZONE, servers, [at_rest], POOL, '', audit=audit)['servers']
    assert shown['seen_at'] == (minutes and f'2026-05-01T{"11:55" if minutes == 5 else "11:00"}:00.000000')


def test_a_server_that_signs():
    servers = [dataclasses.replace(SERVERS[0], reason=Reason.SIGNS), *SERVERS[1:]]
    ahead = row(1, ERROR, 2026050103, diverged=True, reason=Reason.SIGNS, next_attempt_at=NOON, last_error=(
        'serves serial 2026050103, which is ahead of ours, 2026050100; its serials are its own: it signs'))
    domain = dataclasses.replace(ZONE, status=Status.ACTIVE)
    shown = zone_servers.zone_servers(domain, servers, [row(0, SUCCESS, 2026050100), ahead], POOL, '')
    told = explaining.explain(shown, NOON)
    assert words(told)[0] == 'It serves serial 2026050100; its serials are its own: it signs.'
    assert words(told)[1].startswith('It serves serial 2026050103, which is ahead of ours, 2026050100; its serials are '
                                     'its own: it signs; ')
    assert told['advice'][0].startswith("fake:192.0.2.1:53, fake:192.0.2.2:53: turn signing off in the server's own")


def test_what_a_comparison_found_and_nothing_repairs():
    domain = dataclasses.replace(ZONE, status=Status.ACTIVE, action=Action.NONE)
    rows = [row(each, SUCCESS, 2026050100) for each in range(3)]
    told = explaining.explain(zone_servers.zone_servers(domain, SERVERS, rows, POOL, ''), NOON, unrepaired={
        'fake:192.0.2.1:53': 'the server serves serial 2026050099, not 2026050100'})
    assert (told['summary'], told['degraded']) == (
        'example.com. is ACTIVE at serial 2026050100, but a comparison found something else on fake:192.0.2.1:53.',
        True)
    assert words(told) == ['Serial 2026050100 is recorded, but a comparison found: the server serves serial '
                           '2026050099, not 2026050100.', *['It serves serial 2026050100.'] * 2]
    assert told['advice'][0] == (
        "fake:192.0.2.1:53: 'designate-pool server resync fake:192.0.2.1:53 --fix' repairs what was found there.")


def test_a_dead_server_is_probed_and_not_tried():
    told = explain([row(0, ERROR, 2026050099, attempts=4, last_error='no answer', reason=Reason.TIMEOUT,
                        next_attempt_at=NOON + timedelta(minutes=7))], silent=(NOON - timedelta(minutes=3), None, None),
                   probe_interval=2)
    assert words(told)[0].endswith('; the next probe is due by 12:00:03 UTC, and all that is due on it is tried when '
                                   'it answers.')


def test_active_while_a_server_lacks_renewed_signatures():
    told = explain([row(0, SUCCESS, 2026050102), row(1, SUCCESS, 2026050102), row(2, None, 2026050100)],
                   serial=2026050102, content_serial=2026050100, action=Action.NONE, status=Status.ACTIVE)
    assert told['summary'] == 'example.com. is ACTIVE at serial 2026050100 on every server.'
    assert (told['lacking'], told['advice'], told['degraded']) == (None, [], False)
    assert words(told)[2] == 'It serves serial 2026050100; it lacks the renewed signatures of serial 2026050102.'


@pytest.mark.parametrize('under', [{'freeze': Freeze('f' * 32, 'an incident', NOON).text},
                                   {'pool_release': 'canary fake:192.0.2.1:53; all'}], ids=['a freeze', 'a release'])
def test_a_change_that_waits_is_not_told_as_signatures_that_are_lacking(under):
    held = hold(dataclasses.replace(ZONE, serial=2026050099, **under))
    told = explain([row(number, SUCCESS, 2026050099) for number in range(3)], status=Status.PENDING, **under, **held)
    assert words(told)[2] == 'It serves serial 2026050099.'


@pytest.mark.parametrize(('state', 'waits'), [('active', False), ('maintenance', True)])
def test_a_release_waits_while_none_of_its_servers_is_in_service(state, waits):
    under = {'pool_release': 'canary fake:192.0.2.1:53; all'}
    held = hold(dataclasses.replace(ZONE, serial=2026050099, **under))
    told = explain([row(number, SUCCESS, 2026050099) for number in range(3)], status=Status.PENDING,
                   states=(state, 'active', 'active'), **under, **held)
    assert told['summary'].endswith('released to 1 of 3 servers: stage 1' + (
        '; it waits, since none of these is in service.' if waits else '.'))
    assert any('release continue example.com.' in sentence for sentence in told['advice']) is waits


@pytest.mark.parametrize(('under', 'advice'), [
    ({'freeze': Freeze('f' * 32, 'an incident', NOON).text}, 'Wait until the pool is unfrozen'),
    ({'pool_release': 'canary fake:192.0.2.1:53; all'}, 'Wait: the next stage follows when'),
], ids=['a freeze', 'a release'])
def test_nothing_is_tried_where_a_new_zone_waits_for_something_else(under, advice):
    held = hold(dataclasses.replace(ZONE, serial=None, **under))
    told = explain([], action=Action.CREATE, status=Status.PENDING, **under, **held)
    sentence, = told['advice']
    assert sentence.startswith(advice)


def test_a_server_that_leaves_the_pool_is_of_no_stage():
    told = explain([], status=Status.PENDING, states=('draining', 'active', 'active'), version_before='null',
                   pool_release='50 %; all', release_state=Release().text)
    assert [server['released'] for server in told['servers']] == [False, True, False]


def test_a_server_that_was_removed_by_command_has_its_stage_while_the_configuration_has_it():
    servers = [dataclasses.replace(SERVERS[0], state=ServerState.REMOVED, dismissed=True), *SERVERS[1:]]
    pool = dataclasses.replace(POOL, release_stages='30 %; all')
    domain = dataclasses.replace(ZONE, status=Status.PENDING, version_before='null', pool_release=pool.release_stages,
                                 release_state=Release().text)
    shown = zone_servers.zone_servers(domain, servers, [], pool, '')
    assert [server['released'] for server in shown['servers']] == [False, False]


def test_a_joining_server_that_fails():
    told = explain([row(0, SUCCESS, 2026050100), row(1, SUCCESS, 2026050100),
                    row(2, ERROR, None, Action.CREATE, attempts=4, last_error='refused', reason=Reason.UNREACHABLE)],
                   states=('active', 'active', 'joining'), action=Action.NONE, status=Status.ACTIVE)
    assert told['advice'] == ['fake:192.0.2.3:53: check that the server runs and listens there, and that no firewall '
                              'is between; the pool retries automatically.']


@pytest.mark.parametrize('transferred', [False, True])
def test_a_master_that_cannot_be_reached(transferred):
    rows = [row(number, SUCCESS, 2026050100) for number in range(3 * transferred)]
    told = explain(rows, status=Status.ACTIVE if transferred else Status.ERROR, action=Action.NONE,
                   masters='192.0.2.9:53', awaits_transfer=not transferred,
                   refreshed=RefreshState(ZONE.id, NOON, failures=1, last_error='192.0.2.9:53: no answer'))
    assert told['advice'] == ["Look whether a master runs and lets MiniDNS transfer the zone; 'designate-pool zone "
                              "refresh example.com.' asks the masters now."]


def test_a_wait_for_renewed_signatures_is_one_for_their_contents():
    domain = dataclasses.replace(ZONE, serial=2026050102, content_serial=2026050100, reported_serial=2026050100)
    for serial in (2026050100, 2026050101, 2026050102):
        assert judge(WaitTarget(ZONE.id, serial), ZoneState(domain)).done
    assert not judge(WaitTarget(ZONE.id, 2026050103), ZoneState(domain)).over
    rows = (row(0, SUCCESS, 2026050100),)
    assert judge(WaitTarget(ZONE.id, 2026050102, servers=1), ZoneState(domain, SERVERS, rows)).done
