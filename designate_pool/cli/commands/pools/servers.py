"""``designate-pool server ...``"""

from __future__ import annotations

import argparse

from designate_pool.cli import base
from designate_pool.cli.base import Lister, Shown, ShowOne, TextCommand, all_columns, columns, rows
from designate_pool.cli.http.errors import Json
from designate_pool.cli.render import server_compare
from designate_pool.cli.render.progress import Bar
from designate_pool.cli.wait.server_wait import (CatchUpProgress, DrainProgress, MaintenanceProgress, Measure, filling,
                                                 follow)
from designate_pool.cli.wait.zone_wait import DONE

#: For requests about every zone of a server: longer than the API waits itself.
COMPARE_SECONDS = 660.0
#: A server is filled as fast as it fetches its zones.
WAIT_SECONDS = 3600.0
LIST_COLUMNS = ('name', 'id', 'state', 'domains', 'waiting', 'failing', 'note')
COLUMNS = ('id', 'name', 'driver', 'host', 'port', 'verify', 'state', 'state_since', 'joined_at', 'filled', 'dismissed',
           'delete_zones', 'note', 'reason', 'version', 'created_at', 'updated_at')
REPORT_COLUMNS = (*COLUMNS, 'domains', 'rows', 'waiting', 'failing', 'in_hand', 'oldest_due_at', 'failures')
#: Longer than one driver call: that is what may be under way on a server.
MAINTENANCE_SECONDS = 60.0


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('server', metavar='SERVER', help='id or the first four or more digits of it, name, or host')


def _add_wait(parser: argparse.ArgumentParser, until: str) -> None:
    parser.add_argument('--wait', nargs='?', type=base.seconds, const=WAIT_SECONDS, metavar='SECONDS',
                        help=f'wait until {until}, with progress on standard error; {WAIT_SECONDS:g} seconds if no '
                             'number is given (then put it last)')


class ListServers(Lister):
    """List the servers of all pools, or of one."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--pool', metavar='POOL', help='only those of this pool; its name or id')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        chosen = {} if parsed_args.pool is None else {'pool_id': self.client.pool(parsed_args.pool)['id']}
        found = self.client.get('/v2/servers', **chosen)['servers']
        shown: tuple[str, ...] = LIST_COLUMNS
        if len({each['pool_id'] for each in found}) > 1:
            names = self.client.pool_names()
            shown = ('pool', *LIST_COLUMNS)
            found = [{**each, 'pool': names.get(each['pool_id'])} for each in found]
        return rows(shown, (each | {'note': _note(each)} for each in found))


class ShowServer(ShowOne):
    """Show a server with its state and some of the operations that fail on it.

    domains: zones of its pool. rows: operations on record for it, done ones too; waiting: those still to be done;
    failing: the waiting ones in ERROR; in_hand: the waiting ones under way; oldest_due_at: when the oldest of them was
    due. verify: the addresses that are asked which serials it serves, if not its own. filled: zones started on it while
    it joins. dismissed: drained by command, so that it stays out although its section is still there. delete_zones:
    whether draining deletes its zones.
    """

    add_arguments = staticmethod(_add_server)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        found = self.client.get(f'/v2/servers/{self.client.server(parsed_args.server)["id"]}')
        found['note'] = _note(found)
        if parsed_args.formatter not in ('json', 'yaml'):
            found['failures'] = [f'{each["zone_name"]} {each["action"]}: {each["error"]}' for each in found['failures']]
        return columns(found, REPORT_COLUMNS)


class _ServerCommand(ShowOne):
    """Changes or checks a server; the exit code is that of the wait for it, if any."""

    def command(self, server: Json, verb: str, body: Json | None = None, timeout: float | None = None) -> Json:
        return self.client.change('POST', f'/v2/servers/{server["id"]}/{verb}', body, timeout)

    def follow(self, server: Json, measure: Measure, seconds: float | None) -> bool:
        """Wait, if *seconds* are given; whether what was waited for was reached."""
        if seconds is None:
            return False
        stream = self.app.stderr
        outcome = follow(self.client, server, measure, seconds, Bar(stream))
        stream.write(outcome.line + '\n')
        self.exit_code = self.exit_code or outcome.code
        return outcome.code == DONE


class StartMaintenance(_ServerCommand):
    """Put a server into maintenance: nothing is sent to it and it does not count, until it is resumed.

    Returns when nothing is under way on it any more.
    """

    add_arguments = staticmethod(_add_server)

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.command(self.client.server(parsed_args.server), 'maintenance')
        self.follow(server, MaintenanceProgress(server['name']), MAINTENANCE_SECONDS)
        return columns(server, COLUMNS)


class ResumeServer(_ServerCommand):
    """Take a server out of maintenance, let a joining one count at once, or take a drained one back."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_server(parser)
        _add_wait(parser, 'it has all that it missed')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.command(self.client.server(parsed_args.server), 'resume')
        if self.follow(server, CatchUpProgress(server['name'], True), parsed_args.wait):
            server = self.client.get(f'/v2/servers/{server["id"]}')
        return columns(server, COLUMNS)


