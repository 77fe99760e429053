"""The observer asks a BIND, and writes down what it answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from designate_pool.model import Endpoint
from testing.bind import Named
from testing.processes import wait_until
from tests.torture.history import History
from tests.torture.observer import Observer

ZONE = """\
$TTL 60
@     IN SOA ns1.example.org. op7.kit.example. 12 3600 600 86400 300
      IN NS  ns1.example.org.
w     IN A   10.0.0.2
      IN A   10.0.0.1
t 61  IN TXT "op9"
"""
STATEMENTS = """
zone "a.example" { type primary; file "%s/a.example.db"; };
zone "broken.example" { type secondary; primaries { 127.0.0.1 port 1; }; };
"""


@pytest.fixture(scope='module')
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Named]:
    folder = tmp_path_factory.mktemp('observed')
    (folder / 'a.example.db').write_text(ZONE)
    server = Named(folder, statements=STATEMENTS % folder)
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture
def observer(named: Named) -> Observer:
    return Observer(History(), {'x': Endpoint(named.host, named.port)}, lambda: ['a.example.', 'gone.example.'])


@pytest.mark.parametrize('tcp', [False, True])
def test_a_zone_that_is_served(observer: Observer, tcp: bool) -> None:
    seen = observer.ask('x', 'a.example.', tcp)
    assert (seen['e'], seen['server'], seen['life'], seen['serial'], 'why' in seen) == ('served', 'x', 7, 12, False)
    assert 0 <= seen['asked'] <= seen['t']


@pytest.mark.parametrize('name', ['gone.example.', 'below.a.example.', 'w.a.example.'])
def test_a_zone_that_is_not_there(observer: Observer, name: str) -> None:
    seen = observer.ask('x', name)
    assert (seen['life'], seen['serial'], 'why' in seen) == (None, None, False)


def test_a_transfer_of_a_zone_that_is_not_there(observer: Observer) -> None:
    seen = observer.transfer('x', 'gone.example.')
    assert (seen['e'], seen['serial'], 'why' in seen) == ('served', None, False)


def test_what_is_not_said(observer: Observer) -> None:
    assert observer.ask('x', 'broken.example.')['why'] == 'SERVFAIL'
    assert observer.transfer('x', 'broken.example.')['why'].startswith('AXFR: ')
    silent = Observer(History(), {'x': Endpoint('127.0.0.1', 1)}, lambda: ())
    assert silent.ask('x', 'a.example.')['why']


def test_contents(observer: Observer) -> None:
    seen = observer.transfer('x', 'a.example.')
    assert (seen['e'], seen['life'], seen['serial']) == ('contents', 7, 12)
    assert seen['rrsets'][1:] == [
        ['a.example.', 'SOA', 60, ['ns1.example.org. op7.kit.example. 12 3600 600 86400 300']],
        ['t.a.example.', 'TXT', 61, ['"op9"']], ['w.a.example.', 'A', 60, ['10.0.0.1', '10.0.0.2']]]


def test_it_goes_on_until_it_is_stopped(observer: Observer) -> None:
    history = observer._history
    observer.start()
    try:
        wait_until(lambda: {'served', 'contents'} <= {each['e'] for each in history.events()}, 'both were asked for')
        observer.look('elsewhere.example.')
        wait_until(lambda: any(each['zone'] == 'elsewhere.example.' for each in history.events()), 'it was asked for')
    finally:
        observer.stop()
    before = len(history.events())
    observer.snapshot()
    assert [each['e'] for each in history.events()[before:]] == ['served', 'contents', 'served']
