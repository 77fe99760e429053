"""What the drivers of all servers that transfer zones do alike, against real servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dns.name
import dns.rcode
import pytest

from designate_pool.model import Endpoint
from designate_pool.testing import NOWHERE, ODD_NAMES, a_domain, opened
from testing.processes import wait_until
from tests.fixtures.nameservers import Primary, zone_text
from tests.fixtures.rigs import KEY

Start = Callable[..., Any]


@pytest.fixture(params=['named', 'knotd', 'nsd', 'powerdns'])
def start(request: pytest.FixtureRequest) -> Start:
    """Starts a server of a make."""
    started: Start = request.getfixturevalue(request.param)
    return started


def test_zone_is_transferred_and_follows(start: Start, primary: Primary) -> None:
    primary.publish('example.com.', zone_text(1, 'www A 192.0.2.1'))
    server = start()
    with opened(server.server([primary.endpoint])) as backend:
        assert backend.create_domain(a_domain()).ok
        for serial in (1, 2):
            wait_until(lambda serial=serial: server.serial('example.com.') == serial, f'serial {serial} is served')
            # For a moment after a reload, a query may still be answered by a process that has the former contents.
            wait_until(lambda serial=serial: server.texts('www.example.com.', 'A') == [f'192.0.2.{serial}'],
                       'so is a record')
            if serial == 1:
                primary.publish('example.com.', zone_text(2, 'www A 192.0.2.2'))
                wait_until(lambda: server.follows('example.com.', 2), 'NOTIFY is taken')
        wait_until(lambda: backend.list_zones(['example.com.']).serials == {'example.com.': 2},
                   'it is listed with its serial')


def test_lost_zones_are_created_again(start: Start, primary: Primary) -> None:
    primary.publish('example.com.', zone_text(3))
    server = start()
    with opened(server.server([primary.endpoint])) as backend:
        for _ in range(2):
            assert backend.create_domain(a_domain()).ok
            wait_until(lambda: server.serial('example.com.') == 3, 'the contents are served')
            server.forget_zones()
            assert server.query('example.com.').rcode() == dns.rcode.REFUSED
            assert backend.list_zones(['example.com.']).serials == {}


def test_over_ipv6(start: Start) -> None:
    server = start(host='::1')
    with opened(server.server([Endpoint('::1', 9)])) as backend:
        assert backend.check() == []
        assert backend.create_domain(a_domain()).ok
        wait_until(lambda: backend.list_zones(['example.com.']).serials == {'example.com.': None}, 'the zone is there')


def test_zones_survive_a_restart_whatever_their_names(start: Start) -> None:
    server = start()
    with opened(server.server([NOWHERE])) as backend:
        results = backend.create_domains([a_domain(name) for name in ODD_NAMES.values()])
        names = {name for name, result in zip(ODD_NAMES.values(), results, strict=True) if result.ok}
        assert len(names) >= 8
        for end in (server.stop, server.kill):
            end()
            server.start()
            listed = {dns.name.from_text(name) for name in backend.list_zones(names).serials}
            assert listed == set(map(dns.name.from_text, names))


@pytest.mark.parametrize(('make', 'options'), [
    ('named', {}), ('knotd', {}), ('nsd', {}), ('powerdns', {}), ('powerdns', {'ixfr': True}),
    ('secondary_server', {})], ids=['named', 'knotd', 'nsd', 'powerdns', 'powerdns by IXFR', 'secondary'])
def test_zone_is_transferred_anew_at_the_same_serial(request: pytest.FixtureRequest, keyed_primary: Primary, make: str,
                                                     options: dict[str, Any]) -> None:
    server = request.getfixturevalue(make)(keys=[KEY])
    with opened(server.server([keyed_primary.endpoint], tsig_key=KEY, **options)) as backend:
        keyed_primary.publish('example.com.', zone_text(5, 'www A 192.0.2.1'))
        assert backend.create_domain(a_domain()).ok
        wait_until(lambda: server.texts('www.example.com.', 'A') == ['192.0.2.1'], 'it has the zone')
        # NSD serves a zone before its control process knows that the reload has ended, which would undo a forced
        # transfer.
        wait_until(lambda: backend.list_zones(['example.com.']).serials.get('example.com.') == 5, 'its serial is known')
        keyed_primary.publish('example.com.', zone_text(5, 'www A 192.0.2.2'))
        result, = backend.refetch_domains([a_domain()])
        assert result.ok, result
        wait_until(lambda: server.texts('www.example.com.', 'A') == ['192.0.2.2'], 'it has the new contents')
        assert server.serial('example.com.') == 5
        absent, = backend.refetch_domains([a_domain('absent.example.')])
        assert not absent.ok and absent.retryable and not absent.unreachable
