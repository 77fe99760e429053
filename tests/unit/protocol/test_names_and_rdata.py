"""One normal form for each name and each rdata, and a clear error for what has none."""

from __future__ import annotations

import re

import dns.rdata
import pytest
from hypothesis import given, strategies as st

from designate_pool.central.validation.names_and_rdata import rdatas
from designate_pool.errors import InvalidField
from designate_pool.protocol import zonemd
from designate_pool.protocol.names_and_rdata import (MAX_TTL, SINGLE, lies_in, normal_name, normal_rdata, parents,
                                                     rname, text_of_wire, type_number)
from designate_pool.protocol.rrset import Extra, RRset, rrset, unpack

U_UMLAUT = r'\195\188'


@pytest.mark.parametrize(('name', 'normal'), [
    ('www.example.com.', 'www.example.com.'),
    ('WWW.Example.COM.', 'www.example.com.'),
    ('*.example.com.', '*.example.com.'),
    ('_sip._tcp.example.com.', '_sip._tcp.example.com.'),
    ('.', '.'),
    (r'a\.b.example.com.', r'a\.b.example.com.'),
    (r'\065bc.example.com.', 'abc.example.com.'),
    (r'example\\.', r'example\\.'),
    (r'\009.example.com.', r'\009.example.com.'),
    ('a*.example.com.', 'a*.example.com.'),
    (f'{"x" * 63}.example.com.', f'{"x" * 63}.example.com.'),
])
def test_a_name_has_one_normal_form(name: str, normal: str) -> None:
    assert normal_name(name) == normal
    assert normal_name(normal) == normal


#: By type, data with a name that has capitals, of every type that has names among its data.
WITH_NAMES = {
    'AFSDB': '1 {}', 'AMTRELAY': '10 0 3 {}', 'CNAME': '{}', 'DNAME': '{}', 'DSYNC': 'CDS NOTIFY 53 {}',
    'HIP': '2 200100107B1A74DF365639CC39F1D578 AwEAAbdx {}', 'HTTPS': '1 {} alpn="h2,X-Own"',
    'IPSECKEY': '10 3 2 {} AQNRU3mG',
    'KX': '10 {}', 'LP': '10 {}', 'MX': '10 {}', 'NAPTR': '100 10 "U" "E2U+sip" "!^.*$!sip:A@example.com!" {}',
    'NS': '{}', 'PTR': '{}', 'PX': '10 {0} {0}', 'RP': '{0} {0}', 'RT': '10 {}', 'SRV': '1 2 3 {}',
    'SVCB': '1 {} key667="Hello"'}


@pytest.mark.parametrize('rtype', sorted(WITH_NAMES))
def test_names_in_data_are_compared_without_case(rtype: str) -> None:
    """RFC 4343 section 3, whether RFC 4034 section 6.2 names the type or not; the rest of the data keeps its case."""
    texts = [WITH_NAMES[rtype].format(name) for name in ('Svc.Example.NET.', 'svc.example.net.')]
    normal = {normal_rdata(rtype, text) for text in texts}
    assert len(normal) == 1 and (rtype in SINGLE or len(rdatas('records', rtype, texts)) == 1)
    assert normal_rdata(rtype, *normal) in normal and 'Svc' not in ''.join(normal)
    for kept in ('X-Own', 'A@example', '"U"', 'Hello', 'AwEAAbdx', 'AQNRU3mG'):
        assert (kept in texts[0]) == (kept in ''.join(normal))
    wires = [dns.rdata.from_text('IN', rtype, text).to_wire() or b'' for text in texts]
    number = type_number(rtype)
    zones = [zonemd.DigestedZone(b'\0') for _ in wires]
    for zone, wire in zip(zones, wires):
        zone.add(b'\0', number, 300, zonemd.canonical(number, wire, 0, len(wire), {}))
    assert len({zone.comparable().digest() for zone in zones}) == 1 and not [*zones[0].comparable().differences(
        zones[1].comparable())]


@pytest.mark.parametrize(('name', 'why'), [
    ('www.example.com', 'the final dot is missing'),
    ('', 'the final dot is missing'),
    ('a..example.com.', 'not a domain name'),
    (f'{"x" * 64}.example.com.', 'not a domain name'),
    (f'{"x." * 128}', 'not a domain name'),
    ('bücher.example.com.', 'xn--'),
    ('\u2003.example.com.', 'not ASCII'),
])
def test_what_is_no_absolute_name_is_refused(name: str, why: str) -> None:
    with pytest.raises(InvalidField, match=why):
        normal_name(name)


