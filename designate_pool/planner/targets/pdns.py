"""PowerDNS Authoritative as a primary server whose zones are written through its HTTP API.

The invariant: a zone has the pool's serial only if it has all records that belong to it.  A zone is created with all
its records in one request, so that it is never served without them; if they do not fit into one, or one is refused, it
is created with the serial before and no records.  All changes go in one request together with the new serial, which
PowerDNS carries out completely or not at all; if they do not fit into one request, or a record is refused, the SOA goes
with the last request, and only if everything else succeeded.

PowerDNS refuses a whole request because of one bad record.  That record is found by its name in the error message, or
by halving the request, and the others are sent without it.

Disabled records are not served, so plans do not see them; they and comments are kept when the RRset is changed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from designate_pool import serial
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, InvalidField, SourceError
from designate_pool.model import Reason
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import ServerProvider
from designate_pool.planner.targets import pdns_rdata
from designate_pool.planner.targets.pdns_apply import (SURE_SIZE, Entry, HeldRRset, PdnsApply, announced, entry, held,
                                                       soa_to_write)
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone
from designate_pool.powerdns import PdnsAnswer, PdnsApi, PdnsServer, zone_path
from designate_pool.protocol.soa_rdata import serial_of, with_serial

#: The values of the option *kind*, and the API's names for them that every version accepts.
KINDS = {'native': 'Native', 'master': 'Master', 'primary': 'Master'}

#: The values of SOA-EDIT-API with which PowerDNS increments the serial itself.
INCREMENTING = frozenset({'DEFAULT', 'INCREASE', 'EPOCH', 'SOA-EDIT', 'SOA-EDIT-INCREASE'})

#: Seconds for listing all zones of a server, which may have a million.
LISTING_SECONDS = 120.0
#: The part of ``webserver-max-bodysize`` that is used: it may count the head of the request and escapes too.
USABLE = 0.9


class PdnsProvider(ServerProvider):
    """A PowerDNS Authoritative Server.

    :param api_url: the URL of the API, without ``/api/v1``; made of *host* and *port* when not given
    :param api_key: the ``api-key`` of its ``pdns.conf``
    :param server_id: its id in the API
    :param ca_file: the certificate authorities for an ``https`` URL; those of the system when not given
    :param timeout: seconds for one request
    :param kind: of the zones that are created: ``Native``, or ``Master`` (``Primary``) if they have secondaries
    :param soa_edit_api: how PowerDNS increments the serial of a zone that is created; when not given, not at all if the
        desired zone has a SOA, else ``DEFAULT``
    :param options: of :class:`~designate_pool.planner.providers.base.BaseProvider`
    :raises InvalidField: for values that cannot be used
    """

    SUPPORTS = pdns_rdata.TYPES
    SUPPORTS_SOA = True

    def __init__(self, id: str, api_key: str, api_url: str | None = None, host: str | None = None, port: int = 8081,
                 server_id: str = 'localhost', ca_file: str | None = None, timeout: float = 10.0, kind: str = 'Native',
                 soa_edit_api: str | None = None, **options: Any) -> None:
        super().__init__(id, **options)
        if not api_url and not host:
            raise InvalidField(field='api_url', why='it must be given, or host')
        if not api_key:
            raise InvalidField(field='api_key', why='it must be given')
        if kind.lower() not in KINDS:
            raise InvalidField(field='kind', why=f"'{kind}' is none of Native, Master, Primary")
        shown = f'[{host}]' if host and ':' in host else host
        self.timeout = timeout
        self._server = PdnsServer(PdnsApi(api_url or f'http://{shown}:{port}', api_key, ca_file), server_id)
        self._kind = KINDS[kind.lower()]
        self._soa_edit_api = soa_edit_api

    def apply(self, plan: Plan) -> ApplyResult:
        if not plan.exists and not self.apply_disabled and self._create_complete(plan):
            return ApplyResult(applied=len(plan.changes))
        return super().apply(plan)

    def create_zone(self, desired: Zone) -> None:
        rrsets = [entry(each) for each in (announced(desired), desired.root_ns) if each is not None]
        self._create(desired, rrsets)

    def _create_complete(self, plan: Plan) -> bool:
        """Create the zone of *plan* with all its records.

        :returns: False, with nothing changed, if it exists or cannot be created by one request
        """
        if self._increment(plan.desired).upper() in INCREMENTING:
            return False
        entries, size = list[Entry](), 0
        for each in (new for change in plan.changes for new in change.new):
            entries.append(entry(each))
            size += len(json.dumps(entries[-1])) + 2  # with a comma and a space
            if size > SURE_SIZE:
                return False
        try:
            if not self._create(plan.desired, entries):
                return False
        except BackendRefused:  # because of one record, or of something that is told by the next request
            return False
        if self._kind != KINDS['native']:
            self._notify(plan.zone)
        return True

    def _create(self, desired: Zone, entries: Sequence[Entry]) -> bool:
        """Create a zone with these records; False, if it exists."""
        return self._server.create_zone(desired.name, {
            'kind': self._kind, 'nameservers': [], 'soa_edit_api': self._increment(desired), 'rrsets': entries},
            KINDS, self._deadline()) is None

    def _increment(self, desired: Zone) -> str:
        """The SOA-EDIT-API of a zone that is created."""
        if self._soa_edit_api is not None:
            return self._soa_edit_api
        return 'DEFAULT' if desired.get(desired.name, 'SOA') is None else ''

    def _notify(self, name: str) -> None:
        """Notify the secondaries of a zone, which PowerDNS would do only within xfr-cycle-interval."""
        error = self._server.start('notify', name, self._deadline())
        if error is not None:
            self.log.info('%s: notify %s: %s', self.id, name, error)

    def delete_zone(self, name: str) -> None:
        self._server.delete_zone(name, KINDS, self._deadline())

    def zones(self, names: Collection[str]) -> tuple[Mapping[str, int | None], bool]:
        return {name: found for name, kind, found in self._listed() if kind in KINDS}, True

    def list_zones(self) -> list[str]:
        return sorted(name for name, _, _ in self._listed())

    def ping(self) -> None:
        self._server.check_identity(self._deadline())

    def settings(self) -> dict[str, str]:
        """The server's own settings, by name."""
        return self._server.settings(self._deadline())

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        given = self._server.zone(zone.name, self._deadline(), KINDS if target else (), with_rrsets=True)
        if given is None:
            return False
        found = [each.rrset for each in self._held(given, target) if each.rrset is not None]
        if len(zone):
            for into in (zone.copy(), zone):  # add all records, or raise and add none
                for each in found:
                    into.add_record(each, lenient=lenient)
        else:
            zone.fill(((each.key, each.packed) for each in found), lenient=lenient)
        return True

    def _include_change(self, change: Change) -> bool:
        """Leave out a change of the SOA that would only set the serial back."""
        if change.record.type != 'SOA' or not change.existing or not change.new:
            return True
        old, new = change.existing[0], change.new[0]
        return not (serial.newer(serial_of(old), serial_of(new)) and with_serial(old, serial_of(new)) == new)

    def _apply(self, plan: Plan) -> ApplyResult:
        given = self._server.zone(plan.zone, self._deadline(), KINDS, with_rrsets=True)
        if given is None:
            raise _zone_missing(plan.zone)
        soa = f'{plan.zone}\tSOA'
        keys = {soa, *(each.key for change in plan.changes for each in (*change.existing, *change.new))}
        there = {each.key: each for each in self._held(given, True, keys)}
        increment = str(given.get('soa_edit_api')).upper()
        is_incremented = increment in INCREMENTING
        current = there[soa].rrset if soa in there else None
        result = PdnsApply(plan, there, soa_to_write(plan, current, is_incremented),
                           lambda entries: self._patch(plan.zone, entries), self._most_octets).run()
        if result.applied and str(given['kind']).lower() != 'native':
            self._notify(plan.zone)
        return self._check_serial(plan, result, increment) if result.ok and is_incremented else result

    def _check_serial(self, plan: Plan, result: ApplyResult, increment: str) -> ApplyResult:
        """*result*; a failure if PowerDNS has incremented the serial to an older one than the plan's."""
        wanted = plan.desired.get(plan.zone, 'SOA')
        given = self._server.zone(plan.zone, self._deadline(), KINDS)
        if wanted is None or given is None or serial.at_least(given['serial'], serial_of(wanted)):
            return result
        why = (f"the zone's SOA-EDIT-API is {increment}, which set the serial to {given['serial']} instead of"
               f' {serial_of(wanted)}; on its host: pdnsutil set-meta {plan.zone.rstrip(".")} SOA-EDIT-API OFF')
        return ApplyResult(max(result.applied - 1, 0), 1, 0, (why,))

    def _patch(self, zone: str, entries: Sequence[Entry]) -> PdnsAnswer:
        """Write all *entries*; none, if the answer is a refusal."""
        answer = self._server.ask('PATCH', zone_path(zone), self._deadline(), {'rrsets': entries})
        if answer.status == 404:
            raise _zone_missing(zone)
        if answer.status not in (204, 413, 422):
            raise self._server.trouble(f'change {zone}', answer)
        return answer

    def _most_octets(self) -> int:
        megabytes = self.settings().get('webserver-max-bodysize', '')
        return max(SURE_SIZE, int(int(megabytes) * (1 << 20) * USABLE)) if megabytes.isdecimal() else SURE_SIZE

    def _listed(self) -> Iterator[tuple[str, str, int | None]]:
        return self._server.zones(Deadline(max(self.timeout, LISTING_SECONDS)))

    def _held(self, given: Mapping[str, Any], target: bool, keys: Collection[str] | None = None) -> Iterator[HeldRRset]:
        """The RRsets of a zone, but for types that are left alone."""
        try:
            with self._server.parsing():
                yield from held(given['rrsets'], pdns_rdata.to_rdata_or_marked if target else pdns_rdata.to_rdata, keys)
        except InvalidField as error:
            raise SourceError(source=self.id, why=f'{given.get("name")}: {error}') from error

    def _deadline(self) -> Deadline:
        return Deadline(self.timeout)


def _zone_missing(name: str) -> BackendError:
    return BackendError(why=f'the server does not have the zone {name} any more', reason=Reason.NO_ZONE)
