"""The sections that are known by name, and the concurrency, known before anything is imported."""

from __future__ import annotations

import importlib.metadata
import pathlib
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest
from oslo_config import cfg

from designate_pool.config import concurrency_choice, load, sections
from designate_pool.errors import BadConfiguration
from designate_pool.model import Endpoint
from tests.unit.config.conftest import Read


def mistakes(conf: cfg.ConfigOpts) -> list[str]:
    with pytest.raises(BadConfiguration) as caught:
        load.read_settings(conf)
    lines = str(caught.value).splitlines()
    assert lines[0] == f'The configuration has mistakes ({len(lines) - 1}):'
    return [line.strip() for line in lines[1:]]


def test_the_specification_s_defaults(read: Read) -> None:
    settings = load.read_settings(read(''))
    manager = settings.pool_manager
    assert (manager.pool_name, manager.threshold_percentage) == ('default', 100)
    assert (manager.poll_timeout, manager.poll_retry_interval, manager.poll_max_retries) == (30, 2, 3)
    assert manager.periodic_sync_interval == 120
    assert settings.process.concurrency == 'eventlet'
    assert settings.process.host == socket.gethostname()
    assert settings.database.connection == 'sqlite:////var/lib/designate-pool/designate-pool.sqlite'
    assert settings.minidns.listen == (Endpoint('127.0.0.1', 5354),)


def test_a_folder_that_may_not_be_read_is_not_taken_for_empty(read: Read, tmp_path: pathlib.Path,
                                                              forbid: Callable[[pathlib.Path], None]) -> None:
    """At a SIGHUP the servers in it would be gone, and drained."""
    folder = tmp_path / 'conf.d'
    folder.mkdir()
    (folder / 'pool.conf').write_text('[service:pool_manager]\npool_name = gold\n')
    conf = read('', argv=(f'--config-dir={folder}',))
    forbid(folder)
    with pytest.raises(BadConfiguration, match='conf.d: Permission denied'):
        load.reload(conf)
    assert conf['service:pool_manager'].pool_name == 'gold'
    assert mistakes(conf) == [f'{folder}: Permission denied']


def test_what_the_file_says_wins(read: Read) -> None:
    settings = load.read_settings(read('''
        [DEFAULT]
        concurrency = threading
        host = one
        state_path = /srv/pool
        [service:pool_manager]
        pool_name = gold
        threshold_percentage = 66
        poll_timeout = 0.5
        [service:minidns]
        listen = 192.0.2.1, [2001:db8::1]:53, 2001:db8::2
        '''))
    assert (settings.process.concurrency, settings.process.host) == ('threading', 'one')
    assert settings.database.connection == 'sqlite:////srv/pool/designate-pool.sqlite'
    assert (settings.pool_manager.threshold_percentage, settings.pool_manager.poll_timeout) == (66, 0.5)
    assert settings.minidns.listen == (Endpoint('192.0.2.1', 5354), Endpoint('2001:db8::1', 53),
                                       Endpoint('2001:db8::2', 5354))
    assert settings.central.default_pool_name == 'gold'


def test_the_slip_of_the_specification_is_an_alias(read: Read) -> None:
    settings = load.read_settings(read('[service:pool_manager]\nperiod_sync_interval = 7\n'))
    assert settings.pool_manager.periodic_sync_interval == 7


def test_the_default_pool_and_the_filters_of_the_scheduler(read: Read) -> None:
    central = load.read_settings(read('[service:central]\nscheduler_filters = attribute, random\n'
                                      'default_pool_id = 794CCC2C-d751-44fe-b57f-8894c9f5c842\n')).central
    assert (central.scheduler_filters, central.default_pool_id) == (
        ('attribute', 'random'), '794ccc2cd75144feb57f8894c9f5c842')
    assert mistakes(read('[service:central]\nscheduler_filters = attribute, pool\ndefault_pool_id = default\n')) == [
        "[service:central] default_pool_id: 'default' is not a UUID",
        "[service:central] scheduler_filters: there is no filter 'pool'; there are attribute, pool_id_attribute, "
        'default_pool, fallback, random, in_doubt_default_pool']
    [line] = mistakes(read('[service:central]\nscheduler_filters =\n'))
    assert 'at least one filter' in line


