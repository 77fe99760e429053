"""Records for instances and floating IPs: notifications as Nova and Neutron send them, to a real Central."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import oslo_messaging
import pytest
from oslo_config import cfg

from designate_pool.central.service import Central
from designate_pool.errors import BadInput, ServiceUnavailable
from designate_pool.model import Context, Domain
from designate_pool.rpc.broker import Messaging
from designate_pool.rpc.notifications import Notification, NotificationListener
from designate_pool.settings import NeutronFloatingIpSettings, NovaSettings
from designate_pool.sink.handlers import (NeutronFloatingIpHandler, NotificationHandler, NovaFixedHandler,
                                          ResourceRecords)
from designate_pool.sink.service import TRIES, MakeHandler, SinkService
from testing.databases import upgraded_sqlite
from testing.processes import wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import Stack
from tests.fixtures.central import WHO, contents, create

UNUSED = '00000000-0000-4000-8000-00000000000f'


class Silent(NotificationListener):
    """A listener that hears nothing; tests call the service."""

    def __init__(self) -> None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Volumes(NotificationHandler):
    """A handler of one's own."""

    def get_exchange_topics(self) -> tuple[str, Sequence[str]]:
        return 'cinder', ['notifications']

    def get_event_types(self) -> Sequence[str]:
        return ['volume.create.end', 'volume.delete.end']

    def process_notification(self, context: Mapping[str, Any], event_type: str,
                             payload: Any) -> Iterable[ResourceRecords]:
        [zone_id] = self.options['zone_id']
        names = [f'{payload["name"]}.{each}.{self.zone_name(zone_id)}' for each in self.options['suffix']]
        yield ResourceRecords('volume', payload['id'], zone_id, [] if event_type.endswith('delete.end') else [
            {'name': each, 'type': 'TXT', 'data': '"here"'} for each in names])


class Sink:
    """A service, and the zone that its handlers fill."""

    def __init__(self, central: Any, domain: Domain, **nova: Any) -> None:
        self.handlers: list[MakeHandler] = [
            functools.partial(NovaFixedHandler, NovaSettings(**{'zone_id': domain.id, **nova})),
            functools.partial(NeutronFloatingIpHandler, NeutronFloatingIpSettings(zone_id=domain.id)),
            functools.partial(Volumes, 'volumes', {'zone_id': (domain.id,), 'suffix': ('san', 'backup')})]
        self.service = SinkService(self.handlers, central, lambda sources, types, handle: [Silent()], pause=0.01)
        self._central = central
        self._domain = domain

    def hear(self, event_type: str, payload: Any, second: int = 0) -> bool:
        return self.service.handle(Notification(
            {'project_name': 'blue'}, event_type, payload,
            {'message_id': f'm-{second}', 'timestamp': f'2026-05-01 12:00:{second:02}.000000'}))

    @property
    def records(self) -> list[str]:
        return [each for each in contents(self._central, self._domain) if ' A ' in each or ' AAAA ' in each]


@pytest.fixture
def domain(central: Central) -> Domain:
    return create(central, 'example.com.', ('www.example.com.', 'A', ['192.0.2.1']))


@pytest.fixture
def sink(central: Central, domain: Domain) -> Sink:
    return Sink(central, domain)


def instance(*addresses: str, number: int = 1, hostname: str = 'web') -> dict[str, Any]:
    return {'instance_id': f'i-{number}', 'hostname': hostname, 'display_name': 'Web', 'state': 'active', 'fixed_ips': [
        {'address': each, 'version': 6 if ':' in each else 4, 'type': 'fixed', 'label': 'private', 'meta': {},
         'floating_ips': []} for each in addresses]}


def floating_ip(fixed: str | None) -> dict[str, Any]:
    return {'floatingip': {'id': 'f-1', 'floating_ip_address': '198.51.100.7', 'fixed_ip_address': fixed,
                           'port_id': fixed and 'p-1', 'tenant_id': 'blue', 'status': 'ACTIVE'}}


GONE = {'instance_id': 'i-1', 'hostname': 'web', 'state': 'deleted'}
WWW = 'www.example.com. A 192.0.2.1'


