"""A real PowerDNS as a target of plans: interrupted, changed by others, refusing, and busy."""

from __future__ import annotations

import concurrent.futures
import contextlib
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from designate_pool import powerdns
from designate_pool.deadline import Deadline
from designate_pool.errors import BackendError, BackendRefused, PoolError
from designate_pool.planner.plan.plan import ApplyResult
from designate_pool.planner.targets.pdns import PdnsProvider
from designate_pool.powerdns import PdnsAnswer
from testing.pdns import PowerDns
from testing.processes import free_port
from tests.fixtures.plans import bring, planned
from tests.functional.planner.test_target_pdns import a_zone, ask, provider_of, put

Start = Callable[..., PowerDns]


@pytest.fixture
def server(powerdns: Start) -> PowerDns:
    return powerdns()


@pytest.fixture
def provider(server: PowerDns) -> PdnsProvider:
    return provider_of(server)


def test_a_zone_is_made_with_the_serial_before_its_own(server: PowerDns, provider: PdnsProvider) -> None:
    """Interrupted after that, the empty zone is not taken for the full one; again, and it is there."""
    desired = a_zone('www A 192.0.2.1\n', 1)
    provider.create_zone(desired)
    assert server.serial('example.com.') == 0
    provider.create_zone(desired)
    plan = planned(provider, desired)
    assert plan.exists
    assert [change.kind for change in plan.changes] == ['Update', 'Create']
    bring(provider, desired)
    assert server.serial('example.com.') == 1


@contextlib.contextmanager
def locked(server: PowerDns) -> Iterator[None]:
    """Its database, by somebody else: whatever it wants to write has to wait."""
    with contextlib.closing(sqlite3.connect(server.database, timeout=10, isolation_level=None)) as database:
        database.execute('BEGIN IMMEDIATE')
        yield
        database.execute('ROLLBACK')


