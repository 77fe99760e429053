"""Zone files: what is read is what dnspython reads, in normal form, and nothing is ever less than the file says."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from designate_pool.errors import InvalidField, SourceError
from designate_pool.planner import master
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import rrset, unpack

ZONE = 'example.com.'
SOA = '@ 3600 IN SOA ns1.example.net. hostmaster.example.net. 1 3600 600 86400 300\n'
NS = '@ 3600 IN NS ns1.example.net.\n'


def shown(text: str, origin: str = ZONE, **options: object) -> list[str]:
    """What *text* says, but for its SOA: a line for each RRset."""
    pairs = master.read(SOA + text, origin, **options)  # type: ignore[arg-type]
    return sorted(str(unpack(key, value)) for key, value in pairs.items() if not key.endswith('SOA'))


def refused(text: str, file: str = 'example.com.zone') -> str:
    with pytest.raises(SourceError) as caught:
        master.read(text, ZONE, file)
    return str(caught.value)


NAMES = st.sampled_from(['example.com.', 'a.example.com.', '*.a.example.com.', r'a\.b.example.com.', 'b.example.com.',
                         r'\000.example.com.', 'xn--bcher-kva.example.com.'])
RRSETS = st.one_of(
    st.tuples(NAMES, st.just('A'), st.sets(st.sampled_from(['192.0.2.1', '192.0.2.2', '192.0.2.10']), min_size=1)),
    st.tuples(NAMES, st.just('TXT'), st.sets(st.text(st.characters(max_codepoint=255), max_size=40).map(
        lambda text: '"' + ''.join(f'\\{ord(each):03}' for each in text) + '"'), min_size=1)),
    st.tuples(NAMES, st.just('MX'), st.sets(st.sampled_from(['0 .', '10 mail.example.net.']), min_size=1)),
    st.tuples(NAMES, st.just('CAA'), st.just({r'0 issue "a\;b \"c\" \\d"'})))


def zone_of(found: list[tuple[str, str, set[str]]], soa: bool = True) -> Zone:
    zone = Zone(ZONE)
    if soa:
        zone.add_record(rrset(ZONE, 'SOA', 60, ['ns.example.net. h.example.net. 1 2 3 4 5']))
    for name, rtype, datas in found:
        zone.add_record(rrset(name, rtype, 300, datas), replace=True)
    return zone


@given(st.lists(RRSETS, max_size=8), st.booleans())
def test_what_is_written_is_read_again(found: list[tuple[str, str, set[str]]], soa: bool) -> None:
    zone = zone_of(found, soa)
    lines = list(master.write(zone))
    assert master.read(lines, ZONE, require_soa=soa) == dict(zone.packed)


WHOLE = """@ 3600 IN SOA ns1.example.net. hostmaster.example.net. (
    1 3600 600 86400 300 )
a A 192.0.2.1
b TXT "one ; two" "three"
c TXT ( "one"
        "two" )
