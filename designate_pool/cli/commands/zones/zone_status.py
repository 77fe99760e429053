"""The state of a zone, or of one of its recordsets, on each server, and waiting until enough servers serve it."""

from __future__ import annotations

import argparse
import shutil
import time
from datetime import datetime, timezone
from typing import Any

from designate_pool.cli import zone_wait
from designate_pool.cli.args.common import add_recordset, add_zone
from designate_pool.cli.base import Lister, Shown, ShowOne, TextCommand, all_columns, columns, rows, seconds
from designate_pool.cli.http.errors import ApiRefusal, Json
from designate_pool.cli.render import explain

SERVER_COLUMNS = ('name', 'state', 'action', 'status', 'serial', 'expected_serial', 'current', 'diverged', 'attempts',
                  'next_attempt_at', 'reason', 'last_error')
RECORDSET_COLUMNS = ('name', 'state', 'served', 'serial')
WAIT_COLUMNS = ('zone_id', 'zone_name', 'serial', 'status', 'action', 'needed', 'current', 'servers_current', 'done',
                'timed_out', 'failed', 'seconds')
WAIT_SECONDS = 60.0
#: Seconds that the API waits at most, and that it may take beyond those to answer.
LONGEST_WAIT, ANSWER_SECONDS = 300.0, 30.0
PAUSE = 1.0


class ExplainZone(TextCommand):
    """Explain why a zone is not ACTIVE, or not on every server.

    For each server: its last operation, the serial seen and wanted, the error, the tries and the next one; then what
    the pool lacks, and what to do.
    """

    add_arguments = staticmethod(add_zone)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        explained = self.client.get(f'/v2/zones/{zone["id"]}/explain')
        return all_columns(explained)

    def text(self, found: Json) -> str:
        return explain.text(found, datetime.now(timezone.utc), shutil.get_terminal_size((100, 24)).columns)


class ListZoneServers(Lister):
    """List the state of a zone on each server."""

    add_arguments = staticmethod(add_zone)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        shown = self.client.get(f'/v2/zones/{self.client.zone(parsed_args.zone)["id"]}/servers')
        secondary = shown.get('secondary')
        if secondary and parsed_args.formatter == 'table':
            lines = explain.master_lines(secondary, datetime.now(timezone.utc), shutil.get_terminal_size().columns)
            self.app.stderr.write(''.join(f'{line}\n' for line in lines))
        return rows(SERVER_COLUMNS, shown['servers'])


class ListRecordSetServers(Lister):
    """List which servers serve a recordset as it is now."""

    add_arguments = staticmethod(add_recordset)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        zone = self.client.zone(parsed_args.zone)
        recordset = self.client.recordset(zone, parsed_args.recordset, parsed_args.type)
        shown = self.client.get(f'/v2/zones/{zone["id"]}/recordsets/{recordset["id"]}/servers')
        return rows(RECORDSET_COLUMNS, shown['servers'])


class WaitForZone(ShowOne):
    """Wait until enough servers serve a zone at its serial.

    A zone that is being deleted is waited for until it is gone.  The exit code is 0 when it was reached, 3 when the
    zone was in ERROR (with --through-errors: still is at the end), 4 when the time was over, 1 when it could not be
    waited for.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_zone(parser)
        parser.add_argument('--serial', type=int, metavar='N',
                            help="this serial or a newer one; the zone's if not given")
        parser.add_argument('--servers', type=int, metavar='K',
                            help="this many servers; as many as the pool's threshold needs if not given")
        parser.add_argument('--timeout', type=seconds, default=WAIT_SECONDS, metavar='SECONDS',
                            help=f'how long to wait; {WAIT_SECONDS:g} if not given')
        parser.add_argument('--through-errors', action='store_true',
                            help='keep waiting while the zone is in ERROR, since failures are retried; if not given, '
                                 'an ERROR ends the wait with exit code 3')

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
        return columns(verdict, WAIT_COLUMNS)

    def _wait(self, change: zone_wait.PendingChange, parsed_args: argparse.Namespace) -> Json:
        """The API's last answer; one request waits no longer than :data:`LONGEST_WAIT`."""
        end = change.began + parsed_args.timeout
        parameters = {} if parsed_args.servers is None else {'servers': parsed_args.servers}
        if not change.deletes:
            parameters['serial'] = change.wanted
        while True:
            remaining = max(0.0, min(LONGEST_WAIT, end - time.monotonic()))
            try:
                verdict = self.client.get(f'/v2/zones/{change.zone_id}/wait', remaining + ANSWER_SECONDS, **parameters,
                                          timeout=f'{remaining:.3f}')
            except ApiRefusal as refused:
                # Too many are waiting already, or Central does not answer at the moment.
                if refused.status != 503 or time.monotonic() + PAUSE >= end:
                    raise
                time.sleep(PAUSE)
                continue
            if time.monotonic() >= end or not verdict['timed_out'] and not _is_retried(verdict, change, parsed_args):
                return verdict
            if not verdict['timed_out']:
                time.sleep(min(PAUSE, max(0.0, end - time.monotonic())))


def _is_retried(found: Json, change: zone_wait.PendingChange, parsed_args: argparse.Namespace) -> bool:
    """Whether the zone is in an ERROR that servers retry, and --through-errors was given."""
    deletes = found['action'] == 'DELETE'
    return bool(parsed_args.through_errors and found['failed'] and found['status'] == 'ERROR'
                and deletes == change.deletes)


def _exit_code(found: Json) -> int:
    if found['done']:
        return zone_wait.DONE
    if found['failed']:
        return zone_wait.FAILED
    return zone_wait.TIMED_OUT if found['timed_out'] else zone_wait.DELETED_MEANWHILE


def _why(found: Json, wanted: Any) -> str:
    have = f'{found["current"]} of the {found["needed"]} servers that are needed have serial {wanted}'
    if found['failed']:
        return f'{found["zone_name"]} is in {found["status"]}: {have}'
    return f'{found["zone_name"]} is {found["status"]} after {found["seconds"]:g} s: {have}'
