"""Comparing what a server has with what it should have, and repairing the differences, when an operator asks."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import logging
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from designate_pool.deadline import Deadline
from designate_pool.errors import NotFound, WrongServerState
from designate_pool.model import Action, AuditFinding, AuditKind, Comparison, Context, Domain, Listing, new_id
from designate_pool.pool_manager.dispatch import zone_compare
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.dispatch.zone_compare import Match
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.reconciler import WHO
from designate_pool.pool_manager.verify import server_zones
from designate_pool.protocol.axfr_inbound import Pace
from designate_pool.serial import newer
from designate_pool.storage.operations import pool_servers as server_store
from designate_pool.storage.reporting import audit_findings
from designate_pool.storage.zones import domains as domain_store

LOG = logging.getLogger(__name__)

#: Instead of the name of a zone that the requester may not see, and of what is wrong with it.
HIDDEN = '(hidden)'
#: Domains whose repair is begun in one step, for which other steps wait.
BATCH = 100
#: Zones of one server that are compared at the same time; two copies of each are in memory.
THREADS = 8
#: Findings about one server that are noted at a time.
MAX_NOTED = 1000


class ServerCompare:
    """Compares the servers of *manager*'s pool, contents for *seconds*, since the caller waits for the result."""

    def __init__(self, manager: Manager, runtime: Any, seconds: float = 540.0) -> None:
        self._manager = manager
        self._runtime = runtime
        self._seconds = seconds

    def compare(self, server_id: str, fix: bool, delete_extra: int | None, contents: bool = False,
                context: Context = WHO, primary: bool = False) -> Comparison:
        """See :meth:`designate_pool.rpc.pool_manager.PoolManagerClient.compare_server`."""
        worker, began = self._manager.all_workers.get(server_id), self._manager.storage.now()
        if worker is None:
            for server in self._manager.members.servers:
                if server.id == server_id:
                    raise WrongServerState(server=server.label, state=server.state, why='its section is not in the '
                                           'configuration of the pool manager that was asked')
            raise NotFound(what=f'server {server_id}', type='server_not_found')
        domains = {domain.name: domain for domain in server_zones.domains(
            self._manager, stage=self._manager.pool.stages[server_id])}
        listing = worker.backend.list_zones(list(dict.fromkeys([*domains, *server_zones.deleted_names(self._manager)])))
        if not listing.result.ok:
            raise WrongServerState(server=worker.server.label, state='silent', why=listing.result.error,
                                   type='server_silent')
        comparison = self._differences(worker, self._reread_ahead(worker, domains, listing), listing)
        if contents:
            wrong = {*comparison.missing, *(name for name, _, _ in comparison.behind)}
            present = [domain for name, domain in sorted(domains.items()) if name not in wrong]
            comparison = self._compare_contents(worker, present, comparison)
        if primary:
            comparison = dataclasses.replace(comparison, primary=self._primary_zones(worker))
        if delete_extra is not None:
            comparison = dataclasses.replace(comparison, deleted=self._delete(worker, comparison.extra, delete_extra))
        if fix and (comparison.missing or comparison.behind or comparison.other):
            if server_id not in self._manager.workers:
                raise WrongServerState(server=worker.server.label, state='at rest', why='nothing is sent to it now')
            missing = {domains[name].id for name in comparison.missing}
            behind = {domains[name].id for name, _, _ in comparison.behind}
            other = {domains[name].id: (domains[name].serial, why) for name, why in comparison.other or ()}
            comparison = dataclasses.replace(comparison, mending=self._repair(worker, missing, behind, other))
        self._note(worker, domains, comparison, began, fix)
        return comparison if context.all_projects else _without_names(
            comparison, {name for name, domain in domains.items() if context.sees(domain.project_id)})

    def _note(self, worker: ServerWorker, domains: Mapping[str, Domain], comparison: Comparison, now: datetime,
              fix: bool) -> None:
        """Have the explanations of zones say what is wrong, unless it is being repaired."""
        serials, contents = AuditKind.SERIALS, AuditKind.CONTENTS
        wrong = [*((serials, name, 'the server does not have the zone') for name in comparison.missing),
                 *((serials, name, f'the server serves serial {serial or "none"}, not {expected}')
                   for name, serial, expected in comparison.behind),
                 *((contents, name, why) for name, why in comparison.other or ())]
        self._manager.storage.run(
            audit_findings.replace_unrepaired, worker.server.id,
            [serials] if comparison.other is None else [serials, contents],
            [AuditFinding(new_id(), now, domains[name].pool_id, kind, domains[name].id, name, worker.server.id,
                          worker.server.label, what, audit_findings.UNREPAIRED)
             for kind, name, what in wrong[:0 if fix else MAX_NOTED]])

    def _reread_ahead(self, worker: ServerWorker, wanted: dict[str, Domain], listing: Listing) -> dict[str, Domain]:
        """*wanted*, but those that the server has at a newer serial are read again: they may have changed meanwhile."""
        if not worker.backend.capabilities.keeps_serial:
            return wanted
        ahead = [name for name, domain in wanted.items()
                 if (serial := listing.serials.get(name)) is not None and newer(serial, domain.serial)]
        domains = self._manager.storage.read(domain_store.live_by_name, ahead) if ahead else {}
        stage = self._manager.pool.stages[worker.server.id]
        return {**wanted, **{name: permitted for name, domain in domains.items() if domain.id == wanted[name].id
                             and (permitted := domain.permitted_at(stage)) is not None}}

    def _differences(self, worker: ServerWorker, wanted: dict[str, Domain], listing: Listing) -> Comparison:
        missing, behind = [], []
        for name, domain in wanted.items():
            if name not in listing.serials:
                missing.append(name)
            elif worker.backend.capabilities.keeps_serial and (
                    (serial := listing.serials[name]) is None or serial != domain.serial):
                behind.append((name, serial, domain.serial))
        extra = None
        if listing.complete or not worker.backend.capabilities.fed_by_records:
            extra = tuple(server_zones.unexplained(self._manager, worker.server.id, set(listing.serials) - set(wanted)))
        return Comparison(worker.server.id, len(wanted), tuple(sorted(missing)), tuple(sorted(behind)), extra,
                          extra_complete=listing.complete)

    def _primary_zones(self, worker: ServerWorker) -> tuple[str, ...]:
        listing = worker.backend.list_primary_zones()
        if not listing.result.ok:
            raise WrongServerState(server=worker.server.label, state='unable to list its zones',
                                   why=listing.result.error)
        return tuple(server_zones.unexplained(self._manager, worker.server.id, listing.serials))

    def _compare_contents(self, worker: ServerWorker, domains: Sequence[Domain], found: Comparison) -> Comparison:
        """*found* with the contents of *domains* compared; raises WrongServerState for a server fed by records."""
        if worker.backend.capabilities.fed_by_records:
            raise WrongServerState(server=worker.server.label, state='fed by records',
                                   why='its contents are compared by the plans that are made for it')
        other, unchecked = [], []
        for name, match, why in sorted(self._match_all(worker, domains), key=operator.itemgetter(0)):
            if match is Match.OTHER:
                other.append((name, why))
            elif match is not Match.SAME:
                unchecked.append((name, why))
        return dataclasses.replace(found, other=tuple(other), unchecked=tuple(unchecked))

    def _match_all(self, worker: ServerWorker, domains: Sequence[Domain]) -> list[tuple[str, Match, str]]:
        """(name, match, why) of each domain, compared by several threads."""
        deadline = Deadline(self._seconds)
        pace = Pace(self._manager.settings.contents_audit_rate, deadline.left)
        remaining = iter(domains)  # threads can share the iterator of a sequence

        def work() -> list[tuple[str, Match, str]]:
            return [(domain.name, *self._match(worker, domain, deadline, pace)) for domain in remaining]

        threads = self._runtime.workers(THREADS, name='compare')
        try:
            futures = [threads.submit(work) for _ in range(THREADS)]
            return [comparison for future in futures for comparison in future.result()]
        finally:
            collections.deque(remaining, maxlen=0)  # if one has failed, the others end
            threads.stop()

    def _match(self, worker: ServerWorker, domain: Domain, deadline: Deadline, pace: Pace) -> tuple[Match, str]:
        try:
            deadline.left()
        except TimeoutError:
            return Match.UNKNOWN, f'{self._seconds:g} s were over'
        comparison = zone_compare.compare_domain(self._manager.storage, worker.server, domain, pace)
        if comparison is None:
            return Match.SAME, ''  # it was deleted meanwhile
        return comparison.match, comparison.why

    def _delete(self, worker: ServerWorker, extra: Sequence[str] | None, count: int) -> int:
        """Delete the *extra* zones, if they are as many as the operator has seen."""
        if extra is None:
            raise WrongServerState(server=worker.server.label, state='unable to list its zones',
                                   why='so which zones are extra is not known')
        if len(extra) != count:
            raise WrongServerState(server=worker.server.label, state='not as expected',
                                   why=f'it has {len(extra)} extra zones, not {count}; none was deleted')
        deleted, label = 0, worker.server.label
        for zone, done in server_zones.remove(
                self._manager, worker.backend, [Domain(new_id(), name, '', '', '', 0, 0) for name in extra],
                is_known=False,
                # One that has become a domain meanwhile is not deleted.
                excluded=lambda names: server_zones.explained(self._manager, worker.server.id, names)):
            if done is None:
                LOG.info('%s: the extra zone %s is not deleted: it is in the database by now, or another program works '
                         'on it', label, zone.name)
                continue
            said = f'is not deleted: {done.result.error}' if not done.result.ok else \
                'is deleted' if done.gone else 'is kept, since others have records in it'
            LOG.log(logging.INFO if done.result.ok else logging.WARNING, '%s: the extra zone %s %s', label, zone.name,
                    said)
            deleted += done.gone
        return deleted

    def _repair(self, worker: ServerWorker, missing: set[str], behind: set[str],
                other: Mapping[str, tuple[int, str]]) -> int:
        """Have zones created that are *missing* and fetched that are *behind* (ids of domains); how many.

        :param other: of those to transfer again, by id: at which serial their contents differ, and why
        """
        manager, server_id = self._manager, worker.server.id
        if missing and worker.backend.capabilities.reads_catalog:
            # The server creates zones again only if they are new members of its catalog.
            manager.storage.run(server_store.raise_epoch, server_id, manager.storage.now())
        count, ids = 0, iter(sorted({*missing, *behind, *other}))
        while batch := list(itertools.islice(ids, BATCH)):
            with manager.reconciler.step(batch, [server_id]) as step:
                for domain_id, state in step.states.items():
                    domain = state.on(server_id, is_lost=domain_id in missing)
                    row = state.rows.get((server_id, Action.UPDATE))
                    if domain is None:
                        continue
                    if domain_id in missing:
                        state.change(*row_transitions.provision(domain, state.rows, server_id, step.now, gone=True))
                    elif domain_id in behind:
                        state.change(*row_transitions.refetch(domain, state.rows, server_id, step.now))
                    # What was found says nothing about a zone that has changed since it was listed.
                    elif row is not None and not domain.is_going and domain.serial == other[domain_id][0]:
                        state.change(row_transitions.diverge(row, other[domain_id][1], step.now))
            count += sum(bool(state.changed) for state in step.states.values())
        return count


def _without_names(found: Comparison, visible: Collection[str]) -> Comparison:
    """*found*, naming only zones that are *visible*; the others are still counted."""
    def shown(name: str) -> str:
        return name if name in visible else HIDDEN

    def reasons(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        return tuple((name, why) if name in visible else (HIDDEN, HIDDEN) for name, why in pairs)

    return dataclasses.replace(
        found, missing=tuple(map(shown, found.missing)),
        behind=tuple((shown(name), serves, expected) for name, serves, expected in found.behind),
        extra=None if found.extra is None else tuple(map(shown, found.extra)),
        other=None if found.other is None else reasons(found.other), unchecked=reasons(found.unchecked),
        primary=None if found.primary is None else tuple(map(shown, found.primary)))
