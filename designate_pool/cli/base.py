"""Bases of the commands, and the formats of their output: cliff's, with colour, and text for people."""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TextIO

from cliff import command, display, lister, show
from cliff.formatters.base import SingleFormatter
from cliff.formatters.commaseparated import CSVLister
from cliff.formatters.table import TableFormatter
from stevedore.extension import Extension

from designate_pool.cli import zone_wait
from designate_pool.cli.http.client import Client
from designate_pool.cli.http.errors import CliError, Json
from designate_pool.cli.render import terminal

#: Formats that take lists and mappings as they are.
_STRUCTURED = ('json', 'yaml', 'text')


class Table(TableFormatter):
    """cliff's, with states in colour on a terminal."""

    def emit_list(self, column_names: Sequence[str], data: Iterable[Sequence[Any]], stdout: TextIO,
                  parsed_args: argparse.Namespace) -> None:
        drawn = io.StringIO()
        super().emit_list(column_names, data, drawn, parsed_args)
        _write(drawn, stdout)

    def emit_one(self, column_names: Sequence[str], data: Sequence[Any], stdout: TextIO,
                 parsed_args: argparse.Namespace) -> None:
        drawn = io.StringIO()
        super().emit_one(column_names, data, drawn, parsed_args)
        _write(drawn, stdout)


class Csv(CSVLister, SingleFormatter):
    """cliff's, which is for lists only; one thing is a list of one."""

    def emit_one(self, column_names: Sequence[str], data: Sequence[Any], stdout: TextIO,
                 parsed_args: argparse.Namespace) -> None:
        self.emit_list(column_names, [data], stdout, parsed_args)


class Text(SingleFormatter):
    """A text for people, of a single thing.

    :param render: makes the text of what is shown
    """

    def __init__(self, render: Callable[[Json], str]) -> None:
        self._render = render

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        return

    def emit_one(self, column_names: Sequence[str], data: Sequence[Any], stdout: TextIO,
                 parsed_args: argparse.Namespace) -> None:
        if parsed_args.columns:
            stdout.writelines(f'{name}: {value}\n' for name, value in zip(column_names, _sanitized(data)))
        else:
            stdout.write(self._render(dict(zip(column_names, _sanitized(data)))))


def add(plugins: Any, *formatters: tuple[str, Any]) -> Any:
    """*plugins*, a manager of stevedore, with *formatters* by name in place of those of the same names."""
    names = {name for name, _ in formatters}
    plugins.extensions[:] = [extension for extension in plugins.extensions if extension.name not in names]
    plugins.extensions += [Extension(name, None, None, form) for name, form in formatters]  # type: ignore[arg-type]
    return plugins


def cell(value: Any, formatter: str) -> Any:
    """*value* for *formatter*: unchanged for machines, for people and shells a text with a line for each item."""
    if formatter in _STRUCTURED:
        return value
    if isinstance(value, (list, tuple)):
        return '\n'.join(str(cell(item, formatter)) for item in value)
    if isinstance(value, dict):
        return ', '.join(f'{key}={cell(item, formatter)}' for key, item in value.items())
    if value is None and formatter == 'table':
        return '-'
    return value


def _sanitized(value: Any) -> Any:
    """*value* with its texts safe for a terminal."""
    if isinstance(value, str):
        return terminal.sanitized(value)
    if isinstance(value, dict):
        return {key: _sanitized(item) for key, item in value.items()}
    return [_sanitized(item) for item in value] if isinstance(value, (list, tuple)) else value


def _write(drawn: io.StringIO, stdout: TextIO) -> None:
    text = terminal.sanitized(drawn.getvalue())
    if text.strip():  # an empty table is drawn as an empty line
        stdout.write(terminal.table(text) if terminal.wanted(stdout) else text)


#: The names of columns, and what stands in them: a row of a list each, or one thing's values.
Shown = tuple[Sequence[str], Iterable[Any]]
ZONE_COLUMNS = ('id', 'name', 'email', 'ttl', 'serial', 'status', 'action', 'description', 'pool_id', 'project_id',
                'shared', 'version', 'created_at', 'updated_at')
RECORDSET_COLUMNS = ('id', 'name', 'type', 'records', 'ttl', 'status', 'action', 'description', 'zone_id', 'zone_name',
                     'project_id', 'version', 'created_at', 'updated_at')


