"""A server that accepts DNS UPDATE (RFC 2136) as a target: read by AXFR, written by messages with prerequisites.

The invariant: a message changes nothing if somebody else has changed its RRsets meanwhile.  A change that is already
made counts as done.  One that conflicts with somebody else's fails alone, and the next plan includes it again.  The
zone gets its new serial with the last message, and only if no change failed.  If the server refuses a message, it is
divided, so that the error names the records that are refused and the others are made.

RFC 2136 cannot create or delete a zone, so the zone must exist.  To delete it means to empty it; and an empty zone
counts as new, so that the NS records with which it was created may be changed without force.

Each message makes some of the changes completely, if the zone has the RRsets that these changes expect; otherwise it
changes nothing.  Only of an RRset that is too large for that is required that it exists.  One message contains all of a
Replace, and all changes of the apex NS records with those of the name servers' addresses, since some servers (BIND)
refuse a zone whose name servers have no address.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import dns.exception
import dns.name
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.update

from designate_pool.errors import BackendError, BackendRefused
from designate_pool.model import Reason, some
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import BaseProcessor, ExistingRecorder, ServerProvider
from designate_pool.planner.sources.axfr import ZoneNotThere, transfer
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change, fits, is_done, rivals
from designate_pool.planner.zone.zone import Zone, required_records
from designate_pool.protocol.names_and_rdata import GENERATED
from designate_pool.protocol.rrset import RRset
from designate_pool.protocol.soa_exchange import serial_in, serial_over_tcp, soa_question
from designate_pool.protocol.soa_rdata import serial_of, with_serial
from designate_pool.protocol.tcp_client import TcpPeer, key_of
from designate_pool.serial import SPACE, newer

#: How often the plan is tried; after a prerequisite was not met, the zone is read again.
ROUNDS = 4
#: After how many refused changes the rest of the plan is not tried, and if none was made.
MOST_REFUSALS, MOST_REFUSALS_ALONE = 10, 3
#: Seconds for querying the serials of all zones.
LISTING_SECONDS = 120.0

#: The RCODEs for a prerequisite that is not met (RFC 2136 section 3.2).
PREREQUISITE_FAILED = frozenset({dns.rcode.NXDOMAIN, dns.rcode.YXDOMAIN, dns.rcode.NXRRSET, dns.rcode.YXRRSET})
_REFUSALS = {
    dns.rcode.REFUSED: 'the server refuses the update (REFUSED); its log says why. Either its configuration must allow '
                       'the key to change all names and types of the zone, including SOA and NS, or it does not accept '
                       'the record',
    dns.rcode.NOTAUTH: 'the server is not the primary server of the zone (NOTAUTH)',
    dns.rcode.NOTZONE: 'the server says that a name is not inside the zone (NOTZONE)',
    dns.rcode.NOTIMP: 'the server does not support updates (NOTIMP)',
    dns.rcode.FORMERR: 'the server does not understand the update (FORMERR)',
}
_REASONS = {dns.rcode.REFUSED: Reason.UPDATE_REFUSED, dns.rcode.NOTAUTH: Reason.NOT_PRIMARY}
#: Octets of a message for changes, and for one that is alone in its message.  The rest of 65535 is for the header, the
#: zone, a SOA and a signature.
ROOM, ROOM_ALONE = 63000, 64000
#: Types that must not exist when a CNAME replaces other data: a server would ignore the CNAME without an error.
RIVALS = ('A', 'AAAA', 'CAA', 'DS', 'HTTPS', 'MX', 'NAPTR', 'NS', 'PTR', 'SRV', 'SSHFP', 'SVCB', 'TLSA', 'TXT')
#: Octets of a record beside its owner and data: type, class, TTL, length.
_FIXED = 10
Data = tuple[dns.rdata.Rdata, ...]
_PLACEHOLDER = (dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.NS, 'placeholder.invalid.'),)


class Rfc2136Provider(ServerProvider):
    """
    :param key_name: of the TSIG key that signs transfers and updates; None for no key
    :param key_secret: in Base64
    :param key_algorithm: ``hmac-sha256`` when None
    :param timeout: seconds for reading a zone, and for each message of an update
    :param update_port: where updates go, if not to *port*
    :param settings: those of :class:`~designate_pool.planner.providers.base.BaseProvider`
    :raises InvalidField: for a key that is not valid
    """

    SUPPORTS_SOA = True

    def __init__(self, id: str, host: str, port: int = 53, key_name: str | None = None, key_secret: str | None = None,
                 key_algorithm: str | None = None, timeout: float = 15.0, update_port: int | None = None,
                 **settings: Any) -> None:
        super().__init__(id, **settings)
        key = key_of(key_name, key_secret, key_algorithm)
        self.timeout = float(timeout)
        self._peer = TcpPeer(host, int(port), key)
        self._update_peer = TcpPeer(host, int(update_port or port), key)

    def plan(self, desired: Zone, processors: Sequence[BaseProcessor] = (), lenient: bool = False) -> Plan | None:
        recorder = ExistingRecorder(f'{self.id} before all processors')
        plan = super().plan(desired, (recorder, *processors), lenient)
        if plan is not None and recorder.existing is not None and not _contents(recorder.existing):
            plan.exists = False
        return plan

    def create_zone(self, desired: Zone) -> None:
        """Check that the server has the zone; BackendRefused when it does not."""
        if serial_over_tcp(self._peer, desired.name, self.timeout) is None:
            raise BackendRefused(why=f'the server does not have the zone {desired.name}, and updates cannot make one '
                                     '(RFC 2136): create it there by hand, with a SOA and NS records, and let the key '
                                     'update and transfer it', reason=Reason.NOT_PRIMARY)

    def delete_zone(self, name: str) -> None:
        """Delete all records except for the SOA, the apex NS records and the addresses of name servers in the zone.

        The zone is read again afterwards: somebody else may have added records since it was read.
        """
        for number in range(ROUNDS):
            existing = Zone(name)
            if not self.populate(existing, target=True, lenient=True):
                return
            # A server that signs the zone keeps the records that it has generated.
            going = [rrset for rrset in _contents(existing) if not number or rrset.type not in GENERATED]
            if not going:
                return
            deletes = changes.ordered(changes.delete(rrset) for rrset in going)
            result = _UpdateRun(self, Plan(existing, existing.empty(), deletes, exists=True)).run()
            if not result.ok:
                raise BackendError(why=f'{name} is not emptied yet: {"; ".join(result.errors[:3])}')
        raise BackendError(why=f'{name} is not emptied yet: somebody else keeps adding records to it')

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        """Those of *names* for which the server is authoritative; it cannot list its other zones."""
        asked = {id(query): (name, query) for name in names for query in [soa_question(name)]}
        serials: dict[str, int | None] = {}
        for query, answer in self._peer.ask_each((query for _, query in asked.values()), LISTING_SECONDS):
            name = asked[id(query)][0]
            if answer.rcode() == dns.rcode.SERVFAIL:  # it has the zone, and cannot serve it now
                serials[name] = None
            elif (zone_serial := serial_in(answer, name)) is not None:
                serials[name] = zone_serial
        return serials, False

    def ping(self) -> None:
        self._update_peer.ask(soa_question('.'), self.timeout)

    def send(self, zone: str, message: Message) -> dns.rcode.Rcode:
        """Send *message*; the RCODE of the reply, NOERROR or one of :data:`PREREQUISITE_FAILED`.

        :raises BackendError: for any other reply, or none
        """
        rcode = self._update_peer.ask(message.wire(zone), self.timeout).rcode()
        if rcode in _REFUSALS:
            raise BackendRefused(why=_REFUSALS[rcode], reason=_REASONS.get(rcode))
        if rcode != dns.rcode.NOERROR and rcode not in PREREQUISITE_FAILED:
            raise BackendError(why=f'the server failed to update ({dns.rcode.to_text(rcode)}); its log says why',
                               reason=Reason.SERVFAIL if rcode == dns.rcode.SERVFAIL else None)
        return rcode

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        try:
            pairs = transfer(self._peer, zone.name, self.timeout)
        except ZoneNotThere:
            return False
        zone.add_pairs(pairs, lenient)
        return True

    def _include_change(self, change: Change) -> bool:
        """A SOA is a change only if it is newer; the server ignores any other (RFC 2136 section 3.4.2.2)."""
        if change.record.type != 'SOA' or not (change.existing and change.new):
            return True
        return newer(serial_of(change.new[0]), serial_of(change.existing[0]))

    def _apply(self, plan: Plan) -> ApplyResult:
        """Make the changes; BackendError when none could be tried."""
        return _UpdateRun(self, plan).run()


def _contents(zone: Zone) -> list[RRset]:
    """All records except those that every zone must have."""
    kept = {rrset.key for rrset in required_records(zone)} | {f'{zone.name}\tSOA'}
    return [rrset for rrset in zone if rrset.key not in kept]


class _UpdateRun:
    """The application of one plan: the changes that are done, failed, and left."""

    def __init__(self, provider: Rfc2136Provider, plan: Plan) -> None:
        self._provider = provider
        self._zone = plan.zone
        self._desired = plan.desired
        self._total = len(plan.changes)
        self._soa = next((change for change in plan.changes if change.new and change.record.type == 'SOA'), None)
        self._left = {id(change): change for change in plan.changes if change is not self._soa}
        self._existing_soa = plan.existing.get(plan.zone, 'SOA')
        self._in_flight: tuple[Change, ...] = ()
        #: Of one message, to find what is refused; None for no limit.
        self._most_changes: int | None = None
        self._refusals = 0
        self._done = self._failed = 0
        self._errors: list[str] = []

    def run(self) -> ApplyResult:
        """Send the changes, and the serial with the last of them; BackendError when none could be tried."""
        try:
            self._apply_changes()
        except BackendError as error:
            if not self._done and (not self._failed or self._refusals):
                raise
            if self._in_flight:
                self._fail(self._in_flight, str(error))
            else:  # the zone could not be read again
                self._errors.append(str(error))
        return ApplyResult(self._done, self._failed, self._total - self._done - self._failed, tuple(self._errors))

    def _apply_changes(self) -> None:
        self._fail([change for change in self._left.values() if change.kind == 'Delete' and change.name == self._zone
                    and change.record.type in ('SOA', 'NS')], 'a server keeps the SOA and the NS records of a zone')
        self._fail([change for change in self._left.values() if not _fits_a_message(self._zone, change)],
                   'it is too large for a DNS message')
        rounds, is_loose = 0, False
        while rounds < ROUNDS:
            try:
                rcode = self._send(is_loose)
            except BackendRefused as error:
                self._narrow(error)
                continue
            if rcode == dns.rcode.NOERROR:
                return
            rounds += 1
            is_loose = self._reread()
        answer = dns.rcode.to_text(rcode)
        self._fail(list(self._left.values()), f'the server still answers {answer} after {ROUNDS} tries')

    def _narrow(self, error: BackendRefused) -> None:
        """Have the next messages divide what was refused, or fail the change that was; *error* at the last of them."""
        refused = self._in_flight
        if error.reason is not Reason.UPDATE_REFUSED or not refused:
            raise error
        if len(refused) > 1 and self._most_changes != 1:
            self._most_changes = len(refused) // 2
            return
        self._most_changes = None
        self._refusals += 1
        self._fail(refused, '; '.join([error.kwargs['why'], *(
            cause for change in refused for cause in _causes(self._desired, change))]))
        if not self._done and (self._refusals == MOST_REFUSALS_ALONE or not self._left):
            raise BackendRefused(why='; '.join(self._errors), reason=error.reason)
        if self._refusals == MOST_REFUSALS:
            self._in_flight = ()
            raise error

    def _send(self, is_loose: bool) -> dns.rcode.Rcode:
        """Send what is left, up to the first message whose prerequisites are not met."""
        soa = None
        if self._soa is not None and not self._failed:
            soa = self._existing_soa or self._soa.new[0], self._soa.new[0]
        for message in messages(self._zone, list(self._left.values()), soa, is_loose, self._most_changes):
            self._in_flight = message.finished
            rcode = self._provider.send(self._zone, message)
            if rcode != dns.rcode.NOERROR:
                return rcode
            self._finish(message.finished)
            self._existing_soa = message.soa or self._existing_soa
        self._in_flight = ()
        if soa is not None:
            self._done, self._soa = self._done + 1, None
        return dns.rcode.NOERROR

    def _reread(self) -> bool:
        """Read the zone again, and remove from the changes left those that are done or in conflict.

        :returns: whether prerequisites must not contain data: if the zone is as expected, the server compares data in
            another way than we do
        """
        self._in_flight = ()
        now = Zone(self._zone)
        self._provider.populate(now, target=True, lenient=True)
        self._existing_soa = now.get(self._zone, 'SOA')
        done = [change for change in self._left.values() if is_done(now, change)]
        self._finish(done)
        stale = [change for change in self._left.values() if not fits(now, change)]
        for change in stale:
            beside = [rtype for rtype in rivals(now, change) if rtype not in change.types]
            self._fail([change], f'the server has {" and ".join(beside)} there, which a CNAME cannot be beside: '
                       'somebody else has added it, or the plan leaves it alone' if beside else
                       'somebody else changed it meanwhile')
        return not done and not stale

    def _finish(self, finished: Collection[Change]) -> None:
        for change in finished:
            del self._left[id(change)]
        self._done += len(finished)

    def _fail(self, failed: Collection[Change], why: str) -> None:
        for change in failed:
            del self._left[id(change)]
        self._failed += len(failed)
        if failed:
            names = some([f'{change.name} {"/".join(change.types)}' for change in failed], 1)
            self._errors.append(f'{names}: {why}')


def _causes(desired: Zone, change: Change) -> Iterator[str]:
    """What BIND refuses of a change unless its ``check-integrity`` is off: MX hosts in the zone without an address."""
    for host in {data.split()[-1] for rrset in change.new if rrset.type == 'MX' for data in rrset.rdatas}:
        types = {rrset.type for rrset in desired.at(host)}
        if desired.holds(host) and not types & {'A', 'AAAA'}:
            yield f'BIND takes no MX to {host}, which {"is a CNAME" if "CNAME" in types else "has no address"}'


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """The prerequisite and the update of one RRset in a message.

    :ivar type: ANY for all RRsets of the name
    :ivar needs: the data that must exist; empty if the RRset must not exist, None if it must exist with any data
    """

    name: dns.name.Name
    type: str
    needs: Data | None = ()
    whole: bool = False
    add: Data = ()
    drop: Data = ()
    ttl: int = 0

    @property
    def octets(self) -> int:
        """The most octets that it takes."""
        data = [*(self.needs or ()), *self.add, *self.drop]
        return (_length(self.name) + _FIXED) * (len(data) + (not self.needs) + self.whole) + sum(map(_length, data))


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """One UPDATE message.

    :ivar soa: the zone's new SOA; None if the server increments the serial
    """

    edits: tuple[Edit, ...]
    finished: tuple[Change, ...] = ()
    soa: RRset | None = None

    def wire(self, zone: str) -> dns.update.UpdateMessage:
        """The message, to be signed and sent."""
        made = dns.update.UpdateMessage(zone)
        for edit in self.edits:
            if edit.needs is None:
                made.present(edit.name, edit.type)
            elif edit.needs:
                made.present(edit.name, *edit.needs)
            elif edit.type == 'ANY':
                made.absent(edit.name)
            else:
                made.absent(edit.name, edit.type)
        for edit in self.edits:
            if edit.whole:
                made.delete(edit.name, edit.type)
        for edit in self.edits:
            if edit.add:
                made.add(edit.name, edit.ttl, *edit.add)
            if edit.drop:
                made.delete(edit.name, *edit.drop)
        if self.soa is not None:
            made.add(dns.name.from_text(self.soa.name), self.soa.ttl, *_data(self.soa))
        return made


def messages(zone: str, changes: Sequence[Change], soa: tuple[RRset, RRset] | None = None,
             is_loose: bool = False, most_changes: int | None = None) -> Iterator[Message]:
    """The messages that make *changes* in a zone, to be sent in this order.

    A server increments the serial with each message that has no SOA (RFC 2136 section 3.6), and ignores a SOA that is
    not newer (section 3.4.2.2).  So the messages before the last set the next serials, as far as there are some before
    the zone's new one, which it has only with the last message.

    :param soa: the existing SOA and the one after the last message
    :param is_loose: whether existing RRsets may have any data
    :param most_changes: of one message, but for changes that must be together
    """
    sent = _messages_of(zone, _groups(zone, changes), is_loose, most_changes or len(changes))
    if soa is None:
        yield from sent
        return
    serial, last = map(serial_of, soa)
    message = next(sent, Message(()))
    for following in sent:
        serial = (serial + 1) % SPACE
        yield dataclasses.replace(message, soa=with_serial(soa[1], serial)) if newer(last, serial) else message
        message = following
    yield dataclasses.replace(message, soa=soa[1])


def _groups(zone: str, changes: Sequence[Change]) -> list[tuple[Change, ...]]:
    """*changes* in the order of sending, in groups that must be in one message.

    MX records are last, since some servers (BIND) refuse one whose host has no address in the zone.
    """
    changes = sorted(changes, key=lambda change: any(rrset.type == 'MX' for rrset in change.new))
    apex = [change for change in changes if change.name == zone and 'NS' in change.types]
    servers = {data for change in apex for rrset in (*change.existing, *change.new) if rrset.type == 'NS'
               for data in rrset.rdatas}
    together = [change for change in changes if change in apex or change.name in servers]
    if not apex or len(together) == 1 or ROOM < sum(
            edit.octets for change in together for edit in _edits(zone, change, False)):
        return [(change,) for change in changes]
    kept = set(map(id, together))
    return [tuple(together), *((change,) for change in changes if id(change) not in kept)]


def _messages_of(zone: str, groups: Sequence[tuple[Change, ...]], is_loose: bool,
                 most_changes: int) -> Iterator[Message]:
    """The messages of *groups*, each with as many as it has room for."""
    edits: list[Edit] = []
    finished: list[Change] = []
    aliases: dict[str, bool] = {}
    taken = 0
    for group in groups:
        added = [edit for change in group for edit in _edits(zone, change, is_loose)]
        size = sum(edit.octets for edit in added)
        if size > ROOM:
            added = [edit for change in group for edit in _edits(zone, change, True)]
        # A server checks all prerequisites of a message before it makes any update (RFC 2136 section 3.2); a CNAME
        # requires that the name has nothing else, and other types that it has no CNAME.
        collides = any(change.name in aliases and (aliases[change.name] or 'CNAME' in change.types) for change in group)
        if edits and (taken + size > ROOM or len(finished) + len(group) > most_changes or collides):
            yield Message(tuple(edits), tuple(finished))
            edits, finished, aliases, taken = [], [], {}, 0
        edits += added
        finished += group
        aliases.update((change.name, aliases.get(change.name, False) or 'CNAME' in change.types) for change in group)
        taken += size
    if edits:
        yield Message(tuple(edits), tuple(finished))


def _edits(zone: str, change: Change, loose: bool) -> Iterator[Edit]:
    """The parts of one message that make *change*."""
    gone = {rrset.key: rrset for rrset in change.existing}
    name = dns.name.from_text(change.name)
    for new in change.new:
        old, own_name = gone.pop(new.key, None), dns.name.from_text(new.name)
        if old is not None and new.type == 'NS' and new.name == zone:
            yield from _own_ns(name, old, new, loose)
        else:
            yield Edit(own_name, new.type, () if old is None else None if loose else _data(old), whole=old is not None,
                       add=_data(new), ttl=new.ttl)
        if old is None and own_name != name:  # the mark of its owner
            yield Edit(own_name, 'CNAME')
    for old in gone.values():
        yield Edit(dns.name.from_text(old.name), old.type, None if loose else _data(old), whole=True)
    types = {rrset.type for rrset in change.new if rrset.name == change.name}
    if types and not change.existing:
        yield Edit(name, 'ANY' if 'CNAME' in types else 'CNAME')
    elif 'CNAME' in types and change.kind == 'Replace':
        own_types = {rrset.type for rrset in (*change.existing, *change.new) if rrset.name == change.name}
        yield from (Edit(name, rival) for rival in RIVALS if rival not in own_types)


def _own_ns(name: dns.name.Name, old: RRset, new: RRset, loose: bool) -> Iterator[Edit]:
    """A change of the apex NS records.

    A server ignores the deletion of the whole RRset, and of its last record (RFC 2136 section 3.4.2.4).  But all
    records must be deleted, since some servers (Knot) keep the TTL of existing ones.  So the message replaces them by a
    placeholder, and the placeholder by the new records.
    """
    before = _data(old)
    yield Edit(name, 'NS', None if loose else before, add=_PLACEHOLDER, drop=before, ttl=new.ttl)
    yield Edit(name, 'NS', None, add=_data(new), drop=_PLACEHOLDER, ttl=new.ttl)


def _fits_a_message(zone: str, change: Change) -> bool:
    texts = [text for rrset in (*change.existing, *change.new) for text in rrset.rdatas]
    if sum(len(change.name) + 30 + len(text) for text in texts) > ROOM_ALONE:  # the most, without compression
        try:
            Message(tuple(_edits(zone, change, True))).wire(zone).to_wire(max_size=ROOM_ALONE)
        except dns.exception.TooBig:
            return False
    return True


def _length(part: dns.name.Name | dns.rdata.Rdata) -> int:
    return len(part.to_wire() or b'')


def _data(rrset: RRset) -> Data:
    rtype = dns.rdatatype.from_text(rrset.type)
    return tuple(dns.rdata.from_text(dns.rdataclass.IN, rtype, text) for text in rrset.rdatas)
