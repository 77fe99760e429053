"""Moves of domains to other pools, each function the work of one transaction.

The invariant: at every moment the servers of a pool that serves the domain keep it.

1. :func:`move` gives the domain its new pool, the name servers of that and a new serial; a secondary domain keeps the
   name servers and the serial of its masters.  The servers of the new pool create it.  Those of the former pool keep
   it, and get its changes as before, but do not decide its status.
2. :func:`keep` is called when the new pool is first reported to serve it: from then on the former pool keeps it for a
   time in which resolvers may still have its name servers in their caches.
3. :func:`leave` ends that: a domain that is being deleted takes over what the former pool's servers have, and is
   deleted there as any other.  That one has the id of the moved domain in ``moved_id``, and users do not see it.

Every step is in the database before anything is done, so a program that dies delays the move and loses nothing.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from designate_pool.central import events, secondary_zones
from designate_pool.central.rules import domains as rules
from designate_pool.central.rules import recordset_edits
from designate_pool.central.rules.journal import cut_many
from designate_pool.central.rules.scheduler import POOL_ID
from designate_pool.central.validation import requests
from designate_pool.errors import BadInput, DomainBeingMoved, InvalidField, PoolWithoutNameServers, PoolWithoutServers
from designate_pool.model import Action, Context, Domain, Pool, Status
from designate_pool.storage.operations import rrset_ownership, server_statuses
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, plans, pools, recordsets


def move(tx: Tx, context: Context, domain: Domain, target: Pool | None, now: datetime,
         leftover_id: str) -> tuple[Domain, Domain | None]:
    """Begin to move a locked domain.

    :param target: shared; None if there is no such pool
    :param leftover_id: a new id
    :returns: the moved domain, and what a pool before the former one had kept of it until now and deletes
    :raises DomainBeingMoved: when the last move has not ended, unless it is back to the former pool
    """
    if target is None:
        raise InvalidField(field='pool_id', why='there is no such pool')
    if target.id == domain.pool_id:
        raise InvalidField(field='pool_id', why='the zone is in this pool')
    if not target.name_servers:
        raise PoolWithoutNameServers(pool=target.name)
    if not pools.has_servers(tx, target.id):
        raise PoolWithoutServers(pool=target.name)
    requests.not_in_catalog(domain.name, target.catalog_zone)
    leftover = None
    if domain.former_pool_id not in (None, target.id):
        if domain.reported_serial is None:
            raise DomainBeingMoved(domain=domain.name, pool=domain.former_pool_name)
        domain, leftover = leave(tx, domain, now, leftover_id)
    pools.hold(tx, domain.pool_id)
    moved = _renewed(domain, now, events.request_id(context))
    # What its new servers still have of an earlier stay there is older than the first serial, and does not count.
    moved = dataclasses.replace(
        moved, pool_id=target.id, pool_name=target.name, former_pool_id=domain.pool_id,
        former_pool_name=domain.pool_name, former_until=None, reported_serial=None,
        first_serial=moved.serial if domain.first_serial is not None or not domain.is_secondary else None,
        attributes=_naming(domain.attributes, target))
    if domain.is_secondary:
        secondary_zones.refresh_now(tx, moved.id, now)
    else:
        moved, = cut_many(tx, [moved])
    domains.save(tx, moved, context.operation_id)
    domains.assign_pool(tx, moved)
    # A pool that keeps the domain has not deleted anything.
    if domain.former_pool_id != target.id and not moved.awaits_first_transfer:
        rrset_ownership.reassign_of_name(tx, moved.id)
    if not domain.is_secondary:
        _rename_servers(tx, moved, target, now)
    catalog.bump(tx, target.id, now, [moved.id])
    return moved, leftover


def keep(tx: Tx, reported: Collection[Domain], now: datetime, delay: timedelta) -> bool:
    """Begin the time for which former pools keep those of these locked domains that their pools now serve; whether
    there are any."""
    served = [each.id for each in reported
              if each.former_pool_id is not None and each.former_until is None and each.reported_serial is not None]
    if served:
        domains.keep_until(tx, served, now + delay)
    return bool(served)


def leave_next(tx: Tx, now: datetime, leftover_id: str) -> tuple[bool, Domain | None]:
    """:func:`leave` for one domain whose former pool has kept it long enough.

    :returns: whether there was one, and what is being deleted; None if another Central was faster
    """
    found = domains.to_leave(tx, now)
    if found is None:
        return False, None
    domain = domains.lock(tx, found)
    if domain is None or domain.former_pool_id is None or domain.former_until is None or domain.former_until > now:
        return True, None
    domain, leftover = leave(tx, domain, now, leftover_id)
    return True, leftover


def leave(tx: Tx, domain: Domain, now: datetime, leftover_id: str) -> tuple[Domain, Domain | None]:
    """Have a locked domain deleted from the servers of the pool that it was moved from.

    :returns: the domain, and what is being deleted; None if no pool kept it
    """
    if domain.former_pool_id is None or domain.former_pool_name is None:
        return domain, None
    left = dataclasses.replace(domain, former_pool_id=None, former_pool_name=None, former_until=None)
    # Of a lower generation than the domain, which supersedes it when it comes back to this pool.
    leftover = dataclasses.replace(
        left, id=leftover_id, pool_id=domain.former_pool_id, pool_name=domain.former_pool_name, moved_id=domain.id,
        generation=domain.generation - 1, action=Action.DELETE, status=Status.PENDING, reported_serial=None,
        created_at=now, updated_at=now, deleted_at=now, changed_at=now, converged_at=None, version=1,
        journal_from=None, journal_to=None, journal_records=0, shared=False, awaits_transfer=False)
    pools.hold(tx, leftover.pool_id)
    domains.insert(tx, leftover)
    domains.assign_pool(tx, left)
    server_statuses.hand_over(tx, domain.id, leftover.id, leftover.pool_id, now)
    rrset_ownership.hand_over(tx, domain.id, leftover.id, leftover.pool_id)
    plans.drop_live_of_pool(tx, domain.id, leftover.pool_id, f'{domain.name} was moved to the pool {domain.pool_name}',
                            now)
    catalog.bump(tx, leftover.pool_id, now, [leftover.id])
    return left, leftover


def _renewed(domain: Domain, now: datetime, request_id: str) -> Domain:
    """The domain with a new serial, if that is ours to give; to be served."""
    changed = rules.change(domain, now, request_id)
    if not domain.is_secondary:
        return changed
    return dataclasses.replace(changed, serial=domain.serial,
                               status=domain.status if domain.awaits_transfer else changed.status)


def _rename_servers(tx: Tx, domain: Domain, pool: Pool, now: datetime) -> None:
    """Replace the NS records by those of *pool*."""
    edits = recordset_edits.RecordSetEdits()
    ns, = recordsets.at_apex(tx, [domain.id], 'NS')
    if recordset_edits.set_records(edits, ns, rules.ns_rdatas(pool.name_servers)):
        recordsets.delete_records(tx, edits.gone_records, domain.serial, now)
        recordsets.touch_records(tx, edits.touched_records, domain.serial, now)
        recordsets.insert_records(tx, domain.serial, ((domain.id, set_id, rdata.text, rdata.wire)
                                                      for set_id, rdata in edits.new_records), now)


def _naming(attributes: str, pool: Pool) -> str:
    """The attributes with the id of *pool*, if they name a pool."""
    found = json.loads(attributes or '{}')
    return json.dumps({**found, POOL_ID: str(UUID(pool.id))}, ensure_ascii=False) if POOL_ID in found else attributes


def check_chosen(domain: Domain, target: Pool | None) -> None:
    """
    :raises BadInput: when the scheduler has chosen the pool that the domain is in
    """
    if target is not None and target.id == domain.pool_id:
        raise BadInput(why='the attributes of the zone choose the pool that it is in; name another one')
