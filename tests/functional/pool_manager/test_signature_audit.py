"""A zone that its master signs, on a server of each make: served as it is, and its signatures are watched."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import dns.dnssec
import dns.name
import dns.node
import dns.rdatatype
import dns.zone
import pytest

from testing.bind import Named
from testing.processes import wait_until
from testing.stack import MASTERS
from tests.fixtures.mixed import MAKES, Mixed
from tests.fixtures.signed_zones import new_key, signed_zone, twin_of, zone_text

NAME = 'signed.example.com.'
ZONE = ('@ 300 IN SOA ns1.example.net. host.example.net. 7 3600 600 86400 300\n@ 300 IN NS ns1.example.net.\n'
        'www 300 IN A 192.0.2.1\nsub 300 IN NS ns1.sub\nns1.sub 300 IN A 192.0.2.2\n*.wild 300 IN TXT "x"\n')
KEYS = [new_key(), new_key(256)]


class Pool(Mixed):
    """The four servers, and a BIND as master with the zone."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.parent = Named(folder / 'parent', statements='zone "example.com" { type primary; file "parent.zone"; };')
        self.parent.folder.mkdir(parents=True, exist_ok=True)
        self.delegate(KEYS[0][1], 7)
        super().__init__(folder, f'sqlite:///{folder}/pool.sqlite', others=[MASTERS], manager={
            'signature_audit_interval': '1', 'contents_audit_interval': '0',
            'parent_servers': f'127.0.0.1:{self.parent.port}'})
        self.zone = ''
        self.signed = signed_zone(NAME, ZONE, KEYS)
        self.master = Named(folder / 'master', statements=f'zone "{NAME}" {{ type primary; file "signed.zone"; }};')
        self.master.folder.mkdir(parents=True, exist_ok=True)
        (self.master.folder / 'signed.zone').write_text(zone_text(self.signed))

    def start(self) -> Pool:
        self.parent.start()
        self.master.start()
        super().start()
        self.zone = self.stack.create_secondary(NAME, f'127.0.0.1:{self.master.port}')['id']
        self.stack.wait_for(self.zone)
        return self

    def stop(self) -> None:
        super().stop()
        self.master.remove()
        self.parent.remove()

    def delegate(self, key: Any, serial: int) -> str:
        """Have the parent zone name *key*; its DS record."""
        ds = dns.dnssec.make_ds(NAME, key, 'SHA256').to_text()
        (self.parent.folder / 'parent.zone').write_text(
            f'@ 300 IN SOA ns1 host {serial} 3600 600 86400 300\n@ 300 IN NS ns1\nns1 300 IN A 127.0.0.1\n'
            f'signed 300 IN NS ns1.example.net.\nsigned 300 IN DS {ds}\n')
        return ds

    def findings(self) -> list[tuple[str, str]]:
        """What is found about the zone now: (make, what)."""
        found = self.stack.request('GET', f'/v2/zones/{self.zone}/explain', 200)['findings']
        assert {each['kind'] for each in found} <= {'SIGNATURES'}
        return sorted((each['server_name'].partition(':')[0], each['found']) for each in found)

    def put_at_powerdns(self, rtype: str, covers: str, zone: dns.zone.Zone) -> None:
        """Put the records of *zone* at its apex in the place of those that PowerDNS has, under the same serial."""
        rdataset: Any = zone.get_rdataset(NAME, rtype, covers or 'NONE')
        with contextlib.closing(sqlite3.connect(self.servers['pdns'].database, timeout=10)) as database, database:
            assert database.execute('DELETE FROM records WHERE name = ? AND type = ? AND content LIKE ?', (
                NAME.rstrip('.'), rtype, f'{covers if rtype == "RRSIG" else ""}%')).rowcount
            database.executemany(
                'INSERT INTO records (domain_id, name, type, content, ttl, auth) SELECT id, name, ?, ?, 300, 1 '
                'FROM domains WHERE name = ?', [(rtype, rdata.to_text(), NAME.rstrip('.')) for rdata in rdataset])


@pytest.fixture(scope='module')
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    with Pool(tmp_path_factory.mktemp('signed')) as running:
        yield running


