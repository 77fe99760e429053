"""Zones that are too large to be kept: they are read while they are sent."""

from __future__ import annotations

import contextlib
import logging
import pathlib
import socket
import tracemalloc
from collections.abc import Callable
from typing import Any

import dns.message
import dns.query
import dns.rcode
import dns.xfr
import dns.zone
import pytest
import sqlalchemy as sa

from designate_pool.minidns.server.tcp import TcpLimits
from designate_pool.minidns.service import MiniDns
from designate_pool.minidns.zones import packed_zone
from designate_pool.minidns.zones.packed_zone import StreamedZone
from designate_pool.model import PollRequest, TsigKey
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.sql.schema import domains, records
from testing.bind import Named
from testing.minidns import MiniDnsProcess
from testing.processes import wait_until
from testing.zones import EXAMPLE, big_zone, insert_big_zone, insert_zone, set_serial
from tests.functional.minidns.conftest import KEY, LocalMiniDns, ask, serial_of, transfer, zone_of
from tests.functional.minidns.test_connections import dial, framed

pytestmark = pytest.mark.all_databases

#: A little less than 3,000 records take.
BUDGET = 65536
COUNT = 3000


@pytest.fixture
def large(minidns: LocalMiniDns) -> str:
    """The id of example.org., which does not fit."""
    return minidns.storage.run(lambda tx: insert_zone(tx, big_zone(COUNT), name='example.org.'))


def start(minidns: LocalMiniDns, **options: Any) -> MiniDns:
    return minidns.start(packed_zones_bytes=BUDGET, **options)


def reading(storage: Storage) -> int:
    """How many connections to the database are in use."""
    return int(storage.engine.pool.checkedout())  # type: ignore[attr-defined]


@pytest.mark.parametrize('key', [None, KEY], ids=['unsigned', 'signed'])
def test_a_zone_larger_than_the_budget_is_transferred_right_each_time(minidns: LocalMiniDns, large: str,
                                                                      key: TsigKey | None) -> None:
    service = start(minidns)
    for _ in ('first', 'second'):
        assert transfer(service.endpoints[0], 'example.org.', key) == zone_of(big_zone(COUNT), 'example.org.')
    assert service._listener._query_handler._zone_loader._cache.get(large, 7) is None
    wait_until(lambda: not reading(minidns.storage), 'no connection is held')


