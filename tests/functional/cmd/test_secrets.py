"""Secrets are read anew with the configuration, and are found nowhere but where they were put."""

from __future__ import annotations

import base64
import os
import pathlib
import secrets
import signal
import uuid
from collections.abc import Callable

import pytest

from designate_pool.model import TsigKey
from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures import nameservers
from tests.fixtures.nameservers import SecondaryServer

KEY = TsigKey('transfer.example.', 'hmac-sha256', base64.b64encode(b'a key for these tests, and no other').decode())


def test_a_new_secret_is_read_with_the_configuration_and_none_is_ever_shown(
        secondary_server: Callable[..., SecondaryServer], tmp_path: pathlib.Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    """The control secret is in a file, and the TSIG key in the environment of the program."""
    control_secret, wrong_secret = secrets.token_hex(16), secrets.token_hex(16)
    monkeypatch.setattr(nameservers, 'SECRET', control_secret)
    monkeypatch.setenv('POOL_TSIG_KEY', f'{KEY.name}:{KEY.algorithm}:{KEY.secret}')
    secret_file = tmp_path / 'control.secret'
    secret_file.touch(0o600)
    secret_file.write_text(control_secret + '\n')
    server, server_id = secondary_server(keys=[KEY]), str(uuid.uuid4())
    section = server.section(server_id, control_secret=f'file:{secret_file}', call_timeout=2,
                             tsig_key='env:POOL_TSIG_KEY')
    # The fixture's section has the secret itself, too.
    section = section.replace(f'control_secret = {control_secret}\n', '')
    stack, shown = Stack(tmp_path / 'stack', [section], f'sqlite:///{tmp_path}/pool.sqlite'), []
    stack.config.write_text(stack.config.read_text().replace('[DEFAULT]', '[DEFAULT]\ndebug = true', 1))
    stack.executed = True
    with stack:
        zone = stack.create_zone('example.com.')['id']
        stack.wait_for(zone)

        secret_file.write_text(wrong_secret)
        os.kill(stack.processes['all'].pid, signal.SIGHUP)
        wait_until(lambda: 'the configuration was read again' in stack.logs(), 'it is read')
        late = stack.create_zone('late.example.com.')['id']
        stack.wait_for(late, 'ERROR')
        for words in (('zone', 'explain', 'late.example.com.'), ('server', 'list'), ('server', 'show', server_id[:8]),
                      ('server', 'show', server_id[:8], '-f', 'json'), ('zone', 'show', 'late.example.com.')):
            shown.append(stack.command(*words))
        assert 'secret' in shown[0], 'why it failed is said'
        wait_until(lambda: 'DEBUG' in stack.logs(), 'it was tried again, which is told at DEBUG')
        check = stack._run('designate_pool.cmd.manage.app', '--config-file', str(stack.config), 'config', 'check',
                           code=1)
        shown += [check.stdout, check.stderr]

        secret_file.write_text(control_secret)
        assert 'joined' in stack.command('server', 'reload')
        stack.wait_for(late)
        assert server.serial('late.example.com.') == stack.zone(late)['serial']

        arguments = (pathlib.Path('/proc') / str(stack.processes['all'].pid) / 'cmdline').read_bytes().decode()
        logs = stack.processes['all'].log.read_text()
        assert 'DEBUG' in logs
        for secret in (control_secret, wrong_secret, KEY.secret):
            assert secret not in logs
            assert secret not in arguments
            assert all(secret not in text for text in shown)
        kept = list((stack.folder).glob('servers-of-*.json'))
        assert [path.stat().st_mode & 0o777 for path in kept] == [0o600]
