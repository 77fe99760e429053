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

from tests.functional.pools.conftest import ALL, ThreeBinds

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


@contextlib.contextmanager
def dead(binds: ThreeBinds, number: int) -> Iterator[None]:
    """One server is dead meanwhile, as if its machine had lost power."""
    binds.named[number].kill()
    try:
        yield
    finally:
        binds.named[number].start()


@contextlib.contextmanager
def standing_still(binds: ThreeBinds, number: int) -> Iterator[None]:
    """One server's process is stopped meanwhile: it takes connections and answers nothing."""
    os.kill(binds.named[number].pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(binds.named[number].pid, signal.SIGCONT)


def test_an_update_while_an_update_is_in_flight_ends_with_the_last_one(binds: ThreeBinds) -> None:
    zone, recordset = binds.create('busy.example.com.')
    with standing_still(binds, 2):
        binds.stack.set_recordset(zone, recordset, '192.0.2.2')
        binds.wait_until_served('busy.example.com.', '192.0.2.2', [0, 1])
        binds.stack.set_recordset(zone, recordset, '192.0.2.3')
        binds.wait_until_served('busy.example.com.', '192.0.2.3', [0, 1])
        assert binds.stack.zone(zone)['status'] != 'ACTIVE'
    active = binds.stack.wait_for(zone)
    binds.all_serve('busy.example.com.', '192.0.2.3')
    assert [named.serial('busy.example.com.') for named in binds.named] == [active['serial']] * 3


def test_a_zone_of_the_operator_s_own_is_named_and_what_to_do_about_it(binds: ThreeBinds) -> None:
    binds.rndc(2, 'addzone', 'own.example.com { type static-stub; server-addresses { 127.0.0.1; }; };')
    zone, _ = binds.begin('own.example.com.')
    binds.stack.wait_for(zone, 'ERROR')
    row = binds.wait_for_row(zone, 2, lambda row: row['status'] == 'ERROR', 'the server is in ERROR')
    assert "as a static-stub zone that was added by hand: remove it with 'rndc delzone'" in row['last_error']
    assert row['next_attempt_at'] and row['reason'] == 'CONFLICT'
    binds.all_serve('own.example.com.', '192.0.2.1', [0, 1])
    binds.rndc(2, 'delzone', 'own.example.com')
    binds.stack.wait_for(zone)
    binds.all_serve('own.example.com.', '192.0.2.1')


def test_a_secondary_zone_that_answers_servfail_since_its_primary_is_nowhere_is_given_ours(binds: ThreeBinds) -> None:
    binds.rndc(2, 'addzone', 'sick.example.com { type secondary; primaries { 127.0.0.1 port 9; }; file "sick.db"; };')
    zone, _ = binds.begin('sick.example.com.')
    binds.stack.wait_for(zone)
    binds.all_serve('sick.example.com.', '192.0.2.1')


def test_a_server_that_hangs_costs_the_others_nothing(binds: ThreeBinds) -> None:
    with standing_still(binds, 0):
        zone, _ = binds.begin('slow.example.com.')
        binds.wait_until_served('slow.example.com.', '192.0.2.1', [1, 2])
        assert binds.stack.zone(zone)['status'] == 'PENDING'
    binds.stack.wait_for(zone)
    binds.all_serve('slow.example.com.', '192.0.2.1')


def test_a_zone_file_is_imported_whole_and_comes_out_again(binds: ThreeBinds) -> None:
    zone = binds.stack.import_zone(ZONE_FILE)
    active = binds.stack.wait_for(zone)
    assert active['serial'] > 2026010100
    for named in binds.named:
        assert named.texts('imported.example.com.', 'MX') == ['10 mail.imported.example.com.']
        assert named.texts('imported.example.com.', 'TXT') == ['"v=spf1 mx -all"']
        assert named.texts('www.imported.example.com.', 'A') == ['192.0.2.10', '192.0.2.11']
        assert named.texts('www.imported.example.com.', 'AAAA') == ['2001:db8::10']
        assert named.texts('ftp.imported.example.com.', 'CNAME') == ['www.imported.example.com.']
        assert named.texts('x.wild.imported.example.com.', 'TXT') == ['"anything"']
        answer = named.query('www.imported.example.com.', 'A').answer[0]
        assert (answer.rdtype, answer.ttl) == (dns.rdatatype.A, 300)
    export = binds.stack.request('POST', f'/v2/zones/{zone}/tasks/export', 202)
    text = binds.stack.request('GET', f'/v2/zones/tasks/exports/{export["id"]}/export', 200)
    binds.stack.delete_zone(zone)
    binds.stack.wait_for(zone, 'gone')
    again = binds.stack.import_zone(text)
    assert binds.stack.wait_for(again)['serial'] > active['serial']
    for named in binds.named:
        assert named.texts('www.imported.example.com.', 'A') == ['192.0.2.10', '192.0.2.11']


def test_the_command_tells_by_its_exit_code_whether_the_pool_agreed(binds: ThreeBinds) -> None:
    command = binds.stack.command
    command('zone', 'create', 'cli.example.com.', '--email', 'hostmaster@example.com', '--wait', '30')
    assert binds.who_has('cli.example.com.') == list(ALL)
    command('recordset', 'create', 'cli.example.com.', 'www', 'A', '--record', '192.0.2.1', '--wait', '30')
    binds.all_serve('cli.example.com.', '192.0.2.1')
    with dead(binds, 1):
        command('recordset', 'set', 'cli.example.com.', 'www', 'A', '--record', '192.0.2.2', '--wait', '60',
                code=3)
        explained = command('zone', 'explain', 'cli.example.com.')
        assert f'bind9:127.0.0.1:{binds.named[1].port}' in explained
    zone = binds.stack.request('GET', '/v2/zones?name=cli.example.com.', 200)['zones'][0]['id']
    binds.stack.wait_for(zone)
    with standing_still(binds, 1):
        command('recordset', 'set', 'cli.example.com.', 'www', 'A', '--record', '192.0.2.3', '--wait', '0.5',
                code=4)
    binds.stack.wait_for(zone)
    command('zone', 'delete', 'cli.example.com.', '--wait', '30')
    assert binds.who_has('cli.example.com.') == []
