"""The zone files that are imported."""

from __future__ import annotations

import pathlib

import dns.rdata
import dns.rdatatype
import dns.zone
import pytest

from benchmarks.import_zones import LARGE, write_large
from benchmarks.tiny_zones import SERIAL
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
