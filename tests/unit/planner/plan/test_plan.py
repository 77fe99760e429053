"""Plans: their counts and JSON, what policies let pass, and where they are kept."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import pathlib
import stat
from collections.abc import Sequence
from typing import Any

import pytest

from designate_pool.errors import InvalidField, PlanNotFound
from designate_pool.model import PlanState, StoredPlan, utcnow
from designate_pool.planner.plan.plan import ApplyResult, Blocked, Plan, PlanCounts, change_of
from designate_pool.planner.plan.plan_store import FolderStore
from designate_pool.planner.plan.policy import parse
from designate_pool.planner.processors.rules import PolicyProcessor
from designate_pool.planner.zone import changes
from tests.unit.planner.values import Target, hosts, plan, record, told, zone

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


NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, 678, datetime.timezone.utc)
PLAN = StoredPlan(id='0123456789abcdef0123456789abcdef', pool_name='', zone='example.com.', target='a, b',
                  state=PlanState.STORED, creates=3, document='{"x": "ü\\u0000"}', why='one\ntwo',
                  expires_at=NOW + datetime.timedelta(days=1))


def other(id: str, **facts: object) -> StoredPlan:
    return dataclasses.replace(PLAN, id=id.ljust(32, '0'), **facts)  # type: ignore[arg-type]


def test_a_plan_comes_back_as_it_was_put(tmp_path: pathlib.Path) -> None:
    kept = FolderStore(tmp_path / 'new' / 'plans', lambda: NOW).put(PLAN)
    assert kept == dataclasses.replace(PLAN, created_at=NOW, updated_at=NOW)
    again = FolderStore(tmp_path / 'new' / 'plans')
    assert again.get(PLAN.id) == kept and again.find() == [kept]


def test_only_the_owner_can_read_it_and_nothing_else_lies_about(tmp_path: pathlib.Path) -> None:
    old = os.umask(0)
    try:
        store = FolderStore(tmp_path / 'plans')
        store.put(PLAN)
        store.settle(PLAN.id, PlanState.FAILED, 'no')
    finally:
        os.umask(old)
    assert [path.name for path in store.path.iterdir()] == [f'{PLAN.id}.json']
    assert stat.S_IMODE((store.path / f'{PLAN.id}.json').stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o700


def test_the_beginning_of_an_id_is_enough_where_it_is_the_only_one(tmp_path: pathlib.Path) -> None:
    store = FolderStore(tmp_path, lambda: NOW)
    first, second = store.put(other('abcd1')), store.put(other('abcd2'))
    assert store.get('abcd1') == first and store.get('ABCD2') == second
    with pytest.raises(PlanNotFound, match=f'abcd alone: {first.id}, {second.id} begin with it'):
        store.get('abcd')
    with pytest.raises(PlanNotFound, match='There is no plan abc9'):
        store.get('abc9')
    for wrong in ('abc', '', '../etc', 'abcd*', 'a' * 33):
        with pytest.raises(PlanNotFound, match='32 hexadecimal digits'):
            store.get(wrong)


def test_settling_notes_when_and_why(tmp_path: pathlib.Path) -> None:
    times = iter([NOW, *(NOW + datetime.timedelta(hours=each) for each in (1, 2, 3, 4))])
    store = FolderStore(tmp_path, lambda: next(times))
    store.put(PLAN)
    store.settle(PLAN.id, PlanState.FAILED, 'it broke')
    failed = store.get(PLAN.id)
    assert (failed.state, failed.why, failed.applied_at) == ('FAILED', 'it broke', NOW + datetime.timedelta(hours=1))
    store.settle(PLAN.id, PlanState.APPLIED, None)
    assert store.get(PLAN.id).applied_at == NOW + datetime.timedelta(hours=2)
    store.settle('0123', PlanState.DROPPED, 'it moved')
    dropped = store.get(PLAN.id)
    assert (dropped.state, dropped.why) == ('DROPPED', 'it moved')
    assert dropped.applied_at == NOW + datetime.timedelta(hours=2)
    assert dropped.updated_at == NOW + datetime.timedelta(hours=3) and dropped.created_at == NOW
    with pytest.raises(PlanNotFound):
        store.settle('f' * 32, PlanState.APPLIED, None)


def test_the_newest_comes_first_and_old_ones_go_when_one_is_put(tmp_path: pathlib.Path) -> None:
    store = FolderStore(tmp_path, lambda: NOW)
    for id, days in (('aaaa', 31), ('bbbb', 29), ('cccc', 0)):
        at = NOW - datetime.timedelta(days=days)
        FolderStore(tmp_path, lambda: NOW - datetime.timedelta(days=9)).put(other(id, created_at=at, expires_at=at))
    assert [plan.id[:4] for plan in store.find()] == ['cccc', 'bbbb', 'aaaa']
    store.put(other('dddd', expires_at=None))
    assert [plan.id[:4] for plan in store.find()] == ['dddd', 'cccc', 'bbbb']


def test_a_damaged_file_is_named_and_does_not_keep_others_from_being_put(tmp_path: pathlib.Path) -> None:
    store = FolderStore(tmp_path, lambda: NOW)
    store.put(other('aaaa'))
    damaged = tmp_path / f'{other("bbbb").id}.json'
    for text in ('', '{"id": 1}', '[]', '{"expires_at": null, "applied_at": null, "created_at": null, '
                 '"updated_at": null, "state": "NO_STATE"}'):
        damaged.write_text(text)
        with pytest.raises(InvalidField, match=f'{damaged}: it is not the file of a plan'):
            store.get('bbbb')
        with pytest.raises(InvalidField, match='it is not the file of a plan'):
            store.find()
    store.put(other('cccc'))
    assert store.get('aaaa').id.startswith('aaaa')


def test_a_file_that_went_while_they_were_listed_is_left_out(tmp_path: pathlib.Path) -> None:
    kept = FolderStore(tmp_path, lambda: NOW).put(other('aaaa'))
    (tmp_path / f'{other("bbbb").id}.json').symlink_to(tmp_path / 'gone')  # listed, and not there when it is read
    assert FolderStore(tmp_path).find() == [kept]


def test_other_files_are_left_alone_and_ids_are_checked(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'readme.json').write_text('{}')
    store = FolderStore(tmp_path)
    assert store.find() == []
    for id in ('../../x', 'ABCD', ''):
        with pytest.raises(InvalidField, match='is not 32 hexadecimal digits'):
            store.put(dataclasses.replace(PLAN, id=id))
    assert FolderStore(tmp_path / 'nowhere').find() == []


def test_a_write_that_fails_leaves_the_old_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderStore(tmp_path)
    kept = store.put(dataclasses.replace(PLAN, expires_at=utcnow() + datetime.timedelta(days=1)))

    def full(*_: object) -> None:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(OSError, match='No space left'):
        store.settle(PLAN.id, PlanState.APPLIED, None)
    assert store.get(PLAN.id) == kept and [path.name for path in tmp_path.iterdir()] == [f'{PLAN.id}.json']
