"""Signed zones that are transferred from a real BIND, and verified whole."""

from __future__ import annotations

import pathlib
import time

import dns.rdata
import pytest

from designate_pool.deadline import Deadline
from designate_pool.model import Server
from designate_pool.pool_manager.periodic import signature_audit
from testing.bind import Named
from testing.processes import free_port
from tests.fixtures.signed_zones import new_key, signed_zone, zone_text

NAME = 'signed.example.com.'
ZONE = ('@ 300 IN SOA ns1.example.net. host.example.net. 7 3600 600 86400 300\n@ 300 IN NS ns1.example.net.\n'
        'www 300 IN A 192.0.2.1\nWWW 300 IN MX 10 Mail.Example.NET.\n')


@pytest.mark.parametrize(('changed', 'defect'), [('', ''), ('192.0.2.1', 'www.signed.example.com.')])
def test_a_zone_is_transferred_and_verified(tmp_path: pathlib.Path, changed: str, defect: str) -> None:
    zone = signed_zone(NAME, ZONE, [new_key(), new_key(256)])
    if changed:
        rdataset = zone.find_rdataset('www', 'A')
        rdataset.clear()
        rdataset.add(dns.rdata.from_text('IN', 'A', '192.0.2.66'))
    master = Named(tmp_path, statements=f'zone "{NAME}" {{ type primary; file "signed.zone"; }};')
    (tmp_path / 'signed.zone').write_text(zone_text(zone))
    with master:
        server = Server('0' * 32, 'bind9', '127.0.0.1', master.port)
        found = signature_audit.defects(server, NAME, int(time.time()), Deadline(5))
        assert found is not None and bool(found) is bool(defect) and defect in ' '.join(found)
        assert signature_audit.defects(server, 'absent.example.com.', 0, Deadline(5)) is None
        two = {'1': 'absent.example.com.', '2': NAME}
        assert signature_audit.verify_each(server, two, int(time.time()), 5) == {'1': None, '2': found}
        assert signature_audit.verify_each(server, two, int(time.time()), 0) == {'1': None, '2': None}
    silent = Server('0' * 32, 'bind9', '127.0.0.1', free_port('127.0.0.1'))
    assert signature_audit.defects(silent, NAME, 0, Deadline(5)) is None
