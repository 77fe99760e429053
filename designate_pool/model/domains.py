"""What Central owns, and what MiniDNS serves of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime

from designate_pool.model.words import Action, Status, Task

#: No project is called so.
_NO_PROJECT = '(none)'


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """Who asks, and under which request id.

    :ivar all_projects: whether it sees the things of every project.  Otherwise it sees its project's, and without a
        project nothing
    :ivar user: whose token it was, for what is logged and notified
    :ivar may_nest: whether it may make domains above and below those of other projects
    """

    request_id: str = ''
    project_id: str = ''
    all_projects: bool = False
    user: str = ''
    may_nest: bool = False

    def sees(self, project_id: str) -> bool:
        """Whether what is that project's is shown; what is nobody's is seen by who sees everything."""
        return self.all_projects or project_id != '' and project_id == self.project_id

    @property
    def scope(self) -> str | None:
        """The project whose things are shown, of which no project has the name where nothing is; None for all."""
        return None if self.all_projects else self.project_id or _NO_PROJECT


@dataclasses.dataclass(frozen=True, slots=True)
class Domain:
    """A domain as Central owns it.

    :ivar generation: counts the creates and deletes of the *name*; an operation of an older generation does nothing
    :ivar reported_serial: the newest serial that the pool was ever said to agree on; None before the first
    :ivar changed_at: when it got its serial
    :ivar converged_at: when the pool was first said to agree on that serial, or on the deletion; None before
    :ivar request_id: of the request that gave it its serial
    :ivar journal_from: the oldest serial from which the journal leads on; None without a journal
    :ivar journal_to: the serial that it leads to; another than the domain's when one who keeps no journal changed that
    :ivar journal_records: how many records the journal holds
    """

    id: str
    name: str
    pool_id: str
    pool_name: str
    email: str
    ttl: int
    serial: int
    action: Action = Action.CREATE
    status: Status = Status.PENDING
    generation: int = 1
    reported_serial: int | None = None
    project_id: str = ''
    description: str | None = None
    refresh: int = 3600
    retry: int = 600
    expire: int = 86400
    minimum: int = 3600
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None
    deleted_at: datetime | None = None
    changed_at: datetime | None = None
    converged_at: datetime | None = None
    request_id: str = ''
    journal_from: int | None = None
    journal_to: int | None = None
    journal_records: int = 0

    @property
    def is_going(self) -> bool:
        """Deleted, or about to be."""
        return self.action is Action.DELETE or self.status is Status.DELETED


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """One resource record of a recordset; *data* is its rdata as text, with absolute names."""

    data: str
    id: str = ''
    serial_number: int = 0
    task: Task = Task.ADD
    status: Status = Status.PENDING


@dataclasses.dataclass(frozen=True, slots=True)
class RecordSet:
    """All records of one name and type.

    :ivar ttl: None means the domain's
    :ivar managed: made from the pool (SOA, apex NS); not for users to change
    """

    name: str
    type: str
    records: tuple[Record, ...] = ()
    ttl: int | None = None
    id: str = ''
    domain_id: str = ''
    description: str | None = None
    managed: bool = False
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def status(self) -> Status:
        """The worst of its records' statuses."""
        found = {record.status for record in self.records}
        for status in (Status.ERROR, Status.PENDING):
            if status in found:
                return status
        return Status.ACTIVE

    @property
    def action(self) -> Action:
        """What is due for it, in a domain's words."""
        tasks = {record.task for record in self.records}
        if tasks <= {Task.NONE}:
            return Action.NONE
        if tasks == {Task.DELETE}:
            return Action.DELETE
        if tasks == {Task.ADD}:
            return Action.CREATE
        return Action.UPDATE


@dataclasses.dataclass(frozen=True, slots=True)
class RecordChange:
    """One change of ``apply_changes``: the recordset of a name and type gets these records, or goes.

    :ivar records: rdata texts; empty deletes the recordset
    """

    name: str
    type: str
    records: tuple[str, ...] = ()
    ttl: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneHead:
    """What a zone's SOA record is made from.

    :ivar ttl: seconds, for the SOA and for every recordset without a TTL of its own
    :ivar name_servers: the pool's, in their order; the first is the SOA's primary
    """

    domain_id: str
    name: str
    pool_name: str
    email: str
    ttl: int
    serial: int
    refresh: int
    retry: int
    expire: int
    minimum: int
    name_servers: tuple[str, ...]


#: (owner, type, TTL in seconds or None for the zone's, rdata in uncompressed wire form)
ZoneRecord = tuple[str, str, int | None, bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneBlock:
    """Some of a zone's records, most of them as a transfer has them.

    :ivar count: how many there are in *octets*
    :ivar octets: records in wire form, each far smaller than a message, with owners that are relative to the zone's
        name at offset 12 of a message
    :ivar records: the others
    """

    count: int
    octets: bytes
    records: Sequence[ZoneRecord]


#: As a record of a zone, of what changes, with the TTL that it had or has.
Change = tuple[str, str, int, bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneStep:
    """What changed in a zone, but for its SOA, when it came to have *serial*."""

    serial: int
    gone: Sequence[Change]
    added: Sequence[Change]


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneDifference:
    """How a zone came from an older serial to its present one.

    :ivar steps: oldest first, the last of which has the head's serial; None when the journal does not tell
    """

    head: ZoneHead
    steps: Sequence[ZoneStep] | None
