"""The devstack plugin: what it writes and what it has devstack run."""

from __future__ import annotations

import configparser
import pathlib
import re
import stat

import pytest

from testing.processes import binary
from tests.fixtures.devstack import BACKENDS, ROOT, STACK, Calls, Devstack, calls_of, commands

SERVICES = ['designate-pool-server', 'designate-pool-minidns', 'designate-pool-manager', 'designate-pool-api']
#: Where each kind of server keeps the zones that it was given.
ZONES = {'bind9': ('bind-var/designate-pool/example.com.1.db', 'bind-var/_default.nzd'),
         'secondary': ('data/designate-pool/zones/example.com',)}
Stacked = tuple[Devstack, Calls]


@pytest.fixture(scope='module', params=BACKENDS)
def stacked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stacked:
    """One on which the plugin has been stacked, and the calls that it made; only the last test may remove it."""
    devstack = Devstack(tmp_path_factory.mktemp(request.param) / 'host', request.param)
    return devstack, devstack.run('stack', *STACK)


def test_stacking_runs_programs_that_exist_and_waits_for_the_api(stacked: Stacked) -> None:
    devstack, calls = stacked
    started = commands(calls)
    assert list(started) == SERVICES
    for service, command in started.items():
        assert pathlib.Path(command[0]).is_absolute() and binary(command[0]) == command[0]
        if service != 'designate-pool-server':
            assert command == [str(devstack.programs / service), '--config-file', str(devstack.config)]
    assert calls_of(calls, 'setup_develop') == [[str(ROOT)]]
    assert calls_of(calls, 'wait_for_service') == [['60', f'http://{devstack.api}/healthz']]


def test_secrets_are_in_files_of_their_owner_and_in_no_command(stacked: Stacked) -> None:
    devstack, calls = stacked
    texts = [path.read_text() for path in devstack.config.parent.iterdir() if path != devstack.config]
    secrets = [found for text in texts for found in re.findall('[A-Za-z0-9+/]{43}=', text)]
    assert len(secrets) == 2
    assert not [secret for secret in secrets for call in calls if secret in ' '.join(call)]
    assert not [secret for secret in secrets if secret in devstack.config.read_text()]
    for path in devstack.config.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_unstacking_stops_all_that_was_started_in_reverse(stacked: Stacked) -> None:
    devstack, calls = stacked
    for _ in range(2):
        stopped = [service for [service] in calls_of(devstack.run('unstack'), 'stop_process')]
        assert set(stopped) == set(commands(calls))
        assert stopped[0] == 'designate-pool-api' and stopped[-1] == 'designate-pool-server'


def test_stacking_again_does_the_same_with_new_secrets_and_no_zones(stacked: Stacked) -> None:
    devstack, first = stacked
    key = devstack.config.parent / 'transfer.key'
    configuration, secret = devstack.config.read_text(), key.read_text()
    for path in ZONES[devstack.backend]:
        (devstack.folder / path).parent.mkdir(exist_ok=True)
        (devstack.folder / path).write_text('of an earlier zone')
    assert devstack.run('stack', *STACK) == first
    assert devstack.config.read_text() == configuration
    assert key.read_text() != secret
    assert not [path for path in ZONES[devstack.backend] if (devstack.folder / path).exists()]


def test_cleaning_leaves_nothing_behind_even_when_there_was_nothing(stacked: Stacked) -> None:
    devstack, _ = stacked
    database = {devstack.folder / 'of$devstack.sqlite'}
    assert devstack.files() > database
    for _ in range(2):
        devstack.run('unstack')
        devstack.run('clean')
        assert devstack.files() == database


def test_a_service_that_is_switched_off_is_neither_started_nor_waited_for(tmp_path: pathlib.Path) -> None:
    calls = Devstack(tmp_path / 'host', 'secondary', DISABLED_SERVICES='designate-pool-api',
                     DESIGNATE_POOL_SINK_ZONE='cloud.example.org.').run('stack', *STACK)
    assert list(commands(calls)) == SERVICES[:-1]  # nor the sink: nobody notifies where Keystone does not run
    assert calls_of(calls, 'wait_for_service') == []


