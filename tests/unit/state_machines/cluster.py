"""Two Centrals, two pool managers and two MiniDNS with their network, all of it in one thread.

Real are Central, the pool manager with its loops, MiniDNS's poller, notifier and zones, and the database.  Simulated
are servers, sockets, the broker and time.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from typing import Any

from designate_pool import backends
from designate_pool.backends import catalog
from designate_pool.central.service import Central
from designate_pool.errors import PoolError, Refused, ServiceUnavailable
from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.client.query import NextStep, RetryingQuery, RetrySchedule, Step
from designate_pool.minidns.client.soa_poller import PollOrder, ResultSender, SoaPoller, ToPool
from designate_pool.minidns.zones.catalog_zone import CatalogLoader
from designate_pool.minidns.zones.ixfr import PackedDifference
from designate_pool.minidns.zones.loader import ZoneCache, ZoneLoader
from designate_pool.model import (Answer, Context, Domain, Outcome, PageRequest, PollRequest, PollResult, Pool,
                                  RecordChange, RecordSet, ServerState, Task, new_id)
from designate_pool.pool_manager.dispatch import zone_compare
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.periodic import loops as periodic
from designate_pool.pool_manager.server_registry import ServerRegistry
from designate_pool.pool_manager.service import PoolManager
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.rpc import central as central_rpc, minidns as minidns_rpc, pool_manager as manager_rpc
from designate_pool.settings import PoolManagerSettings
from testing.settings import central_settings
from tests.unit.state_machines.servers import CATALOG_ZONE, DRIVERS, SimulatedServer, ask, compare
from tests.unit.state_machines.simulation import (Fate, Scheduler, SimulatedClock, SimulatedDatabase, SimulatedLock,
                                                  SimulatedProcess, SimulatedRuntime, SimulatedStorage, simulated_world)

SERVERS = ('a' * 32, 'b' * 32, 'c' * 32)
#: A server that is not in the pool at first.
RESERVE = 'd' * 32
#: The last one lies below another.
NAMES = ('x.example.com.', 'y.example.com.', 'p.example.com.', 'q.example.com.', 'r.example.com.',
         'z.y.example.com.')
POOL = 'default'
SETTINGS = PoolManagerSettings(poll_timeout=1, poll_max_retries=1, retry_backoff_maximum=20, periodic_sync_interval=60,
                               contents_audit_interval=0, extra_zones_interval=60)
#: Of each zone, so that a difference is smaller than the zone.
ADDRESSES = [f'192.0.2.{number}' for number in range(100, 108)]
#: Seconds after which Central purges what was deleted.
RETENTION = 7200
#: How long each loop of a pool manager pauses at least, in seconds; between them nothing that it does is needed.
PAUSES = {'due': 0.0, 'unsettled': 5.0, 'probe': 1.0, 'claims': 5.0, 'audit': 5.0, 'members': 10.0,
          'filling': 1.0, 'extras': 20.0}
#: What is left to :meth:`Cluster.live`.
_IDLE = {f'loop {name} sleeps' for name in ('probe', 'claims', 'audit', 'members', 'extras')}
#: When a row can be claimed first.  One that was claimed can be claimed after that time, not at it.
_DUE = {
    'SELECT min(next_attempt_at) FROM pool_manager_status WHERE claimed_until IS NULL': 0.0,
    'SELECT min(max(next_attempt_at, claimed_until)) FROM pool_manager_status '
    'WHERE next_attempt_at IS NOT NULL AND claimed_until IS NOT NULL': 0.001}


def simulated_pool(clock: SimulatedClock) -> AbstractContextManager[None]:
    """Give the product's modules the *clock*, and the drivers of simulated servers."""
    return simulated_world(clock, (backends, 'driver_class', DRIVERS.__getitem__), (catalog, 'query_soa', ask),
                           (zone_compare, 'compare', compare))


