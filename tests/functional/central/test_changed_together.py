"""Changes of recordsets whose requests come together: one transaction, and for each what it would be by itself."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central import recordset_changes
from designate_pool.central.service import Central
from designate_pool.model import Context, Domain, PageRequest, RecordChange, RecordSet
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains, versions
from testing.databases import count_statements
from testing.processes import wait_until
from tests.fixtures.central import WHO, Caller, contents, create, noted, together

pytestmark = pytest.mark.all_databases

RED, BLUE = Context(project_id='red'), Context(project_id='blue')
Call = tuple[Callable[..., RecordSet], Context, Any, Any] | tuple[Callable[..., RecordSet], Context, str, str, Any]


def changed(central: Central, calls: Sequence[Call]) -> list[Future[RecordSet]]:
    """Calls of Central that come together, and have ended."""
    return together(central._changes, *(functools.partial(
        call, dataclasses.replace(who, request_id=f'req-{number}', operation_id=f'{number + 1:x}' * 32), *rest)
        for number, (call, who, *rest) in enumerate(calls)))


def alone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the domains whose changes are carried out by themselves."""
    return noted(monkeypatch, recordset_changes, 'change_recordset', lambda tx, request, *rest: request.domain_id)


def zones(central: Central, count: int, who: Context = WHO) -> list[Domain]:
    """Zones with www, and txt with two records."""
    return [create(central, f'd{number}.example.', (f'www.d{number}.example.', 'A', ['192.0.2.1']),
                   (f'txt.d{number}.example.', 'TXT', ['"a"', '"b"']), who=who) for number in range(count)]


def recordset(central: Central, domain: Domain, label: str) -> RecordSet:
    found, = central.find_recordsets(WHO, domain.id, PageRequest({'name': f'{label}.{domain.name}'}))
    return found


def new(label: str, domain: Domain, *records: str) -> dict[str, Any]:
    return {'name': f'{label}.{domain.name}', 'type': 'A', 'records': list(records or ['192.0.2.7'])}


