"""Many at the same time, and requests that come together and share a transaction, on each database."""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central import domain_changes, domain_creator, recordset_changes
from designate_pool.central.recordset_changes import RecordSetRequest, RecordSetResult
from designate_pool.central.rules import domains as domain_rules, pools as pool_rules
from designate_pool.central.rules.journal import Journal
from designate_pool.central.rules.quotas import Allowance, ProjectQuotas
from designate_pool.central.service import Central
from designate_pool.central.validation import requests
from designate_pool.model import (Action, Context, Domain, Outcome, PageRequest, RecordChange, RecordSet, Report,
                                  Status, new_id, utcnow)
from designate_pool.serial import newer
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains, versions
from testing.databases import count_statements
from testing.processes import wait_until
from tests.fixtures.central import WHO, Caller, contents, create, lock_waits, noted, succeed, together

pytestmark = pytest.mark.all_databases


class TestDoneTwice:
    """A connection that is lost during COMMIT, or a message that comes twice: the work is done again, and finds that it
    was done, also if others have changed the domain since."""

    def test_a_create(self, central: Central, database: Storage) -> None:
        pool, = central.find_pools(WHO)
        wanted = requests.new_domain({'name': 'example.com.', 'email': 'a@example.com', 'pool_name': 'default'})
        arguments = wanted, [requests.recordsets([])], utcnow(), allowance()
        first = database.run(domain_creator.create_domain, pool, WHO, '1' * 32, *arguments)
        assert database.run(domain_creator.create_domain, pool, WHO, '1' * 32, *arguments).id == first.id
        with pytest.raises(errors.DuplicateDomain):
            database.run(domain_creator.create_domain, pool, WHO, '2' * 32, *arguments)

    @pytest.fixture
    def domain(self, central: Central) -> Domain:
        return create(central, 'example.com.', *(
            (f'{name}.example.com.', 'A', ['192.0.2.1', '192.0.2.2']) for name in 'abc'))

    @pytest.fixture(params=[0, 1, 20], ids='{} changes of others'.format)
    def others(self, request: pytest.FixtureRequest, central: Central, domain: Domain) -> Callable[[], None]:
        def change() -> None:
            for number in range(request.param):
                central.apply_changes(WHO, domain.id, [RecordChange('other.example.com.', 'A', (f'192.0.2.{number}',))])

        return change

    @pytest.fixture
    def twice(self, database: Storage, central: Central, others: Callable[[], None]) -> Callable[..., Any]:
        """Does a transaction, then again after others have changed the domain: what is served stays as it is."""
        def run(work: Callable[..., Any], domain: Domain, *arguments: Any) -> Any:
            who = dataclasses.replace(WHO, operation_id=new_id())
            changed, *first = database.run(work, who, domain.id, *arguments)
            assert newer(changed.serial, domain.serial)
            others()
            before = contents(central, domain)
            again, *second = database.run(work, who, domain.id, *arguments)
            assert again == dataclasses.replace(central.get_domain(WHO, domain.id), serial=changed.serial)
            assert contents(central, domain) == before
            return first, second

        return run

    def test_a_change_of_the_domain(self, central: Central, domain: Domain, twice: Callable[..., Any]) -> None:
        first, second = twice(domain_changes.update_domain, domain, {'email': 'b@example.com'}, utcnow(),
                              Journal(10, 10))
        assert first == second == [True]

    def test_a_create_of_a_recordset(self, domain: Domain, twice: Callable[..., Any]) -> None:
        wanted = requests.recordset({'name': 'www.example.com.', 'type': 'A', 'records': ['192.0.2.1']})
        first, second = twice(change, domain, new_id(), wanted)
        assert first == second

    def test_a_change_of_a_recordset(self, central: Central, domain: Domain, twice: Callable[..., Any]) -> None:
        values = requests.recordset_values({'records': ['192.0.2.7']})
        first, second = twice(change, domain, recordset(central, domain, 'a').id, None, values)
        assert first == second and second[1]

    def test_a_deletion_of_a_recordset(self, central: Central, database: Storage, domain: Domain,
                                       twice: Callable[..., Any]) -> None:
        gone = recordset(central, domain, 'a').id
        (first, _), (second, _) = twice(change, domain, gone)
        assert dataclasses.replace(first, updated_at=second.updated_at) == second
        with pytest.raises(errors.RecordSetNotFound):
            database.run(change, dataclasses.replace(WHO, operation_id=new_id()), domain.id, gone)

    @pytest.mark.parametrize('with_serial', [False, True])
    def test_changes_with_deletions(self, central: Central, domain: Domain, twice: Callable[..., Any],
                                    with_serial: bool) -> None:
        wanted = requests.changes([RecordChange('a.example.com.', 'A'),
                                   RecordChange('new.example.com.', 'A', ('192.0.2.9',))])
        first, second = twice(recordset_changes.apply_changes, domain, wanted, utcnow(), allowance(), Journal(10, 10),
                              domain.serial if with_serial else None)
        assert first == second == [True]
        with pytest.raises((errors.RecordSetNotFound, errors.Refused)):
            twice(recordset_changes.apply_changes, domain, wanted, utcnow(), allowance(), Journal(10, 10),
                  domain.serial if with_serial else None)

    def test_a_change_does_not_undo_what_came_after_it(self, central: Central, database: Storage,
                                                       domain: Domain) -> None:
        who = dataclasses.replace(WHO, operation_id=new_id())
        first = requests.changes([RecordChange('a.example.com.', 'A', ('192.0.2.8',))])
        database.run(recordset_changes.apply_changes, who, domain.id, first, utcnow(), allowance(), Journal(10, 10))
        central.apply_changes(WHO, domain.id, [RecordChange('a.example.com.', 'A', ('192.0.2.9',))])
        database.run(recordset_changes.apply_changes, who, domain.id, first, utcnow(), allowance(), Journal(10, 10))
        assert [each.data for each in recordset(central, domain, 'a').records] == ['192.0.2.9']

    def test_a_change_of_a_domain_that_was_deleted_since(self, central: Central, database: Storage,
                                                         domain: Domain) -> None:
        who = dataclasses.replace(WHO, operation_id=new_id())
        wanted = requests.changes([RecordChange('a.example.com.', 'A')])
        changed, _ = database.run(recordset_changes.apply_changes, who, domain.id, wanted, utcnow(), allowance(),
                                  Journal(10, 10))
        going = central.delete_domain(WHO, domain.id)
        again, _ = database.run(recordset_changes.apply_changes, who, domain.id, wanted, utcnow(), allowance(),
                                Journal(10, 10))
        assert again == dataclasses.replace(going, serial=changed.serial)


