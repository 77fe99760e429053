"""``designate-pool-manage designate``: from a database of Designate to ours."""

from __future__ import annotations

import pathlib
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from designate_pool.cmd.takeover import zone_copy
from designate_pool.errors import ContentsNotKept
from designate_pool.model import ServerState, utcnow
from designate_pool.storage.designate import tables
from designate_pool.storage.operations import pool_servers
from designate_pool.storage.sql import schema
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.zones import tsigkeys, versions
from testing import designate as theirs, stack
from testing.designate import CREATED, POOL_ID, SERIAL, UPDATED

Manage = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.slow

POOLS = """
- name: default
  ns_records: [{hostname: ns1.example.net., priority: 1}, {hostname: ns2.example.net., priority: 2}]
  nameservers: [{host: 192.0.2.1, port: 53}, {host: 192.0.2.9, port: 5300}]
  targets:
    - {type: bind9, description: one, masters: [{host: 192.0.2.5, port: 5354}],
       options: {host: 192.0.2.1, port: 53, rndc_host: 192.0.2.1, rndc_key_file: /etc/rndc.key, view: outer}}
    - {type: pdns4, description: two, masters: [{host: 192.0.2.5, port: 5354}],
       options: {host: 192.0.2.2, port: 5353, api_endpoint: 'http://192.0.2.2:8081', api_token: 'to$ken'}}
"""


@pytest.fixture
def ours(emptied_database: Storage) -> Storage:
    return emptied_database


@pytest.fixture
def designate(ours: Storage, tmp_path: pathlib.Path, request: pytest.FixtureRequest) -> Iterator[Storage]:
    """A database of Designate, on a server of the kind on which ours is."""
    kind = {'mysql': 'mariadb'}.get(ours.engine.dialect.name, ours.engine.dialect.name)
    url = (f'sqlite:///{tmp_path}/designate.sqlite' if kind == 'sqlite'
           else request.getfixturevalue(kind).create_database())
    found = theirs.new(url)
    yield found
    found.close()


@pytest.fixture
def manage(ours: Storage, designate: Storage, tmp_path: pathlib.Path) -> Manage:
    """Run a command of ``designate-pool-manage designate``."""
    (tmp_path / 'designate.conf').write_text(
        f'[storage:sqlalchemy]\nconnection = {designate.engine.url.render_as_string(hide_password=False)}\n')
    (tmp_path / 'pools.yaml').write_text(POOLS)
    (tmp_path / 'pool.conf').write_text(
        f'[database]\nconnection = {ours.engine.url.render_as_string(hide_password=False)}\n'
        '[backend:fake:11111111-1111-4111-8111-111111111111]\nhost = 127.0.0.1\n')

    def manage(*words: str) -> tuple[int, str, str]:
        return stack.manage(tmp_path / 'pool.conf', 'designate', *words,
                            '--designate-conf', str(tmp_path / 'designate.conf'))

    return manage


def rows(storage: Storage, table: sa.Table) -> dict[str, Any]:
    return {row.id: row for row in storage.read(lambda tx: tx.execute(sa.select(table)).all())}


def contents(storage: Storage) -> set[tuple[str, str, str]]:
    """Name, type and data of all records here."""
    sets, found = rows(storage, schema.recordsets), rows(storage, schema.records)
    return {(sets[row.recordset_id].name, sets[row.recordset_id].type, row.data) for row in found.values()}


def the_domain(storage: Storage) -> Any:
    domain, = rows(storage, schema.domains).values()
    return domain


@pytest.mark.all_databases
def test_a_copy_has_what_designate_has(ours: Storage, designate: Storage, manage: Manage) -> None:
    def fill(tx: Tx) -> tuple[str, str]:
        zone = theirs.insert_zone(tx, 'example.com.', {('www', 'A'): ['192.0.2.1', '192.0.2.2'],
                                                       ('', 'MX'): ['10 Mail.example.com.']})
        text = theirs.add_recordset(tx, zone, 'text.example.com.', 'TXT', ['plain text', '"plain text"'], ttl=60,
                                    description='ünï', version=7, updated_at=UPDATED)
        theirs.add_recordset(tx, zone, 'vm.example.com.', 'A', ['192.0.2.7'], managed=True)
        theirs.insert(tx, tables.zone_attributes, zone_id=zone, key='tier', value='gold')
        return zone, text

    zone, text = designate.run(fill)
    code, told, errors = manage('copy')
    assert (code, errors) == (0, '')
    assert told.startswith('1 zones in Designate; written here: 1 zones, 6 recordsets, 7 records in ')
    domain = the_domain(ours)
    assert (domain.id, domain.pool_id, domain.name) == (zone, POOL_ID, 'example.com.')
    assert domain.project_id == 'some-project'
    assert (domain.status, domain.action, domain.serial, domain.reported_serial) == ('ACTIVE', 'NONE', SERIAL, SERIAL)
    assert (domain.created_at, domain.updated_at, domain.version) == (CREATED, UPDATED, 5)
    assert (domain.refresh, domain.attributes) == (3587, '{"tier": "gold"}')
    version, = ours.read(versions.find, zone)
    assert (version.kind, version.actor.user, version.serial) == ('TAKEOVER', 'takeover', SERIAL)
    assert version.created_at and version.created_at > utcnow() - timedelta(hours=1)
    assert ours.read(versions.rows_at, zone, utcnow())[0].serial == SERIAL
    with pytest.raises(ContentsNotKept, match='it was taken over at 20'):
        ours.read(versions.rows_at, zone, version.created_at - timedelta(seconds=1))
    their_sets, our_sets = rows(designate, tables.recordsets), rows(ours, schema.recordsets)
    assert {key: (row.name, row.type, row.ttl) for key, row in their_sets.items()} == {
        key: (row.name, row.type, row.ttl) for key, row in our_sets.items()}
    assert {(row.type, row.name) for row in our_sets.values() if row.managed} == {
        ('SOA', 'example.com.'), ('NS', 'example.com.'), ('A', 'vm.example.com.')}
    assert (our_sets[text].description, our_sets[text].version, our_sets[text].updated_at) == ('ünï', 7, UPDATED)
    assert contents(ours) == {
        ('example.com.', 'NS', 'ns1.example.net.'), ('example.com.', 'NS', 'ns2.example.net.'),
        ('example.com.', 'MX', '10 Mail.example.com.'), ('www.example.com.', 'A', '192.0.2.1'),
        ('www.example.com.', 'A', '192.0.2.2'), ('text.example.com.', 'TXT', '"plain text"'),
        ('vm.example.com.', 'A', '192.0.2.7')}
    our_records = rows(ours, schema.records)
    assert our_records.keys() < rows(designate, tables.records).keys()
    assert {(str(row.task), str(row.status)) for row in our_records.values()} == {('NONE', 'ACTIVE')}


