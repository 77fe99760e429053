"""Deleted domains, which are kept for a time in which they can be restored; functions are the work of one transaction.

The invariant: a restored domain is to servers a new one of its name, of a newer generation and serial than all before;
only its id and its contents are the former ones.  So what is left of its deletion is given to a row of its own, the
leftover, as that of an older domain of the name, which the restored one supersedes
(:meth:`designate_pool.pool_manager.reconcile.domain_state.Step.supersede`).  A name that is taken by then, or lies
above or below the domains of others, is refused as it is to a new domain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from designate_pool.central import events, recordset_changes, transactions, zone_moves
from designate_pool.central.rules import domains as rules, name_ownership, plans, pools, recordset_edits, zone_names
from designate_pool.central.rules.journal import Journal, JournalEntry
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.signing import parent_ds
from designate_pool.central.validation import requests
from designate_pool.central.validation.names_and_rdata import Rdata
from designate_pool.central.validation.requests import WantedRecordSet
from designate_pool.errors import DuplicateDomain, Forbidden, NameTaken, Refused
from designate_pool.model import Action, ChangeKind, Context, Domain
from designate_pool.storage import queries
from designate_pool.storage.operations import rrset_ownership, server_statuses
from designate_pool.storage.serving import catalog
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import (domains, pools as pool_store, recordsets, secondary_zones as schedule,
                                          versions, zone_shares)
from designate_pool.storage.zones.zone_ancestry import Neighbour


def restore(tx: Tx, context: Context, domain_id: str, leftover_id: str, now: datetime, allowance: Allowance,
            reserved: Sequence[str], to: Journal) -> tuple[Domain, Domain | None]:
    """Bring a deleted domain back, also one that is still being deleted.

    :param leftover_id: a new id
    :param reserved: as for :class:`designate_pool.central.domain_creator.DomainCreator`
    :returns: the domain, and the leftover; None if nothing is left of the deletion
    :raises DuplicateDomain: when the name is taken
    :raises NameTaken: when it is taken by another project, or one above or below it is
    :raises Refused: when the pool was deleted, or records of a domain above are in the way
    """
    locked, serial = domains.lock_for(tx, domain_id, context.operation_id)
    if serial is not None:
        return queries.owned(tx, context, domain_id, locked, or_deleted=True), None
    domain = queries.restorable(context, domain_id, locked)
    pool = None if domain.former_pool_id is not None else pool_store.share(tx, domain.pool_id)
    if pool is None:
        raise Refused('pool_was_deleted', f'The zone {domain.name} cannot be restored: the pool that it was in was '
                                          'deleted.', 409)
    if domain.release_state is not None and domain.freeze is not None:
        raise Refused('pool_frozen', f'The zone {domain.name} cannot be restored before the end of the freeze of its '
                                     'pool: only the servers of some stages have what was released last.', 409)
    pools.refuse_without_name_servers(pool)
    requests.not_in_catalog(domain.name, pool.catalog_zone)
    zone_names.refuse_reserved(context, domain.name, reserved)
    zone_names.check(tx, context, domain.name)
    last = domains.last_of_name(tx, domain.name)
    assert last is not None
    if last.alive:
        raise (DuplicateDomain if context.sees(last.project_id) else NameTaken)(domain=domain.name)
    neighbourhood = name_ownership.check_name(tx, context, domain.name, domain.project_id)
    name_ownership.recheck_name_and_records(tx, context, domain.name, domain.project_id, neighbourhood,
                                            domain.needs_approval)
    _refuse_in_subzones(tx, context, domain, neighbourhood.below)
    allowance.check_restored(tx, domain)
    zone_moves.refuse_untaken(tx, domain, pool, allowance)
    plans.gate_domain(tx, context, domain, Action.CREATE, now)

    restored = rules.restore(domain, last.serial, last.generation, now, events.request_id(context))
    restored = dataclasses.replace(restored, shared=zone_shares.has_any(tx, domain.id))
    edits, present = recordset_edits.RecordSetEdits(), [] if restored.is_secondary else recordsets.at_apex(
        tx, [restored.id], 'NS')
    for ns in present:
        recordset_edits.set_records(edits, ns, rules.ns_rdatas(pool.name_servers))
    versions.write_deletion(tx, domain.id, now)
    restored, = to.write(tx, [JournalEntry(context, domain, restored, edits, present, ChangeKind.RESTORE,
                                           begins_anew=True)], now)
    domains.restore(tx, restored, context.operation_id)
    leftover = _leave_deletion(tx, restored, leftover_id, now)
    if restored.is_secondary:
        schedule.insert(tx, restored.id, now)
        transactions.refuse_beside_former(tx, restored)
    else:
        rrset_ownership.reassign_of_name(tx, restored.id)
        if edits:
            recordset_changes.write_contents(tx, [(restored, edits)], now)
    catalog.bump(tx, pool.id, now, [restored.id])
    zone_signing.schedule(tx, [restored.id], now)
    return parent_ds.look_again(tx, restored, now, to), leftover


def purge(tx: Tx, context: Context, domain_id: str) -> Domain:
    """Mark a deleted domain so that it is not restored and its contents may be deleted."""
    domain = queries.restorable(context, domain_id, domains.lock(tx, domain_id))
    if domain.needs_approval and not context.may_approve:
        raise Forbidden(what=f'purge the zone {domain.name}',
                        why='its deletion needed approval, so somebody who may approve changes has to')
    if (freeze := domain.waits_for) is not None:
        raise Refused('pool_frozen', f'The zone {domain.name} is still served, as its pool is frozen: {freeze.reason}',
                      409)
    if domain.release_state is not None:
        raise Refused('being_released', f'The zone {domain.name} is still served, as its deletion is being released in '
                                        'stages.', 409)
    domains.mark_purged(tx, [domain.id])
    return domain


def _refuse_in_subzones(tx: Tx, context: Context, domain: Domain, below: Sequence[Neighbour]) -> None:
    """Refuse a domain with records that belong to domains which were created below it since."""
    name_ownership.refuse_in_subzones(tx, context, domain, below, [
        WantedRecordSet(recordset.name, recordset.type, tuple(Rdata(record.data, b'') for record in recordset.records),
                        prefix=f'{recordset.name} {recordset.type} ')
        for recordset in (recordsets.of_domain(tx, domain.id) if below else ())])


def _leave_deletion(tx: Tx, restored: Domain, leftover_id: str, now: datetime) -> Domain | None:
    """Give what servers have still to do about the deletion of a domain to a row of its own; None if that is nothing.

    Calls in flight keep their claims, so that none is made for the restored domain before they have ended.
    """
    if not server_statuses.for_domains(tx, [restored.id])[restored.id]:
        return None
    leftover = rules.leftover(restored, leftover_id, now)
    domains.insert(tx, leftover)
    server_statuses.hand_over(tx, restored.id, leftover.id, None, now)
    if restored.is_secondary:  # until its first transfer, its former zone is deleted
        rrset_ownership.hand_over(tx, restored.id, leftover.id, leftover.pool_id)
    return leftover
