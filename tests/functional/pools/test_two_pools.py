"""Two pools, of a BIND and of a Knot, on one RabbitMQ and PostgreSQL: apart, and zones that move between them."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.update
import pytest

from testing import warm
from testing.databases import PostgreSQL
from testing.processes import wait_until
from testing.rabbitmq import RabbitMq
from tests.fixtures.monitor import monitored
from tests.fixtures.two_pools import POOLS, Pools


@pytest.fixture(scope='module')
def pools(tmp_path_factory: pytest.TempPathFactory, rabbitmq: RabbitMq, postgresql: PostgreSQL) -> Iterator[Pools]:
    made = Pools(tmp_path_factory.mktemp('two'), postgresql.create_database(), rabbitmq.url,
                 '[service:central]\npool_move_delay = 0')
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_each_server_gets_the_zones_of_its_pool_and_no_others(pools: Pools) -> None:
    for pool, other in (POOLS, POOLS[::-1]):
        assert pools.servers[pool].serial(f'{pool}.example.net.') is not None
        assert pools.servers[pool].query(f'{other}.example.net.').rcode() == dns.rcode.REFUSED
        port = pools.stacks[pool].minidns_port
        for name, told in ((f'{pool}.example.net.', dns.rcode.NOERROR), (f'{other}.example.net.', dns.rcode.REFUSED)):
            query = dns.message.make_query(name, 'SOA', flags=0)
            assert dns.query.udp(query, '127.0.0.1', port=port, timeout=10).rcode() == told
    explained = pools.central.request('GET', f'/v2/zones/{pools.zones["silver"]}/explain', 200)
    assert (explained['needed'], explained['total'], explained['current']) == (1, 1, 1)
    listed = pools.central.command('server', 'list')
    assert 'default' in listed and 'silver' in listed and 'bind9:' in listed and 'knot:' in listed
    assert 'bind9:' not in pools.central.command('server', 'list', '--pool', 'silver')


def test_a_server_is_compared_and_its_configuration_read_anew_by_its_own_pool_manager(pools: Pools) -> None:
    for each in pools.central.request('GET', '/v2/servers', 200)['servers']:
        compared = pools.central.request('POST', f'/v2/servers/{each["id"]}/resync', 200, json={'contents': True})
        assert (compared['missing'], compared['behind'], compared['other']) == ([], [], [])
        assert compared['total'] == each['zones'] > 0
    reloaded = pools.central.command('server', 'reload', '--pool', 'silver', '-f', 'json')
    assert reloaded.split() == '{ "joined": [], "changed": [], "draining": [] }'.split()


def test_a_dead_pool_leaves_the_other_alone_and_both_are_told_of(pools: Pools) -> None:
    pools.servers['silver'].kill()
    pools.stacks['silver'].kill('minidns')
    dead = pools.create('dead.example.net.', 'silver')
    pools.central.wait_for(dead, 'ERROR', 60)
    for number in range(3):
        pools.central.wait_for(pools.create(f'alive{number}.example.net.', 'default'))

    found = {each['driver']: each for each in pools.central.request('GET', '/v2/servers', 200)['servers']}
    assert found['knot']['failing'] and not found['bind9']['failing']
    told = pools.central.command('status')
    assert 'default: bind9:' in told and 'silver: knot:' in told and 'dead.example.net.' in told
    page = pools.central.request('GET', '/status', 200)
    assert '1 server is active, and every one has all of' in page and 'silver' in page and 'fails on knot:' in page
    label = found['knot']['name']
    wait_until(lambda: pools.value('silver', 'manager', 'designate_pool_rows_failing', pool='silver', server=label),
               'the metrics of the one tell it')
    assert pools.value('default', 'manager', 'designate_pool_rows_failing', pool='default') == 0

    pools.stacks['silver'].kill('manager')
    pools.central.wait_for(pools.create('still.example.net.', 'default'))
    assert pools.servers['default'].serial('still.example.net.') is not None

    pools.servers['silver'].start()
    pools.stacks['silver'].launch('minidns', 'manager')
    pools.central.wait_for(dead, seconds=60)
    assert pools.servers['silver'].serial('dead.example.net.') is not None
    assert pools.servers['default'].query('dead.example.net.').rcode() == dns.rcode.REFUSED


def test_a_program_of_a_pool_that_does_not_exist_does_not_start(pools: Pools, tmp_path: pathlib.Path) -> None:
    text = pools.stacks['silver'].config.read_text()
    wrong = tmp_path / 'wrong.conf'
    wrong.write_text(text.replace('pool_name = silver', 'pool_name = sliver'))
    for name in ('manager', 'minidns'):
        ended = warm.run('designate_pool.cmd.programs.daemons', name, '--config-file', str(wrong))
        assert ended.returncode == 1
        assert ('[service:pool_manager] pool_name is sliver: no such pool (there are: default, silver); correct it, or '
                "'designate-pool-manage pool create sliver'.") in ended.stderr
    assert pools.central.manage('pool', 'list').split()[0::2] == ['default', 'silver']


NAME_SERVERS = {'default': ['ns1.example.org.', 'ns2.example.org.'], 'silver': ['ns.silver.example.']}


def move(pools: Pools, name: str, pool: str) -> None:
    pools.central.command('zone', 'move', name, '--pool', pool)


def must_be_in(pools: Pools, zone: str, name: str, pool: str) -> None:
    """ACTIVE there with the pool's name servers, and gone from the other."""
    served = pools.central.wait_for(zone, seconds=60)
    server = pools.servers[pool]
    assert server.serial(name) == served['serial']
    assert sorted(str(each) for each in server.query(name, 'NS').answer[0]) == NAME_SERVERS[pool]
    assert str(server.query(name).answer[0][0].mname) == NAME_SERVERS[pool][0]
    other = pools.servers['silver' if pool == 'default' else 'default']
    wait_until(lambda: other.query(name).rcode() == dns.rcode.REFUSED, f'{name} is gone from the other pool', 60)
    [listed] = pools.central.request('GET', f'/v2/zones?name={name}', 200)['zones']
    assert (listed['id'], listed['status']) == (zone, 'ACTIVE')


