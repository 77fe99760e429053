"""``designate-pool zone import ...`` and ``zone export ...``: zones from zone files (RFC 1035), and into them."""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, TextIO

import dns.rdata
import requests
from dns.rdtypes.ANY.SOA import SOA

from designate_pool.backoff import Backoff
from designate_pool.cli import zone_wait
from designate_pool.cli.base import (AT, POOL_OPTIONS, ZONE, ZONE_COLUMNS, ApiCommand, Argument, ChangeCommand, Lister,
                                     Shown, columns, delete_command, list_command, rows, show_command)
from designate_pool.cli.client import POOL, ApiRefusal, Client, Json, Resource, is_id, version_path
from designate_pool.cli.connection import CliError
from designate_pool.errors import BadInput, InvalidField, SourceError
from designate_pool.planner.providers.pool_api import reason
from designate_pool.planner.sources.zonefile import Expansion, LinePlaces, has_includes
from designate_pool.protocol import rules, soa_rdata
from designate_pool.protocol.names_and_rdata import normal_text
from designate_pool.protocol.zonefile import ZoneFileErrors, ZoneFileRecords, validated

#: A zone file of a million records takes its time.
IMPORT_SECONDS = 900.0
PAUSES = Backoff(0.05, 1.3, cap=1.0)
BATCHES = '/v2/zones/tasks/import_batches'
#: Zone files in one request, and how many bytes each of them may have.
BATCH, TINY = 200, 1 << 15
#: Bytes of JSON that the zone files of one request may have together, so that limits of proxies are kept to.
BATCH_BYTES = 1 << 19
SKIPPED = 'SKIPPED'
BATCH_COLUMNS = ('file', 'status', 'zone_id', 'message')
_LIST_COLUMNS = ('id', 'status', 'zone_id', 'message', 'created_at')
_TASK = 'its id, or the first four or more digits of it'
IMPORT = Resource('zone_import', '/v2/zones/tasks/imports',
                  ('id', 'status', 'message', 'zone_id', 'project_id', 'created_at', 'updated_at'), _LIST_COLUMNS,
                  name='id', noun='import', help=_TASK)
EXPORT = Resource('zone_export', '/v2/zones/tasks/exports',
                  ('id', 'status', 'message', 'zone_id', 'location', 'project_id', 'created_at', 'updated_at'),
                  _LIST_COLUMNS, name='id', noun='export', help=_TASK)
#: Bytes that are read and written at once.
_PIECE = 1 << 16
#: The most bytes of a zone file from a pipe, which is kept in memory to be sent again where that is needed.
MOST_PIPED = 1 << 30


class FileError(CliError):
    """A file cannot be read or sent; the others can."""


class ZoneImport(ChangeCommand):
    """Create a zone from a zone file (RFC 1035).

    The file is sent to the API; Central reads it and makes the zone, which is waited for unless --no-wait is given.
    The exit code is that of --wait.
    """

    arguments = (
        Argument('file', metavar='FILE', help='the zone file; - is standard input. $INCLUDE of files in its folder and '
                                              'below is expanded'),
        Argument('--name', metavar='ZONE', help="the zone's name, for a file without $ORIGIN whose SOA is that of @"),
        *POOL_OPTIONS,
        Argument('--no-wait', action='store_true', help="only send the file, and show the import's id; 'zone import "
                                                        "show' tells how it ended"))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        pool = self.pool_id(parsed_args)
        with _open(parsed_args.file, self.app.stdin, parsed_args.name) as (content, places):
            self._sent_at = time.monotonic()
            task = sent(self.client, parsed_args.file, content, parsed_args.attributes, pool)
        if parsed_args.no_wait:
            return columns(task, IMPORT.columns)
        task = finished(self.client, task, self._sent_at, self.app.stderr)
        if task['status'] == 'PENDING':
            self.exit_code = zone_wait.TIMED_OUT
            return columns(task, IMPORT.columns)
        if task['status'] != 'COMPLETE':
            between = '\n' if '\n' in task['message'] else ' '
            raise CliError(f'{parsed_args.file} was not imported:{between}{places.in_files(task["message"])}')
        zone = self.client.zone(task['zone_id'])
        if ';' in task['message']:  # more than that it was imported
            self.app.stderr.write(f'{parsed_args.file}: {task["message"]}.\n')
        if self.wait_if_told(parsed_args, zone, zone['serial']):
            zone = self.client.zone(zone['id'])
        return columns(zone, ZONE_COLUMNS)


