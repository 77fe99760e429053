"""Which zones are being transferred to which servers at present, by this MiniDNS or another one of the pool.

A server may be polled by one MiniDNS and fetch the zone from another.  So each tells the others of its transfers that
take long, again and again while they do; one that says no more, or has stopped, is soon forgotten.

Polls ask for transfers in a thread of the operating system, in which no lock of the runtime may be taken.  So values
are replaced as a whole.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Sequence

from designate_pool.minidns.access.acl import AllowedPeer


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


class TransfersInProgress:
    """The transfers of this MiniDNS, and what others have told.

    :param max_message_seconds: a transfer makes no progress when a message, of 64 KiB at most, takes longer than this
    """

    def __init__(self, max_message_seconds: float = 10.0) -> None:
        self._max_message_seconds = max_message_seconds
        self._lock = threading.Lock()
        self._by_zone: dict[str, tuple[TransferInProgress, ...]] = {}
        #: Of other MiniDNS: until when a server (id) is assumed to fetch a zone (name).
        self._elsewhere: dict[tuple[str, str], float] = {}

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

    def long_ones(self, seconds: float) -> list[tuple[str, str]]:
        """(server id, zone) of the transfers that have taken *seconds* already and make progress."""
        latest = time.monotonic() - seconds
        with self._lock:
            found = [each for transfers in self._by_zone.values() for each in transfers
                     if each.began <= latest and self._makes_progress(each)]
        for transfer in found:
            transfer.is_long = True
        return [(server_id, each.name) for each in found for server_id in each.server_ids]

    def is_long(self, peers: Sequence[AllowedPeer], name: str) -> bool:
        """Whether other MiniDNS were told of a transfer of zone *name* to *peers*."""
        ids = frozenset(peer.id for peer in peers)
        return any(each.is_long and each.server_ids == ids for each in self._by_zone.get(name, ()))

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
