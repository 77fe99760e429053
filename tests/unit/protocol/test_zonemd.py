"""The digest of a zone's contents, beside RFC 8976's own examples and dnspython's digest."""

from __future__ import annotations

import random

import dns.message
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tokenizer
import dns.zone
import dns.zonetypes
import pytest

from designate_pool.protocol import wire, zonemd
from designate_pool.protocol.wire import Malformed
from designate_pool.protocol.zonemd import DigestedZone
from tests.fixtures.digests import add, contents

#: RFC 8976, appendix A.1.
SIMPLE = '''
example. 86400 IN SOA ns1.example. admin.example. 2018031900 1800 900 604800 86400
example. 86400 IN NS ns1.example.
example. 86400 IN NS ns2.example.
example. 86400 IN ZONEMD 2018031900 1 1 (
    c68090d90a7aed716bc459f9340e3d7c1370d4d24b7e2fc3a1ddc0b9a87153b9a9713b3c9ae5cc27777f98b8e730044c )
ns1.example. 3600 IN A 203.0.113.63
ns2.example. 3600 IN AAAA 2001:db8::63
'''
#: Appendix A.2: a name of another zone, a record twice, names under a delegation, upper case.
COMPLEX = '''
example. 86400 IN SOA ns1.example. admin.example. 2018031900 1800 900 604800 86400
example. 86400 IN NS ns1.example.
example. 86400 IN NS ns2.example.
example. 86400 IN ZONEMD 2018031900 1 1 (
    a3b69bad980a3504e1cffcb0fd6397f93848071c93151f552ae2f6b1711d4bd2d8b39808226d7b9db71e34b72077f8fe )
ns1.example. 3600 IN A 203.0.113.63
NS2.example. 3600 IN AAAA 2001:db8::63
occluded.sub.example. 7200 IN TXT "I'm occluded but must be digested"
sub.example. 7200 IN NS ns1.example.
duplicate.example. 300 IN TXT "I must be digested just once"
duplicate.example. 300 IN TXT "I must be digested just once"
foo.test. 555 IN TXT "out-of-zone data must be excluded"
UPPERCASE.example. 3600 IN TXT "canonicalize uppercase owner names"
*.example. 777 IN PTR dont-forget-about-wildcards.example.
mail.example. 3600 IN MX 20 MAIL1.example.
mail.example. 3600 IN MX 10 Mail2.Example.
sortme.example. 3600 IN AAAA 2001:db8::5:61
sortme.example. 3600 IN AAAA 2001:db8::3:62
sortme.example. 3600 IN AAAA 2001:db8::4:63
sortme.example. 3600 IN AAAA 2001:db8::1:65
sortme.example. 3600 IN AAAA 2001:db8::2:64
non-apex.example. 900 IN ZONEMD 2018031900 1 1 (
    616c6c6f776564206275742069676e6f7265642e20616c6c6f776564206275742069676e6f7265642e20616c6c6f7765 )
'''
#: A record of every type that has names in its rdata, in mixed case.
NAMES = '''
example. 60 IN SOA NS1.Example. Admin.Example. 1 2 3 4 5
a.example. 60 IN CNAME B.Example.
b.example. 60 IN MX 10 Mail.Example.
c.example. 60 IN SRV 1 2 3 Target.Example.
d.example. 60 IN NAPTR 1 2 "U" "E2U+SIP" "!^.*$!sip:Info@example.com!" Next.Example.
e.example. 60 IN RP Some.Example. Text.Example.
f.example. 60 IN DNAME Other.Example.
g.example. 60 IN AFSDB 1 Host.Example.
h.example. 60 IN KX 1 Host.Example.
i.example. 60 IN PX 1 Map822.Example. MapX400.Example.
j.example. 60 IN RT 1 Host.Example.
k.example. 60 IN SVCB 1 Target.Example. alpn="H2"
l.example. 60 IN HINFO "PC" "Linux"
m.example. 60 IN CAA 0 issue "CA.Example.Net"
n.example. 60 IN LOC 51 30 12.748 N 0 7 39.612 W 0.00m 0.00m 0.00m 0.00m
o.example. 60 IN RRSIG A 8 2 60 20300101000000 20200101000000 1 Signer.Example. AAAA
p.example. 60 IN PTR One.Example.
q.example. 60 IN TYPE65400 \\# 4 41424344
'''


def from_lines(text: str, origin: str = 'example.') -> DigestedZone:
    """A zone from a line for each record."""
    found = DigestedZone(dns.name.from_text(origin).to_wire() or b'')
    tokens = dns.tokenizer.Tokenizer(text)
    while not (token := tokens.get(want_leading=False)).is_eof():
        if token.is_eol():
            continue
        owner = dns.name.from_text(token.value)
        ttl, _, rtype = tokens.get_ttl(), tokens.get_identifier(), dns.rdatatype.from_text(tokens.get_identifier())
        add(found, owner, rtype, ttl, dns.rdata.from_text(dns.rdataclass.IN, rtype, tokens))
    return found


def by_dnspython(zone: dns.zone.Zone) -> bytes:
    return zone.compute_digest(dns.zonetypes.DigestHashAlgorithm.SHA384).digest


