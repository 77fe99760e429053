"""Zones, and differences between them, as the answers of transfers; and which are kept."""

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Iterable, Sequence

import dns.message
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.xfr
import dns.zone
import dns.zonefile
import pytest
from hypothesis import example, given, settings, strategies as st

from designate_pool.errors import RecordTooLarge
from designate_pool.minidns.zones import ixfr, packed_zone
from designate_pool.minidns.zones.loader import ZONE_OVERHEAD, ZoneCache
from designate_pool.minidns.zones.packed_zone import PackedZone
from designate_pool.model import Change, ZoneHead, ZoneStep
from designate_pool.protocol import soa_rdata, wire
from testing.processes import wait_until
from tests.unit.minidns.values import HEAD, SOA_TEXT, packed

JAIN = ZoneHead('d1', 'jain.ad.jp.', 'default', 'mohta@jain.ad.jp', 600, 3, 600, 600, 3600000, 604800,
                ('ns.jain.ad.jp.',))
#: The changes of RFC 1995 section 7.
JAIN_STEPS = [('2', 'nezu IN A 133.69.136.5', 'jain-bb IN A 133.69.136.4\njain-bb IN A 192.41.197.2'),
              ('3', 'jain-bb IN A 133.69.136.4', 'jain-bb IN A 133.69.136.3')]


def changes(text: str, head: ZoneHead = HEAD) -> list[Change]:
    """Records as the journal has them, from lines of a zone file."""
    return [(rrset.name.to_text(), dns.rdatatype.to_text(rrset.rdtype), rrset.ttl, rdata.to_wire() or b'')
            for rrset in dns.zonefile.read_rrsets(text, origin=head.name, relativize=False, default_ttl=head.ttl,
                                                  rdclass=None)
            for rdata in rrset]


def steps(*texts: tuple[str, str, str], head: ZoneHead = HEAD) -> list[ZoneStep]:
    """Steps from (serial, what goes, what comes)."""
    return [ZoneStep(int(serial), changes(gone, head), changes(added, head)) for serial, gone, added in texts]


def messages(packed: packed_zone.PackedZone) -> list[dns.message.Message]:
    """The answer as dnspython reads it, which refuses what is malformed."""
    question = wire.wire_of(packed.name) + wire.QUESTION.pack(wire.IXFR, wire.IN)
    return [dns.message.from_wire(packed_zone.assemble(1, wire.QR | wire.AA, question, count, octets), xfr=True,
                                  one_rr_per_rrset=True)
            for count, octets in packed.bodies]


def records(packed: packed_zone.PackedZone) -> list[str]:
    """Owner, type and data of the records in the answer; of a SOA the serial alone."""
    found = []
    for message in messages(packed):
        for rrset in message.answer:
            (rdata,) = rrset
            owner = rrset.name.relativize(dns.name.from_text(packed.name))
            data = rdata.serial if rrset.rdtype == dns.rdatatype.SOA else rdata.to_text()
            found.append(f'{owner} {dns.rdatatype.to_text(rrset.rdtype)} {data}')
    return found


def plain(head: ZoneHead, client_serial: int, of: Iterable[ZoneStep]) -> packed_zone.PackedZone:
    """The answer with all the steps, condensed or not."""
    pages = ixfr.answer_pages(head, client_serial, of)
    return packed_zone.PackedZone(head.domain_id, head.name, head.serial,
                                  tuple(packed_zone.bodies(head.name, pages, head.ttl)))


def test_the_example_of_rfc_1995_section_7() -> None:
    assert records(plain(JAIN, 1, steps(*JAIN_STEPS, head=JAIN))) == [
        '@ SOA 3',
        '@ SOA 1', 'nezu A 133.69.136.5',
        '@ SOA 2', 'jain-bb A 133.69.136.4', 'jain-bb A 192.41.197.2',
        '@ SOA 2', 'jain-bb A 133.69.136.4',
        '@ SOA 3', 'jain-bb A 133.69.136.3',
        '@ SOA 3']


def test_the_condensed_example_of_rfc_1995_section_7() -> None:
    packed = ixfr.pack(JAIN, 1, steps(*JAIN_STEPS, head=JAIN))
    assert records(packed) == [
        '@ SOA 3',
        '@ SOA 1', 'nezu A 133.69.136.5',
        '@ SOA 3', 'jain-bb A 192.41.197.2', 'jain-bb A 133.69.136.3',
        '@ SOA 3']
    assert (packed.client_serial, packed.serial, packed.records) == (1, 3, 7)


