"""The rules of validation, each with what it is against and with its nearest neighbours that are right."""

from __future__ import annotations

import collections

import dns.rdata
import pytest

from designate_pool import backends
from designate_pool.protocol import rules
from designate_pool.protocol.names_and_rdata import parse_rdata
from designate_pool.protocol.rules import Level, ServerLimit

ZONE = 'example.com.'


def contents(*lines: str) -> dict[str, dict[str, tuple[int, list[str]]]]:
    zone: dict[str, dict[str, tuple[int, list[str]]]] = collections.defaultdict(dict)
    for line in lines:
        name, rtype, data = line.replace('@', ZONE).split(' ', 2)
        name = name if name.endswith('.') else f'{name}.{ZONE}'
        zone[name].setdefault(rtype, (300, []))[1].append(data)
    return zone


#: Type covered left out.
SIGNED = '13 3 300 20300101000000 20200101000000 1 @ AAAA'


def broken(*lines: str, level: Level = Level.ERROR) -> set[str]:
    return {violation.rule.id for violation in rules.of_zone(ZONE, contents(*lines)) if violation.rule.level is level}


@pytest.mark.parametrize(('rule', 'lines'), [
    ('cname-alone', ('www CNAME example.net.', 'www TXT "x"')),
    ('cname-apex', ('@ CNAME example.net.',)),
    ('dname-below', ('old DNAME example.net.', 'a.www.old A 192.0.2.1')),
    ('dname-below', ('@ DNAME example.net.', 'www A 192.0.2.1')),
    ('dname-below', ('old DNAME example.net.', f'www.old RRSIG A {SIGNED}')),
    ('dname-ns', ('old DNAME example.net.', 'old NS ns1.example.net.')),
    ('ds-apex', ('@ DS 12345 13 2 ' + 'ab' * 32,)),
    ('ns-wildcard', ('*.sub NS ns1.example.net.',)),
    ('nsec3-owner', ('www NSEC3 1 0 0 - ' + '0' * 32 + ' A',)),
    ('tlsa-port', ('_65536._tcp TLSA 3 1 1 ' + 'ab' * 32,)),
    ('tlsa-port', ('_99999._SCTP TLSA 3 1 1 ' + 'ab' * 32,)),
    ('x25-address', ('x X25 "12345a"',)),
    ('nsap-address', ('x NSAP 0x',)),
    ('apl-family', ('x APL 3:abcd/8',)), ('ipseckey-key', ('x IPSECKEY 10 0 0 . AQNR',)),
    ('rrsig-labels', ('x RRSIG A 13 1 300 20300101000000 20200101000000 1 @ AAAA',)),
    ('nsec3-iterations', ('@ NSEC3PARAM 1 0 2501 -',)), ('svcb-dohpath', ('x HTTPS 1 . key7="/dns-query"',)),
    ('rrset-size', ['x TXT ' + ' '.join([f'"{number:0255}"'] * 60) for number in range(5)]),
    ('rrset-size', ['x TXT ' + ' '.join([f'"{0:0255}"'] * 253)]),
], ids=lambda value: value if isinstance(value, str) else '')
def test_what_no_zone_may_have(rule, lines):
    assert broken(*lines) == {rule}


# Aliases of TLSA records may lead to any name (RFC 7671 section 7).
@pytest.mark.parametrize('lines', [
    ('www CNAME example.net.', f'www RRSIG CNAME {SIGNED}', 'www NSEC @ CNAME'),
    ('old DNAME example.net.', 'old TXT "x"', 'bold A 192.0.2.1', 'old.www A 192.0.2.1', 'a\\.old A 192.0.2.1'),
    ('@ DNAME example.net.', '@ NS ns1.example.net.'),
    ('sub NS ns1.example.net.', 'sub DS 12345 13 2 ' + 'ab' * 32),
    ('*.sub A 192.0.2.1', '_65535._tcp TLSA 3 1 1 ' + 'ab' * 32, '@ TLSA 3 1 1 ' + 'ab' * 32),
    ('_65536._tcp CNAME example.net.', '_65536 TLSA 3 1 1 ' + 'ab' * 32),
    ('0' * 32 + ' NSEC3 1 0 0 - ' + '0' * 32 + ' A',),
    ('x X25 "311061700956"', 'x NSAP 0x47', 'x SVCB 1 . key7="/q{?dns}"', 'x SVCB 0 example.net.'),
    ['x TXT ' + ' '.join([f'"{number:0255}"'] * 40) for number in range(4)],
], ids=lambda value: value[0].split()[1])
def test_what_a_zone_may_have(lines):
    assert broken(*lines) == set()


