"""One normal form for each RRset, and a clear error for what is none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.errors import InvalidField
from designate_pool.protocol.rrset import (MAX_TTL, Extra, RRset, lies_in, normal_name, normal_rdata, parents, rrset,
                                           unpack)


@pytest.mark.parametrize(('name', 'normal'), [
    ('www.example.com.', 'www.example.com.'),
    ('WWW.Example.COM.', 'www.example.com.'),
    ('*.example.com.', '*.example.com.'),
    ('_sip._tcp.example.com.', '_sip._tcp.example.com.'),
    ('.', '.'),
    (r'a\.b.example.com.', r'a\.b.example.com.'),
    (r'\065bc.example.com.', 'abc.example.com.'),
    (r'\009.example.com.', r'\009.example.com.'),
    ('a*.example.com.', 'a*.example.com.'),
    (f'{"x" * 63}.example.com.', f'{"x" * 63}.example.com.'),
])
def test_a_name_has_one_normal_form(name: str, normal: str) -> None:
    assert normal_name(name) == normal
    assert normal_name(normal) == normal


@pytest.mark.parametrize(('name', 'why'), [
    ('www.example.com', 'the final dot is missing'),
    ('', 'the final dot is missing'),
    ('a..example.com.', 'not a domain name'),
    (f'{"x" * 64}.example.com.', 'not a domain name'),
    (f'{"x." * 128}', 'not a domain name'),
    ('bücher.example.com.', 'xn--'),
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
    ('CAA', '0 issue "ca.example.net"', '0 issue "ca.example.net"'),
    ('TYPE65280', r'\# 4 C0000201', r'\# 4 c0000201'),
])
def test_data_has_one_normal_form(rtype: str, text: str, normal: str) -> None:
    assert normal_rdata(rtype, text) == normal
    assert normal_rdata(rtype, normal) == normal


@pytest.mark.parametrize(('rtype', 'text', 'why'), [
    ('A', '192.0.2.256', 'is not A data'),
    ('A', '192.0.2', 'is not A data'),
    ('A', '192.0.2.01', 'is not A data'),
    ('A', '192.0.2.١', 'is not A data'),
    ('A', '192.0.2.1 192.0.2.2', 'is not A data'),
    ('A', '192.0.2.1\n', 'more than one line'),
    ('MX', '10 mail', 'the final dot is missing'),
    ('CNAME', 'www.example.net', 'the final dot is missing'),
    ('TXT', '"a"\n"b"', 'more than one line'),
    ('NOTYPE', 'x', 'is not NOTYPE data'),
])
def test_what_is_no_data_of_the_type_is_refused(rtype: str, text: str, why: str) -> None:
    with pytest.raises(InvalidField, match=why) as error:
        normal_rdata(rtype, text)
    assert rtype in str(error.value)


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


@pytest.mark.parametrize(('name', 'inside'), [
    ('b.esc.example.', True), ('a.b.esc.example.', True), ('xb.esc.example.', False), ('esc.example.', False),
    (r'a\.b.esc.example.', False), (r'a\\.b.esc.example.', True), (r'a\\\.b.esc.example.', False),
    (r'a\.a.b.esc.example.', True),
])
def test_a_name_lies_in_a_zone_by_its_labels(name: str, inside: bool) -> None:
    assert lies_in(name, 'b.esc.example.') is inside
    assert ('b.esc.example.' in (name, *parents(name))) is inside
    assert lies_in(name, '.') and list(parents(name))[-1] == '.'


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


@pytest.mark.parametrize('ttl', [0, MAX_TTL])
def test_the_least_and_the_greatest_ttl(ttl: int) -> None:
    assert rrset('www.example.com.', 'A', ttl, ['192.0.2.1']).ttl == ttl


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
