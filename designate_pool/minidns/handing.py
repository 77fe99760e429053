"""Polls under way when MiniDNS stops: cast again, for another MiniDNS of the pool or the next that starts."""

from __future__ import annotations

import collections
import logging
from collections.abc import Iterable

from designate_pool.errors import PoolError
from designate_pool.minidns.errands import Schedule
from designate_pool.minidns.poller import Poll, ToPool
from designate_pool.model import PollRequest
from designate_pool.rpc.minidns import MiniDnsClient

LOG = logging.getLogger(__name__)


def hand_back(polls: Iterable[Poll], others: MiniDnsClient) -> None:
    """Cast *polls* with the tries that each has left.

    What the broker does not take is lost here; the pool manager's rows come due again when their round is over.
    """
    together: dict[tuple[ToPool, Schedule], list[PollRequest]] = collections.defaultdict(list)
    try:
        for poll in polls:
            request = poll.request
            again = PollRequest(poll.domain_id, poll.name, poll.serial, poll.peer.id, request.notify,
                                0.0 if poll.tries else request.delay, request.seen if poll.seen is None else poll.seen)
            for each in poll.recipients:
                left = poll.left
                if isinstance(each, ToPool):
                    together[each, left].append(again)
                else:
                    others.poll_for_serial_number(each.context, each.domain, each.destination, left.timeout,
                                                  left.retry_interval, left.max_retries)
        for (pool, left), requests in together.items():
            others.notify_and_poll(pool.context, pool.pool_name, requests, left.timeout, left.retry_interval,
                                   left.max_retries)
    except PoolError as error:
        LOG.warning('polls under way were not handed to another MiniDNS, they are due again later: %s', error)
