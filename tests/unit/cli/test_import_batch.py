"""``zone import batch``: what becomes of each file of a folder."""

from __future__ import annotations

import csv
import io
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from designate_pool.cli.commands import zone_files

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


def test_what_cannot_be_sent_is_told_of_each_file(batch: Batch, tmp_path: pathlib.Path) -> None:
    for number in range(BATCH + 2):
        (tmp_path / f'{number}.zone').write_text(ZONE.format(f'z{number}.example.'))
    code, found, err = batch(str(tmp_path), url='http://127.0.0.1:1')
    assert code == 1 and len(found) == BATCH + 2
    assert all('does not answer' in message for _, message in found.values())


def test_a_folder_without_files(batch: Batch, tmp_path: pathlib.Path) -> None:
    code, found, err = batch(str(tmp_path))
    assert code == 1 and found == {} and 'has no files' in err
