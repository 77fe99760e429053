"""Secondary domains in Central, on SQLite, MariaDB and PostgreSQL: claims, transfers, and failures."""

from __future__ import annotations

import dataclasses

import pytest

from designate_pool.central.service import Central
from designate_pool.errors import ContentsNotKept, NotFound, OverQuota, TransferRejected
from designate_pool.model import (ChangeKind, Context, Domain, MasterRecord, Outcome, RefreshTask, Status,
                                  ZoneTransferIn, new_id)
from designate_pool.storage.reporting import dashboard
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains, secondary_zones, versions
from tests.fixtures.central import WHO, Caller, Clock, refused, succeed

RED, BLUE = (Context(project_id=each) for each in ('red', 'blue'))
NAME = 'example.com.'
MASTER = '192.0.2.1:53'
NS: MasterRecord = (NAME, 'NS', 300, 'ns1.example.net.')
WWW: MasterRecord = (f'www.{NAME}', 'A', 60, '192.0.2.7')
SOA = 'ns1.example.net. host.example.net. {} 3600 600 86400 300'


def whole(serial: int, *records: MasterRecord) -> ZoneTransferIn:
    return ZoneTransferIn(serial, SOA.format(serial), 900, records or (NS, WWW))


def difference(start: int, serial: int, added: tuple[MasterRecord, ...] = (),
               gone: tuple[MasterRecord, ...] = ()) -> ZoneTransferIn:
    return dataclasses.replace(whole(serial), added=added, gone=gone, from_serial=start)


def claim(central: Central) -> RefreshTask:
    found, = central.claim_refreshes(WHO, 'default', 60, 10)
    return found


def store(central: Central, transfer: ZoneTransferIn) -> None:
    task = claim(central)
    central.store_transfer(WHO, task.domain_id, task.claim, MASTER, transfer)


@pytest.fixture
def domain(central: Central) -> Domain:
    return central.create_domain(RED, {'name': NAME, 'masters': ['192.0.2.1', '2001:db8::1']})


@pytest.fixture
def transferred(central: Central, domain: Domain) -> Domain:
    store(central, whole(7))
    return central.get_domain(WHO, domain.id)


def served(database: Storage, domain: Domain) -> list[tuple[str, str, str]] | None:
    found = database.read(versions.permitted_texts, domain.id)
    return found and sorted((name, rtype, text) for name, rtype, _, text in found[1])


def renew(central: Central, clock: Clock, domain: Domain, seconds: float = 0) -> None:
    clock.now += seconds
    central.refresh_domain(WHO, domain.id)


def test_nothing_is_served_before_the_first_transfer(central: Central, caller: Caller, database: Storage,
                                                     domain: Domain) -> None:
    assert (domain.masters, domain.status, domain.awaits_transfer) == (
        '192.0.2.1:53,[2001:db8::1]:53', Status.PENDING, True)
    assert caller.cast_domains == [] and served(database, domain) is None
    assert central.find_recordsets(RED, domain.id) == []
    with pytest.raises(NotFound, match='There is no content of example.com. now: its masters were not reached'):
        central.check_export(RED, domain.id)
    store(central, whole(7))
    assert central.check_export(RED, domain.id).serial == 7
    assert served(database, domain) == [(NAME, 'NS', 'ns1.example.net.'), (f'www.{NAME}', 'A', '192.0.2.7')]
    assert [(method, each.serial) for method, each in caller.cast_domains] == [('create_domain', 7)]
    soa, = (each for each in central.find_recordsets(RED, domain.id) if each.type == 'SOA')
    assert soa.records[0].data == SOA.format(7)
    succeed(central, central.get_domain(WHO, domain.id))
    assert central.get_domain(RED, domain.id).status is Status.ACTIVE


