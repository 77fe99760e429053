"""What signed zones cost, beside unsigned ones in the same run.

The system runs with two BINDs, RabbitMQ and MariaDB.  Changes of signed zones and of unsigned ones follow each other by
turns, each until it is ACTIVE.  Zones are signed in this process alone, and signatures of many zones are renewed in the
database, of half of them while unsigned zones are changed.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import sqlalchemy as sa
from cryptography.fernet import Fernet

from benchmarks import report
from benchmarks.load import CLIENT, Load
from benchmarks.measure import percentile
from benchmarks.steps import most_seconds
from benchmarks.system import System, Watch, names
from designate_pool.central import domain_changes
from designate_pool.central.domain_creator import NewZone
from designate_pool.central.rules import domains as domain_rules
from designate_pool.central.signing.zone_signer import ZoneSigner
from designate_pool.central.validation import requests
from designate_pool.central.validation.requests import NewDomain
from designate_pool.model import (Domain, KeyRole, KeyState, Outcome, Report, SignedDifference, SignedRecord,
                                  SigningKey, SigningState, ZoneRecord, ZoneSigning, new_id)
from designate_pool.protocol import soa_rdata
from designate_pool.protocol.names_and_rdata import text_of_wire
from designate_pool.settings import SigningPolicy
from designate_pool.signing import key_states, keys, signer, verifier
from designate_pool.signing.signed_records import Validity
from designate_pool.storage.signing import signed_records
from designate_pool.storage.signing.zone_signing import state_of
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Tx
from designate_pool.storage.sql.entities import chunks
from designate_pool.storage.zones import versions

UNSIGNED = 'unsigned zones'
POLICY = SigningPolicy()
#: Seconds after a change in which its last statements are counted.
_AFTERMATH = 0.15
_SOA_NAMES = 'ns1.example.org. hostmaster.example.com.'
#: Zones that are written in one transaction, and those of which it is looked whether they are valid.
_AT_ONCE, _SAMPLE = 200, 100


def main(argv: Sequence[str] | None = None) -> int:
    options = _arguments(argv)
    result = report.Report('signed', {'zones': options.zones, 'records': options.records, 'changes': options.changes,
                                      'renewed': options.renewed})
    key = Fernet.generate_key().decode()
    sign_alone(options.alone, options.records, result)
    with tempfile.TemporaryDirectory(prefix='designate-pool-bench-') as name:
        with System(pathlib.Path(name), 'eventlet', keyed=True, central={
                'signing_keys': (key,), 'signing_policies': {'default': POLICY}}) as system:
            load = Load(system.central, 4, options.records)
            beside = measure_changes(system, load, options.zones, options.changes, result)
            renew(system, load, options.renewed, key, beside, result)
            turn_on_large(system, load, options.large, result)
    result.finish(options.json)
    return 0


def sign_alone(count: int, records: int, result: report.Report) -> None:
    """Zones signed from nothing, with keys of their own, without a database; processor time alone."""
    zones = [(Domain('0' * 32, name, '0' * 32, 'default', f'hostmaster@{name}', 3600, 1, soa_names=_SOA_NAMES),
              [(f'host{number}.{name}', 'A', 300, bytes((192, 0, 2, number % 250))) for number in range(records)])
             for name in names('alone', count)]
    started = time.process_time()
    made = [_make_keys() for _ in zones]
    generated = time.process_time()
    signatures = 0
    for (domain, rrsets), zone_keys in zip(zones, made):
        signed = _sign(domain, rrsets, zone_keys, int(time.time()) + POLICY.validity)
        signatures += sum(record.type == 'RRSIG' for record in signed.added)
    ended = time.process_time()
    result.add('keys made, for a second of processor', 2 * count / (generated - started), '/s')
    result.add('zones signed, for a second of processor', count / (ended - generated), '/s')
    result.add('zones created and signed, for a second of processor', count / (ended - started), '/s')
    result.add('signatures, for a second of processor', signatures / (ended - generated), '/s')


def _make_keys() -> list[tuple[SigningKey, bytes]]:
    """A KSK and a ZSK that are active, with their private parts."""
    made: list[tuple[SigningKey, bytes]] = []
    for role in (KeyRole.KSK, KeyRole.ZSK):
        public, private = keys.generate(role, tags=[key.tag for key, _ in made])
        made.append((SigningKey(new_id(), role, public[3], keys.tag_of(public), public, KeyState.ACTIVE, longest_ttls={
            key_states.SIGNED_TTL: 3600, key_states.DNSKEY_TTL: POLICY.dnskey_ttl,
            key_states.DS_TTL: POLICY.parent_ds_ttl}), private))
    return made


def _sign(domain: Domain, rrsets: Sequence[ZoneRecord], zone_keys: Sequence[tuple[SigningKey, bytes]],
          expiration: int) -> SignedDifference:
    """All records of the signer, of a zone with these records and keys."""
    signers = {key.id: keys.load(private, key.role) for key, private in zone_keys}
    return signer.sign_change(
        domain.name, {record[0]: () for record in rrsets},
        (domain.name, 'SOA', domain.ttl, soa_rdata.encode_as(domain.soa_names, domain)),
        keys.key_set(domain.name, [key for key, _ in zone_keys], signers, POLICY.dnskey_ttl),
        Validity(expiration - POLICY.validity, expiration, POLICY.jitter), 'NSEC', _Unsigned(rrsets))


class _Unsigned:
    """What is around the names of a zone of which nothing is signed yet."""

    def __init__(self, records: Sequence[ZoneRecord]) -> None:
        self._records = records

    def predecessors(self, chain_keys: Collection[bytes]) -> Mapping[bytes, SignedRecord]:
        return {}

    def signed_at(self, names_: Collection[str]) -> Iterable[SignedRecord]:
        return []

    def rrsets_at(self, names_: Collection[str]) -> Iterable[ZoneRecord]:
        return [record for record in self._records if record[0] in names_]

    def names_below(self, name: str, limit: int | None = None) -> Iterable[str]:
        return []


def measure_changes(system: System, load: Load, zones: int, count: int, result: report.Report) -> Sequence[Domain]:
    """One change after the other, each when the one before is ACTIVE; the unsigned zones."""
    watch = Watch(system)
    unsigned = load.create(names('plain', zones))
    watch.all_active('plain', zones, most_seconds(zones))
    before = _statements(system, watch, load, unsigned)
    signed = load.create(names('signed', zones))
    started = time.monotonic()
    load.each(lambda domain: system.central.dnssec.enable(CLIENT, domain.id), signed)
    result.add('zones turned on, a second', zones / (time.monotonic() - started), '/s')
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
    started = time.monotonic()
    ids = write_signed(system, load, count, key)
    result.say(f'{count} signed zones were written in {time.monotonic() - started:.0f} s')
    table = schema.zone_signing
    system.storage.run(lambda tx: tx.execute(sa.update(table).values(next_event_at=None, resign_at=None)))
    due = sa.select(sa.func.count()).select_from(table).where(table.c.resign_at <= sa.bindparam('now'))
    began = int(time.time())

    def run(some: Sequence[str]) -> tuple[float, float]:
        """The seconds that it takes for some of them, and those of the processor, in this thread."""
        system.storage.run(_have_due, some, system.storage.now())
        begun = time.monotonic(), time.thread_time()
        while system.storage.read(lambda tx: tx.execute(due, {'now': system.storage.now()}).scalar_one()):
            system.central.dnssec.run_due()
        taken = time.monotonic() - begun[0], time.thread_time() - begun[1]
        result.say(f'signatures of {len(some)} zones were renewed in {taken[0]:.0f} s, {taken[1]:.0f} s of processor')
        return taken

    halves = ids[:count // 2], ids[count // 2:]
    quiet, changed, turns = load.change_and_wait(watch := Watch(system), beside, 2 * len(beside)), [], itertools.cycle(
        beside)
    seconds, processor = run(halves[0])
    with ThreadPoolExecutor(1) as renewing:
        ended = renewing.submit(run, halves[1])
        while not ended.done():
            changed += load.change_and_wait(watch, [next(turns)], 1)
    check_renewed(system, ids, began)
    result.add('signatures renewed: zones a second', len(halves[0]) / seconds, '/s')
    result.add('signatures renewed: processor for each zone', 1000 * processor / len(halves[0]), 'ms')
    result.add(f'signatures of {count} zones renewed', (seconds + ended.result()[0]) / 60, 'min')
    result.add(f'signatures of {count} zones renewed: processor', (processor + ended.result()[1]) / 60, 'min')
    result.add('one change of an unsigned zone while signatures are renewed: median', statistics.median(changed), 'ms',
               statistics.median(quiet), 'while none are')
    result.add('signatures renewed: zones a second, while zones are changed', len(halves[1]) / ended.result()[0], '/s')


def _have_due(tx: Tx, ids: Sequence[str], now: datetime) -> None:
    table = schema.zone_signing
    for part in chunks(ids):
        tx.execute(sa.update(table).where(table.c.domain_id.in_(part)).values(resign_at=now))


def write_signed(system: System, load: Load, count: int, key: str) -> Sequence[str]:
    """Zones whose signatures end soon, and whose keys their parents know, in a pool without servers, many in one
    transaction; their ids."""
    pool = system.central.create_pool(CLIENT, {'name': 'many', 'name_servers': ['ns1.example.org.']})
    sealing, end = ZoneSigner({}, (key,)), int(time.time()) + POLICY.refresh // 2
    servers = [rdata.wire for rdata in domain_rules.ns_rdatas(pool.name_servers)]

    def write(some: Sequence[str]) -> list[str]:
        zones = [NewZone(new_id(), NewDomain(name, 'hostmaster@example.com', pool_id=pool.id),
                         requests.recordsets([*load.recordsets(name)])) for name in some]
        rrsets = {zone.domain_id: [(each.name, each.type, 3600, rdata.wire) for each in zone.sets
                                   for rdata in each.rdatas] for zone in zones}
        zone_keys = {zone.domain_id: _make_keys() for zone in zones}

        def sign(tx: Tx, created: Sequence[Domain]) -> None:
            now = system.storage.now()
            domain_changes.apply_reports(tx, CLIENT, [Report(
                each.id, each.action, each.generation, Outcome.SUCCESS, each.serial) for each in created], now,
                system.central.dnssec.journal)
            tx.execute(sa.update(schema.domains).where(schema.domains.c.id.in_(rrsets))
                       .values(is_signed=True, soa_names=_SOA_NAMES))
            times = {'created_at': now, 'updated_at': now}
            tx.execute(sa.insert(schema.zone_keys), [
                dataclasses.asdict(each) | times | {'domain_id': domain_id, 'private': sealing.seal(each.id, private)}
                for domain_id, some_keys in zone_keys.items() for each, private in some_keys])
            tx.execute(sa.insert(schema.zone_signing), [dataclasses.asdict(ZoneSigning(
                each.id, 'default', 13, 'NSEC', now, SigningState.SECURE)) | times for each in created])
            signed_records.replace(tx, {each.id: _sign(
                dataclasses.replace(each, soa_names=_SOA_NAMES),
                [*((each.name, 'NS', 3600, wire) for wire in servers), *rrsets[each.id]], zone_keys[each.id], end)
                for each in created})

        system.central.creator.create_many(CLIENT, zones, also=sign)
        return list(rrsets)

    return [domain_id for some in chunks(names('many', count), _AT_ONCE) for domain_id in write(some)]


def check_renewed(system: System, ids: Sequence[str], began: int) -> None:
    """No signature of these zones is an old one, and some of the zones are valid as servers get them."""
    ends = system.storage.read(signed_records.expiries, ids)
    least = began + POLICY.validity - POLICY.jitter
    left = [domain_id for domain_id in ids if (ends[domain_id][0] or 0) < least]
    assert not left, (len(left), system.storage.read(state_of, left[0]))
    program = shutil.which('ldns-verify-zone')
    for domain_id in ids[::max(1, len(ids) // _SAMPLE)]:
        zone = list(versions.whole_zone(system.storage.stream(versions.permitted_pages, domain_id)))
        assert verifier.verify_zone(zone, int(time.time()), POLICY.refresh) == []
        if program is not None:
            subprocess.run([program], check=True, text=True, stdout=subprocess.DEVNULL, input=''.join(
                f'{name} {ttl} IN {rtype} {text_of_wire(rtype, wire)}\n' for name, rtype, ttl, wire in zone))


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
        options.zones, options.changes, options.alone, options.renewed, options.large = 5, 20, 100, 200, 2000
    return options


if __name__ == '__main__':
    sys.exit(main())
