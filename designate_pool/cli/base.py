"""Bases of the commands, arguments that several have, and the formats of output: cliff's, with colour, and text."""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TextIO

import dns.ttl
from cliff import command, display, lister, show
from cliff.formatters.base import SingleFormatter
from cliff.formatters.commaseparated import CSVLister
from cliff.formatters.table import TableFormatter
from stevedore.extension import Extension

from designate_pool.cli import terminal, zone_wait
from designate_pool.cli.client import DIGITS, POOL, Client, Json, Resource, cli_error
from designate_pool.cli.connection import CliError
from designate_pool.errors import PoolError

#: Formats that take lists and mappings as they are.
_STRUCTURED = ('json', 'yaml', 'text')


#: Columns that come first in tables.  Where there is none, things are called by their ids.
_NAMES = ('name', 'pattern', 'address', 'file')
#: A column of a table on a terminal that is too narrow for it is not made narrower than that.
_NARROWEST = 10


class Table(TableFormatter):
    """cliff's, with states in colour on a terminal, and lists that fit it.

    :param long_columns: of a list, those that are shown with ``--long``, beside ids and times of creation
    """

    def __init__(self, long_columns: Collection[str] = ()) -> None:
        self._long_columns = {*long_columns, 'created_at', 'updated_at'}

    def emit_list(self, column_names: Sequence[str], data: Iterable[Sequence[Any]], stdout: TextIO,
                  parsed_args: argparse.Namespace) -> None:
        table: list[Sequence[Any]] = [*zip(*[column_names, *data])]
        if not parsed_args.columns:
            table = self._arranged(table, parsed_args.long)
        if stdout.isatty() and not (parsed_args.max_width or parsed_args.fit_width):
            parsed_args.max_width = sys.maxsize  # cliff would make the names narrower too
            table = _fitted(table, shutil.get_terminal_size().columns)
        drawn = io.StringIO()
        names, *rows = zip(*table)
        super().emit_list(names, rows, drawn, parsed_args)
        _write(drawn, stdout)

    def _arranged(self, table: Iterable[Sequence[Any]], is_long: bool) -> list[Sequence[Any]]:
        """The columns, the names first; without those of ``--long`` unless it *is_long*."""
        table = [column for column in table if is_long or column[0] not in self._long_columns]
        names = [column for column in table if column[0] in _NAMES]
        others = [column for column in table if column[0] not in _NAMES]
        if is_long:
            return names + others
        if names:
            return names + [column for column in others if not _is_id(column[0])]
        return [[name, *(value and value[:DIGITS] for value in values)] if _is_id(name) and (
                    name != 'id' or len({value[:DIGITS] for value in values}) == len(values)) else [name, *values]
                for name, *values in others]

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
    """A text for people, of a single thing, made by *render*."""

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
    return '-' if value is None and formatter == 'table' else value


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


def _is_id(column: str) -> bool:
    """Whether ids stand in a column that are digits only."""
    return column == 'id' or column.endswith('_id') and not column.endswith('project_id')


def _fitted(table: Sequence[Sequence[Any]], width: int) -> list[Sequence[Any]]:
    """The columns of a table, the widest broken so that lines of *width* take it; not the first, nor ids."""
    sizes = [max(terminal.width_of(line) for cell in column for line in str(cell).split('\n')) for column in table]
    least = [max(size if _is_id(column[0]) else _NARROWEST, len(column[0])) for size, column in zip(sizes, table)]
    while sum(sizes) + 3 * len(sizes) + 1 > width and (
            broken := [at for at in range(1, len(sizes)) if sizes[at] > least[at]]):
        sizes[max(broken, key=sizes.__getitem__)] -= 1
    return [[column[0], *('\n'.join(part for line in cell.split('\n') for part in textwrap.wrap(
        line, size, break_on_hyphens=False) or ['']) if isinstance(cell, str) else cell for cell in column[1:])]
            for column, size in zip(table, sizes)]


#: The names of columns, and what stands in them: a row of a list each, or one thing's values.
Shown = tuple[Sequence[str], Iterable[Any]]
ZONE_COLUMNS = ('id', 'name', 'email', 'ttl', 'serial', 'status', 'action', 'description', 'pool_id', 'project_id',
                'shared', 'lock_reason', 'freeze', 'requires_approval', 'version', 'created_at', 'updated_at')
