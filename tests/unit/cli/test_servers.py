"""``designate-pool server ...`` against the API; the pool manager is stood in for."""

from __future__ import annotations

import dataclasses
import uuid

import pytest

from designate_pool.errors import BadConfiguration, WrongServerState
from designate_pool.model import Comparison, Reloaded, ServerState
from designate_pool.storage.operations import pool_servers
from tests.fixtures.observed_central import SERVER_IDS, SERVERS

ONE, TWO, THREE = (f'fake:192.0.2.{number}:53' for number in (1, 2, 3))


def test_list(run, central):
    central.put(SERVER_IDS[0], ServerState.JOINING, filled_to='a', filled=512, domains=1000, waiting=3, failing=1)
    central.put(SERVER_IDS[1], ServerState.DRAINING, note='drained by command', domains=1000)
    listed = run('server', 'list', '-f', 'json').json
    assert listed[0] == {'name': ONE, 'id': str(uuid.UUID(SERVER_IDS[0])), 'state': 'joining', 'domains': 1000,
                         'waiting': 3, 'failing': 1, 'note': '512 of 1000 zones started'}
    assert [(each['state'], each['note']) for each in listed[1:]] == [('draining', 'drained by command'),
                                                                      ('active', None)]
    assert '512 of 1000 zones started' in run('server', 'list').out


@pytest.mark.parametrize('given_text', [SERVER_IDS[1], str(uuid.UUID(SERVER_IDS[1])), '2222', '22222222-22', TWO,
                                        TWO.upper(), '192.0.2.2'])
def test_what_a_server_is_called(run, given_text):
    assert run('server', 'show', given_text, '-f', 'json').json['name'] == TWO


@pytest.mark.parametrize('given_text', ['222', '192.0.2', 'f' * 32, 'fake', '4444'])
def test_there_is_no_such_server(run, given_text):
    ran = run('server', 'show', given_text)
    assert (ran.code, ran.err) == (
        1, f"There is no server {given_text}. 'designate-pool server list' shows the servers there are.\n")


def test_a_name_that_several_have(run, central):
    other = dataclasses.replace(SERVERS[0], id='1111' + 'a' * 28, label='fake:192.0.2.1:54')
    central.storage.run(pool_servers.register, 'default', [*SERVERS, other], False, True, central.storage.now())
    for given_text in ('1111', '192.0.2.1'):
        ran = run('server', 'show', given_text)
        assert ran.code == 1
        assert ran.err == (f'{given_text} fits several servers ({ONE} {uuid.UUID(SERVER_IDS[0])}, fake:192.0.2.1:54 '
                           f'{uuid.UUID(other.id)}); give the name or more of the id.\n')
    assert run('server', 'show', '1111a', '-f', 'json').json['name'] == 'fake:192.0.2.1:54'


def test_show(run, central):
    central.put(SERVER_IDS[0], ServerState.ACTIVE, rows=9, waiting=2, failing=2,
                failures=(('a.example.', 'CREATE', 'refused'), ('b.example.', 'DELETE', 'timed out')))
    shown = run('server', 'show', ONE, '-f', 'json').json
    assert (shown['rows'], shown['failures'][1]) == (
        9, {'zone_name': 'b.example.', 'action': 'DELETE', 'error': 'timed out'})
    assert run('server', 'show', ONE, '-f', 'value', '-c', 'failures').out == (
        'a.example. CREATE: refused\nb.example. DELETE: timed out\n')


def test_maintenance_and_back(run):
    assert run('server', 'maintenance', '1111', '-f', 'json').json['state'] == 'maintenance'
    assert run('server', 'list', '-f', 'value', '-c', 'state').out == 'maintenance\nactive\nactive\n'
    back = run('server', 'resume', '1111', '-f', 'json')
    assert (back.code, back.json['state'], back.err) == (0, 'active', '')


def test_what_it_missed_is_waited_for(run, central):
    central.put(SERVER_IDS[0], ServerState.MAINTENANCE, waiting=40)
    central.steps = [lambda: None, lambda: central.put(SERVER_IDS[0], ServerState.ACTIVE, waiting=0)]
    ran = run('server', 'resume', ONE, '-f', 'json', '--wait')
    assert (ran.code, ran.json['state']) == (0, 'active')
    assert ran.err.splitlines() == [f'0 %  {ONE}: 40 waiting', f'100 %  {ONE}: nothing is waiting',
                                    f'{ONE} is active and nothing waits for it.']


@pytest.mark.parametrize('options, delete_zones', [((), False), (('--delete-zones',), True)])
def test_drain(run, central, options, delete_zones):
    drained = run('server', 'drain', ONE, '-f', 'json', *options).json
    assert (drained['state'], drained['dismissed'], drained['delete_zones']) == ('draining', True, delete_zones)


