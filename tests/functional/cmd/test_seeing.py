"""What is seen of the programs as they run for a user: metrics, the log, notifications."""

from __future__ import annotations

import json
import pathlib
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import oslo_messaging
import pytest
import requests
from oslo_config import cfg
from prometheus_client.parser import text_string_to_metric_families

from testing.processes import free_port, wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import Stack
from tests.fixtures.nameservers import SECRET, SecondaryServer

SERVICES = ('central', 'minidns', 'pool_manager', 'api')
#: Those that are programs of their own; Central is in that of the API.
PROGRAMS = SERVICES[1:]
MANY = 30


class Seen(Stack):
    """A stack that shows itself.

    :param ports: where each of :data:`SERVICES` serves its metrics
    :param driver: of notifications
    """

    def __init__(self, folder: pathlib.Path, servers: Sequence[str], ports: Mapping[str, int], driver: str,
                 **options: Any) -> None:
        self.ports = ports
        self.driver = driver
        super().__init__(folder, servers, f'sqlite:///{folder}/database.sqlite', **options)

    def configure(self, path: pathlib.Path, servers: Sequence[str], threshold: int) -> None:
        super().configure(path, servers, threshold)
        text = path.read_text().replace('[DEFAULT]\n', '[DEFAULT]\nuse_json = true\n')
        for service, port in self.ports.items():
            heading = f'[service:{service}]\n'
            text = text if heading in text else f'{text}{heading}'
            text = text.replace(heading, f'{heading}metrics = 127.0.0.1:{port}\n')
        path.write_text(f'{text}[oslo_messaging_notifications]\ndriver = {self.driver}\n')

    def metrics(self, service: str = 'api') -> str:
        answer = requests.get(f'http://127.0.0.1:{self.ports[service]}/metrics', timeout=30)
        assert answer.status_code == 200
        return answer.text

    def value(self, name: str, service: str = 'api', **labels: str) -> float:
        """The sum of the samples of this name that have these labels."""
        return sum(sample.value for family in text_string_to_metric_families(self.metrics(service))
                   for sample in family.samples if sample.name == name and labels.items() <= sample.labels.items())

    def counted(self, name: str, least: float, service: str = 'api', **labels: str) -> None:
        """Wait until the samples come to *least*: a service counts a step when it has ended, which may be after the
        zone is ACTIVE.
        """
        wait_until(lambda: self.value(name, service, **labels) >= least, f'{name} {labels} is {least} or more', 60)

    def lines(self) -> list[dict[str, Any]]:
        """The log of all programs, as it was written in JSON."""
        return [json.loads(line) for path in sorted(self.folder.glob('*.log')) for line in path.read_text().splitlines()
                if line.startswith('{')]


@pytest.fixture(scope='module')
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecondaryServer]:
    found = SecondaryServer(tmp_path_factory.mktemp('server')).start()
    yield found
    found.stop()


@pytest.fixture(scope='module')
def together(tmp_path_factory: pytest.TempPathFactory, server: SecondaryServer) -> Iterator[Seen]:
    """All services in one process, whose metrics have one address; one server works, the other one is not there."""
    folder, port = tmp_path_factory.mktemp('together'), free_port()
    dead = (f'[backend:secondary:{uuid.uuid4()}]\nhost = 127.0.0.1\nport = {free_port()}\n'
            f'control_port = {free_port()}\ncontrol_secret = {SECRET}\ncall_timeout = 2\n')
    with Seen(folder, [server.section(str(uuid.uuid4()), call_timeout=2), dead], dict.fromkeys(SERVICES, port), 'log',
              threshold=50, concurrency='threading') as stack:
        assert isinstance(stack, Seen)
        yield stack


@pytest.fixture(scope='module')
def zone(together: Seen) -> tuple[str, str]:
    """The id of a zone that one of two servers serves, and of the request that made it."""
    answer = requests.post(f'{together.url}/v2/zones', timeout=60,
                           json={'name': 'seen.example.com.', 'email': 'hostmaster@example.com'})
    assert answer.status_code == 202, answer.text
    together.wait_for(answer.json()['id'])
    return answer.json()['id'], answer.headers['X-Openstack-Request-Id']


def labels(stack: Seen) -> tuple[str, str]:
    """The labels of the server that works and of the one that is not there."""
    found = [each['name'] for each in stack.servers_state().values()]
    return found[0], found[1]


