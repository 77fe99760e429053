"""Records that are there for resources of other services: PTR records of floating IPs, and addresses of instances.

Users do not change such records.  A record may be there for several resources, and goes with the last of them.  What
was at its name before, stays.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from designate_pool.central import events, transactions
from designate_pool.central.recordset_changes import DomainEdits, write_edits
from designate_pool.central.rules import name_ownership, recordset_edits
from designate_pool.central.rules.journal import Journal
from designate_pool.central.validation import fields, names_and_rdata, requests
from designate_pool.central.validation.requests import KEEP, NewDomain, WantedRecordSet
from designate_pool.errors import BadInput, DuplicateDomain, InvalidField, NotFound
from designate_pool.model import PTR, Context, Domain, FloatingIp, ManagedRecord, RecordSet, new_id
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains
from designate_pool.storage.zones import managed_records as store
from designate_pool.storage.zones import recordsets

#: For how long the time of a resource's last event is kept.
EVENTS_KEPT = timedelta(days=1)
#: What names a resource.
_RESOURCE = ('plugin', 'resource_type', 'resource_id')


class ManagedChange(NamedTuple):
    """What became of a domain.

    :ivar events: the verb and the recordset of each change
    :ivar changed: whether what is served changes
    """

    domain: Domain
    events: Sequence[tuple[str, RecordSet]]
    changed: bool


# Floating IPs

def parse_floating_ip(given: Any) -> FloatingIp:
    given = fields.mapping('floating_ip', given)
    fields.refuse_unknown(given, 'floating_ip.', ('region', 'id', 'address'))
    region, floating_ip_id, address = (fields.text(f'floating_ip.{name}', given.get(name), 100)
                                       for name in ('region', 'id', 'address'))
    try:
        return FloatingIp(region, floating_ip_id, str(ipaddress.ip_address(address)))
    except ValueError:
        raise InvalidField(field='floating_ip.address', why='not an address') from None


def parse_ptr(floating_ip: FloatingIp, given: Any) -> WantedRecordSet:
    """The PTR recordset of a floating IP, from ``ptrdname``, ``ttl`` and ``description``."""
    fields.refuse_unknown(fields.mapping('ptr', given), '', ('ptrdname', 'ttl', 'description'))
    with fields.every_mistake() as check:
        target = check(names_and_rdata.name, 'ptrdname', given.get('ptrdname'))
        return WantedRecordSet(
            name=f'{ipaddress.ip_address(floating_ip.address).reverse_pointer}.', type='PTR',
            rdatas=target and check(names_and_rdata.rdatas, 'ptrdname', 'PTR', [target]),
            ttl=check(fields.optional_ttl, 'ttl', given.get('ttl')),
            description=check(fields.description, 'description', given.get('description')))


def reverse_zone(address: str) -> str:
    """The name of the zone that has the PTR record of an address: that of the /24 of IPv4, of the /64 of IPv6."""
    found = ipaddress.ip_address(address)
    labels = found.reverse_pointer.split('.')
    return '.'.join(labels[1 if found.version == 4 else 16:]) + '.'


def reverse_domain(storage: Storage, make: Callable[[Context, NewDomain, Sequence[Any]], Domain], context: Context,
                   address: str, project_id: str, email: str) -> Domain:
    """The domain that has the PTR record of an address, whosever it is; created if there is none.

    :param make: creates a domain
    :param project_id: the owner of one that is created
    """
    name = reverse_zone(address)
    owner = dataclasses.replace(context, project_id=project_id, all_projects=True, may_nest=True,
                                may_use_blacklisted=True)
    found = storage.read(_live, name)
    try:
        return found or make(owner, requests.new_domain({'name': name, 'email': email}), ())
    except DuplicateDomain:
        found = storage.read(_live, name)  # another request was faster
        if found is None:
            raise
        return found


def _live(tx: Tx, name: str) -> Domain | None:
    return domains.live_by_name(tx, [name]).get(name)


def set_ptr(tx: Tx, context: Context, domain_id: str, floating_ip: FloatingIp, project_id: str,
            wanted: WantedRecordSet, now: datetime, journal: Journal) -> tuple[ManagedChange, FloatingIp]:
    """Give a floating IP its PTR record, in place of the one at its name.

    :raises InvalidField: when there is a CNAME at its name, or the name is that of a domain below this one
    """
    domain, is_done = transactions.lock_records(tx, context, domain_id)
    there = recordsets.at_names(tx, domain.id, [wanted.name])
    former = _typed(there, 'PTR')
    changed = is_done
    if not is_done:
        edits = recordset_edits.plan(domain, there, [wanted], managed=True, may_edit_managed=True)
        # Told as to the project, which may not see the domain below.
        name_ownership.refuse_new_in_subzones(tx, dataclasses.replace(context, all_projects=False), domain,
                                              edits.new_sets, [wanted])
        (domain, changed), = write_edits(tx, [DomainEdits(context, domain, edits, former)], now, journal)
        present = _typed(recordsets.at_names(tx, domain.id, [wanted.name]), 'PTR')
        store.delete(tx, [each.id for each in store.of_recordsets(tx, [present[0].id])])
        store.insert(tx, [ManagedRecord(
            new_id(), domain.id, present[0].id, present[0].records[0].data, PTR, floating_ip.id,
            region=floating_ip.region, address=floating_ip.address, project_id=project_id, created_at=now,
            updated_at=now)])
        store.settle(tx, [present[0].id], now)
    found, = _typed(recordsets.at_names(tx, domain.id, [wanted.name]), 'PTR')
    verb = events.UPDATE if former and not is_done else events.CREATE
    return ManagedChange(domain, [(verb, found)], changed), _with_ptr(floating_ip, domain, found)


def show_floating_ips(tx: Tx, context: Context, floating_ips: Sequence[FloatingIp]) -> list[FloatingIp]:
    """Floating IPs of the context's project, with their PTR records.

    A record of another floating IP at the same address is not shown, and named as outdated.
    """
    rows = store.find(tx, {'resource_type': PTR, 'address': [each.address for each in floating_ips]})
    sets = recordsets.get_many(tx, [each.recordset_id for each in rows])
    owners = domains.get_many(tx, {each.domain_id for each in rows})
    by_address = {each.address: each for each in rows if each.recordset_id in sets}
    shown = []
    for each in floating_ips:
        row = by_address.get(each.address)
        if row is None:
            shown.append(each)
        elif (row.region, row.resource_id, row.project_id) != (each.region, each.id, context.project_id):
            shown.append(dataclasses.replace(each, outdated=row.id))
        else:
            shown.append(_with_ptr(each, owners[row.domain_id], sets[row.recordset_id]))
    return shown


def own_ptr(tx: Tx, context: Context, region: str, floating_ip_id: str) -> list[ManagedRecord]:
    """What the PTR record of a floating IP is kept by.

    :raises NotFound: when it has none of the context's project
    """
    found = store.find(tx, {'resource_type': PTR, 'region': region, 'resource_id': floating_ip_id,
                            'project_id': context.project_id})
    if not found:
        raise NotFound(what=f'PTR record of the floating IP {region}:{floating_ip_id}')
    return found


def find(tx: Tx, context: Context, criterion: Mapping[str, Any]) -> list[ManagedRecord]:
    scope = {} if context.scope is None else {'project_id': context.scope}
    return store.find(tx, {**criterion, **scope})


# Resources of any kind

def parse_resource(given: Any) -> dict[str, str]:
    given = fields.mapping('resource', given)
    fields.refuse_unknown(given, 'resource.', _RESOURCE)
    found = {name: fields.text(f'resource.{name}', given.get(name), 100) for name in _RESOURCE}
    if not all(found.values()):
        raise BadInput(why='a resource has a plugin, a type and an id')
    return found


def parse_records(given: Any) -> list[WantedRecordSet]:
    """One recordset for each record: mappings with ``name``, ``type`` and ``data``."""
    found = []
    for index, each in enumerate(fields.sequence('records', given)):
        each, prefix = fields.mapping(f'records[{index}]', each), f'records[{index}].'
        fields.refuse_unknown(each, prefix, ('name', 'type', 'data'))
        rtype = names_and_rdata.record_type(f'{prefix}type', each.get('type'))
        found.append(WantedRecordSet(
            name=names_and_rdata.name(f'{prefix}name', each.get('name')), type=rtype,
            rdatas=names_and_rdata.rdatas(f'{prefix}data', rtype, [each.get('data')]), prefix=prefix))
    return found


def set_resource(tx: Tx, context: Context, domain_id: str, resource: Mapping[str, str],
                 wanted: Sequence[WantedRecordSet], at: datetime | None, now: datetime,
                 journal: Journal) -> ManagedChange:
    """Give a resource exactly the *wanted* records in a domain.

    :param at: when the event was that wants them; one that is older than the last does nothing.  None: it is the last
    """
    domain, is_done = transactions.lock_records(tx, context, domain_id)
    last = None if at is None else store.last_event(tx, domain.id, resource)
    if is_done or at is not None and last is not None and at < last:
        return ManagedChange(domain, (), is_done)
    if at is not None:
        store.keep_event(tx, domain.id, resource, at, now, now - EVENTS_KEPT)
    former = store.find(tx, {**resource, 'domain_id': domain.id})
    return _change(tx, context, domain, former, wanted, resource, now, journal)


def release(tx: Tx, context: Context, domain_id: str, ids: Sequence[str], now: datetime,
            journal: Journal) -> ManagedChange:
    """Delete rows of managed records, and the records that nothing else keeps."""
    domain, is_done = transactions.lock_domain(tx, context, domain_id)
    rows = [] if is_done else store.find(tx, {'id': ids, 'domain_id': domain.id})
    return _change(tx, context, domain, rows, (), {}, now, journal) if rows else ManagedChange(domain, (), is_done)


def _change(tx: Tx, context: Context, domain: Domain, former: Sequence[ManagedRecord],
            wanted: Sequence[WantedRecordSet], resource: Mapping[str, str], now: datetime,
            journal: Journal) -> ManagedChange:
    """Replace the rows *former* by those of *wanted*, and the records with them."""
    held = recordsets.get_many(tx, [each.recordset_id for each in former]).values()
    names = [*(each.name for each in wanted), *(each.name for each in held)]
    before = recordsets.at_names(tx, domain.id, names)
    store.delete(tx, [each.id for each in former])
    kept = {(each.recordset_id, each.data) for each in store.of_recordsets(tx, [each.id for each in before])}
    gone = {(each.recordset_id, each.data) for each in former} - kept
    new: dict[tuple[str, str], dict[str, names_and_rdata.Rdata]] = {(each.name, each.type): {} for each in held}
    for each in wanted:
        new.setdefault((each.name, each.type), {}).update({rdata.text: rdata for rdata in each.rdatas})
    there = {(each.name, each.type): each for each in before}
    sets = [WantedRecordSet(*key, _rdatas(there.get(key), key[1], gone, added), ttl=KEEP)
            for key, added in new.items()]
    edits = recordset_edits.plan(domain, before, sets, may_be_gone=True, managed=True, may_edit_managed=True)
    name_ownership.refuse_new_in_subzones(tx, context, domain, edits.new_sets, sets)
    (domain, changed), = write_edits(tx, [DomainEdits(context, domain, edits, before)], now, journal)
    after = {(each.name, each.type): each for each in recordsets.at_names(tx, domain.id, names)}
    store.insert(tx, [ManagedRecord(new_id(), domain.id, after[key].id, text, created_at=now, updated_at=now,
                                    **resource) for key, added in new.items() for text in added])
    store.settle(tx, [each.id for key, each in {**there, **after}.items() if key in new], now)
    return ManagedChange(domain, list(_told(new, there, after)), changed)


def _rdatas(there: RecordSet | None, rtype: str, gone: Iterable[tuple[str, str]],
            added: Mapping[str, names_and_rdata.Rdata]) -> tuple[names_and_rdata.Rdata, ...]:
    texts = [record.data for record in (there.records if there else ())
             if there and ((there.id, record.data) not in gone or record.data in added)]
    found = {each.text: each for each in names_and_rdata.rdatas('records', rtype, texts)} if texts else {}
    return tuple({**found, **added}.values())


def _told(keys: Iterable[tuple[str, str]], before: Mapping[tuple[str, str], RecordSet],
          after: Mapping[tuple[str, str], RecordSet]) -> Iterable[tuple[str, RecordSet]]:
    for key in keys:
        if key in after and key not in before:
            yield events.CREATE, after[key]
        elif key in before and key not in after:
            yield events.DELETE, before[key]
        elif key in before and _texts(before[key]) != _texts(after[key]):
            yield events.UPDATE, after[key]


def _texts(found: RecordSet) -> set[str]:
    return {each.data for each in found.records}


def _typed(found: Iterable[RecordSet], rtype: str) -> list[RecordSet]:
    return [each for each in found if each.type == rtype]


def _with_ptr(floating_ip: FloatingIp, domain: Domain, found: RecordSet) -> FloatingIp:
    return dataclasses.replace(
        floating_ip, ptrdname=found.records[0].data if found.records else None, description=found.description,
        ttl=domain.ttl if found.ttl is None else found.ttl, action=found.action, status=found.status.value)
