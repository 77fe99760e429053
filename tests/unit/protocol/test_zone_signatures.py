"""What is wrong with the signatures that servers serve of one zone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dns.dnssec
import dns.flags
import dns.message
import dns.name
import dns.rdata
import dns.rdataset
import dns.rdatatype
import dns.rrset
import dns.zone

from designate_pool.protocol.zone_signatures import ServedSignatures, judge, questions, read_answers
from tests.fixtures.signed_zones import Keys, new_key, signed_zone, twin_of

NAME = 'example.com.'
ZONE = ('@ 300 IN SOA ns1.example.net. host.example.net. 7 3600 600 86400 300\n@ 300 IN NS ns1.example.net.\n'
        'www 300 IN A 192.0.2.1\n')
KEYS = [new_key()]
DAY = 86400
NOW = int(time.time())


def served(keys: Keys = KEYS, days: float = 14.0, edit: Callable[[dns.zone.Zone], object] = lambda zone: None,
           text: str = ZONE) -> ServedSignatures:
    """What a server serves of a zone that was signed so, and then edited."""
    zone = signed_zone(NAME, text, keys, days) if keys else dns.zone.from_text(text, NAME, relativize=False)
    edit(zone)
    answers = []
    for question in questions(NAME):
        answer = dns.message.make_response(question)
        answer.flags |= dns.flags.AA
        for covered, rtype in ((0, question.question[0].rdtype), (question.question[0].rdtype, dns.rdatatype.RRSIG)):
            rdataset = zone.get_rdataset(NAME, rtype, dns.rdatatype.RdataType.make(covered))
            if rdataset is not None:
                rrset = dns.rrset.RRset(zone.origin or dns.name.root, rdataset.rdclass, rdataset.rdtype,
                                        rdataset.covers)
                rrset.update(rdataset)
                rrset.ttl = rdataset.ttl
                answer.answer.insert(0, rrset)  # the signature first, as PowerDNS does
        answers.append(dns.message.from_wire(answer.to_wire()))
    found = read_answers(answers)
    assert found is not None
    return found


def put(rtype: str, *rdatas: Any) -> Callable[[dns.zone.Zone], object]:
    """Put these in the place of all records of a type at the apex."""
    return lambda zone: zone.replace_rdataset(NAME, dns.rdataset.from_rdata_list(300, list(rdatas)))


def without_signature(rtype: str, covered: str) -> Callable[[dns.zone.Zone], object]:
    return lambda zone: zone.delete_rdataset(NAME, 'RRSIG', covered)


def tag(key: tuple[Any, Any]) -> str:
    return f'{dns.dnssec.key_id(key[1])} (ECDSAP256SHA256)'


def test_all_is_well() -> None:
    one = served()
    assert judge({'a': one, 'b': one}, NOW, 3 * DAY) == {'a': [], 'b': []}
    pair = [new_key(), new_key(256)]
    assert judge({'a': served(pair)}, NOW, 3 * DAY) == {'a': []}


def test_a_zone_that_nobody_signs_is_none_of_its_business() -> None:
    plain = served([])
    assert not plain.is_signed
    assert judge({'a': plain, 'b': plain}, NOW, DAY, must_be_signed=False) == {'a': [], 'b': []}
    assert judge({'a': plain}, NOW, DAY) == {'a': ['it serves the zone without signatures']}
    assert judge({'a': plain, 'b': served()}, NOW, DAY, must_be_signed=False)['a'] == [
        'it serves the zone without signatures']


def test_signatures_that_expire_soon_and_those_that_have_expired() -> None:
    found = judge({'a': served(days=2), 'b': served(days=-0.5)}, NOW, 3 * DAY)
    assert found['a'][0].startswith('its signatures expire at 20') and found['a'][0].endswith(' UTC')
    assert found['b'][0].startswith('its signatures have expired at 20')
    assert judge({'a': served(days=2)}, NOW, DAY) == {'a': []}


def test_signatures_that_were_made_by_a_clock_that_was_ahead() -> None:
    found = judge({'a': served()}, NOW - 2 * DAY, DAY)
    assert found['a'][0].startswith('its signatures are not valid before 20')


def test_signatures_that_were_renewed_under_one_serial_and_are_not_at_the_secondaries() -> None:
    old, new = served(days=7), served(days=14)
    assert judge({'first': old, 'hidden': new, 'second': old}, NOW, DAY) == {
        'first': ['its signatures of serial 7 are older than those of hidden: they were renewed without a new serial'],
        'hidden': [],
        'second': ['its signatures of serial 7 are older than those of hidden: they were renewed without a new serial']}
    later = served(days=14, text=ZONE.replace(' 7 ', ' 8 '))
    assert judge({'first': old, 'hidden': later}, NOW, DAY) == {'first': [], 'hidden': []}


def test_three_keys_under_one_tag() -> None:
    key = KEYS[0][1]
    other = served(edit=put('DNSKEY', twin_of(key)))
    found = judge({'a': served(), 'b': other, 'c': served()}, NOW, DAY)
    assert found['a'] == found['c'] == []
    assert found['b'] == [
        f'the signature of its SOA by the key {tag(KEYS[0])} is not by the key that it serves under that tag',
        f'the signature of its keys by the key {tag(KEYS[0])} is not by the key that it serves under that tag',
        f'under the tag {tag(KEYS[0])} it serves another key than a']
    three = served(edit=put('DNSKEY', key, twin_of(key), twin_of(twin_of(new_key()[1]))))
    assert f'it serves 2 keys under the tag {tag(KEYS[0])}' in judge({'a': three}, NOW, DAY)['a']


def test_other_keys() -> None:
    other = [new_key()]
    assert judge({'a': served(), 'b': served(), 'c': served(other)}, NOW, DAY)['c'] == [
        f'it serves the keys {tag(other[0])}, and a serves {tag(KEYS[0])}']


def test_a_ds_record_that_is_of_none_of_the_keys() -> None:
    def ds(key: Any, digest: str = 'SHA256') -> str:
        made = dns.dnssec.make_ds(NAME, key, digest)
        return f'{made.key_tag} {int(made.algorithm)} {int(made.digest_type)} {made.digest.hex()}'

    key, other = KEYS[0][1], new_key()[1]
    for good in ({ds(key)}, {ds(key, 'SHA384')}, {ds(key), ds(other)}, {ds(key).replace(' 2 ', ' 200 ')}, set[str]()):
        assert judge({'a': served()}, NOW, DAY, ds=good, zone=NAME) == {'a': []}
    for bad in (ds(other), ds(twin_of(key))):
        assert judge({'a': served()}, NOW, DAY, ds=[bad], zone=NAME) == {
            'a': [f'none of its keys is that of a DS record in the parent zone: {bad}']}


def test_signatures_that_are_missing() -> None:
    assert judge({'a': served(edit=without_signature('RRSIG', 'SOA'))}, NOW, DAY)['a'] == [
        'it has no signature of its SOA by the algorithm ECDSAP256SHA256, of which it serves a key']
    foreign = dns.rdata.from_text('IN', 'DNSKEY', '257 3 15 ' + 'A' * 43 + '=')
    found = judge({'a': served(edit=put('DNSKEY', KEYS[0][1], foreign))}, NOW, DAY)['a']
    assert 'it has no signature of its SOA by the algorithm ED25519, of which it serves a key' in found
    assert judge({'a': served(edit=lambda zone: zone.delete_rdataset(NAME, 'DNSKEY'))}, NOW, DAY)['a'] == [
        'it serves signatures and no keys']


def test_an_answer_of_a_server_without_the_zone_is_none() -> None:
    assert read_answers([dns.message.make_response(question) for question in questions(NAME)]) is None
