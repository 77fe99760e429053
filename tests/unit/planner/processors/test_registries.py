"""What marks look like, and where they are."""

from __future__ import annotations

import pytest

from designate_pool.errors import InvalidField
from designate_pool.planner.processors.ownership import TxtOwnership, TxtRegistry
from tests.unit.planner.values import record, zone

OURS = '"heritage=external-dns,external-dns/owner=me"'
THEIRS = '"heritage=external-dns,external-dns/owner=other,external-dns/resource=service/x"'
A = 'www 300 A 192.0.2.1'


@pytest.mark.parametrize(('options', 'key', 'name'), [
    ({}, 'www.example.com.\tA', 'a-www.example.com.'),
    ({}, 'www.example.com.\tCNAME', 'cname-www.example.com.'),
    ({}, 'a.b.example.com.\tAAAA', 'aaaa-a.b.example.com.'),
    ({}, 'example.com.\tA', 'a-.example.com.'),
    ({}, r'a\.b.example.com.' '\tA', r'a-a\.b.example.com.'),
    ({}, '*.example.com.\tA', 'a-*.example.com.'),
    ({'wildcard_replacement': 'ANY'}, '*.example.com.\tA', 'a-any.example.com.'),
    ({'prefix': 'own-'}, 'www.example.com.\tA', 'own-a-www.example.com.'),
    ({'prefix': 'Own.'}, 'www.example.com.\tA', 'own.a-www.example.com.'),
    ({'prefix': 'own.'}, 'example.com.\tA', 'own.a-.example.com.'),
    ({'prefix': '%{record_type}-abc-.'}, 'example.com.\tCNAME', 'cname-abc-.example.com.'),
    ({'prefix': '%{record_type}-abc-.'}, 'www.example.com.\tCNAME', 'cname-abc-.www.example.com.'),
    ({'suffix': '-own'}, 'www.example.com.\tA', 'a-www-own.example.com.'),
    ({'suffix': '-own'}, 'a.b.example.com.\tA', 'a-a-own.b.example.com.'),
    ({'suffix': '-%{record_type}'}, 'www.example.com.\tA', 'www-a.example.com.'),
    ({'suffix': '.%{record_type}'}, 'example.com.\tA', 'a.example.com.'),
])
def test_the_names_of_marks_are_those_of_external_dns(options: dict[str, str], key: str, name: str) -> None:
    assert TxtRegistry('me', **options).name(key, zone()) == name  # type: ignore[arg-type]


@pytest.mark.parametrize(('options', 'key', 'names'), [
    ({}, 'www.example.com.\tA', ['a-www.example.com.', 'www.example.com.']),
    ({}, 'www.example.com.\tAAAA', ['aaaa-www.example.com.']),
    ({'prefix': 'own.'}, 'www.example.com.\tA', ['own.a-www.example.com.', 'own.www.example.com.']),
    ({'prefix': '%{record_type}-'}, 'www.example.com.\tA', ['a-www.example.com.', '-www.example.com.']),
    ({'suffix': '-own'}, 'a.b.example.com.\tA',
     ['a-a-own.b.example.com.', 'a-a.b-own.example.com.', 'a-own.b.example.com.']),
])
def test_where_a_mark_is_looked_for(options: dict[str, str], key: str, names: list[str]) -> None:
    """Also where external-dns has put it before, and where it puts it when it knows the zone's name."""
    there = zone()
    there.fill([(key, '300\t192.0.2.1')])
    assert TxtRegistry('me', **options).names(key, there) == names  # type: ignore[arg-type]
    assert 'www.example.com.' not in TxtRegistry('me').names('www.example.com.\tA', zone())


@pytest.mark.parametrize(('text', 'owner'), [
    (OURS, 'me'), (THEIRS, 'other'), ('"heritage=external-dns"', ''), ('"v=spf1 -all"', None), ('"word"', None),
    ('"heritage=other,external-dns/owner=me"', None), ('"external-dns/owner=me"', None)])
def test_whom_a_mark_names(text: str, owner: str | None) -> None:
    assert TxtRegistry('me').owner(record(f'a-www 300 TXT {text}')) == owner


def test_our_marks_are_read_as_ours_and_others_heritage_is_none() -> None:
    registry = TxtRegistry('it', heritage='designate-pool', ttl=60)
    mark = registry.new_mark('www.example.com.\tA', zone())
    assert mark is not None
    assert str(mark) == 'a-www.example.com. 60 TXT "heritage=designate-pool,designate-pool/owner=it"'
    assert registry.owner(mark) == 'it' and TxtRegistry('it').owner(mark) is None
    assert registry.owned(zone(A, mark), 'target') == {'www.example.com.\tA'}
    assert registry.owned(zone(A), 'target') == TxtRegistry('it').owned(zone(A, mark), 'target') == frozenset()


@pytest.mark.parametrize(('options', 'why'), [
    ({'owner_id': ''}, 'owner_id'), ({'owner_id': 'a,b'}, 'owner_id'), ({'owner_id': 'a=b'}, 'owner_id'),
    ({'owner_id': 'a b'}, 'owner_id'), ({'owner_id': 'a"'}, 'owner_id'), ({'owner_id': 'x' * 101}, 'owner_id'),
    ({'owner_id': 'me', 'heritage': 'a\\b'}, 'heritage'), ({'owner_id': 'me', 'prefix': 'a', 'suffix': 'b'}, 'suffix')])
def test_an_option_that_cannot_be_is_an_error(options: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidField, match=f'^{why}: '):
        TxtOwnership('ownership', **options)  # type: ignore[arg-type]
