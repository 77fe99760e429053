"""Zones whose keys are in a PKCS #11 token, here SoftHSM."""

from __future__ import annotations

import collections
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool import errors, metrics
from designate_pool.central.purger import Purger
from designate_pool.central.service import Central
from designate_pool.central.signing import key_token
from designate_pool.model import Domain, KeyRole, Outcome, SigningKey, SigningState, new_id
from designate_pool.runtime import Threads
from designate_pool.settings import CentralSettings
from designate_pool.signing import keys
from designate_pool.storage.signing import zone_signing
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage
from testing.settings import central_settings
from tests.fixtures import softhsm as softhsm_token
from tests.fixtures.central import SERVERS, WHO, Caller, Clock, create, refused, started
from tests.fixtures.softhsm import PIN, SoftHsm
from tests.functional.central.test_signing import (HOUR, KEYS, POLICIES, RED, change, check, lived, published, secured,
                                                   states)


def with_token(softhsm: SoftHsm, **other: Any) -> dict[str, Any]:
    return softhsm.settings(signing_keys=KEYS, signing_policies=POLICIES, **other)


@pytest.fixture
def softhsm(tmp_path: pathlib.Path) -> Iterator[SoftHsm]:
    with softhsm_token.new(tmp_path) as token:
        yield token


@pytest.fixture
def central(database: Storage, caller: Caller, clock: Clock, softhsm: SoftHsm) -> Iterator[Central]:
    """One whose token has the KSKs."""
    with started(database, caller, **with_token(softhsm)) as service:
        yield service


def keys_of(database: Storage, domain: Domain) -> list[SigningKey]:
    return database.read(zone_signing.keys_of, [domain.id])[domain.id]


def key_of(database: Storage, domain: Domain, role: str) -> SigningKey:
    key, = (key for key in keys_of(database, domain) if key.role == role and key.state != 'removed')
    return key


def token_of(softhsm: SoftHsm, **other: Any) -> key_token.KeyToken:
    return key_token.KeyToken(central_settings(**softhsm.settings(**other)), Threads().compute)