def test_the_older_soa_differ_in_the_serial_alone() -> None:
    (message,) = messages(ixfr.pack(HEAD, 6, steps(('7', '', 'a IN A 192.0.2.1'))))
    soa = [rrset.to_text() for rrset in message.answer if rrset.rdtype == dns.rdatatype.SOA]
    assert soa[0] == f'example.com. 300 IN SOA {SOA_TEXT}'
    assert soa == [soa[0], soa[0].replace(' 7 ', ' 6 '), soa[0], soa[0]]


def test_a_difference_that_takes_several_messages() -> None:
    long = f'"{"x" * 250}" ' * 4
    text = '\n'.join(f'host{number} IN TXT {long}' for number in range(150))
    check({6: set(), 7: set(changes(text))}, steps(('7', '', text)), messages_at_least=3)


def test_a_record_that_no_message_holds() -> None:
    with pytest.raises(RecordTooLarge):
        ixfr.pack(HEAD, 6, [ZoneStep(7, [], [('big.example.com.', 'TYPE65280', 60, bytes(65500))])])


OWNERS = ('example.com.', 'www.example.com.', '*.example.com.', 'a\\.b.example.com.')
RDATAS = {'A': [bytes([192, 0, 2, number]) for number in range(3)],
          'TXT': [bytes([1, 97 + number]) for number in range(3)]}
#: (owner, type), TTL and which of the type's rdatas are to be there.
EDITS = st.lists(st.tuples(st.tuples(st.sampled_from(OWNERS), st.sampled_from(sorted(RDATAS))),
                           st.sampled_from([60, 300]), st.sets(st.integers(0, 2))), max_size=4)


@settings(max_examples=50)
@given(st.lists(EDITS, min_size=1, max_size=6), st.integers(0, 2 ** 32 - 1))
@example([[(('www.example.com.', 'A'), 60, {0})], [(('www.example.com.', 'A'), 60, set())]], 2 ** 32 - 2)
def test_applied_to_the_zone_at_any_older_serial_it_gives_the_present_one(history: Sequence[Sequence[tuple[
        tuple[str, str], int, set[int]]]], first: int) -> None:
    """Serials go around the end of the numbers too (RFC 1982)."""
    sets: dict[tuple[str, str], tuple[int, set[int]]] = {}
    serials = [(first + number) % 2 ** 32 for number in range(len(history))]
    served: dict[int, set[Change]] = {}
    made = []
    for serial, edits in zip(serials, history):
        sets.update({key: (ttl, present) for key, ttl, present in edits})
        served[serial] = {(owner, rtype, ttl, RDATAS[rtype][number])
                          for (owner, rtype), (ttl, present) in sets.items() for number in present}
        if serial != first:
            before = served[serials[len(made)]]
            made.append(ZoneStep(serial, sorted(before - served[serial]), sorted(served[serial] - before)))
    for number in range(len(made)):
        check({client_serial: served[client_serial] for client_serial in (serials[number], serials[-1])}, made[number:])


def check(served: dict[int, set[Change]], made: Sequence[ZoneStep], messages_at_least: int = 1) -> None:
    """The steps, as they are and condensed, lead from the first of the zones to the second.

    :param served: the zones by serial
    """
    (client_serial, old), (serial, new) = served.items()
    head = dataclasses.replace(HEAD, serial=serial)
    for answered in (plain(head, client_serial, made), ixfr.pack(head, client_serial, made)):
        zone = zone_of(old, dataclasses.replace(HEAD, serial=client_serial))
        answer = messages(answered)
        assert len(answer) >= messages_at_least
        with dns.xfr.Inbound(zone, dns.rdatatype.IXFR, client_serial) as inbound:
            ended = [inbound.process_message(message) for message in answer]
        assert ended == [False] * (len(answer) - 1) + [True]
        assert zone == zone_of(new, head)