def test_a_copy_has_the_pool_and_the_lists(ours: Storage, designate: Storage, manage: Manage) -> None:
    def fill(tx: Tx) -> None:
        zone = theirs.insert_zone(tx, 'example.com.')
        theirs.insert(tx, tables.pool_also_notifies, pool_id=POOL_ID, host='192.0.2.66', port=53)
        theirs.insert(tx, tables.pool_attributes, pool_id=POOL_ID, key='tier', value='gold')
        theirs.insert(tx, tables.quotas, tenant_id='some-project', resource='zones', hard_limit=7)
        theirs.insert(tx, tables.quotas, tenant_id='some-project', resource='cats', hard_limit=9)
        theirs.insert(tx, tables.tlds, name='com')
        theirs.insert(tx, tables.blacklists, pattern='^bad\\.', description='Not this')
        theirs.insert(tx, tables.tsigkeys, name='for-all', algorithm='hmac-sha256', secret='c2VjcmV0', scope='POOL',
                      resource_id=POOL_ID)
        theirs.insert(tx, tables.tsigkeys, name='elsewhere', algorithm='hmac-sha256', secret='c2VjcmV0', scope='POOL',
                      resource_id='1' * 32)
        asked = theirs.insert(tx, tables.zone_transfer_requests, zone_id=zone, key='abcdefgh', tenant_id='some-project',
                              target_tenant_id='other', description='Take it', status='COMPLETE')
        theirs.insert(tx, tables.zone_shares, zone_id=zone, project_id='some-project', target_project_id='guest')
        theirs.add_recordset(tx, zone, 'guest.example.com.', 'A', ['192.0.2.1'], tenant_id='guest')
        theirs.insert(tx, tables.zone_transfer_accepts, zone_id=zone, zone_transfer_request_id=asked,
                      tenant_id='other', status='COMPLETE')

    designate.run(fill)
    code, _, errors = manage('copy')
    assert (code, errors) == (1, 'not copied: quota cats of some-project: unknown; known are zones, zone_recordsets, '
                                 'zone_records, recordset_records, api_export_size, deletes_per_hour, '
                                 'zone_deletes_per_hour\n')
    pool, = rows(ours, schema.pools).values()
    assert (pool.id, pool.name, pool.description, pool.version) == (POOL_ID, 'default', 'The pool', 3)
    assert {(row.key, row.position, row.value) for row in rows(ours, schema.pool_attributes).values()} == {
        ('name_server', 0, 'ns1.example.net.'), ('name_server', 1, 'ns2.example.net.'),
        ('also_notify', 0, '192.0.2.66:53'), ('attribute.tier', 0, 'gold')}
    for name in ('tlds', 'blacklists', 'zone_transfer_requests', 'zone_transfer_accepts', 'zone_shares'):
        assert rows(ours, schema.metadata.tables[name]).keys() == rows(designate, getattr(tables, name)).keys(), name
    assert [tuple(row)[:2] for row in ours.read(lambda tx: tx.execute(sa.select(schema.quotas)).all())] == [
        ('some-project', 'zones')]
    assert {row.name: row.project_id for row in rows(ours, schema.recordsets).values()} == {
        'example.com.': None, 'guest.example.com.': 'guest'}
    assert the_domain(ours).shared
    grant, = ours.read(tsigkeys.grants)
    assert (grant.key.name, grant.pool_name) == ('for-all', 'default')
    designate.run(lambda tx: tx.execute(sa.delete(tables.tlds)))
    assert manage('copy')[0] == 1
    assert not rows(ours, schema.tlds)


def test_the_pool_that_the_tables_come_with_has_no_times(ours: Storage, designate: Storage, manage: Manage) -> None:
    designate.run(lambda tx: tx.execute(sa.update(tables.pools).values(created_at=None)))
    assert manage('copy')[0] == 0
    pool, = rows(ours, schema.pools).values()
    assert pool.created_at == pool.updated_at == theirs.UPDATED


