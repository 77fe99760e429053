"""The DS records of signed zones in parent zones that live here too, and their CDS and CDNSKEY in zones ``_signal``.

The invariant: the service puts DS records only into the zone right above that belongs to the same project and delegates
the zone, and a zone stays signed until they are out again.  When that is over, as when one of the two gets another
owner, the records stay, since without them the zone would no longer be validated, and are the parent's owner's.

CDS and CDNSKEY are put only into zones that are signed, and belong to the project that the policy names.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from designate_pool import consensus
from designate_pool.central import managed_records
from designate_pool.central.managed_records import ManagedChange
from designate_pool.central.rules.journal import Journal
from designate_pool.central.rules.quotas import Allowance
from designate_pool.model import ChangeKind, Context, Domain, ManagedRecord, ServerState, names
from designate_pool.protocol.names_and_rdata import lies_in
from designate_pool.serial import at_least, newer
from designate_pool.settings import SigningPolicy
from designate_pool.storage.operations import pool_servers, server_statuses
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, managed_records as store, pools, recordsets

_PLUGIN = {'plugin': 'dnssec'}
_RESOURCE, _SIGNAL = {**_PLUGIN, 'resource_type': 'ds'}, {**_PLUGIN, 'resource_type': 'signal'}
#: Who changes signed zones and their parents.
WHO = Context(user='signing', all_projects=True, may_approve=True, kind=ChangeKind.SIGNING)
#: The longest name, as text with its last dot.
_LONGEST = 254
_MAY_ANSWER = (ServerState.JOINING, ServerState.ACTIVE, ServerState.MAINTENANCE, ServerState.DRAINING)


class OwnParent(NamedTuple):
    """The parent zone of a zone, where it lives here.

    :ivar domain: the parent; None where the service keeps no DS records in one
    :ivar ds: the DS records that each of its servers has, as text, and those that are stored; None for a server that
        does not serve them yet
    :ivar why: why the service does not put them into it; '' if it does, or there is none
    :ivar rows: of the records that the service has put there
    :ivar ttl: of the DS records, in seconds
    """

    domain: Domain | None = None
    ds: Mapping[str, Sequence[str] | None] = {}
    why: str = ''
    rows: Sequence[ManagedRecord] = ()
    ttl: int = 0


def served_by(tx: Tx, domain: Domain) -> dict[str, int | None]:
    """The serial of a domain that each server serves that may answer, by its label; None where it is not known."""
    pools = (domain.pool_name, domain.former_pool_name)  # the servers of both answer
    rows = consensus.by_server(server_statuses.for_domains(tx, [domain.id])[domain.id])
    return {server.label: consensus.served(domain, rows.get(server.id, {}))
            for pool_name in pools if pool_name is not None
            for server in pool_servers.of_pool(tx, pool_name).servers if server.state in _MAY_ANSWER}


def own_parent(tx: Tx, domain: Domain, policy: SigningPolicy) -> OwnParent:
    """The parent of a zone, and what it has of it."""
    above = names.above(domain.name)
    by_name = domains.live_by_name(tx, above)
    parent = next((by_name[name] for name in above if name in by_name), None)
    rows = store.find(tx, {**_RESOURCE, 'resource_id': domain.id})
    if parent is None:
        return OwnParent(rows=rows)
    at_name = {recordset.type: recordset for recordset in recordsets.at_names(tx, parent.id, [domain.name])}
    why = ('own_parent of the policy is off' if not policy.own_parent else
           'it belongs to another project' if parent.project_id != domain.project_id else
           'it is a secondary zone' if parent.is_secondary else
           'its changes need approval' if parent.needs_approval else
           'it has no NS records of the zone' if 'NS' not in at_name and not rows else '')
    if why:
        return OwnParent(why=f'the service keeps no DS in {parent.name}, as {why}', rows=rows)
    records = at_name['DS'].records if 'DS' in at_name else ()
    texts = [record.data for record in records]
    serial = functools.reduce(lambda last, one: one if newer(one, last) else last,
                              [record.serial_number for record in records] or [parent.content_serial or parent.serial])
    return OwnParent(parent, {f'the zone {parent.name}': texts, **{
        label: texts if served is not None and at_least(served, serial) else None
        for label, served in served_by(tx, parent).items()}}, '', rows, max(
            parent.ttl, at_name['DS'].ttl or 0 if 'DS' in at_name else 0))


def keep(tx: Tx, context: Context, domain: Domain, wanted: Collection[str], policy: SigningPolicy, now: datetime,
         journal: Journal, allowance: Allowance) -> ManagedChange | None:
    """Give the parent of a zone exactly the *wanted* DS records beside those of users; None when it has them already.

    :raises designate_pool.errors.PoolError: when the parent cannot be changed, as one that is locked
    """
    parent, _, _, rows, _ = own_parent(tx, domain, policy)
    _leave(tx, [row for row in rows if parent is None or row.domain_id != parent.id], now)
    if parent is None or {row.data.lower() for row in rows} == set(wanted):
        return None
    records = managed_records.parse_records([{'name': domain.name, 'type': 'DS', 'data': text} for text in wanted])
    return managed_records.set_resource(
        tx, context, parent.id, {**_RESOURCE, 'resource_id': domain.id}, records, None, now, journal, allowance)


def keep_signal(tx: Tx, context: Context, domain: Domain, offered: Mapping[str, Sequence[bytes]], project_id: str,
                now: datetime, journal: Journal, allowance: Allowance) -> ManagedChange | None:
    """Give the next of a project's zones ``_signal`` exactly the records that are *offered*; None when all have them.

    :param offered: rdata of a zone, by type; none for one that is not signed, or is being deleted
    :param project_id: '' for no zones
    :raises designate_pool.errors.PoolError: when the zone cannot be changed, as one that is locked
    """
    # A name server below the zone cannot vouch for it (RFC 9615 section 4.1).
    above = {f'_signal.{name}' for name in pools.name_servers(tx, domain.pool_id)
             if not lies_in(name, domain.name)} if project_id and any(offered.values()) else ()
    fit = {zone.id: f'{recordsets.SIGNAL}.{domain.name}{zone.name}' for zone in domains.live_by_name(tx, above).values()
           if zone.project_id == project_id and zone.is_signed and not zone.needs_approval and zone.id != domain.id}
    rows = store.find(tx, {**_SIGNAL, 'resource_id': domain.id})
    others = domains.get_many(tx, {row.domain_id for row in rows} - fit.keys())
    strange = {zone.id for zone in others.values()
               if zone.needs_approval or project_id and zone.project_id != project_id}
    _leave(tx, [row for row in rows if row.domain_id in strange], now)
    for zone_id in sorted((fit.keys() | others.keys()) - strange):
        owner = fit.get(zone_id, '')
        records = managed_records.parse_records([
            {'name': owner, 'type': rtype, 'data': f'\\# {len(rdata)} {rdata.hex()}'}
            for rtype, rdatas in offered.items() for rdata in rdatas if 0 < len(owner) <= _LONGEST])
        if {row.data for row in rows if row.domain_id == zone_id} != {
                rdata.text for recordset in records for rdata in recordset.rdatas}:
            return managed_records.set_resource(tx, context, zone_id, {**_SIGNAL, 'resource_id': domain.id}, records,
                                                None, now, journal, allowance)
    return None


def has_signal(tx: Tx, domain: Domain) -> bool:
    """Whether zones ``_signal`` have records of a zone."""
    return bool(store.find(tx, {**_SIGNAL, 'resource_id': domain.id}))


def _leave(tx: Tx, rows: Sequence[ManagedRecord], now: datetime) -> None:
    """Leave records to the owners of the zones where they are."""
    if rows:
        domains.lock_many(tx, sorted({row.domain_id for row in rows}))
        store.delete(tx, [row.id for row in rows])
        store.mark_managed(tx, sorted({row.recordset_id for row in rows}), now)


def change_owner(tx: Tx, domain: Domain, now: datetime) -> None:
    """Look again at a domain that has got another owner, and at the zones whose records were put into it."""
    below = {row.resource_id for row in store.find(tx, {**_PLUGIN, 'domain_id': domain.id})}
    zone_signing.schedule(tx, [domain.id, *below], now)


def look_again(tx: Tx, domain: Domain, now: datetime, journal: Journal) -> Domain:
    """Take the records of zones that are signed no more out of a domain that was restored, and look at the others."""
    rows = store.find(tx, {**_PLUGIN, 'domain_id': domain.id})
    signed = zone_signing.states_of(tx, sorted({row.resource_id for row in rows}))
    zone_signing.schedule(tx, list(signed), now)
    former = [row.id for row in rows if row.resource_id not in signed]
    return managed_records.release(tx, WHO, domain.id, former, now, journal).domain if former else domain
