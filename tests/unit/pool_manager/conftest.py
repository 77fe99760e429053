"""The pool manager on a real database and a real Central, with drivers and a MiniDNS that do as the test says.

Nothing runs at the same time here: by the time a call returns all that follows from it is done.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from designate_pool import backends
from designate_pool.backends.base import Backend
from designate_pool.central.rules import domains as domain_rules
from designate_pool.central.service import Central
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendRefused, BackendUnreachable, BadConfiguration, ServiceUnavailable
from designate_pool.model import (Action, Answer, AuditKind, Context, Domain, Outcome, PollRequest, PollResult, Pool,
                                  PoolServer, Reloaded, Server, ServerState, ServerStatus, Status, ZoneTransferIn,
                                  utcnow)
from designate_pool.pool_manager import manager as manager_module
from designate_pool.pool_manager.dispatch.server_worker import Operation
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic.join_and_drain import JoinAndDrain
from designate_pool.pool_manager.periodic.loops import PeriodicLoops
from designate_pool.pool_manager.server_registry import ServerRegistry, ServerSettingsCache
from designate_pool.pool_manager.service import PoolManager
from designate_pool.rpc import central as central_rpc, minidns as minidns_rpc, pool_manager as manager_rpc
from designate_pool.rpc.direct import Direct
from designate_pool.settings import PoolManagerSettings
from designate_pool.storage.operations import pool_servers as server_store, server_statuses, sweeps
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains
from testing.inline import Inline
from testing.settings import central_settings

CONTEXT = Context(all_projects=True)
SERVERS = ('a' * 32, 'b' * 32, 'c' * 32)
A, B, C = SERVERS
D = 'd' * 32


class ScriptedServer(Backend):
    """A server: the zones it holds with their serials, and what is wrong with it."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.zones: dict[str, int | None] = {}
        self.calls: list[tuple[str, str]] = []
        self.dead = False
        self.refuses = False
        self.before_return: Any = None

    def _act(self, verb: str, domain: Domain) -> None:
        self.calls.append((verb, domain.id))
        if self.dead:
            raise BackendUnreachable(why='connection refused')
        if self.refuses:
            raise BackendRefused(why='the key was refused')
        if verb == 'create':
            self.zones.setdefault(domain.name, None)
        else:
            self.zones.pop(domain.name, None)
        hook, self.before_return = self.before_return, None
        if hook:
            hook()

    def _create(self, domain: Domain, deadline: Deadline) -> None:
        self._act('create', domain)

    def _delete(self, domain: Domain, deadline: Deadline) -> None:
        self._act('delete', domain)

    def _ping(self, deadline: Deadline) -> None:
        if self.dead:
            raise BackendUnreachable(why='connection refused')


