"""What needs force, to the exact boundary."""

from __future__ import annotations

import pytest

from designate_pool.errors import UnsafePlan
from designate_pool.planner.plan.safety import dangers
from designate_pool.planner.processors.rules import PolicyProcessor
from tests.unit.planner.values import Target, hosts, plan, zone

SOA = '@ 300 SOA ns.example.net. hostmaster.example.com. {} 3600 600 86400 300'
NS = '@ 300 NS ns.example.net.'


def with_ttl(text: str, count: int) -> str:
    """*text* with another TTL in its first *count* lines."""
    lines = text.splitlines()
    return '\n'.join([line.replace(' 300 ', ' 60 ') for line in lines[:count]] + lines[count:])


def kinds(found: list[UnsafePlan]) -> list[str]:
    return [each.kind for each in found]


@pytest.mark.parametrize(('existing', 'deleted', 'threshold', 'is_safe'), [
    (10, 3, 0.3, True),
    (10, 4, 0.3, False),
    (9, 8, 0.3, True),
    (10, 8, 0.3, False),
    (11, 3, 0.3, True),
    (20, 6, 0.3, True),
    (20, 7, 0.3, False),
    (100, 29, 0.29, True),
    (100, 57, 0.57, True),
    (100, 58, 0.57, False),
    (10, 1, 0.0, False),
    (10, 0, 0.0, True),
    (10, 9, 1.0, True),
    (10, 9, 0.9, True),
])
def test_the_fraction_that_may_be_deleted_or_updated(existing: int, deleted: int, threshold: float,
                                                     is_safe: bool) -> None:
    """Z-30, Z-32, P-02, A63, A64: more than the limit is too many, and below ten RRsets no fraction is looked at."""
    there = hosts(existing)
    fewer = plan(zone(there), zone(hosts(existing - deleted, first=deleted)), delete=threshold)
    assert kinds(dangers(fewer)) == ([] if is_safe else ['too_many_deletes'])
    other = plan(zone(there), zone(with_ttl(there, deleted)), update=threshold)
    assert kinds(dangers(other)) == ([] if is_safe else ['too_many_updates'])


@pytest.mark.parametrize(('least', 'is_safe'), [(5, False), (6, True)])
def test_how_small_a_zone_is_too_small_for_fractions_can_be_said(least: int, is_safe: bool) -> None:
    made = plan(zone(hosts(5)), zone(hosts(2)))
    made.min_existing_records = least
    assert (dangers(made) == []) is is_safe


@pytest.mark.parametrize('size', [1, 2, 9, 10])
def test_deleting_everything_needs_force_in_a_zone_of_any_size(size: int) -> None:
    """A64."""
    found = dangers(plan(zone(hosts(size)), zone('new 300 A 192.0.2.1'), delete=1.0))
    assert kinds(found) == ['everything_deleted']
    assert dangers(plan(zone(hosts(size + 1)), zone(hosts(1)), delete=1.0)) == []


def test_what_gives_way_to_another_type_is_not_deleted_but_updated() -> None:
    """A76."""
    assert dangers(plan(zone('www 300 A 192.0.2.1'), zone('www 300 CNAME a.example.net.'))) == []
    there = hosts(10)
    aliases = '\n'.join(f'h{number:02} 300 CNAME a.example.net.' for number in range(4))
    found = dangers(plan(zone(there), zone(f'{aliases}\n{hosts(6, first=4)}')))
    assert kinds(found) == ['too_many_updates']


@pytest.mark.parametrize(('existing', 'desired', 'expected'), [
    ('@ 300 A 192.0.2.1', '', ['apex_deleted']),
    ('@ 300 MX 10 mail.example.net.', '@ 300 A 192.0.2.1', ['apex_deleted']),
    ('@ 300 A 192.0.2.1', '@ 300 A 192.0.2.2', []),
    ('@ 300 A 192.0.2.1', '@ 60 A 192.0.2.1', []),
    ('', '@ 300 A 192.0.2.1', []),
    ('@ 300 A 192.0.2.1\n@ 300 MX 10 mail.example.net.', '@ 300 CNAME a.example.net.', ['apex_deleted']),
    ('a 300 A 192.0.2.1', '', []),
])
def test_losing_an_rrset_at_the_apex_needs_force_and_changing_it_does_not(existing: str, desired: str,
                                                                          expected: list[str]) -> None:
    """A64."""
    stays = hosts(3)
    after = zone(f'{desired}\n{stays}', lenient=True)
    assert kinds(dangers(plan(zone(f'{existing}\n{stays}'), after))) == expected


@pytest.mark.parametrize(('before', 'after'), [(NS, NS.replace('ns.', 'ns2.')), (NS, NS.replace('300', '60')),
                                               ('', NS), (NS, '')])
def test_a_change_of_the_zone_s_own_ns_needs_force_where_it_exists(before: str, after: str) -> None:
    """Z-31, A67."""
    existing, desired = zone(f'{before}\n{hosts(3)}'), zone(f'{after}\n{hosts(3)}')
    assert kinds(dangers(plan(existing, desired)))[:1] == ['root_ns_change']
    assert dangers(plan(existing, desired, exists=False)) == []
    assert dangers(plan(existing, existing.copy())) == []


