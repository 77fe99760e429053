"""One run of ``designate-pool-sync``, and how it ends."""

from __future__ import annotations

import pathlib

import pytest

from testing import warm

CONFIG = '''
providers:
  files: {class: zonefile, directory: zones, file_extension: .zone, check_origin: false}
  out: {class: octodns_bind.ZoneFileProvider, directory: out, default_ttl: 60}
zones:
  example.com.: {sources: [files], targets: [out]}
'''


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / 'sync.yaml').write_text(CONFIG)
    (tmp_path / 'zones').mkdir()
    (tmp_path / 'zones' / 'example.com.zone').write_text('@ 300 NS ns.example.net.\nwww 300 A 192.0.2.1\n')
    (tmp_path / 'out').mkdir()
    return tmp_path


def run(folder: pathlib.Path) -> tuple[int, str]:
    """Exit code and messages."""
    done = warm.run('designate_pool.cmd.programs.sync', '--config', 'sync.yaml', '--once', cwd=folder)
    return done.returncode, done.stderr


def test_once_is_one_run_that_ends_with_0_and_so_does_the_second(folder: pathlib.Path) -> None:
    """E-12."""
    for _ in range(2):
        code, messages = run(folder)
        assert code == 0, messages
        assert '192.0.2.1' in (folder / 'out' / 'example.com.').read_text()


def test_what_fails_ends_it_with_another_code(folder: pathlib.Path) -> None:
    """E-12: a source that cannot be read, a configuration that is wrong; and well again."""
    source = folder / 'zones' / 'example.com.zone'
    good = source.read_text()
    source.write_text('www A x\n')
    code, messages = run(folder)
    assert code == 1 and 'line 1' in messages and 'Traceback' not in messages
    assert not (folder / 'out' / 'example.com.').exists()
    (folder / 'sync.yaml').write_text(CONFIG.replace('[out]', '[nowhere]'))
    code, messages = run(folder)
    assert code == 1 and 'there is no provider nowhere' in messages and 'Traceback' not in messages
    (folder / 'sync.yaml').write_text(CONFIG)
    source.write_text(good)
    assert run(folder)[0] == 0
