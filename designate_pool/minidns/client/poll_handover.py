"""What is under way when MiniDNS stops: cast again, for another MiniDNS of the pool or the next that starts."""

from __future__ import annotations

import collections
import logging
from collections.abc import Iterable

from designate_pool.errors import PoolError
from designate_pool.minidns.client.query import RetrySchedule
from designate_pool.minidns.client.soa_poller import PollOrder, SoaPoll, ToPool
from designate_pool.minidns.soa_sweep.page import SweepPage
from designate_pool.model import PollRequest
from designate_pool.rpc.minidns import MiniDnsClient

LOG = logging.getLogger(__name__)


def hand_back(polls: Iterable[SoaPoll], notifying: Iterable[tuple[PollOrder, RetrySchedule]],
              others: MiniDnsClient) -> None:
    """Cast *polls*, and NOTIFYs that go without one, with the tries that each has left.

    What the broker does not take is lost here; the pool manager's rows come due again when their round is over.
    """
    together: dict[tuple[ToPool, RetrySchedule], list[PollRequest]] = collections.defaultdict(list)
    try:
        for poll in polls:
            request = poll.request
            again = PollRequest(poll.domain_id, poll.name, poll.serial, poll.peer.id, request.notify,
                                0.0 if poll.tries else request.delay, request.seen if poll.seen is None else poll.seen,
                                incarnation=request.incarnation)
            for each in poll.recipients:
                left = poll.left
                if isinstance(each, ToPool):
                    together[each, left].append(again)
                else:
                    others.poll_for_serial_number(each.context, each.domain, each.destination, left.timeout,
                                                  left.retry_interval, left.max_retries)
        for request, left in notifying:
            to = request.recipient
            if isinstance(to, ToPool):
                together[to, left].append(PollRequest(request.domain_id, request.name, request.serial, request.peer.id,
                                                      poll=False))
            else:
                others.notify_zone_changed(to.context, to.domain, to.destination, left.timeout, left.retry_interval,
                                           left.max_retries)
        for (pool, left), requests in together.items():
            others.notify_and_poll(pool.context, pool.pool_name, requests, left.timeout, left.retry_interval,
                                   left.max_retries)
    except PoolError as error:
        LOG.warning('polls under way were not handed to another MiniDNS, they are due again later: %s', error)


def hand_back_pages(pages: Iterable[SweepPage], others: MiniDnsClient) -> list[SweepPage]:
    """Cast what audits of serials had not come to the end of, each page as a whole; those that the broker did not take.
    """
    left = collections.deque(pages)
    try:
        while left:
            page = left[0]
            others.audit_serials(page.note.context, page.note.pool_name, page.note.started_at,
                                 [tally.peer.id for tally in page.tallies], page.domains)
            left.popleft()
    except PoolError as error:
        LOG.warning('an audit under way was not handed to another MiniDNS, it goes on in the next round: %s', error)
    return list(left)
