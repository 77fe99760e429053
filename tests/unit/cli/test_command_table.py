from __future__ import annotations

import io
import json
import re
import shlex
import socket
import subprocess
import threading

import pytest

from designate_pool.cli.app import Shell
from designate_pool.cli.client import Client
from designate_pool.errors import ServiceUnavailable, WaitsForApproval
from designate_pool.model import Pool, Server
from designate_pool.pool_manager.server_registry import write_servers
from tests.fixtures.observed_central import BEGAN, FIRST_SERIAL


def test_create_show_set_list_delete(run, central):
    made = run('zone', 'create', 'example.com', '--email', 'hostmaster@example.com', '--ttl', '60', '-f', 'json')
    assert (made.code, made.err) == (0, '')
    assert (made.json['name'], made.json['ttl'], made.json['status']) == ('example.com.', 60, 'PENDING')
    zone_id = made.json['id']
    for zone in ('example.com', 'example.com.', 'EXAMPLE.com', zone_id, zone_id.replace('-', '')):
        assert run('zone', 'show', zone, '-f', 'json').json['id'] == zone_id
    assert run('zone', 'set', 'example.com', '--description', 'An example', '-f', 'json').json['version'] == 2
    assert run('zone', 'show', 'example.com', '-c', 'description', '-f', 'value').out == 'An example\n'
    assert run('zone', 'set', 'example.com', '--no-description', '-f', 'json').json['description'] is None
    listed = run('zone', 'list', '-f', 'csv', '-c', 'name', '-c', 'status')
    assert listed.out == '"name","status"\n"example.com.","PENDING"\n'
    assert run('zone', 'delete', 'example.com', '-f', 'json').json['action'] == 'DELETE'


def test_a_list_is_read_to_its_end(run, api, central):
    for number in range(7):
        run('zone', 'create', f'{number}.example.com', '--email', 'hostmaster@example.com')
    run('zone', 'create', 'example.org', '--email', 'hostmaster@example.org')
    client = Client(api)
    whole = client.get
    client.get = lambda path, **parameters: whole(path, **{**parameters, 'limit': 3})
    assert len(list(client.every('/v2/zones', 'zones'))) == 8
    assert len(run('zone', 'list', '--name', '*.example.com', '-f', 'json').json) == 7
    assert len(run('zone', 'list', '--email', 'hostmaster@example.org', '-f', 'json').json) == 1
    assert run('zone', 'list', '--status', 'active', '-f', 'json').json == []


def test_a_zone_that_is_given_away_may_wait_for_approval(run, central, zone, monkeypatch):
    def give_domain(context, domain_id, project_id):
        domain = central.get_domain(context, domain_id)
        raise WaitsForApproval(domain=domain, changes=[], value=domain, plan=domain_id)

    monkeypatch.setattr(central, 'give_domain', give_domain)
    told = run('zone', 'give', '--to', 'blue', '--zone', 'example.com')
    assert (told.code, told.err) == (0, 'It waits for approval by somebody else: '
                                        f"'designate-pool zone changes approve {zone[:8]}'.\n")


def test_help_of_all():
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        Shell(stdout=out).run(['--help'])
    assert not ended.value.code
    assert re.search('server resync +Compare what a server has', out.getvalue())
    assert 'Exit codes:' in out.getvalue()


def test_recordsets(run, zone):
    made = run('recordset', 'create', 'example.com', 'www', 'a', '--record', '192.0.2.1', '--record', '192.0.2.2',
               '-f', 'json')
    assert (made.json['name'], made.json['type'], made.json['zone_name']) == ('www.example.com.', 'A', 'example.com.')
    run('recordset', 'create', 'example.com', '@', 'TXT', '--record', '"v=spf1 -all"', '--ttl', '300')
    shown = run('recordset', 'show', 'example.com', 'www', '-c', 'records', '-f', 'value')
    assert shown.out == '192.0.2.1\n192.0.2.2\n'
    changed = run('recordset', 'set', 'example.com', 'www', 'A', '--record', '192.0.2.3', '-f', 'json')
    assert changed.json['records'] == ['192.0.2.3']
    assert run('recordset', 'set', 'example.com', '@', 'TXT', '--no-ttl', '-f', 'json').json['ttl'] is None
    listed = run('recordset', 'list', 'example.com', '-f', 'json').json
    assert {(each['name'], each['type'], *each['records']) for each in listed
            if each['type'] not in ('SOA', 'NS')} == {
        ('www.example.com.', 'A', '192.0.2.3'), ('example.com.', 'TXT', '"v=spf1 -all"')}
    assert len(run('recordset', 'list', 'example.com', '--name', 'www', '-f', 'json').json) == 1
    assert run('recordset', 'delete', 'example.com', made.json['id'], '-f', 'json').code == 0
    gone = run('recordset', 'show', 'example.com', 'www')
    assert gone.code == 1
    assert gone.err == ("There is no recordset www.example.com. 'designate-pool recordset list ZONE' shows those there "
                        'are.\n')
    assert run('recordset', 'show', 'example.com', 'www', 'a').err.startswith(
        "There is no recordset www.example.com. A. 'designate-pool")


