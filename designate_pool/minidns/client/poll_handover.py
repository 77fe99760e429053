"""Casts polls, NOTIFYs and sweep pages that are in progress when MiniDNS stops, for another MiniDNS of the pool to do.
"""

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


def hand_over_polls(polls: Iterable[SoaPoll], notifies: Iterable[tuple[PollOrder, RetrySchedule]],
                    other_minidns: MiniDnsClient) -> None:
    """Cast *polls*, and NOTIFYs that have no poll, with the tries that each has left.

    What the broker does not take is lost here; the pool manager's rows come due again at the end of their round.
    """
    batches: dict[tuple[ToPool, RetrySchedule], list[PollRequest]] = collections.defaultdict(list)
    try:
        for poll in polls:
            order = poll.order
            request = PollRequest(poll.domain_id, poll.name, poll.serial, poll.peer.id, order.notify,
                                  0.0 if poll.tries else order.delay, order.seen if poll.seen is None else poll.seen,
                                  incarnation=order.incarnation)
            for recipient in poll.recipients:
                left = poll.remaining_schedule
                if isinstance(recipient, ToPool):
                    batches[recipient, left].append(request)
                else:
                    other_minidns.poll_for_serial_number(recipient.context, recipient.domain, recipient.destination,
                                                         left.timeout, left.retry_interval, left.max_retries)
        for order, left in notifies:
            recipient = order.recipient
            if isinstance(recipient, ToPool):
                batches[recipient, left].append(PollRequest(order.domain_id, order.name, order.serial, order.peer.id,
                                                            poll=False))
            else:
                other_minidns.notify_zone_changed(recipient.context, recipient.domain, recipient.destination,
                                                  left.timeout, left.retry_interval, left.max_retries)
        for (pool, left), requests in batches.items():
            other_minidns.notify_and_poll(pool.context, pool.pool_name, requests, left.timeout, left.retry_interval,
                                          left.max_retries)
    except PoolError as error:
        LOG.warning('polls under way were not handed to another MiniDNS; they are sent again later: %s', error)


def hand_over_sweep_pages(pages: Iterable[SweepPage], other_minidns: MiniDnsClient) -> list[SweepPage]:
    """Cast the pages of audits that have not ended, each as a whole.

    :returns: the pages that the broker did not take
    """
    left = collections.deque(pages)
    try:
        while left:
            page = left[0]
            other_minidns.audit_serials(page.note.context, page.note.pool_name, page.note.started_at,
                                        [result.peer.id for result in page.results], page.domains)
            left.popleft()
    except PoolError as error:
        LOG.warning('an audit under way was not handed to another MiniDNS; its zones are audited in the next round: '
                    '%s', error)
    return list(left)
