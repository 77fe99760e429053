"""Waiting until the pool agrees on a change, and telling how it goes, server by server."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any, TextIO

from designate_pool import serial
from designate_pool.cli import explaining
from designate_pool.cli.client import Client, Failure, Refused

Json = dict[str, Any]
DONE, DELETED_MEANWHILE, FAILED, TIMED_OUT = 0, 1, 3, 4
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5
_COLOURS = {'SUCCESS': '32', 'ERROR': '31', 'PENDING': '33'}


@dataclasses.dataclass(frozen=True)
class Change:
    """What is waited for.

    :ivar wanted: the serial that the change got; None where it is not known, or where the zone goes
    :ivar deletes: whether the zone is to go
    :ivar began: when the change was asked for, by :func:`time.monotonic`
    """

    zone_id: str
    zone_name: str
    began: float
    wanted: int | None = None
    deletes: bool = False


@dataclasses.dataclass(frozen=True)
class Ending:
    """How the wait ended: the exit code and one line for the user."""

    code: int
    line: str


def follow(client: Client, change: Change, seconds: float, tell: Callable[[Json, float], None]) -> Ending:
    """Wait until enough servers have *change*, it has failed, or *seconds* are over.

    :param tell: called with a server, as the API shows it, and the seconds since the request when it has changed
    """
    end = change.began + seconds
    seen: dict[str, Any] = {}
    shown: Json | None = None
    trouble = 'nothing was heard from the API'
    pause = FIRST_PAUSE
    while True:
        try:
            shown = client.get(f'/v2/zones/{change.zone_id}/servers')
        except Refused as refused:
            if refused.status == 404:
                return _gone(change)
            trouble = str(refused)
        except Failure as failure:  # the API may be back before the time is over
            trouble = str(failure)
        else:
            if change.wanted is None and not change.deletes:
                change = dataclasses.replace(change, wanted=shown['serial'])
            _tell_news(shown, seen, time.monotonic() - change.began, tell)
            ending = judge(shown, change, time.monotonic() - change.began)
            if ending is not None:
                return ending
        left = end - time.monotonic()
        if left <= 0:
            return _timed_out(shown, change, seconds, trouble)
        time.sleep(min(pause, left))
        pause = min(pause * 1.3, LONGEST_PAUSE)


def judge(shown: Json, change: Change, elapsed: float) -> Ending | None:
    """Whether the wait is over, from what ``/v2/zones/{id}/servers`` says; None while it is not.

    The pool agrees on *change* when the zone is ACTIVE at its serial or a newer one, or was at any time since: a change
    that came after it may be under way already.
    """
    ms = f'{elapsed * 1000:.0f} ms'
    if not change.deletes:
        if shown['action'] == 'DELETE':
            return Ending(DELETED_MEANWHILE, f'{change.zone_name} is being deleted by someone else.')
        if change.wanted is not None and _reached(shown, change.wanted):
            return Ending(DONE, f'{change.zone_name} is ACTIVE at serial {shown["serial"]} on {shown["current"]} of '
                                f'{_total(shown)} servers after {ms}.')
    if shown['status'] == 'ERROR':
        return Ending(FAILED, f'{explaining.headline(shown)}; {missing(shown)}')
    return None


def _reached(shown: Json, wanted: int) -> bool:
    if shown['status'] == 'ACTIVE' and serial.at_least(shown['serial'], wanted):
        return True
    reported = shown.get('reported_serial')
    return reported is not None and serial.at_least(reported, wanted)


def missing(shown: Json) -> str:
    """Which servers lack the change, and why."""
    behind = [f'{each["name"]} ({each["last_error"] or each["status"]})' for each in explaining.counting(shown)
              if not each['current']]
    return f'lacking: {", ".join(behind)}.' if behind else 'no server lacks it.'


def _gone(change: Change) -> Ending:
    if change.deletes:
        return Ending(DONE, f'{change.zone_name} is gone after {(time.monotonic() - change.began) * 1000:.0f} ms.')
    return Ending(DELETED_MEANWHILE, f'{change.zone_name} was deleted by someone else.')


def _timed_out(shown: Json | None, change: Change, seconds: float, trouble: str) -> Ending:
    if shown is None:
        return Ending(TIMED_OUT, f'Nothing is known of {change.zone_name} after {seconds:g} s: {trouble}')
    state = 'gone' if change.deletes else f'ACTIVE at serial {change.wanted}'
    return Ending(TIMED_OUT, f'{change.zone_name} is not {state} after {seconds:g} s: {shown["current"]} of '
                             f'{_total(shown)} servers have the change, {shown["needed"]} are needed; {missing(shown)}')


def _total(shown: Json) -> int:
    return len(explaining.counting(shown)) if shown['total'] is None else int(shown['total'])


def _tell_news(shown: Json, seen: dict[str, Any], elapsed: float, tell: Callable[[Json, float], None]) -> None:
    for each in shown['servers']:
        state = tuple(each[name] for name in ('action', 'status', 'serial', 'last_error', 'current'))
        if seen.get(each['id']) != state:
            seen[each['id']] = state
            tell(each, elapsed)


class Progress:
    """Writes a line per news, in colour where *stream* is a terminal."""

    def __init__(self, stream: TextIO, colour: bool) -> None:
        self._stream = stream
        self._colour = colour

    def __call__(self, server: Json, elapsed: float) -> None:
        status = server['status'].ljust(7)
        if self._colour:
            status = f'\033[{_COLOURS.get(server["status"], "0")}m{status}\033[0m'
        serial_seen = '-' if server['serial'] is None else server['serial']
        line = f'{server["name"]}  {server["action"]} {status}  serial {serial_seen}  {elapsed * 1000:.0f} ms'
        if server['last_error'] and not server['current']:
            line += f'  {server["last_error"]}'
        self._stream.write(line + '\n')
        self._stream.flush()