def test_nothing_is_copied_over_zones_that_servers_get_from_here(ours: Storage, designate: Storage,
                                                                 manage: Manage) -> None:
    zone = designate.run(theirs.insert_zone, 'example.com.')
    assert manage('copy')[0] == 0
    server, = ours.read(pool_servers.of_pool, 'default').servers
    assert (server.state, server.filled_to) == (ServerState.MAINTENANCE, None), 'it rests until they are taken over'
    assert not rows(ours, schema.pool_manager_status)
    ours.run(lambda tx: tx.execute(sa.insert(schema.pool_manager_status).values(
        id='1' * 32, created_at=CREATED, updated_at=CREATED, server_id='11111111111141118111111111111111',
        domain_id=zone, action='CREATE', expected_serial=SERIAL, attempts=1)))
    code, _, errors = manage('copy')
    assert code == 1
    assert 'the servers of the pool default get its zones from here already (fake:127.0.0.1:53)' in errors


def test_a_secondary_zone_is_copied_as_its_masters_had_it(ours: Storage, designate: Storage,
                                                          manage: Manage, tmp_path: pathlib.Path) -> None:
    def fill(tx: Tx) -> str:
        zone = theirs.insert_secondary(tx, 'second.example.', ['192.0.2.53:53', '2001:db8::53:5300'])
        theirs.insert(tx, tables.tsigkeys, name='for-second', algorithm='hmac-sha256', secret='c2VjcmV0', scope='ZONE',
                      resource_id=zone)
        return zone

    zone = designate.run(fill)
    assert manage('copy')[0] == 0
    domain = the_domain(ours)
    assert (domain.id, domain.masters, domain.serial, domain.ttl) == (
        zone, '192.0.2.53:53,[2001:db8::53]:5300', SERIAL, 900)
    assert (domain.soa_names, domain.email) == ('primary.second.example. admin.second.example.', 'admin@second.example')
    assert (domain.refresh, domain.retry, domain.expire, domain.minimum) == (1800, 300, 604800, 60)
    assert (domain.transferred_at, domain.awaits_transfer, domain.status) == (UPDATED, False, 'ACTIVE')
    assert contents(ours) == {('second.example.', 'NS', 'primary.second.example.'),
                              ('txt.second.example.', 'TXT', '"of the masters"')}
    sets = rows(ours, schema.recordsets).values()
    assert {(each.type, each.managed, each.project_id) for each in sets} == {
        ('SOA', True, None), ('NS', False, None), ('TXT', False, None)}
    assert [each.resource_id for each in rows(ours, schema.tsigkeys).values()] == [zone]
    # It is Designate that refreshes it, until its pool is in service here.
    assert not ours.read(lambda tx: tx.execute(sa.select(schema.secondary_zones)).all())
    assert manage('follow', '--once') == (0, '', '')

    def moved(tx: Tx) -> None:
        tx.execute(sa.update(tables.zone_masters).where(tables.zone_masters.c.port == 53).values(host='10.1.2.3'))
        theirs.settle(tx, zone, 0)

    designate.run(moved)
    code, _, errors = manage('follow', '--once')
    assert (code, errors.startswith('not copied: zone second.example.: masters.0: 10.1.2.3 is a private address; '
                                    '[service:central] master_networks ')) == (1, True)
    with (tmp_path / 'pool.conf').open('a') as file:
        file.write('[service:central]\nmaster_networks = 10.1.0.0/16\n')
    assert manage('plan', '--pools', str(tmp_path / 'pools.yaml'))[0] == 0
    assert manage('follow', '--once')[0] == 0
    assert the_domain(ours).masters == '10.1.2.3:53,[2001:db8::53]:5300'


def test_a_secondary_zone_that_was_never_transferred_is_copied_as_that(
        ours: Storage, designate: Storage, manage: Manage, tmp_path: pathlib.Path) -> None:
    zone = designate.run(theirs.insert_awaiting, 'second.example.', ['192.0.2.53:53'])
    code, told, _ = manage('plan', '--pools', str(tmp_path / 'pools.yaml'))
    assert (code, '  zone second.example.: it was never transferred; it is copied, and served when ' in told) == (
        0, True)
    assert manage('copy')[::2] == (0, '')
    domain = the_domain(ours)
    assert (domain.id, domain.masters, domain.serial, domain.status, domain.action) == (
        zone, '192.0.2.53:53', 1, 'PENDING', 'CREATE')
    assert (domain.awaits_transfer, domain.transferred_at, domain.reported_serial) == (True, None, None)
    assert manage('follow', '--once') == (0, '', '')

    def transferred(tx: Tx) -> None:
        tx.execute(sa.update(tables.zones).values(
            transferred_at=UPDATED, serial=SERIAL, version=6, status='ACTIVE', action='NONE'))
        theirs.add_recordset(tx, zone, 'second.example.', 'SOA',
                             [f'primary.second.example. admin.second.example. {SERIAL} 1800 300 604800 60'])

    designate.run(transferred)
    assert manage('follow', '--once')[0] == 0
    domain = the_domain(ours)
    assert (domain.awaits_transfer, domain.transferred_at, domain.status, domain.reported_serial) == (
        False, UPDATED, 'ACTIVE', SERIAL)
    # With other masters Designate forgets when it was, and serves on what it has.
    designate.run(lambda tx: (tx.execute(sa.update(tables.zones).values(transferred_at=None)),
                              theirs.settle(tx, zone, 0)))
    assert manage('follow', '--once')[0] == 0
    assert (the_domain(ours).awaits_transfer, the_domain(ours).status) == (False, 'ACTIVE')
    designate.run(lambda tx: tx.execute(sa.update(tables.zones).values(deleted=zone)))
    assert manage('follow', '--once')[0] == 0 and not rows(ours, schema.domains)


