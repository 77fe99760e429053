"""Secondary domains, whose contents come from masters, which MiniDNS asks; functions are the work of one transaction.

The invariant: a secondary domain has the records and the SOA of a master at one serial, and never an older serial than
before.  It is served from its first transfer until it expires (RFC 1034 section 4.3.5).

A refresh is claimed by one MiniDNS (:func:`claim`), which ends it by :func:`store`, :func:`confirm` or :func:`fail`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import dns.exception
import dns.rdata
import dns.rdataclass
import dns.rdatatype

from designate_pool.backoff import Backoff
from designate_pool.central.events import DomainTransition
from designate_pool.central.recordset_changes import recordsets_around, write_contents
from designate_pool.central.rules import domains as domain_rules, journal as journals, plans, recordset_edits
from designate_pool.central.rules.journal import Journal, JournalEntry
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.transactions import refuse_frozen
from designate_pool.central.validation.names_and_rdata import Rdata
from designate_pool.central.validation.requests import KEEP, WantedRecordSet
from designate_pool.deadline import Turns
from designate_pool.errors import BadInput, InvalidField, TransferRejected
from designate_pool.model import (Action, ChangeKind, Context, Domain, RecordSet, RefreshTask, Status, ZoneTransferIn,
                                  hold)
from designate_pool.protocol import rules
from designate_pool.protocol.names_and_rdata import MAX_TTL, SINGLE, lies_in
from designate_pool.protocol.rules import ServerLimit
from designate_pool.protocol.soa_rdata import SoaValues, parse_soa
from designate_pool.serial import newer
from designate_pool.storage import queries
from designate_pool.storage.operations import rrset_ownership
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, recordsets, secondary_zones as schedule

#: Seconds between refreshes, whatever a SOA says; four weeks, as BIND has it.
LONGEST_INTERVAL = 2419200
#: Pauses before the first transfer, when no SOA is known.
_PAUSES = Backoff(10.0, cap=600.0)


class MasterZone(NamedTuple):
    """A transfer, parsed: rdata that was *added*, with its TTL, and texts of what is *gone*, both by name and type."""

    transfer: ZoneTransferIn
    soa: SoaValues
    added: Mapping[tuple[str, str], tuple[int, Mapping[str, Rdata]]]
    gone: Mapping[tuple[str, str], set[str]]


def parse(transfer: ZoneTransferIn, name: str) -> MasterZone:
    """Parse and check a transfer.

    :raises TransferRejected: when it has what cannot be stored
    """
    added: dict[tuple[str, str], tuple[int, dict[str, Rdata]]] = {}
    for owner, rtype, ttl, text in transfer.added:
        _check_place(owner, rtype, name)
        lowest, rdatas = added.setdefault((owner, rtype), (ttl, {}))
        rdatas[text] = Rdata(text, _wire(owner, rtype, text))
        if ttl < lowest:  # RFC 2181 section 5.2
            added[owner, rtype] = ttl, rdatas
    gone: dict[tuple[str, str], set[str]] = {}
    for owner, rtype, _, text in transfer.gone:
        gone.setdefault((owner, rtype), set()).add(text)
    soa = parse_soa(transfer.soa, name)
    if max(soa.refresh, soa.retry, soa.expire, soa.minimum) > MAX_TTL:
        raise TransferRejected(why=f'a time in the SOA is more than {MAX_TTL} s')
    return MasterZone(transfer, soa, added, gone)


def update(tx: Tx, context: Context, old: Domain, values: Mapping[str, Any], now: datetime) -> Domain:
    """Change what does not come from the masters of a locked domain; with new masters it is refreshed."""
    wrong = [(name, 'of a secondary zone it comes from its masters') for name in ('email', 'ttl')
             if name in values and values[name] != getattr(old, name)]
    if not values.get('masters', old.masters):  # it would be a primary one from now on, with their records
        wrong.append(('masters', 'a secondary zone has at least one'))
    if wrong:
        raise InvalidField.of(wrong)
    new = dataclasses.replace(old, **values)
    if new == old:
        return old
    plans.gate_values(tx, context, old, new, now, *values)
    new = dataclasses.replace(new, updated_at=now, version=old.version + 1)
    journals.note(tx, context, old, new, context.kind, now)
    domains.save(tx, new, context.operation_id)
    if new.masters != old.masters:
        schedule.request(tx, new.id, now)
    return new


def request(tx: Tx, context: Context, domain_id: str, now: datetime) -> Domain:
    """Have a secondary domain refreshed now."""
    domain = queries.owned(tx, context, domain_id, domains.lock(tx, domain_id))
    if not domain.is_secondary:
        raise BadInput(why=f'{domain.name} is a primary zone; only secondary zones are transferred from masters')
    schedule.request(tx, domain.id, now)
    return domain


def claim(tx: Tx, allowance: Allowance, pool_name: str, by: str, now: datetime, seconds: float, most: int,
          but_projects: Sequence[str], but_masters: Sequence[str]) -> list[RefreshTask]:
    """Claim due refreshes of a pool's domains for some seconds."""
    until = now + timedelta(seconds=seconds)
    return [dataclasses.replace(task, most_records=allowance.limits_of(tx, task.project_id).zone_records)
            for task in schedule.claim(tx, pool_name, by, now, until, most, but_projects, but_masters)]


