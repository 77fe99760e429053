"""When the next page of an audit may be taken, and who takes it.

The invariant: the pages of a round, assumed to be as many as in the last round, are spread evenly over its interval; a
round that takes longer continues without pauses.  So that servers are not flooded, at most :data:`MOST_SENT` messages
are unanswered at a time, and none of the last round when the next one begins.  A message that is not answered for
:data:`PATIENCE` counts as lost.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from designate_pool.model import Audit, AuditKind
from designate_pool.pool_manager.manager import Manager
from designate_pool.storage.operations import sweeps

#: Domains in a page, which is one message.
PAGE = 1000
MOST_SENT = 16
#: Seconds.
PATIENCE = 30.0
#: Seconds to wait while another pool manager has the page, while messages are unanswered, and at most.
BUSY, CROWDED, LONGEST = 0.25, 0.05, 45.0


def claim_page(manager: Manager, kind: AuditKind, interval: float,
               seconds: float | None = None) -> tuple[Audit | None, float]:
    """Claim the next page of a pool's round, and create the first round if there is none.

    :param interval: of a round, seconds
    :param seconds: for which it is claimed; by default as long as operations are
    :returns: the round, or None and the seconds to wait
    """
    storage, pool_name, by = manager.storage, manager.pool.name, manager.settings.name
    now, audit = storage.now(), storage.read(sweeps.get, pool_name, kind)
    if audit is None:
        storage.run(sweeps.create, pool_name, kind, now)
        audit = storage.read(sweeps.get, pool_name, kind)
    if audit is None:
        return None, BUSY
    if wait := pause(audit, by, now):
        return None, wait
    if is_silent(audit, now):
        storage.run_autocommitted(sweeps.forget_unanswered, audit)
        return None, 0.0
    until = now + timedelta(seconds=manager.settings.claim_seconds if seconds is None else seconds)
    return storage.run_autocommitted(sweeps.claim, audit, by, now, until), BUSY


def pause(audit: Audit, by: str, now: datetime) -> float:
    """Seconds after which to try again to take the next page; 0 if it may be taken now.

    :param by: the pool manager that wants it
    """
    if audit.next_at is not None and now < audit.next_at:
        return min(LONGEST, (audit.next_at - now).total_seconds())
    if audit.claimed_by not in (None, by) and audit.claimed_until is not None and now < audit.claimed_until:
        return BUSY
    most = MOST_SENT if audit.after_id else 1
    if audit.sent - audit.heard >= most and not is_silent(audit, now):
        return CROWDED
    return 0.0


def is_silent(audit: Audit, now: datetime) -> bool:
    """Whether the unanswered messages are lost."""
    return (audit.sent > audit.heard and audit.updated_at is not None
            and audit.updated_at <= now - timedelta(seconds=PATIENCE))


def next_page_at(audit: Audit, interval: float, more: bool, now: datetime) -> datetime:
    """When the page after this one is due, or the next round.

    :param audit: as it was when this page was taken
    :param interval: of a round, seconds
    :param more: whether the round has another page
    """
    if not more:
        return max(now, audit.started_at + timedelta(seconds=interval))
    done = pages(audit.now.domains) + 1
    expected = pages(audit.last.domains) if audit.last is not None else 1
    return max(now, audit.started_at + timedelta(seconds=interval * done / max(expected, done + 1)))


def pages(domains: int) -> int:
    """Number of pages of so many domains."""
    return -(-domains // PAGE)
