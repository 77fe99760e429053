"""Which reply to which query."""

from __future__ import annotations

import dataclasses

import dns.edns
import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.rdata
import dns.rdatatype
import dns.tsig
import dns.update
import pytest

from designate_pool.errors import InvalidField
from designate_pool.minidns.acl import AllowedPeer, Refusal, make_acl
from designate_pool.minidns.server import responder
from designate_pool.minidns.server.responder import Query, Transfer
from designate_pool.model import TSIG_ALGORITHMS, TsigKey, ZoneHead
from designate_pool.protocol import tsig, wire
from tests.unit.minidns.values import (ACL, HEAD, KEY, KEYED, NOW, OTHER_KEY, SECRET, SOA_TEXT, UNKEYED, dns_key, query,
                                       sign)

FRIEND, KEYED_FRIEND, STRANGER = '192.0.2.1', '192.0.2.2', '203.0.113.9'


def answer(message: bytes, address: str = FRIEND, over_tcp: bool = False,
           head: ZoneHead | None = HEAD) -> bytes | Transfer | None:
    read = responder.read(ACL, {}, message, address, over_tcp, NOW)
    if isinstance(read, Refusal):
        return read.answer
    return responder.answer(read, head, NOW) if isinstance(read, Query) else read


def reply(message: bytes, address: str = FRIEND, over_tcp: bool = False, head: ZoneHead | None = HEAD,
          key: TsigKey | None = None) -> dns.message.Message:
    """The answer, parsed; its signature is checked when *key* is given."""
    said = answer(message, address, over_tcp, head)
    assert isinstance(said, bytes)
    if key is None:
        return dns.message.from_wire(said, ignore_trailing=False)
    return dns.message.from_wire(said, keyring=dns_key(key), request_mac=mac_of(message, key))


def mac_of(message: bytes, key: TsigKey) -> bytes:
    return bytes(dns.message.from_wire(message, keyring=dns_key(key)).mac)


@pytest.fixture(autouse=True)
def dnspython_lives_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """dnspython takes the time for its own TSIG checks from the clock."""
    monkeypatch.setattr('dns.message.time.time', lambda: NOW)


def soa_of(message: dns.message.Message) -> str:
    (rrset,) = message.answer
    assert rrset.rdtype == dns.rdatatype.SOA
    return rrset[0].to_text()


def test_soa() -> None:
    said = reply(query())
    assert (said.id, said.rcode(), soa_of(said)) == (4711, dns.rcode.NOERROR, SOA_TEXT)
    assert said.flags == dns.flags.QR | dns.flags.AA


def test_the_name_is_looked_for_in_lower_case_and_given_back_as_it_came() -> None:
    read = responder.read(ACL, {}, query('ExAmPlE.cOm.'), FRIEND, False, NOW)
    assert isinstance(read, Query) and read.name == 'example.com.'
    assert reply(query('ExAmPlE.cOm.')).question[0].name.to_text() == 'ExAmPlE.cOm.'


def test_a_stranger_is_refused() -> None:
    for rtype in ('SOA', 'AXFR'):
        said = reply(query(rtype=rtype), '2001:db8::2', over_tcp=True)
        assert (said.rcode(), said.answer) == (dns.rcode.REFUSED, [])
    assert soa_of(reply(query(), '2001:db8::1')) == SOA_TEXT


def test_an_unknown_zone() -> None:
    assert reply(query(), head=None).rcode() == dns.rcode.REFUSED
    assert reply(query(rtype='AXFR'), head=None, over_tcp=True).rcode() == dns.rcode.NOTAUTH


@pytest.mark.parametrize('opcode', [dns.opcode.UPDATE, dns.opcode.STATUS, 15])
def test_other_operations_are_not_implemented(opcode: int) -> None:
    message = bytearray(query())
    message[2] = opcode << 3
    said = answer(bytes(message))
    assert isinstance(said, bytes) and said[:2] == message[:2] and said[3] & 15 == dns.rcode.NOTIMP
    assert said[2] >> 3 & 15 == opcode


def test_a_notify_is_read_whoever_sends_it() -> None:
    """Its sender is no server of the pool, and need not sign (RFC 1996 section 3.10)."""
    message = dns.message.make_query('Example.com.', 'SOA')
    message.set_opcode(dns.opcode.NOTIFY)
    message.answer.append(dns.rrset.from_text('example.com.', 0, 'IN', 'SOA', 'a. b. 7 1 1 1 1'))
    read = responder.read(make_acl([]), {}, message.to_wire(), '198.51.100.9', False, NOW)
    assert isinstance(read, Query)
    assert (read.name, read.address, read.opcode >> 11) == ('example.com.', '198.51.100.9', dns.opcode.NOTIFY)
    reply = dns.message.from_wire(read.reply(0, NOW))
    assert reply.is_response and reply.opcode() == dns.opcode.NOTIFY and reply.id == message.id


