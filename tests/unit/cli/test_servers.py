"""``designate-pool server ...`` against the API; the pool manager is stood in for."""

from __future__ import annotations

import dataclasses
import uuid
from datetime import datetime, timezone

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
    assert listed[0] == {'name': ONE, 'id': str(uuid.UUID(SERVER_IDS[0])), 'state': 'joining', 'zones': 1000,
                         'waiting': 3, 'failing': 1, 'note': '512 of 1000 zones started'}
    assert [(each['state'], each['note']) for each in listed[1:]] == [('draining', 'drained by command'),
                                                                      ('active', None)]
    assert '512 of 1000 zones started' in run('server', 'list').out
    central.put(SERVER_IDS[2], ServerState.ACTIVE, silent_since=datetime(2026, 5, 1, 9, 21, 10, tzinfo=timezone.utc))
    assert run('server', 'list', '-f', 'json').json[2]['note'] == 'silent since 2026-05-01 09:21:10 UTC'


def test_there_is_no_such_server(run):
    ran = run('server', 'show', '192.0.2')
    assert (ran.code, ran.err) == (
        1, "There is no server 192.0.2. 'designate-pool server list' shows the servers there are.\n")


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


@pytest.mark.parametrize('options, delete_zones', [((), False), (('--delete-zones',), True)])
def test_drain(run, central, options, delete_zones):
    drained = run('server', 'drain', ONE, '-f', 'json', *options).json
    assert (drained['state'], drained['dismissed'], drained['delete_zones']) == ('draining', True, delete_zones)


def test_a_drain_is_waited_for(run, central):
    central.put(SERVER_IDS[0], ServerState.ACTIVE, rows=400)
    central.steps = [lambda: None, lambda: central.put(SERVER_IDS[0], ServerState.REMOVED, rows=0)]
    ran = run('server', 'drain', ONE, '-f', 'json', '--wait')
    assert (ran.code, ran.json['state']) == (0, 'removed')
    assert ran.err.splitlines() == [f'0 %  {ONE}: 400 of 400 entries left', f'100 %  {ONE}: removed',
                                    f'{ONE} is drained and removed from the pool.']


def test_a_drained_server_that_has_its_zones_still(run, central):
    left = {'delete_zones': False, 'note': 'its zones were left on it: connection refused'}
    central.steps = [lambda: central.put(SERVER_IDS[0], ServerState.REMOVED, rows=0, **left)]
    ran = run('server', 'drain', ONE, '--delete-zones', '--wait')
    assert (ran.code, ran.err.splitlines()[-1]) == (3, f'{ONE} is removed from the pool: {left["note"]}.')


def test_a_command_that_the_state_does_not_allow(run, central):
    central.put(SERVER_IDS[0], ServerState.REMOVED)
    ran = run('server', 'maintenance', ONE)
    assert (ran.code, ran.err) == (
        1, f"Server {ONE} is removed: it is being removed. 'designate-pool server list' shows the state of each.\n")


# resync

UP_TO_DATE = f'{ONE} has all 3 zones that it should have, up to date.\n'
AT_THEIR_SERIALS = f'{ONE} has all 3 zones that it should have, at their serials.\n'
UNCHECKED = (('b.example.', 'it refuses'),)
OTHER = (('a.example.', 'serves serial 7 with other contents'),)


@pytest.mark.parametrize('comparison, words, code, told', [
    ({'extra': ()}, (), 0, UP_TO_DATE),
    ({'total': 1000, 'missing': ('a.example.', 'b.example.'), 'extra': ('x.example.',),
      'behind': (('c.example.', 5, 7), ('d.example.', None, 8))}, (), 1, f"""\
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
"""),
    ({'extra': (), 'other': ()}, ('--contents',), 0, UP_TO_DATE + 'Contents: all the same.\n'),
    ({'extra': (), 'other': OTHER, 'unchecked': UNCHECKED}, ('--contents',), 1, f"""\
{AT_THEIR_SERIALS}other contents: 1
  a.example.  serves serial 7 with other contents
contents not checked: 1
  b.example.  it refuses
--fix creates missing zones and transfers outdated or differing ones again.
"""),
    ({'extra': (), 'other': (), 'unchecked': UNCHECKED}, ('--contents', '--fix'), 1, f"""\
{AT_THEIR_SERIALS}Contents: no difference.
contents not checked: 1
  b.example.  it refuses
"""),
    ({'extra': None}, (), 0, UP_TO_DATE + 'It cannot list its zones, so extra ones are not known.\n'),
    ({'extra': ('x.example.',), 'extra_complete': False}, (), 1, f"""\
{UP_TO_DATE}extra: 1
  x.example.
Extra zones stay; --delete-extra 1 deletes them.
It cannot list its zones: extra ones are known only if the pool had them before.
"""),
    ({'extra': ('x.example.', 'y.example.')}, ('--delete-extra', '2'), 0,
     f'{UP_TO_DATE}extra: 2\n  x.example.\n  y.example.\nDeleted: 2 of 2 extra zones.\n'),
], ids=['the same', 'differences', 'the same contents', 'other contents', 'not all was checked', 'it cannot list',
        'it cannot list, and has one that was deleted', 'extra zones are deleted'])
def test_resync(run, pool_manager, comparison, words, code, told):
    pool_manager.comparison = Comparison('', **{'total': 3, **comparison})
    ran = run('server', 'resync', ONE, *words)
    assert (ran.code, ran.out, ran.err) == (code, told, '')
    [(_, server, fix, extra, contents)] = pool_manager.asked
    assert (server, fix, extra, contents) == (
        SERVER_IDS[0], '--fix' in words, 2 if '--delete-extra' in words else None, '--contents' in words)


def test_differences_for_machines(run, pool_manager):
    pool_manager.comparison = Comparison('', 3, ('a.example.',), (('d.example.', None, 8),), ())
    ran = run('server', 'resync', ONE, '-f', 'json')
    assert (ran.code, ran.json['server'], ran.json['missing'], ran.json['behind']) == (
        1, ONE, ['a.example.'], [{'zone_name': 'd.example.', 'serial': None, 'expected_serial': 8}])


def test_many_differences_are_named_on_demand(run, pool_manager):
    names = tuple(f'd{number}.example.' for number in range(25))
    pool_manager.comparison = Comparison('', 25, names, (), names[:20])
    out = run('server', 'resync', ONE).out
    assert (out.count('  d'), out.count('--all shows them')) == (40, 1)
    assert '  and 5 more; --all shows them\n' in out
    assert run('server', 'resync', ONE, '--all').out.count('  d') == 45


def test_it_is_mended_and_waited_for(run, central, pool_manager):
    pool_manager.comparison = Comparison('', 3, ('a.example.',), (('b.example.', 1, 2),), ())
    central.put(SERVER_IDS[0], ServerState.ACTIVE, waiting=2)
    central.steps = [lambda: None] * 2 + [lambda: central.put(SERVER_IDS[0], ServerState.ACTIVE, waiting=0)]
    ran = run('server', 'resync', ONE, '--fix')
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == 'Repair started: 2 operations.'
    assert ran.err.splitlines() == [f'0 %  {ONE}: 2 waiting', f'100 %  {ONE}: nothing is waiting',
                                    f'{ONE} is active and nothing waits for it.']
    assert pool_manager.asked == [('default', SERVER_IDS[0], True, None, False)]


def test_another_number_of_extra_zones_is_refused(run, pool_manager):
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
