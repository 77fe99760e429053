"""NOTIFY (RFC 1996): tell a server that a zone has changed, repeated until it acknowledges."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any

from designate_pool import serial as serials
from designate_pool.minidns import counters
from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.client.event_loop import ClientLoop
from designate_pool.minidns.client.query import RetryingQuery, RetrySchedule, Step
from designate_pool.model import Answer, PollRequest
from designate_pool.outage_log import OutageLog
from designate_pool.protocol import soa_query, wire
from designate_pool.protocol.soa_query import SoaReply

LOG = logging.getLogger(__name__)


class NotifyQuery(RetryingQuery):
    """One NOTIFY.

    :param request: what it is sent for
    :param order: the order that has the request
    :param on_refused: called with the ids of the server and the domain whenever the server does not accept it
    :param on_end: called at the end, with why the server did not accept it; None when it did
    """

    __slots__ = ('request', 'order', '_on_refused', '_on_end')

    def __init__(self, peer: AllowedPeer, request: PollRequest, schedule: RetrySchedule, order: Any,
                 on_refused: Callable[[str, str], None], on_end: Callable[[NotifyQuery, str | None], None]) -> None:
        super().__init__(peer, request.name, soa_query.notify(wire.wire_of(request.name)), schedule)
        self.request = request
        self.order = order
        self._on_refused = on_refused
        self._on_end = on_end

    def read_reply(self, message: bytes, now: int, over_tcp: bool = False) -> SoaReply | None:
        return soa_query.read_notify(message, self.template, self.peer.key, self.mac, now)

    def accept(self, reply: SoaReply) -> bool:
        if reply.answer is not Answer.SERIAL:
            return False
        self._on_end(self, None)
        return True

    def end_try(self, reply: SoaReply, now: float) -> Step:
        self._on_refused(self.peer.id, self.request.domain_id)
        return super().end_try(reply, now)

    def fail(self, reply: SoaReply) -> None:
        self._on_end(self, reply.error or reply.answer.value)


class Notifier:
    """The NOTIFYs in progress, one for a server and zone.

    That a server begins or ceases to refuse them is logged at INFO, single zones at DEBUG.

    :param on_refused: called in the loop with the ids of the server and the domain when the server does not accept a
        NOTIFY
    """

    def __init__(self, loop: ClientLoop, on_refused: Callable[[str, str], None]) -> None:
        self._loop = loop
        self._on_refused = on_refused
        self._in_progress: dict[tuple[str, str], NotifyQuery] = {}
        self._outages = OutageLog(LOG, 'NOTIFY for %s was not accepted by %s: %s', 'NOTIFYs are accepted by %s again',
                                  logging.INFO)

    def send(self, peer: AllowedPeer, request: PollRequest, schedule: RetrySchedule, order: Any) -> None:
        """Notify *peer* of the zone and serial of *request*, which *order* has.  Called in the loop."""
        key = peer.id, request.name
        previous = self._in_progress.get(key)
        if previous is not None:
            just_sent = previous.in_try and previous.resend_interval <= 2 * previous.schedule.first_resend
            if just_sent and previous.request.domain_id == request.domain_id \
                    and serials.at_least(previous.request.serial, request.serial):
                return
            self._loop.cancel(previous)
        notify = NotifyQuery(peer, request, schedule, order, self._on_refused, self._query_ended)
        self._in_progress[key] = notify
        self._loop.start_query(notify)

    def cancel_peers(self, peer_ids: Collection[str]) -> list[NotifyQuery]:
        """End the NOTIFYs to these servers; those that had not ended.  Called in the loop."""
        self._loop.post(self._forget_outages, peer_ids)
        cancelled = [self._in_progress.pop(key) for key in list(self._in_progress) if key[0] in peer_ids]
        for notify in cancelled:
            self._loop.cancel(notify)
        return cancelled

    def _query_ended(self, notify: NotifyQuery, why: str | None) -> None:
        key = notify.peer.id, notify.name
        if self._in_progress.get(key) is notify:
            del self._in_progress[key]
        self._loop.post(self._log_ended, (notify.peer, notify.name, why))

    # What follows is called in the runtime's threads.

    def _log_ended(self, ended: Sequence[tuple[AllowedPeer, str, str | None]]) -> None:
        for peer, name, why in ended:
            counters.notified(peer, why is None)
            if why is not None:
                self._outages.failed(name, peer.label, why, key=peer.id)
            else:
                self._outages.ended(peer.label, key=peer.id)

    def _forget_outages(self, dropped: Sequence[Collection[str]]) -> None:
        for peer_id in itertools.chain(*dropped):
            self._outages.forget(peer_id)
