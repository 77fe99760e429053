"""Zone files, in and out."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from designate_pool.api.services import zone_task_store
from designate_pool.central import zonefile_parser
from designate_pool.central.rules.quotas import ProjectQuotas
from designate_pool.central.zonefile_parser import RecordSetSpool
from designate_pool.errors import InvalidField, OverQuota, SourceError
from designate_pool.model import Domain
from designate_pool.planner import master
from designate_pool.protocol import soa_rdata, zonefile

ZONE = r'''
    $ORIGIN example.com.
    $TTL 300
    @       IN SOA ns.old.example. first\.last ( 2026010203 ; serial
                   7200 900 1209600
                   600 )
            IN NS  ns.old.example.
    www     60 IN A 192.0.2.1
    www     IN A 192.0.2.2
    ftp     CNAME WWW
    sub     NS ns1.sub
    *.wild  TXT "one two" three
    $ORIGIN deep.example.com.
    a       MX 10 mail.example.net.
'''

HEAD = '$ORIGIN example.com.\n$TTL 300\n@ SOA ns1 h 1 2 3 4 5\n'


def parsed(text: str) -> list[str]:
    domain, sets = zonefile_parser.parse(textwrap.dedent(text))
    return sorted(f'{each.name} {domain.ttl if each.ttl is None else each.ttl} {each.type} {rdata.text}'
                  for each in sets for rdata in each.rdatas)


def refused(text: str) -> str:
    with pytest.raises(InvalidField) as caught:
        zonefile_parser.parse(textwrap.dedent(text))
    return str(caught.value)


def test_the_soa_gives_the_domain() -> None:
    domain, _ = zonefile_parser.parse(textwrap.dedent(ZONE))
    assert (domain.name, domain.email, domain.ttl) == ('example.com.', 'first.last@example.com', 300)
    assert (domain.refresh, domain.retry, domain.expire, domain.minimum) == (7200, 900, 1209600, 600)
    assert domain.lowest_serial == 2026010203


def test_the_records_without_soa_and_apex_ns() -> None:
    assert parsed(ZONE) == [
        '*.wild.example.com. 300 TXT "one two" "three"',
        'a.deep.example.com. 300 MX 10 mail.example.net.',
        'ftp.example.com. 300 CNAME WWW.example.com.',
        'sub.example.com. 300 NS ns1.sub.example.com.',
        'www.example.com. 60 A 192.0.2.1',
        'www.example.com. 60 A 192.0.2.2',
    ]


def test_without_origin_the_owner_of_the_soa_is_it() -> None:
    assert parsed('''
        example.com. 300 IN SOA ns1.example.com. h.example.com. 1 2 3 4 5
        www 300 IN A 192.0.2.1
        @ 300 IN MX 10 mail
        ''') == ['example.com. 300 MX 10 mail.example.com.', 'www.example.com. 300 A 192.0.2.1']


def test_a_transfer_saved_as_text_ends_with_its_soa() -> None:
    soa = 'example.com. 300 IN SOA ns1.example.com. h.example.com. 1 2 3 4 5\n'
    assert parsed(f'{soa}a.example.com. 300 IN A 192.0.2.1\n{soa}') == ['a.example.com. 300 A 192.0.2.1']


def test_a_record_said_twice_counts_once() -> None:
    soa = 'example.com. 300 IN SOA ns1.example.com. h.example.com. 1 2 3 4 5\n'
    assert parsed(f'{soa}a 300 A 192.0.2.1\nA 200 A 192.0.2.1\n') == ['a.example.com. 200 A 192.0.2.1']


@pytest.mark.parametrize('most', [1, zonefile_parser.MOST_HELD], ids=['on-disk', 'in-memory'])
@pytest.mark.parametrize('read', [lambda text: parsed(text), lambda text: streamed(text)], ids=['whole', 'streamed'])
def test_a_record_said_twice_with_names_in_another_case_counts_once_as_in_a_request(
        monkeypatch: pytest.MonkeyPatch, read: Callable[[str], list[str]], most: int) -> None:
    monkeypatch.setattr(zonefile_parser, 'MOST_HELD', most)
    records = ('m MX 10 Mail', 'm MX 10 mail', 's SRV 0 0 1 a', 's SRV 0 0 1 A', 't TXT "a"', 't TXT "A"',
               'x CNAME y', 'x CNAME Y')
    assert sorted(read(HEAD + '\n'.join(records))) == [
        'm.example.com. 300 MX 10 Mail.example.com.', 's.example.com. 300 SRV 0 0 1 a.example.com.',
        't.example.com. 300 TXT "A"', 't.example.com. 300 TXT "a"', 'x.example.com. 300 CNAME y.example.com.']


def test_all_mistakes_are_told_with_their_lines() -> None:
    with pytest.raises(InvalidField) as caught:
        zonefile_parser.parse(f'{HEAD}www A 192.0.2.256\nok A 192.0.2.1\n  mx  MX ten mail  ; {"x" * 100}\n'
                              'a TXT "open\nb.example.org. A 192.0.2.1\nc CNAME ok\nc A 192.0.2.1\n'
                              'd A ( 192.0.2.300\n )\n')
    found = caught.value.kwargs['all']
    assert [field for field, _ in found] == ['line 4', 'line 6', 'line 7', 'line 11', 'line 8', 'line 9, type',
                                             'line 10, type']
    assert found[0][1].endswith(": 'www A 192.0.2.256'")
    assert found[1][1].endswith("…'") and "'mx  MX ten mail  ; xxx" in found[1][1]
    assert str(caught.value) == f'{found[0][0]}: {found[0][1]}.'


def test_mistakes_without_end_are_told_as_far_as_one_reads() -> None:
    with pytest.raises(InvalidField) as caught:
        zonefile_parser.parse(HEAD + 'www A 192.0.2.256\n' * 10_000)
    found = caught.value.kwargs['all']
    assert len(found) == 21 and found[-1] == ('zone file', 'after 20 mistakes the rest was not read')


def test_which_name_servers_the_file_had_is_known() -> None:
    _, contents = zonefile_parser.parse(textwrap.dedent(ZONE))
    assert contents.name_servers == ['ns.old.example.']


def test_generate() -> None:
    soa = 'example.com. 300 IN SOA ns1.example.com. h.example.com. 1 2 3 4 5\n'
    assert parsed(f'{soa}$GENERATE 1-2 h$ A 192.0.2.$\n') == ['h1.example.com. 300 A 192.0.2.1',
                                                              'h2.example.com. 300 A 192.0.2.2']


def test_generate_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zonefile_parser, 'MAX_RECORDS', 100)
    soa = 'example.com. 300 IN SOA ns1.example.com. h.example.com. 1 2 3 4 5\n'
    assert 'more than 100 records' in refused(f'{soa}$GENERATE 1-65536 h$ A 192.0.2.1\n')
    monkeypatch.setattr(zonefile, 'MOST_GENERATED', 50)
    assert 'line 2: one $GENERATE makes more than 50 records' in refused(f'{soa}$GENERATE 1-60 h$ A 192.0.2.1\n')


@pytest.mark.parametrize('line', [
    '$GENERATE 1-2 h${0,' + '9' * 5000 + ',d} A 192.0.2.1', '$GENERATE 1-2 h${' + '9' * 5000 + '} A 192.0.2.1',
    '$generate 1-2 h${0,900000000} A 192.0.2.1', '$GENERATE 1-' + '9' * 5000 + ' h$ A 192.0.2.1',
    '$GENERATE 1-2 h TXT ${0,00900000000,x}', '$GENERATE 1-2 h TXT ' + '${' * 100_000],
    ids=lambda line: line[:24])
def test_numbers_in_generate_that_no_name_has_are_refused(line: str) -> None:
    soa = 'example.com. 300 IN SOA ns1.example.com. h.example.com. 1 2 3 4 5\n'
    why = 'has to be written as' if '{' not in line else 'or has a number that is too long'
    assert re.search(rf'line 2: .*GENERATE {why}|line 2: .* in .GENERATE is not .*, {why}', refused(f'{soa}{line}\n'))
    with pytest.raises(SourceError, match=why):
        master.read(f'{soa}{line}\n', 'example.com.')


def test_numbers_in_generate_do_not_make_a_record_longer_than_one_may_be() -> None:
    """Its data is parsed as a whole: that of a line with many of the widest would take a minute."""
    soa = 'example.com. 300 IN SOA ns1.example.com. h.example.com. 1 2 3 4 5\n'
    for data in ('"{}"', '{}'):
        assert 'line 2: a record of more than 300000 characters' in refused(
            f'{soa}$GENERATE 1-2 h TXT {data.format("${0,999}" * 1000)}\n')


@pytest.mark.parametrize(('text', 'words'), [
    ('', 'text: there is no SOA'),
    ('$ORIGIN example.com.\nwww 300 A 192.0.2.1\n', 'there is no SOA'),
    (f'{HEAD}www A 192.0.2.300\n', 'line 4'),
    (f'{HEAD}www A\n', 'line 4'),
    (f'{HEAD}ok A 192.0.2.1\n\n; remark\nbad NOSUCH x\n', 'line 7'),
    (f'{HEAD}{"a" * 64} A 192.0.2.1\n', 'line 4'),
    (f'{HEAD}www A 192.0.2.1', ''),
    (f'{HEAD}$INCLUDE /etc/passwd\n', "line 4: zone file directive '$INCLUDE' is not allowed"),
    (f'{HEAD}www.example.org. A 192.0.2.1\n', 'line 4: www.example.org. is not inside the zone example.com.'),
    (f'{HEAD}a\\.example.com. A 192.0.2.1\n', 'line 4: a\\.example.com. is not inside the zone example.com.'),
    (f'{HEAD}@ SOA ns2 h 1 2 3 4 5\n', 'line 4: a second SOA record; the first is in line 3'),
    (f'{HEAD}www CNAME a\nwww CNAME b\n', 'line 4: www.example.com. has more than one CNAME'),
    (f'{HEAD}*.sub A 192.0.2.1\n*.sub NS ns1\n', 'line 5: NS records cannot be at a wildcard (RFC 4592 section 4.2)'),
    (f'{HEAD}www.old A 192.0.2.1\nold DNAME example.net.\n', 'line 4: it lies below old.example.com., whose DNAME'),
    (f'{HEAD}x X25 "3110"\nx X25 "12"\n', 'line 5: the address is not four digits or more'),
    (f'{HEAD}www RRSIG A 13 3 300 20260101000000 20250101000000 1 example.com. AAAA\n', 'line 4: RRSIG is made by'),
    (f'{HEAD}www CH TXT x\n', 'line 4'),
    (f'{HEAD}www TXT "open\n', 'line'),
    (f'{HEAD}www TXT ( a\n', 'line'),
    ('$ORIGIN example.com.\n@ 300 SOA ns1 . 1 2 3 4 5\n', 'line 2: . in the SOA is not an e-mail address'),
    ('$ORIGIN example.com.\n@ 300 SOA ns1 h 1 60 6 59 5\n', 'line 2: expire is 59 in the SOA, and refresh 60: a'),
    ('$ORIGIN example.com.\n@ 300 SOA ns1 h 1 0 0 0 5\n', 'line 2: expire is 0 in the SOA, and refresh 0'),
    ('@ 300 SOA ns1 h 1 2 3 4 5\n', 'line 1: the SOA is that of the root; where the file has no $ORIGIN'),
    (f'{HEAD}www 2147483648 A 192.0.2.1\n', 'line 4'),
    ('\0', 'text'),
])
def test_files_that_are_refused_name_the_line(text: str, words: str) -> None:
    if not words:  # only the end of the last line is missing
        assert parsed(text) == ['www.example.com. 300 A 192.0.2.1']
    else:
        assert words in refused(text)


@pytest.mark.parametrize(('lines', 'all_told'), [
    ('www.example.org. A 192.0.2.1\nalias CNAME www\nalias 60 MX 10 www\n', [
        ('line 4', "www.example.org. is not inside the zone example.com.: 'www.example.org. 300 A 192.0.2.1'"),
        ('line 5, type', "alias.example.com. has MX already; a CNAME must be the only record at its name "
                         "(RFC 1034 section 3.6.2): "
                         "'alias.example.com. 300 CNAME www.example.com.'"),
        ('line 6, type', "alias.example.com. has CNAME already; a CNAME must be the only record at its name "
                         "(RFC 1034 section 3.6.2): "
                         "'alias.example.com. 60 MX 10 www.example.com.'")]),
    ('a CNAME b\na CNAME c\nb A 1.2\n', [
        ('line 6', "expected an IPv4 address: 'b A 1.2'"),
        ('line 4', "a.example.com. has more than one CNAME record: 'a.example.com. 300 CNAME b.example.com.'")]),
])
def test_what_is_found_after_reading_shows_the_line(lines: str, all_told: list[tuple[str, str]]) -> None:
    with pytest.raises(InvalidField) as caught:
        zonefile_parser.parse(f'{HEAD}{lines}')
    found = caught.value.kwargs['all']
    assert [where for where, _ in found] == [where for where, _ in all_told]
    for (_, why), (_, wanted) in zip(found, all_told):
        assert wanted.rpartition(': ')[2] in why and (wanted.startswith('expected') or why == wanted)


def test_the_address_is_written_as_in_the_file_and_not_as_in_another_one() -> None:
    for mailbox in ('Host-Master', 'host-master', 'HOST-MASTER'):
        domain, _ = zonefile_parser.parse(f'example.com. 300 SOA ns1.example.com. {mailbox}.example.com. 1 2 3 4 5\n')
        assert domain.email == f'{mailbox}@example.com'


def test_what_is_rendered_is_read_back() -> None:
    given, sets = zonefile_parser.parse(textwrap.dedent(ZONE))
    domain = Domain(id='0' * 32, name=given.name, pool_id='1' * 32, pool_name='default', email=given.email,
                    ttl=given.ttl, serial=7, refresh=given.refresh, retry=given.retry, expire=given.expire,
                    minimum=given.minimum)
    rows = [(each.name, each.type, each.ttl, rdata.text) for each in sets for rdata in each.rdatas]
    soa = soa_rdata.text(domain, 'ns1.example.net.')
    text = ''.join(zone_task_store.zonefile_lines(domain.name, domain.ttl, soa, rows))
    again, _ = zonefile_parser.parse(text)
    assert parsed(text) == parsed(ZONE)
    assert (again.name, again.email, again.ttl, again.lowest_serial) == (given.name, given.email, given.ttl, 7)
    assert (again.refresh, again.retry, again.expire, again.minimum) == (7200, 900, 1209600, 600)


def streamed(text: str) -> list[str]:
    """As :func:`parsed`, and in the file's order by names; iterated twice."""
    domain, sets = zonefile_parser.stream(lambda: text.split('\n'))
    first, again = [[f'{each.name} {domain.ttl if each.ttl is None else each.ttl} {each.type} {rdata.text}'
                     for each in sets for rdata in each.rdatas] for _ in range(2)]
    assert first == again and sets.name_servers == zonefile_parser.parse(text)[1].name_servers
    return first


