"""A provider of octoDNS for a pool of designate-pool, configured in octoDNS::

    providers:
      pool:
        class: designate_pool.octodns_provider.DesignatePoolProvider
        url: http://127.0.0.1:9001

All changes of a zone are made in one request with one serial.
"""

from __future__ import annotations

import logging
from typing import Any

from octodns.provider.base import BaseProvider
from octodns.provider.plan import Plan
from octodns.record import Record
from octodns.zone import Zone

from designate_pool.errors import InvalidField
from designate_pool.planner import master
from designate_pool.planner.octodns.records import record_of, rrset_of
from designate_pool.planner.providers.pool_api import PoolApi
from designate_pool.protocol.rrset import RRset, unpack
from designate_pool.protocol.soa_rdata import serial_of

#: The types that both octoDNS and DNS have.
TYPES = ('A', 'AAAA', 'CAA', 'CNAME', 'DNAME', 'DS', 'HTTPS', 'LOC', 'MX', 'NAPTR', 'NS', 'OPENPGPKEY', 'PTR', 'SPF',
         'SRV', 'SSHFP', 'SVCB', 'TLSA', 'TXT', 'URI')


class DesignatePoolProvider(BaseProvider):
    """
    :param url: of the pool's API
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

    def list_zones(self) -> list[str]:
        return [zone['name'] for zone in self._api.zones()]

    def populate(self, zone: Zone, target: bool = False, lenient: bool = False) -> bool:
        shown = self._api.zone(zone.name)
        if shown is None or shown['action'] == 'DELETE':
            return False
        pairs = master.read(self._api.contents(shown['id']), zone.name, file='the export of the pool')
        for rrset in (unpack(key, value) for key, value in pairs.items()):
            if rrset.type == 'SOA':
                self._serials[zone.name] = serial_of(rrset)
            elif rrset.type in self.SUPPORTS and (rrset.name, rrset.type) != (zone.name, 'NS'):
                record = self._record(rrset, zone)
                if record is not None:
                    zone.add_record(record, lenient=lenient)
        self.log.info('populate: %s has %d records', zone.name, len(zone.records))
        return True

    def _process_desired_zone(self, desired: Zone) -> Zone:
        """Refuse data that is not valid in DNS while planning, so in a dry run too; octoDNS checks less strictly."""
        for record in desired.records:
            if record._type in self.SUPPORTS:
                try:
                    rrset_of(record, lenient=False)
                except InvalidField as error:
                    self.supports_warn_or_except(str(error).rstrip('.'), 'omitting record')
                    desired.remove_record(record)
        return super()._process_desired_zone(desired)

    def _record(self, rrset: RRset, zone: Zone) -> Record | None:
        try:
            record = record_of(rrset, zone)
        except InvalidField as error:
            self.log.warning('%s %s: %s; it is not changed', rrset.name, rrset.type, error.kwargs['why'])
            return None
        record.source = self
        return record

    def _apply(self, plan: Plan) -> None:
        """Make all changes or none; none if somebody else has changed the zone since it was read."""
        name = plan.desired.name
        changes = [_change(change) for change in plan.changes]
        shown = self._api.zone(name) if plan.exists else None
        if shown is None:
            self._api.create_zone(name, self._email, recordsets=[change for change in changes if change['records']])
        else:
            self._api.change(shown['id'], changes, self._serials.pop(name, None))


def _change(change: Any) -> dict[str, Any]:
    """A change of octoDNS as the API has it."""
    rrset = rrset_of(change.record, lenient=False)
    records = [] if change.new is None else list(rrset.rdatas)
    return {'name': rrset.name, 'type': rrset.type, 'ttl': rrset.ttl, 'records': records}
