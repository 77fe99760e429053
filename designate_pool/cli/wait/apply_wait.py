"""Waiting until a pool serves what was applied to it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TextIO

from designate_pool.cli.args.sync_config import short, whole
from designate_pool.cli.base import Json
from designate_pool.cli.http.client import ApiRefusal, Client, CliError
from designate_pool.cli.wait import zone_wait
from designate_pool.model import StoredPlan

PAUSE = 0.1
#: Of a parked plan: a pool manager has still to see to it.
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
        codes.append(_follow(client, zone_wait.PendingChange(zone['id'], zone['name'], began, zone['serial']), seconds,
                             stream))
    return next((code for code in (zone_wait.DELETED_MEANWHILE, zone_wait.FAILED, zone_wait.TIMED_OUT)
                 if code in codes),
                zone_wait.DONE)


def parked(client: Client, plan: StoredPlan, seconds: float, stream: TextIO) -> int:
    """Wait until a plan that was approved is applied, and its zone is served; the exit code."""
    began = time.monotonic()
    assert plan.domain_id is not None and plan.server_id is not None
    zone_id = whole(plan.domain_id)
    while True:
        try:
            ending = _ending(client, plan)
            told = f'plan {short(plan.id)} is not applied yet'
        except ApiRefusal:
            raise
        except CliError as failure:  # the API may be back before the time is over
            ending, told = None, str(failure)
        if ending is not None:
            stream.write(ending.line + '\n')
        if ending is not None and ending.code != zone_wait.DONE:
            return ending.code
        if ending is not None:
            return _follow(client, zone_wait.PendingChange(zone_id, plan.zone, began), seconds, stream)
        if time.monotonic() - began >= seconds:
            stream.write(f'{plan.zone} is not done on {plan.target} after {seconds:g} s: {told.rstrip(".")}.\n')
            return zone_wait.TIMED_OUT
        time.sleep(PAUSE)


def _ending(client: Client, plan: StoredPlan) -> zone_wait.WaitOutcome | None:
    """Whether it is known what became of the plan, and the zone's state tells of it; None while it is not."""
    found = client.get(f'/v2/plans/{whole(plan.id)}')
    if found['state'] in _UNDER_WAY:
        return None
    if found['state'] != 'APPLIED':
        return zone_wait.WaitOutcome(zone_wait.FAILED, f'Plan {short(plan.id)} is {found["state"]}: {found["why"]}.')
    shown = client.get(f'/v2/zones/{found["zone_id"]}/servers')
    on_server = [each for each in shown['servers'] if each['id'] == found['server_id']]
    if not all(each['current'] for each in on_server) or _is_late(shown):
        return None
    return zone_wait.WaitOutcome(zone_wait.DONE, f'Plan {short(plan.id)} is applied on {plan.target}.')


def _is_late(shown: Json) -> bool:
    """Whether the zone is still called what it was before enough servers had it."""
    return shown['status'] == 'ERROR' and shown['needed'] is not None and shown['current'] >= shown['needed']


def _follow(client: Client, change: zone_wait.PendingChange, seconds: float, stream: TextIO) -> int:
    try:
        ending = zone_wait.follow(client, change, seconds, zone_wait.WaitProgress(stream, change.wanted))
    except KeyboardInterrupt:
        stream.write(f'\n{zone_wait.left_alone(change)}\n')
        raise
    stream.write(ending.line + '\n')
    if ending.code in (zone_wait.FAILED, zone_wait.TIMED_OUT):
        stream.write(f"'designate-pool zone explain {change.zone_name}' tells more.\n")
    stream.flush()
    return ending.code