def test_a_catalog_zone_of_designate_stays_there(ours: Storage, designate: Storage, manage: Manage,
                                                 tmp_path: pathlib.Path) -> None:
    designate.run(lambda tx: (theirs.insert_zone(tx, 'example.com.'), theirs.insert_zone(
        tx, 'catalog.example.', type='CATALOG', status='PENDING', action='CREATE')))
    code, told, _ = manage('plan', '--pools', str(tmp_path / 'pools.yaml'))
    assert (code, '  the catalog zone catalog.example. stays in Designate; servers that read it ' in told) == (0, True)
    code, told, errors = manage('copy')
    assert (code, errors, told.partition(';')[0]) == (0, '', '1 zones in Designate')
    assert the_domain(ours).name == 'example.com.'


@pytest.mark.all_databases
def test_texts_of_lists_may_change_places(ours: Storage, designate: Storage, manage: Manage) -> None:
    for number, text in enumerate(('net', 'org'), 1):
        designate.run(lambda tx, *given: theirs.insert(tx, tables.tlds, id=given[0], name=given[1]),
                      str(number) * 32, text)
    assert manage('copy')[0] == 0

    def change(tx: Tx) -> None:
        for number, text in enumerate(('org', 'com'), 1):
            tx.execute(sa.update(tables.tlds).where(tables.tlds.c.id == str(number) * 32).values(name=text, version=2))

    designate.run(change)
    assert manage('follow', '--once')[0::2] == (0, '')
    assert {row.id: row.name for row in rows(ours, schema.tlds).values()} == {'1' * 32: 'org', '2' * 32: 'com'}
    assert manage('follow', '--once') == (0, '', '')


def test_a_secondary_zone_without_a_soa_of_its_serial_is_refused(ours: Storage, designate: Storage,
                                                                 manage: Manage) -> None:
    def fill(tx: Tx) -> None:
        other = theirs.insert_secondary(tx, 'other.example.', ['192.0.2.53:53'])
        tx.execute(sa.update(tables.zones).where(tables.zones.c.id == other).values(serial=SERIAL + 1))
        none = theirs.insert_secondary(tx, 'none.example.', ['192.0.2.53:53'])
        soa = sa.select(tables.recordsets.c.id).where(tables.recordsets.c.zone_id == none,
                                                      tables.recordsets.c.type == 'SOA')
        tx.execute(sa.delete(tables.records).where(tables.records.c.recordset_id.in_(soa)))

    designate.run(fill)
    code, _, errors = manage('copy')
    assert (code, errors) == (
        1, 'not copied: zone none.example.: Designate has no SOA record of it\n'
           f'not copied: zone other.example.: SOA record: its serial is {SERIAL}, that of the zone {SERIAL + 1}\n')
    assert not rows(ours, schema.domains)


def test_for_which_resources_records_are_there_is_copied(ours: Storage, designate: Storage, manage: Manage) -> None:
    def fill(tx: Tx) -> tuple[str, str, str]:
        zone = theirs.insert_zone(tx, '2.0.192.in-addr.arpa.')
        ptr = theirs.add_recordset(tx, zone, '7.2.0.192.in-addr.arpa.', 'PTR', [])
        theirs.add_record(tx, zone, ptr, 'www.example.com.', managed=True, managed_resource_type='ptr:floatingip',
                          managed_resource_id='1' * 32, managed_resource_region='RegionOne',
                          managed_extra='192.0.2.7', managed_tenant_id='the-tenant')
        address = theirs.add_recordset(tx, zone, 'vm.2.0.192.in-addr.arpa.', 'A', [])
        # Two instances have the same address.
        for number in '23':
            theirs.add_record(tx, zone, address, '192.0.2.9', managed=True, managed_resource_type='instance',
                              managed_resource_id=number * 32, managed_plugin_name='nova_fixed')
        return zone, ptr, address

    zone, ptr, address = designate.run(fill)
    assert manage('copy')[0] == 0

    def found() -> set[tuple[Any, ...]]:
        return {(row.domain_id, row.recordset_id, row.data, row.plugin, row.resource_type, row.resource_id, row.region,
                 row.address, row.project_id) for row in rows(ours, schema.managed_records).values()}

    of_ptr = (zone, ptr, 'www.example.com.', '', 'ptr:floatingip', '11111111-1111-1111-1111-111111111111', 'RegionOne',
              '192.0.2.7', 'the-tenant')
    of_instances = {(zone, address, '192.0.2.9', 'nova_fixed', 'instance', str(uuid.UUID(number * 32)), '', '', '')
                    for number in '23'}
    assert found() == {of_ptr, *of_instances}
    assert {row.id for row in rows(ours, schema.recordsets).values() if row.managed} >= {ptr, address}

    def gone(tx: Tx) -> None:
        tx.execute(sa.delete(tables.records).where(tables.records.c.managed_resource_id == '2' * 32))
        theirs.settle(tx, zone)

    designate.run(gone)
    assert manage('follow', '--once')[0] == 0
    assert found() == {of_ptr, *(each for each in of_instances if '3333' in each[5])}


