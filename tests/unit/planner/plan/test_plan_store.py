"""Plans in a folder: found again, private, whole, and not for ever."""

from __future__ import annotations

import dataclasses
import datetime
import os
import pathlib
import stat

import pytest

from designate_pool.errors import InvalidField, PlanNotFound
from designate_pool.model import PlanState, StoredPlan, utcnow
from designate_pool.planner.plan.plan_store import FolderStore

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