class ScriptedPool:
    """Central, a pool manager and three servers; :meth:`deliver` lets the servers transfer and MiniDNS hear of it."""

    def __init__(self, storage: Storage, folder: pathlib.Path, threshold: int, clock: Clock) -> None:
        self.storage = storage
        self.folder = folder
        self.runtime = Inline()
        self.caller = Direct(self.runtime.workers(1, 'casts'))
        self.lose_casts = False
        self.central = Central(self.storage, manager_rpc.PoolManagerClient(self), self.runtime,
                               settings=central_settings())
        self.caller.serve(central_rpc.TOPIC, central_rpc.CentralClient, self.central)
        self.caller.serve(minidns_rpc.topic('default'), minidns_rpc.MiniDnsClient, self)
        self.spread: list[PollRequest] = []
        self.caller.serve(minidns_rpc.topic('default', spread=True), minidns_rpc.MiniDnsClient, self.AnyMiniDns(self))
        self.servers = {key: ScriptedServer(Server(key, 'fake', '192.0.2.1', 53 + number, max_in_flight=1))
                        for number, key in enumerate(SERVERS)}
        self.asked: list[PollRequest] = []
        self.notified: list[PollRequest] = []
        self.pages: list[tuple[datetime, list[str], list[tuple[str, str, int]]]] = []
        self.pool = Pool('default', servers=tuple(each.server for each in self.servers.values()),
                         threshold_percentage=threshold)
        self._begin('one')
        pool = self.central.find_pools(CONTEXT)[0]
        self.central.update_pool(CONTEXT, {'id': pool.id, 'name_servers': ['ns1.example.org.']})

    def _begin(self, name: str) -> None:
        self.manager = self.new_manager(name)
        self.registry = ServerRegistry(self.manager, self.runtime, self.read_pool,
                                       ServerSettingsCache(str(self.folder / f'{name.partition("-")[0]}.json')))
        self.endpoint = PoolManager(self.manager, self.registry, self.runtime)
        self.caller.serve(manager_rpc.topic('default'), manager_rpc.PoolManagerClient, self.endpoint)

    def read_pool(self) -> Pool:
        """The pool as it is configured now."""
        return self.manager.pool

    def new_manager(self, name: str) -> Manager:
        settings = PoolManagerSettings(name=name, poll_timeout=1, contents_audit_interval=0, extra_zones_interval=0)
        return Manager(self.pool, self.servers, self.storage, central_rpc.CentralClient(self.caller),
                       minidns_rpc.MiniDnsClient(self.caller), self.runtime, settings)

    def cast(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        """Central's way to the pool manager."""
        if self.lose_casts:
            raise ServiceUnavailable(service=topic, why='the broker is down')
        self.caller.cast(topic, context, method, **arguments)

    def notify_and_poll(self, context: Context, pool_name: str, requests: Sequence[PollRequest], timeout: float,
                        retry_interval: float, max_retries: int) -> None:
        """MiniDNS: remembers what it was asked."""
        self.asked.extend(each for each in requests if each.poll)
        self.notified.extend(each for each in requests if not each.poll)

    @dataclasses.dataclass(frozen=True)
    class AnyMiniDns:
        """Remembers in addition that any MiniDNS was asked."""

        pool: ScriptedPool

        def notify_and_poll(self, context: Context, pool_name: str, requests: Sequence[PollRequest], timeout: float,
                            retry_interval: float, max_retries: int) -> None:
            self.pool.notify_and_poll(context, pool_name, requests, timeout, retry_interval, max_retries)
            self.pool.spread.extend(requests)

    def audit_serials(self, context: Context, pool_name: str, started_at: datetime, server_ids: list[str],
                      domains: list[tuple[str, str, int]]) -> None:
        """MiniDNS: remembers what it was asked of many."""
        self.pages.append((started_at, server_ids, domains))

    def sweep(self, answered: bool = True) -> None:
        """The pool manager looks at all domains, and MiniDNS tells what it hears."""
        auditing = PeriodicLoops(self.manager, self.registry, self.runtime).serial_audit
        self.storage.run(sweeps.create, 'default', AuditKind.SERIALS, utcnow())
        while True:
            self.storage.run(lambda tx: tx.execute(sweeps.TABLE.update().values(
                next_at=None, heard=sweeps.TABLE.c.sent)))
            auditing.run()
            audit = self.storage.read(sweeps.get, 'default', AuditKind.SERIALS)
            if audit is not None and not audit.after_id:
                break
        if answered:
            self.answer_pages()

    def answer_pages(self) -> None:
        """MiniDNS tells of all that it was asked."""
        while self.pages:
            started_at, server_ids, domains = self.pages.pop(0)
            self.endpoint.audited(CONTEXT, started_at, *self._answers(server_ids, domains))

    def _answers(self, server_ids: list[str], domains: list[tuple[str, str, int]]) -> tuple[
            list[tuple[str, int, int]], list[PollResult]]:
        counts, findings = [], []
        for server in server_ids:
            if not isinstance(self.servers[server], ScriptedServer):
                continue
            said, dead = self.servers[server].zones, self.servers[server].dead
            counts.append((server, 0 if dead else len(domains), len(domains) if dead else 0))
            for key, name, serial in domains:
                seen = None if dead else said.get(name)
                if seen != serial:
                    answer = Answer.TIMEOUT if dead else Answer.NO_ZONE if seen is None else Answer.SERIAL
                    findings.append(PollResult(key, server, Outcome.ERROR, answer, seen, 'another', serial))
        return counts, findings

    def deliver(self) -> None:
        """Every poll that was asked for comes to its end."""
        while self.asked:
            asked, self.asked = self.asked, []
            self.endpoint.update_statuses(CONTEXT, [self.poll(request) for request in asked])

    def poll(self, request: PollRequest) -> PollResult:
        server = self.servers[request.server_id]
        found: tuple[Outcome, Answer, int | None, str | None]
        if server.dead:
            found = Outcome.ERROR, Answer.TIMEOUT, None, 'no answer'
        elif request.name not in server.zones:
            found = Outcome.ERROR, Answer.NO_ZONE, None, 'REFUSED'
        else:
            live = self.storage.read(domains.live_by_name, [request.name]).get(request.name)
            server.zones[request.name] = serial = live.serial if live else request.serial
            found = Outcome.SUCCESS, Answer.SERIAL, serial, None
        return PollResult(request.domain_id, request.server_id, *found, request.serial,
                          incarnation=request.incarnation)

    def create(self, name: str = 'example.com.') -> Domain:
        domain = self.central.create_domain(CONTEXT, {'name': name, 'email': 'hostmaster@example.com'})
        self.deliver()
        return domain

    def create_secondary(self, name: str = 'example.com.') -> Domain:
        """A secondary domain, which waits for its first transfer."""
        return self.central.create_domain(CONTEXT, {'name': name, 'masters': ['192.0.2.9']})

    def transfer(self, serial: int, name: str = 'example.com.') -> None:
        """The contents of the one secondary domain that is to be refreshed come from its master."""
        task, = self.central.claim_refreshes(CONTEXT, 'default', 60, 10)
        self.central.store_transfer(CONTEXT, task.domain_id, task.claim, '192.0.2.9:53', ZoneTransferIn(
            serial, f'ns1.example.net. host.example.net. {serial} 3600 600 86400 300', 900,
            ((name, 'NS', 300, 'ns1.example.net.'),)))

    def change(self, domain: Domain) -> Domain:
        changed = self.central.update_domain(CONTEXT, domain.id, {'ttl': (self.get(domain).ttl or 0) + 1})
        self.deliver()
        return changed

    def delete(self, domain: Domain) -> Domain:
        gone = self.central.delete_domain(CONTEXT, domain.id)
        self.deliver()
        return gone

    def get(self, domain: Domain) -> Domain:
        return self.storage.read(domains.get_many, [domain.id])[domain.id]

    def rows(self, domain: Domain) -> dict[tuple[str, Action], ServerStatus]:
        found = self.storage.read(server_statuses.for_domains, [domain.id])[domain.id]
        return {(row.server_id, row.action): row for row in found}

    def serial(self, server: str, name: str = 'example.com.') -> int | None:
        return self.servers[server].zones.get(name)


class Clock:
    """Time for the pool manager and Central, which goes on only when the test moves it."""

    def __init__(self) -> None:
        self.began = utcnow()
        self.offset = timedelta()

    def __call__(self) -> datetime:
        return self.began + self.offset


@pytest.fixture
def clock(emptied_sqlite: Storage, monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(emptied_sqlite, 'now', moved)
    monkeypatch.setattr(domain_rules, 'time', SimpleNamespace(time=lambda: moved().timestamp()))
    monkeypatch.setattr(manager_module, 'monotonic', lambda: moved.offset.total_seconds())
    return moved


@pytest.fixture(params=[66])
def pool(emptied_sqlite: Storage, tmp_path: pathlib.Path, clock: Clock,
         request: pytest.FixtureRequest) -> ScriptedPool:
    return ScriptedPool(emptied_sqlite, tmp_path, request.param, clock)


def later(pool: ScriptedPool, clock: Clock, seconds: float) -> None:
    """*seconds* go by, and the pool manager does what has become due."""
    clock.offset += timedelta(seconds=seconds)
    periodic = PeriodicLoops(pool.manager, pool.registry, pool.runtime)
    periodic.run_probes()
    for _ in range(20):
        if periodic.run_due():
            break
        pool.deliver()
    else:
        raise AssertionError('there is always something due')


def overtaken(pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], Any]) -> None:
    """The next time that the pool manager has read and decided, *meanwhile* happens before it writes."""
    write = pool.manager.reconciler._write_rows

    def interrupted(*arguments: Any) -> Any:
        monkeypatch.setattr(pool.manager.reconciler, '_write_rows', write)
        meanwhile()
        return write(*arguments)

    monkeypatch.setattr(pool.manager.reconciler, '_write_rows', interrupted)


