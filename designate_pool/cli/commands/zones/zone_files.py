"""``designate-pool zone import ...`` and ``zone export ...``: zones from zone files (RFC 1035), and into them."""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import tempfile
import time
from collections.abc import Iterator
from typing import IO, Any, BinaryIO, TextIO

from designate_pool.cli.args.common import add_zone
from designate_pool.cli.args.names import begins, is_id
from designate_pool.cli.base import ZONE_COLUMNS, ApiCommand, ChangeCommand, Json, Lister, Shown, ShowOne, columns
from designate_pool.cli.http.client import CliError
from designate_pool.cli.wait import zone_wait

#: A zone file of a million records takes its time.
IMPORT_SECONDS = 900.0
PAUSE, LONGEST_PAUSE = 0.05, 1.0
IMPORTS, EXPORTS = '/v2/zones/tasks/imports', '/v2/zones/tasks/exports'
IMPORT_COLUMNS = ('id', 'status', 'message', 'zone_id', 'project_id', 'created_at', 'updated_at')
EXPORT_COLUMNS = ('id', 'status', 'message', 'zone_id', 'location', 'project_id', 'created_at', 'updated_at')
LIST_COLUMNS = ('id', 'status', 'zone_id', 'message', 'created_at')
#: Written at once.
_PIECE = 1 << 16
#: Bytes of standard input that are kept in a temporary file, where it is a pipe.
MOST_PIPED = 1 << 30


class ImportZone(ChangeCommand):
    """Create a zone from a zone file (RFC 1035).

    The file is sent first; then it is read, and the zone made of it, wherever Central runs, which is waited for unless
    --no-wait is given.  The exit code is that of --wait.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='FILE', help='the zone file; - is standard input')
        parser.add_argument('--pool', metavar='POOL', help='the pool that the zone goes to, by name or id; not given: '
                                                           'the default one')
        parser.add_argument('--no-wait', action='store_true',
                            help="only send the file, and show the import's id; 'zone import show' tells how it ended")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        where = {} if parsed_args.pool is None else {'pool_id': self.client.pool(parsed_args.pool)['id']}
        with _opened(parsed_args.file, self.app.stdin) as content:
            self.began = time.monotonic()
            answer = self.client.send('POST', IMPORTS, IMPORT_SECONDS, data=content, params=where,
                                      headers={'Content-Type': 'text/dns'})
        task: Json = answer.json()
        if parsed_args.no_wait:
            return columns(task, IMPORT_COLUMNS, parsed_args.formatter)
        task = self._finished(task)
        if task['status'] == 'PENDING':
            self.exit_code = zone_wait.TIMED_OUT
            return columns(task, IMPORT_COLUMNS, parsed_args.formatter)
        if task['status'] != 'COMPLETE':
            between = '\n' if '\n' in task['message'] else ' '
            raise CliError(f'{parsed_args.file} was not imported:{between}{task["message"]}')
        zone = self.client.zone(task['zone_id'])
        if ';' in task['message']:  # more than that it was imported
            self.app.stderr.write(f'{parsed_args.file}: {task["message"]}.\n')
        if self.settle(parsed_args, zone, zone['serial']):
            zone = self.client.zone(zone['id'])
        return columns(zone, ZONE_COLUMNS, parsed_args.formatter)

    def _finished(self, task: Json) -> Json:
        """*task* when it has ended, or when the time is over."""
        pause = PAUSE
        try:
            while task['status'] == 'PENDING':
                if time.monotonic() - self.began > IMPORT_SECONDS:
                    self.app.stderr.write(f'The import goes on after {IMPORT_SECONDS:g} s; {_later(task)}\n')
                    break
                time.sleep(pause)
                pause = min(pause * 1.3, LONGEST_PAUSE)
                task = self.client.get(f'{IMPORTS}/{task["id"]}')
        except KeyboardInterrupt:
            self.app.stderr.write(f'\nThe import goes on without you; {_later(task)}\n')
            raise
        return task


class ListImports(Lister):
    """List the imports of zones."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        found = self.client.every(IMPORTS, 'imports')
        return LIST_COLUMNS, ([each[column] for column in LIST_COLUMNS] for each in found)


