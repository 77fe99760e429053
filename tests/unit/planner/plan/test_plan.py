"""A plan counts when it is asked, and goes to JSON and back."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from designate_pool.errors import InvalidField
from designate_pool.planner.plan.plan import ApplyResult, Blocked, Plan, PlanCounts, change_of
from designate_pool.planner.zone import changes
from tests.unit.planner.values import hosts, plan, record, zone

A = 'www 300 A 192.0.2.1'


def test_the_counts_follow_the_changes() -> None:
    """A65: also when a processor edits the list."""
    made = plan(zone(hosts(3) + '\nc 300 CNAME x.example.net.'),
                zone('h01 60 A 192.0.2.1\nnew 300 A 192.0.2.1\nc 300 A 192.0.2.1\nc 300 TXT "x"'))
    assert made.counts == PlanCounts(creates=1, updates=2, deletes=2)
    assert made.summary() == '1 to create, 2 to update, 2 to delete; 4 existing RRsets'
    made.changes = [each for each in made.changes if each.kind == 'Delete']
    assert made.counts == PlanCounts(0, 0, 2)
    made.changes.clear()
    assert made.counts == PlanCounts(0, 0, 0)


@pytest.mark.parametrize(('made', 'is_empty'), [
    (Plan(zone(), zone(), [], exists=True), True),
    (Plan(zone(), zone(), [], exists=False), False),
    (Plan(zone(), zone(), [], exists=True, meta={'comment': 'new'}), False),
    (Plan(zone(), zone(), [changes.create(record(A))], exists=True), False),
    (Plan(zone(), zone(), [], True, blocked=(Blocked(changes.create(record(A)), 'policy', 'no'),)), False),
])
def test_a_plan_is_empty_when_nothing_is_to_be_done_or_kept_back(made: Plan, is_empty: bool) -> None:
    """Z-26, A61: meta alone is a plan."""
    assert made.is_empty is is_empty


def test_a_plan_as_json() -> None:
    """Z-25, A74."""
    made = plan(zone(A), zone('www 300 A 192.0.2.2\n@ 300 NS ns.example.net.'))
    made.meta = {'when': datetime.date(2026, 1, 2)}
    made.blocked = (Blocked(changes.delete(record(A)), 'policy', 'the policy does not allow delete'),)
    found = json.loads(json.dumps(made.document()))
    assert found['zone'] == 'example.com.' and found['target'] == 'target' and found['exists'] is True
    assert found['counts'] == {'creates': 1, 'updates': 1, 'deletes': 0} and found['existing_records'] == 1
    assert found['meta'] == {'when': '2026-01-02'}
    assert found['existing_digest'] == zone(A).digest() != found['desired_digest']
    assert [change_of(each) for each in found['changes']] == made.changes
    assert change_of(found['blocked'][0]['change']) == made.blocked[0].change
    assert found['changes'][1] == {'kind': 'Create', 'existing': [], 'new': [
        {'name': 'example.com.', 'type': 'NS', 'ttl': 300, 'records': ['ns.example.net.']}]}


RRSET = {'name': 'www.example.com.', 'type': 'A', 'ttl': 300, 'records': ['192.0.2.1']}


@pytest.mark.parametrize('document', [
    {}, [], None, 'Create', {'kind': 'Rename', 'existing': [], 'new': [RRSET]},
    {'kind': 'Create', 'new': [RRSET]},
    {'kind': 'Create', 'existing': [], 'new': ['www.example.com.']},
    {'kind': 'Create', 'existing': [], 'new': [{**RRSET, 'ttl': 'long'}]},
    {'kind': 'Create', 'existing': [], 'new': [{**RRSET, 'records': '192.0.2.1'}]},
    {'kind': 'Create', 'existing': [], 'new': [{**RRSET, 'records': [1]}]},
    {'kind': 'Create', 'existing': [], 'new': [{**RRSET, 'extra': {'colour': 'red'}}]},
    {'kind': 'Create', 'existing': [], 'new': []},
    {'kind': 'Create', 'existing': [RRSET], 'new': [RRSET]},
    {'kind': 'Delete', 'existing': [], 'new': [RRSET]},
    {'kind': 'Update', 'existing': [], 'new': [RRSET]},
    {'kind': 'Replace', 'existing': [RRSET], 'new': []},
])
def test_what_is_no_document_of_a_change_is_refused(document: Any) -> None:
    with pytest.raises(InvalidField, match='change: '):
        change_of(document)


@pytest.mark.parametrize(('result', 'ok'), [
    (ApplyResult(), True), (ApplyResult(3), True), (ApplyResult(3, failed=1), False),
    (ApplyResult(3, skipped=1), False)])
def test_only_what_was_made_in_full_is_well(result: ApplyResult, ok: bool) -> None:
    """A69."""
    assert result.ok is ok
