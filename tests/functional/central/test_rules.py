"""The rules of validation at the doors of Central: what is refused, with the field, whichever way it comes in."""

from __future__ import annotations

import dataclasses

import pytest

from designate_pool import errors
from designate_pool.central import zonefile_parser
from designate_pool.central.rules.quotas import CACHED
from designate_pool.central.service import Central
from designate_pool.model import Context, Domain, Pool, RecordChange, Server
from designate_pool.pool_manager.server_registry import write_servers
from designate_pool.settings import CentralSettings
from designate_pool.storage.sql.database import Storage
from tests.fixtures.central import WHO, Clock, contents, create

OWNER = Context(project_id=CentralSettings().managed_resource_tenant_id, all_projects=True)
RESOURCE = {'plugin': 'nova_fixed', 'resource_type': 'instance', 'resource_id': 'i-1'}
DS = '12345 13 2 ' + 'ab' * 32


@pytest.fixture
def domain(central: Central) -> Domain:
    return create(central, 'example.com.', ('old.example.com.', 'DNAME', ['example.net.']),
                  ('www.example.com.', 'A', ['192.0.2.1']))


#: A field and one recordset.
WRONG = [
    ('name', 'below.old.example.com.', 'A', '192.0.2.1'), ('type', 'example.com.', 'DNAME', 'example.net.'),
    ('name', '*.example.com.', 'NS', 'ns1.example.net.'), ('type', 'example.com.', 'DS', DS),
    ('type', 'example.com.', 'CNAME', 'example.net.'), ('type', 'www.example.com.', 'CNAME', 'example.net.'),
    ('type', 'old.example.com.', 'NS', 'ns1.example.net.'), ('records[0]', 'x.example.com.', 'X25', '"12"'),
    ('records', 'x.example.com.', 'TXT', ' '.join(['"' + 'x' * 255 + '"'] * 254)),
]


@pytest.mark.parametrize(('field', 'name', 'rtype', 'record'), WRONG, ids=lambda value: value[:40])
def test_a_recordset_that_breaks_a_rule(central: Central, domain: Domain, field: str, name: str, rtype: str,
                                        record: str) -> None:
    before = contents(central, domain)
    with pytest.raises(errors.InvalidField) as caught:
        central.create_recordset(WHO, domain.id, {'name': name, 'type': rtype, 'records': [record]})
    assert caught.value.kwargs['field'] == field
    with pytest.raises(errors.InvalidField) as caught:
        central.apply_changes(WHO, domain.id, [RecordChange('old.example.com.', 'TXT', ('"x"',)),
                                               RecordChange(name, rtype, (record,))])
    assert caught.value.kwargs['field'] == f'changes[1].{field}'
    assert contents(central, domain) == before


def test_a_change_that_mends_what_it_would_break(central: Central, domain: Domain) -> None:
    central.apply_changes(WHO, domain.id, [RecordChange('old.example.com.', 'DNAME'),
                                           RecordChange('below.old.example.com.', 'A', ('192.0.2.1',))])
    with pytest.raises(errors.InvalidField, match=r'changes\[0\].type: below.old.example.com. A: it lies below'):
        central.apply_changes(WHO, domain.id, [RecordChange('old.example.com.', 'DNAME', ('example.net.',))])
    central.apply_changes(WHO, domain.id, [RecordChange('old.example.com.', 'DNAME', ('example.net.',)),
                                           RecordChange('below.old.example.com.', 'A')])
    assert 'old.example.com. DNAME example.net.' in contents(central, domain)


def test_tlsa_at_a_port_that_there_is_not(central: Central, domain: Domain) -> None:
    with pytest.raises(errors.BadInput, match='name: 65536 is no port') as caught:
        central.create_recordset(WHO, domain.id, {'name': '_65536._tcp.example.com.', 'type': 'TLSA',
                                                  'records': ['3 1 1 ' + 64 * 'a']})
    assert caught.value.type == 'bad_request'  # as in Designate


