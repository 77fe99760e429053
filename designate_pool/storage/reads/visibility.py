"""Who may use a domain: its owner may do everything, and a project that it is shared with sees it."""

from __future__ import annotations

from designate_pool.errors import SHARED, DomainNotFound, Forbidden
from designate_pool.model import Context, Domain, Status
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.zones import zone_shares as store


def seen(tx: Tx, context: Context, domain_id: str, found: Domain | None, or_deleted: bool = False) -> Domain:
    """*found*, for its owner and those it is shared with.

    :param or_deleted: whether it may be deleted
    :raises DomainNotFound: for others, and when it is None
    """
    if found is None or not or_deleted and found.status is Status.DELETED or not (
            context.sees(found.project_id) or found.shared and context.project_id
            and store.of_target(tx, found.id, context.project_id)):
        raise DomainNotFound(domain=domain_id)
    return found


def owned(tx: Tx, context: Context, domain_id: str, found: Domain | None, or_deleted: bool = False) -> Domain:
    """*found*, for its owner.

    :param or_deleted: as for :func:`seen`
    :raises DomainNotFound: as :func:`seen`
    :raises Forbidden: for those it is shared with
    """
    domain = seen(tx, context, domain_id, found, or_deleted)
    if is_guest(context, domain):
        raise Forbidden(what=f'do this with {domain.name}', why=SHARED)
    return domain


def is_guest(context: Context, domain: Domain) -> bool:
    """Whether the context sees a domain only because it is shared with its project."""
    return not context.sees(domain.project_id)
