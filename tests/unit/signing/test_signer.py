"""Signing changes: always what signing the whole zone gives, and always valid."""

from __future__ import annotations

import itertools
import pathlib
import random
from collections.abc import Sequence

import dns.rdata
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given, settings, strategies as st

from designate_pool.model import SignedDifference, ZoneRecord
from designate_pool.signing import keys, verifier
from designate_pool.signing.signed_records import KeySet
from tests.unit.signing.zones import (APEX, AT_APEX, CONTENTS, MARGIN, NOW, PAIR, QUICK, TIMES, Contents, SignedZone,
                                      changes_of, contents_of, key_set, made, record, records_of, said_by, sign_zone,
                                      soa, unsigned_part)

STEPS = st.lists(CONTENTS, max_size=4)


def check(contents: Contents, steps: Sequence[Contents], denial: str, keys: KeySet = PAIR) -> SignedZone:
    """Sign a zone, and each of the steps that change it; after each it is valid, and what signing it anew gives."""
    records = records_of(contents) | set(AT_APEX)
    zone = SignedZone(records, denial, keys)
    for gone, added in changes_of(steps, records):
        assert zone.change(gone, added)[1] == []
        anew = sign_zone(APEX, zone.records, zone.soa, keys, TIMES, denial)
        assert unsigned_part(zone.signed) == unsigned_part(anew)
        if keys is PAIR:
            assert verifier.verify_zone(zone.whole(), NOW, MARGIN) == []
    return zone


@pytest.mark.parametrize('denial', ['NSEC', 'NSEC3'])
@given(contents=CONTENTS, steps=STEPS)
def test_changes_lead_to_what_signing_anew_does(contents: Contents, steps: list[Contents], denial: str) -> None:
    check(contents, steps, denial)


def walk(seed: int, denial: str, keys: KeySet, size: int, steps: int) -> None:
    pick = random.Random(seed).choice
    check(contents_of(pick, size), [contents_of(pick, pick((1, 2, size))) for _ in range(steps)], denial, keys)


@pytest.mark.parametrize('seed', range(10))
@pytest.mark.parametrize('denial', ['NSEC', 'NSEC3'])
def test_hundreds_of_changes_lead_to_what_signing_anew_does(denial: str, seed: int) -> None:
    for number in range(5):
        walk(5 * seed + number, denial, QUICK, 8, 20)


@pytest.mark.parametrize('seed', range(100, 104))
@pytest.mark.parametrize('denial', ['NSEC', 'NSEC3'])
def test_thousands_of_changes_lead_to_what_signing_anew_does(denial: str, seed: int) -> None:
    walk(seed, denial, PAIR, 6, 60)
    for number in range(5):
        walk(10 * seed + number, denial, QUICK, 30, 30)


@pytest.mark.parametrize('keys', [PAIR, QUICK], ids=['pair', 'quick'])
@pytest.mark.parametrize('denial', ['NSEC', 'NSEC3'])
def test_a_zone_signed_in_pieces_that_changes_between_them_is_as_signed_at_once(denial: str, keys: KeySet) -> None:
    for seed in range(8 if keys is PAIR else 100):
        dice = random.Random(seed)
        records = records_of(contents_of(dice.choice, 12)) | set(AT_APEX)
        changes = changes_of([contents_of(dice.choice, dice.choice((1, 2, 8))) for _ in range(99)], records)
        zone, last = SignedZone(records, denial, keys, is_signed=False), ''
        while piece := sorted({name for name, *_ in zone.records if name > last})[:dice.choice((1, 2, 5))]:
            assert zone.change(unsigned=piece)[1] == []
            last = piece[-1]
            for gone, added in itertools.islice(changes, dice.choice((0, 1, 3))):
                assert zone.change(gone, added)[1] == []
        anew = sign_zone(APEX, zone.records, zone.soa, keys, TIMES, denial)
        assert unsigned_part(zone.signed) == unsigned_part(anew)
        if keys is PAIR:
            assert verifier.verify_zone(zone.whole(), NOW, MARGIN) == []