"""


@pytest.mark.parametrize('length', range(len(WHOLE)))
def test_a_file_that_was_cut_short_is_an_error_or_ends_with_a_whole_record(length: int) -> None:
    text = WHOLE[:length]
    if text.rstrip().endswith(('192.0.2.1', ' 300 )', '"three"', '"one ; two"', '"two" )')):
        assert master.read(text, ZONE)
    else:
        assert refused(text)


def test_of_differing_ttls_the_lowest_counts_and_what_is_there_twice_counts_once() -> None:
    """RFC 2181 sections 5.2 and 5."""
    text = 'a 300 A 192.0.2.2\na 60 A 192.0.2.1\na 900 A 192.0.2.2\nb 60 A 192.0.2.1\nb 300 A 192.0.2.1\n'
    assert shown(text) == ['a.example.com. 60 A 192.0.2.1, 192.0.2.2', 'b.example.com. 60 A 192.0.2.1']


def test_a_file_of_the_root_zone() -> None:
    text = '. 60 SOA a. b. 1 2 3 4 5\nexample. 60 NS ns1.example.\n@ 60 NS a\nx 60 A 192.0.2.1\n'
    found = master.read(text, '.')
    assert found.pop('.\tSOA') and found == {
        'example.\tNS': '60\tns1.example.', '.\tNS': '60\ta.', 'x.\tA': '60\t192.0.2.1'}


@pytest.mark.parametrize(('text', 'words'), [
    (SOA + 'a A 192.0.2.1\nb A 192.0.2\n', 'example.com.zone, line 3'),
    (SOA + '; x\n\nb TXT (\n"a"\n', 'line 4 cannot be read: a parenthesis is not closed before the file ends'),
    (SOA + 'b TXT "a\n"\n', 'line 2 cannot be read: a quoted string has no end'),
    (SOA + 'b TXT ( "a"\n "b" ) x (\n) y"\nc A 192.0.2.1', 'line 4'),
    (SOA + 'b SSHFP ( 1 1\n zz )\nc A 192.0.2.1', 'line 2'),
    (SOA + 'a A 192.0.2.1\n$INCLUDE other.zone\n',
     "line 3 cannot be read: zone file directive '$INCLUDE' is not allowed"),
    (SOA + 'a.example.org. A 192.0.2.1\n',
     'line 2 cannot be read: a.example.org. A is not inside the zone example.com.'),
    (SOA + 'a\\.example.com. A 192.0.2.1\n', 'line 2 cannot be read: a\\.example.com. A is not inside the zone'),
    (SOA + 'a.example.org. CAA 0 issue ";"\n', 'line 2 cannot be read: a.example.org. CAA is not inside the zone'),
    (SOA + '$GENERATE 1-2 a$.example.org. A 192.0.2.$\n', 'line 2'),
    (SOA + 'bücher A 192.0.2.1\n', "line 2 cannot be read: not ASCII; write bücher as xn--bcher-kva"),
    (SOA + 'a 2147483648 A 192.0.2.1\n', 'line 2 cannot be read: its TTL 2147483648 is more than 2147483647'),
    (SOA + 'a 2147483648 CAA 0 issue ";"\n', 'line 2 cannot be read: its TTL 2147483648 is more than 2147483647'),
    (SOA + 'a CH A 192.0.2.1\n', "line 2 cannot be read: RR class is not zone's class"),
    (SOA + 'a CNAME b\na CNAME c\n', 'line 3 cannot be read: a second CNAME record of a.example.com.'),
    (SOA + SOA.replace(' 1 ', ' 2 '), 'line 2 cannot be read: a second SOA record of example.com.'),
    (SOA + SOA.replace('@', 'sub'), 'line 2 cannot be read: a SOA record of sub.example.com., and the zone is'),
    ('a A 192.0.2.1\n', 'line 1 cannot be read: Missing default TTL value'),
    ('a 60 A 192.0.2.1\n', 'example.com.zone cannot be read: it has no SOA record of example.com.'),
    ('', 'example.com.zone cannot be read: it has no SOA record of example.com.'),
])
def test_errors_name_the_file_and_the_line(text: str, words: str) -> None:
    assert words in refused(text)


def test_records_outside_the_zone_are_left_out_where_that_is_wanted() -> None:
    told: list[str] = []
    text = 'a.example.org. A 192.0.2.1\n TXT "x"\nb A 192.0.2.1\nxexample.com. A 192.0.2.1\n'
    assert shown(text, outside=told.append) == ['b.example.com. 3600 A 192.0.2.1']
    assert [each.partition(': ')[2] for each in told] == [
        f'{what} is not inside the zone example.com. and is left out'
        for what in ('a.example.org. A', 'a.example.org. TXT', 'xexample.com. A')]
    assert 'line 2: ' in told[0]


def test_a_zone_without_soa_is_read_where_that_is_wanted() -> None:
    assert master.read('a 60 A 192.0.2.1\n', ZONE, require_soa=False) == {'a.example.com.\tA': '60\t192.0.2.1'}


def test_the_soa_comes_first_in_a_file() -> None:
    zone = zone_of([('a.example.com.', 'A', {'192.0.2.1'}), (ZONE, 'TXT', {'"x"'})])
    assert [line.split()[3] for line in master.write(zone)] == ['SOA', 'A', 'TXT']


def test_a_zone_name_that_is_none() -> None:
    with pytest.raises(InvalidField):
        master.read('', 'example..com.')