@pytest.mark.parametrize('names', [
    '@ a x.a a-b', '@ a-b a x.a', 'a-b a x.a @', 'a x.a @ a-b', 'b *.b a.b', '*', '@', 'a A'])
def test_a_file_in_order_is_read_while_it_is_used(names: str) -> None:
    text = HEAD + ''.join(f'{name} MX 1 {name}\n{name} 200 A 192.0.2.1\n{name} A 192.0.2.1\n' for name in names.split())
    assert sorted(streamed(text)) == parsed(text)


def test_no_more_of_a_recordset_is_read_than_is_allowed() -> None:
    text = f'{HEAD}@ NS ns1\n@ NS ns2\n@ NS ns3\na A 192.0.2.1\na A 192.0.2.2\na A 192.0.2.1\nb A 192.0.2.1\n'
    few = ProjectQuotas(recordset_records=2)
    assert len(list(zonefile_parser.stream(lambda: text.split('\n'), few)[1])) == 2
    read: list[str] = []

    def lines() -> Iterator[str]:
        read.clear()
        for line in (*text.split('\n')[:-1], *(f'c TXT {number}' for number in range(100))):
            read.append(line)
            yield line

    with pytest.raises(OverQuota, match='recordset_records allows 2'):
        list(zonefile_parser.stream(lines, few)[1])
    assert read[-1] == 'c TXT 2'


