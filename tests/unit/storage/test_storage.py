"""Who may read a SQLite database, and from which serial on a journal can give a difference."""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import stat
from datetime import datetime, timedelta, timezone

import pytest
import sqlalchemy as sa

from designate_pool.metrics import CLOCK_AHEAD
from designate_pool.storage.sql.database import CLOCK_INTERVAL, DatabaseClock, Storage
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


BEGAN = datetime(2030, 1, 2, 3, 4, 5)


class Host:
    """A host and a database.

    :ivar ahead: seconds that the host's clock is ahead
    :ivar uptime: of the host
    """

    def __init__(self, ahead: float = 0.0) -> None:
        self.ahead, self.uptime, self.there = ahead, 1000.0, BEGAN
        self.clock = DatabaseClock(lambda: self.there.replace(tzinfo=timezone.utc).timestamp() + self.ahead,
                                   lambda: self.uptime)

    def wait(self, seconds: float) -> None:
        self.uptime += seconds
        self.there += timedelta(seconds=seconds)

    def measure(self, asked: float = 0.0, answered: float = 0.0) -> None:
        """The question takes *asked* seconds, the answer *answered*."""
        def read() -> datetime:
            self.wait(asked)
            time = self.there
            self.wait(answered)
            return time

        self.clock.measure(read)

    @property
    def error(self) -> float:
        """Seconds that its time of the database is ahead of that."""
        return (self.clock.now().replace(tzinfo=None) - self.there).total_seconds()


@pytest.mark.parametrize('ahead', [-3600.0, 0.0, 3600.0])
def test_it_is_the_databases_whatever_the_hosts_clock_says(ahead: float) -> None:
    host = Host(ahead)
    assert not host.clock.is_measured and host.error == pytest.approx(ahead)
    host.measure()
    assert host.error == pytest.approx(0) and host.clock.host_ahead == pytest.approx(ahead)
    host.ahead -= 7200  # somebody sets the host's clock
    host.wait(30)
    assert host.error == pytest.approx(0)


def test_a_slow_answer_corrects_no_more_than_it_must() -> None:
    host = Host()
    host.measure()
    host.measure(asked=5, answered=5)
    assert host.error == pytest.approx(0)
    host.there += timedelta(seconds=7)  # somebody sets the database's clock
    host.measure(asked=1, answered=2)
    assert host.error == pytest.approx(-2)  # as if it had been answered at once
    host.measure()
    assert host.error == pytest.approx(0)


def test_it_is_measured_once_a_minute() -> None:
    host = Host()
    assert host.clock.is_due
    host.measure()
    host.wait(CLOCK_INTERVAL - 1)
    assert not host.clock.is_due
    host.wait(1)
    assert host.clock.is_due


def test_clocks_that_differ_are_logged_once_and_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    host = Host(-5.0)
    host.measure()
    host.measure()
    assert [record.levelname for record in caplog.records] == ['WARNING']
    assert "this host's clock is 5.0 s behind the database's" in caplog.text
    assert CLOCK_AHEAD._value.get() == pytest.approx(-5)
    host.ahead = 1.0
    host.measure()
    assert "this host's clock is in step with the database's again" in caplog.text
