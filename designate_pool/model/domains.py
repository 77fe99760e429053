"""Domains and their records, as Central owns them and as MiniDNS serves them; their imports, exports and transfers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from designate_pool.model.freezes import LAST_STAGE, Freeze, Release, permitted, staged
from designate_pool.model.words import Action, ChangeKind, Status, Task, Word

#: In the place of a domain's id, the catalog zone of a pool.
CATALOG_ID = 'catalog'
_NO_PROJECT = '(none)'


@dataclasses.dataclass(frozen=True, slots=True)
class Actor:
    """Who made a change.

    :ivar user: the owner of the token, or the name of a service that acts by itself
    :ivar address: of the client; *client*: its User-Agent.  Both are for administrators
    :ivar approved_by: the user who approved it, where that was required
    """

    user: str = ''
    project_id: str = ''
    address: str = ''
    client: str = ''
    approved_by: str = ''

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Actor:
        """An actor as it is stored, without fields that a newer program has added."""
        return cls(**{name: value for name, value in values.items() if name in cls.__slots__})

    def __str__(self) -> str:
        who = f'{self.user} of {self.project_id}' if self.user and self.project_id else self.user or self.project_id
        return f'{who}, approved by {self.approved_by}' if self.approved_by else who


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """Who sends a request, and its request id.

    :ivar all_projects: whether the sender sees the resources of all projects.  Otherwise it sees those of *project_id*,
        and without a project none
    :ivar user: the owner of the token, for logs and notifications
    :ivar may_nest: whether the sender may create domains above and below those of other projects
    :ivar may_use_blacklisted: whether the sender may create domains whose names are in the blacklists; only set in
        requests that create a domain
    :ivar may_edit_managed: whether the sender may change recordsets that are there for resources of other services
    :ivar operation_id: of the request or message; each has another one, by which a change that is made twice is
        recognized (see :func:`designate_pool.storage.zones.domains.lock_for`)
    :ivar if_match: the header If-Match (RFC 9110 section 13.1.1), for what the request changes; '' for no condition
    :ivar address: of the sender; *client*: its User-Agent
    :ivar kind: of the versions that changes of recordsets make
    :ivar may_approve: whether the sender's changes wait for nobody's approval, and it may approve those of others
    :ivar approved_by: who approved the change; then *operation_id* is the id of its stored plan
    """

    request_id: str = ''
    project_id: str = ''
    all_projects: bool = False
    user: str = ''
    may_nest: bool = False
    may_use_blacklisted: bool = False
    may_edit_managed: bool = False
    operation_id: str = ''
    if_match: str = ''
    address: str = ''
    client: str = ''
    kind: ChangeKind = ChangeKind.API
    may_approve: bool = False
    approved_by: str = ''

    def allows_change_of(self, etag: str) -> bool:
        """Whether the request's condition is true of what has this entity tag; a weak tag matches none."""
        return self.if_match in ('', '*') or etag in map(str.strip, self.if_match.split(','))

    @property
    def actor(self) -> Actor:
        """Who makes the changes of the request."""
        return Actor(self.user, self.project_id, self.address, self.client, self.approved_by)

    def sees(self, project_id: str) -> bool:
        """Whether the sender sees the resources of *project_id*; only *all_projects* sees those without one ('')."""
        return self.all_projects or project_id != '' and project_id == self.project_id

    @property
    def scope(self) -> str | None:
        """The project to filter by: None for all; without a project, a name that no project has."""
        return None if self.all_projects else self.project_id or _NO_PROJECT


def _digest(*values: Any) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


