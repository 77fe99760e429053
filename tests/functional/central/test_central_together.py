"""Many at the same time, on each database."""

from __future__ import annotations

import dataclasses
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from designate_pool import errors
from designate_pool.central import transactions
from designate_pool.central.rules import pools as pool_rules
from designate_pool.central.rules.journal import Journal
from designate_pool.central.rules.quotas import Allowance, ProjectQuotas
from designate_pool.central.service import Central
from designate_pool.central.validation import requests
from designate_pool.model import Context, Domain, Outcome, RecordChange, Report, Status, new_id, utcnow
from designate_pool.serial import newer
from designate_pool.storage.sql.database import Storage
from tests.fixtures.central import WHO, contents, create, succeed


class TestDoneTwice:
    """A connection that is lost during COMMIT: the work is done again, and finds that it was done."""

    def test_a_create(self, central: Central, database: Storage) -> None:
        wanted = requests.new_domain({'name': 'example.com.', 'email': 'a@example.com', 'pool_name': 'default'})
        arguments = WHO, new_id(), wanted, [requests.recordsets([])], utcnow(), Allowance(ProjectQuotas(),
                                                                                          time.monotonic)
        first = database.run(transactions.create_domain, *arguments)
        assert database.run(transactions.create_domain, *arguments).id == first.id
        with pytest.raises(errors.DuplicateDomain):
            database.run(transactions.create_domain, WHO, new_id(), *arguments[2:])

    def test_a_create_of_a_recordset(self, central: Central, database: Storage) -> None:
        domain = create(central)
        wanted = requests.recordset({'name': 'www.example.com.', 'type': 'A', 'records': ['192.0.2.1']})
        arguments = WHO, domain.id, new_id(), wanted, utcnow(), Allowance(ProjectQuotas(), time.monotonic), Journal(10)
        changed, made = database.run(transactions.create_recordset, *arguments)
        again, same = database.run(transactions.create_recordset, *arguments)
        assert (again.serial, same) == (changed.serial, made)

    def test_deletions(self, central: Central, database: Storage) -> None:
        domain = create(central, 'example.com.', *(
            (f'{name}.example.com.', 'A', ['192.0.2.1', '192.0.2.2']) for name in 'abc'))
        sets = {each.name[0]: each for each in central.find_recordsets(WHO, domain.id, {'type': 'A'})}
        who, other = (dataclasses.replace(WHO, request_id=each) for each in ('req-1', 'req-2'))
        arguments = domain.id, sets['a'].id, utcnow(), Journal(10)
        changed, gone = database.run(transactions.delete_recordset, who, *arguments)
        again, same = database.run(transactions.delete_recordset, who, *arguments)
        assert (again.serial, same) == (changed.serial, dataclasses.replace(gone, updated_at=same.updated_at))
        with pytest.raises(errors.RecordSetNotFound):
            database.run(transactions.delete_recordset, other, *arguments)
        with pytest.raises(errors.RecordSetNotFound):
            database.run(transactions.delete_recordset, who, domain.id, new_id(), *arguments[2:])

    @pytest.mark.parametrize('with_serial', [False, True])
    def test_changes_with_deletions(self, central: Central, database: Storage, with_serial: bool) -> None:
        domain = create(central, 'example.com.', *((f'{name}.example.com.', 'A', ['192.0.2.1']) for name in 'abc'))
        who, other = (dataclasses.replace(WHO, request_id=each) for each in ('req-1', 'req-2'))
        wanted = requests.changes([RecordChange('a.example.com.', 'A'),
                                   RecordChange('new.example.com.', 'A', ('192.0.2.9',))])

        def apply(who: Context, wanted: list[requests.WantedRecordSet]) -> Domain:
            found, is_changed = database.run(
                transactions.apply, who, domain.id, wanted, utcnow(), Allowance(ProjectQuotas(), time.monotonic),
                Journal(10), domain.serial if with_serial else None)
            assert is_changed
            return found

        assert apply(who, wanted).serial == apply(who, wanted).serial
        with pytest.raises((errors.RecordSetNotFound, errors.SerialMoved)):
            apply(other, wanted)
        # Another change with the same id is none that was made already.
        with pytest.raises((errors.RecordSetNotFound, errors.SerialMoved)):
            apply(who, requests.changes([RecordChange('a.example.com.', 'A'), RecordChange('b.example.com.', 'A')]))
        assert [each.name for each in central.find_recordsets(WHO, domain.id, {'type': 'A'})] == [
            'b.example.com.', 'c.example.com.', 'new.example.com.']


class TestTogether:
    def test_of_many_creators_of_one_name_one_wins(self, central: Central) -> None:
        def attempt(_: int) -> str:
            try:
                return create(central).id
            except errors.DuplicateDomain:
                return ''

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(attempt, range(16)))
        assert len([each for each in found if each]) == 1

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
        assert len(central.find_domains(WHO, {'status': 'ACTIVE'})) == 9

    def test_new_name_servers_while_domains_are_made(self, central: Central,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pool_rules, 'PAGE', 3)
        pool_id = create(central, 'first.example.').pool_id
        last = ['ns7.example.net.']

        def make(number: int) -> None:
            for step in range(6):
                create(central, f'd{number}-{step}.example.')

        with ThreadPoolExecutor(5) as threads:
            made = [threads.submit(make, number) for number in range(4)]
            for servers in (['ns8.example.net.'], ['ns9.example.net.', 'ns1.example.net.'], last):
                threads.submit(central.update_pool, WHO, {'id': pool_id, 'name_servers': servers}).result()
            for each in made:
                each.result()
        for domain in central.find_domains(WHO):
            (ns,) = central.find_recordsets(WHO, domain.id, {'type': 'NS'})
            assert [record.data for record in ns.records] == last, domain.name