def test_a_zone_that_its_master_signs_is_served_as_it_is(pool: Pool) -> None:
    for make in MAKES:
        answer = wait_until(lambda: (found := pool.servers[make].query(NAME, 'SOA', dnssec=True)).answer and found,
                            f'{make} serves it')
        for rtype in ('SOA', 'DNSKEY'):
            answer = pool.servers[make].query(NAME, rtype, dnssec=True)
            keys = {dns.name.from_text(NAME): pool.signed.find_rdataset(NAME, 'DNSKEY')}
            rrset = answer.get_rrset(answer.answer, dns.name.from_text(NAME), 1, dns.rdatatype.from_text(rtype))
            signatures = next(each for each in answer.answer if each.rdtype == dns.rdatatype.RRSIG)
            assert rrset is not None
            dns.dnssec.validate(rrset, signatures, keys)
        denial = pool.servers[make].query(f'absent.{NAME}', 'A', dnssec=True)
        assert {each.rdtype for each in denial.authority} >= {dns.rdatatype.NSEC, dns.rdatatype.RRSIG}
    for server in pool.stack.servers_state().values():
        pool.stack.command('server', 'resync', server['name'], '--contents')
    pool.stack.wait_for_round('SIGNATURES', zones=1, asked=4, unanswered=0, findings=0)
    assert pool.findings() == []
    refused = pool.stack.request('POST', f'/v2/zones/{pool.zone}/recordsets', 403, json={
        'name': f'new.{NAME}', 'type': 'A', 'records': ['192.0.2.9']})
    assert 'master' in refused['message']


def test_signatures_that_were_renewed_under_one_serial_are_found_and_told(pool: Pool) -> None:
    pool.put_at_powerdns('RRSIG', 'SOA', signed_zone(NAME, ZONE, KEYS, days=21))
    older = f'its signatures of serial 7 are older than those of {pool.servers["pdns"].driver}:127.0.0.1:'
    found = wait_until(lambda: len(told := pool.findings()) == 3 and told, 'three are behind', 30)
    assert [make for make, _ in found] == ['bind9', 'knot', 'nsd']
    assert all(what.startswith(older) and what.endswith('renewed without a new serial') for _, what in found)
    assert 'older than those of' in pool.stack.command('zone', 'explain', NAME)
    assert pool.stack.zone(pool.zone)['status'] == 'ACTIVE'
    pool.put_at_powerdns('RRSIG', 'SOA', pool.signed)
    wait_until(lambda: not pool.findings(), 'all is well again', 30)


def test_another_key_under_the_same_tag_is_found_and_named(pool: Pool) -> None:
    other = signed_zone(NAME, ZONE, KEYS)
    keys = other.get_rdataset(NAME, 'DNSKEY', create=True)
    keys.remove(KEYS[0][1])
    keys.add(twin_of(KEYS[0][1]))
    pool.put_at_powerdns('DNSKEY', '', other)
    named = f'under the tag {dns.dnssec.key_id(KEYS[0][1])} (ECDSAP256SHA256) it serves another key than bind9:'
    wait_until(lambda: any(make == 'pdns' and what.startswith(named) for make, what in pool.findings()),
               'the key is named', 30)
    assert {make for make, _ in pool.findings()} == {'pdns'}
    pool.put_at_powerdns('DNSKEY', '', pool.signed)
    wait_until(lambda: not pool.findings(), 'all is well again', 30)


def test_a_key_that_the_parent_does_not_know_is_found_on_every_server(pool: Pool) -> None:
    ds = pool.delegate(new_key()[1], 8)
    assert pool.parent.command('reload example.com').result == 0
    what = f'none of its keys is that of a DS record in the parent zone: {ds}'
    wait_until(lambda: pool.findings() == [(make, what) for make in sorted(MAKES)], 'it is found', 30)
    pool.delegate(KEYS[0][1], 9)
    assert pool.parent.command('reload example.com').result == 0
    wait_until(lambda: not pool.findings(), 'all is well again', 30)


def test_signatures_that_expire_are_found_in_time(pool: Pool) -> None:
    pool.put_at_powerdns('RRSIG', 'SOA', signed_zone(NAME, ZONE, KEYS, days=2))
    wait_until(lambda: any(make == 'pdns' and what.startswith('its signatures expire at 20')
                           for make, what in pool.findings()), 'it is found', 30)
