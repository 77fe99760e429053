"""A zone shared with others: what is ours is marked, changed and deleted; what is theirs is not managed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given, strategies as st

from designate_pool.errors import InvalidField, ProcessorException
from designate_pool.planner.plan.plan import Plan
from designate_pool.planner.processors import PROCESSORS
from designate_pool.planner.processors.ownership import OctodnsOwnership, Ownership, TxtOwnership, TxtRegistry
from designate_pool.planner.processors.rules import PolicyProcessor
from designate_pool.planner.providers.base import BaseProcessor
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import Extra
from tests.unit.planner.values import Target, record, synced, text_of, told, zone

OURS = '"heritage=external-dns,external-dns/owner=me"'
THEIRS = '"heritage=external-dns,external-dns/owner=other,external-dns/resource=service/x"'
A, B = 'www 300 A 192.0.2.1', 'www 300 A 192.0.2.2'
ALIAS = 'www 300 CNAME a.example.net.'


def mine(**options: Any) -> list[BaseProcessor]:
    return [TxtOwnership('ownership', 'me', **options)]


def found(plan: Plan | None) -> tuple[list[str], list[str]]:
    """What is to be done, and what is not and why; our marks and theirs in short."""
    if plan is None:
        return [], []
    done = [each.replace(OURS, 'OURS').replace(THEIRS, 'THEIRS') for each in told(plan.changes)]
    assert all(each.by == 'conflict' for each in plan.blocked)
    return done, [f'{each.change.kind}: {each.why}' for each in plan.blocked]


CASES: list[tuple[str, str, str, list[str], list[str]]] = [
    ('a new record, its mark first', '', A,
     ['Create a-www 300 TXT OURS', 'Create www 300 A 192.0.2.1'], []),
    ('ours is the same', f'{A}\na-www 300 TXT {OURS}', A, [], []),
    ('ours changes', f'{A}\na-www 300 TXT {OURS}', B, ['Update www 300 A 192.0.2.1 -> www 300 A 192.0.2.2'], []),
    ('ours goes, its mark last', f'{A}\na-www 300 TXT {OURS}', '',
     ['Delete www 300 A 192.0.2.1', 'Delete a-www 300 TXT OURS'], []),
    ('theirs, that nobody wants here', f'{A}\na-www 300 TXT {THEIRS}', '', [], []),
    ('nobody\'s, that nobody wants here', A, '', [], []),
    ('theirs is wanted otherwise', f'{A}\na-www 300 TXT {THEIRS}', B, [],
     ['Update: www.example.com. A belongs to other']),
    ('nobody\'s is wanted otherwise', A, B, [], ['Update: www.example.com. A is not ours']),
    ('theirs is wanted as it is', f'{A}\na-www 300 TXT {THEIRS}', A, [], []),
    ('another type beside theirs', f'{A}\na-www 300 TXT {THEIRS}', 'www 300 MX 10 mx.example.net.',
     ['Create mx-www 300 TXT OURS', 'Create www 300 MX 10 mx.example.net.'], []),
    ('a CNAME in the place of ours', f'{A}\na-www 300 TXT {OURS}', ALIAS,
     ['Replace www 300 A 192.0.2.1, a-www 300 TXT OURS -> www 300 CNAME a.example.net., cname-www 300 TXT OURS'], []),
    ('a CNAME in the place of ours and theirs', f'{A}\na-www 300 TXT {OURS}\nwww 300 TXT "x"', ALIAS, [],
     ['Replace: www.example.com. TXT is not ours']),
    ('a CNAME in the place of theirs', f'{A}\na-www 300 TXT {THEIRS}', ALIAS, [],
     ['Replace: www.example.com. A belongs to other']),
    ('ours beside their CNAME', ALIAS, A, [], ['Replace: www.example.com. CNAME is not ours']),
    ('our mark without its record, wanted again', f'a-www 300 TXT {OURS}', A, ['Create www 300 A 192.0.2.1'], []),
    ('our mark without its record, not wanted', f'a-www 300 TXT {OURS}', '', ['Delete a-www 300 TXT OURS'], []),
    ('their mark without its record', f'a-www 300 TXT {THEIRS}', A, [],
     ['Create: www.example.com. A is not there, but marked as belonging to other']),
    ('their mark without an owner', 'a-www 300 TXT "heritage=external-dns"', A, [],
     ['Create: www.example.com. A is not there, but marked as belonging to somebody']),
    ('a mark of something else', f'{A}\na-www 300 TXT "heritage=other-dns,other-dns/owner=me"', B, [],
     ['Update: www.example.com. A is not ours']),
    ('their text where the mark has to be', 'a-www 300 TXT "hello"', A, [],
     ['Update: a-www.example.com. TXT is not ours',
      'Create: the mark of www.example.com. A has to be at a-www.example.com., where there is something else']),
    ('their CNAME where the mark has to be', 'a-www 300 CNAME a.example.net.', A, [],
     ['Replace: a-www.example.com. CNAME is not ours',
      'Create: the mark of www.example.com. A has to be at a-www.example.com., where there is something else']),
    ('a mark without the type, as before external-dns 0.12', f'www 300 AAAA 2001:db8::1\nwww 300 TXT {OURS}',
     'www 300 AAAA 2001:db8::2', ['Delete www 300 TXT OURS'], ['Update: www.example.com. AAAA is not ours']),
    ('their mark without the type is in the way', f'www 300 TXT {THEIRS}', ALIAS, [],
     ['Create: CNAME cannot be beside the TXT of www.example.com., which stays']),
    ('our DNAME above their data', f'www.sub 300 A 192.0.2.1\na-www.sub 300 TXT {THEIRS}',
     'sub 300 DNAME example.net.', [],
     ['Create: DNAME cannot be above the A of www.sub.example.com., which stays']),
    ('our DNAME in the place of what is ours below', f'www.sub 300 A 192.0.2.1\na-www.sub 300 TXT {OURS}',
     'sub 300 DNAME example.net.',
     ['Delete www.sub 300 A 192.0.2.1', 'Delete a-www.sub 300 TXT OURS', 'Create dname-sub 300 TXT OURS',
      'Create sub 300 DNAME example.net.'], []),
    ('ours below their DNAME', 'sub 300 DNAME example.net.', 'www.sub 300 A 192.0.2.1', [],
     ['Create: www.sub.example.com. A cannot be below the DNAME of sub.example.com., which stays']),
    ('the sources have marks of their own', '', f'{A}\na-www 300 TXT {THEIRS}',
     ['Create a-www 300 TXT OURS', 'Create www 300 A 192.0.2.1'], []),
]


@pytest.mark.parametrize(('existing', 'desired', 'done', 'kept_back'), [case[1:] for case in CASES],
                         ids=[case[0] for case in CASES])
def test_what_is_done_and_what_is_a_conflict(existing: str, desired: str, done: list[str],
                                             kept_back: list[str]) -> None:
    """And in the second round nothing is left to do, and the conflicts are the same."""
    target = Target(zone(existing))
    plan = synced(target, zone(desired), mine())
    assert found(plan) == (done, kept_back)
    if plan is not None:
        target.apply(plan)
        assert found(synced(target, zone(desired), mine())) == ([], kept_back)


@pytest.mark.parametrize(('options', 'existing', 'done', 'kept_back'), [
    ({'adopt': True}, A, ['Update www 300 A 192.0.2.1 -> www 300 A 192.0.2.2', 'Create a-www 300 TXT OURS'], []),
    ({'adopt': True}, B, ['Create a-www 300 TXT OURS'], []),
    ({'adopt': True}, f'{A}\na-www 300 TXT {THEIRS}', [], ['Update: www.example.com. A belongs to other']),
    ({'adopt': True}, ALIAS, [], ['Replace: www.example.com. CNAME is not ours']),
    *[({'adopt': True}, f'{A}\n{name} 300 TXT {mark}\n{name} 300 TXT {other}', [],
       [f'Update: www.example.com. A belongs to {owner}'])
      for name, mark, other, owner in (
          ('a-www', THEIRS, '"x"', 'other'),
          ('a-www', THEIRS, OURS, 'other'),
          ('a-www', THEIRS, THEIRS.replace('other', 'third'), 'other, third'))],
    ({}, f'{A}\na-www 300 TXT {OURS}\na-www 300 TXT "x"', ['Update www 300 A 192.0.2.1 -> www 300 A 192.0.2.2'], []),
    ({'takeover': True}, A, [], ['Update: www.example.com. A is not ours']),
    ({'takeover': True}, f'{A}\na-www 300 TXT {THEIRS}',
     ['Update a-www 300 TXT THEIRS -> a-www 300 TXT OURS', 'Update www 300 A 192.0.2.1 -> www 300 A 192.0.2.2'], []),
    ({'takeover': True}, f'a-www 300 TXT {THEIRS}',
     ['Update a-www 300 TXT THEIRS -> a-www 300 TXT OURS', 'Create www 300 A 192.0.2.2'], []),
])
def test_what_is_adopted_and_what_is_taken_over(options: dict[str, Any], existing: str, done: list[str],
                                                kept_back: list[str]) -> None:
    target = Target(zone(existing))
    plan = synced(target, zone(B), mine(**options))
    assert found(plan) == (done, kept_back)
    assert plan is not None
    target.apply(plan)
    assert found(synced(target, zone(B), mine(**options))) == ([], kept_back)
    if options and not kept_back:
        found_then = found(synced(target, zone(A), mine()))
        assert found_then == (['Update www 300 A 192.0.2.2 -> www 300 A 192.0.2.1'], [])


def test_a_filter_after_it_does_not_hide_the_marks() -> None:
    """Managing addresses and aliases alone, with marks in TXT records, is what users of external-dns do."""
    target = Target(zone('spf 300 TXT "v=spf1 -all"'))
    processors = [*mine(), PROCESSORS['type-allow']('few', allowlist=['A', 'CNAME'])]
    for wanted, count in ((A, 2), (B, 1), (ALIAS, 1), ('spf 300 TXT "x"', 2)):
        plan = synced(target, zone(wanted), processors)
        assert plan is not None and len(plan.changes) == count and plan.blocked == ()
        target.apply(plan)
        assert synced(target, zone(wanted), processors) is None
    assert target.has is not None and text_of(target.has) == ['spf.example.com. 300 TXT "v=spf1 -all"']


def test_no_processor_after_it_minds_the_marks() -> None:
    (ownership,) = mine()
    there = zone(f'{A}\na-www 300 TXT {OURS}\na-x 300 TXT {THEIRS}\nx 300 TXT "x"')
    unfiltered = ownership.process_target_zone(there.copy(), Target())
    assert text_of(unfiltered) == ['www.example.com. 300 A 192.0.2.1', 'x.example.com. 300 TXT "x"']
    desired, existing = ownership.process_source_and_target_zones(zone(A), unfiltered, Target())
    assert existing == there
    assert text_of(desired) == text_of(zone(f'{A}\na-www 300 TXT {OURS}\na-x 300 TXT {THEIRS}'))


def test_what_a_filter_hides_keeps_its_mark() -> None:
    target = Target(zone())
    plan = synced(target, zone(f'{A}\nx 300 MX 10 mx.example.net.'), mine())
    assert plan is not None
    target.apply(plan)
    few = [*mine(), PROCESSORS['type-allow']('few', allowlist=['A'])]
    assert synced(target, zone(A), few) is None
    plan = synced(target, zone('x 300 CNAME a.example.net.'), [*mine(), PROCESSORS['type-allow']('few', allowlist=[
        'A', 'CNAME'])])
    assert found(plan) == (['Delete www 300 A 192.0.2.1', 'Delete a-www 300 TXT OURS'], [
        'Create: CNAME cannot be beside the MX of x.example.com., which stays'])


@pytest.mark.parametrize(('word', 'done'), [
    ('create-only', ['Create a-new 300 TXT OURS', 'Create new 300 A 192.0.2.1']),
    ('update-only', ['Update x 300 A 192.0.2.1 -> x 300 A 192.0.2.2']),
    ('upsert-only', ['Update x 300 A 192.0.2.1 -> x 300 A 192.0.2.2', 'Create a-new 300 TXT OURS',
                     'Create new 300 A 192.0.2.1']),
    ('delete-only', ['Delete gone 300 A 192.0.2.1', 'Delete a-gone 300 TXT OURS']),
])
@pytest.mark.parametrize('policy_first', [True, False])
def test_a_policy_keeps_a_mark_with_its_record(word: str, done: list[str], policy_first: bool) -> None:
    """A84: whichever of the two is asked first."""
    target = Target(zone())
    plan = synced(target, zone(f'{A}\ngone 300 A 192.0.2.1\nx 300 A 192.0.2.1'), mine())
    assert plan is not None
    target.apply(plan)
    processors = [*mine(), PolicyProcessor('policy', word)][::-1 if policy_first else 1]
    wanted = zone(f'{ALIAS}\nnew 300 A 192.0.2.1\nx 300 A 192.0.2.2')
    for expected in (done, []):
        plan = synced(target, wanted, processors)
        assert plan is not None
        assert [each.replace(OURS, 'OURS') for each in told(plan.changes)] == expected
        target.apply(plan)


def test_a_new_zone_is_marked_as_it_is_made() -> None:
    target = Target(None)
    plan = synced(target, zone(f'@ 300 NS ns.example.net.\n{A}'), mine())
    assert plan is not None and not plan.exists and plan.counts.creates == 4 and plan.blocked == ()
    target.apply(plan)
    assert synced(target, zone(f'@ 300 NS ns.example.net.\n{A}'), mine()) is None
    plan = synced(Target(None), zone(), mine())
    assert plan is not None and plan.changes == []


def test_what_is_not_for_the_target_is_not_marked_and_keeps_what_it_has() -> None:
    desired = zone('', record(A, Extra(excluded=('target',))), record('x 300 A 192.0.2.1', Extra(ignored=True)))
    assert synced(Target(zone()), desired, mine()) is None
    target = Target(zone(f'{B}\na-www 300 TXT {OURS}\nx 300 A 192.0.2.9\na-x 300 TXT {OURS}'))
    assert synced(target, desired, mine()) is None
    assert synced(Target(zone(f'{B}\nx 300 A 192.0.2.9')), desired, mine(adopt=True)) is None


def test_what_the_target_does_not_support_keeps_its_mark() -> None:
    class Few(Target):
        SUPPORTS = frozenset({'A', 'TXT'})

    assert synced(Few(zone(f'www 300 MX 10 mx.example.net.\nmx-www 300 TXT {OURS}')), zone(), mine()) is None


def test_a_target_without_text_records_cannot_be_marked() -> None:
    class Few(Target):
        SUPPORTS = frozenset({'A'})

    with pytest.raises(ProcessorException, match='^ownership: target cannot hold TXT records'):
        synced(Few(zone()), zone(A), mine())


def test_a_record_that_the_sources_want_where_a_mark_has_to_be_is_an_error() -> None:
    with pytest.raises(ProcessorException, match='^ownership: a-www.example.com. TXT is wanted by the sources'):
        synced(Target(zone()), zone(f'{A}\na-www 300 TXT "hello"'), mine())


def test_a_name_that_is_too_long_for_a_mark_is_a_conflict_and_the_rest_goes_on() -> None:
    """And one that was there before is somebody's, not an error."""
    long = 'x' * 63
    target = Target(zone(f'{long}.there 300 A 192.0.2.1'))
    plan = synced(target, zone(f'{A}\n{long} 300 A 192.0.2.1'), mine())
    done, kept_back = found(plan)
    assert len(done) == 2 and kept_back == [f'Create: {long}.example.com. A has too long a name for a mark']


