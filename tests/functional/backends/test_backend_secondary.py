"""The secondary driver against the project's own name server, as a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dns.exception
import dns.rcode
import pytest

from designate_pool.model import Endpoint, TsigKey
from designate_pool.testing import KeyedContract, KeyedRig, RemoteContract, TcpRig, a_domain, opened
from testing import warm
from testing.bind import Named
from testing.processes import wait_until
from tests.fixtures.nameservers import SECRET, Primary, SecondaryServer, zone_text
from tests.fixtures.rigs import ProcessRig

Start = Callable[..., SecondaryServer]
KEY = TsigKey('transfer.example.', 'hmac-sha512', 'dHJhbnNmZXIga2V5IGZvciB0ZXN0cyBvbmx5')


class SecondaryRig(ProcessRig, TcpRig, KeyedRig):
    wrong_key = {'control_secret': 'not the secret'}
    port_option = 'control_port'


@pytest.fixture
def rig(secondary_server: Start) -> SecondaryRig:
    return SecondaryRig(secondary_server())


class TestContract(RemoteContract, KeyedContract):
    pass


@pytest.mark.parametrize('keep', [True, False])
def test_restart_with_and_without_its_zones(secondary_server: Start, primary: Primary, keep: bool) -> None:
    primary.publish('example.com.', zone_text(5, 'www A 192.0.2.1'))
    server = secondary_server(keep=keep)
    with opened(server.server([primary.endpoint])) as backend:
        assert backend.create_domain(a_domain()).ok
        wait_until(lambda: server.serial('example.com.') == 5, 'the contents are served')
        primary.stop()
        server.kill()
        server.start()
        assert server.serial('example.com.') == (5 if keep else None)
        assert server.query('example.com.').rcode() == (dns.rcode.NOERROR if keep else dns.rcode.REFUSED)


def test_faults_from_the_command_line_and_live(secondary_server: Start, primary: Primary) -> None:
    primary.publish('example.com.', zone_text(1))
    server = secondary_server(faults=['servfail@example.com.'])
    with opened(server.server([primary.endpoint])) as backend:
        assert backend.create_domain(a_domain()).ok
    wait_until(lambda: [zone['serial'] for zone in server.control.ask('list_zones')] == [1], 'it has the zone')
    assert server.query('example.com.').rcode() == dns.rcode.SERVFAIL
    server.control.ask('clear_faults')
    assert server.serial('example.com.') == 1
    server.control.ask('set_fault', fault='drop*1')
    with pytest.raises(dns.exception.Timeout):
        server.query('example.com.', timeout=0.2)
    assert server.serial('example.com.') == 1


def test_serves_bind_as_its_secondary(secondary_server: Start, named: Callable[..., Named], primary: Primary) -> None:
    """The replies and signed transfers as another implementation sees them."""
    primary.publish('example.com.', zone_text(3, *(f'host{number} A 192.0.2.1' for number in range(2000))))
    middle = secondary_server(keys=[KEY])
    with opened(middle.server([primary.endpoint])) as backend:
        assert backend.create_domain(a_domain()).ok
    wait_until(lambda: middle.serial('example.com.') == 3, 'the middle one serves the zone')
    last = named(keys=[KEY])
    with opened(last.server([Endpoint(middle.host, middle.port)], tsig_key=KEY)) as backend:
        assert backend.create_domain(a_domain()).ok
    wait_until(lambda: last.serial('example.com.') == 3, 'BIND serves the zone')
    assert last.texts('host1999.example.com.', 'A') == ['192.0.2.1']


@pytest.mark.parametrize('arguments, said', [
    (['--listen', 'example.com:53'], 'is not ADDRESS:PORT'),
    (['--control', '127.1:8000'], 'is not ADDRESS:PORT'),
    (['--listen', '127.0.0.1:70000'], 'is not ADDRESS:PORT'),
    (['--listen', '127.0.0.1:80:53'], 'is not ADDRESS:PORT'),
    (['--listen', '2001:db8::1:53'], 'is not ADDRESS:PORT'),
])
def test_refuses_to_start(tmp_path: Any, arguments: list[str], said: str) -> None:
    (tmp_path / 'secret').write_text(SECRET)
    ended = warm.run('designate_pool.cmd.programs.nameserver', '--secret-file', str(tmp_path / 'secret'), *arguments)
    assert ended.returncode != 0
    assert said in ended.stderr
    assert 'Traceback' not in ended.stderr
