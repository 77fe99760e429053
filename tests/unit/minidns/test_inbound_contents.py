"""What a master sends, record by record, without a server."""

from __future__ import annotations

import contextlib
import itertools
import json

import dns.message
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import pytest

from designate_pool.central import secondary_zones
from designate_pool.errors import BackendError, OverQuota, TransferRejected
from designate_pool.minidns import refresher
from designate_pool.minidns.refresher import InboundContents
from designate_pool.model import ZoneTransferIn
from designate_pool.protocol import wire
from designate_pool.protocol.axfr_inbound import AxfrInbound, IxfrInbound, axfr_query, ixfr_query
from designate_pool.rpc import serializer
from designate_pool.settings import MiniDnsSettings
from tests.fixtures.hostile_master import DIFFERENCES, FIRST, MESSAGES, TRANSFERS, replies

SOA = 'example.com. 300 IN SOA ns1.example.net. h.example.com. {} 3600 600 86400 300'


def received(*records: str, have: int | None = None, settings: MiniDnsSettings = MiniDnsSettings()) -> ZoneTransferIn:
    """The transfer of these records in one message."""
    contents = InboundContents('example.com.', settings)
    if have is None:
        incoming = AxfrInbound(axfr_query('example.com.'), contents.add)
    else:
        incoming = IxfrInbound(ixfr_query('example.com.', have), have, contents.add, contents.remove)
    message = dns.message.make_response(incoming.query)
    message.answer = [dns.rrset.from_text(*each.split(None, 4)) for each in records]  # type: ignore[arg-type]
    wire = message.to_wire()
    incoming.feed(wire)
    assert incoming.ended
    return contents.result(incoming.serial, have)


def test_a_zone() -> None:
    found = received(SOA.format(7), 'Example.com. 60 IN NS NS1.example.net.', 'a.example.com. 60 IN TXT "One Two"',
                     'b.example.com. 60 IN TYPE65534 \\# 2 0102', SOA.format(7))
    assert (found.serial, found.ttl, found.soa) == (7, 300, SOA.format(7).split(None, 4)[4])
    assert found.added == [('example.com.', 'NS', 60, 'ns1.example.net.'), ('a.example.com.', 'TXT', 60, '"One Two"'),
                           ('b.example.com.', 'TYPE65534', 60, '\\# 2 0102')]
    assert (found.gone, found.from_serial) == ([], None)


def test_a_difference_of_several_steps_is_one() -> None:
    """What one step adds and a later one removes was never there."""
    old, new, late = (f'a.example.com. 60 IN A 192.0.2.{number}' for number in (1, 2, 3))
    found = received(SOA.format(9), SOA.format(7), old, SOA.format(8), new, SOA.format(8), new, SOA.format(9), late,
                     SOA.format(9), have=7)
    assert found.gone == [('a.example.com.', 'A', 60, '192.0.2.1')]
    assert found.added == [('a.example.com.', 'A', 60, '192.0.2.3')]
    assert (found.from_serial, found.serial) == (7, 9)


@pytest.mark.parametrize('record, why', [
    ('example.net. 60 IN A 192.0.2.1', 'does not lie in'), ('xexample.com. 60 IN A 192.0.2.1', 'does not lie in'),
    ('a.example.com. 60 IN SOA a. b. 1 2 3 4 5', 'SOA at a.example.com.'),
    ('a.example.com. 60 IN TYPE255 \\# 0', 'is no data'), ('a.example.com. 60 IN TYPE41 \\# 0', 'is no data'),
    ('a.example.com. 60 IN TYPE1 \\# 3 010203', 'not valid|not a DNS message'),
], ids=['another zone', 'no label of it', 'second SOA', 'ANY', 'OPT', 'three octets of an address'])
def test_what_is_refused(record: str, why: str) -> None:
    owner, ttl, _, rtype, data = record.split(None, 4)
    if data.startswith('\\#'):
        rdata = dns.rdata.GenericRdata(1, dns.rdatatype.from_text(rtype),  # type: ignore[arg-type]
                                       bytes.fromhex(''.join(data.split()[2:])))
        wrong = dns.rrset.from_rdata(owner, int(ttl), rdata)
    else:
        wrong = dns.rrset.from_text(owner, int(ttl), 'IN', rtype, data)
    contents = InboundContents('example.com.', MiniDnsSettings())
    incoming = AxfrInbound(axfr_query('example.com.'), contents.add)
    message = dns.message.make_response(incoming.query)
    message.answer = [dns.rrset.from_text(*SOA.format(7).split(None, 4)), wrong]  # type: ignore[arg-type]
    with pytest.raises(BackendError, match=why):
        incoming.feed(message.to_wire())


@pytest.mark.parametrize(('most', 'is_refused'), [(-1, False), (2, False), (1, True), (0, True)])
def test_the_quota_of_the_project_ends_a_transfer(most: int, is_refused: bool) -> None:
    contents = InboundContents('example.com.', MiniDnsSettings(), most)
    records = [SOA.format(7), 'example.com. 60 IN NS ns1.example.net.', 'a.example.com. 60 IN A 192.0.2.1',
               'b.example.com. 60 IN A 192.0.2.1']
    incoming = AxfrInbound(axfr_query('example.com.'), contents.add)
    message = dns.message.make_response(incoming.query)
    message.answer = [dns.rrset.from_text(*each.split(None, 4)) for each in records]  # type: ignore[arg-type]
    with pytest.raises(OverQuota) if is_refused else contextlib.nullcontext():
        incoming.feed(message.to_wire())


