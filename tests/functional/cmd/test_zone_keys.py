"""Files with the private keys of zones, from and for other signers."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess

import pytest
from cryptography.fernet import Fernet
from oslo_config import cfg

from designate_pool.cmd.manage import app as program
from designate_pool.rpc.direct import Direct
from designate_pool.runtime import Inline
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from tests.fixtures.central import create, started


def test_keys_go_from_files_to_files_and_only_their_owner_can_read_them(
        tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, signing_keys = f'sqlite:///{tmp_path}/pool.sqlite', Fernet.generate_key().decode()
    migrate.upgrade(url)
    (tmp_path / 'signing.keys').write_text(signing_keys)
    config = tmp_path / 'pool.conf'
    config.write_text(f'[database]\nconnection = {url}\n[service:central]\n'
                      f'signing_keys_file = {tmp_path}/signing.keys\n'
                      '[backend:fake:11111111-1111-4111-8111-111111111111]\nhost = 127.0.0.1\n')
    with contextlib.closing(Storage(url)) as storage, started(
            storage, Direct(Inline().workers(1, 'casts'))) as central:
        create(central, 'example.com.')

    def run(*words: str) -> tuple[int, str]:
        code = program.main(['--config-file', str(config), 'dnssec', *words], cfg.ConfigOpts())
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    made = [subprocess.run(['dnssec-keygen', '-q', '-K', tmp_path, '-a', 'ECDSAP256SHA256', *flags, 'example.com'],
                           capture_output=True, text=True, timeout=60, check=True).stdout.strip()
            for flags in (['-f', 'KSK'], [])]
    files = [f'{tmp_path / name}.private' for name in made]
    code, text = run('import', 'example.com', *files)
    assert code == 0 and text.startswith('example.com. secure: KSK ') and text.count(' active') == 2, text
    out = tmp_path / 'out'
    out.mkdir()
    code, text = run('export', 'Example.COM.', str(out))
    assert code == 0 and sorted(text.split()) == sorted(f'{out}/{name}.private' for name in made), text
    for name in made:
        assert (out / f'{name}.private').stat().st_mode & 0o777 == 0o600
        # As BIND wrote it, but for the times.
        lines = [line for line in (tmp_path / f'{name}.private').read_text().splitlines()
                 if line[:3] in ('Alg', 'Pri')]
        assert set(lines) <= set((out / f'{name}.private').read_text().splitlines())
    for words, why in ((('export', 'example.com', str(out)), 'File exists'),
                       (('export', 'example.org', '.'), 'no zone'),
                       (('import', 'example.com', f'{tmp_path}/none'), 'cannot be read'),
                       (('import', 'example.com', *files), 'already')):
        code, text = run(*words)
        assert code == 1 and why in text, text