@pytest.mark.parametrize('denial', ['NSEC', 'NSEC3'])
@given(contents=CONTENTS, steps=STEPS)
@settings(max_examples=8)
def test_other_programs_agree(contents: Contents, steps: list[Contents], denial: str,
                              tmp_path_factory: pytest.TempPathFactory) -> None:
    zone = check(contents, steps, denial)
    folder = tmp_path_factory.mktemp('zone')
    for program in (['dnssec-verify', '-z', '-o', APEX], ['ldns-verify-zone']):
        assert said_by(program, zone.whole(), folder) == ''


def chain_of(zone: SignedZone) -> dict[str, str]:
    """The names in the chain, relative to the apex, each with the types that it lists, but for RRSIG and NSEC."""
    shown = {}
    for one in sorted((one for one in zone.signed if one.type == 'NSEC'), key=lambda one: one.chain_key or b''):
        types = dns.rdata.from_wire('IN', 'NSEC', one.wire, 0, len(one.wire)).to_text().split()[1:]
        shown[one.name.removesuffix(APEX).rstrip('.') or '@'] = ' '.join(types).replace(' RRSIG NSEC', '')
    return shown


def signed_sets(difference: SignedDifference) -> set[str]:
    return {f'{one.name.removesuffix(APEX).rstrip(".") or "@"} {one.covered}'
            for one in difference.added if one.covered}


A, B, WILD = record('a', 'A', '192.0.2.1'), record('b.a', 'A', '192.0.2.2'), record('*.a', 'TXT', '"x"')
CUT, DS = record('a', 'NS', f'ns.a.{APEX}'), record('a', 'DS', '1 13 2 ' + '00' * 32)
DNAME, BELOW = record('a', 'DNAME', 'example.com.'), record('c.b.a', 'A', '192.0.2.3')
INNER = record('b.a', 'NS', f'ns.b.a.{APEX}')


@pytest.mark.parametrize(('before', 'gone', 'added', 'expected', 'signed'), [
    ([A], [], [B], {'a': 'A', 'b.a': 'A'}, {'a NSEC', 'b.a A', 'b.a NSEC'}),
    ([A, B], [A], [], {'b.a': 'A'}, {'@ NSEC'}),
    ([A], [A], [record('a', 'A', '192.0.2.9')], {'a': 'A'}, {'a A'}),
    ([A], [A], [(*A[:2], 60, A[3])], {'a': 'A'}, {'a A'}),
    ([A], [], [record('a', 'TXT', '"x"')], {'a': 'A TXT'}, {'a TXT', 'a NSEC'}),
    ([A], [], [WILD], {'a': 'A', '*.a': 'TXT'}, {'*.a TXT', '*.a NSEC', 'a NSEC'}),
    # A delegation hides what is below it, and its own addresses; without it they are back.
    ([A, B, WILD], [], [CUT], {'a': 'NS'}, {'a NSEC'}),
    ([A, B, WILD, CUT], [CUT], [], {'a': 'A', '*.a': 'TXT', 'b.a': 'A'},
     {'a A', 'a NSEC', '*.a TXT', '*.a NSEC', 'b.a A', 'b.a NSEC'}),
    ([CUT], [], [DS], {'a': 'NS DS'}, {'a DS', 'a NSEC'}),
    ([CUT, DS], [DS], [], {'a': 'NS'}, {'a NSEC'}),
    ([CUT], [], [B], {'a': 'NS'}, set()),
    ([CUT, B], [B], [], {'a': 'NS'}, set()),
    ([INNER, BELOW], [], [CUT], {'a': 'NS'}, {'@ NSEC', 'a NSEC'}),
    ([CUT, INNER, BELOW], [CUT], [], {'b.a': 'NS'}, {'@ NSEC', 'b.a NSEC'}),
    # So does a DNAME, which is signed with all that is beside it.
    ([A, B], [], [DNAME], {'a': 'A DNAME'}, {'a DNAME', 'a NSEC'}),
    ([A, B, DNAME], [DNAME], [], {'a': 'A', 'b.a': 'A'}, {'a NSEC', 'b.a A', 'b.a NSEC'}),
    ([A], [], [record('@', 'DNAME', 'example.com.')], {}, {'@ DNAME', '@ NSEC'}),
    # The names of the zone's own servers are no delegation.
    ([A], [], [record('@', 'NS', 'ns.example.net.')], {'a': 'A'}, {'@ NS'}),
])
def test_a_change(before: list[ZoneRecord], gone: list[ZoneRecord], added: list[ZoneRecord], expected: dict[str, str],
                  signed: set[str]) -> None:
    zone = SignedZone([record('@', 'NS', f'ns.{APEX}'), *before])
    difference, defects = zone.change(gone, added)
    assert defects == []
    apex = chain_of(zone).pop('@').replace(' DNAME', '')
    assert apex == 'NS SOA DNSKEY'
    assert {name: types for name, types in chain_of(zone).items() if name != '@'} == expected
    assert signed_sets(difference) == {'@ SOA', *signed}
    assert verifier.verify_zone(zone.whole(), NOW, MARGIN) == []


