"""The pool manager's story: begin what a domain needs, have the servers do it, weigh what they did, tell Central.

Nothing here is remembered that the database does not know.  A cast, a driver's result and a poll's answer are hints of
which domains to look at; each step reads the domains and their rows, decides with :mod:`due` and
:mod:`consensus`, writes all rows in one statement, and only then acts.  Whatever is waiting is taken as one batch.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import random
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from time import monotonic
from typing import Any

from designate_pool import logs
from designate_pool.backends.base import Backend
from designate_pool.errors import PoolError
from designate_pool.model import (Action, Answer, CallResult, Context, Domain, Outcome, PollRequest, PollResult, Pool,
                                  PoolServer, Report, Server, ServerState, ServerStatus, Status, utcnow)
from designate_pool.pool_manager import operation_log
from designate_pool.pool_manager.dispatch.circuit_breaker import CircuitBreaker
from designate_pool.pool_manager.dispatch.record_sync import RecordSync
from designate_pool.pool_manager.dispatch.results import OutcomeQueue, domain_of, is_success, server_of
from designate_pool.pool_manager.dispatch.server_worker import CallOutcome, ServerWorker
from designate_pool.pool_manager.dispatch.work_queue import Operation, is_current
from designate_pool.pool_manager.periodic.due_timer import DueTimer
from designate_pool.pool_manager.reconcile import domain_state, row_transitions, verdicts
from designate_pool.pool_manager.reconcile.domain_state import Decision, DomainState
from designate_pool.pool_manager.reconcile.membership import Members
from designate_pool.pool_manager.settings import ManagerSettings
from designate_pool.rpc.central import CentralClient
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.serial import at_least, newer
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.serving import catalog
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import domains as domain_store

LOG = logging.getLogger(__name__)

#: The pool manager acts for nobody in particular.
NOBODY = Context(request_id='pool-manager', all_projects=True)
#: Stands for the catalog zone where a poll names a domain.
CATALOG = 'catalog'
#: Seconds, about, until a server is looked at again that is at work on the same name.
BUSY_SECONDS = 1.0
#: Servers that read a catalog have so many retry intervals to find a zone in it and fetch it by themselves.
CATALOG_PATIENCE = 5


class Manager:
    """One pool's servers, kept in step with the database.

    Until :meth:`seat` says otherwise every server of *pool* is active.

    :param pool: with its servers and threshold
    :param backends: a driver for each server, by server id
    :ivar members: which servers count and which are sent to
    :ivar lanes: of the servers that are sent to, by server id
    :ivar all_lanes: of all that the configuration has
    :ivar also_notifies: where a NOTIFY of each change goes, besides the servers
    :ivar feeder: for servers that are fed by records
    """

    def __init__(self, pool: Pool, backends: Mapping[str, Backend], storage: Storage, central: CentralClient,
                 minidns: MiniDnsClient, runtime: Any, settings: ManagerSettings) -> None:
        self.pool = pool
        self.settings = settings
        self.storage = storage
        self._runtime = runtime
        self._central = central
        self.minidns = minidns
        self._casts = runtime.batches(self._begin, settings.batch_size, name='casts')
        self._outcomes = OutcomeQueue(runtime, self._settle, settings.batch_size)
        self._open = runtime.batches(self._weigh_again, settings.batch_size, name='open')
        self._reports = runtime.batches(self._report, settings.batch_size, name='reports')
        self._outrun = runtime.batches(self._have_issued, settings.batch_size, name='outrun')
        self._central_is_silent = False
        # From reading rows to writing them: whoever else is here would overtake, and have it done again.
        self.deciding = threading.RLock()
        self._alarms = DueTimer()
        self.feeder = RecordSync(storage, pool, settings)
        self.also_notifies: tuple[str, ...] = ()
        self.all_lanes: dict[str, ServerWorker] = {}
        self.lanes: dict[str, ServerWorker] = {}
        self.seat(Members.of(PoolServer(each.id, pool.id, each.label, each.driver, ServerState.ACTIVE)
                             for each in pool.servers),
                  {each.id: self.new_lane(each, backends[each.id]) for each in pool.servers})

    def new_lane(self, server: Server, backend: Backend) -> ServerWorker:
        return ServerWorker(server, backend, self._circuit(), self._circuit(), 2 * self.settings.batch_size,
                            self._runtime,
                            self.feeder.feed, self.feeder.mend, lambda called: self._outcomes.put(*called), utcnow,
                            self._renew_claims)

    def seat(self, members: Members, lanes: Mapping[str, ServerWorker]) -> None:
        """From now on these are the servers."""
        with self.deciding:
            self.members = members
            self.all_lanes = dict(lanes)
            self.lanes = {key: lane for key, lane in lanes.items() if key in members.working}

    def change(self, domain_ids: Iterable[str]) -> None:
        """Something may be due for these domains."""
        self._casts.put(*domain_ids)

    def heard(self, results: Iterable[PollResult]) -> None:
        """MiniDNS has heard from servers."""
        self._outcomes.put(*self.relevant(results))

    def relevant(self, results: Iterable[PollResult]) -> list[PollResult]:
        """Those of *results* that say something here.

        What a server says that counts serials of its own means nothing; neither does what one said at another address
        or with another driver: that may be another machine.
        """
        return [result for result in results if (lane := self.lanes.get(result.server_id)) is not None
                and lane.backend.capabilities.keeps_serial and result.label in (None, lane.server.label)]

    def stop(self) -> None:
        """Finish what is under way and give back what was only taken."""
        self._casts.stop()
        for lane in self.all_lanes.values():
            lane.stop()
        for queue in (self._outcomes, self._open, self._reports, self._outrun):
            queue.stop()
        try:
            self.storage.run(server_statuses.release, self.settings.name, list(self.all_lanes))
        except Exception as error:  # without its database a program is to end in good order all the same
            LOG.warning('claims could not be given back; other pool managers take them over after %g s: %s',
                        self.settings.claim_seconds, error)

    def _begin(self, domain_ids: Sequence[str]) -> None:
        now = utcnow()
        self._outcomes.begun(domain_ids)
        fed = [key for key, lane in self.all_lanes.items() if lane.backend.capabilities.fed_by_records]
        with self.deciding:
            found = self.situations(domain_ids)
            for situation in found.values():
                situation.change(*row_transitions.begin(situation.domain, situation.rows, self.members.holding, now,
                                                        fed))
            self._supersede(found.values(), now)
            orders = self.write(found.values(), now)
        self.carry_out(orders)
        self._also_notify(situation.domain for situation in found.values() if situation.changed)
        self.weigh(found.values())
        if orders.overtaken:
            self._casts.put(*found)

    def _settle(self, outcomes: Sequence[CallOutcome | PollResult]) -> None:
        now = utcnow()
        awake = {server for outcome in outcomes if (server := self._mind_circuit(outcome))}
        with self.deciding:
            found = self.situations([domain_of(outcome) for outcome in outcomes])
            for outcome in outcomes:
                situation = found.get(domain_of(outcome))
                if situation is not None and isinstance(outcome, CallOutcome) and self._is_of_former(outcome):
                    _let_go(situation, outcome)
                    continue
                # What failed on a server that has just come back is due again already; one that rests cannot fail.
                forgiven = server_of(outcome) in awake or server_of(outcome) not in self.lanes
                if situation is None or (forgiven and not is_success(outcome)):
                    continue
                if isinstance(outcome, CallOutcome):
                    self._after_call(situation, outcome, now)
                elif not situation.domain.is_going:
                    self._after_poll(situation, outcome, now)
            self._revive(found, outcomes, now)
            self._supersede([each for each in found.values() if each.deletes_anew], now)
            orders = self.write(found.values(), now)
        self._outcomes.begun(key for key, situation in found.items() if is_current(situation.domain, now))
        self.carry_out(orders)
        self.weigh(found.values())
        self._outrun.put(*((key, each.ahead) for key, each in found.items() if each.ahead is not None))
        if orders.overtaken:
            # A success heard twice is one; a failure that is not heard is due again when its round must be over.
            self._outcomes.put(*(outcome for outcome in outcomes if is_success(outcome)))

    def situations(self, domain_ids: Iterable[str], server_ids: Collection[str] = ()) -> dict[str, DomainState]:
        """How these domains stand now, on all servers unless some are named; unknown ones are left out."""
        now = utcnow()
        return domain_state.read(self.storage, self.pool.name, list(domain_ids), server_ids,
                                 lambda row: row_transitions.is_in_hand(row, now) and self._is_call(row))

    def write(self, changed: Iterable[DomainState], now: datetime, claimed: Sequence[Operation] = ()) -> Decision:
        """Write what has changed; what is to be done then, for :meth:`carry_out`.

        :param claimed: work whose rows were claimed and written before
        """
        orders = Decision()
        standing = {situation.domain.id: situation for situation in changed}
        for work in claimed:
            standing[work.domain.id].let_go(work.row.server_id, work.row.action)
        for work in claimed:
            situation = standing[work.domain.id]
            if not self.all_lanes[work.row.server_id].takes(work.row):
                self._order(orders, situation, work.row, 0.0, now)
            elif situation.is_busy(work.row.server_id):
                orders.writes.append(self._wait(work.row, now))
            else:
                situation.hold(work.row)
                orders.calls.append(work)
        for situation in standing.values():
            for row in situation.changed.values():
                if row_transitions.is_due(row, now) and row.server_id in self.lanes:
                    delay = self._fetching_time(row.server_id) if row.server_id in situation.fetching else 0.0
                    # As it was read: being taken in hand counts as its one change.
                    read = dataclasses.replace(row, version=row.version - 1)
                    self._order(orders, situation, read, delay, now)
                else:
                    orders.writes.append(row)
        if orders.writes:
            orders.overtaken = self.storage.run(server_statuses.write, orders.writes, now)
            self._alarms.set((row.next_attempt_at for row in orders.writes), now)
            operation_log.written(orders.writes, standing, self.all_lanes)
        return orders

    def until_next(self, now: datetime, most: float) -> float:
        """Seconds until something that was written here is due, *most* at most."""
        return self._alarms.until_next(now, most)

    def carry_out(self, orders: Decision) -> None:
        """Hand what is due to the servers' lanes and to MiniDNS."""
        self._yield_to_others(orders)
        if orders.polls:
            self.poll(orders.polls, self.settings.tries)
        readers = [work for work in orders.calls if self._reads_catalog(work.row.server_id)]
        self._hand_out(work for work in orders.calls if not self._reads_catalog(work.row.server_id))
        # Last, since it may have to wait: what another server has to do does not wait with it.
        if readers:
            self._announce(readers)
            self._hand_out(readers)

    def weigh(self, changed: Iterable[DomainState]) -> None:
        """Tell Central what the pool agrees on, where it does not know yet; forget deletions that are complete.

        A server that was not weighed keeps its rows: it drains by them, or has just joined elsewhere.
        """
        members = self.members
        weighed = verdicts.weigh(changed, members.counting, self.pool.threshold_percentage, members.resting)
        self._reports.put(*weighed.reports)
        self._open.put(*weighed.open)
        if weighed.finished:
            self.storage.run(server_statuses.purge_domains, weighed.finished, members.holding)

    def _supersede(self, found: Iterable[DomainState], now: datetime) -> None:
        """Leave the zones to newer domains of their names that are to be deleted for older ones."""
        for situation, generation in self.reborn(found):
            situation.change(*(row_transitions.supersede(row, generation) for row in situation.rows.values()
                               if row.action is Action.DELETE and row.status is not Outcome.SUCCESS
                               and not row_transitions.is_in_hand(row, now)))

    def reborn(self, found: Iterable[DomainState]) -> list[tuple[DomainState, int]]:
        """Of domains that are to be deleted those whose name lives again, with the newer generation.

        Their zones must not be deleted: the newer domain's contents take their place.
        """
        going = [each for each in found if each.domain.is_going]
        living = self._living(each.domain.name for each in going)
        return [(each, newer.generation) for each in going if (newer := living.get(each.domain.name)) is not None
                and newer.generation > each.domain.generation]

    def poll(self, requests: Sequence[PollRequest], tries: row_transitions.Tries) -> None:
        """Have MiniDNS notify and poll; a broker that is down is no error here, the rows come due again."""
        try:
            self.minidns.notify_and_poll(NOBODY, self.pool.name, requests, tries.timeout, tries.retry_interval,
                                         tries.max_retries)
        except PoolError as error:
            LOG.warning('%d polls were not sent; they are sent again later: %s', len(requests), error)

    def wake(self, server_id: str) -> None:
        """The server answers again: all that waits for it is due now."""
        woken = self.storage.run(server_statuses.wake, server_id, utcnow())
        label = self.all_lanes[server_id].server.label
        logs.transition(LOG, logging.INFO, '%s answers again; %d operations are due', label, woken, server=label)

    def queues(self) -> dict[str, int]:
        """How much waits in each queue."""
        return {'casts': len(self._casts), 'outcomes': len(self._outcomes), 'reports': len(self._reports),
                'calls': sum(lane.waiting for lane in list(self.all_lanes.values()))}

    def keep_claims(self) -> float:
        """Renew the claims of what waits in the lanes or is under way there; seconds until the next time."""
        before = utcnow() + timedelta(seconds=self.settings.claim_seconds * 2 / 3)
        for lane in list(self.all_lanes.values()):
            lane.keep_claims(before)
        return self.settings.claim_seconds / 6

    def _renew_claims(self, rows: Sequence[ServerStatus]) -> Sequence[ServerStatus]:
        now = utcnow()
        until = now + timedelta(seconds=self.settings.claim_seconds)
        return self.storage.run(server_statuses.renew_claims, rows, self.settings.name, now, until)

    def _is_call(self, row: ServerStatus) -> bool:
        """Whether what is due for *row* is a driver's call, not a poll."""
        lane = self.all_lanes.get(row.server_id)
        return row.action is not Action.UPDATE or lane is not None and lane.takes(row)

    def _yield_to_others(self, orders: Decision) -> None:
        """Give back what somebody else has claimed the same name on the same server for.

        Both have written their claims before either looks, so of two who claim at once at least one sees the other; a
        claim stays until its call has ended.  What was not claimed after all, or whose domain was deleted meanwhile,
        is let be.
        """
        if not orders.calls:
            return
        now = utcnow()
        claimed: dict[tuple[str, str], list[server_statuses.Claimed]] = collections.defaultdict(list)
        for each in self.storage.read(server_statuses.claimed_on_names, [work.domain.name for work in orders.calls],
                                      now):
            claimed[each.server_id, each.name].append(each)
        calls, orders.calls, given_back = orders.calls, [], []
        # Of several here that claim one name the first goes on.
        later = {_key_of(work.row) for work in calls}
        for work in calls:
            here = claimed[work.row.server_id, work.domain.name]
            later.remove(_key_of(work.row))
            mine = next((each for each in here if each.row is not None and _key_of(each.row) == _key_of(work.row)
                         and _is_claim_of(each.row, work.row)), None)
            if mine is None or mine.row is None:
                continue
            others = [each for each in here if each is not mine
                      and (each.row is None or self._is_call(each.row) and _key_of(each.row) not in later)]
            if mine.going and work.row.action is not Action.DELETE:
                given_back.append(row_transitions.cancel(mine.row))
            elif others:
                given_back.append(self._wait(mine.row, now))
            else:
                orders.calls.append(work)
                continue
            here.remove(mine)
        if given_back:
            self.storage.run(server_statuses.write, given_back, now)
            self._alarms.set((row.next_attempt_at for row in given_back), now)

    def _wait(self, row: ServerStatus, now: datetime) -> ServerStatus:
        return row_transitions.wait(row, now + timedelta(seconds=BUSY_SECONDS * (0.5 + random.random())))

    def _circuit(self) -> CircuitBreaker:
        return CircuitBreaker(self.settings.circuit_failures, self.settings.circuit_probe_interval, monotonic)

    def _also_notify(self, changed: Iterable[Domain]) -> None:
        """Have MiniDNS tell those who are no servers of the pool; whether they heed it, nobody asks."""
        requests = [PollRequest(domain.id, domain.name, domain.serial, where, poll=False)
                    for domain in changed if not domain.is_going for where in self.also_notifies]
        if requests:
            self.poll(requests, self.settings.tries)

    def _hand_out(self, works: Iterable[Operation]) -> None:
        for work in works:
            if (lane := self.lanes.get(work.row.server_id)) is not None:
                lane.put(work)

    def _reads_catalog(self, server_id: str) -> bool:
        """Whether the server learns its zones from the pool's catalog zone."""
        lane = self.lanes.get(server_id)
        return self.pool.catalog_zone is not None and lane is not None and lane.backend.capabilities.reads_catalog

    def _announce(self, works: Sequence[Operation]) -> None:
        """Notify those who read the catalog zone of it.

        What came or went just now is in the catalog at its present serial.  For what is tried again a new one is made,
        since there are servers that look at a member which they could not add only when the catalog has changed.
        """
        assert self.pool.catalog_zone is not None
        again = any(work.row.attempts or not work.current for work in works)
        try:
            serial = self.storage.run(_raised, self.pool.name) if again else self.storage.ask(_present, self.pool.name)
        except Exception as error:  # the database's errors are storage's own; the servers look for themselves, if late
            LOG.warning('the servers were not notified of the new catalog zone: %s', error)
            return
        readers = sorted({work.row.server_id for work in works})
        self.poll([PollRequest(CATALOG, self.pool.catalog_zone, serial, server) for server in readers],
                  self.settings.tries)

    def _fetching_time(self, server_id: str) -> float:
        """Seconds in which a server may fetch a new zone by itself before it is told to."""
        patience = CATALOG_PATIENCE if self.lanes[server_id].backend.capabilities.reads_catalog else 1
        return self.settings.tries.retry_interval * patience

    def _order(self, orders: Decision, situation: DomainState, row: ServerStatus, delay: float, now: datetime) -> None:
        """What is to be done for a row that is due.

        :param delay: seconds in which the server may fetch the zone by itself
        """
        domain, lane, tries = situation.domain, self.lanes[row.server_id], self.settings.tries
        current = is_current(domain, now)
        if lane.takes(row):
            if situation.is_busy(row.server_id):
                row = self._wait(row, now)
            elif lane.room(current) > orders.taken[row.server_id, current]:
                orders.taken[row.server_id, current] += 1
                row = row_transitions.claim(row, self.settings.name,
                                            now + timedelta(seconds=self.settings.claim_seconds))
                situation.hold(row)
                orders.calls.append(Operation(domain, row, current))
            else:
                row = row_transitions.unclaim(row)  # it stays due, and is taken when there is room
            orders.writes.append(row)
        elif lane.dns.is_open:
            silent = CallResult(error=f'{lane.server.label} has not answered DNS', unreachable=True)
            row = row_transitions.after_call(row, silent, now, tries, random.random())
            situation.rows[row.server_id, row.action] = row
            orders.writes.append(row)
        elif not current and not lane.polls.room:
            orders.writes.append(row_transitions.unclaim(row))
        else:
            lane.polls.asked(domain.id)
            orders.writes.append(row_transitions.asked(row, now, tries))
            orders.polls.append(PollRequest(domain.id, domain.name, row.expected_serial, row.server_id, delay=delay,
                                            seen=row.serial_number, incarnation=row.incarnation))

    def _is_of_former(self, called: CallOutcome) -> bool:
        """Whether the server was called with other settings than it has now, or is gone: that says nothing of it."""
        if called.server is None:
            return False
        lane = self.all_lanes.get(called.server.id)
        return lane is None or lane.server != called.server

    def _after_call(self, situation: DomainState, called: CallOutcome, now: datetime) -> None:
        work, domain = called.work, situation.domain
        server, action = work.row.server_id, work.row.action
        row = situation.rows.get((server, action))
        # A row that was taken by somebody else is not this call's; what was put in place is there anyway, unless the
        # server has lost it since.
        mine = row is not None and _is_claim_of(row, work.row)
        if mine:
            situation.let_go(server, action)
        if domain.is_going and action is not Action.DELETE:
            self._after_late_call(situation, called, mine, now)
        elif row is not None and (mine or called.result.ok and not work.row.diverged
                                  and row.incarnation == work.row.incarnation):
            if action is Action.UPDATE and called.result.ok:
                self._after_feed(situation, called, now)
            elif mine and not called.result.ok and row.next_attempt_at != work.row.next_attempt_at:
                situation.change(row_transitions.unclaim(row))  # it was asked for anew meanwhile, and is due
            else:
                if mine or row.status is not Outcome.SUCCESS:
                    after = row_transitions.after_call(row_transitions.heard(row, called.serial), called.result, now,
                                                       self.settings.tries,
                                                       random.random())
                    situation.change(after)
                    if called.serial is not None and row_transitions.is_to_be_outrun(after, called.serial, domain):
                        situation.ahead = called.serial
                if action is Action.CREATE and called.result.ok:
                    self._after_create(situation, called, now)
        if mine:
            situation.change(*(row_transitions.ready(each, now)
                               for each in row_transitions.waiting(situation.rows, server)
                               if self.all_lanes[server].takes(each)))

    def _after_late_call(self, situation: DomainState, called: CallOutcome, mine: bool, now: datetime) -> None:
        """The domain was deleted while its zone was being made: the zone has to go again."""
        server, action = called.work.row.server_id, called.work.row.action
        if mine:
            situation.change(row_transitions.cancel(situation.rows[server, action]))
        makes = action is Action.CREATE or self.all_lanes[server].backend.capabilities.fed_by_records
        if makes and called.result.ok:
            delete = situation.rows.get((server, Action.DELETE))
            if delete is None:
                # Whoever hears of the deletion first begins it everywhere; once it was told, nobody would look again.
                is_told = situation.domain.status is Status.DELETED
                situation.change(*row_transitions.begin(situation.domain, situation.rows,
                                                        [server] if is_told else self.members.holding, now))
            elif delete.status is Outcome.SUCCESS:
                situation.change(row_transitions.renew(delete, situation.domain, now))

    def _after_create(self, situation: DomainState, called: CallOutcome, now: datetime) -> None:
        server = called.work.row.server_id
        update, backend = situation.rows.get((server, Action.UPDATE)), self.all_lanes[server].backend
        if update is None:
            return
        if backend.capabilities.serves_on_create:
            self._after_feed(situation, called, now)
        elif update.status is not Outcome.SUCCESS and update.next_attempt_at is None:
            situation.change(row_transitions.ready(update, now))
            if backend.capabilities.fetches_on_create:
                situation.fetching.add(server)

    def _after_feed(self, situation: DomainState, called: CallOutcome, now: datetime) -> None:
        """The server has the contents, as surely as a poll could tell."""
        work = called.work
        row = row_transitions.mended(situation.rows[work.row.server_id, Action.UPDATE])
        serial = work.domain.serial if called.serial is None else called.serial
        served = PollResult(work.domain.id, work.row.server_id, Outcome.SUCCESS, Answer.SERIAL, serial)
        after = row_transitions.after_poll(row, served, now, self.settings.tries, random.random())
        if not at_least(serial, row.expected_serial):
            after = row_transitions.ready(after, now)  # a change came meanwhile
        situation.change(row_transitions.unclaim(row) if after is row else after)

    def _after_poll(self, situation: DomainState, result: PollResult, now: datetime) -> None:
        create = situation.rows.get((result.server_id, Action.CREATE))
        update = situation.rows.get((result.server_id, Action.UPDATE))
        if create is None or update is None or row_transitions.is_of_former(update, result):
            return
        if row_transitions.is_to_be_confirmed(update, result):
            if (asked := row_transitions.confirm(update, result, now)) is not update:
                situation.change(asked)
            return
        if row_transitions.is_stale(update, result):
            counted = row_transitions.after_stale(update, result, self.settings.tries)
            if counted is update:
                return
            if counted.status is not Outcome.ERROR or not row_transitions.has_lost_zone(result):
                situation.change(counted)
                return
        if result.serial_number is not None and newer(result.serial_number, situation.domain.serial):
            # The domain was read after the server had answered, so nobody here has issued that serial.
            outrun = row_transitions.outrun(update, result.serial_number, situation.domain.serial, now)
            if create.status is Outcome.SUCCESS and outrun is not update:
                situation.change(outrun)
            return
        if row_transitions.has_lost_zone(result):
            if create.status is Outcome.SUCCESS:
                situation.change(*row_transitions.lost(create, update, situation.domain, result.reason or '', now,
                                                       self.settings.tries, random.random()))
            return
        after = row_transitions.after_poll(update, result, now, self.settings.tries, random.random())
        if after is not update:
            situation.change(after)

    def _revive(self, found: dict[str, DomainState], outcomes: Sequence[CallOutcome | PollResult],
                now: datetime) -> None:
        """A deletion that ran while its name was created anew may have taken the new zone with it: create it again."""
        deleted = [each.work for each in outcomes if isinstance(each, CallOutcome) and each.result.ok
                   and each.work.row.action is Action.DELETE]
        if not deleted:
            return
        living = self._living(work.domain.name for work in deleted)
        missing = [domain.id for domain in living.values() if domain.id not in found]
        found.update(self.situations(missing) if missing else {})
        for work in deleted:
            newer = living.get(work.domain.name)
            if newer is None or newer.id not in found:
                continue
            situation = found[newer.id]
            server = work.row.server_id
            if (server, Action.CREATE) in situation.rows:
                situation.let_go(server, Action.CREATE)
                situation.change(*row_transitions.fill(newer, situation.rows, server, now, gone=True))

    def _living(self, names: Iterable[str]) -> dict[str, Domain]:
        wanted = list(dict.fromkeys(names))
        found = self.storage.read(domain_store.live_by_name, wanted) if wanted else {}
        return {name: domain for name, domain in found.items() if domain.pool_name == self.pool.name}

    def _mind_circuit(self, outcome: CallOutcome | PollResult) -> str | None:
        """Count failures and answers; the id of the server that is back, when this is the first that is heard of it."""
        lane = self.lanes.get(server_of(outcome))
        # It rests or is gone; and what was one call counts once.
        if lane is None or isinstance(outcome, CallOutcome) and (not outcome.leads or self._is_of_former(outcome)):
            return None
        if isinstance(outcome, CallOutcome):
            circuit, what, why = lane.control, 'its control channel', outcome.result.error
            failures = 1 if outcome.result.unreachable else 0
        else:
            circuit, what, why = lane.dns, 'DNS', outcome.reason
            lane.polls.heard(domain_of(outcome))
            # A timeout is reported when a whole round of tries has gone by.
            failures = 1 + self.settings.tries.max_retries if outcome.answer is Answer.TIMEOUT else 0
        if failures and circuit.failed(failures):
            logs.transition(LOG, logging.WARNING, '%s does not answer %s: %s', lane.server.label, what, why,
                            server=lane.server.label)
        elif not failures and circuit.answered():
            self.wake(lane.server.id)
            return lane.server.id
        return None

    def _report(self, reports: Sequence[Report]) -> None:
        try:
            self._central.update_statuses(NOBODY, reports)
        except PoolError as error:
            # The periodic pass finds what Central was not told and tells it again.
            if not self._central_is_silent:
                LOG.warning('results of %d zones were not reported to Central and are reported again later: %s',
                            len(reports), error)
            self._central_is_silent = True
            return
        self._central_is_silent = False
        gone = [each.domain_id for each in reports if each.action is Action.DELETE and each.status is Outcome.SUCCESS]
        if gone:
            self._weigh_again(gone)

    def _have_issued(self, outrun: Sequence[tuple[str, int]]) -> None:
        """Have Central issue serials above those of servers that do not give them up, as (domain id, serial)."""
        for domain_id, serial in outrun:
            try:
                self._central.outrun_serial(NOBODY, domain_id, serial)
            except PoolError as error:
                LOG.warning('no serial above %d was issued for the zone %s: %s', serial, domain_id, error)

    def _weigh_again(self, domain_ids: Sequence[str]) -> None:
        self.weigh(self.situations(domain_ids).values())


