"""``designate-pool-manage token``, and what ``config check`` says about who may use the API."""

from __future__ import annotations

import functools
import json
import os
import pathlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from oslo_config import cfg

from designate_pool.api.auth import token_file
from designate_pool.cmd.manage import api_tokens
from designate_pool.config import load
from testing import stack

Manage = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / 'tokens'


@pytest.fixture
def manage(tmp_path: pathlib.Path, file: pathlib.Path) -> Manage:
    """Run it; its exit code, what it printed, and what it said of errors."""
    path = tmp_path / 'pool.conf'
    path.write_text(f'[service:api]\nauth = token\ntokens_file = {file}\n')
    return functools.partial(stack.manage, path, 'token')


def test_a_token_is_shown_once_and_its_digest_is_kept(manage: Manage, file: pathlib.Path) -> None:
    code, printed, _ = manage('create', 'deploy', '--project', 'shop', '--role', 'member', '--expires', '2999-01-31')
    assert code == 0
    secret = printed.strip()
    assert secret.startswith('dpt_') and len(secret) >= 40
    assert secret not in file.read_text() and token_file.digest(secret) in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    [token] = token_file.read(str(file))
    assert (token.name, token.project, token.roles) == ('deploy', 'shop', ('member',))
    for words in (('list',), ('list', '--json')):
        shown = manage(*words)[1]
        assert 'deploy' in shown and '2999-01-31T00:00:00' in shown
        assert secret not in shown and token.digest not in shown
    assert json.loads(manage('list', '--json')[1])[0]['expired'] is False


def test_one_more_then_the_first_is_revoked(manage: Manage, file: pathlib.Path) -> None:
    manage('create', 'one', '--project', 'shop', '--role', 'reader', 'operator')
    file.write_text(file.read_text() + '# a remark of an operator\n')
    file.chmod(0o640)
    assert manage('create', 'two', '--project', 'shop', '--role', 'reader')[0] == 0
    assert manage('revoke', 'one')[0] == 0
    assert [token.name for token in token_file.read(str(file))] == ['two']
    assert 'a remark' in file.read_text() and file.stat().st_mode & 0o777 == 0o640
    assert manage('revoke', 'one') == (1, '', f'There is no token one in {file}.\n')
    assert [path.name for path in file.parent.glob('.tokens-*')] == []


@pytest.mark.parametrize(('words', 'why'), [
    (('one', '--project', 'shop', '--role', 'reader'), 'a token one already'),
    (('t w', '--project', 'shop', '--role', 'reader'), 'the name must be'),
    (('two', '--project', 'a/b', '--role', 'reader'), 'the project must be'),
    (('two', '--project', 'shop', '--role', 'Reader'), 'the roles must be'),
    (('two', '--project', 'shop', '--role', 'reader', '--expires', 'soon'), 'ISO 8601'),
    (('two', '--project', 'shop', '--role', 'reader', '--expires', '2020-01-01'), 'in the past'),
])
def test_what_cannot_be_made(manage: Manage, file: pathlib.Path, words: tuple[str, ...], why: str) -> None:
    manage('create', 'one', '--project', 'shop', '--role', 'reader')
    before = file.read_text()
    code, printed, errors = manage('create', *words)
    assert (code, printed) == (1, '') and why in errors
    assert file.read_text() == before


def test_a_wrong_file_is_left_alone(manage: Manage, file: pathlib.Path) -> None:
    file.write_text('what is this\n')
    code, _, errors = manage('create', 'one', '--project', 'shop', '--role', 'reader')
    assert code == 1 and 'line 1: it has 3 fields' in errors
    assert file.read_text() == 'what is this\n'


def test_a_file_that_everybody_can_read_is_warned_of(manage: Manage, file: pathlib.Path) -> None:
    manage('create', 'one', '--project', 'shop', '--role', 'reader')
    file.chmod(0o644)
    assert f'chmod o= {file}' in manage('create', 'two', '--project', 'shop', '--role', 'reader')[2]


def test_without_a_file_in_the_configuration(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'pool.conf').write_text('')
    code, _, errors = stack.manage(tmp_path / 'pool.conf', 'token', 'list')
    assert code == 1 and '[service:api] tokens_file: it must be given' in errors


def test_many_at_once_lose_none(file: pathlib.Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: api_tokens.create(str(file), f'n{number}', 'shop', ['reader'], None),
                         range(24)))
    assert {token.name for token in token_file.read(str(file))} == {f'n{number}' for number in range(24)}


def findings(folder: pathlib.Path, text: str) -> list[str]:
    path = folder / 'api.conf'
    path.write_text(text)
    conf = cfg.ConfigOpts()
    load.load(conf, [f'--config-file={path}'], config_files=[])
    return [f'{"error" if each.serious else "warning"}: {each.what} -> {each.advice}'
            for each in api_tokens.check_access(load.read_settings(conf).api, conf)]


class TestCheck:
    def test_nothing_to_say(self, tmp_path: pathlib.Path, file: pathlib.Path, manage: Manage) -> None:
        manage('create', 'one', '--project', 'shop', '--role', 'reader')
        assert findings(tmp_path, '') == []
        assert findings(tmp_path, f'[service:api]\nauth = token\ntokens_file = {file}\n') == []

    def test_nobody_is_asked_on_an_address_that_others_reach(self, tmp_path: pathlib.Path) -> None:
        [found] = findings(tmp_path, '[service:api]\nlisten = 192.0.2.1\nauth = noauth\nallow_remote = true\n')
        assert found.startswith('warning: ') and 'everybody who reaches 192.0.2.1:9001 may change every zone' in found

    def test_tokens_in_the_clear(self, tmp_path: pathlib.Path) -> None:
        [found] = findings(tmp_path, '[service:api]\nlisten = 192.0.2.1\nauth = keystone\n')
        assert found.startswith('warning: ') and 'unencrypted' in found

    def test_the_file_of_tokens(self, tmp_path: pathlib.Path, file: pathlib.Path) -> None:
        text = f'[service:api]\nauth = token\ntokens_file = {file}\n'
        [found] = findings(tmp_path, text)
        assert found.startswith('error: ') and 'No such file' in found and 'token create' in found
        file.write_text('what\n')
        [found] = findings(tmp_path, text)
        assert found.startswith('error: ') and 'line 1' in found
        file.write_text(f'old shop reader sha256:{"a" * 64} 2020-01-01\n')
        os.chmod(file, 0o644)
        open_, over, none = findings(tmp_path, text)
        assert 'every user of this host can read' in open_ and 'have expired: old' in over and 'no token' in none

    def test_the_policy(self, tmp_path: pathlib.Path) -> None:
        (tmp_path / 'policy.yaml').write_text('list_zones: "rule:nowhere"\n')
        [found] = findings(tmp_path, f'[oslo_policy]\npolicy_file = {tmp_path}/policy.yaml\n')
        assert found.startswith('error: [oslo_policy] policy_file: ')
