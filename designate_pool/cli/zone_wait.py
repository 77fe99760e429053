"""Waiting until the pool serves a change, with the progress of each server, by asking the API again and again."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any, TextIO, TypeVar

from designate_pool import serial
from designate_pool.backoff import Backoff
from designate_pool.cli import terminal
from designate_pool.cli.client import ApiRefusal, Client, Json
from designate_pool.cli.connection import CliError
from designate_pool.cli.terminal import LiveLines, is_live, moment

Result = TypeVar('Result')
TOO_MANY = 429


def poll(look: Callable[[], Result | None], end: float, pauses: Backoff) -> tuple[Result | None, CliError | None]:
    """Call *look* until it returns something.

    :param end: when the time is over, by :func:`time.monotonic`
    :return: what *look* returned last, and what it failed with last: an API that does not answer may be back before the
        time is over
    :raises ApiRefusal: when no other look can mend it, as where what is waited for is not there
    """
    delays = pauses.delays()
    while True:
        result, failure = None, None
        try:
            result = look()
        except CliError as error:
            if isinstance(error, ApiRefusal) and error.status < 500 and error.status != TOO_MANY:
                raise
            failure = error
        remaining = end - time.monotonic()
        if result is not None or remaining <= 0:
            return result, failure
        time.sleep(min(next(delays), remaining))


DONE, DELETED_MEANWHILE, FAILED, TIMED_OUT, FROZEN = 0, 1, 3, 4, 5
PAUSES = Backoff(0.01, 1.3, cap=0.5)


@dataclasses.dataclass(frozen=True)
class PendingChange:
    """What is waited for.

    :ivar wanted: the serial that the change got; None where it is not known, or where the zone is deleted
    :ivar began: when the change was requested, by :func:`time.monotonic`
    :ivar refresh_before: of a refresh, how the secondary zone followed its masters before; None for other changes
    """

    zone_id: str
    zone_name: str
    began: float
    wanted: int | None = None
    deletes: bool = False
    refresh_before: Json | None = None


@dataclasses.dataclass(frozen=True)
class WaitOutcome:
    """How the wait ended: the exit code and one line for the user."""

    code: int
    line: str


def follow(client: Client, change: PendingChange, seconds: float, stream: TextIO) -> int:
    """Wait for *change* with progress and the outcome written to *stream*; the exit code."""
    try:
        outcome = wait_for(client, change, seconds, WaitProgress(stream, change.wanted))
    except KeyboardInterrupt:
        stream.write(f'\n{without_waiting(change)}\n')
        raise
    stream.write(outcome.line + '\n')
    if outcome.code in (FAILED, TIMED_OUT):
        stream.write(f"'designate-pool zone explain {change.zone_name}' tells more.\n")
    stream.flush()
    return outcome.code


def wait_for(client: Client, change: PendingChange, seconds: float,
             on_news: Callable[[Json, float], None]) -> WaitOutcome:
    """Wait until enough servers have *change*, it has failed, or *seconds* are over.

    :param on_news: called with a server, as the API shows it, and the seconds since the request when it has changed
    """
    seen: dict[str, Any] = {}
    shown: Json | None = None

    def look() -> WaitOutcome | None:
        nonlocal shown, change
        try:
            state = shown = client.get(f'/v2/zones/{change.zone_id}/servers')
        except ApiRefusal as refused:
            if refused.status == 404:
                return _gone(change)
            if refused.status != 403:
                raise
            state = client.get(f'/v2/zones/{change.zone_id}')
        if change.wanted is None and not change.deletes:
            change = dataclasses.replace(change, wanted=state['serial'])
        _report_changes(state, seen, time.monotonic() - change.began, on_news)
        return judge(state, change, time.monotonic() - change.began)

    outcome, failure = poll(look, change.began + seconds, PAUSES)
    return outcome or _timed_out(shown, change, seconds, failure)


def judge(shown: Json, change: PendingChange, elapsed: float) -> WaitOutcome | None:
    """Whether the wait is over, from what ``/v2/zones/{id}/servers`` says; None while it is not.

    A project that the zone is shared with sees ``/v2/zones/{id}`` alone, without the servers.  The pool serves *change*
    when the zone is ACTIVE at its serial or a newer one, or was at any time since: a later change may be under way
    already.
    """
    ms = f'{elapsed * 1000:.0f} ms'
    before, secondary = change.refresh_before, shown.get('secondary')
    if before and secondary and shown['action'] != 'DELETE':
        if secondary['failures'] > before['failures']:
            return WaitOutcome(FAILED, f'{change.zone_name} was not refreshed: {secondary["last_error"]}.')
        if secondary['checked_at'] == before['checked_at']:
            return None
        # What the servers have to serve is the serial that the refresh has brought, if any.
        change = dataclasses.replace(change, wanted=shown['serial'])
    if not change.deletes:
        if shown['action'] == 'DELETE':
            return WaitOutcome(DELETED_MEANWHILE, f'{change.zone_name} is being deleted by someone else.')
        if change.wanted is not None and _reached(shown, change.wanted):
            where = f' on {shown["current"]} of {_total(shown)} servers' if 'servers' in shown else ''
            return WaitOutcome(DONE, f'{change.zone_name} is ACTIVE at serial {shown["serial"]}{where} after {ms}.')
    if shown.get('freeze'):
        return frozen(change.zone_name, shown['freeze'])
    if shown['status'] == 'ERROR' and secondary and not secondary['served']:
        return WaitOutcome(FAILED, f'{change.zone_name} is in ERROR: {secondary["last_error"]}.')
    if (release := shown.get('release')) and release['held']:
        return WaitOutcome(FAILED, f'The release of {change.zone_name} is held: {release["held"]}.')
    if shown['status'] != 'ERROR' or _is_outdated(shown):
        return None
    if 'servers' not in shown:
        return WaitOutcome(FAILED, f'{change.zone_name} is in ERROR.')
    failed = sum(server['status'] == 'ERROR' for server in _counting(shown))
    return WaitOutcome(FAILED, f'{change.zone_name} is in ERROR: {failed} of {len(_counting(shown))} servers failed; '
                               f'{_lacking(shown)}')


def frozen(zone_name: str, freeze: Json) -> WaitOutcome:
    """Of a change that waits for the end of a freeze, which may take long."""
    until = freeze['until'] and f' until {moment(freeze["until"]):%Y-%m-%d %H:%M:%S} UTC'
    return WaitOutcome(FROZEN, f'The change of {zone_name} was accepted and waits, since its pool is frozen'
                               f'{until or ""}: {freeze["reason"]}')


def _reached(shown: Json, wanted: int) -> bool:
    # The serials of a secondary zone are its masters', and not known before it is transferred.
    if shown['status'] == 'ACTIVE' and (shown.get('secondary') or serial.at_least(shown['serial'], wanted)):
        return True
    reported = shown.get('reported_serial')
    return reported is not None and serial.at_least(reported, wanted)


def _is_outdated(shown: Json) -> bool:
    """Whether the zone is still in the ERROR it was in before enough servers had the change."""
    return shown.get('needed') is not None and bool(shown['current'] >= shown['needed'])


def without_waiting(change: PendingChange) -> str:
    """What continues after the wait is interrupted, and how to wait again."""
    name = change.zone_name
    if change.deletes:
        return (f"{name} is still being deleted; 'designate-pool zone explain {name}' shows which servers "
                'have it yet.')
    serial_wanted = '' if change.wanted is None else f' --serial {change.wanted}'
    return f"The change continues in the background; 'designate-pool zone wait {name}{serial_wanted}' waits for it."


def _counting(shown: Json) -> list[Json]:
    """The servers that the threshold is about."""
    return [server for server in shown['servers'] if server['counts']]


def _lacking(shown: Json) -> str:
    """Which servers lack the change, and why."""
    behind = [f'{server["name"]} ({server["last_error"] or server["status"]})' for server in _counting(shown)
              if not server['current']]
    return f'lacking: {", ".join(behind)}.' if behind else 'no server lacks it.'


def _gone(change: PendingChange) -> WaitOutcome:
    if change.deletes:
        return WaitOutcome(DONE, f'{change.zone_name} is gone after {(time.monotonic() - change.began) * 1000:.0f} ms.')
    return WaitOutcome(DELETED_MEANWHILE, f'{change.zone_name} was deleted by someone else.')


def _timed_out(shown: Json | None, change: PendingChange, seconds: float, failure: CliError | None) -> WaitOutcome:
    if shown is None:
        what = f'{change.zone_name} is not ACTIVE yet' if failure is None else f'Nothing is known of {change.zone_name}'
        return WaitOutcome(TIMED_OUT, f'{what} after {seconds:g} s{"." if failure is None else f": {failure}"}')
    state = 'gone' if change.deletes else f'ACTIVE at serial {change.wanted}'
    return WaitOutcome(TIMED_OUT, f'{change.zone_name} is not {state} after {seconds:g} s: {shown["current"]} of '
                       f'{_total(shown)} servers have the change, {shown["needed"]} are needed; {_lacking(shown)}')


def _total(shown: Json) -> int:
    return len(_counting(shown)) if shown['total'] is None else int(shown['total'])


def _report_changes(shown: Json, seen: dict[str, Any], elapsed: float, on_news: Callable[[Json, float], None]) -> None:
    for server in shown.get('servers', ()):
        state = tuple(server[name] for name in ('action', 'status', 'serial', 'last_error', 'current'))
        if seen.get(server['id']) != state:
            seen[server['id']] = state
            on_news(server, elapsed)


class WaitProgress:
    """Shows the state of each server: redrawn on a terminal, else a line whenever it changes."""

    def __init__(self, stream: TextIO, wanted: int | None = None) -> None:
        self._stream = stream
        self._wanted = wanted
        self._lines = LiveLines(stream) if is_live(stream) else None
        self._rows: dict[str, tuple[Json, float]] = {}

    def __call__(self, server: Json, elapsed: float) -> None:
        if self._lines is None:
            self._stream.write(_server_line(server, server['name'], elapsed, or_dash(server['serial'])) + '\n')
            self._stream.flush()
            return
        self._rows[server['id']] = server, elapsed
        width = max(len(row['name']) for row, _ in self._rows.values())
        self._lines.draw([self._line(row, at, width) for row, at in self._rows.values()])

    def _line(self, server: Json, elapsed: float, width: int) -> str:
        mark = terminal.mark('done' if server['current'] else 'failed' if server['status'] == 'ERROR' else 'pending',
                             self._stream)
        serial_seen = or_dash(server['serial'])
        if self._wanted is not None and not server['current'] and server['action'] != 'DELETE':
            serial_seen += f' of {self._wanted}'
        return f'{mark} {_server_line(server, server["name"].ljust(width), elapsed, serial_seen)}'


def _server_line(server: Json, name: str, elapsed: float, serial_seen: str) -> str:
    line = f'{name}  {server["action"]} {server["status"].ljust(7)}  serial {serial_seen}  {elapsed * 1000:.0f} ms'
    if server['last_error'] and not server['current']:
        line += f'  {" ".join(server["last_error"].split())}'
    return line


def or_dash(serial_seen: int | None) -> str:
    """A serial, or a dash where there is none."""
    return '-' if serial_seen is None else str(serial_seen)
