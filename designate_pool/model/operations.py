"""What is done on servers, and what came of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime

from designate_pool.model.words import Action, Answer, Outcome, Reason, new_id


@dataclasses.dataclass(frozen=True, slots=True)
class ServerStatus:
    """A row of pool_manager_status: one action for one domain on one server.

    :ivar status: None while neither succeeded nor failed
    :ivar serial_number: the newest serial seen on the server; None when none was ever seen
    :ivar expected_serial: the serial that the action is to bring
    :ivar attempts: tries since the action was last renewed
    :ivar next_attempt_at: when the row is due; None when nothing is
    :ivar deadline_at: when the round of tries is over
    :ivar claimed_by: the pool manager that works on it, until *claimed_until*
    :ivar version: raised by every write; a write made from an older version is dropped
    :ivar diverged: whether the server was found to serve other contents under the serial
    :ivar finding_id: of the audit's finding that the row was last due for; None where that was a change
    :ivar incarnation: of the zone on the server, raised when it has lost the zone: what was seen or done of a former
        one counts no more
    :ivar reason: why the last try has failed; None where it has not, or where that was not recorded
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
    """What the rows of one domain say together.

    :ivar status: SUCCESS or ERROR when there is something to tell Central, else None
    :ivar serial: the serial that goes with *status*
    :ivar consensus_serial: the k-th newest serial of the pool; None when fewer than k servers serve any
    :ivar needed: k, the servers that must agree; *total* is n
    :ivar agreed: ids of the servers that have done what is due
    :ivar behind: ids of the servers that have not
    :ivar failed: those of *behind* whose row is in ERROR
    :ivar resting: ids of the servers that do not count now, being in maintenance or not yet filled
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
        """Enough servers agree, but not all."""
        return bool(self.behind) and len(self.agreed) >= self.needed


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """What the pool manager tells Central about one domain."""

    domain_id: str
    action: Action
    generation: int
    status: Outcome
    serial_number: int


@dataclasses.dataclass(frozen=True, slots=True)
class PollRequest:
    """Ask one server for one zone's serial until it is *serial* or newer.

    :ivar server_id: or, where there is nothing to poll, where the NOTIFY goes: what :meth:`AlsoNotify.parse` takes
    :ivar notify: send it a NOTIFY first
    :ivar delay: seconds to wait for the server to fetch the zone by itself; when it does it is asked at once, when it
        does not the tries begin after that
    :ivar seen: the newest serial that the server is known to have served; None when none is
    :ivar poll: whether to poll at all
    :ivar incarnation: of the row that it is for, which comes back; None where there is none
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


@dataclasses.dataclass(frozen=True, slots=True)
class PollResult:
    """What became of a :class:`PollRequest`, or what MiniDNS learned unasked.

    :ivar status: SUCCESS when the serial asked for or a newer one is served, ERROR when the tries are used up
    :ivar serial_number: the serial seen, None when none was
    :ivar error: in words, for ERROR
    :ivar expected_serial: the serial that was asked for, None when nobody asked
    :ivar label: of the server as it was asked, with its driver and address; None where that is not told
    :ivar incarnation: of the row when the server was asked; None when nobody asked, or where that is not told
    :ivar reason: for ERROR; None where *answer* says it
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

    :ivar error: in words; None when it succeeded
    :ivar retryable: whether trying the same again may help (a refused key is not mended by trying)
    :ivar unreachable: the server could not be talked to at all
    :ivar reason: None when it succeeded
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
    """What a server really has.

    :ivar result: how the question ended; the rest is empty when it failed
    :ivar serials: by name, the serial that the server serves; None where it has the zone and serves nothing yet
    :ivar complete: whether these are all its zones; without it they are those that it was asked for
    """

    result: CallResult
    serials: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    complete: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """Something that an operator should know.

    :ivar what: is wrong, in words
    :ivar advice: what to do about it
    :ivar serious: whether it keeps changes from being served; without it, it is a warning
    """

    what: str
    advice: str
    serious: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """What a server has against what it should have.

    :ivar total: how many zones it should have
    :ivar missing: names of zones that it should have and has not
    :ivar behind: names of zones with the serial that it serves (None: nothing) and the one that it should serve
    :ivar extra: names of zones that it has and that are no domain of the pool; None when they cannot be known
    :ivar other: names of zones that it serves with other contents under the right serial, and what differs in words;
        None when contents were not compared
    :ivar unchecked: names of zones whose contents could not be compared, and why
    :ivar mending: how many operations are due now to mend it
    :ivar deleted: how many of the extra zones were deleted
    :ivar extra_complete: whether the extra zones are all; those of a server that cannot list its zones are looked for
        among the names of the pool's deleted domains
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