RECORDSET_COLUMNS = ('id', 'name', 'type', 'records', 'ttl', 'status', 'action', 'description', 'zone_id', 'zone_name',
                     'project_id', 'lock_reason', 'managed', 'version', 'created_at', 'updated_at')


class Argument:
    """An argument of a command, as :meth:`argparse.ArgumentParser.add_argument` takes it."""

    def __init__(self, *names: str, **options: Any) -> None:
        self.names = names
        self.dest: str = options.get('dest') or names[0].lstrip('-').replace('-', '_')
        self._options = options

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Have *parser* accept the argument."""
        parser.add_argument(*self.names, **self._options)

    @property
    def members(self) -> Sequence[Argument]:
        """The argument alone, for whoever reads :attr:`OneOf.members`."""
        return [self]


class OneOf:
    """Arguments of which only one may be given."""

    def __init__(self, *members: Argument, required: bool = False) -> None:
        self.members = members
        self._required = required

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Have *parser* accept the arguments, and refuse two of them together."""
        group = parser.add_mutually_exclusive_group(required=self._required)
        for argument in self.members:
            argument.add_to(group)


Arguments = Sequence[Argument | OneOf]


def seconds(text: str) -> float:
    """The type of an option that is a number of seconds."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f'{text!r} is no number of seconds; if it is another argument, put the option '
                                         'last, or write = and the seconds after it') from None
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f'{text!r} is no number of seconds above 0')
    return value


def ttl(text: str) -> int:
    """The type of an option that is a TTL: a number of seconds, or with units as in a zone file."""
    try:
        return int(dns.ttl.from_text(text))
    except dns.ttl.BadTTL:
        raise argparse.ArgumentTypeError(f'{text!r} is no TTL like 3600, 1h or 1h30m') from None


def wait_option(until: str, at_most: float = 60.0) -> Argument:
    """``--wait``, *until* something; for *at_most* seconds, if no number is given."""
    return Argument('--wait', nargs='?', type=seconds, const=at_most, metavar='SECONDS',
                    help=f'wait until {until}, with progress on standard error; {at_most:g} seconds if no number is '
                         'given (then put it last)')


class ApiCommand(command.Command):
    """A command that talks to the API.

    :cvar arguments: those that it has beside the ones of its bases
    :ivar exit_code: of a command that could be done; :meth:`take_action` may set it
    """

    arguments: Arguments = ()

    # The base class reads every installed package's metadata for this.
    app_dist_name = 'designate-pool'
    exit_code = 0

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        for base in reversed(type(self).__mro__):
            for argument in vars(base).get('arguments', ()):
                argument.add_to(parser)
        return parser

    def get_epilog(self) -> str:
        return ''

    def run(self, parsed_args: argparse.Namespace) -> int:
        try:
            return super().run(parsed_args) or self.exit_code
        except PoolError as error:
            raise cli_error(error) from error

    @property
    def client(self) -> Client:
        """The client that the program has made for its commands."""
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
    """Shows a list.

    :cvar long_columns: those that a table has with ``--long`` only
    """

    arguments: Arguments = (
        Argument('--long', action='store_true', help='show ids, times and all other columns in a table too'),)
    long_columns: Collection[str] = ()

    def _load_formatter_plugins(self) -> Any:
        return add(super()._load_formatter_plugins(), ('table', Table(self.long_columns)))

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str],
                       data: Iterable[Sequence[Any]]) -> int:
        rows = ([cell(value, parsed_args.formatter) for value in row] for row in data)
        return super().produce_output(parsed_args, column_names, rows)


class ShowOne(_Display, show.ShowOne):
    """Shows one thing."""

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Iterable[Any]) -> int:
        return super().produce_output(parsed_args, column_names, [cell(datum, parsed_args.formatter) for datum in data])


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

    arguments: Arguments = (wait_option('enough servers have the change'),)
    _sent_at = 0.0

    def send_change(self, method: str, path: str, body: Json | None = None,
                    headers: Mapping[str, str] | None = None) -> Json:
        """Ask the API for the change; the wait counts from here."""
        self._sent_at = time.monotonic()
        return self.client.json(method, path, body, headers=headers)

    def wait_if_told(self, parsed_args: argparse.Namespace, zone: Json, wanted: int | None = None,
                     deletes: bool = False, refresh_before: Json | None = None) -> bool:
        """Wait, if that was asked for; whether the pool was seen to have served the change, or failed."""
        if parsed_args.wait is None:
            return False
        if self.client.is_waiting:
            self.exit_code = zone_wait.TIMED_OUT
            return False
        change = zone_wait.PendingChange(zone['id'], zone['name'], self._sent_at, wanted, deletes, refresh_before)
        self.exit_code = zone_wait.follow(self.client, change, parsed_args.wait, self.app.stderr)
        return self.exit_code in (zone_wait.DONE, zone_wait.FAILED)


class ResourceCommand(ApiCommand):
    """A command about one of *resource*."""

    resource: ClassVar[Resource]
    default: ClassVar[str | None] = None

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        about, optional = self.resource.help, {}
        if self.default is not None:
            about, optional = f'{about}; {self.default!r} if none is given', {'nargs': '?', 'default': self.default}
        parser.add_argument('thing', help=about, **optional,  # type: ignore[arg-type]
                            metavar=self.resource.metavar or (self.resource.noun or self.resource.word).upper())
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Json:
        """The resource that the command line names; CliError when there is none, or more than one."""
        return self.client.find(self.resource, parsed_args.thing)

    def path(self, parsed_args: argparse.Namespace) -> str:
        """The path in the API of the resource that the command line names."""
        return f'{self.resource.path}/{self.find(parsed_args)["id"]}'


def list_command(of: Resource, about: str, **query: Any) -> type[Lister]:
    """A command that lists all of a resource, with the *query* of its requests."""
    def take_action(self: Lister, parsed_args: argparse.Namespace) -> Shown:
        return rows(of.list_columns, self.client.every(of.path, of.key, **query))

    return type('List', (Lister,), {'__doc__': about, 'take_action': take_action})


def show_command(of: Resource, about: str) -> type[ShowOne]:
    """A command that shows one of a resource; *about* is its help."""
    def take_action(self: Any, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.find(parsed_args), of.columns)

    return type('Show', (ResourceCommand, ShowOne), {'__doc__': about, 'resource': of, 'take_action': take_action})


def create_command(of: Resource, about: str, *arguments: Argument) -> type[ShowOne]:
    """A command that creates one of a resource from *arguments*; *about* is its help."""
    def take_action(self: ShowOne, parsed_args: argparse.Namespace) -> Shown:
        return columns(self.client.json('POST', of.path, options_given(parsed_args, arguments)), of.columns)

    return type('Create', (ShowOne,), {'__doc__': about, 'arguments': arguments, 'take_action': take_action})


def set_command(of: Resource, about: str, *arguments: Argument | OneOf) -> type[ShowOne]:
    """A command that changes what *arguments* give of one of a resource; *about* is its help."""
    def take_action(self: Any, parsed_args: argparse.Namespace) -> Shown:
        body = changes_given(parsed_args, arguments)
        return columns(self.client.json('PATCH', self.path(parsed_args), body), of.columns)

    return type('Set', (ResourceCommand, ShowOne), {'__doc__': about, 'resource': of, 'arguments': arguments,
                                                    'take_action': take_action})


def delete_command(of: Resource, about: str) -> type[ApiCommand]:
    """A command that deletes one of a resource; *about* is its help."""
    def take_action(self: ResourceCommand, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', self.path(parsed_args))

    return type('Delete', (ResourceCommand,), {'__doc__': about, 'resource': of, 'take_action': take_action})


def task_command(base: Any, task: str, about: str, *arguments: Argument,
                 show: Callable[[Json], Shown]) -> type[ShowOne]:
    """A command that asks for a *task* of what commands of this *base* are about, by *arguments*, and shows the answer;
    *about* is its help."""
    def take_action(self: Any, parsed_args: argparse.Namespace) -> Shown:
        body = options_given(parsed_args, arguments) or None
        return show(self.client.json('POST', f'{self.path(parsed_args)}/{task}', body))

    return type('Task', (base, ShowOne), {'__doc__': about, 'arguments': arguments, 'take_action': take_action})


def columns(found: Json, names: Sequence[str]) -> Shown:
    """The columns of one object; None for those that it does not have."""
    return names, [found.get(name) for name in names]


def all_columns(found: Json) -> Shown:
    """All columns of one object, but its links."""
    return columns(found, [name for name in found if name != 'links'])


def rows(names: Sequence[str], found: Iterable[Json]) -> Shown:
    """Of a list, fetched as it is shown."""
    return names, ([entry.get(name) for name in names] for entry in found)


def options_given(parsed_args: argparse.Namespace, arguments: Arguments) -> Json:
    """The values of *arguments* that have one; None for what an option like ``--no-ttl`` takes away."""
    dests = dict.fromkeys(member.dest for argument in arguments for member in argument.members)
    return {dest: None if value is NONE else value for dest in dests
            if (value := getattr(parsed_args, dest)) is not None}


def changes_given(parsed_args: argparse.Namespace, arguments: Arguments) -> Json:
    """As :func:`options_given`, but CliError where none is given."""
    body = options_given(parsed_args, arguments)
    if not body:
        *options, last = [member.names[0] for argument in arguments for member in argument.members]
        raise CliError(f'Nothing to change; give {", ".join(options)} or {last}.')
    return body


def positive(text: str) -> int:
    """The type of an option that is a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'{text!r} is no whole number from 1')
    return int(text)


