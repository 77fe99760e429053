"""Work beside the requests: what was deleted long ago is purged, interrupted work is resumed, and freezes end."""

from __future__ import annotations

import dataclasses
import functools
import logging
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta

from designate_pool import logs
from designate_pool.central import domain_changes, events, transactions, zone_moves
from designate_pool.central.cast_queue import CastQueue
from designate_pool.central.rules import pools
from designate_pool.central.rules.journal import Journal
from designate_pool.central.validation import fields
from designate_pool.errors import Refused, UnreadableSecret
from designate_pool.model import Context, Domain, Freeze, Pool, new_id
from designate_pool.settings import CentralSettings
from designate_pool.storage.operations import heartbeats
from designate_pool.storage.reporting import purge
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.entities import chunks
from designate_pool.storage.zones import (domains, nameserver_updates, plans, pools as pool_store, quotas, versions,
                                          zone_tasks)
from designate_pool.storage.zones.nameserver_updates import NameserverUpdate

LOG = logging.getLogger(__name__)
#: Seconds between two runs, and between two looks for freezes whose time is over.
INTERVAL, SOON = 300.0, 5.0
#: Domains examined, or rows removed, in one transaction.
BATCH = 500
#: Transactions in one run.
MAX_BATCHES = 40
#: How long expired plans are kept at least: those applied in the last hour count towards the limit of deletes.
PLANS_KEPT = timedelta(hours=2)
#: How long a service without heartbeats is listed.
SERVICES_KEPT = timedelta(days=1)
#: How long the upload of a zone file into the database may take; its task exists before the upload begins.
ARRIVING = timedelta(hours=1)
#: How long a private key is kept once its zone is not signed with it any more.
KEYS_KEPT = timedelta(days=30)
#: How long deletes count towards the limit of an hour, at most.
DELETES_COUNTED = timedelta(hours=2)
WHO = Context(user='purger', all_projects=True)


class Backlog:
    """Work that takes many transactions, and that each Central resumes where another has not finished it."""

    def __init__(self, storage: Storage, casts: CastQueue, event_sender: events.EventSender,
                 journal: Journal) -> None:
        self._storage = storage
        self._casts = casts
        self._events = event_sender
        self._journal = journal
        self._now = storage.now

    def resume(self) -> None:
        """Resume everything."""
        try:
            self.resume_renewals()
        finally:
            self.delete_from_former_pools()

    def resume_renewals(self) -> None:
        """Complete updates of name servers that another Central began and did not finish."""
        now = self._now()
        while (renewal := self._storage.run(nameserver_updates.claim, now, now + pools.CLAIM)) is not None:
            self.update_name_servers(renewal)

    def update_name_servers(self, renewal: NameserverUpdate) -> None:
        """Rewrite SOA and NS of the pool's domains, one page per transaction; those that cannot be changed, such as
        signed ones without their keys, are left out, and tried again later."""
        after_id: str | None = renewal.after_id
        retried, left_out, alone = list(renewal.left_out), list(renewal.left_out), 0
        while after_id is not None:
            now = self._now()
            only = retried.pop() if retried else None
            remaining = [other for other in left_out if other != only]
            try:
                changed, after_id = transactions.run(
                    self._storage, domain_changes.update_name_servers, renewal, after_id, 1 if alone else pools.PAGE,
                    remaining, now, now + pools.CLAIM, self._journal, only)
            except (Refused, UnreadableSecret) as error:
                if only is None and alone:
                    left_out, after_id = transactions.run(self._storage, domain_changes.leave_out, renewal, after_id,
                                                          left_out, now, now + pools.CLAIM)
                    LOG.error('the zone with the id %s does not get the new name servers of its pool yet: %s',
                              left_out[-1], error)
                elif only is None:
                    alone = pools.PAGE
                continue
            left_out, alone = remaining, max(0, alone - 1)
            for domain in changed:
                self._events.zone(events.UPDATE, renewal.context.actor, domain)
            self._casts.put(renewal.context, changed)

    def delete_from_former_pools(self) -> None:
        """Delete domains from pools that they were moved from and that have kept them long enough."""
        was_one = True
        while was_one:
            was_one, leftover = transactions.run(self._storage, zone_moves.delete_next_from_former_pool, self._now(),
                                                 new_id())
            self.delete_leftover(leftover)

    def delete_leftover(self, leftover: Domain | None) -> None:
        """Have the servers of a pool delete their copy of a domain that was moved."""
        if leftover is not None:
            LOG.info('%s was moved to another pool and is deleted from the servers of %s', leftover.name,
                     leftover.pool_name)
            self._casts.put(dataclasses.replace(WHO, request_id=leftover.request_id), [leftover])


