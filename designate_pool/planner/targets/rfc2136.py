"""A server that takes DNS UPDATE (RFC 2136): read by AXFR, written by messages that say what has to be there before.

The invariant: a message changes nothing where somebody else was faster.  What is there already as it should be is done;
what somebody else changed fails alone, and the next plan mends it.  The zone gets its new serial with the last message,
and only when nothing failed.

A zone cannot be made or removed by RFC 2136: it has to be there.  To delete it is to empty it; and one that is empty
counts as new, so that its NS records, which somebody had to make up, may be changed.
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
from designate_pool.planner.transfer_in import ZoneNotThere, serial, serial_in, soa_question, transfer, unread
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone, required_records
from designate_pool.protocol.names_and_rdata import GENERATED
from designate_pool.protocol.rrset import RRset
from designate_pool.protocol.soa_rdata import serial_of
from designate_pool.protocol.tcp_client import TcpPeer, key_of
from designate_pool.serial import newer

#: How often the zone is read again when the server says that something is not as the plan has it.
ROUNDS = 4
#: Seconds to ask for the serials of all zones.
LISTING_SECONDS = 120.0

#: What a server says when something that a message requires is not so (RFC 2136 section 3.2).
MEANWHILE = frozenset({dns.rcode.NXDOMAIN, dns.rcode.YXDOMAIN, dns.rcode.NXRRSET, dns.rcode.YXRRSET})
_REFUSALS = {
    dns.rcode.REFUSED: 'the server refuses the update (REFUSED) and says why in its log: its configuration has to let '
                       'the key change all names and types of the zone, SOA and NS among them, or one of the records '
                       'is not to its liking',
    dns.rcode.NOTAUTH: 'the server is not the primary server of the zone (NOTAUTH)',
    dns.rcode.NOTZONE: 'the server says that a name is not inside the zone (NOTZONE)',
    dns.rcode.NOTIMP: 'the server takes no updates (NOTIMP)',
    dns.rcode.FORMERR: 'the server does not understand the update (FORMERR)',
}
_REASONS = {dns.rcode.REFUSED: Reason.UPDATE_REFUSED, dns.rcode.NOTAUTH: Reason.NOT_PRIMARY}


class Rfc2136Provider(ServerProvider):
    """
    :param host: the server's address or name
    :param key_name: of the TSIG key that transfers and updates are signed with; None for none
    :param key_secret: in Base64
    :param key_algorithm: ``hmac-sha256`` when None
    :param timeout: seconds for reading a zone, and for each message of an update
    :param update_port: where updates go, if not to *port*
    :param settings: those of :class:`~designate_pool.planner.providers.base.BaseProvider`
    :raises InvalidField: for what makes no key
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
        self._updated = TcpPeer(host, int(update_port or port), key)

    def plan(self, desired: Zone, processors: Sequence[BaseProcessor] = (), lenient: bool = False) -> Plan | None:
        seen = _Seen(f'{self.id} before all processors')
        plan = super().plan(desired, (seen, *processors), lenient)
        if plan is not None and not seen.contents:
            plan.exists = False
        return plan

    def create_zone(self, desired: Zone) -> None:
        """See that the server has the zone.

        :raises BackendRefused: when it has not
        """
        if serial(self._peer, desired.name, self.timeout) is None:
            raise BackendRefused(why=f'the server does not have the zone {desired.name}, and updates cannot make one '
                                     '(RFC 2136): create it there by hand, with a SOA and NS records, and let the key '
                                     'update and transfer it', reason=Reason.NOT_PRIMARY)

    def delete_zone(self, name: str) -> None:
        """Empty the zone, but for its SOA, its own NS records and the addresses of name servers inside it.

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
            result = _Applying(self, Plan(there, there.empty(), deletes, exists=True)).run()
            if not result.ok:
                raise BackendError(why=f'{name} is not emptied yet: {"; ".join(result.errors[:3])}')
        raise BackendError(why=f'{name} is not emptied yet: somebody else keeps adding records to it')

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        """Those of *names* that the server says it is an authority for; never all that it has."""
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
        self._updated.ask(soa_question('.'), self.timeout)

    def send(self, zone: str, message: Message) -> dns.rcode.Rcode:
        """What the server says to *message*: NOERROR, or one of :data:`MEANWHILE`.

        :raises BackendError: when it says anything else, or nothing
        """
        rcode = self._updated.ask(message.wire(zone), self.timeout).rcode()
        if rcode in _REFUSALS:
            raise BackendRefused(why=_REFUSALS[rcode], reason=_REASONS.get(rcode))
        if rcode != dns.rcode.NOERROR and rcode not in MEANWHILE:
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
        """A SOA is a change when it is newer: the server would ignore any other (RFC 2136 section 3.4.2.2)."""
        if change.record.type != 'SOA' or not (change.existing and change.new):
            return True
        return newer(serial_of(change.new[0]), serial_of(change.existing[0]))

    def _apply(self, plan: Plan) -> ApplyResult:
        """
        :raises BackendError: when nothing could be done at all
        """
        return _Applying(self, plan).run()


def _contents(zone: Zone) -> list[RRset]:
    """All but what a zone has to have."""
    kept = {each.key for each in required_records(zone)} | {f'{zone.name}\tSOA'}
    return [each for each in zone if each.key not in kept]


class _Seen(BaseProcessor):
    """Looks at the zone that was read, before others leave out of it what is not to be planned."""

    contents: Sequence[RRset] = ()

    def process_target_zone(self, existing: Zone, target: BaseProvider, lenient: bool = False) -> Zone:
        self.contents = _contents(existing)
        return existing


class _Applying:
    """A plan on its way: what of it is done, what failed, what is left."""

    def __init__(self, provider: Rfc2136Provider, plan: Plan) -> None:
        self._provider = provider
        self._zone = plan.zone
        self._total = len(plan.changes)
        self._soa = next((each for each in plan.changes if each.new and each.record.type == 'SOA'), None)
        self._left = {id(each): each for each in plan.changes if each is not self._soa}
        self._there = plan.existing.get(plan.zone, 'SOA')
        self._under_way: tuple[Change, ...] = ()
        self._done = 0
        self._failed = 0
        self._errors: list[str] = []

    def run(self) -> ApplyResult:
        """
        :raises BackendError: when nothing could be done at all
        """
        try:
            self._make()
        except BackendError as error:
            if not self._done and not self._failed:
                raise
            self._fail(self._under_way, str(error))
        return ApplyResult(self._done, self._failed, self._total - self._done - self._failed, tuple(self._errors))

    def _make(self) -> None:
        self._fail([each for each in self._left.values() if each.kind == 'Delete' and each.name == self._zone
                    and each.record.type in ('SOA', 'NS')], 'a server keeps the SOA and the NS records of a zone')
        loose: Sequence[Change] = ()
        for _ in range(ROUNDS):
            rcode = self._send(loose)
            if rcode == dns.rcode.NOERROR:
                return
            loose = self._look_again()
        self._fail(list(self._left.values()), f'the server says {dns.rcode.to_text(rcode)} again and again')

    def _send(self, loose: Sequence[Change]) -> dns.rcode.Rcode:
        """Send what is left, up to the first message that the server finds to be out of date.

        :raises BackendError: when the server refuses one, or says nothing
        """
        soa = None
        if self._soa is not None and not self._failed:
            soa = self._there or self._soa.new[0], self._soa.new[0]
        for message in messages(self._zone, list(self._left.values()), soa, loose):
            self._under_way = message.finished or ((message.begun,) if message.begun else ())
            rcode = self._provider.send(self._zone, message)
            if rcode != dns.rcode.NOERROR:
                return rcode
            self._finish(message.finished)
        self._under_way = ()
        if soa is not None:
            self._done, self._soa = self._done + 1, None
        return dns.rcode.NOERROR

    def _look_again(self) -> Sequence[Change]:
        """Read the zone, and take from what is left what is done and what cannot be done any more.

        :returns: when nothing at all has changed, what is left.  Then the server compares data otherwise than we do,
            and is asked only whether there is any.
        :raises BackendError: when it cannot be read
        """
        self._under_way = ()
        now = Zone(self._zone)
        self._provider.populate(now, target=True, lenient=True)
        self._there = now.get(self._zone, 'SOA')
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
            self._errors.append(f'{_called(failed)}: {why}')


def _called(failed: Collection[Change]) -> str:
    first = next(iter(failed))
    more = f' and {len(failed) - 1} more' if len(failed) > 1 else ''
    return f'{first.name} {"/".join(first.types)}{more}'
