"""A program that is forked by a process that has imported it does as one that was executed."""

from __future__ import annotations

import pathlib
import signal

import pytest

from testing import warm
from testing.processes import wait_until


@pytest.mark.parametrize('words', [
    ('designate_pool.cli', '--help'),
    ('designate_pool.cli', '--no-such-option'),
    ('designate_pool.cli', '--url', 'http://127.0.0.1:9', 'zone', 'list'),
    ('designate_pool.cmd.programs.nameserver', '--secret-file', 'missing'),
    ('designate_pool.cmd.manage.app', '--config-file', 'own.conf', 'config', 'check', '--offline'),
], ids=' '.join)
def test_it_prints_the_same_and_ends_the_same(words: tuple[str, ...], tmp_path: pathlib.Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / 'own.conf').write_text('[service:api]\nlisten = nowhere\n')
    found = []
    for enabled in (False, True):
        monkeypatch.setattr(warm, 'enabled', enabled)
        done = warm.run(*words, cwd=tmp_path)
        # How deep the traceback goes differs.
        found.append((done.returncode, done.stdout, done.stderr.splitlines()[-1:]))
    assert found[0] == found[1]


@pytest.mark.parametrize('number, code', [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)])
def test_it_ends_by_a_signal(number: int, code: int, tmp_path: pathlib.Path) -> None:
    (tmp_path / 'secret').write_text('only for tests')
    program = warm.Program('designate_pool.cmd.programs.nameserver', ['--secret-file', str(tmp_path / 'secret')],
                           tmp_path / 'log')
    program.start()
    assert program.popen is not None and program.popen.returncode is None
    wait_until(lambda: program.running() and '"listen"' in program.tail(), 'it is ready')
    assert program.stop(number) == code
    assert program.popen.poll() == code
