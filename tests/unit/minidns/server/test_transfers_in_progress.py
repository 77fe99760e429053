"""How long a server is waited for that fetches a zone, loads it, or rejects it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.server import transfers_in_progress
from designate_pool.minidns.server.transfers_in_progress import TransfersInProgress

NAME = 'example.org.'
SERVER = AllowedPeer('a' * 32, 'one', ('192.0.2.1',), 53)
OTHER = AllowedPeer('b' * 32, 'other', ('192.0.2.2',), 53)


class Transfers(TransfersInProgress):
    """With a clock of its own: :attr:`now`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: int) -> None:
        super().__init__(**options)
        self.now = 1000.0
        monkeypatch.setattr(transfers_in_progress.time, 'monotonic', lambda: self.now)

    @contextlib.contextmanager
    def sent(self, seconds: float, serial: int = 7, name: str = NAME) -> Iterator[None]:
        """A transfer that takes so long; within it at first."""
        with self.track([SERVER], name) as transfer:
            yield
            self.now += seconds
            self.note_sent(transfer, serial)

    def is_waited_for(self, serial: int = 7, since: float = 1000.0, server: AllowedPeer = SERVER) -> bool:
        return self.may_take_longer(server.id, NAME, serial, since)


@pytest.fixture
def transfers(monkeypatch: pytest.MonkeyPatch) -> Transfers:
    return Transfers(monkeypatch)


def test_a_server_may_load_a_zone_for_as_long_as_its_transfer_took(transfers: Transfers) -> None:
    assert not transfers.is_waited_for()
    with transfers.sent(100):
        assert transfers.is_waited_for() and not transfers.is_waited_for(server=OTHER)
    assert transfers.is_waited_for() and not transfers.is_waited_for(server=OTHER)
    transfers.now += 99
    assert transfers.is_waited_for(since=transfers.now), 'also for one that has begun to wait only now'
    assert transfers.is_waited_for(serial=8), 'it fetches the next serial when it has loaded this one'
    transfers.now += 2
    assert not transfers.is_waited_for()


def test_one_that_fetches_the_same_serial_again_and_again_is_waited_for_once(transfers: Transfers) -> None:
    with transfers.sent(100):
        pass
    with transfers.sent(50):
        pass
    transfers.now += 51
    with transfers.sent(10):
        assert not transfers.is_waited_for()
        assert transfers.is_waited_for(since=transfers.now), 'in the next round it may be in earnest'
        assert transfers.is_waited_for(serial=8), 'what it was sent is not what is waited for'


def test_a_short_transfer_gives_no_time(transfers: Transfers) -> None:
    with transfers.sent(0.05):
        pass
    assert not transfers.is_waited_for()


def test_a_transfer_that_stalls_gives_no_time_to_another_of_the_same_zone(transfers: Transfers) -> None:
    with transfers.track([SERVER], NAME) as stalled:
        stalled.sending_since = transfers.now
        transfers.now += 1000
        with transfers.sent(10):
            pass
        assert transfers.is_waited_for()
        transfers.now += 11
        assert not transfers.is_waited_for()


def test_the_newest_transfers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    transfers = Transfers(monkeypatch, most_remembered=2)
    for name in ('a.example.', 'b.example.', 'a.example.', 'c.example.'):
        with transfers.sent(100, name=name):
            pass
        transfers.now += 101
    assert [name for _, name in transfers._sent] == ['a.example.', 'c.example.']


def test_a_transfer_is_forgotten_in_the_end(transfers: Transfers) -> None:
    with transfers.sent(100):
        pass
    transfers.now += 2000
    with transfers.track([OTHER], 'example.com.') as transfer:
        transfers.now += 1
        transfers.note_sent(transfer, 7)
    assert list(transfers._sent) == [(OTHER.id, 'example.com.')]


def test_many_transfers_are_forgotten_at_once(transfers: Transfers) -> None:
    for number in range(50_000):
        with transfers.sent(0.2, name=f'{number}.example.'):
            pass
    transfers.now += 20_000
    with transfers.track([SERVER], 'example.com.') as transfer:
        transfers.now += 1
        began = time.thread_time()
        transfers.note_sent(transfer, 7)
    assert len(transfers._sent) == 1
    assert time.thread_time() - began < 0.3, 'each is found at once'
