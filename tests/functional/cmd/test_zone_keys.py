"""Files with the private keys of zones, from and for other signers."""

from __future__ import annotations

import contextlib
import pathlib
import subprocess
import sys

import pytest
from cryptography.fernet import Fernet

from designate_pool.rpc.direct import Direct
from designate_pool.settings import SigningPolicy
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from testing.inline import Inline
from testing.stack import manage
from tests.fixtures import softhsm
from tests.fixtures.central import WHO, create, started
from tests.fixtures.softhsm import PIN, SoftHsm


def test_keys_go_from_files_to_files_and_only_their_owner_can_read_them(
        tmp_path: pathlib.Path) -> None:
    url, signing_keys = f'sqlite:///{tmp_path}/pool.sqlite', Fernet.generate_key().decode()
    migrate.upgrade(url)
    (tmp_path / 'signing.keys').write_text(signing_keys)
    config = tmp_path / 'pool.conf'
    config.write_text(f'[database]\nconnection = {url}\n[service:central]\n'
                      f'signing_keys_file = {tmp_path}/signing.keys\n'
                      '[backend:fake:11111111-1111-4111-8111-111111111111]\nhost = 127.0.0.1\n')
    with contextlib.closing(Storage(url)) as storage, started(
            storage, Direct(Inline().workers(1, 'casts'))) as central:
        central.delete_domain(WHO, create(central, 'example.com.').id)  # which takes its time
        create(central, 'example.com.')
        create(central, 'example.edu.')

    def run(*words: str) -> tuple[int, str]:
        code, printed, errors = manage(config, 'dnssec', *words)
        return code, printed + errors

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
                       (('export', 'example.*', str(out)), 'no zone'),
                       (('export', 'example.edu', str(out)), 'The zone example.edu. is not signed here.'),
                       (('import', 'example.com', f'{tmp_path}/none'), 'cannot be read'),
                       (('import', 'example.com', *files), 'already')):
        code, text = run(*words)
        assert code == 1 and why in text, text
    config.write_text(f'{config.read_text()}[service:pool_manager]\npool_name = other\n')
    code, text = run('resume', 'example.com')
    assert code == 1 and 'run it with that of default' in text, text


def test_keys_in_a_token_stay_there_and_a_token_that_cannot_be_used_is_found(
        tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, config = f'sqlite:///{tmp_path}/pool.sqlite', tmp_path / 'pool.conf'
    migrate.upgrade(url)
    (tmp_path / 'pin').write_text(PIN)

    def run(*words: str, **options: str) -> str:
        named = SoftHsm.settings(pkcs11_pin=f'file:{tmp_path}/pin', pkcs11_keys='all') | options
        config.write_text('\n'.join((f'[database]\nconnection = {url}\n[service:central]', *(
            f'{name} = {value}' for name, value in named.items() if value),
            '[backend:fake:11111111-1111-4111-8111-111111111111]', 'host = 127.0.0.1\n')))
        return ''.join(manage(config, *words)[1:])

    with softhsm.new(tmp_path), contextlib.closing(Storage(url)) as storage:
        with started(storage, Direct(Inline().workers(1, 'casts')), **SoftHsm.settings(
                pkcs11_keys='all', signing_policies={'default': SigningPolicy()})) as central:
            central.dnssec.enable(WHO, create(central, 'example.com.').id)
        text = run('dnssec', 'export', 'example.com.', str(tmp_path))
        assert 'cannot be exported' in text and text.count('pkcs11:token=zone%20keys;id=') == 2, text
        found = run('config', 'check')
        assert 'PKCS #11' not in found and '[service:central] pkcs11_pin' in found
        (tmp_path / 'pin').chmod(0o600)
        found = run('config', 'check')
        assert '[service:central] pkcs11_pin' not in found
        assert '[service:central] pkcs11_pin' in run('config', 'check', pkcs11_pin=PIN)  # in a file that all may read
        for options, why in (({'pkcs11_token': 'none'}, 'NoSuchToken'), ({'pkcs11_module': '/none.so'}, '/none.so'),
                             ({'pkcs11_token': ''}, 'pkcs11_token: it must be given with pkcs11_module')):
            assert why in run('config', 'check', **options)
        (tmp_path / 'pin').write_text('0000')
        assert 'PinIncorrect' in run('config', 'check')
    monkeypatch.setitem(sys.modules, 'pkcs11', None)
    for words in (('config', 'check'), ('dnssec', 'export', 'example.com.', str(tmp_path))):
        assert "pip install 'designate-pool[pkcs11]'" in run(*words)
