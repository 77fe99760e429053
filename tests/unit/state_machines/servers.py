"""Simulated name servers: zones with their contents, transfers, and what goes wrong with a server."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

import dns.message
import dns.rdata
import dns.rdatatype

from designate_pool.backends.base import Backend, Call, Capabilities
from designate_pool.backends.catalog import Catalog
from designate_pool.backends.records import RecordBackend
from designate_pool.central.validation.requests import DEFAULT_TTL
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendUnreachable
from designate_pool.minidns.zones.ixfr import PackedDifference
from designate_pool.minidns.zones.packed_zone import PackedZone
from designate_pool.model import Answer, Domain, Server
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import ServerProvider
from designate_pool.planner.targets.fake import FakeProvider
from designate_pool.planner.zone.zone import Zone
from designate_pool.pool_manager.dispatch.zone_compare import Match, Ours, ZoneComparison
from designate_pool.protocol import wire, zonemd
from designate_pool.protocol.names_and_rdata import type_number
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.protocol.soa_rdata import serial_of
from designate_pool.serial import newer
from tests.unit.state_machines.simulation import Fate, Scheduler

#: The id of the domain that the present task feeds a server with.
FED = contextvars.ContextVar('FED', default='')

#: Records without the SOA: (owner, type, rdata).
Contents = frozenset[tuple[str, str, str]]
T = TypeVar('T')

#: The catalog zone of the pool, where a server reads it.
CATALOG_ZONE = 'catalog.invalid.'
#: Seconds after which such a server asks for it without a NOTIFY.
CATALOG_REFRESH = 60.0


@dataclasses.dataclass(slots=True)
class ServedZone:
    """A zone on a server.

    :ivar serial: None until the first transfer
    :ivar domain_id: of the domain that the contents are of
    :ivar created: the tick at which the server got it
    :ivar since: the tick at which this serial began to be served
    """

    created: int
    serial: int | None = None
    contents: Contents = frozenset()
    domain_id: str | None = None
    since: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class ServedPeriod:
    """A server has served *serial* of a domain from tick *since* to tick *until*."""

    domain_id: str
    serial: int
    since: int
    until: int


class SimulatedServer:
    """
    :param driver: a word of :data:`DRIVERS`: how it gets its zones
    :ivar hears_control, hears_dns: whether it can be reached so
    :ivar fed: the zones of a server that is fed by records
    :ivar members: the labels of the names in the catalog that it has read
    :ivar calls: driver calls that have not ended
    :ivar wants: names of zones that it is about to transfer
    :ivar history: what it has served, by the zone's name; the present is in *zones*
    :ivar faults: what it has seen that can not be, in words
    """

    def __init__(self, server_id: str, driver: str, port: int, scheduler: Scheduler, batch_size: int = 4,
                 fetches_on_create: bool = False) -> None:
        options = {'machine': self, 'batch_size': batch_size, 'audit_interval': 60.0}
        self.server = Server(server_id, driver, '192.0.2.1', port, max_in_flight=2, options=options)
        self.fetches_on_create = fetches_on_create
        self.scheduler = scheduler
        self.hears_control = self.hears_dns = True
        self.zones: dict[str, ServedZone] = {}
        self.calls: list[DriverCall] = []
        self.wants: dict[str, None] = {}
        self.history: dict[str, list[ServedPeriod]] = {}
        self.faults: list[str] = []
        self.fed: dict[str, Zone] = {}
        self.members: dict[str, str] = {}
        self._asked_for_catalog = 0.0
        self.wipe()

    def __repr__(self) -> str:
        return self.server.id  # it is part of the fingerprint of the server's settings

    def create(self, name: str) -> None:
        """A driver has it hold a zone."""
        if name not in self.zones:
            self.zones[name] = ServedZone(self.scheduler.ticks)
            if self.fetches_on_create or self.members:
                self.wants[name] = None

    def wipe(self) -> None:
        """It has no zones any more, and begins with the catalog if it reads one."""
        for name in list(self.zones):
            self.remove(name)
        self.members = {}
        if self.server.driver == 'catalog':
            self.zones[CATALOG_ZONE] = ServedZone(self.scheduler.ticks)
            self.wants[CATALOG_ZONE] = None

    def look_at_catalog(self) -> None:
        """Ask for the catalog when it is time."""
        now = self.scheduler.clock.seconds
        if CATALOG_ZONE in self.zones and now >= self._asked_for_catalog + CATALOG_REFRESH:
            self._asked_for_catalog = now
            self.wants[CATALOG_ZONE] = None

    def remove(self, name: str) -> None:
        """It holds a zone no more, by a driver or by itself."""
        self.fed.pop(name, None)
        zone = self.zones.pop(name, None)
        if zone is not None:
            self._close(name, zone)
        self.wants.pop(name, None)

    def notify(self, name: str) -> SoaReply | None:
        if not self.hears_dns:
            return None
        if name not in self.zones:
            return SoaReply(Answer.NO_ZONE, error='REFUSED')
        self.wants[name] = None
        return SoaReply(Answer.SERIAL, 0)

    def soa(self, name: str) -> SoaReply | None:
        if not self.hears_dns:
            return None
        zone = self.zones.get(name)
        if zone is None:
            return SoaReply(Answer.NO_ZONE, error='REFUSED')
        if zone.serial is None:
            return SoaReply(Answer.BAD, error='SERVFAIL')
        return SoaReply(Answer.SERIAL, zone.serial)

    def install(self, zone: ServedZone, sent: PackedZone) -> None:
        """Take a transfer, whole or a difference, as a secondary does: only a newer serial, all or nothing."""
        name = sent.name
        if self.zones.get(name) is not zone or (zone.serial is not None and not newer(sent.serial, zone.serial)):
            return
        records = list(_records(sent))
        if isinstance(sent, PackedDifference):
            if sent.client_serial != zone.serial:
                return
            contents = self._after(name, zone, records)
        else:
            contents = frozenset(record for record in records if record[1] != 'SOA')
        self._serve(name, zone, sent.serial, contents, sent.domain_id)
        if name == CATALOG_ZONE:
            self._follow_catalog(contents)

    def show(self, name: str, domain_id: str) -> None:
        """Serve what was written for a domain into :attr:`fed`, or what is left there."""
        fed = self.fed.get(name)
        if fed is None:
            self.remove(name)
            return
        zone = self.zones.setdefault(name, ServedZone(self.scheduler.ticks))
        soa, contents = fed.get(name, 'SOA'), frozenset(
            (each.name, each.type, rdata) for each in fed if each.type != 'SOA' for rdata in each.rdatas)
        serial = None if soa is None else serial_of(soa)
        if (serial, contents) != (zone.serial, zone.contents):
            self._serve(name, zone, serial, contents, domain_id)

    def _serve(self, name: str, zone: ServedZone, serial: int | None, contents: Contents, domain_id: str) -> None:
        self._close(name, zone)
        zone.serial, zone.contents, zone.domain_id = serial, contents, domain_id
        zone.since = self.scheduler.ticks

    def _follow_catalog(self, contents: Contents) -> None:
        """Have the zones that the catalog names; one whose label is another is a new one (RFC 9432 section 5.4)."""
        members = {rdata: owner for owner, rtype, rdata in sorted(contents) if rtype == 'PTR'}
        if len(members) < sum(rtype == 'PTR' for _, rtype, _ in contents):
            self.faults.append(f'{self.server.id[0]}: the catalog names a zone twice: {sorted(contents)}')
        for name in [name for name, label in self.members.items() if members.get(name) != label]:
            self.remove(name)
        self.members = members
        for name in members:
            self.create(name)

    def served(self, name: str, domain_id: str) -> Iterator[ServedPeriod]:
        """When it served which serials of a domain."""
        yield from (each for each in self.history.get(name, ()) if each.domain_id == domain_id)
        zone = self.zones.get(name)
        if zone is not None and zone.serial is not None and zone.domain_id == domain_id:
            yield ServedPeriod(domain_id, zone.serial, zone.since, self.scheduler.ticks)

    def last_absent(self, name: str) -> int:
        """The last tick at which it did not have the zone."""
        zone = self.zones.get(name)
        return self.scheduler.ticks if zone is None else zone.created

    def _close(self, name: str, zone: ServedZone) -> None:
        if zone.serial is not None and zone.domain_id is not None:
            self.history.setdefault(name, []).append(
                ServedPeriod(zone.domain_id, zone.serial, zone.since, self.scheduler.ticks))

    def _after(self, name: str, zone: ServedZone, records: list[tuple[str, str, str]]) -> Contents:
        """The contents after a difference, which has to fit."""
        contents, adds = set(zone.contents), True
        for record in records[1:-1]:
            if record[1] == 'SOA':
                adds = not adds
            elif adds:
                if record in contents:
                    self.faults.append(f'{self.server.id[0]}: a difference of {name} adds {record}, which is there')
                contents.add(record)
            elif record in contents:
                contents.remove(record)
            else:
                self.faults.append(f'{self.server.id[0]}: a difference of {name} deletes {record}, which is not there')
        return frozenset(contents)


def _records(sent: PackedZone) -> Iterator[tuple[str, str, str]]:
    question = wire.wire_of(sent.name) + b'\x00\x06\x00\x01'
    for count, octets in sent.bodies:
        head = wire.HEADER.pack(0, wire.QR | wire.AA, 1, count, 0, 0)
        message = dns.message.from_wire(head + question + octets, one_rr_per_rrset=True)
        for rrset in message.answer:
            yield rrset.name.to_text(), dns.rdatatype.to_text(rrset.rdtype), rrset[0].to_text()


@dataclasses.dataclass(eq=False, slots=True)
class DriverCall:
    """A driver's call that has not ended.

    :ivar expires: when its caller gives up, in the clock's seconds; the server does not do it later
    :ivar act: does what the call says
    :ivar is_done: whether the server has done it
    """

    act: Callable[[], Any]
    expires: float
    is_done: bool = False
    is_dropped: bool = False
    result: Any = None

    def carry_out(self) -> None:
        """The server does what the call says, once."""
        if not self.is_done:
            self.is_done = True
            self.result = self.act()


def call(machine: SimulatedServer, what: str, act: Callable[[], T]) -> T:
    """Have a server do something over its control channel."""
    scheduler = machine.scheduler
    made = DriverCall(act, scheduler.clock.seconds + machine.server.call_timeout)
    machine.calls.append(made)
    try:
        fate = scheduler.pause(f'calls {what} on {machine.server.id[0]}')
    finally:
        machine.calls.remove(made)
    if made.is_dropped or not machine.hears_control:
        raise BackendUnreachable(why='connection refused')
    if fate is Fate.FAILS:
        raise BackendError(why='it could not be done')
    made.carry_out()
    if fate in (Fate.UNHEARD, Fate.LATE):
        raise BackendUnreachable(why='the connection was lost')
    if fate is Fate.TWICE:
        scheduler.pause(f'hears of {what} on {machine.server.id[0]}')
    result: T = made.result
    return result


def ask(server: Server, names: Collection[str], *_: object) -> dict[str, SoaReply | None]:
    """In the place of :func:`designate_pool.backends.base.query_soa`."""
    machine: SimulatedServer = server.options['machine']
    fate = machine.scheduler.pause(f'asks for {", ".join(sorted(names))} on {server.id[0]}')
    replies = {name: machine.soa(name) for name in names}
    return dict.fromkeys(names) if fate in (Fate.FAILS, Fate.UNHEARD) else replies


def compare(server: Server, mine: Ours, *_: object) -> ZoneComparison:
    """In the place of :func:`designate_pool.pool_manager.dispatch.zone_compare.compare`."""
    machine: SimulatedServer = server.options['machine']
    fate = machine.scheduler.pause(f'compares {mine.name} on {server.id[0]}')
    zone = machine.zones.get(mine.name)
    if fate in (Fate.FAILS, Fate.UNHEARD) or not machine.hears_dns:
        return ZoneComparison(Match.SILENT, None, 'no answer')
    if zone is None or zone.serial is None:
        return ZoneComparison(Match.UNKNOWN, None, 'the transfer was refused')
    if zone.serial != mine.serial:
        match = Match.AHEAD if newer(zone.serial, mine.serial) else Match.ELSEWHERE
        return ZoneComparison(match, zone.serial, f'serves serial {zone.serial}')
    theirs = zonemd.DigestedZone(mine.contents.apex)
    for owner, rtype, rdata in zone.contents:
        theirs.add(wire.encode(owner), type_number(rtype), DEFAULT_TTL,
                   dns.rdata.from_text('IN', rtype, rdata).to_wire() or b'')
    is_same = all(rtype == wire.SOA for _, rtype in mine.contents.differences(theirs))
    return ZoneComparison(Match.SAME if is_same else Match.OTHER, zone.serial, 'the contents were compared')


class SimulatedDriver(Backend):
    """The driver of a simulated server that transfers."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._machine: SimulatedServer = server.options['machine']
        self.capabilities = Capabilities(fetches_on_create=self._machine.fetches_on_create,
                                         batch_size=server.options['batch_size'])

    def _create(self, domain: Domain, deadline: Deadline) -> None:
        call(self._machine, f'create {domain.name}', lambda: self._machine.create(domain.name))

    def _delete(self, domain: Domain, deadline: Deadline) -> None:
        call(self._machine, f'delete {domain.name}', lambda: self._machine.remove(domain.name))

    def _create_many(self, domains: Mapping[str, Domain], deadline: Deadline) -> list[BackendError | None]:
        return [_error_of(self._create, domain, deadline) for domain in domains]  # type: ignore[arg-type]

    def _delete_many(self, domains: Mapping[str, Domain], deadline: Deadline) -> list[BackendError | None]:
        return [_error_of(self._delete, domain, deadline) for domain in domains]  # type: ignore[arg-type]

    def _list(self, names: Collection[str], deadline: Deadline) -> tuple[Mapping[str, int | None], bool]:
        zones = self._machine.zones
        return call(self._machine, 'list', lambda: {name: zone.serial for name, zone in zones.items()}), True

    def _ping(self, deadline: Deadline) -> None:
        if not self._machine.hears_control:
            raise BackendUnreachable(why='connection refused')


