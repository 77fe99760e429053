"""The state of a zone, or of one of its recordsets, on each server, and waiting until enough servers serve it."""

from __future__ import annotations

import argparse
import shutil
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from designate_pool.backoff import Backoff
from designate_pool.cli import zone_wait
from designate_pool.cli.base import (ZONE, Argument, Lister, RecordSetCommand, Shown, ShowOne, TextCommand, all_columns,
                                     columns, rows, seconds)
from designate_pool.cli.client import Json
from designate_pool.cli.terminal import duration, moment

SERVER_COLUMNS = ('name', 'state', 'action', 'status', 'serial', 'expected_serial', 'current', 'diverged', 'attempts',
                  'next_attempt_at', 'reason', 'last_error')
RECORDSET_COLUMNS = ('name', 'state', 'served', 'serial')
WAIT_COLUMNS = ('zone_id', 'zone_name', 'serial', 'status', 'action', 'needed', 'current', 'servers_current', 'done',
                'timed_out', 'failed', 'seconds')
WAIT_SECONDS = 60.0
#: Seconds that the API waits at most, and that it may take beyond those to answer.
LONGEST_WAIT, ANSWER_SECONDS = 300.0, 30.0
PAUSES = Backoff(1.0, factor=1.0)
_INDENT = ' ' * 6


class ZoneExplain(TextCommand):
    """Explain why a zone is not ACTIVE, or not on every server.

    For each server: its last operation, the serial seen and wanted, the error, the tries and the next one; then what
    the pool lacks, and what to do.
    """

    arguments = (ZONE,)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        return all_columns(self.client.get(f'/v2/zones/{zone["id"]}/explain'))

    def text(self, found: Json) -> str:
        return explanation(found, datetime.now(timezone.utc), shutil.get_terminal_size((100, 24)).columns)


class ZoneServers(Lister):
    """List the state of a zone on each server."""

    arguments = (ZONE,)
    long_columns = ('action', 'expected_serial', 'diverged', 'attempts', 'next_attempt_at', 'reason')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        shown = self.client.get(f'/v2/zones/{self.client.zone(parsed_args.zone)["id"]}/servers')
        secondary = shown.get('secondary')
        if secondary and parsed_args.formatter == 'table':
            lines = master_lines(secondary, datetime.now(timezone.utc), shutil.get_terminal_size().columns)
            self.app.stderr.write(''.join(f'{line}\n' for line in lines))
        return rows(SERVER_COLUMNS, shown['servers'])