def _key_of(row: ServerStatus) -> tuple[str, str, Action]:
    return row.server_id, row.domain_id, row.action


def _is_claim_of(row: ServerStatus, claimed: ServerStatus) -> bool:
    """Whether *row* is still claimed as it was when *claimed* was handed out; a claim may have been made longer."""
    return (row.claimed_by == claimed.claimed_by and row.claimed_until is not None
            and claimed.claimed_until is not None and row.claimed_until >= claimed.claimed_until)


def _let_go(situation: DomainState, called: CallOutcome) -> None:
    """What *called* was for is due still; nothing is for a domain that was deleted meanwhile."""
    server, action = called.work.row.server_id, called.work.row.action
    row = situation.rows.get((server, action))
    if row is not None and _is_claim_of(row, called.work.row):
        situation.let_go(server, action)
        is_over = situation.domain.is_going and action is not Action.DELETE
        situation.change(row_transitions.cancel(row) if is_over else row_transitions.unclaim(row))


def _raised(tx: Tx, pool_name: str) -> int:
    """The catalog's serial, which was raised."""
    found = catalog.head(tx, pool_name)
    raised = None if found is None else catalog.bump(tx, found.pool_id, utcnow())
    return _present(tx, pool_name) if raised is None else raised


def _present(tx: Tx, pool_name: str) -> int:
    """The catalog's serial."""
    found = catalog.head(tx, pool_name)
    return catalog.FIRST_SERIAL if found is None else found.serial
