"""Waiting for a zone, for a server, and for a parked plan that was approved."""

from __future__ import annotations

import argparse
import io
import re
import time
from typing import Any

import pytest

from designate_pool.cli import zone_wait
from designate_pool.cli.client import ApiRefusal
from designate_pool.cli.commands import plan_apply, servers, zone_status
from designate_pool.cli.commands.servers import CatchUpProgress, DrainProgress, MaintenanceProgress, follow
from designate_pool.cli.connection import CliError
from designate_pool.cli.zone_wait import PendingChange
from designate_pool.model import PlanState, StoredPlan
from tests.unit.cli.test_app import Terminal

PENDING = {'status': 'PENDING', 'action': 'UPDATE', 'serial': 8}


def wait_shared(states, wanted, seconds=30.0):
    """How the wait ends when the zone is in *states*, one after the other."""
    left = list(states)

    def get(path):
        if path.endswith('/servers'):
            raise ApiRefusal(403, {'type': 'forbidden', 'message': 'You may not.'})
        return left.pop(0) if len(left) > 1 else left[0]

    change = PendingChange('1', 'example.com.', time.monotonic(), wanted)
    return zone_wait.wait_for(argparse.Namespace(get=get), change, seconds, lambda *told: None)


@pytest.mark.parametrize('wanted', [None, 7, 8])
def test_it_ends_when_the_zone_is_active_at_the_serial(wanted):
    outcome = wait_shared([PENDING, {**PENDING, 'status': 'ACTIVE', 'action': 'NONE'}], wanted)
    assert outcome.code == zone_wait.DONE and 'example.com. is ACTIVE at serial 8 after' in outcome.line


@pytest.mark.parametrize('state, code', [({'status': 'ERROR'}, 'FAILED'), ({'action': 'DELETE'}, 'DELETED_MEANWHILE')])
def test_it_ends_when_the_zone_fails_or_goes(state, code):
    assert wait_shared([PENDING, {**PENDING, **state}], 8).code == getattr(zone_wait, code)


@pytest.mark.parametrize('after, code', [({'checked_at': 'now', 'failures': 0}, 'DONE'),
                                         ({'failures': 2, 'last_error': 'nobody answers'}, 'FAILED')])
def test_a_refresh_ends_when_a_master_was_asked(after, code):
    before = {'checked_at': 'then', 'failures': 1, 'served': True}
    change = PendingChange('1', 'example.com.', time.monotonic(), 8, refresh_before=before)
    shown = {**PENDING, 'status': 'ACTIVE', 'action': 'NONE', 'secondary': before}
    assert zone_wait.judge(shown, change, 0.1) is None
    outcome = zone_wait.judge({**shown, 'secondary': {**before, **after}}, change, 0.1)
    assert outcome is not None and outcome.code == getattr(zone_wait, code)


def test_a_refresh_that_brings_a_newer_serial_is_over_when_the_servers_have_that():
    before = {'checked_at': 'then', 'failures': 0, 'served': True}
    change = PendingChange('1', 'example.com.', time.monotonic(), 8, refresh_before=before)
    shown = {**PENDING, 'serial': 9, 'reported_serial': 8, 'secondary': {**before, 'checked_at': 'now'}}
    assert zone_wait.judge(shown, change, 0.1) is None
    outcome = zone_wait.judge({**shown, 'reported_serial': 9}, change, 0.1)
    assert outcome is not None and outcome.code == zone_wait.DONE


def test_it_ends_when_the_token_is_not_taken_any_more():
    def get(path):
        raise ApiRefusal(401, {'type': 'unauthorized', 'message': 'The token is wrong.'})

    change = PendingChange('1', 'example.com.', time.monotonic(), 8)
    with pytest.raises(ApiRefusal, match='The token is wrong'):
        zone_wait.wait_for(argparse.Namespace(get=get), change, 30.0, lambda *told: None)


ERROR = {'done': False, 'failed': True, 'timed_out': False, 'status': 'ERROR', 'action': 'UPDATE'}
DONE = {'done': True, 'failed': False, 'timed_out': False, 'status': 'ACTIVE', 'action': 'NONE'}
LATE = {'done': False, 'failed': False, 'timed_out': True, 'status': 'PENDING', 'action': 'UPDATE'}