class RecordsetServers(RecordSetCommand, Lister):
    """List which servers serve a recordset as it is now."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(RECORDSET_COLUMNS, self.client.get(f'{self.path(parsed_args)}/servers')['servers'])


class ZoneWait(ShowOne):
    """Wait until enough servers serve a zone at its serial.

    A zone that is being deleted is waited for until it is gone.  The exit code is 0 when it was reached, 3 when the
    zone was in ERROR (with --through-errors: still is at the end), 4 when the time was over, 5 when the change waits as
    the pool is frozen, 1 when it could not be waited for.
    """

    arguments = (
        ZONE,
        Argument('--serial', type=int, metavar='N', help="this serial or a newer one; the zone's if not given"),
        Argument('--servers', type=int, metavar='K', help="this many servers; as many as the pool's threshold needs "
                                                          'if not given'),
        Argument('--timeout', type=seconds, default=WAIT_SECONDS, metavar='SECONDS',
                 help=f'how long to wait; {WAIT_SECONDS:g} if not given'),
        Argument('--through-errors', action='store_true', help='keep waiting while the zone is in ERROR, since '
                                                               'failures are retried; if not given, an ERROR ends '
                                                               'the wait with exit code 3'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        began = time.monotonic()
        zone = self.client.zone(parsed_args.zone)
        serial = zone['serial'] if parsed_args.serial is None else parsed_args.serial
        change = zone_wait.PendingChange(zone['id'], zone['name'], began, serial, zone['action'] == 'DELETE')
        try:
            verdict = self._wait(change, parsed_args)
        except KeyboardInterrupt:
            self.app.stderr.write(f'\n{zone_wait.without_waiting(change)}\n')
            raise
        verdict['seconds'] = round(time.monotonic() - began, 3)
        self.exit_code = _exit_code(verdict)
        if self.exit_code in (zone_wait.FAILED, zone_wait.TIMED_OUT):
            self.app.stderr.write(f"{_why(verdict, serial)}; "
                                  f"'designate-pool zone explain {zone['name']}' tells more.\n")
        elif self.exit_code == zone_wait.FROZEN:
            self.app.stderr.write(f'{zone_wait.frozen(zone["name"], verdict["freeze"]).line}\n')
        return columns(verdict, WAIT_COLUMNS)

    def _wait(self, change: zone_wait.PendingChange, parsed_args: argparse.Namespace) -> Json:
        """The API's last answer; one request waits no longer than :data:`LONGEST_WAIT`."""
        end = change.began + parsed_args.timeout
        parameters = {} if parsed_args.servers is None else {'servers': parsed_args.servers}
        if not change.deletes:
            parameters['serial'] = change.wanted

        verdict: Json | None = None

        def look() -> Json | None:
            nonlocal verdict
            remaining = max(0.0, min(LONGEST_WAIT, end - time.monotonic()))
            verdict = self.client.get(f'/v2/zones/{change.zone_id}/wait', remaining + ANSWER_SECONDS, **parameters,
                                      timeout=f'{remaining:.3f}')
            # In an ERROR that servers retry.
            is_retried = (parsed_args.through_errors and verdict['failed'] and verdict['status'] == 'ERROR'
                          and (verdict['action'] == 'DELETE') == change.deletes)
            is_over = time.monotonic() >= end or not verdict['timed_out'] and not is_retried
            return verdict if is_over else None

        _, failure = zone_wait.poll(look, end, PAUSES)
        if failure is not None:
            raise failure
        assert verdict is not None
        return verdict


def _exit_code(found: Json) -> int:
    if found['done']:
        return zone_wait.DONE
    if found['failed']:
        return zone_wait.FAILED
    if found.get('freeze'):
        return zone_wait.FROZEN
    return zone_wait.TIMED_OUT if found['timed_out'] else zone_wait.DELETED_MEANWHILE


def _why(found: Json, wanted: Any) -> str:
    have = f'{found["current"]} of the {found["needed"]} servers that are needed have serial {wanted}'
    if found['failed']:
        return f'{found["zone_name"]} is in {found["status"]}: {have}'
    return f'{found["zone_name"]} is {found["status"]} after {found["seconds"]:g} s: {have}'


def explanation(explained: Mapping[str, Any], now: datetime, width: int = 100) -> str:
    """The explanation of a zone (``/v2/zones/{id}/explain``) for people, in lines of *width*."""
    lines = [explained['summary'], '', *_servers(explained['servers'], now, width), '']
    if explained.get('secondary'):
        lines += [*master_lines(explained['secondary'], now, width), '']
    if explained['lacking']:
        lines.append(explained['lacking'])
    if explained.get('former_pool'):
        lines.append(_kept(explained['former_pool'], now))
    changed = _changed(explained, now)
    if changed is not None:
        lines.append(changed)
    if explained.get('also_notifies'):
        lines.append(f'Also notified of each change: {", ".join(explained["also_notifies"])}')
    lines += _findings(explained.get('findings', ()))
    advice = explained['advice'] or ['nothing.']
    if len(advice) == 1:
        lines.append(f'To do: {advice[0]}')
    else:
        lines += ['To do:', *(f'  - {line}' for line in advice)]
    return '\n'.join(lines) + '\n'


