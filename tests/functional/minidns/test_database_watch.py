"""What MiniDNS finds when it looks into the database, and who is told of it."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

import pytest

from designate_pool.central.service import Central
from designate_pool.minidns.database_watch import LEAST, SOON, DatabaseWatch
from designate_pool.model import utcnow
from designate_pool.runtime import Threads
from designate_pool.storage.serving import watched
from designate_pool.storage.serving.watched import Watched
from designate_pool.storage.sql.database import Storage
from testing.processes import wait_until
from tests.fixtures.central import WHO, Clock

SECONDARY = {'name': 'example.com.', 'masters': ['192.0.2.1']}


def is_due(database: Storage, clock: Clock, pool_name: str = 'default') -> bool:
    return database.read(watched.look, pool_name, datetime.fromtimestamp(clock(), timezone.utc)).has_due_refresh


@pytest.mark.all_databases
def test_a_secondary_zone_is_due_until_it_is_claimed_and_when_the_claim_has_ended(central: Central, database: Storage,
                                                                                  clock: Clock) -> None:
    assert not is_due(database, clock)
    central.create_domain(WHO, SECONDARY)
    assert is_due(database, clock) and not is_due(database, clock, 'silver')
    central.claim_refreshes(WHO, 'default', 60, 1)
    assert not is_due(database, clock)
    clock.now += 61
    assert is_due(database, clock)


@pytest.mark.all_databases
def test_a_pool_that_is_not_there_has_no_reloads(central: Central, database: Storage, clock: Clock) -> None:
    found = [database.read(watched.look, name, datetime.fromtimestamp(clock(), timezone.utc)).reloads
             for name in ('default', 'silver')]
    assert found == [0, None]


def test_a_follower_that_fails_is_told_again_and_does_not_keep_it_from_others(
        database: Storage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level('INFO')
    told: list[Watched] = []

    def fails_once(found: Watched) -> None:
        told.append(found)
        if len(told) == 1:
            raise RuntimeError('the keys cannot be read')

    others: list[Watched] = []
    watch = DatabaseWatch(database, 'default', [fails_once, others.append])
    watch.look()
    assert 'the keys cannot be read' in caplog.text and len(others) == 1
    watch.look()
    assert len(told) == len(others) == 2 and 'can be read from the database again' in caplog.text


def test_one_that_is_not_done_is_told_again_soon(database: Storage) -> None:
    assert DatabaseWatch(database, 'default', [lambda found: None, lambda found: True], 60.0).look() == 60.0
    assert DatabaseWatch(database, 'default', [lambda found: None, lambda found: False], 60.0).look() == SOON


@pytest.mark.all_databases
def test_a_refresh_is_waited_for_and_while_it_is_under_way_so_is_its_end(central: Central, database: Storage,
                                                                         clock: Clock) -> None:
    watch = DatabaseWatch(database, 'default', [], 60.0)
    clock.now += 30
    domain = central.create_domain(WHO, SECONDARY)
    clock.now -= 30
    assert 20 < watch.look() <= 30
    assert DatabaseWatch(database, 'silver', [], 60.0).look() == 60.0
    assert DatabaseWatch(database, 'default', [], 10.0).look() == 10.0
    central.refresh_domain(WHO, domain.id)
    clock.now += 30
    assert watch.look() == SOON
    central.claim_refreshes(WHO, 'default', 60, 1)
    assert watch.look() == SOON
    central.delete_domain(WHO, domain.id)
    assert watch.look() == 60.0


def test_what_is_due_later_is_told_of_then(
        central: Central, database: Storage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    clock.now = time.time() + 1
    central.create_domain(WHO, SECONDARY)
    monkeypatch.setattr(database, 'now', utcnow)
    due: list[bool] = []
    watch = DatabaseWatch(database, 'default', [lambda found: due.append(found.has_due_refresh)], 3600.0)
    watch.start(Threads())
    wait_until(lambda: True in due, 'it is due')
    watch.stop()


def test_many_changes_are_not_as_many_looks(database: Storage) -> None:
    looks: list[Watched] = []
    watch = DatabaseWatch(database, 'default', [looks.append], 3600.0)
    watch.start(Threads())
    wait_until(lambda: looks, 'it has begun')
    began = datetime.now(timezone.utc)
    while len(looks) < 4:
        watch.wake()
    assert datetime.now(timezone.utc) - began >= timedelta(seconds=2 * LEAST)
    watch.stop()