def zone_of(contents: Iterable[Change], head: ZoneHead) -> dns.zone.Zone:
    zone = dns.zone.Zone(head.name, relativize=False)
    with zone.writer() as writer:
        writer.add(head.name, head.ttl, dns.rdata.from_text('IN', 'SOA', soa_rdata.text(head, head.name_servers[0])))
        for owner, rtype, ttl, octets in contents:
            writer.add(owner, ttl, dns.rdata.from_wire(dns.rdataclass.IN, dns.rdatatype.from_text(rtype), octets, 0,
                                                       len(octets)))
    return zone


QUESTION = wire.wire_of('example.com.') + wire.QUESTION.pack(wire.AXFR, wire.IN)
ZONE = '''
$TTL 300
@        IN NS  ns1.example.net.
www 60   IN A   192.0.2.1
    60   IN A   192.0.2.2
*.wild   IN TXT "any"
a\\.b    IN TXT "a dot in a label"
\\195    IN TXT "an octet"
alias    IN CNAME www
odd      IN TYPE65280 \\# 4 c0000201
'''


def records_of(bodies: tuple[tuple[int, bytes], ...]) -> list[list[str]]:
    """Each message's records as text, read by dnspython, which refuses what is malformed."""
    messages = []
    for count, octets in bodies:
        message = dns.message.from_wire(packed_zone.assemble(1, wire.QR | wire.AA, QUESTION, count, octets),
                                        one_rr_per_rrset=True)
        messages.append([rrset.to_text() for rrset in message.answer])
    return messages


def test_a_zone_begins_and_ends_with_its_soa() -> None:
    (records,) = records_of(packed(ZONE).bodies)
    assert records == [
        f'example.com. 300 IN SOA {SOA_TEXT}',
        '*.wild.example.com. 300 IN TXT "any"',
        '\\195.example.com. 300 IN TXT "an octet"',
        'a\\.b.example.com. 300 IN TXT "a dot in a label"',
        'alias.example.com. 300 IN CNAME www.example.com.',
        'example.com. 300 IN NS ns1.example.net.',
        'odd.example.com. 300 IN TYPE65280 \\# 4 c0000201',
        'www.example.com. 60 IN A 192.0.2.1',
        'www.example.com. 60 IN A 192.0.2.2',
        f'example.com. 300 IN SOA {SOA_TEXT}',
    ]


def test_a_name_that_only_ends_alike_is_not_below_the_zone() -> None:
    assert packed_zone.compress('notexample.com.', 'example.com.') == b'\x0anotexample\x03com\x00'


def test_the_root_zone() -> None:
    assert packed_zone.compress('.', '.') == wire.TO_QUESTION
    assert packed_zone.compress('com.', '.') == b'\x03com' + wire.TO_QUESTION


@given(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=60), room=st.integers(330, 700))
def test_every_record_is_sent_once_in_its_order_and_no_message_is_too_large(sizes: list[int], room: int) -> None:
    rdatas = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    records = [('x.example.com.', 65280, 1, rdata) for rdata in rdatas]
    bodies = list(packed_zone.bodies('example.com.', [records], 0, room))
    assert all(len(octets) <= room for _, octets in bodies)
    unpacked = []
    for count, octets in bodies:
        at = 0
        for _ in range(count):
            record = wire.read_record(octets, at)
            unpacked.append(octets[record.start:record.end])
            at = record.end
        assert at == len(octets)
    assert unpacked == rdatas


@given(owners=st.lists(st.sampled_from([
    'a.example.com.', 'b.example.com.', '*.example.com.', f'{"l" * 63}.example.com.', 'example.com.',
    'a.b.example.com.', 'a\\.b.example.com.', 'x\\\\.example.com.', 'notexample.com.', 'example.net.',
    'a.example.com.example.com.']), min_size=1, max_size=40), alike=st.booleans())
def test_owners_that_are_looked_at_all_together_are_as_each_by_itself(owners: list[str], alike: bool) -> None:
    if alike:
        owners = [owners[0]] * 40
    ((count, octets),) = packed_zone.bodies('example.com.', [[(owner, 'A', None, b'\1\2\3\4') for owner in owners]], 60)
    tail = bytes.fromhex('0001 0001 0000003c 0004 01020304')
    assert (count, octets) == (len(owners), b''.join(packed_zone.compress(owner, 'example.com.') + tail
                                                     for owner in owners))


