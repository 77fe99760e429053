"""Central's writes: each function is the work of one transaction.

A transaction may be repeated (:mod:`designate_pool.storage.sql.database`), so ids and the time come from the caller.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from designate_pool.central import events, secondary_zones, zone_moves
from designate_pool.central.events import DomainTransition
from designate_pool.central.recordset_writes import DomainEdits, InsertionParts, insertions, write_edits
from designate_pool.central.rules import domains as rules
from designate_pool.central.rules import name_ownership, recordset_edits, status, zone_names, zone_shares
from designate_pool.central.rules.journal import Journal, cut_many
from designate_pool.central.rules.quotas import Allowance, Growth
from designate_pool.central.rules.scheduler import Scheduler
from designate_pool.central.validation import requests
from designate_pool.central.validation.requests import NewDomain, WantedRecordSet
from designate_pool.errors import (DomainBeingDeleted, DomainBeingMoved, DomainNotFound, InvalidField, LostRace,
                                   PoolError, PoolNotFound, PoolWithoutNameServers, SerialMoved, ZoneInCatalog)
from designate_pool.model import Action, Context, Domain, Pool, Report, Status
from designate_pool.serial import newer
from designate_pool.storage.operations import rrset_ownership, server_statuses
from designate_pool.storage.reads import visibility
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Dialect, Storage, Tx
from designate_pool.storage.zones import (domains, nameserver_updates, plans, pools, recordsets, zone_tasks,
                                          zone_transfers)
from designate_pool.storage.zones.nameserver_updates import NameserverUpdate
from designate_pool.storage.zones.zone_ancestry import Neighbour

T = TypeVar('T')
#: Tries of a request that loses a race; each sees what the winner of the one before has written.
_MAX_TRIES = 5


def run(storage: Storage, work: Callable[..., T], *args: Any) -> T:
    """:meth:`Storage.run`, again when *work* raises :class:`LostRace`."""
    for _ in range(_MAX_TRIES - 1):
        try:
            return storage.run(work, *args)
        except LostRace:
            continue
    return storage.run(work, *args)


def create_domain(tx: Tx, pool: Pool | None, context: Context, domain_id: str, wanted: NewDomain,
                  sets: Iterable[Sequence[WantedRecordSet]], now: datetime, allowance: Allowance,
                  ahead: Callable[[InsertionParts], Any] = iter) -> Domain:
    """Six statements, with or without recordsets; two more if the database has several writers, and
    two if the pool has a catalog zone.

    :param pool: shared; None if it does not exist
    :param sets: in parts, each checked by itself; every part after the first takes two more statements
    :param ahead: has parts prepared while those before are written
    """
    if pool is None:
        raise PoolNotFound(pool=wanted.pool_id or wanted.pool_name or '(the default one)')
    if not pool.name_servers:
        raise PoolWithoutNameServers(pool=pool.name)
    requests.not_in_catalog(wanted.name, pool.catalog_zone)
    last = domains.last_of_name(tx, wanted.name)
    if last is not None and last.id == domain_id:
        return _existing(tx, domain_id)  # the commit came through, the answer to it did not
    zone_names.check(tx, context, wanted.name)
    if last is not None and last.alive:
        raise name_ownership.taken_error(context, last, wanted.name)
    neighbourhood = name_ownership.check_name(tx, context, wanted.name, context.project_id)
    if neighbourhood.former != (last.id if last else ''):  # another domain had the name for a moment
        raise LostRace(what=f'name {wanted.name}')
    domain = rules.begin(domain_id, wanted, pool, context.project_id, last.serial if last else None,
                         last.generation if last else 0, now, events.request_id(context))
    if wanted.masters:
        domain = secondary_zones.first_state(domain, wanted.masters)
    parts = iter(sets)
    first = next(parts, ())
    edits = recordset_edits.plan(domain, (), first, must_be_new=True)
    name_ownership.refuse_in_subzones(context, domain, neighbourhood.below, first)
    growth = allowance.for_new_domain(tx, context.project_id)
    growth.add(edits)
    soa, ns = rules.from_pool(domain)
    domains.insert(tx, domain)
    if last is not None and not domain.is_secondary:  # else by its first transfer
        rrset_ownership.reassign_of_name(tx, domain.id)
    if domain.is_secondary:
        secondary_zones.begin(tx, domain, now)
    else:
        edits.new_sets[:0] = [soa, ns]
        edits.new_records[:0] = [(ns.id, rdata) for rdata in rules.ns_rdatas(pool.name_servers)]
    with contextlib.closing(ahead(_insertions(tx.dialect, context, domain, edits, parts, neighbourhood.below, growth,
                                              now))) as prepared:
        for some in prepared:
            for insert in some:
                insert(tx)
    name_ownership.recheck_name_and_records(tx, context, domain.name, context.project_id, neighbourhood)
    catalog.bump(tx, pool.id, now, [domain.id])
    return domain


def _insertions(dialect: Dialect, context: Context, domain: Domain,
                edits: recordset_edits.RecordSetEdits, parts: Iterable[Sequence[WantedRecordSet]],
                below: Sequence[Neighbour], growth: Growth, now: datetime) -> InsertionParts:
    """
    :param edits: of the first part
    :param parts: the others
    """
    yield insertions(dialect, domain, edits, now)
    for part in parts:
        edits = recordset_edits.plan(domain, (), part, must_be_new=True)
        name_ownership.refuse_in_subzones(context, domain, below, part)
        growth.add(edits)
        yield insertions(dialect, domain, edits, now)


def lock_domain(tx: Tx, context: Context, domain_id: str) -> Domain:
    """The domain for a change of it.

    :raises DomainNotFound: when it does not exist, or belongs to another project
    :raises Forbidden: when it is shared with the project of the context, and the change is its owner's
    :raises DomainBeingDeleted: when it is being deleted
    """
    return lock_for_change(tx, context, domain_id)[0]


def lock_for_change(tx: Tx, context: Context, domain_id: str) -> tuple[Domain, bool]:
    """:func:`lock_domain`, and whether the operation has changed the domain already.

    Then the domain has the serial that it got by the operation; others may have changed or deleted it since.
    """
    return _check(tx, context, domain_id, visibility.owned, *domains.lock_for(tx, domain_id, context.operation_id))


def lock_records(tx: Tx, context: Context, domain_id: str) -> tuple[Domain, bool]:
    """:func:`lock_for_change`, for a change of records, which those may make too that the domain is shared with."""
    return check_records(tx, context, domain_id, *domains.lock_for(tx, domain_id, context.operation_id))


def check_records(tx: Tx, context: Context, domain_id: str, found: Domain | None,
                  serial: int | None) -> tuple[Domain, bool]:
    """:func:`lock_records`, of what :func:`designate_pool.storage.zones.domains.lock_for` has found."""
    domain, is_done = _check(tx, context, domain_id, visibility.seen, found, serial)
    secondary_zones.refuse_changes(domain)
    return domain, is_done


def _check(tx: Tx, context: Context, domain_id: str, rule: Callable[..., Domain], found: Domain | None,
           serial: int | None) -> tuple[Domain, bool]:
    domain = rule(tx, context, domain_id, found, or_deleted=serial is not None)
    if serial is not None:
        return dataclasses.replace(domain, serial=serial), True
    if domain.is_going:
        raise DomainBeingDeleted(domain=domain.name)
    return domain, False


def update_domain(tx: Tx, context: Context, domain_id: str, values: Mapping[str, Any], now: datetime,
                  journal: Journal) -> tuple[Domain, bool]:
    """The domain, and whether what is served changes."""
    old, is_done = lock_for_change(tx, context, domain_id)
    if old.is_secondary:
        return old if is_done else secondary_zones.update(tx, context, old, values, now), False
    if values.get('masters'):
        raise InvalidField(field='masters', why='a primary zone has none')
    new = dataclasses.replace(old, **values)
    if is_done or new == old:
        return old, is_done
    new = journal.cut(tx, rules.change(new, now, events.request_id(context)))
    domains.save(tx, new, context.operation_id)
    if new.ttl != old.ttl:
        recordsets.touch_inheriting(tx, new.id, new.serial, now)
    return new, True


def give_domain(tx: Tx, context: Context, domain_id: str, project_id: str, now: datetime,
                allowance: Allowance) -> Domain:
    """Give the domain and its exports to another project, and withdraw its transfer request."""
    domain = lock_domain(tx, context, domain_id)
    moved = move_domain(tx, context, domain, project_id, now, allowance)
    if moved is not domain:
        zone_transfers.withdraw_active(tx, [domain_id])
    return moved


def move_domain(tx: Tx, context: Context, domain: Domain, project_id: str, now: datetime, allowance: Allowance,
                *others: str) -> Domain:
    """Assign a locked domain, and its exports, to another project.

    :param others: projects whose domains may lie above and below it, besides those of *project_id*
    """
    if domain.project_id == project_id:
        return domain
    neighbourhood = name_ownership.check_name(tx, context, domain.name, project_id, *others)
    allowance.for_new_domain(tx, project_id)
    domains.assign_project(tx, domain.id, project_id, now)
    zone_tasks.assign_exports(tx, domain.id, project_id)
    name_ownership.recheck_name(tx, context, domain.name, neighbourhood, project_id, *others)
    moved = dataclasses.replace(domain, project_id=project_id, updated_at=now, version=domain.version + 1)
    return zone_shares.hand_over(tx, moved, project_id)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Deletion:
    """A request to delete a domain.

    :ivar leftover_id: a new id
    :ivar delete_shares: whether it may be shared with other projects
    """

    context: Context
    domain_id: str
    leftover_id: str
    delete_shares: bool = False


#: The domain, and what the pool that it was moved from had kept of it and deletes too.
Deleted = tuple[Domain, Domain | None]


def delete_domain(tx: Tx, request: Deletion, now: datetime) -> Deleted:
    """Begin the deletion of a domain; of one that is being deleted already this is no error."""
    domain = visibility.owned(tx, request.context, request.domain_id, domains.lock(tx, request.domain_id))
    if domain.is_going:
        return domain, None
    domain = zone_shares.end_all(tx, domain, request.delete_shares)
    domain, leftover = zone_moves.leave(tx, domain, now, request.leftover_id)
    domain = rules.end(domain, now, events.request_id(request.context))
    secondary_zones.end(tx, domain)
    _delete(tx, [domain], now)
    return domain, leftover


def delete_domains(tx: Tx, requests: Sequence[Deletion], now: datetime) -> dict[Deletion, Deleted | Exception]:
    """:func:`delete_domain` for some of several requests, and their errors.

    Left out are those whose domains others have locked, share, or had in another pool, and secondary domains.
    """
    first = {request.domain_id: request for request in reversed(requests)}
    results: dict[Deletion, Deleted | Exception] = {}
    gone: list[tuple[Deletion, Domain]] = []
    for domain_id, (found, _) in domains.lock_free_for(tx, dict.fromkeys(first, '')).items():
        request = first[domain_id]
        try:
            domain = visibility.owned(tx, request.context, domain_id, found)
        except PoolError as error:
            results[request] = error.with_traceback(None)
            continue
        if domain.is_going:
            results[request] = domain, None
        elif not domain.shared and not domain.is_secondary and domain.former_pool_id is None:
            gone.append((request, rules.end(domain, now, events.request_id(request.context))))
    _delete(tx, [domain for _, domain in gone], now)
    return results | {request: (domain, None) for request, domain in gone}


def _delete(tx: Tx, gone: Sequence[Domain], now: datetime) -> None:
    """Write domains whose deletion begins, and end what there is for them.  Call it last: a catalog stays locked."""
    if not gone:
        return
    ids = [domain.id for domain in gone]
    domains.save_many(tx, ((domain, '') for domain in gone))
    plans.drop_all(tx, ids, 'the zone is being deleted', now)
    zone_transfers.withdraw_active(tx, ids)
    for pool_id in sorted({domain.pool_id for domain in gone}):
        pools.hold(tx, pool_id)
        catalog.bump(tx, pool_id, now, [domain.id for domain in gone if domain.pool_id == pool_id])


def abandon_domain(tx: Tx, context: Context, domain_id: str, now: datetime, leftover_id: str,
                   delete_shares: bool = False) -> tuple[Domain, Domain | None]:
    """Delete a domain here, and leave it on its servers; also one whose deletion has begun.

    :param leftover_id: as for :class:`Deletion`, and so is *delete_shares*
    :returns: as :func:`delete_domain`
    :raises ZoneInCatalog: when servers of its pool would delete it
    :raises DomainBeingMoved: when its pool does not serve it yet and the former one does
    """
    found, serial = domains.lock_for(tx, domain_id, context.operation_id)
    domain = visibility.owned(tx, context, domain_id, found, or_deleted=serial is not None)
    if serial is not None:
        return domain, None
    pools.hold(tx, domain.pool_id)
    pool = pools.get(tx, domain.pool_id)
    if pool is not None and pool.catalog_zone:
        raise ZoneInCatalog(domain=domain.name, catalog=pool.catalog_zone)
    if domain.former_pool_id is not None and domain.reported_serial is None:
        raise DomainBeingMoved(domain=domain.name, pool=domain.former_pool_name)
    domain, leftover = zone_moves.leave(tx, zone_shares.end_all(tx, domain, delete_shares), now, leftover_id)
    if not domain.is_going:
        domain = rules.end(domain, now, events.request_id(context))
    domain = dataclasses.replace(domain, action=Action.NONE, status=Status.DELETED, converged_at=now, updated_at=now,
                                 abandoned=True)
    domains.save(tx, domain, context.operation_id)
    secondary_zones.end(tx, domain)
    server_statuses.forget(tx, domains.abandon(tx, domain))
    plans.drop_all(tx, [domain.id], 'the zone was abandoned', now)
    zone_transfers.withdraw_active(tx, [domain.id])
    return domain, leftover


def move_to_pool(tx: Tx, context: Context, domain_id: str, pool_id: str | None, scheduler: Scheduler, chance: float,
                 now: datetime, leftover_id: str) -> tuple[Domain, Domain | None]:
    """See :func:`designate_pool.central.zone_moves.move`.

    :param pool_id: None for the one that the scheduler chooses
    """
    domain, is_done = lock_for_change(tx, context, domain_id)
    if is_done:
        return domain, None
    if pool_id is not None:
        target = pools.share(tx, pool_id)
    else:
        target = scheduler.choose(tx, json.loads(domain.attributes or '{}'), chance)
        zone_moves.check_chosen(domain, target)
    return zone_moves.move(tx, context, domain, target, now, leftover_id)


def apply(tx: Tx, context: Context, domain_id: str, wanted: Sequence[WantedRecordSet], now: datetime,
          allowance: Allowance, journal: Journal, serial: int | None = None) -> tuple[Domain, bool]:
    """Change the recordsets to *wanted*; the domain, and whether its served contents change.

    :param serial: what the domain's serial must be
    :raises SerialMoved: when it has another one
    """
    domain, is_done = lock_records(tx, context, domain_id)
    if is_done:
        return domain, True
    if serial is not None and domain.serial != serial:
        raise SerialMoved(domain=domain.name, found=domain.serial, wanted=serial)
    present = recordsets.at_names(tx, domain.id, [each.name for each in wanted])
    keys = {(each.name, each.type) for each in wanted}
    zone_shares.refuse_foreign(context, domain, (each for each in present if (each.name, each.type) in keys))
    edits = recordset_edits.plan(domain, present, wanted, project_id=zone_shares.project_of_new(context, domain),
                                 may_edit_managed=context.may_edit_managed)
    name_ownership.refuse_new_in_subzones(tx, context, domain, edits.new_sets, wanted)
    allowance.check_edits(tx, domain, present, edits)
    return write_edits(tx, [DomainEdits(context, domain, edits, present)], now, journal)[0]


def apply_reports(tx: Tx, reports: Iterable[Report], now: datetime,
                  move_delay: timedelta = timedelta(0)) -> tuple[list[DomainTransition], list[str], bool]:
    """Apply *reports*; the domains whose status changed, the ids of those that do not exist, and whether domains that
    were moved are served by their pools now.

    :param move_delay: for how long the former pools keep these
    """
    reports = list(reports)
    present = domains.lock_many(tx, [report.domain_id for report in reports])
    changed: dict[str, Domain] = {}
    settled: dict[str, None] = {}
    failed: dict[int, list[str]] = {}
    transitions: list[DomainTransition] = []
    for report in reports:
        domain_now = present.get(report.domain_id)
        # What has expired stays in error until a master is reached, whatever the servers still serve.
        decision = None if domain_now is None or domain_now.awaits_transfer else status.decide(domain_now, report)
        if decision is None:
            continue
        if decision.domain is not present[report.domain_id]:
            there = decision.domain.status in (Status.ACTIVE, Status.DELETED)
            former = present[report.domain_id]
            changed[report.domain_id] = present[report.domain_id] = domain = dataclasses.replace(
                decision.domain, updated_at=now, converged_at=now if there else decision.domain.converged_at)
            if domain.status is not former.status and domain.moved_id is None:
                transitions.append(DomainTransition(former, domain))
        if decision.settled:
            settled[report.domain_id] = None
        if decision.failed_serial is not None:
            failed.setdefault(decision.failed_serial, []).append(report.domain_id)
    domains.save_states(tx, changed.values())
    kept = zone_moves.keep(tx, changed.values(), now, move_delay)
    recordsets.settle(tx, settled, now)
    for serial, ids in failed.items():
        recordsets.fail(tx, ids, serial, now)
    return transitions, [report.domain_id for report in reports if report.domain_id not in present], kept


def outrun_serial(tx: Tx, context: Context, domain_id: str, serial: int, now: datetime) -> tuple[Domain, bool]:
    """Give the domain a serial above *serial*, which a server serves; the domain, and whether that was necessary."""
    domain = domains.lock(tx, domain_id)
    if domain is None or domain.status is Status.DELETED:
        raise DomainNotFound(domain=domain_id)
    # The serials of a secondary domain are its masters'.
    if domain.is_going or domain.is_secondary or not newer(serial, domain.serial):
        return domain, False
    changed = rules.outrun(domain, serial, now, events.request_id(context))
    domain, = cut_many(tx, [changed])
    domains.save(tx, domain)
    return domain, True


def update_name_servers(tx: Tx, pool_id: str, after_id: str, limit: int, everywhere: bool,
                        now: datetime, request_id: str = '') -> tuple[list[Domain], str | None]:
    """Change the NS records of one page of the pool's domains to its current name servers.

    :param everywhere: whether every domain needs a new serial: the SOA's primary has changed, or all are renewed
    :returns: the changed domains, and the last id of the page, None after the last page
    """
    pool = pools.share(tx, pool_id)
    if pool is None:
        raise PoolNotFound(pool=pool_id)
    page = domains.lock_page_of_pool(tx, pool_id, after_id, limit)
    sets = {found.domain_id: found for found in recordsets.at_apex(tx, [domain.id for domain in page], 'NS')}
    rdatas = rules.ns_rdatas(pool.name_servers)
    changed: list[Domain] = []
    by_serial: dict[int, recordset_edits.RecordSetEdits] = {}
    for domain in page:
        if domain.is_secondary:
            continue
        edits = recordset_edits.RecordSetEdits()
        if recordset_edits.set_records(edits, sets[domain.id], rdatas) or everywhere:
            changed.append(rules.change(domain, now, request_id))
            _merge(by_serial.setdefault(changed[-1].serial, recordset_edits.RecordSetEdits()), edits)
    changed = cut_many(tx, changed)
    domains.save_serials(tx, changed)
    owner = {found.id: domain_id for domain_id, found in sets.items()}
    for serial, edits in by_serial.items():
        recordsets.delete_records(tx, edits.gone_records, serial, now)
        recordsets.touch_records(tx, edits.touched_records, serial, now)
        recordsets.insert_records(tx, serial, ((owner[set_id], set_id, rdata.text, rdata.wire)
                                               for set_id, rdata in edits.new_records), now)
    return changed, page[-1].id if len(page) == limit else None


def update_name_servers_page(tx: Tx, renewal: NameserverUpdate, after_id: str, limit: int, now: datetime,
                             until: datetime) -> tuple[list[Domain], str | None]:
    """:func:`update_name_servers` for a page of *renewal*, and its progress; None for the id also when a newer renewal
    of the pool has replaced this one."""
    changed, next_id = update_name_servers(tx, renewal.pool_id, after_id, limit, renewal.everywhere, now,
                                           renewal.request_id)
    return changed, next_id if nameserver_updates.advance(tx, renewal, next_id, now, until) else None


def _merge(into: recordset_edits.RecordSetEdits, edits: recordset_edits.RecordSetEdits) -> None:
    into.gone_records.extend(edits.gone_records)
    into.touched_records.extend(edits.touched_records)
    into.new_records.extend(edits.new_records)


def _existing(tx: Tx, domain_id: str) -> Domain:
    domain = domains.get(tx, domain_id)
    assert domain is not None
    return domain
