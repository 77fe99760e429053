"""Handlers of one's own, as pip installs them: a package with an entry point, and the programs."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import oslo_messaging
import pytest
from oslo_config import cfg

from testing.databases import upgraded_sqlite
from testing.processes import wait_until
from testing.rabbitmq import RabbitMq
from testing.stack import Stack

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