def store(tx: Tx, context: Context, domain_id: str, by: str, master: str, zone: MasterZone, now: datetime,
          allowance: Allowance, journal: Journal, least: int) -> Domain | None:
    """Store what a master sent; the domain, or None when the claim was lost.

    :param least: seconds between refreshes
    :raises TransferRejected: when it does not follow from what is stored, or is no zone
    :raises OverQuota: when it is larger than the project's zones may be
    """
    old = _claimed(tx, domain_id, by)
    if old is None:
        return None
    if old.former_pool_id is not None:
        refuse_frozen(old, old.freeze)
    transfer, is_first = zone.transfer, old.transferred_at is None
    if transfer.from_serial is not None and (is_first or transfer.from_serial != old.serial):
        raise TransferRejected(why=f'the difference begins at serial {transfer.from_serial}, and not at {old.serial}')
    if not is_first and not newer(transfer.serial, old.serial):
        raise TransferRejected(why=f'serial {transfer.serial} is not newer than {old.serial}, which is stored')
    present, changes = _contents(tx, old, zone)
    edits = recordset_edits.plan(old, present, changes, from_master=True)
    _check_zone(old, present, changes, transfer.from_serial is None, allowance.server_limits(tx, old.pool_id))
    allowance.check_edits(tx, old, present, edits)
    new = dataclasses.replace(
        old, email=zone.soa.email, ttl=transfer.ttl, serial=transfer.serial, soa_names=zone.soa.names,
        refresh=zone.soa.refresh, retry=zone.soa.retry, expire=zone.soa.expire, minimum=zone.soa.minimum,
        first_serial=transfer.serial if is_first else old.first_serial, transferred_at=now, awaits_transfer=False,
        status=Status.PENDING, action=Action.CREATE if old.action is Action.CREATE else Action.UPDATE, updated_at=now,
        changed_at=now, converged_at=None, request_id='', version=old.version + 1, **hold(old))
    if is_first:
        if not recordsets.at_apex(tx, [new.id], 'SOA'):  # it was not restored
            recordsets.insert(tx, [domain_rules.from_pool(new)[0]], now)
        # Not before: until now the servers delete what a former domain of the name had there.
        rrset_ownership.reassign_of_name(tx, new.id)
    new, = journal.write(tx, [JournalEntry(context, old, new, edits, present, ChangeKind.REFRESH, is_first)], now)
    domains.save(tx, new)
    write_contents(tx, [(new, edits)], now)
    schedule.end(tx, domain_id, by, now, _next(new, now, least), master)
    return new


def confirm(tx: Tx, domain_id: str, by: str, master: str, now: datetime, least: int) -> Domain | None:
    """Note that a master has the stored serial; the domain if it is served again, after it had expired."""
    domain = _claimed(tx, domain_id, by)
    if domain is None:
        return None
    schedule.end(tx, domain_id, by, now, _next(domain, now, least), master)
    if not domain.awaits_transfer:
        return None
    served = domain.reported_serial == domain.serial
    domain = dataclasses.replace(domain, awaits_transfer=False, updated_at=now, version=domain.version + 1,
                                 status=Status.ACTIVE if served else Status.PENDING)
    domains.save(tx, domain)
    return domain


def fail(tx: Tx, domain_id: str, by: str, error: str, now: datetime, least: int) -> DomainTransition | None:
    """Note that a refresh failed; the change of the domain's status, if it was never transferred or expires by it."""
    domain = _claimed(tx, domain_id, by)
    state = schedule.get(tx, domain_id)
    if domain is None or state is None:
        return None
    expires_at = None
    if domain.transferred_at is None:
        next_at = now + timedelta(seconds=max(least, _PAUSES.delay(state.failures)))
    else:
        next_at = now + timedelta(seconds=_within(domain.retry, least))
        expires_at = (state.checked_at or domain.transferred_at) + timedelta(seconds=domain.expire)
        if not domain.awaits_transfer and expires_at > now:
            next_at = min(next_at, max(expires_at, now + timedelta(seconds=1)))
    schedule.end(tx, domain_id, by, now, next_at, error=error)
    expired = expires_at is not None and expires_at <= now
    if domain.status is Status.ERROR and (domain.awaits_transfer or not expired):
        return None
    if not expired and domain.transferred_at is not None:
        return None
    failed = dataclasses.replace(domain, status=Status.ERROR, awaits_transfer=True, updated_at=now,
                                 version=domain.version + 1)
    domains.save(tx, failed)
    return DomainTransition(domain, failed)