def test_no_more_of_a_large_zone_is_read_than_is_sent(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """On each kind of database."""
    key = storage.run(insert_big_zone, 3 * zone_snapshot._PAGE)
    pages = storage.stream(zone_snapshot.pages, key)
    seen = 0
    for _, page in pages:
        seen += len(page)
        assert len(page) <= zone_snapshot._PAGE
    assert seen == 3 * zone_snapshot._PAGE + 1 and not reading(storage)
    pages = storage.stream(zone_snapshot.pages, key)
    next(pages)
    assert reading(storage) == (2 if storage.engine.dialect.name == 'mysql' else 1)  # halves by two connections
    pages.close()
    assert reading(storage) == 0
    assert storage.read(zone_snapshot.head, key)


def test_a_zone_that_changes_while_it_is_read_is_sent_as_it_was(storage: Storage) -> None:
    """On each kind of database."""
    key = storage.run(insert_big_zone, 2 * zone_snapshot._PAGE)
    pages = storage.stream(zone_snapshot.pages, key)
    found = [next(pages)]

    def change(tx: sa.Connection) -> None:
        set_serial(tx, key, 8)
        tx.execute(records.update().where(records.c.domain_id == key).values(wire=b'\0\0\0\0'))

    storage.run(change)
    found += pages
    assert {head.serial for head, _ in found} == {7}
    assert b'\0\0\0\0' not in {wire for _, page in found for _, _, _, wire in page}
    assert sum(len(page) for _, page in found) == 2 * zone_snapshot._PAGE + 1


def test_memory_does_not_follow_the_zone(minidns: LocalMiniDns) -> None:
    for name, count in (('small.example.', 3), ('large.example.', 12)):
        minidns.storage.run(insert_big_zone, count * zone_snapshot._PAGE, name)
    loader = start(minidns)._listener._query_handler._zone_loader
    peaks = []
    for name, count in (('small.example.', 3), ('small.example.', 3), ('large.example.', 12)):
        zone = loader.load_zone(loader.read_heads([name])[name])
        assert isinstance(zone, StreamedZone)
        tracemalloc.start()
        sizes = [(count, len(octets)) for count, octets in zone.bodies]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        zone.close()
        assert max(size for _, size in sizes) <= packed_zone.ROOM
        assert sum(count for count, _ in sizes) == count * zone_snapshot._PAGE + 3
    assert peaks[2] < 1.5 * peaks[1], peaks


def test_bind_takes_a_large_zone_and_the_next_one(sqlite: Storage, url: str, tmp_path: pathlib.Path,
                                                  named: Callable[..., Named]) -> None:
    domain_id = sqlite.run(lambda tx: insert_zone(tx, big_zone(COUNT), name='example.org.'))
    minidns = MiniDnsProcess(tmp_path, url, [], 'eventlet', packed_zones_bytes=BUDGET)
    bind = named(keys=[KEY], statements=f'''
        zone "example.org" {{ type secondary; file "large.db"; masterfile-format text;
                              primaries {{ 127.0.0.1 port {minidns.port} key "{KEY.name}"; }}; }};
        server 127.0.0.1 {{ keys {{ "{KEY.name}"; }}; }};''')
    minidns.servers.append({'id': 'e' * 32, 'driver': 'bind9', 'host': bind.host, 'port': bind.port,
                            'tsig_key': [KEY.name, KEY.algorithm, KEY.secret]})
    minidns.start()
    try:
        for serial in (7, 8):
            sqlite.run(lambda tx: tx.execute(domains.update().values(serial=serial)) and None)
            minidns.cast('notify_and_poll', pool_name='default', timeout=30, retry_interval=60, max_retries=1,
                         requests=[PollRequest(domain_id, 'example.org.', serial, 'e' * 32)])
            wait_until(lambda serial=serial: bind.serial('example.org') == serial, 'BIND serves the zone')
            served = dns.zone.Zone('example.org.', relativize=False)
            query, _ = dns.xfr.make_query(served)
            dns.query.inbound_xfr(bind.host, served, query, port=bind.port, timeout=10)
            assert served == zone_of(big_zone(COUNT, serial), 'example.org.')
    finally:
        assert minidns.stop() == 0, minidns.log
    assert 'Traceback' not in minidns.log


def test_reading_that_breaks_off_ends_the_connection_without_the_final_soa(
        minidns: LocalMiniDns, large: str, caplog: pytest.LogCaptureFixture) -> None:
    last = sa.select(sa.func.max(sa.literal_column('rowid'))).select_from(records).scalar_subquery()
    minidns.storage.run(lambda tx: tx.execute(
        records.update().where(sa.literal_column('rowid') == last).values(wire=bytes(65535))) and None)
    (endpoint,) = start(minidns).endpoints
    for _ in ('first', 'second'):
        with pytest.raises(EOFError):
            transfer(endpoint, 'example.org.')
    assert [each.levelno for each in caplog.records if 'broke off' in each.message] == [logging.ERROR] * 2
    assert transfer(endpoint) == zone_of(EXAMPLE)
    wait_until(lambda: not reading(minidns.storage), 'no connection is held')


def test_slow_readers_take_neither_all_connections_nor_the_turn_for_good(
        minidns: LocalMiniDns, large: str, url: str) -> None:
    minidns.storage = Storage(url, pool_size=2)
    service = start(minidns, tcp_limits=TcpLimits(send=1.0))
    (endpoint,) = service.endpoints
    turns = service._listener._query_handler._zone_loader._zone_source._stream_slots
    with contextlib.ExitStack() as stack:
        for _ in range(6):  # of these the first has the turn
            slow = stack.enter_context(dial(endpoint))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.sendall(framed(*[dns.message.make_query('example.org', 'AXFR')] * 100))
        wait_until(lambda: not turns._value and reading(minidns.storage) == 1, 'one is read')
        assert serial_of(ask(endpoint)) == 7
        assert transfer(endpoint) == zone_of(EXAMPLE)
        assert reading(minidns.storage) <= 1
        assert transfer(endpoint, 'example.org.') == zone_of(big_zone(COUNT), 'example.org.')
    wait_until(lambda: turns._value == 1 and not reading(minidns.storage), 'nothing is held')


def test_many_at_once_are_all_served(minidns: LocalMiniDns, large: str, url: str) -> None:
    minidns.storage = Storage(url, pool_size=4)
    service = start(minidns)
    (endpoint,) = service.endpoints
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(dial(endpoint)) for _ in range(12)]
        for sock in socks:
            sock.sendall(framed(dns.message.make_query('example.org', 'AXFR')))
        for sock in socks:
            assert answers(sock) == COUNT + 3


def answers(sock: socket.socket) -> int:
    """How many records the messages of an AXFR say that they have, until there are as many as there have to be."""
    count = 0
    with sock.makefile('rb') as stream:
        while count < COUNT + 3:
            message = stream.read(int.from_bytes(stream.read(2), 'big'))
            assert message[3] & 15 == dns.rcode.NOERROR
            count += int.from_bytes(message[6:8], 'big')
    return count
