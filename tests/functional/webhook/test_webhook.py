"""external-dns's side of its webhook interface, against the webhook, the pool behind it, and a BIND behind that."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from testing import warm
from testing.bind import Named
from testing.daemon import starter
from testing.processes import free_port, wait_until
from testing.stack import Stack
from tests.fixtures import external_dns

MEDIA_TYPE = 'application/external.dns.webhook+json;version=1'
ZONE = 'example.com.'


@dataclasses.dataclass
class Client:
    """What external-dns asks a webhook provider, written from its published interface.

    :ivar metrics: where Prometheus asks
    """

    url: str
    metrics: str

    def negotiate(self) -> Any:
        return self._json(requests.get(self.url + '/', headers={'Accept': MEDIA_TYPE}, timeout=30))

    def records(self) -> list[dict[str, Any]]:
        found = self._json(requests.get(f'{self.url}/records', headers={'Accept': MEDIA_TYPE}, timeout=30))
        return sorted(found, key=lambda each: (each['dnsName'], each['recordType']))

    def adjust(self, endpoints: list[dict[str, Any]]) -> Any:
        return self._json(requests.post(f'{self.url}/adjustendpoints', json=endpoints, timeout=30,
                                        headers={'Content-Type': MEDIA_TYPE, 'Accept': MEDIA_TYPE}))

    def apply(self, **changes: list[dict[str, Any]]) -> requests.Response:
        return requests.post(f'{self.url}/records', json=changes, headers={'Content-Type': MEDIA_TYPE}, timeout=30)

    def run_once(self, wanted: list[dict[str, Any]]) -> int:
        """external-dns's loop, policy sync: how many changes it sent."""
        there = {(each['dnsName'], each['recordType']): each for each in self.records()}
        desired = {(each['dnsName'], each['recordType']): each for each in self.adjust(wanted)}
        both = [key for key in desired if key in there and differs(there[key], desired[key])]
        changes = {'create': [each for key, each in desired.items() if key not in there],
                   'updateOld': [there[key] for key in both], 'updateNew': [desired[key] for key in both],
                   'delete': [each for key, each in there.items() if key not in desired]}
        count = sum(map(len, changes.values()))
        if count:
            answer = self.apply(**changes)
            assert answer.status_code == 204, answer.text
        return count

    @staticmethod
    def _json(answer: requests.Response) -> Any:
        assert answer.status_code == 200, answer.text
        assert answer.headers['Content-Type'] == MEDIA_TYPE
        return answer.json()


def differs(there: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return sorted(there['targets']) != sorted(wanted['targets']) \
        or there.get('providerSpecific', []) != wanted.get('providerSpecific', []) or (
        'recordTTL' in wanted and there['recordTTL'] != wanted['recordTTL'])


def endpoint(name: str, rtype: str, *targets: str, **more: Any) -> dict[str, Any]:
    return {'dnsName': name, 'recordType': rtype, 'targets': list(targets), **more}


@pytest.fixture(scope='module')
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Named]:
    for start in starter(Named, tmp_path_factory.mktemp('named')):
        yield start()


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory, server: Named) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp('pool')
    section = server.section(str(uuid.uuid4()), call_timeout=2)
    with Stack(folder, [section], f'sqlite:///{folder}/pool.sqlite') as running:
        yield running


@pytest.fixture
def stack(pool: Stack) -> Iterator[Stack]:
    """The pool, without zones when the test is over."""
    yield pool
    for zone in pool.request('GET', '/v2/zones', 200)['zones']:
        pool.delete_zone(zone['id'])
        pool.wait_for(zone['id'], 'gone')


