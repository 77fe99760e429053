"""A zone keeps its rules, copies for nothing, and digests what is served."""

from __future__ import annotations

import time

import pytest

from designate_pool.errors import InvalidField, ZoneError
from designate_pool.planner.zone.zone import Zone, digest
from designate_pool.protocol.rrset import Extra
from tests.unit.planner.values import record, text_of, zone

WWW = 'www 300 A 192.0.2.1'


@pytest.mark.parametrize('name', [
    'www.example.net.', 'com.', 'notexample.com.', '.', r'www\.example.com.', r'a\\\.example.com.'])
def test_a_name_outside_the_zone_is_refused(name: str) -> None:
    """Also where the dot before the zone's name is escaped: that is another zone's label."""
    with pytest.raises(ZoneError, match='is not inside the zone'):
        zone().add_record(record(f'{name} 300 A 192.0.2.1'), lenient=True)
    with pytest.raises(ZoneError, match='is not inside the zone'):
        zone().add_pairs([(f'{name}\tA', '300\t192.0.2.1')], lenient=True)


@pytest.mark.parametrize('name', ['example.com.', 'a.b.example.com.', '*.example.com.', r'a\\.example.com.',
                                  r'a\.b.example.com.'])
def test_a_name_in_the_zone_is_taken(name: str) -> None:
    made = zone(f'{name} 300 A 192.0.2.1')
    filled = zone()
    filled.add_pairs([(f'{name}\tA', '300\t192.0.2.1')])
    assert filled == made and len(made) == 1


def test_everything_is_in_the_root_zone() -> None:
    root = Zone('.')
    root.add_pairs([('.\tNS', '300\tns.example.net.'), ('com.\tNS', '300\tns.example.net.')])
    root.add_record(record('www.example.com. 300 A 192.0.2.1'))
    assert len(root) == 3 and root.root_ns is not None


def test_an_rrset_that_is_there_is_replaced_only_when_asked_for() -> None:
    made = zone(WWW)
    other = record('www 60 A 192.0.2.9')
    with pytest.raises(ZoneError, match='www.example.com. A'):
        made.add_record(other)
    made.add_record(other, replace=True)
    assert text_of(made) == ['www.example.com. 60 A 192.0.2.9']


def test_of_several_that_replace_each_other_the_last_counts_with_its_settings_alone() -> None:
    made, last = zone(WWW), record('www 60 A 192.0.2.9')
    made.add_all([record(WWW)._replace(extra=Extra(excluded=('other',))), last], replace=True)
    assert list(made) == [last] and not made.extras


def test_what_is_not_there_cannot_be_removed() -> None:
    made = zone(WWW)
    made.remove_record(record(WWW))
    assert len(made) == 0
    with pytest.raises(ZoneError, match='www.example.com. A'):
        made.remove_record(record(WWW))


@pytest.mark.parametrize(('first', 'second'), [
    ('www 300 CNAME example.net.', 'www 300 A 192.0.2.1'),
    ('www 300 A 192.0.2.1', 'www 300 CNAME example.net.'),
    ('www 300 TXT "x"', 'www 300 CNAME example.net.'),
])
def test_a_cname_is_alone_unless_leniently(first: str, second: str) -> None:
    made = zone(first)
    with pytest.raises(ZoneError, match='www.example.com.'):
        made.add_record(record(second))
    assert len(made) == 1
    made.add_record(record(second), lenient=True)
    assert len(made) == 2
    pairs = [(each.key, each.packed) for each in (record(first), record(second))]
    with pytest.raises(ZoneError, match=': '):
        zone().add_pairs(pairs)
    filled = zone()
    filled.add_pairs(pairs, lenient=True)
    assert filled == made


def test_another_cname_takes_the_place_of_one() -> None:
    made = zone('www 300 CNAME a.example.net.')
    made.add_record(record('www 300 CNAME b.example.net.'), replace=True)
    assert text_of(made) == ['www.example.com. 300 CNAME b.example.net.']