def test_a_response_is_never_answered() -> None:
    said = answer(query())
    assert isinstance(said, bytes) and answer(said) is None
    assert answer(b'\x12\x34\x80\0' + bytes(8)) is None


# EDNS and sizes

def long_head() -> ZoneHead:
    labels = '.'.join(['a' * 60] * 3)
    return dataclasses.replace(HEAD, name_servers=(f'{labels}.ns.example.net.',), email=f'm@{labels}.example.net')


def test_edns_is_answered_with_edns() -> None:
    said = reply(query(use_edns=0, payload=4096, want_dnssec=True))
    assert (said.edns, said.payload, said.ednsflags) == (0, responder.MAX_UDP_SIZE, dns.flags.DO)
    assert reply(query()).edns == -1


def test_what_is_too_large_for_udp_is_truncated() -> None:
    head = dataclasses.replace(long_head(), name='.'.join(['z' * 60] * 4) + '.')
    said = reply(query(head.name), head=head)
    assert said.flags & dns.flags.TC and not said.answer
    assert len(reply(query(head.name, use_edns=0, payload=1232), head=head).answer) == 1
    assert reply(query(head.name, use_edns=0, payload=100), head=head).flags & dns.flags.TC
    assert len(reply(query(head.name), over_tcp=True, head=head).answer) == 1


def test_an_unknown_edns_version() -> None:
    message = bytearray(query(use_edns=0))
    message[-5] = 1  # the version in the OPT record's TTL
    said = reply(bytes(message))
    assert (said.rcode(), said.answer) == (dns.rcode.BADVERS, [])


# AXFR and IXFR

def test_axfr_over_tcp_is_a_transfer() -> None:
    said = answer(query(rtype='AXFR'), over_tcp=True)
    assert isinstance(said, Transfer) and said.query.peers == (UNKEYED,)


def ixfr(*serials: int, key: TsigKey | None = None, owner: str = 'example.com.') -> bytes:
    message = dns.message.make_query('example.com.', 'IXFR', flags=0, id=4711)
    for serial in serials:
        message.authority.append(dns.rrset.from_text(owner, 0, 'IN', 'SOA', f'. . {serial} 0 0 0 0'))
    return sign(message, key)


@pytest.mark.parametrize('serial', [6, 2 ** 32 - 5])
def test_ixfr_from_an_older_serial_is_a_transfer(serial: int) -> None:
    assert isinstance(answer(ixfr(serial), over_tcp=True), Transfer)


@pytest.mark.parametrize('serial', [7, 8, 7 + 2 ** 30])
def test_ixfr_when_there_is_nothing_newer_is_the_soa(serial: int) -> None:
    assert soa_of(reply(ixfr(serial), over_tcp=True)) == SOA_TEXT


@pytest.mark.parametrize('key', [None, KEY], ids=['unsigned', 'signed'])
def test_ixfr_over_udp_is_the_soa_and_tc(key: TsigKey | None) -> None:
    said = reply(ixfr(1, key=key), FRIEND if key is None else KEYED_FRIEND, key=key)
    assert soa_of(said) == SOA_TEXT and said.flags & dns.flags.TC


@pytest.mark.parametrize(('message', 'over_tcp', 'rcode'), [
    *((query(rtype=rtype), False, dns.rcode.REFUSED) for rtype in ('A', 'NS', 'ANY', 'DNSKEY')),
    (dns.message.make_query('example.com.', 'SOA', 'CH').to_wire(), False, dns.rcode.REFUSED),
    (query(rtype='AXFR'), False, dns.rcode.FORMERR),
    (ixfr(), False, dns.rcode.FORMERR), (ixfr(), True, dns.rcode.FORMERR), (ixfr(1, 2), True, dns.rcode.FORMERR),
    (ixfr(1, owner='example.org.'), True, dns.rcode.FORMERR),
    (query(use_edns=0)[:11] + b'\2' + query(use_edns=0)[12:] + query(use_edns=0)[-11:], False, dns.rcode.FORMERR),
], ids=['A', 'NS', 'ANY', 'DNSKEY', 'class CH', 'AXFR over UDP', 'IXFR without a serial', 'the same over TCP',
        'IXFR with two serials', 'IXFR with the SOA of another name', 'two OPT records'])
