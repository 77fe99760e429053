"""Operations on servers and their results; audits, and stored plans."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime

from designate_pool.model.words import Action, Answer, Outcome, Reason, Word, new_id


@dataclasses.dataclass(frozen=True, slots=True)
class ServerStatus:
    """A row of pool_manager_status: one action for one domain on one server.

    :ivar status: None while the action is under way
    :ivar serial_number: the newest serial seen on the server; None if none has been seen
    :ivar seen_at: when that serial was seen there and written last; audits that find it again write nothing
    :ivar expected_serial: the serial that the server should have after the action
    :ivar attempts: tries since the action was last restarted
    :ivar next_attempt_at: when the row is due; None if there is nothing to do
    :ivar deadline_at: when the round of tries ends
    :ivar claimed_by: the pool manager that works on it, until *claimed_until*
    :ivar version: raised by every write; a write that was computed from an older version is dropped
    :ivar diverged: whether the server was found to serve other contents under the serial
    :ivar finding_id: of the audit's finding that last made the row due; None if a change did
    :ivar incarnation: of the zone on the server; raised when the server has lost the zone.  Results from an earlier
        incarnation are ignored
    :ivar reason: why the last try failed; None if it did not fail, or if the reason was not recorded
    """

    server_id: str
    domain_id: str
    action: Action
    expected_serial: int
    id: str = dataclasses.field(default_factory=new_id)
    status: Outcome | None = None
    serial_number: int | None = None
    last_error: str | None = None
    attempts: int = 0
    next_attempt_at: datetime | None = None
    deadline_at: datetime | None = None
    claimed_by: str | None = None
    claimed_until: datetime | None = None
    version: int = 0
    diverged: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    finding_id: str | None = None
    incarnation: int = 0
    reason: Reason | None = None
    seen_at: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a domain in its pool, computed from its rows.

    :ivar status: SUCCESS or ERROR if Central has to be told, else None
    :ivar serial: the serial to which *status* applies
    :ivar consensus_serial: the k-th newest serial of the servers; None if fewer than k servers serve one
    :ivar needed: k, how many servers must agree
    :ivar total: n, how many servers count
    :ivar agreed: ids of the servers that have done what is due
    :ivar behind: ids of the servers that have not
    :ivar failed: ids of those in *behind* whose row is in ERROR
    """

    status: Outcome | None
    serial: int | None
    consensus_serial: int | None
    needed: int
    total: int
    agreed: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """A report of the pool manager to Central about one domain: it is served, or has failed, at a serial.  A release
    that does not say which pool reports leaves *pool_name* empty.

    :ivar stage: of a staged release, which has come through, or failed as *why* says; None for the status of the domain
    """

    domain_id: str
    action: Action
    generation: int
    status: Outcome
    serial_number: int
    pool_name: str = ''
    stage: int | None = None
    why: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class PollRequest:
    """A request to ask one server for a zone's serial until it serves *serial* or a newer one.

    :ivar server_id: a server of the pool; without *poll* also a text that :meth:`AlsoNotify.parse` takes
    :ivar notify: whether to send a NOTIFY first; *poll*: whether to poll after it
    :ivar delay: seconds to wait for the server to fetch the zone.  If it does, it is polled at once, otherwise after
        this time
    :ivar seen: the newest serial that the server is known to have served; None if none is known
    :ivar incarnation: of the row that is polled for; copied to the result.  None without a row
    :ivar probe: whether the question is only whether the server answers: one that fetches the zone is not waited for
    """

    domain_id: str
    name: str
    serial: int
    server_id: str
    notify: bool = True
    delay: float = 0.0
    seen: int | None = None
    poll: bool = True
    incarnation: int | None = None
    probe: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class PollResult:
    """The result of a :class:`PollRequest`, or a serial that MiniDNS observed without a request.

    :ivar status: SUCCESS if the requested serial or a newer one is served, ERROR if all tries failed
    :ivar serial_number: the serial seen; None if none was
    :ivar error: for ERROR, a sentence; *reason*: for ERROR, None if *answer* implies it
    :ivar expected_serial: the requested serial; None without a request
    :ivar label: of the server when it was asked, with its driver and address; None if the sender does not include it
    :ivar incarnation: of the row when the server was asked; None as for *expected_serial* or *label*
    :ivar base: from which serial the server came to *serial_number* by transfers from the sender: that one itself if it
        has not transferred anything, None if it has transferred the whole zone
    """

    domain_id: str
    server_id: str
    status: Outcome
    answer: Answer
    serial_number: int | None = None
    error: str | None = None
    expected_serial: int | None = None
    label: str | None = None
    incarnation: int | None = None
    reason: Reason | None = None
    base: int | None = None

    @property
    def is_first_silence(self) -> bool:
        """Whether it is sent after the first try of a round, when the server has answered nobody: the round goes on."""
        return self.expected_serial is None and self.answer is Answer.TIMEOUT


