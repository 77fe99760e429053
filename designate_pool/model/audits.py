"""Rounds that look at every domain of a pool on every server, and what they found."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from designate_pool.model.words import Word


class AuditKind(Word):
    """What a round looks at."""

    SERIALS = 'SERIALS'
    CONTENTS = 'CONTENTS'
    #: Zones on servers that no domain explains; people are told of these in the log.
    EXTRA = 'EXTRA'
    #: Domains that have not come to rest; that is no audit, and nobody is shown it.
    UNSETTLED = 'UNSETTLED'


@dataclasses.dataclass(frozen=True, slots=True)
class Counts:
    """What a round has come to; a pair is one domain on one server.

    :ivar domains: how many were looked at
    :ivar pairs: of these with the servers that should have them
    :ivar asked: pairs of which a server was asked; *unanswered* of these it did not answer, all tries together
    :ivar findings: pairs that were thought to be right and are not
    """

    domains: int = 0
    pairs: int = 0
    asked: int = 0
    unanswered: int = 0
    findings: int = 0

    @property
    def coverage(self) -> float:
        """The share of the pairs that were asked and answered, 0 to 1; 1 where there are none."""
        return min(1.0, max(0.0, (self.asked - self.unanswered) / self.pairs)) if self.pairs else 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Audit:
    """Where the round of one kind is in a pool, so that all its pool managers share it.

    :ivar started_at: of the present round; later than now while that waits to begin
    :ivar after_id: the last domain that the round has come to, empty before the first
    :ivar next_at: when its next page is due
    :ivar sent: messages that were sent to have domains looked at, *heard* of these have been answered
    :ivar now: what the present round has come to so far
    :ivar last: what the round before came to; None before the end of the first
    :ivar last_seconds: from the beginning of that round to its last answer
    :ivar claimed_by: the pool manager that is at a page, until *claimed_until*
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
        """Whether the present round has come to anything yet."""
        return self.started_at <= now and bool(self.after_id)


@dataclasses.dataclass(frozen=True, slots=True)
class AuditFinding:
    """Something that an audit found: a pair that was thought to be right and is not.

    :ivar what: was found, in words
    :ivar done: what was begun about it, in words
    :ivar mended: whether the server has the zone right by now; None where it is not to have it any more
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
        """The request id under which the logs show what is done about it."""
        return self.request_id_of(self.id)

    @staticmethod
    def request_id_of(finding_id: str) -> str:
        return f'audit-{finding_id[:12]}'
