"""Plan and apply for servers that cannot transfer zones: desired, existing, plan, safety, apply, read back.

The invariant: success means that the zone was read back from the server and has the contents of the reported serial.
An unsafe plan is not applied but parked until an operator approves it; other domains and servers are not affected.

Deletion also uses a plan, since a server may be shared: our records are deleted within the safety limits, and the zone
itself only if no one else has records in it.

If the claim has expired and another pool manager has taken over, nothing is written.  If that is discovered only after
writing, the newest contents are written again, so that no older state remains.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from designate_pool.backends.base import Backend
from designate_pool.backends.records import RecordBackend
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, PoolError, UnsafePlan
from designate_pool.model import (LAST_STAGE, CallResult, Domain, PlanState, Pool, Reason, StoredPlan, ZoneHead, new_id,
                                  some)
from designate_pool.planner.plan import safety
from designate_pool.planner.plan.plan import CONFLICT, Plan
from designate_pool.planner.processors.filters import TypeAllow
from designate_pool.planner.processors.ownership import MarkRegistry, Ownership, Registry, TxtRegistry
from designate_pool.planner.processors.rules import PolicyProcessor
from designate_pool.planner.providers.base import BaseProcessor, ExistingRecorder, plan_for
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.changes import Change
from designate_pool.planner.zone.zone import Zone, required_records
from designate_pool.protocol import soa_rdata
from designate_pool.protocol.names_and_rdata import without_case
from designate_pool.protocol.rrset import RRset
from designate_pool.settings import PoolManagerSettings
from designate_pool.storage.operations import rrset_ownership, server_statuses
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains as domain_store, plans as plan_store, versions

LOG = logging.getLogger(__name__)

HOUR = timedelta(hours=1)
#: Attempts per domain while other pool managers work on it.
ROUNDS = 3
#: For which a server without serials may show late what it was sent.
LATE = timedelta(minutes=10)
Rows = Sequence[tuple[str, str, int | None, str]]


class Removal(NamedTuple):
    """The result of deleting a domain on a server, and whether the zone is *gone* there; a shared one remains."""

    result: CallResult
    gone: bool = False


class RecordSync:
    """Plans and applies zones on the servers of *pool* that are fed by records."""

    def __init__(self, storage: Storage, pool: Pool, settings: PoolManagerSettings) -> None:
        self._storage = storage
        self.pool = pool
        self._settings = settings
        self._recent = RecentCreates()

    def sync(self, backend: Backend, domain: Domain) -> tuple[CallResult, int | None]:
        """Bring *domain* up to date on a server, or delete it there.

        :returns: the result, and the serial whose contents the server now has; None on failure
        """
        for _ in range(ROUNDS):
            if domain.is_going:
                return self.delete(backend, domain).result, None
            serial, attempt = None, _ZoneSync(self._storage, self.pool, self._settings, backend, domain, self._recent)
            with attempt.backend.feed(domain) as call:
                serial = attempt.run()
            is_overtaken = attempt.has_written and attempt.is_overtaken()
            newest = self._storage.read(domain_store.newest, domain.name, self.pool.name) if is_overtaken else None
            newest = newest and newest.permitted_at(self.pool.stages.get(backend.server.id, LAST_STAGE))
            if newest is None or newest.abandoned:
                break
            LOG.warning('%s: %s was changed by another pool manager at the same time; it is written again',
                        backend.server.label, domain.name)
            domain = newest
        return call.result, serial

    def delete(self, backend: Backend, domain: Domain, is_known: bool = True) -> Removal:
        """Delete our records of *domain* from a server; one that is not *known* has no unsafe plan parked."""
        gone, attempt = False, _ZoneSync(self._storage, self.pool, self._settings, backend, domain, self._recent)
        with attempt.backend.feed(domain) as call:
            gone = attempt.remove(is_known)
        return Removal(call.result, gone)


class _ZoneSync:
    """One attempt to bring a domain up to date on a server; *has_written* once a write to it was started."""

    def __init__(self, storage: Storage, pool: Pool, settings: PoolManagerSettings, backend: Backend,
                 domain: Domain, recent: RecentCreates) -> None:
        assert isinstance(backend, RecordBackend)
        self.domain = domain
        self.has_written = self._is_removal = False
        self._serial = domain.serial
        self._storage, self._pool, self._settings, self._recent = storage, pool, settings, recent
        self.backend, self._provider, self._server = backend, backend.provider, backend.server
        self._registry = self._new_registry()
        self._recorder = ExistingRecorder('existing') if isinstance(self._registry, _DatabaseRegistry) else None
        # Each request has this timeout; the total is checked between the steps.
        self._deadline = Deadline(backend.server.call_timeout)
        # Whether an approved plan covers all changes.
        self._is_approved = True
        self._reserved: StoredPlan | None = None

    def run(self) -> int:
        """Plan, apply and read back; the serial whose contents were read back.

        :raises BackendRefused: when the plan is parked, or partly blocked by the policy
        :raises TimeoutError: when it took too long; the next attempt continues from what was done
        """
        contents = self._storage.read(versions.permitted_texts, self.domain.id,
                                      self._pool.stages.get(self._server.id, LAST_STAGE))
        if contents is None:
            raise BackendError(why=f'{self.domain.name} is not there any more')
        self._serial = contents[0].serial
        desired = desired_zone(*contents)
        plan = self._plan(desired)
        if plan is not None:
            self._make_safe(plan)
            self._apply(plan)
            self._deadline.left()
            plan = self._verify(desired)
        self._retire_plan()
        self._disown_absent(plan)
        if plan is not None and plan.blocked:
            raise BackendRefused(why=_blocked_reason(plan), reason=Reason.POLICY)
        return contents[0].serial

    def is_overtaken(self) -> bool:
        """Whether the claim has expired and another pool manager works on the domain here, or has written it since."""
        return self._storage.read(server_statuses.is_overtaken, self._server.id, self.domain.id, self._serial,
                                  self._settings.name, self._storage.now(), not self._is_removal)

    def remove(self, is_known: bool) -> bool:
        """Delete our records, and the zone if no one else has records in it; whether the server has no such zone now.

        :raises BackendRefused: when the plan is parked, or the policy forbids deletion
        """
        self._is_removal = True
        existing = self._existing()
        if existing is not None:
            if 'delete' not in self.backend.policy.verbs:
                raise BackendRefused(why=f'the policy {self.backend.policy.name} of {self._server.label} forbids '
                                         f'deleting {self.domain.name}', reason=Reason.POLICY)
            if self._registry is None and not self.backend.managed_types:
                deletes: list[Change] = [changes.delete(rrset) for rrset in existing if rrset.type != 'SOA']
                everything = Plan(existing, existing.empty(), deletes, True, target_id=self._provider.id)
                self._make_safe(everything, True, is_known)
                self._start_writing()
                self._provider.delete_zone(self.domain.name)
                self._finish_reserved(True)
                existing = None
            else:
                existing = self._remove_ours(existing, is_known)
        if self._registry is not None:
            remaining = existing or Zone(self.domain.name)
            gone = [key for key in self._registry.owned(remaining, self._provider.id) if key not in remaining]
            self._registry.applied(remaining.name, self._provider.id, (), gone)
        self._retire_plan()
        return existing is None

    def _remove_ours(self, existing: Zone, is_known: bool) -> Zone | None:
        """Delete our records from a shared zone, and the zone if it has no others; the remaining zone, if any."""
        ours = self._ours(existing)
        # The SOA and NS records of the apex remain while there are records of others.
        kept = existing.empty()
        for rrset in required_records(existing):
            if self._provider.supports(rrset) and (self._provider.SUPPORTS_ROOT_NS or rrset != existing.root_ns):
                kept.add_record(rrset, lenient=True)
        plan = self._plan(kept)
        if plan is not None and plan.changes:
            self._make_safe(plan, True, is_known)
            self._apply(plan)
            self._deadline.left()
            self._verify(kept)
        remaining = self._existing()
        if remaining is None:
            return None
        # Its NS records are ours if we created it.
        if f'{remaining.name}\tNS' in ours and all(key in ours or key.endswith('\tSOA') for key in remaining.packed):
            self._provider.delete_zone(remaining.name)
            return None
        return remaining

    def _existing(self) -> Zone | None:
        existing = Zone(self.domain.name)
        return existing if self._provider.populate(existing, target=True, lenient=True) else None

    def _ours(self, existing: Zone) -> frozenset[str]:
        """The keys of the RRsets that we created there, ownership marks included."""
        types, ours = self.backend.managed_types, frozenset(existing.packed)
        if self._registry is not None:
            ours = self._registry.owned(existing, self._provider.id)
        ours = frozenset(key for key in ours if not types or key.rpartition('\t')[2] in types)
        if isinstance(self._registry, MarkRegistry):
            owner = self._registry.owner_id
            ours |= {key for key, named in self._registry.marks(existing).items() if named == owner}
        return ours

    def _plan(self, desired: Zone) -> Plan | None:
        processors: list[BaseProcessor] = [] if self._recorder is None else [self._recorder]
        if self._registry is not None:
            processors.append(Ownership('ownership', registry=self._registry))
        if self.backend.managed_types:
            processors.append(TypeAllow('managed-types', self.backend.managed_types))
        processors.append(PolicyProcessor('policy', self.backend.policy))
        desired = desired.copy()
        for processor in processors:
            desired = processor.process_source_zone(desired, (), lenient=True)
        return plan_for(self._provider, desired, processors, (), lenient=True)

    def _make_safe(self, plan: Plan, is_removal: bool = False, is_known: bool = True) -> None:
        """Return if *plan* is safe or approved; otherwise park it.

        :param is_removal: whether the zone is being deleted, so that it may become empty
        :raises BackendRefused: when it is parked, or unsafe and the zone has no domain
        """
        live = self._live()
        document = plan.document() if live is not None else None
        self._is_approved = live is not None and document is not None and _is_approved_in_full(live, document)
        is_as_new = all(rrset.name == plan.zone and rrset.type in ('SOA', 'NS') for rrset in plan.existing)
        if self._is_approved or is_as_new:
            return
        now = self._storage.now()
        # The source was read in one database transaction, so it is not incomplete: if it is empty, that is intended.
        dangers = [] if is_removal else [danger for danger in safety.dangers(plan)
                                         if danger.kind != 'empty_source']
        dangers = dangers or self._reserve(plan, is_known)
        if not dangers:
            return
        if not is_known:
            raise BackendRefused(why=str(dangers[0]))
        document = document or plan.document()
        if live is None or live.state is not PlanState.PARKED or (
                live.desired_digest, live.existing_digest) != _digests(document):
            if live is not None:
                self._storage.run(plan_store.drop_live, self.domain.id, self._server.id,
                                  'the zone or the server has changed since', now)
            live = self._storage.run(plan_store.put, self._stored(plan, PlanState.PARKED, dangers, document), now)
        raise BackendRefused(why=f"plan {live.id} is parked: {dangers[0]} Approve it with 'designate-pool apply "
                                 f"{live.id}'", reason=Reason.PARKED)

    def _reserve(self, plan: Plan, is_known: bool) -> list[UnsafePlan]:
        """Reserve the deletes of *plan* within the hourly limit, until it is known how they ended."""
        limit = self._settings.max_deletes_per_hour
        if not limit or not plan.counts.deletes:
            return []
        now = self._storage.now()
        reservation = dataclasses.replace(self._stored(plan, PlanState.FAILED), expires_at=now + 2 * HOUR,
                                          domain_id=self.domain.id if is_known else None)
        before = self._storage.run(plan_store.reserve, reservation, limit, now - HOUR, now)
        if before is None:
            self._reserved = reservation
            return []
        return [UnsafePlan(zone=plan.zone, target=plan.target_id, kind='too_many_deletes_in_hour',
                           why=f'{plan.counts.deletes} deletes, after {before} in the last hour, exceed the limit of '
                               f'{limit}')]

    def _apply(self, plan: Plan) -> None:
        """Make the changes of *plan*; BackendError when not all were made."""
        if not plan.changes and (plan.exists or plan.blocked):
            return
        # Not the SOA: it is of the zone, and the NS records say whose that is.
        new = {rrset.key for change in plan.changes for rrset in change.new if rrset.type != 'SOA'}
        old = {rrset.key for change in plan.changes for rrset in change.existing}
        created = new - old
        if not self.backend.capabilities.keeps_serial:
            # It may show late what an earlier plan has created, and refuse to create that again.
            created -= self._known()
            self._recent.note(self._server.id, self.domain.id, self._storage.now(), [
                rrset for change in plan.changes for rrset in change.new if rrset.key in created])
        self._deadline.left()
        # Recorded first: otherwise, after a crash in between, the records that we created would count as others'.
        self._record_ownership(plan, created, ())
        self._start_writing()
        try:
            result = self._provider.apply(plan)
        except BackendRefused:  # it may be long before the server takes it
            self._disown_lost(plan, created, old - new)
            raise
        self._finish_reserved(result.ok, '; '.join(result.errors[:3]))
        if result.ok:
            self._record_ownership(plan, (), old - new)
            self._recent.forget(self._server.id, self.domain.id, old - new)
            return
        if result.applied:
            self._disown_lost(plan, created, old - new)
        else:
            self._record_ownership(plan, (), created)
        raise BackendError(why=f'{result.applied} of {len(plan.changes)} changes were made, {result.failed} failed, '
                               f'{result.skipped} were not tried: {"; ".join(result.errors[:3])}')

    def _disown(self, zone: Zone, created: Mapping[str, Collection[str]], others: Collection[str]) -> set[str]:
        """Record of RRsets of ours that they are nobody's if they are not in *zone*, or others' if those created them.

        If another pool manager has taken over, nothing is recorded: what that one creates may not be there yet.

        :param zone: as read after the last write to the server
        :param created: the data of RRsets that were to be created, by key; others have created one with other data
        :param others: keys of other RRsets that may be recorded as ours
        :returns: the keys that are not ours any more
        """
        lost = {key for key, data in created.items() if key not in zone or not set(zone[key].rdatas) <= set(data)}
        lost.update(key for key in others if key not in zone)
        if self._registry is None or not lost or self.is_overtaken():
            return set()
        self._registry.applied(zone.name, self._provider.id, (), lost)
        return lost

    def _disown_absent(self, blocked: Plan | None) -> None:
        """Disown what the zone does not have, once it has all our contents: it was deleted, by us or by others.

        It stayed recorded if the plan that deleted it did not end well; whoever creates it now must keep it.
        """
        zone = None if self._recorder is None else self._recorder.existing
        if self._registry is None or zone is None:
            return
        if blocked is not None and any(change.by != CONFLICT for change in blocked.blocked):
            return  # the zone does not have all our contents
        self._disown(zone, {}, self._registry.owned(zone, self._provider.id) - {f'{zone.name}\tNS'})

    def _disown_lost(self, plan: Plan, created: Collection[str], deleted: Collection[str]) -> None:
        """Disown what *plan*, which has failed, has not created, what others have created instead, and what it deleted.

        If the zone cannot be read, all of that remains ours: what we did create must not count as others'.  If the
        server has lost the zone, so does what was ours before: the zone may come back as it was.
        """
        if self._registry is None:
            return
        before = self._known()
        data = {rrset.key: rrset.rdatas for change in plan.changes for rrset in change.new if rrset.key in created}
        try:
            zone = self._existing()
            if zone is None:
                self._disown(Zone(plan.zone), {}, frozenset(created) - before)
                return
            lost = self._disown(zone, data, deleted)
            if isinstance(self._registry, MarkRegistry):
                fresh = [mark.key for key in sorted(lost)
                         if key in zone and (mark := self._registry.new_mark(key, zone)) is not None]
                # A lost mark is not ours either: others mark what they create.
                wrong: list[Change] = [changes.delete(zone[key]) for key in fresh
                                       if key in created and key not in lost]
                if wrong:
                    self._start_writing()
                    self._provider.apply(Plan(zone, changes.apply(zone, wrong), wrong, True,
                                              target_id=self._provider.id))
        except (PoolError, OSError) as error:
            LOG.warning('%s: %s: it is not known what of the failed changes others have made: %s',
                        self._server.label, plan.zone, error)

    def _known(self) -> frozenset[str]:
        """The keys that the database had as ours when the plan was made."""
        return self._registry.last_read if isinstance(self._registry, _DatabaseRegistry) else frozenset()

    def _start_writing(self) -> None:
        """Raise an error, before writing to the server, if it is too late or another pool manager has taken over."""
        self._deadline.left()
        if self.is_overtaken():
            raise BackendError(why='another pool manager has taken over meanwhile; nothing was written')
        self.has_written = True

    def _verify(self, desired: Zone) -> Plan | None:
        """Read the zone back, BackendError for other contents; what remains of the plan, all of it blocked."""
        remaining = self._plan(desired)
        if remaining is not None and remaining.changes:
            raise BackendError(why=f'the server accepted all changes, but the zone read back still needs '
                                   f'{len(remaining.changes)}, first: {remaining.changes[0]}')
        return remaining

    def _record_ownership(self, plan: Plan, created: Collection[str], gone: Collection[str]) -> None:
        if self._registry is not None:
            self._registry.applied(plan.zone, plan.target_id, created, gone)

    def _finish_reserved(self, ok: bool, why: str = '') -> None:
        """Record how the reserved deletes ended; a partial failure is a failure."""
        if self._reserved is not None:
            self._storage.run(plan_store.change_state, self._reserved.id, (PlanState.FAILED,),
                              PlanState.APPLIED if ok else PlanState.FAILED, why, self._storage.now())

    def _retire_plan(self) -> None:
        """Close the parked or approved plan as applied or no longer needed."""
        live = self._live()
        if live is None:
            return
        if live.state is PlanState.APPROVED and self._is_approved:
            self._storage.run(plan_store.change_state, live.id, (PlanState.APPROVED,), PlanState.APPLIED, None,
                              self._storage.now())
        else:
            self._storage.run(plan_store.drop_live, self.domain.id, self._server.id, 'it is no longer needed',
                              self._storage.now())

    def _live(self) -> StoredPlan | None:
        return self._storage.read(plan_store.live, self.domain.id, self._server.id, self._storage.now())

    def _stored(self, plan: Plan, state: PlanState, dangers: Sequence[UnsafePlan] = (),
                document: Mapping[str, object] | None = None) -> StoredPlan:
        desired, existing = ('', '') if document is None else _digests(document)
        return StoredPlan(
            new_id(), self._pool.name, plan.zone, self._server.label, state, self.domain.id, self._server.id,
            desired, existing, *plan.counts, why='\n'.join(map(str, dangers)) or None,
            document='' if document is None else json.dumps(document),
            expires_at=self._storage.now() + timedelta(seconds=self._settings.plan_lifetime))

    def _new_registry(self) -> Registry | None:
        options = self.backend.options
        if options['ownership'] == 'txt':
            return TxtRegistry(options['owner_id'], prefix=options['txt_prefix'] or '',
                               wildcard=self._provider.MARK_WILDCARD)
        if options['ownership'] == 'database':
            return _DatabaseRegistry(self._storage, self._server.id, self.domain.id, self._recent)
        return None


class RecentCreates:
    """What this process has created on servers without serials for :data:`LATE`: what they show late is not others'."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: By server and domain, the latest last: until when, and the data, by key.
        self._created: dict[tuple[str, str], dict[str, tuple[datetime, tuple[str, ...]]]] = {}

    def note(self, server_id: str, domain_id: str, now: datetime, created: Iterable[RRset]) -> None:
        """Note that these RRsets are about to be created."""
        with self._lock:
            before = self._created.pop((server_id, domain_id), {})
            self._created[server_id, domain_id] = {
                **{key: (until, data) for key, (until, data) in before.items() if until > now},
                **{rrset.key: (now + LATE, rrset.rdatas) for rrset in created}}
            for zone, keys in list(self._created.items()):
                if any(until > now for until, _ in keys.values()):
                    break
                del self._created[zone]

    def forget(self, server_id: str, domain_id: str, keys: Iterable[str]) -> None:
        """Forget RRsets that were deleted there."""
        with self._lock:
            for key in keys:
                self._created.get((server_id, domain_id), {}).pop(key, None)

    def shown(self, server_id: str, domain_id: str, now: datetime, zone: Zone) -> set[str]:
        """The keys of RRsets in *zone* that have the data with which they were created."""
        with self._lock:
            return {key for key, (until, data) in self._created.get((server_id, domain_id), {}).items()
                    if until > now and key in zone and set(zone[key].rdatas) <= set(data)}


