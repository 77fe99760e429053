"""The bind9 driver against real BINDs."""

from __future__ import annotations

import pathlib
import re
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import dns.rcode
import pytest

from designate_pool.backends import rndc
from designate_pool.backends.base import Deadline
from designate_pool.model import Endpoint, Server, TsigKey
from tests.fixtures.bind import Named
from tests.fixtures.nameservers import Primary, zone_text
from tests.fixtures.processes import wait_until
from tests.unit.backends.contract import NOWHERE, ODD_NAMES, RemoteContract, RemoteRig, a_domain, opened

Start = Callable[..., Named]
KEY = TsigKey('transfer.example.', 'hmac-sha256', 'dHJhbnNmZXIga2V5IGZvciB0ZXN0cyBvbmx5')


class BindRig(RemoteRig):
    wrong_key = {'rndc_key_file': None, 'rndc_key_secret': 'bm90IHRoZSBrZXk='}
    port_option = 'rndc_port'

    def __init__(self, named: Named) -> None:
        self.named = named

    def server(self, **facts: Any) -> Server:
        return self.named.server([NOWHERE], **facts)

    def holds(self, name: str) -> bool:
        return self.named.query(name).rcode() != dns.rcode.REFUSED

    def restart(self) -> None:
        self.named.restart()

    def stop(self) -> None:
        self.named.stop()

    def start(self) -> None:
        self.named.start()


@pytest.fixture
def rig(named: Start) -> Iterator[BindRig]:
    rig = BindRig(named())
    yield rig
    assert 'assertion failure' not in rig.named.log


class TestContract(RemoteContract):
    pass


def ask(named: Named, command: str) -> rndc.Answer:
    """A command given to named without the driver."""
    deadline = Deadline(5)
    channel = rndc.connect(named.host, named.rndc_port, rndc.Key.read(str(named.folder / 'rndc.key')), deadline)
    try:
        return channel.ask(command, deadline)
    finally:
        channel.close()


def test_zone_is_transferred_and_follows(named: Start, primary: Primary) -> None:
    primary.publish('example.com.', zone_text(1, 'www A 192.0.2.1'))
    server = named()
    with opened(server.server([primary.endpoint])) as backend:
        assert backend.create_domain(a_domain()).ok
    wait_until(lambda: server.serial('example.com.') == 1, 'the first contents are served')
    assert server.texts('www.example.com.', 'A') == ['192.0.2.1']
    primary.publish('example.com.', zone_text(2, 'www A 192.0.2.2'))
    server.notify('example.com.', 2)
    wait_until(lambda: server.serial('example.com.') == 2, 'the second contents are served')
    assert server.texts('www.example.com.', 'A') == ['192.0.2.2']


def test_transfer_with_a_key(named: Start) -> None:
    keyed = Primary(keys=[KEY])
    keyed.start()
    try:
        keyed.publish('example.com.', zone_text(7))
        server = named(keys=[KEY])
        with opened(server.server([keyed.endpoint], tsig_key=KEY)) as backend:
            assert backend.create_domain(a_domain()).ok
        wait_until(lambda: server.serial('example.com.') == 7, 'the contents are served')
        assert 'key "transfer.example."' in ask(server, 'showzone example.com').text
    finally:
        keyed.stop()


def test_zones_survive_a_restart_whatever_their_names(named: Start) -> None:
    server = named()
    with opened(server.server([NOWHERE])) as backend:
        for name in ODD_NAMES.values():
            assert backend.create_domain(a_domain(name)).ok
        server.restart()
        for what, name in ODD_NAMES.items():
            assert server.query(name).rcode() == dns.rcode.SERVFAIL, what
        files = {re.search(r'file "([^"]*)"', ask(server, f'showzone {name}').text)[1]  # type: ignore[index]
                 for name in ('example', '2.0.192.in-addr.arpa', '_sip._tcp.example.com')}
    assert files == {'example.1.db', '2.0.192.in-addr.arpa.1.db', '_sip._tcp.example.com.1.db'}


