"""The state machine: hypothesis chooses what happens next and what becomes of it."""

from __future__ import annotations

import contextlib
import functools
import logging
import pathlib
import sys
import tempfile
from collections.abc import Sequence
from typing import TypeAlias

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from testing.databases import upgraded_sqlite
from tests.unit.state_machines.cluster import NAMES, RESERVE, SERVERS, Cluster, Event, UserOperation, simulated_pool
from tests.unit.state_machines.invariants import Invariants
from tests.unit.state_machines.simulation import Fate, SimulatedClock, SimulatedDatabase

Choices: TypeAlias = list[tuple[int, int]]

#: What becomes of a step: in some runs all go well, in others one of six does not, in a few every third.  The simplest
#: choice is that it goes well.
FATES = tuple((*[Fate.WELL] * (32 - len(faults)), *faults) for faults in (
    (), [Fate.FAILS, Fate.UNHEARD, Fate.TWICE, Fate.LATE, Fate.UNHEARD],
    [Fate.FAILS, Fate.UNHEARD, Fate.TWICE, Fate.LATE, Fate.UNHEARD] * 2))
#: Which of the things that can happen, and its fate.  Hypothesis mixes numbers of at least 100 in that it finds in the
#: modules of the product; choices that are below do not become others with the product or with what is imported.
CHOICES = st.lists(st.tuples(st.integers(0, 31), st.integers(0, 31)), min_size=8, max_size=32)
#: What happens then: choices, or everything for so many seconds.
THEN = st.one_of(CHOICES, CHOICES, st.sampled_from([0.0, 1.0, 3.0, 20.0, 70.0]))
FAULTS = ('control', 'DNS', 'both', 'neither', 'kill', 'stop', 'tick', 'stall', 'loses', 'is wiped')
#: What operators do with the servers of the pool: its sections in the configuration, and two commands.
MEMBERS = ('section', 'rest', 'drain')
#: How the three servers of a run, and the one that may join, get their zones.
MAKES = (('simulated',) * 4, ('simulated',) * 4, ('simulated', 'simulated', 'records', 'simulated'),
         ('records', 'records', 'simulated', 'records'), ('simulated', 'simulated', 'catalog', 'simulated'),
         ('catalog', 'simulated', 'catalog', 'catalog'), ('catalog', 'records', 'simulated', 'records'))
#: Of a server that loses what it was told to keep nobody knows before it is asked.
UNTOLD = ('loses', 'is wiped')
#: What one step waits for while all else goes on, and which of those that are next it is: the text of the step; that of
#: a call, a query or a transfer of one server ends with this server.
POINTS = ('calls create', 'calls delete', 'wants', 'Query', 'Poll', 'late reply', 'has sent', 'hears of',
          'calls update_statuses', 'update_statuses to', 'notify_and_poll to', 'domain to pool_manager',
          'writes by write', 'writes by apply', 'writes by purge_domains', 'writes by claim_due', 'reads on', '')
OF_SERVER = POINTS[:8]
#: What users do.
OPERATIONS = ('change', 'edit', 'delete or create', 'twice')
#: What several users ask one Central for at the same time, and the fates of the transaction in which it does that.
TOGETHER = ('create', 'edit', 'remove', 'delete')
TOGETHER_FATES = (Fate.WELL, Fate.FAILS, Fate.UNHEARD, Fate.UNHEARD)
#: Those for which the domain has to be there.
EDITS = ('change', 'edit', 'remove')
#: What happens while a step waits.
MEANWHILE = ('nothing', *OPERATIONS, *OPERATIONS, 'control', 'both', 'kill', 'loses')
PROCESSES = 6
#: Of one run.
STEPS = 12


@functools.cache
def database() -> SimulatedDatabase:
    """One for all runs of this process: statements are compiled once."""
    folder = tempfile.TemporaryDirectory(prefix='designate-pool-machine-')
    found = SimulatedDatabase(upgraded_sqlite(pathlib.Path(folder.name) / 'pool.sqlite'))
    found.folder = folder  # type: ignore[attr-defined]  # it goes with the process
    return found


