"""Hostile transfers, as MiniDNS receives them and Central parses them: taken, or refused with what is wrong."""

from __future__ import annotations

import itertools

import dns.message
import pytest

from designate_pool.central import secondary_zones
from designate_pool.errors import BackendError, TransferRejected
from designate_pool.minidns.refresher import InboundContents
from designate_pool.model import ZoneTransferIn
from designate_pool.protocol.axfr_inbound import AxfrInbound, IxfrInbound, axfr_query, ixfr_query
from designate_pool.settings import MiniDnsSettings
from tests.fixtures.hostile_master import DIFFERENCES, FIRST, MESSAGES, TRANSFERS, replies

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