class ShowImport(ShowOne):
    """Show the state of an import, or why it failed."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_task(parser, 'IMPORT')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(_task(self, IMPORTS, parsed_args.task), IMPORT_COLUMNS, parsed_args.formatter)


class DeleteImport(ApiCommand):
    """Forget an import; the zone that it made stays."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_task(parser, 'IMPORT')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', f'{IMPORTS}/{_task(self, IMPORTS, parsed_args.task)["id"]}')


class ExportZone(ApiCommand):
    """Write a zone as a zone file (RFC 1035)."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_zone(parser)
        parser.add_argument('--file', metavar='FILE', help='where to; standard output if not given')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        # By the zone's own id no export is kept, as there would be by asking for one first.
        zone = self.client.zone(parsed_args.zone)
        with self.client.send('GET', f'{EXPORTS}/{zone["id"]}/export', IMPORT_SECONDS, stream=True) as answer:
            pieces = answer.iter_content(_PIECE)
            if parsed_args.file is None:
                _print(pieces, self.app.stdout)
            else:
                _write(pieces, parsed_args.file)


class ListExports(Lister):
    """List the exports of zones."""

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        found = self.client.every(EXPORTS, 'exports')
        return LIST_COLUMNS, ([each[column] for column in LIST_COLUMNS] for each in found)


class ShowExport(ShowOne):
    """Show an export, and where it can be fetched."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_task(parser, 'EXPORT')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        return columns(_task(self, EXPORTS, parsed_args.task), EXPORT_COLUMNS, parsed_args.formatter)


class DeleteExport(ApiCommand):
    """Forget an export."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_task(parser, 'EXPORT')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.client.send('DELETE', f'{EXPORTS}/{_task(self, EXPORTS, parsed_args.task)["id"]}')


def _add_task(parser: argparse.ArgumentParser, word: str) -> None:
    parser.add_argument('task', metavar=word, help='its id, or the first four or more digits of it')


def _task(command: ApiCommand, path: str, given: str) -> Json:
    if is_id(given):
        return command.client.get(f'{path}/{given}')
    key = path.rpartition('/')[2]
    found = [each for each in command.client.every(path, key) if begins(given, each['id'])]
    if len(found) != 1:
        how_many = 'There are several' if found else 'There is no'
        raise CliError(f'{how_many} {key if found else key[:-1]} {given}; '
                       f"'designate-pool zone {key[:-1]} list' shows those there are.")
    return found[0]


def _later(task: Json) -> str:
    return f"'designate-pool zone import show {task['id']}' tells how far it is."


@contextlib.contextmanager
def _opened(file: str, stdin: TextIO) -> Iterator[Any]:
    """The contents of *file*, to be sent as it is read, and to be read again when it has to be sent again."""
    if file == '-':
        if not hasattr(stdin, 'buffer'):
            yield stdin.read().encode()
        elif stdin.seekable():
            yield stdin.buffer
        else:
            with tempfile.TemporaryFile() as kept:
                _keep(stdin.buffer, kept)
                yield kept
        return
    try:
        opened: BinaryIO = pathlib.Path(file).open('rb')
    except OSError as error:
        raise CliError(f'{file} cannot be read: {error.strerror or error}.') from error
    with opened:
        yield opened


def _keep(pipe: BinaryIO, kept: IO[bytes]) -> None:
    """Copy what can be read only once."""
    try:
        while piece := pipe.read(_PIECE):
            kept.write(piece)
            if kept.tell() > MOST_PIPED:
                raise CliError(f'Standard input has more than {MOST_PIPED} bytes; give the name of a file.')
        kept.flush()
    except OSError as error:
        raise CliError(f'Standard input cannot be kept until it is sent: {error.strerror or error}.') from error
    kept.seek(0)


def _print(pieces: Iterator[bytes], stdout: TextIO) -> None:
    stdout.flush()
    for piece in pieces:
        if hasattr(stdout, 'buffer'):
            stdout.buffer.write(piece)
        else:
            stdout.write(piece.decode())
    stdout.flush()


def _write(pieces: Iterator[bytes], file: str) -> None:
    """Write all of it or nothing: a file that was there stays until the new one is whole."""
    path = pathlib.Path(file)
    whole = path if path.exists() and not path.is_file() else path.with_name(f'{path.name}.part')
    try:
        with whole.open('wb') as opened:
            for piece in pieces:
                opened.write(piece)
        if whole is not path:
            whole.replace(path)
    except OSError as error:
        raise CliError(f'{file} cannot be written: {error.strerror or error}.') from error
