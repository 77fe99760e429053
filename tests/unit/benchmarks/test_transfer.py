"""The benchmark of transfers measures what it says."""

from __future__ import annotations

import pathlib
import socket
import threading

import dns.message
import dns.rdatatype
import dns.zone
import pytest

from benchmarks.transfer import query, take
from benchmarks.transfer_data import BESIDE, NAME, change, fill, raise_serial, write_zone_file
from designate_pool.minidns.zones import packed_zone
from designate_pool.model import Endpoint
from designate_pool.storage.sql.database import Storage
from designate_pool.storage.zones import versions

COUNT = 300


@pytest.fixture(scope='module')
def database(tmp_path_factory: pytest.TempPathFactory) -> tuple[Storage, str]:
    url = f'sqlite:///{tmp_path_factory.mktemp("transfer")}/pool.sqlite'
    return Storage(url), fill(url, COUNT)


def test_the_database_and_the_zone_file_have_the_same_zone(database: tuple[Storage, str],
                                                           tmp_path: pathlib.Path) -> None:
    storage, domain_id = database
    write_zone_file(tmp_path / 'zone', COUNT)
    zone = dns.zone.from_file(str(tmp_path / 'zone'), origin=NAME, relativize=False)
    assert sorted((owner, rtype, wire) for _, page in storage.stream(versions.permitted_pages, domain_id)
                  for owner, rtype, _, wire in page) == sorted(
        (owner.to_text(), dns.rdatatype.to_text(each.rdtype), rdata.to_wire())
        for owner, each in zone.iterate_rdatasets() if each.rdtype != dns.rdatatype.SOA for rdata in each)
    assert sum(len(each) for _, each in zone.iterate_rdatasets()) + 1 == COUNT + BESIDE


def test_a_change_is_in_the_zone_and_in_the_journal(database: tuple[Storage, str]) -> None:
    storage, domain_id = database
    raise_serial(storage, domain_id)
    have = change(storage, domain_id, 20)
    found = storage.read(versions.difference, domain_id, have, 1000)
    assert found is not None and found.steps is not None
    (step,) = found.steps
    assert (found.head.serial, len(step.gone), len(step.added)) == (have + 1, 20, 20)
    held = {(owner, wire) for _, page in storage.stream(versions.permitted_pages, domain_id)
            for owner, _, _, wire in page}
    assert {(owner, wire) for owner, _, _, wire in step.added} <= held
    assert not {(owner, wire) for owner, _, _, wire in step.gone} & held


def serve(answer: bytes, pieces: int) -> Endpoint:
    """Where one client gets *answer*, in pieces of so many octets, whatever it asks."""
    listener = socket.create_server(('127.0.0.1', 0))

    def run() -> None:
        with listener, listener.accept()[0] as sock:
            sock.recv(1000)
            for at in range(0, len(answer), pieces):
                sock.sendall(answer[at:at + pieces])

    threading.Thread(target=run, daemon=True).start()
    return Endpoint(*listener.getsockname()[:2])


def framed(count: int, rcode: int = 0) -> bytes:
    message = packed_zone.assemble(1, 0x8000 | rcode, b'', count, bytes(40))
    return len(message).to_bytes(2, 'big') + message


@pytest.mark.parametrize('pieces', [1, 7, 1000])
def test_the_client_counts_what_comes_however_it_is_cut(pieces: int) -> None:
    taken = take(serve(framed(300) + framed(2) + framed(1), pieces), query(), 303)
    assert (taken.records, taken.messages, taken.octets) == (303, 3, 3 * 54)


@pytest.mark.parametrize(('answer', 'words'), [(framed(0, rcode=5), 'rcode 5'), (framed(3), 'closed the connection'),
                                               (framed(400), 'sent 400 records')])
def test_what_is_no_whole_transfer_is_no_measurement(answer: bytes, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        take(serve(answer, 100), query(), 303)