def test_the_soa_belongs_to_the_zone() -> None:
    class Whole(Target):
        SUPPORTS_SOA = True

    soa = '@ 300 SOA ns.example.net. hostmaster.example.com. {} 3600 600 86400 300'
    target = Whole(zone(soa.format(1)))
    plan = synced(target, zone(f'{soa.format(2)}\n{A}'), mine())
    assert plan is not None and [each.kind for each in plan.changes] == ['Update', 'Create', 'Create']
    assert plan.blocked == ()


class Elsewhere:
    """A registry in memory, as one in a database is."""

    def __init__(self, keys: Collection[str] = ()) -> None:
        self.keys = set(keys)

    def owned(self, zone: Zone, target_id: str) -> frozenset[str]:
        return frozenset(self.keys)

    def applied(self, zone_name: str, target_id: str, created: Collection[str], deleted: Collection[str]) -> None:
        self.keys = (self.keys | set(created)) - set(deleted)


def applied(target: Target, registry: Elsewhere, plan: Plan | None) -> None:
    assert plan is not None
    target.apply(plan)
    new = {each.key for change in plan.changes for each in change.new}
    old = {each.key for change in plan.changes for each in change.existing}
    registry.applied(plan.zone, plan.target_id, new - old, old - new)


def test_a_registry_elsewhere_leaves_no_mark_in_the_zone() -> None:
    registry, target = Elsewhere(), Target(zone('theirs 300 A 192.0.2.1'))
    processors = [Ownership('ownership', registry=registry)]
    for wanted, done in ((A, ['Create www 300 A 192.0.2.1']),
                         (B, ['Update www 300 A 192.0.2.1 -> www 300 A 192.0.2.2']),
                         (ALIAS, ['Replace www 300 A 192.0.2.2 -> www 300 CNAME a.example.net.']),
                         ('', ['Delete www 300 CNAME a.example.net.'])):
        plan = synced(target, zone(wanted), processors)
        assert found(plan) == (done, [])
        applied(target, registry, plan)
        assert synced(target, zone(wanted), processors) is None
    assert registry.keys == set()
    plan = synced(target, zone('theirs 300 A 192.0.2.2'), processors)
    assert found(plan) == ([], ['Update: theirs.example.com. A is not ours'])
    adopting = [Ownership('ownership', registry=registry, adopt=True)]
    plan = synced(target, zone('theirs 300 A 192.0.2.2'), adopting)
    assert found(plan) == (['Update theirs 300 A 192.0.2.1 -> theirs 300 A 192.0.2.2'], [])