def test_zones_of_its_name_are_not_explained_before_the_first_transfer_if_one_was_deleted(
        central: Central, database: Storage) -> None:
    first = central.create_domain(RED, {'name': NAME, 'email': 'host@example.com'})
    assert explained(database) == {NAME}
    gone = central.delete_domain(RED, first.id)
    central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
    assert explained(database) == set() and newest(database) == first.id
    second = central.create_domain(RED, {'name': NAME, 'masters': ['192.0.2.1']})
    central.create_domain(RED, {'name': 'example.info.', 'masters': ['192.0.2.1']})
    assert explained(database) == {'example.info.'} and newest(database) == first.id
    tasks = {each.domain_id: each for each in central.claim_refreshes(WHO, 'default', 60, 10)}
    central.store_transfer(WHO, second.id, tasks[second.id].claim, MASTER, whole(7))
    assert explained(database) == {NAME, 'example.info.'} and newest(database) == second.id


def explained(database: Storage) -> set[str]:
    """Names of zones on servers that the domains explain."""
    return database.read(domains.explaining_zones, [NAME, 'example.info.', 'other.example.'])


def newest(database: Storage) -> str | None:
    found = database.read(domains.newest, NAME, 'default')
    return found and found.id


@pytest.mark.all_databases
def test_one_claims_what_is_due(central: Central, clock: Clock, domain: Domain) -> None:
    first = claim(central)
    assert first.serial is None and first.masters == ('192.0.2.1:53', '[2001:db8::1]:53')
    assert central.claim_refreshes(WHO, 'default', 60, 10) == []
    clock.now += 61
    second = claim(central)
    central.store_transfer(WHO, domain.id, first.claim, MASTER, whole(7))
    assert central.get_domain(WHO, domain.id).transferred_at is None  # the claim was lost
    central.store_transfer(WHO, domain.id, second.claim, MASTER, whole(7))
    assert central.get_domain(WHO, domain.id).serial == 7
    assert central.claim_refreshes(WHO, 'default', 60, 10) == []
    clock.now += 3601
    assert claim(central).serial == 7


@pytest.mark.all_databases
@pytest.mark.parametrize(('but_projects', 'but_masters', 'claimed'), [
    (['red'], [], 'blue'), (['blue'], [], 'red'), (['red', 'blue'], [], ''), ([], ['192.0.2.1'], 'blue'),
    ([], ['2001:db8::1'], 'red'), ([], ['192.0.2.11', '192.0.2.2'], 'red blue')])
def test_projects_and_masters_that_have_places_enough(central: Central, domain: Domain, but_projects: list[str],
                                                      but_masters: list[str], claimed: str) -> None:
    central.create_domain(BLUE, {'name': 'blue.example.', 'masters': ['[2001:db8::1]:853', '192.0.2.1']})
    tasks = central.claim_refreshes(WHO, 'default', 60, 10, but_projects, but_masters)
    assert {task.project_id for task in tasks} == set(claimed.split())


def test_what_is_asked_for_during_a_refresh_is_done_after_it(central: Central, domain: Domain) -> None:
    task = claim(central)
    central.refresh_domain(RED, domain.id)
    assert central.claim_refreshes(WHO, 'default', 60, 10) == []
    central.store_transfer(WHO, domain.id, task.claim, MASTER, whole(7))
    assert claim(central).serial == 7


def test_it_does_not_become_a_primary_zone(central: Central, domain: Domain) -> None:
    """It has no name servers yet: updates of those of the pool would end in an error."""
    for values in ({'masters': []}, {'masters': [], 'description': 'text'}):
        assert refused(central.update_domain, RED, domain.id, values) == 'invalid_object'
        assert central.get_domain(RED, domain.id) == domain
    pool, = central.find_pools(WHO)
    central.update_pool(WHO, {'id': pool.id, 'name_servers': ['ns3.example.net.']})


def test_a_change_that_comes_twice_is_made_once(central: Central, clock: Clock, transferred: Domain) -> None:
    """It neither takes back what came between, nor a newer serial."""
    first, second = (dataclasses.replace(RED, operation_id=new_id()) for _ in range(2))
    central.update_domain(first, transferred.id, {'description': 'first'})
    renew(central, clock, transferred)
    store(central, whole(8))
    central.update_domain(second, transferred.id, {'description': 'second'})
    assert central.update_domain(first, transferred.id, {'description': 'first'}).serial == 7
    found = central.get_domain(RED, transferred.id)
    assert (found.description, found.serial) == ('second', 8)


