"""``designate-pool-manage``."""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator

import pytest
import sqlalchemy as sa

from designate_pool import backends
from designate_pool.backends.base import Backend
from designate_pool.cmd.manage import config_check
from designate_pool.cmd.manage.config_check import ConfigReport
from designate_pool.concurrency import Runtime
from designate_pool.model import Endpoint, Finding, Pool, Server, new_id, utcnow
from designate_pool.runtime import Threads
from designate_pool.settings import PoolManagerSettings
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains
from designate_pool.storage.zones import pools
from testing import stack
from testing.databases import upgraded_sqlite
from testing.inline import Inline
from testing.zones import insert_zone
from tests.fixtures.answering import Scripted, soa_answer

#: Runs a command; its exit code, what it printed, and what it said of errors.
Manage = Callable[..., tuple[int, str, str]]
SERVER = '[backend:fake:11111111-1111-4111-8111-111111111111]\nhost = 127.0.0.1\n'


@pytest.fixture
def manage(tmp_path: pathlib.Path) -> Manage:
    """Run it with the configuration in ``pool.conf``."""
    path = tmp_path / 'pool.conf'
    path.write_text(f'[DEFAULT]\nstate_path = {tmp_path}/state\n{SERVER}')
    return functools.partial(stack.manage, path)


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


Check = Callable[..., ConfigReport]


@pytest.fixture
def answering() -> Iterator[Scripted]:
    """Answers every question over DNS, as servers and as MiniDNS."""
    server = Scripted(lambda query, over_tcp: [soa_answer(query, 0, rcode=5)])
    yield server
    server.close()


@pytest.fixture
def check(tmp_path: pathlib.Path, answering: Scripted) -> Check:
    """Check a pool of one ``fake`` for each of the dicts of options."""
    url = upgraded_sqlite(tmp_path / 'pool.sqlite')

    def check(*options: dict[str, str], runtime: Runtime | None = None, call_timeout: float = 5.0, database: str = url,
              about_files: tuple[Finding, ...] = (), pool: str = 'default',
              manager: PoolManagerSettings = PoolManagerSettings(poll_timeout=5.0)) -> ConfigReport:
        servers = tuple(Server(new_id(), 'fake', answering.host, answering.port, call_timeout=call_timeout,
                               primaries=(Endpoint(answering.host, answering.port),), options=each)
                        for each in options)
        drivers: dict[str, Backend] = {server.id: backends.build(server) for server in servers}
        return config_check.check(Pool(pool, servers=servers), drivers, list(about_files), database, manager,
                                  runtime or Threads())

    return check


def test_the_trouble_of_one_server_is_told_beside_the_health_of_another(check: Check) -> None:
    report = check({}, {'on_create': 'refuse'}, runtime=Inline())
    assert not report.ok
    fine, refusing = report.servers
    assert fine.findings == ()
    assert 'no zone can be added' in refusing.findings[0].what
    first, what, advice = refusing.text().splitlines()
    assert first == f'{refusing.name}:' and what.startswith('  error: no zone') and advice.startswith('    -> ')


def test_a_driver_that_keeps_no_deadline_is_not_waited_for(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def wait_for_the_end(self: Backend, names: Collection[str]) -> list[Finding]:
        ended.wait(60)
        return []

    monkeypatch.setattr(backends.driver_class('fake'), 'check', wait_for_the_end)
    try:
        report = check({}, call_timeout=0.1)
    finally:
        ended.set()
    assert 'has not ended within' in report.servers[0].findings[0].what and not report.ok


def test_the_drivers_do_not_log_what_is_told(check: Check, caplog: pytest.LogCaptureFixture) -> None:
    check({'on_ping': 'unreachable'})
    assert [record for record in caplog.records if record.name.startswith('designate_pool')] == []


def test_a_pool_that_is_not_in_the_database(check: Check, tmp_path: pathlib.Path) -> None:
    url = upgraded_sqlite(tmp_path / 'pool.sqlite')
    with contextlib.closing(Storage(url)) as storage:
        for name in ('gold', 'silver'):
            storage.run(pools.insert, Pool(name, new_id()), utcnow())
    assert check({}, pool='silver').ok
    report = check({}, pool='sliver')
    assert not report.ok
    assert report.database.findings == (Finding(
        'there is no pool sliver (there are: default, gold, silver)',
        "correct [service:pool_manager] pool_name, or run 'designate-pool-manage pool create sliver'"),)


def test_signed_zones_that_are_not_compared_with_servers(check: Check, tmp_path: pathlib.Path) -> None:
    never = PoolManagerSettings(poll_timeout=5.0, contents_audit_interval=0)
    with contextlib.closing(Storage(upgraded_sqlite(tmp_path / 'pool.sqlite'))) as storage:
        domain_id = storage.run(insert_zone)
        assert check({}, manager=never).database.findings == ()
        storage.run(lambda tx: tx.execute(sa.update(domains).where(domains.c.id == domain_id).values(
            is_signed=True)).close())
    assert check({}).database.findings == ()
    report = check({}, manager=never)
    (finding,) = report.database.findings
    assert report.ok and 'such as example.com., and contents_audit_interval is 0' in finding.what


def test_a_database_that_is_not_there_yet_is_not_made(check: Check, tmp_path: pathlib.Path) -> None:
    report = check({}, database=f'sqlite:///{tmp_path}/none/new.sqlite')
    assert report.ok and 'database upgrade' in report.database.findings[0].advice
    report = check({}, database=f'sqlite:///{tmp_path}/new.sqlite')
    assert report.ok and len(report.database.findings) == 1 and not os.path.exists(tmp_path / 'new.sqlite')


def test_a_database_at_another_revision(check: Check, tmp_path: pathlib.Path) -> None:
    url = f'sqlite:///{tmp_path}/old.sqlite'
    migrate.upgrade(url)
    migrate.downgrade(url, '-1')
    report = check({}, database=url)
    assert report.ok
    assert [migrate.head() in finding.what for finding in report.database.findings] == [True]
    migrate.upgrade(url)
    assert check({}, database=url).database.findings == ()


@pytest.mark.parametrize('url', ['mysql://pool:hush@127.0.0.1:1/pool', 'postgresql://pool:hush@127.0.0.1:1/pool',
                                 'oracle://pool:hush@127.0.0.1:1/pool'])
def test_a_database_that_cannot_be_used(check: Check, url: str) -> None:
    report = check({}, database=url, call_timeout=0.2)
    assert not report.ok
    (finding,) = report.database.findings
    assert 'it cannot be used: ' in finding.what and 'hush' not in report.text() and '\n' not in finding.what
