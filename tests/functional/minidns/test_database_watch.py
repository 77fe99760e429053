"""What MiniDNS finds when it looks into the database, and who is told of it."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from designate_pool.central.service import Central
from designate_pool.minidns.database_watch import DatabaseWatch
from designate_pool.storage.serving import watched
from designate_pool.storage.serving.watched import Watched
from designate_pool.storage.sql.database import Storage
from tests.fixtures.central import WHO, Clock

SECONDARY = {'name': 'example.com.', 'masters': ['192.0.2.1']}


def is_due(database: Storage, clock: Clock, pool_name: str = 'default') -> bool:
    return database.read(watched.look, pool_name, datetime.fromtimestamp(clock(), timezone.utc)).has_due_refresh


def test_a_secondary_zone_is_due_until_it_is_claimed_and_when_the_claim_has_ended(central: Central, database: Storage,
                                                                                  clock: Clock) -> None:
    assert not is_due(database, clock)
    central.create_domain(WHO, SECONDARY)
    assert is_due(database, clock) and not is_due(database, clock, 'silver')
    central.claim_refreshes(WHO, 'default', 60, 1)
    assert not is_due(database, clock)
    clock.now += 61
    assert is_due(database, clock)


def test_a_zone_that_is_deleted_is_not_due(central: Central, database: Storage, clock: Clock) -> None:
    domain = central.create_domain(WHO, SECONDARY)
    central.delete_domain(WHO, domain.id)
    assert not is_due(database, clock)


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


def test_a_follower_that_fails_hides_no_outage_of_the_database(
        database: Storage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level('INFO')

    def fail(*arguments: object) -> None:
        raise RuntimeError('a key cannot be read')

    def away(*arguments: object) -> None:
        raise RuntimeError('the database is away')

    watch = DatabaseWatch(database, 'default', [fail])
    watch.look()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(watched, 'look', away)
        watch.look()
    watch.look()
    errors = [each.getMessage() for each in caplog.records if each.levelname == 'ERROR']
    assert ['a key' in each for each in errors] == [True, False] and 'the database is away' in errors[1]
    assert 'can be read from the database again' in caplog.text
