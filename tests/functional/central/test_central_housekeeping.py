"""What is removed and what stays, on each database."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from designate_pool.api.services.zone_task_store import ZoneTaskStore
from designate_pool.central.purger import Purger
from designate_pool.central.service import Central
from designate_pool.errors import LostRace
from designate_pool.model import (Action, Context, Outcome, PageRequest, PlanState, ServerStatus, StoredPlan, ZoneShare,
                                  new_id, utcnow)
from designate_pool.settings import CentralSettings
from designate_pool.storage.operations import rrset_ownership, server_statuses
from designate_pool.storage.reporting import purge
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import plans, zone_shares
from tests.fixtures.central import NS, WHO, WWW, Clock, contents, create, succeed

RED, BLUE = Context(project_id='red'), Context(project_id='blue')


class TestHousekeeping:
    def count(self, database: Storage) -> tuple[int, ...]:
        """Domains, recordsets, records."""
        return tuple(database.read(lambda tx: [tx.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                                               for table in (schema.domains, schema.recordsets, schema.records)]))

    def turn(self, database: Storage, clock: Clock) -> None:
        keeper = Purger(database, CentralSettings(deleted_retention=1000, history_days=1))
        while keeper.purge():
            pass

    def test_deleted_records_go_when_they_are_old_enough(self, central: Central, database: Storage,
                                                         clock: Clock) -> None:
        domain = create(central, 'example.com.', WWW, ('a.example.com.', 'A', ['192.0.2.1', '192.0.2.2']))
        (www,) = central.find_recordsets(WHO, domain.id, PageRequest({'name': 'www*'}))
        (other,) = central.find_recordsets(WHO, domain.id, PageRequest({'name': 'a.*'}))
        central.delete_recordset(WHO, domain.id, www.id)
        central.update_recordset(WHO, domain.id, other.id, {'records': ['192.0.2.2']})
        clock.now += 5000
        self.turn(database, clock)
        assert self.count(database) == (1, 4, 6)  # none of it is confirmed
        succeed(central, central.get_domain(WHO, domain.id))
        self.turn(database, clock)
        assert self.count(database) == (1, 4, 6)
        clock.now += 5000
        self.turn(database, clock)
        assert self.count(database) == (1, 3, 3)
        assert contents(central, domain) == [*sorted([*NS, 'a.example.com. A 192.0.2.2'])]

    def test_of_the_tombstones_of_a_name_the_newest_stays(self, central: Central, database: Storage,
                                                          clock: Clock) -> None:
        for _ in range(3):
            domain = create(central, 'example.com.', WWW)
            gone = central.delete_domain(WHO, domain.id)
            central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
        self.turn(database, clock)
        assert self.count(database)[0] == 3
        clock.now += 5000
        self.turn(database, clock)
        assert self.count(database) == (3, 0, 0), 'their history is kept'
        clock.now += 86400
        self.turn(database, clock)
        assert self.count(database) == (1, 0, 0)
        again = create(central)
        assert again.generation == gone.generation + 1

    def test_what_belongs_to_a_domain_goes_with_it(self, central: Central, database: Storage, clock: Clock) -> None:
        ids, owner = [], Context(project_id=CentralSettings().managed_resource_tenant_id)
        for _ in range(2):  # the newest tombstone of a name stays
            domain = create(central, '2.0.192.in-addr.arpa.', who=owner)
            ids.append(domain.id)
            central.set_floating_ip(RED, {'region': 'one', 'id': new_id(), 'address': '192.0.2.7'},
                                    {'ptrdname': 'host.example.com.'})
            ZoneTaskStore(database).store_export(owner, domain)
            request = central.create_transfer_request(owner, domain.id, {})
            central.create_transfer_accept(BLUE, request.id, request.key)
            database.run(plans.put, StoredPlan(new_id(), 'default', domain.name, 'fake:1', PlanState.PARKED,
                                               domain.id, '1' * 32, document='{}'), utcnow())
            database.run(rrset_ownership.note, '1' * 32, domain.id, [f'h{number}\tA' for number in range(1200)], ())
            gone = central.delete_domain(BLUE, domain.id)
            database.run(zone_shares.insert, ZoneShare(new_id(), domain.id, 'blue', 'red', utcnow(), utcnow()), '')
            central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
        clock.now += 90000
        self.turn(database, clock)
        assert [row.id for row in database.read(lambda tx: tx.execute(sa.select(schema.domains.c.id)).all())] == ids[1:]
        for table in (schema.managed_records, schema.zone_tasks, schema.zone_transfer_requests, schema.plans,
                      schema.zone_transfer_accepts, schema.owned_rrsets, schema.zone_shares):
            kept = sa.select(table).where(table.c.domain_id == ids[0])
            assert database.read(lambda tx, kept=kept: tx.execute(kept).all()) == [], table.name

    def test_a_deletion_that_a_server_has_not_confirmed_stays(self, central: Central, database: Storage,
                                                              clock: Clock) -> None:
        domain = create(central, 'example.com.', WWW)
        gone = central.delete_domain(WHO, domain.id)
        row = ServerStatus(new_id(), domain.id, Action.DELETE, gone.serial, version=1)
        database.run(server_statuses.write, [row], utcnow())
        central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
        create(central)
        clock.now += 90000
        before = self.count(database)
        self.turn(database, clock)
        assert self.count(database) == before
        database.run(server_statuses.purge_domains, [domain.id], [row.server_id], utcnow())
        self.turn(database, clock)
        assert self.count(database) == (1, 2, 2)

    def test_a_bite_is_small(self, central: Central, database: Storage, clock: Clock) -> None:
        domain = create(central, 'example.com.', *((f'h{number}.example.com.', 'A', ['192.0.2.1'])
                                                   for number in range(1200)))
        gone = central.delete_domain(WHO, domain.id)
        central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
        clock.now += 5000
        self.turn(database, clock)
        assert self.count(database) == (1, 0, 0)


def test_what_was_interrupted_is_resumed_though_nothing_can_be_purged(
        central: Central, database: Storage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def fails(*arguments: object) -> None:
        raise LostRace(what='this')

    def left() -> None:
        done.append('left')
        keeper.stop()

    monkeypatch.setattr(purge, 'purge', fails)
    monkeypatch.setattr(central.backlog, 'resume_renewals', fails)
    monkeypatch.setattr(central.backlog, 'delete_from_former_pools', left)
    keeper = Purger(database, CentralSettings(deleted_retention=1000), (central.backlog.resume,), interval=0)
    deadline = threading.Timer(10, keeper.stop)
    deadline.start()
    keeper.loop()
    deadline.cancel()
    assert done == ['left']