def wait(monkeypatch, answers, timeout=60.0, through_errors=True, deletes=False):
    """What the command makes of these answers of the API, and how many it asked for."""
    now, asked = [100.0], []

    class Clock:
        monotonic = staticmethod(lambda: now[0])

        @staticmethod
        def sleep(seconds):
            now[0] += seconds

    def get(path, within, **query):
        asked.append(float(query['timeout']))
        return answers[min(len(asked), len(answers)) - 1]

    for module in (zone_status, zone_wait):
        monkeypatch.setattr(module, 'time', Clock)
    command = zone_status.ZoneWait.__new__(zone_status.ZoneWait)
    monkeypatch.setattr(zone_status.ZoneWait, 'client', argparse.Namespace(get=get), raising=False)
    found = command._wait(PendingChange('1', 'example.com.', now[0], 7, deletes), argparse.Namespace(
        timeout=timeout, servers=None, through_errors=through_errors))
    return found, asked


def test_an_error_that_is_tried_again_is_waited_through_when_asked_for(monkeypatch):
    found, asked = wait(monkeypatch, [ERROR, ERROR, LATE, ERROR, DONE])
    assert found == DONE
    assert asked == sorted(asked, reverse=True) and len(asked) == 5, 'the time does not begin anew'


def test_an_error_ends_the_wait_by_itself(monkeypatch):
    assert wait(monkeypatch, [ERROR, DONE], through_errors=False) == (ERROR, [60.0])


def test_an_error_is_told_when_the_time_is_over(monkeypatch):
    found, asked = wait(monkeypatch, [ERROR], timeout=3.5)
    assert (found, zone_status._exit_code(found)) == (ERROR, 3)
    assert asked[-1] == 0.0


@pytest.mark.parametrize('deletes', [True, False])
def test_a_zone_that_is_deleted_meanwhile_is_not_waited_for(monkeypatch, deletes):
    going = {**ERROR, 'action': 'DELETE'}
    found, asked = wait(monkeypatch, [going, DONE], deletes=deletes)
    assert found == (DONE if deletes else going)


def test_an_answer_that_comes_just_when_the_time_is_over(monkeypatch):
    monkeypatch.setattr(zone_wait, 'poll', lambda look, end, pauses: (look(), None))
    assert wait(monkeypatch, [LATE]) == (LATE, [60.0])


NAME = 'fake:192.0.2.1:53'


def server(state='active', **values):
    return {'id': '1' * 32, 'name': NAME, 'state': state, 'filling': False, 'filled': 0, 'zones': 1000, 'rows': 0,
            'waiting': 0, 'failing': 0, 'in_hand': 0, 'failures': [], **values}


def caught_up(*seen, must_count=True):
    """Where it stands at the last of what was seen."""
    measure = CatchUpProgress(NAME, must_count)
    return [measure(each) for each in seen][-1]


def ended(stand):
    return None if stand.outcome is None else (stand.outcome.code, stand.outcome.line)


@pytest.mark.parametrize('seen, expected', [
    ([server('joining', filling=True, filled=512, waiting=3, failing=1)],
     (512, 1000, '512 of 1000 zones started, 3 waiting, 1 failing')),
    ([server('joining', waiting=40), server('joining', waiting=10)], (30, 40, '10 waiting')),
    ([server(filling=True, filled=7)], (7, 1000, '7 of 1000 zones started')),
    ([server('joining')], (0, 0, 'nothing is waiting')),
], ids=['filled', 'the last are under way', 'active and filled', 'it has everything but does not count yet'])
def test_it_catches_up(seen, expected):
    stand = caught_up(*seen)
    assert (stand.done, stand.total, stand.text, stand.outcome) == (*expected, None)


def test_it_has_everything():
    assert ended(caught_up(server('joining'), must_count=False)) == (0, f'{NAME} is joining and nothing waits for it.')
    assert ended(caught_up(server(waiting=2), server())) == (0, f'{NAME} is active and nothing waits for it.')


FAILURES = [{'zone_name': 'example.com.', 'action': 'CREATE', 'error': 'refused'}] * 2


@pytest.mark.parametrize('later, over', [
    (server(waiting=2, failing=2, failures=FAILURES), True),
    (server(waiting=3, failing=2, failures=FAILURES), False),
    (server(waiting=1, failing=1, failures=FAILURES[:1]), False),
    (server(waiting=2, failing=2, failures=FAILURES, filling=True), False),
], ids=['all keep failing', 'one has not failed', 'one has succeeded', 'more is to come'])
def test_what_is_left_fails(later, over):
    now = [100.0]
    measure = CatchUpProgress(NAME, True, lambda: now[0])
    assert measure(server(waiting=2, failing=2, failures=FAILURES)).outcome is None
    now[0] += servers.STUCK
    assert ended(measure(later)) == ((3, f'2 operations on {NAME} have failed and will be tried again: example.com. '
                                         'CREATE (refused).') if over else None)