def test_a_change_is_seen_on_all_its_way(together: Seen, zone: tuple[str, str]) -> None:
    good, _ = labels(together)
    assert together.value('designate_pool_build_info') == 1
    together.counted('designate_pool_api_requests_total', 1, operation='create_zone', status='202')
    together.counted('designate_pool_rpc_calls_total', 1, method='update_statuses', outcome='ok')
    together.counted('designate_pool_rpc_casts_total', 1, service='pool_manager', outcome='ok')
    together.counted('designate_pool_database_transactions_total', 3, kind='write', outcome='ok')
    together.counted('designate_pool_database_transaction_seconds_count', 3, kind='read')
    together.counted('designate_pool_operations_total', 1, server=good, driver='secondary', action='create',
                     outcome='ok')
    together.counted('designate_pool_operation_seconds_count', 1, server=good)
    together.counted('designate_pool_transfers_total', 1, kind='axfr', outcome='sent')
    together.counted('designate_pool_transfer_bytes_total', 50)
    together.counted('designate_pool_polls_total', 1, server=good, outcome='served')
    together.counted('designate_pool_poll_seconds_count', 1, server=good)
    together.counted('designate_pool_convergence_seconds_count', 1, pool='default', action='create')
    together.counted('designate_pool_domain_transitions_total', 1, status='ACTIVE')
    for loop in ('due', 'claims', 'probes', 'unsettled', 'members', 'serial_audit', 'orphan_audit', 'join_and_drain',
                 'gauges'):
        together.counted('designate_pool_last_tick_timestamp_seconds', 1e9, loop=loop)
    assert together.value('designate_pool_convergence_seconds_sum', pool='default') > 0


def test_a_server_that_is_not_there_is_seen(together: Seen, zone: tuple[str, str]) -> None:
    good, dead = labels(together)
    wait_until(lambda: together.value('designate_pool_circuit_open', server=dead, channel='control') == 1,
               'the circuit is open')
    assert together.value('designate_pool_failures_total', server=dead, action='create', reason='UNREACHABLE') >= 1
    assert together.value('designate_pool_circuit_open', server=good) == 0
    wait_until(lambda: together.value('designate_pool_rows_failing', server=dead) >= 1, 'the failure is measured', 60)
    assert together.value('designate_pool_domains_behind', server=dead) >= 1
    assert together.value('designate_pool_serial_lag_seconds', server=dead) > 0
    assert together.value('designate_pool_serial_lag_seconds', server=good) == 0
    assert together.value('designate_pool_server_state', server=dead, state='active') == 1
    assert together.value('designate_pool_server_state', server=dead) == 1


def test_the_log_tells_each_transition_with_its_request(together: Seen, zone: tuple[str, str]) -> None:
    good, dead = labels(together)
    wait_until(lambda: any(line['extra'].get('status') == 'ACTIVE' for line in together.lines()), 'the line')
    told = [line['extra'] for line in together.lines() if line['extra'].get('request_id') == zone[1]]
    assert all(each['domain'] == 'seen.example.com.' and each['serial'] for each in told)
    assert {(each['action'], each['server'], each['status']) for each in told if each['server'] != dead} == {
        ('CREATE', None, 'PENDING'), ('CREATE', good, 'SUCCESS'), ('UPDATE', good, 'SUCCESS'),
        ('CREATE', None, 'ACTIVE')}
    assert len(told) <= 6  # one for each, and maybe what the other server failed at before its circuit opened


def test_a_server_that_is_not_there_does_not_fill_the_log(together: Seen, zone: tuple[str, str]) -> None:
    """However many domains wait for it, and however often it is tried."""
    _, dead = labels(together)
    wait_until(lambda: together.value('designate_pool_circuit_open', server=dead, channel='control') == 1,
               'the circuit is open')
    zones = [together.create_zone(f'many{number}.example.com.') for number in range(MANY)]
    for each in zones:
        together.wait_for(each['id'])
    dead_id = next(each for each in together.servers_state() if together.servers_state()[each]['name'] == dead)
    wait_until(lambda: all(together.servers(each['id'])[dead_id]['attempts'] >= 3 for each in zones),
               'each was tried three times', 60)
    about = [line['message'] for line in together.lines() if dead in line['message']]
    assert about and len(about) <= 12, '\n'.join(about)


def test_notifications_go_to_the_log(together: Seen, zone: tuple[str, str]) -> None:
    told = [(line['name'].removeprefix('oslo.messaging.notification.'), json.loads(line['message'])['payload'])
            for line in together.lines() if line['name'].startswith('oslo.messaging.notification.')]
    assert [event for event, payload in told if payload['id'] == zone[0]] == ['dns.zone.create', 'dns.zone.active']