class ApiCommand(command.Command):
    """A command that talks to the API.

    :ivar exit_code: of a command that could be done; :meth:`take_action` may set it
    """

    # The base class reads every installed package's metadata for this.
    app_dist_name = 'designate-pool'
    exit_code = 0

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        self.add_arguments(parser)
        return parser

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments that this command alone has."""

    def get_epilog(self) -> str:
        return ''

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or self.exit_code

    @property
    def client(self) -> Client:
        client: Client = self.app.client  # type: ignore[attr-defined]
        return client


class _Display(ApiCommand, display.DisplayCommandBase[Any]):
    """A command that shows something in one of cliff's formats or ours."""

    @property
    def formatter_default(self) -> str:
        return self.configured_format(self._formatter_plugins.names(), 'table')

    def configured_format(self, known: Collection[str], default: str) -> str:
        """The format that the settings name, where it is one of *known*.

        Wrong settings are reported when the command needs them, not when its help is shown.
        """
        try:
            output_format: str | None = self.app.settings.format  # type: ignore[attr-defined]
        except CliError:
            return default
        return output_format if output_format is not None and output_format in known else default

    def _load_formatter_plugins(self) -> Any:
        return add(super()._load_formatter_plugins(), ('table', Table()), ('csv', Csv()))


class Lister(_Display, lister.Lister):
    """Shows a list."""

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str],
                       data: Iterable[Sequence[Any]]) -> int:
        rows = ([cell(value, parsed_args.formatter) for value in row] for row in data)
        return super().produce_output(parsed_args, column_names, rows)


class ShowOne(_Display, show.ShowOne):
    """Shows one thing."""

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Iterable[Any]) -> int:
        return super().produce_output(parsed_args, column_names,
                                      [cell(datum, parsed_args.formatter) for datum in data])


class TextCommand(ShowOne):
    """Shows one thing as a text for people, unless another format is asked for."""

    @property
    def formatter_default(self) -> str:
        return self.configured_format({*self._formatter_plugins.names()} - {'table'}, 'text')

    def _load_formatter_plugins(self) -> Any:
        return add(super()._load_formatter_plugins(), ('text', Text(self.text)))

    def text(self, found: Json) -> str:
        """*found*, what is shown, for people."""
        raise NotImplementedError


class ChangeCommand(ShowOne):
    """Changes a zone, with --wait waits until the pool serves the change, and shows the changed object.

    The exit code is 0 on success (with --wait: enough servers have the change), 3 if the pool reported ERROR, 4 at the
    timeout, 1 if the change could not be made.
    """

    _sent_at = 0.0

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--wait', nargs='?', type=seconds, const=60.0, metavar='SECONDS',
                            help='wait until enough servers have the change, with progress on standard error; 60 '
                                 'seconds if no number is given (then put it last)')
        return parser

    def send_change(self, method: str, path: str, body: Json | None = None,
                    headers: Mapping[str, str] | None = None) -> Json:
        """Ask the API for the change; the wait counts from here."""
        self._sent_at = time.monotonic()
        return self.client.change(method, path, body, headers=headers)

    def wait_if_told(self, parsed_args: argparse.Namespace, zone: Json, wanted: int | None = None,
                     deletes: bool = False) -> bool:
        """Wait, if that was asked for; whether the change was seen to be done."""
        if parsed_args.wait is None:
            return False
        change = zone_wait.PendingChange(zone['id'], zone['name'], self._sent_at, wanted, deletes)
        self.exit_code = zone_wait.follow(self.client, change, parsed_args.wait, self.app.stderr)
        return self.exit_code == zone_wait.DONE


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f'{text!r} is no number of seconds; write --wait=SECONDS, or put --wait last')
    return value


def columns(found: Json, names: Sequence[str]) -> Shown:
    """The columns of one object; None for those that it does not have."""
    return names, [found.get(name) for name in names]


def all_columns(found: Json) -> Shown:
    return columns(found, [name for name in found if name != 'links'])


def rows(names: Sequence[str], found: Iterable[Json]) -> Shown:
    """Of a list, fetched as it is shown."""
    return names, ([entry.get(name) for name in names] for entry in found)


def options_given(parsed_args: argparse.Namespace, *names: str) -> Json:
    """The values of those options that have one."""
    return {name: value for name in names if (value := getattr(parsed_args, name)) is not None}