def test_the_ns_of_a_delegation_need_no_force() -> None:
    sub = 'sub 300 NS ns.example.net.'
    assert dangers(plan(zone(f'{sub}\n{hosts(3)}'), zone(f'{sub.replace("300", "60")}\n{hosts(3)}'))) == []


def test_a_new_zone_needs_no_force_and_neither_does_one_that_is_still_empty() -> None:
    """A67: also when the first filling was interrupted after the zone had been made."""
    desired = zone(f'{NS}\n{hosts(20)}')
    assert dangers(plan(zone(), desired, exists=False)) == []
    assert dangers(plan(zone(), desired)) == []
    assert dangers(plan(zone(SOA.format(1)), desired)) == []


@pytest.mark.parametrize('desired', ['', SOA.format(2), f'{SOA.format(2)}\n{NS}'])
@pytest.mark.parametrize('size', [1, 30])
def test_sources_that_have_nothing_need_force(desired: str, size: int) -> None:
    """The empty-source guard; the worst comes first."""
    found = dangers(plan(zone(f'{SOA.format(1)}\n{NS}\n{hosts(size)}'), zone(desired)))
    assert kinds(found)[0] == 'empty_source'
    assert str(found[0]) == (f'example.com. on target: the sources are empty, the target has {size + 1} RRsets.')


def test_sources_that_had_nothing_need_force_whatever_processors_added() -> None:
    made = plan(zone(hosts(3)), zone('meta 300 TXT "x"\n' + hosts(1)))
    assert dangers(made) == []
    assert kinds(dangers(made, source_is_empty=True)) == ['empty_source']


def test_sources_that_have_nothing_are_no_danger_where_nothing_is_there_or_deleted() -> None:
    assert dangers(plan(zone(NS), zone(NS)), source_is_empty=True) == []
    kept = PolicyProcessor('policy', 'upsert-only').process_plan(plan(zone(hosts(20)), zone()), (), Target())
    assert kept is not None and dangers(kept, source_is_empty=True) == []


def test_the_soa_counts_nowhere() -> None:
    existing, desired = zone(f'{SOA.format(1)}\n{hosts(9)}'), zone(f'{SOA.format(2)}\n{hosts(4)}')
    assert dangers(plan(existing, desired)) == []
    assert dangers(plan(zone(SOA.format(1)), zone())) == []
    existing, desired = zone(f'{SOA.format(1)}\n{hosts(10)}'), zone(f'{SOA.format(2)}\n{hosts(7)}')
    assert dangers(plan(existing, desired, update=0.0)) == []
    found = dangers(plan(zone(f'{SOA.format(1)}\n{hosts(2)}'), zone(f'{SOA.format(1)}\nx 300 A 192.0.2.1')))
    assert kinds(found) == ['everything_deleted']


def test_all_that_is_wrong_is_told_the_worst_first() -> None:
    there = f'{NS}\n@ 300 A 192.0.2.1\n{hosts(20)}'
    found = dangers(plan(zone(there), zone(NS.replace('300', '60'))))
    assert kinds(found) == ['empty_source', 'root_ns_change', 'apex_deleted', 'too_many_deletes']


@pytest.mark.parametrize(('existing', 'desired', 'message'), [
    (hosts(10), hosts(5, first=5),
     '5 of 10 RRsets would be deleted, over 30 % (h00.example.com. A, h01.example.com. A, h02.example.com. A and 2 '
     'more).'),
    (f'{NS}\n{hosts(1)}', f'{NS.replace("300", "60")}\n{hosts(1)}',
     'the NS records of the zone itself would change (example.com. 300 NS ns.example.net., example.com. 60 NS '
     'ns.example.net.).'),
])
def test_messages_give_counts_limits_and_names(existing: str, desired: str, message: str) -> None:
    (found,) = dangers(plan(zone(existing), zone(desired)))
    assert str(found) == f'example.com. on target: {message}'


def test_limits_are_whole_percents_where_they_were_given_so() -> None:
    (found,) = dangers(plan(zone(hosts(10)), zone(hosts(5)), delete=0.29))
    assert 'over 29 % (' in str(found)
    (found,) = dangers(plan(zone(hosts(10)), zone(hosts(5)), delete=0.125))
    assert 'over 12.5 % (' in str(found)


def test_what_is_counted_is_what_is_left_in_the_plan() -> None:
    """A65, A66: first the policy, then the thresholds; and both numbers are told."""
    made = plan(zone(hosts(10)), zone(hosts(5)))
    assert kinds(dangers(made)) == ['too_many_deletes']
    kept = PolicyProcessor('policy', 'upsert-only').process_plan(made, (), Target())
    assert kept is not None and dangers(kept) == [] and '5 blocked' in kept.summary()
    del made.changes[3:]
    assert dangers(made) == []