def test_a_zone_is_not_created_with_what_breaks_a_rule(central: Central) -> None:
    with pytest.raises(errors.InvalidField) as caught:
        create(central, 'example.org.', ('www.old.example.org.', 'A', ['192.0.2.1']),
               ('old.example.org.', 'DNAME', ['example.net.']))
    assert caught.value.kwargs['field'] == 'recordsets[0].name'


def test_what_a_server_of_the_pool_does_not_take(central: Central, database: Storage, clock: Clock) -> None:
    domain = create(central, 'example.com.')
    many = {'name': 'www.example.com.', 'type': 'A', 'records': [f'192.0.2.{number}' for number in range(101)]}
    elsewhere = create(central, 'example.org.')
    central.create_recordset(WHO, elsewhere.id, many | {'name': 'www.example.org.'})
    server = Server('0' * 32, 'bind9', '192.0.2.53')
    write_servers_of(database, 'default', server, clock)
    with pytest.raises(errors.InvalidField, match='BIND takes 100 records .* not 101 .bind9:192.0.2.53') as caught:
        central.create_recordset(WHO, domain.id, many)
    assert caught.value.kwargs['field'] == 'records'
    with pytest.raises(errors.InvalidField, match=r'changes\[0\].records: BIND takes'):
        central.apply_changes(WHO, domain.id, [RecordChange(many['name'], 'A', tuple(many['records']))])
    write_servers_of(database, 'default', dataclasses.replace(server, options={'max_records_per_type': 0}), clock)
    more = [f'192.0.2.{number}' for number in range(110)]
    stored = central.create_recordset(WHO, domain.id, many | {'records': more})
    https = central.create_recordset(WHO, domain.id, many | {'type': 'HTTPS', 'records': ['1 . alpn=h2']})
    write_servers_of(database, 'default', server, clock)
    central.update_recordset(WHO, domain.id, stored.id, {'records': many['records']})  # it may shrink
    write_servers_of(database, 'default', Server('1' * 32, 'nsd', '192.0.2.54'), clock)
    central.delete_recordset(WHO, domain.id, https.id)


def private(name: str, *numbers: int) -> list[RecordChange]:
    return [RecordChange(name, f'TYPE{65280 + number}', ('\\# 1 00',)) for number in numbers]


def test_more_types_at_a_name_than_a_server_of_the_pool_takes(central: Central, database: Storage,
                                                              clock: Clock) -> None:
    """Those that are stored are counted with those that come."""
    domain = create(central, 'example.com.')
    reverse = create(central, '2.0.192.in-addr.arpa.', who=OWNER)
    name = '1.2.0.192.in-addr.arpa.'
    write_servers_of(database, 'default', Server('0' * 32, 'bind9', '192.0.2.53'), clock)
    central.apply_changes(WHO, domain.id, [*private('www.example.com.', *range(60)), *private('example.com.', 0)])
    central.apply_changes(WHO, domain.id, private('www.example.com.', *range(40, 100)))
    central.apply_changes(OWNER, reverse.id, private(name, *range(100)))
    before = contents(central, domain)
    new = {'name': 'www.example.com.', 'type': 'A', 'records': ['192.0.2.1']}
    for refused, field in (
            (lambda: central.create_recordset(WHO, domain.id, new), 'type'),
            (lambda: central.apply_changes(WHO, domain.id, private('www.example.com.', 100)), r'changes\[0\].type'),
            (lambda: central.apply_changes(WHO, domain.id, private('example.com.', *range(99))),
             r'changes\[98\].type'),
            (lambda: central.set_resource_records(WHO, RESOURCE, domain.id, [
                {'name': new['name'], 'type': 'A', 'data': '192.0.2.1'}], None), 'type'),
            (lambda: central.set_floating_ip(WHO, {'region': 'one', 'id': 'f-1', 'address': '192.0.2.1'},
                                             {'ptrdname': 'www.example.com.'}), 'type')):
        with pytest.raises(errors.InvalidField, match=f'^{field}: BIND takes 100 types at a name .*, not 101'):
            refused()
    assert contents(central, domain) == before
    central.apply_changes(WHO, domain.id, [RecordChange('www.example.com.', 'TYPE65280'),
                                           RecordChange('www.example.com.', 'A', ('192.0.2.1',))])


