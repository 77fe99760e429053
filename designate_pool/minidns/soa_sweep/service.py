"""Audits of serials as the pool managers ask for them: a page in, what came of it out, in one message each."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from designate_pool.concurrency import LoopTask, NativeThread, Runtime
from designate_pool.minidns import counters
from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.client.poll_handover import hand_over_sweep_pages
from designate_pool.minidns.soa_sweep.page import PeerResult, SweepPage
from designate_pool.minidns.soa_sweep.sweep import SoaSweep
from designate_pool.model import Answer, Context, Outcome, PollResult
from designate_pool.protocol.soa_query import SoaReply
from designate_pool.rpc.minidns import MiniDnsClient
from designate_pool.rpc.pool_manager import PoolManagerClient

LOG = logging.getLogger(__name__)
#: Seconds that pages under way have at the end.
GRACE = 1.0


class _Note(NamedTuple):
    """Whom a page is for.

    :ivar started_at: of the round
    """

    context: Context
    pool_name: str
    started_at: datetime


class SweepService:
    """Has pages asked for, and tells the pool managers.

    :param sources: the address to send from, by family
    """

    def __init__(self, pool_managers: PoolManagerClient, sources: dict[int, str]) -> None:
        self._pool_managers = pool_managers
        self._sources = sources
        self._native: NativeThread | None = None
        self._survey: SoaSweep | None = None
        self._task: LoopTask | None = None
        self._outage = False

    def start(self, runtime: Runtime) -> None:
        self._native = runtime.native('minidns-survey', self._told)
        self._survey = SoaSweep(self._native, self._sources)
        self._task = self._native.spawn(self._survey.run)

    def stop(self, others: MiniDnsClient | None = None) -> None:
        """Finish the pages under way that do not take long, tell what is known, and end.

        :param others: get the rest to go on with; of what nobody gets it is told how far it came, so that nobody waits
        """
        if self._survey is not None and self._task is not None and self._native is not None:
            self._survey.stop(GRACE)
            self._task.join(10)
            self._native.stop()
            left = self._survey.left()
            for page in left if others is None else hand_over_sweep_pages(left, others):
                self._tell(page)

    def ask(self, context: Context, pool_name: str, started_at: datetime, peers: Sequence[AllowedPeer],
            domains: Sequence[tuple[str, str, int]]) -> None:
        """Ask *peers* for *domains*, once started; from any thread.

        :param domains: (id, name, wanted serial)
        """
        assert self._survey is not None
        self._survey.put(SweepPage(peers, domains, _Note(context, pool_name, started_at)))

    def _told(self, items: list[Any]) -> None:
        for item in items:
            if isinstance(item, SweepPage):
                self._tell(item)
            else:
                LOG.error('an audit failed; its zones are audited in the next round: %s', item)

    def _tell(self, page: SweepPage) -> None:
        """Send; what cannot be sent is dropped, because the next round asks again."""
        asked = [tally for tally in page.tallies if tally.answered or tally.unanswered]
        for tally in asked:
            counters.audited(tally)
        counts = [(tally.peer.id, tally.answered, tally.unanswered) for tally in asked]
        findings = [_finding(page, tally, number, said) for tally in asked for number, said in tally.findings]
        note: _Note = page.note
        try:
            self._pool_managers.audited(note.context, note.pool_name, note.started_at, counts, findings)
        except Exception as error:  # whatever the transport raises, the next page has its own chance
            if not self._outage:
                LOG.error('audit results could not be sent to the pool manager; the next round asks again: %s', error)
            self._outage = True
        else:
            self._outage = False


def _finding(page: SweepPage, tally: PeerResult, number: int, said: SoaReply) -> PollResult:
    domain_id, _, serial = page.domains[number]
    reason = f'{said.reason}, not {serial}' if said.answer is Answer.SERIAL else said.reason
    return PollResult(domain_id, tally.peer.id, Outcome.ERROR, said.answer, said.serial, reason, serial,
                      tally.peer.label)
