"""Waiting for a zone: as a project that it is shared with, which sees no servers, and while it is in ERROR."""

from __future__ import annotations

import argparse
import time

import pytest

from designate_pool.cli import zone_wait
from designate_pool.cli.client import ApiRefusal
from designate_pool.cli.commands import zone_status
from designate_pool.cli.zone_wait import PendingChange

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
