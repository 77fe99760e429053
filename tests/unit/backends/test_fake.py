"""The fake driver: the contract, and each way in which it can be told to behave."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from designate_pool import backends
from designate_pool.backends.fake import Fake, FakeCall
from designate_pool.errors import InvalidField
from designate_pool.model import CallResult, Server, new_id
from designate_pool.testing import Contract, Rig, a_domain


def a_fake(call_timeout: float = 0.05, **options: Any) -> Fake:
    server = Server(new_id(), 'fake', '192.0.2.1', call_timeout=call_timeout, options=options)
    backend = backends.build(server)
    assert isinstance(backend, Fake)
    return backend


class FakeRig(Rig):
    """Keeps the one fake, since its zones are in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fake = a_fake()
        monkeypatch.setattr(backends, 'build', lambda server: self.fake)

    def server(self, **facts: Any) -> Server:
        return self.fake.server

    def holds(self, name: str) -> bool:
        return name in self.fake.zones


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> FakeRig:
    return FakeRig(monkeypatch)


class TestContract(Contract):
    pass


def test_records_its_calls_in_order() -> None:
    fake = a_fake()
    fake.create_domain(a_domain(generation=3))
    fake.ping()
    fake.delete_domain(a_domain(generation=4))
    assert fake.calls == [FakeCall('create', 'example.com.', 3), FakeCall('ping'),
                          FakeCall('delete', 'example.com.', 4)]


@pytest.mark.parametrize('behaviour, ok, retryable, unreachable', [
    ('succeed', True, True, False), ('lie', True, True, False), ('fail', False, True, False),
    ('refuse', False, False, False), ('unreachable', False, True, True), ('hang', False, True, True)])
def test_behaviours(behaviour: str, ok: bool, retryable: bool, unreachable: bool) -> None:
    fake = a_fake(on_create=behaviour)
    result = fake.create_domain(a_domain())
    assert (result.ok, result.retryable, result.unreachable) == (ok, retryable, unreachable)
    assert fake.zones == ({'example.com.'} if behaviour == 'succeed' else set())
    assert fake.calls == [FakeCall('create', 'example.com.', 1)]
    assert fake.delete_domain(a_domain()).ok


def test_behaves_badly_for_the_next_two_calls_only() -> None:
    fake = a_fake()
    fake.behave('create', 'fail', times=2)
    assert [fake.create_domain(a_domain()).ok for _ in range(4)] == [False, False, True, True]


def test_lost_zones() -> None:
    fake = a_fake()
    fake.create_domain(a_domain())
    fake.forget_zones()
    assert not fake.zones


def test_close_ends_a_call_that_hangs() -> None:
    fake = a_fake(call_timeout=60, on_ping='hang')
    ended: list[CallResult] = []
    thread = threading.Thread(target=lambda: ended.append(fake.ping()))
    thread.start()
    while not fake.calls:
        thread.join(0.01)
    while thread.is_alive():
        fake.close()
        thread.join(0.01)
    assert not ended[0].ok
    assert ended[0].seconds < 30


def test_may_serve_on_create() -> None:
    assert not a_fake().capabilities.serves_on_create
    assert a_fake(serves=True).capabilities.serves_on_create


def test_unknown_behaviour_names_the_option() -> None:
    with pytest.raises(InvalidField, match="on_delete: 'sulk' is unknown; known are succeed, fail, "):
        a_fake(on_delete='sulk')


def test_unknown_operation() -> None:
    with pytest.raises(InvalidField, match="operation: 'update' is unknown"):
        a_fake().behave('update', 'fail')
