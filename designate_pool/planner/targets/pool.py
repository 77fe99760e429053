"""A pool of designate-pool as a source and a target, over its HTTP API.

The invariant: a plan is applied in one request with one serial, and only if the zone still has the serial at which it
was read; otherwise nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple, TypeVar

import dns.rdatatype

from designate_pool.errors import ApiRefused, ApiUnreachable, OverQuota, PlanMoved, SourceError
from designate_pool.planner import master
from designate_pool.planner.plan.plan import ApplyResult, Plan
from designate_pool.planner.providers.base import BaseProvider
from designate_pool.planner.providers.pool_api import PoolApi
from designate_pool.planner.zone.changes import Change, is_done
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol import soa_rdata
from designate_pool.protocol.names_and_rdata import GENERATED, lies_in
from designate_pool.protocol.rules import refused_type

T = TypeVar('T')
DEFAULT_URL = 'http://127.0.0.1:9001'
#: Types of errors of a zone that has changed since it was read, beside those of what is not there.
_MOVED = ('serial_moved', 'duplicate_zone', 'duplicate_recordset', 'domain_being_deleted', 'lost_race')
#: Of a zone that cannot be read: a secondary one whose masters are not reached, or one larger than its quota.
NOT_EXPORTED = ('no_contents', OverQuota.type)
#: Of a request that is refused whatever its changes are: the token, the rate.
_NOT_THE_CHANGES = (401, 429)


class KeptZone(NamedTuple):
    """The contents of a zone at a serial; *pairs* must not be changed."""

    id: str
    serial: int
    pairs: Mapping[str, str]


class PoolProvider(BaseProvider):
    """The zones of a pool.

    The pool's settings determine the NS records of the apex, so given ones are left out.

    :param url: of the API, without a path
    :param timeout: seconds for one request
    :param email: of zones that it creates; ``hostmaster`` at the zone if None
    :param root_ns_warnings: whether to log that given NS records of the apex are left out
    :param token: for authentication; that of the environment if None
    :param kept: a cache of contents by zone, for several providers of one pool; a zone that still has its serial is not
        read again
    :param options: of :class:`~designate_pool.planner.providers.base.BaseProvider`
    """

    SUPPORTS_ROOT_NS = False

    def __init__(self, id: str, url: str = DEFAULT_URL, timeout: float = 90.0, email: str | None = None,
                 root_ns_warnings: bool = False, token: str | None = None,
                 kept: MutableMapping[str, KeptZone] | None = None, **options: Any) -> None:
        super().__init__(id, root_ns_warnings=root_ns_warnings, **options)
        self._kept = kept
        #: Zones as they were listed, until they are read.
        self._listed: dict[str, dict[str, Any]] = {}
        self._api = PoolApi(url, timeout, token)
        self._email = email
        #: The id and serial of each zone, as it was last read to be planned for.
        self._read: dict[str, tuple[str, int]] = {}
        #: Each of them as the API showed it then.
        self._shown: dict[str, dict[str, Any]] = {}

    @property
    def url(self) -> str:
        """The URL of the API."""
        return self._api.url

    @property
    def token(self) -> str | None:
        """The token for authentication."""
        return self._api.token

    def _supports_type(self, rtype: str) -> bool:
        return rtype not in GENERATED and rtype != 'SOA' and refused_type(dns.rdatatype.from_text(rtype)) is None

    def list_zones(self) -> list[str]:
        zones = {zone['name'].lower(): zone for zone in self._ask(self._api.zones)}
        if self._kept is not None:
            self._listed = zones
            for gone in self._kept.keys() - zones.keys():
                self._kept.pop(gone, None)
        return list(zones)

    def ping(self) -> None:
        """Ask whether the API answers; SourceError when it cannot be reached, or refuses."""
        self._ask(self._api.ping)

    def close(self) -> None:
        self._api.close()

    def _populate(self, zone: Zone, target: bool, lenient: bool) -> bool:
        shown = self._listed.pop(zone.name, None) or self._ask(lambda: self._api.zone(zone.name))
        if shown is None:
            self._read.pop(zone.name, None)
            return False
        if shown['action'] == 'DELETE':
            raise SourceError(source=self.id, why=f'{zone.name} is being deleted; try again when it is gone')
        contents = self._contents(zone, shown['id'], shown['serial'])
        zone.add_pairs(dict(contents.pairs), lenient)
        if target:
            self._read[zone.name] = contents.id, contents.serial
            self._shown[zone.name] = shown
        return True

    def _contents(self, zone: Zone, zone_id: str, serial: int) -> KeptZone:
        kept = None if self._kept is None else self._kept.get(zone.name)
        if kept is not None and (kept.id, kept.serial) == (zone_id, serial):
            return kept
        pairs = master.read(self._ask(lambda: self._api.contents(zone_id)), zone.name, f'{self.id}: {zone.name}')
        soa = pairs.pop(f'{zone.name}\tSOA')
        # The serial and the contents must be of one state, so the serial is taken from the export.
        kept = KeptZone(zone_id, soa_rdata.serial_in(soa.split('\t')[1]), pairs)
        if self._kept is not None:
            self._kept[zone.name] = kept
        return kept

    def _process_root_ns(self, desired: Zone) -> None:
        root_ns = desired.root_ns
        if root_ns is not None:
            if self.root_ns_warnings:
                self.log.warning("%s: NS records given for %s itself are left out; the pool's settings determine them",
                                 self.id, desired.name)
            desired.remove_record(root_ns)

    def _process_existing_zone(self, existing: Zone, desired: Zone, lenient: bool = False) -> Zone:
        existing = super()._process_existing_zone(existing, desired, lenient)
        shown = self._shown.pop(existing.name, None)
        changed = [key for key in {**existing.packed, **desired.packed}
                   if existing.packed.get(key) != desired.packed.get(key)]
        fixed: Mapping[str, tuple[str, bool]] = {}
        if shown is not None and shown.get('lock_reason') is not None:
            fixed = dict.fromkeys(changed, (f'the zone is locked: {shown["lock_reason"]}', True))
        elif shown is not None and not existing.packed.keys().isdisjoint(changed):
            fixed = self._ask(lambda: self._api.not_changed(shown))
        for key in fixed.keys() & changed:
            name, rtype = key.split('\t')
            # A CNAME is alone at its name (RFC 1034 section 3.6.2): what it would replace there stays too.
            has_cname = rtype == 'CNAME' or desired.get(name, 'CNAME') is not None
            kept, left_out = ([rrset for rrset in zone.at(name) if has_cname or rrset.type == rtype]
                              for zone in (existing, desired))
            # Nothing is below a DNAME (RFC 6672 section 2.4), so none comes above what stays.
            left_out += [rrset for rrset in desired.of_types({'DNAME'}) if kept and name != rrset.name
                         and lies_in(name, rrset.name)]
            why, is_told = fixed[key]
            if is_told or left_out:
                self.log.warning('%s: the change of %s is left out: %s', self.id, key.replace('\t', ' '), why)
            for zone, rrsets in ((existing, kept), (desired, left_out)):
                for rrset in rrsets:
                    zone.remove_record(rrset)
        return existing

    def _apply(self, plan: Plan) -> ApplyResult | None:
        requests = [request for change in plan.changes for request in _requests(change)]
        try:
            self._send(plan, requests)
        except ApiRefused as error:
            if error.code >= 500 or error.code in _NOT_THE_CHANGES:
                raise
            if error.code != 404 and error.type not in _MOVED:
                return ApplyResult(failed=len(plan.changes), errors=(str(error),))
            if not self._is_done(plan):
                raise PlanMoved(plan=self._called(plan), why=str(error).rstrip('.')) from error
        return None

    def _send(self, plan: Plan, wanted: list[dict[str, Any]]) -> None:
        if not plan.exists:
            self._api.create_zone(plan.zone, self._email, [request for request in wanted if request['records']])
        elif wanted:
            if plan.zone not in self._read:
                raise PlanMoved(plan=self._called(plan), why='the zone is not there any more')
            zone_id, serial = self._read[plan.zone]
            # A further plan may follow: the zone's serial is now that of this change.
            changed = self._api.change(zone_id, wanted, serial)
            self._read[plan.zone] = zone_id, changed['serial']
            if 'change' in changed.get('links', {}):
                self.log.warning('%s: the changes of %s wait for approval: %s', self.id, plan.zone,
                                 changed['links']['change'])

    def _is_done(self, plan: Plan) -> bool:
        """Whether *plan* was applied before, and the answer was lost."""
        current = plan.existing.empty()
        try:
            if not self._populate(current, target=False, lenient=True):
                return False
        except SourceError:  # the API's first answer is the better error
            return False
        return all(is_done(current, change) for change in plan.changes)

    def _called(self, plan: Plan) -> str:
        return f'of {plan.zone} on {self.id}'

    def _ask(self, ask: Callable[[], T]) -> T:
        """The answer of *ask*; SourceError when the API cannot be asked, or refuses."""
        try:
            return ask()
        except (ApiRefused, ApiUnreachable) as error:
            raise SourceError(source=self.id, why=str(error).rstrip('.'), type=error.type) from error


def _requests(change: Change) -> Iterator[dict[str, Any]]:
    """*change* as the API has it; a recordset without records is deleted."""
    new = {rrset.key for rrset in change.new}
    for old in change.existing:
        if old.key not in new:
            yield {'name': old.name, 'type': old.type, 'records': []}
    for rrset in change.new:
        yield {'name': rrset.name, 'type': rrset.type, 'records': list(rrset.rdatas), 'ttl': rrset.ttl}