def test_what_is_refused_or_malformed(message: bytes, over_tcp: bool, rcode: int) -> None:
    assert reply(message, over_tcp=over_tcp).rcode() == rcode


# TSIG

def test_a_signed_query_gets_a_signed_answer() -> None:
    message = query(key=KEY)
    assert soa_of(reply(message, STRANGER, key=KEY)) == SOA_TEXT


@pytest.mark.parametrize('algorithm', [*TSIG_ALGORITHMS, 'hmac-md5.sig-alg.reg.int'])
def test_every_algorithm(algorithm: str) -> None:
    key = TsigKey('other-key.', algorithm, SECRET)
    with_key = make_acl([AllowedPeer('s', 's', (), 53, tsig.key_from(key))])
    message = query(key=key)
    read = responder.read(with_key, {}, message, STRANGER, False, NOW)
    assert isinstance(read, Query)
    said = responder.answer(read, HEAD, NOW)
    assert isinstance(said, bytes)
    keyring = tsig.key_from(key)
    mac = dns.message.from_wire(message, keyring=keyring).mac
    assert soa_of(dns.message.from_wire(said, keyring=keyring, request_mac=mac)) == SOA_TEXT


def test_a_server_with_a_key_must_use_it() -> None:
    assert reply(query(), KEYED_FRIEND).rcode() == dns.rcode.REFUSED
    assert soa_of(reply(query(key=KEY), KEYED_FRIEND, key=KEY)) == SOA_TEXT


def tsig_rdata(message: bytes) -> bytes:
    """The rdata of the TSIG record that ends *message*."""
    tsig_record = tsig.find(message)
    assert tsig_record is not None
    return message[wire.read_record(message, tsig_record.at).start:]


@pytest.mark.parametrize(('key', 'error'), [
    (OTHER_KEY, tsig.BADSIG), (TsigKey('nobody.', 'hmac-sha256', SECRET), tsig.BADKEY),
    (TsigKey(KEY.name, 'hmac-sha512', SECRET), tsig.BADKEY)], ids=['secret', 'name', 'algorithm'])
def test_a_key_that_is_not_ours_gets_an_unsigned_refusal(key: TsigKey, error: int) -> None:
    said = answer(query(key=key), STRANGER)
    assert isinstance(said, bytes)
    tsig_record = tsig.find(said)
    assert tsig_record is not None
    assert (said[3] & 15, tsig_record.error, tsig_record.mac) == (dns.rcode.NOTAUTH, error, b'')


def test_a_query_from_another_time_is_badtime_signed_and_says_our_time() -> None:
    message = sign(dns.message.make_query('example.com.', 'SOA'), KEY, NOW - 3600)
    said = answer(message, STRANGER)
    assert isinstance(said, bytes)
    tsig_record = tsig.find(said)
    assert tsig_record is not None
    assert (said[3] & 15, tsig_record.error, tsig_record.time) == (dns.rcode.NOTAUTH, tsig.BADTIME, NOW - 3600)
    assert int.from_bytes(tsig_record.other, 'big') == NOW
    # RFC 8945 section 5.2.3: signed with the key of the query.  dnspython does not look at the MAC of an error.
    asked = tsig.find(message)
    assert asked is not None
    rdata = dns.rdata.from_wire('ANY', 'TSIG', said, len(said) - len(tsig_rdata(said)), len(tsig_rdata(said)))
    context = dns.tsig._digest(said[:10] + b'\0\0' + said[12:tsig_record.at], tsig.key_from(KEY), rdata, None,
                               asked.mac)
    context.verify(rdata.mac)


def truncated(message: bytes, octets: int) -> bytes:
    """*message* with so much of its MAC."""
    tsig_record = tsig.find(message)
    assert tsig_record is not None
    start = wire.read_record(message, tsig_record.at).start
    timers = tsig._TIMERS.pack(tsig_record.time >> 32, tsig_record.time & 0xffffffff, tsig_record.fudge)
    rdata = tsig._rdata(tsig_record.algorithm, timers, tsig_record.mac[:octets], message[:2], 0, b'')
    return message[:start - 2] + len(rdata).to_bytes(2, 'big') + rdata


