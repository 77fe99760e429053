"""Zones that Central signs, as they are stored for servers: every version is valid."""

from __future__ import annotations

import base64
import dataclasses
import functools
import pathlib
import random
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import dns.rdata
import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet

from designate_pool import deadline, errors
from designate_pool.central.purger import Purger
from designate_pool.central.service import Central
from designate_pool.central.signing import key_events, parent_ds, zone_signer
from designate_pool.deadline import Deadline, Turns
from designate_pool.model import (LAST_STAGE, ChangeKind, Context, Domain, Endpoint, KeyRole, KeyState, Outcome, Pool,
                                  Report, Server, SignedDifference, SigningKey, SigningState, Status, ZoneRecord)
from designate_pool.pool_manager.periodic import signature_audit
from designate_pool.pool_manager.server_registry import write_servers
from designate_pool.settings import CentralSettings, SigningPolicy
from designate_pool.signing import canonical, chain, keys, signer, verifier
from designate_pool.signing.signed_records import KeySet, Validity
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import pools
from designate_pool.storage.sql.secrets import MARK
from designate_pool.storage.zones import domains, versions
from testing.databases import count_statements
from tests.fixtures.central import SERVERS, WHO, Caller, Clock, create, refused, started, succeed
from tests.unit.signing.zones import said_by

RED = Context(project_id='red', user='red')
POLICIES = {
    'default': SigningPolicy(dnskey_ttl=60, propagation_delay=10, parent_ds_ttl=100, zsk_lifetime=40 * 86400),
    'told': SigningPolicy(dnskey_ttl=60, propagation_delay=10, parent_ds_ttl=100, signal_project='blue'),
    'hashed': SigningPolicy(denial='NSEC3', algorithm='ED25519', keys='csk'),
}
HOUR = 3600
KEYS = (Fernet.generate_key().decode(),)


@pytest.fixture
def central(database: Storage, caller: Caller, clock: Clock) -> Iterator[Central]:
    with started(database, caller, signing_keys=KEYS, signing_policies=POLICIES) as service:
        yield service


def published(database: Storage, domain: Domain, stage: int = LAST_STAGE) -> list[ZoneRecord]:
    """All records that servers get, of a stage in a staged release, with the SOA."""
    return list(versions.whole_zone(database.stream(versions.permitted_pages, domain.id, iter, stage)))


def check(database: Storage, clock: Clock, domain: Domain, stage: int = LAST_STAGE) -> list[ZoneRecord]:
    """What is published, which is valid."""
    records = published(database, domain, stage)
    assert verifier.verify_zone(records, int(clock.now), 0) == []
    return records


def at_apex(database: Storage, clock: Clock, zone: Domain) -> set[str]:
    """What a zone asks its parent for."""
    return {f'{rtype} {dns.rdata.from_wire("IN", rtype, wire, 0, len(wire)).to_text()}'
            for name, rtype, _, wire in check(database, clock, zone)
            if rtype in ('CDS', 'CDNSKEY') and name == zone.name}


def types_of(records: list[ZoneRecord], name: str) -> set[str]:
    return {record[1] for record in records if record[0] == name}


def change(central: Central, domain: Domain, *changes: tuple[str, str, list[str]], ttl: int | None = None,
           who: Context = RED) -> Domain:
    return central.apply_changes(who, domain.id, [
        {'name': name, 'type': rtype, 'records': records, 'ttl': ttl} for name, rtype, records in changes])


@pytest.mark.parametrize('policy', POLICIES)
def test_a_zone_is_signed_and_stays_valid_through_changes(central: Central, database: Storage, clock: Clock,
                                                          policy: str) -> None:
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']),
                    ('a.b.example.com.', 'TXT', ['"deep"']), who=RED)
    assert succeed(central, domain).status is Status.ACTIVE
    shown = central.dnssec.enable(RED, domain.id, policy)
    assert shown.state.state is SigningState.SIGNED
    signed = central.get_domain(RED, domain.id)
    assert signed.status is Status.ACTIVE and signed.is_signed and signed.serial != domain.serial
    check(database, clock, domain)
    dice = random.Random(3)
    names = ['www', 'a.b', 'b', '*.w', 'x.y.z', r'odd\.y.z', 'sub', 'host.sub', 'c']
    datas = {'A': ['192.0.2.1', '192.0.2.2'], 'NS': ['ns.example.net.', 'host.sub.example.com.'],
             'MX': ['10 Mail.example.net.'], 'TXT': ['"x"', r'"\000"'], 'DS': [f'1 13 2 {"ab" * 32}']}
    for _ in range(40):
        clock.now += 60
        name, rtype = dice.choice(names), dice.choice([*datas])
        try:
            change(central, domain, (f'{name}.example.com.', rtype, dice.sample(datas[rtype], dice.randint(0, 1))),
                   ttl=dice.choice([None, 60, 600]))
        except errors.PoolError:
            continue  # a rule for records
        check(database, clock, domain)
    central.update_domain(RED, domain.id, {'ttl': 77, 'email': 'root@example.org'})
    records = check(database, clock, domain)
    assert {record[2] for record in records if record[1] in ('NSEC', 'NSEC3')} == {77}
    pool_id = domain.pool_id
    central.update_pool(WHO, {'id': pool_id, 'name_servers': SERVERS[::-1]})
    check(database, clock, domain)


