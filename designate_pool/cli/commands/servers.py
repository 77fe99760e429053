"""``designate-pool server ...``: the servers of the pool, compared, and waited for."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from designate_pool.backoff import Backoff
from designate_pool.cli import base
from designate_pool.cli.base import (Argument, Lister, OneOf, ResourceCommand, Shown, ShowOne, TextCommand, all_columns,
                                     columns, rows, wait_option)
from designate_pool.cli.client import SERVER, ApiRefusal, Client, Json
from designate_pool.cli.terminal import LiveLines, is_live, moment
from designate_pool.cli.zone_wait import DELETED_MEANWHILE, DONE, FAILED, TIMED_OUT, WaitOutcome, poll

#: Zones of each kind that are named unless all are asked for.
SOME = 20


def resync_lines(compared: Json, limit: int | None) -> Iterator[str]:
    """The comparison of a server for people, with *limit* zones of each kind; None for all."""
    missing, behind, extra, other = compared['missing'], compared['behind'], compared['extra'], compared['other'] or ()
    if not missing and not behind:
        how = 'at their serials' if other or compared['unchecked'] else 'up to date'
        yield f'{compared["server"]} has all {compared["total"]} zones that it should have, {how}.'
    else:
        yield (f'{compared["server"]} should have {compared["total"]} zones: {len(missing)} are missing, '
               f'{len(behind)} are behind.')
    yield from _named('missing', missing, limit)
    yield from _named('behind', [
        f'{domain["zone_name"]}  serves {"nothing" if domain["serial"] is None else domain["serial"]}, should serve '
        f'{domain["expected_serial"]}' for domain in behind], limit)
    if compared['other'] is not None and not other:
        yield f'Contents: {"no difference" if compared["unchecked"] else "all the same"}.'
    yield from _named('other contents', [f'{domain["zone_name"]}  {domain["why"]}' for domain in other], limit)
    yield from _named('contents not checked',
                      [f'{domain["zone_name"]}  {domain["why"]}' for domain in compared['unchecked']], limit)
    yield from _named('extra', extra or (), limit)
    if (missing or behind or other) and not compared['mending']:
        yield f'--fix creates missing zones and transfers outdated{" or differing" if other else ""} ones again.'
    elif compared['mending']:
        yield f'Repair started: {compared["mending"]} operations.'
    if extra is None:
        yield 'It cannot list its zones, so extra ones are not known.'
    elif compared['deleted']:
        why = '' if compared['deleted'] == len(extra) else ' The log of the pool manager says why not the rest.'
        yield f'Deleted: {compared["deleted"]} of {len(extra)} extra zones.{why}'
    elif extra:
        yield f'Extra zones stay; --delete-extra {len(extra)} deletes them.'
    if extra is not None and not compared['extra_complete']:
        yield 'It cannot list its zones: extra ones are known only if the pool had them before.'


def _named(kind: str, names: Sequence[str], limit: int | None) -> Iterator[str]:
    if not names:
        return
    yield f'{kind}: {len(names)}'
    yield from (f'  {name}' for name in names[:limit])
    if limit is not None and len(names) > limit:
        yield f'  and {len(names) - limit} more; --all shows them'


PAUSES = Backoff(0.1, 1.3, cap=2.0)
#: Seconds for which every waiting operation must have failed before the wait is given up: a retry may be under way.
STUCK = 15.0
#: Seconds after which every pool manager that the broker reaches knows a server's new state.
STATE_KNOWN = 2.0


@dataclasses.dataclass(frozen=True)
class ServerProgress:
    """How far a server is: *done* of *total*, in words, and how the wait ended if it is over."""

    done: int
    total: int
    text: str
    outcome: WaitOutcome | None = None


#: Reads the progress from what ``/v2/servers/{id}`` shows: None once the server is gone.
Measure = Callable[[Json | None], ServerProgress]


def follow(client: Client, server: Json, measure: Measure, seconds: float, stream: TextIO) -> WaitOutcome:
    """Wait until *measure* says that it is over, or *seconds* are; the progress is written to *stream*."""
    progress: ServerProgress | None = None
    live, written = LiveLines(stream) if is_live(stream) else None, ''

    def look() -> WaitOutcome | None:
        nonlocal progress, written
        try:
            shown = client.get(f'/v2/servers/{server["id"]}')
        except ApiRefusal as refused:
            if refused.status != 404:
                raise
            shown = None
        progress = measure(shown)
        # 100 only when nothing is left.
        percent = 100 if progress.done >= progress.total else 100 * progress.done // progress.total
        line = f'{percent} %  {server["name"]}: {progress.text}'
        if live is not None:
            live.draw([line])
        elif line != written:
            stream.write(f'{line}\n')
            stream.flush()
        written = line
        return progress.outcome

    outcome, failure = poll(look, time.monotonic() + seconds, PAUSES)
    why = str(failure).rstrip('.') if progress is None or failure is not None else progress.text
    return outcome or WaitOutcome(TIMED_OUT, f'{server["name"]} is not done after {seconds:g} s: {why}.')


class CatchUpProgress:
    """Over when no operation waits for the server, when all that wait keep failing, or when somebody stops it.

    :param must_count: whether it has to be active as well
    """

    def __init__(self, name: str, must_count: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._must_count = must_count
        self._clock = clock
        self._most = 0
        self._stuck: tuple[int, float] | None = None

    def __call__(self, shown: Json | None) -> ServerProgress:
        if shown is None:
            return ServerProgress(0, 1, 'removed',
                                  WaitOutcome(DELETED_MEANWHILE, f'{self._name} was removed by someone else.'))
        self._most = max(self._most, shown['waiting'])
        if shown['filling']:
            done, total, text = shown['filled'], shown['zones'], filling(shown)
        else:
            done, total, text = self._most - shown['waiting'], self._most, 'nothing is waiting'
        if shown['waiting']:
            text = f'{text}, ' if shown['filling'] else ''
            text += f'{shown["waiting"]} waiting'
        if shown['failing']:
            text += f', {shown["failing"]} failing'
        return ServerProgress(done, total, text, self._outcome(shown))

    def _outcome(self, shown: Json) -> WaitOutcome | None:
        state = shown['state']
        if state not in ('joining', 'active'):
            return WaitOutcome(DELETED_MEANWHILE, f'{self._name} is {state_of(shown)}, and nothing is sent to it.')
        if shown['filling']:
            return None
        if not shown['waiting']:
            return None if self._must_count and state != 'active' else WaitOutcome(
                DONE, f'{self._name} is {state_of(shown)} and nothing waits for it.')
        if not self._is_stuck(shown):
            return None
        first = ''.join(f': {failure["zone_name"]} {failure["action"]} ({failure["error"]})'
                        for failure in shown['failures'][:1])
        return WaitOutcome(FAILED, f'{shown["failing"]} operations on {self._name} have failed and will be tried '
                           f'again{first}.')

    def _is_stuck(self, shown: Json) -> bool:
        if shown['failing'] < shown['waiting']:
            self._stuck = None
            return False
        if self._stuck is None or self._stuck[0] != shown['waiting']:
            self._stuck = shown['waiting'], self._clock()
        return self._clock() - self._stuck[1] >= STUCK


class DrainProgress:
    """Over when the server is removed, with its zones if *delete_zones*, or when somebody has resumed it."""

    def __init__(self, name: str, delete_zones: bool) -> None:
        self._name = name
        self._delete_zones = delete_zones
        self._most = 0

    def __call__(self, shown: Json | None) -> ServerProgress:
        if shown is None or shown['state'] == 'removed':
            if shown is not None and self._delete_zones and not shown['delete_zones']:
                return ServerProgress(1, 1, 'removed',
                                      WaitOutcome(FAILED, f'{self._name} is removed from the pool: {shown["note"]}.'))
            return ServerProgress(1, 1, 'removed',
                                  WaitOutcome(DONE, f'{self._name} is drained and removed from the pool.'))
        remaining = shown['rows'] or 0
        self._most = max(self._most, remaining)
        text = f'{remaining} of {self._most} entries left' if remaining else 'nothing is left'
        outcome = None if shown['state'] == 'draining' else WaitOutcome(
            DELETED_MEANWHILE, f'{self._name} is {state_of(shown)} again: someone else resumed it.')
        return ServerProgress(self._most - remaining, max(1, self._most), text, outcome)


class MaintenanceProgress:
    """Over when nothing is under way on the server any more, or when somebody has resumed it.

    Pool managers are told of the states of servers; until they know them, they may begin something.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._known_at = clock() + STATE_KNOWN
        self._most = 0

    def __call__(self, shown: Json | None) -> ServerProgress:
        if shown is None or shown['state'] != 'maintenance':
            return ServerProgress(0, 1, 'not in maintenance', WaitOutcome(
                DELETED_MEANWHILE, f'{self._name} is not in maintenance any more: someone else resumed or drained it.'))
        self._most = max(self._most, shown['in_hand'])
        outcome = None if shown['in_hand'] or self._clock() < self._known_at else WaitOutcome(
            DONE, f'{self._name} is in maintenance, and nothing is under way on it.')
        return ServerProgress(self._most - shown['in_hand'], max(1, self._most), f'{shown["in_hand"]} under way',
                              outcome)


