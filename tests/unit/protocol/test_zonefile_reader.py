"""What is read quickly is what dnspython reads, and makes."""

from __future__ import annotations

import pathlib
import re
import subprocess

import dns.exception
import dns.name
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import dns.tokenizer
import dns.zonefile
import pytest
from hypothesis import assume, example, given, strategies as st

from designate_pool.central import zonefile_parser
from designate_pool.errors import InvalidField
from designate_pool.protocol.names_and_rdata import LONGEST, LONGEST_NAME, PLAIN
from designate_pool.protocol.zonefile import ZoneFileErrors, ZoneFileRecords, wire_of
from testing.processes import binary

_LABEL = st.text('abcxyz0189_-', min_size=1, max_size=63)
_NAME = st.builds(lambda star, labels: f'{star}{".".join(labels)}.', st.sampled_from(['', '*.']),
                  st.lists(_LABEL, min_size=1, max_size=5))
_NUMBER = st.integers(0, 9999).map(str)
_STRING = st.text([chr(each) for each in range(32, 127) if chr(each) not in '"\\'], max_size=255).map('"{}"'.format)
_DATA = {
    'A': st.ip_addresses(v=4).map(str),
    'AAAA': st.one_of(st.ip_addresses(v=6).map(str),
                      st.builds(lambda some, more: f'{":".join(some)}::{":".join(more)}',
                                st.lists(st.sampled_from(['1', 'ab', '2001', 'db8', 'ffff']), max_size=6),
                                st.lists(st.sampled_from(['1', 'ab', 'c0de']), max_size=3))),
    'MX': st.builds('{} {}'.format, _NUMBER, _NAME),
    'SRV': st.builds('{} {} {} {}'.format, _NUMBER, _NUMBER, _NUMBER, _NAME),
    'TXT': st.lists(_STRING, min_size=1, max_size=4).map(' '.join),
    **{rtype: _NAME for rtype in ('CNAME', 'DNAME', 'NS', 'PTR')},
}


def test_every_plain_type_is_drawn() -> None:
    assert _DATA.keys() == PLAIN.keys()


@given(st.sampled_from(sorted(_DATA)).flatmap(lambda rtype: st.tuples(st.just(rtype), _DATA[rtype])))
@example(('AAAA', '2001:db8::1'))
@example(('TXT', '""'))
def test_the_wire_form_of_plain_data_is_that_of_dnspython(drawn: tuple[str, str]) -> None:
    rtype, text = drawn
    assume(len(text) <= LONGEST.get(rtype, LONGEST_NAME) and PLAIN[rtype](text))
    parsed = dns.rdata.from_text('IN', rtype, text, relativize=False)
    assert (parsed.to_text(), parsed.to_wire()) == (text, wire_of(rtype, text))


_GROUPS = st.lists(st.sampled_from(['', '0', '0000', '00a', 'DB8', '2001', 'ffff', '12345', 'g', '192.0.2.1']),
                   min_size=1, max_size=9)


@given(_GROUPS.map(':'.join))
@example('2001:db8::0:5')
@example('::')
@example('::1.2.3.4')
@example('::ffff:102:304')
def test_an_ipv6_address_is_read_as_dnspython_writes_it(text: str) -> None:
    line = SOA.format('') + f'@ 60 AAAA {text}'
    try:
        expected = dnspythons(line)
    except (dns.exception.DNSException, ValueError):
        with pytest.raises(InvalidField):
            ours(line)
    else:
        assert ours(line) == expected


_OWNER = st.sampled_from(['', '', '@', 'www', 'WWW', 'a.b', '*.wild', 'x.example.com.', 'out.example.org.', 'esc\\046d',
                          '10', 'in', '"q"', 'b\\;c'])
_TTL = st.sampled_from(['', '', '300 ', '5m ', '0 ', 'IN ', 'IN 60 ', '60 IN ', '2147483647 ', 'in '])
_WHAT = st.sampled_from([
    'A 192.0.2.1', 'a 192.0.2.1', 'A 192.0.2.1 ; remark', 'A  192.0.2.2  ', 'A 192.0.2.300', 'A', 'AAAA 2001:db8::1',
    'AAAA 2001:DB8::0', 'CNAME www', 'CNAME @', 'CNAME WWW.Example.ORG.', 'MX 10 mail', 'MX 010 mail', 'MX mail',
    'NS ns1.sub', 'SRV 1 2 3 .', 'SRV 1 2 3 host', 'TXT "a" "b"', 'TXT a b', 'TXT "a;b"', 'TXT "open', 'TXT "a\\"b"',
    'TXT ( "a"\n  "b" )', 'TXT ( a ; remark )\n b )', 'TXT "("', 'PTR p.example.com.', 'TYPE65280 \\# 1 00',
    'CAA 0 issue "ca.example.net"', 'HINFO x y', 'TXT "gr\u00fc\u00dfe"', 'A 192.0.2.1 192.0.2.2', 'MX 10 a b'])
