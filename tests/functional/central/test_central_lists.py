"""Lists: filters, sorting with ties and with values that are missing, page after page, of one zone and of all."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool.api.services.zone_task_store import ZoneTaskStore
from designate_pool.central.service import Central
from designate_pool.model import Context, Domain, PageRequest, RecordSet, ZoneTaskKind
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import managed_records
from tests.fixtures.central import WHO, Clock, create, refused

pytestmark = pytest.mark.all_databases

RED, BLUE = Context(project_id='red'), Context(project_id='blue')
EVERYBODY = Context(project_id='red', all_projects=True)
DIRECTIONS = ('asc', 'desc')


def fill(central: Central, clock: Clock) -> list[Domain]:
    """Domains with values that are the same, missing, and different."""
    for number, (ttl, description) in enumerate(itertools.product((60, 300), (None, 'same', 'own {}'))):
        clock.now += number % 2
        made = central.create_domain(RED if number % 3 else BLUE, {
            'name': f'z{number}.example.', 'email': f'host{number % 2}@example.com', 'ttl': ttl,
            'description': description and description.format(number)})
        for rrset in range(3):
            central.create_recordset(EVERYBODY, made.id, {
                'name': f'h{rrset}.{made.name}', 'type': 'A', 'records': [f'192.0.2.{rrset}'],
                'ttl': None if rrset == 1 else 60 * rrset, 'description': description})
    return central.find_domains(EVERYBODY)


def pages(ask: Any, **wanted: Any) -> list[Any]:
    """All of a list, four at a time."""
    found: list[Any] = []
    marker = None
    while page := ask(marker=marker, limit=4, **wanted):
        found.extend(page)
        assert len(found) < 100, 'the pages do not end'
        last = page[-1]
        marker = (last[1] if isinstance(last, tuple) else last).id
    return found


def ordered(found: list[Any], key: str, direction: str) -> list[str]:
    """Their ids, sorted here: by the value, what has none last, then by id."""
    def rank(each: Any) -> tuple[bool, Any, str]:
        value = getattr(each, key)
        return value is None, '' if value is None else value, each.id

    return [each.id for each in sorted(found, key=rank, reverse=direction == 'desc')]


def test_zones_come_in_order_page_by_page_whatever_they_are_sorted_by(central: Central, clock: Clock) -> None:
    zones = fill(central, clock)
    for key, direction in itertools.product(
            ('name', 'id', 'created_at', 'email', 'status', 'serial', 'ttl', 'description', 'project_id'), DIRECTIONS):
        found = pages(lambda **page: central.find_domains(
            EVERYBODY, PageRequest(sort_key=key, sort_dir=direction, **page)))
        assert [each.id for each in found] == ordered(zones, key, direction), (key, direction)


def test_recordsets_come_in_order_page_by_page_whatever_they_are_sorted_by(central: Central, clock: Clock) -> None:
    fill(central, clock)
    (zone,) = central.find_domains(EVERYBODY, PageRequest({'name': 'z2.example.'}))
    for key, direction in itertools.product(('name', 'type', 'created_at', 'ttl', 'description'), DIRECTIONS):
        for ask in (lambda **page: central.find_recordsets(EVERYBODY, zone.id, PageRequest(**page)),
                    lambda **page: central.find_all_recordsets(EVERYBODY, PageRequest(**page))):
            whole: list[RecordSet] = ask(limit=1000)
            found = pages(ask, sort_key=key, sort_dir=direction)
            assert [each.id for each in found] == ordered(whole, key, direction), (key, direction)


ZONES: list[tuple[dict[str, str], set[int]]] = [
    ({'ttl': '300'}, {3, 4, 5}),
    ({'ttl': '7'}, set()),
    ({'description': 'same'}, {1, 4}),
    ({'description': 'own*'}, {2, 5}),
    ({'email': '*1@EXAMPLE.com', 'ttl': '60'}, {1}),
    ({'type': 'PRIMARY'}, {0, 1, 2, 3, 4, 5}),
    ({'type': 'secondary'}, set()),
    ({'name': 'z?.example.'}, set()),
    ({'name': '*5.example.', 'status': 'PENDING'}, {5}),
    ({'status': 'ACTIVE'}, set()),
]
#: How many there are in all zones.
RECORDSETS: list[tuple[dict[str, str], int]] = [
    ({'type': 'SOA'}, 6),
    ({'name': 'h1.*'}, 6),
    ({'name': 'h1.z3.example.'}, 1),
    ({'ttl': '120'}, 6),
    ({'description': 'same'}, 6),
    ({'data': '192.0.2.2', 'ttl': '120'}, 6),
    ({'status': 'PENDING', 'type': 'soa'}, 6),
    ({'status': 'ACTIVE'}, 0),
    ({'status': 'ERROR'}, 0),
]


def test_zones_and_recordsets_are_found_by_what_they_have(central: Central, clock: Clock,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    fill(central, clock)
    for criterion, numbers in ZONES:
        zones = central.find_domains(EVERYBODY, PageRequest(criterion))
        assert {each.name for each in zones} == {f'z{number}.example.' for number in numbers}, criterion
    for criterion, count in RECORDSETS:
        found = central.find_all_recordsets(EVERYBODY, PageRequest(criterion))
        assert len(found) == count, criterion
        assert all(each.name.endswith(each.domain.name) and each.domain_id == each.domain.id for each in found)
        assert all(each.records for each in found)

    # A project finds its own.
    assert {each.domain.project_id for each in central.find_all_recordsets(RED)} == {'red'}
    few = [each.id for each in central.find_all_recordsets(RED)]
    assert len(few) == 4 * 5
    assert len(central.find_all_recordsets(BLUE)) == 2 * 5
    assert len(central.find_all_recordsets(WHO)) == 6 * 5
    assert central.find_all_recordsets(Context(project_id='green')) == []
    monkeypatch.setattr('designate_pool.storage.zones.recordsets._FEW', 1)
    assert [each.id for each in central.find_all_recordsets(RED)] == few, 'as if it had many zones'
    monkeypatch.undo()
    monkeypatch.setattr('designate_pool.storage.zones.recordsets._FEW_SETS', 1)
    assert [each.id for each in central.find_all_recordsets(RED)] == few, 'as if its zones were large'


def test_projects_whose_names_differ_in_case_are_different(central: Central, database: Storage) -> None:
    red, blue = Context(project_id='red'), Context(project_id='blue')
    domain, shared = create(central, 'a.example.', who=red), create(central, 'b.example.', who=blue)
    central.share_domain(blue, shared.id, {'target_project_id': 'red'})
    central.create_transfer_request(red, domain.id, {'target_project_id': 'blue'})
    central.set_quotas(red, 'red', {'zones': 1})
    task = ZoneTaskStore(database).store_import(red, [b'x'])
    central.set_floating_ip(red, {'region': 'one', 'id': 'f', 'address': '192.0.2.1'}, {'ptrdname': 'a.example.'})
    for project in ('RED', 'BLUE', 'Réd', 'red '):
        who = Context(project_id=project)
        assert central.find_domains(who) == [] == central.find_all_recordsets(who)
        assert central.find_transfer_requests(who) == [] == central.find_managed_records(who)
        assert central.get_quotas(who, project)['zones'] == -1
        assert ZoneTaskStore(database).find(ZoneTaskKind.IMPORT, who, PageRequest()) == []
        for each in (domain, shared):
            assert refused(central.get_domain, who, each.id) == 'zone_not_found'
    for given, count in ((['RED', 'BLUE'], 0), (['RED', 'red'], 1), (['red', 'RED'], 1), ([], 0)):
        assert len(database.read(managed_records.find, {'project_id': given})) == count
    others = sa.not_(schema.managed_records.c.project_id == 'RED')
    assert database.read(lambda tx: tx.execute(sa.select(schema.managed_records.c.project_id).where(
        others)).scalars().all()) == ['red']
    assert [each.name for each in central.find_domains(red)] == ['a.example.', 'b.example.']
    assert [each.id for each in ZoneTaskStore(database).find(ZoneTaskKind.IMPORT, red, PageRequest())] == [task.id]
    assert refused(central.share_domain, blue, shared.id, {'target_project_id': 'red'}) == 'duplicate_shared_zone'
    assert refused(central.create_domain, Context(project_id='RED'), {
        'name': 'www.a.example.', 'email': 'hostmaster@example.com'}) == 'illegal_child'
    assert central.create_domain(Context(project_id='RED'), {
        'name': 'c.example.', 'email': 'hostmaster@example.com'}).project_id == 'RED'


@pytest.mark.parametrize('key', ['name', 'scope', 'algorithm'])
def test_a_text_that_no_entry_can_have_is_that_of_none(central: Central, key: str) -> None:
    for text in ('ö', 'ö*'):
        assert central.tsigkeys.find(WHO, PageRequest({key: text})) == []


@pytest.mark.parametrize('key', ['name', 'type', 'status'])
def test_a_text_that_no_zone_or_recordset_can_have_is_that_of_none(central: Central, key: str) -> None:
    zone = create(central, 'example.com.')
    assert central.find_domains(WHO, PageRequest({key: 'ö'})) == []
    assert central.find_recordsets(WHO, zone.id, PageRequest({key: 'ö'})) == []
    assert central.find_all_recordsets(WHO, PageRequest({key: 'ö'})) == []
    assert central.get_domain(WHO, zone.id) == zone