def filling(shown: Json) -> str:
    """The progress of a server whose zones are being created, as text."""
    return f'{shown["filled"]} of {shown["zones"]} zones started'


def state_of(shown: Json) -> str:
    """A server's state as an adjective."""
    return 'in maintenance' if shown['state'] == 'maintenance' else str(shown['state'])


#: For requests about every zone of a server: longer than the API waits itself.
COMPARE_SECONDS = 660.0
#: A server is filled as fast as it fetches its zones.
WAIT_SECONDS = 3600.0
LIST_COLUMNS = ('name', 'id', 'state', 'zones', 'waiting', 'failing', 'note')
COLUMNS = ('id', 'name', 'driver', 'host', 'port', 'verify', 'state', 'state_since', 'silent_since', 'joined_at',
           'filled', 'dismissed', 'delete_zones', 'note', 'reason', 'version', 'created_at', 'updated_at')
REPORT_COLUMNS = (*COLUMNS, 'zones', 'rows', 'waiting', 'failing', 'in_hand', 'oldest_due_at', 'failures')
RESYNC_COLUMNS = ('total', 'missing', 'behind', 'extra', 'extra_complete', 'other', 'unchecked', 'mending', 'deleted')
#: Longer than one driver call: that is what may be under way on a server.
MAINTENANCE_SECONDS = 60.0