def test_two_pools_are_copied_in_one_run(ours: Storage, designate: Storage, manage: Manage,
                                         tmp_path: pathlib.Path) -> None:
    silver = '5' * 32

    def fill(tx: Tx) -> tuple[str, str]:
        theirs.insert_pool(tx, 'silver', id=silver)
        theirs.insert(tx, tables.tsigkeys, name='of-silver', algorithm='hmac-sha256', secret='c2VjcmV0', scope='POOL',
                      resource_id=silver)
        found = (theirs.insert_zone(tx, 'example.com.', {('www', 'A'): ['192.0.2.1']}),
                 theirs.insert_zone(tx, 'silver.example.', pool_id=silver))
        for each in found:
            theirs.insert(tx, tables.zone_shares, zone_id=each, project_id='some-project',
                          target_project_id='other-project')
        return found

    moved, stays = designate.run(fill)
    text = (tmp_path / 'pool.conf').read_text()
    (tmp_path / 'silver.conf').write_text(text.replace('11111111', '22222222')
                                          + '[service:pool_manager]\npool_name = silver\n')
    also = '--also', str(tmp_path / 'silver.conf')
    code, told, errors = manage('copy', *also)
    assert (code, errors, told.partition(' in ')[0]) == (0, '', '2 zones')
    assert {row.id: (row.pool_id, row.shared) for row in rows(ours, schema.domains).values()} == {
        moved: (POOL_ID, True), stays: (silver, True)}
    assert [row.resource_id for row in rows(ours, schema.tsigkeys).values()] == [silver]
    before = rows(ours, schema.records).keys()
    designate.run(lambda tx: (tx.execute(sa.update(tables.zones).where(tables.zones.c.id == moved)
                                         .values(pool_id=silver)), theirs.settle(tx, moved)))
    assert manage('follow', '--once', *also)[:2] == (0, manage_told(1, 0))
    assert {(row.pool_id, row.shared) for row in rows(ours, schema.domains).values()} == {(silver, True)}
    designate.run(lambda tx: tx.execute(sa.delete(tables.zone_shares).where(tables.zone_shares.c.zone_id == stays)))
    assert manage('follow', '--once', *also)[0] == 0
    assert {row.id: row.shared for row in rows(ours, schema.domains).values()} == {moved: True, stays: False}
    assert rows(ours, schema.records).keys() == before
    code, _, errors = manage('copy', '--also', str(tmp_path / 'pool.conf'))
    assert (code, 'these are not the configurations of different pools: default, default' in errors) == (1, True)
    (tmp_path / 'silver.conf').write_text((tmp_path / 'silver.conf').read_text().replace(
        'connection = ', 'connection = sqlite:////other '))
    code, _, errors = manage('copy', *also)
    assert (code, 'silver.conf has another database than the first configuration' in errors) == (1, True)


def test_no_pool_is_written_unless_all_can_be(ours: Storage, designate: Storage, manage: Manage,
                                              tmp_path: pathlib.Path) -> None:
    designate.run(lambda tx: theirs.insert_pool(tx, 'silver', id='5' * 32))
    designate.run(lambda tx: tx.execute(sa.delete(tables.pool_ns_records).where(
        tables.pool_ns_records.c.pool_id == '5' * 32)))
    (tmp_path / 'silver.conf').write_text((tmp_path / 'pool.conf').read_text().replace('11111111', '22222222')
                                          + '[service:pool_manager]\npool_name = silver\n')
    code, _, errors = manage('copy', '--also', str(tmp_path / 'silver.conf'))
    assert (code, 'the pool silver has no ns_records in Designate' in errors) == (1, True)
    assert POOL_ID not in rows(ours, schema.pools)


@pytest.mark.all_databases
def test_follow_repeats_changes_whatever_their_times(ours: Storage, designate: Storage, manage: Manage) -> None:
    def fill(tx: Tx) -> tuple[str, str]:
        zone = theirs.insert_zone(tx, 'example.com.', {('old', 'A'): ['192.0.2.1'], ('www', 'A'): ['192.0.2.2']})
        theirs.insert_zone(tx, 'same.example.')
        return zone, theirs.insert_zone(tx, 'gone.example.')

    zone, gone = designate.run(fill)
    assert manage('copy')[0] == 0
    before = rows(ours, schema.records)

    def change(tx: Tx) -> None:
        sets = tables.recordsets
        old, www = (tx.execute(sa.select(sets.c.id).where(sets.c.name == f'{name}.example.com.')).scalar_one()
                    for name in ('old', 'www'))
        tx.execute(sa.delete(tables.records).where(tables.records.c.recordset_id == old))
        tx.execute(sa.delete(sets).where(sets.c.id == old))
        theirs.add_recordset(tx, zone, 'old.example.com.', 'A', ['192.0.2.9'])
        tx.execute(sa.update(tables.records).where(tables.records.c.recordset_id == www)
                   .values(data='192.0.2.22', version=2))
        tx.execute(sa.update(sets).where(sets.c.id == www).values(ttl=77, version=2))
        theirs.settle(tx, zone)
        # Its time is that of long ago: no comparison of times would find it.
        tx.execute(sa.update(tables.zones).where(tables.zones.c.id == gone).values(deleted=gone))
        theirs.insert_zone(tx, 'gone.example.', {('new', 'A'): ['192.0.2.3']}, created_at=CREATED, updated_at=None)

    designate.run(change)
    assert manage('follow', '--once')[:2] == (0, manage_told(2, 1))
    domains = {row.name: row for row in rows(ours, schema.domains).values()}
    assert (domains['example.com.'].serial, domains['example.com.'].version) == (SERIAL + 1, 6)
    assert domains['gone.example.'].id != gone and domains['gone.example.'].updated_at == CREATED
    assert {each for each in contents(ours) if each[1] == 'A'} == {
        ('old.example.com.', 'A', '192.0.2.9'), ('www.example.com.', 'A', '192.0.2.22'),
        ('new.gone.example.', 'A', '192.0.2.3')}
    sets = {row.name: row for row in rows(ours, schema.recordsets).values() if row.type == 'A'}
    assert (sets['www.example.com.'].ttl, sets['www.example.com.'].version) == (77, 2)
    # What was not changed was not written again.
    after = rows(ours, schema.records)
    assert len(before.keys() & after.keys()) == 5
    assert manage('follow', '--once') == (0, '', '')