def test_parts_have_few_recordsets_with_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zonefile_parser, 'PART_RECORDS', 500)
    text = HEAD + ''.join(f'$GENERATE 1-200 {name} TXT $\n' for name in 'abcdefg') + 'h A 192.0.2.1\n'
    for contents in (zonefile_parser.parse(text)[1], zonefile_parser.stream(lambda: text.split('\n'))[1]):
        assert [[each.name[0] for each in part] for part in contents.parts()] == [['a', 'b', 'c'], ['d', 'e', 'f'],
                                                                                  ['g', 'h']]


def test_in_such_a_file_the_apex_may_have_name_servers() -> None:
    text = f'{HEAD}@ NS ns.old.example.\na NS ns.a\na A 192.0.2.1\n'
    assert streamed(text) == ['a.example.com. 300 NS ns.a.example.com.', 'a.example.com. 300 A 192.0.2.1']


@pytest.mark.parametrize('names', ['b a', 'a b a', '@ a @', 'a @ b @', 'a b x.a b', 'x.a b y.a', 'b @ a'])
def test_a_name_that_may_have_come_before_is_in_no_order(names: str) -> None:
    text = HEAD + ''.join(f'{name} A 192.0.2.1\n' for name in names.split())
    with pytest.raises(zonefile_parser.NotInOrder):
        streamed(text)