def test_they_are_one_transaction(central: Central, caller: Caller, database: Storage,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    there = zones(central, 10)
    single = alone(monkeypatch)
    with count_statements(database) as one:
        central.update_recordset(WHO, there[9].id, recordset(central, there[9], 'www').id, {'records': ['192.0.2.2']})
    calls: list[Call] = [(central.update_recordset, WHO, domain.id, recordset(central, domain, 'www').id,
                          {'records': [f'192.0.2.{number + 10}']}) for number, domain in enumerate(there[:3])]
    calls += [(central.create_recordset, WHO, domain.id, new('new', domain)) for domain in there[3:6]]
    calls += [(central.delete_recordset, WHO, domain.id, recordset(central, domain, 'www').id)
              for domain in there[6:9]]
    caller.cast_domains.clear()
    with count_statements(database) as counted:
        made = [each.result() for each in changed(central, calls)]
    assert single == [there[9].id]
    # What is saved of each domain is a statement of its own.
    assert sum(count for statement, count in counted.items() if not statement.startswith('UPDATE domains')) \
        <= 3 * one.total()
    assert [[record.data for record in each.records] for each in made] == [
        *([f'192.0.2.{number + 10}'] for number in range(3)), *[['192.0.2.7']] * 3, *[['192.0.2.1']] * 3]
    now = [central.get_domain(WHO, domain.id) for domain in there]
    for number, (before, domain) in enumerate(zip(there[:9], now)):
        assert domain.serial != before.serial and domain.request_id == f'req-{number}'
        assert ('update_domain', domain) in [(call, dataclasses.replace(cast, updated_at=domain.updated_at))
                                             for call, cast in caller.cast_domains] or \
            ('create_domain', domain) in caller.cast_domains
        assert made[number] == recordset(central, domain, 'www' if number < 3 else 'new') if number < 6 else True
    assert [f'www.{domain.name} A 192.0.2.1' in contents(central, domain) for domain in now[:9]] == [
        *[False] * 3, *[True] * 3, *[False] * 3]


def test_they_are_journalled_as_if_each_were_alone(central: Central, database: Storage) -> None:
    there = zones(central, 3)
    changed(central, [
        (central.update_recordset, WHO, there[0].id, recordset(central, there[0], 'www').id, {'ttl': 77}),
        (central.delete_recordset, WHO, there[1].id, recordset(central, there[1], 'txt').id),
        (central.create_recordset, WHO, there[2].id, new('new', there[2], '192.0.2.7', '192.0.2.8'))])
    found = []
    for domain in there:
        span = versions.Span(domain.id, domain.serial, central.get_domain(WHO, domain.id).serial)
        step, = (database.read(versions.steps, [span], 100) or {})[span]
        found.append(([(name, ttl) for name, _, ttl, _ in step.gone], [(name, ttl) for name, _, ttl, _ in step.added]))
    assert found == [([('www.d0.example.', 3600)], [('www.d0.example.', 77)]),
                     ([('txt.d1.example.', 3600)] * 2, []), ([], [('new.d2.example.', 3600)] * 2)]


def test_each_gets_the_error_that_it_would_get_by_itself(central: Central, monkeypatch: pytest.MonkeyPatch) -> None:
    there = zones(central, 7, RED)
    create(central, 'below.d6.example.', who=RED)
    before = [contents(central, domain) for domain in there]
    single = alone(monkeypatch)
    www = [recordset(central, domain, 'www').id for domain in there]
    made = changed(central, [
        (central.create_recordset, RED, there[0].id, new('www', there[0])),
        (central.update_recordset, RED, there[1].id, 'f' * 32, {'ttl': 77}),
        (central.update_recordset, RED, there[2].id, www[2], {'records': ['no address']}),
        (central.delete_recordset, BLUE, there[3].id, www[3]),
        (central.delete_recordset, RED, there[4].id, www[5]),
        (central.update_recordset, RED, there[5].id, www[5], {'records': ['192.0.2.9']}),
        (central.create_recordset, RED, there[6].id, new('www.below', there[6]))])
    assert [type(each.exception()) for each in made] == [
        errors.DuplicateRecordSet, errors.RecordSetNotFound, errors.InvalidField, errors.DomainNotFound,
        errors.RecordSetNotFound, type(None), errors.InvalidField]
    assert single == []
    after = [contents(central, domain) for domain in there]
    assert [number for number in range(7) if after[number] != before[number]] == [5]


def test_each_has_its_own_condition(central: Central, monkeypatch: pytest.MonkeyPatch) -> None:
    there = zones(central, 4)
    single = alone(monkeypatch)
    sets = [recordset(central, domain, 'www') for domain in there]
    with_tag = [dataclasses.replace(WHO, if_match=tag) for tag in (sets[0].etag, '"old"', there[2].etag, '"1-old"')]
    made = changed(central, [
        (central.update_recordset, with_tag[0], there[0].id, sets[0].id, {'ttl': 77}),
        (central.update_recordset, with_tag[1], there[1].id, sets[1].id, {'ttl': 77}),
        (central.create_recordset, with_tag[2], there[2].id, new('new', there[2])),
        (central.create_recordset, with_tag[3], there[3].id, new('new', there[3]))])
    assert [type(each.exception()) for each in made] == [type(None), errors.PreconditionFailed] * 2
    assert single == []


def test_two_changes_of_one_domain_are_both_made(central: Central, monkeypatch: pytest.MonkeyPatch) -> None:
    there = zones(central, 2)
    single = alone(monkeypatch)
    made = changed(central, [
        (central.create_recordset, WHO, there[0].id, new('a', there[0])),
        (central.create_recordset, WHO, there[1].id, new('a', there[1])),
        (central.create_recordset, WHO, there[0].id, new('b', there[0]))])
    assert [each.result().name for each in made] == ['a.d0.example.', 'a.d1.example.', 'b.d0.example.']
    assert single == [there[0].id]
    assert {'a.d0.example. A 192.0.2.7', 'b.d0.example. A 192.0.2.7'} <= set(contents(central, there[0]))


# Writers of SQLite wait for one another.
@pytest.mark.parametrize('database_kind', ['mariadb', 'postgresql'], indirect=True)
def test_who_waits_for_a_lock_waits_alone(central: Central, database: Storage,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    there = zones(central, 3)
    single = alone(monkeypatch)

    def while_locked(tx: Any) -> None:
        domains.lock(tx, there[0].id)
        with ThreadPoolExecutor(3) as threads:
            waiting = central._changes._calls
            with waiting._turn:
                made = [threads.submit(central.create_recordset, WHO, domain.id, new('a', domain)) for domain in there]
                wait_until(lambda: len(waiting._next.keys) == 3, 'all are waiting')
            for each in made[1:]:
                each.result(60)
            assert not made[0].done()
            tx.commit()
            made[0].result(60)

    with database.engine.connect() as tx:
        while_locked(tx)
    assert single == [there[0].id]
    assert ['a.d0.example. A 192.0.2.7' in contents(central, there[0])] == [True]


def test_one_with_many_records_is_carried_out_alone(central: Central, monkeypatch: pytest.MonkeyPatch) -> None:
    there = zones(central, 2)
    for domain in there:
        central.apply_changes(WHO, domain.id, [RecordChange(
            f'many.{domain.name}', 'A', tuple(f'192.0.{number}.1' for number in range(201 - int(domain.name[1]))))])
    single = alone(monkeypatch)
    made = changed(central, [(central.delete_recordset, WHO, domain.id, recordset(central, domain, 'many').id)
                             for domain in there])
    assert [len(each.result().records) for each in made] == [201, 200]
    assert single == [there[0].id]


def test_a_commit_whose_answer_is_lost(central: Central, lost_answers: None) -> None:
    there = zones(central, 3)
    made = [each.result() for each in changed(central, [
        (central.create_recordset, WHO, there[0].id, new('a', there[0])),
        (central.update_recordset, WHO, there[1].id, recordset(central, there[1], 'www').id,
         {'records': ['192.0.2.9']}),
        (central.delete_recordset, WHO, there[2].id, recordset(central, there[2], 'www').id)])]
    assert [[record.data for record in each.records] for each in made] == [
        ['192.0.2.7'], ['192.0.2.9'], ['192.0.2.1']]
    assert made[:2] == [recordset(central, there[0], 'a'), recordset(central, there[1], 'www')]
    assert [central.get_domain(WHO, domain.id).version - domain.version for domain in there] == [1] * 3
