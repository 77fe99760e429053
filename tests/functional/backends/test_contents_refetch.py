"""What each driver does when a server is to transfer a zone anew that it has already, at the same serial."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from designate_pool import backends
from designate_pool.backends.base import Backend
from designate_pool.model import Server, TsigKey, new_id
from designate_pool.testing import a_domain
from testing.bind import Named
from testing.knot import Knotd
from testing.nsd import Nsd
from testing.pdns import PowerDns
from testing.processes import wait_until
from tests.fixtures.nameservers import Primary, SecondaryServer, zone_text

NAME = 'again.example.'
KEY = TsigKey('again.example.com.', 'hmac-sha256', 'YWdhaW4gYWdhaW4gYWdhaW4=')
MAKES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    'bind9': (Named, {}), 'nsd': (Nsd, {}), 'knot': (Knotd, {}), 'pdns': (PowerDns, {}),
    'pdns-ixfr': (PowerDns, {'ixfr': True}), 'secondary': (SecondaryServer, {})}


@pytest.fixture
def primary() -> Iterator[Primary]:
    server = Primary([KEY])
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=MAKES)
def held(request: pytest.FixtureRequest, tmp_path: pathlib.Path, primary: Primary) -> Iterator[tuple[Any, Backend]]:
    """A server and its driver; its primary is *primary*."""
    make, options = MAKES[request.param]
    server = make(tmp_path / 'server', keys=[KEY]).start()
    backend = backends.build(server.server([primary.endpoint], tsig_key=KEY, **options))
    yield server, backend
    backend.close()
    server.remove() if hasattr(server, 'remove') else server.stop()


def test_it_is_transferred_anew_at_the_same_serial(held: tuple[Any, Backend], primary: Primary) -> None:
    server, backend = held
    domain = a_domain(NAME)

    def address() -> list[str]:
        return [rdata.to_text() for rrset in server.query(f'www.{NAME}', 'A', timeout=2).answer for rdata in rrset]

    primary.publish(NAME, zone_text(5, 'www A 192.0.2.1'))
    assert backend.create_domain(domain).ok
    wait_until(lambda: address() == ['192.0.2.1'], 'it has the zone')
    # NSD serves a zone before its control process knows that the reload has ended, which would undo a forced transfer.
    wait_until(lambda: backend.list_zones([NAME]).serials.get(NAME) == 5, 'the control channel knows its serial')
    primary.publish(NAME, zone_text(5, 'www A 192.0.2.2'))
    result = backend.refetch_domain(domain)
    assert result.ok, result
    wait_until(lambda: address() == ['192.0.2.2'], 'it has the new contents')
    assert server.serial(NAME) == 5
    absent = backend.refetch_domain(a_domain('absent.example.'))
    assert not absent.ok and absent.retryable and not absent.unreachable


def test_a_driver_without_a_control_channel_says_that_it_cannot() -> None:
    backend = backends.build(Server(new_id(), 'catalog', '192.0.2.1'))
    results = backend.refetch_domains([a_domain('a.example.'), a_domain('b.example.')])
    assert len(results) == 2
    for result in results:
        assert (result.retryable, result.error) == (False, 'the driver catalog cannot make the server transfer a zone '
                                                           'again that it already has; do it on the server by hand')
