"""Which zones are being transferred to which servers, and which servers load what they were sent, by this MiniDNS or
another one of the pool.

A server may be polled by one MiniDNS and fetch the zone from another.  So each tells the others of its transfers that
take long, again and again while they do; one that says no more, or has stopped, is soon forgotten.  A server is given
as long to load a zone as it took to transfer it.

Polls ask for transfers in a thread of the operating system, in which no lock of the runtime may be taken.  So they look
up one key, and values are replaced as a whole.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from designate_pool import serial as serials
from designate_pool.minidns.access.acl import AllowedPeer

#: Seconds that a transfer takes at least for its receiver to be waited for; for how long it is remembered.
_SHORT, _REMEMBERED = 0.1, 1800.0


class TransferInProgress:
    """One transfer.

    :ivar server_ids: the servers that it may go to; several when they share an address
    :ivar sending_since: since when the server has not accepted a message; None while one is being made
    :ivar is_long: whether other MiniDNS were told of it
    """

    __slots__ = ('name', 'server_ids', 'began', 'sending_since', 'is_long')

    def __init__(self, name: str, server_ids: frozenset[str]) -> None:
        self.name = name
        self.server_ids = server_ids
        self.began = time.monotonic()
        self.is_long = False
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
        #: Of other MiniDNS: until when a server (id) is assumed to fetch a zone (name).
        self._elsewhere: dict[tuple[str, str], float] = {}
        #: The last one of each server (id) and zone (name), if it took long; of other MiniDNS as well.  In their order,
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
                left = tuple(each for each in self._by_zone[name] if each is not transfer)
                if left:
                    self._by_zone[name] = left
                else:
                    del self._by_zone[name]

    def is_fetching(self, server_id: str, name: str) -> bool:
        """Whether zone *name* is being transferred to this server, and the transfer makes progress; from any thread."""
        return (any(server_id in each.server_ids and self._makes_progress(each) for each in self._by_zone.get(name, ()))
                or self._elsewhere.get((server_id, name), 0.0) > time.monotonic())

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

    def note_sent(self, transfer: TransferInProgress, serial: int) -> float:
        """All of *transfer* has been sent, the zone at *serial*; the seconds that it took."""
        seconds = time.monotonic() - transfer.began
        self._note_sent(transfer.server_ids, transfer.name, serial, seconds)
        return seconds

    def note_sent_elsewhere(self, server_id: str, name: str, serial: int, seconds: float) -> None:
        """Another MiniDNS has sent a server (id) zone *name*, which took *seconds*."""
        self._note_sent((server_id,), name, serial, seconds)

    def _note_sent(self, server_ids: Iterable[str], name: str, serial: int, seconds: float) -> None:
        if seconds < _SHORT:
            return
        with self._lock:
            now, sent = time.monotonic(), self._sent
            for server_id in server_ids:
                earlier = sent.get((server_id, name))
                # One that fetches the same serial again while it is waited for is not waited for any longer.
                if earlier is None or earlier.serial != serial or earlier.loaded_by <= now:
                    sent[server_id, name] = SentZone(serial, now, now + seconds)
                    sent.move_to_end((server_id, name))
            while sent:
                key, oldest = next(iter(sent.items()))
                if len(sent) <= self._most_remembered and oldest.loaded_by > now - _REMEMBERED:
                    break
                del sent[key]

    def long_ones(self, seconds: float) -> list[tuple[str, str]]:
        """(server id, zone) of the transfers that have taken *seconds* already and make progress."""
        latest = time.monotonic() - seconds
        with self._lock:
            found = [each for transfers in self._by_zone.values() for each in transfers
                     if each.began <= latest and self._makes_progress(each)]
        for transfer in found:
            transfer.is_long = True
        return [(server_id, each.name) for each in found for server_id in each.server_ids]

    def note_elsewhere(self, fetching: Iterable[tuple[str, str]], seconds: float) -> None:
        """Assume for *seconds* that these servers (id) fetch these zones (name) from another MiniDNS; 0 for no longer.
        """
        with self._lock:
            now = time.monotonic()
            noted = {**self._elsewhere, **dict.fromkeys(fetching, now + seconds)}
            self._elsewhere = {key: until for key, until in noted.items() if until > now}

    def _makes_progress(self, transfer: TransferInProgress) -> bool:
        since = transfer.sending_since
        return since is None or time.monotonic() - since < self._max_message_seconds