@pytest.mark.parametrize(('rtype', 'text', 'normal'), [
    ('A', '192.0.2.1', '192.0.2.1'),
    ('AAAA', '2001:DB8:0:0::1', '2001:db8::1'),
    ('CNAME', 'WWW.Example.NET.', 'www.example.net.'),
    ('MX', '010  MAIL.example.com.', '10 mail.example.com.'),
    ('SRV', '0 5 5060 Sip.Example.com.', '0 5 5060 sip.example.com.'),
    ('TXT', 'word', '"word"'),
    ('TXT', '"Case stays; and ; too" "second"', '"Case stays; and ; too" "second"'),
    ('TXT', '"a\tb"', r'"a\009b"'),
    ('TXT', 'x' * 300, f'"{"x" * 255}" "{"x" * 45}"'),
    ('SPF', '"a" "' + r'\"' * 256 + '"', '"a" "' + r'\"' * 255 + r'" "\""'),
    ('TXT', 'ü' * 128, f'"{U_UMLAUT * 127}" "{U_UMLAUT}"'),
    ('CAA', '0 issue "ca.example.net"', '0 issue "ca.example.net"'),
    ('TYPE65280', r'\# 4 C0000201', r'\# 4 c0000201'),
    ('NID', '10 0014:4FFF:FF20:EE64', '10 0014:4fff:ff20:ee64'),
    ('L64', '10 2001:0DB8:1140:1000', '10 2001:0db8:1140:1000'),
    ('AMTRELAY', '10 0 2 2001:DB8:0::1', '10 0 2 2001:db8::1'),
    ('IPSECKEY', '10 2 2 2001:DB8::1 AQAB', '10 2 2 2001:db8::1 AQAB'),
    ('IPSECKEY', '10 3 2 gw.example. AQAB', '10 3 2 gw.example. AQAB'),
])
def test_data_has_one_normal_form(rtype: str, text: str, normal: str) -> None:
    assert normal_rdata(rtype, text) == normal
    assert normal_rdata(rtype, normal) == normal


@pytest.mark.parametrize(('rtype', 'text', 'why'), [
    ('A', '192.0.2.256', 'not an IPv4 address: 192.0.2.256'),
    ('A', '192.0.2', 'not an IPv4 address: 192.0.2'),
    ('A', '192.0.2.01', 'not an IPv4 address: 192.0.2.01'),
    ('A', '192.0.2.١', 'not an IPv4 address: 192.0.2.١'),
    ('A', '192.0.2.1 192.0.2.2', 'not an IPv4 address: 192.0.2.1 192.0.2.2'),
    ('A', '192.0.2.1\n', 'more than one line'),
    ('MX', '10 mail', 'the final dot is missing'),
    ('CNAME', 'www.example.net', 'the final dot is missing'),
    ('TXT', '"a"\n"b"', 'more than one line'),
    ('TXT', '"a" ü', 'letters that are not ASCII are written in quotes'),
    ('NOTYPE', 'x', 'not NOTYPE data'),
    ('AAAA', '192.0.2.1', 'not an IPv6 address: 192.0.2.1'),
    ('MX', 'ten mail.example.', r"not MX data \(expecting an integer\): 'ten mail.example.'"),
    ('CNAME', 'faß.example.', 'write faß.example as xn--fa-hia.example'),
    ('CNAME', 'a…b.example.', "write a…b.example as 'xn--…'"),
])
def test_what_is_no_data_of_the_type_is_refused(rtype: str, text: str, why: str) -> None:
    with pytest.raises(InvalidField, match=why) as error:
        normal_rdata(rtype, text)
    assert rtype in str(error.value)


@pytest.mark.parametrize(('name', 'inside'), [
    ('b.esc.example.', True), ('a.b.esc.example.', True), ('xb.esc.example.', False), ('esc.example.', False),
    (r'a\.b.esc.example.', False), (r'a\\.b.esc.example.', True), (r'a\\\.b.esc.example.', False),
    (r'a\.a.b.esc.example.', True),
])
def test_a_name_lies_in_a_zone_by_its_labels(name: str, inside: bool) -> None:
    assert lies_in(name, 'b.esc.example.') is inside
    assert ('b.esc.example.' in (name, *parents(name))) is inside
    assert lies_in(name, '.') and list(parents(name))[-1] == '.'


