"""Creates domains: one by one, or many small ones in one transaction.

The latter are those of zone files, and of requests that come together.

The invariant: a domain that is created together with others would be the same if it were created by itself.  So only
the plain case is done so: a name that no domain has or ever had, with none above or below it, that the lists, the
quotas and the pool allow.  All others are created by themselves, which finds the error, if it is one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from designate_pool.call_combiner import MOST_RECORDS, RequestCombiner
from designate_pool.central import events, transactions
from designate_pool.central.cast_queue import CastQueue
from designate_pool.central.recordset_changes import InsertionParts, insertions
from designate_pool.central.rules import domains as rules, name_ownership, pools, recordset_edits, zone_names
from designate_pool.central.rules.quotas import Allowance, Growth
from designate_pool.central.rules.scheduler import Scheduler
from designate_pool.central.validation import requests
from designate_pool.central.validation.requests import NewDomain, WantedRecordSet
from designate_pool.errors import DuplicateDomain, InvalidField, LostRace, NameTaken, PoolError, PoolNotFound
from designate_pool.model import Actor, ChangeKind, Context, Domain, Pool, RecordSet, names, new_id
from designate_pool.protocol.names_and_rdata import lies_in
from designate_pool.protocol.rules import ServerLimit, refused_zone
from designate_pool.storage.operations import rrset_ownership
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Dialect, Storage, Tx
from designate_pool.storage.zones import domains, recordsets, secondary_zones as schedule, versions, zone_ancestry


@dataclasses.dataclass(frozen=True, slots=True)
class NewZone:
    """A domain to create, under a new id; *sets* are its recordsets, but for SOA and NS at the apex.

    :ivar actor: None for that of the context
    """

    domain_id: str
    domain: NewDomain
    sets: Sequence[WantedRecordSet]
    request_id: str = ''
    actor: Actor | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Request:
    context: Context
    zone: NewZone

    @property
    def shared(self) -> tuple[Any, ...]:
        """The values in which requests agree that are carried out in one transaction."""
        new = self.zone.domain
        context = dataclasses.replace(self.context, request_id='', operation_id='', user='', address='', client='')
        return (context, new.description, new.pool_id, new.pool_name, new.attributes)


class DomainCreator:
    """Creates domains within their quotas (*allowance*), sends their events, and casts them to their pool managers.

    :param reserved: patterns of the names that only who may nest zones may create
    """

    def __init__(self, storage: Storage, scheduler: Scheduler, allowance: Allowance, event_sender: events.EventSender,
                 casts: CastQueue, reserved: Sequence[str] = ()) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self.allowance = allowance
        self.events = event_sender
        self._casts = casts
        self._reserved = reserved
        self._now = storage.now
        self._requests = RequestCombiner(
            lambda request: self._create_one(request.context, request.zone.domain_id, request.zone.domain,
                                             [request.zone.sets]),
            self._create_together, lambda request: request.shared)

    def create(self, context: Context, new: NewDomain, sets: Sequence[WantedRecordSet]) -> Domain:
        """Create a domain, with others if such requests are waiting."""
        if new.masters or sum(len(recordset.rdatas) for recordset in sets) > MOST_RECORDS:
            return self.create_one(context, new, [sets])
        request = _Request(context, NewZone(new_id(), new, sets, events.request_id(context), context.actor))
        return self._announce(context, self._requests.call(request))

    def create_one(self, context: Context, wanted: NewDomain, parts: Iterable[Sequence[WantedRecordSet]], *,
                   also: Callable[[Tx, Domain], None] | None = None, ahead: Callable[[Any], Any] = iter) -> Domain:
        """Create a domain in a transaction of its own.

        :param parts: see :func:`create_domain`, for *ahead* too
        :param also: called at the end of the transaction
        """
        return self._announce(context, self._create_one(context, new_id(), wanted, parts, also, ahead))

    def create_many(self, context: Context, zones: Sequence[NewZone], *,
                    also: Callable[[Tx, Sequence[Domain]], None]) -> Sequence[Domain]:
        """Create those of *zones*, which are for one pool, that can be created together."""
        chance, now = random.random(), self._now()

        def work(tx: Tx) -> Sequence[Domain]:
            domains = self._create_domains(tx, context, zones, chance, now)
            if domains:
                also(tx, domains)
            return domains

        created = transactions.run(self._storage, work)
        actors = {zone.domain_id: zone.actor for zone in zones}
        for domain in created:
            self.events.zone(events.CREATE, actors[domain.id] or context.actor, domain)
        self._casts.put(context, created)
        return created

    def _create_one(self, context: Context, domain_id: str, wanted: NewDomain,
                    parts: Iterable[Sequence[WantedRecordSet]], also: Callable[[Tx, Domain], None] | None = None,
                    ahead: Callable[[Any], Any] = iter) -> Domain:
        chance, now = random.random(), self._now()
        zone_names.refuse_reserved(context, wanted.name, self._reserved)

        def work(tx: Tx) -> Domain:
            pool = self._scheduler.pool_of(tx, wanted, chance)
            domain = create_domain(tx, pool, context, domain_id, wanted, parts, now, self.allowance, ahead)
            if also is not None:
                also(tx, domain)
            return domain

        return transactions.run(self._storage, work)

    def _create_together(self, requests: Sequence[_Request]) -> dict[_Request, Domain | Exception]:
        by_id = {request.zone.domain_id: request for request in requests}
        zones = [request.zone for request in requests]
        created = self._storage.try_once(self._create_domains, requests[0].context, zones, random.random(),
                                         self._now())
        return {by_id[domain.id]: domain for domain in created}

    def _create_domains(self, tx: Tx, context: Context, zones: Sequence[NewZone], chance: float,
                        now: datetime) -> list[Domain]:
        pool = self._scheduler.pool_of(tx, zones[0].domain, chance)
        free = [zone for zone in zones if not zone_names.is_reserved(context, zone.domain.name, self._reserved)]
        return create_domains(tx, pool, context, free, now, self.allowance)

    def _announce(self, context: Context, domain: Domain) -> Domain:
        self.events.zone(events.CREATE, context.actor, domain)
        if not domain.awaits_transfer:
            self._casts.put(context, [domain])
        return domain


def create_domain(tx: Tx, pool: Pool | None, context: Context, domain_id: str, wanted: NewDomain,
                  sets: Iterable[Sequence[WantedRecordSet]], now: datetime, allowance: Allowance,
                  ahead: Callable[[InsertionParts], Any] = iter) -> Domain:
    """Create a domain by six statements, with or without recordsets.

    Two more are needed if the database has several writers, and two if the pool has a catalog zone.

    :param pool: shared; None if it does not exist
    :param sets: in parts, each checked by itself; every part after the first takes two more statements
    :param ahead: has parts prepared while those before are written
    """
    if pool is None:
        raise PoolNotFound(pool=wanted.pool_id or wanted.pool_name or '(the default one)')
    pools.refuse_without_name_servers(pool)
    requests.not_in_catalog(wanted.name, pool.catalog_zone)
    last = domains.last_of_name(tx, wanted.name)
    if last is not None and last.id == domain_id:  # the commit came through, the answer to it did not
        return domains.get_many(tx, [domain_id])[domain_id]
    zone_names.check(tx, context, wanted.name)
    if last is not None and last.alive:
        raise (DuplicateDomain if context.sees(last.project_id) else NameTaken)(domain=wanted.name)
    neighbourhood = name_ownership.check_name(tx, context, wanted.name, context.project_id)
    if neighbourhood.former != (last.id if last else ''):  # another domain had the name for a moment
        raise LostRace(what=f'name {wanted.name}')
    if neighbourhood.above:  # before its records are written, and again after that
        name_ownership.refuse_guarded(context, wanted.name, domains.get_many(
            tx, [domain.id for domain in neighbourhood.above]).values())
    domain = rules.create(domain_id, wanted, pool, context.project_id, last.serial if last else None,
                          last.generation if last else 0, now, events.request_id(context))
    if wanted.masters:
        domain = dataclasses.replace(domain, masters=wanted.masters, awaits_transfer=True, serial=1, first_serial=None)
    parts = iter(sets)
    first = next(parts, ())
    limits = allowance.server_limits(tx, pool.id)
    _check_name(limits, domain.name)
    edits = recordset_edits.plan(domain, (), first, must_be_new=True, limits=limits)
    check = name_ownership.SubzoneCheck(context, domain, neighbourhood.below)
    check.add(first)
    growth = allowance.for_new_domain(tx, context.project_id)
    growth.add(edits)
    soa, ns = rules.from_pool(domain)
    domains.insert(tx, domain, _created_by(context, domain))
    if last is not None and not domain.is_secondary:  # else by its first transfer
        rrset_ownership.reassign_of_name(tx, domain.id)
    if domain.is_secondary:
        schedule.insert(tx, domain.id, now)
        transactions.refuse_beside_former(tx, domain)
    else:
        edits.new_sets[:0] = [soa, ns]
        edits.new_records[:0] = [(ns.id, rdata) for rdata in rules.ns_rdatas(pool.name_servers)]
    with contextlib.closing(ahead(_insertions(tx.dialect, domain, edits, parts, check, growth, limits,
                                              now))) as prepared:
        for part in prepared:
            for insert in part:
                insert(tx)
    name_ownership.recheck_name_and_records(tx, context, domain.name, context.project_id, neighbourhood)
    catalog.bump(tx, pool.id, now, [domain.id])
    return domain


def _insertions(dialect: Dialect, domain: Domain, edits: recordset_edits.RecordSetEdits,
                parts: Iterable[Sequence[WantedRecordSet]], check: name_ownership.SubzoneCheck, growth: Growth,
                limits: Sequence[ServerLimit], now: datetime) -> InsertionParts:
    """The statements that insert a domain's contents: *edits* are of the first part, *parts* the others."""
    yield insertions(dialect, domain, edits, now)
    begun: list[RecordSet] = []
    for part in parts:
        # The last name of a part may be in the next one too, whose limits are then those of both.
        begun = [recordset for recordset in (*begun, *edits.new_sets) if recordset.name == part[0].name]
        edits = recordset_edits.plan(domain, begun, part, must_be_new=True, limits=limits)
        check.add(part)
        growth.add(edits)
        yield insertions(dialect, domain, edits, now)
    check.end()


