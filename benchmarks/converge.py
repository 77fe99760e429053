"""How long the whole system takes from a change to ACTIVE, beside what the name servers alone would take.

Many domains are created, one record is changed in each, and all are deleted, by several clients at once; then single
creates and changes follow each other on the quiet system; then one of the servers dies and comes back.
The limit, measured in the same run, is :mod:`benchmarks.bare`: the same zones on servers that are told directly.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import memory, report
from benchmarks.bare import Limit, measure_limit
from benchmarks.load import Load
from benchmarks.makes import MAKES
from benchmarks.measure import ours, percentile
from benchmarks.outage import measure_threshold_50, measure_threshold_100
from benchmarks.steps import Step, measure_step, most_seconds
from benchmarks.system import TWO_BINDS, System, Watch, names
from designate_pool.model import Domain, Status

LIMIT = 'bare servers, told directly'
#: Zones of the limit at most, of BINDs alone and with others: of more, NOTIFYs are lost that nobody sends again.  What
#: they take is multiplied.
_BINDS_ZONES, _LIMIT_ZONES = 500, 50
#: Designate 23 on a machine of this kind, with zones of SOA and NS alone to which a recordset was added: for 500 zones
#: the seconds, and those of all its processors; for one zone the milliseconds on a faster day.  It sends so many
#: statements for a create, counted as ours are, without ROLLBACK and COMMIT.
DESIGNATE = 'Designate 23, on such a machine'
DESIGNATE_SECONDS = {'create': 142.0, 'change': 204.0, 'delete': 145.0}
DESIGNATE_PROCESSORS = {'create': 231.0, 'change': 369.0, 'delete': 253.0}
DESIGNATE_STATEMENTS = 154
DESIGNATE_ONE_MS = {'create': 5200.0, 'change': 8300.0}
_DESIGNATE_DOMAINS = 500
#: Seconds after a create in which its last statements are counted, and of idleness to see what goes on all the time.
_AFTERMATH = 0.1
_IDLE = 5.0


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('converge', {'domains': options.domains, 'records': options.records,
                                        'clients': options.clients, 'changes': options.changes,
                                        'concurrency': options.concurrency, 'makes': options.makes})
    designate = options.makes == TWO_BINDS and not options.records
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
        folder = pathlib.Path(name)
        limit = None if options.without_limit else _limit(folder / 'bare', options, result)
        with System(folder, options.concurrency, options.makes, keyed=True) as system:
            load = Load(system.central, options.clients, options.records)
            measure_many(system, load, options.domains, limit, result, designate)
            measure_singles(system, load, options.changes, limit, result, designate)
            memory.tell(result, system.processes)
            measure_threshold_100(system, load, result)
            measure_threshold_50(system, load, options.changes, result)
    result.finish(options.json)
    return 0


def _limit(folder: pathlib.Path, options: argparse.Namespace, result: report.Report) -> Limit:
    measured = min(options.domains, _BINDS_ZONES if set(options.makes) == set(TWO_BINDS) else _LIMIT_ZONES)
    limit = measure_limit(folder, options.makes, measured, options.records, options.changes)
    _print_cpu(f'the limit, processor seconds ({measured} domains)', limit.cpu)
    result.details['limit'] = dataclasses.asdict(limit)
    return limit.times(options.domains / measured)


def measure_many(system: System, load: Load, count: int, limit: Limit | None, result: report.Report,
                 designate: bool) -> None:
    """Many domains at once: create, change, delete.

    :param designate: whether what Designate took can be compared with
    """
    tag = 'many'
    created: list[Domain] = []
    steps: list[Step] = []

    def step(name: str, submit: Callable[[], Any]) -> None:
        steps.append(measure_step(system, name, tag, count, submit))
        result.say(f'{name} {count}: {steps[-1].seconds:.1f} s, submitted in {steps[-1].submission:.1f} s')

    step('create', lambda: created.extend(load.create(names(tag, count))))
    step('change', load.changes(created))
    step('delete', lambda: load.delete(created))
    full = designate and count == _DESIGNATE_DOMAINS
    for step in steps:
        title = f'{step.name} {count}'
        result.add(f'{title}: until done', step.seconds, 's', *((limit.seconds[step.name], LIMIT) if limit else ()))
        if full:
            result.add(f'{title}: until done', step.seconds, 's', DESIGNATE_SECONDS[step.name], DESIGNATE)
        result.add(f'{title}: submission alone', step.submission, 's')
        result.add(f'{title}: processors, all', ours(step.cpu), 's',
                   *((ours(limit.cpu[step.name]), LIMIT) if limit else ()))
        if full:
            result.add(f'{title}: processors, all', ours(step.cpu), 's', DESIGNATE_PROCESSORS[step.name], DESIGNATE)
        result.add(f'{title}: SQL statements each', step.statements / count, '',
                   *((DESIGNATE_STATEMENTS, DESIGNATE) if designate and step.name == 'create' else ()))
    _print_cpu(f'processor seconds ({count} domains)', {step.name: step.cpu for step in steps})
    result.details['steps'] = [step.as_json() for step in steps]


def measure_singles(system: System, load: Load, count: int, limit: Limit | None, result: report.Report,
                    designate: bool) -> None:
    """Single creates and changes, each when the one before is done."""
    watch = Watch(system)
    domains, creates, statements = [], [], []
    for name in names('one', max(20, count // 4)):
        before, asked = system.statements.read(), watch.asked
        domain, milliseconds = load.create_and_wait(watch, name)
        time.sleep(_AFTERMATH)
        statements.append(system.statements.read() - before - (watch.asked - asked))
        domains.append(domain)
        creates.append(milliseconds)
    before = system.statements.read()
    time.sleep(_IDLE)
    idle = (system.statements.read() - before) / _IDLE
    changes = load.change_and_wait(watch, domains, count)
    load.delete(domains)
    watch.all_in(Status.DELETED, 'one', len(domains), most_seconds(len(domains)))
    for name, samples in (('create', creates), ('change', changes)):
        result.add(f'one {name}: median', statistics.median(samples), 'ms',
                   *((DESIGNATE_ONE_MS[name], DESIGNATE) if designate else ()))
        result.add(f'one {name}: 99 of 100 within', percentile(samples, 0.99), 'ms')
    if limit:
        result.add('one change: median', statistics.median(changes), 'ms', statistics.median(limit.one_ms), LIMIT)
        result.add('one change: 99 of 100 within', percentile(changes, 0.99), 'ms', percentile(limit.one_ms, 0.99),
                   LIMIT)
    result.add('one quiet create: SQL statements', statistics.median(statements), '',
               *((DESIGNATE_STATEMENTS, DESIGNATE) if designate else ()))
    result.add('idle: SQL statements a second', idle, '')
    result.details['one'] = {'create_ms': creates, 'change_ms': changes, 'statements': statements}


def _print_cpu(title: str, steps: Mapping[str, Mapping[str, float]]) -> None:
    """Processor seconds, a line for each process and a column for each step."""
    processes = list(next(iter(steps.values())))
    rows = [[process, *(f'{cpu[process]:.2f}' for cpu in steps.values())] for process in processes]
    rows.insert(-1, ['all of these', *(f'{ours(cpu):.2f}' for cpu in steps.values())])
    report.print_table(title, ['process', *steps], rows)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('converge', 'From a change to ACTIVE, on real servers, RabbitMQ and MariaDB.')
    parser.add_argument('--domains', type=int, default=500, help='how many are created at once')
    parser.add_argument('--records', type=int, default=10, help='in each of them; 0: SOA and NS alone, and a change '
                        'adds a recordset, as Designate was measured')
    parser.add_argument('--clients', type=int, default=8, help='threads that create them')
    parser.add_argument('--changes', type=int, default=200, help='single changes for the latency')
    parser.add_argument('--makes', type=_makes, default=TWO_BINDS,
                        help='of the servers, with commas between them: ' + ', '.join(MAKES))
    parser.add_argument('--without-limit', action='store_true', help='ours alone')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    if options.quick:
        options.domains, options.changes = min(options.domains, 50), min(options.changes, 30)
    return options


def _makes(text: str) -> tuple[str, ...]:
    makes = tuple(text.split(','))
    if unknown := sorted(set(makes) - set(MAKES)):
        raise argparse.ArgumentTypeError(f'unknown: {", ".join(unknown)}')
    if len(makes) < 2:
        raise argparse.ArgumentTypeError('two servers at least, since one of them dies')
    return makes


if __name__ == '__main__':
    sys.exit(main())
