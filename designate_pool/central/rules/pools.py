"""The rules for pools, each function one transaction's work."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from designate_pool.central.events import request_id
from designate_pool.central.validation import requests
from designate_pool.errors import Conflict, InvalidField, Refused
from designate_pool.model import AlsoNotify, Context, Freeze, PageRequest, Pool, Release
from designate_pool.storage import queries
from designate_pool.storage.operations import heartbeats, pool_servers
from designate_pool.storage.serving import catalog
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import domains, nameserver_updates, plans, pools, tsigkeys, versions
from designate_pool.storage.zones.nameserver_updates import NameserverUpdate

#: Domains that get new name servers in one transaction.
PAGE = 500
#: How long a Central holds the claim on a renewal, from one page to the next.
CLAIM = timedelta(seconds=60)


def create(tx: Tx, pool: Pool, now: datetime) -> Pool:
    """Create a pool."""
    present = pools.share(tx, name=pool.name)
    if present is not None and present.id != pool.id:
        raise _duplicate(pool)
    _check_keys(tx, pool)
    if present is None:  # else the commit came through, the answer to it did not
        pools.insert(tx, pool, now)
    return queries.pool(tx, pool.id)


def update(tx: Tx, context: Context, pool_id: str, given: Mapping[str, Any], now: datetime,
           run: str) -> tuple[Pool, NameserverUpdate | None]:
    """The pool, and the update of its domains' NS records, with the new id *run*, if name servers were given."""
    old = pools.lock(tx, pool_id)
    new = requests.pool(given, old)
    has_servers = 'name_servers' in given or 'ns_records' in given
    if new == old:
        return old, _renewal(tx, context, old, run, False, now) if has_servers else None
    if new.name != old.name:
        if pools.share(tx, name=new.name) is not None:
            raise _duplicate(new)
        _check_unused(tx, old, now)  # its programs know it by its name
    if old.name_servers and not new.name_servers and pools.count_domains(tx, pool_id):
        raise InvalidField(field='name_servers', why='the pool has zones, whose SOA and NS records are generated from '
                                                     'these')
    if new.also_notifies != old.also_notifies:
        _check_keys(tx, new)
    if new.name_servers != old.name_servers and (freeze := Freeze.parse(old.freeze)) is not None:
        raise Refused('pool_frozen', f'The name servers of the pool {old.name} cannot be changed while it is frozen: '
                                     f'{freeze.reason}', 409)
    if new.name_servers != old.name_servers and zone_signing.count_held(tx, pool_id, 1):
        raise Refused('signing_held', f'The name servers of the pool {old.name} cannot be changed while it has zones '
                                      'whose signing is held since the database was restored.', 409)
    pools.save(tx, new, now)
    if new.name != old.name:
        plans.rename_pool(tx, old.name, new.name)
    if not has_servers:
        return queries.pool(tx, pool_id), None
    new_primary = new.name_servers[:1] != old.name_servers[:1]
    return queries.pool(tx, pool_id), _renewal(tx, context, old, run, new_primary, now,
                                               ''.join(old.name_servers[:1]) if new_primary else '')


def renew(tx: Tx, context: Context, pool_id: str, now: datetime, run: str) -> tuple[Pool, NameserverUpdate]:
    """The pool, and the update that gives each of its domains a new serial; signed ones are held instead."""
    pool = pools.lock(tx, pool_id)
    zone_signing.hold(tx, pool_id, 'the database was restored, and "designate-pool-manage dnssec resume" has not found '
                                   'yet that it has the keys of the zone', now)
    return pool, _renewal(tx, context, pool, run, True, now)


def _renewal(tx: Tx, context: Context, pool: Pool, run: str, everywhere: bool, now: datetime,
             former_primary: str = '') -> NameserverUpdate:
    renewal = NameserverUpdate(pool.id, run, everywhere, request_id(context), former_primary=former_primary,
                               actor=versions.actor_text(context.actor))
    nameserver_updates.begin(tx, renewal, now, now + CLAIM)
    return renewal