@dataclasses.dataclass(eq=False, slots=True)
class Message:
    """A message on its way.

    :ivar deliver: does what its receiver does
    :ivar has_receiver: whether somebody takes it now
    """

    text: str
    deliver: Callable[[Fate], None]
    has_receiver: Callable[[], object]


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """What a user was answered.

    :ivar serial: of the domain, or of what has last changed the recordset
    :ivar value: of the TXT record, if a recordset was answered
    """

    domain_id: str
    serial: int
    value: str | None = None


@dataclasses.dataclass(eq=False, slots=True)
class UserOperation:
    """What a user asked for, and heard.

    :ivar kind: 'create', 'delete' or 'restore' a domain; 'change' its TXT record by a change of the domain, 'edit' it
        by its recordset, which is created if need be, or 'remove' that; 'revert' the domain to its version before
    :ivar value: of the one TXT record that it sets; of a revert the one that it brings back
    :ivar domain_id: that it was asked for; of a creation once that was heard
    :ivar told: None where nothing was answered, or an error that says nothing of what was done
    """

    kind: str
    name: str
    value: str
    number: int
    domain_id: str | None = None
    told: Told | None = None
    is_refused: bool = False
    is_over: bool = False


class SimulatedLoop:
    """The network side of MiniDNS's client loop: its queries, each of which a server may or may not answer."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.queries: list[RetryingQuery] = []

    def submit(self, work: Callable[..., None], *arguments: Any) -> None:
        work(*arguments)

    def start_query(self, query: RetryingQuery, at: float | None = None) -> None:
        self.queries.append(query)
        self._apply(query, query.on_timer(self._cluster.clock.monotonic()) if at is None else at)

    def run_timer_now(self, query: RetryingQuery) -> None:
        query.wake_at = None
        self._apply(query, query.on_timer(self._cluster.clock.monotonic()))

    def cancel(self, query: RetryingQuery) -> None:
        self._apply(query, NextStep.END)

    def post(self, handle: Callable[[list[Any]], None], item: Any) -> None:
        handle([item])

    def due(self) -> list[RetryingQuery]:
        """The queries whose timers have come."""
        now = self._cluster.clock.monotonic()
        return [query for query in self.queries if query.wake_at is not None and query.wake_at <= now]

    def _apply(self, query: RetryingQuery, step: Step) -> None:
        if query.ended:
            return
        now = self._cluster.clock.monotonic()
        if step is NextStep.SEND:
            query.wake_at = query.on_sent(now)
            tries = query.tries
            kind = type(query).__name__
            self._cluster.send(f'{kind} {query.name} to {query.peer.id[0]}',
                               lambda fate: self._ask(query, tries, fate))
        elif isinstance(step, float):
            query.wake_at = step
        else:
            query.ended, query.wake_at = True, None
            self.queries.remove(query)

    def _ask(self, query: RetryingQuery, tries: int, fate: Fate) -> None:
        """A datagram arrives, and the reply with it."""
        server = self._cluster.servers[query.peer.id]
        ask = server.notify if type(query).__name__ == 'NotifyQuery' else server.soa
        for _ in range(2 if fate is Fate.TWICE else 1):
            reply = ask(query.name)
        if reply is not None and fate is not Fate.UNHEARD:
            heard = reply
            if fate is Fate.LATE:
                self._cluster.send(f'late reply of {query.peer.id[0]} for {query.name}',
                                   lambda fate: self._hear(query, tries, heard))
            else:
                self._hear(query, tries, heard)

    def _hear(self, query: RetryingQuery, tries: int, reply: SoaReply) -> None:
        if not query.ended and query.in_try and query.tries == tries and query in self.queries:
            self._apply(query, query.on_reply(reply, self._cluster.clock.monotonic()))


class SimulatedMiniDns:
    """MiniDNS: its poller, notifier and zones are real."""

    def __init__(self, cluster: Cluster, process: SimulatedProcess) -> None:
        self.process = process
        self._cluster = cluster
        self._managers = manager_rpc.PoolManagerClient(Caller(cluster))
        self.loop = SimulatedLoop(cluster)
        self.poller = SoaPoller(self.loop, ResultSender(self._managers).send)  # type: ignore[arg-type]
        self._peers = {key: AllowedPeer(key, server.server.label, ('192.0.2.1',), server.server.port)
                       for key, server in cluster.servers.items()}
        cache = ZoneCache(1 << 20)
        # Its threads wait for each other where zones are packed, which tasks could not: loading is one step.
        self._loader = ZoneLoader(cluster.database.storage, POOL, cache)
        self._catalog = CatalogLoader(cluster.database.storage, cache)  # type: ignore[arg-type]

    def notify_and_poll(self, context: Context, pool_name: str, requests: Sequence[PollRequest], timeout: float,
                        retry_interval: float, max_retries: int) -> None:
        recipient = ToPool(pool_name, context)
        self.poller.start_polls([PollOrder(self._peers[each.server_id], recipient, each) for each in requests],
                                RetrySchedule(timeout, retry_interval, max_retries))

    def audit_serials(self, context: Context, pool_name: str, started_at: datetime, server_ids: Sequence[str],
                      domains: Sequence[tuple[str, str, int]]) -> None:
        counts, findings = [], []
        for key in server_ids:
            replies = [(*each, self._cluster.servers[key].soa(each[1])) for each in domains]
            answered = sum(reply is not None for *_, reply in replies)
            counts.append((key, answered, len(replies) - answered))
            for domain_id, _, serial, reply in replies:
                found = reply or SoaReply(Answer.TIMEOUT, error='no answer')
                if found.serial != serial:
                    findings.append(PollResult(domain_id, key, Outcome.ERROR, found.answer, found.serial, found.error,
                                               serial, self._peers[key].label))
        self._managers.audited(context, pool_name, started_at, counts, findings)

    def transfer(self, server: SimulatedServer, name: str) -> None:
        """A server asks for a zone, and gets it."""
        zone, scheduler = server.zones.get(name), self._cluster.scheduler
        if name == CATALOG_ZONE:
            self._transfer_catalog(server)
            return
        head = self._loader.read_heads([name]).get(name)
        scheduler.pause('sends')
        if zone is None or head is None or server.zones.get(name) is not zone:
            return
        sent = None if zone.serial is None else self._loader.load_difference(head, zone.serial)
        sent = sent or self._loader.load_zone(head)
        scheduler.pause('has sent')
        if sent is None or not server.hears_dns:
            return
        server.install(zone, sent)
        self.poller.start_post_transfer_polls([self._peers[server.server.id]], sent.domain_id, name, sent.serial, POOL,
                                              sent.client_serial if isinstance(sent, PackedDifference) else None)

    def _transfer_catalog(self, server: SimulatedServer) -> None:
        zone, peers = server.zones[CATALOG_ZONE], [self._peers[server.server.id]]
        self._cluster.scheduler.pause('sends the catalog')
        head = self._catalog.head(CATALOG_ZONE, POOL)
        assert head is not None
        sent = None if zone.serial is None else self._catalog.load_difference(head, peers, zone.serial)
        packed = sent or self._catalog.load_catalog(head, peers)
        self._cluster.scheduler.pause('has sent the catalog')
        if packed is not None and server.hears_dns:
            server.install(zone, packed)


class Caller:
    """RPC: casts are messages, calls are made in the caller's task."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def cast(self, topic: str, context: Context, method: str, **arguments: Any) -> None:
        self._cluster.send(f'{method} to {topic}',
                           functools.partial(self._cluster.handle_cast, topic, context, method, arguments),
                           functools.partial(self._cluster.receivers, topic))

    def call(self, topic: str, context: Context, method: str, *, patience: float | None = None,
             **arguments: Any) -> Any:
        scheduler = self._cluster.scheduler
        fate = scheduler.pause(f'calls {method}')
        central = self._cluster.centrals[self._cluster.turn() % 2]
        if fate is Fate.FAILS:
            raise ServiceUnavailable(service=topic, why='the broker is down')
        handler = getattr(central.service, method)
        if fate is Fate.LATE:
            scheduler.spawn(central.process, f'late {method}', lambda: handler(context, **arguments))
            raise ServiceUnavailable(service=topic, why='nobody has answered in time')
        result = handler(context, **arguments)
        if fate is Fate.TWICE:
            scheduler.spawn(central.process, f'{method} once more', lambda: handler(context, **arguments))
        if fate is Fate.UNHEARD:
            raise ServiceUnavailable(service=topic, why='the answer was lost')
        return result


