"""Domains, recordsets, many changes at once, and zone files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central.service import Central
from designate_pool.model import Action, Outcome, PageRequest, RecordChange, Status
from designate_pool.serial import newer
from designate_pool.storage.sql.database import Storage
from testing.databases import count_statements
from tests.fixtures.central import (NS, WHO, WWW, Caller, Clock, contents, create, export_zone, import_zone, rows,
                                    succeed)


class TestDomains:
    def test_a_first_create(self, central: Central, caller: Caller, clock: Clock) -> None:
        domain = create(central, 'Example.COM.', WWW)
        assert (domain.name, domain.action, domain.status) == ('example.com.', Action.CREATE, Status.PENDING)
        assert (domain.serial, domain.generation, domain.pool_name) == (int(clock.now), 1, 'default')
        assert caller.cast_domains == [('create_domain', domain)]
        assert dataclasses.replace(central.get_domain(WHO, domain.id), created_at=None, updated_at=None) == (
            dataclasses.replace(domain, created_at=None, updated_at=None))
        assert contents(central, domain) == [*NS, 'www.example.com. A 192.0.2.1', 'www.example.com. A 192.0.2.2']
        (soa,) = central.find_recordsets(WHO, domain.id, PageRequest({'type': 'soa'}))
        assert soa.records[0].data == (
            f'ns1.example.net. hostmaster.example.com. {domain.serial} 3600 600 86400 3600')

    @pytest.mark.all_databases
    def test_a_create_is_few_statements(self, central: Central, database: Storage) -> None:
        create(central, 'other.example.com.')  # the first that uses a lock makes it
        with count_statements(database) as counter:
            create(central, 'example.com.', WWW, ('a.example.com.', 'TXT', ['"x"']))
        assert counter.total() == {'sqlite': 8, 'mysql': 10, 'postgresql': 11}[database.engine.dialect.name], counter

    def test_a_second_create_of_the_same_is_refused(self, central: Central, caller: Caller) -> None:
        create(central)
        with pytest.raises(errors.DuplicateDomain):
            create(central, 'EXAMPLE.com.')
        assert len(caller.cast_domains) == 1

    def test_a_create_that_fails_leaves_nothing(self, central: Central) -> None:
        with pytest.raises(errors.InvalidField) as caught:
            create(central, 'example.com.', WWW, ('www.example.com.', 'CNAME', ['a.example.com.']))
        assert caught.value.kwargs['field'] in ('recordsets[0].type', 'recordsets[1].type')
        assert central.find_domains(WHO) == []

    def test_a_pool_without_name_servers(self, central: Central) -> None:
        pool = central.create_pool(WHO, {'name': 'bare'})
        with pytest.raises(errors.Refused, match='has no name servers'):
            central.create_domain(WHO, {'name': 'example.com.', 'email': 'a@example.com', 'pool_id': pool.id})

    def test_an_update_has_a_new_serial(self, central: Central, caller: Caller, clock: Clock) -> None:
        domain = succeed(central, create(central, 'example.com.', WWW))
        clock.now += 100
        changed = central.update_domain(WHO, domain.id, {'email': 'new@example.com'})
        assert (changed.action, changed.status, changed.serial) == (Action.UPDATE, Status.PENDING, int(clock.now))
        assert caller.cast_domains[-1] == ('update_domain', changed)
        assert {record.status for each in central.find_recordsets(WHO, domain.id) if each.type != 'SOA'
                for record in each.records} == {Status.ACTIVE}

    def test_a_new_ttl_is_news_for_the_records_that_inherit_it(self, central: Central, database: Storage) -> None:
        domain = create(central, 'example.com.', WWW)
        central.create_recordset(WHO, domain.id, {'name': 'a.example.com.', 'type': 'A', 'records': ['192.0.2.9'],
                                                  'ttl': 60})
        domain = succeed(central, central.get_domain(WHO, domain.id))
        central.update_domain(WHO, domain.id, {'ttl': 7})
        assert rows(database, domain) == [('192.0.2.1', 'UPDATE', 'PENDING'), ('192.0.2.2', 'UPDATE', 'PENDING'),
                                          ('192.0.2.9', 'NONE', 'ACTIVE')]

    def test_a_change_that_changes_nothing(self, central: Central, caller: Caller) -> None:
        domain = create(central)
        for values in ({}, {'ttl': 3600}, {'email': 'hostmaster@example.com', 'description': None}):
            assert central.update_domain(WHO, domain.id, values).serial == domain.serial
        assert len(caller.cast_domains) == 1

    @pytest.mark.parametrize('values', [{'description': 'Ours – all of it'}, {'attributes': '{"tier": "göld"}'}],
                             ids=['description', 'attributes'])
    def test_every_change_gets_a_serial(self, central: Central, caller: Caller, values: dict[str, str]) -> None:
        domain = create(central)
        changed = central.update_domain(WHO, domain.id, values)
        assert newer(changed.serial, domain.serial) and changed.version == domain.version + 1
        found = central.get_domain(WHO, domain.id)
        assert {name: getattr(found, name) for name in values} == values
        assert central.update_domain(WHO, domain.id, values) == found
        assert [kind for kind, _ in caller.cast_domains] == ['create_domain', 'create_domain']

    def test_a_deletion(self, central: Central, caller: Caller) -> None:
        domain = succeed(central, create(central, 'example.com.', WWW))
        gone = central.delete_domain(WHO, domain.id)
        assert (gone.action, gone.status, gone.generation) == (Action.DELETE, Status.PENDING, 2)
        assert newer(gone.serial, domain.serial)
        assert caller.cast_domains[-1] == ('delete_domain', gone)
        assert central.get_domain(WHO, domain.id).action is Action.DELETE
        assert [each.id for each in central.find_domains(WHO)] == [domain.id]
        central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
        with pytest.raises(errors.DomainNotFound):
            central.get_domain(WHO, domain.id)
        with pytest.raises(errors.DomainNotFound):
            central.delete_domain(WHO, domain.id)
        assert central.find_domains(WHO) == []

    def test_what_is_being_deleted_is_not_changed(self, central: Central) -> None:
        domain = create(central, 'example.com.', WWW)
        (www,) = central.find_recordsets(WHO, domain.id, PageRequest({'type': 'A'}))
        central.delete_domain(WHO, domain.id)
        changes: list[Callable[[], Any]] = [
            lambda: central.update_domain(WHO, domain.id, {'ttl': 1}),
            lambda: central.apply_changes(WHO, domain.id, [RecordChange('a.example.com.', 'A', ('192.0.2.1',))]),
            lambda: central.delete_recordset(WHO, domain.id, www.id),
            lambda: central.update_recordset(WHO, domain.id, www.id, {'ttl': 1}),
        ]
        for change in changes:
            with pytest.raises(errors.DomainBeingDeleted):
                change()

    def test_delete_then_create_of_the_same_name(self, central: Central) -> None:
        first = create(central)
        gone = central.delete_domain(WHO, first.id)
        second = create(central)
        assert (second.generation, second.serial) == (3, gone.serial + 1)
        for late in (first, gone):
            central.update_status(WHO, late, Outcome.SUCCESS, late.serial)
        assert central.get_domain(WHO, second.id).status is Status.PENDING
        again = central.delete_domain(WHO, second.id)
        third = create(central)
        assert (third.generation, third.serial) == (5, again.serial + 1)


class TestFinding:
    def test_wildcards_and_nothing_else_is_special(self, central: Central) -> None:
        for name in ('a_b.example.', 'axb.example.', 'a|b.example.', r'a\%b.example.'):
            create(central, name)

        def found(pattern: str) -> list[str]:
            return [each.name for each in central.find_domains(WHO, PageRequest({'name': pattern}))]

        assert found('A_B.*') == ['a_b.example.']
        assert found('a|*') == ['a|b.example.']
        assert len(found('a*b.example.')) == 4
        assert found('%') == []
        assert found('axb.example.') == ['axb.example.']

    NOT_TO_BE_ASKED: list[tuple[dict[str, Any], str]] = [
        ({'criterion': {'colour': 'red'}}, 'colour'), ({'criterion': {'name': 7}}, 'name'),
        ({'sort_key': 'colour'}, 'sort_key'),
        ({'sort_dir': 'up'}, 'sort_dir'), ({'limit': 0}, 'limit'), ({'limit': 'x'}, 'limit'),
        ({'limit': 10 ** 9}, 'limit'), ({'marker': '0' * 32}, 'marker'), ({'marker': 7}, 'marker'),
        ({'marker': 'a\0'}, 'marker')]

    def test_what_cannot_be_asked(self, central: Central) -> None:
        domain = create(central)
        for ask in (central.find_domains, lambda who, page: central.find_recordsets(who, domain.id, page)):
            for arguments, field in self.NOT_TO_BE_ASKED:
                with pytest.raises(errors.InvalidField) as caught:
                    ask(WHO, PageRequest(**arguments))
                assert caught.value.kwargs['field'] == field


class TestRecordSets:
    def test_create_change_delete(self, central: Central, database: Storage, caller: Caller) -> None:
        domain = succeed(central, create(central))
        made = central.create_recordset(WHO, domain.id, {'name': 'www.example.com.', 'type': 'a', 'ttl': 60,
                                                         'records': ['192.0.2.2', '192.0.2.1']})
        assert (made.type, made.action, made.status) == ('A', Action.CREATE, Status.PENDING)
        assert [record.data for record in made.records] == ['192.0.2.1', '192.0.2.2']
        assert central.get_recordset(WHO, domain.id, made.id) == made
        succeed(central, central.get_domain(WHO, domain.id))
        changed = central.update_recordset(WHO, domain.id, made.id, {'records': ['192.0.2.1', '192.0.2.3']})
        assert (changed.status, changed.version, changed.ttl) == (Status.PENDING, 2, 60)
        assert rows(database, domain) == [('192.0.2.1', 'NONE', 'ACTIVE'), ('192.0.2.2', 'DELETE', 'PENDING'),
                                          ('192.0.2.3', 'ADD', 'PENDING')]
        succeed(central, central.get_domain(WHO, domain.id))
        assert rows(database, domain) == [('192.0.2.1', 'NONE', 'ACTIVE'), ('192.0.2.2', 'NONE', 'DELETED'),
                                          ('192.0.2.3', 'NONE', 'ACTIVE')]
        gone = central.delete_recordset(WHO, domain.id, made.id)
        assert (gone.action, gone.status) == (Action.DELETE, Status.PENDING)
        with pytest.raises(errors.RecordSetNotFound):
            central.get_recordset(WHO, domain.id, made.id)
        assert contents(central, domain) == NS
        succeed(central, central.get_domain(WHO, domain.id))
        assert {status for _, _, status in rows(database, domain)} == {'DELETED'}
        assert [method for method, _ in caller.cast_domains] == ['create_domain'] + ['update_domain'] * 3

    @pytest.mark.parametrize('records', [['192.0.2.2'], ['192.0.2.1', '192.0.2.2'], ['192.0.2.2', '192.0.2.3']])
    def test_one_whose_records_are_replaced_is_updated(self, central: Central, records: list[str]) -> None:
        domain = create(central)
        made = central.create_recordset(WHO, domain.id, {'name': 'www.example.com.', 'type': 'A',
                                                         'records': ['192.0.2.1', '192.0.2.4']})
        succeed(central, central.get_domain(WHO, domain.id))
        changed = central.update_recordset(WHO, domain.id, made.id, {'records': records})
        assert (changed.action, changed.status) == (Action.UPDATE, Status.PENDING)

    def test_what_is_answered_is_what_is_stored(self, central: Central) -> None:
        domain = succeed(central, create(central))
        changed = made = central.create_recordset(WHO, domain.id, {
            'name': 'www.example.com.', 'type': 'A', 'records': ['192.0.2.2', '192.0.2.1'], 'description': 'first'})
        assert central.get_recordset(WHO, domain.id, made.id) == made
        for values in ({'records': ['192.0.2.3', '192.0.2.1']}, {'records': ['192.0.2.1']}, {'ttl': 77},
                       {'ttl': 78, 'records': ['192.0.2.4', '192.0.2.1']}, {'description': 'last'}, {'ttl': None},
                       {'ttl': domain.ttl}, {}):
            for is_served in (False, True):
                if is_served:
                    succeed(central, central.get_domain(WHO, domain.id))
                    values = {'ttl': 9, **values}
                changed = central.update_recordset(WHO, domain.id, made.id, values)
                assert central.get_recordset(WHO, domain.id, made.id) == changed, (values, is_served)
        assert changed.version > 10

    def test_a_change_that_changes_nothing(self, central: Central, caller: Caller) -> None:
        domain = create(central, 'example.com.', WWW)
        (www,) = central.find_recordsets(WHO, domain.id, PageRequest({'type': 'A'}))
        same = central.update_recordset(WHO, domain.id, www.id, {'records': ['192.0.2.2', '192.0.2.1'], 'ttl': None})
        assert same == www
        assert central.get_domain(WHO, domain.id).serial == domain.serial
        assert len(caller.cast_domains) == 1

    def test_deleted_and_made_again_before_it_was_confirmed(self, central: Central, database: Storage) -> None:
        domain = succeed(central, create(central, 'example.com.', WWW))
        (www,) = central.find_recordsets(WHO, domain.id, PageRequest({'type': 'A'}))
        central.delete_recordset(WHO, domain.id, www.id)
        between = central.get_domain(WHO, domain.id)
        again = central.create_recordset(WHO, domain.id, {'name': WWW[0], 'type': 'A', 'records': ['192.0.2.1']})
        central.update_recordset(WHO, domain.id, again.id, {'records': ['192.0.2.9']})
        central.update_recordset(WHO, domain.id, again.id, {'records': ['192.0.2.1']})
        last = central.get_domain(WHO, domain.id)
        assert contents(central, domain) == [*NS, 'www.example.com. A 192.0.2.1']
        central.update_status(WHO, between, Outcome.SUCCESS, between.serial)
        assert ('192.0.2.1', 'ADD', 'PENDING') in rows(database, domain)
        assert central.get_domain(WHO, domain.id).status is Status.PENDING
        succeed(central, last)
        assert contents(central, domain) == [*NS, 'www.example.com. A 192.0.2.1']
        assert [row for row in rows(database, domain) if row[2] == 'ACTIVE'] == [('192.0.2.1', 'NONE', 'ACTIVE')]
        assert {row[2] for row in rows(database, domain)} == {'ACTIVE', 'DELETED'}

    @pytest.mark.all_databases
    def test_many_changes_have_one_serial_and_one_cast(self, central: Central, database: Storage,
                                                       caller: Caller) -> None:
        domain = succeed(central, create(central, 'example.com.', WWW, ('old.example.com.', 'TXT', ['"x"'])))
        changes = [RecordChange(f'h{number}.example.com.', 'A', (f'192.0.2.{number}',)) for number in range(100)]
        with count_statements(database) as counter:
            changed = central.apply_changes(WHO, domain.id, [
                *changes, RecordChange('old.example.com.', 'TXT'), RecordChange('www.example.com.', 'A'),
                RecordChange('www.example.com.', 'CNAME', ('h1.example.com.',), ttl=60)])
        assert counter.total() <= 10, counter
        assert changed.serial == domain.serial + 1
        assert len(caller.cast_domains) == 2
        found = contents(central, domain)
        assert len(found) == 103
        assert 'www.example.com. CNAME h1.example.com.' in found
        assert central.apply_changes(WHO, domain.id, changes).serial == changed.serial

    def test_changes_are_made_whole_or_not_at_all(self, central: Central) -> None:
        domain = create(central, 'example.com.', WWW)
        for bad in (RecordChange('www.example.com.', 'CNAME', ('a.example.com.',)),
                    RecordChange('no.example.com.', 'A'),
                    RecordChange('example.org.', 'A', ('192.0.2.1',))):
            with pytest.raises((errors.InvalidField, errors.RecordSetNotFound)):
                central.apply_changes(WHO, domain.id, [RecordChange('new.example.com.', 'A', ('192.0.2.1',)), bad])
        assert central.get_domain(WHO, domain.id).serial == domain.serial
        assert not any('new' in line for line in contents(central, domain))


class TestZoneFiles:
    ZONE = ('$ORIGIN example.com.\n$TTL 300\n@ SOA old.example. h 4000000000 7200 900 1209600 60\n@ NS old.example.\n'
            'www 60 A 192.0.2.1\nwww 60 A 192.0.2.2\n\\@x TXT "a;b" "\\"q\\""\n* CNAME www\n')

    def test_round_trip(self, central: Central, caller: Caller) -> None:
        domain = import_zone(central, WHO, self.ZONE)
        assert (domain.name, domain.ttl, domain.minimum, domain.email) == ('example.com.', 300, 60, 'h@example.com')
        assert caller.cast_domains == [('create_domain', domain)]
        text = export_zone(central, WHO, domain.id)
        assert 'old.example' not in text
        gone = central.delete_domain(WHO, domain.id)
        again = import_zone(central, WHO, text)
        assert newer(again.serial, gone.serial)
        assert export_zone(central, WHO, again.id) == text.replace(str(domain.serial), str(again.serial))
        assert contents(central, again) == contents(central, dataclasses.replace(domain, id=again.id))
        assert len(contents(central, again)) == 6

    def test_the_files_serial_is_passed(self, central: Central, clock: Clock) -> None:
        ahead = int(clock.now) + 5000
        domain = import_zone(central, WHO, self.ZONE.replace('4000000000', str(ahead)))
        assert domain.serial == ahead + 1

    @pytest.mark.parametrize(('line', 'words'), [
        ('www 60 A x', 'line 9'), ('*.x A 192.0.2.1\n*.x CNAME www', 'line'), ('a.example.org. A 192.0.2.1', 'line 9')])
    def test_all_or_nothing(self, central: Central, line: str, words: str) -> None:
        with pytest.raises(errors.InvalidField) as caught:
            import_zone(central, WHO, f'{self.ZONE}{line}\n')
        assert words in caught.value.kwargs['field']
        assert central.find_domains(WHO) == []

    @pytest.mark.all_databases
    def test_a_big_zone_is_few_statements(self, central: Central, database: Storage) -> None:
        big = self.ZONE + ''.join(f'h{number} A 192.0.2.1\n' for number in range(2500))
        with count_statements(database) as counter:
            domain = import_zone(central, WHO, big)
        assert counter.total() < 80, counter.total()
        assert export_zone(central, WHO, domain.id).count('\n') == 3 + 6 + 2500