def octodns(**options: Any) -> list[BaseProcessor]:
    return [OctodnsOwnership('ownership', **options)]


@pytest.mark.parametrize(('options', 'existing', 'desired', 'done', 'kept_back'), [
    ({}, '', A, ['Create _owner.a.www 60 TXT "*octodns*"', 'Create www 300 A 192.0.2.1'], []),
    ({}, '', '*.x 300 A 192.0.2.1', ['Create _owner.a._wildcard.x 60 TXT "*octodns*"', 'Create *.x 300 A 192.0.2.1'],
     []),
    ({}, '', '@ 300 A 192.0.2.1', ['Create _owner.a 60 TXT "*octodns*"', 'Create example.com. 300 A 192.0.2.1'], []),
    ({}, f'{A}\n_owner.a.www 60 TXT "*octodns*"', '',
     ['Delete www 300 A 192.0.2.1', 'Delete _owner.a.www 60 TXT "*octodns*"'], []),
    ({}, A, '', [], []),
    ({}, A, B, ['Update www 300 A 192.0.2.1 -> www 300 A 192.0.2.2', 'Create _owner.a.www 60 TXT "*octodns*"'], []),
    ({}, A, A, ['Create _owner.a.www 60 TXT "*octodns*"'], []),
    ({}, f'{A}\n_owner.a.www 60 TXT "them"', B, [], ['Update: www.example.com. A belongs to "them"']),
    ({'allow_takeover': True}, f'{A}\n_owner.a.www 60 TXT "them"', A,
     ['Update _owner.a.www 60 TXT "them" -> _owner.a.www 60 TXT "*octodns*"'], []),
    ({'txt_name': '_mine', 'txt_value': 'say "x"', 'txt_ttl': 5}, '', A,
     [r'Create _mine.a.www 5 TXT "say \"x\""', 'Create www 300 A 192.0.2.1'], []),
])
def test_marks_as_octodns_writes_them(options: dict[str, Any], existing: str, desired: str, done: list[str],
                                      kept_back: list[str]) -> None:
    target = Target(zone(existing))
    plan = synced(target, zone(desired), octodns(**options))
    assert found(plan) == (done, kept_back)
    if plan is not None:
        target.apply(plan)
        assert found(synced(target, zone(desired), octodns(**options))) == ([], kept_back)