def test_ports_of_masters(read: Read) -> None:
    assert load.read_settings(read('')).central.master_ports == ('53', '853')
    assert load.read_settings(read('[service:central]\nmaster_ports = 53, 5300-5399\n')).central.master_ports == (
        '53', '5300-5399')
    assert mistakes(read('[service:central]\nmaster_ports = 53, 0, 9-8, x\n')) == [
        "[service:central] master_ports: '0' is not a port from 1 to 65535",
        "[service:central] master_ports: '9-8' is not a range of ports, such as 5300-5399",
        "[service:central] master_ports: 'x' is not a port from 1 to 65535"]


def test_names_that_are_reserved(read: Read) -> None:
    assert load.read_settings(read('[service:central]\nreserved_zone_names =\n')).central.reserved_zone_names == ()
    assert mistakes(read('[service:central]\nreserved_zone_names = co.uk., *.arpa, co..uk\n')) == [
        "[service:central] reserved_zone_names: 'co..uk' is not the name of a zone, or a pattern with * and ?"]


@pytest.mark.parametrize(('option', 'value'), [
    ('threshold_percentage', '0'), ('threshold_percentage', '101'), ('threshold_percentage', '66.7'),
    ('poll_timeout', '0'), ('poll_timeout', 'nan'), ('poll_max_retries', '-1'), ('poll_retry_interval', '-1'),
    ('periodic_sync_interval', '0'), ('periodic_sync_interval', 'inf'),
    ('poll_retry_interval', 'often'), ('periodic_sync_interval', 'daily'), ('batch_size', '0'), ('pool_name', ''),
    ('pool_name', 'x' * 51), ('claim_seconds', 'soon'), ('retry_backoff_maximum', '1')])
def test_a_value_out_of_range_is_told_with_section_and_option(read: Read, option: str, value: str) -> None:
    assert [line.split(': ')[0] for line in mistakes(read(f'[service:pool_manager]\n{option} = {value}\n'))] == [
        f'[service:pool_manager] {option}']


@pytest.mark.parametrize(('section', 'meant'), [
    ('service:poolmanager', 'service:pool_manager'), ('databse', 'database'), ('service:mini_dns', 'service:minidns'),
    ('backends:bind9:*', None), ('Database', 'database'), ('service:worker', None)])
def test_a_section_that_looks_like_ours(read: Read, section: str, meant: str | None) -> None:
    [line] = mistakes(read(f'[{section}]\n'))
    assert line.startswith(f'[{section}] there is no such section')
    assert meant is None or line.endswith(f'did you mean {meant}?')


def test_sections_of_libraries_are_left_alone(read: Read) -> None:
    load.read_settings(read('[oslo_messaging_rabbit]\nheartbeat_rate = 3\n[DEFAULT]\ntransport_url = fake://\n'))


def test_a_section_twice_in_a_file_but_not_in_two_files(read: Read) -> None:
    twice = '[service:api]\nthreads = 3\n', '[service:api]\nwaits = 4\n'
    settings = load.read_settings(read(*twice))
    assert (settings.api.threads, settings.api.waits) == (3, 4)
    [line] = mistakes(read(''.join(twice)))
    assert line.startswith('[service:api] the section occurs more than once in ')


def test_an_api_that_others_reach_must_be_meant(read: Read) -> None:
    for address in ('0.0.0.0', '192.0.2.7:80', '[::]:9001'):
        [line] = mistakes(read(f'[service:api]\nlisten = 127.0.0.1, {address}\n'))
        assert line.startswith('[service:api] listen: other machines reach ')
        for once in ('allow_remote = true', 'auth = noauth'):
            assert mistakes(read(f'[service:api]\nlisten = {address}\n{once}\n')), 'it has to be said twice'
        twice = read(f'[service:api]\nlisten = {address}\nauth = noauth\nallow_remote = true\n')
        assert load.read_settings(twice).api.auth == 'noauth'
        for asks in ('auth = token\ntokens_file = tokens', 'auth = keystone'):
            assert load.read_settings(read(f'[service:api]\nlisten = {address}\n{asks}\n')).api.auth in asks
    load.read_settings(read('[service:api]\nlisten = [::1]:9001, 127.8.8.8\n'))


@pytest.mark.parametrize('listen', [
    'localhost:53', '192.0.2.1:0', '192.0.2.1:65536', '[2001:db8::1', '192.0.2.1:x', ','])
def test_a_bad_address_to_listen_on(read: Read, listen: str) -> None:
    [line] = mistakes(read(f'[service:minidns]\nlisten = {listen}\n'))
    assert line.startswith('[service:minidns] listen: ')


