"""What MiniDNS serves, and to whom."""

from __future__ import annotations

import logging

import dns.flags
import dns.query
import dns.rcode
import dns.rdatatype
import dns.tsig
import dns.xfr
import pytest
import sqlalchemy as sa

from designate_pool.errors import InvalidField
from designate_pool.model import Action, Context, Domain, Endpoint, PollRequest, Status, Task, TsigKey, new_id, utcnow
from designate_pool.storage.sql.schema import domains, records
from testing.zones import EXAMPLE, big_zone, insert_zone
from tests.functional.minidns.conftest import (KEY, KEYED, PLAIN, LocalMiniDns, ask, keyring, serial_of, transfer,
                                               zone_of)


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


def test_soa_over_udp_and_tcp(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start().endpoints
    for over in (dns.query.udp, dns.query.tcp):
        answer = ask(endpoint, over=over)
        assert (answer.rcode(), serial_of(answer)) == (dns.rcode.NOERROR, 7) and answer.flags & dns.flags.AA


def test_a_wildcard_address_is_listened_on_and_answers_from_where_it_was_asked(minidns: LocalMiniDns) -> None:
    four, six = minidns.start(hosts=('0.0.0.0', '::')).endpoints
    asked = Endpoint('127.0.0.7', four.port)  # dnspython takes no answer from another address
    assert serial_of(ask(asked)) == 7
    assert serial_of(ask(Endpoint('::1', six.port))) == 7


def test_records_that_are_deleted_or_to_be_deleted_are_not_served(minidns: LocalMiniDns) -> None:
    def delete(tx: sa.Connection) -> None:
        for data, values in (('192.0.2.1', {'task': Task.DELETE, 'status': Status.PENDING}),
                             ('192.0.2.3', {'task': Task.NONE, 'status': Status.DELETED})):
            row = tx.execute(sa.select(records.c.id).where(records.c.data == data)).scalar_one()
            tx.execute(records.update().where(records.c.id == row).values(**values))

    minidns.storage.run(delete)
    (endpoint,) = minidns.start().endpoints
    expected = EXAMPLE.replace('www 60  IN A   192.0.2.1\n', 'www 60 IN A 192.0.2.2\n') \
        .replace('    60  IN A   192.0.2.2\n', '').replace('mail    IN A   192.0.2.3\n', '') \
        .replace('        IN AAAA', 'www IN AAAA')
    assert transfer(endpoint) == zone_of(expected)


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

def test_a_stranger_is_refused(minidns: LocalMiniDns) -> None:
    (endpoint,) = minidns.start(KEYED).endpoints
    assert ask(endpoint).rcode() == dns.rcode.REFUSED
    with pytest.raises(dns.xfr.TransferError, match='REFUSED'):
        transfer(endpoint)
    assert not minidns.pool_manager.results