def test_what_the_sources_have_where_octodns_has_its_marks_is_an_error_or_left_out() -> None:
    wanted = zone(f'{A}\n_owner.a.www 300 TXT "x"')
    with pytest.raises(ProcessorException, match='^ownership: the sources want _owner.a.www.example.com. 300 TXT "x"'):
        synced(Target(zone()), wanted, octodns())
    plan = synced(Target(zone()), wanted, octodns(should_replace=True))
    assert found(plan) == (['Create _owner.a.www 60 TXT "*octodns*"', 'Create www 300 A 192.0.2.1'], [])
    again = zone(f'{A}\n_owner.a.www 300 TXT "*octodns*"')
    assert found(synced(Target(zone()), again, octodns())) == found(plan)


NAMES = st.sampled_from(['a', 'b', 'c'])
RECORDS = st.dictionaries(NAMES, st.one_of(
    st.dictionaries(st.sampled_from(['A', 'TXT', 'MX']), st.integers(1, 2), min_size=1),
    st.fixed_dictionaries({'CNAME': st.integers(1, 2)})))
DATA = {'A': '192.0.2.{}', 'TXT': '"{}"', 'MX': '{} mx.example.net.', 'CNAME': 'x{}.example.net.'}


def made(found: dict[str, dict[str, int]]) -> str:
    return '\n'.join(f'{name} 300 {rtype} {DATA[rtype].format(number)}'
                     for name, types in found.items() for rtype, number in types.items())


