"""A provider of octoDNS for a pool of designate-pool, configured in octoDNS::

    providers:
      pool:
        class: designate_pool.octodns_provider.DesignatePoolProvider
        url: http://127.0.0.1:9001

All changes of a zone are made in one request with one serial.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from octodns.provider.base import BaseProvider
from octodns.provider.plan import Plan
from octodns.record import Change, Record
from octodns.zone import Zone

from designate_pool.errors import InvalidField, PlanMoved
from designate_pool.planner import master
from designate_pool.planner.octodns.records import record_of, rrset_of
from designate_pool.planner.providers.pool_api import PoolApi
from designate_pool.planner.zone.zone import Zone as PlannedZone
from designate_pool.protocol.rrset import RRset, unpack
from designate_pool.protocol.soa_rdata import serial_of

#: The types that both octoDNS and DNS have.
TYPES = ('A', 'AAAA', 'CAA', 'CNAME', 'DNAME', 'DS', 'HTTPS', 'LOC', 'MX', 'NAPTR', 'NS', 'OPENPGPKEY', 'PTR', 'SPF',
         'SRV', 'SSHFP', 'SVCB', 'TLSA', 'TXT', 'URI')
_WITH_NAMES = frozenset({'CNAME', 'DNAME', 'HTTPS', 'MX', 'NAPTR', 'NS', 'PTR', 'SRV', 'SVCB'})


class DesignatePoolProvider(BaseProvider):
    """
    :param timeout: seconds for one request
    :param email: of zones that it creates; ``hostmaster@`` and the zone's name if None
    :param token: for authentication; DESIGNATE_POOL_TOKEN of the environment if None
    """

    SUPPORTS = frozenset(TYPES)
    SUPPORTS_GEO = False
    SUPPORTS_DYNAMIC = False
    SUPPORTS_MULTIVALUE_PTR = True
    # The pool's settings determine them.
    SUPPORTS_ROOT_NS = False

    def __init__(self, id: str, url: str = 'http://127.0.0.1:9001', timeout: float = 90.0, email: str | None = None,
                 *args: Any, token: str | None = None, **kwargs: Any) -> None:
        self.log = logging.getLogger(f'{type(self).__name__}[{id}]')
        super().__init__(id, *args, **kwargs)
        self._api = PoolApi(url, float(timeout), token)
        self._email = email
        self._serials: dict[str, int] = {}
        #: By zone: it as the API shows it, what could not be written; and, asked for when something differs, what is
        #: there and stays, and why users do not change some of that.
        self._shown: dict[str, dict[str, Any]] = {}
        self._left_out: dict[str, set[tuple[str, str]]] = {}
        self._stays: dict[str, Callable[[], tuple[set[tuple[str, str]], dict[str, tuple[str, bool]]]]] = {}

    def list_zones(self) -> list[str]:
        # In lower case, as octoDNS has them; one that was never transferred cannot be populated.
        return [zone['name'].lower() for zone in self._api.zones()
                if zone['type'] == 'PRIMARY' or zone['transferred_at'] is not None]

    def populate(self, zone: Zone, target: bool = False, lenient: bool = False) -> bool:
        shown = self._api.zone(zone.name)
        if shown is None or shown['action'] == 'DELETE':
            self._shown.pop(zone.name, None)
            return False
        if target:
            self._shown[zone.name] = shown
        pairs = master.read(self._api.contents(shown['id']), zone.name, file='the export of the pool')
        for rrset in (unpack(key, value) for key, value in pairs.items()):
            if rrset.type == 'SOA':
                self._serials[zone.name] = serial_of(rrset)
            elif rrset.type in self.SUPPORTS and (rrset.name, rrset.type) != (zone.name, 'NS'):
                try:
                    record = record_of(rrset, zone)
                except InvalidField as error:
                    self.log.warning('%s %s: %s; it is not changed', rrset.name, rrset.type, error.kwargs['why'])
                else:
                    record.source = self
                    zone.add_record(record, lenient=lenient)
        self.log.info('populate: %s has %d records', zone.name, len(zone.records))
        return True

    def _process_desired_zone(self, desired: Zone) -> Zone:
        """Refuse what is not valid in DNS while planning, so in a dry run too; octoDNS checks less strictly."""
        own = PlannedZone(desired.name)
        rrsets: dict[Record, RRset] = {}
        faults: dict[Record, str] = {}
        for record in desired.records:
            if record._type in self.SUPPORTS:
                try:
                    rrsets[record] = rrset_of(record, lenient=False)
                    own.add_record(rrsets[record], lenient=True)
                except InvalidField as error:
                    faults[record] = str(error).rstrip('.')
        for record, rrset in rrsets.items():
            why = own.broken_rule(rrset, self.id) if rrset.extra.is_for(self.id) else None
            if why is not None:
                faults[record] = f'{rrset.name} {rrset.type}: {why}'
        for record, why in faults.items():
            self.supports_warn_or_except(why, 'omitting record')
            desired.remove_record(record)
        for record in rrsets.keys() - faults.keys():
            if record._type in _WITH_NAMES:
                # A name without the final dot is written with it, and then compared with what is there.
                written = record_of(rrsets[record], desired)
                if record.changes(written, self):
                    written.source = record.source
                    desired.add_record(written, replace=True, lenient=True)
        self._left_out[desired.name] = {(record.fqdn, record._type) for record in faults}
        return super()._process_desired_zone(desired)

    def _process_existing_zone(self, existing: Zone, desired: Zone, lenient: bool = False) -> Zone:
        existing = super()._process_existing_zone(existing, desired, lenient=lenient)
        shown, left_out = self._shown.get(existing.name), self._left_out.pop(existing.name, set())
        present = {(record.fqdn, record._type) for record in existing.records}
        cnames = {record.fqdn for record in desired.records if record._type == 'CNAME'}

        @functools.cache
        def stays() -> tuple[set[tuple[str, str]], dict[str, tuple[str, bool]]]:
            not_changed = {} if shown is None else self._api.not_changed(shown)
            kept = {key for key in present if key in left_out or '\t'.join(key) in not_changed}
            # What a CNAME would replace stays where the CNAME cannot be.
            names = {name for name, _ in kept} & cnames
            return kept.union(key for key in present if key[0] in names), not_changed

        self._stays[existing.name] = stays
        return existing

    def _include_change(self, change: Change) -> bool:
        """What stays is not deleted, and nothing is added that cannot be with it."""
        record = change.record
        lock_reason = self._shown.get(record.zone.name, {}).get('lock_reason')
        if lock_reason is not None:
            self.log.warning('%s %s: the zone is locked: %s; it is not changed', record.fqdn, record._type, lock_reason)
            return False
        kept, not_changed = self._stays[record.zone.name]()
        why, is_told = not_changed.get(f'{record.fqdn}\t{record._type}', ('', False))
        if is_told or why and change.new is not None:
            self.log.warning('%s %s: %s; it is not changed', record.fqdn, record._type, why)
        return not {(record.fqdn, record._type), (record.fqdn, 'CNAME')} & kept and not (
            record._type == 'CNAME' and any(name == record.fqdn for name, _ in kept)) and not (
            record._type == 'DNAME' and any(name.endswith(f'.{record.fqdn}') for name, _ in kept))

    def _apply(self, plan: Plan) -> None:
        """Make all changes or none; none if somebody else has changed the zone since it was read."""
        name = plan.desired.name
        changes = [_change(change) for change in plan.changes]
        if not plan.exists:
            self._api.create_zone(name, self._email, [change for change in changes if change['records']])
        elif (shown := self._api.zone(name)) is None:
            raise PlanMoved(plan=f'of {name} on {self.id}', why='the zone is not there any more')
        else:
            changed = self._api.change(shown['id'], changes, self._serials.pop(name, None))
            if 'change' in changed.get('links', {}):
                self.log.warning('the changes of %s wait for approval: %s', name, changed['links']['change'])


def _change(change: Any) -> dict[str, Any]:
    """A change of octoDNS as the API has it."""
    rrset = rrset_of(change.record, lenient=False)
    records = [] if change.new is None else list(rrset.rdatas)
    return {'name': rrset.name, 'type': rrset.type, 'ttl': rrset.ttl, 'records': records}
