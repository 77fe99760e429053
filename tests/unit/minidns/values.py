"""Values that the tests of this folder share."""

from __future__ import annotations

import base64

import dns.message
import dns.name
import dns.rdataclass
import dns.rdatatype
import dns.tsig
import dns.zone

from designate_pool.minidns.acl import AllowedPeer, make_acl
from designate_pool.minidns.zones import packed_zone
from designate_pool.model import TsigKey, ZoneHead, ZoneRecord
from designate_pool.protocol import tsig

NOW = 1_800_000_000
HEAD = ZoneHead('d1', 'example.com.', 'default', 'first.last@example.com', 300, 7, 3600, 600, 86400, 900,
                ('ns1.example.net.', 'ns2.example.net.'))
SOA_TEXT = 'ns1.example.net. first\\.last.example.com. 7 3600 600 86400 900'
SECRET = base64.b64encode(b'a secret of thirty-two octets...').decode()
KEY = TsigKey('pool-key.', 'hmac-sha256', SECRET)
OTHER_KEY = TsigKey('pool-key.', 'hmac-sha256', base64.b64encode(b'another secret').decode())
UNKEYED = AllowedPeer('s1', 'one', ('192.0.2.1', '2001:db8::1'), 53)
KEYED = AllowedPeer('s2', 'two', ('192.0.2.2',), 53, tsig.key_from(KEY))
ACL = make_acl([UNKEYED, KEYED])


def dns_key(key: TsigKey) -> dns.tsig.Key:
    return dns.tsig.Key(key.name, key.secret, key.algorithm)


def contents(text: str, head: ZoneHead = HEAD) -> list[ZoneRecord]:
    """A zone file without SOA as the storage would give it, by owner and type."""
    zone = dns.zone.from_text(text, origin=head.name, relativize=False, check_origin=False)
    return [(owner, kind, ttl, wire) for owner, kind, ttl, wires in sorted(
        (owner.to_text().lower(), dns.rdatatype.to_text(rdataset.rdtype),
         None if rdataset.ttl == head.ttl else rdataset.ttl, [rdata.to_wire() for rdata in rdataset])
        for owner, rdataset in zone.iterate_rdatasets()) for wire in wires]


def packed(text: str, head: ZoneHead = HEAD) -> packed_zone.PackedZone:
    """The same as it is transferred."""
    return packed_zone.pack_zone(head, [contents(text, head)])


def query(name: str = 'example.com.', rtype: str = 'SOA', key: TsigKey | None = None, **options: object) -> bytes:
    message = dns.message.make_query(name, rtype, flags=0, id=4711, **options)  # type: ignore[arg-type]
    return sign(message, key)


def sign(message: dns.message.Message, key: TsigKey | None, now: int = NOW) -> bytes:
    """*message* in wire form, signed at *now*."""
    wire = message.to_wire()
    if key is None:
        return wire
    signer = tsig.Signer(tsig.key_from(key))
    return signer.sign(wire, now)
