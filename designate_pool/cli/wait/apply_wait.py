"""Waiting until a pool serves what was applied to it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TextIO

from designate_pool.backoff import Backoff
from designate_pool.cli.args.sync_config import dashed, short
from designate_pool.cli.http.client import Client
from designate_pool.cli.http.errors import Json
from designate_pool.cli.wait.poll import poll
from designate_pool.cli.wait.zone_wait import (DELETED_MEANWHILE, DONE, FAILED, TIMED_OUT, PendingChange, WaitOutcome,
                                               follow)
from designate_pool.model import StoredPlan

PAUSE = Backoff(0.1, factor=1.0)
#: Of a parked plan: a pool manager has still to apply it.
_UNDER_WAY = ('PARKED', 'APPROVED')


def zones(changed: Sequence[tuple[Client, str]], seconds: float, stream: TextIO) -> int:
    """Wait until each zone is served at the serial that it has now; the exit code, that of the worst.

    :param seconds: for all of them together
    """
    if not changed:
        stream.write('There is nothing to wait for: no zone of a pool was changed.\n')
    began = time.monotonic()
    codes = []
    for client, name in changed:
        zone = client.zone(name)
        codes.append(follow(client, PendingChange(zone['id'], zone['name'], began, zone['serial']), seconds, stream))
    return next((code for code in (DELETED_MEANWHILE, FAILED, TIMED_OUT) if code in codes), DONE)


def parked(client: Client, plan: StoredPlan, seconds: float, stream: TextIO) -> int:
    """Wait until a plan that was approved is applied, and its zone is served; the exit code."""
    began = time.monotonic()
    assert plan.domain_id is not None and plan.server_id is not None
    outcome, failure = poll(lambda: _plan_outcome(client, plan), began + seconds, PAUSE)
    if outcome is None:
        why = f'plan {short(plan.id)} is not applied yet' if failure is None else str(failure).rstrip('.')
        stream.write(f'{plan.zone} is not done on {plan.target} after {seconds:g} s: {why}.\n')
        return TIMED_OUT
    stream.write(outcome.line + '\n')
    if outcome.code != DONE:
        return outcome.code
    return follow(client, PendingChange(dashed(plan.domain_id), plan.zone, began), seconds, stream)


def _plan_outcome(client: Client, plan: StoredPlan) -> WaitOutcome | None:
    """What became of the plan; None until that is known, and until the zone's state takes it into account."""
    found = client.get(f'/v2/plans/{dashed(plan.id)}')
    if found['state'] in _UNDER_WAY:
        return None
    if found['state'] != 'APPLIED':
        return WaitOutcome(FAILED, f'Plan {short(plan.id)} is {found["state"]}: {found["why"]}.')
    shown = client.get(f'/v2/zones/{found["zone_id"]}/servers')
    on_server = [each for each in shown['servers'] if each['id'] == found['server_id']]
    if not all(each['current'] for each in on_server) or _is_outdated(shown):
        return None
    return WaitOutcome(DONE, f'Plan {short(plan.id)} is applied on {plan.target}.')


def _is_outdated(shown: Json) -> bool:
    """Whether the zone is still in the ERROR it was in before enough servers had the change."""
    return shown['status'] == 'ERROR' and shown['needed'] is not None and shown['current'] >= shown['needed']
