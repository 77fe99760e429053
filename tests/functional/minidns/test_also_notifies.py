"""NOTIFYs to those who are no servers of the pool."""

from __future__ import annotations

import contextlib
import dataclasses
import logging

import dns.message
import dns.rcode
import pytest

from designate_pool.errors import InvalidField
from designate_pool.minidns.service import MiniDns
from designate_pool.model import Context, KeyScope, PollRequest, StoredTsigKey, new_id, utcnow
from designate_pool.storage.zones import tsigkeys
from testing.processes import wait_until
from tests.fixtures.answering import Answers, Scripted, soa_answer
from tests.functional.minidns.conftest import KEY, LocalMiniDns, keyring

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
