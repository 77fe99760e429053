from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from designate_pool.cli import client


@pytest.mark.parametrize('given_name, zone, full', [
    ('@', 'example.com.', 'example.com.'),
    ('www', 'example.com.', 'www.example.com.'),
    ('a.b', 'example.com.', 'a.b.example.com.'),
    ('*', 'example.com.', '*.example.com.'),
    ('www.example.com.', 'example.com.', 'www.example.com.'),
    ('www.example.com', 'example.com.', 'www.example.com.'),
    ('WWW.Example.com', 'example.com.', 'WWW.Example.com.'),
    ('example.com', 'example.com.', 'example.com.'),
    ('notexample.com', 'example.com.', 'notexample.com.example.com.'),
    ('www.example.org.', 'example.com.', 'www.example.org.'),
    (r'dot\.', 'example.com.', r'dot\..example.com.'),
    ('com', '.', 'com.'),
])
def test_a_name_in_its_zone(given_name, zone, full):
    assert client.in_zone(given_name, zone) == full


def test_a_zone_gets_its_dot():
    assert client.of_zone('example.com') == client.of_zone('example.com.') == 'example.com.'
    assert client.of_zone(r'odd\.') == r'odd\..'


#: A backslash at the very end escapes nothing, so such a text is no name.
NAMES = st.text(min_size=1).filter(lambda text: (len(text) - len(text.rstrip('\\'))) % 2 == 0)


@given(name=NAMES, zone=NAMES.map(client.of_zone))
def test_completing_twice_is_completing_once(name, zone):
    full = client.in_zone(name, zone)
    assert client.is_absolute(full)
    assert client.in_zone(full, zone) == full


def test_ids():
    assert client.is_id('a86dba58-0043-4cc6-a1bb-69d5e86f3ca3')
    assert client.is_id('a86dba5800434cc6a1bb69d5e86f3ca3')
    assert not client.is_id('a86dba58.example.com')


@pytest.mark.parametrize('given_text, exact, perhaps', [
    ('a86dba58-0043-4cc6-a1bb-69d5e86f3ca3', True, True), ('A86DBA5800434CC6A1BB69D5E86F3CA3', True, True),
    ('bind9:192.0.2.1:53', True, False), ('BIND9:192.0.2.1:53', True, False), ('192.0.2.1', False, True),
    ('a86d', False, True), ('a86dba58-00', False, True), ('a86', False, False), ('192.0.2', False, False),
    ('86db', False, False), ('', False, False),
])
def test_what_a_server_is_called(given_text, exact, perhaps):
    server = {'id': 'a86dba58-0043-4cc6-a1bb-69d5e86f3ca3', 'name': 'bind9:192.0.2.1:53', 'host': '192.0.2.1'}
    assert client.is_called(given_text, server) == exact
    assert client.may_be_called(given_text, server) == perhaps


def test_a_recordset_that_changes_between_reading_and_writing_is_not_overwritten(run, central, monkeypatch):
    run('zone', 'create', 'example.com', '--email', 'hostmaster@example.com')
    run('recordset', 'create', 'example.com', 'www', 'A', '--record', '192.0.2.1')
    send = client.Client.json

    def change(asker, method, path, *rest, **options):
        if method == 'PUT':
            send(asker, method, path, {'records': ['192.0.2.7']})
        return send(asker, method, path, *rest, **options)

    monkeypatch.setattr(client.Client, 'json', change)
    ran = run('recordset', 'set', 'example.com', 'www', 'A', '--record', '192.0.2.9')
    assert ran.code == 1
    assert 'The recordset www.example.com. A has changed since you read it' in ran.err
    assert 'Nothing was changed.' in ran.err
    assert '192.0.2.7' in run('recordset', 'show', 'example.com', 'www', 'A').out