@given(RECORDS, st.lists(RECORDS, min_size=1, max_size=3), st.integers(0, 9), st.sampled_from(['', 'own.']))
def test_whatever_happens_theirs_stays_and_ours_is_marked(theirs: dict[str, dict[str, int]],
                                                          rounds: list[dict[str, dict[str, int]]], breaks_after: int,
                                                          prefix: str) -> None:
    target = Target(zone(made(theirs)))
    for number, wanted in enumerate([*rounds, rounds[-1]]):
        target.breaks_after = breaks_after if number < len(rounds) else None
        plan = synced(target, zone(made(wanted)), mine(prefix=prefix))
        if plan is not None:
            target.apply(plan)
    target.breaks_after = None
    last = synced(target, zone(made(rounds[-1])), mine(prefix=prefix))
    assert last is None or last.changes == []
    assert target.has is not None
    now = {each.key: each for each in target.has}
    assert all(now[each.key] == each for each in zone(made(theirs)))
    registry = TxtRegistry('me', prefix=prefix)
    marks, ours = registry.marks(target.has), registry.owned(target.has, 'target')
    assert len(marks) == len(ours) and len(now) == len(zone(made(theirs))) + 2 * len(ours)
    conflicts = {each.key for blocked in (last.blocked if last else ())
                 for each in (*blocked.change.existing, *blocked.change.new)}
    wanted_now = zone(made(rounds[-1]))
    assert all(now.get(each.key) == each or each.key in conflicts for each in wanted_now)
    assert ours <= conflicts | wanted_now.packed.keys()


