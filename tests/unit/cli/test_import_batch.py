"""``zone import batch``: what becomes of each file of a folder."""

from __future__ import annotations

import csv
import io
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from designate_pool.cli.commands.zone_files import BATCH

Batch = Callable[..., tuple[int, dict[str, tuple[str, str]], str]]
ZONE = '$ORIGIN {}\n@ 60 SOA ns1.example.net. hostmaster.example.net. 1 60 60 60 60\n'


@pytest.fixture
def batch(run: Callable[..., Any]) -> Batch:
    """The exit code, by the names of files their outcomes and messages, and what is on standard error."""
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
    assert all('cannot be reached' in message for _, message in found.values())


def test_a_folder_without_files(batch: Batch, tmp_path: pathlib.Path) -> None:
    code, found, err = batch(str(tmp_path))
    assert code == 1 and found == {} and 'has no files' in err
