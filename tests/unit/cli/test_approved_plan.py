"""Waiting for a parked plan that was approved: one script of the API's answers per situation."""

from __future__ import annotations

import io
import re
import time
from typing import Any

import pytest

from designate_pool.cli.client import ApiRefusal
from designate_pool.cli.commands import plan_apply
from designate_pool.cli.connection import CliError
from designate_pool.model import PlanState, StoredPlan

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


def wait(plans: list[Any], zones: list[Any], seconds: float = 10.0) -> tuple[int, str]:
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
    ended, text = wait(plans, zones)
    assert ended == code and told in re.sub('\nns.*', '', text)


@pytest.mark.parametrize('answer, why', [(plan('APPROVED'), 'plan 3f2a3f2a is not applied yet'),
                                         (CliError('It is away.'), 'It is away')])
def test_the_time_is_over(answer: Any, why: str) -> None:
    assert wait([answer], [zone('ERROR', False)], seconds=0.05) == (
        4, f'example.com. is not done on rfc2136:192.0.2.1:53 after 0.05 s: {why}.\n')


def test_the_plan_is_gone_with_its_zone() -> None:
    with pytest.raises(ApiRefusal, match='There is no plan'):
        wait([ApiRefusal(404, {'type': 'plan_not_found', 'message': 'There is no plan 3f2a'})], [])


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
