"""The fake driver: the contract, and each way in which it can be told to behave."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from designate_pool import backends
from designate_pool.backends.fake import Fake
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


@pytest.mark.parametrize('behaviour, ok, retryable, unreachable', [
    ('succeed', True, True, False), ('lie', True, True, False), ('fail', False, True, False),
    ('refuse', False, False, False), ('unreachable', False, True, True), ('hang', False, True, True)])
def test_behaviours(behaviour: str, ok: bool, retryable: bool, unreachable: bool) -> None:
    fake = a_fake(on_create=behaviour)
    result = fake.create_domain(a_domain())
    assert (result.ok, result.retryable, result.unreachable) == (ok, retryable, unreachable)
    assert fake.zones == ({'example.com.'} if behaviour == 'succeed' else set())
    assert fake.delete_domain(a_domain()).ok


def test_close_ends_a_call_that_hangs() -> None:
    fake = a_fake(call_timeout=60, on_ping='hang')
    ended: list[CallResult] = []
    thread = threading.Thread(target=lambda: ended.append(fake.ping()))
    thread.start()
    while thread.is_alive():
        fake.close()
        thread.join(0.01)
    assert not ended[0].ok
    assert ended[0].seconds < 30


def test_may_serve_on_create() -> None:
    assert not a_fake().capabilities.serves_on_create
    assert a_fake(serves=True).capabilities.serves_on_create