def test_a_try_that_is_under_way_again_begins_the_patience_anew():
    now = [100.0]
    measure = CatchUpProgress(NAME, True, lambda: now[0])
    for failing in (2, 1, 2):
        assert measure(server(waiting=2, failing=failing)).outcome is None
        now[0] += servers.STUCK - 1


@pytest.mark.parametrize('seen, told', [
    (None, f'{NAME} was removed by someone else.'),
    (server('maintenance', waiting=3), f'{NAME} is in maintenance, and nothing is sent to it.'),
    (server('draining'), f'{NAME} is draining, and nothing is sent to it.'),
])
def test_someone_stops_it(seen, told):
    assert ended(caught_up(server(waiting=3), seen)) == (1, told)


def test_it_is_drained():
    measure = DrainProgress(NAME, False)
    first, second, third = (measure(server('draining', rows=rows)) for rows in (400, 100, 0))
    assert (first.done, first.total, first.outcome) == (0, 400, None)
    assert (second.done, second.total, second.text) == (300, 400, '100 of 400 entries left')
    assert (third.done, third.outcome) == (400, None)
    for last in (server('removed'), None):
        assert ended(measure(last)) == (0, f'{NAME} is drained and removed from the pool.')


def test_someone_takes_it_back_while_it_drains():
    measure = DrainProgress(NAME, False)
    assert ended(measure(server('joining'))) == (1, f'{NAME} is joining again: someone else resumed it.')


def test_nothing_is_under_way_on_it_any_more():
    now = [0.0]
    measure = MaintenanceProgress(NAME, lambda: now[0])
    first, second = (measure(server('maintenance', in_hand=count)) for count in (3, 0))
    assert (first.done, first.total, first.text, first.outcome) == (0, 3, '3 under way', None)
    assert (second.done, second.outcome) == (3, None), 'a pool manager may not know yet'
    now[0] = 2.0
    assert measure(server('maintenance', in_hand=1)).outcome is None
    assert ended(measure(server('maintenance'))) == (0, f'{NAME} is in maintenance, and nothing is under way on it.')
    assert ended(measure(server('active')))[0] == 1


class Answers:
    """A client that is answered so, the last answer again and again."""

    def __init__(self, *answers):
        self._answers = list(answers)

    def get(self, path):
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_api_stumbles_and_is_back():
    stream = io.StringIO()
    client = Answers(server(waiting=1), CliError('It is away.'), server())
    assert follow(client, server(), CatchUpProgress(NAME, True), 60, stream).code == 0
    assert stream.getvalue() == f'0 %  {NAME}: 1 waiting\n100 %  {NAME}: nothing is waiting\n'


@pytest.mark.parametrize('answer, told', [(server(waiting=7), '7 waiting'), (CliError('It is away.'), 'It is away')])
def test_the_time_is_over(answer, told):
    ending = follow(Answers(answer), server(), CatchUpProgress(NAME, True), 0.02, io.StringIO())
    assert (ending.code, ending.line) == (4, f'{NAME} is not done after 0.02 s: {told}.')


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv('COLUMNS', '60')
    monkeypatch.setenv('TERM', 'xterm')


def test_a_terminal_has_one_line_that_is_redrawn():
    stream = Terminal()
    follow(Answers(server(waiting=4), server(waiting=3), server()), server(), CatchUpProgress(NAME, True), 60, stream)
    assert stream.getvalue() == (f'\r0 %  {NAME}: 4 waiting\033[K\n\033[J\033[1A\r25 %  {NAME}: 3 waiting\033[K\n'
                                 f'\033[J\033[1A\r100 %  {NAME}: nothing is waiting\033[K\n\033[J')


def test_elsewhere_a_line_when_it_has_changed():
    stream = io.StringIO()
    follow(Answers(server(waiting=4), server(waiting=4), server()), server(), CatchUpProgress(NAME, True), 60, stream)
    assert stream.getvalue().splitlines() == [f'0 %  {NAME}: 4 waiting', f'100 %  {NAME}: nothing is waiting']


SERVER = '7b000000-0000-4000-8000-000000000000'
PLAN = StoredPlan('3f2a' * 8, 'default', 'example.com.', 'rfc2136:192.0.2.1:53', PlanState.PARKED, 'a' * 32,
                  SERVER.replace('-', ''))


def plan(state: str, why: str | None = None) -> dict[str, Any]:
    return {'state': state, 'why': why, 'zone_id': 'a', 'server_id': SERVER}


