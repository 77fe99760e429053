"""Records for resources of other services: PTR records of floating IPs, and addresses of instances.

Users do not change such records.  A record may be for several resources, and is deleted with the last of them.  Other
records at its name stay.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from designate_pool.central import events, transactions
from designate_pool.central.recordset_changes import DomainEdits, gate, write_edits
from designate_pool.central.rules import name_ownership, recordset_edits
from designate_pool.central.rules.journal import Journal
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.validation import fields, names_and_rdata, requests
from designate_pool.central.validation.requests import KEEP, NewDomain, WantedRecordSet
from designate_pool.errors import BadInput, DuplicateDomain, InvalidField, NotFound, PoolError, Refused
from designate_pool.model import PTR, Action, Context, Domain, FloatingIp, ManagedRecord, RecordSet, Status, new_id
from designate_pool.protocol.rules import ServerLimit
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains, managed_records as store, recordsets

#: For how long the time of a resource's last event is kept.
EVENTS_KEPT = timedelta(days=1)
#: The fields that identify a resource.
_RESOURCE = ('plugin', 'resource_type', 'resource_id')


class ManagedChange(NamedTuple):
    """A change of managed records: the verb and recordset of each event, and whether what is served has *changed*."""

    domain: Domain
    events: Sequence[tuple[str, RecordSet]]
    changed: bool


# Floating IPs

def parse_floating_ip(values: Any) -> FloatingIp:
    """A floating IP from ``region``, ``id`` and ``address``, checked."""
    values = fields.mapping('floating_ip', values)
    fields.refuse_unknown(values, 'floating_ip.', ('region', 'id', 'address'))
    region, floating_ip_id, address = (fields.text(f'floating_ip.{name}', values.get(name), 100)
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
    parsed = ipaddress.ip_address(address)
    labels = parsed.reverse_pointer.split('.')
    return '.'.join(labels[1 if parsed.version == 4 else 16:]) + '.'


def reverse_domain(storage: Storage, make: Callable[[Context, NewDomain, Sequence[Any]], Domain], context: Context,
                   address: str, project_id: str, email: str) -> Domain:
    """The domain of *project_id* that has an address's PTR record; *make* creates it if there is none.

    :raises Refused: when another project has it, which would read and change the record
    """
    name = reverse_zone(address)
    owner = dataclasses.replace(context, project_id=project_id, all_projects=True, may_nest=True,
                                may_use_blacklisted=True, may_approve=context.may_approve and context.sees(project_id))
    domain = storage.read(_live, name)
    try:
        domain = domain or make(owner, requests.new_domain({'name': name, 'email': email}), ())
    except DuplicateDomain:
        domain = storage.read(_live, name)  # another request was faster
        if domain is None:
            raise
    if domain.project_id != project_id:
        raise Refused('reverse_zone_in_use', f'{address} gets no PTR record: another project than [service:central] '
                      f'managed_resource_tenant_id has the zone {name}; an administrator may give it to that.', 409)
    return domain


def _live(tx: Tx, name: str) -> Domain | None:
    return domains.live_by_name(tx, [name]).get(name)


def set_ptr(tx: Tx, context: Context, domain_id: str, floating_ip: FloatingIp, wanted: WantedRecordSet, now: datetime,
            journal: Journal, allowance: Allowance) -> tuple[ManagedChange, FloatingIp]:
    """Give a floating IP of the context's project its PTR record, in place of the one at its name.

    :raises InvalidField: when there is a CNAME at its name, or the name is that of a domain below this one
    """
    domain, is_done = _lock_any(tx, context, domain_id)
    at_name = recordsets.at_names(tx, domain.id, [wanted.name])
    former = _typed(at_name, 'PTR')
    changed = is_done
    if not is_done:
        edits = recordset_edits.plan(domain, at_name, [wanted], managed=True, may_edit_managed=True,
                                     limits=allowance.server_limits(tx, domain.pool_id))
        name_ownership.refuse_new_in_subzones(tx, context, domain, edits.new_sets, [wanted])
        gate(tx, DomainEdits(context, domain, edits, at_name), now, lambda: dataclasses.replace(
            floating_ip, ptrdname=wanted.rdatas[0].text, description=wanted.description,
            ttl=recordset_edits.served_ttl(domain, wanted.ttl), action=Action.UPDATE, status=Status.PENDING.value))
        (domain, changed), = write_edits(tx, [DomainEdits(context, domain, edits, former)], now, journal)
        present = _typed(recordsets.at_names(tx, domain.id, [wanted.name]), 'PTR')
        store.delete(tx, [row.id for row in store.of_recordsets(tx, [present[0].id])])
        store.insert(tx, [ManagedRecord(
            new_id(), domain.id, present[0].id, present[0].records[0].data, PTR, floating_ip.id,
            region=floating_ip.region, address=floating_ip.address, project_id=context.project_id, created_at=now,
            updated_at=now)])
        store.mark_managed(tx, [present[0].id], now)
    stored, = _typed(recordsets.at_names(tx, domain.id, [wanted.name]), 'PTR')
    verb = events.UPDATE if former and not is_done else events.CREATE
    return ManagedChange(domain, [(verb, stored)], changed), _with_ptr(floating_ip, domain, stored)


def show_floating_ips(tx: Tx, context: Context, floating_ips: Sequence[FloatingIp]) -> list[FloatingIp]:
    """Floating IPs of the context's project, with their PTR records.

    A record of another floating IP at the same address is not shown, and named as outdated.
    """
    rows = store.find(tx, {'resource_type': PTR, 'address': [floating_ip.address for floating_ip in floating_ips]})
    sets = recordsets.get_many(tx, [row.recordset_id for row in rows])
    owners = domains.get_many(tx, {row.domain_id for row in rows})
    by_address = {row.address: row for row in rows if row.recordset_id in sets}
    shown = []
    for floating_ip in floating_ips:
        row = by_address.get(floating_ip.address)
        if row is None:
            shown.append(floating_ip)
        elif (row.region, row.resource_id, row.project_id) != (floating_ip.region, floating_ip.id, context.project_id):
            shown.append(dataclasses.replace(floating_ip, outdated=row.id))
        else:
            shown.append(_with_ptr(floating_ip, owners[row.domain_id], sets[row.recordset_id]))
    return shown


def own_ptr(tx: Tx, context: Context, region: str, floating_ip_id: str) -> list[ManagedRecord]:
    """The rows that keep the PTR record of a floating IP of the context's project."""
    rows = store.find(tx, {'resource_type': PTR, 'region': region, 'resource_id': floating_ip_id,
                           'project_id': context.project_id})
    if not rows:
        raise NotFound(what=f'PTR record of the floating IP {region}:{floating_ip_id}')
    return rows