def test_deleted_zone_leaves_no_file(named: Start, primary: Primary, tmp_path: pathlib.Path) -> None:
    name = ODD_NAMES['slashes']
    primary.publish(name, zone_text(1))
    (tmp_path / 'zones').mkdir()
    server = named()
    with opened(server.server([primary.endpoint], zone_file_folder=str(tmp_path / 'zones'))) as backend:
        assert backend.create_domain(a_domain(name)).ok
        wait_until(lambda: list((tmp_path / 'zones').glob('*.1.db')), 'named has written the zone')
        assert backend.delete_domain(a_domain(name)).ok
        wait_until(lambda: not list((tmp_path / 'zones').iterdir()), 'named has removed the file')


def test_lost_zones_are_created_again(named: Start) -> None:
    server = named()
    with opened(server.server([NOWHERE])) as backend:
        assert backend.create_domain(a_domain()).ok
        server.forget_zones()
        assert server.query('example.com.').rcode() == dns.rcode.REFUSED
        assert backend.create_domain(a_domain()).ok
        assert server.query('example.com.').rcode() == dns.rcode.SERVFAIL


def test_zone_added_by_hand_without_a_file_is_deleted_and_named_lives_on(named: Start) -> None:
    server = named()
    by_hand = 'addzone "example.com" { type secondary; primaries { 127.0.0.1 port 9; }; };'
    assert ask(server, by_hand).result == 0
    with opened(server.server([NOWHERE])) as backend:
        assert backend.delete_domain(a_domain()).ok
        wait_until(lambda: server.query('example.com.').rcode() == dns.rcode.REFUSED, 'the zone is gone')
        assert backend.ping().ok
    assert server.running


def test_zones_go_into_the_view(named: Start) -> None:
    server = named(statements='''view "inside" { match-clients { any; }; allow-new-zones yes; };''')
    with opened(server.server([NOWHERE], view='inside')) as backend:
        assert backend.create_domain(a_domain()).ok
        assert 'file "example.com@inside.1.db"' in ask(server, 'showzone example.com IN inside').text
        assert backend.delete_domain(a_domain()).ok
        wait_until(lambda: server.query('example.com.').rcode() == dns.rcode.REFUSED, 'the zone is gone')


def test_a_view_that_is_not_there_is_permanent_for_create_and_for_delete(named: Start) -> None:
    with opened(named().server([NOWHERE], view='outside')) as backend:
        for result in (backend.create_domain(a_domain()), backend.delete_domain(a_domain())):
            assert "no matching view" in str(result.error)
            assert not result.retryable


def test_new_zones_not_allowed_is_permanent(named: Start) -> None:
    with opened(named(allow_new_zones=False).server([NOWHERE])) as backend:
        result = backend.create_domain(a_domain())
    assert 'Not allowing new zones' in str(result.error)
    assert not result.retryable


def test_clocks_too_far_apart_are_named_as_a_cause(named: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = named()
    monkeypatch.setattr(rndc, 'time', types.SimpleNamespace(time=lambda: time.time() + 1000))
    with opened(server.server([NOWHERE])) as backend:
        result = backend.ping()
    assert 'its clock and ours are more than 5 minutes apart' in str(result.error)


@pytest.mark.parametrize('algorithm', rndc.ALGORITHMS)
def test_every_algorithm(named: Start, algorithm: str) -> None:
    server = named(rndc_algorithm=algorithm)
    options: dict[str, Any] = {'rndc_key_file': None, 'rndc_key_algorithm': algorithm,
                               'rndc_key_secret': server.rndc_secret}
    with opened(server.server([NOWHERE])) as by_file, opened(server.server([NOWHERE], **options)) as by_secret:
        assert by_file.ping().ok
        assert by_secret.ping().ok


def test_another_key_in_the_file_is_used_from_the_next_connection(named: Start) -> None:
    server = named()
    key_file = server.folder / 'rndc.key'
    right = key_file.read_text()
    key_file.write_text(right.replace(server.rndc_secret, 'bm90IHRoZSBrZXk='))
    with opened(server.server([NOWHERE])) as backend:
        assert not backend.ping().ok
        key_file.write_text(right)
        assert backend.ping().ok


def test_over_ipv6(named: Start) -> None:
    server = named(host='::1')
    with opened(server.server([Endpoint('::1', 9)])) as backend:
        assert backend.create_domain(a_domain()).ok
        assert server.query('example.com.').rcode() == dns.rcode.SERVFAIL