#: The value of an option that takes something away.
NONE = object()
DESCRIPTION = OneOf(Argument('--description'),
                    Argument('--no-description', action='store_const', const=NONE, dest='description'))
ZONE = Argument('zone', metavar='ZONE', help='name or id; the final dot may be left out')


class RecordSetCommand(ApiCommand):
    """A command about one recordset."""

    arguments: Arguments = (
        ZONE,
        Argument('recordset', metavar='RECORDSET', help='id, or name: www, @ for the zone itself, or in full'),
        Argument('type', metavar='TYPE', nargs='?', help='needed where the name has recordsets of several types'))

    def find(self, parsed_args: argparse.Namespace) -> tuple[Json, Json]:
        """Its zone, and the recordset."""
        zone = self.client.zone(parsed_args.zone)
        return zone, self.client.recordset(zone, parsed_args.recordset, parsed_args.type)

    def path(self, parsed_args: argparse.Namespace) -> str:
        """The recordset's path in the API, below its zone's."""
        zone, recordset = self.find(parsed_args)
        return f'/v2/zones/{zone["id"]}/recordsets/{recordset["id"]}'

    def find_to_change(self, parsed_args: argparse.Namespace) -> tuple[Json, str, dict[str, str]]:
        """Its zone, the recordset's path, and the headers by which the API refuses a change of what is not as read."""
        zone, recordset = self.find(parsed_args)
        path = f'/v2/zones/{zone["id"]}/recordsets/{recordset["id"]}'
        return zone, path, {'If-Match': self.client.send('GET', path).headers.get('ETag', '*')}