@pytest.mark.parametrize('end', [lambda central: central.put(SERVER_IDS[0], ServerState.REMOVED, rows=0),
                                 lambda central: central.forget(SERVER_IDS[0])], ids=['removed', 'forgotten'])
def test_a_drain_is_waited_for(run, central, end):
    central.put(SERVER_IDS[0], ServerState.ACTIVE, rows=400)
    central.steps = [lambda: None, lambda: end(central)]
    ran = run('server', 'drain', ONE, '-f', 'json', '--wait')
    assert (ran.code, ran.json['state']) == (0, 'removed')
    assert ran.err.splitlines() == [f'0 %  {ONE}: 400 of 400 entries left', f'100 %  {ONE}: removed',
                                    f'{ONE} is drained and removed from the pool.']


def test_a_command_that_the_state_does_not_allow(run, central):
    central.put(SERVER_IDS[0], ServerState.REMOVED)
    ran = run('server', 'maintenance', ONE)
    assert (ran.code, ran.err) == (
        1, f"Server {ONE} is removed: it is being removed. 'designate-pool server list' shows the state of each.\n")


# resync

def test_nothing_is_wrong(run, pool_manager):
    ran = run('server', 'resync', ONE)
    assert (ran.code, ran.out, ran.err) == (0, f'{ONE} has all 3 zones that it should have, up to date.\n', '')
    assert pool_manager.asked == [('default', SERVER_IDS[0], False, None, False)]


def test_differences(run, pool_manager):
    pool_manager.comparison = Comparison('', 1000, ('a.example.', 'b.example.'),
                                         (('c.example.', 5, 7), ('d.example.', None, 8)), ('x.example.',))
    ran = run('server', 'resync', ONE)
    assert (ran.code, ran.err) == (1, '')
    assert ran.out == f"""\
{ONE} should have 1000 zones: 2 are missing, 2 are behind.
missing: 2
  a.example.
  b.example.
behind: 2
  c.example.  serves 5, should serve 7
  d.example.  serves nothing, should serve 8
extra: 1
  x.example.
--fix creates missing zones and transfers outdated ones again.
Extra zones stay; --delete-extra 1 deletes them.
"""
    machine = run('server', 'resync', ONE, '-f', 'json')
    assert (machine.code, machine.json['server'], machine.json['missing'], machine.json['behind'][1]) == (
        1, ONE, ['a.example.', 'b.example.'], {'zone_name': 'd.example.', 'serial': None, 'expected_serial': 8})


def test_contents_are_compared_when_asked_for(run, pool_manager):
    pool_manager.comparison = Comparison('', 3, extra=(), other=())
    ran = run('server', 'resync', ONE, '--contents')
    assert (ran.code, ran.out) == (0, f'{ONE} has all 3 zones that it should have, up to date.\n'
                                      'Contents: all the same.\n')
    pool_manager.comparison = Comparison(
        '', 3, extra=(), other=(('a.example.', 'serves serial 7 with other contents'),),
        unchecked=(('b.example.', 'it refuses'),))
    ran = run('server', 'resync', ONE, '--contents')
    assert (ran.code, ran.out) == (1, f"""\
{ONE} has all 3 zones that it should have, at their serials.
other contents: 1
  a.example.  serves serial 7 with other contents
contents not checked: 1
  b.example.  it refuses
--fix creates missing zones and transfers outdated or differing ones again.
""")
    assert pool_manager.asked[-1] == ('default', SERVER_IDS[0], False, None, True)
    ran = run('server', 'resync', ONE, '--contents', '--fix', '--no-wait')
    assert (ran.code, ran.out.splitlines()[-1]) == (1, 'Repair started: 1 operations.')


def test_contents_that_could_not_be_checked_are_not_said_to_be_up_to_date(run, pool_manager):
    pool_manager.comparison = Comparison('', 3, extra=(), other=(), unchecked=(('b.example.', 'it refuses'),))
    ran = run('server', 'resync', ONE, '--contents', '--fix')
    assert (ran.code, ran.out) == (1, f"""\
{ONE} has all 3 zones that it should have, at their serials.
Contents: no difference.
contents not checked: 1
  b.example.  it refuses
""")


def test_many_differences_are_named_on_demand(run, pool_manager):
    names = tuple(f'd{number}.example.' for number in range(25))
    pool_manager.comparison = Comparison('', 25, names, (), names[:20])
    out = run('server', 'resync', ONE).out
    assert (out.count('  d'), out.count('--all shows them')) == (40, 1)
    assert '  and 5 more; --all shows them\n' in out
    assert run('server', 'resync', ONE, '--all').out.count('  d') == 45
    assert len(run('server', 'resync', ONE, '-f', 'json').json['missing']) == 25


def test_a_server_that_cannot_list_its_zones(run, pool_manager):
    pool_manager.comparison = Comparison('', 3, extra=None)
    ran = run('server', 'resync', ONE)
    assert ran.code == 0
    assert ran.out.endswith('It cannot list its zones, so extra ones are not known.\n')


