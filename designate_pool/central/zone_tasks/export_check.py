"""The check at the beginning of an export.  The API makes the zone file when it is downloaded."""

from __future__ import annotations

from designate_pool.central.rules.quotas import Allowance
from designate_pool.model import Context, Domain
from designate_pool.storage.reads import queries
from designate_pool.storage.sql.database import Tx


def checked(tx: Tx, context: Context, domain_id: str, allowance: Allowance) -> Domain:
    """The domain, if it may be exported.

    :raises DomainNotFound: when it does not exist, or belongs to another project
    :raises OverQuota: when it is larger than its project may export
    """
    domain = queries.own_domain(tx, context, domain_id)
    allowance.check_export(tx, domain)
    return domain
