"""Transactions of Central: their repetition, and the locks of domains.

A transaction may be repeated (:mod:`designate_pool.storage.sql.database`), so ids and the time come from the caller.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from designate_pool.errors import DomainBeingDeleted, Forbidden, LostRace
from designate_pool.model import Context, Domain
from designate_pool.storage import queries
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains

T = TypeVar('T')
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


def lock_domain(tx: Tx, context: Context, domain_id: str, for_records: bool = False) -> tuple[Domain, bool]:
    """Lock a domain for a change; the domain, and whether the operation has changed it already.

    Then the domain has the serial that it got by the operation; others may have changed or deleted it since.

    :param for_records: whether the change is one of records, which projects may make too that the domain is shared with
    :raises DomainNotFound: when it does not exist, or belongs to another project
    :raises Forbidden: when it is shared with the project of the context, and the change is its owner's; or for records
        of a secondary domain
    :raises DomainBeingDeleted: when it is being deleted
    """
    return check_locked(tx, context, domain_id, domains.lock_for(tx, domain_id, context.operation_id), for_records)


def check_locked(tx: Tx, context: Context, domain_id: str, locked: tuple[Domain | None, int | None],
                 for_records: bool) -> tuple[Domain, bool]:
    """As :func:`lock_domain`, with the result of :func:`designate_pool.storage.zones.domains.lock_for`."""
    row, serial = locked
    visible = queries.seen if for_records else queries.owned
    domain = visible(tx, context, domain_id, row, or_deleted=serial is not None)
    if serial is None and domain.is_going:
        raise DomainBeingDeleted(domain=domain.name)
    if for_records and domain.is_secondary:
        raise Forbidden(what=f'change the records of {domain.name}', why='it is a secondary zone, and has those of its '
                                                                         'masters')
    return (domain, False) if serial is None else (dataclasses.replace(domain, serial=serial), True)
