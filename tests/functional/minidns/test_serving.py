"""What MiniDNS serves, and to whom; alone and beside others, until it stops."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.tsig
import dns.xfr
import pytest
import sqlalchemy as sa

from designate_pool.errors import InvalidField
from designate_pool.minidns.service import MiniDns
from designate_pool.minidns.zones import loader as minidns_zones
from designate_pool.model import Action, Context, Domain, Endpoint, PollRequest, Server, TsigKey, new_id, utcnow
from designate_pool.storage.serving import zone_snapshot
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import domains, records
from testing.processes import wait_until
from testing.zones import EXAMPLE, big_zone, insert_zone
from tests.fixtures.answering import Scripted, soa_answer
from tests.functional.minidns.conftest import KEY, PLAIN, LocalMiniDns, ask, keyring, serial_of, transfer, zone_of


@pytest.mark.parametrize('host', ['127.0.0.1', '::1'])
@pytest.mark.parametrize('key', [None, KEY], ids=['unsigned', 'signed'])
def test_a_transfer_holds_the_whole_zone_and_nothing_else(
        minidns: LocalMiniDns, host: str, key: TsigKey | None) -> None:
    (endpoint,) = minidns.start(hosts=(host,)).endpoints
    assert transfer(endpoint, key=key) == zone_of(EXAMPLE)


@pytest.mark.parametrize(('key', 'budget'), [(KEY, 1 << 20), (None, 65536)], ids=['signed', 'not cached'])
def test_a_large_zone_takes_several_messages_and_a_second_transfer_is_the_same(
        minidns: LocalMiniDns, key: TsigKey | None, budget: int) -> None:
    text = big_zone(2600) + ''.join(f'text{number} IN TXT "{"x" * 200}"\n' for number in range(150))
    minidns.storage.run(lambda tx: insert_zone(tx, text, name='example.org.'))
    (endpoint,) = minidns.start(packed_zones_bytes=budget).endpoints
    for _ in ('first', 'second'):
        assert transfer(endpoint, 'example.org.', key) == zone_of(text, 'example.org.')


def test_a_wildcard_address_is_listened_on_and_answers_from_where_it_was_asked(minidns: LocalMiniDns) -> None:
    four, six = minidns.start(hosts=('0.0.0.0', '::')).endpoints
    asked = Endpoint('127.0.0.7', four.port)  # dnspython takes no answer from another address
    assert serial_of(ask(asked)) == 7
    assert serial_of(ask(Endpoint('::1', six.port))) == 7


@pytest.mark.parametrize('key', [None, KEY], ids=['unsigned', 'signed'])
def test_a_zone_of_another_pool_is_refused_as_one_that_does_not_exist(
        minidns: LocalMiniDns, key: TsigKey | None) -> None:
    minidns.storage.run(lambda tx: insert_zone(tx, pool_name='other', name='example.org.'))
    (endpoint,) = minidns.start().endpoints

    for name in ('example.org.', 'nowhere.example.'):
        for over in (dns.query.udp, dns.query.tcp):
            assert ask(endpoint, name, key=key, over=over).rcode() == dns.rcode.REFUSED
        with pytest.raises(dns.xfr.TransferError, match='NOTAUTH'):
            transfer(endpoint, name, key)
        previous = zone_of(EXAMPLE.replace(' 7 3600', ' 6 3600'), name)
        query, _ = dns.xfr.make_query(previous, keyring=None if key is None else keyring(key))
        with pytest.raises(dns.xfr.TransferError, match='NOTAUTH'):
            dns.query.inbound_xfr(endpoint.host, previous, query, port=endpoint.port, timeout=10, lifetime=20)
    assert ask(endpoint, key=key).rcode() == dns.rcode.NOERROR


def test_notifies_and_polls_of_another_pool_are_refused(minidns: LocalMiniDns) -> None:
    service = minidns.start()
    tries, polled = (10.0, 1.0, 3), [PollRequest('d1', 'example.org.', 7, PLAIN.id)]
    domain = Domain('d1', 'example.org.', 'p', 'other', 'hostmaster@example.org', 300, 7)
    for work in (lambda: service.notify_and_poll(Context(), 'other', polled, *tries),
                 lambda: service.notify_zone_changed(Context(), domain, '127.0.0.1:53', *tries),
                 lambda: service.poll_for_serial_number(Context(), domain, '127.0.0.1:53', *tries),
                 lambda: service.audit_serials(Context(), 'other', utcnow(), [PLAIN.id], [('d1', 'example.org.', 7)])):
        with pytest.raises(InvalidField, match='^pool_name: this MiniDNS is of the pool default, not of other.$'):
            work()


@pytest.mark.parametrize('values', [{'action': Action.DELETE}, {'deleted': new_id(), 'deleted_at': utcnow()}],
                         ids=['being deleted', 'deleted'])
def test_a_domain_that_goes_is_not_served(minidns: LocalMiniDns, values: dict[str, object]) -> None:
    (endpoint,) = minidns.start().endpoints
    assert ask(endpoint).rcode() == dns.rcode.NOERROR
    minidns.storage.run(lambda tx: tx.execute(domains.update().values(**values)) and None)
    assert ask(endpoint).rcode() == dns.rcode.REFUSED
    with pytest.raises(dns.xfr.TransferError, match='NOTAUTH'):
        transfer(endpoint)


def test_a_zone_that_cannot_be_put_into_messages_is_an_error_and_harms_no_other(minidns: LocalMiniDns) -> None:
    bad = minidns.storage.run(lambda tx: insert_zone(tx, EXAMPLE, name='example.net.'))
    minidns.storage.run(lambda tx: tx.execute(
        records.update().where(records.c.domain_id == bad).values(wire=bytes(65535))) and None)
    (endpoint,) = minidns.start().endpoints
    with pytest.raises(dns.xfr.TransferError, match='SERVFAIL'):
        transfer(endpoint, 'example.net.')
    assert transfer(endpoint) == zone_of(EXAMPLE)


def test_a_database_that_is_away_is_servfail_until_it_is_back(
        minidns: LocalMiniDns, caplog: pytest.LogCaptureFixture) -> None:
    (endpoint,) = minidns.start().endpoints
    minidns.storage.run(lambda tx: tx.execute(sa.text('ALTER TABLE pools RENAME TO away')) and None)
    for _ in range(3):
        assert ask(endpoint).rcode() == dns.rcode.SERVFAIL
    assert len([each for each in caplog.records if each.levelno >= logging.ERROR]) == 1
    minidns.storage.run(lambda tx: tx.execute(sa.text('ALTER TABLE away RENAME TO pools')) and None)
    assert ask(endpoint).rcode() == dns.rcode.NOERROR


# To whom

NAMES = [f'z{number}.example.' for number in range(20)]


class Reads:
    """What *read* reads together; the first of it waits until it is let go."""

    def __init__(self, read: Callable[[Tx, Collection[Any], int], Any]) -> None:
        self.batches: list[list[Any]] = []
        self.go = threading.Event()
        self._read = read

    def read(self, tx: Tx, keys: Collection[Any], most: int, **which: bool) -> Any:
        self.batches.append(sorted(keys))
        assert self.go.wait(20)
        return self._read(tx, keys, most, **which)


def held_up(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> Iterator[Reads]:
    """What the function of that name in *module* reads together."""
    found = Reads(getattr(module, name))
    monkeypatch.setattr(module, name, found.read)
    yield found
    found.go.set()


@pytest.fixture
def database(sqlite: Storage) -> Storage:
    """Central's is the one that MiniDNS reads."""
    return sqlite


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    yield from held_up(monkeypatch, zone_snapshot, 'small_zones')


