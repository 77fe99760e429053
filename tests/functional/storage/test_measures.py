"""What is measured of a pool, on each database."""

from __future__ import annotations

from datetime import timedelta

import pytest
import sqlalchemy as sa

from designate_pool.central.service import Central
from designate_pool.model import Action, Context, Domain, Outcome, ServerStatus, Status, utcnow
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.reporting import gauges
from designate_pool.storage.reporting.gauges import ServerMeasures
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains as domain_table
from designate_pool.storage.zones import domains
from tests.fixtures.central import create, succeed

SERVER = 'a' * 32
NOW = utcnow().replace(microsecond=0)


def ago(seconds: float) -> object:
    return NOW - timedelta(seconds=seconds)


def row(domain: Domain, action: Action = Action.UPDATE, **values: object) -> ServerStatus:
    return ServerStatus(SERVER, domain.id, action, domain.serial, version=1, **values)  # type: ignore[arg-type]


def test_a_server_where_nothing_waits(database: Storage, central: Central) -> None:
    domain = create(central)
    database.run(server_statuses.write, [row(domain, status=Outcome.SUCCESS)], NOW)
    assert database.read(gauges.of_server, SERVER, NOW) == ServerMeasures()


def test_a_server_that_is_behind(database: Storage, central: Central) -> None:
    first, second, third = (create(central, f'{name}.example.com.') for name in ('a', 'b', 'c'))
    for domain, seconds in ((first, 900), (second, 60), (third, 5000)):
        database.run(lambda tx: tx.execute(sa.update(domain_table).where(domain_table.c.id == domain.id)
                                           .values(changed_at=ago(seconds))))
    database.run(server_statuses.write, [
        row(first, Action.CREATE, status=Outcome.ERROR, next_attempt_at=NOW + timedelta(seconds=60)),
        row(first, status=None, next_attempt_at=ago(30)),
        row(second, next_attempt_at=ago(40), claimed_by='x', claimed_until=NOW + timedelta(seconds=9)),
        row(third, status=Outcome.SUCCESS, next_attempt_at=ago(10))], NOW)  # one that is read again counts as done
    found = database.read(gauges.of_server, SERVER, NOW)
    assert (found.waiting, found.due, found.failing, found.in_hand, found.behind) == (4, 2, 1, 1, 2)
    assert (found.oldest_due, found.behind_since) == (ago(30), ago(900))
    assert database.read(gauges.of_server, 'b' * 32, NOW) == ServerMeasures()


def test_domains_by_status(database: Storage, central: Central) -> None:
    succeed(central, create(central, 'a.example.com.'))
    create(central, 'b.example.com.')
    failed = create(central, 'c.example.com.')
    central.update_status(Context(all_projects=True), failed, Outcome.ERROR, failed.serial)
    assert database.read(gauges.unsettled, 'default') == {Status.PENDING: 1, Status.ERROR: 1}
    assert database.read(gauges.active, 'default') == 1
    assert database.read(gauges.active, 'another') == 0
    assert database.read(gauges.parked_plans, 'default', NOW) == 0


@pytest.mark.parametrize('request_id', ['req-1', 'ü' * 80, ''])
def test_a_domain_knows_the_request_that_gave_it_its_serial(database: Storage, central: Central,
                                                            request_id: str) -> None:
    who, kept = Context(request_id=request_id, all_projects=True), request_id.replace('ü', '?')[:64]
    domain = create(central, 'asked.example.com.', who=who)

    def known() -> str:
        found = database.read(domains.get, domain.id)
        assert found is not None
        return found.request_id

    assert (domain.request_id, known()) == (kept, kept)
    central.create_recordset(Context(request_id='req-2', all_projects=True), domain.id, {
        'name': 'www.asked.example.com.', 'type': 'A', 'records': ['192.0.2.1']})
    assert known() == 'req-2'
    central.update_domain(Context(request_id='req-3', all_projects=True), domain.id, {
        'description': 'gives a new serial too'})
    assert known() == 'req-3'
    central.update_domain(Context(request_id='req-4', all_projects=True), domain.id, {'ttl': 77})
    assert known() == 'req-4'
    central.delete_domain(Context(request_id='req-5', all_projects=True), domain.id)
    central.delete_domain(Context(request_id='req-6', all_projects=True), domain.id)
    assert known() == 'req-5'