@pytest.mark.parametrize(('line', 'belongs'), [
    ('sub 300 NS ns.example.net.', True),
    ('sub 300 DS 1 13 2 ' + '00' * 32, True),
    ('sub 300 A 192.0.2.1', False),
    ('a.sub 300 A 192.0.2.1', False),
    ('a.b.sub 300 NS ns.example.net.', False),
    ('notsub 300 A 192.0.2.1', True),
    (r'a\.sub 300 A 192.0.2.1', True),
])
def test_a_sub_zone_has_only_its_delegation_here_unless_leniently(line: str, belongs: bool) -> None:
    """Z-02."""
    made, filled = (Zone('example.com.', ['SUB.example.com.']) for _ in range(2))
    found = record(line)
    if not belongs:
        with pytest.raises(ZoneError, match='sub.example.com., which is configured on its own'):
            made.add_record(found)
        with pytest.raises(ZoneError, match='is configured on its own'):
            filled.add_pairs([(found.key, found.packed)])
    made.add_record(found, lenient=not belongs)
    filled.add_pairs([(found.key, found.packed)], lenient=not belongs)
    assert len(made) == 1 and made == filled


@pytest.mark.parametrize('as_dict', [True, False])
@pytest.mark.parametrize(('key', 'words'), [
    ('www.example.net.\tA', 'is not inside the zone'), ('wwwexample.com.\tA', 'is not inside the zone'),
    ('www\\.example.com.\tA', 'is not inside the zone'), ('a.sub.example.com.\tA', 'is configured on its own'),
    ('www.example.com.\tCNAME', ': '),
])
def test_filling_is_all_or_nothing(key: str, words: str, as_dict: bool) -> None:
    first = {'www.example.com.\tA': '300\t192.0.2.1'}
    pairs = {**first, key: '300\tx.example.com.'}
    made = Zone('example.com.', ['sub.example.com.'])
    with pytest.raises(ZoneError, match=words):
        made.add_pairs(pairs if as_dict else pairs.items())
    with pytest.raises(ZoneError, match='is there already'):
        made.add_pairs([*first.items(), *first.items()])
    assert len(made) == 0
    made.add_pairs(first)
    assert len(made) == 1


def test_a_dict_becomes_the_zones_own_and_a_copy_has_another() -> None:
    pairs = {'www.example.com.\tA': '300\t192.0.2.1'}
    made = zone()
    made.add_pairs(pairs)
    made.copy().add_record(record('a 60 A 192.0.2.3'))
    assert dict(made.packed) == pairs == {'www.example.com.\tA': '300\t192.0.2.1'}


@pytest.mark.parametrize(('pairs', 'words'), [
    ({'a.example.com.\tA': '60\t192.0.2.1', 'www.example.com.\tA': '60\t192.0.2.1'}, 'is there already'),
    ({'www.example.com.\tCNAME': '60\ta.example.com.'}, ': '),
    ({'alias.example.com.\tA': '60\t192.0.2.1'}, ': ')])
def test_what_is_added_fits_what_is_there(pairs: dict[str, str], words: str) -> None:
    made = zone(f'{WWW}\nalias 300 CNAME example.net.')
    before = made.copy()
    with pytest.raises(ZoneError, match=words):
        made.add_pairs(pairs)
    assert made == before
    made.add_pairs({'new.example.com.\tA': '60\t192.0.2.1'})
    assert len(made) == 3 and len(before) == 2


def test_a_name_of_a_zone_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidField, match='final dot'):
        Zone('example.com')


def test_a_copy_has_the_zone_s_settings() -> None:
    made = Zone('example.com.', ['sub.example.com.'], 0.5, 0.6)
    for each in (made.copy(), made.empty()):
        assert (each.name, each.sub_zones, each.update_pcent_threshold, each.delete_pcent_threshold) == (
            'example.com.', {'sub.example.com.'}, 0.5, 0.6)


def test_a_zone_may_be_changed_while_it_is_walked_through() -> None:
    made = zone('a 300 A 192.0.2.1\nb 300 A 192.0.2.1\nc 300 A 192.0.2.1')
    for each in made:
        made.remove_record(each)
    assert len(made) == 0 and made


