"""Transactions of Central: their repetition, and the locks of domains.

A transaction may be repeated (:mod:`designate_pool.storage.sql.database`), so ids and the time come from the caller.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from designate_pool.errors import DomainBeingDeleted, Forbidden, Locked, LostRace, PreconditionFailed, Refused
from designate_pool.model import Context, Domain, Freeze, RecordSet
from designate_pool.storage import queries
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains

T = TypeVar('T')
Lockable = TypeVar('Lockable', Domain, RecordSet)
#: Tries of a request that loses a race; each sees what the winner of the one before has written.
_MAX_TRIES = 5


def run(storage: Storage, work: Callable[..., T], *args: Any) -> T:
    """Run *work* as :meth:`Storage.run` does, and again when it raises :class:`LostRace`."""
    for _ in range(_MAX_TRIES - 1):
        try:
            return storage.run(work, *args)
        except LostRace:
            continue
    return storage.run(work, *args)


def lock_domain(tx: Tx, context: Context, domain_id: str, for_records: bool = False,
                or_locked: bool = False, or_going: bool = False) -> tuple[Domain, bool]:
    """Lock a domain for a change; the domain, and whether the operation has changed it already.

    Then the domain has the serial that it got by the operation; others may have changed or deleted it since.

    :param for_records: whether the change is one of records, which projects may make too that the domain is shared with
    :param or_locked: whether its owner may have locked it for other requests
    :param or_going: whether it may be being deleted
    :raises DomainNotFound: when it does not exist, or belongs to another project
    :raises Forbidden: when it is shared with the project of the context, and the change is its owner's; or for records
        of a secondary domain
    :raises DomainBeingDeleted: when it is being deleted
    :raises PreconditionFailed: when the context has a condition that is not true of it
    :raises Locked: when its owner or an administrator has locked it
    """
    return check_locked(tx, context, domain_id, domains.lock_for(tx, domain_id, context.operation_id), for_records,
                        or_locked=or_locked, or_going=or_going)


def check_locked(tx: Tx, context: Context, domain_id: str, locked: tuple[Domain | None, int | None],
                 for_records: bool, of_recordset: bool = False, or_locked: bool = False,
                 or_going: bool = False) -> tuple[Domain, bool]:
    """As :func:`lock_domain`, with the result of :func:`designate_pool.storage.zones.domains.lock_for`.

    :param of_recordset: whether the request, and so its condition, is about a recordset that exists
    """
    row, serial = locked
    visible = queries.seen if for_records else queries.owned
    domain = visible(tx, context, domain_id, row, or_deleted=serial is not None)
    if serial is None and domain.is_going and not or_going:
        raise DomainBeingDeleted(domain=domain.name)
    if for_records and domain.is_secondary:
        raise Forbidden(what=f'change the records of {domain.name}', type='secondary_zone',
                        why='it is a secondary zone, and has those of its masters')
    if serial is not None:
        return dataclasses.replace(domain, serial=serial), True
    check_changeable(context, domain, of_recordset, or_locked)
    return domain, False


def check_changeable(context: Context, domain: Domain, of_recordset: bool = False, or_locked: bool = False) -> None:
    """Refuse a change of a locked row's domain by its condition and its lock; see :func:`check_locked`."""
    if domain.former_pool_id is not None:  # two pools have it, and a change can wait for one freeze alone
        refuse_frozen(domain, domain.freeze)
    if domain.lock_reason is not None and not or_locked:
        raise Locked.of(f'The zone {domain.name}', domain)
    if not of_recordset and not context.allows_change_of(domain.etag):
        former = context.if_match.strip().strip('"').partition('-')[0]
        how = 'its email, TTL, description, attributes, masters or lock' if former == str(domain.serial) \
            else f'it is at serial {domain.serial}, no longer at {former}' if former.isdecimal() \
            else f'it is at serial {domain.serial}'
        raise PreconditionFailed(what=f'The zone {domain.name}', how=how)


def refuse_frozen(domain: Domain, pool_freeze: str | None) -> None:
    """Refuse what cannot wait for the end of a freeze: a move, and what changes a zone until the end of one."""
    freeze = Freeze.parse(pool_freeze)
    if domain.release_state is not None and domain.former_pool_id is None:
        raise Refused('being_released', f'The zone {domain.name} is being released in stages; wait until all servers '
                                        'have it, or abort that.', 409)
    if freeze is not None:
        raise Refused('pool_frozen', f'The zone {domain.name} is moved to or from a pool that is frozen, since '
                                     f'{freeze.reason}; wait until it is not.', 409)


def refuse_beside_former(tx: Tx, domain: Domain) -> None:
    """Refuse a stored domain that all servers of its pool would get at once, while some of them keep a former one of
    its name, whose deletion is released in stages."""
    if domains.awaits_former(tx, domain):
        raise Refused('former_released', f'Servers of the pool {domain.pool_name} still have a former zone '
                                         f'{domain.name}, whose deletion is being released in stages; wait until that '
                                         'has come through all stages.', 409)


def with_lock(what: str, old: Lockable, reason: str | None, is_admin: bool, now: datetime) -> Lockable:
    """A domain or recordset locked with a reason, or unlocked for None; *old* itself where it is so already.

    :raises Forbidden: when an administrator has locked it, and the requester is none
    """
    if old.locked_by_admin and not is_admin:
        raise Forbidden(what=f'change the lock of {what}', why=f'an administrator locked it: {old.lock_reason}')
    is_locked_so = (old.lock_reason, old.locked_by_admin) == (reason, reason is not None and is_admin)
    return old if is_locked_so else dataclasses.replace(
        old, lock_reason=reason, locked_by_admin=reason is not None and is_admin, updated_at=now,
        version=old.version + 1)