class TestInstances:
    def test_an_instance_has_records_from_its_creation_to_its_end(self, sink: Sink) -> None:
        assert sink.hear('compute.instance.create.end', instance('192.0.2.10', '2001:db8::10'))
        assert sink.records == ['web.example.com. A 192.0.2.10', 'web.example.com. AAAA 2001:db8::10', WWW]
        assert sink.hear('compute.instance.delete.start', GONE, 5)
        assert sink.hear('compute.instance.delete.end', GONE, 6)
        assert sink.records == [WWW]

    def test_a_creation_that_is_delivered_again_or_after_the_deletion_changes_nothing(self, sink: Sink) -> None:
        sink.hear('compute.instance.create.end', instance('192.0.2.10'), 1)
        sink.hear('compute.instance.create.end', instance('192.0.2.10'), 1)
        assert sink.records == ['web.example.com. A 192.0.2.10', WWW]
        sink.hear('compute.instance.delete.start', GONE, 5)
        sink.hear('compute.instance.create.end', instance('192.0.2.10'), 1)
        assert sink.records == [WWW]

    def test_several_formats_give_several_names(self, central: Central, domain: Domain) -> None:
        sink = Sink(central, domain, formatv4=('%(hostname)s.%(project)s.%(zone)s',
                                               '%(ip_address)s.%(label)s.%(zone)s'))
        sink.hear('compute.instance.create.end', instance('192.0.2.10'))
        assert sink.records == ['192-0-2-10.private.example.com. A 192.0.2.10',
                                'web.blue.example.com. A 192.0.2.10', WWW]


class TestFloatingIps:
    def test_one_has_a_record_while_it_has_a_port(self, sink: Sink) -> None:
        sink.hear('floatingip.create.end', floating_ip(None))
        assert sink.records == [WWW]
        sink.hear('floatingip.update.end', floating_ip('10.0.0.5'), 1)
        assert sink.records == ['198-51-100-7.example.com. A 198.51.100.7', WWW]
        sink.hear('floatingip.update.end', floating_ip(None), 2)
        assert sink.records == [WWW]
        sink.hear('floatingip.update.end', floating_ip('10.0.0.6'), 3)
        sink.hear('floatingip.delete.end', {'floatingip_id': 'f-1'}, 4)
        assert sink.records == [WWW]


class TestOthers:
    def test_a_handler_of_ones_own_has_its_options_and_the_names_of_zones(self, central: Central, domain: Domain,
                                                                          sink: Sink) -> None:
        assert sink.hear('volume.create.end', {'id': 'v-1', 'name': 'one'})
        assert [each for each in contents(central, domain) if ' TXT ' in each] == [
            'one.backup.example.com. TXT "here"', 'one.san.example.com. TXT "here"']
        assert sink.hear('volume.delete.end', {'id': 'v-1', 'name': 'one'}, 1)
        assert contents(central, domain)[-1:] == [WWW]


