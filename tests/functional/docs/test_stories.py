"""The stories of the page on the architecture: what runs passes the functions that the page names, in their order."""

from __future__ import annotations

import contextlib
import pathlib
import sys
import threading
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, ClassVar

import dns.query
import dns.zone
import pytest
import requests
from oslo_config import cfg

from designate_pool import backends
from designate_pool.backends.records import RecordBackend
from designate_pool.cmd.compose.services import SERVICES, ServiceParts
from designate_pool.config import load, pools
from designate_pool.model import Endpoint, new_id
from designate_pool.nameserver.server import NameServer
from designate_pool.planner.targets.fake import FakeProvider
from designate_pool.rpc.direct import Direct
from designate_pool.runtime import Threads
from designate_pool.storage.sql.database import Storage
from testing.databases import upgraded_sqlite
from testing.processes import free_port, wait_until
from tests.fixtures.contributor_pages import resolve, story

SECRET = 'only for tests'


class Trace:
    """Which of some functions were called, in order, in any thread that was started meanwhile.

    :param names: as the page has them
    """

    def __init__(self, names: list[str]) -> None:
        self._names: dict[CodeType, str] = {resolve(name).__code__: name for name in names}
        self.calls: list[str] = []

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == 'call' and frame.f_code in self._names:
            self.calls.append(self._names[frame.f_code])

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def missed(self, names: list[str]) -> str | None:
        """The first of *names* that was not called after those before it, whatever was called between them."""
        calls = iter(list(self.calls))
        return next((name for name in names if name not in calls), None)


class Recorded(RecordBackend):
    """A simulated server that is fed by records.

    :cvar made: its provider
    """

    made: ClassVar[FakeProvider]

    def _new_provider(self) -> FakeProvider:
        type(self).made = FakeProvider(self.server.label)
        return self.made


class OneProcess:
    """All services of a pool with one server, in this process, on native threads.

    :param is_fed: whether the server is fed by records
    """

    def __init__(self, folder: pathlib.Path, is_fed: bool = False) -> None:
        self.nameserver = NameServer(Endpoint('127.0.0.1', 0), Endpoint('127.0.0.1', 0), SECRET)
        self.minidns = Endpoint('127.0.0.1', free_port())
        self.url = f'http://127.0.0.1:{free_port()}'
        self.zone = ''
        self._folder = folder
        self._is_fed = is_fed

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with contextlib.ExitStack() as ends:
            self.nameserver.start()
            ends.callback(self.nameserver.stop)
            path = self._folder / 'designate-pool.conf'
            path.write_text(self._configuration())
            conf = cfg.ConfigOpts()
            load.load(conf, ['--config-file', str(path)])
            pool = pools.read_pool(conf, backends.options())
            upgraded_sqlite(self._folder / 'pool.sqlite')
            settings = load.read_settings(conf)
            storage = Storage(settings.database.connection)
            ends.callback(storage.close)
            runtime = Threads()
            caller = Direct(runtime.workers(8, 'casts'))
            ends.callback(caller.stop)
            parts = ServiceParts(runtime, conf, settings, pool, lambda: pool, storage, (), (), caller)
            for name in ('central', 'minidns', 'pool_manager', 'api'):
                parts.services[name] = SERVICES[name](parts)
                ends.callback(parts.services[name].stop)
            pool_id = self.request('GET', '/v2/pools')['pools'][0]['id']
            self.request('PATCH', f'/v2/pools/{pool_id}', name_servers=['ns1.example.org.'])
            yield

    def _configuration(self) -> str:
        control = self.nameserver.control_endpoint
        assert control is not None
        host, port = self.url.removeprefix('http://').split(':')
        return '\n'.join([
            '[DEFAULT]', f'state_path = {self._folder}',
            '[database]', f'connection = sqlite:///{self._folder}/pool.sqlite',
            '[service:minidns]', f'listen = {self.minidns}', 'packed_zones_bytes = 0',
            '[service:api]', f'listen = {host}:{port}',
            '[service:pool_manager]', 'poll_retry_interval = 0.1', *self._server(control.port), ''])

    def _server(self, control_port: int) -> list[str]:
        if self._is_fed:
            return [f'[backend:recorded:{new_id()}]', 'host = 192.0.2.53']
        return [f'[backend:secondary:{new_id()}]', f'host = {self.nameserver.endpoint.host}',
                f'port = {self.nameserver.endpoint.port}', f'control_port = {control_port}',
                f'control_secret = {SECRET}', f'primaries = {self.minidns}']

    def request(self, method: str, path: str, **json: Any) -> Any:
        answer = requests.request(method, f'{self.url}{path}', json=json or None, timeout=30)
        answer.raise_for_status()
        return answer.json()

    def add(self, label: str, address: str) -> None:
        """Create a recordset; returns when the change is ACTIVE."""
        self.request('POST', f'/v2/zones/{self.zone}/recordsets', name=f'{label}.example.com.', type='A',
                     records=[address])
        self.wait()

    def wait(self) -> None:
        wait_until(lambda: self.request('GET', f'/v2/zones/{self.zone}')['status'] == 'ACTIVE', 'the zone is ACTIVE')