def test_a_key_that_is_made_again_is_the_only_one_of_its_id(softhsm: SoftHsm, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the first answer was lost with the session."""
    token, key_id = token_of(softhsm), new_id()
    monkeypatch.setattr(key_token, 'new_id', lambda: key_id)
    first, again = (token.generate('example.com.', KeyRole.KSK, keys.ECDSAP256SHA256, ()) for _ in range(2))
    assert first.public != again.public
    assert len(token.sign('the key', again, b'data')) == 64


@pytest.mark.parametrize(('made', 'policy'), [('ksk', 'default'), ('all', 'default'), ('all', 'hashed')])
def test_keys_in_a_token_sign_and_are_rolled_and_leave_it(
        database: Storage, caller: Caller, clock: Clock, softhsm: SoftHsm, made: str, policy: str,
        caplog: pytest.LogCaptureFixture) -> None:
    settings = with_token(softhsm, pkcs11_keys=made)
    if made == 'all':  # then no private key is stored that a file would encrypt
        settings['signing_keys'] = ()
    role = 'CSK' if policy == 'hashed' else 'KSK'
    with caplog.at_level('DEBUG'), started(database, caller, **settings) as central:
        domain = secured(central, clock, policy=policy)
        first = key_of(database, domain, role)
        identifier = ''.join(f'%{first.id[at:at + 2].upper()}' for at in range(0, 32, 2))
        assert first.token_uri == f'pkcs11:token=zone%20keys;id={identifier};type=private'
        change(central, domain, ('new.example.com.', 'A', ['192.0.2.7']))
        check(database, clock, domain)
        assert refused(central.dnssec.export_keys, RED, domain.id) == 'key_in_token'
        lived(central, clock, domain, 30 * HOUR)
        for rolled in {key.role for key in keys_of(database, domain)}:
            central.dnssec.roll(RED, domain.id, rolled)
            for _ in range(14):
                lived(central, clock, domain, 4 * HOUR)
                check(database, clock, domain)
                if any('ready' in state for state in states(central, domain)):
                    central.dnssec.confirm_ds(RED, domain.id, True)
            assert key_of(database, domain, rolled).state == 'active'
        assert key_of(database, domain, role).id != first.id
        in_token = {key.id for key in keys_of(database, domain) if key.token_uri is not None}
        assert first.id in in_token and softhsm.ids() == in_token
        assert {key.role for key in keys_of(database, domain) if key.id in in_token} == (
            {KeyRole.KSK} if made == 'ksk' else {key.role for key in keys_of(database, domain)})
        central.dnssec.empty_token()
        assert softhsm.ids() == {key.id for key in keys_of(database, domain) if key.token_uri} == in_token - {
            key.id for key in keys_of(database, domain) if key.state == 'removed'}
        check(database, clock, domain)
    with database.engine.connect() as connection:
        stored = connection.execute(sa.select(schema.zone_keys.c.id, schema.zone_keys.c.private)).tuples().all()
    assert {key_id for key_id, private in stored if private is None} == in_token
    assert PIN not in caplog.text + repr(central_settings(**settings))


@pytest.mark.parametrize('private', [0, 1, 2])
def test_three_key_pairs_under_one_tag_sign_nothing_invalid_and_the_alarm_names_the_key(
        database: Storage, caller: Caller, clock: Clock, softhsm: SoftHsm, caplog: pytest.LogCaptureFixture,
        trio: list[tuple[bytes, bytes]], private: int) -> None:
    """What two restored backups of a token, or a pair that was made twice, come to: *private* others are put beside the
    key or, if that is 0, one in its place."""
    with started(database, caller, **with_token(softhsm, pkcs11_keys='all')) as central:
        domain = secured(central, clock)
        zsk = key_of(database, domain, 'ZSK')
        softhsm.delete(zsk.id)
        database.run(lambda tx: tx.execute(sa.update(schema.zone_keys).where(schema.zone_keys.c.id == zsk.id).values(
            public=trio[0][0], tag=keys.tag_of(trio[0][0]))))
    for _, other in trio[:private + 1] if private else trio[1:2]:
        softhsm.put(zsk.id, other)
    before = sorted(published(database, domain))
    refusals = metrics.SIGNATURES_REFUSED.labels(domain.pool_name)._value.get
    count = refusals()
    with started(database, caller, **with_token(softhsm, pkcs11_keys='all')) as central:
        assert refused(change, central, domain, ('new.example.com.', 'A', ['192.0.2.2'])) == (
            'key_unavailable' if private else 'signatures_wrong')
    assert sorted(published(database, domain)) == before
    assert refusals() == count + 1
    tag, = {str(keys.tag_of(public)) for public, _ in trio}
    assert any(record.levelname == 'ERROR' and tag in record.getMessage() and 'example.com.' in record.getMessage()
               for record in caplog.records)


@pytest.fixture(scope='module')
def trio() -> list[tuple[bytes, bytes]]:
    """Three keys of one tag; of 3,000, three have one."""
    found: dict[int, list[tuple[bytes, bytes]]] = collections.defaultdict(list)
    while True:
        public, private = keys.generate('ZSK')
        pairs = found[keys.tag_of(public)]
        pairs.append((public, private))
        if len(pairs) == 3:
            return pairs


def test_another_central_signs_with_the_token_and_one_without_it_says_what_it_lacks(
        central: Central, database: Storage, clock: Clock, caller: Caller, softhsm: SoftHsm) -> None:
    domain = secured(central, clock)
    ksk = key_of(database, domain, 'KSK')
    with started(database, caller, **with_token(softhsm)) as other:
        other.dnssec.roll(RED, domain.id, 'ZSK')  # signed with the KSK that the first has made
        for _ in range(4):
            lived(other, clock, domain, HOUR)
            check(database, clock, domain)
        assert states(other, domain) == ['KSK active', 'ZSK active']
    before = sorted(check(database, clock, domain))
    elsewhere = with_token(softhsm) | {'pkcs11_token': 'spare'}
    for settings in ({'signing_keys': KEYS, 'signing_policies': POLICIES}, elsewhere):
        with started(database, caller, **settings) as other:
            other.dnssec.roll(RED, domain.id, 'ZSK')  # the keys with a new one are signed by the KSK
            why = str(other.dnssec.show(RED, domain.id).state.why)
            for part in ('example.com.', str(ksk.tag), str(ksk.token_uri), 'not in the token'):
                assert part in why
            assert sorted(published(database, domain)) == before
            change(other, domain, ('other.example.com.', 'A', ['192.0.2.8']))  # by the ZSK, which is in the database
            change(other, domain, ('other.example.com.', 'A', []))
            check(database, clock, domain)
        for _ in range(4):  # the first goes on with it
            lived(central, clock, domain, HOUR)
            check(database, clock, domain)
        assert states(central, domain) == ['KSK active', 'ZSK active']
        assert central.dnssec.show(RED, domain.id).state.why is None
        before = sorted(check(database, clock, domain))


def test_a_dead_token_refuses_changes_of_its_zones_alone_and_is_used_again_when_it_is_back(
        database: Storage, caller: Caller, clock: Clock, softhsm: SoftHsm, caplog: pytest.LogCaptureFixture) -> None:
    with started(database, caller, signing_keys=KEYS, signing_policies=POLICIES) as without:
        stored = secured(without, clock, 'stored.example.org.')
    with started(database, caller, **with_token(softhsm, pkcs11_keys='all')) as central:
        domain, unsigned = secured(central, clock), create(central, 'plain.example.org.', who=RED)
        before = sorted(check(database, clock, domain))
        softhsm.take_away()
        for each in (domain, stored, unsigned):
            assert central.get_domain(RED, each.id).name == each.name
        tag = str(key_of(database, domain, 'ZSK').tag)
        with pytest.raises(errors.KeyUnavailable, match=f'The key {tag} of example.com., pkcs11:.*GeneralError'):
            change(central, domain, ('new.example.com.', 'A', ['192.0.2.7']))
        assert refused(central.dnssec.roll, RED, domain.id, 'ZSK') == 'key_unavailable'  # it would be made there
        new = create(central, 'new.example.org.', who=RED)
        assert central.dnssec.enable(RED, new.id).state.state is SigningState.SIGNING
        change(central, unsigned, ('new.plain.example.org.', 'A', ['192.0.2.7']))
        change(central, stored, ('new.stored.example.org.', 'A', ['192.0.2.7']))
        central.update_pool(WHO, {'id': domain.pool_id, 'name_servers': ['ns9.example.net.', *SERVERS]})
        assert [any(rtype == 'NS' and b'ns9' in wire for _, rtype, _, wire in published(database, each))
                for each in (domain, stored, unsigned)] == [False, True, True]
        assert sorted(published(database, domain)) == before
        assert not central.get_domain(RED, new.id).is_signed
        for _ in range(12):  # what is due of others goes on
            lived(central, clock, domain, 86400)
        check(database, clock, stored)
        assert 'PKCS #11' in str(central.dnssec.show(RED, new.id).state.why)
        named = [record for record in caplog.records if record.name.endswith('key_token')
                 and tag in record.getMessage() and record.levelname == 'ERROR']
        assert len(named) == 1  # once for an outage
        softhsm.bring_back()
        lived(central, clock, domain, 61)
        central.backlog.resume_renewals()
        assert any(b'ns9' in wire for _, _, _, wire in published(database, domain))
        change(central, domain, ('new.example.com.', 'A', ['192.0.2.7']))
        check(database, clock, domain)
        assert central.get_domain(RED, new.id).is_signed
        softhsm.restart()  # between two changes nobody notices
        change(central, domain, ('new.example.com.', 'A', ['192.0.2.8']))
        check(database, clock, domain)


def test_a_purged_zone_leaves_the_token(central: Central, database: Storage, clock: Clock, softhsm: SoftHsm) -> None:
    domain = create(central, 'example.com.', who=RED)
    central.dnssec.enable(RED, domain.id)
    for _ in range(2):  # a second tombstone of the name
        deleted = central.delete_domain(RED, domain.id)
        central.update_status(WHO, deleted, Outcome.SUCCESS, deleted.serial)
        restored = create(central, 'example.com.', who=RED)
        central.dnssec.enable(RED, restored.id)
        domain = restored
    kept = key_of(database, domain, 'KSK').id
    purger = Purger(database, CentralSettings(deleted_retention=0), (central.dnssec.empty_token,))
    clock.now += 3600
    purger.purge()
    assert len(softhsm.ids()) == 3
    central.dnssec.empty_token()
    assert softhsm.ids() == {kept}
    purger.purge()
    with database.engine.connect() as connection:
        assert set(connection.execute(sa.select(schema.zone_keys.c.domain_id)).scalars()) == {domain.id}


def test_a_key_whose_transaction_has_failed_leaves_the_token_when_no_other_one_may_be_under_way(
        central: Central, database: Storage, clock: Clock, softhsm: SoftHsm, monkeypatch: pytest.MonkeyPatch) -> None:
    domain, lost = create(central, 'example.com.', who=RED), create(central, 'example.org.', who=RED)
    central.dnssec.enable(RED, domain.id)
    kept = key_of(database, domain, 'KSK').id

    def fails(*_: Any) -> None:
        raise errors.ServiceUnavailable(service='the database', why='it is away')

    with monkeypatch.context() as away:
        away.setattr(zone_signing, 'add_keys', fails)
        central.dnssec.enable(RED, lost.id)
    other = token_of(softhsm).generate('example.net.', KeyRole.KSK, keys.ECDSAP256SHA256, ())  # of another Central
    central.dnssec.empty_token()
    assert len(softhsm.ids()) == 3 and softhsm.ids() > {kept, other.id}
    monkeypatch.setattr(key_token, 'PENDING', 0)
    central.dnssec.empty_token()
    assert softhsm.ids() == {kept, other.id}


def test_a_token_that_lacks_an_algorithm_is_told_and_a_wrong_pin_is_tried_once(
        central: Central, database: Storage, clock: Clock, softhsm: SoftHsm) -> None:
    softhsm.close()
    softhsm.restrict('CKM_ECDSA,CKM_EC_KEY_PAIR_GEN')
    domain = create(central, 'example.com.', who=RED)
    why = str(central.dnssec.enable(RED, domain.id, 'hashed').state.why)
    assert 'it has no EC_EDWARDS_KEY_PAIR_GEN for keys of algorithm 15' in why
    central.dnssec.enable(RED, create(central, 'other.example.org.', who=RED).id)
    softhsm.close()
    wrong = token_of(softhsm, pkcs11_pin='0000')
    for _ in range(2):
        with pytest.raises(errors.KeyUnavailable, match='PinIncorrect; lest it is locked'):
            wrong.check()
    token_of(softhsm).check()
    softhsm.close()
    wrong._pin = PIN
    with pytest.raises(errors.KeyUnavailable, match='PinIncorrect'):  # which is as it was remembered
        wrong.check()


def test_a_zone_of_rsa_rolls_to_a_key_in_the_token(database: Storage, softhsm: SoftHsm) -> None:
    token = token_of(softhsm)
    key = token.generate('example.com.', KeyRole.KSK, keys.RSASHA256, set())
    assert key.public[:5] == b'\1\1\3\x08\3' and key.algorithm == 8 and len(token.sign('it', key, b'data')) == 256


def test_a_call_that_does_not_end_keeps_the_others_waiting_for_a_bounded_time(
        softhsm: SoftHsm, monkeypatch: pytest.MonkeyPatch) -> None:
    token = token_of(softhsm)
    monkeypatch.setattr(key_token, 'PATIENCE', 0.05)
    with key_token._LOCK, pytest.raises(errors.KeyUnavailable, match='has not ended in 0.05 s'):
        token.check()
    token.check()


GREEN = '''
from designate_pool import runtime
runtime.patch()
import threading, time
from designate_pool.central.signing import key_token
from designate_pool.settings import CentralSettings
from tests.fixtures.softhsm import SoftHsm
green = runtime.Green()
token = key_token.KeyToken(CentralSettings(**SoftHsm.settings()), green.compute)
key = token.generate('example.com.', 'KSK', 13, ())
ticks, ending = [], threading.Event()
def tick():
    while not ending.wait(0.0005):
        ticks.append(0)
task = green.spawn(tick, name='tick')
workers = green.workers(5, 'test')
made = [workers.submit(token.sign, 'it', key, bytes(8)) for _ in range(50)]
assert {len(each.result(10)) for each in made} == {64}
ending.set(); task.join(10)
assert ticks, 'others had no turns while the token signed'
print('green')
'''


def test_green_threads_go_on_while_a_token_signs(softhsm: SoftHsm) -> None:
    done = subprocess.run([sys.executable, '-c', GREEN], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == 'green\n', done.stderr
