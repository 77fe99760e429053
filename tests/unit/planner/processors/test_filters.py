"""Filters: what is left out is not managed at the target, and what is deleted is so on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from designate_pool.errors import ProcessorException
from designate_pool.planner.processors import PROCESSORS
from designate_pool.planner.processors.filters import match_texts, relative_name
from tests.unit.planner.values import Target, record, synced, told, zone

SOA = '@ 300 SOA ns.example.net. hostmaster.example.com. {} 3600 600 86400 300'
ZONE = '''
@     300 NS    ns.example.net.
@     300 A     192.0.2.1
@     300 TXT   "v=spf1 -all"
www   300 A     192.0.2.2
www   300 A     198.51.100.2
www   300 AAAA  2001:db8::1
w3    300 CNAME www.example.com.
mail  300 MX    10 mx.example.net.
dkim  300 TXT   "v=DKIM1; k=rsa; " "p=abc"
a.b   300 A     203.0.113.1
'''


def left(word: str, text: str = ZONE, **options: Any) -> set[str]:
    """What a processor leaves of a source zone: the names relative, with the type."""
    made = PROCESSORS[word]('filter', **options)
    found = made.process_source_zone(zone(text), ())
    return {f'{relative_name(each.name, "example.com.") or "@"} {each.type}' for each in found}


ALL = {'@ NS', '@ A', '@ TXT', 'www A', 'www AAAA', 'w3 CNAME', 'mail MX', 'dkim TXT', 'a.b A'}

FILTERS: list[tuple[str, list[str], set[str]]] = [
    ('type', ['A', 'aaaa'], {'@ A', 'www A', 'www AAAA', 'a.b A'}),
    ('type', [], set()),
    ('name', ['www'], {'www A', 'www AAAA'}),
    ('name', ['WWW', 'a.b'], {'www A', 'www AAAA', 'a.b A'}),
    ('name', ['www.example.com.'], {'www A', 'www AAAA'}),
    ('name', [''], {'@ NS', '@ A', '@ TXT'}),
    ('name', ['@'], {'@ NS', '@ A', '@ TXT'}),
    ('name', ['ww'], set()),
    ('name', ['/^w/'], {'www A', 'www AAAA', 'w3 CNAME'}),
    ('name', [r'/\d/', 'mail'], {'w3 CNAME', 'mail MX'}),
    ('name', ['/^$/'], {'@ NS', '@ A', '@ TXT'}),
    ('name', ['/example/'], set()),
    ('value', ['192.0.2.2'], {'www A'}),
    ('value', ['10 mx.example.net.'], {'mail MX'}),
    ('value', ['v=spf1 -all'], {'@ TXT'}),
    ('value', ['v=DKIM1; k=rsa; p=abc'], {'dkim TXT'}),
    ('value', [r'v=DKIM1\; k=rsa\; p=abc'], {'dkim TXT'}),
    ('value', ['/^198/', '/example.net/'], {'www A', '@ NS', 'mail MX'}),
    ('value', ['/"/'], set()),
]


@pytest.mark.parametrize(('kind', 'given', 'matching'), FILTERS)
def test_what_matches_is_managed_or_is_not(kind: str, given: list[str], matching: set[str]) -> None:
    assert left(f'{kind}-allow', allowlist=given) == matching
    assert left(f'{kind}-reject', rejectlist=given) == ALL - matching


@pytest.mark.parametrize(('given', 'matching'), [
    (['192.0.2.0/24'], {'@ A', 'www A'}),
    (['198.51.100.2/32'], {'www A'}),
    (['2001:db8::/32'], {'www AAAA'}),
    (['203.0.113.1', '::/0'], {'a.b A', 'www AAAA'}),
    (['10.0.0.0/8'], set()),
])
def test_addresses_by_network_and_nothing_but_addresses(given: list[str], matching: set[str]) -> None:
    others = {each for each in ALL if not each.endswith((' A', ' AAAA'))}
    assert left('network-allow', allowlist=given) == matching | others
    assert left('network-reject', rejectlist=given) == ALL - matching


@pytest.mark.parametrize(('word', 'options', 'why'), [
    ('type-allow', {'allowlist': 'CNAME'}, "allowlist must be a list, not 'CNAME'"),
    ('name-reject', {'rejectlist': None}, 'rejectlist must be a list, not None'),
    ('name-allow', {'allowlist': ['/www']}, "'/www' has no slash at its end"),
    ('name-allow', {'allowlist': ['/']}, 'no slash at its end'),
    ('value-reject', {'rejectlist': ['/(/']}, r"'\(' is no regular expression"),
    ('network-allow', {'allowlist': ['192.0.2.0/33']}, 'does not appear to be an IPv4 or IPv6 network'),
    ('network-allow', {'allowlist': ['192.0.2.1/24']}, 'has host bits set'),
])
def test_a_list_that_is_none_is_an_error_that_names_the_processor(word: str, options: dict[str, Any],
                                                                  why: str) -> None:
    with pytest.raises(ProcessorException, match=f'^mine: .*{why}'):
        PROCESSORS[word]('mine', **options)


@pytest.mark.parametrize(('include_target', 'expected'), [
    (True, ['Update www 300 A 192.0.2.1 -> www 300 A 192.0.2.9']),
    (False, ['Delete gone 300 TXT "x"', 'Delete www 300 TXT "x"', 'Update www 300 A 192.0.2.1 -> www 300 A 192.0.2.9']),
])
def test_what_is_filtered_is_left_alone_at_the_target_or_deleted_there(include_target: bool,
                                                                       expected: list[str]) -> None:
    """Q-04, Q-05; and the second round."""
    target = Target(zone('www 300 A 192.0.2.1\nwww 300 TXT "x"\ngone 300 TXT "x"'))
    wanted = zone('www 300 A 192.0.2.9\nwww 300 TXT "y"\nnew 300 TXT "x"')
    processors = [PROCESSORS['type-allow']('only-a', allowlist=['A'], include_target=include_target)]
    plan = synced(target, wanted, processors)
    assert plan is not None and told(plan.changes) == expected
    target.apply(plan)
    assert synced(target, wanted, processors) is None


def test_the_soa_is_filtered_only_by_whoever_names_it() -> None:
    for word, options in (('type-allow', {'allowlist': ['A']}), ('name-allow', {'allowlist': ['www']}),
                          ('value-allow', {'allowlist': ['x']}), ('name-reject', {'rejectlist': ['@']}),
                          ('type-allow', {'allowlist': ['SOA']})):
        assert '@ SOA' in left(word, ZONE + SOA.format(1), **options)
    assert '@ SOA' not in left('type-reject', ZONE + SOA.format(1), rejectlist=['SOA'])


def test_the_zone_s_own_ns_is_left_alone_and_delegations_are_not() -> None:
    target = Target(zone('@ 300 NS ns.example.net.\nsub 300 NS ns.example.net.'))
    wanted = zone('@ 300 NS ns2.example.net.\nsub 300 NS ns2.example.net.')
    plan = synced(target, wanted, [PROCESSORS['ignore-root-ns']('ns')])
    assert plan is not None and [each.name for each in plan.changes] == ['sub.example.com.']


@pytest.mark.parametrize(('name', 'is_doubled'), [
    ('www.example.com.example.com.', True), ('example.com.example.com.', True), ('www.example.com.', False),
    ('notexample.com.example.com.', False), ('example.com.', False)])
def test_names_that_end_in_the_zone_s_name_twice(name: str, is_doubled: bool) -> None:
    made = zone(f'{name} 300 A 192.0.2.1')
    if is_doubled:
        with pytest.raises(ProcessorException, match=f'^twice: {name} A ends in example.com. twice'):
            PROCESSORS['zone-name']('twice').process_source_zone(made, ())
    else:
        assert len(PROCESSORS['zone-name']('twice').process_source_zone(made, ())) == 1
    found = PROCESSORS['zone-name']('twice', error=False).process_source_zone(made, ())
    assert len(found) == (0 if is_doubled else 1)


@pytest.mark.parametrize(('line', 'expected'), [
    ('a 300 TXT "one" "two"', ['onetwo']),
    (r'a 300 TXT "say \"hi\""', ['say "hi"']),
    ('a 300 TXT "a;b"', ['a;b', r'a\;b']),
    (r'a 300 TXT "\195\188"', ['ü']),
    (r'a 300 TXT "\255"', [r'\xff']),
    ('a 300 MX 10 mx.example.net.', ['10 mx.example.net.']),
])
def test_what_data_is_matched_as(line: str, expected: list[str]) -> None:
    assert list(match_texts(record(line))) == expected
