"""What a server is called for, and whether that is recent.

A server that comes back, or that has lost its zones, has a backlog of operations; a recent change does not wait behind
them.  Both kinds are bounded where they are queued; the rest stays in the database.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

from designate_pool.model import Domain, ServerStatus

#: For how long a change is recent.
RECENT = timedelta(seconds=60)


@dataclasses.dataclass(frozen=True, slots=True)
class Operation:
    """A claimed row and its domain, as read when the operation was queued.

    :ivar recent: whether it is for a recent change
    """

    domain: Domain
    row: ServerStatus
    recent: bool = False


def is_recent(domain: Domain, now: datetime) -> bool:
    """Whether *domain* has changed recently."""
    return domain.changed_at is not None and now - domain.changed_at < RECENT
