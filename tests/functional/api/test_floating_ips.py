"""PTR records of floating IPs: python-designateclient, openstacksdk and ``openstack`` as they come, against the API
with stand-ins for Keystone and Neutron.
"""

from __future__ import annotations

import json
import os
import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

import openstack
import pytest
import requests
from designateclient import exceptions
from keystoneauth1 import session, token_endpoint

from testing import warm
from testing.processes import wait_until
from testing.stack import Stack
from tests.fixtures.keystone import Keystone
from tests.fixtures.nameservers import SecondaryServer
from tests.fixtures.neutron import NETWORK, Neutron
from tests.fixtures.openstack import OpenStack

ZONE = '.'.join(reversed(NETWORK.split('.'))) + '.in-addr.arpa.'
OWNER = 'the-project-of-managed-resources'


class Cloud:
    """The pool with one small name server, Keystone and Neutron."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.keystone = Keystone()
        self.keystone.tokens = {f'{role}-{project}': (project, [role], role) for role, project in (
            ('member', 'alpha'), ('reader', 'alpha'), ('member', 'beta'), ('admin', 'ops'))}
        self.neutron = Neutron(self.keystone)
        self.keystone.endpoints['network'] = self.neutron.url
        self.server = SecondaryServer(folder / 'ns1')
        self.stack = Stack(folder / 'stack', [
            'auth = keystone\nrate_limit = 0\n', self.keystone.section(), self.server.section(
                str(uuid.uuid4()), call_timeout=2),
            f'[service:central]\nmanaged_resource_tenant_id = {OWNER}\nmanaged_resource_email = ptr@example.com\n'],
            f'sqlite:///{folder}/pool.sqlite')
        self.alpha, self.beta, self.admin = (OpenStack(self.stack.url, each) for each in (
            'member-alpha', 'member-beta', 'admin-ops'))

    def start(self) -> None:
        self.server.start()
        self.stack.start()

    def stop(self) -> None:
        self.stack.stop()
        self.server.stop()
        self.neutron.stop()
        self.keystone.stop()

    def served(self, address: str) -> list[str]:
        return self.server.texts(f'{address.rpartition(".")[2]}.{ZONE}', 'PTR')

    def send(self, method: str, path: str, token: str = 'member-alpha', **options: Any) -> requests.Response:
        return requests.request(method, f'{self.stack.url}/v2/reverse/floatingips{path}',
                                headers={'X-Auth-Token': token}, timeout=30, **options)


@pytest.fixture(scope='module')
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    made = Cloud(tmp_path_factory.mktemp('cloud'))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(autouse=True)
def no_floating_ips(cloud: Cloud) -> Iterator[None]:
    yield
    cloud.neutron.kept['floatingips'].clear()
    cloud.neutron.wrong_answer = None
    cloud.neutron.hidden.clear()


def key_of(floating_ip: dict[str, Any]) -> str:
    return f'one:{floating_ip["id"]}'


def test_the_life_of_a_ptr_record(cloud: Cloud) -> None:
    made = cloud.neutron.floating_ip('alpha')
    address, key = made['floating_ip_address'], key_of(made)
    assert cloud.alpha.run('ptr', 'record', 'list') == [
        {'id': key, 'ptrdname': '', 'description': '', 'ttl': ''}]
    before = cloud.alpha.run('ptr', 'record', 'show', key)
    assert (before['address'], before['status'], before['action']) == (address, 'INACTIVE', 'NONE')

    told = cloud.alpha.run('ptr', 'record', 'set', key, 'www.example.com.', '--ttl', '300', '--description', 'mine')
    assert {name: told[name] for name in ('id', 'address', 'ptrdname', 'ttl', 'description', 'status', 'action')} == {
        'id': key, 'address': address, 'ptrdname': 'www.example.com.', 'ttl': 300, 'description': 'mine',
        'status': 'PENDING', 'action': 'CREATE'}
    wait_until(lambda: cloud.alpha.client().floatingips.get(key)['status'] == 'ACTIVE', 'it is ACTIVE')
    assert cloud.served(address) == ['www.example.com.']

    changed = cloud.alpha.client().floatingips.set(key, 'mail.example.com.')
    assert (changed['ptrdname'], changed['ttl'], changed['description']) == ('mail.example.com.', 3600, None)
    wait_until(lambda: cloud.served(address) == ['mail.example.com.'], 'the change is served')

    cloud.alpha.run('ptr', 'record', 'unset', key)
    after = cloud.alpha.client().floatingips.get(key)
    assert (after['ptrdname'], after['status'], after['action']) == (None, 'INACTIVE', 'NONE')
    wait_until(lambda: cloud.served(address) == [], 'it is gone')
    with pytest.raises(exceptions.NotFound) as caught:
        cloud.alpha.client().floatingips.unset(key)
    assert (caught.value.code, caught.value.type) == (404, 'not_found')


def test_our_command_does_the_same(cloud: Cloud) -> None:
    made = cloud.neutron.floating_ip('alpha')

    def run(*words: str) -> Any:
        done = warm.run('designate_pool.cli', '--url', cloud.stack.url, 'ptr', 'record', *words,
                        env={**os.environ, 'DESIGNATE_POOL_TOKEN': 'member-alpha'})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout else None

    told = run('set', key_of(made), 'own.example.com.', '--ttl', '120', '--description', 'ours', '-f', 'json')
    assert (told['ptrdname'], told['ttl'], told['description']) == ('own.example.com.', 120, 'ours')
    assert [each['ptrdname'] for each in run('list', '-f', 'json')] == ['own.example.com.']
    run('unset', key_of(made))
    assert run('show', key_of(made), '-f', 'json')['ptrdname'] is None


def test_the_sdk_does_the_same(cloud: Cloud) -> None:
    made = cloud.neutron.floating_ip('alpha')
    key, auth = key_of(made), token_endpoint.Token(cloud.alpha.endpoint, cloud.alpha.token)
    dns = openstack.connection.Connection(session=session.Session(auth=auth)).dns
    changed = dns.update_floating_ip(key, ptrdname='sdk.example.com.', ttl=60, description='by the library')
    assert (changed.ptrdname, changed.ttl, changed.description, changed.address) == (
        'sdk.example.com.', 60, 'by the library', made['floating_ip_address'])
    found, = dns.floating_ips()
    assert (found.id, found.ptrdname) == (key, 'sdk.example.com.')
    wait_until(lambda: dns.get_floating_ip(key).status == 'ACTIVE', 'it is ACTIVE')
    dns.unset_floating_ip(key)
    assert dns.get_floating_ip(key).ptrdname is None


def test_the_zone_belongs_to_the_operator(cloud: Cloud) -> None:
    made = cloud.neutron.floating_ip('alpha')
    cloud.alpha.client().floatingips.set(key_of(made), 'host.example.com.')
    assert [each for each in cloud.alpha.run('zone', 'list') if each['name'] == ZONE] == []
    zone, = cloud.admin.run('zone', 'list', '--all-projects', '--name', ZONE, '--long')
    assert (zone['project_id'], zone['email']) == (OWNER, 'ptr@example.com')
    found, = cloud.admin.run('recordset', 'list', zone['id'], '--all-projects', '--type', 'PTR', '--data',
                             'host.example.com.')
    for words in (('set', zone['id'], found['id'], '--record', 'evil.example.com.'), ('delete', zone['id'],
                                                                                      found['id'])):
        assert 'is there for a floating IP' in cloud.admin.complaint('recordset', *words, '--all-projects')
    cloud.admin.run('recordset', 'delete', zone['id'], found['id'], '--all-projects', '--edit-managed')
    assert cloud.alpha.client().floatingips.get(key_of(made))['ptrdname'] is None


def test_projects_do_not_see_each_others(cloud: Cloud) -> None:
    mine, theirs = cloud.neutron.floating_ip('alpha'), cloud.neutron.floating_ip('beta')
    cloud.alpha.client().floatingips.set(key_of(mine), 'mine.example.com.')
    cloud.beta.client().floatingips.set(key_of(theirs), 'theirs.example.com.')
    for user, own, other in ((cloud.alpha, mine, theirs), (cloud.beta, theirs, mine)):
        assert [each['id'] for each in user.client().floatingips.list()] == [key_of(own)]
        for call in (lambda: user.client().floatingips.get(key_of(other)),
                     lambda: user.client().floatingips.set(key_of(other), 'evil.example.com.'),
                     lambda: user.client().floatingips.unset(key_of(other))):
            with pytest.raises(exceptions.NotFound):
                call()
    assert [each['id'] for each in cloud.admin.client().floatingips.list()] == []
    assert [each['id'] for each in cloud.admin.client(all_projects=True).floatingips.list()] == []
    sudo = cloud.admin.client(sudo_project_id='beta').floatingips
    assert [(each['id'], each['ptrdname']) for each in sudo.list()] == [(key_of(theirs), 'theirs.example.com.')]
    assert cloud.send('PATCH', f'/{key_of(mine)}', 'reader-alpha', json={'ptrdname': None}).status_code == 403
    assert cloud.send('GET', f'/{key_of(mine)}', 'reader-alpha').json()['ptrdname'] == 'mine.example.com.'


def test_an_address_that_another_project_gets_loses_its_record(cloud: Cloud) -> None:
    former = cloud.neutron.floating_ip('alpha')
    address = former['floating_ip_address']
    cloud.alpha.client().floatingips.set(key_of(former), 'former.example.com.')
    wait_until(lambda: cloud.served(address) == ['former.example.com.'], 'it is served')
    cloud.neutron.remove('floatingips', former['id'])
    present = cloud.neutron.floating_ip('beta', address)
    found, = cloud.beta.client().floatingips.list()
    assert (found['id'], found['ptrdname'], found['status']) == (key_of(present), None, 'INACTIVE')
    wait_until(lambda: cloud.served(address) == [], 'it is gone')
    assert cloud.alpha.client().floatingips.list() == []


def test_a_record_is_taken_over_by_who_sets_it(cloud: Cloud) -> None:
    former = cloud.neutron.floating_ip('alpha')
    cloud.alpha.client().floatingips.set(key_of(former), 'former.example.com.')
    cloud.neutron.remove('floatingips', former['id'])
    present = cloud.neutron.floating_ip('beta', former['floating_ip_address'])
    assert cloud.beta.client().floatingips.set(key_of(present), 'new.example.com.')['ptrdname'] == 'new.example.com.'
    with pytest.raises(exceptions.NotFound):
        cloud.alpha.client().floatingips.unset(key_of(former))
    wait_until(lambda: cloud.served(former['floating_ip_address']) == ['new.example.com.'], 'the new one is served')


def test_a_floating_ip_that_is_gone_loses_its_record_once_others_are_seen(cloud: Cloud) -> None:
    gone, other = cloud.neutron.floating_ip('alpha'), cloud.neutron.floating_ip('alpha')
    for each, name in ((gone, 'gone.example.com.'), (other, 'other.example.com.')):
        cloud.alpha.client().floatingips.set(key_of(each), name)
    wait_until(lambda: cloud.served(gone['floating_ip_address']) == ['gone.example.com.'], 'it is served')
    # Neutron shows nothing to those without rights: that is no sign that all are gone.
    cloud.neutron.hidden.add('alpha')
    assert cloud.alpha.client().floatingips.list() == []
    cloud.neutron.hidden.clear()
    assert cloud.alpha.client().floatingips.get(key_of(gone))['ptrdname'] == 'gone.example.com.'
    cloud.neutron.remove('floatingips', gone['id'])
    assert [each['id'] for each in cloud.alpha.client().floatingips.list()] == [key_of(other)]
    wait_until(lambda: cloud.served(gone['floating_ip_address']) == [], 'it is gone')
    assert cloud.served(other['floating_ip_address']) == ['other.example.com.']


def test_a_lock_of_the_zone_hides_no_floating_ip_while_a_record_is_outdated(cloud: Cloud) -> None:
    gone, other = cloud.neutron.floating_ip('alpha'), cloud.neutron.floating_ip('alpha')
    for each, name in ((gone, 'gone.example.com.'), (other, 'other.example.com.')):
        cloud.alpha.client().floatingips.set(key_of(each), name)
    zone, = cloud.admin.run('zone', 'list', '--all-projects', '--name', ZONE)
    tasks = f'{cloud.stack.url}/v2/zones/{zone["id"]}/tasks'
    headers = {'X-Auth-Token': 'admin-ops', 'X-Auth-All-Projects': 'true'}
    requests.post(f'{tasks}/lock', json={'reason': 'audit'}, headers=headers, timeout=30).raise_for_status()
    try:
        cloud.neutron.remove('floatingips', gone['id'])
        assert [each['ptrdname'] for each in cloud.alpha.client().floatingips.list()] == ['other.example.com.']
        answer = cloud.send('PATCH', f'/{key_of(other)}', json={'ptrdname': 'new.example.com.'})
        assert (answer.status_code, answer.json()['type']) == (409, 'locked')
    finally:
        requests.post(f'{tasks}/unlock', headers=headers, timeout=30).raise_for_status()
    assert [each['id'] for each in cloud.alpha.client().floatingips.list()] == [key_of(other)]
    wait_until(lambda: cloud.served(gone['floating_ip_address']) == [], 'it is gone')


@pytest.mark.parametrize('body', [
    {}, {'ttl': 5}, {'ptrdname': 'relative'}, {'ptrdname': ''}, {'ptrdname': '@!(*&'}, {'ptrdname': 4564},
    {'ptrdname': 'a' * 64 + '.example.com.'}, {'ptrdname': 'www.example.com.', 'ttl': -10},
    {'ptrdname': 'www.example.com.', 'ttl': 1 << 31}, {'ptrdname': 'www.example.com.', 'description': 'x' * 161},
    {'ptrdname': 'www.example.com.', 'colour': 'green'}], ids=str)
def test_wrong_values_are_refused(cloud: Cloud, body: dict[str, Any]) -> None:
    made = cloud.neutron.floating_ip('alpha')
    answer = cloud.send('PATCH', f'/{key_of(made)}', json=body)
    assert (answer.status_code, answer.json()['type']) == (400, 'invalid_object')
    assert cloud.send('GET', f'/{key_of(made)}').json()['ptrdname'] is None


def test_wrong_keys_and_absent_ones(cloud: Cloud) -> None:
    assert cloud.send('GET', '/nonsense').status_code == 400
    for body in ({'ptrdname': 'www.example.com.'}, {'ptrdname': None}):
        answer = cloud.send('PATCH', f'/one:{uuid.uuid4()}', json=body)
        assert (answer.status_code, answer.json()['type']) == (404, 'not_found')
    elsewhere = cloud.send('GET', f'/two:{uuid.uuid4()}')
    assert (elsewhere.status_code, elsewhere.json()['type']) == (403, 'no_endpoint')
    assert requests.get(f'{cloud.stack.url}/v2/reverse/floatingips', timeout=30).status_code == 401


@pytest.mark.parametrize(('answer', 'status'), [
    ((500, 'broken'), 502), ((403, {'NeutronError': 'no'}), 502), ((200, '<html>'), 502)], ids=['500', '403', 'html'])
def test_a_neutron_that_answers_wrongly(cloud: Cloud, answer: tuple[int, Any], status: int) -> None:
    cloud.neutron.wrong_answer = answer
    found = cloud.send('GET', '')
    assert (found.status_code, found.json()['type']) == (status, 'neutron_communication_failure'), found.text
    assert 'Neutron in one' in found.json()['message']


def test_a_neutron_that_does_not_answer(cloud: Cloud) -> None:
    cloud.keystone.endpoints['network'], former = 'http://127.0.0.1:9', cloud.neutron.url
    cloud.keystone.tokens['another-alpha'] = ('alpha', ['member'], 'member')  # the filter keeps catalogs of tokens
    try:
        found = cloud.send('GET', '', 'another-alpha')
    finally:
        cloud.keystone.endpoints['network'] = former
    assert (found.status_code, found.json()['type']) == (503, 'service_unavailable'), found.text