def find(tx: Tx, context: Context, criterion: Mapping[str, Any]) -> list[ManagedRecord]:
    """The managed records that match, of the projects that the context sees."""
    scope = {} if context.scope is None else {'project_id': context.scope}
    return store.find(tx, {**criterion, **scope})


# Resources of any kind

def parse_resource(values: Any) -> dict[str, str]:
    """The plugin, type and id of a resource, checked."""
    values = fields.mapping('resource', values)
    fields.refuse_unknown(values, 'resource.', _RESOURCE)
    resource = {name: fields.text(f'resource.{name}', values.get(name), 100) for name in _RESOURCE}
    if not all(resource.values()):
        raise BadInput(why='a resource has a plugin, a type and an id')
    return resource


def parse_records(given: Any) -> list[WantedRecordSet]:
    """One recordset for each record: mappings with ``name``, ``type`` and ``data``."""
    sets = []
    for index, record in enumerate(fields.sequence('records', given)):
        record, prefix = fields.mapping(f'records[{index}]', record), f'records[{index}].'
        fields.refuse_unknown(record, prefix, ('name', 'type', 'data'))
        rtype = names_and_rdata.record_type(f'{prefix}type', record.get('type'))
        sets.append(WantedRecordSet(
            name=names_and_rdata.name(f'{prefix}name', record.get('name')), type=rtype,
            rdatas=names_and_rdata.rdatas(f'{prefix}data', rtype, [record.get('data')]), prefix=prefix))
    return sets


def set_resource(tx: Tx, context: Context, domain_id: str, resource: Mapping[str, str],
                 wanted: Sequence[WantedRecordSet], at: datetime | None, now: datetime, journal: Journal,
                 allowance: Allowance) -> ManagedChange:
    """Give a resource exactly the *wanted* records in a domain.

    :param at: when the event was that wants them; one that is older than the last does nothing.  None: it is the last
    """
    domain, is_done = transactions.lock_domain(tx, context, domain_id, for_records=True)
    last = None if at is None else store.last_event(tx, domain.id, resource)
    if is_done or at is not None and last is not None and at < last:
        return ManagedChange(domain, (), is_done)
    if at is not None:
        store.keep_event(tx, domain.id, resource, at, now, now - EVENTS_KEPT)
    former = store.find(tx, {**resource, 'domain_id': domain.id})
    return _change(tx, context, domain, former, wanted, resource, now, journal,
                   allowance.server_limits(tx, domain.pool_id))


def change_each(domain_ids: Iterable[str], change: Callable[[str], None]) -> None:
    """Change each domain, also those after one that is refused, such as a locked one; then raise the last refusal."""
    refusal: PoolError | None = None
    for domain_id in domain_ids:
        try:
            change(domain_id)
        except PoolError as error:
            if error.code >= 500:
                raise
            refusal = error
    if refusal is not None:
        raise refusal


