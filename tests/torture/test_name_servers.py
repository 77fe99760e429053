"""What the kit does to name servers of each make, and asks them."""

from __future__ import annotations

import base64
import contextlib
import pathlib
from collections.abc import Callable, Iterator

import dns.tsig
import pytest
import requests

from designate_pool.backends.records import RecordBackend
from designate_pool.model import TsigKey
from designate_pool.planner.zone.zone import Zone
from designate_pool.protocol.rrset import rrset
from designate_pool.testing import a_domain, opened
from testing.bind import Named
from testing.daemon import Daemon
from testing.knot import Knotd
from testing.nsd import Nsd
from testing.pdns import PowerDns
from testing.processes import wait_until
from tests.fixtures.nameservers import Primary, zone_text
from tests.torture import name_servers
from tests.torture.history import foreign_rrset

KEY = TsigKey('transfer.example.com.', 'hmac-sha256', base64.b64encode(b'one' * 10).decode())
OTHER = base64.b64encode(b'two' * 10).decode()
ZONE = 'example.com.'
MAKES: dict[str, Callable[[pathlib.Path], Daemon]] = {
    'bind9': lambda folder: Named(folder, keys=[KEY]), 'knot': lambda folder: Knotd(folder, keys=[KEY]),
    'nsd': lambda folder: Nsd(folder, keys=[KEY]), 'pdns': lambda folder: PowerDns(folder, keys=[KEY])}


@pytest.fixture(params=MAKES)
def daemon(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Iterator[Daemon]:
    """One that serves a zone that it has transferred with the key."""
    primary = Primary(keys=[KEY])
    primary.start()
    daemon = MAKES[request.param](tmp_path / 'server')
    try:
        primary.publish(ZONE, zone_text(7))
        server = daemon.server([primary.endpoint], tsig_key=KEY)
        daemon.start()
        with opened(server) as backend:
            assert backend.create_domain(a_domain(ZONE)).ok
        wait_until(lambda: daemon.serial(ZONE) == 7, 'the zone is served')
        yield daemon
    finally:
        daemon.remove()
        primary.stop()


def test_a_zone_is_there_until_it_is_dropped(daemon: Daemon) -> None:
    assert name_servers.leftovers(daemon, [ZONE], ['other.example.']) == []
    assert f'{ZONE} is configured' in name_servers.leftovers(daemon, [], [ZONE])
    name_servers.drop(daemon, ZONE)
    wait_until(lambda: name_servers.leftovers(daemon, [], [ZONE]) == [], 'nothing is left of it')
    # A process of NSD's from before its reload may still answer.
    wait_until(lambda: daemon.serial(ZONE) is None, 'it is served no more')


def test_to_drop_a_zone_that_is_not_there_does_not_keep_others_from_changing_zones(daemon: Daemon) -> None:
    with contextlib.suppress(AssertionError, requests.HTTPError):
        name_servers.drop(daemon, 'other.example.')
    name_servers.drop(daemon, ZONE)
    wait_until(lambda: name_servers.leftovers(daemon, [], [ZONE]) == [], 'nothing is left of it')


def test_what_somebody_else_writes_into_a_zone_and_a_key_of_the_api_that_is_refused(tmp_path: pathlib.Path) -> None:
    server = PowerDns(tmp_path / 'server', driver='pdns-native')
    try:
        server.start()
        with opened(server.server()) as backend:
            assert isinstance(backend, RecordBackend)
            zone = Zone(ZONE)
            zone.add_record(rrset(ZONE, 'SOA', 300, ['ns1.example.net. hostmaster.example.net. 7 3600 600 86400 300']))
            backend.provider.create_zone(zone)
        name_servers.write_foreign(server, ZONE)
        (name, rtype), (_, rdatas) = foreign_rrset(ZONE)
        assert server.texts(name, rtype) == list(rdatas)
        with pytest.raises(requests.HTTPError):
            name_servers.write_foreign(server, 'other.example.')

        assert not name_servers.refuses_api_key(server)
        server.stop()
        assert not name_servers.refuses_api_key(server)
        server.replace_api_key('another')
        server.start()
        assert name_servers.refuses_api_key(server)
        server.stop()
        server.replace_api_key(server.api_key)
        server.start()
        assert not name_servers.refuses_api_key(server)
        assert server.texts(name, rtype) == list(rdatas)
    finally:
        server.remove()


@pytest.mark.parametrize('daemon', [make for make in MAKES if make != 'pdns'], indirect=True)
def test_another_secret_is_refused_until_the_former_one_is_back(daemon: Daemon) -> None:
    def takes_key() -> bool:
        try:
            return bool(daemon.query(ZONE, key=KEY).answer)
        except dns.tsig.PeerBadSignature:
            return False

    # NSD's former processes answer beside the new ones for a while, without the zone and with the former secret.
    wait_until(takes_key, 'the key is taken')
    name_servers.replace_key(daemon, KEY, KEY.secret, OTHER)
    wait_until(lambda: not takes_key(), 'the key is refused')
    name_servers.replace_key(daemon, KEY, OTHER, KEY.secret)
    wait_until(takes_key, 'the key is taken again')