def rows(database: Storage) -> int:
    count = sa.select(sa.func.count()).select_from(schema.signed_records)
    return database.read(lambda tx: tx.execute(count).scalar_one())


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request or a look does one small piece."""
    for name in ('MOST_PREPARED', 'MOST_RENEWED'):
        monkeypatch.setattr(zone_signer, name, 4)
    for name in ('IN_REQUEST', '_MOST_PIECES'):
        monkeypatch.setattr(key_events, name, 1)


def large(central: Central) -> Domain:
    """A zone of more records than one piece signs."""
    return create(central, 'example.com.', *((f'host{number:02}.example.com.', 'A', ['192.0.2.1'])
                                             for number in range(20)), who=RED)


@pytest.mark.usefixtures('in_pieces')
@pytest.mark.parametrize(('database_kind', 'policy'), [
    *(('sqlite', policy) for policy in POLICIES), ('mariadb', 'default'), ('postgresql', 'hashed')],
    indirect=['database_kind'])
def test_a_large_zone_is_signed_in_pieces_while_it_changes_and_is_published_at_once(
        central: Central, database: Storage, clock: Clock, caller: Caller, policy: str) -> None:
    domain = large(central)
    central.dnssec.enable(RED, domain.id, policy)
    dice, seen = random.Random(5), []
    with started(database, caller, signing_keys=KEYS, signing_policies=POLICIES) as other:
        for number in range(60):
            name = f'{dice.choice(["a.b.", "sub.", "zz.", "*."])}host{dice.randrange(25):02}.example.com.'
            try:
                change(central, domain, (name, *dice.choice([
                    ('A', ['192.0.2.9']), ('A', []), ('NS', ['ns.example.net.']), ('NS', []), ('TXT', ['"x"'])])))
            except errors.PoolError:
                pass  # a rule for records
            if number == 5:  # what was prepared has other TTLs now, and is prepared again
                central.update_domain(RED, domain.id, {'ttl': 77})
            if number == 8:
                central.update_pool(WHO, {'id': domain.pool_id, 'name_servers': SERVERS[::-1]})
            if number == 10:
                second = central.create_pool(WHO, {'name': 'second', 'name_servers': ['ns1.example.net.']})
                database.run(write_servers, Pool('second', servers=(Server('2' * 32, 'bind9', '192.0.2.53'),)), False,
                             False, clock.moment())
                central.move_domain(WHO, domain.id, second.id)
            if number == 12:
                assert refused(change, central, domain, (domain.name, 'NSEC3PARAM', ['1 0 0 -'])) == 'has_signatures'
            lived(dice.choice([central, other]), clock, domain, 1)
            seen.append(central.get_domain(RED, domain.id).is_signed)
            if not seen[-1]:
                shown = central.dnssec.show(RED, domain.id)
                assert shown.state.state is SigningState.SIGNING and {str(key.state) for key in shown.keys} == {'made'}
                assert types_of(published(database, domain), domain.name) == {'SOA', 'NS'}
    assert seen == sorted(seen) and 10 < seen.index(True) < 45
    check(database, clock, domain)
    kinds = [version.kind for version in central.find_versions(RED, domain.id, 99)]
    assert kinds.count(ChangeKind.SIGNING) == 1
    central.dnssec.disable(RED, domain.id, force=True)
    left = rows(database)
    assert left and types_of(published(database, domain), domain.name) == {'SOA', 'NS'}
    change(central, domain, ('last.example.com.', 'A', ['192.0.2.1']))
    lived(central, clock, domain, 1)
    assert 0 < rows(database) < left
    central.dnssec.enable(RED, domain.id, policy)  # again, before all of that is deleted
    for _ in range(80):
        lived(central, clock, domain, 1)
    check(database, clock, domain)


@pytest.mark.all_databases
@pytest.mark.usefixtures('in_pieces')
def test_what_ends_the_signing_of_a_large_zone_half_way_leaves_nothing(central: Central, database: Storage,
                                                                       clock: Clock) -> None:
    domain = large(central)

    def begin() -> None:
        central.dnssec.enable(RED, domain.id)
        for _ in range(4):
            lived(central, clock, domain, 1)
        assert rows(database) and not central.get_domain(RED, domain.id).is_signed

    begin()
    central.dnssec.disable(RED, domain.id)
    for _ in range(20):
        lived(central, clock, domain, 1)
    assert not rows(database) and not central.get_domain(RED, domain.id).soa_names
    assert refused(central.dnssec.show, RED, domain.id) == 'zone_not_signed'
    begin()
    central.frozen_pools.freeze(WHO, domain.pool_id, 'an incident')
    left = rows(database)
    lived(central, clock, domain, 90)
    assert rows(database) == left
    central.frozen_pools.unfreeze(WHO, domain.pool_id)
    lived(central, clock, domain, 90)
    assert rows(database) > left
    central.delete_domain(RED, domain.id)
    succeed(central, domain)
    lived(central, clock, domain, 90)
    central.restore_domain(RED, domain.id)
    for _ in range(30):
        lived(central, clock, domain, 1)
    check(database, clock, domain)
    central.delete_domain(RED, domain.id)
    succeed(central, domain)
    central.purge_domain(RED, domain.id)
    Purger(database, CentralSettings()).purge()
    assert not rows(database)


def lived(central: Central, clock: Clock, domain: Domain, seconds: float) -> None:
    """Time passes, and what is due is done."""
    clock.now += seconds
    central.dnssec.run_due()


def states(central: Central, domain: Domain) -> list[str]:
    return sorted(f'{key.role} {key.state}' for key in central.dnssec.show(RED, domain.id).keys)


def test_keys_live_from_the_first_signature_to_the_end_of_signing(central: Central, database: Storage,
                                                                  clock: Clock) -> None:
    domain = create(central, 'example.com.', *((f'host{number}.example.com.', 'A', ['192.0.2.1'])
                                               for number in range(20)), who=RED)
    succeed(central, domain)
    central.dnssec.enable(RED, domain.id)
    assert states(central, domain) == ['KSK published', 'ZSK active']
    assert refused(central.dnssec.confirm_ds, RED, domain.id, True) == 'nothing_offered'
    assert 'CDS' not in types_of(check(database, clock, domain), domain.name)
    lived(central, clock, domain, 1)
    lived(central, clock, domain, 4 * HOUR)  # caches have nothing unsigned any more
    shown = central.dnssec.show(RED, domain.id)
    assert shown.state.state is SigningState.DS_WAIT and len(shown.ds) == 1
    assert 'CDS' in types_of(check(database, clock, domain), domain.name)
    assert refused(central.delete_domain, RED, domain.id) == 'ds_at_parent'
    database.run(zone_signing.report_ds, {domain.id: {'192.0.2.53:53': shown.ds, '192.0.2.54:53': []}}, clock.moment())
    lived(central, clock, domain, 1)
    assert central.dnssec.show(RED, domain.id).state.state is SigningState.DS_WAIT
    central.dnssec.confirm_ds(RED, domain.id, True)
    assert central.dnssec.show(RED, domain.id).state.state is SigningState.SECURE
    lived(central, clock, domain, 200)
    assert states(central, domain) == ['KSK active', 'ZSK active']
    for role in ('ZSK', 'KSK'):  # each is rolled, and the zone is valid all along
        former = {key.tag for key in central.dnssec.show(RED, domain.id).keys}
        central.dnssec.roll(RED, domain.id, role)
        for _ in range(12):
            lived(central, clock, domain, HOUR)
            check(database, clock, domain)
            if any('ready' in state for state in states(central, domain)):
                central.dnssec.confirm_ds(RED, domain.id, True)
        assert states(central, domain) == ['KSK active', 'ZSK active'], role
        assert len(former & {key.tag for key in central.dnssec.show(RED, domain.id).keys}) == 1
    before = central.get_domain(RED, domain.id)
    for _ in range(15):  # signatures are renewed, and nothing of that is a change
        lived(central, clock, domain, 86400)
        check(database, clock, domain)
    after = central.get_domain(RED, domain.id)
    assert after.serial != before.serial and after.status is Status.ACTIVE and after.changed_at == before.changed_at
    shown_off = central.dnssec.disable(RED, domain.id)
    with pytest.raises(errors.Refused, match='to have no DS any more'):
        central.dnssec.confirm_ds(RED, domain.id, True)
    assert shown_off is not None and shown_off.state.state is SigningState.DS_LEAVING
    check(database, clock, domain)
    central.dnssec.confirm_ds(RED, domain.id, False)
    lived(central, clock, domain, 60)
    check(database, clock, domain)
    lived(central, clock, domain, 100)
    assert {record[1] for record in published(database, domain)} == {'SOA', 'NS', 'A'}
    gone = central.get_domain(RED, domain.id)
    assert not gone.is_signed and not gone.soa_names and gone.status is Status.ACTIVE
    assert refused(central.dnssec.show, RED, domain.id) == 'zone_not_signed'
    central.dnssec.enable(RED, domain.id)  # the second round
    check(database, clock, domain)
    central.dnssec.disable(RED, domain.id, force=True)
    lived(central, clock, domain, 200)
    central.delete_domain(RED, domain.id)


def test_a_restored_zone_is_signed_anew_with_its_keys(central: Central, database: Storage, clock: Clock) -> None:
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
    tags = {key.tag for key in central.dnssec.enable(RED, domain.id).keys}
    central.delete_domain(RED, domain.id)
    succeed(central, domain)
    clock.now += 30 * 86400
    lived(central, clock, domain, 1)
    central.restore_domain(RED, domain.id)
    assert not central.get_domain(RED, domain.id).is_signed
    lived(central, clock, domain, 1)
    check(database, clock, domain)
    assert {key.tag for key in central.dnssec.show(RED, domain.id).keys} == tags
    serial = central.get_domain(RED, domain.id).serial
    change(central, domain, ('www.example.com.', 'A', ['192.0.2.7']))
    revert = central.plan_revert(RED, domain.id, str(serial))
    central.revert_domain(RED, domain.id, revert)
    assert ('www.example.com.', 'A') in {record[:2] for record in check(database, clock, domain)}


def test_what_cannot_be_signed_is_refused_with_words(central: Central, database: Storage, clock: Clock,
                                                     caller: Caller) -> None:
    with started(database, caller, signing_policies=POLICIES) as without_keys:
        domain = create(without_keys, 'example.org.', who=RED)
        assert refused(without_keys.dnssec.enable, RED, domain.id) == 'no_signing_keys_file'
    assert refused(central.dnssec.enable, RED, domain.id, 'unknown') == 'invalid_object'
    assert refused(central.dnssec.roll, RED, domain.id, 'ZSK') == 'zone_not_signed'
    assert refused(central.dnssec.enable, Context(project_id='blue'), domain.id) == 'zone_not_found'
    own = create(central, 'other.example.', ('other.example.', 'DNSKEY', ['257 3 13 ' + 'A' * 86 + '==']), who=RED)
    assert refused(central.dnssec.enable, RED, own.id) == 'has_signatures'
    long = create(central, '.'.join(['a' * 63] * 3 + ['b' * 18, 'example.com.']), who=RED)
    assert refused(central.dnssec.enable, RED, long.id, 'hashed') == 'name_too_long'
    central.dnssec.enable(RED, domain.id)
    for rtype, text in (('CDS', f'1 13 2 {"ab" * 32}'), ('NSEC3PARAM', '1 0 0 -')):
        assert refused(change, central, domain, (domain.name, rtype, [text])) == 'has_signatures'
    assert refused(central.dnssec.roll, RED, domain.id, 'KSK') == 'no_active_key'
    assert refused(central.dnssec.skip_server, RED, domain.id, 'ns9', 'it is gone') == 'invalid_object'


def test_a_revert_to_records_of_a_signer_is_refused_with_its_plan(central: Central, clock: Clock) -> None:
    domain = create(central, 'example.com.', ('example.com.', 'CDNSKEY', ['0 3 0 AA==']), who=RED)
    before = domain.serial
    clock.now += 10
    change(central, domain, ('example.com.', 'CDNSKEY', []))
    central.dnssec.enable(RED, domain.id)
    assert refused(central.plan_revert, RED, domain.id, str(before)) == 'has_signatures'
    assert central.plan_revert(RED, domain.id, str(before), is_checked=False).changes


@pytest.mark.parametrize(('server', 'why'), [
    (Server('0' * 32, 'pdns-native', '192.0.2.53'), 'fed record by record'),
    (Server('0' * 32, 'pdns', '192.0.2.53', options={'ixfr': True}), 'ixfr = true')])
def test_a_pool_whose_servers_do_not_serve_signatures_gets_no_signed_zone(
        central: Central, database: Storage, clock: Clock, server: Server, why: str) -> None:
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
    pool = central.create_pool(WHO, {'name': 'second', 'name_servers': ['ns1.example.org.']})
    database.run(write_servers, Pool('second', servers=(server,)), False, False, clock.moment())
    central.dnssec.enable(RED, domain.id)
    before = check(database, clock, domain)
    with pytest.raises(errors.Refused, match=why):
        central.move_domain(WHO, domain.id, pool.id)
    assert sorted(published(database, domain)) == sorted(before)
    server = dataclasses.replace(server, id='1' * 32)
    with pytest.raises(errors.InvalidField, match=f'has signed zones, such as example.com.: .*{why}'):
        database.run(write_servers, Pool('default', servers=(server,)), False, False, clock.moment())
    central.dnssec.disable(RED, domain.id, force=True)
    database.run(write_servers, Pool('default', servers=(server,)), False, False, clock.moment())
    other = create(central, 'other.example.', who=RED)
    assert refused(central.dnssec.enable, RED, other.id) == 'server_cannot_sign'
    central.drain_server(WHO, server.id)
    central.dnssec.enable(RED, other.id)
    with pytest.raises(errors.WrongServerState, match=f'has signed zones, such as other.example.: .*{why}'):
        central.resume_server(WHO, server.id)
    database.run(write_servers, Pool('default', servers=(server,)), False, False, clock.moment())  # it stays out
    database.run(write_servers, Pool('default'), False, False, clock.moment())
    with pytest.raises(errors.InvalidField, match=f'has signed zones, such as other.example.: .*{why}'):
        database.run(write_servers, Pool('default', servers=(server,)), False, False, clock.moment())


def test_the_validation_of_a_zone_verifies_its_signatures(central: Central, database: Storage, clock: Clock) -> None:
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
    central.dnssec.enable(RED, domain.id)
    assert not [found for found in central.validate_domain(RED, domain.id) if found.rule.id == 'signatures']
    clock.now += 22 * 86400  # nobody has renewed them
    found = [found for found in central.validate_domain(RED, domain.id) if found.rule.id == 'signatures']
    assert found and 'www.example.com.' in ' '.join(violation.why for violation in found)


def test_the_audit_verifies_a_zone_as_servers_get_it(central: Central, database: Storage, clock: Clock,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)

    def found(seconds: float = 60.0) -> list[str] | None:
        return signature_audit.defects(database, domain.id, int(clock.now), Deadline(seconds))

    assert found() is None
    central.dnssec.enable(RED, domain.id)
    assert found() == []
    assert found(0) is None
    with database.engine.begin() as connection:
        connection.execute(sa.update(schema.records).where(schema.records.c.wire == bytes((192, 0, 2, 1))).values(
            wire=bytes((192, 0, 2, 66))))
    assert (found() or [''])[0].startswith('A of www.example.com.: the signature by the key')
    monkeypatch.setattr(verifier, 'verify_zone', lambda *_: [])  # other programs find it, too
    assert any(line.startswith('dnssec-verify says: ') and 'www.example.com A' in line for line in found() or ())
    monkeypatch.setattr(shutil, 'which', lambda name: None if name == 'dnssec-verify' else f'/usr/bin/{name}')
    assert any(line.startswith('ldns-verify-zone says: ') and 'www.example.com.' in line for line in found() or ())
    monkeypatch.setattr(shutil, 'which', lambda name: None)
    assert found() == []
    monkeypatch.setattr(signature_audit, 'MOST_RECORDS', 5)
    assert found() is None


def test_a_staged_release_is_aborted_before_the_signatures_that_servers_have_end(
        central: Central, database: Storage, clock: Clock) -> None:
    domain = secured(central, clock)
    database.run(lambda tx: tx.execute(sa.update(pools).values(release_stages='canary a; all')) and None)
    change(central, domain, ('www.example.com.', 'A', ['192.0.2.2']))
    days = 0
    while central.get_domain(RED, domain.id).release is not None:
        days += 1
        lived(central, clock, domain, 86400)
        for stage in (1, 2):
            records = check(database, clock, domain, stage)
            ends = min(int.from_bytes(wire[8:12], 'big') for _, rtype, _, wire in records if rtype == 'RRSIG')
            assert ends - clock.now > domain.expire
        assert days < 30
    assert days > 10 and ('www.example.com.', 'A', bytes([192, 0, 2, 1])) in {
        (name, rtype, wire) for name, rtype, _, wire in check(database, clock, domain)}
    for _ in range(40):
        lived(central, clock, domain, 86400)
        check(database, clock, domain)


def test_a_signed_zone_is_released_in_stages_and_valid_on_the_servers_of_each(central: Central, database: Storage,
                                                                              clock: Clock) -> None:
    def report(outcome: Outcome = Outcome.SUCCESS) -> None:
        newest = central.get_domain(WHO, domain.id)
        released, release = newest.permitted_at(0), newest.release
        assert released is not None and release is not None
        central.update_statuses(WHO, [Report(domain.id, newest.action, newest.generation, outcome, released.serial,
                                             newest.pool_name, release.stage, 'it died')])

    def addresses() -> list[set[bytes]]:
        return [{wire for _, rtype, _, wire in check(database, clock, domain, stage) if rtype == 'A'}
                for stage in (1, 2, 3)]

    one, two, three = (bytes([192, 0, 2, number]) for number in (1, 2, 3))
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
    central.dnssec.enable(RED, domain.id)
    succeed(central, domain)
    database.run(lambda tx: tx.execute(sa.update(pools).values(release_stages='canary a; 50 %; all')) and None)
    change(central, domain, ('www.example.com.', 'A', ['192.0.2.2']))
    assert addresses() == [{two}, {one}, {one}]
    serial = central.get_domain(WHO, domain.id).serial
    clock.now += 10 * 86400
    central.dnssec.run_due()
    renewed = central.get_domain(WHO, domain.id)
    assert (renewed.serial > serial, renewed.least_serial) == (True, serial)
    assert addresses() == [{two}, {one}, {one}]
    report()
    assert addresses() == [{two}, {two}, {one}]
    report()
    renewed = central.get_domain(WHO, domain.id)
    assert renewed.release_state is None and addresses() == [{two}] * 3
    assert len({frozenset(published(database, domain, stage)) for stage in (1, 2, 3)}) == 1
    central.update_status(WHO, renewed, Outcome.SUCCESS, renewed.serial)
    change(central, domain, ('www.example.com.', 'A', ['192.0.2.3']))
    report(Outcome.ERROR)
    held = central.get_domain(WHO, domain.id)
    assert (held.status, held.release and held.release.turned_back) == (Status.ERROR, None)
    assert addresses() == [{three}, {two}, {two}]
    change(central, domain, ('new.example.com.', 'A', ['192.0.2.1']))
    assert addresses() == [{three}, {two}, {two}]
    central.abort_release(WHO, domain.id)
    assert addresses() == [{two}] * 3


def break_signer(monkeypatch: pytest.MonkeyPatch, defect: str) -> None:
    """Have the signer make a mistake from now on."""
    sign_change, key_set, chain_rdata = signer.sign_change, zone_signer.key_set, chain.chain_rdata

    def broken_change(*arguments: Any) -> SignedDifference:
        gone, added = sign_change(*arguments)
        if defect == 'bit flip':
            number = next(number for number, record in enumerate(added) if record.type == 'RRSIG')
            flipped = added[number].wire[:-1] + bytes((added[number].wire[-1] ^ 1,))
            return SignedDifference(gone, [*added[:number], added[number]._replace(wire=flipped), *added[number + 1:]])
        return SignedDifference(gone, [record for record in added if defect != 'no NSEC' or not (
            record.name == 'new.example.com.' and 'NSEC' in (record.type, record.covered))])

    def broken_keys(*arguments: Any) -> KeySet:
        found = key_set(*arguments)
        return found if defect != 'an algorithm too few' else found._replace(
            dnskeys=[*found.dnskeys, keys.generate('ZSK', keys.ED25519)[0]])

    def broken_rdata(denial: str, following: bytes, types: bytes) -> bytes:
        return chain_rdata(denial, canonical.name_wire('wrong.example.com.') if defect == 'wrong next name' else
                           following, canonical.type_bitmap(frozenset({1, 15, 46, 47}))
                           if defect == 'a type too many' else types)

    monkeypatch.setattr(signer, 'sign_change', broken_change)
    monkeypatch.setattr(zone_signer, 'key_set', broken_keys)
    monkeypatch.setattr(chain, 'chain_rdata', broken_rdata)
    if defect == 'expiry too near':
        monkeypatch.setattr(zone_signer, 'Validity', lambda begin, end, jitter: Validity(begin, begin + 4 * HOUR, 0))


DEFECTS = ('bit flip', 'no NSEC', 'wrong next name', 'a type too many', 'an algorithm too few', 'expiry too near')


@pytest.mark.parametrize('defect', DEFECTS)
def test_signatures_with_a_defect_are_not_published(central: Central, database: Storage, clock: Clock, defect: str,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
    central.dnssec.enable(RED, domain.id)
    before = check(database, clock, domain)
    break_signer(monkeypatch, defect)
    assert refused(change, central, domain, ('new.example.com.', 'A', ['192.0.2.2'])) == 'signatures_wrong'
    assert sorted(published(database, domain)) == sorted(before)
    monkeypatch.undo()


def test_no_private_key_is_in_the_database_in_logs_or_in_messages(
        central: Central, database: Storage, clock: Clock, caller: Caller, caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    generate = keys.generate

    def remembered(*arguments: Any) -> tuple[bytes, bytes]:
        public, private = generate(*arguments)
        made.append(private)
        return public, private

    monkeypatch.setattr(keys, 'generate', remembered)
    told: list[object] = []
    with caplog.at_level('DEBUG'):
        domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
        told.append(central.dnssec.enable(RED, domain.id))
        for role in ('ZSK', 'ZSK'):
            lived(central, clock, domain, 4 * HOUR)
            told.append(central.dnssec.roll(RED, domain.id, role))
            change(central, domain, ('www.example.com.', 'TXT', [f'"{role}"']))
        break_signer(monkeypatch, 'bit flip')
        assert refused(change, central, domain, ('new.example.com.', 'A', ['192.0.2.2'])) == 'signatures_wrong'
        lived(central, clock, domain, 41 * 86400)
    with database.engine.connect() as connection:
        dump = '\n'.join(repr(tuple(row)) for table in schema.metadata.sorted_tables
                         for row in connection.execute(sa.select(table)))
    assert len(made) >= 3 and MARK in dump
    for private in made:
        secret = private[36:68]  # the number that is the key, in PKCS #8 of P-256
        for text in (secret.hex(), *(base64.b64encode(private[offset:])[4:40].decode() for offset in range(33, 36)),
                     repr(secret)[2:-1]):
            for place in (dump, caplog.text, repr(caller.cast_domains), repr(told), repr(central.dnssec.show(
                    RED, domain.id))):
                assert text not in place and text.upper() not in place


def test_a_key_whose_private_part_is_another_one_of_the_same_tag_signs_nothing(
        central: Central, database: Storage, clock: Clock, caller: Caller, caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[int, list[tuple[bytes, bytes]]] = {}
    while max(map(len, found.values()), default=0) < 3:  # of 3,000 keys, three have one tag
        public, private = keys.generate('ZSK')
        found.setdefault(keys.tag_of(public), []).append((public, private))
    tag, trio = next((tag, pairs) for tag, pairs in found.items() if len(pairs) == 3)
    generate, wanted = keys.generate, trio[0]
    monkeypatch.setattr(keys, 'generate', lambda role, *rest: wanted if role == 'ZSK' else generate(role, *rest))
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
    shown = central.dnssec.enable(RED, domain.id)
    zsk, = (key for key in shown.keys if key.role == 'ZSK')
    assert zsk.tag == tag
    before = check(database, clock, domain)
    for _, private in trio[1:]:  # a token, or a database that was put together of two, has another one for the id
        sealed = zone_signer.ZoneSigner(POLICIES, KEYS).seal(zsk.id, private)
        database.run(lambda tx: tx.execute(sa.update(schema.zone_keys).where(schema.zone_keys.c.id == zsk.id).values(
            private=sealed)))
        with started(database, caller, signing_keys=KEYS, signing_policies=POLICIES) as other:
            assert refused(change, other, domain, ('new.example.com.', 'A', ['192.0.2.2'])) == 'signatures_wrong'
    assert sorted(published(database, domain)) == sorted(before)
    assert 'its signatures are wrong' in caplog.text and str(tag) in caplog.text


def test_keys_of_one_zone_have_different_tags(central: Central, database: Storage, clock: Clock,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    by_role: dict[str, dict[int, tuple[bytes, bytes]]] = {'KSK': {}, 'ZSK': {}}
    generate = keys.generate
    while not (tags := by_role['KSK'].keys() & by_role['ZSK'].keys()):
        for role, by_tag in by_role.items():
            pair = generate(role)
            by_tag[keys.tag_of(pair[0])] = pair
    tag = tags.pop()
    monkeypatch.setattr(keys, 'generate', lambda role, algorithm, others: by_role[role][tag] if tag not in others
                        else generate(role, algorithm, others))
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
    assert tag in {key.tag for key in central.dnssec.enable(RED, domain.id).keys}
    check(database, clock, domain)


def bind_keys(folder: pathlib.Path, zone: str, algorithm: str, *flags: str) -> list[tuple[str, str]]:
    """Keys that BIND makes: the texts of their files."""
    command = ['dnssec-keygen', '-q', '-K', str(folder), '-a', algorithm, '-b', '2048']
    names = [subprocess.run([*command, *flag.split(), zone], capture_output=True, text=True, timeout=60,
                            check=True).stdout.strip() for flag in flags]
    return [((folder / f'{name}.private').read_text(), (folder / f'{name}.key').read_text()) for name in names]


@pytest.mark.parametrize(('policy', 'algorithm', 'flags'), [
    ('default', 'RSASHA256', ('-f KSK', '')), ('default', 'ECDSAP256SHA256', ('-f KSK', '')),
    ('hashed', 'ED25519', ('-f KSK',))])
def test_a_zone_moves_in_with_its_keys_and_out_again(central: Central, database: Storage, clock: Clock, policy: str,
                                                     algorithm: str, flags: Sequence[str],
                                                     tmp_path: pathlib.Path) -> None:
    clock.now = time.time() + 60  # BIND's keys have times
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
    files = bind_keys(tmp_path, 'example.com', algorithm, *flags)
    shown = central.dnssec.import_keys(RED, domain.id, files, policy)
    assert shown.state.state is SigningState.SECURE
    tag = keys.tag_of(keys.read_dnskey(files[0][1])[1])
    assert [ds.split()[0] for ds in shown.ds] == [str(tag)]  # the parent has it
    assert 'CDS' in types_of(check(database, clock, domain), domain.name)
    assert refused(central.delete_domain, RED, domain.id) == 'ds_at_parent'
    change(central, domain, ('new.example.com.', 'A', ['192.0.2.7']))
    check(database, clock, domain)
    assert refused(central.dnssec.import_keys, RED, domain.id, files[:1], policy) == 'key_present'
    exported = central.dnssec.export_keys(RED, domain.id)
    copies = [(private, public) for _, public, private in exported]
    central.dnssec.disable(RED, domain.id, force=True)
    lived(central, clock, domain, 2 * 86400)
    assert central.get_domain(RED, domain.id).is_signed is False
    central.dnssec.import_keys(RED, domain.id, copies, policy)  # into a zone that once had them
    other = create(central, 'example.org.', who=RED)
    assert refused(central.dnssec.import_keys, RED, other.id, copies, policy) == 'invalid_object'  # of another zone
    assert central.dnssec.show(RED, domain.id).ds == shown.ds
    check(database, clock, domain)
    following, = bind_keys(tmp_path, 'example.com', algorithm, '-f KSK')  # made elsewhere for a rollover
    central.dnssec.import_keys(RED, domain.id, [following])
    role = 'CSK' if policy == 'hashed' else 'KSK'
    for _ in range(60):
        lived(central, clock, domain, 2 * HOUR)
        check(database, clock, domain)
        if f'{role} ready' in states(central, domain):
            central.dnssec.confirm_ds(RED, domain.id, True)
    assert central.dnssec.show(RED, domain.id).ds != shown.ds
    central.dnssec.roll(RED, domain.id, role)  # to a key of the same algorithm
    assert {key.algorithm for key in central.dnssec.show(RED, domain.id).keys} == {shown.keys[0].algorithm}


def test_keys_with_which_a_zone_would_not_be_valid_are_refused(central: Central, clock: Clock,
                                                               tmp_path: pathlib.Path) -> None:
    clock.now = time.time() + 60
    domain = create(central, 'example.com.', who=RED)
    ksk, zsk, second = bind_keys(tmp_path, 'example.com', 'ECDSAP256SHA256', '-f KSK', '', '')
    ed25519, = bind_keys(tmp_path, 'example.com', 'ED25519', '')
    ended, = bind_keys(tmp_path, 'example.com', 'ECDSAP256SHA256', '-P -1d -A -1d -I -1h -D -1h')
    for files, why in (([ksk], 'keys_incomplete'), ([ksk, zsk, second], 'keys_incomplete'),
                       ([ksk, ed25519], 'other_algorithm'), ([ksk, ended], 'invalid_object'),
                       ([(ksk[0], zsk[1])], 'invalid_object'), ([(ksk[0], '; nothing')], 'invalid_object')):
        assert refused(central.dnssec.import_keys, RED, domain.id, files) == why
        assert refused(central.dnssec.show, RED, domain.id) == 'zone_not_signed'
    by_tag: dict[int, tuple[bytes, bytes]] = {}
    while by_tag.setdefault(tag := keys.tag_of((pair := keys.generate('ZSK'))[0]), pair) is pair:
        pass  # until two have one tag
    zsk, same_tag = ((private, public) for dnskey, key in (by_tag[tag], pair) for _, public, private in [
        keys.bind_files(domain.name, SigningKey('', KeyRole.ZSK, 13, tag, dnskey), key)])
    central.dnssec.import_keys(RED, domain.id, [ksk, zsk])
    assert refused(central.dnssec.import_keys, RED, domain.id, [ed25519]) == 'other_algorithm'
    assert refused(central.dnssec.import_keys, RED, domain.id, [same_tag]) == 'key_tag_present'


def test_a_restored_database_signs_with_no_key_before_it_is_known_to_be_the_one_that_is_relied_on(
        central: Central, database: Storage, clock: Clock, tmp_path: pathlib.Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    clock.now = time.time() + 60
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
    plain = create(central, 'example.org.', who=RED)
    central.dnssec.import_keys(RED, domain.id, bind_keys(tmp_path, 'example.com', 'ECDSAP256SHA256', '-f KSK', ''))
    after_backup = bind_keys(tmp_path, 'example.com', 'ECDSAP256SHA256', '-f KSK', '')  # made after the backup
    dnskeys = {keys.read_dnskey(public)[1] for _, public in after_backup}
    ds = {Endpoint('192.0.2.53', 53): [keys.ds_text(keys.ds(domain.name, key, 2)) for key in dnskeys if key[1] & 1]}
    before = check(database, clock, domain)
    central.renew_pool(WHO, domain.pool_id)
    assert central.get_domain(RED, plain.id).serial > plain.serial
    assert database.read(zone_signing.count_held, domain.pool_id, 9) == 1
    assert refused(change, central, domain, ('www.example.com.', 'A', ['192.0.2.7'])) == 'signing_held'
    assert refused(central.dnssec.disable, RED, domain.id) == 'signing_held'
    assert refused(central.delete_domain, RED, domain.id) == 'ds_at_parent'
    assert refused(central.update_pool, WHO, {'id': domain.pool_id, 'name_servers': ['ns9.example.org.']}) \
        == 'signing_held'
    lived(central, clock, domain, 20 * 86400)
    assert published(database, domain) == before
    own = {key.public for key in central.dnssec.show(RED, domain.id).keys}
    for served, parent, why in ((None, ds, 'not all of its servers'), (dnskeys, ds, 'the database lacks'),
                                (own, ds, 'DS of one'), (own, {Endpoint('192.0.2.53', 53): None}, 'DS of one')):
        with pytest.raises(errors.Refused, match=why):
            central.dnssec.resume(RED, domain.id, parent, served)
    central.dnssec.import_keys(RED, domain.id, after_backup)
    shown = central.dnssec.resume(RED, domain.id, ds, dnskeys)
    assert database.read(zone_signing.count_held, domain.pool_id, 9) == 0
    assert shown.state.state is SigningState.SECURE and shown.ds == ds[Endpoint('192.0.2.53', 53)]
    check(database, clock, domain)
    change(central, domain, ('www.example.com.', 'A', ['192.0.2.7']))
    lived(central, clock, domain, HOUR)
    check(database, clock, domain)
    assert refused(central.dnssec.resume, RED, domain.id, ds, dnskeys) == 'not_held'
    central.renew_pool(WHO, domain.pool_id)
    clock.now += 12 * 86400  # all signatures are due, and are renewed in pieces that no server gets
    for name, module in (('MOST_RENEWED', zone_signer), ('IN_REQUEST', key_events), ('_MOST_PIECES', key_events)):
        monkeypatch.setattr(module, name, 1)
    head = published(database, domain)[0]
    shown = central.dnssec.resume(RED, domain.id, {}, None, force=True)
    pieces = 0
    while shown.state.state is SigningState.HELD:
        pieces += 1
        assert published(database, domain)[0] == head
        assert refused(change, central, domain, ('www.example.com.', 'A', ['192.0.2.8'])) == 'signing_held'
        lived(central, clock, domain, 1)
        shown = central.dnssec.show(RED, domain.id)
    assert shown.state.state is SigningState.SECURE and 3 < pieces < 20
    check(database, clock, domain)


@pytest.mark.usefixtures('in_pieces')
def test_a_zone_that_is_resumed_is_valid_while_its_signatures_are_renewed_by_a_policy_with_a_lower_refresh(
        central: Central, database: Storage, clock: Clock, caller: Caller) -> None:
    domain = large(central)
    database.run(lambda tx: tx.execute(sa.update(schema.domains).values(expire=3600000)).close())
    former = {'default': dataclasses.replace(POLICIES['default'], refresh=12 * 86400)}
    with started(database, caller, signing_keys=KEYS, signing_policies=former) as other:
        other.dnssec.enable(RED, domain.id)
        while not central.get_domain(RED, domain.id).is_signed:
            lived(other, clock, domain, 1)
    assert central.get_domain(RED, domain.id).expire == 12 * 86400
    central.renew_pool(WHO, domain.pool_id)  # as after the database was restored
    clock.now += 12 * 86400
    shown, pieces = central.dnssec.resume(RED, domain.id, {}, None, force=True), 0
    while shown.state.state is SigningState.HELD:
        pieces += 1
        check(database, clock, domain)
        lived(central, clock, domain, 1)
        shown = central.dnssec.show(RED, domain.id)
    check(database, clock, domain)
    assert pieces > 3 and central.get_domain(RED, domain.id).expire == POLICIES['default'].refresh


@pytest.mark.all_databases
def test_two_centrals_do_what_is_due_once(central: Central, database: Storage, clock: Clock, caller: Caller) -> None:
    domain = create(central, 'example.com.', who=RED)
    central.dnssec.enable(RED, domain.id)
    clock.now += 12 * 86400  # signatures are to be renewed
    before = central.get_domain(RED, domain.id)
    with started(database, caller, signing_keys=KEYS, signing_policies=POLICIES) as other:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda each: each.dnssec.run_due(), [central, other, central, other]))
        check(database, clock, domain)
        change(other, domain, ('www.example.com.', 'A', ['192.0.2.1']))
    assert 'www.example.com.' in {record[0] for record in check(database, clock, domain)}
    new = [version for version in central.find_versions(RED, domain.id, 10) if version.serial > before.serial]
    assert [version.kind for version in new] == [ChangeKind.API, ChangeKind.SIGNING]


@pytest.mark.all_databases
def test_two_centrals_change_one_zone_at_the_same_time(central: Central, database: Storage, clock: Clock,
                                                       caller: Caller) -> None:
    domain = create(central, 'example.com.', who=RED)
    central.dnssec.enable(RED, domain.id)
    with started(database, caller, signing_keys=KEYS, signing_policies=POLICIES) as other:
        def work(number: int) -> None:
            where = (central, other)[number % 2]
            if number == 5:
                where.dnssec.roll(RED, domain.id, 'ZSK')
            change(where, domain, (f'host{number}.example.com.', 'A', ['192.0.2.1']))

        with ThreadPoolExecutor(4) as clients:
            list(clients.map(work, range(12)))
    assert {f'host{number}.example.com.' for number in range(12)} <= {
        record[0] for record in check(database, clock, domain)}


@pytest.mark.all_databases
def test_a_key_is_forgotten_a_month_after_the_end_of_signing(central: Central, database: Storage,
                                                             clock: Clock) -> None:
    domain = create(central, 'example.com.', who=RED)
    central.dnssec.enable(RED, domain.id)
    central.dnssec.disable(RED, domain.id, force=True)
    lived(central, clock, domain, 200)
    purger = Purger(database, CentralSettings())
    for days, count in ((29, 2), (2, 0)):
        clock.now += days * 86400
        purger.purge()
        assert len(database.read(zone_signing.keys_of, [domain.id])[domain.id]) == count


def test_zones_that_wait_for_their_parents_keep_no_signatures_from_being_renewed(
        central: Central, database: Storage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_events, 'MOST', 4)
    waiting = [create(central, f'zone{number}.example.org.', who=RED) for number in range(key_events.MOST + 1)]
    domain = create(central, 'example.com.', who=RED)
    for each in (*waiting, domain):
        central.dnssec.enable(RED, each.id)
    lived(central, clock, domain, 1)
    for _ in range(30):
        lived(central, clock, domain, 86400 / 2)
    assert all(central.dnssec.show(RED, each.id).state.state is SigningState.DS_WAIT for each in waiting)
    for each in (*waiting, domain):
        check(database, clock, each)
        assert len([version for version in central.find_versions(RED, each.id, 50)]) < 10


def test_signatures_of_zones_are_renewed_together_and_a_zone_that_cannot_be_keeps_no_other_one_from_it(
        central: Central, database: Storage, clock: Clock, caller: Caller) -> None:
    zones = [create(central, f'zone{number}.example.', who=RED) for number in range(8)]
    for zone in zones:
        central.dnssec.enable(RED, zone.id)
        lived(central, clock, zone, 1)
    keep = {zone.id: [key.id for key in central.dnssec.show(RED, zone.id).keys] for zone in zones}
    table = schema.zone_keys

    def renewed() -> set[str]:
        before = {zone.id: central.get_domain(RED, zone.id).serial for zone in zones}
        clock.now += 12 * 86400
        database.run(lambda tx: tx.execute(sa.update(schema.zone_signing).values(next_event_at=None)) and None)
        with started(database, caller, signing_keys=KEYS, signing_policies=POLICIES) as other:
            with count_statements(database) as counter:
                other.dnssec.run_due()
            statements.append(counter.total())
        return {zone.name for zone in zones if central.get_domain(RED, zone.id).serial != before[zone.id]}

    statements: list[int] = []
    assert renewed() == {zone.name for zone in zones}
    assert statements[0] <= 8 * len(zones), statements
    lost = zones[3]
    with database.engine.begin() as connection:
        connection.execute(sa.update(table).where(table.c.id.in_(keep[lost.id])).values(private='lost'))
    assert renewed() == {zone.name for zone in zones} - {lost.name}
    assert central.dnssec.show(RED, lost.id).state.why
    for zone in zones:
        if zone is not lost:
            check(database, clock, zone)


def test_others_have_their_turns_while_signatures_are_renewed(central: Central, database: Storage, clock: Clock,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    domain = create(central, 'example.com.', *((f'host{number}.example.com.', 'A', ['192.0.2.1'])
                                               for number in range(60)), who=RED)
    central.dnssec.enable(RED, domain.id)
    lived(central, clock, domain, 1)
    done: list[str] = []
    make = signer.signers_of

    def signers_of(*arguments: Any) -> Any:
        done.append('signed')
        return make(*arguments)

    monkeypatch.setattr(signer, 'signers_of', signers_of)
    monkeypatch.setattr(deadline, 'TURN', 0)
    monkeypatch.setattr(Turns, 'give', lambda turns: done.append('turn'))
    lived(central, clock, domain, 12 * 86400)
    assert done.count('signed') > 60
    assert max(len(run) for run in ' '.join(done).split('turn')) < 20 * len('signed ')


def test_the_ds_of_a_rolled_key_is_not_confirmed_before_it_is_offered(central: Central, database: Storage,
                                                                      clock: Clock) -> None:
    domain = create(central, 'example.com.', who=RED)
    central.dnssec.enable(RED, domain.id)
    lived(central, clock, domain, 1)
    lived(central, clock, domain, 4 * HOUR)
    central.dnssec.confirm_ds(RED, domain.id, True)
    lived(central, clock, domain, 200)
    central.dnssec.roll(RED, domain.id, 'KSK')
    central.dnssec.confirm_ds(RED, domain.id, True)  # of the active key, whose DS is still the one that is offered
    lived(central, clock, domain, 4 * HOUR)
    assert states(central, domain) == ['KSK active', 'KSK ready', 'ZSK active']
    shown = central.dnssec.show(RED, domain.id)
    new, = (key.tag for key in shown.keys if key.state is KeyState.READY)
    assert shown.state.why == f'the DS of the key {new} at the parent', 'not at who has confirmed the former one'
    with pytest.raises(errors.InvalidField, match='it is none of'):
        central.dnssec.skip_server(RED, domain.id, *shown.state.ds_seen, 'not a server')
    central.dnssec.confirm_ds(RED, domain.id, True)
    assert states(central, domain) == ['KSK active', 'KSK ds-seen', 'ZSK active']
    central.dnssec.confirm_ds(RED, domain.id, False)  # taken back
    assert states(central, domain) == ['KSK active', 'KSK ready', 'ZSK active']


def test_signing_that_ends_a_second_time_waits_for_the_ds_again(central: Central, database: Storage,
                                                                clock: Clock) -> None:
    domain = create(central, 'example.com.', who=RED)
    central.dnssec.enable(RED, domain.id)
    lived(central, clock, domain, 1)
    lived(central, clock, domain, 4 * HOUR)
    central.dnssec.confirm_ds(RED, domain.id, True)
    asked = at_apex(database, clock, domain)
    for _ in range(2):
        central.dnssec.disable(RED, domain.id)
        assert at_apex(database, clock, domain) == {'CDS 0 0 0 00', 'CDNSKEY 0 3 0 AA=='}
        central.dnssec.confirm_ds(RED, domain.id, False)
        central.dnssec.enable(RED, domain.id)
        assert at_apex(database, clock, domain) == asked
    central.dnssec.disable(RED, domain.id)
    lived(central, clock, domain, 86400)
    assert central.dnssec.show(RED, domain.id).state.state is SigningState.DS_LEAVING
    check(database, clock, domain)


def test_what_a_user_has_said_of_a_server_of_the_parent_that_does_not_answer_stays(
        central: Central, database: Storage, clock: Clock) -> None:
    domain = secured(central, clock)
    here, unreachable = '192.0.2.53:53', '[2001:db8::53]:53'

    def report(*ds: str) -> None:
        database.run(zone_signing.report_ds, {domain.id: {here: ds, unreachable: None}}, clock.moment())
        lived(central, clock, domain, 60)

    central.dnssec.disable(RED, domain.id)
    report()
    assert central.dnssec.show(RED, domain.id).state.why == f'the DS to be gone at {unreachable}'
    central.dnssec.confirm_ds(RED, domain.id, False)
    report(*central.dnssec.show(RED, domain.id).ds, f'1 13 2 {"ab" * 32}')
    assert central.dnssec.show(RED, domain.id).state.why == f'the DS to be gone at {here}'
    for _ in range(3):
        report()
    assert not central.get_domain(RED, domain.id).is_signed


@pytest.mark.all_databases
def test_what_the_parent_has_is_not_forgotten_by_a_step_that_was_under_way(central: Central, database: Storage,
                                                                           clock: Clock) -> None:
    domain = secured(central, clock)
    seen = {'192.0.2.53:53': list[str]()}

    def step(tx: Tx) -> None:
        """As one of Central, which writes all of the state that it has read."""
        domains.lock_many(tx, [domain.id])
        state = zone_signing.state_of(tx, domain.id)
        assert state is not None
        if tx.dialect.name != 'sqlite':  # where a transaction begins when no other one writes
            reported.append(others.submit(database.run, zone_signing.report_ds, {domain.id: seen}, clock.moment()))
            wait(reported, 1)
        zone_signing.save_state(tx, state, clock.moment())

    with ThreadPoolExecutor(1) as others:
        reported: list[Future[None]] = []
        database.run(step)
        for one in reported:
            one.result()
    state = database.read(zone_signing.state_of, domain.id)
    assert state is not None
    assert not reported or {server: list(ds or ()) for server, (_, ds) in state.ds_seen.items()} == seen


@pytest.mark.parametrize('policy', POLICIES)
def test_signing_that_goes_on_after_all_waits_for_the_ds_that_the_parent_may_have_removed(
        central: Central, database: Storage, clock: Clock, policy: str) -> None:
    domain = secured(central, clock, policy=policy)
    lived(central, clock, domain, 2 * 86400)
    ds = central.dnssec.show(RED, domain.id).ds
    central.dnssec.disable(RED, domain.id)
    database.run(zone_signing.report_ds, {domain.id: {'192.0.2.53:53': []}}, clock.moment())
    assert central.dnssec.enable(RED, domain.id, policy).state.state is SigningState.DS_WAIT
    check(database, clock, domain)
    for seen, state in ([], SigningState.DS_WAIT), (ds, SigningState.SECURE):
        database.run(zone_signing.report_ds, {domain.id: {'192.0.2.53:53': seen}}, clock.moment())
        lived(central, clock, domain, 60)
        shown = central.dnssec.show(RED, domain.id)
        assert shown.state.state is state and shown.ds == ds
    lived(central, clock, domain, 2 * 86400)
    assert 'active' in {key.state.value for key in central.dnssec.show(RED, domain.id).keys if key.role != 'ZSK'}
    check(database, clock, domain)


def test_signing_that_goes_on_in_a_rollover_is_not_secure_before_the_parent_has_a_ds(
        central: Central, database: Storage, clock: Clock) -> None:
    domain = secured(central, clock)
    central.dnssec.roll(RED, domain.id, 'KSK')
    central.dnssec.disable(RED, domain.id)
    database.run(zone_signing.report_ds, {domain.id: {'192.0.2.53:53': []}}, clock.moment())
    assert central.dnssec.enable(RED, domain.id).state.state is SigningState.DS_WAIT
    lived(central, clock, domain, 86400)
    assert states(central, domain) == ['KSK active', 'KSK ready', 'ZSK active']
    for seen, state in ([], SigningState.DS_WAIT), (central.dnssec.show(RED, domain.id).ds, SigningState.SECURE):
        database.run(zone_signing.report_ds, {domain.id: {'192.0.2.53:53': seen}}, clock.moment())
        lived(central, clock, domain, 60)
        assert central.dnssec.show(RED, domain.id).state.state is state
        check(database, clock, domain)


def test_a_key_that_signs_all_is_rolled(central: Central, database: Storage, clock: Clock,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_signer, 'MOST_RENEWED', 5)
    domain = create(central, 'example.com.', *((f'host{number}.example.com.', 'A', ['192.0.2.1'])
                                               for number in range(20)), who=RED)
    former, = central.dnssec.enable(RED, domain.id, 'hashed').keys
    for _ in range(20):
        lived(central, clock, domain, HOUR)
    central.dnssec.confirm_ds(RED, domain.id, True)
    lived(central, clock, domain, 2 * 86400)
    central.dnssec.roll(RED, domain.id, 'CSK')
    for _ in range(60):
        lived(central, clock, domain, 2 * HOUR)
        check(database, clock, domain)
        if 'CSK ready' in states(central, domain):
            central.dnssec.confirm_ds(RED, domain.id, True)
    last, = central.dnssec.show(RED, domain.id).keys
    assert last.tag != former.tag and last.state.value == 'active'


def test_a_key_that_cannot_be_published_keeps_no_signatures_from_being_renewed(
        central: Central, database: Storage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = secured(central, clock)
    key_set = zone_signer.key_set

    def without_ksk(*arguments: Any) -> KeySet:
        found = key_set(*arguments)
        if len(found.dnskeys) > 2:  # what signs the keys is away
            raise errors.ServiceUnavailable(service='the token', why='no answer')
        return found

    monkeypatch.setattr(zone_signer, 'key_set', without_ksk)
    central.dnssec.roll(RED, domain.id, 'ZSK')
    for _ in range(30):
        lived(central, clock, domain, 86400)
        check(database, clock, domain)
    assert 'no answer' in str(central.dnssec.show(RED, domain.id).state.why)
    monkeypatch.undo()
    lived(central, clock, domain, 86400)
    assert states(central, domain) == ['KSK active', 'ZSK active', 'ZSK published']


def test_keys_are_made_where_they_can_be_encrypted_alone(central: Central, database: Storage, clock: Clock,
                                                         caller: Caller) -> None:
    domain = create(central, 'example.com.', who=RED)
    central.dnssec.enable(RED, domain.id)
    with started(database, caller, signing_policies=POLICIES) as without:
        assert refused(without.dnssec.roll, RED, domain.id, 'ZSK') == 'no_signing_keys_file'
        clock.now += 41 * 86400
        without.dnssec.run_due()  # leaves it to others
    lived(central, clock, domain, 1)
    check(database, clock, domain)


def ds_in(central: Central, parent: Domain, child: Domain) -> set[str]:
    return {record.data for recordset in central.find_recordsets(RED, parent.id) for record in recordset.records
            if recordset.type == 'DS' and recordset.name == child.name}


def delegated(central: Central, clock: Clock, seconds: float = 4 * HOUR) -> tuple[Domain, Domain]:
    """A zone with a signed zone below it, whose DS it gets once these seconds are over."""
    parent = create(central, 'example.com.', ('sub.example.com.', 'NS', ['ns1.example.net.']), who=RED)
    child = create(central, 'sub.example.com.', who=RED)
    central.dnssec.enable(RED, child.id)
    assert not ds_in(central, parent, child)
    lived(central, clock, child, 1)
    lived(central, clock, child, seconds)
    return parent, child


def test_the_parent_zone_of_the_same_project_gets_the_ds_and_loses_it_before_the_signatures_go(
        central: Central, database: Storage, clock: Clock) -> None:
    parent, child = delegated(central, clock)
    central.dnssec.enable(RED, parent.id)
    first = ds_in(central, parent, child)
    assert first == set(central.dnssec.show(RED, child.id).ds) and first
    managed = next(one for one in central.find_recordsets(RED, parent.id) if one.type == 'DS')
    assert managed.managed and refused(central.delete_recordset, RED, parent.id, managed.id) == 'bad_request'
    for _ in range(2):  # seen at the parent, and its TTL is over
        lived(central, clock, child, 2 * HOUR)
    assert states(central, child) == ['KSK active', 'ZSK active']
    central.dnssec.roll(RED, child.id, 'KSK')
    for _ in range(5):
        lived(central, clock, child, 2 * HOUR)
        check(database, clock, parent)
    second = ds_in(central, parent, child)
    assert states(central, child) == ['KSK active', 'ZSK active'] and len(second) == 1 and second != first
    assert refused(central.delete_domain, RED, child.id) == 'ds_at_parent'
    central.set_lock(RED, parent.id, 'not now')
    central.dnssec.disable(RED, child.id, force=True)
    lived(central, clock, child, 86400)
    shown = central.dnssec.show(RED, child.id)
    assert shown.state.state is SigningState.DS_LEAVING and 'not now' in str(shown.state.why)
    assert ds_in(central, parent, child) == second and central.get_domain(RED, child.id).is_signed
    central.set_lock(RED, parent.id, None)
    lived(central, clock, child, 61)
    assert not ds_in(central, parent, child) and central.get_domain(RED, child.id).is_signed
    for _ in range(3):
        lived(central, clock, child, 2 * HOUR)
    assert not central.get_domain(RED, child.id).is_signed
    check(database, clock, parent)
    central.delete_domain(RED, child.id)


def test_keys_wait_for_every_server_of_the_parent_zone(central: Central, database: Storage, clock: Clock) -> None:
    parent, child = delegated(central, clock, 60)
    server = Server('2' * 32, 'bind9', '192.0.2.53')
    for _ in range(3):
        lived(central, clock, child, 4 * HOUR)
    assert states(central, child) == ['KSK active', 'ZSK active']
    database.run(write_servers, Pool('default', servers=(server,)), False, False, clock.moment())
    central.dnssec.disable(RED, child.id)
    lived(central, clock, child, 86400)
    shown = central.dnssec.show(RED, child.id)
    assert not ds_in(central, parent, child) and shown.state.state is SigningState.DS_LEAVING
    assert shown.state.why == f'the DS to be gone at {server.label}'
    central.dnssec.skip_server(RED, child.id, server.label, 'it is switched off')
    lived(central, clock, child, 2 * HOUR)
    lived(central, clock, child, 2 * HOUR)
    assert not central.get_domain(RED, child.id).is_signed


def test_the_ttl_that_a_user_has_given_the_ds_is_waited_for(central: Central, database: Storage,
                                                            clock: Clock) -> None:
    parent = create(central, 'example.com.', ('sub.example.com.', 'NS', ['ns1.example.net.']), who=RED)
    change(central, parent, ('sub.example.com.', 'DS', [f'1 13 2 {"ab" * 32}']), ttl=5 * 86400)
    child = create(central, 'sub.example.com.', who=RED)
    central.dnssec.enable(RED, child.id)
    for _ in range(14):
        lived(central, clock, child, 12 * HOUR)
    assert states(central, child) == ['KSK active', 'ZSK active']
    rolled(central, clock, child, 'KSK', 12 * HOUR, 8, ['KSK active', 'KSK ds-seen', 'ZSK active'], 4)
    central.dnssec.disable(RED, child.id)
    change(central, parent, ('sub.example.com.', 'DS', []))  # the user's own
    for _ in range(9):
        lived(central, clock, child, 12 * HOUR)
    assert not ds_in(central, parent, child) and central.get_domain(RED, child.id).is_signed
    for _ in range(3):
        lived(central, clock, child, 12 * HOUR)
    assert not central.get_domain(RED, child.id).is_signed


@pytest.mark.parametrize('meanwhile', ['rolled', 'unsigned'])
def test_a_parent_that_is_restored_has_the_ds_that_is_wanted_by_then(
        central: Central, database: Storage, clock: Clock, meanwhile: str) -> None:
    parent, child = delegated(central, clock)
    for _ in range(2):
        lived(central, clock, child, 2 * HOUR)
    former = ds_in(central, parent, child)
    central.delete_domain(RED, parent.id)
    succeed(central, parent)
    if meanwhile == 'rolled':
        central.dnssec.roll(RED, child.id, 'KSK')
    else:
        central.dnssec.disable(RED, child.id, force=True)
    for _ in range(4):
        lived(central, clock, child, 2 * HOUR)
    assert central.get_domain(RED, child.id).is_signed is (meanwhile == 'rolled')
    central.restore_domain(RED, parent.id)
    lived(central, clock, child, 1)
    wanted = set(central.dnssec.show(RED, child.id).ds) if meanwhile == 'rolled' else set()
    assert ds_in(central, parent, child) == wanted != former


@pytest.mark.parametrize('given', ['parent', 'child'])
def test_a_zone_that_gets_another_owner_keeps_its_ds_which_the_owner_of_the_parent_may_change(
        central: Central, database: Storage, clock: Clock, given: str) -> None:
    parent, child = delegated(central, clock)
    ds = ds_in(central, parent, child)
    for _ in range(2):
        lived(central, clock, child, 2 * HOUR)
    central.give_domain(dataclasses.replace(WHO, may_nest=True), (parent if given == 'parent' else child).id, 'blue')
    lived(central, clock, child, 6)
    recordset = next(one for one in central.find_recordsets(WHO, parent.id) if one.type == 'DS')
    assert not recordset.managed and {record.data for record in recordset.records} == ds
    central.dnssec.roll(WHO, child.id, 'KSK')
    for _ in range(4):
        lived(central, clock, child, 2 * HOUR)
    shown = central.dnssec.show(WHO, child.id)
    assert 'no DS in example.com., as it belongs to another project' in str(shown.state.why)
    assert not ds & set(shown.ds)


def test_a_parent_gets_no_ds_before_it_has_the_delegation(central: Central, database: Storage, clock: Clock) -> None:
    parent, child = create(central, 'example.com.', who=RED), create(central, 'sub.example.com.', who=RED)
    central.dnssec.enable(RED, child.id)
    lived(central, clock, child, 1)
    lived(central, clock, child, 4 * HOUR)
    assert 'it has no NS records of the zone' in str(central.dnssec.show(RED, child.id).state.why)
    change(central, parent, ('sub.example.com.', 'NS', ['ns1.example.net.']))
    lived(central, clock, child, HOUR)
    assert ds_in(central, parent, child)


def signals(central: Central, zone: Domain) -> dict[str, set[str]]:
    """The CDS and CDNSKEY records that a zone has of other zones: by name."""
    told: dict[str, set[str]] = {}
    for recordset in central.find_recordsets(WHO, zone.id):
        if recordset.type in ('CDS', 'CDNSKEY'):
            assert recordset.managed
            told.setdefault(recordset.name, set()).update(f'{recordset.type} {record.data}'
                                                          for record in recordset.records)
    return told


def test_keys_are_told_in_the_signed_zones_of_the_project_that_the_policy_names(
        central: Central, database: Storage, clock: Clock) -> None:
    blue = Context(project_id='blue', user='blue', may_nest=True)
    ours = create(central, '_signal.ns1.example.net.', who=blue)
    other = create(central, '_signal.ns2.example.net.', who=dataclasses.replace(RED, may_nest=True))
    for zone in (ours, other):
        central.dnssec.enable(WHO, zone.id)
    below, child = (create(central, name, who=dataclasses.replace(WHO, project_id='red', may_nest=True))
                    for name in ('ns1.example.net.', 'example.com.'))
    for zone in (below, child):
        central.dnssec.enable(RED, zone.id, 'told')
    lived(central, clock, child, 1)
    assert signals(central, ours) == {}  # nothing is offered yet
    for _ in range(2):
        lived(central, clock, child, 4 * HOUR)
    name = '_dsboot.example.com._signal.ns1.example.net.'
    first = at_apex(database, clock, child)
    assert len(first) == 2 and signals(central, ours) == {name: first} and signals(central, other) == {}
    central.dnssec.confirm_ds(RED, child.id, True)
    lived(central, clock, child, 200)
    central.dnssec.roll(RED, child.id, 'KSK')
    for _ in range(4):
        lived(central, clock, child, 2 * HOUR)
    second = at_apex(database, clock, child)
    assert not first & second and signals(central, ours) == {name: second}
    for _ in range(20):  # the signatures of these, too, are renewed
        lived(central, clock, child, 86400)
    check(database, clock, ours)
    central.dnssec.disable(RED, child.id)
    lived(central, clock, child, 1)
    assert signals(central, ours) == {name: {'CDS 0 0 0 00', 'CDNSKEY 0 3 0 AA=='}} and at_apex(
        database, clock, child) == signals(central, ours)[name]
    central.set_lock(blue, ours.id, 'not now')
    central.dnssec.confirm_ds(RED, child.id, False)
    for _ in range(3):
        lived(central, clock, child, 2 * HOUR)
    assert not central.get_domain(RED, child.id).is_signed and name in signals(central, ours)
    assert 'not now' in str(central.dnssec.show(RED, child.id).state.why)
    deleted = central.delete_domain(RED, child.id)
    central.update_status(WHO, deleted, Outcome.SUCCESS, deleted.serial)
    central.set_lock(blue, ours.id, None)
    lived(central, clock, child, 120)
    assert signals(central, ours) == {}
    check(database, clock, ours)


def test_a_zone_that_tells_of_others_is_given_away_or_unsigned(
        central: Central, database: Storage, clock: Clock) -> None:
    zones = [create(central, f'_signal.{name}', who=Context(project_id='blue', may_nest=True))
             for name in SERVERS]
    child = create(central, 'example.com.', who=RED)
    for zone, policy in ((zones[0], 'default'), (zones[1], 'default'), (child, 'told')):
        central.dnssec.enable(WHO, zone.id, policy)
    for _ in range(3):
        lived(central, clock, child, 4 * HOUR)
    first, second = (signals(central, zone) for zone in zones)
    assert len(first) == len(second) == 1
    central.give_domain(dataclasses.replace(WHO, may_nest=True), zones[0].id, 'green')
    central.dnssec.disable(WHO, zones[1].id, force=True)
    lived(central, clock, child, 4 * HOUR)
    central.dnssec.roll(RED, child.id, 'ZSK')
    sets = central.find_recordsets(WHO, zones[0].id)
    assert [(one.managed, {record.data for record in one.records}) for one in sets if one.type == 'CDS'] == [
        (False, {text.removeprefix('CDS ') for text in first.popitem()[1] if text.startswith('CDS ')})]
    assert signals(central, zones[1]) == {}
    central.dnssec.enable(WHO, zones[1].id)
    check(database, clock, zones[0])


def rolled(central: Central, clock: Clock, domain: Domain, role: str, seconds: float, first: int, half: list[str],
           then: int) -> None:
    """Roll a key: the states are *half* way after *first* times so many seconds, and at rest after *then* more."""
    central.dnssec.roll(RED, domain.id, role)
    for times, expected in (first, half), (then, ['KSK active', 'ZSK active']):
        for _ in range(times):
            lived(central, clock, domain, seconds)
        assert states(central, domain) == expected


def secured(central: Central, clock: Clock, name: str = 'example.com.', policy: str = 'default') -> Domain:
    """A signed zone whose parent has its DS."""
    domain = create(central, name, (f'www.{name}', 'A', ['192.0.2.1']), who=RED)
    succeed(central, domain)
    central.dnssec.enable(RED, domain.id, policy)
    lived(central, clock, domain, 1)
    lived(central, clock, domain, 4 * HOUR)
    central.dnssec.confirm_ds(RED, domain.id, True)
    lived(central, clock, domain, 200)
    return domain


def test_a_key_is_waited_for_with_ttls_that_were_published_while_it_was_in_use(central: Central, database: Storage,
                                                                               clock: Clock) -> None:
    domain = secured(central, clock)
    change(central, domain, ('www.example.com.', 'A', ['192.0.2.1']), ttl=86400)
    change(central, domain, ('www.example.com.', 'A', ['192.0.2.1']), ttl=60)
    rolled(central, clock, domain, 'ZSK', 2 * HOUR, 10, ['KSK active', 'ZSK active', 'ZSK retiring'], 5)


def test_a_zone_is_signed_on_as_it_is_when_its_policy_has_changed(
        central: Central, database: Storage, clock: Clock, caller: Caller, tmp_path: pathlib.Path) -> None:
    clock.now -= 29 * 86400  # at the end signatures are valid now
    domain = secured(central, clock)
    changed = {'default': dataclasses.replace(POLICIES['default'], keys='csk', denial='NSEC3', algorithm='ED25519')}
    with started(database, caller, signing_keys=KEYS, signing_policies=changed) as other:

        def algorithms() -> set[int]:
            """Those of all signatures of the zone, which is valid for BIND too."""
            records = check(database, clock, domain)
            assert said_by(['dnssec-verify', '-z', '-o', domain.name], records, tmp_path) == ''
            return {wire[2] for _, rtype, _, wire in records if rtype == 'RRSIG'}

        for _ in range(4):
            lived(other, clock, domain, 5 * 86400)
            check(database, clock, domain)
        change(other, domain, ('new.example.com.', 'A', ['192.0.2.1']))
        assert {'NSEC'} == types_of(check(database, clock, domain), 'new.example.com.') - {'A', 'RRSIG'}
        for role in ('ZSK', 'KSK'):
            former = {key.tag for key in other.dnssec.show(RED, domain.id).keys}
            other.dnssec.roll(RED, domain.id, role)
            for _ in range(6):
                assert algorithms() == {13}
                lived(other, clock, domain, 2 * HOUR)
                if any('ready' in state for state in states(other, domain)):
                    other.dnssec.confirm_ds(RED, domain.id, True)
            assert states(other, domain) == ['KSK active', 'ZSK active']
            assert len(former & {key.tag for key in other.dnssec.show(RED, domain.id).keys}) == 1
        why = other.dnssec.show(RED, domain.id).state.why or ''
        assert 'without algorithm = ED25519, denial = NSEC3, keys = csk of the policy' in why
        assert 'without' not in (central.dnssec.show(RED, domain.id).state.why or '')
        other.dnssec.disable(RED, domain.id)
        other.dnssec.enable(RED, domain.id)  # before it is unsigned
        assert algorithms() == {13}
        other.dnssec.disable(RED, domain.id)
        other.dnssec.confirm_ds(RED, domain.id, False)
        lived(other, clock, domain, 200)
        assert not other.get_domain(RED, domain.id).is_signed
        other.dnssec.enable(RED, domain.id)
        assert algorithms() == {15} and states(other, domain) == ['CSK published']
        assert not other.dnssec.show(RED, domain.id).state.why


def test_a_server_that_is_cut_off_forgets_a_zone_before_its_signatures_end(
        central: Central, database: Storage, clock: Clock, caller: Caller) -> None:
    def is_forgotten_in_time() -> bool:
        records = check(database, clock, domain)
        ends = min(int.from_bytes(wire[8:12], 'big') for _, rtype, _, wire in records if rtype == 'RRSIG')
        refresh, retry, expire, _ = struct.unpack('!4I', records[0][3][-16:])
        now = central.get_domain(RED, domain.id)
        assert (now.refresh, now.retry, now.expire) == (refresh, retry, expire)
        return clock.now + expire <= ends and refresh < expire and retry < expire

    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
    database.run(lambda tx: tx.execute(sa.update(schema.domains).values(expire=3600000)).close())  # as it was imported
    central.dnssec.enable(RED, domain.id)
    succeed(central, domain)
    assert central.get_domain(RED, domain.id).expire == POLICIES['default'].refresh and is_forgotten_in_time()
    quick = {'default': dataclasses.replace(POLICIES['default'], refresh=2 * HOUR)}
    with started(database, caller, signing_keys=KEYS, signing_policies=quick) as other:
        for _ in range(21 * 12):
            lived(other, clock, domain, 2 * HOUR)
            assert is_forgotten_in_time()
        assert central.get_domain(RED, domain.id).expire == 2 * HOUR
        assert central.get_domain(RED, domain.id).status is Status.ACTIVE


def test_the_former_expire_is_back_after_a_release_in_which_signing_has_ended(
        central: Central, database: Storage, clock: Clock, caller: Caller) -> None:
    domain = secured(central, clock)
    database.run(lambda tx: tx.execute(sa.update(pools).values(release_stages='canary a; all')) and None)
    quick = {'default': dataclasses.replace(POLICIES['default'], refresh=2 * HOUR)}
    with started(database, caller, signing_keys=KEYS, signing_policies=quick) as other:
        assert change(other, domain, ('www.example.com.', 'A', ['192.0.2.9'])).expire == 2 * HOUR
        other.dnssec.disable(RED, domain.id, force=True)
        aborted = other.abort_release(WHO, domain.id)
    assert not aborted.is_signed and aborted.expire == domain.expire
    assert central.get_domain(RED, domain.id).expire == domain.expire
    assert published(database, domain)[0][3].endswith(struct.pack('!2I', domain.expire, domain.minimum))


def test_a_lower_expire_comes_with_the_next_change(central: Central, database: Storage, clock: Clock,
                                                   caller: Caller) -> None:
    domain = secured(central, clock)
    quick = {'default': dataclasses.replace(POLICIES['default'], refresh=2 * HOUR)}
    with started(database, caller, signing_keys=KEYS, signing_policies=quick) as other:
        change(other, domain, ('www.example.com.', 'A', ['192.0.2.9']))
    assert central.get_domain(RED, domain.id).expire == 2 * HOUR
    timers = struct.pack('!4I', HOUR, domain.retry, 2 * HOUR, domain.minimum)
    assert check(database, clock, domain)[0][3].endswith(timers)


def test_signatures_are_renewed_in_a_frozen_pool(central: Central, database: Storage, clock: Clock) -> None:
    domain = secured(central, clock)
    waiting = secured(central, clock, 'example.org.')
    central.frozen_pools.freeze(WHO, domain.pool_id, 'an incident')
    before = central.get_domain(RED, domain.id)
    change(central, waiting, ('new.example.org.', 'A', ['192.0.2.7']))
    central.dnssec.roll(RED, domain.id, 'ZSK')
    for day in range(40):
        lived(central, clock, domain, 86400)
        for each in (domain, waiting):
            records = check(database, clock, each)
            least = min(int.from_bytes(record[3][8:12], 'big') for record in records if record[1] == 'RRSIG')
            assert least - clock.now > before.expire, (day, each.name)
        is_held = ('new.example.org.', 'A') not in {record[:2] for record in records}
        assert is_held if day < 5 else day < 20 or not is_held
    assert central.get_domain(RED, domain.id).serial != before.serial
    assert states(central, domain) == ['KSK active', 'ZSK active', 'ZSK made']
    central.frozen_pools.unfreeze(WHO, domain.pool_id)
    for _ in range(12):
        lived(central, clock, domain, HOUR)
    assert states(central, domain) == ['KSK active', 'ZSK active']
    assert ChangeKind.RELEASE in {version.kind for version in central.find_versions(RED, waiting.id, 50)}


def test_a_request_that_is_repeated_changes_nothing_more(central: Central, database: Storage, clock: Clock) -> None:
    domain = secured(central, clock)
    assert central.dnssec.enable(RED, domain.id).state.state is SigningState.SECURE
    assert refused(central.dnssec.enable, RED, domain.id, 'hashed') == 'signed_already'
    for _ in range(3):
        central.dnssec.roll(RED, domain.id, 'ZSK')
    assert states(central, domain) == ['KSK active', 'ZSK active', 'ZSK published']
    central.dnssec.disable(RED, domain.id)
    central.dnssec.confirm_ds(RED, domain.id, False)
    central.dnssec.disable(RED, domain.id)  # what was confirmed stays
    lived(central, clock, domain, 200)
    assert not central.get_domain(RED, domain.id).is_signed
    assert central.dnssec.disable(RED, domain.id) is None


def test_signing_that_ends_by_force_ends_at_once(central: Central, database: Storage, clock: Clock) -> None:
    domain = secured(central, clock)
    central.dnssec.disable(RED, domain.id)
    central.dnssec.disable(RED, domain.id, force=True)
    assert {record[1] for record in published(database, domain)} == {'SOA', 'NS', 'A'}


@pytest.mark.parametrize('ahead', [-300, 300])
def test_signatures_are_valid_elsewhere_when_the_clock_is_wrong(central: Central, database: Storage, clock: Clock,
                                                                ahead: float) -> None:
    right = clock.now
    clock.now += ahead
    domain = create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']), who=RED)
    central.dnssec.enable(RED, domain.id)
    change(central, domain, ('new.example.com.', 'A', ['192.0.2.2']))
    policy = POLICIES['default']
    assert verifier.verify_zone(published(database, domain), int(right),
                                policy.validity - policy.jitter - 300) == []


def test_a_key_is_rolled_though_signatures_are_renewed_more_often_than_its_ttl(
        database: Storage, clock: Clock, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    served: dict[str, int] = {}
    monkeypatch.setattr(parent_ds, 'served_by', lambda tx, domain: {'ns1': served.get(domain.id)})
    policy = dataclasses.replace(POLICIES['default'], dnskey_ttl=2 * 86400)
    with started(database, caller, signing_keys=KEYS, signing_policies={'default': policy}) as central:
        domain = create(central, 'example.com.', who=RED)
        central.dnssec.enable(RED, domain.id)
        for half_day in range(40):
            change(central, domain, (f'host{half_day}.example.com.', 'A', ['192.0.2.1']))
            lived(central, clock, domain, 12 * HOUR)
            served[domain.id] = central.get_domain(RED, domain.id).serial
            lived(central, clock, domain, 6)
            if half_day == 30:
                former = {key.tag for key in central.dnssec.show(RED, domain.id).keys}
                central.dnssec.roll(RED, domain.id, 'ZSK')
        assert 'ZSK published' not in states(central, domain)
        assert {key.tag for key in central.dnssec.show(RED, domain.id).keys} != former
        check(database, clock, domain)


@pytest.mark.parametrize('ahead', [3 * 86400, 300 * 86400])
def test_signatures_that_begin_in_the_future_are_renewed_when_the_clock_is_right_again(
        central: Central, database: Storage, clock: Clock, ahead: float) -> None:
    domain = secured(central, clock)
    other = secured(central, clock, 'example.org.')  # of which only one RRset is signed meanwhile
    right = clock.now
    clock.now += ahead
    change(central, domain, ('www.example.com.', 'A', ['192.0.2.7']))
    central.dnssec.run_due()
    change(central, other, ('new.example.org.', 'A', ['192.0.2.7']))
    clock.now = right + 60
    assert verifier.verify_zone(published(database, other), int(clock.now), 0)
    lived(central, clock, domain, 60)
    for each in (domain, other):
        check(database, clock, each)
    for _ in range(8):  # a rollover that was begun then goes on, as if it had been begun now
        lived(central, clock, domain, 6 * HOUR)
        check(database, clock, domain)
    assert states(central, domain) == ['KSK active', 'ZSK active']
    before = central.get_domain(RED, domain.id).serial
    for _ in range(3):
        lived(central, clock, domain, 3000)
    assert central.get_domain(RED, domain.id).serial == before


def test_a_zone_without_its_keys_keeps_the_others_from_no_new_name_servers(
        central: Central, database: Storage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [create(central, f'zone{number}.example.', who=RED) for number in range(6)]
    lost = sorted(made, key=lambda each: each.id)[2]
    for each in (lost, made[0]):
        central.dnssec.enable(RED, each.id)
    sign = zone_signer.ZoneSigner.sign

    def sign_others(self: Any, tx: Any, changes: Any, now: Any) -> Any:
        if any(entry.domain.id == lost.id for entry, _, _ in changes):
            raise errors.UnreadableSecret(name='x', why='no key can')
        return sign(self, tx, changes, now)

    def without_new() -> list[str]:
        return [each.name for each in made if not any(
            rtype == 'NS' and b'ns9' in wire for _, rtype, _, wire in published(database, each))]

    with monkeypatch.context() as broken:
        broken.setattr(central._journal, '_sign', functools.partial(sign_others, central.dnssec._signer))
        central.update_pool(WHO, {'id': lost.pool_id, 'name_servers': ['ns9.example.net.', *SERVERS]})
        assert without_new() == [lost.name]
        check(database, clock, lost)
        clock.now += 61
        central.backlog.resume_renewals()
        assert without_new() == [lost.name]
        central.frozen_pools.freeze(WHO, lost.pool_id, 'not held up')
        central.frozen_pools.unfreeze(WHO, lost.pool_id)
    clock.now += 61
    central.backlog.resume_renewals()
    assert without_new() == []
    check(database, clock, lost)
    serials = [central.get_domain(RED, each.id).serial for each in made]
    clock.now += 61
    central.backlog.resume_renewals()
    assert serials == [central.get_domain(RED, each.id).serial for each in made]


def test_a_zone_that_waits_for_new_name_servers_can_be_deleted(
        central: Central, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = create(central, who=RED)
    central.dnssec.enable(RED, lost.id)

    def fails(*_: Any) -> Any:
        raise errors.UnreadableSecret(name='x', why='no key can')

    with monkeypatch.context() as broken:
        broken.setattr(central._journal, '_sign', fails)
        central.update_pool(WHO, {'id': lost.pool_id, 'name_servers': ['ns9.example.net.', *SERVERS]})
    deleted = central.delete_domain(RED, lost.id)
    clock.now += 61
    central.backlog.resume_renewals()
    assert central.get_domain(RED, lost.id) == deleted


def test_a_server_is_skipped_and_waited_for_again(central: Central, database: Storage, clock: Clock) -> None:
    domain = secured(central, clock)
    database.run(zone_signing.report_ds, {domain.id: {'192.0.2.53:53': None}}, clock.moment())
    assert central.dnssec.skip_server(RED, domain.id, '192.0.2.53:53', 'it is gone').state.skipped == {
        '192.0.2.53:53': 'it is gone'}
    assert central.dnssec.skip_server(RED, domain.id, '192.0.2.53:53', None).state.skipped == {}
