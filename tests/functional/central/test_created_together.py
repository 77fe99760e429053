"""Domains whose requests come together: one transaction, and for each what it would be by itself."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from designate_pool import errors
from designate_pool.central import domain_creator
from designate_pool.central.rules import domains as domain_rules
from designate_pool.central.service import Central
from designate_pool.central.validation import requests
from designate_pool.model import Context, Domain, PageRequest, Status, new_id, utcnow
from designate_pool.serial import newer
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import domains
from testing.databases import count_statements
from testing.processes import wait_until
from tests.fixtures.central import WHO, Caller, contents, create, noted, together

pytestmark = pytest.mark.all_databases

RED, BLUE = Context(project_id='red'), Context(project_id='blue')


def created(central: Central,
            *wanted: tuple[Context, str] | tuple[Context, str, Mapping[str, Any]]) -> list[Future[Domain]]:
    """Creations that come together, and have ended."""
    return together(central.creator._requests, *(functools.partial(
        central.create_domain, dataclasses.replace(who, request_id=f'req-{number}'),
        {'name': name, 'email': 'hostmaster@example.com', **dict(*more)},
        [{'name': f'www.{name}', 'type': 'A', 'records': ['192.0.2.1']}])
        for number, (who, name, *more) in enumerate(wanted)))


def alone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that are created by themselves."""
    return noted(monkeypatch, domain_creator, 'create_domain', lambda *arguments: arguments[4].name)


def test_they_are_one_transaction(central: Central, caller: Caller, database: Storage,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    create(central, 'first.example.')  # locks of names are made with the first
    single = alone(monkeypatch)
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


def test_each_gets_the_error_that_it_would_get_by_itself(central: Central, monkeypatch: pytest.MonkeyPatch) -> None:
    create(central, 'taken.example.', who=RED)
    single = alone(monkeypatch)
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

    single = alone(monkeypatch)
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
    single = alone(monkeypatch)
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


def test_a_commit_whose_answer_is_lost(central: Central, caller: Caller, database: Storage,
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
