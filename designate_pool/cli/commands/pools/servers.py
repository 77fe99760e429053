"""``designate-pool server ...``"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from designate_pool.cli import base
from designate_pool.cli.base import Json, Lister, ShowOne, TextCommand, columns
from designate_pool.cli.render import server_compare
from designate_pool.cli.render.progress import Bar
from designate_pool.cli.wait.server_wait import CaughtUp, Drained, Measure, Rested, filled, follow
from designate_pool.cli.wait.zone_wait import DONE

Shown = tuple[Sequence[str], Iterable[Any]]
#: For what looks at every zone of a server: more than the API's own patience.
LOOK_SECONDS = 660.0
#: To fill a server takes as long as its zones do.
WAIT_SECONDS = 3600.0
LIST_COLUMNS = ('name', 'id', 'state', 'domains', 'waiting', 'failing', 'note')
COLUMNS = ('id', 'name', 'driver', 'host', 'port', 'state', 'state_since', 'joined_at', 'filled', 'dismissed',
           'delete_zones', 'note', 'version', 'created_at', 'updated_at')
REPORT_COLUMNS = (*COLUMNS, 'domains', 'rows', 'waiting', 'failing', 'in_hand', 'oldest_due_at', 'failures')
#: What is under way on a server ends with its driver call.
REST_SECONDS = 60.0


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('server', metavar='SERVER', help='id or the first four or more digits of it, name, or host')


def _add_wait(parser: argparse.ArgumentParser, until: str) -> None:
    parser.add_argument('--wait', nargs='?', type=base.seconds, const=WAIT_SECONDS, metavar='SECONDS',
                        help=f'wait until {until}, with progress on standard error; {WAIT_SECONDS:g} seconds if no '
                             'number is given (then put it last)')


class ListServers(Lister):
    """List the servers of all pools, or of one."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--pool', metavar='POOL', help='only those of this pool; its name or id')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        chosen = {} if parsed_args.pool is None else {'pool_id': self.client.pool(parsed_args.pool)['id']}
        found = self.client.get('/v2/servers', **chosen)['servers']
        shown: tuple[str, ...] = LIST_COLUMNS
        if len({each['pool_id'] for each in found}) > 1:
            names = self.client.pool_names()
            shown = ('pool', *LIST_COLUMNS)
            found = [{**each, 'pool': names.get(each['pool_id'])} for each in found]
        return shown, ([(each | {'note': _note(each)})[name] for name in shown] for each in found)


class ShowServer(ShowOne):
    """Show a server with its state and some of the operations that fail on it.

    domains: zones of its pool. rows: operations on record for it, done ones too; waiting: those still to be done;
    failing: the waiting ones in ERROR; in_hand: the waiting ones under way; oldest_due_at: when the oldest of them was
    due. filled: zones begun on it while it joins. dismissed: drained by command, so that it stays out although its
    section is still there. delete_zones: whether draining deletes its zones.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_server(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        found = self.client.get(f'/v2/servers/{self.client.server(parsed_args.server)["id"]}')
        found['note'] = _note(found)
        if parsed_args.formatter not in ('json', 'yaml'):
            found['failures'] = [f'{each["zone_name"]} {each["action"]}: {each["error"]}' for each in found['failures']]
        return columns(found, REPORT_COLUMNS, parsed_args.formatter)


class _Command(ShowOne):
    """Has something done with a server; the exit code says how the wait for it ended, as with zones."""

    exit_code = 0

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or self.exit_code

    def command(self, server: Json, verb: str, body: Json | None = None, timeout: float | None = None) -> Json:
        return self.client.change('POST', f'/v2/servers/{server["id"]}/{verb}', body, timeout)

    def follow(self, server: Json, measure: Measure, seconds: float) -> bool:
        """Wait; whether it ended well."""
        stream = self.app.stderr
        ending = follow(self.client, server, measure, seconds, Bar(stream))
        stream.write(ending.line + '\n')
        self.exit_code = self.exit_code or ending.code
        return ending.code == DONE


class RestServer(_Command):
    """Put a server into maintenance: nothing is sent to it and it does not count, until it is resumed.

    Returns when nothing is under way on it any more.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_server(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.command(self.client.server(parsed_args.server), 'maintenance')
        self.follow(server, Rested(server['name']), REST_SECONDS)
        return columns(server, COLUMNS, parsed_args.formatter)


class ResumeServer(_Command):
    """Take a server out of maintenance, let a joining one count at once, or take a drained one back."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_server(parser)
        _add_wait(parser, 'it has all that it missed')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.command(self.client.server(parsed_args.server), 'resume')
        if parsed_args.wait is not None and self.follow(server, CaughtUp(server['name'], True), parsed_args.wait):
            server = self.client.get(f'/v2/servers/{server["id"]}')
        return columns(server, COLUMNS, parsed_args.formatter)


class DrainServer(_Command):
    """Drain a server: take it out of the pool, and keep it out though its section is still there."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_server(parser)
        parser.add_argument('--delete-zones', action='store_true', help='delete its zones there, if it answers')
        _add_wait(parser, 'it is removed')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.command(self.client.server(parsed_args.server), 'drain',
                              {'delete_zones': parsed_args.delete_zones})
        if parsed_args.wait is not None and self.follow(server, Drained(server['name']), parsed_args.wait):
            server['state'] = 'removed'
        return columns(server, COLUMNS, parsed_args.formatter)


class ResyncServer(TextCommand, _Command):
    """Compare what a server has with what it should have, and repair it with --fix.

    The exit code is 0 when nothing is wrong or all was mended, 1 when differences are left or contents could not be
    checked.
    """

    limit: int | None = server_compare.SOME

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
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
        wait.add_argument('--no-wait', action='store_true', help='return at once; what --fix began goes on by itself')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        server = self.client.server(parsed_args.server)
        found = self.command(server, 'resync', {'fix': parsed_args.fix, 'delete_extra': parsed_args.delete_extra,
                                                'contents': parsed_args.contents}, LOOK_SECONDS)
        lacking = bool(found['missing'] or found['behind'] or found['other'])
        extra = len(found['extra'] or ()) > found['deleted']
        if lacking and parsed_args.fix and not parsed_args.no_wait:
            lacking = not self.follow(server, CaughtUp(server['name'], False), parsed_args.wait)
        self.exit_code = self.exit_code or int(extra or bool(found['unchecked']) or lacking and not parsed_args.fix)
        self.limit = None if parsed_args.all else server_compare.SOME
        told = server_compare.result(found, server)
        return tuple(told), tuple(told.values())

    def text(self, found: Json) -> str:
        return server_compare.text(found, self.limit)


class ReloadServers(_Command):
    """Read the pool's configuration again: new servers join, those without a section are drained."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--pool', metavar='POOL', help="its name or id; not given: the pool of the API's "
                                                           'configuration')
        _add_wait(parser, 'the joining servers have every zone')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = None if parsed_args.pool is None else {'pool_id': self.client.pool(parsed_args.pool)['id']}
        found = self.client.change('POST', '/v2/servers/reload', body, LOOK_SECONDS)
        if parsed_args.wait is not None:
            for name in found['joined']:
                self.follow(self.client.server(name), CaughtUp(name, True), parsed_args.wait)
        return columns(found, ('joined', 'changed', 'draining'), parsed_args.formatter)


def _note(server: Json) -> str | None:
    """What is to be known of a server beside its state."""
    return filled(server) if server['filling'] else server['note']