_RECORD = st.builds(lambda owner, ttl, what: f'{owner}\t{ttl}{what}', _OWNER, _TTL, _WHAT)
_LINE = st.one_of(_RECORD, _RECORD, _RECORD, st.sampled_from([
    '', '   ', '; remark', ' ; remark', '$ORIGIN example.com.', '$ORIGIN sub', '$TTL 1h', '$TTL 60 ; remark',
    '$GENERATE 1-3 h$ A 192.0.2.$\nwww 60 A 192.0.2.9', '\t', '\r']))
Read = list[tuple[str, str, int, str, bytes]]


def ours(text: str) -> Read:
    found: Read = []
    records = ZoneFileRecords(text, None, ZoneFileErrors(InvalidField.of, 1), zonefile_parser._converted)
    for key, ttl, data in records:
        name, rtype = key.split('\t')
        if isinstance(data, dns.rdata.Rdata):
            found.append((name, rtype, ttl, data.to_text(), data.to_wire() or b''))
        else:
            text, wire = (data, wire_of(rtype, data)) if isinstance(data, str) else data
            found.append((name, rtype, ttl, text, wire))
    return found


class _Collector:
    def __init__(self) -> None:
        self.manager = self
        self.found: Read = []

    def origin_information(self) -> tuple[dns.name.Name, bool, dns.name.Name]:
        return dns.name.root, False, dns.name.root

    def check_put_rdataset(self, check: object) -> None:
        pass

    def _set_origin(self, origin: dns.name.Name) -> None:
        pass

    def add(self, name: dns.name.Name, ttl: int, parsed: dns.rdata.Rdata) -> None:
        self.found.append((name.canonicalize().to_text(), dns.rdatatype.to_text(parsed.rdtype), ttl,
                           parsed.to_text(), parsed.to_wire() or b''))


def dnspythons(text: str) -> Read:
    collector = _Collector()
    dns.zonefile.Reader(dns.tokenizer.Tokenizer(f'{text}\n', 'line'), dns.rdataclass.IN, collector,  # type: ignore
                        allow_directives=('$ORIGIN', '$TTL', '$GENERATE')).read()
    return collector.found


SOA = '$ORIGIN example.com.\n@ {}SOA ns1 h 1 2 3 4 5\n'


@given(st.sampled_from(['', '300 ']), st.lists(_LINE, max_size=12))
@example('', ['www A 192.0.2.1', '\t60 A 192.0.2.2', '\tA 192.0.2.3', '$TTL 7', '\tA 192.0.2.4'])
def test_it_reads_what_dnspython_reads(ttl: str, lines: list[str]) -> None:
    compare(SOA.format(ttl) + '\n'.join(lines))


def compare(text: str) -> None:
    try:
        expected = dnspythons(text)
    except (dns.exception.DNSException, UnicodeError):
        with pytest.raises(InvalidField, match='^line '):
            ours(text)
        return
    assert ours(text) == expected


_DIRECTIVE = st.sampled_from(['$TTL 300', '$TTL  0 ', '$TTL 1h', '$TTL 4294967296', '$TTL 300 7', '$TTL', '$ttl 60',
                              '$ORIGIN example.com.', '$ORIGIN\texample.com. ', '$ORIGIN com',
                              '$ORIGIN a..b.', '$ORIGIN *.example.com.', '$ORIGIN example.com. x', '$ORIGIN .',
                              f'$ORIGIN {"a." * 126}', f'$ORIGIN {"a." * 128}', ' $TTL 5', '; remark', ''])


_SOA = st.sampled_from(['@ SOA ns1.example.com. h.example.com. 1 2 3 4 5', '@ 60 SOA ns1 h (1 ; serial\n2 3\n4 5 )',
                        'www.example.com. SOA ns1.example.com. h.example.com. 1 2 3 4 5', '@ SOA ns1 h 1 2 3 4',
                        '\tSOA ns1 h 1 2 3 4 5) ('])


@given(st.lists(st.one_of(st.just('$TTL 300'), _DIRECTIVE), max_size=3), _SOA, st.lists(_LINE, max_size=3))
@example(['$TTL 300', '$ORIGIN com.'], 'www.example.com. SOA ns1.example.com. h.example.com. 1 2 3 4 5',
         ['www A 192.0.2.1', '$ORIGIN org.', 'www A 192.0.2.1'])
def test_the_head_of_a_zone_file_is_read_as_dnspython_does(directives: list[str], soa: str, lines: list[str]) -> None:
    # Without an origin it would be the owner of the SOA, other than for dnspython.
    compare('\n'.join(('$ORIGIN example.com.', *directives, soa, *lines)))


def read(text: str, origin: str | None = None) -> list[tuple[str, int, str]]:
    """What is read without conversion, the line of each with it."""
    records = ZoneFileRecords(text, origin, ZoneFileErrors(InvalidField.of, 1), lambda rtype, data: str(data))
    return [(key, records.number, data) for key, _, data in records]


def test_a_record_of_several_lines_has_the_number_of_its_first() -> None:
    assert read(SOA.format('60 ') + '\na TXT ( "x"\n"y"\n)\nb A 192.0.2.1\n')[1:] == [
        ('a.example.com.\tTXT', 4, '"x" "y"'), ('b.example.com.\tA', 7, '192.0.2.1')]