class ZoneImportBatch(Lister):
    """Create zones from many zone files.

    What became of each file (RFC 1035) is listed. Small files are sent up to 200 at a time, others one after the other.
    Each zone is created or refused by itself. The exit code is 1 if any file was not imported, and 4 if an import has
    not ended in time. To go on after an interruption, use --skip-existing.
    """

    _unreachable: CliError | None = None
    _places: LinePlaces
    _attributes: Json | None
    _pool: Json

    arguments = (
        Argument('paths', metavar='PATH', nargs='+', help='a zone file, or a folder, of which all files are taken '
                                                          'but hidden ones'),
        *POOL_OPTIONS,
        Argument('--skip-existing', action='store_true', help='leave out files whose zones you have already, '
                                                              'whatever they contain'),
        Argument('--only-failed', action='store_true', help='list only files that were not imported'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        files = [file for path in parsed_args.paths for file in _zone_files(path)]
        pool = self.pool_id(parsed_args)
        existing = {zone['name'].lower() for zone in self.client.every('/v2/zones', 'zones')
                    if zone['action'] != 'DELETE'} if parsed_args.skip_existing else set()
        self._attributes, self._pool = parsed_args.attributes, pool
        outcomes = self._outcomes(files, existing)
        return BATCH_COLUMNS, ([outcome.get(name) for name in BATCH_COLUMNS] for outcome in self._counted(outcomes)
                               if outcome['status'] in ('ERROR', 'PENDING') or not parsed_args.only_failed)

    def _counted(self, outcomes: Iterable[Json]) -> Iterator[Json]:
        counts: dict[str, int] = {}
        for outcome in outcomes:
            counts[outcome['status']] = counts.get(outcome['status'], 0) + 1
            yield outcome
        self.exit_code = zone_wait.TIMED_OUT if counts.get('PENDING') else 0
        self.exit_code = 1 if counts.get('ERROR') else self.exit_code
        self.app.stderr.write(''.join(f'{status}: {count}\n' for status, count in sorted(counts.items())))

    def _outcomes(self, files: Iterable[str], existing: set[str]) -> Iterator[Json]:
        """What became of each file, by the columns; small ones are sent together."""
        batch: dict[str, str | None] = {}
        size = 0
        for file in files:
            try:
                text = _small_text(file)
                if existing and _zone_name(file) in existing:
                    yield {'file': file, 'status': SKIPPED, 'message': 'the zone exists already'}
                elif text is None:
                    yield from self._import({file: None})
                else:
                    batch[file] = text
                    size += len(json.dumps(text))
            except CliError as error:
                yield _failed(file, error)
            if len(batch) == BATCH or size > BATCH_BYTES:
                yield from self._import(batch)
                batch, size = {}, 0
        if batch:
            yield from self._import(batch)

    def _import(self, batch: Mapping[str, str | None]) -> Iterator[Json]:
        """What becomes of the files of *batch*; once the API cannot be reached, nothing more is sent."""
        sent_at = time.monotonic()
        try:
            if self._unreachable is not None:
                raise self._unreachable
            self._places = LinePlaces()
            begun = self._begin_when_admitted(batch)
        except CliError as error:
            if not isinstance(error, ApiRefusal | FileError):
                self._unreachable = error
            yield from (_failed(file, error) for file in batch)
            return
        for file, task in zip(batch, begun, strict=True):
            try:
                task = finished(self.client, task, sent_at, self.app.stderr)
                yield {**task, 'file': file, 'message': task['message'] and self._places.in_files(task['message'])}
            except CliError as error:  # the import goes on, whatever becomes of the question about it
                yield {**task, 'file': file, 'message': f'{error} {_how_to_follow(task)}'}

    def _begin_when_admitted(self, batch: Mapping[str, str | None]) -> Sequence[Json]:
        """The imports of *batch*; tried again while too many imports of the project are under way."""
        end, pauses = time.monotonic() + IMPORT_SECONDS, PAUSES.delays()
        while True:
            try:
                return self._begin(batch)
            except ApiRefusal as error:
                if error.status != zone_wait.TOO_MANY or time.monotonic() > end:
                    raise
            time.sleep(next(pauses))

    def _begin(self, batch: Mapping[str, str | None]) -> Sequence[Json]:
        if None in batch.values():  # one file that is sent by itself
            file, = batch
            with _open(file, self.app.stdin) as (content, self._places):
                return [sent(self.client, file, content, self._attributes, self._pool)]
        attributes = {**(self._attributes or {}), **self._pool}
        body = {'zonefiles': list(batch.values()), **({'attributes': attributes} if attributes else {})}
        imports: list[Json] = self.client.json('POST', BATCHES, body, IMPORT_SECONDS)['imports']
        return imports


ZoneImportList = list_command(IMPORT, 'List the imports of zones.')
ZoneImportShow = show_command(IMPORT, 'Show the state of an import, or why it failed.')
ZoneImportDelete = delete_command(IMPORT, 'Forget an import; the zone that it made stays.')


class ZoneValidate(Lister):
    """List what the rules of validation have against a zone, or against a zone file.

    A file is read here, without the API unless --pool is given.  The exit code is 2 if there is an error, or if a
    server of the pool does not take a record; 0 for warnings alone.
    """

    arguments = (
        Argument('zone', metavar='ZONE|FILE', help='name or id of a zone, or the path of a zone file; its $INCLUDE is '
                                                   'expanded'),
        Argument('--name', metavar='ZONE', help="of a file, the zone's name, as for 'zone import'"),
        Argument('--pool', metavar='POOL', help="of a file, the pool that it is for, by name or id, whose servers' "
                                                'limits are asked too'))

    def take_action(self, parsed_args: argparse.Namespace) -> Shown:
        if parsed_args.name or pathlib.Path(parsed_args.zone).is_file():
            pool = parsed_args.pool
            limits = self.client.get(f'/v2/pools/{pool if is_id(pool) else self.client.find(POOL, pool)["id"]}/limits')[
                'limits'] if pool else ()
            violations = [{**violation._asdict(), 'rule': violation.rule.id, 'level': violation.rule.level.value}
                          for violation in self._violations_of(parsed_args.zone, parsed_args.name, limits)]
        else:
            zone = self.client.zone(parsed_args.zone)
            violations = self.client.get(f'/v2/zones/{zone["id"]}/validation')['violations']
        if any(violation['level'] != 'warning' for violation in violations):
            self.exit_code = 2
        return rows(('level', 'rule', 'name', 'type', 'why'), violations)

    def _violations_of(self, file: str, name: str | None, limits: Iterable[Json]) -> Iterator[rules.Violation]:
        """Of a zone file, whose zone is that of its SOA, for servers with these *limits*."""
        with _open(file, self.app.stdin, name) as (content, places):
            text = _text(file, content)
        errors = ZoneFileErrors(lambda found: CliError('\n'.join(
            places.in_files(f'{where}: {why}') for where, why in found)))
        zone = _owner_of_soa(text.split('\n'))
        contents: dict[str, dict[str, tuple[int, dict[str, None]]]] = {}
        records = ZoneFileRecords(text, zone, errors, _as_stored)
        for key, ttl, data in records:
            owner, _, rtype = key.partition('\t')
            texts = contents.setdefault(owner, {}).setdefault(rtype, (ttl, {}))[1]
            if texts and data not in texts:
                records.check_alone(key)
            texts[data] = None
        errors.refuse()
        if zone is None or zone == '.':
            raise CliError(f"{file}: there is no SOA record{' but that of the root; give --name' if zone else ''}")
        contents[zone].pop('SOA')
        yield from rules.of_zone(zone, contents, [rules.ServerLimit(**limit) for limit in limits])


class ZoneExport(ApiCommand):
    """Write a zone as a zone file (RFC 1035)."""

    arguments = (ZONE, Argument('--file', metavar='FILE', help='where to; standard output if not given'), AT)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        # With the zone's id as that of the export, none is stored.
        export = f'{EXPORT.path}/{self.client.zone(parsed_args.zone)["id"]}' if parsed_args.at is None else (
            version_path(self.client.any_zone_id(parsed_args.zone), parsed_args.at))
        with self.client.send('GET', f'{export}/export', IMPORT_SECONDS, stream=True) as answer:
            pieces = _pieces(answer)
            if parsed_args.file is None:
                _print(pieces, self.app.stdout)
            else:
                _write(pieces, parsed_args.file)


ZoneExportList = list_command(EXPORT, 'List the exports of zones.')
ZoneExportShow = show_command(EXPORT, 'Show an export, and where it can be fetched.')
ZoneExportDelete = delete_command(EXPORT, 'Forget an export.')


def sent(client: Client, file: str, content: Any, attributes: Json | None, pool: Json) -> Json:
    """The import that the API has begun, of the *content* of *file* as :func:`_open` opens it."""
    if attributes:
        answer = client.send('POST', IMPORT.path, IMPORT_SECONDS, json={
            'zonefile': _text(file, content), 'attributes': {**attributes, **pool}})
    else:
        answer = client.send('POST', IMPORT.path, IMPORT_SECONDS, data=content, params=pool,
                             headers={'Content-Type': 'text/dns'})
    task: Json = answer.json()
    return task


def finished(client: Client, task: Json, sent_at: float, stderr: TextIO) -> Json:
    """The import *task* when it has ended, or when the time is over."""
    pauses = PAUSES.delays()
    try:
        while task['status'] == 'PENDING':
            if time.monotonic() - sent_at > IMPORT_SECONDS:
                stderr.write(f'The import is still running after {IMPORT_SECONDS:g} s; {_how_to_follow(task)}\n')
                break
            time.sleep(next(pauses))
            task = client.get(f'{IMPORT.path}/{task["id"]}')
    except KeyboardInterrupt:
        stderr.write(f'\nThe import continues in the background; {_how_to_follow(task)}\n')
        raise
    return task


def _how_to_follow(task: Json) -> str:
    return f"'designate-pool zone import show {task['id']}' tells how far it is."


def _zone_files(path: str) -> Iterator[str]:
    """*path*, or the files in this folder by name; FileError when there are none."""
    folder = pathlib.Path(path)
    if not folder.is_dir():
        yield path
        return
    try:
        files = sorted(str(file) for file in folder.iterdir() if not file.is_dir() and not file.name.startswith('.'))
    except OSError as error:
        raise FileError(f'{path} cannot be listed: {error.strerror or error}.') from error
    if not files:
        raise FileError(f'{path} has no files.')
    yield from files


def _small_text(file: str) -> str | None:
    """The contents of a file that may be sent with others; None for one that is to be sent, or refused, by itself."""
    try:
        with pathlib.Path(file).open('rb') as opened:
            content = opened.read(TINY + 1)
    except OSError as error:
        raise FileError(f'{file} cannot be read: {error.strerror or error}.') from error
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return text if len(content) <= TINY and text.strip() and '\0' not in text \
        and not has_includes(content.splitlines()) else None


def _zone_name(file: str) -> str | None:
    """The owner of the SOA in *file*; None where that cannot be found."""
    try:
        with open(file, encoding='utf-8') as lines:
            return _owner_of_soa(line.rstrip('\n') for line in lines)
    except (OSError, UnicodeDecodeError):
        return None


def _owner_of_soa(lines: Iterable[str]) -> str | None:
    """The owner of the first SOA; None if there is none before a mistake."""
    with contextlib.suppress(CliError):
        for key, _, _ in ZoneFileRecords(lines, None, ZoneFileErrors(lambda mistakes: CliError(str(mistakes)), most=1),
                                         lambda rtype, rdata: rdata):
            if key.endswith('\tSOA'):
                return key.removesuffix('\tSOA')
    return None


def _as_stored(rtype: str, parsed: dns.rdata.Rdata) -> str:
    """The text of data of a zone file, if it can be stored."""
    if isinstance(parsed, SOA):
        soa_rdata.check_mailbox(rtype, parsed.rname.labels)
        soa_rdata.check_expire(rtype, parsed.expire, parsed.refresh)
    why = rules.refused_type(parsed.rdtype)
    if why is not None:
        raise InvalidField(field=rtype, why=why)
    return normal_text(rtype, parsed)


def _failed(file: str, error: CliError) -> Json:
    return {'file': file, 'status': 'ERROR', 'message': str(error)}


@contextlib.contextmanager
def _open(file: str, stdin: TextIO, name: str | None = None) -> Iterator[tuple[Any, LinePlaces]]:
    """The contents of *file*, to be sent as it is read, and to be read again when it has to be sent again."""
    if file == '-':
        content = stdin.buffer.read(MOST_PIPED + 1) if hasattr(stdin, 'buffer') else stdin.read().encode()
        if len(content) > MOST_PIPED:
            raise CliError(f'Standard input has more than {MOST_PIPED} bytes; give the name of a file.')
        places = LinePlaces()
        if name:
            content, places.count = b'$ORIGIN %s.\n%s' % (name.rstrip('.').encode(), content), 1
            places.begin('', 1)
        yield content, places
        return
    try:
        opened: BinaryIO = pathlib.Path(file).open('rb')
    except OSError as error:
        raise FileError(f'{file} cannot be read: {error.strerror or error}.') from error
    with opened:
        try:
            expansion = Expansion(pathlib.Path(file), name) if name or has_includes(opened) else None
        except SourceError as error:
            raise FileError(str(error)) from error
        opened.seek(0)
        yield (opened, LinePlaces()) if expansion is None else (expansion.text, expansion.places)


def _text(file: str, content: Any) -> str:
    """*content* as a whole, where it has to be sent inside of JSON."""
    octets: bytes = content if isinstance(content, bytes) else content.read()
    try:
        return b''.join(validated([octets])).decode()
    except BadInput as error:
        raise FileError(f'{file}: {error.kwargs["why"]}.') from error


def _pieces(answer: requests.Response) -> Iterator[bytes]:
    try:
        yield from answer.iter_content(_PIECE)
    except requests.RequestException as error:
        raise CliError(f'The API has not sent the whole zone ({reason(error)}); try again.') from error


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
    finally:
        if whole is not path:
            whole.unlink(missing_ok=True)