def test_there_and_back_and_there_again(pools: Pools) -> None:
    name = 'moving.example.com.'
    zone = pools.create(name, 'default')
    pools.central.wait_for(zone)
    pools.central.create_recordset(zone, f'www.{name}', 'A', '192.0.2.1')
    pools.central.wait_for(zone)
    with monitored(pools.servers.values(), [name], is_one_enough=True):
        for pool in ('silver', 'default', 'silver'):
            move(pools, name, pool)
            must_be_in(pools, zone, name, pool)
    assert str(pools.servers['silver'].query(f'www.{name}', 'A').answer[0][0]) == '192.0.2.1'
    for each in pools.stacks.values():
        each.must_be_sound()
    pools.central.delete_zone(zone)
    pools.central.wait_for(zone, 'gone')


def test_the_former_pool_serves_it_while_the_server_of_the_new_one_is_down(pools: Pools) -> None:
    names = [f'waiting{number}.example.com.' for number in range(2)]
    zones = [pools.create(name, 'default') for name in names]
    for zone in zones:
        pools.central.wait_for(zone)
    pools.servers['silver'].kill()
    with monitored(pools.servers.values(), names[:1], is_one_enough=True):
        for name in names:
            move(pools, name, 'silver')
        # The programs that move it die, and come back.
        pools.central.kill('api')
        pools.stacks['silver'].kill('manager')
        pools.central.launch('api')
        pools.stacks['silver'].launch('manager')
        pools.central.create_recordset(zones[0], f'www.{names[0]}', 'A', '192.0.2.3')
        wait_until(lambda: pools.servers['default'].query(f'www.{names[0]}', 'A').answer,
                   'the former pool has the change', 60)
        assert pools.central.zone(zones[0])['status'] != 'ACTIVE'
        assert ('The servers of the pool default, which it was moved from, keep it until its own pool serves it.'
                in pools.central.command('zone', 'explain', names[0]))
        move(pools, names[1], 'default')
        assert pools.central.wait_for(zones[1], seconds=60)['serial'] == pools.servers['default'].serial(names[1])
        pools.servers['silver'].start()
        must_be_in(pools, zones[0], names[0], 'silver')
        must_be_in(pools, zones[1], names[1], 'default')
