"""Outcomes that wait to be settled: what is about a change of now does not wait behind all the rest."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from designate_pool.model import Answer, Outcome, PollResult
from designate_pool.pool_manager.dispatch import operation
from designate_pool.pool_manager.dispatch.operation import OutcomeQueue, ServerOutcome, domain_of
from designate_pool.runtime import Threads
from testing.processes import wait_until


class Settled:
    """Settles what it gets; of domains named "old" only once it is let."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.go = threading.Event()

    def __call__(self, outcomes: Sequence[ServerOutcome]) -> None:
        if domain_of(outcomes[0]).startswith('old'):
            assert self.go.wait(20)
        self.batches.append([domain_of(each) for each in outcomes])

    @property
    def all(self) -> list[str]:
        return [each for batch in self.batches for each in batch]


@pytest.fixture
def settled() -> Settled:
    return Settled()


@pytest.fixture
def queue(settled: Settled) -> Iterator[OutcomeQueue]:
    made = OutcomeQueue(Threads(), settled, 10)
    yield made
    settled.go.set()
    made.stop()


def outcomes(*domain_ids: str) -> list[ServerOutcome]:
    return [PollResult(domain_id, 'server', Outcome.SUCCESS, Answer.SERIAL, 7) for domain_id in domain_ids]


def test_a_change_of_now_does_not_wait_for_what_servers_were_owed(queue: OutcomeQueue, settled: Settled) -> None:
    queue.put(*outcomes(*(f'old{number}' for number in range(25))))
    wait_until(lambda: len(queue) == 15, 'a batch is being settled')
    queue.mark_recent(['new'])
    queue.put(*outcomes('old25', 'new', 'old26', 'new'))
    settled.go.set()
    wait_until(lambda: len(settled.all) == 29, 'all is settled')
    assert settled.batches[1] == ['new', 'new'], 'it comes next'
    assert [each for each in settled.all if each != 'new'] == [f'old{number}' for number in range(27)]
    assert max(map(len, settled.batches)) == 10 and len(queue) == 0


def test_a_change_is_one_of_now_for_a_minute(queue: OutcomeQueue, settled: Settled,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(operation.time, 'monotonic', lambda: now[0])
    queue.mark_recent(['old', 'again'])
    now[0] += 59
    queue.mark_recent(['again'])
    now[0] += 1
    settled.go.set()
    queue.put(*outcomes('old', 'again'))
    wait_until(lambda: settled.all == ['again', 'old'], 'what changed once more is settled first')
    queue.mark_recent([])
    assert list(queue._recent) == ['again'], 'what is no longer of now is forgotten'


def test_only_so_many_are_remembered(settled: Settled) -> None:
    queue = OutcomeQueue(Threads(), settled, 10, max_recent=3)
    queue.mark_recent(['old1', 'old2', 'new1', 'new2', 'new3'])
    settled.go.set()
    queue.put(*outcomes('old1', 'new1'))
    wait_until(lambda: settled.all == ['new1', 'old1'], 'the latest are remembered')
    queue.stop()
