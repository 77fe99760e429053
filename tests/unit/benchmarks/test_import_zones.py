"""The zone files that are imported."""

from __future__ import annotations

import argparse
import collections
import pathlib

import dns.rdata
import dns.rdatatype
import dns.zone
import pytest

from benchmarks.import_files import _record, parsed_by_dnspython, parsed_by_us, write_large, write_small
from benchmarks.import_zones import LARGE, _arguments
from benchmarks.servers_zones import SERIAL
from designate_pool.central import zonefile_parser


@pytest.mark.parametrize('records', [2, 3, 1000])
def test_the_large_file_has_so_many_records(tmp_path: pathlib.Path, records: int) -> None:
    file = tmp_path / 'large.zone'
    write_large(file, LARGE, records)
    zone = dns.zone.from_file(str(file), relativize=False)
    assert len(list(zone.iterate_rdatas())) == records
    soa = zone.get_soa()
    assert soa.serial == SERIAL
    domain, contents = zonefile_parser.parse(file.read_text())
    # But for SOA and NS, which are made from the pool.
    assert domain.name == LARGE and sum(len(each.rdatas) for each in contents) == records - 2
    _, streamed = zonefile_parser.stream(lambda: file.read_text().split('\n'))
    assert sum(len(each.rdatas) for each in streamed) == records - 2, 'its names are in order'


def test_the_large_file_has_several_types_and_no_name_is_too_large(tmp_path: pathlib.Path) -> None:
    file = tmp_path / 'large.zone'
    write_large(file, LARGE, 1002)
    zone = dns.zone.from_file(str(file), relativize=False)
    types = collections.Counter(dns.rdatatype.to_text(rdataset.rdtype) for _, rdataset in zone.iterate_rdatasets())
    assert types == {'SOA': 1, 'NS': 1, 'A': 200, 'AAAA': 200, 'TXT': 200, 'MX': 200, 'CNAME': 200}


@pytest.mark.parametrize('host', [0, 0xffff, 0x10000, 199_999])
def test_every_address_is_one(host: int) -> None:
    (a, aaaa) = (_record(5 * host + kind).split()[-2:] for kind in range(2))
    assert dns.rdata.from_text('IN', *a).to_text() and dns.rdata.from_text('IN', *aaaa).to_text()


def test_a_small_file_is_a_zone() -> None:
    domain, contents = zonefile_parser.parse(write_small('small-7.example.com.').decode())
    assert domain.name == 'small-7.example.com.' and [each.name for each in contents] == ['www.small-7.example.com.']


def test_reading_a_file_tells_time_and_memory(tmp_path: pathlib.Path) -> None:
    file = tmp_path / 'large.zone'
    write_large(file, LARGE, 100)
    for read in (parsed_by_us, parsed_by_dnspython):
        seconds, memory = read(file)
        assert seconds > 0 and memory > 1


def test_a_quick_run_is_small_and_a_smaller_one_stays_so() -> None:
    def sizes(options: argparse.Namespace) -> tuple[int, int]:
        return options.records, options.domains

    assert sizes(_arguments([])) == (1_000_000, 100_000)
    assert sizes(_arguments(['--quick'])) == (20_000, 500)
    assert sizes(_arguments(['--quick', '--records', '5', '--domains', '7'])) == (5, 7)
