"""Counts queries, transfers, polls and NOTIFYs in the metrics, by server and outcome."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterable, Sequence
from typing import Any

from designate_pool import metrics
from designate_pool.minidns.acl import AllowedPeer
from designate_pool.minidns.server.responder import Query
from designate_pool.model import Answer, Outcome, PollResult, ZoneHead
from designate_pool.protocol import wire
from designate_pool.protocol.soa_query import SoaReply

_KINDS = {wire.SOA: 'soa', wire.AXFR: 'axfr', wire.IXFR: 'ixfr'}


def answered(query: Query, head: ZoneHead | None) -> None:
    """A query was answered with one message: ``current`` is an IXFR of a client that has the current serial."""
    ended(query, 'no_zone' if head is None else 'sent' if query.rtype == wire.SOA else 'current')


def ended(query: Query, outcome: str) -> None:
    """A query for a transfer has ended.

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


def polled(ended: Iterable[tuple[AllowedPeer, PollResult, float]]) -> None:
    """Polls have ended, with so many seconds each: ``served``, ``behind``, or the kind of reply that had no serial."""
    outcomes: collections.Counter[tuple[str, str]] = collections.Counter()
    for peer, result, seconds in ended:
        name, outcome = _name(peer), 'served'
        if result.status is Outcome.ERROR:
            outcome = 'behind' if result.answer is Answer.SERIAL else result.answer.value.lower()
            metrics.FAILURES.labels(name, 'poll', result.reason).inc()
        outcomes[name, outcome] += 1
        _poll_seconds(name).observe(seconds)
    for (name, outcome), count in outcomes.items():
        metrics.POLLS.labels(name, outcome).inc(count)


def audited(peer: AllowedPeer, zones: int, unexpected: Sequence[SoaReply]) -> None:
    """A server was asked for the serials of so many zones by an audit.

    :param unexpected: the replies other than the expected serial
    """
    outcomes = collections.Counter('behind' if reply.answer is Answer.SERIAL else reply.answer.value.lower()
                                   for reply in unexpected)
    outcomes['served'] = zones - len(unexpected)
    for outcome, count in outcomes.items():
        if count:
            metrics.AUDITED.labels(_name(peer), outcome).inc(count)


@functools.lru_cache(1024)
def _poll_seconds(server: str) -> Any:
    return metrics.POLL_SECONDS.labels(server)


def notified(peer: AllowedPeer, is_accepted: bool) -> None:
    """A NOTIFY has ended."""
    metrics.NOTIFIES.labels(_name(peer), 'accepted' if is_accepted else 'failed').inc()


def _names(peers: Sequence[AllowedPeer]) -> str:
    """The labels of the servers that share the address, as they cannot be told apart."""
    return ' or '.join(_name(peer) for peer in peers) or metrics.VISITOR


def _name(peer: AllowedPeer) -> str:
    """The label; one name for all servers that are not configured, as their number is not limited."""
    return metrics.UNKNOWN if ':' in peer.id else peer.label