def test_nothing_secret_is_seen(together: Seen, zone: tuple[str, str]) -> None:
    """Nor the name of any zone, in metrics."""
    shown = together.metrics()
    assert 'example.com' not in shown and zone[0] not in shown
    assert SECRET not in shown
    assert not any(SECRET in path.read_text() for path in together.folder.glob('*.log'))


class Listener:
    """Listens to the notifications of a broker."""

    def __init__(self, url: str) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self._lock = threading.Lock()
        transport = oslo_messaging.get_notification_transport(cfg.ConfigOpts(), url=url)
        self._listener = oslo_messaging.get_notification_listener(
            transport, [oslo_messaging.Target(topic='notifications')], [self], executor='threading')
        self._listener.start()

    def info(self, context: object, publisher: str, event: str, payload: dict[str, Any], metadata: object) -> None:
        with self._lock:
            self.heard.append((event, payload))

    def about(self, zone_id: str) -> list[str]:
        with self._lock:
            return [event for event, payload in self.heard if payload.get('zone_id', payload['id']) == zone_id]

    def stop(self) -> None:
        self._listener.stop()
        self._listener.wait()


@pytest.fixture(scope='module')
def apart(tmp_path_factory: pytest.TempPathFactory, server: SecondaryServer, rabbitmq: RabbitMq) -> Iterator[Seen]:
    """Every service a program of its own, with metrics of its own."""
    folder = tmp_path_factory.mktemp('apart')
    with Seen(folder, [server.section(str(uuid.uuid4()), call_timeout=2)], {each: free_port() for each in PROGRAMS},
              'messagingv2', transport_url=rabbitmq.url) as stack:
        assert isinstance(stack, Seen)
        yield stack


def test_notifications_go_over_the_broker(apart: Seen, rabbitmq: RabbitMq) -> None:
    listener = Listener(rabbitmq.url)
    try:
        zone = apart.create_zone('notified.example.com.')
        apart.wait_for(zone['id'])
        recordset = apart.create_recordset(zone['id'], 'www.notified.example.com.', 'A', '192.0.2.1')
        apart.wait_for(zone['id'])
        apart.request('DELETE', f'/v2/zones/{zone["id"]}/recordsets/{recordset["id"]}', 202)
        apart.wait_for(zone['id'])
        apart.delete_zone(zone['id'])
        wait_until(lambda: 'dns.zone.deleted' in listener.about(zone['id']), 'the deletion is notified')
    finally:
        listener.stop()
    assert listener.about(zone['id']) == [
        'dns.zone.create', 'dns.zone.active', 'dns.recordset.create', 'dns.zone.active', 'dns.recordset.delete',
        'dns.zone.active', 'dns.zone.delete', 'dns.zone.deleted']
    told = dict(listener.heard)
    active, created = told['dns.zone.active'], told['dns.recordset.create']
    assert (active['name'], active['status'], active['former_status'], active['pool_name']) == (
        'notified.example.com.', 'ACTIVE', 'PENDING', 'default')
    assert active['request_id'].startswith('req-') and active['serial'] > created['serial'] - 1
    assert (created['name'], created['type'], created['records']) == ('www.notified.example.com.', 'A', ['192.0.2.1'])


def test_every_program_serves_its_own_metrics(apart: Seen) -> None:
    for service in PROGRAMS:
        assert apart.value('designate_pool_build_info', service) == 1
    zone = apart.create_zone('apart.example.com.')
    apart.wait_for(zone['id'])
    apart.create_recordset(zone['id'], 'www.apart.example.com.', 'A', '192.0.2.1')
    apart.wait_for(zone['id'])
    apart.counted('designate_pool_convergence_seconds_count', 2)
    apart.counted('designate_pool_api_requests_total', 1, 'api', operation='create_zone', status='202')
    apart.counted('designate_pool_rpc_calls_total', 1, 'pool_manager', method='update_statuses', outcome='ok')
    apart.counted('designate_pool_operations_total', 1, 'pool_manager', action='create', outcome='ok')
    apart.counted('designate_pool_rpc_casts_total', 1, 'pool_manager', method='notify_and_poll', outcome='ok')
    apart.counted('designate_pool_polls_total', 1, 'minidns', outcome='served')
    apart.counted('designate_pool_notifies_total', 1, 'minidns', outcome='accepted')
    assert apart.value('designate_pool_operations_total', 'api') == 0
