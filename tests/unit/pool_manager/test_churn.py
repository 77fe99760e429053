"""A domain that changes more often than a round of polls takes; each poll is with another MiniDNS."""

from __future__ import annotations

import collections
from datetime import datetime, timedelta

import pytest

from designate_pool.model import Answer, Outcome, PollRequest, PollResult, Status
from tests.unit.pool_manager.conftest import CONTEXT, SERVERS, Clock, ScriptedPool, all_needed

LAST = SERVERS[2]
#: Seconds from one change to the next, and that a poll goes on.
OFTEN, ROUND = 5, 8


class Polls:
    """Those of the last server, each of which ends by itself; the other servers follow at once."""

    def __init__(self, pool: ScriptedPool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._under_way: collections.deque[tuple[datetime, PollRequest]] = collections.deque()

    def change(self, domain_id: str, number: int, answer: Answer, seen: int | None) -> Status:
        """The change of that *number*, and how the domain stands before the next.

        :param answer: of the last server to what it was asked before
        """
        pool, clock = self._pool, self._clock
        pool.central.update_domain(CONTEXT, domain_id, {'ttl': 100 + number})
        asked, pool.asked = pool.asked, []
        for each in asked:
            if each.server_id == LAST:
                self._under_way.append((clock() + timedelta(seconds=ROUND), each))
            else:
                pool.endpoint.update_statuses(CONTEXT, [pool.poll(each)])
        clock.offset += timedelta(seconds=OFTEN)
        while self._under_way and self._under_way[0][0] <= clock():
            _, ended = self._under_way.popleft()
            pool.endpoint.update_statuses(CONTEXT, [PollResult(
                domain_id, LAST, Outcome.ERROR, answer, seen, 'not yet', ended.serial)])
        return pool.central.get_domain(CONTEXT, domain_id).status


@all_needed
def test_a_server_that_is_one_change_behind_has_not_failed(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    polls, seen = Polls(pool, clock), domain.serial
    for number in range(8):
        before = pool.get(domain).serial
        assert polls.change(domain.id, number, Answer.SERIAL, seen) is Status.PENDING
        pool.endpoint.update_statuses(CONTEXT, [PollResult(
            domain.id, LAST, Outcome.SUCCESS, Answer.SERIAL, before)])
        seen = before


@pytest.mark.parametrize('pool', [66], indirect=True)
def test_a_server_that_has_lost_the_zone_is_given_it_again(pool: ScriptedPool, clock: Clock) -> None:
    domain = pool.create()
    polls = Polls(pool, clock)
    before = len(pool.servers[LAST].calls)
    for number in range(8):
        polls.change(domain.id, number, Answer.NO_ZONE, None)
    assert ('create', domain.id) in pool.servers[LAST].calls[before:]
