"""``designate-pool-manage``."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest
from oslo_config import cfg

from designate_pool.cmd.manage import app as program
from testing.databases import upgraded_sqlite

#: Runs a command; its exit code, what it printed, and what it said of errors.
Manage = Callable[..., tuple[int, str, str]]
SERVER = '[backend:fake:11111111-1111-4111-8111-111111111111]\nhost = 127.0.0.1\n'


@pytest.fixture
def manage(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> Manage:
    """Run it with the configuration in ``pool.conf``."""
    path = tmp_path / 'pool.conf'
    path.write_text(f'[DEFAULT]\nstate_path = {tmp_path}/state\n{SERVER}')

    def manage(*words: str) -> tuple[int, str, str]:
        try:
            code = program.main([*words, '--config-file', str(path)], cfg.ConfigOpts())
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return manage


@pytest.mark.parametrize(('text', 'mistakes'), [
    ('[service:pool_manager]\nthreshold_percentage = 0\npoll_timeout = soon\n', [
        'The configuration has mistakes (3):', '[service:pool_manager] threshold_percentage: ',
        '[service:pool_manager] poll_timeout: ', '[backend:<driver>:<uuid>] the pool has no server']),
    (SERVER.replace('fake', 'bind9') + 'view = a view\n', [
        '[backend:bind9:11111111-1111-4111-8111-111111111111] view: ']),
    (SERVER + 'tsig_key = pool:hmac-sha256-128:c2VjcmV0\n', [
        '[backend:fake:11111111-1111-4111-8111-111111111111] tsig_key: ']),
    (SERVER + 'tsig_key = pool:hmac-sha256:c2VjcmV0\n' + SERVER.replace('1111]', '1112]').replace('0.0.1', '0.0.2')
     + 'tsig_key = pool:hmac-sha256:b3RoZXI=\n', [
         '[service:minidns] it cannot serve these servers: pool. has another secret']),
], ids=['options', 'of drivers', 'a key that servers cannot work with', 'two keys of one name'])
def test_config_check_names_the_mistakes(manage: Manage, tmp_path: pathlib.Path, text: str,
                                         mistakes: list[str]) -> None:
    (tmp_path / 'pool.conf').write_text(text)
    code, printed, errors = manage('config', 'check')
    assert (code, printed) == (1, '')
    assert [mistake for mistake in mistakes if mistake not in errors] == []
    assert 'c2VjcmV0' not in errors and 'b3RoZXI' not in errors


def test_the_options_of_servers_are_printed(manage: Manage) -> None:
    code, printed, _ = manage('config', 'options', 'pdns')
    assert code == 0
    assert 'call_timeout (float): 10.0' in printed and 'api_key (str): required' in printed
    assert 'rndc_port (port): 953' in manage('config', 'options')[1] and 'rndc_port' not in printed
    code, _, errors = manage('config', 'options', 'bnid9')
    assert code == 1 and "'bnid9' is unknown; known are bind9, " in errors


def test_nothing_is_said_of_libraries(tmp_path: pathlib.Path) -> None:
    """In a process of its own, since a library warns once, as it is imported."""
    database = upgraded_sqlite(tmp_path / 'pool.sqlite')
    (tmp_path / 'pool.conf').write_text(f'[database]\nconnection = {database}\n{SERVER}')
    done = subprocess.run([sys.executable, '-m', 'designate_pool.cmd.manage.app', '--config-file',
                           str(tmp_path / 'pool.conf'), 'pool', 'show', 'default'], text=True, capture_output=True,
                          timeout=120)
    assert done.returncode == 0 and 'deprecat' not in done.stderr.lower()


def test_a_database_up_down_and_up_again(manage: Manage, tmp_path: pathlib.Path) -> None:
    assert manage('database', 'version')[1].startswith('The database is at None, this program needs ')
    first = manage('database', 'upgrade')
    assert first[0] == 0 and first[2] == ''
    assert manage('database', 'upgrade') == first
    assert manage('database', 'downgrade', 'base') == (0, 'The database is at None.\n', '')
    assert manage('database', 'upgrade') == first


def test_a_revision_that_does_not_exist(manage: Manage) -> None:
    code, _, errors = manage('database', 'upgrade', '9999')
    assert code == 1 and '9999' in errors and 'Traceback' not in errors


def test_the_pool_s_name_servers(manage: Manage) -> None:
    assert "run 'designate-pool-manage database upgrade'" in manage('pool', 'show')[2]
    manage('database', 'upgrade')
    assert 'name servers: \n' in manage('pool', 'show')[1]
    code, _, errors = manage('pool', 'set', 'default', '--description', 'ours',
                             '--name-server', 'ns1.example.com.', 'ns2.example.com.')
    assert code == 0, errors
    for name in ((), ('default',)):
        printed = manage('pool', 'show', *name)[1]
        assert 'name servers: ns1.example.com. ns2.example.com.\n' in printed and 'description:  ours\n' in printed


def test_a_pool_that_does_not_exist_and_a_name_that_is_none(manage: Manage) -> None:
    manage('database', 'upgrade')
    for name in ('gold', 'd*'):
        assert manage('pool', 'show', name) == (1, '', f'There is no pool {name}.\n')
    code, _, errors = manage('pool', 'set', 'default', '--name-server', 'a..example.com.')
    assert code == 1 and errors.startswith('name_servers')


def test_pools_are_made_changed_and_deleted(manage: Manage) -> None:
    manage('database', 'upgrade')
    code, printed, errors = manage('pool', 'create', 'silver', '--name-server', 'ns.silver.example.')
    assert (code, errors) == (0, '') and 'name:         silver\n' in printed and 'ns.silver.example.\n' in printed
    assert manage('pool', 'create', 'silver') == (1, '', 'The pool silver exists already.\n')
    assert manage('pool', 'create', 'two/words')[2].startswith('name: may hold letters')
    assert 'also notify:  192.0.2.53:53\n' in manage('pool', 'set', 'silver', '--also-notify', '192.0.2.53:53')[1]
    assert [line.split()[0] for line in manage('pool', 'list')[1].splitlines()] == ['default', 'silver']
    assert manage('pool', 'delete', 'silver') == (0, '', '')
    assert [line.split()[0] for line in manage('pool', 'list')[1].splitlines()] == ['default']
