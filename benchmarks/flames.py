"""Where the processor time of each service goes under load: flame graphs as SVG, and milliseconds by area.

py-spy samples the programs while many domains are created, changed and deleted by several clients at once, and the API
while it is asked.  What a sample counts for is decided by its innermost frame that belongs to an area (:data:`AREAS`),
so that a socket that is read for the broker counts as messages.  The milliseconds are what the kernel says of each
process, shared out by samples.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks import report
from benchmarks.api_clients import drive, prepare
from benchmarks.flames_plot import plot
from benchmarks.load import Load
from benchmarks.measure import Processors
from benchmarks.steps import Step, measure_step
from benchmarks.system import System, names
from designate_pool.model import Domain
from testing.processes import binary, wait_until

#: Samples by stack; a stack is its frames from the outermost, as ``function (file)``.
Stacks = Counter[tuple[str, ...]]

#: Beginnings of files, the first that fits counts.
AREAS = {
    'messages': ('oslo_messaging/', 'kombu/', 'amqp/', 'vine/', 'designate_pool/rpc/'),
    'database': ('sqlalchemy/', 'pymysql/', 'psycopg2/', 'designate_pool/storage/'),
    'logs, metrics': ('logging/', 'oslo_log/', 'prometheus_client/', 'designate_pool/logs', 'designate_pool/metrics'),
    'DNS': ('dns/', 'designate_pool/protocol/', 'designate_pool/minidns/'),
    'drivers': ('designate_pool/backends/',),
    'HTTP': ('falcon/', 'designate_pool/api/', 'http/'),
    'own rules': ('designate_pool/',),
}
#: Hubs, threads and whatever else has no frame of an area.
SWITCHING = 'switching'
#: Central is in the process of the clients, as it is in that of an API.
_CHANGING = {'central': 'clients', 'manager': 'manager', 'minidns': 'minidns'}
_FRAME = re.compile(r'(.*) \((.*?)(?::\d+)?\)')
_RATE = 100
#: What the API is asked, each so often.
_REQUESTS = 2000
_PAGE = 20


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all that was started is ended
    result = report.Report('flames', {'domains': options.domains, 'clients': options.clients,
                                      'concurrency': options.concurrency})
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
        folder = pathlib.Path(name)
        with System(folder, options.concurrency, keyed=True, api={'rate_limit': '0'}) as system:
            load = Load(system.central, options.clients, 10)
            measure_changes(system, load, options, result)
            measure_requests(system, load, options, result)
    result.finish(options.json)
    return 0


def measure_changes(system: System, load: Load, options: argparse.Namespace, result: report.Report) -> None:
    tag, created, steps = 'many', list[Domain](), list[Step]()
    with sampled({name: system.processes[process] for name, process in _CHANGING.items()}) as stacks:
        steps.append(measure_step(system, 'create', tag, options.domains,
                                  lambda: created.extend(load.create(names(tag, options.domains)))))
        steps.append(measure_step(system, 'change', tag, options.domains, load.changes(created)))
        steps.append(measure_step(system, 'delete', tag, options.domains, lambda: load.delete(created)))
    for name, process in _CHANGING.items():
        seconds = sum(step.cpu[process] for step in steps)
        _tell(name, stacks[name], seconds, options.domains * len(steps), 'a change', options, result)


def measure_requests(system: System, load: Load, options: argparse.Namespace, result: report.Report) -> None:
    """Zones shown and listed, and recordsets made."""
    domains = load.create(names('shown', min(200, options.domains)))
    count = min(_REQUESTS, 20 * options.domains)
    asked = {'show': [prepare('GET', f'/v2/zones/{domain.id}') for domain in domains],
             'list': [prepare('GET', f'/v2/zones?limit={_PAGE}')]}
    asked['create'] = [prepare('POST', f'/v2/zones/{domain.id}/recordsets', {
        'name': f'new{number}.{domain.name}', 'type': 'A', 'records': ['192.0.2.7']})
        for number, domain in enumerate(itertools.islice(itertools.cycle(domains), count // 4))]
    clock = Processors({'api': system.processes['api']})
    with sampled({'api': system.processes['api']}) as stacks:
        before = clock.read()
        done = [drive(system.stack.api_port, requests, count if name != 'create' else len(requests), options.clients)
                for name, requests in asked.items()]
        seconds = clock.since(before)['api']
    _tell('api', stacks['api'], seconds, sum(len(each.times) for each in done), 'a request', options, result)


@contextlib.contextmanager
def sampled(processes: dict[str, int]) -> Iterator[dict[str, Stacks]]:
    """Samples of processes, by name; they are there at the end."""
    found: dict[str, Stacks] = {}
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as folder, contextlib.ExitStack() as end:
        samplers = {name: end.enter_context(_sampler(pathlib.Path(folder, name), pid))
                    for name, pid in processes.items()}
        yield found
        for name, sampler in samplers.items():
            sampler.send_signal(signal.SIGINT)
            sampler.wait(60)
            found[name] = read(pathlib.Path(folder, name).read_text())


@contextlib.contextmanager
def _sampler(path: pathlib.Path, pid: int) -> Iterator[subprocess.Popen[bytes]]:
    log = path.with_suffix('.log')
    with log.open('wb') as output:
        sampler = subprocess.Popen([binary('py-spy', os.path.dirname(sys.executable)), 'record', '--pid', str(pid),
                                    '--nonblocking', '--rate', str(_RATE), '--format', 'raw', '--function',
                                    '--output', str(path)], stdout=output, stderr=output)
        try:
            wait_until(lambda: b'Sampling' in log.read_bytes() or sampler.poll() is not None, 'py-spy samples')
            assert sampler.poll() is None, log.read_text()
            yield sampler
        finally:
            if sampler.poll() is None:
                sampler.kill()
                sampler.wait()


def read(text: str) -> Stacks:
    """Samples by stack, of what py-spy calls raw: a line for each stack, with frames and a number.

    The program is not stopped for a sample, so a name may be anything, even of several lines; such samples are dropped.
    """
    found: Stacks = Counter()
    for line in text.splitlines():
        frames, _, number = line.rpartition(' ')
        if number.isdigit():
            found[tuple(_FRAME.sub(r'\1 (\2)', frame) for frame in frames.split(';'))] += int(number)
    return found


def area(stack: Sequence[str]) -> str:
    for frame in reversed(stack):
        file = frame.rpartition(' (')[2]
        for name, beginnings in AREAS.items():
            if file.startswith(beginnings):
                return name
    return SWITCHING


def _tell(name: str, stacks: Stacks, seconds: float, count: int, what: str, options: argparse.Namespace,
          result: report.Report) -> None:
    """Draw it, and share out its processor time."""
    samples, areas = sum(stacks.values()), Counter[str]()
    assert samples, f'{name}: no samples'
    for stack, number in stacks.items():
        areas[area(stack)] += number
    milliseconds = 1000 * seconds / count
    result.add(f'{name}: processor for {what}', milliseconds, 'ms')
    for each, number in areas.most_common():
        result.add(f'{name}: {each}', milliseconds * number / samples, 'ms', milliseconds, f'{name} for {what}')
    path = options.folder / f'flames-{name}{options.suffix}.svg'
    plot(stacks, area, f'{name}: {milliseconds:.1f} ms of processor for {what}', path)
    result.say(f'{path}: {samples} samples, {path.stat().st_size // 1024} KiB')


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments('flames', 'Flame graphs of each service under load, and milliseconds by area.')
    parser.add_argument('--domains', type=int, default=400, help='that are created, changed and deleted')
    parser.add_argument('--clients', type=int, default=8, help='at once')
    parser.add_argument('--folder', type=pathlib.Path, default=pathlib.Path('build/flames'),
                        help='of the SVG files (default: build/flames)')
    parser.add_argument('--suffix', default='', help='at the end of their names')
    parser.add_argument('--concurrency', choices=('eventlet', 'threading'), default='eventlet')
    options = parser.parse_args(argv)
    if options.quick:
        options.domains = min(options.domains, 50)
    return options


if __name__ == '__main__':
    sys.exit(main())
