"""How a server that cannot transfer gets a zone: desired, existing, plan, safety, apply, read back.

The invariant: a success means that the server was read and has what the zone holds at the serial that is told; and what
is too dangerous, or not allowed there, is not done but kept where it can be seen and approved, while everything else
goes on.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Sequence
from datetime import timedelta
from itertools import groupby

from designate_pool.backends.base import Backend
from designate_pool.backends.records import RecordBackend
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, EmptySource, UnsafePlan
from designate_pool.model import CallResult, Domain, PlanState, Pool, StoredPlan, ZoneHead, new_id, utcnow
from designate_pool.planner import safety
from designate_pool.planner.engine import plan_for
from designate_pool.planner.plan import ApplyResult, Plan
from designate_pool.planner.processors.filters import TypeAllow
from designate_pool.planner.processors.ownership import Ownership, Registry, TxtRegistry
from designate_pool.planner.processors.policies import PolicyProcessor
from designate_pool.planner.providers import BaseProcessor, ServerProvider
from designate_pool.planner.records import LOWER
from designate_pool.planner.zone import Zone
from designate_pool.pool_manager.mending import Mender
from designate_pool.pool_manager.settings import Settings
from designate_pool.storage import owned
from designate_pool.storage import plans as plan_store
from designate_pool.storage import zones as zone_store
from designate_pool.storage.sessions import Storage

HOUR = timedelta(hours=1)
Rows = Sequence[tuple[str, str, int | None, str]]


class Feeder:
    """Feeds the servers of *pool* that are fed by records.

    :ivar mend: mends those that are fed by transfer, see :meth:`designate_pool.pool_manager.mending.Mender.mend`
    """

    def __init__(self, storage: Storage, pool: Pool, settings: Settings) -> None:
        self._storage = storage
        self._pool = pool
        self._settings = settings
        self.mend = Mender(storage, settings.tries).mend

    def feed(self, backend: Backend, domain: Domain) -> tuple[CallResult, int | None]:
        """Bring *domain* up to date on a server.

        :returns: how that ended, and the serial whose contents the server has then; None when it has not
        """
        assert isinstance(backend, RecordBackend)
        done: list[int] = []
        result = backend.feed(domain, lambda provider: done.append(_Feeding(
            self._storage, self._pool, self._settings, backend, domain).run(provider)))
        return result, done[0] if done and result.ok else None


class _Feeding:
    """One domain, one server, one try."""

    def __init__(self, storage: Storage, pool: Pool, settings: Settings, backend: RecordBackend,
                 domain: Domain) -> None:
        self._storage = storage
        self._pool = pool
        self._settings = settings
        self._backend = backend
        self._domain = domain
        self._server = backend.server
        self._registry = self._new_registry()
        # Each request has this time; that all of them do is seen between the steps.
        self._deadline = Deadline(backend.server.call_timeout)
        # Whether no more is done than an operator has approved, where one has.
        self._is_covered = True

    def run(self, provider: ServerProvider) -> int:
        """
        :returns: the serial that the server has been given, and was read back with
        :raises BackendRefused: when the plan is parked, or not allowed in full
        :raises BackendError: when it could not be applied
        :raises TimeoutError: when it took too long; the next try finds what was done
        """
        contents = self._storage.read(zone_store.texts, self._domain.id)
        if contents is None:
            raise BackendError(why=f'{self._domain.name} is not there any more')
        desired = desired_zone(*contents)
        plan = self._plan(provider, desired)
        if plan is not None:
            self._make_safe(plan)
            self._deadline.left()
            self._apply(provider, plan)
            self._deadline.left()
            plan = self._verify(provider, desired)
        self._settle()
        if plan is not None and plan.blocked:
            raise BackendRefused(why=_kept_back(plan, self._backend.policy.name))
        return contents[0].serial

    def _plan(self, provider: ServerProvider, desired: Zone) -> Plan | None:
        processors: list[BaseProcessor] = [] if self._registry is None else [
            Ownership('ownership', registry=self._registry)]
        if self._backend.managed_types:
            processors.append(TypeAllow('managed-types', self._backend.managed_types))
        processors.append(PolicyProcessor('policy', self._backend.policy))
        desired = desired.copy()
        for processor in processors:
            desired = processor.process_source_zone(desired, (), lenient=True)
        return plan_for(provider, desired, processors, (), lenient=True)

    def _make_safe(self, plan: Plan) -> None:
        """Let the *plan* pass if it is safe, or approved; park it if it is neither.

        :raises BackendRefused: when it is parked
        """
        live = self._live()
        document = plan.document() if live is not None else None
        self._is_covered = live is not None and document is not None and _covers(live, document)
        if self._is_covered or _is_as_new(plan.existing):
            return
        now = utcnow()
        # The source is a transaction on the database: that it has nothing is what somebody asked for.
        dangers = [each for each in safety.dangers(plan) if not isinstance(each, EmptySource)]
        if (limit := self._settings.max_deletes_per_hour) and plan.counts.deletes:
            before = self._storage.read(plan_store.deletes_since, self._pool.name, now - HOUR)
            dangers += [each for each in [safety.too_many_in_an_hour(plan, before, limit)] if each is not None]
        if not dangers:
            return
        document = document or plan.document()
        if live is None or not (live.state is PlanState.PARKED and _is_same(live, document)):
            if live is not None:
                self._storage.run(plan_store.drop_live, self._domain.id, self._server.id,
                                  'what it was made for has changed', now)
            live = self._storage.run(plan_store.put, self._stored(plan, PlanState.PARKED, dangers, document), now)
        raise BackendRefused(why=f"plan {live.id} is parked: {dangers[0]} 'designate-pool apply {live.id}' has it done")

    def _apply(self, provider: ServerProvider, plan: Plan) -> None:
        """
        :raises BackendError: when not all of it was done
        """
        if not plan.changes and (plan.exists or plan.blocked):
            return
        new = {each.key for change in plan.changes for each in change.new}
        old = {each.key for change in plan.changes for each in change.existing}
        # Were it noted afterwards, a crash would make what was created a stranger's.
        self._own(plan, new - old, ())
        result = provider.apply(plan)
        self._note(plan, result)
        if result.ok:
            self._own(plan, (), old - new)
            return
        if not result.applied:
            self._own(plan, (), new - old)
        raise BackendError(why=f'{result.applied} of {len(plan.changes)} changes were made, {result.failed} failed, '
                               f'{result.skipped} were not tried: {"; ".join(result.errors[:3])}')

    def _verify(self, provider: ServerProvider, desired: Zone) -> Plan | None:
        """Read back; what is left to be done is nothing but what is kept back.

        :raises BackendError: when the server has something else
        """
        left = self._plan(provider, desired)
        if left is not None and left.changes:
            raise BackendError(why=f'it said yes to all, and {len(left.changes)} changes are still to be made, first: '
                                   f'{left.changes[0]}')
        return left

    def _own(self, plan: Plan, created: Collection[str], gone: Collection[str]) -> None:
        if self._registry is not None:
            self._registry.applied(plan.zone, plan.target_id, created, gone)

    def _note(self, plan: Plan, result: ApplyResult) -> None:
        """Keep count of what was deleted, for the limit of an hour; an approved plan counts itself."""
        if not self._is_covered and plan.counts.deletes and self._settings.max_deletes_per_hour:
            state = PlanState.APPLIED if result.ok else PlanState.FAILED
            stored = dataclasses.replace(self._stored(plan, state, (), None), applied_at=utcnow(),
                                         expires_at=utcnow() + 2 * HOUR, why='; '.join(result.errors[:3]) or None)
            self._storage.run(plan_store.put, stored, utcnow())

    def _settle(self) -> None:
        """Whatever was parked or approved is done, or no longer needed."""
        live = self._live()
        if live is None:
            return
        if live.state is PlanState.APPROVED and self._is_covered:
            self._storage.run(plan_store.settle, live.id, (PlanState.APPROVED,), PlanState.APPLIED, None, utcnow())
        else:
            self._storage.run(plan_store.drop_live, self._domain.id, self._server.id, 'it is no longer needed',
                              utcnow())

    def _live(self) -> StoredPlan | None:
        """The plan that is parked or approved."""
        return self._storage.read(plan_store.live, self._domain.id, self._server.id, utcnow())

    def _stored(self, plan: Plan, state: PlanState, dangers: Sequence[UnsafePlan],
                document: dict[str, object] | None) -> StoredPlan:
        counts = plan.counts
        return StoredPlan(
            new_id(), self._pool.name, plan.zone, self._server.label, state, self._domain.id, self._server.id,
            '' if document is None else str(document['desired_digest']),
            '' if document is None else str(document['existing_digest']), *counts,
            why='\n'.join(map(str, dangers)) or None, document='' if document is None else json.dumps(document),
            expires_at=utcnow() + timedelta(seconds=self._settings.plan_lifetime))

    def _new_registry(self) -> Registry | None:
        options = self._backend.options
        if options['ownership'] == 'txt':
            return TxtRegistry(options['owner_id'], prefix=options['txt_prefix'] or '')
        if options['ownership'] == 'database':
            return _DatabaseRegistry(self._storage, self._server.id, self._domain.id)
        return None


class _DatabaseRegistry:
    """Which RRsets of a domain were put on a server from here, as the database knows it."""

    def __init__(self, storage: Storage, server_id: str, domain_id: str) -> None:
        self._storage = storage
        self._server_id = server_id
        self._domain_id = domain_id

    def owned(self, zone: Zone, target_id: str) -> frozenset[str]:
        return self._storage.read(owned.keys, self._server_id, self._domain_id)

    def applied(self, zone_name: str, target_id: str, created: Collection[str], deleted: Collection[str]) -> None:
        self._storage.run(owned.note, self._server_id, self._domain_id, created, deleted)


def desired_zone(head: ZoneHead, rows: Rows) -> Zone:
    """The zone that the database says is to be served.

    :param rows: name, type, TTL (None: the zone's) and data of every record but the SOA
    """
    pairs = {f'{head.name}\tSOA': f'{head.ttl}\t{head.soa.lower()}'}
    for (name, rtype), together in groupby(sorted(rows, key=lambda row: row[:2]), key=lambda row: row[:2]):
        records = list(together)
        ttl = head.ttl if records[0][2] is None else records[0][2]
        data = sorted({row[3].lower() if rtype in LOWER else row[3] for row in records})
        pairs[f'{name}\t{rtype}'] = '\t'.join((str(ttl), *data))
    zone = Zone(head.name)
    zone.fill(pairs)
    return zone


def _is_as_new(existing: Zone) -> bool:
    """Whether it holds no more than what a zone has when it is made by hand."""
    return all(each.name == existing.name and each.type in ('SOA', 'NS') for each in existing)


def _is_same(live: StoredPlan, document: dict[str, object]) -> bool:
    return (live.desired_digest, live.existing_digest) == (document['desired_digest'], document['existing_digest'])


def _covers(live: StoredPlan, document: dict[str, object]) -> bool:
    """Whether all that *document* changes was approved: it may be the rest of a plan that was interrupted."""
    if live.state is not PlanState.APPROVED:
        return False
    approved = json.loads(live.document)['changes']
    changes = json.loads(json.dumps(document['changes']))
    return live.desired_digest == document['desired_digest'] and all(change in approved for change in changes)


def _kept_back(plan: Plan, policy: str) -> str:
    names = ', '.join(f'{each.change.kind} {each.change.name} ({each.why})' for each in plan.blocked[:3])
    more = f' and {len(plan.blocked) - 3} more' if len(plan.blocked) > 3 else ''
    return f'{len(plan.blocked)} changes are kept back there: {names}{more}'