def test_the_first_transfer_is_no_difference(central: Central, clock: Clock, database: Storage,
                                             transferred: Domain) -> None:
    rows = database.read(versions.find, transferred.id)
    assert [row.kind for row in rows] == [ChangeKind.REFRESH, ChangeKind.CREATE]
    assert rows[0].added > 0 and central.get_domain(WHO, transferred.id).history_records == 0
    renew(central, clock, transferred)
    store(central, difference(7, 8, added=((f'new.{NAME}', 'A', 300, '192.0.2.8'),)))
    assert len(database.read(lambda tx: list(versions.rows_at(tx, transferred.id, 7)[1]))) == rows[0].added
    with pytest.raises(ContentsNotKept):
        database.read(versions.rows_at, transferred.id, rows[1].serial)


def test_a_difference(central: Central, clock: Clock, database: Storage, transferred: Domain) -> None:
    """It is stored, and served as a difference."""
    renew(central, clock, transferred)
    changed = (f'www.{NAME}', 'A', 120, '192.0.2.7'), (f'api.{NAME}', 'A', 120, '192.0.2.8')
    store(central, difference(7, 9, changed, (WWW,)))
    assert served(database, transferred) == [(f'api.{NAME}', 'A', '192.0.2.8'), (NAME, 'NS', 'ns1.example.net.'),
                                             (f'www.{NAME}', 'A', '192.0.2.7')]
    span = versions.Span(transferred.id, 7, 9)
    step, = (database.read(versions.steps, [span], 100) or {})[span]
    assert sorted((name, ttl) for name, _, ttl, _ in step.gone) == [(f'www.{NAME}', 60)]
    assert sorted((name, ttl) for name, _, ttl, _ in step.added) == [(f'api.{NAME}', 120), (f'www.{NAME}', 120)]


@pytest.mark.parametrize('transfer, why', [
    (difference(6, 9), 'begins at serial 6'),
    (difference(7, 9, gone=((f'www.{NAME}', 'A', 60, '192.0.2.9'),)), 'does not fit'),
    (difference(7, 9, added=(WWW,)), 'does not fit'),
    (difference(7, 9, gone=(NS,)), 'no NS'),
    (difference(7, 9, added=((f'www.{NAME}', 'CNAME', 60, NAME),)), 'has A already; a CNAME must be'),
    (whole(7), 'not newer than 7'), (whole(6), 'not newer than 7'), (whole(7 + 2 ** 31), 'not newer'),
    (whole(8, NS, (NAME, 'CNAME', 60, 'example.net.')), 'a CNAME at example.com.'),
    (whole(8, NS, (f'a.{NAME}', 'SOA', 60, SOA.format(1))), 'a SOA at a.example.com.'),
    (whole(8, NS, ('www.example.net.', 'A', 60, '192.0.2.1')), 'does not lie in'),
    (whole(8, WWW), 'no name servers'),
    (whole(8, NS, (f'a.{NAME}', 'CNAME', 60, NAME), (f'a.{NAME}', 'CNAME', 60, f'www.{NAME}')), 'more than one CNAME'),
    (difference(7, 9, added=((NAME, 'DNAME', 60, 'example.net.'),)), 'DNAME: www.example.com. A: it lies below'),
    (whole(8, NS, (f'a.{NAME}', 'X25', 60, '"12a"')), 'not four digits'),
    (whole(8, NS, (f'a.{NAME}', 'TXT', 60, ' '.join([f'"{"x" * 255}"'] * 255))), 'fit into a DNS message'),
    (dataclasses.replace(whole(8), soa=SOA.format(8).replace('86400', '2147483648')), 'more than 2147483647 s'),
], ids=['another start', 'gone is not there', 'added is there', 'no NS left', 'CNAME beside A', 'same serial',
        'older serial', 'serial without order', 'CNAME at the apex', 'second SOA', 'another apex', 'no NS',
        'two CNAME', 'DNAME above A', 'wrong data', 'a record that no transfer holds', 'long expiry'])
