"""Casts polls and NOTIFYs that are in progress when MiniDNS stops, for another MiniDNS of the pool to do."""

from __future__ import annotations

import collections
import dataclasses
import logging
from collections.abc import Iterable

from designate_pool.errors import PoolError
from designate_pool.minidns.client.query import RetrySchedule
from designate_pool.minidns.client.soa_poller import PollOrder, SoaPoll, ToPool
from designate_pool.model import PollRequest
from designate_pool.rpc.minidns import MiniDnsClient

LOG = logging.getLogger(__name__)


def hand_over_polls(polls: Iterable[SoaPoll], notifies: Iterable[tuple[PollOrder, RetrySchedule]],
                    other_minidns: MiniDnsClient) -> None:
    """Cast *polls*, and NOTIFYs that have no poll, with the tries that each has left.

    What the broker does not take is lost here; the pool manager's rows come due again at the end of their round.
    """
    requests = [(recipient, poll.remaining_schedule, _poll_request(poll))
                for poll in polls for recipient in poll.recipients]
    requests += [(order.recipient, left, order.request) for order, left in notifies]
    batches: dict[tuple[ToPool, RetrySchedule], list[PollRequest]] = collections.defaultdict(list)
    try:
        for recipient, left, request in requests:
            if isinstance(recipient, ToPool):
                batches[recipient, left].append(request)
            else:
                cast = other_minidns.poll_for_serial_number if request.poll else other_minidns.notify_zone_changed
                cast(recipient.context, recipient.domain, recipient.destination, *_tries(left))
        for (pool, left), batch in batches.items():
            other_minidns.notify_and_poll(pool.context, pool.pool_name, batch, *_tries(left))
    except PoolError as error:
        LOG.warning('polls under way were not handed to another MiniDNS; they are sent again later: %s', error)


def _tries(left: RetrySchedule) -> tuple[float, float, int]:
    """What a message says of a schedule."""
    return left.timeout, left.retry_interval, left.max_retries


def _poll_request(poll: SoaPoll) -> PollRequest:
    """The request of *poll*, with what has been found out since."""
    request = poll.request
    return dataclasses.replace(request, delay=0.0 if poll.tries else request.delay,
                               seen=request.seen if poll.seen is None else poll.seen)
