"""Sections that change: MiniDNS at another port, another template for zones, a secret that is wrong for a while."""

from __future__ import annotations

import time

from testing.processes import Log, wait_until
from tests.fixtures.mixed import MAKES, Mixed

#: In the place of a key's secret.
WRONG = 'YW5vdGhlciBrZXkgZm9yIHRlc3RzIG9ubHk='
NAMES = [f'moved{number}.example.com.' for number in range(20)]


def test_minidns_moves_to_another_port_and_the_servers_follow(pool: Mixed) -> None:
    for name in NAMES[1:]:
        pool.stack.import_www(name)
    zone, recordset = pool.create(NAMES[0])
    for there in (1, 0):
        pool.change_sections({make: pool.section(make, there) for make in MAKES})
        assert {each['state'] for each in pool.stack.servers_state().values()} == {'active'}
        assert uses(pool, NAMES) == dict.fromkeys(MAKES, {pool.primaries[there].port})
        pool.stack.listen_at(pool.primaries[there])
        address = f'192.0.2.{2 + there}'
        pool.stack.set_recordset(zone, recordset, address)
        pool.stack.wait_for(zone)
        pool.all_serve(NAMES[0], address)
        pool.create(f'after{there}.example.com.')
        pool.stack.listen_at(*pool.primaries)


def test_zones_of_knot_are_given_another_template(pool: Mixed) -> None:
    zone, recordset = pool.create('template.example.com.')
    knot = pool.servers['knot']
    assert knot.setting('zone[template.example.com].template') == ''
    pool.change_sections({'knot': pool.section('knot', template='other')})
    assert knot.setting('zone[template.example.com].template') == 'other'
    pool.stack.set_recordset(zone, recordset, '192.0.2.2')
    pool.stack.wait_for(zone)
    pool.all_serve('template.example.com.', '192.0.2.2')


def test_a_wrong_secret_is_told_once_for_each_server_until_the_right_one_is_read(pool: Mixed) -> None:
    zone, recordset = pool.create('secret.example.com.')
    log = Log(pool.stack.processes['all'].log)
    right = pool.sections()
    wrong = [section.replace(pool.keys[make].secret, WRONG) for make, section in zip(MAKES, right, strict=True)]
    pool.stack.reload(wrong)
    wait_until(lambda: log.lines('the servers are now'), 'MiniDNS has them')
    pool.stack.set_recordset(zone, recordset, '192.0.2.2')
    pool.stack.wait_for(zone, 'ERROR')
    for make in MAKES:
        tries = wait_until(lambda: pool.row(zone, make)['status'] == 'ERROR' and pool.row(zone, make)['attempts'],
                           f'{make} has failed')
        wait_until(lambda: pool.row(zone, make)['attempts'] > tries, f'{make} is asked again')
        row = pool.row(zone, make)
        assert ('the answer is not signed (NOTAUTH)' if make == 'pdns' else '(BADSIG)') in row['last_error']
        assert row['reason'] == ('NOT_SIGNED' if make == 'pdns' else 'BAD_KEY')
        assert len(log.lines(f'UPDATE of secret.example.com. at .* on {make}:.*: ERROR, tried')) == 1
        refused = f'NOTIFY for .* was not accepted by {make}:'
        wait_until(lambda: log.lines(refused), f'{make} has been notified')
        assert len(log.lines(refused)) == 1
    advice = pool.stack.request('GET', f'/v2/zones/{zone}/explain', 200)['advice']
    assert len(advice) == 2 and all('compare the key' in each for each in advice)
    log.restart()
    pool.stack.reload(right)
    wait_until(lambda: log.lines('the servers are now'), 'MiniDNS has them')
    pool.stack.wait_for(zone)
    pool.all_serve('secret.example.com.', '192.0.2.2')
    assert not any(secret in pool.stack.logs() for secret in (WRONG, *(key.secret for key in pool.keys.values())))