@pytest.mark.parametrize('line, told', [
    ('recordset create example.com www MX --record "10 mail"', "a name in '10 mail' is not absolute: the final dot is"),
    ('recordset create example.com www NOSUCH --record 1', 'type: not a record type: NOSUCH.'),
    ('recordset create example.com www.example.net. A --record 192.0.2.1', 'name: not inside the zone example.com.\n'),
    ('zone create a..example --email a@example.com', '(A DNS label is empty): a..example.\n'),
    ('zone create a.example --email nobody', 'email: not an e-mail address: nobody.'),
    ('zone create a.example --type SECONDARY', 'A secondary zone needs --master.'),
    ('zone revert example.com --to yesterday', 'nor a time such as 2030-01-31T12:00 or 2h or 3d: yesterday.'),
])
def test_what_is_refused_is_named(run, zone, line, told):
    ran = run(*shlex.split(line))
    assert ran.code == 1 and told in ran.err


def test_a_name_with_several_types_needs_one(run, zone):
    for rtype, data in (('A', '192.0.2.1'), ('AAAA', '2001:db8::1')):
        run('recordset', 'create', 'example.com', 'www', rtype, '--record', data)
    ran = run('recordset', 'delete', 'example.com', 'www')
    assert ran.code == 1
    assert ran.err == 'www.example.com. has recordsets of several types (A, AAAA); name the type after the name.\n'
    assert run('recordset', 'delete', 'example.com', 'www', 'aaaa', '-f', 'json').json['type'] == 'AAAA'


@pytest.mark.parametrize('words, told', [
    (('zone', 'show', 'example.org'),
     "There is no zone example.org. 'designate-pool zone list' shows the zones there are."),
    (('zone', 'create', 'example.com', '--email', 'a@example.com'),
     "The zone example.com. exists already. Change it with 'designate-pool zone set', or delete it first."),
    (('zone', 'create', 'example.org', '--email', ' '), 'email: must not be empty.'),
    (('zone', 'set', 'example.com'),
     'Nothing to change; give --email, --ttl, --master, --description, --no-description, --require-approval or '
     '--no-approval.'),
    (('zone', 'set', 'example.com', '--ttl', '2147483648'), 'ttl: must be from 0 to 2147483647.'),
    (('zone', 'import', 'no/such/file'), 'no/such/file cannot be read: No such file or directory.'),
    (('recordset', 'set', 'example.com', 'www'),
     'Nothing to change; give --record, --ttl, --no-ttl, --description or --no-description.'),
    ((), "No command was given; 'designate-pool --help' shows them."),
])
def test_a_mistake_is_one_line_that_says_what_to_do(run, zone, words, told):
    ran = run(*words)
    assert (ran.code, ran.out, ran.err) == (1, '', told + '\n')


def test_the_api_is_not_there(run):
    with socket.create_server(('127.0.0.1', 0)) as taken:
        url = f'http://127.0.0.1:{taken.getsockname()[1]}'
    ran = run('zone', 'list', url=url)
    assert ran.code == 1
    assert ran.err == (f'The API at {url} does not answer: connection refused. Look whether designate-pool-api '
                       '(or -all) is running and whether --url or DESIGNATE_POOL_URL is right.\n')


@pytest.mark.parametrize('url', ['nonsense', '127.0.0.1:9001', 'ftp://192.0.2.1', 'http://', 'http://[1'])
def test_an_address_that_is_none(run, url):
    ran = run('zone', 'list', url=url)
    assert (ran.code, ran.err.count('\n')) == (1, 1)
    assert url.rstrip('/') in ran.err and 'not an address like http://HOST:PORT' in ran.err


def test_something_else_answers_there(run):
    with socket.create_server(('127.0.0.1', 0)) as other:
        def answer():
            client, _ = other.accept()
            client.recv(1000)
            client.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<hi>')
            client.close()
        threading.Thread(target=answer, daemon=True).start()
        ran = run('zone', 'list', url=f'http://127.0.0.1:{other.getsockname()[1]}')
    assert ran.code == 1
    assert 'is not the API of designate-pool, it sent text/html with status 200' in ran.err


def test_central_is_silent(run, central):
    central.fault = ServiceUnavailable(service='central', why='no answer in 30 s')
    ran = run('zone', 'list')
    assert (ran.code, ran.err.count('\n')) == (1, 1)
    assert ran.err.startswith('central does not answer: no answer in 30 s. Check that designate-pool-central')


def test_an_inner_failure_names_the_request(run, central):
    central.fault = KeyError('x')
    assert "look for req-" in run('zone', 'list').err


