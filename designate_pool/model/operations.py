"""Operations on servers and their results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime

from designate_pool.model.words import Action, Answer, Outcome, Reason, new_id


@dataclasses.dataclass(frozen=True, slots=True)
class ServerStatus:
    """A row of pool_manager_status: one action for one domain on one server.

    :ivar status: None while the action is under way
    :ivar serial_number: the newest serial seen on the server; None if none has been seen
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
    :ivar resting: ids of the servers that do not count now: they are in maintenance or still joining
    """

    status: Outcome | None
    serial: int | None
    consensus_serial: int | None
    needed: int
    total: int
    agreed: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    resting: tuple[str, ...] = ()

    @property
    def degraded(self) -> bool:
        """Whether enough servers agree, but not all."""
        return bool(self.behind) and len(self.agreed) >= self.needed


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """A report of the pool manager to Central about one domain: it is served, or has failed, at a serial.

    :ivar pool_name: the pool that reports; empty from a release that did not say so
    """

    domain_id: str
    action: Action
    generation: int
    status: Outcome
    serial_number: int
    pool_name: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class PollRequest:
    """A request to ask one server for a zone's serial until it serves *serial* or a newer one.

    :ivar server_id: a server of the pool; without *poll* also a text that :meth:`AlsoNotify.parse` takes
    :ivar notify: whether to send a NOTIFY first
    :ivar delay: seconds to wait for the server to fetch the zone.  If it does, it is polled at once, otherwise after
        this time
    :ivar seen: the newest serial that the server is known to have served; None if none is known
    :ivar poll: whether to poll after the NOTIFY
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
    :ivar error: for ERROR, a sentence
    :ivar expected_serial: the requested serial; None without a request
    :ivar label: of the server when it was asked, with its driver and address; None if the sender does not include it
    :ivar incarnation: of the row when the server was asked; None as for *expected_serial* or *label*
    :ivar reason: for ERROR; None if *answer* implies it
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


@dataclasses.dataclass(frozen=True, slots=True)
class CallResult:
    """How a driver's call ended.

    :ivar error: a sentence; None if the call succeeded
    :ivar retryable: whether another try may succeed; after a refused key, say, it cannot
    :ivar unreachable: whether the server could not be reached at all
    :ivar reason: None if the call succeeded
    """

    seconds: float = 0.0
    error: str | None = None
    retryable: bool = True
    unreachable: bool = False
    reason: Reason | None = None

    @property
    def ok(self) -> bool:
        return self.error is None


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """The zones that a server has.

    :ivar result: of the call; the other fields are empty if it failed
    :ivar serials: for each zone's name, the serial that the server serves; None if it has the zone but does not serve
        it yet
    :ivar complete: whether these are all zones of the server; otherwise only those that were asked for
    """

    result: CallResult
    serials: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    complete: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A problem that an operator should know about.

    :ivar what: a sentence that says what is wrong
    :ivar advice: a sentence that says what to do
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