def freeze(tx: Tx, pool_id: str, wanted: Freeze, now: datetime) -> Pool:
    """Have the changes of a pool's domains wait; of a frozen pool, only the reason and the end are changed.

    Changes that are being made at the same time count as made before.
    """
    pool = pools.lock(tx, pool_id)
    present = Freeze.parse(pool.freeze)
    if present is None and nameserver_updates.is_running(tx, pool_id):
        raise Refused('name_servers_change', f'The zones of the pool {pool.name} are getting other name servers; try '
                                             'again when all have them.', 409)
    pools.set_freeze(tx, pool_id, wanted if present is None else dataclasses.replace(
        wanted, id=present.id, since=present.since), now)
    return queries.pool(tx, pool_id)


def unfreeze(tx: Tx, pool_id: str, now: datetime, only_due: bool = False) -> tuple[Pool, list[str] | None]:
    """End the freeze of a pool.

    :param only_due: not before the time at which it is to end by itself
    :returns: the pool, and the ids of the domains whose changes waited, in the order of these; None for no freeze
    """
    pool = pools.lock(tx, pool_id)
    present = Freeze.parse(pool.freeze)
    if present is None or only_due and not present.is_over(now):
        return pool, None
    waiting = domains.waiting(tx, pool_id, present.id)
    domains.begin_releases(tx, pool_id, present.id, None if pool.release_stages is None else Release().text)
    pools.set_freeze(tx, pool_id, None, now)
    catalog.bump(tx, pool_id, now, waiting, may_wait=False)  # also for what was made while it began
    return queries.pool(tx, pool_id), waiting


def delete(tx: Tx, pool_id: str, now: datetime) -> Pool:
    """Delete a pool without domains and programs; the pool as it was."""
    pool = pools.lock(tx, pool_id)
    count = pools.count_domains(tx, pool_id)
    if count:
        raise Refused('pool_not_empty', f'The pool {pool.name} still has {count} zones.', 409)
    _check_unused(tx, pool, now)
    if not pools.delete(tx, pool_id):
        raise Conflict(why='the last pool cannot be deleted: it keeps the serials of deleted zones')
    return pool


def refuse_without_name_servers(pool: Pool) -> None:
    """Refuse a pool without name servers, which cannot have domains."""
    if not pool.name_servers:
        raise Refused('pool_without_name_servers', f'The pool {pool.name} has no name servers for the SOA and NS '
                                                   'records; set them first.', 409)


def _duplicate(pool: Pool) -> Refused:
    return Refused('duplicate_pool', f'The pool {pool.name} exists already.', 409)


def _check_unused(tx: Tx, pool: Pool, now: datetime) -> None:
    """Refuse a change of a pool whose programs are running."""
    silent = now - timedelta(seconds=heartbeats.SILENCE)
    live = heartbeats.find(tx, PageRequest({'pool_name': pool.name, 'status': heartbeats.UP}), silent)
    if live:
        programs = ', '.join(f'{service.service_name} on {service.hostname}' for service in live)
        raise Refused('pool_in_use', f'Programs of the pool {pool.name} are running: {programs}. Stop them; a killed '
                                     f'program counts for {heartbeats.SILENCE:g} s more.', 409)


def _check_keys(tx: Tx, pool: Pool) -> None:
    """Refuse a key in ``also_notifies`` that is neither a server's nor one of the API's."""
    for index, target in enumerate(pool.also_notifies):
        key = AlsoNotify.parse(target).key
        if key is None:
            continue
        plain = key.lower().rstrip('.')
        if (plain not in {name.lower().rstrip('.') for name in pool_servers.key_names(tx)}
                and not tsigkeys.ids_of_names(tx, (plain, f'{plain}.'))):
            raise InvalidField(field=f'also_notifies[{index}]', why=f'there is no TSIG key {key}')