def test_with_keystone_it_takes_the_place_of_designate(tmp_path: pathlib.Path) -> None:
    neutron, tempest = tmp_path / 'neutron.conf', tmp_path / 'tempest.conf'
    neutron.write_text('[DEFAULT]\n')
    tempest.touch()
    devstack = Devstack(
        tmp_path / 'host', 'secondary', ENABLED_SERVICES='mysql,rabbit,key,q-svc,tempest',
        SERVICE_PASSWORD='not $ecret',
        SERVICE_PROJECT_NAME='service', SERVICE_DOMAIN_NAME='Default', REGION_NAME='RegionOne',
        KEYSTONE_SERVICE_URI='http://192.0.2.5/identity', NEUTRON_CONF=neutron, TEMPEST_CONFIG=tempest)
    calls = devstack.run('stack', *STACK)
    assert calls_of(calls, 'setup_develop') == [[str(ROOT), 'keystone']]
    assert calls_of(calls, 'create_service_user') == [['designate']]
    assert calls_of(calls, 'get_or_create_service') == [['designate', 'dns', 'DNS Service']]
    assert calls_of(calls, 'get_or_create_endpoint') == [['dns', 'RegionOne', f'http://{devstack.api}/']]
    done = devstack.manage('config', 'check', '--offline')
    assert (done.returncode, done.stdout) == (0, f'1 server: secondary:127.0.0.1:{devstack.port}\n')

    ours, theirs = _sections(devstack.config), _sections(neutron)
    assert ours['service:api']['auth'] == 'keystone'
    password = devstack.config.parent / 'keystone-password'
    assert ours['keystone_authtoken']['password'] == f'file:{password}'
    assert password.read_text() == 'not $ecret' and stat.S_IMODE(password.stat().st_mode) == 0o600
    assert theirs['DEFAULT']['external_dns_driver'] == 'designate'
    assert theirs['designate']['url'] == f'http://{devstack.api}/v2'
    assert (theirs['designate']['username'], theirs['designate']['password']) == ('neutron', 'not $ecret')
    for section in (ours['keystone_authtoken'], theirs['designate']):
        assert section['auth_url'] == 'http://192.0.2.5/identity' and section['project_name'] == 'service'
    assert _sections(tempest)['service_available']['designate'] == 'True'


def test_with_a_zone_for_it_the_sink_is_started(tmp_path: pathlib.Path) -> None:
    nova, neutron, tempest = (tmp_path / f'{name}.conf' for name in ('nova', 'neutron', 'tempest'))
    for each in (nova, neutron, tempest):
        each.write_text('[DEFAULT]\n')
    settings = {'SERVICE_PASSWORD': 'secret', 'SERVICE_PROJECT_NAME': 'service', 'SERVICE_DOMAIN_NAME': 'Default',
                'REGION_NAME': 'RegionOne', 'KEYSTONE_SERVICE_URI': 'http://192.0.2.5/identity', 'NOVA_CONF': nova,
                'NEUTRON_CONF': neutron, 'TEMPEST_CONFIG': tempest,
                'CREATED_ZONE_ID': '3b2ba4e8-6c4e-4f5b-a0f6-0a4f2e9c1d55',
                'DESIGNATE_POOL_SINK_ZONE': 'cloud.example.org.'}
    devstack = Devstack(tmp_path / 'host', 'secondary', ENABLED_SERVICES='mysql,rabbit,key,n-cpu,q-svc', **settings)
    calls = devstack.run('stack', *STACK)
    assert calls_of(calls, 'openstack') == [[
        '--os-cloud', 'devstack-admin', 'zone', 'create', '--email', 'hostmaster@cloud.example.org', '-f', 'value',
        '-c', 'id', 'cloud.example.org.']]
    assert list(commands(calls)) == [*SERVICES, 'designate-pool-sink']
    assert commands(calls)['designate-pool-sink'] == [str(devstack.programs / 'designate-pool-sink'), '--config-file',
                                                      str(devstack.config)]
    assert devstack.manage('config', 'check', '--offline').returncode == 0
    ours = _sections(devstack.config)
    assert ours['service:sink']['enabled_notification_handlers'] == 'nova_fixed,neutron_floatingip'
    for name in ('nova_fixed', 'neutron_floatingip'):
        assert ours[f'handler:{name}']['zone_id'] == settings['CREATED_ZONE_ID']
    for path in (nova, neutron):
        assert _sections(path)['oslo_messaging_notifications']['driver'] == 'messagingv2'
    assert _sections(nova)['notifications']['notification_format'] == 'both'
    assert calls_of(devstack.run('unstack'), 'stop_process')[0] == ['designate-pool-sink']


def _sections(path: pathlib.Path) -> configparser.RawConfigParser:
    found = configparser.RawConfigParser(default_section='none')
    found.read(path)
    return found


def test_a_plugin_that_is_switched_off_does_nothing(tmp_path: pathlib.Path) -> None:
    devstack = Devstack(tmp_path / 'host', 'secondary', DISABLED_SERVICES='designate-pool')
    assert [*devstack.run('stack', *STACK), *devstack.run('unstack'), *devstack.run('clean')] == []
    assert devstack.files() == set()


def test_an_unknown_backend_is_refused_by_name(tmp_path: pathlib.Path) -> None:
    done = Devstack(tmp_path / 'host', 'bind10').source('stack', 'pre-install')
    assert done.returncode == 1
    assert 'neither bind9 nor secondary: bind10' in done.stderr
