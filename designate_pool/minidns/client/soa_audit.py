"""Audits of serials for the pool managers: one message in with a page of zones, one message out with its results.

Each server of a page is queried once for each zone, in the loop of the polls and verified as these are.  Only
:data:`MAX_OPEN` of these queries are open at a time, so that a poll for a change never waits behind a page.  The pages
share them: a page that is alone ends in time also on a server that is far away.

A server that is silent does not delay the others for long: the zones that it was not asked for are left out of the
results.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import time
from collections.abc import Iterable, Sequence
from datetime import datetime

from designate_pool import metrics
from designate_pool.logs import OutageLog
from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.client.event_loop import ClientLoop
from designate_pool.minidns.client.query import RetryingQuery, RetrySchedule
from designate_pool.minidns.client.soa_poller import worst
from designate_pool.model import Answer, Context, Outcome, PollResult
from designate_pool.protocol import wire
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.rpc.pool_manager import PoolManagerClient

LOG = logging.getLogger(__name__)
#: Queries to one server that are open at a time, and those that each page may have in any case; the pool manager sends
#: some pages at a time.
MAX_OPEN, LEAST_OPEN = 32, 4
#: Seconds for a reply, in which a datagram is sent three times; seconds after which no more of a page is asked.
TIMEOUT, PAGE_TIMEOUT = 4.0, 20.0


class AuditPage:
    """Zones whose serials are queried from servers.

    :param started_at: when the round of the audit began
    :param domains: (id, name, expected serial); one with an invalid name is left out
    :ivar indices: of the zones in *domains*
    :ivar unfinished: those that have not ended
    :ivar started: monotonic seconds
    """

    def __init__(self, context: Context, pool_name: str, started_at: datetime, peers: Iterable[AllowedPeer],
                 domains: Sequence[tuple[str, str, int]]) -> None:
        self.context = context
        self.pool_name = pool_name
        self.started_at = started_at
        self.domains = domains
        self.indices = [index for index, (_, name, _) in enumerate(domains) if _is_name(name)]
        self.results = [PeerResult(self, peer) for peer in peers]
        self.unfinished = set(self.results)
        self.started = time.monotonic()


@dataclasses.dataclass(eq=False)
class PeerResult:
    """The result of a page for one server.

    :ivar answered: how many zones got a reply, of any kind
    :ivar unanswered: how many zones got none
    :ivar findings: (index of the zone in the page's domains, reply) where that is not the expected serial
    :ivar next: position in the page's indices of the first zone that was not asked for
    :ivar open: queries that were started and have not ended
    :ivar replied_at: when the server has last replied; monotonic seconds
    """

    page: AuditPage
    peer: AllowedPeer
    answered: int = 0
    unanswered: int = 0
    findings: list[tuple[int, SoaReply]] = dataclasses.field(default_factory=list)
    next: int = 0
    open: int = 0
    replied_at: float = float('-inf')


@dataclasses.dataclass(eq=False)
class _AuditQuery(RetryingQuery):
    """One query of an audit, for the zone with *index* in the page's domains, *started* in monotonic seconds."""

    result: PeerResult
    index: int
    started: float


class SoaAudit:
    """Asks for pages in *loop*, and casts the results to the pool managers."""

    def __init__(self, loop: ClientLoop, pool_managers: PoolManagerClient, timeout: float = TIMEOUT) -> None:
        self._loop = loop
        self._pool_managers = pool_managers
        self._schedule = RetrySchedule(timeout, 0.0, 0)
        self._pages: dict[AuditPage, None] = {}
        self._outage = OutageLog(
            LOG, 'audit results could not be sent to the pool manager; the next round asks again: %s',
            'audit results can be sent to the pool manager again')

    def stop(self) -> None:
        """Send what is known of unfinished pages, or the pool manager would wait; the next round asks for the rest."""
        self._send_pages(list(self._pages))

    # What follows is called in the loop alone.

    def start_page(self, page: AuditPage) -> None:
        """Ask for *page*."""
        self._pages[page] = None
        for result in page.results:
            self._continue(result)
        if not page.results:
            self._end_page(page)

    def _continue(self, result: PeerResult) -> None:
        """Start queries, as many as may be open; end the page with the last of its results."""
        page = result.page
        if not result.peer.addresses or page.started + PAGE_TIMEOUT <= time.monotonic():
            result.next = len(page.indices)
        most = max(LEAST_OPEN, MAX_OPEN // max(1, len(self._pages)))
        while result.next < len(page.indices) and result.open < most:
            index = page.indices[result.next]
            query = _AuditQuery(result.peer, page.domains[index][1], None, self._schedule, self._end_query, result,
                                index, time.monotonic())
            result.next += 1
            result.open += 1
            self._loop.start_query(query)
        if not result.open and result.next == len(page.indices) and result in page.unfinished:
            page.unfinished.discard(result)
            if not page.unfinished:
                self._end_page(page)

    def _end_query(self, query: _AuditQuery, reply: SoaReply) -> None:
        result = query.result
        if reply.answer is not Answer.TIMEOUT:
            result.answered += 1
            result.replied_at = time.monotonic()
        else:
            result.unanswered += 1
            if result.replied_at < query.started:  # it is silent
                result.next = len(result.page.indices)
        if reply.serial != result.page.domains[query.index][2]:
            result.findings.append((query.index, reply))
        result.open -= 1
        self._continue(result)

    def _end_page(self, page: AuditPage) -> None:
        del self._pages[page]
        self._loop.post(self._send_pages, page)

    # What follows is called in the runtime's threads.

    def _send_pages(self, pages: Sequence[AuditPage]) -> None:
        """Cast the results of *pages*; what cannot be sent is dropped, because the next round asks again."""
        for page in pages:
            counts, findings = _page_result(page)
            try:
                self._pool_managers.audited(page.context, page.pool_name, page.started_at, counts, findings)
            except Exception as error:  # whatever the transport raises; the next page is tried anyway
                self._outage.failed(error)
            else:
                self._outage.ended()


def _page_result(page: AuditPage) -> tuple[list[tuple[str, int, int]], list[PollResult]]:
    by_server: dict[str, list[PeerResult]] = {}
    for result in page.results:
        outcomes = collections.Counter('behind' if reply.answer is Answer.SERIAL else reply.answer.value.lower()
                                       for _, reply in result.findings)
        outcomes['served'] = result.answered + result.unanswered - len(result.findings)
        for outcome, count in outcomes.items():
            if count:
                metrics.AUDITED.labels(result.peer.metrics_label, outcome).inc(count)
        by_server.setdefault(result.peer.server_id, []).append(result)
    counts, findings = [], []
    for server_id, results in by_server.items():
        # Of a server with several addresses a zone counts as answered when all have answered.
        answered, unanswered = min(result.answered for result in results), max(result.unanswered for result in results)
        if answered or unanswered:
            counts.append((server_id, answered, unanswered))
            findings += _findings(page, server_id, results)
    return counts, findings


def _findings(page: AuditPage, server_id: str, results: Sequence[PeerResult]) -> list[PollResult]:
    """What *server_id* does not serve as expected, with one finding for each zone."""
    by_zone: dict[int, dict[str, PollResult]] = {}
    for result in results:
        for index, reply in result.findings:
            by_zone.setdefault(index, {})[result.peer.id] = _finding(page, result, index, reply)
    if len(results) == 1 and results[0].peer.id == server_id:
        return [finding for findings in by_zone.values() for finding in findings.values()]
    peers = [result.peer for result in results]
    findings = [worst(server_id, peers, zone_results) for zone_results in by_zone.values()]
    return [finding for finding in findings if finding is not None]


def _finding(page: AuditPage, result: PeerResult, index: int, reply: SoaReply) -> PollResult:
    domain_id, _, serial = page.domains[index]
    error = reply.error
    if reply.answer is Answer.SERIAL:
        error = f'the server serves serial {reply.serial}, not {serial}'
    return PollResult(domain_id, result.peer.id, Outcome.ERROR, reply.answer, reply.serial, error, serial,
                      result.peer.label, reason=reply.reason)


def _is_name(text: str) -> bool:
    try:
        wire.encode(text)
    except ValueError:
        return False
    return True
