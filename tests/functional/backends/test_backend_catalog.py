"""The catalog driver, and BIND, Knot and PowerDNS that read the pool's catalog zone, configured as etc/ shows it."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import dns.name
import dns.rcode
import pytest
from prometheus_client import REGISTRY

from designate_pool.minidns.zones import catalog_zone
from designate_pool.model import Outcome
from designate_pool.testing import ODD_NAMES, a_domain, opened
from testing.processes import wait_until
from tests.fixtures.catalog import ZONE, CatalogPool

Start = Callable[..., tuple[CatalogPool, Any]]
#: (server, whether it has the key of the example).  PowerDNS 4.7 signs no transfer of a member.
SERVERS = [('bind', True), ('bind', False), ('knot', True), ('knot', False), ('pdns', False)]
#: PowerDNS 4.7 transfers these, and answers SERVFAIL for them.
NOT_ON_PDNS = ('63 octets of escapes', 'quotation mark', 'end of a statement', 'newline', 'null octet', 'high octet')
#: Too long for a www below them, as the domains of these tests have.
NO_ROOM = ('255 octets',)
each_server = pytest.mark.parametrize(('kind', 'signed'), SERVERS,
                                      ids=[f'{kind} {"signed" if signed else "plain"}' for kind, signed in SERVERS])
each_make = pytest.mark.parametrize(('kind', 'signed'), [('bind', True), ('knot', True), ('pdns', False)],
                                    ids=['bind', 'knot', 'pdns'])


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Start]:
    """Starts a pool with one server: ``start('knot', signed=True)``."""
    started: list[CatalogPool] = []

    def start(kind: str, signed: bool, *changes: tuple[str, str], more: str = '') -> tuple[CatalogPool, Any]:
        pool = CatalogPool(tmp_path, signed)
        started.append(pool)
        return pool, getattr(pool, kind)(*changes, more=more)

    yield start
    for pool in started:
        pool.close()


def delete(pool: CatalogPool, server: Any, *names: str) -> list[str | None]:
    """What the driver says of these."""
    with opened(pool.server(server)) as backend:
        return [result.error for result in backend.delete_domains([a_domain(name) for name in names])]


def test_knot_is_asked_over_tcp_for_the_catalog_which_it_refuses_over_udp(start: Start) -> None:
    pool, _ = start('knot', True)
    pool.add('a.example.')
    serial = pool.tell()
    wait_until(lambda: any(each.domain_id == 'catalog' and each.serial_number == serial for each in pool.results),
               'it is known to have the catalog')


@each_server
def test_members_come_and_go(start: Start, kind: str, signed: bool) -> None:
    pool, server = start(kind, signed)
    with opened(pool.server(server)) as backend:
        assert backend.check() == []
    pool.add('a.example.', 'b.example.')
    wait_until(lambda: server.serial('a.example.') == server.serial('b.example.') == 7, 'both are served')
    assert server.texts('www.a.example.', 'A') == ['192.0.2.1']
    wait_until(lambda: confirmed(pool) == 2, 'both are confirmed unasked')
    for name in ('a.example.', 'b.example.'):
        pool.remove(name)
        assert delete(pool, server, name) == [None]
        assert server.serial(name) is None
    pool.add('a.example.', address='192.0.2.2', generation=3)
    wait_until(lambda: server.serial('a.example.') == 7, 'it is served again')
    assert server.texts('www.a.example.', 'A') == ['192.0.2.2']


@each_make
def test_a_domain_deleted_and_made_again_in_one_change_has_its_new_contents(start: Start, kind: str,
                                                                            signed: bool) -> None:
    pool, server = start(kind, signed)
    pool.add('a.example.')
    wait_until(lambda: server.serial('a.example.') == 7, 'it is served')
    for address in ('192.0.2.2', '192.0.2.3'):
        pool.make_anew('a.example.', address=address)  # at the same serial as before
        wait_until(lambda: server.texts('www.a.example.', 'A') == [address], 'the new contents are served')


@each_make
def test_a_new_epoch_has_every_zone_made_anew(start: Start, kind: str, signed: bool) -> None:
    pool, server = start(kind, signed)
    names = [f'{number}.example.' for number in range(20)]
    pool.add(*names)
    wait_until(lambda: all(server.serial(name) == 7 for name in names), 'all are served')
    wait_until(lambda: transfers(pool, server, 'axfr') >= 20, 'all were transferred')
    before = transfers(pool, server, 'axfr')
    pool.reset(server)
    wait_until(lambda: transfers(pool, server, 'axfr') >= before + 20, 'all were transferred again')
    wait_until(lambda: all(server.serial(name) == 7 for name in names), 'all are served')


def confirmed(pool: CatalogPool) -> int:
    return len({each.domain_id for each in list(pool.results) if each.status is Outcome.SUCCESS} - {'catalog'})


@pytest.mark.slow
@each_make
def test_a_thousand_members(start: Start, monkeypatch: pytest.MonkeyPatch, kind: str, signed: bool) -> None:
    monkeypatch.setattr(catalog_zone, 'BLOCK_MEMBERS', 50)
    pool, server = start(kind, signed)
    names = [f'{number}.example.' for number in range(1000)]
    pool.add(*names)
    with opened(pool.server(server)) as backend:
        wait_until(lambda: confirmed(pool) > 900, 'most are confirmed unasked')
        wait_until(lambda: backend.list_zones(names).serials == dict.fromkeys(names, 7), 'all are served')
        pool.remove(*names[:500])
        gone = [a_domain(name) for name in names[:500]]
        wait_until(lambda: all(result.ok for result in backend.delete_domains(gone)), 'half of them are gone')
        wait_until(lambda: backend.list_zones(names).serials == dict.fromkeys(names[500:], 7), 'the others are served')
        # From here on, reading all of the catalog would fail.
        monkeypatch.setattr(catalog_zone, '_blocks', functools.partial(_some_blocks, catalog_zone._blocks))
        pool.add('new.example.')
        pool.remove(names[500])
        wait_until(lambda: server.serial('new.example.') == 7, 'the new one is served')
        wait_until(lambda: all(result.ok for result in backend.delete_domains([a_domain(names[500])])), 'one is gone')
        wait_until(lambda: backend.list_zones(names).serials == dict.fromkeys(names[501:], 7), 'the others are served')
    if kind == 'pdns':
        assert not transfers(pool, server, 'ixfr'), 'it takes catalogs whole'
    else:
        wait_until(lambda: transfers(pool, server, 'ixfr'), 'what came and went is all that it was sent')


def transfers(pool: CatalogPool, server: Any, kind: str) -> int:
    """How many transfers of that kind the server has had."""
    return int(REGISTRY.get_sample_value('designate_pool_transfers_total', {
        'server': pool.server(server).label, 'kind': kind, 'outcome': 'sent'}) or 0)


def _some_blocks(blocks: Any, head: Any, reading: Any, *ends: str, cuts: Any = ()) -> Any:
    assert ends, 'the whole catalog is read'
    return blocks(head, reading, *ends)


@each_make
def test_odd_names(start: Start, kind: str, signed: bool) -> None:
    pool, server = start(kind, signed)
    names = [dns.name.from_text(name).to_text() for what, name in ODD_NAMES.items()
             if what not in NO_ROOM and (kind != 'pdns' or what not in NOT_ON_PDNS)]
    pool.add(*names)
    wait_until(lambda: all(server.serial(name) == 7 for name in names), 'all are served')
    pool.remove(*names)
    assert delete(pool, server, *names) == [None] * len(names)


def test_a_catalog_zone_is_not_shown_to_everybody(start: Start) -> None:
    pool, server = start('knot', True)
    pool.add('a.example.')
    wait_until(lambda: server.serial('a.example.') == 7, 'it is served')
    assert server.query(ZONE).rcode() == dns.rcode.REFUSED