def test_killed_during_the_request_and_again(server: PowerDns, provider: PdnsProvider,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is half done."""
    bring(provider, a_zone('www A 192.0.2.1\nold A 192.0.2.1\n', 1))
    desired = a_zone('www A 192.0.2.2\nnew A 192.0.2.1\n', 2)
    plan = planned(provider, desired)
    sent = threading.Event()
    real = powerdns.send

    def telling(connected: socket.socket, request: bytes, deadline: Deadline) -> None:
        real(connected, request, deadline)
        if request.startswith(b'PATCH '):
            sent.set()

    monkeypatch.setattr(powerdns, 'send', telling)
    with concurrent.futures.ThreadPoolExecutor(1) as pool, locked(server):
        applying = pool.submit(provider.apply, plan)
        assert sent.wait(10)
        server.kill()
        with pytest.raises(OSError):
            applying.result(10)
    server.start()
    assert server.serial('example.com.') == 1
    assert [server.texts(f'{word}.example.com.', 'A') for word in ('www', 'old', 'new')] == [
        ['192.0.2.1'], ['192.0.2.1'], []]
    bring(provider, desired)


def test_killed_after_the_request_before_the_answer_and_again(server: PowerDns, provider: PdnsProvider,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """It was done all the same: the plan is applied again without harm, and the next one is empty."""
    bring(provider, a_zone('www A 192.0.2.1\nold A 192.0.2.1\n', 1))
    desired = a_zone('www A 192.0.2.2\nnew A 192.0.2.1\n', 2)
    plan = planned(provider, desired)
    real = provider._patch

    def lost(*given: Any) -> PdnsAnswer:
        real(*given)
        server.kill()
        raise ConnectionResetError(104, 'Connection reset by peer')

    monkeypatch.setattr(provider, '_patch', lost)
    with pytest.raises(ConnectionResetError):
        provider.apply(plan)
    monkeypatch.undo()
    server.start()
    assert server.serial('example.com.') == 2
    assert provider.apply(plan).ok
    assert provider.plan(desired) is None


def test_somebody_else_changes_the_same_rrset_between_plan_and_apply(server: PowerDns, provider: PdnsProvider) -> None:
    """That change fails, and is seen by the next plan."""
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    desired = a_zone('www A 192.0.2.2\nnew A 192.0.2.1\n', 2)
    plan = provider.plan(desired)
    put(server, 'www.example.com.', 'A', '192.0.2.3')
    assert plan is not None
    result = provider.apply(plan)
    assert result == ApplyResult(1, 1, 1, (
        'www.example.com. A: it was changed by somebody else after the plan was made',))
    assert server.texts('www.example.com.', 'A') == ['192.0.2.3']
    assert server.serial('example.com.') == 1
    bring(provider, desired)


def test_the_zone_is_deleted_between_plan_and_apply(server: PowerDns, provider: PdnsProvider) -> None:
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    desired = a_zone('www A 192.0.2.2\n', 2)
    plan = provider.plan(desired)
    ask(server, 'DELETE', '/zones/example.com.')
    assert plan is not None
    with pytest.raises(BackendError, match='does not have the zone example.com. any more'):
        provider.apply(plan)
    bring(provider, desired)


def test_somebody_else_makes_the_zone_between_plan_and_apply(server: PowerDns, provider: PdnsProvider) -> None:
    desired = a_zone('www A 192.0.2.2\n', 2)
    plan = provider.plan(desired)
    ask(server, 'POST', '/zones', {'name': 'example.com.', 'kind': 'Native', 'nameservers': ['ns9.example.net.']})
    assert plan is not None and not plan.exists
    result = provider.apply(plan)
    assert result.errors == ('example.com. NS: it was changed by somebody else after the plan was made',)
    assert provider.plan(desired) is not None


@pytest.mark.parametrize(('options', 'why'), [
    ({'api_key': 'wrong'}, 'refuses the api_key'),
    ({'server_id': 'elsewhere'}, "no API for a server 'elsewhere'")])
def test_what_no_retry_can_mend(server: PowerDns, options: dict[str, str], why: str) -> None:
    desired = a_zone()
    plan = planned(provider_of(server), desired)
    provider = provider_of(server, **options)
    for act in (lambda: provider.plan(desired), lambda: provider.create_zone(desired), provider.ping,
                lambda: provider.apply(plan), lambda: provider.delete_zone('example.com.'),
                lambda: provider.zones([]), provider.settings):
        with pytest.raises(BackendRefused, match=why):
            act()
    assert server.zones() == {}


def test_the_api_is_off(powerdns: Start) -> None:
    server = powerdns(settings={'api': 'no'})
    with pytest.raises(PoolError, match='no API for a server'):
        provider_of(server).plan(a_zone())


def test_nobody_listens() -> None:
    provider = PdnsProvider('ns1', 'key', host='127.0.0.1', port=free_port())
    for act in (provider.ping, lambda: provider.plan(a_zone()), lambda: provider.zones([])):
        with pytest.raises(ConnectionRefusedError):
            act()


def test_trouble_inside_the_server_leaves_nothing_half_done(server: PowerDns, provider: PdnsProvider) -> None:
    bring(provider, a_zone('www A 192.0.2.1\n', 1))
    desired = a_zone('www A 192.0.2.2\nnew A 192.0.2.2\n', 2)
    plan = provider.plan(desired)
    with contextlib.closing(sqlite3.connect(server.database, timeout=10)) as database, database:
        database.execute("CREATE TRIGGER no_more BEFORE INSERT ON records WHEN NEW.name = 'new.example.com' "
                         "BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    assert plan is not None
    with pytest.raises(BackendError, match=r'change example.com.: Internal Server Error \(500\)'):
        provider.apply(plan)
    assert server.texts('www.example.com.', 'A') == ['192.0.2.1']
    with contextlib.closing(sqlite3.connect(server.database, timeout=10)) as database, database:
        database.execute('DROP TRIGGER no_more')
    bring(provider, desired)


def test_many_zones_at_once(server: PowerDns, provider: PdnsProvider) -> None:
    def one(number: int) -> None:
        for serial in (1, 2):
            bring(provider, a_zone(f'www A 192.0.2.{serial}\n', serial, f'zone{number}.example.com.'))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(80)))
    assert set(provider.zones([])[0].values()) == {2}
