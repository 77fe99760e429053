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

    @initialize(threshold=st.sampled_from([66, 100]), served=st.booleans())
    def begin(self, threshold: int, served: bool) -> None:
        """Begin with nothing, or with a zone that is served."""
        self.cluster.set_threshold(threshold)
        if served:
            self.cluster.ask('create', NAMES[0])
            self.cluster.live(3)

    @rule(kind=st.sampled_from(['change', 'create', 'delete', 'change']), name=st.sampled_from([0, 0, 0, 1]),
          at_once=st.booleans(), choices=CHOICES)
    def user(self, kind: str, name: int, at_once: bool, choices: list[int]) -> None:
        """A user asks for something, and some of what can happen happens."""
        self.cluster.log.append(f'user: {kind} {NAMES[name]}{" at once" * at_once}')
        self.cluster.ask(kind, NAMES[name], at_once)
        self._go(choices)

    @rule(first=st.sampled_from(['create', 'delete']), second=st.sampled_from(['create', 'delete']), choices=CHOICES)
    def user_twice(self, first: str, second: str, choices: list[int]) -> None:
        """A name is deleted and created, or the reverse, before anybody else has a turn."""
        self.cluster.log.append(f'user: {first} and {second} {NAMES[0]}')
        self.cluster.ask(first, NAMES[0], at_once=True)
        self.cluster.ask(second, NAMES[0], at_once=True)
        self._go(choices)

    @rule(choices=CHOICES)
    def go(self, choices: list[int]) -> None:
        """Some of what can happen happens, each with its fate."""
        self._go(choices)

    @rule(seconds=st.sampled_from([1.0, 3.0]), choices=CHOICES)
    def tick(self, seconds: float, choices: list[int]) -> None:
        """The clock goes on, and nothing else does meanwhile."""
        self.cluster.log.append(f'{seconds} s go by')
        self.cluster.pass_time(seconds)
        self._go(choices)

    @rule(seconds=st.sampled_from([12.0, 40.0]), late_calls=st.booleans())
    def stall(self, seconds: float, late_calls: bool) -> None:
        """All programs stand still for longer than a call, or a claim."""
        self.cluster.log.append(f'all stand still for {seconds} s')
        self.cluster.pass_time(seconds, late_calls)

    @rule(seconds=st.sampled_from([0.0, 2.0, 15.0, 70.0]))
    def live(self, seconds: float) -> None:
        """Programs that are not stopped do all that they have to."""
        self.cluster.log.append(f'{seconds} s are lived')
        self.cluster.live(seconds)

    @rule(server=st.sampled_from(SERVERS), control=st.booleans(), dns=st.booleans())
    def reach(self, server: str, control: bool, dns: bool) -> None:
        """A server can be reached from now on, or can not."""
        self.cluster.log.append(f'{server[0]} is reached: control {control}, DNS {dns}')
        self.cluster.servers[server].hears_control, self.cluster.servers[server].hears_dns = control, dns

    @rule(server=st.sampled_from(SERVERS), name=st.sampled_from([None, *NAMES]), choices=CHOICES)
    def lose(self, server: str, name: str | None, choices: list[int]) -> None:
        """A server loses a zone, or is wiped."""
        self.cluster.log.append(f'{server[0]} loses {name or "everything"}')
        for each in list(self.cluster.servers[server].zones):
            if name in (None, each):
                self.cluster.servers[server].remove(each)
        self._go(choices)

    @rule(number=st.integers(0, PROCESSES - 1), stops=st.booleans(), choices=CHOICES)
    def interrupt(self, number: int, stops: bool, choices: list[int]) -> None:
        """A program is killed and started again, or stopped (SIGSTOP), or goes on."""
        process = self.cluster.processes[number]
        if stops or process.is_stopped:
            process.is_stopped = not process.is_stopped
            self.cluster.log.append(f'{process.name} is {"stopped" if process.is_stopped else "continued"}')
        else:
            self.cluster.log.append(f'{process.name} is killed')
            self.cluster.restart(number)
        self._go(choices)

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