@pytest.fixture
def trace() -> Iterator[Trace]:
    """Watches whatever is started after it."""
    watched = Trace([name for page_story in ('change', 'transfer', 'records', 'retry') for name in story(page_story)])
    with watched.watching():
        yield watched


@pytest.fixture
def process(trace: Trace, tmp_path: pathlib.Path) -> Iterator[OneProcess]:
    """With the zone example.com., which is ACTIVE at its second serial; what was called until then is forgotten."""
    with with_zone(OneProcess(tmp_path)) as made:
        yield made


@pytest.fixture
def fed_process(trace: Trace, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProcess]:
    """As *process*, with a server that is fed by records; the zone has one more recordset."""
    monkeypatch.setitem(backends.DRIVERS, 'recorded', f'{__name__}:Recorded')
    backends._entry_points.cache_clear()
    try:
        with with_zone(OneProcess(tmp_path, is_fed=True)) as made:
            made.add('first', '192.0.2.1')
            yield made
    finally:
        monkeypatch.undo()
        backends._entry_points.cache_clear()


@contextlib.contextmanager
def with_zone(process: OneProcess) -> Iterator[OneProcess]:
    with process.running():
        process.zone = process.request('POST', '/v2/zones', name='example.com.', email='hostmaster@example.com')['id']
        process.wait()
        yield process


def test_a_change_passes_the_steps_of_its_story(process: OneProcess, trace: Trace) -> None:
    steps = story('change')
    assert 0 < len(steps) <= 20
    trace.calls.clear()
    process.add('www', '192.0.2.1')
    assert trace.missed(steps) is None, trace.calls


def test_a_transfer_passes_the_steps_of_its_story(process: OneProcess, trace: Trace) -> None:
    steps = story('transfer')
    assert 0 < len(steps) <= 8
    process.add('www', '192.0.2.1')
    trace.calls.clear()
    fetched = dns.zone.from_xfr(dns.query.xfr(process.minidns.host, 'example.com.', port=process.minidns.port))
    assert fetched.get_rdataset('www', 'A') is not None
    assert trace.missed(steps) is None, trace.calls


def test_a_change_on_a_server_fed_by_records_passes_the_steps_of_its_story(fed_process: OneProcess,
                                                                           trace: Trace) -> None:
    steps = story('records')
    assert 0 < len(steps) <= 15
    trace.calls.clear()
    fed_process.add('www', '192.0.2.1')
    zone = Recorded.made.zone('example.com.')
    assert zone is not None and zone.get('www.example.com.', 'A') is not None
    assert trace.missed(steps) is None, trace.calls


def test_a_retry_passes_the_steps_of_its_story(fed_process: OneProcess, trace: Trace) -> None:
    steps = story('retry')
    assert 0 < len(steps) <= 10
    trace.calls.clear()
    Recorded.made.behave('apply', 'fail', 1)
    fed_process.add('www', '192.0.2.1')
    assert trace.missed(steps) is None, trace.calls
