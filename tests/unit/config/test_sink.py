"""``[service:sink]`` and the sections of its handlers."""

from __future__ import annotations

import importlib.metadata

import pytest

from designate_pool.config import load, sink
from designate_pool.errors import BadConfiguration
from tests.unit.config.conftest import Read

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
    point = importlib.metadata.EntryPoint('volumes', 'example.handlers:Volumes', sink.NAMESPACE)
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
        sink.check_installed(found)


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