@pytest.mark.parametrize('octet', [b'\\200', b'"', b'x'])
def test_what_no_message_to_central_can_hold_is_refused(monkeypatch: pytest.MonkeyPatch, octet: bytes) -> None:
    """The limit is on the message as RabbitMQ gets it: JSON in JSON in JSON."""
    monkeypatch.setattr(refresher, 'MOST_MESSAGE', 10_000)
    text = dns.rdata.from_text('IN', 'TXT', f'"{"x" * 200}"').to_wire() or b''
    text = text.replace(b'x', bytes((200,)) if octet == b'\\200' else octet)
    contents = InboundContents('example.com.', MiniDnsSettings())
    added = 0
    with pytest.raises(BackendError, match='more than 10000 octets as text'):
        for added in range(100):
            contents.add(wire.encode(f'a{added}.example.com.'), 16, 60, text, 0, len(text), {})
    packed = serializer.pack([(f'a{number}.example.com.', 'TXT', 60, dns.rdata.from_wire(
        dns.rdataclass.IN, dns.rdatatype.TXT, text, 0, len(text)).to_text()) for number in range(added)])
    for _ in range(3):
        packed = json.dumps(packed)
    assert len(packed) <= 10_000


def test_too_much() -> None:
    records = [SOA.format(7), *(f'a{number}.example.com. 60 IN A 192.0.2.1' for number in range(3)), SOA.format(7)]
    assert len(received(*records, settings=MiniDnsSettings(transfer_in_records=3)).added) == 3
    with pytest.raises(BackendError, match='more than 2 records'):
        received(*records, settings=MiniDnsSettings(transfer_in_records=2))


#: Why a transfer is refused, by its case; for the others it is the record, with its name.
WHY = {
    'other-question': 'not asked', 'later-question': 'not asked', 'other-id': 'not asked', 'not-an-answer': 'not asked',
    'soa-other-end': 'ends with another SOA', 'more-after-end': 'goes on after its end', 'class-chaos': 'of class CH',
    'class-none': 'of class NONE', 'compressed-loop': 'not a DNS message', 'forward-pointer': 'not a DNS message',
    'counts': 'not a DNS message', 'cut': 'not a DNS message', 'no-soa': "begin with the zone's SOA",
    'empty-for-ever': 'more than 100 messages without records', 'servfail-inside': 'broke off (SERVFAIL)',
    'outside': 'www.example.net.', 'above': 'example.com.', 'soa-below': 'x.soa-below.example.com.',
    'cname-apex': 'CNAME at cname-apex.example.com.',
    'short-a': 'x.short-a.example.com. A', 'long-txt': 'x.long-txt.example.com. TXT',
    'empty-txt': 'x.empty-txt.example.com. TXT', 'loc': 'x.loc.example.com. LOC',
    **{f'type-{number}': f'x.type-{number}.example.com.' for number in (0, 41, 128, 249, 250, 251, 252, 255)},
    'rrsig-labels': 'fewer labels than the name of its signer',
    # Differences: what follows one that is refused is the whole zone.
    'ixfr-elsewhere': 'ends with another SOA', 'ixfr-gap': 'begins at serial 6 and not at 8',
    'ixfr-back': 'from serial 7 to 5',
}
UNENDED = 'no-end', 'ixfr-no-end'


def receive(incoming: AxfrInbound, contents: InboundContents, query: dns.message.Message,
            is_later: bool = False) -> ZoneTransferIn | None:
    """What is received; None for a transfer that does not end."""
    for message in itertools.islice(replies(query, is_later), 1000):
        assert isinstance(message, bytes)
        incoming.feed(message)
    return contents.result(incoming.serial, None) if incoming.ended else None


@pytest.mark.parametrize('case', [*TRANSFERS, *MESSAGES])
def test_a_whole_zone(case: str) -> None:
    name = f'{case}.example.com.'
    query, contents = axfr_query(name), InboundContents(name, MiniDnsSettings())
    if case not in WHY:
        transfer = receive(AxfrInbound(query, contents.add), contents, query)
        assert (transfer is None) == (case in UNENDED)
        assert transfer is None or secondary_zones.parse(transfer, name).soa.refresh == 3600
        return
    with pytest.raises((BackendError, TransferRejected)) as refusal:
        transfer = receive(AxfrInbound(query, contents.add), contents, query)
        assert transfer is not None
        secondary_zones.parse(transfer, name)
    assert WHY[case] in str(refusal.value)


@pytest.mark.parametrize('case', [case for case in DIFFERENCES if case.startswith('ixfr')])
def test_a_difference(case: str) -> None:
    name = f'{case}.example.com.'
    query, contents = ixfr_query(name, FIRST), InboundContents(name, MiniDnsSettings())
    incoming = IxfrInbound(query, FIRST, contents.add, contents.remove)
    if case not in WHY:
        assert (receive(incoming, contents, query, True) is None) == (case in UNENDED)
        return
    with pytest.raises(BackendError) as refusal:
        receive(incoming, contents, query, True)
    assert WHY[case] in str(refusal.value)
