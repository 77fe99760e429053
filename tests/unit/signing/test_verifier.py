"""What is wrong with signed zones and with changes of them is found, however well it is signed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from designate_pool.model import SignedDifference, SignedRecord
from designate_pool.signing import canonical, keys, signer, verifier
from designate_pool.signing.signed_records import KeySet, Validity
from tests.unit.signing.zones import (APEX, AT_APEX, CONTENTS, MARGIN, NOW, PAIR, TIMES, Contents, SignedZone,
                                      chain_key, changes_of, key_set, made, record, records_of, soa)

W5 = f'w5.{APEX}'
RECORDS = [*AT_APEX, *(record(f'w{number}', 'A', '192.0.2.1') for number in range(1, 9)),
           record('sub', 'NS', f'ns.sub.{APEX}'), record('ns.sub', 'A', '192.0.2.2')]
KSK, ZSK = made('KSK'), made('ZSK')
KEYS = key_set(*KSK, *ZSK)


def signed_by(keys: KeySet, name: str, rtype: str, ttl: int, *wires: bytes,
              times: Validity = TIMES) -> list[SignedRecord]:
    return signer._Signing(APEX, keys, times).signatures(name, rtype, ttl, wires)


def without(zone: SignedZone, name: str, *covered: str, rtype: str = 'RRSIG') -> None:
    for one in [one for one in zone.signed if one.name == name and one.type == rtype
                and (one.covered in covered or rtype != 'RRSIG')]:
        del zone.signed[one]


def again(zone: SignedZone, name: str, rtype: str, *wires: bytes, keys: KeySet | None = None,
          times: Validity = TIMES) -> None:
    """Sign an RRset otherwise, validly where *keys* and *times* are those of the zone."""
    without(zone, name, rtype)
    zone.signed.update(signed_by(keys or zone.keys, name, rtype, 300, *wires, times=times))


def link(zone: SignedZone, name: str, wire: bytes) -> None:
    """Another record in the chain, validly signed."""
    without(zone, name, rtype='NSEC')
    zone.signed[SignedRecord(name, 'NSEC', '', 300, wire, chain_key(name))] = 1
    again(zone, name, 'NSEC', wire)


def nsec(following: str, *types: int) -> bytes:
    return canonical.name_wire(f'{following}.{APEX}') + canonical.type_bitmap(frozenset(types))


def flip(zone: SignedZone) -> None:
    signature = next(one for one in zone.signed if one.name == W5 and one.covered == 'A')
    del zone.signed[signature]
    zone.signed[signature._replace(wire=signature.wire[:-1] + bytes((signature.wire[-1] ^ 1,)))] = 1


def lengthen(zone: SignedZone) -> None:
    """The numbers of an ECDSA signature in 65 octets, where validators take 64 (RFC 6605 section 4)."""
    signature = next(one for one in zone.signed if one.name == W5 and one.covered == 'A')
    del zone.signed[signature]
    wire = signature.wire[:-32] + b'\0' + signature.wire[-32:]
    zone.signed[signature._replace(wire=wire)] = 1


def remove_link(zone: SignedZone) -> None:
    without(zone, W5, 'NSEC')
    without(zone, W5, rtype='NSEC')


def remove_name(zone: SignedZone) -> None:
    remove_link(zone)
    without(zone, W5, 'A')
    zone.records = {one for one in zone.records if one[0] != W5}


A = record('w5', 'A', '192.0.2.1')[3]
GLUE = f'ns.sub.{APEX}'
DEFECTS: dict[str, tuple[Callable[[SignedZone], object], str]] = {
    'bit flip': (flip, rf'^A of {W5}: the signature by the key \d+ is wrong'),
    'a signature of another length': (lengthen, rf'^A of {W5}: the signature by the key \d+ is wrong'),
    'no signature': (lambda zone: without(zone, W5, 'A'), f'^A of {W5} is not signed'),
    'no NSEC': (remove_link, f'^{W5} has 0 records of NSEC'),
    'NSEC not signed': (lambda zone: without(zone, W5, 'NSEC'), f'^NSEC of {W5} is not signed'),
    'wrong next name': (lambda zone: link(zone, W5, nsec('w7', 1, 46, 47)),
                        f'names w7.{APEX} as the next name, which is w6'),
    'a type too many': (lambda zone: link(zone, W5, nsec('w6', 1, 16, 46, 47)), f'NSEC of {W5} lists the type TXT'),
    'a type too few': (lambda zone: link(zone, W5, nsec('w6', 46, 47)), f'NSEC of {W5} does not list the type A'),
    'malformed NSEC': (lambda zone: link(zone, W5, nsec('w6')[:-1] + b'\0\0'), f'NSEC of {W5} is malformed'),
    'expired': (lambda zone: again(zone, W5, 'A', A, times=Validity(NOW - 9999, NOW - 1)), 'expires at'),
    'expires in an hour':
        (lambda zone: again(zone, W5, 'A', A, times=Validity(NOW - 9, NOW + 3600)), f'expires at {NOW + 3600}'),
    'not valid yet':
        (lambda zone: again(zone, W5, 'A', A, times=Validity(NOW + 60, NOW + 9 * 86_400)), 'not valid before'),
    'foreign key': (lambda zone: again(zone, W5, 'A', A, keys=key_set(*made('CSK'))), 'which the zone does not have'),
    'another zone': (lambda zone: zone.signed.update(signer._Signing(
        'example.net.', zone.keys, TIMES).signatures(W5, 'A', 300, [A])), 'names another zone'),
    'another TTL': (lambda zone: zone.records.add((W5, 'A', 60, b'\1\1\1\1')), 'another TTL'),
    'a record added': (lambda zone: zone.records.add((W5, 'A', 300, b'\1\1\1\1')), 'the signature by the key'),
    'a name added': (lambda zone: zone.records.add(record('w55', 'A', '192.0.2.1')), f'^A of w55.{APEX} is not signed'),
    'a name removed': (remove_name, f'^NSEC of w4.{APEX} names {W5}'),
    'DNSKEY not signed': (lambda zone: without(zone, APEX, 'DNSKEY'), f'^DNSKEY of {APEX} is not signed'),
    'DNSKEY signed by the ZSK': (lambda zone: again(zone, APEX, 'DNSKEY', *KEYS.dnskeys,
                                                    keys=KEYS._replace(key_signers=ZSK)), 'another TTL|no key-signing'),
    'no DNSKEY': (lambda zone: without(zone, APEX, rtype='DNSKEY'), 'has no DNSKEY record'),
    'glue signed': (lambda zone: zone.signed.update(signed_by(KEYS, GLUE, 'A', 300, b'\xc0\0\2\2')),
                    f'^A of {GLUE} is signed, and must not be'),
    'glue in the chain': (lambda zone: link(zone, GLUE, nsec('w1', 1, 46, 47)), f'^{GLUE} has a record of NSEC and'),
    'a delegation signed': (lambda zone: zone.signed.update(signed_by(KEYS, f'sub.{APEX}', 'NS', 300, b'\0')),
                            'NS of sub.* is signed, and must not be'),
}


@pytest.mark.parametrize('defect', DEFECTS)
def test_a_defect_of_a_zone(defect: str) -> None:
    spoil, expected = DEFECTS[defect]
    zone = SignedZone(RECORDS, key_set=KEYS)
    assert verifier.verify_zone(zone.whole(), NOW, MARGIN) == []
    spoil(zone)
    said = verifier.verify_zone(zone.whole(), NOW, MARGIN)
    assert any(re.search(expected, sentence) for sentence in said), said


def test_others_have_turns_while_a_zone_is_verified() -> None:
    zone = SignedZone(RECORDS, key_set=KEYS)
    turns = list[object]()

    def between(items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            turns.append(item)
            yield item

    assert verifier.verify_zone(zone.whole(), NOW, MARGIN, between) == []
    names = {record[0] for record in zone.whole()}
    assert len(turns) > len(list(zone.whole())) + len(names)
    assert names <= {item[0] for item in turns if isinstance(item, tuple) and len(item) == 2}


def test_an_algorithm_that_does_not_sign() -> None:
    zone = SignedZone(RECORDS, key_set=key_set(*KSK, *ZSK, extra=made('ZSK', 15)))
    said = verifier.verify_zone(zone.whole(), NOW, MARGIN)
    assert f'A of {W5} is not signed by algorithm 15.' in said


def test_two_keys_under_one_tag() -> None:
    by_tag: dict[int, keys.PrivateKey] = {}
    while (twin := made('ZSK')[0]).tag not in by_tag:
        by_tag[twin.tag] = twin
    zone = SignedZone(RECORDS, key_set=key_set(*KSK, twin, extra=[by_tag[twin.tag]]))
    assert verifier.verify_zone(zone.whole(), NOW, MARGIN) == [f'2 DNSKEY records have the tag {twin.tag}.']


def test_a_key_that_is_none() -> None:
    broken = SignedZone(RECORDS, key_set=KEYS._replace(dnskeys=[*KEYS.dnskeys, b'\1\0\3\x0d' + bytes(64)]))
    assert any('holds no key' in sentence for sentence in verifier.verify_zone(broken.whole(), NOW, MARGIN))


def test_a_zone_without_an_soa() -> None:
    assert verifier.verify_zone(RECORDS, NOW, MARGIN) == ['The zone has no SOA record.']


@pytest.mark.parametrize('byte', [0, 1, 3], ids=['hash', 'opt-out', 'iterations'])
def test_another_kind_of_nsec3(byte: int) -> None:
    zone = SignedZone(RECORDS, 'NSEC3')
    one = next(one for one in zone.signed if one.type == 'NSEC3')
    del zone.signed[one]
    zone.signed[one._replace(wire=one.wire[:byte] + b'\7' + one.wire[byte + 1:])] = 1
    assert any(f'NSEC3 of {one.name} is malformed' in said for said in verifier.verify_zone(zone.whole(), NOW, MARGIN))


Spoil = Callable[[SignedZone, SignedDifference], SignedDifference]
NEW = f'w45.{APEX}'


def changed(difference: SignedDifference, choose: Callable[[SignedRecord], bool],
            make: Callable[[SignedRecord], list[SignedRecord]]) -> SignedDifference:
    assert any(map(choose, difference.added))
    return SignedDifference(difference.gone, [new for one in difference.added
                                              for new in (make(one) if choose(one) else [one])])


def linked_otherwise(difference: SignedDifference, name: str, wire: bytes) -> SignedDifference:
    rest = changed(difference, lambda one: one.name == name and 'NSEC' in (one.type, one.covered), lambda one: [])
    return SignedDifference(rest.gone, [*rest.added, SignedRecord(name, 'NSEC', '', 300, wire,
                                                                  chain_key(name)),
                                        *signed_by(KEYS, name, 'NSEC', 300, wire)])


def of_new(one: SignedRecord) -> bool:
    return (one.name, one.covered) == (NEW, 'A')


FAULTS: dict[str, tuple[Spoil, str]] = {
    'bit flip': (lambda zone, done: changed(done, of_new, lambda one: [one._replace(
        wire=one.wire[:-1] + bytes((one.wire[-1] ^ 1,)))]), 'is wrong'),
    'not signed': (lambda zone, done: changed(done, of_new, lambda one: []), f'A of {NEW} is not signed'),
    'missing NSEC': (lambda zone, done: changed(
        done, lambda one: one.name == NEW and 'NSEC' in (one.type, one.covered), lambda one: []),
        f'{NEW} has 0 records'),
    'wrong next name': (lambda zone, done: linked_otherwise(done, NEW, nsec('w6', 1, 46, 47)),
                        f'NSEC records lead to w6.{APEX}, as none did before'),
    'a name passed over': (lambda zone, done: linked_otherwise(done, f'w4.{APEX}', nsec('w5', 1, 46, 47)),
                           f'NSEC of w4.{APEX} passes over {NEW}'),
    'a type too many': (lambda zone, done: linked_otherwise(done, NEW, nsec('w5', 1, 16, 46, 47)),
                        f'NSEC of {NEW} lists the type TXT'),
    'malformed NSEC': (lambda zone, done: linked_otherwise(done, NEW, nsec('w5')[:-1] + b'\0\0'),
                       f'NSEC of {NEW} is malformed'),
    'expiry inside the margin': (lambda zone, done: changed(done, of_new, lambda one: signed_by(
        KEYS, NEW, 'A', 300, A, times=Validity(NOW, NOW + MARGIN - 1))), 'expires at'),
    'foreign key': (lambda zone, done: changed(done, of_new, lambda one: signed_by(
        key_set(*made('CSK')), NEW, 'A', 300, A)), 'which the zone does not have'),
    'other data': (lambda zone, done: changed(done, of_new, lambda one: signed_by(KEYS, NEW, 'A', 300, b'\1\1\1\1')),
                   'is wrong'),
    'more signatures': (lambda zone, done: SignedDifference(done.gone, [
        *done.added, *signed_by(KEYS, NEW, 'TXT', 300, b'\0')]), f'TXT of {NEW} is signed, and must not be'),
    'SOA as before': (lambda zone, done: SignedDifference(
        [one for one in done.gone if one.covered != 'SOA'], [one for one in done.added if one.covered != 'SOA']),
        f'A former signature of SOA of {APEX} stays'),
    'not there': (lambda zone, done: SignedDifference([*done.gone, done.added[0]], done.added), 'and is not there'),
    'there already': (lambda zone, done: SignedDifference(done.gone, [
        *done.added, next(one for one in zone.signed if one.type == 'DNSKEY')]), 'there already'),
    'an algorithm of keys only': (lambda zone, done: SignedDifference(done.gone, [
        *done.added, SignedRecord(APEX, 'DNSKEY', '', 3600, made('ZSK', 15)[0].public)]),
        'not signed by algorithm 15'),
}


@pytest.mark.parametrize('fault', FAULTS)
def test_a_fault_of_the_signer(fault: str) -> None:
    zone = SignedZone(RECORDS, key_set=KEYS)
    zone.records.add(record('w45', 'A', '192.0.2.1'))
    zone.soa = soa(2)
    difference = signer.sign_change(APEX, {NEW: {'A'}}, zone.soa, KEYS, TIMES, 'NSEC', zone)
    assert zone.verify(difference, {NEW: {'A'}}) == []
    spoil, expected = FAULTS[fault]
    said = zone.verify(spoil(zone, difference), {NEW: {'A'}})
    assert any(expected in sentence for sentence in said), said


@pytest.mark.parametrize('denial', ['NSEC', 'NSEC3'])
@given(contents=CONTENTS, new=CONTENTS)
@settings(max_examples=15)
def test_a_record_that_is_left_out_of_a_change(contents: Contents, new: Contents, denial: str) -> None:
    """Whichever it is: the zone would not be what it must be."""
    zone = SignedZone(records_of(contents) | set(AT_APEX), denial)
    (gone, added), = changes_of([new], zone.records)
    zone.records, zone.soa = zone.records - gone | added, soa(2)
    types: dict[str, set[str]] = {}
    for name, rtype, _, _ in gone ^ added:
        types.setdefault(name, set()).add(rtype)
    difference = signer.sign_change(APEX, types, zone.soa, PAIR, TIMES, denial, zone)
    assert zone.verify(difference, types) == []
    for number in range(len(difference.gone)):
        rest = [*difference.gone[:number], *difference.gone[number + 1:]]
        assert zone.verify(SignedDifference(rest, difference.added), types) != [], difference.gone[number]
    for number in range(len(difference.added)):
        rest = [*difference.added[:number], *difference.added[number + 1:]]
        assert zone.verify(SignedDifference(difference.gone, rest), types) != [], difference.added[number]