def test_the_rrsets_of_some_types() -> None:
    made = zone(f'{WWW}\nmail 300 MX 10 mx.example.net.', record('x 60 TXT "x"', Extra(ignored=True)))
    assert text_of(made.of_types({'A', 'CAA'})) == ['www.example.com. 300 A 192.0.2.1']
    assert sorted((each.type, each.extra.ignored) for each in made.of_types({'MX'}, with_extras=True)) == [
        ('MX', False), ('TXT', True)]
    assert [each.extra.ignored for each in made.of_types({'TXT'}, with_extras=True)] == [True]
    assert list(made.of_types(())) == []
    for each in made.of_types(made.types):
        made.remove_record(each)
    assert len(made) == 0 and list(made.of_types({'A', 'TXT'}, with_extras=True)) == []


def test_the_digest_is_of_what_is_served_whatever_order_it_came_in() -> None:
    lines = 'a 300 A 192.0.2.1\nb 300 TXT "x"\n@ 300 NS ns.example.net.'
    made = zone(lines)
    assert made.digest() == zone('\n'.join(reversed(lines.splitlines()))).digest()
    assert made.digest() == zone(lines, record('@ 60 SOA a. b. 1 2 3 4 5')).digest()
    assert made.digest() != zone(lines.replace('"x"', '"y"')).digest()
    assert made.digest() != zone(lines.replace('300 TXT', '301 TXT')).digest()
    assert made.digest() == digest(sorted(made.packed.items()))


def test_the_digest_of_dynamic_answers_does_not_depend_on_the_order_of_their_settings() -> None:
    one, two, other = (zone('', record(WWW, Extra(dynamic=dynamic))) for dynamic in (
        {'pools': {'a': {'values': [1]}, 'b': {}}, 'rules': [1, 2]},
        {'rules': [1, 2], 'pools': {'b': {}, 'a': {'values': [1]}}},
        {'rules': [2, 1], 'pools': {'b': {}, 'a': {'values': [1]}}}))
    assert one == two and one.digest() == two.digest()
    assert one != other and one.digest() != other.digest()
    assert one.digest() != zone(WWW).digest()


def test_what_is_for_some_targets_only_is_served_the_same() -> None:
    made = zone('', record(WWW, Extra(included=('a',))))
    assert made == zone(WWW) and made.digest() == zone(WWW).digest()
    made.add_record(record(WWW), replace=True)
    assert not made.extras


def test_a_cname_at_the_apex_is_refused_unless_leniently() -> None:
    cname = record('@ 300 CNAME a.example.net.')
    with pytest.raises(ZoneError, match='^example.com. CNAME: a CNAME cannot be at the apex'):
        zone('', cname)
    with pytest.raises(ZoneError, match=': '):
        zone().add_pairs([(cname.key, cname.packed)])
    assert [key for key, _ in zone().violations([cname.key])] == [cname.key]
    assert list(zone('', cname, lenient=True)) == [cname]


@pytest.mark.parametrize('wrong', [
    'www.old 300 A 192.0.2.1', 'www.old 300 CNAME a.example.net.', '*.sub 300 NS ns1.example.net.', 'x 300 X25 "12"',
    '@ 300 DNAME example.net.', 'old 300 NS ns1.example.net.', '_65536._tcp 300 TLSA 3 1 1 ' + 64 * 'a'])
def test_what_a_rule_forbids_is_refused_unless_leniently(wrong: str) -> None:
    present = record('old 300 DNAME example.net.')
    with pytest.raises(ZoneError, match=r'\(RFC|lies below'):
        zone('', present).add_record(record(wrong))
    zone('', present).add_record(record(wrong), lenient=True)


def test_records_that_do_not_fit_into_a_message_are_refused_unless_leniently() -> None:
    texts = '\n'.join(f'x 300 TXT {" ".join([f"{number:0255}"] * 60)}' for number in range(5))
    with pytest.raises(ZoneError, match='do not fit into a DNS message'):
        zone('', record(texts))
    zone('', record(texts), lenient=True)


def test_a_dname_makes_a_large_zone_no_slower() -> None:
    large = zone('old 300 DNAME example.net.')
    large.add_pairs({f'h{number}.example.com.\tA': '300\t192.0.2.1' for number in range(20_000)})
    began = time.process_time()
    for number in range(1000):
        assert large.broken_rule(large[f'h{number}.example.com.\tA'], 'target') is None
    assert time.process_time() - began < 1.0
