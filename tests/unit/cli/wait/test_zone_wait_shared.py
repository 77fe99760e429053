"""The wait of a project for a change in a zone that another one shares with it: it sees no servers."""

from __future__ import annotations

import argparse
import time

import pytest

from designate_pool.cli import zone_wait
from designate_pool.cli.http.errors import ApiRefusal

PENDING = {'status': 'PENDING', 'action': 'UPDATE', 'serial': 8}


def wait(states, wanted, seconds=30.0):
    """How the wait ends when the zone is in *states*, one after the other."""
    left = list(states)

    def get(path):
        if path.endswith('/servers'):
            raise ApiRefusal(403, {'type': 'forbidden', 'message': 'You may not.'})
        return left.pop(0) if len(left) > 1 else left[0]

    change = zone_wait.PendingChange('1', 'example.com.', time.monotonic(), wanted)
    return zone_wait.wait_for(argparse.Namespace(get=get), change, seconds, lambda *told: None)


@pytest.mark.parametrize('wanted', [None, 7, 8])
def test_it_ends_when_the_zone_is_active_at_the_serial(wanted):
    outcome = wait([PENDING, {**PENDING, 'status': 'ACTIVE', 'action': 'NONE'}], wanted)
    assert outcome.code == zone_wait.DONE and 'example.com. is ACTIVE at serial 8 after' in outcome.line


@pytest.mark.parametrize('state, code', [({'status': 'ERROR'}, 'FAILED'), ({'action': 'DELETE'}, 'DELETED_MEANWHILE')])
def test_it_ends_when_the_zone_fails_or_goes(state, code):
    assert wait([PENDING, {**PENDING, **state}], 8).code == getattr(zone_wait, code)


def test_it_ends_with_its_time():
    outcome = wait([PENDING], 8, seconds=0.0)
    assert outcome == (zone_wait.WaitOutcome(zone_wait.TIMED_OUT, 'example.com. is not ACTIVE yet after 0 s.'))