def _check_name(limits: Sequence[ServerLimit], name: str) -> None:
    for violation in refused_zone(limits, name):
        raise InvalidField(field='name', why=violation.why)


def create_domains(tx: Tx, pool: Pool | None, context: Context, zones: Sequence[NewZone], now: datetime,
                   allowance: Allowance) -> list[Domain]:
    """Create some of *zones* by 11 statements for all, two more if the pool has a catalog zone.

    :param pool: of all of them, shared; None if it does not exist
    :param context: of all of them, but for the request
    :param zones: as many as :data:`designate_pool.storage.sql.entities.CHUNK`, at most
    :raises LostRace: when one of the names is no longer free
    """
    if pool is None or not pool.name_servers or not zones:
        return []
    committed = domains.get_many(tx, [zone.domain_id for zone in zones])
    if committed:
        return list(committed.values())  # the commit came through, the answer to it did not
    plain = _plain(tx, context, pool, zones)
    created: list[Domain] = []
    sets: list[RecordSet] = []
    records: dict[int, list[tuple[str, str, str, bytes]]] = {}
    servers = rules.ns_rdatas(pool.name_servers)
    for zone in plain[:allowance.room_for(tx, context.project_id, len(plain))]:
        domain = rules.create(zone.domain_id, zone.domain, pool, context.project_id, None, 0, now, zone.request_id)
        try:
            limits = allowance.server_limits(tx, pool.id)
            _check_name(limits, domain.name)
            edits = recordset_edits.plan(domain, (), zone.sets, must_be_new=True, limits=limits)
            Growth(allowance.limits_of(tx, context.project_id)).add(edits)
        except PoolError:
            continue
        soa, ns = rules.from_pool(domain)
        created.append(domain)
        sets += [soa, ns, *edits.new_sets]
        records.setdefault(domain.serial, []).extend(
            (domain.id, set_id, rdata.text, rdata.wire)
            for set_id, rdata in [*((ns.id, rdata) for rdata in servers), *edits.new_records])
    if not created:
        return []
    created.sort(key=lambda domain: domain.name)  # two that insert the same names wait for each other, not crosswise
    actors = {zone.domain_id: zone.actor for zone in plain}
    domains.insert_many(tx, created, [_created_by(context, domain, actors[domain.id]) for domain in created])
    recordsets.insert(tx, sets, now)
    for serial, rows in records.items():
        recordsets.insert_records(tx, serial, rows, now)
    # Keep others from creating domains above and below until the commit.
    new_names = [domain.name for domain in created]
    zone_ancestry.lock(tx, *new_names)
    if tx.dialect.name != 'sqlite' and zone_ancestry.with_neighbours(tx, new_names):
        raise LostRace(what=f'one of {len(created)} names')
    catalog.bump(tx, pool.id, now, [domain.id for domain in created])
    return created


def _created_by(context: Context, domain: Domain, actor: Actor | None = None) -> str:
    kind = ChangeKind.CREATE if context.kind is ChangeKind.API else context.kind
    version = versions.of(context, domain, domain, kind)
    return versions.origin_text(dataclasses.replace(version, actor=actor) if actor else version)


def _plain(tx: Tx, context: Context, pool: Pool, zones: Sequence[NewZone]) -> list[NewZone]:
    """The zones whose names can be given without looking at anything but these names."""
    by_name: dict[str, NewZone] = {}
    for zone in zones:
        by_name.setdefault(zone.domain.name, zone)
    every = list(by_name)
    not_plain = (domains.ever_named(tx, every) | zone_names.refused(tx, context, every).keys()
                 | zone_ancestry.with_neighbours(tx, every))
    return [zone for name, zone in by_name.items()
            if name not in not_plain and (above := names.above(name)) and by_name.keys().isdisjoint(above)
            and not (pool.catalog_zone is not None and lies_in(name, pool.catalog_zone))]