def test_recordsets_go_with_a_zone_that_was_transferred(ours: Storage, designate: Storage, manage: Manage) -> None:
    def fill(tx: Tx) -> str:
        zone = theirs.insert_zone(tx, 'example.com.')
        theirs.insert(tx, tables.zone_shares, zone_id=zone, project_id='some-project', target_project_id='guest')
        theirs.add_recordset(tx, zone, 'guest.example.com.', 'A', ['192.0.2.1'], tenant_id='guest')
        return zone

    def transfer(tx: Tx) -> None:
        """As Designate does: the versions of the recordsets stay."""
        tx.execute(sa.update(tables.zones).values(tenant_id='buyer', version=6))
        tx.execute(sa.update(tables.recordsets).values(tenant_id='buyer'))

    designate.run(fill)
    assert manage('copy')[0] == 0
    assert {row.project_id for row in rows(ours, schema.recordsets).values()} == {None, 'guest'}
    designate.run(transfer)
    assert manage('follow', '--once')[:2] == (0, manage_told(1, 0))
    assert the_domain(ours).project_id == 'buyer'
    # The guest, which may still use the zone, does not own what is the buyer's in Designate.
    assert {row.project_id for row in rows(ours, schema.recordsets).values()} == {None}
    assert manage('follow', '--once') == (0, '', '')


def test_the_key_of_a_zone_goes_with_it(ours: Storage, designate: Storage, manage: Manage) -> None:
    def fill(tx: Tx, name: str) -> str:
        zone = theirs.insert_zone(tx, name)
        theirs.insert(tx, tables.tsigkeys, name='for-one', algorithm='hmac-sha256', secret='c2VjcmV0', scope='ZONE',
                      resource_id=zone)
        return zone

    def replace(tx: Tx) -> str:
        tx.execute(sa.delete(tables.tsigkeys))
        return fill(tx, 'example.net.')

    designate.run(fill, 'example.com.')
    assert manage('copy')[0] == 0
    # Designate leaves the key when it deletes the zone.
    designate.run(lambda tx: tx.execute(sa.update(tables.zones).values(deleted=tables.zones.c.id)))
    assert manage('follow', '--once')[:2] == (0, manage_told(0, 1))
    assert not rows(ours, schema.tsigkeys)
    zone = designate.run(replace)
    assert manage('copy')[0::2] == (0, '')
    assert [row.resource_id for row in rows(ours, schema.tsigkeys).values()] == [zone]


def test_entries_of_lists_that_are_here_already_stay(ours: Storage, designate: Storage, manage: Manage) -> None:
    """Where a pool of the database is in service, its lists are not Designate's alone."""
    zone = designate.run(theirs.insert_zone, 'example.com.')
    assert manage('copy')[0] == 0

    def serve(tx: Tx) -> None:
        tx.execute(sa.insert(schema.pool_manager_status).values(
            id='1' * 32, created_at=CREATED, updated_at=CREATED, server_id='2' * 32, domain_id=zone, action='CREATE',
            expected_serial=SERIAL, attempts=1))
        for table, text in ((schema.tlds, 'name'), (schema.blacklists, 'pattern')):
            tx.execute(sa.insert(table).values(id='3' * 32, created_at=CREATED, updated_at=CREATED, **{text: 'com'}))

    def fill(tx: Tx) -> None:
        for name in ('COM', 'net', 'NET'):
            theirs.insert(tx, tables.tlds, name=name)
        for pattern in ('com', 'net'):
            theirs.insert(tx, tables.blacklists, pattern=pattern)

    ours.run(serve)
    designate.run(fill)
    for _ in range(2):
        assert manage('copy')[0::2] == (0, '')
        assert {row.name: row.id == '3' * 32 for row in rows(ours, schema.tlds).values()} == {'com': True, 'net': False}
        assert {row.pattern: row.id == '3' * 32 for row in rows(ours, schema.blacklists).values()} == {
            'com': True, 'net': False}


def manage_told(written: int, removed: int) -> Any:
    return Matching(rf'\d\d:\d\d:\d\d {written} zones written, {removed} removed\n')


