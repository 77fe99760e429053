"""Which concurrency, known before anything is imported."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from designate_pool.config import concurrency_choice


@pytest.mark.parametrize('word', ['eventlet', 'threading'])
def test_the_word_of_the_file(tmp_path: pathlib.Path, word: str) -> None:
    path = tmp_path / 'x.conf'
    path.write_text(f'[DEFAULT]\nconcurrency = {word}\ntransport_url = fake://\n')
    for argv in (['--config-file', str(path)], ['--debug', f'--config-file={path}', 'serve']):
        assert concurrency_choice.concurrency(argv) == word
    assert concurrency_choice.concurrency(['--config-dir', str(tmp_path)]) == word


def test_what_is_wrong_is_left_for_the_loading_to_tell(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'x.conf'
    for text in ('[DEFAULT]\nconcurrency = asyncio\n', 'no section\n'):
        path.write_text(text)
        assert concurrency_choice.concurrency(['--config-file', str(path)]) == 'eventlet'
    assert concurrency_choice.concurrency(['--config-file', str(tmp_path / 'none')]) == 'eventlet'


def test_asking_does_not_import_what_eventlet_must_patch_first() -> None:
    code = ('import sys; from designate_pool.config import concurrency_choice; concurrency_choice.concurrency([]); '
            'sys.exit(bool({"eventlet", "oslo_log.log", "oslo_messaging", "sqlalchemy"} & sys.modules.keys()))')
    assert subprocess.run([sys.executable, '-c', code]).returncode == 0


def test_the_files_may_stand_anywhere_on_the_command_line() -> None:
    assert concurrency_choice.files_first(['database', '--config-file', 'a', 'upgrade', '--config-dir=b', '-x']) == [
        '--config-file=a', '--config-dir=b', 'database', 'upgrade', '-x']