def _servers(servers: Sequence[Json], now: datetime, width: int) -> Iterator[str]:
    """A line for each server, and below it the explanation if it is behind or does not count."""
    rows: list[tuple[str, ...]] = [('', 'server', 'state', 'action', 'status', 'serial', 'wanted', 'tries', 'next try')]
    for server in servers:
        rows.append((_mark(server), server['name'], server['state'], server['action'],
                     _status(server), zone_wait.or_dash(server['serial']),
                     'gone' if server['action'] == 'DELETE' else str(server['expected_serial']),
                     str(server['attempts']),
                     _next_try(server, now)))
    if all(server['state'] == 'active' for server in servers):
        rows = [(*row[:2], *row[3:]) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for number, row in enumerate(rows):
        yield '  ' + '  '.join(cell.ljust(size) for cell, size in zip(row, widths)).rstrip()
        if number and (servers[number - 1]['seen_at'] or not (
                servers[number - 1]['current'] and servers[number - 1]['counts'])):
            yield from textwrap.wrap(servers[number - 1]['state_of'], width, initial_indent=_INDENT,
                                     subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)


def master_lines(found: Mapping[str, Any], now: datetime, width: int) -> Iterator[str]:
    """How a secondary zone follows its masters, for people."""
    yield f'Masters: {", ".join(found["masters"])}'
    if found['checked_at'] is not None:
        yield (f'Refreshed last from {found["checked_with"]}, '
               f'{duration(max(0.0, (now - moment(found["checked_at"])).total_seconds()))} ago; it expires '
               f'{_in(found["expires_at"], now)} unless a master is reached.')
    elif not found['served']:
        yield 'It has never been transferred.'
    if found['last_error']:
        number = f'{found["failures"]} {"refresh" if found["failures"] == 1 else "refreshes"}'
        yield from textwrap.wrap(f'{number} failed since: {found["last_error"]}', width, subsequent_indent=_INDENT,
                                 break_long_words=False, break_on_hyphens=False)
    if found['next_refresh_at'] is not None:
        yield f'Next refresh: {_in(found["next_refresh_at"], now)}.'


def _kept(former: Mapping[str, Any], now: datetime) -> str:
    until = 'until its own pool serves it' if former['until'] is None else (
        f'for another {duration(max(0.0, (moment(former["until"]) - now).total_seconds()))}')
    return f'The servers of the pool {former["name"]}, which it was moved from, keep it {until}.'


def _in(at: str, now: datetime) -> str:
    remaining = (moment(at) - now).total_seconds()
    return f'in {duration(remaining)}' if remaining > 0 else 'now'


def _findings(findings: Sequence[Json]) -> Iterator[str]:
    """A line for each recent finding of an audit."""
    for finding in findings:
        ending = 'no longer relevant' if finding['mended'] is None else 'not repaired yet'
        yield (f'Found at {moment(finding["found_at"]):%Y-%m-%d %H:%M:%S} UTC by comparing '
               f'{finding["kind"].lower()}, on {finding["server_name"]}: {finding["found"]}; '
               f'{finding["done"]}: {ending} ({finding["request_id"]}).')


def _changed(explained: Mapping[str, Any], now: datetime) -> str | None:
    """When the zone was changed last, and how long it took until the pool served that."""
    if explained['changed_at'] is None:
        return None
    changed = moment(explained['changed_at'])
    request = f'request {explained["request_id"]}' if explained['request_id'] else ''
    by = ', '.join(filter(None, (explained.get('changed_by'), request)))
    text = f'Changed last at {changed:%Y-%m-%d %H:%M:%S} UTC{f" by {by}" if by else ""}'
    if explained['converged_at'] is not None and (taken := moment(explained['converged_at']) - changed).days >= 0:
        return f'{text}; the pool had that after {duration(taken.total_seconds())}.'
    return f'{text}, {duration(max(0.0, (now - changed).total_seconds()))} ago.'


def _mark(each: Mapping[str, Any]) -> str:
    """A server that does not count is not marked as behind."""
    return 'ok' if each['current'] else '--' if each['counts'] else ''


def _status(each: Json) -> str:
    if not each['created_at']:
        return 'not begun'
    return 'DIVERGED' if each['diverged'] else str(each['status'])


def _next_try(server: Json, now: datetime) -> str:
    at, deadline = server['next_attempt_at'], server['deadline_at']
    if not server['current'] and deadline is not None and moment(deadline) > now:
        return 'polled now'  # the tries of a round are under way; the next one is only due if they fail
    if at is None:
        return '-'
    if server['silent_since'] and server['status'] == 'ERROR':
        return 'when it answers'  # it is probed until then
    remaining = round(max(0.0, (moment(at) - now).total_seconds()), 1)
    return 'now' if remaining == 0 else f'in {remaining:g} s'