def uses(pool: Mixed, names: list[str]) -> dict[str, set[int]]:
    """The ports that each server fetches these zones from, as it shows them itself."""
    bind, nsd, knot, pdns = (pool.servers[make] for make in MAKES)
    texts = {
        'bind9': [bind.command(f'showzone {name}').text for name in names],
        'nsd': [next(line for line in nsd.control('zonestatus', name).splitlines() if 'pattern:' in line)
                for name in names],
        'knot': [knot.setting(f'remote[{knot.setting(f"zone[{name}].master")}].address') for name in names],
        'pdns': [str(found) for found in pdns.zones().values()],
    }
    return {make: {endpoint.port for endpoint in pool.primaries if any(str(endpoint.port) in text for text in found)}
            for make, found in texts.items()}


def command(pool: Mixed, verb: str, **body: str) -> None:
    pool_id = pool.stack.request('GET', '/v2/pools', 200)['pools'][0]['id']
    pool.stack.request('POST', f'/v2/pools/{pool_id}/tasks/{verb}', 200, **({'json': body} if body else {}))


def test_nothing_new_is_served_until_the_pool_is_unfrozen(pool: Mixed) -> None:
    name = 'frozen.example.com.'
    changed, www = pool.create(f'changed.{name}')
    fixed, fixed_www = pool.create(f'fixed.{name}')
    deleted, _ = pool.create(f'deleted.{name}')
    again, _ = pool.create(f'again.{name}')
    command(pool, 'freeze', reason='an incident')
    for address in ('192.0.2.2', '192.0.2.3'):
        pool.stack.set_recordset(changed, www, address)
    pool.stack.set_recordset(fixed, fixed_www, '192.0.2.2')
    for zone in (deleted, again):
        pool.stack.delete_zone(zone)
    again, _ = pool.begin(f'again.{name}', '192.0.2.2')
    created, _ = pool.begin(f'created.{name}')
    waits = pool.stack.request('GET', f'/v2/zones/{changed}/wait?timeout=30', 200)
    assert (waits['freeze']['reason'], waits['done'], waits['timed_out']) == ('an incident', False, False)
    explained = pool.stack.request('GET', f'/v2/zones/{changed}/explain', 200)
    assert explained['summary'] == (f'changed.{name} is PENDING, being changed: that waits, since its pool is frozen: '
                                    'an incident.')
    assert all(server['current'] and server['status'] == 'SUCCESS' for server in explained['servers'])
    pool.stack.kill('all')
    pool.stack.launch('all')
    bind = pool.servers['bind9']
    wait_until(lambda: bind.command(f'retransfer changed.{name}').result == 0, 'BIND asks for the zone')
    pool.servers['knot'].forget_zones()
    for each in ('changed', 'fixed'):
        pool.wait_until_served(f'{each}.{name}', '192.0.2.1', ['knot'])
    pool.stack.command('server', 'resync', pool.ids['nsd'], '--fix')
    end = time.monotonic() + 3  # several rounds of the pool managers' loops
    while time.monotonic() < end:
        for each in ('changed', 'fixed'):
            pool.all_serve(f'{each}.{name}', '192.0.2.1')
        for each in ('deleted', 'again'):  # a server that has lost these is not given them again
            pool.all_serve(f'{each}.{name}', '192.0.2.1', [make for make in MAKES if make != 'knot'])
        assert pool.who_has(f'created.{name}') == []
    pool.stack.must_be_sound()
    assert {pool.stack.zone(zone)['status'] for zone in (changed, fixed, deleted, again, created)} == {'PENDING'}
    pool.stack.request('POST', f'/v2/zones/{fixed}/tasks/unfreeze', 202, json={'reason': 'the fix'})
    pool.stack.wait_for(fixed)
    pool.wait_until_served(f'fixed.{name}', '192.0.2.2')
    pool.all_serve(f'changed.{name}', '192.0.2.1')
    command(pool, 'unfreeze')
    for zone in (changed, again, created):
        pool.stack.wait_for(zone)
    pool.stack.wait_for(deleted, 'gone')
    for each, address in (('changed', '192.0.2.3'), ('again', '192.0.2.2'), ('created', '192.0.2.1')):
        pool.wait_until_served(f'{each}.{name}', address)
    pool.wait_until_gone([f'deleted.{name}'])
    pool.wait_until_all_served()
    for make in MAKES:
        pool.wait_for_rest(make)
