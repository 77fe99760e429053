"""Who may read a SQLite database, and from which serial on a journal can give a difference."""

from __future__ import annotations

import contextlib
import os
import pathlib
import stat

import pytest
import sqlalchemy as sa

from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import versions


def test_a_new_database_is_its_owner_s_alone(tmp_path: pathlib.Path) -> None:
    before = os.umask(0o022)
    try:
        with contextlib.closing(Storage(f'sqlite:///{tmp_path}/new.sqlite')) as storage:
            storage.run(lambda tx: tx.execute(sa.text('CREATE TABLE t (a INTEGER)')))
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert {'new.sqlite', 'new.sqlite-wal'} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_the_mode_of_one_that_is_there_stays(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'there.sqlite'
    path.touch()
    path.chmod(0o640)
    with contextlib.closing(Storage(f'sqlite:///{path}')) as storage:
        storage.run(lambda tx: tx.execute(sa.text('CREATE TABLE t (a INTEGER)')))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(('newest', 'leads'), [(6, True), (5 + 2 ** 31 - 1, True), (5 + 2 ** 31, False)])
def test_a_journal_that_reaches_back_half_of_all_serials_has_no_order(newest: int, leads: bool) -> None:
    steps = versions._steps_since(versions.Span('d' * 32, 5, newest), 5, 300, [(1, newest, 5, None, b'', b'')])
    assert bool(steps) is leads
