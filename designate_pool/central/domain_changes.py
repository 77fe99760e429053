"""Changes of domains, but for their contents: each function is the work of one transaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from designate_pool.central import deleted_domains, events, recordset_changes, secondary_zones, zone_moves
from designate_pool.central.events import DomainTransition
from designate_pool.central.rules import (domains as rules, journal, name_ownership, plans as plan_rules,
                                          recordset_edits, reverts, status, zone_shares)
from designate_pool.central.rules.journal import Journal, JournalEntry
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.signing import parent_ds, signed_zones
from designate_pool.central.transactions import check_changeable, lock_domain, with_lock
from designate_pool.central.validation import requests
from designate_pool.errors import DomainNotFound, InvalidField, Locked, LostRace, PoolError, PoolNotFound, Refused
from designate_pool.model import NOTHING, Action, ChangeKind, Context, Domain, Release, Report, SigningState, Status
from designate_pool.serial import newer
from designate_pool.storage import queries
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.serving import catalog
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import (domains, nameserver_updates, plans, pools, recordsets,
                                          secondary_zones as schedule, versions, zone_tasks, zone_transfers)
from designate_pool.storage.zones.nameserver_updates import NameserverUpdate


def update_domain(tx: Tx, context: Context, domain_id: str, values: Mapping[str, Any], now: datetime,
                  to: Journal) -> tuple[Domain, bool]:
    """The domain, and whether what is served changes."""
    old, is_done = lock_domain(tx, context, domain_id)
    if old.is_secondary:
        return old if is_done else secondary_zones.update(tx, context, old, values, now), False
    if values.get('masters'):
        raise InvalidField(field='masters', why='a primary zone has none')
    new = dataclasses.replace(old, **values)
    if is_done or new == old:
        return old, is_done
    if new.ttl != old.ttl:
        _check_recordsets(tx, old, inheriting=True)
    plan_rules.gate_values(tx, context, old, new, now, *values)
    # Of the old one, so that what servers keep meanwhile is that.
    new = dataclasses.replace(rules.change(old, now, events.request_id(context)), **values)
    new, = to.write(tx, [JournalEntry(context, old, new)], now)
    domains.save(tx, new, context.operation_id)
    if new.ttl != old.ttl:
        recordsets.touch_inheriting(tx, new.id, new.serial, now)
    return new, True


def set_lock(tx: Tx, context: Context, domain_id: str, reason: str | None, is_admin: bool, now: datetime) -> Domain:
    """Lock a domain for requests, with a reason; None unlocks it.

    :param is_admin: whether only administrators may unlock it, and this one may unlock what others have locked so
    """
    old, _ = lock_domain(tx, context, domain_id, or_locked=True)
    new = with_lock(f'the zone {old.name}', old, reason, is_admin, now)
    if new is not old:
        domains.save_lock(tx, new)
    return new


def release_domain(tx: Tx, context: Context, domain_id: str, reason: str, now: datetime) -> Domain:
    """Let servers have the changes of a domain that wait for the end of a freeze; later ones wait again."""
    old, _ = lock_domain(tx, context, domain_id, or_locked=True)
    if old.waits_for is None:
        raise Refused('nothing_waits', f'No change of the zone {old.name} waits for the end of a freeze.', 409)
    return journal.release(tx, context, old, reason, now)


def give_domain(tx: Tx, context: Context, domain_id: str, project_id: str, now: datetime,
                allowance: Allowance) -> Domain:
    """Give the domain and its exports to another project, and withdraw its transfer request."""
    domain, _ = lock_domain(tx, context, domain_id)
    plan_rules.gate_values(tx, context, domain, dataclasses.replace(domain, project_id=project_id), now, 'project_id')
    moved = assign_to_project(tx, context, domain, project_id, now, allowance)
    if moved is not domain:
        zone_transfers.withdraw_active(tx, [domain_id])
    return moved


def assign_to_project(tx: Tx, context: Context, domain: Domain, project_id: str, now: datetime, allowance: Allowance,
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
    if domain.needs_approval:
        plans.drop(tx, [domain.id], 'the zone was given to another project', now, plans.IS_CHANGE)
    name_ownership.recheck_name(tx, context, domain.name, neighbourhood, project_id, *others)
    moved = dataclasses.replace(domain, project_id=project_id, updated_at=now, version=domain.version + 1)
    journal.note(tx, context, domain, moved, ChangeKind.OWNER, now)
    parent_ds.change_owner(tx, moved, now)
    return zone_shares.hand_over(tx, moved, project_id)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Deletion:
    """A request to delete a domain, which may be shared if *delete_shares*; *leftover_id* is a new id."""

    context: Context
    domain_id: str
    leftover_id: str
    delete_shares: bool = False


#: (domain, leftover): the row under which the former pool deletes its copy of the domain; None if it keeps none.
DomainAndLeftover = tuple[Domain, Domain | None]


def delete_domain(tx: Tx, request: Deletion, now: datetime, allowance: Allowance) -> DomainAndLeftover:
    """Have a domain deleted; of one that is being deleted already this is no error.  One that it has deleted, and that
    was restored since, is left alone."""
    locked = domains.lock_for(tx, request.domain_id, request.context.operation_id)
    result = _delete(tx, {request: locked}, now, allowance, is_alone=True)[request]
    if isinstance(result, Exception):
        raise result
    return result


def delete_domains(tx: Tx, requests: Sequence[Deletion], now: datetime,
                   allowance: Allowance) -> dict[Deletion, DomainAndLeftover | Exception]:
    """As :func:`delete_domain`, for some of several requests; their results or errors.

    Left out are requests for secondary domains, and for domains that another transaction has locked, that are shared,
    or that another pool keeps.
    """
    first = {request.domain_id: request for request in reversed(requests)}
    free = domains.lock_free_for(tx, {key: request.context.operation_id for key, request in first.items()})
    # In the order in which every transaction counts the deletes of projects, see quotas.
    return _delete(tx, {first[key]: locked for key, locked in sorted(
        free.items(), key=lambda item: item[1][0].project_id)}, now, allowance)


def _delete(tx: Tx, locked: Mapping[Deletion, tuple[Domain | None, int | None]], now: datetime, allowance: Allowance,
            is_alone: bool = False) -> dict[Deletion, DomainAndLeftover | Exception]:
    """Delete domains as :func:`designate_pool.storage.zones.domains.lock_for` has locked them; one that *is alone* may
    be of any kind."""
    results: dict[Deletion, DomainAndLeftover | Exception] = {}
    deleted: list[tuple[Context, Domain, Domain]] = []
    for request, (row, serial) in locked.items():
        context = request.context
        try:
            former = queries.owned(tx, context, request.domain_id, row)
            if former.is_going or serial is not None:
                results[request] = former, None
                continue
            unshared = _check_deletion(tx, context, former, request.delete_shares)
            plan_rules.gate_domain(tx, context, former, Action.DELETE, now, method='delete',
                                   delete_shares=request.delete_shares)
            if not is_alone and (former.shared or former.is_secondary or former.former_pool_id is not None):
                continue
            allowance.count_deletion(tx, former, now)
            former = unshared
        except LostRace:  # of all, who are then tried one by one
            raise
        except PoolError as error:
            results[request] = error.with_traceback(None)
            continue
        former, leftover = zone_moves.delete_from_former_pool(tx, former, now, request.leftover_id)
        domain = rules.delete(former, now, events.request_id(context))
        deleted.append((context, former, domain))
        results[request] = domain, leftover
    _save_deleted(tx, deleted, now)
    return results


def _check_deletion(tx: Tx, context: Context, domain: Domain, delete_shares: bool) -> Domain:
    """Refuse the deletion of a locked domain, or of one that has locked recordsets; the domain, not shared any more."""
    check_changeable(context, domain)
    _check_recordsets(tx, domain)
    signed_zones.refuse_relied_on(tx, domain, 'deleted')
    return zone_shares.suspend(domain, delete_shares)


def _check_recordsets(tx: Tx, domain: Domain, inheriting: bool = False) -> None:
    """Refuse a change of all recordsets, or those that have their TTL from the domain, if one of them is locked."""
    if domain.locked_recordsets and (recordset := recordsets.locked(tx, domain.id, inheriting)) is not None:
        raise Locked.of(f'The recordset {recordset.name} {recordset.type}', recordset)


def _save_deleted(tx: Tx, deletions: Sequence[tuple[Context, Domain, Domain]], now: datetime) -> None:
    """Write domains that are to be deleted, each with its former state, and end their plans and transfer requests.
    Call it last: a catalog stays locked."""
    if not deletions:
        return
    deleted = [domain for _, _, domain in deletions]
    ids = [domain.id for domain in deleted]
    domains.save_many(tx, ((domain, context.operation_id) for context, _, domain in deletions), {
        domain.id: _deleted_by(context, former, domain) for context, former, domain in deletions})
    if refreshed := [domain.id for domain in deleted if domain.is_secondary]:
        schedule.delete(tx, refreshed)
    plans.drop(tx, ids, 'the zone is being deleted', now)
    zone_transfers.withdraw_active(tx, ids)
    for pool_id in sorted({domain.pool_id for domain in deleted}):
        pools.hold(tx, pool_id, *(former for _, former, _ in deletions if former.pool_id == pool_id))
        catalog.bump(tx, pool_id, now, [domain.id for domain in deleted if domain.pool_id == pool_id])


def _deleted_by(context: Context, former: Domain, domain: Domain) -> str:
    return versions.origin_text(versions.of(context, former, domain, ChangeKind.DELETE))


def abandon_domain(tx: Tx, context: Context, domain_id: str, now: datetime, leftover_id: str,
                   delete_shares: bool = False) -> DomainAndLeftover:
    """Delete a domain here, and leave it on its servers; also one whose deletion has begun.

    :param leftover_id: as for :class:`Deletion`, and so is *delete_shares*
    :returns: as :func:`delete_domain`
    :raises Refused: when servers of its pool would delete it, or only its former pool serves it yet
    """
    locked, serial = domains.lock_for(tx, domain_id, context.operation_id)
    domain = queries.owned(tx, context, domain_id, locked, or_deleted=serial is not None)
    if serial is not None:
        return domain, None
    domain = _check_deletion(tx, context, domain, delete_shares)
    pools.hold(tx, domain.pool_id)
    pool = pools.get(tx, domain.pool_id)
    if pool is not None and pool.catalog_zone:
        raise Refused('zone_in_catalog', f'The zone {domain.name} cannot be abandoned: servers that read the catalog '
                                         f'zone {pool.catalog_zone} of its pool would delete it; remove the option '
                                         'catalog_zone from the pool first.', 409)
    zone_moves.refuse_unserved(domain)
    plan_rules.gate_domain(tx, context, domain, Action.DELETE, now, method='abandon', delete_shares=delete_shares)
    domain, leftover = zone_moves.delete_from_former_pool(tx, domain, now, leftover_id)
    former = domain
    if not domain.is_going:
        domain = rules.delete(domain, now, events.request_id(context))
    deleted_by = None if former.is_going else {domain.id: _deleted_by(context, former, domain)}
    domain = dataclasses.replace(domain, action=Action.NONE, status=Status.DELETED, converged_at=now, updated_at=now,
                                 abandoned=True, held_by=None, version_before=None,
                                 release_state=None)
    domains.save_many(tx, [(domain, context.operation_id)], deleted_by)
    schedule.delete(tx, [domain.id])
    server_statuses.forget(tx, domains.abandon(tx, domain))
    plans.drop(tx, [domain.id], 'the zone was abandoned', now)
    zone_transfers.withdraw_active(tx, [domain.id])
    return domain, leftover


def apply_reports(tx: Tx, context: Context, reports: Iterable[Report], now: datetime, to: Journal,
                  move_delay: timedelta = timedelta(0)) -> tuple[list[DomainTransition], list[str], bool]:
    """Apply *reports*.

    :param move_delay: for how long the former pools keep domains that their new pools serve by these reports
    :returns: the domains whose status changed, the ids of those that do not exist, and whether there are domains that
        former pools keep from now on
    """
    reports = list(reports)
    present = domains.lock_many(tx, [report.domain_id for report in reports])
    changed: dict[str, Domain] = {}
    served: dict[str, None] = {}
    failed: dict[int, list[str]] = {}
    moved: list[Domain] = []
    transitions: list[DomainTransition] = []
    for report in reports:
        former = present.get(report.domain_id)
        # An expired domain stays in error until a master is reached, whatever the servers still serve.
        decision = None if former is None or former.awaits_transfer else status.apply_report(former, report)
        if former is None or decision is None:
            continue
        if report.stage is not None:
            domain = _save_release(tx, context, former, decision.domain, report.why, now, to)
            present[report.domain_id] = domain
            moved.append(former)
            if domain.status is not former.status:
                transitions.append(DomainTransition(former, domain))
        elif decision.domain is not former:
            # What is ACTIVE already gets a report too when its signatures were renewed.
            is_done = decision.domain.status in (Status.ACTIVE, Status.DELETED) and \
                decision.domain.status is not former.status
            changed[report.domain_id] = present[report.domain_id] = domain = dataclasses.replace(
                decision.domain, updated_at=now, converged_at=now if is_done else decision.domain.converged_at)
            if domain.status is not former.status and domain.moved_id is None:
                transitions.append(DomainTransition(former, domain))
        if decision.served:
            served[report.domain_id] = None
        if decision.failed_serial is not None:
            failed.setdefault(decision.failed_serial, []).append(report.domain_id)
    domains.save_states(tx, changed.values())
    of_two_pools = [domain for domain in changed.values() if domain.former_pool_id is not None]
    retained = bool(of_two_pools) and zone_moves.retain_on_former_pool(tx, of_two_pools, now, move_delay)
    recordsets.complete(tx, served, now)
    for serial, ids in failed.items():
        recordsets.fail(tx, ids, serial, now)
    if moved:
        _bump_catalogs(tx, moved, now)
    return transitions, [report.domain_id for report in reports if report.domain_id not in present], retained


def _save_release(tx: Tx, context: Context, former: Domain, moved: Domain, why: str, now: datetime,
                  to: Journal) -> Domain:
    """Write a domain whose release has come to its next stage, or has failed."""
    if (release := moved.release) is not None and release.held:
        moved = _write_release(tx, context, former, rules.turn_back(moved, now, former.request_id), now, to, why[:255])
    moved = dataclasses.replace(moved, updated_at=now, version=former.version + 1)
    domains.save(tx, moved)
    return moved


def _write_release(tx: Tx, context: Context, old: Domain, new: Domain, now: datetime, to: Journal,
                   why: str | None = None) -> Domain:
    if new.serial != old.serial:
        new, = to.write(tx, [JournalEntry(context, old, new, kind=ChangeKind.RELEASE, begins_anew=True)], now)
    else:
        journal.note(tx, context, old, new, ChangeKind.RELEASE, now, why)
    return new


def _bump_catalogs(tx: Tx, released: Sequence[Domain], now: datetime) -> None:
    """Raise the serials of the catalogs that have got or lost these domains, in their former states, on the servers of
    a stage.  Call it last: a catalog stays locked."""
    changed = [domain for domain in released if domain.permitted is None]
    for pool_id in sorted({domain.pool_id for domain in changed}):
        catalog.bump(tx, pool_id, now, [domain.id for domain in changed if domain.pool_id == pool_id], may_wait=False)


def continue_release(tx: Tx, context: Context, domain_id: str, now: datetime, to: Journal) -> Domain:
    """Have the release of a domain go on: from the canaries again if it has failed, otherwise with the next stage."""
    old, release = _lock_released(tx, context, domain_id)
    if release is None:
        return old
    if domains.awaits_former(tx, old):
        raise Refused('former_released', f'The zone {old.name} is released when the deletion of the former zone of its '
                                         'name has come through all stages; continue that, by its id.', 409)
    if release.held:
        new = rules.continue_release(old, now, events.request_id(context))
    else:
        new = dataclasses.replace(status.next_stage(old, release), updated_at=now, version=old.version + 1)
    return _save_moved(tx, context, old, new, now, to)


def abort_release(tx: Tx, context: Context, domain_id: str, leftover_id: str, now: datetime, allowance: Allowance,
                  reserved: Sequence[str], to: Journal) -> DomainAndLeftover:
    """End a staged release: the domain has the contents before it again, on all servers at once; one that is being
    created is deleted, and one that is being deleted is restored.

    :param leftover_id: as for :func:`designate_pool.central.deleted_domains.restore`, and so is *reserved*
    """
    old, release = _lock_released(tx, context, domain_id)
    if release is None:
        return old, None
    if old.is_going:
        return deleted_domains.restore(tx, context, domain_id, leftover_id, now, allowance, reserved, to)
    if (before := old.permitted) is None and old.version_before == NOTHING:
        return delete_domain(tx, Deletion(context, domain_id, leftover_id), now, allowance)
    if before is None:
        raise Refused('not_revertible', f'The zone {old.name} was deleted and restored since the version that is '
                                        'served. Revert it to that, and continue the release.', 409)
    revert = reverts.of_domain(tx, context, old, before.serial, of_guests=True)
    if revert.unchanged:  # which may be what was not to be served
        name, rtype, why = revert.unchanged[0]
        raise Refused('not_revertible', f'{name} {rtype} of {old.name} cannot be turned back: {why}. Undo it, and '
                                        'continue the release.', 409)
    if revert.changes:
        undo = dataclasses.replace(context, if_match='', kind=ChangeKind.UNDO)
        old, _ = recordset_changes.apply_changes(tx, undo, domain_id, requests.changes(revert.changes), now, allowance,
                                                 to, is_abort=True)
    return _save_moved(tx, context, old, rules.abort_release(old, now, events.request_id(context)), now, to), None


def _lock_released(tx: Tx, context: Context, domain_id: str) -> tuple[Domain, Release | None]:
    """Lock a domain that is released in stages; its release, None if the operation has moved that already."""
    domain, is_done = lock_domain(tx, context, domain_id, or_locked=True, or_going=True)
    if is_done:
        return domain, None
    if domain.release_state is None:
        raise Refused('not_released', f'The zone {domain.name} is not being released in stages.', 409)
    if domain.freeze is not None:
        raise Refused('pool_frozen', f'The release of {domain.name} waits for the end of the freeze of its pool.', 409)
    return domain, domain.release


def _save_moved(tx: Tx, context: Context, old: Domain, new: Domain, now: datetime, to: Journal) -> Domain:
    """Write a domain whose release an administrator has moved."""
    new = _write_release(tx, context, old, new, now, to)
    domains.save(tx, new, context.operation_id)
    _bump_catalogs(tx, [old], now)
    return new


def raise_serial_above(tx: Tx, context: Context, domain_id: str, serial: int, now: datetime,
                       to: Journal) -> tuple[Domain, bool]:
    """Give the domain a serial above *serial*, which a server serves; the domain, and whether that was necessary."""
    domain = domains.lock(tx, domain_id)
    if domain is None or domain.status is Status.DELETED:
        raise DomainNotFound(domain=domain_id)
    # The serials of a secondary domain are its masters'.
    if domain.is_going or domain.is_secondary or not newer(serial, domain.serial):
        return domain, False
    domain, = to.write(tx, [JournalEntry(
        context, domain, rules.raise_serial_above(domain, serial, now, events.request_id(context)),
        kind=ChangeKind.SERIAL, begins_anew=True)], now)
    domains.save(tx, domain)
    return domain, True


def leave_out(tx: Tx, renewal: NameserverUpdate, after_id: str, left_out: Sequence[str], now: datetime,
              until: datetime) -> tuple[list[str], str | None]:
    """Go on after the domain that follows *after_id*, which cannot be changed; those left out, and its id."""
    left_out = [*left_out, *(domain.id for domain in domains.lock_page_of_pool(tx, renewal.pool_id, after_id, 1))]
    return left_out, left_out[-1] if nameserver_updates.advance(tx, renewal, left_out[-1], left_out, now,
                                                                until) else None


def update_name_servers(tx: Tx, renewal: NameserverUpdate, after_id: str, limit: int, left_out: Sequence[str],
                        now: datetime, until: datetime, to: Journal,
                        only: str | None = None) -> tuple[list[Domain], str | None]:
    """Change the NS records of one page of a pool's domains to its current name servers.

    :param left_out: ids of domains that could not be changed
    :param until: when another Central may go on with the next page
    :param only: the id of one of these, which is tried again in place of a page
    :returns: the changed domains, and the last id of the page; None after the last page, and when a newer renewal of
        the pool has replaced this one
    """
    pool = pools.share(tx, renewal.pool_id)
    if pool is None:
        raise PoolNotFound(pool=renewal.pool_id)
    page = domains.lock_page_of_pool(tx, renewal.pool_id, after_id, limit) if only is None else [
        domain for domain in domains.lock_many(tx, [only]).values()
        if domain.pool_id == renewal.pool_id and not domain.is_going]
    sets = {ns.domain_id: ns for ns in recordsets.at_apex(tx, [domain.id for domain in page], 'NS')}
    rdatas = rules.ns_rdatas(pool.name_servers)
    signing = zone_signing.states_of(tx, [domain.id for domain in page if domain.is_signed])
    changes: list[JournalEntry] = []
    for domain in page:
        edits = recordset_edits.RecordSetEdits()
        is_held = domain.id in signing and signing[domain.id].state is SigningState.HELD
        if not domain.is_secondary and not is_held and (
                recordset_edits.set_records(edits, sets[domain.id], rdatas) or renewal.everywhere):
            changes.append(JournalEntry(
                renewal.context, domain, rules.change(domain, now, renewal.request_id), edits, [sets[domain.id]],
                ChangeKind.POOL, renewal.everywhere, renewal.former_primary))
    changed = to.write(tx, changes, now)
    domains.save_many(tx, ((domain, '') for domain in changed))
    recordset_changes.write_contents(tx, [(entry.domain, entry.edits) for entry in changes], now)
    next_id = after_id if only is not None else page[-1].id if len(page) == limit else None
    return changed, next_id if nameserver_updates.advance(tx, renewal, next_id, left_out, now, until) else None
