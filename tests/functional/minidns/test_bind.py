"""MiniDNS as a process of its own, and a real BIND as its secondary."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

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


@pytest.mark.parametrize(('concurrency', 'host', 'key'), [('threading', '127.0.0.1', KEY), ('eventlet', '::1', None)],
                         ids=['TSIG', 'IPv6'])
def test_bind_transfers_and_a_change_is_confirmed_without_waiting_for_a_timed_poll(
        request: pytest.FixtureRequest, sqlite: Storage, url: str, tmp_path: pathlib.Path,
        named: Callable[..., Named], concurrency: str, host: str, key: TsigKey | None) -> None:
    minidns = MiniDnsProcess(tmp_path, url, [], concurrency, host)
    request.addfinalizer(minidns.stop)
    with_key = f'key "{key.name}"' if key else ''
    bind = named(host=host, keys=[key] if key else [], statements=f'''
        zone "example.com" {{ type secondary; file "example.db"; masterfile-format text;
                              primaries {{ {host} port {minidns.port} {with_key}; }}; }};
        ''' + (f'server {host} {{ keys {{ "{key.name}"; }}; }};' if key else ''))
    minidns.servers.append({'id': 'e' * 32, 'driver': 'bind9', 'host': host, 'port': bind.port,
                            'tsig_key': key and [key.name, key.algorithm, key.secret]})
    minidns.start()
    domain_id = sqlite.read(lambda tx: tx.execute(domains.select()).one().id)

    def poll(serial: int, retry_interval: float) -> None:
        minidns.cast('notify_and_poll', pool_name='default', timeout=30, retry_interval=retry_interval, max_retries=1,
                     requests=[PollRequest(domain_id, 'example.com.', serial, 'e' * 32)])

    # BIND was there first and may have given up on its primary; the NOTIFY calls it back.
    poll(7, 60)
    wait_until(lambda: bind.serial('example.com') == 7, 'BIND serves the zone')
    wait_until(lambda: minidns.results(), 'MiniDNS knows')
    assert {result.status for result in minidns.results()} == {Outcome.SUCCESS}

    sqlite.run(lambda tx: tx.execute(domains.update().values(serial=8)) and None)
    poll(8, 3600)  # no timed poll confirms it
    wait_until(lambda: [each for each in minidns.results() if each.serial_number == 8], 'the change is confirmed')
    assert bind.serial('example.com') == 8
    transferred = dns.zone.Zone('example.com.', relativize=False)
    query, _ = dns.xfr.make_query(transferred)
    dns.query.inbound_xfr(bind.host, transferred, query, port=bind.port, timeout=10)
    assert transferred == zone_of(EXAMPLE.replace(' 7 3600', ' 8 3600'))
    assert minidns.stop() == 0 and 'Traceback' not in minidns.log, minidns.log