def test_a_server_that_cannot_list_its_zones_has_one_that_was_deleted(run, pool_manager):
    pool_manager.comparison = Comparison('', 3, extra=('x.example.',), extra_complete=False)
    ran = run('server', 'resync', ONE)
    assert ran.code == 1
    assert ran.out.endswith("""\
extra: 1
  x.example.
Extra zones stay; --delete-extra 1 deletes them.
It cannot list its zones: extra ones are known only if the pool had them before.
""")


def test_it_is_mended_and_waited_for(run, central, pool_manager):
    pool_manager.comparison = Comparison('', 3, ('a.example.',), (('b.example.', 1, 2),), ())
    central.put(SERVER_IDS[0], ServerState.ACTIVE, waiting=2)
    central.steps = [lambda: None, lambda: central.put(SERVER_IDS[0], ServerState.ACTIVE, waiting=0)]
    ran = run('server', 'resync', ONE, '--fix')
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == 'Repair started: 2 operations.'
    assert ran.err.splitlines() == [f'0 %  {ONE}: 2 waiting', f'100 %  {ONE}: nothing is waiting',
                                    f'{ONE} is active and nothing waits for it.']
    assert pool_manager.asked == [('default', SERVER_IDS[0], True, None, False)]


def test_it_is_not_mended_in_time(run, central, pool_manager):
    pool_manager.comparison = Comparison('', 3, ('a.example.',), (), ())
    central.put(SERVER_IDS[0], ServerState.ACTIVE, waiting=1)
    ran = run('server', 'resync', ONE, '--fix', '--wait', '0.02')
    assert (ran.code, 'is not done after 0.02 s: 1 waiting.' in ran.err) == (4, True)
    central.put(SERVER_IDS[0], ServerState.MAINTENANCE)
    ran = run('server', 'resync', ONE, '--fix')
    assert (ran.code, ran.err.splitlines()[-1]) == (1, f'{ONE} is in maintenance, and nothing is sent to it.')


def test_extra_zones_stay_unless_they_are_counted(run, pool_manager):
    pool_manager.comparison = Comparison('', 3, extra=('x.example.', 'y.example.'))
    left = run('server', 'resync', ONE, '--fix')
    assert (left.code, left.out.splitlines()[-1]) == (1, 'Extra zones stay; --delete-extra 2 deletes them.')
    gone = run('server', 'resync', ONE, '--delete-extra', '2')
    assert (gone.code, gone.out.splitlines()[-1]) == (0, 'Deleted: 2 of 2 extra zones.')
    pool_manager.fault = WrongServerState(server=ONE, state='active', why='it has 2 extra zones, not 3')
    ran = run('server', 'resync', ONE, '--delete-extra', '3')
    assert (ran.code, ran.out) == (1, '')
    assert ran.err.startswith(f'Server {ONE} is active: it has 2 extra zones, not 3. ')


# reload

def test_reload(run, pool_manager):
    pool_manager.reloaded = Reloaded(joined=(THREE,), changed=(ONE, TWO))
    assert run('server', 'reload', '-f', 'json').json == {'joined': [THREE], 'changed': [ONE, TWO], 'draining': []}
    assert run('server', 'reload', '-f', 'value', '-c', 'changed').out == f'{ONE}\n{TWO}\n'


def test_those_that_join_are_waited_for(run, central, pool_manager):
    pool_manager.reloaded = Reloaded(joined=(TWO, THREE))
    central.put(SERVER_IDS[1], ServerState.JOINING, filled_to='a', filled=10, domains=1000)
    central.put(SERVER_IDS[2], ServerState.JOINING, waiting=5)
    central.steps = [lambda: None, lambda: central.put(SERVER_IDS[1], ServerState.ACTIVE, filled_to=None),
                     lambda: None, lambda: central.put(SERVER_IDS[2], ServerState.ACTIVE, waiting=0)]
    ran = run('server', 'reload', '-f', 'json', '--wait')
    assert (ran.code, ran.json['joined']) == (0, [TWO, THREE])
    assert ran.err.splitlines() == [
        f'1 %  {TWO}: 10 of 1000 zones started', f'100 %  {TWO}: nothing is waiting',
        f'{TWO} is active and nothing waits for it.', f'0 %  {THREE}: 5 waiting',
        f'100 %  {THREE}: nothing is waiting', f'{THREE} is active and nothing waits for it.']


def test_a_wrong_configuration_is_told_mistake_by_mistake(run, pool_manager):
    pool_manager.fault = BadConfiguration(count=2, listing='\n  [backend:x:1] host: missing\n  [backend:x:1] port: no')
    ran = run('server', 'reload')
    assert (ran.code, ran.out) == (1, '')
    assert ran.err == """\
The configuration has mistakes (2):
  [backend:x:1] host: missing
  [backend:x:1] port: no
Nothing has changed; correct the file and reload again.
"""