@pytest.mark.parametrize('others', [0, 40])
@pytest.mark.parametrize('owner', ['a..example.com.', '.example.com.', f'{"x" * 64}.example.com.', 'ä.example.com.'])
def test_an_owner_that_is_no_name_is_an_error(owner: str, others: int) -> None:
    records = [(each, 'A', 60, b'\1\2\3\4') for each in ['h.example.com.'] * others + [owner]]
    with pytest.raises(ValueError):
        list(packed_zone.bodies('example.com.', [records], 60))


def test_a_full_message_with_the_longest_signature_fits_into_tcp() -> None:
    longest = wire.wire_of('.'.join(['a' * 63] * 3 + ['b' * 61]) + '.')
    assert 12 + len(longest) + 4 + packed_zone.ROOM + packed_zone.OPT_SIZE \
        + 255 + 10 + 26 + 16 + 64 + 6 <= 65535


def test_a_record_that_fits_nowhere_is_an_error_not_a_gap() -> None:
    with pytest.raises(RecordTooLarge, match='big.example.com.'):
        list(packed_zone.bodies('example.com.', [[('big.example.com.', 16, 1, bytes(65535))]], 0))


def test_a_pool_without_name_servers_has_no_soa() -> None:
    with pytest.raises(ValueError, match='no name servers'):
        soa_rdata.encode(dataclasses.replace(HEAD, name_servers=()))


@given(st.lists(st.binary(min_size=1, max_size=12), min_size=0, max_size=5))
def test_names_survive_the_way_to_text_and_back(labels: list[bytes]) -> None:
    octets = (dns.name.Name([*labels, b'']).to_wire() or b'').lower()
    assert wire.wire_of(wire.text_of(octets)) == octets


def zone(domain_id: str, serial: int, size: int) -> PackedZone:
    return PackedZone(domain_id, 'example.com.', serial, ((1, bytes(size)),))


def test_zones_are_kept_within_the_budget_and_the_latest_used_longest() -> None:
    kept = ZoneCache(100, 0)
    for name in 'abc':
        kept.put(name, zone(name, 1, 30))
    assert kept.get('a', 1)
    kept.put('d', zone('d', 1, 30))
    assert [name for name in 'abcd' if kept.get(name, 1)] == ['a', 'c', 'd']


@pytest.mark.parametrize('budget', [100, 5], ids=['fits', 'too large'])
def test_a_zone_is_packed_once_for_all_who_ask_at_the_same_time(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, packed, asked = ZoneCache(budget, 0), [], []
    get = kept.get
    monkeypatch.setattr(kept, 'get', lambda key, serial: asked.append(key) or get(key, serial))

    def pack() -> PackedZone:
        packed.append(1)
        wait_until(lambda: len(asked) == 5, 'the others have come; who packs has asked twice')
        return zone('a', 1, 10)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: kept.get_or_pack('a', 1, pack), range(4)))
    assert packed == [1] and len({id(each) for each in found}) == 1


def test_a_zone_that_cannot_be_packed_is_tried_again() -> None:
    kept = ZoneCache(100, 0)

    def fail() -> PackedZone:
        raise ValueError('no name')

    with pytest.raises(ValueError, match='no name'):
        kept.get_or_pack('a', 1, fail)
    assert kept.get_or_pack('a', 1, lambda: None) is None
    assert kept.get_or_pack('a', 1, lambda: zone('a', 1, 10))


def test_a_zone_takes_the_place_of_its_former_serial_and_its_octets() -> None:
    kept = ZoneCache(100, 0)
    for serial in (1, 1, 2):
        kept.put('a', zone('a', serial, 60))
    kept.put('b', zone('b', 1, 40))
    assert kept.get('a', 2) and kept.get('b', 1) and not kept.get('a', 1)


def test_a_zone_larger_than_the_budget_is_found_while_somebody_holds_it_and_displaces_nothing() -> None:
    kept = ZoneCache(100, 0)
    kept.put('a', zone('a', 1, 60))
    held = zone('a', 2, 101)
    kept.put('a', held)
    assert kept.get('a', 2) is held
    del held
    assert kept.get('a', 1) and kept.get('a', 2) is None


def test_a_zone_counts_for_more_than_its_records() -> None:
    kept = ZoneCache(3 * (10 + ZONE_OVERHEAD))
    for name in 'abcd':
        kept.put(name, zone(name, 1, 10))
    assert [name for name in 'abcd' if kept.get(name, 1)] == ['b', 'c', 'd']