@pytest.mark.parametrize('text', ['', 'www.example.com. 300 A 192.0.2.1\n', f'a.example.com. 300 A 192.0.2.1\n{HEAD}'])
def test_a_file_that_does_not_begin_with_its_soa_is_in_no_order(text: str) -> None:
    with pytest.raises(zonefile_parser.NotInOrder):
        zonefile_parser.stream(lambda: text.split('\n'))


@pytest.mark.parametrize('line', [
    'a A 192.0.2.256', 'a TXT "open', 'a.example.org. A 192.0.2.1', '@ SOA ns2 h 1 2 3 4 5', 'a CNAME b\na CNAME c',
    'a CNAME b\na A 192.0.2.1', '$INCLUDE /etc/passwd'])
def test_a_mistake_in_such_a_file_is_told_too(line: str) -> None:
    with pytest.raises(InvalidField, match='line'):
        streamed(f'{HEAD}{line}\nz A 192.0.2.1\n')


@pytest.mark.parametrize('most', [1, zonefile_parser.MOST_HELD])
@pytest.mark.parametrize('is_streamed', [False, True])
def test_names_are_given_as_the_file_has_them(monkeypatch: pytest.MonkeyPatch, is_streamed: bool, most: int) -> None:
    monkeypatch.setattr(zonefile_parser, 'MOST_HELD', most)
    text = ('$ORIGIN MiXed.Example.\n$TTL 300\n@ SOA ns1 h 1 2 3 4 5\n MX 10 Mail\nA A 192.0.2.1\na A 192.0.2.2\n'
            ' TXT x\nB.mixed.EXAMPLE. A 192.0.2.1\nc CAA 0 issue "x"\n A 192.0.2.1\n$ORIGIN mixed.example.\n'
            'D (AAAA ::1)\n A 192.0.2.1\n$GENERATE 1-2 E$ A 192.0.2.$\nf A 192.0.2.1\n')
    domain, contents = (zonefile_parser.stream(lambda: text.split('\n')) if is_streamed
                        else zonefile_parser.parse(text))
    assert (domain.name, domain.given_name) == ('mixed.example.', 'MiXed.Example.')
    sets = list(contents)
    assert {(each.given_name or each.name, each.type) for each in sets} == {
        ('MiXed.Example.', 'MX'), ('A.MiXed.Example.', 'A'), ('a.MiXed.Example.', 'TXT'), ('B.mixed.EXAMPLE.', 'A'),
        ('c.MiXed.Example.', 'CAA'), ('c.MiXed.Example.', 'A'), ('D.mixed.example.', 'AAAA'),
        ('D.mixed.example.', 'A'), ('E1.mixed.example.', 'A'), ('E2.mixed.example.', 'A'), ('f.mixed.example.', 'A')}
    assert all(each.name.islower() for each in sets)


