"""Brings the domains of pools to what Designate has.

A zone is written when its version, serial, project or attributes in Designate differ from those of its copy.  All zones
are compared each time, and no times: a transaction that Designate commits late is not missed.  A page of zones is
written in one transaction, from one state of Designate's database, so that a run that was ended at any moment is
continued by the next one.

Only zones that Designate has settled are written: the contents of others are not those of their serial.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import json
import tempfile
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import dns.exception
import dns.rdata
import dns.rdataclass
import dns.rdatatype

from designate_pool.central.validation import fields, masters, names_and_rdata
from designate_pool.central.validation.masters import Network
from designate_pool.cmd.takeover import lists
from designate_pool.cmd.takeover.lists import ListReport
from designate_pool.errors import InvalidField
from designate_pool.model import PTR
from designate_pool.protocol import rules, soa_rdata
from designate_pool.protocol.names_and_rdata import (LONGEST, LONGEST_NAME, PLAIN, given_name, lies_in, normal_name,
                                                     without_case)
from designate_pool.protocol.zonefile import wire_of
from designate_pool.storage.designate import source, target
from designate_pool.storage.designate.source import Part, ZoneDetails
from designate_pool.storage.designate.target import Copied
from designate_pool.storage.sql import migrate
from designate_pool.storage.sql.database import Storage, Tx

SOA = 'SOA'
#: Seconds that no version of Designate writes, but an integer column may hold.
_TTLS = ('ttl', 'refresh', 'retry', 'expire', 'minimum')

#: Of ``managed_records``, in ASCII characters; Designate's columns are wider.
_LONGEST_WORDS = {'plugin': 32, 'resource_type': 32, 'address': 45}


def is_settled(zone: Any, details: source.ZoneDetails) -> bool:
    """Whether what Designate has stored of the zone is the contents of its serial.

    One that was never transferred has none, and ends in ERROR there since no server serves it.
    """
    if details.awaits_transfer:
        return bool(zone.action != 'DELETE')
    return zone.status == 'ACTIVE' and zone.action == 'NONE' and not zone.increment_serial


def domain(zone: Any, details: source.ZoneDetails, networks: Sequence[masters.Network] = ()) -> dict[str, Any]:
    """The row of a domain here for a zone of Designate.

    :param networks: that may have masters of secondary zones though they are private or local
    :raises InvalidField: for what is not possible here
    """
    name = normal_name(zone.name, 'name')
    if name == '.' or name.startswith('*.'):
        raise InvalidField(field='name', why='neither the root nor a wildcard can be a zone')
    return {
        'id': zone.id, 'name': name, 'given_name': given_name(zone.name, name), 'description': zone.description,
        'pool_id': zone.pool_id, 'project_id': zone.tenant_id or '',
        'email': names_and_rdata.email('email', zone.email),
        **{name: fields.ttl(name, getattr(zone, name)) for name in _TTLS},
        'serial': fields.serial_number('serial', zone.serial), 'version': zone.version, **lists.times(zone),
        'attributes': fields.attributes('attributes', json.dumps(details.attributes)),
        'masters': masters.parse('masters', list(map(str, details.masters)), networks) if _is_secondary(zone) else '',
        'transferred_at': ((zone.transferred_at or zone.updated_at or zone.created_at)
                           if _is_secondary(zone) and not details.awaits_transfer else None),
        'awaits_transfer': details.awaits_transfer}


def _is_secondary(zone: Any) -> bool:
    return bool(zone.type == source.SECONDARY)


def secondary_soa(row: Any, zone: Any) -> dict[str, Any]:
    """What a secondary domain has from the SOA of its masters.

    :raises InvalidField: when it is none of the zone's serial
    """
    try:
        text, _ = _parsed('SOA', row.data)
        soa = soa_rdata.parse_soa(text, zone.name)
    except (dns.exception.DNSException, ValueError) as error:
        raise InvalidField(field='SOA record', why=f'not SOA data ({error})') from None
    if int(text.split()[2]) != zone.serial:
        raise InvalidField(field='SOA record', why=f'its serial is {text.split()[2]}, that of the zone {zone.serial}')
    return {'soa_names': soa.names, **{name: getattr(soa, name) for name in ('email', *_TTLS[1:])}}


def recordset(row: Any, zone: Any, name_of_zone: str, managed: bool) -> dict[str, Any]:
    """The row of a recordset here for one of Designate.

    :raises InvalidField: for what is not possible here
    """
    name = normal_name(row.name, f'{row.type} recordset {row.name}')
    if not lies_in(name, name_of_zone):
        raise InvalidField(field=f'{row.type} recordset {name}', why='it does not lie in the zone')
    return {'id': row.id, 'domain_id': row.zone_id, 'name': name, 'given_name': given_name(row.name, name),
            'type': row.type, 'description': row.description,
            'ttl': fields.optional_ttl(f'{row.type} recordset {name}', row.ttl),
            'managed': managed or row.type == SOA,
            'project_id': None if managed or _is_secondary(zone) or row.tenant_id == zone.tenant_id else row.tenant_id,
            'version': row.version, **lists.times(row)}


def record(row: Any, owner: str, rtype: str, from_masters: bool = False) -> dict[str, Any]:
    """The row of a record here for one of Designate.

    :param from_masters: whether it is one of a secondary zone, and not a user's
    :raises InvalidField: for data that is not possible here
    """
    plain = PLAIN.get(rtype)
    if plain is not None and len(row.data) <= LONGEST.get(rtype, LONGEST_NAME) and plain(row.data):
        text, wire = row.data, wire_of(rtype, row.data)
    elif from_masters:
        try:
            text, wire = _parsed(rtype, row.data)
        except (dns.exception.DNSException, ValueError) as error:
            raise InvalidField(field=f'{rtype} record at {owner}', why=f'not {rtype} data ({error})') from None
    else:
        (text, wire), = names_and_rdata.rdatas(f'{rtype} record at {owner}', rtype, [row.data])
    return {'id': row.id, 'domain_id': row.zone_id, 'recordset_id': row.recordset_id, 'data': text, 'wire': wire,
            'serial_number': row.serial, 'version': row.version, **lists.times(row)}


def _parsed(rtype: str, data: str) -> tuple[str, bytes]:
    """Text and wire form, as a transfer from a master gives them."""
    rdata = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(rtype), data, relativize=False)
    mistake = rules.mistake(rtype, rdata)
    if mistake is not None:
        raise ValueError(mistake)
    text = rdata.to_text()
    return without_case(rtype, text), rdata.to_wire() or b''


def managed_record(row: Any, text: str) -> dict[str, Any] | None:
    """For which resource of another service a record is there; None if it is there for none.

    :param text: its data here
    :raises InvalidField: when it names none, or one that cannot be kept here
    """
    if not row.managed or not row.managed_resource_type or not row.managed_resource_id:
        return None
    try:
        # Designate keeps it as a UUID; Neutron and Nova write it with hyphens.
        resource_id = str(uuid.UUID(row.managed_resource_id))
        address = str(ipaddress.ip_address(row.managed_extra)) if row.managed_resource_type == PTR else ''
    except ValueError as error:
        raise InvalidField(field=f'{row.managed_resource_type} {row.managed_resource_id}', why=str(error)) from None
    words = {'plugin': row.managed_plugin_name or '', 'resource_type': row.managed_resource_type, 'address': address}
    for name, word in words.items():
        longest = _LONGEST_WORDS[name]
        if len(word) > longest or not word.isascii():
            raise InvalidField(field=f'{row.managed_resource_type} {resource_id}',
                               why=f'its {name.replace("_", " ")} {word} is not of up to {longest} ASCII characters')
    return {'id': row.id, 'domain_id': row.zone_id, 'recordset_id': row.recordset_id, 'data': text,
            **words, 'resource_id': resource_id, 'region': row.managed_resource_region or '',
            'project_id': row.managed_tenant_id or '', **lists.times(row)}


T = TypeVar('T')
#: Zones that are compared at once, and written in one transaction.
PAGE, WRITTEN = 2000, 200


class ZoneRefused(Exception):
    """A zone that cannot be taken over."""

    def __init__(self, zone: Any, why: str) -> None:
        super().__init__(why)
        self.zone = zone


@dataclasses.dataclass(slots=True)
class CopyReport:
    """What a pass has done, in numbers of written zones and new recordsets and records, and found.

    :ivar removed: names of domains that Designate does not have any more
    :ivar present: how many live zones Designate has
    :ivar waiting: names of zones that Designate has not settled
    :ivar awaiting: names of written secondary zones that were never transferred
    :ivar refused: by name, why it was not copied
    """

    zones: int = 0
    recordsets: int = 0
    records: int = 0
    removed: list[str] = dataclasses.field(default_factory=list)
    present: int = 0
    waiting: list[str] = dataclasses.field(default_factory=list)
    awaiting: list[str] = dataclasses.field(default_factory=list)
    refused: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def has_changes(self) -> bool:
        """Whether zones were written or removed."""
        return bool(self.zones or self.removed)


class ZoneCopy:
    """
    :param progress: is called after each page with the report so far
    """

    def __init__(self, designate: Storage, storage: Storage, pool_ids: Iterable[str],
                 networks: Sequence[Network] = (),
                 progress: Callable[[CopyReport], None] = lambda report: None) -> None:
        self._designate = designate
        self._storage = storage
        self._pool_ids = list(pool_ids)
        self._networks = networks
        self._progress = progress

    def run(self) -> CopyReport:
        """Copy zones that have changed since the last copy, and remove those that Designate has deleted."""
        report = CopyReport()
        # First, since the name of a deleted zone may have been used for a new one.
        for pool_id in self._pool_ids:
            self._remove_deleted(pool_id, report)
        after = ''
        while page := self._designate.read(source.zone_page, self._pool_ids, after, PAGE):
            changed = self._changed(page, report)
            for start in range(0, len(changed), WRITTEN):
                self._write(changed[start:start + WRITTEN], report)
                self._progress(report)
            after = page[-1].id
        return report

    def _remove_deleted(self, pool_id: str, report: CopyReport) -> None:
        after = ''
        while page := self._storage.read(target.page, pool_id, after, PAGE):
            live = self._designate.read(source.live_zones, self._pool_ids, [domain_.id for domain_ in page])
            gone = [domain_ for domain_ in page if domain_.id not in live]
            for domain_ in gone:
                if domain_.is_ours:
                    report.refused[domain_.name] = 'Designate does not have it, and it was created or changed here'
            copies = [domain_ for domain_ in gone if not domain_.is_ours]
            self._storage.run(target.delete_domains, [copy.id for copy in copies])
            report.removed += [copy.name for copy in copies]
            after = page[-1].id

    def _changed(self, page: Sequence[Any], report: CopyReport) -> list[Any]:
        ids = [zone.id for zone in page]
        details = self._designate.read(source.details, ids)
        copies = self._storage.read(target.of_ids, ids)
        report.present += len(page)
        changed = []
        for zone in page:
            copy = copies.get(zone.id)
            if copy is not None and copy.is_ours:
                report.refused[zone.name] = 'it was changed here since it was copied'
            elif not is_settled(zone, details[zone.id]):
                if zone.status == 'ERROR':
                    report.refused[zone.name] = f'{zone.action} is in ERROR in Designate; have it repaired there'
                else:
                    report.waiting.append(zone.name)
            elif copy is None or self._differs(zone, details[zone.id], copy):
                changed.append(zone)
        return changed

    def _write(self, zones: Sequence[Any], report: CopyReport) -> None:
        ids = [zone.id for zone in zones]
        while ids:
            try:
                done = self._storage.run(self._write_page, ids)
            except ZoneRefused as refused:
                report.refused[refused.zone.name] = str(refused)
                ids.remove(refused.zone.id)
                continue
            report.zones += done.zones
            report.recordsets += done.recordsets
            report.records += done.records
            report.waiting += done.waiting
            report.awaiting += done.awaiting
            return

    def _write_page(self, tx: Tx, ids: Sequence[str]) -> CopyReport:
        """Write these zones as Designate has them now.

        :raises ZoneRefused: when one cannot be written; then nothing is
        """
        with contextlib.closing(self._designate.stream(source.contents, ids)) as parts:
            page = _Page(tx, [zone for zone in next(parts).rows if zone.pool_id in self._pool_ids],
                         self._designate.read(source.details, ids), self._networks)
            for part in parts:
                page.write(part)
            return page.finish()

    def _differs(self, zone: Any, details: ZoneDetails, copy: Copied) -> bool:
        try:
            row = domain(zone, details, self._networks)
        except InvalidField:
            return True  # to be refused, with the reason
        return any(row[name] != getattr(copy, name) for name in ('version', 'serial', 'project_id', 'pool_id',
                                                                 'attributes', 'masters', 'name'))


class _Page:

    def __init__(self, tx: Tx, zones: Sequence[Any], details: Mapping[str, ZoneDetails],
                 networks: Sequence[Network]) -> None:
        self._tx = tx
        self._zones = {zone.id: zone for zone in zones if is_settled(zone, details[zone.id])}
        self._done = CopyReport(zones=len(self._zones),
                                waiting=[zone.name for zone in zones if zone.id not in self._zones])
        self._rows = {key: _converted(zone, domain, zone, details[zone.id], networks)
                      for key, zone in self._zones.items()}
        self._done.awaiting += [row['name'] for row in self._rows.values() if row['awaits_transfer']]
        present = target.of_ids(tx, self._zones)
        self._versions = target.versions(tx, list(present))
        self._refuse_taken()
        generations = target.generations(tx, [row['name'] for key, row in self._rows.items() if key not in present])
        target.insert_domains(tx, [row | {'generation': generations.get(row['name'], 0) + 1}
                                   for key, row in self._rows.items() if key not in present])
        for key in present:
            target.update_domain(tx, self._rows[key])
        #: Secondary zones whose SOA has not come yet.
        self._without_soa = {key for key, zone in self._zones.items()
                             if _is_secondary(zone) and not details[key].awaits_transfer}
        self._managed: set[str] = set()
        self._managed_records: list[dict[str, Any]] = []
        #: Name and type of each recordset.
        self._sets: dict[str, tuple[str, str]] = {}
        self._names: set[tuple[str, str, str]] = set()
        self._kept_records: set[str] = set()
        #: The recordset whose records come at present, and their data.
        self._last = ''
        self._wires: set[bytes] = set()
        self._octets = 0

    def write(self, part: Part) -> None:
        write: dict[str, Callable[[Sequence[Any]], None]] = {
            'set_ids': self._delete_sets, 'managed': self._managed.update, 'sets': self._write_sets,
            'records': self._write_records}
        write[part.kind](part.rows)

    def finish(self) -> CopyReport:
        for key in self._without_soa:
            raise ZoneRefused(self._zones[key], 'Designate has no SOA record of it')
        self._refuse_misplaced()
        target.delete_records(self._tx, self._versions.records.keys() - self._kept_records)
        target.write_managed_records(self._tx, self._zones, self._managed_records)
        return self._done

    def _refuse_misplaced(self) -> None:
        """Refuse a zone with recordsets where a rule forbids them."""
        types: dict[str, dict[str, dict[str, tuple[()]]]] = {}
        for key, name, rtype in self._names:
            types.setdefault(key, {}).setdefault(name, {})[rtype] = ()
        for key, names in types.items():
            dnames = {name for name, at_name in names.items() if 'DNAME' in at_name}
            for name, at_name in names.items():
                for violation in rules.at_name(self._rows[key]['name'], name, at_name, dnames):
                    raise ZoneRefused(self._zones[key], str(violation))

    def _refuse_taken(self) -> None:
        present = target.of_names(self._tx, [row['name'] for row in self._rows.values()])
        names: set[str] = set()
        for key, row in self._rows.items():
            other = present.get(row['name'])
            if other is not None and other.id != key:
                raise ZoneRefused(self._zones[key], f'there is a zone of this name here, with the id {other.id}')
            if row['name'] in names:
                raise ZoneRefused(self._zones[key], f'another zone is named {row["name"]} too')
            names.add(row['name'])

    def _delete_sets(self, ids: Iterable[str]) -> None:
        target.delete_recordsets(self._tx, self._versions.recordsets.keys() - set(ids))

    def _write_sets(self, rows: Sequence[Any]) -> None:
        new = []
        for row in rows:
            zone = self._zones.get(row.zone_id)
            if zone is None:
                continue
            name = self._rows[zone.id]['name']
            made = _converted(zone, recordset, row, zone, name, row.id in self._managed)
            key = row.zone_id, made['name'], row.type
            if key in self._names:
                raise ZoneRefused(zone, f'it has two {row.type} recordsets at {made["name"]}')
            self._names.add(key)
            self._sets[row.id] = made['name'], row.type
            state = self._versions.recordsets.get(row.id)
            if state is None:
                new.append(made)
            elif state != target.SetState(*(made[name] for name in target.SetState._fields)):
                target.update(self._tx, 'recordsets', made['id'], made)
        target.insert(self._tx, 'recordsets', new)
        self._done.recordsets += len(new)

    def _write_records(self, rows: Sequence[Any]) -> None:
        new, old = [], []
        for row in rows:
            zone = self._zones.get(row.zone_id)
            if zone is None:
                continue
            name, rtype = self._sets[row.recordset_id]
            if rtype == SOA:
                if _is_secondary(zone):
                    self._without_soa.discard(zone.id)
                    target.update(self._tx, 'domains', zone.id, _converted(zone, secondary_soa, row, zone))
                continue
            made = _converted(zone, record, row, name, rtype, _is_secondary(zone))
            managed = _converted(zone, managed_record, row, made['data'])
            if managed is not None:
                self._managed_records.append(managed)
            if self._is_repeated(row.recordset_id, made['wire']):
                continue
            if rules.overflows(len(self._wires), self._octets):
                raise ZoneRefused(zone, f'{name} {rtype}: they do not fit into a DNS message')
            version = self._versions.records.get(row.id)
            if version == row.version:
                self._kept_records.add(row.id)
                continue
            if version is not None:
                old.append(row.id)
                self._kept_records.add(row.id)
            new.append(made)
        target.delete_records(self._tx, old)
        target.insert(self._tx, 'records', new)
        self._done.records += len(new)

    def _is_repeated(self, recordset_id: str, wire: bytes) -> bool:
        """Whether the recordset, whose records come one after the other, has this record already."""
        if self._last != recordset_id:
            self._last, self._wires, self._octets = recordset_id, set(), 0
        before = len(self._wires)
        self._wires.add(wire)
        self._octets += len(wire)
        return len(self._wires) == before


def _converted(zone: Any, convert: Callable[..., T], *args: Any) -> T:
    try:
        return convert(*args)
    except InvalidField as error:
        raise ZoneRefused(zone, f'{error.kwargs["field"]}: {error.kwargs["why"]}') from error


def trial(designate: Storage, pool_row: target.Row, networks: Sequence[Network]) -> tuple[CopyReport, ListReport]:
    """What a copy of a pool would write into an empty database, which is made for that and removed."""
    with tempfile.TemporaryDirectory(prefix='designate-pool-plan-') as folder:
        url = f'sqlite:///{folder}/plan.sqlite'
        migrate.upgrade(url)
        with contextlib.closing(Storage(url)) as storage:
            storage.run(target.write_pool, pool_row, ())
            # Contents are not needed for the pages to come: only names must not be there twice.
            zones = ZoneCopy(designate, storage, [pool_row['id']], networks,
                             lambda report: storage.run(target.delete_contents)).run()
            return zones, lists.copy(designate, storage, [pool_row['id']])