class ServerList(Lister):
    """List the servers of all pools, or of one."""

    arguments = (Argument('--pool', metavar='POOL', help='only those of this pool; its name or id'),)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        servers = self.client.get('/v2/servers', **self.pool_id(parsed_args))['servers']
        shown: tuple[str, ...] = LIST_COLUMNS
        if len({server['pool_id'] for server in servers}) > 1:
            names = self.client.pool_names()
            shown = ('pool', *LIST_COLUMNS)
            servers = [{**server, 'pool': names.get(server['pool_id'])} for server in servers]
        return rows(shown, (server | {'note': _note(server)} for server in servers))


class ServerShow(ResourceCommand, ShowOne):
    """Show a server with its state and some of the operations that fail on it.

    zones: those of its pool. rows: operations on record for it, done ones too; waiting: those still to be done;
    failing: the waiting ones in ERROR; in_hand: the waiting ones under way; oldest_due_at: when the oldest of them was
    due. verify: the addresses that are asked which serials it serves, if not its own. filled: zones started on it while
    it joins. dismissed: drained by command, so that it stays out although its section is still there. delete_zones:
    whether draining deletes its zones.
    """

    resource = SERVER

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        report = self.client.get(self.path(parsed_args))
        report['note'] = _note(report)
        if parsed_args.formatter not in ('json', 'yaml'):
            report['failures'] = [f'{failure["zone_name"]} {failure["action"]}: {failure["error"]}'
                                  for failure in report['failures']]
        return columns(report, REPORT_COLUMNS)


class _Waiting(ShowOne):
    """The exit code is that of the wait for a server, if any."""

    def follow(self, server: Json, measure: Measure, seconds: float | None) -> bool:
        """Wait, if *seconds* are given; whether what was waited for was reached."""
        if seconds is None:
            return False
        outcome = follow(self.client, server, measure, seconds, self.app.stderr)
        self.app.stderr.write(outcome.line + '\n')
        self.exit_code = self.exit_code or outcome.code
        return outcome.code == DONE


class _ServerCommand(ResourceCommand, _Waiting):
    """Changes or checks a server."""

    resource = SERVER

    def command(self, parsed_args: argparse.Namespace, verb: str, body: Json | None = None,
                timeout: float | None = None) -> Json:
        return self.client.json('POST', f'{self.path(parsed_args)}/{verb}', body, timeout)