@pytest.mark.parametrize(('regexp', 'is_right'), [
    ('', True), ('!^.*$!sip:info@example.com!', True), ('!^\\\\+44(.*)$!sip:\\\\1@x!i', True),
    ('!^(.*)(a|b)*[^x-z]{2,3}$!sip:\\\\1@\\\\2!i', True), ('/^urn:cid:.+@([^.]+.)(.*)$/\\\\2/i', True),
    ('!a\\\\!b!c!', True), ('![[:digit:]]+!b!', True), ('!a[]b]!b!', True), ('!{!b!', True), ('!()!b!', True),
    ('!^.*$!sip:info@example.com', False), ('c', False), ('!abc', False), ('!(a!b!', False), ('![z-a]!b!', False),
    ('![[:digits:]]!b!', False), ('!a[]!b!', False), ('!a{3,2}!b!', False), ('!a{2!b!', False), ('!a**!b!', False),
    ('!^(a)$!\\\\2!', False), ('!(a)\\\\2!b!', False), ('!a!\\\\0!', False), ('!a!b!x', False), ('1a1b1', False),
    ('iaibi', False), ('!|a!b!', False), ('!(a|)!b!', False), ('!!b!', False), ('!a\\000!b!', False),
])
def test_the_substitution_of_a_naptr(regexp, is_right):
    text = f'100 10 "u" "E2U+sip" "{regexp}" .'
    parsed: dns.rdata.Rdata = parse_rdata('NAPTR', text)
    assert (rules.mistake('NAPTR', parsed) is None) == is_right


@pytest.mark.parametrize(('rule', 'lines'), [
    ('target-missing', ('@ MX 10 Mail.example.com.',)),
    ('target-missing', ('sub NS ns1.sub.example.com.',)),
    ('target-alias', ('_sip._tcp SRV 0 0 5060 www.example.com.', 'www CNAME example.net.')),
    ('cname-loop', ('a CNAME B.example.com.', 'b CNAME a.example.com.')),
    ('cname-loop', ('a CNAME a.example.com.',)),
    ('ds-delegation', ('sub DS 12345 13 2 ' + 'ab' * 32,)),
    ('spf-count', ('@ TXT "v=spf1 -all"', '@ TXT "v=spf1 mx -all"')),
    ('spf-dmarc', ('@ TXT "v=spf1 mx +all"', '_dmarc TXT "v=DMARC1; p=reject"')),
], ids=lambda value: value if isinstance(value, str) else '')
def test_what_a_zone_had_better_not_have(rule, lines):
    servers = ('@ NS ns1.example.net.', '@ NS ns2.example.net.')
    assert broken(*servers, *lines, level=Level.WARNING) == {rule}


def test_a_zone_of_good_practice():
    assert broken(
        '@ NS ns1.example.com.', '@ NS ns2.example.net.', 'ns1 AAAA 2001:db8::1', '@ MX 0 .',
        '@ MX 10 any.m.example.com.',
        '*.m A 192.0.2.1', 'sub NS ns1.sub.example.com.', 'ns1.sub A 192.0.2.2', '@ SRV 0 0 1 host.sub.example.com.',
        'a CNAME b.example.com.', 'b CNAME example.net.', '@ TXT "v=spf1 mx -all"', '_dmarc TXT "v=DMARC1; p=reject"',
        level=Level.WARNING) == set()


def test_the_name_servers_of_a_zone():
    one = contents('@ NS ns1.example.net.')
    one[ZONE]['NS'] = 30, ['ns1.example.net.']
    assert [violation.rule.id for violation in rules.of_zone(ZONE, one)] == ['ns-count', 'ns-ttl']


_KNOT_NSEC3PARAM, = (limit for limit in backends.driver_class('knot').capabilities.limits if limit.what == 'NSEC3PARAM')


