"""The outage of October 2025, played by its steps, on a BIND that transfers and a PowerDNS that is fed by records.

A planner had made plans for a name that many services used; two appliers worked on them.  The slow one had checked that
its plan was the newest, and waited.  The other one applied a newer plan; the slow one wrote the old plan over it; a
cleanup then removed the old plans, and with the one that was served, all addresses of the name.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import pathlib
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from designate_pool.model import utcnow
from designate_pool.planner import config_file
from designate_pool.planner.engine import SyncEngine
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.pool_api import ApiStore, PoolApi
from designate_pool.planner.run_report import RunReport
from designate_pool.planner.targets.pool import PoolProvider
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import plans
from testing.bind import Named
from testing.pdns import PowerDns
from testing.processes import patience, wait_until
from testing.stack import Stack
from tests.fixtures.commands import Folder, Ran, wait

NAME = 'example.com.'
CONFIG = 'designate-pool-sync.yaml'
SYNC = '''
providers:
  files: {{class: zonefile, directory: {folder}/zones, file_extension: .zone, check_origin: false}}
  pool: {{class: pool, url: '{url}'}}
zones:
  '*': {{sources: [files], targets: [pool]}}
'''
FIRST, OLD, NEW = (tuple(f'192.0.2.{number}' for number in numbers)
                   for numbers in (range(1, 6), range(2, 7), range(3, 9)))


class SlowPool(PoolProvider):
    """A pool to which an applier sends what it has checked when it is told to.

    :ivar has_checked: set when only the sending is left to do
    :ivar go: to be set then
    """

    def __init__(self, url: str) -> None:
        super().__init__('pool', url=url)
        self.has_checked, self.go = threading.Event(), threading.Event()

    def _apply(self, plan: Plan) -> ApplyResult | None:
        self.has_checked.set()
        assert self.go.wait(patience(60))
        return super()._apply(plan)


@dataclasses.dataclass
class Service:
    """A name that many services use, kept in files; *servers* of the pool that serves it."""

    stack: Stack
    folder: Folder
    servers: tuple[Named | PowerDns, ...]

    def write(self, addresses: tuple[str, ...]) -> None:
        """Have the source say so."""
        self.folder.write(f'zones/{NAME}zone', '@ 300 MX 10 mail\n' + ''.join(
            f'www 60 A {address}\n' for address in addresses))

    def apply(self, *words: str, code: int = 0) -> Ran:
        return self.folder.run('apply', *words, code=code)

    def served(self) -> list[list[str]]:
        """The addresses that each server answers."""
        return [server.texts(f'www.{NAME}', 'A') for server in self.servers]

    def remove_all_plans(self) -> None:
        """A cleanup that takes every plan, also the one that is served, for an old one."""
        storage = Storage(self.stack.database_url)
        storage.run(plans.expire, utcnow() + timedelta(days=3), 1000)
        storage.close()
        assert self.folder.run('plan', 'list', '-f', 'json').json == []

    def serial(self) -> int:
        zone = PoolApi(self.stack.url).zone(NAME)
        assert zone is not None
        return int(zone['serial'])


@pytest.fixture
def service(tmp_path: pathlib.Path, named: Callable[..., Named], powerdns: Callable[..., PowerDns]
            ) -> Iterator[Service]:
    servers = named(), powerdns(driver='pdns-native')
    with Stack(tmp_path / 'stack', [server.section(str(uuid.uuid4()), call_timeout=2) for server in servers],
               f'sqlite:///{tmp_path}/pool.sqlite') as stack:
        folder = Folder(tmp_path / 'git', stack.url)
        folder.write(CONFIG, SYNC.format(folder=folder.path, url=stack.url))
        service = Service(stack, folder, servers)
        service.write(FIRST)
        service.apply('--yes', wait())
        assert service.served() == [list(FIRST)] * 2
        yield service


def slow_applier(service: Service, pool: SlowPool, plan_id: str, threads: concurrent.futures.Executor
                 ) -> concurrent.futures.Future[RunReport]:
    """One that has checked a plan, and has still to write it."""
    setup = config_file.read(service.folder.path / CONFIG)
    engine = SyncEngine(dataclasses.replace(setup, providers={**setup.providers, 'pool': pool}, outputs=()))
    applying = threads.submit(engine.apply, plan_id, ApiStore(PoolApi(service.stack.url)))
    wait_until(lambda: pool.has_checked.is_set() or applying.done(), 'the slow one has checked its plan')
    assert not applying.done()
    return applying


@pytest.mark.parametrize('cleaned_up', ['before', 'afterwards'])
def test_an_old_plan_of_a_slow_applier_is_not_written_over_a_newer_one(service: Service, cleaned_up: str) -> None:
    """The slow one is refused, and a plan is not what is served: its removal removes nothing."""
    service.write(OLD)
    old = service.folder.run('plan').plan
    pool = SlowPool(service.stack.url)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        applying = slow_applier(service, pool, old, threads)
        service.write(NEW)
        service.apply(service.folder.run('plan').plan, wait())
        serial = service.serial()
        if cleaned_up == 'before':
            service.folder.run('plan', 'drop', old)
            service.remove_all_plans()
        pool.go.set()
        (refused,) = applying.result(patience(60)).failed
        assert f'is not applied: The zone {NAME} is at serial {serial}, not' in str(refused.error)
    pool.close()
    assert service.apply(old, code=1).err
    service.remove_all_plans()
    assert service.folder.run('plan', '--detailed-exitcode').out.startswith('Nothing to do')
    assert service.serial() == serial and service.served() == [list(NEW)] * 2
    service.stack.must_be_sound()


def test_what_was_emptied_by_force_comes_back_by_one_command(service: Service) -> None:
    serial = service.serial()
    service.folder.write(f'zones/{NAME}zone', '')
    assert service.apply('--yes', code=1).err
    assert (service.serial(), service.served()) == (serial, [list(FIRST)] * 2)
    service.apply('--yes', '--force', NAME, wait())
    assert service.served() == [[], []]
    service.folder.run('zone', 'revert', NAME, '--to', str(serial), '--yes', wait())
    assert service.served() == [list(FIRST)] * 2
    assert all(server.texts(NAME, 'MX') == [f'10 mail.{NAME}'] for server in service.servers)
    service.stack.must_be_sound()
