"""Policies: verbs by many names, and nothing lost between what passes and what is kept back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from designate_pool.errors import InvalidField
from designate_pool.planner.plan.plan import Blocked
from designate_pool.planner.plan.policy import parse
from designate_pool.planner.processors.rules import PolicyProcessor
from designate_pool.planner.zone import changes
from tests.unit.planner.values import Target, plan, record, told, zone

EXISTING = 'old 300 A 192.0.2.1\nwww 300 A 192.0.2.1\nx 300 CNAME a.example.net.'
DESIRED = 'new 300 A 192.0.2.1\nwww 300 A 192.0.2.2\nx 300 A 192.0.2.1'


@pytest.mark.parametrize(('words', 'verbs'), [
    ('sync', {'create', 'update', 'delete'}),
    ('create-delete-only', {'create', 'delete'}),
    ('create+delete', {'create', 'delete'}),
    ('update + create', {'create', 'update'}),
    ('delete', {'delete'}),
    ((), {'create', 'update', 'delete'}),
    (['upsert-only', 'create-delete-only'], {'create'}),
    (['create-only', 'update-only'], set()),
    ('upsert-only, create+delete', {'create'}),
    (['sync'], {'create', 'update', 'delete'}),
])
def test_the_verbs_behind_the_words(words: str | Sequence[str], verbs: set[str]) -> None:
    """E-01 to E-06, E-17, A82: several intersect, and none at all is full sync."""
    assert parse(words).verbs == verbs


@pytest.mark.parametrize('words', ['upsert', '', ' ', 'create+', 'create,', 'Sync', ['sync', 'never'], ['']])
def test_an_unknown_word_is_an_error_that_lists_the_known_ones(words: str | Sequence[str]) -> None:
    """E-05."""
    with pytest.raises(InvalidField, match='policy: .* is none of sync, upsert-only, create-only'):
        parse(words)


@pytest.mark.parametrize(('word', 'expected'), [
    ('sync', ['Delete', 'Replace', 'Update', 'Create']),
    ('upsert-only', ['Update', 'Create']),
    ('create-only', ['Create']),
    ('update-only', ['Update']),
    ('delete-only', ['Delete']),
    ('create-delete-only', ['Delete', 'Replace', 'Create']),
    ('update-delete-only', ['Delete', 'Update']),
])
def test_what_each_policy_lets_pass(word: str, expected: list[str]) -> None:
    """E-02 to E-04, E-07, A76: a Replace needs both verbs, or is kept back whole."""
    found = changes.between(zone(EXISTING), zone(DESIRED))
    before = list(found)
    allowed, blocked = parse(word).split(found)
    assert [each.kind for each in allowed] == expected
    assert [each.change for each in blocked] == [each for each in before if each.kind not in expected]
    assert found == before and all(each.by == 'policy' for each in blocked)


@pytest.mark.parametrize(('word', 'kind', 'why'), [
    ('upsert-only', 'Delete', 'the policy upsert-only does not allow delete'),
    ('upsert-only', 'Replace', 'it needs create and delete, and the policy upsert-only does not allow delete'),
    ('update-only', 'Replace',
     'it needs create and delete, and the policy update-only does not allow create and delete'),
    ('create+delete', 'Update', 'the policy create+delete does not allow update'),
])
def test_the_reason_in_words(word: str, kind: str, why: str) -> None:
    _, blocked = parse(word).split(changes.between(zone(EXISTING), zone(DESIRED)))
    assert [each.why for each in blocked if each.change.kind == kind] == [why]


SOA = '@ 300 SOA ns.example.net. hostmaster.example.com. {} 3600 600 86400 300'


@pytest.mark.parametrize(('word', 'existing', 'desired', 'passes'), [
    ('create-only', '', DESIRED, True),
    ('create-only', '', '', True),
    ('create-only', EXISTING, DESIRED, False),
    ('upsert-only', EXISTING, DESIRED, True),
    (['create-only', 'update-only'], '', '', False),
])
def test_the_soa_passes_when_all_else_does(word: str, existing: str, desired: str, passes: bool) -> None:
    """With a new serial and old contents the zone would say that it is what it is not."""
    found = changes.between(zone(f'{EXISTING * bool(existing)}\n{SOA.format(1)}'), zone(f'{desired}\n{SOA.format(2)}'))
    allowed, _ = parse(word).split(found)
    assert ('SOA' in [each.record.type for each in allowed]) is passes


def test_a_processor_keeps_back_and_changes_no_plan_that_it_was_given() -> None:
    """E-07, E-09, E-10, Q-13, Q-14: what else the plan says stays."""
    given = plan(zone(EXISTING), zone(DESIRED), exists=False, update=0.7, delete=0.8)
    given.meta = {'comment': 'x'}
    given.blocked = (Blocked(changes.create(record('z 300 A 192.0.2.1')), 'conflict', 'it is not ours'),)
    before = dataclasses.replace(given, changes=list(given.changes))
    found = PolicyProcessor('policy', 'create-only').process_plan(given, (), Target())
    assert given == before
    assert found is not None and told(found.changes) == ['Create new 300 A 192.0.2.1']
    assert [each.by for each in found.blocked] == ['conflict', 'policy', 'policy', 'policy']
    assert (found.exists, found.update_pcent_threshold, found.delete_pcent_threshold, found.meta) == (
        False, 0.7, 0.8, {'comment': 'x'})
    assert found.summary() == '1 to create, 0 to update, 0 to delete, 4 blocked; 3 existing RRsets'


def test_nothing_kept_back_is_the_plan_itself() -> None:
    given = plan(zone(EXISTING), zone(DESIRED))
    assert PolicyProcessor('policy').process_plan(given, (), Target()) is given
    assert PolicyProcessor('policy').process_plan(None, (), Target()) is None
