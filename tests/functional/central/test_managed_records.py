"""Records for resources of other services, on SQLite, MariaDB and PostgreSQL."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta, timezone

import pytest

from designate_pool.central import managed_records
from designate_pool.central.service import Central
from designate_pool.model import Context, Domain, FloatingIp, PageRequest, RecordChange, Status
from designate_pool.settings import CentralSettings
from tests.fixtures.central import NS, WHO, Caller, Clock, at_once, contents, create, refused, succeed

RED, BLUE = (Context(project_id=each) for each in ('red', 'blue'))
OWNER = Context(project_id=CentralSettings().managed_resource_tenant_id)
CHIEF = dataclasses.replace(WHO, may_edit_managed=True)
FIRST = {'region': 'one', 'id': 'f-1', 'address': '198.51.100.10'}
SECOND = {'region': 'one', 'id': 'f-2', 'address': '198.51.100.11'}
ZONE = '100.51.198.in-addr.arpa.'
NOON = datetime(2026, 5, 1, 12, tzinfo=timezone.utc)
NAME = 'web.example.com.'


def instance(central: Central, domain: Domain | None, *records: tuple[str, str], number: int = 1,
             at: datetime | None = None) -> None:
    """Have an instance have these addresses (of IPv4) at these names."""
    central.set_resource_records(
        WHO, {'plugin': 'nova_fixed', 'resource_type': 'instance', 'resource_id': f'i-{number}'},
        None if domain is None else domain.id,
        [{'name': name, 'type': 'A', 'data': address} for name, address in records], at)


def reverse_zone(central: Central) -> Domain:
    domain, = central.find_domains(WHO, PageRequest({'name': ZONE}))
    return domain


class TestFloatingIps:
    @pytest.mark.all_databases
    def test_the_zone_is_created_once_for_the_project_of_the_configuration(self, central: Central) -> None:
        assert at_once(*(lambda each=each: central.set_floating_ip(RED, each, {'ptrdname': 'a.example.com.'})
                         for each in (FIRST, SECOND))) == ['', '']
        assert (reverse_zone(central).project_id, reverse_zone(central).email) == (
            CentralSettings().managed_resource_tenant_id, CentralSettings().managed_resource_email)
        assert [each for each in contents(central, reverse_zone(central)) if ' PTR ' in each] == [
            f'{number}.{ZONE} PTR a.example.com.' for number in (10, 11)]

    @pytest.mark.parametrize('project_id', ['blue', ''])
    def test_a_zone_of_another_project_gets_no_record(self, central: Central, project_id: str) -> None:
        domain = create(central, ZONE, who=Context(project_id=project_id, all_projects=True))
        before = contents(central, domain)
        assert refused(central.set_floating_ip, RED, FIRST, {'ptrdname': 'a.example.com.'}) == 'reverse_zone_in_use'
        assert contents(central, domain) == before and central.find_managed_records(WHO) == []
        central.give_domain(WHO, domain.id, OWNER.project_id)
        assert central.set_floating_ip(RED, FIRST, {'ptrdname': 'a.example.com.'}).ptrdname == 'a.example.com.'

    def test_a_zone_that_there_is_has_the_record(self, central: Central) -> None:
        domain = create(central, ZONE, (f'10.{ZONE}', 'PTR', ['by-hand.example.com.']), who=OWNER)
        shown = central.set_floating_ip(RED, FIRST, {'ptrdname': 'a.example.com.', 'ttl': 60, 'description': 'x'})
        assert shown == FloatingIp('one', 'f-1', '198.51.100.10', 'a.example.com.', 'x', 60, shown.action, 'PENDING')
        assert [each for each in contents(central, domain) if ' PTR ' in each] == [f'10.{ZONE} PTR a.example.com.']
        succeed(central, central.get_domain(WHO, domain.id))
        assert central.find_floating_ips(RED, [FIRST, SECOND]) == [
            dataclasses.replace(shown, action='NONE', status='ACTIVE'), FloatingIp('one', 'f-2', '198.51.100.11')]

    def test_a_secondary_zone_keeps_the_records_of_its_masters(self, central: Central) -> None:
        central.create_domain(OWNER, {'name': ZONE, 'masters': ['192.0.2.1']})
        assert refused(central.set_floating_ip, RED, FIRST, {'ptrdname': 'a.example.com.'}) == 'secondary_zone'

    def test_no_record_is_put_beside_an_alias(self, central: Central) -> None:
        """Servers would refuse the whole zone."""
        alias = f'10.{ZONE}', 'CNAME', [f'10.sub.{ZONE}']  # RFC 2317
        domain = create(central, ZONE, alias, who=OWNER)
        before = contents(central, domain)
        assert refused(central.set_floating_ip, RED, FIRST, {'ptrdname': 'a.example.com.'}) == 'invalid_object'
        assert contents(central, domain) == before and central.find_managed_records(WHO) == []

    def test_the_name_of_a_zone_below_is_left_to_it(self, central: Central) -> None:
        domain = create(central, ZONE, who=OWNER)
        create(central, f'10.{ZONE}', who=OWNER)
        assert refused(central.set_floating_ip, RED, FIRST, {'ptrdname': 'a.example.com.'}) == 'invalid_object'
        assert central.find_managed_records(WHO) == []
        assert central.set_floating_ip(RED, SECOND, {'ptrdname': 'a.example.com.'}).ptrdname == 'a.example.com.'
        assert f'11.{ZONE} PTR a.example.com.' in contents(central, domain)

    def test_the_same_again_changes_nothing(self, central: Central, caller: Caller) -> None:
        central.set_floating_ip(RED, FIRST, {'ptrdname': 'a.example.com.'})
        before, cast = reverse_zone(central), len(caller.cast_domains)
        central.set_floating_ip(RED, FIRST, {'ptrdname': 'A.example.com.'})
        assert reverse_zone(central) == before and len(caller.cast_domains) == cast
        assert len(central.find_managed_records(RED)) == 1

    def test_it_goes_when_it_is_unset_or_the_zone_is_deleted(self, central: Central) -> None:
        for each in (FIRST, SECOND):
            central.set_floating_ip(RED, each, {'ptrdname': 'a.example.com.'})
        central.unset_floating_ip(RED, 'one', 'f-1')
        assert [each.ptrdname for each in central.find_floating_ips(RED, [FIRST, SECOND])] == [None, 'a.example.com.']
        deleted = central.delete_domain(WHO, reverse_zone(central).id)
        assert central.find_floating_ips(RED, [SECOND])[0].ptrdname is None
        assert central.set_floating_ip(RED, SECOND, {'ptrdname': 'b.example.com.'}).ptrdname == 'b.example.com.'
        row, = central.find_managed_records(RED)
        assert row.domain_id != deleted.id


@pytest.mark.parametrize(('address', 'zone'), [
    ('198.51.100.10', ZONE), ('2001:db8:1:2::7', '2.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.')])
def test_the_reverse_zone_of_an_address(address: str, zone: str) -> None:
    assert managed_records.reverse_zone(address) == zone


class TestInstances:
    def test_records_come_and_go_with_the_instance(self, central: Central) -> None:
        domain = create(central)
        for _ in range(2):  # a message that comes twice
            instance(central, domain, (NAME, '192.0.2.1'), ('db.example.com.', '192.0.2.1'))
            assert contents(central, domain) == sorted([
                'db.example.com. A 192.0.2.1', f'{NAME} A 192.0.2.1', *NS])
        serial = central.get_domain(WHO, domain.id).serial
        instance(central, domain, (NAME, '192.0.2.1'), ('db.example.com.', '192.0.2.1'))
        assert central.get_domain(WHO, domain.id).serial == serial
        instance(central, domain, ('new.example.com.', '192.0.2.1'))
        assert contents(central, domain) == sorted(['new.example.com. A 192.0.2.1', *NS])
        for _ in range(2):
            instance(central, domain)
            assert contents(central, domain) == NS
        assert central.find_managed_records(WHO) == []

    def test_the_lock_of_a_zone_that_it_was_in_keeps_it_from_no_other(self, central: Central) -> None:
        former, own = create(central), create(central, 'example.org.')
        instance(central, former, (NAME, '192.0.2.1'))
        central.set_lock(WHO, former.id, 'audit')
        assert refused(instance, central, own, ('web.example.org.', '192.0.2.1')) == 'locked'
        assert 'web.example.org. A 192.0.2.1' in contents(central, own)
        central.set_lock(WHO, former.id, None)
        instance(central, own, ('web.example.org.', '192.0.2.1'))
        assert contents(central, former) == NS

    def test_what_several_have_stays_until_the_last_goes(self, central: Central) -> None:
        domain = create(central, 'example.com.', (NAME, 'A', ['192.0.2.9']))
        recordset, = central.find_recordsets(WHO, domain.id, PageRequest({'name': NAME}))
        instance(central, domain, (NAME, '192.0.2.1'), (NAME, '192.0.2.2'))
        instance(central, domain, (NAME, '192.0.2.2'), number=2)
        assert contents(central, domain) == sorted([*(f'{NAME} A 192.0.2.{each}' for each in (1, 2, 9)), *NS])
        assert central.get_recordset(WHO, domain.id, recordset.id).managed
        instance(central, domain)
        assert contents(central, domain) == sorted([*(f'{NAME} A 192.0.2.{each}' for each in (2, 9)), *NS])
        instance(central, domain, number=2)
        found = central.get_recordset(WHO, domain.id, recordset.id)
        assert ([each.data for each in found.records], found.managed) == (['192.0.2.9'], False)

    def test_users_do_not_change_them(self, central: Central) -> None:
        domain = create(central)
        instance(central, domain, (NAME, '192.0.2.1'), (NAME, '192.0.2.2'))
        found, = central.find_recordsets(WHO, domain.id, PageRequest({'name': NAME}))
        for work in (lambda who: central.update_recordset(who, domain.id, found.id, {'records': ['192.0.2.2']}),
                     lambda who: central.apply_changes(who, domain.id, [RecordChange(NAME, 'A')]),
                     lambda who: central.delete_recordset(who, domain.id, found.id)):
            assert refused(work, WHO) == 'bad_request'
        central.update_recordset(CHIEF, domain.id, found.id, {'records': ['192.0.2.2']})
        assert [each.data for each in central.find_managed_records(WHO)] == ['192.0.2.2']
        central.delete_recordset(CHIEF, domain.id, found.id)
        assert central.find_managed_records(WHO) == [] and contents(central, domain) == NS
        apex, = central.find_recordsets(WHO, domain.id, PageRequest({'type': 'NS'}))
        assert refused(central.delete_recordset, CHIEF, domain.id, apex.id) == 'bad_request'

    def test_one_that_is_changed_by_hand_is_told_as_it_is_then(self, central: Central) -> None:
        domain = create(central)
        instance(central, domain, (NAME, '192.0.2.1'), (NAME, '192.0.2.2'))
        found, = central.find_recordsets(WHO, domain.id, PageRequest({'name': NAME}))
        for values in ({'ttl': 77}, {'records': ['192.0.2.1', '192.0.2.3']}, {'records': ['192.0.2.3']}):
            told = central.update_recordset(CHIEF, domain.id, found.id, values)
            assert told == central.get_recordset(WHO, domain.id, found.id)
        assert not told.managed

    def test_an_event_that_comes_late_does_nothing(self, central: Central, clock: Clock) -> None:
        domain, later = create(central), NOON + timedelta(seconds=1)
        instance(central, domain, at=later)
        instance(central, domain, (NAME, '192.0.2.1'), at=NOON)
        assert contents(central, domain) == NS
        instance(central, domain, (NAME, '192.0.2.1'), at=NOON, number=2)  # another one's
        assert contents(central, domain) == sorted([f'{NAME} A 192.0.2.1', *NS])
        instance(central, domain, (NAME, '192.0.2.2'), at=later)  # at the same moment: as often as it comes
        assert contents(central, domain) == sorted([*(f'{NAME} A 192.0.2.{each}' for each in (1, 2)), *NS])

    def test_the_last_event_is_forgotten_after_a_day(self, central: Central, clock: Clock) -> None:
        domain = create(central)
        instance(central, domain, at=NOON + timedelta(seconds=1))
        clock.now += managed_records.EVENTS_KEPT.total_seconds() + 1
        instance(central, domain, at=NOON, number=2)
        instance(central, domain, (NAME, '192.0.2.1'), at=NOON)
        assert contents(central, domain) == sorted([f'{NAME} A 192.0.2.1', *NS])

    def test_it_moves_with_the_zone_of_the_configuration(self, central: Central) -> None:
        former, present = create(central), create(central, 'example.info.')
        instance(central, former, (NAME, '192.0.2.1'))
        instance(central, present, ('web.example.info.', '192.0.2.1'))
        assert contents(central, former) == NS
        assert 'web.example.info. A 192.0.2.1' in contents(central, present)
        instance(central, None)
        assert central.find_managed_records(WHO) == []
        assert succeed(central, central.get_domain(WHO, present.id)).status is Status.ACTIVE

    def test_a_name_that_cannot_be_is_refused(self, central: Central) -> None:
        domain = create(central, 'example.com.', ('alias.example.com.', 'CNAME', ['example.org.']))
        create(central, 'sub.example.com.')
        for name in ('alias.example.com.', 'web.example.org.', 'a..example.com.', 'web.sub.example.com.'):
            assert refused(instance, central, domain, (name, '192.0.2.1')) == 'invalid_object'
        assert central.find_managed_records(WHO) == []
