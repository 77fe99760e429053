"""One of the servers dies and comes back: what that costs, and how soon it shows."""

from __future__ import annotations

import statistics
import time

from benchmarks.load import Load
from benchmarks.measure import percentile
from benchmarks.report import Report
from benchmarks.system import System, Watch, names
from designate_pool.model import Domain, Status
from designate_pool.settings import PoolManagerSettings

#: Domains that are changed while the server is dead.
CHANGED = 50
_SECONDS = 120.0


def measure_threshold_50(system: System, load: Load, count: int, report: Report) -> None:
    """Single changes where half of the servers are enough: with all of them, then with one dead."""
    system.set_threshold(50)
    watch = Watch(system)
    domains = _created(load, watch, 'half', 20)
    healthy = load.change_and_wait(watch, domains, count)
    system.servers[1].kill()
    dead = load.change_and_wait(watch, domains, count)
    system.servers[1].start()
    watch.all_active('half', len(domains), _SECONDS)
    _remove(load, watch, domains, 'half')
    other = 'all servers alive, threshold 50'
    title = f'one change, one server of {len(system.servers)} dead, threshold 50'
    report.add(f'{title}: median', statistics.median(dead), 'ms', statistics.median(healthy), other)
    report.add(f'{title}: 99 of 100 within', percentile(dead, 0.99), 'ms', percentile(healthy, 0.99), other)
    report.details['threshold 50'] = {'healthy_ms': healthy, 'dead_ms': dead}


def measure_threshold_100(system: System, load: Load, report: Report) -> None:
    """How soon the error shows where all are needed, and how soon all is well when the server is back."""
    watch = Watch(system)
    domains = _created(load, watch, 'whole', CHANGED)
    tries = PoolManagerSettings().tries
    # A port that refuses ends each try at once, so a round takes the pauses between its tries.
    shortest = tries.max_retries * tries.retry_interval
    system.servers[1].kill()

    started = time.monotonic()
    serial = load.change(domains[0])
    error = watch.one(domains[0].id, Status.ERROR, serial, _SECONDS)
    report.add(f'change, one server of {len(system.servers)} dead, threshold 100: until ERROR', error - started, 's',
               shortest, 'the pauses of its round of tries')
    load.changes(domains[1:])()
    created = load.create(names('whole-new', 1))
    started = time.monotonic()
    error = watch.all_in(Status.ERROR, 'whole', CHANGED + 1, _SECONDS)
    report.add(f'a create after {CHANGED - 1} changes, the same: until all are in ERROR', error - started, 's',
               shortest, 'the pauses of its round of tries')

    started = time.monotonic()
    system.servers[1].start()
    answering = time.monotonic()
    active = watch.all_active('whole', CHANGED + 1, _SECONDS)
    report.add('all of them ACTIVE again, from the server\'s start', active - started, 's', answering - started,
               'until the server answers')
    _remove(load, watch, [*domains, *created], 'whole')


def _created(load: Load, watch: Watch, tag: str, count: int) -> list[Domain]:
    domains = load.create(names(tag, count))
    watch.all_active(tag, count, _SECONDS)
    return domains


def _remove(load: Load, watch: Watch, domains: list[Domain], tag: str) -> None:
    load.delete(domains)
    watch.all_in(Status.DELETED, tag, len(domains), _SECONDS)
