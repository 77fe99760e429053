"""One run: the lab, clients and an observer, a schedule of faults, healing, and what the checker says of it.

It runs inside the namespaces that ``python -m tests.torture`` makes.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import datetime
import functools
import json
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from testing.processes import exit_on_sigterm
from tests.torture import checker, faults, leftovers, name_servers, planted, schedule
from tests.torture.backends import BACKENDS
from tests.torture.checker import Breach
from tests.torture.history import Event, History, of_zone
from tests.torture.lab import SERVERS, STARTING, THRESHOLD, Lab
from tests.torture.messages import Messages
from tests.torture.observer import Observer
from tests.torture.operators import Operator
from tests.torture.schedule import PlannedFault
from tests.torture.workload import Workload

TENANTS = ('ada', 'bea')
BOUND = 150.0
#: Seconds that one fault may take beyond its time.
_HANGING = 60.0
#: Seconds between two looks for a planted bug.
_LOOKING = 8.0
#: Lines of logs, and events, that are shown with a breach.
_LINES, _EVENTS = 150, 60


class Mayhem:
    """Carries out a schedule; each fault has a thread.

    :param server_struck: called when a name server has a fault
    :ivar counts: how often each kind of fault struck
    :ivar healing: to be set when all faults are to end, and no more to begin
    """

    def __init__(self, trouble: faults.Trouble, history: History, seed: int, say: Callable[[str], None],
                 server_struck: Callable[[], None]) -> None:
        self._server_struck = server_struck
        self._trouble = trouble
        self._history = history
        self._seed = seed
        self._say = say
        self.healing = threading.Event()
        self._lock = threading.Lock()
        self.counts: dict[str, int] = {}
        self.missed: dict[str, int] = {}

    def carry_out(self, planned: Sequence[PlannedFault]) -> None:
        """Returns when all have ended."""
        begun = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(max(1, len(planned)), 'fault') as threads:
            try:
                running = [threads.submit(self._bring_about, each, begun) for each in planned]
                last = max((each.at + each.seconds for each in planned), default=0.0)
                for each in running:
                    each.result(timeout=last + _HANGING)
            except BaseException:
                self.healing.set()
                raise

    def _bring_about(self, planned: PlannedFault, begun: float) -> None:
        if self.healing.wait(max(0.0, begun + planned.at - time.monotonic())):
            return
        chance = random.Random(f'{self._seed}/{planned.number}')
        fault = faults.FAULTS[planned.fault](self._trouble, planned.target, chance)
        told = {'id': f'f{planned.number}', 'fault': planned.fault, 'target': self._target(planned),
                'spoils': planned.fault in faults.SPOILING, 'excuses': planned.fault in faults.EXCUSING}
        try:
            # From before it begins: what it does is seen at once.
            self._history.add('fault', **told, phase='begin', detail=None)
            detail = next(fault)
        except faults.NotInjected as error:
            self._history.add('fault', **told, phase='end', detail=f'not injected: {error}')
            self._count(self.missed, planned.fault, 1)
            return
        self._say(f'{planned.fault} {planned.target} for {planned.seconds:g} s: {detail}')
        if planned.target in self._trouble.lab.server_nodes:
            self._server_struck()
        self.healing.wait(planned.seconds)
        struck = _end(fault)
        self._wait_for_node(planned.target)
        self._history.add('fault', **told, phase='end', detail=f'{detail}; {struck}')
        self._count(self.counts if struck else self.missed, planned.fault, 1)

    def _target(self, planned: PlannedFault) -> str:
        """A server's id where the fault is the server's own."""
        node = self._trouble.lab.server_nodes.get(planned.target)
        return node.server_id if node is not None and planned.fault != 'answer_late' else planned.target

    def _wait_for_node(self, name: str) -> None:
        node = self._trouble.lab.nodes.get(name)
        until = time.monotonic() + _HANGING / 2
        while node is not None and node.wanted and time.monotonic() < until:
            if node.running and not self._trouble.lab.supervisor.is_starting(name):
                return
            time.sleep(0.1)

    def _count(self, counts: dict[str, int], fault: str, number: int) -> None:
        with self._lock:
            counts[fault] = counts.get(fault, 0) + number


def _end(fault: faults.Struck) -> int:
    """How often it struck."""
    try:
        next(fault)
    except StopIteration as ended:
        return 1 if ended.value is None else int(ended.value)
    raise AssertionError('a fault yields once')


def run(options: argparse.Namespace, say: Callable[[str], None]) -> dict[str, Any]:
    """One run with the options of :func:`main`; what came of it."""
    with contextlib.ExitStack() as end:
        more: dict[str, Any] = {'environment': planted.environment(options.plant),
                                'manager': planted.PLANTS[options.plant].manager} if options.plant else {}
        lab = Lab(options.database, options.concurrency, options.seed, options.servers, say, signing=options.signing,
                  **more)
        planned = schedule.from_json(options.replay.read_text()) if options.replay else schedule.make(
            faults.kinds(lab), options.seed, options.minutes * 60, options.at_once,
            planted.PLANTS[options.plant].fault if options.plant else '')
        end.enter_context(lab)
        history = History(lab.folder / 'history.jsonl')
        end.callback(history.close)
        try:
            found = _run_in(lab, history, planned, options, say)
        except BaseException:
            _save(options, lab, history, planned)
            raise
        if found['breaches']:
            _save(options, lab, history, planned)
            say(f'seed {options.seed}, schedule:\n{schedule.to_json(planned)}')
        return found


def _run_in(lab: Lab, history: History, planned: Sequence[PlannedFault], options: argparse.Namespace,
            say: Callable[[str], None]) -> dict[str, Any]:
    started, silent = datetime.datetime.now(), list[str]()
    history.add('run', seed=options.seed, servers=list(lab.servers), threshold=THRESHOLD,
                fed=[node.server_id for node in lab.server_nodes.values() if node.is_fed], bound=options.bound,
                database=options.database, concurrency=options.concurrency, plant=options.plant)
    workload = Workload(history, lab.urls, {name: lab.tokens[name] for name in TENANTS}, options.seed,
                        clients=options.clients, rate=options.rate, signing=options.signing,
                        look=lambda name: observer.look(name))
    observer = Observer(history, lab.servers, workload.names, lab.keys, pause=0.1)
    operator = Operator(lab)
    with Messages(lab.broker.urls, options.seed) as messages, _started(observer), _started(operator):
        trouble = faults.Trouble(lab, messages, workload.names, lambda server: observer.servers.update(lab.servers),
                                 workload.lone_names, workload.delete, history, operator)
        mayhem = Mayhem(trouble, history, options.seed, lambda text: say(f'{history.now():7.1f} {text}'),
                        workload.delete_once)
        with _started(workload), _ended_when_found(options.plant, history, mayhem):
            mayhem.carry_out(planned)
            mayhem.healing.wait(max(0.0, options.minutes * 60 - history.now()))
        if not mayhem.healing.is_set():
            lab.supervisor.wait(STARTING)
            messages.deliver()
            silent = lab.restart_silent_servers()
            say(f'{history.now():7.1f} healed; {workload.acknowledged} operations acknowledged')
            settle = functools.partial(_wait_until_settled, history, workload, observer, options.bound)
            settle()
            silent += _look_for_leftovers(lab, history, settle)
            if silent:
                say(f'{history.now():7.1f} had hung by themselves, and were started anew: {", ".join(silent)}')
        for zone, serial in operator.released():
            history.add('released', zone=zone, serial=serial)
    events = history.events()
    breaches = checker.check(events)
    for breach in breaches[:5]:
        _tell(breach, events, lab, started, say)
    return {'commit': _commit(), 'time': started.isoformat(timespec='seconds'), 'seed': options.seed,
            'minutes': options.minutes, 'database': options.database, 'concurrency': options.concurrency,
            'acknowledged': workload.acknowledged, 'events': len(events), 'faults': dict(sorted(mayhem.counts.items())),
            'not_injected': dict(sorted(mayhem.missed.items())), 'messages': dict(messages.counts),
            'continued': operator.continued,
            'latest_messages': {name: round(late, 1) for name, late in messages.latest.items()}, 'hung': silent,
            'breaches': [str(each) for each in breaches]}


def _look_for_leftovers(lab: Lab, history: History, settle: Callable[[], None]) -> list[str]:
    """Note what is left over in the database and on the servers; the servers that hung and were started anew."""
    hung: list[str] = []

    def restart_silent() -> bool:
        names = lab.restart_silent_servers()
        hung.extend(names)
        if names:
            settle()
        return bool(names)

    restart_silent()
    code, told = lab.try_manage('check', '--patience', '30')
    if 'was not checked' in told and restart_silent():
        code, told = lab.try_manage('check', '--patience', '30')
    if code:
        history.add('leftover', where='designate-pool-manage check', what=told)
    living, gone = checker.living(history.events())
    shared = checker.shared(history.events())

    def look() -> list[tuple[str, str]]:
        found = []
        for node in lab.server_nodes.values():
            try:
                found += [(node.name, what) for what in name_servers.leftovers(
                    node.daemon, living, [name for name in gone if (node.server_id, name) not in shared])]
            except subprocess.TimeoutExpired as error:
                lab.start_anew(node)
                lab.supervisor.wait(STARTING)
                hung.append(node.name)
                found.append((node.name, str(error)))
        return found

    for where, what in (*leftovers.find(lab.database_url, {name for _, name in shared}),
                        *leftovers.patiently(look)):
        history.add('leftover', where=where, what=what)
    return hung


@contextlib.contextmanager
def _ended_when_found(plant: str | None, history: History, mayhem: Mayhem) -> Iterator[None]:
    """Heal as soon as a planted bug is found."""
    if plant is None:
        yield
        return
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOKING):
            if planted.breaches(plant, checker.check(history.events())):
                mayhem.healing.set()
                return

    looking = threading.Thread(target=look, name='look for the bug', daemon=True)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()


@contextlib.contextmanager
def _started(what: Any) -> Iterator[None]:
    what.start()
    try:
        yield
    finally:
        what.stop()


def _wait_until_settled(history: History, workload: Workload, observer: Observer, bound: float) -> None:
    """Look at everything until it is as it has to be, or the bound from now on is over."""
    history.add('healed')
    until = history.now() + bound
    while history.now() < until:
        workload.look_at_all()
        observer.snapshot()
        if not checker.unsettled(history.events()):
            return
        time.sleep(2)


def _tell(breach: Breach, events: Sequence[Event], lab: Lab, started: datetime.datetime,
          say: Callable[[str], None]) -> None:
    """Show what a breach is, the history of its zone, and the logs of that time."""
    say(f'BREACH {breach}')
    for event in of_zone(events, [breach.zone])[-_EVENTS:] if breach.zone else breach.events:
        if event['e'] != 'fault':
            say(f'    {json.dumps(event)[:300]}')
    if breach.events:
        times = [event['t'] for event in breach.events]
        since, until = (started + datetime.timedelta(seconds=each) for each in (min(times) - 2, max(times) + 2))
        for line in lab.log_lines(since, until, breach.zone or '')[:_LINES]:
            say(f'    {line[:300]}')


def _save(options: argparse.Namespace, lab: Lab, history: History, planned: Sequence[PlannedFault]) -> None:
    folder = options.keep / f'{options.database}-{options.concurrency}-{options.seed}'
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / 'schedule.json').write_text(schedule.to_json(planned))
    for path in (lab.folder / 'history.jsonl', *lab.folder.glob('*.log')):
        if path.exists():
            shutil.copy(path, folder)


def _commit() -> str:
    done = subprocess.run(['git', 'describe', '--always', '--dirty'], capture_output=True, text=True, timeout=60,
                          cwd=pathlib.Path(__file__).parent, check=False)
    return done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog='python -m tests.torture.run')
    parser.add_argument('--seed', type=int, required=True)
    parser.add_argument('--database', choices=tuple(BACKENDS), required=True, help='the back ends')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), required=True)
    parser.add_argument('--minutes', type=float, default=2, help='of faults (default: 2)')
    parser.add_argument('--at-once', type=float, default=3, help='faults at the same time, in the mean (default: 3)')
    parser.add_argument('--rate', type=float, default=4, help='operations a second of each client at most')
    parser.add_argument('--clients', type=int, default=3, help='of each tenant (default: 3)')
    parser.add_argument('--servers', type=lambda text: text.split(','), default=list(SERVERS),
                        help=f'the name servers (default: {",".join(SERVERS)})')
    parser.add_argument('--signing', action='store_true',
                        help='zones are signed among others, so servers that are fed by records are left out')
    parser.add_argument('--replay', type=pathlib.Path, help='a schedule.json in place of that of the seed')
    parser.add_argument('--keep', type=pathlib.Path, default=pathlib.Path('build/torture'),
                        help='where history, schedule and logs of a run with breaches go (default: build/torture)')
    parser.add_argument('--plant', choices=tuple(planted.PLANTS),
                        help='a bug that the services have; the run ends when it is found')
    parser.add_argument('--quiet', action='store_true', help='print nothing')
    parser.add_argument('--bound', type=float, default=BOUND,
                        help='seconds from the end of the faults within which all must be as it has to be')
    parser.add_argument('--results', type=pathlib.Path, help='a file to which a line of JSON is added')
    options = parser.parse_args()
    if options.signing:
        options.servers = [name for name in options.servers if not name.startswith('native')]
    exit_on_sigterm()
    found = run(options, (lambda text: None) if options.quiet else print)
    line = json.dumps(found)
    if not options.quiet:
        print(line, flush=True)
    if options.results:
        with options.results.open('a') as results:
            results.write(line + '\n')
    return 1 if found['breaches'] else 0


if __name__ == '__main__':
    sys.exit(main())