@pytest.mark.parametrize('text', [SIMPLE, COMPLEX], ids=['A.1', 'A.2'])
def test_the_examples_of_rfc_8976_have_the_digests_that_they_tell(text: str) -> None:
    digest = ''.join(text.split('ZONEMD 2018031900 1 1 (')[1].partition(')')[0].split())
    assert from_lines(text).digest().hex() == digest


def test_names_in_rdata_are_digested_as_dnspython_does() -> None:
    zone = dns.zone.from_text(NAMES, 'example.', relativize=False, check_origin=False)
    assert contents(zone).digest() == by_dnspython(zone)


@pytest.mark.parametrize('seed', range(20))
def test_any_zone_has_the_digest_that_dnspython_makes(seed: int) -> None:
    zone = any_zone(random.Random(seed))
    assert contents(zone).digest() == by_dnspython(zone)


def any_zone(chance: random.Random) -> dns.zone.Zone:
    """A zone with names of odd octets, and short ones inside each other."""
    zone = dns.zone.from_text('@ 60 IN SOA ns1 hostmaster 1 2 3 4 5\n@ 60 IN NS ns1\n', 'Example.com.',
                              relativize=False)
    octets = [b'\0', b'\1', b'\2', b'.', b'A', b'a', b'\\', b'\xff', b'-', b'*']
    for _ in range(60):
        labels = [b''.join(chance.choices(octets, k=chance.randrange(1, 4))) for _ in range(chance.randrange(1, 4))]
        owner = dns.name.Name(labels) + zone.origin
        rtype, text = chance.choice([('A', f'192.0.2.{chance.randrange(256)}'), ('TXT', '"Text" "with case"'),
                                     ('MX', '10 Mail.Example.COM.'), ('TYPE65400', '\\# 2 4142')])
        rdata = dns.rdata.from_text('IN', rtype, text)
        zone.find_rdataset(owner, rdata.rdtype, create=True).add(rdata, 60)
    return zone


def test_names_out_of_a_compressed_message_come_whole() -> None:
    answer = dns.message.from_text('id 1\nopcode QUERY\nrcode NOERROR\nflags QR\n;QUESTION\nexample. IN AXFR\n;ANSWER\n'
                                   + ''.join(line + '\n' for line in NAMES.splitlines() if line))
    octets = answer.to_wire()
    found, known, at = DigestedZone(b'\7example\0'), dict[int, bytes](), 12 + 9 + 4
    for _ in range(int.from_bytes(octets[6:8], 'big')):
        owner, at = wire.name_at(octets, at, known)
        rtype, ttl = int.from_bytes(octets[at:at + 2], 'big'), int.from_bytes(octets[at + 4:at + 8], 'big')
        end = at + 10 + int.from_bytes(octets[at + 8:at + 10], 'big')
        found.add(owner, rtype, ttl, zonemd.canonical(rtype, octets, at + 10, end, known))
        at = end
    assert at == len(octets) and found.digest() == from_lines(NAMES).digest()


def test_differences_are_told_by_name_and_type() -> None:
    ours = from_lines(SIMPLE)
    assert list(ours.differences(from_lines(SIMPLE))) == []
    other = from_lines(SIMPLE.replace('203.0.113.63', '203.0.113.64').replace('3600 IN AAAA', '60 IN AAAA'))
    assert list(ours.differences(other)) == [(b'\3ns1\7example\0', 1), (b'\3ns2\7example\0', 28)]
    more = from_lines(SIMPLE + 'example. 60 IN TXT "more"\n')
    assert list(ours.differences(more)) == list(more.differences(ours)) == [(b'\7example\0', 16)]
    assert (len(ours), len(more)) == (5, 6)


def test_a_name_that_only_ends_like_the_zone_is_not_in_it() -> None:
    found = DigestedZone(b'\7example\0')
    found.add(b'\x0fxxxxxxx\7example\0', 1, 60, b'\xc0\0\2\1')
    assert len(found) == 0


def test_a_digest_counts_that_is_simple_sha384_and_of_the_serial() -> None:
    good = (5).to_bytes(4, 'big') + b'\1\1' + bytes(48)
    assert zonemd.digest_in(good, 5) == bytes(48)
    for bad in (good[:4] + b'\2\1' + good[6:], good[:4] + b'\1\2' + good[6:], good[:-1], good + b'\0'):
        assert zonemd.digest_in(bad, 5) is None
    assert zonemd.digest_in(good, 6) is None


@pytest.mark.parametrize('octets', [b'', b'\3ab', b'\xc0', b'\xc0\0', b'\x40a\0', b'\1a\xc0\0', b'\x3f' + b'a' * 63,
                                    (b'\x3f' + b'a' * 63) * 4 + b'\0'])
def test_what_is_no_name_is_refused(octets: bytes) -> None:
    with pytest.raises(Malformed):
        wire.name_at(octets, 0, {})


@pytest.mark.parametrize(('rtype', 'rdata'), [(2, b''), (15, b'\0'), (15, b'\0\x0a\3a'), (33, b'\0' * 6),
                                              (35, b'\0' * 4), (6, b'\0')])
def test_what_is_no_rdata_of_its_type_is_refused(rtype: int, rdata: bytes) -> None:
    with pytest.raises(Malformed):
        zonemd.canonical(rtype, rdata, 0, len(rdata), {})
