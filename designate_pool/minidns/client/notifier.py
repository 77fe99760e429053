"""NOTIFY (RFC 1996): tell a server that a zone has changed, again until it says that it has understood."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Any

from designate_pool import serial as serials
from designate_pool.minidns import counters
from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.client.event_loop import ClientLoop
from designate_pool.minidns.client.query import FIRST_RESEND, RetryingQuery, RetrySchedule
from designate_pool.model import Answer
from designate_pool.protocol import soa_query, wire
from designate_pool.protocol.soa_query import SoaReply

LOG = logging.getLogger(__name__)


class NotifyQuery(RetryingQuery):
    """One NOTIFY.

    :param wanted_by: what it is sent for
    :param refused: told of the server's id and the zone whenever the answer is no
    :param over: told at the end, with why the server did not accept it; None when it did
    """

    __slots__ = ('serial', 'wanted_by', '_refused', '_over')

    def __init__(self, peer: AllowedPeer, name: str, serial: int, schedule: RetrySchedule, wanted_by: Any,
                 refused: Callable[[str, str], None], over: Callable[[NotifyQuery, str | None], None]) -> None:
        super().__init__(peer, name, soa_query.notify(wire.wire_of(name)), schedule)
        self.serial = serial
        self.wanted_by = wanted_by
        self._refused = refused
        self._over = over

    def read(self, message: bytes, now: int, over_tcp: bool = False) -> SoaReply | None:
        return soa_query.read_notify(message, self.template, self.peer.key, self.mac, now)

    def take(self, said: SoaReply) -> bool:
        if said.answer is not Answer.SERIAL:
            self._refused(self.peer.id, self.name)
            return False
        self._over(self, None)
        return True

    def give_up(self, said: SoaReply) -> None:
        self._over(self, said.reason or said.answer.value)


class Notifier:
    """The NOTIFYs under way, one for a server and zone.

    The log tells when a server begins and when it ceases to refuse them, not of each zone.

    :param refused: told in the exchange's loop of the server's id and the zone, when the answer to a NOTIFY is no
    """

    def __init__(self, exchange: ClientLoop, refused: Callable[[str, str], None]) -> None:
        self._exchange = exchange
        self._refused = refused
        self._under_way: dict[tuple[str, str], NotifyQuery] = {}
        self._refusing: set[str] = set()

    def under_way(self) -> list[NotifyQuery]:
        """What the exchange has left when it was stopped."""
        return list(self._under_way.values())

    def send(self, peer: AllowedPeer, name: str, serial: int, schedule: RetrySchedule, wanted_by: Any) -> None:
        """Notify *peer* of zone *name* at *serial*.  Called in the exchange's loop."""
        former = self._under_way.get((peer.id, name))
        if former is not None:
            just_sent = former.in_try and former.gap <= 2 * FIRST_RESEND
            if just_sent and serials.at_least(former.serial, serial):
                return
            self._exchange.end(former)
        notify = NotifyQuery(peer, name, serial, schedule, wanted_by, self._refused, self._end)
        self._under_way[peer.id, name] = notify
        self._exchange.begin(notify)

    def drop(self, peer_ids: Collection[str]) -> None:
        """End what is under way to these.  Called in the exchange's loop."""
        self._exchange.post(self._forget, peer_ids)
        for key in [key for key in self._under_way if key[0] in peer_ids]:
            self._exchange.end(self._under_way.pop(key))

    def _end(self, notify: NotifyQuery, why: str | None) -> None:
        key = notify.peer.id, notify.name
        if self._under_way.get(key) is notify:
            del self._under_way[key]
        self._exchange.post(self._tell, (notify.peer, notify.name, why))

    # In the runtime's world.

    def _tell(self, ended: Sequence[tuple[AllowedPeer, str, str | None]]) -> None:
        for peer, name, why in ended:
            counters.notified(peer, why is None)
            if why is not None:
                level = logging.DEBUG if peer.id in self._refusing else logging.INFO
                LOG.log(level, 'NOTIFY for %s was not accepted by %s: %s', name, peer.label, why)
                self._refusing.add(peer.id)
            elif peer.id in self._refusing:
                self._refusing.discard(peer.id)
                LOG.info('NOTIFYs are accepted by %s again', peer.label)

    def _forget(self, dropped: Sequence[Collection[str]]) -> None:
        self._refusing.difference_update(*dropped)