def add(storage: Storage, text: str, *names: str) -> list[str]:
    return [storage.run(lambda tx, name=name: insert_zone(tx, text, name=name)) for name in names]


def ask_for_all(service: MiniDns, reads: Reads, names: Collection[str]) -> dict[str, Any]:
    """The zones, of which all but one are asked for while that one is read."""
    first, *others = names
    with ThreadPoolExecutor(len(names)) as clients:
        asked = {first: clients.submit(transfer, service.endpoints[0], first)}
        wait_until(lambda: reads.batches, 'one is read')
        asked |= {name: clients.submit(transfer, service.endpoints[0], name) for name in others}
        waiting = service._listener._query_handler._zone_loader._small_zones[False]
        wait_until(lambda: len(waiting._next.keys) == len(others), 'the others wait')
        reads.go.set()
        return {name: each.result(20) for name, each in asked.items()}


def test_zones_that_are_asked_for_meanwhile_are_one_reading(minidns: LocalMiniDns, reads: Reads) -> None:
    ids = add(minidns.storage, EXAMPLE, *NAMES)
    found = ask_for_all(minidns.start(), reads, NAMES)
    assert reads.batches == [ids[:1], sorted(ids[1:])]
    assert found == {name: zone_of(EXAMPLE, name) for name in NAMES}


