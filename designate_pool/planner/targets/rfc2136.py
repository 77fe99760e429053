"""A server that accepts DNS UPDATE (RFC 2136) as a target: read by AXFR, written by messages with prerequisites.

The invariant: a message changes nothing if somebody else has changed its RRsets meanwhile.  A change that is already
made counts as done.  One that conflicts with somebody else's fails alone, and the next plan includes it again.  The
zone gets its new serial with the last message, and only if no change failed.

RFC 2136 cannot create or delete a zone, so the zone must exist.  To delete it means to empty it; and an empty zone
counts as new, so that the NS records with which it was created may be changed without force.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import dns.rcode

from designate_pool.errors import BackendError, BackendRefused
from designate_pool.model import Reason
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import BaseProcessor, BaseProvider, ServerProvider
from designate_pool.planner.targets.change_state import fits, is_done
from designate_pool.planner.targets.update_messages import Message, messages
from designate_pool.planner.transfer_in import ZoneNotThere, transfer, unread
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone, required_records
from designate_pool.protocol.names_and_rdata import GENERATED
from designate_pool.protocol.rrset import RRset
from designate_pool.protocol.soa_rdata import serial_of
from designate_pool.protocol.tcp_client import TcpPeer, key_of
from designate_pool.protocol.tcp_soa import serial, serial_in, soa_question
from designate_pool.serial import newer

#: How often the plan is tried; after a prerequisite was not met, the zone is read again.
ROUNDS = 4
#: Seconds for querying the serials of all zones.
LISTING_SECONDS = 120.0

#: The RCODEs for a prerequisite that is not met (RFC 2136 section 3.2).
PREREQUISITE_FAILED = frozenset({dns.rcode.NXDOMAIN, dns.rcode.YXDOMAIN, dns.rcode.NXRRSET, dns.rcode.YXRRSET})
_REFUSALS = {
    dns.rcode.REFUSED: 'the server refuses the update (REFUSED); its log says why. Either its configuration must allow '
                       'the key to change all names and types of the zone, including SOA and NS, or it does not accept '
                       'one of the records',
    dns.rcode.NOTAUTH: 'the server is not the primary server of the zone (NOTAUTH)',
    dns.rcode.NOTZONE: 'the server says that a name is not inside the zone (NOTZONE)',
    dns.rcode.NOTIMP: 'the server does not support updates (NOTIMP)',
    dns.rcode.FORMERR: 'the server does not understand the update (FORMERR)',
}
_REASONS = {dns.rcode.REFUSED: Reason.UPDATE_REFUSED, dns.rcode.NOTAUTH: Reason.NOT_PRIMARY}


class Rfc2136Provider(ServerProvider):
    """
    :param host: the server's address or name
    :param key_name: of the TSIG key that signs transfers and updates; None for no key
    :param key_secret: in Base64
    :param key_algorithm: ``hmac-sha256`` when None
    :param timeout: seconds for reading a zone, and for each message of an update
    :param update_port: where updates go, if not to *port*
    :param settings: those of :class:`~designate_pool.planner.providers.base.BaseProvider`
    :raises InvalidField: for a key that is not valid
    """

    SUPPORTS_SOA = True
    SUPPORTS_ROOT_NS = True
    SUPPORTS_MULTIVALUE_PTR = True

    def __init__(self, id: str, host: str, port: int = 53, key_name: str | None = None, key_secret: str | None = None,
                 key_algorithm: str | None = None, timeout: float = 15.0, update_port: int | None = None,
                 **settings: Any) -> None:
        super().__init__(id, **settings)
        key = key_of(key_name, key_secret, key_algorithm)
        self.timeout = float(timeout)
        self._peer = TcpPeer(host, int(port), key)
        self._update_peer = TcpPeer(host, int(update_port or port), key)

    def plan(self, desired: Zone, processors: Sequence[BaseProcessor] = (), lenient: bool = False) -> Plan | None:
        unprocessed = _UnprocessedContents(f'{self.id} before all processors')
        plan = super().plan(desired, (unprocessed, *processors), lenient)
        if plan is not None and not unprocessed.contents:
            plan.exists = False
        return plan

    def create_zone(self, desired: Zone) -> None:
        """Check that the server has the zone.

        :raises BackendRefused: when it does not
        """
        if serial(self._peer, desired.name, self.timeout) is None:
            raise BackendRefused(why=f'the server does not have the zone {desired.name}, and updates cannot make one '
                                     '(RFC 2136): create it there by hand, with a SOA and NS records, and let the key '
                                     'update and transfer it', reason=Reason.NOT_PRIMARY)

    def delete_zone(self, name: str) -> None:
        """Delete all records except for the SOA, the apex NS records and the addresses of name servers in the zone.

        The zone is read again afterwards: somebody else may have added records since it was read.
        """
        for number in range(ROUNDS):
            there = Zone(name)
            if not self.populate(there, target=True, lenient=True):
                return
            # A server that signs the zone keeps the records that it has generated.
            going = [each for each in _contents(there) if not number or each.type not in GENERATED]
            if not going:
                return
            deletes = changes.ordered(changes.delete(each) for each in going)
            result = _UpdateRun(self, Plan(there, there.empty(), deletes, exists=True)).run()
            if not result.ok:
                raise BackendError(why=f'{name} is not emptied yet: {"; ".join(result.errors[:3])}')
        raise BackendError(why=f'{name} is not emptied yet: somebody else keeps adding records to it')

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        """Those of *names* for which the server is authoritative; it cannot list its other zones."""
        asked = {id(query): (name, query) for name in names for query in [soa_question(name)]}
        found: dict[str, int | None] = {}
        for query, answer in self._peer.ask_each((query for _, query in asked.values()), LISTING_SECONDS):
            name = asked[id(query)][0]
            if answer.rcode() == dns.rcode.SERVFAIL:  # it has the zone, and cannot serve it now
                found[name] = None
            elif (there := serial_in(answer, name)) is not None:
                found[name] = there
        return found, False

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
            found = transfer(self._peer, zone.name, self.timeout)
        except ZoneNotThere:
            return False
        except BackendError as error:
            raise unread(self.id, error) from error
        zone.fill(found.items(), lenient=lenient)
        return True

    def _include_change(self, change: Change) -> bool:
        """A SOA is a change only if it is newer; the server ignores any other (RFC 2136 section 3.4.2.2)."""
        if change.record.type != 'SOA' or not (change.existing and change.new):
            return True
        return newer(serial_of(change.new[0]), serial_of(change.existing[0]))

    def _apply(self, plan: Plan) -> ApplyResult:
        """
        :raises BackendError: when no change could be tried
        """
        return _UpdateRun(self, plan).run()


def _contents(zone: Zone) -> list[RRset]:
    """All records except those that every zone must have."""
    kept = {each.key for each in required_records(zone)} | {f'{zone.name}\tSOA'}
    return [each for each in zone if each.key not in kept]


class _UnprocessedContents(BaseProcessor):
    """Notes the contents of the zone as it was read, before other processors remove records from it."""

    contents: Sequence[RRset] = ()

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        self.contents = _contents(existing)
        return existing


class _UpdateRun:
    """The application of one plan: the changes that are done, failed, and left."""

    def __init__(self, provider: Rfc2136Provider, plan: Plan) -> None:
        self._provider = provider
        self._zone = plan.zone
        self._total = len(plan.changes)
        self._soa = next((each for each in plan.changes if each.new and each.record.type == 'SOA'), None)
        self._left = {id(each): each for each in plan.changes if each is not self._soa}
        self._existing_soa = plan.existing.get(plan.zone, 'SOA')
        self._in_flight: tuple[Change, ...] = ()
        self._done = 0
        self._failed = 0
        self._errors: list[str] = []

    def run(self) -> ApplyResult:
        """
        :raises BackendError: when no change could be tried
        """
        try:
            self._apply_changes()
        except BackendError as error:
            if not self._done and not self._failed:
                raise
            self._fail(self._in_flight, str(error))
        return ApplyResult(self._done, self._failed, self._total - self._done - self._failed, tuple(self._errors))

    def _apply_changes(self) -> None:
        self._fail([each for each in self._left.values() if each.kind == 'Delete' and each.name == self._zone
                    and each.record.type in ('SOA', 'NS')], 'a server keeps the SOA and the NS records of a zone')
        loose: Sequence[Change] = ()
        for _ in range(ROUNDS):
            rcode = self._send(loose)
            if rcode == dns.rcode.NOERROR:
                return
            loose = self._reread()
        answer = dns.rcode.to_text(rcode)
        self._fail(list(self._left.values()), f'the server still answers {answer} after {ROUNDS} tries')

    def _send(self, loose: Sequence[Change]) -> dns.rcode.Rcode:
        """Send what is left, up to the first message whose prerequisites are not met.

        :raises BackendError: when the server refuses a message, or does not answer
        """
        soa = None
        if self._soa is not None and not self._failed:
            soa = self._existing_soa or self._soa.new[0], self._soa.new[0]
        for message in messages(self._zone, list(self._left.values()), soa, loose):
            self._in_flight = message.finished or ((message.begun,) if message.begun else ())
            rcode = self._provider.send(self._zone, message)
            if rcode != dns.rcode.NOERROR:
                return rcode
            self._finish(message.finished)
        self._in_flight = ()
        if soa is not None:
            self._done, self._soa = self._done + 1, None
        return dns.rcode.NOERROR

    def _reread(self) -> Sequence[Change]:
        """Read the zone again, and remove from the changes left those that are done or in conflict.

        :returns: the changes whose prerequisites must not contain data: all that are left if the zone is as expected,
            since the server then compares data in another way than we do; otherwise none
        :raises BackendError: when the zone cannot be read
        """
        self._in_flight = ()
        now = Zone(self._zone)
        self._provider.populate(now, target=True, lenient=True)
        self._existing_soa = now.get(self._zone, 'SOA')
        done = [each for each in self._left.values() if is_done(now, each)]
        self._finish(done)
        stale = [each for each in self._left.values() if not fits(now, each)]
        self._fail(stale, 'somebody else changed it meanwhile')
        return () if done or stale else list(self._left.values())

    def _finish(self, finished: Collection[Change]) -> None:
        for each in finished:
            del self._left[id(each)]
        self._done += len(finished)

    def _fail(self, failed: Collection[Change], why: str) -> None:
        for each in failed:
            del self._left[id(each)]
        self._failed += len(failed)
        if failed:
            self._errors.append(f'{_names_of(failed)}: {why}')


def _names_of(failed: Collection[Change]) -> str:
    first = next(iter(failed))
    more = f' and {len(failed) - 1} more' if len(failed) > 1 else ''
    return f'{first.name} {"/".join(first.types)}{more}'