@dataclasses.dataclass(frozen=True, slots=True)
class CallResult:
    """How a driver's call ended.

    :ivar error: a sentence; None, as *reason*, if the call succeeded
    :ivar retryable: whether another try may succeed; after a refused key, say, it cannot
    :ivar unreachable: whether the server could not be reached at all
    """

    seconds: float = 0.0
    error: str | None = None
    retryable: bool = True
    unreachable: bool = False
    reason: Reason | None = None

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.error is None


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """The zones that a server has.

    :ivar result: of the call; the other fields are empty if it failed
    :ivar serials: the served serial by zone name; None if the server has the zone but does not serve it yet
    :ivar complete: whether these are all zones of the server; otherwise only those that were asked for
    """

    result: CallResult
    serials: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    complete: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A problem that an operator should know about; *what* is wrong and the *advice* are sentences.

    :ivar serious: whether it prevents changes from being served; otherwise it is a warning
    """

    what: str
    advice: str
    serious: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """A server's zones, compared with those that it should have.

    :ivar total: how many zones it should have
    :ivar missing: names of zones that it should have but does not
    :ivar behind: for each outdated zone its name, the serial that the server serves (None: none), and the right serial
    :ivar extra: names of zones that it has but that are not domains of the pool; None if that cannot be determined
    :ivar other: for each zone with wrong contents under the right serial its name, and a sentence that says what
        differs; None if contents were not compared
    :ivar unchecked: for each zone whose contents could not be compared its name, and why
    :ivar mending: how many operations were made due to repair the differences
    :ivar deleted: how many of the extra zones were deleted
    :ivar extra_complete: whether *extra* has all extra zones.  If a server cannot list its zones, only the names of the
        pool's deleted domains are looked for
    :ivar primary: names of primary zones that it has and no domain explains, which the pool did not make; None if they
        were not asked for
    """

    server_id: str
    total: int
    missing: tuple[str, ...] = ()
    behind: tuple[tuple[str, int | None, int], ...] = ()
    extra: tuple[str, ...] | None = None
    mending: int = 0
    deleted: int = 0
    other: tuple[tuple[str, str], ...] | None = None
    unchecked: tuple[tuple[str, str], ...] = ()
    extra_complete: bool = True
    primary: tuple[str, ...] | None = None


class PlanState(Word):
    """The state of a stored plan."""

    #: Made by an operator, who may apply it.
    STORED = 'STORED'
    #: Made by a pool manager, and too dangerous to be applied without approval.
    PARKED = 'PARKED'
    #: A parked plan that an operator has approved; a pool manager applies it next.
    APPROVED = 'APPROVED'
    APPLIED = 'APPLIED'
    #: Applied in part, or not at all.
    FAILED = 'FAILED'
    #: Rejected by an operator, or outdated, since the domain or the zone on the server has changed.
    DROPPED = 'DROPPED'


@dataclasses.dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan in the database.

    :ivar zone: the zone's name; for a plan of many zones, their number
    :ivar target: the label of the server, or the ids of the targets
    :ivar domain_id: for a plan of a pool manager, and for a change that waits for approval, else None
    :ivar server_id: for a plan of a pool manager, else None
    :ivar why: why it is unsafe, one reason on each line; or why it failed or was dropped
    :ivar document: JSON; for a plan of a pool manager, of :meth:`designate_pool.planner.plan.plan.Plan.document`
    :ivar asked_by: who stored, approved, applied or dropped it, whichever was last; of a change, who has asked for it;
        None if unknown
    :ivar applied_at: when it was applied, completely or in part
    :ivar project_id: of a change, who owned the zone when *asking_project_id* has asked for it; else None
    """

    id: str
    pool_name: str
    zone: str
    target: str
    state: PlanState
    domain_id: str | None = None
    server_id: str | None = None
    desired_digest: str = ''
    existing_digest: str = ''
    creates: int = 0
    updates: int = 0
    deletes: int = 0
    why: str | None = None
    document: str = ''
    asked_by: str | None = None
    expires_at: datetime | None = None
    applied_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    project_id: str | None = None
    asking_project_id: str | None = None


class AuditKind(Word):
    """What a round checks."""

    SERIALS = 'SERIALS'
    CONTENTS = 'CONTENTS'
    #: Of zones that are signed, whoever signs them; nothing is repaired.
    SIGNATURES = 'SIGNATURES'
    #: Zones on servers that belong to no domain; they are logged.
    EXTRA = 'EXTRA'
    #: Unfinished domains, which are checked again in case a message about them was lost.  Not shown as an audit.
    UNSETTLED = 'UNSETTLED'


@dataclasses.dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a round.  A pair is one domain on one server.

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
    """A pair that an audit found wrong, recorded as right; *what* it found and has *done* to repair it are sentences.

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
        """As :attr:`request_id`, from the id of a finding."""
        return f'audit-{finding_id[:12]}'
