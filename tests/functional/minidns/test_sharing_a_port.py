"""Several MiniDNS processes that share a port."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable

import pytest

from designate_pool.model import Endpoint, Outcome, PollRequest, Server, new_id
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains
from testing.bind import Named
from testing.minidns import MiniDnsProcess
from testing.processes import wait_until
from testing.zones import EXAMPLE, insert_zone
from tests.functional.minidns.conftest import PLAIN, LocalMiniDns

#: So many that both take part, unless somebody throws the same side of a coin forty times.
NAMES = [f'z{number}.example.' for number in range(40)]


@pytest.fixture
def many_zones(sqlite: Storage) -> Storage:
    for name in NAMES:
        sqlite.run(lambda tx, name=name: insert_zone(tx, EXAMPLE, name=name))
    return sqlite


def test_the_first_primary_of_most_servers_comes_first(many_zones: Storage, minidns: LocalMiniDns) -> None:
    service, elsewhere = minidns.start(PLAIN), Endpoint('127.0.0.1', 5354)
    here = service.endpoints[0]

    def server(*primaries: Endpoint) -> Server:
        return dataclasses.replace(PLAIN, id=new_id(), primaries=primaries)

    for servers, is_first in (([server(here, elsewhere)], True), ([server(elsewhere, here)], False), ([], False),
                              ([server(here, elsewhere), server(elsewhere, here)], False),
                              ([server(here), server(here, elsewhere), server(elsewhere), server()], True)):
        assert service.is_first_primary_of(servers) is is_first, servers


def call(minidns: MiniDnsProcess, serial: int) -> None:
    """Have *minidns* tell the server of the zones, and poll it for them."""
    minidns.cast('notify_and_poll', pool_name='default', timeout=30, retry_interval=1, max_retries=30,
                 requests=[PollRequest(name, name, serial, 'e' * 32) for name in NAMES])


def served(bind: Named, serial: int) -> bool:
    return all(bind.serial(name) == serial for name in NAMES)


def test_two_share_the_work_and_one_goes_on_when_the_other_ends(
        many_zones: Storage, url: str, tmp_path: pathlib.Path, named: Callable[..., Named]) -> None:
    first = MiniDnsProcess(tmp_path / 'first', url, [], 'threading', reuse_port=True)
    second = MiniDnsProcess(tmp_path / 'second', url, [], 'eventlet', reuse_port=True)
    second.port = first.port
    bind = named(statements='\n'.join(
        f'zone "{name}" {{ type secondary; file "{name}db"; primaries {{ 127.0.0.1 port {first.port}; }}; }};'
        for name in NAMES))
    for each in (first, second):
        each.servers.append({'id': 'e' * 32, 'driver': 'bind9', 'host': bind.host, 'port': bind.port})
        each.start()
    try:
        call(first, 7)
        wait_until(lambda: served(bind, 7), 'all zones are served')
        # Who served a transfer looks how it went and tells it, whoever was asked to poll.
        told = wait_until(lambda: second.results(), 'the second has served some of them')
        assert {(each.status, each.serial_number) for each in told} == {(Outcome.SUCCESS, 7)}
        wait_until(lambda: len({each.domain_id for each in first.results()}) >= len(NAMES), 'the first knows of all')

        assert first.stop() == 0, first.log
        many_zones.run(lambda tx: tx.execute(domains.update().values(serial=8)) and None)
        call(second, 8)
        wait_until(lambda: served(bind, 8), 'the other one serves on')
        assert second.stop() == 0, second.log
    finally:
        for each in (first, second):
            each.stop()
    assert 'Traceback' not in first.log + second.log


def test_without_the_option_a_second_one_does_not_start(many_zones: Storage, url: str, tmp_path: pathlib.Path) -> None:
    first = MiniDnsProcess(tmp_path / 'first', url, [], 'threading')
    second = MiniDnsProcess(tmp_path / 'second', url, [], 'threading', reuse_port=True)
    second.port = first.port
    first.start()
    try:
        with pytest.raises(AssertionError):
            second.start()
    finally:
        first.stop()
        second.stop()