@dataclasses.dataclass(frozen=True, slots=True)
class PageRequest:
    """A page of a list that is asked for.

    :ivar criterion: what its entries must match, by what the list is searched by
    :ivar marker: the id of the last entry of the page before it; None for the first page
    :ivar limit: how many entries it has at most; None for the storage's default
    :ivar sort_key: None for the list's own order
    :ivar sort_dir: ``asc`` or ``desc``
    """

    criterion: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    marker: str | None = None
    limit: int | None = None
    sort_key: str | None = None
    sort_dir: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Domain:
    """A domain as Central owns it.

    :ivar generation: counts the creates and deletes of the *name*; an operation of an older generation does nothing
    :ivar reported_serial: the newest serial that was reported as served by the pool; None before the first
    :ivar changed_at: when it got its serial
    :ivar converged_at: when that serial, or the deletion, was first reported as served by the pool; None before
    :ivar request_id: of the request that gave it its serial
    :ivar journal_from: the oldest serial from which its versions lead to the present one by IXFR; None for none
    :ivar journal_to: the serial to which they lead.  It differs from *serial* if a program that writes no versions has
        changed the domain since
    :ivar journal_records: how many records these have; *history_records*: how many all have that are kept
    :ivar attributes: what the scheduler is told of it, as the JSON of an object of texts; '' for nothing
    :ivar first_serial: the serial that it began with in its pool; None if a release that stored none created it
    :ivar former_pool_id: the pool that it was moved from, whose servers still keep it; None for none.  Of a deleted
        one, the pool that it was in, where that was deleted too
    :ivar former_until: when these are to delete it; None until its pool serves it
    :ivar moved_id: of what remains of a domain in a pool that it was moved from, until it is deleted there: the id of
        that domain.  Users do not see it
    :ivar abandoned: whether it was deleted here only: its servers keep what they have, and no pool has it any more
    :ivar purged: of a deleted one: whether its contents are deleted too, so that it cannot be restored
    :ivar masters: of a secondary domain, ``address:port`` of each with commas between; '' for a primary one
    :ivar soa_names: of a secondary domain: the primary and the mailbox in its SOA, as its master has them; of a signed
        one, as they were signed, and of one that is being signed, in pieces, and not published so yet
    :ivar transferred_at: of a secondary domain: when it got its serial from a master; None before the first transfer
    :ivar awaits_transfer: whether a secondary one, new or expired, is not served until a master has been reached
    :ivar given_name: *name* as its creator wrote it, with upper case; None for the same
    :ivar lock_reason: why requests may not change it; None for one that is not locked
    :ivar locked_by_admin: whether only administrators may unlock it
    :ivar locked_recordsets: how many of its recordsets are locked
    :ivar recent_deletes: how many of its recordsets were deleted lately, where that is limited; see
        :mod:`designate_pool.central.rules.quotas`
    :ivar freeze: of its pool, or of the one that it was moved from, as JSON; None where neither is frozen
    :ivar held_by: the id of a freeze; while that lasts, changes wait, and servers have the version of *version_before*
    :ivar is_signed: whether it has records that the signer made (DNSSEC)
    :ivar content_serial: the serial of its newest contents, where later ones have only renewed signatures; None for
        *serial*
    :ivar release_state: its staged release, as JSON (:class:`designate_pool.model.Release`), where servers of later
        stages have the version of *version_before*; None for none
    :ivar pool_release: the stages of its pool; None where a change goes to all servers at once
    :ivar requires_approval: whether changes of it wait for approval; *pool_requires_approval*: of every one of its pool
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
    attributes: str = ''
    first_serial: int | None = None
    shared: bool = False
    former_pool_id: str | None = None
    former_pool_name: str | None = None
    former_until: datetime | None = None
    moved_id: str | None = None
    abandoned: bool = False
    masters: str = ''
    soa_names: str = ''
    transferred_at: datetime | None = None
    awaits_transfer: bool = False
    given_name: str | None = None
    lock_reason: str | None = None
    locked_by_admin: bool = False
    locked_recordsets: int = 0
    recent_deletes: str = ''
    purged: bool = False
    history_records: int = 0
    freeze: str | None = None
    held_by: str | None = None
    version_before: str | None = None
    requires_approval: bool = False
    pool_requires_approval: bool = False
    is_signed: bool = False
    content_serial: int | None = None
    release_state: str | None = None
    pool_release: str | None = None

    @property
    def least_serial(self) -> int:
        """The oldest serial with the present contents: a server needs no newer one to be up to date."""
        return self.serial if self.content_serial is None else self.content_serial

    @property
    def release(self) -> Release | None:
        """Its staged release; None for none."""
        return None if self.release_state is None else Release(**json.loads(self.release_state))

    @property
    def waits_for(self) -> Freeze | None:
        """The freeze that has to end before servers get its newest version; None if they get it."""
        freeze = Freeze.parse(self.freeze)
        return freeze if freeze is not None and freeze.id == self.held_by and self.release_state is None else None

    @property
    def permitted(self) -> Domain | None:
        """As all servers may have it; None if nothing of it is to be done on all."""
        return self.permitted_at(LAST_STAGE)

    @property
    def stage(self) -> int:
        """A stage whose servers may have it as it is here."""
        return LAST_STAGE if self.release_state is None else 0

    def permitted_at(self, stage: int) -> Domain | None:
        """As servers of a stage may have it; None if nothing of it is to be done on them."""
        if self.version_before is None:
            return self
        if (release := self.release) is not None:
            released, before = staged(self, self.version_before, release)
            return released if stage <= release.stage else before and dataclasses.replace(before, release_state=None)
        return permitted(self, self.version_before) if self.waits_for else self

    @property
    def shown_name(self) -> str:
        """The name for users: clients compare what they read with what they wrote."""
        return self.given_name or self.name

    @property
    def etag(self) -> str:
        """The entity tag: the serial, and a digest of what requests change; not the status, which changes by itself."""
        own = _digest(self.email, self.ttl, self.description, self.masters, self.attributes, self.lock_reason,
                      self.requires_approval)
        return f'"{self.serial}-{own}"'

    @property
    def needs_approval(self) -> bool:
        """Whether changes of it wait for approval."""
        return self.requires_approval or self.pool_requires_approval

    @property
    def is_secondary(self) -> bool:
        """Whether its contents come from masters."""
        return bool(self.masters)

    @property
    def awaits_first_transfer(self) -> bool:
        """Whether it is a secondary domain that no server was ever given."""
        return self.is_secondary and self.transferred_at is None

    @property
    def has_signer(self) -> bool:
        """Whether its changes concern the signer: it is signed, or that is being prepared."""
        return self.is_signed or bool(self.soa_names) and not self.is_secondary

    @property
    def is_going(self) -> bool:
        """Whether it is deleted or being deleted."""
        return self.action is Action.DELETE or self.status is Status.DELETED

    def is_of(self, pool_name: str) -> bool:
        """Whether a pool acts on it: it is in this pool, or was moved from there and is still kept."""
        return not self.abandoned and pool_name in (self.pool_name, self.former_pool_name)


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

    :ivar ttl: None means that of the domain
    :ivar managed: whether it is generated from the pool's settings (SOA, apex NS), or has records for resources of
        other services; users cannot change it
    :ivar project_id: the project that created it in a domain that is shared with it; None for the domain's own
    :ivar given_name: as that of :class:`Domain`; likewise *lock_reason* and *locked_by_admin*
    :ivar domain: its domain, in what Central returns to be shown
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
    project_id: str | None = None
    given_name: str | None = None
    lock_reason: str | None = None
    locked_by_admin: bool = False
    domain: Domain | None = dataclasses.field(default=None, compare=False, repr=False)

    @property
    def shown_name(self) -> str:
        """The name for users."""
        return self.given_name or self.name

    @property
    def etag(self) -> str:
        """The entity tag, of what requests change."""
        return f'"{_digest(self.ttl, self.description, *sorted(record.data for record in self.records))}"'

    @property
    def status(self) -> Status:
        """The worst of its records' statuses."""
        statuses = {record.status for record in self.records}
        return next((status for status in (Status.ERROR, Status.PENDING) if status in statuses), Status.ACTIVE)

    @property
    def action(self) -> Action:
        """What is due for the recordset."""
        tasks = {record.task for record in self.records}
        if tasks <= {Task.NONE}:
            return Action.NONE
        if tasks == {Task.DELETE}:
            return Action.DELETE
        return Action.CREATE if tasks == {Task.ADD} and self.version == 1 else Action.UPDATE