def test_a_zone_that_changes_after_its_head_was_read_is_transferred_as_it_is_then(minidns: LocalMiniDns,
                                                                                  reads: Reads) -> None:
    (changing,) = add(minidns.storage, EXAMPLE, 'example.org.')
    (endpoint,) = minidns.start().endpoints

    def change(tx: Tx) -> None:
        tx.execute(domains.update().where(domains.c.id == changing).values(serial=domains.c.serial + 1))
        tx.execute(records.delete().where(records.c.domain_id == changing, records.c.data == '192.0.2.1'))

    before = zone_of(EXAMPLE, 'example.org.')
    with ThreadPoolExecutor(1) as client:
        asked = client.submit(transfer, endpoint, 'example.org.')
        wait_until(lambda: reads.batches, 'its records are read next')
        minidns.storage.run(change)
        reads.go.set()
        found = asked.result(20)
    assert found.get_soa().serial == before.get_soa().serial + 1
    assert found == transfer(endpoint, 'example.org.') != before
    assert len(list(found.iterate_rdatas())) < len(list(before.iterate_rdatas()))


@pytest.mark.parametrize(('sizes', 'batches', 'alone'), [
    ({'a': 3, 'b': 3, 'c': 3, 'd': 3, 'e': 3}, ['abcd', 'e'], ''),
    ({'a': 6, 'b': 6, 'c': 6, 'd': 6}, ['abcd', 'ab', 'cd'], ''),
    ({'a': 3, 'b': 50, 'c': 3}, ['abc', 'a', 'bc', 'b', 'c'], 'b'),
], ids=['as many keys as there may be', 'too many records', 'one that is too large by itself'])
def test_keys_are_read_in_chunks_that_are_small_enough(
        sqlite: Storage, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], batches: list[str],
        alone: str) -> None:
    read: list[str] = []

    def small(tx: Tx, keys: Collection[str], most: int) -> dict[str, int | None] | None:
        read.append(''.join(keys))
        return None if sum(sizes[key] for key in keys) > most else {key: sizes[key] for key in keys}

    monkeypatch.setattr(minidns_zones, 'BATCH_ZONES', 4)
    monkeypatch.setattr(minidns_zones, 'BATCH_RECORDS', 15)
    assert minidns_zones._read_in_chunks(sqlite, small, sizes) == {
        key: None if key in alone else size for key, size in sizes.items()}
    assert read == batches


PAGE = [(new_id(), f'{each}.example.', 7) for each in 'abc']


def test_pool_managers_repeat_the_polls_that_have_not_ended(minidns: LocalMiniDns) -> None:
    server = Server(new_id(), 'fake', '127.0.0.1', 1)
    service = minidns.start(server)
    service.announce()
    wait_until(lambda: minidns.pool_manager.repeated == ['default'], 'they repeat what another has left')
    request = PollRequest(new_id(), 'a.example.', 7, server.id, delay=60.0, seen=5)
    service.notify_and_poll(Context(), 'default', [request], 5, 60, 9)
    service.stop()
    assert minidns.pool_manager.repeated == ['default', 'default']


def test_without_a_broker_it_ends_all_the_same(minidns: LocalMiniDns) -> None:
    server = Server(new_id(), 'fake', '127.0.0.1', 1)
    service = minidns.start(server)
    service.announce()
    wait_until(lambda: minidns.pool_manager.repeated, 'it has started')
    service.notify_and_poll(Context(), 'default', [PollRequest(new_id(), 'a.example.', 7, server.id, delay=60.0)],
                            5, 60, 9)
    minidns.pool_manager.down = True
    service.stop()
    assert minidns.pool_manager.tried == 2


def test_pages_of_an_audit_are_told_as_far_as_they_are(minidns: LocalMiniDns) -> None:
    """Or the pool manager would wait for their answers before it begins another round."""
    def answer(query: dns.message.Message, over_tcp: bool) -> list[dns.message.Message]:
        return [soa_answer(query, 6)] if str(query.question[0].name).lower() == 'a.example.' else []

    with contextlib.closing(Scripted(answer)) as name_server:
        server = Server(new_id(), 'fake', '127.0.0.1', name_server.port)
        first = minidns.start(server)
        first.audit_serials(Context(), 'default', utcnow(), [server.id], PAGE)
        wait_until(lambda: len(name_server.queries) >= 3, 'it is asked')
        first.stop()
        [(_, _, _, counts, findings)] = minidns.pool_manager.pages
        assert counts == [(server.id, 1, 0)]
        assert [(each.domain_id, each.serial_number) for each in findings] == [(PAGE[0][0], 6)]
