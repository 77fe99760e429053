"""Sections that change: MiniDNS at another port, another template for zones, a secret that is wrong for a while."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testing.processes import Log, wait_until
from tests.fixtures.mixed import MAKES, Mixed

#: In the place of a key's secret.
WRONG = 'YW5vdGhlciBrZXkgZm9yIHRlc3RzIG9ubHk='
NAMES = [f'moved{number}.example.com.' for number in range(20)]


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    folder = tmp_path_factory.mktemp('mixed')
    with Mixed(folder, f'sqlite:///{folder}/pool.sqlite') as running:
        yield running
        running.stack.must_be_sound()


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
