from __future__ import annotations

import argparse
import pathlib

import dns.rdatatype
import dns.zone
import pytest

from benchmarks.servers import _arguments
from benchmarks.servers_makes import MAKES
from benchmarks.servers_zones import SERIAL, TEXT, domain, identifier, insert, make_database
from designate_pool.storage.operations import server_statuses
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql.database import Storage

NAMES = ['new-00000.example.com.', 'new-00001.example.com.']


def test_all_makes_are_measured_unless_some_are_named() -> None:
    assert tuple(_arguments([]).makes) == tuple(MAKES)
    assert _arguments(['--makes', 'knot, nsd']).makes == ('knot', 'nsd')


def test_a_make_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _arguments(['--makes', 'knot,other'])
    assert 'other is none of bind9, nsd' in capsys.readouterr().err


def test_a_quick_run_is_small_and_a_smaller_one_stays_so() -> None:
    def sizes(options: argparse.Namespace) -> tuple[int, int, int, int]:
        return options.count, options.loaded, options.fill, options.rounds

    assert sizes(_arguments([])) == (1000, 10000, 10000, 2)
    assert sizes(_arguments(['--quick'])) == (100, 500, 200, 1)
    assert sizes(_arguments(['--quick', '--count', '5', '--loaded', '0', '--fill', '7'])) == (5, 0, 7, 1)


def test_the_database_and_the_zone_file_have_the_same_zone(tmp_path: pathlib.Path) -> None:
    url = f'sqlite:///{tmp_path}/pool.sqlite'
    make_database(url, NAMES)
    storage = Storage(url)
    for name in NAMES:
        ((head, contents),) = storage.stream(zone_snapshot.pages, identifier(name))
        zone = dns.zone.from_text(TEXT, origin=name, relativize=False)
        soa = zone.get_rdataset(name, 'SOA')
        assert soa is not None and (soa[0].serial, soa.ttl) == (head.serial, head.ttl)
        held = {(owner, rtype): [wire] for owner, rtype, _, wire in contents}
        assert held == {(owner.to_text(), dns.rdatatype.to_text(each.rdtype)): [rdata.to_wire() for rdata in each]
                        for owner, each in zone.iterate_rdatasets() if each.rdtype != dns.rdatatype.SOA}
    storage.close()


def test_a_server_that_has_the_domains_already_is_at_rest_with_them(tmp_path: pathlib.Path) -> None:
    url = f'sqlite:///{tmp_path}/pool.sqlite'
    make_database(url, NAMES[:1])
    storage = Storage(url)
    insert(storage, NAMES[1:], 'a' * 32)
    rows = storage.read(server_statuses.for_domains, [identifier(name) for name in NAMES])
    assert rows[identifier(NAMES[0])] == []
    assert [(row.server_id, row.action, row.status, row.serial_number, row.next_attempt_at)
            for row in rows[identifier(NAMES[1])]] == [
        ('a' * 32, 'CREATE', 'SUCCESS', SERIAL, None), ('a' * 32, 'UPDATE', 'SUCCESS', SERIAL, None)]
    storage.close()


def test_a_driver_is_given_the_domain_of_the_database() -> None:
    given = domain(NAMES[0])
    assert (given.id, given.name, given.serial) == (identifier(NAMES[0]), NAMES[0], SERIAL)
