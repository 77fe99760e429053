"""``designate-pool-manage config check`` against an NSD, a Knot and a PowerDNS; BIND is in ``test_config_check``."""

from __future__ import annotations

import pathlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from oslo_config import cfg

from designate_pool.cmd.manage import app as program
from designate_pool.model import Endpoint, Server, TsigKey
from designate_pool.storage.sql import migrate
from designate_pool.testing import opened
from testing.knot import Knotd
from testing.nsd import Nsd
from testing.pdns import PowerDns
from testing.processes import free_port

KEY = TsigKey('transfer.example.', 'hmac-sha256', 'dHJhbnNmZXIga2V5IGZvciB0ZXN0cyBvbmx5')
OTHER = 'YW5vdGhlciBrZXkgZm9yIHRlc3RzIG9ubHk='
PRIMARY = Endpoint('127.0.0.1', free_port())
MAKES: dict[str, type[Any]] = {'nsd': Nsd, 'knot': Knotd, 'pdns': PowerDns}
#: What is said of another secret, over the control channel or over DNS.
OTHER_SECRET = {
    'nsd': ('NSD has another secret or algorithm for the TSIG key transfer.example.',
            'the server has another secret for the key transfer.example. (BADSIG)'),
    'knot': ('transfer.example.: the server rejects the TSIG key: the server has another secret for '
             'the key transfer.example. (BADSIG)',),
    'pdns': ('PowerDNS has another secret for the TSIG key transfer.example',
             'the answer is not signed (NOTAUTH)'),
}
UNKNOWN_KEY = {
    'nsd': ('NSD has no TSIG key unknown.example.',
            'the server does not know the key unknown.example. by hmac-sha256 (BADKEY)'),
    'knot': ('has no key',),
    'pdns': ('no zone can be added', 'the answer is not signed (NOTAUTH)'),
}


@pytest.fixture(scope='module', params=MAKES)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    running = MAKES[request.param](tmp_path_factory.mktemp(request.param), keys=[KEY]).start()
    running.make = request.param
    yield running
    running.remove()


@pytest.fixture
def about(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> Callable[[Any, TsigKey], tuple[int, str]]:
    """The exit code of the check, and what it says of a server that has a section with this key."""
    database = f'sqlite:///{tmp_path}/pool.sqlite'
    migrate.upgrade(database)

    def check(server: Any, key: TsigKey) -> tuple[int, str]:
        # NSD's pattern names the key that it has.
        section = server.section(str(uuid.uuid4()), [PRIMARY], tsig_key=written(KEY))
        section = section.replace(written(KEY), written(key))
        path = tmp_path / 'pool.conf'
        path.touch(mode=0o600)  # there are secrets in it
        path.write_text(f'[database]\nconnection = {database}\n{section}')
        code = program.main(['--config-file', str(path), 'config', 'check'], cfg.ConfigOpts())
        printed = capsys.readouterr().out
        assert KEY.secret not in printed and OTHER not in printed
        return code, printed.partition('MiniDNS at')[0]

    return check


def test_in_good_order_and_nothing_is_left_there(server: Any, about: Callable[..., tuple[int, str]]) -> None:
    for _ in range(2):
        assert about(server, KEY) == (0, f'ok  {server.make}:127.0.0.1:{server.port}\n')
    with_zones = server.server([PRIMARY], tsig_key=KEY)
    assert listed(with_zones) == {}


def test_another_secret(server: Any, about: Callable[..., tuple[int, str]]) -> None:
    code, printed = about(server, TsigKey(KEY.name, KEY.algorithm, OTHER))
    assert code == 1
    found = [line.strip().removeprefix('error: ') for line in printed.splitlines() if ' error: ' in line]
    assert tuple(found) == OTHER_SECRET[server.make]
    assert listed(server.server([PRIMARY], tsig_key=KEY)) == {}


def test_a_key_that_it_does_not_know(server: Any, about: Callable[..., tuple[int, str]]) -> None:
    code, printed = about(server, TsigKey('unknown.example.', KEY.algorithm, KEY.secret))
    assert code == 1
    assert all(words in printed for words in UNKNOWN_KEY[server.make]), printed


def test_it_does_not_run(server: Any, about: Callable[..., tuple[int, str]]) -> None:
    server.stop()
    code, printed = about(server, KEY)
    server.start()
    assert code == 1
    assert 'the control channel does not answer' in printed and 'it does not answer DNS' in printed


def written(key: TsigKey) -> str:
    return f'{key.name}:{key.algorithm}:{key.secret}'


def listed(server: Server) -> dict[str, int | None]:
    with opened(server) as backend:
        found = backend.list_zones([])
    assert found.result.ok
    return dict(found.serials)