@pytest.mark.parametrize(('refusal', 'rtype', 'texts', 'why'), [
    (ServerLimit('records', 2, 'takes {limit} records, not {size}'), 'A', ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
     'takes 2 records, not 3'),
    (ServerLimit('records', 3, ''), 'A', ['192.0.2.1', '192.0.2.2', '192.0.2.3'], None),
    (ServerLimit('octets', 10, 'takes {limit} octets'), 'TXT', ['"ten octets"'], 'takes 10 octets'),
    (ServerLimit('octets', 11, ''), 'TXT', ['"ten octets"'], None),
    (ServerLimit('octets', 100, 'takes {limit} octets'), 'HTTPS', ['1 . ipv6hint=::,::,::,::,::,::,::'],
     'takes 100 octets'),
    (ServerLimit('parameters', 1, ''), 'SVCB', [], None), (ServerLimit('iterations', 1, ''), 'NSEC3PARAM', [], None),
    (ServerLimit('parameters', 1, 'takes {limit}'), 'SVCB', ['1 . alpn=h2 port=443'], 'takes 1'),
    (ServerLimit('iterations', 100, 'takes {limit}'), 'NSEC3PARAM', ['1 0 101 -'], 'takes 100'),
    (_KNOT_NSEC3PARAM, 'NSEC3PARAM', ['1 0 0 -', '1 0 9 ab'], 'Knot takes 1 NSEC3PARAM record, not 2'),
    (_KNOT_NSEC3PARAM, 'NSEC3PARAM', ['1 0 0 -'], None),
    (ServerLimit('WKS', 0, 'takes no WKS'), 'WKS', ['192.0.2.1 6 25'], 'takes no WKS'),
    (ServerLimit('WKS', 0, ''), 'A', ['192.0.2.1'], None),
], ids=['records', 'as many', 'octets', 'as long', 'short text', 'no SVCB', 'no NSEC3PARAM', 'parameters',
        'iterations', 'two NSEC3PARAM', 'one NSEC3PARAM', 'type', 'another type'])
def test_what_a_make_of_server_does_not_take(refusal, rtype, texts, why):
    read = rules.from_json(rules.to_json([refusal]))
    assert [violation.why for violation in rules.refused(read, 'www.example.com.', rtype, texts)] == (
        [why] if why else [])


@pytest.mark.parametrize(('name', 'sets', 'is_refused'), [
    ('www.example.com.', {'A': ['192.0.2.1'], 'MX': ['1 .'], 'TXT': ['"x"']}, False),
    ('www.example.com.', {'A': ['192.0.2.1'], 'MX': ['1 .'], 'TXT': ['"x"'], 'HINFO': ['"x" "y"']}, True),
    ('www.example.com.', {'A': ['192.0.2.1'], 'RRSIG': ['A 13', 'A 8']}, False),
    ('www.example.com.', {'A': ['192.0.2.1'], 'RRSIG': ['A 13', 'NSEC 13'], 'NSEC': ['a. A']}, True),
    (ZONE, {'A': ['192.0.2.1']}, False), (ZONE, {'A': ['192.0.2.1'], 'NS': ['a.']}, False),
    (ZONE, {'A': ['192.0.2.1'], 'MX': ['1 .']}, True),
], ids=['as many', 'more', 'signed', 'signed with more', 'apex', 'apex with NS', 'apex with more'])
def test_how_many_types_a_make_of_server_takes_at_a_name(name, sets, is_refused):
    limit = ServerLimit('types', 3, 'takes {limit} types, not {size}')
    assert [violation.why for violation in rules.of_servers([limit], ZONE, {name: sets})] == (
        ['takes 3 types, not 4'] if is_refused else [])


@pytest.mark.parametrize(('zone', 'is_refused'), [
    ('example.com.', False), ('64/26.2.0.192.in-addr.arpa.', False), ('_a.-b-.example.com.', False),
    (r'a\.b.example.com.', True), ('a*b.example.com.', True), (r'a\\b.example.com.', True),
    (r'\200.example.com.', True), ('a!b.example.com.', True),
])
def test_the_names_of_zones_that_a_make_of_server_takes(zone, is_refused):
    assert [violation.why for violation in rules.of_servers([ServerLimit('zone', 0, 'no')], zone, {})] == (
        ['no'] if is_refused else [])


def test_nothing_refused_is_no_text():
    assert rules.to_json([]) == '' and rules.from_json('') == []
