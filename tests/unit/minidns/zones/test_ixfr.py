"""Differences between zones as the answers of incremental transfers."""

from __future__ import annotations

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
from hypothesis import example, given, settings
from hypothesis import strategies as st

from designate_pool.errors import RecordTooLarge
from designate_pool.minidns.zones import ixfr, packed_zone
from designate_pool.model import Change, ZoneHead, ZoneStep
from designate_pool.protocol import soa_rdata, wire
from tests.unit.minidns.values import HEAD, SOA_TEXT

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
    for packed in (plain(head, client_serial, made), ixfr.pack(head, client_serial, made)):
        zone = zone_of(old, dataclasses.replace(HEAD, serial=client_serial))
        answer = messages(packed)
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
