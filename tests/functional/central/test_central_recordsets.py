"""Recordsets, many changes at once, and zone files, on each database."""

from __future__ import annotations

import dataclasses

import pytest

from designate_pool import errors
from designate_pool.central.service import Central
from designate_pool.model import Action, Outcome, PageRequest, RecordChange, Status
from designate_pool.serial import newer
from designate_pool.storage.sql.database import Storage
from testing.databases import count_statements
from tests.fixtures.central import (NS, WHO, WWW, Caller, Clock, contents, create, export_zone, import_zone, rows,
                                    succeed)


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
        big = self.ZONE + ''.join(f'h{number} A 192.0.2.1\n' for number in range(6000))
        with count_statements(database) as counter:
            domain = import_zone(central, WHO, big)
        assert counter.total() < 80, counter.total()
        assert export_zone(central, WHO, domain.id).count('\n') == 3 + 6 + 6000