def _claimed(tx: Tx, domain_id: str, by: str) -> Domain | None:
    """The locked domain; None when it is being deleted, or when another one has the claim."""
    domain = domains.lock(tx, domain_id)
    return None if domain is None or domain.is_going or not schedule.holds(tx, domain_id, by) else domain


def _contents(tx: Tx, domain: Domain, zone: MasterZone) -> tuple[list[RecordSet], list[WantedRecordSet]]:
    """The recordsets that a transfer may affect, and what they become.

    :raises TransferRejected: for a difference that removes what is not there, or adds what is
    """
    is_whole, turns = zone.transfer.from_serial is None, Turns()
    sets = recordsets.of_domain(tx, domain.id) if is_whole else recordsets_around(
        tx, domain.id, [WantedRecordSet(*key, rdatas) for keys, rdatas in ((zone.added, KEEP), (zone.gone, ()))
                        for key in turns.between(keys)])
    present = [recordset for recordset in sets if recordset.type != 'SOA']
    if is_whole:
        keys = {(recordset.name, recordset.type) for recordset in present}
        return present, [*(WantedRecordSet(*key, tuple(rdatas.values()), ttl)
                           for key, (ttl, rdatas) in turns.between(zone.added.items())),
                         *(WantedRecordSet(*key, ()) for key in sorted(keys - zone.added.keys()))]
    stored = {(recordset.name, recordset.type): recordset for recordset in present}
    changes = []
    for key in turns.between(dict.fromkeys([*zone.gone, *zone.added])):
        former = stored.get(key)
        texts = {record.data for record in former.records} if former else set()
        gone = zone.gone.get(key, set())
        ttl, added = zone.added.get(key, (None, {}))
        if gone - texts or added.keys() & (texts - gone):
            raise TransferRejected(why=f'the difference does not fit what is stored at {" ".join(key)}')
        remaining = texts - gone
        kept = tuple(Rdata(text, _wire(*key, text)) for text in sorted(remaining))
        changes.append(WantedRecordSet(*key, (*kept, *added.values()),
                                       former.ttl if ttl is None and former is not None else ttl))
    return present, changes


def _check_zone(domain: Domain, present: Sequence[RecordSet], changes: Sequence[WantedRecordSet],
                is_whole: bool, limits: Sequence[ServerLimit]) -> None:
    """Refuse a zone without name servers, or against the rules."""
    types: dict[str, set[str]] = {}
    for recordset in present:
        types.setdefault(recordset.name, set()).add(recordset.type)
    for change in Turns().between(changes):
        at_name = types.setdefault(change.name, set())
        (at_name.add if change.rdatas else at_name.discard)(change.type)
        if change.type in SINGLE and len(change.rdatas) > 1:
            raise TransferRejected(why=f'{change.name} has more than one {change.type}')
    for _, violation in recordset_edits.violations(domain.name, present, changes, limits):
        raise TransferRejected(why=str(violation))
    at_apex = types.get(domain.name)
    if 'NS' not in (at_apex or ()) and (is_whole or at_apex is not None):
        raise TransferRejected(why=f'the zone has no name servers: no NS at {domain.name}')


def _check_place(owner: str, rtype: str, name: str) -> None:
    if not lies_in(owner, name):
        raise TransferRejected(why=f'{owner} {rtype} does not lie in {name}')
    if rtype == 'SOA' or rtype == 'CNAME' and owner == name:
        raise TransferRejected(why=f'there is a {rtype} at {owner}')


def _wire(owner: str, rtype: str, text: str) -> bytes:
    try:
        rdata = dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(rtype), text, relativize=False)
        mistake = rules.mistake(rtype, rdata)
        if mistake is not None:
            raise ValueError(mistake)
        return rdata.to_wire() or b''
    except (dns.exception.DNSException, ValueError) as error:
        raise TransferRejected(why=f'{owner} {rtype} is not valid ({error})') from None


def _next(domain: Domain, now: datetime, least: int) -> datetime:
    return now + timedelta(seconds=_within(domain.refresh, least))


def _within(seconds: int, least: int) -> int:
    return max(least, min(seconds, LONGEST_INTERVAL))
