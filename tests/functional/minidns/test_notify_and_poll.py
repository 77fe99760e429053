"""NOTIFYs, polls and their results, from the RPC method to the pool manager."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import pathlib
from collections.abc import Callable
from typing import Any

import dns.message
import dns.query
import dns.rcode
import dns.xfr
import dns.zone
import pytest

from designate_pool.errors import InvalidField
from designate_pool.minidns.service import MiniDns
from designate_pool.model import (Context, Domain, KeyScope, Outcome, PollRequest, Server, StoredTsigKey, TsigKey,
                                  new_id, utcnow)
from designate_pool.storage.sql.database import Storage, Tx
from designate_pool.storage.sql.schema import domains
from designate_pool.storage.zones import tsigkeys
from testing import asking
from testing.bind import Named
from testing.minidns import MiniDnsProcess
from testing.processes import wait_until
from testing.rows import default_pool_id
from testing.zones import EXAMPLE, insert_zone
from tests.fixtures.answering import Answers, Scripted, soa_answer
from tests.functional.minidns.conftest import KEY, LocalMiniDns, keyring, transfer, zone_of


def scripted_server(minidns: LocalMiniDns, serial: int, **options: Any) -> tuple[Scripted, Server, MiniDns]:
    """A name server on the loopback that serves *serial*, and a MiniDNS that knows it."""
    name_server = Scripted(lambda query, over_tcp: [soa_answer(query, serial)])
    server = Server(id=new_id(), driver='fake', host='127.0.0.1', port=name_server.port)
    return name_server, server, minidns.start(server, **options)


DOMAIN = Domain('d1', 'example.com.', 'p', 'default', 'hostmaster@example.com', 300, 7)


def test_polls_are_reported_in_batches(minidns: LocalMiniDns) -> None:
    name_server, server, service = scripted_server(minidns, 7)
    with contextlib.closing(name_server):
        requests = [PollRequest(f'd{number}', f'd{number}.example.com.', 7, server.id) for number in range(200)]
        service.notify_and_poll(Context(), 'default', requests, 10, 1, 3)
        wait_until(lambda: len(minidns.pool_manager.results) == 200, 'all are reported')
        assert {pool for pool, _ in minidns.pool_manager.batches} == {'default'}
        assert {result.status for result in minidns.pool_manager.results} == {Outcome.SUCCESS}
        assert len(minidns.pool_manager.batches) < 200
        wait_until(lambda: len(name_server.notifies()) == 200, 'all were notified')


@pytest.mark.parametrize('destination', ['127.0.0.1:{port}', '[127.0.0.1]:{port}'])
def test_one_poll_is_reported_as_it_was_asked_for(minidns: LocalMiniDns, destination: str) -> None:
    name_server, _, service = scripted_server(minidns, 9)
    destination = destination.format(port=name_server.port)
    with contextlib.closing(name_server):
        context = Context('r1')
        service.poll_for_serial_number(context, DOMAIN, destination, 10, 1, 3)
        wait_until(lambda: minidns.pool_manager.told, 'it is reported')
        assert minidns.pool_manager.told == [(context, DOMAIN, destination, Outcome.SUCCESS, 9)]
        assert not name_server.notifies()


def test_one_poll_of_a_server_that_is_behind(minidns: LocalMiniDns) -> None:
    name_server, _, service = scripted_server(minidns, 6)
    with contextlib.closing(name_server):
        service.poll_for_serial_number(Context(), DOMAIN, f'127.0.0.1:{name_server.port}', 5, 0.01, 2)
        wait_until(lambda: minidns.pool_manager.told, 'it is reported')
        assert minidns.pool_manager.told[0][3:] == (Outcome.ERROR, 6)
        assert len(name_server.queries) == 3


def test_one_notify_is_not_reported(minidns: LocalMiniDns) -> None:
    name_server, _, service = scripted_server(minidns, 6)
    with contextlib.closing(name_server):
        service.notify_zone_changed(Context(), DOMAIN, f'127.0.0.1:{name_server.port}', 5, 0.01, 2)
        wait_until(name_server.notifies, 'the NOTIFY')
    service.stop()
    assert not minidns.pool_manager.told and not name_server.polls()


def test_an_unknown_server_is_reported_at_once(minidns: LocalMiniDns) -> None:
    service = minidns.start()
    service.notify_and_poll(Context(), 'default', [PollRequest('d1', 'example.com.', 7, 'f' * 32)], 10, 1, 3)
    (result,) = wait_until(lambda: minidns.pool_manager.results, 'it is reported')
    assert result.status is Outcome.ERROR and 'f' * 32 in str(result.error)


def test_a_destination_that_is_none_is_named(minidns: LocalMiniDns) -> None:
    service = minidns.start()
    for destination in ('', 'ns1', '192.0.2.1:', '192.0.2.1:0', '192.0.2.1:x', '[::1', '[::1]53', ':53',
                        '192.0.2.1:70000', '192.0.2.1:\u0665'):
        with pytest.raises(InvalidField, match='destination'):
            service.poll_for_serial_number(Context(), DOMAIN, destination, 5, 0.01, 2)


def test_a_broker_that_is_away_is_logged_once_and_what_comes_later_is_reported(
        minidns: LocalMiniDns, caplog: pytest.LogCaptureFixture) -> None:
    name_server, server, service = scripted_server(minidns, 7)
    manager = minidns.pool_manager
    with contextlib.closing(name_server):
        manager.down = True
        for number in range(3):
            tried = manager.tried
            service.notify_and_poll(Context(), 'default', [PollRequest('d1', 'example.com.', 7, server.id)], 10, 1, 3)
            wait_until(lambda: manager.tried > tried, 'it is tried')
        manager.down = False
        service.notify_and_poll(Context(), 'default', [PollRequest('d2', 'example.com.', 7, server.id)], 10, 1, 3)
        wait_until(lambda: [result.domain_id for result in manager.results] == ['d2'], 'the next is reported')
    assert len([each for each in caplog.records if each.levelno >= logging.ERROR]) == 1


def test_a_transfer_has_its_receiver_polled(minidns: LocalMiniDns) -> None:
    name_server, server, service = scripted_server(minidns, 7)
    with contextlib.closing(name_server):
        transfer(service.endpoints[0])
        (result,) = wait_until(lambda: minidns.pool_manager.results, 'it is confirmed unasked')
        assert (result.server_id, result.serial_number, result.status) == (server.id, 7, Outcome.SUCCESS)
        assert minidns.pool_manager.batches[0][0] == 'default'


def test_what_a_server_has_of_a_domain_that_moves_is_for_the_pool_of_the_server(minidns: LocalMiniDns) -> None:
    def move(tx: Tx) -> str:
        key = insert_zone(tx, name='moved.example.', pool_name='silver')
        tx.execute(domains.update().where(domains.c.id == key).values(former_pool_id=default_pool_id(tx)))
        return key

    moved = minidns.storage.run(move)
    name_server, server, service = scripted_server(minidns, 7)
    with contextlib.closing(name_server):
        transfer(service.endpoints[0], 'moved.example.')
        ((pool, (result,)),) = wait_until(lambda: minidns.pool_manager.batches, 'it is confirmed unasked')
        assert (pool, result.server_id, result.domain_id, result.status) == (
            'default', server.id, moved, Outcome.SUCCESS)


GIVEN = 'given-out.example.com.'


def acknowledging(query: dns.message.Message, over_tcp: bool) -> Answers:
    return [soa_answer(query, 7)]


def notify(service: MiniDns, *where: str) -> None:
    service.notify_and_poll(Context(), 'default', [
        PollRequest('d1', 'example.com.', 7, each, poll=False) for each in where], 5, 0.05, 3)


def give_key(minidns: LocalMiniDns) -> None:
    """As an administrator gives one out through the API."""
    key = StoredTsigKey(new_id(), GIVEN, KEY.algorithm, KeyScope.POOL, new_id(), 1, utcnow(), utcnow())
    minidns.storage.run(tsigkeys.TSIGKEYS.write, key, {'secret': KEY.secret})


def test_each_is_notified_and_nobody_polled(minidns: LocalMiniDns) -> None:
    service = minidns.start()
    with contextlib.ExitStack() as stack:
        there = [stack.enter_context(contextlib.closing(Scripted(acknowledging, host)))
                 for host in ('127.0.0.1', '::1')]
        notify(service, f'127.0.0.1:{there[0].port}', f'[::1]:{there[1].port}')
        for each in there:
            wait_until(each.notifies, 'it is notified')
            assert each.notifies()[0].question[0].name.to_text() == 'example.com.' and not each.polls()
    assert not minidns.pool_manager.results


@pytest.mark.parametrize('key', [KEY.name, GIVEN])
def test_one_with_a_key_is_notified_with_it(minidns: LocalMiniDns, key: str) -> None:
    give_key(minidns)
    service = minidns.start()
    wait_until(lambda: service._tsig_grants.grants, 'the keys are read')
    ring = keyring(dataclasses.replace(KEY, name=key))
    with contextlib.closing(Scripted(acknowledging, keyring=ring)) as there:
        notify(service, f'127.0.0.1:{there.port} key {key.upper()}')
        wait_until(there.notifies, 'it is notified')
        assert there.notifies()[0].had_tsig


def test_without_its_key_nothing_is_sent(minidns: LocalMiniDns, caplog: pytest.LogCaptureFixture) -> None:
    service = minidns.start()
    with contextlib.closing(Scripted(acknowledging)) as there:
        for _ in range(2):
            notify(service, f'127.0.0.1:{there.port} key nobody.example.com.', f'127.0.0.1:{there.port}')
        wait_until(there.notifies, 'the other is')
        assert not there.notifies()[0].had_tsig
    assert [each.message for each in caplog.records if each.levelno >= logging.WARNING] == [
        f'127.0.0.1:{there.port} is not notified: there is no TSIG key nobody.example.com.']


def test_what_is_no_such_place(minidns: LocalMiniDns) -> None:
    service = minidns.start()
    for where in ('ns1.example.com', '192.0.2.1 key', '192.0.2.1 with k.', '192.0.2.1:0', ''):
        with pytest.raises(InvalidField):
            notify(service, where)


@pytest.mark.parametrize(('concurrency', 'host', 'key'), [('threading', '127.0.0.1', KEY), ('eventlet', '::1', None)],
                         ids=['TSIG', 'IPv6'])
def test_bind_transfers_and_a_change_is_confirmed_without_waiting_for_a_timed_poll(
        request: pytest.FixtureRequest, sqlite: Storage, url: str, tmp_path: pathlib.Path,
        named: Callable[..., Named], concurrency: str, host: str, key: TsigKey | None) -> None:
    minidns = MiniDnsProcess(tmp_path, url, [], concurrency, host)
    request.addfinalizer(minidns.stop)
    with_key = f'key "{key.name}"' if key else ''
    bind = named(host=host, keys=[key] if key else [], statements=f'''
        zone "example.com" {{ type secondary; file "example.db"; masterfile-format text;
                              primaries {{ {host} port {minidns.port} {with_key}; }}; }};
        ''' + (f'server {host} {{ keys {{ "{key.name}"; }}; }};' if key else ''))
    minidns.servers.append({'id': 'e' * 32, 'driver': 'bind9', 'host': host, 'port': bind.port,
                            'tsig_key': key and [key.name, key.algorithm, key.secret]})
    minidns.start()
    domain_id = sqlite.read(lambda tx: tx.execute(domains.select()).one().id)

    def poll(serial: int, retry_interval: float) -> None:
        minidns.cast('notify_and_poll', pool_name='default', timeout=30, retry_interval=retry_interval, max_retries=1,
                     requests=[PollRequest(domain_id, 'example.com.', serial, 'e' * 32)])

    # BIND was there first and may have given up on its primary; the NOTIFY calls it back.
    poll(7, 60)
    wait_until(lambda: bind.serial('example.com') == 7, 'BIND serves the zone')
    wait_until(lambda: minidns.results(), 'MiniDNS knows')
    assert {result.status for result in minidns.results()} == {Outcome.SUCCESS}

    sqlite.run(lambda tx: tx.execute(domains.update().values(serial=8)) and None)
    poll(8, 3600)  # no timed poll confirms it
    wait_until(lambda: [each for each in minidns.results() if each.serial_number == 8], 'the change is confirmed')
    assert bind.serial('example.com') == 8
    assert asking.transfer(bind, 'example.com.') == zone_of(EXAMPLE.replace(' 7 3600', ' 8 3600'))
    assert minidns.stop() == 0 and 'Traceback' not in minidns.log, minidns.log