class DrainServer(_ServerCommand):
    """Drain a server: take it out of the pool, and keep it out though its section is still there."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_server(parser)
        parser.add_argument('--delete-zones', action='store_true', help='delete its zones there, if it answers')
        _add_wait(parser, 'it is removed')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.command(self.client.server(parsed_args.server), 'drain',
                              {'delete_zones': parsed_args.delete_zones})
        if self.follow(server, DrainProgress(server['name']), parsed_args.wait):
            server['state'] = 'removed'
        return columns(server, COLUMNS)


class ResyncServer(TextCommand, _ServerCommand):
    """Compare what a server has with what it should have, and repair it with --fix.

    The exit code is 0 when nothing is wrong or all was repaired, 1 when differences are left or contents could not be
    checked.
    """

    limit: int | None = server_compare.SOME

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_server(parser)
        parser.add_argument('--fix', action='store_true',
                            help='create missing zones; transfer outdated or differing ones again')
        parser.add_argument('--contents', action='store_true',
                            help='compare the contents of its zones as well, which transfers each of them')
        parser.add_argument('--delete-extra', type=int, metavar='N',
                            help='delete the zones that are in no pool of the database, if there are exactly N of them')
        parser.add_argument('--all', action='store_true',
                            help=f'name all zones, not only {server_compare.SOME} of each kind')
        wait = parser.add_mutually_exclusive_group()
        wait.add_argument('--wait', type=base.seconds, default=WAIT_SECONDS, metavar='SECONDS',
                          help=f'how long --fix waits until nothing is left to do; {WAIT_SECONDS:g} if not given')
        wait.add_argument('--no-wait', action='store_true',
                          help='return at once; the repair continues in the background')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.client.server(parsed_args.server)
        found = self.command(server, 'resync', {'fix': parsed_args.fix, 'delete_extra': parsed_args.delete_extra,
                                                'contents': parsed_args.contents}, COMPARE_SECONDS)
        lacking = bool(found['missing'] or found['behind'] or found['other'])
        extra = len(found['extra'] or ()) > found['deleted']
        if lacking and parsed_args.fix and not parsed_args.no_wait:
            lacking = not self.follow(server, CatchUpProgress(server['name'], False), parsed_args.wait)
        self.exit_code = self.exit_code or int(extra or bool(found['unchecked']) or lacking and not parsed_args.fix)
        self.limit = None if parsed_args.all else server_compare.SOME
        return all_columns(server_compare.result(found, server))

    def text(self, found: Json) -> str:
        return server_compare.text(found, self.limit)


class ReloadServers(_ServerCommand):
    """Read the pool's configuration again: new servers join, those without a section are drained."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--pool', metavar='POOL', help="its name or id; not given: the pool of the API's "
                                                           'configuration')
        _add_wait(parser, 'the joining servers have every zone')

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = None if parsed_args.pool is None else {'pool_id': self.client.pool(parsed_args.pool)['id']}
        found = self.client.change('POST', '/v2/servers/reload', body, COMPARE_SECONDS)
        for name in found['joined'] if parsed_args.wait is not None else ():
            self.follow(self.client.server(name), CatchUpProgress(name, True), parsed_args.wait)
        return columns(found, ('joined', 'changed', 'draining'))


def _note(server: Json) -> str | None:
    """How far a joining server is, else the note it has."""
    return filling(server) if server['filling'] else server['note']
