"""Creates domains: one by one, many of zone files, and in one transaction those whose requests come together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from designate_pool.central import domain_batch, events, transactions
from designate_pool.central.cast_queue import CastQueue
from designate_pool.central.domain_batch import NewZone
from designate_pool.central.request_combiner import MOST_RECORDS, RequestCombiner
from designate_pool.central.rules.quotas import Allowance
from designate_pool.central.rules.scheduler import Scheduler
from designate_pool.central.validation.requests import NewDomain, WantedRecordSet
from designate_pool.model import Context, Domain, new_id
from designate_pool.storage.sql.database import Storage, Tx


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Request:
    context: Context
    zone: NewZone

    @property
    def shared(self) -> tuple[Any, ...]:
        """What requests have in common that are carried out in one transaction."""
        wanted = self.zone.wanted
        return (dataclasses.replace(self.context, request_id='', operation_id='', user=''), wanted.description,
                wanted.pool_id, wanted.pool_name, wanted.attributes)


class DomainCreator:
    """
    :param now: the time
    """

    def __init__(self, storage: Storage, scheduler: Scheduler, allowance: Allowance, event_sender: events.EventSender,
                 casts: CastQueue, now: Callable[[], datetime]) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._allowance = allowance
        self._events = event_sender
        self._casts = casts
        self._now = now
        self._requests = RequestCombiner(self._create_alone, self._create_together, lambda request: request.shared)

    def create(self, context: Context, wanted: NewDomain, sets: Sequence[WantedRecordSet],
               pool_name: str | None = None) -> Domain:
        """A new domain, with others if such requests are waiting.

        :param pool_name: the pool's, unless *wanted* names one
        """
        if wanted.masters or sum(len(each.rdatas) for each in sets) > MOST_RECORDS:
            return self.create_one(context, wanted, [sets], pool_name=pool_name)
        if wanted.pool_name is None:
            wanted = dataclasses.replace(wanted, pool_name=pool_name)
        request = _Request(context, NewZone(new_id(), wanted, sets, events.request_id(context)))
        return self._tell(context, self._requests.carry_out(request))

    def create_one(self, context: Context, wanted: NewDomain, parts: Iterable[Sequence[WantedRecordSet]], *,
                   pool_name: str | None = None, also: Callable[[Tx, Domain], None] | None = None,
                   ahead: Callable[[Any], Any] = iter) -> Domain:
        """A new domain, in a transaction of its own.

        :param parts: see :func:`transactions.create_domain`, for *ahead* too
        :param also: called at the end of the transaction
        """
        return self._tell(context, self._create_one(context, new_id(), wanted, parts, pool_name, also, ahead))

    def create_many(self, context: Context, zones: Sequence[NewZone], *,
                    also: Callable[[Tx, Sequence[Domain]], None]) -> Sequence[Domain]:
        """Those of *zones*, which are for one pool, that can be created together."""
        made = transactions.run(self._storage, domain_batch.create, self._scheduler.chooser(zones[0].wanted), context,
                                zones, self._now(), self._allowance, also)
        for domain in made:
            self._events.zone(events.CREATE, domain)
        self._casts.put(context, made)
        return made

    def _create_one(self, context: Context, domain_id: str, wanted: NewDomain,
                    parts: Iterable[Sequence[WantedRecordSet]], pool_name: str | None = None,
                    also: Callable[[Tx, Domain], None] | None = None,
                    ahead: Callable[[Any], Any] = iter) -> Domain:
        choose = self._scheduler.chooser(wanted, pool_name)
        arguments = (context, domain_id, wanted, parts, self._now(), self._allowance, ahead)

        def work(tx: Tx) -> Domain:
            made = transactions.create_domain(tx, choose(tx), *arguments)
            if also is not None:
                also(tx, made)
            return made

        return transactions.run(self._storage, work)

    def _create_alone(self, request: _Request) -> Domain:
        zone = request.zone
        return self._create_one(request.context, zone.domain_id, zone.wanted, [zone.sets])

    def _create_together(self, requests: Sequence[_Request]) -> dict[_Request, Domain | Exception]:
        by_id = {request.zone.domain_id: request for request in requests}
        zones = [request.zone for request in requests]
        made = self._storage.try_once(domain_batch.create, self._scheduler.chooser(zones[0].wanted),
                                      requests[0].context, zones, self._now(), self._allowance)
        return {by_id[domain.id]: domain for domain in made}

    def _tell(self, context: Context, domain: Domain) -> Domain:
        self._events.zone(events.CREATE, domain)
        if not domain.awaits_transfer:
            self._casts.put(context, [domain])
        return domain