def change(tx: Any, who: Context, domain_id: str, *what: Any) -> RecordSetResult:
    return recordset_changes.change_recordset(tx, RecordSetRequest(who, domain_id, *what), utcnow(), allowance(),
                                              Journal(10, 10))


def allowance() -> Allowance:
    return Allowance(ProjectQuotas(), utcnow)


class TestTogether:
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
        assert len(central.find_domains(WHO, PageRequest({'status': 'ACTIVE'}))) == 9

    def test_a_domain_that_waits_for_new_name_servers_gets_these(self, central: Central, database: Storage) -> None:
        pool, = central.find_pools(WHO)
        with ThreadPoolExecutor(1) as threads:

            def change(tx: Any) -> Any:
                pool_rules.update(tx, WHO, pool.id, {'name_servers': ['ns8.example.net.']}, utcnow(), new_id())
                made = threads.submit(create, central, 'example.com.')
                if database.engine.dialect.name != 'sqlite':  # where writers queue in front of the database
                    wait_until(lambda: lock_waits(database), 'the new domain waits for the pool', pause=0.01)
                return made

            domain = database.run(change).result(60)
        (ns,) = central.find_recordsets(WHO, domain.id, PageRequest({'type': 'NS'}))
        assert [record.data for record in ns.records] == ['ns8.example.net.']


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


