"""What users may write, and what they are told when they may not."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given, strategies as st

from designate_pool.central.validation import fields, masters, names_and_rdata, requests
from designate_pool.errors import BadInput, InvalidField
from designate_pool.model import Pool, RecordChange
from designate_pool.protocol.names_and_rdata import normal_text, parse_rdata, without_case

LONG_LABEL = 'a' * 64


def refused(check: Any, *arguments: Any) -> tuple[str, str]:
    with pytest.raises(InvalidField) as caught:
        check(*arguments)
    return caught.value.kwargs['field'], caught.value.kwargs['why']


@pytest.mark.parametrize(('given', 'expected'), [
    ('Example.COM.', 'example.com.'),
    ('*.example.com.', '*.example.com.'),
    (r'example\\.', r'example\\.'),
    ('_sip._tcp.example.com.', '_sip._tcp.example.com.'),
    (r'\097.example.com.', 'a.example.com.'),
    (r'a\.b.example.com.', r'a\.b.example.com.'),
    ('0/25.2.0.192.in-addr.arpa.', '0/25.2.0.192.in-addr.arpa.'),
])
def test_a_name_comes_out_in_one_spelling(given: str, expected: str) -> None:
    assert names_and_rdata.name('name', given) == expected


@pytest.mark.parametrize(('given', 'why'), [
    ('example.com', 'final dot'),
    ('example.com\\.', 'final dot'),
    ('', 'final dot'),
    ('a..example.com.', 'not a domain name'),
    (f'{LONG_LABEL}.example.com.', 'not a domain name'),
    ('a.' * 128, 'not a domain name'),
    ('bücher.example.', 'xn--'),
    ('a\0.example.com.', 'cannot be stored'),
    ('\ud800.example.com.', 'cannot be stored'),
    (None, 'missing'),
    (7, 'not a text'),
])
def test_a_name_that_is_none(given: Any, why: str) -> None:
    assert why in refused(names_and_rdata.name, 'name', given)[1]


@pytest.mark.parametrize('given', ['.', '*.example.com.'])
def test_neither_root_nor_wildcard_is_a_domain(given: str) -> None:
    assert refused(names_and_rdata.domain_name, 'name', given)[0] == 'name'


@pytest.mark.parametrize(('rtype', 'given', 'text'), [
    ('A', '192.0.2.1', '192.0.2.1'),
    ('AAAA', '2001:DB8::0001', '2001:db8::1'),
    ('MX', '10 mail.example.com.', '10 mail.example.com.'),
    ('TXT', 'one "two three"', '"one" "two three"'),
    ('TXT', 'v=DMARC1; p=reject', '"v=DMARC1; p=reject"'),
    ('TXT', 'v=DMARC1\\; p=reject', '"v=DMARC1; p=reject"'),
    ('TXT', 'v=spf1 include:example.net -all', '"v=spf1 include:example.net -all"'),
    ('SPF', 'hello (world); x', '"hello (world); x"'),
    ('TXT', 'say \\"yes\\"', '"say \\"yes\\""'),
    ('TXT', '"a; (b" "c)"', '"a; (b" "c)"'),
    ('TXT', '\\# 3 026869', '"hi"'),
    ('CAA', '0 issue "ca.example.net; policy=(ev)"', '0 issue "ca.example.net; policy=(ev)"'),
    ('SRV', '0 5 443 www.example.com.', '0 5 443 www.example.com.'),
    ('CAA', '0 issue "ca.example.net"', '0 issue "ca.example.net"'),
    ('SVCB', '1 www.example.com. alpn=h2', '1 www.example.com. alpn="h2"'),
    ('SSHFP', '1 1 ' + 'AB' * 20, '1 1 ' + 'ab' * 20),
    ('DS', '1 13 2 ' + '00' * 32, '1 13 2 ' + '00' * 32),
    ('IPSECKEY', '10 2 2 2001:DB8:0::1 AQAB', '10 2 2 2001:db8::1 AQAB'),
    ('NID', '10 0014:4FFF:FF20:EE64', '10 0014:4fff:ff20:ee64'),
])
def test_rdata_comes_out_in_one_spelling(rtype: str, given: str, text: str) -> None:
    (found,) = names_and_rdata.rdatas('records', rtype, [given])
    assert found.text == text
    assert names_and_rdata.rdatas('records', rtype, [found.text]) == (found,)


def test_rdata_has_its_wire_form_without_compression() -> None:
    (found,) = names_and_rdata.rdatas('records', 'MX', ['10 mail.example.com.'])
    assert found.wire == b'\x00\x0a\x04mail\x07example\x03com\x00'


@pytest.mark.parametrize('given', ['192.0.2.1', '0.0.0.0', '255.255.255.255', '2001:db8::1', '2001:db8:1:2:3:4:5:6',
                                   '1::', 'fe80:1:2::a:b'])
def test_an_address_has_the_wire_form_that_dnspython_makes(given: str) -> None:
    rtype = 'AAAA' if ':' in given else 'A'
    assert names_and_rdata.PLAIN[rtype](given)
    (found,) = names_and_rdata.rdatas('records', rtype, [given])
    parsed = names_and_rdata.parse_rdata(rtype, given)
    assert found == (parsed.to_text(), parsed.to_wire())


@pytest.mark.parametrize(('rtype', 'given', 'kept'), [
    ('A', ['192.0.2.1', '192.0.2.2', '192.0.2.1'], ['192.0.2.1', '192.0.2.2']),
    ('A', ['192.0.2.1 ', '192.0.2.1'], ['192.0.2.1']),
    ('AAAA', ['2001:db8::1', '2001:DB8:0::1'], ['2001:db8::1']),
    ('AAAA', ['2001:DB8:0::1', '2001:db8::1'], ['2001:db8::1']),
    ('NS', ['a.example.com.', 'A.Example.com.'], ['a.example.com.']),
])
def test_a_record_that_is_repeated_counts_once(rtype, given, kept):
    assert [each.text for each in names_and_rdata.rdatas('records', rtype, given)] == kept


@pytest.mark.parametrize(('rtype', 'given', 'field', 'why'), [
    ('TXT', ['text\\'], 'records[0]', 'not TXT data'),
    ('TXT', ['\\\\'], 'records[0]', 'a backslash at the end has to be in quotes'),
    ('TLSA', ['3 1 1 ' + 'ab' * 31], 'records[0]', 'length inconsistent'),
    ('TLSA', ['3 1 2 ' + 'ab' * 32], 'records[0]', 'length inconsistent'),
    ('A', ['192.0.2.1', '192.0.2.256'], 'records[1]', 'not an IPv4 address: 192.0.2.256'),
    ('A', ['2001:db8::1'], 'records[0]', 'not an IPv4 address: '),
    ('A', ['192.0.2.1\n192.0.2.2'], 'records[0]', 'more than one line'),
    ('A', ['192.0.2.1 192.0.2.2'], 'records[0]', 'not an IPv4 address: '),
    ('A', [''], 'records[0]', 'not an IPv4 address: '),
    ('A', [7], 'records[0]', 'not a text'),
    ('A', [], 'records', 'at least one'),
    ('A', '192.0.2.1', 'records', 'not a list'),
    ('A', None, 'records', 'missing'),
    ('CNAME', ['a.example.com.', 'A.example.com.'], 'records', 'one CNAME record at most'),
    ('MX', ['10 mail'], 'records[0]', 'final dot'),
    ('CNAME', ['www'], 'records[0]', 'final dot'),
    ('TXT', ['"open'], 'records[0]', 'not TXT data'),
    ('TXT', ['ends with \\'], 'records[0]', 'not TXT data'),
    ('TXT', ['"v=DMARC1" ; p=reject'], 'records[0]', "'; p=reject' would be dropped"),
    ('TXT', ['"a" ( "b" )'], 'records[0]', '\'( "b" )\' would be dropped'),
    ('A', ['192.0.2.1 ; the old one'], 'records[0]', "'; the old one' would be dropped"),
    ('A', ['192.0.2.1;'], 'records[0]', "';' would be dropped"),
    ('MX', ['10 ( mail.example.com. )'], 'records[0]', "'( mail.example.com. )' would be dropped"),
    ('CAA', ['0 issue ca.example.net; policy=ev'], 'records[0]', "'; policy=ev' would be dropped"),
    ('CAA', ['0 issue "ca.example.net" "more"'], 'records[0]', 'not CAA data'),
    ('HINFO', ['"amd64" (linux)'], 'records[0]', "'(linux)' would be dropped"),
    ('CNAME', ['www.example.com. ; x'], 'records[0]', "'; x' would be dropped"),
    ('MX', ['65536 mail.example.com.'], 'records[0]', 'not MX data'),
    ('IPSECKEY', ['\\# 3 000099'], 'records[0]', 'algorithm 0 is for no key'),
])
def test_rdata_that_is_refused(rtype: str, given: Any, field: str, why: str) -> None:
    found = refused(names_and_rdata.rdatas, 'records', rtype, given)
    assert found[0] == field
    assert why in found[1]


@given(st.text(max_size=40), st.sampled_from(['A', 'TXT', 'MX', 'SVCB', 'LOC', 'NAPTR', 'CAA', 'HIP', 'APL', 'DNSKEY']))
def test_rdata_of_any_text_is_taken_or_refused_with_its_field(text: str, rtype: str) -> None:
    try:
        (found,) = names_and_rdata.rdatas('records', rtype, [text])
    except InvalidField as error:
        assert error.kwargs['field'] == 'records[0]'
    else:
        assert names_and_rdata.rdatas('records', rtype, [found.text]) == (found,)


@pytest.mark.parametrize(('given', 'why'), [
    ('RRSIG', 'signs'), ('NSEC', 'signs'), ('nsec3', 'signs'), ('ANY', 'messages'), ('AXFR', 'messages'),
    ('OPT', 'messages'), ('TSIG', 'messages'), ('TKEY', 'messages'), ('NOSUCH', 'not a record type'),
    ('TYPE46', 'signs'), ('TYPE65534', 'signs'), ('MD', 'cannot be checked'), ('TYPE3', 'cannot be checked'),
    ('', 'not a record type'), ('TYPE99999', 'not a record type'),
])
def test_types_that_are_refused(given: str, why: str) -> None:
    assert why in refused(names_and_rdata.record_type, 'type', given)[1]


def test_a_type_by_its_number_has_data_in_octets() -> None:
    assert names_and_rdata.record_type('type', 'type65300') == 'TYPE65300'
    assert names_and_rdata.rdatas('records', 'TYPE65300', [r'\# 4 0A000001', r'\# 0']) == (
        (r'\# 4 0a000001', b'\n\0\0\1'), ('\\# 0 ', b''))
    assert 'not TYPE65300 data' in refused(names_and_rdata.rdatas, 'records', 'TYPE65300', ['192.0.2.1'])[1]


def test_data_without_octets_has_a_text_that_can_be_written_back() -> None:
    assert names_and_rdata.rdatas('records', 'APL', ['']) == ((r'\# 0', b''),)
    assert names_and_rdata.rdatas('records', 'APL', [r'\# 0', '']) == ((r'\# 0', b''),)
    assert normal_text('APL', parse_rdata('APL', '')) == without_case('APL', '') == r'\# 0'


def test_a_type_comes_out_in_one_spelling() -> None:
    assert [names_and_rdata.record_type('type', each) for each in ('a', 'TYPE28', 'nsec3param')] == ['A', 'AAAA',
                                                                                                     'NSEC3PARAM']


@pytest.mark.parametrize('given', [-1, 2147483648, '60', 1.5, True])
def test_a_ttl_that_is_none(given: Any) -> None:
    assert refused(fields.ttl, 'ttl', given)[0] == 'ttl'


@pytest.mark.parametrize('given', ['hostmaster@example.com', 'first.last@example.com', 'a+b@mail.example.com'])
def test_an_email_address(given: str) -> None:
    assert names_and_rdata.email('email', given) == given


@pytest.mark.parametrize('given', ['', 'a', '@example.com', 'a@', 'a@example.com.', 'a b@example.com', 'a@b@c', 'a@..',
                                   'ä@example.com', 'a@exämple.com', 'a' * 64 + '@example.com',
                                   'a@' + 'b.' * 127 + 'c', 'a@b/c.example', 'a@<b>.example', 'a@-b.example',
                                   'a@b-.example', r'a@b\.c.example'])
def test_an_email_address_that_is_none(given: str) -> None:
    assert refused(names_and_rdata.email, 'email', given)[0] == 'email'


def test_what_is_unknown_is_named() -> None:
    domain = {'name': 'example.com.', 'email': 'a@example.com'}
    assert refused(requests.new_domain, {**domain, 'tll': 60})[0] == 'tll'
    assert refused(requests.domain_values, {'name': 'example.org.'})[0] == 'name'
    assert refused(requests.recordset_values, {'type': 'A'})[0] == 'type'
    assert refused(requests.recordsets, [{'name': 'example.com.', 'typ': 'A'}])[0] == 'recordsets[0].typ'
    assert refused(requests.pool, {'names': 1}, Pool('default'))[0] == 'names'


@pytest.mark.parametrize(('given', 'field'), [
    ({'email': 'a@example.com'}, 'name'),
    ({'name': 'example.com.'}, 'email'),
    ({'name': 'example.com.', 'email': 'a@example.com', 'description': 'x' * 161}, 'description'),
    ({'name': 'example.com.', 'email': 'a@example.com', 'ttl': -1}, 'ttl'),
    ({'name': 'example.com.', 'email': 'a@example.com', 'pool_id': 'x', 'pool_name': 'y'}, 'pool_id'),
    ('example.com.', 'values'),
])
def test_a_domain_that_is_refused(given: Any, field: str) -> None:
    assert refused(requests.new_domain, given)[0] == field


@pytest.mark.parametrize(('given', 'field'), [
    ([{'name': 'www.example.com.', 'type': 'A', 'records': ['x']}], 'changes[0].records[0]'),
    ([RecordChange('www.example.com.', 'A', ('192.0.2.1',)), RecordChange('www', 'A')], 'changes[1].name'),
    ([RecordChange('www.example.com.', 'A', ('192.0.2.1',), ttl=-1)], 'changes[0].ttl'),
    ([RecordChange('www.example.com.', 'A'), RecordChange('WWW.example.com.', 'a')], 'changes[1]'),
    ([7], 'changes[0]'),
    ('no list', 'changes'),
])
def test_changes_that_are_refused(given: Any, field: str) -> None:
    assert refused(requests.changes, given)[0] == field


@pytest.mark.parametrize(('given', 'field'), [
    ({'name': 'a/b'}, 'name'),
    ({'name': 'a' * 51}, 'name'),
    ({'name': None}, 'name'),
    ({'name_servers': ['ns1.example.com']}, 'name_servers[0]'),
    ({'name_servers': ['ns1.example.com.', 'NS1.example.com.']}, 'name_servers[1]'),
    ({'name_servers': 'ns1.example.com.'}, 'name_servers'),
    ({'also_notifies': ['192.0.2.1:0']}, 'also_notifies[0]'),
    ({'also_notifies': ['192.0.2.1:53', 'ns1.example.com']}, 'also_notifies[1]'),
    ({'also_notifies': ['[2001:db8::x]:53']}, 'also_notifies[0]'),
    ({'also_notifies': ['192.0.2.1 key']}, 'also_notifies[0]'),
    ({'also_notifies': ['192.0.2.1 with key.example.com.']}, 'also_notifies[0]'),
    ({'also_notifies': ['192.0.2.1 key no..name.']}, 'also_notifies[0]'),
])
def test_pools_that_are_refused(given: dict[str, Any], field: str) -> None:
    assert refused(requests.pool, given, Pool('default'))[0] == field


def test_a_pool_is_changed_where_something_is_given() -> None:
    old = Pool('default', description='old', name_servers=('ns1.example.com.',))
    new = requests.pool({'also_notifies': ['192.0.2.1', '[2001:db8::1]:5300', '192.0.2.2:53']}, old)
    assert new == Pool('default', description='old', name_servers=('ns1.example.com.',),
                       also_notifies=('192.0.2.1', '[2001:db8::1]:5300', '192.0.2.2:53'))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from(['name', 'type', 'records', 'email', 'ttl', 'pool_id']), inner, max_size=4)))
def test_nonsense_is_bad_input_and_nothing_else(given: Any) -> None:
    for check in (requests.new_domain, requests.domain_values, requests.recordsets, requests.changes):
        try:
            check(given)
        except BadInput:
            pass


@pytest.mark.parametrize('given, reverse', [
    ('192.0.2.7.', '2.0.192.in-addr.arpa.'), ('192.0.2.64/26.', '2.0.192.in-addr.arpa.'),
    ('192.0.2.7/24.', '2.0.192.in-addr.arpa.'), ('10.0.0.0/8.', '10.in-addr.arpa.'),
    ('198.51.100.0/23.', '51.198.in-addr.arpa.'), ('0.0.0.0/0.', 'in-addr.arpa.'),
    ('2001:DB8:1::/48.', '1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.'), ('2001:db8::/31.', 'b.d.0.1.0.0.2.ip6.arpa.'),
    ('2001:db8::1.', '0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.')])
def test_an_address_or_a_network_is_refused_and_its_reverse_zone_named(given: str, reverse: str) -> None:
    assert refused(requests.new_domain, {'name': given, 'email': 'hostmaster@example.com'}) == (
        'name', 'it is an address or a network and no name; its reverse names are in '
        f'{reverse}, or zones below')


@pytest.mark.parametrize('given', ['ex ample.', 'example .com.', ' example.com.', r'ex\032ample.com.', 'a\tb.example.',
                                   r'a\000b.example.', r'a\127b.example.'])
def test_what_has_blanks_or_control_characters_is_refused(given: str) -> None:
    assert refused(requests.new_domain, {'name': given, 'email': 'hostmaster@example.com'}) == (
        'name', 'a blank or a control character is in it')


@pytest.mark.parametrize('name', [
    '2.0.192.in-addr.arpa.', '0/26.2.0.192.in-addr.arpa.', '1.2.3.', 'xn--bcher-kva.example.', '_tcp.example.com.',
    r'a\.b.example.com.', r'\255.example.com.', r'a\\000.example.com.', 'a/b.example.net.', 'com.'])
def test_what_may_be_meant_is_taken(name: str) -> None:
    assert requests.new_domain({'name': name, 'email': 'hostmaster@example.com'}).name == name


ALLOWED = (ipaddress.ip_network('10.1.0.0/16'),)


@pytest.mark.parametrize('given, kept', [
    ('192.0.2.1', '192.0.2.1:53'), ('192.0.2.1:5300', '192.0.2.1:5300'), ('2001:DB8::1', '[2001:db8::1]:53'),
    ('[2001:db8::1]:5300', '[2001:db8::1]:5300'), ('10.1.2.3', '10.1.2.3:53'),
    ('::ffff:198.51.100.1', '198.51.100.1:53'), ('192.0.2.1#NS1.example.net', '192.0.2.1:853#ns1.example.net'),
    ('[2001:db8::1]:5300#ns1', '[2001:db8::1]:5300#ns1'),
])
def test_masters_that_are_kept(given: str, kept: str) -> None:
    assert masters.parse('masters', [given, given], ALLOWED) == kept


@pytest.mark.parametrize('given', [
    '10.2.0.1', '172.31.0.1', '192.168.0.1', '100.64.0.1', 'fd00::1', '127.0.0.1', '::1', '0.0.0.0', '::', '0.1.2.3',
    '169.254.169.254', 'fe80::1', 'fe80::1%eth0', '224.0.0.1', 'ff02::1', '255.255.255.255', '::ffff:127.0.0.1',
    '::127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', '192.0.0.1', '198.18.0.1', '198.19.255.255', '168.63.129.16',
    '192.88.99.1', '::ffff:0:7f00:1', '2001:2::1', 'ns1.example.com.', '192.0.2.1:0', '192.0.2.1:65536', '', 5,
    '192.0.2.1#', '192.0.2.1#a b', '192.0.2.1#a,b', '127.0.0.1#ns1.example.net', f'192.0.2.1#{"a." * 127}b'])
def test_masters_that_are_refused(given: object) -> None:
    with pytest.raises(InvalidField, match='masters.0'):
        masters.parse('masters', [given], ALLOWED)


def test_ports_of_masters() -> None:
    for port in (53, 5300, 5399):
        assert masters.parse('masters', [f'192.0.2.1:{port}'], (), ('53', '5300-5399')) == f'192.0.2.1:{port}'
    for master in ('192.0.2.1:22', '[2001:db8::1]:5400', '10.1.2.3:22'):
        with pytest.raises(InvalidField, match='is not a port of masters'):
            masters.parse('masters', [master], ALLOWED, ('53', '5300-5399'))


def test_how_many_masters() -> None:
    for count in (0, 11):
        with pytest.raises(InvalidField):
            masters.parse('masters', [f'192.0.2.{number}' for number in range(count)])