def zone(status: str, *current: bool) -> dict[str, Any]:
    servers = [{'id': SERVER if not number else 'b', 'name': f'ns{number}', 'counts': True, 'current': each,
                'status': 'SUCCESS' if each else 'ERROR', 'action': 'UPDATE', 'serial': 7, 'last_error': None,
                'plan_id': None}
               for number, each in enumerate(current)]
    return {'zone_name': 'example.com.', 'status': status, 'action': 'UPDATE', 'serial': 7, 'reported_serial': None,
            'needed': len(current), 'total': len(current), 'current': sum(current), 'servers': servers}


class Api:
    """Answers for plans and for zones, each in their order; the last one stays.  *posted* is what was changed."""

    def __init__(self, plans: list[Any], zones: list[Any]) -> None:
        self._answers = {'plans': plans, 'zones': zones}
        self.posted: list[str] = []

    def zone(self, name: str) -> Any:
        return {'id': 'a', 'name': name}

    def json(self, method: str, path: str) -> None:
        self.posted.append(f'{method} {path}')

    def get(self, path: str) -> Any:
        found = self._answers[path.split('/')[2]]
        answer = found.pop(0) if len(found) > 1 else found[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def parked(plan_id: str | None, reason: str | None = 'PARKED') -> dict[str, Any]:
    shown = zone('ERROR', False)
    shown['servers'][0] |= {'plan_id': plan_id, 'reason': reason, 'last_error': reason and f'It is {reason}.'}
    return shown


def wait_for_plan(plans: list[Any], zones: list[Any], seconds: float = 10.0) -> tuple[int, str]:
    stream = io.StringIO()
    code = plan_apply.parked(Api(plans, zones), PLAN, seconds, stream)  # type: ignore[arg-type]
    return code, stream.getvalue()


@pytest.mark.parametrize('plans, zones, code, told', [
    ([plan('APPROVED'), plan('APPLIED')], [zone('ERROR', False, True), zone('ACTIVE', True, True)], 0,
     'Plan 3f2a3f2a is applied on rfc2136:192.0.2.1:53.\nexample.com. is ACTIVE at serial 7 on 2 of 2 servers'),
    ([plan('APPLIED')], [zone('ERROR', True, True), zone('ERROR', True, True), zone('ACTIVE', True, True)], 0,
     'is ACTIVE'),
    ([plan('APPLIED')], [zone('ERROR', True, False)], 3, 'lacking: ns1'),
    ([plan('APPROVED'), plan('DROPPED', 'the zone or the server has changed since')], [zone('ERROR', False)], 3,
     'Plan 3f2a3f2a is DROPPED: the zone or the server has changed since.\n'),
    ([CliError('away'), plan('APPLIED')], [zone('ACTIVE', True)], 0, 'is ACTIVE'),
], ids=['applied and served', 'the error is from before', 'another server keeps the zone in error', 'dropped',
        'the API is away for a while'])
def test_how_the_wait_ends(plans: list[Any], zones: list[Any], code: int, told: str) -> None:
    ended, text = wait_for_plan(plans, zones)
    assert ended == code and told in re.sub('\nns.*', '', text)


@pytest.mark.parametrize('answer, why', [(plan('APPROVED'), 'plan 3f2a3f2a is not applied yet'),
                                         (CliError('It is away.'), 'It is away')])
def test_the_time_for_a_plan_is_over(answer: Any, why: str) -> None:
    assert wait_for_plan([answer], [zone('ERROR', False)], seconds=0.05) == (
        4, f'example.com. is not done on rfc2136:192.0.2.1:53 after 0.05 s: {why}.\n')


def test_the_plan_is_gone_with_its_zone() -> None:
    with pytest.raises(ApiRefusal, match='There is no plan'):
        wait_for_plan([ApiRefusal(404, {'type': 'plan_not_found', 'message': 'There is no plan 3f2a'})], [])


@pytest.mark.parametrize('shown, approved', [
    ([parked('p'), parked(None), parked(None), zone('ERROR', True)], ['p']),
    ([parked('p', None), parked(None), zone('ERROR', True)], ['p']),
    ([parked('p'), parked(None), parked('q'), zone('ERROR', True)], ['p', 'q']),
    ([parked(None, None), parked(None, 'REFUSED')], []),
], ids=['applied a moment later', 'approved before the server is in ERROR', 'parked anew', 'fails of something else'])
def test_what_is_parked_of_a_forced_change_is_waited_for(shown: list[Any], approved: list[str]) -> None:
    api = Api([], shown)
    plan_apply.approve_forced(api, 'example.com.', (), time.monotonic() + 30, io.StringIO())  # type: ignore[arg-type]
    assert len(shown) == 1 and api.posted == [f'POST /v2/plans/{plan_id}/approve' for plan_id in approved]