def test_a_generate_makes_many_in_order() -> None:
    assert [data for *_, data in read('$TTL 60\n$GENERATE 1-1000/3 h$ A 192.0.2.1\nx A 192.0.2.2')] == [
        '192.0.2.1'] * 334 + ['192.0.2.2']
    assert [key for key, *_ in read('$TTL 60\n$GENERATE 5-400 h$ 7 TXT $', 'example.com.')] == [
        f'h{number}.example.com.\tTXT' for number in range(5, 401)]


@pytest.mark.parametrize(('line', 'records'), [
    ('h$ MX "0 ."', [('h9', 'MX', '0 .'), ('h10', 'MX', '0 .')]),
    (r'h TXT "\$-$"', [('h', 'TXT', '"$-9"'), ('h', 'TXT', '"$-10"')]),
    (r'h TXT "\"a $$\" ${-8,3,x}\;" ; text', [('h', 'TXT', '"a $" "001;"'), ('h', 'TXT', '"a $" "002;"')]),
    ('${0,3}h 60 IN SRV "0 0 $ h$.x"', [('009h', 'SRV', '0 0 9 h9.x.example.com.'),
                                        ('010h', 'SRV', '0 0 10 h10.x.example.com.')]),
    ('${0,4,n}w PTR "h${2,3,N}"', [('9.0.w', 'PTR', 'hB.0.example.com.'), ('a.0.w', 'PTR', 'hC.0.example.com.')]),
    ('h$ A 192.0.2.$ ; of ${pool}', [('h9', 'A', '192.0.2.9'), ('h10', 'A', '192.0.2.10')]),
], ids=['words', 'an escape', 'escaped quotes', 'TTL and class', 'nibbles', 'a comment'])
def test_a_generate_makes_what_bind_makes(line: str, records: list[tuple[str, str, str]]) -> None:
    assert [(key, data) for key, _, data in read(f'$TTL 60\n$GENERATE 9-10 {line}', 'example.com.')] == [
        (f'{host}.example.com.\t{rtype}', data) for host, rtype, data in records]


@pytest.mark.parametrize('before', ['a 60 A 192.0.2.1', 'A 60 TXT ( "x"\n)'], ids=['plain', 'by dnspython'])
def test_a_blank_owner_after_a_generate_is_the_one_before_it_as_for_bind(tmp_path: pathlib.Path, before: str) -> None:
    text = SOA.format('60 ') + f'@ NS ns1\nns1 A 192.0.2.1\n{before}\n$GENERATE 1-2 h$ 7 A 192.0.2.$\n TXT "y"\n'
    (tmp_path / 'zone').write_text(text)
    made = subprocess.run([binary('named-compilezone'), '-q', '-o', '-', 'example.com', str(tmp_path / 'zone')],
                          capture_output=True, text=True, check=True).stdout
    assert re.search(r'^a\.example\.com\.\s+\d+\s+IN TXT\s+"y"$', made, re.MULTILINE | re.IGNORECASE), made
    assert ours(text)[-1][:2] == ('a.example.com.', 'TXT')


def test_a_text_over_255_octets_is_several_strings() -> None:
    long, strings = f'"{"x" * 300}"', f'"{"x" * 255}" "{"x" * 45}"'
    text = f'$TTL 60\na TXT {long}\nb SPF ( "y"\n{long} )\nc CAA 0 issue {long}'
    assert [data for *_, data in read(text, 'example.com.')] == [strings, f'"y" {strings}', f'0 issue {long}']


@pytest.mark.parametrize('line', ['( $GENERATE 1-999999999 h$ A 192.0.2.1 )', '$GENERATE "1-999999999" h$ A 192.0.2.1',
                                  '$GENERATE (1-999999999 h$ A 192.0.2.1 )'])
def test_a_generate_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(InvalidField, match='line 2: a .GENERATE has to be written as'):
        read(f'$TTL 60\n{line}')


@pytest.mark.parametrize('owner', ['b\u00fccher', 'b.\u00fc.example.com.'])
def test_letters_that_are_not_ascii_are_refused_in_names(owner: str) -> None:
    with pytest.raises(InvalidField, match='not ASCII'):
        read(f'{owner} 60 A 192.0.2.1')


@pytest.mark.parametrize('first', ['$ORIGIN example.com.', 'www 60 A 192.0.2.1', '; saved by Notepad'])
def test_a_byte_order_mark_is_no_part_of_the_first_line(first: str) -> None:
    rest = f'\r\n$TTL 60\r\nftp A 192.0.2.2\r\n{first}'
    assert read(f'\ufeff{first}{rest}') == read(f'{first}{rest}')


def test_a_ttl_of_any_record_of_a_set_is_checked() -> None:
    with pytest.raises(InvalidField, match='line 2: its TTL 2147483648 is more than'):
        read('a.example.com. 60 A 192.0.2.1\na.example.com. 2147483648 A 192.0.2.2\n')