SPOOLED_HEAD = '$ORIGIN example.com.\n@ 300 SOA ns1 hostmaster 1 7200 900 1209600 600\n'
_OWNER = st.sampled_from(['@', 'a', 'b', 'B', 'a.b', 'c', '*', 'out.example.org.', 'example.org.'])
_TTL = st.sampled_from(['', '60', '300', '5'])
_WHAT = st.sampled_from(['A 192.0.2.1', 'A 192.0.2.2', 'AAAA ::1', 'TXT "\\"=\\009\\000 {"', 'TXT a b', 'CNAME a',
                         'CNAME b', 'DNAME a', 'NS ns1', 'NS ns2', 'CAA 0 issue "ca.example.net"', 'A 192.0.2.300'])
_LINES = st.lists(st.builds('{} {} {}'.format, _OWNER, _TTL, _WHAT), max_size=40)


def outcome(lines: list[str]) -> object:
    try:
        domain, contents = zonefile_parser.parse(SPOOLED_HEAD + '\n'.join(lines))
        return domain, list(contents), len(contents), contents.name_servers
    except InvalidField as error:
        return error.kwargs


@given(_LINES)
@example(['a CNAME b', 'c A 192.0.2.1', 'c A 192.0.2.2', 'a A 192.0.2.1', 'out.example.org. A 192.0.2.1'])
@example([f'h{number} CNAME a{more}' for more in (1, 2) for number in range(30)])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_makes_no_difference_what_is_held_in_memory(monkeypatch: pytest.MonkeyPatch, lines: list[str]) -> None:
    expected = outcome(lines)
    for most in (1, 900):
        with monkeypatch.context() as patch:
            patch.setattr(zonefile_parser, 'MOST_HELD', most)
            assert outcome(lines) == expected


def test_contents_on_disk_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zonefile_parser, 'MOST_HELD', 900)
    spool = RecordSetSpool()
    assert [spool.add('b.\tA', 60, 1, '192.0.2.1'), spool.add('a.\tA', 60, 2, '192.0.2.1'),
            spool.add('b.\tA', 5, 3, '192.0.2.2'), spool.add('b.\tA', 5, 4, '192.0.2.1')] == [1, 1, 2, 0]
    assert spool.is_in_memory
    assert spool.add('c.\tTXT', 60, 5, '"x"') == 1 and not spool.is_in_memory
    assert spool.add('b.\tA', 7, 6, '192.0.2.1') == 1
    expected = [('a.\tA', (60, 2, '192.0.2.1', None)),
                ('b.\tA', (5, 1, {'192.0.2.1': '192.0.2.1', '192.0.2.2': '192.0.2.2'}, None)),
                ('c.\tTXT', (60, 5, '"x"', None))]
    assert list(spool) == expected
    assert list(spool) == expected
