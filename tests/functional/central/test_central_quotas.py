"""Quotas in Central, on each database: what is refused, what it costs, and what counts."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool import errors
from designate_pool.central.purger import Purger
from designate_pool.central.rules.quotas import CACHED
from designate_pool.central.service import Central
from designate_pool.central.validation import names_and_rdata
from designate_pool.central.zonefile_parser import RecordSetSpool
from designate_pool.model import Actor, Context, Domain, PageRequest, RecordChange
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.settings import CentralSettings
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import project_deletes
from designate_pool.storage.zones import quotas
from testing.databases import count_statements
from testing.inline import Inline
from testing.settings import central_settings
from tests.fixtures.central import WHO, Caller, Clock, at_once, create, import_zone, noted, started, together

RED, BLUE = Context(project_id='red'), Context(project_id='blue')
ADMIN = Context(project_id='admin', all_projects=True)


@pytest.fixture
def limited(database: Storage, caller: Caller, clock: Clock) -> Iterator[Central]:
    """A Central where little is allowed."""
    with started(database, caller, quota_zones=2, quota_zone_recordsets=3, quota_zone_records=5,
                 quota_recordset_records=3) as service:
        yield service


def host(number: int, records: int = 1) -> dict[str, Any]:
    return {'name': f'h{number}.example.com.', 'type': 'A',
            'records': [f'192.0.2.{number * 16 + each}' for each in range(records)]}


def refused(quota: str, found: int | str, work: Any, *arguments: Any) -> None:
    with pytest.raises(errors.OverQuota) as caught:
        work(*arguments)
    assert (caught.value.kwargs['quota'], caught.value.kwargs['found']) == (quota, found)


def test_zones_of_a_project(limited: Central) -> None:
    first = create(limited, 'one.example.', who=RED)
    create(limited, 'two.example.', who=RED)
    with pytest.raises(errors.OverQuota, match='The quota zones allows 2; this would make it 3'):
        create(limited, 'three.example.', who=RED)
    create(limited, 'three.example.', who=Context(project_id='blue'))
    for number in range(4):
        create(limited, f'nobodys{number}.example.')
    limited.delete_domain(RED, first.id)
    create(limited, 'four.example.', who=RED)
    with pytest.raises(errors.OverQuota):
        import_zone(limited, RED, '$ORIGIN five.example.\n@ 60 IN SOA ns1.example.net. host.example.com. 1 2 3 4 5\n')


def test_a_zone_that_would_begin_too_large(limited: Central) -> None:
    for quota, found, sets in (('zone_recordsets', 'at least 4', [host(each) for each in range(4)]),
                               ('zone_records', 'at least 6', [host(each, 3) for each in range(2)]),
                               ('recordset_records', 4, [host(1, 4)])):
        refused(quota, found, limited.create_domain, RED,
                {'name': 'example.com.', 'email': 'hostmaster@example.com'}, sets)
    assert limited.find_domains(WHO) == []
    limited.create_domain(RED, {'name': 'example.com.', 'email': 'hostmaster@example.com'},
                          [host(1, 3), host(2), host(3)])


def test_what_is_without_a_project_has_no_quotas(limited: Central) -> None:
    zone = limited.create_domain(WHO, {'name': 'example.com.', 'email': 'hostmaster@example.com'},
                                 [host(each, 4) for each in range(5)])
    limited.create_recordset(WHO, zone.id, host(6, 5))
    assert set(limited.get_quotas(WHO, '').values()) == {-1}


def changed(*changes: tuple[int, int]) -> list[RecordChange]:
    return [RecordChange(each['name'], 'A', tuple(each['records'])) for each in
            (host(number, records) for number, records in changes)]


def filled(central: Central) -> Domain:
    return central.create_domain(RED, {'name': 'example.com.', 'email': 'hostmaster@example.com'},
                                 [host(1, 3), host(2)])


def test_what_is_certain_to_be_too_much_is_never_parsed(limited: Central, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = limited.create_domain(RED, {'name': 'example.com.', 'email': 'a@example.com'})
    made = limited.create_recordset(RED, domain.id, host(1))
    many = {'name': 'many.example.com.', 'type': 'MX', 'records': ['1 a.'] * 300}
    parsed: list[str] = []
    monkeypatch.setattr(names_and_rdata, 'parse_rdata', lambda rtype, text: parsed.append(text))
    refused('recordset_records', 300, limited.create_recordset, RED, domain.id, many)
    refused('recordset_records', 300, limited.update_recordset, RED, domain.id, made.id, {'records': many['records']})
    refused('recordset_records', 300, limited.apply_changes, RED, domain.id, [many])
    refused('recordset_records', 300, limited.create_domain, RED,
            {'name': 'example.net.', 'email': 'a@example.net'}, [many])
    spread = [{**many, 'name': f'h{number}.example.com.', 'records': ['1 a.']} for number in range(300)]
    refused('zone_records', 300, limited.apply_changes, RED, domain.id, spread)
    assert parsed == []
    with pytest.raises(errors.DomainNotFound):
        limited.create_recordset(Context(project_id='blue'), domain.id, many)


@pytest.mark.parametrize('many', ['$GENERATE 1-60000 h$ A 192.0.2.1', '$GENERATE 1-60000 h AAAA 2001:db8::$'])
def test_a_zone_file_is_read_as_far_as_quotas_allow(limited: Central, monkeypatch: pytest.MonkeyPatch,
                                                    many: str) -> None:
    read: list[str] = []
    add = RecordSetSpool.add
    monkeypatch.setattr(RecordSetSpool, 'add', lambda self, key, *rest: read.append(key) or add(self, key, *rest))
    head = '$ORIGIN example.com.\n$TTL 300\n@ SOA ns1.example.org. h 1 2 3 4 5\n@ NS ns1.example.org.\n'
    with pytest.raises(errors.OverQuota):
        import_zone(limited, RED, f'{head}{many}\n')
    assert len(read) < 10


class Counting(Inline):
    """Counts what is computed beside all else."""

    def __init__(self) -> None:
        self.computed = 0

    def compute(self, work: Any, *args: Any) -> Any:
        self.computed += 1
        return super().compute(work, *args)


def test_long_work_is_done_beside_what_else_goes_on(database: Storage, caller: Caller, clock: Clock) -> None:
    runtime = Counting()
    many = [f'2001:db8::{number:x}' for number in range(400)]
    wanted = {'name': 'many.example.com.', 'type': 'AAAA', 'records': many[:300]}
    with started(database, caller, runtime) as service:
        domain = create(service, who=RED)
        made = service.create_recordset(RED, domain.id, wanted)
        assert runtime.computed == 1
        service.update_recordset(RED, domain.id, made.id, {'records': many[100:]})
        service.apply_changes(RED, domain.id, [wanted])
        assert runtime.computed == 3


def test_a_zone_that_would_grow_too_large(limited: Central) -> None:
    zone = filled(limited)
    refused('zone_records', 6, limited.create_recordset, RED, zone.id, host(3, 2))
    refused('recordset_records', 4, limited.create_recordset, RED, zone.id, host(3, 4))
    limited.create_recordset(RED, zone.id, host(3))
    refused('zone_recordsets', 4, limited.create_recordset, RED, zone.id, host(4))
    (three,) = limited.find_recordsets(WHO, zone.id, PageRequest({'name': 'h3.*'}))
    refused('zone_records', 6, limited.update_recordset, RED, zone.id, three.id, {'records': host(3, 2)['records']})
    serial = limited.get_domain(WHO, zone.id).serial
    refused('zone_recordsets', 4, limited.apply_changes, RED, zone.id, changed((4, 1)))
    assert limited.get_domain(WHO, zone.id).serial == serial, 'nothing was changed'


def test_what_goes_makes_room_in_the_same_change(limited: Central) -> None:
    zone = filled(limited)
    limited.create_recordset(RED, zone.id, host(3))
    limited.apply_changes(RED, zone.id, [*changed((4, 3), (5, 1)),
                                         *(RecordChange(f'h{each}.example.com.', 'A') for each in (1, 2))])
    names = {each.name for each in limited.find_recordsets(WHO, zone.id, PageRequest({'type': 'A'}))}
    assert names == {'h3.example.com.', 'h4.example.com.', 'h5.example.com.'}


def test_what_is_too_large_already_may_change_and_shrink(central: Central, limited: Central) -> None:
    zone = central.create_domain(RED, {'name': 'example.com.', 'email': 'hostmaster@example.com'},
                                 [host(each, 3) for each in range(5)])
    first, *others = limited.find_recordsets(WHO, zone.id, PageRequest({'type': 'A'}))
    limited.update_recordset(RED, zone.id, first.id, {'records': ['192.0.2.250', '192.0.2.251', '192.0.2.252']})
    limited.update_recordset(RED, zone.id, first.id, {'records': ['192.0.2.250'], 'ttl': 5})
    limited.delete_recordset(RED, zone.id, first.id)
    refused('zone_recordsets', 5, limited.create_recordset, RED, zone.id, host(9))  # not only one beyond the quota


def test_what_was_set_for_a_project_goes_before_the_configuration(limited: Central, clock: Clock) -> None:
    assert limited.set_quotas(ADMIN, 'red', {'zones': 0, 'api_export_size': 7}) == {
        'zones': 0, 'zone_recordsets': 3, 'zone_records': 5, 'recordset_records': 3, 'api_export_size': 7}
    with pytest.raises(errors.OverQuota):
        create(limited, 'one.example.', who=RED)
    limited.set_quotas(ADMIN, 'red', {'zones': -1})
    for number in range(3):
        create(limited, f'z{number}.example.', who=RED)
    limited.reset_quotas(ADMIN, 'red')
    assert limited.get_quotas(RED, 'red')['zones'] == 2
    with pytest.raises(errors.OverQuota):
        create(limited, 'more.example.', who=RED)


def test_another_central_learns_it_soon(limited: Central, database: Storage, caller: Caller, clock: Clock) -> None:
    create(limited, 'one.example.', who=RED)
    other = Central(database, PoolManagerClient(caller), Inline(), settings=central_settings())
    other.set_quotas(ADMIN, 'red', {'zones': 1})
    create(limited, 'two.example.', who=RED)
    clock.now += CACHED.total_seconds()
    with pytest.raises(errors.OverQuota):
        create(limited, 'three.example.', who=RED)


def test_a_quota_that_cannot_be(limited: Central) -> None:
    wrong: list[dict[str, Any]] = [{'zones': -2}, {'zones': True}, {'zones': '1'}, {'zones': 1 << 31}, {'hosts': 1}]
    for values in wrong:
        with pytest.raises(errors.InvalidField, match=next(iter(values))):
            limited.set_quotas(ADMIN, 'red', values)


@pytest.mark.all_databases
def test_no_statement_more_where_nothing_is_limited(central: Central, limited: Central, database: Storage) -> None:
    def cost(service: Central, who: Context, *names: str) -> list[int]:
        counts = []
        for name in names:
            with count_statements(database) as counter:
                create(service, name, who=who)
            counts.append(counter.total())
        return counts

    for service, name in ((central, 'one.example.'), (limited, 'two.example.')):
        create(service, name)  # what servers do not take is remembered from then on
    (nobodys,) = cost(central, WHO, 'nobodys.example.')
    assert cost(central, RED, 'first.example.', 'second.example.') == [nobodys + 1, nobodys]
    assert cost(limited, Context(project_id='blue'), 'third.example.', 'fourth.example.') == [nobodys + 2, nobodys + 1]
    zone = create(central, 'example.com.', who=RED)
    counts = []
    for service, number in ((central, 1), (limited, 2), (limited, 3)):
        with count_statements(database) as counter:
            service.create_recordset(RED, zone.id, host(number))
        counts.append(counter.total())
    assert counts == [counts[0], counts[0] + 3, counts[0] + 2], 'what was set for the project, then two counts'


@pytest.fixture
def sparing(database: Storage, caller: Caller, clock: Clock) -> Iterator[Central]:
    """A Central where few recordsets are deleted in an hour."""
    with started(database, caller, quota_deletes_per_hour=4, quota_zone_deletes_per_hour=3) as service:
        yield service


def ids(central: Central, zone: Domain) -> list[str]:
    return [each.id for each in central.find_recordsets(WHO, zone.id, PageRequest({'type': 'A'}))]


def test_the_deletes_of_a_zone_in_an_hour(sparing: Central, clock: Clock) -> None:
    zone, other = (sparing.create_domain(RED, {'name': name, 'email': 'hostmaster@example.com'}, [
        {**host(each), 'name': f'h{each}.{name}'} for each in range(7)]) for name in ('example.com.', 'two.example.'))
    first, second, *_ = ids(sparing, zone)
    sparing.delete_recordset(RED, zone.id, first)
    gone = [RecordChange(f'h{each}.example.com.', 'A') for each in range(1, 4)]
    refused('zone_deletes_per_hour', 4, sparing.apply_changes, RED, zone.id, gone)
    assert len(ids(sparing, zone)) == 6  # none of them
    sparing.apply_changes(RED, zone.id, gone[1:])
    refused('zone_deletes_per_hour', 4, sparing.delete_recordset, RED, zone.id, second)
    sparing.update_recordset(RED, zone.id, second, {'records': ['192.0.2.250']})  # that is no delete
    sparing.delete_recordset(RED, other.id, ids(sparing, other)[0])
    refused('deletes_per_hour', 5, sparing.delete_recordset, RED, other.id, ids(sparing, other)[0])
    clock.now += 3300
    refused('deletes_per_hour', 5, sparing.delete_recordset, RED, other.id, ids(sparing, other)[0])
    clock.now += 700
    sparing.delete_recordset(RED, zone.id, second)


def test_deletes_of_guests_are_not_the_owners(sparing: Central) -> None:
    zones = [sparing.create_domain(RED, {'name': f'z{each}.example.', 'email': 'hostmaster@example.com'}, [
        {**host(each), 'name': f'own.z{each}.example.'}]) for each in range(2)]
    for zone in zones:
        sparing.share_domain(RED, zone.id, {'target_project_id': 'blue'})
        made = [sparing.create_recordset(BLUE, zone.id, {**host(each), 'name': f'h{each}.{zone.name}'}).id
                for each in range(2)]
        for recordset_id in made:
            sparing.delete_recordset(BLUE, zone.id, recordset_id)
    sparing.delete_recordset(RED, zones[0].id, ids(sparing, zones[0])[0])
    sparing.delete_domain(RED, zones[1].id, delete_shares=True)


def test_a_zone_that_is_deleted_counts_as_its_recordsets(sparing: Central, clock: Clock) -> None:
    large, small, empty = (sparing.create_domain(RED, {'name': name, 'email': 'hostmaster@example.com'}, [
        {**host(each), 'name': f'h{each}.{name}'} for each in range(size)]) for name, size in (
        ('example.com.', 5), ('two.example.', 3), ('three.example.', 0)))
    refused('deletes_per_hour', 5, sparing.delete_domain, RED, large.id)
    sparing.delete_domain(RED, small.id)
    sparing.delete_domain(RED, small.id)  # it is going already
    sparing.delete_domain(RED, empty.id)
    refused('deletes_per_hour', 5, sparing.delete_recordset, RED, large.id, ids(sparing, large)[0])
    sparing.set_quotas(ADMIN, 'red', {'deletes_per_hour': 9})
    sparing.delete_domain(RED, large.id)


def test_deletes_that_come_together_are_counted_one_by_one(sparing: Central) -> None:
    zones = [sparing.create_domain(RED, {'name': f'd{each}.example.', 'email': 'hostmaster@example.com'}, [
        {'name': f'h.d{each}.example.', 'type': 'A', 'records': ['192.0.2.1']}]) for each in range(8)]
    ends = at_once(*(functools.partial(sparing.delete_recordset, RED, zone.id, ids(sparing, zone)[0])
                     for zone in zones[:6]), *(functools.partial(sparing.delete_domain, RED, zone.id)
                                               for zone in zones[6:]))
    assert sorted(ends) == [''] * 4 + ['over_quota'] * 4


@pytest.mark.parametrize('what', ['zones', 'recordsets'])
def test_deletes_of_several_projects_that_come_together(sparing: Central, monkeypatch: pytest.MonkeyPatch,
                                                        what: str) -> None:
    """Each is its own requester's, and their counts are locked in one order, since two such transactions may meet."""
    zones = {name: create(sparing, f'{name}.example.', (f'h.{name}.example.', 'A', ['192.0.2.1']),
                          who=Context(project_id=name)) for name in 'hgfedcba'}
    locked = noted(monkeypatch, quotas, 'lock_recent_deletes', lambda tx, project_id, now: project_id)
    for result in together(sparing._deletions if what == 'zones' else sparing._changes, *(
            functools.partial(sparing.delete_domain, Context(project_id=name, user=f'user {name}'), zone.id)
            if what == 'zones' else functools.partial(
                sparing.delete_recordset, Context(project_id=name, user=f'user {name}'), zone.id, ids(sparing, zone)[0])
            for name, zone in zones.items())):
        result.result()
    assert locked == list('abcdefgh')
    assert {name: sparing.find_versions(WHO, zone.id, 1)[0].actor for name, zone in zones.items()} == {
        name: Actor(f'user {name}', name) for name in zones}


def test_counts_of_deletes_are_purged_when_they_count_no_more(sparing: Central, database: Storage,
                                                              clock: Clock) -> None:
    keeper = Purger(database, CentralSettings())
    sparing.delete_domain(RED, create(sparing, 'example.com.', who=RED).id)

    def counted() -> int:
        keeper.purge()
        return len(database.read(lambda tx: tx.execute(sa.select(project_deletes)).all()))

    assert counted() == 1
    clock.now += 7300
    assert counted() == 0
