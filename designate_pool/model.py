"""The values that the services pass to each other: frozen, and free of any library.

Ids are 32 hexadecimal digits.  Times are aware datetimes in UTC.  Names are absolute, lower case, with the final dot.
Serials are whole numbers from 0 to 4294967295; None means never seen.
"""

from __future__ import annotations

import dataclasses
import enum
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any


class Word(str, enum.Enum):
    """An enum whose members are their own text."""

    def __str__(self) -> str:
        return self.value


class Action(Word):
    """What is due for a domain, or what a row of pool_manager_status is about."""

    NONE = 'NONE'
    CREATE = 'CREATE'
    UPDATE = 'UPDATE'
    DELETE = 'DELETE'


class Task(Word):
    """What is due for a record."""

    NONE = 'NONE'
    ADD = 'ADD'
    UPDATE = 'UPDATE'
    DELETE = 'DELETE'


class Status(Word):
    """Where a domain or record stands."""

    PENDING = 'PENDING'
    ACTIVE = 'ACTIVE'
    ERROR = 'ERROR'
    DELETED = 'DELETED'


class Outcome(Word):
    """How an operation ended, on one server or for the pool.  None in its place means not known yet."""

    SUCCESS = 'SUCCESS'
    ERROR = 'ERROR'


class Answer(Word):
    """What a server said when it was asked for a zone's serial."""

    SERIAL = 'SERIAL'
    NO_ZONE = 'NO_ZONE'
    NOT_AUTH = 'NOT_AUTH'
    TIMEOUT = 'TIMEOUT'
    BAD = 'BAD'


def new_id() -> str:
    return uuid.uuid4().hex


def utcnow() -> datetime:
    return datetime.now(timezone.utc)


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """Who asks, and under which request id."""

    request_id: str = ''
    project_id: str = ''
    all_projects: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Domain:
    """A domain as Central owns it.

    :ivar generation: counts the creates and deletes of the *name*; an operation of an older generation does nothing
    :ivar reported_serial: the newest serial that the pool was ever said to agree on; None before the first
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


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneSnapshot:
    """A zone's contents at one serial, without its SOA.

    :ivar rrsets: (owner, type, TTL or None for the zone's, rdatas in uncompressed wire form), by owner and type
    """

    head: ZoneHead
    rrsets: Sequence[tuple[str, str, int | None, Sequence[bytes]]]


@dataclasses.dataclass(frozen=True, slots=True)
class TsigKey:
    """A shared secret (RFC 8945); *secret* is Base64 and stays out of every text."""

    name: str
    algorithm: str
    secret: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Endpoint:
    """An IP address and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f'[{self.host}]:{self.port}' if ':' in self.host else f'{self.host}:{self.port}'


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """One section ``[backend:<driver>:<uuid>]``: a machine to act on and an address that answers DNS.

    :ivar options: the driver's own options, the server's section over the global one
    :ivar primaries: MiniDNS as this server reaches it
    :ivar max_in_flight: how many driver calls may be under way on it at once
    :ivar call_timeout: seconds a driver call may take
    """

    id: str
    driver: str
    host: str
    port: int = 53
    tsig_key: TsigKey | None = None
    primaries: tuple[Endpoint, ...] = ()
    max_in_flight: int = 4
    call_timeout: float = 10.0
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.host, self.port)

    @property
    def label(self) -> str:
        """What people read in place of the id."""
        return f'{self.driver}:{self.endpoint}'


@dataclasses.dataclass(frozen=True, slots=True)
class Pool:
    """A pool.  The database knows its id and what goes into NS records; the configuration knows its servers.

    :ivar name_servers: host names for the NS records, the first also the SOA's primary
    :ivar servers: only where the pool was read from the configuration
    :ivar threshold_percentage: how many of the servers must serve a change, 1 to 100
    """

    name: str
    id: str = ''
    description: str | None = None
    project_id: str | None = None
    provisioner: str = 'unmanaged'
    name_servers: tuple[str, ...] = ()
    also_notifies: tuple[str, ...] = ()
    servers: tuple[Server, ...] = ()
    threshold_percentage: int = 100
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


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
    created_at: datetime | None = None
    updated_at: datetime | None = None


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
    """

    status: Outcome | None
    serial: int | None
    consensus_serial: int | None
    needed: int
    total: int
    agreed: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

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

    :ivar notify: send it a NOTIFY first
    """

    domain_id: str
    name: str
    serial: int
    server_id: str
    notify: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class PollResult:
    """What became of a :class:`PollRequest`, or what MiniDNS learned unasked.

    :ivar status: SUCCESS when the serial asked for or a newer one is served, ERROR when the tries are used up
    :ivar serial_number: the serial seen, None when none was
    :ivar reason: in words, for ERROR
    :ivar expected_serial: the serial that was asked for, None when nobody asked
    """

    domain_id: str
    server_id: str
    status: Outcome
    answer: Answer
    serial_number: int | None = None
    reason: str | None = None
    expected_serial: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class CallResult:
    """How a driver's call ended.

    :ivar error: in words; None when it succeeded
    :ivar retryable: whether trying the same again may help (a refused key is not mended by trying)
    :ivar unreachable: the server could not be talked to at all
    """

    seconds: float = 0.0
    error: str | None = None
    retryable: bool = True
    unreachable: bool = False

    @property
    def ok(self) -> bool:
        return self.error is None


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """An option that a driver takes in its sections of the configuration.

    :ivar kind: one of ``str``, ``int``, ``float``, ``bool``, ``port``, ``path``, ``host``, ``endpoints``, ``tsig_key``
    """

    name: str
    help: str
    kind: str = 'str'
    default: Any = None
    required: bool = False
    secret: bool = False
    minimum: float | None = None
    maximum: float | None = None
