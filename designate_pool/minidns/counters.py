"""Counts queries, transfers, polls and NOTIFYs in the metrics, by server and outcome."""

from __future__ import annotations

import collections
import functools
from collections.abc import Sequence
from typing import Any

from designate_pool import metrics
from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.server.responder import Query
from designate_pool.minidns.soa_sweep.page import PeerResult
from designate_pool.model import Answer, Outcome, PollResult, ZoneHead
from designate_pool.protocol import wire

_KINDS = {wire.SOA: 'soa', wire.AXFR: 'axfr', wire.IXFR: 'ixfr'}


def answered(query: Query, head: ZoneHead | None) -> None:
    """A query was answered with one message: ``current`` is an IXFR of a client that has the current serial."""
    ended(query, 'no_zone' if head is None else 'sent' if query.rtype == wire.SOA else 'current')


def ended(query: Query, outcome: str) -> None:
    """
    :param outcome: ``sent``, ``current``, ``by_tcp``, ``no_zone``, ``aborted`` by the server, or ``failed`` here
    """
    metrics.TRANSFERS.labels(_names(query.peers), _KINDS[query.rtype], outcome).inc()


def transferred(query: Query, octets: int, seconds: float, is_whole: bool) -> None:
    """A transfer was sent completely.

    :param is_whole: whether it was the zone, not the difference from an older one
    """
    server = _names(query.peers)
    kind = 'ixfr_whole' if is_whole and query.rtype == wire.IXFR else _KINDS[query.rtype]
    metrics.TRANSFERS.labels(server, kind, 'sent').inc()
    metrics.TRANSFER_BYTES.labels(server, kind).inc(octets)
    metrics.TRANSFER_SECONDS.labels(server, kind).observe(seconds)


def polled(peer: AllowedPeer, result: PollResult, seconds: float) -> None:
    """A poll has ended: ``served``, ``behind``, or the kind of reply that had no serial."""
    outcome = result.answer.value.lower()
    if result.answer is Answer.SERIAL or result.status is Outcome.SUCCESS:
        outcome = 'served' if result.status is Outcome.SUCCESS else 'behind'
    polls, poll_seconds = _of_polls(_name(peer), outcome)
    polls.inc()
    if result.status is Outcome.ERROR:
        metrics.FAILURES.labels(_name(peer), 'poll', result.reason).inc()
    poll_seconds.observe(seconds)


def audited(result: PeerResult) -> None:
    """A page of the SOA sweep has ended for one server."""
    outcomes = collections.Counter('behind' if reply.answer is Answer.SERIAL else reply.answer.value.lower()
                                   for _, reply in result.findings)
    outcomes['served'] = result.answered + result.unanswered - len(result.findings)
    for outcome, count in outcomes.items():
        metrics.AUDITED.labels(_name(result.peer), outcome).inc(count)


@functools.lru_cache(1024)
def _of_polls(server: str, outcome: str) -> tuple[Any, Any]:
    return metrics.POLLS.labels(server, outcome), metrics.POLL_SECONDS.labels(server)


def notified(peer: AllowedPeer, is_accepted: bool) -> None:
    metrics.NOTIFIES.labels(_name(peer), 'accepted' if is_accepted else 'failed').inc()


def _names(peers: Sequence[AllowedPeer]) -> str:
    """The labels of the servers that share the address, as they cannot be told apart."""
    return ' or '.join(_name(peer) for peer in peers) or metrics.VISITOR


def _name(peer: AllowedPeer) -> str:
    """The label; one name for all servers that are not configured, as their number is not limited."""
    return metrics.UNKNOWN if ':' in peer.id else peer.label
