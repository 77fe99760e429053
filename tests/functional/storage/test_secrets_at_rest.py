"""Secrets of TSIG keys that are encrypted in the database."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from designate_pool.cmd.manage import app as program
from designate_pool.errors import InvalidField
from designate_pool.model import KeyRole, KeyScope, SigningKey, StoredTsigKey, new_id, utcnow
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import tsigkeys as table
from designate_pool.storage.sql.secrets import SecretCipher
from designate_pool.storage.zones import tsigkeys
from testing.zones import EXAMPLE, insert_zone

Opened = Callable[..., Storage]
OLD, NEW, OTHER = (base64.urlsafe_b64encode(bytes([number]) * 32).decode() for number in (1, 2, 3))


@pytest.fixture
def opened(database: Storage) -> Iterator[Opened]:
    """The database, opened with these keys."""
    with contextlib.ExitStack() as stack:
        yield lambda *keys: stack.enter_context(contextlib.closing(
            Storage(url_of(database), secrets_keys=keys)))


def url_of(database: Storage) -> str:
    return database.engine.url.render_as_string(hide_password=False)


def add(storage: Storage, name: str, secret: str) -> StoredTsigKey:
    key = StoredTsigKey(new_id(), name, 'hmac-sha256', KeyScope.ZONE, new_id(), 1, utcnow(), utcnow())
    storage.run(tsigkeys.TSIGKEYS.write, key, {'secret': secret})
    return key


def revealed(storage: Storage) -> dict[str, str]:
    return {grant.key.name: grant.key.secret for grant in storage.read(tsigkeys.grants)}


def written(storage: Storage) -> dict[str, str]:
    return dict(storage.read(lambda tx: tx.execute(sa.select(table.c.name, table.c.secret)).all()))


def test_rows_in_clear_stay_readable_and_are_encrypted_by_the_rotation(
        opened: Opened, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture) -> None:
    plain = opened()
    for number in range(3):
        add(plain, f'clear{number}.', 'Y2xlYXI=')
    changed = add(opened(OLD), 'sealed.', 'c2VhbGVk')
    assert revealed(opened(OLD)) == {**{f'clear{number}.': 'Y2xlYXI=' for number in range(3)}, 'sealed.': 'c2VhbGVk'}
    assert 'c2VhbGVk' not in written(plain)['sealed.']
    opened(OLD).run(tsigkeys.TSIGKEYS.write, dataclasses.replace(changed, version=2), {'secret': 'Y2hhbmdlZA=='})
    assert revealed(opened(OLD))['sealed.'] == 'Y2hhbmdlZA=='
    before = revealed(opened(OLD))

    (tmp_path / 'keys').write_text(f'{NEW}\n{OLD}\n')
    config = tmp_path / 'pool.conf'
    url = url_of(plain).replace('$', '$$')
    config.write_text(f'[database]\nconnection = {url}\nsecrets_key_file = {tmp_path}/keys\n'
                      '[backend:fake:11111111-1111-4111-8111-111111111111]\nhost = 127.0.0.1\n')
    assert program.main(['--config-file', str(config), 'secrets', 'rotate'], cfg.ConfigOpts()) == 0
    assert capsys.readouterr().out == f'4 secrets encrypted with the first key of {tmp_path}/keys.\n'
    assert all(text.startswith('aes-256-gcm:') for text in written(plain).values())
    assert revealed(opened(NEW)) == before
    assert revealed(opened(OLD)) == revealed(plain) == {}
    for why in ('no key in [database] secrets_key_file here decrypts it',
                'it is encrypted, and [database] secrets_key_file is not set here'):
        for name in before:
            assert f'The secret of the key {name} cannot be read from the database: {why}.' in caplog.messages


def test_private_keys_of_zones_are_rotated_by_their_own_keys(
        opened: Opened, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    storage = opened()
    domain_id = storage.run(lambda tx: insert_zone(tx, EXAMPLE, name='signed.example.'))
    key = SigningKey(new_id(), KeyRole.CSK, 13, 1, b'\1')
    storage.run(zone_signing.add_keys, domain_id, [(key, SecretCipher([OLD]).seal('c2VjcmV0', key.id))], utcnow())
    (tmp_path / 'keys').write_text(f'{NEW}\n{OLD}\n')
    url = url_of(storage).replace('$', '$$')
    (tmp_path / 'pool.conf').write_text(f'[database]\nconnection = {url}\n[service:central]\nsigning_keys_file = '
                                        f'{tmp_path}/keys\n')
    assert program.main(['--config-file', f'{tmp_path}/pool.conf', 'secrets', 'rotate'], cfg.ConfigOpts()) == 0
    assert capsys.readouterr().out == f'1 private key encrypted with the first key of {tmp_path}/keys.\n'
    assert SecretCipher([NEW]).reveal(storage.read(zone_signing.private_of, [key.id])[key.id], key.id) == 'c2VjcmV0'


@pytest.mark.parametrize('text, said', [
    (None, 'cannot be read: No such file'), ('', 'contains no key'), ('c2hvcnQ=\n', 'key 1 in '),
    (f'{OLD}\n{OLD[:-2]}\n', 'key 2 in ')])
def test_a_key_file_that_cannot_be_used_is_named_and_not_shown(tmp_path: pathlib.Path, text: str | None, said: str,
                                                               capsys: pytest.CaptureFixture[str]) -> None:
    if text is not None:
        (tmp_path / 'keys').write_text(text)
    config = tmp_path / 'pool.conf'
    config.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/none\nsecrets_key_file = {tmp_path}/keys\n')
    assert program.main(['--config-file', str(config), 'secrets', 'rotate'], cfg.ConfigOpts()) == 1
    told = capsys.readouterr().err
    assert '[database] secrets_key_file: ' in told and said in told
    assert OLD not in told and not os.path.exists(tmp_path / 'none')


def test_nothing_is_rotated_without_keys(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / 'pool.conf'
    config.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/none\n')
    assert program.main(['--config-file', str(config), 'secrets', 'rotate'], cfg.ConfigOpts()) == 1
    assert 'secrets_key_file: it must be given' in capsys.readouterr().err


def test_a_secret_that_has_no_room_when_encrypted_is_refused(opened: Opened) -> None:
    add(opened(), 'long.', 'A' * 1024)
    with pytest.raises(InvalidField, match='too long to be kept encrypted'):
        add(opened(OLD), 'longer.', 'A' * 1024)
    assert list(revealed(opened())) == ['long.']


def test_an_error_of_the_database_does_not_tell_a_secret_in_clear(opened: Opened) -> None:
    key = SigningKey(new_id(), KeyRole.KSK, 13, 1, b'public')
    with pytest.raises(sa.exc.IntegrityError, match='INSERT INTO zone_keys') as caught:
        opened().run(zone_signing.add_keys, new_id(), [(key, 'Y2xlYXI=')], utcnow())
    assert 'Y2xlYXI=' not in str(caught.value)


def test_a_secret_in_the_place_of_another_or_cut_is_refused(opened: Opened) -> None:
    storage = opened(OLD)
    for name in ('one.', 'two.'):
        add(storage, name, 'c2FtZQ==')
    texts = written(storage)
    assert texts['one.'] != texts['two.'], 'the same secret is written differently each time'
    for wrong in (texts['two.'], texts['one.'][:-4], texts['one.'][:16], texts['one.'] + '!'):
        storage.run(lambda tx, wrong=wrong: tx.execute(
            table.update().where(table.c.name == 'one.').values(secret=wrong)) and None)
        assert list(revealed(storage)) == ['two.'], 'one bad secret takes none of the other keys'


def test_a_secret_that_cannot_be_rotated_is_named_and_stops_no_other(
        opened: Opened, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    storage = opened(OLD)
    lost, long = add(opened(OTHER), 'lost.', 'bG9zdA=='), add(opened(), 'long.', 'A' * 1024)
    for name in ('one.', 'two.'):
        add(storage, name, 'c2FtZQ==')
    before = written(storage)
    (tmp_path / 'keys').write_text(f'{NEW}\n{OLD}\n')
    url = url_of(storage).replace('$', '$$')
    (tmp_path / 'pool.conf').write_text(f'[database]\nconnection = {url}\nsecrets_key_file = {tmp_path}/keys\n')
    for _ in range(2):
        assert program.main(['--config-file', f'{tmp_path}/pool.conf', 'secrets', 'rotate'], cfg.ConfigOpts()) == 1
        said = capsys.readouterr()
        assert said.out == f'2 secrets encrypted with the first key of {tmp_path}/keys.\n'
        assert sorted(line.partition(': ')[0] for line in said.err.splitlines()) == sorted(
            f'tsigkeys {key.id}' for key in (lost, long))
        assert 'decrypts it' in said.err and 'too long to be kept encrypted' in said.err
    assert {name for name, text in written(storage).items() if text == before[name]} == {'lost.', 'long.'}
    assert revealed(opened(NEW)) == {'one.': 'c2FtZQ==', 'two.': 'c2FtZQ==', 'long.': 'A' * 1024}
