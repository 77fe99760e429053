"""Staged releases: whether the servers of a stage serve a zone as they should, so that the next stage may get it.

What is decided here from the rows is :func:`stage_outcome`; then the servers are asked, and Central moves the release.
All of it is repeated until Central has moved it, by whichever pool manager: a report of a former stage is void there.
"""

from __future__ import annotations

import concurrent.futures
import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import dns.exception
import dns.message
import dns.name
import dns.rcode

from designate_pool import consensus, metrics
from designate_pool.backends.base import tcp_peer
from designate_pool.errors import PoolError, ServiceUnavailable
from designate_pool.model import Action, Domain, Outcome, Report
from designate_pool.pool_manager.dispatch.server_worker import ServerWorker
from designate_pool.pool_manager.dispatch.zone_compare import Match, compare_domain
from designate_pool.pool_manager.manager import Manager
from designate_pool.pool_manager.reconcile import row_transitions
from designate_pool.pool_manager.reconcile.domain_state import DomainState
from designate_pool.pool_manager.reconcile.reconciler import WHO
from designate_pool.protocol.axfr_inbound import Pace
from designate_pool.storage.sql.entities import chunks
from designate_pool.storage.zones import domains as domain_store

LOG = logging.getLogger(__name__)
#: Seconds between two looks, and between two in a pool without stages, which may have had some before; and until it
#: is noticed that such a pool has got some.
INTERVAL, WITHOUT_STAGES, NOTICED = 1.0, 60.0, 5.0
#: Zones that are verified at the same time: a server that does not answer holds up no other zone.
WORKERS = 16


def stage_outcome(state: DomainState, servers: Collection[str], labels: Mapping[str, str], bake: timedelta,
                  now: datetime) -> tuple[Outcome | None, str]:
    """Whether *servers*, of the stages up to that of the release, have the zone, as their rows say, and for how long.

    :param servers: those in service; without any the release waits
    :param labels: of the servers, by id
    :returns: None while some have not got it, or not for the time *bake*; ERROR with what has failed
    """
    domain, rows = state.domain, consensus.by_server(state.rows.values())
    done_at: list[datetime] = []
    for server in servers:
        own = rows.get(server, {})
        row = own.get(Action.DELETE if domain.is_going else Action.UPDATE)
        failed = next((other for other in own.values() if other.expected_serial == domain.serial and (
            other.status is Outcome.ERROR and not row_transitions.is_of_former_try(other, domain) or other.diverged)),
            None)
        if failed is not None:
            return Outcome.ERROR, f'{labels[server]}: {failed.last_error}'
        moment = None if row is None else row.updated_at if domain.is_going else row.seen_at
        if moment is None or not consensus.is_current(domain, own):
            return None, ''
        done_at.append(moment)
    return (Outcome.SUCCESS if done_at and max(done_at) + bake <= now else None), ''