@pytest.mark.parametrize(('options', 'key', 'name'), [
    ({}, 'www.example.com.\tA', 'a-www.example.com.'),
    ({}, 'www.example.com.\tCNAME', 'cname-www.example.com.'),
    ({}, 'a.b.example.com.\tAAAA', 'aaaa-a.b.example.com.'),
    ({}, 'example.com.\tA', 'a-.example.com.'),
    ({}, r'a\.b.example.com.' '\tA', r'a-a\.b.example.com.'),
    ({}, '*.example.com.\tA', 'a-*.example.com.'),
    ({'wildcard': '_wildcard'}, '*.a.example.com.\tA', 'a-_wildcard.a.example.com.'),
    ({'prefix': 'own-'}, 'www.example.com.\tA', 'own-a-www.example.com.'),
    ({'prefix': 'Own.'}, 'www.example.com.\tA', 'own.a-www.example.com.'),
    ({'prefix': 'own.'}, 'example.com.\tA', 'own.a-.example.com.'),
    ({'prefix': '%{record_type}-abc-.'}, 'example.com.\tCNAME', 'cname-abc-.example.com.'),
    ({'prefix': '%{record_type}-abc-.'}, 'www.example.com.\tCNAME', 'cname-abc-.www.example.com.'),
])
def test_the_names_of_marks_are_those_of_external_dns(options: dict[str, str], key: str, name: str) -> None:
    assert TxtRegistry('me', **options).name(key, zone()) == name  # type: ignore[arg-type]


@pytest.mark.parametrize(('text', 'owner'), [
    (OURS, 'me'), (THEIRS, 'other'), ('"heritage=external-dns"', ''), ('"v=spf1 -all"', None), ('"word"', None),
    ('"heritage=other,external-dns/owner=me"', None), ('"external-dns/owner=me"', None)])
def test_whom_a_mark_names(text: str, owner: str | None) -> None:
    assert TxtRegistry('me').owner(record(f'a-www 300 TXT {text}')) == owner


@pytest.mark.parametrize(('options', 'why'), [
    ({'owner_id': ''}, 'owner_id'), ({'owner_id': 'a,b'}, 'owner_id'), ({'owner_id': 'a=b'}, 'owner_id'),
    ({'owner_id': 'a b'}, 'owner_id'), ({'owner_id': 'a"'}, 'owner_id'), ({'owner_id': 'x' * 101}, 'owner_id')])
def test_an_option_that_cannot_be_is_an_error(options: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidField, match=f'^{why}: '):
        TxtOwnership('ownership', **options)  # type: ignore[arg-type]
