"""Quotas in Central, on each database: what is refused, what it costs, and what counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central.rules.quotas import CACHED
from designate_pool.central.service import Central
from designate_pool.central.validation import names_and_rdata
from designate_pool.central.zonefile_parser import RecordSetSpool
from designate_pool.model import Context, Domain, PageRequest, RecordChange
from designate_pool.rpc.pool_manager import PoolManagerClient
from designate_pool.runtime import Inline
from designate_pool.storage.sql.database import Storage
from testing.databases import count_statements
from testing.settings import central_settings
from tests.fixtures.central import WHO, Caller, Clock, create, import_zone, started

RED = Context(project_id='red')
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


def refused(quota: str, found: int, work: Any, *arguments: Any) -> None:
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
    for quota, found, sets in (('zone_recordsets', 4, [host(each) for each in range(4)]),
                               ('zone_records', 6, [host(each, 3) for each in range(2)]),
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
    refused('zone_recordsets', 4, limited.create_recordset, RED, zone.id, host(9))


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
