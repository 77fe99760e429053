"""Moves of domains to other pools, each function the work of one transaction.

The invariant: at every moment the servers of a pool that serves the domain keep it.

1. :func:`move` gives the domain its new pool, the name servers of that and a new serial; a secondary domain keeps the
   name servers and the serial of its masters.  The servers of the new pool create it.  Those of the former pool keep
   it, and get its changes as before, but do not decide its status.
2. :func:`retain_on_former_pool` is called when the new pool is first reported to serve it: from then on the former pool
   keeps it for a time in which resolvers may still have its name servers in their caches.
3. :func:`delete_from_former_pool` ends that: a row of a domain that is being deleted, the leftover, takes over what the
   former pool's servers have, and is deleted there as any other.  It has the id of the moved domain in ``moved_id``,
   and users do not see it.

Every step is in the database before anything is done, so a program that dies delays the move and loses nothing.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from designate_pool.central import events, recordset_changes, transactions
from designate_pool.central.rules import (domains as rules, journal, plans as plan_rules, pools as pool_rules,
                                          recordset_edits)
from designate_pool.central.rules.journal import Journal
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.rules.scheduler import POOL_ID, Scheduler
from designate_pool.central.transactions import lock_domain
from designate_pool.central.validation import requests
from designate_pool.errors import BadInput, InvalidField, Refused
from designate_pool.model import ChangeKind, Context, Domain, Pool
from designate_pool.protocol.rules import of_servers
from designate_pool.storage.operations import pool_servers, rrset_ownership, server_statuses
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, plans, pools, recordsets, secondary_zones as schedule


def move(tx: Tx, context: Context, domain_id: str, pool_id: str | None, scheduler: Scheduler, allowance: Allowance,
         chance: float, now: datetime, leftover_id: str, to: Journal) -> tuple[Domain, Domain | None]:
    """Move a domain to another pool.

    :param pool_id: None for the pool that the scheduler chooses
    :param chance: see :meth:`Scheduler.choose`
    :param leftover_id: a new id
    :returns: the moved domain, and the row under which the pool before the former one deletes its copy of it
    :raises Refused: when the last move has not ended, unless it is back to the former pool
    :raises BadInput: when it has records that servers of the pool do not take
    """
    domain, is_done = lock_domain(tx, context, domain_id)
    if is_done:
        return domain, None
    transactions.refuse_frozen(domain, domain.freeze)
    target = _target(tx, domain, pool_id, scheduler, chance)
    transactions.refuse_frozen(domain, target.freeze)
    refuse_untaken(tx, domain, target, allowance)
    plan_rules.gate_values(tx, context, domain, dataclasses.replace(domain, pool_id=target.id, pool_name=target.name),
                           now, 'pool_name')
    leftover = None
    if domain.former_pool_id not in (None, target.id):
        refuse_unserved(domain)
        domain, leftover = delete_from_former_pool(tx, domain, now, leftover_id)
    pools.hold(tx, domain.pool_id)
    moved = _renewed(domain, now, events.request_id(context))
    # What its new servers still have of an earlier stay there is older than the first serial, and does not count.
    moved = dataclasses.replace(
        moved, pool_id=target.id, pool_name=target.name, former_pool_id=domain.pool_id,
        former_pool_name=domain.pool_name, former_until=None, reported_serial=None,
        first_serial=moved.serial if domain.first_serial is not None or not domain.is_secondary else None,
        attributes=_naming(domain.attributes, target), release_state=None, version_before=None)
    edits = recordset_edits.RecordSetEdits()
    if domain.is_secondary:
        schedule.request(tx, moved.id, now)
        journal.note(tx, context, domain, moved, ChangeKind.MOVE, now)
    else:
        ns, = recordsets.at_apex(tx, [moved.id], 'NS')
        recordset_edits.set_records(edits, ns, rules.ns_rdatas(target.name_servers))
        former_pool = pools.get(tx, domain.pool_id)
        primary = ''.join(former_pool.name_servers[:1]) if former_pool else ''
        moved, = to.write(tx, [journal.JournalEntry(
            context, domain, moved, edits, [ns], ChangeKind.MOVE, begins_anew=True,
            former_primary='' if primary == target.name_servers[0] else primary)], now)
    domains.save(tx, moved, context.operation_id)
    domains.assign_pool(tx, moved)
    transactions.refuse_beside_former(tx, moved)
    # A pool that keeps the domain has not deleted anything.
    if domain.former_pool_id != target.id and not moved.awaits_first_transfer:
        rrset_ownership.reassign_of_name(tx, moved.id)
    if edits:
        recordset_changes.write_contents(tx, [(moved, edits)], now)
    catalog.bump(tx, target.id, now, [moved.id])
    return moved, leftover


def _target(tx: Tx, domain: Domain, pool_id: str | None, scheduler: Scheduler, chance: float) -> Pool:
    """The pool to which a domain is moved; shared.

    :raises InvalidField: when there is no such pool, or the domain is in it
    :raises BadInput: when the scheduler has chosen the pool that the domain is in
    """
    if pool_id is not None:
        target = pools.share(tx, pool_id)
    else:
        target = scheduler.choose(tx, json.loads(domain.attributes or '{}'), chance)
        if target is not None and target.id == domain.pool_id:
            raise BadInput(why='the attributes of the zone choose the pool that it is in; name another one')
    if target is None:
        raise InvalidField(field='pool_id', why='there is no such pool')
    if target.id == domain.pool_id:
        raise InvalidField(field='pool_id', why='the zone is in this pool')
    pool_rules.refuse_without_name_servers(target)
    if not pools.has_servers(tx, target.id):
        raise Refused('pool_without_servers', f'The pool {target.name} has no servers; configure them and start its '
                                              'pool manager first.', 409)
    if common := pool_servers.labels(tx, domain.pool_id) & pool_servers.labels(tx, target.id):
        raise Refused('pools_share_server', f'{min(common)} is a server of the pool {domain.pool_name} and of the pool '
                                            f'{target.name}: the zone would be deleted there when it leaves the '
                                            'former. Remove it from one of them.', 409)
    requests.not_in_catalog(domain.name, target.catalog_zone)
    return target


def refuse_untaken(tx: Tx, domain: Domain, pool: Pool, allowance: Allowance) -> None:
    """Refuse a domain with records that servers of a pool do not take."""
    limits = allowance.server_limits(tx, pool.id)
    contents: dict[str, dict[str, list[str]]] = {}
    for recordset in recordsets.of_domain(tx, domain.id) if limits else ():
        contents.setdefault(recordset.name, {})[recordset.type] = [record.data for record in recordset.records]
    for violation in of_servers(limits, domain.name, contents):
        raise BadInput(why=f'servers of the pool {pool.name} do not take it: {violation}')


def refuse_unserved(domain: Domain) -> None:
    """Refuse a change of a moved domain that its new pool does not serve yet."""
    if domain.former_pool_id is not None and domain.reported_serial is None:
        raise Refused('domain_being_moved', f'The zone {domain.name} is still being moved from the pool '
                                            f'{domain.former_pool_name}; wait until it is ACTIVE, or move it '
                                            'back.', 409)


def retain_on_former_pool(tx: Tx, reported: Sequence[Domain], now: datetime, delay: timedelta) -> bool:
    """Have former pools keep domains for *delay* from now on, if their new pools have just begun to serve them.

    :param reported: moved domains, locked
    :returns: whether there are any
    """
    served = [domain.id for domain in reported if domain.former_until is None and domain.reported_serial is not None]
    if served:
        domains.keep_until(tx, served, now + delay)
    return bool(served)


def delete_next_from_former_pool(tx: Tx, now: datetime, leftover_id: str) -> tuple[bool, Domain | None]:
    """As :func:`delete_from_former_pool` for one domain whose former pool has kept it long enough.

    :returns: whether there was one, and the row of the deletion; None if another Central was faster
    """
    domain_id = domains.to_leave(tx, now)
    if domain_id is None:
        return False, None
    domain = domains.lock(tx, domain_id)
    if domain is None or domain.former_pool_id is None or domain.former_until is None or domain.former_until > now:
        return True, None
    _, leftover = delete_from_former_pool(tx, domain, now, leftover_id)
    return True, leftover


def delete_from_former_pool(tx: Tx, domain: Domain, now: datetime,
                            leftover_id: str) -> tuple[Domain, Domain | None]:
    """Have a locked domain deleted from the servers of the pool that it was moved from.

    :returns: the domain, and the row under which the former pool deletes its copy; None if no pool kept it
    """
    if domain.former_pool_id is None or domain.former_pool_name is None:
        return domain, None
    moved = dataclasses.replace(domain, former_pool_id=None, former_pool_name=None, former_until=None)
    # Of a lower generation than the domain, which supersedes it when it comes back to this pool.
    leftover = dataclasses.replace(rules.leftover(moved, leftover_id, now), pool_id=domain.former_pool_id,
                                   pool_name=domain.former_pool_name)
    pools.hold(tx, leftover.pool_id)
    domains.insert(tx, leftover)
    domains.assign_pool(tx, moved)
    server_statuses.hand_over(tx, domain.id, leftover.id, leftover.pool_id, now)
    rrset_ownership.hand_over(tx, domain.id, leftover.id, leftover.pool_id)
    plans.drop_live(tx, domain.id, pool_servers.ids_of(leftover.pool_id),
                    f'{domain.name} was moved to the pool {domain.pool_name}', now)
    catalog.bump(tx, leftover.pool_id, now, [leftover.id])
    return moved, leftover


def _renewed(domain: Domain, now: datetime, request_id: str) -> Domain:
    """The domain with a new serial, if that is ours to give; to be served."""
    changed = rules.change(domain, now, request_id)
    if not domain.is_secondary:
        return changed
    return dataclasses.replace(changed, serial=domain.serial,
                               status=domain.status if domain.awaits_transfer else changed.status)


def _naming(attributes: str, pool: Pool) -> str:
    """The attributes with the id of *pool*, if they name a pool."""
    values = json.loads(attributes or '{}')
    if POOL_ID not in values:
        return attributes
    return json.dumps({**values, POOL_ID: str(UUID(pool.id))}, ensure_ascii=False)
