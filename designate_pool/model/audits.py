"""Audits: rounds that check every domain of a pool on every server, and their findings."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from designate_pool.model.words import Word


class AuditKind(Word):
    """What a round checks."""

    SERIALS = 'SERIALS'
    CONTENTS = 'CONTENTS'
    #: Zones on servers that belong to no domain; they are logged.
    EXTRA = 'EXTRA'
    #: Unfinished domains, which are checked again in case a message about them was lost.  Not shown as an audit.
    UNSETTLED = 'UNSETTLED'


@dataclasses.dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a round.  A pair is one domain on one server.

    :ivar domains: how many domains were checked
    :ivar pairs: these domains times the servers that should have them
    :ivar asked: how many pairs the servers were asked about
    :ivar unanswered: how many of *asked* got no answer to any try
    :ivar findings: how many pairs were recorded as right and are wrong
    """

    domains: int = 0
    pairs: int = 0
    asked: int = 0
    unanswered: int = 0
    findings: int = 0

    @property
    def coverage(self) -> float:
        """The share of the pairs that were asked and answered, 0 to 1; 1 if there are no pairs."""
        return min(1.0, max(0.0, (self.asked - self.unanswered) / self.pairs)) if self.pairs else 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Audit:
    """The progress of one kind of audit in a pool; all pool managers of the pool share it.

    :ivar started_at: of the current round; in the future while that round waits for its start
    :ivar after_id: the last domain that the round has reached; empty before the first
    :ivar next_at: when the next page is due
    :ivar sent: how many messages asked for pages of domains to be checked
    :ivar heard: how many of *sent* have been answered
    :ivar now: the counts of the current round so far
    :ivar last: the counts of the previous round; None before the first has ended
    :ivar last_seconds: from the start of the previous round to its last answer
    :ivar claimed_by: the pool manager that works on a page, until *claimed_until*
    """

    pool_id: str
    kind: AuditKind
    started_at: datetime
    after_id: str = ''
    next_at: datetime | None = None
    sent: int = 0
    heard: int = 0
    now: Counts = Counts()
    last: Counts | None = None
    last_started_at: datetime | None = None
    last_seconds: float | None = None
    claimed_by: str | None = None
    claimed_until: datetime | None = None
    version: int = 1
    updated_at: datetime | None = None

    def is_under_way(self, now: datetime) -> bool:
        """Whether the current round has begun."""
        return self.started_at <= now and bool(self.after_id)


@dataclasses.dataclass(frozen=True, slots=True)
class AuditFinding:
    """A finding of an audit: a pair that was recorded as right and is wrong.

    :ivar what: a sentence that says what was found
    :ivar done: a sentence that says what was started to repair it
    :ivar mended: whether the server serves the zone correctly now; None if it should no longer have the zone
    """

    id: str
    created_at: datetime
    pool_id: str
    kind: AuditKind
    domain_id: str
    name: str
    server_id: str
    label: str
    what: str
    done: str
    mended: bool | None = False

    @property
    def request_id(self) -> str:
        """The request id of the repair, as in the logs."""
        return self.request_id_of(self.id)

    @staticmethod
    def request_id_of(finding_id: str) -> str:
        return f'audit-{finding_id[:12]}'