@pytest.mark.parametrize(('nova', 'payload', 'why'), [
    pytest.param({'formatv4': ('%(hosname)s.%(zone)s',)}, instance('192.0.2.10'),
                 r'\[handler:nova_fixed\] .*formatv4: the notification has no field hosname', id='unknown-field'),
    pytest.param({}, {'hostname': 'web'}, 'compute.instance.create.end has no payload as it should', id='no-id'),
    pytest.param({}, 'web', 'has no payload as it should', id='no-mapping'),
    pytest.param({}, instance('nowhere'), "'nowhere' does not appear to be an IPv4 or IPv6 address", id='no-address'),
    pytest.param({}, instance('192.0.2.10', hostname='a..b'), 'name', id='no-name'),
    pytest.param({'zone_id': UNUSED}, instance('192.0.2.10'),
                 rf'\[handler:nova_fixed\] zone_id: there is no zone {UNUSED}', id='no-zone'),
])
def test_what_cannot_be_acted_on_is_told_and_done_with(central: Central, domain: Domain, nova: dict[str, Any],
                                                       payload: Any, why: str,
                                                       caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink(central, domain, **nova)
    with caplog.at_level(logging.ERROR):
        assert sink.hear('compute.instance.create.end', payload)
    line, = [each.getMessage() for each in caplog.records if 'is not acted on' in each.getMessage()]
    assert line.startswith('compute.instance.create.end m-0 ')
    assert re.search(why, line), line
    assert sink.records == [WWW]


class Tags(Volumes):
    """Another handler of the same events, with records for one resource after the other."""

    def process_notification(self, context: Mapping[str, Any], event_type: str,
                             payload: Any) -> Iterable[ResourceRecords]:
        [zone_id] = self.options['zone_id']
        for name in payload['tags']:
            yield ResourceRecords('tag', name, zone_id, [{'name': f'{name}.example.com.', 'type': 'TXT',
                                                          'data': '"tag"'}])


class TestSeveralHandlersOfOneEvent:
    @pytest.fixture
    def sink(self, central: Central, domain: Domain) -> Sink:
        sink = Sink(central, domain)
        gone = functools.partial(Volumes, 'gone', {'zone_id': (UNUSED,), 'suffix': ('san',)})
        strange = functools.partial(Volumes, 'strange', {'zone_id': (domain.id,), 'suffix': ('a..b',)})
        tags = functools.partial(Tags, 'tags', {'zone_id': (domain.id,)})
        sink.service = SinkService([gone, strange, tags], central,
                                   lambda sources, types, handle: [Silent()], pause=0.01)
        return sink

    def test_what_one_cannot_act_on_the_others_do(self, central: Central, domain: Domain, sink: Sink,
                                                  caplog: pytest.LogCaptureFixture) -> None:
        assert sink.hear('volume.create.end', {'id': 'v-1', 'name': 'one', 'tags': ['blue']})
        assert 'blue.example.com. TXT "tag"' in contents(central, domain)
        for name, why in (('gone', f'zone_id: there is no zone {UNUSED}'), ('strange', '')):
            assert f'volume.create.end m-0 is not acted on: [handler:{name}] {why}' in caplog.text

    def test_a_resource_that_is_refused_does_not_affect_the_next_of_its_handler(
            self, central: Central, domain: Domain, sink: Sink, caplog: pytest.LogCaptureFixture) -> None:
        assert sink.hear('volume.create.end', {'id': 'v-1', 'name': 'one', 'tags': ['a..b', 'green']})
        assert 'green.example.com. TXT "tag"' in contents(central, domain)
        assert 'volume.create.end m-0 is not acted on: [handler:tags] ' in caplog.text


class Faulty(Volumes):
    """A handler that yields what its options say."""

    def process_notification(self, context: Mapping[str, Any], event_type: str, payload: Any) -> Iterable[Any]:
        return self.options['yields']


@pytest.mark.parametrize('found', [
    pytest.param(None, id='nothing'), pytest.param(('volume', 'v-1'), id='tuple'),
    pytest.param(ResourceRecords('volume', 'v-1', UNUSED, ['one.example.com.']), id='record-is-a-text'),  # type: ignore
    pytest.param(ResourceRecords('volume', object(), UNUSED), id='id-is-no-text'),  # type: ignore[arg-type]
    pytest.param(ResourceRecords('volume', 'v-1', UNUSED, None), id='no-records'),  # type: ignore[arg-type]
])
def test_a_handler_that_yields_something_else_does_not_get_the_notification_again(
        central: Central, domain: Domain, found: Any, caplog: pytest.LogCaptureFixture) -> None:
    good = {'zone_id': (domain.id,), 'suffix': ('san',)}
    service = SinkService([functools.partial(Faulty, 'faulty', {'yields': [found]}),
                           functools.partial(Volumes, 'volumes', good)], central,
                          lambda sources, types, handle: [Silent()], pause=0.01)
    assert service.handle(Notification({}, 'volume.create.end', {'id': 'v-1', 'name': 'one'}, {'message_id': 'm-0'}))
    assert 'volume.create.end m-0 is not acted on: [handler:faulty] has failed' in caplog.text
    assert 'one.san.example.com. TXT "here"' in contents(central, domain)


@pytest.mark.parametrize('method, said, why', [
    ('get_event_types', KeyError('types'), "KeyError: 'types'"),
    ('get_event_types', 'volume.create.end', "TypeError: 'volume.create.end' is no sequence of texts"),
    ('get_event_types', None, 'TypeError: '),
    ('get_exchange_topics', ('cinder', [5]), r'TypeError: \[5\] is no sequence of texts'),
])
def test_a_handler_that_does_not_say_what_it_handles_ends_the_program(
        central: Central, monkeypatch: pytest.MonkeyPatch, method: str, said: Any, why: str) -> None:
    def answer(self: Volumes) -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    monkeypatch.setattr(Volumes, method, answer)
    with pytest.raises(BadInput, match=rf'\[handler:volumes\] {method} fails \({why}'):
        SinkService([functools.partial(Volumes, 'volumes', {})], central,
                    lambda sources, types, handle: [Silent()], pause=0.01)


class Sick:
    """A Central that fails.

    :ivar poison: ids of resources with which it fails
    :ivar reads: whether it reads, and writes
    """

    def __init__(self, central: Central, *poison: str) -> None:
        self.poison = poison
        self.reads = self.writes = True
        self.failures = 0
        self._central = central

    def get_domain(self, context: Context, domain_id: str) -> Domain:
        if not self.reads:
            self.failures += 1
            raise ServiceUnavailable(service='central', why='no answer')
        return self._central.get_domain(context, domain_id)

    def set_resource_records(self, context: Context, resource: Mapping[str, str], *arguments: Any) -> None:
        if not (self.reads and self.writes) or resource['resource_id'] in self.poison:
            raise RuntimeError('it cannot be written')
        self._central.set_resource_records(context, resource, *arguments)


class Unwilling(Volumes):
    """A handler for which something is never there."""

    def process_notification(self, context: Mapping[str, Any], event_type: str,
                             payload: Any) -> Iterable[ResourceRecords]:
        raise ServiceUnavailable(service='of volumes', why='no answer')


class TestWhatAlwaysFails:
    def service(self, sick: Sick, domain: Domain, make: type[Volumes] = Volumes) -> SinkService:
        options = {'zone_id': (domain.id,), 'suffix': ('san',)}
        return SinkService([functools.partial(make, 'first', options), functools.partial(
            Tags, 'tags', options)], sick, lambda sources, types, handle: [Silent()], pause=0)  # type: ignore[arg-type]

    @pytest.mark.parametrize(('make', 'why'), [
        (Volumes, 'RuntimeError: it cannot be written'), (Unwilling, 'of volumes')], ids=['central', 'handler'])
    def test_is_dropped_after_some_tries_and_the_rest_is_acted_on(
            self, central: Central, domain: Domain, caplog: pytest.LogCaptureFixture, make: type[Volumes],
            why: str) -> None:
        service = self.service(Sick(central, 'v-1'), domain, make)
        note = Notification({}, 'volume.create.end', {'id': 'v-1', 'name': 'one', 'tags': ['blue']},
                            {'message_id': 'm-0'})
        for _ in range(2):  # and again, if somebody sends it again
            assert [service.handle(note) for _ in range(TRIES)] == [*[False] * (TRIES - 1), True]
        assert 'blue.example.com. TXT "tag"' in contents(central, domain)
        lines = [each.getMessage() for each in caplog.records if 'm-0 is not acted on: [handler:first] ' in
                 each.getMessage()]
        assert len(lines) == 2 and why in lines[0]

    def test_does_not_use_up_the_tries_of_the_next_part(self, central: Central, domain: Domain) -> None:
        sick = Sick(central, 'v-1')
        service = self.service(sick, domain)
        note = Notification({}, 'volume.create.end', {'id': 'v-1', 'name': 'one', 'tags': ['blue']},
                            {'message_id': 'm-0'})
        assert not any(service.handle(note) for _ in range(TRIES - 1))
        sick.poison = 'v-1', 'blue'
        assert not service.handle(note)
        sick.poison = 'v-1',
        assert service.handle(note)
        assert 'blue.example.com. TXT "tag"' in contents(central, domain)

    def test_nothing_is_dropped_while_central_cannot_act(self, central: Central, domain: Domain) -> None:
        sick = Sick(central)
        service = self.service(sick, domain)
        note = Notification({}, 'volume.create.end', {'id': 'v-1', 'name': 'one', 'tags': []}, {'message_id': 'm-0'})
        sick.reads = False
        assert not any(service.handle(note) for _ in range(3 * TRIES))
        sick.reads, sick.writes = True, False
        assert not any(service.handle(note) for _ in range(3 * TRIES))
        sick.writes = True
        assert service.handle(note)
        assert 'one.san.example.com. TXT "here"' in contents(central, domain)

    def test_does_not_hold_up_what_comes_after_it(self, central: Central, domain: Domain, rabbitmq: RabbitMq,
                                                  caplog: pytest.LogCaptureFixture) -> None:
        with listening(Sick(central, 'i-1'), domain, rabbitmq.url, listeners=1, threads=1) as notifier:
            notifier.info({}, 'compute.instance.create.end', instance('192.0.2.10'))
            notifier.info({}, 'compute.instance.create.end', instance('192.0.2.11', number=2, hostname='next'))
            wait_until(lambda: 'next.example.com. A 192.0.2.11' in contents(central, domain), 'the next one', 60)
            wait_until(lambda: 'is not acted on: [handler:nova_fixed] RuntimeError' in caplog.text, 'it is dropped')
        assert 'web.example.com. A 192.0.2.10' not in contents(central, domain)


@contextlib.contextmanager
def listening(central: Any, domain: Domain, url: str, listeners: int = 2,
              threads: int = 3) -> Iterator[oslo_messaging.Notifier]:
    """A service that listens to a broker, and what sends to it."""
    cfg.CONF([], project='test')
    messaging = Messaging(cfg.CONF, 'test', transport_url=url)
    transport = oslo_messaging.get_notification_transport(cfg.CONF, url=url)
    enabled = Sink(central, domain).handlers
    service = SinkService(enabled, central, lambda sources, types, handle: [NotificationListener(
        cfg.CONF, [('openstack', 'notifications')], types, handle, transport_url=url, threads=threads)
        for _ in range(listeners)], pause=0.01)
    service.start()
    try:
        yield oslo_messaging.Notifier(transport, 'compute.test', driver='messagingv2', topics=['notifications'])
    finally:
        service.stop()
        transport.cleanup()
        messaging.stop()


def test_a_notification_stays_at_the_broker_until_central_has_acted_on_it(central: Central, domain: Domain,
                                                                          rabbitmq: RabbitMq) -> None:
    away = Sick(central)
    away.reads = False
    with listening(away, domain, rabbitmq.url) as notifier:
        notifier.info({}, 'compute.instance.update', {'instance_id': 'i-1'})
        notifier.info({'project_name': 'blue'}, 'compute.instance.create.end', instance('192.0.2.10'))
        wait_until(lambda: away.failures > 2 * TRIES, 'it has come again and again')
        away.reads = True
        wait_until(lambda: ('web.example.com. A 192.0.2.10' in contents(central, domain)), 'the record is there', 60)
    assert [each.resource_id for each in central.find_managed_records(WHO, {})] == ['i-1']


SERVER = '[backend:fake:11111111-1111-4111-8111-111111111111]\nhost = 127.0.0.1\ncall_timeout = 2\n'
HANDLERS = '''
from designate_pool.sink.handlers import NotificationHandler, ResourceRecords


class Volumes(NotificationHandler):

    def get_exchange_topics(self):
        return 'openstack', ['notifications']

    def get_event_types(self):
        return ['volume.create.end']

    def process_notification(self, context, event_type, payload):
        name = f'{payload["name"]}.{self.zone_name(payload["zone_id"])}'
        yield ResourceRecords('volume', payload['id'], payload['zone_id'], [
            {'name': name, 'type': 'TXT', 'data': self.options['text'][0]}])


class WithoutMaking(Volumes):

    def __init__(self, name, options, zone_name):
        self.text = options['text']
'''


@pytest.fixture
def install(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Install a package in which ``volumes`` is this class, for all programs from then on."""
    def install(entry_point: str) -> None:
        site = tmp_path / 'site'
        information = site / 'volume_records-1.0.dist-info'
        information.mkdir(parents=True)
        (site / 'volume_records.py').write_text(HANDLERS)
        (information / 'METADATA').write_text('Metadata-Version: 2.1\nName: volume-records\nVersion: 1.0\n')
        (information / 'entry_points.txt').write_text(
            f'[designate.notification.handler]\nvolumes = volume_records:{entry_point}\n')
        monkeypatch.setenv('PYTHONPATH', str(site))

    return install


def a_stack(folder: pathlib.Path, transport_url: str, *lines: str) -> Stack:
    """One whose configuration enables ``volumes``, with *lines* for options."""
    return Stack(folder / 'stack', [SERVER, '[service:sink]', 'enabled_notification_handlers = volumes',
                                    '[handler:volumes]', *lines], upgraded_sqlite(folder / 'pool.sqlite'),
                 transport_url)


def run(program: str, *words: str) -> tuple[int, str]:
    """The exit code, and what a program that ends writes."""
    done = subprocess.run([sys.executable, '-m', f'designate_pool.cmd.{program}', *words], capture_output=True,
                          text=True, timeout=120, check=False, env=dict(os.environ))
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_an_installed_handler_is_used_and_only_the_sink_needs_it(
        tmp_path: pathlib.Path, install: Callable[[str], None], rabbitmq: RabbitMq) -> None:
    stack = a_stack(tmp_path, rabbitmq.url, 'text = "here"')
    cfg.CONF([], project='test')
    transport = oslo_messaging.get_notification_transport(cfg.CONF, url=rabbitmq.url)
    notifier = oslo_messaging.Notifier(transport, 'volume.test', driver='messagingv2', topics=['notifications'])
    try:
        stack.manage('pool', 'set', 'default', '--name-server', 'ns1.example.org.')
        stack.launch('minidns', 'manager', 'api')  # where it is not installed
        zone = stack.create_zone('example.com.')['id']
        install('Volumes')
        stack.executed = True  # what is installed later is seen by a program of its own
        stack.launch('sink')
        notifier.info({}, 'volume.create.end', {'id': 'v-1', 'name': 'one', 'zone_id': zone})
        wait_until(lambda: [each['records'] for each in stack.request(
            'GET', f'/v2/zones/{zone}/recordsets?type=TXT', 200)['recordsets']] == [['"here"']],
            'the record is there', 60)
    finally:
        stack.stop()
        transport.cleanup()


def test_one_that_is_not_installed_is_told_by_the_sink_and_the_check(tmp_path: pathlib.Path) -> None:
    stack = a_stack(tmp_path, 'fake:/', 'text = "here"')
    said = ('[service:sink] enabled_notification_handlers: there is no handler volumes, only neutron_floatingip, '
            'nova_fixed')
    file = '--config-file', str(stack.config)
    for words in (('programs.daemons', 'sink', *file), ('manage.app', *file, 'config', 'check', '--offline')):
        code, told = run(*words)
        assert (code, said in told, 'Traceback' in told) == (1, True, False), told


@pytest.mark.parametrize(('entry_point', 'said'), [
    ('WithoutMaking', "[handler:volumes] the handler cannot be made (KeyError: 'text')"),
    ('Nothing', '[handler:volumes] the handler cannot be made (AttributeError: '),
    ('ResourceRecords', '[handler:volumes] the handler cannot be made (TypeError: it is no subclass of '),
])
def test_one_that_cannot_be_made_ends_the_program_with_the_reason(
        tmp_path: pathlib.Path, install: Callable[[str], None], entry_point: str, said: str) -> None:
    install(entry_point)
    stack = a_stack(tmp_path, 'fake:/')
    code, told = run('programs.daemons', 'sink', '--config-file', str(stack.config))
    assert (code, said in told, 'Traceback' in told) == (1, True, False), told