class CentralProcess:
    """A Central, and its loop."""

    def __init__(self, cluster: Cluster, process: SimulatedProcess) -> None:
        self.process = process
        self.service = Central(
            SimulatedStorage(cluster.database, cluster.scheduler),  # type: ignore[arg-type]
            manager_rpc.PoolManagerClient(Caller(cluster)),  # type: ignore[arg-type]
            SimulatedRuntime(cluster.scheduler, process),  # type: ignore[arg-type]
            settings=central_settings(deleted_retention=RETENTION))

    def purge(self) -> None:
        self.service._purger.purge()


class ManagerProcess:
    """A pool manager, and its loops.

    :ivar cache: what its host keeps of the settings of servers
    """

    def __init__(self, cluster: Cluster, process: SimulatedProcess, cache: SettingsMemory) -> None:
        self.process = process
        self.cache = cache
        self._cluster = cluster
        runtime = SimulatedRuntime(cluster.scheduler, process)
        drivers = backends.build_all(cluster.pool)
        caller = Caller(cluster)
        self.manager = Manager(
            cluster.pool, drivers, SimulatedStorage(cluster.database, cluster.scheduler),  # type: ignore[arg-type]
            central_rpc.CentralClient(caller), minidns_rpc.MiniDnsClient(caller), runtime,
            dataclasses.replace(cluster.settings, name=process.name))
        self.manager.reconciler._lock = SimulatedLock(cluster.scheduler)  # type: ignore[assignment]
        self.registry = ServerRegistry(self.manager, runtime, lambda: cluster.pool, cache)
        self.registry._lock = SimulatedLock(cluster.scheduler)  # type: ignore[assignment]
        self.registry.start()
        self.endpoint = PoolManager(self.manager, self.registry, runtime)
        loops = self.endpoint._periodic
        loops._join_and_drain._page_size = 1
        for name, run in (('unsettled', loops.run_unsettled), ('probe', loops.run_probes),
                          # Nothing wakes these here.
                          ('due', lambda: min(loops.run_due(), periodic.UNSETTLED_INTERVAL)),
                          ('claims', self.manager.extend_claims), ('audit', loops.serial_audit.run),
                          ('members', lambda: min(loops.run_members(), periodic.UNSETTLED_INTERVAL)),
                          ('filling', loops._join_and_drain.run),
                          ('extras', loops._orphan_audit.run)):
            cluster.scheduler.resume(cluster.scheduler.spawn(process, f'loop {name}', self._loop, name, run))

    def _loop(self, name: str, run: Callable[[], float]) -> None:
        cluster, pause = self._cluster, 0.0
        # Runs that would find nothing are left out.
        is_ready = {'due': cluster.has_due_row, 'unsettled': cluster.has_unsettled,
                    'probe': lambda: any(each.control.is_open or each.dns.is_open
                                         for each in self.manager.workers.values()),
                    'claims': lambda: any(each._operations for each in self.manager.all_workers.values()),
                    'filling': lambda: any(
                        each.is_filling or each.state not in (ServerState.ACTIVE, ServerState.MAINTENANCE)
                        for each in self.manager.members.servers),
                    'audit': lambda: cluster.has_audits,
                    'extras': lambda: cluster.has_audits}.get(name)
        while True:
            cluster.scheduler.pause('sleeps', max(pause, PAUSES[name]), is_ready)
            try:
                pause = run()
            except PoolError:
                pause = periodic.DUE_INTERVAL