def test_what_is_no_zone_is_refused_whole(central: Central, clock: Clock, database: Storage, transferred: Domain,
                                          transfer: ZoneTransferIn, why: str) -> None:
    renew(central, clock, transferred)
    before = served(database, transferred)
    with pytest.raises(TransferRejected, match=why):
        store(central, transfer)
    assert served(database, transferred) == before
    assert central.get_domain(WHO, transferred.id) == transferred


def test_quotas_hold_for_what_masters_send(central: Central, clock: Clock, transferred: Domain) -> None:
    central.set_quotas(WHO, 'red', {'zone_recordsets': 3})
    renew(central, clock, transferred)
    with pytest.raises(OverQuota):
        store(central, whole(8, NS, *((f'a{number}.{NAME}', 'A', 60, '192.0.2.1') for number in range(5))))


def test_failures(central: Central, clock: Clock, database: Storage, transferred: Domain) -> None:
    """A served zone stays served until it expires; the next refresh that reaches a master ends that."""
    succeed(central, transferred)

    def fail(seconds: float) -> Domain:
        clock.now += seconds
        task = claim(central)
        central.fail_refresh(WHO, transferred.id, task.claim, f'{MASTER}: connection refused')
        return central.get_domain(WHO, transferred.id)

    assert fail(3601).status is Status.ACTIVE
    state = database.read(secondary_zones.get, transferred.id)
    assert state is not None
    assert (state.failures, state.last_error) == (1, f'{MASTER}: connection refused')
    assert (state.next_at.timestamp() - clock.now) == pytest.approx(600, abs=1)
    expired = fail(86400)
    assert (expired.status, expired.awaits_transfer, served(database, transferred)) == (Status.ERROR, True, None)
    assert database.read(dashboard.in_error, 'default', 9) == [(transferred.id, NAME)]
    assert database.read(dashboard.in_error, 'default', 9, 'blue') == []
    succeed(central, transferred)
    assert central.get_domain(WHO, transferred.id).status is Status.ERROR  # whatever the servers still have
    clock.now += 601
    task = claim(central)
    central.confirm_refresh(WHO, transferred.id, task.claim, MASTER)
    again = central.get_domain(WHO, transferred.id)
    assert (again.status, again.awaits_transfer, again.serial) == (Status.ACTIVE, False, 7)
    assert served(database, transferred) is not None


def test_what_other_projects_may_not(central: Central, transferred: Domain) -> None:
    assert refused(central.refresh_domain, BLUE, transferred.id) == 'zone_not_found'
    assert refused(central.update_domain, BLUE, transferred.id, {'masters': ['192.0.2.9']}) == 'zone_not_found'


def test_new_masters(central: Central, transferred: Domain) -> None:
    changed = central.update_domain(RED, transferred.id, {'masters': ['192.0.2.9:853'], 'description': 'moved'})
    assert (changed.masters, changed.serial, changed.status) == ('192.0.2.9:853', 7, transferred.status)
    assert claim(central).masters == ('192.0.2.9:853',)


def test_changes_of_the_pool_leave_the_serial_of_the_master(central: Central, transferred: Domain) -> None:
    central.update_pool(WHO, {'id': transferred.pool_id, 'name_servers': ['ns9.example.net.']})
    central.renew_pool(WHO, transferred.pool_id)
    central.raise_serial_above(WHO, transferred.id, 2000)
    assert central.get_domain(WHO, transferred.id).serial == 7


def test_a_zone_that_is_deleted_is_not_refreshed(central: Central, clock: Clock, transferred: Domain) -> None:
    renew(central, clock, transferred)
    task = claim(central)
    gone = central.delete_domain(RED, transferred.id)
    central.store_transfer(WHO, transferred.id, task.claim, MASTER, whole(8))
    assert central.get_domain(WHO, transferred.id).serial == gone.serial != 8
    central.update_status(WHO, gone, Outcome.SUCCESS, gone.serial)
    made = central.create_domain(RED, {'name': NAME, 'email': 'a@example.com'})
    assert not made.is_secondary and made.generation > transferred.generation