class Releases:
    """Finds the releases of a pool that can go on, or have failed."""

    def __init__(self, manager: Manager, runtime: Any) -> None:
        self._manager = manager
        self._threads = runtime.workers(WORKERS, name='releases')
        self._rests_until = 0.0  # monotonic; in a pool without stages, until it has some
        # By domain id, with serial and stage, and how often something was wrong.
        self._verified: dict[str, tuple[tuple[int, int], concurrent.futures.Future[str | None] | None, int]] = {}

    def close(self) -> None:
        """End the workers; after the loop of :meth:`run` has ended."""
        self._threads.stop()

    def run(self) -> float:
        """Report what has come through its stage, or has failed; seconds until the next time."""
        manager, counts = self._manager, {'held': 0, 'running': 0}
        if manager.pool.release_stages:
            self._rests_until = 0.0
        elif time.monotonic() < self._rests_until:
            return NOTICED
        ids = dict.fromkeys(manager.storage.read(domain_store.released, manager.pool.name))
        self._verified = {key: value for key, value in self._verified.items() if key in ids}
        for part in chunks(ids):
            now, reports = manager.storage.now(), list[Report]()
            for state in manager.reconciler.read(part, now).values():
                release = state.domain.release
                if release is not None:
                    counts['held' if release.held else 'running'] += 1
                    if not release.held and state.domain.freeze is None:
                        reports.extend(self._reports(state, release.stage, now))
            if reports:
                manager.central.update_statuses(WHO, reports)
                manager.queue_changes([report.domain_id for report in reports])
        for name, count in counts.items():
            metrics.RELEASES.labels(manager.pool.name, name).set(count)
        if not counts['running'] and not manager.pool.release_stages:
            self._rests_until = time.monotonic() + WITHOUT_STAGES
        return INTERVAL

    def _reports(self, state: DomainState, stage: int, now: datetime) -> Iterator[Report]:
        manager, domain = self._manager, state.domain
        if domain.pool_release is None:  # there are no stages any more
            yield Report(domain.id, domain.action, domain.generation, Outcome.SUCCESS, domain.serial, domain.pool_name,
                         stage)
            return
        counting = [server for server in manager.members.counting if not state.is_later(server)]
        outcome, why = stage_outcome(state, counting, {server.id: server.label for server in manager.members.servers},
                                     timedelta(seconds=manager.settings.release_bake), now)
        if outcome is Outcome.SUCCESS and not domain.is_going:
            fault = self._verify(state, [worker for server in counting if manager.pool.stages.get(server) == stage
                                         and (worker := manager.workers.get(server)) is not None], stage)
            outcome, why = None if fault is None else Outcome.ERROR if fault else outcome, fault or ''
        if outcome is Outcome.ERROR:
            LOG.error('the release of %s at serial %d is held at stage %d: %s', domain.name, domain.serial, stage, why)
        if outcome is not None:
            yield Report(domain.id, domain.action, domain.generation, outcome, domain.serial, domain.pool_name, stage,
                         why)

    def _verify(self, state: DomainState, workers: Sequence[ServerWorker], stage: int) -> str | None:
        """What is wrong with the zone on the servers of a stage, where those of earlier ones have been asked; '' for
        nothing, None while that is not known.

        They are asked again as often as for a serial: NSD closes connections when it reloads any zone.
        """
        domain, of = state.domain, (state.domain.serial, stage)
        # Without its place, an exception of the future would be that of all later runs.
        begun_for, future, faults = self._verified.pop(domain.id, (of, None, 0))
        if begun_for != of or future is None:
            future = self._threads.submit(lambda: next(filter(
                lambda fault: fault != '', (self._fault(worker, domain) for worker in workers)), ''))
            faults = faults if begun_for == of else 0
        fault = future.result() if future.done() else None
        if fault and faults < self._manager.settings.tries.max_retries:
            self._verified[domain.id] = of, None, faults + 1
        elif not future.done():
            self._verified[domain.id] = of, future, faults
        else:
            return fault
        return None

    def _fault(self, worker: ServerWorker, domain: Domain) -> str | None:
        """What is wrong with the zone on a server; '' for nothing, None where it has gone on meanwhile."""
        server = worker.server
        if not worker.backend.capabilities.keeps_serial:
            return ''  # what it was fed has been read back
        try:
            peer = tcp_peer(server)
            for text in ('@ SOA', *self._manager.settings.release_queries):
                name, rtype = text.split()
                owner = domain.name if name == '@' else f'{name}.{domain.name}'
                try:
                    query = dns.message.make_query(owner, rtype, flags=0)
                except dns.name.NameTooLong:
                    continue  # a zone with a long name has no such name
                rcode = peer.ask(query, server.call_timeout).rcode()
                if rcode not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
                    return f'{server.label} answers {owner} {rtype} with {dns.rcode.to_text(rcode)}'
            if worker.backend.capabilities.fed_by_records:
                return ''
            comparison = compare_domain(self._manager.storage, server, domain, Pace(0))
        except ServiceUnavailable:  # of the database, which says nothing of the server
            return None
        except (PoolError, OSError, ValueError, dns.exception.DNSException) as error:
            return f'{server.label} does not answer for {domain.name}: {error}'
        if comparison is None or comparison.match is Match.ELSEWHERE:
            return None
        return '' if comparison.match is Match.SAME else f'{server.label}: {comparison.why}'