def test_a_name_with_many_types_is_counted_across_the_parts_of_a_zone_file(
        central: Central, database: Storage, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zonefile_parser, 'PART', 30)
    write_servers_of(database, 'default', Server('0' * 32, 'bind9', '192.0.2.53'), clock)
    text = '$ORIGIN example.com.\n@ 300 SOA ns1 hostmaster 1 1 1 1 1\n' + ''.join(
        f'{name} 300 TYPE{65280 + number} \\# 1 00\n' for name in ('a', 'b', 'c')
        for number in range(101 if name == 'b' else 100))
    for wrong in (text, text.replace('a 300 TYPE65379', 'd 300 TYPE65379')):
        new, sets = zonefile_parser.parse(wrong)
        with pytest.raises(errors.InvalidField, match='line 203, type: BIND takes 100 types'):
            central.creator.create_one(WHO, new, sets.parts())
    new, sets = zonefile_parser.parse(text.replace('b 300 TYPE65380', 'd 300 TYPE65380'))
    central.creator.create_one(WHO, new, sets.parts())


@pytest.mark.parametrize('name', ['a*b.example.com.', r'a\.b.example.com.', r'\200.example.com.'])
def test_a_zone_whose_name_a_server_of_the_pool_does_not_take(central: Central, database: Storage, clock: Clock,
                                                              name: str) -> None:
    central.create_pool(WHO, {'name': 'second', 'name_servers': ['ns1.example.org.']})
    target, = (pool for pool in central.find_pools(WHO) if pool.name == 'second')
    for pool, driver in (('second', 'pdns'), ('default', 'bind9')):
        write_servers_of(database, pool, Server(driver.ljust(32, '0'), driver, '192.0.2.53'), clock)
    domain = create(central, name)
    with pytest.raises(errors.BadInput, match='second do not take it: .* PowerDNS takes letters'):
        central.move_domain(WHO, domain.id, target.id)
    others = {'name': name.replace('example', 'other'), 'pool_id': target.id}
    for refused in (lambda: central.create_domain(WHO, others | {'email': 'a@example.com'}),
                    lambda: central.create_domain(WHO, others | {'masters': ['198.51.100.1']})):
        with pytest.raises(errors.InvalidField, match='^name: PowerDNS takes letters'):
            refused()
    central.create_domain(WHO, others | {'name': '64/26.2.0.192.in-addr.arpa.', 'email': 'a@example.com'})


def test_a_zone_is_not_moved_to_a_pool_that_does_not_take_it(central: Central, database: Storage, clock: Clock) -> None:
    records = [f'192.0.2.{number}' for number in range(101)]
    domain = create(central, 'example.com.', ('www.example.com.', 'A', records))
    target = central.create_pool(WHO, {'name': 'second', 'name_servers': ['ns1.example.org.']})
    write_servers_of(database, 'second', Server('0' * 32, 'bind9', '192.0.2.53'), clock)
    with pytest.raises(errors.BadInput, match='pool second do not take it: www.example.com. A: BIND takes 100'):
        central.move_domain(WHO, domain.id, target.id)


def write_servers_of(database: Storage, pool_name: str, server: Server, clock: Clock) -> None:
    """Register the server as the only one of the pool, and wait until Central reads its limits again."""
    database.run(write_servers, Pool(pool_name, servers=(server,)), False, False, clock.moment())
    clock.now += CACHED.total_seconds()


def test_what_is_stored_is_validated(central: Central, database: Storage, clock: Clock) -> None:
    domain = create(central, 'example.com.', ('www.example.com.', 'A', [f'192.0.2.{number}' for number in range(101)]),
                    ('example.com.', 'MX', ['10 mail.example.com.']))
    write_servers_of(database, 'default', Server('0' * 32, 'bind9', '192.0.2.53'), clock)
    assert [(violation.rule.id, violation.name, violation.type)
            for violation in central.validate_domain(WHO, domain.id)] == [
        ('server-limit', 'www.example.com.', 'A'), ('target-missing', 'example.com.', 'MX')]
