"""Times that a Central with a clock far ahead has written, on SQLite, MariaDB and PostgreSQL."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

import pytest

from designate_pool.api.services.zone_task_store import ZoneTaskStore
from designate_pool.central.clock_correction import ClockCorrection
from designate_pool.central.import_worker import LEASE, LONGEST_CLAIM
from designate_pool.central.service import Central
from designate_pool.model import Domain, RefreshTask, ZoneTaskKind, ZoneTaskStatus, new_id
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import secondary_zones, zone_tasks
from tests.fixtures.central import WHO, Clock

AHEAD = 3600.0
ZONE = b'$ORIGIN example.org.\n@ 300 SOA ns1 hostmaster 1 7200 900 1209600 600\n'


@pytest.fixture
def secondary(central: Central) -> Domain:
    return central.create_domain(WHO, {'name': 'example.com.', 'masters': ['192.0.2.1']})


def claim(central: Central, count: int = 1) -> list[RefreshTask]:
    found = central.claim_refreshes(WHO, 'default', 60, 10)
    assert len(found) == count
    return found


def at(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock.now, timezone.utc)


def claim_import(database: Storage, clock: Clock, name: str = '') -> str:
    """The claim of a Central that dies."""
    name = name or new_id()
    assert len(database.run(zone_tasks.claim, name, at(clock), at(clock) + timedelta(seconds=LEASE))) == 1
    return name


def test_an_import_that_it_has_claimed_is_carried_out(central: Central, database: Storage, clock: Clock) -> None:
    tasks = ZoneTaskStore(database)
    task = tasks.store_import(WHO, [ZONE])
    clock.now += AHEAD
    claim_import(database, clock)
    clock.now = time.time()
    assert not central.imports.run_next()
    central.clock_correction.correct()
    clock.now += LONGEST_CLAIM - 1
    assert not central.imports.run_next()  # a claim that is held is renewed by then
    clock.now += 2
    assert central.imports.run_next()
    assert tasks.get(ZoneTaskKind.IMPORT, WHO, task.id).status is ZoneTaskStatus.COMPLETE


def test_claims_that_end_when_they_may_are_left(central: Central, database: Storage, clock: Clock) -> None:
    tasks = ZoneTaskStore(database)
    task = tasks.store_import(WHO, [ZONE])
    name = claim_import(database, clock)
    assert database.run(zone_tasks.extend_claim, task.id, name, at(clock) + timedelta(seconds=LONGEST_CLAIM))
    clock.now = time.time()
    central.clock_correction.correct()
    until = database.read(lambda tx: tx.execute(
        zone_tasks.TABLE.select().with_only_columns(zone_tasks.TABLE.c.claimed_until)).scalar_one())
    assert abs((until - at(clock)).total_seconds() - LONGEST_CLAIM) < 30


def test_a_refresh_that_it_has_claimed_is_done_when_the_claim_would_have_ended(central: Central, clock: Clock,
                                                                               secondary: Domain) -> None:
    clock.now += AHEAD
    lost, = claim(central)
    central.refresh_domain(WHO, secondary.id)
    clock.now = time.time()
    central.refresh_domain(WHO, secondary.id)
    central.clock_correction.correct()
    clock.now += 59
    claim(central, 0)
    clock.now += 2
    again, = claim(central)
    assert again.domain_id == secondary.id and again.claim != lost.claim


def test_a_refresh_that_goes_on_keeps_its_claim(central: Central, database: Storage, clock: Clock,
                                                secondary: Domain) -> None:
    clock.now += AHEAD
    task, = claim(central)
    clock.now = time.time()
    central.clock_correction.correct()
    assert database.read(secondary_zones.holds, secondary.id, task.claim)


def test_the_next_refresh_is_as_late_as_it_would_have_been(central: Central, database: Storage, clock: Clock,
                                                           secondary: Domain) -> None:
    clock.now += AHEAD
    task, = claim(central)
    central.fail_refresh(WHO, task.domain_id, task.claim, 'no master answers')
    clock.now = time.time()
    central.clock_correction.correct()
    clock.now += 59
    claim(central, 0)
    clock.now += 2
    claim(central)


def test_refreshes_are_looked_at_page_by_page(central: Central, database: Storage, clock: Clock) -> None:
    correction = ClockCorrection(database, clock, batch=2)
    clock.now += AHEAD
    for number in range(3):
        central.create_domain(WHO, {'name': f'z{number}.example.', 'masters': ['192.0.2.1']})
    clock.now = time.time()
    for due in (2, 1, 0):
        correction.correct()
        clock.now += 1
        claim(central, due)


# The clock of SQLite is that of the host.
@pytest.mark.parametrize('database_kind', ['mariadb', 'postgresql'], indirect=True)
def test_a_central_whose_own_clock_is_wrong_corrects_nothing(central: Central, database: Storage, clock: Clock,
                                                             secondary: Domain) -> None:
    clock.now -= AHEAD  # what the others write seems to be far ahead
    before = database.read(secondary_zones.get, secondary.id)
    central.clock_correction.correct()
    assert database.read(secondary_zones.get, secondary.id) == before