AT = Argument('--at', metavar='SERIAL|TIME', help='as it was at a serial, or a time: 2030-01-31T12:00 (UTC) or 2h '
                                                  '(ago)')
REASON = Argument('--reason', required=True, metavar='TEXT', help='why, for whoever wants to change it')


def attributes_option(what: str) -> Argument:
    """The option of scheduling attributes for *what*."""
    return Argument('--attribute', action=_Attribute, metavar='NAME=VALUE', dest='attributes',
                    help=f'an attribute {what}; may be given again')


class _Attribute(argparse.Action):
    """Collects attributes in a mapping."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        name, equals, value = str(values).partition('=')
        if not name or not equals:
            parser.error(f'{values!r} is not an attribute like service_tier=gold')
        setattr(namespace, self.dest, {**(getattr(namespace, self.dest) or {}), name: value})


#: Of commands that create zones.
POOL_OPTIONS = (Argument('--pool', metavar='POOL',
                         help='the pool that the zone goes to, by name or id; not given: the one that the attributes '
                              'choose, or the default one'),
                attributes_option('by which the pool is chosen'))


def page_options(keys: Sequence[str]) -> tuple[Argument, ...]:
    """Options for part of a long list and its order, by one of *keys*."""
    def order(text: str) -> tuple[str, str]:
        key, _, direction = text.partition(':')
        if key not in keys or direction not in ('', 'asc', 'desc'):
            raise argparse.ArgumentTypeError(f'{text!r} is none of {", ".join(keys)}, with :desc or without')
        return key, direction or 'asc'

    return (Argument('--limit', type=positive, metavar='N', help='at most this many'),
            Argument('--marker', metavar='ID', help='begin after the entry with this id'),
            Argument('--sort', type=order, metavar='KEY[:desc]',
                     help=f'let the API sort by one of {", ".join(keys)}; --sort-column sorts what was fetched'))


def page(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """What :func:`page_options` found, as :meth:`designate_pool.cli.client.Client.every` takes it."""
    key, direction = parsed_args.sort or (None, None)
    return {'most': parsed_args.limit, 'marker': parsed_args.marker, 'sort_key': key, 'sort_dir': direction}
