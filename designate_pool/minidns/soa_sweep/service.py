"""Audits of serials for the pool managers: one message in with a page, one message out with its results."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from designate_pool.concurrency import LoopTask, NativeThread, Runtime
from designate_pool.minidns import counters
from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.client.poll_handover import hand_over_sweep_pages
from designate_pool.minidns.client.verification import worst
from designate_pool.minidns.soa_sweep.page import PeerResult, SweepPage
from designate_pool.minidns.soa_sweep.sweep import SoaSweep
from designate_pool.model import Answer, Context, Outcome, PollResult
from designate_pool.outage_log import OutageLog
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.rpc.pool_manager import PoolManagerClient

LOG = logging.getLogger(__name__)
#: Seconds that pages in progress get at the end.
GRACE = 1.0


class _Note(NamedTuple):
    """The audit that a page belongs to.

    :ivar started_at: when the round of the audit started
    """

    context: Context
    pool_name: str
    started_at: datetime


class SweepService:
    """Runs the sweep in a native thread, and casts the results to the pool managers.

    :param sources: the address to send from, by family
    """

    def __init__(self, pool_managers: PoolManagerClient, sources: dict[int, str]) -> None:
        self._pool_managers = pool_managers
        self._sources = sources
        self._native: NativeThread | None = None
        self._sweep: SoaSweep | None = None
        self._task: LoopTask | None = None
        self._outage = OutageLog(
            LOG, 'audit results could not be sent to the pool manager; the next round asks again: %s',
            'audit results can be sent to the pool manager again')

    def start(self, runtime: Runtime) -> None:
        self._native = runtime.native('minidns-sweep', self._handle_items)
        self._sweep = SoaSweep(self._native, self._sources)
        self._task = self._native.spawn(self._sweep.run)

    def stop(self, other_minidns: MiniDnsClient | None = None) -> None:
        """Finish the pages that end within :data:`GRACE`, hand the others over, and end.

        :param other_minidns: takes over unfinished pages; the partial result of a page that it does not take is sent,
            so that the pool manager does not wait for it
        """
        if self._sweep is not None and self._task is not None and self._native is not None:
            self._sweep.stop(GRACE)
            self._task.join(10)
            self._native.stop()
            unfinished = self._sweep.unfinished_pages()
            for page in unfinished if other_minidns is None else hand_over_sweep_pages(unfinished, other_minidns):
                self._send_page(page)

    def ask(self, context: Context, pool_name: str, started_at: datetime, peers: Sequence[AllowedPeer],
            domains: Sequence[tuple[str, str, int]]) -> None:
        """Query *peers* for the serials of *domains*; after :meth:`start`, from any thread.

        :param domains: (id, name, expected serial)
        """
        assert self._sweep is not None
        self._sweep.put(SweepPage(peers, domains, _Note(context, pool_name, started_at)))

    def _handle_items(self, items: list[Any]) -> None:
        for item in items:
            if isinstance(item, SweepPage):
                self._send_page(item)
            else:
                LOG.error('an audit failed; its zones are audited in the next round: %s', item)

    def _send_page(self, page: SweepPage) -> None:
        """Cast the results of a page; what cannot be sent is dropped, because the next round asks again."""
        asked = [result for result in page.results if result.answered or result.unanswered]
        for result in asked:
            counters.audited(result)
        by_server: dict[str, list[PeerResult]] = {}
        for result in page.results:
            by_server.setdefault(result.peer.server_id, []).append(result)
        counts, findings = [], []
        for server_id, results in by_server.items():
            # Of a server with several addresses a zone counts as answered when all have answered.
            answered, unanswered = min(each.answered for each in results), max(each.unanswered for each in results)
            if answered or unanswered:
                counts.append((server_id, answered, unanswered))
                findings += _findings(page, server_id, results)
        note: _Note = page.note
        try:
            self._pool_managers.audited(note.context, note.pool_name, note.started_at, counts, findings)
        except Exception as error:  # whatever the transport raises; the next page is tried anyway
            self._outage.failed(error)
        else:
            self._outage.ended()


def _findings(page: SweepPage, server_id: str, results: Sequence[PeerResult]) -> list[PollResult]:
    """What *server_id* does not serve as expected, with one finding for each zone."""
    if len(results) == 1 and results[0].peer.id == server_id:
        return [_finding(page, results[0], domain_index, reply) for domain_index, reply in results[0].findings]
    by_zone: dict[int, dict[str, PollResult]] = {}
    for result in results:
        for domain_index, reply in result.findings:
            by_zone.setdefault(domain_index, {})[result.peer.id] = _finding(page, result, domain_index, reply)
    found = [worst(server_id, [result.peer for result in results], each) for each in by_zone.values()]
    return [each for each in found if each is not None]


def _finding(page: SweepPage, result: PeerResult, domain_index: int, reply: SoaReply) -> PollResult:
    domain_id, _, serial = page.domains[domain_index]
    error = f'{reply.error}, not {serial}' if reply.answer is Answer.SERIAL else reply.error
    return PollResult(domain_id, result.peer.id, Outcome.ERROR, reply.answer, reply.serial, error, serial,
                      result.peer.label, reason=reply.reason)