@contextlib.contextmanager
def held_up(manager: Manager, server: str = A) -> Iterator[list[Operation]]:
    """What *manager* hands to a server's worker waits there, until the end."""
    worker = manager.workers[server]
    operations: list[Operation] = []
    worker.put = lambda *some: operations.extend(some)  # type: ignore[method-assign]
    try:
        yield operations
    finally:
        del worker.put
        worker.put(*operations)


def new_domain(pool: ScriptedPool, name: str = 'example.com.') -> Domain:
    return pool.central.create_domain(CONTEXT, {'name': name, 'email': 'hostmaster@example.com'})


all_needed = pytest.mark.parametrize('pool', [100], indirect=True)


class Listed(ScriptedServer):
    """A server that can be asked for its zones."""

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[Mapping[str, int | None], bool]:
        if self.dead:
            raise BackendUnreachable(why='connection refused')
        return dict(self.zones), True


class EditablePool(ScriptedPool):
    """A pool whose configuration can be edited and read anew."""

    wrong: str | None = None
    deleting = False

    def __init__(self, storage: Storage, folder: pathlib.Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(backends, 'build', self.build)
        super().__init__(storage, folder, 100, clock)
        self.configured = {server.id: server for server in self.pool.servers}
        self.machines = {(key, 'fake'): server for key, server in self.servers.items()}
        self.start('one')

    def build(self, server: Server) -> Backend:
        """The same machine for the same id and driver, however often its settings change."""
        machine = self.machines.get((server.id, server.driver))
        if machine is None:
            machine = self.machines[server.id, server.driver] = Listed(server)
        if self.configured.get(server.id) == server:  # and not its former settings
            machine.server = server
            self.servers[server.id] = machine
        return machine

    def read_pool(self) -> Pool:
        if self.wrong is not None:
            raise BadConfiguration(count=1, listing=self.wrong)
        return dataclasses.replace(self.pool, servers=tuple(self.configured.values()))

    def start(self, name: str) -> None:
        """A pool manager begins its life; the former one is gone as by a crash."""
        self.pool = self.read_pool()
        for server in self.pool.servers:
            self.build(server)
        self._begin(name)
        self.registry.start()
        self.filling = JoinAndDrain(self.manager, self.registry, page_size=2)

    def new_manager(self, name: str) -> Manager:
        manager = super().new_manager(name)
        manager.reconciler.settings = dataclasses.replace(manager.settings,
                                                          delete_zones_of_removed_servers=self.deleting)
        return manager

    def add(self, key: str, **facts: object) -> None:
        self.configured[key] = Server(key, 'fake', '192.0.2.9', max_in_flight=1, **facts)  # type: ignore[arg-type]

    def begin_joining(self, key: str) -> None:
        self.add(key)
        self.registry.reload()

    def join(self, key: str) -> None:
        """Add a server, and have it filled."""
        self.begin_joining(key)
        self.settle()

    def leave(self, key: str) -> Reloaded:
        """Remove the section of a server."""
        del self.configured[key]
        return self.registry.reload()

    def change_section(self, key: str, **values: Any) -> Reloaded:
        self.configured[key] = dataclasses.replace(self.configured[key], **values)
        return self.registry.reload()

    def step(self, times: int = 1) -> None:
        """Fill and drain, and let the servers transfer."""
        for _ in range(times):
            self.filling.run()
            self.deliver()

    def settle(self) -> None:
        """Fill and drain until nothing moves any more."""
        for _ in range(50):
            self.step()
            if not any(each.is_filling or each.state in (ServerState.DRAINING, ServerState.JOINING)
                       for each in self.roll):
                return
        raise AssertionError('there is always something to fill')

    def put(self, key: str, state: ServerState, **values: object) -> None:
        """An operator's command, as Central carries it out."""
        server = self.storage.read(server_store.SERVERS.get, key)
        assert server is not None
        assert self.storage.run(server_store.save, server_store.in_state(server, state, utcnow(), **values), utcnow())
        self.registry.refresh()

    @property
    def states(self) -> dict[str, str]:
        return {each.id: str(each.state) for each in self.roll}

    @property
    def roll(self) -> tuple[PoolServer, ...]:
        return self.storage.read(server_store.of_pool, 'default').servers


@pytest.fixture
def editable(emptied_sqlite: Storage, tmp_path: pathlib.Path, clock: Clock,
             monkeypatch: pytest.MonkeyPatch) -> EditablePool:
    return EditablePool(emptied_sqlite, tmp_path, clock, monkeypatch)


def some(editable: EditablePool, count: int = 5) -> list[Domain]:
    domains = [editable.create(f'd{number}.example.com.') for number in range(count)]
    assert all(editable.get(each).status is Status.ACTIVE for each in domains)
    return domains
