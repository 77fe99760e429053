"""What is true of every two zones."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from designate_pool.planner.plan.plan import change_document, change_of
from designate_pool.planner.plan.policy import VERBS, Policy
from designate_pool.planner.plan.safety import dangers
from designate_pool.planner.zone import changes
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import NO_EXTRA, Extra, RRset, rrset
from tests.unit.planner.values import ORIGIN, Target, plan

NAMES = st.sampled_from([ORIGIN, *(f'{label}.{ORIGIN}' for label in ('a', 'b', '*', r'a\.b', 'a.b', '-', r'\009'))])
DATA = {
    'A': st.integers(0, 3).map('192.0.2.{}'.format),
    'AAAA': st.integers(0, 3).map('2001:db8::{}'.format),
    'TXT': st.binary(max_size=3).map(lambda text: '"' + ''.join(f'\\{octet:03}' for octet in text) + '"'),
    'MX': st.integers(0, 2).map('{} mail.example.net.'.format),
    'NS': st.integers(0, 2).map('ns{}.example.net.'.format),
}
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3),
                    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
                    max_leaves=4)
EXTRAS = st.just(NO_EXTRA) | st.builds(
    Extra, ignored=st.booleans(), included=st.sets(st.sampled_from('ab'), max_size=1).map(tuple),
    dynamic=st.none() | st.dictionaries(st.text(max_size=2), JSON, max_size=2),
    octodns=st.none() | st.dictionaries(st.text(max_size=2), JSON, max_size=2))


@st.composite
def names(draw: st.DrawFn, extras: st.SearchStrategy[Extra] = st.just(NO_EXTRA)) -> list[RRset]:
    """All RRsets of one name: a CNAME, or whatever else; no zone has a CNAME at its own name."""
    name, ttl = draw(NAMES), draw(st.sampled_from([0, 300]))
    if name != ORIGIN and draw(st.booleans()):
        return [rrset(name, 'CNAME', ttl, [f'{draw(st.sampled_from("xy"))}.example.net.'], draw(extras))]
    types = draw(st.sets(st.sampled_from(sorted(DATA.keys() - {'NS'} if name.startswith('*') else DATA)), min_size=1))
    return [rrset(name, each, ttl, draw(st.lists(DATA[each], min_size=1, max_size=2)), draw(extras))
            for each in sorted(types)]


def zones(extras: st.SearchStrategy[Extra] = st.just(NO_EXTRA)) -> st.SearchStrategy[Zone]:
    return st.lists(names(extras), max_size=5, unique_by=lambda found: found[0].name).map(_zone)


def _zone(found: list[list[RRset]]) -> Zone:
    made = Zone(ORIGIN)
    for each in found:
        for one in each:
            made.add_record(one)
    return made


@given(zones(), zones())
def test_applying_the_changes_makes_the_one_the_other_and_nothing_is_left_to_do(existing: Zone, desired: Zone) -> None:
    found = changes.between(existing, desired)
    after = changes.apply(existing, found)
    assert after == desired and after.digest() == desired.digest()
    assert changes.between(after, desired) == []


@given(zones(), zones())
def test_at_no_step_is_a_cname_beside_other_data(existing: Zone, desired: Zone) -> None:
    """P-18: each step is applied strictly, and looked at."""
    for change in changes.between(existing, desired):
        existing = changes.apply(existing, [change])
        for each in existing:
            assert each.type != 'CNAME' or existing.at(each.name) == [each]
    assert existing == desired


@given(zones(), zones(), st.integers(0, 12))
def test_a_plan_that_stopped_half_way_is_finished_by_the_next(existing: Zone, desired: Zone, made: int) -> None:
    after = changes.apply(existing, changes.between(existing, desired)[:made])
    assert changes.apply(after, changes.between(after, desired)) == desired


@given(zones(), zones(), st.sets(st.sampled_from(sorted(VERBS))), st.sets(st.sampled_from(sorted(VERBS))))
def test_a_policy_loses_nothing_and_makes_nothing(existing: Zone, desired: Zone, one: set[str],
                                                  other: set[str]) -> None:
    """E-07, A82: and two in turn are their intersection."""
    found = changes.between(existing, desired)
    allowed, blocked = Policy('one', frozenset(one)).split(found)
    assert changes.ordered([*allowed, *(each.change for each in blocked)]) == found
    assert all(each in found and each.verbs <= one for each in allowed)
    assert not any(each.change.verbs <= one for each in blocked)
    in_turn, _ = Policy('other', frozenset(other)).split(allowed)
    assert in_turn == Policy('both', frozenset(one & other)).split(found)[0]
    # What passes can be applied, and what is kept back is what is left.
    after = changes.apply(existing, allowed)
    assert {each.change for each in blocked} == set(changes.between(after, desired))


@given(zones(EXTRAS), zones(EXTRAS), st.data())
def test_changing_a_copy_changes_nothing_else(first: Zone, other: Zone, data: st.DataObject) -> None:
    """Z-08."""
    copies = [first, first.copy()]
    copies += [copies[1].copy()]
    before = [list(each) for each in copies]
    changed = data.draw(st.integers(0, 2))
    for each in other:
        copies[changed].add_record(each, replace=True, lenient=True)
    for each in before[0][:2]:
        copies[changed].remove_record(each)
    assert [list(each) for number, each in enumerate(copies) if number != changed] == before[:2]


@given(zones(EXTRAS), zones(EXTRAS))
def test_a_change_comes_back_from_json(existing: Zone, desired: Zone) -> None:
    for change in changes.between(existing, desired, 'a'):
        assert change_of(json.loads(json.dumps(change_document(change)))) == change


@given(zones(EXTRAS), zones(EXTRAS), st.sampled_from(['a', 'b']))
def test_what_is_not_for_a_target_is_never_touched_there(existing: Zone, desired: Zone, target: str) -> None:
    """Z-19, Z-20."""
    for change in changes.between(existing, desired, target, supports=lambda each: each.type != 'MX'):
        for each in (*change.existing, *change.new):
            assert each.extra.is_for(target) and each.type != 'MX'
            for side in (existing, desired):
                there = side.get(each.name, each.type)
                assert there is None or there.extra.is_for(target)


@given(zones(EXTRAS), zones(EXTRAS))
def test_zones_that_are_equal_have_one_digest_and_others_have_two(one: Zone, other: Zone) -> None:
    assert (one == other) is (one.digest() == other.digest())
    assert one == one.copy() and one.digest() == one.copy().digest()


@given(zones())
def test_a_zone_filled_at_once_is_the_zone_filled_one_by_one(found: Zone) -> None:
    filled = Zone(ORIGIN)
    filled.add_pairs(found.packed.items())
    assert filled == found and sorted(filled) == sorted(found)


@given(zones(), zones(), st.floats(0, 1))
def test_what_needs_no_force_keeps_within_the_limits(existing: Zone, desired: Zone, limit: float) -> None:
    made = plan(existing, desired, update=limit, delete=limit)
    made.min_existing_records = 0
    if not dangers(made) and len(existing):
        deleted = {each.key for change in made.changes if change.kind == 'Delete' for each in change.existing}
        kept = [each for each in existing if each.key not in deleted]
        assert kept and len(deleted) <= limit * len(existing) + 1e-9
        assert existing.root_ns == desired.root_ns
        assert {each.type for each in existing.at(ORIGIN)} <= {each.type for each in desired.at(ORIGIN)}
    assert dangers(plan(existing, desired, exists=False)) == []


@given(zones(EXTRAS), zones(EXTRAS))
def test_a_target_that_was_synced_has_nothing_left_to_do(existing: Zone, desired: Zone) -> None:
    """P-15: by way of a provider, twice."""
    kind = type('Dynamic', (Target,), {'SUPPORTS_DYNAMIC': True})
    target = kind(Zone(ORIGIN))
    for each in existing:
        target.has.add_record(each._replace(extra=NO_EXTRA))
    first = target.plan(desired)
    if first is not None:
        target.apply(first)
    assert target.plan(desired) is None
