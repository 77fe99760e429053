"""``zone import batch``: what becomes of each file of a folder; and imports from pipes."""

from __future__ import annotations

import csv
import http.server
import io
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from designate_pool.api.app import create_app
from designate_pool.api.auth.middleware import AuthMiddleware, NoAuth
from designate_pool.api.auth.policy import AllowAll
from designate_pool.api.http.limits import RateLimits
from designate_pool.api.http.server import ApiServer
from designate_pool.cli.app import Shell
from designate_pool.cli.commands import zone_files
from designate_pool.model import Endpoint
from designate_pool.settings import ApiSettings
from tests.fixtures.observed_central import POOL, ObservedCentral, PoolManager

Batch = Callable[..., tuple[int, dict[str, tuple[str, str]], str]]
ZONE = '$ORIGIN {}\n@ 60 SOA ns1.example.net. hostmaster.example.net. 1 60 60 60 60\n'
#: How many files are sent together.
BATCH = 10


@pytest.fixture
def batch(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Batch:
    """The exit code, by the names of files their outcomes and messages, and what is on standard error."""
    monkeypatch.setattr(zone_files, 'BATCH', BATCH)

    def batch(*words: str, **options: str) -> tuple[int, dict[str, tuple[str, str]], str]:
        ran = run('zone', 'import', 'batch', *words, '-f', 'csv', **options)
        return ran.code, {pathlib.Path(row['file']).name: (row['status'], row['message'])
                          for row in csv.DictReader(io.StringIO(ran.out))}, ran.err

    return batch


@pytest.mark.parametrize('options', [(), ('--attribute', 'tier=gold')])
def test_each_file_has_its_outcome(batch: Batch, tmp_path: pathlib.Path, options: tuple[str, ...]) -> None:
    folder = tmp_path / 'zones'
    (folder / 'sub').mkdir(parents=True)
    (folder / '.hidden').write_text(ZONE.format('hidden.example.'))
    for number in range(BATCH + 2):
        (folder / f'{number}.zone').write_text(ZONE.format(f'z{number}.example.'))
    (folder / 'large.zone').write_text(ZONE.format('large.example.') + ';' * 40000)
    (folder / 'wrong.zone').write_text('nonsense')
    (folder / 'latin.zone').write_bytes(b'\xe9')
    (folder / 'empty.zone').write_text('')
    (folder / 'broken.zone').symlink_to(folder / 'nowhere')
    code, found, err = batch(*options, str(folder), str(tmp_path / 'missing'))
    assert code == 1 and err.splitlines() == [f'COMPLETE: {BATCH + 3}', 'ERROR: 5']
    assert {name for name, (status, _) in found.items() if status == 'COMPLETE'} == {
        *(f'{number}.zone' for number in range(BATCH + 2)), 'large.zone'}
    assert 'cannot be read' in found['missing'][1] and 'cannot be read' in found['broken.zone'][1]
    assert 'malformed' in found['wrong.zone'][1]
    assert 'not UTF-8' in found['latin.zone'][1] and 'empty' in found['empty.zone'][1]


def test_included_files_are_expanded_and_named_in_messages(batch: Batch, run: Callable[..., Any],
                                                           tmp_path: pathlib.Path) -> None:
    (tmp_path / 'zones' / 'sub').mkdir(parents=True)
    (tmp_path / 'zones' / 'sub' / 'hosts.inc').write_text('www A 192.0.2.1\n$ORIGIN deep\na A 192.0.2.2\n')
    (tmp_path / 'zones' / 'wrong.inc').write_text('; text\nb A nowhere\n')
    (tmp_path / 'other').write_text('x A 192.0.2.9\n')
    head = ZONE.format('inc.example.') + '$TTL 60\n$INCLUDE sub/hosts.inc\nc A 192.0.2.3\n'
    files = {'good': head + '$include "sub/hosts.inc" more ; text\nd A 192.0.2.4\n',
             'wrong': head + '$INCLUDE wrong.inc\ne A nothing\n', 'itself': head + '$INCLUDE itself.zone\n',
             'outside': head + '$INCLUDE ../other\n', 'missing': head + '$INCLUDE nowhere\n',
             'unnamed': head + '$INCLUDE sub/hosts.inc\n  A 192.0.2.4\n'}
    for name, text in files.items():
        (tmp_path / 'zones' / f'{name}.zone').write_text(text.replace('inc.example.', f'{name}.example.'))
    code, outcomes, _ = batch(*(str(tmp_path / 'zones' / f'{name}.zone') for name in files))
    assert code == 1
    for name, words in {'good': 'good.example. imported', 'wrong': 'wrong.inc, line 2: ', 'itself': 'includes itself',
                        'outside': 'line 6 cannot be read: ', 'missing': 'nowhere cannot be read',
                        'unnamed': 'line 7 cannot be read: the name is missing'}.items():
        assert words in outcomes[f'{name}.zone'][1], outcomes
    assert 'line 7: ' in outcomes['wrong.zone'][1]
    exported = run('zone', 'export', 'good.example').out
    assert {line.split()[0] for line in exported.splitlines() if ' A ' in line} == {
        f'{name}.good.example.' for name in ('www', 'a.deep', 'c', 'www.more', 'a.deep.more', 'd')}


def test_a_file_without_an_origin_has_the_name_that_is_given(run: Callable[..., Any], tmp_path: pathlib.Path) -> None:
    file = tmp_path / 'zone'
    file.write_text('@ 60 SOA ns1.example.net. hostmaster.example.net. 1 60 60 60 60\nwww A 192.0.2.1\n$INCLUDE more\n')
    (tmp_path / 'more').write_text('a A 192.0.2.x\n')
    assert '--name' in run('zone', 'import', str(file)).err
    assert 'more, line 1: ' in run('zone', 'import', str(file), '--name', 'named.example').err
    (tmp_path / 'more').write_text('a A 192.0.2.2\n')
    assert run('zone', 'import', str(file), '--name', 'named.example').code == 0
    assert 'a.named.example. 60 IN A 192.0.2.2' in run('zone', 'export', 'named.example').out


def test_the_second_time_what_is_there_is_skipped(batch: Batch, tmp_path: pathlib.Path) -> None:
    for number in range(3):
        (tmp_path / f'{number}.zone').write_text(ZONE.format(f'z{number}.example.'))
    assert batch(str(tmp_path / '0.zone'), str(tmp_path / '1.zone'))[0] == 0
    code, found, _ = batch(str(tmp_path), '--only-failed')
    assert code == 1 and set(found) == {'0.zone', '1.zone'}
    for number in (0, 1):
        (tmp_path / f'{number}.zone').write_text('; changed\n' + ZONE.format(f'Z{number}.Example.'))
    (tmp_path / '3.zone').write_text(ZONE.format('z3.example.'))
    code, found, err = batch('--skip-existing', str(tmp_path))
    assert {name: status for name, (status, _) in found.items()} == {
        '0.zone': 'SKIPPED', '1.zone': 'SKIPPED', '2.zone': 'SKIPPED', '3.zone': 'COMPLETE'}
    assert code == 0 and err.splitlines() == ['COMPLETE: 1', 'SKIPPED: 3']


def test_a_zone_that_is_being_deleted_is_not_there(batch: Batch, run: Callable[..., Any],
                                                   tmp_path: pathlib.Path) -> None:
    names = [f'z{number}.example' for number in range(BATCH)]
    for name in names:
        (tmp_path / f'{name}.zone').write_text(ZONE.format(f'{name}.'))
    assert batch(str(tmp_path))[0] == 0
    for name in names:
        run('zone', 'delete', name)
    code, found, err = batch('--skip-existing', str(tmp_path))
    assert code == 0 and err.splitlines() == [f'COMPLETE: {BATCH}']
    adopted = run('zone', 'adopt', '--all', '--from', str(tmp_path), '-f', 'value', '-c', 'result')
    assert adopted.code == 0 and adopted.out == 'is here already\n' * BATCH


def test_what_cannot_be_sent_is_told_of_each_file(batch: Batch, tmp_path: pathlib.Path) -> None:
    for number in range(BATCH + 2):
        (tmp_path / f'{number}.zone').write_text(ZONE.format(f'z{number}.example.'))
    code, found, err = batch(str(tmp_path), url='http://127.0.0.1:1')
    assert code == 1 and len(found) == BATCH + 2
    assert all('does not answer' in message for _, message in found.values())


def test_a_folder_without_files(batch: Batch, tmp_path: pathlib.Path) -> None:
    code, found, err = batch(str(tmp_path))
    assert code == 1 and found == {} and 'has no files' in err


LARGE_ZONE = b'$ORIGIN example.com.\n@ 60 SOA ns1.example.org. hostmaster.example.com. 1 60 60 60 60\n' \
    + b'; a comment, for a file that no buffer holds\n' * 10000


@pytest.fixture
def url(central: ObservedCentral) -> Iterator[str]:
    """Of an API that takes one request a second."""
    gate = AuthMiddleware(NoAuth(), AllowAll(), RateLimits(1, 1))
    server = ApiServer(create_app(central, POOL, pool_managers=PoolManager(), storage=central.storage,
                                  gate=gate), Endpoint('127.0.0.1', 0), ApiSettings(threads=2, waits=0))
    server.start()
    yield f'http://{server.endpoint}'
    server.stop()


def run(url: str, *words: str, stdin: bytes = b'') -> tuple[int, str, str]:
    """A command with a pipe as its standard input."""
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, 'wb') as pipe:
            pipe.write(stdin)

    writer = threading.Thread(target=write)
    writer.start()
    out, err = io.StringIO(), io.StringIO()
    with open(reading, encoding='utf-8') as pipe:
        code = Shell(stdin=pipe, stdout=out, stderr=err).run(['--url', url, *words])
        pipe.buffer.read()
    writer.join()
    return code, out.getvalue(), err.getvalue()


