"""Zones whose masters say that they have changed, while Central cannot be reached and afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from designate_pool.errors import DomainNotFound, ServiceUnavailable
from designate_pool.minidns.refresher import SecondaryRefresher
from designate_pool.model import Context
from designate_pool.runtime import Threads
from designate_pool.settings import MiniDnsSettings
from designate_pool.storage.serving.watched import Watched
from testing.processes import wait_until


class ReachedAtLast:
    """Central, which cannot be reached the first times that it is asked.

    :ivar refreshed: the domains that it was asked to refresh
    :ivar held: those of them that it takes until *release* for
    """

    def __init__(self, failures: int) -> None:
        self.refreshed: list[str] = []
        self.claims = 0
        self.held: list[str] = []
        self.release = threading.Event()
        self._failures = failures

    def refresh_domain(self, context: Context, domain_id: str) -> None:
        if self._failures:
            self._failures -= 1
            raise ServiceUnavailable(service='central', why='no broker')
        if domain_id == 'locked':
            raise ServiceUnavailable(service='the database', why='a lock')
        if domain_id == 'held':
            self.held.append(domain_id)
            self.release.wait(60)
        if domain_id == 'gone':
            raise DomainNotFound(domain=domain_id)
        self.refreshed.append(domain_id)

    def claim_refreshes(self, *arguments: Any) -> list[Any]:
        self.claims += 1
        return []  # so that no master is asked


@pytest.fixture
def central() -> ReachedAtLast:
    return ReachedAtLast(2)


@pytest.fixture
def refresher(central: ReachedAtLast) -> Iterator[SecondaryRefresher]:
    refresher = SecondaryRefresher(central, 'default', lambda domain_id: None,  # type: ignore[arg-type]
                                   lambda endpoint: None, MiniDnsSettings(transfers_in=2), retry_interval=0.01)
    yield refresher
    refresher.stop()


def test_a_request_outlives_central(refresher: SecondaryRefresher, central: ReachedAtLast) -> None:
    refresher.request('a')
    refresher.start(Threads())
    wait_until(lambda: central.claims, 'what is due is claimed')
    assert central.refreshed == ['a']
    refresher.request('b')
    wait_until(lambda: central.refreshed == ['a', 'b'], 'the second is requested too')


@pytest.mark.parametrize('first', ['gone', 'locked'])
def test_a_domain_that_cannot_be_refreshed_keeps_no_other_waiting(
        refresher: SecondaryRefresher, central: ReachedAtLast, first: str) -> None:
    for domain_id in (first, 'a'):
        refresher.request(domain_id)
    refresher.start(Threads())
    wait_until(lambda: central.refreshed == ['a'], 'the other one is refreshed')


def test_what_is_due_is_claimed_while_a_domain_is_locked(
        refresher: SecondaryRefresher, central: ReachedAtLast) -> None:
    refresher.request('locked')
    refresher.start(Threads())
    refresher.follow(Watched(None, 0, True))
    wait_until(lambda: central.claims, 'what is due is claimed')


def test_a_domain_that_takes_long_takes_one_loop_however_often_its_master_notifies(
        refresher: SecondaryRefresher, central: ReachedAtLast) -> None:
    refresher.start(Threads())
    refresher.request('held')
    wait_until(lambda: central.held, 'Central is told')
    refresher.request('held')
    refresher.request('a')
    wait_until(lambda: central.refreshed, 'the other one is refreshed')
    assert (central.refreshed, central.held) == (['a'], ['held'])
    central.release.set()
    wait_until(lambda: central.refreshed == ['a', 'held', 'held'], 'it is told again')
