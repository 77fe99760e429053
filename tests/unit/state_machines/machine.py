"""The state machine: hypothesis chooses what happens next and what becomes of it."""

from __future__ import annotations

import contextlib
import functools
import logging
import pathlib
import sys
import tempfile

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from testing.databases import upgraded_sqlite
from tests.unit.state_machines.cluster import NAMES, SERVERS, Cluster
from tests.unit.state_machines.invariants import Invariants
from tests.unit.state_machines.simulation import Fate, SimulatedClock, SimulatedDatabase, simulated_world

#: Of 32 steps 27 go well, and the simplest choice is that.
FATES = (*[Fate.WELL] * 27, Fate.FAILS, Fate.UNHEARD, Fate.TWICE, Fate.LATE, Fate.UNHEARD)
#: Which of the things that can happen, and its fate.
CHOICES = st.lists(st.integers(0, 32 * 32 - 1), min_size=8, max_size=32)
#: What happens then: choices, or everything for so many seconds.
THEN = st.one_of(CHOICES, CHOICES, st.sampled_from([0.0, 3.0, 20.0, 70.0]))
FAULTS = ('control', 'DNS', 'both', 'neither', 'loses', 'is wiped', 'kill', 'stop', 'tick', 'stall', 'stall late')
PROCESSES = 6


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

    def __init__(self) -> None:
        super().__init__()
        self._stack = contextlib.ExitStack()
        clock = SimulatedClock()
        self._stack.enter_context(simulated_world(clock))
        self._level = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        self.cluster = Cluster(database(), clock)
        self.promises = Invariants(self.cluster)

    @initialize(threshold=st.sampled_from([66, 100]), served=st.sampled_from([True, True, True, False]))
    def begin(self, threshold: int, served: bool) -> None:
        """Begin with a zone that is served, or with nothing."""
        self.cluster.set_threshold(threshold)
        if served:
            self.cluster.ask('create', NAMES[0])
            self.cluster.live(3)

    @rule(kind=st.sampled_from(['change', 'delete', 'create']), name=st.sampled_from([0, 0, 0, 1]),
          at_once=st.booleans(), then=THEN)
    def user(self, kind: str, name: int, at_once: bool, then: list[int] | float) -> None:
        """A user asks for something."""
        self.cluster.log.append(f'user: {kind} {NAMES[name]}{" at once" * at_once}')
        self.cluster.ask(kind, NAMES[name], at_once)
        self._then(then)

    @rule(first=st.sampled_from(['delete', 'create']), then=THEN)
    def user_twice(self, first: str, then: list[int] | float) -> None:
        """A name is deleted and created, or the reverse, before anybody else has a turn."""
        second = 'create' if first == 'delete' else 'delete'
        self.cluster.log.append(f'user: {first} and {second} {NAMES[0]}')
        self.cluster.ask(first, NAMES[0], at_once=True)
        self.cluster.ask(second, NAMES[0], at_once=True)
        self._then(then)

    @rule(then=THEN)
    def go(self, then: list[int] | float) -> None:
        """Some of what can happen happens, each with its fate; or everything, well."""
        self._then(then)

    @rule(kind=st.sampled_from(FAULTS), server=st.sampled_from(SERVERS), number=st.integers(0, PROCESSES - 1),
          then=THEN)
    def fault(self, kind: str, server: str, number: int, then: list[int] | float) -> None:
        """Something goes wrong with a server, a program, or all of them."""
        cluster, machine = self.cluster, self.cluster.servers[server]
        process = cluster.processes[number]
        cluster.log.append(f'fault: {kind} ({server[0]}, {process.name})')
        if kind in FAULTS[:4]:  # which of its ways do not lead there
            machine.hears_control, machine.hears_dns = kind not in ('control', 'both'), kind not in ('DNS', 'both')
        elif kind in ('loses', 'is wiped'):
            for name in [NAMES[0]] if kind == 'loses' else NAMES:
                machine.remove(name)
        elif kind == 'stop' or kind == 'kill' and process.is_stopped:
            process.is_stopped = not process.is_stopped
        elif kind == 'kill':
            cluster.restart(number)
        else:
            cluster.pass_time(2.0 if kind == 'tick' else 40.0, late_calls=kind == 'stall late')
        self._then(then)

    def _then(self, then: list[int] | float) -> None:
        if isinstance(then, list):
            self._go(then)
        else:
            self.cluster.log.append(f'{then} s are lived')
            self.cluster.live(then)

    def _go(self, choices: list[int]) -> None:
        for choice in choices:
            events = self.cluster.events()
            if not events:
                break
            self.cluster.happen(events[choice // 32 % len(events)], FATES[choice % 32])

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
