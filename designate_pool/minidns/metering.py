"""What MiniDNS counts: who asked for what and what became of it, polls, NOTIFYs."""

from __future__ import annotations

from collections.abc import Sequence

from designate_pool import metrics
from designate_pool.minidns import wire
from designate_pool.minidns.access import Peer
from designate_pool.minidns.responder import Query
from designate_pool.model import Answer, Outcome, PollResult, ZoneHead

_KINDS = {wire.SOA: 'soa', wire.AXFR: 'axfr', wire.IXFR: 'ixfr'}


def answered(query: Query, head: ZoneHead | None) -> None:
    """A query was answered with one message."""
    if head is None:
        outcome = 'no_zone'
    elif query.rtype == wire.SOA:
        outcome = 'sent'
    else:  # an IXFR of who has the serial already, or who is told to come by TCP
        outcome = 'current' if query.over_tcp else 'by_tcp'
    ended(query, outcome)


def ended(query: Query, outcome: str) -> None:
    """
    :param outcome: ``sent``, ``current``, ``by_tcp``, ``no_zone``, ``aborted`` by the server, or ``failed`` here
    """
    metrics.TRANSFERS.labels(_names(query.peers), _KINDS[query.rtype], outcome).inc()


def transferred(query: Query, octets: int, seconds: float) -> None:
    """A zone was sent whole."""
    ended(query, 'sent')
    server = _names(query.peers)
    metrics.TRANSFER_BYTES.labels(server).inc(octets)
    metrics.TRANSFER_SECONDS.labels(server, _KINDS[query.rtype]).observe(seconds)


def polled(peer: Peer, result: PollResult, seconds: float) -> None:
    """A poll came to its end: ``served``, ``behind``, or what the server said in the place of a serial."""
    outcome = result.answer.value.lower()
    if result.answer is Answer.SERIAL or result.status is Outcome.SUCCESS:
        outcome = 'served' if result.status is Outcome.SUCCESS else 'behind'
    metrics.POLLS.labels(_name(peer), outcome).inc()
    metrics.POLL_SECONDS.labels(_name(peer)).observe(seconds)


def notified(peer: Peer, is_accepted: bool) -> None:
    metrics.NOTIFIES.labels(_name(peer), 'accepted' if is_accepted else 'failed').inc()


def _names(peers: Sequence[Peer]) -> str:
    """Of servers that share an address, nobody can say which it was."""
    return ' or '.join(_name(peer) for peer in peers) or metrics.VISITOR


def _name(peer: Peer) -> str:
    """A server that is not configured has its address for an id, and of those there is no end."""
    return metrics.UNKNOWN if ':' in peer.id else peer.label