@dataclasses.dataclass(frozen=True, slots=True)
class RecordChange:
    """One change of ``apply_changes``: the rdata texts that a recordset gets as its *records*; none delete it."""

    name: str
    type: str
    records: tuple[str, ...] = ()
    ttl: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ChangedSet(RecordChange):
    """A recordset that differs between two versions of a zone, or its SOA; without records where it is not there.

    :ivar former_ttl: in seconds, at the first of the two, as *former_records*
    """

    former_records: tuple[str, ...] = ()
    former_ttl: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Revert:
    """What leads the contents of a zone back to those of an older serial.

    :ivar serial: of the zone now; *to_serial*: the older one
    :ivar unchanged: name and type of each recordset that stays as it is though it has changed, and why
    """

    serial: int
    to_serial: int
    changes: Sequence[ChangedSet]
    unchanged: Sequence[tuple[str, str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneHead:
    """The values of a zone's SOA record.

    :ivar ttl: seconds, for the SOA and for every recordset without a TTL of its own
    :ivar name_servers: the pool's, in their order; the first is the SOA's primary
    :ivar is_held: whether the zone has newer versions, which servers may not have yet
    :ivar is_signed: whether the zone has records that the signer made
    :ivar contents_serial: at which it had the records, where these are served under another one
    :ivar stages: the first and the last stage whose servers may have it; None for all
    :ivar others: of the same name, for servers of other stages
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
    soa_names: str = ''
    is_held: bool = False
    is_signed: bool = False
    contents_serial: int | None = None
    stages: tuple[int, int] | None = None
    others: tuple[ZoneHead, ...] = ()

    def at(self, stage: int) -> ZoneHead | None:
        """The head that servers of a stage may have: of two, the released one, which has taken a deleted one's name."""
        return min((head for head in (self, *self.others)
                    if head.stages is None or head.stages[0] <= stage <= head.stages[1]),
                   key=lambda head: head.stages or (), default=None)


#: (owner, type, TTL in seconds or None for that of the zone, rdata in uncompressed wire form)
ZoneRecord = tuple[str, str, int | None, bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class Version:
    """A version of a zone.

    :ivar number: orders the versions of a domain, also where serials jump
    :ivar former_serial: of the version before
    :ivar project_id: the owner of the zone then
    :ivar gone: how many records it removed; *added*: how many it added
    :ivar reason: as who made it says; None for none
    """

    domain_id: str
    number: int
    serial: int
    former_serial: int
    kind: ChangeKind
    actor: Actor
    project_id: str = ''
    request_id: str = ''
    created_at: datetime | None = None
    gone: int = 0
    added: int = 0
    reason: str | None = None


#: A record that was removed or added: (owner, type, TTL in seconds, rdata in uncompressed wire form)
Change = tuple[str, str, int, bytes]


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneStep:
    """The change that brought a zone to *serial*, without its SOA record: what is *gone* was removed."""

    serial: int
    gone: Sequence[Change]
    added: Sequence[Change]


#: A record that came from a master: (owner, type, TTL in seconds, rdata as text with absolute names)
MasterRecord = tuple[str, str, int, str]


@dataclasses.dataclass(frozen=True, slots=True)
class RefreshTask:
    """A secondary domain that is due to be refreshed, claimed.

    :ivar masters: ``address:port`` each
    :ivar serial: what is stored; None before the first transfer
    :ivar most_records: that the project's quota allows in the zone; -1 for any number
    """

    domain_id: str
    name: str
    masters: tuple[str, ...]
    claim: str
    serial: int | None = None
    project_id: str = ''
    most_records: int = -1


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneTransferIn:
    """A zone, or its difference from *from_serial*, as a master sent it.

    :ivar soa: its rdata as text; *ttl* is the SOA's, and *added* is without the SOA
    """

    serial: int
    soa: str
    ttl: int
    added: Sequence[MasterRecord]
    gone: Sequence[MasterRecord] = ()
    from_serial: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RefreshState:
    """How a secondary domain is kept up to date.

    :ivar checked_at: when a master last said which serial it has; None before
    :ivar master: that one, as ``address:port``
    :ivar failures: refreshes that have failed since
    :ivar last_error: why the last refresh failed; None if it did not
    """

    domain_id: str
    next_at: datetime
    checked_at: datetime | None = None
    master: str | None = None
    failures: int = 0
    last_error: str | None = None


class ZoneTaskKind(Word):
    """The kind of a zone task."""

    IMPORT = 'IMPORT'
    EXPORT = 'EXPORT'


class ZoneTaskStatus(Word):
    """The status of a zone task."""

    PENDING = 'PENDING'
    COMPLETE = 'COMPLETE'
    ERROR = 'ERROR'


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneTask:
    """The import of a zone file, or the export of a zone.

    :ivar project_id: the project that owns the task and, for an import, will own the zone
    :ivar domain_id: for an import None until it is COMPLETE
    :ivar size: of the imported zone file in bytes; None while it is being received, and for an export
    :ivar message: a sentence that says how the task ended
    :ivar version: raised whenever the task is started or ends
    :ivar may_nest: as in :class:`Context`, of the user who started it; likewise *may_use_blacklisted* and *may_approve*
    :ivar pool_id: the pool of the imported zone; None for the one that the scheduler chooses
    :ivar attributes: of the imported zone, as in :class:`designate_pool.model.Domain`
    :ivar actor: who asked for it, see :func:`designate_pool.storage.zones.versions.actor_text`
    """

    id: str
    kind: ZoneTaskKind
    project_id: str = ''
    status: ZoneTaskStatus = ZoneTaskStatus.PENDING
    domain_id: str | None = None
    size: int | None = None
    message: str | None = None
    request_id: str = ''
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None
    may_nest: bool = False
    pool_id: str | None = None
    may_use_blacklisted: bool = False
    may_approve: bool = False
    attributes: str = ''
    actor: str | None = None


class TransferStatus(Word):
    """The state of a transfer request, or of its acceptance.  Only ACTIVE requests can be accepted.

    Requests here become ACTIVE and then COMPLETE; the other words are Designate's.
    """

    ACTIVE = 'ACTIVE'
    PENDING = 'PENDING'
    DELETED = 'DELETED'
    ERROR = 'ERROR'
    COMPLETE = 'COMPLETE'


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneTransferRequest:
    """A request of the owner of a domain that another project take it over.

    :ivar project_id: the owner when the request was created
    :ivar target_project_id: the only project that can accept; None for any
    :ivar key: who accepts has to know it
    :ivar approved: whether the domain needed approval then, which the request has
    """

    id: str
    domain_id: str
    zone_name: str
    status: TransferStatus = TransferStatus.ACTIVE
    key: str = dataclasses.field(default='', repr=False)
    project_id: str = ''
    target_project_id: str | None = None
    description: str | None = None
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None
    approved: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneTransferAccept:
    """The acceptance of a transfer request, which may be deleted since; *project_id* owns the domain since."""

    id: str
    request_id: str
    domain_id: str
    project_id: str
    status: TransferStatus = TransferStatus.ACTIVE
    version: int = 1
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ZoneShare:
    """That *target_project_id* may see a domain of *project_id* ('' for none), and have recordsets of its own in it."""

    id: str
    domain_id: str
    project_id: str
    target_project_id: str
    created_at: datetime | None = None
    updated_at: datetime | None = None
