"""A zone file that is larger than what is held in memory becomes the same zone, or is refused for the same."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from designate_pool.central import zonefile_parser
from designate_pool.central.zonefile_parser import RecordSetSpool
from designate_pool.errors import InvalidField

HEAD = '$ORIGIN example.com.\n@ 300 SOA ns1 hostmaster 1 7200 900 1209600 600\n'
_OWNER = st.sampled_from(['@', 'a', 'b', 'B', 'a.b', 'c', '*', 'out.example.org.', 'example.org.'])
_TTL = st.sampled_from(['', '60', '300', '5'])
_WHAT = st.sampled_from(['A 192.0.2.1', 'A 192.0.2.2', 'AAAA ::1', 'TXT "\\"=\\009\\000 {"', 'TXT a b', 'CNAME a',
                         'CNAME b', 'DNAME a', 'NS ns1', 'NS ns2', 'CAA 0 issue "ca.example.net"', 'A 192.0.2.300'])
_LINES = st.lists(st.builds('{} {} {}'.format, _OWNER, _TTL, _WHAT), max_size=40)


def outcome(lines: list[str]) -> object:
    try:
        domain, contents = zonefile_parser.parse(HEAD + '\n'.join(lines))
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
    expected = [('a.\tA', (60, 2, '192.0.2.1')),
                ('b.\tA', (5, 1, {'192.0.2.1': '192.0.2.1', '192.0.2.2': '192.0.2.2'})), ('c.\tTXT', (60, 5, '"x"'))]
    assert list(spool) == expected
    assert list(spool) == expected
