"""What makes one zone into another, and in which order."""

from __future__ import annotations

import pytest

from designate_pool.errors import ZoneError
from designate_pool.planner.zone import changes
from designate_pool.protocol.rrset import Extra
from tests.unit.planner.values import record, text_of, told, zone

A, B = 'www 300 A 192.0.2.1', 'www 300 A 192.0.2.2'
ALIAS = 'www 300 CNAME a.example.net.'

CASES = [
    ('nothing to do', A, A, []),
    ('from nothing', '', A, ['Create www 300 A 192.0.2.1']),
    ('to nothing', A, '', ['Delete www 300 A 192.0.2.1']),
    ('other data', A, B, ['Update www 300 A 192.0.2.1 -> www 300 A 192.0.2.2']),
    ('more data', A, f'{A}\n{B}', ['Update www 300 A 192.0.2.1 -> www 300 A 192.0.2.1, 192.0.2.2']),
    ('another TTL', A, 'www 60 A 192.0.2.1', ['Update www 300 A 192.0.2.1 -> www 60 A 192.0.2.1']),
    ('the same in other words', 'www 300 MX 10 mail.example.net.', 'WWW 300 MX 010 MAIL.example.net.', []),
    ('another CNAME', ALIAS, 'www 300 CNAME b.example.net.',
     ['Update www 300 CNAME a.example.net. -> www 300 CNAME b.example.net.']),
    ('another type, no CNAME', A, 'www 300 AAAA 2001:db8::1',
     ['Delete www 300 A 192.0.2.1', 'Create www 300 AAAA 2001:db8::1']),
    ('a CNAME gives way', ALIAS, A, ['Replace www 300 CNAME a.example.net. -> www 300 A 192.0.2.1']),
    ('a CNAME takes the place', A, ALIAS, ['Replace www 300 A 192.0.2.1 -> www 300 CNAME a.example.net.']),
    ('a CNAME gives way to two', ALIAS, f'{A}\nwww 300 TXT "x"',
     ['Replace www 300 CNAME a.example.net. -> www 300 A 192.0.2.1, www 300 TXT "x"']),
    ('a CNAME takes the place of two', f'{A}\nwww 300 TXT "x"', ALIAS,
     ['Replace www 300 A 192.0.2.1, www 300 TXT "x" -> www 300 CNAME a.example.net.']),
    ('a CNAME goes', ALIAS, '', ['Delete www 300 CNAME a.example.net.']),
    ('a CNAME comes', '', ALIAS, ['Create www 300 CNAME a.example.net.']),
    ('all at once', 'a 1 A 192.0.2.1\nb 1 A 192.0.2.1\nd 1 CNAME x.example.net.',
     'b 1 A 192.0.2.2\nc 1 A 192.0.2.1\nd 1 A 192.0.2.1',
     ['Delete a 1 A 192.0.2.1', 'Replace d 1 CNAME x.example.net. -> d 1 A 192.0.2.1',
      'Update b 1 A 192.0.2.1 -> b 1 A 192.0.2.2', 'Create c 1 A 192.0.2.1']),
]


@pytest.mark.parametrize(('existing', 'desired', 'expected'), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])
def test_the_changes_and_their_order(existing: str, desired: str, expected: list[str]) -> None:
    """Z-18, P-18, A76, A84; and the second round."""
    before, after = zone(existing), zone(desired)
    found = changes.between(before, after)
    assert told(found) == expected
    made = changes.apply(before, found)
    assert text_of(made) == text_of(after) and text_of(before) == text_of(zone(existing))
    assert changes.between(made, after) == []


def test_a_cname_beside_other_data_is_mended() -> None:
    """A target may have been left so by others; what is read leniently can be put right."""
    broken = zone(f'{ALIAS}\n{A}', lenient=True)
    found = changes.between(broken, zone(B))
    assert told(found) == ['Delete www 300 CNAME a.example.net.', 'Update www 300 A 192.0.2.1 -> www 300 A 192.0.2.2']
    assert changes.apply(broken, found) == zone(B)
    found = changes.between(broken, zone(f'{B}\nwww 300 TXT "x"'))
    assert [each.kind for each in found] == ['Replace', 'Update']
    assert changes.apply(broken, found) == zone(f'{B}\nwww 300 TXT "x"')


@pytest.mark.parametrize('side', ['existing', 'desired'])
@pytest.mark.parametrize(('extra', 'targets'), [
    (Extra(ignored=True), ()),
    (Extra(included=('one',)), ('one',)),
    (Extra(excluded=('one',)), ('two',)),
])
def test_what_is_not_for_a_target_stays_as_it_is_there(side: str, extra: Extra, targets: tuple[str, ...]) -> None:
    """Z-19: on both sides."""
    there, wanted = (extra if side == each else Extra() for each in ('existing', 'desired'))
    before = zone('', record(A, there), record('gone 300 A 192.0.2.1', there))
    after = zone('', record(B, wanted), record('new 300 A 192.0.2.1', wanted))
    for target in ('one', 'two'):
        kinds = {each.name: each.kind for each in changes.between(before, after, target)}
        touched = target in targets
        assert ('www.example.com.' in kinds) is touched
        assert ('gone.example.com.' in kinds) is (touched or side == 'desired')
        assert ('new.example.com.' in kinds) is (touched or side == 'existing')


def test_what_the_target_does_not_support_stays_as_it_is() -> None:
    """Z-20: an existing record that is not supported is never deleted."""
    before = zone('a 300 CAA 0 issue "x"\nb 300 CAA 0 issue "x"')
    after = zone('b 300 CAA 0 issue "y"\nc 300 CAA 0 issue "x"')
    assert len(changes.between(before, after)) == 3
    assert changes.between(before, after, supports=lambda rrset: rrset.type != 'CAA') == []


def test_other_dynamic_answers_are_an_update_and_other_targets_are_none() -> None:
    before = zone(A)
    found = changes.between(before, zone('', record(A, Extra(dynamic={'rules': [1]}))))
    assert [each.kind for each in found] == ['Update']
    assert changes.between(before, zone('', record(A, Extra(excluded=('other',)))), 'target') == []
    made = changes.apply(before, found)
    assert made.extras == {'www.example.com.\tA': Extra(dynamic={'rules': [1]})}


@pytest.mark.parametrize(('existing', 'desired', 'kinds'), [
    (Extra(), Extra(octodns={'weight': 3}), ['Update']), (Extra(octodns={'weight': 3}), Extra(), ['Update']),
    (Extra(octodns={'weight': 3}), Extra(octodns={'weight': 3}), []), (Extra(), Extra(ignored=True), [])])
def test_extras_alone_make_a_change_and_are_looked_at_on_both_sides(existing: Extra, desired: Extra,
                                                                    kinds: list[str]) -> None:
    sides = [zone('other 60 A 192.0.2.2', record(A, extra)) for extra in (existing, desired)]
    assert [change.kind for change in changes.between(*sides)] == kinds


@pytest.mark.parametrize(('change', 'words'), [
    (changes.create(record(A)), 'is there already'),
    (changes.delete(record('a 300 A 192.0.2.1')), 'There is no'),
    (changes.create(record(ALIAS)), ': '),
])
def test_a_change_that_does_not_fit_is_refused_and_nothing_is_changed(change: changes.Change,
                                                                      words: str) -> None:
    before = zone(A)
    with pytest.raises(ZoneError, match=words):
        changes.apply(before, [changes.delete(record(A)), changes.create(record(A)), change])
    assert text_of(before) == text_of(zone(A))