class ServerMaintenance(_ServerCommand):
    """Put a server into maintenance: nothing is sent to it and it does not count, until it is resumed.

    Returns when nothing is under way on it any more.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.command(parsed_args, 'maintenance')
        self.follow(server, MaintenanceProgress(server['name']), MAINTENANCE_SECONDS)
        return columns(server, COLUMNS)


class ServerResume(_ServerCommand):
    """Take a server out of maintenance, let a joining one count at once, or take a drained one back."""

    arguments = (wait_option('it has all that it missed', WAIT_SECONDS),)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.command(parsed_args, 'resume')
        if self.follow(server, CatchUpProgress(server['name'], True), parsed_args.wait):
            server = self.client.get(f'/v2/servers/{server["id"]}')
        return columns(server, COLUMNS)


class ServerDrain(_ServerCommand):
    """Drain a server: take it out of the pool, and keep it out though its section is still there."""

    arguments = (
        Argument('--delete-zones', action='store_true', help='delete its zones there, if it answers'),
        wait_option('it is removed', WAIT_SECONDS))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.command(parsed_args, 'drain', {'delete_zones': parsed_args.delete_zones})
        if self.follow(server, DrainProgress(server['name'], parsed_args.delete_zones), parsed_args.wait):
            server['state'] = 'removed'
        return columns(server, COLUMNS)


class ServerResync(TextCommand, _ServerCommand):
    """Compare what a server has with what it should have, and repair it with --fix.

    The exit code is 0 when nothing is wrong or all was repaired, 1 when differences are left or contents could not be
    checked.
    """

    limit: int | None = SOME

    arguments = (
        Argument('--fix', action='store_true', help='create missing zones; transfer outdated or differing ones again'),
        Argument('--contents', action='store_true', help='compare the contents of its zones as well, which transfers '
                                                         'each of them'),
        Argument('--delete-extra', type=int, metavar='N', help='delete the zones that are in no pool of the '
                                                               'database, if there are exactly N of them'),
        Argument('--all', action='store_true', help=f'name all zones, not only {SOME} of each kind'),
        OneOf(Argument('--wait', type=base.seconds, default=WAIT_SECONDS, metavar='SECONDS',
                       help=f'how long --fix waits until nothing is left to do; {WAIT_SECONDS:g} if not given'),
              Argument('--no-wait', action='store_true',
                       help='return at once; the repair continues in the background')))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.find(parsed_args)
        body = {name: getattr(parsed_args, name) for name in ('fix', 'delete_extra', 'contents')}
        compared = self.client.json('POST', f'{SERVER.path}/{server["id"]}/resync', body, COMPARE_SECONDS)
        lacking = bool(compared['missing'] or compared['behind'] or compared['other'])
        extra = len(compared['extra'] or ()) > compared['deleted']
        if lacking and parsed_args.fix and not parsed_args.no_wait:
            lacking = not self.follow(server, CatchUpProgress(server['name'], False), parsed_args.wait)
        self.exit_code = self.exit_code or int(extra or bool(compared['unchecked']) or lacking and not parsed_args.fix)
        self.limit = None if parsed_args.all else SOME
        return all_columns({'server': server['name'], **{name: compared[name] for name in RESYNC_COLUMNS}})

    def text(self, found: Json) -> str:
        return '\n'.join(resync_lines(found, self.limit)) + '\n'


class ServerReload(_Waiting):
    """Read the pool's configuration again: new servers join, those without a section are drained."""

    arguments = (
        Argument('--pool', metavar='POOL', help="its name or id; not given: the pool of the API's configuration"),
        wait_option('the joining servers have every zone', WAIT_SECONDS))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = self.pool_id(parsed_args) or None
        reloaded = self.client.json('POST', '/v2/servers/reload', body, COMPARE_SECONDS)
        for name in reloaded['joined'] if parsed_args.wait is not None else ():
            self.follow(self.client.find(SERVER, name), CatchUpProgress(name, True), parsed_args.wait)
        return columns(reloaded, ('joined', 'changed', 'draining'))


def _note(server: Json) -> str | None:
    """Since when it has answered nobody; how far a joining server is, else the note it has."""
    note = filling(server) if server['filling'] else server['note']
    silent = server['silent_since'] and f'silent since {moment(server["silent_since"]):%Y-%m-%d %H:%M:%S} UTC'
    return '; '.join(filter(None, (silent, note))) or None