def test_the_database_from_a_file_and_from_the_environment(read: Read, tmp_path: pathlib.Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / 'url'
    secret.write_text('postgresql+psycopg2://pool:a$b@db.example.com/pool\n')
    settings = load.read_settings(read(f'[database]\nconnection = file:{secret}\n'))
    assert settings.database.connection == 'postgresql+psycopg2://pool:a$b@db.example.com/pool'
    assert 'a$b' not in repr(settings)
    monkeypatch.setenv('POOL_DATABASE', 'sqlite:///x')
    assert load.read_settings(read('[database]\nconnection = env:POOL_DATABASE\n')).database.connection == 'sqlite:///x'
    assert mistakes(read('[database]\nconnection = env:POOL_NOWHERE\n')) == [
        '[database] connection: the environment has no variable POOL_NOWHERE']


def test_a_dollar_in_the_password_is_told_how_to_mend(read: Read) -> None:
    [line] = mistakes(read('[database]\nconnection = mysql+pymysql://pool:pa$word@db.example.com/pool\n'))
    assert line.startswith('[database] connection: ') and '$$' in line and 'file:PATH' in line
    assert 'pa$word' not in line
    settings = load.read_settings(read('[database]\nconnection = mysql+pymysql://pool:pa$$word@db.example.com/pool\n'))
    assert settings.database.connection == 'mysql+pymysql://pool:pa$word@db.example.com/pool'


def test_a_file_that_is_missing_or_cannot_be_parsed(read: Read, tmp_path: pathlib.Path) -> None:
    for path, why in ((tmp_path / 'none.conf', 'No such file'), (tmp_path, 'Is a directory')):
        with pytest.raises(BadConfiguration, match=why):
            load.load(cfg.ConfigOpts(), [f'--config-file={path}'], config_files=[])
    with pytest.raises(BadConfiguration) as caught:
        read('[database]\nhunter2\n')
    assert 'line 2' in str(caught.value) and 'hunter2' not in str(caught.value)


def test_reading_again_takes_the_new_values_and_keeps_the_old_when_it_cannot(read: Read) -> None:
    conf = read('[service:pool_manager]\nbatch_size = 5\n')
    path = pathlib.Path(conf.config_file[0])
    path.write_text('[service:pool_manager]\nbatch_size = 6\n')
    load.reload(conf)
    assert load.read_settings(conf).pool_manager.batch_size == 6
    path.write_text('[service:pool_manager\n')
    with pytest.raises(BadConfiguration):
        load.reload(conf)
    assert conf['service:pool_manager'].batch_size == 6


def test_tokens_need_a_file(read: Read) -> None:
    [line] = mistakes(read('[service:api]\nauth = token\n'))
    assert line.startswith('[service:api] tokens_file: it must be given')


def test_a_section_has_addresses_of_its_own_for_metrics(read: Read) -> None:
    settings = load.read_settings(read('[service:api]\nmetrics = 192.0.2.1, [2001:db8::1]:9000\n'))
    assert (settings.api.metrics, settings.central.metrics) == (
        (Endpoint('192.0.2.1', 9464), Endpoint('2001:db8::1', 9000)), ())


ZONE = 'zone_id = 3b2ba4e8-6c4e-4f5b-a0f6-0a4f2e9c1d55'
ENABLED = '[service:sink]\nenabled_notification_handlers = nova_fixed\n'


def test_handlers_are_off_unless_the_file_names_them(read: Read) -> None:
    assert load.read_settings(read(f'[handler:nova_fixed]\n{ZONE}\n')).sink.handlers == ()


def test_a_handler_has_designates_options(read: Read) -> None:
    found, = load.read_settings(read(f'{ENABLED}[handler:nova_fixed]\n{ZONE}\nformatv4 = %(hostname)s.%(zone)s\n'
                                     'formatv4 = %(octet3)s.%(zone)s\n')).sink.handlers
    assert (found.name, found.control_exchange, found.notification_topics) == ('nova_fixed', 'nova', ('notifications',))
    assert found.formatv4 == ('%(hostname)s.%(zone)s', '%(octet3)s.%(zone)s')
    assert found.formatv6 == ('%(hostname)s.%(zone)s',)


def test_a_handler_of_ones_own_has_any_options(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint('volumes', 'example.handlers:Volumes', sections.NAMESPACE)
    monkeypatch.setattr(importlib.metadata, 'entry_points', lambda group: [point])
    found = load.read_settings(read(
        '[service:sink]\nenabled_notification_handlers = volumes\n[handler:volumes]\nsuffix = san\nsuffix = backup\n'
        f'{ZONE}\n')).sink
    assert found.handlers == ()
    assert found.others == {'volumes': {'suffix': ('san', 'backup'), 'zone_id': (ZONE.partition(' = ')[2],)}}


def test_a_handler_that_is_not_installed_is_a_mistake_for_the_sink_alone(read: Read) -> None:
    found = load.read_settings(read('[service:sink]\nenabled_notification_handlers = nova_fixd\n'
                                    '[handler:nova_fixd]\nsuffix = san\n')).sink
    assert (found.missing, dict(found.others)) == (('nova_fixd',), {})
    with pytest.raises(BadConfiguration, match=r'\[service:sink\] enabled_notification_handlers: there is no handler '
                                               r'nova_fixd, only .*; did you mean nova_fixed\?'):
        sections.check_installed(found)


@pytest.mark.parametrize(('text', 'line'), [
    pytest.param(ENABLED, r'\[handler:nova_fixed\] zone_id: the id of a zone is needed', id='no-zone'),
    pytest.param(f'{ENABLED}[handler:nova_fixed]\nzone_id = example.com.\n', r'zone_id: the id of a zone', id='no-id'),
    pytest.param(f'{ENABLED}[handler:nova_fixed]\n{ZONE}\nformatv4 = %(hostname.%(zone)s\n',
                 r'formatv4: .* is not a format', id='form'),
    pytest.param(f'{ENABLED}[handler:nova_fixed]\n{ZONE}\nformatv6 = 100%.%(zone)s\n',
                 r'formatv6: .* is not a format', id='percent'),
    pytest.param('[handler:nova_fixd]\nzone_id = x\n', r'\[handler:nova_fixd\]', id='section'),
    pytest.param('[handler:nova_fixed]\nformats = x\n', r'\[handler:nova_fixed\] formats', id='option'),
])
def test_mistakes_are_named(read: Read, text: str, line: str) -> None:
    with pytest.raises(BadConfiguration, match=line):
        load.read_settings(read(text))


@pytest.mark.parametrize('word', ['eventlet', 'threading'])
def test_the_word_of_the_file(tmp_path: pathlib.Path, word: str) -> None:
    path = tmp_path / 'x.conf'
    path.write_text(f'[DEFAULT]\nconcurrency = {word}\ntransport_url = fake://\n')
    for argv in (['--config-file', str(path)], ['--debug', f'--config-file={path}', 'serve']):
        assert concurrency_choice.concurrency(argv) == word
    assert concurrency_choice.concurrency(['--config-dir', str(tmp_path)]) == word


def test_what_is_wrong_is_left_for_the_loading_to_tell(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'x.conf'
    for text in ('[DEFAULT]\nconcurrency = asyncio\n', 'no section\n'):
        path.write_text(text)
        assert concurrency_choice.concurrency(['--config-file', str(path)]) == 'eventlet'
    assert concurrency_choice.concurrency(['--config-file', str(tmp_path / 'none')]) == 'eventlet'


def test_asking_does_not_import_what_eventlet_must_patch_first() -> None:
    code = ('import sys; from designate_pool.config import concurrency_choice; concurrency_choice.concurrency([]); '
            'sys.exit(bool({"eventlet", "oslo_log.log", "oslo_messaging", "sqlalchemy"} & sys.modules.keys()))')
    assert subprocess.run([sys.executable, '-c', code]).returncode == 0


def test_the_files_may_stand_anywhere_on_the_command_line() -> None:
    assert concurrency_choice.files_first(['database', '--config-file', 'a', 'upgrade', '--config-dir=b', '-x']) == [
        '--config-file=a', '--config-dir=b', 'database', 'upgrade', '-x']


def test_transfers_over_tls_need_a_certificate_and_an_address(read: Read) -> None:
    files = 'tls_certificate = a\ntls_key = b\n'
    listen = 'listen_tls = 192.0.2.1, [2001:db8::1]:8853\n'
    settings = load.read_settings(read(f'[service:minidns]\n{listen}{files}'))
    assert [str(endpoint) for endpoint in settings.minidns.listen_tls] == ['192.0.2.1:853', '[2001:db8::1]:8853']
    assert mistakes(read('[service:minidns]\nlisten_tls = 192.0.2.1\ntls_key = b\n')) == [
        '[service:minidns] tls_certificate: it must be given with listen_tls']
    assert mistakes(read(f'[service:minidns]\nrequire_tls = true\n{files}')) == [
        '[service:minidns] require_tls: no transfer would be possible without listen_tls']
