"""When undecided domains are weighed again, and what ends the wait until then."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from designate_pool.model import utcnow
from designate_pool.pool_manager.reconcile.reconciler import IDLE_INTERVAL, PAUSE, UndecidedDomains
from testing.processes import wait_until

NOW = utcnow()
LATER = NOW + timedelta(seconds=PAUSE)


class Weighed(UndecidedDomains):
    """
    :ivar weighed: what was weighed, at each run
    """

    def __init__(self) -> None:
        self.weighed: list[list[str]] = []
        super().__init__(lambda *ids: self.weighed.append(sorted(ids)))


def test_each_is_weighed_once_when_the_first_to_add_it_wanted_it() -> None:
    domains = Weighed()
    domains.add(['a'], NOW)
    assert domains and domains.run(NOW) == pytest.approx(PAUSE)
    domains.add(['a', 'b'], NOW + timedelta(seconds=PAUSE / 2))
    assert domains.run(LATER) == pytest.approx(PAUSE / 2)
    assert domains.run(NOW + timedelta(seconds=PAUSE * 1.5)) == IDLE_INTERVAL
    assert domains.weighed == [[], ['a'], ['b']] and not domains


def test_one_of_which_central_is_told_is_not_weighed() -> None:
    domains = Weighed()
    domains.add(['a', 'b'], NOW)
    domains.discard(['a', 'c'])
    domains.run(LATER)
    assert domains.weighed == [['b']]


def waits(domains: UndecidedDomains) -> bool:
    """Whether a wait that begins now would last."""
    lasts = not domains._woken.is_set()
    domains.wait(0)
    return lasts


def test_only_the_first_ends_a_wait() -> None:
    domains = Weighed()
    assert waits(domains)
    domains.add([], NOW)
    assert waits(domains)
    domains.add(['a'], NOW)
    assert not waits(domains) and waits(domains)
    domains.add(['b'], NOW)
    assert waits(domains), 'the loop waits for the time of the first'
    domains.run(LATER)
    domains.add(['c'], LATER)
    assert not waits(domains)


def test_a_wait_that_has_begun_ends_when_a_domain_is_added() -> None:
    domains = Weighed()
    waiting = threading.Thread(target=domains.wait, args=(600.0,))
    waiting.start()
    domains.add(['a'], NOW)
    wait_until(lambda: not waiting.is_alive(), 'the wait ends')