class Matching:
    """Equals each text that matches a pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and re.fullmatch(self._pattern, other) is not None

    def __repr__(self) -> str:
        return self._pattern


def test_a_zone_is_copied_when_designate_has_settled_it(ours: Storage, designate: Storage, manage: Manage) -> None:
    zone = designate.run(lambda tx: theirs.insert_zone(tx, 'example.com.', {('www', 'A'): ['192.0.2.1']}))
    assert manage('copy')[0] == 0

    def change(tx: Tx) -> None:
        tx.execute(sa.update(tables.zones).where(tables.zones.c.id == zone)
                   .values(increment_serial=True, version=6, status='PENDING', action='UPDATE'))
        tx.execute(sa.update(tables.records).where(tables.records.c.data == '192.0.2.1')
                   .values(data='192.0.2.2', version=2))

    designate.run(change)
    code, told, errors = manage('follow', '--once')
    assert (code, errors) == (0, '') and told.startswith('1 zones are not settled in Designate (example.com. ')
    assert the_domain(ours).version == 5 and ('www.example.com.', 'A', '192.0.2.1') in contents(ours)
    designate.run(theirs.settle, zone, 5)
    assert manage('follow', '--once')[0] == 0
    assert the_domain(ours).serial == SERIAL + 5
    assert ('www.example.com.', 'A', '192.0.2.2') in contents(ours)


RESOURCE = 'instance 22222222-2222-2222-2222-222222222222: its '


@pytest.mark.parametrize(('values', 'found', 'managed', 'why'), [
    ({'status': 'ERROR', 'action': 'UPDATE'}, {}, {}, 'UPDATE is in ERROR in Designate; have it repaired there'),
    ({'email': 'nobody'}, {}, {}, 'email: not an e-mail address'),
    ({}, {('www', 'A'): ['192.0.2.300']}, {}, 'A record at www.bad.example.[0]: not an IPv4 address: 192.0.2.300'),
    ({}, {('www', 'A'): ['192.0.2.1'], ('WWW', 'A'): ['192.0.2.2']}, {},
     'it has two A recordsets at www.bad.example.'),
    ({}, {}, {'plugin_name': 'p' * 33}, f'{RESOURCE}plugin {"p" * 33} is not of up to 32 ASCII characters'),
    ({}, {}, {'resource_type': 'ptr:floatingip', 'extra': f'fe80::1%{"e" * 90}'},
     f'{RESOURCE.replace("instance", "ptr:floatingip")}address fe80::1%{"e" * 90} is not of up to 45 ASCII characters'),
], ids=['error', 'email', 'rdata', 'twice', 'plugin', 'address'])
def test_a_zone_that_cannot_be_taken_is_named_and_the_others_are_taken(
        ours: Storage, designate: Storage, manage: Manage, tmp_path: pathlib.Path, values: dict[str, str],
        found: theirs.Contents, managed: dict[str, str], why: str) -> None:
    def fill(tx: Tx) -> None:
        zone = theirs.insert_zone(tx, 'bad.example.', found, **values)
        theirs.insert_zone(tx, 'good.example.')
        if managed:
            address = theirs.add_recordset(tx, zone, 'vm.bad.example.', 'A', [])
            resource = {'resource_type': 'instance', 'resource_id': '2' * 32, **managed}
            theirs.add_record(tx, zone, address, '192.0.2.9', managed=True,
                              **{f'managed_{name}': value for name, value in resource.items()})

    designate.run(fill)
    code, _, errors = manage('copy')
    names = {row.name for row in rows(ours, schema.domains).values()}
    assert (code, names) == (1, {'good.example.'})
    assert errors.startswith(f'not copied: zone bad.example.: {why}')
    code, told, _ = manage('plan', '--pools', str(tmp_path / 'pools.yaml'))
    assert code == 1 and f'  zone bad.example.: {why}' in told
    assert '        1  zones\n' in told


@pytest.mark.all_databases
def test_names_differ_in_case_alone(ours: Storage, designate: Storage, manage: Manage) -> None:
    designate.run(lambda tx: (theirs.insert_zone(tx, 'Example.com.', {('WWW', 'A'): ['192.0.2.1']})))
    assert manage('copy')[0] == 0
    assert (the_domain(ours).name, the_domain(ours).given_name) == ('example.com.', 'Example.com.')
    assert ('www.example.com.', 'A', '192.0.2.1') in contents(ours)
    assert 'WWW.Example.com.' in [row.given_name for row in rows(ours, schema.recordsets).values()]
    assert manage('follow', '--once') == (0, '', '')


def test_zones_of_others_here_are_left_alone(ours: Storage, designate: Storage, manage: Manage) -> None:
    zone = designate.run(theirs.insert_zone, 'example.com.')
    assert manage('copy')[0] == 0
    ours.run(lambda tx: tx.execute(sa.update(schema.domains).values(request_id='', version=9)))
    code, _, errors = manage('follow', '--once')
    assert (code, errors) == (1, 'not copied: zone example.com.: it was changed here since it was copied\n')

    def again(tx: Tx) -> None:
        tx.execute(sa.update(tables.zones).where(tables.zones.c.id == zone).values(deleted=zone))
        theirs.insert_zone(tx, 'example.com.')

    designate.run(again)
    code, _, errors = manage('follow', '--once')
    assert code == 1
    assert f'there is a zone of this name here, with the id {zone}' in errors
    assert the_domain(ours).id == zone


@pytest.mark.all_databases
def test_a_killed_copy_is_continued(ours: Storage, designate: Storage, manage: Manage,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    designate.run(lambda tx: theirs.fill(tx, 450, 0))
    written = zone_copy.ZoneCopy._write_page
    pages: list[int] = []

    def killed(copying: Any, tx: Tx, ids: Any) -> Any:
        found = written(copying, tx, ids)
        pages.append(len(ids))
        if len(pages) == 2:
            raise KeyboardInterrupt
        return found

    with monkeypatch.context() as patch:
        patch.setattr(zone_copy.ZoneCopy, '_write_page', killed)
        with pytest.raises(KeyboardInterrupt):
            manage('copy')
    assert len(rows(ours, schema.domains)) == 200
    code, told, errors = manage('copy')
    assert (code, errors) == (0, '') and told.startswith('450 zones in Designate; written here: 250 zones, ')
    assert rows(ours, schema.domains).keys() == rows(designate, tables.zones).keys()
    assert len(rows(ours, schema.records)) == 450 * 2


def test_a_plan_tells_what_can_be_taken_and_writes_a_configuration(
        designate: Storage, manage: Manage, tmp_path: pathlib.Path) -> None:
    def fill(tx: Tx) -> None:
        theirs.insert_zone(tx, 'example.com.', {('www', 'A'): ['192.0.2.1']})
        theirs.insert_zone(tx, 'waits.example.', status='PENDING', action='UPDATE')
        theirs.insert_zone(tx, 'gone.example.', deleted='1' * 32, status='DELETED')

    designate.run(fill)
    output = tmp_path / 'made.conf'
    arguments = ('plan', '--pools', str(tmp_path / 'pools.yaml'), '--output', str(output),
                 '--minidns', '192.0.2.5:5355', '--connection', 'sqlite:///$state_path/ours')
    code, told, errors = manage(*arguments)
    assert (code, errors) == (0, '')
    lines = [' '.join(line.split()) for line in told.splitlines()]
    for line in ('1 zones', '3 recordsets', '3 records (without SOA)', '2 name servers of the pool',
                 'one: bind9 -> bind9', 'two: pdns4 -> pdns',
                 'zone waits.example.: it is not settled in Designate now; copy and follow take it when it is'):
        assert line in lines, line
    assert output.stat().st_mode & 0o777 == 0o600
    made = re.sub(r'[0-9a-f-]{36}', 'UUID', output.read_text())
    assert made == """# Made from the pool default of pools.yaml.