class SettingsMemory:
    """The settings that a host keeps for its pool managers, one after the other."""

    def __init__(self) -> None:
        self._kept: tuple[Any, Any] = {}, {}

    def read(self) -> tuple[Any, Any]:
        return self._kept

    def write(self, servers: Any, former: Any) -> None:
        self._kept = servers, former


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """Something that can happen now.

    :ivar source: what it is a step of: the same object, or an equal one, in each list of events that has it
    """

    text: object
    happen: Callable[[Fate], Any]
    source: object = None

    def is_held(self, held: Sequence[object]) -> bool:
        """Whether it is a step of one of these, or has one of these in its text."""
        return any(each in str(self.text) if isinstance(each, str) else each == self.source for each in held)


class Cluster:
    """Everything, and what can happen in it next.

    :ivar operations: of users, in the order in which they were asked for
    :ivar log: what has happened, for who reads a failure
    :ivar commits: how many there were
    :ivar check: called after each commit
    :ivar has_audits: whether pool managers audit their servers.  What no server has caused by itself is to be right
        without
    :ivar has_late_calls: whether servers do what is asked of them after who has asked has given up
    """

    def __init__(self, database: SimulatedDatabase, clock: SimulatedClock, threshold: int = 66,
                 drivers: Sequence[str] = ('simulated',) * 4, deletes_on_removal: bool = True) -> None:
        """
        :param drivers: of each of :data:`SERVERS` and of :data:`RESERVE`
        :param deletes_on_removal: whether servers lose their zones with their section
        """
        database.reset()
        database.on_commit = self.on_commit
        self.check: Callable[[], None] = lambda: None
        self.has_audits = True
        self.has_late_calls = False
        self.commits = 0
        self._due_at: float | None = None
        self._is_unsettled: bool | None = None
        self.database = database
        self.clock = clock
        self.scheduler = Scheduler(clock)
        self.messages: list[Message] = []
        self.operations: list[UserOperation] = []
        self.log: list[str] = []
        self._turns = itertools.count()
        self._numbers = itertools.count(1)
        self._network = SimulatedProcess('network')
        self.settings = dataclasses.replace(SETTINGS, delete_zones_of_removed_servers=deletes_on_removal)
        self.servers = {key: SimulatedServer(key, driver, 53 + number, self.scheduler, 4 if number else 1,
                                             fetches_on_create=number == 1)
                        for number, (key, driver) in enumerate(zip((*SERVERS, RESERVE), drivers, strict=True))}
        self.pool = Pool(POOL, servers=tuple(self.servers[key].server for key in SERVERS),
                         threshold_percentage=threshold, catalog_zone=CATALOG_ZONE if 'catalog' in drivers else None)
        self.centrals = [self.new_central() for _ in range(2)]
        self.minidns = [self.new_minidns() for _ in range(2)]
        pool = self.centrals[0].service.find_pools(Context(all_projects=True))[0]
        self.centrals[0].service.update_pool(Context(all_projects=True),
                                             {'id': pool.id, 'name_servers': ['ns1.example.org.']})
        self.managers = [self.new_manager(SettingsMemory()) for _ in range(2)]

    def turn(self) -> int:
        return next(self._turns)

    def new_central(self) -> CentralProcess:
        return CentralProcess(self, SimulatedProcess(f'central {next(self._numbers)}'))

    def new_manager(self, cache: SettingsMemory) -> ManagerProcess:
        return ManagerProcess(self, SimulatedProcess(f'manager {next(self._numbers)}'), cache)

    def new_minidns(self) -> SimulatedMiniDns:
        return SimulatedMiniDns(self, SimulatedProcess(f'minidns {next(self._numbers)}'))

    @property
    def processes(self) -> list[SimulatedProcess]:
        return [each.process for each in (*self.centrals, *self.managers, *self.minidns)]

    def restart(self, number: int) -> None:
        """Kill a process, of those of :attr:`processes`, and start another in its place."""
        kind: list[Any]
        for kind, new in ((self.centrals, lambda former: self.new_central()),
                          (self.managers, lambda former: self.new_manager(former.cache)),
                          (self.minidns, lambda former: self.new_minidns())):
            if number < len(kind):
                self.scheduler.kill(kind[number].process)
                kind[number] = new(kind[number])
                return
            number -= len(kind)

    def states(self) -> dict[str, str]:
        """The states of the servers that the pool knows, by their ids."""
        return dict(self.database.rows('SELECT id, state FROM pool_servers ORDER BY id'))

    def change_members(self, what: str, server_id: str) -> None:
        """An operator takes a server out of the pool, which has the others then, or takes the one back that is out.

        :param what: 'section', of the configuration, which another can have in its place, or a command
        """
        if what == 'section':
            sections = {each.id: each for each in self.pool.servers}
            if sections.pop(server_id, None) is None or len(sections) < len(SERVERS) - 1:
                sections = {key: each.server for key, each in self.servers.items()
                            if key in sections or key == server_id}
            self.pool = dataclasses.replace(self.pool, servers=tuple(sections.values()))
            manager = self.managers[self.turn() % 2]
            self.scheduler.spawn(manager.process, 'reloads', manager.endpoint.reload)
            return
        out = [key for key, state in self.states().items() if state not in (ServerState.ACTIVE, ServerState.JOINING)]
        central = self.centrals[self.turn() % 2]
        command: Callable[..., Any] = getattr(central.service, f'{"resume" if out else what}_server')
        options = {'delete_zones': True} if what == 'drain' and not out else {}
        self.scheduler.spawn(central.process, f'operator: {what} {server_id[0]}', functools.partial(
            command, Context(all_projects=True), (out or [server_id])[0], **options))

    def heal(self) -> None:
        """From now on nothing is broken."""
        for process in self.processes:
            process.is_stopped = False
        for server in self.servers.values():
            server.hears_control = server.hears_dns = True
        self.drain()  # a command that puts a server into maintenance may be on its way
        for key, state in self.states().items():
            if state == ServerState.MAINTENANCE:
                self.centrals[0].service.resume_server(Context(all_projects=True), key)

    def end(self) -> None:
        """End all processes; nothing is looked at any more."""
        self.check = lambda: None
        for process in (*self.processes, self._network):
            self.scheduler.kill(process)

    # The network

    def send(self, text: str, deliver: Callable[[Fate], None],
             has_receiver: Callable[[], object] = lambda: True) -> None:
        current = self.scheduler.current
        if current is None or current.process.is_alive:
            self.messages.append(Message(text, deliver, has_receiver))

    def receivers(self, topic: str) -> list[tuple[SimulatedProcess, Any]]:
        """Who serves *topic* now."""
        endpoints = [(each.process, each.endpoint) for each in self.managers] \
            if topic == manager_rpc.topic(POOL) else [(each.process, each) for each in self.minidns]
        return [each for each in endpoints if not each[0].is_stopped]

    def handle_cast(self, topic: str, context: Context, method: str, arguments: dict[str, Any], fate: Fate) -> None:
        """One of those who serve a topic takes a message."""
        for _ in range(2 if fate is Fate.TWICE else 1):
            ready = self.receivers(topic)
            process, endpoint = ready[self.turn() % len(ready)]
            self.scheduler.spawn(process, method, functools.partial(getattr(endpoint, method), context, **arguments))

    def has_due_row(self) -> bool:
        """Whether a row can be claimed by a pool manager."""
        if self._due_at is None:
            times = [self.seconds_of(time) + later for query, later in _DUE.items()
                     for time, in self.database.rows(query) if time is not None]
            self._due_at = min(times, default=math.inf)
        return self._due_at <= self.clock.seconds

    def seconds_of(self, stored: str) -> float:
        """A time as the database has it, in the clock's seconds."""
        return (datetime.fromisoformat(stored).replace(tzinfo=timezone.utc) - self.clock.began).total_seconds()

    def has_unsettled(self) -> bool:
        """Whether a domain is neither ACTIVE nor DELETED."""
        if self._is_unsettled is None:
            self._is_unsettled = bool(self.database.rows(
                "SELECT id FROM domains WHERE status IN ('PENDING', 'ERROR') LIMIT 1"))
        return self._is_unsettled

    def on_commit(self) -> None:
        self._due_at = self._is_unsettled = None
        self.commits += 1
        self.check()

    # Users

    def ask(self, kind: str, name: str, at_once: bool = False, central: int | None = None,
            until: str | None = None) -> UserOperation:
        """A user asks one of the Centrals for something.

        :param at_once: whether it is done before anything else happens, unless it has to wait for that
        :param until: the step before which it is left then
        """
        number = len(self.operations)
        operation = UserOperation(kind, name, f'"{number}"', number)
        self.operations.append(operation)
        asked = self.centrals[self.turn() % 2 if central is None else central]
        task = self.scheduler.spawn(self._network, f'user {number} asks to {kind} {name}', self._carry_out, operation,
                                    asked)
        while at_once and not (operation.is_over or self.scheduler.waits(task)
                               or until is not None and task.point.startswith(until)):
            self.scheduler.resume(task)
        return operation

    def _carry_out(self, operation: UserOperation, central: CentralProcess) -> None:
        context = Context(request_id=f'req-{operation.number}', operation_id=new_id(), all_projects=True,
                          project_id='p')
        task = self.scheduler.current
        assert task is not None
        task.process = central.process
        try:
            answer = self._answer(operation, context, central.service)
            operation.told, operation.is_refused = answer, answer is None
        except ServiceUnavailable:
            pass
        except PoolError:
            operation.is_refused = True
        finally:
            operation.is_over = True

    def _answer(self, operation: UserOperation, context: Context, service: Central) -> Told | None:
        """What is answered; None when there is nothing to change or to delete."""
        name, owner, values = operation.name, f'www.{operation.name}', {'records': [operation.value]}
        if operation.kind == 'create':
            made = service.create_domain(
                context, {'name': name, 'email': 'hostmaster@example.com'},
                [{'name': owner, 'type': 'TXT', **values}, {'name': name, 'type': 'A', 'records': ADDRESSES}])
            operation.domain_id = made.id
            return _told_by(made)
        if operation.kind == 'restore':
            for deleted in service.find_deleted_domains(context, PageRequest({'name': name})):
                operation.domain_id = deleted.id
                return _told_by(service.restore_domain(context, deleted.id))
        for domain in service.find_domains(context, PageRequest({'name': name})):
            operation.domain_id = domain.id
            if operation.kind == 'delete':
                return _told_by(service.delete_domain(context, domain.id))
            if operation.kind == 'change':
                return _told_by(service.apply_changes(context, domain.id,
                                                      [RecordChange(owner, 'TXT', (operation.value,))]))
            if operation.kind == 'revert':
                return self._revert(operation, context, service, domain)
            for found in service.find_recordsets(context, domain.id, PageRequest({'name': owner, 'type': 'TXT'})):
                return _told_by_set(service.delete_recordset(context, domain.id, found.id)
                                    if operation.kind == 'remove' else
                                    service.update_recordset(context, domain.id, found.id, values))
            if operation.kind == 'edit':
                return _told_by_set(service.create_recordset(context, domain.id,
                                                             {'name': owner, 'type': 'TXT', **values}))
        return None

    def _revert(self, operation: UserOperation, context: Context, service: Central, domain: Domain) -> Told | None:
        newest, = service.find_versions(context, domain.id, 1)
        planned = service.plan_revert(context, domain.id, str(newest.former_serial))
        if not planned.changes:
            return None
        former, operation.value = operation.value, ''.join(planned.changes[0].records)
        try:
            return _told_by(service.revert_domain(context, domain.id, planned))
        except Refused:
            operation.value = former
            raise

    # What can happen

    def events(self) -> list[Event]:
        """What can happen now, in a fixed order, but for loops that have slept and would only look around."""
        return [event for event in self._events() if str(event.text).partition(': ')[2] not in _IDLE]

    def _events(self) -> Iterator[Event]:
        for task in self.scheduler.runnable():
            yield Event(task, functools.partial(self.scheduler.resume, task), task)
        for message in self.messages:
            if message.has_receiver():
                yield Event(message.text, functools.partial(self._deliver, message), message)
        for minidns in self.minidns:
            if not minidns.process.is_stopped:
                for query in minidns.loop.due():
                    yield Event(f'{minidns.process.name}: timer of {query.name} for {query.peer.id[0]}',
                                lambda fate, loop=minidns.loop, query=query: loop.run_timer_now(query), query)
        for server in self.servers.values():
            if server.hears_dns:
                for name in server.wants:
                    yield Event(f'{server.server.id[0]} wants {name}',
                                functools.partial(self._transfer, server, name), (server, name))

    def happen(self, event: Event, fate: Fate = Fate.WELL) -> None:
        self.log.append(f'{self.scheduler.ticks} {event.text}' + ('' if fate is Fate.WELL else f': {fate.value}'))
        self.scheduler.tick(event)
        event.happen(fate)

    def _deliver(self, message: Message, fate: Fate) -> None:
        if fate is Fate.LATE:
            return
        self.messages.remove(message)
        if fate is not Fate.FAILS:
            message.deliver(fate)

    def _transfer(self, server: SimulatedServer, name: str, fate: Fate) -> None:
        server.wants.pop(name, None)
        running = [each for each in self.minidns if not each.process.is_stopped]
        if running and fate is not Fate.FAILS:
            minidns = running[self.turn() % len(running)]
            self.scheduler.spawn(minidns.process, f'{server.server.id[0]} transfers {name}', minidns.transfer, server,
                                 name)

    def drain(self, held: Sequence[object] = (), until: str | None = None) -> Event | None:
        """Let everything happen that can, well and in order, at this very time.

        :param held: what waits, as for :meth:`Event.is_held`
        :param until: what is left to the caller: the first event with this in its text, if there is one
        """
        while True:
            events = (each for each in self._events() if not each.is_held(held))
            if until is not None:
                all_events = list(events)
                found = next((each for each in all_events if until in str(each.text)), None)
                if found is not None:
                    return found
                events = iter(all_events)
            event = next(events, None)
            if event is None:
                return None
            self.happen(event)

    def reach(self, text: str, held: Sequence[object] = (), seconds: float = 60) -> Event:
        """Let all go its way until something with *text* can happen, which is left to the caller."""
        end = self.clock.seconds + seconds
        while self.clock.seconds < end:
            found = self.drain(held, text)
            if found is not None:
                return found
            self.pass_time(max(0.25, self._next_time() - self.clock.seconds))
        raise AssertionError(f'there is no {text} within {seconds:g} s')

    def pass_time(self, seconds: float, late_calls: bool = False) -> None:
        """Move the clock on.

        :param late_calls: whether servers do what is on its way to them
        """
        self.clock.seconds += seconds
        for server in self.servers.values():
            server.look_at_catalog()
            for call in server.calls:
                if call.expires <= self.clock.seconds:
                    if (late_calls or self.has_late_calls) and server.hears_control:
                        call.carry_out()
                    else:
                        call.is_dropped = True

    def live(self, seconds: float, held: Sequence[object] = ()) -> None:
        """Let everything go its way for *seconds*, without faults, but for what is *held*, see :meth:`drain`."""
        end = self.clock.seconds + seconds
        while True:
            self.drain(held)
            left = end - self.clock.seconds
            if left < 0.001:
                return
            self.pass_time(min(left, max(0.25, self._next_time() - self.clock.seconds)))

    def _next_time(self) -> float:
        """When something comes due next."""
        self.has_due_row()
        assert self._due_at is not None
        times = [self._due_at, *(time for task in self.scheduler.tasks if not task.process.is_stopped
                                 for time in (task.wake, task.until))]
        for minidns in self.minidns:
            times += [query.wake_at - 1000.0 for query in minidns.loop.queries if query.wake_at is not None]
        return min((each for each in times if each > self.clock.seconds), default=self.clock.seconds + 60)


def _told_by(domain: Domain) -> Told:
    return Told(domain.id, domain.serial)


def _told_by_set(recordset: RecordSet) -> Told:
    records = [each for each in recordset.records if each.task is not Task.DELETE] or recordset.records
    return Told(recordset.domain_id, max(each.serial_number for each in records), records[0].data)