class _DatabaseRegistry:
    """A :class:`Registry` in the database: which RRsets of a domain on a server are ours (*last_read*: their keys)."""

    last_read: frozenset[str] = frozenset()

    def __init__(self, storage: Storage, server_id: str, domain_id: str, recent: RecentCreates) -> None:
        self._storage = storage
        self._recent = recent
        self._server_id = server_id
        self._domain_id = domain_id

    def owned(self, zone: Zone, target_id: str) -> frozenset[str]:
        self.last_read = self._storage.read(rrset_ownership.keys, self._server_id, self._domain_id)
        late = self._recent.shown(self._server_id, self._domain_id, self._storage.now(), zone) - self.last_read
        if late:
            self.applied(zone.name, target_id, late, ())
            self.last_read |= late
        return self.last_read

    def applied(self, zone_name: str, target_id: str, created: Collection[str], deleted: Collection[str]) -> None:
        self._storage.run(rrset_ownership.note, self._server_id, self._domain_id, created, deleted)


def desired_zone(head: ZoneHead, rows: Rows) -> Zone:
    """The zone that the server should have, from what was read from the database.

    :param rows: name, type, TTL (None: that of the zone) and data of every record except the SOA
    """
    soa = soa_rdata.text(head, head.name_servers[0])
    pairs = {f'{head.name}\tSOA': f'{head.ttl}\t{soa.lower()}'}
    for (name, rtype), together in groupby(sorted(rows, key=lambda row: row[:2]), key=lambda row: row[:2]):
        records = list(together)
        ttl = head.ttl if records[0][2] is None else records[0][2]
        data = sorted({without_case(rtype, row[3]) for row in records})
        pairs[f'{name}\t{rtype}'] = '\t'.join((str(ttl), *data))
    zone = Zone(head.name)
    zone.add_pairs(pairs, lenient=True)  # what a server does not take is its provider's to refuse or to leave out
    return zone


def _is_approved_in_full(live: StoredPlan, document: dict[str, object]) -> bool:
    """Whether all changes of *document* are approved: it may be the rest of an approved plan that was interrupted.

    The SOA is not compared: the serial moves on with every change, and some servers increment it themselves.
    """
    if live.state is not PlanState.APPROVED:
        return False
    approved = json.loads(live.document)['changes']
    changes = json.loads(json.dumps(document['changes']))
    return live.desired_digest == document['desired_digest'] and all(
        change in approved or all(rrset['type'] == 'SOA' for rrset in (*change['existing'], *change['new']))
        for change in changes)


def _digests(document: Mapping[str, object]) -> tuple[str, str]:
    return str(document['desired_digest']), str(document['existing_digest'])


def _blocked_reason(plan: Plan) -> str:
    changes = [f'{blocked.change.kind} {blocked.change.name} ({blocked.why})' for blocked in plan.blocked]
    return f'{len(changes)} changes are blocked: {some(changes, 3)}'
