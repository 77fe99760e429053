"""What a change leaves in the database, pools' attributes included, on each kind of database."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from designate_pool.central.service import Central
from designate_pool.errors import InvalidField
from designate_pool.model import Domain, Outcome, PageRequest, Pool, Status
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains, pool_attributes, records
from tests.fixtures.central import WHO, WWW, create, succeed


def served(database: Storage, domain: Domain) -> dict[str, tuple[int, str, str]]:
    """Serial, task and status of the A records of *domain*, by their data."""
    query = sa.select(records.c.data, records.c.serial_number, records.c.task, records.c.status).where(
        records.c.domain_id == domain.id, records.c.data.like('192.0.2.%'))
    return database.read(lambda tx: {row[0]: (row[1], str(row[2]), str(row[3])) for row in tx.execute(query)})


def test_a_record_that_changes_has_the_new_serial_of_its_domain(central: Central, database: Storage) -> None:
    domain = create(central, 'example.com.', WWW)
    first = domain.serial
    assert served(database, domain) == {'192.0.2.1': (first, 'ADD', 'PENDING'), '192.0.2.2': (first, 'ADD', 'PENDING')}
    succeed(central, domain)
    (www,) = central.find_recordsets(WHO, domain.id, PageRequest({'type': 'A'}))
    central.update_recordset(WHO, domain.id, www.id, {'records': ['192.0.2.2', '192.0.2.3']})
    second = central.get_domain(WHO, domain.id)
    assert second.serial == first + 1 and second.status is Status.PENDING
    assert served(database, domain) == {'192.0.2.1': (second.serial, 'DELETE', 'PENDING'),
                                        '192.0.2.2': (first, 'NONE', 'ACTIVE'),
                                        '192.0.2.3': (second.serial, 'ADD', 'PENDING')}
    succeed(central, second)
    central.update_recordset(WHO, domain.id, www.id, {'ttl': 60})
    third = central.get_domain(WHO, domain.id)
    assert third.serial == first + 2
    assert served(database, domain) == {'192.0.2.1': (second.serial, 'NONE', 'DELETED'),
                                        '192.0.2.2': (third.serial, 'UPDATE', 'PENDING'),
                                        '192.0.2.3': (third.serial, 'UPDATE', 'PENDING')}


def test_records_to_be_deleted_go_through_an_error(central: Central, database: Storage) -> None:
    domain = succeed(central, create(central, 'example.com.', WWW))
    (www,) = central.find_recordsets(WHO, domain.id, PageRequest({'type': 'A'}))
    central.update_recordset(WHO, domain.id, www.id, {'records': ['192.0.2.2']})
    first = central.get_domain(WHO, domain.id)
    central.create_recordset(WHO, domain.id, {'name': 'a.example.com.', 'type': 'A', 'records': ['192.0.2.9']})
    second = central.get_domain(WHO, domain.id)
    before = served(database, domain)
    assert before['192.0.2.1'] == (first.serial, 'DELETE', 'PENDING')
    central.update_status(WHO, domain, Outcome.ERROR, first.serial)
    failed = served(database, domain)
    assert failed['192.0.2.1'] == (first.serial, 'DELETE', 'ERROR')
    assert failed['192.0.2.9'] == (second.serial, 'ADD', 'PENDING')
    central.update_status(WHO, domain, Outcome.SUCCESS, first.serial)
    done = served(database, domain)
    assert done['192.0.2.1'] == (first.serial, 'NONE', 'DELETED')
    assert done['192.0.2.9'] == (second.serial, 'ADD', 'PENDING')


def test_nobody_says_that_a_domain_is_active_but_the_pool_manager(central: Central, database: Storage) -> None:
    values = {'name': 'example.com.', 'email': 'hostmaster@example.com'}
    with pytest.raises(InvalidField):
        central.create_domain(WHO, {**values, 'status': 'ACTIVE'})
    domain = central.create_domain(WHO, values)
    with pytest.raises(InvalidField):
        central.update_domain(WHO, domain.id, {'status': 'ACTIVE'})
    central.update_domain(WHO, domain.id, {'ttl': 60})
    stored = sa.select(domains.c.status).where(domains.c.id == domain.id)
    assert database.read(lambda tx: tx.execute(stored).scalar_one()) is Status.PENDING
    succeed(central, central.get_domain(WHO, domain.id))
    assert database.read(lambda tx: tx.execute(stored).scalar_one()) is Status.ACTIVE


def test_what_a_pool_notifies_and_its_name_servers_are_attributes(central: Central, database: Storage) -> None:
    made = central.create_pool(WHO, {'name': 'second', 'also_notifies': ['192.0.2.1:53'],
                                     'name_servers': ['b.example.', 'a.example.']})
    query = sa.select(pool_attributes.c.key, pool_attributes.c.value).where(
        pool_attributes.c.pool_id == made.id).order_by(pool_attributes.c.key, pool_attributes.c.position)
    assert [tuple(row) for row in database.read(lambda tx: tx.execute(query).all())] == [
        ('also_notify', '192.0.2.1:53'), ('name_server', 'b.example.'), ('name_server', 'a.example.')]
    central.update_pool(WHO, {'id': made.id, 'name_servers': ['c.example.']})
    assert [tuple(row) for row in database.read(lambda tx: tx.execute(query).all())] == [
        ('also_notify', '192.0.2.1:53'), ('name_server', 'c.example.')]


def test_pools_are_found_page_by_page(central: Central) -> None:
    names = ['default', *(central.create_pool(WHO, {'name': f'p{number}'}).name for number in range(4))]
    for sort_dir, expected in (('asc', names), ('desc', names[::-1])):
        pools: list[Pool] = []
        while page := central.find_pools(WHO, marker=pools[-1].id if pools else None, limit=2, sort_key='name',
                                         sort_dir=sort_dir):
            assert len(page) <= 2
            pools.extend(page)
        assert [pool.name for pool in pools] == expected
    assert [pool.name for pool in central.find_pools(WHO, {'name': 'p*'}, sort_key='name')] == names[1:]
