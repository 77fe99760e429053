"""Simulated name servers: zones with their contents, transfers, and what goes wrong with a server."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping

import dns.message
import dns.rdatatype

from designate_pool.backends.base import Backend
from designate_pool.backends.capabilities import Capabilities
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendUnreachable
from designate_pool.minidns.zones.ixfr import PackedDifference
from designate_pool.minidns.zones.packing import PackedZone, StreamedZone
from designate_pool.model import Answer, Domain, Server
from designate_pool.protocol import wire
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.serial import newer
from tests.unit.state_machines.simulation import Fate, Scheduler

#: Records without the SOA: (owner, type, rdata).
Contents = frozenset[tuple[str, str, str]]


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
    :ivar hears_control, hears_dns: whether it can be reached so
    :ivar calls: driver calls that have not ended
    :ivar wants: names of zones that it is about to transfer
    :ivar history: what it has served, by the zone's name; the present is in *zones*
    :ivar faults: what it has seen that can not be, in words
    """

    def __init__(self, server: Server, scheduler: Scheduler, fetches_on_create: bool) -> None:
        self.server = server
        self.fetches_on_create = fetches_on_create
        self.scheduler = scheduler
        self.hears_control = self.hears_dns = True
        self.zones: dict[str, ServedZone] = {}
        self.calls: list[DriverCall] = []
        self.wants: dict[str, None] = {}
        self.history: dict[str, list[ServedPeriod]] = {}
        self.faults: list[str] = []

    def create(self, name: str) -> None:
        """A driver has it hold a zone."""
        if name not in self.zones:
            self.zones[name] = ServedZone(self.scheduler.ticks)
            if self.fetches_on_create:
                self.wants[name] = None

    def remove(self, name: str) -> None:
        """It holds a zone no more, by a driver or by itself."""
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

    def install(self, zone: ServedZone, sent: PackedZone | StreamedZone) -> None:
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
        self._close(name, zone)
        zone.serial, zone.contents, zone.domain_id = sent.serial, contents, sent.domain_id
        zone.since = self.scheduler.ticks

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


def _records(sent: PackedZone | StreamedZone) -> Iterator[tuple[str, str, str]]:
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
    :ivar is_done: whether the server has done it
    """

    verb: str
    domain: Domain
    expires: float
    is_done: bool = False
    is_dropped: bool = False


class SimulatedDriver(Backend):
    """The driver of a simulated server in one process."""

    def __init__(self, machine: SimulatedServer, batch_size: int = 1) -> None:
        super().__init__(machine.server)
        self.machine = machine
        self.capabilities = Capabilities(fetches_on_create=machine.fetches_on_create, batch_size=batch_size)

    def _create(self, domain: Domain, deadline: Deadline) -> None:
        self._ask('create', domain)

    def _delete(self, domain: Domain, deadline: Deadline) -> None:
        self._ask('delete', domain)

    def _create_many(self, domains: Mapping[str, Domain], deadline: Deadline) -> list[BackendError | None]:
        return [self._one('create', domain) for domain in domains]  # type: ignore[arg-type]

    def _delete_many(self, domains: Mapping[str, Domain], deadline: Deadline) -> list[BackendError | None]:
        return [self._one('delete', domain) for domain in domains]  # type: ignore[arg-type]

    def _ping(self, deadline: Deadline) -> None:
        if not self.machine.hears_control:
            raise BackendUnreachable(why='connection refused')

    def _one(self, verb: str, domain: Domain) -> BackendError | None:
        try:
            self._ask(verb, domain)
        except BackendError as error:
            return error
        return None

    def _ask(self, verb: str, domain: Domain) -> None:
        machine, scheduler = self.machine, self.machine.scheduler
        call = DriverCall(verb, domain, scheduler.clock.seconds + machine.server.call_timeout)
        machine.calls.append(call)
        try:
            fate = scheduler.pause(f'calls {verb} {domain.name} on {machine.server.id[0]}')
        finally:
            machine.calls.remove(call)
        if call.is_dropped or not machine.hears_control:
            raise BackendUnreachable(why='connection refused')
        if fate is Fate.FAILS:
            raise BackendError(why='it could not be done')
        carry_out(machine, call)
        if fate in (Fate.UNHEARD, Fate.LATE):
            raise BackendUnreachable(why='the connection was lost')
        if fate is Fate.TWICE:
            scheduler.pause(f'hears of {verb} {domain.name} on {machine.server.id[0]}')


def carry_out(machine: SimulatedServer, call: DriverCall) -> None:
    """The server does what a call says, once."""
    if not call.is_done:
        call.is_done = True
        act: Callable[[str], None] = machine.create if call.verb == 'create' else machine.remove
        act(call.domain.name)