def test_an_import_from_a_pipe_that_comes_too_early_comes_again(url: str) -> None:
    assert run(url, 'zone', 'list')[0] == 0
    code, out, err = run(url, 'zone', 'import', '-', '--no-wait', '-f', 'value', '-c', 'message', stdin=LARGE_ZONE)
    assert (code, err) == (0, '')
    assert out.strip() == 'example.com. imported'


def test_a_pipe_without_end_does_not_fill_the_memory(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_files, 'MOST_PIPED', 100_000)
    code, _, err = run(url, 'zone', 'import', '-', stdin=LARGE_ZONE)
    assert code == 1
    assert 'more than 100000 bytes' in err


class BreaksOff(http.server.BaseHTTPRequestHandler):
    """Shows a zone, and sends the first line of its export."""

    def do_GET(self) -> None:
        self.send_response(200)
        is_export = self.path.endswith('/export')
        self.send_header('Content-Length', '1000' if is_export else '11')
        self.end_headers()
        self.wfile.write(LARGE_ZONE[:22] if is_export else b'{"id": "a"}')

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_an_export_that_breaks_off_leaves_the_file_as_it_was(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'example.com.zone'
    path.write_bytes(LARGE_ZONE)
    with http.server.HTTPServer(('127.0.0.1', 0), BreaksOff) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f'http://127.0.0.1:{server.server_port}'
        for words in ((), ('--file', str(path))):
            code, _, err = run(url, 'zone', 'export', 'f' * 32, *words)
            assert code == 1 and err.startswith('The API has not sent the whole zone (')
        server.shutdown()
    assert path.read_bytes() == LARGE_ZONE and list(tmp_path.iterdir()) == [path]