@pytest.fixture(scope='module')
def client(pool: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    port, metrics = free_port(), free_port()
    process = warm.Program('designate_pool.cmd.programs.webhook', ['--listen', f'127.0.0.1:{port}', '--url', pool.url,
                                                                   '--metrics', f'127.0.0.1:{metrics}'],
                           tmp_path_factory.mktemp('webhook') / 'log').start()
    wait_until(lambda: process.running() and b': ready' in process.log.read_bytes(), 'the webhook is ready')
    yield Client(f'http://127.0.0.1:{port}', f'http://127.0.0.1:{metrics}/metrics')
    process.signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_a_cluster_is_brought_into_step_and_then_there_is_nothing_to_do(stack: Stack, client: Client,
                                                                        server: Named) -> None:
    zone = stack.create_zone(ZONE)
    assert client.negotiate() == {'include': ['example.com']}
    assert client.records() == []
    wanted = [endpoint('web.example.com', 'A', '192.0.2.1', '192.0.2.2', recordTTL=60),
              endpoint('alias.example.com', 'CNAME', 'Web.example.com'),
              endpoint('a-web.example.com', 'TXT', '"heritage=external-dns,external-dns/owner=one"'),
              endpoint('note.example.com', 'TXT', 'two words')]
    assert client.run_once(wanted) == 4
    stack.wait_for(zone['id'])
    answer = server.query('alias.example.com.', 'A')
    assert {str(each) for rrset in answer.answer for each in rrset} == {'web.example.com.', '192.0.2.1', '192.0.2.2'}
    assert client.run_once(wanted) == 0
    versions = stack.request('GET', f'/v2/zones/{zone["id"]}/versions', 200)['versions']
    assert [version['kind'] for version in versions] == ['PLAN', 'CREATE']

    wanted[1] = endpoint('alias.example.com', 'A', '192.0.2.9')
    del wanted[3]
    before = stack.zone(zone['id'])['serial']
    assert client.run_once(wanted) == 3
    assert stack.wait_for(zone['id'])['serial'] > before
    assert [(each['dnsName'], each['recordType']) for each in client.records()] == [
        ('a-web.example.com', 'TXT'), ('alias.example.com', 'A'), ('web.example.com', 'A')]
    assert client.run_once(wanted) == 0


MARK = '"heritage=external-dns,external-dns/owner=default,external-dns/resource=ingress/default/{}"'


@pytest.mark.parametrize('more', [
    [endpoint('example.com', 'A', '192.0.2.5'), endpoint('a-example.com', 'TXT', MARK.format('site'))],
    [endpoint('example.com', 'CNAME', 'lb.example.net')],
    [endpoint('mailhost.example.com', 'CNAME', 'lb.example.net')],
    [endpoint('example.com', 'NS', 'ns7.example.net')],
    [endpoint('*.example.com', 'NS', 'ns7.example.net')],
    [endpoint('a-long.example.com', 'TXT', MARK.format('i' * 200))],
    [endpoint('many.example.com', 'A', *(f'198.51.{number // 250}.{number % 250}' for number in range(600)))],
], ids=['the mark of an apex', 'CNAME at the apex', 'CNAME beside MX', 'NS at the apex', 'NS at a wildcard',
        'a long mark', 'over the quota'])
def test_one_that_the_zone_cannot_have_holds_up_no_other(stack: Stack, client: Client,
                                                         more: list[dict[str, Any]]) -> None:
    zone = stack.create_zone(ZONE)
    stack.create_recordset(zone['id'], f'mailhost.{ZONE}', 'MX', '10 mail.example.com.')
    for number in (1, 2):
        answer = client.apply(create=[endpoint(f'good{number}.example.com', 'A', '192.0.2.1'), *more])
        assert answer.status_code == 204, answer.text
    names = {each['dnsName'] for each in client.records()}
    assert names >= {'good1.example.com', 'good2.example.com', 'mailhost.example.com'}
    assert ('a-long.example.com' in names) is (more[0]['dnsName'] == 'a-long.example.com')
    left_out = re.search(r'endpoints_left_out_total (\d+)', requests.get(client.metrics, timeout=30).text)
    assert left_out and (int(left_out[1]) > 0 or 'a-long.example.com' in names)


@pytest.mark.slow
def test_all_that_the_interface_allows_is_answered_as_it_says(stack: Stack, client: Client,
                                                              tmp_path: pathlib.Path) -> None:
    stack.create_zone(ZONE)
    document = tmp_path / 'webhook.json'
    document.write_text(json.dumps(external_dns.OPENAPI))
    checks = ('not_a_server_error', 'status_code_conformance', 'content_type_conformance', 'positive_data_acceptance',
              'response_schema_conformance')
    done = subprocess.run(
        [sys.executable, '-m', 'schemathesis.cli', 'run', str(document), '--url', client.url, '--checks',
         ','.join(checks), '--phases', 'examples,coverage,fuzzing', '--max-examples', '5', '--seed', '1',
         '--continue-on-failure', '--no-shrink', '--workers', '1', '--no-color', '--warnings', 'off'],
        capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    generated = re.search(r'(\d+) generated', done.stdout)
    assert generated and int(generated[1]) > 100, done.stdout[-2000:]


def test_a_web_page_that_the_operator_visits_changes_nothing(stack: Stack, client: Client) -> None:
    stack.create_zone(ZONE)
    headers = {'Origin': 'https://example.net'}
    to_webhook = requests.post(f'{client.url}/records', json={'create': [endpoint('a.example.com', 'A', '192.0.2.1')]},
                               headers={'Content-Type': MEDIA_TYPE, **headers}, timeout=30)
    zone = {'name': 'example.org.', 'email': 'a@example.org'}
    to_pool = requests.post(f'{stack.url}/v2/zones', json=zone, headers=headers, timeout=30)
    assert (to_webhook.status_code, to_pool.status_code) == (403, 403)
    assert client.records() == []
    assert [each['name'] for each in stack.request('GET', '/v2/zones', 200)['zones']] == [ZONE]


def test_while_the_pool_is_down_it_says_try_again(stack: Stack, client: Client) -> None:
    stack.create_zone(ZONE)
    assert requests.get(f'{client.url}/healthz', timeout=30).text == 'ok\n'
    stack.stop()
    for answer in (requests.get(f'{client.url}/healthz', timeout=30), requests.get(f'{client.url}/records', timeout=30),
                   client.apply(create=[endpoint('a.example.com', 'A', '192.0.2.1')])):
        assert answer.status_code == 503 and 'cannot be' in answer.text
    stack.launch('all')
    assert client.apply(create=[endpoint('a.example.com', 'A', '192.0.2.1')]).status_code == 204
    assert [each['dnsName'] for each in client.records()] == ['a.example.com']