def release(tx: Tx, context: Context, domain_id: str, ids: Sequence[str], now: datetime,
            journal: Journal) -> ManagedChange:
    """Delete rows of managed records, and the records that nothing else keeps."""
    domain, is_done = _lock_any(tx, context, domain_id)
    rows = [] if is_done else store.find(tx, {'id': ids, 'domain_id': domain.id})
    return _change(tx, context, domain, rows, (), {}, now, journal) if rows else ManagedChange(domain, (), is_done)


def _lock_any(tx: Tx, context: Context, domain_id: str) -> tuple[Domain, bool]:
    """Lock a domain, whoever owns it; what needs approval is still a matter of the context."""
    return transactions.lock_domain(tx, dataclasses.replace(context, all_projects=True), domain_id, for_records=True)


def _change(tx: Tx, context: Context, domain: Domain, former: Sequence[ManagedRecord],
            wanted: Sequence[WantedRecordSet], resource: Mapping[str, str], now: datetime, journal: Journal,
            limits: Sequence[ServerLimit] = ()) -> ManagedChange:
    """Replace the rows *former* by those of *wanted*, and the records with them."""
    former_sets = recordsets.get_many(tx, [row.recordset_id for row in former]).values()
    names = [*(recordset.name for recordset in wanted), *(recordset.name for recordset in former_sets)]
    before = recordsets.at_names(tx, domain.id, names)
    store.delete(tx, [row.id for row in former])
    kept = {(row.recordset_id, row.data) for row in store.of_recordsets(tx, [row.id for row in before])}
    gone = {(row.recordset_id, row.data) for row in former} - kept
    new: dict[tuple[str, str], dict[str, names_and_rdata.Rdata]] = {
        (recordset.name, recordset.type): {} for recordset in former_sets}
    for recordset in wanted:
        new.setdefault((recordset.name, recordset.type), {}).update({rdata.text: rdata for rdata in recordset.rdatas})
    present = {(recordset.name, recordset.type): recordset for recordset in before}
    sets = [WantedRecordSet(*key, _rdatas(present.get(key), key[1], gone, added), ttl=KEEP)
            for key, added in new.items()]
    edits = recordset_edits.plan(domain, before, sets, may_be_gone=True, managed=True, may_edit_managed=True,
                                 limits=limits)
    name_ownership.refuse_new_in_subzones(tx, context, domain, edits.new_sets, sets)
    gate(tx, DomainEdits(context, domain, edits, before), now, lambda: None)
    (domain, changed), = write_edits(tx, [DomainEdits(context, domain, edits, before)], now, journal)
    after = {(recordset.name, recordset.type): recordset for recordset in recordsets.at_names(tx, domain.id, names)}
    store.insert(tx, [ManagedRecord(new_id(), domain.id, after[key].id, text, created_at=now, updated_at=now,
                                    **resource) for key, added in new.items() for text in added])
    store.mark_managed(tx, [recordset.id for key, recordset in {**present, **after}.items() if key in new], now)
    return ManagedChange(domain, list(_change_events(new, present, after)), changed)


def _rdatas(former: RecordSet | None, rtype: str, gone: Iterable[tuple[str, str]],
            added: Mapping[str, names_and_rdata.Rdata]) -> tuple[names_and_rdata.Rdata, ...]:
    texts = [record.data for record in (former.records if former else ())
             if former and ((former.id, record.data) not in gone or record.data in added)]
    kept = {rdata.text: rdata for rdata in names_and_rdata.rdatas('records', rtype, texts)} if texts else {}
    return tuple({**kept, **added}.values())


def _change_events(keys: Iterable[tuple[str, str]], before: Mapping[tuple[str, str], RecordSet],
                   after: Mapping[tuple[str, str], RecordSet]) -> Iterable[tuple[str, RecordSet]]:
    for key in keys:
        if key in after and key not in before:
            yield events.CREATE, after[key]
        elif key in before and key not in after:
            yield events.DELETE, before[key]
        elif key in before and _texts(before[key]) != _texts(after[key]):
            yield events.UPDATE, after[key]


def _texts(recordset: RecordSet) -> set[str]:
    return {record.data for record in recordset.records}


def _typed(sets: Iterable[RecordSet], rtype: str) -> list[RecordSet]:
    return [recordset for recordset in sets if recordset.type == rtype]


def _with_ptr(floating_ip: FloatingIp, domain: Domain, recordset: RecordSet) -> FloatingIp:
    return dataclasses.replace(
        floating_ip, ptrdname=recordset.records[0].data if recordset.records else None,
        description=recordset.description, ttl=domain.ttl if recordset.ttl is None else recordset.ttl,
        action=recordset.action, status=recordset.status.value)