class ClusterMachine(RuleBasedStateMachine):
    """Central, pool managers, MiniDNS and servers with all that goes wrong between them; see :mod:`.cluster`.

    When a run ends, all is well from then on, and within a bound everything has to be as users were told.
    """

    cluster: Cluster

    def __init__(self) -> None:
        super().__init__()
        self._stack = contextlib.ExitStack()
        self._clock = SimulatedClock()
        self._stack.enter_context(simulated_pool(self._clock))
        self._level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)

    @initialize(threshold=st.sampled_from([66, 100]), served=st.sampled_from([True, True, True, False]),
                fates=st.sampled_from(FATES), faults=st.lists(st.sampled_from(FAULTS), min_size=2, max_size=4),
                late_calls=st.booleans(), makes=st.sampled_from(MAKES),
                members=st.sampled_from([(), (), *((each,) for each in MEMBERS), MEMBERS]), deletes=st.booleans())
    def begin(self, threshold: int, served: bool, fates: Sequence[Fate], faults: list[str], late_calls: bool,
              makes: Sequence[str], members: Sequence[str], deletes: bool) -> None:
        """Begin with a zone that is served, or with nothing.  A run has few kinds of faults, so that they meet."""
        cluster = self.cluster = Cluster(database(), self._clock, threshold, makes, deletes)
        self.promises = Invariants(cluster)
        self._fates, self._faults = fates, faults = fates, [*members, *faults]
        cluster.has_audits = any(each in UNTOLD or each in MEMBERS for each in faults)
        cluster.has_late_calls = late_calls and cluster.has_audits
        cluster.log.append(f'threshold {threshold}, {makes}, faults {faults}, audits: {cluster.has_audits}, '
                           f'late calls: {cluster.has_late_calls}, deletes: {deletes}')
        if served:
            cluster.ask('create', NAMES[0])
            cluster.live(3)

    @rule(kind=st.sampled_from(OPERATIONS), name=st.sampled_from([0, 0, 0, 1]), at_once=st.booleans(), then=THEN)
    def user(self, kind: str, name: int, at_once: bool, then: Choices | float) -> None:
        """A user asks for something."""
        self._ask(kind, name, at_once)
        self._then(then)

    @rule(then=THEN)
    def go(self, then: Choices | float) -> None:
        """Some of what can happen happens, each with its fate; or everything, well."""
        self._then(then)

    @rule(first=st.sampled_from(OPERATIONS), point=st.sampled_from(POINTS), skipped=st.integers(0, 2),
          server=st.sampled_from(SERVERS), fate=st.sampled_from([Fate.WELL, *Fate]),
          meanwhile=st.sampled_from(MEANWHILE), seconds=st.sampled_from([0.5, 2.0, 6.0, 40.0]),
          number=st.integers(0, PROCESSES - 1))
    def wait(self, first: str, point: str, skipped: int, server: str, fate: Fate, meanwhile: str, seconds: float,
             number: int) -> None:
        """One step waits, on the way of an operation, while something else is done and all of that goes its way."""
        cluster = self.cluster
        self._ask(first, 0, at_once=True)
        event = self._step(point, server, skipped)
        if event is None:
            return
        cluster.log.append(f'waits: {event.text}')
        if meanwhile in OPERATIONS:
            self._ask(meanwhile, 0, at_once=True)
        elif meanwhile != 'nothing' and (meanwhile != 'loses' or cluster.has_audits):
            self._break(meanwhile, server, number)
        cluster.live(seconds, [event.source])
        cluster.log.append('waits no more')
        again = next((each for each in cluster.events() if each.source == event.source), None)
        if again is not None:
            cluster.happen(again, fate)
        cluster.live(0.5)

    @rule(kind=st.sampled_from(TOGETHER), first=st.integers(0, len(NAMES) - 1), count=st.integers(3, 5),
          fate=st.sampled_from(TOGETHER_FATES), other=st.sampled_from([None, None, *OPERATIONS[:3]]),
          is_later=st.booleans(), seconds=st.sampled_from([0.0, 0.0, 0.5, 6.0]),
          killed=st.sampled_from([None, None, 'before', 'after']), number=st.integers(0, 1), again=st.booleans())
    def together(self, kind: str, first: int, count: int, fate: Fate, other: str | None, is_later: bool,
                 seconds: float, killed: str | None, number: int, again: bool) -> None:
        """Users ask a Central that is carrying out a request, so that theirs are carried out in one transaction."""
        cluster = self.cluster
        kind, names = self._fitting(kind, [*NAMES[first:], *NAMES[:first]])
        names = [*names, names[-1]][:count]  # the last one twice, if there are no others
        cluster.log.append(f'users: {kind} {", ".join(names)}')
        asked = [cluster.ask(kind, name, at_once=True, central=number, until='writes') for name in names]
        event = self._combined(asked)
        if event is not None:
            cluster.log.append(f'waits: {event.text}')
            if other is not None and not is_later:  # of the other Central, or of this one, which is held up
                self._ask(other, NAMES.index(names[-1]), at_once=True, central=number if seconds else 1 - number)
            cluster.live(seconds, [event.source])
            if killed != 'before':
                cluster.happen(event, fate)
            if other is not None and is_later:
                self._ask(other, NAMES.index(names[-1]), at_once=True, central=1 - number)
        if killed is not None:
            self._break('kill', SERVERS[0], number)
        if again:
            for each in asked:
                if each.is_over and each.told is None and not each.is_refused:
                    cluster.ask(kind, each.name)
        cluster.live(0.5)

    def _fitting(self, kind: str, names: Sequence[str]) -> tuple[str, list[str]]:
        """A kind of operations, that one if possible, and the names that there are for it, three at least."""
        there = {name for name, in self.cluster.database.rows("SELECT name FROM domains WHERE deleted = '0'")}
        fitting = [name for name in names if (name in there) == (kind != 'create')]
        if len(fitting) >= 3:
            return kind, fitting
        return 'edit' if kind == 'create' else 'create', [name for name in names if name not in fitting]

    def _combined(self, asked: Sequence[UserOperation]) -> Event | None:
        """The transaction that is for several of these users, once what they wait for is done."""
        cluster = self.cluster
        users = {f'user {each.number} ' for each in asked}
        while True:
            event = next((each for each in cluster.events() if any(user in str(each.text) for user in users)), None)
            if event is None or 'writes together' in str(event.text):
                return event
            cluster.happen(event)

    def _step(self, point: str, server: str, skipped: int) -> Event | None:
        """The next event at a *point*, on the way to which all goes well for a while."""
        cluster = self.cluster
        end = cluster.clock.seconds + 4
        while cluster.clock.seconds < end:
            event = next(iter(cluster.events()), None)
            if event is None:
                cluster.pass_time(0.5)
                continue
            text = str(event.text)
            if point in text and (point not in OF_SERVER or f' {server[0]} ' in f' {text} '):
                if not skipped:
                    return event
                skipped -= 1
            cluster.happen(event)
        return None

    @rule(kind=st.integers(0, 6), server=st.sampled_from([*SERVERS, RESERVE]),
          number=st.integers(0, PROCESSES - 1), then=THEN)
    def fault(self, kind: int, server: str, number: int, then: Choices | float) -> None:
        """Something goes wrong with a server, a program, or all of them."""
        self._break(self._faults[kind % len(self._faults)], server, number)
        self._then(then)

    def _break(self, what: str, server: str, number: int) -> None:
        cluster, machine = self.cluster, self.cluster.servers[server]
        process = cluster.processes[number]
        cluster.log.append(f'fault: {what} ({server[0]}, {process.name})')
        if what in FAULTS[:4]:  # which of its ways do not lead there, until they do again
            is_new = machine.hears_control and machine.hears_dns
            machine.hears_control = not (is_new and what in ('control', 'both'))
            machine.hears_dns = not (is_new and what in ('DNS', 'both'))
        elif what == 'loses':
            machine.remove(NAMES[0])
        elif what == 'is wiped':
            machine.wipe()
        elif what in MEMBERS:
            cluster.change_members(what, server)
        elif what == 'stop' or what == 'kill' and process.is_stopped:
            process.is_stopped = not process.is_stopped
        elif what == 'kill':
            cluster.restart(number)
        else:
            cluster.pass_time(2.0 if what == 'tick' else 40.0)

    def _ask(self, kind: str, name: int, at_once: bool, central: int | None = None) -> None:
        """A user asks for an operation; for a creation, or every second time a restoration, where there is no zone."""
        cluster = self.cluster
        is_there = bool(cluster.database.rows(
            f"SELECT id FROM domains WHERE name = '{NAMES[name]}' AND deleted = '0'"))
        kinds = ('delete', 'create') if is_there else ('create', 'delete')
        for each in kinds if kind == 'twice' else [kind if is_there and kind in EDITS else kinds[0]]:
            if each == 'create' and len(cluster.operations) % 2 and any(
                    other.kind == 'delete' and other.name == NAMES[name] for other in cluster.operations):
                each = 'restore'
            cluster.log.append(f'user: {each} {NAMES[name]}{" at once" * at_once}')
            cluster.ask(each, NAMES[name], at_once, central)

    def _then(self, then: Choices | float) -> None:
        if isinstance(then, list):
            self._go(then)
        else:
            self.cluster.log.append(f'{then} s are lived')
            self.cluster.live(then)

    def _go(self, choices: Choices) -> None:
        for event, fate in choices:
            events = self.cluster.events()
            if not events:
                break
            self.cluster.happen(events[event % len(events)], self._fates[fate])

    def teardown(self) -> None:
        error = sys.exc_info()[1]
        try:
            if error is None:
                self.cluster.log.append('all is well from now on')
                self.cluster.heal()
                self.promises.check_end()
        except Exception as found:
            error = found
            raise
        finally:
            if error is not None:
                error.add_note('\n'.join(self.cluster.log))
            self.cluster.end()
            logging.disable(self._level)
            self._stack.close()