@pytest.mark.parametrize(('octets', 'outcome'), [
    (0, dns.rcode.FORMERR), (15, dns.rcode.FORMERR), (16, tsig.BADTRUNC), (31, tsig.BADTRUNC),
    (32, dns.rcode.NOERROR)])
def test_a_truncated_mac_is_told_from_a_wrong_one(octets: int, outcome: int) -> None:
    """RFC 8945 section 5.2.2.1: half of a MAC at least; and then the policy decides, which is to take whole ones."""
    said = answer(truncated(query(key=KEY), octets), STRANGER)
    assert isinstance(said, bytes)
    if outcome != tsig.BADTRUNC:
        assert said[3] & 15 == outcome
        return
    tsig_record = tsig.find(said)
    assert tsig_record is not None
    assert (said[3] & 15, tsig_record.error, len(tsig_record.mac)) == (dns.rcode.NOTAUTH, outcome, 32)
    wrong = answer(truncated(query(key=OTHER_KEY), octets), STRANGER)
    assert isinstance(wrong, bytes)
    tsig_record = tsig.find(wrong)
    assert tsig_record is not None and (tsig_record.error, tsig_record.mac) == (tsig.BADSIG, b'')


@pytest.mark.parametrize(('message', 'address', 'key', 'kind', 'why'), [
    (truncated(query(key=KEY), 16), KEYED_FRIEND, 'pool-key.', 'BADTRUNC',
     '192.0.2.2 (two) signs with the key pool-key. by a truncated MAC (BADTRUNC)'),
    (query(), STRANGER, '', 'unsigned', '203.0.113.9 is no server of the pool'),
    (query(), KEYED_FRIEND, '', 'unsigned', '192.0.2.2 (two) does not sign with the key pool-key.'),
    (query(key=TsigKey('nobody.', 'hmac-sha256', SECRET)), FRIEND, 'nobody.', 'BADKEY',
     '192.0.2.1 (one) signs with the key nobody., which no server of the pool has (BADKEY)'),
    (query(key=TsigKey(KEY.name, 'hmac-sha512', SECRET)), KEYED_FRIEND, 'pool-key.', 'BADKEY',
     '192.0.2.2 (two) signs with the key pool-key. by hmac-sha512, not by hmac-sha256 (BADKEY)'),
    (query(key=OTHER_KEY), STRANGER, 'pool-key.', 'BADSIG',
     '203.0.113.9 has another secret for the key pool-key. (BADSIG)'),
    (sign(dns.message.make_query('example.com.', 'SOA'), KEY, NOW + 301), KEYED_FRIEND, 'pool-key.', 'BADTIME',
     '192.0.2.2 (two) signs with the key pool-key. at a time 301 s ahead of ours: the clocks differ (BADTIME)'),
])
def test_a_refusal_says_who_and_why(message: bytes, address: str, key: str, kind: str, why: str) -> None:
    refusal = responder.read(ACL, {}, message, address, False, NOW)
    assert isinstance(refusal, Refusal)
    assert (refusal.address, refusal.key, refusal.kind, refusal.why) == (address, key, kind, why)
    assert all(secret.secret not in repr(refusal) for secret in (KEY, OTHER_KEY))


def test_a_tsig_that_is_not_last_is_malformed() -> None:
    message = bytearray(query(key=KEY))
    message[11] += 1
    assert reply(bytes(message) + b'\0\0\x01\0\x01\0\0\0\0\0\0', STRANGER).rcode() == dns.rcode.FORMERR


def test_two_servers_may_share_a_key_but_not_a_key_name() -> None:
    twin = AllowedPeer('s3', 'three', (), 53, tsig.key_from(KEY))
    assert len(make_acl([KEYED, twin]).peers_by_key[twin.key.name][1]) == 2  # type: ignore[union-attr]
    with pytest.raises(InvalidField, match='pool-key'):
        make_acl([KEYED, AllowedPeer('s4', 'four', (), 53, tsig.key_from(OTHER_KEY))])


@pytest.mark.parametrize(('address', 'found'), [('192.0.2.2', ['s2']), ('192.0.2.3', ['s3']),
                                                ('203.0.113.9', ['s2', 's3'])])
def test_of_servers_that_share_a_key_the_address_tells_which(address: str, found: list[str]) -> None:
    twin = AllowedPeer('s3', 'three', ('192.0.2.3',), 53, tsig.key_from(KEY))
    read = responder.read(make_acl([KEYED, twin]), {}, query(rtype='AXFR', key=KEY), address, True, NOW)
    assert isinstance(read, Query) and [peer.id for peer in read.peers] == found
