"""Two pool managers and two MiniDNS beside one of each, on RabbitMQ and PostgreSQL.

Many domains are created, one record is changed in each, one domain is changed again and again as soon as the former
change is served, and all are deleted, in a system with one pair and in a system with two, by turns; of each the better
round counts.  The servers are BINDs, whose logs tell what they were told: how often each of them was given a zone, told
to remove it, sent a NOTIFY for it, and how often it transferred a serial.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import pathlib
import re
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence

from benchmarks import memory, report
from benchmarks.load import Load
from benchmarks.measure import ours
from benchmarks.steps import Step, measure_step
from benchmarks.system import TWO_BINDS, System, Watch, names
from designate_pool.model import Domain

ONE = 'one of each'
STEPS = ('create', 'change', 'delete')
#: What named logs of something that is to happen once, with what it is about.
DEEDS = {
    'addzone': re.compile(r"received control channel command 'addzone \"([^\"]+)\""),
    'delzone': re.compile(r"received control channel command 'delzone [^\"]*\"([^\"]+)\""),
    'NOTIFY': re.compile(r"received notify for zone '([^']+)'"),
    'transfer of a serial': re.compile(r'zone (\S+/IN: transferred serial \d+)'),
}
#: Those of the drivers: a server must have been told them once.  The others a server may ask for, or need, once more.
CALLS = ('addzone', 'delzone')


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """One round with one number of pairs.

    :ivar steps: by name
    :ivar changes: milliseconds of each of the changes of one domain
    :ivar done: how often each deed was done, on all servers
    :ivar again: how often one of that was done for the same domain and server as before
    """

    steps: Mapping[str, Step]
    changes: Sequence[float]
    done: Mapping[str, int]
    again: Mapping[str, int]

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps.values())


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('pairs', {'domains': options.domains, 'records': options.records, 'pairs': options.pairs,
                                     'changes': options.changes, 'clients': options.clients, 'rounds': options.rounds,
                                     'concurrency': options.concurrency})
    rounds: dict[int, list[Found]] = {1: [], options.pairs: []}
    for number in range(options.rounds):
        for pairs, found in rounds.items():
            with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
                found.append(measure(pathlib.Path(name), pairs, options, result))
            result.say(f'round {number + 1}, {pairs} of each: {found[-1].seconds:.1f} s')
    best = {pairs: min(found, key=lambda each: each.seconds) for pairs, found in rounds.items()}
    compare(result, options.pairs, best[options.pairs], best[1])
    again = told_again(each for found in rounds.values() for each in found)
    if again:
        result.say('told more than once: ' + ', '.join(f'{deed} {count}' for deed, count in again.items()))
    result.finish(options.json)
    return 1 if again else 0


def measure(folder: pathlib.Path, pairs: int, options: argparse.Namespace, result: report.Report) -> Found:
    """Create, change, change again and delete in a new system with so many pairs."""
    tag, count = 'many', options.domains
    with System(folder, options.concurrency, TWO_BINDS, 'postgresql', pairs=pairs) as system:
        load = Load(system.central, options.clients, options.records)
        created: list[Domain] = []
        create = measure_step(system, 'create', tag, count, lambda: created.extend(load.create(names(tag, count))))
        change = measure_step(system, 'change', tag, count, load.changes(created))
        changes = load.change_and_wait(Watch(system), created[:1], options.changes)
        delete = measure_step(system, 'delete', tag, count, lambda: load.delete(created))
        memory.tell(result, system.processes, f'{pairs} of each')
        tallies = [tally(server.log) for server in system.servers]
    return Found({step.name: step for step in (create, change, delete)}, changes,
                 {deed: sum(each[deed].total() for each in tallies) for deed in DEEDS},
                 {deed: sum(repeated(each[deed]) for each in tallies) for deed in DEEDS})


def tally(log: str) -> dict[str, collections.Counter[str]]:
    """How often a named did each of :data:`DEEDS`, by what it was about."""
    return {deed: collections.Counter(pattern.findall(log)) for deed, pattern in DEEDS.items()}


def repeated(counts: Mapping[str, int]) -> int:
    """How often something was done that had been done before."""
    return sum(count - 1 for count in counts.values())


def told_again(found: Iterable[Found]) -> dict[str, int]:
    """How often a driver told a server something that it had been told, by what; empty when that never was."""
    again = collections.Counter[str]()
    for each in found:
        again.update({deed: each.again[deed] for deed in CALLS})
    return {deed: count for deed, count in again.items() if count}


def compare(result: report.Report, pairs: int, several: Found, one: Found) -> None:
    for name in STEPS:
        step, other = several.steps[name], one.steps[name]
        title = f'{name}, {pairs} of each'
        result.add(f'{title}: until done', step.seconds, 's', other.seconds, ONE)
        result.add(f'{title}: processors, all', ours(step.cpu), 's', ours(other.cpu), ONE)
    result.add(f'all of it, {pairs} of each', several.seconds, 's', one.seconds, ONE)
    for word, choose in (('median', statistics.median), ('longest', max)):
        result.add(f'a change, {pairs} of each: {word}', choose(several.changes), 'ms', choose(one.changes), ONE)
    for deed in DEEDS:
        result.add(f'{deed}, {pairs} of each', several.done[deed], '', one.done[deed], ONE)
        result.add(f'{deed}, {pairs} of each: once more than once', several.again[deed], '', one.again[deed], ONE)
    result.details['several'], result.details['one'] = (dataclasses.asdict(each) for each in (several, one))


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments(
        'pairs', 'Two pool managers and two MiniDNS beside one of each.', domains=(500, 'how many are created at once'),
        records=(10, 'in each of them'), changes=(50, 'of one domain, one after the other'),
        clients=(8, 'threads that create them'), pairs=(2, 'how many there are of each, beside one'),
        rounds=(2, 'of all of it'))
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    if options.pairs < 2:
        parser.error('--pairs is 2 at least')
    if options.quick:
        options.domains, options.changes, options.rounds = min(options.domains, 40), min(options.changes, 20), 1
    return options


if __name__ == '__main__':
    sys.exit(main())
