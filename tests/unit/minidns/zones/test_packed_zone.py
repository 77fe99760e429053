"""RRsets to messages."""

from __future__ import annotations

import dataclasses

import dns.message
import dns.name
import dns.rdatatype
import dns.zone
import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.errors import RecordTooLarge
from designate_pool.minidns.zones import packed_zone
from designate_pool.protocol import soa_rdata, wire
from tests.unit.minidns.values import HEAD, SOA_TEXT, packed

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
