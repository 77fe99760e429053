"""Bases of the commands, arguments that several have, and the formats of output: cliff's, with colour, and text."""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TextIO

from cliff import command, display, lister, show
from cliff.formatters.base import SingleFormatter
from cliff.formatters.commaseparated import CSVLister
from cliff.formatters.table import TableFormatter
from stevedore.extension import Extension

from designate_pool.cli import terminal, zone_wait
from designate_pool.cli.client import POOL, Client, Json, Resource
from designate_pool.cli.connection import CliError

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

    def pool_id(self, parsed_args: argparse.Namespace) -> Json:
        """``pool_id`` of the pool of ``--pool``; empty without the option."""
        return {} if parsed_args.pool is None else {'pool_id': self.client.find(POOL, parsed_args.pool)['id']}


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


class ListCommand(Lister):
    """Lists all of *resource*."""

    resource: ClassVar[Resource]
    parameters: ClassVar[Json] = {}

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return rows(self.resource.list_columns,
                    self.client.every(self.resource.path, self.resource.key, **self.parameters))


class ResourceCommand(ApiCommand):
    """A command about one of *resource*."""

    resource: ClassVar[Resource]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        metavar = self.resource.metavar or (self.resource.noun or self.resource.word).upper()
        parser.add_argument('thing', metavar=metavar, help=self.resource.help)

    def find(self, parsed_args: argparse.Namespace) -> Json:
        return self.client.find(self.resource, parsed_args.thing)

    def path(self, parsed_args: argparse.Namespace) -> str:
        return f'{self.resource.path}/{self.find(parsed_args)["id"]}'


class ShowCommand(ResourceCommand, ShowOne):
    """Shows one of *resource*."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.find(parsed_args), self.resource.columns)


class DeleteCommand(ResourceCommand):
    """Deletes one of *resource*."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', self.path(parsed_args))


def list_command(of: Resource, about: str, **query: str) -> type[ListCommand]:
    """A command that lists all of a resource.

    :param about: its help
    :param query: of the requests
    """
    return type('List', (ListCommand,), {'__doc__': about, 'resource': of, 'parameters': query})


def show_command(of: Resource, about: str) -> type[ShowCommand]:
    """A command that shows one of a resource; *about* is its help."""
    return type('Show', (ShowCommand,), {'__doc__': about, 'resource': of})


def delete_command(of: Resource, about: str) -> type[DeleteCommand]:
    """A command that deletes one of a resource; *about* is its help."""
    return type('Delete', (DeleteCommand,), {'__doc__': about, 'resource': of})


class CreateCommand(ShowOne):
    """Creates one of *resource* from the arguments with the names of its *fields*."""

    resource: ClassVar[Resource]
    fields: ClassVar[Sequence[str]]

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        made = self.client.change('POST', self.resource.path, options_given(parsed_args, *self.fields))
        return columns(made, self.resource.columns)


class SetCommand(ResourceCommand, ShowOne):
    """Changes those of the *fields* of one of *resource* that *options* give."""

    fields: ClassVar[Sequence[str]]
    options: ClassVar[str]

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        body = changes_given(parsed_args, self.fields, self.options)
        return columns(self.client.change('PATCH', self.path(parsed_args), body), self.resource.columns)


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
    """The values of those options that have one; None for what an option like ``--no-ttl`` takes away."""
    return {name: None if value is NONE else value for name in names
            if (value := getattr(parsed_args, name)) is not None}


def changes_given(parsed_args: argparse.Namespace, names: Iterable[str], options: str) -> Json:
    """As :func:`options_given`, where one is needed.

    :param options: those that give them
    :raises CliError: when none is given
    """
    body = options_given(parsed_args, *names)
    if not body:
        raise CliError(f'Nothing to change; give {options}.')
    return body


#: The value of an option that takes something away.
NONE = object()


def add_description(parser: argparse.ArgumentParser) -> None:
    """Add ``--description`` and ``--no-description``."""
    description = parser.add_mutually_exclusive_group()
    description.add_argument('--description')
    description.add_argument('--no-description', action='store_const', const=NONE, dest='description')


def add_zone(parser: argparse.ArgumentParser, **options: Any) -> None:
    parser.add_argument('zone', metavar='ZONE', **{'help': 'name or id; the final dot may be left out', **options})


def add_recordset(parser: argparse.ArgumentParser) -> None:
    add_zone(parser)
    parser.add_argument('recordset', metavar='RECORDSET', help='id, or name: www, @ for the zone itself, or in full')
    parser.add_argument('type', metavar='TYPE', nargs='?', help='needed where the name has recordsets of several types')


def add_attributes(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option of scheduling attributes.

    :param what: what they are for
    """
    parser.add_argument('--attribute', action=_Attribute, metavar='NAME=VALUE', dest='attributes',
                        help=f'an attribute {what}; may be given again')


class _Attribute(argparse.Action):
    """Collects attributes in a mapping."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        name, equals, value = str(values).partition('=')
        if not name or not equals:
            parser.error(f'{values!r} is not an attribute like service_tier=gold')
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), name: value})


def add_page(parser: argparse.ArgumentParser, keys: Sequence[str]) -> None:
    """Options for part of a long list and its order.

    :param keys: what it can be sorted by
    """
    parser.add_argument('--limit', type=positive, metavar='N', help='at most this many')
    parser.add_argument('--marker', metavar='ID', help='begin after the entry with this id')
    parser.add_argument('--sort', type=_order(keys), metavar='KEY[:desc]',
                        help=f'let the API sort by one of {", ".join(keys)}; --sort-column sorts what was fetched')


def page(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """What :func:`add_page` found, as :meth:`designate_pool.cli.client.Client.every` takes it."""
    key, direction = parsed_args.sort or (None, None)
    return {'most': parsed_args.limit, 'marker': parsed_args.marker, 'sort_key': key, 'sort_dir': direction}


def positive(text: str) -> int:
    """The type of an option that is a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'{text!r} is no whole number from 1')
    return int(text)


def _order(keys: Sequence[str]) -> Any:
    def order(text: str) -> tuple[str, str]:
        key, _, direction = text.partition(':')
        if key not in keys or direction not in ('', 'asc', 'desc'):
            raise argparse.ArgumentTypeError(f'{text!r} is none of {", ".join(keys)}, with :desc or without')
        return key, direction or 'asc'

    return order