def test_status(run, central):
    ran = run('status', '-f', 'json')
    assert (ran.code, ran.json['status']) == (0, 'ok')
    central.fault = ServiceUnavailable(service='central', why='no answer in 30 s')
    ran = run('status', '-f', 'json')
    assert (ran.code, ran.json['status'], ran.json['central']) == (
        1, 'unavailable', 'central does not answer: no answer in 30 s.')


# --wait

def states(ran):
    """Without the milliseconds."""
    return [' '.join(line.split()[:-2]) for line in ran.err.splitlines() if ' serial ' in line and line.endswith(' ms')]


def test_a_change_is_followed_server_by_server(run, central, zone):
    central.steps = [lambda: None, lambda: central.settle(zone), lambda: None]
    ran = run('zone', 'set', 'example.com', '--ttl', '60', '-f', 'json', '--wait')
    serial = FIRST_SERIAL + 1
    assert ran.code == 0
    assert (ran.json['status'], ran.json['serial']) == ('ACTIVE', serial)
    assert states(ran)[:3] == [f'fake:192.0.2.{number}:53 UPDATE SUCCESS serial {FIRST_SERIAL}' for number in (1, 2, 3)]
    assert states(ran)[3:] == [f'fake:192.0.2.{number}:53 UPDATE SUCCESS serial {serial}' for number in (1, 2, 3)]
    assert f'example.com. is ACTIVE at serial {serial} on 3 of 3 servers after ' in ran.err
    assert '\033' not in ran.err


def test_a_recordset_is_waited_for(run, central, zone):
    central.steps = [lambda: central.settle(zone)]
    ran = run('recordset', 'create', 'example.com', 'www', 'A', '--record', '192.0.2.1', '-f', 'json', '--wait')
    assert (ran.code, ran.json['name']) == (0, 'www.example.com.')
    central.steps = [lambda: central.settle(zone)]
    ran = run('recordset', 'delete', 'example.com', 'www', '-f', 'json', '--wait')
    assert (ran.code, ran.json['status']) == (0, 'DELETED')


def test_a_deletion_is_waited_for_until_the_zone_is_gone(run, central, zone):
    central.steps = [lambda: None, lambda: central.settle(zone)]
    ran = run('zone', 'delete', 'example.com', '-f', 'json', '--wait=5')
    assert (ran.code, ran.json['status']) == (0, 'DELETED')
    assert 'fake:192.0.2.1:53 DELETE PENDING serial -' in states(ran)
    assert 'example.com. is gone after ' in ran.err


def test_the_pool_says_error(run, central, zone):
    central.steps = [lambda: central.fail(zone, 'connection refused')]
    ran = run('zone', 'set', 'example.com', '--ttl', '60', '-f', 'json', '--wait', '20')
    assert (ran.code, ran.json['status']) == (3, 'ERROR')
    assert 'fake:192.0.2.1:53  UPDATE ERROR ' in ran.err
    *_, line, hint = ran.err.splitlines()
    assert line.startswith('example.com. is in ERROR: 3 of 3 servers failed; lacking: '
                           'fake:192.0.2.1:53 (connection refused), ')
    assert hint == "'designate-pool zone explain example.com.' tells more."


def test_the_time_is_over(run, zone):
    ran = run('zone', 'set', 'example.com', '--ttl', '60', '--wait', '0.3')
    assert ran.code == 4
    assert (f'example.com. is not ACTIVE at serial {FIRST_SERIAL + 1} after 0.3 s: 0 of 3 servers have the change, '
            '2 are needed; lacking: fake:192.0.2.1:53 (SUCCESS)') in ran.err


@pytest.mark.parametrize('wait', ['0', '-1', 'example.com', 'inf', 'nan'])
def test_a_wait_that_is_no_time(run, capsys, wait):
    with pytest.raises(SystemExit) as ended:
        run('zone', 'set', 'example.com', f'--wait={wait}')
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert 'is no number of seconds' in told and ('put the option last' in told) is (wait == 'example.com')


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


#: What the package bash-completion gives its functions.
WORDS = '_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cur="${COMP_WORDS[COMP_CWORD]}"; }'


@pytest.mark.parametrize('words, expected', [
    ('zon', ['zone']),
    ('zone expl', ['explain']),
    ('zone transfer accept l', ['list']),
    ('zone list --sta', ['--status']),
])
def test_in_bash(run, words, expected):
    function = run('complete', '--name', 'pool-command').out
    asked = f"""{WORDS}
        {function}
        COMP_WORDS=(pool-command {words}) COMP_CWORD={len(words.split())}
        _pool_command
        printf '%s\\n' "${{COMPREPLY[@]}}"
        complete -p pool-command"""
    ran = subprocess.run(['bash', '--norc', '-c', asked], capture_output=True, text=True, timeout=60)
    *found, registered = ran.stdout.splitlines()
    assert (found, ran.stderr) == (expected, '')
    assert registered == 'complete -F _pool_command pool-command'
