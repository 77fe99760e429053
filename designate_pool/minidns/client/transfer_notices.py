"""Tells the other MiniDNS of the pool of transfers that take long, since one of them may poll the server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from designate_pool.concurrency import LoopTask, Runtime
from designate_pool.minidns.access.acl import AllowedPeer
from designate_pool.minidns.server.transfers_in_progress import TransfersInProgress
from designate_pool.model import Context, new_id
from designate_pool.outage_log import OutageLog
from designate_pool.rpc.minidns import MiniDnsClient

LOG = logging.getLogger(__name__)

#: Seconds after which the others are told of a transfer, and between two times; and those for which they believe it.
NOTICE_INTERVAL = 2.0
NOTICE_LIFETIME = 3 * NOTICE_INTERVAL

#: Id of the server, name of the zone, its serial once it was sent, and the seconds that this took.
Notice = tuple[str, str, int | None, float]


class TransferNotices:
    """Sends and receives notices of transfers.

    :param minidns: casts to all MiniDNS of the pool, this one among them
    """

    def __init__(self, pool_name: str, transfers: TransfersInProgress, minidns: MiniDnsClient) -> None:
        self._pool_name = pool_name
        self._transfers = transfers
        self._minidns = minidns
        self._id = new_id()
        self._outage = OutageLog(LOG, 'other MiniDNS are not told of transfers: %s',
                                 'other MiniDNS are told of transfers again', logging.WARNING)
        self._stop_event = threading.Event()
        self._task: LoopTask | None = None

    def start(self, runtime: Runtime) -> None:
        self._task = runtime.spawn(self._run, name='minidns-notices')

    def stop(self) -> None:
        self._stop_event.set()
        if self._task is not None:
            self._task.join(10)

    def transfer_sent(self, peers: Sequence[AllowedPeer], name: str, serial: int, seconds: float) -> None:
        """One of *peers* has been sent zone *name* at *serial*, and the others were told that it was being sent."""
        self._send([(peer.id, name, serial, seconds) for peer in peers])

    def receive(self, sender: str, notices: Sequence[Notice]) -> None:
        """Note what another MiniDNS has told."""
        if sender == self._id:
            return
        self._transfers.note_elsewhere([(server_id, name) for server_id, name, serial, _ in notices if serial is None],
                                       NOTICE_LIFETIME)
        for server_id, name, serial, seconds in notices:
            if serial is not None:
                self._transfers.note_sent_elsewhere(server_id, name, serial, seconds)
                self._transfers.note_elsewhere([(server_id, name)], 0.0)

    def _run(self) -> None:
        while not self._stop_event.wait(NOTICE_INTERVAL):
            long_ones = self._transfers.long_ones(NOTICE_INTERVAL)
            if long_ones:
                self._send([(server_id, name, None, 0.0) for server_id, name in long_ones])

    def _send(self, notices: Sequence[Notice]) -> None:
        try:
            self._minidns.transfers_in_progress(Context(), self._pool_name, self._id, notices)
        except Exception as error:  # whatever the transport raises; the next notice is tried anyway
            self._outage.failed(error)
        else:
            self._outage.ended()