def test_changes_are_one_transaction(central: Central, caller: Caller, database: Storage,
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


def test_each_change_gets_the_error_that_it_would_get_by_itself(
        central: Central, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_commit_of_changes_whose_answer_is_lost(central: Central, lost_answers: None) -> None:
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


def created(central: Central,
            *wanted: tuple[Context, str] | tuple[Context, str, Mapping[str, Any]]) -> list[Future[Domain]]:
    """Creations that come together, and have ended."""
    return together(central.creator._requests, *(functools.partial(
        central.create_domain, dataclasses.replace(who, request_id=f'req-{number}'),
        {'name': name, 'email': 'hostmaster@example.com', **dict(*more)},
        [{'name': f'www.{name}', 'type': 'A', 'records': ['192.0.2.1']}])
        for number, (who, name, *more) in enumerate(wanted)))


def created_alone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that are created by themselves."""
    return noted(monkeypatch, domain_creator, 'create_domain', lambda *arguments: arguments[4].name)


def test_creations_are_one_transaction(central: Central, caller: Caller, database: Storage,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    create(central, 'first.example.')  # locks of names are made with the first
    single = created_alone(monkeypatch)
    with count_statements(database) as one:
        create(central, 'alone.example.')
    with count_statements(database) as counted:
        made = [each.result() for each in created(central, *((WHO, f'd{number}.example.') for number in range(8)))]
    assert single == ['alone.example.']
    assert counted.total() < 2 * one.total()
    for number, domain in enumerate(made):
        assert (domain.name, domain.request_id, domain.status) == (f'd{number}.example.', f'req-{number}',
                                                                   Status.PENDING)
        assert central.get_domain(WHO, domain.id) == domain
        assert f'www.{domain.name} A 192.0.2.1' in contents(central, domain)
        assert ('create_domain', domain) in caller.cast_domains


def test_each_creation_gets_the_error_that_it_would_get_by_itself(
        central: Central, monkeypatch: pytest.MonkeyPatch) -> None:
    create(central, 'taken.example.', who=RED)
    single = created_alone(monkeypatch)
    made = created(central, (RED, 'a.example.'), (RED, 'taken.example.'), (RED, 'twice.example.'),
                   (RED, 'twice.example.'), (RED, 'b.example.'), (RED, 'upper.b.example.'),
                   (RED, 'pool.example.', {'pool_name': 'none'}))
    for each, error in zip(made, (None, errors.DuplicateDomain, None, None, None, None, errors.PoolNotFound)):
        if error is not None:
            with pytest.raises(error):
                each.result()
    assert sorted(type(each.exception()).__name__ for each in made[2:4]) == ['DuplicateDomain', 'NoneType']
    assert [made[number].result().name for number in (0, 4, 5)] == ['a.example.', 'b.example.', 'upper.b.example.']
    assert 'a.example.' not in single


def test_projects_are_kept_apart(central: Central) -> None:
    *made, red, below_red = created(central, (RED, 'rose.example.'), (BLUE, 'blue.example.'), (BLUE, 'navy.example.'),
                                    (RED, 'red.example.'), (BLUE, 'below.red.example.'))
    assert [each.result().project_id for each in made] == ['red', 'blue', 'blue']
    assert {getattr(future.exception(), 'type', None) for future in (red, below_red)} in (
        {None, 'illegal_child'}, {None, 'illegal_parent'})


def test_what_fails_together_is_done_one_by_one(central: Central, caller: Caller,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise ValueError('one of them')

    single = created_alone(monkeypatch)
    monkeypatch.setattr(domain_creator.domains, 'insert_many', fail)
    made = [each.result() for each in created(central, (WHO, 'a.example.'), (WHO, 'b.example.'))]
    assert sorted(single) == ['a.example.', 'b.example.']
    assert [domain.name for _, domain in caller.cast_domains].count('a.example.') == 1
    assert {each.name for each in central.find_domains(WHO)} == {each.name for each in made}


# Writers of SQLite wait for one another.
@pytest.mark.parametrize('database_kind', ['mariadb', 'postgresql'], indirect=True)
def test_one_whose_name_somebody_inserts_waits_alone(central: Central, database: Storage,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    pool, = central.find_pools(WHO)
    single = created_alone(monkeypatch)
    wanted = requests.new_domain({'name': 'held.example.', 'email': 'hostmaster@example.com'})
    with database.engine.connect() as tx, ThreadPoolExecutor(1) as threads:
        domains.insert(tx, domain_rules.create(new_id(), wanted, pool, 'red', None, 0, utcnow()))
        made = threads.submit(created, central, (RED, 'held.example.'), (RED, 'a.example.'), (BLUE, 'b.example.'),
                              (BLUE, 'c.example.'))
        wait_until(lambda: {each.name for each in central.find_domains(WHO)} == {
            f'{label}.example.' for label in 'abc'}, 'the others are created')
        tx.rollback()
        held, *others = made.result(60)
    assert sorted(single) == ['a.example.', 'held.example.']
    assert held.result().name == 'held.example.' and [each.result().name for each in others] == [
        'a.example.', 'b.example.', 'c.example.']
    with database.engine.connect() as tx:  # a session goes on as before
        if tx.dialect.name == 'mysql':
            assert tx.exec_driver_sql('SELECT @@innodb_lock_wait_timeout').scalar_one() == 10


# SQLite has one writer.
@pytest.mark.parametrize('database_kind', ['mariadb', 'postgresql'], indirect=True)
@pytest.mark.parametrize('insert, others', [('insert', ()), ('insert_many', ('b.example.',))])
def test_one_whose_name_was_created_and_deleted_meanwhile_is_of_a_later_generation(
        central: Central, monkeypatch: pytest.MonkeyPatch, insert: str, others: tuple[str, ...]) -> None:
    create(central, 'first.example.')  # locks of names are made with the first
    gone: list[Domain] = []
    once = getattr(domains, insert)

    def meanwhile(*arguments: Any) -> None:
        monkeypatch.setattr(domains, insert, once)
        wanted = requests.new_domain({'name': 'a.example.', 'email': 'hostmaster@example.com'})
        gone.append(central.delete_domain(WHO, central.creator.create_one(WHO, wanted, [[]]).id))
        once(*arguments)

    monkeypatch.setattr(domains, insert, meanwhile)
    made, *rest = [each.result() for each in created(central, *((WHO, name) for name in ('a.example.', *others)))]
    assert made.generation > gone[0].generation and newer(made.serial, gone[0].serial)
    assert [each.name for each in rest] == [*others]


def test_secondary_zones_and_large_ones_wait_for_nobody(central: Central) -> None:
    large = [{'name': f'h{number}.large.example.', 'type': 'A', 'records': ['192.0.2.1', '192.0.2.2', '192.0.2.3']}
             for number in range(67)]
    with central.creator._requests._calls._turn:
        central.create_domain(WHO, {'name': 'secondary.example.', 'masters': ['203.0.113.1:53']})
        domain = central.create_domain(WHO, {'name': 'large.example.', 'email': 'hostmaster@example.com'}, large)
    assert len(central.find_recordsets(WHO, domain.id, PageRequest({'type': 'A'}, limit=200))) == 67


def test_a_commit_of_creations_whose_answer_is_lost(central: Central, caller: Caller, database: Storage,
                                                    lost_answers: None) -> None:
    made = [each.result() for each in created(central, (WHO, 'a.example.'), (WHO, 'b.example.'), (WHO, 'c.example.'))]
    assert [each.name for each in made] == ['a.example.', 'b.example.', 'c.example.']
    assert sorted(each.id for each in central.find_domains(WHO)) == sorted(each.id for each in made)
    assert sorted(domain.name for _, domain in caller.cast_domains) == [each.name for each in made]


def test_one_that_is_held_up_holds_up_others_once(central: Central) -> None:
    waiting = central.creator._requests._calls
    waiting._timeout = 0.01
    with waiting._turn:
        create(central, 'a.example.')
        waiting._timeout = 60
        create(central, 'b.example.')


def deleted(central: Central, requests: Sequence[tuple[Any, ...]]) -> list[Future[Domain]]:
    """Deletions that come together, and have ended."""
    return together(central._deletions, *(functools.partial(
        central.delete_domain, dataclasses.replace(who, request_id=f'req-{number}'), *rest)
        for number, (who, *rest) in enumerate(requests)))


def test_deletions_are_one_transaction(central: Central, caller: Caller, database: Storage,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    there = [create(central, f'd{number}.example.') for number in range(9)]
    single = noted(monkeypatch, domain_changes, 'delete_domain', lambda tx, request, *rest: request.domain_id)
    with count_statements(database) as one:
        central.delete_domain(WHO, there[8].id)
    with count_statements(database) as counted:
        made = [each.result() for each in deleted(central, [(WHO, domain.id) for domain in there[:8]])]
    assert single == [there[8].id]
    # What is saved of each domain is a statement of its own, and how long locks are waited for is set and reset.
    assert sum(count for statement, count in counted.items() if not statement.startswith('UPDATE domains')) \
        <= one.total() + 2
    for number, domain in enumerate(made):
        assert (domain.id, domain.action, domain.status) == (there[number].id, Action.DELETE, Status.PENDING)
        assert domain.request_id == f'req-{number}' and ('delete_domain', domain) in caller.cast_domains
        assert database.read(domains.get, domain.id) == domain


def test_each_ends_as_by_itself(central: Central, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, going, foreign, shared, agreed, twice = (
        create(central, f'{name}.example.', who=RED) for name in ('plain', 'going', 'foreign', 'a', 'b', 'twice'))
    central.delete_domain(RED, going.id)
    for domain in (shared, agreed):
        central.share_domain(RED, domain.id, {'target_project_id': 'blue'})
    single = noted(monkeypatch, domain_changes, 'delete_domain', lambda tx, request, *rest: request.domain_id)
    made = deleted(central, [(RED, plain.id), (RED, going.id), (BLUE, foreign.id), (RED, shared.id),
                             (RED, agreed.id, True), (RED, twice.id), (RED, twice.id), (RED, 'f' * 32)])
    assert [type(each.exception()) for each in made] == [
        type(None), type(None), errors.DomainNotFound, errors.Refused, type(None), type(None), type(None),
        errors.DomainNotFound]
    assert sorted(single) == sorted([agreed.id, twice.id, 'f' * 32])
    assert {each.name: each.action for each in central.find_domains(RED)} == {
        **{f'{name}.example.': Action.DELETE for name in ('plain', 'going', 'b', 'twice')},
        'foreign.example.': Action.CREATE, 'a.example.': Action.CREATE}


def test_a_commit_of_deletions_whose_answer_is_lost(central: Central, lost_answers: None) -> None:
    there = [create(central, f'd{number}.example.') for number in range(3)]
    made = [each.result() for each in deleted(central, [(WHO, domain.id) for domain in there])]
    assert [(domain.action, domain.generation) for domain in made] == [(Action.DELETE, 2)] * 3
