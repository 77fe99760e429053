"""What is kept beside zones, over HTTP on the running system: TSIG keys, and the services."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import uuid
from collections.abc import Iterator

import dns.message
import dns.tsig
import pytest

from testing.processes import binary, wait_until
from testing.stack import Stack
from tests.fixtures.answering import Scripted, soa_answer

SECRET = 'c2VjcmV0IG9mIHRoZSBmaXJzdCBrZXk='
OTHER = 'c2VjcmV0IG9mIHRoZSBvdGhlciBrZXk='
#: What no key can be called, since some server's configuration does not take it.
NO_NAMES = ('bad name', '.', 'a..b', '"a"', 'a\\032b', '*', 'a;b', 'a/b', '\xe4', f'{"a" * 64}.b', 'a.' * 128)
SERVERS = f'[tsig:key-of-a-server]\nalgorithm = hmac-sha256\nsecret = {OTHER}\n' \
          f'[backend:fake:{uuid.uuid4()}]\nhost = 127.0.0.1\nport = 9\ncall_timeout = 2\ntsig_key = key-of-a-server\n'


@pytest.fixture(scope='module')
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp('resources')
    with Stack(folder, [SERVERS], f'sqlite:///{folder}/database.sqlite', concurrency='threading') as running:
        yield running


@pytest.fixture(scope='module')
def zone(stack: Stack) -> str:
    return str(stack.create_zone('example.com.', recordsets=[
        {'name': 'www.example.com.', 'type': 'A', 'records': ['192.0.2.1']}])['id'])


@pytest.fixture(scope='module')
def other_zone(stack: Stack) -> str:
    return str(stack.create_zone('example.net.')['id'])


def dig(stack: Stack, zone: str, key: str, secret: str = SECRET, kind: str = 'AXFR') -> str:
    """What dig gets for it: ``records``, or in words why there are none."""
    done = subprocess.run(
        [binary('dig'), f'@{stack.minidns_host}', '-p', str(stack.minidns_port), '+time=5', '+tries=1', '+nocookie',
         '+norecurse', '-y', f'hmac-sha256:{key}:{secret}', zone, kind],
        capture_output=True, text=True, timeout=30, check=False)
    if 'SOA' in ''.join(line for line in done.stdout.splitlines() if not line.startswith(';')):
        assert 'WARNING' not in done.stdout and "Couldn't verify" not in done.stdout, done.stdout
        return 'records'
    return done.stdout


def make_key(stack: Stack, name: str, scope: str, resource_id: str, secret: str = SECRET) -> str:
    made = stack.request('POST', '/v2/tsigkeys', 201, json={
        'name': name, 'algorithm': 'hmac-sha256', 'secret': secret, 'scope': scope, 'resource_id': resource_id})
    assert made['secret'] == '***'
    return str(made['id'])


def works(stack: Stack, zone: str, key: str, secret: str = SECRET) -> None:
    wait_until(lambda: dig(stack, zone, key, secret) == 'records', f'{zone} is transferred by {key}', 30)


def ends(stack: Stack, zone: str, key: str, secret: str = SECRET) -> None:
    wait_until(lambda: dig(stack, zone, key, secret) != 'records', f'{key} no longer works', 30)


def pool_id(stack: Stack) -> str:
    return str(stack.request('GET', '/v2/pools', 200)['pools'][0]['id'])


def test_the_key_of_a_zone_gets_that_zone_and_no_other(stack: Stack, zone: str, other_zone: str) -> None:
    make_key(stack, 'for-one-zone', 'ZONE', zone)
    works(stack, 'example.com.', 'for-one-zone')
    assert dig(stack, 'example.com.', 'for-one-zone', kind='IXFR=1') == 'records'
    assert dig(stack, 'example.com.', 'for-one-zone', kind='SOA') == 'records'
    assert 'Transfer failed' in dig(stack, 'example.net.', 'for-one-zone')
    assert 'REFUSED' in dig(stack, 'example.net.', 'for-one-zone', kind='SOA')
    assert 'BADSIG' in dig(stack, 'example.com.', 'for-one-zone', OTHER)
    assert 'BADKEY' in dig(stack, 'example.com.', 'for-nothing')
    assert 'asks for example.net., for which the key for-one-zone. is not' in stack.logs()


def test_the_key_of_a_pool_gets_all_its_zones_until_it_is_changed(stack: Stack, zone: str, other_zone: str) -> None:
    key = make_key(stack, 'for-the-pool.example.org.', 'POOL', pool_id(stack))
    for name in ('example.com.', 'example.net.'):
        works(stack, name, 'for-the-pool.example.org')
    assert stack.request('PATCH', f'/v2/tsigkeys/{key}', 200, json={'secret': OTHER})['version'] == 2
    works(stack, 'example.com.', 'for-the-pool.example.org', OTHER)
    ends(stack, 'example.com.', 'for-the-pool.example.org')
    stack.request('PATCH', f'/v2/tsigkeys/{key}', 200, json={'scope': 'ZONE', 'resource_id': other_zone})
    ends(stack, 'example.com.', 'for-the-pool.example.org', OTHER)
    works(stack, 'example.net.', 'for-the-pool.example.org', OTHER)
    stack.request('DELETE', f'/v2/tsigkeys/{key}', 204)
    stack.request('GET', f'/v2/tsigkeys/{key}', 404)
    ends(stack, 'example.net.', 'for-the-pool.example.org', OTHER)


def test_who_is_no_server_is_notified_of_each_change(stack: Stack, other_zone: str) -> None:
    make_key(stack, 'notifies.example.com', 'POOL', pool_id(stack))
    ring = dns.tsig.Key('notifies.example.com.', SECRET, 'hmac-sha256')
    ttls = itertools.count(100)

    def change() -> list[dns.message.Message]:
        stack.request('PATCH', f'/v2/zones/{other_zone}', json={'ttl': next(ttls)})
        return there.notifies()

    with contextlib.closing(Scripted(lambda query, over_tcp: [soa_answer(query, 1)], keyring=ring)) as there:
        where = f'127.0.0.1:{there.port} key notifies.example.com.'
        assert 'there is no TSIG key nobody' in stack.complaint('pool', 'set', 'default', '--also-notify',
                                                                '192.0.2.53 key nobody')
        assert where in stack.command('pool', 'set', 'default', '--also-notify', where)
        (query, *_) = wait_until(change, 'it is notified', pause=0.2)
        assert query.had_tsig and query.question[0].name.to_text() == 'example.net.'
        assert f'Also notified of each change: {where}\n' in stack.command('zone', 'explain', 'example.net')
        assert stack.command('pool', 'set', 'default', '--no-also-notify')
    assert 'Also notified' not in stack.command('zone', 'explain', 'example.net')


@pytest.mark.parametrize(('values', 'status', 'type'), [
    ({'name': 'For-One-Zone.'}, 409, 'duplicate_tsigkey'),
    ({'name': 'key-of-a-server'}, 409, 'duplicate_tsigkey'),
    ({'secret': '***'}, 400, 'invalid_object'),
    *(({'name': name}, 400, 'invalid_object') for name in NO_NAMES),
    ({'resource_id': str(uuid.uuid4())}, 400, 'invalid_object'),
])
def test_a_key_that_cannot_be(stack: Stack, zone: str, values: dict[str, str], status: int, type: str) -> None:
    if not stack.request('GET', '/v2/tsigkeys?name=for-one-zone')['tsigkeys']:
        make_key(stack, 'for-one-zone', 'ZONE', zone)
    given = {'name': 'new', 'algorithm': 'hmac-sha256', 'secret': SECRET, 'scope': 'ZONE', 'resource_id': zone}
    fault = stack.request('POST', '/v2/tsigkeys', status, json={**given, **values})
    assert fault['type'] == type
    assert given['secret'] not in str(fault)


def test_every_service_says_that_it_lives(stack: Stack) -> None:
    def look() -> dict[str, str]:
        found = stack.request('GET', '/v2/service_statuses', 200)['service_statuses']
        return {each['service_name']: each['status'] for each in found}

    wait_until(lambda: len(look()) == 5, 'all have said it', 30)
    assert look() == dict.fromkeys(('api', 'central', 'mdns', 'producer', 'worker'), 'UP')
    (one,) = stack.request('GET', '/v2/service_statuses?service_name=minidns')['service_statuses']
    assert one['hostname'] == 'test' and one['stats']['version'] and one['capabilities'] == {}
    stats = one['stats']
    assert (one['service_name'], stats['service_name'], stats['pool_name']) == ('mdns', 'minidns', 'default')
    (other,) = stack.request('GET', '/v2/service_statuses?service_name=central')['service_statuses']
    assert other['stats'].keys().isdisjoint({'pool_name', 'service_name'})
    assert one == stack.request('GET', f'/v2/service_statuses/{one["id"]}', 200)
    stack.request('GET', f'/v2/service_statuses/{uuid.uuid4()}', 404)
    worker, producer = (stack.request('GET', f'/v2/service_statuses?service_name={name}')['service_statuses'][0]
                        for name in ('worker', 'producer'))
    assert worker['id'] != producer['id']
    assert producer == stack.request('GET', f'/v2/service_statuses/{producer["id"]}', 200)
    assert len(stack.request('GET', '/v2/service_statuses?service_name=pool_manager')['service_statuses']) == 2
    first = stack.request('GET', '/v2/service_statuses?limit=3&sort_dir=desc')
    rest = stack.request('GET', first['links']['next'].removeprefix(stack.url))
    assert [each['service_name'] for each in first['service_statuses'] + rest['service_statuses']] == [
        'worker', 'producer', 'mdns', 'central', 'api']
    stack.request('GET', f'/v2/service_statuses?marker={uuid.uuid4()}', 400)
