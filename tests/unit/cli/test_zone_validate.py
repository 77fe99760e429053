"""``zone validate``: of a zone by the API, of a file without it."""

from __future__ import annotations

import json

from designate_pool.model import Pool, Server
from designate_pool.pool_manager.server_registry import write_servers
from tests.fixtures.observed_central import BEGAN

HEAD = '$ORIGIN example.com.\n$TTL 300\n@ SOA ns1.example.net. hostmaster.example.com. 1 3600 600 86400 300\n' \
       '@ NS ns1.example.net.\n@ NS ns2.example.net.\n'


def test_a_zone(run, zone):
    run('recordset', 'create', 'example.com', '@', 'MX', '--record', '10 mail.example.com.')
    listed = json.loads(run('zone', 'validate', 'example.com', '-f', 'json').out)
    assert [(line['level'], line['rule'], line['name'], line['type']) for line in listed
            if line['rule'] != 'ns-count'] == [('warning', 'target-missing', 'example.com.', 'MX')]


def test_a_file(run, tmp_path):
    file = tmp_path / 'example.com.zone'
    file.write_text(HEAD)
    assert json.loads(run('zone', 'validate', str(file), '-f', 'json').out) == []
    file.write_text(f'{HEAD}old DNAME example.net.\nwww.old A 192.0.2.1\n@ TXT "v=spf1 -all"\n@ TXT "v=spf1 mx -all"\n')
    ran = run('zone', 'validate', str(file), '-f', 'json')
    assert ran.code == 2
    assert [(line['level'], line['rule'], line['name']) for line in ran.json] == [
        ('error', 'dname-below', 'www.old.example.com.'), ('warning', 'spf-count', 'example.com.')]


def test_a_file_is_read_as_for_an_import(run, tmp_path):
    file = tmp_path / 'zone'
    file.write_text(HEAD.partition('\n')[2] + '$INCLUDE more\n')
    (tmp_path / 'more').write_text('www.old A 192.0.2.1\nold DNAME example.net.\n')
    assert 'give --name' in run('zone', 'validate', str(file)).err
    ran = run('zone', 'validate', str(file), '--name', 'example.com', '-f', 'json')
    assert [(line['rule'], line['name']) for line in ran.json] == [('dname-below', 'www.old.example.com.')]
    (tmp_path / 'more').write_text('a A nowhere\n')
    assert 'more, line 1: ' in run('zone', 'validate', str(file), '--name', 'example.com').err
    file.write_bytes(b'\xff')
    assert f'{file}: the zone file is not UTF-8' in run('zone', 'validate', str(file)).err


def test_a_file_for_the_servers_of_a_pool(run, tmp_path, central):
    server = Server('0' * 32, 'bind9', '192.0.2.53')
    central.storage.run(write_servers, Pool('default', servers=(server,)), False, False, BEGAN)
    pool, = run('pool', 'list', '-f', 'json').json
    file = tmp_path / 'zone'
    file.write_text(HEAD + ''.join(f'www A 192.0.2.{number}\n' for number in range(101)))
    assert json.loads(run('zone', 'validate', str(file), '-f', 'json').out) == []
    for name in (pool['name'], pool['id']):
        ran = run('zone', 'validate', str(file), '--pool', name, '-f', 'json')
        assert ran.code == 2
        line, = ran.json
        assert (line['level'], line['name'], line['type']) == ('server', 'www.example.com.', 'A')
        assert line['why'].startswith('BIND takes 100')
    assert 'There is no pool nowhere' in run('zone', 'validate', str(file), '--pool', 'nowhere').err
