"""What the commands have in common."""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from cliff import command, lister, show

from designate_pool.cli.http.client import Client, CliError
from designate_pool.cli.render import formats
from designate_pool.cli.render.formats import cell
from designate_pool.cli.wait import zone_wait

Json = dict[str, Any]
Shown = tuple[Sequence[str], Iterable[Any]]
ZONE_COLUMNS = ('id', 'name', 'email', 'ttl', 'serial', 'status', 'action', 'description', 'pool_id', 'project_id',
                'version', 'created_at', 'updated_at')
RECORDSET_COLUMNS = ('id', 'name', 'type', 'records', 'ttl', 'status', 'action', 'description', 'zone_id', 'zone_name',
                     'version', 'created_at', 'updated_at')


class ApiCommand(command.Command):
    """A command that talks to the API."""

    # The base class reads every installed package's metadata for this.
    app_dist_name = 'designate-pool'

    def get_epilog(self) -> str:
        return ''

    @property
    def client(self) -> Client:
        found: Client = self.app.client  # type: ignore[attr-defined]
        return found

    def format_wanted(self, known: Collection[str], otherwise: str) -> str:
        """The form that the settings name, where it is one of *known*.

        Settings that are wrong are told of when the command needs them, and not when its help is shown.
        """
        try:
            found: str | None = self.app.settings.format  # type: ignore[attr-defined]
        except CliError:
            return otherwise
        return found if found is not None and found in known else otherwise


class Lister(ApiCommand, lister.Lister):
    """Shows a list."""

    @property
    def formatter_default(self) -> str:
        return self.format_wanted(self._formatter_plugins.names(), 'table')

    def _load_formatter_plugins(self) -> Any:
        return formats.add(super()._load_formatter_plugins(), ('table', formats.Table()))

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str],
                       data: Iterable[Sequence[Any]]) -> int:
        rows = ([cell(each, parsed_args.formatter) for each in row] for row in data)
        return super().produce_output(parsed_args, column_names, rows)


class ShowOne(ApiCommand, show.ShowOne):
    """Shows one thing."""

    @property
    def formatter_default(self) -> str:
        return self.format_wanted(self._formatter_plugins.names(), 'table')

    def _load_formatter_plugins(self) -> Any:
        return formats.add(super()._load_formatter_plugins(), ('table', formats.Table()), ('csv', formats.Csv()))

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Iterable[Any]) -> int:
        return super().produce_output(parsed_args, column_names,
                                      [cell(each, parsed_args.formatter) for each in data])


class TextCommand(ShowOne):
    """Shows one thing as a text for people, unless another form is asked for."""

    @property
    def formatter_default(self) -> str:
        return self.format_wanted({*self._formatter_plugins.names()} - {'table'}, 'text')

    def _load_formatter_plugins(self) -> Any:
        return formats.add(super()._load_formatter_plugins(), ('text', formats.Text(self.text)))

    def text(self, found: Json) -> str:
        """*found*, what is shown, for people."""
        raise NotImplementedError


class ChangeCommand(ShowOne):
    """Changes something, waits for the pool to agree if told to, and shows what was changed.

    The exit code is 0 when it was done, and when it was waited for, agreed on; 3 when the pool said ERROR, 4 when the
    time was over, 1 when it could not be done at all.
    """

    exit_code = 0
    began = 0.0

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--wait', nargs='?', type=seconds, const=60.0, metavar='SECONDS',
                            help='wait until enough servers have the change, with progress on standard error; 60 '
                                 'seconds if no number is given (then put it last)')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or self.exit_code

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        """Ask the API for the change; the wait counts from here."""
        self.began = time.monotonic()
        return self.client.change(method, path, body)

    def settle(self, parsed_args: argparse.Namespace, zone: Json, wanted: int | None = None,
               deletes: bool = False) -> bool:
        """Wait, if that was asked for; whether the change was seen to be done."""
        if parsed_args.wait is None:
            return False
        stream = self.app.stderr
        change = zone_wait.PendingChange(zone['id'], zone['name'], self.began, wanted, deletes)
        try:
            ending = zone_wait.follow(self.client, change, parsed_args.wait, zone_wait.WaitProgress(stream, wanted))
        except KeyboardInterrupt:
            stream.write(f'\n{zone_wait.left_alone(change)}\n')
            raise
        stream.write(ending.line + '\n')
        if ending.code == zone_wait.FAILED or ending.code == zone_wait.TIMED_OUT:
            stream.write(f"'designate-pool zone explain {zone['name']}' tells more.\n")
        self.exit_code = ending.code
        return ending.code == zone_wait.DONE


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f'{text!r} is no number of seconds; write --wait=SECONDS, or put --wait last')
    return value


def columns(found: Json, names: Sequence[str], formatter: str) -> tuple[Sequence[str], Iterable[Any]]:
    """What cliff shows of *found*."""
    return names, [cell(found[name], formatter) for name in names]