class SimulatedRecordDriver(RecordBackend):
    """The driver of a simulated server that is fed by records."""

    def feed(self, domain: Domain) -> contextlib.AbstractContextManager[Call]:
        FED.set(domain.id)
        return super().feed(domain)

    def _new_provider(self) -> ServerProvider:
        return SimulatedProvider(self.server.options['machine'])


class SimulatedProvider(FakeProvider):
    """Writes into the zones of a simulated server."""

    def __init__(self, machine: SimulatedServer) -> None:
        super().__init__(machine.server.label)
        self._machine = machine
        self._zones = machine.fed

    def create_zone(self, desired: Zone) -> None:
        make = super().create_zone
        self._change('create', desired.name, lambda: make(desired))

    def delete_zone(self, name: str) -> None:
        remove = super().delete_zone
        self._change('delete', name, lambda: remove(name))

    def ping(self) -> None:
        if not self._machine.hears_control:
            raise BackendUnreachable(why='connection refused')

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        read = super()._populate
        return call(self._machine, f'read {zone.name}', lambda: read(zone, target, lenient))

    def _apply(self, plan: Plan) -> ApplyResult | None:
        write = super()._apply
        return self._change('change', plan.zone, lambda: write(plan))

    def _change(self, verb: str, name: str, act: Callable[[], T]) -> T:
        domain_id = FED.get()  # it may be carried out late, by another task

        def work() -> T:
            result = act()
            self._machine.show(name, domain_id)
            return result

        return call(self._machine, f'{verb} {name}', work)


#: The drivers of simulated servers, by their words; that of a server that reads the catalog is the real one.
DRIVERS: Mapping[str, type[Backend]] = {'simulated': SimulatedDriver, 'records': SimulatedRecordDriver,
                                        'catalog': Catalog}


def _error_of(act: Callable[[Domain, Deadline], None], domain: Domain, deadline: Deadline) -> BackendError | None:
    try:
        act(domain, deadline)
    except BackendError as error:
        return error
    return None
