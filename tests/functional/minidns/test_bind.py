"""MiniDNS as a process of its own, and a real BIND as its secondary."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator

import dns.query
import dns.xfr
import dns.zone
import pytest

from designate_pool.model import Outcome, PollRequest, TsigKey
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains
from testing.bind import Named
from testing.minidns import MiniDnsProcess
from testing.processes import wait_until
from testing.zones import EXAMPLE
from tests.functional.minidns.conftest import KEY, zone_of


@pytest.fixture(params=['threading', 'eventlet'])
def bind_and_minidns(request: pytest.FixtureRequest, sqlite: Storage, url: str, tmp_path: pathlib.Path,
                     named: Callable[..., Named]) -> Iterator[Callable[..., tuple[Named, MiniDnsProcess]]]:
    """Starts a MiniDNS process and a BIND that has example.com. as its secondary."""
    started: list[MiniDnsProcess] = []

    def start(host: str = '127.0.0.1', key: TsigKey | None = None) -> tuple[Named, MiniDnsProcess]:
        minidns = MiniDnsProcess(tmp_path, url, [], request.param, host)
        with_key = f'key "{key.name}"' if key else ''
        bind = named(host=host, keys=[key] if key else [], statements=f'''
            zone "example.com" {{ type secondary; file "example.db"; masterfile-format text;
                                  primaries {{ {host} port {minidns.port} {with_key}; }}; }};
            ''' + (f'server {host} {{ keys {{ "{key.name}"; }}; }};' if key else ''))
        minidns.servers.append({'id': 'e' * 32, 'driver': 'bind9', 'host': host, 'port': bind.port,
                                'tsig_key': key and [key.name, key.algorithm, key.secret]})
        started.append(minidns.start())
        return bind, minidns

    yield start
    for minidns in started:
        assert minidns.stop() == 0, minidns.log


def poll(minidns: MiniDnsProcess, domain_id: str, serial: int, retry_interval: float = 60) -> None:
    minidns.cast('notify_and_poll', pool_name='default', timeout=30, retry_interval=retry_interval, max_retries=1,
                 requests=[PollRequest(domain_id, 'example.com.', serial, 'e' * 32)])


@pytest.mark.parametrize(('host', 'key'), [('127.0.0.1', None), ('127.0.0.1', KEY), ('::1', None)],
                         ids=['plain', 'TSIG', 'IPv6'])
def test_bind_transfers_and_a_change_is_confirmed_without_waiting_for_a_timed_poll(
        bind_and_minidns: Callable[..., tuple[Named, MiniDnsProcess]], sqlite: Storage, host: str,
        key: TsigKey | None) -> None:
    bind, minidns = bind_and_minidns(host, key)
    domain_id = sqlite.read(lambda tx: tx.execute(domains.select()).one().id)
    # BIND was there first and may have given up on its primary; the NOTIFY calls it back.
    poll(minidns, domain_id, 7)
    wait_until(lambda: bind.serial('example.com') == 7, 'BIND serves the zone')
    wait_until(lambda: minidns.results(), 'MiniDNS knows')
    assert {result.status for result in minidns.results()} == {Outcome.SUCCESS}

    sqlite.run(lambda tx: tx.execute(domains.update().values(serial=8)) and None)
    poll(minidns, domain_id, 8, retry_interval=3600)  # no timed poll confirms it
    wait_until(lambda: [each for each in minidns.results() if each.serial_number == 8], 'the change is confirmed')
    assert bind.serial('example.com') == 8
    transferred = dns.zone.Zone('example.com.', relativize=False)
    query, _ = dns.xfr.make_query(transferred)
    dns.query.inbound_xfr(bind.host, transferred, query, port=bind.port, timeout=10)
    assert transferred == zone_of(EXAMPLE.replace(' 7 3600', ' 8 3600'))
    assert 'Traceback' not in minidns.log
