"""The pace of a round over all domains: when its next page may be taken.

The invariant: the pages of a round are spread over the interval, as many as the last round had, and a round that does
not fit goes on without a pause.  So that nothing piles up where servers are asked, only :data:`MOST_SENT` messages are
on their way at a time, and none of the last round when the next begins; what has not been answered for
:data:`PATIENCE` will not be.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from designate_pool.model import Audit, AuditKind
from designate_pool.storage.operations import sweeps
from designate_pool.storage.sql.database import Storage

#: Domains in a page, which is one message.
PAGE = 1000
MOST_SENT = 16
#: Seconds.
PATIENCE = 30.0
#: Seconds between two looks: at a page that somebody else is at, at messages on their way, and at the most.
BUSY, CROWDED, LONGEST = 0.25, 0.05, 5.0


def due_page(storage: Storage, pool_name: str, kind: AuditKind, by: str, now: datetime) -> tuple[Audit | None, float]:
    """Where a pool's round is, if its next page may be taken now; otherwise None, and the seconds to wait.

    The first round of all is begun.

    :param by: who asks
    """
    audit = storage.read(sweeps.get, pool_name, kind)
    if audit is None:
        storage.run(sweeps.create, pool_name, kind, now)
        return None, BUSY
    wait = pause(audit, by, now)
    return (None, wait) if wait else (audit, 0.0)


def pause(audit: Audit, by: str, now: datetime) -> float:
    """Seconds to wait before the next page is taken or this is asked again; 0 when it can be taken now.

    :param by: who asks
    """
    if audit.next_at is not None and audit.next_at > now:
        return min(LONGEST, (audit.next_at - now).total_seconds())
    if audit.claimed_by not in (None, by) and audit.claimed_until is not None and audit.claimed_until > now:
        return BUSY
    most = MOST_SENT if audit.after_id else 1
    if audit.sent - audit.heard >= most and not is_silent(audit, now):
        return CROWDED
    return 0.0


def is_silent(audit: Audit, now: datetime) -> bool:
    """Whether nobody answers what was sent."""
    return (audit.sent > audit.heard and audit.updated_at is not None
            and audit.updated_at + timedelta(seconds=PATIENCE) <= now)


def next_page_at(audit: Audit, interval: float, more: bool, now: datetime) -> datetime:
    """When the page after this one is due, or the next round.

    :param audit: as it was when this page was taken
    :param interval: in which a round is to be done, seconds
    :param more: whether the round has another page
    """
    if not more:
        return max(now, audit.started_at + timedelta(seconds=interval))
    done = pages(audit.now.domains) + 1
    expected = pages(audit.last.domains) if audit.last is not None else 1
    return max(now, audit.started_at + timedelta(seconds=interval * done / max(expected, done + 1)))


def pages(domains: int) -> int:
    """How many pages so many domains are."""
    return -(-domains // PAGE)