class FrozenPools:
    """Freezes pools and unfreezes them, continues staged releases, sends the events, and casts what has waited."""

    def __init__(self, storage: Storage, casts: CastQueue, event_sender: events.EventSender,
                 to: Journal) -> None:
        self._to = to
        self._storage = storage
        self._run = functools.partial(transactions.run, storage)
        self._casts = casts
        self._events = event_sender

    def freeze(self, context: Context, pool_id: str, reason: str, until: str | None = None) -> Pool:
        """Have changes of a pool's domains wait, so that its servers get nothing new.

        :param until: see :func:`designate_pool.central.validation.fields.end_at`; None for no end
        """
        now = self._storage.now()
        freeze = Freeze(new_id(), fields.text('reason', reason, 255), now,
                        None if until is None else fields.end_at('until', until, now), context.user)
        pool = self._run(pools.freeze, fields.pool_id(pool_id), freeze, now)
        LOG.warning('the pool %s is frozen by %s until %s: %s', pool.name, context.user or 'nobody named',
                    freeze.until or 'it is unfrozen', reason)
        return self._events.value(events.FREEZE, context, pool)

    def unfreeze(self, context: Context, pool_id: str, only_due: bool = False) -> Pool:
        """End the freeze of a pool, and cast its domains whose changes waited, in the order of these."""
        pool, waiting = self._run(pools.unfreeze, fields.pool_id(pool_id), self._storage.now(), only_due)
        if waiting is not None:
            LOG.warning('the pool %s is not frozen any more; zones whose changes go out: %d', pool.name, len(waiting))
            self._events.value(events.UNFREEZE, context, pool)
        for part in chunks(waiting or ()):
            present = self._storage.read(domains.get_many, part)
            self._casts.put(context, [present[key] for key in part if key in present])
        return pool

    def end_over(self) -> None:
        """End the freezes whose time is over."""
        now = self._storage.now()
        for pool_id, freeze in self._storage.read(pool_store.frozen).items():
            if freeze.is_over(now):
                self.unfreeze(Context(user='central', all_projects=True), pool_id, only_due=True)

    def release(self, context: Context, domain_id: str, reason: str) -> Domain:
        """Let servers have the changes of a domain of a frozen pool that wait."""
        domain = self._run(domain_changes.release_domain, context, fields.domain_id(domain_id),
                           fields.text('reason', reason, 255), self._storage.now())
        LOG.warning('the changes of %s do not wait for the end of the freeze any more, by %s: %s', domain.name,
                    context.user or 'nobody named', reason)
        return self._moved(context, events.UNFREEZE, domain, changed=False)

    def continue_release(self, context: Context, domain_id: str) -> Domain:
        """Have a staged release go on with its next stage; with the first, where it has failed."""
        return self._moved(context, events.UPDATE, self._run(
            domain_changes.continue_release, context, fields.domain_id(domain_id), self._storage.now(), self._to))

    def _moved(self, context: Context, event: str, domain: Domain, changed: bool = True) -> Domain:
        self._events.zone(event, context.actor, domain, changed)
        self._casts.put(context, [domain])
        return domain


class Purger:
    """Purges, each *interval* seconds, what was deleted long ago.

    :param others: what is done as often, such as what other Centrals began
    :param soon: what does not wait so long
    """

    def __init__(self, storage: Storage, settings: CentralSettings,
                 others: Sequence[Callable[[], None]] = (), interval: float = INTERVAL,
                 soon: Sequence[Callable[[], None]] = ()) -> None:
        self._storage = storage
        self._settings = settings
        self._others = others
        self._interval = interval
        self._soon = soon
        self._next_id = ''
        self._stopping = threading.Event()

    def loop(self) -> None:
        """Run every few minutes, until :meth:`stop`."""
        pause, waited = min(self._interval, SOON), 0.0
        while not self._stopping.wait(pause):
            waited += pause
            is_due = waited >= self._interval
            for work in (*self._soon, *((self.purge, *self._others) if is_due else ())):
                try:
                    work()
                except Exception as error:  # the loop, and what else there is to do, goes on whatever the database does
                    logs.failure(LOG, error, 'housekeeping failed; tried again in %g s', self._interval)
            waited = 0.0 if is_due else waited

    def purge(self) -> int:
        """Remove some batches, from where the last run ended; how many rows were removed."""
        now = self._storage.now()
        before = now - timedelta(seconds=self._settings.deleted_retention)
        self._storage.run(plans.drop_expired, now)
        removed = self._storage.run(plans.expire, min(before, now - PLANS_KEPT), BATCH)
        removed += self._storage.run(heartbeats.forget, now - SERVICES_KEPT)
        removed += self._storage.run(zone_signing.expire_keys, now - KEYS_KEPT, BATCH)
        removed += self._storage.run(quotas.expire_recent_deletes, now - DELETES_COUNTED, BATCH)
        removed += self._storage.run(zone_tasks.expire, now - timedelta(seconds=self._settings.task_retention),
                                     now - ARRIVING, BATCH)
        # Not what servers of frozen pools have.
        frozen = self._storage.read(pool_store.frozen).values()
        history = max([timedelta(days=self._settings.history_days), *(
            now - freeze.since + ARRIVING for freeze in frozen)])
        for _ in range(MAX_BATCHES):
            stale = self._storage.run(versions.expire, now - history, BATCH)
            removed += stale
            if stale < BATCH or self._stopping.is_set():
                break
        for _ in range(MAX_BATCHES):
            batch = self._storage.run(purge.purge, before, BATCH, self._next_id, now - history)
            removed += batch.removed
            self._next_id = batch.next_id
            if not batch.next_id or self._stopping.is_set():
                break
        return removed

    def stop(self) -> None:
        """End the loop."""
        self._stopping.set()