@pytest.mark.parametrize(('address', 'name'), [
    ('hostmaster@example.com', 'hostmaster.example.com.'),
    ('first.last@Example.com', r'first\.last.Example.com.'),
    ('a$b@example.com', r'a\$b.example.com.'),
    ('a@exa;mple.com', r'a.exa\;mple.com.'),
    ('a@exa mple.com', r'a.exa\032mple.com.'),
])
def test_an_email_address_as_a_name(address: str, name: str) -> None:
    """RFC 1035 section 8: what is before the @ is one label."""
    assert rname(address).to_text() == name


@pytest.mark.parametrize('address', ['', '@example.com', f'{"a" * 64}@example.com', 'ä@example.com', 'a@b..c'])
def test_an_address_that_no_soa_can_hold(address: str) -> None:
    with pytest.raises(ValueError, match='not an e-mail address'):
        rname(address)


def test_an_apl_record_without_items_has_a_text() -> None:
    assert text_of_wire('APL', b'') == r'\# 0'


def test_data_of_an_rrset_is_sorted_and_has_nothing_twice() -> None:
    found = rrset('WWW.example.com.', 'a', 300, ['192.0.2.2', '192.0.2.1', '192.0.2.2'])
    assert found == RRset('www.example.com.', 'A', 300, ('192.0.2.1', '192.0.2.2'))
    assert str(found) == 'www.example.com. 300 A 192.0.2.1, 192.0.2.2'


@pytest.mark.parametrize(('rtype', 'ttl', 'data', 'why'), [
    ('A', 300, [], 'no data'),
    ('A', -1, ['192.0.2.1'], 'TTL'),
    ('A', MAX_TTL + 1, ['192.0.2.1'], 'TTL'),
    ('A', True, ['192.0.2.1'], 'TTL'),
    ('A', '300', ['192.0.2.1'], 'TTL'),
    ('CNAME', 300, ['a.example.com.', 'b.example.com.'], 'one CNAME record at most'),
])
def test_what_is_no_rrset_is_refused_by_its_name_and_type(rtype: str, ttl: int, data: list[str], why: str) -> None:
    with pytest.raises(InvalidField, match=why) as error:
        rrset('www.example.com.', rtype, ttl, data)
    assert f'www.example.com. {rtype}' in str(error.value)


@pytest.mark.parametrize(('rtype', 'given', 'told'), [
    ('TXT', 'v=DMARC1; p=reject', '"v=DMARC1; p=reject"'),
    ('TXT', 'hello (world)', '"hello (world)"'),
    ('TXT', 'one "two three"', '"one" "two three"'),
])
def test_text_without_quotes_is_one_string(rtype: str, given: str, told: str) -> None:
    assert rrset('www.example.com.', rtype, 300, [given]).rdatas == (told,)


@pytest.mark.parametrize(('rtype', 'given', 'rest'), [
    ('TXT', '"v=DMARC1"; p=reject', '; p=reject'),
    ('CAA', '0 issue ca.example.net; policy=ev', '; policy=ev'),
    ('A', '192.0.2.1 ; old', '; old'),
    ('MX', '( 10 mail.example.com. )', '( 10 mail.example.com. )'),
])
def test_nothing_after_a_value_is_dropped(rtype: str, given: str, rest: str) -> None:
    with pytest.raises(InvalidField, match=re.escape(f'{rest!r} would be dropped')):
        rrset('www.example.com.', rtype, 300, [given])


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.integers(0, MAX_TTL))
def test_an_rrset_comes_back_from_its_packed_form(texts: list[bytes], ttl: int) -> None:
    data = ['"' + ''.join(f'\\{octet:03}' for octet in text) + '"' for text in texts]
    found = rrset('www.example.com.', 'TXT', ttl, data)
    assert unpack(found.key, found.packed) == found
    assert found.packed.count('\t') == len(found.rdatas)


@pytest.mark.parametrize(('extra', 'is_for'), [
    (Extra(), True),
    (Extra(ignored=True), False),
    (Extra(included=('here',)), True),
    (Extra(included=('there',)), False),
    (Extra(excluded=('here',)), False),
    (Extra(excluded=('there',)), True),
    (Extra(included=('here',), excluded=('here',)), False),
])
def test_which_targets_a_record_is_for(extra: Extra, is_for: bool) -> None:
    """Z-19."""
    assert extra.is_for('here') is is_for
