"""What signed zones cost, beside unsigned ones in the same run.

The system runs with two BINDs, RabbitMQ and MariaDB.  Changes of signed zones and of unsigned ones follow each other by
turns, each until it is ACTIVE.  Zones are signed in this process alone, and signatures of many zones are renewed in the
database, of half of them while unsigned zones are changed.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa
from cryptography.fernet import Fernet

from benchmarks import report
from benchmarks.load import CLIENT, Load
from benchmarks.measure import percentile
from benchmarks.steps import most_seconds
from benchmarks.system import System, Watch, names
from designate_pool.central.service import Central
from designate_pool.model import Domain, KeyRole, SignedRecord, ZoneRecord
from designate_pool.protocol import soa_rdata
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Threads
from designate_pool.settings import SigningPolicy
from designate_pool.signing import keys, signer
from designate_pool.signing.signed_records import KeySet, Validity
from designate_pool.storage.sql.schema import zone_signing
from testing.settings import central_settings

UNSIGNED = 'unsigned zones'
#: Seconds after a change in which its last statements are counted.
_AFTERMATH = 0.15
#: To which renewed signatures are scaled.
_MANY = 100_000


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('signed', {'zones': options.zones, 'records': options.records, 'changes': options.changes,
                                      'renewed': options.renewed})
    key = Fernet.generate_key().decode()
    sign_alone(options.alone, options.records, result)
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
        with System(pathlib.Path(name), 'eventlet', keyed=True, central={
                'signing_keys': (key,), 'signing_policies': {'default': SigningPolicy()}}) as system:
            load = Load(system.central, 4, options.records)
            beside = measure_changes(system, load, options.zones, options.changes, result)
            renew(system, load, options.renewed, key, beside, result)
            turn_on_large(system, load, options.large, result)
    result.finish(options.json)
    return 0


def sign_alone(count: int, records: int, result: report.Report) -> None:
    """Zones signed from nothing, with keys of their own, without a database; processor time alone."""
    zones = []
    for name in names('alone', count):
        soa = (name, 'SOA', 3600, soa_rdata.encode_as(f'ns1.example.org. hostmaster.{name}', Domain(
            '0' * 32, name, '0' * 32, 'default', f'hostmaster@{name}', 3600, 1)))
        zones.append((name, soa, [(f'host{number}.{name}', 'A', 300, bytes((192, 0, 2, number % 250)))
                                  for number in range(records)]))
    started = time.process_time()
    made = [[keys.load(keys.generate(role, 13)[1], role) for role in (KeyRole.KSK, KeyRole.ZSK)] for _ in zones]
    generated = time.process_time()
    now = int(time.time())
    times, signatures = Validity(now - 3600, now + 21 * 86_400, 0), 0
    for (name, soa, rrsets), (ksk, zsk) in zip(zones, made):
        made_of = signer.sign_change(name, {record[0]: () for record in rrsets}, soa, KeySet(
            [ksk.public, zsk.public], 3600, [ksk], [zsk]), times, 'NSEC', _Unsigned(rrsets))
        signatures += sum(record.type == 'RRSIG' for record in made_of.added)
    signed = time.process_time()
    result.add('keys made, for a second of processor', 2 * count / (generated - started), '/s')
    result.add('zones signed, for a second of processor', count / (signed - generated), '/s')
    result.add('zones created and signed, for a second of processor', count / (signed - started), '/s')
    result.add('signatures, for a second of processor', signatures / (signed - generated), '/s')


class _Unsigned:
    """What is around the names of a zone of which nothing is signed yet."""

    def __init__(self, records: Sequence[ZoneRecord]) -> None:
        self._records = {record[0]: record for record in records}

    def predecessors(self, chain_keys: Collection[bytes]) -> Mapping[bytes, SignedRecord]:
        return {}

    def signed_at(self, names_: Collection[str]) -> Iterable[SignedRecord]:
        return []

    def rrsets_at(self, names_: Collection[str]) -> Iterable[ZoneRecord]:
        return [self._records[name] for name in names_ if name in self._records]

    def names_below(self, name: str, limit: int | None = None) -> Iterable[str]:
        return []


def measure_changes(system: System, load: Load, zones: int, count: int, result: report.Report) -> Sequence[Domain]:
    """One change after the other, each when the one before is ACTIVE; the unsigned zones."""
    watch = Watch(system)
    unsigned = load.create(names('plain', zones))
    watch.all_active('plain', zones, most_seconds(zones))
    before = _statements(system, watch, load, unsigned)
    signed = load.create(names('signed', zones))
    for domain in signed:
        system.central.dnssec.enable(CLIENT, domain.id)
    watch.all_active('plain', zones, most_seconds(zones))
    samples: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(count // zones):
        for is_signed, domains in ((False, unsigned), (True, signed)):
            samples[is_signed] += load.change_and_wait(watch, domains, zones)
    result.add('one change: median', statistics.median(samples[True]), 'ms', statistics.median(samples[False]),
               UNSIGNED)
    result.add('one change: 9 of 10 within', percentile(samples[True], 0.9), 'ms', percentile(samples[False], 0.9),
               UNSIGNED)
    result.add('one change: SQL statements', _statements(system, watch, load, signed), '',
               _statements(system, watch, load, unsigned), UNSIGNED)
    result.add('one change of an unsigned zone: SQL statements', _statements(system, watch, load, unsigned), '', before,
               'before any was signed')
    result.details['ms'] = {'signed': samples[True], 'unsigned': samples[False]}
    return unsigned


def _statements(system: System, watch: Watch, load: Load, domains: Sequence[Domain]) -> float:
    """The SQL statements of one change, until it is ACTIVE and told; our own looks left out."""
    found = []
    for domain in domains[:10]:
        before, asked = system.statements.read(), watch.asked
        load.change_and_wait(watch, [domain], 1)
        time.sleep(_AFTERMATH)
        found.append(system.statements.read() - before - (watch.asked - asked))
    return statistics.median(found)


def renew(system: System, load: Load, count: int, key: str, beside: Sequence[Domain], result: report.Report) -> None:
    """Every signature of many zones is renewed, in the database alone; of one half of them while zones *beside* are
    changed in this process, as users of the API do where a Central renews signatures."""
    created = load.create(names('many', count))
    started = time.monotonic()
    load.each(lambda domain: system.central.dnssec.enable(CLIENT, domain.id), created)
    result.add('zones turned on, a second', count / (time.monotonic() - started), '/s')
    watch = Watch(system)
    watch.all_active('many', count, most_seconds(count))
    system.storage.run(lambda tx: tx.execute(sa.update(zone_signing).values(next_event_at=None, resign_at=None)))
    policy = SigningPolicy(refresh=SigningPolicy().validity - 3600, jitter=0)
    central = Central(system.storage, PoolManagerClient(system.messaging), Threads(), settings=central_settings(
        signing_keys=(key,), signing_policies={'default': policy}))
    due = sa.select(sa.func.count()).select_from(zone_signing).where(zone_signing.c.resign_at <= sa.bindparam('now'))

    def run() -> tuple[float, float]:
        """The seconds that it takes for all that are due, and those of the processor."""
        begun = time.monotonic(), time.thread_time()
        while system.storage.read(lambda tx: tx.execute(due, {'now': system.storage.now()}).scalar_one()):
            central.dnssec.run_due()
        return time.monotonic() - begun[0], time.thread_time() - begun[1]

    ids = [domain.id for domain in created]
    halves = ids[:count // 2], ids[count // 2:]
    quiet, changed, turns = load.change_and_wait(watch, beside, 2 * len(beside)), [], itertools.cycle(beside)
    try:
        _have_due(system, halves[0])
        seconds, processor = run()
        _have_due(system, halves[1])
        with ThreadPoolExecutor(1) as renewing:
            ended = renewing.submit(run)
            while not ended.done():
                changed += load.change_and_wait(watch, [next(turns)], 1)
    finally:
        central.stop()
    result.add('signatures renewed: zones a second', len(halves[0]) / seconds, '/s')
    result.add('signatures renewed: processor for each zone', 1000 * processor / len(halves[0]), 'ms')
    result.add(f'signatures of {_MANY} zones renewed, scaled', _MANY * seconds / len(halves[0]) / 3600, 'h')
    result.add(f'signatures of {_MANY} zones renewed, scaled: processor', _MANY * processor / len(halves[0]) / 3600,
               'h')
    result.add('one change of an unsigned zone while signatures are renewed: median', statistics.median(changed), 'ms',
               statistics.median(quiet), 'while none are')
    result.add('signatures renewed: zones a second, while zones are changed', len(halves[1]) / ended.result()[0], '/s')


def _have_due(system: System, ids: Sequence[str]) -> None:
    system.storage.run(lambda tx: tx.execute(sa.update(zone_signing).where(zone_signing.c.domain_id.in_(ids)).values(
        resign_at=system.storage.now())))


def turn_on_large(system: System, load: Load, records: int, result: report.Report) -> None:
    """A large zone is turned on and off, while it and another zone are changed all the time."""
    large, other = load.create(['large.example.', 'beside.example.'])
    for first in range(0, records, 1000):
        system.central.apply_changes(CLIENT, large.id, [
            {'name': f'name{number}.{large.name}', 'type': 'A', 'records': ['192.0.2.1']}
            for number in range(first, first + 1000)])
    has_ended = threading.Event()

    def changed(domain: Domain) -> float:
        """The seconds that the slowest change took."""
        slowest = 0.0
        while not has_ended.is_set():
            started = time.monotonic()
            load.change(domain)
            slowest = max(slowest, time.monotonic() - started)
        return slowest

    for is_on in (True, False):
        has_ended.clear()
        with ThreadPoolExecutor(2) as clients:
            slowest = [clients.submit(changed, domain) for domain in (large, other)]
            started = time.monotonic()
            if is_on:
                system.central.dnssec.enable(CLIENT, large.id)
            else:
                system.central.dnssec.disable(CLIENT, large.id, force=True)
            while system.central.get_domain(CLIENT, large.id).is_signed is not is_on:
                system.central.dnssec.run_due()
            seconds = time.monotonic() - started
            has_ended.set()
        what = f'a zone of {records} records turned {"on" if is_on else "off"}'
        result.add(what, seconds, 's')
        for domain, one in zip(('of it', 'of another zone'), slowest):
            result.add(f'{what}: slowest change {domain}', 1000 * one.result(), 'ms')


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = report.arguments(
        'signed', 'What signed zones cost, beside unsigned ones.',
        zones=(20, 'of either kind, that are changed by turns'), records=(10, 'of each zone'),
        changes=(200, 'of zones of either kind'), alone=(1000, 'zones that are signed without a database'),
        large=(10_000, 'of the zone that is signed in pieces'),
        renewed=(500, 'zones whose signatures are all renewed'))
    options = parser.parse_args(argv)
    if options.quick:
        options.zones, options.changes, options.alone, options.renewed, options.large = 5, 20, 100, 30, 2000
    return options


if __name__ == '__main__':
    sys.exit(main())