@pytest.mark.parametrize('denial', ['NSEC', 'NSEC3'])
def test_a_change_of_what_is_said_of_missing_names(denial: str) -> None:
    """RFC 9077: the lesser of the SOA's TTL and its minimum."""
    zone = SignedZone([*AT_APEX, A, BELOW], denial)
    for ttl, minimum, expected in ((3600, 300, 300), (120, 300, 120), (120, 60, 60), (120, 60, 60)):
        difference, defects = zone.change(new_soa=soa(2, ttl, minimum))
        assert defects == []
        assert {one.ttl for one in zone.signed if one.type == denial} == {expected}
        assert verifier.verify_zone(zone.whole(), NOW, MARGIN) == []
    assert [one.covered for one in difference.added] == ['SOA']


@pytest.mark.parametrize('denial', ['NSEC', 'NSEC3'])
def test_keys_are_rolled_and_each_version_is_valid(denial: str) -> None:
    """A ZSK: published, used, signatures renewed a few at a time, removed; with CDS records of another KSK."""
    ksk, former, new, other = made('KSK') + made('ZSK') + made('ZSK') + made('KSK')
    zone = SignedZone([*AT_APEX, A, BELOW, CUT], denial, key_set(ksk, former))
    second = key_set(ksk, new, extra=[former])

    def publish(keys: KeySet) -> None:
        assert zone.change(key_set=keys)[1] == []
        assert verifier.verify_zone(zone.whole(), NOW, MARGIN) == []

    publish(key_set(ksk, former, extra=[new]))
    publish(second)
    while due := [one for one in zone.signed if one.key_tag == former.tag][:3]:
        difference, defects = zone.change(key_set=second, due=[(one.name, one.covered) for one in due])
        assert set(due) <= set(difference.gone) and defects == []
        assert verifier.verify_zone(zone.whole(), NOW, MARGIN) == []
    publish(key_set(ksk, new))
    publish(key_set(ksk, other, new, cds=True))
    publish(key_set(other, new))
    assert {one.key_tag for one in zone.signed if one.covered} == {other.tag, new.tag}


@pytest.mark.parametrize('algorithm', [8, 15])
def test_keys_of_other_algorithms(algorithm: int, tmp_path: pathlib.Path) -> None:
    if algorithm == 8:
        pem = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        signers = [keys.load(keys.read_key(pem.decode(), 'CSK')[1], 'CSK')]
    else:
        signers = made('KSK', 15) + made('ZSK', 15)
    zone = SignedZone([*AT_APEX, A, BELOW], key_set=key_set(*signers))
    assert zone.change(added=[B])[1] == []
    assert verifier.verify_zone(zone.whole(), NOW, MARGIN) == []
    assert said_by(['dnssec-verify', '-z', '-o', APEX], zone.whole(), tmp_path) == ''


def test_signatures_of_names_expire_one_after_the_other() -> None:
    zone = SignedZone(record(f'w{number}', 'A', '192.0.2.1') for number in range(100))
    expiries = {one.name: one.expires_at or 0 for one in zone.signed if one.covered == 'A'}
    assert len(set(expiries.values())) > 90
    assert all(TIMES.expiration - TIMES.jitter <= at <= TIMES.expiration for at in expiries.values())
    again = SignedZone(record(f'w{number}', 'A', '192.0.2.1') for number in range(100))
    assert {one.name: one.expires_at for one in again.signed if one.covered == 'A'} == expiries


def test_an_rrset_with_several_ttls_has_the_lowest() -> None:
    zone = SignedZone([*AT_APEX, A, (A[0], 'A', 60, b'\1\1\1\1')])
    assert {one.ttl for one in zone.signed if (one.name, one.covered) == (A[0], 'A')} == {60}