[database]
connection = sqlite:///$state_path/ours

[service:pool_manager]
pool_name = default

[service:minidns]
listen = 192.0.2.5:5355

# bind9 one
[backend:bind9:UUID]
host = 192.0.2.1
rndc_host = 192.0.2.1
rndc_key_file = /etc/rndc.key
view = outer

# pdns4 two
# api_url is without /api/v1
[backend:pdns:UUID]
host = 192.0.2.2
port = 5353
verify = 192.0.2.9:5300
api_url = http://192.0.2.2:8081
api_key = to$$ken
"""
    (tmp_path / 'key').write_text('key "rndc-key" { algorithm hmac-sha256; secret "c2VjcmV0"; };')
    output.write_text(output.read_text().replace('/etc/rndc.key', str(tmp_path / 'key')))
    assert stack.manage(output, 'config', 'check', '--offline')[0] == 0
    code, _, errors = manage(*arguments)
    assert (code, 'made.conf cannot be written: File exists' in errors) == (1, True)


@pytest.mark.parametrize(('conf', 'said'), [
    (None, 'absent.conf cannot be read (ConfigFilesNotFoundError)'),
    ('[DEFAULT]\n', 'absent.conf has no connection in [storage:sqlalchemy]'),
    ('[storage:sqlalchemy]\nconnection = oracle://u:geheim@h/d\n', "the database URL begins with 'oracle'"),
    ('[storage:sqlalchemy]\nconnection = sqlite:///{}/empty\n', "Designate's database has no table "),
], ids=['no-file', 'no-connection', 'other-database', 'no-tables'])
def test_what_is_no_database_of_designate_is_told(emptied_sqlite: Storage, tmp_path: pathlib.Path, conf: str | None,
                                                  said: str) -> None:
    path = tmp_path / 'absent.conf'
    if conf is not None:
        path.write_text(conf.format(tmp_path))
    (tmp_path / 'pool.conf').write_text(
        f'[database]\nconnection = {emptied_sqlite.engine.url}\n'
        '[backend:fake:11111111-1111-4111-8111-111111111111]\nhost = 127.0.0.1\n')
    code, _, errors = stack.manage(tmp_path / 'pool.conf', 'designate', 'copy', '--designate-conf', str(path))
    assert code == 1 and said in errors and 'geheim' not in errors


def test_a_pool_that_designate_does_not_have_is_told(ours: Storage, designate: Storage, manage: Manage) -> None:
    designate.run(lambda tx: tx.execute(sa.update(tables.pools).values(name='other')))
    code, _, errors = manage('copy')
    assert (code, errors) == (1, 'The request is wrong: Designate has no pool default, which [service:pool_manager] '
                                 'pool_name says; it has other.\n')
