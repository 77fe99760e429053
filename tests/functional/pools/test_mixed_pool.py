"""A BIND, an NSD, a Knot and a PowerDNS in one pool: all in one process, on SQLite, with green threads.

Each server has a TSIG key of its own, so that what is transferred, notified and polled has the right one.  The
threshold is 100 %: ACTIVE means that all four serve it.
"""

from __future__ import annotations

import functools
import time

import dns.xfr
import pytest

from testing.processes import patience, wait_until
from tests.fixtures.mixed import MAKES, Mixed, for_all


def test_create_change_and_delete(pool: Mixed) -> None:
    zone, recordset = pool.begin('plain.example.com.')
    pool.stack.wait_for(zone)
    pool.all_serve('plain.example.com.', '192.0.2.1')
    pool.stack.set_recordset(zone, recordset, '192.0.2.2')
    active = pool.stack.wait_for(zone)
    pool.all_serve('plain.example.com.', '192.0.2.2')
    for make in MAKES:
        assert pool.servers[make].serial('plain.example.com.') == active['serial']
        assert pool.listed(make, ['plain.example.com.']) == {'plain.example.com.': active['serial']}
        row = pool.row(zone, make)
        assert (row['status'], row['serial'], row['current'], row['last_error'], row['next_attempt_at']) == (
            'SUCCESS', active['serial'], True, None, None)
    pool.stack.delete_zone(zone)
    pool.stack.wait_for(zone, 'gone')
    pool.wait_until_gone(['plain.example.com.'])


def test_what_nsd_serves_is_seen_soon_also_of_the_second_of_two_zones_changed_at_once(pool: Mixed) -> None:
    """NSD loads what it has fetched once a second, so the second zone has to wait for that."""
    zones = [pool.create(f'twin{number}.example.com.') for number in range(2)]
    for zone, recordset in zones:
        pool.stack.set_recordset(zone, recordset, '192.0.2.2')
    for number in (1, 0):
        pool.wait_until_served(f'twin{number}.example.com.', '192.0.2.2', ['nsd'])
    began = time.monotonic()
    for zone, _ in zones:
        wait_until(functools.partial(lambda zone: pool.row(zone, 'nsd')['current'], zone), 'the pool sees it')
    assert time.monotonic() - began < patience(1)


def test_data_of_a_type_by_its_number_is_served_by_all(pool: Mixed) -> None:
    zone, _ = pool.begin('numbers.example.com.')
    pool.stack.create_recordset(zone, 'odd.numbers.example.com.', 'TYPE65300', '\\# 4 0A000001', '\\# 0')
    pool.stack.create_recordset(zone, 'long.numbers.example.com.', 'TXT', f'"{"x" * 300}"')
    pool.stack.wait_for(zone)
    for make in MAKES:
        for name, rtype, expected in (('odd', 'TYPE65300', {'\\# 4 0a000001', '\\# 0 '}),
                                      ('long', 'TXT', {f'"{"x" * 255}" "{"x" * 45}"'})):
            answer = pool.servers[make].query(f'{name}.numbers.example.com.', rtype)
            assert {rdata.to_text() for rrset in answer.answer for rdata in rrset} == expected, make


def test_each_server_transfers_with_its_own_key_and_nothing_else_is_let_in(pool: Mixed) -> None:
    zone, _ = pool.create('keyed.example.com.')
    serial = pool.stack.zone(zone)['serial']
    for key in pool.keys.values():
        assert pool.transfer('keyed.example.com.', key) == serial
    with pytest.raises(dns.xfr.TransferError, match='REFUSED'):
        pool.transfer('keyed.example.com.', None)
    for make in MAKES:
        assert not pool.row(zone, make)['last_error']


def test_many_domains_are_imported_and_deleted(pool: Mixed) -> None:
    names = [f'import{number}.example.org.' for number in range(50)]
    zones = pool.import_all(names)
    pool.wait_for_all(180)
    expected = {name: serial for name, serial in pool.expected().items() if name in set(names)}
    assert len(expected) == len(names)
    for make in MAKES:
        assert pool.serials(make, names) == expected
        assert pool.listed(make, names) == expected
        assert [pool.servers[make].addresses(name) for name in (names[0], names[-1])] == [['192.0.2.1']] * 2
    for_all(zones, pool.stack.delete_zone)
    path = '/v2/zones?name=import*.example.org.&limit=1'
    wait_until(lambda: not pool.stack.request('GET', path, 200)['zones'], 'all are gone', 180)
    pool.wait_until_gone(names[::25])
    assert {make: pool.listed(make, names) for make in MAKES} == {make: {} for make in MAKES}
