"""Exports of domains as zone files: what is checked when one begins.  The API makes the file when it is fetched."""

from __future__ import annotations

from designate_pool.central import queries
from designate_pool.central.rules.quotas import Allowance
from designate_pool.model import Context, Domain
from designate_pool.storage.sql.database import Tx


def checked(tx: Tx, context: Context, domain_id: str, allowance: Allowance) -> Domain:
    """The domain, which may be exported.

    :raises DomainNotFound: when it does not exist, or is somebody else's
    :raises OverQuota: when it is larger than what its project may export
    """
    domain = queries.domain(tx, context, domain_id)
    allowance.check_export(tx, domain)
    return domain
