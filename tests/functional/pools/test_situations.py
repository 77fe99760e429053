"""What can happen to a zone, on three real BINDs, RabbitMQ and MariaDB, each service a process of its own.

Looked at from outside alone: over DNS, over HTTP, and in the BINDs' own logs of the commands they were given.
Every test has zones of its own; a server that a test takes away is back when it ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

import dns.rdatatype
import pytest

from testing.databases import MariaDB
from testing.processes import wait_until
from testing.rabbitmq import RabbitMq
from tests.fixtures.world import ALL, World

ZONE_FILE = '''\
$ORIGIN imported.example.com.
$TTL 3600
@       IN SOA  ns1.example.net. hostmaster.example.com. 2026010100 3600 600 86400 300
@       IN NS   ns1.example.net.
@       IN MX   10 mail
@       IN TXT  "v=spf1 mx -all"
www 300 IN A    192.0.2.10
www 300 IN A    192.0.2.11
www 300 IN AAAA 2001:db8::10
mail    IN A    192.0.2.25
ftp     IN CNAME www
*.wild  IN TXT  "anything"
'''


@pytest.fixture(scope='module')
def world(tmp_path_factory: pytest.TempPathFactory, rabbitmq: RabbitMq, mariadb: MariaDB) -> Iterator[World]:
    with World(tmp_path_factory.mktemp('pool'), mariadb.create_database(), rabbitmq.url, 'eventlet') as running:
        yield running
        running.stack.must_be_sound()


@pytest.fixture(scope='module', params=[100, 66])
def threshold(world: World, request: pytest.FixtureRequest) -> int:
    """The pool needs all three servers, or two.  The tests that do not say need all, and come before the others."""
    if world.stack.threshold != request.param:
        world.stack.set_threshold(request.param)
    return int(request.param)


@contextlib.contextmanager
def dead(world: World, number: int) -> Iterator[None]:
    """One server is dead meanwhile, as if its machine had lost power."""
    world.named[number].kill()
    try:
        yield
    finally:
        world.named[number].start()


@contextlib.contextmanager
def standing_still(world: World, number: int) -> Iterator[None]:
    """One server's process is stopped meanwhile: it takes connections and answers nothing."""
    os.kill(world.named[number].pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(world.named[number].pid, signal.SIGCONT)


def test_a_first_create_is_served_everywhere_by_the_time_that_it_is_active(world: World) -> None:
    zone = world.stack.create_zone('first.example.com.')
    assert (zone['status'], zone['action']) == ('PENDING', 'CREATE')
    world.stack.create_recordset(zone['id'], 'www.first.example.com.', 'A', '192.0.2.1', '192.0.2.2')
    active = world.stack.wait_for(zone['id'])
    assert [world.addresses(number, 'first.example.com.') for number in ALL] == [['192.0.2.1', '192.0.2.2']] * 3
    assert [named.serial('first.example.com.') for named in world.named] == [active['serial']] * 3
    assert [named.texts('first.example.com.', 'NS') for named in world.named] == [
        ['ns1.example.org.', 'ns2.example.org.']] * 3
    for number in ALL:
        row = world.row(zone['id'], number)
        assert (row['status'], row['serial'], row['current'], row['last_error'], row['next_attempt_at']) == (
            'SUCCESS', active['serial'], True, None, None)
    assert active['action'] == 'NONE'


def test_a_second_create_of_the_same_name_is_a_conflict_and_changes_nothing(world: World) -> None:
    zone, _ = world.create('twice.example.com.')
    before = world.stack.zone(zone), world.stack.servers(zone)
    answer = world.stack.request('POST', '/v2/zones', 409,
                                 json={'name': 'Twice.example.com.', 'email': 'hostmaster@example.com'})
    assert answer['type'] == 'duplicate_domain'
    assert (world.stack.zone(zone), world.stack.servers(zone)) == before


def test_a_zone_that_one_server_has_already_is_taken_over(world: World) -> None:
    world.rndc(1, 'addzone', f'there.example.com {{ type secondary; primaries {{ 127.0.0.1 port '
                             f'{world.stack.minidns_port}; }}; file "there.db"; }};')
    world.create('there.example.com.')
    assert world.calls('addzone', 'there.example.com.') == [1, 2, 1]


def test_an_update_while_an_update_is_in_flight_ends_with_the_last_one(world: World) -> None:
    zone, recordset = world.create('busy.example.com.')
    with standing_still(world, 2):
        world.stack.set_recordset(zone, recordset, '192.0.2.2')
        world.wait_until_served('busy.example.com.', '192.0.2.2', [0, 1])
        world.stack.set_recordset(zone, recordset, '192.0.2.3')
        world.wait_until_served('busy.example.com.', '192.0.2.3', [0, 1])
        assert world.stack.zone(zone)['status'] != 'ACTIVE'
    active = world.stack.wait_for(zone)
    world.all_serve('busy.example.com.', '192.0.2.3')
    assert [named.serial('busy.example.com.') for named in world.named] == [active['serial']] * 3


def test_many_updates_in_quick_succession_end_with_the_last_one_and_serials_only_grow(world: World) -> None:
    zone, recordset = world.create('many.example.com.')
    serials = [world.stack.zone(zone)['serial']]
    for number in range(2, 22):
        world.stack.set_recordset(zone, recordset, f'192.0.2.{number}')
        serials.append(world.stack.zone(zone)['serial'])
    assert serials == sorted(set(serials))
    world.stack.wait_for(zone)
    world.all_serve('many.example.com.', '192.0.2.21')


def test_a_name_deleted_and_created_again_in_quick_succession_ends_with_the_new_zone_everywhere(world: World) -> None:
    zone, _ = world.create('again.example.com.', '192.0.2.1')
    old_serial = world.stack.zone(zone)['serial']
    for number in range(2, 6):
        world.stack.delete_zone(zone)
        created = world.stack.create_zone('again.example.com.')
        assert created['id'] != zone and created['serial'] > old_serial
        zone, old_serial = created['id'], created['serial']
        world.stack.create_recordset(zone, 'www.again.example.com.', 'A', f'192.0.2.{number}')
    world.stack.wait_for(zone)
    world.wait_until_served('again.example.com.', '192.0.2.5')
    # What is left of the old ones must not take the new one with it, not even later.
    recordset = world.stack.request('GET', f'/v2/zones/{zone}/recordsets?type=A', 200)['recordsets'][0]['id']
    world.stack.set_recordset(zone, recordset, '192.0.2.6')
    world.stack.wait_for(zone)
    world.all_serve('again.example.com.', '192.0.2.6')


def test_a_delete_is_gone_from_every_server_by_the_time_that_it_is_reported(world: World) -> None:
    zone, _ = world.create('going.example.com.')
    assert world.stack.delete_zone(zone)['action'] == 'DELETE'
    world.stack.wait_for(zone, 'gone')
    assert world.who_has('going.example.com.') == []
    world.stack.request('DELETE', f'/v2/zones/{zone}', 404)


def test_a_server_that_lost_its_zones_is_given_them_again_and_only_that_server(world: World) -> None:
    names = [f'lost{number}.example.com.' for number in range(3)]
    zones = [world.create(name)[0] for name in names]
    world.named[1].forget_zones()
    for name in names:
        world.wait_until_served(name, '192.0.2.1', [1])
        assert world.calls('addzone', name) == [1, 2, 1]
    for zone in zones:
        world.wait_for_row(zone, 1, lambda row: row['current'], 'the server is known to serve it')
        assert world.stack.zone(zone)['status'] == 'ACTIVE'


def test_a_zone_of_the_operator_s_own_is_named_and_what_to_do_about_it(world: World) -> None:
    world.rndc(2, 'addzone', 'own.example.com { type static-stub; server-addresses { 127.0.0.1; }; };')
    zone, _ = world.begin('own.example.com.')
    world.stack.wait_for(zone, 'ERROR')
    row = world.wait_for_row(zone, 2, lambda row: row['status'] == 'ERROR', 'the server is in ERROR')
    assert "as a static-stub zone that was added by hand: take it away with 'rndc delzone'" in row['last_error']
    assert row['next_attempt_at']
    world.all_serve('own.example.com.', '192.0.2.1', [0, 1])
    world.rndc(2, 'delzone', 'own.example.com')
    world.stack.wait_for(zone)
    world.all_serve('own.example.com.', '192.0.2.1')


def test_a_secondary_zone_that_answers_servfail_since_its_primary_is_nowhere_is_given_ours(world: World) -> None:
    world.rndc(2, 'addzone', 'sick.example.com { type secondary; primaries { 127.0.0.1 port 9; }; file "sick.db"; };')
    zone, _ = world.begin('sick.example.com.')
    world.stack.wait_for(zone)
    world.all_serve('sick.example.com.', '192.0.2.1')


def test_a_server_that_hangs_costs_the_others_nothing(world: World) -> None:
    with standing_still(world, 0):
        zone, _ = world.begin('slow.example.com.')
        world.wait_until_served('slow.example.com.', '192.0.2.1', [1, 2])
        assert world.stack.zone(zone)['status'] == 'PENDING'
    world.stack.wait_for(zone)
    world.all_serve('slow.example.com.', '192.0.2.1')


def test_a_zone_file_is_imported_whole_and_comes_out_again(world: World) -> None:
    zone = world.stack.import_zone(ZONE_FILE)
    active = world.stack.wait_for(zone)
    assert active['serial'] > 2026010100
    for named in world.named:
        assert named.texts('imported.example.com.', 'MX') == ['10 mail.imported.example.com.']
        assert named.texts('imported.example.com.', 'TXT') == ['"v=spf1 mx -all"']
        assert named.texts('www.imported.example.com.', 'A') == ['192.0.2.10', '192.0.2.11']
        assert named.texts('www.imported.example.com.', 'AAAA') == ['2001:db8::10']
        assert named.texts('ftp.imported.example.com.', 'CNAME') == ['www.imported.example.com.']
        assert named.texts('x.wild.imported.example.com.', 'TXT') == ['"anything"']
        answer = named.query('www.imported.example.com.', 'A').answer[0]
        assert (answer.rdtype, answer.ttl) == (dns.rdatatype.A, 300)
    export = world.stack.request('POST', f'/v2/zones/{zone}/tasks/export', 202)
    text = world.stack.request('GET', f'/v2/zones/tasks/exports/{export["id"]}/export', 200)
    world.stack.delete_zone(zone)
    world.stack.wait_for(zone, 'gone')
    again = world.stack.import_zone(text)
    assert world.stack.wait_for(again)['serial'] > active['serial']
    for named in world.named:
        assert named.texts('www.imported.example.com.', 'A') == ['192.0.2.10', '192.0.2.11']


def test_the_command_tells_by_its_exit_code_whether_the_pool_agreed(world: World) -> None:
    command = world.stack.command
    command('zone', 'create', 'cli.example.com.', '--email', 'hostmaster@example.com', '--wait', '30')
    assert world.who_has('cli.example.com.') == list(ALL)
    command('recordset', 'create', 'cli.example.com.', 'www', 'A', '--record', '192.0.2.1', '--wait', '30')
    world.all_serve('cli.example.com.', '192.0.2.1')
    with dead(world, 1):
        command('recordset', 'set', 'cli.example.com.', 'www', 'A', '--record', '192.0.2.2', '--wait', '60',
                code=3)
        explained = command('zone', 'explain', 'cli.example.com.')
        assert f'bind9:127.0.0.1:{world.named[1].port}' in explained
    zone = world.stack.request('GET', '/v2/zones?name=cli.example.com.', 200)['zones'][0]['id']
    world.stack.wait_for(zone)
    with standing_still(world, 1):
        command('recordset', 'set', 'cli.example.com.', 'www', 'A', '--record', '192.0.2.3', '--wait', '0.5',
                code=4)
    world.stack.wait_for(zone)
    command('zone', 'delete', 'cli.example.com.', '--wait', '30')
    assert world.who_has('cli.example.com.') == []


def test_one_server_dead_at_create(world: World, threshold: int) -> None:
    name = f'born{threshold}.example.com.'
    with dead(world, 1):
        zone, _ = world.begin(name)
        world.stack.wait_for(zone, 'ERROR' if threshold == 100 else 'ACTIVE')
        world.wait_until_served(name, '192.0.2.1', [0, 2])
        row = world.wait_for_row(zone, 1, lambda row: row['status'] == 'ERROR', 'the dead server is in ERROR')
        assert 'refused' in row['last_error'] and row['next_attempt_at'] and not row['current']
        assert [world.row(zone, number)['current'] for number in (0, 2)] == [True, True]
    world.wait_for_row(zone, 1, lambda row: row['current'], 'the server has caught up')
    world.stack.wait_for(zone)
    world.all_serve(name, '192.0.2.1')
    assert [count for number, count in enumerate(world.calls('addzone', name)) if number != 1] == [1, 1]


def test_one_server_dead_at_update(world: World, threshold: int) -> None:
    name = f'changed{threshold}.example.com.'
    zone, recordset = world.create(name)
    old_serial = world.stack.zone(zone)['serial']
    with dead(world, 0):
        world.stack.set_recordset(zone, recordset, '192.0.2.2')
        world.stack.wait_for(zone, 'ERROR' if threshold == 100 else 'ACTIVE')
        world.all_serve(name, '192.0.2.2', [1, 2])
        row = world.wait_for_row(zone, 0, lambda row: row['status'] == 'ERROR', 'the dead server is in ERROR')
        assert (row['action'], row['serial']) == ('UPDATE', old_serial)
        assert row['last_error'] and row['next_attempt_at'] and not row['current']
    world.wait_for_row(zone, 0, lambda row: row['current'], 'the server has caught up')
    world.stack.wait_for(zone)
    world.all_serve(name, '192.0.2.2')
    assert world.calls('addzone', name) == [1, 1, 1]


def test_one_server_dead_at_delete(world: World, threshold: int) -> None:
    name = f'gone{threshold}.example.com.'
    zone, _ = world.create(name)
    with dead(world, 2):
        world.stack.delete_zone(zone)
        if threshold == 100:
            world.stack.wait_for(zone, 'ERROR')
            row = world.row(zone, 2)
            assert (row['action'], row['status']) == ('DELETE', 'ERROR')
            assert row['last_error'] and row['next_attempt_at']
        else:
            world.stack.wait_for(zone, 'gone')
        assert world.who_has(name, [0, 1]) == []
    wait_until(lambda: world.who_has(name) == [], 'the server that was dead has lost the zone too')
    world.stack.wait_for(zone, 'gone')
    assert world.calls('addzone', name) == [1, 1, 1]
