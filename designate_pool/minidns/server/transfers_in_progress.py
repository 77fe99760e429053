"""Which zones are being transferred to which servers, and which servers load what they were sent.

A server is given as long to load a zone as it took to transfer it.  What other MiniDNS transfer is not known here.

Polls ask for transfers in a thread of the operating system, in which no lock of the runtime may be taken.  So they look
up one key, and values are replaced as a whole.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from designate_pool import serial as serials
from designate_pool.minidns.access.acl import AllowedPeer

#: Seconds that a transfer takes at least for its receiver to be waited for; for how long it is remembered.
_SHORT, _REMEMBERED = 0.1, 1800.0


class TransferInProgress:
    """One transfer.

    :ivar server_ids: the servers that it may go to; several when they share an address
    :ivar sending_since: since when the server has not accepted a message; None while one is being made
    """

    __slots__ = ('name', 'server_ids', 'began', 'sending_since')

    def __init__(self, name: str, server_ids: frozenset[str]) -> None:
        self.name = name
        self.server_ids = server_ids
        self.began = time.monotonic()
        self.sending_since: float | None = None


class SentZone(NamedTuple):
    """A zone that a server was sent.

    :ivar sent_at: when; monotonic seconds, as *loaded_by*, when the server is no longer assumed to be loading it
    """

    serial: int
    sent_at: float
    loaded_by: float


class TransfersInProgress:
    """The transfers of this MiniDNS, and what others have told.

    :param max_message_seconds: a transfer makes no progress when a message, of 64 KiB at most, takes longer than this
    :param most_remembered: transfers that are remembered, the newest.  Where many servers fetch many zones, all take so
        long that they are
    """

    def __init__(self, max_message_seconds: float = 10.0, most_remembered: int = 50_000) -> None:
        self._max_message_seconds = max_message_seconds
        self._most_remembered = most_remembered
        self._lock = threading.Lock()
        self._by_zone: dict[str, tuple[TransferInProgress, ...]] = {}
        #: The last one of each server (id) and zone (name), if it took long.  In their order,
        #: and not in a dict, in which the first one is found by stepping over all that were deleted before it.
        self._sent: collections.OrderedDict[tuple[str, str], SentZone] = collections.OrderedDict()

    @contextlib.contextmanager
    def track(self, peers: Sequence[AllowedPeer], name: str) -> Iterator[TransferInProgress]:
        """A transfer of zone *name* to one of *peers*, in progress until the block ends."""
        transfer = TransferInProgress(name, frozenset(peer.id for peer in peers))
        with self._lock:
            self._by_zone[name] = (*self._by_zone.get(name, ()), transfer)
        try:
            yield transfer
        finally:
            with self._lock:
                others = tuple(other for other in self._by_zone[name] if other is not transfer)
                if others:
                    self._by_zone[name] = others
                else:
                    del self._by_zone[name]

    def is_fetching(self, server_id: str, name: str) -> bool:
        """Whether zone *name* is being transferred to this server, and the transfer makes progress; from any thread."""
        return any(server_id in transfer.server_ids and self._makes_progress(transfer)
                   for transfer in self._by_zone.get(name, ()))

    def may_take_longer(self, server_id: str, name: str, serial: int, since: float) -> bool:
        """Whether a server that does not serve *serial* yet is fetching the zone, or is loading what it was sent; from
        any thread.

        A server that does not serve what it was sent may reject it, and fetch it again and again: it is waited for only
        once.

        :param since: when waiting for the serial began (monotonic seconds)
        """
        sent = self._sent.get((server_id, name))
        if sent is not None:
            if time.monotonic() < sent.loaded_by:
                return True
            if sent.sent_at >= since and serials.at_least(sent.serial, serial):
                return False
        return self.is_fetching(server_id, name)

    def note_sent(self, transfer: TransferInProgress, serial: int) -> None:
        """All of *transfer* has been sent, the zone at *serial*."""
        now = time.monotonic()
        seconds = now - transfer.began
        if seconds < _SHORT:
            return
        with self._lock:
            sent = self._sent
            for server_id in transfer.server_ids:
                key = server_id, transfer.name
                earlier = sent.get(key)
                # One that fetches the same serial again while it is waited for is not waited for any longer.
                if earlier is None or earlier.serial != serial or earlier.loaded_by <= now:
                    sent[key] = SentZone(serial, now, now + seconds)
                    sent.move_to_end(key)
            while sent:
                key, oldest = next(iter(sent.items()))
                if len(sent) <= self._most_remembered and oldest.loaded_by > now - _REMEMBERED:
                    break
                del sent[key]

    def _makes_progress(self, transfer: TransferInProgress) -> bool:
        since = transfer.sending_since
        return since is None or time.monotonic() - since < self._max_message_seconds
