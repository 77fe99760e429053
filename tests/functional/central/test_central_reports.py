"""What the pool managers report and read."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool import errors
from designate_pool.central.service import Central
from designate_pool.model import Action, Outcome, PageRequest, RecordChange, Report, Status, new_id, utcnow
from designate_pool.serial import HALF, SPACE, newer
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains as domain_store
from testing.databases import count_statements
from tests.fixtures.central import WHO, WWW, Clock, create, rows, succeed


class TestReports:
    def test_an_error_and_its_end(self, central: Central, database: Storage) -> None:
        domain = create(central, 'example.com.', WWW)
        central.update_status(WHO, domain, Outcome.ERROR, domain.serial)
        failed = central.get_domain(WHO, domain.id)
        assert (failed.status, failed.action, failed.reported_serial) == (Status.ERROR, Action.CREATE, None)
        assert {row[1:] for row in rows(database, domain)} == {('ADD', 'ERROR')}
        assert succeed(central, domain).status is Status.ACTIVE
        assert {row[1:] for row in rows(database, domain)} == {('NONE', 'ACTIVE')}

    @pytest.mark.all_databases
    def test_records_across_the_wrap_of_serials(self, central: Central, database: Storage, clock: Clock) -> None:
        clock.now = 4294967000.0
        domain = create(central, 'example.com.', WWW)
        top = 4294967294
        database.run(lambda tx: [
            tx.execute(sa.update(table).values({column: top}).where(condition)) for table, column, condition in (
                (schema.domains, 'serial', schema.domains.c.id == domain.id),
                (schema.records, 'serial_number', schema.records.c.domain_id == domain.id))])
        for number in range(3):
            domain = central.apply_changes(WHO, domain.id, [
                RecordChange(f'h{number}.example.com.', 'A', (f'192.0.2.{number + 10}',))])
        assert domain.serial == 1
        central.update_status(WHO, domain, Outcome.SUCCESS, 4294967295)
        assert [row[2] for row in rows(database, domain)] == ['ACTIVE', 'ACTIVE', 'PENDING', 'PENDING', 'ACTIVE']
        central.update_status(WHO, domain, Outcome.ERROR, 0)
        assert [row[2] for row in rows(database, domain)] == ['ACTIVE', 'ACTIVE', 'ERROR', 'PENDING', 'ACTIVE']
        assert succeed(central, domain).status is Status.ACTIVE
        assert {row[1:] for row in rows(database, domain)} == {('NONE', 'ACTIVE')}

    def test_the_same_report_again_writes_nothing(self, central: Central, database: Storage) -> None:
        domain = create(central, 'example.com.', WWW)
        first = succeed(central, domain)
        with count_statements(database) as counter:
            central.update_status(WHO, domain, 'SUCCESS', domain.serial)  # type: ignore[arg-type]
            central.update_status(WHO, domain, Outcome.ERROR, domain.serial)
        assert counter.total() == 2, counter
        assert central.get_domain(WHO, domain.id) == first

    @pytest.mark.all_databases
    def test_many_reports_are_few_statements(self, central: Central, database: Storage) -> None:
        made = [create(central, f'd{number}.example.') for number in range(30)]
        gone = [central.delete_domain(WHO, each.id) for each in made[20:]]
        reports = [Report(each.id, each.action, each.generation, Outcome.SUCCESS, each.serial)
                   for each in [*made[:15], *gone]]
        reports += [Report(each.id, each.action, each.generation, Outcome.ERROR, each.serial) for each in made[15:20]]
        with count_statements(database) as counter:
            central.update_statuses(WHO, [*reports, *reports])
        assert counter.total() <= 6, counter
        assert [len(central.find_domains(WHO, PageRequest({'status': status})))
                for status in ('ACTIVE', 'ERROR', 'PENDING')] == [15, 5, 0]

    def test_domains_that_do_not_exist(self, central: Central, caplog: pytest.LogCaptureFixture) -> None:
        domain = create(central)
        nobody = dataclasses.replace(domain, id=new_id())
        with pytest.raises(errors.DomainNotFound):
            central.update_status(WHO, nobody, Outcome.SUCCESS, nobody.serial)
        central.update_statuses(WHO, [
            Report(each.id, each.action, each.generation, Outcome.SUCCESS, each.serial) for each in (nobody, domain)])
        assert nobody.id in caplog.text
        assert central.get_domain(WHO, domain.id).status is Status.ACTIVE

    def test_a_report_that_is_none(self, central: Central) -> None:
        domain = create(central)
        reports: list[tuple[Any, Any, str]] = [
            ('GREAT', 1, 'status'), (None, 1, 'status'), ('SUCCESS', -1, 'serial_number'),
            ('SUCCESS', None, 'serial_number'), ('SUCCESS', 2 ** 32, 'serial_number'),
            ('SUCCESS', '1', 'serial_number')]
        for status, serial, field in reports:
            with pytest.raises(errors.InvalidField) as caught:
                central.update_status(WHO, domain, status, serial)
            assert caught.value.kwargs['field'] == field


class TestForThePoolManager:
    @pytest.mark.all_databases
    def test_what_it_reads(self, central: Central, database: Storage) -> None:
        made = sorted((create(central, f'd{number}.example.') for number in range(5)), key=lambda each: each.id)
        served = succeed(central, made[0])
        gone = central.delete_domain(WHO, made[1].id)
        later = utcnow() + timedelta(hours=1)
        read = database.read
        assert set(read(domain_store.get_many, [made[0].id, gone.id, 'x' * 32])) == {made[0].id, gone.id}
        assert read(domain_store.get_many, []) == {}
        live = read(domain_store.live_by_name, [each.name for each in made])
        assert set(live) == {each.name for each in made if each.id != gone.id}
        assert live[served.name].pool_name == 'default'
        ids = [each.id for each in made]
        assert [each.id for each in read(domain_store.unsettled, 'default', later, timedelta(0), '', 10)] == ids[1:]
        assert [each.id for each in read(domain_store.unsettled, 'default', later, timedelta(0), ids[2], 1)] == ids[3:4]
        assert read(domain_store.unsettled, 'default', utcnow(), timedelta(hours=1), '', 10) == []
        assert read(domain_store.unsettled, 'other', later, timedelta(0), '', 10) == []
        assert [each.id for each in read(domain_store.page, 'default', '', 10)] == [ids[0], *ids[2:]]
        assert [each.id for each in read(domain_store.page, 'default', ids[2], 1)] == ids[3:4]
        assert read(domain_store.page, 'other', '', 10) == []


class TestSerialsThatWereNeverIssued:
    def test_the_domain_gets_one_above_and_its_journal_begins_anew(self, central: Central) -> None:
        domain = create(central, 'example.com.', WWW)
        succeed(central, domain)
        domain = central.apply_changes(WHO, domain.id, [RecordChange('new.example.com.', 'A', ('192.0.2.9',))])
        assert domain.journal_from is not None
        after = central.raise_serial_above(WHO, domain.id, domain.serial + 1000)
        assert (after.serial, after.status, after.journal_from) == (domain.serial + 1001, Status.PENDING, None)
        assert central.raise_serial_above(WHO, domain.id, domain.serial + 1000) == after
        assert succeed(central, after).status is Status.ACTIVE

    @pytest.mark.all_databases
    def test_the_farthest_is_reached_in_two_steps(self, central: Central) -> None:
        domain = create(central, 'example.com.', WWW)
        farthest = (domain.serial + HALF - 1) % SPACE
        serials = [domain.serial, *(central.raise_serial_above(WHO, domain.id, farthest).serial for _ in range(2))]
        assert newer(serials[1], serials[0]) and newer(serials[2], serials[1]) and serials[2] == (farthest + 1) % SPACE

    def test_one_that_is_going_is_left_alone(self, central: Central) -> None:
        domain = create(central, 'example.com.', WWW)
        going = central.delete_domain(WHO, domain.id)
        assert central.raise_serial_above(WHO, domain.id, going.serial + 5).serial == going.serial
