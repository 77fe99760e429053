"""Many at the same time, on each database."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central import domain_changes, domain_creator, recordset_changes
from designate_pool.central.recordset_changes import RecordSetRequest, RecordSetResult
from designate_pool.central.rules import pools as pool_rules
from designate_pool.central.rules.journal import Journal
from designate_pool.central.rules.quotas import Allowance, ProjectQuotas
from designate_pool.central.service import Central
from designate_pool.central.validation import requests
from designate_pool.model import (Context, Domain, Outcome, PageRequest, RecordChange, RecordSet, Report, Status,
                                  new_id, utcnow)
from designate_pool.serial import newer
from designate_pool.storage.sql.database import Storage
from testing.processes import wait_until
from tests.fixtures.central import WHO, contents, create, lock_waits, succeed

pytestmark = pytest.mark.all_databases


class TestDoneTwice:
    """A connection that is lost during COMMIT, or a message that comes twice: the work is done again, and finds that it
    was done, also if others have changed the domain since."""

    def test_a_create(self, central: Central, database: Storage) -> None:
        pool, = central.find_pools(WHO)
        wanted = requests.new_domain({'name': 'example.com.', 'email': 'a@example.com', 'pool_name': 'default'})
        arguments = wanted, [requests.recordsets([])], utcnow(), allowance()
        first = database.run(domain_creator.create_domain, pool, WHO, '1' * 32, *arguments)
        assert database.run(domain_creator.create_domain, pool, WHO, '1' * 32, *arguments).id == first.id
        with pytest.raises(errors.DuplicateDomain):
            database.run(domain_creator.create_domain, pool, WHO, '2' * 32, *arguments)

    @pytest.fixture
    def domain(self, central: Central) -> Domain:
        return create(central, 'example.com.', *(
            (f'{name}.example.com.', 'A', ['192.0.2.1', '192.0.2.2']) for name in 'abc'))

    @pytest.fixture(params=[0, 1, 20], ids='{} changes of others'.format)
    def others(self, request: pytest.FixtureRequest, central: Central, domain: Domain) -> Callable[[], None]:
        def change() -> None:
            for number in range(request.param):
                central.apply_changes(WHO, domain.id, [RecordChange('other.example.com.', 'A', (f'192.0.2.{number}',))])

        return change

    @pytest.fixture
    def twice(self, database: Storage, central: Central, others: Callable[[], None]) -> Callable[..., Any]:
        """Does a transaction, then again after others have changed the domain: what is served stays as it is."""
        def run(work: Callable[..., Any], domain: Domain, *arguments: Any) -> Any:
            who = dataclasses.replace(WHO, operation_id=new_id())
            changed, *first = database.run(work, who, domain.id, *arguments)
            assert newer(changed.serial, domain.serial)
            others()
            before = contents(central, domain)
            again, *second = database.run(work, who, domain.id, *arguments)
            assert again == dataclasses.replace(central.get_domain(WHO, domain.id), serial=changed.serial)
            assert contents(central, domain) == before
            return first, second

        return run

    def test_a_change_of_the_domain(self, central: Central, domain: Domain, twice: Callable[..., Any]) -> None:
        first, second = twice(domain_changes.update_domain, domain, {'email': 'b@example.com'}, utcnow(),
                              Journal(10, 10))
        assert first == second == [True]

    def test_a_create_of_a_recordset(self, domain: Domain, twice: Callable[..., Any]) -> None:
        wanted = requests.recordset({'name': 'www.example.com.', 'type': 'A', 'records': ['192.0.2.1']})
        first, second = twice(change, domain, new_id(), wanted)
        assert first == second

    def test_a_change_of_a_recordset(self, central: Central, domain: Domain, twice: Callable[..., Any]) -> None:
        values = requests.recordset_values({'records': ['192.0.2.7']})
        first, second = twice(change, domain, recordset(central, domain, 'a').id, None, values)
        assert first == second and second[1]

    def test_a_deletion_of_a_recordset(self, central: Central, database: Storage, domain: Domain,
                                       twice: Callable[..., Any]) -> None:
        gone = recordset(central, domain, 'a').id
        (first, _), (second, _) = twice(change, domain, gone)
        assert dataclasses.replace(first, updated_at=second.updated_at) == second
        with pytest.raises(errors.RecordSetNotFound):
            database.run(change, dataclasses.replace(WHO, operation_id=new_id()), domain.id, gone)

    @pytest.mark.parametrize('with_serial', [False, True])
    def test_changes_with_deletions(self, central: Central, domain: Domain, twice: Callable[..., Any],
                                    with_serial: bool) -> None:
        wanted = requests.changes([RecordChange('a.example.com.', 'A'),
                                   RecordChange('new.example.com.', 'A', ('192.0.2.9',))])
        first, second = twice(recordset_changes.apply_changes, domain, wanted, utcnow(), allowance(), Journal(10, 10),
                              domain.serial if with_serial else None)
        assert first == second == [True]
        with pytest.raises((errors.RecordSetNotFound, errors.SerialMoved)):
            twice(recordset_changes.apply_changes, domain, wanted, utcnow(), allowance(), Journal(10, 10),
                  domain.serial if with_serial else None)

    def test_a_change_does_not_undo_what_came_after_it(self, central: Central, database: Storage,
                                                       domain: Domain) -> None:
        who = dataclasses.replace(WHO, operation_id=new_id())
        first = requests.changes([RecordChange('a.example.com.', 'A', ('192.0.2.8',))])
        database.run(recordset_changes.apply_changes, who, domain.id, first, utcnow(), allowance(), Journal(10, 10))
        central.apply_changes(WHO, domain.id, [RecordChange('a.example.com.', 'A', ('192.0.2.9',))])
        database.run(recordset_changes.apply_changes, who, domain.id, first, utcnow(), allowance(), Journal(10, 10))
        assert [each.data for each in recordset(central, domain, 'a').records] == ['192.0.2.9']

    def test_a_change_of_a_domain_that_was_deleted_since(self, central: Central, database: Storage,
                                                         domain: Domain) -> None:
        who = dataclasses.replace(WHO, operation_id=new_id())
        wanted = requests.changes([RecordChange('a.example.com.', 'A')])
        changed, _ = database.run(recordset_changes.apply_changes, who, domain.id, wanted, utcnow(), allowance(),
                                  Journal(10, 10))
        going = central.delete_domain(WHO, domain.id)
        again, _ = database.run(recordset_changes.apply_changes, who, domain.id, wanted, utcnow(), allowance(),
                                Journal(10, 10))
        assert again == dataclasses.replace(going, serial=changed.serial)


def change(tx: Any, who: Context, domain_id: str, *what: Any) -> RecordSetResult:
    return recordset_changes.change_recordset(tx, RecordSetRequest(who, domain_id, *what), utcnow(), allowance(),
                                              Journal(10, 10))


def allowance() -> Allowance:
    return Allowance(ProjectQuotas(), utcnow)


def recordset(central: Central, domain: Domain, label: str) -> RecordSet:
    found, = central.find_recordsets(WHO, domain.id, PageRequest({'name': f'{label}.example.com.', 'type': 'A'}))
    return found


class TestTogether:
    def test_eight_threads_create_change_report_and_delete(self, central: Central, database: Storage) -> None:
        shared = create(central, 'shared.example.')
        serials: list[int] = []
        lock = threading.Lock()

        def work(number: int) -> None:
            own = create(central, f'd{number}.example.', (f'www.d{number}.example.', 'A', ['192.0.2.1']))
            last = own.serial
            for step in range(6):
                changed = central.apply_changes(WHO, own.id, [
                    RecordChange(f'www.d{number}.example.', 'A', (f'192.0.2.{step + 2}',))])
                assert newer(changed.serial, last)
                last = changed.serial
                ours = central.apply_changes(WHO, shared.id, [
                    RecordChange(f'h{number}-{step}.shared.example.', 'A', ('192.0.2.1',))])
                with lock:
                    serials.append(ours.serial)
                central.update_statuses(WHO, [
                    Report(each.id, each.action, each.generation, Outcome.SUCCESS, each.serial)
                    for each in (ours, changed)])
            gone = central.delete_domain(WHO, own.id)
            assert newer(gone.serial, last)
            again = create(central, own.name)
            assert newer(again.serial, gone.serial)
            succeed(central, again)

        with ThreadPoolExecutor(8) as threads:
            for done in [threads.submit(work, number) for number in range(8)]:
                done.result()
        assert len(set(serials)) == len(serials) == 48
        end = central.get_domain(WHO, shared.id)
        assert end.serial == max(serials)
        assert succeed(central, end).status is Status.ACTIVE
        assert len(contents(central, shared)) == 50
        assert len(central.find_domains(WHO, PageRequest({'status': 'ACTIVE'}))) == 9

    def test_a_domain_that_waits_for_new_name_servers_gets_these(self, central: Central, database: Storage) -> None:
        pool, = central.find_pools(WHO)
        with ThreadPoolExecutor(1) as threads:

            def change(tx: Any) -> Any:
                pool_rules.update(tx, WHO, pool.id, {'name_servers': ['ns8.example.net.']}, utcnow(), new_id())
                made = threads.submit(create, central, 'example.com.')
                if database.engine.dialect.name != 'sqlite':  # where writers queue in front of the database
                    wait_until(lambda: lock_waits(database), 'the new domain waits for the pool', pause=0.01)
                return made

            domain = database.run(change).result(60)
        (ns,) = central.find_recordsets(WHO, domain.id, PageRequest({'type': 'NS'}))
        assert [record.data for record in ns.records] == ['ns8.example.net.']
